"""The compiled form of (system, method): kernels over one block of memory, and where everything lies in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from dalembert._progress import phase
from dalembert.compiler._elimination import PivotOrder, describe, diagonal_order, filled_pattern
from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._jit import Code
from dalembert.compiler._lane_kernels import LaneCode, compile_lanes
from dalembert.compiler._memory import Layout
from dalembert.compiler._reduction import ReducedStep, reduce_step
from dalembert.compiler._rolled import repeats
from dalembert.compiler._step_kernels import looped_kernels, newton_tape, straight_line_kernels
from dalembert.compiler._step_symbols import symbols_of
from dalembert.compiler._stopping import fastest, watchful
from dalembert.compiler._tape import entries_of
from dalembert.methods import OneStepMethod
from dalembert.symbolic._kept import Recent, kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import System

STRAIGHT_LINE_LIMIT = 16_000
"""Products in the eliminations of a step from which on loops over their patterns replace straight-line code."""

OVERHEAD = 60
"""What the driver does in an iteration besides calling the kernel, in operations."""

WAY_OUT = ("entries", "residual")
"""Kernels for steps in which the pivot order fails: what dense elimination with a choice of pivots needs."""


@dataclass(frozen=True, eq=False)
class Program:
    """Everything that the engine needs to run steps of one method on one system."""

    reduced: ReducedStep
    order: PivotOrder
    last_order: PivotOrder | None
    layout: Layout
    kernels: tuple[Kernel, ...]
    increment: tuple[ca.SX, ca.SX] | None
    """What an iteration subtracts from x, and its squared size, in straight-line programs."""
    memory_size: int
    code: Code
    straight_line: bool
    index: np.ndarray
    index_start: dict[str, int]
    cost_ratio: float
    """What a factorisation costs, in iterations."""
    way_out: Code | None = None
    """The kernels `WAY_OUT`, in programs that have a way out."""
    dense: int = 0
    """Where, in programs that have a way out, the entries of the matrix lie; then the full one, scales and pivots."""

    @kept
    @one_at_a_time
    def with_way_out(self) -> Program:
        """The same program, able to solve single steps by dense elimination with partial pivoting."""
        reduced, layout, n = self.reduced, self.layout, self.layout.n_x
        symbols = symbols_of(reduced, layout)
        entries = entries_of(reduced.jacobian)
        dense, rows_and_columns = self.memory_size, reduced.jacobian.sparsity().get_triplet()
        work = dense + entries.shape[0] + n * n + 4 * n
        kernels = (
            Kernel("entries", symbols, [(entries, dense)]),
            Kernel("residual", symbols, [(reduced.residual, layout.residual)]),
        )
        code, used = compile_kernels(kernels, work, quick=WAY_OUT)
        index, starts = self.index, dict(self.index_start)
        for name, table in zip(("entry_row", "entry_column"), rows_and_columns, strict=True):
            starts[name] = len(index)
            index = np.concatenate([index, np.array(table, dtype=np.int64)])
        return replace(self, memory_size=work + used, index=index, index_start=starts, way_out=code, dense=dense)

    @property
    def operations(self) -> int:
        """How many operations the kernels take, each once."""
        return sum(kernel.operations for kernel in self.kernels)

    @kept
    @one_at_a_time
    def in_lanes(self, lanes: int) -> LaneCode:
        """The kernels for so many trajectories side by side."""
        assert self.increment is not None
        believed = fastest(self.reduced.equations.step.definition)
        watch = watchful(self.reduced.equations.step.definition)
        return compile_lanes(self.kernels, self.reduced.x, *self.increment, self.layout, lanes, believed, watch)


_by_graph: dict[tuple[str, OneStepMethod], ReducedStep] = Recent()
_programs: dict[tuple[str, OneStepMethod, PivotOrder, PivotOrder | None, bool], Program] = Recent()


@one_at_a_time
def reduced_step(system: System, method: OneStepMethod) -> ReducedStep:
    """The reduced equations; built once for equal models, whatever objects they came from."""
    key = (system.fingerprint, method)
    if key not in _by_graph:
        phase("the step equations")
        _by_graph[key] = reduce_step(method.step_equations(system))
    return _by_graph[key]


def program_of(
    system: System, method: OneStepMethod, order: PivotOrder, last_order: PivotOrder | None, contiguous: bool
) -> Program:
    """The program with these pivot orders; compiled once for equal models."""
    key = (system.fingerprint, method, order, last_order, contiguous)
    if key not in _programs:
        phase("the kernels")
        _programs[key] = _compile(reduced_step(system, method), order, last_order, contiguous)
    return _programs[key]


def _compile(reduced: ReducedStep, order: PivotOrder, last_order: PivotOrder | None, contiguous: bool) -> Program:
    turn_order = None if reduced.turn is None else diagonal_order(reduced.turn.matrix)
    products = sum(0 if pivots is None else pivots.products for pivots in (order, last_order, turn_order))
    straight_line = products <= STRAIGHT_LINE_LIMIT and not repeats(newton_tape(reduced))
    compiled = (
        straight_line_kernels(reduced, order, last_order, contiguous) if straight_line else looped_kernels(reduced, contiguous)
    )
    tables: list[np.ndarray] = []
    starts, memory_size, n_filled = {"matrix": -1, "last": -1, "turn": -1}, compiled.memory_size, 0
    at_run_time = [] if straight_line else _eliminated(reduced, compiled.layout, order, last_order, turn_order)
    for name, matrix, pivots, slots in at_run_time:
        rows, columns = (np.array(a, dtype=int) for a in matrix.sparsity().get_triplet())
        pattern = filled_pattern(rows, columns, pivots)
        starts[name] = describe(tables, pattern, filled=memory_size, **slots)
        memory_size += len(pattern["column"])
        n_filled += len(pattern["column"]) if name == "matrix" else 0
    starts["power"] = sum(len(each) for each in tables)
    tables += [np.full(block.symbols.shape[0], not block.per_h) for block in reduced.blocks]
    # A product of the run-time elimination costs about as much as three straight-line operations.
    loop_factor, loop_solve = (0, 0) if straight_line else (3 * order.products, 3 * n_filled)
    factor, iterate = (next(k for k in compiled.kernels if k.name == name) for name in ("factor", "iterate"))
    factor_cost = factor.operations + loop_factor
    iteration_cost = iterate.operations + loop_solve + OVERHEAD
    return Program(
        reduced=reduced,
        order=order,
        last_order=last_order,
        layout=compiled.layout,
        kernels=compiled.kernels,
        increment=compiled.increment,
        memory_size=memory_size,
        code=compiled.code,
        straight_line=straight_line,
        index=np.concatenate([np.zeros(0), *tables]).astype(np.int64),
        index_start=starts,
        cost_ratio=factor_cost / iteration_cost,
    )


def _eliminated(
    reduced: ReducedStep, layout: Layout, order: PivotOrder, last_order: PivotOrder | None, turn_order: PivotOrder | None
) -> list[tuple[str, ca.SX, PivotOrder, dict[str, int]]]:
    """The matrices that are eliminated at run time: names, orders, and where their entries and right-hand sides lie."""
    found = [("matrix", reduced.jacobian, order, {"entries": layout.factors, "rhs": layout.residual})]
    if reduced.last is not None and last_order is not None:
        found.append(("last", reduced.last.matrix, last_order, {"entries": layout.last_entries, "rhs": layout.last_rhs}))
    if reduced.turn is not None and turn_order is not None:
        found.append(("turn", reduced.turn.matrix, turn_order, {"entries": layout.turn_entries, "rhs": 0}))
    return found
