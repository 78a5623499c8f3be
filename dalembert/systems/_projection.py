"""Projecting states onto the constraints, in mechanics orthogonally in the metric of the mass matrix."""

from __future__ import annotations

import numpy as np

from dalembert.errors import InconsistentStart
from dalembert.systems._dependency import refuse_contradiction
from dalembert.systems._matrices import (
    Matrix,
    block_matrix,
    definite_pivots,
    entries,
    identity,
    is_finite,
    is_sparse,
    row_sums,
    scaled,
    scaled_rows,
    solve,
    well_conditioned,
)
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._rank import RANK, dependencies, least_solution
from dalembert.systems._system import System

NOT_INDEPENDENT = (
    "the constraints are not independent near the guess (g_q loses rank), so it cannot be projected: start elsewhere"
)


INDEPENDENT = 1e-6
"""The least eigenvalue of G M^-1 G^T, scaled, for which rows count as independent while a guess is projected."""


class _Projection:
    """q minimises (q - guess)^T M (q - guess) subject to g(t, q) = 0, with M = H_pp^-1 at the guess (else M = I)."""

    def __init__(self, system: System, t: float, guess: np.ndarray, p: np.ndarray, theta: np.ndarray) -> None:
        self.system, self.t, self.guess, self.theta = system, t, guess, theta
        mechanical = isinstance(system, MechanicalSystem)
        G = system.matrix("G", t, guess, theta=theta)
        self.inverse_mass = system.matrix("H_pp", t, guess, p, theta=theta) if mechanical else identity(len(guess), G)
        if not well_conditioned(self.inverse_mass):
            raise InconsistentStart(
                "H_pp is singular at the guess, so there is no mass matrix to project with: give consistent initial values"
            )

    def size(self, x: np.ndarray) -> float:
        return float(np.sqrt(max(x @ solve(self.inverse_mass, x), 0.0)))

    def normal(self, q: np.ndarray) -> tuple[Matrix, Matrix]:
        """G and M^-1 G^T."""
        G = self.system.matrix("G", self.t, q, theta=self.theta)
        if not is_finite(G) or not np.any(entries(G)):
            raise InconsistentStart(NOT_INDEPENDENT)
        return G, self.inverse_mass @ G.T

    def solve(self, K: Matrix, rhs: np.ndarray, size: float) -> np.ndarray:
        """K^-1 rhs for K = G M^-1 G^T; where rows depend on each other, or nearly, of least norm after scaling.

        Off the constraints redundant rows are independent, if only by as much as they are off. What they demand apart from
        each other is damped as in Levenberg's method, by rhs itself, the residual, relative to the `size` of a configuration.
        """
        scale = np.sqrt(K.diagonal())
        scale[scale == 0] = 1.0
        unitless = scaled(K, 1 / scale, 1 / scale)
        damping = min(1.0, float(np.linalg.norm(rhs / scale)) / max(size, 1e-300))
        if is_sparse(K):
            pivots = definite_pivots(unitless)
            independent = pivots is not None and np.min(pivots) > INDEPENDENT
            added = 0.0 if independent else max(damping, 1e-14)
            return solve(unitless + added * identity(len(rhs), K), rhs / scale) / scale
        if definite_pivots(unitless - INDEPENDENT * identity(len(rhs), K)) is not None:  # all eigenvalues are larger
            return np.linalg.solve(K, rhs)
        # Not by eigh: from 30 rows on OpenBLAS shares it among threads, which wait a hundred times as long as they compute.
        left, values, right = np.linalg.svd(unitless)
        along, damped = left.T @ (rhs / scale), values + damping
        kept = values > 1e-14  # the others are rounding errors
        return right[kept].T @ (along[kept] / damped[kept]) / scale

    def onto(self, q: np.ndarray) -> np.ndarray | None:
        """Reach g = 0 from q by damped Gauss-Newton steps to round-off; None if that fails.

        What round-off of the guess leaves of positions that are zero has no size of its own, to which it could be known.
        """
        g, previous = self.system.evaluate("g", self.t, q, theta=self.theta), np.inf
        least = 1e-16 * self.size(self.guess)
        for _ in range(100):
            self.reached = q
            G, normal = self.normal(q)
            step = normal @ self.solve(G @ normal, g, self.size(q))
            size, whole = self.size(step), max(self.size(q), least)
            if size <= 1e-16 * whole or (size < 1e-9 * whole and size >= previous / 2):
                return q
            previous, damping = size, 1.0
            while damping > 1e-4:
                trial = q - damping * step
                g_trial = self.system.evaluate("g", self.t, trial, theta=self.theta)
                if np.linalg.norm(g_trial) < (1 - damping / 4) * np.linalg.norm(g) or size < 1e-9 * whole:
                    break
                damping /= 2
            else:
                return None
            q, g = trial, g_trial
        return None

    def nearest(self) -> np.ndarray | None:
        """Descend along the constraints to the foot of the perpendicular; None if that fails."""
        q, previous = self.onto(self.guess), np.inf
        for _ in range(200):
            if q is None:
                return None
            G, normal = self.normal(q)
            mu = self.solve(G @ normal, G @ (self.guess - q), np.inf)
            tangent = self.guess - q - normal @ mu
            error = self.size(tangent) / max(self.size(q), self.size(self.guess), 1e-300)
            if error <= 1e-15 or (error < 1e-9 and error >= previous / 2):
                return q
            previous = error
            q = self._closer(q, G, normal, mu, tangent, error)
        return None

    def _closer(
        self, q: np.ndarray, G: Matrix, normal: Matrix, mu: np.ndarray, tangent: np.ndarray, error: float
    ) -> np.ndarray | None:
        # Newton for q - guess + M^-1 G^T mu = 0, g = 0; where it leads away, a step along the tangent of the constraints.
        curvature = self.system.matrix("g_yy", self.t, q, mu, theta=self.theta)
        m = len(mu)
        matrix = block_matrix([[identity(len(q), G) + self.inverse_mass @ curvature, normal], [G, 0 * identity(m, G)]])
        steps, rhs = [tangent * 0.5**k for k in range(12)], np.concatenate([tangent, np.zeros(m)])
        if well_conditioned(matrix):
            steps.insert(0, solve(matrix, rhs)[: len(q)])
        elif is_sparse(matrix) and is_finite(matrix):  # with rows that repeat each other: they may give way by nearly nothing
            damped = block_matrix([[0 * identity(len(q), G), None], [None, RANK * identity(m, G)]])
            steps.insert(0, solve(matrix - damped, rhs)[: len(q)])
        elif not is_sparse(matrix) and dependencies(G)[0].shape[1]:
            steps.insert(0, np.linalg.lstsq(matrix, rhs, rcond=RANK)[0][: len(q)])
        for step in steps:
            trial = self.onto(q + step)
            if trial is not None and (error < 1e-6 or self.size(trial - self.guess) < self.size(q - self.guess)):
                return trial
        return None


def project_position(system: System, t: float, guess: np.ndarray, p: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The configuration next to `guess` that satisfies the holonomic constraints."""
    projection = _Projection(system, t, guess, p, theta)
    q = projection.nearest()
    if isinstance(system, MechanicalSystem):
        slopes = row_sums(system.matrix("G", t, projection.reached, theta=theta))
        refuse_contradiction(system, t, projection.reached, theta, 1e-10 * slopes * np.max(np.abs(projection.reached)))
    if q is None:
        raise InconsistentStart("no configuration near q0 satisfies the holonomic constraints: give a better guess")
    return q


def project_momentum(system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Move z onto the hidden constraint g_t + g_y v = 0 and onto k = 0.

    In mechanics by p - g_q^T mu - k_v^T nu, the M-orthogonal projection of the velocity; else by the least change.
    """
    mechanical, previous, largest = isinstance(system, MechanicalSystem), np.inf, np.max(np.abs(z))
    none = np.zeros(system.n_holonomic), np.zeros(system.n_nonholonomic)
    for _ in range(50):
        slope = system.matrix("hidden_z", t, y, z, theta=theta)
        along = system.matrix("directions", t, y, z, *none, theta=theta) if mechanical else slope.T
        K = slope @ along
        (N, factors), hidden = dependencies(slope), system.evaluate("hidden", t, y, z, theta=theta)
        if 0 < N.shape[1] < K.shape[0]:
            correction = along @ least_solution(K, hidden, scaled_rows(N, factors))
        elif well_conditioned(K):
            correction = along @ solve(K, hidden)
        else:
            raise InconsistentStart(NOT_INDEPENDENT)
        z = z - correction
        size, largest = np.max(np.abs(correction)), max(largest, np.max(np.abs(z)))
        if size <= max(4e-16 * np.max(np.abs(z)), np.finfo(float).tiny) or (size <= 1e-9 * largest and size >= previous / 2):
            return z
        previous = size
    raise InconsistentStart(
        "no momentum near the given one satisfies the hidden constraint g_t + g_q v = 0 and k = 0: give a better guess"
    )
