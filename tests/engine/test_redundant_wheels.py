"""Wheels that forbid the same motion: a robot on two driven wheels and a castor, against solutions in minimal coordinates."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.compiler._independence import independent
from dalembert.systems._dependency import combination_at

TRACK, RADIUS, AHEAD = 0.15, 0.04, 0.05  # half of the axle, driven wheels, the centre of mass ahead of the axle
PIVOT, TRAIL, SMALL = 0.2, 0.03, 0.02  # where the castor's fork turns, behind the axle, its trail and the castor's radius
TORQUE = (0.05, -0.015)


def lagrangian(q, v, sin=np.sin, cos=np.cos):
    """x, y, heading, the angles of both wheels, of the fork and of the castor; a slope pulls."""
    x, y, heading, _, _, fork, _ = (q[k] for k in range(7))
    vx, vy, turning, left, right, fork_rate, castor = (v[k] for k in range(7))
    c, s = cos(heading), sin(heading)
    energy = 4.0 * ((vx - AHEAD * turning * s) ** 2 + (vy + AHEAD * turning * c) ** 2) + 0.06 * turning**2
    for side, spin in ((1, left), (-1, right)):
        energy += 0.1 * ((vx - side * TRACK * turning * c) ** 2 + (vy - side * TRACK * turning * s) ** 2)
        energy += 5e-5 * turning**2 + 8e-5 * spin**2
    along, rate = heading + fork, turning + fork_rate
    ux = vx + PIVOT * turning * s + TRAIL * rate * sin(along)
    uy = vy - PIVOT * turning * c - TRAIL * rate * cos(along)
    energy += 0.05 * (ux**2 + uy**2) + 5e-5 * rate**2 + 1e-5 * castor**2
    return energy - 2.0 * x + 0.5 * y


def slips(q, v):
    """The velocities of the three contact points in space: six rows, of which five are independent."""
    c, s = np.cos(q[2]), np.sin(q[2])
    rows = []
    for side, spin in ((1, v[3]), (-1, v[4])):
        forward = side * TRACK * v[2] + RADIUS * spin
        rows += [v[0] - forward * c, v[1] - forward * s]
    along, rate = q[2] + q[5], v[2] + v[5]
    rows += [v[0] + PIVOT * v[2] * s + TRAIL * rate * np.sin(along) - SMALL * v[6] * np.cos(along)]
    rows += [v[1] - PIVOT * v[2] * c - TRAIL * rate * np.cos(along) - SMALL * v[6] * np.sin(along)]
    return rows


def drive(v):
    none = 0 * v[0]
    return np.array([none, none, none, none + TORQUE[0], none + TORQUE[1], none, none], like=v)


def rolling(q, forward, turning, sin=np.sin, cos=np.cos):
    """All velocities that roll, from those along the heading and about the vertical."""
    along = q[2] + q[5]
    vx, vy = forward * cos(q[2]), forward * sin(q[2])
    px, py = vx + PIVOT * turning * sin(q[2]), vy - PIVOT * turning * cos(q[2])
    sideways, ahead = -sin(along) * px + cos(along) * py, cos(along) * px + sin(along) * py
    wheels = (forward - TRACK * turning) / RADIUS, (forward + TRACK * turning) / RADIUS
    return [vx, vy, turning, *wheels, sideways / TRAIL - turning, ahead / SMALL]


START = np.array([0.1, -0.2, 0.7, 0.0, 0.0, 0.4, 0.0])
SPEEDS = (0.5, 0.9)
DURATION = 4.0


@functools.cache
def minimal_solution():
    """q, p and the reaction of the wheels at the end: S^T (d/dt L_v - L_q - Q) = 0 for v = S(q) nu."""
    q, v, nu = (ca.SX.sym(name, size) for name, size in (("q", 7), ("v", 7), ("nu", 2)))
    L = lagrangian(q, v, ca.sin, ca.cos)
    p = ca.gradient(L, v)
    rates = ca.vertcat(*rolling(q, nu[0], nu[1], ca.sin, ca.cos))
    S, mass = ca.jacobian(rates, nu), ca.jacobian(p, v)
    forces = ca.vertcat(0, 0, 0, *TORQUE, 0, 0)
    rest = ca.jacobian(p, q) @ v - ca.gradient(L, q) - forces + mass @ (ca.jacobian(rates, q) @ v)
    rest, p = (ca.substitute(value, v, rates) for value in (rest, p))
    slope = ca.solve(S.T @ mass @ S, -S.T @ rest)
    moves = ca.Function("moves", [q, nu], [ca.vertcat(rates, slope)])
    ends = ca.Function("ends", [q, nu], [p, -(mass @ S @ slope + rest)])

    def right_hand_side(t, y):
        return np.array(moves(y[:7], y[7:])).ravel()

    found = solve_ivp(
        right_hand_side, (0.0, DURATION), [*START, *SPEEDS], method="DOP853", rtol=1e-13, atol=1e-13
    ).y[:, -1]  # fmt: skip
    assert abs(found[2] - START[2]) > np.pi  # every choice of rows fails somewhere
    p, reaction = (np.array(value).ravel() for value in ends(found[:7], found[7:]))
    k_v = np.array([slips(found[:7], unit) for unit in np.eye(7)])
    return found[:7], p, np.linalg.lstsq(k_v, reaction, rcond=None)[0]


@pytest.mark.parametrize("method", [da.GaussLobattoSPARK(2), da.GaussLobattoEMPRK(2)], ids=str)
def test_order_of_a_robot_on_three_wheels(method):
    """Order 4 in q, p and psi, the latter those of least norm, through more than half a turn."""
    robot = da.Lagrangian(lambda q, v: lagrangian(q, v), dim=7, nonholonomic=slips, force=drive)
    errors = []
    for steps in (200, 400, 800):
        run = da.simulate(robot, method, q0=START, v0=rolling(START, *SPEEDS), h=DURATION / steps, steps=steps)
        ends = (run.q[-1], run.p[-1], run.psi[-1])
        errors.append([np.max(np.abs(a - b)) for a, b in zip(ends, minimal_solution(), strict=True)])
        assert np.abs(run.residuals["k"]).max() < 1e-12 and not run.lam_unique
        assert run.stats["renewals"] > 0 and run.stats["followed_steps"] == 0
    orders = np.log2(np.array(errors)[:-1] / np.array(errors)[1:])
    np.testing.assert_allclose(orders, 4.0, atol=0.2)


# -- rows of k that follow from others together with joints ---------------------------------------------------------


def cart(holonomic):
    """A chassis (x, y, heading) and two wheels that are bodies of their own, (x, y) and an angle each; 0.3 N down the slope."""
    masses = np.array([8.0, 8.0, 0.12, 0.2, 0.2, 0.2, 0.2, 1.6e-4, 1.6e-4])

    def wheels(q, v):
        c, s = np.cos(q[2]), np.sin(q[2])
        return [v[3] - RADIUS * c * v[7], v[4] - RADIUS * s * v[7], v[5] - RADIUS * c * v[8], v[6] - RADIUS * s * v[8]]

    return da.Lagrangian(
        lambda q, v: masses @ v**2 / 2 - 0.3 * q[0], dim=9, holonomic=holonomic, nonholonomic=wheels, force=motors
    )


def motors(v):
    none = 0 * v[0]
    return np.array([*[none] * 7, none + TORQUE[0], none + TORQUE[1]], like=v)


def axle(q):
    c, s = TRACK * np.cos(q[2]), TRACK * np.sin(q[2])
    return [q[3] - q[0] + s, q[4] - q[1] - c, q[5] - q[0] - s, q[6] - q[1] + c]


def axle_twice(q):
    """Besides, both wheels keep their distance, which follows."""
    return [*axle(q), (q[3] - q[5]) ** 2 + (q[4] - q[6]) ** 2 - 4 * TRACK**2]


def cart_after(duration):
    """x, y, heading, forward speed and turning rate; the centre of mass is on the axle, so that speeds decouple."""
    mass, inertia = 8.0 + 0.4 + 2 * 1.6e-4 / RADIUS**2, 0.12 + 0.4 * TRACK**2 + 2 * 1.6e-4 * (TRACK / RADIUS) ** 2
    moment = TRACK / RADIUS * (TORQUE[1] - TORQUE[0])

    def right_hand_side(t, y):
        c, s = np.cos(y[2]), np.sin(y[2])
        return [y[3] * c, y[3] * s, y[4], (sum(TORQUE) / RADIUS - 0.3 * c) / mass, moment / inertia]

    found = solve_ivp(right_hand_side, (0.0, duration), [0.0, 0.0, 0.3, 0.5, -2.0], method="DOP853", rtol=1e-13, atol=1e-13)
    return found.y[:, -1]


@pytest.mark.parametrize("holonomic", [axle, axle_twice], ids=["joints", "redundant joints"])
def test_rows_of_wheels_that_follow_together_with_joints(holonomic):
    q0 = np.array([0.0, 0.0, 0.3, -TRACK * np.sin(0.3), TRACK * np.cos(0.3), TRACK * np.sin(0.3), -TRACK * np.cos(0.3), 0, 0])
    speeds = [0.5 + 2.0 * TRACK, 0.5 - 2.0 * TRACK]
    along = np.array([np.cos(0.3), np.sin(0.3)])
    v0 = [*(0.5 * along), -2.0, *(speeds[0] * along), *(speeds[1] * along), speeds[0] / RADIUS, speeds[1] / RADIUS]
    exact, errors = cart_after(2.0), []
    assert abs(exact[2] - 0.3) > np.pi / 2
    sizes = (50, 100, 200, 400)
    for steps in sizes:
        run = da.simulate(cart(holonomic), da.GaussLobattoSPARK(2), q0=q0, v0=v0, h=2.0 / steps, steps=steps)
        momentum = 8.0 * exact[3] * np.array([np.cos(exact[2]), np.sin(exact[2])])
        errors.append([np.abs(run.q[-1, :3] - exact[:3]).max(), np.abs(run.p[-1, :2] - momentum).max()])
        assert not run.lam_unique and run.stats["followed_steps"] == 0
        for name in ("g", "g_dot", "k"):
            assert np.abs(run.residuals[name]).max() < 1e-12
    np.testing.assert_allclose(-np.polyfit(np.log(sizes), np.log(errors), 1)[0], 4.0, atol=0.2)


def test_wheels_that_are_in_line_only_at_the_start_are_refused():
    """The second wheel steers with the square of the heading: at heading 0 both rows are the same one."""

    def rows(q, v):
        angles = (q[2], q[2] + q[2] ** 2)
        return [np.cos(a) * v[1] - np.sin(a) * v[0] for a in angles]

    sledge = da.Lagrangian(lambda q, v: 4.0 * (v[0] ** 2 + v[1] ** 2) + 0.06 * v[2] ** 2, dim=3, nonholonomic=rows)
    with pytest.raises(da.InconsistentStart, match=r"nonholonomic\[0\] and nonholonomic\[1\]|singular position"):
        da.simulate(sledge, da.GaussLobattoSPARK(2), q0=[0, 0, 0], v0=[0.5, 0, 0.2], h=0.01, steps=10)


# -- the same in space ------------------------------------------------------------------------------------------------

PULL = np.array([-0.25, 0.04, -9.81])


def robot_in_space():
    """Chassis, two wheels and a ball for a castor: 20 rows of joints and contacts, and 6 of rolling, of rank 5."""
    m = da.Mechanism(gravity=tuple(PULL))
    chassis = m.body("chassis", mass=8.0, inertia=np.diag([0.05, 0.08, 0.12]), at=(AHEAD, 0, 0.06))
    for side in (1, -1):
        place = (0, side * TRACK, RADIUS)
        wheel = m.body(f"wheel {side}", mass=0.2, inertia=np.diag([1e-4, 1.6e-4, 1e-4]), at=place)
        m.revolute(chassis, wheel, at=place, axis=(0, 1, 0))
        m.wheel(wheel, radius=RADIUS, axis=(0, 1, 0))
    ball = m.body("castor", mass=0.1, shape=da.mechanisms.Sphere(SMALL), at=(-PIVOT, 0, SMALL))
    m.spherical(chassis, ball, at=(-PIVOT, 0, SMALL))
    m.ball(ball, radius=SMALL)
    return m, chassis


def robot_after(duration, forward, turning):
    """x, y of the axle and the heading: (u, w) with the inertia of rolling added to the masses.

    M u' - P w^2 = F.e and J w' + P u w = moment, P and J being moments of mass about the middle of the axle.
    """
    spin, ball = 1.6e-4 / RADIUS**2, 0.1 * 7 / 5
    M = 8.4 + 2 * spin + ball
    P = 8.0 * AHEAD - ball * PIVOT
    J = 0.12 + 8.0 * AHEAD**2 + ball * PIVOT**2 + 2 * (1e-4 + (0.2 + spin) * TRACK**2)
    arm = 8.0 * AHEAD - 0.1 * PIVOT

    def right_hand_side(t, y):
        along, across = np.array([np.cos(y[2]), np.sin(y[2])]), np.array([-np.sin(y[2]), np.cos(y[2])])
        slopes = (8.5 * PULL[:2] @ along + P * y[4] ** 2) / M, (arm * PULL[:2] @ across - P * y[3] * y[4]) / J
        return [*(y[3] * along), y[4], *slopes]

    start = [0.0, 0.0, 0.0, forward, turning]
    return solve_ivp(right_hand_side, (0.0, duration), start, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]


@pytest.mark.slow
def test_order_of_a_robot_in_space():
    m, chassis = robot_in_space()
    start = m.start(velocities={chassis: (0.5, AHEAD, 0)}, angular_velocities={chassis: (0, 0, 1.0)})
    x, y, heading, *_ = robot_after(4.0, 0.5, 1.0)
    assert heading > np.pi / 2
    exact, errors, sizes = np.array([x + AHEAD * np.cos(heading), y + AHEAD * np.sin(heading)]), [], (100, 200, 400, 800)
    for steps in sizes:
        run = da.simulate(m, da.GaussLobattoSPARK(2), start=start, h=4.0 / steps, steps=steps)
        errors.append(np.abs(run.of(chassis).position[-1, :2] - exact).max())
        assert not run.lam_unique and run.stats["renewals"] > 0
        assert max(np.abs(residual).max() for residual in run.residuals.values()) < 1e-11
    np.testing.assert_allclose(-np.polyfit(np.log(sizes), np.log(errors), 1)[0], 4.0, atol=0.2)


def test_velocities_hold_where_old_factors_converge_slowly():
    """A cart with four wheels and a slender pendulum: the light axis of the rod tells what momenta are off by.

    A step is iterated until increments are small beside what the heavy cart has; g_dot must not be left behind.
    """
    m = da.Mechanism(gravity=(0, 0, -9.81))
    cart = m.body("cart", mass=12.0, shape=da.mechanisms.Box(0.6, 0.4, 0.1), at=(0, 0, 0.15))
    for x, y in ((0.25, 0.22), (0.25, -0.22), (-0.25, 0.22), (-0.25, -0.22)):
        wheel = m.body(f"wheel {x} {y}", mass=0.8, inertia=np.diag([2e-3, 4e-3, 2e-3]), at=(x, y, 0.1))
        axle = m.revolute(cart, wheel, at=(x, y, 0.1), axis=(0, 1, 0))
        m.wheel(wheel, radius=0.1, axis=(0, 1, 0))
    hinge = m.revolute(cart, m.rod("pole", (0, 0, 0.2), (0, 0, 0.8), mass=0.5, width=0.02), at=(0, 0, 0.2), axis=(0, 1, 0))
    run = da.simulate(m, da.GaussLobattoSPARK(1), start=m.start(rates={axle: 10.0}, angles={hinge: 0.3}), h=0.002, steps=2500)
    assert np.abs(run.residuals["g_dot"]).max() < 1e-10
    assert np.ptp(run.of(cart).velocity[:, 0]) > 0.1


def two_wheels(q, v):
    """The velocities of the contact points of two wheels in space: four rows, of which three are independent."""
    return slips([*(q[k] for k in range(5)), 0 * q[0]], [*(v[k] for k in range(5)), 0 * v[0], 0 * v[0]])[:4]


@pytest.mark.parametrize("heading", [0.0, 0.3, np.pi / 2, np.pi])
@pytest.mark.parametrize("h", [0.01, 0.05])
def test_rows_that_were_alone_at_the_start_are_measured_anew(heading, h):
    """Where the robot starts along an axis, x and y have rows of their own, and nothing says how these compare.

    It turns at a constant rate, and the slope speeds up and slows down what rolls with a mass of 8.2 kg.
    """
    robot = da.Lagrangian(
        lambda q, v: 4 * (v[0] ** 2 + v[1] ** 2) + 0.06 * v[2] ** 2 + 8e-5 * (v[3] ** 2 + v[4] ** 2) - q[0],
        dim=5,
        nonholonomic=two_wheels,
    )
    wheels = (0.5 - TRACK) / RADIUS, (0.5 + TRACK) / RADIUS
    v0 = [0.5 * np.cos(heading), 0.5 * np.sin(heading), 1.0, *wheels]
    run = da.simulate(robot, da.GaussLobattoSPARK(stages=3), q0=[0, 0, heading, 0, 0], v0=v0, h=h, steps=round(14 / h))
    along = heading + run.t
    forward = 0.5 - (np.sin(along) - np.sin(heading)) / 8.2
    assert np.abs(run.q[:, 2] - along).max() < 1e-11
    assert np.abs(run.v[:, 0] - forward * np.cos(along)).max() < 1e-9
    assert run.stats["renewals"] > 0 and run.stats["rescued_steps"] == 0


def test_another_heading_needs_no_other_system():
    """Other rows could be dropped there, but which they are is data: all headings share one combined system."""
    robot = da.Lagrangian(lambda q, v: 4 * (v @ v) - q[0], dim=5, nonholonomic=two_wheels)
    wheels, systems, dropped = ((0.5 - TRACK) / RADIUS, (0.5 + TRACK) / RADIUS), set(), set()
    for heading in (0.3, 0.9, 1.2, 2.2, 3.5, 5.0):
        v0 = [0.5 * np.cos(heading), 0.5 * np.sin(heading), 1.0, *wheels]
        start = da.consistent(robot, q0=[0, 0, heading, 0, 0], v0=v0)
        systems.add(independent(robot, start)[0])
        combination, _ = combination_at(robot, start.t, start.q, start.p, start.theta)
        dropped.add(tuple(combination.dropped))
    assert len(dropped) > 1 and len(systems) == 1
