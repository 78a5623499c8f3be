"""Who computes the parts of a sweep: threads of this process, or the workers of an executor, some of which may be lost."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

from dalembert.compiler import Watch
from dalembert.errors import DalembertError, InputError
from dalembert.runs._sweep import Members, Part, Sweep, compute

RETRIES = 5
"""How often a part that failed on its worker is tried again."""

OPEN_BREAKS, MOST_BREAKS = 2, 12
"""After so many losses of a process pool, parts that were under way are computed one at a time; and when to give up."""

ALONE = 2
"""A part that so often brought a pool down on its own is the one to blame."""


# -- here ------------------------------------------------------------------------------------------------------------------


def abreast(sweep: Sweep, size: int) -> int:
    """How many parts of so many members this process computes at a time."""
    return max(1, (sweep.workers or os.cpu_count() or 1) // size)


def here(sweep: Sweep, parts: Mapping[int, Members]) -> Generator[tuple[int, Part], None, None]:
    """The parts, one after the other, or side by side where one has fewer members than there are threads."""
    if not parts:
        return
    watch, at_once = sweep.watch(), abreast(sweep, max(len(members[0]) for members in parts.values()))
    if at_once == 1 or len(parts) == 1:
        for part, members in parts.items():
            yield part, compute(sweep, watch, members)
        return
    runs: dict[int, Any] = {}
    over = threading.Event()

    def began(run: Any) -> None:
        runs[threading.get_ident()] = run
        if over.is_set():
            run.stop.set()

    threads = (sweep.workers or os.cpu_count() or 1) // at_once
    alone, waiting = replace(sweep, workers=threads), deque(parts)
    running: dict[Future, int] = {}
    with ThreadPoolExecutor(at_once) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    part = waiting.popleft()
                    running[pool.submit(compute, alone, watch, parts[part], began)] = part
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            over.set()
            for run in list(runs.values()):
                run.stop.set()


# -- on workers ------------------------------------------------------------------------------------------------------------


def compute_remotely(sweep: bytes, members: Members) -> Part:
    """`compute` on a worker, which takes the model apart and compiles it once."""
    return compute(*_received(sweep), members)


@functools.lru_cache(maxsize=4)
def _received(sweep: bytes) -> tuple[Sweep, Watch | None]:
    arrived = pickle.loads(sweep)
    return arrived, arrived.watch()


def packed(sweep: Sweep) -> bytes:
    """The sweep as bytes; cloudpickle also takes methods that are made of a user's own functions."""
    try:
        import cloudpickle
    except ImportError:
        cloudpickle = pickle
    try:
        return cloudpickle.dumps(sweep)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise DalembertError(
            f"{sweep.spec.method} cannot be sent to workers ({error}): pip install dalembert[cluster]"
        ) from None


def on_workers(executor: Any, sweep: Sweep, parts: Mapping[int, Members]) -> Generator[tuple[int, Part], None, None]:
    """The parts as they become ready; those whose worker was lost are tried again.

    A process pool does not outlive a lost process, and does not tell whose part brought it down. It is renewed; after
    OPEN_BREAKS losses the parts that were under way at one are computed one at a time, which tells.
    """
    bytes_, waiting, suspects = packed(sweep), deque(parts), deque[int]()
    failed, alone, breaks = dict.fromkeys(parts, 0), dict.fromkeys(parts, 0), 0
    with contextlib.ExitStack() as own:
        submit, ready, most = _interface(executor)
        running: dict[Any, int] = {}
        try:
            while waiting or suspects or running:
                crowd = not suspects  # also the last suspect is alone
                if suspects and not running:
                    part = suspects.popleft()
                    running[submit(bytes_, parts[part])] = part
                while crowd and waiting and (most is None or len(running) < most):
                    part = waiting.popleft()
                    running[submit(bytes_, parts[part])] = part
                for future in ready(list(running)):
                    if future not in running:  # it went down with its pool
                        continue
                    part = running.pop(future)
                    try:
                        found = future.result()
                    except DalembertError:
                        raise
                    except BrokenExecutor as error:
                        lost, breaks = [part, *_lost(running)], breaks + 1
                        _blame(lost, alone, breaks, error)
                        executor = own.enter_context(_renewed(executor, error))
                        submit, ready, most = _interface(executor)
                        (waiting if breaks < OPEN_BREAKS else suspects).extend(lost)
                    except Exception as error:
                        failed[part] += 1
                        if failed[part] > RETRIES:
                            raise DalembertError(
                                f"part {part} of the sweep failed {failed[part]} times on its workers "
                                f"({type(error).__name__}: {error}): look at the workers' memory and logs"
                            ) from error
                        waiting.append(part)
                    else:
                        yield part, found
        finally:
            for future in running:
                future.cancel()


Interface = tuple[Callable[[bytes, Members], Any], Callable[[list[Any]], list[Any]], int | None]


def _interface(executor: Any) -> Interface:
    """How parts are sent to an executor, how to wait until some are ready, and how many it takes at a time."""
    if isinstance(executor, Executor):

        def submit(sweep: bytes, members: Members) -> Any:
            try:
                return executor.submit(compute_remotely, sweep, members)
            except BrokenExecutor as error:
                broken: Future = Future()
                broken.set_exception(error)
                return broken

        def ready(futures: list[Any]) -> list[Any]:
            return list(wait(futures, return_when=FIRST_COMPLETED).done)

        # one more than it has processes, so that none of them waits and few are under suspicion if one is lost
        return submit, ready, executor._max_workers + 1 if isinstance(executor, ProcessPoolExecutor) else None  # type: ignore[attr-defined]
    if type(executor).__module__.split(".")[0] == "distributed":
        from distributed import wait as wait_for

        return (
            lambda sweep, members: executor.submit(compute_remotely, sweep, members, pure=False),
            lambda futures: list(wait_for(futures, return_when=FIRST_COMPLETED).done),
            None,
        )
    raise InputError(f"executor is a concurrent.futures executor or a dask.distributed Client; got {type(executor).__name__}")


def _lost(running: dict[Any, int]) -> list[int]:
    """The other parts that went down with a pool, which are not running any more; results that it gave before count."""
    wait(running)
    gone = [future for future in running if isinstance(future.exception(), BrokenExecutor)]
    return [running.pop(future) for future in gone]


def _blame(lost: list[int], alone: dict[int, int], breaks: int, error: BaseException) -> None:
    """Give up where a part loses every worker, or where workers are lost all the time."""
    if len(lost) == 1:
        alone[lost[0]] += 1
        if alone[lost[0]] >= ALONE:
            raise DalembertError(
                f"part {lost[0]} of the sweep lost its worker {ALONE} times while nothing else was computed ({error}): look at "
                "the workers' memory and logs; da.resume goes on with what save_to= has"
            ) from error
    if breaks > MOST_BREAKS:
        raise DalembertError(
            f"workers of the pool were lost {breaks} times ({error}): look at the machine's memory, or take fewer workers; "
            "da.resume goes on with what save_to= has"
        ) from error


def _renewed(executor: Any, error: BaseException) -> ProcessPoolExecutor:
    """A process pool like the one that was broken."""
    if not isinstance(executor, ProcessPoolExecutor):
        raise DalembertError(f"the executor was broken ({error}): begin again with a new one") from error
    options = {"mp_context": "_mp_context", "initializer": "_initializer", "initargs": "_initargs"}
    return ProcessPoolExecutor(
        executor._max_workers,  # type: ignore[attr-defined]
        **{name: getattr(executor, private) for name, private in options.items()},
    )
