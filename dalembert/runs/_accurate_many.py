"""Ensembles to a tolerance: one method and one h for all members, each of which is compared with its run with h/2."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dalembert._progress import answered, busy
from dalembert.engine._spec import RunSpec
from dalembert.errors import ToleranceError
from dalembert.runs._accurate import LEAST_PART, MOST_NUMBERS, SHORTER, TRIALS, at_most, missed
from dalembert.runs._arguments import Arguments
from dalembert.runs._choice import MOST_STEPS, SAFETY, Suggestion, choose, suggestion
from dalembert.runs._comparison import ENOUGH, HALF, ROUGH, SMOOTH, SMOOTHLY
from dalembert.runs._drivers import make_run, prepared
from dalembert.runs._ensemble import Ensemble
from dalembert.runs._path import Task, positions
from dalembert.runs._smoothness import along, roughness
from dalembert.runs._tolerances import check_tolerant, task_from
from dalembert.runs._unreachable import NoWayPastError
from dalembert.storage._sweep_store import SweepStore
from dalembert.systems._states import States

ROWS = 32
"""States of each member that are stored, and compared, where only reductions were asked for."""
FALLS, CHANCE = 0.9, 10.0
"""An error that is larger than FALLS times what it was with larger steps does not fall, unless that is chance, as it may be at
kinks; one of CHANCE times what is tolerated is not let off."""
ADVICE = "ask for a larger rtol or an earlier t1, leave such members out, or give h="


def accurate_many(
    arguments: Arguments, rtol: Any, atol: Any, execute: Callable[[Arguments, bool], Ensemble], save_to: Any
) -> Ensemble:
    """Runs whose estimated errors are within the tolerance; where one is not, all are made again with smaller steps.

    `execute` runs what it is given: the runs that were asked for, or those that are only compared with them.
    """
    check_tolerant(arguments)
    system, states = arguments.starts()
    task = task_from(arguments, system, states[0], rtol, atol)
    chosen, before = for_members(task, states, arguments), np.full(len(states), np.inf)
    for _ in range(TRIALS):
        every = arguments.save_every if arguments.save_every is not None else max(1, chosen.steps // ROWS)
        given = replace(arguments, method=chosen.method, h=chosen.h, steps=chosen.steps, t1=None, save_every=every)
        runs, words = execute(given, True), f"{chosen.method} with h = {chosen.h:.4g}, {chosen.steps:,} steps for all members"
        if "interrupted" in runs.status:
            return noted(runs, None, words, save_to)
        try:
            half = replace(given, h=chosen.h / 2, steps=2 * chosen.steps, save_every=2 * every)
            with busy("comparing with half the step size"):
                missed_by, errors = compared(task, states, chosen, runs, execute(half, False))
            following = smaller(task, states, chosen, runs, missed_by, before)
        except KeyboardInterrupt:
            answered()
            return noted(runs, None, f"{words}; interrupted before they were compared with runs in shorter steps", save_to)
        except Exception:
            discard(save_to)
            raise
        if following is None:
            return noted(runs, errors, f"{words}: {said(runs, errors)}", save_to)
        discard(save_to)
        chosen, tried, before = following, chosen, missed_by
    member = int(np.nanargmax(missed_by))
    raise missed(tried.h, missed_by[member], f" in member {member}: {ADVICE}")


def said(runs: Ensemble, errors: np.ndarray) -> str:
    """The largest error of those members that did not fail, and how many did."""
    failed = runs.status.count("failed")
    if failed == len(runs):
        return "all of them failed, also in shorter steps"
    some = f"; {failed} of {len(runs)} members failed, also in shorter steps" if failed else ""
    largest = f"the largest estimated error of the positions is {np.nanmax(errors):.1e} of their size"
    return f"{largest}, by comparison with {HALF}{some}"


def noted(runs: Ensemble, errors: np.ndarray | None, choice: str, save_to: Any) -> Ensemble:
    """The runs, and their store, with what is known about their errors."""
    vars(runs).update(error=errors, choice=choice)
    if save_to is not None:
        SweepStore.open(save_to).judged(errors, choice)
    return runs


def discard(save_to: Any) -> None:
    """Remove the store of runs that are not exact enough, which was made by this call."""
    if save_to is not None:
        shutil.rmtree(Path(save_to))


def smaller(
    task: Task, states: States, chosen: Suggestion, runs: Ensemble, missed_by: np.ndarray, before: np.ndarray
) -> Suggestion | None:
    """Smaller steps, for the member that needs them most; None if all are exact enough that do not fail with any.

    They are those that a run of that member alone would take, or, if these are not smaller, those that follow from its error.
    Members that no step size leads to the end, or that failed in steps with which their pilots did not, count no more.
    """
    while np.nanmax(missed_by, initial=0.0) > ENOUGH:
        member = int(np.nanargmax(missed_by))
        own, failed = replace(task, start=states[member]), runs.status[member] == "failed"
        try:
            found = choose(own, chosen.method)
        except ToleranceError as error:
            if not isinstance(error, NoWayPastError):
                raise ToleranceError(f"member {member}: {error}") from None
            if not failed:  # it came past by chance: with shorter steps it does not
                return suggestion(own, chosen.pilot, chosen.growth, abs(chosen.h) / 2)
            missed_by[member] = np.nan
            continue
        if found.steps <= chosen.steps and failed:
            found = at_most(own, found)
        if found.steps > chosen.steps:
            return found
        if not failed:
            return by_error(own, found, chosen, member, missed_by[member], before[member])
        missed_by[member] = np.nan
    return None


def by_error(task: Task, own: Suggestion, chosen: Suggestion, member: int, worst: float, before: float) -> Suggestion:
    """Smaller steps from the error of a member; refuse one that did not fall with h, or falls too slowly."""
    factor = min(SHORTER, max(LEAST_PART, math.sqrt(SAFETY / worst)))  # errors that fall with the order are not met here
    if worst > max(FALLS * before, CHANCE) or chosen.steps / factor > MOST_STEPS:
        raise missed(chosen.h, worst, f" in member {member}, and falls too slowly with h: {ADVICE}")
    return suggestion(task, own.pilot, own.growth, factor * abs(chosen.h))


def for_members(task: Task, states: States, arguments: Arguments) -> Suggestion:
    """The choice for the member that needs the most steps, of the first, last, fastest and most accelerated ones."""
    members = dict.fromkeys([fastest(states, "v"), fastest(states, "z_dot"), 0, len(states) - 1])
    method, found = arguments.method, []
    for member in members:
        try:
            found.append(choose(replace(task, start=states[member]), method))
        except ToleranceError as error:
            raise ToleranceError(f"member {member}: {error}") from None
        method = found[-1].method
    return max(found, key=lambda each: each.steps)


def fastest(states: States, rate: str) -> int:
    """The member with the largest rates of change, each relative to its largest one among the members."""
    values = np.abs(states.evaluate(rate)).reshape(len(states), -1)
    return int(np.argmax(np.sum(values / np.maximum(np.max(values, axis=0), 1e-300), axis=1))) if values.shape[1] else 0


def compared(
    task: Task, states: States, chosen: Suggestion, runs: Ensemble, shorter: Ensemble
) -> tuple[np.ndarray, np.ndarray]:
    """The largest error of every member in units of what is tolerated, inf where one failed, and relative to positions, nan.

    Where a member is not seen to be smooth, a difference may be small by chance and counts ROUGH times; if not every state is
    stored, that is told from the member for which h was chosen.
    """
    system, order = task.system, chosen.pilot.order
    n, every = system.n_state, round(chosen.steps / max(1, runs.states.shape[1] - 1))
    rough = math.inf if every == 1 else sampled(chosen)
    if "interrupted" in shorter.status:
        raise KeyboardInterrupt
    found = np.tile([[np.inf], [np.nan]], len(runs))
    for member, (status, other) in enumerate(zip(runs.status, shorter.status, strict=True)):
        if status != "done":
            continue
        if other != "done":
            found[:, member] = np.inf
            continue
        a, b = (positions(system, np.vstack([each.states[member], each.last[member, None, :n]])) for each in (runs, shorter))
        if every == 1:
            t = states.t[member] + chosen.h * np.arange(chosen.steps + 1)
            rows = along(states.take(np.array([member])), runs.states[member], t)
            rough = roughness(rows, chosen.h, task.tolerances(b) / chosen.steps)
        factor = (SMOOTHLY if rough <= SMOOTH else ROUGH) * 2**order / (2**order - 1)
        difference = np.nan_to_num(factor * np.abs(a - b), nan=np.inf)
        worst, error = (float(np.max(difference / scale)) for scale in (task.tolerances(b), task.sizes(b)))
        kinks = 1 + rough / max(worst, 1e-300) if rough <= SMOOTH else 1.0
        found[:, member] = kinks * worst, kinks * error
    return found[0], found[1]


def sampled(chosen: Suggestion) -> float:
    """What kinks may add to the error of the member for which a choice was made, in units of what is tolerated."""
    task, n = chosen.pilot.task, chosen.pilot.task.system.n_state
    if chosen.steps * n > MOST_NUMBERS:
        return math.inf
    run = make_run(prepared(RunSpec(task.system, chosen.method, task.start, chosen.h, chosen.steps, 1)))
    if run.advance() is not None:
        return math.inf
    states = States.of(task.system, task.start)
    states = along(states, run.rows[: chosen.steps + 1], task.start.t + chosen.h * np.arange(chosen.steps + 1))
    return roughness(states, chosen.h, task.tolerances(chosen.pilot.extent) / chosen.steps)
