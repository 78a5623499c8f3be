"""The tangent of one step of a collision integrator, piece by piece: partial steps, resets, and the collision times."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.contact import CollisionIntegrator
from dalembert.contact._collision import impulse_fraction
from dalembert.contact._flow import Equations, Flow, Point, onto_the_wall
from dalembert.derivatives._tangent_map import tangent_map
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, StepFailed
from dalembert.systems import MechanicalSystem, State
from dalembert.systems._consistent import unpack
from dalembert.systems._newton import newton
from dalembert.verify._tangent import solve_accurately


@dataclass
class _Moving:
    """A point (t, q, p, discrete energy) of the motion, and its derivative by the initial (q, p)."""

    values: np.ndarray
    tangent: np.ndarray


def collision_tangent(
    system: MechanicalSystem, method: CollisionIntegrator, state: State, h: float
) -> tuple[State, np.ndarray]:
    """The state after one step, and the derivative of the step map, by the implicit function theorem for each piece."""
    from dalembert.contact._impact_run import ImpactRun  # loads Numba

    run = ImpactRun(RunSpec(system, method, state, h, 1))
    reason = run.advance()
    if reason is not None:
        raise StepFailed(f"the step from t = {state.t:g} failed: {reason}")
    impacts = run.impacts
    if not len(impacts) and method.full_is_partial:
        times = np.zeros(0)
    elif not len(impacts):
        return unpack(system, state.t + h, run.state, state.theta), tangent_map(system.smooth, method.full, state, h)[1]
    else:
        times = impacts.t
    pieces = _Pieces(system, method, h, state.theta)
    if pieces.coupled and (np.any(np.diff(times) == 0) or np.any(impacts.impulse <= 0)):
        raise InputError("the tangent of da.VCI is known for one impact at a time")
    n = system.dim
    point = _Moving(
        np.concatenate([[state.t], state.packed, [0.0]]), np.vstack([np.zeros(2 * n), np.eye(2 * n), np.zeros(2 * n)])
    )
    hit: int | None = None
    for t, which in zip(times, impacts.which, strict=True):
        if t > point.values[0]:
            point = pieces.step_to_wall(point, hit, int(which), t - point.values[0])
        if not pieces.coupled:
            point = pieces.reset(point, int(which))
        hit = int(which)
    point = pieces.step_to_time(point, hit, state.t + h)
    return unpack(system, state.t + h, run.state, state.theta), point.tangent[1:-1]


class _Pieces:
    """The maps of a collision integrator as functions of (t, q, p, energy), with their derivatives."""

    def __init__(self, system: MechanicalSystem, method: CollisionIntegrator, h: float, theta: np.ndarray) -> None:
        self.system, self.h, self.theta = system, h, theta
        self.at = Point.of(system)
        self.maps = method.maps(system, self.at)
        self.coupled = self.maps.after_impact is not None

    def _flow(self, hit: int | None) -> Flow:
        flow = self.maps.after_impact if self.coupled and hit is not None else self.maps.partial
        assert flow is not None
        return flow

    def _energy(self) -> ca.SX:
        return ca.SX(0) if self.maps.energy is None else self.maps.energy

    def step_to_wall(self, point: _Moving, hit: int | None, which: int, tau: float) -> _Moving:
        """A partial step that ends on a wall."""
        at, flow, s = self.at, self._flow(hit), ca.SX.sym("guess")
        equations = onto_the_wall(self.system, flow, at, s)
        dt = equations.x[-1] * at.h
        end = ca.vertcat(at.t + at.dt, ca.vertcat(at.q, at.p) + flow.increment, self._energy())
        return self._apply(equations, ca.substitute(end, at.dt, dt), point, hit, which, tau, s)

    def step_to_time(self, point: _Moving, hit: int | None, end: float) -> _Moving:
        """A partial step that ends at a given time."""
        at, flow = self.at, self._flow(hit)
        dt = end - at.t
        result = ca.vertcat(at.t + at.dt, ca.vertcat(at.q, at.p) + flow.increment, self._energy())
        own = flow.equations
        equations = Equations(own.x, own.scales, own.guess, ca.substitute(own.residual, at.dt, dt), own.model)
        return self._apply(equations, ca.substitute(result, at.dt, dt), point, hit, None, end - point.values[0], None)

    def reset(self, point: _Moving, which: int) -> _Moving:
        """R^reset."""
        at, reset = self.at, self.maps.reset
        assert reset is not None
        p = at.p + impulse_fraction(self.system, at) * reset.kick
        return self._apply(reset.equations, ca.vertcat(at.t, at.q, p, 0), point, which, None, self.h, None)

    def _apply(
        self,
        equations: Equations,
        result: ca.SX,
        point: _Moving,
        hit: int | None,
        ahead: int | None,
        dt: float,
        s: ca.SX | None,
    ) -> _Moving:
        at, m = self.at, self.system.n_unilateral
        state = ca.vertcat(at.t, at.q, at.p, at.energy)
        fixed = [at.h, at.theta, at.hit, at.ahead, at.dt]
        units = [np.eye(m)[k] if k is not None else np.zeros(m) for k in (hit, ahead)]
        numbers = [self.h, self.theta, *units, dt]
        x = equations.x
        start = ca.Function("guess", [state, *fixed, ca.SX.sym("s") if s is None else s], [equations.guess])
        F = ca.Function("F", [x, state, *fixed], [equations.residual, ca.densify(ca.jacobian(equations.residual, x))])
        guess = np.asarray(start(point.values, *numbers, dt / self.h), dtype=float).ravel()
        found = newton(lambda y: tuple(np.asarray(v, dtype=float) for v in F(y, point.values, *numbers)), guess)
        if found is None:
            raise StepFailed("a piece of the step could not be solved again")
        derivatives = ca.Function(
            "derivatives",
            [x, state, *fixed],
            [result, *(ca.jacobian(part, by) for part in (equations.residual, result) for by in (x, state))],
        )
        value, F_x, F_s, R_x, R_s = (np.asarray(v, dtype=float) for v in derivatives(found, point.values, *numbers))
        return _Moving(value.ravel(), (R_s - R_x @ solve_accurately(F_x, F_s)) @ point.tangent)
