"""Experiments in processes of their own, so that one that fails or is killed stops no other."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import dalembert
from dalembert.experiments import Experiment, Result
from dalembert.reproduction._results import Store, from_record
from dalembert.reproduction._watcher import Progress

TICK = 0.5
"""Seconds between two reports while nothing happens."""


def run_in_processes(
    tasks: Sequence[Experiment], store: Store, formats: Sequence[str], jobs: int, files: Sequence[str], progress: Progress
) -> Generator[Result]:
    """Run the experiments in `jobs` processes; yields each result as it comes. Closing the iterator ends the processes."""
    schedule = Schedule(tasks)
    workers = [Worker(store, formats, files) for _ in range(min(jobs, len(tasks)))]
    with ThreadPoolExecutor(len(workers)) as threads, contextlib.ExitStack() as stack:
        for worker in workers:
            stack.callback(worker.close)
        running: dict[Future[Result], Worker] = {}
        while True:
            for worker in [worker for worker in workers if worker not in running.values()]:
                experiment = schedule.take(worker)
                if experiment is not None:
                    progress.start(experiment)
                    worker.start()
                    running[threads.submit(worker.run, experiment)] = worker
            if not running:
                return
            done, _ = wait(running, TICK, return_when=FIRST_COMPLETED)
            if not done:
                progress.wait()
            for future in done:
                del running[future]
                progress.finish(future.result())
                yield future.result()


class Schedule:
    """Which experiment comes next.

    Experiments of one module share runs that a process computes once, so each process stays with its module. Those that are
    timed come last, when no other process is at work.
    """

    def __init__(self, tasks: Sequence[Experiment]) -> None:
        self._pending: dict[str, list[Experiment]] = {}
        self._current: dict[object, str] = {}
        self._timed = [task for task in tasks if task.timed]
        for task in tasks:
            if not task.timed:
                self._pending.setdefault(_module(task), []).append(task)

    def take(self, worker: object) -> Experiment | None:
        """The next experiment for a worker: of its module, of one that nobody works on, or of the one with most left."""
        own, others = self._current.pop(worker, None), set(self._current.values())
        if not self._pending:
            if others or not self._timed:
                return None
            self._current[worker] = ""
            return self._timed.pop(0)
        if own not in self._pending:
            own = max(self._pending, key=lambda module: (module not in others, len(self._pending[module])))
        self._current[worker] = own
        task = self._pending[own].pop(0)
        if not self._pending[own]:
            del self._pending[own]
        return task


def _module(experiment: Experiment) -> str:
    """The module that states the claim: what it computes may come from a module that all of a document share."""
    function: Any = experiment.holds
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__module__", ""))


class Worker:
    """A process that runs one experiment after another, started when it is needed and again after it died."""

    def __init__(self, store: Store, formats: Sequence[str], files: Sequence[str]) -> None:
        self._store, self._formats = store, list(formats)
        self._files = [str(Path(file).resolve()) for file in files]
        self._process: subprocess.Popen[str] | None = None
        self._errors: Any = None

    def start(self) -> None:
        """Start the process, unless it is running."""
        if self._process is not None:
            return
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dalembert.reproduction._worker", *self._files],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the program that started it
        )

    def run(self, experiment: Experiment) -> Result:
        """The result of an experiment; a failure if its process died of it."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        store, began = self._store, time.perf_counter()
        request = {"name": experiment.name, "full": store.full, "out": str(store.out.resolve()), "formats": self._formats}
        try:
            print(json.dumps(request), file=process.stdin, flush=True)
            record = json.loads(process.stdout.readline())
        except (OSError, ValueError):  # the process has ended
            error, trace = self._how_it_ended(process.wait())
            self.close()
            result = Result(experiment, store.full, time.perf_counter() - began, error=error, trace=trace)
            with contextlib.suppress(OSError):  # the report says it anyway
                store.keep(result)
            return result
        figures = () if record["error"] else [store.figures / f"{experiment.name}.{kind}" for kind in self._formats]
        return from_record(experiment, record, figures)

    def _how_it_ended(self, code: int) -> tuple[str, str]:
        """How the process ended, in a sentence, and the end of its standard error."""
        self._errors.seek(0)
        trace = self._errors.read()[-4000:].strip()
        if code >= 0:
            return f"its process ended with exit code {code}", trace
        name = signal.Signals(-code).name
        return f"its process was ended by {name}{', as happens when memory runs out' if name == 'SIGKILL' else ''}", trace

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            pipes: list[Any] = [process.stdin, process.stdout, self._errors]
            for pipe in pipes:
                with contextlib.suppress(OSError):  # what is in the buffer has no reader any more
                    pipe.close()


def _environment() -> dict[str, str]:
    """One thread a process, because the processes share the processors; and the library that is running now."""
    environment = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    path = [str(Path(dalembert.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return environment | os.environ | {"PYTHONPATH": os.pathsep.join(path), "MPLBACKEND": "Agg"}
