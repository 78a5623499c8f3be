"""States of a run in a plane of phase space, and where they cross a section."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw._style import CYCLE, panel
from dalembert.errors import InputError
from dalembert.plot._panels import PathLike, coordinate_index, momentum_name, of_index_two, position_name, scatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dalembert.problems import Problem
    from dalembert.runs._trajectory import Trajectory


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
    i = coordinate_index(coordinate, run, problem)
    if i >= run.z.shape[1]:
        raise InputError(f"y[{i}] has no z[{i}] to be drawn with: the system has {run.z.shape[1]} variables z, counted from 0")
    with panel(ax, path, (3.4, 3.0)) as (figure, axes):
        scatter(axes, run.y[:, i], run.z[:, i])
        axes.set(xlabel=position_name(i, run, problem), ylabel=momentum_name(i, run, problem))
    return figure


def poincare(
    x: Any,
    y: Any,
    *,
    member: Any = None,
    xlabel: str = "$q$",
    ylabel: str = "$p$",
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """Crossings of a Poincare section in two coordinates, one row a crossing; each `member` of a family has its colour.

    Of more than 20,000 crossings as many are shown, spread over all of them.

    Example:
        >>> import numpy as np
        >>> from dalembert import plot
        >>> turn, radius = np.tile(np.arange(500.0), 3), np.repeat([1.0, 2.0, 3.0], 500)
        >>> circles = radius * np.cos(turn), radius * np.sin(turn)
        >>> figure = plot.poincare(*circles, member=np.repeat([0, 1, 2], 500), xlabel="$z$", ylabel="$v_z$")
        >>> len(figure.axes[0].lines), figure.axes[0].get_xlabel()
        (3, '$z$')

    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    members = np.zeros(len(x), dtype=int) if member is None else np.asarray(member)
    if x.ndim != 1 or x.shape != y.shape or x.shape != members.shape:
        raise InputError(f"a section has one x, y and member a crossing; got {x.shape}, {y.shape} and {members.shape}")
    with panel(ax, path, (3.6, 3.3)) as (figure, axes):
        for i, one in enumerate(np.unique(members)):
            mine = members == one
            scatter(axes, x[mine], y[mine], color=CYCLE[i % len(CYCLE)], size=2.0, joined=False)
        axes.set(xlabel=xlabel, ylabel=ylabel)
    return figure
