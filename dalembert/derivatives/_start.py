"""The derivative of a consistent start with respect to what it is made from.

`da.consistent` turns a guess (q0 with v0 or p0) into the state with

    w: momentum of (q0, v0),   q - q0 + H_pp(q0, w) g_q^T mu = 0,   g(q) = 0,
    pi: momentum of (q, v0),   p - pi + R nu = 0,                   (g_dot, k)(q, p) = 0,

R being the directions in which multipliers act; where the guess is consistent, mu = nu = 0. Its derivative follows from these
equations by the implicit function theorem. So a direction that leaves the constraints is projected, and a parameter of the
constraints moves the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.errors import InputError
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import MechanicalSystem, State, System

CONTRADICTION = 1e-8
"""The relative residual from which on redundant constraints are taken to contradict a change."""


@dataclass(frozen=True, eq=False)
class Start:
    """A consistent state, and the initial values that it was made from."""

    system: System
    state: State
    first: np.ndarray
    second: np.ndarray
    velocity: bool = False
    """Whether `second` is v0, not a block of the state."""

    def derivative(self, chosen: np.ndarray) -> np.ndarray:
        """d state / d (first, second, theta), of which only the columns `chosen` are wanted."""
        n = self.system.n_state
        if not len(chosen):
            return np.zeros((n, 0))
        if not self.system.n_multipliers and not self.velocity:
            return np.eye(n, n + len(self.state.theta))[:, chosen]
        return self._projected(chosen)

    def pull_twice(self, pair: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """From a covector of the state and its change, two rows, those of (first, second, theta), which move in `direction`."""
        if not self.system.n_multipliers and not self.velocity:
            return np.hstack([pair, np.zeros((2, len(self.state.theta)))])
        unknowns, data, A, B, curvature = self._equations()
        change, places = self._solved(A, (B @ direction)[:, None])[:, 0], self._places()
        (c, dc), transposed = np.zeros((2, len(unknowns))), np.array(A.T)
        c[places], dc[places] = pair
        w = self._solved(transposed, -c[:, None])[:, 0]
        curved = np.asarray(curvature(self.state.t, unknowns, data, w, change, direction), dtype=float).ravel()
        of_unknowns, of_data = np.split(curved, [len(unknowns)])
        dw = self._solved(transposed, -(dc + of_unknowns)[:, None])[:, 0]
        return np.array([-w @ B, of_data - dw @ B])

    def _projected(self, chosen: np.ndarray) -> np.ndarray:
        _, _, A, B, _ = self._equations()
        return self._solved(A, B[:, chosen])[self._places()]

    def _places(self) -> np.ndarray:
        """Where the state is among the unknowns (w, y, mu, pi, z, nu)."""
        n, m = len(self.state.first), len(self.state.second)
        return np.concatenate([m + np.arange(n), 2 * m + n + self.system.n_holonomic + np.arange(m)])

    def _equations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, ca.Function]:
        """The unknowns, (first, second, theta), the derivatives of the equations by both, and their second derivatives."""
        system, state = self.system, self.state
        y, z, theta, t = state.first, state.second, state.theta, state.t
        directions, derivatives, curvature = _start_equations(system, self.velocity)
        w, pi = (self._momentum(at) for at in (self.first, y))
        data = np.concatenate([self.first, self.second, theta])
        none = np.zeros(system.n_holonomic), np.zeros(system.n_nonholonomic)
        normal, along = (np.asarray(m, dtype=float) for m in directions(t, y, z, w, self.first, theta, *none))
        mu = np.linalg.lstsq(normal, self.first - y, rcond=None)[0] if normal.size else np.zeros(system.n_holonomic)
        nu = np.linalg.lstsq(along, pi - z, rcond=None)[0] if along.size else np.zeros(system.n_multipliers)
        unknowns = np.concatenate([w, y, mu, pi, z, nu])
        _, A, B = (np.asarray(m, dtype=float) for m in derivatives(t, unknowns, data))
        return unknowns, data, A, B, curvature

    def _momentum(self, y: np.ndarray) -> np.ndarray:
        """The momentum of the guess at y."""
        if not self.velocity:
            return self.second
        system = self.system
        if "L_v" in system.function_names:
            return system.evaluate("L_v", self.state.t, y, self.second, theta=self.state.theta)
        p = self.state.second
        for _ in range(50):  # from a state that is close, Newton's iteration is not to be watched
            H_pp = system.evaluate("H_pp", self.state.t, y, p, theta=self.state.theta)
            change = np.linalg.solve(H_pp, system.evaluate("H_p", self.state.t, y, p, theta=self.state.theta) - self.second)
            p = p - change
            if np.max(np.abs(change)) <= 1e-15 * np.max(np.abs(p)):
                break
        return p

    def _solved(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """-A^-1 B; where constraints are redundant, only if they do not contradict the change."""
        rows = np.max(np.abs(A), axis=1)
        rows[rows == 0] = 1.0
        A, B = A / rows[:, None], B / rows[:, None]
        columns = np.max(np.abs(A), axis=0)
        columns[columns == 0] = 1.0
        A = A / columns
        t, y, z, theta = self.state.t, self.state.first, self.state.second, self.state.theta
        if not self.system.redundant_rows(t, y, z, theta):
            x = np.linalg.solve(A, -B)
            return (x + np.linalg.solve(A, -B - A @ x)) / columns[:, None]
        x = np.linalg.lstsq(A, -B, rcond=1e-10)[0]
        rest, size = np.abs(A @ x + B).max(axis=0), np.abs(A) @ np.abs(x) + np.abs(B)
        if np.any(rest > CONTRADICTION * np.maximum(size.max(axis=0), 1e-300)):
            raise InputError(
                "the redundant constraints contradict each other when one of the parameters in wrt changes: differentiate with "
                "respect to parameters that keep the mechanism assembled, such as masses, or state one length by another"
            )
        return x / columns[:, None]


@kept
@one_at_a_time
def _start_equations(system: System, velocity: bool) -> tuple[ca.Function, ca.Function, ca.Function]:
    """The directions of both projections; the equations above with their derivatives; and second ones of -w . equations."""
    (_, n), (_, m) = system.state_blocks
    mechanical = isinstance(system, MechanicalSystem)
    t, theta = ca.SX.sym("t"), ca.SX.sym("theta", system.parameters.size)
    first, second = ca.SX.sym("first", n), ca.SX.sym("second", m)
    w, y, pi, z = (ca.SX.sym(name, size) for name, size in (("w", m), ("y", n), ("pi", m), ("z", m)))
    lam, psi = ca.SX.sym("lam", system.n_holonomic), ca.SX.sym("psi", system.n_nonholonomic)
    nu = ca.SX.sym("nu", system.n_multipliers)
    G = system.function("G")(t, y, theta)
    normal = system.function("H_pp")(t, first, w, theta) @ G.T if mechanical else G.T
    none = ca.SX.zeros(system.n_holonomic, 1), ca.SX.zeros(system.n_nonholonomic, 1)
    if mechanical:
        along = system.function("directions")(t, y, z, *none, theta)
    else:
        along = system.function("hidden_z")(t, y, z, theta).T

    def momentum(at: ca.SX, p: ca.SX) -> ca.SX:
        return system.function("H_p")(t, at, p, theta) - second if velocity else p - second

    equations = ca.vertcat(
        momentum(first, w),
        y - first + normal @ lam,
        system.function("g")(t, y, theta),
        momentum(y, pi),
        z - pi + along @ nu,
        system.function("hidden")(t, y, z, theta),
    )
    unknowns, data = ca.vertcat(w, y, lam, pi, z, nu), ca.vertcat(first, second, theta)
    derivatives = [equations, ca.jacobian(equations, unknowns), ca.jacobian(equations, data)]
    directions = ca.Function("directions", [t, y, z, w, first, theta, lam, psi], [normal, along])
    both, w = ca.vertcat(unknowns, data), ca.SX.sym("w", equations.shape[0])
    changes = [ca.SX.sym("change", x.shape[0]) for x in (unknowns, data)]
    curved = ca.jtimes(ca.gradient(-ca.dot(w, equations), both), both, ca.vertcat(*changes))
    curvature = ca.Function("curvature", [t, unknowns, data, w, *changes], [ca.densify(curved)])
    return directions, ca.Function("start", [t, unknowns, data], derivatives), curvature
