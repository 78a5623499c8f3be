"""Joints: which rows hold between two bodies.

A joint has a frame (n1, n2, a) on each body, both equal in the assembled pose, a along its axis. P and Q are its points on
the first and the second body, d = Q - P, and b is a on the second body.

| joint | rows |
|---|---|
| spherical | d = 0 |
| revolute | d = 0, n1.b = n2.b = 0 |
| universal | d = 0, a.b' = as assembled, where b' is the second axis, on the second body |
| cylindrical | n1.d = n2.d = 0, n1.b = n2.b = 0 |
| prismatic | those of the cylindrical joint, and no rotation about a |
| planar | a.d = 0, n1.b = n2.b = 0 |
| fixed | those of the revolute joint, and no rotation about a |
| distance | the length of d |

Rows that are zero whatever the state, as those across the plane between planar bodies, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._coordinates import Planar
from dalembert.mechanisms._rigid import Body, Loads, Part, Placement
from dalembert.mechanisms._values import Value, one_number, positive
from dalembert.mechanisms._vectors import Vector, cross, dot, normals, scale, subtract


@dataclass(eq=False, repr=False)
class Joint(Part):
    """A joint between two bodies, stated in the assembled pose."""

    kind: str
    first: Body
    second: Body
    points: tuple[np.ndarray, np.ndarray]
    """P on the first and Q on the second body."""
    axis: np.ndarray
    other_axis: np.ndarray | None = None
    """The second axis of a universal joint."""
    length: Value = 0.0
    """Of a distance joint."""
    angle: float = 0.0
    """Its angle in the assembled pose."""
    displacement: float = 0.0
    """Its displacement in the assembled pose."""
    _locals: dict[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n1, n2 = normals(self.axis)
        other = self.axis if self.other_axis is None else self.other_axis
        self._locals = {
            "P": self.first.arm(self.points[0]),
            "Q": self.second.arm(self.points[1]),
            "first": [self.first.local(vector) for vector in (n1, n2, self.axis)],
            "second": [self.second.local(vector) for vector in (n1, n2, other)],
            "slant": float(self.axis @ other),
        }

    def __str__(self) -> str:
        return self.name

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse a length that is none."""
        if self.kind == "distance":
            positive(f"the length of {self.name!r}", self.length, {**params, "t": 0.0})

    @property
    def turns(self) -> bool:
        """Whether it has an angle."""
        return self.kind in ("revolute", "cylindrical")

    @property
    def slides(self) -> bool:
        """Whether it has a displacement."""
        return self.kind in ("prismatic", "cylindrical")

    @property
    def in_plane(self) -> bool:
        """Whether its angle is the difference of two coordinates."""
        bodies = (self.first, self.second)
        return all(b.coordinates is None or isinstance(b.coordinates, Planar) for b in bodies) and abs(self.axis[2]) > 1 - 1e-12

    # -- geometry ------------------------------------------------------------------------------------------------------

    def ends(self, at: Placement) -> tuple[Vector, Vector]:
        """P and Q in space."""
        return at.of(self.first).point(self._locals["P"]), at.of(self.second).point(self._locals["Q"])

    def frames(self, at: Placement) -> tuple[list[Vector], list[Vector]]:
        """(n1, n2, a) on the first body and on the second."""
        first, second = at.of(self.first), at.of(self.second)
        return [first.direction(u) for u in self._locals["first"]], [second.direction(u) for u in self._locals["second"]]

    def axis_at(self, at: Placement) -> Vector:
        """The axis on the first body in space."""
        return at.of(self.first).direction(self._locals["first"][2])

    def turned(self, at: Placement) -> tuple[Any, Any]:
        """Cosine and sine of the rotation since the assembled pose."""
        (n1, n2, _), (m1, _, _) = self.frames(at)
        return dot(n1, m1), dot(n2, m1)

    def measure_at(self, at: Placement) -> Vector:
        """The direction whose products with relative velocities are the rates, along which efforts act: the axis."""
        return self.axis_at(at)

    def angle_at(self, at: Placement) -> Any:
        """The angle: in the plane without end, in space between -pi and pi around the assembled pose."""
        if not self.turns:
            raise ModelError(f"{self.name!r} is a {self.kind} joint, which has no angle")
        if self.in_plane:
            return self.angle + np.sign(self.axis[2]) * (self._theta(at, self.second) - self._theta(at, self.first))
        cosine, sine = self.turned(at)
        return self.angle + np.arctan2(sine, cosine)

    @staticmethod
    def _theta(at: Placement, body: Body) -> Any:
        """The angle of a planar body since the assembled pose."""
        return 0.0 if body.coordinates is None else at.q[body.first + 2] - float(body.start[2])

    def rate_at(self, at: Placement) -> Any:
        """The rate of the angle, a . (omega_2 - omega_1)."""
        return dot(self.measure_at(at), subtract(at.of(self.second).omega, at.of(self.first).omega))

    def displacement_at(self, at: Placement) -> Any:
        """The displacement along the axis."""
        if not self.slides:
            raise ModelError(f"{self.name!r} is a {self.kind} joint, which has no displacement")
        P, Q = self.ends(at)
        return self.displacement + dot(self.measure_at(at), subtract(Q, P))

    def sliding_speed_at(self, at: Placement) -> Any:
        """The rate of the displacement."""
        P, Q = self.ends(at)
        a, first, second = self.measure_at(at), at.of(self.first), at.of(self.second)
        relative = subtract(second.speed(self._locals["Q"]), first.speed(self._locals["P"]))
        return dot(a, relative) + dot(cross(first.omega, a), subtract(Q, P))

    # -- the one coordinate of a joint that springs, motors and stops act on ---------------------------------------------

    @property
    def coordinate(self) -> str:
        """What springs, motors and stops act on: "angle" or "displacement"."""
        if self.kind == "prismatic":
            return "displacement"
        if self.turns:
            return "angle"
        raise ModelError(
            f"{self.name!r} is a {self.kind} joint; springs, motors, stops and gears act on revolute and prismatic ones"
        )

    def coordinate_at(self, at: Placement) -> Any:
        """Its value."""
        return self.angle_at(at) if self.coordinate == "angle" else self.displacement_at(at)

    def coordinate_rate_at(self, at: Placement) -> Any:
        """Its rate."""
        return self.rate_at(at) if self.coordinate == "angle" else self.sliding_speed_at(at)

    def push(self, at: Placement, effort: Any, loads: Loads) -> None:
        """A torque about the axis, or a force along it, on the second body, and its reaction on the first."""
        along = scale(effort, self.measure_at(at))
        opposite = scale(-1.0, along)
        if self.coordinate == "angle":
            loads.add(self.second, torque=along)
            loads.add(self.first, torque=opposite)
        else:
            _, Q = self.ends(at)
            loads.add(self.second, along, at=Q)
            loads.add(self.first, opposite, at=Q)

    # -- rows ----------------------------------------------------------------------------------------------------------

    def rows(self, at: Placement) -> list[Any]:
        """What is zero."""
        return [row for rows in ROWS[self.kind] for row in rows(self, at)]

    def _meet(self, at: Placement) -> list[Any]:
        P, Q = self.ends(at)
        return list(subtract(Q, P))

    def _parallel(self, at: Placement) -> list[Any]:
        (n1, n2, _), (_, _, b) = self.frames(at)
        return [dot(n1, b), dot(n2, b)]

    def _locked(self, at: Placement) -> list[Any]:
        if self.in_plane:
            return [self._theta(at, self.second) - self._theta(at, self.first)]
        return [self.turned(at)[1]]

    def _crossed(self, at: Placement) -> list[Any]:
        (_, _, a), (_, _, b) = self.frames(at)
        return [dot(a, b) - self._locals["slant"]]

    def _on_axis(self, at: Placement) -> list[Any]:
        (n1, n2, _), _ = self.frames(at)
        P, Q = self.ends(at)
        d = subtract(Q, P)
        return [dot(n1, d), dot(n2, d)]

    def _on_plane(self, at: Placement) -> list[Any]:
        P, Q = self.ends(at)
        return [dot(self.axis_at(at), subtract(Q, P))]

    def _apart(self, at: Placement) -> list[Any]:
        P, Q = self.ends(at)
        d = subtract(Q, P)
        return [np.sqrt(dot(d, d)) - at.value(f"the length of {self.name!r}", self.length)]


Rows = Callable[[Joint, Placement], list[Any]]
ROWS: dict[str, tuple[Rows, ...]] = {
    "spherical": (Joint._meet,),
    "revolute": (Joint._meet, Joint._parallel),
    "universal": (Joint._meet, Joint._crossed),
    "cylindrical": (Joint._on_axis, Joint._parallel),
    "prismatic": (Joint._on_axis, Joint._parallel, Joint._locked),
    "planar": (Joint._on_plane, Joint._parallel),
    "fixed": (Joint._meet, Joint._parallel, Joint._locked),
    "distance": (Joint._apart,),
}


@dataclass(eq=False, repr=False)
class Gear(Part):
    """A relation x1 * ratio1 - x2 * ratio2 = 0 between the coordinates of two joints since the assembled pose.

    In space, where angles are known up to whole turns, the row is the sine of this; ratios of angles then are whole numbers.
    """

    joints: tuple[Joint, Joint]
    ratios: tuple[float, float]

    def rows(self, at: Placement) -> list[Any]:
        """What is zero."""
        if all(joint.kind == "prismatic" or joint.in_plane for joint in self.joints):
            first, second = (
                ratio * (joint.coordinate_at(at) - getattr(joint, joint.coordinate))
                for joint, ratio in zip(self.joints, self.ratios, strict=True)
            )
            return [first - second]
        (c1, s1), (c2, s2) = (self._phasor(at, *pair) for pair in zip(self.joints, self.ratios, strict=True))
        return [s1 * c2 - c1 * s2]

    @staticmethod
    def _phasor(at: Placement, joint: Joint, ratio: float) -> tuple[Any, Any]:
        """Cosine and sine of the multiple of a joint's coordinate."""
        if joint.kind == "prismatic":
            x = ratio * (joint.displacement_at(at) - joint.displacement)
            return np.cos(x), np.sin(x)
        c, s = joint.turned(at)
        real, imaginary = c, s
        for digit in f"{abs(int(ratio)):b}"[1:]:  # by squaring: a wheel may have many teeth
            real, imaginary = real * real - imaginary * imaginary, 2 * real * imaginary
            if digit == "1":
                real, imaginary = real * c - imaginary * s, real * s + imaginary * c
        return real, imaginary if ratio > 0 else -imaginary


@dataclass(eq=False, repr=False)
class Prescribed(Part):
    """A joint whose angle or displacement is a given function of time and parameters."""

    joint: Joint
    motion: Callable[..., Any]

    def rows(self, at: Placement) -> list[Any]:
        """What is zero; for an angle in space its sine."""
        what = f"the motion of {self.joint.name!r}"
        wanted = one_number(what, at.value(what, self.motion))
        if self.joint.kind == "prismatic" or self.joint.in_plane:
            return [self.joint.coordinate_at(at) - wanted]
        c, s = self.joint.turned(at)
        x = wanted - self.joint.angle
        return [s * np.cos(x) - c * np.sin(x)]
