"""A run with impacts: the arrays of the collision driver beside those of the full steps, and what its stops mean."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.engine import _collision_driver as collisions
from dalembert.engine import _dense_newton as slot
from dalembert.engine import _events as events
from dalembert.engine._run import Run
from dalembert.impacts import CollisionIntegrator
from dalembert.impacts._program import Slots, event_program
from dalembert.systems import MechanicalSystem, State
from dalembert.trajectory import Impacts

STOPS = {
    events.NO_FLOW: "the equations of a partial step next to an impact could not be solved: reduce h",
    events.NO_RESET: "the equations of the impact could not be solved: reduce h, or check that H is convex in p",
    events.ACCUMULATED: (
        "impacts accumulate here, so that the body stays in contact from t = {t:.6g} on: the motion in contact is not part of "
        "the model, so end the run before, or state the contact as holonomic="
    ),
    events.NO_GRADIENT: (
        "the gradient of unilateral[{which}] vanishes at the contact, so the impact has no direction: state the wall by a "
        "function whose gradient does not vanish on it, such as a signed distance"
    ),
    events.TOO_MANY: "there are more than 1000 impacts in one step: reduce h",
    events.ENDLESS: "constraints that are hit at once exchange impulses without end: separate them, or give restitution < 1",
}


@dataclass
class ImpactRun(Run):
    """The mutable side of one simulation by a collision integrator."""

    collision: CollisionIntegrator | None = field(default=None)
    walled: MechanicalSystem | None = field(default=None)

    @classmethod
    def of(
        cls,
        system: MechanicalSystem,
        method: CollisionIntegrator,
        start: State,
        h: float,
        steps: int,
        save_every: int,
        newton_tolerance: float | None = None,
    ) -> ImpactRun:
        """A run of `method`; its full steps are those of the base method on the system without walls."""
        common = (system.smooth, method.full, start, h, steps, save_every, newton_tolerance)
        return cls(*common, collision=method, walled=system)

    def __post_init__(self) -> None:
        assert self.collision is not None and self.walled is not None
        system, method = self.walled, self.collision
        program = self.event_program = event_program(system, method)
        n, m = system.dim, system.n_unilateral
        places = program.slots
        self.slots = _slot_numbers(places)
        self.contact = np.zeros(program.memory_size)
        self.contact[Slots.h] = self.h
        self.contact[places.theta : places.theta + places.n_theta] = self.start.theta
        self.points = np.zeros((events.N_POINTS, max(2 * n, m)))
        self.marks = np.zeros((2, m), dtype=np.int64)
        self.log = np.zeros((2 * collisions.ROOM, events.LOG_STATE + 3 * n))
        self.tally = np.array([0, 0, program.coupled, method.full_is_partial])
        self.pivots, self.strengths = np.zeros(places.n_x, dtype=np.int64), np.zeros(m)
        tolerance = method.collision_tolerance
        self.grid = 0.0 if tolerance is None else 2.0 ** np.ceil(-np.log2(tolerance))
        t, q, p, theta = self.start.t, self.start.q, self.start.p, self.start.theta
        self.points[events.PHI_HERE, :m] = system.evaluate("phi", t, q, theta=theta)
        self.points[events.RATE_HERE, :m] = system.evaluate("phi_dot", t, q, p, theta=theta)
        super().__post_init__()

    def _advance_to(self, last_step: int) -> int:
        return collisions.advance_with_impacts(
            self.kernels[0], self.layouts[0], self.index, self.memory, self.counts[0], self.numbers[0], self.known[0], self.guess,
            self.work, self.rows, last_step, self.save_every, self.start.t, self.h, self.event_program.kernels,
            self.event_program.solves, self.contact, self.slots, self.points, self.marks, self.log, self.tally, self.pivots,
            self.strengths, self.grid,
        )  # fmt: skip

    def _stopped(self, status: int) -> str | None:
        if status == collisions.LOG_FULL:
            self.log = np.vstack([self.log, np.zeros_like(self.log)])
            return None
        t = float(self.contact[Slots.t])
        ahead = self.contact[self.event_program.slots.ahead :][: self.event_program.slots.m]
        return STOPS[int(self.tally[collisions.STATUS])].format(t=t, which=int(np.argmax(ahead)))

    @property
    def impacts(self) -> Impacts:
        """All impacts so far."""
        assert self.walled is not None
        log = self.log[: self.tally[collisions.LOGGED]]
        state = np.split(log[:, events.LOG_STATE :], 3, axis=1)
        return Impacts(
            t=log[:, events.LOG_T].copy(),
            which=log[:, events.LOG_WHICH].astype(int),
            impulse=log[:, events.LOG_IMPULSE].copy(),
            q=state[0].copy(),
            p_before=state[1].copy(),
            p_after=state[2].copy(),
            energy_before=log[:, events.LOG_BEFORE].copy(),
            energy_after=log[:, events.LOG_AFTER].copy(),
        )


def _slot_numbers(places: Slots) -> np.ndarray:
    numbers = np.zeros(slot.N_SLOTS, dtype=np.int64)
    names = {"N": "n", "M": "m", "F": "residual", "A": "matrix"}
    for name in ("N", "M", "STATE", "HIT", "AHEAD", "PHI", "RATE", "SLACK", "STRENGTH", "DELTA", "AFTER", "TANGENT", "X", "F", "A"):
        numbers[getattr(slot, name)] = getattr(places, names.get(name, name.lower()))
    return numbers
