"""Everything that dalembert raises on purpose, each with a sentence that names the fix."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory


__all__ = [
    "CallError",
    "DalembertError",
    "InconsistentStart",
    "InputError",
    "LongRunWarning",
    "ModelError",
    "PivotWarning",
    "StepFailed",
    "ToleranceError",
    "UnsupportedSystem",
]


class DalembertError(Exception):
    """Base class of all errors that dalembert raises on purpose; what they quote, such as an array, is put on one line."""

    def __init__(self, message: object = "", *rest: object) -> None:
        super().__init__(re.sub(r"\s*\n\s*", " ", str(message)), *rest)


class ModelError(DalembertError, ValueError):
    """A model function, its arguments or its parameters cannot be used as they are."""


class InputError(DalembertError, ValueError):
    """An argument of a library function has a wrong value or shape."""


class CallError(InputError, TypeError):
    """A function was called with an argument that it does not have, or without one that it needs."""


class InconsistentStart(InputError):
    """The initial values violate a constraint of the system."""


class ToleranceError(DalembertError, ValueError):
    """No constant step size makes a motion as exact as was asked for; the message says until when it can be."""


class UnsupportedSystem(DalembertError, TypeError):
    """A method cannot serve this kind of system."""


class PivotWarning(UserWarning):
    """Many steps of a run were several times slower than they should be, because the pivot order chosen at its start failed."""


class LongRunWarning(UserWarning):
    """A run that was asked for by its tolerance takes more than a minute; said before it begins."""


class ContactWarning(UserWarning):
    """Contact forces of some steps of a run are approximate: there were more contacts than sweeps over them could solve."""


class StepFailed(DalembertError, RuntimeError):
    """A step could not be solved; `run` holds everything that was computed before it."""

    def __init__(self, message: str, run: Trajectory | None = None) -> None:
        super().__init__(message)
        self.run = run


def suggestion(name: str, known: Iterable[str]) -> str:
    """Near matches of a name, as a clause to append to a sentence; empty if there are none.

    Example:
        >>> suggestion("duble_pendulum", ["pendulum", "double_pendulum"])
        ': did you mean double_pendulum or pendulum?'

    """
    lower = {candidate.lower(): candidate for candidate in known}
    close = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.55)]
    return f": did you mean {' or '.join(close)}?" if close else ""


def is_one_of(value: object, *names: str) -> bool:
    """Whether something that a user gave is one of some names; an array, which compares with each of them, is none."""
    return isinstance(value, str) and value in names
