"""Mechanisms with impacts against exact solutions and references of their own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy import cos, sin
from problem_table import start_of
from scipy.integrate import solve_ivp
from scipy.special import ellipk

import dalembert as da

EXACT = da.CVA(da.Gauss(stages=4))


def test_cart_pendulum_has_the_energies_of_the_paper_on_its_floor() -> None:
    for beta, energy in ((3.2, 37.8), (5.2, 61.0)):
        problem = da.problems.cart_pendulum_above_floor(beta=beta)
        state = start_of(problem)
        assert problem.system.evaluate("H", 0.0, state.q, state.p).item() == pytest.approx(energy, abs=0.05)


def test_cart_pendulum_above_its_floor_against_the_forces_on_its_masses() -> None:
    m1, m2, l, g, beta, t1 = 1.3, 0.4, 1.7, 9.0, 3.0, 4.0  # noqa: E741

    def f(t: float, y: np.ndarray) -> list[float]:
        """The cart feels its weight and the rod's tension T; along the rod l theta'^2 = T / m2 - (g + y'') cos(theta)."""
        _, theta, y_dot, theta_dot = y
        T = l * theta_dot**2 / (1 / m2 + cos(theta) ** 2 / m1)
        y_ddot = -g - T * cos(theta) / m1
        return [y_dot, theta_dot, y_ddot, -(g + y_ddot) * sin(theta) / l]

    def floor(t: float, y: np.ndarray) -> float:
        return y[0] if t > begin else 1.0

    floor.terminal, floor.direction = True, -1
    begin, y, times = 0.0, np.array([beta, 0.0, 0.0, 3.5 - 0.18 * beta]), []
    while begin < t1:
        flight = solve_ivp(f, (begin, t1), y, "DOP853", events=floor, rtol=1e-13, atol=1e-13)
        begin, y = flight.t[-1], flight.y[:, -1]
        if flight.status == 1:
            times.append(begin)
            # the rod pulls the lower mass along itself only: l theta' + y' sin(theta), its speed across, stays
            y = np.array([0.0, y[1], -y[2], y[3] + 2 * y[2] * sin(y[1]) / l])
    problem = da.problems.cart_pendulum_above_floor(m1, m2, l, g, beta)
    run = da.simulate(problem, EXACT, h=0.005, t1=t1, progress=False)
    assert len(times) >= 2
    assert np.abs(run.impacts.t - times).max() < 1e-10
    assert np.abs(np.concatenate([run.q[-1], run.v[-1]]) - y).max() < 1e-8


def test_double_pendulums_at_a_wall_agree_in_angles_and_in_points() -> None:
    constants = (1.2, 0.7, 0.9, 1.3, 1.1, 0.2, (-1.4, -1.3))
    l1, l2 = constants[2:4]
    angles = da.simulate(da.problems.double_pendulum_at_wall_in_angles(*constants), EXACT, h=0.01, t1=15.0, progress=False)
    points = da.simulate(
        da.problems.double_pendulum_at_wall(*constants), da.CVA(da.LobattoIIIAB(stages=4)), h=0.01, t1=15.0, progress=False
    )
    a, b = angles.q.T
    x1, z1 = l1 * sin(a), -l1 * cos(a)
    assert len(angles.impacts) == len(points.impacts) >= 3
    assert np.abs(angles.impacts.t - points.impacts.t).max() < 1e-9
    assert np.abs(points.q - np.column_stack([x1, z1, x1 + l2 * sin(b), z1 - l2 * cos(b)])).max() < 1e-8
    # an impulse of the wall is a change of the lower mass's momentum, in either set of coordinates
    assert np.allclose(angles.impacts.impulse, points.impacts.impulse, atol=1e-8)


@pytest.mark.parametrize("e", [0.0, 0.5, 0.8, 1.0])
def test_bouncing_ball_against_its_impact_times_and_heights(e: float) -> None:
    g, height = 9.0, 2.0
    problem = da.problems.bouncing_ball(m=1.7, g=g, e=e, height=height)
    run = da.simulate(problem, da.CVA(), h=0.01, t1=9.0, progress=False)
    fall, k = np.sqrt(2 * height / g), np.arange(60)
    times = np.cumsum(np.concatenate([[fall], 2 * fall * e ** k[1:]])) if e else np.array([fall])
    times = times[times < 9.0]
    known = min(len(times), 30)
    assert np.abs(run.impacts.t[:known] - times[:known]).max() < 1e-13
    speeds = np.sqrt(2 * g * height) * e ** np.arange(known)
    assert np.allclose(run.impacts.p_before[:known, 0], -1.7 * speeds, rtol=1e-9)
    assert problem.exact is not None
    assert np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-13
    # the highest points of flights: t_k + v_k / g, at e^(2k) height
    tops = (times + fall * e ** np.arange(1, len(times) + 1))[:10]
    assert np.allclose(problem.exact(tops)["q"][:, 0], height * (e**2) ** np.arange(1, len(tops) + 1), atol=1e-14)
    if e < 1:
        end = fall * (1 + e) / (1 - e)
        assert run.contacts.begin == pytest.approx([end], abs=1e-8)
        assert np.abs(run.states[run.t > end]).max() < 1e-13
        assert not np.any(problem.exact(np.array([end + 1e-9]))["q"])
    else:
        assert len(run.contacts) == 0


def table_reference(g: float, e: float, amplitude: float, rate: float, height: float, t1: float) -> tuple[list, list]:
    """Impact times and phases of contact (begin, end) of the ball on the table, by root finding with 40 digits."""
    with mpmath.workdps(40):
        A, w = mpmath.mpf(amplitude), mpmath.mpf(rate)
        t, y, v = mpmath.mpf(0), mpmath.mpf(height), mpmath.mpf(0)
        impacts, contacts = [], []
        while True:

            def gap(s: Any, t: Any = t, y: Any = y, v: Any = v) -> Any:
                return y + v * (s - t) - g * (s - t) ** 2 / 2 - A * mpmath.sin(w * s)

            # look ahead in steps far shorter than a flight, which takes about 2 relative speed / relative gravity
            speed, pull = v - A * w * mpmath.cos(w * t), g - A * w**2 * mpmath.sin(w * t)
            step = min(mpmath.mpf("1e-3"), abs(speed / pull) / 4)
            s = t + step
            while gap(s) > 0 and s < t1:
                s += step
            if s >= t1:
                return impacts, contacts
            hit = mpmath.findroot(gap, (s - step, s), solver="anderson", tol=1e-60)
            impacts.append(hit)
            table = A * w * mpmath.cos(w * hit)
            v = table - e * (v - g * (hit - t) - table)
            t, y = hit, A * mpmath.sin(w * hit)
            if v - table < mpmath.mpf("1e-12"):  # impacts accumulate: the ball stays until the table falls faster than it
                assert A * w**2 * mpmath.sin(w * t) < g
                turn = mpmath.floor(w * t / (2 * mpmath.pi))
                leave = (mpmath.asin(g / (A * w**2)) + 2 * mpmath.pi * turn) / w
                leave += 0 if leave > t else 2 * mpmath.pi / w
                contacts.append((t, leave))
                # it leaves with no relative speed; one microsecond later the gap is positive, but for g-force changes O(1e-18)
                t, y, v = leave, A * mpmath.sin(w * leave), A * w * mpmath.cos(w * leave)
                later = t + mpmath.mpf("1e-4")
                t, y, v = later, y + v * (later - t) - g * (later - t) ** 2 / 2, v - g * (later - t)


def test_ball_on_a_vibrating_table_bounces_sticks_and_is_thrown_up_when_it_should() -> None:
    constants = {"g": 9.81, "e": 0.5, "amplitude": 0.02, "rate": 25.0, "height": 0.3}
    impacts, contacts = table_reference(**constants, t1=1.6)
    problem = da.problems.ball_on_vibrating_table(**constants)
    before = [float(t) for t in impacts if t < contacts[0][0]]
    errors = []
    for h in (0.001, 0.0005, 0.00025):
        run = da.simulate(problem, da.CVA(), h=h, t1=1.6, progress=False)
        assert len(before) > 20
        # parabolas are exact: what is left is round-off of the table's position, of its phase, over the speed of approach
        phase = 25.0 * run.impacts.t[:20]
        closing = np.abs(run.impacts.p_before[:20, 0] - 0.02 * 25.0 * cos(phase))
        assert np.all(np.abs(run.impacts.t[:20] - before[:20]) < 1e-14 + np.finfo(float).eps * 0.02 * phase / closing)
        assert len(contacts) == len(run.contacts) >= 3
        begin, end = np.array([(float(x), float(y)) for x, y in contacts]).T
        assert abs(run.contacts.begin[0] - begin[0]) < 1e-8
        assert np.all(np.abs(run.contacts.end[:2] - end[:2]) < 1e-12)  # releases are located
        thrown = next(float(t) for t in impacts if t > contacts[0][1])
        errors.append(abs(run.impacts.t[run.impacts.t > end[0]][0] - thrown))
    assert max(errors) < 1e-12


@pytest.mark.parametrize(("balls", "lifted"), [(2, 1), (5, 1), (5, 2), (5, 3), (5, 4), (4, 2)])
def test_the_cradle_passes_as_many_balls_on_as_were_lifted(balls: int, lifted: int) -> None:
    l, g, angle = 0.8, 1.3, 0.6  # noqa: E741
    problem = da.problems.newtons_cradle(balls, lifted, m=1.1, l=l, g=g, d=0.15, angle=angle)
    run = da.simulate(problem, EXACT, h=0.02, steps=4000, progress=False)
    quarter = np.sqrt(l / g) * ellipk(sin(angle / 2) ** 2)
    times, counts = np.unique(np.round(run.impacts.t / quarter, 9), return_counts=True)
    assert np.array_equal(times, np.arange(1, len(times) * 2, 2))
    assert len(times) >= 30
    assert np.all(counts == lifted * (balls - lifted))  # as many pairs as pass each other
    assert problem.exact is not None
    assert np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-12
    # half a swing later the last ones are up, and the others hang down
    top = problem.exact(np.array([2 * quarter]))["q"][0]
    assert np.allclose(top, np.where(np.arange(balls) < balls - lifted, 0.0, angle), atol=1e-12)


def ring_in_fractions(d: Fraction, circumference: Fraction, speeds: list[Fraction], t1: Fraction) -> tuple[list, list, list]:
    """Event-driven and exact: every meeting of neighbours, and the positions and velocities at t1."""
    n, t, events = len(speeds), Fraction(0), []
    q, v = [k * circumference / n for k in range(n)], list(speeds)
    while True:
        waits = {}
        for k in range(n):
            gap = q[(k + 1) % n] - q[k] - d + (circumference if k == n - 1 else 0)
            closing = v[k] - v[(k + 1) % n]
            if closing > 0:
                waits[k] = gap / closing
        first = min(waits.values())
        if t + first > t1:
            return events, [x + u * (t1 - t) for x, u in zip(q, v, strict=True)], v
        t, q = t + first, [x + u * first for x, u in zip(q, v, strict=True)]
        for k in sorted(k for k, wait in waits.items() if wait == first):
            assert v[k] > v[(k + 1) % n]  # no three balls at once
            v[k], v[(k + 1) % n] = v[(k + 1) % n], v[k]
            events.append((t, k))


def test_balls_on_a_ring_exchange_velocities_as_exact_arithmetic_says() -> None:
    speeds = [Fraction(x, 10_000) for x in (10_000, -3137, 5291, -8713, 1939)]
    events, q, v = ring_in_fractions(Fraction(1, 10), Fraction(3), speeds, Fraction(50))
    problem = da.problems.balls_on_ring(m=2.0, speeds=tuple(float(x) for x in speeds))
    run = da.simulate(problem, da.CVA(), h=0.05, t1=50.0, progress=False)
    assert len(run.impacts) == len(events) > 150
    assert np.array_equal(run.impacts.which, [k for _, k in events])
    assert np.abs(run.impacts.t - np.array([float(t) for t, _ in events])).max() < 1e-12
    assert problem.exact is not None
    known = problem.exact(50.0)
    for found in (run.q[-1], known["q"]):
        assert np.abs(found - np.array(q, dtype=float)).max() < 1e-12
    for found in (run.p[-1], known["p"]):
        assert np.abs(found - 2.0 * np.array(v, dtype=float)).max() < 1e-12
    assert np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-12
