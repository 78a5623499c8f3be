"""Runs to a tolerance: choose method and h, run, and compare the run with its pilots."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dalembert._progress import busy
from dalembert.engine._spec import RunSpec
from dalembert.errors import StepFailed, ToleranceError
from dalembert.mechanisms import Mechanism
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import Arguments
from dalembert.runs._choice import Suggestion, choose, next_size, remember, suggestion, task_of, worded
from dalembert.runs._pilot import Task, growth, pilot, positions
from dalembert.runs._problem import Problem
from dalembert.runs._trajectory import StoredTrajectory, Trajectory
from dalembert.systems import State, System

TRIALS, ENOUGH = 3, 0.85
"""How often a run is made at most, and the part of the tolerance that its estimated error may take."""


def suggest(
    system: System | Problem | Mechanism,
    method: OneStepMethod | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    y0: Any = None,
    z0: Any = None,
    lam0: Any = None,
    psi0: Any = None,
    start: State | None = None,
    t1: float | None = None,
    t0: float | None = None,
    params: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> Suggestion:
    """The method and the step size that `da.simulate(..., rtol=rtol)` would take, from short runs: `.method`, `.h`, `.steps`.

    With a `method` only h is chosen. `.error` is the estimated largest error of the positions, relative to their size, and
    `.reason` says what it rests on. Equal models and starts get the same answer at once. `progress` forces or forbids a line on
    the terminal after two seconds.

    Example:
        >>> import dalembert as da
        >>> found = da.suggest(da.problems.double_pendulum(), rtol=1e-6, t1=20.0)
        >>> found.error < 1e-6, round(found.h * found.steps, 9)
        (True, 20.0)

    """
    initial = {"q0": q0, "v0": v0, "p0": p0, "y0": y0, "z0": z0, "lam0": lam0, "psi0": psi0}
    arguments = Arguments("suggest", system, method, initial, start, params, t0, t1, None, None)
    with busy("trying step sizes", progress):
        return choose(task_of(arguments, rtol, atol), method, first_guess(system))


def first_guess(system: Any) -> float | None:
    """The step size that a problem brings."""
    return abs(system.h) if isinstance(system, Problem) else None


def accurate(arguments: Arguments, rtol: Any, atol: Any, execute: Callable[[RunSpec], Trajectory], stored: bool) -> Trajectory:
    """A run whose estimated error is within the tolerance; where the run and its pilots say otherwise it is made again.

    A `stored` run is not: its store is there already.
    """
    task, worst = task_of(arguments, rtol, atol), math.inf
    run: Trajectory | None = None
    chosen = choose(task, arguments.method, first_guess(arguments.system))
    chosen = at_most(task, chosen) if stored else chosen
    for _ in range(1 if stored else TRIALS):
        given = replace(arguments, method=chosen.method, h=chosen.h, steps=chosen.steps, t1=None)
        safe = at_most(task, chosen)
        try:
            run = execute(given.single())
        except StepFailed:
            if safe is chosen:
                raise
            run = None
        if run is None or (run.status == "failed" and safe is not chosen):
            chosen = safe
            continue
        if run.status != "done":
            break
        worst = compared(task, chosen, run)
        if worst <= ENOUGH:
            chosen = replace(chosen, error=worst * chosen.error / chosen.worst, worst=worst)
            break
        chosen = finer(task, chosen)
        remember(task, arguments.method, chosen)
    else:
        raise ToleranceError(
            f"with h = {abs(chosen.h):.3g} the error is still {worst:.2g} times what was asked for: "
            + ("remove the store and run again, h is known better now" if stored else "ask for a larger rtol, or give h=")
        )
    assert run is not None
    error, choice = chosen.error if run.status == "done" else None, worded(task, chosen)  # the error is that of a whole run
    vars(run).update(error=error, choice=choice)
    if isinstance(run, StoredTrajectory):
        vars(run).update(store=run.store.judged(error, choice))
    return run


def at_most(task: Task, chosen: Suggestion) -> Suggestion:
    """The same with steps that are not larger than those of its pilot, which can be made."""
    if abs(chosen.h) <= chosen.pilot.h:
        return chosen
    return suggestion(task, chosen.pilot, chosen.growth, chosen.pilot.h)


def compared(task: Task, chosen: Suggestion, run: Trajectory) -> float:
    """The largest error of a run in units of what is tolerated.

    At times that the pilot and the run have in common the three solutions, with steps H, H/2 and h, tell the order:
    |q_h - q_(H/2)| / |q_H - q_(H/2)| = |(H/2)^p - h^p| / (H^p - (H/2)^p). More than the method's own is not believed.
    """
    flown = chosen.pilot
    if chosen.growth.kind != "measured":
        return chosen.worst
    known, steps = len(flown.t) - 1, chosen.steps
    common = math.gcd(known, steps)
    numbers = np.arange(1, common + 1) * (steps // common)
    stored = np.round((np.asarray(run.t) - run.t[0]) / run.h).astype(int)
    numbers = numbers[np.isin(numbers, stored)]
    q = positions(task.system, run.states[:])[np.searchsorted(stored, numbers)]
    rows = numbers // (steps // common) * (known // common)
    tolerated = task.tolerances(flown.fine)
    halved = np.abs(flown.coarse - flown.fine)[rows] / tolerated
    there = np.abs(q - flown.fine[rows]) / tolerated
    ratio = float(np.linalg.norm(there)) / max(float(np.linalg.norm(halved)), 1e-300)
    x, p = 2 * abs(run.h) / flown.h, float(flown.order)
    if x >= 1:
        return float(flown.worst(task)[-1]) * (ratio + 1 / (2**p - 1))
    while p > 0.5 and ratio > (1.05 - x**p) / (2**p - 1):
        p -= 0.05
    return float(flown.worst(task)[-1]) * (abs(run.h) / flown.h) ** p


def finer(task: Task, chosen: Suggestion) -> Suggestion:
    """The same method with steps that follow from a pilot with those that were too large."""
    flown = pilot(task, chosen.method, abs(chosen.h), chosen.steps)
    grown = growth(task, flown)
    return suggestion(task, flown, grown, min(next_size(flown, grown), 0.95 * abs(chosen.h)))
