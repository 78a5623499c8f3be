"""A run with impacts: the arrays of the collision driver beside those of the full steps, and what its stops mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dalembert.compiler import first_guess
from dalembert.compiler._denormals import flushed_to_zero
from dalembert.compiler._independence import independent
from dalembert.contact import CollisionIntegrator
from dalembert.contact import _driver_with_impacts as collisions
from dalembert.contact import _event_memory as ended
from dalembert.contact._event_program import event_program
from dalembert.contact._event_state import EventState
from dalembert.contact._here import Here
from dalembert.contact._resolution import MOST_IN_A_STEP
from dalembert.contact._sustained import Contact
from dalembert.engine import _driver as driver
from dalembert.engine._records import Contacts, Impacts
from dalembert.engine._run import Run
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, StepFailed
from dalembert.symbolic._lock import symbolic
from dalembert.systems import MechanicalSystem, State
from dalembert.systems._consistent import unpack
from dalembert.systems._redundant import Combination, combined

STOPS = {
    ended.NO_FLOW: "the equations of a partial step next to an impact could not be solved: reduce h",
    ended.NO_TIME: "a partial step ends behind {wall}, but no collision time was found before it: reduce h",
    ended.NO_RESET: "the equations of the impact could not be solved: reduce h, or check that H is convex in p",
    ended.NO_GRADIENT: (
        "the gradient of {wall} vanishes at the contact, so the impact has no direction: state the wall by a "
        "function whose gradient does not vanish on it, such as a signed distance"
    ),
    ended.TOO_MANY: f"there are more than {MOST_IN_A_STEP} impacts in one step: reduce h",
    ended.ENDLESS: (
        "constraints that are hit at once still exchange impulses after a million of them: they face each other, as the sides "
        "of a slit or of a narrow wedge do; move them apart, cut the wedge off, or give a smaller restitution"
    ),
    ended.UNDEFINED: "{wall} is not finite behind the wall: state it by a function that is defined on both sides, or reduce h",
    ended.BAD_RESTITUTION: "the restitution of {wall} is {e:.6g} at the approach speed {speed:.6g}: it must be between 0 and 1",
}

Accumulation = tuple[float, np.ndarray, list[int], list[int], bool]
"""Where impacts accumulate: the time, the state, the walls on which they do, others that touch, and whether one of these is
about to be hit."""
Guarded = tuple[float, np.ndarray, int]
"""Where a guard is zero: the time, the state, and which it is."""
AS_SLOW = 100.0
"""Impacts accumulate on walls whose phi_dot is at most so many times that of the wall on which it was noticed, ..."""
AT_REST = 1e-12
"""... or such a fraction of what phi_dot consists of."""


@dataclass
class ImpactRun(Run):
    """The mutable side of one simulation by a collision integrator."""

    held: list[tuple[int, float, float, int]] = field(default_factory=list)
    """Sustained contacts: the constraint, when it began and when it ended, and how it slides."""
    touching: tuple[int, ...] = ()
    """Constraints of a sustained contact that goes on beyond the last step that was asked for."""
    since: float = 0.0
    """When it began."""
    logged_before: int = 0
    """Impacts that are not in the log any more."""
    part: bool = False
    """Whether this is a part of another run, which goes on itself where impacts accumulate."""
    accumulation: Accumulation | None = None
    """Where that was."""
    guarded: Guarded | None = None
    """Where a guard of a part was zero."""

    def __post_init__(self) -> None:
        spec, system, method = self.spec, self.spec.system, self.spec.method
        assert isinstance(system, MechanicalSystem) and isinstance(method, CollisionIntegrator)
        assert isinstance(spec.start, State)
        if spec.h < 0:
            raise InputError("collision integrators run forwards: take h > 0")
        began = time.perf_counter()
        self.walled, self.collision, self.start = system, method, spec.start
        with symbolic():
            if not self.part:
                combined, self.start = independent(system, spec.start)
                assert isinstance(combined, MechanicalSystem)
                self.walled = combined
            self._program = event_program(self.walled, self.collision)
            tolerance = self.collision.collision_tolerance
            self.grid = 0.0 if tolerance is None else float(2.0 ** np.ceil(-np.log2(tolerance)))
            self.until = spec.steps
            self.h, self._first = spec.h, (self.walled, self._program, self.start)
            self._forget(spec.start.t, spec.start.packed)
            super().__post_init__()
        self.build_time = time.perf_counter() - began

    def _smooth_spec(self) -> RunSpec:
        return replace(self.spec, system=self.walled.smooth, method=self.collision.full, start=self.start)

    def part_of(self, spec: RunSpec, walls: list[int]) -> ImpactRun:
        """A part of this run, which goes on itself where impacts accumulate; of its walls the part has only some."""
        part = ImpactRun(spec, part=True)
        part.wall_called = lambda which: self.wall_called(walls[which])  # type: ignore[method-assign]
        return part

    def wall_called(self, which: int) -> str:
        """What a wall is called."""
        return self.walled.row_called("phi", which)

    def _forget(self, t: float, state: np.ndarray) -> None:
        """Events as if the run began with this state."""
        H_pp = Here.of(self.walled, self.start.theta, t, state)("H_pp")
        masses = np.abs(np.diag(np.linalg.pinv(H_pp)))
        self.event_state = EventState(self._program, self.h, self.start.theta, masses, self.walled.n_tangents > 0)
        self.event_state.observe(t, state)

    @property
    def walls(self) -> dict[str, Any]:
        """Which walls were just hit, the contact that goes on, and contacts that may yet turn out to go on."""
        going_on = [list(held) for held in self.held if abs(held[2] - self.time) < 1e-6 * self.h]
        just_hit = self.event_state.marks("just_hit").tolist()
        return {"just_hit": just_hit, "touching": list(self.touching), "since": self.since, "held": going_on}

    def begin(self, row: np.ndarray, compensation: np.ndarray, step: int, walls: Mapping[str, Any]) -> None:
        """Start afresh from a stored row and what `walls` was there; the log and the list of contacts begin anew, too."""
        self.walled, self._program, self.start = self._first
        super().begin(row, compensation, step, walls)
        self.start = replace(self.start, theta=self.steppers[0].start.theta)
        before = self.event_state
        self._forget(self.time, self.state)
        self.event_state.at["uncoupled"] = before.at["uncoupled"]
        self.logged_before += len(before.logged)
        self.event_state.marks("just_hit")[:] = walls.get("just_hit", 0)
        self.touching, self.since = tuple(walls.get("touching", ())), float(walls.get("since", 0.0))
        held = ((*contact, 0)[:4] for contact in walls.get("held", ()))  # earlier versions stored no friction
        self.held = [(int(which), begin, end, int(slides)) for which, begin, end, slides in held]

    def rescue(self) -> str | None:
        """`Run.rescue`, after which events see the same combinations of redundant constraints as full steps do."""
        reason, stepper = super().rescue(), self.steppers[0]
        if reason is None and stepper.system.combines is not None:
            with symbolic():
                self._recombine(stepper.system.combines[1], stepper.start.theta)
        return reason

    def _recombine(self, combination: Combination, theta: np.ndarray) -> None:
        """Let events see other combinations of redundant constraints, in another program where these are of other rows."""
        if combination != self.walled.combines[1]:
            before = self.event_state
            self.walled = combined(self.walled.combines[0], combination)
            self._program = event_program(self.walled, self.collision)
            self.start = replace(self.start, theta=theta)
            self._forget(self.time, self.state)
            for name in ("just_hit", "ignored"):
                self.event_state.marks(name)[:] = before.marks(name)
            self.event_state.log, self.event_state.at["logged"] = before.log, before.at["logged"]
        self.adopt(theta)

    def adopt(self, theta: np.ndarray) -> None:
        """Take over parameters, of which only those that combine redundant constraints are others."""
        self.start, stepper = replace(self.start, theta=theta), self.steppers[0]
        self.event_state.vector("theta", len(theta))[:] = theta
        stepper.start = replace(stepper.start, theta=theta)
        stepper.set_parameters(theta)

    def advance(self, report: Callable[[int], None] | None = None, last_step: int | None = None) -> str | None:
        """`Run.advance`, which a sustained contact does not overrun: it goes on with the next call."""
        self.until = self.steps if last_step is None else last_step
        if self.touching and self.steps_done < self.until:
            began = time.perf_counter()
            left = [int(k) for k in np.flatnonzero(self.event_state.marks("just_hit")) if k not in self.touching]
            reason = self._move_in_contact((self.time, self.state.copy(), list(self.touching), left, False), self.since)
            self.wall_time += time.perf_counter() - began
            if reason is not None:
                return reason
        return super().advance(report, last_step)

    def _drive(self, store: np.ndarray, last_step: int, save_every: int) -> int:
        given = self.driven, self.event_state.shared, self.grid, store, last_step, save_every, self.start.t, self.h
        with flushed_to_zero():
            return collisions.advance_with_impacts(*given)

    def _stopped(self, status: int) -> str | None:
        events, how = self.event_state, int(self.event_state.at["status"])
        if status == collisions.LOG_FULL:
            self._make_room()
            return None
        if how == ended.GUARDED:
            self.guarded = (events.number("t"), events.here.copy(), int(events.at["which"]))
            t, here, which = self.guarded
            return "a guard is zero" if self.part else self._move_in_contact((t, here, [], [], False), t, which)
        if how == ended.ACCUMULATED:
            self.accumulation = self._accumulated()
            return "impacts accumulate" if self.part else self._move_in_contact(self.accumulation, self.accumulation[0])
        which = int(events.at["which"])
        wall = self.wall_called(which) if which < events.walls else "a force of the contact"
        return STOPS[how].format(wall=wall, e=2.0 * events.number("fraction") - 1.0, speed=events.number("speed"))

    def _make_room(self) -> None:
        """The log is nearly full."""
        self.event_state.make_room()

    def collide(self, t: float, here: np.ndarray, walls: list[int]) -> np.ndarray:
        """The state after impacts on walls that all touch, by the rule of free motion."""
        status = self.event_state.collide(t, here, walls)
        if status != ended.RESOLVED:
            raise StepFailed(STOPS[status])
        return self.event_state.here.copy()

    def _accumulated(self) -> Accumulation:
        """Where impacts accumulate, and on which walls: those on which phi_dot is as slow, or only round-off.

        phi_dot is compared in units of sqrt(grad phi^T H_pp grad phi), in which walls at rest have at most sqrt(p^T H_pp p).
        """
        events = self.event_state
        t, here, which = events.number("t"), events.here.copy(), int(events.at["which"])
        events.observe(t, here)
        unit, signed = events.measure(t), events.rates
        with symbolic():
            point = Here.of(self.walled, self.start.theta, t, here)
            phi_t, speed = point("phi_t"), point.speed
        rates = np.abs(signed)
        slow = rates * unit[which] <= AS_SLOW * rates[which] * unit
        slow |= rates <= AT_REST * (speed * unit + np.abs(phi_t))
        slow[which] = True
        marked = events.marks("just_hit") != 0
        ahead = bool(np.any(marked & ~slow & (signed < 0)))
        return t, here, np.flatnonzero(marked & slow).tolist(), np.flatnonzero(marked & ~slow).tolist(), ahead

    def _move_in_contact(self, accumulation: Accumulation, since: float, hit: int | None = None) -> str | None:
        """Move in a contact that is there since some time, or begins with a hit, as far as it lasts and steps are asked for."""
        t, here, walls, left, ahead = accumulation
        self.settled = False
        contact = Contact(self, tuple(walls), tuple(left), since, t, here)
        reason = contact.move(ahead, hit)
        self.touching, self.since = contact.touching, contact.begin if contact.touching else 0.0
        if reason is None:
            with symbolic():
                self._resume_free_motion(contact.here, contact.released)
        self.settled = True
        return reason

    def _resume_free_motion(self, here: np.ndarray, released: tuple[int, ...]) -> None:
        """Full steps from a state at the current time, on walls that were just left."""
        stepper, state = self.steppers[0], unpack(self.system, self.time, here, self.start.theta)
        stepper.memory[stepper.slots("state")] = here
        stepper.memory[stepper.slots("compensation")] = 0.0
        self.event_state.observe(state.t, here)
        self.event_state.touch(list(released))
        if stepper.renew():
            self._recombine(stepper.system.combines[1], stepper.start.theta)
            return
        stepper.memory[stepper.slots("x")] = first_guess(stepper.program.reduced, self.system, state, self.h)
        self.counts[0]["mode"], self.counts[0]["age"] = driver.GUESS_READY, -1

    def record(self, state: np.ndarray) -> None:
        """One more step, which ended in this state."""
        stepper = self.steppers[0]
        stepper.memory[stepper.slots("state")] = state
        stepper.memory[stepper.slots("compensation")] = 0.0
        self.counts[0]["steps_done"] += 1
        if self.steps_done % self.save_every == 0:
            self.rows[self.counts[0]["saved"], : len(state)] = state
            self.counts[0]["saved"] += 1

    def note_contact(self, which: int, begin: float, end: float, slides: int) -> None:
        """Note a sustained contact, which may go on from an earlier note."""
        for k, (other, since, until, slid) in enumerate(self.held):
            if (other, slid) == (which, slides) and abs(until - begin) < 1e-6 * self.h:
                self.held[k] = (which, since, end, slides)
                return
        self.held.append((which, begin, end, slides))

    def add_impacts(self, entries: list[np.void]) -> None:
        """Log impacts of a part of the run."""
        if entries:
            self.event_state.add(entries)

    def stats(self) -> dict[str, float]:
        """What the run took, and how many impacts of da.VCI had no variational reset."""
        counts = [self.logged_before + len(self.event_state.logged), int(self.event_state.at["uncoupled"])]
        names = self._program.counted
        return super().stats() | dict(zip(names, counts[: len(names)], strict=True))

    @property
    def contacts(self) -> Contacts:
        """All sustained contacts so far."""
        which, begin, end, slides = np.array(self.held, dtype=float).reshape(-1, 4).T
        return Contacts(which.astype(int), begin, end, slides.astype(int))

    @property
    def impacts(self) -> Impacts:
        """All impacts so far."""
        return self.event_state.impacts
