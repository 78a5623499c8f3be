"""Runs to a tolerance: choose method and h, run, and compare with a run with h/2."""

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
from dalembert.runs._pilot import Task, growth, path, pilot, positions
from dalembert.runs._problem import Problem
from dalembert.runs._trajectory import StoredTrajectory, Trajectory
from dalembert.systems import State, System

TRIALS, ENOUGH = 6, 0.85
"""How often a run is made at most, and the part of the tolerance that its estimated error may take."""
MOST_MORE, SHORTER = 20, 0.7
"""How many times the steps a run may take that is made again, and how much shorter they are at least."""


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
    """A run whose estimated error is within the tolerance; where it is not, it is made again with smaller steps.

    A `stored` run is not: its store is there already.
    """
    task, worst = task_of(arguments, rtol, atol), math.inf
    run: Trajectory | None = None
    tried = chosen = choose(task, arguments.method, first_guess(arguments.system))
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
        worst = checked(task, chosen, run)
        if worst <= ENOUGH:
            chosen = replace(chosen, error=worst * chosen.error / chosen.worst, worst=worst)
            break
        tried, chosen = chosen, finer(task, chosen)
        if chosen.steps > MOST_MORE * tried.steps:
            raise missed(tried, worst, ", and falls too slowly with h: ask for a shorter t1 or a larger rtol, or give h=")
        remember(task, arguments.method, chosen)
    else:
        again = "remove the store and run again, h is known better now"
        raise missed(tried, worst, f": {again}" if stored else ": ask for a larger rtol, or give h=")
    assert run is not None
    done = run.status == "done"
    error, choice = chosen.error if done else None, worded(task, chosen, made=done)  # the error is that of a whole run
    vars(run).update(error=error, choice=choice)
    if isinstance(run, StoredTrajectory):
        vars(run).update(store=run.store.judged(error, choice))
    return run


def missed(tried: Suggestion, worst: float, advice: str) -> ToleranceError:
    """Of a run that is not exact enough."""
    return ToleranceError(f"with h = {abs(tried.h):.3g} the error is still {worst:.2g} times what was asked for{advice}")


def at_most(task: Task, chosen: Suggestion) -> Suggestion:
    """The same with steps that are not larger than those of its pilot, which can be made."""
    if abs(chosen.h) <= chosen.pilot.h:
        return chosen
    return suggestion(task, chosen.pilot, chosen.growth, chosen.pilot.h)


def checked(task: Task, chosen: Suggestion, run: Trajectory) -> float:
    """The largest error of a run in units of what is tolerated, from the same run with h/2.

    Pilots promise what they have seen: a part of the time, or larger steps. A close encounter behind them, steps that are too
    large for errors to fall with h^p, or chaos that sets in late would make that promise a wrong one. If errors fall slowly
    the run with h/2 has a good part of the error itself, so that the difference counts at least 4/3 times.
    """
    numbers = np.round((np.asarray(run.t) - run.t[0]) / run.h).astype(int)
    every = int(numbers[1]) if len(numbers) > 1 else chosen.steps
    with busy("checking the run with half the step size"):
        finer = path(task, chosen.method, abs(chosen.h) / 2, 2 * chosen.steps, 2 * every)
    q = positions(task.system, run.states[:])
    if finer.reason:
        return math.inf
    p, common = chosen.pilot.order, min(len(q), len(finer.q))
    missed_by = np.abs(q[:common] - finer.q[:common]) / task.tolerances(finer.q)
    return float(np.max(missed_by, initial=0.0)) * max(4 / 3, 2**p / (2**p - 1))


def finer(task: Task, chosen: Suggestion) -> Suggestion:
    """The same method with steps that follow from a pilot with those that were too large."""
    flown = pilot(task, chosen.method, abs(chosen.h), chosen.steps)
    grown = growth(task, flown)
    return suggestion(task, flown, grown, min(next_size(flown, grown), SHORTER * abs(chosen.h)))
