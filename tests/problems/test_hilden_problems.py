"""Vehicles, oscillators, rolling solids and DAEs of index 2 against references.

References are closed forms, theorems, or equations of motion derived by hand (reduced, or Newton's and Euler's), integrated by
SciPy's DOP853; constants differ from the defaults and from one another, so that an exchanged or forgotten one shows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy import cos, sin, sqrt, tan
from problem_table import assert_closed_form, assert_ends_in, solve, start_of

import dalembert as da
from dalembert.problems.vehicles import LIGHT_SLEIGH

METHOD = da.GaussLobattoSPARK(stages=2)


@pytest.mark.parametrize(
    "problem",
    [
        da.problems.vertical_disk(),
        da.problems.vertical_disk(m=1.3, J=0.7, I=0.6, R=0.4, phi=0.5, turning=-1.4, rolling=0.8),
        da.problems.contact_oscillator(b=0.0, E0=1.3, z0=0.4, vz0=0.2),
    ],
    ids=lambda problem: problem.name,
)
def test_closed_forms(problem: da.problems.Problem) -> None:
    assert_closed_form(problem, 4.0, 200)


def test_vertical_disk_has_the_constants_and_the_start_of_the_thesis() -> None:
    """Sections 2.3.1 and 3.3.4: lambda_0 = (0, 1/2), which is -psi."""
    problem = da.problems.vertical_disk()
    assert problem.system.params == {"m": 1.0, "J": 1.0, "I": 1.0, "R": 0.25}
    assert np.array_equal(problem.q0, np.zeros(4)) and np.array_equal(problem.v0, [0.25, 0.0, 2.0, 1.0])
    assert start_of(problem).psi == pytest.approx([0.0, -0.5], abs=1e-15)


def test_vertical_disk_that_does_not_turn_rolls_straight_on() -> None:
    problem = da.problems.vertical_disk(turning=0.0, phi=0.5)
    assert problem.exact is None
    run = da.simulate(problem, METHOD, h=0.1, steps=20)
    assert np.max(np.abs(run.q[-1] - [0.5 * cos(0.5), 0.5 * sin(0.5), 0.5, 2.0])) < 1e-13


def test_sleigh_has_both_sets_of_constants_of_the_thesis() -> None:
    """Section 4.5: lambda_0 = 1/20. Section 4.2.3: v = 0, and lambda_0 from (4.4)."""
    own = da.problems.chaplygin_sleigh()
    assert own.system.params == {"m": 1.0, "a": 1.0, "I": 1.0, "g": 0.1} and own.h == 0.12
    assert np.array_equal(own.q0, [1.0, 0.0, 0.0]) and np.array_equal(own.v0, np.zeros(3))
    assert start_of(own).psi == pytest.approx([-1 / 20], abs=1e-16)
    light = da.problems.chaplygin_sleigh(**LIGHT_SLEIGH)
    assert light.system.params == {"m": 0.001, "a": 0.04, "I": 0.01, "g": 9.8}
    assert np.array_equal(light.q0, [1.0, 0.0, 0.2]) and np.array_equal(light.v0, np.zeros(3))
    lam = 9.8 * cos(0.2) / (0.04**2 / 0.01 + 1 / 0.001)
    assert start_of(light).psi == pytest.approx([-lam], rel=1e-13)


def test_sleigh_against_its_reduced_equations() -> None:
    """In the speed u along the blade and the rate w of turning, with the reaction -(dk/dv)^T psi across the blade."""
    m, a, I, g, t1 = 1.3, 0.7, 0.6, 0.4, 5.0  # noqa: E741
    x, y, theta, speed, turning = 0.5, -0.2, 0.4, 0.6, 0.9

    def f(t: float, s: np.ndarray) -> list[float]:
        _, _, angle, u, w = s
        turn = -m * a * (u * w + g * cos(angle)) / (I + m * a**2)
        return [u * cos(angle), u * sin(angle), w, a * w**2 - g * sin(angle), turn]

    end = solve(f, [x, y, theta, speed, turning], t1)
    rates = f(t1, end)
    # across the blade: m (u w + a w') = -m g cos(theta) - psi
    psi = -m * (end[3] * end[4] + a * rates[4] + g * cos(end[2]))
    problem = da.problems.chaplygin_sleigh(m, a, I, g, x, y, theta, speed, turning)
    assert_ends_in(problem, t1, 200, q=end[:3], v=rates[:3], psi=[psi])


def test_sleigh_on_the_level_ends_up_going_straight_ahead() -> None:
    """Chaplygin's theorem: u^2 + (I + m a^2) w^2 / m is constant, and w tends to zero with u > 0."""
    problem = da.problems.chaplygin_sleigh(g=0.0, speed=-0.5, turning=0.7)
    run = da.simulate(problem, da.GaussLobattoSPARK(stages=3), h=0.1, steps=400)
    u = run.v[:, 0] * cos(run.q[:, 2]) + run.v[:, 1] * sin(run.q[:, 2])
    assert u[0] == pytest.approx(-0.5) and abs(run.v[-1, 2]) < 1e-6
    assert u[-1] == pytest.approx(sqrt(0.5**2 + 2 * 0.7**2), abs=1e-6)


def test_skateboard_against_kanes_equations() -> None:
    """In the speed u and the lean rate w, with v_theta = sigma u, sigma = tan(pivot) sin(gamma) / a."""
    m, l, J, I, a, k, g, pivot, t1 = 1.3, 0.9, 0.15, 0.25, 0.6, 0.5, 1.2, 0.6, 5.0  # noqa: E741
    lean, lean_rate, speed = 0.25, -0.1, 1.4
    c = tan(pivot) / a

    def f(t: float, s: np.ndarray) -> np.ndarray:
        _, _, theta, gamma, u, w = s
        sn, cs = sin(gamma), cos(gamma)
        sigma, sigma1 = c * sn, c * cs * w  # and its rate
        reach, reach1 = 1 - l * sigma * sn, -l * (sigma1 * sn + sigma * cs * w)
        # m a_e reach + I (sigma u)' sigma = 0 with a_e = (reach u)' - l cos(gamma) w sigma u
        known = m * reach * (reach1 * u - l * cs * w * sigma * u) + I * sigma * sigma1 * u
        u1 = -known / (m * reach**2 + I * sigma**2)
        # m (a_n l cos - a_z l sin) + J w' + k gamma - m g l sin = 0 with a_n = reach sigma u^2 + (l cos w)', a_z = -(l sin w)'
        force = m * l * cs * reach * sigma * u**2 + k * gamma - m * g * l * sn
        return np.array([u * cos(theta), u * sin(theta), sigma * u, w, u1, -force / (J + m * l**2)])

    end = solve(f, [0, 0, 0, lean, speed, lean_rate], t1)
    problem = da.problems.skateboard(m, l, J, I, a, k, g, pivot, lean, lean_rate, speed)
    assert_ends_in(problem, t1, 2000, METHOD, q=end[:4], v=f(t1, end)[:4])


@pytest.mark.parametrize(("factor", "stable"), [(0.95, False), (1.05, True)])
def test_skateboard_is_stable_above_the_stated_speed(factor: float, stable: bool) -> None:
    m, l, a, k, g, pivot = 1.0, 1.0, 0.5, 0.4, 1.0, 0.7  # noqa: E741
    critical = sqrt((m * g * l - k) * a / (m * l * tan(pivot)))
    problem = da.problems.skateboard(lean=1e-4, speed=factor * critical)
    lean = np.abs(da.simulate(problem, METHOD, h=0.1, steps=300).q[:, 3]).max()
    assert lean < 2e-3 if stable else lean > 1e-2


def test_contact_oscillator_starts_with_its_energy_for_any_b() -> None:
    """2 E0 - (1 + b^2) v_z^2 - z^2 - b^2: as printed, (4.8) and (4.13) hold for b = 1 only."""
    for b in (0.5, 1.0, 1.2):
        for problem in (
            da.problems.contact_oscillator(b=b, E0=2.0, z0=0.6, vz0=0.4),
            da.problems.perturbed_contact_oscillator(eps=0.8, b=b, E0=2.0, z0=0.6, vz0=0.4),
        ):
            assert problem.system.evaluate("H", 0.0, problem.q0, problem.v0).item() == pytest.approx(2.0, abs=1e-15)
    printed = sqrt(2 * 1.5 - 2 * 0.3**2 - 0.5**2 - 1)
    assert da.problems.contact_oscillator(z0=0.5, vz0=0.3).q0[0] == pytest.approx(printed, abs=1e-15)
    assert da.problems.perturbed_contact_oscillator(0.8, z0=0.5, vz0=0.3).q0[0] == pytest.approx(
        printed / sqrt(1 + 0.8 * 0.25), abs=1e-15
    )


def contact_rates(b: float, eps: float) -> Callable[[float, np.ndarray], list[float]]:
    """(x, z, v_z) with y = b cos t and lambda of (4.6), (4.11), where the printed -y' z is -y' z'."""

    def f(t: float, s: np.ndarray) -> list[float]:
        x, z, v_z = s
        y, v_y = b * cos(t), -b * sin(t)
        lam = (x + y * z - v_y * v_z + eps * (x * z**2 + x**2 * y * z)) / (1 + y**2)
        return [-y * v_z, v_z, lam * y - z - eps * x**2 * z]

    return f


@pytest.mark.parametrize("eps", [0.0, 0.8])
def test_contact_oscillators_against_their_reduced_equations(eps: float) -> None:
    b, E0, z0, vz0, t1 = 0.9, 1.7, 0.6, 0.3, 6.0
    make = da.problems.perturbed_contact_oscillator
    problem = make(eps, b, E0, z0, vz0) if eps else da.problems.contact_oscillator(b, E0, z0, vz0)
    x, z, v_z = solve(contact_rates(b, eps), [problem.q0[0], z0, vz0], t1)
    y, v_y = b * cos(t1), -b * sin(t1)
    lam = (x + y * z - v_y * v_z + eps * (x * z**2 + x**2 * y * z)) / (1 + y**2)
    assert_ends_in(problem, t1, 300, q=[x, y, z], v=[-y * v_z, v_y, v_z], psi=[-lam])


def test_particles_of_one_plane_reduce_to_a_perturbed_contact_oscillator_and_a_free_motion() -> None:
    """With y_2 = z_2 = 0 at rest, the second particle stays, and (x, y_1, z_1) has the potential eps y^2 z^2 / 2."""
    system = da.problems.nonholonomic_particles(n=2, coupling=0.7).system

    def f(t: float, s: np.ndarray) -> list[float]:
        x, y, z, v_y, v_z = s
        lam = (x + y * z + 0.7 * y**3 * z - v_y * v_z) / (1 + y**2)
        return [-y * v_z, v_y, v_z, -y - 0.7 * y * z**2, lam * y - z - 0.7 * y**2 * z]

    x, y, z, v_y, v_z = solve(f, [0.4, 0.8, 0.5, 0.2, 0.3], 5.0)
    run = da.simulate(
        system,
        da.SRK("gauss", 3),
        q0=[0.4, 0.8, 0, 0.5, 0],
        v0=[-0.24, 0.2, 0, 0.3, 0],
        h=0.025,
        steps=200,
        params={"coupling": 0.7},
    )
    assert np.max(np.abs(run.q[-1] - [x, y, 0, z, 0])) < 1e-9
    assert np.max(np.abs(run.v[-1] - [-y * v_z, v_y, 0, v_z, 0])) < 1e-9


def test_particles_against_the_equations_with_the_multiplier_eliminated() -> None:
    n, coupling = 3, 0.8
    problem = da.problems.nonholonomic_particles(n, coupling)

    def f(t: float, s: np.ndarray) -> np.ndarray:
        x, y, z = s[0], s[1 : n + 1], s[n + 1 : 2 * n + 1]
        v_y, v_z = s[2 * n + 2 : 3 * n + 2], s[3 * n + 2 :]
        pull_z = z + coupling * y**2 * z
        pull_z[:2] += coupling * z[:2] * z[1::-1] ** 2
        # 0 = v_x' + y.v_z' + v_y.v_z with v_x' = -x + lam, v_z' = -pull_z + lam y
        lam = (x + y @ pull_z - v_y @ v_z) / (1 + y @ y)
        return np.concatenate([[-y @ v_z], v_y, v_z, [lam - x], -y - coupling * y * z**2, lam * y - pull_z])

    end = solve(f, np.concatenate([problem.q0, problem.v0]), 5.0)
    assert_ends_in(problem, 5.0, 250, da.SRK("gauss", 3), q=end[: 2 * n + 1], v=end[2 * n + 1 :])


def test_transmission_against_its_reduced_equation() -> None:
    J1, J2, k1, k2, m, k, R, slope, t1 = 1.3, 0.8, 0.9, 0.6, 1.4, 2.3, 1.1, 0.5, 5.0
    shift, angle, speed = 0.7, 0.8, 0.4
    w = sqrt(k / m)

    def radii(t: float) -> tuple[float, float, float]:
        s = shift * cos(w * t)
        return R - slope * s, R + slope * s, -slope * shift * w * sin(w * t)

    def f(t: float, x: np.ndarray) -> list[float]:
        a, b, u = x
        first, second, rate = radii(t)
        D, half_rate = J1 * first**2 + J2 * second**2, (J2 * second - J1 * first) * rate
        return [first * u, second * u, (-k1 * a * first - k2 * b * second - half_rate * u) / D]

    a, b, u = solve(f, [angle, 0.0, speed], t1)
    first, second, _ = radii(t1)
    problem = da.problems.continuously_variable_transmission(J1, J2, k1, k2, m, k, R, slope, shift, angle, speed)
    s, v_s = shift * cos(w * t1), -shift * w * sin(w * t1)
    assert_ends_in(problem, t1, 250, q=[a, b, s], v=[first * u, second * u, v_s])


def quaternion_rate(w: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """w Q / 2, with w in space."""
    return np.array([-w @ Q[1:], *(Q[0] * w + np.cross(w, Q[1:]))]) / 2


def test_ball_in_bowl_against_newton_and_euler() -> None:
    """I w' = r n x F with F = m (v' + g e_z) and v = r n x w; w.n is conserved."""
    m, r, I, R, g, angle, speed, spin, t1 = 1.3, 0.35, 0.05, 1.5, 1.2, 0.7, 0.6, 2.5, 4.0  # noqa: E741
    rho, up = R - r, np.array([0.0, 0.0, 1.0])

    def angular_velocity(s: np.ndarray) -> np.ndarray:
        n = s[:3] / rho
        return spin * n - np.cross(n, s[3:6]) / r

    def f(t: float, s: np.ndarray) -> np.ndarray:
        n, v = s[:3] / rho, s[3:6]
        inertia = I + m * r**2
        fall = m * r**2 * g * (up - n[2] * n) / inertia + I * r * spin * np.cross(n, v) / (rho * inertia)
        return np.concatenate([v, -(v @ v) / rho * n - fall, quaternion_rate(angular_velocity(s), s[6:])])

    problem = da.problems.ball_in_bowl(m, r, I, R, g, angle, speed, spin)
    end = solve(f, [*problem.q0[:3], 0.0, speed, 0.0, 1.0, 0.0, 0.0, 0.0], t1)
    q = np.concatenate([end[:3], end[6:]])
    v = np.concatenate([end[3:6], quaternion_rate(angular_velocity(end), end[6:])])
    assert_ends_in(problem, t1, 4000, METHOD, q=q, v=v)


def test_rattleback_against_newton_and_euler_in_its_own_frame() -> None:
    """J W' + W x J W = s x F, F = m (v' + W x v + g u), v = -W x s, u' = u x W, all in the frame of the body."""
    m, A, B, C, D, a, b, c, d, g, t1 = 1.2, 2.4e-4, 1.5e-3, 1.6e-3, -4e-5, 0.19, 0.032, 0.021, 0.008, 9.7, 0.3
    roll, pitch, spin = 0.03, 0.02, -5.0
    J, squares = np.array([[A, D, 0], [D, B, 0], [0, 0, C]]), np.array([a, b, c]) ** 2

    def rotation(Q: np.ndarray) -> np.ndarray:
        cross = np.array([[0, -Q[3], Q[2]], [Q[3], 0, -Q[1]], [-Q[2], Q[1], 0]])
        return np.eye(3) + 2 * Q[0] * cross + 2 * cross @ cross

    def contact(u: np.ndarray) -> np.ndarray:
        return -squares * u / sqrt(u @ (squares * u)) + np.array([0, 0, d])

    def f(t: float, y: np.ndarray) -> np.ndarray:
        Q, W = y[2:6], y[6:]
        R = rotation(Q)
        u = R[2]
        N, s = sqrt(u @ (squares * u)), contact(u)
        u1 = np.cross(u, W)
        s1 = -squares * u1 / N + squares * u * (u @ (squares * u1)) / N**3
        v = -np.cross(W, s)
        known = m * np.cross(s, -np.cross(W, s1) + np.cross(W, v) + g * u) - np.cross(W, J @ W)
        inertia = J + m * (s @ s * np.eye(3) - np.outer(s, s))
        return np.concatenate([(R @ v)[:2], quaternion_rate(R @ W, Q), np.linalg.solve(inertia, known)])

    problem = da.problems.rattleback(m, A, B, C, D, a, b, c, d, g, roll, pitch, spin)
    half = np.array([roll, pitch]) / 2
    Q0 = [cos(half[0]) * cos(half[1]), sin(half[0]) * cos(half[1]), cos(half[0]) * sin(half[1]), sin(half[0]) * sin(half[1])]
    assert np.max(np.abs(problem.q0[3:] - Q0)) < 1e-16
    end = solve(f, [0.0, 0.0, *Q0, 0.0, 0.0, spin], t1)
    u = rotation(end[2:6])[2]
    run = assert_ends_in(problem, t1, 3000, METHOD, q=[*end[:2], -contact(u) @ u, *end[2:6]])
    assert np.max(np.abs(run.v[-1, :2] - f(t1, end)[:2])) < 1e-8


def test_rattleback_turns_back_only_when_spun_the_wrong_way() -> None:
    """Kane and Levinson: with their constants a negative spin reverses, a positive one of the same size does not."""
    spins = {}
    for spin in (-5.0, 5.0):
        run = da.simulate(da.problems.rattleback(spin=spin), METHOD, h=0.001, steps=5000, save_every=50)
        e, v = run.q[:, 3:].T, run.v[:, 3:].T
        spins[spin] = 2 * (e[0] * v[3] - e[3] * v[0] - e[1] * v[2] + e[2] * v[1])
    assert spins[-5.0].max() > 2.0
    assert spins[5.0].min() > 2.0


# -- DAEs of index 2 -----------------------------------------------------------------------------------------------------

GROWTH = [da.problems.index_two_growth, da.problems.index_two_growth_in_parts]


@pytest.mark.parametrize("make", GROWTH)
def test_growth_problems_solve_their_equations(make: Callable[[], da.problems.Problem]) -> None:
    """y' = f at the stated solution, for all times: y_1' = y_1, y_2' = -2 y_2; and the start is on its branch."""
    problem = make()
    assert problem.exact is not None
    for t in (0.0, 0.4, 1.3):
        known = problem.exact(t)
        rate = problem.system.evaluate("f", t, [], known["y"], known["z"])
        assert np.max(np.abs(rate - known["y"] * [1, -2])) < 2e-14
        assert np.max(np.abs(problem.system.evaluate("k", t, [], known["y"]))) < 1e-15
    assert problem.exact(np.zeros(3))["y"].shape == (3, 2)
    run = da.simulate(problem, da.SRK("gauss", stages=3))
    assert np.max(np.abs(run.y - problem.exact(run.t)["y"])) < 1e-8
    assert np.max(np.abs(run.z - problem.exact(run.t)["z"])) < 1e-7
    assert problem.name == make.__name__ and problem.labels == ("y1", "y2") and problem.drawing is None


def test_growth_has_a_second_branch() -> None:
    """On g = 0 the hidden constraint has the roots 1/y_2 and 1/(2 y_2): the wrong guess leads to the other solution."""
    system = da.problems.index_two_growth().system
    right, wrong = (da.consistent(system, y0=[1, 1], z0=[z]).z[0] for z in (1.0, 0.4))
    assert right == pytest.approx(1.0, abs=1e-14) and wrong == pytest.approx(0.5, abs=1e-14)
