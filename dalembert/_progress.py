"""A progress line for anything that takes more than two seconds."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from dalembert._interrupts import CtrlC
from dalembert.errors import InputError


class ProgressLine:
    """Shows steps, speed and the time left on standard error, once two seconds have passed."""

    def __init__(self, total: int, wanted: bool | None, label: str = "steps") -> None:
        self.total, self.label = total, label
        self.enabled = _is_shown(wanted)
        self.began = self.shown = time.perf_counter()
        self.visible = False
        shown = _shown
        self.watch: CtrlC | None = None
        if shown is not None and shown.thread == threading.get_ident():
            shown.ctrl_c.check()
            shown.ctrl_c.end()
            self.watch = shown.ctrl_c
            if self.enabled:
                shown.close()

    def update(self, done: int) -> None:
        """Say how far we are; drawn at most ten times a second."""
        now = time.perf_counter()
        if not self.enabled or now - self.began < 2.0 or (now - self.shown < 0.1 and done < self.total):
            return
        self.shown, self.visible = now, True
        fraction = done / max(self.total, 1)
        speed = done / (now - self.began)
        left = (self.total - done) / speed if speed else float("inf")
        bar = ("=" * int(30 * fraction)).ljust(30)
        sys.stderr.write(
            f"\r[{bar}] {100 * fraction:5.1f} %  {done:,} of {self.total:,} {self.label}  {speed:,.0f}/s  {left:,.0f} s left   "
        )
        sys.stderr.flush()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the line, if one was drawn, and leave Ctrl-C to those who watched it before."""
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.begin()
        if self.visible:
            sys.stderr.write("\n")
            sys.stderr.flush()


PATIENCE = 2.0
"""Seconds that pass before a preparation is spoken of."""

PHASES = ("the start", "the step equations", "the pivot order", "the kernels", "their machine code", "the step loop")
"""What is done before a run's first step, in this order; a composition of methods goes through some of them again."""


def _is_shown(wanted: bool | None) -> bool:
    """Whether there is a line: on a terminal, unless it was asked for or forbidden."""
    if wanted is None:
        return sys.stderr.isatty()
    if not isinstance(wanted, bool):
        raise InputError(f"progress is True, False, or None (on a terminal); got {type(wanted).__name__}")
    return wanted


_shown: _Preparation | None = None
_ending = threading.Lock()
"""Held while a line appears or goes: runs may be prepared in several threads."""


class _Preparation:
    """A line on standard error about work whose steps cannot be counted, drawn by a thread once two seconds have passed."""

    def __init__(self, wanted: bool | None, what: str) -> None:
        self.what, self.phase, self.thread, self.began = what, PHASES[0], threading.get_ident(), time.perf_counter()
        self.over, self.visible = threading.Event(), False
        self.drawer = threading.Thread(target=self._draw, daemon=True, name="dalembert-progress")
        if _is_shown(wanted):
            self.drawer.start()
        self.ctrl_c = CtrlC()

    def _draw(self) -> None:
        wait = PATIENCE
        while not self.over.wait(wait):
            wait, passed, far = 0.5, time.perf_counter() - self.began, PHASES.index(self.phase) + 1
            doing = self.what or f"preparing the run, {far} of {len(PHASES)}: {self.phase}"
            line = f"{doing}, {passed:.0f} s"
            sys.stderr.write(f"\r{line:<100}")
            sys.stderr.flush()
            self.visible = True

    def close(self) -> None:
        """End the line: steps are counted from now on, or the run is over."""
        self.over.set()
        if self.drawer.ident is not None:
            self.drawer.join()
        if self.visible:
            self.visible = False
            sys.stderr.write("\n")
            sys.stderr.flush()


def preparing(wanted: bool | None) -> contextlib.AbstractContextManager[None]:
    """Until a `ProgressLine` takes over, say after two seconds which `phase` of a run's preparation is under way."""
    return busy("", wanted)


@contextlib.contextmanager
def busy(what: str, wanted: bool | None = None) -> Iterator[None]:
    """Say after two seconds what is under way, such as "drawing run.png", until a `ProgressLine` takes over."""
    global _shown
    with _ending:
        own = _Preparation(wanted, what) if _shown is None else None
        _shown = own or _shown
    try:
        yield
        if own is not None:
            own.ctrl_c.check()
    except Exception as error:
        if own is not None:
            own.ctrl_c.check(error)
        raise
    finally:
        if own is not None:  # else it is a run within a run, or another thread's line is there
            own.ctrl_c.end()
            own.close()
            with _ending:
                _shown = None


def answered() -> None:
    """A Ctrl-C had its effect: it need not be raised again at the end of what is under way."""
    if _shown is not None and _shown.thread == threading.get_ident():
        _shown.ctrl_c.pending = False


def phase(name: str) -> None:
    """One of `PHASES` begins, if a run is being prepared by this thread."""
    assert name in PHASES
    shown = _shown
    if shown is not None and shown.thread == threading.get_ident():
        shown.phase = name
        shown.ctrl_c.check()
