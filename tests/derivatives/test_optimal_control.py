"""Optimal control by discrete mechanics: exact optima, and solutions simulated again."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

CART = dict(dim=1, force=lambda u: [u], params={"m": 2.0, "u": 0.0})


def cart():
    return da.Lagrangian(lambda v, m: m * v @ v / 2, **CART)


def test_least_effort_is_that_of_the_discrete_problem():
    """From rest to rest over unit distance: the optimum of a quadratic programme, solved by itself."""
    N, h, m = 40, 0.05, 2.0
    task = da.OptimalControl(
        cart(), da.Gauss(1), controls="u", cost=lambda u: u**2, final=lambda q, v: [q[0] - 1, v[0]], steps=N, h=h
    )
    best = task.solve(q0=[0.0], v0=[0.0])
    # q_N = h^2/m sum (N - k - 1/2) u_k and v_N = h/m sum u_k, the least norm of u with these
    rows = np.array([h**2 / m * (N - np.arange(N) - 0.5), np.full(N, h / m)])
    u = np.linalg.lstsq(rows, np.array([1.0, 0.0]), rcond=None)[0]
    np.testing.assert_allclose(best.controls["u"], u, atol=1e-9)
    assert best.cost == pytest.approx(h * u @ u, rel=1e-9)


def test_least_time_with_bounds_is_bang_bang():
    """Distance 1 with |u| <= 1 and m = 2: full force, then full brake, 2 sqrt(2) seconds."""
    task = da.OptimalControl(
        cart(),
        da.Gauss(1),
        controls="u",
        final=lambda q, v: [q[0] - 1, v[0]],
        steps=40,
        t1=(0.5, 10.0),
        bounds={"u": (-1, 1)},
    )
    best = task.solve(q0=[0.0], v0=[0.0])
    assert best.run.t[-1] == pytest.approx(2 * np.sqrt(2), abs=1e-7)
    np.testing.assert_allclose(best.controls["u"], np.repeat([1.0, -1.0], 20), atol=1e-5)
    assert best.defect < 1e-9


def cart_pendulum():
    return da.Lagrangian(
        lambda q, v, M, m, length: (
            (M + m) * v[0] ** 2 / 2
            + m * length * v[0] * v[1] * np.cos(q[1])
            + m * length**2 * v[1] ** 2 / 2
            + m * 9.81 * length * np.cos(q[1])
        ),
        dim=2,
        force=lambda u: [u, 0.0],
        params={"M": 1.0, "m": 0.3, "length": 0.5, "u": 0.0},
    )


def test_swing_up_of_a_cart_pendulum():
    """From a straight line as the guess; simulated again, the pendulum stands upright at rest to 1e-9."""
    task = da.OptimalControl(
        cart_pendulum(),
        da.Gauss(1),
        controls="u",
        cost=lambda u: u**2,
        final=lambda q, v: [q[0] - 1, q[1] - np.pi, *v],
        path=lambda q: [2.0 - q[0], q[0] + 2.0],
        bounds={"u": (-20, 20)},
        steps=80,
        h=0.025,
    )
    best = task.solve(q0=[0, 0], v0=[0, 0], guess={"q": [1, np.pi]})
    assert isinstance(best.run, da.Trajectory) and best.defect < 1e-9
    np.testing.assert_allclose(best.run.q[-1], [1, np.pi], atol=1e-9)
    np.testing.assert_allclose(best.run.v[-1], 0, atol=1e-9)
    assert np.abs(best.controls["u"]).max() <= 20 + 1e-7
    # what is found is a stationary point: the gradient of the cost along the run, by the adjoint, is that of the multipliers
    # of the four final conditions alone
    given = dict(q0=[0, 0], v0=[0, 0], h=0.025, steps=80, controls=best.controls)
    ends = [da.gradient(lambda q, p, k=k: (*q, *p)[k], cart_pendulum(), da.Gauss(1), wrt="u", **given)[1] for k in range(4)]
    effort = 2 * 0.025 * best.controls["u"]
    rest = effort - np.linalg.lstsq(np.array(ends).T, effort, rcond=None)[0] @ np.array(ends)
    assert np.abs(rest).max() < 1e-6 * np.abs(effort).max()


def test_a_closed_linkage():
    """A four-bar in Cartesian coordinates, its crank turned a quarter by a torque: the loop stays closed in the optimum."""
    linkage = da.Lagrangian(
        lambda q, v: (0.2 * v[:2] @ v[:2] + 0.35 * v[2:] @ v[2:]) / 2 - 9.81 * (0.2 * q[1] + 0.35 * q[3]),
        dim=4,
        holonomic=lambda q: [
            q[0] ** 2 + q[1] ** 2 - 0.1**2,
            (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 0.4**2,
            (q[2] - 0.4) ** 2 + q[3] ** 2 - 0.3**2,
        ],
        force=lambda q, u: np.array([-q[1], q[0], 0.0, 0.0]) * u,
        params={"u": 0.0},
    )
    start = da.consistent(linkage, q0=[0.1, 0.0, 0.4, 0.3], v0=np.zeros(4))
    task = da.OptimalControl(
        linkage,
        da.Rattle(),
        controls="u",
        cost=lambda u: u**2 / 1e4,
        final=lambda q, v: [q[0], v[0]],
        steps=40,
        h=0.01,
    )
    best = task.solve(start=start)
    assert best.defect < 1e-9
    np.testing.assert_allclose(best.run.q[-1, :2], [0, 0.1], atol=1e-9)
    assert np.abs(best.run.residuals["g"]).max() < 1e-14


@pytest.mark.parametrize("method", [da.GaussLobattoSPARK(1), da.NonholonomicEuler()], ids=str)
def test_parking_a_sleigh(method):
    """Sideways, which the blade does not let it go: the optimum turns it there and back."""
    sleigh = da.Lagrangian(
        lambda q, v: (v[0] ** 2 + v[1] ** 2 + 0.1 * v[2] ** 2) / 2,
        dim=3,
        nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]],
        force=lambda q, u: np.array([u[0] * np.cos(q[2]), u[0] * np.sin(q[2]), u[1]]),
        params={"u": np.zeros(2)},
    )
    task = da.OptimalControl(
        sleigh,
        method,
        controls="u",
        cost=lambda u: u @ u,
        final=lambda q, v: [q[0] - 0.5, q[1] - 0.5, q[2], v[0], v[2]],
        steps=40,
        h=0.05,
    )
    best = task.solve(q0=[0, 0, 0], v0=[0, 0, 0], guess={"q": [0.5, 0.5, 0.0]})
    assert best.defect < 1e-9
    np.testing.assert_allclose(best.run.q[-1], [0.5, 0.5, 0.0], atol=1e-9)
    assert np.abs(best.run.residuals["k"]).max() < 1e-12


def test_refusals():
    given = dict(controls="u", cost=lambda u: u**2)
    with pytest.raises(da.InputError, match="step size h, or bounds"):
        da.OptimalControl(cart(), da.Gauss(1), **given)
    with pytest.raises(da.InputError, match="give a cost"):
        da.OptimalControl(cart(), da.Gauss(1), controls="u", h=0.1)
    with pytest.raises(da.InputError, match="no control"):
        da.OptimalControl(cart(), da.Gauss(1), h=0.1, bounds={"w": (0, 1)}, **given).solve(q0=[0], v0=[0])
    with pytest.raises(da.InputError, match="no parameter"):
        da.OptimalControl(cart(), da.Gauss(1), controls="w", cost=lambda u: u, h=0.1).solve(q0=[0], v0=[0])
    with pytest.raises(da.InputError, match="guess names"):
        da.OptimalControl(cart(), da.Gauss(1), h=0.1, **given).solve(q0=[0], v0=[0], guess={"x": 1})
    for t1 in (3.0, (1.0,), ("a", "b"), (2.0, 1.0), (1.0, np.nan), [1, [2]]):
        with pytest.raises(da.InputError, match="t1"):
            da.OptimalControl(cart(), da.Gauss(1), t1=t1, **given)
    for bounds in (1.0, {"u": 1.0}, {"u": (1.0, -1.0)}, {"u": ("a", 1.0)}, {"u": ([0.0, 0.0], 1.0)}, {"u": (np.nan, 1.0)}):
        with pytest.raises(da.InputError, match="bound"):
            da.OptimalControl(cart(), da.Gauss(1), h=0.1, bounds=bounds, **given).solve(q0=[0], v0=[0])
    for guess in (1.0, {"u": "a"}, {"u": np.zeros(7)}, {"u": np.nan}, {"q": [1.0, 2.0]}, {"q": np.zeros((3, 1))}):
        with pytest.raises(da.InputError, match="guess"):
            da.OptimalControl(cart(), da.Gauss(1), h=0.1, steps=5, **given).solve(q0=[0], v0=[0], guess=guess)
    for controls in (3, (), ("u", "u"), [3]):
        with pytest.raises(da.InputError, match="each once"):
            da.OptimalControl(cart(), da.Gauss(1), controls, h=0.1, cost=lambda u: u**2).solve(q0=[0], v0=[0])
    impossible = da.OptimalControl(
        cart(), da.Gauss(1), final=lambda q: [q[0] - 100], bounds={"u": (-1, 1)}, steps=5, h=0.1, **given
    )
    with pytest.raises(da.StepFailed, match="no optimal control"):
        impossible.solve(q0=[0.0], v0=[0.0])


def test_controls_that_are_linear_in_every_step():
    """The least effort from rest to rest, by the moments of hats, which act exactly; effort is summed by trapezoids."""
    steps = 20
    h, t = 1 / steps, np.linspace(0, 1, steps + 1)
    cart = da.Lagrangian(lambda v, m: m * v @ v / 2, dim=1, force=lambda u: [u], params={"m": 1.0, "u": 0.0})
    task = da.OptimalControl(
        cart, da.Gauss(2), controls="u", cost=lambda u: u**2, final=lambda q, v: [q[0] - 1, v[0]], steps=steps, h=h,
        linear=True, bounds={"u": (-8, 8)},
    )  # fmt: skip
    best = task.solve(q0=[0.0], v0=[0.0])
    assert best.defect < 1e-12 and abs(best.run.q[-1, 0] - 1) < 1e-11 and abs(best.run.v[-1, 0]) < 1e-11
    weights = np.full(steps + 1, h)
    weights[[0, -1]] /= 2
    arms = 1 - t
    arms[[0, -1]] += [-h / 3, h / 3]
    A = np.array([weights, weights * arms])
    exact = A.T @ np.linalg.solve(A / weights @ A.T, [0.0, 1.0]) / weights
    np.testing.assert_allclose(best.controls["u"], exact, atol=1e-7)
    assert abs(best.cost - weights @ exact**2) < 1e-8


def test_a_path_bounds_the_first_of_linear_controls():
    """The cart of u = 6 - 12 t, whose control must stay within 5 also at the start."""
    cart = da.Lagrangian(lambda v, m: m * v @ v / 2, dim=1, force=lambda u: [u], params={"m": 1.0, "u": 0.0})
    task = da.OptimalControl(
        cart, da.Gauss(1), controls="u", cost=lambda u: u**2, final=lambda q, v: [q[0] - 1, v[0]], steps=20, h=0.05,
        linear=True, path=lambda u: [5 - u, 5 + u],
    )  # fmt: skip
    u = task.solve(q0=[0.0], v0=[0.0]).controls["u"]
    assert abs(u[0] - 5) < 1e-5 and np.abs(u).max() < 5 + 1e-7


@pytest.mark.parametrize("wrong", [None, "a", 1.5, -1, 3])
def test_linear_is_true_or_false(wrong):
    cart = da.Lagrangian(lambda v: v @ v / 2, dim=1, force=lambda u: [u], params={"u": 0.0})
    with pytest.raises(da.InputError, match="linear is True or False"):
        da.OptimalControl(cart, da.Gauss(1), controls="u", cost=lambda u: u**2, h=0.1, linear=wrong)
    with pytest.raises(da.InputError, match="verbose is True or False"):
        da.OptimalControl(cart, da.Gauss(1), controls="u", cost=lambda u: u**2, h=0.1).solve(
            verbose=np.zeros(2), q0=[0], v0=[0]
        )
    with pytest.raises(da.InputError, match="controls names parameters"):
        task = da.OptimalControl(cart, da.Gauss(1), controls=np.array("u"), cost=lambda u: u**2, h=0.1)
        task.solve(q0=[0.0], v0=[0.0])
