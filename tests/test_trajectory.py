"""What a run returns: derived quantities, the grid of stored times, saving and loading, interruption and progress."""

import contextlib
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert import _progress
from dalembert.compiler import _ir, _jit

ROOT = str(Path(da.__file__).parents[1])
SPRING = np.array([[2.0, 0.5], [0.5, 1.0]])
SYSTEM = da.Hamiltonian(
    lambda t, q, p, m, K: p @ p / (2 * m) + q[:2] @ K @ q[:2] / 2 + q[0] * q[3] + np.sin(t) * q[2],
    dim=4,
    holonomic=lambda t, q: [q[0] ** 2 + q[1] ** 2 - 1, q[2] - q[0] * q[3] - t],
    force=lambda v: -0.1 * v,
    params={"m": 2.0, "K": SPRING},
)
START = da.consistent(SYSTEM, q0=[0.6, 0.8, 0.3, 0.4], v0=[0.1, 0.2, 0.3, 0.4], t0=0.25, params={"m": 3.0})


def simulate(**options):
    return da.simulate(SYSTEM, da.LobattoIIIAB(stages=3), start=START, **{"h": 0.05, "steps": 20, **options})


@pytest.fixture(scope="module")
def run():
    return simulate()


# -- derived quantities ----------------------------------------------------------------------------------------------


def test_derived_quantities_are_those_of_each_state(run):
    theta = SYSTEM.parameters.vector({"m": 3.0})
    for k, (t, q, p) in enumerate(zip(run.t, run.q, run.p, strict=True)):
        at_state = (t, q, p)
        np.testing.assert_allclose(run.v[k], p / 3.0, rtol=1e-15)
        np.testing.assert_allclose(run.energy[k], SYSTEM.evaluate("H", *at_state, theta=theta)[0], rtol=1e-13)
        np.testing.assert_allclose(run.residuals["g"][k], SYSTEM.evaluate("g", t, q, theta=theta), atol=1e-15)
        np.testing.assert_allclose(run.residuals["g_dot"][k], SYSTEM.evaluate("g_dot", *at_state, theta=theta), atol=1e-15)
        matrix = SYSTEM.evaluate("multiplier_matrix", *at_state, theta=theta)
        rhs = SYSTEM.evaluate("multiplier_rhs", *at_state, theta=theta)
        np.testing.assert_allclose(run.lam[k], np.linalg.solve(matrix, rhs), rtol=1e-12)


def test_derived_quantities_are_computed_when_asked_for():
    run = simulate()
    assert run._observed == {}
    energy = run.energy
    assert set(run._observed) == {"energy"}
    assert np.shares_memory(run.energy, energy)


def test_shapes_have_time_first(run):
    assert (run.t.shape, run.q.shape, run.p.shape, run.v.shape) == ((21,), (21, 4), (21, 4), (21, 4))
    assert (run.lam.shape, run.energy.shape, run.residuals["g"].shape) == ((21, 2), (21,), (21, 2))
    assert len(run) == 21
    assert (run.status, run.message) == ("done", "")
    assert run.stats["steps"] == 20


# -- the grid of stored times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "save_every"), [(20, 1), (20, 5), (20, 7), (20, 20), (20, 50), (1, 1), (0, 3)])
def test_every_kth_state_and_the_last(steps, save_every):
    everything = simulate(steps=20)
    run = simulate(steps=steps, save_every=save_every)
    wanted = [k for k in range(steps + 1) if k % save_every == 0 or k == steps]
    np.testing.assert_array_equal(run.t, 0.25 + np.array(wanted) * 0.05)
    np.testing.assert_array_equal(run.q, everything.q[wanted])
    np.testing.assert_array_equal(run.p, everything.p[wanted])


def test_times_are_computed_from_the_integer():
    """k * h and not h + h + ...: after a million steps of 0.1 the difference would be 1e-7."""
    free = da.Hamiltonian(lambda q, p: p @ p / 2 + q @ q / 2, dim=1)
    run = da.simulate(free, da.Rattle(), q0=[1.0], p0=[0.0], h=0.1, steps=10**6, save_every=10**5, t0=3.0)
    np.testing.assert_array_equal(run.t, 3.0 + np.arange(0, 10**6 + 1, 10**5) * 0.1)
    assert np.cumsum(np.full(10**6, 0.1))[-1] != 10**6 * 0.1


def test_final_time_instead_of_steps():
    np.testing.assert_array_equal(simulate(steps=None, t1=1.25).q, simulate(steps=20).q)


# -- saving and loading ----------------------------------------------------------------------------------------------


def test_round_trip(run, tmp_path):
    path = run.save(tmp_path / "a run")
    assert path == tmp_path / "a run.npz"
    back = da.load(path)
    for name in ("t", "q", "p", "v", "lam", "energy"):
        np.testing.assert_array_equal(getattr(back, name), getattr(run, name))
    for name, value in run.residuals.items():
        np.testing.assert_array_equal(back.residuals[name], value)
    for name in ("h", "method", "status", "message", "stats", "fingerprint"):
        assert getattr(back, name) == getattr(run, name)
    assert back.fingerprint == SYSTEM.fingerprint
    np.testing.assert_array_equal(back.parameters["K"], SPRING)
    assert back.parameters["m"] == 3.0
    assert back.system is None


def test_saved_again_it_is_the_same(run, tmp_path):
    first = run.save(tmp_path / "first.npz")
    second = da.load(first).save(tmp_path / "second.npz")
    with np.load(first) as a, np.load(second) as b:
        assert set(a) == set(b)
        assert all(np.array_equal(a[name], b[name]) for name in a)


def test_file_holds_numbers_and_text_only(run, tmp_path):
    with np.load(run.save(tmp_path / "run.npz"), allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "fU" for name in file)


def test_file_has_the_usual_permissions(run, tmp_path):
    (tmp_path / "usual").write_text("")
    path = run.save(tmp_path / "run.npz")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


class _Bomb:
    def __reduce__(self):
        return (os.system, ("echo executed > executed",))


def _arrays(path):
    with np.load(path) as file:
        return dict(file)


def _one_array(path, run):
    with path.open("wb") as file:
        np.save(file, np.ones(3))


def _with_objects(path, run):
    arrays = _arrays(run.save(path))
    arrays["states"] = np.array([_Bomb()], dtype=object)
    np.savez(path, **arrays)


def _newer(path, run):
    arrays = _arrays(run.save(path))
    arrays["header"] = np.array(json.dumps({**json.loads(str(arrays["header"])), "format": 99}))
    np.savez(path, **arrays)


NOT_RUNS = {
    "missing": (lambda path, run: None, "cannot be read"),
    "a directory": (lambda path, run: path.mkdir(), "cannot be read"),
    "empty": (lambda path, run: path.write_bytes(b""), "not a run"),
    "text": (lambda path, run: path.write_text("hello"), "not a run"),
    "cut short": (lambda path, run: path.write_bytes(run.save(path).read_bytes()[:3000]), "not a run"),
    "other arrays": (lambda path, run: np.savez(path, x=np.ones(3)), "not a run"),
    "one array": (_one_array, "not a run"),
    "an object array": (_with_objects, "not a run"),
    "a newer format": (_newer, "newer dalembert"),
}


@pytest.mark.parametrize("name", NOT_RUNS)
def test_what_is_not_a_run_is_refused(name, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write, words = NOT_RUNS[name]
    path = tmp_path / "file.npz"
    write(path, run)
    with pytest.raises(da.InputError, match=words) as caught:
        da.load(path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
def test_failed_write_leaves_the_old_file(error, run, tmp_path, monkeypatch):
    path = run.save(tmp_path / "run.npz")
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half of it")
        raise error

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(da.DalembertError if isinstance(error, OSError) else type(error)):
        run.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_unwritable_place_is_refused_in_one_sentence(run, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "missing" / "run.npz", tmp_path / "file" / "run.npz"):
        with pytest.raises(da.DalembertError, match=r"could not be written.*choose another path") as caught:
            run.save(place)
        assert "\n" not in str(caught.value)
    (tmp_path / "taken.npz").mkdir()
    with pytest.raises(da.DalembertError, match="could not be written"):
        run.save(tmp_path / "taken.npz")


def test_xarray(run):
    data = run.to_xarray()
    assert dict(data.sizes) == {"time": 21, "coordinate": 4, "constraint": 2, "nonholonomic_constraint": 0}
    np.testing.assert_array_equal(data["time"], run.t)
    for name in ("q", "p", "v", "lam", "energy"):
        np.testing.assert_array_equal(data[name], getattr(run, name))
    np.testing.assert_array_equal(data["residual_g_dot"], run.residuals["g_dot"])
    assert data.attrs["method"] == "da.LobattoIIIAB(stages=3)"


# -- interruption and progress ---------------------------------------------------------------------------------------

LONG_RUN = """
import sys
import dalembert as da
problem, method = da.problems.double_pendulum(), da.LobattoIIIAB(stages=3)
run = da.simulate(problem, method, steps=10**9, save_every=1000, progress=True)
print(run.status, len(run), run.stats["steps"], run.message, sep="|")
run.save(sys.argv[1])
"""


def interrupt_a_long_run(path):
    """Ctrl-C soon after the progress line has appeared: the loop is running then, whatever the machine's speed."""
    command, environment = [sys.executable, "-c", LONG_RUN, str(path)], {**os.environ, "PYTHONPATH": ROOT}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, bufsize=0) as process:
        try:
            first = b""
            while b"left" not in first:  # on a busy machine a line about the preparation of the run comes first
                first += process.stderr.read(1)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, errors.decode()
    return output.decode(), (first + errors).decode()


def test_interrupt_keeps_what_was_computed(tmp_path):
    output, progress = interrupt_a_long_run(tmp_path / "run")
    status, stored, done, message = output.strip().split("|")
    assert status == "interrupted"
    assert int(stored) == 1 + int(done) // 1000 + (int(done) % 1000 > 0)
    assert int(done) > 10_000
    assert re.fullmatch(rf"interrupted after {done} of {10**9} steps, at t = \S+", message)
    back = da.load(tmp_path / "run.npz")
    assert (back.status, len(back), back.t[-1]) == ("interrupted", int(stored), int(done) * 0.12)
    assert np.all(np.isfinite(back.q))
    assert np.max(np.abs(back.residuals["g"])) < 1e-14
    assert re.search(r"\r\[=* *\] +\d+\.\d %  [\d,]+ of 1,000,000,000 steps  [\d,]+/s  [\d,]+ s left", progress)
    assert progress.endswith("\n")


def test_short_runs_and_quiet_runs_print_nothing(capfd):
    simulate(progress=True)
    simulate(progress=None)
    simulate(progress=False)
    assert capfd.readouterr() == ("", "")


SLOW_TO_COMPILE = """
import os, signal, sys, threading
import dalembert as da
from dalembert import _progress
problem, simulate = da.problems.chain(links=400), da.simulate  # the latter loads the modules that are looked for below
began = threading.Event()

def interrupt():  # Ctrl-C in the phase that is waited for; from a thread, so that CasADi or LLVM may be at work
    began.wait()
    os.kill(os.getpid(), signal.SIGINT)

def notice(name, phase=_progress.phase):
    phase(name)
    if name == sys.argv[1]:
        began.set()

for module in list(sys.modules.values()):
    if getattr(module, "phase", None) is _progress.phase and module is not _progress:
        module.phase = notice
threading.Thread(target=interrupt, daemon=True).start()
try:
    da.simulate(problem, da.Rattle(), steps=10, progress=False)
except KeyboardInterrupt:
    print("interrupted")
run = da.simulate(problem, da.Rattle(), steps=10, progress=False)
print(run.status, abs(run.residuals["g"]).max() < 1e-12)
"""


@pytest.mark.parametrize("name", ["the step equations", "their machine code"])
def test_compiling_can_be_interrupted_and_repeated(name, tmp_path):
    environment = {**os.environ, "PYTHONPATH": ROOT, "DALEMBERT_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SLOW_TO_COMPILE, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["interrupted", "done", "True"]


def test_a_ctrl_c_during_llvms_work_is_not_lost(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt  # as Python does at its next instruction

    monkeypatch.setattr(_jit, "_write", interrupted)
    m = float(np.random.default_rng().uniform(1, 2))  # no earlier run has stored its machine code
    pendulum = da.Hamiltonian(lambda q, p: p @ p / (2 * m) + q[1], dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])
    with pytest.raises(KeyboardInterrupt):
        da.simulate(pendulum, da.Rattle(), q0=[1, 0], p0=[0, 0], h=0.1, steps=10)


def test_preparing_a_run_says_what_it_is_doing(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)

    def seen(text):
        deadline = time.monotonic() + 60
        while text not in screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.05)
        return text in screen.getvalue()

    with _progress.preparing(True):
        _progress.phase("the kernels")
        assert seen("preparing the run, 4 of 6: the kernels, ")
        with _progress.preparing(True):  # a run within a run has no line of its own
            _progress.phase("their machine code")
            assert seen("preparing the run, 5 of 6: their machine code, ")
        assert "\n" not in screen.getvalue()
        with _progress.ProgressLine(10, True):  # takes over
            assert screen.getvalue().endswith("\n")


def test_a_ctrl_c_that_casadi_drops_ends_the_preparation(monkeypatch):
    """CasADi may drop the exception of a signal while it looks at its arguments; the next phase raises it again."""
    handler, compiled = signal.getsignal(signal.SIGINT), _jit.compile_module

    def dropped(*arguments):
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        return compiled(*arguments)

    monkeypatch.setattr(_ir, "compile_module", dropped)
    oscillator = da.Hamiltonian(lambda q, p: p @ p / 2 + 0.123 * q @ q, dim=1)
    with pytest.raises(KeyboardInterrupt):
        da.simulate(oscillator, da.Rattle(), q0=[1.0], p0=[0.0], h=0.1, steps=5)
    assert signal.getsignal(signal.SIGINT) is handler
    monkeypatch.undo()
    assert da.simulate(oscillator, da.Rattle(), q0=[1.0], p0=[0.0], h=0.1, steps=5).status == "done"
