"""One page on a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw import Drawing
from dalembert.draw._scene import sample
from dalembert.draw._style import check_suffix, new_figure, save, styled
from dalembert.plot._against_time import energy_error, multipliers, residuals, solution
from dalembert.plot._mechanism import configurations
from dalembert.plot._panels import coordinate_indices, history, of_index_two, position_name, scatter
from dalembert.plot._phase import phase_portrait

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dalembert.problems import Problem
    from dalembert.runs._trajectory import Trajectory
    from dalembert.systems import System


Panel = tuple[str, Callable[..., Any]]
"""A title, and what draws into `ax=`."""

STILL = 1e-9
"""Of the largest change of a coordinate: what changes less stands still."""
WIDTH = 110
"""How many characters of the headline fit on one line."""


def overview(
    run: Trajectory,
    path: str | os.PathLike[str] | None = None,
    *,
    problem: Problem | None = None,
    draw: Drawing | None = None,
    coordinates: int | str | Sequence[int | str] | None = None,
) -> Figure:
    """One page on a run: the motion, phase portraits of two coordinates, the energy error and the constraint residuals.

    A system without an energy shows its multipliers instead. `problem` gives the coordinates their names. The mechanism is
    drawn as `draw` says, or the drawing of `problem`, or that of the run's own problem; without any, the first panel shows the
    path in the plane of the first two coordinates. `coordinates` chooses the phase portraits: by default the first and the last
    one that moves. A DAE of index 2 shows y, or those components of it that `coordinates` chooses, and z against time in place
    of phase portraits.

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
    drawing = draw or (None if problem is None else problem.drawing) or run.drawing
    upper, lower = _upper_panels(run, problem, coordinates), _lower_panels(run)
    with styled():
        figure = new_figure(8.6, 5.2)
        figure.suptitle(_headline(run, problem), fontsize=10, x=0.01, ha="left")
        rows = figure.add_gridspec(2, 1, height_ratios=(1.25, 1.0))
        above = rows[0].subgridspec(1, 1 + len(upper))
        below = rows[1].subgridspec(1, max(len(lower), 1))
        _motion(run, problem, drawing, figure.add_subplot(above[0], projection=_projection(run, drawing)))
        places = [*(above[column] for column in range(1, 1 + len(upper))), *(below[column] for column in range(len(lower)))]
        for place, (title, fill) in zip(places, [*upper, *lower], strict=True):
            ax = figure.add_subplot(place)
            fill(ax=ax)
            ax.set_title(title, loc="left")
        if path is not None:
            save(figure, path)
    return figure


def _upper_panels(run: Trajectory, problem: Problem | None, coordinates: int | str | Sequence[int | str] | None) -> list[Panel]:
    """What stands beside the motion: phase portraits; y and z against time where there are no momenta."""
    dim = run.y.shape[1]
    if of_index_two(run):
        shown: list[Panel] = [("solution", partial(solution, run, coordinates, problem=problem))]
        return [
            *(shown if coordinates is None or np.size(coordinates) else []),
            ("algebraic variables", partial(multipliers, run)),
        ]
    if coordinates is None:
        coordinates = _two_that_move(np.asarray(run.y)[:, : min(dim, run.z.shape[1])])
    chosen = coordinate_indices(coordinates, run, problem)
    return [("phase portrait", partial(phase_portrait, run, i, problem=problem)) for i in chosen]


def _two_that_move(values: np.ndarray) -> list[int]:
    """The first and the last column that changes by more than round-off; those that stand still make up for what is missing."""
    sizes, last = np.ptp(values, axis=0), values.shape[1] - 1
    moving = np.flatnonzero(sizes > STILL * np.max(sizes)).tolist() or [0, last]
    return sorted({moving[0], moving[-1]} if len(moving) > 1 else {moving[0], last if moving[0] < last else 0})


def _lower_panels(run: Trajectory) -> list[Panel]:
    panels: list[Panel] = []
    if run.has_energy:
        panels.append(("energy", partial(energy_error, run)))
    elif not of_index_two(run) and run.lam.shape[1] + run.psi.shape[1]:
        panels.append(("multipliers", partial(multipliers, run)))
    if any(values.shape[1] for values in run.residuals.values()):
        panels.append(("constraints", partial(residuals, run)))
    return panels


def _motion(run: Trajectory, problem: Problem | None, drawing: Drawing | None, ax: Axes) -> None:
    """The mechanism, the path in the plane, or the only coordinate against time."""
    if drawing is not None:
        configurations(run, draw=drawing, ax=ax)
        ax.set_title("motion", loc="left")
    elif run.y.shape[1] > 1:
        scatter(ax, run.y[:, 0], run.y[:, 1])
        _true_shape(ax)
        ax.set(xlabel=position_name(0, run, problem), ylabel=position_name(1, run, problem))
        ax.set_title("path", loc="left")
    else:
        history(ax, run.t, run.y[:, 0])
        ax.set(xlabel="$t$", ylabel=position_name(0, run, problem))
        ax.set_title("motion", loc="left")


def _true_shape(ax: Axes) -> None:
    """A circle as a circle, unless the two coordinates are of different sizes, as a length and an angle may be."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    if 0.1 < (high - low) / (right - left) < 10:
        ax.set_aspect("equal", adjustable="datalim")


def _changes(run: Trajectory, system: System | None) -> list[str]:
    """What was changed: settings of the problem, and parameters of the run that differ from those of its system."""
    own, changed = ({}, {}) if system is None else (system.params, dict(system.settings))
    for name, value in run.parameters.items():
        if name in own and np.any(np.asarray(own[name]) != value):
            changed[name] = value
    facts = [f"{name} = {np.array2string(np.asarray(value), precision=4, threshold=4)}" for name, value in changed.items()]
    return [", ".join(facts)] if facts else []


def _projection(run: Trajectory, drawing: Drawing | None) -> str | None:
    spatial = drawing is not None and sample(run, drawing, run.t[:1]).dim == 3
    return "3d" if spatial else None


def _headline(run: Trajectory, problem: Problem | None) -> str:
    steps = int(run.stats.get("steps", len(run.t) - 1))
    system, method = run.system if problem is None else problem.system, run.method.replace("da.", "")
    title = [*([system.title] if system is not None and system.title else []), *_changes(run, system)]
    facts = [f"h = {run.h:g}", f"{steps:,} steps"]
    if run.status != "done":
        facts.append(f"{run.status} at t = {run.t[-1]:g}")
    line = "   ·   ".join([*title, method, *facts])
    return line if len(line) <= WIDTH else "   ·   ".join([*title, *facts]) + f"\n{method}"
