"""Contacts that end under loads that change sign: when they end, that none pulls before, and the motion after it."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, linprog

import dalembert as da

MASS, INERTIA, LOAD, RATE, LEAST = 0.2, 0.01, 3.0, 20.0, 0.5


def pressed_point(least, across, restitution):
    """A point on the ground under a load (LOAD cos RATE t + least) and a constant force along it."""
    return da.Lagrangian(
        lambda t, q, v, m, least, across: m * v @ v / 2 - (LOAD * np.cos(RATE * t) + least) * q[1] + across * q[0],
        dim=2,
        unilateral=lambda q: q[1],
        friction=0.5,
        restitution=restitution,
        params={"m": MASS, "least": least, "across": across},
    )


@pytest.mark.parametrize("base", ["SVC", da.Gauss(stages=3)], ids=str)
@pytest.mark.parametrize("across", [0.0, 0.3], ids=["sticks", "slides"])
@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("least", [0.0, LEAST], ids=["flies off", "comes back"])
def test_a_point_lets_go_when_its_load_changes_sign_and_flies_as_it_must(base, across, restitution, least):
    released = np.arccos(-least / LOAD) / RATE
    sin, cos = np.sin(RATE * released), np.cos(RATE * released)

    def height(t):
        s, a = t - released, LOAD / MASS / RATE
        return a / RATE * (np.cos(RATE * t) - cos) + a * sin * s - least / MASS * s**2 / 2

    run = da.simulate(pressed_point(least, across, restitution), da.CVA(base), q0=[0, 0], v0=[0, 0], h=0.01, steps=60)
    back = brentq(height, released + 0.15, 1.5, xtol=1e-15) if least else np.inf
    flight = (run.t > released) & (run.t < min(back, 0.6))
    exact = isinstance(base, da.Gauss)
    assert np.isclose(run.contacts.end[run.contacts.end < back - 1e-3].max(), released, rtol=0, atol=1e-9)
    assert run.contact_forces.normal.min() >= 0 and run.q[:, 1].min() > -1e-13
    assert np.max(np.abs(run.q[flight, 1] - height(run.t[flight]))) < (1e-9 if exact else 5e-3)
    if back < 0.59:
        assert abs(run.impacts.t[0] - back) < (1e-9 if exact else 1e-2)
    if across:  # it slides where 0.5 N = across, until it is released
        slides = brentq(lambda t: 0.5 * (LOAD * np.cos(RATE * t) + least) - across, 0, released)
        given = 0.5 * (LOAD / RATE * (sin - np.sin(RATE * slides)) + least * (released - slides))
        momentum = across * (run.t[flight] - slides) - given
        assert np.allclose(run.p[flight, 0], momentum, rtol=0, atol=1e-10 if exact else 1e-4)
        assert np.isclose(run.contacts.begin[1], slides, rtol=0, atol=1e-9)


def table(feet, height, friction, restitution, moment, across, lift):
    """A body (x, y, angle) with feet on the ground, 2 N heavy and lifted, under a moment and a force along the ground."""
    return da.Lagrangian(
        lambda t, q, v: (
            MASS * (v[0] ** 2 + v[1] ** 2) / 2
            + INERTIA * v[2] ** 2 / 2
            - (2 - lift * np.sin(5 * t)) * q[1]
            + moment * np.sin(3 * t) * q[2]
            + across * q[0]
        ),
        dim=3,
        unilateral=lambda q: [q[1] + x * np.sin(q[2]) - height * np.cos(q[2]) for x in feet],
        slip=lambda q, v: [v[0] - (x * np.sin(q[2]) - height * np.cos(q[2])) * v[2] for x in feet],
        friction=friction,
        restitution=restitution,
    )


def rest_ends(feet, height, friction, moment, across, lift):
    """How long some forces N >= 0, |T| <= mu N hold the table: by linear programming."""
    n, one = len(feet), np.eye(len(feet))
    balance = np.block([[np.ones(n), np.zeros(n)], [np.zeros(n), np.ones(n)], [np.array(feet), np.full(n, height)]])
    cones = np.block([[-friction * one, one], [-friction * one, -one]])

    def held(t):
        load = 1e6 * np.array([2 - lift * np.sin(5 * t), -across, -moment * np.sin(3 * t)])  # linprog has absolute tolerances
        bounds = [(0, None)] * n + [(None, None)] * n
        return linprog(np.zeros(2 * n), cones, np.zeros(2 * n), balance, load, bounds).status == 0

    low, high = 0.0, next(t for t in np.arange(0.0, 0.4, 0.01) if not held(t))
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) else (low, middle)
    return low


TABLES = [
    ((0.0,), 0.137, 0.2, 0.0, 0.0, 3.0),
    ((-0.1, 0.1), 0.05, 0.5, 1.2, 0.0, 0.0),
    ((-0.21, 0.25), 0.139, 0.5, -0.727, -0.45, 3.0),
    ((-0.27, -0.16, 0.18), 0.04, 0.5, -0.818, 0.0, 3.0),
    ((-0.3, 0.1, 0.4), 0.05, 0.5, -1.2, 0.0, 0.0),
    ((-0.3, 0.1, 0.4), 0.05, 0.5, 1.2, 0.4, 0.0),
    ((-0.29, -0.08, 0.2), 0.016, 0.5, 0.305, -0.407, 3.0),
    ((-0.16, 0.03, 0.11), 0.008402357813737216, 0.5, -0.4077000004325326, 0.0, 3.0),
    ((-0.06, 0.06, 0.16), 0.03923398239365439, 0.5, -0.656445969836331, -0.5738287927842238, 3.0),
    ((-0.2, -0.13, 0.02), 0.19398508264322653, 0.5, 0.03213717109575742, 0.0, 3.0),
    ((-0.09, 0.04), 0.009012132001878115, 0.5, 0.31471492259884215, 0.6997711794062547, 3.0),
    ((-0.28, 0.07, 0.14), 0.144, 0.5, -0.968, 0.0, 0.0),
]


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("case", TABLES, ids=str)
def test_no_foot_pulls_and_a_table_rests_as_long_as_forces_that_push_can_hold_it(case, restitution):
    feet, height, friction, *loads = case
    ends = rest_ends(feet, height, friction, *loads)
    for h in (0.02, 0.01, 0.005):
        model = table(feet, height, friction, restitution, *loads)
        run = da.simulate(model, da.CVA(), q0=[0, height, 0], v0=[0, 0, 0], h=h, steps=round(0.3 / h))
        phi = [q[1] + x * np.sin(q[2]) - height * np.cos(q[2]) for q in run.q for x in feet]
        forces, times = run.contact_forces, [*run.contacts.begin, *run.contacts.end]
        assert forces.normal.min() >= 0 and min(phi) > -1e-13
        assert np.all(np.abs(forces.friction) <= friction * forces.normal * (1 + 1e-9) + 1e-12)
        assert np.max(np.abs(run.q[run.t < ends] - run.q[0])) < 1e-13
        assert np.min(np.abs(np.array(times) - ends)) < 1e-9


@pytest.mark.parametrize("feet", [(-0.1, 0.1), (-0.1, 0.02, 0.1)], ids=str)
def test_a_table_turns_about_the_foot_that_sticks(feet):
    """The same motion in one angle: the foot at -0.1 stays where it is."""
    height, moment, x = 0.05, 0.6, feet[0]
    ends = rest_ends(feet, height, 0.9, moment, 0.0, 0.0)

    def rate(t, state):
        angle = state[0]
        weight = 2 * (x * np.cos(angle) + height * np.sin(angle))
        return [state[1], (weight + moment * np.sin(3 * t)) / (INERTIA + MASS * (x**2 + height**2))]

    exact = solve_ivp(rate, (ends, 0.3), [0, 0], rtol=1e-12, atol=1e-14, method="DOP853").y[0, -1]
    errors = []
    for h in (0.01, 0.005):
        model = table(feet, height, 0.9, 0.0, moment, 0.0, 0.0)
        run = da.simulate(model, da.CVA(), q0=[0, height, 0], v0=[0, 0, 0], h=h, steps=round(0.3 / h))
        errors.append(abs(run.q[-1, 2] / exact - 1))
    assert errors[0] < 0.01 and errors[1] < 0.3 * errors[0]
