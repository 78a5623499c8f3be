"""What drives and brakes a mechanism: springs, dampers, motors, forces and torques of the user."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import ModelError, suggestion
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._rigid import Body, Loads, Part, Placement
from dalembert.mechanisms._values import Value, called, number, one_number, positive, valued
from dalembert.mechanisms._vectors import Vector, dot, scale, subtract
from dalembert.symbolic import SymbolicArray
from dalembert.systems._model import one_line


class Load(Part):
    """Something with a potential energy, or that exerts forces."""

    def potential(self, at: Placement) -> Any:
        """Its potential energy."""
        return 0.0

    def exert(self, at: Placement, loads: Loads) -> None:
        """Add its forces that have no potential."""


@dataclass(eq=False, repr=False)
class Spring(Load):
    """A spring and a damper between two points: stiffness (l - length)^2 / 2, and damping l' along the line."""

    bodies: tuple[Body, Body]
    points: tuple[np.ndarray, np.ndarray]
    stiffness: Value
    length: Value
    damping: Value

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse negative constants."""
        for what in ("stiffness", "length", "damping"):
            positive(f"the {what} of {self.name!r}", getattr(self, what), params, zero=True)

    def ends(self, at: Placement) -> tuple[Vector, Vector]:
        """Both points in space."""
        first, second = (at.of(b).point(b.arm(p)) for b, p in zip(self.bodies, self.points, strict=True))
        return first, second

    def potential(self, at: Placement) -> Any:
        """Its potential energy."""
        P, Q = self.ends(at)
        d = subtract(Q, P)
        k = at.value(f"the stiffness of {self.name!r}", self.stiffness)
        length = at.value(f"the length of {self.name!r}", self.length)
        if isinstance(length, float) and length == 0:
            return k * dot(d, d) / 2
        return k * (np.sqrt(dot(d, d)) - length) ** 2 / 2

    def tension(self, at: Placement) -> Any:
        """The force of spring and damper, positive where it pulls."""
        P, Q = self.ends(at)
        d = subtract(Q, P)
        k, rest, c = (at.value(f"the {n} of {self.name!r}", getattr(self, n)) for n in ("stiffness", "length", "damping"))
        P_dot, Q_dot = (at.of(b).speed(b.arm(p)) for b, p in zip(self.bodies, self.points, strict=True))
        length = np.sqrt(dot(d, d))
        moving = not (isinstance(c, float) and c == 0)  # without a damper the ends may meet
        return k * (length - rest) + (c * dot(d, subtract(Q_dot, P_dot)) / length if moving else 0.0)

    def exert(self, at: Placement, loads: Loads) -> None:
        """The force of the damper."""
        c = at.value(f"the damping of {self.name!r}", self.damping)
        if isinstance(c, float) and c == 0:
            return
        P, Q = self.ends(at)
        d = subtract(Q, P)
        P_dot, Q_dot = (at.of(b).speed(b.arm(p)) for b, p in zip(self.bodies, self.points, strict=True))
        force = scale(c * dot(d, subtract(Q_dot, P_dot)) / dot(d, d), d)
        loads.add(self.bodies[0], force, at=P)
        loads.add(self.bodies[1], scale(-1.0, force), at=Q)


@dataclass(eq=False, repr=False)
class JointSpring(Load):
    """A spring and a damper on the angle or displacement x of a joint: stiffness (x - rest)^2 / 2, and damping x'."""

    joint: Joint
    stiffness: Value
    rest: Value
    damping: Value

    def check(self, params: Mapping[str, Any]) -> None:
        """Refuse negative constants."""
        for what in ("stiffness", "damping"):
            positive(f"the {what} of {self.name!r}", getattr(self, what), params, zero=True)
        number(f"the rest of {self.name!r}", valued(f"the rest of {self.name!r}", self.rest, params))

    def potential(self, at: Placement) -> Any:
        """Its potential energy."""
        k, rest = (at.value(f"{n} of {self.name!r}", v) for n, v in (("stiffness", self.stiffness), ("rest", self.rest)))
        if isinstance(k, float) and k == 0:
            return 0.0
        return k * (self.joint.coordinate_at(at) - rest) ** 2 / 2

    def effort_at(self, at: Placement) -> Any:
        """The torque or force of spring and damper on the second body."""
        k, rest, c = (at.value(f"the {n} of {self.name!r}", getattr(self, n)) for n in ("stiffness", "rest", "damping"))
        return -k * (self.joint.coordinate_at(at) - rest) - c * self.joint.coordinate_rate_at(at)

    def exert(self, at: Placement, loads: Loads) -> None:
        """The force of the damper."""
        c = at.value(f"the damping of {self.name!r}", self.damping)
        if not (isinstance(c, float) and c == 0):
            self.joint.push(at, -c * self.joint.coordinate_rate_at(at), loads)


QUANTITIES = ("position", "velocity", "rotation", "angular_velocity", "angle", "rate", "displacement", "speed")


def quantity(at: Placement, part: Part, name: str) -> Any:
    """A quantity of a body or a joint by its name; vectors as arrays, rotations as matrices."""
    if isinstance(part, Body):
        frame = at.of(part)
        vectors = {"position": frame.centre, "velocity": frame.velocity, "angular_velocity": frame.omega}
        if name in vectors:
            return _array(at, vectors[name])
        if name == "rotation":
            own = part.axes.T @ part.rotation  # from the axes that the user gave to principal axes
            return np.stack([_array(at, frame.direction(tuple(column))) for column in own.T], axis=1)
    if isinstance(part, Joint):
        readers: dict[str, Callable[[Placement], Any]] = {
            "angle": part.angle_at,
            "rate": part.rate_at,
            "displacement": part.displacement_at,
            "speed": part.sliding_speed_at,
        }
        if name in readers:
            return readers[name](at)
    raise ModelError(
        f"{part.name!r} has no {name}: bodies have {', '.join(QUANTITIES[:4])}, joints {', '.join(QUANTITIES[4:])}"
    )


def _quantities_of(part: Part) -> tuple[str, ...]:
    return QUANTITIES[:4] if isinstance(part, Body) else QUANTITIES[4:]


def _array(at: Placement, vector: Vector) -> Any:
    """A vector as an array, of symbols or of numbers."""
    if isinstance(at.q, SymbolicArray):
        return np.array(vector, like=at.q)
    return np.stack(np.broadcast_arrays(*vector))


def asked(what: str, function: Callable, own: Part, at: Placement, parts: Sequence[Part]) -> Any:
    """Call a user's function with what it names: t, quantities of its own part, <part>_<quantity> of others, parameters."""
    others = {f"{p.name.replace(' ', '_')}_{of}": (p, of) for p in parts for of in QUANTITIES}
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in at.params and name in others:
            raise ModelError(f"{what} names {name!r}, which is a parameter and a quantity of a part: rename one of them")
        if name == "t":
            arguments[name] = at.t
        elif name in at.params:
            arguments[name] = at.params[name]
        elif name in QUANTITIES:
            arguments[name] = quantity(at, own, name)
        elif name in others:
            arguments[name] = quantity(at, *others[name])
        elif parameter.default is parameter.empty:
            known = tuple(dict.fromkeys(("t", *_quantities_of(own), *at.params)))
            meant = suggestion(name, [*known, *(other for other, (p, of) in others.items() if of in _quantities_of(p))])
            raise ModelError(
                f"{what} names the argument {name!r}{meant} Otherwise add it to da.Mechanism(params=...)"
                if meant
                else f"{what} names the argument {name!r}, which is none of {', '.join(known)}, nor a quantity of another part "
                f"such as {next(iter(others), 'body_position')}: rename it or add it to da.Mechanism(params=...)"
            )
    return called(what, function, arguments)


@dataclass(eq=False, repr=False)
class Motor(Load):
    """A torque about the axis of a joint, or a force along it, on the second body and back on the first."""

    joint: Joint
    effort: Callable[..., Any]

    def effort_at(self, at: Placement) -> Any:
        """Its torque or force, one number."""
        what = f"the motor {self.name!r}"
        return one_number(what, asked(what, self.effort, self.joint, at, self.mechanism.named_parts))

    def exert(self, at: Placement, loads: Loads) -> None:
        """Its torque or force."""
        self.joint.push(at, self.effort_at(at), loads)


@dataclass(eq=False, repr=False)
class AppliedForce(Load):
    """A force at a point of a body, or a torque, in space."""

    body: Body
    function: Callable[..., Any]
    point: np.ndarray
    torque: bool

    def vector_at(self, at: Placement) -> Vector:
        """What the user's function says, in space."""
        what = f"the {'torque' if self.torque else 'force'} {self.name!r}"
        value = asked(what, self.function, self.body, at, self.mechanism.named_parts)
        try:
            entries = [one_number(what, value[i]) for i in range(len(value))]
        except (LookupError, TypeError, ModelError):
            entries = [0.0, 0.0, one_number(what, value)] if self.torque else []
        if len(entries) == 2 and not self.torque:
            entries.append(0.0)
        if len(entries) != 3:
            wanted = "one number about z or three" if self.torque else "three numbers, or two in the plane"
            raise ModelError(f"{what} must return {wanted}; got {one_line(value)}")
        x, y, z = entries
        return (x, y, z)

    def exert(self, at: Placement, loads: Loads) -> None:
        """The force or torque."""
        vector = self.vector_at(at)
        if self.torque:
            loads.add(self.body, torque=vector)
        else:
            loads.add(self.body, vector, at=at.of(self.body).point(self.body.arm(self.point)))
