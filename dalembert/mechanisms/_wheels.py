"""Knife edges, wheels and balls that roll on a plane or a surface, and the ranges of joints; see `_touching.py` for contacts.

The plane has the unit normal n and goes through `origin`; t1 and t2 lie in it. A wheel is a circle of radius r about c with the
axis a. It touches the plane at its lowest point,

    P = c + r u,   u = -(n - (n.a) a) / s,   s = |n - (n.a) a|,   0 = n.(c - origin) - r s,   0 = t_i.(c' + omega x r u)

and for a ball of radius r, u = -n. For surfaces see `_surfaces.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.errors import InconsistentStart, ModelError
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._rigid import Body, Part, Placement
from dalembert.mechanisms._surfaces import Surface, as_vector
from dalembert.mechanisms._values import Value, number, positive, valued
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


@dataclass(frozen=True)
class Contact:
    """Where a wheel or a ball touches its plane or surface."""

    point: Vector
    gap: Any
    """How far it is above it."""
    tangents: tuple[Vector, Vector]
    left: Sequence[Any] = ()
    """What Newton's steps to the point left of its equations; in units of length."""
    bend: Any = 1.0
    """Positive where the point is the nearest one: the wheel or ball bends more sharply than the surface."""


@dataclass(eq=False, repr=False)
class Wheel(Part):
    """A wheel, or a ball if it has no axis, that rolls without slipping."""

    body: Body
    centre: np.ndarray
    axis: np.ndarray | None
    radius: Value
    plane: Plane | Surface
    reference: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    """A direction to which the normal of the surface under a ball is never opposite."""

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse a radius that is none."""
        positive(f"the radius of {self.name!r}", self.radius, params)

    def contact(self, at: Placement) -> Contact:
        """Where it touches."""
        c = at.of(self.body).point(self.body.arm(self.centre))
        a = None if self.axis is None else at.of(self.body).direction(self.body.local(self.axis))
        r = at.value(f"the radius of {self.name!r}", self.radius)
        if isinstance(self.plane, Plane):
            return _on_plane(self.plane, c, a, r)
        return _ball_on(self.plane, at.params, c, r, self.reference) if a is None else _wheel_on(self.plane, at.params, c, a, r)

    def contact_point(self, at: Placement) -> Vector:
        """Where it touches the plane or the surface."""
        return self.contact(at).point

    def rows(self, at: Placement) -> list[Any]:
        """It touches."""
        return [self.contact(at).gap]

    def rates(self, at: Placement) -> list[Any]:
        """The velocity of its material point at the contact, along the plane or the surface."""
        contact, frame = self.contact(at), at.of(self.body)
        c = frame.point(self.body.arm(self.centre))
        velocity = add(frame.speed(self.body.arm(self.centre)), cross(frame.omega, subtract(contact.point, c)))
        return [dot(tangent, velocity) for tangent in contact.tangents]

    def refuse_if_not_found(self, at: Placement) -> None:
        """Refuse states in which Newton's steps do not lead to a point of contact."""
        contact, r = self.contact(at), at.value(f"the radius of {self.name!r}", self.radius)
        if contact.left and not (np.max(np.abs(contact.left)) < FOUND * r and np.min(contact.bend) > 0):
            raise InconsistentStart(
                f"the point where {self.name!r} touches its surface was not found: the surface bends more sharply than it "
                "does, or its normal has turned over"
            )


FOUND = 1e-9
"""How exact a point of contact must be, in terms of the radius."""
OPPOSITE = 1e-2
"""The least 1 + m.n of a normal n that is not opposite to the reference m."""


def _on_plane(plane: Plane, c: Vector, a: Vector | None, r: Any) -> Contact:
    n = plane.n
    if a is None:
        return Contact(add(c, scale(-r, n)), plane.height(c) - r, plane.tangents)
    lowest = subtract(n, scale(dot(n, a), a))
    s = np.sqrt(dot(lowest, lowest))
    return Contact(add(c, scale(-r / s, lowest)), plane.height(c) - r * s, plane.tangents)


def _ball_on(surface: Surface, params: Mapping[str, Any], c: Vector, r: Any, reference: np.ndarray) -> Contact:
    """The tangents t are those of a reference normal m, turned with m to n: t - (t.n) (m + n) / (1 + m.n)."""
    P, n, left, bend = surface.evaluate(surface.ball, params, c, r)
    point, normal, m = as_vector(P), as_vector(n), _tuple(reference)
    both, opposite = add(m, normal), 1 + dot(m, normal)
    t1, t2 = (subtract(_tuple(t), scale(dot(_tuple(t), normal) / opposite, both)) for t in normals(reference))
    return Contact(point, dot(normal, subtract(c, point)) - r, (t1, t2), left, np.minimum(bend[0], opposite - OPPOSITE))


def _wheel_on(surface: Surface, params: Mapping[str, Any], c: Vector, a: Vector, r: Any) -> Contact:
    P, n, gap, left, bend = surface.evaluate(surface.wheel, params, c, a, r)
    point = as_vector(P)
    along = scale(1 / r, cross(a, subtract(point, c)))
    return Contact(point, gap[0], (along, cross(as_vector(n), along)), left, bend[0])


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


def bouncing(what: str, restitution: Value, params: Mapping[str, Any]) -> None:
    """Refuse a coefficient of restitution that is none; impacts judge a function of `speed`, that of the approach."""
    by_speed = callable(restitution) and "speed" in inspect.signature(restitution).parameters
    value = number(what, valued(what, restitution, {**params, "speed": 1.0} if by_speed else params))
    if not by_speed and not 0 <= value <= 1:
        raise ModelError(f"{what} is between 0, nothing bounces, and 1, all of it does; got {value:g}")


@dataclass(eq=False, repr=False)
class Stop(Part):
    """The angle or displacement of a joint stays between two limits."""

    joint: Joint
    lower: Value | None
    upper: Value | None
    restitution: Value

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse limits that exclude everything, or that an angle in space, which is known up to whole turns, never reaches."""
        bouncing(f"the restitution of {self.name!r}", self.restitution, params)
        values = {}
        for side, limit in (("lower", self.lower), ("upper", self.upper)):
            if limit is not None:
                what = f"the {side} limit of {self.name!r}"
                values[side] = number(what, valued(what, limit, params))
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
