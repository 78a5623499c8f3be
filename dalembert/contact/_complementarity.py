"""Which walls press, stick and slide: forces, or impulses, that fulfil the conditions of contact and of Coulomb friction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

LARGEST = 1e10
"""Condition numbers above this are of walls that depend on each other, as three feet of a table on a line."""


def pressing_walls(A: np.ndarray, b: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Those of some touching constraints that act, from the matrix A and the right-hand side b of their multipliers lam = -N.

    Constraints that are `bound` always act; of the others those act for which

        N >= 0,   phi_ddot = b + A N >= 0,   N . phi_ddot = 0,

    the conditions of Gauss's principle of least constraint with inequalities: N minimises N . A N / 2 + b . N over N >= 0. If
    all of them can act together, they do.
    """
    scale = 1 / np.sqrt(np.diag(A))
    if np.linalg.cond(scale[:, None] * A * scale) < LARGEST and np.all(np.linalg.solve(A, b)[~bound] <= 0):
        return np.full(len(b), True)
    from scipy.optimize import nnls

    S, c = A[np.ix_(~bound, ~bound)], b[~bound]
    if np.any(bound):  # eliminate what acts anyway
        across = A[np.ix_(~bound, bound)]
        eliminated = np.linalg.solve(A[np.ix_(bound, bound)], np.column_stack([across.T, b[bound]]))
        S, c = S - across @ eliminated[:, :-1], c - across @ eliminated[:, -1]
    unit = 1 / np.sqrt(np.diag(S))
    values, vectors = np.linalg.eigh(unit[:, None] * S * unit)
    R = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # S = R^T R, in units of the walls
    target = -np.linalg.lstsq(R.T, unit * c, rcond=None)[0]
    forces, acts = nnls(R, target)[0], bound.copy()
    while np.any(forces > 0):  # independent ones are enough (Caratheodory)
        pressing = np.flatnonzero(forces)
        _, values, rows = np.linalg.svd(R[:, pressing])
        if len(values) == len(pressing) and values[-1] > values[0] / np.sqrt(LARGEST):
            break
        change = rows[-1] if np.any(rows[-1] < 0) else -rows[-1]  # of forces, without one of the motion
        falls = change < 0
        forces[pressing] += np.min(forces[pressing][falls] / -change[falls]) * change
        forces[pressing[falls][np.argmin(forces[pressing][falls])]] = 0.0
    acts[~bound] = forces > 0
    return acts


OPEN = 2
"""The mode of a wall that does not press; 1 and -1 are those of one that slides this way or that, 0 that of one that sticks."""
NEARLY = 1e-9
"""Conditions hold as far as round-off, this part of what they consist of, lets them."""
DIFFERENT = 1e-6
"""Rates that differ by more than this part of what they consist of are different motions."""


@dataclass(frozen=True, eq=False)
class PlanarFriction:
    """Forces f = (.., N, .., T) of some contacts and of other constraints, and what they do: rates b + A f.

    Rates are accelerations, or velocities after an impact if f are impulses. `normal` and `tangent` are the rows of the
    contacts, all others stay zero. A wall is

        open:      N = T = 0,       normal rate >= floor,
        sticking:  |T| <= mu N,     normal rate = floor,   tangential rate = 0,
        sliding:   T = -sign mu N,  normal rate = floor,   sign times the tangential rate >= 0 if the sign is not known.

    C. Glocker, Set-Valued Force Laws (2001), chapter 5. All combinations of modes are tried, those without open walls first.
    """

    A: np.ndarray
    b: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray
    mu: np.ndarray
    floor: np.ndarray

    def solve(self, choices: list[tuple[int, ...]], signs: np.ndarray) -> tuple[tuple[int, ...], np.ndarray] | None:
        """The modes and forces that fulfil all conditions; `signs` are those of walls that are known to slide, else 0."""
        return next(self._solutions(choices, signs), None)

    def has_one_motion(self, signs: np.ndarray) -> bool:
        """Whether walls that slide as `signs` say, and those that rest (0) and may begin to slide, have rates, and only these.

        If all slide, normal rates are b + M N with M = W_N H_pp (W_N - W_T sign mu)^T, between other constraints. They have
        one solution for every b if, and only if, M is a P-matrix: all of its principal minors are positive (R. W. Cottle,
        J.-S. Pang and R. E. Stone, The Linear Complementarity Problem (1992), theorem 3.3.7). With one contact that is M > 0,
        without which there are no or several for every b: Painleve's paradox. Several contacts may have one motion with
        another M: the solutions for their b are counted.
        """
        if not np.any(signs) or self._is_unique(signs):
            return True
        resting: list[tuple[int, ...]] = [(0, 1, -1, OPEN) if mu else (1, OPEN) for mu in self.mu]
        choices = [(int(sign), OPEN) if sign else rests for sign, rests in zip(signs, resting, strict=True)]
        first: np.ndarray | None = None
        for _, f in self._solutions(choices, signs):
            rates, sizes = self.b + self.A @ f, np.abs(self.b) + np.abs(self.A) @ np.abs(f)
            if first is not None and np.any(np.abs(rates - first) > DIFFERENT * np.max(sizes)):
                return False
            first = rates
        return first is not None

    def _is_unique(self, signs: np.ndarray) -> bool:
        """Whether M of the walls that slide is a P-matrix, as far as round-off tells."""
        walls, contacts = np.flatnonzero(signs), np.concatenate([self.normal, self.tangent])
        bound, m = np.setdiff1d(np.arange(len(self.b)), contacts), len(signs)
        across = self.A[np.ix_(bound, contacts)]
        S = self.A[np.ix_(contacts, contacts)] - across.T @ np.linalg.solve(self.A[np.ix_(bound, bound)], across)
        unit = 1 / np.sqrt(np.diag(S)[:m])
        M = unit[:, None] * (S[:m, :m] - S[:m, m:] * (signs * self.mu)) * unit
        chosen = [np.ix_(some, some) for k in range(1, len(walls) + 1) for some in itertools.combinations(walls, k)]
        return bool(np.all(np.diag(M)[walls] > 0)) and all(np.linalg.det(M[some]) >= -NEARLY for some in chosen)

    def _solutions(self, choices: list[tuple[int, ...]], signs: np.ndarray) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        for modes in sorted(itertools.product(*choices), key=lambda modes: modes.count(OPEN)):
            f = self._forces(np.array(modes))
            if f is not None and self._holds(np.array(modes), f, signs):
                yield modes, f

    def _forces(self, modes: np.ndarray) -> np.ndarray | None:
        bound = np.setdiff1d(np.arange(len(self.b)), np.concatenate([self.normal, self.tangent]))
        closed, stuck, slides = modes != OPEN, modes == 0, np.abs(modes) == 1
        rows = np.concatenate([bound, self.normal[closed], self.tangent[stuck]])
        wanted = np.zeros(len(self.b))
        wanted[self.normal] = self.floor
        force = np.eye(len(self.b))
        force[self.tangent[slides], self.normal[slides]] = -(modes * self.mu)[slides]
        S = (self.A @ force)[np.ix_(rows, rows)]
        unit = 1 / np.sqrt(np.diag(self.A)[rows])
        if len(rows) and np.linalg.cond(unit[:, None] * S * unit) > LARGEST:  # as where a point sticks to both walls of a wedge
            return None
        return force[:, rows] @ np.linalg.solve(S, (wanted - self.b)[rows])

    def _holds(self, modes: np.ndarray, f: np.ndarray, signs: np.ndarray) -> bool:
        rates, sizes = self.b + self.A @ f, np.abs(self.b) + np.abs(self.A) @ np.abs(f)
        forces = NEARLY * sizes / np.diag(self.A)
        N, T, slack = f[self.normal], f[self.tangent], forces[self.normal]
        closed, stuck, begins = modes != OPEN, modes == 0, (np.abs(modes) == 1) & (signs == 0) & (self.mu > 0)
        pushes = np.all(N[closed] >= -slack[closed])
        in_cone = np.all((np.abs(T) <= self.mu * (N + slack) + forces[self.tangent])[stuck])
        slides = np.all((modes * rates[self.tangent] >= -NEARLY * sizes[self.tangent])[begins])
        opens = np.all((rates[self.normal] >= self.floor - NEARLY * sizes[self.normal])[~closed])
        return bool(pushes and in_cone and slides and opens and np.all(np.isfinite(f)))
