"""What a process of the fuzzer is doing, written down before it does it, so that one which ends without a word is found out.

Beside the log lie `LOG.now`, the block and the case under way, and `LOG.faults`, the tracebacks of all threads that Python
writes when a signal such as SIGSEGV ends it, or when a block takes too long, measured by the processor's time: others may be
busy. What computes nothing at all has twelve times as long.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
from pathlib import Path
from typing import IO

_files: dict[str, IO[str]] = {}
"""Open as long as the process lives."""


def begin(log: Path, block: int, seconds: float) -> None:
    """A block begins, which must end within some seconds."""
    for suffix in (".now", ".faults"):
        if suffix not in _files:
            _files[suffix] = _beside(log, suffix).open("w", encoding="utf-8", errors="backslashreplace")
    faulthandler.enable(_files[".faults"])
    faulthandler.register(signal.SIGPROF, file=_files[".faults"], chain=True)  # and then it ends the process
    signal.setitimer(signal.ITIMER_PROF, seconds)
    faulthandler.dump_traceback_later(12 * seconds, exit=True, file=_files[".faults"])
    doing(f"block {block}")


def doing(what: str) -> None:
    """Write down what comes next; the system keeps it, whatever becomes of the process."""
    if ".now" in _files:
        file, memory = _files[".now"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        file.seek(0)
        file.write(f"process {os.getpid()}, at most {memory} MB: {what}\n")
        file.truncate()
        file.flush()


def end() -> None:
    """Nothing is under way any more."""
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_PROF, 0)
    doing("nothing any more")


def last_words(log: Path, code: int) -> str:
    """What is known about a process that ended with a code, or by the signal -code."""
    words = [f"the process ended with code {code}"]
    for suffix in (".now", ".faults"):
        place = _beside(log, suffix)
        if place.exists() and (text := place.read_text(encoding="utf-8", errors="replace").strip()):
            words.append(text[-2000:])  # the main thread comes last
    return "; ".join(words)


def _beside(log: Path, suffix: str) -> Path:
    return log.with_name(log.name + suffix)
