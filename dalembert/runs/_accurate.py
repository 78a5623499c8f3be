"""Runs to a tolerance: choose method and h, run, and compare with a run in shorter steps."""

from __future__ import annotations

import itertools
import math
import shutil
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
from dalembert.runs._choice import SAFETY, Suggestion, choose, next_size, remember, suggestion, task_of, worded
from dalembert.runs._pilot import MOST_ROWS, Path, Pilot, Task, growth, pair, positions, sizes
from dalembert.runs._problem import Problem
from dalembert.runs._trajectory import StoredTrajectory, Trajectory
from dalembert.runs._unreachable import ROUND_OFF
from dalembert.systems import State, System

TRIALS, ENOUGH = 6, 0.85
"""How often a run is made at most, and the part of the tolerance that its estimated error may take."""
MOST_MORE, SHORTER, LEAST_PART = 20, 0.7, 0.3
"""How many times the steps a run may take that is made again, how much shorter they are at least, and at most where errors do
not fall with the order of the method."""
FINER, COMMON = 1.6, 24
"""A run is compared with its pilot if that has steps so many times shorter, and so many states at the same times."""
SLOW = 4 / 3
"""If errors fall slowly, runs with h/2 have a good part of the error themselves: differences count at least so many times."""
ROUGH, STEADY, SEEN = 4.0, 1.7, 6
"""If errors do not fall with h^p, a difference may be small by chance: it counts at least so many times. They do if two pairs
of runs have errors whose ratio differs from that by no more than a factor STEADY, at SEEN times of the second half."""
HALF = "the same run with half of h"


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


def accurate(arguments: Arguments, rtol: Any, atol: Any, execute: Callable[[RunSpec], Trajectory]) -> Trajectory:
    """A run whose estimated error is within the tolerance; where it is not, it is made again with smaller steps."""
    task = task_of(arguments, rtol, atol)
    chosen, worst = choose(task, arguments.method, first_guess(arguments.system)), math.inf
    for _ in range(TRIALS):
        run = attempt(task, arguments, chosen, execute)
        if run is None:
            chosen = at_most(task, chosen)
            continue
        if run.status != "done":
            return noted(run, None, worded(task, chosen))  # the error is that of a whole run
        try:
            worst, error, flown = checked(task, chosen, run)
        except KeyboardInterrupt:
            return noted(run, None, f"{worded(task, chosen)}; interrupted before it was compared with a run in shorter steps")
        if worst <= ENOUGH:
            made = replace(chosen, error=error, worst=worst)
            return noted(run, error, worded(task, made, "its pilot, in shorter steps" if flown is None else HALF))
        discard(run)
        assert flown is not None
        tried, chosen = chosen, finer(task, chosen, flown, worst)
        if chosen.steps > MOST_MORE * tried.steps:
            raise missed(tried.h, worst, ", and falls too slowly with h: ask for a shorter t1 or a larger rtol, or give h=")
        remember(task, arguments.method, chosen)
    raise missed(chosen.h, worst, ": ask for a larger rtol, or give h=")


def attempt(
    task: Task, arguments: Arguments, chosen: Suggestion, execute: Callable[[RunSpec], Trajectory]
) -> Trajectory | None:
    """The run that was chosen; None if it failed, but smaller steps could be made."""
    last = at_most(task, chosen) is chosen
    try:
        run = execute(replace(arguments, method=chosen.method, h=chosen.h, steps=chosen.steps, t1=None).single())
    except StepFailed as failure:
        if last:
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


def checked(task: Task, chosen: Suggestion, run: Trajectory) -> tuple[float, float, Pilot | None]:
    """The largest error of a run, in units of what is tolerated and relative to positions, and the pair that shows it.

    Pilots promise what they have seen: a part of the time, or larger steps. A close encounter behind them, steps that are too
    large for errors to fall with h^p, or chaos that sets in late would make that promise a wrong one. So the run is compared
    with one in shorter steps over the whole time: its pilot, if that is one, or else the same run with h/2.
    """
    t = np.abs(np.asarray(run.t) - run.t[0])
    known = with_pilot(task, chosen, t, run)
    if known is not None and known[0] <= ENOUGH:
        return (*known, None)
    every, size = round((t[1] - t[0]) / abs(run.h)) if len(t) > 1 else chosen.steps, abs(chosen.h)
    stride = math.ceil(len(t) / MOST_ROWS)
    block = stride * max(1, MOST_ROWS // stride)
    shorter = Path(task, chosen.method, size / 2, 2 * chosen.steps, 2 * every, block)
    blocks = (positions(task.system, run.states[first : first + block]) for first in range(1, len(t), block))
    stored = itertools.chain([positions(task.system, run.states[:1])], blocks)
    with busy("comparing with half the step size"):
        flown = pair(chosen.method, chosen.pilot.order, size, every * stride, t, stored, shorter, stride)
    flown = replace(flown, reason=shorter.reason, largest=chosen.pilot.largest)
    if not flown.complete:
        return math.inf, math.inf, flown
    factor = caution(task, chosen.pilot, flown)
    return float(flown.worst(task)[-1]) * factor, flown.relative * factor, flown


def caution(task: Task, before: Pilot, flown: Pilot) -> float:
    """By what the estimated error of a run is multiplied: more where errors do not fall from pair to pair as h^p does."""
    usual = max(1.0, SLOW * (1 - 2.0**-flown.order))
    if min(before.relative, flown.relative) < 1e3 * ROUND_OFF:
        return usual
    until = np.linspace(0.5, 1.0, SEEN) * min(before.t[-1], flown.t[-1])
    earlier, now = (np.maximum(np.interp(until, each.t, each.worst(task)), 1e-300) for each in (before, flown))
    step = flown.h / before.h
    if np.all(np.abs(np.log(now / (earlier * step**flown.order))) < math.log(STEADY)):
        return usual
    return max(ROUGH, float(earlier[-1] / now[-1]) * min(step, 1.0))  # as if they fell with h alone


def with_pilot(task: Task, chosen: Suggestion, t: np.ndarray, run: Trajectory) -> tuple[float, float] | None:
    """Both errors from the pilot, if it went over the whole time in steps that are enough shorter than those of the run.

    Where the pilot's own error is largest it may have no state at a time of the run: its profile tells how much is missed. The
    order of errors is not trusted beyond the second, and an error that is less than the pilot promised is not believed.
    """
    flown, ratio = chosen.pilot, 2 * abs(chosen.h) / chosen.pilot.h
    if chosen.growth.kind != "measured" or ratio < FINER:
        return None
    nearest = np.clip(np.searchsorted(t, flown.t - 1e-9 * task.length), 0, len(t) - 1)
    common = np.abs(t[nearest] - flown.t) < 1e-9 * task.length
    there = np.abs(flown.coarse - flown.fine)[common] * 2**flown.order / (2**flown.order - 1)
    seen = np.max(there / task.tolerances(flown.extent), initial=0.0)
    if np.count_nonzero(common) < COMMON or not common[-1] or not seen > 0:
        return None
    factor = float(flown.worst(task)[-1]) / seen / (1 - ratio**-2)
    wanted = nearest[common]
    read = [(first, wanted[(first <= wanted) & (wanted < first + MOST_ROWS)]) for first in range(0, len(t), MOST_ROWS)]
    q = np.vstack([positions(task.system, run.states[k : k + MOST_ROWS])[rows - k] for k, rows in read if len(rows)])
    difference = np.abs(q - flown.fine[common])
    scales = task.tolerances(flown.extent), sizes(flown.extent)
    worst, error = (float(np.max(difference / scale)) * factor for scale in scales)
    if worst > STEADY * chosen.worst:  # errors do not fall as the pilot has it
        return None
    return max(worst, chosen.worst), max(error, chosen.error)


def finer(task: Task, chosen: Suggestion, flown: Pilot, worst: float) -> Suggestion:
    """The same method with steps that follow from a pair of runs with those that were too large.

    Where that found less than the error that counts, errors do not fall with the order of the method: the second is taken.
    """
    grown, size = growth(task, flown), SHORTER * abs(chosen.h)
    if math.isfinite(worst) and worst >= ROUGH * float(flown.worst(task)[-1]):
        size = min(size, abs(chosen.h) * max(LEAST_PART, math.sqrt(SAFETY / worst)))
    return suggestion(task, flown, grown, min(next_size(flown, grown), size))
