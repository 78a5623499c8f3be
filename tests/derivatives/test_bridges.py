"""Runs inside of JAX and PyTorch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dalembert as da

PENDULUM = da.Lagrangian(
    lambda q, v, m: m * v @ v / 2 - 9.81 * m * q[1],
    dim=2,
    holonomic=lambda q, r: [q @ q - r**2],
    force=lambda v, c: -c * v,
    params={"m": 0.2, "r": 0.5, "c": 0.02},
)
GIVEN = dict(q0=[0.5, 0.0], v0=[0.0, 0.0], h=0.01, steps=50)
TIMES = [0.1, 0.3, 0.5]


def exact():
    """The gradient of sum of squares of positions at the times, by `da.gradient`."""
    return da.gradient(
        lambda q: np.sum((q - 0.1) ** 2), PENDULUM, da.GaussLobattoSPARK(2), wrt=("c", "v0", "r"), at=TIMES, **GIVEN
    )


def test_jax():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax = pytest.importorskip("jax")
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        try:
            states = da.to_jax(PENDULUM, da.GaussLobattoSPARK(2), wrt=("c", "v0", "r"), at=TIMES, **GIVEN)
            loss = jax.jit(lambda c, v0, r: ((states(c, v0, r)[:, :2] - 0.1) ** 2).sum())
            value, slopes = jax.value_and_grad(loss, argnums=(0, 1, 2))(0.02, np.zeros(2), 0.5)
        finally:
            jax.config.update("jax_enable_x64", before)
    wanted, gradient = exact()
    assert float(value) == pytest.approx(wanted, rel=1e-13)
    for slope, name in zip(slopes, ("c", "v0", "r"), strict=True):
        np.testing.assert_allclose(slope, gradient[name], rtol=1e-11, atol=1e-13)


def test_torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        states = da.to_torch(PENDULUM, da.GaussLobattoSPARK(2), wrt=("c", "v0", "r"), at=TIMES, **GIVEN)
        values = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.02, [0.0, 0.0], 0.5)]
        loss = ((states(*values)[:, :2] - 0.1) ** 2).sum()
        loss.backward()
        assert torch.autograd.gradcheck(
            da.to_torch(PENDULUM, da.GaussLobattoSPARK(2), wrt=("c", "r"), **GIVEN), (values[0], values[2]), atol=1e-6
        )
    wanted, gradient = exact()
    assert float(loss.detach()) == pytest.approx(wanted, rel=1e-13)
    for value, name in zip(values, ("c", "v0", "r"), strict=True):
        np.testing.assert_allclose(value.grad.numpy(), gradient[name], rtol=1e-11, atol=1e-13)


def test_arguments_are_checked():
    pytest.importorskip("torch")
    with pytest.raises(da.InputError, match="no argument"):
        da.to_torch(PENDULUM, da.GaussLobattoSPARK(2), wrt="c", stepz=3)
