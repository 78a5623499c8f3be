"""What the experiments of Hilden (2009) share."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data
from dalembert.methods import LobattoSPARK, McLachlanPerlmutter, OneStepMethod
from dalembert.problems import Problem
from dalembert.runs._index_reduction import reduce_index
from dalembert.runs._trajectory import Trajectory
from dalembert.verify import drift, slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCUMENT = "Hilden (2009), Numerical methods for nonholonomic mechanics"
BOTH: dict[str, OneStepMethod] = {"mp": McLachlanPerlmutter(), "spark": LobattoSPARK(stages=2)}
"""The two reversible methods of order 2 that the thesis compares."""
TITLES = {"mp": "McLachlan and Perlmutter (3.4)", "spark": "2-stage SPARK Lobatto IIIA-B"}


def largest(values: np.ndarray) -> float:
    """The largest absolute value; nan if one of them is."""
    return float(np.max(np.abs(values)))


def ratio(size: float, other: float) -> float:
    """Size over other; nan if there is nothing to compare with."""
    return float(size / other) if other else float("nan")


def energy_error(run: Trajectory) -> np.ndarray:
    """E_k - E_0."""
    return np.asarray(run.energy - run.energy[0])


# -- index 1 -------------------------------------------------------------------------------------------------------------


def index_one_solver() -> str:
    """IDA in the place of ode15s; where scikit-sundae is not installed, Radau."""
    return "IDA" if importlib.util.find_spec("sksundae") else "Radau"


def index_one_run(problem: Problem, t1: float, rtol: float, atol: float) -> Trajectory:
    """The DAE of index 1 by IDA, or the ODE for the state alone, multipliers eliminated, by Radau."""
    reduced = reduce_index(problem)
    if index_one_solver() == "IDA":
        return reduced.simulate("IDA", t1=t1, rtol=rtol, atol=atol)
    return reduced.simulate("Radau", t1=t1, rtol=rtol, atol=atol, multipliers="eliminated")


# -- orders --------------------------------------------------------------------------------------------------------------


def order_check(name: str, h: np.ndarray, errors: np.ndarray, order: float, within: float) -> Check:
    """How far the slope through all errors is from the order; nan if an error is not finite or does not fall."""
    measured, used = slope(h, errors, points=len(h))
    return Check(f"{name}: |slope - {order:g}|", abs(measured - order) if np.all(used) else float("nan"), "<=", within)


def draw_orders(data: Data, series: Mapping[str, tuple[str, str, int]], ylabel: str) -> Figure:
    """Errors against h, with lines of the promised slopes; `series` maps a name to its h, its label and its order."""
    from dalembert.draw._style import CYCLE, MARKERS, new_figure, styled

    with styled():
        figure = new_figure(4.6, 3.6)
        ax = figure.add_subplot()
        for (name, (h_name, label, order)), color, marker in zip(series.items(), CYCLE, MARKERS, strict=False):
            h, error = data[h_name], data[name]
            ax.plot(h, error, marker, color=color, markersize=5, label=label)
            line = 0.6 * error[0] * (h / h[0]) ** order
            ax.plot(h, line, color=color, linewidth=0.7, linestyle=(0, (4, 3)))
            ax.annotate(f"{order}", (h[-1], line[-1]), xytext=(-10, -3), textcoords="offset points", fontsize=8, color=color)
        ax.set(xscale="log", yscale="log", xlabel="$h$", ylabel=ylabel)
        ax.minorticks_off()
        ax.grid(True)
        ax.legend(loc="lower right")
    return figure


# -- energies ------------------------------------------------------------------------------------------------------------


def steadiness(t: np.ndarray, error: np.ndarray) -> tuple[float, float, float]:
    """Largest |E - E_0|, the rise of its fitted line over that, and the largest of the last tenth over that of the first."""
    size, tenth = largest(error), max(1, len(error) // 10)
    rise = abs(drift(error, t).slope) * float(t[-1] - t[0]) if np.isfinite(size) else float("nan")
    return size, ratio(rise, size), ratio(largest(error[-tenth:]), largest(error[:tenth]))


def draw_histories(
    data: Data,
    panels: Sequence[tuple[str, Sequence[tuple[str, str, str]]]],
    xlabel: str,
    ylabel: str,
    log_floor: float | None = None,
    columns: int = 1,
) -> Figure:
    """Panels with a title each, of series given as (name of t, name of values, label); with `log_floor`, their sizes."""
    from dalembert.draw._style import BLACK, CYCLE, new_figure, styled
    from dalembert.plot._panels import history

    rows = -(-len(panels) // columns)
    with styled():
        figure = new_figure(3.7 * columns if columns > 1 else 6.4, 0.4 + 2.1 * rows)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, (title, series) in zip(axes, panels, strict=True):
            for (t, name, label), color in zip(series, CYCLE * 3, strict=False):
                values = data[name] if log_floor is None else np.maximum(np.abs(data[name]), log_floor)
                history(ax, data[t], values, color=color, label=label)
            if log_floor is None:
                ax.axhline(0.0, color=BLACK, linewidth=0.6, linestyle=(0, (4, 3)))
            else:
                ax.set_yscale("log")
            ax.set_title(title, loc="left", pad=12 if log_floor is None else 6)
            ax.set(xlabel=xlabel, ylabel=ylabel)
            ax.grid(True)
            if len(series) < 4 and any(label for _, _, label in series):
                ax.legend(loc="best", ncols=2)
        labelled = [label for _, _, label in panels[0][1] if label]
        if len(labelled) > 3:
            figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2 if len(labelled) < 5 else 3)
    return figure
