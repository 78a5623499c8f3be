"""A Lagrangian and the Hamiltonian that one derives from it by hand are the same system."""

import numpy as np
import pytest

import dalembert as da

POINTS = [(x[0], x[1:3], x[3:5]) for x in np.random.default_rng(8).normal(size=(8, 5))]


def mass(q, t):
    return np.array([[2 + np.sin(q[1]) ** 2, 0.3 * np.cos(q[0])], [0.3 * np.cos(q[0]), 1 + q[0] ** 2 + t * t]], like=q)


def magnetic(q, t, b):
    return np.array([-b * q[1] + t, b * q[0] ** 2], like=q)


def potential(q, t, b):
    return np.cos(q[0] - t) + q[1] ** 4 / 4 + b * q[0] * q[1]


OPTIONS = {
    "dim": 2,
    "holonomic": lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1 - t],
    "force": lambda t, q, v: [-0.1 * v[0] + t, q[1] * v[1]],
    "params": {"b": 0.8},
}
LAGRANGIAN = da.Lagrangian(
    lambda t, q, v, b: v @ mass(q, t) @ v / 2 + magnetic(q, t, b) @ v - potential(q, t, b),
    **OPTIONS,
)
HAMILTONIAN = da.Hamiltonian(
    lambda t, q, p, b: (p - magnetic(q, t, b)) @ np.linalg.inv(mass(q, t)) @ (p - magnetic(q, t, b)) / 2 + potential(q, t, b),
    **OPTIONS,
)
OF_Q_AND_P = (
    "H",
    "H_p",
    "H_q",
    "H_pp",
    "force",
    "v",
    "g_dot",
    "hidden",
    "hidden_y",
    "hidden_z",
    "multiplier_matrix",
    "multiplier_rhs",
)


@pytest.mark.parametrize("name", OF_Q_AND_P)
def test_same_functions_of_q_and_p(name):
    for t, q, p in POINTS:
        np.testing.assert_allclose(
            LAGRANGIAN.evaluate(name, t, q, p), HAMILTONIAN.evaluate(name, t, q, p), rtol=1e-11, atol=1e-12
        )


def test_legendre_transform_is_an_involution():
    """v -> p = L_v -> H_p(p) = v, and p v - H = L."""
    for t, q, v in POINTS:
        p = LAGRANGIAN.evaluate("L_v", t, q, v)
        np.testing.assert_allclose(LAGRANGIAN.evaluate("H_p", t, q, p), v, rtol=1e-13, atol=1e-14)
        L = p @ v - LAGRANGIAN.evaluate("H", t, q, p)[0]
        np.testing.assert_allclose(L, LAGRANGIAN.evaluate("L", t, q, v)[0], rtol=1e-12)
        np.testing.assert_allclose(LAGRANGIAN.evaluate("L_q", t, q, v), -LAGRANGIAN.evaluate("H_q", t, q, p), rtol=1e-11)


def test_mass_matrix_and_momentum_as_written():
    for t, q, v in POINTS:
        M, a = np.array(mass(q, t), dtype=float), np.array(magnetic(q, t, 0.8), dtype=float)
        np.testing.assert_allclose(LAGRANGIAN.evaluate("L_vv", t, q), M, rtol=1e-14)
        np.testing.assert_allclose(LAGRANGIAN.evaluate("L_v", t, q, v), M @ v + a, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("system", [LAGRANGIAN, HAMILTONIAN], ids=["Lagrangian", "Hamiltonian"])
def test_initial_velocity_or_momentum(system):
    """v0 and the p0 that belongs to it start the same run, in both forms."""
    free = type(system)
    t, q, v = 0.0, np.array([0.6, 0.8]), np.array([0.8 + 0.3, -0.6 + 0.4])  # 2 q.v = 1 = l' of the constraint
    start = da.consistent(system, q0=q, v0=v)
    np.testing.assert_allclose(start.v, v, atol=1e-14)
    np.testing.assert_allclose(start.p, LAGRANGIAN.evaluate("L_v", t, q, v), rtol=1e-13)
    method = da.LobattoIIIAB(stages=3)
    by_v = da.simulate(system, method, q0=q, v0=v, h=0.02, steps=5)
    by_p = da.simulate(system, method, q0=q, p0=start.p, h=0.02, steps=5)
    np.testing.assert_allclose(by_v.q, by_p.q, atol=1e-14)
    assert isinstance(by_v.system, free)


def test_both_forms_move_alike():
    runs = [
        da.simulate(system, da.LobattoIIIAB(stages=3), q0=[0.6, 0.8], v0=[1.1, -0.2], h=0.02, steps=50)
        for system in (LAGRANGIAN, HAMILTONIAN)
    ]
    for name in ("q", "p", "v", "lam", "energy"):
        np.testing.assert_allclose(getattr(runs[0], name), getattr(runs[1], name), rtol=1e-10, atol=1e-11)


INDEFINITE = {
    "zero diagonal": (lambda v: v[0] * v[1], [[0, 1], [1, 0]]),
    "negative": (lambda v: v[1] ** 2 / 2 - v[0] ** 2 / 2, [[-1, 0], [0, 1]]),
    "coupled": (lambda v: v[0] ** 2 / 2 + 3 * v[0] * v[1], [[1, 3], [3, 0]]),
}


@pytest.mark.parametrize("name", INDEFINITE)
def test_indefinite_mass_matrix(name):
    kinetic, M = INDEFINITE[name]
    system = da.Lagrangian(lambda q, v: kinetic(v) - q @ q, dim=2)
    p = np.array([0.7, -1.1])
    np.testing.assert_allclose(system.evaluate("H_p", 0.0, [1.0, 2.0], p), np.linalg.solve(M, p), rtol=1e-14)


def test_large_mass_matrix():
    """A chain of ten links in angles: dense M(q); LDL^T must agree with LAPACK."""
    n = 10
    rank = n - np.maximum.outer(np.arange(n), np.arange(n))
    chain = da.Lagrangian(
        lambda q, v: sum(rank[i, j] * v[i] * v[j] * np.cos(q[i] - q[j]) for i in range(n) for j in range(n)) / 2, dim=n
    )
    random = np.random.default_rng(4)
    q, p = random.normal(size=n), random.normal(size=n)
    M = rank * np.cos(np.subtract.outer(q, q))
    np.testing.assert_allclose(chain.evaluate("H_p", 0.0, q, p), np.linalg.solve(M, p), rtol=1e-11)
    np.testing.assert_allclose(chain.evaluate("H", 0.0, q, p), p @ np.linalg.solve(M, p) / 2, rtol=1e-11)
