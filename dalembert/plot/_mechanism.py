"""The mechanism: snapshots on axes with numbers, and a portrait without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw import Drawing
from dalembert.draw._paint import frame_axes, paint
from dalembert.draw._scene import MovingPart, Scene, drawing_of, sample, stretch, upright, with_impacts
from dalembert.draw._style import panel
from dalembert.errors import InputError
from dalembert.plot._panels import PathLike
from dalembert.plot._thin import spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dalembert.problems import Problem
    from dalembert.runs._trajectory import Trajectory


def configurations(
    run: Trajectory,
    problem: Problem | None = None,
    *,
    draw: Drawing | None = None,
    count: int = 6,
    window: tuple[float, float] | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """The mechanism at `count` equidistant times of `window`, light to dark, with the paths of its traced points.

    `draw` says how the mechanism is drawn; without it, the drawing of `problem` does, or that of the run's own problem. Without
    `window`, paths are those of the whole run, as far as they stay in sight of the mechanism, and the snapshots end when the
    traced points have moved one and a half times its size.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> problem = da.problems.double_pendulum()
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=100)
        >>> plot.configurations(run, count=5).axes[0].get_aspect()
        1.0

    """
    drawing = drawing_of(run, problem.drawing if draw is None and problem is not None else draw)
    if count < 1:
        raise InputError(f"count is a positive number of snapshots; got {count!r}")
    along = np.sign(run.h)  # so that time rises
    whole = sample(run, drawing, run.t[spread(len(run.t), 3000)]) if window is None else None
    if window is None:
        first, last = 0, _first_swing(run, drawing)
    else:
        first, last = (int(np.searchsorted(along * run.t, along * time)) for time in stretch(window))
    last = min(int(last), len(run.t) - 1)
    rows = np.unique(np.linspace(first, last, count).round().astype(int))
    snapshots = sample(run, drawing, run.t[rows])
    paths = sample(run, drawing, with_impacts(run, run.t[spread(last - first + 1, 2000) + first]), smooth=True)
    spatial = snapshots.dim == 3
    with panel(ax, path, (3.4, 3.2), "3d" if spatial else None) as (figure, axes):
        import matplotlib

        for part in [] if whole is None or _is_far(whole) else whole.parts:
            if part.kind == "trace" and len(part.points) > 1:
                axes.plot(*part.points[:, 0].T, color=part.color, linewidth=0.5, alpha=0.35, zorder=0)
        for part in paths.parts:
            if part.kind == "trace":
                axes.plot(*part.trail(len(paths.t) * paths.finer).T, color=part.color, linewidth=0.8, zorder=1)
        _draw_snapshots(axes, snapshots, matplotlib.colormaps["cividis_r"](np.linspace(0.12, 1.0, len(rows))))
        until = "" if rows[-1] == len(run.t) - 1 else f" of ${run.t[-1]:.3g}$"
        times = f"$t = {run.t[rows[0]]:.3g}$ to ${run.t[rows[-1]]:.3g}${until}"
        axes.set_title(times, loc="right", color="#505050", fontsize=8)
        axes.set_aspect("equal", adjustable="datalim" if not spatial else None)
        axes.margins(0.08)
        axes.locator_params(nbins=5)
        axes.grid(True)
        if spatial:
            axes.tick_params(labelsize=6, pad=-1)
            _few_ticks(axes)
            up = getattr(drawing, "up", None)
            axes.view_init(vertical_axis="z" if up is None else "xyz"[int(np.argmax(np.abs(up)))])  # type: ignore[attr-defined]
    return figure


def _few_ticks(axes: Axes) -> None:
    """Numbers at the axes of space, fewer of them along short ones."""
    sides = {name: float(np.ptp(getattr(axes, f"get_{name}lim")())) for name in "xyz"}
    for name, side in sides.items():
        axes.locator_params(axis=name, nbins=4 if side > 0.5 * max(sides.values()) else 1)  # type: ignore[arg-type]


def _draw_snapshots(axes: Axes, snapshots: Scene, shades: np.ndarray) -> None:
    """The mechanism at several times, each in a shade of its own."""
    for part in snapshots.parts:
        if part.kind in ("track", "wall") and len(part.points) == 1:
            axes.plot(*part.points[0].T, color=part.color, linewidth=0.8, zorder=1)
        elif part.kind != "trace":
            for i, shade in enumerate(shades):
                _outline(axes, part, i, shade)


def _outline(axes: Axes, part: MovingPart, i: int, shade: Any) -> None:
    """One part of one snapshot, in a colour that tells the time."""
    points, look = part.at(i), {"color": shade, "zorder": 2 + i}
    if part.kind in ("body", "solid"):
        for outline in part.outlines:
            axes.plot(*points[[*outline, outline[0]]].T, linewidth=1.0, **look)
    elif part.kind != "mass":
        axes.plot(*points.T, linewidth=1.6 if part.kind == "rod" else 0.8, **look)
    elif part.radius == 0:
        axes.plot(*points.T, marker="o", markersize=3.5, linestyle="none", **look)
    elif points.shape[1] == 2:  # the rims of balls in space are drawn as lines on them
        turn = np.linspace(0.0, 2 * np.pi, 61)
        axes.plot(*(points + part.radius * np.column_stack([np.cos(turn), np.sin(turn)])).T, linewidth=1.0, **look)


FAR = 4.0
"""How many times its own size a mechanism may travel and still be seen in a picture of the whole way."""


def _size(scene: Scene) -> float:
    """The largest extent of the mechanism at the start, where it may be a point, or at most other times."""
    times = [0, *range(0, len(scene.t), max(1, len(scene.t) // 20))]
    sizes = [float(np.max(np.ptp(np.concatenate([part.at(i) for part in scene.parts]), axis=0))) for i in times]
    return max(sizes[0], float(np.median(sizes)))


def _is_far(scene: Scene) -> bool:
    """Whether the paths lead so far away that the mechanism would be small in a picture of all of them."""
    ways = [np.ptp(part.points[:, 0], axis=0).max() for part in scene.parts if part.kind == "trace"]
    return max(ways, default=0.0) > FAR * _size(scene)


def _first_swing(run: Trajectory, drawing: Drawing) -> int:
    """The index at which the traced points, or all where these stand still, have moved one and a half times the size."""
    scene = sample(run, drawing, run.t[:5000])
    moving = [part for part in scene.parts if len(part.points) == len(scene.t)]
    traced = [
        part for part in moving if part.kind == "trace" and np.max(np.ptp(part.points[:, 0], axis=0)) > 0.2 * _size(scene)
    ]
    if not moving:
        return len(run.t) - 1
    points = np.concatenate([part.points for part in traced or moving], axis=1)
    travelled = np.cumsum(np.max(np.linalg.norm(np.diff(points, axis=0), axis=2), axis=1))
    return min(int(np.searchsorted(travelled, 1.5 * _size(scene))) + 1, len(scene.t) - 1)


def portrait(
    run: Trajectory,
    *,
    draw: Drawing | None = None,
    window: tuple[float, float] | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """A picture of the mechanism at the end of `window`, the paths of its traced points, and in grey where they began.

    It has no axes with numbers: `configurations` has. `draw` says how to draw a system that is not of the catalogue. Without
    `window`, the picture covers at most 20 units of time, or less if the mechanism would become small in it.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=100)
        >>> da.plot.portrait(run, window=(0, 3)).axes[0].axison
        False

    """
    drawing = upright(drawing_of(run, draw))
    last_time = run.t[0] + np.clip(run.t[-1] - run.t[0], -20.0, 20.0)
    first, last = (run.t[0], last_time) if window is None else stretch(window)
    scene = sample(run, drawing, with_impacts(run, np.linspace(first, last, MOMENTS)), smooth=window is not None)
    if window is None:
        times = with_impacts(run, np.linspace(first, _before_it_is_small(scene), MOMENTS))
        scene = sample(run, drawing, times, smooth=True)
    with panel(ax, path, (3.2, 2.8)) as (figure, axes):
        frame_axes(axes, scene, len(scene.t) - 1, 2.8 / 3.2)
        axes.set_aspect("equal")
        paint(axes, scene, 0, shade="#c2c7ce", paths=False)
        paint(axes, scene, len(scene.t) - 1)
    return figure


MOMENTS = 400


def _before_it_is_small(scene: Scene) -> float:
    """The time until which a mechanism stays within five times its own size; the last one where something stands still."""
    if not scene.follows:
        return float(scene.t[-1])
    points = np.concatenate([part.points for part in scene.parts if part.kind != "trace"], axis=1)
    size = np.max(np.ptp(points, axis=1))
    low, high = (extreme.accumulate(points, axis=0) for extreme in (np.minimum, np.maximum))
    extent = np.max(high.max(axis=1) - low.min(axis=1), axis=1)
    return float(scene.t[max(1, int(np.searchsorted(extent, 5 * size)) - 1)])
