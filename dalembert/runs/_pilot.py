"""Pairs of short runs, with h and h/2, from whose differences errors of positions follow (Richardson)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dalembert.engine._spec import RunSpec
from dalembert.errors import StepFailed, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.runs._drivers import driver_of, make_run, prepared
from dalembert.systems import State, System
from dalembert.systems._units import LEAST_OF_ALL, LEAST_SIZE, units

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

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The coordinates of each unit."""
        return units(self.system)

    def sizes(self, q: np.ndarray) -> np.ndarray:
        """The size of each coordinate along a run."""
        return sizes(self.units, q)

    def tolerances(self, q: np.ndarray) -> np.ndarray:
        """How large the error of each coordinate may be."""
        return self.atol + self.rtol * self.sizes(q)


@dataclass
class Path:
    """The positions along a run until it ended or failed: the first, then block by block, as all may not fit into memory."""

    task: Task
    method: OneStepMethod
    h: float
    """Larger than zero; steps go in the direction of the motion."""
    steps: int
    every: int = 1
    """Every so many-th state and the last one are shown."""
    block: int = MOST_ROWS
    beside: Path | None = None
    """A run of twice as large steps, which is not left behind: where that fails, this one ends."""
    reason: str | None = field(default=None, init=False)
    """Why the run failed, if it did."""
    largest: np.ndarray = field(init=False)
    """The largest magnitude of every variable, momenta among them."""

    def __post_init__(self) -> None:
        self.largest = np.abs(self.task.start.packed)

    def __iter__(self) -> Iterator[np.ndarray]:
        task, n = self.task, self.task.system.n_state
        spec = RunSpec(task.system, self.method, task.start, task.direction * self.h, self.steps, self.every)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # large steps may be hard to solve: that is what is to be found out
                run = make_run(prepared(spec), room=self.block + 2)
        except StepFailed as error:
            self.reason = str(error)
            yield positions(task.system, task.start.packed[None])
            return
        yield positions(task.system, run.rows[:1, :n]).copy()
        while self.reason is None and run.steps_done < self._last():
            run.counts[0]["saved"] = 0  # the block before it has been read
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reason = run.advance(last_step=min(self._last(), run.steps_done + self.block * self.every))
            states = run.rows[: run.counts[0]["saved"], :n]
            if reason is not None:
                self.steps = run.steps_done
                self.reason = f"t = {run.time:.6g}: {reason}"
            elif run.steps_done == self.steps and self.steps % self.every:
                states = np.vstack([states, run.row[:n]])
            self.largest = np.maximum(self.largest, np.max(np.abs(states), axis=0, initial=0.0))
            yield positions(task.system, states).copy()

    def _last(self) -> int:
        return self.steps if self.beside is None else min(self.steps, 2 * self.beside.steps)


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

    @property
    def relative(self) -> float:
        """The largest error, relative to the size of its coordinate."""
        return float(np.max(self.errors / self.task.sizes(self.extent), initial=0.0))

    def worst(self, task: Task) -> np.ndarray:
        """The largest error so far in units of what is tolerated, (time,)."""
        return np.maximum.accumulate(np.max(self.errors / task.tolerances(self.extent), axis=1))


def positions(system: System, states: np.ndarray) -> np.ndarray:
    """The coordinates of stored states; all variables of systems that have no others."""
    (_, first), _ = system.state_blocks
    return np.asarray(states[:, : first or system.n_state])


def sizes(units: tuple[tuple[int, ...], ...], q: np.ndarray) -> np.ndarray:
    """The largest magnitude of every coordinate along a run, but at least a thousandth of the largest of its unit."""
    largest = np.max(np.abs(q), axis=0, initial=0.0)
    overall = np.max(largest, initial=0.0) or 1.0
    found = np.empty_like(largest)
    for same in map(list, units):
        least = max(LEAST_SIZE * np.max(largest[same]), (LEAST_OF_ALL if len(units) > 1 else LEAST_SIZE) * overall)
        found[same] = np.maximum(largest[same], least)
    return found


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


def pilot(task: Task, method: OneStepMethod, h: float, steps: int) -> Pilot:
    """Both runs, and what follows from them; many steps are made a few more, so that their end is kept."""
    order, every = order_of(method, task.system), math.ceil(steps / MOST_ROWS)
    rows = math.ceil(steps / every)
    h, steps = h * steps / (rows * every), rows * every
    block = every * max(1, MOST_ROWS // every)
    coarse = Path(task, method, h, steps, block=block)
    fine = Path(task, method, h / 2, 2 * steps, 2, block, coarse)
    flown = pair(task, method, order, h, every, np.arange(steps + 1) * h, coarse, fine, every)
    return replace(flown, reason=coarse.reason or fine.reason, largest=coarse.largest)


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

    No state is left out: between the times that are kept, every `stride`-th one, the largest difference counts.
    """
    kept: list[list[np.ndarray]] = []
    seen = 0
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
            kept.append([t[seen - n :][last], a[last], b[last], differences * 2**order / (2**order - 1), largest])
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
