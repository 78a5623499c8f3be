"""The parts of a computation on threads of this process, a `concurrent.futures` executor or a Dask cluster."""

from __future__ import annotations

import contextlib
import functools
import pickle
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from typing import Any

from dalembert.errors import DalembertError, InputError

MOST_LOSSES = 3
"""How many process pools in succession may be lost before a computation is given up."""

Results = Generator[tuple[int, Any], None, None]
"""The numbers of parts and their results, as they become ready."""


def on_threads(function: Callable[[Any], Any], parts: Mapping[int, Any], threads: int, stop: Callable[[], None]) -> Results:
    """The results of a function, so many parts at a time; `stop` ends those under way if no more results are taken."""
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from _results(pool, function, parts, threads)
        finally:
            stop()


def on_executor(executor: Any, job: Callable[[Any], Any], parts: Mapping[int, Any]) -> Results:
    """The results of a job that is sent to the workers of an executor; what one of them raises ends the computation.

    Dask computes the parts of lost workers again by itself. A process pool, which does not outlive a lost process, is replaced.
    """
    workers = getattr(executor, "_max_workers", None)
    if type(executor).__module__.split(".")[0] == "distributed":
        workers, executor = sum(executor.nthreads().values()), executor.get_executor(pure=False)
    if not isinstance(executor, Executor):
        raise InputError(
            f"executor is a concurrent.futures executor or a dask.distributed Client; got {type(executor).__name__}"
        )
    # one part more than a pool has workers, so that none of them waits; results must not pile up while others are stored
    at_once = (workers or len(parts)) + 1
    try:
        yield from _results(executor, functools.partial(_call_packed, _packed(job)), parts, at_once)
    except DalembertError:
        raise
    except Exception as error:
        raise DalembertError(
            f"a part failed on its worker ({type(error).__name__}: {error}): look at the workers' memory and logs; "
            "da.resume goes on with what save_to= has"
        ) from error


def _results(executor: Executor, function: Callable[[Any], Any], parts: Mapping[int, Any], at_once: int) -> Results:
    waiting, running = deque(parts), dict[Future, int]()
    lost: BrokenExecutor | None = None
    losses = 0
    with contextlib.ExitStack() as own:
        try:
            while waiting or running:
                if lost is not None and not running:
                    losses += 1
                    executor, lost = own.enter_context(_renewed(executor, losses, lost)), None
                while waiting and lost is None and len(running) < at_once:
                    try:
                        future = executor.submit(function, parts[waiting[0]])
                    except BrokenExecutor as error:
                        lost = error
                    else:
                        running[future] = waiting.popleft()
                ended = wait(running, return_when=FIRST_COMPLETED).done
                for future in sorted(ended, key=lambda one: one.exception() is not None):  # an error must not lose results
                    part = running.pop(future)
                    try:
                        result = future.result()
                    except BrokenExecutor as error:
                        waiting.append(part)
                        lost = error
                    else:
                        losses = 0
                        yield part, result
        finally:
            for future in running:
                future.cancel()


def _renewed(executor: Executor, losses: int, error: BrokenExecutor) -> ProcessPoolExecutor:
    """A process pool like the one that was lost."""
    if not isinstance(executor, ProcessPoolExecutor) or losses > MOST_LOSSES:
        raise DalembertError(
            f"workers of the executor were lost, the last time because: {str(error).rstrip('.')}. Look at the machine's "
            "memory, or take fewer workers; da.resume goes on with what save_to= has"
        ) from error
    names = {"max_workers": "_max_workers", "mp_context": "_mp_context", "initializer": "_initializer", "initargs": "_initargs"}
    return ProcessPoolExecutor(**{name: getattr(executor, private) for name, private in names.items()})


def _packed(job: Callable[[Any], Any]) -> bytes:
    """A job as bytes; cloudpickle also takes methods that are made of a user's own functions."""
    try:
        import cloudpickle
    except ImportError:
        cloudpickle = pickle
    try:
        return cloudpickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise DalembertError(f"{job} cannot be sent to workers ({error}): pip install dalembert[cluster]") from None


def _call_packed(job: bytes, part: Any) -> Any:
    """The job for one part, on a worker, which takes it apart and compiles it once."""
    return _unpacked(job)(part)


@functools.lru_cache(maxsize=4)
def _unpacked(job: bytes) -> Callable[[Any], Any]:
    return pickle.loads(job)
