"""How springs, dampers, motors and forces are added to a mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.mechanisms._building import as_function, plain, two_points
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._links import carrier
from dalembert.mechanisms._loads import AppliedForce, JointSpring, Motor, Spring
from dalembert.mechanisms._rigid import Body
from dalembert.mechanisms._values import Value
from dalembert.mechanisms._vectors import triple
from dalembert.mechanisms._with_compounds import WithCompounds


class WithLoads(WithCompounds):
    """A mechanism to which springs, motors and forces can be added."""

    def spring(
        self,
        first: Body,
        second: Body,
        *,
        at: Any,
        stiffness: Value,
        length: Value | None = None,
        damping: Value = 0.0,
        name: str | None = None,
    ) -> Spring:
        """A spring between two points, `at` = (on the first body, on the second), with a damper if `damping` is given.

        `length` is that without force; by default the one in the assembled pose.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism(params={"k": 80.0})
            >>> ball = m.point("ball", mass=0.2, at=(0, 0, -1))
            >>> m.spring(m.ground, ball, at=((0, 0, 0), (0, 0, -1)), stiffness="k", length=0.8).name
            'spring 1'

        """
        self._own_bodies("a spring", first, second)
        first, second = carrier(first), carrier(second)
        P, Q = two_points("a spring", at)
        name = self._name(name, "spring")
        for body, point in ((first, P), (second, Q)):
            self._check_point(f"{name!r}", body, point)
        rest = float(np.linalg.norm(Q - P)) if length is None else length
        return self._add(Spring(name, self, (first, second), (P, Q), plain(stiffness), plain(rest), plain(damping)))

    def damper(self, first: Body, second: Body, *, at: Any, damping: Value, name: str | None = None) -> Spring:
        """A damper between two points: a force `damping` times the rate of their distance.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.damper(a, b, at=((0, 0, 0), (0.1, 0, 0)), damping=5.0)
            <Spring 'damper 1'>

        """
        return self.spring(first, second, at=at, stiffness=0.0, damping=damping, name=self._name(name, "damper"))

    def torsion(
        self, joint: Joint, *, stiffness: Value = 0.0, rest: Value = 0.0, damping: Value = 0.0, name: str | None = None
    ) -> JointSpring:
        """A spring and a damper on the angle of a revolute joint, or on the displacement of a prismatic one.

        The torque is -stiffness (angle - rest) - damping rate. In space the angle is taken between -pi and pi around the
        assembled pose; in the plane it counts turns.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.torsion(m.revolute(a, b, at=(0.05, 0, 0), axis=(0, 0, 1)), stiffness=2.0, damping=0.01)
            <JointSpring 'torsion spring 1'>

        """
        self._own_joints("a torsion spring", joint)
        name = self._name(name, "torsion spring")
        return self._add(JointSpring(name, self, joint, plain(stiffness), plain(rest), plain(damping)))

    def motor(self, joint: Joint, effort: Any, *, name: str | None = None) -> Motor:
        """A torque on a revolute joint, or a force on a prismatic one, and its reaction on the first body.

        `effort` is a number, or a function of what it names: t, `angle` and `rate` (`displacement` and `speed`) of the joint,
        parameters, and quantities of other parts, such as pole_angle or cart_position.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism(coordinates="planar", params={"kp": 4.0, "kd": 0.5})
            >>> hinge = m.revolute(m.ground, m.rod("arm", (0, 0), (1, 0), mass=1.0), at=(0, 0))
            >>> m.motor(hinge, lambda t, angle, rate, kp, kd: -kp * (angle - 0.3) - kd * rate).name
            'motor 1'

        """
        self._own_joints("a motor", joint)
        name = self._name(name, "motor")
        return self._add(Motor(name, self, joint, as_function(f"the motor {name!r}", effort)))

    def force(self, body: Body, force: Any, *, at: Any = None, name: str | None = None) -> AppliedForce:
        """A force at a point of a body, by default its centre of mass: a vector of space, or a function.

        A function names what it needs: t, position, velocity, rotation and angular_velocity of the body, quantities of other
        parts (crank_position), and parameters.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism(params={"drag": 0.1})
            >>> ball = m.point("ball", mass=0.2, at=(0, 0, 0))
            >>> m.force(ball, lambda velocity, drag: -drag * velocity).name
            'force 1'

        """
        self._own_bodies("a force", body)
        body = carrier(body)
        name = self._name(name, "force")
        point = body.centre if at is None else triple(f"the point of {name!r}", at)
        self._check_point(f"{name!r}", body, point)
        return self._add(AppliedForce(name, self, body, as_function(f"the force {name!r}", force), point, False))

    def torque(self, body: Body, torque: Any, *, name: str | None = None) -> AppliedForce:
        """A torque on a body: a vector of space (a number is about z), or a function like that of `force`.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
            >>> m.torque(a, lambda angular_velocity: -0.01 * angular_velocity)
            <AppliedForce 'torque 1'>

        """
        self._own_bodies("a torque", body)
        body = carrier(body)
        name = self._name(name, "torque")
        function = as_function(f"the torque {name!r}", torque)
        return self._add(AppliedForce(name, self, body, function, body.centre, True))
