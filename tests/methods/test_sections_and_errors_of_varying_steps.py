"""Sections, and estimates of errors, of runs whose step sizes vary, against Kepler's equation and exact crossings."""

import numpy as np
import pytest
from encounters import ellipse
from scipy.integrate import solve_ivp

import dalembert as da

M, K, A = 0.2, 3.0, 1.5
"""A mass of 0.2 kg on an ellipse of 1.5 m."""
PERIOD = 2 * np.pi * np.sqrt(A**3 * M / K)
ORBIT = da.Hamiltonian(lambda q, p, m, k: p @ p / (2 * m) - k / np.hypot(q[0], q[1]), dim=2, params={"m": M, "k": K})


def by_distance(q):
    return np.linalg.norm(q) ** -1.5


def pericentre(e):
    return {"q0": [A * (1 - e), 0.0], "p0": [0.0, np.sqrt(M * K * (1 + e) / (A * (1 - e)))]}


def exact(e, t):
    """In units of the half axis and of the period over 2 pi it is the ellipse of GM = 1."""
    return A * ellipse(2 * np.pi * np.asarray(t) / PERIOD, e)


@pytest.mark.parametrize(
    ("method", "bound"),
    [
        (da.ReversibleSteps(da.LobattoIIIAB(5), by_distance), 1e-6),
        (da.ReversibleSteps(da.compose(da.Rattle(), 6), by_distance), 1e-3),
        (da.ControlledSteps(da.GaussLobattoSPARK(4), rtol=1e-10), 1e-9),
    ],
)
def test_sections_of_varying_steps(method, bound):
    """The axis is crossed upwards once a period; the errors are those of the runs, and crossings are on it to round-off."""
    found = da.poincare(ORBIT, method, section=lambda q: q[1], **pericentre(0.9), h=0.05, steps=1200)
    assert len(found.t) > 5 and found.status == ("done",) and found.message == ("",)
    periods = found.t / PERIOD
    assert np.abs(periods - np.arange(1, len(periods) + 1)).max() < bound
    assert np.abs(found.q[:, 1]).max() < 1e-15 and np.all(found.v[:, 1] > 0)


def test_sections_of_members_with_varying_steps():
    eccentricities = (0.5, 0.9)
    q0, p0 = ([pericentre(e)[name] for e in eccentricities] for name in ("q0", "p0"))
    method, given = da.ReversibleSteps(da.LobattoIIIAB(5), by_distance), {"section": lambda q: q[0], "h": 0.05, "steps": 600}
    many = da.poincare(ORBIT, method, q0=q0, p0=p0, **given, direction=-1)
    for member, e in enumerate(eccentricities):
        alone = da.poincare(ORBIT, method, **pericentre(e), **given, direction=-1)
        assert np.array_equal(many[member].t, alone.t) and len(alone.t) > 5
        assert np.abs(alone.q[:, 1] - A * (1 - e**2)).max() < 1e-5  # the semi-latus rectum


def test_sections_on_constraints_in_varying_steps():
    """A damped pendulum of 0.2 kg, against its angle by DOP853: its lowest points."""
    bob = da.Lagrangian(
        lambda q, v: 0.1 * v @ v - 0.2 * 9.81 * q[1],
        dim=2,
        holonomic=lambda q: [q @ q - 0.09],
        force=lambda v: -0.05 * v,
    )
    method = da.ControlledSteps(da.RadauIIA(3, projected=True), rtol=1e-8)
    found = da.poincare(bob, method, section=lambda q: q[0], direction=-1, q0=[0.3, 0.0], v0=[0, 0], h=1e-3, steps=1500)

    def lowest(_, y):
        return y[0]

    lowest.direction = -1
    rates = lambda _, y: [y[1], -9.81 / 0.3 * np.sin(y[0]) - 0.25 * y[1]]  # noqa: E731
    angle = solve_ivp(rates, (0, found.t[-1] + 0.01), [np.pi / 2, 0], "DOP853", events=lowest, rtol=1e-13, atol=1e-13)
    assert len(found.t) > 3 and found.t == pytest.approx(angle.t_events[0], abs=1e-6)
    assert np.abs(found.q[:, 0]).max() < 1e-15 and np.abs(found.q @ [0, 1] + 0.3).max() < 1e-14


@pytest.mark.parametrize("h", [0.05, -0.05])
@pytest.mark.parametrize(
    "method",
    [
        da.ReversibleSteps(da.LobattoIIIAB(4), by_distance),
        da.ReversibleSteps(da.compose(da.Rattle(), 4), by_distance),
        da.SymplecticSteps(da.LobattoIIIAB(4), by_distance),
        da.ControlledSteps(da.GaussLobattoSPARK(3), rtol=1e-7),
    ],
)
def test_estimates_of_runs_in_varying_steps(method, h):
    run = da.simulate(ORBIT, method, **pericentre(0.6), h=h, steps=300, save_every=7)
    estimate, true = da.verify.error(run), np.abs(run.q - exact(0.6, run.t))
    assert estimate.q.shape == run.q.shape and estimate.q.max() == pytest.approx(true.max(), rel=0.1)
    assert np.median(estimate.q / np.maximum(true, 1e-300)) == pytest.approx(1, rel=0.1)


def test_estimates_of_controlled_steps_end_at_rounding():
    run = da.simulate(ORBIT, da.ControlledSteps(da.GaussLobattoSPARK(4), rtol=1e-11), **pericentre(0.6), h=0.01, steps=5)
    with pytest.raises(da.InputError, match="which rounding forbids"):
        da.verify.error(run)
