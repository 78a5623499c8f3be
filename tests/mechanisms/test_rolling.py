"""Wheels, balls and blades: exact motions, other coordinates, and the bicycle's published eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from bicycle import bicycle, eigenvalues, published
from scipy.optimize import brentq

import dalembert as da


def sorted_by_size(values):
    return values[np.lexsort([values.imag, values.real.round(6)])]


@pytest.mark.parametrize("v", [1.0, 5.0, 8.0])
def test_eigenvalues_of_the_bicycle(v):
    np.testing.assert_allclose(sorted_by_size(eigenvalues(v)), sorted_by_size(published(v)), rtol=1e-6, atol=1e-7)


def test_published_matrices_have_the_published_stable_speeds():
    """The printed matrices were copied well: weave and capsize speeds are those of the paper."""
    weave = brentq(lambda v: max(x.real for x in published(v) if abs(x.imag) > 0.1), 4.0, 4.6, xtol=1e-13)
    capsize = brentq(lambda v: max(x.real for x in published(v) if abs(x.imag) < 0.1), 5.5, 6.5, xtol=1e-13)
    np.testing.assert_allclose([weave, capsize], [4.292382536341, 6.024262015388], rtol=1e-11)


@pytest.mark.slow
def test_bicycle_keeps_its_energy():
    """20 s at 5 m/s after a push sideways: it rights itself, with energy and constraints at round-off."""
    m, frame, steer, axle = bicycle()
    start = m.start(rates={axle: 5.0 / 0.3}, angular_velocities={frame: (0.05, 0, 0)})
    run = da.simulate(m, da.GaussLobattoSPARK(3), start=start, h=0.01, t1=20.0)
    assert np.ptp(run.energy) < 1e-12 * abs(run.energy[0])
    assert max(np.abs(residual).max() for residual in run.residuals.values()) < 1e-12
    assert np.abs(run.of(steer).angle).max() > 1e-3 > 1e-5 > abs(run.of(steer).angle[-1])


@pytest.mark.parametrize("coordinates", ["quaternion", "matrix"])
def test_ball_rolls_down_an_incline(coordinates):
    """5/7 of the acceleration along the slope; spin about the normal stays."""
    slope = 0.3
    normal = np.array([np.sin(slope), 0, np.cos(slope)])
    down = np.array([np.cos(slope), 0, -np.sin(slope)])
    m = da.Mechanism(gravity=lambda g: (0.0, 0.0, -g), coordinates=coordinates, params={"g": 9.81})
    ball = m.body("ball", mass=0.2, shape=da.mechanisms.Sphere(0.03), at=0.03 * normal)
    touch = m.ball(ball, radius=0.03, normal=normal)
    start = m.start(velocities={ball: (0, 0.1, 0)})
    run = da.simulate(m, da.GaussLobattoSPARK(2), start=start, h=0.00125, steps=800)
    exact = 0.03 * normal + 5 / 14 * 9.81 * np.sin(slope) * np.outer(run.t**2, down) + np.outer(run.t, (0, 0.1, 0))
    np.testing.assert_allclose(run.of(ball).position, exact, atol=1e-8)
    # friction 2/7 of the weight along the slope, and the normal force
    force = 0.2 * 9.81 * (np.cos(slope) * normal - 2 / 7 * np.sin(slope) * down)
    np.testing.assert_allclose(run.of(touch).force, np.tile(force, (801, 1)), atol=1e-9)
    np.testing.assert_allclose(run.of(touch).contact_point @ normal, 0, atol=1e-14)


def test_leaning_disk_rolls_as_in_eulers_angles():
    """The catalogue's rolling disk has five coordinates of its own: contact point, lean, yaw, roll."""
    lean, yaw_rate, roll_rate = 0.3, 0.4, 2.0
    problem = da.problems.rolling_disk(lean=lean, yaw_rate=yaw_rate, roll_rate=roll_rate)
    m = da.Mechanism(gravity=(0, 0, -1.0))
    up = np.array([0.0, np.sin(lean), np.cos(lean)])
    axis = np.array([0.0, np.cos(lean), -np.sin(lean)])
    disk = m.body("disk", mass=1.0, inertia=0.25 * np.eye(3) + 0.25 * np.outer(axis, axis), at=up)
    wheel = m.wheel(disk, radius=1.0, axis=axis)
    omega = yaw_rate * np.array([0, 0, 1]) + roll_rate * axis
    run = da.simulate(m, da.GaussLobattoSPARK(3), start=m.start(angular_velocities={disk: omega}), h=0.02, steps=200)
    other = da.simulate(problem, da.GaussLobattoSPARK(3), h=0.02, steps=200)
    np.testing.assert_allclose(run.energy[0], other.energy[0], rtol=1e-13)
    np.testing.assert_allclose(run.of(wheel).contact_point[:, :2], other.q[:, :2], atol=1e-8)


def test_blade_under_a_body_is_chaplygins_sleigh():
    """The catalogue's sleigh has its blade's point for coordinates; here they are those of the centre of mass."""
    a = 0.3
    problem = da.problems.chaplygin_sleigh(m=2.0, a=a, I=0.1, g=1.3, speed=0.4, turning=0.6)
    x, y, theta = problem.q0
    along = np.array([np.cos(theta), np.sin(theta)])
    m = da.Mechanism(gravity=(0, -1.3), coordinates="planar")
    sleigh = m.body("sleigh", mass=2.0, inertia=0.1, at=problem.q0[:2] + a * along, rotation=theta)
    m.knife_edge(sleigh, at=(x, y), along=along)
    velocity = 0.4 * along + 0.6 * a * np.array([-along[1], along[0]])
    start = m.start(velocities={sleigh: velocity}, angular_velocities={sleigh: (0, 0, 0.6)})
    run = da.simulate(m, da.GaussLobattoSPARK(3), start=start, h=0.01, steps=300)
    other = da.simulate(problem, da.GaussLobattoSPARK(3), h=0.01, steps=300)
    np.testing.assert_allclose(run.of(sleigh).point((x, y))[:, :2], other.q[:, :2], atol=1e-9)
    np.testing.assert_allclose(run.of(sleigh).point_velocity((x, y))[:, :2], other.v[:, :2], atol=1e-9)
    np.testing.assert_allclose(run.q[:, 2], other.q[:, 2], atol=1e-9)
