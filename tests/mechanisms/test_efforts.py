"""Forces and torques of drives, springs and dampers, read from a run, against Newton's law and by hand."""

import numpy as np
import pytest

import dalembert as da


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
@pytest.mark.parametrize("turned", [False, True])
def test_torque_of_a_prescribed_angle(coordinates, turned):
    """J angle'' + m g l/2 cos(angle), with the sign of a motor's torque, whichever body comes first."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates=coordinates)
    rod = m.rod("a", (0, 0), (0.3, 0), mass=0.2, width=0.01)
    hinge = m.revolute(*((rod, m.ground) if turned else (m.ground, rod)), at=(0, 0))
    sign = -1 if turned else 1
    drive = m.prescribe(hinge, lambda t: sign * np.sin(20 * t))
    run = da.simulate(m, da.LobattoIIIAB(3), h=1e-3, steps=100)
    J = 0.2 * (da.mechanisms.Box(0.3, 0.01, 0.01).moments[2] + 0.15**2)
    exact = -400 * J * np.sin(20 * run.t) + 0.2 * 9.81 * 0.15 * np.cos(np.sin(20 * run.t))
    assert run.of(drive).effort[0] == pytest.approx(sign * 0.2943, rel=1e-6)
    np.testing.assert_allclose(run.of(drive).effort, sign * exact, atol=1e-5 * np.abs(exact).max())
    assert np.abs(run.of(hinge).torque[:, 2]).max() < 1e-12


def test_force_of_a_prescribed_displacement():
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    block = m.body("block", mass=0.2, inertia=1e-4, at=(0.1, 0))
    drive = m.prescribe(m.prismatic(m.ground, block, axis=(0, 1)), lambda t: 0.05 * np.sin(20 * t))
    run = da.simulate(m, da.LobattoIIIAB(3), h=1e-3, steps=100)
    np.testing.assert_allclose(run.of(drive).effort, 0.2 * (9.81 - 20 * np.sin(20 * run.t)), rtol=1e-5, atol=1e-5)


def test_a_motor_in_place_of_a_prescribed_motion():
    """A motor with the torque that was read moves the joint as prescribed."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    hinge = m.revolute(m.ground, m.rod("a", (0, 0), (0.3, 0), mass=0.2), at=(0, 0))
    drive = m.prescribe(hinge, lambda t: 0.5 * t**2)
    effort = m.at(m.start()).of(drive).effort[0]
    free = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    pin = free.revolute(free.ground, free.rod("a", (0, 0), (0.3, 0), mass=0.2), at=(0, 0))
    free.motor(pin, effort)
    run = da.simulate(free, da.Rattle(), start=free.start(), h=1e-4, steps=100)
    np.testing.assert_allclose(run.of(pin).angle, 0.5 * run.t**2, rtol=1e-3, atol=1e-12)


def test_forces_of_springs_and_dampers():
    m = da.Mechanism(coordinates="planar", params={"k": 80.0})
    ball = m.point("ball", mass=0.2, at=(0, 1))
    ends = {"at": ((0, 0), (0, 1))}
    both = m.spring(m.ground, ball, **ends, stiffness="k", length=0.8, damping=3.0)
    spring = m.spring(ball, m.ground, at=((0, 1), (0, 0)), stiffness=lambda k: k / 2, length=1.5)
    damper = m.damper(m.ground, ball, **ends, damping=5.0)
    at = m.at(m.start(velocities={ball: (7.0, 2.0)}))
    assert at.of(both).force == pytest.approx([80 * 0.2 + 3 * 2])
    assert at.of(spring).force == pytest.approx([-40 * 0.5])
    assert at.of(damper).force == pytest.approx([10.0])
    run = da.simulate(m, da.Rattle(), start=m.start(velocities={ball: (7.0, 2.0)}), h=1e-4, steps=20)
    pull = run.of(both).force + run.of(spring).force + run.of(damper).force
    position, v = run.of(ball).position, run.of(ball).velocity
    force = -pull[:, None] * position / np.linalg.norm(position, axis=1, keepdims=True)
    np.testing.assert_allclose(force[1:-1], 0.2 * (v[2:] - v[:-2]) / (2 * run.h), atol=1e-3 * np.abs(pull).max())


def test_efforts_of_torsion_springs():
    m = da.Mechanism(coordinates="planar")
    hinge = m.revolute(m.ground, m.rod("a", (0, 0), (0.3, 0), mass=0.2), at=(0, 0))
    torsion = m.torsion(hinge, stiffness=2.0, rest=0.1, damping=0.01)
    at = m.at(m.start(angles={hinge: 0.3}, rates={hinge: 4.0}))
    assert at.of(torsion).effort == pytest.approx([-2 * 0.2 - 0.01 * 4])
    with pytest.raises(da.InputError, match="read its effort"):
        _ = at.of(torsion).force


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
def test_applied_forces_and_torques_are_read(coordinates):
    """Drag on a body that a steady force drives, and a brake on its spin: what the functions give for what the run has."""
    m = da.Mechanism(coordinates=coordinates, params={"c": 0.4})
    disc = m.body("disc", mass=0.5, inertia=1e-3, at=(0, 0))
    m.force(disc, lambda t, velocity, c: np.array([1 + t, 0.2, 0.0]) - c * velocity, name="drag")
    m.torque(disc, lambda angular_velocity: -0.01 * angular_velocity[2], name="brake")
    run = da.simulate(m, da.LobattoIIIAB(3), start=m.start(angular_velocities={disc: (0, 0, 3.0)}), h=0.01, steps=20)
    motion, drag, brake = run.of(disc), run.of("drag"), run.of("brake")
    expected = np.stack([1 + run.t, 0 * run.t + 0.2, 0 * run.t], axis=1) - 0.4 * motion.velocity
    np.testing.assert_allclose(drag.force, expected, atol=1e-14)
    np.testing.assert_allclose(brake.torque, -0.01 * motion.angular_velocity * [0, 0, 1], atol=1e-14)
    np.testing.assert_allclose(np.gradient(0.5 * motion.velocity[:, 0], run.t)[1:-1], drag.force[1:-1, 0], atol=1e-4)
    many = da.simulate_many(m, da.LobattoIIIAB(3), start=m.start(), h=0.01, steps=5, params={"c": [0.1, 0.2]})
    assert many.of("drag").force.shape == (2, 6, 3)
    for read, answer in ((lambda: drag.torque, "read its force"), (lambda: brake.effort, "read its torque")):
        with pytest.raises(da.InputError, match=answer):
            read()
