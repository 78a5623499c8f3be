"""Derivatives through impacts: exact solutions, and differences where there are none."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

METHODS = [da.CVA(), da.CVA(da.Gauss(2)), da.VCI(), da.MCVA(), da.MCVAC()]


def two_balls():
    """Balls of radius 0.1 on a line."""
    return da.Lagrangian(
        lambda v, m: m * v @ v / 2, dim=2, unilateral=lambda q: [q[1] - q[0] - 0.2], restitution=1.0, params={"m": 1.0}
    )


@pytest.mark.parametrize(
    ("method", "h"), [*((method, 1 / 32) for method in METHODS), (da.CVA(), 0.04), (da.MCVA(), 0.04)], ids=str
)  # the balls meet at t = 0.32, the end of a step of 0.04
def test_two_balls_exchange_their_velocities(method, h):
    """The ball that is hit ends at x_1 + 0.2 + v_1 T, the other at x_2 - 0.2 + v_2 T: (1, 0, T, 0) and (0, 1, 0, T)."""
    s = da.sensitivities(two_balls(), method, wrt=("q0", "v0", "m"), q0=[0.0, 0.52], v0=[1.0, 0.0], h=h, t1=1.0)
    assert len(s.run.impacts) == 1
    np.testing.assert_allclose(s.run.q[-1], [0.32, 1.2], atol=1e-13)
    np.testing.assert_allclose(s.of("q", "q0")[-1], [[0, 1], [1, 0]], atol=1e-12)
    np.testing.assert_allclose(s.of("q", "v0")[-1], [[0, 1], [1, 0]], atol=1e-12)
    np.testing.assert_allclose(s.of("q", "m")[-1], 0, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "restitution"),
    [(da.CVA(da.Gauss(2)), 1.0), (da.CVA(da.Gauss(2)), 0.6), (da.MCVA(), 0.6)],
    ids=str,
)
def test_a_ball_dropped_on_a_floor(method, restitution):
    """z(T) = e s (T - t) - g (T - t)^2/2 after one bounce at t = sqrt(2 z0/g) with the speed s = sqrt(2 g z0)."""
    g, z0, h, steps = 9.81, 1.0, 0.01, 70
    ball = da.Lagrangian(
        lambda q, v, m, g: m * v @ v / 2 - m * g * q[0],
        dim=1,
        unilateral=lambda q: [q[0]],
        restitution=restitution,
        params={"m": 0.2, "g": g},
    )
    s = da.sensitivities(ball, method, wrt=("q0", "v0", "m", "g"), q0=[z0], v0=[0.0], h=h, steps=steps)
    T, t, speed = h * steps, np.sqrt(2 * z0 / g), np.sqrt(2 * g * z0)
    rest, e = T - t, restitution
    assert len(s.run.impacts) == 1
    np.testing.assert_allclose(s.run.q[-1, 0], e * speed * rest - g * rest**2 / 2, rtol=1e-11)
    dt, dspeed = 1 / speed, g / speed  # by z0
    exact = e * dspeed * rest - (e * speed - g * rest) * dt
    np.testing.assert_allclose(s.of("q", "q0")[-1, 0, 0], exact, rtol=1e-10)
    dt, dspeed = -t / (2 * g), speed / (2 * g)  # by g
    exact = e * dspeed * rest - (e * speed - g * rest) * dt - rest**2 / 2
    np.testing.assert_allclose(s.of("q", "g")[-1, 0], exact, rtol=1e-10)
    assert abs(s.of("q", "m")[-1, 0]) < 1e-11
    given = dict(wrt=("q0", "g"), q0=[z0], v0=[0.0], h=h, steps=steps)
    value, slope = da.gradient(lambda q: q[0] ** 2, ball, method, running=lambda q: q[0], **given)
    assert value == pytest.approx(s.run.q[-1, 0] ** 2 + np.sum(s.run.q[1:, 0]), rel=1e-12)
    for name in slope:
        exact = 2 * s.run.q[-1, 0] * s.of("q", name)[-1, 0] + s.of("q", name)[1:, 0].sum(axis=0)
        np.testing.assert_allclose(slope[name], exact, rtol=1e-10)


def test_slope_minus_one_while_it_rises():
    """Without gravity after the bounce: a ball thrown at the floor at constant speed rises to v T - z0."""
    free = da.Lagrangian(lambda v: 0.1 * v @ v, dim=1, unilateral=lambda q: [q[0]])
    _, slope = da.gradient(lambda q: q[0], free, da.CVA(), wrt="q0", q0=[0.5], v0=[-1.0], h=0.03, steps=30)
    np.testing.assert_allclose(slope, [-1.0], atol=1e-13)


def test_several_impacts_of_a_double_pendulum_against_differences():
    """Differences of runs with the same impacts; walls, masses and lengths are parameters."""
    system = da.Lagrangian(
        lambda q, v, m, r: (
            m * (v[0] ** 2 + (v[0] ** 2 + r**2 * v[1] ** 2 + 2 * r * v[0] * v[1] * np.cos(q[0] - q[1])) / 2)
            + 9.81 * m * (2 * np.cos(q[0]) + r * np.cos(q[1]))
        ),
        dim=2,
        unilateral=lambda q, wall: [wall - q[0], wall + q[1]],
        restitution=0.8,
        params={"m": 0.2, "r": 0.7, "wall": 0.4},
    )
    given = dict(q0=[-0.5, 0.3], v0=[0.0, 0.0], h=0.005, steps=500)
    s = da.sensitivities(system, da.CVA(), wrt=("q0", "r", "wall"), **given)
    assert len(s.run.impacts) >= 3

    def end(**change):
        return da.simulate(system, da.CVA(), **given | change).states[-1]

    eps = 1e-6
    for name, value in (("r", 0.7), ("wall", 0.4)):
        difference = (end(params={name: value + eps}) - end(params={name: value - eps})) / (2 * eps)
        assert np.abs(difference - s[name][-1]).max() < 1e-6 * np.abs(difference).max()
    for k in range(2):
        move = eps * np.eye(2)[k]
        difference = (end(q0=np.array(given["q0"]) + move) - end(q0=np.array(given["q0"]) - move)) / (2 * eps)
        assert np.abs(difference - s["q0"][-1, :, k]).max() < 1e-6 * np.abs(difference).max()


def test_a_grazing_impact_has_no_derivative():
    """A point that touches a disc: |x| >= 1 with x = (t - 1, 1 - tiny) meets it almost tangentially."""
    disc = da.Lagrangian(lambda v: v @ v / 2, dim=2, unilateral=lambda q: [q @ q - 1])
    with pytest.raises(da.InputError, match="grazing"):
        da.sensitivities(disc, da.CVA(), wrt="q0", q0=[-1.0, 1 - 1e-13], v0=[1.0, 0.0], h=0.3, steps=6)


@pytest.mark.parametrize("apart", [0.0, 1e-10])
def test_walls_struck_at_one_instant_are_refused(apart):
    """Two balls that fall side by side: the time of the first bounce is not that of the second from other starts."""
    balls = da.Hamiltonian(lambda q, p: p @ p / 2 + q[0] + q[1], dim=2, unilateral=lambda q: [q[0], q[1]])
    given = dict(wrt="q0", p0=[0.0, 0.0], h=0.11, steps=20)
    with pytest.raises(da.StepFailed, match="several events at one instant"):
        da.gradient(lambda q: q[1], balls, da.CVA(da.Gauss(2)), q0=[1.0, 1.0 + apart], **given)
    t, T = np.sqrt(2 * 1.001), 0.11 * 20  # one after the other: q_1(T) = s (T - t) - (T - t)^2/2 with s = t
    _, slope = da.gradient(lambda q: q[1], balls, da.CVA(da.Gauss(2)), q0=[1.0, 1.001], **given)
    np.testing.assert_allclose(slope, [0.0, ((T - t) - t + (T - t)) / t], atol=1e-12)


def test_a_rod_that_lands_flat_has_no_derivative():
    """Which end of it strikes the floor first is decided by its angle."""
    rod = da.Lagrangian(
        lambda q, v: 0.1 * (v[0] ** 2 + v[1] ** 2 / 12) - 0.2 * 9.81 * q[0],
        dim=2,
        unilateral=lambda q: [q[0] - np.sin(q[1]) / 2, q[0] + np.sin(q[1]) / 2],
        restitution=0.5,
    )
    with pytest.raises(da.StepFailed, match="several events at one instant"):
        da.sensitivities(rod, da.CVA(), wrt="q0", q0=[0.1, 0.0], v0=[0.0, 0.0], h=0.01, steps=20)


def test_memory_is_looked_at_before_a_run_with_impacts():
    """All states and derivatives are kept, whatever save_every is: 1e13 steps of one ball are 640 TB."""
    ball = da.Hamiltonian(lambda q, p: p @ p / 2 + q[0], dim=1, unilateral=lambda q: [q[0]])
    given = dict(wrt="q0", q0=[1.0], p0=[0.0], h=0.1, steps=10**13, save_every=10**12)
    with pytest.raises(da.InputError, match="GB of memory: take fewer steps"):
        da.sensitivities(ball, da.CVA(), **given)
    with pytest.raises(da.InputError, match="GB of memory: take fewer steps"):
        da.gradient(lambda q: q[0], ball, da.CVA(), **given)


def test_progress_of_a_run_with_impacts(monkeypatch, capsys):
    """The run itself, whose steps are not counted, and the derivatives after it."""
    monkeypatch.setattr("dalembert._progress.PATIENCE", 0.0)
    ball = da.Hamiltonian(lambda q, p: p @ p / 2 + q[0], dim=1, unilateral=lambda q: [q[0]])
    da.sensitivities(ball, da.CVA(), wrt="q0", q0=[1.0], p0=[0.0], h=0.11, steps=20, progress=True)
    assert "making the run with impacts" in capsys.readouterr().err
