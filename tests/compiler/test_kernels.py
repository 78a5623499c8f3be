"""Kernels as a whole: cut into pieces, in place, compiled once, kept on disk."""

import ctypes

import casadi as ca
import numpy as np
import pytest
from compiled_kernels import by_casadi, call, compiled

from dalembert.compiler import _ir, _jit
from dalembert.compiler._ir import Kernel, compile_kernels, emit_kernel, in_two_parts


def tangled(n_inputs, n_operations, seed=0):
    """A random graph: every operation takes two of the values so far, so that values cross between any two pieces."""
    random = np.random.default_rng(seed)
    x = ca.SX.sym("x", n_inputs)
    values = [x[i] for i in range(n_inputs)]
    for _ in range(n_operations):
        a, b = (values[k] for k in random.integers(0, len(values), 2))
        match random.integers(5):
            case 0:
                values.append(a + b)
            case 1:
                values.append(0.5 * a - b)
            case 2:
                values.append(ca.sin(a) * b)
            case 3:
                values.append(a / (1 + b * b))
            case _:
                values.append(ca.fmax(ca.tanh(a), b))
    return x, values


def test_two_parts_compute_what_the_whole_computes():
    x, values = tangled(6, 400)
    late, results = 2, ca.vertcat(*values[:6], *values[-60:], values[7], values[7], ca.SX(2.5))
    n, m = x.shape[0], results.shape[0]
    whole = Kernel("whole", [(x[: n - late], 0), (x[n - late :], n - late)], [(results, n)])
    first, second, handed = in_two_parts(whole, n + m, ("first", "second"))
    assert 0 < first.operations < whole.operations and first.operations + second.operations == whole.operations
    row = np.random.default_rng(2).normal(size=n)
    memory = np.concatenate([row, np.full(m + handed, np.nan)])
    memory[n - late : n] = np.nan  # the first part must not look at them
    call(first, memory, len(memory))
    memory[n - late : n] = row[n - late :]
    call(second, memory, len(memory))
    np.testing.assert_allclose(memory[n : n + m], by_casadi(results, x, row[None])[0], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("piece", [1, 2, 7, 50])
def test_pieces_compute_what_the_whole_computes(piece, monkeypatch):
    x, values = tangled(5, 200)
    results = ca.vertcat(*values[:5], *values[-40:], ca.SX(3.5), values[7])
    rows = np.random.default_rng(1).normal(size=(20, 5))
    whole = compiled(results, x)(rows)
    monkeypatch.setattr(_ir, "WHOLE", 0)
    monkeypatch.setattr(_ir, "PIECE", piece)
    cut = compiled(results, x)(rows)
    np.testing.assert_allclose(whole, by_casadi(results, x, rows), rtol=1e-12)
    np.testing.assert_allclose(cut, whole, rtol=1e-12)


@pytest.mark.parametrize("piece", [1, 3, 10, 10_000])
def test_outputs_may_overwrite_inputs(piece, monkeypatch):
    """x <- f(x), shifted so that slots are overwritten that later operations and later pieces still read."""
    monkeypatch.setattr(_ir, "WHOLE", 0)
    monkeypatch.setattr(_ir, "PIECE", piece)
    n = 6
    x = ca.SX.sym("x", n)
    mixed = [sum(ca.sin((i + 1) * x[j] + j) for j in range(n)) for i in range(n - 2)]  # every output needs every input
    results = ca.vertcat(x[1], x[0], *mixed)  # the first two only change places
    start = np.random.default_rng(2).normal(size=n)
    wanted = by_casadi(results, x, start[None])[0]
    for shift in (0, 2, n):
        memory = np.concatenate([start, np.full(n, np.nan)])
        call(Kernel("f", [(x, 0)], [(results, shift)]), memory, work=2 * n)
        np.testing.assert_allclose(memory[shift : shift + n], wanted, rtol=1e-13)
        np.testing.assert_array_equal(memory[: min(shift, n)], start[: min(shift, n)])
        np.testing.assert_array_equal(memory[shift + n :], np.full(n - shift, np.nan))


@pytest.mark.parametrize("piece", [2, 10_000])
def test_inputs_and_outputs_in_several_blocks(piece, monkeypatch):
    monkeypatch.setattr(_ir, "WHOLE", 0)
    monkeypatch.setattr(_ir, "PIECE", piece)
    a, b = ca.SX.sym("a", 2), ca.SX.sym("b", 3)
    outputs = [(a + ca.sum1(b), 7), (ca.vertcat(a[0] * b[2], ca.SX(1, 1), ca.sin(b[1])), 0)]
    memory = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    call(Kernel("f", [(a, 1), (b, 4)], outputs), memory, work=9)
    # a = (2, 3), b = (5, 6, 7); a structural zero is stored as 0
    np.testing.assert_allclose(memory, [14.0, 0.0, np.sin(6.0), 4.0, 5.0, 6.0, 7.0, 20.0, 21.0])


def test_empty_kernel_touches_nothing():
    memory = np.array([1.0, 2.0])
    call(Kernel("f", [(ca.SX(0, 1), 0)], [(ca.SX(0, 1), 0)]), memory, work=2)
    np.testing.assert_array_equal(memory, [1.0, 2.0])


def test_common_subexpressions_are_computed_once():
    x = ca.SX.sym("x", 1)
    twice = ca.vertcat(ca.sin(x) + 1, 2 * ca.sin(x))
    kernel = Kernel("f", [(x, 0)], [(twice, 1)])
    assert kernel.operations == 3  # one sine, one sum, one product
    assert np.count_nonzero(kernel.tape()[0].code == ca.OP_SIN) == 1


@pytest.mark.parametrize("n", [1_000, 4_000, 16_000])
def test_assembly_grows_linearly_and_pieces_stay_short(n):
    """Compile time is linear if functions have bounded length and their total length is linear: LLVM sees nothing else."""
    x, values = tangled(10, n)
    kernel = Kernel("f", [(x, 0)], [(sum(values), 10)])
    operations = kernel.operations
    assert operations > n
    text, _, crossing = emit_kernel(kernel, work=11)
    bodies = [body for body in text.split("define ") if body.strip()]
    pieces = 1 if operations <= _ir.WHOLE else -(-operations // _ir.PIECE)
    assert len(bodies) == (pieces + 1 if pieces > 1 else 1)
    assert max(body.count("\n") for body in bodies) < 8 * max(_ir.WHOLE, _ir.PIECE)  # an operation, two loads and a store
    assert text.count("\n") < 8 * operations
    assert crossing < operations


def test_outputs_that_overwrite_inputs_are_stored_by_many_pieces():
    """Not all by the last one, which would have as many stores as the kernel has outputs."""
    n = 1000
    x = ca.SX.sym("x", n)
    results = ca.sin(x) * x + ca.vertcat(x[-3:], x[:-3])  # what is overwritten is read again three results later
    text, _, _ = emit_kernel(Kernel("f", [(x, 0)], [(results, 0)]), work=n)
    bodies = text.split("define ")
    assert len(bodies) > 10
    assert max(body.count(" store ") for body in bodies) < n / 3
    memory = np.random.default_rng(4).normal(size=n)
    wanted = np.sin(memory) * memory + np.roll(memory, 3)
    call(Kernel("f", [(x, 0)], [(results, 0)]), memory, work=n)
    np.testing.assert_allclose(memory, wanted, rtol=1e-13, atol=1e-13)


def test_pieces_have_a_bounded_number_of_outputs(monkeypatch):
    """LLVM schedules 1200 stores in one function in six seconds, in three functions in half a second."""
    monkeypatch.setattr(_ir, "WHOLE", 10_000)
    x = ca.SX.sym("x", 40)
    results = ca.vec(ca.sin(x) @ x.T)
    text, _, crossing = emit_kernel(Kernel("f", [(x, 0)], [(results, 40)]), work=2000)
    bodies = text.split("define ")[1:]
    assert len(bodies) == 1 + results.shape[0] // _ir.STORES
    assert max(body.count("store ") for body in bodies) <= _ir.STORES + crossing
    rows = np.random.default_rng(3).normal(size=(3, 40))
    np.testing.assert_allclose(compiled(results, x)(rows), [np.outer(row, np.sin(row)).ravel() for row in rows], rtol=1e-14)


class Compilations:
    """Counts the modules that become machine code."""

    def __init__(self, monkeypatch):
        self.count = 0
        original = _jit._object_code

        def counting(*arguments):
            self.count += 1
            return original(*arguments)

        monkeypatch.setattr(_jit, "_object_code", counting)


def _code(constant):
    """Of fresh symbols every time: equal models must give equal text."""
    x = ca.SX.sym("anything", 2)
    return compile_kernels([Kernel("f", [(x, 0)], [(constant * ca.sin(x[0]) + x[1], 2)])], 3)[0]


def test_equal_assembly_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path))
    compilations = Compilations(monkeypatch)
    first = _code(1.25)
    assert _code(1.25) is first
    assert compilations.count == 1
    other = _code(np.nextafter(1.25, 2))
    assert other is not first
    assert compilations.count == 2


def test_machine_code_that_is_made_quickly_computes_the_same():
    """The quick level of LLVM, of a kernel in several pieces."""
    x, values = tangled(10, 4_000)
    kernel, rows = Kernel("f", [(x, 0)], [(ca.vertcat(*values[-40:]), 10)]), np.random.default_rng(5).normal(size=10)
    found = []
    for quick in ((), ("f",)):
        code, used = compile_kernels([kernel], 50, quick=quick)
        memory = np.concatenate([rows, np.zeros(40 + used)])
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses["f"])(memory.ctypes.data)
        found.append(memory[10:50])
    wanted = by_casadi(ca.vertcat(*values[-40:]), x, rows[None])[0]
    for each in found:
        np.testing.assert_allclose(each, wanted, rtol=1e-11)


def _value(constant):
    memory = np.array([0.5, 2.0, np.nan])
    x = ca.SX.sym("anything", 2)
    call(Kernel("f", [(x, 0)], [(constant * ca.sin(x[0]) + x[1], 2)]), memory, work=3)
    return memory[2]


DAMAGE = {
    "intact": (lambda content: content, 1),
    "cut short": (lambda content: content[: len(content) // 2], 2),
    "one bit flipped": (lambda content: content[:-1] + bytes([content[-1] ^ 1]), 2),
    "empty": (lambda content: b"", 2),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_machine_code_on_disk(name, monkeypatch, tmp_path):
    """A later process loads what an earlier one stored, and compiles again if the file was damaged."""
    damage, compiled_times = DAMAGE[name]
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_jit, "_compiled", {})
    compilations = Compilations(monkeypatch)
    wanted = 7.5 * np.sin(0.5) + 2.0
    assert _value(7.5) == pytest.approx(wanted, rel=1e-15)
    (stored,) = (tmp_path / "cache").glob("*.o")
    stored.write_bytes(damage(stored.read_bytes()))
    monkeypatch.setattr(_jit, "_compiled", {})  # as in a new process
    assert _value(7.5) == pytest.approx(wanted, rel=1e-15)
    assert compilations.count == compiled_times


def test_without_a_writable_cache_everything_works(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setattr(_jit, "_compiled", {})
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert _value(8.5) == pytest.approx(8.5 * np.sin(0.5) + 2.0, rel=1e-15)


def test_without_a_home_directory_everything_works(monkeypatch):
    monkeypatch.setattr(_jit, "_compiled", {})
    for name in ("DALEMBERT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(_jit.Path, "home", no_home)
    assert _value(9.5) == pytest.approx(9.5 * np.sin(0.5) + 2.0, rel=1e-15)
