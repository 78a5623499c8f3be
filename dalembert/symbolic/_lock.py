"""One lock for the process: neither CasADi's graphs nor LLVM are safe to use from several threads."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from dalembert._interrupts import interruptible

_lock = threading.RLock()
_held = False
"""Whether the thread that has the lock watches over Ctrl-C already."""


@contextlib.contextmanager
def symbolic() -> Iterator[None]:
    """While a thread builds graphs or compiles: to make a run, to rescue a step, to enter a sustained contact."""
    global _held
    with _lock:
        if _held:
            yield
            return
        try:
            _held = True
            with interruptible():
                yield
        finally:
            _held = False


P = ParamSpec("P")
R = TypeVar("R")


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """A function that one thread at a time may be in, whatever other functions of this kind it calls."""

    @functools.wraps(function)
    def locked(*arguments: P.args, **options: P.kwargs) -> R:
        with symbolic():
            return function(*arguments, **options)

    return locked
