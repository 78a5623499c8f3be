"""What stops, contacts, gears, wheels and knife edges carry, read from a run, against statics and Newton's law by hand."""

import numpy as np
import pytest

import dalembert as da

G = 9.81


def lift(gravity=-G, **params):
    """A block of 0.2 kg that slides up and down."""
    m = da.Mechanism(gravity=(0, gravity), coordinates="planar", params=params)
    block = m.body("block", mass=0.2, inertia=1e-4, at=(0, 0))
    return m, block, m.prismatic(m.ground, block, axis=(0, 1))


def test_a_weight_rests_on_a_stop():
    m, _, slide = lift()
    stop = m.stop(slide, lower=0.0, upper=0.3, restitution=0.0)
    run = da.simulate(m, da.CVA(), h=0.01, steps=20)
    np.testing.assert_allclose(run.of(stop).effort, 0.2 * G, rtol=1e-12)
    np.testing.assert_allclose(run.of(stop).gap, 0.0, atol=1e-14)
    assert len(run.of(stop).contacts) == 1


def test_a_weight_is_pressed_against_its_upper_limit():
    m, _, slide = lift()
    m.motor(slide, 5.0)
    stop = m.stop(slide, upper=0.0, restitution=0.0)
    run = da.simulate(m, da.CVA(), h=0.01, steps=20)
    np.testing.assert_allclose(run.of(stop).effort, 0.2 * G - 5.0, rtol=1e-12)


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_rod_rests_on_a_stop_of_its_hinge(coordinates, turned):
    """m g l/2 about the hinge, with the sign of a motor's torque, whichever body comes first."""
    m = da.Mechanism(gravity=(0, -G), coordinates=coordinates)
    rod = m.rod("rod", (0, 0), (0.4, 0), mass=0.2, width=0.01)
    hinge = m.revolute(*((rod, m.ground) if turned else (m.ground, rod)), at=(0, 0))
    stop = m.stop(hinge, **{"upper" if turned else "lower": 0.0}, restitution=0.0)
    run = da.simulate(m, da.CVA(), h=0.01, steps=10)
    np.testing.assert_allclose(run.of(stop).effort, (-1 if turned else 1) * 0.2 * G * 0.2, rtol=1e-12)
    np.testing.assert_allclose(run.of(hinge).force, np.tile([0, 0.2 * G * (-1 if turned else 1), 0], (11, 1)), atol=1e-12)


def test_contact_lasts_until_the_last_state():
    """Whatever the number of steps, a weight that came to rest on a stop and on a rack is carried by the stop at the end."""
    m, _, slide = lift()
    pinion = m.revolute(m.ground, m.body("pinion", mass=0.1, inertia=1e-5, at=(0.02, 0)), at=(0.02, 0))
    rack = m.gear(slide, pinion, ratio=0.02)
    stop = m.stop(slide, lower=-0.1, restitution=0.1)
    for steps in range(40, 60):
        run = da.simulate(m, da.CVA(), h=0.01, steps=steps)
        rests = run.t >= run.of(stop).contacts.begin[-1]
        assert run.of(stop).contacts.end[-1] == run.t[-1]
        np.testing.assert_allclose(run.of(stop).effort[rests], 0.2 * G, rtol=1e-12)
        np.testing.assert_allclose(run.of(rack).effort[rests], 0.0, atol=1e-12)


def test_gap_and_impulse_of_a_fall_onto_one_of_two_stops():
    """gap = h - g t^2/2 and impulse m (1 + e) sqrt(2 g h), of this stop only and of all members."""
    m, block, slide = lift(e=0.5)
    stop = m.stop(slide, lower=-0.2, restitution="e")
    other = m.point("ball", mass=0.1, at=(1.0, 0.05), free=True)
    touch = m.contact(other, normal=(0, 1), restitution=0.3, name="floor")
    run = da.simulate(m, da.CVA(), h=0.005, t1=0.3)
    before = run.t < np.sqrt(2 * 0.2 / G)
    np.testing.assert_allclose(run.of(stop).gap[before], 0.2 - G * run.t[before] ** 2 / 2, atol=1e-12)
    np.testing.assert_allclose(run.of(stop).gap, 0.2 + run.of(block).position[:, 1], atol=1e-12)
    np.testing.assert_allclose(run.of(stop).impacts.impulse, [0.2 * 1.5 * np.sqrt(2 * G * 0.2)], rtol=1e-9)
    np.testing.assert_allclose(run.of(touch).impacts.impulse[0], 0.1 * 1.3 * np.sqrt(2 * G * 0.05), rtol=1e-9)
    np.testing.assert_allclose(run.of(touch).impacts.t[0], np.sqrt(2 * 0.05 / G), rtol=1e-9)
    assert np.all(run.of(stop).effort == 0)
    runs = da.simulate_many(m, da.CVA(), params={"e": [0.2, 0.9]}, h=0.005, t1=0.25)
    hits = runs.of(stop).impacts
    assert hits.member.tolist() == [0, 1] and runs.of(stop).gap.shape == (2, 51)
    np.testing.assert_allclose(hits.impulse, 0.2 * (1 + np.array([0.2, 0.9])) * np.sqrt(2 * G * 0.2), rtol=1e-9)


@pytest.mark.parametrize(("mu", "speed"), [(0.8, 0.0), (0.2, 1.0), (0.2, -1.0)])
def test_contact_on_an_incline(mu, speed):
    """A point mass sticks, where the slope is less than mu, or slides: m g cos, and m g sin or mu m g cos against slip."""
    slope = 0.4
    normal, down = np.array([np.sin(slope), np.cos(slope), 0]), np.array([np.cos(slope), -np.sin(slope), 0])
    m = da.Mechanism(gravity=(0, -G), coordinates="planar")
    point = m.point("point", mass=0.3, at=(0, 0), free=True)
    touch = m.contact(point, normal=normal[:2], restitution=0.0, friction=mu)
    run = da.simulate(m, da.CVA(), start=m.start(velocities={point: tuple(speed * down[:2])}), h=0.01, steps=10)
    read, N = run.of(touch), 0.3 * G * np.cos(slope)
    friction = -0.3 * G * np.sin(slope) * down if speed == 0 else -mu * N * np.sign(speed) * down
    np.testing.assert_allclose(read.normal, N, rtol=1e-10)
    np.testing.assert_allclose(read.friction, np.tile(friction, (11, 1)), atol=1e-10)
    np.testing.assert_allclose(read.force, np.tile(N * normal + friction, (11, 1)), atol=1e-10)
    np.testing.assert_allclose(read.contact_point, run.of(point).position, atol=1e-14)


def test_a_ball_rests_on_another():
    """The contact of two balls carries the upper one's weight, that with the floor both; forces act on the first body."""
    m = da.Mechanism(gravity=(0, 0, -G))
    upper, lower = (
        m.body(name, mass=mass, inertia=1e-4, at=(0, 0, z)) for name, mass, z in (("a", 0.1, 0.1), ("b", 0.4, 0.03))
    )
    for ball in (upper, lower):
        m.prismatic(m.ground, ball, axis=(0, 0, 1))
    both = m.contact(upper, lower, radius=0.04, other_radius=0.03, restitution=0.0)
    floor = m.contact(lower, radius=0.03, restitution=0.0)
    run = da.simulate(m, da.CVA(), h=0.01, steps=5)
    np.testing.assert_allclose(run.of(both).force, np.tile([0, 0, 0.1 * G], (6, 1)), atol=1e-12)
    np.testing.assert_allclose(run.of(floor).force, np.tile([0, 0, 0.5 * G], (6, 1)), atol=1e-12)
    np.testing.assert_allclose(run.of(both).contact_point[-1], [0, 0, 0.06], atol=1e-14)


def test_what_does_not_say_forces_is_refused():
    m, _, slide = lift()
    stop = m.stop(slide, lower=0.0, restitution=0.0, name="buffer")
    here = m.at(m.start()).of(stop)
    assert here.gap == pytest.approx([0.0]) and here.impacts is None
    with pytest.raises(da.InputError, match="where 'buffer' touches: read them from a run"):
        _ = here.effort
    run = da.simulate(m, da.MoreauJean(), h=0.01, steps=5)
    with pytest.raises(da.DalembertError, match="time stepping has impulses over whole steps"):
        _ = run.of(stop).effort
    np.testing.assert_allclose(run.of(stop).contacts.normal / 0.01, 0.2 * G, rtol=1e-12)
    runs = da.simulate_many(m, da.MoreauJean(), start=[m.start()] * 2, h=0.01, steps=5)
    assert runs.of(stop).impacts is None and runs.of(stop).contacts.member.tolist() == [0] * 5 + [1] * 5
    with pytest.raises(da.InputError, match="the stop 'buffer' has no force: it has contacts, effort, gap"):
        _ = run.of(stop).force


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
def test_torques_of_a_gear_train(coordinates):
    """A motor on the first wheel: J1 a1 = T - T1, J2 a2 = T2 with a1 = -2 a2 and T2 = -2 T1."""
    m = da.Mechanism(coordinates=coordinates)
    wheels = [m.body(f"wheel {k}", mass=0.1, inertia=J, at=(0.1 * k, 0, 0)) for k, J in enumerate((1e-4, 6e-4))]
    hinges = [m.revolute(m.ground, wheel, at=wheel.centre) for wheel in wheels]
    m.motor(hinges[0], lambda t: 0.02 * np.cos(5 * t))
    gear = m.gear(*hinges, ratio=(-20, 10))
    run = da.simulate(m, da.LobattoIIIAB(3), h=0.01, steps=20)
    T, a1 = 0.02 * np.cos(5 * run.t), 0.02 * np.cos(5 * run.t) / (1e-4 + 6e-4 / 4)
    np.testing.assert_allclose(run.of(gear).effort, 1e-4 * a1 - T, atol=1e-12)
    np.testing.assert_allclose(run.of(gear).other_effort, 6e-4 * -a1 / 2, atol=1e-12)
    assert np.abs(run.of(hinges[0]).torque).max() < 1e-15


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
@pytest.mark.parametrize("swapped", [False, True])
def test_force_of_a_rack(coordinates, swapped):
    """A pinion of 20 mm lifts a weight: the rack carries m (g + a), the pinion -r times that."""
    m = da.Mechanism(gravity=(0, -G), coordinates=coordinates)
    block, pinion = m.body("block", mass=0.2, inertia=1e-4, at=(0.02, 0)), m.body("pinion", mass=0.1, inertia=1e-5, at=(0, 0))
    slide, hinge = m.prismatic(m.ground, block, axis=(0, 1)), m.revolute(m.ground, pinion, at=(0, 0))
    m.motor(hinge, 0.06)
    rack = m.gear(hinge, slide, ratio=50.0) if swapped else m.gear(slide, hinge, ratio=0.02)
    run = da.simulate(m, da.LobattoIIIAB(3), h=0.01, steps=10)
    force, torque = run.of(rack).effort, run.of(rack).other_effort
    if swapped:
        force, torque = torque, force
    a = (0.06 / 0.02 - 0.2 * G) / (0.2 + 1e-5 / 0.02**2)
    np.testing.assert_allclose(force, 0.2 * (G + a), rtol=1e-9)
    np.testing.assert_allclose(torque, -0.2 * (G + a) * 0.02, rtol=1e-9)


def test_a_weight_hangs_on_a_rack():
    """Its pinion is held by a prescribed motion: the rack carries m g, and the drive m g r."""
    m, _, slide = lift()
    hinge = m.revolute(m.ground, m.body("pinion", mass=0.1, inertia=1e-5, at=(0.02, 0)), at=(0.02, 0))
    drive, rack = m.prescribe(hinge, lambda t: 0.0 * t), m.gear(slide, hinge, ratio=0.02)
    run = da.simulate(m, da.Rattle(), h=0.01, steps=5)
    np.testing.assert_allclose(run.of(rack).effort, 0.2 * G, rtol=1e-12)
    np.testing.assert_allclose(run.of(drive).effort, 0.2 * G * 0.02, rtol=1e-12)


def test_torque_of_a_gear_between_joints_that_share_a_body():
    """A planet on a moving arm: its torque alone accelerates the planet, and ideal wheels lose no power."""
    m = da.Mechanism(gravity=(0, -G), coordinates="planar")
    arm = m.rod("arm", (0, 0), (0.2, 0), mass=0.1)
    planet = m.body("planet", mass=0.3, inertia=5e-4, at=(0.2, 0))
    fixed, moving = m.revolute(m.ground, arm, at=(0, 0)), m.revolute(arm, planet, at=(0.2, 0))
    gear = m.gear(moving, fixed, ratio=2.5)
    run = da.simulate(m, da.LobattoIIIAB(3), h=2e-3, steps=200)
    spin = run.of(planet).angular_velocity[:, 2]
    alpha = np.gradient(spin, run.t)[1:-1]
    np.testing.assert_allclose(run.of(gear).effort[1:-1], 5e-4 * alpha, atol=1e-3 * np.abs(5e-4 * alpha).max())
    power = run.of(gear).effort * run.of(moving).rate + run.of(gear).other_effort * run.of(fixed).rate
    np.testing.assert_allclose(power, 0, atol=1e-13)


def test_force_of_a_skate_on_a_circle():
    """Driven by nothing, it turns at the rate w at the speed v: m v w towards the centre of its circle."""
    v, w = 1.5, 2.0
    m = da.Mechanism(gravity=(0, 0, 0), coordinates="planar")
    skate = m.body("skate", mass=0.4, inertia=1e-2, at=(0, 0))
    edge = m.knife_edge(skate, along=(1, 0))
    start = m.start(velocities={skate: (v, 0)}, angular_velocities={skate: (0, 0, w)})
    run = da.simulate(m, da.GaussLobattoSPARK(2), start=start, h=0.01, steps=100)
    read, angle = run.of(edge), w * run.t
    exact = 0.4 * v * w * np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    np.testing.assert_allclose(read.force, exact, atol=1e-6)
    np.testing.assert_allclose(read.velocity, v * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1), atol=1e-6)
    np.testing.assert_allclose(read.position, run.of(skate).position, atol=1e-14)


@pytest.mark.parametrize("normal", [(0.0, 0.6, 0.8), (0.0, -0.6, 0.8)])
def test_normal_force_and_friction_of_a_ball_on_a_plane(normal):
    """Down an incline: m g cos, and 2/7 of m g sin up the slope."""
    normal = np.array(normal)
    m = da.Mechanism(gravity=(0, 0, -G))
    ball = m.body("ball", mass=0.2, shape=da.mechanisms.Sphere(0.03), at=0.03 * normal)
    touch = m.ball(ball, radius=0.03, normal=normal)
    run = da.simulate(m, da.GaussLobattoSPARK(2), h=0.01, steps=10)
    weight = np.array([0, 0, -0.2 * G])
    np.testing.assert_allclose(run.of(touch).normal, 0.2 * G * 0.8, rtol=1e-10)
    along = weight - normal * (normal @ weight)
    np.testing.assert_allclose(run.of(touch).friction, np.tile(-2 / 7 * along, (11, 1)), atol=1e-10)


def test_normal_force_of_a_ball_on_the_wall_of_a_cylinder():
    """m v^2 / (R - r) towards the axis, where it begins to roll round."""
    R, r, rate = 0.06, 0.02, 12.0
    m = da.Mechanism(gravity=(0, 0, -G))
    ball = m.body("ball", mass=0.046, shape=da.mechanisms.Sphere(r), at=(R - r, 0, 0))
    rolling = m.ball(ball, radius=r, surface=lambda x, y, z: R - np.hypot(x, y) + 0 * z)
    start = m.start(velocities={ball: (0, (R - r) * rate, 0)}, angular_velocities={ball: (0, 0, -(R - r) / r * rate)})
    run = da.simulate(m, da.GaussLobattoSPARK(2), start=start, h=0.002, steps=10)
    np.testing.assert_allclose(run.of(rolling).normal, 0.046 * (R - r) * rate**2, rtol=1e-8)


def test_normal_force_of_an_upright_wheel():
    m = da.Mechanism(gravity=(0, 0, -G))
    disk = m.body("disk", mass=2.0, inertia=(0.05, 0.1, 0.05), at=(0, 0, 0.3))
    wheel = m.wheel(disk, radius=0.3, axis=(0, 1, 0))
    start = m.start(angular_velocities={disk: (0, 4.0, 0)})
    run = da.simulate(m, da.GaussLobattoSPARK(2), start=start, h=0.01, steps=10)
    np.testing.assert_allclose(run.of(wheel).normal, 2.0 * G, rtol=1e-10)
    np.testing.assert_allclose(run.of(wheel).friction, 0, atol=1e-9)
    np.testing.assert_allclose(run.of(wheel).contact_point[:, 0], 1.2 * run.t, atol=1e-10)
