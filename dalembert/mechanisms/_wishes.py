"""What a start is to have: values of angles, places, orientations and their rates, and the way to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import InputError
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._links import Marker
from dalembert.mechanisms._rigid import Body, Frame, Placement
from dalembert.mechanisms._vectors import constant, rotation_matrix, triple
from dalembert.symbolic import as_column, from_column
from dalembert.systems._initial_values import finite_number
from dalembert.systems._model import one_line

if TYPE_CHECKING:
    from dalembert.mechanisms._assembly import Mechanism


@dataclass(frozen=True, eq=False)
class Wish:
    """A value that a quantity is to have at the start."""

    part: Joint | Body | Marker
    kind: str
    function: ca.Function
    """Of t, q and v; linear in v where it is a rate."""
    slopes: tuple[ca.Function, ca.Function]
    """Its derivatives with respect to q and v."""
    target: np.ndarray

    def __str__(self) -> str:
        return f"the {self.kind} of {self.part.name!r}"

    @property
    def turns(self) -> bool:
        """Whether it is an angle or an orientation, not a place."""
        return self.kind in ("angle", "rotation")

    @property
    def _up_to_turns(self) -> bool:
        """Whether it is an angle that is known up to whole turns."""
        return self.kind == "angle" and isinstance(self.part, Joint) and not self.part.in_plane

    def way(self, begin: np.ndarray, shorter: bool = False) -> Callable[[float], np.ndarray]:
        """From 0 to 1, the values on the way from one to the target: less than a turn, or if `shorter` at most half a turn."""
        if self.kind == "rotation":
            from scipy.spatial.transform import Rotation  # which loads a lot: 50 ms of every start of Python

            first, last = (Rotation.from_matrix(x.reshape(3, 3)) for x in (begin, self.target))
            turning = (last * first.inv()).as_rotvec()
            return lambda share: np.ravel((Rotation.from_rotvec(share * turning) * first).as_matrix())
        change = self.target - begin
        if self._up_to_turns:
            change = _within_half_a_turn(change) if shorter else np.fmod(change, 2 * np.pi)
        return lambda share: begin + share * change

    def has_shorter_way(self, begin: np.ndarray) -> bool:
        """Whether the target is more than half a turn away, so that it is nearer the other way round."""
        return self._up_to_turns and self.distance(begin) > np.pi

    def distance(self, begin: np.ndarray) -> float:
        """How far the target is: the angle of a rotation, or the largest change."""
        if self.kind == "rotation":
            from scipy.spatial.transform import Rotation

            first, last = (Rotation.from_matrix(x.reshape(3, 3)) for x in (begin, self.target))
            return float((last * first.inv()).magnitude())
        return float(np.max(np.abs(self.way(begin)(1.0) - begin)))

    def miss(self, value: np.ndarray, aim: np.ndarray) -> np.ndarray:
        """How far a value is off; angles in space modulo whole turns."""
        return _within_half_a_turn(value - aim) if self._up_to_turns else value - aim


def _within_half_a_turn(angle: np.ndarray) -> np.ndarray:
    return np.pi - (np.pi - angle) % (2 * np.pi)


@dataclass(frozen=True)
class Given:
    """What a user gave for a start, by part."""

    angles: Mapping[Any, Any]
    displacements: Mapping[Any, Any]
    positions: Mapping[Any, Any]
    rotations: Mapping[Any, Any]
    rates: Mapping[Any, Any]
    speeds: Mapping[Any, Any]
    velocities: Mapping[Any, Any]
    angular_velocities: Mapping[Any, Any]


class Wishing:
    """Makes wishes of what a user gave, for one mechanism with values of its parameters."""

    def __init__(self, m: Mechanism, theta: np.ndarray) -> None:
        self.m = m
        self.symbols = [ca.SX.sym("t"), ca.SX.sym("q", m.dim), ca.SX.sym("v", m.dim)]
        t, q, v = (from_column(symbol) for symbol in self.symbols)
        self.at = Placement(q, v, t[0], {**m.system().parameters.unflatten(theta), "t": t[0]})

    def places(self, given: Given) -> list[Wish]:
        """Wishes for the pose."""
        return [
            *self._of_joints(given.angles, "angle", Joint.angle_at),
            *self._of_joints(given.displacements, "displacement", Joint.displacement_at),
            *self._of_bodies(given.positions, "position", lambda frame: frame.centre),
            *self._of_rotations(given.rotations),
        ]

    def moves(self, given: Given) -> list[Wish]:
        """Wishes for the velocities."""
        return [
            *self._of_joints(given.rates, "rate", Joint.rate_at),
            *self._of_joints(given.speeds, "speed", Joint.sliding_speed_at),
            *self._of_bodies(given.velocities, "velocity", lambda frame: frame.velocity),
            *self._of_bodies(given.angular_velocities, "angular velocity", lambda frame: frame.omega),
        ]

    def function(self, entries: list[Any]) -> ca.Function:
        """Some quantities as a function of t, q and v."""
        return ca.Function("quantities", self.symbols, [ca.densify(as_column(entries))])

    def slope(self, entries: list[Any], by: int) -> ca.Function:
        """Their derivatives with respect to q (1) or v (2)."""
        return ca.Function("slope", self.symbols, [ca.densify(ca.jacobian(as_column(entries), self.symbols[by]))])

    def _parts(self, given: Any, kind: str, of: tuple[type, ...], example: str) -> list[tuple[Any, Any]]:
        """The parts that were given, checked, and their values."""
        if not isinstance(given, Mapping):
            raise InputError(f"the start takes {{part: {kind}}}, such as {example}; got {one_line(given)}")
        found: list[tuple[Any, Any]] = [
            (self.m.part(key) if isinstance(key, str) else key, value) for key, value in given.items()
        ]
        for part, _ in found:
            if not isinstance(part, of) or getattr(part, "mechanism", None) is not self.m:
                called = "joint" if of == (Joint,) else "body or a frame"
                raise InputError(f"a start gives the {kind} of a {called} of this mechanism; got {one_line(part)}")
            if part is self.m.ground:
                raise InputError(f"the ground does not move: a start gives the {kind} of other bodies")
        return found

    def _wish(self, part: Any, kind: str, entries: list[Any], target: np.ndarray) -> Wish:
        return Wish(part, kind, self.function(entries), (self.slope(entries, 1), self.slope(entries, 2)), target)

    def _of_joints(self, given: Any, kind: str, quantity: Callable[[Joint, Placement], Any]) -> list[Wish]:
        return [
            self._wish(
                joint, kind, [quantity(joint, self.at)], np.array([finite_number(f"the {kind} of {joint.name!r}", value)])
            )
            for joint, value in self._parts(given, kind, (Joint,), "{hinge: 1.2}")
        ]

    def _of_bodies(self, given: Any, kind: str, quantity: Callable[[Frame], Any]) -> list[Wish]:
        found = []
        for part, value in self._parts(given, kind, (Body, Marker), "{body: (0, 0, 1)}"):
            entries, target = list(quantity(self._frame(part))), triple(f"the {kind} of {part.name!r}", value)
            height = constant(entries[2])
            if np.shape(value) == (2,) and height is not None:  # two numbers leave a planar body in its plane
                target[2] = height
            found.append(self._wish(part, kind, entries, target))
        return found

    def _of_rotations(self, given: Any) -> list[Wish]:
        found = []
        for part, value in self._parts(given, "rotation", (Body, Marker), "{body: matrix}"):
            own = np.eye(3) if isinstance(part, Marker) else part.axes.T @ part.rotation
            columns = [self._frame(part).direction(tuple(column)) for column in own.T]
            entries = [columns[k][i] for i in range(3) for k in range(3)]
            target = rotation_matrix(f"the rotation of {part.name!r}", value)
            found.append(self._wish(part, "rotation", entries, np.ravel(target)))
        return found

    def _frame(self, part: Body | Marker) -> Frame:
        return part.at(self.at) if isinstance(part, Marker) else self.at.of(part)
