"""Errors against step sizes, and against what they cost."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert._fits import OrderStudy, slope
from dalembert.draw._style import CYCLE, MARKERS, panel
from dalembert.errors import InputError
from dalembert.plot._panels import PathLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def convergence(
    h: Any,
    errors: Mapping[str, Any] | None = None,
    *,
    orders: Mapping[str, float] | None = None,
    points: int = 3,
    floor: float = 0.0,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """Errors against step sizes on logarithmic axes, each curve with the slope of the line fitted through it.

    Give what `da.verify.order` returned, or decreasing step sizes and a mapping from names to errors, one for each h; then
    the slopes are those of `da.verify.slope` with these `points` and `floor`. Filled points enter the fit. `orders` maps names
    to the slopes that theory promises, drawn as dashed lines.

    Example:
        >>> import numpy as np
        >>> from dalembert import plot
        >>> h = 0.1 / 2 ** np.arange(5)
        >>> figure = plot.convergence(h, {"q": 3 * h**4, "p": 2 * h**4}, orders={"q": 4})
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['$q$: slope 4.00', '$p$: slope 4.00']

    """
    study = h if isinstance(h, OrderStudy) else _study(h, errors, points, floor)
    with panel(ax, path, (3.8, 3.4)) as (figure, axes):
        for (name, error), color, marker in zip(study.errors.items(), itertools.cycle(CYCLE), itertools.cycle(MARKERS)):
            shown = np.isfinite(error) & (error > 0)
            used = shown & study.used[name]
            label = f"{_component(name)}: slope {study.slopes[name]:.2f}"
            axes.plot(study.h[shown], error[shown], color=color, linewidth=1.0, zorder=2)
            look: dict[str, Any] = {"color": color, "marker": marker, "markersize": 4.5, "linestyle": "none", "zorder": 3}
            axes.plot(study.h[shown & ~used], error[shown & ~used], **look, markerfacecolor="white")
            axes.plot(study.h[used], error[used], **look, label=label)
            if orders is not None and name in orders and used.any():
                _promised_slope(axes, study.h[shown], float(study.h[used].min()), float(error[used].min()), orders[name])
        axes.set(xscale="log", yscale="log", xlabel="$h$", ylabel="error")
        axes.minorticks_off()
        axes.grid(True)
        axes.legend(loc="best")
    return figure


def _study(h: Any, errors: Mapping[str, Any] | None, points: int, floor: float) -> OrderStudy:
    sizes = np.asarray(h, dtype=float)
    curves = {name: np.asarray(values, dtype=float) for name, values in (errors or {}).items()}
    if sizes.ndim != 1 or not curves or any(values.shape != sizes.shape for values in curves.values()):
        raise InputError("convergence needs a list of step sizes and, for each name, one error for each of them")
    if not np.all(np.diff(sizes) < 0):
        raise InputError("convergence needs step sizes in decreasing order")
    fits = {name: slope(sizes, values, points=points, floor=floor) for name, values in curves.items()}
    return OrderStudy(sizes, curves, {n: fit[0] for n, fit in fits.items()}, {n: fit[1] for n, fit in fits.items()})


def _promised_slope(axes: Axes, h: np.ndarray, at: float, error: float, order: float) -> None:
    """A dashed line of slope `order` a little below a curve's finest fitted point, with its slope written at its end."""
    ends = np.array([h.min(), h.max()])
    line = 0.4 * error * (ends / at) ** order
    axes.plot(ends, line, color="#505050", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(f"{order:g}", (ends[1], line[1]), xytext=(3, -3), textcoords="offset points", fontsize=8, color="#505050")


def _component(name: str) -> str:
    greek = {"lam": r"$\lambda$", "psi": r"$\psi$", "stage_lam": r"$\Lambda_s$", "stage_psi": r"$\Psi_s$"}
    return {**{letter: f"${letter}$" for letter in "qpvyz"}, **greek}.get(name, name)


def work_precision(
    results: Mapping[str, tuple[Any, Any]],
    *,
    cost: str = "seconds",
    error: str = "error",
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """What accuracy costs: `results` maps names of methods to (costs, errors), one pair a run.

    Both axes are logarithmic, and errors decrease to the right: better is lower and further right. Runs without a finite,
    positive error are left out.

    Example:
        >>> import numpy as np
        >>> from dalembert import plot
        >>> h = 0.1 / 2 ** np.arange(5)
        >>> figure = plot.work_precision({"order 2": (1e-4 / h, h**2), "order 4": (3e-4 / h, h**4)})
        >>> figure.axes[0].get_ylabel(), bool(figure.axes[0].xaxis_inverted())
        ('seconds', True)

    """
    if not results:
        raise InputError("work_precision needs results: a mapping from names of methods to their costs and errors")
    with panel(ax, path, (4.2, 3.4)) as (figure, axes):
        for (name, pair), color, marker in zip(results.items(), itertools.cycle(CYCLE), itertools.cycle(MARKERS)):
            spent, reached = (np.asarray(values, dtype=float) for values in pair)
            if spent.ndim != 1 or spent.shape != reached.shape:
                raise InputError(f"{name} needs one cost for each error; got {spent.shape} and {reached.shape}")
            shown = np.isfinite(reached) & (reached > 0) & np.isfinite(spent) & (spent > 0)
            axes.plot(reached[shown], spent[shown], color=color, marker=marker, markersize=4, label=name)
        axes.set(xscale="log", yscale="log", xlabel=error, ylabel=cost)
        axes.invert_xaxis()
        axes.minorticks_off()
        axes.grid(True)
        axes.legend(loc="best")
    return figure
