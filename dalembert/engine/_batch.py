"""Members of an ensemble that share programs: side by side in vectors, or one by one, and alone where a step fails."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.compiler import Program
from dalembert.compiler._lane_kernels import CONTROL
from dalembert.engine import _driver as driver
from dalembert.engine import _layout as at
from dalembert.engine._lane_driver import FULL, RUNNING, advance_units
from dalembert.engine._member import MemberRun, Watching, advance_watched, aligned
from dalembert.engine._run import CHUNK_SECONDS
from dalembert.engine._stepper import begin_steps, driver_layout, set_rules, write_start
from dalembert.symbolic._lock import symbolic

if TYPE_CHECKING:
    from dalembert.engine._ensemble_run import EnsembleRun


class Batch:
    """Some members of an ensemble with the same programs: units of as many members as there are lanes."""

    def __init__(self, whole: EnsembleRun, programs: list[Program], members: np.ndarray, lanes: int) -> None:
        self.whole, self.programs, self.members, self.lanes = whole, programs, members, lanes
        self.steps_done, self.ready = 0, False

    def prepare(self) -> None:
        """Memory for all units, filled as that of a `Run`."""
        whole, lanes, (units, _) = self.whole, self.lanes, self.members.shape
        codes = [program.in_lanes(lanes) if lanes > 1 else program for program in self.programs]
        self.kernels = np.stack([code.addresses for code in codes])
        self.layouts = np.stack([driver_layout(program) for program in self.programs])
        self.index = np.concatenate([program.index for program in self.programs])
        sizes = np.cumsum([0, *(code.memory_size for code in codes)])
        tables = np.cumsum([0, *(len(program.index) for program in self.programs)])
        unknowns = np.cumsum([0, *(program.layout.n_x for program in self.programs)])
        self.starts = np.vstack([sizes * lanes, tables, unknowns * lanes])
        self.memory = aligned(units, int(sizes[-1]) * lanes)
        slots = self.memory.reshape(units, -1, lanes)
        filled = np.where(self.members < 0, self.members[0, 0], self.members)  # lanes without a member repeat one that is there
        n_sub = len(self.programs)
        self.offsets = np.cumsum([0.0, *(fraction for _, fraction in whole.method.substeps)])[:-1]
        self.counts = np.zeros((units, n_sub, at.N_COUNTS), dtype=np.int64)
        self.counts[:, 0, at.SAVED] = 1
        self.numbers, self.known = np.zeros((units, n_sub, at.N_NUMBERS)), np.zeros((units, n_sub, at.KNOWN_AGES))
        begin_steps(self.counts, self.numbers, self.known)
        tolerance = whole.spec.tolerance
        for k, ((_, fraction), program) in enumerate(zip(whole.method.substeps, self.programs, strict=True)):
            part = slots[:, sizes[k] : sizes[k + 1]].transpose(1, 0, 2)
            theta, state, x = (
                values[filled].transpose(2, 0, 1) for values in (whole.states.theta, whole.states.packed, whole.guesses[k])
            )
            write_start(part, program.layout, fraction * whole.h[filled], theta, state, x)
            counts, numbers = self.counts[:, k], self.numbers[:, k]
            set_rules(counts, numbers, program, whole.system, whole.signs[filled[:, 0]], tolerance)
            if lanes > 1:
                control = part[program.layout.work :]
                for name, value in {
                    "alive": self.members >= 0, "sign": whole.signs[filled], "last_rate": 1.0, "tolerance": tolerance**2,
                }.items():  # fmt: skip
                    control[CONTROL.index(name)] = value
        self.guess, self.work = np.zeros((2, int(unknowns[-1]) * lanes))
        self.alive = (self.members >= 0).astype(float)
        self.t0, self.h = whole.states.t[filled], whole.h[filled]
        self.controls = np.array([program.layout.work * lanes for program in self.programs])
        self.failed = np.ones(lanes)
        self.watching = Watching(whole.watch, whole.states.theta[filled], lanes)
        self.status, self.ready = np.full(units, RUNNING), True
        self.watching.begin(self.t0, whole.states.packed[filled])
        self.take_steps(0)  # loads the compiled driver, so that no run's time includes it

    def advance(self) -> None:
        """Carry all units to the end, or until the ensemble is told to stop."""
        whole, budget = self.whole, 100
        if not self.ready:
            self.prepare()
        while np.any(self.status == RUNNING) and not whole.stop.is_set():
            began, before = time.perf_counter(), self.counts[:, 0, at.STEPS_DONE].sum()
            self.take_steps(budget)
            elapsed = time.perf_counter() - began
            if self.counts[:, 0, at.STEPS_DONE].sum() > before:
                budget = int(np.clip(budget * CHUNK_SECONDS / max(elapsed, 1e-4), 1, 10 * budget))
            for unit in np.flatnonzero((self.status == FULL) | (self.status == driver.UNSOLVED)).tolist():
                for lane in np.flatnonzero(self.alive[unit]).tolist():
                    whole.events[self.members[unit, lane]] += self.watching.take_events(unit, lane)
                if self.status[unit] == driver.UNSOLVED:
                    self._let_leave(unit)
                self.status[unit] = RUNNING if np.any(self.alive[unit]) else driver.DONE
            self.steps_done = int(self.counts[:, 0, at.STEPS_DONE] @ self.alive.sum(axis=1))
        for unit in range(len(self.members)):
            for lane in np.flatnonzero(self.alive[unit]).tolist():
                self._harvest(unit, lane)
        del self.memory, self.watching

    def take_steps(self, budget: int) -> None:
        """At most `budget` steps of the units that are running."""
        whole, watch = self.whole, self.watching
        if self.lanes == 1:
            self._take_single_steps(budget)
            return
        advance_units(
            self.kernels, self.layouts, self.memory, self.memory.view(np.int64), self.counts, self.numbers, self.known,
            self.guess, self.starts[[0, 2]], self.offsets, self.controls, whole.rows, self.members, whole.steps,
            whole.save_every, self.t0, self.h, self.alive, self.failed, self.lanes, watch.address, watch.plan, watch.memory,
            watch.events, watch.n_events, self.status, budget,
        )  # fmt: skip

    def _take_single_steps(self, budget: int) -> None:
        whole = self.whole
        for unit in np.flatnonzero(self.status == RUNNING):
            member, counts = self.members[unit, 0], self.counts[unit]
            before = int(counts[0, at.STEPS_DONE])
            t0, h = float(self.t0[unit, 0]), float(self.h[unit, 0])
            parts = (
                self.kernels, self.layouts, self.index, self.memory[unit], counts, self.numbers[unit], self.known[unit],
                self.guess, self.work, self.starts, self.offsets,
            )  # fmt: skip

            def drive(
                store: np.ndarray, last_step: int, save_every: int, parts: Any = parts, t0: float = t0, h: float = h
            ) -> int:
                return driver.advance(*parts, store, last_step, save_every, t0, h)

            result = advance_watched(
                drive, counts, whole.rows[member], min(whole.steps, before + budget), whole.save_every, t0, h, self.watching,
                int(unit), whole.events[member],
            )  # fmt: skip
            budget -= int(counts[0, at.STEPS_DONE]) - before
            if result != driver.DONE or counts[0, at.STEPS_DONE] == whole.steps:
                self.status[unit] = result
            if budget <= 0:
                return

    def _harvest(self, unit: int, lane: int) -> None:
        """Keep what the ensemble wants of a member that is done."""
        whole, member, counts = self.whole, int(self.members[unit, lane]), self.counts[unit]
        whole.steps_done[member] = counts[0, at.STEPS_DONE]
        whole.iterations[member], whole.factorizations[member] = counts[:, [at.ITERATIONS, at.FACTORIZATIONS]].sum(axis=0)
        slots = self.memory[unit].reshape(-1, self.lanes)
        n, first, last = self.whole.system.n_state, self.programs[0].layout, self.programs[-1].layout
        whole.last[member, :n] = slots[first.state : first.state + n, lane]
        extra = whole.last.shape[1] - n
        if extra and counts[0, at.STEPS_DONE]:
            begin = self.starts[0, -2] // self.lanes + last.accepted
            whole.last[member, n:] = slots[begin : begin + extra, lane]
        whole.watched[member] = self.watching.of(unit, lane)
        whole.events[member] += self.watching.take_events(unit, lane)

    def _let_leave(self, unit: int) -> None:
        """Members whose step failed go on alone."""
        for lane in np.flatnonzero(self.alive[unit] * self.failed):
            self._dismiss(unit, int(lane))
            member = int(self.members[unit, lane])
            try:
                with symbolic:
                    alone = self._alone(unit, int(lane), member)
                reason = alone.go_on(self.whole.stop, unsolved=self.lanes == 1)
            except Exception as error:  # whatever goes wrong with one member must not stop the others
                self.whole.failures[member] = f"{type(error).__name__}: {error}"
                self._harvest(unit, int(lane))
                continue
            self.whole.keep(member, alone, reason)

    def _dismiss(self, unit: int, lane: int) -> None:
        """From now on a lane may compute what it likes."""
        self.alive[unit, lane] = 0.0
        if self.lanes > 1:
            for first, program in zip(self.starts[0, :-1], self.programs, strict=True):
                alive = program.layout.work + CONTROL.index("alive")
                self.memory[unit, first + alive * self.lanes + lane] = 0.0

    def _alone(self, unit: int, lane: int, member: int) -> MemberRun:
        """A run that stands where the member stands."""
        whole = self.whole
        alone = MemberRun(whole.of_member(member), watch=whole.watch)
        slots = self.memory[unit].reshape(-1, self.lanes)
        alone.counts[:] = self.counts[unit]
        alone.counts[:, at.SIGN] = whole.signs[member]
        if self.lanes == 1:
            alone.numbers[:], alone.known[:] = self.numbers[unit], self.known[unit]
        for k, (stepper, program) in enumerate(zip(alone.steppers, self.programs, strict=True)):
            begin, layout = self.starts[0, k] // self.lanes, program.layout
            same = stepper.program is program and self.lanes == 1
            first, last = (0, layout.work) if same else (layout.state, layout.x + layout.n_x)
            stepper.memory[first:last] = slots[begin + first : begin + last, lane]
            if not same:
                alone.counts[k, at.AGE] = -1
            stepper.memory[layout.time] = slots[begin + layout.time, lane]
        remembered = self.watching.of(unit, lane)
        alone.watching.memory[0, : len(remembered)] = remembered
        saved = alone.counts[0, at.SAVED]
        alone.rows[:saved] = whole.rows[member, :saved]
        return alone
