"""Points of bodies, or balls about them, that touch planes and each other, with friction.

gap = n.(c - origin) - r on a plane,   |c - c_o| - r - r_o between two balls, n = (c - c_o)/|c - c_o|
sliding velocity = t_i.(velocity of the body - velocity of the plane or the other body), at the point of contact c - r n
spin = patch n.(omega - that of the other body), a third component of what friction opposes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._rigid import Body, Frame, Part, Placement
from dalembert.mechanisms._values import Value, number, positive, valued
from dalembert.mechanisms._vectors import Vector, add, cross, dot, scale, subtract
from dalembert.mechanisms._wheels import Plane, bouncing
from dalembert.systems._coulomb import across


@dataclass(eq=False, repr=False)
class Touching(Part):
    """A point of a body, or a ball about it, stays above a plane or beside a ball about a point of another body."""

    body: Body
    point: np.ndarray
    radius: Value
    plane: Plane
    restitution: Value
    friction: Value = 0.0
    other: Body | None = None
    other_point: np.ndarray | None = None
    other_radius: Value = 0.0
    patch: Value = 0.0
    """What spin is multiplied by to count as a sliding velocity; 2/3 of the radius of a patch under constant pressure."""

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse negative radii and coefficients, and two points, which never meet."""
        own = positive(f"the radius of {self.name!r}", self.radius, params, zero=True)
        others = positive(f"the other radius of {self.name!r}", self.other_radius, params, zero=True)
        if self.other is not None and not own + others > 0:
            raise ModelError(f"{self.name!r} is between two points, which never meet: give a radius")
        patch = positive(f"the patch of {self.name!r}", self.patch, params, zero=True)
        if patch > 0 and self.planar:
            raise ModelError(f"{self.name!r} has a patch, but in a plane nothing spins about its normal: leave patch= out")
        bouncing(f"the restitution of {self.name!r}", self.restitution, params)
        what = f"the friction of {self.name!r}"
        if not number(what, valued(what, self.friction, params)) >= 0:
            raise ModelError(f"{what} is a coefficient >= 0")

    @property
    def planar(self) -> bool:
        """Whether all that happens is in a plane."""
        return all(body is None or body.coordinates is None or body.flat for body in (self.body, self.other))

    def gaps(self, at: Placement) -> list[Any]:
        """What stays positive."""
        gap, _, _ = self.contact(at)
        return [gap]

    def slides(self, at: Placement) -> list[Any]:
        """The sliding velocity: one component in a plane, two in space, and that of spin."""
        _, n, point = self.contact(at)
        velocity = _material(at.of(self.body), self._centre(at), self.body, self.point, point)
        if self.other is not None and self.other_point is not None:
            centre = at.of(self.other).point(self.other.arm(self.other_point))
            velocity = subtract(velocity, _material(at.of(self.other), centre, self.other, self.other_point, point))
        if self.planar:
            return [dot((n[1], -n[0], 0.0), velocity)]
        omega = at.of(self.body).omega
        if self.other is not None:
            omega = subtract(omega, at.of(self.other).omega)
        tangents = self.plane.tangents if self.other is None else across(n)
        spin = at.value(f"the patch of {self.name!r}", self.patch) * dot(n, omega)
        return [*(dot(tangent, velocity) for tangent in tangents), spin]

    def coefficient(self, at: Placement) -> Any:
        """Coulomb's coefficient."""
        return at.value(f"the friction of {self.name!r}", self.friction)

    def _centre(self, at: Placement) -> Vector:
        return at.of(self.body).point(self.body.arm(self.point))

    def contact(self, at: Placement) -> tuple[Any, Vector, Vector]:
        """The gap, the normal towards the body, and the point of the body that is next."""
        c, r = self._centre(at), at.value(f"the radius of {self.name!r}", self.radius)
        if self.other is None or self.other_point is None:
            gap, n = self.plane.height(c) - r, self.plane.n
        else:
            apart = subtract(c, at.of(self.other).point(self.other.arm(self.other_point)))
            length = np.sqrt(dot(apart, apart))
            gap = length - r - at.value(f"the other radius of {self.name!r}", self.other_radius)
            n = scale(1 / length, apart)
        return gap, n, subtract(c, scale(r, n))


def _material(frame: Frame, centre: Vector, body: Body, at: np.ndarray, point: Vector) -> Vector:
    """The velocity of the body's material point that is at a point of space."""
    return add(frame.speed(body.arm(at)), cross(frame.omega, subtract(point, centre)))
