"""Exudyn, whose implicit methods impose constraints by multipliers, on planar bodies where the mechanism is planar.

Only the call that integrates is timed: the model is built anew for each run, because it keeps its last state.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.errors import UnsupportedSystem
from dalembert.experiments.benchmarks._motion import Motion, Prepared, gravity_of, is_planar, springs_of, torques_of, value_of
from dalembert.mechanisms import Joint, Mechanism
from dalembert.mechanisms._loads import Spring
from dalembert.mechanisms._rigid import Body
from dalembert.mechanisms._wheels import Wheel
from dalembert.systems import State


class _Exudyn:
    """A mechanism in the terms of Exudyn."""

    def __init__(self, m: Mechanism, start: State) -> None:
        import exudyn as exu
        import exudyn.utilities as eu

        self.exu, self.eu, self.m, self.start = exu, eu, m, start
        self.params, self.planar = m.system().parameters.values, is_planar(m)
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.numbers = {"ground": self.mbs.CreateGround()}
        for body in m.bodies:
            self.numbers[body.name] = self._body(body)
        for part in m.parts:
            self._part(part)
        for spring in springs_of(m):
            self._spring(spring)
        for joint, torque in torques_of(m):
            self._torque(joint, torque)
        kinds = exu.OutputVariableType
        variables = (
            kinds.Position,
            kinds.Rotation if self.planar else kinds.RotationMatrix,
            kinds.Velocity,
            kinds.AngularVelocity,
        )
        self.sensors = [
            [
                self.mbs.AddSensor(
                    eu.SensorBody(
                        bodyNumber=self.numbers[b.name], storeInternal=True, writeToFile=False, outputVariableType=kind
                    )
                )
                for b in m.bodies
            ]
            for kind in variables
        ]
        self.mbs.Assemble()

    def _body(self, body: Body) -> Any:
        snap, eu, mass = self.m.at(self.start).of(body), self.eu, value_of(body.mass, self.params)
        speed, spin, place = snap.velocity[0], snap.angular_velocity[0], snap.position[0]
        moments, gravity = [value_of(x, self.params) for x in body.inertia], gravity_of(self.m)
        if not self.planar:
            return self.mbs.CreateRigidBody(
                inertia=eu.RigidBodyInertia(mass=mass, inertiaTensor=np.diag(moments)), referencePosition=place.tolist(),
                referenceRotationMatrix=snap.rotation[0] @ (body.rotation.T @ body.axes), initialVelocity=speed.tolist(),
                initialAngularVelocity=spin.tolist(), gravity=gravity.tolist(),
            )  # fmt: skip
        angle = float(self.start.q[body.first + 2])
        node = self.mbs.AddNode(
            eu.NodeRigidBody2D(referenceCoordinates=[*place[:2], angle], initialVelocities=[*speed[:2], spin[2]])
        )
        number = self.mbs.AddObject(eu.RigidBody2D(physicsMass=mass, physicsInertia=moments[2], nodeNumber=node))
        if np.any(gravity):
            marker = self.mbs.AddMarker(eu.MarkerNodePosition(nodeNumber=node))
            self.mbs.AddLoad(eu.Force(markerNumber=marker, loadVector=(mass * gravity).tolist()))
        return number

    def _arm(self, body: Body, at: np.ndarray) -> list[float]:
        return [float(x) for x in at] if body is self.m.ground else list(body.arm(at))

    def _part(self, part: Any) -> None:
        if isinstance(part, Wheel):
            assert part.axis is not None  # of a ball
            self.mbs.CreateRollingDisc(
                bodyNumbers=[self.numbers["ground"], self.numbers[part.body.name]], discRadius=part.radius,
                axisPosition=[0.0, 0.0, 0.0], axisVector=list(part.body.local(part.axis)), planePosition=[0.0, 0.0, 0.0],
                planeNormal=[0.0, 0.0, 1.0],
            )  # fmt: skip
            return
        pair, bodies = [self.numbers[part.first.name], self.numbers[part.second.name]], (part.first, part.second)
        if self.planar and part.kind == "revolute":
            ends = [
                self.mbs.AddMarker(self.eu.MarkerBodyPosition(bodyNumber=number, localPosition=self._arm(body, at)))
                for number, body, at in zip(pair, bodies, part.points, strict=True)
            ]
            self.mbs.AddObject(self.eu.RevoluteJoint2D(markerNumbers=ends))
            return
        makers = {"revolute": self.mbs.CreateRevoluteJoint, "prismatic": self.mbs.CreatePrismaticJoint}
        if part.kind not in makers:
            raise UnsupportedSystem(f"joints of the kind {part.kind!r} are not translated")
        makers[part.kind](itemNumbers=pair, position=part.points[0].tolist(), axis=part.axis.tolist(), useGlobalFrame=True)

    def _spring(self, spring: Spring) -> None:
        places = [self._arm(body, at) for body, at in zip(spring.bodies, spring.points, strict=True)]
        constants = {name: value_of(getattr(spring, name), self.params) for name in ("stiffness", "damping")}
        self.mbs.CreateSpringDamper(
            itemNumbers=[self.numbers[body.name] for body in spring.bodies], localPosition0=places[0], localPosition1=places[1],
            referenceLength=value_of(spring.length, self.params), **constants,
        )  # fmt: skip

    def _torque(self, joint: Joint, torque: float) -> None:
        marker = self.mbs.AddMarker(self.eu.MarkerBodyRigid(bodyNumber=self.numbers[joint.second.name]))
        self.mbs.AddLoad(self.eu.Torque(markerNumber=marker, loadVector=(torque * joint.axis).tolist()))

    def run(self, times: np.ndarray, steps: int, radius: float, longest: float) -> Motion:
        """The trapezoidal rule with constraints of index 2 (spectral radius 1), or the generalised alpha method."""
        settings: Any = self.exu.SimulationSettings()
        outputs = len(times) - 1
        integration = settings.timeIntegration
        integration.numberOfSteps, integration.endTime, integration.verboseMode = steps, float(times[-1]), 0
        settings.solutionSettings.writeSolutionToFile = False
        settings.solutionSettings.sensorsWritePeriod = float(times[-1]) / outputs
        integration.newton.useModifiedNewton = True
        integration.newton.relativeTolerance, integration.newton.absoluteTolerance = 1e-10, 1e-12
        integration.generalizedAlpha.spectralRadius = radius
        integration.generalizedAlpha.useIndex2Constraints = integration.generalizedAlpha.useNewmark = radius == 1
        settings.linearSolverType = self.exu.LinearSolverType.EigenDense
        settings.linearSolverSettings.ignoreSingularJacobian = True
        begin = time.thread_time()
        self.mbs.SolveDynamic(settings)
        seconds = time.thread_time() - begin
        position, turned, velocity, spin = (self._read(row, outputs) for row in self.sensors)
        return _motion(self.m, position, turned, velocity, spin, {"cpu_seconds": seconds}, self.planar)

    def _read(self, sensors: list[Any], outputs: int) -> np.ndarray:
        found = np.stack([np.array(self.mbs.GetSensorStoredData(sensor))[:, 1:] for sensor in sensors], axis=1)
        return found[-(outputs + 1) :]


def _motion(
    m: Mechanism, position: np.ndarray, turned: np.ndarray, velocity: np.ndarray, spin: np.ndarray, stats: dict, planar: bool
) -> Motion:
    """From sensors: rotations are matrices by rows, or angles of planar bodies; spins are vectors or numbers in space."""
    if not planar:
        axes = turned.reshape(*turned.shape[:2], 3, 3)
        return Motion(m, position, axes, velocity, spin, np.zeros(position.shape[:2]), stats)
    angle = turned[..., -1]
    c, s, nil, one = np.cos(angle), np.sin(angle), 0 * angle, 1 + 0 * angle
    axes = np.stack([np.stack(row, axis=-1) for row in ((c, -s, nil), (s, c, nil), (nil, nil, one))], axis=-2)
    omega = np.stack([nil, nil, spin[..., -1]], axis=-1)
    return Motion(m, position, axes, velocity, omega, angle - angle[0], stats)


def exudyn(radius: float) -> Callable[[Mechanism, State, np.ndarray, float], Prepared]:
    """Exudyn with this spectral radius of the generalised alpha method; 1 is the trapezoidal rule."""

    def prepare(m: Mechanism, start: State, times: np.ndarray, longest: float) -> Prepared:
        def solve(steps: float) -> Motion:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _Exudyn(m, start).run(times, int(steps), radius, longest)

        return solve

    return prepare
