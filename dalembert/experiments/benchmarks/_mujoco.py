"""MuJoCo: a tree of joints in minimal coordinates, and the classical Runge-Kutta method or, for dampers, its implicit one.

A joint that closes a loop is a soft constraint there, at two points of its axis (one in the plane), as stiff as the step allows
(solref of two steps). It has no wheels that roll without slipping. Only the calls that integrate are timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.errors import UnsupportedSystem
from dalembert.experiments.benchmarks._motion import (
    Motion,
    Prepared,
    Timeout,
    gravity_of,
    is_planar,
    springs_of,
    torques_of,
    value_of,
)
from dalembert.mechanisms import Joint, Mechanism
from dalembert.mechanisms._rigid import Body
from dalembert.mechanisms._wheels import Wheel
from dalembert.systems import State

STIFF = 'solimp="0.9999 0.9999 0.001"'
"""How little a loop of MuJoCo's gives way."""


class _MuJoCo:
    """A mechanism in the terms of MuJoCo: a tree of the bodies by their first joints."""

    def __init__(self, m: Mechanism, start: State, h: float, integrator: str) -> None:
        import mujoco

        if any(isinstance(part, Wheel) for part in m.parts):
            raise UnsupportedSystem("MuJoCo has no wheels that roll without slipping")
        mujoco.set_mju_user_warning(lambda _: None)  # else they are written to a file; see `run`
        self.mujoco, self.m, self.h, self.integrator = mujoco, m, h, integrator
        self.params, self.planar = m.system().parameters.values, is_planar(m)
        self.tree, self.loops = self._tree()
        self.model = mujoco.MjModel.from_xml_string(self._xml())
        self.data = mujoco.MjData(self.model)
        snap = m.at(start)
        for joint in self.tree:
            reading = snap.of(joint)
            self.data.joint(joint.name).qvel[0] = (reading.rate if joint.kind == "revolute" else reading.speed)[0]
        for joint, torque in torques_of(m):
            self.data.joint(joint.name).qfrc_applied[0] = torque

    def _tree(self) -> tuple[list[Joint], list[Joint]]:
        tree: list[Joint] = []
        rest, seen = list(self.m.joints), {"ground"}
        while True:
            found = next((j for j in rest if j.first.name in seen and j.second.name not in seen), None)
            if found is None:
                return tree, rest
            tree.append(found)
            rest.remove(found)
            seen.add(found.second.name)

    def _element(self, body: Body, parent: np.ndarray) -> str:
        joint = next(j for j in self.tree if j.second is body)
        moments = np.diag([value_of(x, self.params) for x in body.inertia])
        J = body.axes @ moments @ body.axes.T
        full = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
        inner = "".join(self._element(j.second, body.centre) for j in self.tree if j.first is body)
        sites = "".join(
            f'<site name="{spring.name} {k}" pos="{_text(at - body.centre)}"/>'
            for spring in springs_of(self.m)
            for k, (owner, at) in enumerate(zip(spring.bodies, spring.points, strict=True))
            if owner is body
        )
        kind = {"revolute": "hinge", "prismatic": "slide"}[joint.kind]
        return (
            f'<body name="{body.name}" pos="{_text(body.centre - parent)}">'
            f'<inertial pos="0 0 0" mass="{value_of(body.mass, self.params)!r}" fullinertia="{_text(full)}"/>'
            f'<joint name="{joint.name}" type="{kind}" axis="{_text(joint.axis)}" '
            f'pos="{_text(joint.points[0] - body.centre)}"/>'
            f"{sites}{inner}</body>"
        )

    def _xml(self) -> str:
        closed, m = "", self.m
        for joint in self.loops:
            one, other = (joint.first, joint.second) if joint.second is m.ground else (joint.second, joint.first)
            held = "world" if other is m.ground else other.name
            for side in (0.0,) if self.planar else (-0.1, 0.1):
                anchor = _text(joint.points[0] + side * joint.axis - one.centre)
                closed += f'<connect body1="{one.name}" body2="{held}" anchor="{anchor}" solref="{2 * self.h} 1" {STIFF}/>'
        bodies = "".join(self._element(j.second, np.zeros(3)) for j in self.tree if j.first is m.ground)
        fixed = "".join(
            f'<site name="{spring.name} {k}" pos="{_text(at)}"/>'
            for spring in springs_of(m)
            for k, (owner, at) in enumerate(zip(spring.bodies, spring.points, strict=True))
            if owner is m.ground
        )
        tendons = "".join(
            f'<spatial stiffness="{value_of(s.stiffness, self.params)!r}" damping="{value_of(s.damping, self.params)!r}" '
            f'springlength="{value_of(s.length, self.params)!r}"><site site="{s.name} 0"/><site site="{s.name} 1"/></spatial>'
            for s in springs_of(m)
        )
        return (
            f'<mujoco><compiler balanceinertia="false"/><option timestep="{self.h!r}" integrator="{self.integrator}" '
            f'gravity="{_text(gravity_of(m))}" iterations="100" tolerance="1e-14"/><worldbody>{fixed}{bodies}</worldbody>'
            f"<tendon>{tendons}</tendon><equality>{closed}</equality></mujoco>"
        )

    def run(self, times: np.ndarray, steps: int, longest: float) -> Motion:
        """Its steps, with a look at the bodies at the times of output."""
        mujoco, each, seconds = self.mujoco, steps // (len(times) - 1), 0.0
        found = [self._look()]
        for _ in times[1:]:
            begin = time.thread_time()
            mujoco.mj_step(self.model, self.data, each)
            seconds += time.thread_time() - begin
            if any(warning.number for warning in self.data.warning):
                raise RuntimeError("nan, inf or huge value: the simulation is unstable")
            if seconds > longest:
                raise Timeout(f"stopped after {longest:.0f} s")
            found.append(self._look())
        position, axes, velocity, omega, angle = (np.stack(part) for part in zip(*found, strict=True))
        return Motion(self.m, position, axes, velocity, omega, angle, {"cpu_seconds": seconds})

    def _look(self) -> tuple[np.ndarray, ...]:
        mujoco, data, found = self.mujoco, self.data, []
        mujoco.mj_kinematics(self.model, data)
        mujoco.mj_comPos(self.model, data)
        mujoco.mj_comVel(self.model, data)
        turned = {"ground": 0.0}
        for joint in self.tree:
            sense = joint.axis[2] if joint.kind == "revolute" else 0.0
            turned[joint.second.name] = turned[joint.first.name] + sense * data.joint(joint.name).qpos[0]
        for body in self.m.bodies:
            moving, number = np.zeros(6), data.body(body.name).id
            mujoco.mj_objectVelocity(self.model, data, mujoco.mjtObj.mjOBJ_BODY, number, moving, 0)
            axes = np.array(data.body(body.name).xmat).reshape(3, 3) @ body.axes
            found.append((np.array(data.body(body.name).xipos), axes, moving[3:], moving[:3], turned[body.name]))
        return tuple(np.array(part) for part in zip(*found, strict=True))


def mujoco(integrator: str) -> Callable[[Mechanism, State, np.ndarray, float], Prepared]:
    """MuJoCo with one of its integrators: RK4, or implicit in velocities, of order one."""

    def prepare(m: Mechanism, start: State, times: np.ndarray, longest: float) -> Prepared:
        def solve(steps: float) -> Motion:
            return _MuJoCo(m, start, float(times[-1]) / int(steps), integrator).run(times, int(steps), longest)

        return solve

    return prepare


def _text(values: Any) -> str:
    return " ".join(f"{float(value):.17g}" for value in values)
