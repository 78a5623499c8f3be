"""What no collision integrator may do: pass a wall, pull, make energy, or stop with advice that cannot be followed."""

import numpy as np
import pytest
from impact_models import free_particle

import dalembert as da
from dalembert.contact import _event_memory


def line(unilateral, **options):
    return da.Lagrangian(lambda q, v: v @ v / 2, dim=1, unilateral=unilateral, **options)


def test_a_wall_that_is_not_defined_behind_it_stops_the_run_with_that_reason():
    with pytest.raises(
        da.StepFailed, match=r"unilateral\[0\] is not finite behind the wall: .* defined on both sides, or reduce h"
    ):
        falling = da.Lagrangian(lambda q, v: v @ v / 2 - 10 * q[0], dim=1, unilateral=lambda q: np.log(q[0]))
        da.simulate(falling, da.CVA(), q0=[3.0], v0=[0.0], h=1.0, steps=3)


def test_a_wall_that_is_expected_need_not_be_defined_behind_it():
    run = da.simulate(line(lambda q: np.log(q[0])), da.CVA(), q0=[1.05], v0=[-2.0], h=1.0, steps=3)
    assert np.allclose(run.impacts.t, [0.025], rtol=0, atol=1e-14) and np.allclose(run.q[1:, 0], [2.95, 4.95, 6.95])


def test_a_wall_has_its_own_number_while_another_one_is_touched():
    floor_and_log = da.Lagrangian(lambda q, v: v @ v / 2 - q[1], dim=2, unilateral=lambda q: [q[1], np.log(q[0])])
    with pytest.raises(da.StepFailed, match=r"unilateral\[1\] is not finite .*in contact since t = 0\)"):
        da.simulate(floor_and_log, da.CVA(), q0=[3.0, 0.0], v0=[-2.0, 0.0], h=0.9, steps=2)


def test_no_state_behind_a_wall_is_stored():
    """1/q - 1 is positive for 0 < q < 1 and falls below zero through a pole, where there is no contact."""
    run = da.simulate(line(lambda q: 1 / q[0] - 1), da.CVA(), q0=[0.5], v0=[-1.0], h=0.13, steps=6, on_failure="return")
    assert run.status == "failed"
    assert "behind unilateral[0]" in run.message
    assert np.all(1 / run.q - 1 > 0) and len(run.impacts) == 0


@pytest.mark.parametrize("e", [2.0, -0.5, -1.5])
@pytest.mark.parametrize("method", [da.CVA(), da.VCI(), da.MCVA()], ids=str)
def test_a_restitution_function_that_leaves_its_range_is_named(method, e):
    system = line(lambda q: q[0], restitution=lambda speed, e: e * speed, params={"e": 1.0})
    with pytest.raises(
        da.StepFailed, match=rf"restitution of unilateral\[0\] is {e:g} at the approach speed 1: it must be between"
    ):
        da.simulate(system, method, q0=[1.0], v0=[-1.0], h=0.13, steps=20, params={"e": e})


def test_a_restitution_that_is_no_number_is_named_and_members_of_ensembles_fail_alone():
    system = line(lambda q: q[0], restitution=lambda speed, e: np.sqrt(e * speed), params={"e": 1.0})
    with pytest.raises(da.StepFailed, match=r"restitution of unilateral\[0\] is nan at the approach speed 1"):
        da.simulate(system, da.CVA(), q0=[1.0], v0=[-1.0], h=0.13, steps=20, params={"e": -1.0})
    starts = {"q0": np.ones((3, 1)), "v0": -np.ones((3, 1)), "params": {"e": np.array([0.25, 4.0, 1.0])}}
    runs = da.simulate_many(system, da.CVA(), h=0.13, steps=20, **starts)
    assert runs.status == ("done", "failed", "done")
    assert "the restitution of unilateral[0] is 2 at the approach speed 1" in runs.message[1]
    assert np.allclose(runs.impacts[0].p_after, 0.5) and np.allclose(runs.impacts[2].p_after, 1.0)


@pytest.mark.parametrize("w", [0.9, 0.999999, 0.99999999])
def test_a_relativistic_wall_kicks_a_particle_at_rest_as_far_as_it_should(w):
    """In the wall's frame the momentum is turned round: p+ = 2 w/(1 - w^2) for H = sqrt(1 + p^2)."""
    system = da.Hamiltonian(lambda p: np.sqrt(1 + p @ p), dim=1, unilateral=lambda t, q, w: q[0] - w * t, params={"w": 0.5})
    run = da.simulate(system, da.CVA(da.Gauss(stages=1)), q0=[1.0], p0=[0.0], h=0.13, steps=20, params={"w": w})
    assert np.allclose(run.impacts.t, [1 / w], rtol=1e-12)
    assert np.allclose(run.impacts.p_after, 2 * w / (1 - w**2), rtol=1e-13 + 3e-15 / (1 - w))


def test_an_impact_of_a_hamiltonian_that_is_steep_on_one_side_only_keeps_its_energy():
    system = da.Hamiltonian(lambda p: np.exp(p[0]) - p[0], dim=1, unilateral=lambda q: q[0])
    impacts = da.simulate(system, da.CVA(da.Gauss(stages=1)), q0=[1.0], p0=[-6.0], h=0.13, steps=20).impacts
    assert len(impacts) == 1 and impacts.p_after[0, 0] > 0
    assert abs(impacts.energy_after - impacts.energy_before)[0] < 1e-14


@pytest.mark.parametrize("e", [0.5, 0.0])
@pytest.mark.parametrize("w", [0.0, 0.6])
def test_impacts_of_a_hamiltonian_that_is_not_quadratic_accumulate_to_contact(e, w):
    """With w = 0 the first fall takes sqrt((1 + 1/2)^2 - 1)/(1/2): p' = -1/2, and H = 1 + 1/2 at the start."""
    system = da.Hamiltonian(
        lambda q, p: np.sqrt(1 + p @ p) + q[0] / 2,
        dim=1,
        unilateral=lambda t, q, w: q[0] - w * t,
        restitution=e,
        params={"w": w},
    )
    run = da.simulate(system, da.CVA(da.LobattoIIIAB(stages=2)), q0=[1.0], p0=[0.0], h=0.02, t1=20.0)
    assert len(run.contacts) == 1 and np.abs(run.q[-1, 0] - 20 * w) < 1e-13
    assert abs(run.p[-1, 0] / np.sqrt(1 + run.p[-1, 0] ** 2) - w) < 1e-13
    if w == 0:
        assert np.isclose(run.impacts.t[0], np.sqrt(5), rtol=1e-4)


@pytest.mark.parametrize("angle", [60, 10, 5, 1])
@pytest.mark.parametrize("e", [0.0, 0.5])
def test_a_damped_corner_brings_a_particle_to_rest(angle, e):
    """No velocity leaves both walls of a wedge that is narrower than a right angle, if each impact takes some of it away.

    For e = 1/2 at 60 degrees three impacts turn the particle round before it comes to rest.
    """
    a = np.radians(angle)
    wedge = free_particle(lambda q, a: [q[1], np.sin(a) * q[0] - np.cos(a) * q[1]], restitution=e, params={"a": a})
    inwards = np.array([np.cos(a / 2.2), np.sin(a / 2.2)])
    run = da.simulate(wedge, da.CVA(), q0=inwards, v0=-inwards, h=0.13, steps=20)
    impacts, gradients = run.impacts, np.array([[0.0, 1.0], [np.sin(a), -np.cos(a)]])
    jumps = impacts.p_after - impacts.p_before - impacts.impulse[:, None] * gradients[impacts.which]
    assert np.abs(jumps[:1000]).max() < 1e-15 and np.abs(jumps).max() < 1e-11  # sums of up to 10^5 impulses are rounded so
    assert np.allclose(impacts.p_before[1:], impacts.p_after[:-1], atol=1e-13) and np.all(impacts.impulse > 0)
    assert len(impacts) <= 1002
    approach = gradients @ run.p[-1]
    assert np.all(approach >= -1e-12) and np.linalg.norm(run.p[-1]) < 1
    if (angle, e) != (60, 0.5):
        assert np.abs(run.q[-1]).max() < 1e-9 and np.abs(run.p[-1]).max() < 1e-9


def test_an_elastic_slit_without_a_width_stops_with_advice_that_can_be_followed():
    slit = free_particle(lambda q: [q[0], -q[0]])
    with pytest.raises(da.StepFailed, match="still exchange impulses after a million of them: they face each other"):
        da.simulate(slit, da.CVA(), q0=[0.0, 0.0], v0=[0.3, 1.0], h=0.13, steps=2)


@pytest.mark.parametrize("method", [da.CVA(), da.VCI(), da.MCVA()], ids=str)
@pytest.mark.parametrize("h", [3.9, 4.1, 6.0])
def test_a_disc_that_a_step_crosses_through_its_middle_is_hit(method, h):
    disc = free_particle(lambda q: np.hypot(q[0], q[1]) - 1)
    run = da.simulate(disc, method, q0=[-h / 2, 0.05], v0=[1.0, 0.0], h=h, steps=1)
    assert np.allclose(run.impacts.t, h / 2 - np.sqrt(1 - 0.05**2), rtol=1e-13)
    assert np.hypot(*run.q[-1]) > 1


def test_several_functions_may_state_constraints():
    box = free_particle([lambda q: q[0], lambda q: [q[1], 1 - q[0]], lambda q, b: b - q[1]], params={"b": 1.0})
    assert box.n_unilateral == 4
    run = da.simulate(box, da.CVA(), q0=[0.5, 0.4], v0=[1.0, 0.73], h=0.1, steps=20)
    unfolded = np.array([0.5, 0.4]) + run.t[:, None] * np.array([1.0, 0.73])
    assert np.abs(run.q - np.abs((unfolded + 1) % 2 - 1)).max() < 1e-13
    chain = da.Lagrangian(
        lambda q, v: v @ v / 2,
        dim=4,
        holonomic=(lambda q: q[0] ** 2 + q[1] ** 2 - 1, lambda q: [q[2]]),
        nonholonomic=[lambda q, v: v[3] - v[0]],
    )
    assert (chain.n_holonomic, chain.n_nonholonomic) == (2, 1)
    with pytest.raises(da.ModelError, match="unilateral must be a function"):
        free_particle([lambda q: q[0], 3.0])
    with pytest.raises(da.ModelError, match="empty list"):
        free_particle([])


def curved_box():
    """An anharmonic particle between four walls, three of them curved."""
    return da.Lagrangian(
        lambda q, v, a, k: (1 + k * q[0] ** 2) * v @ v / 2 - a * q[1] - k * q @ q / 2,
        dim=2,
        unilateral=lambda q, b: [
            q[1] - b * np.sin(3 * q[0]), 1 - q[1] + b * np.cos(2 * q[0]), q[0] + 1, 1 - q[0] - b * q[1] ** 2
        ],
        params={"a": 1.0, "k": 0.5, "b": 0.2},
    )  # fmt: skip


def walls(q, b):
    x, y = q.T
    return np.array([y - b * np.sin(3 * x), 1 - y + b * np.cos(2 * x), x + 1, 1 - x - b * y**2])


@pytest.mark.parametrize(
    ("q", "p", "h", "params"),
    [
        ([-0.12224312049589536, 0.7171958398227649], [13.935915517847508, -28.907592521383176], 0.2891609893472198,
         {"a": 10.0, "b": 0.24348901213899082}),
        ([-0.8082184712524569, 0.905548429915449], [-12.262670971941404, 13.646919339803317], 0.4804381380213098,
         {"a": 10.0, "b": 0.21480346560360442}),
        ([0.632014255886068, 0.14292425939910544], [-20.7343774636457, -1.2501285131880375], 0.2757442792550019,
         {"a": 10.0, "b": 0.06874106067720029}),
    ],
)  # fmt: skip
def test_a_variational_reset_that_pulls_or_passes_a_wall_is_not_taken(q, p, h, params):
    run = da.simulate(curved_box(), da.VCI(), q0=q, p0=p, h=h, steps=1, params=params)
    assert np.all(run.impacts.impulse >= 0)
    assert run.stats["impacts_without_variational_reset"] >= 1
    assert walls(run.q, params["b"]).min() > -1e-13
    phi = walls(run.impacts.q, params["b"])
    assert np.abs(phi[run.impacts.which, np.arange(len(run.impacts))]).max() < 1e-13 and phi.min() > -1e-13


@pytest.mark.parametrize("method", [da.CVA(), da.VCI(), da.MCVA()], ids=str)
def test_whatever_the_start_and_the_step_no_wall_is_passed_and_none_pulls(method):
    system, rng, impacts, done = curved_box(), np.random.default_rng(1), 0, 0
    for _ in range(60):
        b, h = rng.uniform(0, 0.3), 10 ** rng.uniform(-2.5, -0.3)
        params = {"a": rng.choice([0.0, 1.0, 10.0]), "b": b}
        v0 = rng.normal(size=2) * 10 ** rng.uniform(-2, 1)
        run = da.simulate(system, method, q0=[0.1, 0.5], v0=v0, h=h, steps=200, params=params, on_failure="return")
        impacts, done = impacts + len(run.impacts), done + (run.status == "done")
        assert walls(run.q, b).min() > -1e-12
        if len(run.impacts):
            assert run.impacts.impulse.min() >= 0
            off = np.abs(walls(run.impacts.q, b)[run.impacts.which, np.arange(len(run.impacts))])
            assert np.all(off < 1e-7 * h * (1 + np.abs(run.impacts.p_before).max(axis=1)))  # of the speed of each
        if isinstance(method, da.CVA):
            change = np.abs(run.impacts.energy_after - run.impacts.energy_before)
            assert np.all(change <= 1e-13 * (1 + np.abs(run.impacts.energy_before)))
    assert impacts > 1000 and done > 30


def test_no_two_places_of_the_memory_of_events_overlap():
    at, size = _event_memory.lay_out(n=2, m=3, walls=2, n_theta=4, n_x=5, n_full=7, n_blocks=2)
    vectors = {"theta": 4, "state": 4, "delta": 4, "after": 2, "tangent": 4, "forces": 2, "x": 7, "residual": 5, "matrix": 25}
    vectors |= {"masses": 2, "sizes": 2, "pivots": 5} | dict.fromkeys(_event_memory.SCALARS, 1)
    places = [at[name] + k for name, count in vectors.items() for k in range(count)]
    for name in ("hit", "ahead", "phi", "rate", "slack", "strength", "blur", "strength_before", "bend", "dip", "phi_dip"):
        places += [at[name] + k for k in range(3)]
    for point in _event_memory.POINTS:
        places += [at[point][part] + k for part, count in (("state", 4), ("phi", 3), ("rate", 3)) for k in range(count)]
    assert sorted(places) == list(range(size))


@pytest.mark.parametrize("method", [da.CVA(), da.MoreauJean()], ids=str)
def test_coefficients_that_parameters_make_impossible_are_refused_at_the_start(method):
    """Also in a run that meets no wall; one that changes with the place may be anything where nothing touches."""
    ball = da.Lagrangian(
        lambda q, v: v @ v / 2, dim=2, unilateral=lambda q: q[1], friction=lambda mu: 1 / mu, params={"mu": 3.0},
    )  # fmt: skip
    given = {"q0": [0.0, 1.0], "v0": [1.0, 0.0], "h": 0.1, "steps": 2}
    for mu, what in ((-2.0, "is -0.5: it must be >= 0"), (0.0, "friction is infinite")):
        with pytest.raises(da.InputError, match=what):
            da.simulate(ball, method, params={"mu": mu}, **given)
    assert da.simulate(ball, method, **given).q[-1] == pytest.approx([0.2, 1.0])
    if isinstance(method, da.CVA):
        with pytest.raises(da.InputError, match=r"of member 1 is -0\.1"):
            da.simulate_many(ball, method, params={"mu": [3.0, -10.0]}, **given)
        sloped = da.Lagrangian(lambda q, v: v @ v / 2, dim=2, unilateral=lambda q: q[1], friction=lambda q: 0.3 - q[1])
        assert da.simulate(sloped, method, **given).status == "done"
