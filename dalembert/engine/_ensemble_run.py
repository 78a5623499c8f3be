"""A run of many members: lots of them, each carried through its steps by a thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

import llvmlite.binding as llvm
import numpy as np

from dalembert.compiler import Program, Watch, build_programs, first_guesses, reduced_step
from dalembert.contact import CollisionIntegrator
from dalembert.contact._event_program import event_program
from dalembert.contact._impact_member import ImpactLot
from dalembert.contact._records import TALLIED, Contacts, Impacts
from dalembert.engine import _layout as at
from dalembert.engine._batch import Lot
from dalembert.engine._member import MemberRun
from dalembert.engine._run import CHUNK_SECONDS, _store, one_step
from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.symbolic._lock import one_at_a_time
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
