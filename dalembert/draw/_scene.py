"""A mechanism at many times: the numbers behind every still and moving picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw._between import states_at
from dalembert.draw._parts import Drawing, Kind, Part, Skin, asks_for, flat_parts, picture
from dalembert.errors import InputError, ModelError

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory

AZIMUTH, ELEVATION = np.radians(-60.0), np.radians(22.0)
"""The direction from which spatial mechanisms are shown."""


@dataclass(frozen=True, eq=False)
class MovingPart:
    """A part at all times of a scene: `points` are (times, points, dim), or (1, points, dim) if it stands still."""

    kind: Kind
    color: str
    radius: float
    points: np.ndarray
    skin: Skin | None = None
    path: np.ndarray | None = None
    """Of a traced point: where it is at the times of the scene and at others between them, (times, dim)."""

    @property
    def outlines(self) -> Sequence[Sequence[int]]:
        """Polygons that show it as lines, by the numbers of its points."""
        return [range(self.points.shape[1])] if self.skin is None else self.skin.outlines

    def trail(self, last: int) -> np.ndarray:
        """Where a traced point was until the given entry of its path, (times, dim)."""
        return (self.points[:, 0] if self.path is None else self.path)[: last + 1]

    def at(self, i: int) -> np.ndarray:
        """Its points at the i-th time."""
        return self.points[i if len(self.points) > 1 else 0]


@dataclass(frozen=True, eq=False)
class Scene:
    """Times, and the parts of a mechanism at these times."""

    t: np.ndarray
    parts: tuple[MovingPart, ...]
    finer: int = 1
    """How many pieces of the paths of traced points lie between two times."""

    @property
    def dim(self) -> int:
        """2 in the plane, 3 in space."""
        return int(self.parts[0].points.shape[2])

    @cached_property
    def _solid(self) -> list[MovingPart]:
        return [part for part in self.parts if part.kind != "trace"]

    @cached_property
    def _size(self) -> float:
        """The largest extent of the mechanism at every tenth time."""
        return float(max(np.subtract(*_box(part.at(i) for part in self._solid)[::-1]).max() for i in range(0, len(self.t), 10)))

    @cached_property
    def follows(self) -> bool:
        """Whether the picture moves with the mechanism: nothing stands still, and it travels far compared with its size."""
        if any(len(part.points) == 1 for part in self._solid) and len(self.t) > 1:
            return False
        low, high = _box(part.points for part in self._solid)
        return bool(self._size > 0 and np.max(high - low) > 6 * self._size)

    @cached_property
    def centres(self) -> np.ndarray:
        """What stands in the middle of the picture: (times, dim), or (1, dim) if the picture does not move."""
        if not self.follows:
            return np.mean(_box(part.points for part in self.parts), axis=0)[None]
        return np.array([np.mean(_box(part.points[i] for part in self._solid), axis=0) for i in range(len(self.t))])

    @cached_property
    def half(self) -> np.ndarray:
        """How far the picture reaches to each side of its middle, in each coordinate."""
        if self.follows:
            return np.full(self.dim, 1.8 * self._size)
        low, high = _box(part.points for part in self.parts)
        dots = max(part.radius for part in self.parts)
        return np.maximum((high - low) / 2 + dots, 0.02 * np.max(high - low) + 1e-12)

    @cached_property
    def low(self) -> float:
        """The height of the lowest point, on which the ground is drawn."""
        return float(min(part.points[..., -1].min() for part in self._solid)) if self.dim == 3 else 0.0

    @cached_property
    def extent(self) -> np.ndarray:
        """Half the width and half the height of the projected picture."""
        if self.dim == 3 and self.follows:
            return np.full(2, self.half[0])
        if self.dim == 3:
            projected = np.concatenate([project(part.points - self.centres[0])[0].reshape(-1, 2) for part in self.parts])
            reach = np.max(np.abs(projected), axis=0) + max(part.radius for part in self.parts)
        else:
            reach = self.half
        return np.asarray(np.maximum(reach, 0.25 * reach.max()))


def with_impacts(run: Trajectory, times: np.ndarray) -> np.ndarray:
    """The times, and between them those of the run's impacts, where paths have corners."""
    if run.impacts is None:
        return times
    return np.union1d(times, run.impacts.t[(run.impacts.t > times[0]) & (run.impacts.t < times[-1])])


def stretch(window: Sequence[float]) -> tuple[float, float]:
    """The times at which a `window` begins and ends."""
    try:
        first, last = (float(time) for time in window)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"window is two times, from and to, such as window=(0, 3); got {window!r}") from None
    return first, last


def drawing_of(run: Trajectory, draw: Drawing | None) -> Drawing:
    """How a run is drawn: as the caller says, or as its problem does."""
    drawing = run.drawing if draw is None else draw
    if drawing is None:
        raise InputError(
            "this run does not say how it is drawn: give draw=, a function of the state such as "
            "lambda q: [rod([0, 0], q), mass(q)] with parts of dalembert.draw, or the drawing of its Problem"
        )
    return drawing


def upright(drawing: Drawing) -> Drawing:
    """A drawing turned so that what it says is up (`drawing.up`) is z, as pictures without axes in space have it.

    Example:
        >>> import dalembert as da
        >>> m = da.Mechanism(gravity=(0, -9.81, 0))
        >>> ball = m.point("ball", mass=1.0, at=(1, 2, 3))
        >>> upright(da.draw.mechanism(m))(m.q0)[0].points.round(12).tolist()
        [[1.0, -3.0, 2.0]]

    """
    up = getattr(drawing, "up", None)
    if up is None or up[2] > 1 - 1e-12:
        return drawing
    axis = np.array([up[1], -up[0], 0.0])
    sine, cosine = float(np.linalg.norm(axis)), float(up[2])
    axis = axis / sine if sine > 1e-12 else np.array([1.0, 0.0, 0.0])
    R = cosine * np.eye(3) + sine * np.cross(axis, np.eye(3)).T + (1 - cosine) * np.outer(axis, axis)

    @wraps(drawing, assigned=(), updated=())
    def turned(*state: Any, **named: Any) -> list[Part]:
        return [replace(part, points=part.points @ R.T) for part in flat_parts(drawing(*state, **named))]

    return turned


def sample(run: Trajectory, drawing: Drawing, times: np.ndarray, *, smooth: bool = False, dense: bool = True) -> Scene:
    """A scene of a run at any times within it, between stored states by dense output (`_between.py`).

    With `smooth`, the paths of traced points also go through times between these, as many as they need to look round. Without
    `dense`, states between stored ones are good enough for the eye, and there at once.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.pendulum()
        >>> run = da.simulate(problem, da.Rattle(), steps=20)
        >>> scene = sample(run, problem.drawing, run.t[::5])
        >>> bool(np.array_equal(scene.parts[-1].points[:, 0], run.q[::5]))
        True

    """
    times = np.asarray(times, dtype=float)
    parts = _moving(run, drawing, times, dense)
    finer = max((_refinement(part.points[:, 0]) for part in parts if part.kind == "trace"), default=1) if smooth else 1
    if finer == 1:
        return Scene(times, parts)
    steps = np.arange(finer) / finer
    between = np.append((times[:-1, None] + np.diff(times)[:, None] * steps).ravel(), times[-1])
    paths = iter(part for part in _moving(run, drawing, between, dense) if part.kind == "trace")
    traced = (replace(part, path=next(paths).points[:, 0]) if part.kind == "trace" else part for part in parts)
    return Scene(times, tuple(traced), finer)


def _moving(run: Trajectory, drawing: Drawing, times: np.ndarray, dense: bool) -> tuple[MovingPart, ...]:
    """The parts of a drawing at some times."""
    states = states_at(run, times, dense=dense)
    first = run.y.shape[1] if run.blocks[0][1] else 0
    params = {name: value.item() if np.ndim(value) == 0 else value for name, value in run.parameters.items()}
    y, z = (states[:, :first], states[:, first:]) if first else (states[:, -run.y.shape[1] :], states[:, :0])
    names = asks_for(drawing)
    v = _velocities(run, times, states) if "v" in names else [None] * len(times)
    every = zip(times, y, z, v, strict=True)
    pictures = [picture(drawing, float(t), q, p, params, q_dot, names) for t, q, p, q_dot in every]
    looks = [[(part.kind, part.points.shape) for part in parts] for parts in pictures]
    if any(look != looks[0] for look in looks):
        raise ModelError("a drawing must return the same parts, with as many points, in every state")
    moving = []
    for parts in zip(*pictures, strict=True):
        points = np.array([part.points for part in parts])
        if not np.all(np.isfinite(points)):
            raise InputError("the drawing has points that are not finite: draw a part of the run where it has states")
        still = np.array_equal(points, np.broadcast_to(points[0], points.shape))
        look = parts[0]
        moving.append(MovingPart(look.kind, look.color, look.radius, points[:1] if still else points, look.skin))
    return tuple(moving)


def _refinement(path: np.ndarray) -> int:
    """Into how many pieces the steps of a path are cut so that it looks round: by the angles at its corners, cusps left out."""
    ways = np.diff(path, axis=0)
    lengths = np.linalg.norm(ways, axis=1)
    ways = ways[lengths > 1e-3 * np.max(lengths, initial=0.0)]
    if len(ways) < 3:
        return 1
    units = ways / np.linalg.norm(ways, axis=1, keepdims=True)
    angles = np.arccos(np.clip(np.sum(units[1:] * units[:-1], axis=1), -1, 1))
    return int(np.clip(np.ceil(np.quantile(angles, 0.9) / ROUND), 1, FINEST))


ROUND, FINEST = 0.1, 8
"""The angle at a corner that is not seen, and the most pieces of a step."""


def _velocities(run: Trajectory, times: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The velocities H_p of a mechanical system in all these states."""
    if run.blocks[0][0] != "q":
        variables = " and ".join(name for name, _ in run.blocks if name)
        raise ModelError(f"only mechanical systems have velocities v: the variables of this run are {variables}")
    if run.system is None:
        raise InputError(
            "the drawing asks for velocities v, and this run was loaded without its model: draw from q and p, or open a stored "
            "run with da.StoredTrajectory.open(path, system)"
        )
    return run.with_states(times, states).v


def project(points: np.ndarray, azimuth: float = AZIMUTH, elevation: float = ELEVATION) -> tuple[np.ndarray, np.ndarray]:
    """Points of space in parallel projection along a direction, (..., 2), and how near they are to the viewer, (...).

    Example:
        >>> projected, near = project(np.array([[0.0, 0.0, 2.0]]), azimuth=0.3, elevation=0.0)
        >>> bool(np.allclose(projected, [[0, 2]])), bool(np.allclose(near, 0))
        (True, True)

    """
    if points.shape[-1] == 2:
        return points, np.zeros(points.shape[:-1])
    x, y, z = np.moveaxis(points, -1, 0)
    towards = np.cos(azimuth) * x + np.sin(azimuth) * y
    across = -np.sin(azimuth) * x + np.cos(azimuth) * y
    projected = np.stack([across, np.cos(elevation) * z - np.sin(elevation) * towards], axis=-1)
    return projected, np.cos(elevation) * towards + np.sin(elevation) * z


def _box(arrays: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    points = np.concatenate([array.reshape(-1, array.shape[-1]) for array in arrays])
    return points.min(axis=0), points.max(axis=0)
