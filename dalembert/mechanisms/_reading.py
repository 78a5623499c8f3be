"""Reading a run by the names of its parts: `run.of(crank).position`, `run.of(hinge).angle`; arrays with time first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import InputError
from dalembert.mechanisms._compound import Motion
from dalembert.mechanisms._joints import Joint, Prescribed
from dalembert.mechanisms._links import Marker
from dalembert.mechanisms._loads import JointSpring, Motor, Spring
from dalembert.mechanisms._rigid import Body, Frame, Part, Placement
from dalembert.mechanisms._vectors import Vector, subtract, triple
from dalembert.mechanisms._wheels import Wheel
from dalembert.symbolic import as_column, from_column
from dalembert.systems import State, System
from dalembert.systems._model import one_line

if TYPE_CHECKING:
    from dalembert.mechanisms._assembly import Mechanism


class NoSuchReading(InputError, AttributeError):
    """What was asked of a part is nothing that it has."""


class Reading:
    """What a part does along a run."""

    def __init__(self, part: Part, run: Any) -> None:
        m: Mechanism = part.mechanism
        if run.fingerprint != m.system().fingerprint:
            raise InputError(f"this run is not one of the mechanism to which {part.name!r} belongs, as it is now")
        self.part, self.run, self.mechanism = part, run, m
        self.t: np.ndarray = run.t

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "part" not in vars(self):  # pickle asks before there is a part
            raise AttributeError(name)
        known = ", ".join(quantity for quantity in dir(type(self)) if not quantity.startswith("_"))
        raise NoSuchReading(f"the {type(self.part).__name__.lower()} {self.part.name!r} has no {name}: it has {known}")

    @cached_property
    def _at(self) -> Placement:
        run = self.run
        return Placement(np.asarray(run.q).T, np.asarray(run.v).T, run.t, {**run.parameters, "t": run.t})

    def _rows(self, vector: Vector) -> np.ndarray:
        """A vector over time, (time, 3)."""
        shape = np.shape(self.t)
        return np.stack([np.broadcast_to(np.asarray(entry, dtype=float), shape) for entry in vector], axis=-1)

    def _column(self, value: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(value, dtype=float), np.shape(self.t)).copy()

    def _reaction(self, body: Body, point: Vector) -> tuple[np.ndarray, np.ndarray]:
        """The force of the part's rows on a body, and its torque about a point, (time, 3) each."""
        system, assembled = self.mechanism.system(), self.mechanism.assembled
        count, theta = len(self.t), system.parameters.vector(self.run.parameters)
        q, Q = np.asarray(self.run.q), np.zeros((len(self.t), system.dim))
        shared = (np.atleast_2d(self.t), q.T)
        rows = list(assembled.rows_of(self.part))
        if rows:
            lam = np.zeros((count, system.n_holonomic))
            lam[:, rows] = self.run.lam[:, rows]
            Q += _mapped(system.function("reaction"), count, *shared, lam.T, theta)[:, :, 0]
        rows = list(assembled.rows_of(self.part, "nonholonomic"))
        if rows:
            k_v = _mapped(system.function("k_v"), count, *shared, np.asarray(self.run.p).T, theta)
            Q -= np.einsum("tji,tj->ti", k_v[:, rows], self.run.psi[:, rows])
        assert body.coordinates is not None
        own, Q_own = q[:, body.slice].T, Q[:, body.slice].T
        flat = body.coordinates.labels[:3] != ("x", "y", "z")
        force = self._rows((Q_own[0], Q_own[1], 0.0 if flat else Q_own[2]))
        torque = self._rows(body.coordinates.torque(own, Q_own))
        arm = self._rows(subtract(self._at.of(body).centre, point))
        return force, torque + np.cross(arm, force)

    def _on_second(self, joint: Joint) -> tuple[np.ndarray, np.ndarray]:
        """The force of the part's rows on the second body of a joint, and its torque about the joint's point there."""
        _, Q = joint.ends(self._at)
        if joint.second.coordinates is not None:
            return self._reaction(joint.second, Q)
        force, torque = self._reaction(joint.first, Q)
        return -force, -torque


def _mapped(function: ca.Function, count: int, *arguments: Any) -> np.ndarray:
    """A function at many states, (time, rows, columns); its last argument, the parameters, is the same for all."""
    *moving, theta = arguments
    values = function.map(count)(*moving, np.repeat(np.reshape(theta, (-1, 1)), count, axis=1))
    rows, columns = function.size_out(0)
    return np.asarray(values, dtype=float).reshape(rows, count, columns).transpose(1, 0, 2)


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


class WheelReading(Reading):
    """A wheel or a rolling ball along a run."""

    part: Wheel

    @property
    def contact_point(self) -> np.ndarray:
        """Where it touches the plane or the surface, (time, 3)."""
        self.part.refuse_if_not_found(self._at)
        return self._rows(self.part.contact_point(self._at))

    @property
    def force(self) -> np.ndarray:
        """What the plane or the surface exerts on it, (time, 3)."""
        return self._reaction(self.part.body, self.part.contact_point(self._at))[0]


class DriveReading(Reading):
    """What prescribes the motion of a joint, along a run."""

    part: Prescribed

    @property
    def effort(self) -> np.ndarray:
        """The torque or force that the motion needs, with the sign of a motor's, (time,)."""
        joint = self.part.joint
        force, torque = self._on_second(joint)
        along = torque if joint.coordinate == "angle" else force
        return np.einsum("ti,ti->t", along, self._rows(joint.axis_at(self._at)))


class LoadReading(Reading):
    """A spring, a damper or a motor along a run."""

    @property
    def length(self) -> np.ndarray:
        """The length of a spring, (time,)."""
        if not isinstance(self.part, Spring):
            raise InputError(f"{self.part.name!r} has no length")
        P, Q = self.part.ends(self._at)
        return np.linalg.norm(self._rows(subtract(Q, P)), axis=1)

    @property
    def force(self) -> np.ndarray:
        """The force of a spring, a damper, or both, positive where it pulls its ends together, (time,)."""
        if not isinstance(self.part, Spring):
            raise InputError(f"{self.part.name!r} has no force between two points: read its effort")
        return self._column(self.part.tension(self._at))

    @property
    def effort(self) -> np.ndarray:
        """The torque or force of a motor, or of the spring of a joint, on its second body, (time,)."""
        if isinstance(self.part, JointSpring):
            return self._column(self.part.effort_at(self._at))
        if not isinstance(self.part, Motor):
            raise InputError(f"{self.part.name!r} is no motor: read its force")
        motor, m, count = self.part, self.mechanism, len(self.t)
        # The user's function is for one state: it is called with symbols, as for the model, not with arrays over time.
        symbols = [ca.SX.sym("t"), ca.SX.sym("q", m.dim), ca.SX.sym("v", m.dim)]
        t, q, v = (from_column(symbol) for symbol in symbols)
        at = Placement(q, v, t[0], {**self.run.parameters, "t": t[0]})
        function = ca.Function("effort", [*symbols, ca.SX.sym("theta", 0)], [ca.densify(as_column([motor.effort_at(at)]))])
        states = (np.atleast_2d(self.t), np.asarray(self.run.q).T, np.asarray(self.run.v).T)
        return _mapped(function, count, *states, np.zeros(0))[:, 0, 0]


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
        case Prescribed():
            return DriveReading(part, run)
        case Spring() | Motor() | JointSpring():
            return LoadReading(part, run)
    raise InputError(
        "run.of takes a body, a frame, a joint, a wheel, a spring, a motor or a prescribed motion of the mechanism; got "
        f"{one_line(part)}"
    )
