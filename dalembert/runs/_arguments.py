"""What all ways to run a simulation ask of their arguments, and say where it is not met."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.runs._drivers import driver_of
from dalembert.runs._problem import Problem
from dalembert.systems import System
from dalembert.systems._consistent import finite_number


def check_method(method: Any, system: System, caller: str) -> None:
    """Refuse what is no method, or one that cannot serve the system."""
    if not isinstance(method, OneStepMethod):
        hint = f"; write da.{method.__name__}()" if isinstance(method, type) and issubclass(method, OneStepMethod) else ""
        raise InputError(
            f"the second argument of {caller} is a method, such as da.LobattoIIIAB(stages=3); got {method!r}{hint}"
        )
    method.check(system)


def check_stage_multipliers(method: OneStepMethod, wanted: bool) -> None:
    """Refuse to store what steps with impacts do not have."""
    if wanted and driver_of(method).has_impacts:
        raise InputError("stage_multipliers are not stored in runs with impacts: leave the argument out")


def given_values(
    system: System | Problem, started: bool, t0: float | None, initial: Mapping[str, Any]
) -> tuple[System, float | None, dict[str, Any]]:
    """The system, the time and the initial values that were given, or that a problem brings."""
    given = {name: value for name, value in initial.items() if value is not None}
    if isinstance(system, Problem):
        if not started and not {"q0", "y0"} & set(given):
            t0 = system.t0 if t0 is None else t0
            motion = {} if {"v0", "p0", "z0"} & set(given) else {"v0": system.v0, "p0": system.p0, "z0": system.z0}
            given = {"q0": system.q0, "y0": system.y0, "lam0": system.lam0, **motion, **given}
            given = {name: value for name, value in given.items() if value is not None}
        system = system.system
    if not isinstance(system, System):
        raise UnsupportedSystem(
            "the first argument is a da.Hamiltonian, a da.Lagrangian, a da.ODAE or a problem of da.problems; "
            f"got {type(system).__name__}"
        )
    if started and given:
        raise InputError(f"give either start= or the initial values {' and '.join(given)}, not both")
    return system, t0, given


def positive(name: str, value: Any) -> float:
    """A number > 0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a positive number; got {value!r}") from None
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"{name} must be a positive number; got {value!r}")
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


def count(name: str, value: Any, least: int) -> int:
    """An integer that is not too small."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be an integer >= {least}; got {value!r}") from None
    if number < least:
        raise InputError(f"{name} must be an integer >= {least}; got {value!r}")
    return number


def problem_length(system: Any, h: Any, steps: Any, t1: Any) -> tuple[Any, Any]:
    """The step size and the number of steps that were given, or that a problem brings."""
    if not isinstance(system, Problem):
        return h, steps
    return system.h if h is None else h, system.steps if steps is None and t1 is None else steps


def number_of_steps(steps: int | None, t1: float | None, t0: float, h: float) -> int:
    """How many steps there are, by their number or by the final time."""
    if (steps is None) == (t1 is None):
        raise InputError("give either the number of steps or the final time t1" + ("" if steps is None else ", not both"))
    if steps is not None:
        return count("steps", steps, least=0)
    assert t1 is not None
    length = (finite_number("t1", t1) - t0) / h
    if not np.isfinite(length) or length < 0:
        raise InputError(f"t1 must be a finite time after t0 = {t0:g}; got {t1!r}")
    whole = round(length)
    if abs(length - whole) > 1e-9 * max(1.0, length):
        raise InputError(
            f"t1 - t0 = {float(t1) - t0:g} is not a whole number of steps h = {h:g}: "
            f"use h = {(float(t1) - t0) / max(1, whole):.17g}"
        )
    return whole


def thread_count(workers: Any, executor: Any = None) -> int | None:
    """How many threads compute: all cores if nothing is said, but one in each worker of an executor."""
    if workers is not None:
        return count("workers", workers, least=1)
    return None if executor is None else 1


def check_simd(simd: Any) -> bool | None:
    """Yes, no, or None: where it is faster."""
    if simd is None or isinstance(simd, (bool, np.bool_)):
        return None if simd is None else bool(simd)
    raise InputError(f"simd is True, False, or None (vectors where they are faster); got {simd!r}")
