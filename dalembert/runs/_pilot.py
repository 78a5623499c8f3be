"""Pairs of short runs, with h and h/2, from whose differences errors of positions follow (Richardson)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from dalembert.errors import UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.runs._drivers import driver_of
from dalembert.runs._path import MOST_ROWS, Path, Task, positions
from dalembert.runs._smoothness import rates
from dalembert.systems import System
from dalembert.systems._states import States

LOST = 0.1
"""An error, relative to the size of a coordinate, that no longer tells how errors grow."""
FEW, LOOKS = 4, 16
"""After each so many steps of a first pilot, and so many times during others, it is seen whether both runs still agree, and
whether the last steps were hard."""
HARD, EASIER = 30.0, 1.2
"""Newton iterations in the mean, as where steps are so large that their solutions are followed from those of smaller ones:
these cost more than they tell. Those of later pilots are EASIER times shorter than such, or not larger than those that took
half as many."""


@dataclass(frozen=True, eq=False)
class Pilot:
    """A run of steps h and one of steps h/2 over the same time."""

    task: Task
    method: OneStepMethod
    order: int
    h: float
    t: np.ndarray
    """Since the start, as far as both runs came and agree."""
    coarse: np.ndarray
    fine: np.ndarray
    """The positions at these times, (time, coordinate), of the run of steps h and of the other one."""
    errors: np.ndarray
    extent: np.ndarray
    """The largest errors of the run of steps h, and the largest positions, of all states since the time before it."""
    reason: str | None
    """Why one of the runs failed, if it did."""
    complete: bool
    """Whether both came to the end and agree there."""
    every: int
    """The number of steps h from one of these times to the next."""
    largest: np.ndarray
    """The largest magnitude of every variable along the run of steps h."""
    pace: float = 0.0
    """Seconds that a step of the shorter ones took."""
    effort: float = 0.0
    """Newton iterations that one of the larger ones took."""
    most: float = math.inf
    """Steps that are larger are known to be hard to solve."""
    hard: bool = False
    """Whether it was given up because its own ones are."""

    @property
    def relative(self) -> float:
        """The largest error, relative to the size of its coordinate."""
        return float(np.max(self.errors / self.task.sizes(self.extent), initial=0.0))

    def worst(self, task: Task) -> np.ndarray:
        """The largest error so far in units of what is tolerated, (time,)."""
        return np.maximum.accumulate(np.max(self.errors / task.tolerances(self.extent), axis=1))


def order_of(method: OneStepMethod, system: System) -> int:
    """The order of a method in the state of a system; refuse methods that claim none."""
    refuse_varying(method, "an estimate of errors")
    constrained = system.n_holonomic + system.n_nonholonomic > 0
    claimed = (method.order if constrained else method.order_unconstrained) or method.order
    orders = [order for name, order in claimed.items() if name in ("q", "p")]
    if not orders:
        raise UnsupportedSystem(f"{method} claims no order, from which errors would follow: give h= in place of rtol=")
    if driver_of(method).has_steppers:
        return min(orders)
    raise UnsupportedSystem(
        f"{method} steps over impacts, whose errors do not fall with the order of the method: give h= in place of rtol=, or, "
        "where there is friction in a plane or none, take da.CVA()"
    )


def pilot(task: Task, method: OneStepMethod, h: float, steps: int, *, first: bool = False, may_be_hard: bool = True) -> Pilot:
    """Both runs, and what follows from them; many steps are made a few more, so that their end is kept.

    Steps that may not be hard to solve are given up where they are: after a few of the `first` ones of a motion, of which
    nothing is known yet.
    """
    order, every = order_of(method, task.system), math.ceil(steps / MOST_ROWS)
    rows = math.ceil(steps / every)
    h, steps = h * steps / (rows * every), rows * every
    block, most = FEW if first else every * max(1, min(rows // LOOKS, MOST_ROWS // every)), math.inf if may_be_hard else HARD
    coarse = Path(task, method, h, steps, block=block, most=most)
    fine = Path(task, method, h / 2, 2 * steps, 2, block, coarse, most)
    flown = pair(task, method, order, h, every, np.arange(steps + 1) * h, coarse, fine, every)
    flown = replace(flown, reason=coarse.reason or fine.reason, hard=coarse.hard or fine.hard)
    return replace(flown, largest=coarse.largest, pace=fine.pace, effort=coarse.effort)


def time_scale(task: Task) -> float:
    """A time in which the motion changes much, |v|/|a| or (|q|/|a|)^1/2 at its start, of the slowest unit; inf if unknown.

    Steps that are larger are hard to solve, and the first ones of a long motion would be far larger.
    """
    system = task.system
    if not system.state_blocks[0][1] or system.large:
        return math.inf
    q = np.abs(positions(system, task.start.packed[None]))[0]
    v, a = (np.abs(each)[0] for each in rates(States.of(system, task.start)))
    found = []
    for same in map(list, task.units):
        size, speed, acceleration = (float(np.max(each[same], initial=0.0)) for each in (q, v, a))
        if 0 < acceleration < math.inf:
            found.append(max(speed / acceleration, math.sqrt(size / acceleration)))
    return max(found, default=0.0) or math.inf


def not_hard(flown: Pilot) -> float:
    """The largest steps that may be easy to solve, as far as a pilot tells."""
    return flown.h / EASIER if flown.effort > HARD or not flown.complete else flown.h if flown.effort > HARD / 2 else math.inf


def pair(
    task: Task,
    method: OneStepMethod,
    order: int,
    h: float,
    every: int,
    t: np.ndarray,
    coarse: Iterable[np.ndarray],
    fine: Iterable[np.ndarray],
    stride: int,
) -> Pilot:
    """What follows from two runs with h and h/2, whose positions at the times t come in blocks of a multiple of `stride`.

    No state is left out: between the times that are kept, every `stride`-th one, the largest difference counts. Runs that
    have parted are not followed further.
    """
    kept: list[list[np.ndarray]] = []
    seen, reached, scale = 0, np.zeros(1), 2**order / (2**order - 1)
    with np.errstate(all="ignore"):
        for a, b in zip(coarse, fine, strict=False):
            n = min(len(a), len(b))
            if seen + n < len(t) and seen:  # one of them may have failed, between two times that are kept
                n -= n % stride
            if n == 0:
                break
            groups = np.arange(0, n, stride)
            last, seen = np.minimum(groups + stride, n) - 1, seen + n
            differences, largest = (np.maximum.reduceat(np.abs(each), groups) for each in (a[:n] - b[:n], b[:n]))
            kept.append([t[seen - n :][last], a[last], b[last], differences * scale, largest])
            reached = np.maximum(reached, np.max(largest, axis=0))
            if not np.max(differences * scale / task.sizes(reached[None])) < LOST:
                break
        times, a, b, errors, extent = (np.concatenate(each) for each in zip(*kept, strict=True))
        agreed = agreement(task, errors, extent)
    complete = agreed == len(times) and seen == len(t)
    until = slice(agreed)
    states = (times[until], a[until], b[until], errors[until], extent[until])
    return Pilot(task, method, order, h, *states, None, complete, every, np.zeros(0))


def agreement(task: Task, errors: np.ndarray, extent: np.ndarray) -> int:
    """At how many of the first times errors are not lost, relative to sizes until then: those of runs that part may be any."""
    agreed = len(errors)
    while agreed > 1:
        lost = ~(np.max(errors[:agreed] / task.sizes(extent[:agreed]), axis=1) < LOST)
        if not lost.any():
            break
        agreed = int(np.argmax(lost))
    return max(agreed, 1)


@dataclass(frozen=True)
class Growth:
    """How the error of a pilot goes on until the end of the motion."""

    kind: str
    """"measured", "power" or "exponential"."""
    rate: float
    """The power of t; or the exponent, per unit of time."""
    worst: float
    """The largest error over the whole motion, in units of what is tolerated."""

    @property
    def words(self) -> str:
        """For a sentence."""
        if self.kind == "exponential":
            return f"growing by a factor e every {1 / self.rate:.2g}"
        return "measured to the end" if self.kind == "measured" else f"growing like t^{self.rate:.1f}"


def growth(task: Task, flown: Pilot, farthest: Pilot | None = None) -> Growth:
    """The error at the end of a motion from that along a pilot: measured there, or continued.

    Regular motion has errors that grow linearly if the method is symplectic or symmetric, with t^2 if the energy drifts;
    errors of chaotic motion grow exponentially, which is assumed if they grow more than fivefold while t doubles. Another
    pilot that came farther, in larger steps, tells how the error goes on after the end of this one.
    """
    worst, reached = flown.worst(task), float(flown.t[-1])
    last = max(float(worst[-1]), 1e-300)
    if farthest is not None and farthest.t[-1] > 1.01 * reached:
        beyond = growth(task, farthest)
        there = float(np.interp(reached, farthest.t, farthest.worst(task)))
        return replace(beyond, worst=last * beyond.worst / max(there, 1e-300), kind=beyond.kind.replace("measured", "power"))
    if flown.complete and reached > (1 - 1e-9) * task.length:
        return Growth("measured", 1.0, last)
    if len(worst) < 4:
        return Growth("power", 1.0, last * task.length / max(reached, flown.h))
    quarter, half = (max(float(worst[len(worst) // part]), 1e-300) for part in (4, 2))
    late, before = math.log2(last / half), math.log2(half / quarter)
    if late > 2.3 and len(worst) > 100:
        rate = min(late * 2, max(before, 0.5) * 4) * math.log(2) / reached
        return Growth("exponential", rate, last * math.exp(min(600.0, rate * (task.length - reached))))
    power = min(max(late, 1.0), 3.0)
    return Growth("power", power, last * (task.length / reached) ** power)
