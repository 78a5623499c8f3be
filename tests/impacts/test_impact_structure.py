"""Table I of Pekarek and Murphey (2014), measured: what one impact keeps, and to which order."""

import numpy as np
import pytest
from impact_models import EVERY, cart_pendulum, free_particle, just_above_the_floor, xi

import dalembert as da

SYSTEM = cart_pendulum()


def slopes(values):
    values = np.asarray(values)
    return np.log2(values[:-1] / values[1:])


def central_differences(system, method, h, start):
    """The derivative of the step map by differences of fourth order."""
    base, e = da.consistent(system, **start).packed, 1e-4
    n, columns = system.dim, []
    for k in range(2 * n):
        column = 0.0
        for shift, weight in ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12)):
            x = base + shift * e * np.eye(2 * n)[k]
            column = column + weight / e * da.verify.step(system, method, h=h, q0=x[:n], p0=x[n:]).packed
        columns.append(column)
    return np.array(columns).T


@pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)
def test_the_tangent_of_a_step_with_an_impact_agrees_with_differences(method):
    start = just_above_the_floor(0.05)
    tangent = da.verify.step_tangent(SYSTEM, method, h=0.05, **start)
    assert np.abs(tangent - central_differences(SYSTEM, method, 0.05, start)).max() < 1e-9


@pytest.mark.parametrize("base", ["SVC", "SVA", "midpoint", da.LobattoGalerkin(stages=3)], ids=str)
def test_an_impact_step_of_the_variational_collision_integrator_is_symplectic_to_round_off(base):
    start = just_above_the_floor(0.05)
    assert da.verify.symplecticity_defect(SYSTEM, da.VCI(base), h=0.05, **start) < 1e-14


def test_the_variational_collision_integrator_stays_symplectic_through_several_impacts_in_one_step():
    circle = free_particle(lambda q: 1 - q @ q)
    start = {"q0": [0.6, 0.1], "v0": [0.7, 0.9]}
    run = da.simulate(circle, da.VCI(), h=5.0, steps=1, **start)
    chord = 2 * np.sqrt(1 - 0.47**2 / 1.3)  # from the angular momentum 0.47 and v^2 = 1.3
    assert np.allclose(np.diff(run.impacts.t), chord / np.sqrt(1.3))
    assert len(run.impacts) == 3
    assert da.verify.symplecticity_defect(circle, da.VCI(), h=5.0, **start) < 1e-11
    curved = da.Lagrangian(lambda q, v: (1 + q[0] ** 2) * v @ v / 2 - q @ q / 2, dim=2, unilateral=lambda q: 1 - q @ q)
    start = {"q0": [0.9, 0.38], "v0": [0.0, 1.0]}
    assert len(da.simulate(curved, da.VCI(), h=0.9, steps=1, **start).impacts) == 2
    assert da.verify.symplecticity_defect(curved, da.VCI(), h=0.9, **start) < 1e-13


@pytest.mark.parametrize(
    ("method", "order"),
    [(da.CVA(), 2), (da.CVA("SVA"), 2), (da.MCVAA(), 4), (da.MCVAC(), 4), (da.MCVA(), 4)],
    ids=["CVA", "CVA on SVA", "MCVAA", "MCVAC", "MCVA even"],
)
def test_the_symplecticity_defect_of_an_impact_has_the_order_of_the_partial_steps(method, order):
    defects = [da.verify.symplecticity_defect(SYSTEM, method, h=h, **just_above_the_floor(h)) for h in (0.05, 0.025, 0.0125)]
    assert np.all(np.abs(slopes(defects) - order) < 0.2)


def test_a_sixth_order_truncation_has_a_defect_at_round_off_already_at_moderate_steps():
    method = da.MCVA("SVC", 6, "even")
    assert da.verify.symplecticity_defect(SYSTEM, method, h=0.025, **just_above_the_floor(0.025)) < 1e-14


@pytest.mark.parametrize("method", [da.MCVAA(), da.MCVAC(), da.MCVA(), da.MCVA("SVC", 4, "eta")], ids=str)
def test_the_modified_reset_keeps_its_modified_hamiltonian_and_the_others_do_not(method):
    kept = da.modified_hamiltonian(SYSTEM, method.full, method.truncation, method.expansion)

    def change(other):
        impacts = da.simulate(SYSTEM, other, h=0.032, steps=156, **xi(3.2)).impacts
        assert len(impacts) >= 3
        before, after = (kept(impacts.q, p, 0.032) for p in (impacts.p_before, impacts.p_after))
        return np.abs(after - before).max()

    assert change(method) < 1e-12
    assert min(change(da.CVA(method.base)), change(da.VCI(method.base))) > 1e-4


def test_the_reset_of_continuous_time_keeps_the_energy_and_the_variational_one_does_not():
    runs = {m: da.simulate(SYSTEM, m, h=0.032, steps=156, **xi(3.2)).impacts for m in (da.CVA(), da.VCI())}
    changes = [np.abs(impacts.energy_after - impacts.energy_before).max() for impacts in runs.values()]
    assert changes[0] < 1e-12 < 1e-3 < changes[1]


def test_the_variational_reset_keeps_the_discrete_energy_of_the_partial_steps_around_it():
    start, h = just_above_the_floor(0.05), 0.05
    run = da.simulate(SYSTEM, da.VCI(), h=h, steps=1, **start)
    (tau,), (q,) = run.impacts.t, run.impacts.q
    discrete = da.DiscreteMechanics(SYSTEM, "SVC")
    before, after = discrete.energy(run.q[0], q, tau), discrete.energy(q, run.q[1], h - tau)
    assert abs(after - before) < 1e-12
    assert np.allclose(discrete.legendre_plus(run.q[0], q, tau), run.impacts.p_before[0], atol=1e-12)
    assert np.allclose(discrete.legendre_minus(q, run.q[1], h - tau), run.impacts.p_after[0], atol=1e-12)


def test_slow_impacts_without_a_variational_reset_take_the_other_one_and_are_counted():
    # it happens a few times in ten thousand impacts, so it takes many of them to see some whatever rounding does to chaos
    starts = [xi(beta) for beta in np.linspace(4.0, 5.2, 24)]
    initial = {name: [start[name] for start in starts] for name in ("q0", "v0")}
    runs = da.simulate_many(SYSTEM, da.VCI(), h=0.032, steps=50_000, save_every=1000, **initial)
    impacts = runs.impacts

    def speeds(rows):
        points = zip(impacts.q[rows], impacts.p_before[rows], strict=True)
        return [-SYSTEM.evaluate("phi_dot", 0.0, q, p)[0] for q, p in points]

    kept = np.abs(impacts.energy_after - impacts.energy_before) < 1e-12
    assert runs.stats["impacts_without_variational_reset"] == np.sum(kept) >= 1
    # the discrete energies of partial steps differ from H by about m g^2 h^2 / 8, so that only slow impacts are concerned
    assert np.max(speeds(kept)) < 1.5 < np.median(speeds(slice(None, None, 50)))
    assert runs.q[:, :, 0].min() >= 0


@pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)
def test_impulses_push_along_the_gradient_away_from_the_wall(method):
    impacts = da.simulate(SYSTEM, method, h=0.02, steps=250, **xi(4.0)).impacts
    kick = impacts.p_after - impacts.p_before
    assert np.abs(impacts.q[:, 0]).max() < 1e-14
    assert np.all(impacts.impulse > 0)
    assert np.allclose(kick, impacts.impulse[:, None] * [1.0, 0.0], atol=1e-13)
