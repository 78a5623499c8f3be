"""One page on a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalembert.plot._panels import (
    configurations,
    coordinate_index,
    energy_error,
    history,
    phase_portrait,
    position_name,
    residuals,
    scatter,
)
from dalembert.plot._style import check_suffix, new_figure, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dalembert.problems import Problem
    from dalembert.trajectory import Trajectory


def overview(
    run: Trajectory,
    path: str | os.PathLike[str] | None = None,
    *,
    problem: Problem | None = None,
    coordinates: Sequence[int | str] | None = None,
) -> Figure:
    """One page on a run: the motion, phase portraits of two coordinates, the energy error and the constraint residuals.

    `problem` gives the coordinates their names and draws the mechanism; without it the first panel shows the path in the
    plane of the first two coordinates. `coordinates` chooses the phase portraits: the first and the last one by default.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> problem = da.problems.double_pendulum()
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=500)
        >>> figure = plot.overview(run, problem=problem, coordinates=["x1", "z2"])
        >>> len(figure.axes)
        5

    """
    if path is not None:
        check_suffix(path)
    dim = run.q.shape[1]
    if coordinates is None:
        coordinates = [0] if dim == 1 else [0, dim - 1]
    chosen = [coordinate_index(coordinate, dim, problem) for coordinate in coordinates]
    with styled():
        figure = new_figure(8.6, 5.2)
        figure.suptitle(_headline(run, problem), fontsize=10, x=0.01, ha="left")
        rows = figure.add_gridspec(2, 1, height_ratios=(1.25, 1.0))
        upper = rows[0].subgridspec(1, 1 + len(chosen))
        constrained = any(values.shape[1] for values in run.residuals.values())
        lower = rows[1].subgridspec(1, 2 if constrained else 1)
        _motion(run, problem, figure.add_subplot(upper[0], projection=_projection(run, problem)))
        for column, i in enumerate(chosen, start=1):
            ax = figure.add_subplot(upper[column])
            phase_portrait(run, i, problem=problem, ax=ax)
            ax.set_title("phase portrait", loc="left")
        ax = figure.add_subplot(lower[0])
        energy_error(run, ax=ax)
        ax.set_title("energy", loc="left")
        if constrained:
            ax = figure.add_subplot(lower[1])
            residuals(run, ax=ax)
            ax.set_title("constraints", loc="left")
        if path is not None:
            save(figure, path)
    return figure


def _motion(run: Trajectory, problem: Problem | None, ax: Axes) -> None:
    """The mechanism, the path in the plane, or the only coordinate against time."""
    if problem is not None and problem.drawing is not None:
        configurations(run, problem, ax=ax)
        ax.set_title("motion", loc="left")
    elif run.q.shape[1] > 1:
        scatter(ax, run.q[:, 0], run.q[:, 1])
        ax.set(xlabel=position_name(0, problem), ylabel=position_name(1, problem))
        ax.set_title("path", loc="left")
    else:
        history(ax, run.t, run.q[:, 0])
        ax.set(xlabel="$t$", ylabel=position_name(0, problem))
        ax.set_title("motion", loc="left")


def _projection(run: Trajectory, problem: Problem | None) -> str | None:
    spatial = problem is not None and problem.drawing is not None and problem.drawing(run.q[0])[0].shape[1] == 3
    return "3d" if spatial else None


def _headline(run: Trajectory, problem: Problem | None) -> str:
    steps = int(run.stats.get("steps", len(run.t) - 1))
    parts = [] if problem is None else [problem.title]
    parts += [run.method.removeprefix("da."), f"h = {run.h:g}", f"{steps:,} steps"]
    if run.status != "done":
        parts.append(f"{run.status} at t = {run.t[-1]:g}")
    return "   ·   ".join(parts)
