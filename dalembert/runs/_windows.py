"""How much smaller the errors of steps h are than those of steps r h, in windows along a run.

A run in steps r h over the whole time takes fewer steps than the run with h, and shows how errors grow: its distance from that
run is its error. How much smaller that of h is would follow from the order, if r h were small enough everywhere. It is measured
instead: from states of the run, a few steps r h and the same time in steps h/2 give the errors of both sizes. That is done
where the distance grows most, and at times that are spread evenly.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dalembert.methods import OneStepMethod
from dalembert.runs._pilot import Path, Task, positions
from dalembert.runs._trajectory import Trajectory
from dalembert.systems._consistent import unpack

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
    assert run.start is not None
    a, b = r.numerator, r.denominator
    own, larger, h = 0.0, 0.0, abs(run.h)
    for first in begins:
        here = np.asarray(run.states[first * a : (first + WIDTH) * a + 1 : a])
        start = unpack(task.system, float(run.t[first * a]), here[0], run.start.theta, run.start.multipliers)
        there = replace(task, start=start)
        coarse = Path(there, method, float(r) * h, WIDTH * b, b, WIDTH)
        fine = Path(there, method, h / 2, 2 * a * WIDTH, 2 * a, WIDTH)
        far, near = (np.concatenate(list(path)) for path in (coarse, fine))
        if coarse.reason is not None or fine.reason is not None:
            return np.inf
        own = max(own, float(np.max(np.abs(positions(task.system, here) - near) / scale)))
        larger = max(larger, float(np.max(np.abs(far - near) / scale)))
    return own / larger if larger > 0 else np.inf
