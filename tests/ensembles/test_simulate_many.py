"""simulate_many: each member is what simulate gives, whatever happens to the others."""

from __future__ import annotations

import _thread
import threading

import numpy as np
import pytest
from ensemble_cases import Case, angles, double_pendulums, falling_into_a_hole, hanging, rolling_coins, sliding_blocks

import dalembert as da
from dalembert.compiler import _orders, _program
from dalembert.engine import _ensemble_run as _ensemble


def composed() -> Case:
    return double_pendulums(7, da.compose(da.Rattle(), da.schemes.suzuki(4)))


def prepared() -> Case:
    return double_pendulums(7, da.Shake(), h=0.01)


def cases() -> dict[str, Case]:
    q0 = hanging(angles(7, 5, 0.3))
    return {
        "constrained": double_pendulums(21, da.LobattoIIIAB(3)),
        "steps that need a rescue": double_pendulums(12, da.LobattoIIIAB(3), h=0.9, width=3.0),
        "unconstrained": Case(
            da.problems.double_pendulum_in_angles(), da.Gauss(3), 0.05, {"q0": angles(7, 2), "p0": angles(7, 2, 0.5)}
        ),
        "explicit": Case(
            da.Hamiltonian(lambda q, p: p @ p / 2 + q[0] ** 4, dim=1),
            da.SymplecticEuler(),
            0.1,
            {"q0": angles(5, 1), "p0": angles(5, 1)},
        ),
        "composition": composed(),
        "prepared first step": prepared(),
        "nonholonomic": rolling_coins(6),
        "nonlinear in the multipliers": sliding_blocks(5),
        "five links": Case(_chain(5), da.LobattoIIIAB(3), 0.05, {"q0": q0, "p0": np.zeros_like(q0)}),
    }


def _chain(links: int) -> da.Hamiltonian:
    return da.Hamiltonian(
        lambda q, p: p @ p / 2 + sum(q[1::2]),
        dim=2 * links,
        holonomic=lambda q: [
            np.hypot(*(q[2 * k : 2 * k + 2] - (q[2 * k - 2 : 2 * k] if k else np.zeros(2)))) - 1 for k in range(links)
        ],
    )


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("stored", [1, 7])
def test_every_member_is_bit_for_bit_a_single_run(name, stored):
    case = cases()[name]
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=60, save_every=stored, simd=False)
    for k, run in enumerate(runs):
        alone = da.simulate(
            case.system, case.method, **case.member(k), h=case.h, steps=60, save_every=stored, on_failure="return"
        )
        assert run.status == alone.status == runs.status[k] and run.message == alone.message == runs.message[k]
        assert np.array_equal(run.t, alone.t) and np.array_equal(run.states, alone.states)
        assert np.array_equal(run.v, alone.v) and np.array_equal(run.lam, alone.lam)
        assert run.stats["newton_iterations"] == alone.stats["newton_iterations"]
        for count in ("rescued_steps", "followed_steps", "pivoted_steps"):
            assert run.stats[count] == alone.stats[count]
        assert {name: value.tolist() for name, value in run.parameters.items()} == {
            name: value.tolist() for name, value in alone.parameters.items()
        }


def test_the_case_with_large_steps_needs_rescues():
    case = cases()["steps that need a rescue"]
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=60, simd=False)
    assert runs.stats["rescued_steps"] > 0


def test_elimination_in_loops_is_bit_for_bit_too(monkeypatch):
    monkeypatch.setattr(_program, "STRAIGHT_LINE_LIMIT", -1)
    monkeypatch.setattr(_program, "_programs", {})
    case = double_pendulums(5, da.LobattoIIIAB(3))
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=100)
    assert runs.stats["lanes"] == 1
    for k in range(5):
        alone = da.simulate(case.system, case.method, **case.member(k), h=case.h, steps=100)
        assert np.array_equal(runs.q[k], alone.q)


def test_members_beyond_the_orders_of_their_own_are_the_same_to_round_off(monkeypatch):
    """Links along the axes: pivots of the order that other starts share vanish there, and not the same ones for all."""
    right = np.pi / 2
    starts = hanging(np.array([[right, 0], [0, right], [-right, 0], [right, right], [0, -right], [right, -right], [0.3, 0.4]]))
    problem, method, programs = da.problems.double_pendulum(), da.LobattoIIIAB(3), []

    def counted(*arguments, **options):
        programs.append(build_programs(*arguments, **options))
        return programs[-1]

    build_programs = _ensemble.build_programs
    monkeypatch.setattr(_ensemble, "build_programs", counted)
    options = {"p0": np.zeros(4), "h": 0.05, "steps": 60}
    own = da.simulate_many(problem, method, q0=starts, **options, simd=False)
    monkeypatch.setattr(_orders, "OWN_ORDERS", 1)
    monkeypatch.setattr(_orders, "_needed", {})  # as in a new process
    shared = da.simulate_many(problem, method, q0=starts, **options, simd=False)
    assert len(set(programs[1])) < len(set(programs[0]))
    for k, q0 in enumerate(starts):
        alone = da.simulate(problem, method, q0=q0, **options)
        assert np.array_equal(own.states[k], alone.states)
        assert shared.status[k] == "done" and np.abs(shared.states[k] - alone.states).max() < 1e-12


@pytest.mark.parametrize("simd", [False, True])
def test_any_number_of_workers_gives_the_same(simd):
    case = double_pendulums(40, da.LobattoIIIAB(3))
    one, three = (
        da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=100, workers=workers, simd=simd)
        for workers in (1, 3)
    )
    assert np.array_equal(one.states, three.states)


def test_the_arrays_of_an_ensemble_are_those_of_its_members():
    case = double_pendulums(6, da.LobattoIIIAB(3))
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=20, save_every=5, simd=False)
    assert len(runs) == 6 and runs.q.shape == (6, 5, 4) and runs.energy.shape == (6, 5) and runs.lam.shape == (6, 5, 2)
    assert runs.psi.shape == (6, 5, 0) and runs.parameters["g"].shape == (6,) and runs.last.shape == (6, 8)
    for k, run in enumerate(runs):
        for name in ("t", "q", "p", "v", "lam", "energy"):
            mine = getattr(runs, name)
            assert np.array_equal(mine if name == "t" else mine[k], getattr(run, name))
        assert all(np.array_equal(runs.residuals[name][k], run.residuals[name]) for name in ("g", "g_dot"))
    assert np.array_equal(runs[-1].q, runs.q[5])
    with pytest.raises(IndexError):
        runs[6]
    with pytest.raises(AttributeError, match="q and p"):
        runs._block("x")


def test_one_parameter_or_one_start_serves_all_members():
    problem = da.problems.double_pendulum()
    runs = da.simulate_many(problem, da.Rattle(), params={"g": [1.0, 2.0, 3.0], "m1": 2.0}, h=0.05, steps=10)
    assert np.array_equal(runs.q[:, 0], np.tile(problem.q0, (3, 1)))
    assert runs.parameters["g"].tolist() == [1, 2, 3] and runs.parameters["m1"].tolist() == [2, 2, 2]
    alone = da.simulate(problem, da.Rattle(), params={"g": 3.0, "m1": 2.0}, h=0.05, steps=10)
    assert np.array_equal(runs[2].q, alone.q)


def test_consistent_states_are_starts():
    problem = da.problems.double_pendulum()
    starts = [da.consistent(problem.system, q0=[0.5, -1, x, -2], p0=np.zeros(4), params={"g": 1 + x}) for x in (0.1, 0.4)]
    runs = da.simulate_many(problem, da.LobattoIIIAB(3), start=starts, h=0.1, steps=30, simd=False)
    for run, start in zip(runs, starts, strict=True):
        assert np.array_equal(run.q, da.simulate(problem, da.LobattoIIIAB(3), start=start, h=0.1, steps=30).q)


@pytest.mark.parametrize("simd", [False, True])
def test_a_member_that_fails_does_not_stop_the_others(simd):
    case = falling_into_a_hole(9)
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=200, simd=simd)
    assert [k for k, status in enumerate(runs.status) if status == "failed"] == [2, 5]
    assert set(runs.status) == {"done", "failed"}
    for k in (2, 5):
        assert "left its domain" in runs.message[k] or "diverged" in runs.message[k]
        done = int(runs.steps_done[k])
        assert 0 < done < 100
        assert np.all(np.isfinite(runs.q[k, : done + 1])) and np.all(np.isnan(runs.q[k, done + 1 :]))
        assert np.all(np.isnan(runs.energy[k, done + 1 :]))
        alone = da.simulate(case.system, case.method, **case.member(k), h=case.h, steps=200, on_failure="return")
        assert alone.message == runs.message[k] and len(runs[k]) == len(alone)
        assert np.abs(runs[k].q - alone.q).max() < 1e-12
    others = [k for k in range(9) if k not in (2, 5)]
    assert np.all(np.isfinite(runs.q[others]))
    # energy is conserved to the order of the method by those that go on
    assert np.ptp(runs.energy[others], axis=1).max() < 1e-9


def test_the_last_state_before_a_failure_is_kept_between_stored_steps():
    case = falling_into_a_hole(9)
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=200, save_every=50, simd=False)
    alone = da.simulate(case.system, case.method, **case.member(2), h=case.h, steps=200, save_every=50, on_failure="return")
    assert len(alone) == 2 and np.array_equal(runs[2].states, alone.states) and np.array_equal(runs[2].t, alone.t)


@pytest.mark.parametrize("simd", [False, True])
def test_ctrl_c_keeps_what_was_computed(simd):
    case = double_pendulums(64, da.LobattoIIIAB(3))
    da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=10, simd=simd)  # compiles
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    try:
        runs = da.simulate_many(
            case.system, case.method, **case.all, h=case.h, steps=50_000_000, save_every=1_000_000, workers=2, simd=simd,
            reduce=["energy"],
        )  # fmt: skip
    finally:
        timer.cancel()
    assert "interrupted" in runs.status and "done" not in runs.status
    k = int(np.argmax(runs.steps_done))
    assert runs.steps_done[k] > 0 and f"interrupted after {runs.steps_done[k]} of 50000000 steps" in runs.message[k]
    assert runs[k].t[-1] == runs.steps_done[k] * case.h
    assert abs(runs[k].energy[-1] - runs[k].energy[0]) < 0.01
    assert runs.reduced["energy"].last[k] == pytest.approx(runs[k].energy[-1], abs=1e-12)


def test_thousands_of_short_members_start_in_the_time_of_a_few():
    """Setting up a member in Python takes milliseconds; for thousands that must happen at once."""
    case = double_pendulums(3000, da.Rattle())
    runs = da.simulate_many(case.system, case.method, **case.all, h=0.02, steps=5)
    assert runs.stats["build_seconds"] < 10 and set(runs.status) == {"done"}
    assert np.abs(runs.residuals["g"]).max() < 1e-14


def test_wrong_input_is_refused_in_one_sentence():
    problem, method = da.problems.double_pendulum(), da.LobattoIIIAB(3)
    q0 = hanging(angles(4, 2))
    for match, given in {
        "one row a member: q0 has 4, params\\['g'\\] has 3": {"q0": q0, "p0": np.zeros(4), "params": {"g": np.ones(3)}},
        "member 2: .*violate the holonomic constraint": {
            "q0": np.where(np.arange(4)[:, None] < 2, q0, q0 + 0.1),
            "p0": np.zeros(4),
        },
        "give either the initial velocity v0 or the initial momentum p0": {"q0": q0},
        "shape \\(members, n\\)": {"q0": np.zeros((2, 2, 4)), "p0": np.zeros(4)},
        "array of real numbers": {"q0": "x", "p0": np.zeros(4)},
        "no parameter 'G'": {"params": {"G": [1.0, 2.0]}},
        "workers must be an integer": {"params": {"g": [1.0, 2.0]}, "workers": 0},
        "list of them at the same time": {"start": [1.0]},
        "not both": {"start": da.consistent(problem.system, q0=problem.q0, p0=problem.p0), "q0": q0},
        "there is no member": {"params": {"g": []}},
    }.items():
        with pytest.raises(da.DalembertError, match=match):
            da.simulate_many(problem, method, **given, steps=5)
    with pytest.raises(da.InputError, match="second argument of simulate_many"):
        da.simulate_many(problem, "RK4", params={"g": [1.0]})
    with pytest.raises(da.UnsupportedSystem, match="nonholonomic"):
        case = rolling_coins(2)
        da.simulate_many(case.system, da.LobattoIIIAB(3), **case.all, h=0.1, steps=5)


def test_members_are_taken_by_number_or_by_slice():
    runs = da.simulate_many(da.problems.pendulum(), da.Rattle(), q0=[[1, 0]] * 3, p0=[0, 0], h=0.1, steps=3)
    assert [run.q.shape for run in runs[0:2]] == [(4, 2)] * 2 and len(runs[::-1]) == 3 and runs[5:] == []
    with pytest.raises(TypeError, match="members are counted by integers"):
        runs["first"]
    with pytest.raises(IndexError, match="member 3 of 3"):
        runs[3]


def test_wrong_parameters_are_named_with_the_member():
    system = da.Hamiltonian(lambda q, p, k, m: (p @ p / m + (k * q) @ q) / 2, dim=2, params={"k": np.ones(2), "m": 1.0})
    start = {"q0": [1, 0], "p0": [0, 0], "h": 0.1, "steps": 3}
    for params in ({"m": ["a", "b"]}, {"k": [[1.0, 2.0], [1.0]]}, {"m": "heavy"}):
        name = next(iter(params))
        with pytest.raises(da.InputError, match=rf"params\['{name}'\] must be numbers"):
            da.simulate_many(system, da.Gauss(2), params=params, **start)
    with pytest.raises(da.ModelError, match="member 2: parameter 'm' must be finite"):
        da.simulate_many(system, da.Gauss(2), params={"m": [1.0, 2.0, np.nan]}, **start)
    with pytest.raises(da.ModelError, match=r"^parameter 'm' must be finite"):
        da.simulate_many(system, da.Gauss(2), params={"m": np.nan, "k": np.ones((3, 2))}, **start)
    with pytest.raises(da.InputError, match="simd is True, False, or None"):
        da.simulate_many(system, da.Gauss(2), simd="no", **start)


@pytest.mark.slow
def test_many_members_fail_one_after_the_other():
    """Each of them stops the driver after a few steps; how many steps it is asked for next must not grow with that."""
    wall = da.Hamiltonian(lambda q, p: p @ p / 2 - 1e-3 * np.sqrt(1 - q[0]), dim=1)  # no number behind q = 1
    q0 = np.random.default_rng(1).uniform(-1.0, 0.9, (640, 1))
    runs = da.simulate_many(wall, da.Variational("SVC"), q0=q0, p0=[1.0], h=0.02, steps=200, simd=True, workers=1)
    assert set(runs.status) == {"failed"}
    reached = np.array([run.q[-1, 0] for run in runs])
    assert np.all((reached < 1) & (reached > 0.97))


def test_members_start_from_their_own_multipliers_to_the_bit():
    """Multipliers that enter nonlinearly, and a method that looks for the limits of its impulses from them."""
    curved = da.ODAE(
        v=lambda z: z, f=lambda y, z: -0.3 * y, r=lambda y, lam: -(lam[0] + 0.7 * lam[0] ** 3) * y,
        g=lambda y: [(y @ y - 1) / 2], dim_y=3, dim_z=3,
    )  # fmt: skip
    rng = np.random.default_rng(4)
    y = rng.standard_normal((60, 3))
    y /= np.linalg.norm(y, axis=1)[:, None]
    z = np.cross(y, rng.standard_normal((60, 3)))
    given = {"h": 0.02, "steps": 3}
    for method in (da.SymplecticEuler(), da.GaussLobattoSPARK(2)):
        runs = da.simulate_many(curved, method, y0=y, z0=z, **given, simd=False)
        singles = [da.simulate(curved, method, y0=y[k], z0=z[k], **given).states for k in range(60)]
        np.testing.assert_array_equal(runs.states, singles)
