"""Events of contact, with and without friction: hits, releases, stick and slip, against exact solutions."""

import importlib.util
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from impact_models import cart_pendulum
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

import dalembert as da
from dalembert._interrupts import uninterrupted

G = 9.81


def incline(angle, mu, m=0.2, restitution=0.0):
    """A block on an incline, x pointing upwards along it."""
    return da.Lagrangian(
        lambda q, v: m * v @ v / 2 - m * G * (q[0] * np.sin(angle) + q[1] * np.cos(angle)),
        dim=2,
        unilateral=lambda q: q[1],
        restitution=restitution,
        friction=mu,
    )


def test_events_at_one_instant_come_to_an_end():
    """A force that lets go at first and presses over the whole step; a start at which the floor is only just pressed."""
    push = da.Lagrangian(lambda t, q, v: v @ v / 2 + q[0] * (0.01 - t), dim=1, unilateral=lambda q: q[0])
    run = da.simulate(push, da.CVA("midpoint"), q0=[0.0], v0=[0.0], h=0.1, steps=5)
    assert np.abs(run.q).max() < 1e-14 and len(run.contacts) == 1
    for h in (0.02, 0.05):
        run = da.simulate(da.problems.ball_on_vibrating_table(), da.CVA(), h=h, t1=3.0)
        assert run.status == "done" and len(run.contacts) > 5
    system = cart_pendulum()
    start = {"q0": [0, -504.65862751782106], "p0": [-10.076938669492353, 22.20303367336669]}
    assert da.simulate(system, da.VCI(), h=0.032, steps=20, **start).q[:, 0].min() > -1e-13
    run = da.simulate(system, da.CVA(), h=0.032, steps=20, q0=[0, 4.3], v0=[0, 9])
    assert run.contacts.begin[0] == 0 and run.q[:, 0].min() > -1e-13


def test_members_of_ensembles_come_to_rest_as_single_runs_do():
    stop = da.Lagrangian(lambda q, v: v @ v / 2 - q[0] - q[1], dim=3, unilateral=lambda q: q[0], restitution=0.0, friction=None)
    starts = {"q0": np.array([[0.5, 0, 0], [0.3, 0, 0]]), "v0": np.zeros((2, 3))}
    runs = da.simulate_many(stop, da.CVA(), h=0.05, t1=2.0, **starts)
    assert runs.status == ("done", "done")
    assert np.allclose(runs.contacts.begin, [1.0, np.sqrt(0.6)], rtol=1e-12)
    rough = incline(0.4, 0.5)
    runs = da.simulate_many(rough, da.CVA(), h=0.05, t1=1.0, q0=np.zeros((2, 2)), v0=np.array([[1.0, 0.0], [2.0, 0.0]]))
    assert runs.status == ("done", "done") and list(runs.contacts.slides) == [1, 0, 1, 0]


def test_an_interrupt_waits_for_the_end_of_an_event():
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        done.append(float(np.asarray(da.Lagrangian(lambda q, v: v @ v / 2, dim=1).evaluate("H", 0, [0], [2]))[0]))
    assert done == [2.0]


@pytest.mark.parametrize("mu", [0.7, 0.3])
def test_a_block_slides_up_stops_and_stays_or_slides_back(mu):
    """It stops at t = v / (g (sin a + mu cos a)) and stays if tan a < mu, or slides back with g (sin a - mu cos a)."""
    a, v, end = 0.5, 3.0, 2.0
    run = da.simulate(incline(a, mu), da.CVA(), q0=[0, 0], v0=[v, 0], h=0.02, t1=end)
    stop = v / (G * (np.sin(a) + mu * np.cos(a)))
    stays = np.tan(a) < mu
    assert np.allclose(run.contacts.begin, [0, stop], atol=1e-14) and np.allclose(run.contacts.end, [stop, end], atol=1e-14)
    assert list(run.contacts.slides) == [1, 0 if stays else -1]
    back = 0 if stays else G * (np.sin(a) - mu * np.cos(a))
    assert np.abs(run.q[-1] - [v * stop / 2 - back * (end - stop) ** 2 / 2, 0]).max() < 1e-13
    forces, sliding = run.contact_forces, run.t < stop
    weight = 0.2 * G * np.cos(a)
    assert np.allclose(forces.normal, weight, rtol=1e-12)
    assert np.allclose(forces.friction[sliding], -mu * weight, rtol=1e-12)
    assert np.allclose(forces.friction[~sliding], 0.2 * G * np.sin(a) if stays else mu * weight, rtol=1e-12)
    assert np.abs(run.q[:, 1]).max() < 1e-14 and np.all(np.diff(run.energy) < 1e-14)


def test_friction_at_its_limit_is_an_event():
    """A growing pull a t on a block at rest: it starts at a t = mu m g, and slides with m v' = a t - mu m g."""
    mu, m, a = 0.4, 0.2, 0.5
    block = da.Lagrangian(
        lambda t, q, v: m * v @ v / 2 - m * G * q[1] + a * t * q[0], dim=2, unilateral=lambda q: q[1], friction=mu
    )
    start = mu * m * G / a
    run = da.simulate(block, da.CVA(da.Gauss(stages=2)), q0=[0.1, 0], v0=[0, 0], h=0.07, steps=40)
    assert np.allclose(run.contacts.end[0], start, rtol=1e-13) and list(run.contacts.slides) == [0, 1]
    assert np.isclose(run.q[-1, 0], 0.1 + a * (run.t[-1] - start) ** 3 / 6 / m, rtol=1e-12)


@pytest.mark.parametrize(("base", "order"), [("SVC", 2), (da.Gauss(stages=2), 4), (da.LobattoIIIAB(stages=4), 6)], ids=str)
def test_between_events_friction_has_the_order_of_the_base(base, order):
    """A bead inside of a rough circle stops and goes on: against its angle, event by event."""
    mu = 0.15
    ring = da.Lagrangian(
        lambda q, v: 0.2 * (v @ v / 2 - G * q[1]), dim=2, unilateral=lambda q: 1 - np.hypot(q[0], q[1]), friction=mu,
        restitution=0.0,
    )  # fmt: skip

    def exact(end):
        t, x, ways = 0.0, np.array([1.2, 0.0]), []
        while t < end:
            way = -1 if not ways else -ways[-1]
            if ways and abs(np.sin(x[0])) <= mu * np.cos(x[0]):
                return x[0], ways

            def slide(t, x, way=way):
                return [x[1], -G * np.sin(x[0]) - way * mu * (x[1] ** 2 + G * np.cos(x[0]))]

            def stops(t, x, way=way):
                return way * x[1]

            stops.terminal, stops.direction = True, -1
            piece = solve_ivp(slide, (t, end), x, rtol=1e-13, atol=1e-14, method="DOP853", events=stops)
            t, x = piece.t[-1], np.array([piece.y[0, -1], 0.0]) if piece.status == 1 else piece.y[:, -1]
            ways.append(way)
        return x[0], ways

    angle, ways = exact(4.0)
    start = {"q0": [np.sin(1.2), -np.cos(1.2)], "v0": [0.0, 0.0]}
    sizes, errors = 4.0 / np.array([100, 200, 400]), []
    for h in sizes:
        run = da.simulate(ring, da.CVA(base), h=h, t1=4.0, **start)
        errors.append(abs(np.arctan2(run.q[-1, 0], -run.q[-1, 1]) - angle))
        assert len(run.contacts) == len(ways) + (abs(run.contacts.slides[-1]) == 0)
        assert run.contact_forces.normal.min() > -1e-12 and np.all(np.diff(run.energy) < 2e-3 * h**2)
        assert (1 - np.hypot(*run.q.T)).min() > -1e-12
    assert errors[-1] < 1e-11 or abs(np.polyfit(np.log(sizes), np.log(errors), 1)[0] - order) < 0.2


def test_a_point_leaves_a_loop_where_the_exact_solution_does():
    """Inside of a loop of radius 1 a point with v^2 = 4 g at the bottom leaves at cos(angle) = -2/3."""
    loop = da.Lagrangian(lambda q, v: 0.2 * (v @ v / 2 - G * q[1]), dim=2, unilateral=lambda q: 1 - q @ q, restitution=0.0)
    angle = np.arccos(-2 / 3)
    left = quad(lambda x: 1 / np.sqrt(4 * G - 2 * G * (1 - np.cos(x))), 0, angle, epsabs=1e-12, epsrel=1e-13)[0]
    for base, bound in ((da.LobattoIIIAB(stages=3), 1e-9), (da.Gauss(stages=3), 1e-13)):
        run = da.simulate(loop, da.CVA(base), q0=[0, -1], v0=[np.sqrt(4 * G), 0], h=0.005, t1=0.8)
        assert abs(run.contacts.end[0] - left) < bound
        inside = 1 - (run.q**2).sum(axis=1)
        assert inside.min() > -1e-13 and inside[run.t > left + 0.01].min() > 1e-8


def test_a_point_slides_off_a_disk():
    """From the top of a unit disk with v = 0.1, g = 1: it leaves at cos(angle) = (2 + v^2)/3."""
    disk = da.Lagrangian(lambda q, v: v @ v / 2 - q[1], dim=2, unilateral=lambda q: np.hypot(q[0], q[1]) - 1)
    v = 0.1
    left = quad(lambda x: 1 / np.sqrt(v**2 + 2 - 2 * np.cos(x)), 0, np.arccos((2 + v**2) / 3), epsabs=1e-12, epsrel=1e-13)[0]
    for h in (0.05, 0.02):
        run = da.simulate(disk, da.CVA(da.Gauss(stages=3)), q0=[0, 1], v0=[v, 0], h=h, t1=4.0)
        assert abs(run.contacts.end[0] - left) < 1e-9 and len(run.contacts) == 1


@pytest.mark.parametrize(
    ("e", "mu"),
    [(e, mu) for mu in (None, 0.2) for e in (0.0, 0.3, 0.9)] + [(0.99, None), pytest.param(0.99, 0.2, marks=pytest.mark.slow)],
)
def test_a_ball_comes_to_rest_at_its_zeno_time(e, mu):
    """Fall sqrt(2 y/g), then flights that shrink by e: sqrt(2 y/g) (1 + e)/(1 - e) in all."""
    ball = da.Lagrangian(
        lambda q, v: 0.2 * (v @ v / 2 - G * q[1]), dim=2, unilateral=lambda q: q[1], restitution=e, friction=mu
    )
    run = da.simulate(ball, da.CVA(), q0=[0, 0.05], v0=[0.4, 0], h=0.02, steps=120 if e < 0.95 else 1200)
    rest = np.sqrt(0.1 / G) * (1 + e) / (1 - e)
    assert np.isclose(run.contacts.begin[0], rest, rtol=1e-9)
    still = run.t > rest
    assert np.abs(run.q[still, 1]).max() < 1e-12 and run.q[:, 1].min() > -1e-13
    assert np.all(run.impacts.energy_after <= run.impacts.energy_before + 1e-15)
    if mu:  # friction takes mu (1 + e) of each approach, as long as there is slip
        assert np.all(np.abs(run.impacts.friction) <= mu * run.impacts.impulse * (1 + 1e-12))
        first = 0.4 - mu * (1 + e) * np.sqrt(2 * G * 0.05)
        assert np.isclose(run.impacts.p_after[0, 0], 0.2 * max(first, 0.0), atol=1e-13)


@pytest.mark.parametrize("up", [1e-18, 1e-15, 1e-12])
def test_a_start_that_lifts_off_by_a_rounding_error_slides_and_stops(up):
    """In v^2 / (2 mu g). Stored states in contact have such speeds; the hit that follows at once must not do so for ever."""
    block = da.Lagrangian(
        lambda q, v: 0.2 * (v @ v / 2 - G * q[1]), dim=2, unilateral=lambda q: q[1], restitution=0.3, friction=0.3
    )
    run = da.simulate(block, da.CVA(), q0=[0, 0], v0=[1e-3, up], h=2e-4, steps=4)
    assert np.allclose(run.q[-1], [1e-6 / (0.6 * G), 0], rtol=0, atol=1e-15) and len(run.impacts) == 0
    assert np.allclose(run.contacts.end, [1e-3 / (0.3 * G), 8e-4], rtol=1e-9, atol=0)


def wedge(a, b, e, mu=None, c=0.0):
    """A point of 0.2 kg between walls that rise at the angles a to the left and b to the right of the origin."""

    def slip(v):
        return [v[0] * np.cos(a) - v[1] * np.sin(a), v[0] * np.cos(b) + v[1] * np.sin(b)]

    return da.Lagrangian(
        lambda q, v: 0.2 * (v @ v / 2 - G * q[1]),
        dim=2,
        unilateral=lambda t, q: [
            q[1] * np.cos(a) + q[0] * np.sin(a) - c * np.sin(3.5 * t),
            q[1] * np.cos(b) - q[0] * np.sin(b),
        ],
        restitution=e,
        friction=mu,
        slip=None if mu is None else slip,
    )


@pytest.mark.parametrize("h", [0.048, 0.004])
def test_plastic_impacts_in_a_wedge_come_to_rest_in_its_vertex(h):
    """From wall to wall the speed shrinks by cos(a + b) and flights go along the walls: a geometric series of times."""
    a, b, start = 0.73, 0.4, 0.2
    run = da.simulate(wedge(a, b, 0.0), da.CVA(), q0=[start * np.cos(b), start * np.sin(b)], v0=[0, 0], h=h, t1=1.2)
    ratio, speed = np.cos(a + b), np.sqrt(2 * G * np.sin(b) * start)
    rest = speed / (G * np.sin(b))
    up, down = 2 * speed * ratio / (G * np.sin(a)), 2 * speed * ratio**2 / (G * np.sin(b))  # on either wall, there and back
    rest += (up + down) / (1 - ratio**2)
    still = run.t > rest + 1e-8
    assert np.abs(run.q[still]).max() < 1e-12 and np.abs(run.v[still]).max() < 1e-12 and np.sum(still) > 5
    assert np.isclose(run.impacts.t[-1], rest, rtol=0, atol=1e-7)
    assert np.all(run.impacts.energy_after <= run.impacts.energy_before + 1e-15)


@pytest.mark.parametrize(("a", "b"), [(0.84, 0.0625), (0.5, 0.4)])
@pytest.mark.parametrize("s", [1e-25, 1e-22, 1e-20, 1e-18, 1e-16, 1e-10])
def test_what_rests_on_one_wall_next_to_another_stays_there(a, b, s):
    """Friction holds it, tan(b) < mu, though rounding errors of forces that balance may lead behind the other wall."""
    start = np.array([s * np.cos(b), s * np.sin(b)])
    run = da.simulate(wedge(a, b, 0.0, 1.0), da.CVA(), q0=start, v0=[0, 0], h=0.01, steps=200)
    assert np.abs(run.q - start).max() < 1e-16 and np.abs(run.v).max() < 1e-16


def test_a_point_slides_into_a_corner_and_stays():
    """It falls on a smooth floor, slides to a plastic wall, and both touch from then on."""
    corner = da.Lagrangian(
        lambda q, v: 0.2 * (v @ v / 2 - G * q[1]),
        dim=2,
        unilateral=lambda q: [q[1], q[0] + 0.5],
        restitution=0.0,
        friction=lambda mu: mu,
        slip=lambda v: [v[0], v[1]],
        params={"mu": 0.0},
    )
    run = da.simulate(corner, da.CVA(), q0=[-0.28, 0.23], v0=[-0.28, -1.5], h=0.004, t1=1.0)
    hit = 0.22 / 0.28
    assert np.isclose(run.impacts.t[-1], hit, rtol=1e-12) and run.impacts.which.tolist() == [0, 1]
    assert np.abs(run.q[run.t > hit] - [-0.5, 0.0]).max() < 1e-13 and np.allclose(run.contact_forces.normal[-1], [0.2 * G, 0])


def test_only_walls_that_touch_take_part_in_an_impact():
    """Flights across a rough narrow wedge, shorter than a step: steps of any size give the same, for parabolas are exact."""
    coarse, fine = (
        da.simulate(wedge(0.886, 1.115, 1.0, 1.0, 0.0085), da.CVA(), q0=[-0.32, 0.58], v0=[0.86, 0.28], h=h, t1=1.2).impacts
        for h in (0.06, 0.06 / 64)
    )
    assert len(coarse) > 8
    np.testing.assert_array_equal(coarse.which, fine.which)
    np.testing.assert_allclose(coarse.t, fine.t, rtol=0, atol=1e-8)
    np.testing.assert_allclose(coarse.p_after, fine.p_after, rtol=0, atol=1e-8)


def test_what_falls_into_a_rough_narrow_wedge_jams():
    """Walls at less than twice the angle of friction: no impulses on both of them return a part of the approach."""
    for h in (0.02, 0.002):
        run = da.simulate(wedge(0.99, 1.06, 0.3, 1.0), da.CVA(), q0=[0.05, 0.4], v0=[-1.0, 0.0], h=h, t1=1.5)
        assert np.abs(run.q[-1]).max() < 0.2 and np.abs(run.v[-1]).max() < 1e-9
        assert np.all(np.diff(run.energy) < 1e-12)


def test_walls_with_holonomic_and_nonholonomic_constraints():
    """A skate whose wall it meets on a circle, energy and constraint kept; methods without such a base are refused."""

    def skate(walls=True):
        return da.Lagrangian(
            lambda q, v: 0.2 * (v[0] ** 2 + v[1] ** 2) / 2 + 1e-2 * v[2] ** 2 / 2,
            dim=3,
            nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]],
            unilateral=(lambda q: 1 - q[0]) if walls else None,
        )

    run = da.simulate(skate(), da.CVA(da.GaussLobattoSPARK(stages=2)), q0=[0, 0, 0.3], v0=[np.cos(0.3), np.sin(0.3), 0.2],
                      h=0.02, t1=3.0)  # fmt: skip
    assert len(run.impacts) == 1 and np.abs(run.residuals["k"]).max() < 1e-14 and np.ptp(run.energy) < 1e-12
    # a skate runs along a circle of radius v/omega until its wall turns it round
    x = 5 * (np.sin(0.3 + 0.2 * run.impacts.t[0]) - np.sin(0.3))
    assert np.isclose(x, 1.0, atol=1e-9) and np.allclose(run.impacts.q[0, 0], 1.0, atol=1e-13)
    for method in (da.CVA(), da.VCI(), da.MCVAA()):
        with pytest.raises(da.UnsupportedSystem, match=r"with walls take da\.CVA\(da\.GaussLobattoSPARK\(stages=2\)\)"):
            da.simulate(skate(), method, q0=[0, 0, 0.3], v0=[np.cos(0.3), np.sin(0.3), 0.2], h=0.02, steps=1)


def test_holonomic_and_nonholonomic_constraints_beside_a_wall_are_those_of_an_angle():
    """A pendulum that drives a mass by v_2 = q_0 v_0, so that q_2 = q_0^2/2 - 1/2: order 4 against the angle."""
    system = da.Lagrangian(
        lambda q, v: (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) / 2 - G * q[1],
        dim=3,
        holonomic=lambda q: [np.hypot(q[0], q[1]) - 1],
        nonholonomic=lambda q, v: [v[2] - q[0] * v[0]],
        unilateral=lambda q: q[0] + 0.3,
        restitution=0.5,
    )

    def rate(t, x):  # L = M(a) a'^2/2 + G cos a with M = 1 + (sin a cos a)^2
        s, c = np.sin(x[0]), np.cos(x[0])
        return [x[1], -(G * s + s * c * (c**2 - s**2) * x[1] ** 2) / (1 + (s * c) ** 2)]

    def hits(t, x):
        return np.sin(x[0]) + 0.3

    hits.terminal, hits.direction = True, -1
    t, x, times = 0.0, np.array([np.pi / 2, 0.0]), []
    while t < 3.0:
        piece = solve_ivp(rate, (t, 3.0), x, rtol=1e-12, atol=1e-13, method="DOP853", events=hits)
        t, x = piece.t[-1], piece.y[:, -1]
        if piece.status == 1:
            times.append(t)
            x = np.array([x[0], -0.5 * x[1]])
    end = np.array([np.sin(x[0]), -np.cos(x[0]), np.sin(x[0]) ** 2 / 2 - 0.5])
    errors, sizes = [], 3.0 / np.array([150, 300, 600])
    for h in sizes:
        run = da.simulate(system, da.CVA(da.GaussLobattoSPARK(stages=2)), q0=[1, 0, 0], v0=[0, 0, 0], h=h, t1=3.0)
        errors.append([np.abs(run.q[-1] - end).max(), abs(np.hypot(*run.v[-1, :2]) - abs(x[1]))])
        assert max(np.abs(run.residuals[name]).max() for name in ("g", "g_dot", "k")) < 1e-13
        assert np.abs(run.impacts.q[:, 0] + 0.3).max() < 1e-13 and run.q[:, 0].min() > -0.3 - 1e-13
        assert len(run.impacts) == len(times) >= 2
    assert np.allclose(run.impacts.t, times, atol=1e-8)
    slopes = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert np.all(np.abs(slopes - 4) < 0.2), (errors, slopes)


def test_a_block_on_a_shaking_table_sticks_until_its_friction_is_at_the_limit():
    """The table moves by A sin(w t): a block at rest on it slips when A w^2 sin(w t) = mu g, and is carried before."""
    A, w, mu = 0.05, 12.0, 0.3
    table = da.Lagrangian(
        lambda q, v: 0.2 * (v @ v / 2 - G * q[1]), dim=2, unilateral=lambda q: q[1], friction=mu,
        slip=lambda t, q, v: v[0] - A * w * np.cos(w * t),
    )  # fmt: skip
    run = da.simulate(table, da.CVA(da.Gauss(stages=3)), q0=[0, 0], v0=[A * w, 0], h=0.01, t1=0.5)
    slips = np.arcsin(mu * G / (A * w**2)) / w
    assert np.isclose(run.contacts.end[0], slips, rtol=1e-12) and run.contacts.slides[0] == 0
    carried = run.t < slips
    assert np.allclose(run.q[carried, 0], A * np.sin(w * run.t[carried]), atol=1e-9)
    # then it is slowed by mu g until the table has its velocity again
    v = A * w * np.cos(w * slips)
    meets = brentq(lambda t: v - mu * G * (t - slips) - A * w * np.cos(w * t), slips + 0.05, slips + 0.35)
    assert np.isclose(run.contacts.end[1], meets, rtol=1e-9)


def test_a_rocking_block_loses_what_housner_says():
    """G. W. Housner, Bull. Seism. Soc. Am. 53 (1963) 403-417: I omega' = -m g R sin(alpha - theta) about a corner, until the
    other one is hit, where omega+ = (1 - 3/2 sin(alpha)^2) omega- if nothing slides or bounces."""
    m, a, b = 2.0, 0.15, 0.05  # half height and half width

    def corners(q, s):
        return q[1] + s * b * np.sin(q[2]) - a * np.cos(q[2])

    block = da.Lagrangian(
        lambda q, v: m * (v[0] ** 2 + v[1] ** 2) / 2 + m * (a**2 + b**2) / 6 * v[2] ** 2 - m * G * q[1],
        dim=3,
        unilateral=lambda q: [corners(q, -1), corners(q, 1)],
        slip=lambda q, v: [v[0] + v[2] * (-s * b * np.sin(q[2]) + a * np.cos(q[2])) for s in (-1, 1)],
        friction=1.0,
        restitution=0.0,
    )
    alpha, R, tilt = np.arctan2(b, a), np.hypot(a, b), 0.15
    start = [b * np.cos(tilt) - a * np.sin(tilt), b * np.sin(tilt) + a * np.cos(tilt), tilt]
    run = da.simulate(block, da.CVA(da.Gauss(stages=2)), q0=start, v0=[0, 0, 0], h=0.005, t1=0.6)
    rate = 3 * G / (4 * R)
    quarter = quad(
        lambda s: 2 * s / np.sqrt(2 * rate * (np.cos(alpha - tilt) - np.cos(alpha - tilt + s**2))), 0, np.sqrt(tilt)
    )[0]
    assert np.isclose(run.impacts.t[0], quarter, rtol=1e-8) and run.impacts.which[0] == 1
    H_pp = np.diag([1 / m, 1 / m, 3 / (m * R**2)])
    before, after = (H_pp @ p for p in (run.impacts.p_before[0], run.impacts.p_after[0]))
    assert np.isclose(after[2] / before[2], 1 - 1.5 * np.sin(alpha) ** 2, rtol=1e-9)
    # it turns where the energy that is left lifts it: cos(alpha - theta) by the energy about the other corner
    kinetic = 2 * m * R**2 / 3 * after[2] ** 2
    turn = alpha - np.arccos(kinetic / (m * G * R) + np.cos(alpha))
    second = run.t[(run.t > quarter) & (run.q[:, 2] == run.q[run.t < 0.6, 2].min())]
    assert len(second) == 1 and np.isclose(run.q[:, 2].min(), -turn, rtol=2e-3)
    assert min(corners(q, s) for q in run.q for s in (-1, 1)) > -1e-12


def test_friction_in_space_is_left_to_time_stepping():
    space = da.Lagrangian(lambda q, v: v @ v / 2 - G * q[2], dim=3, unilateral=lambda q: q[2], friction=0.3)
    with pytest.raises(da.UnsupportedSystem, match=r"in a plane only.*da\.NonsmoothRattle\(\) or da\.MoreauJean\(\)"):
        da.simulate(space, da.CVA(), q0=[0, 0, 1.0], v0=[1, 0, 0], h=0.01, steps=1)


def test_random_contacts_keep_their_promises():
    """The beginning of benchmarks/random_contacts.py, which runs a thousand of them."""
    path = Path(__file__).parents[2] / "benchmarks" / "random_contacts.py"
    spec = importlib.util.spec_from_file_location("random_contacts", path)
    random_contacts = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(random_contacts)
    for seed in range(12):
        end, broken = random_contacts.broken(seed)
        assert end == "done" and not broken, (seed, end, broken)
