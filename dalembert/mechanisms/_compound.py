"""Compound joints: slides along axes of the first body, then turns about axes that cross in one point, without bodies between.

P and Q are the joint's points on the first and the second body, d = Q - P, R the rotation of the second body on the first since
the assembled pose. Slides have the axes s_i on the first body, turns the axes a_1, ..., a_k, each carried by those before it:

    d = sum x_i s_i,   R = R(a_1, phi_1) ... R(a_k, phi_k)

| what is left | rows |
|---|---|
| slides | n.d = 0 for all n normal to them |
| no turn | those of a fixed joint but d = 0 |
| one turn | n1.b = n2.b = 0 |
| two turns | a_1.b = as assembled, b being a_2 on the second body |
| three turns, or any rotation | none |

Of three turns, a_1.(R a_3) gives phi_2 (Davenport's angles); the others follow from how the outer axes are turned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._rigid import Body, Part, Placement
from dalembert.mechanisms._vectors import Vector, add, cross, dot, normals, scale, subtract


@dataclass(eq=False, repr=False)
class Compound(Joint):
    """Slides and turns between two bodies."""

    slides_along: tuple[np.ndarray, ...] = ()
    turns_about: tuple[np.ndarray, ...] | None = ()
    """None for any rotation."""
    motions: tuple[Motion, ...] = field(init=False, default=())
    """Its displacements and angles in their order, for motors, springs, stops, starts and readings."""

    def rows(self, at: Placement) -> list[Any]:
        """What is zero."""
        P, Q = self.ends(at)
        d = subtract(Q, P)
        rows = [dot(self.on_first(at, n), d) for n in _across(self.slides_along)]
        if self.turns_about is None:
            return rows
        turning: tuple[Any, ...] = ((self._parallel, self._locked), (self._parallel,), (self._crossed,), ())
        return rows + [row for stated in turning[len(self.turns_about)] for row in stated(at)]

    def on_first(self, at: Placement, vector: np.ndarray) -> Vector:
        """A direction of the assembled pose, carried by the first body."""
        return at.of(self.first).direction(self.first.local(vector))

    def on_second(self, at: Placement, vector: np.ndarray) -> Vector:
        """A direction of the assembled pose, carried by the second body."""
        return at.of(self.second).direction(self.second.local(vector))

    def angles(self, at: Placement) -> list[Any]:
        """phi_1, ..., phi_k since the assembled pose, for two turns or three."""
        assert self.turns_about is not None
        a, *middle, b = self.turns_about
        first, last = self.on_first(at, a), self.on_second(at, b)
        if not middle:
            return [
                _angle(first, self.on_first(at, b), last),
                _angle(last, first, self.on_second(at, a)),
            ]
        (c,) = middle
        between = _middle_angle(a, c, b, dot(first, last))
        carried = _turned(between, self.on_first(at, c), self.on_first(at, b))
        returned = _turned(-between, self.on_second(at, c), self.on_second(at, a))
        return [_angle(first, carried, last), between, _angle(last, first, returned)]

    def axes(self, at: Placement) -> list[Vector]:
        """a_1, ..., a_k in space."""
        assert self.turns_about is not None
        a, *middle = self.turns_about
        if not middle:
            return [self.on_first(at, a)]
        *middle, b = middle
        first = self.on_first(at, a)
        turned = [_turned(self.angles(at)[0], first, self.on_first(at, c)) for c in middle]
        return [first, *turned, self.on_second(at, b)]


@dataclass(eq=False, repr=False)
class Motion(Joint):
    """A displacement or an angle that a compound joint leaves: it states nothing, but is read and driven like a joint."""

    whole: Compound = None  # type: ignore[assignment]
    number: int = 0
    """Among the slides, or among the turns."""

    def rows(self, at: Placement) -> list[Any]:
        """Nothing: the joint has stated them."""
        return []

    @property
    def _alone(self) -> bool:
        """Whether it is the only turn."""
        return self.whole.turns_about is not None and len(self.whole.turns_about) == 1

    def turned(self, at: Placement) -> tuple[Any, Any]:
        """Cosine and sine of the angle since the assembled pose."""
        if self._alone:
            return super().turned(at)
        angle = self.whole.angles(at)[self.number]
        return np.cos(angle), np.sin(angle)

    def angle_at(self, at: Placement) -> Any:
        """The angle: in the plane without end, in space between -pi and pi around the assembled pose."""
        if self._alone or not self.turns:
            return super().angle_at(at)
        return self.angle + self.whole.angles(at)[self.number]

    def axis_at(self, at: Placement) -> Vector:
        """The axis in space."""
        return super().axis_at(at) if self.slides else self.whole.axes(at)[self.number]

    def measure_at(self, at: Placement) -> Vector:
        """The direction of which its own axis has the component one, and the axes of the other motions none."""
        if self.slides:
            along = np.linalg.pinv(np.array(self.whole.slides_along))[:, self.number]
            return self.whole.on_first(at, along)
        return _dual(self.whole.axes(at), self.number)


@dataclass(eq=False, repr=False)
class Copied(Part):
    """A body that has the rotation of a joint's second body, as its first one sees it: sum_k r_k x (R_1^T R_2)_k = 0."""

    joint: Joint
    body: Body

    def rows(self, at: Placement) -> list[Any]:
        """What is zero; r_k are the columns of the rotation of the body since the assembled pose."""
        first, second, own = (at.of(body) for body in (self.joint.first, self.joint.second, self.body))
        total: Vector = (0.0, 0.0, 0.0)
        seen_from = [first.direction(self.joint.first.local(u)) for u in np.eye(3)]
        for u in np.eye(3):
            column = second.direction(self.joint.second.local(u))
            x, y, z = (dot(axis, column) for axis in seen_from)
            total = add(total, cross(own.direction(self.body.local(u)), (x, y, z)))
        return list(total)


def _across(slides: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Unit vectors normal to all slides and to each other."""
    match len(slides):
        case 0:
            return list(np.eye(3))
        case 1:
            return list(normals(slides[0]))
        case 2:
            normal = np.cross(slides[0], slides[1])
            return [normal / np.linalg.norm(normal)]
    return []


def _angle(axis: Vector, before: Vector, after: Vector) -> Any:
    """By how much the part of a vector that is normal to an axis has turned about it."""
    across = subtract(before, scale(dot(axis, before), axis))
    return np.arctan2(dot(cross(axis, across), after), dot(across, after))


def _turned(angle: Any, axis: Vector, vector: Vector) -> Vector:
    """A vector turned about a unit axis."""
    along = scale(dot(axis, vector), axis)
    across = subtract(vector, along)
    return add(along, add(scale(np.cos(angle), across), scale(np.sin(angle), cross(axis, across))))


def _middle_angle(a: np.ndarray, c: np.ndarray, b: np.ndarray, product: Any) -> Any:
    """phi of a.(R(c, phi) b) = `product`, zero in the assembled pose: A + B cos phi + C sin phi."""
    A = float(a @ c) * float(c @ b)
    B, C = float(a @ b) - A, float(a @ np.cross(c, b))
    size, phase = float(np.hypot(B, C)), float(np.arctan2(C, B))
    cosine = (product - A) / size
    return phase - np.sign(phase) * np.arctan2(np.sqrt(1 - cosine * cosine), cosine)


def _dual(axes: list[Vector], number: int) -> Vector:
    """The vector in the span of some axes whose product with one of them is one, and with the others zero."""
    own, others = axes[number], [axis for k, axis in enumerate(axes) if k != number]
    if len(others) == 2:
        direction = cross(others[0], others[1])
    else:
        direction = own
        for other in others:
            direction = subtract(direction, scale(dot(own, other), other))
    return scale(1 / dot(direction, own), direction)
