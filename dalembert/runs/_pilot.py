"""Pairs of short runs, with h and h/2, from whose differences errors of positions follow (Richardson)."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np

from dalembert.engine._spec import RunSpec
from dalembert.errors import StepFailed, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.runs._drivers import driver_of, make_run, prepared
from dalembert.systems import State, System

LEAST_SIZE = 1e-3
"""Coordinates count as at least this part of the largest: those that stay at zero cannot be right to many digits."""
LOST = 0.1
"""An error, relative to the size of a coordinate, that no longer tells how errors grow."""
MOST_ROWS = 4096
"""States that are kept along a pilot, however many steps it takes."""


@dataclass(frozen=True, eq=False)
class Task:
    """A motion, and how exact its positions are to be: |error_i| <= atol + rtol * size of coordinate i."""

    system: System
    start: State
    t1: float
    rtol: float
    atol: float = 0.0

    @property
    def length(self) -> float:
        """How long the motion lasts, forwards or backwards."""
        return abs(self.t1 - self.start.t)

    @property
    def direction(self) -> float:
        """1 for a motion into the future, -1 into the past."""
        return math.copysign(1.0, self.t1 - self.start.t)

    def at(self, passed: float) -> float:
        """The time when so much has passed since the start."""
        return self.start.t + self.direction * passed

    def tolerances(self, q: np.ndarray) -> np.ndarray:
        """How large the error of each coordinate may be."""
        return self.atol + self.rtol * sizes(q)


@dataclass(frozen=True, eq=False)
class Path:
    """The positions along a run, until it ended or failed."""

    q: np.ndarray
    reason: str | None
    largest: np.ndarray
    """The largest magnitude of every variable, momenta among them."""


@dataclass(frozen=True, eq=False)
class Pilot:
    """A run of steps h and one of steps h/2 over the same time."""

    method: OneStepMethod
    order: int
    h: float
    t: np.ndarray
    """Since the start, as far as both runs came and agree."""
    coarse: np.ndarray
    fine: np.ndarray
    errors: np.ndarray
    """Of the run of steps h at these times, (time, coordinate)."""
    reason: str | None
    """Why one of the runs failed, if it did."""
    complete: bool
    """Whether both came to the end and agree there."""
    every: int
    """The number of steps h from one of these times to the next."""
    largest: np.ndarray
    """The largest magnitude of every variable along the run of steps h."""

    @property
    def relative(self) -> float:
        """The largest error, relative to the size of its coordinate."""
        return float(np.max(self.errors / sizes(self.fine), initial=0.0))

    def worst(self, task: Task) -> np.ndarray:
        """The largest error so far in units of what is tolerated, (time,)."""
        return np.maximum.accumulate(np.max(self.errors / task.tolerances(self.fine), axis=1))


def positions(system: System, states: np.ndarray) -> np.ndarray:
    """The coordinates of stored states; all variables of systems that have no others."""
    (_, first), _ = system.state_blocks
    return np.asarray(states[:, : first or system.n_state])


def sizes(q: np.ndarray) -> np.ndarray:
    """The largest magnitude of every coordinate along a run, but at least a thousandth of the largest of all."""
    largest = np.max(np.abs(q), axis=0, initial=0.0)
    return np.maximum(largest, LEAST_SIZE * (np.max(largest, initial=0.0) or 1.0))


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
        f"{method} steps over impacts, whose errors do not fall with the order of the method: give h= in place of rtol=, or "
        "for walls without friction take da.CVA()"
    )


def path(task: Task, method: OneStepMethod, h: float, steps: int, every: int) -> Path:
    """So many steps of a size h > 0, in the direction of the motion, of which every so many-th is kept."""
    spec = RunSpec(task.system, method, task.start, task.direction * h, steps, every)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # large steps may be hard to solve: that is what is to be found out
        try:
            run = make_run(prepared(spec))
        except StepFailed as error:
            return Path(positions(task.system, task.start.packed[None]), str(error), np.abs(task.start.packed))
        reason = run.advance()
    states = run.rows[: run.steps_done // every + 1, : task.system.n_state]
    reason = None if reason is None else f"t = {run.time:.6g}: {reason}"
    return Path(positions(task.system, states), reason, np.max(np.abs(states), axis=0))


def pilot(task: Task, method: OneStepMethod, h: float, steps: int) -> Pilot:
    """Both runs, and what follows from them; many steps are made a few more, so that their end is kept."""
    order, every = order_of(method, task.system), math.ceil(steps / MOST_ROWS)
    rows = math.ceil(steps / every)
    h, steps = h * steps / (rows * every), rows * every
    coarse, fine = path(task, method, h, steps, every), path(task, method, h / 2, 2 * steps, 2 * every)
    common = min(len(coarse.q), len(fine.q))
    a, b = coarse.q[:common], fine.q[:common]
    with np.errstate(all="ignore"):
        errors = np.abs(a - b) * 2**order / (2**order - 1)
        lost = ~(np.max(errors / sizes(b), axis=1) < LOST)
    agreed = int(np.argmax(lost)) if lost.any() else common
    agreed = max(agreed, 1)
    t, reason = h * every * np.arange(agreed), coarse.reason or fine.reason
    kept = (t, a[:agreed], b[:agreed], errors[:agreed])
    return Pilot(method, order, h, *kept, reason, agreed == rows + 1, every, coarse.largest)


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
