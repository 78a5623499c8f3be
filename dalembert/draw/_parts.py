"""What a mechanism is made of, for the eye: each part is a few points and a way to draw them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dalembert.draw._colors import normal_color
from dalembert.errors import InputError, ModelError

INK, BLUE, VERMILION, GREY = "#30363f", "#0072B2", "#D55E00", "#8a8f98"
Kind = Literal["rod", "line", "body", "solid", "mass", "track", "wall", "trace"]
Polygon = tuple[int, ...]
TURN = np.linspace(0.0, 2 * np.pi, 33)


@dataclass(frozen=True)
class Skin:
    """How the points of a solid are joined, by their numbers."""

    faces: tuple[Polygon, ...]
    """Counter-clockwise, seen from outside."""
    outlines: tuple[Polygon, ...]
    """What is drawn of it as lines."""
    dark: frozenset[int] = frozenset()
    """Faces that are painted darker, to show how it turns."""


@dataclass(frozen=True, eq=False)
class Part:
    """One part of a mechanism in one state: `points` are (points, 2) or (points, 3), and `color` is kept as #rrggbb.

    Example:
        >>> mass([0, 0], color="tomato").color
        '#ff6347'

    """

    kind: Kind
    points: np.ndarray
    color: str
    radius: float = 0.0
    """Of a mass, in units of length; 0 is a dot of a size that can be seen."""
    skin: Skin | None = None
    """Of a solid."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "color", normal_color(self.color))


Drawing = Callable[..., "Sequence[Any]"]
"""From a state to the parts of a mechanism.

A function that returns a list of parts; a list in this list, such as that of `disc`, counts as its parts.
"""


def rod(*points: Any, color: str = INK) -> Part:
    """A rigid rod from point to point, or several in a row.

    Example:
        >>> rod([0, 0], [1, 0], [1, 1]).points.shape
        (3, 2)

    """
    return Part("rod", _points(points, least=2), color)


def line(*points: Any, color: str = INK) -> Part:
    """A thin line: a thread, a blade, a mark on a body."""
    return Part("line", _points(points, least=2), color)


def mass(point: Any, radius: float = 0.0, *, color: str = BLUE) -> Part:
    """A point mass, or a round one of that radius: a ball in space."""
    return Part("mass", _points([point], least=1), color, float(radius))


def body(*outline: Any, color: str = BLUE) -> Part:
    """A rigid body by its outline, which closes by itself."""
    return Part("body", _points(outline, least=3), color)


def solid(
    points: Any, faces: Sequence[Polygon], *, outlines: Sequence[Polygon] = (), dark: Iterable[int] = (), color: str = BLUE
) -> Part:
    """A rigid solid in space: its corners, and its faces and outlines by the numbers of corners.

    Example:
        >>> part = solid([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)])
        >>> part.kind, len(part.skin.outlines)
        ('solid', 4)

    """
    skin = Skin(tuple(faces), tuple(outlines or faces), frozenset(dark))
    return Part("solid", _points(points, least=3), color, skin=skin)


def disc(centre: Any, radius: float, across: Any = (1.0, 0.0), up: Any = (0.0, 1.0), *, color: str = BLUE) -> list[Part]:
    """A disc in the plane of the unit vectors `across` and `up`, with the radius along `across` to show how it turns.

    Example:
        >>> rim, mark = disc([0, 0, 1], 0.5, across=[0, 1, 0], up=[0, 0, 1])
        >>> bool(np.allclose(np.linalg.norm(rim.points - [0, 0, 1], axis=1), 0.5)), mark.points[1]
        (True, array([0. , 0.5, 1. ]))

    """
    at, e, n = (np.asarray(vector, dtype=float) for vector in (centre, across, up))
    rim = at + radius * (np.outer(np.cos(TURN), e) + np.outer(np.sin(TURN), n))
    return [body(*rim[:-1], color=color), line(at, rim[0])]


def ball(centre: Any, radius: float, rotation: Any, *, color: str = BLUE) -> list[Part]:
    """A ball in space, with two of its great circles and the end of its third axis to show how it turns."""
    at, R = np.asarray(centre, dtype=float), np.asarray(rotation, dtype=float)
    circles = [at + radius * (np.outer(np.cos(TURN), R[:, i]) + np.outer(np.sin(TURN), R[:, j])) for i, j in ((0, 1), (1, 2))]
    marks = [line(*circle, color=color) for circle in circles]
    return [mass(at, radius, color=color), *marks, mass(at + radius * R[:, 2], color=VERMILION)]


def spring(first: Any, last: Any, *, coils: int = 8, width: float = 0.06) -> Part:
    """A spring between two points; `width` is that of its coils, in units of length."""
    a, b = (np.asarray(end, dtype=float) for end in (first, last))
    way = b - a
    length = np.linalg.norm(way)
    along = way / length if length > 0 else np.eye(len(a))[0]
    across = np.array([-along[1], along[0]]) if len(a) == 2 else _across(along)
    s = np.concatenate([[0.0], np.linspace(0.15, 0.85, 2 * coils + 1), [1.0]])
    swing = width * np.array([0.0, 0.0, *(1.0 if i % 2 else -1.0 for i in range(2 * coils - 1)), 0.0, 0.0])
    return line(*(a + np.outer(s, way) + np.outer(swing, across)))


def track(*points: Any, color: str = GREY) -> Part:
    """A curve that guides the motion: a wire, the circle of a sphere, the edge of a table."""
    return Part("track", _points(points, least=2), color)


def wall(first: Any, last: Any, *, hatches: int = 12) -> Part:
    """A wall or a floor in the plane, hatched on the right of the way from its first point to its last.

    Example:
        >>> floor = wall([0, 0], [4, 0])
        >>> floor.points.max(axis=0), bool(floor.points[:, 1].min() < 0)
        (array([4., 0.]), True)

    """
    a, b = np.asarray(first, dtype=float), np.asarray(last, dtype=float)
    along = (b - a) / hatches
    behind = 0.6 * (np.array([along[1], -along[0]]) - along)
    corners = [point for i in range(hatches + 1) for at in [a + i * along] for point in (at, at + behind, at)]
    return Part("wall", np.array(corners[:1] + corners[3:]), GREY)


def trace(point: Any, *, color: str = VERMILION) -> Part:
    """A point whose path is drawn."""
    return Part("trace", _points([point], least=1), color)


def asks_for(drawing: Drawing) -> list[str]:
    """What a drawing needs of a state, by the names of its arguments."""
    return list(inspect.signature(drawing).parameters)


def picture(
    drawing: Drawing,
    t: float,
    y: np.ndarray,
    z: np.ndarray,
    params: Mapping[str, Any],
    v: np.ndarray | None = None,
    names: Sequence[str] | None = None,
) -> list[Part]:
    """The parts that a drawing returns for one state; without a `trace`, the last point of the last part is followed.

    `v` are the velocities of a mechanical system, for drawings that ask for them; `names` is what the drawing asks for, which
    takes longer to find out than most drawings take.

    Example:
        >>> parts = picture(lambda q, l: [rod([0, 0], l * q), mass(l * q)], 0.0, np.array([0.6, 0.8]), np.zeros(2), {"l": 2.0})
        >>> [part.kind for part in parts], parts[-1].points
        (['rod', 'mass', 'trace'], array([[1.2, 1.6]]))

    """
    known = {"t": t, "q": y, "y": y, "p": z, "z": z, **({} if v is None else {"v": v}), **params}
    names = asks_for(drawing) if names is None else names
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ModelError(f"a drawing is a function of {', '.join(known)}, by these names; it asks for {', '.join(unknown)}")
    found = drawing(**{name: known[name] for name in names})
    parts = list(flat_parts(found)) if isinstance(found, list | tuple) else []
    if not parts or not all(isinstance(part, Part) for part in parts):
        raise ModelError("a drawing returns a list of parts, such as [rod([0, 0], q), mass(q)] of dalembert.draw")
    if len({part.points.shape[1] for part in parts}) > 1:
        raise ModelError("the points of a drawing are all in the plane or all in space: some have two coordinates, some three")
    if not any(part.kind == "trace" for part in parts):
        moving = [part for part in parts if part.kind not in ("track", "wall")]
        parts += [trace(moving[-1].points[-1])] if moving else []
    return parts


def flat_parts(parts: Sequence[Any]) -> Iterator[Any]:
    """The parts of a drawing, and those of lists in it."""
    for part in parts:
        yield from flat_parts(part) if isinstance(part, list | tuple) else (part,)


def _points(points: Sequence[Any], least: int) -> np.ndarray:
    try:
        array = np.array([np.asarray(point, dtype=float) for point in points])
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.ndim != 2 or array.shape[0] < least or array.shape[1] not in (2, 3):
        raise InputError(f"a part is drawn from at least {least} points of two or three coordinates; got shape {array.shape}")
    return array


def _across(along: np.ndarray) -> np.ndarray:
    """A unit vector at right angles to another one in space."""
    other = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    return other / np.linalg.norm(other)
