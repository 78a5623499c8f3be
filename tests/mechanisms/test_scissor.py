"""A two-stage scissor lift: closed loops, a shoe that is held at zero, and starts from rest.

With the angle f of the arms, c = L cos f and s = L sin f: the arms of the first stage have their centres at (c/2, s/2), those
of the second at (c/2, 3s/2), all turn with f or -f, and the shoe is at (c, 0).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da

LENGTH, ANGLE, ARM, SHOE, GRAVITY = 0.83, 0.61, 1.3, 0.4, 9.81
METHODS = {
    da.Rattle(): 2e-6, da.LobattoIIIAB(3): 1e-11, da.GaussLobattoSPARK(2): 1e-11, da.GaussLobattoSPARK(1): 2e-6,
    da.Gauss(2, projected=True): 1e-5,
}  # fmt: skip
"""With the error of the angle that each may have."""


def lift(gravity=GRAVITY, order="ABCDS", angle=ANGLE, bar=0.0):
    """The lift, and the hinge that turns with f; parts are added in some order, which must not matter.

    A bar of some mass, half as long as an arm, says once more how A and C move: from 3/4 of A to 1/4 of C, parallel to B.
    """
    c, s = LENGTH * np.cos(angle), LENGTH * np.sin(angle)
    ends = {"A": ((0, 0), (c, s)), "B": ((c, 0), (0, s)), "C": ((0, s), (c, 2 * s)), "D": ((c, s), (0, 2 * s))}
    m = da.Mechanism(gravity=(0, -gravity), coordinates="planar")
    part = {
        name: m.body("shoe", mass=SHOE, inertia=0.01, at=(c, 0)) if name == "S" else m.rod(name, *ends[name], mass=ARM)
        for name in order
    }
    hinge = m.revolute(m.ground, part["A"], at=(0, 0))
    m.prismatic(m.ground, part["S"], axis=(1, 0))
    for one, other, at in (("S", "B", (c, 0)), ("A", "B", (c / 2, s / 2)), ("A", "D", (c, s)), ("B", "C", (0, s)),
                           ("C", "D", (c / 2, 1.5 * s))):  # fmt: skip
        m.revolute(part[one], part[other], at=at)
    if bar:
        ends = ((0.75 * c, 0.75 * s), (0.25 * c, 1.25 * s))
        rod = m.rod("bar", *ends, mass=bar)
        m.revolute(part["A"], rod, at=ends[0])
        m.revolute(part["C"], rod, at=ends[1])
    return m, hinge


def exact(t, rate, angle=ANGLE, gravity=GRAVITY, bar=0.0):
    """f by one equation, M(f) f'' + M'(f) f'^2 / 2 + V'(f) = 0; the bar has its centre at (c/2, s)."""

    def slope(_, x):
        cos2, sin2 = LENGTH**2 * np.cos(x[0]) ** 2, LENGTH**2 * np.sin(x[0]) ** 2
        mass = 4 * ARM * LENGTH**2 / 12 + ARM * (sin2 + 5 * cos2) + SHOE * sin2
        mass += bar * (LENGTH**2 / 48 + sin2 / 4 + cos2)
        mass_slope = (SHOE - 4 * ARM - 0.75 * bar) * LENGTH**2 * np.sin(2 * x[0])
        weight = (4 * ARM + bar) * gravity * LENGTH
        return [x[1], -(mass_slope * x[1] ** 2 / 2 + weight * np.cos(x[0])) / mass]

    return solve_ivp(slope, (0, t[-1]), [angle, rate], "DOP853", t, rtol=1e-12, atol=1e-12).y[0]


@pytest.mark.parametrize("order", ["ABCDS", pytest.param("SDCBA", marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_it_falls_as_one_angle_does(method, order):
    m, hinge = lift(order=order)
    for rate in (0.0, 0.9):
        run = da.simulate(m, method, start=m.start(rates={hinge: rate}), h=1e-3, steps=200)
        assert np.abs(ANGLE + run.of(hinge).angle - exact(run.t, rate)).max() < METHODS[method]
        assert run.stats["rescued_steps"] == run.stats["followed_steps"] == 0
        assert np.abs(run.residuals["g"]).max() < 1e-14


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_it_stays_at_rest_where_nothing_acts(method):
    m, _ = lift(gravity=0.0)
    run = da.simulate(m, method, start=m.start(), h=1e-3, steps=100)
    assert run.status == "done" and np.abs(run.q - run.q[0]).max() < 1e-14


@pytest.mark.parametrize(("gravity", "rate", "angle"), [(0.0, 1.0, ANGLE), (0.0, -3.0, 0.3), (GRAVITY, -2.0, ANGLE)])
@pytest.mark.parametrize("method", [da.Rattle(), da.LobattoIIIAB(3)], ids=str)
def test_a_redundant_bar_passes_flat_positions_on_the_momentum(method, gravity, rate, angle):
    """It lies flat at f = 0 and f = -pi, and stands upright at odd multiples of pi/2: in all of these rows lose rank."""
    m, hinge = lift(gravity, angle=angle, bar=0.2)
    run = da.simulate(m, method, start=m.start(rates={hinge: rate}), h=1e-3, t1=2.0)
    expected = exact(run.t, rate, angle, gravity, 0.2)
    assert np.ptp(expected) > 2.0 and np.abs(angle + run.of(hinge).angle - expected).max() < 50 * METHODS[method]
    speed = np.abs(run.v).max()
    assert np.abs(run.residuals["g"]).max() < 1e-13 and np.abs(run.residuals["g_dot"]).max() < 1e-13 * max(1.0, speed)
