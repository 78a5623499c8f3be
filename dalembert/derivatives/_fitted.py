"""What an identification found: values with their covariance, intervals and regions of confidence, and a plot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert._warnings import warn
from dalembert.derivatives._given import finite, probability
from dalembert.draw._style import CYCLE, panel
from dalembert.errors import InputError
from dalembert.runs._trajectory import Trajectory
from dalembert.systems._model import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNDETERMINED = 1e-9
"""The ratio of singular values of the scaled Jacobian from which on data are taken not to determine all parameters."""
IMPROBABLE = 1e-4
"""The probability of residuals from which on they are taken to contradict a given sigma."""


@dataclass(frozen=True, eq=False)
class Fit:
    """What `da.fit` found: `values` and standard deviations `std` by name, their `covariance`, and the `run` with them.

    Rows and columns of the covariance are the fitted numbers in the order of `labels`. `sigma` is the standard deviation of the
    data, given or estimated from the residuals, which are in units of the data: model - data.
    """

    values: dict[str, np.ndarray]
    std: dict[str, np.ndarray]
    covariance: np.ndarray = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)
    sigma: np.ndarray | float
    residuals: np.ndarray = field(repr=False)
    t: np.ndarray = field(repr=False)
    data: np.ndarray = field(repr=False)
    run: Trajectory = field(repr=False)
    degrees_of_freedom: int
    estimated_sigma: bool
    evaluations: int
    message: str = field(repr=False, default="")

    def confidence(self, level: float = 0.95) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Lower and upper ends of the intervals that contain the true values with this probability, one by one."""
        from scipy.stats import norm, t

        tail = (1 + probability(level)) / 2
        width = t.ppf(tail, self.degrees_of_freedom) if self.estimated_sigma else norm.ppf(tail)
        return {name: (value - width * self.std[name], value + width * self.std[name]) for name, value in self.values.items()}

    def contains(self, values: Mapping[str, Any], level: float = 0.95) -> bool:
        """Whether these values, of all that was sought or of some, lie in the region that has this probability jointly."""
        from scipy.stats import chi2, f

        level = probability(level)
        shapes = {name: value.shape for name, value in self.values.items()}
        if not isinstance(values, Mapping):
            raise InputError(f'give values by name, as in {{"{next(iter(shapes))}": 1.0}}; got {one_line(values)}')
        unknown = next((name for name in values if name not in shapes), None)
        if unknown is not None or not values:
            raise InputError(f"the fit sought {', '.join(shapes)}; got values of {one_line(unknown or values)}")
        parts = {name: finite(f"the value of {name!r}", given, shapes[name]) for name, given in values.items()}
        off = np.concatenate([np.ravel(part - self.values[name]) for name, part in parts.items()])
        named = np.array([name for name, shape in shapes.items() for _ in np.ndindex(shape)])
        chosen = np.concatenate([np.flatnonzero(named == name) for name in values])
        unit = np.sqrt(np.diag(self.covariance)[chosen])
        weights, axes = np.linalg.eigh(self.covariance[np.ix_(chosen, chosen)] / np.outer(unit, unit))
        kept = weights > UNDETERMINED * weights[-1]  # initial values off the constraints have no effect
        distance, rank = axes.T[kept] @ (off / unit) / np.sqrt(weights[kept]), int(np.sum(kept))
        law = rank * f.ppf(level, rank, self.degrees_of_freedom) if self.estimated_sigma else chi2.ppf(level, rank)
        return bool(distance @ distance <= law)

    @property
    def misfit(self) -> float:
        """The size of the residuals in units of sigma, about 1 if the model and sigma are right."""
        return float(np.sqrt(np.sum((self.residuals / self.sigma) ** 2) / self.degrees_of_freedom))

    def plot(self, path: str | os.PathLike[str] | None = None, ax: Axes | None = None) -> Figure:
        """The data as points, and the fitted model as lines."""
        fitted = self.data + self.residuals
        with panel(ax, path, (6.0, 3.6)) as (figure, axes):
            for k in range(self.data.shape[1]):
                color = CYCLE[k % len(CYCLE)]
                axes.plot(self.t, self.data[:, k], ".", color=color, ms=3)
                axes.plot(self.t, fitted[:, k], "-", color=color, lw=1)
            axes.set_xlabel("t")
            axes.set_ylabel("data and fit")
        return figure


def warn_of_misfit(fit: Fit) -> None:
    """Say so if the residuals contradict a given sigma: their squares have the distribution chi^2 if it is right."""
    from scipy.stats import chi2

    if fit.estimated_sigma:
        return
    total = fit.misfit**2 * fit.degrees_of_freedom
    if chi2.sf(total, fit.degrees_of_freedom) < IMPROBABLE:
        cause = "the model does not describe the data, the fit is a wrong minimum, or sigma is too small; so is std"
    elif chi2.cdf(total, fit.degrees_of_freedom) < IMPROBABLE:
        cause = "sigma is too large, and so is std"
    else:
        return
    warn(f"the residuals are {fit.misfit:.3g} times as large as sigma says: {cause}")
