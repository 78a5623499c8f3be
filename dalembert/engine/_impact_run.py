"""A run with impacts: the arrays of the collision driver beside those of the full steps, and what its stops mean."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.engine import _collision_driver as collisions
from dalembert.engine import _plan as at
from dalembert.engine._run import Run
from dalembert.impacts import CollisionIntegrator
from dalembert.impacts._program import EventProgram, event_program
from dalembert.systems import MechanicalSystem, State
from dalembert.trajectory import Impacts

KERNELS = {
    "LOOK": "look", "MEASURE": "measure", "TANGENT_OF": "tangent", "FULL_GUESS": "full_guess", "END": "end",
    "END_AFTER": "end_after", "OUTCOME": "outcome", "OUTCOME_AFTER": "outcome_after", "ENERGY": "energy",
}  # fmt: skip
IN_KERNELS = ("STATE", "HIT", "AHEAD", "PHI", "RATE", "SLACK", "STRENGTH", "DELTA", "AFTER", "TANGENT", "X")
STOPS = {
    at.NO_FLOW: "the equations of a partial step next to an impact could not be solved: reduce h",
    at.NO_TIME: "a partial step ends behind unilateral[{which}], but no collision time was found before it: reduce h",
    at.NO_RESET: "the equations of the impact could not be solved: reduce h, or check that H is convex in p",
    at.ACCUMULATED: (
        "impacts accumulate here, so that the body stays in contact from t = {t:.6g} on: the motion in contact is not part of "
        "the model, so end the run before, or state the contact as holonomic="
    ),
    at.NO_GRADIENT: (
        "the gradient of unilateral[{which}] vanishes at the contact, so the impact has no direction: state the wall by a "
        "function whose gradient does not vanish on it, such as a signed distance"
    ),
    at.TOO_MANY: "there are more than 1000 impacts in one step: reduce h",
    at.ENDLESS: "constraints that are hit at once exchange impulses without end: separate them, or give restitution < 1",
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
        program = event_program(system, method)
        self.places = program.slots
        self.plan, size = _plan(program, method)
        self.contact = np.zeros(size)
        self.contact[at.H_SLOT] = self.h
        self.contact[self.places.theta :][: self.places.n_theta] = self.start.theta
        self.log = np.zeros((2 * collisions.ROOM, at.LOG_STATE + 3 * system.dim))
        tolerance = method.collision_tolerance
        self.grid = 0.0 if tolerance is None else 2.0 ** np.ceil(-np.log2(tolerance))
        t, q, p, theta = self.start.t, self.start.q, self.start.p, self.start.theta
        self._known(at.PHI_HERE)[:] = system.evaluate("phi", t, q, theta=theta)
        self._known(at.RATE_HERE)[:] = system.evaluate("phi_dot", t, q, p, theta=theta)
        super().__post_init__()

    def _advance_to(self, last_step: int) -> int:
        return collisions.advance_with_impacts(
            self.kernels[0], self.layouts[0], self.index, self.memory, self.counts[0], self.numbers[0], self.known[0],
            self.guess, self.work, self.rows, last_step, self.save_every, self.start.t, self.h, self.plan, self.contact,
            self.log, self.grid,
        )  # fmt: skip

    def _known(self, name: int) -> np.ndarray:
        """What memory holds for each unilateral constraint."""
        return self.contact[self.plan[name] :][: self.places.m]

    def _stopped(self, status: int) -> str | None:
        if status == collisions.LOG_FULL:
            self.log = np.vstack([self.log, np.zeros_like(self.log)])
            return None
        values = {"t": float(self.contact[at.T_SLOT]), "which": int(np.argmax(self._known(at.AHEAD)))}
        return STOPS[int(self.plan[at.STATUS])].format(**values)

    @property
    def impacts(self) -> Impacts:
        """All impacts so far."""
        assert self.walled is not None
        log = self.log[: self.plan[at.LOGGED]]
        state = np.split(log[:, at.LOG_STATE :], 3, axis=1)
        return Impacts(
            t=log[:, at.LOG_T].copy(),
            which=log[:, at.LOG_WHICH].astype(int),
            impulse=log[:, at.LOG_IMPULSE].copy(),
            q=state[0].copy(),
            p_before=state[1].copy(),
            p_after=state[2].copy(),
            energy_before=log[:, at.LOG_BEFORE].copy(),
            energy_after=log[:, at.LOG_AFTER].copy(),
        )


def _plan(program: EventProgram, method: CollisionIntegrator) -> tuple[np.ndarray, int]:
    """The integers that the driver reads, and how much memory it needs."""
    places = program.slots
    n, m = places.n, places.m
    named = {"N": n, "M": m, "F": places.residual, "A": places.matrix}
    named |= {name: getattr(places, name.lower()) for name in IN_KERNELS}
    named |= {name: program.code.addresses.get(kernel, 0) for name, kernel in KERNELS.items()}
    size = program.memory_size
    for name in ("HERE", "THERE", "CONTACT"):
        named[name], size = size, size + 2 * n
    for name in ("PHI_HERE", "RATE_HERE", "PHI_THERE", "RATE_THERE", "PHI_CONTACT", "RATE_CONTACT", "BLUR", "STRENGTH_BEFORE"):
        named[name], size = size, size + m
    named["SIZES"], size = size, size + program.n_blocks
    named |= {"COUPLED": program.coupled, "FULL_IS_PARTIAL": method.full_is_partial}
    tables = {**program.solves, "JUST_HIT": np.zeros(m), "PASSED": np.zeros(m), "PIVOTS": np.zeros(places.n_x)}
    end = at.N_NAMED
    for name, table in tables.items():
        named[name], end = end, end + len(table)
    plan = np.zeros(end, dtype=np.int64)
    for name, value in named.items():
        plan[getattr(at, name)] = value
    for name, table in tables.items():
        plan[named[name] : named[name] + len(table)] = table
    return plan, size
