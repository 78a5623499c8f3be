"""Lagrangians of SymPy move as SymPy's own equations of motion do."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da

sp = pytest.importorskip("sympy")
from sympy.physics.mechanics import LagrangesMethod, dynamicsymbols  # noqa: E402

x, theta = dynamicsymbols("x theta")
M, m, l, g = sp.symbols("M m l g")  # noqa: E741
VALUES = {M: 2.0, m: 0.5, l: 0.7, g: 9.81}
CRANE = (M + m) * x.diff() ** 2 / 2 + m * l * x.diff() * theta.diff() * sp.cos(theta) + m * l**2 * theta.diff() ** 2 / 2
CRANE = CRANE + m * g * l * sp.cos(theta)


def test_crane_moves_as_by_lagranges_method():
    method = LagrangesMethod(CRANE, [x, theta])
    method.form_lagranges_equations()
    rhs = sp.lambdify([x, theta, x.diff(), theta.diff()], method.rhs().subs(VALUES))
    exact = solve_ivp(lambda t, y: np.ravel(rhs(*y)), (0, 2), [0.1, 1.0, 0.3, -0.5], "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    system = da.from_sympy(CRANE, [x, theta], params=VALUES)
    run = da.simulate(system, da.LobattoIIIAB(4), q0=[0.1, 1.0], v0=[0.3, -0.5], h=0.005, t1=2.0)
    np.testing.assert_allclose([*run.q[-1], *run.v[-1]], exact, atol=1e-9)


def test_constraints_and_forces_are_taken():
    """A damped crane whose trolley is driven, x = t^2 / 10: a pendulum with an accelerated support."""
    t = dynamicsymbols._t
    system = da.from_sympy(CRANE, [x, theta], params=VALUES, holonomic=[x - t**2 / 10], force=[0, -theta.diff() / 100])
    start = da.consistent(system, q0=[0.0, 1.0], v0=[0.0, 0.0])
    run = da.simulate(system, da.LobattoIIIAB(4), start=start, h=0.005, t1=2.0)

    def slope(_, y):
        return [y[1], -(9.81 * np.sin(y[0]) + 0.2 * np.cos(y[0])) / 0.7 - y[1] / 100 / (0.5 * 0.49)]

    exact = solve_ivp(slope, (0, 2), [1.0, 0.0], "DOP853", rtol=1e-12, atol=1e-12).y[0, -1]
    assert run.q[-1] == pytest.approx([0.4, exact], abs=1e-9)


def test_nonholonomic_constraints_are_taken():
    """A blade: the skate of the catalogue, in SymPy's words."""
    y, phi = dynamicsymbols("y phi")
    L = (x.diff() ** 2 + y.diff() ** 2) / 2 + phi.diff() ** 2 / 8 - x / 3
    blade = da.from_sympy(L, [x, y, phi], nonholonomic=[sp.sin(phi) * x.diff() - sp.cos(phi) * y.diff()])
    by_hand = da.Lagrangian(
        lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2 + v[2] ** 2 / 8 - q[0] / 3,
        dim=3,
        nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]],
    )
    runs = [da.simulate(s, da.GaussLobattoSPARK(2), q0=[0, 0, 0], v0=[1, 0, 1], h=0.05, steps=100) for s in (blade, by_hand)]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-12)


def test_symbols_without_values_are_named():
    with pytest.raises(da.ModelError, match="the Lagrangian contains g, m: list it in q, or give its value in params"):
        da.from_sympy(CRANE, [x, theta], params={M: 2.0, l: 0.7})
    with pytest.raises(da.ModelError, match=r"contains .*theta\(t\)"):
        da.from_sympy(CRANE, [x], params=VALUES)


@pytest.mark.parametrize(
    ("stated", "answer"),
    [
        ({"holonomic": [x.diff() - 1]}, "holonomic contains rates, but relates positions only"),
        ({"params": VALUES | {sp.Symbol("m", positive=True): 1.0}}, "two symbols of the name 'm'"),
        ({"params": VALUES | {sp.Symbol("lambda"): 1.0}}, "the symbol 'lambda' is no name"),
        ({"params": VALUES | {sp.Symbol("m_{1}"): 1.0}}, "the symbol 'm_{1}' is no name"),
        ({"params": VALUES | {sp.Symbol("q"): 1.0}}, "'q' is taken by the library"),
    ],
)
def test_what_has_no_meaning_is_refused(stated, answer):
    with pytest.raises(da.ModelError, match=re.escape(answer)):
        da.from_sympy(CRANE, [x, theta], **({"params": VALUES} | stated))
