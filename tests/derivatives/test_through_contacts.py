"""Derivatives through contacts: landing, release, stick and slip, against exact solutions; forwards and by the adjoint."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

G = 9.81


def check(system, exact, numbers, method=None, rtol=1e-10, **given):
    """q[0] at the end and its derivatives against an explicit formula, which is differentiated by a complex step.

    `numbers` maps arguments of the formula to the name and the index of what they are in the run, and their values.
    """
    method = da.CVA(da.Gauss(2)) if method is None else method
    at, wrt = (
        {key: value for key, (_, _, value) in numbers.items()},
        tuple(dict.fromkeys(name for name, *_ in numbers.values())),
    )
    s = da.sensitivities(system, method, wrt=wrt, **given)
    value, gradient = da.gradient(lambda q: q[0], system, method, wrt=wrt, **given)
    assert value == s.run.q[-1, 0]
    assert abs(value - exact(**at)) < rtol * abs(value)
    found = {key: (s.of("q", name)[-1, 0][index], gradient[name][index]) for key, (name, index, _) in numbers.items()}
    slopes = {key: exact(**at | {key: at[key] + 1e-30j}).imag / 1e-30 for key in at}
    size = max(abs(slope) for slope in slopes.values())
    for key, slope in slopes.items():
        for ours in found[key]:
            assert abs(ours - slope) < rtol * max(abs(slope), 1e-3 * size), (key, found[key], slope)
    return s.run


def block(restitution=0.0):
    """A block of 0.2 kg on an incline, x pointing upwards along it."""
    return da.Lagrangian(
        lambda q, v, a: 0.1 * v @ v - 0.2 * G * (q[0] * np.sin(a) + q[1] * np.cos(a)),
        dim=2,
        unilateral=lambda q: q[1],
        restitution=lambda e: e,
        friction=lambda mu: mu,
        params={"a": 0.5, "mu": 0.3, "e": restitution},
    )


@pytest.mark.parametrize("mu", [0.7, 0.3])
def test_a_block_slides_up_stops_and_stays_or_slides_back(mu):
    def exact(v, mu, a):
        stop = v / (G * (np.sin(a) + mu * np.cos(a)))
        back = 0 if mu.real > 0.6 else G * (np.sin(a) - mu * np.cos(a))
        return v * stop / 2 - back * (2.0 - stop) ** 2 / 2

    numbers = {"v": ("v0", 0, 3.0), "mu": ("mu", (), mu), "a": ("a", (), 0.5)}
    run = check(block(), exact, numbers, q0=[0.0, 0.0], v0=[3.0, 0.0], params={"mu": mu}, h=0.02, t1=2.0)
    assert list(run.contacts.slides) == [1, 0 if mu > 0.6 else -1]


def test_a_block_lands_slides_and_sticks():
    """The impact takes mu (1 + e) times the normal velocity, here with e = 0, from the sliding one; then mu g brakes it."""

    def exact(z, v, mu):
        land, w = np.sqrt(2 * z / G), v - mu * np.sqrt(2 * G * z)
        return v * land + w**2 / (2 * mu * G)

    numbers = {"z": ("q0", 1, 0.2), "v": ("v0", 0, 3.0), "mu": ("mu", (), 0.4)}
    run = check(block(), exact, numbers, q0=[0.0, 0.2], v0=[3.0, 0.0], params={"mu": 0.4, "a": 0.0}, h=0.03, t1=1.2)
    assert list(run.contacts.slides) == [1, 0] and len(run.impacts) == 1 and run.impacts.friction[0] < 0


def test_bounces_with_friction_accumulate():
    """Speeds e^k s at times that accumulate; each impact takes mu (1 + e) e^k s, and then mu g brakes the block."""

    def exact(z, v, mu, e):
        s, t, x = np.sqrt(2 * G * z), np.sqrt(2 * z / G), 0.0
        x = v * t
        for _ in range(200):
            v, s = v - mu * (1 + e) * s, e * s
            t, x = t + 2 * s / G, x + 2 * s / G * v
        return x + v * (1.5 - t) - mu * G * (1.5 - t) ** 2 / 2

    numbers = {"z": ("q0", 1, 0.1), "v": ("v0", 0, 9.0), "mu": ("mu", (), 0.3), "e": ("e", (), 0.5)}
    given = dict(q0=[0.0, 0.1], v0=[9.0, 0.0], params={"mu": 0.3, "a": 0.0, "e": 0.5}, h=0.05, t1=1.5)
    run = check(block(), exact, numbers, rtol=1e-9, **given)
    assert len(run.impacts) > 10 and len(run.contacts) == 1


def test_a_force_that_grows_breaks_a_block_loose():
    """It sticks until c t = mu m g, and then x = c (T - t)^3 / (6 m)."""
    pushed = da.Lagrangian(
        lambda q, v, m: m * v @ v / 2 - m * G * q[1],
        dim=2,
        unilateral=lambda q: q[1],
        restitution=0.0,
        force=lambda t, c: [c * t, 0.0],
        friction=lambda mu: mu,
        params={"m": 0.2, "c": 1.5, "mu": 0.4},
    )

    def exact(m, c, mu):
        return c * (1.0 - mu * m * G / c) ** 3 / (6 * m)

    numbers = {"m": ("m", (), 0.2), "c": ("c", (), 1.5), "mu": ("mu", (), 0.4)}
    run = check(pushed, exact, numbers, q0=[0.0, 0.0], v0=[0.0, 0.0], h=0.04, t1=1.0)
    assert list(run.contacts.slides) == [0, 1]
    _, slope = da.gradient(lambda q: q[0], pushed, da.CVA(), wrt="q0", q0=[0.0, 0.0], v0=[0.0, 0.0], h=0.04, t1=1.0)
    np.testing.assert_allclose(slope, [1.0, 0.0], atol=1e-12)  # the floor is a constraint of the start


def test_a_table_that_falls_lets_a_mass_go():
    """On a table at a t^2/2 - b t^3/6 a mass is let go when a - b t = -g, and flies on."""
    table = da.Lagrangian(
        lambda q, v, g: 0.1 * v @ v - 0.2 * g * q[0],
        dim=1,
        unilateral=lambda t, q, a, b: q[0] - a * t**2 / 2 + b * t**3 / 6,
        restitution=0.0,
        params={"a": 2.0, "b": 15.0, "g": G},
    )

    def exact(a, b, g):
        t = (a + g) / b
        y, v, rest = a * t**2 / 2 - b * t**3 / 6, a * t - b * t**2 / 2, 1.1 - t
        return y + v * rest - g * rest**2 / 2

    numbers = {"a": ("a", (), 2.0), "b": ("b", (), 15.0), "g": ("g", (), G)}
    run = check(table, exact, numbers, da.CVA(da.LobattoIIIAB(3)), q0=[0.0], v0=[0.0], h=0.05, t1=1.1)
    assert len(run.contacts) == 1 and abs(run.contacts.end[0] - (2.0 + G) / 15.0) < 1e-12


def test_a_wall_beside_the_floor_on_which_a_ball_lies():
    """It is thrown back: x(T) = 2 w - x - v T, while the contact with the floor goes on."""
    ball = da.Lagrangian(
        lambda q, v: 0.1 * v @ v - 0.2 * G * q[1], dim=2, unilateral=lambda q, w: [q[1], w - q[0]], restitution=1.0,
        params={"w": 1.0},
    )  # fmt: skip
    numbers = {"x": ("q0", 0, 0.1), "v": ("v0", 0, 1.3), "w": ("w", (), 1.0)}
    given = dict(q0=[0.1, 0.0], v0=[1.3, 0.0], h=0.03, steps=40)
    run = check(ball, lambda x, v, w: 2 * w - x - v * 1.2, numbers, da.CVA(), **given)
    assert len(run.contacts) == 1 and len(run.impacts) == 1


def test_differences_of_a_rod_that_falls_over():
    """A rod on a rough floor: it lands on its tip, slides, sticks and slides again; against differences of such runs."""
    system = da.Lagrangian(
        lambda q, v, m: m * (v[0] ** 2 + v[1] ** 2) / 2 + m * 0.03 * v[2] ** 2 / 2 - m * G * q[1],
        dim=3,
        unilateral=lambda q, r: q[1] - r * np.sin(q[2]),
        slip=lambda q, v, r: [v[0] + r * np.sin(q[2]) * v[2]],
        friction=lambda mu: mu,
        restitution=0.0,
        params={"m": 0.2, "r": 0.3, "mu": 0.25},
    )
    given = dict(q0=[0.0, 0.4, 1.2], v0=[0.1, 0.0, 0.0], h=0.005, steps=80)
    wrt, method = ("mu", "r", "q0"), da.CVA()
    s = da.sensitivities(system, method, wrt=wrt, **given)
    assert len(s.run.contacts) >= 2 and len(s.run.impacts) >= 1
    value, gradient = da.gradient(lambda q, p: q[0] + p[2], system, method, wrt=wrt, **given)

    def end(**change):
        return da.simulate(system, method, **given | change).states[-1]

    eps = 1e-6
    for name, value in (("mu", 0.25), ("r", 0.3)):
        difference = (end(params={name: value + eps}) - end(params={name: value - eps})) / (2 * eps)
        assert np.abs(difference - s[name][-1]).max() < 1e-6 * np.abs(difference).max()
        assert abs(gradient[name] - s[name][-1, 0] - s[name][-1, 5]) < 1e-11 * np.abs(s[name][-1]).max()
    for k in range(3):
        move = eps * np.eye(3)[k]
        difference = (end(q0=np.array(given["q0"]) + move) - end(q0=np.array(given["q0"]) - move)) / (2 * eps)
        assert np.abs(difference - s["q0"][-1, :, k]).max() < 1e-6 * np.abs(difference).max()
    assert np.abs(gradient["q0"] - s["q0"][-1, 0] - s["q0"][-1, 5]).max() < 1e-11 * np.abs(s["q0"]).max()


def test_a_force_that_only_reaches_the_limit_of_friction_has_no_derivative():
    """mu m g (1 + 1e-13 - (t - 0.5)^2): the block begins to slide where the force hardly exceeds friction."""
    m, mu = 0.2, 0.4
    pushed = da.Lagrangian(
        lambda q, v: m * v @ v / 2 - m * G * q[1],
        dim=2,
        unilateral=lambda q: q[1],
        restitution=0.0,
        force=lambda t, excess: [mu * m * G * (1 + excess - (t - 0.5) ** 2), 0.0],
        friction=mu,
        params={"excess": 0.2},
    )

    def exact(excess):
        s, T = np.sqrt(excess), 0.4
        return mu * G * (excess * (T + s) ** 2 / 2 - (T**4 - s**4) / 12 - s**3 * (T + s) / 3)

    given = dict(q0=[0.0, 0.0], v0=[0.0, 0.0], h=0.03, steps=30)
    assert list(check(pushed, exact, {"excess": ("excess", (), 0.2)}, **given).contacts.slides) == [0, 1]
    with pytest.raises(da.DalembertError, match="graz"):
        da.sensitivities(pushed, da.CVA(), wrt="excess", params={"excess": 1e-13}, **given)


def test_a_run_that_starts_with_an_impact_is_refused():
    floor = da.Lagrangian(lambda v: 0.1 * v @ v, dim=1, unilateral=lambda q: q[0])
    with pytest.raises(da.InputError, match="starts with an impact"):
        da.gradient(lambda q: q[0], floor, da.CVA(), wrt="q0", q0=[0.0], v0=[-1.0], h=0.1, steps=3)
    _, slope = da.gradient(lambda q: q[0], floor, da.CVA(), wrt="q0", q0=[0.0], v0=[1.0], h=0.1, steps=3)
    np.testing.assert_allclose(slope, [1.0])


@pytest.mark.slow
def test_blocks_that_turn_at_one_instant_are_refused():
    """Each stops at a time of its own from other starts; one after the other they have the derivatives of one block."""
    system = da.Lagrangian(
        lambda q, v: 0.1 * v @ v - 0.2 * G * ((q[0] + q[2]) * np.sin(0.5) + (q[1] + q[3]) * np.cos(0.5)),
        dim=4,
        unilateral=lambda q: [q[1], q[3]],
        slip=lambda v: [v[0], v[2]],
        friction=0.3,
        restitution=0.0,
    )
    given = dict(q0=np.zeros(4), h=0.02, steps=20)
    with pytest.raises(da.StepFailed, match="several events at one instant"):
        da.gradient(lambda q: q[2], system, da.CVA(), wrt="v0", v0=[1.0, 0.0, 1.0, 0.0], **given)
    _, slope = da.gradient(lambda q: q[2], system, da.CVA(), wrt="v0", v0=[1.0, 0.0, 1.01, 0.0], **given)
    up, down = (G * (np.sin(0.5) + sign * 0.3 * np.cos(0.5)) for sign in (1, -1))
    stop = 1.01 / up  # v^2/(2 up) - down (T - v/up)^2/2
    np.testing.assert_allclose(slope[[0, 2]], [0, stop + down * (0.4 - stop) / up], atol=1e-10)


@pytest.mark.slow
def test_corners_of_one_box_stop_at_one_instant():
    """A box that slides up an incline on two corners, which cannot but stop together, moves as a block does."""
    box = da.Lagrangian(
        lambda q, v: 0.1 * (v[0] ** 2 + v[1] ** 2) + 5e-5 * v[2] ** 2 - 0.2 * G * (q[0] * np.sin(0.5) + q[1] * np.cos(0.5)),
        dim=3,
        unilateral=lambda q: [q[1] - 0.05 * np.sin(q[2]), q[1] + 0.05 * np.sin(q[2])],
        slip=lambda q, v: [v[0] + 0.05 * np.sin(q[2]) * v[2], v[0] - 0.05 * np.sin(q[2]) * v[2]],
        friction=0.3,
        restitution=0.0,
    )
    given = dict(q0=np.zeros(3), v0=[1.0, 0.0, 0.0], h=0.02, steps=20)
    _, slope = da.gradient(lambda q: q[0], box, da.CVA(da.Gauss(2)), wrt="v0", **given)
    up, down = (G * (np.sin(0.5) + sign * 0.3 * np.cos(0.5)) for sign in (1, -1))
    np.testing.assert_allclose(slope[0], 1 / up + down * (0.4 - 1 / up) / up, rtol=1e-10)
