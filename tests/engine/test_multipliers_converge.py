"""Steps converge in their multipliers too, also where the motion does not feel them."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

FLAT = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2, holonomic=lambda q: [q[1] * (2 + np.sin(5 * q[0]))])


@pytest.mark.parametrize("method", [da.LobattoIIIAB(4), da.GaussLobattoSPARK(3), da.SymplecticEuler()], ids=str)
def test_a_flat_constraint_whose_gradient_changes(method):
    """q_1 = 0 for ever, whatever the multiplier is: only p_1 shows whether it is right."""
    run = da.simulate(FLAT, method, q0=[0.0, 0.0], p0=[1.0, 0.0], h=0.1, steps=60)
    assert np.abs(run.p[:, 1]).max() < 1e-13
    np.testing.assert_allclose(run.q[:, 0], run.t, atol=1e-13)


@pytest.mark.parametrize("method", [da.GaussLobattoSPARK(1), da.GaussLobattoSPARK(2), da.SymplecticEuler()], ids=str)
def test_forces_cubic_in_the_multiplier(method):
    pendulum = da.ODAE(
        v=lambda z: z, f=lambda: [0.0, -1.0], r=lambda y, lam: -y * (lam[0] + lam[0] ** 3), g=lambda y: [y @ y - 1],
        dim_y=2, dim_z=2,
    )  # fmt: skip
    for h in (0.1, 0.01):
        run = da.simulate(pendulum, method, y0=[1, 0], z0=[0, -1], h=h, t1=4.0)
        assert max(np.abs(r).max() for r in run.residuals.values()) < 1e-13
