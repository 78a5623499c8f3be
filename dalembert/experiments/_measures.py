"""What experiments measure: runs without a progress bar, sizes of errors, and whether these stay where they were."""

from __future__ import annotations

import functools
from typing import NamedTuple, SupportsFloat

import numpy as np

from dalembert.runs import _simulate
from dalembert.runs._trajectory import Trajectory
from dalembert.verify import drift

EPSILON = float(np.finfo(float).eps)
simulate = functools.partial(_simulate.simulate, progress=False)
"""`dalembert.simulate` without a progress bar."""


def largest(values: np.ndarray) -> float:
    """The largest absolute value; nan if one of them is."""
    return float(np.max(np.abs(values)))


def ratio(size: SupportsFloat, other: SupportsFloat) -> float:
    """Size over other; nan if there is nothing to compare with."""
    return float(size) / float(other) if other else float("nan")


def energy_error(run: Trajectory) -> np.ndarray:
    """E_k - E_0."""
    return np.asarray(run.energy - run.energy[0])


def largest_residuals(run: Trajectory) -> dict[str, np.ndarray]:
    """The largest violation of each constraint by state; nothing where there is no such constraint."""
    return {name: np.max(np.abs(value), axis=1) for name, value in run.residuals.items() if value.shape[1]}


def fitted_rate(values: np.ndarray, t: np.ndarray) -> float:
    """The slope of the line fitted to a series; nan if one of its values is not finite."""
    return float(drift(values, t).slope) if np.all(np.isfinite(values)) else float("nan")


def last_over_first(error: np.ndarray, parts: int = 10) -> float:
    """The largest |error| in the last of so many parts of a series over that in the first."""
    length = max(1, len(error) // parts)
    return ratio(largest(error[-length:]), largest(error[:length]))


class Steadiness(NamedTuple):
    """How steady an error is: its largest size; the rise of its fitted line, and its late size, relative to that."""

    size: float
    rise: float
    late_over_early: float


def steadiness(t: np.ndarray, error: np.ndarray) -> Steadiness:
    """Largest |error|, the rise of its fitted line over that, and the largest of the last tenth over that of the first."""
    size, rise = largest(error), abs(fitted_rate(error, t)) * float(t[-1] - t[0])
    return Steadiness(size, ratio(rise, size), last_over_first(error))
