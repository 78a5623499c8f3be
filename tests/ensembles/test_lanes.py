"""Trajectories side by side in vectors: the same kernels, the same decisions, the same results to round-off."""

from __future__ import annotations

import ctypes

import casadi as ca
import numpy as np
import pytest
from ensemble_cases import Case, angles, double_pendulums, falling_into_a_hole, rolling_coins, sliding_blocks

import dalembert as da
from dalembert.compiler._ir import _ARITHMETIC, _COMPARISONS, _INTRINSICS, _LIBRARY, Kernel, emit_module
from dalembert.compiler._jit import compile_module
from dalembert.engine import _ensemble

TWO = {ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_DIV, ca.OP_POW, ca.OP_CONSTPOW, ca.OP_COPYSIGN, ca.OP_FMIN, ca.OP_FMAX,
       ca.OP_ATAN2, ca.OP_HYPOT, ca.OP_FMOD, ca.OP_REMAINDER, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO,
       *_COMPARISONS}  # fmt: skip
OTHERS = {ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO, ca.OP_SIGN}


def run_kernel(kernel: Kernel, rows: np.ndarray, work: int, lanes: int) -> np.ndarray:
    """The memory after one call, (lane, slot), lanes of the same call for lanes > 1."""
    assembly, used = emit_module([kernel], work, lanes)
    code = compile_module(assembly, (kernel.name,))
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
    }


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
    assert (together.stats["rescued_steps"] > 0) == ("rescue" in name)
    assert np.abs(together.states - alone.states).max() < 1e-12
    for residual in together.residuals.values():
        assert np.abs(residual).max(initial=0.0) < 1e-13


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


def test_a_loose_tolerance_is_loose_in_lanes_too():
    case = double_pendulums(8, da.LobattoIIIAB(3))
    exact, sloppy = (
        da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=500, simd=True, newton_tolerance=tolerance)
        for tolerance in (None, 1e-4)
    )
    assert sloppy.stats["newton_iterations"] < 0.8 * exact.stats["newton_iterations"]


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


def test_all_lanes_may_fail():
    case = falling_into_a_hole(8)
    start = {"q0": np.full((8, 1), 0.5), "p0": np.linspace(0.5, 1.0, 8)[:, None]}
    runs = da.simulate_many(case.system, case.method, **start, h=case.h, steps=200, simd=True)
    assert set(runs.status) == {"failed"} and np.all(runs.steps_done > 0)
