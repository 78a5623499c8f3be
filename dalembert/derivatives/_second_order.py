"""Second derivatives of recorded steps: a covector of the state and its change along a direction, pulled back together.

Those of small programs are kernels (`compiler._differential`, "pull twice"). For large ones, and where a pivot order fails,
the same formulas are evaluated step by step from the equations as the method states them: with F(u; z) = 0, the increment
D(u; z), l = c . D - w . F and l_u = 0,

    F_u du = -F_z dz,   F_u^T w = D_u^T c,   F_u^T dw = D_u^T dc + l_uu du + l_uz dz,
    c_0 = c + D_z^T c - F_z^T w,   dc_0 = dc + D_z^T dc - F_z^T dw + l_zu du + l_zz dz.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler._denormals import flushed_to_zero
from dalembert.compiler._reduction import ReducedStep
from dalembert.derivatives._kernel_sweeps import pull_twice_by_kernels
from dalembert.derivatives._record import Part, Record
from dalembert.errors import StepFailed
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._matrices import sparse_matrix


@dataclass(frozen=True, eq=False)
class Doubled:
    """What is pulled: a covector and its change, two rows each, and what both give to the parameters, for each part."""

    pair: np.ndarray
    forces: np.ndarray
    """(2, step, variable): what is added to the pair before the k-th recorded step is pulled."""
    tangents: np.ndarray
    """The change of the state before each recorded step."""
    seeds: Callable[[Part], np.ndarray]
    """The change of the parameters."""
    shares: Callable[[Part], np.ndarray]


def pull_twice(record: Record, doubled: Doubled) -> None:
    """Pull through the recorded steps, in place."""
    for part in reversed(record.parts):
        kernels, end = part.substeps.differentials("pull twice"), part.end
        while end > part.begin:
            if kernels is not None:
                end = _by_kernels(record, part, end, doubled)
            if end > part.begin:
                _by_equations(record, part, end - 1, doubled)
                end -= 1


def _by_kernels(record: Record, part: Part, end: int, doubled: Doubled) -> int:
    kernels, seeds, run = part.substeps.differentials("pull twice"), doubled.seeds(part), record.run
    assert kernels is not None
    n_z = doubled.pair.shape[1] + len(seeds)
    given = (doubled.tangents, seeds, doubled.pair, doubled.forces, doubled.shares(part))
    where = (record.rows, part.begin, end, record.first, run.start.t, run.h)
    with flushed_to_zero():
        room = np.zeros((len(kernels), n_z)), np.zeros((2, n_z))
        return int(pull_twice_by_kernels(part.kernel_sweep(kernels), *where, *given, *room))


def _by_equations(record: Record, part: Part, step: int, doubled: Doubled) -> None:
    """One step."""
    place, substeps, run = step - record.first, part.substeps, record.run
    seeds, shares, pair = doubled.seeds(part), doubled.shares(part), doubled.pair
    change, stages = np.concatenate([doubled.tangents[place], seeds]), []
    columns = zip(substeps.programs, substeps.columns, substeps.offsets, substeps.sizes, part.thetas, strict=True)
    for program, first, offset, h, theta in columns:
        state, x = np.split(record.rows[place, first:][: len(pair[0]) + program.layout.n_x], [len(pair[0])])
        stages.append(_Stage.of(program.reduced, substeps.chosen, [run.start.t + (step + offset) * run.h, h, theta, state], x))
        stages[-1].push(change)
        change = np.concatenate([stages[-1].after, seeds])
    pair += doubled.forces[:, place]
    for stage in reversed(stages):
        found = stage.pull(pair)
        pair[:], shares[:] = found[:, : len(pair[0])], shares + found[:, len(pair[0]) :]


class _Stage:
    """The equations of one substep at its solution."""

    def __init__(self, numbers: list[Any], curvature: ca.Function, point: list[np.ndarray], chosen: int) -> None:
        from scipy.sparse.linalg import splu

        self.F_u, self.F_z, self.D_u, self.D_z = numbers
        self.curvature, self.point, self.chosen = curvature, point, chosen
        self.n = self.D_z.shape[0]
        try:
            self.solver = splu(self.F_u.tocsc()) if self.F_u.shape[0] else None
        except RuntimeError:
            raise StepFailed(f"the step from t = {point[1]:.6g} has no derivative: its equations are singular there") from None

    @classmethod
    def of(cls, reduced: ReducedStep, chosen: tuple[int, ...], data: list, x: np.ndarray) -> _Stage:
        unknowns, jacobians, curvature = _functions(reduced, chosen)
        point = [unknowns(x, *data)[0].ravel(), *data]
        return cls([sparse_matrix(value) for value in jacobians(*point)], curvature, point, len(chosen))

    def solve(self, rhs: np.ndarray, kind: str) -> np.ndarray:
        """F_u^-1 rhs ("N") or F_u^-T rhs ("T"), refined once."""
        if self.solver is None:
            return rhs
        A = self.F_u if kind == "N" else self.F_u.T
        x = self.solver.solve(rhs, kind)
        return x + self.solver.solve(rhs - A @ x, kind)

    def push(self, dz: np.ndarray) -> None:
        """The changes of the unknowns, and of the state after the step."""
        self.dz, self.du = dz, self.solve(-(self.F_z @ dz), "N")
        self.after = dz[: self.n] + self.D_u @ self.du + self.D_z @ dz

    def pull(self, pair: np.ndarray) -> np.ndarray:
        """A covector and its change, of the state and the parameters."""
        c, dc = pair
        w = self.solve(self.D_u.T @ c, "T")
        curved = np.asarray(self.curvature(*self.point, c, w, self.du, self.dz), dtype=float).ravel()
        of_u, of_z = np.split(curved, [len(w)])
        dw = self.solve(self.D_u.T @ dc + of_u, "T")
        parts = (self.D_z.T @ c - self.F_z.T @ w, self.D_z.T @ dc - self.F_z.T @ dw + of_z)
        return np.array([part + np.concatenate([own, np.zeros(self.chosen)]) for part, own in zip(parts, pair, strict=True)])


@kept
@one_at_a_time
def _functions(reduced: ReducedStep, chosen: tuple[int, ...]) -> tuple[Callable, ca.Function, ca.Function]:
    """All unknowns u as a function of those that are solved for; the Jacobians; and second derivatives of l along (du, dz)."""
    equations, theta = reduced.equations, reduced.equations.step.theta
    u, F, D = equations.x, equations.residual, equations.increment
    z = ca.vertcat(equations.state, theta[list(chosen)] if chosen else ca.SX(0, 1))
    point, uz = [u, *reduced.data], ca.vertcat(u, z)
    c, w, du, dz = (ca.SX.sym(name, x.shape[0]) for name, x in (("c", D), ("w", F), ("du", u), ("dz", z)))
    curved = ca.jtimes(ca.gradient(ca.dot(c, D) - ca.dot(w, F), uz), uz, ca.vertcat(du, dz))
    jacobians = [ca.jacobian(part, by) for part in (F, D) for by in (u, z)]
    return (
        reduced.numbers([ca.substitute(u, *reduced.eliminated)]),
        ca.Function("jacobians", point, jacobians),
        ca.Function("curvature", [*point, c, w, du, dz], [ca.densify(curved)]),
    )
