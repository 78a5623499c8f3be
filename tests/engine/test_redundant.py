"""Redundant constraints: runs with all rows move like those without redundant ones, and like independent references."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import planar_reference
import pytest
import spatial
from spatial import Matrices, Quaternions

import dalembert as da
from dalembert.systems._dependency import combination_at

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import bench_loops

STARTS = {"four_bar": 1.2, "slider_crank": 0.7}


@functools.cache
def planar(name: str, speed: float = 8.0) -> tuple[da.Hamiltonian, da.State, planar_reference.OneAngle]:
    """A planar linkage stated in space, spinning."""
    bodies, joints = getattr(spatial, name)()
    reference = getattr(planar_reference, name)()
    _, rates = reference.places(STARTS[name])
    system = spatial.mechanism(bodies, joints, (0, -9.81, 0), more=spatial.guide if name == "slider_crank" else lambda q: [])
    v0 = spatial.spun(bodies, rates[:, :2], rates[:, 2], speed)
    return system, da.consistent(system, q0=Quaternions.start(bodies), v0=v0), reference


def assert_rows_hold(run: da.Trajectory, bound: float = 1e-13) -> None:
    """All rows at round-off: their terms are of size one, those of velocities as large as velocities."""
    assert np.abs(run.residuals["g"]).max() < bound
    assert np.abs(run.residuals["g_dot"]).max() < bound * max(1.0, np.abs(run.v).max())


@pytest.mark.parametrize("name", STARTS)
def test_planar_linkages_in_space(name):
    system, start, reference = planar(name)
    run = da.simulate(system, da.LobattoIIIAB(3), start=start, h=5e-4, t1=1.0)
    assert system.n_holonomic == 23  # of which 20 are independent
    assert_rows_hold(run)
    assert run.energy[0] == pytest.approx(reference.energy(STARTS[name], 8.0), rel=1e-14)
    assert np.ptp(run.energy) < 1e-9
    exact = reference.centres(STARTS[name], 8.0, run.t[::100])
    for body in range(3):
        np.testing.assert_allclose(run.q[::100, 7 * body : 7 * body + 2], exact[:, body], rtol=0, atol=2e-10)
    assert not run.lam_unique
    assert run.stats["rescued_steps"] == run.stats["pivoted_steps"] == 0
    assert run.stats["renewals"] < 20


def test_bricard_with_all_rows_of_its_joints():
    """Ten seconds from rest; quaternions and rotation matrices, which have other redundant rows, agree."""
    bodies, joints = spatial.bricard()
    tracks = {}
    for form, bound in ((Quaternions, 1e-13), (Matrices, 1e-12)):
        system = spatial.mechanism(bodies, joints, (0, -9.81, 0), form)
        q0 = form.start(bodies)
        run = da.simulate(system, da.LobattoIIIAB(3), q0=q0, p0=np.zeros_like(q0), h=5e-3, t1=10.0)
        assert_rows_hold(run, bound)
        assert np.ptp(run.energy) < 1e-9
        # P3, the end of the third rod
        x, R = zip(*(form.pose(row[2 * form.size : 3 * form.size]) for row in run.q[::20]), strict=True)
        tracks[form] = np.array(x) + np.array(R) @ (bodies[2].rotation.T @ ([1, -1, 1] - bodies[2].centre))
    assert np.ptp(tracks[Quaternions], axis=0).max() > 0.5
    np.testing.assert_allclose(tracks[Quaternions], tracks[Matrices], rtol=0, atol=1e-9)


def weighted_pendulum(**changes):
    """Both rows are x(r - 1) and y(r - 1): neither could be kept, for each loses its derivative twice in a turn."""
    rows = {"holonomic": lambda q: [q[0] * (np.hypot(q[0], q[1]) - 1), q[1] * (np.hypot(q[0], q[1]) - 1)]}
    return da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2, **(rows | changes))


PENDULUM = weighted_pendulum(holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])
SPINNING = {"q0": [0.6, -0.8], "p0": [2.4, 1.8]}


METHODS = [
    da.Rattle(),
    da.LobattoIIIAB(3),
    da.GaussLobattoSPARK(2),
    da.adjoint(da.SymplecticEuler()),
    da.compose(da.Rattle(), 4),
    da.Variational("SE2"),
    da.HalfExplicitEuler(),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_no_single_row_can_be_kept(method):
    run = da.simulate(weighted_pendulum(), method, **SPINNING, h=0.02, steps=2000)
    alone = da.simulate(PENDULUM, method, **SPINNING, h=0.02, steps=2000)
    np.testing.assert_allclose(run.states, alone.states, rtol=0, atol=1e-11)
    if method != da.HalfExplicitEuler():  # which does not impose g_dot
        assert_rows_hold(run)
    assert np.abs(run.residuals["g"]).max() < 1e-14
    assert run.stats["renewals"] > 5


def test_other_rows_are_combined_where_those_of_the_start_fail():
    """Rows in other variables are combined only where they must be: at first the first row is left out for the second."""
    rows = [lambda q: q[0] * (np.hypot(q[0], q[1]) - 1), lambda q: q[1] * (2 + np.cos(q[2])) * (np.hypot(q[0], q[1]) - 1)]
    systems = [
        da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=3, holonomic=g) for g in (rows, lambda q: [np.hypot(q[0], q[1]) - 1])
    ]
    start = {"q0": [0.6, -0.8, 0.0], "p0": [2.4, 1.8, 0.3]}
    run, alone = (da.simulate(system, da.Rattle(), **start, h=0.02, steps=1000) for system in systems)
    np.testing.assert_allclose(run.states, alone.states, rtol=0, atol=1e-11)
    assert_rows_hold(run)


def test_multipliers_are_those_of_least_norm():
    """The force is G^T lam; of all lam with this force (x, y) lam_alone is the shortest, on the unit circle."""
    run = da.simulate(weighted_pendulum(), da.Rattle(), **SPINNING, h=0.02, steps=100)
    alone = da.simulate(PENDULUM, da.Rattle(), **SPINNING, h=0.02, steps=100)
    np.testing.assert_allclose(run.lam, alone.lam * alone.q, rtol=1e-9, atol=1e-12)
    assert alone.lam_unique and not run.lam_unique


def test_redundant_rows_that_say_nothing():
    """A row that is identically zero, as planar mechanisms leave behind, and one that follows from two others."""
    system = weighted_pendulum(holonomic=lambda q: [0 * q[0], np.hypot(q[0], q[1]) - 1, 2 * (q @ q) - 2])
    run = da.simulate(system, da.Rattle(), **SPINNING, h=0.02, steps=100)
    np.testing.assert_allclose(run.states, da.simulate(PENDULUM, da.Rattle(), **SPINNING, h=0.02, steps=100).states, atol=1e-13)
    np.testing.assert_array_equal(run.lam[:, 0], 0)


@pytest.mark.parametrize(
    ("storeys", "space", "stages"), [(102, False, 2), *(pytest.param(n, True, 3, marks=pytest.mark.slow) for n in (14, 40))]
)
def test_loops_of_a_large_system(storeys, space, stages):
    """More than 300 rows: towers of parallelograms, 42 or more rows too many, of order against pendulums in their angles."""
    angles, time = 0.2 + 0.1 * np.sin(np.arange(storeys)), 0.012 if stages == 2 else 0.048
    if space:
        system, start = bench_loops.tower_in_space(angles)
        exact = bench_loops.beams_in_space(bench_loops.angles_after(angles, time, bench_loops.CRANK)).ravel()
    else:
        system, start = bench_loops.tower(storeys), bench_loops.start_of(angles)
        exact = bench_loops.start_of(bench_loops.angles_after(angles, time))["q0"]
    errors = []
    for steps in (6, 12):
        run = da.simulate(system, da.LobattoIIIAB(stages), **start, h=time / steps, steps=steps, save_every=steps)
        assert_rows_hold(run)
        assert run.stats["rescued_steps"] == run.stats["pivoted_steps"] == 0 and not run.lam_unique
        found = np.stack([run.q[1, 14::21], run.q[1, 15::21]], axis=1).ravel() if space else run.q[1]
        errors.append(np.abs(found - exact).max())
    assert system.n_holonomic > 300 and abs(np.log2(errors[0] / errors[1]) - (2 * stages - 2)) < 0.2
    matrix, rhs = (system.evaluate(f"multiplier_{part}", run.t[1], run.q[1], run.p[1]) for part in ("matrix", "rhs"))
    shortest = np.linalg.pinv(matrix, rcond=1e-10, hermitian=True) @ rhs
    np.testing.assert_allclose(run.lam[1], shortest, rtol=0, atol=1e-9 * np.abs(shortest).max())


def test_each_loop_has_combinations_of_its_own():
    """Three parallelograms between four cranks on the ground: hinges that two loops share are left as they are."""
    m = da.Mechanism(gravity=(0, -9.81, 0))
    foot, tip = (lambda k: np.array([0.2 * k, 0, 0])), (lambda k: np.array([0.2 * k + 0.05, 0.08, 0]))
    cranks = []
    for k in range(4):
        cranks.append(m.body(f"crank {k}", mass=0.2, inertia=np.diag([1e-5, 1.7e-4, 1.7e-4]), at=(foot(k) + tip(k)) / 2))
        m.revolute(m.ground, cranks[k], at=foot(k), axis=(0, 0, 1))
    for k in range(3):
        bar = m.body(f"bar {k}", mass=0.3, inertia=np.diag([1e-5, 1e-3, 1e-3]), at=(tip(k) + tip(k + 1)) / 2)
        m.revolute(cranks[k], bar, at=tip(k), axis=(0, 0, 1))
        m.revolute(bar, cranks[k + 1], at=tip(k + 1), axis=(0, 0, 1))
    start, system = m.start(), m.system()
    combination, _ = combination_at(system, 0.0, start.q, start.p, start.theta)
    groups = combination.holonomic
    assert [len(group.dropped) for group in groups] == [3, 3, 3]  # as many as for one loop in a plane
    for group in groups:
        others = {row for other in groups if other is not group for row in other.component}
        assert not set(group.rows) & others
    assert combination.size <= 3 * 5 * 12


def test_a_tower_of_redundant_parallelograms_is_a_chain_of_pendulums():
    """Order 2 of places against the chain in its angles, with 8 of 24 rows too many (benchmarks/bench_loops.py)."""
    angles, errors = 0.4 + 0.3 * np.sin(np.arange(8)), []
    exact = bench_loops.start_of(bench_loops.angles_after(angles, 0.2))["q0"]
    for steps in (50, 100, 200):
        system = bench_loops.tower(8)
        run = da.simulate(system, da.Rattle(), **bench_loops.start_of(angles), h=0.2 / steps, steps=steps)
        errors.append(np.abs(run.q[-1] - exact).max())
        assert_rows_hold(run)
        assert not run.lam_unique
    np.testing.assert_allclose(np.log2(np.array(errors)[:-1] / errors[1:]), 2.0, atol=0.2)


# -- nonholonomic constraints ----------------------------------------------------------------------------------------


def cart(nonholonomic, holonomic=None) -> da.Lagrangian:
    """A cart of 12 kg on two wheels of 4 cm under a load that pulls it: x, y, angle, and the angles of the wheels."""

    def L(q, v):
        return 6.0 * (v[0] ** 2 + v[1] ** 2) + 0.2 * v[2] ** 2 + 1e-4 * (v[3] ** 2 + v[4] ** 2) - 2.0 * q[0]

    return da.Lagrangian(L, dim=5, nonholonomic=nonholonomic, holonomic=holonomic)


def rolling(q, v):
    """Both wheels roll: 0.3 m apart, their forward speeds are those of the cart at the wheels, and neither slips sideways."""
    forward = np.cos(q[2]) * v[0] + np.sin(q[2]) * v[1]
    sideways = np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]
    return [sideways, forward - 0.15 * v[2] - 0.04 * v[3], sideways, forward + 0.15 * v[2] - 0.04 * v[4]]


def test_both_wheels_of_an_axle_forbid_to_slip_sideways():
    start = {"q0": [0.0] * 5, "v0": [0.5, 0.0, 0.4, (0.5 - 0.06) / 0.04, (0.5 + 0.06) / 0.04]}
    method = da.GaussLobattoSPARK(2)
    run = da.simulate(cart(rolling), method, **start, h=0.01, steps=300)
    alone = da.simulate(cart(lambda q, v: [rolling(q, v)[k] for k in (0, 1, 3)]), method, **start, h=0.01, steps=300)
    np.testing.assert_allclose(run.q, alone.q, rtol=0, atol=1e-12)
    assert np.abs(run.residuals["k"]).max() < 1e-13
    np.testing.assert_allclose(run.psi[:, [0, 2]], alone.psi[:, :1] / 2 * [1, 1], rtol=1e-9, atol=1e-9)  # half each
    np.testing.assert_allclose(run.psi[:, [1, 3]], alone.psi[:, 1:], rtol=1e-9, atol=1e-9)
    assert not run.lam_unique and alone.lam_unique


def test_nonholonomic_rows_that_follow_from_holonomic_ones():
    """0.04 (w_4 - w_3) = 0.3 angle for the angles of the wheels follows from rolling, and is stated besides."""
    start = {"q0": [0.0] * 5, "v0": [0.5, 0.0, 0.4, (0.5 - 0.06) / 0.04, (0.5 + 0.06) / 0.04]}
    method = da.GaussLobattoSPARK(2)
    run = da.simulate(cart(rolling, lambda q: [0.3 * q[2] - 0.04 * (q[4] - q[3])]), method, **start, h=0.01, steps=100)
    alone = da.simulate(cart(lambda q, v: [rolling(q, v)[k] for k in (0, 1, 3)]), method, **start, h=0.01, steps=100)
    np.testing.assert_allclose(run.q, alone.q, rtol=0, atol=1e-10)  # of another method: one constraint is imposed on positions
    for name in ("g", "g_dot", "k"):
        assert np.abs(run.residuals[name]).max() < 1e-13


# -- everything else sees the system as it was stated -------------------------------------------------------------------


def test_projection_onto_redundant_rows():
    """From a guess off the constraints onto them, in the metric of masses: as without the redundant rows."""
    bodies, joints = spatial.four_bar()
    system = spatial.mechanism(bodies, joints, (0, -9.81, 0))
    alone = spatial.mechanism(bodies, joints, (0, -9.81, 0), without=(17, 18, 19))
    random = np.random.default_rng(1)
    q0 = Quaternions.start(bodies)
    guess, v0 = q0 + 3e-3 * random.standard_normal(len(q0)), random.standard_normal(len(q0))
    state, expected = (da.consistent(model, q0=guess, v0=v0) for model in (system, alone))
    assert np.abs(state.residuals["g"]).max() < 1e-15 and np.abs(state.residuals["g_dot"]).max() < 1e-14
    np.testing.assert_allclose(state.q, expected.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(state.p, expected.p, rtol=0, atol=1e-12)
    G, H = (model.evaluate("G", 0.0, state.q) for model in (system, alone))
    np.testing.assert_allclose(state.lam @ G, expected.lam @ H, rtol=0, atol=1e-9)  # the same reaction
    assert np.linalg.norm(state.lam) < np.linalg.norm(expected.lam) * (1 + 1e-12)


def test_four_bar_without_redundant_rows_moves_alike():
    system, start, _ = planar("four_bar")
    bodies, joints = spatial.four_bar()
    alone = spatial.mechanism(bodies, joints, (0, -9.81, 0), without=(17, 18, 19))
    runs = [da.simulate(model, da.Rattle(), q0=start.q, p0=start.p, h=1e-3, steps=500) for model in (system, alone)]
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(runs[0].energy, runs[1].energy, rtol=0, atol=1e-12)


@pytest.mark.parametrize("simd", [False, True])
def test_members_have_combinations_of_their_own(simd):
    system, angles = weighted_pendulum(), np.array([0.3, 1.0, 2.0, 4.0, 5.5])
    q0 = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    p0 = np.array([[2.0], [1.0], [2.5], [3.0], [0.0]]) * np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    many = da.simulate_many(system, da.Rattle(), q0=q0, p0=p0, h=0.02, steps=500, simd=simd)
    alone = da.simulate_many(PENDULUM, da.Rattle(), q0=q0, p0=p0, h=0.02, steps=500)
    assert many.status == ("done",) * 5
    np.testing.assert_allclose(many.states, alone.states, rtol=0, atol=1e-11)
    np.testing.assert_allclose(many.lam, alone.lam * alone.q, rtol=1e-8, atol=1e-11)
    assert np.abs(many.residuals["g"]).max() < 1e-14
    assert not many.lam_unique and not many[2].lam_unique
    assert list(many[0].parameters) == []


def test_parameters_stay_those_of_the_model():
    def rows(q, r):
        return [np.hypot(q[0], q[1]) - r, q @ q - r**2]

    system = da.Hamiltonian(lambda q, p, m: p @ p / (2 * m) + m * q[1], dim=2, holonomic=rows, params={"m": 0.2, "r": 1.0})
    run = da.simulate(system, da.Rattle(), q0=[0.0, 2.0], v0=[1.0, 0.0], params={"r": 2.0}, h=0.01, steps=10)
    assert {name: float(value) for name, value in run.parameters.items()} == {"m": 0.2, "r": 2.0}
    assert run.fingerprint == system.fingerprint
    many = da.simulate_many(
        system, da.Rattle(), q0=[[0.0, 1.0], [0.0, 2.0]], v0=[1.0, 0.0], params={"r": [1.0, 2.0]}, h=0.01, steps=10
    )
    np.testing.assert_allclose(many[1].states, run.states, rtol=0, atol=1e-14)


def test_a_stored_run_is_resumed_bit_for_bit(tmp_path):
    pytest.importorskip("zarr")
    system, options = weighted_pendulum(), {"h": 0.02, **SPINNING}
    import dalembert.runs._stored_run as stored

    whole = da.simulate(system, da.Rattle(), **options, steps=900, save_to=tmp_path / "whole.zarr")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "CHUNK_NUMBERS", 400)  # chunks of 100 steps
        short = da.simulate(system, da.Rattle(), **options, steps=350, save_to=tmp_path / "run.zarr")
        resumed = da.resume(tmp_path / "run.zarr", system, da.Rattle(), steps=900)
        again = da.simulate(system, da.Rattle(), **options, steps=900, save_to=tmp_path / "again.zarr")
    np.testing.assert_array_equal(resumed.states[:], again.states[:])
    np.testing.assert_allclose(resumed.states[:], whole.states[:], rtol=0, atol=1e-12)
    assert len(short) == 351 and resumed.stats["renewals"] > 5
    assert not resumed.lam_unique
    assert np.abs(resumed.residuals["g"]).max() < 1e-14


def test_saved_runs_say_that_multipliers_are_not_unique(tmp_path):
    run = da.simulate(weighted_pendulum(), da.Rattle(), **SPINNING, h=0.02, steps=10)
    loaded = da.load(run.save(tmp_path / "run.npz"))
    assert not loaded.lam_unique
    np.testing.assert_array_equal(loaded.lam, run.lam)


def test_dense_output():
    method, times = da.LobattoIIIAB(3), np.linspace(0.0, 4.0, 101)
    inside, alone = (
        da.simulate(system, method, **SPINNING, h=0.05, steps=100).at(times) for system in (weighted_pendulum(), PENDULUM)
    )
    np.testing.assert_allclose(inside.q, alone.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(inside.p, alone.p, rtol=0, atol=1e-12)
    assert inside.lam.shape == (101, 2)


def test_poincare_section():
    sections = [
        da.poincare(system, da.Rattle(), section=lambda q: q[0], **SPINNING, h=0.02, steps=1000)
        for system in (weighted_pendulum(), PENDULUM)
    ]
    assert len(sections[0].t) > 5
    np.testing.assert_allclose(sections[0].t, sections[1].t, rtol=0, atol=1e-11)
    np.testing.assert_allclose(sections[0].states, sections[1].states, rtol=0, atol=1e-11)
    np.testing.assert_allclose(sections[0].lam, sections[1].lam * sections[1].q, rtol=1e-8, atol=1e-10)


def test_steps_are_symplectic_on_the_constraints():
    system = weighted_pendulum()
    state = da.consistent(system, **SPINNING)
    assert da.verify.symplecticity_defect(system, da.Rattle(), start=state, h=0.1) < 1e-13
    assert da.verify.reversibility_defect(system, da.Rattle(), start=state, h=0.1) < 1e-13


@pytest.mark.parametrize("redundant", [0, 1])
def test_members_of_which_one_is_redundant_are_refused_by_number(redundant):
    rows = {"holonomic": lambda q, a: [np.hypot(q[0], q[1]) - 1, np.hypot(q[0], q[1]) - 1 + a * q[2]], "params": {"a": 1.0}}
    system = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=3, **rows)
    values, start = np.roll([0.0, 1.0], redundant), {"q0": [0.6, -0.8, 0.0], "p0": [0.8, 0.6, 0.0]}
    with pytest.raises(da.InconsistentStart, match=r"member 1: .*redundant.*ensemble of"):
        da.simulate_many(system, da.Rattle(), **start, params={"a": values}, h=0.01, steps=5)


def test_stage_multipliers_are_refused():
    with pytest.raises(da.UnsupportedSystem, match=r"redundant.*run\.lam"):
        da.simulate(weighted_pendulum(), da.Rattle(), **SPINNING, h=0.1, steps=1, stage_multipliers=True)


# -- refusals ---------------------------------------------------------------------------------------------------------


def masses(holonomic, dim=2):
    return da.Hamiltonian(lambda q, p: p @ p / 0.4, dim=dim, holonomic=holonomic)


REFUSED = {
    "contradiction": (
        masses(lambda q: [q[0], q[0] - 1e-3]),
        [0.0, 0.0],
        ["holonomic[0] and holonomic[1]", "contradict", "0.0005", "correct or remove"],
    ),
    "two bars in one line": (
        masses(lambda q: [q @ q - 1, (q[0] - 2) ** 2 + q[1] ** 2 - 1]),
        [1.0, 0.0],
        ["holonomic[0] and holonomic[1]", "hold together only at the initial values", "misses by"],
    ),
    "row without derivative": (
        masses(lambda q: [(np.hypot(q[0], q[1]) - 1) ** 2]),
        [0.6, 0.8],
        ["holonomic[0]", "vanishes", "changes its sign"],
    ),
    "and one beside it": (
        masses(lambda q: [q @ q - 1, (np.hypot(q[0], q[1]) - 1) ** 2]),
        [0.6, 0.8],
        ["holonomic[1]", "vanishes"],
    ),
    "parallelogram that lies flat": (
        masses(
            lambda q: [q[0] ** 2 + q[1] ** 2 - 1, (q[2] - 2) ** 2 + q[3] ** 2 - 1, (q[0] - q[2]) ** 2 + (q[1] - q[3]) ** 2 - 4],
            dim=4,
        ),
        [1.0, 0.0, 3.0, 0.0],
        ["singular position", "2 of the 3", "start elsewhere"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    system, q0, words = REFUSED[name]
    with pytest.raises(da.InconsistentStart) as caught:
        da.simulate(system, da.Rattle(), q0=q0, p0=np.zeros(len(q0)), h=0.01, steps=10)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


def test_contradiction_is_refused_by_a_projection():
    with pytest.raises(da.InconsistentStart, match=r"holonomic\[0\] and holonomic\[1\] contradict each other"):
        da.consistent(masses(lambda q: [q[0], q[0] - 1e-3]), q0=[0.3, 0.0], p0=[0.0, 0.0])


def test_rows_that_contradict_each_other_later_are_refused_there():
    """The second row says the same until x = 0.5, and something else from then on."""
    system = masses(lambda q: [q[1], q[1] * 2 + 1e-6 * np.maximum(q[0] - 0.5, 0) ** 3])
    with pytest.raises(da.StepFailed, match="contradict") as caught:
        da.simulate(system, da.Rattle(), q0=[0.0, 0.0], v0=[1.0, 0.0], h=0.01, steps=200)
    assert 0.4 < caught.value.run.q[-1, 0] < 0.6


def test_index_reduction_refuses_redundant_rows():
    with pytest.raises(da.UnsupportedSystem, match=r"1 of the 2 constraints are redundant.*remove 1 of them, such as"):
        da.reduce_index(weighted_pendulum()).simulate("DOP853", t1=1.0, **SPINNING)


def test_a_ball_in_a_slot_that_is_stated_twice_bounces_when_it_should():
    system = da.Hamiltonian(
        lambda q, p: p @ p / 2 + q[1], dim=2, holonomic=lambda q: [q[0], 2 * q[0]], unilateral=lambda q: q[1]
    )
    run = da.simulate(system, da.CVA(), q0=[0.0, 1.0], p0=[0.0, 0.0], h=0.01, t1=10.0)
    assert np.allclose(run.impacts.t, np.sqrt(2) * np.array([1, 3, 5, 7]), atol=1e-12)


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Rattle(), da.GaussLobattoSPARK(2)], ids=str)
def test_thin_rods_on_hinges_that_turn_far_in_a_step_are_not_refused(method):
    """Rows that nearly depend on each other at both ends of a step did so seemingly between these: it was refused at any h."""

    def turned(coordinates, method, h):
        place = (lambda x, z: (x, 0.0, z)) if coordinates == "quaternion" else (lambda x, z: (x, z))
        gravity, hinged = place(0.0, -9.81), {"axis": (0, -1, 0)} if coordinates == "quaternion" else {}
        m = da.Mechanism(gravity=gravity, coordinates=coordinates)
        points = [place(*at) for at in ((0.0, 0.0), (0.0, 0.1), (0.29, 0.2498), (0.3, 0.0))]
        ends = {"crank": (0, 1), "coupler": (1, 2), "rocker": (3, 2)}
        crank, coupler, rocker = (m.rod(name, points[i], points[j], mass=0.2, width=0.01) for name, (i, j) in ends.items())
        hinge = m.revolute(m.ground, crank, at=points[0], **hinged)
        m.revolute(crank, coupler, at=points[1], **hinged)
        m.revolute(coupler, rocker, at=points[2], **hinged)
        m.revolute(m.ground, rocker, at=points[3], **hinged)
        run = da.simulate(m, method, start=m.start(rates={hinge: -8.0}), h=h, t1=1.0)
        return run.of(hinge).angle[-1], run

    right, _ = turned("planar", da.LobattoIIIAB(3), 2.5e-4)
    found, run = turned("quaternion", method, 2e-3)
    assert abs(found - right) < (1e-2 if method == da.Rattle() else 1e-5) and abs(right) > 6.0
    assert run.stats["rescued_steps"] == 0 and np.abs(run.residuals["g"]).max() < 1e-13
