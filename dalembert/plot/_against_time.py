"""What is drawn against time: coordinates, the energy and impacts, residuals and multipliers of the constraints."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dalembert.draw._scene import stretch
from dalembert.draw._style import BLUE, CYCLE, VERMILION, number, panel
from dalembert.errors import InputError, is_one_of
from dalembert.plot._panels import (
    EPSILON,
    LEAST_RESIDUAL,
    PathLike,
    coordinate_indices,
    curve_names,
    history,
    of_index_two,
    position_name,
    spans_decades,
)
from dalembert.plot._thin import envelope, slope_in_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dalembert.problems import Problem
    from dalembert.runs._trajectory import Trajectory

MOST_MARKS = 100
"""Impacts that are marked one by one."""
RESIDUAL_NAMES = {"g": "$|g|$", "g_dot": r"$|\dot g|$"}


def solution(
    run: Trajectory,
    coordinates: int | str | Sequence[int | str] | None = None,
    *,
    problem: Problem | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """Coordinates q, or y, against time: those chosen by index or by name, or the first seven.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.double_pendulum()
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=100)
        >>> figure = da.plot.solution(run, ["x1", "x2"], problem=problem)
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['$x_{1}$', '$x_{2}$']

    """
    dim = run.y.shape[1]
    chosen = coordinate_indices(range(dim)[: len(CYCLE)] if coordinates is None else coordinates, run, problem)
    with panel(ax, path, (5.0, 2.4)) as (figure, axes):
        for i, color in zip(chosen, itertools.cycle(CYCLE)):
            history(axes, run.t, run.y[:, i], color=color, label=position_name(i, run, problem))
        axes.set(xlabel="$t$", ylabel="$y$" if "q" not in dict(run.blocks) else "$q$")
        curve_names(axes)
        axes.grid(True)
    return figure


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
    if not is_one_of(scale, "auto", "linear", "log"):
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
        >>> hit = Impacts(t=2 * one, which=0 * one, impulse=one, friction=0 * one, q=none, p_before=none,
        ...               p_after=none, energy_before=0 * one, energy_after=0 * one)
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


def residuals(run: Trajectory, *, ax: Axes | None = None, path: PathLike | None = None) -> Figure:
    """How far a run is from its constraints: the largest |g| and |g_dot| against time, on a logarithmic axis.

    Long runs show the largest residual in each of 100 stretches. The dashed line is the machine precision.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> run = da.simulate(da.problems.pendulum(), da.Rattle(), steps=500)
        >>> plot.residuals(run).axes[0].get_yscale()
        'log'

    """
    with panel(ax, path, (5.0, 2.4)) as (figure, axes):
        top = 1e-14
        drawn = [(name, value) for name, value in run.residuals.items() if value.shape[1]]
        for (name, value), color in zip(drawn, (BLUE, VERMILION, *CYCLE[2:]), strict=False):
            t, _, largest = envelope(run.t, np.max(np.abs(value), axis=1), bins=100)
            axes.plot(t, np.maximum(largest, LEAST_RESIDUAL), color=color, label=_residual_name(run, name, value))
            top = max(top, 3 * float(np.nanmax(largest)))
        if drawn:
            axes.axhline(EPSILON, color="#707070", linewidth=0.8, linestyle=(0, (4, 3)))
            axes.set(yscale="log", ylim=(LEAST_RESIDUAL, top), ylabel="residual", xlabel="$t$")
            axes.minorticks_off()
            if any("most in" in str(line.get_label()) for line in axes.lines):  # too long to stand beside the title
                axes.set_ylim(top=1e3 * top)
                axes.legend(loc="upper right", fontsize=7)
            else:
                axes.legend(loc="lower right", ncols=len(drawn), bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
            axes.grid(True)
        else:
            axes.text(0.5, 0.5, "no constraints", ha="center", va="center", transform=axes.transAxes)
            axes.set_axis_off()
    return figure


def _residual_name(run: Trajectory, name: str, value: np.ndarray) -> str:
    """What a residual is called, with the row of a mechanism in which it is largest."""
    rows = run.names.get("g" if name == "g_dot" else name, ())
    worst = f", most in {rows[int(np.argmax(np.nanmax(np.abs(value), axis=0)))]}" if rows else ""
    return RESIDUAL_NAMES.get(name, f"$|{name}|$") + worst


def multipliers(
    run: Trajectory,
    which: Sequence[int] | None = None,
    *,
    window: tuple[float, float] | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """The multipliers lam and psi of the constraints against time; for a DAE of index 2, its algebraic variables z.

    `which` are indices, those of psi after those of lam, at most seven. `window` is the stretch of time to show; without it,
    all of the run.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=500)
        >>> len(plot.multipliers(run, window=(0, 20)).axes[0].lines)
        2

    """
    values = np.hstack([run.lam, run.psi])
    letters = ((r"\lambda", run.lam.shape[1]), ("z" if of_index_two(run) else r"\psi", run.psi.shape[1]))
    names = [f"${letter}_{{{i + 1}}}$" for letter, count in letters for i in range(count)]
    rows = [*run.names.get("g", ()), *run.names.get("k", ())]
    names = [f"{name} of {row}" for name, row in zip(names, rows, strict=True)] if rows else names
    chosen = list(range(min(len(names), len(CYCLE)))) if which is None else list(which)
    if not names:
        raise InputError("this system has no constraints, so there are no multipliers to draw")
    if len(chosen) > len(CYCLE) or any(not 0 <= i < len(names) for i in chosen):
        raise InputError(f"choose at most {len(CYCLE)} multipliers out of 0 to {len(names) - 1}; got which={chosen}")
    first, last = sorted((run.t[0], run.t[-1]) if window is None else stretch(window))
    inside = (run.t >= first) & (run.t <= last)
    if not inside.any():
        raise InputError(f"the run has no state between t = {first:g} and {last:g}")
    with panel(ax, path, (5.0, 2.4)) as (figure, axes):
        for i, color in zip(chosen, CYCLE, strict=False):
            history(axes, run.t[inside], values[inside, i], color=color, label=names[i])
        axes.set(xlabel="$t$", ylabel="algebraic variable" if of_index_two(run) else "multiplier")
        curve_names(axes)
        axes.grid(True)
    return figure
