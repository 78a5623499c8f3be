"""Contacts with friction in da.Mechanism: a ball that rolls, balls that collide, a tippe top that turns over."""

import numpy as np
import pytest

import dalembert as da

G = 9.81


def test_a_ball_of_a_mechanism_rolls_as_coriolis_found():
    """v ends as (5 v0 + 2 R w0 x n)/7, in quaternions."""
    R, v0, w0 = 0.0286, np.array([1.0, 0.3]), np.array([-60.0, 25.0, 7.0])
    m = da.Mechanism(gravity=(0, 0, -G))
    ball = m.body("ball", mass=0.17, inertia=0.4 * 0.17 * R**2, at=(0, 0, R))
    m.contact(ball, radius=R, restitution=0.0, friction=0.2)
    start = m.start(velocities={ball: (*v0, 0)}, angular_velocities={ball: w0})
    run = da.simulate(m, da.NonsmoothRattle(), start=start, h=5e-4, t1=1.2)
    rolling = (5 * v0 + 2 * R * np.array([w0[1], -w0[0]])) / 7
    np.testing.assert_allclose(run.of(ball).velocity[-1, :2], rolling, rtol=1e-3)
    assert np.abs(run.residuals["g"]).max() < 1e-13


def test_discs_of_a_planar_mechanism_collide_with_friction():
    """A spinning disc hits another at rest, head-on: P_N = m v (1 + e)/2, and P_F = mu P_N turns both of them alike."""
    R, mass, v, w, e, mu = 0.05, 0.2, 1.0, 200.0, 0.5, 0.1
    m = da.Mechanism(coordinates="planar")
    a, b = (m.body(name, mass=mass, inertia=mass * R**2 / 2, at=(x, 0), free=True) for name, x in (("a", 0.0), ("b", 0.15)))
    m.contact(b, a, radius=R, other_radius=R, restitution=e, friction=mu)
    start = m.start(velocities={a: (v, 0)}, angular_velocities={a: (0, 0, w)})
    run = da.simulate(m, da.NonsmoothRattle(), start=start, h=1e-4, t1=0.1)
    P_N = mass * v * (1 + e) / 2
    assert run.contacts.normal.sum() == pytest.approx(P_N, rel=1e-2)
    assert np.abs(run.contacts.friction.sum()) == pytest.approx(mu * P_N, rel=1e-2)
    np.testing.assert_allclose(run.of(b).velocity[-1, :2], [P_N / mass, mu * P_N / mass], rtol=1e-2)
    turned = mu * P_N * R / (mass * R**2 / 2)
    assert run.of(a).angular_velocity[-1, 2] == pytest.approx(w - turned, rel=1e-4)
    assert run.of(b).angular_velocity[-1, 2] == pytest.approx(-turned, rel=1e-2)


@pytest.mark.parametrize("h", [1e-4, 2.5e-5])
def test_a_tippe_top_slides_until_it_rolls(h):
    """The top of Leine and Glocker (2003) with Coulomb's friction at a point: Jellett's L . a is constant, energy falls.

    It gets to roll, and stays upright, for a contact that rolls dissipates nothing: what turns a tippe top over is that its
    spin makes friction viscous (Coulomb-Contensou), which is not modelled.
    """
    r1, r2, a1, a2, mass, tilt = 0.015, 0.005, 0.003, 0.016, 6e-3, 0.1
    axis = np.array([np.sin(tilt), 0, np.cos(tilt)])
    R = np.column_stack([np.cross([0, 1, 0], axis), [0, 1, 0], axis])
    centre = np.array([0, 0, r1]) - a1 * axis  # of mass: below that of the large sphere
    m = da.Mechanism(gravity=(0, 0, -G))
    top = m.body("top", mass=mass, inertia=(8e-7, 8e-7, 7e-7), at=centre, rotation=R)
    m.contact(top, at=centre + a1 * axis, radius=r1, restitution=0.0, friction=0.3)
    m.contact(top, at=centre + a2 * axis, radius=r2, restitution=0.0, friction=0.3)
    start = m.start(angular_velocities={top: 180 * axis})
    run = da.simulate(m, da.NonsmoothRattle(), start=start, h=h, t1=0.4, save_every=10)
    up, turn, w = run.of(top).rotation[:, :, 2], run.of(top).rotation, run.of(top).angular_velocity
    L = np.einsum("tij,j,tkj,tk->ti", turn, [8e-7, 8e-7, 7e-7], turn, w)
    jellett = np.einsum("ti,ti->t", L, a1 * up - np.array([0, 0, r1]))
    assert np.abs(jellett / jellett[0] - 1).max() < 2e-5
    slip = np.linalg.norm(run.contacts.of(0).slip, axis=1)
    assert slip[0] > 0.2 and slip[-1] < 1e-10 and len(run.contacts.of(1)) == 0
    assert run.energy[-1] < 0.995 * run.energy[0] and np.diff(run.energy).max() < 1e-6 * run.energy[0]
    phi = np.array([m.system().evaluate("phi", 0.0, q) for q in run.q])
    assert phi.min() > -1e-12


def test_contacts_of_a_body_with_itself_and_of_two_points_are_refused():
    m = da.Mechanism()
    a, b = (m.body(name, mass=0.2, inertia=1e-4, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 0.1)))
    with pytest.raises(da.ModelError, match="itself"):
        m.contact(a, a, radius=0.1)
    with pytest.raises(da.ModelError, match="never meet"):
        m.contact(a, b)
        m.system()
    m = da.Mechanism()
    a = m.body("a", mass=0.2, inertia=1e-4)
    with pytest.raises(da.ModelError, match="friction"):
        m.contact(a, friction=-1.0)
        m.system()
