"""Solids from points: closed meshes of triangles, and convex hulls.

Volume, centre and second moments of a polyhedron are sums over its triangles (p, q, r) of those of the tetrahedra (0, p, q, r):

    V = p.(q x r) / 6,   V c = V (p + q + r) / 4,   int x x^T = V (p p^T + q q^T + r r^T + s s^T) / 20,   s = p + q + r,

exact for polyhedra of any form; M. G. Lien, J. T. Kajiya, IEEE Computer Graphics and Applications 4 (1984) 35-42.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._solids import Solid
from dalembert.systems._model import one_line

FLAT = 1e-12
"""The least volume of a solid, in terms of the cube of its size."""


@dataclass(frozen=True, eq=False)
class Mesh(Solid):
    """A solid by its corners: the convex hull of `points`, or the closed mesh whose faces `triangles` number them.

    The triangles go around counter-clockwise, seen from outside, or all of them clockwise. `m.body(shape=mesh)` without `at=`
    leaves the points where they are.

    Example:
        >>> import numpy as np
        >>> from dalembert.mechanisms import Mesh
        >>> wedge = Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
        >>> round(wedge.volume, 6), wedge.centre.round(6).tolist()
        (0.166667, [0.25, 0.25, 0.25])

    """

    points: Any
    triangles: Any = None

    def __post_init__(self) -> None:
        try:
            points = np.array(self.points, dtype=float)
        except (TypeError, ValueError, OverflowError):
            points = np.zeros(0)
        if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4 or not np.all(np.isfinite(points)):
            raise ModelError(f"a mesh has at least four points of three finite coordinates; got {one_line(self.points)}")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "triangles", _hull(points) if self.triangles is None else _closed(points, self.triangles))
        size = float(np.max(np.ptp(points, axis=0)))
        if self._signed < 0:
            object.__setattr__(self, "triangles", self.triangles[:, ::-1])
        if not self._signed > FLAT * size**3:
            raise ModelError("the points of a mesh enclose no volume: give a solid, whose triangles all face outwards")

    @property
    def _signed(self) -> float:
        """The volume, negative if the triangles face inwards."""
        return float(_tetrahedra(self.points[self.triangles] - self.points.mean(axis=0)).sum())

    @property
    def volume(self) -> float:
        """The volume."""
        return self._signed

    @cached_property
    def centre(self) -> np.ndarray:
        """The centre of mass, in the coordinates of the points."""
        mean = self.points.mean(axis=0)
        corners = self.points[self.triangles] - mean  # from near the centre, where little cancels
        return mean + _tetrahedra(corners) @ corners.sum(axis=1) / (4 * self.volume)

    @cached_property
    def _principal(self) -> tuple[np.ndarray, np.ndarray]:
        """Moments of one unit of mass about the principal axes through the centre, and these axes."""
        corners = self.points[self.triangles] - self.centre
        vectors = np.concatenate([corners, corners.sum(axis=1, keepdims=True)], axis=1)
        second = np.einsum("t,tki,tkj->ij", _tetrahedra(corners), vectors, vectors) / (20 * self.volume)
        moments, axes = np.linalg.eigh(np.trace(second) * np.eye(3) - second)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        return moments, axes

    @property
    def moments(self) -> np.ndarray:
        """The principal moments of inertia of one unit of mass."""
        return self._principal[0]

    @property
    def axes(self) -> np.ndarray:
        """The principal axes, as columns."""
        return self._principal[1]

    @cached_property
    def vertices(self) -> np.ndarray:
        """The corners about the centre."""
        return self.points - self.centre

    @cached_property
    def faces(self) -> list[tuple[int, ...]]:
        """The triangles."""
        return [tuple(int(k) for k in triangle) for triangle in self.triangles]

    @cached_property
    def outlines(self) -> list[tuple[int, ...]]:
        """The triangles."""
        return self.faces


def _tetrahedra(corners: np.ndarray) -> np.ndarray:
    """The signed volumes of the tetrahedra between the origin and triangles, (triangles, 3, 3)."""
    return np.einsum("ti,ti->t", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6


def _hull(points: np.ndarray) -> np.ndarray:
    """The triangles of a convex hull, facing outwards."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except QhullError:
        raise ModelError("the points of a mesh lie in one plane or on a line: give points around a volume") from None
    a, b, c = (points[hull.simplices[:, k]] for k in range(3))
    inwards = np.einsum("ti,ti->t", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    return np.where(inwards[:, None], hull.simplices[:, ::-1], hull.simplices)


def _closed(points: np.ndarray, triangles: Any) -> np.ndarray:
    """Triangles, refused unless every edge is shared by two that go along it in opposite directions."""
    try:
        found = np.array(triangles)
    except ValueError:
        found = np.zeros(0)
    if found.ndim != 2 or found.shape[1] != 3 or found.dtype.kind not in "iu" or not len(found):
        raise ModelError(
            f"the triangles of a mesh are rows of three numbers of points, counted from 0; got {one_line(triangles)}"
        )
    if found.min() < 0 or found.max() >= len(points):
        raise ModelError(f"the triangles of a mesh name points 0 to {len(points) - 1}; got {found.min()} to {found.max()}")
    edges = {(int(a), int(b)) for row in found for a, b in zip(row, np.roll(row, -1), strict=True)}
    if len(edges) != 3 * len(found) or any((b, a) not in edges for a, b in edges):
        raise ModelError(
            "the triangles of a mesh do not close: every edge belongs to two of them, which go along it in opposite directions"
        )
    return found
