"""One moment of a scene on Matplotlib's axes: for films, and for pictures in a catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.draw._scene import Scene, project

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TAIL = 1.0
"""The width of the path of a point, in points of print."""


def frame_axes(ax: Axes, scene: Scene, i: int, aspect: float) -> None:
    """Bare axes of equal scales that show what there is to see at the i-th time; `aspect` is their height over their width."""
    centre = scene.centres[i if scene.follows else 0]
    x, y = project(centre)[0]
    width, height = 1.1 * scene.extent
    height = max(height, width * aspect)
    width = height / aspect
    ax.set(xlim=(x - width, x + width), ylim=(y - height, y + height))
    ax.set_axis_off()
    if scene.follows:
        _ground(ax, scene, centre, max(width, height))


def paint(ax: Axes, scene: Scene, i: int, *, shade: str | None = None, paths: bool = True) -> None:
    """Draw the mechanism at the i-th time, and the paths of its traced points until then.

    `shade` draws what moves, and only that, in one colour: for another moment in the same picture.
    """
    near = [float(np.mean(project(part.at(i))[1])) for part in scene.parts]
    order = {index: 2 + rank / len(near) for rank, index in enumerate(np.argsort(near, kind="stable"))}
    for index, part in enumerate(scene.parts):
        points, color, z = project(part.at(i))[0], shade or part.color, order[index] if shade is None else 1.2
        if shade is not None and len(part.points) == 1:
            continue
        if part.kind == "trace":
            if paths:
                path = project(part.trail(i * scene.finer))[0]
                ax.plot(*path.T, color=part.color, linewidth=TAIL, zorder=1.5, solid_joinstyle="round")
        elif part.kind in ("track", "wall"):
            if shade is None:
                ax.plot(*points.T, color=part.color, linewidth=1.0, zorder=1)
        elif part.kind in ("body", "solid"):
            for outline in part.outlines:
                ax.fill(*points[list(outline)].T, facecolor=(color, 0.25), edgecolor=color, linewidth=1.2, zorder=z)
        elif part.kind == "line":
            ax.plot(*points.T, color=color, linewidth=1.0, zorder=z + 0.01)
        elif part.kind == "rod":
            ax.plot(*points.T, color=color, linewidth=2.4, zorder=z, marker="o", markersize=3.6)
        elif part.radius:
            turn = np.linspace(0.0, 2 * np.pi, 61)
            rim = points[0] + part.radius * np.column_stack([np.cos(turn), np.sin(turn)])
            ax.fill(*rim.T, facecolor=(color, 0.25), edgecolor=color, linewidth=1.2, zorder=z)
        else:
            ax.plot(*points.T, "o", color=color, markersize=8, zorder=z + 0.02, markeredgecolor="white")


def _ground(ax: Axes, scene: Scene, centre: np.ndarray, reach: float) -> None:
    """A light grid that stands still while the picture follows the mechanism."""
    spacing = 10.0 ** np.floor(np.log10(reach))
    spacing *= 1 if reach / spacing < 3 else 2 if reach / spacing < 6 else 5
    first = np.floor((centre[:2] - 2 * reach) / spacing) * spacing
    ticks = [first[axis] + spacing * np.arange(int(4 * reach / spacing) + 2) for axis in (0, 1)]
    height = [] if scene.dim == 2 else [scene.low]
    for axis in (0, 1):
        for tick in ticks[axis]:
            ends = np.array([[tick, ticks[1 - axis][0]], [tick, ticks[1 - axis][-1]]])[:, :: 1 - 2 * axis]
            line = project(np.column_stack([ends, *([height * 2] if height else [])]))[0]
            ax.plot(*line.T, color="#e6e8eb", linewidth=0.7, zorder=0.5)
