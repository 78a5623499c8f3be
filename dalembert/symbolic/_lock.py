"""One lock for the process: neither CasADi's graphs nor LLVM are safe to use from several threads."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from dalembert._interrupts import interruptible

symbolic = threading.RLock()
"""Held while a thread builds graphs or compiles: to make a run, to rescue a step, to enter a sustained contact."""

P = ParamSpec("P")
R = TypeVar("R")


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """A function that one thread at a time may be in, whatever other functions of this kind it calls."""

    @functools.wraps(function)
    def locked(*arguments: P.args, **options: P.kwargs) -> R:
        with symbolic, interruptible():
            return function(*arguments, **options)

    return locked
