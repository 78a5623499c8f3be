"""Orders of convergence through impacts, against converged references."""

import numpy as np
import pytest
from impact_models import EVERY, cart_pendulum, xi

import dalembert as da

SYSTEM = cart_pendulum()
END = 4.0


@pytest.fixture(scope="module")
def reference():
    """Gauss's method of order 8 with exact impacts; halving the step moves the result by less than 1e-12."""
    coarse, fine = (da.simulate(SYSTEM, da.CVA(da.Gauss(stages=4)), h=END / n, steps=n, **xi(3.2)) for n in (400, 800))
    assert len(fine.impacts) == 3
    assert np.abs(fine.states[-1] - coarse.states[-1]).max() < 1e-12
    return fine


def errors(method, reference, counts):
    ends = [da.simulate(SYSTEM, method, h=END / n, steps=n, **xi(3.2)).states[-1] for n in counts]
    return np.array([np.abs(end - reference.states[-1]).max() for end in ends])


def fitted(errors):
    return -np.polyfit(np.arange(len(errors)) * np.log(2), np.log(errors), 1)[0]


@pytest.mark.parametrize("method", EVERY.values(), ids=EVERY)
def test_all_collision_integrators_on_second_order_bases_have_order_two(method, reference):
    assert abs(fitted(errors(method, reference, (400, 800, 1600, 3200))) - 2) < 0.2


def test_exact_resets_between_fourth_order_steps_have_order_four(reference):
    for base in (da.Gauss(stages=2), da.LobattoGalerkin(stages=3), da.LobattoIIIAB(stages=3)):
        assert abs(fitted(errors(da.CVA(base), reference, (100, 200, 400))) - 4) < 0.2


def test_the_variational_reset_has_the_order_of_its_discrete_lagrangian(reference):
    assert abs(fitted(errors(da.VCI(da.LobattoGalerkin(stages=3)), reference, (100, 200, 400, 800))) - 4) < 0.2


def test_sloppy_collision_times_cost_accuracy(reference):
    exact, sloppy = (errors(da.CVA(da.Gauss(stages=2), collision_tolerance=x), reference, (400,))[0] for x in (None, 1e-4))
    assert sloppy > 10 * exact
    run = da.simulate(SYSTEM, da.CVA(collision_tolerance=2.0**-6), h=0.01, steps=100, **xi(3.2))
    true = da.simulate(SYSTEM, da.CVA(), h=0.01, steps=100, **xi(3.2))
    assert 0 < abs(run.impacts.t[0] - true.impacts.t[0]) <= 0.01 * 2.0**-7


def driven(force=True, moving=False):
    return da.Lagrangian(
        lambda t, q, v: (
            v[0] ** 2 / 2 + (1 + 0.5 * np.cos(q[0])) * v[1] ** 2 / 2 - (1 + (0.3 * np.sin(2 * t) if moving else 0)) * q @ q / 2
        ),
        dim=2,
        force=(lambda t, v: -0.3 * v + np.array([0.0, 1.0]) * np.sin(t)) if force else None,
        unilateral=lambda t, q: q[0] + 0.2 + (0.1 * np.cos(3 * t) if moving else 0),
    )


@pytest.mark.parametrize(
    "system", [driven(), driven(force=False, moving=True), driven(moving=True)], ids=["force", "wall", "both"]
)
@pytest.mark.parametrize("method", [da.CVA(), da.CVA("SVA"), da.VCI(), da.VCI("SVA")], ids=str)
def test_forces_and_moving_walls_keep_the_second_order(system, method):
    # the variational reset's error depends on where in a step the impact falls: its mean over several starts has an order
    starts = [{"q0": [1.0 + 0.01 * k, 0.3], "v0": [0.0, 0.5]} for k in range(1 if isinstance(method, da.CVA) else 12)]
    counts, found = (200, 400, 800, 1600), np.zeros(4)
    for start in starts:
        exact = da.simulate(system, da.CVA(da.Gauss(stages=4)), h=0.01, t1=4.0, **start)
        assert len(exact.impacts) >= 1
        ends = [da.simulate(system, method, h=4.0 / n, steps=n, **start).states[-1] for n in counts]
        found += [np.abs(end - exact.states[-1]).max() for end in ends]
    assert abs(fitted(found) - 2) < (0.1 if isinstance(method, da.CVA) else 0.2)


def test_the_variational_reset_has_order_two_with_holonomic_constraints():
    """A pendulum that hits a wall, against the same in its angle; the mean error over starts, as above."""
    angle = da.Lagrangian(lambda q, v: v @ v / 2 + np.cos(q[0]), dim=1, unilateral=lambda q: np.sin(q[0]) + 0.2)
    point = da.Lagrangian(
        lambda q, v: v @ v / 2 - q[1], dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1], unilateral=lambda q: q[0] + 0.2
    )
    counts, found = (100, 200, 400, 800), np.zeros(4)
    for a in np.linspace(1.0, 1.2, 12):
        exact = da.simulate(angle, da.CVA(da.Gauss(stages=4)), q0=[a], v0=[0.0], h=0.01, t1=4.0)
        assert len(exact.impacts) >= 1
        x, y = np.sin(exact.q[-1, 0]), -np.cos(exact.q[-1, 0])
        ends = [
            da.simulate(point, da.VCI(), q0=[np.sin(a), -np.cos(a)], v0=[0.0, 0.0], h=4.0 / n, steps=n).q[-1] for n in counts
        ]
        found += [np.abs(end - [x, y]).max() for end in ends]
    assert abs(fitted(found) - 2) < 0.2


def test_a_double_pendulum_in_cartesian_coordinates_hits_a_wall_as_it_does_in_angles():
    wall = 0.3
    angles = da.Lagrangian(
        lambda q, v: v[0] ** 2 + v[1] ** 2 / 2 + np.cos(q[0] - q[1]) * v[0] * v[1] + 2 * np.cos(q[0]) + np.cos(q[1]),
        dim=2,
        unilateral=lambda q: np.sin(q[0]) + np.sin(q[1]) + wall,
    )
    points = da.Lagrangian(
        lambda q, v: v @ v / 2 - q[1] - q[3],
        dim=4,
        holonomic=lambda q: [np.hypot(q[0], q[1]) - 1, np.hypot(q[2] - q[0], q[3] - q[1]) - 1],
        unilateral=lambda q: q[2] + wall,
    )

    def place(a, b):
        return np.array([np.sin(a), -np.cos(a), np.sin(a) + np.sin(b), -np.cos(a) - np.cos(b)])

    exact = da.simulate(angles, da.CVA(da.Gauss(stages=4)), q0=[0.9, 0.4], v0=[0, 0], h=0.01, t1=6.0)
    assert len(exact.impacts) == 1
    for method, order in ((da.CVA(), 2), (da.CVA(da.LobattoIIIAB(stages=3)), 4), (da.VCI(), None)):
        runs = [da.simulate(points, method, q0=place(0.9, 0.4), v0=np.zeros(4), h=6.0 / n, steps=n) for n in (200, 400, 800)]
        found = [np.abs(run.q[-1] - place(*exact.q[-1])).max() for run in runs]
        assert found[-1] < 5e-5
        assert order is None or abs(fitted(found) - order) < 0.1
        for run in runs:
            assert max(np.abs(run.residuals[name]).max() for name in ("g", "g_dot")) < 2e-15
            G = points.evaluate("G", 0.0, run.impacts.q[0])
            v = points.evaluate("H_p", 0.0, run.impacts.q[0], run.impacts.p_after[0])
            assert np.abs(G @ v).max() < 1e-14
        if isinstance(method, da.CVA):
            assert abs(runs[0].impacts.energy_after - runs[0].impacts.energy_before)[0] < 1e-14
    start = da.consistent(points, q0=place(0.1, -0.3), v0=[-2, 0, -2, 0])
    assert len(da.simulate(points, da.VCI(), h=0.2, steps=1, start=start).impacts) == 1
    assert da.verify.symplecticity_defect(points, da.VCI(), h=0.2, start=start) < 1e-13


def test_hamiltonians_that_are_not_quadratic_keep_their_energy_at_impacts():
    for kinetic in (lambda p: np.sqrt(1 + p @ p), lambda p: (p @ p) ** 2 / 4 + p @ p / 2, lambda p: np.cosh(p[0]) + p[1] ** 2):
        system = da.Hamiltonian(lambda q, p, T=kinetic: T(p) + q[0], dim=2, unilateral=lambda q: q[0] - 0.1 * q[1] ** 2)
        run = da.simulate(system, da.CVA(da.Gauss(stages=3)), q0=[1.0, 0.1], p0=[0.0, 0.4], h=0.02, t1=20.0)
        assert len(run.impacts) >= 6
        assert np.abs(run.impacts.energy_after - run.impacts.energy_before).max() < 2e-15
        assert np.ptp(run.energy) < 1e-13
