"""What is to be reached, and the positions along a run that is only tried: block by block, given up where that is wanted."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dalembert.engine._spec import RunSpec
from dalembert.errors import StepFailed
from dalembert.methods import OneStepMethod
from dalembert.runs._drivers import make_run, prepared, silence
from dalembert.systems import State, System
from dalembert.systems._units import LEAST_OF_ALL, LEAST_SIZE, units

if TYPE_CHECKING:
    from dalembert.engine._run import Run

MOST_ROWS = 4096
"""States that are kept along a pilot, however many steps it takes."""


@dataclass(frozen=True, eq=False)
class Task:
    """A motion, and how exact its positions are to be: |error_i| <= atol + rtol * size of coordinate i."""

    system: System
    start: State
    t1: float
    rtol: float
    atol: float = 0.0

    @property
    def length(self) -> float:
        """How long the motion lasts, forwards or backwards."""
        return abs(self.t1 - self.start.t)

    @property
    def direction(self) -> float:
        """1 for a motion into the future, -1 into the past."""
        return math.copysign(1.0, self.t1 - self.start.t)

    def at(self, passed: float) -> float:
        """The time when so much has passed since the start."""
        return self.start.t + self.direction * passed

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The coordinates of each unit."""
        return units(self.system)

    def sizes(self, q: np.ndarray) -> np.ndarray:
        """The size of each coordinate along a run."""
        return sizes(self.units, q)

    def tolerances(self, q: np.ndarray) -> np.ndarray:
        """How large the error of each coordinate may be."""
        return self.atol + self.rtol * self.sizes(q)


class Stopped(Exception):
    """A run that nobody waits for any more."""


@dataclass
class Path:
    """The positions along a run until it ended or failed: the first, then block by block, as all may not fit into memory."""

    task: Task
    method: OneStepMethod
    h: float
    """Larger than zero; steps go in the direction of the motion."""
    steps: int
    every: int = 1
    """Every so many-th state and the last one are shown."""
    block: int = MOST_ROWS
    beside: Path | None = None
    """A run of twice as large steps, which is not left behind: where that fails, this one ends."""
    most: float = math.inf
    """Newton iterations a step in a block, other than the first, with which the run is given up."""
    over: threading.Event | None = None
    """Set from outside to end it, with the exception `Stopped`."""
    reason: str | None = field(default=None, init=False)
    """Why the run failed, if it did."""
    hard: bool = field(default=False, init=False)
    """Whether it was given up because of too many iterations."""
    largest: np.ndarray = field(init=False)
    """The largest magnitude of every variable, momenta among them."""
    pace: float = field(default=0.0, init=False)
    """Seconds that a step took."""
    effort: float = field(default=0.0, init=False)
    """Newton iterations that a step took, or a substep of a composition."""

    def __post_init__(self) -> None:
        self.largest = np.abs(self.task.start.packed)

    def __iter__(self) -> Iterator[np.ndarray]:
        task, n = self.task, self.task.system.n_state
        spec = RunSpec(task.system, self.method, task.start, task.direction * self.h, self.steps, self.every)
        try:
            run = make_run(prepared(spec), room=self.block + 2)
            silence(run)  # large steps may be hard to solve: that is what is to be found out
        except StepFailed as error:
            self.reason = str(error)
            yield positions(task.system, task.start.packed[None])
            return
        yield positions(task.system, run.rows[:1, :n]).copy()
        while self.reason is None and run.steps_done < self._last():
            run.counts[0]["saved"] = 0  # the block before it has been read
            before = run.steps_done, iterations(run)
            reason = run.advance(self._go_on, last_step=min(self._last(), run.steps_done + self.block * self.every))
            self.pace, self.effort = (whole / max(1, run.steps_done) for whole in (run.wall_time, iterations(run)))
            states = run.rows[: run.counts[0]["saved"], :n]
            if reason is not None:
                self.steps = run.steps_done
                self.reason = f"t = {run.time:.6g}: {without_advice(reason)}"
            elif before[0] and iterations(run) - before[1] > self.most * (run.steps_done - before[0]):
                self.steps, self.hard = run.steps_done, True
                self.reason = f"t = {run.time:.6g}: steps of h = {self.h:.1g} are hard to solve"
            elif run.steps_done == self.steps and self.steps % self.every:
                states = np.vstack([states, run.row[:n]])
            self.largest = np.maximum(self.largest, np.max(np.abs(states), axis=0, initial=0.0))
            yield positions(task.system, states).copy()

    @property
    def plan(self) -> tuple[float, int, int, int]:
        """What it makes of its task."""
        return self.h, self.steps, self.every, self.block

    def _go_on(self, done: int) -> None:
        del done
        if self.over is not None and self.over.is_set():
            raise Stopped

    def _last(self) -> int:
        return self.steps if self.beside is None else min(self.steps, 2 * self.beside.steps)


def iterations(run: Run) -> float:
    """Newton iterations of a run so far, of each of the substeps of a composition in the mean."""
    return float(run.counts["iterations"].mean())


def positions(system: System, states: np.ndarray) -> np.ndarray:
    """The coordinates of stored states; all variables of systems that have no others."""
    (_, first), _ = system.state_blocks
    return np.asarray(states[:, : first or system.n_state])


def sizes(units: tuple[tuple[int, ...], ...], q: np.ndarray) -> np.ndarray:
    """The largest magnitude of every coordinate along a run, but at least a thousandth of the largest of its unit."""
    largest = np.max(np.abs(q), axis=0, initial=0.0)
    overall = np.max(largest, initial=0.0) or 1.0
    found = np.empty_like(largest)
    for same in map(list, units):
        least = max(LEAST_SIZE * np.max(largest[same]), (LEAST_OF_ALL if len(units) > 1 else LEAST_SIZE) * overall)
        found[same] = np.maximum(largest[same], least)
    return found


def without_advice(reason: str) -> str:
    """Why a step failed, without the advice about h at its end: here h is chosen, not given."""
    return re.sub(r": [^:]*\bh\b[^:]*$", "", reason)
