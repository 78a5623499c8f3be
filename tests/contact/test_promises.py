"""What time stepping promises, on random boxes that fall into random wedges."""

import numpy as np
import pytest
from contact_models import box

import dalembert as da


def problem(rng):
    """A box with 8 possible contacts, at random above a wedge: its parameters, start and step size."""
    params = {
        "slope": rng.uniform(0, 1.2),
        "mu": rng.uniform(0, 1),
        "e": rng.choice([0.0, rng.uniform(0, 1), 1.0]),
        "m": rng.choice([0.2, 2.0, 1e-3]),
        "a": rng.uniform(0.02, 0.2),
        "b": rng.uniform(0.02, 0.2),
        "g": rng.choice([0.0, 9.81]),
    }
    x = rng.uniform(-0.3, 0.3)
    q0 = [x, abs(x) * np.tan(params["slope"]) + 0.3 / np.cos(params["slope"]), rng.uniform(-3, 3)]
    v0 = rng.normal(size=3) * [1, 1, 5] - [0, 2, 0]
    return params, {"q0": q0, "v0": v0, "h": 10 ** rng.uniform(-4, -2), "steps": 300}


def check(system, method, params, start):
    run = da.simulate(system, method, params=params, **start, on_failure="return")
    if run.status != "done":
        assert "Painleve" in run.message, run.message
    theta, contacts = system.parameters.vector(params), run.contacts
    if isinstance(method, da.NonsmoothRattle):
        phi = np.array([system.evaluate("phi", 0.0, q, theta=theta) for q in run.q])
        assert phi.min() > -1e-12
    if len(contacts):
        assert contacts.normal.min() > 0
        excess = np.abs(contacts.friction[:, 0]) - params["mu"] * contacts.normal
        assert excess.max() < 1e-9 * contacts.normal.max()
    if params["g"] == 0:
        assert np.diff(run.energy).max() < 1e-13 * run.energy[0]
    return len(contacts)


@pytest.mark.parametrize("method", [da.MoreauJean(), da.NonsmoothRattle()], ids=["MoreauJean", "NonsmoothRattle"])
def test_no_force_pulls_no_wall_is_passed_and_contacts_add_no_energy(method):
    system, rng = box(walls=2), np.random.default_rng(11)
    assert sum(check(system, method, *problem(rng)) for _ in range(25)) > 500


@pytest.mark.slow
def test_the_same_for_a_thousand_problems():
    system, rng = box(walls=2), np.random.default_rng(12)
    for _ in range(500):
        given = problem(rng)
        for method in (da.MoreauJean(), da.NonsmoothRattle()):
            check(system, method, *given)
