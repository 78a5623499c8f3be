"""Contacts with friction in da.Mechanism: a ball that rolls, balls that collide, a tippe top that turns over."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

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


r1, r2, a1, a2, MASS, I1, I3, MU = 0.015, 0.005, 0.003, 0.016, 6e-3, 8e-7, 7e-7, 0.3
"""The tippe top of Leine and Glocker (2003): 1 - a1/r1 < I3/I1 < 1 + a1/r1, so that sliding friction turns it over."""
TILT, SPIN = 0.1, 180.0


def tippe_top(patch):
    """The mechanism, its body and its start: upright but for a tilt, and spinning about its axis."""
    axis = np.array([np.sin(TILT), 0, np.cos(TILT)])
    R = np.column_stack([np.cross([0, 1, 0], axis), [0, 1, 0], axis])
    centre = np.array([0, 0, r1]) - a1 * axis  # of mass: below that of the large sphere
    m = da.Mechanism(gravity=(0, 0, -G))
    top = m.body("top", mass=MASS, inertia=(I1, I1, I3), at=centre, rotation=R)
    for a, r in ((a1, r1), (a2, r2)):
        m.contact(top, at=centre + a * axis, radius=r, restitution=0.0, friction=MU, patch=patch)
    return m, top, m.start(angular_velocities={top: SPIN * axis})


def newton_euler(t, x, patch):
    """The axis u, the angular velocity w and the horizontal velocity V of a top that slides on its large sphere.

    F = -mu N s/S and a torque -mu N patch^2 w_z/S about the vertical, S^2 = s^2 + (patch w_z)^2.
    """
    u, w, V, up = x[:3], x[3:6], x[6:8], np.array([0.0, 0.0, 1.0])
    arm, turning = a1 * u - r1 * up, np.cross(w, u)
    s = (np.array([*V, 0.0]) + np.cross(w, arm)) * [1, 1, 0]
    size = np.sqrt(s @ s + (patch * w[2]) ** 2)
    torque = np.cross(arm, up - MU * s / size) - MU * patch**2 * w[2] / size * up  # for N = 1

    def w_dot(N):
        b = N * torque - (I3 - I1) * (w @ u) * turning
        return (b - (I3 - I1) * (b @ u) / I3 * u) / I1

    def rises(N):
        return -a1 * (np.cross(w_dot(N), u) + np.cross(w, turning))[2]

    N = MASS * (G + rises(0.0)) / (1 - MASS * (rises(1.0) - rises(0.0)))  # m z'' = N - m g, z = r1 - a1 u_z
    return np.concatenate([turning, w_dot(N), -MU * N * s[:2] / size / MASS])


def test_a_tippe_top_with_a_patch_of_contact_turns_over():
    """It slides on its large sphere as the equations of Newton and Euler say, gets on its stem when they say, and stays.

    Friction is that of the slip at the end of a step, which turns: order 1.
    """
    patch = 1e-3 / 3  # 2/3 of the 0.5 mm of Leine and Glocker
    axis = np.array([np.sin(TILT), 0, np.cos(TILT)])

    def on_stem(t, x, patch):
        return r1 + (a2 - a1) * x[2] - r2

    on_stem.terminal = True
    start = np.concatenate([axis, SPIN * axis, [0.0, 0.0]])
    exact = solve_ivp(
        newton_euler, (0, 2), start, "DOP853", rtol=1e-8, atol=1e-10, args=(patch,), events=on_stem, dense_output=True
    )
    m, top, start = tippe_top(patch)
    errors = []
    for h in (1e-4, 5e-5):
        run = da.simulate(m, da.NonsmoothRattle(), start=start, h=h, t1=0.2)
        errors.append(np.abs(run.of(top).rotation[:, :, 2] - exact.sol(run.t)[:3].T).max())
    assert abs(np.log2(errors[0] / errors[1]) - 1) < 0.1 and errors[1] < 1e-3
    run = da.simulate(m, da.NonsmoothRattle(), start=start, h=2e-4, t1=2.0)
    up = run.of(top).rotation[:, 2, 2]
    assert abs(run.contacts.of(1).begin[0] - exact.t[-1]) < 5e-3
    assert up[0] > 0.99 and up[-1] < -0.97 and run.contacts.of(0).end[-1] < 1.5 < run.contacts.of(1).end[-1]
    assert np.diff(run.energy).max() < 1e-6 * run.energy[0]


@pytest.mark.parametrize("h", [1e-4, 2.5e-5])
def test_a_tippe_top_on_a_point_slides_until_it_rolls(h):
    """With Coulomb's friction at a point Jellett's L . a is constant, and energy falls until the top rolls.

    A contact that rolls dissipates nothing: it stays upright. So do the equations of Newton and Euler as their patch vanishes.
    """
    m, top, start = tippe_top(0.0)
    run = da.simulate(m, da.NonsmoothRattle(), start=start, h=h, t1=0.4, save_every=10)
    up, turn, w = run.of(top).rotation[:, :, 2], run.of(top).rotation, run.of(top).angular_velocity
    L = np.einsum("tij,j,tkj,tk->ti", turn, [I1, I1, I3], turn, w)
    jellett = np.einsum("ti,ti->t", L, a1 * up - np.array([0, 0, r1]))
    assert np.abs(jellett / jellett[0] - 1).max() < 2e-5 and up[:, 2].min() > 0.99
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
    m = da.Mechanism(coordinates="planar")
    a = m.body("a", mass=0.2, inertia=1e-4, free=True)
    with pytest.raises(da.ModelError, match="leave patch= out"):
        m.contact(a, normal=(0, 1, 0), radius=0.1, friction=0.3, patch=1e-3)
        m.system()
