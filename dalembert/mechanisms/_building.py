"""What all parts of a mechanism share while it is built: names, parameters, and the checks of points."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from dalembert.errors import ModelError, suggestion
from dalembert.mechanisms._compound import Motion
from dalembert.mechanisms._coordinates import Point
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._links import Marker
from dalembert.mechanisms._loads import QUANTITIES, Load
from dalembert.mechanisms._rigid import Body, Part, coordinates_of
from dalembert.mechanisms._values import Value, called, number, valued
from dalembert.mechanisms._vectors import triple
from dalembert.systems._model import Parameters, naming, one_line

Z = (0.0, 0.0, 1.0)
P = TypeVar("P", bound=Part)
MEETING = 1e-9
"""How far apart, relative to the mechanism's size, points that must meet in the assembled pose may be."""


class Building:
    """The parts of a mechanism, and the methods that add them; each returns the part, to be named later."""

    def __init__(self, gravity: Any, coordinates: str, params: Mapping[str, Any] | None) -> None:
        self.params: dict[str, Any] = dict(Parameters(params).values)
        taken = [name for name in self.params if name in QUANTITIES]
        if taken:
            raise ModelError(
                f"the parameter name {taken[0]!r} is that of a quantity of bodies and joints, which motors and forces ask for "
                f"({', '.join(QUANTITIES)}): rename it"
            )
        self.gravity, self.default_coordinates = gravity, coordinates
        coordinates_of(coordinates, 0.0, (1.0, 1.0, 1.0))
        self._check_gravity()
        self.bodies: list[Body] = []
        self.parts: list[Any] = []
        """Joints, gears, wheels, stops: what states rows."""
        self.loads: list[Load] = []
        zero, unit = np.zeros(3), np.eye(3)
        self.ground = Body("ground", self, None, 0, 0.0, (0.0, 0.0, 0.0), zero, unit, unit)

    def _check_gravity(self) -> None:
        value = valued("gravity", self.gravity, self.params)
        try:
            entries = [number("gravity", valued("gravity", entry, self.params)) for entry in value]
        except TypeError:
            entries = []
        if len(entries) not in (2, 3):
            raise ModelError(
                f"gravity is an acceleration, such as (0, 0, -9.81), or (0, -9.81) in the plane; got {one_line(self.gravity)}"
            )
        if self.default_coordinates == "planar" and len(entries) == 3 and entries[2] != 0:
            raise ModelError(
                "gravity across the plane moves nothing in it: give (0, -9.81), or leave out coordinates='planar'; got "
                f"{one_line(self.gravity)}"
            )

    @property
    def joints(self) -> list[Joint]:
        """The joints, in the order in which they were added."""
        return [part for part in self.parts if isinstance(part, Joint) and not isinstance(part, Motion)]

    @property
    def named_parts(self) -> list[Part]:
        """Bodies, joints and what these leave to move, which functions of the user may name."""
        return [*self.bodies, *(part for part in self.parts if isinstance(part, Joint))]

    def part(self, name: str) -> Any:
        """The part of a name: a body, a joint, a spring, a wheel.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> arm = m.rod("arm", (0, 0, 0), (1, 0, 0), mass=1.0)
            >>> m.part("arm") is arm
            True

        """
        parts = {part.name: part for part in (self.ground, *self.bodies, *self.parts, *self.loads)}
        if name not in parts:
            there = suggestion(str(name), parts) or f"; its parts are {', '.join(parts)}"
            raise ModelError(f"the mechanism has no part {name!r}{there}")
        return parts[name]

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse values of parameters that make no sense for one of the parts, such as a negative mass."""
        for part in (*self.bodies, *self.parts, *self.loads):
            part.check(params)

    def _add(self, part: P) -> P:
        """Check a new part with the values of the mechanism's parameters, and take it in."""
        part.check(self.params)
        (self.loads if isinstance(part, Load) else self.parts).append(part)  # type: ignore[arg-type]
        return part

    def _changed(self) -> None:
        """Called whenever a part is added."""

    @property
    def _names(self) -> set[str]:
        """The names that are taken: those of parts that were added, not of what was refused."""
        return {part.name for part in (self.ground, *self.bodies, *self.parts, *self.loads)}

    def _name(self, name: str | None, kind: str) -> str:
        """The name of a part that is going to be added, checked, or the next free one of its kind."""
        if name is None:
            taken = self._names
            count = 1
            while f"{kind} {count}" in taken:
                count += 1
            name = f"{kind} {count}"
        if not isinstance(name, str) or not name:
            raise ModelError(f"the name of a {kind} is a text such as 'crank'; got {name!r}")
        if name in self._names:
            raise ModelError(f"there are two parts of the name {name!r}: give each its own")
        self._changed()
        return name

    def _own_bodies(self, what: str, *parts: Any) -> None:
        """Refuse what is no body of this mechanism, nor a frame on one."""
        self._own(what, parts, (Body, Marker), "bodies and frames", "m.body(...)")

    def _own_joints(self, what: str, *parts: Any) -> None:
        """Refuse what is no joint of this mechanism that has an angle or a displacement."""
        self._own(what, parts, (Joint,), "joints", "m.revolute(...)")
        for joint in parts:
            joint.coordinate  # noqa: B018 - refuses joints that have none

    def _own(self, what: str, parts: tuple[Any, ...], kinds: tuple[type, ...], called: str, maker: str) -> None:
        for part in parts:
            if getattr(part, "mechanism", None) is not self:
                raise ModelError(f"{what} takes parts of this mechanism, such as {maker} returns; got {one_line(part)}")
            if not isinstance(part, kinds):
                raise ModelError(f"{what} takes {called}, such as {maker} returns; got {one_line(part)}")

    def _size(self, *points: np.ndarray) -> float:
        """The largest coordinate of points and of centres of bodies, to which rounding errors of places are proportional."""
        return float(np.max(np.abs([*points, *(body.centre for body in self.bodies)]), initial=0.0))

    def _check_flat(self, what: str, point: np.ndarray) -> None:
        """Refuse a point off the plane z = 0 in a mechanism that was declared to be in the plane."""
        if self.default_coordinates == "planar" and point[2] != 0:
            raise ModelError(
                f"{what} has z = {point[2]:g}, and this mechanism is in the plane, z = 0: give x and y only, or leave out "
                'coordinates="planar" of the mechanism and give it to the bodies that move in a plane'
            )

    def _check_point(self, what: str, body: Body, point: np.ndarray) -> None:
        """Refuse a point off the plane of a planar mechanism without bodies in space, and one away from a point mass."""
        flat = all(other.flat for other in self.bodies)
        if flat and point[2] not in [other.centre[2] for other in self.bodies]:  # the centre of a mesh may lie elsewhere
            self._check_flat(f"the point of {what}", point)
        away = float(np.linalg.norm(point - body.centre))
        if isinstance(body.coordinates, Point) and away > MEETING * self._size(point):
            raise ModelError(
                f"{what} is not at the point mass {body.name!r}, but {away:.3g} away, and a point mass has no arm: give "
                "at= its position"
            )


def plain(value: Value) -> Value:
    """Numbers as floats."""
    return float(value) if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else value


def by_parameters(what: str, value: Value) -> Any:
    """A number as it is, the name of a parameter as a function of that, a function so that its errors say whose it is."""
    if callable(value):
        function = value
        return naming(inspect.signature(function).parameters, lambda **params: called(what, function, params))
    return naming([value], lambda **params: params[value]) if isinstance(value, str) else value


def two_points(what: str, at: Any) -> tuple[np.ndarray, np.ndarray]:
    """A point on the first and one on the second body."""
    try:
        first, second = at
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what} needs two points, at=(on the first body, on the second); got {one_line(at)}") from None
    return triple(f"the first point of {what}", first), triple(f"the second point of {what}", second)


def as_function(what: str, value: Any) -> Callable[..., Any]:
    """A function of the user, or one that returns the number or vector that was given."""
    if callable(value):
        return value
    if isinstance(value, str):
        raise ModelError(
            f"{what} is a number, a vector or a function; for the parameter {value!r} write lambda {value}: {value}"
        )
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what} is a number, a vector or a function; got {one_line(value)}") from None
    return lambda: array.tolist()
