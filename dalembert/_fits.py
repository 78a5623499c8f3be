"""Straight lines through measured series: orders of convergence, and drift in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import InputError


@dataclass(frozen=True, eq=False)
class OrderStudy:
    """Errors at the final time by component, the step sizes, and the fitted slopes."""

    h: np.ndarray
    errors: dict[str, np.ndarray]
    slopes: dict[str, float]
    used: dict[str, np.ndarray]
    """Which points entered the slope: the finest ones above round-off."""

    def __str__(self) -> str:
        head = "h".rjust(12) + "".join(name.rjust(12) for name in self.errors)
        rows = [f"{h:12.4e}" + "".join(f"{e[i]:12.3e}" for e in self.errors.values()) for i, h in enumerate(self.h)]
        return "\n".join([head, *rows, "slope".rjust(12) + "".join(f"{s:12.3f}" for s in self.slopes.values())])


def slope(h: Any, errors: Any, *, floor: float = 0.0, points: int = 3) -> tuple[float, np.ndarray]:
    """The least-squares slope of log(error) over log(h) through the finest `points` above `floor`, and which these are.

    Points from the first one on that does not lie above `floor`, or that does not improve on its predecessor, are dropped.

    Example:
        >>> import dalembert as da
        >>> h = [0.1, 0.05, 0.025, 0.0125]
        >>> round(da.verify.slope(h, [3 * x**4 for x in h])[0], 6)
        4.0

    """
    h, errors = _series("h", h), _series("errors", errors)
    if h.shape != errors.shape:
        raise InputError(f"there is one error for each h; got {len(errors)} errors and {len(h)} step sizes")
    usable = np.ones(len(h), dtype=bool)
    for i in range(len(h)):
        if not errors[i] > floor or (i and not errors[i] < errors[i - 1]):
            usable[i:] = False
            break
    chosen = np.flatnonzero(usable)[-points:]
    used = np.isin(np.arange(len(h)), chosen)
    if len(chosen) < 2:
        return float("nan"), used
    return float(np.polyfit(np.log(h[chosen]), np.log(errors[chosen]), 1)[0]), used


def _series(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(())
    if array.ndim != 1:
        raise InputError(f"{name} must be a list of numbers; got {type(values).__name__}")
    return array


@dataclass(frozen=True)
class Drift:
    """The least-squares line through a series: its slope per unit time, the slope's standard error, and the series' range."""

    slope: float
    standard_error: float
    range: float


def drift(series: Any, t: Any = None) -> Drift:
    """Fit a line to a scalar series over time (by default, over the index).

    The standard error assumes independent deviations from the line; oscillations make it optimistic.

    Example:
        >>> import numpy as np, dalembert as da
        >>> t = np.linspace(0, 100, 2001)
        >>> measured = da.verify.drift(1e-3 * t + np.sin(t), t)
        >>> bool(abs(measured.slope - 1e-3) < 2e-3), bool(measured.range > 2)
        (True, True)

    """
    values = _series("the series", series)
    if not np.all(np.isfinite(values)):
        raise InputError("drift takes finite numbers; leave out the part of a run after it broke down")
    times = np.arange(len(values), dtype=float) if t is None else _series("t", t)
    if values.ndim != 1 or values.shape != times.shape or len(values) < 3:
        raise InputError(
            f"drift takes a series of at least 3 numbers and as many times; got shapes {values.shape} and {times.shape}"
        )
    centred = times - times.mean()
    spread = float(centred @ centred)
    if spread == 0:
        raise InputError("drift needs times that differ")
    slope = float(centred @ (values - values.mean())) / spread
    rest = values - values.mean() - slope * centred
    error = float(np.sqrt(rest @ rest / (len(values) - 2) / spread))
    return Drift(slope, error, float(np.ptp(values)))
