"""What readings of all parts share: where the bodies are along a run, and the forces of rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import InputError
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._rigid import Body, Part, Placement
from dalembert.mechanisms._vectors import Vector, subtract

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
        raise NoSuchReading(f"the {self._called} {self.part.name!r} has no {name}: it has {known}")

    @property
    def _called(self) -> str:
        """What the part is, in words."""
        return type(self.part).__name__.lower()

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
            Q += mapped(system.function("reaction"), count, *shared, lam.T, theta)[:, :, 0]
        rows = list(assembled.rows_of(self.part, "nonholonomic"))
        if rows:
            k_v = mapped(system.function("k_v"), count, *shared, np.asarray(self.run.p).T, theta)
            Q -= np.einsum("tji,tj->ti", k_v[:, rows], self.run.psi[:, rows])
        assert body.coordinates is not None
        own, Q_own = q[:, body.slice].T, Q[:, body.slice].T
        force = self._rows((Q_own[0], Q_own[1], 0.0 if body.flat else Q_own[2]))
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


def mapped(function: ca.Function, count: int, *arguments: Any) -> np.ndarray:
    """A function at many states, (time, rows, columns); its last argument, the parameters, is the same for all."""
    *moving, theta = arguments
    values = function.map(count)(*moving, np.repeat(np.reshape(theta, (-1, 1)), count, axis=1))
    rows, columns = function.size_out(0)
    return np.asarray(values, dtype=float).reshape(rows, count, columns).transpose(1, 0, 2)
