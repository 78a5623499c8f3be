"""Blades, wheels and rolling bodies against their motion in other variables.

References are closed forms, or equations of motion derived by hand (reduced, or Newton's and Euler's), integrated by SciPy's
DOP853; constants differ from the defaults and from one another, so that an exchanged or forgotten one shows.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy import cos, sin, tan
from problem_table import assert_closed_form, assert_ends_in, solve

import dalembert as da

METHOD = da.GaussLobattoSPARK(stages=3)


@pytest.mark.parametrize(
    "problem",
    [
        da.problems.skate(),
        da.problems.skate(m=1.3, l=0.8, g=1.7, omega=-1.4, speed=0.6),
        da.problems.knife_edge(),
        da.problems.knife_edge(m=1.3, J=0.4, g=1.7, omega=-1.4, speed=0.6),
        da.problems.appell_hamel(m=1.3, g=1.7, a=0.7, speed=0.6, heading=2.0),
        da.problems.simple_pendulum(m=1.3, l=0.8, gamma=1.7, angle=2.0),
    ],
    ids=lambda problem: problem.name,
)
def test_closed_forms(problem: da.problems.Problem) -> None:
    assert_closed_form(problem, 4.0, 400)


def test_skate_of_the_slides() -> None:
    """theta = t, centre (sin^2 t / 2, t/2 - sin 2t / 4), lam = 1/4, psi = -sin t; l = 2, as printed, contradicts q0."""
    problem, t = da.problems.skate(), 2.3
    assert np.array_equal(problem.q0, [-0.5, 0, 0.5, 0]) and np.array_equal(problem.v0, [0, -0.5, 0, 0.5])
    centre, half = np.array([sin(t) ** 2 / 2, t / 2 - sin(2 * t) / 4]), np.array([cos(t), sin(t)]) / 2
    known = problem.exact(t)
    assert np.max(np.abs(known["q"] - [*(centre - half), *(centre + half)])) < 1e-15
    assert known["lam"] == pytest.approx([0.25]) and known["psi"] == pytest.approx([-sin(t)])
    with pytest.raises(da.InconsistentStart, match=r"holonomic constraint g\[0\] by -1\.5"):
        da.simulate(problem.system, METHOD, q0=problem.q0, v0=problem.v0, h=0.1, steps=1, params={"l": 2.0})


def test_blades_that_do_not_turn_slide_straight_down() -> None:
    for problem, down in ((da.problems.skate(omega=0.0), [1, 0, 1, 0]), (da.problems.knife_edge(omega=0.0), [1, 0, 0])):
        assert problem.exact is None
        run = da.simulate(problem, METHOD, h=0.1, steps=20)
        assert np.max(np.abs(run.q[-1] - problem.q0 - 2.0 * np.array(down))) < 1e-13  # g t^2 / 2


def test_snakeboard_against_its_reduced_equation() -> None:
    m, J, J_r, J_w, l, a, b, w, speed, t1 = 1.3, 0.05, 0.03, 0.007, 0.3, 0.6, 0.8, 1.2, 0.4, 5.0  # noqa: E741

    def f(t: float, y: np.ndarray) -> list[float]:
        theta, u = y[2:]
        phi, phi_rate, torque = a * sin(w * t), a * w * cos(w * t), -J_r * b * w**2 * sin(w * t)
        turning = J + 2 * J_w
        pull = (turning * u * phi_rate / (l * cos(phi) ** 2) + torque) * tan(phi) / l
        return [u * cos(theta), u * sin(theta), u * tan(phi) / l, -pull / (m + turning * tan(phi) ** 2 / l**2)]

    x, y, theta, u = solve(f, [0.0, 0.0, 0.0, speed], t1)
    phi, rotor = a * sin(w * t1), b * sin(w * t1)
    problem = da.problems.snakeboard(m, J, J_r, J_w, l, a, b, w, speed)
    rate = u * tan(phi) / l
    v = [u * cos(theta), u * sin(theta), rate, b * w * cos(w * t1) - rate, a * w * cos(w * t1)]
    assert_ends_in(problem, t1, 500, q=[x, y, theta, rotor - theta, phi], v=v)


def test_car_with_trailer_against_its_energy() -> None:
    """One degree of freedom: the speed of the rear axle follows from the energy, the directions from the speed."""
    m, J, b, l, m1, J1, d, a, w, speed, fold, t1 = 1.3, 0.4, 0.3, 0.9, 0.6, 0.15, 1.1, 0.5, 1.2, 0.8, 0.3, 5.0  # noqa: E741

    def mass(phi: float, angle: float) -> float:
        return m + (J + m * b**2) * tan(phi) ** 2 / l**2 + m1 * cos(angle) ** 2 + J1 * sin(angle) ** 2 / d**2

    twice_energy = speed**2 * mass(0.0, fold)

    def f(t: float, y: np.ndarray) -> list[float]:
        theta, theta1, phi = y[2], y[3], a * sin(w * t)
        u = np.sqrt(twice_energy / mass(phi, theta - theta1))
        return [u * cos(theta), u * sin(theta), u * tan(phi) / l, u * sin(theta - theta1) / d]

    q = solve(f, [0.0, 0.0, 0.0, -fold], t1)
    assert_ends_in(da.problems.car_with_trailer(m, J, b, l, m1, J1, d, a, w, speed, fold), t1, 500, q=q, v=f(t1, q))


def test_rolling_disk_against_the_equations_of_newton_and_euler() -> None:
    """In the frame (e, a, u) of heading, axis and upward radius: torque -R u x F with F = m (v_c' + g e_z), v_c = R w x u."""
    m, R, A, C, g, t1 = 1.3, 0.8, 0.25, 0.45, 1.7, 5.0
    lean, lean_rate, yaw_rate, roll_rate = 0.35, -0.2, 0.6, 2.4

    def f(t: float, y: np.ndarray) -> list[float]:
        theta, phi, w_e, w_a, w_u = y[2], y[3], *y[5:]
        frame = np.array([w_e, -w_u * tan(theta), w_u])  # the angular velocity of (e, a, u)
        spun = np.cross(frame, [A * w_e, C * w_a, A * w_u])
        carried = np.cross(frame, [R * w_a, -R * w_e, 0.0])
        w_e_rate = (-spun[0] + R * m * (carried[1] - g * sin(theta))) / (A + m * R**2)
        w_a_rate = (-spun[1] - R * m * carried[0]) / (C + m * R**2)
        phi_rate = w_u / cos(theta)
        psi_rate = w_a + phi_rate * sin(theta)
        rolling = [R * psi_rate * cos(phi), R * psi_rate * sin(phi)]
        return [*rolling, -w_e, phi_rate, psi_rate, w_e_rate, w_a_rate, -spun[2] / A]

    w = [-lean_rate, roll_rate - yaw_rate * sin(lean), yaw_rate * cos(lean)]
    y = solve(f, [0.0, 0.0, lean, 0.0, 0.0, *w], t1)
    problem = da.problems.rolling_disk(m, R, A, C, g, lean, lean_rate, yaw_rate, roll_rate)
    assert_ends_in(problem, t1, 1000, q=y[:5], v=f(t1, y)[:5])


@pytest.mark.parametrize(("factor", "stable"), [(0.95, False), (1.05, True)])
def test_rolling_upright_is_stable_above_the_stated_speed(factor: float, stable: bool) -> None:
    m, R, A, C, g = 1.3, 0.8, 0.25, 0.45, 1.7
    critical = np.sqrt(A * m * g * R / (C * (C + m * R**2)))
    problem = da.problems.rolling_disk(m, R, A, C, g, lean=1e-5, yaw_rate=0.0, roll_rate=factor * critical)
    lean = np.abs(da.simulate(problem, METHOD, h=0.1, steps=300).q[:, 2]).max()
    assert lean < 1e-3 if stable else lean > 0.1


def test_ball_on_turntable_moves_on_a_circle_and_turns_as_its_contact_demands() -> None:
    m, r, I, Omega, x, y, v_x, v_y, spin, t1 = 1.3, 0.4, 0.1, 1.7, 0.8, -0.3, 0.5, 0.7, 0.6, 5.0  # noqa: E741
    rate = Omega * I / (I + m * r**2)

    def on_circle(t: float) -> tuple[complex, complex]:
        w, w1 = complex(x, y), complex(v_x, v_y)
        return w + w1 * (np.exp(1j * rate * t) - 1) / (1j * rate), w1 * np.exp(1j * rate * t)

    def f(t: float, Q: np.ndarray) -> np.ndarray:
        """Q' = w Q / 2 with w_x + i w_y from the velocity of the point of contact."""
        w, w1 = on_circle(t)
        turning = (1j * w1 + Omega * w) / r
        vector = np.array([turning.real, turning.imag, spin])
        return np.array([-vector @ Q[1:], *(Q[0] * vector + np.cross(vector, Q[1:]))]) / 2

    Q = solve(f, [1.0, 0.0, 0.0, 0.0], t1)
    w, w1 = on_circle(t1)
    problem = da.problems.ball_on_turntable(m, r, I, Omega, x, y, v_x, v_y, spin)
    run = assert_ends_in(problem, t1, 500, q=[w.real, w.imag, *Q], v=[w1.real, w1.imag, *f(t1, Q)])
    assert np.ptp(run.energy) > 0.1  # the table does work


def test_homogeneous_ball_is_back_after_seven_half_turns_of_the_table() -> None:
    problem = da.problems.ball_on_turntable()
    run = da.simulate(problem, METHOD, h=7 * np.pi / 2 / 700, steps=700)  # Omega = 2
    assert np.max(np.abs(run.q[-1, :2] - problem.q0[:2])) < 1e-9
    assert np.max(np.abs(run.v[-1, :2] - problem.v0[:2])) < 1e-9


def test_pendulum_of_varying_length_against_its_angle() -> None:
    """A holonomic constraint that depends on time, without damping: l a'' = -g sin a - 2 l' a'."""
    m, l, g, amplitude, w, angle, t1 = 1.3, 0.8, 1.7, 0.2, 2.3, 1.0, 5.0  # noqa: E741

    def length(t: float) -> tuple[float, float]:
        return l * (1 + amplitude * sin(w * t)), l * amplitude * w * cos(w * t)

    def f(t: float, y: np.ndarray) -> list[float]:
        r, r1 = length(t)
        return [y[1], (-g * sin(y[0]) - 2 * r1 * y[1]) / r]

    a, a1 = solve(f, [angle, 0.0], t1)
    r, r1 = length(t1)
    along, across = np.array([sin(a), -cos(a)]), np.array([cos(a), sin(a)])
    problem = da.problems.pendulum_of_varying_length(m=m, l=l, g=g, c=0.0, amplitude=amplitude, frequency=w, angle=angle)
    assert_ends_in(problem, t1, 500, q=r * along, v=r1 * along + r * a1 * across)
