"""How large the error of a run is, from other runs with shorter or with larger steps over the same time.

Pilots promise what they have seen: a part of the time, or larger steps. A close encounter behind them, steps that are too large
for errors to fall with h^p, a kink, or chaos that sets in late would make that promise a wrong one. So a run is compared over
the whole time, with the first of these that tells its error:

1. its pilot, if that has shorter steps;
2. its pilot, if that has steps that are 2r and r times as large, the motion is smooth from state to state and the errors of
   both fall with h^p at least: its own is r^-p times the second one;
3. one run with steps that are r times as large, if the motion is smooth, and windows that tell how much smaller its own is;
4. the same run with h/2, which tells it of any motion.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dalembert._progress import busy
from dalembert.compiler import Observer
from dalembert.runs._beside import COARSER, FINER, Beside, half, larger
from dalembert.runs._choice import COMMON, Suggestion
from dalembert.runs._path import MOST_ROWS, Path, Task, positions
from dalembert.runs._pilot import LOST, Pilot, pair
from dalembert.runs._smoothness import NEEDED, WORTH, along, fast, roughness
from dalembert.runs._trajectory import Trajectory
from dalembert.runs._unreachable import ROUND_OFF
from dalembert.runs._windows import fall, places
from dalembert.systems._states import States

ENOUGH = 0.85
"""The part of the tolerance that the estimated error may take."""
SLOW, SMOOTHLY = 4 / 3, 1.1
"""If errors fall slowly, runs with h/2 have a good part of the error themselves: differences count at least so many times. If
the motion is smooth they do not, and the error that follows from the order of the method counts so many times."""
ROUGH, STEADY, SEEN = 4.0, 1.7, 6
"""If errors do not fall with h^p, a difference may be small by chance: it counts at least so many times. They do if two pairs
of runs have errors whose ratio differs from that by no more than a factor STEADY, at SEEN times of the second half."""
SMOOTH = 0.5
"""What kinks may add to the error of a motion that counts as smooth, in units of what is tolerated: their errors are
at most deviations from smooth motion, and grow with the number of steps."""
SHORTER_PILOT, HALF = "its pilot, in shorter steps", "the same run with half of h"


@dataclass(frozen=True)
class Verdict:
    """What a comparison says about a run."""

    worst: float
    """The largest error in units of what is tolerated."""
    error: float
    """The same relative to positions."""
    words: str
    """What it was compared with."""
    flown: Pilot | None = None
    """The pair of the run and that with h/2, if it was made."""


class Comparison:
    """A run with constant steps, and all that it is compared with."""

    def __init__(self, task: Task, chosen: Suggestion, run: Trajectory, every: int, beside: Beside) -> None:
        self.task, self.chosen, self.run, self.every, self.beside = task, chosen, run, every, beside
        # From the numbers of steps: late times are rounded, and their differences may even vanish.
        self.t = np.minimum(every * np.arange(len(run)), chosen.steps) * abs(chosen.h)

    def verdict(self) -> Verdict:
        """From the cheapest comparison that tells the error."""
        flown, whole = self.chosen.pilot, self.chosen.growth.kind == "measured"
        known = (self.with_shorter(flown) or self.with_larger(flown)) if whole else None
        if known is None:
            with busy("comparing with larger steps"):
                known = self.with_one_larger()
        known = None if known is None else self.with_kinks(known)
        return known if known is not None and known.worst <= ENOUGH else self.with_kinks(self.with_half())

    def with_kinks(self, found: Verdict) -> Verdict:
        """And what kinks may add, if they were neglected."""
        factor = 1 + self.rough / max(found.worst, 1e-300) if "rough" in vars(self) and self.is_smooth() else 1.0
        return replace(found, worst=factor * found.worst, error=factor * found.error)

    @cached_property
    def rough(self) -> float:
        """What kinks may add to the error, in units of what is tolerated; unknown if not every state is stored."""
        if self.every != 1:
            return math.inf
        kernel = fast(self._states(slice(0, WORTH)))
        return max(self._rough_from(first, kernel) for first in range(0, len(self.t), MOST_ROWS))

    def is_smooth(self) -> bool:
        """Whether the motion is, from each step to the next."""
        return self.rough <= SMOOTH

    def _rough_from(self, first: int, kernel: Observer | None) -> float:
        states = self._states(slice(max(0, first - 2 * NEEDED), first + MOST_ROWS))
        if len(states) <= 2 * NEEDED and first:
            return 0.0  # what is left has been seen with the rows before
        scale = self.task.tolerances(self.chosen.pilot.extent) / self.chosen.steps
        return roughness(states, self.run.h, scale, kernel)

    def _states(self, rows: slice) -> States:
        packed, t = np.asarray(self.run.states[rows]), np.asarray(self.run.t)[rows]
        return along(States.of(self.task.system, self.task.start), packed, t)

    def common(self, flown: Pilot) -> tuple[np.ndarray, np.ndarray] | None:
        """Which states of a pair and which of the run are at the same times, if they are enough and the last is among them."""
        tolerance = 1e-9 * self.task.length
        nearest = np.clip(np.searchsorted(self.t, flown.t - tolerance), 0, len(self.t) - 1)
        common = np.abs(self.t[nearest] - flown.t) < tolerance
        return (common, nearest[common]) if np.count_nonzero(common) >= COMMON and common[-1] else None

    def rows(self, wanted: np.ndarray) -> np.ndarray:
        """The positions in some of the states, which may be on disk."""
        system, states = self.task.system, self.run.states
        blocks = np.split(wanted, np.flatnonzero(np.diff(wanted // MOST_ROWS)) + 1)
        firsts = [int(rows[0]) // MOST_ROWS * MOST_ROWS for rows in blocks]
        return np.vstack(
            [positions(system, states[k : k + MOST_ROWS])[rows - k] for k, rows in zip(firsts, blocks, strict=True)]
        )

    def with_shorter(self, flown: Pilot) -> Verdict | None:
        """The error from a pilot in steps that are enough shorter.

        Where the pilot's own error is largest it may have no state at a time of the run: its profile tells how much is missed.
        The order of errors is not trusted beyond the second, and an error that is less than the pilot promised is not believed.
        """
        task, chosen, ratio, common = self.task, self.chosen, 2 * abs(self.chosen.h) / flown.h, self.common(flown)
        if ratio < FINER or common is None or not (seen := self.seen(flown, common[0])) > 0:
            return None
        factor = float(flown.worst(task)[-1]) / seen / (1 - ratio**-2)
        difference = np.abs(self.rows(common[1]) - flown.fine[common[0]])
        scales = task.tolerances(flown.extent), task.sizes(flown.extent)
        worst, error = (float(np.max(difference / scale)) * factor for scale in scales)
        if worst > STEADY * chosen.worst and not self.is_smooth():  # errors do not fall as the pilot has it
            worst, error = ROUGH * worst, ROUGH * error
        return Verdict(max(worst, chosen.worst), max(error, chosen.error), SHORTER_PILOT)

    def seen(self, flown: Pilot, common: np.ndarray) -> float:
        """The largest error of a pair at some of its times."""
        there = np.abs(flown.coarse - flown.fine)[common] * 2**flown.order / (2**flown.order - 1)
        return float(np.max(there / self.task.tolerances(flown.extent), initial=0.0))

    def with_one_larger(self) -> Verdict | None:
        """The error from one run in larger steps, over the whole time, if windows tell how much smaller its own is."""
        found = larger(self.task, self.chosen)
        if found is None or not self.is_smooth():
            return None
        r, path = found
        distance = self.distance(r, self.beside.serving(path))
        return None if distance is None else self.in_windows(r, distance)

    def distance(self, r: Fraction, larger: Path | Beside) -> np.ndarray | None:
        """How far a run in r times larger steps is from this one, in units of what is tolerated; None if it is lost."""
        found: list[np.ndarray] = []
        seen = 0
        for q in larger:
            if larger.reason is not None:
                return None
            apart = np.abs(q - self.rows(np.arange(seen, seen + len(q)) * r.numerator))
            if not np.max(apart / self.scales[1]) < LOST:
                return None
            found.append(np.max(apart / self.scales[0], axis=1))
            seen += len(q)
        return np.concatenate(found)

    @cached_property
    def scales(self) -> tuple[np.ndarray, np.ndarray]:
        """What is tolerated of every coordinate, and its size, along the run."""
        blocks = (self.run.states[k : k + MOST_ROWS] for k in range(0, len(self.t), MOST_ROWS))
        largest = np.array([np.max(np.abs(positions(self.task.system, block)), axis=0) for block in blocks])
        return self.task.tolerances(largest), self.task.sizes(largest)

    def in_windows(self, r: Fraction, distance: np.ndarray) -> Verdict | None:
        """The error that follows from the distance of a run in r times larger steps, which is the difference of their errors.

        Where errors fall by less than a half, their difference tells little of them.
        """
        p, begins = self.chosen.pilot.order, places(distance)
        ratio = fall(self.task, self.chosen.method, self.run, r, begins, self.scales[0]) * 2**p / (2**p - 1)
        expected = float(r) ** -p
        part = max(ratio, expected)
        if not part < 0.5:
            return None
        worst = part / (1 - part) * (SLOW if ratio < STEADY * expected else ROUGH) * float(np.max(distance))
        error = worst * float(np.max(self.scales[0] / self.scales[1]))
        times = f"{part:.2g} of its own in {len(begins)} short parts"
        words = f"a run in {float(r):g} times larger steps, and errors that are {times}"
        return Verdict(max(worst, self.chosen.worst), max(error, self.chosen.error), words)

    def with_larger(self, flown: Pilot) -> Verdict | None:
        """The error from a pair of runs in larger steps, over the whole time, if it can be told from theirs.

        If the order that is seen between both is less than that of the method, it is taken to go on.
        """
        task, r, common = self.task, flown.h / 2 / abs(self.chosen.h), self.common(flown)
        if not flown.complete or r < COARSER or common is None or not self.is_smooth():
            return None
        if not (seen := self.seen(flown, common[0])) > 0:
            return None
        tolerances, p = task.tolerances(flown.extent), flown.order
        between = np.abs(self.rows(common[1]) - flown.fine[common[0]]) / (1 - r**-p)
        now, earlier = (
            np.maximum.accumulate(np.max(each / tolerances, axis=1))
            for each in (between, np.abs(flown.coarse - flown.fine)[common[0]] * 2**p / (2**p - 1))
        )
        late = np.linspace(len(now) // 2, len(now) - 1, SEEN).astype(int)
        if np.any(now[late] * 2**p > STEADY * earlier[late]):
            return None
        order = min(p, math.log2(earlier[-1] / max(float(now[-1]), 1e-300)))
        factor = SLOW * r**-order * float(flown.worst(task)[-1]) / seen
        worst, error = factor * float(now[-1]), factor * float(np.max(between / task.sizes(flown.extent)))
        words = f"two runs in {r:.3g} and {2 * r:.3g} times larger steps, whose errors fall with h^{p}"
        return Verdict(max(worst, self.chosen.worst), max(error, self.chosen.error), words)

    def with_half(self) -> Verdict:
        """The error from the same run with h/2; every stored state is compared, block by block."""
        task, chosen, t, every, size = self.task, self.chosen, self.t, self.every, abs(self.chosen.h)
        stride, block, path = half(task, chosen, every)
        shorter = self.beside.serving(path)
        states = self.run.states
        blocks = (positions(task.system, states[first : first + block]) for first in range(1, len(t), block))
        stored = itertools.chain([positions(task.system, states[:1])], blocks)
        with busy("comparing with half the step size"):
            flown = pair(task, chosen.method, chosen.pilot.order, size, every * stride, t, stored, shorter, stride)
        flown = replace(flown, reason=shorter.reason, largest=chosen.pilot.largest, pace=chosen.pilot.pace)
        if not flown.complete:
            return Verdict(math.inf, math.inf, HALF, flown)
        factor = self.caution(flown)
        return Verdict(float(flown.worst(task)[-1]) * factor, flown.relative * factor, HALF, flown)

    def caution(self, flown: Pilot) -> float:
        """By what the estimated error is multiplied: more where errors do not fall from pair to pair as h^p does."""
        task, before, usual = self.task, self.chosen.pilot, max(1.0, SLOW * (1 - 2.0**-flown.order))
        if self.is_smooth():
            return SMOOTHLY
        if min(before.relative, flown.relative) < 1e3 * ROUND_OFF:
            return usual
        until = np.linspace(0.5, 1.0, SEEN) * min(before.t[-1], flown.t[-1])
        earlier, now = (np.maximum(np.interp(until, each.t, each.worst(task)), 1e-300) for each in (before, flown))
        step = flown.h / before.h
        if np.all(np.abs(np.log(now / (earlier * step**flown.order))) < math.log(STEADY)):
            return usual
        return max(ROUGH, float(earlier[-1] / now[-1]) * min(step, 1.0))  # as if they fell with h alone
