"""A run: the arrays that the driver works on, and the loop around it that reports, rescues and stops."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.contact import CollisionIntegrator
from dalembert.engine import _driver as driver
from dalembert.engine import _layout as at
from dalembert.engine._rescue import rescue, warn_of_pivots
from dalembert.engine._stepper import Given, Stepper
from dalembert.errors import StepFailed, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.symbolic._lock import one_at_a_time, symbolic
from dalembert.systems import MechanicalSystem, State, System
from dalembert.systems._consistent import unpack

CHUNK_SECONDS = 0.1


@dataclass
class Run:
    """The mutable side of one simulation: a stepper for each substep of the method, most methods being their only one."""

    system: System
    method: OneStepMethod
    start: State
    h: float
    steps: int
    save_every: int
    newton_tolerance: float | None = None
    stage_multipliers: bool = False
    room: int | None = None
    """How many rows are kept in memory; by default all that the run stores."""
    given: Given | None = None
    """What is known about the start of the only substep."""
    wall_time: float = 0.0
    build_time: float = 0.0
    settled: bool = True
    """False while Python makes steps, and not everything about them is noted yet."""

    @one_at_a_time
    def __post_init__(self) -> None:
        if self.system.n_unilateral:
            raise UnsupportedSystem(f"{self.method} would run through the walls of this system: take a collision integrator")
        began = time.perf_counter()
        substeps = self.method.substeps
        n = len(substeps)
        self.counts = np.zeros((n, at.N_COUNTS), dtype=np.int64)
        self.numbers, self.known = np.zeros((n, at.N_NUMBERS)), np.zeros((n, at.KNOWN_AGES))
        tolerance = self.newton_tolerance or 0.0
        self.steppers = [
            Stepper(self.system, method, self.start, fraction * self.h, n == 1, tolerance, counts, numbers, known, self.given)
            for (method, fraction), counts, numbers, known in zip(substeps, self.counts, self.numbers, self.known, strict=True)
        ]
        fractions = np.array([fraction for _, fraction in substeps])
        self.offsets = np.concatenate([[0.0], np.cumsum(fractions)[:-1]])
        extra = self.steppers[-1].program.layout.n_stage_multipliers if self.stage_multipliers else 0
        self.rows = _store(self.room or self.steps // self.save_every + 2, self.system.n_state + extra)
        self.rows[0] = np.nan
        self.rows[0, : self.system.n_state] = self.start.packed
        self.counts[0, at.SAVED] = 1
        self._join()
        self._advance_to(0)  # loads the compiled driver, so that no run's time includes it
        self.build_time = time.perf_counter() - began

    def _join(self) -> None:
        """Lay the steppers' memories and tables end to end, where the driver finds them."""
        parts = self.steppers
        self.kernels = np.stack([s.program.addresses for s in parts])
        self.layouts = np.stack([s.layout for s in parts])
        sizes = [[len(s.memory), len(s.program.index), s.program.layout.n_x] for s in parts]
        self.starts = np.vstack([np.zeros((1, 3), dtype=np.int64), np.cumsum(sizes, axis=0)]).T.copy()
        self.memory = np.concatenate([s.memory for s in parts])
        self.index = np.concatenate([s.program.index for s in parts])
        self.guess, self.work = np.zeros(self.starts[2, -1]), np.zeros(self.starts[2, -1])
        for stepper, begin, end in zip(parts, self.starts[0, :-1], self.starts[0, 1:], strict=True):
            stepper.memory = self.memory[begin:end]

    def begin(self, row: np.ndarray, compensation: np.ndarray, step: int, walls: Mapping[str, Any]) -> None:
        """Start afresh from a stored row: what follows depends on the arguments alone, not on what was computed before."""
        del walls  # only runs with impacts know any
        n = self.system.n_state
        guess = row[n:] if self.stage_multipliers and step else self.start.multipliers
        state = unpack(self.system, self.start.t + step * self.h, row[:n], self.start.theta, guess)
        for stepper in self.steppers:
            stepper.begin(state, compensation)
        self._join()
        self.rows[0] = row
        self.counts[0, [at.STEPS_DONE, at.SAVED, at.SUBSTEP]] = step, 1, 0

    @property
    def walls(self) -> dict[str, Any]:
        """What `begin` has to know about walls, as numbers and lists: nothing in a run without impacts."""
        return {}

    @property
    def compensation(self) -> np.ndarray:
        """What compensated summation still owes to the state."""
        return self.steppers[0].memory[self.steppers[0].slots("compensation")].copy()

    @property
    def state(self) -> np.ndarray:
        """The state at the end of the last whole step, as one vector."""
        return self.steppers[0].state

    @property
    def row(self) -> np.ndarray:
        """The current state as it would be stored."""
        last = self.steppers[-1]
        return np.concatenate([self.state, last.memory[last.slots("accepted")] if self.stage_multipliers else []])

    @property
    def steps_done(self) -> int:
        """How many steps are behind us."""
        return int(self.counts[0, at.STEPS_DONE])

    @property
    def time(self) -> float:
        """Where the run stands."""
        return self.start.t + self.steps_done * self.h

    def stats(self) -> dict[str, float]:
        """What the run took."""
        return {
            "steps": self.steps_done,
            "newton_iterations": int(self.counts[:, at.ITERATIONS].sum()),
            "factorizations": int(self.counts[:, at.FACTORIZATIONS].sum()),
            "rescued_steps": sum(stepper.rescued for stepper in self.steppers),
            "pivoted_steps": int(self.counts[:, at.PIVOTED].sum()),
            "build_seconds": self.build_time,
            "wall_seconds": self.wall_time,
        }

    def advance(self, report: Callable[[int], None] | None = None, last_step: int | None = None) -> str | None:
        """Run to the last step; the reason why not, if a step failed. KeyboardInterrupt leaves everything computed in place."""
        last_step = self.steps if last_step is None else last_step
        chunk = 100
        while self.steps_done < last_step:
            began, before = time.perf_counter(), self.steps_done
            try:
                status = self._advance_to(min(last_step, before + chunk))
            finally:
                elapsed = time.perf_counter() - began
                self.wall_time += elapsed
            if status == driver.UNSOLVED:
                reason = self._rescue()
                self.wall_time += time.perf_counter() - began - elapsed
                if reason is not None:
                    return reason
            elif status != driver.DONE:
                reason = self._stopped(status)
                self.wall_time += time.perf_counter() - began - elapsed
                if reason is not None:
                    return reason
            done = self.steps_done - before
            if done:
                chunk = int(np.clip(chunk * CHUNK_SECONDS / max(elapsed, 1e-4), 1, min(10 * chunk, self.steps)))
            if report is not None:
                report(self.steps_done)
        warn_of_pivots(self.steppers)
        return None

    def _rescue(self) -> str | None:
        """Make the pending step in Python; the reason why not, if it cannot be made."""
        with symbolic:
            reason = rescue(self.steppers[self.counts[0, at.SUBSTEP]])
            self._join()  # the rescue may have changed a program
        return reason

    def _stopped(self, status: int) -> str | None:
        """Why the driver stopped, or None to go on, where it is neither done nor at a step that it could not solve."""
        raise AssertionError(f"the driver has no status {status}")

    def _advance_to(self, last_step: int) -> int:
        return self._drive(self.rows, last_step, self.save_every)

    def _drive(self, store: np.ndarray, last_step: int, save_every: int) -> int:
        """Call the compiled driver, which stores states in `store`."""
        return driver.advance(
            self.kernels, self.layouts, self.index, self.memory, self.counts, self.numbers, self.known, self.guess, self.work,
            self.starts, self.offsets, store, last_step, save_every, self.start.t, self.h,
        )  # fmt: skip


def make_run(
    system: System,
    method: OneStepMethod,
    start: State,
    h: float,
    steps: int,
    save_every: int,
    newton_tolerance: float | None = None,
    stage_multipliers: bool = False,
    room: int | None = None,
) -> Run:
    """The run of a method, by the driver that it needs."""
    if isinstance(method, CollisionIntegrator):
        from dalembert.contact._impact_run import ImpactRun

        assert isinstance(system, MechanicalSystem)
        return ImpactRun.of(system, method, start, h, steps, save_every, newton_tolerance, room=room)
    return Run(system, method, start, h, steps, save_every, newton_tolerance, stage_multipliers, room)


def _store(rows: int, columns: int) -> np.ndarray:
    """Room for the states, from the system's own pages.

    NumPy asks for huge pages, and the kernel's search for them took a fifth of the time of a run of two million steps.
    """
    pages = mmap.mmap(-1, 8 * rows * columns)
    return np.frombuffer(pages, dtype=float).reshape(rows, columns)


def one_step(system: System, method: OneStepMethod, state: State, h: float) -> tuple[State, list[np.ndarray]]:
    """One step of size h, which may be negative: the new state and the unknowns of each of its substeps."""
    run = make_run(system, method, state, float(h), 1, 1)
    reason = run.advance()
    if reason is not None:
        raise StepFailed(f"the step from t = {state.t:g} failed: {reason}")
    new = unpack(system, state.t + h, run.state, state.theta, state.multipliers)
    return new, [stepper.unknowns for stepper in run.steppers]
