"""What the panels share: marks, and the names of variables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.draw._style import BLUE, symbol
from dalembert.errors import InputError
from dalembert.plot._thin import envelope, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dalembert.problems import Problem
    from dalembert.runs._trajectory import Trajectory

PathLike = str | os.PathLike[str]
EPSILON = float(np.finfo(float).eps)
LEAST_RESIDUAL = 1e-18
"""Where an exact zero is drawn on a logarithmic axis."""


def scatter(
    axes: Axes, x: np.ndarray, y: np.ndarray, *, color: str = BLUE, size: float | None = None, joined: bool = True
) -> None:
    """Points in a plane; at most 20,000 of them, as pixels even in .pdf and .svg, so that files stay small.

    A few points are `joined` by a thin line.
    """
    rows = spread(len(x))
    if joined and len(rows) < 300:
        axes.plot(x, y, color=color, linewidth=0.6, alpha=0.5)
    size = (3.0 if len(rows) < 1000 else 2.0 if len(rows) < 6000 else 1.3) if size is None else size
    axes.plot(
        x[rows], y[rows], ".", color=color, markersize=size, markeredgewidth=0, rasterized=len(rows) > 2000, linestyle="none"
    )
    axes.margins(0.05)


def history(axes: Axes, t: np.ndarray, y: np.ndarray, *, color: str = BLUE, label: str | None = None) -> None:
    """A series against time: a line, or for long runs the band between its extremes."""
    axes.locator_params(axis="x", nbins=7)  # more numbers may touch each other
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
    """Whether a run is one of a DAE of index 2: its state is y only."""
    return run.blocks[1][0] == "y"


def labels_of(run: Trajectory, problem: Problem | None) -> tuple[str, ...]:
    """The names of the coordinates, of the problem or of the mechanism that was run; none if they have no names."""
    return problem.labels if problem is not None else run.names.get("y", ())


def coordinate_index(coordinate: int | str, run: Trajectory, problem: Problem | None) -> int:
    """The index of a coordinate given by its index or its name."""
    labels, dim = labels_of(run, problem), run.y.shape[1]
    if isinstance(coordinate, str):
        if coordinate not in labels:
            known = ", ".join(labels) or "none without problem=: give an index"
            raise InputError(f"there is no coordinate named {coordinate!r} (names: {known})")
        return labels.index(coordinate)
    if not -dim <= coordinate < dim:
        raise InputError(f"coordinate {coordinate} does not exist: the system has {dim}, counted from 0")
    return coordinate % dim


def coordinate_indices(coordinates: int | str | Sequence[int | str], run: Trajectory, problem: Problem | None) -> list[int]:
    """The indices of coordinates given by index or by name: several, or one."""
    several = [coordinates] if isinstance(coordinates, (int, np.integer, str)) else coordinates
    return [coordinate_index(coordinate, run, problem) for coordinate in several]


def position_name(i: int, run: Trajectory, problem: Problem | None) -> str:
    """How the axis of q_i, or y_i, is labelled."""
    letter = "y" if of_index_two(run) else run.blocks[0][0]
    labels = labels_of(run, problem)
    return _shown(labels[i]) if labels else _numbered(letter, i, run.y.shape[1])


def momentum_name(i: int, run: Trajectory, problem: Problem | None) -> str:
    """How the axis of p_i, or z_i, is labelled."""
    letter = run.blocks[1][0]
    labels = labels_of(run, problem) if letter == "p" else ()
    if labels and "." in labels[i]:
        return f"momentum of {labels[i]}"
    return f"$p_{{{symbol(labels[i])}}}$" if labels else _numbered(letter, i, run.z.shape[1])


def _numbered(letter: str, i: int, count: int) -> str:
    """A variable without a name, counted from one as in print."""
    return f"${letter}_{{{i + 1}}}$" if count > 1 else f"${letter}$"


def _shown(label: str) -> str:
    """A coordinate of a problem as a symbol, one of a part of a mechanism, such as crank.theta, as text."""
    return label if "." in label else f"${symbol(label)}$"
