"""Processes that work on a list of experiments, and survive what happens to any of them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dalembert
from dalembert.experiments import Experiment, Result
from dalembert.reproduction._results import Store, from_record

TICK = 0.5
"""Seconds between two looks at the clock while nothing happens."""


@dataclass(frozen=True)
class Started:
    """An experiment was begun."""

    experiment: Experiment


@dataclass(frozen=True)
class Finished:
    """An experiment was finished, one way or another."""

    result: Result


def work(
    tasks: Sequence[Experiment], store: Store, formats: Sequence[str], jobs: int, files: Sequence[str]
) -> Generator[Started | Finished | None]:
    """Run the experiments in `jobs` processes; yields what happens, and None from time to time.

    A closed generator ends its processes.
    """
    events: queue.Queue[Started | Finished] = queue.Queue()
    plan = Plan(tasks)
    workers = [Worker(files) for _ in range(min(jobs, len(tasks)))]
    threads = [threading.Thread(target=_employ, args=(worker, plan, store, formats, events)) for worker in workers]
    for thread in threads:
        thread.start()
    left = len(tasks)
    try:
        while left:
            try:
                event = events.get(timeout=TICK)
            except queue.Empty:
                yield None
                continue
            left -= isinstance(event, Finished)
            yield event
    finally:
        plan.cancel()
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join()


class Plan:
    """Which experiment comes next.

    Those of one module share runs that a process computes once, so it goes on with its own. Those that are timed come last,
    when no other process is at work.
    """

    def __init__(self, tasks: Sequence[Experiment]) -> None:
        self._lock = threading.Lock()
        self._pending: dict[str, list[Experiment]] = {}
        self._held: dict[object, str] = {}
        self._timed = [task for task in tasks if task.timed]
        for task in tasks:
            if not task.timed:
                self._pending.setdefault(_module(task), []).append(task)

    def take(self, who: object) -> Experiment | None:
        """The next experiment for a worker: of its module, of one that nobody works on, or of the one with most left."""
        with self._lock:
            own, others = self._held.pop(who, None), set(self._held.values())
            if not self._pending:
                if others or not self._timed:
                    return None
                self._held[who] = ""
                return self._timed.pop(0)
            if own not in self._pending:
                own = max(self._pending, key=lambda module: (module not in others, len(self._pending[module])))
            tasks = self._pending[own]
            task = tasks.pop(0)
            if not tasks:
                del self._pending[own]
            self._held[who] = own
            return task

    def cancel(self) -> None:
        """Leave the rest undone."""
        with self._lock:
            self._pending.clear()
            self._timed.clear()


def _module(experiment: Experiment) -> str:
    function: Any = experiment.compute
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__module__", ""))


class Worker:
    """A process that runs experiments, started when it is needed and again after it died."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = [str(Path(file).resolve()) for file in files]
        self._lock = threading.Lock()
        self.stopped = False
        self._process: subprocess.Popen[str] | None = None
        self._errors: Any = None

    def ask(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The reply to a request; None if the process died of it."""
        process = self._ready()
        if process is None:
            return None
        assert process.stdin is not None and process.stdout is not None
        try:
            print(json.dumps(request), file=process.stdin, flush=True)
            reply = process.stdout.readline()
        except (OSError, ValueError):  # its end of the pipe is closed
            reply = ""
        return json.loads(reply) if reply.endswith("\n") else None

    def obituary(self) -> tuple[str, str]:
        """How the process ended, in a sentence, and the last that it said."""
        assert self._process is not None
        code = self._process.wait()
        self._errors.seek(0)
        last_words = self._errors.read()[-4000:].strip()
        if code < 0:
            name = signal.Signals(-code).name
            hint = ", as happens when memory runs out" if name == "SIGKILL" else ""
            return f"its process was ended by {name}{hint}", last_words
        return f"its process ended with exit code {code}", last_words

    def stop(self) -> None:
        """End the process, for good."""
        with self._lock:
            self.stopped = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Take leave of a process that has ended or has nothing more to do."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            pipes: list[Any] = [process.stdin, process.stdout, self._errors]
            for pipe in pipes:
                with contextlib.suppress(OSError):  # what is in the buffer has no reader any more
                    pipe.close()

    def _ready(self) -> subprocess.Popen[str] | None:
        with self._lock:
            if self.stopped:
                return None
            if self._process is None:
                self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "dalembert.reproduction._worker", *self._files],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    text=True,
                    encoding="utf-8",
                    env=_environment(),
                    start_new_session=True,  # Ctrl-C is for the program that started it
                )
            return self._process


def _environment() -> dict[str, str]:
    """One thread a process, because the processes share the processors; and the library that is running now."""
    environment = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    path = [str(Path(dalembert.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return environment | os.environ | {"PYTHONPATH": os.pathsep.join(path), "MPLBACKEND": "Agg"}


def _employ(worker: Worker, plan: Plan, store: Store, formats: Sequence[str], events: queue.Queue[Started | Finished]) -> None:
    """Keep one worker busy until there is nothing left."""
    try:
        while (experiment := plan.take(worker)) is not None:
            events.put(Started(experiment))
            began = time.perf_counter()
            request = {"name": experiment.name, "full": store.full, "out": str(store.out.resolve()), "formats": list(formats)}
            record = worker.ask(request)
            if record is not None:
                files = () if record["error"] else [store.figures / f"{experiment.name}.{kind}" for kind in formats]
                events.put(Finished(from_record(experiment, record, files)))
                continue
            if worker.stopped:
                return
            error, trace = worker.obituary()
            worker.close()
            result = Result(experiment, store.full, time.perf_counter() - began, error=error, trace=trace)
            with contextlib.suppress(OSError):  # it may have died of a full disk
                store.keep(result)
            events.put(Finished(result))
    finally:
        worker.close()
