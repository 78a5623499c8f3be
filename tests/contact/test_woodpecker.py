"""The woodpecker toy of Glocker (1995): its cycle, and the published state that lies on it."""

import numpy as np
import pytest

import dalembert as da

m_M, J_M, m_S, J_S, c, g = 3e-4, 5e-9, 4.5e-3, 7e-7, 5.6e-3, 9.81
r_0, r_M, h_M, l_M, l_G, h_S, l_S = 2.5e-3, 3.1e-3, 5.8e-3, 1e-2, 1.5e-2, 2e-2, 2.01e-2


def toy():
    """q = (y, phi_M, phi_S): sleeve and bird; contacts of the beak, and of the sleeve below and above."""

    def L(q, v):
        kinetic = (m_S + m_M) * v[0] ** 2 + (J_M + m_S * l_M**2) * v[1] ** 2 + (J_S + m_S * l_G**2) * v[2] ** 2
        kinetic += 2 * m_S * (l_M * v[0] * v[1] + l_G * v[0] * v[2] + l_M * l_G * v[1] * v[2])
        weight = (m_S + m_M) * g * q[0] + m_S * g * (l_M * q[1] + l_G * q[2])
        return kinetic / 2 - weight - c * (q[1] - q[2]) ** 2 / 2

    return da.Lagrangian(
        L,
        3,
        unilateral=lambda q: [l_M + l_G - l_S - r_0 - h_S * q[2], r_M - r_0 + h_M * q[1], r_M - r_0 - h_M * q[1]],
        slip=lambda q, v: [v[0] + l_M * v[1] + (l_G - l_S) * v[2], v[0] + r_M * v[1], v[0] + r_M * v[1]],
        friction=0.3,
        restitution=[0.5, 0.0, 0.0],
    )


@pytest.mark.parametrize("method", [da.MoreauJean(), da.NonsmoothRattle()], ids=["MoreauJean", "NonsmoothRattle"])
def test_the_published_state_lies_on_the_cycle(method):
    """q0 = (0, -.1036, -.2788), u0 = (-.3411, 0, -7.4583): after a period the toy is there again, further down."""
    h, at = 1e-5, -0.2788
    start = {"q0": [0, -(r_M - r_0) / h_M, at], "v0": [-0.3411, 0, -7.4583]}
    run = da.simulate(toy(), method, h=h, t1=0.5, **start)
    passes = np.flatnonzero((run.q[:-1, 2] > at) & (run.q[1:, 2] <= at) & (run.v[1:, 2] < -5)) + 1
    np.testing.assert_allclose(run.v[passes, 2], -7.4583, rtol=5e-3)
    np.testing.assert_allclose(run.v[passes, 0], -0.3411, rtol=2e-2)
    np.testing.assert_allclose(run.q[passes, 1], -0.1036, atol=3e-4)
    periods = np.diff(run.t[passes])
    assert len(periods) >= 2 and periods.std() < 2e-3 * periods.mean()
    hits = run.contacts.of(0)
    beats = 1 + np.count_nonzero(np.diff(hits.begin) > 0.05)  # the beak strikes once in a period
    assert beats == len(periods) + 1
    assert len(run.contacts.of(1)) > 0 and len(run.contacts.of(2)) > 0
    assert np.all(np.abs(run.contacts.friction[:, 0]) <= 0.3 * run.contacts.normal * (1 + 1e-9) + 1e-15)


def passes(run, at):
    """When the bird swings through an angle, and with which velocities, between stored states."""
    k = np.flatnonzero((run.q[:-1, 2] > at) & (run.q[1:, 2] <= at) & (run.v[1:, 2] < -5))
    part = (at - run.q[k, 2]) / (run.q[k + 1, 2] - run.q[k, 2])
    return [x[k] + (part * (x[k + 1] - x[k]).T).T for x in (run.t, run.v)]


def test_events_find_the_cycle_of_time_stepping():
    """Five impacts in each period: sleeve above, beak, sleeve above, and twice below."""
    at = -0.2788
    start = {"q0": [0, -(r_M - r_0) / h_M, at], "v0": [-0.3411, 0, -7.4583], "t1": 0.5}
    events = da.simulate(toy(), da.CVA(da.Gauss(stages=2)), h=5e-4, **start)
    stepped = da.simulate(toy(), da.NonsmoothRattle(), h=1e-5, **start)
    (t, v), (other_t, other_v) = passes(events, at), passes(stepped, at)
    np.testing.assert_allclose(t, other_t, rtol=0, atol=5e-5)
    np.testing.assert_allclose(v, other_v, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(v[:, 2], -7.4583, rtol=2e-3)
    struck = [which for k, which in enumerate(events.impacts.which) if events.impacts.t[k] > 0.01]
    assert struck[:15] == 3 * [2, 0, 2, 1, 1]
    assert events.contact_forces.normal.min() > -1e-12 and np.all(np.diff(events.energy) < 1e-12)
