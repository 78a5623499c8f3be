"""Billiards: between the walls the motion is a straight line, which every base method gets right."""

import numpy as np
import pytest
from impact_models import PAPER, free_particle

import dalembert as da

STRAIGHT = {name: PAPER[name] for name in ("CVA", "VCI", "MCVAA")}


@pytest.mark.parametrize("method", STRAIGHT.values(), ids=STRAIGHT)
def test_impact_points_of_the_circle_are_right_to_round_off_over_ten_thousand_impacts(method):
    circle = free_particle(lambda q: 1 - q @ q)
    run = da.simulate(circle, method, q0=[0.3, 0.1], v0=[0.7, 0.9], h=0.1, steps=175_000, save_every=1000)
    q, k = run.impacts.q, np.arange(len(run.impacts))
    assert len(k) > 10_000
    sine = (0.3 * 0.9 - 0.1 * 0.7) / np.hypot(0.7, 0.9)
    turn = np.pi - 2 * np.arcsin(sine)  # the angle from impact to impact
    error = np.abs((q[:, 0] + 1j * q[:, 1]) / (q[0, 0] + 1j * q[0, 1]) - np.exp(1j * turn * k))
    # Rounding errors of the direction, one an impact, walk at random, and the angle sums them up: eps k^(3/2).
    assert np.all(error <= 1e-14 + 5 * np.finfo(float).eps * k**1.5)
    assert error[:50].max() < 1e-13
    assert np.abs((q**2).sum(axis=1) - 1).max() < 1e-15
    assert np.ptp(run.energy) < 1e-12


def test_the_ellipse_keeps_the_product_of_angular_momenta_about_its_foci():
    a, b = 2.0, 1.0
    c = np.sqrt(a**2 - b**2)
    ellipse = free_particle(lambda q: 1 - (q[0] / a) ** 2 - (q[1] / b) ** 2)
    impacts = da.simulate(ellipse, da.CVA(), q0=[0.5, 0.2], v0=[0.6, 0.8], h=0.1, steps=20_000, save_every=1000).impacts
    (x, y), (vx, vy) = impacts.q.T, impacts.p_after.T
    product = ((x - c) * vy - y * vx) * ((x + c) * vy - y * vx)
    assert len(impacts) > 900
    assert np.ptp(product) < 1e-12


@pytest.mark.parametrize("method", STRAIGHT.values(), ids=STRAIGHT)
@pytest.mark.parametrize("h", [0.01, 0.37, 3.0])
def test_a_box_unfolds_into_straight_flight_however_many_impacts_a_step_has(method, h):
    box = free_particle(lambda q: [q[0], q[1], 1 - q[0], 1 - q[1]])
    q0, v0 = np.array([0.5, 0.4]), np.array([1.0, 7.3])
    run = da.simulate(box, method, q0=q0, v0=v0, h=h, steps=int(30 / h))
    unfolded = q0 + run.t[:, None] * v0
    folded = np.abs((unfolded + 1) % 2 - 1)
    assert np.abs(run.q - folded).max() < 1e-10
    assert len(run.impacts) >= 200


@pytest.mark.parametrize("method", PAPER.values(), ids=PAPER)
def test_a_corner_turns_the_particle_back(method):
    box = free_particle(lambda q: [q[0], q[1]])
    run = da.simulate(box, method, q0=[0.5, 0.5], v0=[-1.0, -1.0], h=0.1, steps=10)
    assert np.allclose(run.impacts.t, [0.5, 0.5])
    assert sorted(run.impacts.which) == [0, 1]
    assert np.allclose(run.q[-1], [0.5, 0.5])
    assert np.allclose(run.p[-1], [1.0, 1.0])


@pytest.mark.parametrize("method", PAPER.values(), ids=PAPER)
def test_a_wall_that_a_long_step_crosses_twice_is_hit(method):
    disc = free_particle(lambda q: q @ q - 1)
    run = da.simulate(disc, method, q0=[-2.03, 0.99], v0=[3.0, 0.0], h=1.0, steps=2)
    assert np.allclose(run.impacts.q, [[-np.sqrt(1 - 0.99**2), 0.99]], atol=1e-14)


@pytest.mark.parametrize("method", PAPER.values(), ids=PAPER)
@pytest.mark.parametrize("depth", [-1e-8, -1e-12, 0.0, 1e-12, 1e-8, 1e-4])
def test_a_grazing_impact_reflects_as_it_should(method, depth):
    disc = free_particle(lambda q: q @ q - 1)
    run = da.simulate(disc, method, q0=[-2.03, 1 - depth], v0=[1.0, 0.0], h=0.1, steps=40)
    y = 1 - depth
    normal = np.array([-np.sqrt(max(0.0, 1 - y**2)), y])
    reflected = np.array([1.0, 0.0]) - (2 * normal[0] * normal if y < 1 else 0)
    # where phi touches zero the contact, and with it the normal, is known to sqrt(eps) only
    assert np.abs(run.p[-1] - reflected).max() < (1e-10 if depth > 1e-13 else 1e-7)
    assert (1 - (run.q**2).sum(axis=1)).max() < 1e-15
    if depth == 0:  # it touches, with an impulse or without one
        assert len(run.impacts) <= 1 and run.impacts.impulse.sum() < 1e-7
    else:
        assert len(run.impacts) == (depth > 0)


def test_touching_balls_pass_an_impulse_on_as_in_newtons_cradle():
    line = da.Lagrangian(lambda q, v: v @ v / 2, dim=4, unilateral=lambda q: np.diff(q) - 1.0)
    for method in (da.CVA(), da.MCVA(), da.VCI()):
        run = da.simulate(line, method, q0=[-1.5, 1.0, 2.0, 3.0], v0=[1.0, 0.0, 0.0, 0.0], h=0.1, steps=40)
        assert np.allclose(run.p[-1], [0.0, 0.0, 0.0, 1.0], atol=1e-13)
        assert np.allclose(run.impacts.t, 1.5)
        assert list(run.impacts.which) == [0, 1, 2]
