"""Does a series drift?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import InputError


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
    values = np.asarray(series, dtype=float)
    if not np.all(np.isfinite(values)):
        raise InputError("drift takes finite numbers; leave out the part of a run after it broke down")
    times = np.arange(len(values), dtype=float) if t is None else np.asarray(t, dtype=float)
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
