"""Bodies, and where they are in a state: `Bodies.at(q)` gives the pose of each, and velocities where v is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._coordinates import UNIT, Coordinates, Matrix, Planar, Point, Quaternion, massless_column
from dalembert.mechanisms._solids import Solid
from dalembert.mechanisms._values import Value, positive, valued
from dalembert.mechanisms._vectors import ZERO, Columns, Vector, add, cross, turn
from dalembert.systems._model import one_line


@dataclass(eq=False, repr=False)
class Part:
    """A part of a mechanism, which a run knows by name: `run.of(part)`."""

    name: str
    mechanism: Any

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse values of parameters that make no sense, such as a negative mass."""


@dataclass(eq=False, repr=False)
class Body(Part):
    """A rigid body or a point mass in its assembled pose.

    `centre` is its centre of mass, the columns of `axes` are its principal axes, and `rotation` is the one that the user gave.
    """

    coordinates: Coordinates | None
    """None for the ground."""
    first: int
    """Where its coordinates begin."""
    mass: Value
    inertia: tuple[Value, Value, Value]
    """Moments about its principal axes."""
    centre: np.ndarray
    axes: np.ndarray
    rotation: np.ndarray
    solid: Solid | None = None
    free: bool = False

    def __str__(self) -> str:
        return self.name

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse a mass or moments that are none, or do not fit the body's coordinates."""
        if self.coordinates is not None:
            check_masses(self, params)

    @property
    def size(self) -> int:
        """The number of its coordinates."""
        return 0 if self.coordinates is None else len(self.coordinates.labels)

    @property
    def slice(self) -> slice:
        """Which of the coordinates q are its own."""
        return slice(self.first, self.first + self.size)

    @cached_property
    def start(self) -> np.ndarray:
        """Its coordinates in the assembled pose."""
        return np.zeros(0) if self.coordinates is None else self.coordinates.start(self.centre, self.axes)

    @property
    def turns(self) -> bool:
        """Whether it has a rotation; point masses have none, and the ground does not move."""
        return isinstance(self.coordinates, (Quaternion, Matrix, Planar))

    @property
    def flat(self) -> bool:
        """Whether it moves in a plane by its coordinates."""
        return self.coordinates is not None and "z" not in self.coordinates.labels

    def local(self, vector: np.ndarray) -> Vector:
        """A direction of the assembled pose in body axes."""
        entries = self.axes.T @ vector
        entries[np.abs(entries) < 4e-16 * np.max(np.abs(entries))] = 0.0  # what is only rounding would cost operations
        x, y, z = (float(entry) for entry in entries)
        return (x, y, z)

    def arm(self, point: np.ndarray) -> Vector:
        """A point of the assembled pose in body axes, from the centre."""
        return self.local(point - self.centre)


@dataclass(frozen=True)
class Frame:
    """Where a body is, and how it moves where velocities are known."""

    centre: Vector
    columns: Columns
    velocity: Vector = ZERO
    omega: Vector = ZERO

    def point(self, arm: Vector) -> Vector:
        """A point of the body in space."""
        return add(self.centre, turn(self.columns, arm))

    def direction(self, local: Vector) -> Vector:
        """A direction of the body in space."""
        return turn(self.columns, local)

    def speed(self, arm: Vector) -> Vector:
        """The velocity of a point of the body."""
        return add(self.velocity, cross(self.omega, turn(self.columns, arm)))


class Placement:
    """All bodies in one state, or in many at once if q and v are arrays over time; t and parameters beside them."""

    def __init__(self, q: Any, v: Any, t: Any, params: Mapping[str, Any]) -> None:
        self.q, self.v, self.t, self.params = q, v, t, params
        self._frames: dict[int, Frame] = {}

    def of(self, body: Body) -> Frame:
        """The frame of a body, computed once."""
        if body.coordinates is None:
            x, y, z = (float(entry) for entry in body.centre)
            return Frame((x, y, z), UNIT)
        if id(body) not in self._frames:
            own = self.q[body.slice]
            pose = body.coordinates.pose(own)
            motion = () if self.v is None else body.coordinates.motion(own, self.v[body.slice])
            self._frames[id(body)] = Frame(*pose, *motion)
        return self._frames[id(body)]

    def value(self, what: str, value: Value) -> Any:
        """The number or symbol of a `Value`."""
        return valued(what, value, self.params)


class Loads:
    """Forces and torques on bodies, summed up to generalised forces."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self._sums: dict[int, tuple[Body, Vector, Vector]] = {}

    def add(self, body: Body, force: Vector = ZERO, torque: Vector = ZERO, at: Vector | None = None) -> None:
        """A force at a point of space (by default the centre) and a torque; the ground takes any."""
        if body.coordinates is None:
            return
        if at is not None:
            centre = self.placement.of(body).centre
            torque = add(torque, cross((at[0] - centre[0], at[1] - centre[1], at[2] - centre[2]), force))
        _, F, T = self._sums.get(id(body), (body, ZERO, ZERO))
        self._sums[id(body)] = (body, add(F, force), add(T, torque))

    def generalised(self, size: int) -> list[Any]:
        """One force for each coordinate."""
        Q: list[Any] = [0.0] * size
        for body, F, T in self._sums.values():
            assert body.coordinates is not None
            Q[body.slice] = body.coordinates.force(self.placement.q[body.slice], F, T)
        return Q


# -- checks of what users give -------------------------------------------------------------------------------------------


def principal(name: str, inertia: Any, params: Mapping[str, Any]) -> tuple[tuple[Value, Value, Value], np.ndarray]:
    """Principal moments, and the principal axes in the body's own frame, of an inertia about the centre."""
    what = f"the inertia of {name!r}"
    if isinstance(inertia, str) or callable(inertia) or np.ndim(np.array(inertia, dtype=object)) == 0:
        inertia = (inertia, inertia, inertia)
    if len(inertia) == 3 and np.ndim(np.array(inertia[0], dtype=object)) == 0:
        moments, axes = tuple(inertia), np.eye(3)
    else:
        try:
            matrix = np.array(inertia, dtype=float)
        except (TypeError, ValueError, OverflowError):
            matrix = np.zeros(0)
        if matrix.shape != (3, 3) or not np.allclose(
            matrix, matrix.T, rtol=1e-9, atol=1e-12 * np.max(np.abs(matrix), initial=0)
        ):
            raise ModelError(
                f"{what} must be one number, three principal moments or a symmetric 3 x 3 matrix; got {one_line(inertia)}"
            )
        values, axes = np.linalg.eigh((matrix + matrix.T) / 2)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        moments = tuple(float(value) for value in values)
    check_moments(name, moments, params)
    return (moments[0], moments[1], moments[2]), axes


def check_moments(name: str, moments: Sequence[Value], params: Mapping[str, Any]) -> list[float]:
    """The values of principal moments; refused if no body has them."""
    what = f"the inertia of {name!r}"
    values = [positive(what, moment, params) for moment in moments]
    sizes = sorted(values)
    if sizes[2] > (sizes[0] + sizes[1]) * (1 + 1e-9):
        raise ModelError(
            f"{what} has the principal moments {', '.join(f'{size:.6g}' for size in sizes)}, of which the largest exceeds the "
            "sum of the others, as in no body (triangle inequality): check units, and that they are about the centre of mass"
        )
    return values


def check_masses(body: Body, params: Mapping[str, Any]) -> None:
    """Refuse values of parameters with which a body's mass or moments are none, or do not fit its coordinates."""
    positive(f"the mass of {body.name!r}", body.mass, params)
    if not body.turns:
        return
    values = check_moments(body.name, body.inertia, params)
    if isinstance(body.coordinates, Matrix) and len(body.coordinates.kept) == 3 and massless_column(values) is not None:
        raise ModelError(
            f"{body.name!r} is a thin plate (its largest moment is the sum of the others) by the values of parameters, so that "
            'its mass matrix in coordinates="matrix" is singular: give the body coordinates="quaternion"'
        )


def coordinates_of(kind: str, height: float, moments: Sequence[Value]) -> Coordinates:
    """The coordinates that a user named; those of a matrix depend on the moments only where these are no parameters."""
    match kind if isinstance(kind, str) else None:
        case "quaternion":
            return Quaternion()
        case "matrix":
            fixed = [float(moment) for moment in moments if not isinstance(moment, str) and not callable(moment)]
            return Matrix(fixed if len(fixed) == 3 else (1.0, 1.0, 1.0))
        case "planar":
            return Planar(height)
    raise ModelError(f'coordinates are "planar", "quaternion" or "matrix"; got {kind!r}')


def point_coordinates(kind: str, height: float) -> Point:
    """Those of a point mass."""
    return Point(height if kind == "planar" else None)
