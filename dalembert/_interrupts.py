"""Ctrl-C in what CasADi does: remembered, because a KeyboardInterrupt may get lost there.

CasADi drops exceptions that are raised while it looks at its arguments, or makes a SystemError or a TypeError of them.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class CtrlC:
    """Watches over Ctrl-C, in the main thread and where nobody else does so."""

    def __init__(self) -> None:
        self.pending = self.watches = False
        self.begin()

    def begin(self) -> None:
        """Watch, from now on or again."""
        mine = threading.current_thread() is threading.main_thread()
        self.watches = mine and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self.watches:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, *_: object) -> None:
        self.pending = True
        raise KeyboardInterrupt

    def check(self, cause: Exception | None = None) -> None:
        """Raise what was dropped, or became another exception."""
        if self.pending:
            self.end()
            raise KeyboardInterrupt from cause

    def end(self) -> None:
        """Leave Ctrl-C to Python again."""
        if self.watches:
            self.watches = self.pending = False
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Work with CasADi, after which a Ctrl-C is a KeyboardInterrupt and nothing else."""
    ctrl_c = CtrlC()
    try:
        yield
        ctrl_c.check()
    except Exception as error:
        ctrl_c.check(error)
        raise
    finally:
        ctrl_c.end()


@contextlib.contextmanager
def put_off() -> Iterator[list[int]]:
    """Let all signals wait that Python handles; which came is in the list, for the caller to raise again."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {number: handler for number in signal.valid_signals() if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until the end of a block: what is half done may not be left, nor CasADi be interrupted."""
    with put_off() as came:
        yield
    for number in came:
        signal.raise_signal(number)
