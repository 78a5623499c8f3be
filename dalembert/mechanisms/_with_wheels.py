"""How wheels, rolling balls, knife edges, contacts and stops are added to a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._building import Z
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._links import carrier
from dalembert.mechanisms._rigid import Body
from dalembert.mechanisms._surfaces import Surface
from dalembert.mechanisms._touching import Touching
from dalembert.mechanisms._values import Value, positive
from dalembert.mechanisms._vectors import direction, triple
from dalembert.mechanisms._wheels import KnifeEdge, Plane, Stop, Wheel
from dalembert.mechanisms._with_loads import WithLoads


class WithWheels(WithLoads):
    """A mechanism to which wheels, knife edges, contacts and stops can be added."""

    def wheel(
        self,
        body: Body,
        *,
        radius: Value,
        axis: Any,
        centre: Any = None,
        normal: Any = Z,
        origin: Any = (0.0, 0.0, 0.0),
        surface: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Wheel:
        """A thin wheel that rolls without slipping, upright or leaning; `centre` is by default that of mass.

        The plane goes through `origin` and has this normal, on the side of the wheel. A `surface` is a function instead: its
        height, lambda x, y: ..., or a function of x, y and z that is zero on it and positive on the side of the wheel; it may
        name parameters.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.wheel(a, radius=0.3, axis=(0, 1, 0), origin=(0, 0, -0.3))
            <Wheel 'wheel 1'>

        """
        return self._rolling("wheel", name, body, centre, axis, radius, self._floor(name, normal, origin, surface))

    def ball(
        self,
        body: Body,
        *,
        radius: Value,
        centre: Any = None,
        normal: Any = Z,
        origin: Any = (0.0, 0.0, 0.0),
        surface: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Wheel:
        """A ball that rolls without slipping on a plane, or on a `surface` as a wheel does.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> ball = m.body("ball", mass=0.2, shape=da.mechanisms.Sphere(0.03), at=(0, 0, 0.03))
            >>> m.ball(ball, radius=0.03).name
            'rolling ball 1'

        """
        return self._rolling("rolling ball", name, body, centre, None, radius, self._floor(name, normal, origin, surface))

    def _floor(self, name: str | None, normal: Any, origin: Any, surface: Callable[..., Any] | None) -> Plane | Surface:
        """What a wheel or a ball rolls on."""
        if surface is not None:
            return Surface("a surface" if name is None else f"the surface of {name!r}", surface, self.params)
        return Plane(triple("the origin of a plane", origin), direction("the normal of a plane", normal))

    def _rolling(
        self, kind: str, name: str | None, body: Body, centre: Any, axis: Any, radius: Value, floor: Plane | Surface
    ) -> Wheel:
        """A wheel about an axis, or a ball, which has none."""
        self._own_bodies(f"a {kind}", body)
        body = carrier(body)
        if not body.turns or body.coordinates is None:
            raise ModelError(f"a {kind} is a body that turns; {body.name!r} does not")
        name = self._name(name, kind)
        unit = None if axis is None else direction(f"the axis of {name!r}", axis)
        place = body.centre if centre is None else triple(f"the centre of {name!r}", centre)
        self._check_point(f"{name!r}", body, place)
        normal = floor.normal if isinstance(floor, Plane) else floor.normal_at(place, self.params)
        if unit is not None and abs(unit @ normal) > 1 - 1e-9:
            raise ModelError(f"the axis of {name!r} is normal to the plane: a wheel that lies flat does not roll")
        self._in_plane(name, body, normal, isinstance(floor, Surface))
        wheel = Wheel(name, self, body, place, unit, radius, floor)
        if isinstance(floor, Surface):
            size = positive(f"the radius of {name!r}", radius, self.params)
            wheel.reference = floor.settle(place, size, unit, self.params)
        return self._add(wheel)

    @staticmethod
    def _in_plane(name: str, body: Body, normal: np.ndarray, curved: bool = False) -> None:
        """Refuse a floor that is the plane in which a body moves, or leans on it."""
        if body.flat and abs(normal[2]) > 1e-9:
            advice = "one that lies in it, such as " + ("surface=lambda x, y, z: y" if curved else "normal=(0, 1)")
            raise ModelError(f"the normal of {name!r} points out of the plane in which {body.name!r} moves: give {advice}")

    def knife_edge(self, body: Body, *, along: Any, at: Any = None, normal: Any = Z, name: str | None = None) -> KnifeEdge:
        """A blade, a skate or a keel: a point of the body moves only in the direction `along`, fixed in the body.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.knife_edge(a, along=(1, 0, 0))
            <KnifeEdge 'knife edge 1'>

        """
        self._own_bodies("a knife edge", body)
        body = carrier(body)
        name = self._name(name, "knife edge")
        point = body.centre if at is None else triple(f"the point of {name!r}", at)
        self._check_point(f"{name!r}", body, point)
        unit, plane = (
            direction(f"the direction of {name!r}", along),
            Plane(np.zeros(3), direction(f"the normal of {name!r}", normal)),
        )
        if abs(unit @ plane.normal) > 1 - 1e-9:
            raise ModelError(f"the direction of {name!r} is normal to the plane in which it moves")
        return self._add(KnifeEdge(name, self, body, point, unit, plane))

    def contact(
        self,
        body: Body,
        other: Body | None = None,
        *,
        at: Any = None,
        radius: Value = 0.0,
        other_at: Any = None,
        other_radius: Value = 0.0,
        normal: Any = Z,
        origin: Any = (0.0, 0.0, 0.0),
        restitution: Value = 1.0,
        friction: Value = 0.0,
        patch: Value = 0.0,
        name: str | None = None,
    ) -> Touching:
        """A point of a body, or a ball about it, that touches a plane, or the ball about a point of another body.

        Runs take a collision integrator, da.CVA(), which also serves `friction`, Coulomb's coefficient, in the plane, and with
        da.CVA(da.GaussLobattoSPARK(stages=2)) wheels; da.NonsmoothRattle() and da.MoreauJean() serve friction in space, too.
        There a contact may have a `patch`, so that friction opposes slip and patch times spin together.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.contact(a, radius=0.02, origin=(0, 0, -0.5), restitution=0.6)
            <Touching 'contact 1'>
            >>> m.contact(a, b, radius=0.02, other_radius=0.03, friction=0.3)
            <Touching 'contact 2'>

        """
        self._own_bodies("a contact", body)
        body = carrier(body)
        name = self._name(name, "contact")
        point = body.centre if at is None else triple(f"the point of {name!r}", at)
        self._check_point(f"{name!r}", body, point)
        plane = Plane(triple(f"the origin of {name!r}", origin), direction(f"the normal of {name!r}", normal))
        if other is None:
            self._in_plane(name, body, plane.normal)
            return self._add(Touching(name, self, body, point, radius, plane, restitution, friction, patch=patch))
        self._own_bodies("a contact", other)
        other = carrier(other)
        if other is body:
            raise ModelError(f"{name!r} is between a body and itself: name two bodies")
        other_point = other.centre if other_at is None else triple(f"the other point of {name!r}", other_at)
        self._check_point(f"{name!r}", other, other_point)
        both = (other, other_point, other_radius)
        return self._add(Touching(name, self, body, point, radius, plane, restitution, friction, *both, patch))

    def stop(
        self,
        joint: Joint,
        *,
        lower: Value | None = None,
        upper: Value | None = None,
        restitution: Value = 1.0,
        name: str | None = None,
    ) -> Stop:
        """Limits of the angle or displacement of a joint; a run then takes a collision integrator such as da.CVA().

        In space, where angles are known up to whole turns, limits lie within half a turn of the assembled pose.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.stop(m.prismatic(m.ground, a, axis=(1, 0, 0)), lower=-0.1, upper=0.1, restitution=0.5)
            <Stop 'stop 1'>

        """
        self._own_joints("a stop", joint)
        if lower is None and upper is None:
            raise ModelError("a stop needs a lower or an upper limit")
        return self._add(Stop(self._name(name, "stop"), self, joint, lower, upper, restitution))
