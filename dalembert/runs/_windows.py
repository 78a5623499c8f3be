"""How much smaller the errors of steps h are than those of steps r h, in windows along a run.

A run in steps r h over the whole time takes fewer steps than the run with h, and shows how errors grow: its distance from that
run is its error. How much smaller that of h is would follow from the order, if r h were small enough everywhere. It is measured
instead: from states of the run, a few steps r h and the same time in steps h/2 give the errors of both sizes. That is done
where the distance grows most, and at times that are spread evenly.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dalembert.engine._spec import RunSpec
from dalembert.methods import OneStepMethod
from dalembert.runs._drivers import make_run, prepared, silence
from dalembert.runs._path import Task, positions
from dalembert.runs._trajectory import Trajectory

WIDTH, EVENLY, STEEPEST = 4, 6, 4
"""Times of a window at which both runs have states, and how many windows there are of both kinds."""


def places(distance: np.ndarray) -> np.ndarray:
    """Where windows begin, among the times at which both runs have states, from their distance there."""
    starts = np.arange(0, len(distance) - WIDTH, WIDTH)
    grown = np.maximum.accumulate(distance)
    steepest = starts[np.argsort(grown[starts + WIDTH] - grown[starts])[-STEEPEST:]]
    return np.union1d(np.linspace(0, starts[-1], EVENLY).astype(int), steepest)


def fall(task: Task, method: OneStepMethod, run: Trajectory, r: Fraction, begins: np.ndarray, scale: np.ndarray) -> float:
    """The largest error of the steps of a run in windows over that of steps r times as large; inf if one cannot be made."""
    a, b = r.numerator, r.denominator
    steps = (len(run) - 1) // a
    coarse = Windows(task, method, float(r) * abs(run.h), steps * b, b)
    fine = Windows(task, method, abs(run.h) / 2, 2 * a * steps, 2 * a)
    own, larger = 0.0, 0.0
    for first in begins:
        here = np.asarray(run.states[first * a : (first + WIDTH) * a + 1 : a])
        far, near = (path.positions_from(here[0], first) for path in (coarse, fine))
        if far is None or near is None:
            return np.inf
        own = max(own, float(np.max(np.abs(positions(task.system, here) - near) / scale)))
        larger = max(larger, float(np.max(np.abs(far - near) / scale)))
    return own / larger if larger > 0 else np.inf


class Windows:
    """Short parts of a run with other steps, `every` of which lead from one of the common times to the next."""

    def __init__(self, task: Task, method: OneStepMethod, h: float, steps: int, every: int) -> None:
        self.task, self.every = task, every
        spec = RunSpec(task.system, method, task.start, task.direction * h, steps, every)
        self.run = make_run(prepared(spec), room=WIDTH + 2)
        silence(self.run)

    def positions_from(self, state: np.ndarray, first: int) -> np.ndarray | None:
        """The positions at WIDTH common times behind the first one, and there; None if a step fails."""
        run, n = self.run, self.task.system.n_state
        row = run.rows[0].copy()
        row[:n] = state
        run.begin(row, np.zeros_like(run.compensation), first * self.every, {})
        if run.advance(last_step=(first + WIDTH) * self.every) is not None:
            return None
        return positions(self.task.system, run.rows[: WIDTH + 1, :n]).copy()
