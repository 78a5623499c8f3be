"""The tangents of the pieces of steps with events: partial steps, resets, impacts with friction, and beginnings of contacts.

Every piece maps a point (t, q, p, discrete energy) to another by equations F(x; point, theta) = 0 and a result R(x; point,
theta), so that the time of an event, an unknown of the partial step that ends there, moves with everything else: that is what
"saltation" stands for.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.contact import CollisionIntegrator
from dalembert.contact._flow import Equations, Event, Flow, Point, onto_the_wall
from dalembert.derivatives._contact_modes import FrictionalImpact
from dalembert.errors import InputError, StepFailed
from dalembert.symbolic import as_column
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import MechanicalSystem
from dalembert.systems._newton import newton

SAME = 1e-8
"""How far, relatively, states and times of events that are made again may be from those of the run."""
GRAZING = 1e-6
"""The share of what its rate consists of with which a guard passes zero at least, for the time of that to have a derivative."""


@dataclass
class Moving:
    """A point (t, q, p, discrete energy) of the motion, and its derivative in some directions."""

    values: np.ndarray
    tangent: np.ndarray

    @property
    def t(self) -> float:
        """The time."""
        return float(self.values[0])

    @property
    def state(self) -> np.ndarray:
        """(q, p)."""
        return self.values[1:-1]


@dataclass(frozen=True, eq=False)
class _Map:
    """One piece of a step as functions of numbers."""

    guess: ca.Function
    equations: ca.Function
    derivatives: ca.Function


class Pieces:
    """The maps of a collision integrator as functions of (t, q, p, energy) and parameters, with their derivatives.

    `seeds` are the derivatives of the parameters.
    """

    @one_at_a_time
    def __init__(
        self, system: MechanicalSystem, method: CollisionIntegrator, h: float, theta: np.ndarray, seeds: np.ndarray
    ) -> None:
        self.system, self.h, self.theta, self.seeds = system, h, theta, seeds
        self.at = Point.of(system)
        self.maps = method.maps(system, self.at)
        self.coupled = self.maps.after_impact is not None
        self.end = ca.SX.sym("end")

    def to_guard(self, point: Moving, guard: int, t: float, hit: int | None, scale: float = np.inf) -> Moving | None:
        """To the zero of a guard near t, from an impact whose reset belongs to this partial step if there is one `hit`.

        `scale` is the rate with which a wall was left that is hit again.
        """
        there = self._apply(self._to_guard(self._after(hit)), point, t - point.t, hit, guard)
        if there is not None:
            self._check_grazing(point, there, guard, scale)
        return there

    def reset(self, point: Moving, wall: int) -> Moving | None:
        """The impact on one wall."""
        return self._apply(self._reset(), point, self.h, wall)

    def settle(self, point: Moving) -> Moving | None:
        """Onto the constraints of a contact that begins: the momentum as `project_momentum` leaves it."""
        return self._apply(self._settle(), point, self.h)

    def to_time(self, point: Moving, end: float, hit: int | None) -> Moving | None:
        """To the end of a step."""
        return self._apply(self._to_time(self._after(hit)), point, end - point.t, hit, end=end)

    def stop(self, point: Moving) -> Moving:
        """A point whose time moves, at the end of its step, which does not: it moves along the motion instead."""
        along = np.concatenate([[1.0], *self._rates(point), [0.0]])
        return Moving(point.values, point.tangent - np.outer(along, point.tangent[0]))

    def impact(self, point: Moving, impact: FrictionalImpact) -> Moving | None:
        """An impact with friction."""
        return self._apply(self._impact(impact), point, self.h)

    def _rates(self, point: Moving) -> list[np.ndarray]:
        system, theta = self.system.smooth, self.theta
        q, p = np.split(point.state, 2)
        multipliers = np.split(system.multipliers(point.t, q, p, theta), [system.n_holonomic])
        rate = system.evaluate("z_dot", point.t, q, p, *multipliers, theta=theta)
        return [system.evaluate("v", point.t, q, p, theta=theta), rate]

    def _after(self, hit: int | None) -> bool:
        return self.coupled and hit is not None

    def _check_grazing(self, before: Moving, point: Moving, guard: int, scale: float) -> None:
        """Refuse an event whose guard only touches zero: a small change decides whether it happens.

        Its rate is compared with what it consists of, with `scale`, and with its mean since the point `before`.
        """
        (first, _), (_, slopes) = (
            (np.asarray(part, dtype=float)[guard] for part in self._guards()(at.t, *np.split(at.state, 2), self.theta))
            for at in (before, point)
        )
        rates = [np.ones(1), *self._rates(point)]
        parts = list(zip(np.split(slopes, [1, 1 + self.system.dim]), rates, strict=True))
        size = sum(np.linalg.norm(slope) * np.linalg.norm(rate) for slope, rate in parts)
        rate, mean = abs(sum(slope @ rate for slope, rate in parts)), abs(first[0]) / (point.t - before.t)
        if rate > GRAZING * max(min(size, scale), mean):
            return
        what = "an impact is grazing" if guard < self.system.n_unilateral else "a contact ends, sticks or slides in grazing"
        raise InputError(
            f"at t = {point.t:.6g} {what}: the motion has no derivative there; choose other initial values or parameters, or "
            "end the run before it"
        )

    @one_at_a_time
    @kept
    def _guards(self) -> ca.Function:
        at = self.at
        guards = self.system.function("guards")(at.t, at.q, at.p, at.theta)
        slopes = ca.jacobian(guards, ca.vertcat(at.t, at.q, at.p))
        return ca.Function("guards", [at.t, at.q, at.p, at.theta], [guards, ca.densify(slopes)])

    def _flow(self, after_impact: bool) -> Flow:
        flow = self.maps.after_impact if after_impact else self.maps.partial
        assert flow is not None
        return flow

    def _result(self, flow: Flow) -> ca.SX:
        at, energy = self.at, ca.SX(0) if self.maps.energy is None else self.maps.energy
        return ca.vertcat(at.t + at.dt, ca.vertcat(at.q, at.p) + flow.increment, energy)

    @one_at_a_time
    @kept
    def _to_guard(self, after_impact: bool) -> _Map:
        at, flow, s = self.at, self._flow(after_impact), ca.SX.sym("guess")
        equations = onto_the_wall(self.system, flow, at, s)
        return self._map(equations, ca.substitute(self._result(flow), at.dt, equations.x[-1] * at.h), s)

    @one_at_a_time
    @kept
    def _to_time(self, after_impact: bool) -> _Map:
        at, flow = self.at, self._flow(after_impact)
        dt = self.end - at.t
        return self._map(flow.equations.with_length(at.dt, dt), ca.substitute(self._result(flow), at.dt, dt))

    @one_at_a_time
    @kept
    def _reset(self) -> _Map:
        """R^reset."""
        at, reset = self.at, self.maps.reset
        assert reset is not None
        return self._map(reset.equations, self._with(at.p + as_column(Event(self.system, at).impulse_fraction) * reset.kick))

    @one_at_a_time
    @kept
    def _settle(self) -> _Map:
        at, system, nu = self.at, self.system, ca.SX.sym("nu", self.system.n_multipliers)
        none = ca.SX.zeros(system.n_holonomic, 1), ca.SX.zeros(system.n_nonholonomic, 1)
        p = at.p - system.function("directions")(at.t, at.q, at.p, *none, at.theta) @ nu
        return self._linear(nu, system.function("hidden")(at.t, at.q, p, at.theta), p)

    @one_at_a_time
    @kept
    def _impact(self, impact: FrictionalImpact) -> _Map:
        P = ca.SX.sym("P", impact.size(self.system))
        return self._linear(P, *impact.equations(self.system, self.at, P))

    def _with(self, p: ca.SX) -> ca.SX:
        """The same point with another momentum."""
        return ca.vertcat(self.at.t, self.at.q, p, 0)

    def _linear(self, x: ca.SX, residual: ca.SX, p: ca.SX) -> _Map:
        """Equations that are solved from zero, and the momentum after them."""
        return self._map(Equations(x, (), ca.SX.zeros(x.shape), residual, residual), self._with(p))

    def _map(self, equations: Equations, result: ca.SX, s: ca.SX | None = None) -> _Map:
        at, x = self.at, equations.x
        state = ca.vertcat(at.t, at.q, at.p, at.energy)
        inputs = [state, at.theta, at.h, at.hit, at.ahead, at.dt, self.end]
        F_x = ca.densify(ca.jacobian(equations.residual, x))
        guess = ca.substitute(equations.guess, at.bending, 1)
        parts = [ca.jacobian(part, by) for part in (equations.residual, result) for by in (x, state, at.theta)]
        return _Map(
            ca.Function("guess", [*inputs, ca.SX.sym("s") if s is None else s], [guess]),
            ca.Function("F", [x, *inputs], [equations.residual, F_x]),
            ca.Function("derivatives", [x, *inputs], [result, *parts]),
        )

    def _apply(
        self, piece: _Map, point: Moving, dt: float, hit: int | None = None, ahead: int | None = None, end: float = 0.0
    ) -> Moving | None:
        """The point behind a piece and its tangent; None if its equations are not solved."""
        sizes = (self.system.n_unilateral, hit), (self.system.n_guards, ahead)
        units = [np.zeros(size) if k is None else np.eye(size)[k] for size, k in sizes]
        numbers = [point.values, self.theta, self.h, *units, dt, end]
        guess = np.asarray(piece.guess(*numbers, dt / self.h), dtype=float).ravel()
        found = self._solved(piece, numbers, guess)
        if found is None:
            return None
        value, F_x, F_s, F_t, R_x, R_s, R_t = (np.asarray(v, dtype=float) for v in piece.derivatives(found, *numbers))
        moved = solve_accurately(F_x, F_s @ point.tangent + F_t @ self.seeds)
        return Moving(value.ravel(), R_s @ point.tangent + R_t @ self.seeds - R_x @ moved)

    def _solved(self, piece: _Map, numbers: list, guess: np.ndarray) -> np.ndarray | None:
        def equations(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            residual, matrix = (np.asarray(v, dtype=float) for v in piece.equations(x, *numbers))
            return residual.ravel(), matrix

        if np.any(guess) or not len(guess):
            return newton(equations, guess)
        for _ in range(3):  # from zero, which a solution may be: nothing says then when round-off is reached
            residual, matrix = equations(guess)
            guess = guess - np.linalg.solve(matrix, residual)
        return guess


def solve_accurately(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Solve A X = B with one refinement in extended precision."""
    if A.size == 0:
        return np.zeros((0, B.shape[1]))
    X = np.linalg.solve(A, B)
    rest = B.astype(np.longdouble) - A.astype(np.longdouble) @ X.astype(np.longdouble)
    return X + np.linalg.solve(A, rest.astype(float))


def solved(point: Moving | None, t: float) -> Moving:
    """A point that was found, or else a refusal."""
    if point is None:
        raise StepFailed(f"a piece of the step with events near t = {t:.6g} could not be solved again")
    return point


def simultaneous(t: float) -> StepFailed:
    """The refusal of events that coincide."""
    return StepFailed(
        f"at t = {t:.6g} there are several events at one instant, whose order a small change decides: the motion is not "
        "differentiated there; choose other initial values or parameters, or end the run before it"
    )


def moves_alike(a: Moving, b: Moving) -> bool:
    """Whether the times of two points have the same derivatives."""
    return bool(np.allclose(a.tangent[0], b.tangent[0], rtol=SAME, atol=SAME * np.max(np.abs(b.tangent[0]))))
