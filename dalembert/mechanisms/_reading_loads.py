"""Reading what drives and brakes a mechanism: springs, dampers, motors, prescribed motions, gears, forces and torques."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import InputError
from dalembert.mechanisms._joints import Gear, Prescribed
from dalembert.mechanisms._loads import AppliedForce, JointSpring, Motor, Spring
from dalembert.mechanisms._reading_base import Reading, mapped
from dalembert.mechanisms._rigid import Placement
from dalembert.mechanisms._vectors import subtract
from dalembert.symbolic import as_column, from_column


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


class GearReading(Reading):
    """What a gear or a rack carries from one joint to the other, along a run.

    Between ideal wheels no power is lost: effort times the rate of the first joint, and the same of the other, add up to zero.
    """

    part: Gear

    @property
    def effort(self) -> np.ndarray:
        """Its torque, or force on a prismatic joint, on the first joint, positive if it drives it forwards, (time,)."""
        return self._carried(0)

    @property
    def other_effort(self) -> np.ndarray:
        """The same on the second joint."""
        return self._carried(1)

    def _carried(self, which: int) -> np.ndarray:
        """Minus the multiplier times the derivative of the row by the joint's coordinate."""
        rows, ratio = list(self.mechanism.assembled.rows_of(self.part)), self.part.ratios[which]
        return np.asarray(self.run.lam)[:, rows].sum(axis=1) * (ratio if which else -ratio)


class LoadReading(Reading):
    """A spring, a damper, a motor, or a force or torque of the user, along a run."""

    part: Any

    @property
    def length(self) -> np.ndarray:
        """The length of a spring, (time,)."""
        if not isinstance(self.part, Spring):
            raise InputError(f"{self.part.name!r} has no length")
        P, Q = self.part.ends(self._at)
        return np.linalg.norm(self._rows(subtract(Q, P)), axis=1)

    @property
    def force(self) -> np.ndarray:
        """The force of a spring, a damper, or both, positive where it pulls, (time,); or an applied one, (time, 3)."""
        if isinstance(self.part, AppliedForce) and not self.part.torque:
            return self._evaluated(lambda at: list(self.part.vector_at(at)))
        if not isinstance(self.part, Spring):
            raise InputError(f"{self.part.name!r} has no force between two points: read its {self._instead}")
        return self._column(self.part.tension(self._at))

    @property
    def torque(self) -> np.ndarray:
        """An applied torque, (time, 3)."""
        if not (isinstance(self.part, AppliedForce) and self.part.torque):
            raise InputError(f"{self.part.name!r} is no torque on a body: read its {self._instead}")
        return self._evaluated(lambda at: list(self.part.vector_at(at)))

    @property
    def _instead(self) -> str:
        if isinstance(self.part, AppliedForce):
            return "torque" if self.part.torque else "force"
        return "force" if isinstance(self.part, Spring) else "effort"

    @property
    def effort(self) -> np.ndarray:
        """The torque or force of a motor, or of the spring of a joint, on its second body, (time,)."""
        if isinstance(self.part, JointSpring):
            return self._column(self.part.effort_at(self._at))
        if not isinstance(self.part, Motor):
            raise InputError(f"{self.part.name!r} is no motor: read its {self._instead}")
        motor = self.part
        return self._evaluated(lambda at: [motor.effort_at(at)])[:, 0]

    def _evaluated(self, entries: Callable[[Placement], list[Any]]) -> np.ndarray:
        """What a function of the user returns along the run, (time, entries).

        It is for one state: it is called with symbols, as for the model, not with arrays over time.
        """
        m, count = self.mechanism, len(self.t)
        symbols = [ca.SX.sym("t"), ca.SX.sym("q", m.dim), ca.SX.sym("v", m.dim)]
        t, q, v = (from_column(symbol) for symbol in symbols)
        at = Placement(q, v, t[0], {**self.run.parameters, "t": t[0]})
        function = ca.Function("entries", [*symbols, ca.SX.sym("theta", 0)], [ca.densify(as_column(entries(at)))])
        states = (np.atleast_2d(self.t), np.asarray(self.run.q).T, np.asarray(self.run.v).T)
        return mapped(function, count, *states, np.zeros(0))[:, :, 0]
