"""One panel each: phase portrait, energy, residuals, multipliers, mechanism, convergence."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dalembert.errors import InputError
from dalembert.plot._style import BLUE, CYCLE, MARKERS, VERMILION, number, panel, symbol
from dalembert.plot._thin import envelope, slope_in_time, spread
from dalembert.verify import OrderStudy, slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dalembert.problems import Problem
    from dalembert.trajectory import Trajectory

PathLike = str | os.PathLike[str]
EPSILON = float(np.finfo(float).eps)
LEAST_RESIDUAL = 1e-18
"""Where an exact zero is drawn on a logarithmic axis."""
MOST_MARKS = 100
"""Impacts that are marked one by one."""


def phase_portrait(
    run: Trajectory,
    coordinate: int | str = 0,
    *,
    problem: Problem | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """The states of a run in the plane of one coordinate and its momentum, (q_i, p_i); (y_i, z_i) for an ODAE.

    `coordinate` is the index i, or the coordinate's name in `problem.labels`. A DAE of index 2 has no momenta and is refused.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> problem = da.problems.double_pendulum()
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=500)
        >>> plot.phase_portrait(run, "z2", problem=problem).axes[0].get_xlabel()
        '$z_{2}$'

    """
    if of_index_two(run):
        raise InputError("a DAE of index 2 has no momenta, so no phase portrait: plot.overview draws y and z against time")
    i = coordinate_index(coordinate, run.y.shape[1], problem)
    if i >= run.z.shape[1]:
        raise InputError(f"y[{i}] has no z[{i}] to be drawn with: the system has {run.z.shape[1]} variables z, counted from 0")
    with panel(ax, path, (3.4, 3.0)) as (figure, axes):
        scatter(axes, run.y[:, i], run.z[:, i])
        axes.set(xlabel=position_name(i, run, problem), ylabel=momentum_name(i, run, problem))
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
        axes.set_title(f"max {number(largest)},  slope {number(trend)}", loc="right", color="#505050", fontsize=8)
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
            axes.plot(t, np.maximum(largest, LEAST_RESIDUAL), color=color, label=RESIDUAL_NAMES.get(name, f"$|{name}|$"))
            top = max(top, 3 * float(np.nanmax(largest)))
        if drawn:
            axes.axhline(EPSILON, color="#707070", linewidth=0.8, linestyle=(0, (4, 3)))
            axes.set(yscale="log", ylim=(LEAST_RESIDUAL, top), ylabel="residual", xlabel="$t$")
            axes.minorticks_off()
            axes.legend(loc="lower right", ncols=2, bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
            axes.grid(True)
        else:
            axes.text(0.5, 0.5, "no constraints", ha="center", va="center", transform=axes.transAxes)
            axes.set_axis_off()
    return figure


RESIDUAL_NAMES = {"g": "$|g|$", "g_dot": r"$|\dot g|$"}


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
    chosen = list(range(min(len(names), len(CYCLE)))) if which is None else list(which)
    if not names:
        raise InputError("this system has no constraints, so there are no multipliers to draw")
    if len(chosen) > len(CYCLE) or any(not 0 <= i < len(names) for i in chosen):
        raise InputError(f"choose at most {len(CYCLE)} multipliers out of 0 to {len(names) - 1}; got which={chosen}")
    inside = np.ones(len(run.t), dtype=bool) if window is None else (run.t >= window[0]) & (run.t <= window[1])
    if not inside.any():
        raise InputError(f"the run has no state between t = {window[0]:g} and {window[1]:g}")  # type: ignore[index]
    with panel(ax, path, (5.0, 2.4)) as (figure, axes):
        for i, color in zip(chosen, CYCLE, strict=False):
            history(axes, run.t[inside], values[inside, i], color=color, label=names[i])
        axes.set(xlabel="$t$", ylabel="algebraic variable" if of_index_two(run) else "multiplier")
        curve_names(axes)
        axes.grid(True)
    return figure


def configurations(
    run: Trajectory,
    problem: Problem,
    *,
    count: int = 6,
    window: tuple[float, float] | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """The mechanism at `count` equidistant times of `window`, light to dark, with the path of its last point.

    Without `window`, the snapshots begin at the start and end when the mechanism has moved one and a half times its own size.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> problem = da.problems.double_pendulum()
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=100)
        >>> plot.configurations(run, problem, count=5).axes[0].get_aspect()
        1.0

    """
    if problem.drawing is None:
        raise InputError(f"the problem {problem.name} does not say how it is drawn: give its Problem a drawing=")
    if count < 1:
        raise InputError(f"count is a positive number of snapshots; got {count!r}")
    first, last = (0, _first_swing(run, problem)) if window is None else np.searchsorted(run.t, window)
    last = min(int(last), len(run.t) - 1)
    rows = np.unique(np.linspace(first, last, count).round().astype(int))
    pictures = [[np.asarray(line, dtype=float) for line in problem.drawing(run.y[row])] for row in rows]
    spatial = pictures[0][0].shape[1] == 3
    with panel(ax, path, (3.4, 3.2), "3d" if spatial else None) as (figure, axes):
        import matplotlib

        shades = matplotlib.colormaps["cividis_r"](np.linspace(0.12, 1.0, len(rows)))
        trace_rows = spread(last - first + 1, 2000) + first
        trace = np.array([np.asarray(problem.drawing(run.y[row])[-1])[-1] for row in trace_rows])
        axes.plot(*trace.T, color=VERMILION, linewidth=0.8, zorder=1)
        for picture, shade, depth in zip(pictures, shades, range(len(rows)), strict=True):
            for line in picture:
                marker = "o" if len(line) <= 12 else ""
                axes.plot(*line.T, color=shade, marker=marker, markersize=3.5, linewidth=1.3, zorder=2 + depth)
        axes.set_title(f"$t = {run.t[rows[0]]:.3g}$ to ${run.t[rows[-1]]:.3g}$", loc="right", color="#505050", fontsize=8)
        axes.set_aspect("equal", adjustable="datalim" if not spatial else None)
        axes.margins(0.08)
        axes.locator_params(nbins=4 if spatial else 5)
        axes.grid(True)
        if spatial:
            axes.tick_params(labelsize=6, pad=-1)
    return figure


def _first_swing(run: Trajectory, problem: Problem) -> int:
    """The index at which the mechanism has moved one and a half times its own size, in the mean over its points."""
    assert problem.drawing is not None
    rows = np.arange(min(len(run.t), 5000))
    points = np.array([np.vstack(problem.drawing(run.y[row])) for row in rows])
    size = float(np.max(np.ptp(points[0], axis=0)))
    travelled = np.cumsum(np.max(np.linalg.norm(np.diff(points, axis=0), axis=2), axis=1))
    return min(int(np.searchsorted(travelled, 1.5 * size)) + 1, len(rows) - 1)


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
            seen = np.isfinite(error) & (error > 0)
            used = seen & study.used[name]
            label = f"{_component(name)}: slope {study.slopes[name]:.2f}"
            axes.plot(study.h[seen], error[seen], color=color, linewidth=1.0, zorder=2)
            look: dict[str, Any] = {"color": color, "marker": marker, "markersize": 4.5, "linestyle": "none", "zorder": 3}
            axes.plot(study.h[seen & ~used], error[seen & ~used], **look, markerfacecolor="white")
            axes.plot(study.h[used], error[used], **look, label=label)
            if orders is not None and name in orders and used.any():
                _promised_slope(axes, study.h[seen], float(study.h[used].min()), float(error[used].min()), orders[name])
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


# -- marks that the panels and the experiments share ---------------------------------------------------------------------


def scatter(axes: Axes, x: np.ndarray, y: np.ndarray, *, color: str = BLUE, size: float | None = None) -> None:
    """Points in a plane; at most 20,000 of them, as pixels even in .pdf and .svg, so that files stay small."""
    rows = spread(len(x))
    if len(rows) < 300:
        axes.plot(x, y, color=color, linewidth=0.6, alpha=0.5)
    size = (3.0 if len(rows) < 1000 else 2.0 if len(rows) < 6000 else 1.3) if size is None else size
    axes.plot(
        x[rows], y[rows], ".", color=color, markersize=size, markeredgewidth=0, rasterized=len(rows) > 2000, linestyle="none"
    )
    axes.margins(0.05)


def history(axes: Axes, t: np.ndarray, y: np.ndarray, *, color: str = BLUE, label: str | None = None) -> None:
    """A series against time: a line, or for long runs the band between its extremes."""
    if len(t) <= 20_000:
        axes.plot(t, y, color=color, label=label, linewidth=0.9 if len(t) < 2000 else 0.5)
        return
    middle, low, high = envelope(t, y, bins=500)
    axes.fill_between(middle, low, high, color=color, alpha=0.35, linewidth=0)
    for edge in (low, high):
        axes.plot(middle, edge, color=color, linewidth=0.5, label=label if edge is high else None)


def curve_names(axes: Axes) -> None:
    """The legend of a few curves stands beside the title; that of many would run into it, so it stands among them."""
    count = len(axes.get_legend_handles_labels()[1])
    if count <= 3:
        axes.legend(loc="lower right", ncols=count, bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    else:
        axes.legend(loc="best", ncols=2)


def spans_decades(size: np.ndarray, decades: float) -> bool:
    """Whether a series of sizes spans more than so many decades for much of its length: from its lower decile to its top."""
    positive = size[np.isfinite(size) & (size > 0)]
    return len(positive) > 10 and bool(positive.max() > 10.0**decades * np.quantile(positive, 0.1))


# -- names ---------------------------------------------------------------------------------------------------------------


def of_index_two(run: Trajectory) -> bool:
    """Whether a run is one of a DAE of index 2: its state is y alone."""
    return run.blocks[1][0] == "y"


def coordinate_index(coordinate: int | str, dim: int, problem: Problem | None) -> int:
    """The index of a coordinate given by its index or its name."""
    if isinstance(coordinate, str):
        labels = () if problem is None else problem.labels
        if coordinate not in labels:
            known = ", ".join(labels) or "none without problem=: give an index"
            raise InputError(f"there is no coordinate named {coordinate!r} (names: {known})")
        return labels.index(coordinate)
    if not -dim <= coordinate < dim:
        raise InputError(f"coordinate {coordinate} does not exist: the system has {dim}, counted from 0")
    return coordinate % dim


def position_name(i: int, run: Trajectory, problem: Problem | None) -> str:
    """How the axis of q_i, or y_i, is labelled."""
    letter = "y" if of_index_two(run) else run.blocks[0][0]
    return f"${symbol(problem.labels[i])}$" if problem is not None and problem.labels else f"{letter}[{i}]"


def momentum_name(i: int, run: Trajectory, problem: Problem | None) -> str:
    """How the axis of p_i, or z_i, is labelled."""
    letter = run.blocks[1][0]
    named = letter == "p" and problem is not None and problem.labels
    return f"$p_{{{symbol(problem.labels[i])}}}$" if named else f"{letter}[{i}]"  # type: ignore[union-attr]
