"""What is to be reached by a run that is asked for by its tolerance."""

from __future__ import annotations

from typing import Any

from dalembert.errors import InputError, ToleranceError
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import Arguments
from dalembert.runs._lengths import positive
from dalembert.runs._path import Task
from dalembert.runs._problem import Problem
from dalembert.runs._starts import initial_state
from dalembert.systems import State, System
from dalembert.systems._initial_values import finite_number


def task_of(arguments: Arguments, rtol: Any, atol: Any) -> Task:
    """What is to be reached, from what a user gave."""
    check_tolerant(arguments)
    given: dict[str, Any] = {"start": arguments.start, "t0": arguments.t0, "params": arguments.params, **arguments.initial}
    return task_from(arguments, *initial_state(arguments.system, **given), rtol, atol)


def check_tolerant(arguments: Arguments) -> None:
    """Refuse what cannot be given with a tolerance."""
    for name, value in (("h", arguments.h), ("steps", arguments.steps), ("controls", arguments.controls)):
        if value is not None:
            raise InputError(
                f"rtol= chooses h, so that {name}= cannot be given with it: give rtol= and t1=, or h= without rtol="
            )
    if arguments.newton_tolerance is not None:
        raise InputError("newton_tolerance spoils the errors that rtol= is to keep small: leave one of them out")
    if isinstance(arguments.method, OneStepMethod) and arguments.method.rejects:
        raise InputError(f"{arguments.method} has a tolerance of its own: leave rtol= and atol= of da.{arguments.caller} out")


def task_from(arguments: Arguments, system: System, start: State, rtol: Any, atol: Any) -> Task:
    """The same from a start."""
    t1 = arguments.t1
    if t1 is None and isinstance(arguments.system, Problem):
        t1 = start.t + arguments.system.h * arguments.system.steps
    if t1 is None or finite_number("t1", t1) == start.t:
        raise InputError("rtol= needs the time until which it is to hold: give t1=, other than t0")
    if rtol is None and atol is None:
        raise InputError("how exact is the motion to be? give rtol=, such as 1e-6, or atol=")
    absolute = 0.0 if atol is None or (rtol is not None and _is_zero(atol)) else positive("atol", atol)
    relative = 0.0 if rtol is None or (absolute and _is_zero(rtol)) else positive("rtol", rtol)
    if relative >= 0.1:
        raise InputError(f"rtol is the largest error of positions relative to their size, less than 0.1; got {rtol!r}")
    if absolute == 0 and relative < 1e-13:
        raise ToleranceError(
            f"rtol = {relative:g} is less than what double precision can hold along a run: take at least 1e-13"
        )
    return Task(system, start, float(t1), relative, absolute)


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0
