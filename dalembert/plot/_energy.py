"""The energy along a run, and what impacts do to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dalembert.draw._style import BLUE, CYCLE, number, panel
from dalembert.errors import InputError
from dalembert.plot._panels import EPSILON, LEAST_RESIDUAL, PathLike, curve_names, history, spans_decades
from dalembert.plot._thin import slope_in_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dalembert.runs._trajectory import Trajectory

MOST_MARKS = 100
"""Impacts that are marked one by one."""


def energy_error(
    run: Trajectory,
    *,
    scale: Literal["auto", "linear", "log"] = "auto",
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """H along a run, less its value at the start, with its largest size and the slope of the line fitted through it.

    The axis is logarithmic (then |H - H_0| is drawn) if the error spans more than four decades, or as `scale` says. Dashed
    lines mark impacts, unless there are more than 100.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> run = da.simulate(da.problems.pendulum(), da.Rattle(), steps=500)
        >>> plot.energy_error(run).axes[0].get_ylabel()
        '$H - H_0$'

    """
    if scale not in ("auto", "linear", "log"):
        raise InputError(f'scale is "auto", "linear" or "log"; got {scale!r}')
    error = run.energy - run.energy[0]
    logarithmic = scale == "log" or (scale == "auto" and spans_decades(np.abs(error), 4))
    with panel(ax, path, (5.0, 2.4)) as (figure, axes):
        if logarithmic:
            floor = EPSILON * max(abs(float(run.energy[0])), LEAST_RESIDUAL)
            history(axes, run.t, np.maximum(np.abs(error), floor), color=BLUE)
            axes.set(yscale="log", ylabel="$|H - H_0|$")
        else:
            axes.axhline(0.0, color="#9a9a9a", linewidth=0.6)
            history(axes, run.t, error, color=BLUE)
            axes.set(ylabel="$H - H_0$")
        if run.impacts is not None and len(run.impacts) <= MOST_MARKS:
            for t in run.impacts.t:
                axes.axvline(t, color="#9a9a9a", linewidth=0.6, linestyle="--")
        axes.set(xlabel="$t$")
        axes.grid(True)
        largest, trend = float(np.max(np.abs(error))), slope_in_time(run.t, error)
        slope = "-" if trend is None else number(trend)
        axes.set_title(f"max {number(largest)},  slope {slope}", loc="right", color="#505050", fontsize=8)
    return figure


def impacts(run: Trajectory, *, ax: Axes | None = None, path: PathLike | None = None) -> Figure:
    """The energy H of a run with impacts: a vertical line at each, in the colour of the unilateral constraint that is hit.

    A dot stands at the energy after each impact, and a ring at the energy before it, so that a loss shows as a gap. Stretches
    of sustained contact are shaded. Beyond 100 impacts the lines are left out.

    Example:
        >>> import dataclasses, numpy as np, dalembert as da
        >>> from dalembert.runs._trajectory import Impacts
        >>> run = da.simulate(da.problems.pendulum(), da.Rattle(), steps=50)
        >>> none, one = np.zeros((1, 2)), np.ones(1)
        >>> hit = Impacts(t=2 * one, which=0 * one, impulse=one, q=none, p_before=none, p_after=none,
        ...               energy_before=0 * one, energy_after=0 * one)
        >>> figure = da.plot.impacts(dataclasses.replace(run, impacts=hit))
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['$\\\\varphi_{1}$: 1 impact']

    """
    if run.impacts is None:
        raise InputError("this run has no record of impacts: they belong to runs by a collision integrator")
    hits = run.impacts
    with panel(ax, path, (5.0, 2.6)) as (figure, axes):
        history(axes, run.t, run.energy, color=BLUE)
        for i, constraint in enumerate(np.unique(hits.which)):
            mine, color = hits.which == constraint, CYCLE[1 + i % (len(CYCLE) - 1)]
            name = rf"$\varphi_{{{int(constraint) + 1}}}$: {mine.sum():,} impact{'s' if mine.sum() > 1 else ''}"
            if len(hits) <= MOST_MARKS:
                for t in hits.t[mine]:
                    axes.axvline(t, color=color, linewidth=0.8, linestyle="--")
            look: dict[str, Any] = {"color": color, "linestyle": "none", "marker": "o", "markersize": 3.5}
            axes.plot(hits.t[mine], hits.energy_before[mine], **look, markerfacecolor="white")
            axes.plot(hits.t[mine], hits.energy_after[mine], **look, label=name)
        if run.contacts is not None:
            for begin, end in zip(run.contacts.begin, run.contacts.end, strict=True):
                axes.axvspan(begin, end, color="#e4e4e4", linewidth=0)
        axes.set(xlabel="$t$", ylabel="$H$")
        if len(hits):
            curve_names(axes)
    return figure
