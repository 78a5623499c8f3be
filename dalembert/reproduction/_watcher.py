"""What is told while experiments run, and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol

from dalembert.experiments import Experiment, Result


class Watcher(Protocol):
    """What `reproduce` tells while it works: anything with these methods, which do nothing unless they are overridden."""

    def begins(self, todo: int, stored: int, jobs: int) -> None:
        """So many are to be computed, so many are there already."""

    def finished(self, result: Result, done: int, todo: int, seconds_left: float) -> None:
        """One more is done."""

    def waits(self, running: dict[str, float], done: int, todo: int, seconds_left: float | None) -> None:
        """Half a second has passed: the names of those that are running, with the seconds they have taken."""


class Progress:
    """Tells a watcher what happens, with an estimate of the time left.

    That is what each experiment took the last time, or else the mean of those that are done.
    """

    def __init__(self, last_time: Mapping[str, float | None], jobs: int, watcher: Watcher | None = None) -> None:
        self._last_time, self._jobs, self._watcher = dict(last_time), jobs, watcher
        self._pending = set(last_time)
        self._began: dict[str, float] = {}
        self._took: list[float] = []

    def start(self, experiment: Experiment) -> None:
        """One more is running."""
        self._pending.discard(experiment.name)
        self._began[experiment.name] = time.perf_counter()

    def finish(self, result: Result) -> None:
        """One more is done."""
        self._began.pop(result.experiment.name)
        self._took.append(result.seconds)
        if self._watcher is not None:
            self._watcher.finished(result, len(self._took), len(self._last_time), self.seconds_left() or 0.0)

    def wait(self) -> None:
        """Nothing has happened for a while."""
        if self._watcher is not None:
            self._watcher.waits(self._running(), len(self._took), len(self._last_time), self.seconds_left())

    def _running(self) -> dict[str, float]:
        now = time.perf_counter()
        return {name: now - began for name, began in self._began.items()}

    def seconds_left(self) -> float | None:
        """Seconds until the end; None if nothing is known yet."""
        known = self._took or [seconds for seconds in self._last_time.values() if seconds is not None]
        if not known:
            return None
        mean = sum(known) / len(known)
        expected = {name: mean if seconds is None else seconds for name, seconds in self._last_time.items()}
        rest = {name: max(expected[name] - taken, 0.0) for name, taken in self._running().items()}
        rest |= {name: expected[name] for name in self._pending}
        return max(sum(rest.values()) / self._jobs, max(rest.values(), default=0.0))
