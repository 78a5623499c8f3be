"""Knife edges, wheels and balls that roll on a plane, and points that a plane or a joint's range stops.

The plane has the unit normal n and goes through `origin`; t1 and t2 lie in it. A wheel is a circle of radius r about c with the
axis a. It touches the plane at its lowest point,

    P = c + r u,   u = -(n - (n.a) a) / s,   s = |n - (n.a) a|,   0 = n.(c - origin) - r s,   0 = t_i.(c' + omega x r u)

and for a ball of radius r, u = -n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._rigid import Body, Part, Placement, Value, number, positive, valued
from dalembert.mechanisms._vectors import Vector, add, cross, dot, normals, scale, subtract


@dataclass(eq=False, repr=False)
class Plane:
    """A plane that does not move."""

    origin: np.ndarray
    normal: np.ndarray
    n: Vector = field(init=False)
    tangents: tuple[Vector, Vector] = field(init=False)

    def __post_init__(self) -> None:
        first, second = normals(self.normal)
        self.n = _tuple(self.normal)
        self.tangents = (_tuple(first), _tuple(second))

    def height(self, point: Vector) -> Any:
        """How far a point is above the plane."""
        return dot(self.n, subtract(point, _tuple(self.origin)))


def _tuple(vector: np.ndarray) -> Vector:
    x, y, z = (float(entry) for entry in vector)
    return (x, y, z)


@dataclass(eq=False, repr=False)
class Wheel(Part):
    """A wheel, or a ball if it has no axis, that rolls without slipping."""

    body: Body
    centre: np.ndarray
    axis: np.ndarray | None
    radius: Value
    plane: Plane

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse a radius that is none."""
        positive(f"the radius of {self.name!r}", self.radius, params)

    def to_contact(self, at: Placement) -> tuple[Vector, Any]:
        """The unit vector u from the centre to the contact point, and s = |n - (n.a) a|."""
        n = self.plane.n
        if self.axis is None:
            return scale(-1.0, n), 1.0
        a = at.of(self.body).direction(self.body.local(self.axis))
        across = subtract(n, scale(dot(n, a), a))
        s = np.sqrt(dot(across, across))
        return scale(-1.0 / s, across), s

    def contact_point(self, at: Placement) -> Vector:
        """Where it touches the plane."""
        r = at.value(f"the radius of {self.name!r}", self.radius)
        return add(at.of(self.body).point(self.body.arm(self.centre)), scale(r, self.to_contact(at)[0]))

    def rows(self, at: Placement) -> list[Any]:
        """It touches the plane."""
        r, s = at.value(f"the radius of {self.name!r}", self.radius), self.to_contact(at)[1]
        return [self.plane.height(at.of(self.body).point(self.body.arm(self.centre))) - r * s]

    def rates(self, at: Placement) -> list[Any]:
        """The velocity of its material point at the contact, along the plane."""
        r, frame = at.value(f"the radius of {self.name!r}", self.radius), at.of(self.body)
        velocity = add(frame.speed(self.body.arm(self.centre)), cross(frame.omega, scale(r, self.to_contact(at)[0])))
        return [dot(tangent, velocity) for tangent in self.plane.tangents]


@dataclass(eq=False, repr=False)
class KnifeEdge(Part):
    """A point of a body that moves only along a direction of the body: (n x direction) . v = 0."""

    body: Body
    point: np.ndarray
    along: np.ndarray
    plane: Plane

    def rates(self, at: Placement) -> list[Any]:
        """The velocity across the edge."""
        frame = at.of(self.body)
        across = cross(self.plane.n, frame.direction(self.body.local(self.along)))
        return [dot(across, frame.speed(self.body.arm(self.point)))]


@dataclass(eq=False, repr=False)
class Touching(Part):
    """A point of a body, or a ball about it, stays above a plane."""

    body: Body
    point: np.ndarray
    radius: Value
    plane: Plane
    restitution: float

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse a negative radius."""
        positive(f"the radius of {self.name!r}", self.radius, params, zero=True)

    def gaps(self, at: Placement) -> list[Any]:
        """What stays positive."""
        r = at.value(f"the radius of {self.name!r}", self.radius)
        return [self.plane.height(at.of(self.body).point(self.body.arm(self.point))) - r]


@dataclass(eq=False, repr=False)
class Stop(Part):
    """The angle or displacement of a joint stays between two limits."""

    joint: Joint
    lower: Value | None
    upper: Value | None
    restitution: float

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse limits that exclude everything, or that an angle in space, which is known up to whole turns, never reaches."""
        given = {side: limit for side, limit in (("lower", self.lower), ("upper", self.upper)) if limit is not None}
        values = {side: number(f"the {side} limit of {self.name!r}", valued(self.name, x, params)) for side, x in given.items()}
        if len(values) == 2 and values["lower"] > values["upper"]:
            raise ModelError(
                f"the lower limit of {self.name!r} is above the upper one, {values['lower']:g} > {values['upper']:g}"
            )
        if self.joint.coordinate == "displacement" or self.joint.in_plane:
            return
        for side, value in values.items():
            if not abs(value - self.joint.angle) < np.pi:
                raise ModelError(
                    f"the {side} limit of {self.name!r}, {value:g}, is not within half a turn of the assembled pose, where the "
                    f'angle is {self.joint.angle:g}: take one that is, or bodies of coordinates="planar", which count turns'
                )

    def gaps(self, at: Placement) -> list[Any]:
        """What stays positive."""
        x = self.joint.coordinate_at(at)
        below = [] if self.lower is None else [x - at.value(f"the lower limit of {self.name!r}", self.lower)]
        return below + ([] if self.upper is None else [at.value(f"the upper limit of {self.name!r}", self.upper) - x])
