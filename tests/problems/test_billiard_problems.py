"""Billiards against geometry: chords, arcs and reflections, and an event-driven program for hard disks."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

import dalembert as da


def reflected(v: complex, normal: complex) -> complex:
    return v - 2 * (v * normal.conjugate()).real * normal


@pytest.mark.parametrize("method", [da.CVA(), da.VCI(), da.MCVAA()], ids=["CVA", "VCI", "MCVAA"])
def test_impacts_in_the_circle_turn_by_one_angle_ten_thousand_times(method: da.OneStepMethod) -> None:
    problem = da.problems.circular_billiard(m=1.5, radius=1.2)
    impacts = da.simulate(problem, method, steps=210_000, save_every=1000, progress=False).impacts
    z, k = impacts.q @ [1, 1j], np.arange(len(impacts))
    assert len(k) > 10_000
    turn = np.pi - 2 * np.arcsin((0.3 * 0.9 - 0.1 * 0.7) / np.hypot(0.7, 0.9) / 1.2)
    error = np.abs(z / z[0] - np.exp(1j * turn * k))
    # Rounding errors of the direction, one an impact, walk at random, and the angle sums them up: eps k^(3/2).
    assert np.all(error <= 1e-14 + 5 * np.finfo(float).eps * k**1.5)
    assert np.allclose(np.diff(impacts.t), 2 * 1.2 * np.sin(turn / 2) / np.hypot(0.7, 0.9), rtol=0, atol=1e-10)


def arc_in_circle(z: complex, v: complex, omega: float, radius: float) -> tuple[complex, complex]:
    """Where the particle meets the wall next, and its velocity there: v turns by exp(-i omega t) about c = z - i v / omega."""
    c, rho = z - 1j * v / omega, abs(v / omega)
    along = (abs(c) ** 2 + radius**2 - rho**2) / (2 * abs(c))
    across = math.sqrt(radius**2 - along**2)
    ends = [c / abs(c) * complex(along, sign * across) for sign in (1, -1)]
    turns = [(np.angle((z - c) / (end - c)) * math.copysign(1, omega)) % (2 * math.pi) for end in ends]
    turn, end = min((turn, end) for turn, end in zip(turns, ends, strict=True) if 1e-9 < turn < 2 * math.pi - 1e-9)
    return end, v * np.exp(-1j * math.copysign(turn, omega))


@pytest.mark.parametrize("B", [0.8, -2.5])
@pytest.mark.parametrize("h", [0.1, 0.02])
def test_impacts_in_the_circle_in_a_magnetic_field_turn_by_one_angle_whatever_the_step(B: float, h: float) -> None:
    m, z, v = 1.3, complex(0.3, 0.1), complex(0.7, 0.9)
    problem = da.problems.circular_billiard(m=m, B=B)
    impacts = da.simulate(problem, da.CVA(), h=h, steps=int(3000 / h), save_every=1000, progress=False).impacts
    points = []
    for _ in range(20):
        z, v = arc_in_circle(z, v, B / m, 1.0)
        v = reflected(v, -z)
        points.append(z)
    found, k = impacts.q @ [1, 1j], np.arange(len(impacts))
    assert len(k) > 1000
    assert np.abs(found[:20] - points).max() < 1e-13
    error = np.abs(found / found[0] - (points[1] / points[0]) ** k)
    assert np.all(error <= 1e-13 + 20 * np.finfo(float).eps * k**1.5)


def test_the_clock_of_the_midpoint_rule_in_a_field_is_wrong_by_its_order_and_that_of_gauss_is_not() -> None:
    m, B, z, v = 1.3, 0.8, complex(0.3, 0.1), complex(0.7, 0.9)
    problem = da.problems.circular_billiard(m=m, B=B)
    _, after = arc_in_circle(z, v, B / m, 1.0)
    exact = -np.angle(after / v) / (B / m)
    errors = [
        abs(da.simulate(problem, method, h=h, steps=int(2 / h), progress=False).impacts.t[0] - exact)
        for method, h in ((da.CVA(), 0.1), (da.CVA(), 0.05), (da.CVA(da.Gauss(stages=5)), 0.1))
    ]
    assert 3.5 < errors[0] / errors[1] < 4.5
    assert errors[2] < 1e-14


def test_the_ellipse_keeps_all_segments_tangent_to_one_confocal_conic() -> None:
    a, b = 2.0, 1.3
    problem = da.problems.elliptic_billiard(m=0.7, a=a, b=b)
    run = da.simulate(problem, da.CVA(), steps=20_000, save_every=7, progress=False)
    assert len(run.impacts) > 700
    assert np.ptp(problem.conserved["product_of_angular_momenta"](run)) < 1e-12
    # the line n.q = d touches the conic x^2/(a^2-s) + y^2/(b^2-s) = 1 if d^2 = n_x^2 (a^2-s) + n_y^2 (b^2-s), |n| = 1
    v = run.impacts.p_after / np.linalg.norm(run.impacts.p_after, axis=1)[:, None]
    normal = np.column_stack([-v[:, 1], v[:, 0]])
    s = normal**2 @ [a**2, b**2] - (normal * run.impacts.q).sum(axis=1) ** 2
    assert np.ptp(s) < 1e-12


def in_the_stadium(z: complex, v: complex, a: float, r: float, omega: float) -> Iterator[tuple[complex, complex]]:
    """Impact points in the stadium, and velocities after them, from intersections of lines or circles with its four pieces."""
    while True:
        ends = []
        c, rho = (z - 1j * v / omega, abs(v / omega)) if omega else (0j, 0.0)
        for side in (r, -r):  # y = side, |x| <= a
            if omega:
                height = side - c.imag
                if abs(height) < rho:
                    reach = math.sqrt(rho**2 - height**2)
                    ends += [(end, complex(0, -side / r)) for end in (complex(c.real + s * reach, side) for s in (1, -1))]
            elif v.imag:
                ends.append((z + v * (side - z.imag) / v.imag, complex(0, -side / r)))
        ends = [(end, normal) for end, normal in ends if abs(end.real) <= a]
        for centre in (a, -a):
            if omega:
                apart = centre - c
                along = (abs(apart) ** 2 + rho**2 - r**2) / (2 * abs(apart))
                if abs(along) < rho:
                    reach = math.sqrt(rho**2 - along**2)
                    found = [c + apart / abs(apart) * complex(along, s * reach) for s in (1, -1)]
                else:
                    found = []
            else:
                u, w = v / abs(v), z - centre
                half = (u * w.conjugate()).real
                root = half**2 - abs(w) ** 2 + r**2
                found = [z + u * (-half + s * math.sqrt(root)) for s in (1, -1)] if root > 0 else []
            ends += [(end, (centre - end) / r) for end in found if end.real * math.copysign(1, centre) > a]
        if omega:
            later = [((np.angle((z - c) / (end - c)) * math.copysign(1, omega)) % (2 * math.pi), end, n) for end, n in ends]
            turn, z, normal = min(((x, e, n) for x, e, n in later if 1e-9 < x < 2 * math.pi - 1e-9), key=lambda x: x[0])
            v = v * np.exp(-1j * math.copysign(turn, omega))
        else:
            later = [(((end - z) / v).real, end, n) for end, n in ends]
            _, z, normal = min(((x, e, n) for x, e, n in later if x > 1e-9), key=lambda x: x[0])
        v = reflected(v, normal)
        yield z, v


@pytest.mark.parametrize("B", [0.0, 0.4, -1.5])
def test_the_first_impacts_in_the_stadium_are_those_of_geometry(B: float) -> None:
    m, a, r = 1.3, 0.8, 1.1
    problem = da.problems.stadium_billiard(m=m, B=B, a=a, r=r)
    impacts = da.simulate(problem, da.CVA(), steps=600, progress=False).impacts
    path, beside = (in_the_stadium(complex(x, 0.2), complex(0.6, 0.8), a, r, B / m) for x in (0.3, 0.3 + 1e-10))
    exact, nearby = (np.array([next(z) for _ in range(16)]) for z in (path, beside))
    chaos = np.maximum.accumulate(np.maximum(1.0, np.abs(exact - nearby).max(axis=1) / 1e-10))  # how errors grow
    assert len(impacts) >= 16
    assert {bool(abs(z.real) < a) for z in exact[:, 0]} == {True, False}  # straight and round pieces
    assert np.all(np.abs(impacts.q[:16] @ [1, 1j] - exact[:, 0]) < 2e-14 * chaos)
    momenta = impacts.p_after[:16] @ [1, 1j] - B / 2 * 1j * exact[:, 0]  # m v = p - B (-y, x)/2
    assert np.all(np.abs(momenta - m * exact[:, 1]) < 2e-14 * chaos)
    assert chaos[-1] < 1e10


def molecular_dynamics(q: np.ndarray, v: np.ndarray, r: float, box: float, count: int) -> list[tuple[float, int]]:
    """The first impacts of equal hard disks: from event to event, each pair and wall solved for its own meeting time."""
    n, t, events = len(q), 0.0, []
    q, v, last = q.copy(), v.copy(), -1
    while len(events) < count:
        best, which = math.inf, -1
        for i in range(n):
            for j in range(i):
                x, u = q[i] - q[j], v[i] - v[j]
                b, uu = float(x @ u), float(u @ u)
                root = b * b - uu * (float(x @ x) - 4 * r * r)
                name = i * (i - 1) // 2 + j
                if b < 0 and root > 0 and name != last:
                    wait = (-b - math.sqrt(root)) / uu
                    if wait < best:
                        best, which = wait, name
            for axis in (0, 1):
                speed = v[i][axis]
                wait = ((r if speed < 0 else box - r) - q[i][axis]) / speed
                name = n * (n - 1) // 2 + 4 * i + 2 * axis + (speed > 0)
                if wait < best and name != last:
                    best, which = wait, name
        t, q, last = t + best, q + best * v, which
        if which < n * (n - 1) // 2:
            i = int((1 + math.isqrt(1 + 8 * which)) // 2)
            j = which - i * (i - 1) // 2
            normal = (q[i] - q[j]) / (2 * r)
            exchanged = float((v[i] - v[j]) @ normal) * normal
            v[i], v[j] = v[i] - exchanged, v[j] + exchanged
        else:
            disk, rest = divmod(which - n * (n - 1) // 2, 4)
            v[disk, rest // 2] *= -1
        events.append((t, which))
    return events


@pytest.mark.parametrize("disks", [2, 6, 10])
@pytest.mark.parametrize("h", [0.05, 0.5])
def test_hard_disks_against_an_event_driven_program(disks: int, h: float) -> None:
    r, box, count = 0.35, 5.0, 40
    problem = da.problems.hard_disks(disks=disks, m=1.4, r=r, box=box)
    assert problem.q0 is not None and problem.v0 is not None
    impacts = da.simulate(problem, da.CVA(), h=h, t1=60.0, progress=False).impacts
    events = molecular_dynamics(problem.q0.reshape(-1, 2), problem.v0.reshape(-1, 2), r, box, count)
    assert len(impacts) >= count
    assert impacts.which[:count].tolist() == [which for _, which in events]
    assert np.abs(impacts.t[:count] - [t for t, _ in events]).max() < 1e-8
    pair = impacts.which < disks * (disks - 1) // 2
    kick = (impacts.p_after - impacts.p_before).reshape(len(impacts), -1, 2).sum(axis=1)
    assert pair.any() and np.abs(kick[pair]).max() < 1e-14  # a pair keeps its momentum, a wall changes it
    assert np.abs(kick[~pair]).max() > 0.1
    assert np.abs(impacts.energy_after - impacts.energy_before).max() < 1e-13


def test_hard_disks_find_their_way_back() -> None:
    problem = da.problems.hard_disks(disks=8)
    there = da.simulate(problem, da.CVA(), t1=6.0, progress=False)
    back = da.simulate(problem.system, da.CVA(), q0=there.q[-1], p0=-there.p[-1], h=problem.h, t1=6.0, progress=False)
    assert len(there.impacts) == len(back.impacts) >= 15
    assert np.abs(there.states[-1, :16] - there.q[0]).max() > 0.5
    assert np.abs(back.q[-1] - there.q[0]).max() < 1e-9
