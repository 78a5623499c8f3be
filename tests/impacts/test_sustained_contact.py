"""Where impacts accumulate, the motion goes on in contact, and leaves the wall where it would have to pull."""

import numpy as np
import pytest
from impact_models import PAPER, ball, free_particle

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
    ends = []
    for h in (0.02, 0.01, 0.005, 0.0025):
        run = da.simulate(hill, da.CVA(), h=h, t1=1.6, **start)
        ends.append(run.q[-1])
        radius = np.hypot(*run.q.T)
        left = run.contacts.end[0]
        before, after = run.q[run.t <= left - 0.5 * h], run.q[run.t > left + 0.5 * h]
        assert len(run.contacts) == 1
        assert np.abs(radius[run.t <= left] - 1).max() < 1e-14
        assert before[-1, 1] >= height - 1e-3 * h > after[0, 1]
        assert np.ptp(run.energy) < 0.05 * h**2
    # the exact flight from the exact point of departure
    assert np.abs(np.array(ends[:-1]) - ends[-1]).max(axis=1)[-1] < 1e-5


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
    assert all(np.abs(leaves - end).min() <= 0.002 for end in ends)


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
