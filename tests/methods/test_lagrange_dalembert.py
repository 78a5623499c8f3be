"""The discrete Lagrange-d'Alembert principle: its own equations, and the published integrators that are instances of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import fsolve

import dalembert as da
from dalembert.systems._consistent import unpack


def oscillator(eps=0.3):
    return da.Lagrangian(
        lambda q, v, eps: v @ v / 2 - (q @ q + eps * q[0] ** 2 * q[2] ** 2) / 2,
        dim=3,
        nonholonomic=lambda q, v: [v[0] + q[1] * v[2]],
        params={"eps": eps},
    )


START = {"q0": [1.0, 1.0, 0.3], "v0": [-0.4, 0.1, 0.4]}


def sleigh():
    return da.problems.chaplygin_sleigh().system


def test_two_steps_solve_the_published_equations():
    """(3.2) written out by hand for L = v^2/2 - V, midpoint L_d and g_d, solved by SciPy from the first two positions."""
    h, eps = 0.1, 0.3
    run = da.simulate(oscillator(eps), da.DiscreteLagrangeDAlembert("midpoint"), h=h, steps=3, **START)

    def V_q(q):
        return q + eps * np.array([q[0] * q[2] ** 2, 0.0, q[0] ** 2 * q[2]])

    def equations(x, before, now):
        after, lam = x[:3], x[3]
        D1 = -(after - now) / h - h / 2 * V_q((now + after) / 2)
        D2 = (now - before) / h - h / 2 * V_q((before + now) / 2)
        middle, v = (now + after) / 2, (after - now) / h
        return np.append(D1 + D2 - np.array([1.0, 0.0, now[1]]) * lam, v[0] + middle[1] * v[2])

    for k in (1, 2):
        guess = np.append(2 * run.q[k] - run.q[k - 1], 0.0)
        found = fsolve(equations, guess, args=(run.q[k - 1], run.q[k]), xtol=1e-14)
        np.testing.assert_allclose(run.q[k + 1], found[:3], atol=1e-13)


def test_cortes_and_martinez_is_the_instance_of_midpoints():
    mine, theirs = (
        da.simulate(oscillator(), method, h=0.1, steps=500, **START)
        for method in (da.DiscreteLagrangeDAlembert("midpoint", "midpoint"), da.CortesMartinez())
    )
    np.testing.assert_allclose(mine.q, theirs.q, atol=1e-12)


def variable_mass_start(system):
    return da.consistent(system, q0=[1.0, 0.2, 0.3], v0=[0.4, 0.1, 0.6])


@pytest.mark.parametrize(
    ("system", "method"),
    [(oscillator(), da.McLachlanPerlmutter()), (sleigh(), da.McLachlanPerlmutter(variable_mass=True))],
    ids=["constant mass", "variable mass"],
)
def test_mclachlan_and_perlmutter_is_an_instance_after_a_change_of_variables(system, method):
    """x_k+1/2 = q_k + h v_k / 2 follows (3.2) with L_d = h L(x_k, v) (3.5) and the constraint at midpoints (3.6)."""
    h = 0.05
    start = da.consistent(system, **START) if system.dim == 3 and "eps" in system.params else variable_mass_start(system)
    run = da.simulate(system, method, start=start, h=h, steps=20)
    x = np.vstack([run.q[0] - h / 2 * run.v[0], run.q + h / 2 * run.v])
    principle, theta = da.DiscreteLagrangeDAlembert("SE1", "midpoint"), run.start.theta
    for k in range(1, len(x) - 1):
        arriving = system.evaluate("L_v", 0.0, x[k - 1], (x[k] - x[k - 1]) / h, theta=theta)  # D_2 L_d
        state = unpack(system, 0.0, np.concatenate([x[k], arriving]), theta)
        np.testing.assert_allclose(da.verify.step(system, principle, h=h, start=state).q, x[k + 1], atol=1e-12)


def test_constraint_forces_that_depend_on_velocities_act_along_the_mean_momentum():
    """(3.2) by hand for k = v_2 - q_1 v_0 - c v_1^2 and L = (v.v - q.q)/2: k_v is taken at (v_k-1/2 + v_k+1/2)/2 + O(h^2).

    With k_v at the velocity before the impulse the method would be of order 1.
    """
    c, h = 0.3, 0.1
    system = da.Lagrangian(
        lambda q, v: (v @ v - q @ q) / 2, dim=3, nonholonomic=lambda q, v: [v[2] - q[1] * v[0] - c * v[1] ** 2]
    )
    start = da.consistent(system, q0=[0.5, 0.7, 0.3], v0=[0.4, -0.6, 0.5])
    run = da.simulate(system, da.DiscreteLagrangeDAlembert("midpoint"), start=start, h=h, steps=4)
    for before, now, after in zip(run.q[:-2], run.q[1:-1], run.q[2:], strict=True):
        arriving = (now - before) / h - h / 2 * (before + now) / 2  # D_2 L_d
        leaving = (after - now) / h + h / 2 * (now + after) / 2  # -D_1 L_d
        mean = (arriving + leaving) / 2
        k_v = np.array([-now[1], -2 * c * mean[1], 1.0])
        assert np.abs(np.cross(arriving - leaving, k_v)).max() < 1e-14
        v = (after - now) / h
        assert abs(v[2] - (now[1] + after[1]) / 2 * v[0] - c * v[1] ** 2) < 1e-14


@pytest.mark.parametrize("L_d", ["midpoint", "SVC"])
def test_constraints_whose_derivative_vanishes_at_rest_are_served(L_d):
    """D_2 g_d of Theorem 3.4 is zero at q_1 = q_0 if k is quadratic in v: it is to be taken at q_1 = q_0 + h v_0."""
    problem = da.problems.appell_hamel()
    run = da.simulate(problem, da.DiscreteLagrangeDAlembert(L_d), h=0.01, steps=200)
    right = da.simulate(problem, da.SRK("gauss", 3), h=0.01, steps=200)
    np.testing.assert_allclose(run.q, right.q, atol=1e-12)  # constant accelerations


def test_a_function_of_ones_own_is_the_named_one():
    mine = da.DiscreteLagrangeDAlembert(
        lambda L, q0, q1, h: h * L((q0 + q1) / 2, (q1 - q0) / h), lambda k, q0, q1, h: k((q0 + q1) / 2, (q1 - q0) / h)
    )
    explicit = da.DiscreteLagrangeDAlembert(
        "midpoint", lambda q0, q1, h: [(q1[0] - q0[0] + (q0[1] + q1[1]) / 2 * (q1[2] - q0[2])) / h]
    )
    runs = [
        da.simulate(oscillator(), m, h=0.1, steps=100, **START).q
        for m in (mine, explicit, da.DiscreteLagrangeDAlembert("midpoint"))
    ]
    np.testing.assert_allclose(runs[0], runs[2], atol=1e-14)
    np.testing.assert_allclose(runs[1], runs[2], atol=1e-12)


def test_the_matrix_of_theorem_3_4_is_checked():
    """With g_d that does not restrict q_1, or L_d without a velocity, the discrete flow is not defined."""
    frozen = da.DiscreteLagrangeDAlembert("midpoint", lambda q0, h: [q0[0] - q0[1]])
    with pytest.raises(da.ModelError, match=r"Theorem 3\.4"):
        da.simulate(oscillator(), frozen, h=0.1, steps=1, **START)
    lazy = da.DiscreteLagrangeDAlembert(lambda L, q0, q1, h: h * L(q0, 0 * q0))
    with pytest.raises(da.ModelError, match=r"Theorem 3\.4"):
        da.simulate(oscillator(), lazy, h=0.1, steps=1, **START)


def test_refusals():
    with pytest.raises(da.InputError, match="midpoint"):
        da.DiscreteLagrangeDAlembert("midpoint", "middle")
    with pytest.raises(da.InputError, match="SVC"):
        da.DiscreteLagrangeDAlembert("verlet")
    with pytest.raises(da.UnsupportedSystem, match="Variational"):
        da.simulate(da.problems.cart_pendulum(), da.DiscreteLagrangeDAlembert("SVC"), steps=1)
    with pytest.raises(da.UnsupportedSystem, match="GaussLobattoSPARK"):
        da.simulate(da.problems.skate(), da.DiscreteLagrangeDAlembert("SVC"), steps=1)
    with pytest.raises(da.UnsupportedSystem, match="internal"):
        da.simulate(oscillator(), da.DiscreteLagrangeDAlembert("SVA"), h=0.1, steps=1, **START)
    two = da.DiscreteLagrangeDAlembert("SVC", lambda q0, q1: [q1[0] - q0[0], q1[1] - q0[1]])
    with pytest.raises(da.ModelError, match="2 constraints where the system has 1"):
        da.simulate(oscillator(), two, h=0.1, steps=1, **START)
