"""The derivative of a step: kernels for the Jacobians of its equations, and tables for solving with them.

With F(u; s, theta) = 0 for the unknowns u of a step from the state s, which ends in s + D(u; s, theta), the implicit function
theorem gives

    ds_1 = ds + D_u du + D_s ds + D_theta dtheta,   F_u du = -(F_s ds + F_theta dtheta).

The unknowns u are those of Newton's iteration and then those that only the end of the step determines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import PivotOrder, describe, filled_pattern
from dalembert.compiler._ir import Kernel, emit_module
from dalembert.compiler._jit import Code, compile_module
from dalembert.compiler._memory import place_in_order
from dalembert.compiler._program import Program
from dalembert.compiler._tape import entries_of
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time

MATRICES = ("F_u", "F_z", "D_u", "D_z")
"""The Jacobians of a step, z being the state and the parameters that are asked for."""


@dataclass(frozen=True)
class LinearisedLayout:
    """Slots of the memory block of a linearised step."""

    n_theta: int
    n_state: int
    n_x: int
    n_last: int
    n_last_entries: int
    n_entries: tuple[int, int, int, int]

    time = 0
    h = 1
    theta = 2

    state: int = field(init=False)
    x: int = field(init=False)
    last: int = field(init=False)
    last_entries: int = field(init=False)
    last_rhs: int = field(init=False)
    F_u: int = field(init=False)
    F_z: int = field(init=False)
    D_u: int = field(init=False)
    D_z: int = field(init=False)
    work: int = field(init=False)

    def __post_init__(self) -> None:
        sizes = {"theta": self.n_theta, "state": self.n_state, "x": self.n_x, "last": self.n_last}
        sizes |= {"last_entries": self.n_last_entries, "last_rhs": self.n_last}
        sizes |= dict(zip(MATRICES, self.n_entries, strict=True))
        place_in_order(self, self.theta, sizes | {"work": 0})


@dataclass(frozen=True, eq=False)
class Linearised:
    """Kernels, tables and the layout of the memory for the derivative of one program's steps."""

    program: Program
    chosen: tuple[int, ...]
    """The parameters with respect to which the step is differentiated, as positions in theta."""
    layout: LinearisedLayout
    code: Code
    memory_size: int
    tables: np.ndarray
    places: dict[str, int]
    """Where descriptions of the matrices begin in the tables: those that are eliminated, then rows and columns of entries."""

    @property
    def n_u(self) -> int:
        """How many unknowns the step has."""
        return self.layout.n_x + self.layout.n_last


@kept
@one_at_a_time
def linearised(program: Program, chosen: tuple[int, ...]) -> Linearised:
    """The derivative of a program's steps with respect to the state and some of the parameters."""
    reduced, last = program.reduced, program.reduced.last
    time, h, theta, state = reduced.data
    y = ca.SX(0, 1) if last is None else last.y
    end = ca.SX(0, 1) if last is None else last.matrix @ y - last.rhs
    u, z = ca.vertcat(reduced.x, y), ca.vertcat(state, theta[list(chosen)] if chosen else ca.SX(0, 1))
    F, D = ca.vertcat(reduced.residual, end), reduced.increment
    matrices = [ca.jacobian(F, u), ca.jacobian(F, z), ca.jacobian(D, u), ca.jacobian(D, z)]
    sizes = (theta.shape[0], state.shape[0], reduced.x.shape[0], y.shape[0], 0 if last is None else last.matrix.nnz())
    layout = LinearisedLayout(*sizes, n_entries=tuple(matrix.nnz() for matrix in matrices))
    slots = (layout.time, layout.h, layout.theta, layout.state, layout.x)
    symbols = list(zip((*reduced.data, reduced.x), slots, strict=True))
    kernels = []
    if last is not None:
        outputs = [(entries_of(last.matrix), layout.last_entries), (last.rhs, layout.last_rhs)]
        kernels.append(Kernel("last", symbols, outputs))
    outputs = [(entries_of(matrix), getattr(layout, name)) for name, matrix in zip(MATRICES, matrices, strict=True)]
    kernels.append(Kernel("linearise", [*symbols, (y, layout.last)], outputs))
    tables, places, filled = _tables(program, layout, matrices)
    assembly, used = emit_module(kernels, filled)
    code = compile_module(assembly, tuple(kernel.name for kernel in kernels))
    return Linearised(program, chosen, layout, code, filled + used, tables, places)


def _tables(program: Program, layout: LinearisedLayout, matrices: list[ca.SX]) -> tuple[np.ndarray, dict[str, int], int]:
    """Tables for the eliminations, rows and columns of all entries, where each begins, and the end of the factors."""
    tables: list[np.ndarray] = []
    places, filled, last = {"last": -1}, layout.work, program.reduced.last
    eliminated = [("matrix", matrices[0], _joined(program, layout.n_x), layout.F_u, 0)]
    if last is not None and program.last_order is not None:
        eliminated.append(("last", last.matrix, program.last_order, layout.last_entries, layout.last_rhs))
    for name, matrix, order, entries, rhs in eliminated:
        pattern = filled_pattern(*(np.array(a, dtype=int) for a in matrix.sparsity().get_triplet()), order)
        places[name] = describe(tables, pattern, filled=filled, entries=entries, rhs=rhs)
        filled += len(pattern["column"])
    for name, matrix in zip(MATRICES, matrices, strict=True):
        places[name] = sum(len(table) for table in tables)
        tables += [np.array(indices, dtype=np.int64) for indices in matrix.sparsity().get_triplet()]
    return np.concatenate(tables).astype(np.int64), places, filled


def _joined(program: Program, n_x: int) -> PivotOrder:
    """The pivots of Newton's matrix, then those of the last unknowns, on which the other equations do not depend."""
    first, last = program.order, program.last_order
    if last is None or program.reduced.last is None:
        return first
    rows, columns = (tuple(n_x + k for k in part) for part in (last.rows, last.columns))
    return PivotOrder(first.rows + rows, first.columns + columns, first.products + last.products)
