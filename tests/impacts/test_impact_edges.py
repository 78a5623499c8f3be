"""Starts, ends and refusals: what lies at the edge of an event-driven method."""

import numpy as np
import pytest
from impact_models import EVERY, PAPER, ball, cart_pendulum, free_particle, xi
from scipy.special import ellipk

import dalembert as da
from dalembert.compiler._elimination import choose_pivots
from dalembert.contact import _event_program


@pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)
def test_a_start_behind_the_wall_is_refused(method):
    with pytest.raises(da.InconsistentStart, match=r"behind a wall: unilateral\[0\] is -0.1"):
        da.simulate(ball(), method, q0=[-0.1], v0=[0.0], h=0.1, steps=3)


def test_a_start_on_a_wall_is_not_refused_for_round_off_where_its_coordinates_vanish():
    """Two touching pendulums at rest: with q = 0 the distance of their pivots, 0.9 - 0.8, is rounded all the same."""
    pendulums = da.Lagrangian(
        lambda q, v: v @ v / 2 + np.sum(np.cos(q)),
        dim=2,
        unilateral=lambda q: (0.9 + np.sin(q[1])) - (0.8 + np.sin(q[0])) - 0.1,
    )
    assert pendulums.evaluate("phi", 0.0, np.zeros(2)) < 0
    run = da.simulate(pendulums, da.CVA(da.Gauss(stages=3)), q0=[0.0, 0.0], v0=[-0.3, 0.0], h=0.1, steps=100)
    assert list(run.impacts.which) == [0, 0, 0]
    with pytest.raises(da.InconsistentStart, match="behind a wall"):
        da.simulate(pendulums, da.CVA(), q0=[1e-10, 0.0], v0=[-0.3, 0.0], h=0.1, steps=1)


@pytest.mark.parametrize("method", [da.CVA(), da.NonsmoothRattle()], ids=str)
def test_a_stored_state_that_is_a_rounding_error_behind_a_wall_is_a_start(method):
    """phi = q[1] has no terms whose rounding would show; the block slides from 1 m/s to rest in v^2 / (2 mu g)."""
    block = da.Lagrangian(
        lambda q, v: 0.1 * v @ v - 0.2 * 9.81 * q[1], dim=2, unilateral=lambda q: q[1], friction=0.3, restitution=0.3
    )
    for depth in (0.0, 1e-23, 1e-19, 5e-16):
        run = da.simulate(block, method, q0=[0.0, -depth], v0=[1.0, 0.0], h=1e-3, steps=400)
        assert abs(run.q[-1, 0] - 1 / (0.6 * 9.81)) < 1e-6 and np.abs(run.q[:, 1]).max() < 1e-15
    with pytest.raises(da.InconsistentStart, match="behind a wall"):
        da.simulate(block, method, q0=[0.0, -1e-13], v0=[1.0, 0.0], h=1e-3, steps=1)


@pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("v", [1.0, -1.0])
def test_a_start_on_the_wall_leaves_it_or_is_reflected_at_once(method, v):
    run = da.simulate(ball(), method, q0=[0.0], v0=[v], h=0.1, steps=30)
    expected = [2.0] if v > 0 else [0.0, 2.0]
    assert np.allclose(run.impacts.t, expected, atol=3e-3 if isinstance(method, da.VCI) else 1e-14)
    assert run.q.min() >= 0


@pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("offset", [0.0, 1e-17, 1e-13, 1e-10, 1e-7, -1e-13, -1e-10, -1e-7])
def test_an_impact_at_or_next_to_the_end_of_a_step_is_resolved(method, offset):
    line = da.Lagrangian(lambda q, v: v @ v / 2, dim=1, unilateral=lambda q: q[0])
    run = da.simulate(line, method, q0=[1.0 + offset], v0=[-1.0], h=0.125, steps=24)
    assert np.allclose(run.impacts.t, [1.0 + offset], rtol=0, atol=1e-15)
    assert np.allclose(run.q[:, 0], np.abs(run.t - (1.0 + offset)), rtol=0, atol=1e-14)


@pytest.mark.parametrize("base", [da.LobattoIIIAB(stages=4), da.GaussLobattoSPARK(stages=3)], ids=str)
@pytest.mark.parametrize("offset", [0.0, *(sign * 10.0**-k for k in range(3, 16) for sign in (1, -1))])
def test_an_impact_next_to_the_end_of_a_step_is_resolved_with_holonomic_constraints(base, offset):
    """Partial steps may be far shorter than h, where round-off of positions blurs the multipliers."""
    turning = da.Lagrangian(
        lambda q, v: v @ v / 2, dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1], unilateral=lambda q: q[0]
    )

    def start(angle):
        return {"q0": [np.sin(angle), np.cos(angle)], "v0": [-np.cos(angle), np.sin(angle)], "h": 0.125}

    turned = 1.0 - np.arctan2(*da.simulate(turning.smooth, base, steps=8, **start(1.0)).q[-1])
    run = da.simulate(turning, da.CVA(base), steps=16, **start(turned + offset))
    assert np.allclose(run.impacts.t, [1.0 + offset], rtol=0, atol=1e-9)  # the base turns 1 + O(h^6) in this time
    assert abs(np.arctan2(*run.q[-1]) - (turned - offset)) < 1e-12
    assert np.abs(run.residuals["g_dot"]).max() < 1e-14


@pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)
def test_a_wall_that_is_never_reached_changes_nothing(method):
    system = cart_pendulum()
    start = {"q0": [50.0, 0.3], "v0": [3.0, 1.0]}
    run = da.simulate(system, method, h=0.02, steps=100, **start)
    free = da.simulate(system.smooth, method.full, h=0.02, steps=100, **start)
    assert len(run.impacts) == 0
    assert run.impacts.q.shape == (0, 2)
    assert np.array_equal(run.states, free.states)


@pytest.mark.parametrize("wall", [lambda q: q[0] ** 3, lambda q: q[0] ** 2], ids=["cubic", "square"])
@pytest.mark.parametrize("method", PAPER.values(), ids=PAPER)
def test_a_wall_without_a_gradient_at_the_contact_stops_the_run_with_a_reason(method, wall):
    system = da.Lagrangian(lambda q, v: v @ v / 2, dim=1, unilateral=wall)
    with pytest.raises(da.StepFailed, match=r"the gradient of unilateral\[0\] vanishes at the contact"):
        da.simulate(system, method, q0=[1.0], v0=[-1.0], h=0.15, steps=24)


def test_a_penetration_by_the_full_step_alone_takes_the_partial_flow_without_a_reset():
    """The full step of SVC ends below the floor that the modified flow just misses: no impact, and no penetration."""
    system = da.Lagrangian(
        lambda q, v: v[0] ** 2 / 2 + (1 + q[0] ** 2) * v[1] ** 2 / 2 - (q[0] - 1) ** 2 * 2 - q[0] ** 4,
        dim=2,
        unilateral=lambda q, floor: q[0] - floor,
        params={"floor": -1.0},
    )
    start, h = {"q0": [1.2, 0.0], "v0": [0.0, 0.3]}, 0.2
    method = da.MCVA()
    full = da.simulate(system.smooth, method.full, h=h, steps=20, **start)
    low = int(np.argmin(full.q[:, 0]))
    partial = da.simulate(
        da.modified_hamiltonian(system, method.full, 4, "even").system(h), da.Gauss(stages=2), h=h, steps=1,
        q0=full.q[low - 1], p0=full.p[low - 1],
    )  # fmt: skip
    ends = full.q[low, 0], partial.q[1, 0]
    assert ends[0] < ends[1]
    floor = (ends[0] + ends[1]) / 2
    run = da.simulate(system, method, h=h, steps=low, params={"floor": floor}, **start)
    assert len(run.impacts) == 0
    assert np.allclose(run.q[low], partial.q[1], atol=1e-14)
    assert run.q[:, 0].min() >= floor


SIXTH = pytest.param(da.MCVA("SVC", 6), marks=pytest.mark.slow)  # takes seconds to compile


@pytest.mark.parametrize("method", [da.MCVA(), da.MCVAA(), da.MCVAC(), SIXTH], ids=str)
def test_an_impact_after_which_H_still_approaches_happens_once(method):
    """The reset turns phi_dot of H~ round, from -0.03; that of H, which differs by O(h^2), does not change its sign."""
    system, h = cart_pendulum(), 0.032
    run = da.simulate(system, method, h=h, steps=1, q0=[0.00013377240766138248, 4.516051721045535],
                      p0=[4.504661656028967, -9.373679696605434])  # fmt: skip
    assert len(run.impacts) == 1 and run.impacts.impulse[0] > 0 and run.q[-1, 0] > 0
    kept = da.modified_hamiltonian(system.smooth, method.full, method.truncation, method.expansion)
    before, after = (kept(run.impacts.q, p, h)[0] for p in (run.impacts.p_before, run.impacts.p_after))
    assert abs(after - before) < 1e-12


def test_no_wall_pulls():
    """At coarse steps (33) has roots with a negative impulse, too: they are no impacts."""
    run = da.simulate(cart_pendulum(), da.VCI(), h=0.05, steps=200_000, save_every=1000, on_failure="return", **xi(4.0))
    assert len(run.impacts) > 3000 and np.all(run.impacts.impulse >= 0)


def test_smooth_methods_refuse_walls_and_collision_integrators_refuse_systems_without_them():
    with pytest.raises(da.UnsupportedSystem, match=r"da.Gauss.* does not see the unilateral constraints.*da.CVA\(base\)"):
        da.simulate(ball(), da.Gauss(stages=2), q0=[1.0], v0=[0.0], h=0.1, steps=1)
    for method in EVERY.values():
        with pytest.raises(da.UnsupportedSystem, match="which this system does not have"):
            da.simulate(ball().smooth, method, q0=[1.0], v0=[0.0], h=0.1, steps=1)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"force": lambda v: -v}, "not defined with a force"),
        ({"holonomic": lambda q: [q[0] - q[1]]}, "not defined with holonomic constraints"),
    ],
)
def test_modified_collision_integrators_refuse_forces_and_holonomic_constraints(options, reason):
    system = da.Lagrangian(lambda q, v: v @ v / 2 - q[0], dim=2, unilateral=lambda q: q[0], **options)
    for method in (da.MCVAA(), da.MCVAC(), da.MCVA()):
        with pytest.raises(da.UnsupportedSystem, match=rf"{reason}.*da.CVA\(base\) and da.VCI\(base\) can"):
            da.simulate(system, method, q0=[1.0, 1.0], v0=[0.0, 0.0], h=0.1, steps=1)
    assert len(da.simulate(system, da.VCI(), q0=[1.0, 1.0], v0=[0.0, 0.0], h=0.1, steps=30).impacts) >= 1


def test_arguments_that_make_no_sense_are_refused():
    with pytest.raises(da.InputError, match="the base of a collision integrator is a discrete Lagrangian"):
        da.CVA("verlet")
    with pytest.raises(da.InputError, match="varies a discrete Lagrangian"):
        da.VCI(da.Gauss(stages=2))
    with pytest.raises(da.InputError, match="collision_tolerance is a fraction of a step"):
        da.CVA(collision_tolerance=2.0)
    with pytest.raises(da.InputError, match="a composition"):
        da.CVA(da.compose(da.Rattle(), 4))
    with pytest.raises(da.ModelError, match="restitution is a number between 0 and 1"):
        ball(restitution=1.5)
    with pytest.raises(da.ModelError, match="which this system does not have"):
        da.Lagrangian(lambda q, v: v @ v / 2, dim=1, restitution=0.5)
    with pytest.raises(da.UnsupportedSystem, match=r"do not depend on t: use da\.CVA"):
        moving = da.Lagrangian(
            lambda q, v: v @ v / 2, dim=2, holonomic=lambda t, q: [q[1] - np.sin(t)], unilateral=lambda q: q[0]
        )
        da.simulate(moving, da.VCI(), q0=[1.0, 0.0], v0=[-1.0, 1.0], h=0.1, steps=1)
    with pytest.raises(da.InputError, match="run forwards"):
        da.verify.step(ball(), da.CVA(), h=-0.1, q0=[1.0], v0=[0.0])
    with pytest.raises(da.InputError, match="stage_multipliers are not stored"):
        da.simulate(ball(), da.CVA(), q0=[1.0], v0=[0.0], h=0.1, steps=1, stage_multipliers=True)


def test_impacts_are_saved_and_loaded_with_the_run(tmp_path):
    run = da.simulate(cart_pendulum(), da.MCVAA(), h=0.02, steps=200, **xi(3.2))
    loaded = da.load(run.save(tmp_path / "run"))
    assert len(loaded.impacts) == len(run.impacts) > 0
    for name in ("t", "which", "impulse", "q", "p_before", "p_after", "energy_before", "energy_after"):
        assert np.array_equal(getattr(loaded.impacts, name), getattr(run.impacts, name))
    smooth = da.simulate(cart_pendulum().smooth, da.Variational("SVC"), h=0.02, steps=5, **xi(3.2))
    assert smooth.impacts is None
    assert da.load(smooth.save(tmp_path / "smooth")).impacts is None


def test_a_run_that_fails_keeps_the_impacts_before_the_failure():
    system = free_particle(lambda q: [q[0], (1 - q[0]) ** 3])
    run = da.simulate(system, da.CVA(), q0=[0.5, 0.0], v0=[-1.0, 0.1], h=0.13, steps=100, on_failure="return")
    assert run.status == "failed"
    assert "unilateral[1] vanishes" in run.message
    assert np.allclose(run.impacts.t, [0.5])


def test_an_impact_step_is_no_system_of_equations():
    with pytest.raises(da.UnsupportedSystem, match="event-driven algorithm"):
        da.step_function(ball(), da.CVA())


def test_stored_states_do_not_depend_on_how_often_they_are_stored():
    every = da.simulate(cart_pendulum(), da.VCI(), h=0.02, steps=400, **xi(3.2))
    tenth = da.simulate(cart_pendulum(), da.VCI(), h=0.02, steps=400, save_every=10, **xi(3.2))
    assert np.array_equal(every.states[::10], tenth.states)
    assert np.array_equal(every.impacts.t, tenth.impacts.t)


def test_the_energy_diagram_marks_impacts():
    from dalembert import plot

    run = da.simulate(cart_pendulum(), da.CVA(), h=0.02, steps=250, **xi(3.2))
    axes = plot.energy_error(run).axes[0]
    dashed = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]
    assert np.allclose(dashed, run.impacts.t)
    assert len(run.plot().axes) >= 3


@pytest.mark.parametrize("across", [0, 1])
@pytest.mark.parametrize("pivots", [None, *range(6)])
def test_no_order_of_pivots_spoils_an_impact(across, pivots, monkeypatch):
    """A pendulum that hits a wall below its pivot, where a component of its constraint's gradient is zero."""
    if pivots is not None:  # an order for other matrices than these
        monkeypatch.setattr(_event_program, "_programs", {})
        monkeypatch.setattr(_event_program, "_pivot_order", lambda matrix, *_: order_at_random(matrix, pivots))
    pendulum = da.Lagrangian(
        lambda q, v: v @ v / 2 - q[1 - across],
        dim=2,
        holonomic=lambda q: [np.hypot(q[0], q[1]) - 1],
        unilateral=lambda q: q[across],
    )
    start = np.array([np.sin(1.2), -np.cos(1.2)])
    start = start if across == 0 else start[::-1]
    run = da.simulate(pendulum, da.CVA(da.LobattoIIIAB(stages=4)), q0=start, v0=[0, 0], h=0.02, steps=600)
    quarter = ellipk(np.sin(0.6) ** 2)
    assert np.allclose(run.impacts.t, quarter * np.arange(1, 12 / quarter, 2), rtol=0, atol=1e-10)
    assert np.abs(run.energy - run.energy[0]).max() < 1e-10
    assert np.abs(run.residuals["g"]).max() < 1e-14


def order_at_random(matrix, seed):
    """Pivots in an order that suits a matrix with the same entries, but of any sizes."""
    rows, columns = (np.array(part, dtype=int) for part in matrix.sparsity().get_triplet())
    sizes = 10.0 ** np.random.default_rng(seed).uniform(-6, 0, (len(rows), 1))
    return choose_pivots(rows, columns, sizes, matrix.shape[0])
