"""The motion of bodies as another program found it, and what such programs are told of a `da.Mechanism`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.mechanisms import Joint, Mechanism
from dalembert.mechanisms._loads import Motor, Spring
from dalembert.mechanisms._rigid import Body


class Timeout(Exception):
    """A solver that took too long."""


Prepared = Callable[[float], "Motion"]
"""A run with a number of steps."""


@dataclass(frozen=True)
class Motion:
    """What a tool found at the times of output: an array (time, body, ...) of each quantity, in the order of the bodies."""

    m: Mechanism
    position: np.ndarray
    axes: np.ndarray
    """The principal axes of each body in space, as columns."""
    velocity: np.ndarray
    omega: np.ndarray
    """In space."""
    angle: np.ndarray
    """How far planar bodies have turned since the start."""
    stats: dict[str, float]

    def number(self, body: Body | str) -> int:
        """Which of the bodies it is."""
        return [other.name for other in self.m.bodies].index(str(body))

    def point(self, body: Body, at: Any) -> tuple[np.ndarray, np.ndarray]:
        """The path and the velocity of a point of a body, given by where it is in the assembled pose."""
        if body is self.m.ground:
            return np.broadcast_to(np.asarray(at, dtype=float), (len(self.position), 3)), np.zeros((len(self.position), 3))
        k = self.number(body)
        arm = self.axes[:, k] @ np.array(body.arm(in_space(at)))
        return self.position[:, k] + arm, self.velocity[:, k] + np.cross(self.omega[:, k], arm)

    @property
    def energy(self) -> np.ndarray:
        """Kinetic energy, and that of gravity and springs."""
        params, total = self.m.system().parameters.values, np.zeros(len(self.position))
        for k, body in enumerate(self.m.bodies):
            local = np.einsum("tji,tj->ti", self.axes[:, k], self.omega[:, k])
            total += value_of(body.mass, params) * np.sum(self.velocity[:, k] ** 2, axis=1) / 2
            total += local**2 @ np.array([value_of(moment, params) for moment in body.inertia]) / 2
            total -= value_of(body.mass, params) * self.position[:, k] @ gravity_of(self.m)
        for spring in springs_of(self.m):
            ends = [self.point(body, at)[0] for body, at in zip(spring.bodies, spring.points, strict=True)]
            stretch = np.linalg.norm(ends[1] - ends[0], axis=1) - value_of(spring.length, params)
            total += value_of(spring.stiffness, params) * stretch**2 / 2
        return total


def in_space(at: Any) -> np.ndarray:
    return np.array([*np.asarray(at, dtype=float), 0.0][:3])


def value_of(value: Any, params: Any) -> float:
    """A number, or the value of a parameter."""
    return float(params[value]) if isinstance(value, str) else float(value)


def gravity_of(m: Mechanism) -> np.ndarray:
    """The acceleration of gravity in space."""
    return np.array([float(x) for x in m._gravity(m.system().parameters.values)] + [0.0])[:3]


def springs_of(m: Mechanism) -> list[Spring]:
    """Its springs."""
    return [load for load in m.loads if isinstance(load, Spring)]


def torques_of(m: Mechanism) -> Iterator[tuple[Joint, float]]:
    """Joints with constant torques of motors."""
    for load in m.loads:
        if isinstance(load, Motor):
            known = m.system().parameters.values
            yield load.joint, float(load.effort(**{name: known[name] for name in inspect.signature(load.effort).parameters}))


def is_planar(m: Mechanism) -> bool:
    """Whether all bodies are in (x, y, theta)."""
    return m.default_coordinates == "planar"
