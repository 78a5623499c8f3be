"""What the experiments of Hilden (2009) share: the two methods compared, index reduction, orders, and histories."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence

import numpy as np

from dalembert.draw._style import CYCLE, MARKERS, new_figure, styled
from dalembert.experiments._experiment import Check, Data, Document, at_most
from dalembert.experiments._figures import Axes, Figure, legend_below, log_log, over_time, panels, slope_line, zero_line
from dalembert.methods import LobattoSPARK, McLachlanPerlmutter, OneStepMethod
from dalembert.plot._panels import history
from dalembert.problems import Problem
from dalembert.runs._index_reduction import reduce_index
from dalembert.runs._trajectory import Trajectory
from dalembert.verify import slope

HILDEN = Document("hilden2009", "Hilden (2009), Numerical methods for nonholonomic mechanics")
BOTH: dict[str, OneStepMethod] = {"mp": McLachlanPerlmutter(), "spark": LobattoSPARK(stages=2)}
"""The two reversible methods of order 2 that the thesis compares."""
TITLES = {"mp": "McLachlan and Perlmutter (3.4)", "spark": "2-stage SPARK Lobatto IIIA-B"}


def index_one_solver() -> str:
    """IDA in the place of ode15s; where scikit-sundae is not installed, Radau."""
    return "IDA" if importlib.util.find_spec("sksundae") else "Radau"


def index_one_run(problem: Problem, t1: float, rtol: float, atol: float) -> Trajectory:
    """The DAE of index 1 by IDA, or the ODE for the state without multipliers, which are eliminated, by Radau."""
    reduced = reduce_index(problem)
    if index_one_solver() == "IDA":
        return reduced.simulate("IDA", t1=t1, rtol=rtol, atol=atol)
    return reduced.simulate("Radau", t1=t1, rtol=rtol, atol=atol, multipliers="eliminated")


def order_check(name: str, h: np.ndarray, errors: np.ndarray, order: float, within: float) -> Check:
    """How far the slope through all errors is from the order; nan if an error is not finite or does not fall."""
    measured, used = slope(h, errors, points=len(h))
    return at_most(f"{name}: |slope - {order:g}|", abs(measured - order) if np.all(used) else float("nan"), within)


@panels(4.6, 3.6)
def draw_orders(data: Data, ax: Axes, series: Mapping[str, tuple[str, str, int]], ylabel: str) -> None:
    """Errors against h, with lines of the promised slopes; `series` maps a name to its h, its label and its order."""
    for (name, (h_name, label, order)), color, marker in zip(series.items(), CYCLE, MARKERS, strict=False):
        h, error = data[h_name], data[name]
        ax.plot(h, error, marker, color=color, markersize=5, label=label)
        line = slope_line(ax, h, error, order, color, below=0.6)
        ax.annotate(f"{order}", (h[-1], line[-1]), xytext=(-10, -3), textcoords="offset points", fontsize=8, color=color)
    log_log(ax, ylabel=ylabel)
    ax.legend(loc="lower right")


def draw_histories(
    data: Data,
    panels: Sequence[tuple[str, Sequence[tuple[str, str, str]]]],
    xlabel: str,
    ylabel: str,
    log_floor: float | None = None,
    columns: int = 1,
) -> Figure:
    """Panels with a title each, of series given as (name of t, name of values, label); with `log_floor`, their sizes."""
    rows = -(-len(panels) // columns)
    with styled():
        figure = new_figure(3.7 * columns if columns > 1 else 6.4, 0.4 + 2.1 * rows)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, (title, series) in zip(axes, panels, strict=True):
            for (t, name, label), color in zip(series, CYCLE * 3, strict=False):
                values = data[name] if log_floor is None else np.maximum(np.abs(data[name]), log_floor)
                history(ax, data[t], values, color=color, label=label)
            if log_floor is None:
                zero_line(ax, 0.6)
            else:
                ax.set_yscale("log")
            over_time(ax, title, xlabel, ylabel, pad=12 if log_floor is None else 6)
            if len(series) < 4 and any(label for _, _, label in series):
                ax.legend(loc="best", ncols=2)
        labelled = [label for _, _, label in panels[0][1] if label]
        if len(labelled) > 3:
            legend_below(axes[0], 2 if len(labelled) < 5 else 3)
    return figure
