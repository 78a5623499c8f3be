"""A run: the arrays that the driver works on, and the loop around it that reports, rescues and stops."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dalembert._progress import phase
from dalembert.compiler._denormals import flushed_to_zero
from dalembert.compiler._independence import combined_at, independent
from dalembert.engine import _driver as driver
from dalembert.engine._follow import ROWS
from dalembert.engine._layout import COUNTED, COUNTS, KNOWN_AGES, NUMBERS, Steps
from dalembert.engine._rescue import rescue, warn_of_pivots
from dalembert.engine._spec import RunSpec
from dalembert.engine._stepper import Given, Stepper, driver_records
from dalembert.errors import UnsupportedSystem
from dalembert.methods._clock import NEVER as NO_END
from dalembert.symbolic._lock import one_at_a_time, symbolic
from dalembert.systems import State
from dalembert.systems._consistent import unpack

CHUNK_SECONDS, LEAST_SECONDS = 0.1, 1e-4

STAGES_OF_COMBINED = (
    "the constraints are redundant, so the stages of a method have multipliers of combinations of them only: leave "
    "stage_multipliers out and read run.lam, or remove redundant constraints"
)

NO_STEP_SIZE = (
    "the step density would fall below zero within one step, because it changes too fast for steps of this size, or it grows "
    "without bound, as at a collision: reduce h, or give least=, or check that density= is positive and smooth here"
)

NO_SMALLER_STEP = (
    "are still not exact enough, or have no solution: the motion has a singularity here or is not smooth; else give a larger "
    "rtol, or atol"
)

FIRST_ROWS = 4096
"""How many rows there is room for at first where it is not known how many there will be."""


@dataclass
class Run:
    """The mutable side of one simulation: a stepper for each substep of the method, most methods being their only one."""

    spec: RunSpec
    room: int | None = None
    """How many rows are kept in memory; by default all that the run stores."""
    given: Given | None = None
    """What is known about the start of the only substep."""
    wall_time: float = 0.0
    build_time: float = 0.0
    columns: np.ndarray | None = field(default=None, init=False)
    """Where the variables that were asked for, and the clock, are among those that are computed, if that is not in order."""
    _made: int = field(default=0, init=False)
    """Steps that were made here; a run that goes on from a store has others before."""
    settled: bool = True
    """False while Python makes steps, and not everything about them is noted yet."""

    @one_at_a_time
    def __post_init__(self) -> None:
        spec = self._smooth_spec()
        assert isinstance(spec.start, State)
        self.system, self.method, self.start, self.h = spec.system, spec.method, spec.start, spec.h
        self.steps, self.save_every, self.stage_multipliers = spec.steps, spec.save_every, spec.stage_multipliers
        self.controls = spec.controls
        if self.system.n_unilateral:
            raise UnsupportedSystem(f"{self.method} would run through the walls of this system: take a collision integrator")
        if self.stage_multipliers and self.system.combines is not None:
            raise UnsupportedSystem(STAGES_OF_COMBINED)
        began = time.perf_counter()
        substeps = self.method.substeps
        n = len(substeps)
        self.clock = self.method.clock_at(self.system, self.start, self.h)
        first = 1 / self.clock[1] if len(self.clock) else self.h
        self.counts, self.numbers, self.known = np.zeros(n, COUNTS), np.zeros(n, NUMBERS), np.zeros((n, KNOWN_AGES))
        self.steppers = [
            Stepper(
                self.system,
                method,
                self.start,
                fraction * first,
                n == 1,
                spec.tolerance,
                counts,
                numbers,
                known,
                spec.alone,
                spec.watchful,
                self.given,
                self.clock,
                NO_END if spec.t_end is None else spec.t_end,
            )
            for (method, fraction), counts, numbers, known in zip(substeps, self.counts, self.numbers, self.known, strict=True)
        ]
        fractions = np.array([fraction for _, fraction in substeps])
        self.offsets = np.concatenate([[0.0], np.cumsum(fractions)[:-1]])
        extra = self.steppers[-1].program.layout.n_stage_multipliers if self.stage_multipliers else 0
        begins = np.concatenate([self.start.packed, self.clock])
        known = spec.t_end is None  # how many rows there will be
        self.rows = _store(self.room or (self.steps // self.save_every + 2 if known else FIRST_ROWS), len(begins) + extra)
        self.rows[0] = np.nan
        self.rows[0, : len(begins)] = begins
        self.counts[0]["saved"] = 1
        self._join()
        phase("the step loop")
        self._advance_to(0)  # loads the compiled driver, so that no run's time includes it
        self.build_time = time.perf_counter() - began

    def _smooth_spec(self) -> RunSpec:
        """What the steppers compute: the run itself, redundant constraints combined, or its motion between events."""
        spec = self.spec.in_own_time
        assert isinstance(spec.start, State)
        self.columns = getattr(spec.system, "columns", None)
        system, start = independent(spec.system, spec.start)
        return replace(spec, system=system, start=start)

    def stored(self, rows: np.ndarray) -> np.ndarray:
        """Rows as they are kept: the variables of the system that was asked for, then the clock and multipliers of stages."""
        return rows if self.columns is None else rows[..., self.columns]

    def _join(self) -> None:
        """Lay the steppers' memories and tables end to end, where the driver finds them."""
        parts = self.steppers
        sizes = [[len(s.memory), len(s.program.index), max(s.program.layout.n_x, s.program.layout.n_last)] for s in parts]
        starts = np.vstack([np.zeros((1, 3), dtype=np.int64), np.cumsum(sizes, axis=0)]).T.copy()
        self.memory, programs = np.concatenate([s.memory for s in parts]), [s.program for s in parts]
        index, room = np.concatenate([program.index for program in programs]), np.zeros((2 + ROWS, starts[2, -1]))
        records = (self.counts, self.numbers, self.known)
        self.driven = Steps(
            *driver_records(programs, programs), index, self.memory, *records, room[0], room[1], room[2:], starts, self.offsets
        )
        for stepper, begin, end in zip(parts, starts[0, :-1], starts[0, 1:], strict=True):
            stepper.memory = self.memory[begin:end]

    def begin(self, row: np.ndarray, compensation: np.ndarray, step: int, walls: Mapping[str, Any]) -> None:
        """Start afresh from a stored row: what follows depends on the arguments alone, not on what was computed before."""
        del walls  # only runs with impacts know any
        row = row if self.columns is None else row[np.argsort(self.columns)]
        n, carried = self.system.n_state, self.system.n_state + len(self.clock)
        guess, clock = row[carried:] if self.stage_multipliers and step else self.start.multipliers, row[n:carried]
        t = float(clock[0]) if len(clock) else self.start.t + step * self.h
        state = combined_at(self.system, t, row[:n], self.start.theta) if self.system.combines is not None else None
        state = unpack(self.system, t, row[:n], self.start.theta, guess) if state is None else state
        for stepper, (_, fraction) in zip(self.steppers, self.method.substeps, strict=True):
            stepper.clock, stepper.h = clock, fraction / clock[1] if len(clock) else stepper.h
            stepper.begin(state, compensation)
        self._join()
        self.rows[0] = row
        for name, value in {"steps_done": step, "saved": 1, "substep": 0}.items():
            self.counts[0][name] = value

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
        """The current state as it would be stored, with the clock where there is one."""
        first, last = self.steppers[0], self.steppers[-1]
        stage = last.memory[last.slots("accepted")] if self.stage_multipliers else np.zeros(0)
        return np.concatenate([self.state, first.memory[first.slots("clock")], stage])

    @property
    def steps_done(self) -> int:
        """How many steps are behind us."""
        return int(self.counts[0]["steps_done"])

    @property
    def time(self) -> float:
        """Where the run stands."""
        if len(self.clock):
            return float(self.steppers[0].memory[self.steppers[0].program.layout.clock])
        if self.columns is not None:
            return float(self.state[self.columns[-2]])
        return self.start.t + self.steps_done * self.h

    def stats(self) -> dict[str, float]:
        """What the run took."""
        return {
            "steps": self.steps_done,
            **{name: int(self.counts[counter].sum()) for name, counter in COUNTED.items()},
            "renewals": sum(stepper.renewals for stepper in self.steppers),
            "build_seconds": self.build_time,
            "wall_seconds": self.wall_time,
        }

    def advance(self, report: Callable[[int], None] | None = None, last_step: int | None = None) -> str | None:
        """Run to the last step; the reason why not, if a step failed. KeyboardInterrupt leaves everything computed in place."""
        last_step = self.steps if last_step is None else last_step
        chunk = 1  # steps of large models may take long, and Ctrl-C waits for them
        while self.steps_done < last_step:
            began, before = time.perf_counter(), self.steps_done
            self._keep_room_for(min(last_step, before + chunk))
            try:
                status = self._advance_to(min(last_step, before + chunk))
            finally:
                elapsed = time.perf_counter() - began
                self.wall_time += elapsed
            if status == driver.UNSOLVED:
                reason = self.rescue()
                self.wall_time += time.perf_counter() - began - elapsed
                if reason is not None:
                    return reason
            elif status == driver.REACHED:
                if self._is_over():
                    break
                return NO_STEP_SIZE
            elif status != driver.DONE:
                reason = self._stopped(status)
                self.wall_time += time.perf_counter() - began - elapsed
                if reason is not None:
                    return reason
            done = self.steps_done - before
            self._made += done
            if done:
                chunk = next_chunk(done, elapsed, self.steps)
            if report is not None:
                report(self.steps_done)
        warn_of_pivots(self.steppers, self._made)
        return None

    def rescue(self) -> str | None:
        """Help the driver with the pending step; the reason why not, if it cannot be made."""
        stepper = self.steppers[self.counts[0]["substep"]]
        if len(self.clock):
            stepper.h = float(stepper.memory[stepper.program.layout.h])
            if not np.isfinite(stepper.h):
                return NO_STEP_SIZE
        with symbolic():
            if self.method.rejects and not stepper.renew():
                return None if stepper.shorten() else f"steps of h = {abs(stepper.h):.1g} {NO_SMALLER_STEP}"
            reason = rescue(stepper)
            if reason is not None and self.method.rejects and stepper.shorten():
                reason = None
            self._join()  # the rescue may have changed a program
        return reason

    def _is_over(self) -> bool:
        """Whether the time is that at which the run ends, or past it."""
        end = self.spec.t_end
        return end is not None and (end - self.time) * np.sign(self.h) <= 1e-9 * abs(end - self.spec.t0)

    def _keep_room_for(self, last_step: int) -> None:
        """Room for the rows until a step, where it was not known how many there will be."""
        needed = last_step // self.save_every + 2
        if self.spec.t_end is not None and needed > len(self.rows):
            rows = _store(2 * needed, self.rows.shape[1])
            rows[: len(self.rows)] = self.rows
            self.rows = rows

    def _stopped(self, status: int) -> str | None:
        """Why the driver stopped, or None to go on, where it is neither done nor at a step that it could not solve."""
        raise AssertionError(f"the driver has no status {status}")

    def _advance_to(self, last_step: int) -> int:
        if self.controls is None:
            return self._drive(self.rows, last_step, self.save_every)
        status = driver.DONE
        while status == driver.DONE and self.steps_done < last_step:
            self.apply_controls()
            status = self._drive(self.rows, min(last_step, self.next_control), self.save_every)
        return status

    @property
    def next_control(self) -> int:
        """The step before which controls change next; the last one where there are none."""
        if self.controls is None:
            return self.steps
        return (self.steps_done // self.controls.hold + 1) * self.controls.hold

    def apply_controls(self) -> None:
        """Give the controls of the pending step to all substeps."""
        if self.controls is None:
            return
        row = min(self.steps_done // self.controls.hold, len(self.controls.values) - 1)
        for stepper in self.steppers:
            theta = stepper.start.theta.copy()
            theta[self.controls.slots] = self.controls.values[row]
            stepper.start = replace(stepper.start, theta=theta)
            stepper.set_parameters(theta)

    def _drive(self, store: np.ndarray, last_step: int, save_every: int) -> int:
        """Call the compiled driver, which stores states in `store`."""
        with flushed_to_zero():
            return driver.advance(self.driven, store, last_step, save_every, self.start.t, self.h)


def next_chunk(done: int, elapsed: float, most: int) -> int:
    """How many steps to ask for next, so that Ctrl-C waits for a tenth of a second, after some were done.

    Less time than LEAST_SECONDS says nothing, as where a driver stops soon, for an event or a failure.
    """
    return int(max(1, min(done * CHUNK_SECONDS / max(elapsed, LEAST_SECONDS), most)))


def _store(rows: int, columns: int) -> np.ndarray:
    """Room for the states, from the system's own pages.

    NumPy asks for huge pages, and the kernel's search for them took a fifth of the time of a run of two million steps. Pages
    that processes may share, as Python asks for unless it is told, take nearly twice as long to get.
    """
    own = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}  # not on Windows
    pages = mmap.mmap(-1, 8 * rows * columns, **own)
    return np.frombuffer(pages, dtype=float).reshape(rows, columns)
