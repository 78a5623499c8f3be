"""Where impacts accumulate, the motion goes on in contact, and leaves the wall where it would have to pull."""

import numpy as np
import pytest
from impact_models import PAPER, ball, free_particle
from scipy.integrate import quad, solve_ivp

import dalembert as da


@pytest.mark.parametrize("method", PAPER.values(), ids=PAPER)
def test_a_bouncing_ball_comes_to_rest_when_its_impacts_accumulate(method):
    run = da.simulate(ball(g=9.81, restitution=0.8), method, q0=[1.0], v0=[0.0], h=0.01, steps=600)
    fall = np.sqrt(2 / 9.81)
    assert np.allclose(run.contacts.begin, [fall * (1 + 2 * 0.8 / (1 - 0.8))], atol=1e-9)
    assert np.allclose(run.contacts.end, [6.0])
    resting = run.t > run.contacts.begin[0]
    assert np.abs(run.states[resting]).max() < 1e-14
    assert len(run.impacts) > 50


@pytest.mark.parametrize("method", PAPER.values(), ids=PAPER)
def test_a_plastic_impact_ends_in_contact_at_once_and_so_does_a_start_at_rest(method):
    run = da.simulate(ball(restitution=0.0), method, q0=[1.0], v0=[0.0], h=0.01, steps=300)
    assert np.allclose(run.impacts.t, np.sqrt(2))
    assert np.allclose(run.contacts.begin, run.impacts.t)
    assert np.allclose(run.impacts.p_after, 0.0, atol=1e-15)
    rest = da.simulate(ball(), method, q0=[0.0], v0=[0.0], h=0.01, steps=300)
    assert len(rest.impacts) == 0
    assert np.array_equal(rest.contacts.begin, [0.0])
    assert np.array_equal(rest.states, np.zeros((301, 2)))


def test_a_particle_leaves_a_round_hill_where_the_contact_force_vanishes():
    hill = da.Lagrangian(lambda q, v: v @ v / 2 - q[1], dim=2, unilateral=lambda q: np.hypot(q[0], q[1]) - 1)
    angle, speed = 0.3, 0.5
    start = {"q0": [np.sin(angle), np.cos(angle)], "v0": [speed * np.cos(angle), -speed * np.sin(angle)]}
    # energy, and v^2 = cos(angle) where gravity alone keeps the particle on the circle
    height = (speed**2 / 2 + np.cos(angle)) / 1.5
    # the exact flight from the exact point of departure, whose time is a quadrature: angle' = sqrt(2 (E - cos(angle)))
    energy, off = speed**2 / 2 + np.cos(angle), np.arccos(height)
    left = quad(lambda x: 1 / np.sqrt(2 * (energy - np.cos(x))), angle, off, epsabs=1e-14)[0]
    flight, v = 1.6 - left, np.sqrt(height)
    exact = np.array([np.sin(off) + v * height * flight, height - v * np.sin(off) * flight - flight**2 / 2])
    for base, order, last in (("SVC", 2, 1e-6), (da.LobattoIIIAB(stages=3), 4, 1e-11), (da.Gauss(stages=3), 6, 1e-14)):
        sizes, errors, times = 0.04 / 2 ** np.arange(4), [], []
        for h in sizes:
            run = da.simulate(hill, da.CVA(base), h=h, t1=1.6, **start)
            errors.append(np.abs(run.q[-1] - exact).max())
            radius, end = np.hypot(*run.q.T), run.contacts.end[0]
            times.append(abs(end - left))
            assert len(run.contacts) == 1 and len(run.impacts) == 0
            assert np.abs(radius[run.t <= end] - 1).max() < 1e-14 and radius.min() > 1 - 1e-12
        assert times[-1] < last  # the departure is located: its error is that of the motion
        assert times[-1] < 1e-13 or abs(np.polyfit(np.log(sizes), np.log(times), 1)[0] - order) < 0.2
        assert errors[-1] < 1e-12 or abs(np.polyfit(np.log(sizes), np.log(errors), 1)[0] - order) < 0.3


def test_a_ball_on_a_fast_table_is_held_and_thrown_again_in_every_period():
    table = da.Lagrangian(
        lambda q, v: v @ v / 2 - 9.81 * q[0],
        dim=1,
        unilateral=lambda t, q: q[0] - 0.1 * np.sin(12 * t),
        restitution=0.3,
    )
    run = da.simulate(table, da.CVA(), q0=[0.5], v0=[0.0], h=0.002, t1=4.0)
    assert (run.q[:, 0] - 0.1 * np.sin(12 * run.t)).min() > -1e-14
    # it leaves where the table falls away faster than g: 14.4 sin(12 t) = 9.81
    leaves = (np.arcsin(9.81 / 14.4) + 2 * np.pi * np.arange(10)) / 12
    ends = run.contacts.end[:-1]
    assert len(run.contacts) >= 6
    assert all(np.abs(leaves - end).min() <= 1e-13 for end in ends)


@pytest.mark.parametrize("method", [da.CVA(), da.VCI(), da.MCVA()], ids=str)
def test_a_particle_comes_to_rest_between_two_walls(method):
    groove = da.Lagrangian(
        lambda q, v: v @ v / 2 - 9.81 * q[1],
        dim=2,
        unilateral=lambda q: [q[1] - 0.5 * q[0], q[1] + 0.8 * q[0]],
        restitution=0.5,
    )
    run = da.simulate(groove, method, q0=[0.3, 1.0], v0=[0.2, 0.0], h=0.01, t1=4.0)
    assert set(run.contacts.which) == {0, 1}
    assert np.abs(run.states[-1]).max() < 1e-14
    assert np.all(np.diff(run.energy) < 1e-4)


def test_a_particle_slides_along_one_wall_and_bounces_off_another():
    room = da.Lagrangian(
        lambda q, v: v @ v / 2 - 9.81 * q[1] + 2 * q[0],
        dim=2,
        unilateral=lambda q: [q[1], 1 - q[0]],
        restitution=[0.0, 0.5],
    )
    run = da.simulate(room, da.CVA(), q0=[0.0, 0.0], v0=[0.0, 0.0], h=0.01, t1=2.6)
    assert np.allclose(run.impacts.t, [1.0, 2.0, 2.5])  # falls sideways with 2, bounces back with half the speed
    assert np.all(run.impacts.which == 1)
    assert list(run.contacts.which) == [0]
    assert np.abs(run.q[:, 1]).max() < 1e-15


def test_contacts_are_saved_and_loaded_with_the_run(tmp_path):
    run = da.simulate(ball(restitution=0.0), da.CVA(), q0=[1.0], v0=[0.0], h=0.01, steps=300, save_every=7)
    loaded = da.load(run.save(tmp_path / "run"))
    assert len(loaded.contacts) == 1
    assert loaded.contacts.begin[0] == run.contacts.begin[0]
    assert np.allclose(run.t, np.append(np.arange(0, 300, 7), 300) * 0.01)
    free = da.simulate(free_particle(lambda q: q[0]), da.CVA(), q0=[1.0, 0.0], v0=[1.0, 0.0], h=0.01, steps=30)
    assert len(free.contacts) == 0


# the order in contact: of the base, and of projected Gauss methods with s stages s (Jay 1996, section 5)
BASES = [
    ("SVC", 2), ("SVA", 2), ("midpoint", 2), (da.LobattoIIIAB(stages=2), 2), (da.LobattoIIIAB(stages=3), 4),
    (da.LobattoGalerkin(stages=3), 4), (da.RadauIIA(stages=2), 3), (da.RadauIIA(stages=2, projected=True), 3),
    *((da.Gauss(stages=s), 2 * s) for s in (1, 2, 3, 4)), *((da.Gauss(stages=s, projected=True), s) for s in (1, 2, 3, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("base", "order"), BASES, ids=str)
def test_every_base_stays_on_the_wall_that_it_touches_and_keeps_its_order(base, order):
    bowl = da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[1], dim=2, unilateral=lambda q: q[1] - q[0] ** 2, restitution=0.0)
    # from the plastic impact after the fall through 0.2 on, x'' = -2 x (2 x'^2 + g) / (1 + 4 x^2) on y = x^2
    fall, slide = np.sqrt(0.4 / 9.81), lambda t, x: [x[1], -2 * x[0] * (2 * x[1] ** 2 + 9.81) / (1 + 4 * x[0] ** 2)]
    after = [1.0, -2 * 9.81 * fall / 5]
    exact = solve_ivp(slide, (fall, 1.5), after, rtol=1e-13, atol=1e-13, method="DOP853").y[0, -1]
    sizes, errors = 0.02 / 2 ** np.arange(4), []
    for h in sizes:
        run = da.simulate(bowl, da.CVA(base), q0=[1.0, 1.2], v0=[0.0, 0.0], h=h, t1=1.5)
        held = run.t >= run.contacts.begin[0]
        assert len(run.contacts) == 1 and np.isclose(run.contacts.end[0], 1.5)
        assert np.abs(run.q[held, 1] - run.q[held, 0] ** 2).max() < 1e-14
        assert np.abs(run.v[held, 1] - 2 * run.q[held, 0] * run.v[held, 0]).max() < 1e-12
        errors.append(abs(run.q[-1, 0] - exact))
    assert errors[-1] < 1e-11 or np.polyfit(np.log(sizes), np.log(errors), 1)[0] > order - 0.3


def test_one_of_two_walls_is_left_while_the_other_is_held():
    def corner(force, walls=lambda q: [q[1], q[0]]):
        return da.Lagrangian(
            lambda t, q, v: v @ v / 2 - 9.81 * q[1] + force(t) * q[0], dim=2, unilateral=walls, restitution=0.5
        )

    at_rest = {"q0": [0.0, 0.0], "v0": [0.0, 0.0]}
    pushed = da.simulate(corner(lambda t: 2.0), da.CVA(), h=0.05, t1=1.0, **at_rest)
    assert np.allclose(pushed.q[-1], [1.0, 0.0], atol=1e-14) and list(pushed.contacts.which) == [0]
    sizes, errors = np.array([0.1, 0.05, 0.03125, 0.0125]), []
    for h in sizes:
        run = da.simulate(corner(lambda t: -2 * (1 - t)), da.CVA(), h=h, t1=2.0, **at_rest)
        errors.append(abs(run.q[-1, 0] - 1 / 3))  # x'' = 2 (t - 1) from t = 1 on
        ends = dict(zip(run.contacts.which.tolist(), run.contacts.end, strict=True))
        assert ends.keys() == {0, 1} and ends[0] == 2.0 and abs(ends[1] - 1) < 1e-14
        assert np.abs(run.q[:, 1]).max() < 1e-15 and len(run.impacts) == 0
        # nothing follows a wall that moves away
        run = da.simulate(corner(lambda t: 0.0, lambda t, q: [q[1], q[0] + t**3]), da.CVA(), h=h, t1=2.0, **at_rest)
        assert list(run.contacts.which) == [0] and len(run.impacts) == 0 and np.abs(run.q).max() < 1e-15
    assert 1.8 < np.polyfit(np.log(sizes), np.log(errors), 1)[0] < 2.2


@pytest.mark.parametrize("h", [0.01, 0.013])
@pytest.mark.parametrize("x", [0.0, 1.0])
def test_the_floor_does_not_pull_where_a_ramp_is_hit(x, h):
    ramp = da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[1], dim=2, unilateral=lambda q: [q[1], q[1] - q[0] + 1])
    run = da.simulate(ramp, da.CVA(), q0=[x, 0.0], v0=[2.0, 0.0], h=h, steps=int(0.8 / h))
    hit = (1 - x) / 2
    assert np.isclose(run.impacts.t[0], hit) and run.impacts.which[0] == 1
    assert np.allclose(run.impacts.p_after[0], [0.0, 2.0], atol=1e-13)  # mirrored by 45 degrees
    high = (run.t > hit) & (run.t < hit + 4 / 9.81)
    time = run.t[high] - hit
    assert np.allclose(run.q[high], np.column_stack([np.ones_like(time), 2 * time - 9.81 / 2 * time**2]), atol=1e-12)


def test_a_floor_that_is_pressed_in_an_impact_has_a_row_of_its_own():
    # an overhang of 45 degrees pushes the particle down: along the floor (2, 0) becomes (-2, 0), and the floor gives 4
    room = da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[1], dim=2, unilateral=lambda q: [q[1], 1 - q[0] - q[1]])
    run = da.simulate(room, da.CVA(), q0=[0.0, 0.0], v0=[2.0, 0.0], h=0.013, steps=60)
    assert np.allclose(run.impacts.t, 0.5) and list(run.impacts.which) == [1, 0]
    assert np.allclose(run.impacts.impulse, 4.0) and np.allclose(run.impacts.p_after, [[-2.0, -4.0], [-2.0, 0.0]])
    assert np.array_equal(run.impacts.p_before[1], run.impacts.p_after[0])
    assert np.allclose(run.impacts.energy_after, [10.0, 2.0]) and list(run.contacts.which) == [0]


@pytest.mark.parametrize("unit", [1e12, 1.0, 1e-12, 1e-14])
def test_what_touches_does_not_depend_on_units(unit):
    corner = da.Lagrangian(
        lambda q, v: v @ v / 2 - 9.81 * unit * q[1], dim=2, unilateral=lambda q: [q[1], q[0]], restitution=[0.0, 1.0]
    )
    run = da.simulate(corner, da.CVA(), q0=[0.0, 0.0], v0=[-0.5 * unit, -0.5 * unit], h=0.01, t1=1.0)
    assert np.allclose(run.q[-1] / unit, [0.5, 0.0], atol=1e-13)
    assert list(run.contacts.which) == [0]


@pytest.mark.parametrize(("e", "h"), [(0.4, 1e-3), (0.7, 1e-3), (0.2, 1e-4)])
def test_a_pinned_lever_comes_to_rest_as_it_does_in_its_angle_alone(e, h):
    """Near the end bounces are as small as rounding errors of phi, and momenta as those of positions that the pin allows."""
    length, angle, floor, mass = 0.3, 0.5, -0.02, 0.4
    m, tip = da.Mechanism(gravity=(0, -9.81), coordinates="planar"), (length * np.cos(angle), length * np.sin(angle))
    arm = m.rod("arm", (0, 0), tip, mass=mass)
    m.revolute(m.ground, arm, at=(0, 0))
    m.contact(arm, at=tip, origin=(0, floor), normal=(0, 1), restitution=e)
    t1 = 1.5 if e == 0.7 else 0.6
    run = da.simulate(m, da.CVA(), h=h, t1=t1)
    alone = da.Lagrangian(
        lambda q, v: mass * length**2 * v[0] ** 2 / 6 - mass * 9.81 * length / 2 * np.sin(q[0]), 1,
        unilateral=lambda q: length * np.sin(q[0]) - floor, restitution=e,
    )  # fmt: skip
    expected = da.simulate(alone, da.CVA(base=da.Gauss(stages=2)), q0=[angle], v0=[0.0], h=1e-3, t1=t1)
    assert len(run.contacts) == len(expected.contacts) == 1
    np.testing.assert_allclose(run.contacts.begin, expected.contacts.begin, atol=2e2 * h**2)
    assert run.contacts.end[0] == pytest.approx(t1) and np.abs(run.v[-1]).max() < 1e-12
    assert np.all(np.diff(np.abs(run.impacts.impulse)) < 0)  # every bounce is smaller than the one before


@pytest.mark.parametrize(
    ("h", "v"), [(0.017662025763908813, 1.84681198), (0.0178, 1.842857142857143), (0.0178, 1.8485714285714288)]
)
def test_a_point_that_changes_sides_in_a_wedge_comes_to_rest_at_its_bottom(h, v):
    """It arrives there with positions that are rounded as those far up are, and then moves slowly."""
    a, b = 0.4194050570912454, 0.8280137157642123
    wedge = da.Lagrangian(
        lambda q, v: v @ v / 2 - 9.81 * q[1], dim=2, restitution=0.0,
        unilateral=lambda q: [q[1] * np.cos(a) + q[0] * np.sin(a), q[1] * np.cos(b) - q[0] * np.sin(b)],
    )  # fmt: skip
    run = da.simulate(wedge, da.CVA(), q0=[0.11463131, 0.51296735], v0=[v, 0.13450529], h=h, steps=int(2.5 / h))
    assert np.abs(run.states[-1]).max() < 1e-15
    slowed = np.cos(a + b) ** 2  # a plastic impact keeps the velocity along the other side
    along = run.impacts.p_before[1:4], run.impacts.p_after[1:4]
    kept = [np.sum(after**2) / np.sum(before**2) for before, after in zip(*along, strict=True)]
    np.testing.assert_allclose(kept, slowed, rtol=1e-12)


def test_a_point_pinched_between_rough_walls_stays_where_the_moving_one_has_pushed_it():
    """Contact begins so near to the other wall that positions off the first one by round-off are as far as the way to it."""
    a, b, c, w = 0.987291760704499, 0.49391530100493997, 0.03224128209655504, 4.265326547099636

    def walls(t, q):
        return [q[1] * np.cos(a) + q[0] * np.sin(a) - c * np.sin(w * t), q[1] * np.cos(b) - q[0] * np.sin(b)]

    wedge = da.Lagrangian(
        lambda q, v: 0.2 * (v @ v / 2 - 9.81 * q[1]), dim=2, unilateral=walls, restitution=0.7, friction=1.0,
        slip=lambda q, v: [v[0] * np.cos(a) - v[1] * np.sin(a), v[0] * np.cos(b) + v[1] * np.sin(b)],
    )  # fmt: skip
    start = {"q0": [0.37426858360317994, 0.48939242457715776], "v0": [0.17688957421957544, -0.016590539385059038]}
    run = da.simulate(wedge, da.CVA(), **start, h=0.016779034752892916, steps=119)
    top = np.linalg.solve([[np.sin(a), np.cos(a)], [-np.sin(b), np.cos(b)]], [c, 0.0])
    np.testing.assert_allclose(run.q[-1], top, rtol=0, atol=1e-15)  # tan(b) < 1: it sticks to the wall at rest
    assert np.abs(run.v[-1]).max() < 1e-15
