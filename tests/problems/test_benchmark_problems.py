"""Problems of the field's benchmark collections against the digits that were published with them.

Published values are those of the Test Set for Initial Value Problem Solvers (Bari), release 2.4. What is wrong in them from
some digit on is said beside the test.
"""

from __future__ import annotations

import numpy as np
import pytest
from problem_table import start_of
from published_digits import ANDREWS, CAR_AXIS, CRANK_U, FEKETE_Z, PLEIADES_Q, PLEIADES_V, WHEELSET
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.experiments.benchmarks._references import reference
from dalembert.problems.railway import Contact


def test_car_axis_at_its_published_time():
    run = da.simulate(da.problems.car_axis(), da.LobattoIIIAB(6), h=0.01, t1=3.0)
    found = [*run.q[-1], *run.v[-1], *-run.lam[-1]]
    np.testing.assert_allclose(found[:4], CAR_AXIS[:4], rtol=0, atol=1e-11)
    np.testing.assert_allclose(found[4:], CAR_AXIS[4:], rtol=0, atol=1e-9)


def test_andrews_in_angles_at_its_published_time():
    """The published digits are right to nine places only: orders 8 and 10 agree with each other to twelve, see benchmarks."""
    run = da.simulate(da.problems.andrews_in_angles(), da.LobattoIIIAB(5), h=2e-5, t1=0.03)
    np.testing.assert_allclose(run.q[-1], ANDREWS[:7], rtol=0, atol=3e-9)
    np.testing.assert_allclose(run.v[-1], ANDREWS[7:14], rtol=1e-7)
    np.testing.assert_allclose(run.lam[-1], ANDREWS[14:], rtol=2e-6)


def test_andrews_by_its_bodies_and_in_angles_is_the_same_machine():
    angles, bodies = da.problems.andrews_in_angles(), da.problems.andrews_squeezer()
    one, other = (da.simulate(problem, da.LobattoIIIAB(4), h=3e-5, t1=0.006) for problem in (angles, bodies))
    turned = other.q[:, 2::3] - other.q[0, 2::3]
    beta, theta, gamma, phi, delta, omega, epsilon = (one.q - one.q[0]).T
    expected = np.stack([beta, beta + theta, gamma, phi + delta, delta, omega + epsilon, epsilon], axis=1)
    np.testing.assert_allclose(turned, expected, atol=1e-8)
    assert np.ptp(beta) > 0.1


def test_pleiades_at_its_published_time():
    run = da.simulate(da.problems.pleiades(), da.LobattoIIIAB(5), h=3e-4, t1=3.0, save_every=10_000)
    np.testing.assert_allclose(run.q[-1].reshape(7, 2).T, PLEIADES_Q, atol=1e-9)
    np.testing.assert_allclose(run.v[-1].reshape(7, 2).T, PLEIADES_V, atol=1e-8)


def test_elastic_slider_crank_starts_with_the_published_accelerations():
    """Of the published program, at its start, which the constraints change in the ninth digit."""
    problem = da.problems.elastic_slider_crank()
    state, system = start_of(problem), problem.system
    theta = state.theta
    rate = lambda x: system.evaluate("z_dot", 0.0, state.q, x, state.lam, state.psi, theta=theta)  # noqa: E731
    M = np.array([system.evaluate("L_v", 0.0, state.q, e, theta=theta) for e in np.eye(7)])
    L_v = lambda q, v: system.evaluate("L_v", 0.0, q, v, theta=theta)  # noqa: E731
    d = 1e-6
    along = (L_v(state.q + d * state.v, state.v) - L_v(state.q - d * state.v, state.v)) / (2 * d)  # dp = M dv + p_q v
    published = [0, -1.344541576008661e-3, -5.062194923138079e3, -6.833142732779555e-5, 1.449382650173157e-8,
                 -4.268463211410861, 2.098334687947376e-1]  # fmt: skip
    np.testing.assert_allclose(np.linalg.solve(M, rate(state.p) - along), published, rtol=1e-5, atol=2e-3)
    np.testing.assert_allclose(state.lam, [-6.397251492537153e-08, 3.824589508329281e2, -4.376060460948886e-09], atol=1e-4)


def test_elastic_slider_crank_on_its_way():
    """The elastic coordinates on the way against SciPy's DOP853 on the system without multipliers."""
    problem = da.problems.elastic_slider_crank()
    run = da.simulate(problem, da.LobattoIIIAB(4), h=2e-5, t1=0.01)
    other = da.reduce_index(problem).simulate("DOP853", t1=0.01, rtol=1e-11, atol=1e-12, multipliers="eliminated")
    np.testing.assert_allclose(run.q[-1], other.q[-1], rtol=1e-6, atol=1e-10)


@pytest.mark.slow
def test_elastic_slider_crank_at_its_published_time():
    """The published elastic coordinates are right to seven digits."""
    run = da.simulate(da.problems.elastic_slider_crank(), da.LobattoIIIAB(5), h=1e-5, t1=0.1)
    np.testing.assert_allclose(run.q[-1], reference("slider_crank"), rtol=1e-9)
    assert run.q[-1, 1] == pytest.approx(-0.3311734988256260, abs=1e-12)
    np.testing.assert_allclose(run.q[-1, 3:], CRANK_U, rtol=1e-7)


def test_fekete_points_repel_each_other():
    """Force and multipliers at the start as the test set writes them: 2 lam_i = -sum_j p_i . (p_i - p_j) / |p_i - p_j|^2."""
    problem = da.problems.fekete()
    state = start_of(problem)
    p = state.q.reshape(20, 3)
    way = p[:, None] - p[None]
    f = np.sum(way / (np.sum(way**2, axis=2) + np.eye(20))[..., None], axis=1)
    lam = -np.sum(p * f, axis=1) / 2
    np.testing.assert_allclose(state.lam, -lam, atol=1e-13)
    found = problem.system.evaluate("z_dot", 0.0, state.q, state.p, state.lam, state.psi, theta=state.theta)
    np.testing.assert_allclose(found.reshape(20, 3), f + 2 * lam[:, None] * p, atol=1e-13)


@pytest.mark.slow
def test_fekete_points_at_their_published_time():
    run = da.simulate(da.problems.fekete(), da.RadauIIA(3, projected=True), h=0.05, t1=1000.0, save_every=20_000)
    np.testing.assert_allclose(run.q[-1, 2::3], FEKETE_Z, atol=1e-8)
    np.testing.assert_allclose(run.lam[-1], 4.75, atol=1e-10)


def test_wheelset_starts_with_the_published_accelerations():
    problem = da.problems.wheelset()
    state = start_of(problem)
    rate = problem.system.evaluate("z_dot", 0.0, state.first, state.second, state.lam, problem.z0, theta=state.theta)
    published = [-1.975258894011285, -1.0898297102811276e-03, 7.8855083626142589e-02, -5.533362821731549, -0.3487021489546511,
                 -2.132968724380927]  # fmt: skip
    np.testing.assert_allclose(rate[5:], published, rtol=1e-10)
    np.testing.assert_allclose(state.psi, [-8.3593e-3, -7.4144e-3], atol=5e-7)


def test_points_of_contact_of_the_wheelset_are_those_of_the_test_set():
    p = np.array([0.14941e-2, 0.40089e-6, 0.11241e-5, -0.28573e-3, 0.26459e-3])
    left, right = Contact.at(p, 1), Contact.at(p, -1)
    found = [right.psi, right.xi, left.psi, left.xi]
    published = [-7.4122380357667139e-06, -0.1521364296121248, 7.5634406395172940e-06, 0.1490635714733819]
    np.testing.assert_allclose(found, published, rtol=1e-10)
    assert abs(left.gap(p)) < 1e-8 and abs(right.gap(p)) < 1e-8


@pytest.mark.parametrize("side", [1, -1])
def test_gradient_of_the_gap_needs_no_derivatives_of_the_point_of_contact(side):
    p = np.array([8e-3, 1e-4, 2e-3, -1.4e-2, 1.5e-2])
    moved = lambda d: Contact.at(p + d, side).gap(p + d)  # noqa: E731
    d = 1e-4 * np.eye(5)
    slopes = [(8 * (moved(e) - moved(-e)) - (moved(2 * e) - moved(-2 * e))) / 12e-4 for e in d]
    np.testing.assert_allclose(Contact.at(p, side).gradient(p), slopes, atol=1e-10)


@pytest.mark.slow
def test_wheelset_at_its_published_time():
    """The published digits are right to seven places."""
    run = da.simulate(da.problems.wheelset(), da.RadauIIA(3), h=1.25e-4, t1=10.0, save_every=80_000)
    np.testing.assert_allclose(run.y[-1, :5], reference("wheelset")[:5], rtol=2e-6)
    np.testing.assert_allclose(run.y[-1, :5], WHEELSET, rtol=0, atol=1e-7)


def test_n_four_bar_has_the_motion_of_its_exact_solution():
    problem = da.problems.n_four_bar(loops=4, speed=0.7)
    factor = 9.81 * (2.5 + 4) / (5 / 3 + 4)
    t = np.linspace(0, 6, 13)
    angle, rate = solve_ivp(lambda _, x: [x[1], factor * np.sin(x[0])], (0, 6), [0, 0.7], "DOP853", t, rtol=1e-12, atol=1e-13).y
    exact = problem.exact(t)
    np.testing.assert_allclose(exact["q"][:, 2:4], np.stack([1 + np.sin(angle), np.cos(angle)], axis=1), atol=1e-9)
    np.testing.assert_allclose(exact["v"][:, -2:], rate[:, None] * np.stack([np.cos(angle), -np.sin(angle)], axis=1), atol=1e-8)
    run = da.simulate(problem, da.LobattoIIIAB(4), h=0.01, t1=6.0)
    np.testing.assert_allclose(run.q, problem.exact(run.t)["q"], atol=1e-8)
    assert angle[-1] > 2 * np.pi
