"""The tangent of one step of a collision integrator, piece by piece: partial steps, resets, and the collision times."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.contact import CollisionIntegrator
from dalembert.contact._collision import impulse_fraction
from dalembert.contact._flow import Equations, Flow, Point, onto_the_wall
from dalembert.errors import InputError, StepFailed
from dalembert.symbolic._kept import kept
from dalembert.systems import MechanicalSystem
from dalembert.systems._newton import newton

GRAZING = 1e-6
"""The share of its speed with which a point meets a wall at least, for the time of the impact to have a derivative."""


SHORTEST = 1e-12
"""The share of a step from which on its rest after an impact is a step."""


@dataclass
class Moving:
    """A point (t, q, p, discrete energy) of the motion, and its derivative in some directions."""

    values: np.ndarray
    tangent: np.ndarray

    @classmethod
    def of(cls, t: float, packed: np.ndarray, S: np.ndarray) -> Moving:
        """A state and the derivatives of it."""
        none = np.zeros((1, S.shape[1]))
        return cls(np.concatenate([[t], packed, [0.0]]), np.vstack([none, S, none]))


@dataclass(frozen=True, eq=False)
class _Map:
    """One piece of a step as functions of numbers."""

    guess: ca.Function
    equations: ca.Function
    derivatives: ca.Function


class Pieces:
    """The maps of a collision integrator as functions of (t, q, p, energy) and parameters, with their derivatives."""

    def __init__(self, system: MechanicalSystem, method: CollisionIntegrator, h: float, theta: np.ndarray) -> None:
        self.system, self.h, self.theta = system, h, theta
        self.at = Point.of(system)
        self.maps = method.maps(system, self.at)
        self.coupled = self.maps.after_impact is not None
        self.end = ca.SX.sym("end")

    def step(self, point: Moving, times: np.ndarray, which: np.ndarray, end: float, seeds: np.ndarray) -> Moving:
        """A step with impacts at these times to the time `end`; `seeds` are the derivatives of the parameters."""
        if self.coupled and np.any(np.diff(times) == 0):
            raise InputError("the tangent of da.VCI is known for one impact at a time")
        hit: int | None = None
        for t, wall in zip(times.tolist(), which.tolist(), strict=True):
            if t > point.values[0]:
                point = self._apply(self._to_wall(self._after(hit)), point, hit, wall, t - point.values[0], end, seeds)
            self._check_grazing(point, wall)
            if not self.coupled:
                point = self._apply(self._reset(), point, wall, None, self.h, end, seeds)
            hit = wall
        if end - point.values[0] > SHORTEST * self.h:
            return self._apply(self._to_time(self._after(hit)), point, hit, None, end - point.values[0], end, seeds)
        return self._stopped(point)

    def _stopped(self, point: Moving) -> Moving:
        """A point whose time moves, at the end of its step, which does not: it moves along the motion instead."""
        system, n, theta = self.system.smooth, self.system.dim, self.theta
        t, q, p = point.values[0], point.values[1 : n + 1], point.values[n + 1 : 2 * n + 1]
        multipliers = np.split(system.multipliers(t, q, p, theta), [system.n_holonomic])
        rate = [system.evaluate("v", t, q, p, theta=theta), system.evaluate("z_dot", t, q, p, *multipliers, theta=theta)]
        along = np.concatenate([[1.0], *rate, [0.0]])
        return Moving(point.values, point.tangent - np.outer(along, point.tangent[0]))

    def _after(self, hit: int | None) -> bool:
        return self.coupled and hit is not None

    def _check_grazing(self, point: Moving, wall: int) -> None:
        """Refuse an impact that only touches its wall: a small change decides whether it happens."""
        n = self.system.dim
        t, q, p = point.values[0], point.values[1 : n + 1], point.values[n + 1 : 2 * n + 1]
        rate = self.system.evaluate("phi_dot", t, q, p, theta=self.theta)[wall]
        slopes = self.system.evaluate("phi_q", t, q, theta=self.theta)[wall]
        speed = np.linalg.norm(slopes) * np.linalg.norm(self.system.evaluate("v", t, q, p, theta=self.theta))
        if abs(rate) <= GRAZING * speed:
            raise InputError(
                f"the impact on unilateral[{wall}] at t = {t:.6g} is grazing: the motion has no derivative there; choose other "
                "initial values or parameters, or end the run before it"
            )

    def _flow(self, after_impact: bool) -> Flow:
        flow = self.maps.after_impact if after_impact else self.maps.partial
        assert flow is not None
        return flow

    def _result(self, flow: Flow) -> ca.SX:
        at, energy = self.at, ca.SX(0) if self.maps.energy is None else self.maps.energy
        return ca.vertcat(at.t + at.dt, ca.vertcat(at.q, at.p) + flow.increment, energy)

    @kept
    def _to_wall(self, after_impact: bool) -> _Map:
        """A partial step that ends on a wall."""
        at, flow, s = self.at, self._flow(after_impact), ca.SX.sym("guess")
        equations = onto_the_wall(self.system, flow, at, s)
        return self._map(equations, ca.substitute(self._result(flow), at.dt, equations.x[-1] * at.h), s)

    @kept
    def _to_time(self, after_impact: bool) -> _Map:
        """A partial step that ends at a given time."""
        at, flow = self.at, self._flow(after_impact)
        dt, own = self.end - at.t, flow.equations
        equations = Equations(own.x, own.scales, own.guess, ca.substitute(own.residual, at.dt, dt), own.model)
        return self._map(equations, ca.substitute(self._result(flow), at.dt, dt))

    @kept
    def _reset(self) -> _Map:
        """R^reset."""
        at, reset = self.at, self.maps.reset
        assert reset is not None
        p = at.p + impulse_fraction(self.system, at) * reset.kick
        return self._map(reset.equations, ca.vertcat(at.t, at.q, p, 0))

    def _map(self, equations: Equations, result: ca.SX, s: ca.SX | None = None) -> _Map:
        at, x = self.at, equations.x
        state = ca.vertcat(at.t, at.q, at.p, at.energy)
        inputs = [state, at.theta, at.h, at.hit, at.ahead, at.dt, self.end]
        F_x = ca.densify(ca.jacobian(equations.residual, x))
        parts = [ca.jacobian(part, by) for part in (equations.residual, result) for by in (x, state, at.theta)]
        return _Map(
            ca.Function("guess", [*inputs, ca.SX.sym("s") if s is None else s], [equations.guess]),
            ca.Function("F", [x, *inputs], [equations.residual, F_x]),
            ca.Function("derivatives", [x, *inputs], [result, *parts]),
        )

    def _apply(
        self, piece: _Map, point: Moving, hit: int | None, ahead: int | None, dt: float, end: float, seeds: np.ndarray
    ) -> Moving:
        m = self.system.n_unilateral
        units = [np.eye(m)[k] if k is not None else np.zeros(m) for k in (hit, ahead)]
        numbers = [point.values, self.theta, self.h, *units, dt, end]
        guess = np.asarray(piece.guess(*numbers, dt / self.h), dtype=float).ravel()
        found = newton(lambda y: tuple(np.asarray(v, dtype=float) for v in piece.equations(y, *numbers)), guess)
        if found is None:
            raise StepFailed("a piece of the step could not be solved again")
        value, F_x, F_s, F_t, R_x, R_s, R_t = (np.asarray(v, dtype=float) for v in piece.derivatives(found, *numbers))
        moved = solve_accurately(F_x, F_s @ point.tangent + F_t @ seeds)
        return Moving(value.ravel(), R_s @ point.tangent + R_t @ seeds - R_x @ moved)


def solve_accurately(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Solve A X = B with one refinement in extended precision."""
    if A.size == 0:
        return np.zeros((0, B.shape[1]))
    X = np.linalg.solve(A, B)
    rest = B.astype(np.longdouble) - A.astype(np.longdouble) @ X.astype(np.longdouble)
    return X + np.linalg.solve(A, rest.astype(float))
