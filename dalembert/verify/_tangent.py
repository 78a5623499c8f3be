"""One step from a state."""

from __future__ import annotations

import numpy as np

from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.runs._drivers import one_step
from dalembert.systems import State, System


def checked_step(system: System, method: OneStepMethod, state: State, h: float) -> tuple[State, list[np.ndarray]]:
    """One step of size h: the new state and the unknowns of each of its substeps."""
    if not (np.isfinite(h) and h != 0):
        raise InputError(f"h must be a finite number other than zero; got {h!r}")
    return one_step(system, method, state, h)
