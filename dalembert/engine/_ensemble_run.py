"""A run of many members: batches of them, each computed by a thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dalembert._progress import phase
from dalembert.compiler import Program, Watch, build_programs, first_guesses, reduced_step
from dalembert.compiler._independence import independent_states
from dalembert.compiler._jit import has_long_vectors
from dalembert.compiler._metric import metric_at
from dalembert.engine._batch import Batch
from dalembert.engine._layout import COUNTED
from dalembert.engine._member import MemberRun
from dalembert.engine._run import CHUNK_SECONDS, STAGES_OF_COMBINED, _store
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import System
from dalembert.systems._states import States

MOST_OPERATIONS, WIDE_OPERATIONS = 12_000, 500
"""Operations of all kernels up to which four trajectories side by side were faster than one, and eight faster than four."""

LEAST_STEPS = 20_000
"""Steps of all members together from which on compiling for vectors is worth its while."""

MOST_UNITS = 64
"""The most units that a thread takes at once: enough to make its Python code negligible, few enough to share work evenly."""


def lanes_for(operations: int) -> int:
    """How many trajectories to compute side by side; where vectors are shorter than that, latencies still overlap."""
    return 8 if operations <= WIDE_OPERATIONS and has_long_vectors() else 4


@dataclass(eq=False)
class EnsembleRun:
    """The mutable side of a simulation of many members, and what it leaves behind."""

    spec: RunSpec
    """Of which `start` are the states of all members."""
    sizes: np.ndarray | None = None
    """Step sizes of the members, where they differ."""
    watch: Watch | None = None
    simd: bool | None = None
    workers: int | None = None
    wall_time: float = 0.0
    cpu_time: float = 0.0
    build_time: float = 0.0
    lanes: int = field(default=1, init=False)

    @one_at_a_time
    def __post_init__(self) -> None:
        self.spec = self.spec.in_own_time
        self.columns = getattr(self.spec.system, "columns", None)
        assert isinstance(self.spec.start, States)
        states = independent_states(self.spec.start)
        if states is not self.spec.start:
            self.spec = replace(self.spec, system=states.system, start=states)
        spec = self.spec
        self.system, self.method, self.states, self.steps = spec.system, spec.method, states, spec.steps
        self.save_every, self.stage_multipliers = spec.save_every, spec.stage_multipliers
        if self.stage_multipliers and self.system.combines is not None:
            raise UnsupportedSystem(STAGES_OF_COMBINED)
        began, members = time.perf_counter(), len(self.states)
        self.h = np.full(members, spec.h) if self.sizes is None else self.sizes
        self.clocks, self.first_h = np.zeros((members, 0)), self.h
        if self.method.varies_steps:
            self.clocks = np.array([self.method.clock_at(self.system, states[k], spec.h) for k in range(members)])
            self.first_h = 1 / self.clocks[:, 1]
        programs = self._programs()
        extra = programs[-1][0].layout.n_stage_multipliers if self.stage_multipliers else 0
        begins = np.hstack([self.states.packed, self.clocks])
        columns = begins.shape[1] + extra
        stored = self.steps // self.save_every + 1
        self.rows = _store(members * stored, columns).reshape(members, stored, columns)
        self.rows[:, 0] = np.nan
        self.rows[:, 0, : begins.shape[1]] = begins
        self.last = self.rows[:, 0].copy()
        self.steps_done = np.zeros(members, dtype=np.int64)
        self.counts = {name: np.zeros(members, dtype=np.int64) for name in COUNTED}
        self.failures: dict[int, str] = {}
        self.watched = np.tile(self.watch.start if self.watch else np.zeros(0), (members, 1))
        self.events: list[list[np.ndarray]] = [[] for _ in range(members)]
        self.impact_counts: dict[str, np.ndarray] = {}
        self.tallies = np.zeros((members, 0))
        self.workers = min(self.workers or os.cpu_count() or 1, members)
        self.stop = threading.Event()
        self.batches = self._batches(programs)
        phase("the step loop")
        self.batches[0].prepare()
        self.build_time = time.perf_counter() - began

    def of_member(self, member: int) -> RunSpec:
        """The run of one member."""
        return replace(self.spec, start=self.states[member], h=float(self.h[member]))

    def _programs(self) -> list[list[Program]]:
        """For each substep a program for every member."""
        return self._smooth_programs(self.system, self.method, self.states)

    def _smooth_programs(self, system: System, method: OneStepMethod, states: States) -> list[list[Program]]:
        substeps = method.substeps
        self.guesses = [
            first_guesses(reduced_step(system, part), states, fraction * self.first_h) for part, fraction in substeps
        ]
        self.signs, self.metric = orientations(states), metric_at(states)
        return [
            build_programs(
                system, part, states, fraction * self.spec.h, guesses, contiguous=len(substeps) == 1, alone=self.spec.alone
            )
            for (part, fraction), guesses in zip(substeps, self.guesses, strict=True)
        ]

    def stored(self, rows: np.ndarray) -> np.ndarray:
        """Rows as they are kept: the variables of the system that was asked for, then the clock and multipliers of stages."""
        return rows if self.columns is None else rows[..., self.columns]

    def keep(self, member: int, run: MemberRun, reason: str | None) -> None:
        """Keep the results of a member's own run, and why it failed, if it did."""
        saved = run.counts[0]["saved"]
        if reason is not None:
            self.failures[member] = reason
        self.rows[member, :saved] = run.rows[:saved]
        self.last[member] = run.row
        self.steps_done[member] = run.steps_done
        for name, values in self.counts.items():
            values[member] = run.counts[COUNTED[name]].sum()
        self.watched[member] = run.watching.of(0, 0)
        self.events[member] += run.events

    def _batches(self, programs: list[list[Program]]) -> Sequence[Any]:
        """Members with the same programs, cut into batches, in the longest machine vectors."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for member, programs_here in enumerate(zip(*programs, strict=True)):
            groups.setdefault(tuple(map(id, programs_here)), []).append(member)
        batches = []
        for members in groups.values():
            own = [per_member[members[0]] for per_member in programs]
            lanes = self._lanes(own, len(members))
            units = -(-len(members) // lanes)
            padded = np.full(units * lanes, -1)
            padded[: len(members)] = members
            assert self.workers is not None
            size = max(1, min(MOST_UNITS, units // (16 * self.workers)))
            for first in range(0, units, size):
                chosen = padded.reshape(units, lanes)[first : first + size]
                batches.append(Batch(self, own, chosen, lanes))
            self.lanes = max(self.lanes, lanes)
            for program in own if lanes > 1 else ():  # compile here: neither LLVM nor CasADi may be used by several threads
                program.in_lanes(lanes)
            if self.watch is not None:
                self.watch.code(lanes)
        return batches

    def _lanes(self, programs: list[Program], members: int) -> int:
        if self.method.rejects:
            if self.simd:
                raise InputError(f"simd=True: members reject different steps of {self.method}: leave simd= out")
            return 1
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
    def progress(self) -> int:
        """How many steps of all members together are done."""
        return sum(batch.steps_done for batch in self.batches)

    def advance(self, report: Callable[[int], None] | None = None) -> None:
        """Run all members to the end; Ctrl-C leaves everything computed in place, and members that stand before it."""
        began, cpu_began = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="dalembert") as pool:
            futures = [pool.submit(batch.advance) for batch in self.batches]
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


def orientations(states: States) -> np.ndarray:
    """`orientation_at` for many states."""
    if not states.system.n_multipliers:
        return np.ones(len(states))
    return np.linalg.slogdet(states.evaluate("hidden_z") @ states.evaluate("directions"))[0]
