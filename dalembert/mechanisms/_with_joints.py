"""How joints, gears and prescribed motions are added to a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._building import MEETING, Z, two_points
from dalembert.mechanisms._compound import Compound
from dalembert.mechanisms._coordinates import Planar
from dalembert.mechanisms._joints import Gear, Joint, Prescribed
from dalembert.mechanisms._links import Link, carrier, composed
from dalembert.mechanisms._rigid import Body
from dalembert.mechanisms._values import Value, number
from dalembert.mechanisms._vectors import direction, triple
from dalembert.mechanisms._with_bodies import WithBodies
from dalembert.systems._model import one_line, shape_of


class WithJoints(WithBodies):
    """A mechanism to which joints can be added."""

    def revolute(
        self, first: Body, second: Body, *, at: Any, axis: Any = Z, angle: float = 0.0, name: str | None = None
    ) -> Joint:
        """A hinge: one point in common, and an axis about which the second body turns on the first.

        `at` is a point of the assembled pose, or two, on the first and on the second body, which must meet. `angle` is what the
        joint's angle is called in the assembled pose.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> m.revolute(m.ground, m.rod("arm", (0, 0, 0), (1, 0, 0), mass=1.0), at=(0, 0, 0), axis=(0, 1, 0)).kind
            'revolute'

        """
        return self._joint("revolute", first, second, at, axis, name, angle=angle)

    def prismatic(
        self, first: Body, second: Body, *, at: Any = None, axis: Any, displacement: float = 0.0, name: str | None = None
    ) -> Joint:
        """A slide: the second body moves along an axis of the first and does not turn on it.

        `displacement` is what the joint's displacement is called in the assembled pose.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.prismatic(m.ground, a, axis=(1, 0, 0)), m.prismatic(a, b, axis=(0, 0, 1), name="lift")
            (<Joint 'prismatic 1'>, <Joint 'lift'>)

        """
        return self._joint("prismatic", first, second, at, axis, name, displacement=displacement)

    def cylindrical(
        self,
        first: Body,
        second: Body,
        *,
        at: Any = None,
        axis: Any,
        angle: float = 0.0,
        displacement: float = 0.0,
        name: str | None = None,
    ) -> Joint:
        """The second body turns about an axis of the first and moves along it.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.cylindrical(a, b, axis=(1, 0, 0))
            <Joint 'cylindrical 1'>

        """
        return self._joint("cylindrical", first, second, at, axis, name, angle=angle, displacement=displacement)

    def spherical(self, first: Body, second: Body, *, at: Any, name: str | None = None) -> Joint:
        """A ball joint: one point in common.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.spherical(a, b, at=(0.05, 0, 0))
            <Joint 'spherical 1'>

        """
        return self._joint("spherical", first, second, at, Z, name)

    def universal(self, first: Body, second: Body, *, at: Any, axes: Any, name: str | None = None) -> Joint:
        """A cardan joint: one point in common, and an axis on each body that keep their angle, usually a right one.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.universal(a, b, at=(0.05, 0, 0), axes=((0, 1, 0), (0, 0, 1)))
            <Joint 'universal 1'>

        """
        if shape_of(axes) not in ((2, 3), (2, 2)):
            raise ModelError("the axes of a universal joint are two directions, on the first and on the second body")
        one, other = (direction("an axis of a universal joint", axis) for axis in axes)
        if abs(one @ other) > 0.99:
            raise ModelError("the axes of a universal joint are parallel: give two that cross, usually at a right angle")
        return self._joint("universal", first, second, at, one, name, other_axis=other)

    def planar(self, first: Body, second: Body, *, at: Any = None, normal: Any = Z, name: str | None = None) -> Joint:
        """The second body moves in a plane of the first, and turns about its normal.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.planar(m.ground, a, normal=(0, 0, 1))
            <Joint 'planar 1'>

        """
        return self._joint("planar", first, second, at, normal, name)

    def fixed(self, first: Body, second: Body, *, at: Any = None, name: str | None = None) -> Joint:
        """Both bodies move as one.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.fixed(a, b)
            <Joint 'fixed 1'>

        """
        return self._joint("fixed", first, second, at, Z, name)

    def distance(self, first: Body, second: Body, *, at: Any, length: Value | None = None, name: str | None = None) -> Joint:
        """A massless rod between a point of the first and one of the second body, as long as assembled or `length`.

        A `length` may be a function of t and parameters.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.distance(a, b, at=((0, 0, 0), (0.1, 0, 0)), length=lambda t: 0.1 + 0.01 * t).points[1].tolist()
            [0.1, 0.0, 0.0]

        """
        P, Q = two_points("a distance", at)
        apart = float(np.linalg.norm(Q - P))
        if apart == 0:
            raise ModelError("the points of a distance joint coincide, so that it has no direction: use m.spherical(...)")
        return self._joint("distance", first, second, (P, Q), Z, name, length=apart if length is None else length)

    def link(self, first: Body, second: Body, *, at: Any, axes: Any = (Z, Z), name: str | None = None) -> Joint:
        """A massless link, `at` = (on the first body, on the second), hinged to both about `axes`; None there is a ball joint.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism(coordinates="planar")
            >>> a, b = (m.rod(name, (x, 0), (x, 1), mass=0.2) for name, x in (("crank", 0.0), ("rocker", 0.5)))
            >>> hinges = [m.revolute(m.ground, rod, at=(x, 0)) for rod, x in ((a, 0.0), (b, 0.5))]
            >>> m.link(a, b, at=((0, 1), (0.5, 1)), name="coupler").length, m.system().n_holonomic
            (0.5, 5)

        """
        P, Q = two_points("a link", at)
        if not isinstance(axes, (tuple, list)) or len(axes) != 2:
            raise ModelError("the axes of a link are two directions, or None for a ball joint, such as ((0, 0, 1), None)")
        units = tuple(None if axis is None else direction("an axis of a link", axis) for axis in axes)
        shown = name or "the link"
        place = composed(shown, P, Q, (units[0], units[1]))
        hinged = (units[0] is not None, units[1] is not None)
        one, other = (np.array(Z) if unit is None else unit for unit in units)
        points = place["points"]
        return self._joint("link", first, second, points, one, name, other_axis=other, length=place["length"], hinged=hinged)

    def _joint(self, kind: str, first: Body, second: Body, at: Any, axis: Any, name: str | None, **more: Any) -> Joint:
        self._own_bodies(f"a {kind} joint", first, second)
        first, second = carrier(first), carrier(second)
        if first is second:
            raise ModelError(f"a {kind} joint needs two bodies; got {first.name!r} twice")
        if at is None:
            at = second.centre if second.coordinates is not None else first.centre
        points = (
            two_points(f"a {kind} joint", at) if len(shape_of(at)) == 2 else (triple(f"the point of a {kind} joint", at),) * 2
        )
        name = self._name(name, kind)
        unit = direction(f"the axis of {name!r}", axis)
        self._check_plane(name, kind, unit, first, second)
        gap = points[1] - points[0]
        if kind in ("cylindrical", "prismatic"):
            gap = gap - (gap @ unit) * unit
        if kind == "planar":
            gap = (gap @ unit) * unit
        if kind not in ("distance", "link") and np.linalg.norm(gap) > MEETING * self._size(*points):
            raise ModelError(
                f"the points of {name!r} do not meet in the assembled pose, they are {np.linalg.norm(gap):.3g} apart: give the "
                "bodies a pose in which they do; m.start(...) moves the mechanism elsewhere"
            )
        hinged = more.get("hinged", (kind not in ("spherical", "distance"),) * 2)
        for body, point, turns in zip((first, second), points, hinged, strict=True):
            if not body.turns and body.coordinates is not None and turns:
                raise ModelError(
                    f"{name!r} is a {kind} joint, but {body.name!r} is a point, which has no rotation: use m.spherical"
                )
            self._check_point(f"{name!r}", body, point)
        made = {"link": Link, "compound": Compound}.get(kind, Joint)
        return self._add(made(name, self, kind, first, second, points, unit, **more))

    @staticmethod
    def _check_plane(name: str, kind: str, unit: np.ndarray, first: Body, second: Body) -> None:
        """Refuse axes by which a joint between planar bodies would lock them."""
        moving = [body for body in (first, second) if body.coordinates is not None]
        if not moving or not all(isinstance(body.coordinates, Planar) for body in moving):
            return
        if kind in ("revolute", "cylindrical") and abs(unit[2]) < 1 - 1e-9:
            instead = "leave axis= out" if kind == "revolute" else "use m.revolute(...), or m.prismatic(...) for a slide"
            raise ModelError(f"{name!r} is a hinge in the plane, which turns about its normal: {instead}")
        if kind == "prismatic" and abs(unit[2]) > 1e-9:
            raise ModelError(f"{name!r} is a slide in the plane: its axis lies in it, such as (1, 0)")
        if kind == "planar" and abs(unit[2]) < 1 - 1e-9:
            raise ModelError(f"{name!r} would lock bodies of the plane, which move in no other: leave normal= out")
        if kind == "universal":
            raise ModelError(f"{name!r} would lock bodies of the plane, which turn about its normal only: use m.revolute(...)")

    def gear(self, first: Joint, second: Joint, *, ratio: Any, name: str | None = None) -> Gear:
        """Couple two joints: the first turns `ratio` times as far as the second, in the opposite direction if it is negative.

        In space `ratio` of two angles is a pair of whole numbers, teeth of the second and of the first wheel. With a
        prismatic joint for the first, this is a rack, and `ratio` the radius of the pinion.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> wheels = [m.body(mass=0.1, inertia=1e-4, at=(x, 0, 0)) for x in (0.0, 0.1)]
            >>> hinges = [m.revolute(m.ground, wheel, at=wheel.centre) for wheel in wheels]
            >>> m.gear(*hinges, ratio=(-20, 40)).ratios
            (2.0, -1.0)

        """
        self._own_joints("a gear", first, second)
        if first is second:
            raise ModelError(f"a gear couples two joints; {first.name!r} was given twice")
        pair = tuple(ratio) if shape_of(ratio) else (ratio, 1.0)
        if len(pair) != 2:
            raise ModelError(f"the ratio of a gear is a number or a pair of numbers of teeth; got {one_line(ratio)}")
        name = self._name(name, "gear")
        over, under = (number(f"the ratio of {name!r}", entry) for entry in pair)
        if over == 0 or under == 0:
            raise ModelError(f"the ratio of {name!r} must not be zero")
        if over.is_integer() and under.is_integer():
            common = float(np.gcd(int(over), int(under)))
            over, under = over / common, under / common
        spatial = not all(joint.kind == "prismatic" or joint.in_plane for joint in (first, second))
        scaled = (under, over)
        if spatial:
            if first.kind == "prismatic" or second.kind == "prismatic":
                scaled = (under / over, 1.0) if first.kind == "prismatic" else (1.0, over / under)
            for joint, multiple in zip((first, second), scaled, strict=True):
                if joint.kind != "prismatic" and not float(multiple).is_integer():
                    raise ModelError(
                        f"the ratio of {name!r} is {ratio!r}; in space, where angles are known up to whole turns, give the "
                        "numbers of teeth, such as ratio=(20, 35)"
                    )
        if scaled[0] < 0:
            scaled = (-scaled[0], -scaled[1])
        return self._add(Gear(name, self, (first, second), scaled))

    def prescribe(self, joint: Joint, motion: Callable[..., Any], *, name: str | None = None) -> Prescribed:
        """Give the angle or displacement of a joint as a function of t and parameters.

        Example:
            >>> import numpy as np, dalembert as da
            >>> m = da.Mechanism(coordinates="planar", params={"w": 3.0})
            >>> crank = m.rod("crank", (0, 0), (1, 0), mass=1.0)
            >>> hinge = m.revolute(m.ground, crank, at=(0, 0))
            >>> drive = m.prescribe(hinge, lambda t, w: np.sin(w * t))
            >>> bool(np.isclose(m.start().v[2], 3.0))
            True

        """
        self._own_joints("a prescribed motion", joint)
        if not callable(motion):
            raise ModelError("a prescribed motion is a function, such as lambda t: 0.1 * np.sin(t)")
        return self._add(Prescribed(self._name(name, "motion"), self, joint, motion))
