"""A member of an ensemble that goes on alone, because a step of it needs more than the compiled iteration."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field

import numpy as np

from dalembert.compiler import Watch
from dalembert.engine import _driver as driver
from dalembert.engine._many import FULL, advance_unit
from dalembert.engine._run import Run

EVENT_ROOM = 64
"""How many crossings of a section a unit keeps before Python takes them."""

ALIVE = np.ones(1)

python_only = threading.Lock()
"""Held while a thread rescues a step, which may compile."""


class Stopped(Exception):
    """The ensemble is told to stop."""


@dataclass
class MemberRun(Run):
    """A `Run` under a watch."""

    watch: Watch | None = None
    events: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._watch = Watching(self.watch, np.array([[self.start.theta]]), 1)
        super().__post_init__()

    @property
    def watched(self) -> np.ndarray:
        """The memory of the watch."""
        return self._watch.memory[0]

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

    def _rescue(self) -> str | None:
        with python_only:
            return super()._rescue()

    def _advance_to(self, last_step: int) -> int:
        watch, t0, h = self._watch, np.array([self.start.t]), np.array([self.h])
        now = np.zeros(1)
        while True:
            status = advance_unit(
                self.kernels, self.layouts, self.index, self.memory, self.counts, self.numbers, self.known, self.guess, self.work,
                self.starts, self.offsets, self.rows[None], np.zeros(1, dtype=np.int64), last_step, self.save_every, t0, h,
                ALIVE, 1, self.starts[0], self.memory.view(np.int64), now, now, watch.address, watch.plan, watch.memory[0],
                watch.events[0], watch.n_events[0],
            )  # fmt: skip
            self.events += watch.take_events(0, 0)
            if status != FULL:
                return driver.DONE if status == driver.DONE else driver.UNSOLVED


class Watching:
    """A watch at work: its memory for every unit and lane, and the room for events."""

    def __init__(self, watch: Watch | None, theta: np.ndarray, lanes: int) -> None:
        units = len(theta)
        self.watch, self.lanes = watch, lanes
        if watch is None:
            self.address, self.plan, self.memory = 0, np.zeros(4, dtype=np.int64), np.zeros((units, 0))
            self.events = np.zeros((units, lanes, 0, 0))
        else:
            self._code, size = watch.code(lanes)
            self.address, self.plan = self._code.addresses[watch.kernel.name], watch.plan
            self.memory = aligned(units, size * lanes)
            slots = self.memory.reshape(units, size, lanes)
            slots[:, : len(watch.start)] = watch.start[:, None]
            slots[:, 1 : 1 + watch.n_theta] = theta.transpose(0, 2, 1)
            self.events = np.zeros((units, lanes, EVENT_ROOM if watch.event_size else 0, watch.event_size))
        self.n_events = np.zeros((units, lanes), dtype=np.int64)

    def of(self, unit: int, lane: int) -> np.ndarray:
        """What is remembered of one trajectory."""
        if self.watch is None:
            return np.zeros(0)
        return self.memory[unit].reshape(-1, self.lanes)[: len(self.watch.start), lane].copy()

    def take_events(self, unit: int, lane: int) -> list[np.ndarray]:
        """The events of one trajectory, which make room for new ones."""
        found = [row.copy() for row in self.events[unit, lane, : self.n_events[unit, lane]]]
        self.n_events[unit, lane] = 0
        return found


def aligned(units: int, size: int) -> np.ndarray:
    """Zeros, each row beginning where a vector of eight numbers may, if its size is a multiple of that."""
    raw = np.zeros(units * size + 8)
    first = (-raw.ctypes.data // 8) % 8
    return raw[first : first + units * size].reshape(units, size)
