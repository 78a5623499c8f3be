"""Wheels and balls on curved surfaces, against exact solutions, arc lengths and contact points found by search."""

from __future__ import annotations

import itertools

import casadi as ca
import numpy as np
import pytest
from references import Minimal
from scipy.optimize import minimize, minimize_scalar

import dalembert as da
from dalembert.mechanisms import Sphere


def test_ball_in_a_vertical_cylinder_does_not_fall():
    """The golfer's dilemma: its height swings with sqrt(2/7) of the rate at which it goes round (Gualtieri et al., 2006)."""
    R, r, g, rate = 0.06, 0.02, 9.81, 12.0
    m = da.Mechanism(gravity=(0, 0, -g))
    body = m.body("ball", mass=0.046, shape=Sphere(r), at=(R - r, 0, 0))
    ball = m.ball(body, radius=r, surface=lambda x, y, z: R - np.sqrt(x**2 + y**2) + 0 * z)
    start = m.start(velocities={body: (0, (R - r) * rate, 0)}, angular_velocities={body: (0, 0, -(R - r) / r * rate)})
    run = da.simulate(m, da.GaussLobattoSPARK(2), start=start, h=0.001, steps=600)
    swing = np.sqrt(2 / 7) * rate
    np.testing.assert_allclose(run.q[:, 2], 5 / 7 * g / swing**2 * (np.cos(swing * run.t) - 1), atol=5e-7)
    np.testing.assert_allclose(
        run.q[:, :2], (R - r) * np.stack([np.cos(rate * run.t), np.sin(rate * run.t)], axis=1), atol=1e-7
    )
    np.testing.assert_allclose(np.hypot(*run.of(ball).contact_point[:, :2].T), R, atol=1e-15)
    assert np.ptp(run.q[:, 2]) > 0.1


def test_disc_on_a_wavy_curve_by_one_coordinate():
    """A planar disc touches y = f(x) at (x, f); its centre is r along the normal, and it turns by the centre's path over r."""
    r, mass = 0.1, 0.3
    x = ca.SX.sym("x", 1)
    f = 0.3 * ca.cos(2 * x)
    slope = ca.jacobian(f, x)
    n = ca.vertcat(-slope, 1) / ca.sqrt(1 + slope**2)
    centre = ca.vertcat(x, f) + r * n
    reference = Minimal(x, [(1.5 * mass, np.zeros((3, 3)), ca.vertcat(centre, 0), ca.SX.eye(3))], (0, -9.81 / 1.5, 0))
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar", params={"height": 0.3})
    at = np.asarray(ca.evalf(ca.substitute(centre, x, 0.2)))[:, 0]
    disc = m.body("disc", mass=mass, inertia=mass * r**2 / 2, at=at)
    wheel = m.ball(disc, radius=r, surface=lambda x, y, z, height: y - height * np.cos(2 * x))
    run = da.simulate(m, da.GaussLobattoSPARK(3), start=m.start(), h=0.005, t1=0.8, save_every=20)
    contact, centres = reference.motion([0.2], [0.0], run.t)
    np.testing.assert_allclose(run.q[:, :2], centres[:, 0, :2], atol=1e-9)
    np.testing.assert_allclose(run.of(wheel).contact_point[:, 0], contact[:, 0], atol=1e-9)
    assert contact[-1, 0] > 0.7


def hills(x, y):
    return 0.1 * np.sin(3 * x) * np.cos(2 * y)


@pytest.mark.parametrize("rolling", ["ball", "wheel"])
def test_points_of_contact_are_where_a_search_finds_them(rolling):
    r, m = 0.1, da.Mechanism(params={"s": 1.0})
    body = m.body("body", mass=0.2, inertia=1e-3, at=(0.3, 0.1, 0.25))
    axis = {} if rolling == "ball" else {"axis": (0.2, 1.0, 0.3)}
    part = getattr(m, rolling)(body, radius=r, surface=lambda x, y, s: s * hills(x, y), **axis)
    state = m.at(m.start())
    point, c = state.of(part).contact_point[0], state.q[0, :3]
    assert abs(point[2] - hills(*point[:2])) < 1e-15
    if rolling == "ball":
        nearest = minimize(lambda x: np.sum((np.append(x, hills(*x)) - c) ** 2), c[:2], tol=1e-12)
        assert np.sqrt(nearest.fun) == pytest.approx(r, abs=1e-12)
        np.testing.assert_allclose(point[:2], nearest.x, atol=1e-6)
    else:
        a = state.of(body).rotation[0] @ np.array([0.2, 1.0, 0.3]) / np.linalg.norm([0.2, 1.0, 0.3])
        e = np.cross(a, [1.0, 0, 0]) / np.linalg.norm(np.cross(a, [1.0, 0, 0]))
        rim = lambda s: c + r * (np.cos(s) * e + np.sin(s) * np.cross(a, e))  # noqa: E731
        guess = np.arctan2((point - c) @ np.cross(a, e), (point - c) @ e)
        lowest = minimize_scalar(
            lambda s: rim(s)[2] - hills(*rim(s)[:2]), bounds=(guess - 0.5, guess + 0.5), options={"xatol": 1e-10}
        )
        assert abs(lowest.fun) < 1e-12
        np.testing.assert_allclose(point, rim(lowest.x), atol=1e-6)


def test_wheels_on_a_tilted_plane_agree_with_a_height(tilt=0.3):
    """Rows and rates of a leaning wheel on z = x tan(tilt) have the zeros of those on the plane of that normal."""
    systems = []
    for options in ({"normal": (-np.sin(tilt), 0, np.cos(tilt))}, {"surface": lambda x, y: np.tan(tilt) * x}):
        m = da.Mechanism()
        body = m.body("body", mass=0.2, inertia=1e-3, at=(0, 0, 0.3))
        m.wheel(body, radius=0.3, axis=(0.1, 1, 0.2), **options)
        systems.append(m.system())
    q = np.array([0.3, -0.2, 0.5, 0.9, 0.1, -0.2, 0.3])
    q[3:] /= np.linalg.norm(q[3:])
    p, (flat, curved) = np.linspace(-1, 1, 7), systems
    np.testing.assert_allclose(flat.evaluate("g", 0.0, q)[1:], curved.evaluate("g", 0.0, q)[1:], atol=1e-14)
    rows = [system.evaluate("k_v", 0.0, q, p) for system in systems]
    mix, rest, *_ = np.linalg.lstsq(rows[0].T, rows[1].T, rcond=None)
    assert np.max(rest) < 1e-25 and abs(np.linalg.det(mix)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("surface", "answer"),
    [
        ("flat", "a surface is a function"),
        (lambda x, y, slope: slope * x, "a surface asks for slope; declare it"),
        (lambda x, y: np.interp(x, [0, 1], [0, 1]), "a surface failed on symbolic arguments"),
        (lambda x, y, z: 0 * z, "has no normal"),
        (lambda x, y: 100 * x**2, "the surface bends more sharply"),
    ],
)
def test_bad_surfaces_are_refused(surface, answer):
    m = da.Mechanism()
    body = m.body("ball", mass=0.2, shape=Sphere(0.1), at=(0.0, 0, 0.1))
    with pytest.raises(da.DalembertError, match=answer) as caught:
        m.ball(body, radius=0.1, surface=surface)
        m.start()
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_wheel_on_hills_keeps_its_energy_and_its_order():
    """Upright along a ridge it is the planar disc; pushed over, its energy is kept and errors fall with the method's order."""
    r, mass = 0.2, 0.4
    m = da.Mechanism(gravity=(0, 0, -9.81))
    disc = m.body(
        "disc",
        mass=mass,
        shape=da.mechanisms.Cylinder(r, 0.01),
        at=(0.3, 0.1, 0.3),
        rotation=[[1, 0, 0], [0, 0, 1], [0, -1, 0]],
    )
    m.wheel(disc, radius=r, axis=(0, 1, 0), surface=hills)
    start = m.start(angular_velocities={disc: (0.3, 15.0, 0.5)})
    ends = [da.simulate(m, da.GaussLobattoSPARK(2), start=start, h=h, t1=0.64) for h in (0.016, 0.008, 0.004, 0.002)]
    assert np.ptp(ends[-1].energy) < 1e-6 * ends[-1].energy[0]
    gaps = [np.max(np.abs(a.q[-1] - b.q[-1])) for a, b in itertools.pairwise(ends)]
    slopes = np.log2(np.array(gaps[:-1]) / gaps[1:])
    assert np.all(np.abs(slopes - 4) < 0.4)
