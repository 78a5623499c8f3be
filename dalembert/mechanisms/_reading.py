"""Reading a run by the names of its parts: `run.of(crank).position`, `run.of(hinge).angle`; arrays with time first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dalembert.errors import InputError
from dalembert.mechanisms._compound import Motion
from dalembert.mechanisms._joints import Gear, Joint, Prescribed
from dalembert.mechanisms._links import Marker
from dalembert.mechanisms._loads import AppliedForce, JointSpring, Motor, Spring
from dalembert.mechanisms._reading_base import Reading
from dalembert.mechanisms._reading_loads import DriveReading, GearReading, LoadReading
from dalembert.mechanisms._reading_touching import ContactReading, KnifeEdgeReading, StopReading, WheelReading
from dalembert.mechanisms._rigid import Body, Frame, Part
from dalembert.mechanisms._touching import Touching
from dalembert.mechanisms._vectors import triple
from dalembert.mechanisms._wheels import KnifeEdge, Stop, Wheel
from dalembert.systems import State, System
from dalembert.systems._model import one_line


class MovingReading(Reading):
    """What has an origin and axes, along a run."""

    @property
    def _moving(self) -> Frame:
        raise NotImplementedError

    @property
    def position(self) -> np.ndarray:
        """Its centre of mass, or the origin of a massless frame, (time, 3)."""
        return self._rows(self._moving.centre)

    @property
    def velocity(self) -> np.ndarray:
        """The velocity of that point, (time, 3)."""
        return self._rows(self._moving.velocity)

    @property
    def angular_velocity(self) -> np.ndarray:
        """In space, (time, 3)."""
        return self._rows(self._moving.omega)


class BodyReading(MovingReading):
    """A body along a run."""

    part: Body

    @property
    def _moving(self) -> Frame:
        return self._at.of(self.part)

    @property
    def rotation(self) -> np.ndarray:
        """The matrix from the body's own axes, as its `rotation` was given, to space, (time, 3, 3)."""
        frame, own = self._moving, self.part.axes.T @ self.part.rotation
        return np.stack([self._rows(frame.direction(tuple(column))) for column in own.T], axis=-1)

    def point(self, at: Any) -> np.ndarray:
        """The path of a point of the body, given by where it is in the assembled pose, (time, 3)."""
        return self._rows(self._at.of(self.part).point(self.part.arm(triple("a point of a body", at))))

    def point_velocity(self, at: Any) -> np.ndarray:
        """The velocity of such a point, (time, 3)."""
        return self._rows(self._at.of(self.part).speed(self.part.arm(triple("a point of a body", at))))


class FrameReading(MovingReading):
    """A massless frame along a run."""

    part: Marker

    @property
    def _moving(self) -> Frame:
        return self.part.at(self._at)

    @property
    def rotation(self) -> np.ndarray:
        """The matrix from its axes to those of space, (time, 3, 3)."""
        return np.stack([self._rows(column) for column in self._moving.columns], axis=-1)


class JointReading(Reading):
    """A joint along a run."""

    part: Joint

    @property
    def angle(self) -> np.ndarray:
        """The rotation of the second body on the first, (time,); in space without jumps if every half turn is stored."""
        angle = self._column(self.part.angle_at(self._at))
        return angle if self.part.in_plane else np.unwrap(angle)  # coordinates of the plane count turns

    @property
    def rate(self) -> np.ndarray:
        """The rate of the angle, (time,)."""
        return self._column(self.part.rate_at(self._at))

    @property
    def displacement(self) -> np.ndarray:
        """The displacement of the second body along the axis, (time,)."""
        return self._column(self.part.displacement_at(self._at))

    @property
    def speed(self) -> np.ndarray:
        """The rate of the displacement, (time,)."""
        return self._column(self.part.sliding_speed_at(self._at))

    @cached_property
    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.part, Motion):  # what holds is the joint of which it is a part
            return JointReading(self.part.whole, self.run)._load
        return self._on_second(self.part)

    @property
    def force(self) -> np.ndarray:
        """What the joint exerts on the second body at its point, (time, 3); where `run.lam_unique`, the only one possible."""
        return self._load[0]

    @property
    def torque(self) -> np.ndarray:
        """The torque of the joint on the second body about its point, (time, 3).

        That of a motor, or of what prescribes the joint's motion, is the `effort` of that part.
        """
        return self._load[1]


@dataclass(frozen=True)
class Snapshot:
    """One state, read like a run of which it is the only one."""

    state: State
    parameters: dict[str, np.ndarray]
    system: System

    def of(self, part: Part | str) -> Any:
        """What a part, or the part of a name, does in this state; arrays have a first axis of length one."""
        return read(part, self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "state" not in vars(self):  # pickle asks before there is a state
            raise AttributeError(name)
        value = getattr(self.state, name)
        return np.array([value]) if name in ("t", "q", "p", "v", "lam", "psi") else value


def read(part: Any, run: Any) -> Any:
    """What a part, or the part of a name, does along a run."""
    if isinstance(part, str):
        named = getattr(getattr(run, "system", None), "part_named", None)
        if named is None:
            raise InputError(
                f"this run knows no part {part!r}: it is not one of a da.Mechanism, or was loaded without it; "
                "a run that da.load(path, m) reads knows the parts of m"
            )
        part = named(part)
    match part:
        case Body():
            return BodyReading(part, run)
        case Marker():
            return FrameReading(part, run)
        case Joint():
            return JointReading(part, run)
        case Wheel():
            return WheelReading(part, run)
        case KnifeEdge():
            return KnifeEdgeReading(part, run)
        case Stop():
            return StopReading(part, run)
        case Touching():
            return ContactReading(part, run)
        case Gear():
            return GearReading(part, run)
        case Prescribed():
            return DriveReading(part, run)
        case Spring() | Motor() | JointSpring() | AppliedForce():
            return LoadReading(part, run)
    raise InputError(
        "run.of takes a body, a joint, a gear, a motor, a spring, a wheel, a stop, a contact or another part of the mechanism; "
        f"got {one_line(part)}"
    )
