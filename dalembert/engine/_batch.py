"""Members of an ensemble that share programs: several at once in vectors, or one by one; on their own where a step fails."""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.compiler import Program
from dalembert.compiler._denormals import flushed_to_zero
from dalembert.compiler._lane_kernels import CONTROL
from dalembert.engine import _driver as driver
from dalembert.engine._follow import ROWS
from dalembert.engine._lane_driver import FULL, RUNNING, advance_units
from dalembert.engine._layout import COUNTED, COUNTS, KNOWN_AGES, NUMBERS, LaneSteps, Steps, Units
from dalembert.engine._member import MemberRun, WatchState, advance_watched, aligned
from dalembert.engine._run import next_chunk
from dalembert.engine._stepper import begin_steps, driver_records, set_rules, write_start
from dalembert.methods._clock import NEVER as NO_END
from dalembert.symbolic._lock import symbolic

if TYPE_CHECKING:
    from dalembert.engine._ensemble_run import EnsembleRun


class Batch:
    """Some members of an ensemble with the same programs: units of as many members as there are lanes."""

    def __init__(self, ensemble: EnsembleRun, programs: list[Program], members: np.ndarray, lanes: int) -> None:
        self.ensemble, self.programs, self.members, self.lanes = ensemble, programs, members, lanes
        self.steps_done, self.ready = 0, False

    def prepare(self) -> None:
        """Memory for all units, filled as that of a `Run`."""
        ensemble, lanes, (units, _) = self.ensemble, self.lanes, self.members.shape
        codes = [program.in_lanes(lanes) if lanes > 1 else program for program in self.programs]
        sizes = np.cumsum([0, *(code.memory_size for code in codes)])
        tables = np.cumsum([0, *(len(program.index) for program in self.programs)])
        unknowns = np.cumsum([0, *(max(program.layout.n_x, program.layout.n_last) for program in self.programs)])
        self.starts = np.vstack([sizes * lanes, tables, unknowns * lanes])
        self.memory = aligned(units, int(sizes[-1]) * lanes)
        filled = np.where(self.members < 0, self.members[0, 0], self.members)  # lanes without a member repeat one that is there
        n_sub = len(self.programs)
        self.counts, self.numbers = np.zeros((units, n_sub), dtype=COUNTS), np.zeros((units, n_sub), dtype=NUMBERS)
        self.known = np.zeros((units, n_sub, KNOWN_AGES))
        self.counts["saved"][:, 0] = 1
        begin_steps(self.counts, self.numbers, self.known)
        self._write_starts(filled, sizes)
        self.alive = (self.members >= 0).astype(float)
        self.helped = np.zeros((*self.members.shape, 2), dtype=np.int64)
        self.t0, self.h = ensemble.states.t[filled], ensemble.h[filled]
        self.failed, self.status, self.ready = np.ones(lanes), np.full(units, RUNNING), True
        self.watching = WatchState(ensemble.watch, ensemble.states.theta[filled], self.t0, self.h)
        self.watching.begin(ensemble.states.packed[filled])
        self._bind(driver_records(self.programs, codes), np.zeros((2 + ROWS, int(unknowns[-1]) * lanes)))
        self.take_steps(0)  # loads the compiled driver, so that no run's time includes it

    def _write_starts(self, filled: np.ndarray, sizes: np.ndarray) -> None:
        """States, parameters and guesses of all members, and by what their steps are judged."""
        ensemble, tolerance = self.ensemble, self.ensemble.spec.tolerance
        slots = self.memory.reshape(len(self.members), -1, self.lanes)
        for k, ((_, fraction), program) in enumerate(zip(ensemble.method.substeps, self.programs, strict=True)):
            part = slots[:, sizes[k] : sizes[k + 1]].transpose(1, 0, 2)
            theta, state, x, metric = (
                values[filled].transpose(2, 0, 1)
                for values in (ensemble.states.theta, ensemble.states.packed, ensemble.guesses[k], ensemble.metric)
            )
            write_start(part, program.layout, fraction * ensemble.first_h[filled], theta, state, x, metric, tolerance == 0.0)
            clock = program.layout.clock
            part[clock : clock + program.layout.n_clock] = ensemble.clocks[filled].transpose(2, 0, 1)
            if program.layout.n_clock:
                part[program.layout.t_end] = math.copysign(NO_END, ensemble.spec.h)
            signs = ensemble.signs[filled]
            set_rules(self.counts[:, k], self.numbers[:, k], program, ensemble.system, signs[:, 0], tolerance)
            if self.lanes > 1:
                control = part[program.layout.work :]
                first = {"alive": self.members >= 0, "sign": signs, "last_rate": 1.0, "tolerance": tolerance**2}
                for name, value in first.items():
                    control[CONTROL.index(name)] = value

    def _bind(self, records: tuple[np.ndarray, np.ndarray], room: np.ndarray) -> None:
        """The arrays in the order in which the drivers take them."""
        offsets = np.cumsum([0.0, *(fraction for _, fraction in self.ensemble.method.substeps)])[:-1]
        watch = self.watching
        if self.lanes == 1:
            index = np.concatenate([program.index for program in self.programs])
            rows = zip(self.memory, self.counts, self.numbers, self.known, strict=True)
            self._arrays: Any = [Steps(*records, index, *row, room[0], room[1], room[2:], self.starts, offsets) for row in rows]
            return
        controls = np.array([program.layout.work * self.lanes for program in self.programs])
        shared = LaneSteps(
            *records, self.starts[[0, 2]], offsets, controls, room[0], self.failed, self.lanes, watch.address, watch.plan,
            self._single(offsets),
        )  # fmt: skip
        units = Units(
            self.memory, self.memory.view(np.int64), self.counts, self.numbers, self.known, self.t0, self.h, self.alive,
            self.members, watch.memory, watch.events, watch.n_events, self.helped,
        )  # fmt: skip
        self._arrays = shared, units

    def _single(self, offsets: np.ndarray) -> Steps:
        """The programs for one trajectory, and room for one."""
        programs = self.programs
        sizes = [[p.memory_size, len(p.index), max(p.layout.n_x, p.layout.n_last)] for p in programs]
        starts = np.vstack([np.zeros((1, 3), dtype=np.int64), np.cumsum(sizes, axis=0)]).T.copy()
        counts, numbers = np.zeros(len(programs), dtype=COUNTS), self.numbers[0].copy()
        index, room = np.concatenate([program.index for program in programs]), np.zeros((2 + ROWS, int(starts[2, -1])))
        memory, known = np.zeros(int(starts[0, -1])), np.zeros((len(programs), KNOWN_AGES))
        records = driver_records(programs, programs)
        return Steps(*records, index, memory, counts, numbers, known, room[0], room[1], room[2:], starts, offsets)

    def advance(self) -> None:
        """Run all units to the end, or until the ensemble is told to stop."""
        ensemble, budget = self.ensemble, 100
        if not self.ready:
            self.prepare()
        while np.any(self.status == RUNNING) and not ensemble.stop.is_set():
            began, before = time.perf_counter(), self.counts["steps_done"][:, 0].sum()
            self.take_steps(budget)
            elapsed, done = time.perf_counter() - began, int(self.counts["steps_done"][:, 0].sum() - before)
            if done:
                budget = next_chunk(done, elapsed, len(self.members) * ensemble.steps)
            for unit in np.flatnonzero((self.status == FULL) | (self.status == driver.UNSOLVED)).tolist():
                for lane in np.flatnonzero(self.alive[unit]).tolist():
                    ensemble.events[self.members[unit, lane]] += self.watching.take_events(unit, lane)
                if self.status[unit] == driver.UNSOLVED:
                    self._continue_failed(unit)
                self.status[unit] = RUNNING if np.any(self.alive[unit]) else driver.DONE
            self.steps_done = int(self.counts["steps_done"][:, 0] @ self.alive.sum(axis=1))
        for unit in range(len(self.members)):
            for lane in np.flatnonzero(self.alive[unit]).tolist():
                self._keep_result(unit, lane)
        del self.memory, self.watching, self._arrays

    def take_steps(self, budget: int) -> None:
        """At most `budget` steps of the units that are running."""
        ensemble = self.ensemble
        if self.lanes > 1:
            store = ensemble.rows
            with flushed_to_zero():
                advance_units(*self._arrays, self.status, store, ensemble.steps, ensemble.save_every, budget)
            return
        for unit in np.flatnonzero(self.status == RUNNING).tolist():
            member, counts = self.members[unit, 0], self.counts[unit, :1]
            before = int(counts["steps_done"][0])
            drive = functools.partial(self._drive, unit)
            last_step, rows, events = min(ensemble.steps, before + budget), ensemble.rows[member], ensemble.events[member]
            result = advance_watched(drive, self.watching, unit, events, counts, rows, last_step, ensemble.save_every)
            budget -= int(counts["steps_done"][0]) - before
            if result != driver.DONE or counts["steps_done"][0] == ensemble.steps:
                self.status[unit] = result
            if budget <= 0:
                return

    def _drive(self, unit: int, store: np.ndarray, last_step: int, save_every: int) -> int:
        t0, h = float(self.t0[unit, 0]), float(self.h[unit, 0])
        with flushed_to_zero():
            return driver.advance(self._arrays[unit], store, last_step, save_every, t0, h)

    def _keep_result(self, unit: int, lane: int) -> None:
        """Keep what the ensemble wants of a member that is done."""
        ensemble, member, counts = self.ensemble, int(self.members[unit, lane]), self.counts[unit]
        ensemble.steps_done[member] = counts["steps_done"][0]
        for name, values in ensemble.counts.items():
            values[member] = counts[COUNTED[name]].sum()
        ensemble.counts["followed_steps"][member] += self.helped[unit, lane, 0]
        ensemble.counts["rescued_steps"][member] += self.helped[unit, lane, 1]
        slots = self.memory[unit].reshape(-1, self.lanes)
        n, first, last = self.programs[0].layout.n_carried, self.programs[0].layout, self.programs[-1].layout
        ensemble.last[member, :n] = slots[first.state : first.state + n, lane]
        extra = ensemble.last.shape[1] - n
        if extra and counts["steps_done"][0]:
            begin = self.starts[0, -2] // self.lanes + last.accepted
            ensemble.last[member, n:] = slots[begin : begin + extra, lane]
        ensemble.watched[member] = self.watching.of(unit, lane)
        ensemble.events[member] += self.watching.take_events(unit, lane)

    def _continue_failed(self, unit: int) -> None:
        """Go on with members whose step failed, each in a run of its own."""
        for lane in np.flatnonzero(self.alive[unit] * self.failed):
            self._deactivate(unit, int(lane))
            member = int(self.members[unit, lane])
            try:
                with symbolic():
                    run = self._own_run(unit, int(lane), member)
                reason = run.run_to_end(self.ensemble.stop, unsolved=self.lanes == 1)
            except Exception as error:  # whatever goes wrong with one member must not stop the others
                self.ensemble.failures[member] = f"{type(error).__name__}: {error}"
                self._keep_result(unit, int(lane))
                continue
            self.ensemble.keep(member, run, reason)

    def _deactivate(self, unit: int, lane: int) -> None:
        """What a lane computes is not used from now on."""
        self.alive[unit, lane] = 0.0
        if self.lanes > 1:
            for first, program in zip(self.starts[0, :-1], self.programs, strict=True):
                alive = program.layout.work + CONTROL.index("alive")
                self.memory[unit, first + alive * self.lanes + lane] = 0.0

    def _own_run(self, unit: int, lane: int, member: int) -> MemberRun:
        """A run that continues from the member's current state."""
        ensemble = self.ensemble
        run = MemberRun(ensemble.of_member(member), watch=ensemble.watch)
        slots = self.memory[unit].reshape(-1, self.lanes)
        run.counts[:] = self.counts[unit]
        run.counts["sign"] = ensemble.signs[member]
        run.counts[0]["followed"] += self.helped[unit, lane, 0]
        run.counts[0]["rescued"] += self.helped[unit, lane, 1]
        if self.lanes == 1:
            run.numbers[:], run.known[:] = self.numbers[unit], self.known[unit]
        for k, (stepper, program) in enumerate(zip(run.steppers, self.programs, strict=True)):
            begin, layout = self.starts[0, k] // self.lanes, program.layout
            same = stepper.program is program and self.lanes == 1
            first, last = (0, program.memory_size) if same else (layout.state, layout.x + layout.n_x)  # factors lie at the end
            stepper.memory[first:last] = slots[begin + first : begin + last, lane]
            if not same:
                run.counts[k]["age"] = -1
            stepper.memory[layout.time] = slots[begin + layout.time, lane]
            for name in ("last_h", "taken"):
                place = begin + getattr(layout, name)
                stepper.memory[stepper.slots(name)] = slots[place : place + min(1, layout.n_clock), lane]
        remembered = self.watching.of(unit, lane)
        run.watching.memory[0, : len(remembered)] = remembered
        saved = run.counts[0]["saved"]
        run.rows[:saved] = ensemble.rows[member, :saved]
        return run
