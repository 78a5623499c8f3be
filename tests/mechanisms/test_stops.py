"""Stops of joints, contacts with planes, and functions of several parts, against SciPy's events and linear theory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import dalembert as da


def bounces(slope, y0, wall, restitution, t1):
    """Times at which y[0] meets a lower limit, by DOP853; the speed there is reversed and reduced."""

    def gap(_, y):
        return y[0] - wall

    gap.terminal, gap.direction = True, -1
    times, t, y = [], 0.0, np.array(y0)
    while True:
        leg = solve_ivp(slope, (t, t1), y, "DOP853", events=gap, rtol=1e-12, atol=1e-12)
        if leg.status == 0:
            return np.array(times)
        t, y = leg.t[-1], np.array([wall, -restitution * leg.y[1, -1]])
        times.append(t)


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
def test_pendulum_at_a_stop(coordinates):
    """A uniform rod: angle'' = -(3 g / 2 l) cos(angle) from the horizontal, with a stop 1.2 below it."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates=coordinates, params={"limit": -1.2})
    rod = m.body("rod", mass=0.2, inertia=(1e-5, 0.2 * 0.16 / 12, 0.2 * 0.16 / 12), at=(0.2, 0, 0))
    hinge = m.revolute(m.ground, rod, at=(0, 0))
    m.stop(hinge, lower="limit", restitution=0.7)
    run = da.simulate(m, da.CVA(), h=0.001, t1=1.5)
    exact = bounces(lambda t, y: [y[1], -1.5 * 9.81 / 0.4 * np.cos(y[0])], [0.0, 0.0], -1.2, 0.7, 1.5)
    assert len(exact) >= 3
    np.testing.assert_allclose(run.impacts.t[: len(exact)], exact, atol=2e-5)  # the method is of second order
    assert run.of(hinge).angle.min() > -1.2 - 1e-12


def test_ball_bounces_off_a_plane():
    m = da.Mechanism(gravity=(0, 0, -9.81))
    ball = m.body("ball", mass=0.2, shape=da.mechanisms.Sphere(0.03), at=(0, 0, 0.53))
    m.contact(ball, radius=0.03, restitution=0.5)
    run = da.simulate(m, da.CVA(), start=m.start(velocities={ball: (1.0, 0, 0)}), h=0.005, steps=160)
    first = np.sqrt(2 * 0.5 / 9.81)
    np.testing.assert_allclose(run.impacts.t[:3], first * (1 + np.array([0.0, 1.0, 1.5])), atol=1e-10)


def test_names_of_parts_may_begin_with_each_other():
    m = da.Mechanism(coordinates="planar")
    for name in ("arm", "arm 2"):
        m.revolute(m.ground, m.rod(f"{name} rod", (0, 0), (1, 0), mass=1.0), at=(0, 0), name=name)
    m.motor(m.part("arm"), lambda arm_2_angle, arm_rate: arm_2_angle - arm_rate)
    q = np.concatenate([m.part("arm rod").start, m.part("arm 2 rod").start + np.array([0, 0, 0.3])])
    assert m.system().evaluate("force", 0.0, q, np.zeros(6))[2] == pytest.approx(0.3)


def test_controlled_cart_pole_follows_its_linearisation():
    """A motor on the cart that reads the pole: small motions are those of the linear state feedback, exactly by expm."""
    gains = np.array([4.0, -60.0, 6.0, -12.0])  # displacement, angle, speed, rate; the pole leans to the left for angle > 0
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar", params={"K": gains})
    cart, pole = m.body("cart", mass=1.0, inertia=1e-3), m.rod("pole", (0, 0), (0, 1.0), mass=0.2)
    slide = m.prismatic(m.ground, cart, axis=(1, 0), name="slide")
    hinge = m.revolute(cart, pole, at=(0, 0), name="hinge")
    m.motor(slide, lambda displacement, hinge_angle, speed, hinge_rate, K: (
        K[0] * displacement + K[1] * hinge_angle + K[2] * speed + K[3] * hinge_rate
    ))  # fmt: skip
    angle = 1e-5
    start = m.start(displacements={slide: 0.0}, angles={hinge: angle})
    run = da.simulate(m, da.LobattoIIIAB(3), start=start, h=0.01, t1=3.0)
    # M (x'', a'') = (u, m g l/2 a), the centre of the pole at x - l/2 sin(a)
    M = np.array([[1.2, -0.1], [-0.1, 0.2 / 3]])
    rates = np.linalg.solve(M, np.array([gains, [0.0, 0.2 * 9.81 * 0.5, 0.0, 0.0]]))
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [rates]])
    exact = np.array([expm(A * t) @ [0.0, angle, 0.0, 0.0] for t in run.t[::30]])
    np.testing.assert_allclose(run.of(slide).displacement[::30], exact[:, 0], atol=1e-10)
    np.testing.assert_allclose(run.of(hinge).angle[::30], exact[:, 1], atol=1e-10)


def hinged(coordinates="quaternion", **more):
    m = da.Mechanism(coordinates=coordinates, params={"limit": 1.0})
    return m, m.revolute(m.ground, m.body("b", mass=0.2, inertia=1e-4), at=(0, 0, 0), **more)


def test_limits_that_an_angle_never_reaches_are_refused():
    m, hinge = hinged(angle=1.0)
    for limits, answer in (
        ({"lower": 0.5, "upper": 0.4}, "above the upper one"),
        ({"upper": 4.2}, "the upper limit of 'door', 4.2, is not within half a turn"),
        ({"lower": -2.2}, "the lower limit of 'door', -2.2, is not within half a turn"),
    ):
        with pytest.raises(da.DalembertError, match=answer):
            m.stop(hinge, **limits, name="door")
    m.stop(hinge, lower=-2.1, upper="limit")
    with pytest.raises(da.DalembertError, match="the upper limit of 'stop 1', 5, is not within"):
        m.start(params={"limit": 5.0})


def test_limits_beyond_half_a_turn_act_in_the_plane():
    """From angle 0 at the rate 2 without forces, a stop at 3.5 is met after 1.75 s, and the motion reversed."""
    m, hinge = hinged("planar")
    m.stop(hinge, upper=3.5, restitution=1.0)
    run = da.simulate(m, da.CVA(), start=m.start(rates={hinge: 2.0}), h=0.01, t1=2.5)
    assert run.of(hinge).angle[-1] == pytest.approx(2.0, abs=1e-12)


def test_restitution_is_a_number_a_parameter_or_a_function_of_the_speed_of_each_contact():
    """Three balls that fall from one height onto a plane with laws of their own; each bounces by its own coefficient."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar", params={"e": 0.8, "k": 0.1})
    laws = [0.5, "e", lambda speed, k: 1 / (1 + k * speed)]
    balls = [m.point(f"ball {i}", mass=0.1, at=(i, 0.2), free=True) for i in range(3)]
    for ball, law in zip(balls, laws, strict=True):
        m.contact(ball, normal=(0, 1), restitution=law)
    speed = np.sqrt(2 * 9.81 * 0.2)
    for params, own in (({}, 0.8), ({"e": 0.25}, 0.25)):
        run = da.simulate(m, da.CVA(), start=m.start(), h=0.01, steps=25, params=params)
        fallen = np.sqrt(2 * 0.2 / 9.81)
        after = [0.5 * speed, own * speed, speed / (1 + 0.1 * speed)]
        expected = [up - 9.81 * (run.t[-1] - fallen) for up in after]
        np.testing.assert_allclose([run.of(ball).velocity[-1, 1] for ball in balls], expected, rtol=1e-10)
    with pytest.raises(da.ModelError, match="the restitution of 'contact 2' is between 0"):
        da.simulate(m, da.CVA(), start=m.start(), h=0.01, steps=1, params={"e": 1.5})


def test_a_law_of_restitution_is_judged_at_the_speeds_that_occur():
    """One that holds for slow impacts only, of 1 mm: m/s are no measure for it. Faster ones are refused where they happen."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    ball = m.point("ball", mass=0.1, at=(0, 0.001), free=True)
    m.contact(ball, normal=(0, 1), restitution=lambda speed: 1 - 1.5 * speed)
    run = da.simulate(m, da.CVA(), start=m.start(), h=0.001, steps=20)
    speed, fallen = np.sqrt(2 * 9.81 * 0.001), np.sqrt(2 * 0.001 / 9.81)
    after = (1 - 1.5 * speed) * speed
    np.testing.assert_allclose(run.of(ball).velocity[-1, 1], after - 9.81 * (run.t[-1] - fallen), rtol=1e-10)
    with pytest.raises(da.StepFailed, match="must be between 0 and 1"):
        da.simulate(m, da.CVA(), start=m.start(positions={ball: (0, 0.05)}), h=0.001, steps=200)
