"""Everything that dalembert raises on purpose, each with a sentence that names the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dalembert.trajectory import Trajectory


class DalembertError(Exception):
    """Base class of all errors that dalembert raises on purpose."""


class ModelError(DalembertError, ValueError):
    """A model function, its arguments or its parameters cannot be used as they are."""


class InputError(DalembertError, ValueError):
    """An argument of a library function has a wrong value or shape."""


class InconsistentStart(InputError):
    """The initial values violate a constraint of the system."""


class UnsupportedSystem(DalembertError, TypeError):
    """A method cannot serve this kind of system."""


class StepFailed(DalembertError, RuntimeError):
    """A step could not be solved; `run` holds everything that was computed before it."""

    def __init__(self, message: str, run: Trajectory | None = None) -> None:
        super().__init__(message)
        self.run = run
