"""Time stepping against exact solutions: sticking, sliding, rolling, impacts, constraints beside contact."""

import numpy as np
import pytest
from contact_models import box, rod, wheel

import dalembert as da

METHODS = [da.MoreauJean(), da.NonsmoothRattle()]
both = pytest.mark.parametrize("method", METHODS, ids=["MoreauJean", "NonsmoothRattle"])
G = 9.81


def test_it_is_rattle_where_nothing_touches():
    problem = da.problems.double_pendulum()
    free = problem.system
    far = da.Hamiltonian(
        lambda q, p, m1, m2, g: (p[:2] @ p[:2]) / (2 * m1) + (p[2:] @ p[2:]) / (2 * m2) + g * (m1 * q[1] + m2 * q[3]),
        4,
        holonomic=lambda q, l1, l2: [(q[0] ** 2 + q[1] ** 2 - l1**2) / 2, ((q[2:] - q[:2]) @ (q[2:] - q[:2]) - l2**2) / 2],
        unilateral=lambda q: 100 + q[3],
        friction=0.3,
        slip=lambda q, v: v[2],
        params={name: free.params[name] for name in ("m1", "m2", "l1", "l2", "g")},
    )
    start = {"q0": problem.q0, "p0": problem.p0, "h": 0.01, "steps": 200}
    ours, rattle = da.simulate(far, da.NonsmoothRattle(), **start), da.simulate(free, da.Rattle(), **start)
    np.testing.assert_allclose(ours.states, rattle.states, atol=2e-12)
    assert len(ours.contacts) == 0


@both
def test_a_block_on_an_incline_slides_stops_and_sticks(method):
    """Up the slope, then at rest where mu > tan(slope); else down again with g (sin - mu cos)."""
    slope, v0 = 0.4, 1.2
    up = np.array([np.cos(slope), np.sin(slope)])
    for mu, stays in ((0.5, True), (0.3, False)):
        normal = np.array([-np.sin(slope), np.cos(slope)])
        block = da.Lagrangian(
            lambda q, v: 0.1 * v @ v - 0.2 * G * q[1], 2, unilateral=lambda q, n=normal: n @ q, friction=mu, restitution=0.0
        )
        run = da.simulate(block, method, q0=[0, 0], v0=v0 * up, h=1e-3, t1=0.6)
        stop = v0 / (G * (np.sin(slope) + mu * np.cos(slope)))
        down = 0 if stays else G * (np.sin(slope) - mu * np.cos(slope))
        exact = v0 * stop / 2 - down * (0.6 - stop) ** 2 / 2
        assert run.q[-1] @ up == pytest.approx(exact, abs=2e-3 * v0 * stop)
        assert run.v[-1] @ up == pytest.approx(-down * (0.6 - stop), abs=1e-2)
        if stays:
            assert np.abs(run.v[-100:]).max() < 1e-13
        contacts = run.contacts
        assert contacts.normal.min() > 0
        assert np.all(np.abs(contacts.friction[:, 0]) <= mu * contacts.normal * (1 + 1e-12))
        weight = contacts.normal[-50:].sum() / (contacts.end[-1] - contacts.begin[-50])
        assert weight == pytest.approx(0.2 * G * np.cos(slope), rel=1e-2)


@both
def test_a_spinning_wheel_gets_up_to_speed_and_rolls(method):
    """It slides until v = R w: J = m R^2/2 makes that v = R w0/3 at t = R w0/(3 mu g), with constant forces before."""
    mu, R, w0 = 0.3, 0.05, 40.0
    run = da.simulate(wheel(mu, R=R), method, q0=[0, R, 0], v0=[0, 0, -w0], h=1e-3, t1=0.4)
    sliding = R * w0 / (3 * mu * G)
    before = run.t < sliding - 2e-3
    np.testing.assert_allclose(run.v[before, 0], mu * G * run.t[before], atol=4e-3)
    assert run.v[-1, 0] == pytest.approx(R * w0 / 3, rel=1e-10)
    assert np.abs(run.v[run.t > sliding + 2e-3] @ [1, 0, R]).max() < 1e-13
    assert np.all(run.energy[1:] - run.energy[:-1] < 1e-15)


@both
def test_a_billiard_ball_with_side_spin_runs_along_a_parabola_and_rolls(method):
    """Coriolis (1835): the sliding velocity keeps its direction, and v ends as (5 v0 + 2 R w0 x n)/7."""
    m, R, mu = 0.17, 0.0286, 0.2
    ball = da.Lagrangian(  # the angular velocity of a sphere is the rate of three coordinates without a meaning
        lambda q, v: m * v[:3] @ v[:3] / 2 + m * R**2 / 5 * v[3:] @ v[3:] - m * G * q[2],
        6,
        unilateral=lambda q: q[2] - R,
        restitution=0.0,
        friction=mu,
        slip=lambda q, v: [v[0] - R * v[4], v[1] + R * v[3]],
    )
    v0, w0 = np.array([1.0, 0.3]), np.array([-60.0, 25.0, 7.0])
    run = da.simulate(ball, method, q0=[0, 0, R, 0, 0, 0], v0=[*v0, 0, *w0], h=5e-4, t1=1.2)
    rolling = (5 * v0 + 2 * R * np.array([w0[1], -w0[0]])) / 7
    np.testing.assert_allclose(run.v[-1, :2], rolling, rtol=1e-3)
    slip0 = v0 + R * np.array([-w0[1], w0[0]])
    t = 0.5 * 2 / 7 * np.hypot(*slip0) / (mu * G)
    k = round(t / 5e-4)
    exact = v0 * run.t[k] - mu * G * run.t[k] ** 2 / 2 * slip0 / np.hypot(*slip0)
    np.testing.assert_allclose(run.q[k, :2], exact, rtol=4e-3)
    friction = np.hypot(*run.contacts.friction.T)
    assert np.all(friction <= mu * run.contacts.normal * (1 + 1e-10))


@both
def test_a_box_that_rests_on_more_corners_than_needed_sticks(method):
    """Two corners, four impulses for three coordinates: sums are determined, and are the weight; no corner pulls."""
    system, slope = box(), 0.3
    params = {"slope": slope, "mu": 0.5}
    centre = 0.05 * np.array([-np.sin(slope), np.cos(slope)])
    run = da.simulate(system, method, q0=[*centre, slope], v0=[0, 0, 0], params=params, h=1e-3, steps=300)
    assert np.abs(run.q - run.q[0]).max() < 1e-12 and len(run.contacts) == 600
    assert run.contacts.normal.sum() / run.t[-1] == pytest.approx(0.2 * G * np.cos(slope), rel=1e-12)
    assert run.contacts.friction.sum() / run.t[-1] == pytest.approx(0.2 * G * np.sin(slope), rel=1e-12)
    assert run.contacts.normal.min() >= 0


def test_a_pendulum_at_a_wall_is_the_same_with_and_without_its_constraint():
    """Cartesian coordinates with |q| = l, and its angle: friction and impacts of the bob on a sloping wall."""
    wall = np.array([np.cos(0.2), np.sin(0.2)])
    cartesian = da.Lagrangian(
        lambda q, v: v @ v / 2 - G * q[1], 2, holonomic=lambda q: q @ q - 1, unilateral=lambda q: wall @ q,
        restitution=0.6, friction=0.3,
    )  # fmt: skip
    tangent = np.array([wall[1], -wall[0]])
    angle = da.Lagrangian(
        lambda q, v: v[0] ** 2 / 2 + G * np.cos(q[0]), 1,
        unilateral=lambda q: wall[0] * np.sin(q[0]) - wall[1] * np.cos(q[0]),
        slip=lambda q, v: (tangent[0] * np.cos(q[0]) + tangent[1] * np.sin(q[0])) * v[0],
        restitution=0.6, friction=0.3,
    )  # fmt: skip
    a0, errors = 1.0, []
    for h in (1e-3, 2.5e-4):
        options = {"h": h, "t1": 2.5}
        one = da.simulate(cartesian, da.NonsmoothRattle(), q0=[np.sin(a0), -np.cos(a0)], v0=[0, 0], **options)
        other = da.simulate(angle, da.NonsmoothRattle(), q0=[a0], v0=[0.0], **options)
        errors.append(np.abs(one.q - np.column_stack([np.sin(other.q), -np.cos(other.q)])).max())
        assert np.abs(one.residuals["g"]).max() < 1e-14 and np.abs(one.residuals["g_dot"]).max() < 1e-13
        assert (one.q @ wall).min() > -1e-12
    assert errors[1] < errors[0] / 2 and errors[1] < 5e-3


@both
def test_a_sleigh_bounces_off_a_wall_on_its_edge(method):
    """Nonholonomic constraint and wall together: no velocity across the edge at any time, energy falls at impacts only."""
    sleigh = da.Lagrangian(
        lambda q, v: 0.2 * (v[0] ** 2 + v[1] ** 2) / 2 + 1e-3 * v[2] ** 2 / 2,
        3,
        nonholonomic=lambda q, v: -np.sin(q[2]) * v[0] + np.cos(q[2]) * v[1],
        unilateral=lambda q: 1.0 - q[0] - 0.1 * np.cos(q[2]),
        friction=0.2,
        slip=lambda q, v: v[1] + 0.1 * np.cos(q[2]) * v[2],
        restitution=0.5,
    )
    run = da.simulate(sleigh, method, q0=[0, 0, 0.3], v0=[np.cos(0.3), np.sin(0.3), 0.4], h=1e-3, t1=3.0)
    assert np.abs(run.residuals["k"]).max() < 1e-13
    assert len(run.contacts) > 0
    touching = np.isin(np.round(run.t[1:], 9), np.round(run.contacts.end, 9))
    assert np.diff(run.energy)[touching].max() < 1e-8
    assert run.energy[-1] < 0.9 * run.energy[0]


@both
def test_a_bouncing_ball_comes_to_rest_at_its_zeno_time(method):
    e, height = 0.5, 0.8
    ball = da.Lagrangian(lambda q, v: 0.1 * v[0] ** 2 - 0.2 * G * q[0], 1, unilateral=lambda q: q[0], restitution=e)
    zeno = np.sqrt(2 * height / G) * (1 + e) / (1 - e)
    run = da.simulate(ball, method, q0=[height], v0=[0.0], h=1e-4, steps=18_000)
    moving = np.abs(run.v[:, 0]) > 1e-9
    assert run.t[moving][-1] == pytest.approx(zeno, abs=1e-2)
    assert run.contacts.normal[-100:].sum() / (run.contacts.end[-1] - run.contacts.begin[-100]) == pytest.approx(
        0.2 * G, rel=2e-2
    )


@both
def test_restitution_is_whole_where_walls_and_belts_do_work(method):
    """Elastic impacts on a paddle, steady and accelerated, on a belt, and on a ceiling, which gravity pulls away from."""
    paddle = da.Lagrangian(lambda q, v: 0.1 * v[0] ** 2, 1, unilateral=lambda t, q: q[0] - t, restitution=1.0)
    run = da.simulate(paddle, method, q0=[0.105], v0=[0.0], h=0.01, steps=50)
    assert run.v[-1, 0] == pytest.approx(2.0, rel=1e-12) and run.stats["damped_impacts"] == 0
    # q = 0.1 is met at t = sqrt(0.1) at the speed 2 t, and flung off at twice that
    faster = da.Lagrangian(lambda q, v: 0.1 * v[0] ** 2, 1, unilateral=lambda t, q: q[0] - t**2, restitution=1.0)
    run = da.simulate(faster, method, q0=[0.1], v0=[0.0], h=1e-3, steps=400)
    assert run.v[-1, 0] == pytest.approx(4 * np.sqrt(0.1), abs=5e-3) and run.stats["damped_impacts"] == 0
    ceiling = da.Lagrangian(lambda q, v: 0.1 * v[0] ** 2 - 0.2 * G * q[0], 1, unilateral=lambda q: 1 - q[0], restitution=1.0)
    run = da.simulate(ceiling, method, q0=[0.0], v0=[6.0], h=1e-3, steps=300)
    assert run.energy[-1] == pytest.approx(run.energy[0], abs=0.2 * G * 7e-3) and run.stats["damped_impacts"] == 0


@both
@pytest.mark.parametrize("belt", ["slip", "parameter", "time"])
def test_a_ball_bounces_on_a_belt_as_high_as_it_fell(method, belt):
    """Friction pulls it along, mu (1 + e) of each approach, until it moves with the belt; its height is not concerned."""
    slips = {"slip": lambda v: [v[0] - 2], "parameter": lambda v, u: [v[0] - u], "time": lambda t, v: [v[0] - 2 - 1e-9 * t]}
    ball = da.Lagrangian(
        lambda q, v: 0.1 * v @ v - 0.2 * G * q[1], 2, unilateral=lambda q: q[1], restitution=1.0, friction=0.1,
        slip=slips[belt], params={"u": 2.0},
    )  # fmt: skip
    run = da.simulate(ball, method, q0=[0, 1.0], v0=[0, 0], h=1e-3, t1=1.4)
    assert run.q[run.t > 0.5, 1].max() == pytest.approx(1.0, abs=1e-2)  # as far as it gets in a step at the impact
    assert run.v[run.t < 1.0][-1, 0] == pytest.approx(0.1 * 2 * np.sqrt(2 * G), rel=5e-3)
    assert run.contacts.slip[0, 0] == pytest.approx(0.1 * 2 * np.sqrt(2 * G) - 2, rel=5e-3)


def test_sliding_on_a_curved_wall_is_of_order_two():
    """A bead in a parabola y = x^2 with friction, against its equation of motion in x."""
    from scipy.integrate import solve_ivp

    mu = 0.2
    bead = da.Lagrangian(
        lambda q, v: v @ v / 2 - G * q[1], 2, unilateral=lambda q: q[1] - q[0] ** 2, friction=mu, restitution=0.0
    )

    def rate(t, x):
        s = np.sqrt(1 + 4 * x[0] ** 2)
        normal = (G + 2 * x[1] ** 2) / s  # per mass: curvature of the path, 2 v^2 / s, and weight, G / s
        return [x[1], (-2 * x[0] * (G + 2 * x[1] ** 2) - mu * np.sign(x[1]) * normal * s) / s**2]

    end = solve_ivp(rate, (0, 0.4), [-1.0, 1.0], rtol=1e-12, atol=1e-12).y[:, -1]
    errors = []
    for steps in (50, 100, 200):
        run = da.simulate(bead, da.NonsmoothRattle(), q0=[-1, 1], v0=[1.0, -2.0], h=0.4 / steps, steps=steps)
        errors.append(np.hypot(run.q[-1, 0] - end[0], run.v[-1, 0] - end[1]))
        assert np.abs(run.q[:, 1] - run.q[:, 0] ** 2).max() < 1e-13
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(slopes - 2) < 0.2), (errors, slopes)


def test_painleve_stops_or_takes_the_impact_without_collision():
    """At tan(angle) = 2 the paradox needs mu > 4/3; the impact that stops the tip, 30 m/s, has P_N = 9 and P_F = 12."""
    angle, s = np.arctan(2), 1.0
    start = {"q0": [0, s * np.sin(angle), angle], "v0": [-30, 0, 0], "h": 1e-5, "steps": 3}
    for method in METHODS:
        assert da.simulate(rod(1.3), method, **start).status == "done"
        with pytest.raises(da.StepFailed, match="Painleve"):
            da.simulate(rod(5 / 3), method, **start)
        run = da.simulate(rod(5 / 3), type(method)(painleve="impact"), **start)
        assert run.contacts.normal[0] == pytest.approx(9, rel=1e-3)
        assert run.contacts.friction[0, 0] == pytest.approx(12, rel=1e-3)
        reverse = da.simulate(rod(5 / 3), method, **start | {"v0": [30, 0, 0]})
        assert reverse.status == "done"


def test_a_contact_that_is_far_above_the_ground_has_no_paradox():
    """The same rod thrown level, far above the ground as against its own size, falls as any body does."""
    angle, h = np.arctan(2), 1e-3
    start = {"q0": [0, 3.0, angle], "v0": [-30, 0, 0], "h": h, "steps": 100}
    for method in METHODS:
        run = da.simulate(rod(5 / 3), method, **start)
        assert np.allclose(run.q[-1], [-3.0, 3.0 - 10 * 0.1**2 / 2, angle], rtol=0, atol=2 * 10 * h * 0.1)
        assert len(run.contacts) == 0


@both
def test_a_force_that_is_left_undefined_stops_the_run(method):
    """H has a value everywhere, and the force none for q < 0."""
    system = da.Lagrangian(
        lambda q, v: v @ v / 2 - q[1], dim=2, force=lambda q, v: [-1e-3 * np.sqrt(q[0]), 0], unilateral=lambda q: [q[1]]
    )
    run = da.simulate(system, method, q0=[0.5, 100], v0=[-1, 0], h=0.03, steps=40, on_failure="return")
    assert run.status == "failed" and len(run.t) < 20
    assert np.all(np.isfinite(run.states))
