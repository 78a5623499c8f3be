"""A run by time stepping: the arrays that its driver works on, and what the contacts did."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dalembert.compiler._denormals import flushed_to_zero
from dalembert.contact import _stepping_driver as driver
from dalembert.contact._records import SteppedContacts
from dalembert.contact._stepping_program import stepping_program
from dalembert.contact.time_stepping import TimeStepping
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, UnsupportedSystem
from dalembert.symbolic._lock import symbolic
from dalembert.systems import MechanicalSystem, State

PLACES = ("state", "x", "residual", "entries", "matrix", "scales", "pivots", "delta", "impulses", "slip", "stiff")


class At(NamedTuple):
    """What the driver has to know of the memory: numbers, and where things lie."""

    n_x: int
    n_laws: int
    n_entries: int
    n_state: int
    n_contacts: int
    n_tangents: int
    state: int
    x: int
    residual: int
    entries: int
    matrix: int
    scales: int
    pivots: int
    delta: int
    impulses: int
    slip: int
    stiff: int
    guess: int
    saved: int
    sums: int
    """Of the impulses since the last stored state."""
    touched: int
    """Normal impulses of the last step."""
    push: int
    """The largest change of a momentum in the last step, then the largest impulse and the largest momentum so far."""
    most: int
    peak: int


class Tables(NamedTuple):
    """Of a `SteppingProgram`."""

    rows: np.ndarray
    columns: np.ndarray
    blocks: np.ndarray


REASONS = {
    driver.UNSOLVED: (
        "no solution of the contact laws was found, by Newton's method and by projections: reduce h, or check that the "
        "coefficients of friction are not far above 1"
    ),
    driver.TOO_MANY: "there are more contacts than equal spheres can have: make radii less different",
    driver.UNLAWFUL: (
        "a contact has a coefficient of friction below 0, or of restitution that is not between 0 and 1: check the functions "
        "and the parameters that state them"
    ),
    driver.NOT_FINITE: "its result is not finite: reduce h",
    driver.PAINLEVE: (
        "a contact slides under a load where the rigid model has no or several solutions (Painleve's paradox): "
        'da.MoreauJean(painleve="impact") takes the impact without collision and goes on'
    ),
}
CHUNK_SECONDS = 0.1


@dataclass
class SteppingRun:
    """The mutable side of one simulation by time stepping; `_load`, `_drive` and `contacts` know the kind of the contacts."""

    spec: RunSpec
    room: int | None = None
    wall_time: float = 0.0
    settled: bool = True
    stage_multipliers: bool = False

    def __post_init__(self) -> None:
        spec, system, method, began = self.spec, self.spec.system, self.spec.method, time.perf_counter()
        assert isinstance(system, MechanicalSystem) and isinstance(method, TimeStepping) and isinstance(spec.start, State)
        if spec.h < 0:
            raise InputError("time stepping runs forwards, contact dissipates: take h > 0")
        if spec.stage_multipliers:
            raise UnsupportedSystem(f"{method} stores no multipliers of its stages: leave stage_multipliers out")
        if spec.newton_tolerance is not None:
            raise UnsupportedSystem(f"{method} solves its steps to round-off: leave newton_tolerance out")
        if spec.controls is not None:
            raise UnsupportedSystem(f"{method} takes no controls: state the force as a function of t and parameters")
        self.system, self.start, self.h, self.save_every = system, spec.start, spec.h, spec.save_every
        self.stops = method.painleve == "stop"
        with symbolic:
            self._load(system, method, spec.start)
        self.rows = np.zeros((self.room or spec.steps // spec.save_every + 2, system.n_state))
        self.rows[0] = spec.start.packed
        self.counts = np.zeros(6, dtype=np.int64)
        self.counts[4] = 1
        self.log = np.zeros((1000 + system.n_unilateral, 4 + 2 * system.n_tangents))
        self._drive(0)
        self.build_time = time.perf_counter() - began

    def _load(self, system: MechanicalSystem, method: TimeStepping, start: State) -> None:
        program = stepping_program(system, method)
        slots, size = program.slots, program.memory_size
        n, laws = slots.n_x, int(program.blocks[program.blocks[:, 1] >= 2, 0].sum())
        numbers = (n, laws, slots.n_entries, slots.n_state, slots.n_contacts, slots.n_tangents)
        sums = size + 2 * n
        touched = sums + slots.n_contacts * (1 + slots.n_tangents)
        push = touched + slots.n_contacts
        behind = (size, size + n, sums, touched, push, push + 1, push + 2)
        self.at = At._make([*numbers, *(getattr(slots, name) for name in PLACES), *behind])
        self.memory = np.zeros(push + 3)
        self.memory[slots.h] = self.h
        self.memory[slots.theta :][: len(start.theta)] = start.theta
        self.memory[slots.state :][: len(start.packed)] = start.packed
        self.memory[slots.x :][: system.dim] = start.v
        phi, rounding = (system.evaluate(name, start.t, start.first, theta=start.theta) for name in ("phi", "phi_rounding"))
        rate = system.evaluate("phi_dot", start.t, start.first, start.second, theta=start.theta)
        self.memory[touched:push] = (phi <= 10 * rounding) & (np.abs(rate) <= 1e-9 * (1e-300 + np.max(np.abs(start.v))))
        masses = 1 / np.max(np.abs(system.evaluate("H_pp", start.t, start.first, start.second, theta=start.theta)))
        self.memory[self.at.peak] = max(np.max(np.abs(start.second)), 1e-4 * masses * np.max(np.abs(start.first)) / self.h)
        self.tables = Tables(program.rows, program.columns, program.blocks)
        self.kernels = np.array([program.code.addresses[name] for name in ("residual", "entries", "finish")])
        self.program = program

    @property
    def state(self) -> np.ndarray:
        """The state at the end of the last step."""
        return self.memory[self.at.state :][: self.at.n_state].copy()

    @property
    def row(self) -> np.ndarray:
        """The current state as it would be stored."""
        return self.state

    @property
    def steps_done(self) -> int:
        """How many steps are behind us."""
        return int(self.counts[3])

    @property
    def time(self) -> float:
        """Where the run stands."""
        return self.start.t + self.steps_done * self.h

    def stats(self) -> dict[str, float]:
        """What the run took: projected steps are those that Newton's method alone did not solve."""
        counted = {"newton_iterations": int(self.counts[0]), "projected_steps": int(self.counts[1])}
        counted["damped_impacts"] = int(self.counts[2])
        return {"steps": self.steps_done, **counted, "build_seconds": self.build_time, "wall_seconds": self.wall_time}

    def advance(self, report: Callable[[int], None] | None = None, last_step: int | None = None) -> str | None:
        """Run to the last step; the reason why not, if a step failed."""
        last_step, chunk = self.spec.steps if last_step is None else last_step, 100
        while self.steps_done < last_step:
            began, before = time.perf_counter(), self.steps_done
            try:
                status = self._drive(min(last_step, before + chunk))
            finally:
                self.wall_time += time.perf_counter() - began
            if status == driver.FULL:
                self.log = np.vstack([self.log, np.zeros_like(self.log)])
            elif status != driver.DONE:
                return REASONS[status]
            elapsed, done = time.perf_counter() - began, self.steps_done - before
            if done:
                chunk = int(np.clip(chunk * CHUNK_SECONDS / max(elapsed, 1e-4), 1, 10 * chunk))
            if report is not None:
                report(self.steps_done)
        return None

    def _drive(self, last_step: int) -> int:
        with flushed_to_zero():
            return driver.advance_stepping(
                self.at, self.kernels, self.tables, self.memory, self.counts, self.rows, self.log, last_step, self.spec.steps,
                self.save_every, self.start.t, self.h, self.stops,
            )  # fmt: skip

    @property
    def contacts(self) -> SteppedContacts:
        """What contacts did so far."""
        log, d = self.log[: self.counts[5]], self.at.n_tangents
        which, begin, end, normal = log[:, :4].T.copy()
        friction, slip = log[:, 4 : 4 + d].copy(), log[:, 4 + d :].copy()
        slides = np.zeros(len(log), dtype=int)
        if d == 1:  # what sticks slips by round-off
            slides = np.where(np.abs(slip[:, 0]) > 1e-9 * np.max(np.abs(slip), initial=0.0), np.sign(slip[:, 0]), 0).astype(int)
        return SteppedContacts(which.astype(int), begin, end, slides, normal, friction, slip)
