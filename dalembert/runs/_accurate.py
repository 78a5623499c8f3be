"""Runs to a tolerance: choose method and h, run, and compare with runs in other steps."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from dalembert._progress import answered, busy
from dalembert._warnings import warn
from dalembert.engine._spec import RunSpec
from dalembert.errors import LongRunWarning, StepFailed, ToleranceError
from dalembert.mechanisms import Mechanism
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import Arguments, GivenStart
from dalembert.runs._beside import COARSER, FINER, Beside
from dalembert.runs._choice import SAFETY, Suggestion, choose, next_size, remember, suggestion, worded
from dalembert.runs._comparison import ENOUGH, ROUGH, Comparison
from dalembert.runs._lengths import count
from dalembert.runs._path import Task
from dalembert.runs._pilot import Pilot, growth
from dalembert.runs._problem import Problem
from dalembert.runs._tolerances import task_of
from dalembert.runs._trajectory import StoredTrajectory, Trajectory
from dalembert.systems import System

MOST_NUMBERS = 20_000_000
"""Of a run whose states are all kept until it was compared, though fewer were asked for."""
LONG_SECONDS = 60.0
"""How long a run may take without a word before it."""
TRIALS, FAILURES = 6, 2
"""How often a run is made at most, and how often with other steps because one failed."""
MOST_MORE, SHORTER, LEAST_PART = 20, 0.7, 0.3
"""How many times the steps a run may take that is made again, how much shorter they are at least, and at most where errors do
not fall with the order of the method."""


def suggest(
    system: System | Problem | Mechanism,
    method: OneStepMethod | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    t1: float | None = None,
    progress: bool | None = None,
    **given: Unpack[GivenStart],
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
    arguments = Arguments.of("suggest", system, method, {**given, "t1": t1})
    with busy("trying step sizes", progress):
        return choose(task_of(arguments, rtol, atol), method)


def accurate(
    arguments: Arguments, rtol: Any, atol: Any, execute: Callable[[RunSpec], Trajectory], *, in_memory: bool
) -> Trajectory:
    """A run whose estimated error is within the tolerance; where it is not, it is made again with smaller steps."""
    task, wanted = task_of(arguments, rtol, atol), count("save_every", arguments.save_every, least=1)
    chosen, worst, failed, warned = choose(task, arguments.method), math.inf, 0, False
    for _ in range(TRIALS):
        warned = warned or warn_of_length(chosen, arguments.method)
        # All states, if there is room for them: among them it can be seen whether the motion is smooth.
        every = 1 if in_memory and chosen.steps * task.system.n_state < MOST_NUMBERS else wanted
        with Beside(task, chosen, every) as beside:
            run = attempt(replace(arguments, save_every=every), chosen, execute, wanted // every, last=failed == FAILURES)
            if run is None:
                chosen, failed = other_steps(task, chosen), failed + 1
                continue
            if run.status != "done":
                return noted(thinned(run, wanted // every), None, worded(task, chosen))  # the error is that of a whole run
            try:
                found = Comparison(task, chosen, run, every, beside).verdict()
            except KeyboardInterrupt:
                answered()
                words = f"{worded(task, chosen)}; interrupted before it was compared with other runs"
                return noted(thinned(run, wanted // every), None, words)
        worst = found.worst
        if worst <= ENOUGH:
            if in_memory:  # what is stored of others may have decided about them
                remember(task, arguments.method, chosen)
            made = replace(chosen, error=found.error, worst=worst)
            return noted(thinned(run, wanted // every), found.error, worded(task, made, found.words))
        discard(run)
        assert found.flown is not None
        tried, chosen = chosen, finer(task, chosen, found.flown, worst)
        if chosen.steps > MOST_MORE * tried.steps:
            raise missed(tried.h, worst, ", and falls too slowly with h: ask for a shorter t1 or a larger rtol, or give h=")
    raise missed(chosen.h, worst, ": ask for a larger rtol, or give h=")


def warn_of_length(chosen: Suggestion, method: OneStepMethod | None) -> bool:
    """Say before a run how long it takes, by the pace of its pilot, if that is long; whether that was said."""
    seconds = chosen.steps * chosen.pilot.pace
    if seconds < LONG_SECONDS:
        return False
    fewer = "leave the method out, so that one is chosen that may take fewer, " if method is not None else ""
    warn(
        f"{chosen.method} takes {chosen.steps:,} steps of h = {abs(chosen.h):.3g} to be as exact as asked, about "
        f"{seconds / 60:.2g} minutes here, and up to twice as long to be compared: {fewer}ask for a larger rtol or an earlier "
        "t1, or wait",
        LongRunWarning,
    )
    return True


def thinned(run: Trajectory, every: int) -> Trajectory:
    """A run of which every state was stored with every so many-th of them and the last one, as was asked for."""
    if every == 1 or isinstance(run, StoredTrajectory):
        return run
    rows = np.unique(np.append(np.arange(0, len(run), every), len(run) - 1))
    stage: dict[str, Any] = {
        name: None if (values := getattr(run, name)) is None else values[rows] for name in ("stage_lam", "stage_psi")
    }
    return replace(run, t=run.t[rows], states=run.states[rows], **stage)


def attempt(
    arguments: Arguments, chosen: Suggestion, execute: Callable[[RunSpec], Trajectory], every: int, *, last: bool
) -> Trajectory | None:
    """The run that was chosen; None if it failed, unless it is the last one to be tried."""
    try:
        run = execute(replace(arguments, method=chosen.method, h=chosen.h, steps=chosen.steps, t1=None).single())
    except StepFailed as failure:
        if last:
            failure.run = failure.run if failure.run is None else thinned(failure.run, every)
            raise
        discard(failure.run)
        return None
    if run.status == "failed" and not last:
        discard(run)
        return None
    return run


def noted(run: Trajectory, error: float | None, choice: str) -> Trajectory:
    """A run, and its store, with what is known about its error."""
    vars(run).update(error=error, choice=choice)
    if isinstance(run, StoredTrajectory):
        vars(run).update(store=run.store.judged(error, choice))
    return run


def discard(run: Any) -> None:
    """Remove the store of a run that is not exact enough, which was made by this call."""
    if isinstance(run, StoredTrajectory):
        shutil.rmtree(run.store.path)


def missed(h: float, worst: float, advice: str) -> ToleranceError:
    """Of a run that is not exact enough."""
    return ToleranceError(f"with h = {abs(h):.3g} the error is still {worst:.2g} times what was asked for{advice}")


def at_most(task: Task, chosen: Suggestion) -> Suggestion:
    """The same with steps that are not larger than those of its pilot, which can be made."""
    if abs(chosen.h) <= chosen.pilot.h:
        return chosen
    return suggestion(task, chosen.pilot, chosen.growth, chosen.pilot.h)


def other_steps(task: Task, chosen: Suggestion) -> Suggestion:
    """Those of a pilot, which could be made; if these failed too, shorter ones: they may have met a singular position."""
    known = at_most(task, chosen)
    return suggestion(task, chosen.pilot, chosen.growth, SHORTER * abs(chosen.h)) if known is chosen else known


def finer(task: Task, chosen: Suggestion, flown: Pilot, worst: float) -> Suggestion:
    """The same method with steps that follow from a pair of runs with those that were too large.

    Where that found less than the error that counts, errors do not fall with the order of the method: the second is taken.
    """
    grown, size = growth(task, flown), SHORTER * abs(chosen.h)
    if math.isfinite(worst) and worst >= ROUGH * float(flown.worst(task)[-1]):
        size = min(size, abs(chosen.h) * max(LEAST_PART, math.sqrt(SAFETY / worst)))
    size = min(next_size(flown, grown), size)
    if FINER * abs(chosen.h) > 2 * size > abs(chosen.h) / COARSER:  # it could not be compared with the pair that is there
        size = abs(chosen.h) / (2 * COARSER)
    return suggestion(task, flown, grown, size)
