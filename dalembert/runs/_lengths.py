"""How far a run goes: step sizes, numbers of steps, final times; and whether its states have room."""

from __future__ import annotations

import operator
import os
from typing import Any

import numpy as np

from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.systems._initial_values import finite_number
from dalembert.systems._model import one_line, real_array


def step_size(value: Any, method: OneStepMethod) -> float:
    """A number other than 0; time runs backwards if it is negative."""
    if value is None:
        finding = "t1= without steps=" if method.rejects else "rtol= and t1="
        raise InputError(f"a step size is missing: give h=, or {finding}, which finds one")
    number = _number(value)
    if not np.isfinite(number) or number == 0:
        raise InputError(f"h must be a positive number, or a negative one to go back in time; got {one_line(value)}")
    return number


def _number(value: Any) -> float:
    try:
        return float(real_array(value))
    except (TypeError, ValueError, OverflowError):
        return np.nan


def positive(name: str, value: Any) -> float:
    """A number > 0."""
    number = _number(value)
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"{name} must be a positive number; got {one_line(value)}")
    return number


def count(name: str, value: Any, least: int) -> int:
    """An integer that is not too small."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number < 2**62:
        raise InputError(f"{name} must be an integer >= {least}{' and below 2**62' * (number >= 2**62)}; got {one_line(value)}")
    return number


def check_memory(needed: int, what: str = "all these states", advice: str = "store fewer of them with save_every=") -> None:
    """Refuse to hold more than the machine's memory, before anything is computed."""
    try:
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not known on this platform
        return
    if needed > 0.8 * available:
        raise InputError(
            f"storing {what} takes {needed / 1e9:.3g} GB of the machine's {available / 1e9:.0f} GB of memory: {advice}"
        )


def number_of_steps(steps: int | None, t1: float | None, t0: float, h: float) -> int:
    """How many steps there are, by their number or by the final time."""
    if (steps is None) == (t1 is None):
        raise InputError("give either the number of steps or the final time t1" + ("" if steps is None else ", not both"))
    if steps is not None:
        return count("steps", steps, least=0)
    assert t1 is not None
    length = (finite_number("t1", t1) - t0) / h
    if not np.isfinite(length) or length < 0:
        where, other = ("after", "h < 0") if h > 0 else ("before", "h > 0")
        raise InputError(f"t1 must be a finite time {where} t0 = {t0:g}, or {other}; got {t1!r}")
    nearest = round(length)
    if abs(length - nearest) > 1e-9 * max(1.0, length):
        raise InputError(
            f"t1 - t0 = {float(t1) - t0:g} is not a whole number of steps h = {h:g}: "
            f"use h = {(float(t1) - t0) / max(1, nearest):.17g}"
        )
    return nearest
