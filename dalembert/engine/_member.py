"""One member of an ensemble at a time: what a watch sees of it, and a run of its own where it needs one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dalembert.compiler import Watch
from dalembert.engine import _driver as driver
from dalembert.engine._lane_records import watch_rows
from dalembert.engine._run import Run
from dalembert.systems import State

ROOM = 256
"""How many states, or events, are kept before a watch, or Python, looks at them."""


class WatchState:
    """What a watch remembers of every unit and lane, and the events that it found; they start at t0 with step sizes h."""

    def __init__(self, watch: Watch | None, theta: np.ndarray, t0: np.ndarray, h: np.ndarray) -> None:
        units, lanes = t0.shape
        self.watch, self.lanes, self.t0, self.h = watch, lanes, t0, h
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
        self._slots[:, 1 : 1 + watch.n_theta] = theta.transpose(0, 2, 1)[:, : watch.n_theta]
        self.events = np.zeros((units, lanes, ROOM if watch.event_size else 0, watch.event_size))

    def begin(self, states: np.ndarray) -> None:
        """Show the start of every unit and lane: kernels are called directly, none of these being an event."""
        if self.watch is None:
            return
        size, theta = len(self.watch.start), np.zeros((1, 1, self.watch.n_theta))
        for unit, lane in np.ndindex(self.n_events.shape):
            single = WatchState(self.watch, theta, self.t0[unit, lane].reshape(1, 1), np.zeros((1, 1)))
            single.memory[0, :size] = self._slots[unit, :size, lane]
            single.show(0, states[unit, lane][None], -1)
            self._slots[unit, :size, lane] = single.memory[0, :size]

    def show(self, unit: int, rows: np.ndarray, before: int) -> None:
        """Show the states after steps `before` + 1, ... of a single trajectory, at most ROOM of them."""
        t0, h = float(self.t0[unit, 0]), float(self.h[unit, 0])
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
    watching: WatchState,
    unit: int,
    events: list[np.ndarray],
    counts: np.ndarray,
    store: np.ndarray,
    last_step: int,
    save_every: int,
) -> int:
    """Drive one trajectory; pieces of ROOM steps are shown to the watch, if there is one, and stored then."""
    if watching.watch is None:
        return drive(store, last_step, save_every)
    piece, run = np.empty((ROOM, store.shape[1])), counts[0]
    status = driver.DONE
    while status == driver.DONE and run["steps_done"] < last_step:
        before = int(run["steps_done"])
        run["saved"] = 0
        status = drive(piece, min(last_step, before + ROOM), 1)
        done = int(run["steps_done"])
        watching.show(unit, piece[: done - before], before)
        events += watching.take_events(unit, 0)
        stored = piece[: done - before][-(before + 1) % save_every :: save_every]
        run["saved"] = done // save_every + 1
        store[before // save_every + 1 : done // save_every + 1] = stored
    return status


class Stopped(Exception):
    """The ensemble is told to stop."""


@dataclass
class MemberRun(Run):
    """The run of one member, because a step of it needs more than the compiled iteration, or its method a driver of its own."""

    watch: Watch | None = None
    events: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        start = self.spec.start
        assert isinstance(start, State)
        t0, h = np.full((1, 1), start.t), np.full((1, 1), self.spec.h)
        self.watching = WatchState(self.watch, start.theta[None, None], t0, h)
        super().__post_init__()

    def run_to_end(self, stop: threading.Event, unsolved: bool) -> str | None:
        """Run to the end, or until `stop`, beginning with the rescue of an `unsolved` step; why not, if one fails for good."""

        def stop_if_told(_: int) -> None:
            if stop.is_set():
                raise Stopped

        reason = self.rescue() if unsolved else None
        if reason is None:
            with contextlib.suppress(Stopped):
                reason = self.advance(stop_if_told)
        return reason

    def _advance_to(self, last_step: int) -> int:
        ends = (last_step, self.save_every)
        return advance_watched(self._drive, self.watching, 0, self.events, self.counts, self.rows, *ends)

    def show(self, states: np.ndarray) -> None:
        """Let the watch see the states of the last steps, where no driver made them."""
        if self.watch is not None:
            self.watching.show(0, states, self.steps_done - len(states))
            self.events += self.watching.take_events(0, 0)


def aligned(units: int, size: int) -> np.ndarray:
    """Zeros, each row beginning where a vector of eight numbers may, if its size is a multiple of that."""
    raw = np.zeros(units * size + 8)
    first = (-raw.ctypes.data // 8) % 8
    return raw[first : first + units * size].reshape(units, size)
