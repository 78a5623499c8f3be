"""The compiled form of (system, method): kernels over one block of memory, and where everything lies in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from dalembert._progress import phase
from dalembert.compiler._elimination import (
    PivotOrder,
    describe,
    diagonal_order,
    eliminate,
    filled_pattern,
    name_factors,
    substitute,
)
from dalembert.compiler._guess import clock_kernels, predictor
from dalembert.compiler._increments import weights_and_noise
from dalembert.compiler._ir import Kernel, compile_kernels, in_two_parts
from dalembert.compiler._jit import Code
from dalembert.compiler._lane_kernels import LaneCode, compile_lanes
from dalembert.compiler._linear_form import LinearForms
from dalembert.compiler._memory import Layout
from dalembert.compiler._reduction import ReducedStep, reduce_step
from dalembert.compiler._rolled import repeats
from dalembert.compiler._step_symbols import (
    last_solved,
    layout_of,
    measure_of,
    results_of,
    solved_results,
    symbols_of,
    used_forms,
)
from dalembert.compiler._stopping import fastest, watchful
from dalembert.compiler._tape import Tape, entries_of, read_tape
from dalembert.methods import OneStepMethod
from dalembert.symbolic._kept import Recent, kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import System

STRAIGHT_LINE_LIMIT = 16_000
"""Products in the eliminations of a step from which on loops over their patterns replace straight-line code."""

FORMS_LIMIT = 5_000
"""Operations of the equations and their Jacobian up to which they become linear forms: the coefficients of longer ones, which
are stored once a step, take longer to store and to read than they save."""

OVERHEAD = 60
"""What the driver does in an iteration besides calling the kernel, in operations."""

SELDOM = 1_500
"""Operations from which on kernels that most steps do not call are compiled quickly, and those that are called once a step
where steps eliminate at run time, which takes most of their time."""

LONG = 10_000
"""Operations from which on kernels that are called once a step are compiled quickly in all programs: they take a tenth longer,
and LLVM takes 0.07 s less for every thousand (Bricard's mechanism: a first step after 2.4 s instead of 3.7 s)."""

MANY_STAGES = 4
"""Positions in so many stages are weighed in vectors: most of that is the same for all coordinates. LLVM takes 20 ms for it."""

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


@dataclass(frozen=True, eq=False)
class _Compiled:
    """Kernels and what belongs to them, of a program that eliminates in straight-line code or, in any order, at run time."""

    kernels: tuple[Kernel, ...]
    layout: Layout
    increment: tuple[ca.SX, ca.SX] | None
    code: Code
    memory_size: int


def _compile(reduced: ReducedStep, order: PivotOrder, last_order: PivotOrder | None, contiguous: bool) -> Program:
    turn_order = None if reduced.turn is None else diagonal_order(reduced.turn.matrix)
    products = sum(0 if pivots is None else pivots.products for pivots in (order, last_order, turn_order))
    straight_line = products <= STRAIGHT_LINE_LIMIT and not repeats(_newton_tape(reduced))
    compiled = (
        _straight_line_kernels(reduced, order, last_order, contiguous)
        if straight_line
        else _looped_kernels(reduced, contiguous)
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


@kept
def _newton_tape(reduced: ReducedStep) -> Tape:
    """The residual and the entries of its Jacobian."""
    values = ca.vertcat(reduced.residual, entries_of(reduced.jacobian))
    return read_tape(ca.Function("newton", [ca.vertcat(reduced.x, *reduced.data)], [ca.densify(values)]))


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


def _straight_line_kernels(
    reduced: ReducedStep, order: PivotOrder, last_order: PivotOrder | None, contiguous: bool
) -> _Compiled:
    """Kernels that eliminate in a fixed order, in code without loops."""
    forms = LinearForms(reduced.x, ca.vertcat(*reduced.data, reduced.metric.column))
    rewrite = forms.rewrite if len(_newton_tape(reduced).computed) <= FORMS_LIMIT else lambda expression: expression
    explicit, slopes = rewrite(reduced.explicit_stage), rewrite(reduced.slopes)
    residual = reduced.combination @ rewrite(reduced.plain)
    results = solved_results(reduced, last_order)
    ends = np.cumsum([0, *(part.shape[0] for part in results)]).tolist()
    results = ca.vertsplit(rewrite(ca.vertcat(*results)), ends)
    reciprocals, lower, upper, stored = name_factors(*eliminate(ca.jacobian(slopes, reduced.x), order))
    coefficients = used_forms(forms, ca.vertcat(residual, explicit, *results, *(value for _, value in stored)))
    layout = layout_of(reduced, len(stored), len(coefficients))
    names = ca.vertcat(ca.SX(0, 1), *(name for name, _ in stored))
    values = ca.vertcat(ca.SX(0, 1), *(value for _, value in stored))
    weights = ca.SX.sym("weight", layout.n_x)
    step = substitute(reciprocals, lower, upper, order, residual)
    size = measure_of(reduced).size(reduced, weights, step, explicit)
    symbols = [*symbols_of(reduced, layout), (ca.vertcat(ca.SX(0, 1), *(name for name, _ in coefficients)), layout.once)]
    metric = (reduced.metric.column, layout.metric)
    factor = Kernel("factor", symbols, [(values, layout.factors)], often=True)
    iterate = Kernel(
        "iterate",
        [*symbols, (names, layout.factors), (weights, layout.weights)],
        [(reduced.x - step, layout.x), (size, layout.increment_size)],
        often=True,
    )
    finish = Kernel("finish", [*symbols, metric], list(zip(results, layout.results, strict=True)))
    exact = last_solved(reduced, [reduced.signed(reduced.orientation)], last_order)[0]
    look = _look(reduced, layout, [*symbols_of(reduced, layout), metric], exact)
    once = ca.vertcat(ca.SX(0, 1), *(value for _, value in coefficients))
    return _assemble(reduced, layout, (factor, iterate, finish, *look), once, (step, size), contiguous)


@kept
def _looped_kernels(reduced: ReducedStep, contiguous: bool) -> _Compiled:
    """Kernels that leave elimination to loops over tables, the same for every pivot order."""
    entries = entries_of(reduced.jacobian)
    layout = layout_of(reduced, entries.shape[0], 0, at_run_time=True)
    symbols = symbols_of(reduced, layout)
    factor = Kernel("factor", symbols, [(entries, layout.factors)])
    iterate = Kernel("iterate", symbols, [(reduced.residual, layout.residual)])
    results = list(zip(results_of(reduced), layout.results, strict=True))
    known = []
    if reduced.turn is not None:
        known = [(reduced.turn.symbol, 1.0)]
        results.append((entries_of(reduced.turn.matrix), layout.turn_entries))
    symbols = [*symbols, (reduced.metric.column, layout.metric)]
    if reduced.last is None:
        finish = Kernel("finish", symbols, results, known=known)
        solving = (factor, iterate, finish, *_look(reduced, layout, symbols, reduced.orientation, known))
        return _assemble(reduced, layout, solving, ca.SX(0, 1), None, contiguous)
    results += [(entries_of(reduced.last.matrix), layout.last_entries), (reduced.last.rhs, layout.last_rhs)]
    symbols = [*symbols, (reduced.last.y, layout.last_unknowns)]
    last, finish, handed = in_two_parts(Kernel("finish", symbols, results, known=known), layout.work, ("last", "finish"))
    solving = (factor, iterate, last, finish, *_look(reduced, layout, symbols, reduced.orientation, known))
    return _assemble(reduced, layout, solving, ca.SX(0, 1), None, contiguous, handed)


def _look(
    reduced: ReducedStep,
    layout: Layout,
    symbols: list[tuple[ca.SX, int]],
    orientation: ca.SX,
    known: Sequence[tuple[ca.SX, float]] = (),
) -> tuple[Kernel, ...]:
    """What decides about a step where a glance at its constraints does not, in programs that need it."""
    look = Kernel("look", symbols, [(orientation, layout.orientation)], known=known)
    return () if reduced.glance is reduced.orientation else (look,)


def _assemble(
    reduced: ReducedStep,
    layout: Layout,
    solving: tuple[Kernel, ...],
    once: ca.SX,
    increment: tuple[ca.SX, ca.SX] | None,
    contiguous: bool,
    handed: int = 0,
) -> _Compiled:
    """Put the kernels that predict and weigh before those that factor, iterate and finish, and compile all."""
    delta = ca.SX.sym("delta", layout.n_state)
    weights = weights_and_noise(reduced, measure_of(reduced), delta)
    outputs = list(zip((once, *weights), (layout.once, layout.weights, layout.noise), strict=True))  # in the order of need
    time, *fixed, state, x = symbols_of(reduced, layout)
    varying = [time, state, x, (delta, layout.delta)]
    weigh = Kernel("weigh", [*fixed, (reduced.metric.column, layout.metric), *varying], outputs, often=True)
    many = bool(reduced.blocks) and len(reduced.blocks[0].nodes) >= MANY_STAGES
    rows = ("predict", "weigh") if many else ("predict",)
    kernels = (predictor(reduced, layout, delta, contiguous), weigh, *solving, *clock_kernels(reduced, layout))
    parts, once_a_step = [weigh], SELDOM
    if increment is not None:
        *parts, handed = in_two_parts(weigh, layout.work, ("prepare", "weigh"), late=len(varying))
        once_a_step = LONG
    work, parts = layout.work + handed, [kernels[0], *parts, *kernels[2:]]
    limits = {"prepare": SELDOM, "look": SELDOM, **dict.fromkeys(("factor", "last", "finish"), once_a_step)}
    quick = [kernel.name for kernel in parts if kernel.operations >= limits.get(kernel.name, np.inf)]
    code, used = compile_kernels(parts, work, quick=quick, rows=rows)
    return _Compiled(kernels, layout, increment, code, work + used)
