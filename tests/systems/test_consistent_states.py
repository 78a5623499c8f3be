"""`da.consistent` is the M-orthogonal projection: optimality conditions, and SciPy's constrained optimiser."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import dalembert as da
from dalembert.systems._consistent import state_at

MASSES = np.array([1.0, 1.0, 5.0, 5.0])


def double_pendulum(**changes):
    return da.Hamiltonian(
        lambda q, p: p @ (p / MASSES) / 2 + q[1] + q[3],
        **{
            "dim": 4,
            "holonomic": lambda q: [np.hypot(q[0], q[1]) - 1, np.hypot(q[2] - q[0], q[3] - q[1]) - 2],
            **changes,
        },
    )


SYSTEM = double_pendulum()
ROUND_OFF = 2e-15


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.1, 0.5, 1.0]))
def test_projection_satisfies_the_optimality_conditions(seed, spread):
    """g(q) = 0 and M (q - q0) + G^T mu = 0; g_dot = 0 and M (v - v0) + G^T nu = 0."""
    random = np.random.default_rng(seed)
    guess = np.array([0.6, -0.8, 0.6, -2.8]) + spread * random.normal(size=4)
    velocity = random.normal(size=4)
    state = da.consistent(SYSTEM, q0=guess, v0=velocity)
    assert np.max(np.abs(state.residuals["g"])) < ROUND_OFF * (1 + np.max(np.abs(state.q)))
    assert np.max(np.abs(state.residuals["g_dot"])) < ROUND_OFF * (1 + np.max(np.abs(state.v)))
    G = SYSTEM.evaluate("G", 0.0, state.q)
    for moved in (state.q - guess, state.v - velocity):
        force = MASSES * moved
        multiplier = np.linalg.lstsq(G.T, force, rcond=None)[0]
        np.testing.assert_allclose(G.T @ multiplier, force, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_nearest_configuration_as_scipy_finds_it(seed):
    random = np.random.default_rng(seed)
    guess = np.array([0.6, -0.8, 0.6, -2.8]) + 0.4 * random.normal(size=4)
    state = da.consistent(SYSTEM, q0=guess, v0=np.zeros(4))
    best = minimize(
        lambda q: (q - guess) @ (MASSES * (q - guess)),
        guess,
        method="SLSQP",
        constraints={"type": "eq", "fun": lambda q: [np.hypot(q[0], q[1]) - 1, np.hypot(q[2] - q[0], q[3] - q[1]) - 2]},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    distance = (state.q - guess) @ (MASSES * (state.q - guess))
    assert distance <= best.fun + 1e-9
    np.testing.assert_allclose(state.q, best.x, atol=1e-5)


def test_projection_onto_a_circle_is_exact():
    circle = da.Hamiltonian(lambda p: p @ p / 2, dim=2, holonomic=lambda q: [q @ q - 1])
    for angle, radius in np.random.default_rng(1).uniform(0.05, 6, (20, 2)):
        direction = np.array([np.cos(angle), np.sin(angle)])
        state = da.consistent(circle, q0=radius * direction, p0=[3.0, 0.0])
        np.testing.assert_allclose(state.q, direction, atol=1e-15)
        np.testing.assert_allclose(state.p, [3.0, 0.0] - 3 * direction[0] * direction, atol=1e-14)


def test_a_point_is_projected_into_a_corner_at_the_origin():
    """Where positions are zero they have no size, relative to which round-off could be told from them."""
    a, b = 0.33916224984677484, 0.8009929223750405
    corner = da.Lagrangian(
        lambda q, v: v @ v / 2, dim=2,
        holonomic=lambda q: [q[1] * np.cos(a) + q[0] * np.sin(a), q[1] * np.cos(b) - q[0] * np.sin(b)],
    )  # fmt: skip
    for guess in np.random.default_rng(0).normal(size=(60, 2)):
        start = da.consistent(corner, q0=guess, v0=[0, 0])
        assert np.abs(start.q).max() < 1e-30


def test_consistent_values_stay_as_they_are():
    q, v = np.array([0.6, -0.8, 0.6, -2.8]), np.array([0.8, 0.6, 0.4, 0.6])
    state = da.consistent(SYSTEM, q0=q, v0=v)
    np.testing.assert_allclose(state.q, q, atol=4e-16)
    np.testing.assert_allclose(state.v, v, atol=4e-16)


def test_configuration_dependent_mass_and_moving_constraint():
    """Velocity: v minimises (v - v0)^T M(q) (v - v0) subject to g_t + G v = 0, M at the projected q."""
    system = da.Lagrangian(
        lambda q, v: (2 + np.sin(q[1])) * v[0] ** 2 / 2 + (1 + q[0] ** 2) * v[1] ** 2 / 2 + 0.4 * v[0] * v[1],
        dim=2,
        holonomic=lambda t, q: [q[0] * q[1] - 1 - np.sin(t)],
    )
    for form in (system, _as_hamiltonian()):
        guess, velocity, t = np.array([1.3, 0.9]), np.array([0.5, -0.2]), 0.3
        state = da.consistent(form, q0=guess, v0=velocity, t0=t)
        M = np.array([[2 + np.sin(state.q[1]), 0.4], [0.4, 1 + state.q[0] ** 2]])
        G = np.array([state.q[1], state.q[0]])
        assert abs(state.q[0] * state.q[1] - 1 - np.sin(t)) < ROUND_OFF
        assert abs(G @ state.v - np.cos(t)) < ROUND_OFF
        correction = np.linalg.solve(M, G)
        wanted = velocity - correction * (G @ velocity - np.cos(t)) / (G @ correction)
        np.testing.assert_allclose(state.v, wanted, atol=1e-13)


def _as_hamiltonian():
    def H(q, p):
        a, c = 2 + np.sin(q[1]), 1 + q[0] ** 2
        return (c * p[0] ** 2 - 0.8 * p[0] * p[1] + a * p[1] ** 2) / (2 * (a * c - 0.16))

    return da.Hamiltonian(H, dim=2, holonomic=lambda t, q: [q[0] * q[1] - 1 - np.sin(t)])


@pytest.mark.parametrize("c", [1.0, 3e8])
def test_relativistic_particle_from_its_velocity(c):
    """p = m v / sqrt(1 - v^2/c^2), in units of one and in SI units, where p is about 1e-22."""
    m = 1.0 if c == 1 else 9.1e-31
    system = da.Hamiltonian(lambda q, p: c * np.sqrt(p @ p + (m * c) ** 2), dim=3)
    for beta in (0.0, 1e-3, 0.5, 0.99):
        v = beta * c * np.array([0.6, 0.0, 0.8])
        np.testing.assert_allclose(da.consistent(system, q0=[0, 0, 0], v0=v).p, m * v / np.sqrt(1 - beta**2), rtol=1e-10)


def test_relativistic_bead_on_a_ring():
    """The hidden constraint is nonlinear in p: p - G^T mu must still end on it."""
    system = da.Hamiltonian(lambda q, p: np.sqrt(p @ p + 1) + p[0] ** 4, dim=2, holonomic=lambda q: [q @ q - 1])
    p0 = np.array([2.0, 1.0])
    state = da.consistent(system, q0=[0.6, 0.8], p0=p0)
    v = state.p / np.sqrt(state.p @ state.p + 1) + [4 * state.p[0] ** 3, 0]
    assert abs(state.q @ v) < 1e-14
    across = np.array([-0.8, 0.6])
    assert (state.p - p0) @ across == pytest.approx(0, abs=1e-13)


def test_mass_ratios_of_a_spacecraft():
    system = da.Hamiltonian(lambda q, p: p[0] ** 2 / 2e30 + p[1] ** 2 / 2e3, dim=2)
    np.testing.assert_allclose(da.consistent(system, q0=[0, 0], v0=[1.0, 1.0]).p, [1e30, 1e3], rtol=1e-12)


REFUSED = {
    "no solution": (double_pendulum(holonomic=lambda q: [q @ q + 1]), [1, 0, 0, 0], "give a better guess|not independent"),
    "zero gradient": (double_pendulum(holonomic=lambda q: [q @ q - 1]), [0, 0, 0, 0], "not independent"),
    "singular H_pp": (da.Hamiltonian(lambda p: p[0] ** 2, dim=4, holonomic=lambda q: [q[1]]), [1, 0, 0, 0], "H_pp is singular"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_guess_that_cannot_be_projected(name):
    system, guess, words = REFUSED[name]
    with pytest.raises(da.InconsistentStart, match=words) as caught:
        da.consistent(system, q0=guess, p0=[0, 0, 0, 0])
    assert "\n" not in str(caught.value)


def test_state_starts_a_run():
    state = da.consistent(SYSTEM, q0=[0.7, -0.8, 0.5, -2.9], v0=[0.1, 0.2, 0.3, 0.4], t0=2.5)
    run = da.simulate(SYSTEM, da.Rattle(), start=state, h=0.1, steps=2)
    np.testing.assert_array_equal(run.q[0], state.q)
    np.testing.assert_array_equal(run.p[0], state.p)
    assert run.t[0] == 2.5


def test_starts_are_checked_in_several_threads_at_once():
    """States that were found are remembered by a system: its threads share them."""
    system, before = da.problems.double_pendulum().system, sys.getswitchinterval()
    angles = np.linspace(0.1, 1.2, 14)
    starts = [np.array([np.sin(a), -np.cos(a), 2 * np.sin(a), -2 * np.cos(a)]) for a in angles]
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda q: state_at(system, q0=q, p0=np.zeros(4)), starts * 12))
    finally:
        sys.setswitchinterval(before)
    np.testing.assert_array_equal([state.q for state in found], starts * 12)
