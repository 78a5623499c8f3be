"""Every problem against its equations of motion in other coordinates, written here by hand and solved by another method.

The references are ordinary differential equations in minimal coordinates (angles, Euler angles, quaternions), integrated by
SciPy's DOP853; constants differ from the defaults and from one another, so that an exchanged or forgotten one shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy import cos, sin
from problem_table import assert_same, end_of, solve

import dalembert as da

# -- pendulums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.01, np.pi / 2, -2.0, 3.0, 4.0])
def test_pendulum_and_its_exact_solution_against_the_angle(angle: float) -> None:
    m, l, g, t1 = 1.3, 0.8, 1.7, 9.0  # noqa: E741
    problem = da.problems.pendulum(m=m, l=l, g=g, angle=angle)
    theta, rate = solve(lambda t, y: [y[1], -g / l * sin(y[0])], [angle, 0.0], t1)
    right = {
        "q": l * np.array([sin(theta), -cos(theta)]),
        "p": m * l * rate * np.array([cos(theta), sin(theta)]),
        "lam": [m * l * rate**2 + m * g * cos(theta)],
    }
    assert problem.exact is not None
    for name, value in problem.exact(t1).items():
        assert np.max(np.abs(value - right[name])) < 1e-10, name
    run = da.simulate(problem, da.LobattoIIIAB(stages=5), h=t1 / 600, steps=600, progress=False)
    assert_same(run, **right)
    along = problem.exact(run.t)
    for name in ("q", "p", "lam"):
        assert along[name].shape == getattr(run, name).shape
        assert np.max(np.abs(along[name] - getattr(run, name))) < 1e-10, name


def test_order_of_the_pendulum_measured_against_its_exact_solution() -> None:
    problem = da.problems.pendulum()
    study = da.verify.order(
        problem, da.LobattoIIIAB(stages=3), reference=problem.exact, t1=4.0, steps=[20, 40, 80], q0=problem.q0, p0=problem.p0
    )
    assert study.slopes == pytest.approx({"q": 4.0, "p": 4.0, "lam": 4.0}, abs=0.15)


def test_double_pendulum_against_its_angles() -> None:
    m1, m2, l1, l2, g, t1 = 1.2, 0.7, 0.9, 1.3, 1.1, 4.0

    def f(t: float, y: np.ndarray) -> np.ndarray:
        a, b, u, v = y
        M = np.array([[(m1 + m2) * l1**2, m2 * l1 * l2 * cos(a - b)], [m2 * l1 * l2 * cos(a - b), m2 * l2**2]])
        centrifugal = m2 * l1 * l2 * sin(a - b)
        torque = [-centrifugal * v**2 - (m1 + m2) * g * l1 * sin(a), centrifugal * u**2 - m2 * g * l2 * sin(b)]
        return np.concatenate([[u, v], np.linalg.solve(M, torque)])

    a, b, u, v = solve(f, [np.pi / 6, -np.pi / 6, 0.0, 0.0], t1)
    first, first_velocity = l1 * np.array([sin(a), -cos(a)]), l1 * u * np.array([cos(a), sin(a)])
    second, second_velocity = first + l2 * np.array([sin(b), -cos(b)]), first_velocity + l2 * v * np.array([cos(b), sin(b)])
    run = end_of(da.problems.double_pendulum(m1, m2, l1, l2, g), t1, 500)
    assert_same(run, q=[*first, *second], p=[*m1 * first_velocity, *m2 * second_velocity])


def test_chain_against_its_angles() -> None:
    N, m, g, length, sag, t1 = 4, 1.3, 1.1, 0.7, 1.5, 4.0
    carried = N - np.maximum.outer(np.arange(N), np.arange(N))  # masses carried by links i and j

    def f(t: float, y: np.ndarray) -> np.ndarray:
        angle, rate = y[:N], y[N:]
        between = np.subtract.outer(angle, angle)
        torque = -(carried * sin(between)) @ rate**2 - g / length * np.diag(carried) * sin(angle)
        return np.concatenate([rate, np.linalg.solve(carried * cos(between), torque)])

    y = solve(f, [*(sag * (np.arange(N) + 0.5) / N), *np.zeros(N)], t1)
    angle, rate = y[:N], y[N:]
    points = np.cumsum(length * np.column_stack([sin(angle), -cos(angle)]), axis=0)
    velocities = np.cumsum(length * np.column_stack([rate * cos(angle), rate * sin(angle)]), axis=0)
    run = end_of(da.problems.chain(N, g, m, length, sag), t1, 400)
    assert_same(run, q=points.ravel(), p=m * velocities.ravel())


def test_pendulum_of_varying_length_against_its_angle() -> None:
    m, l, g, c, a, w, angle, t1 = 1.3, 0.8, 1.7, 0.3, 0.2, 2.3, 1.0, 6.0  # noqa: E741

    def length(t: float) -> tuple[float, float, float]:
        return l * (1 + a * sin(w * t)), l * a * w * cos(w * t), -l * a * w**2 * sin(w * t)

    def f(t: float, y: np.ndarray) -> list[float]:
        r, r1, _ = length(t)
        return [y[1], (-m * g * sin(y[0]) - (2 * m * r1 + c * r) * y[1]) / (m * r)]

    theta, rate = solve(f, [angle, 0.0], t1)
    r, r1, r2 = length(t1)
    along, across = np.array([sin(theta), -cos(theta)]), np.array([cos(theta), sin(theta)])
    problem = da.problems.pendulum_of_varying_length(m=m, l=l, g=g, c=c, amplitude=a, frequency=w, angle=angle)
    assert_same(
        end_of(problem, t1, 600),
        q=r * along,
        v=r1 * along + r * rate * across,
        p=m * (r1 * along + r * rate * across),
        lam=[m * g * cos(theta) + m * r * rate**2 - m * r2 - c * r1],
    )


def test_spring_pendulum_against_polar_coordinates() -> None:
    m, l, g, epsilon, angle, stretch, t1 = 1.3, 0.8, 1.7, 0.1, 1.2, 0.1, 4.0  # noqa: E741

    def f(t: float, y: np.ndarray) -> list[float]:
        r, theta, r1, rate = y
        return [r1, rate, r * rate**2 + g * cos(theta) - (r - l) / (m * epsilon**2), -(2 * r1 * rate + g * sin(theta)) / r]

    r, theta, r1, rate = solve(f, [l + stretch, angle, 0.0, 0.0], t1)
    along, across = np.array([sin(theta), -cos(theta)]), np.array([cos(theta), sin(theta)])
    problem = da.problems.stiff_spring_pendulum(m=m, l=l, g=g, epsilon=epsilon, angle=angle, stretch=stretch)
    assert_same(end_of(problem, t1, 2000), q=r * along, p=m * (r1 * along + r * rate * across))


# -- spheres -------------------------------------------------------------------------------------------------------------


def on_sphere(theta: Any, phi: Any, theta_rate: Any, phi_rate: Any) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity on the unit sphere, theta measured from +z; arrays of angles give one row a point."""
    position = np.stack([sin(theta) * cos(phi), sin(theta) * sin(phi), cos(theta)], axis=-1)
    south = np.stack([cos(theta) * cos(phi), cos(theta) * sin(phi), -sin(theta)], axis=-1)
    east = np.stack([-sin(phi), cos(phi), 0 * phi], axis=-1)
    return position, np.expand_dims(theta_rate, -1) * south + np.expand_dims(phi_rate * sin(theta), -1) * east


def test_charged_particle_against_spherical_angles() -> None:
    """L = m R^2 (theta'^2 + sin^2 theta phi'^2) / 2 + m omega R^2 sin^2 theta phi' + eE R cos theta."""
    m, omega, R, eE, t1 = 1.3, 0.8, 1.2, 1.7, 5.0

    def f(t: float, y: np.ndarray) -> list[float]:
        theta, _, u, w = y
        theta_acceleration = sin(theta) * cos(theta) * (w**2 + 2 * omega * w) - eE / (m * R) * sin(theta)
        return [u, w, theta_acceleration, -2 * u * (w + omega) * cos(theta) / sin(theta)]

    x, y, z = 0.2 * R, 0.2 * R, np.sqrt(0.92) * R
    vx, vy = 1 / m + omega * y, -1 / m - omega * x  # v = H_p at (5.4), and v_z = 0
    theta = np.arccos(z / R)
    start = [theta, np.arctan2(y, x), (x * vx + y * vy) / (R**2 * sin(theta) * cos(theta)), (x * vy - y * vx) / (x**2 + y**2)]
    position, velocity = on_sphere(*solve(f, start, t1))
    q, v = R * position, R * velocity
    run = end_of(da.problems.charged_particle_on_sphere(m, omega, R, eE), t1, 1000)
    assert_same(run, q=q, v=v, p=m * v + m * omega * np.array([-q[1], q[0], 0.0]))


def test_spherical_pendulum_against_spherical_angles() -> None:
    m, l, g, angle, rate, t1 = 1.3, 0.8, 1.7, 0.9, 0.6, 5.0  # noqa: E741

    def f(t: float, y: np.ndarray) -> list[float]:
        theta, _, u, w = y
        return [u, w, sin(theta) * cos(theta) * w**2 + g / l * sin(theta), -2 * u * w * cos(theta) / sin(theta)]

    position, velocity = on_sphere(*solve(f, [np.pi - angle, 0.0, 0.0, rate], t1))
    run = end_of(da.problems.spherical_pendulum(m=m, l=l, g=g, angle=angle, rate=rate), t1, 500)
    assert_same(run, q=l * position, p=m * l * velocity)


def test_two_bodies_against_spherical_angles() -> None:
    """L = sum m_i R^2 (theta_i'^2 + sin^2 theta_i phi_i'^2) / 2 + gamma m1 m2 cot(alpha) / R, c = cos(alpha)."""
    m, R, gamma, t1 = np.array([1.3, 0.8]), 1.2, 1.7, 2.0
    theta0, phi0, theta_rate0, phi_rate0 = [1.0, 2.0], [0.3, 1.4], [1.1, -0.9], [0.5, -0.4]

    def f(t: float, y: np.ndarray) -> np.ndarray:
        theta, phi, u, w = y.reshape(4, 2)
        other, between = theta[::-1], phi - phi[::-1]
        c = cos(theta[0]) * cos(theta[1]) + sin(theta[0]) * sin(theta[1]) * cos(between[0])
        pull = gamma * np.prod(m) / R * (1 - c**2) ** -1.5 / (m * R**2)
        c_theta = -sin(theta) * cos(other) + cos(theta) * sin(other) * cos(between)
        c_phi = -sin(theta) * sin(other) * sin(between)
        theta_acceleration = sin(theta) * cos(theta) * w**2 + pull * c_theta
        phi_acceleration = (pull * c_phi / sin(theta) - 2 * u * w * cos(theta)) / sin(theta)
        return np.concatenate([u, w, theta_acceleration, phi_acceleration])

    position, velocity = on_sphere(*solve(f, [*theta0, *phi0, *theta_rate0, *phi_rate0], t1).reshape(4, 2))
    problem = da.problems.two_bodies_on_sphere(*m, R, gamma, phi0, theta0, phi_rate0, theta_rate0)
    assert_same(end_of(problem, t1, 800), q=R * position.ravel(), p=R * (m[:, None] * velocity).ravel())


# -- rigid bodies --------------------------------------------------------------------------------------------------------


def rotation(a: float, b: float, c: float, d: float) -> np.ndarray:
    """The rotation matrix of the unit quaternion a + bi + cj + dk."""
    return np.array(
        [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
        ]
    )


def euler_poisson(moments: np.ndarray, omega: Any, quaternion: Any, weight: float, t1: float) -> tuple[np.ndarray, np.ndarray]:
    """R and the body's angular velocity from I w' = I w x w + e3 x (-weight R^T e_z) and the quaternion's equation."""

    def f(t: float, y: np.ndarray) -> np.ndarray:
        w, (a, b, c, d) = y[:3], y[3:]
        up = rotation(a, b, c, d)[2]
        turn = 0.5 * np.array(
            [
                -b * w[0] - c * w[1] - d * w[2],
                a * w[0] + c * w[2] - d * w[1],
                a * w[1] + d * w[0] - b * w[2],
                a * w[2] + b * w[1] - c * w[0],
            ]
        )
        torque = -weight * np.cross([0.0, 0.0, 1.0], up)
        return np.concatenate([(np.cross(moments * w, w) + torque) / moments, turn])

    y = solve(f, [*omega, *quaternion], t1)
    return rotation(*y[3:] / np.linalg.norm(y[3:])), y[:3]


def turning(R: np.ndarray, w: np.ndarray) -> np.ndarray:
    """R' for the angular velocity w in the body frame: its columns are (R w) x r_j."""
    return np.cross(R @ w, R, axisb=0, axisc=0)


def test_rigid_body_against_eulers_equations() -> None:
    moments, omega, t1 = np.array([0.7, 0.9, 1.1]), (2.0, 0.5, -0.9), 4.0
    R, w = euler_poisson(moments, omega, [1.0, 0.0, 0.0, 0.0], 0.0, t1)
    run = end_of(da.problems.rigid_body(*moments, omega), t1, 800)
    assert_same(run, q=R.ravel(), v=turning(R, w).ravel())
    # The angular velocity in the body frame, read off R^T R' = hat(w).
    hat = run.q[-1].reshape(3, 3).T @ run.v[-1].reshape(3, 3)
    assert np.max(np.abs(np.array([hat[2, 1], hat[0, 2], hat[1, 0]]) - w)) < 1e-9


@pytest.mark.parametrize("translation", [False, True])
def test_asymmetric_top_against_the_euler_poisson_equations(translation: bool) -> None:
    m, g, l, moments, tilt, spin, precession, t1 = 1.2, 1.5, 0.9, np.array([0.5, 0.7, 1.0]), 0.6, 3.0, 0.4, 3.0  # noqa: E741
    about_fixed_point = moments + m * l**2 * np.array([1, 1, 0])
    start = [0.0, precession * sin(tilt), spin]
    R, w = euler_poisson(about_fixed_point, start, [cos(tilt / 2), sin(tilt / 2), 0.0, 0.0], m * g * l, t1)
    problem = da.problems.heavy_top(m, g, l, *moments, tilt, spin, precession, translation=translation)
    q, v = R.ravel(), turning(R, w).ravel()
    if translation:
        q, v = np.concatenate([l * R[:, 2], q]), np.concatenate([l * turning(R, w)[:, 2], v])
    assert_same(end_of(problem, t1, 600), q=q, v=v)


@pytest.mark.parametrize("translation", [False, True])
def test_lagrange_top_against_euler_angles(translation: bool) -> None:
    """The angles of R = Rz(phi) Rx(theta) Rz(psi), with phi and psi cyclic."""
    m, g, l, I1, I3, tilt, spin, precession, t1 = 1.2, 1.5, 0.9, 0.6, 1.0, 0.6, 3.0, 0.4, 3.0  # noqa: E741
    A = I1 + m * l**2
    axial = I3 * spin
    vertical = A * precession * sin(tilt) ** 2 + axial * cos(tilt)

    def rates(theta: float) -> tuple[float, float]:
        phi_rate = (vertical - axial * cos(theta)) / (A * sin(theta) ** 2)
        return phi_rate, axial / I3 - phi_rate * cos(theta)

    def f(t: float, y: np.ndarray) -> list[float]:
        theta, u = y[0], y[1]
        phi_rate, psi_rate = rates(theta)
        return [u, sin(theta) * (A * phi_rate**2 * cos(theta) - axial * phi_rate + m * g * l) / A, phi_rate, psi_rate]

    theta, u, phi, psi = solve(f, [tilt, 0.0, 0.0, 0.0], t1)

    def about_z(angle: float) -> np.ndarray:
        return np.array([[cos(angle), -sin(angle), 0], [sin(angle), cos(angle), 0], [0, 0, 1]])

    R = about_z(phi) @ np.array([[1, 0, 0], [0, cos(theta), -sin(theta)], [0, sin(theta), cos(theta)]]) @ about_z(psi)
    phi_rate, psi_rate = rates(theta)
    line_of_nodes = np.array([cos(phi), sin(phi), 0.0])
    spatial = u * line_of_nodes + phi_rate * np.array([0, 0, 1.0]) + psi_rate * R[:, 2]
    problem = da.problems.heavy_top(m, g, l, I1, I1, I3, tilt, spin, precession, translation=translation)
    run = end_of(problem, t1, 600)
    R_run, V_run = (part[-1, -9:].reshape(3, 3) for part in (run.q, run.v))
    assert np.max(np.abs(R_run - R)) < 1e-9
    assert np.max(np.abs(V_run - turning(R, R.T @ spatial))) < 1e-9


# -- linkages ------------------------------------------------------------------------------------------------------------


def test_four_bar_against_the_crank_angle() -> None:
    """One degree of freedom: energy gives the rate of the crank at every angle, loop closure gives the rest."""
    ground, crank, coupler, rocker = 3.8, 1.4, 4.4, 3.1
    masses, g, angle, rate, t1 = np.array([1.1, 2.7, 1.9]), 0.7, 1.2, 2.2, 4.0

    def closure(phi: float) -> tuple[np.ndarray, np.ndarray]:
        """Both joints, and their derivatives by the crank angle, through the angles of coupler and rocker."""
        x, z = ground - crank * cos(phi), -crank * sin(phi)
        diagonal = np.hypot(x, z)
        at_first = np.arccos((coupler**2 + diagonal**2 - rocker**2) / (2 * coupler * diagonal))
        beta = np.arctan2(z, x) + at_first
        first = crank * np.array([cos(phi), sin(phi)])
        second = first + coupler * np.array([cos(beta), sin(beta)])
        gamma = np.arctan2(second[1], second[0] - ground)
        # crank e(phi)' + coupler beta' e(beta)' = rocker gamma' e(gamma)', multiplied by e(beta)
        gamma_rate = crank * sin(phi - beta) / (rocker * sin(gamma - beta))
        derivatives = [crank * np.array([-sin(phi), cos(phi)]), rocker * gamma_rate * np.array([-sin(gamma), cos(gamma)])]
        return np.concatenate([first, second]), np.concatenate(derivatives)

    def kinetic(v: np.ndarray) -> float:
        v1, v2 = v[:2], v[2:]
        middle = (v1 + v2) / 2  # each bar: its centre's motion, and its turning about the centre with m L^2 / 12
        bars = [(v1 / 2, v1), (middle, v2 - v1), (v2 / 2, v2)]
        return sum(mass * (centre @ centre / 2 + turn @ turn / 24) for mass, (centre, turn) in zip(masses, bars, strict=True))

    def potential(q: np.ndarray) -> float:
        return g * float(masses @ [q[1] / 2, (q[1] + q[3]) / 2, q[3] / 2])

    q0, by_angle = closure(angle)
    energy = kinetic(rate * by_angle) + potential(q0)

    def crank_rate(phi: float) -> float:
        q, derivative = closure(phi)
        return float(np.sqrt((energy - potential(q)) / kinetic(derivative)))

    phi = solve(lambda t, y: [crank_rate(y[0])], [angle], t1)[0]
    assert phi - angle > 2 * np.pi  # a full turn and more
    q, derivative = closure(phi)
    problem = da.problems.four_bar(ground, crank, coupler, rocker, *masses, g, angle, rate)
    run = end_of(problem, t1, 1600)
    assert np.max(np.abs(problem.q0 - q0)) < 1e-14
    assert run.energy[0] == pytest.approx(energy, rel=1e-14)
    assert_same(run, q=q, v=crank_rate(phi) * derivative)
