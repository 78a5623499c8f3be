"""da.Spheres: against collisions known exactly, against the same contacts stated one by one, and piles that come to rest."""

import warnings

import numpy as np
import pytest

import dalembert as da
from dalembert.runs import _stored_run
from dalembert.time_stepping import _sphere_driver
from dalembert.time_stepping._sphere_run import SphereRun

G = 9.81


def test_an_oblique_elastic_collision_is_exact():
    m, R = np.array([0.2, 0.5]), 0.05
    n = np.array([np.cos(0.3), np.sin(0.3)])
    x, v = np.array([[0.0, 0.0], [0.3, 0.0]]), np.array([[1.0, 0.2], [-0.5, 0.1]])
    x[1] = x[0] + 2 * R * n - 0.05 * (v[1] - v[0])  # they touch at t = 0.05
    discs = da.Spheres([R, R], masses=m, restitution=1.0)
    flat = [np.column_stack([part, np.zeros(2)]).ravel() for part in (x, v)]
    run = da.simulate(discs, da.MoreauJean(), q0=flat[0], v0=flat[1], h=1e-4, steps=1500)
    impulse = -2 * (n @ (v[1] - v[0])) / (1 / m).sum()
    expected = v + np.outer([-1, 1] / m, n) * impulse
    np.testing.assert_allclose(run.v[-1].reshape(2, 3)[:, :2], expected, atol=2e-3)
    assert run.energy[-1] == pytest.approx(run.energy[0], rel=1e-14)


def test_a_ball_rolls_as_coriolis_found():
    """v ends as (5 v0 + 2 R w0 x n)/7."""
    R, v0, w0 = 0.0286, np.array([1.0, 0.3]), np.array([-60.0, 25.0, 7.0])
    ball = da.Spheres([R], masses=[0.17], space=3, gravity=(0, 0, -G), planes=[((0, 0, 1), 0.0)], friction=0.2)
    run = da.simulate(ball, da.MoreauJean(), q0=[0, 0, R, 0, 0, 0], v0=[*v0, 0, *w0], h=5e-4, t1=1.2)
    np.testing.assert_allclose(run.v[-1, :2], (5 * v0 + 2 * R * np.array([w0[1], -w0[0]])) / 7, rtol=1e-3)


def test_contacts_that_are_found_act_like_contacts_that_are_stated():
    """Three discs of unequal size that fall onto each other and the ground, against unilateral= and slip= of each pair."""
    R, m, mu = np.array([0.01, 0.012, 0.009]), np.array([0.2, 0.3, 0.15]), 0.4
    pairs = [(0, 1), (0, 2), (1, 2)]

    def gaps(q):
        x = [q[3 * k : 3 * k + 2] for k in range(3)]
        ground = [x[k][1] - R[k] for k in range(3)]
        return ground + [np.sqrt((x[b] - x[a]) @ (x[b] - x[a])) - R[a] - R[b] for a, b in pairs]

    def slip(q, v):
        rows = [v[3 * k] + R[k] * v[3 * k + 2] for k in range(3)]
        for a, b in pairs:
            n = q[3 * b : 3 * b + 2] - q[3 * a : 3 * a + 2]
            n = n / np.sqrt(n @ n)
            u = v[3 * b : 3 * b + 2] - v[3 * a : 3 * a + 2]
            rows.append(-n[1] * u[0] + n[0] * u[1] - R[a] * v[3 * a + 2] - R[b] * v[3 * b + 2])
        return rows

    inertia = np.ravel([[mass, mass, mass * r**2 / 2] for mass, r in zip(m, R, strict=True)])
    weights = np.ravel([[0, mass * G, 0] for mass in m])
    stated = da.Lagrangian(
        lambda q, v: (inertia * v) @ v / 2 - weights @ q, 9, unilateral=gaps, slip=slip, friction=mu, restitution=0.3
    )
    found = da.Spheres(R, masses=m, gravity=(0, -G), planes=[((0, 1), 0.0)], friction=mu, restitution=0.3)
    start = {"q0": [-0.012, 0.0101, 0, 0.0115, 0.0125, 0, 0.001, 0.032, 0], "v0": [0, 0, 3.0, 0, 0, 0, 0.05, 0, -2.0]}
    one, other = (da.simulate(system, da.MoreauJean(), h=2e-4, steps=1000, **start) for system in (stated, found))
    assert len(one.contacts) > 200
    np.testing.assert_allclose(other.q, one.q, atol=1e-8)
    np.testing.assert_allclose(other.v, one.v, atol=1e-5)


def pile(count, h, steps):
    """Discs that were let fall into a box: the system, the run, and what its last contacts carry, in units of the weight."""
    rng, size = np.random.default_rng(0), 0.01
    columns = round(np.sqrt(count))
    width, radii = 0.025 * columns, size * rng.uniform(0.8, 1.2, count)
    x = np.array([(0.025 * (k % columns + 0.5), 0.02 + 0.025 * (k // columns)) for k in range(count)])
    x += rng.uniform(-5e-4, 5e-4, x.shape)
    planes = [((0, 1), 0.0), ((1, 0), 0.0), ((-1, 0), -width)]
    system = da.Spheres(radii, masses=31.4 * radii**2, gravity=(0, -G), planes=planes, friction=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", da.errors.ContactWarning)
        q0 = np.column_stack([x, np.zeros(count)]).ravel()
        run = da.simulate(system, da.MoreauJean(), q0=q0, v0=np.zeros(3 * count), h=h, steps=steps, save_every=steps // 20)
    contacts = run.contacts
    last = contacts.end > run.t[-1] - h / 2
    floor, sides = contacts.other == -1, contacts.other < -1
    carried = contacts.normal[last & floor].sum() + contacts.friction[last & sides, 1].sum()
    return system, run, carried / (h * system.masses.sum() * G)


def check_pile(system, run, carried):
    count, R = len(system.radii), system.radii
    speeds, contacts = np.abs(run.v[-1].reshape(count, 3)), run.contacts
    moving = np.flatnonzero(np.linalg.norm(speeds[:, :2], axis=1) > 1e-5)
    assert len(moving) <= count / 100
    last = contacts.end == contacts.end.max()
    for disc in moving:  # nothing stops what rolls on the floor and touches nothing else
        others = [contacts.other[last & (contacts.which == disc)], contacts.which[last & (contacts.other == disc)]]
        assert list(np.concatenate(others)) == [-1]
        np.testing.assert_allclose(speeds[disc], [R[disc] * speeds[disc, 2], 0, speeds[disc, 2]], rtol=1e-6, atol=1e-9)
    assert np.abs(run.energy[-1] - run.energy[-3]) < 1e-9 * run.energy[0]
    assert carried == pytest.approx(1, rel=1e-4)
    x = run.q[-1].reshape(count, 3)[:, :2]
    gaps = np.linalg.norm(x[:, None] - x[None], axis=2) - R[:, None] - R[None]
    np.fill_diagonal(gaps, 1.0)
    assert gaps.min() > -0.1 * R.min() and (x[:, 1] - R).min() > -0.1 * R.min()
    assert contacts.normal.min() > 0
    assert np.all(np.linalg.norm(contacts.friction, axis=1) <= 0.5 * contacts.normal * (1 + 1e-9))
    assert np.diff(run.energy).max() < 1e-9 * run.energy[0]


def test_a_pile_of_forty_discs_comes_to_rest():
    check_pile(*pile(40, 5e-4, 2000))


@pytest.mark.slow
def test_a_pile_of_five_hundred_discs_comes_to_rest():
    check_pile(*pile(500, 5e-4, 5000))


def test_what_makes_no_sense_is_refused():
    with pytest.raises(da.ModelError, match="radii"):
        da.Spheres([0.1, -1], masses=[1, 1])
    with pytest.raises(da.ModelError, match="one of each"):
        da.Spheres([0.1, 0.1], masses=[1])
    with pytest.raises(da.ModelError, match="restitution"):
        da.Spheres([0.1], masses=[1], restitution=1.5)
    with pytest.raises(da.ModelError, match="plane"):
        da.Spheres([0.1], masses=[1], planes=[((0, 0, 1), 0.0)])
    for plane in (((0, 1), "floor"), ((0, "a"), 0.0), 3, ((0, 1), np.inf)):
        with pytest.raises(da.ModelError, match="a plane is a pair"):
            da.Spheres([0.1], masses=[1], planes=[plane])
    for gravity in ("down", (0.0, np.nan), (0.0, 0.0, -9.81), -9.81):
        with pytest.raises(da.ModelError, match="gravity is a vector of 2"):
            da.Spheres([0.1], masses=[1], gravity=gravity)
    for friction in (np.inf, np.nan, -0.1, "rough"):
        with pytest.raises(da.ModelError, match="friction"):
            da.Spheres([0.1], masses=[1], friction=friction)
    two = da.Spheres([0.1, 0.1], masses=[1, 1])
    start = {"q0": [0, 0, 0, 0.1, 0, 0], "v0": np.zeros(6), "h": 0.1, "steps": 1}
    with pytest.raises(da.InconsistentStart, match="overlap"):
        da.simulate(two, da.MoreauJean(), **start)
    apart, together = [0, 0, 0, 0.3, 0, 0], [0, 0, 0, 0.1, 0, 0]
    for place, members in ((0, [together, apart]), (1, [apart, together])):  # as other starts that are not consistent
        with pytest.raises(da.InconsistentStart, match=f"member {place}: bodies overlap"):
            da.simulate_many(two, da.MoreauJean(), **start | {"q0": members})
    with pytest.raises(da.UnsupportedSystem, match="MoreauJean"):
        da.simulate(two, da.NonsmoothRattle(), **start)
    with pytest.raises(da.UnsupportedSystem, match="MoreauJean"):
        da.simulate(two, da.Rattle(), **start)


def test_a_stored_run_warns_once_of_steps_that_were_not_solved(tmp_path, monkeypatch):
    monkeypatch.setattr(_stored_run, "CHUNK_NUMBERS", 40)
    drive, chunks = SphereRun._drive, []

    def unsolved(run, store, last_step, save_every):
        chunks.append(last_step)
        run.tally[_sphere_driver.LEFT] = 1  # as after a step that took all sweeps
        return drive(run, store, last_step, save_every)

    monkeypatch.setattr(SphereRun, "_drive", unsolved)
    ball = da.Spheres([0.01], masses=[0.03], gravity=(0, -G), planes=[((0, 1), 0.0)], friction=0.5)
    with pytest.warns(da.errors.ContactWarning, match="1 of 60 steps") as warned:
        da.simulate(ball, da.MoreauJean(), q0=[0, 0.02, 0], v0=[0.1, 0, 0], h=1e-3, steps=60, save_to=tmp_path / "run.zarr")
    assert len(set(chunks)) > 5 and len(warned) == 1 and warned[0].filename == __file__
