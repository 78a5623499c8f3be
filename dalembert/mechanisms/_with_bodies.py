"""How bodies are added to a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._building import Building
from dalembert.mechanisms._links import Marker, carrier
from dalembert.mechanisms._rigid import Body, coordinates_of, point_coordinates, principal
from dalembert.mechanisms._solids import Box, Solid
from dalembert.mechanisms._values import Value, positive
from dalembert.mechanisms._vectors import about_z, normals, rotation_matrix, triple
from dalembert.systems._model import naming, one_line


class WithBodies(Building):
    """A mechanism to which bodies can be added."""

    def body(
        self,
        name: str | None = None,
        *,
        mass: Value | None = None,
        inertia: Any = None,
        at: Any = None,
        rotation: Any = None,
        shape: Solid | None = None,
        density: float | None = None,
        coordinates: str | None = None,
        free: bool = False,
    ) -> Body:
        """A rigid body with its centre of mass `at` a point; `rotation` turns its own axes to those of space.

        `inertia` about the centre, in the body's own axes, is a symmetric matrix, three principal moments, or one number (for
        a planar body that about z). A `shape` (Box, Cylinder, Sphere, Mesh of da.mechanisms) gives it from `mass` or `density`.
        Without `at` the body's own frame has its origin in that of space: the corners of a mesh stay where they are.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> m.body("wheel", mass=2.0, inertia=(0.06, 0.06, 0.12), at=(0, 0, 0.3)).name
            'wheel'

        """
        name = self._name(name, "body")
        if shape is not None and not isinstance(shape, Solid):
            raise ModelError(f"the shape of {name!r} is a da.mechanisms.Box, Cylinder, Sphere or Mesh; got {one_line(shape)}")
        mass = self._weight(name, mass, density, shape)
        given = rotation_matrix(f"the rotation of {name!r}", rotation)
        own = np.zeros(3) if shape is None else given @ shape.centre
        centre = triple(f"the position of {name!r}", own if at is None else at)
        kind = self.default_coordinates if coordinates is None else coordinates
        if kind == "planar" and at is not None:
            self._check_flat(f"the position of {name!r}", centre)
        moments, axes = self._moments(name, mass, inertia, shape, kind == "planar")
        if kind == "planar":
            if abs(given[2, 2]) < 1 - 1e-12:
                raise ModelError(f"the planar body {name!r} is rotated about another axis than z: give rotation= an angle")
            principal_axes = about_z(np.arctan2(given[1, 0], given[0, 0]))
        else:
            principal_axes = given @ axes
        chosen = coordinates_of(kind, centre[2], moments)
        return self._add_body(Body(name, self, chosen, 0, mass, moments, centre, principal_axes, given, shape, free))

    def _weight(self, name: str, mass: Value | None, density: Any, shape: Solid | None) -> Value:
        """The mass of a body, given or by its density."""
        if density is not None:
            if shape is None or mass is not None:
                raise ModelError(f"the density of {name!r} needs a shape, and no mass: give one or the other")
            if isinstance(density, str) or callable(density):
                raise ModelError(f"the density of {name!r} is a number: for one that varies give mass=lambda rho: rho * volume")
            mass = positive(f"the density of {name!r}", density, self.params) * shape.volume
        if mass is None:
            raise ModelError(f"the body {name!r} has no mass: give mass=, or density= with shape=")
        positive(f"the mass of {name!r}", mass, self.params)
        return mass

    def _moments(
        self, name: str, mass: Value, inertia: Any, shape: Solid | None, planar: bool
    ) -> tuple[tuple[Value, Value, Value], np.ndarray]:
        """Principal moments and axes of a body, given or by its shape; of a planar body only the moment about z counts."""
        if inertia is not None:
            moments, axes = principal(name, inertia, self.params)
            return (_about_own_z(inertia, moments) if planar else moments), axes
        if shape is None:
            raise ModelError(f"the body {name!r} has no inertia: give inertia= or shape=, or make it a point with m.point(...)")
        if planar:
            return (_multiple(mass, float(shape.axes[2] ** 2 @ shape.moments)),) * 3, np.eye(3)
        x, y, z = (_multiple(mass, float(moment)) for moment in shape.moments)
        return (x, y, z), shape.axes

    def _add_body(self, body: Body) -> Body:
        body.check(self.params)
        body.first = sum(other.size for other in self.bodies)
        self.bodies.append(body)
        return body

    def frame(self, name: str | None, body: Body, *, at: Any, rotation: Any = None) -> Marker:
        """A massless frame on a body, or on the ground: a point and axes that a run knows, and that joints and forces may name.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> arm = m.rod("arm", (0, 0, 0), (1, 0, 0), mass=1.0)
            >>> hinge = m.revolute(m.ground, arm, at=(0, 0, 0))
            >>> tool = m.frame("tool", arm, at=(1, 0, 0))
            >>> velocity = m.at(m.start(rates={hinge: 3.0})).of(tool).velocity[0]
            >>> (velocity.round(12) + 0.0).tolist()
            [0.0, 3.0, 0.0]

        """
        self._own_bodies("a frame", body)
        name = self._name(name, "frame")
        point = triple(f"the position of {name!r}", at)
        self._check_point(f"{name!r}", carrier(body), point)
        return self._add(Marker(name, self, carrier(body), point, rotation_matrix(f"the rotation of {name!r}", rotation)))

    def rod(
        self,
        name: str | None,
        start: Any,
        end: Any,
        *,
        mass: Value | None = None,
        density: float | None = None,
        width: float | None = None,
        coordinates: str | None = None,
        free: bool = False,
    ) -> Body:
        """A uniform rod of square section from one point to another; its first axis lies along it.

        Without a `width` a planar rod is thin, mass length^2 / 12; one in space, whose rotation about itself must have an
        inertia, is a hundredth of its length wide.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism(coordinates="planar")
            >>> m.rod("crank", (0, 0), (0, 0.2), mass=0.3).centre.tolist()
            [0.0, 0.1, 0.0]

        """
        a, b = triple("the start of a rod", start), triple("the end of a rod", end)
        length = float(np.linalg.norm(b - a))
        if length == 0:
            raise ModelError(f"the rod {name!r} has length zero: give two different ends")
        along = (b - a) / length
        planar = (self.default_coordinates if coordinates is None else coordinates) == "planar"
        if planar:
            self._check_flat(f"the start of the rod {name!r}", a)
            self._check_flat(f"the end of the rod {name!r}", b)
            if a[2] != b[2]:
                raise ModelError(f"the planar rod {name!r} leaves its plane: give both ends the same z, or none")
        rotation = about_z(float(np.arctan2(along[1], along[0]))) if planar else np.stack([along, *normals(along)], axis=1)
        shape = Box(length, length / 100 if width is None else width, length / 100 if width is None else width)
        thin = planar and width is None and mass is not None
        if thin and mass is not None:
            positive(f"the mass of {name!r}", mass, self.params)
        return self.body(
            name,
            mass=mass,
            density=density,
            inertia=_multiple(mass, length**2 / 12) if thin and mass is not None else None,
            at=(a + b) / 2,
            rotation=rotation,
            shape=shape,
            coordinates=coordinates,
            free=free,
        )

    def point(
        self, name: str | None = None, *, mass: Value, at: Any, coordinates: str | None = None, free: bool = False
    ) -> Body:
        """A point mass; spherical and distance joints, springs and forces hold it.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism(gravity=(0, 0, -9.81))
            >>> bob = m.point("bob", mass=1.0, at=(1, 0, 0))
            >>> m.distance(m.ground, bob, at=((0, 0, 0), (1, 0, 0))).name
            'distance 1'

        """
        name = self._name(name, "point")
        centre = triple(f"the position of {name!r}", at)
        kind = self.default_coordinates if coordinates is None else coordinates
        if kind == "planar":
            self._check_flat(f"the position of {name!r}", centre)
        unit = np.eye(3)
        chosen = point_coordinates(kind, centre[2])
        return self._add_body(Body(
            name, self, chosen, 0, mass, (0.0, 0.0, 0.0), centre, unit, unit, None, free
        ))  # fmt: skip


def _multiple(mass: Value, factor: float) -> Value:
    """A moment of inertia that is proportional to a mass."""
    if isinstance(mass, str):
        return _proportional(mass, factor)
    if callable(mass):
        raise ModelError("a mass that is a function of parameters needs its inertia, too: give inertia=")
    return float(mass) * factor


def _proportional(name: str, factor: float) -> Callable[..., Any]:
    return naming([name], lambda **params: params[name] * factor)


def _about_own_z(inertia: Any, moments: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
    """The moments of a planar body, of which only that about z counts."""
    if np.shape(np.array(inertia, dtype=object)) == (3, 3):
        matrix = np.array(inertia, dtype=float)
        return (float(matrix[2, 2]),) * 3
    return (moments[2],) * 3
