"""Multipliers against formulas derived by hand."""

import numpy as np
import pytest

import dalembert as da

RANDOM = np.random.default_rng(12)


def pendulum(length):
    return da.Hamiltonian(
        lambda q, p, m, gravity: p @ p / (2 * m) + m * gravity * q[1],
        dim=2,
        holonomic=lambda t, q: [np.hypot(q[0], q[1]) - length(t)],
        params={"m": 1.0, "gravity": 1.0},
    )


def test_planar_pendulum_is_1_11_of_jay():
    """(1.11) of Jay (1996): lambda = ((p_x^2 + p_z^2)/m - m g z) / l."""
    for m, gravity, length, angle, speed in RANDOM.uniform(0.5, 3, (6, 5)):
        system = pendulum(lambda t, length=length: length)
        q = length * np.array([np.sin(angle), -np.cos(angle)])
        p = m * speed * np.array([np.cos(angle), np.sin(angle)])
        wanted = ((p @ p) / m - m * gravity * q[1]) / length
        state = da.consistent(system, q0=q, p0=p, params={"m": m, "gravity": gravity})
        np.testing.assert_allclose(state.lam, [wanted], rtol=1e-12)
        run = da.simulate(system, da.Rattle(), start=state, h=0.01, steps=1)
        np.testing.assert_allclose(run.lam[0], [wanted], rtol=1e-12)


def test_pendulum_of_prescribed_length():
    """In polar coordinates m (l'' - l phi'^2) = m g cos phi - lambda, whatever l(t) is."""
    system = pendulum(lambda t: 2 + np.sin(3 * t) / 2)
    for t, m, gravity, angle, speed in RANDOM.uniform(0.5, 3, (6, 5)):
        length, rate, acceleration = 2 + np.sin(3 * t) / 2, 3 * np.cos(3 * t) / 2, -9 * np.sin(3 * t) / 2
        outward = np.array([np.sin(angle), -np.cos(angle)])
        across = np.array([np.cos(angle), np.sin(angle)])
        q, v = length * outward, rate * outward + length * speed * across
        wanted = m * (length * speed**2 + gravity * np.cos(angle) - acceleration)
        state = da.consistent(system, q0=q, v0=v, t0=t, params={"m": m, "gravity": gravity})
        np.testing.assert_allclose(state.v, v, rtol=1e-12)
        np.testing.assert_allclose(state.lam, [wanted], rtol=1e-11)


def test_bead_on_a_turning_rod():
    """A bead held at rest on a rod that turns at omega: the rod must push with the Coriolis force 2 m omega r'."""
    omega, m, r, speed = 1.3, 2.0, 0.7, 0.4
    system = da.Lagrangian(
        lambda v: m * v @ v / 2, dim=2, holonomic=lambda t, q: [-np.sin(omega * t) * q[0] + np.cos(omega * t) * q[1]]
    )
    for t in (0.0, 0.6, 2.0):
        along = np.array([np.cos(omega * t), np.sin(omega * t)])
        across = np.array([-np.sin(omega * t), np.cos(omega * t)])
        state = da.consistent(system, q0=r * along, v0=speed * along + r * omega * across, t0=t)
        # The reaction is -g_q^T lam, and g_q is the unit vector across the rod.
        np.testing.assert_allclose(state.lam, [-2 * m * omega * speed], rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 5.0, -2.0])
def test_scaling_a_constraint_scales_its_multiplier_inversely(scale):
    def system(factor):
        return da.Hamiltonian(
            lambda q, p: p @ p / 2 + q[2],
            dim=3,
            holonomic=lambda q: [factor * (q @ q - 1), q[0] - 0.6],
        )

    q, v = np.array([0.6, 0.48, 0.64]), np.array([0.0, 0.64, -0.48])
    plain, scaled = (da.consistent(system(factor), q0=q, v0=v).lam for factor in (1.0, scale))
    np.testing.assert_allclose(scaled, plain / [scale, 1.0], rtol=1e-12)


def test_force_along_the_constraint_is_carried_by_the_multiplier():
    """Pulling a pendulum outwards by F adds F to lambda."""
    base = {"dim": 2, "holonomic": lambda q: [np.hypot(q[0], q[1]) - 1]}
    free = da.Hamiltonian(lambda p: p @ p / 2, **base)
    pulled = da.Hamiltonian(lambda p: p @ p / 2, force=lambda q: 3.5 * q, **base)
    states = [da.consistent(s, q0=[0.6, 0.8], v0=[0.8, -0.6]) for s in (free, pulled)]
    np.testing.assert_allclose(states[0].lam, [1.0], rtol=1e-13)  # the centripetal force of unit speed on the unit circle
    np.testing.assert_allclose(states[1].lam, [4.5], rtol=1e-13)


def test_a_system_without_constraints_has_no_multipliers():
    free = da.Hamiltonian(lambda q, p: p @ p / 2 + q @ q / 2, dim=2)
    state = da.consistent(free, q0=[1, 0], p0=[0, 1])
    assert state.lam.shape == (0,)
    run = da.simulate(free, da.Rattle(), start=state, h=0.1, steps=3)
    assert run.lam.shape == (4, 0)
    assert run.residuals["g"].shape == (4, 0)
