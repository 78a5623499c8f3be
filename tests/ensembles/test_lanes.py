"""Trajectories side by side in vectors: the same kernels, the same decisions, the same results to round-off."""

from __future__ import annotations

import ctypes

import casadi as ca
import numpy as np
import pytest
from ensemble_cases import Case, angles, double_pendulums, falling_into_a_hole, hanging, rolling_coins, sliding_blocks

import dalembert as da
from dalembert.compiler._body import _ARITHMETIC, _COMPARISONS, _INTRINSICS, _LIBRARY
from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._lane_kernels import CONTROL
from dalembert.engine import _batch
from dalembert.engine import _ensemble_run as _ensemble

TWO = {ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_DIV, ca.OP_POW, ca.OP_CONSTPOW, ca.OP_COPYSIGN, ca.OP_FMIN, ca.OP_FMAX,
       ca.OP_ATAN2, ca.OP_HYPOT, ca.OP_FMOD, ca.OP_REMAINDER, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO,
       *_COMPARISONS}  # fmt: skip
OTHERS = {ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO, ca.OP_SIGN}


def run_kernel(kernel: Kernel, rows: np.ndarray, work: int, lanes: int) -> np.ndarray:
    """The memory after one call, (lane, slot), lanes of the same call for lanes > 1."""
    code, used = compile_kernels([kernel], work, lanes)
    raw = np.zeros((work + used) * lanes + 8)
    first = (-raw.ctypes.data // 8) % 8
    memory = raw[first : first + (work + used) * lanes].reshape(work + used, lanes)
    memory[: rows.shape[1]] = rows.T
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses[kernel.name])(memory.ctypes.data)
    return memory[:work].T.copy()


@pytest.mark.parametrize("lanes", [4, 8])
def test_every_operation_does_the_same_in_every_lane(lanes):
    """Against the kernel for one trajectory, whose operations are tested one by one elsewhere."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    codes = sorted({*_ARITHMETIC, *_INTRINSICS, *_LIBRARY, *_COMPARISONS, *OTHERS})
    results = [ca.SX.binary(code, x, y) if code in TWO else ca.SX.unary(code, x) for code in codes]
    kernel = Kernel("f", [(x, 0), (y, 1)], [(ca.vertcat(*results), 2)])
    random = np.random.default_rng(3)
    for scale in (0.9, 3.0, 1e6):
        rows = scale * random.uniform(-1, 1, (lanes, 2))
        rows[0, 1], rows[1] = 0.0, rows[1, 0]
        together = run_kernel(kernel, rows, 2 + len(codes), lanes)
        for k in range(lanes):
            alone = run_kernel(kernel, rows[k : k + 1], 2 + len(codes), 1)[0]
            np.testing.assert_allclose(together[k], alone, rtol=4e-16, atol=0, equal_nan=True)


def test_long_kernels_are_cut_in_lanes_too():
    x = ca.SX.sym("x", 8)
    value = x
    for _ in range(400):
        value = ca.sin(value) + ca.vertcat(value[1:], value[0]) / 3
    kernel = Kernel("f", [(x, 0)], [(value, 0)])
    rows = np.random.default_rng(4).uniform(-1, 1, (4, 8))
    together = run_kernel(kernel, rows, 8, 4)
    for k in range(4):
        np.testing.assert_allclose(together[k], run_kernel(kernel, rows[k : k + 1], 8, 1)[0], rtol=1e-12)


def cases() -> dict[str, Case]:
    return {
        "constrained": double_pendulums(21, da.LobattoIIIAB(3)),
        "projected, with a polish": double_pendulums(9, da.RadauIIA(3, projected=True), h=0.05),
        "unconstrained": Case(
            da.problems.double_pendulum_in_angles(), da.Gauss(3), 0.05, {"q0": angles(7, 2), "p0": angles(7, 2, 0.5)}
        ),
        "without unknowns": Case(
            da.Hamiltonian(lambda q, p: p @ p / 2 + q[0] ** 4, dim=1),
            da.SymplecticEuler(),
            0.1,
            {"q0": angles(5, 1), "p0": angles(5, 1)},
        ),
        "composition": double_pendulums(7, da.compose(da.Rattle(), da.schemes.suzuki(4))),
        "nonholonomic": rolling_coins(6),
        "nonlinear in the multipliers": sliding_blocks(5),
        "steps that need a rescue": double_pendulums(13, da.LobattoIIIAB(3), h=0.7, width=0.5),
        "of index two": growing(6),
        "with a starting step": double_pendulums(6, da.Shake(), h=0.05),
    }


def growing(members: int) -> Case:
    """y = a (e^t, ...) of `da.problems.index_two_growth` from different times on: its solution is (e^t, e^-2t), z = e^2t."""
    t = np.linspace(0.0, 0.5, members)
    y0 = np.stack([np.exp(t), np.exp(-2 * t)], axis=1)
    return Case(da.problems.index_two_growth(), da.RadauIIA(2), 0.02, {"y0": y0, "z0": np.exp(2 * t)[:, None]})


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("name", cases())
def test_lanes_equal_single_runs_to_round_off(monkeypatch, name, lanes):
    monkeypatch.setattr(_ensemble, "lanes_for", lambda operations: lanes)
    case = cases()[name]
    steps = 100 if name in ("constrained", "composition") else 50
    together, alone = (
        da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=steps, simd=simd) for simd in (True, False)
    )
    assert together.stats["lanes"] == lanes and set(together.status) == set(alone.status) == {"done"}
    assert together.stats["rescued_steps"] == 0 or "rescue" in name
    assert np.abs(together.states - alone.states).max() < 1e-12
    for residual, expected in zip(together.residuals.values(), alone.residuals.values(), strict=True):
        assert np.abs(residual).max(initial=0.0) < max(1e-13, (1 + 1e-9) * np.abs(expected).max(initial=0.0))


def test_lanes_keep_energy_and_constraints_over_a_long_run():
    case = double_pendulums(8, da.LobattoIIIAB(3), width=0.5)
    together, alone = (
        da.simulate_many(
            case.system, case.method, **case.all, h=case.h, steps=100_000, reduce=["energy", "residuals"], simd=simd
        )
        for simd in (True, False)
    )
    assert together.stats["lanes"] > 1
    for runs in (together, alone):
        assert runs.reduced["g"].max.max() < 3e-15 and runs.reduced["g_dot"].max.max() < 3e-15
    assert np.allclose(together.reduced["energy"].range, alone.reduced["energy"].range, rtol=0.02)
    # no drift: over the whole run the line through the energy moves by less than a thousandth of its range
    assert np.all(np.abs(together.reduced["energy"].slope) * 12_000 < 1e-3 * together.reduced["energy"].range)


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Rattle()], ids=str)
def test_a_loose_tolerance_is_loose_in_lanes_too(method):
    """And as loose as alone: as far from the constraints and from the solution of the step equations, for as much work."""
    case = double_pendulums(8, method)
    (exact, sloppy), (_, alone) = (
        [
            da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=500, simd=simd, newton_tolerance=tolerance)
            for tolerance in (None, 1e-4)
        ]
        for simd in (True, False)
    )
    assert sloppy.stats["newton_iterations"] < 0.8 * exact.stats["newton_iterations"]
    assert sloppy.stats["newton_iterations"] < 1.5 * alone.stats["newton_iterations"]
    for name, residual in sloppy.residuals.items():
        typical, expected = (float(np.sqrt(np.mean(x**2))) for x in (residual, alone.residuals[name]))
        assert typical < 3 * max(expected, 1e-15)
    # Typical ones, as of residuals: the largest is that of one step of one member, and luck.
    error, expected = (np.sqrt(np.mean((runs.states[:, 1:40] - exact.states[:, 1:40]) ** 2)) for runs in (sloppy, alone))
    assert 0.0 < error < 3 * expected


def test_lanes_are_chosen_where_they_are_faster(monkeypatch):
    case = double_pendulums(16, da.LobattoIIIAB(3))
    many = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=2000, save_every=100)
    few = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=20)
    assert many.stats["lanes"] > 1 == few.stats["lanes"]
    monkeypatch.setattr(_ensemble, "MOST_OPERATIONS", 100)
    large = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=2000, save_every=100)
    assert large.stats["lanes"] == 1


def test_stage_multipliers_come_from_every_lane():
    case = double_pendulums(6, da.LobattoIIIAB(4), h=0.02)
    together, alone = (
        da.simulate_many(
            case.system, case.method, **case.all, h=case.h, steps=40, save_every=3, stage_multipliers=True, simd=simd
        )
        for simd in (True, False)
    )
    assert np.isnan(together[0].stage_lam[0]).all() and together[0].stage_lam.shape == (15, 2)
    for one, other in zip(together, alone, strict=True):
        assert np.abs(one.stage_lam[1:] - other.stage_lam[1:]).max() < 1e-9


@pytest.mark.parametrize("lanes", [4, 8])
def test_a_lane_that_fails_leaves_alone(monkeypatch, lanes):
    """At its first step, where no lane has converged yet, or later; what it takes along is the increment of its last step."""
    monkeypatch.setattr(_ensemble, "lanes_for", lambda operations: lanes)
    left, own_run = {}, _batch.Batch._own_run

    def leave(batch, unit, lane, member):
        run = own_run(batch, unit, lane, member)
        left[member] = run.steppers[0].memory[run.steppers[0].slots("delta")].copy()
        return run

    monkeypatch.setattr(_batch.Batch, "_own_run", leave)
    case = falling_into_a_hole(16)
    q0, p0 = case.varied["q0"], case.varied["p0"]
    q0[5], q0[9], p0[9] = 0.45, 0.999, 3.0  # the last is beyond the domain within the first step
    runs = da.simulate_many(case.system, case.method, q0=q0, p0=p0, h=case.h, steps=200, simd=True)
    failed = [k for k, status in enumerate(runs.status) if status == "failed"]
    assert failed == sorted(left) == [2, 5, 9] and runs.steps_done[9] == 0 < runs.steps_done[2]
    for k in (2, 5):
        last = runs.states[k, runs.steps_done[k]] - runs.states[k, runs.steps_done[k] - 1]
        np.testing.assert_allclose(left[k], last, rtol=0, atol=1e-14)


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.RadauIIA(3, projected=True)], ids=["plain", "with a polish"])
def test_lanes_learn_the_rate_of_convergence_as_the_driver_does(monkeypatch, method):
    """Equal members in all lanes make the decisions of one."""
    rates, keep_result = [], _batch.Batch._keep_result

    def look(batch, unit, lane):
        slot = batch.programs[0].layout.work + CONTROL.index("last_rate")
        rates.append(
            batch.memory[unit].reshape(-1, batch.lanes)[slot, lane] if batch.lanes > 1 else batch.numbers["rate"][unit, 0]
        )
        keep_result(batch, unit, lane)

    monkeypatch.setattr(_batch.Batch, "_keep_result", look)
    problem = da.problems.double_pendulum()
    moving = da.simulate(problem, method, q0=hanging(np.array([[0.4, -0.6]]))[0], p0=np.zeros(4), h=0.05, steps=8)
    q0, p0 = (np.tile(part[-1], (8, 1)) for part in (moving.q, moving.p))  # no step is in doubt
    for simd in (True, False):
        da.simulate_many(problem, method, q0=q0, p0=p0, h=0.05, steps=7, simd=simd)
    assert len(rates) == 16 and 0 < rates[0] < 1
    np.testing.assert_allclose(rates, rates[-1], rtol=0.05)


def test_a_lane_that_starts_from_rest_does_not_hold_up_the_others(monkeypatch):
    """Its increments need other weights, theirs do not: the number of iterations is that of the slowest lane alone.

    The last iteration finds increments at round-off, so that rounding errors, which lanes have others of, may ask for one more.
    """
    monkeypatch.setattr(_ensemble, "lanes_for", lambda operations: 8)
    case = double_pendulums(8, da.LobattoIIIAB(3))
    moving = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=10, simd=False).last
    q0, p0 = moving[:, :4].copy(), moving[:, 4:].copy()
    options = {"params": case.params, "h": 0.02, "steps": 1}  # so small that no step is in doubt
    q0[3], p0[3] = case.varied["q0"][3], 0.0
    together, alone = (da.simulate_many(case.system, case.method, q0=q0, p0=p0, **options, simd=simd) for simd in (True, False))
    assert np.abs(together.states - alone.states).max() < 1e-14
    most = max(run.stats["newton_iterations"] for run in alone)
    assert {abs(run.stats["newton_iterations"] - most) for run in together} <= {0, 1}
    assert {run.stats["factorizations"] for run in together} == {max(run.stats["factorizations"] for run in alone)}


@pytest.mark.parametrize(("h", "member", "steps"), [(0.6, 1, 14), (1.0, 8, 5)])
def test_a_step_far_too_large_does_not_land_on_another_solution(h, member, steps):
    """Step equations have several solutions then; the one that belongs to the motion grows out of that of a shorter step."""
    q0 = hanging(np.random.default_rng(1).uniform(-1, 1, (11, 2)))
    runs = [
        da.simulate_many(da.problems.double_pendulum(), da.LobattoIIIAB(3), q0=q0, p0=np.zeros(4), h=h, steps=steps, simd=simd)
        for simd in (True, False)
    ]
    for run in runs:
        assert run.status[member] == "done" and np.abs(run.energy[member] - run.energy[member, 0]).max() < 1.0
    assert np.abs(runs[0].states[member] - runs[1].states[member]).max() < 1e-9


def test_all_lanes_may_fail():
    case = falling_into_a_hole(8)
    start = {"q0": np.full((8, 1), 0.5), "p0": np.linspace(0.5, 1.0, 8)[:, None]}
    runs = da.simulate_many(case.system, case.method, **start, h=case.h, steps=200, simd=True)
    assert set(runs.status) == {"failed"} and np.all(runs.steps_done > 0)
