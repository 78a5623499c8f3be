"""Convergence by coordinate and acceptance by row: no units, no fast neighbour and no kind of row hides an error."""

from __future__ import annotations

import bricard as mechanism
import numpy as np
import pytest
from four_bar import SI, in_units, linkage, start

import dalembert as da

SOME = (da.Rattle(), da.LobattoIIIAB(3), da.GaussLobattoSPARK(2), da.RadauIIA(2, projected=True), da.SymplecticEuler())
PENDULUM = {"m": 0.2, "g": 9.81, "l": 0.35}


def bob(q, p, m, g):
    return p[:2] @ p[:2] / (2 * m) + m * g * q[1]


def rod(q, l):  # noqa: E741
    return [(q[0] ** 2 + q[1] ** 2 - l**2) / l]


def alone() -> da.Hamiltonian:
    return da.Hamiltonian(bob, dim=2, holonomic=rod, params=PENDULUM)


@pytest.mark.parametrize("speed", [1e6, 1e9])
@pytest.mark.parametrize("method", SOME, ids=str)
def test_a_fast_rotor_hides_no_error_of_a_pendulum(method, speed):
    """The rotor does not act on the pendulum: its motion is that of the pendulum alone. It was off by up to 6e-8."""
    inertia, h, steps = 1e-4, 1e-2, 300
    both = da.Hamiltonian(lambda q, p, m, g: bob(q, p, m, g) + p[2] ** 2 / (2 * inertia), dim=3, holonomic=rod, params=PENDULUM)
    wanted = da.simulate(alone(), method, q0=[0.35, 0.0], p0=[0.0, -0.1], h=h, steps=steps)
    run = da.simulate(both, method, q0=[0.35, 0.0, 0.0], p0=[0.0, -0.1, inertia * speed], h=h, steps=steps)
    np.testing.assert_allclose(run.q[:, :2], wanted.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(run.p[:, :2], wanted.p, rtol=0, atol=1e-14)
    assert run.stats["newton_iterations"] <= 1.02 * wanted.stats["newton_iterations"] + 5


@pytest.mark.parametrize("method", [da.Gauss(2), da.Gauss(3), da.RadauIIA(2), da.LobattoIIIAB(3)], ids=str)
def test_a_rotor_that_acts_on_a_pendulum_hides_no_error(method):
    """A disk at 1e6 rad/s drags an arm by viscous friction.

    With the torque c (W - w) on the arm and its opposite on the disk, the disk slows down as exp(-c t / J) up to 1e-6 of its
    speed, whatever the arm does: the arm alone, driven by that, is another model of the same motion.
    """
    J, I, c, h = 1e-4, 0.02, 1e-9, 1e-3  # noqa: E741
    system = da.Hamiltonian(
        lambda q, p: p[0] ** 2 / (2 * J) + p[1] ** 2 / (2 * I) - 0.4 * np.cos(q[1]),
        dim=2,
        force=lambda v: np.array([-c * (v[0] - v[1]), c * (v[0] - v[1])], like=v),
    )
    arm = da.Hamiltonian(
        lambda q, p: p[0] ** 2 / (2 * I) - 0.4 * np.cos(q[0]),
        dim=1,
        force=lambda t, v: np.array([c * (1e6 * np.exp(-c * t / J) - v[0])], like=v),
    )
    run = da.simulate(system, method, q0=[0.0, 1.0], p0=[J * 1e6, 0.0], h=h, steps=400)
    exact = da.simulate(arm, da.Gauss(6), q0=[1.0], p0=[0.0], h=h, steps=400)
    fine = da.simulate(arm, method, q0=[1.0], p0=[0.0], h=h, steps=400)
    # The disk's speed is exp(-c t / J) up to terms in w, which are 1e-6 of it.
    assert np.abs(run.q[:, 1] - exact.q[:, 0]).max() < np.abs(fine.q[:, 0] - exact.q[:, 0]).max() + 1e-10


@pytest.mark.parametrize("method", SOME, ids=str)
def test_a_coordinate_at_rest_up_to_rounding_costs_nothing(method):
    """A pendulum in a plane of space that is turned against the axes: the velocity across it is what rounding leaves."""
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    space = da.Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + m * g * (turn[1] @ q), dim=3,
        holonomic=lambda q: [(q @ q - 0.35**2) / 0.35], params={"m": 0.2, "g": 9.81},
    )  # fmt: skip
    plane = da.simulate(alone(), method, q0=[0.35, 0.0], p0=[0.0, -0.1], h=1e-2, steps=300)
    run = da.simulate(space, method, q0=0.35 * turn[0], p0=-0.1 * turn[1], h=1e-2, steps=300)
    np.testing.assert_allclose(run.q @ turn.T[:, :2], plane.q, atol=1e-12)
    assert run.stats["newton_iterations"] <= 1.05 * plane.stats["newton_iterations"] + 5
    assert run.stats["rescued_steps"] == 0


@pytest.mark.parametrize("scales", [(1e9, 1e-9), (1e-9, 1e9), (1e-9, 1e-9)])
@pytest.mark.parametrize("method", SOME, ids=str)
def test_scales_of_constraints_do_not_matter(method, scales):
    def double(factors):
        def rods(q):
            a, b = q[:2], q[2:] - q[:2]
            return [factors[0] * (a @ a - 0.09), factors[1] * (b @ b - 0.04)]

        return da.Hamiltonian(
            lambda q, p: p[:2] @ p[:2] / 0.4 + p[2:] @ p[2:] / 0.1 + 9.81 * (0.2 * q[1] + 0.05 * q[3]), dim=4, holonomic=rods
        )

    given = {"q0": [0.3, 0.0, 0.5, 0.0], "p0": [0.0, 0.02, 0.0, -0.03], "h": 5e-3, "steps": 100}
    wanted, run = (da.simulate(double(factors), method, **given) for factors in ((1.0, 1.0), scales))
    np.testing.assert_allclose(run.q, wanted.q, atol=2e-13)
    np.testing.assert_allclose(run.p, wanted.p, atol=2e-13)
    assert np.all(np.abs(run.residuals["g"]).max(axis=0) < 1e-15 * np.array(scales))


UNITS = {"CGS": (1e3, 1e2, 1.0), "lengths of 1e-9": (1.0, 1e-9, 1.0), "astronomical": (1 / 2e30, 1 / 1.5e11, 1 / 3.15e7)}


@pytest.mark.parametrize("units", UNITS)
def test_units_of_a_four_bar_in_vector_lanes_do_not_matter(units):
    mass, length, time = UNITS[units]
    values = in_units(mass, length, time)
    starts = [start(crank=crank, rate=3.0) for crank in np.linspace(0.5, 2.5, 8)]
    other = [start(values, crank=crank, rate=3.0 / time) for crank in np.linspace(0.5, 2.5, 8)]
    runs = []
    for parameters, given, h in ((SI, starts, 2e-3), (values, other, 2e-3 * time)):
        rows = {name: np.array([one[name] for one in given]) for name in ("q0", "p0")}
        runs.append(da.simulate_many(linkage(parameters), da.LobattoIIIAB(3), **rows, h=h, steps=100, simd=True))
    np.testing.assert_allclose(runs[1].q / ([length, length, 1.0] * 3), runs[0].q, atol=1e-13)


@pytest.mark.parametrize("method", [da.Rattle(), da.LobattoIIIAB(3)], ids=str)
def test_units_of_a_spatial_mechanism_do_not_matter(method):
    given = {"p0": np.zeros(60), "steps": 100}
    wanted = da.simulate(mechanism.bricard(), method, q0=mechanism.start(1.0), h=5e-3, **given)
    for mass, length, time in UNITS.values():
        system = mechanism.bricard(mass, length, mechanism.G * length / time**2)
        run = da.simulate(system, method, q0=mechanism.start(length), h=5e-3 * time, **given)
        assert run.stats["rescued_steps"] == run.stats["pivoted_steps"] == 0
        np.testing.assert_allclose(run.q / np.tile([length] * 3 + [1.0] * 9, 5), wanted.q, atol=1e-12)


@pytest.mark.parametrize("method", [da.Rattle(), da.LobattoIIIAB(3)], ids=str)
def test_every_row_of_bricards_mechanism_is_at_round_off(method):
    """In every one of 1000 steps, and all rows of the hinges, of which one is not imposed."""
    system = mechanism.bricard()
    run = da.simulate(system, method, q0=mechanism.start(1.0), p0=np.zeros(60), h=1e-3, steps=1000)
    assert run.status == "done" and run.stats["rescued_steps"] == 0
    depends = system.evaluate("G", 0.0, np.random.default_rng(1).normal(size=60)) != 0
    for q, g in zip(run.q, run.residuals["g"], strict=True):
        gradient = system.evaluate("G", 0.0, q)
        sizes = np.linalg.norm(gradient, axis=1) * np.sqrt(depends @ q**2)
        assert np.all(np.abs(g) <= 1e-13 * np.maximum(sizes, 1.0))  # rods of 1 m
    assert np.abs(run.residuals["g_dot"]).max() < 1e-12
    every = np.array([mechanism.rows_of(q, 1.0) for q in run.q[::50]])
    assert np.abs(every).max() < 1e-13


def test_a_mechanism_in_displacements_rests_where_all_coordinates_vanish():
    """A hanging pendulum whose coordinates are measured from where it rests: rounding errors of the rod have no other size."""
    hanging = da.Hamiltonian(
        lambda q, p: p @ p / 0.4 + 0.2 * 9.81 * q[1], dim=2, holonomic=lambda q: [np.hypot(q[0], 0.35 - q[1]) - 0.35]
    )
    for h in (1e-2, 1e-5):
        run = da.simulate(hanging, da.LobattoIIIAB(3), q0=[0.0, 0.0], p0=[0.0, 0.0], h=h, steps=50)
        assert np.abs(run.q).max() < 1e-15
