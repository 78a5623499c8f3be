"""Feet under a table: the motion does not determine their forces, and a run says so and shows those of least norm."""

import numpy as np
import pytest
from scipy.optimize import minimize

import dalembert as da

G, M, B = 9.81, 0.2, 0.05
J = M * (0.1**2 + B**2) / 3
STEPPING = [da.NonsmoothRattle(), da.MoreauJean()]


def table(feet, slope, mu):
    """A body (x, y, angle) on a slope, x along it, with feet B below its centre."""
    rough = {} if mu is None else {
        "friction": mu,
        "slip": lambda q, v: [v[0] - (x * np.sin(q[2]) - B * np.cos(q[2])) * v[2] for x in feet],
    }  # fmt: skip
    return da.Lagrangian(
        lambda q, v: (
            M * (v[0] ** 2 + v[1] ** 2) / 2 + J * v[2] ** 2 / 2 - M * G * (q[0] * np.sin(slope) + q[1] * np.cos(slope))
        ),
        3,
        unilateral=lambda q: [q[1] + x * np.sin(q[2]) - B * np.cos(q[2]) for x in feet],
        restitution=0.0,
        **rough,
    )


def least(feet, slope, mu):
    """The least forces (N, T) in their cones that hold the table, by another algorithm."""
    n = len(feet)
    balance = np.block([[np.zeros(n), np.ones(n)], [np.ones(n), np.zeros(n)], [np.array(feet), np.full(n, B)]])
    load = M * G * np.array([np.sin(slope), np.cos(slope), 0])
    found = minimize(
        lambda f: f @ f,
        np.tile([load[1] / n, load[0] / n], (n, 1)).T.ravel(),
        jac=lambda f: 2 * f,
        constraints=[
            {"type": "eq", "fun": lambda f: balance @ f - load, "jac": lambda f: balance},
            {"type": "ineq", "fun": lambda f: np.concatenate([f[:n], mu * f[:n] - f[n:], mu * f[:n] + f[n:]])},
        ],
        options={"ftol": 1e-16, "maxiter": 500},
    )
    assert found.success
    return found.x[:n], found.x[n:]


@pytest.mark.parametrize("slope", [0.0, 0.2, 0.45])
@pytest.mark.parametrize("feet", [(-0.1, 0.1), (-0.1, 0.02, 0.1), (-0.1, -0.09, 0.1)], ids=str)
def test_forces_at_rest_are_those_of_least_norm_and_not_called_unique(feet, slope):
    """On the steepest slope some of them end at mu N."""
    system, start = table(feet, slope, 0.5), {"q0": [0, B, 0], "v0": [0, 0, 0], "h": 1e-3, "steps": 20}
    run = da.simulate(system, da.CVA(), **start)
    forces, (N, T) = run.contact_forces, least(feet, slope, 0.5)
    np.testing.assert_allclose(forces.normal, np.tile(N, (21, 1)), rtol=0, atol=2e-7)
    np.testing.assert_allclose(forces.friction, np.tile(T, (21, 1)), rtol=0, atol=2e-7)
    np.testing.assert_allclose(forces.friction.sum(axis=1), M * G * np.sin(slope), rtol=0, atol=1e-12)
    assert not forces.unique.any() and not run.contacts_unique.any()
    for method in STEPPING:
        stepped = da.simulate(system, method, **start)
        assert len(stepped.contacts) > 20 and not stepped.contacts_unique.any()


def test_friction_of_a_point_and_of_feet_that_slide_is_unique():
    system = table((-0.1, 0.1), 0.2, 0.5)
    for method in (da.CVA(), *STEPPING):
        run = da.simulate(system, method, q0=[0, B, 0], v0=[1, 0, 0], h=1e-3, t1=0.3)
        slides = run.contacts.end < 0.14  # until t = v / (g (mu cos + sin)) = 0.1480
        rests = run.contacts.begin > 0.15
        if isinstance(method, da.CVA):
            slides, rests = run.contacts.slides == 1, run.contacts.begin > 0
            slides &= ~rests
        assert run.contacts_unique[slides].all() and not run.contacts_unique[rests].any()
        point = da.Lagrangian(lambda q, v: M * v @ v / 2 - M * G * q[1], 2, unilateral=lambda q: q[1] - q[0] / 5, friction=0.5)
        run = da.simulate(point, method, q0=[0, 0], v0=[0, 0], h=1e-3, steps=10)
        assert len(run.contacts) and run.contacts_unique.all()


def test_three_feet_without_friction():
    """N = a + b x has least norm: the multipliers of the two conditions, sum and moment."""
    feet = np.array([-0.1, 0.02, 0.1])
    rows = np.array([np.ones(3), feet])
    expected = np.linalg.pinv(rows) @ [M * G, 0]
    run = da.simulate(table(tuple(feet), 0.0, None), da.CVA(), q0=[0, B, 0], v0=[0, 0, 0], h=1e-3, steps=5)
    np.testing.assert_allclose(run.contact_forces.normal, np.tile(expected, (6, 1)), rtol=1e-11)
    assert not run.contacts_unique.any()
    two = da.simulate(table((-0.1, 0.1), 0.0, None), da.CVA(), q0=[0, B, 0], v0=[0, 0, 0], h=1e-3, steps=5)
    assert two.contacts_unique.all() and two.contact_forces.unique.all()


@pytest.mark.parametrize("method", STEPPING, ids=["NonsmoothRattle", "MoreauJean"])
def test_four_feet_of_a_stool_in_space(method):
    """Three would be enough, for friction is the same whichever press; if it turns, friction shows which do."""
    mass, inertia, feet = 4.0, 0.1, [(x, y) for x in (-0.2, 0.2) for y in (-0.2, 0.2)]
    stool = da.Lagrangian(  # small angles about x and y are q[3:5]
        lambda q, v: mass * v[:3] @ v[:3] / 2 + inertia * v[3:] @ v[3:] / 2 - mass * G * q[2],
        6,
        unilateral=lambda q: [q[2] + y * q[3] - x * q[4] for x, y in feet],
        restitution=0.0,
        friction=0.3,
        slip=lambda q, v: [w for x, y in feet for w in (v[0] - y * v[5], v[1] + x * v[5])],
    )
    for turning in (0.0, 2.0):
        run = da.simulate(stool, method, q0=np.zeros(6), v0=[0.5, 0.1, 0, 0, 0, turning], h=1e-3, steps=5)
        assert len(run.contacts) >= 10 and np.all(run.contacts_unique == (turning != 0))


def test_a_contact_of_which_no_state_was_stored_is_not_called_unique():
    """A table falls 1 mm and is lifted before the first state that is stored."""
    feet = (-0.1, 0.1)
    lifted = da.Lagrangian(
        lambda t, q, v: M * (v[0] ** 2 + v[1] ** 2) / 2 + J * v[2] ** 2 / 2 - 2 * np.cos(20 * t) * q[1],
        3,
        unilateral=lambda q: [q[1] + x * np.sin(q[2]) - B * np.cos(q[2]) for x in feet],
        restitution=0.0,
        friction=0.5,
        slip=lambda q, v: [v[0] - (x * np.sin(q[2]) - B * np.cos(q[2])) * v[2] for x in feet],
    )
    for save_every in (1, 50):
        run = da.simulate(lifted, da.CVA(), q0=[0, B + 1e-3, 0], v0=[0, 0, 0], h=0.01, steps=50, save_every=save_every)
        assert len(run.contacts) == 2 and not run.contacts_unique.any()
