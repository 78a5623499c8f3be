"""Each joint allows what it should: rows stay zero under its finite motions, and no other motion is left."""

from __future__ import annotations

import numpy as np
import pytest
from compositions import ORDER_4
from scipy.spatial.transform import Rotation

import dalembert as da

AT = np.array([0.3, -0.2, 0.5])
AXIS = np.array([1.0, 2.0, -2.0]) / 3
ACROSS = np.array([2.0, 1.0, 2.0]) / 3
TURNED = Rotation.from_rotvec([0.4, -0.7, 0.2])
"""A motion of both bodies together."""


def two_bodies(joint, coordinates):
    """Two bodies with oblique principal axes, and a joint between them."""
    m = da.Mechanism(coordinates=coordinates)
    J = np.array([[0.02, 0.004, -0.002], [0.004, 0.03, 0.001], [-0.002, 0.001, 0.035]])
    first = m.body("first", mass=0.2, inertia=J, at=(0.1, 0.2, 0.3), rotation=Rotation.from_rotvec([0.1, 0.5, -0.3]))
    second = m.body("second", mass=0.4, inertia=2 * J, at=(-0.4, 0.1, 0.6), rotation=Rotation.from_rotvec([1.0, -0.2, 0.6]))
    return m, first, second, joint(m, first, second)


def coordinates_after(m, bodies, motions):
    """q after each body was turned about the origin and shifted: (rotation, shift)."""
    parts = []
    for body, (turn, shift) in zip(bodies, motions, strict=True):
        R = turn.as_matrix()
        parts.append(body.coordinates.start(R @ body.centre + shift, R @ body.axes))
    return np.concatenate(parts)


def about(point, axis, angle):
    turn = Rotation.from_rotvec(angle * np.asarray(axis))
    return turn, point - turn.as_matrix() @ point


def after(one, other):
    """First `one`, then `other`."""
    (R, s), (S, u) = one, other
    return S * R, S.as_matrix() @ s + u


STILL = (Rotation.identity(), np.zeros(3))
NORMAL, FAR = np.cross(AXIS, ACROSS), np.array([-0.4, 0.3, 0.2])


def along(vector):
    return Rotation.identity(), 0.3 * vector


CASES = {
    "revolute": (lambda m, a, b: m.revolute(a, b, at=AT, axis=AXIS), [about(AT, AXIS, 0.7)]),
    "spherical": (lambda m, a, b: m.spherical(a, b, at=AT), [about(AT, axis, 0.7) for axis in np.eye(3)]),
    "prismatic": (lambda m, a, b: m.prismatic(a, b, at=AT, axis=AXIS), [along(AXIS)]),
    "cylindrical": (lambda m, a, b: m.cylindrical(a, b, at=AT, axis=AXIS), [about(AT, AXIS, -0.6), along(AXIS)]),
    "planar": (lambda m, a, b: m.planar(a, b, at=AT, normal=AXIS), [about(AT, AXIS, 0.9), along(ACROSS), along(NORMAL)]),
    "universal": (
        lambda m, a, b: m.universal(a, b, at=AT, axes=(AXIS, ACROSS)),
        [about(AT, AXIS, 0.7), about(AT, ACROSS, 0.5)],
    ),
    "slide and turn": (
        lambda m, a, b: m.compound(a, b, at=AT, slides=[ACROSS], turns=[AXIS]),
        [along(ACROSS), about(AT, AXIS, 0.7)],
    ),
    "two slides": (lambda m, a, b: m.compound(a, b, at=AT, slides=[ACROSS, AXIS]), [along(AXIS), along(ACROSS)]),
    "three slides, two turns": (
        lambda m, a, b: m.compound(a, b, at=AT, slides=np.eye(3), turns=[AXIS, ACROSS]),
        [*map(along, np.eye(3)), about(AT, AXIS, 0.7), about(AT, ACROSS, 0.4)],
    ),
    "slide and any rotation": (
        lambda m, a, b: m.compound(a, b, at=AT, slides=[AXIS], turns=None),
        [along(AXIS), *(about(AT, axis, 0.7) for axis in np.eye(3))],
    ),
    "fixed": (lambda m, a, b: m.fixed(a, b), []),
    "distance": (
        lambda m, a, b: m.distance(a, b, at=(AT, FAR)),
        [*(about(AT, axis, 0.7) for axis in np.eye(3)), about(FAR, AXIS, 0.7), about(FAR, ACROSS, 0.3)],
    ),
}


@pytest.mark.parametrize("coordinates", ["quaternion", "matrix"])
@pytest.mark.parametrize("kind", CASES)
def test_joint_allows_its_motions_and_no_others(kind, coordinates):
    make, motions = CASES[kind]
    m, first, second, _ = two_bodies(make, coordinates)
    system, together = m.system(), (TURNED, np.array([0.2, 1.0, -0.5]))
    for motion in [STILL, *motions]:
        q = coordinates_after(m, (first, second), (together, after(motion, together)))
        assert np.abs(system.evaluate("g", 0.0, q)).max() < 1e-14
    G = system.evaluate("G", 0.0, m.q0)
    assert m.dim - np.linalg.matrix_rank(G, tol=1e-9) == 6 + len(motions)


def test_universal_joint_of_two_shafts_turns_unevenly():
    """Shafts at an angle b, the first fork normal to both: tan(second) = tan(first) cos b."""
    bend = 0.6
    out = np.array([np.cos(bend), np.sin(bend), 0.0])
    m = da.Mechanism(params={"w": 5.0})
    first = m.body("first", mass=0.2, inertia=(1e-4, 2e-4, 2e-4), at=(-0.1, 0, 0))
    second = m.body("second", mass=0.2, inertia=(1e-4, 2e-4, 2e-4), at=0.1 * out, rotation=bend)
    drive = m.revolute(m.ground, first, at=(-0.1, 0, 0), axis=(1, 0, 0))
    follow = m.revolute(m.ground, second, at=0.1 * out, axis=out)
    m.universal(first, second, at=(0, 0, 0), axes=((0, 0, 1), np.cross((0, 0, 1), out)))
    m.prescribe(drive, lambda t, w: w * t)
    run = da.simulate(m, da.Rattle(), h=0.01, steps=120)
    turned = run.of(drive).angle
    np.testing.assert_allclose(turned, 5.0 * run.t, atol=1e-12)
    exact = np.unwrap(np.arctan2(np.sin(turned) * np.cos(bend), np.cos(turned)))
    np.testing.assert_allclose(run.of(follow).angle, exact, atol=1e-12)
    assert np.abs(exact - turned).max() > 0.09


def flywheels(coordinates):
    m = da.Mechanism(coordinates=coordinates, params={"J": 2e-4, "torque": 0.03})
    wheels = [m.body(name, mass=0.2, inertia=J, at=(x, 0, 0)) for name, J, x in (("a", "J", 0.0), ("b", 5e-4, 0.1))]
    hinges = [m.revolute(m.ground, wheel, at=wheel.centre, axis=(0, 0, 1)) for wheel in wheels]
    m.motor(hinges[0], lambda torque: torque)
    return m, hinges


@pytest.mark.parametrize("coordinates", ["planar", "quaternion", "matrix"])
def test_gears_share_a_torque_by_their_ratio(coordinates):
    """-20 a = 30 b in teeth: the first turns with torque / (J + (2/3)^2 J_b), whatever the number of turns."""
    m, hinges = flywheels(coordinates)
    m.gear(*hinges, ratio=(-30, 20))
    run = da.simulate(m, ORDER_4, h=0.001, steps=1000)
    acceleration = 0.03 / (2e-4 + 5e-4 * (2 / 3) ** 2)
    exact = acceleration * run.t**2 / 2
    np.testing.assert_allclose(run.of(hinges[0]).angle, exact, rtol=1e-7, atol=1e-11 if coordinates == "planar" else 2e-6)
    np.testing.assert_allclose(run.of(hinges[1]).angle, -run.of(hinges[0]).angle * 2 / 3, atol=1e-11)
    assert run.of(hinges[0]).angle[-1] > 20


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
def test_rack_and_pinion(coordinates):
    """A pinion of 0.04 m drives a rack of 0.3 kg: force = torque / r, effective mass m + J / r^2."""
    m = da.Mechanism(coordinates=coordinates)
    pinion, rack = m.body("pinion", mass=0.2, inertia=1e-4), m.body("rack", mass=0.3, inertia=1e-3, at=(0, -0.04, 0))
    turning = m.revolute(m.ground, pinion, at=(0, 0, 0))
    sliding = m.prismatic(m.ground, rack, axis=(1, 0, 0))
    m.gear(sliding, turning, ratio=0.04)
    m.motor(turning, 0.02)
    run = da.simulate(m, ORDER_4, h=0.005, steps=200)
    exact = 0.02 / 0.04 / (0.3 + 1e-4 / 0.04**2) * run.t**2 / 2
    np.testing.assert_allclose(run.of(sliding).displacement, exact, atol=1e-11 if coordinates == "planar" else 1e-6)
    np.testing.assert_allclose(run.of(turning).angle, run.of(sliding).displacement / 0.04, atol=1e-11)


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
def test_prescribed_motion_takes_the_torque_of_the_inertia(coordinates):
    m = da.Mechanism(coordinates=coordinates, gravity=(0, -9.81), params={"w": 3.0})
    rod = m.rod("rod", (0, 0), (0.4, 0), mass=0.3, width=0.02)
    hinge = m.revolute(m.ground, rod, at=(0, 0), angle=0.2)
    m.prescribe(hinge, lambda t, w: 0.2 + np.sin(w * t))
    run = da.simulate(m, ORDER_4, h=0.005, steps=400)
    np.testing.assert_allclose(run.of(hinge).angle, 0.2 + np.sin(3 * run.t), atol=1e-12)
    np.testing.assert_allclose(run.of(hinge).rate, 3 * np.cos(3 * run.t), atol=1e-11)
    np.testing.assert_allclose(
        run.of(rod).position[:, :2].T, 0.2 * np.array([np.cos(np.sin(3 * run.t)), np.sin(np.sin(3 * run.t))]), atol=1e-12
    )


def test_planar_rows_across_the_plane_are_left_out():
    m = da.Mechanism(coordinates="planar")
    a, b = m.rod("a", (0, 0), (1, 0), mass=1.0), m.rod("b", (1, 0), (2, 0), mass=1.0)
    m.revolute(m.ground, a, at=(0, 0))
    m.prismatic(a, b, axis=(1, 0))
    assert m.system().n_holonomic == 4
    assert m.system().row_names["g"][:2] == ("revolute 1, row 1", "revolute 1, row 2")
    assert m.labels[2] == "a.theta"


def test_angles_in_the_plane_count_turns_however_seldom_they_are_stored():
    m = da.Mechanism(coordinates="planar")
    hinge = m.revolute(m.ground, m.body("wheel", mass=0.2, inertia=1e-4), at=(0, 0))
    run = da.simulate(m, da.LobattoIIIAB(2), start=m.start(rates={hinge: 10.0}), h=0.1, t1=4.0, save_every=4)
    np.testing.assert_allclose(run.of(hinge).angle, 10.0 * run.t, atol=1e-12)


def test_motors_that_sum_over_a_vector_are_read_at_each_time():
    """A torque against the speed of the end, which a function of one state computes: reading gives that of each state."""
    m = da.Mechanism(coordinates="planar", gravity=(0, -9.81), params={"c": 0.1})
    rod = m.rod("rod", (0, 0), (1, 0), mass=0.2)
    hinge = m.revolute(m.ground, rod, at=(0, 0))
    motor = m.motor(hinge, lambda rod_velocity, c: c * np.sum(rod_velocity**2))
    run = da.simulate(m, da.LobattoIIIAB(2), h=0.01, steps=40, params={"c": 0.3})
    np.testing.assert_allclose(run.of(motor).effort, 0.3 * np.sum(run.of(rod).velocity ** 2, axis=1), atol=1e-14)
    np.testing.assert_allclose(m.at(m.start(rates={hinge: 2.0})).of(motor).effort, [0.1], atol=1e-14)


def test_axes_that_would_lock_planar_bodies_are_refused():
    m = da.Mechanism(coordinates="planar")
    arm = m.rod("arm", (0, 0), (0.3, 0), mass=0.2)
    with pytest.raises(da.ModelError, match="hinge in the plane, which turns about its normal: leave axis= out"):
        m.revolute(m.ground, arm, at=(0, 0), axis=(1, 0, 0))
    with pytest.raises(da.ModelError, match=r"slide in the plane: its axis lies in it, such as \(1, 0\)"):
        m.prismatic(m.ground, arm, axis=(0, 1, 1))
    hinge = m.revolute(m.ground, arm, at=(0, 0), axis=(0, 0, -1))
    with pytest.raises(da.ModelError, match="a gear couples two joints"):
        m.gear(hinge, hinge, ratio=2)


@pytest.mark.parametrize("teeth", [(31, 97), (1, 12), (7, 6), (-5, 64)])
def test_gears_of_many_teeth_in_space(teeth):
    """One wheel turns by the ratio of the other's teeth to its own, modulo whole turns."""
    m = da.Mechanism()
    wheels = [m.body(mass=0.1, inertia=1e-4, at=(x, 0, 0)) for x in (0.0, 0.1)]
    hinges = [m.revolute(m.ground, wheel, at=wheel.centre) for wheel in wheels]
    m.gear(*hinges, ratio=teeth)
    state = m.at(m.start(angles={hinges[0]: 1.3}, rates={hinges[0]: 2.0}))
    assert abs(np.exp(1j * (state.of(hinges[1]).angle[0] - 1.3 * teeth[1] / teeth[0])) - 1) < 1e-11
    assert state.of(hinges[1]).rate[0] == pytest.approx(2.0 * teeth[1] / teeth[0], rel=1e-12)
