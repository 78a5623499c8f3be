"""A run of many members: lots of them, each carried through its steps by a thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from dalembert._events import TALLIED, Contacts, Impacts
from dalembert._one_thread import one_at_a_time, symbolic
from dalembert.compiler import Program, Watch, build_programs, first_guesses, reduced_step
from dalembert.compiler._lanes import CONTROL
from dalembert.compiler._stopping import fastest
from dalembert.engine import _driver as driver
from dalembert.engine import _layout as at
from dalembert.engine._impact_member import ImpactLot
from dalembert.engine._lanes import FULL, RUNNING, advance_units
from dalembert.engine._member import MemberRun, Watching, advance_watched, aligned
from dalembert.engine._run import CHUNK_SECONDS, _store, one_step
from dalembert.engine._stepper import driver_layout
from dalembert.errors import InputError
from dalembert.impacts import CollisionIntegrator
from dalembert.impacts._program import event_program
from dalembert.methods import OneStepMethod
from dalembert.systems import MechanicalSystem, System
from dalembert.systems._states import States

MOST_OPERATIONS, WIDE_OPERATIONS = 12_000, 500
"""Operations of all kernels up to which four trajectories side by side were faster than one, and eight faster than four."""

LEAST_STEPS = 20_000
"""Steps of all members together from which on compiling for vectors is worth its while."""

LOT = 64
"""The most units that a thread takes at once: enough to make its Python code negligible, few enough to share work evenly."""


def lanes_for(operations: int) -> int:
    """How many trajectories to compute side by side; where vectors are shorter than that, latencies still overlap."""
    return 8 if operations <= WIDE_OPERATIONS and llvm.get_host_cpu_features().get("avx512f") else 4


@dataclass(eq=False)
class EnsembleRun:
    """The mutable side of a simulation of many members, and what it leaves behind."""

    system: System
    method: OneStepMethod
    states: States
    h: np.ndarray
    steps: int
    save_every: int
    newton_tolerance: float | None = None
    stage_multipliers: bool = False
    watch: Watch | None = None
    simd: bool | None = None
    workers: int | None = None
    typical_h: float = 1.0
    """The step size for which programs are made."""
    tally_impacts: bool = False
    """Whether impacts are counted instead of stored."""
    wall_time: float = 0.0
    cpu_time: float = 0.0
    build_time: float = 0.0
    lanes: int = field(default=1, init=False)

    @one_at_a_time
    def __post_init__(self) -> None:
        began, members = time.perf_counter(), len(self.states)
        collides = isinstance(self.method, CollisionIntegrator)
        programs = self._programs()
        extra = programs[-1][0].layout.n_stage_multipliers if self.stage_multipliers else 0
        columns = self.system.n_state + extra
        stored = self.steps // self.save_every + 1
        self.rows = _store(members * stored, columns).reshape(members, stored, columns)
        self.rows[:, 0] = np.nan
        self.rows[:, 0, : self.system.n_state] = self.states.packed
        self.last = self.rows[:, 0].copy()
        self.steps_done, self.iterations, self.factorizations, self.rescued = np.zeros((4, members), dtype=np.int64)
        self.failures: dict[int, str] = {}
        self.watched = np.tile(self.watch.start if self.watch else np.zeros(0), (members, 1))
        self.events: list[list[np.ndarray]] = [[] for _ in range(members)]
        self.impacts: list[Impacts | None] = [None] * members
        self.contacts: list[Contacts | None] = [None] * members
        self.impact_counts: dict[str, np.ndarray] = {}
        self.tallies = np.full((members, len(TALLIED)), np.nan)
        self.workers = min(self.workers or os.cpu_count() or 1, members)
        self.stop = threading.Event()
        self.lots: Sequence[Lot | ImpactLot] = self._impact_lots(programs[0]) if collides else self._lots(programs)
        self.lots[0].prepare()
        self.build_time = time.perf_counter() - began

    def _programs(self) -> list[list[Program]]:
        """For each substep a program for every member; of collision integrators for their full steps."""
        system, states, substeps = self.system, self.states, self.method.substeps
        if isinstance(self.method, CollisionIntegrator) and isinstance(system, MechanicalSystem):
            system, substeps = system.smooth, self.method.full.substeps
            states = replace(states, system=system)
        self.guesses = [first_guesses(reduced_step(system, method), states, fraction * self.h) for method, fraction in substeps]
        self.signs = orientations(states)
        return [
            build_programs(system, method, states, fraction * self.typical_h, guesses, contiguous=len(substeps) == 1)
            for (method, fraction), guesses in zip(substeps, self.guesses, strict=True)
        ]

    def _impact_lots(self, programs: list[Program]) -> list[ImpactLot]:
        """Impacts fall into different steps of different members, so that each is carried on its own."""
        if self.simd:
            raise InputError(
                f"simd=True: impacts fall into different steps of different members, so {self.method} computes them "
                "one by one; leave simd= out"
            )
        if self.watch is not None:
            self.watch.code(1)
        assert isinstance(self.system, MechanicalSystem) and isinstance(self.method, CollisionIntegrator)
        self.given = list(zip(programs, self.guesses[0], self.signs, strict=True))
        counted = event_program(self.system, self.method).counted
        self.impact_counts = {name: np.zeros(len(self.states), dtype=np.int64) for name in counted}
        members = list(range(len(self.states)))
        assert self.workers is not None
        size = max(1, min(LOT, len(members) // (16 * self.workers)))
        return [ImpactLot(self, members[first : first + size]) for first in range(0, len(members), size)]

    def keep(self, member: int, alone: MemberRun, reason: str | None) -> None:
        """What is wanted of a member that went on alone to its end."""
        saved = alone.counts[0, at.SAVED]
        if reason is not None:
            self.failures[member] = reason
        self.rows[member, :saved] = alone.rows[:saved]
        self.last[member] = alone.row
        self.steps_done[member] = alone.steps_done
        self.iterations[member], self.factorizations[member] = alone.counts[:, [at.ITERATIONS, at.FACTORIZATIONS]].sum(axis=0)
        self.rescued[member] = sum(stepper.rescued for stepper in alone.steppers)
        self.watched[member] = alone.watching.of(0, 0)
        self.events[member] += alone.events

    def _lots(self, programs: list[list[Program]]) -> list[Lot]:
        """Members with the same programs, cut into lots, the largest machine vectors first."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for member, programs_here in enumerate(zip(*programs, strict=True)):
            groups.setdefault(tuple(map(id, programs_here)), []).append(member)
        lots = []
        for members in groups.values():
            own = [per_member[members[0]] for per_member in programs]
            lanes = self._lanes(own, len(members))
            units = -(-len(members) // lanes)
            padded = np.full(units * lanes, -1)
            padded[: len(members)] = members
            assert self.workers is not None
            size = max(1, min(LOT, units // (16 * self.workers)))
            for first in range(0, units, size):
                chosen = padded.reshape(units, lanes)[first : first + size]
                lots.append(Lot(self, own, chosen, lanes))
            self.lanes = max(self.lanes, lanes)
            for program in own if lanes > 1 else ():  # compile here: neither LLVM nor CasADi is at home in several threads
                program.in_lanes(lanes)
            if self.watch is not None:
                self.watch.code(lanes)
        return lots

    def _lanes(self, programs: list[Program], members: int) -> int:
        if not all(program.straight_line for program in programs):
            if self.simd:
                raise InputError(
                    f"simd=True: the step equations of {self.method} are too large here for code without loops, which "
                    "vectors need; leave simd= out"
                )
            return 1
        if self.simd is False:
            return 1
        operations = sum(program.operations for program in programs)
        lanes = lanes_for(operations)
        faster = operations <= MOST_OPERATIONS and 2 * members > lanes and members * self.steps >= LEAST_STEPS
        return lanes if self.simd or faster else 1

    @property
    def keeps_impacts(self) -> bool:
        """Whether there may be impacts, and they are stored."""
        return isinstance(self.method, CollisionIntegrator) and not self.tally_impacts

    @property
    def progress(self) -> int:
        """How many steps of all members together are done."""
        return sum(lot.steps_done for lot in self.lots)

    def advance(self, report: Callable[[int], None] | None = None) -> None:
        """Run all members to the end; Ctrl-C leaves everything computed in place, and members that stand before it."""
        began, cpu_began = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="dalembert") as pool:
            futures = [pool.submit(lot.advance) for lot in self.lots]
            try:
                while wait(futures, timeout=CHUNK_SECONDS, return_when="FIRST_EXCEPTION").not_done:
                    if any(future.done() and future.exception() for future in futures):
                        break
                    if report is not None:
                        report(self.progress)
            except KeyboardInterrupt:
                pass  # members that have not finished say so
            finally:
                self.stop.set()
                for future in futures:
                    future.cancel()
        self.wall_time, self.cpu_time = time.perf_counter() - began, time.process_time() - cpu_began
        for future in futures:
            if not future.cancelled():
                future.result()


def prepared(system: System, method: OneStepMethod, states: States, h: np.ndarray) -> States:
    """The states before the first step, for methods that prepare them."""
    for member in range(len(states)) if type(method).check_start is not OneStepMethod.check_start else ():
        method.check_start(system, states[member], float(h[member]))
    if method.starting is None:
        return states
    first = [one_step(system, method.starting, states[k], float(h[k]))[0].packed for k in range(len(states))]
    ready = replace(states, packed=np.array(first))
    return replace(ready, multipliers=np.array([ready[k].multipliers for k in range(len(ready))]))


def orientations(states: States) -> np.ndarray:
    """`orientation_at` for many states."""
    if not states.system.n_multipliers:
        return np.ones(len(states))
    return np.linalg.slogdet(states.evaluate("hidden_z") @ states.evaluate("directions"))[0]


class Lot:
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
        for k, ((_, fraction), program) in enumerate(zip(whole.method.substeps, self.programs, strict=True)):
            part, layout = slots[:, sizes[k] : sizes[k + 1]], program.layout
            part[:, layout.h] = fraction * whole.h[filled]
            for start, values in (
                (layout.theta, whole.states.theta),
                (layout.state, whole.states.packed),
                (layout.x, whole.guesses[k]),
            ):
                part[:, start : start + values.shape[1]] = values[filled].transpose(0, 2, 1)
            if lanes > 1:
                self._set_control(
                    part, layout.work, {"alive": self.members >= 0, "sign": whole.signs[filled], "last_rate": 1.0}
                )
                self._set_control(part, layout.work, {"tolerance": (whole.newton_tolerance or 0.0) ** 2})
        n_sub = len(self.programs)
        self.offsets = np.cumsum([0.0, *(fraction for _, fraction in whole.method.substeps)])[:-1]
        self.counts = np.zeros((units, n_sub, at.N_COUNTS), dtype=np.int64)
        self.counts[:, :, at.AGE], self.counts[:, :, at.MODE], self.counts[:, 0, at.SAVED] = -1, driver.GUESS_READY, 1
        self.counts[:, :, at.SIGN] = whole.signs[filled[:, :1]]
        self.numbers = np.zeros((units, n_sub, at.N_NUMBERS))
        self.numbers[:, :, at.RATE], self.numbers[:, :, at.TOLERANCE] = 1.0, (whole.newton_tolerance or 0.0) ** 2
        self.numbers[:, :, at.FASTEST] = fastest(whole.system)
        self.numbers[:, :, at.COST_RATIO] = [program.cost_ratio for program in self.programs]
        self.known = np.zeros((units, n_sub, at.KNOWN_AGES))
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

    def _set_control(self, part: np.ndarray, first: int, values: dict[str, Any]) -> None:
        """Set numbers by which lanes are controlled."""
        for name, value in values.items():
            part[:, first + CONTROL.index(name)] = value

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
        alone = MemberRun(
            whole.system, whole.method, whole.states[member], float(whole.h[member]), whole.steps, whole.save_every,
            whole.newton_tolerance, whole.stage_multipliers, watch=whole.watch,
        )  # fmt: skip
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
