"""Which method and which constant h make the positions of a motion as exact as asked, at least cost.

One method of the family that serves the system is tried over a few steps. Its error says how fast the motion is, and from that,
and the order and error constant of the others, which of them is cheapest. That one is tried over the whole motion, or as much
of it as costs a fifth of the run, in a pair of runs with h and h/2; how the error goes on behind that is continued as it grew.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dalembert.errors import ToleranceError
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import check_method
from dalembert.runs._default_method import family
from dalembert.runs._path import Task, positions
from dalembert.runs._pilot import LOST, Growth, Pilot, growth, not_hard, order_of, pilot, time_scale
from dalembert.runs._unreachable import FEWER, ROUND_OFF, refuse_chaos, refuse_rounding, refuse_singular
from dalembert.symbolic._kept import Recent

SAFETY = 0.5
"""The part of the tolerance that the estimated error may take."""
PART, LEAST = 0.13, 10_000
"""Pilots take at most this part of the steps of a run, but at least as many as of a run of `LEAST` steps."""
MOST_PILOTED = 6_000_000
"""Steps of all pilots, however long the run is."""
NEAR, NEXT, FAR = 2.2, 1.25, 2.8
"""How much larger than those of the run the steps of its last pilot may be, and how much if another one can be paid: then the
errors of larger steps, which may not fall with h^p yet, do not decide, and the run can be compared with its pilot. If they are
larger still, they are so many times larger at least, so that it can be compared with them, too."""
COMMON = 24
"""States that a run has at the same times as its pilot, if that has so many."""
WINDOW, SCALE = 32, 0.25
"""Steps of a first trial, and their largest size in units of the time scale of the motion at its start."""
MOST_STEPS, MOST_TRIED = 2_000_000_000, 20_000
"""Of a run, and of a pilot of a motion that seems to be chaotic."""
TRIED = 1.6
"""Pilots with steps so many times larger than those of the run need not be possible."""
KEEP = 1.25
"""Another method is compiled if it promises to be cheaper by this factor."""
CONSTANT, WORK, SMOOTH = 0.1, 1.5, 0.3
"""Errors are about CONSTANT T/rho (h/rho)^p, a step of s stages costs s^WORK, and more from SMOOTH rho on; see `cheapest`."""


@dataclass(frozen=True, eq=False)
class Suggestion:
    """A method and a step size, and why: `error` is the estimated largest error of the positions, relative to their size."""

    method: OneStepMethod
    h: float
    steps: int
    error: float
    reason: str
    worst: float = field(repr=False)
    """The estimated largest error in units of what is tolerated."""
    growth: Growth = field(repr=False)
    pilot: Pilot = field(repr=False)
    """The pair of runs that the error is estimated from."""

    def __str__(self) -> str:
        return self.reason


_remembered: dict[Any, Suggestion] = Recent()
_lock = threading.Lock()
"""Held while looking into what is remembered or writing to it: reading puts a model last in the queue of those to forget."""


def choose(task: Task, method: OneStepMethod | None) -> Suggestion:
    """The method, of those that serve the system unless it is given, and the step size."""
    key = _key(task, method)
    with _lock:
        known = _remembered[key] if key in _remembered else None  # `get` would not count as a use  # noqa: SIM401
    if known is not None:
        return known
    if method is not None:
        check_method(method, task.system, "simulate")
    chosen = _choose(task, family(task.system) if method is None else (method,))
    remember(task, method, chosen)
    return chosen


def remember(task: Task, method: OneStepMethod | None, chosen: Suggestion) -> None:
    """Choose this the next time that the same is asked for."""
    with _lock:
        _remembered[_key(task, method)] = chosen


def _key(task: Task, method: OneStepMethod | None) -> tuple[Any, ...]:
    state = task.start
    start = (state.t, state.packed.tobytes(), state.theta.tobytes(), state.multipliers.tobytes())
    return (task.system.fingerprint, task.units, *start, task.t1, task.rtol, task.atol, method)


def _choose(task: Task, methods: tuple[OneStepMethod, ...]) -> Suggestion:
    q = positions(task.system, task.start.packed[None])
    digits = -math.log10(np.max(task.tolerances(q) / task.sizes(q)))
    orders = [order_of(method, task.system) for method in methods]
    guess = methods[int(np.argmin([abs(order - 2.4 - 0.85 * digits) for order in orders]))]
    flown = first_pilot(task, guess, min(task.length / WINDOW, SCALE * time_scale(task)))
    best, size = cheapest(task, methods, orders, flown)
    if best is not guess:
        flown = first_pilot(task, best, size)
    return settled(task, flown)


def first_pilot(task: Task, method: OneStepMethod, h: float) -> Pilot:
    """A few steps whose error can be measured: not lost, and not round-off unless they reach the end."""
    h, exact, failed, most = min(h, task.length / 4), None, math.inf, math.inf
    for _ in range(60):
        steps = min(WINDOW, math.ceil(task.length / h))
        h = min(h, task.length / steps)
        flown = pilot(task, method, h, steps, first=True, may_be_hard=False)
        most = min(most, not_hard(flown))
        if not flown.complete:
            failed = h
        elif flown.relative < 100 * ROUND_OFF and steps == WINDOW:
            exact = flown
        else:
            return replace(flown, most=most)
        if exact is not None and failed < 1.5 * exact.h:  # between rounding and steps that cannot be made lies no other
            return replace(exact, most=most)
        h = h / 4 if exact is None else min(4 * exact.h, math.sqrt(exact.h * failed))
    why = flown.reason or f"runs with h = {flown.h:.1g} and half of it part from t = {task.at(flown.t[-1]):.6g} on"
    raise ToleranceError(f"no step size makes even the first steps: {why}")


def cheapest(task: Task, methods: tuple[OneStepMethod, ...], orders: list[int], flown: Pilot) -> tuple[OneStepMethod, float]:
    """The method that promises to be cheapest, or that of the pilot if it is nearly so, and its step size.

    Errors fall with the order as (h/rho)^p, where rho is the distance to singularities of the motion in complex time, and grow
    with T/rho; the measured error gives rho. The work of a step grows with the stages s, and with h because of Newton's
    iteration.
    """
    T, worst = task.length, growth(task, flown).worst
    measured = flown.relative
    if measured < 100 * ROUND_OFF:  # exact, or rounding: it tells nothing
        return flown.method, flown.h
    relative = measured * worst / max(float(flown.worst(task)[-1]), 1e-300)
    rho = (CONSTANT * T * flown.h**flown.order / relative) ** (1 / (flown.order + 1))
    aim = relative * SAFETY / max(worst, 1e-300)
    found = []
    for method, p in zip(methods, orders, strict=True):
        h = rho * (aim * rho / (CONSTANT * T)) ** (1 / p)
        work = len(method.substeps) * (1 if len(method.substeps) > 1 else (p / 2 + 1) ** WORK)
        found.append((work / h * (1 + (h / (SMOOTH * rho)) ** 2), method, h))
    least, best, size = min(found, key=lambda each: each[0])
    own = next(each for each in found if each[1] is flown.method)
    return (best, size) if own[0] > KEEP * least else (flown.method, own[2])


def settled(task: Task, flown: Pilot) -> Suggestion:
    """Longer and longer pilots of one method, until one tells the error of the whole motion, or they cost enough."""
    grown, farthest = growth(task, flown), flown
    h, spent, shortest, enough = next_size(flown, grown), 3 * len(flown.t), math.inf, False
    most, tried = flown.most, list[tuple[float, float]]()
    for attempt in range(12):
        refuse_chaos(task, flown, grown)
        steps, size = plan(task, flown, grown, h, spent, most, first=attempt == 0, lost=len(tried))
        if steps == 0 or steps * size < farthest.t[min(16, len(farthest.t) - 1)]:
            break
        whole, part = flown.complete and flown.t[-1] > 0.99 * task.length, steps * size < 0.99 * task.length
        if (whole and part) or ((enough or (whole and h < 1.59 * flown.h)) and (part or size > 0.85 * flown.h)):
            break
        following = pilot(task, flown.method, size, steps, may_be_hard=size <= TRIED * h)
        if following.complete and following.relative < 100 * ROUND_OFF and part:
            break  # a part of the motion whose errors are those of rounding: it tells less than the pilot before it
        behind = following.hard or following.t[-1] <= flown.t[-1]
        if not following.complete and flown.complete and behind:
            most, spent = size / 1.5, spent + 3 * (steps if following.reason is None else len(following.t))
            h = h if size > TRIED * h else min(h, most)
            continue  # steps are too large where shorter ones have led on: that tells nothing about the motion
        flown, size = following, following.h
        most = min(most, not_hard(flown)) if flown.complete else most
        spent += 3 * steps
        farthest = flown if flown.t[-1] >= farthest.t[-1] else farthest
        grown = growth(task, flown, farthest)
        h = min(next_size(flown, grown), shortest / 1.5)
        if not flown.complete:
            tried.append((size, float(flown.t[-1])))
            refuse_singular(task, flown, tried)
            shortest = size
            h = min(h, size / 2)
        elif size < NEAR * h and (h < 1.59 * size or steps == 16):
            enough = True
            if size <= NEXT * h:
                break
    if not flown.complete:
        refuse_singular(task, flown, tried, FEWER)
        raise ToleranceError(
            f"two runs with h = {flown.h:.3g} and half of it part at t = {task.at(flown.t[-1]):.6g}, and "
            "smaller steps would be too many to try: ask for an earlier t1 or a larger rtol"
        )
    refuse_rounding(task, flown)
    return suggestion(task, flown, grown, h)


def next_size(flown: Pilot, grown: Growth) -> float:
    """The step size at which the error of the whole motion is within the tolerance, if it falls with the method's order."""
    factor = (SAFETY / grown.worst) ** (1 / flown.order)
    return flown.h * min(max(factor, 0.3 if grown.kind == "exponential" else 1e-3), 8.0 if grown.kind == "power" else 1.6)


def plan(
    task: Task, flown: Pilot, grown: Growth, h: float, spent: int, most: float, *, first: bool, lost: int
) -> tuple[int, float]:
    """How many steps the next pilot takes, 0 if too many, and of which size: to the end if they tell the error there.

    Steps that are larger than `most` cannot be made; so many pilots before it were `lost` on the way.
    """
    needed = task.length / h
    if needed > MOST_STEPS:
        raise ToleranceError(f"this takes {needed:.1e} steps of h = {h:.1e}: ask for a larger rtol or an earlier t1")
    budget = min(PART * max(LEAST, needed), MOST_PILOTED) - spent
    relative = max(flown.relative, ROUND_OFF) * grown.worst / max(float(flown.worst(task)[-1]), 1e-300)
    if grown.kind == "exponential" or not flown.complete:  # no part of such a motion tells about the rest
        size, too_large = NEXT * h, lost == 1 and not (flown.complete or flown.reason)
        if too_large and 3 * task.length > budget * size:  # the largest ones that tell the error until the end cost less
            size = max(size, flown.h * (LOST / 20 / relative) ** (1 / flown.order))
        steps = 16 * math.ceil(task.length / size / 16)
        return min(steps, MOST_TRIED), task.length / steps
    if budget < 3 * 16:
        return 0, h
    for part in (0.25, 0.5) if first and flown.order > 4 else (1.0,):
        steps = 16 * math.ceil(min(needed / NEXT, part * budget / 3) / 16)
        if NEXT * steps < needed:  # then steps are so large that the run can be compared with those of this pilot
            steps = 16 * math.ceil(min(needed / FAR, part * budget / 3) / 16)
        size = task.length / steps
        bound = LOST / 20 if part < 0.5 else LOST / 2
        if (relative * (size / flown.h) ** flown.order < bound and size <= most) or needed < 2 * WINDOW:
            return steps, size
    steps = int(part * budget / 3)
    if first:  # as far as possible: in steps so large that the error can just be measured, where it falls with a low order
        aim = LOST / 10 if flown.order <= 4 else math.sqrt(LOST / 10 * relative * (h / flown.h) ** flown.order)
        size = (aim * task.length * flown.h**flown.order / (relative * steps)) ** (1 / (flown.order + 1))
    size = min(most, max(1.5 * h, min(size, task.length / steps) if first else 0.0))
    if steps * size > 0.99 * task.length:
        steps = 16 * math.ceil(task.length / size / 16)
        size = task.length / steps
    return steps, size


def suggestion(task: Task, flown: Pilot, grown: Growth, h: float) -> Suggestion:
    """A whole number of steps, some of which end when steps of the pilot do, and what can be said about it."""
    steps = max(4, math.ceil(task.length / h))
    if grown.kind == "measured":
        known = len(flown.t) - 1
        often = [d for d in range(1, known + 1) if known % d == 0 and d >= min(COMMON, known / 4)]
        steps = min(d * math.ceil(steps / d) for d in often)
    elif steps > 1000:
        steps = 48 * math.ceil(steps / 48)  # so that runs in larger steps end with it
    h = task.length / steps
    worst = grown.worst * (h / flown.h) ** flown.order
    error = flown.relative * worst / max(float(flown.worst(task)[-1]), 1e-300)
    found = Suggestion(flown.method, task.direction * h, steps, error, "", worst, grown, flown)
    return replace(found, reason=worded(task, found))


def worded(task: Task, chosen: Suggestion, compared: str = "") -> str:
    """Why a method and a step size were chosen, in one sentence; of a run that was made, what it was compared with."""
    flown, grown = chosen.pilot, chosen.growth
    if compared:
        return (
            f"{chosen.method} with h = {chosen.h:.4g}, {chosen.steps:,} steps: the estimated error of the positions is "
            f"{chosen.error:.1e} of their size, by comparison with {compared}"
        )
    part = "all" if grown.kind == "measured" else f"{100 * flown.t[-1] / task.length:.2g} %"
    return (
        f"{chosen.method} with h = {chosen.h:.4g}, {chosen.steps:,} steps: the estimated error of the positions is "
        f"{chosen.error:.1e} of their size; two pilot runs over {part} of the time, with h = {flown.h:.3g} and half of it, "
        f"show it {grown.words}"
    )
