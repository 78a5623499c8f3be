"""What a run is compared with, made by another thread while the run itself goes on: neither needs the other."""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Iterator
from fractions import Fraction

from dalembert.runs._choice import COMMON, Suggestion
from dalembert.runs._path import MOST_ROWS, Path, Stopped, Task
from dalembert.runs._pilot import LOST

LONG, LARGER, LEAST_LARGER, HIGHEST = 1000, {2: Fraction(6), 4: Fraction(3)}, Fraction(3, 2), 12
"""Steps from which a run is made for a comparison, and how many times larger its own are, by the order of the method. Those of
high orders are nearly as large as they may be for their equations to be solved easily: twice as large ones cost as much, and
above the HIGHEST order so do those that are 1.5 times larger, as much as steps h/2."""
FINER, COARSER = 1.35, 1.3
"""A run is compared with its pilot if the shorter steps of that are so many times shorter, or larger."""
MOST_WAITING = 20_000_000
"""Numbers of a comparison that may wait for the run to end."""


def larger(task: Task, chosen: Suggestion) -> tuple[Fraction, Path] | None:
    """A run in r times larger steps, and r, if errors along it can be expected to tell those of the run."""
    p = chosen.pilot.order
    r = LARGER.get(p, LEAST_LARGER)
    lost = chosen.steps % r.numerator or chosen.error * float(r) ** p > LOST / 5
    if chosen.steps < LONG or p > HIGHEST or chosen.growth.kind == "exponential" or lost:
        return None
    a, b = r.numerator, r.denominator  # so many steps of the run take as long as so many of the other one
    return r, Path(task, chosen.method, float(r) * abs(chosen.h), chosen.steps // a * b, b)


def half(task: Task, chosen: Suggestion, every: int) -> tuple[int, int, Path]:
    """The run with h/2 at the times of a run of which every so many-th state is stored.

    And how many of these are taken together, and how many come in a block.
    """
    stride = math.ceil((math.ceil(chosen.steps / every) + 1) / MOST_ROWS)
    block = stride * max(1, MOST_ROWS // stride)
    return stride, block, Path(task, chosen.method, abs(chosen.h) / 2, 2 * chosen.steps, 2 * every, block)


class Beside:
    """The comparison that a long run is most likely to need, made by a thread of its own if there is a processor for it."""

    def __init__(self, task: Task, chosen: Suggestion, every: int) -> None:
        self.path = self._planned(task, chosen, every) if processors() > 1 else None
        self.blocks: queue.SimpleQueue = queue.SimpleQueue()
        self.over = threading.Event()

    def _planned(self, task: Task, chosen: Suggestion, every: int) -> Path | None:
        flown = chosen.pilot
        own, known = abs(chosen.h), len(flown.t) > COMMON and chosen.growth.kind == "measured"
        if chosen.steps < LONG or (known and not flown.h / COARSER < 2 * own < FINER * flown.h):
            return None  # its pilot tells its error
        found = larger(task, chosen) if every == 1 else None
        path = half(task, chosen, every)[-1] if found is None else found[1]
        return path if path.steps // path.every * flown.coarse.shape[1] < MOST_WAITING else None

    def __enter__(self) -> Beside:
        if self.path is not None:
            self.path.over = self.over
            threading.Thread(target=self._make, name="dalembert-comparison").start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()

    def _make(self) -> None:
        assert self.path is not None
        end: BaseException | None = None
        try:
            for block in self.path:
                self.blocks.put(block)
        except Stopped:
            pass
        except BaseException as error:
            end = error
        self.blocks.put(end)

    def serving(self, path: Path) -> Path | Beside:
        """What shows the blocks of a path: this, if it makes just that one."""
        return self if self.path is not None and self.path.plan == path.plan else path

    @property
    def reason(self) -> str | None:
        """Why the run failed, if it did, once all blocks were seen."""
        return None if self.path is None else self.path.reason

    def __iter__(self) -> Iterator:
        try:
            while (block := self.blocks.get()) is not None:
                if isinstance(block, BaseException):
                    raise block
                yield block
        finally:
            self.over.set()  # what is not looked at is not made


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
