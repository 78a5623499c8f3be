"""Run experiments, or take them from the store, and write the report."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from dalembert import experiments
from dalembert.errors import DalembertError, InputError
from dalembert.experiments import Experiment, Result
from dalembert.reproduction._machine import usable_processors
from dalembert.reproduction._page import Report, render
from dalembert.reproduction._processes import run_in_processes
from dalembert.reproduction._results import Store, write_atomically
from dalembert.reproduction._watcher import Progress, Watcher


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
    """Run experiments in parallel, by default all but those that must be named, and write their report into `out`, a directory.

    `report.html` is its first page, with a page for each document and their figures beside it.

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
    everything = (name for name in experiments.names() if not experiments.find(name).named_only)
    chosen = [experiments.find(name) for name in dict.fromkeys(everything if names is None else names)]
    if jobs is not None and jobs < 1:
        raise InputError(f"experiments need at least one process; got jobs={jobs}")
    jobs = jobs or usable_processors()
    store, kinds = Store(Path(out), full), tuple(dict.fromkeys(("png", *formats)))
    store.prepare()
    last_time = {experiment.name: store.seconds(experiment) for experiment in chosen}
    if again:
        for experiment in chosen:
            store.forget(experiment)
    results: dict[str, Result] = store.load_all(chosen, kinds)
    todo, stored = [experiment for experiment in chosen if experiment.name not in results], len(results)
    if todo:
        if watcher is not None:
            watcher.begins(len(todo), stored, jobs)
        progress = Progress({experiment.name: last_time[experiment.name] for experiment in todo}, jobs, watcher)
        results |= _computed(todo, store, kinds, jobs, files, progress)
    report = Report(
        tuple(results[e.name] for e in chosen if e.name in results),
        tuple(e for e in chosen if e.name not in results),
        stored,
        store.page,
        time.perf_counter() - began,
    )
    try:
        for path, text in render(report, full, command, jobs).items():
            write_atomically(path, text)
    except OSError as error:
        raise DalembertError(f"the report could not be written to {report.path} ({error.strerror})") from error
    return report


def _computed(
    todo: Sequence[Experiment], store: Store, kinds: Sequence[str], jobs: int, files: Sequence[str], progress: Progress
) -> dict[str, Result]:
    """What processes compute until Ctrl-C."""
    results: dict[str, Result] = {}
    try:
        with contextlib.closing(run_in_processes(todo, store, kinds, jobs, files, progress)) as computed:
            for result in computed:
                results[result.experiment.name] = result
    except KeyboardInterrupt:  # a result may have been kept that we were not told of any more
        results = store.load_all(todo, kinds) | results
    return results
