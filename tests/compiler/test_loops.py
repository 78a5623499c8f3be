"""Kernels with loops compute what their graphs say, and their code does not grow with the model."""

from __future__ import annotations

import ctypes

import casadi as ca
import numpy as np
import pytest
from compiled_kernels import call

import dalembert as da
from dalembert.compiler import _ir, _program, _rolled
from dalembert.compiler._ir import Kernel, compile_kernels, emit_kernel
from dalembert.compiler._tape import _asked_records, _stored_records, read_tape

N = 300


def springs(n):
    """Forces of a chain of nonlinear springs, its energy and its largest stretch: a shape for each link, two long sums."""
    q, k = ca.SX.sym("q", n), ca.SX.sym("k")
    stretch = q[1:] - q[:-1]
    tension = k * stretch * ca.sqrt(1 + stretch**2)
    force = ca.vertcat(tension, 0) - ca.vertcat(0, tension)
    energy, largest = ca.SX(0.25), ca.SX(0)
    for i in range(n - 1):
        energy = energy - ca.sin(stretch[i]) if i % 3 == 0 else energy + stretch[i] ** 2 / 2
        largest = ca.fmax(largest, ca.fabs(stretch[i]))
    return q, k, force, energy, largest


def kernel_of(n, in_place=False):
    q, k, force, energy, largest = springs(n)
    target = 0 if in_place else n + 1
    return Kernel("f", [(q, 0), (k, n)], [(force, target), (ca.vertcat(energy, largest, q[3], 2.5), 2 * n + 1)])


@pytest.fixture
def loops_everywhere(monkeypatch):
    monkeypatch.setattr(_rolled, "LONG", 100)
    monkeypatch.setattr("dalembert.compiler._ir.LONG", 100)


@pytest.mark.parametrize("in_place", [False, True])
def test_loops_compute_what_numpy_does(loops_everywhere, in_place):
    """Also where outputs overwrite the inputs that other turns of the loop read."""
    kernel, random = kernel_of(N, in_place), np.random.default_rng(3)
    assert "phi i64" in emit_kernel(kernel, work=2 * N + 5)[0]
    memory = np.concatenate([random.normal(size=N), [1.7], np.full(N + 4, np.nan)])
    q, stretch = memory[:N].copy(), np.diff(memory[:N])
    call(kernel, memory, work=2 * N + 5)
    tension = 1.7 * stretch * np.sqrt(1 + stretch**2)
    force = np.append(tension, 0.0) - np.append(0.0, tension)
    np.testing.assert_allclose(memory[:N] if in_place else memory[N + 1 : 2 * N + 1], force, rtol=1e-13, atol=1e-13)
    terms = np.where(np.arange(N - 1) % 3 == 0, -np.sin(stretch), stretch**2 / 2)
    wanted = [0.25 + terms.sum(), np.abs(stretch).max(), q[3], 2.5]
    np.testing.assert_allclose(memory[2 * N + 1 : 2 * N + 5], wanted, rtol=1e-12)


def test_kernels_with_and_without_loops_share_a_program_but_no_module(loops_everywhere, monkeypatch):
    """LLVM's passes, which loops need, go over a whole module."""
    modules, compiled = [], _ir.compile_module
    monkeypatch.setattr(_ir, "compile_module", lambda *given: modules.append(given[0]) or compiled(*given))
    x = ca.SX.sym("x", 2)
    first = Kernel("straight", [(x, 0)], [(x[0] * x[1], N)])
    code, used = compile_kernels([first, kernel_of(N, in_place=True)], 2 * N + 5)
    assert sorted(("@straight(" in text, "!llvm.loop" in text) for text in modules) == [(False, True), (True, False)]
    q = np.random.default_rng(5).normal(size=N)
    memory = np.concatenate([q, np.full(N + 5 + used, 1.7)])
    for name in ("straight", "f"):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses[name])(memory.ctypes.data)
        assert name == "f" or memory[N] == q[0] * q[1]
        memory[N] = 1.7
    tension = 1.7 * np.diff(q) * np.sqrt(1 + np.diff(q) ** 2)
    np.testing.assert_allclose(memory[:N], np.append(tension, 0.0) - np.append(0.0, tension), rtol=1e-13, atol=1e-13)


def test_code_does_not_grow_with_the_model(loops_everywhere):
    # of sums that are added up in eight parts, equally many terms are left over
    short, long = (emit_kernel(kernel_of(n), work=2 * n + 5)[0] for n in (N, 9 * N))
    assert short.count("define") == long.count("define")
    assert short.count("\n") == long.count("\n")


def pair_forces(n):
    """Forces between all pairs of n particles on a line, and the largest of those on each: sums of 7 to n terms, signed."""
    q = ca.SX.sym("q", n)
    force, largest = [ca.SX(0.5)] * n, [ca.SX(-1)] * n
    for i in range(n):
        for j in range(i):
            pull = ca.sin(q[i] - q[j])
            force[i], force[j] = force[i] - pull, force[j] + pull
            largest[i] = ca.fmax(largest[i], pull)
    return Kernel("f", [(q, 0)], [(ca.vertcat(*force), n), (ca.vertcat(*largest), 2 * n)])


@pytest.mark.parametrize("n", [40, 100])
def test_many_sums_of_different_lengths_share_loops(loops_everywhere, n):
    kernel, q = pair_forces(n), np.random.default_rng(4).normal(size=n)
    memory = np.concatenate([q, np.full(2 * n, np.nan)])
    call(kernel, memory, work=3 * n)
    pulls = np.sin(q[:, None] - q[None, :])
    np.testing.assert_allclose(memory[n : 2 * n], 0.5 - pulls.sum(axis=1), rtol=1e-12, atol=1e-12)
    largest = [max([-1.0, *pulls[i, :i]]) for i in range(n)]
    np.testing.assert_allclose(memory[2 * n :], largest, rtol=1e-13)
    assert emit_kernel(kernel, work=3 * n)[0].count("define") < 40


def test_a_graph_without_structure_stays_straight_line(loops_everywhere):
    random, x = np.random.default_rng(5), ca.SX.sym("x", 10)
    values = ca.vertsplit(x)
    for _ in range(4_000):
        i, j = random.integers(max(0, len(values) - 60), len(values), 2)
        values.append(ca.sin(values[i]) * values[j] if random.random() < 0.5 else values[i] - values[j])
    assert "phi i64" not in emit_kernel(Kernel("f", [(x, 0)], [(values[-1], 10)]), work=11)[0]


def test_instructions_are_the_same_whether_read_or_asked_for():
    q, k, force, energy, largest = springs(20)
    result = ca.densify(ca.vertcat(force, energy, largest, ca.atan2(q[0], k), -0.0, ca.if_else(q[1] > 0, k, np.nan)))
    function = ca.Function("f", [ca.vertcat(q, k)], [result])
    stored = _stored_records(function)
    assert stored is not None, "CasADi's serialized form has changed"
    assert stored.tobytes() == _asked_records(function).tobytes()
    at = np.random.default_rng(1).normal(size=21)
    values: list[float] = []
    unary = {ca.OP_SQRT: np.sqrt, ca.OP_SIN: np.sin, ca.OP_FABS: np.abs, ca.OP_SQ: np.square, ca.OP_NEG: np.negative,
             ca.OP_TWICE: lambda x: 2 * x, ca.OP_INV: lambda x: 1 / x, ca.OP_NOT: lambda x: float(x == 0)}  # fmt: skip
    binary = {ca.OP_ADD: np.add, ca.OP_SUB: np.subtract, ca.OP_MUL: np.multiply, ca.OP_DIV: np.divide, ca.OP_FMAX: np.fmax,
              ca.OP_ATAN2: np.arctan2, ca.OP_LT: lambda a, b: float(a < b),
              ca.OP_IF_ELSE_ZERO: lambda c, x: x if c else 0.0}  # fmt: skip
    tape = read_tape(function)
    for code, operands, constant, position in tape.rows():
        if code == ca.OP_CONST:
            values.append(constant)
        elif code == ca.OP_INPUT:
            values.append(at[position])
        else:
            values.append({**unary, **binary}[code](*(values[i] for i in operands)))
    np.testing.assert_allclose([values[i] for i in tape.outputs], np.asarray(function(at)).ravel(), rtol=1e-14)


@pytest.mark.parametrize("method", [da.Rattle(), da.LobattoIIIAB(3), da.GaussLobattoSPARK(2)], ids=str)
def test_a_chain_moves_the_same_with_and_without_loops(monkeypatch, method):
    problem = da.problems.chain(links=12, sag=1.0)
    straight = da.simulate(problem, method, h=0.01, steps=100)
    for name in ("_programs", "_by_graph"):
        monkeypatch.setattr(_program, name, {})
    monkeypatch.setattr(_program, "repeats", lambda tape: True)
    monkeypatch.setattr("dalembert.compiler._ir.LONG", 100)
    monkeypatch.setattr(_rolled, "_mostly_repeated", lambda pieces, groups: True)
    looped = da.simulate(problem, method, h=0.01, steps=100)
    assert np.abs(straight.q - looped.q).max() < 1e-12
    assert not np.array_equal(straight.q, looped.q), "the second run did not take the other path"
    assert max(np.abs(r).max() for r in looped.residuals.values()) < 1e-13


@pytest.mark.parametrize("lanes", [4, 8])
def test_loops_in_lanes(loops_everywhere, lanes):
    kernel, random = kernel_of(N), np.random.default_rng(4)
    alone = [np.concatenate([random.normal(size=N), [1.7], np.full(N + 4, np.nan)]) for _ in range(lanes)]
    code, used = compile_kernels([kernel], 2 * N + 5, lanes)
    memory = aligned((2 * N + 5 + used) * lanes).reshape(-1, lanes)
    memory[: 2 * N + 5] = np.stack(alone, axis=1)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses["f"])(memory.ctypes.data)
    for lane, one in enumerate(alone):
        call(kernel, one, work=2 * N + 5)
        np.testing.assert_allclose(memory[: 2 * N + 5, lane], one, rtol=1e-13, atol=1e-13)


def aligned(size):
    block = np.zeros(size + 8)
    first = -(block.ctypes.data // 8) % 8
    return block[first : first + size]
