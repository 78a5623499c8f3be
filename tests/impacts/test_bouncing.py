"""Balls above floors: restitution, accumulating impacts and moving tables, against exact solutions."""

import numpy as np
import pytest
from impact_models import EVERY, PAPER, ball
from scipy.optimize import brentq

import dalembert as da


@pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)
def test_an_elastic_ball_returns_at_odd_multiples_of_its_falling_time(method):
    run = da.simulate(ball(), method, q0=[1.0], v0=[0.0], h=0.01, t1=10.0)
    exact = np.sqrt(2) * np.array([1.0, 3.0, 5.0, 7.0])
    assert np.abs(run.impacts.t - exact).max() < (1e-4 if isinstance(method, da.VCI) else 1e-14)
    assert run.q.min() >= 0


@pytest.mark.parametrize("method", PAPER.values(), ids=PAPER)
@pytest.mark.parametrize("how", ["number", "parameter", "function"])
def test_a_coefficient_of_restitution_shortens_the_flights_geometrically(method, how):
    restitution = {"number": 0.8, "parameter": lambda e: e, "function": lambda speed, e: e + 0 * speed}[how]
    params = {} if how == "number" else {"e": 0.8}
    system = ball(g=9.81, restitution=restitution, params=params)
    run = da.simulate(system, method, q0=[1.0], v0=[0.0], h=0.01, steps=390)
    fall = np.sqrt(2 / 9.81)
    exact = fall + np.concatenate([[0], 2 * fall * np.cumsum(0.8 ** np.arange(1, 100))])
    exact = exact[exact < 3.9]
    assert len(run.impacts) == len(exact)
    assert np.abs(run.impacts.t - exact).max() < 1e-13
    assert np.allclose(run.impacts.p_after, -0.8 * run.impacts.p_before)


def test_restitution_may_depend_on_the_approach_speed():
    system = ball(restitution=lambda speed, a: 1 / (1 + a * speed), params={"a": 0.5})
    impacts = da.simulate(system, da.CVA(), q0=[1.0], v0=[0.0], h=0.01, steps=500).impacts
    assert len(impacts) >= 3
    assert np.allclose(impacts.p_after, -impacts.p_before / (1 - 0.5 * impacts.p_before))


def test_restitution_belongs_to_each_wall():
    room = da.Lagrangian(lambda q, v: v @ v / 2, dim=2, unilateral=lambda q: [q[0], 1 - q[0]], restitution=[1.0, 0.5])
    impacts = da.simulate(room, da.CVA(), q0=[0.5, 0.0], v0=[1.0, 0.3], h=0.1, steps=40).impacts
    assert np.allclose(-impacts.p_after[:, 0] / impacts.p_before[:, 0], np.where(impacts.which == 1, 0.5, 1.0))


def _on_a_table(e, amplitude, rate, end):
    """The exact impacts of a ball that falls from 1 on a table at amplitude sin(rate t)."""
    t, q, v, times = 0.0, 1.0, 0.0, []
    while True:

        def gap(s, t=t, q=q, v=v):
            return q + v * (s - t) - 9.81 * (s - t) ** 2 / 2 - amplitude * np.sin(rate * s)

        s = t + 1e-4
        while gap(s) > 0 and s < end:
            s += 1e-3
        if s >= end:
            return np.array(times)
        hit = brentq(gap, s - 1e-3, s, xtol=1e-15)
        table = amplitude * rate * np.cos(rate * hit)
        t, q, v = hit, amplitude * np.sin(rate * hit), table - e * (v - 9.81 * (hit - t) - table)
        times.append(hit)


@pytest.mark.parametrize("e", [1.0, 0.9])
@pytest.mark.parametrize("method", [da.CVA(), da.MCVAA(), da.MCVAC(), da.VCI()], ids=str)
def test_a_ball_on_a_vibrating_table_meets_it_when_it_should(method, e):
    system = da.Lagrangian(
        lambda q, v: v @ v / 2 - 9.81 * q[0],
        dim=1,
        unilateral=lambda t, q: q[0] - 0.1 * np.sin(3 * t),
        restitution=e,
    )
    run = da.simulate(system, method, q0=[1.0], v0=[0.0], h=0.005, t1=2.5)
    exact = _on_a_table(e, 0.1, 3.0, 2.5)
    assert len(run.impacts) == len(exact) >= 3
    variational = isinstance(method, da.VCI) and e == 1.0
    assert np.abs(run.impacts.t - exact).max() < (5e-5 if variational else 1e-13)
    table = 0.3 * np.cos(3 * run.impacts.t)
    if not variational:
        assert np.allclose(run.impacts.p_after[:, 0] - table, -e * (run.impacts.p_before[:, 0] - table), atol=1e-12)


def test_impulses_scale_with_the_mass():
    impacts = [
        da.simulate(
            da.Lagrangian(lambda q, v, m: m * (v @ v / 2 - q[0]), dim=1, unilateral=lambda q: 3 * q[0], params={"m": m}),
            da.CVA(), q0=[1.0], v0=[0.0], h=0.01, steps=200,
        ).impacts
        for m in (1.0, 5.0)
    ]  # fmt: skip
    assert np.allclose(impacts[0].impulse, 2 * np.sqrt(2) / 3)
    assert np.allclose(impacts[1].impulse, 10 * np.sqrt(2) / 3)
