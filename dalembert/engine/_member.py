"""One member of an ensemble at a time: what a watch sees of it, and a run of its own where it needs one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dalembert.compiler import Watch
from dalembert.engine import _driver as driver
from dalembert.engine import _layout as at
from dalembert.engine._lane_driver import watch_rows
from dalembert.engine._run import Run
from dalembert.systems import State

ROOM = 256
"""How many states, or events, are kept before a watch, or Python, looks at them."""


class Watching:
    """A watch at work: its memory for every unit and lane, and the room for events."""

    def __init__(self, watch: Watch | None, theta: np.ndarray, lanes: int) -> None:
        units = len(theta)
        self.watch, self.lanes = watch, lanes
        self.n_events = np.zeros((units, lanes), dtype=np.int64)
        if watch is None:
            self.address, self.plan, self.memory = 0, np.zeros(5, dtype=np.int64), np.zeros((units, 0))
            self.events = np.zeros((units, lanes, 0, 0))
            return
        self._code, size = watch.code(lanes)
        self.address, self.plan = self._code.addresses[watch.kernel.name], watch.plan
        self.memory = aligned(units, size * lanes)
        self._slots = self.memory.reshape(units, size, lanes)
        self._slots[:, : len(watch.start)] = watch.start[:, None]
        self._slots[:, 1 : 1 + watch.n_theta] = theta.transpose(0, 2, 1)
        self.events = np.zeros((units, lanes, ROOM if watch.event_size else 0, watch.event_size))

    def begin(self, t0: np.ndarray, states: np.ndarray) -> None:
        """Show the start of every unit and lane: kernels are called directly, none of these being an event."""
        if self.watch is None:
            return
        alone = Watching(self.watch, np.zeros((1, 1, self.watch.n_theta)), 1)
        size = len(self.watch.start)
        for unit, lane in np.ndindex(self.n_events.shape):
            alone.memory[0, :size] = self._slots[unit, :size, lane]
            alone.look(0, states[unit, lane][None], -1, float(t0[unit, lane]), 0.0)
            self._slots[unit, :size, lane] = alone.memory[0, :size]

    def look(self, unit: int, rows: np.ndarray, before: int, t0: float, h: float) -> None:
        """Show the states after steps `before` + 1, ... of a single trajectory, at most ROOM of them."""
        found = watch_rows(self.address, self.plan, self.memory[unit], rows, before, t0, h, self.events[unit, 0])
        self.n_events[unit, 0] = found

    def of(self, unit: int, lane: int) -> np.ndarray:
        """What is remembered of one trajectory."""
        return np.zeros(0) if self.watch is None else self._slots[unit, : len(self.watch.start), lane].copy()

    def take_events(self, unit: int, lane: int) -> list[np.ndarray]:
        """The events of one trajectory, which make room for new ones."""
        found = [row.copy() for row in self.events[unit, lane, : self.n_events[unit, lane]]]
        self.n_events[unit, lane] = 0
        return found


def advance_watched(
    drive: Callable[[np.ndarray, int, int], int],
    counts: np.ndarray,
    store: np.ndarray,
    last_step: int,
    save_every: int,
    t0: float,
    h: float,
    watching: Watching,
    unit: int,
    events: list[np.ndarray],
) -> int:
    """Drive one trajectory, stored in pieces of ROOM steps that a watch, if there is one, looks at."""
    if watching.watch is None:
        return drive(store, last_step, save_every)
    piece = np.empty((ROOM, store.shape[1]))
    status = driver.DONE
    while status == driver.DONE and counts[0, at.STEPS_DONE] < last_step:
        before = int(counts[0, at.STEPS_DONE])
        counts[0, at.SAVED] = 0
        status = drive(piece, min(last_step, before + ROOM), 1)
        done = int(counts[0, at.STEPS_DONE])
        watching.look(unit, piece[: done - before], before, t0, h)
        events += watching.take_events(unit, 0)
        stored = piece[: done - before][-(before + 1) % save_every :: save_every]
        counts[0, at.SAVED] = done // save_every + 1
        store[before // save_every + 1 : done // save_every + 1] = stored
    return status


class Stopped(Exception):
    """The ensemble is told to stop."""


@dataclass
class MemberRun(Run):
    """A member that goes on alone, because a step of it needs more than the compiled iteration, or its method more than one."""

    watch: Watch | None = None
    events: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert isinstance(self.spec.start, State)
        self.watching = Watching(self.watch, self.spec.start.theta[None, None], 1)
        super().__post_init__()

    def go_on(self, stop: threading.Event, unsolved: bool) -> str | None:
        """Run to the end, or until `stop`, beginning with the rescue of an `unsolved` step; why not, if one fails for good."""

        def look(_: int) -> None:
            if stop.is_set():
                raise Stopped

        reason = self._rescue() if unsolved else None
        if reason is None:
            with contextlib.suppress(Stopped):
                reason = self.advance(look)
        return reason

    def _advance_to(self, last_step: int) -> int:
        numbers = (last_step, self.save_every, self.start.t, self.h)
        return advance_watched(self._drive, self.counts, self.rows, *numbers, self.watching, 0, self.events)

    def show(self, states: np.ndarray) -> None:
        """Let the watch see the states of the last steps, where no driver made them."""
        if self.watch is not None:
            self.watching.look(0, states, self.steps_done - len(states), self.start.t, self.h)
            self.events += self.watching.take_events(0, 0)


def aligned(units: int, size: int) -> np.ndarray:
    """Zeros, each row beginning where a vector of eight numbers may, if its size is a multiple of that."""
    raw = np.zeros(units * size + 8)
    first = (-raw.ctypes.data // 8) % 8
    return raw[first : first + units * size].reshape(units, size)
