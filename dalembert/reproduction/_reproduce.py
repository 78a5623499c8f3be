"""Run experiments, or take them from the store, and write the report."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dalembert import experiments
from dalembert.errors import DalembertError, InputError
from dalembert.experiments import Experiment, Result
from dalembert.reproduction._crew import Finished, Started, work
from dalembert.reproduction._machine import usable_processors
from dalembert.reproduction._page import render
from dalembert.reproduction._results import Store, write_whole


@dataclass(frozen=True)
class Report:
    """The results in the order in which they were asked for, what is missing after an interruption, and the page.

    `seconds` is the time from the call to the report, however many processes shared the work.
    """

    results: tuple[Result, ...]
    missing: tuple[Experiment, ...]
    stored: int
    path: Path
    seconds: float

    @property
    def all_hold(self) -> bool:
        """Whether everything that was asked for was computed and holds."""
        return not self.missing and all(result.holds for result in self.results)

    @property
    def counts(self) -> dict[str, int]:
        """How many hold, do not hold and failed."""
        return {
            verdict: sum(result.verdict == verdict for result in self.results)
            for verdict in ("holds", "does not hold", "failed")
        }


class Watcher:
    """What `reproduce` tells while it works; does nothing with it."""

    def begins(self, todo: int, stored: int, jobs: int) -> None:
        """So many are to be computed, so many are there already."""

    def finished(self, result: Result, done: int, todo: int, seconds_left: float) -> None:
        """One more is done."""

    def waits(self, running: dict[str, float], done: int, todo: int, seconds_left: float | None) -> None:
        """Half a second has passed: the names of those that are running, with the seconds they have taken."""


def reproduce(
    names: Iterable[str] | None = None,
    *,
    full: bool = False,
    out: str | os.PathLike[str] = "out/report",
    jobs: int | None = None,
    again: bool = False,
    formats: Sequence[str] = (),
    files: Sequence[str] = (),
    command: str = "",
    watcher: Watcher | None = None,
) -> Report:
    """Run experiments, all by default, in parallel, and write `report.html` and the figures into the directory `out`.

    Results that `out` holds already are taken from it if the same software computed them, unless `again` is given; those of
    `full` length are kept apart, in `out/full`. `formats` adds "pdf" or "svg" to the .png of each figure. `files` are Python
    files that define experiments of your own (see `load_experiments`). Ctrl-C ends the run with the report of what is done.

    Example:
        >>> import tempfile
        >>> from dalembert.reproduction import reproduce
        >>> with tempfile.TemporaryDirectory() as out:
        ...     report = reproduce(["jay1996.figure5.6"], out=out)
        ...     report.all_hold, report.path.name
        (True, 'report.html')

    """
    began = time.perf_counter()
    chosen = [experiments.find(name) for name in dict.fromkeys(experiments.names() if names is None else names)]
    if jobs is not None and jobs < 1:
        raise InputError(f"experiments need at least one process; got jobs={jobs}")
    store, kinds = Store(Path(out), full), tuple(dict.fromkeys(("png", *formats)))
    store.prepare()
    last_time = {experiment.name: store.seconds(experiment) for experiment in chosen}
    results: dict[str, Result] = {}
    for experiment in chosen:
        if again:
            store.forget(experiment)
        elif (kept := store.load(experiment, kinds)) is not None:
            results[experiment.name] = kept
    todo, stored = [experiment for experiment in chosen if experiment.name not in results], len(results)
    jobs = jobs or usable_processors()
    if todo:
        try:
            (watcher or Watcher()).begins(len(todo), stored, jobs)
            clock = Clock({experiment.name: last_time[experiment.name] for experiment in todo}, jobs)
            _compute(work(todo, store, kinds, jobs, files), clock, watcher or Watcher(), results)
        except KeyboardInterrupt:  # a result may have been kept that we were not told of any more
            late = {experiment.name: store.load(experiment, kinds) for experiment in todo if experiment.name not in results}
            results |= {name: result for name, result in late.items() if result is not None}
    report = Report(
        tuple(results[e.name] for e in chosen if e.name in results),
        tuple(e for e in chosen if e.name not in results),
        stored,
        store.page,
        time.perf_counter() - began,
    )
    page = render(report.results, report.missing, stored, store.directory, full, command, report.seconds, jobs)
    try:
        write_whole(report.path, page)
    except OSError as error:
        raise DalembertError(f"the report could not be written to {report.path} ({error.strerror})") from error
    return report


def _compute(events: Generator[Started | Finished | None], clock: Clock, watcher: Watcher, results: dict[str, Result]) -> None:
    """Fill `results` while it can."""
    with contextlib.closing(events):
        for event in events:
            if isinstance(event, Started):
                clock.start(event.experiment.name)
            elif isinstance(event, Finished):
                results[event.result.experiment.name] = event.result
                clock.finish(event.result)
                watcher.finished(event.result, clock.done, clock.total, clock.left() or 0.0)
            else:
                watcher.waits(clock.running(), clock.done, clock.total, clock.left())


class Clock:
    """Estimates the time left: what each experiment took the last time, or else the mean of those that are done."""

    def __init__(self, last_time: Mapping[str, float | None], jobs: int) -> None:
        self._known = dict(last_time)
        self._pending = set(last_time)
        self._began: dict[str, float] = {}
        self._took: list[float] = []
        self._jobs = jobs

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self._known)

    @property
    def done(self) -> int:
        """How many are done."""
        return len(self._took)

    def start(self, name: str) -> None:
        """One more is running."""
        self._pending.discard(name)
        self._began[name] = time.perf_counter()

    def finish(self, result: Result) -> None:
        """One more is done."""
        self._began.pop(result.experiment.name)
        self._took.append(result.seconds)

    def running(self) -> dict[str, float]:
        """For how long each has been running."""
        now = time.perf_counter()
        return {name: now - began for name, began in self._began.items()}

    def left(self) -> float | None:
        """Seconds until the end; None if nothing is known yet."""
        known = self._took or [seconds for seconds in self._known.values() if seconds is not None]
        if not known:
            return None
        mean = sum(known) / len(known)
        expected = {name: mean if seconds is None else seconds for name, seconds in self._known.items()}
        rest = {name: max(expected[name] - taken, 0.0) for name, taken in self.running().items()}
        rest |= {name: expected[name] for name in self._pending}
        return max(sum(rest.values()) / self._jobs, max(rest.values(), default=0.0))
