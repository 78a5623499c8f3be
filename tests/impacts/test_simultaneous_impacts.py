"""Walls with friction that are hit at the same instant take part in one impact: bodies that land flat do not turn."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da

G = 9.81


def corners(height, angle, a, b, side):
    """Heights of the two corners of a box of half length a and half height b, above or below its centre."""
    return [height + i * a * np.sin(angle) + side * b * np.cos(angle) for i in (-1, 1)]


def slips(speed, q, v, a, b, side):
    """Velocities of the same corners along the wall."""
    return [speed + (-i * a * np.sin(q) - side * b * np.cos(q)) * v for i in (-1, 1)]


@pytest.mark.parametrize(("e", "y"), [(0.5, 0.05), (0.0, 0.05), (0.0, 0.06), (0.0, 0.07)])
def test_a_box_that_lands_flat_bounces_without_turning(e, y):
    """Both corners carry half of it: falls of sqrt(2 y/g), rest after (1 + e)/(1 - e) times as long."""
    m, a, b = 0.2, 0.05, 0.02
    J = m * (a**2 + b**2) / 3
    box = da.Lagrangian(
        lambda q, v: m * (v[0] ** 2 + v[1] ** 2) / 2 + J * v[2] ** 2 / 2 - m * G * q[1],
        dim=3,
        unilateral=lambda q: corners(q[1], q[2], a, b, -1),
        restitution=e,
        friction=0.3,
        slip=lambda q, v: slips(v[0], q[2], v[2], a, b, -1),
    )
    run = da.simulate(box, da.CVA(), q0=[0, b + y, 0], v0=[0, 0, 0], h=0.01, t1=0.6)
    fall = np.sqrt(2 * y / G)
    np.testing.assert_allclose(run.impacts.t[:2], fall, rtol=1e-13)
    np.testing.assert_allclose(run.impacts.impulse[:2], (1 + e) * m * G * fall / 2, rtol=1e-12)
    assert np.isclose(run.contacts.begin.min(), fall * (1 + e) / (1 - e), rtol=1e-7)
    assert np.abs(run.q[:, [0, 2]]).max() < 1e-14
    np.testing.assert_allclose(run.contact_forces.normal[-1], m * G / 2, rtol=1e-9)


l_1, l_2, m_1, m_2, m_3, J_1, J_2, J_3 = 0.153, 0.306, 0.038, 0.038, 0.076, 7.4e-5, 5.9e-4, 2.7e-6
a, b, c = 0.05, 0.025, 0.001
M_1, M_2 = J_1 + (m_1 / 4 + m_2 + m_3) * l_1**2, J_2 + (m_2 / 4 + m_3) * l_2**2
M_12, g_1, g_2 = (m_2 / 2 + m_3) * l_1 * l_2, (m_1 / 2 + m_2 + m_3) * G * l_1, (m_2 / 2 + m_3) * G * l_2


def slider_crank_with_clearance():
    """Crank, rod and a slider in a guide that is 1 mm too wide on both sides, by their angles.

    P. Flores, R. Leine and C. Glocker, Multibody Syst. Dyn. 23 (2010) 165-190, table 1.
    """

    def L(q, v):
        kinetic = M_1 * v[0] ** 2 + M_2 * v[1] ** 2 + J_3 * v[2] ** 2 + 2 * M_12 * np.cos(q[1] - q[0]) * v[0] * v[1]
        return kinetic / 2 - g_1 * np.sin(q[0]) - g_2 * np.sin(q[1])

    def gaps(q):
        y = l_1 * np.sin(q[0]) + l_2 * np.sin(q[1])
        return [b + c - s * corner for s in (1, -1) for corner in corners(y, q[2], a, b, s)]

    def slip(q, v):
        x = -l_1 * np.sin(q[0]) * v[0] - l_2 * np.sin(q[1]) * v[1]
        return [corner for s in (1, -1) for corner in slips(x, q[2], v[2], a, b, s)]

    return da.Lagrangian(L, dim=3, unilateral=gaps, slip=slip, friction=0.01, restitution=0.4)


def first_impact():
    """When the slider reaches its guide, by accelerations that are written down here."""

    def rates(t, x):
        q, v = x[:2], x[2:]
        C = M_12 * np.cos(q[1] - q[0])
        S = M_12 * np.sin(q[1] - q[0])
        forces = [S * v[1] ** 2 - g_1 * np.cos(q[0]), -S * v[0] ** 2 - g_2 * np.cos(q[1])]
        return np.concatenate([v, np.linalg.solve([[M_1, C], [C, M_2]], forces)])

    def touches(t, x):
        return c - l_1 * np.sin(x[0]) - l_2 * np.sin(x[1])

    touches.terminal, touches.direction = True, -1
    return solve_ivp(rates, (0, 0.01), [0, 0, 150, -75], method="DOP853", rtol=1e-13, atol=1e-13, events=touches).t_events[0][0]


def test_a_slider_crank_with_clearance_does_what_others_found():
    """Another integration up to the first impact, time stepping, and in the end what Siconos keeps of this example.

    That is its SliderCrankMoreauJeanDirectProjectionOSI.ref, of first order in steps of 1e-4 s.
    """
    system, start = slider_crank_with_clearance(), {"q0": [0, 0, 0], "v0": [150, -75, 0], "t1": 0.02}
    run = da.simulate(system, da.CVA(da.GaussLobattoSPARK(stages=2)), h=1e-4, **start)
    stepped = da.simulate(system, da.NonsmoothRattle(), h=1e-5, **start)
    times = np.unique(run.impacts.t)
    assert abs(times[0] - first_impact()) < 1e-9 and len(times) > 10
    assert list(run.impacts.which[:4]) == [0, 1, 0, 1] and np.abs(run.q[:, 2]).max() < 1e-12  # both corners, and no turn
    np.testing.assert_allclose(run.q[-1, :2], [2 * np.pi * 0.258911829, -0.519511383], rtol=1e-2)
    np.testing.assert_allclose(run.v[-1, 0], 73.0514736, rtol=2e-2)
    np.testing.assert_allclose(run.q[-1], stepped.q[-1], atol=1e-5)
    np.testing.assert_allclose(run.v[-1], stepped.v[-1], atol=2e-3)
