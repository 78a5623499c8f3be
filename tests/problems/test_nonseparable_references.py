"""Nonseparable problems against equations of motion in other coordinates, written here by hand and solved by DOP853."""

from __future__ import annotations

import numpy as np
import pytest
from numpy import cos, sin
from problem_table import end_of, solve

import dalembert as da


@pytest.mark.parametrize("beta", [3.2, 5.2])
def test_cart_pendulum_and_its_exact_solution_against_the_forces_on_its_two_masses(beta: float) -> None:
    m1, m2, l, g, t1 = 1.3, 0.4, 1.7, 9.0, 1.2  # noqa: E741

    def f(t: float, y: np.ndarray) -> list[float]:
        # The cart feels its weight and the rod's tension T; along the rod l theta'^2 = T / m2 - (g + y'') cos(theta).
        _, theta, y_dot, theta_dot = y
        T = l * theta_dot**2 / (1 / m2 + cos(theta) ** 2 / m1)
        y_ddot = -g - T * cos(theta) / m1
        return [y_dot, theta_dot, y_ddot, -(g + y_ddot) * sin(theta) / l]

    problem = da.problems.cart_pendulum(m1, m2, l, g, beta)
    y, theta, y_dot, theta_dot = solve(f, [beta, 0.0, 0.0, 3.5 - 0.18 * beta], t1)
    right = {
        "q": np.array([y, theta]),
        "p": np.array(
            [(m1 + m2) * y_dot + m2 * l * sin(theta) * theta_dot, m2 * l * sin(theta) * y_dot + m2 * l**2 * theta_dot]
        ),
    }
    run = end_of(problem, t1, 600)
    assert problem.exact is not None
    for name, value in right.items():
        assert np.max(np.abs(problem.exact(t1)[name] - value)) < 1e-11, name
        assert np.max(np.abs(getattr(run, name)[-1] - value)) < 1e-10, name
    assert problem.exact(run.t)["q"].shape == run.q.shape


def test_double_pendulum_in_angles_against_the_constrained_one() -> None:
    constants, t1 = (1.2, 0.7, 0.9, 1.3, 1.1), 4.0
    _, _, l1, l2, _ = constants
    (a, b), (u, v) = (getattr(end_of(da.problems.double_pendulum_in_angles(*constants), t1, 500), x)[-1] for x in "qv")
    points = end_of(da.problems.double_pendulum(*constants), t1, 500)
    first, second = l1 * np.array([sin(a), -cos(a)]), l2 * np.array([sin(b), -cos(b)])
    assert np.max(np.abs(points.q[-1] - [*first, *(first + second)])) < 1e-10
    first, second = l1 * u * np.array([cos(a), sin(a)]), l2 * v * np.array([cos(b), sin(b)])
    assert np.max(np.abs(points.v[-1] - [*first, *(first + second)])) < 1e-10


def test_magnetic_field_against_the_lorentz_force() -> None:
    m, e, b, c, t1 = 1.3, 0.8, 1.7, 0.03, 20.0

    def f(t: float, y: np.ndarray) -> np.ndarray:
        q, v = y[:3], y[3:]
        r = np.hypot(q[0], q[1])
        B, E = np.array([0.0, 0.0, b * r]), c / r**3 * np.array([q[0], q[1], 0.0])
        return np.concatenate([v, e / m * (np.cross(v, B) + E)])

    problem = da.problems.particle_in_magnetic_field(m, e, b, c)
    y = solve(f, [*problem.q0, *problem.v0], t1)
    run = end_of(problem, t1, 1000)
    assert np.max(np.abs(run.q[-1] - y[:3])) < 1e-10
    assert np.max(np.abs(run.v[-1] - y[3:])) < 1e-10


def test_rod_on_spring_against_newton_and_euler() -> None:
    m, l, g, k, r, t1 = 1.2, 0.8, 1.1, 15.0, 0.9, 5.0  # noqa: E741
    problem = da.problems.rod_on_spring(m, l, g, k, r)

    def centre(rho: float, a: float, b: float) -> np.ndarray:
        return rho * np.array([sin(a), -cos(a)]) + l / 2 * np.array([sin(b), -cos(b)])

    def f(t: float, y: np.ndarray) -> list[float]:
        """The spring pulls the upper end A of a free rod with centre C and angle b towards the origin."""
        C, b = y[:2], y[2]
        arm = l / 2 * np.array([-sin(b), cos(b)])
        A = C + arm
        force = -k * (np.hypot(*A) - r) * A / np.hypot(*A)
        torque = arm[0] * force[1] - arm[1] * force[0]
        return [*y[3:], force[0] / m, force[1] / m - g, 12 * torque / (m * l**2)]

    y = solve(f, [*centre(*problem.q0), problem.q0[2], 0.0, 0.0, 0.0], t1)
    run = end_of(problem, t1, 2000)
    assert np.max(np.abs(centre(*run.q[-1]) - y[:2])) < 1e-10
    assert abs(run.q[-1, 2] - y[2]) < 1e-10
    assert abs(run.v[-1, 2] - y[5]) < 1e-10
