"""The derivative of a step: kernels for the Jacobians of its equations, and tables for solving with them.

With F(u; s, theta) = 0 for the unknowns u of a step from the state s, which ends in s + D(u; s, theta), the implicit function
theorem gives

    ds_1 = ds + D_u du + D_s ds + D_theta dtheta,   F_u du = -(F_s ds + F_theta dtheta).

These are the equations as a method states them. Those in which explicit unknowns are substituted away, which are solved, have
Jacobians with fewer but far longer entries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import PivotOrder, SingularMatrix, choose_pivots, describe, diagonal_order, filled_pattern
from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._jit import Code
from dalembert.compiler._memory import place_in_order
from dalembert.compiler._reduction import ReducedStep
from dalembert.compiler._tape import entries_of
from dalembert.errors import StepFailed
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time

MATRICES = ("F_u", "F_z", "D_u", "D_z")
"""The Jacobians of a step, z being the state and the parameters that are asked for."""

SPREADS = (0.0, 1e-3, 1e-2)
"""Relative distances of the states from which pivots are chosen: entries that vanish just at a start do not count."""


@dataclass(frozen=True)
class LinearisedLayout:
    """Slots of the memory block of a linearised step."""

    n_theta: int
    n_state: int
    n_x: int
    """Unknowns of Newton's iteration, from which all others follow."""
    n_last: int
    n_last_entries: int
    n_entries: tuple[int, ...]

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
    """Kernels, tables and the layout of the memory for the derivative of a method's steps on a system."""

    n_u: int
    chosen: tuple[int, ...]
    """The parameters with respect to which the step is differentiated, as positions in theta."""
    layout: LinearisedLayout
    code: Code
    memory_size: int
    tables: np.ndarray
    places: dict[str, int]
    """Where descriptions of the matrices begin in the tables: those that are eliminated, then rows and columns of entries."""


@dataclass(frozen=True, eq=False)
class _Equations:
    """The Jacobians as expressions of the data of a step, the unknowns x that are solved for, and the last ones."""

    reduced: ReducedStep
    matrices: list[ca.SX]
    chosen: tuple[int, ...]

    @classmethod
    def of(cls, reduced: ReducedStep, chosen: tuple[int, ...]) -> _Equations:
        equations, theta = reduced.equations, reduced.equations.step.theta
        u, F, D = equations.x, equations.residual, equations.increment
        z = ca.vertcat(equations.state, theta[list(chosen)] if chosen else ca.SX(0, 1))
        matrices = [ca.jacobian(F, u), ca.jacobian(F, z), ca.jacobian(D, u), ca.jacobian(D, z)]
        entries = ca.substitute(ca.vertcat(*(entries_of(matrix) for matrix in matrices)), *reduced.eliminated)
        ends = np.cumsum([0, *(matrix.nnz() for matrix in matrices)]).tolist()
        values = ca.vertsplit(entries, ends)
        return cls(reduced, [ca.SX(m.sparsity(), v) for m, v in zip(matrices, values, strict=True)], chosen)

    @property
    def last(self) -> ca.SX:
        """The unknowns that only the end of the step determines."""
        return ca.SX(0, 1) if self.reduced.last is None else self.reduced.last.y


@dataclass(frozen=True, eq=False)
class _Kernels:
    """What does not depend on pivots: factors lie behind the kernels' work, from slot `end` on."""

    equations: _Equations
    layout: LinearisedLayout
    code: Code
    end: int


@kept
@one_at_a_time
def _kernels(reduced: ReducedStep, chosen: tuple[int, ...]) -> _Kernels:
    equations, last = _Equations.of(reduced, chosen), reduced.last
    _, _, theta, state = reduced.data
    n_last_entries = 0 if last is None else last.matrix.nnz()
    sizes = (theta.shape[0], state.shape[0], reduced.x.shape[0], equations.last.shape[0], n_last_entries)
    layout = LinearisedLayout(*sizes, n_entries=tuple(matrix.nnz() for matrix in equations.matrices))
    slots = (layout.time, layout.h, layout.theta, layout.state, layout.x)
    symbols = list(zip((*reduced.data, reduced.x), slots, strict=True))
    kernels = []
    if last is not None:
        outputs = [(entries_of(last.matrix), layout.last_entries), (last.rhs, layout.last_rhs)]
        kernels.append(Kernel("last", symbols, outputs))
    outputs = [(entries_of(matrix), getattr(layout, name)) for name, matrix in zip(MATRICES, equations.matrices, strict=True)]
    kernels.append(Kernel("linearise", [*symbols, (equations.last, layout.last)], outputs))
    code, used = compile_kernels(kernels, layout.work)
    return _Kernels(equations, layout, code, layout.work + used)


@kept
def _current(reduced: ReducedStep, chosen: tuple[int, ...]) -> list[Linearised]:
    """The derivative with the pivots that are used now, if some have been chosen."""
    return []


@one_at_a_time
def linearised(reduced: ReducedStep, chosen: tuple[int, ...], sample: Sample, anew: bool = False) -> Linearised:
    """The derivative of steps with respect to the state and some of the parameters.

    Its pivots are chosen around the first sample that is given, and serve all runs until they are chosen `anew`.
    """
    current = _current(reduced, chosen)
    if anew or not current:
        kernels = _kernels(reduced, chosen)
        tables, places, size = _tables(kernels, sample)
        current[:] = [
            Linearised(kernels.equations.matrices[0].shape[0], chosen, kernels.layout, kernels.code, size, tables, places)
        ]
    return current[0]


@dataclass(frozen=True, eq=False)
class Sample:
    """A step by which pivots are chosen."""

    x: np.ndarray
    t: float
    h: float
    theta: np.ndarray
    state: np.ndarray

    def entries(self, equations: _Equations) -> np.ndarray:
        """The entries of F_u, a column for each of a few steps around the sample."""
        reduced, random = equations.reduced, np.random.default_rng(1788)
        evaluate = reduced.numbers([entries_of(equations.matrices[0])])
        columns = []
        for spread in SPREADS:
            near = [v + spread * np.abs(v) * random.standard_normal(np.shape(v)) for v in (self.x, self.state)]
            columns.append(evaluate(near[0], self.t, self.h, self.theta, near[1])[0].ravel())
        return np.array([column for column in columns if np.all(np.isfinite(column))]).T

    def order(self, equations: _Equations) -> PivotOrder:
        """The order of pivots for F_u."""
        F_u, entries = equations.matrices[0], self.entries(equations)
        try:
            if entries.ndim < 2:
                raise SingularMatrix
            return choose_pivots(*_indices(F_u), entries, F_u.shape[0])
        except SingularMatrix:
            raise StepFailed(f"the step from t = {self.t:.6g} has no derivative: its equations are singular there") from None


def _tables(kernels: _Kernels, sample: Sample) -> tuple[np.ndarray, dict[str, int], int]:
    """Tables for the eliminations, rows and columns of all entries, where each begins, and the end of the factors."""
    equations, layout, tables = kernels.equations, kernels.layout, list[np.ndarray]()
    F_u, last = equations.matrices[0], equations.reduced.last
    places, filled = {"last": -1}, kernels.end
    eliminated = [("matrix", F_u, sample.order(equations), layout.F_u, 0)]
    if last is not None:
        eliminated.append(("last", last.matrix, diagonal_order(last.matrix), layout.last_entries, layout.last_rhs))
    for name, matrix, pivots, entries, rhs in eliminated:
        pattern = filled_pattern(*_indices(matrix), pivots)
        places[name] = describe(tables, pattern, filled=filled, entries=entries, rhs=rhs)
        filled += len(pattern["column"])
    for name, matrix in zip(MATRICES, equations.matrices, strict=True):
        places[name] = sum(len(table) for table in tables)
        tables += _indices(matrix)
    return np.concatenate(tables).astype(np.int64), places, filled


def _indices(matrix: ca.SX) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries of a matrix."""
    rows, columns = matrix.sparsity().get_triplet()
    return np.array(rows, dtype=int), np.array(columns, dtype=int)
