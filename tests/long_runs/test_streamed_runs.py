"""Runs on disk: the same numbers as in memory, resumed bit for bit wherever they stopped, refused where they do not belong."""

import errno
import json
import os

import numpy as np
import pytest

import dalembert as da
from dalembert.compiler import _orders
from dalembert.engine._run import Run
from dalembert.runs import _stored_run as stored
from dalembert.storage import _groups as _store
from dalembert.storage import _run_store

zarr = pytest.importorskip("zarr")

PENDULUM = da.problems.pendulum()
ODAE = da.ODAE(  # (4.1) of Jay and Simeon: nonlinear in lam, with lam = e^t
    v=lambda z: [2 * z[0], -z[1]],
    f=lambda y, z: [2 * y[0] * y[1] * z[0] * z[1] - y[0] * z[0] * z[1], z[0] - y[0] * z[1] ** 3],
    r=lambda y, z, lam: [y[1] * z[0] * lam[0] ** 2, -(y[0] ** 0.5) * z[0] * z[1] ** 2 * lam[0]],
    g=lambda y: [y[0] * y[1] ** 2 - 1],
    dim_y=2,
    dim_z=2,
)
KNIFE = da.Lagrangian(
    lambda q, v: v @ v / 2 + np.sin(0.3) * q[0],
    dim=3,
    nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]],
)
CASES = {
    "small": (PENDULUM, da.LobattoIIIAB(stages=3), {"h": 0.05}),
    "composition": (da.problems.double_pendulum(), da.compose(da.Rattle(), da.schemes.yoshida(6)), {"h": 0.05}),
    "another state": (PENDULUM, da.Shake(), {"h": 0.05}),
    "large": (da.problems.chain(links=24), da.LobattoIIIAB(stages=3), {"h": 0.05}),
    "nonlinear multipliers": (ODAE, da.compose(da.SymplecticEuler(), "strang"), {"y0": [1, 1], "z0": [1, 1], "h": 0.001}),
    "nonholonomic": (KNIFE, da.GaussLobattoSPARK(stages=2), {"q0": [0, 0, 0.1], "v0": [0, 0, 1], "h": 0.01}),
    "explicit time and another t0": (da.problems.pendulum_of_varying_length(), da.LobattoIIIAB(stages=2), {"h": 0.05}),
}


class Crash(BaseException):
    """Stands for the end of the process."""


def crash_at_commit(monkeypatch, count):
    """Let the process end when it is about to write for the count-th time."""
    commit, calls = _run_store.RunStore.commit, []

    def crashing(self, *arguments):
        calls.append(1)
        if len(calls) == count:
            raise Crash
        return commit(self, *arguments)

    monkeypatch.setattr(_run_store.RunStore, "commit", crashing)
    return lambda: monkeypatch.setattr(_run_store.RunStore, "commit", commit)


def arrays(path):
    group = zarr.open_group(str(path), mode="r")
    return {name: array[...] for name, array in group.arrays()}


def assert_same_bytes(first, second):
    a, b = arrays(first), arrays(second)
    assert a.keys() == b.keys() and {"t", "states"} <= a.keys()
    for name in a:
        assert a[name].shape == b[name].shape and a[name].tobytes() == b[name].tobytes(), name


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(stored, "CHUNK_NUMBERS", 400)


# -- the numbers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("crash", [1, 2, 4])
def test_a_resumed_run_is_bit_for_bit_the_uninterrupted_one(name, crash, tmp_path, monkeypatch, small_chunks):
    system, method, options = CASES[name]
    options = {"steps": 397, "save_every": 2, **options}
    whole = da.simulate(system, method, save_to=tmp_path / "whole.zarr", **options)
    assert whole.store.progress.rows > 3 * whole.store.header.chunk, "the run must have several chunks"
    restore = crash_at_commit(monkeypatch, crash)
    with pytest.raises(Crash):
        da.simulate(system, method, save_to=tmp_path / "parts.zarr", **options)
    restore()
    assert len(da.load(tmp_path / "parts.zarr")) == (crash - 1) * whole.store.header.chunk
    resumed = da.resume(tmp_path / "parts.zarr", system, method)
    assert_same_bytes(tmp_path / "whole.zarr", tmp_path / "parts.zarr")
    assert resumed.status == "done" and len(resumed) == 1 + 199
    for count in ("newton_iterations", "factorizations", "rescued_steps", "steps"):
        assert resumed.stats[count] == whole.stats[count]


@pytest.mark.parametrize("name", CASES)
def test_a_run_on_disk_has_the_numbers_of_a_run_in_memory(name, tmp_path, small_chunks):
    system, method, options = CASES[name]
    options = {"steps": 397, "save_every": 2, **options}
    on_disk = da.simulate(system, method, save_to=tmp_path / "run.zarr", **options)
    in_memory = da.simulate(system, method, **options)
    assert np.array_equal(on_disk.t, in_memory.t) and np.array_equal(on_disk.t, arrays(tmp_path / "run.zarr")["t"])
    np.testing.assert_allclose(np.asarray(on_disk.states), in_memory.states, rtol=1e-9, atol=1e-10)
    for quantity in ("v", "lam", "psi"):
        scale = np.abs(getattr(in_memory, quantity)).max(initial=1.0)
        np.testing.assert_allclose(getattr(on_disk, quantity), getattr(in_memory, quantity), atol=1e-8 * scale)
    for key, residual in in_memory.residuals.items():
        if residual.size and key in ("g", "k") and np.abs(residual).max() < 1e-12:
            assert np.abs(on_disk.residuals[key]).max() < 1e-12


def test_the_nonlinear_multiplier_is_the_exact_one_in_every_chunk(tmp_path, small_chunks):
    system, method, options = CASES["nonlinear multipliers"]
    run = da.simulate(system, method, steps=500, save_to=tmp_path / "run.zarr", **options)
    parts = list(run.chunks())
    assert len(parts) > 3
    lam = np.concatenate([part.lam[:, 0] for part in parts])
    np.testing.assert_allclose(lam, np.exp(run.t), rtol=1e-5)
    np.testing.assert_allclose(lam, run.lam[:, 0], rtol=1e-15)  # solved for many states at once, so not bit for bit


def test_stage_multipliers_are_kept_and_resumed(tmp_path, monkeypatch, small_chunks):
    options = {"h": 0.05, "steps": 300, "stage_multipliers": True}
    method = da.LobattoIIIAB(stages=3)
    whole = da.simulate(PENDULUM, method, save_to=tmp_path / "whole.zarr", **options)
    in_memory = da.simulate(PENDULUM, method, **options)
    np.testing.assert_allclose(whole.stage_lam[1:], in_memory.stage_lam[1:], atol=1e-10)
    assert np.isnan(whole.stage_lam[0]).all() and whole.stage_psi.shape == (301, 0)
    restore = crash_at_commit(monkeypatch, 3)
    with pytest.raises(Crash):
        da.simulate(PENDULUM, method, save_to=tmp_path / "parts.zarr", **options)
    restore()
    da.resume(tmp_path / "parts.zarr", PENDULUM, method)
    assert_same_bytes(tmp_path / "whole.zarr", tmp_path / "parts.zarr")


@pytest.mark.parametrize(("first", "save_every"), [(0, 1), (1, 3), (150, 7), (200, 1), (399, 2)])
def test_a_finished_run_can_be_made_longer(first, save_every, tmp_path, small_chunks):
    system, method, options = CASES["composition"]
    options = {"save_every": save_every, **options}
    da.simulate(system, method, steps=400, save_to=tmp_path / "whole.zarr", **options)
    run = da.simulate(system, method, steps=first, save_to=tmp_path / "longer.zarr", **options)
    assert run.t[-1] == pytest.approx(first * options["h"])
    assert da.resume(tmp_path / "longer.zarr", system, method, steps=400).stats["steps"] == 400
    assert_same_bytes(tmp_path / "whole.zarr", tmp_path / "longer.zarr")


def test_counts_that_an_older_store_does_not_have_begin_at_zero(tmp_path, small_chunks):
    system, method, options = CASES["small"]
    run = da.simulate(system, method, steps=100, save_to=tmp_path / "run.zarr", **options)
    place = tmp_path / "run.zarr" / "zarr.json"
    content = json.loads(place.read_text())
    for part in ("checkpoint", "progress"):
        del content["attributes"][part]["stats"]["pivoted_steps"]
    del content["attributes"]["digest"]
    content["attributes"]["format"] = 1
    place.write_text(json.dumps(content))
    resumed = da.resume(tmp_path / "run.zarr", system, method, steps=200)
    assert resumed.stats["pivoted_steps"] == 0 and resumed.stats["newton_iterations"] > run.stats["newton_iterations"]


def test_one_row_a_chunk_and_a_chunk_longer_than_the_run(tmp_path, monkeypatch):
    expected = da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=30, save_every=7)
    for numbers in (1, 10**6):
        monkeypatch.setattr(stored, "CHUNK_NUMBERS", numbers)
        run = da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=30, save_every=7, save_to=tmp_path / f"{numbers}.zarr")
        assert np.array_equal(run.t, expected.t) and run.t[-1] == 30 * 0.05
        np.testing.assert_allclose(run.q, expected.q, atol=1e-13)


# -- interruption and failure -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["between steps", "while writing"])
def test_ctrl_c_keeps_what_was_computed_and_resume_goes_on(where, tmp_path, monkeypatch, small_chunks):
    options = {"h": 0.05, "steps": 1000, "save_every": 3}
    da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "whole.zarr", **options)
    calls = []
    if where == "between steps":
        target, name = stored.ProgressLine, "update"
    else:
        target, name = _run_store.RunStore, "_write"
    original = getattr(target, name)

    def interrupting(*arguments):
        calls.append(1)
        if len(calls) == 10:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(target, name, interrupting)
    run = da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "parts.zarr", **options)
    monkeypatch.setattr(target, name, original)
    done = int(run.stats["steps"])
    assert run.status == "interrupted" and 0 < done < 1000 and f"after {done} of 1000 steps" in run.message
    assert run.t[-1] == done * 0.05 and len(run) == 1 + -(-done // 3)
    stopped = da.load(tmp_path / "parts.zarr")
    assert stopped.status == "interrupted" and np.array_equal(stopped.q, run.q) and not np.isnan(stopped.q).any()
    assert da.resume(tmp_path / "parts.zarr", PENDULUM, da.Rattle()).status == "done"
    assert_same_bytes(tmp_path / "whole.zarr", tmp_path / "parts.zarr")


@pytest.mark.parametrize("steps", [None, 2000])
def test_ctrl_c_before_a_resumed_run_computes_anything_leaves_what_is_there(steps, tmp_path, monkeypatch, small_chunks):
    path, options, total = tmp_path / "run.zarr", {"h": 0.05, "save_every": 3}, steps or 1500
    with monkeypatch.context() as patch:
        if steps is None:
            patch.setattr(Run, "advance", interrupted_at(Run.advance, 999))
        first = da.simulate(PENDULUM, da.Rattle(), save_to=path, steps=1500 if steps is None else 999, **options)
    assert first.status == ("interrupted" if steps is None else "done")
    before = np.array(first.q)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Run, "begin", interrupted)
        run = da.resume(path, PENDULUM, da.Rattle(), steps=steps)
    for left in (run, da.load(path)):
        assert left.status == "interrupted" and np.array_equal(left.q, before) and left.t[-1] == 999 * 0.05
    assert da.resume(path, PENDULUM, da.Rattle(), steps=steps).status == "done"
    da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "straight.zarr", steps=total, **options)
    assert_same_bytes(tmp_path / "straight.zarr", path)


def interrupted_at(advance, step):
    def stopping(run, report, last):
        reason = advance(run, report, min(last, step))
        if run.steps_done == step:
            raise KeyboardInterrupt
        return reason

    return stopping


@pytest.mark.parametrize("moment", ["attributes", "arrays"])
@pytest.mark.parametrize(("first", "then"), [(1000, 992), (992, 1000), (1000, 2000)])
def test_a_change_of_length_that_is_cut_off_leaves_a_run_that_goes_on(first, then, moment, tmp_path, monkeypatch, small_chunks):
    """The process ends when the attributes, or the second of the arrays, are about to change."""
    path, options = tmp_path / "run.zarr", {"h": 0.05, "save_every": 3}
    with monkeypatch.context() as patch:
        if then < first:  # what is done is not thrown away
            patch.setattr(Run, "advance", interrupted_at(Run.advance, 900))
        da.simulate(PENDULUM, da.Rattle(), save_to=path, steps=first, **options)
    target, name, count = (_store.Store, "_write_attributes", 1) if moment == "attributes" else (zarr.Array, "resize", 2)
    original, calls = getattr(target, name), []

    def crashing(*arguments, **named):
        calls.append(1)
        if len(calls) == count:
            raise Crash
        return original(*arguments, **named)

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(target, name, crashing)
        da.resume(path, PENDULUM, da.Rattle(), steps=then)
    left = da.load(path)
    straight = da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=2000)
    assert len(left) > 100 and not np.isnan(left.q).any()
    numbers = np.rint(np.asarray(left.t) / 0.05).astype(int)
    np.testing.assert_allclose(left.q, straight.q[numbers], atol=1e-9)
    assert da.resume(path, PENDULUM, da.Rattle(), steps=then).status == "done"
    da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "whole.zarr", steps=then, **options)
    assert_same_bytes(tmp_path / "whole.zarr", path)


def test_a_store_that_lost_rows_is_read_as_far_as_it_is_whole_or_refused(tmp_path, small_chunks):
    run = da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "run.zarr", h=0.05, steps=1000)
    complete = run.store.checkpoint.step
    states = zarr.open_array(str(tmp_path / "run.zarr"), path="states", mode="r+")
    states.resize((complete, 4))
    left = da.load(tmp_path / "run.zarr")
    assert left.status == "interrupted" and len(left) == complete and np.array_equal(left.q, run.q[:complete])
    states.resize((complete - 1, 4))
    with pytest.raises(da.InputError, match="its attributes say that 1001 are stored"):
        da.load(tmp_path / "run.zarr")


def test_a_failed_step_leaves_everything_before_it_on_disk(tmp_path, small_chunks):
    ending = da.Hamiltonian(lambda t, q, p: p @ p / 2 + np.sqrt(1 - t) * q[0], dim=1)  # undefined from t = 1 on
    options = {"q0": [1.0], "p0": [0.0], "h": 0.001, "steps": 5000}
    with pytest.raises(da.StepFailed, match="what was computed before it is in") as caught:
        da.simulate(ending, da.Gauss(stages=2), save_to=tmp_path / "run.zarr", **options)
    run = da.load(tmp_path / "run.zarr")
    assert run.status == "failed" and caught.value.run.status == "failed" and "failed" in run.message
    assert run.t[-1] == pytest.approx(1.0) and np.isfinite(run.q).all()
    np.testing.assert_allclose(run.p[:, 0], 2 / 3 * ((1 - run.t) ** 1.5 - 1), atol=1e-5)
    again = da.resume(tmp_path / "run.zarr", ending, da.Gauss(stages=2), on_failure="return")
    assert again.status == "failed" and np.array_equal(again.q, run.q)


# -- places that cannot be written ------------------------------------------------------------------------------------------


def test_a_full_disk_is_named_and_leaves_all_complete_chunks(tmp_path, monkeypatch, small_chunks):
    options = {"h": 0.05, "steps": 1000}
    whole = da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "whole.zarr", **options)
    write, calls = _run_store.RunStore._write, []

    def full(self, *arguments):
        calls.append(1)
        if len(calls) > 7:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, *arguments)

    monkeypatch.setattr(_run_store.RunStore, "_write", full)
    with pytest.raises(da.DalembertError, match=r"No space left on device.*make room.*stays readable"):
        da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "run.zarr", **options)
    monkeypatch.setattr(_run_store.RunStore, "_write", write)
    run = da.load(tmp_path / "run.zarr")
    assert len(run) == 3 * whole.store.header.chunk and np.array_equal(run.q, whole.q[: len(run)])
    da.resume(tmp_path / "run.zarr", PENDULUM, da.Rattle())
    assert_same_bytes(tmp_path / "whole.zarr", tmp_path / "run.zarr")


def test_a_run_that_cannot_fit_is_refused_at_the_start(tmp_path):
    with pytest.raises(da.DalembertError, match=r"the disk has .* left: store fewer states with save_every="):
        da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=10**16, save_to=tmp_path / "run.zarr")
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written_are_refused_at_the_start(tmp_path, monkeypatch):
    (tmp_path / "taken.zarr").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(da.InputError, match=r"exists already: go on with it by da.resume"):
        da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "taken.zarr")
    with pytest.raises(da.InputError, match="does not exist: make it first"):
        da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "nowhere" / "run.zarr")
    with pytest.raises(da.DalembertError, match="does not exist: make it first"):
        da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "file" / "run.zarr")
    monkeypatch.setattr(os, "access", lambda *_: False)  # the superuser may write everywhere
    with pytest.raises(da.DalembertError, match="permission denied"):
        da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "run.zarr")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a directory in which nobody can write")
def test_a_directory_in_which_nothing_can_be_made_is_refused_at_the_start():
    with pytest.raises(da.DalembertError, match=r"cannot be written|has 0 GB left"):
        da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=10, save_to="/proc/self/run.zarr")


def test_without_zarr_the_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    with pytest.raises(da.DalembertError, match=r"pip install dalembert\[zarr\]"):
        da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "run.zarr")


# -- whose run it is --------------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path):
    model = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 1.0})
    da.simulate(model, da.Rattle(), q0=[1.0], p0=[0.0], h=0.1, steps=10, params={"k": 4.0}, save_to=tmp_path / "run.zarr")
    return tmp_path / "run.zarr"


def oscillator(k=1.0, power=2):
    return da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q[0] ** power / 2, dim=1, params={"k": k})


def test_parameters_and_step_size_come_from_the_store(kept):
    model = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 1.0})
    run = da.resume(kept, model, da.Rattle(), steps=100)
    assert run.h == 0.1 and run.parameters["k"] == 4.0
    angle = np.arccos(1 - 4.0 * 0.1**2 / 2)  # the leapfrog rotates by this angle a step
    np.testing.assert_allclose(run.q[:, 0], np.cos(angle * np.arange(101)), atol=1e-13)


def test_another_model_another_parameter_and_another_method_are_refused(kept):
    same = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 1.0})
    changed = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 2.0})
    with pytest.raises(da.InputError, match="belongs to another model"):
        da.resume(kept, oscillator(power=4), da.Rattle())
    with pytest.raises(da.InputError, match=r"parameter k is 2.0, and was 1.0"):
        da.resume(kept, changed, da.Rattle())
    with pytest.raises(da.InputError, match=r"computed by da.Rattle\(\), not by da.LobattoIIIAB\(stages=3\)"):
        da.resume(kept, same, da.LobattoIIIAB(stages=3))
    with pytest.raises(da.InputError, match="the third argument of resume is the method of the run"):
        da.resume(kept, same, da.Rattle)
    with pytest.raises(da.InputError, match="give the system of the run"):
        da.resume(kept, da.Rattle(), da.Rattle())
    with pytest.raises(da.InputError, match=r"at least the \d+ that are done, none of which is thrown away; got -1"):
        da.resume(kept, same, da.Rattle(), steps=-1)


def test_a_method_of_the_same_name_with_other_coefficients_is_refused(tmp_path):
    midpoint = da.Tableau.of(A=[["1/2"]], b=[1], name="mine")
    euler = da.Tableau.of(A=[[1]], b=[1], name="mine")
    model = oscillator()
    da.simulate(model, da.RungeKutta(midpoint), q0=[1.0], p0=[0.0], h=0.1, steps=10, save_to=tmp_path / "run.zarr")
    assert str(da.RungeKutta(midpoint)) == str(da.RungeKutta(euler))
    with pytest.raises(da.InputError, match="writes other step equations"):
        da.resume(tmp_path / "run.zarr", model, da.RungeKutta(euler), steps=20)


# -- reading ----------------------------------------------------------------------------------------------------------------


def test_a_run_is_read_without_its_model_and_with_it(tmp_path, small_chunks):
    run = da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=500, save_to=tmp_path / "run.zarr")
    loaded = da.load(tmp_path / "run.zarr")
    assert np.array_equal(loaded.q, run.q) and np.array_equal(loaded.t, run.t) and loaded.method == run.method
    assert loaded.stats == run.stats and loaded.parameters == {"m": 1.0, "l": 1.0, "g": 1.0}
    with pytest.raises(da.DalembertError, match="which has no model"):
        _ = loaded.energy
    with_model = da.StoredTrajectory.open(tmp_path / "run.zarr", PENDULUM.system)
    assert np.array_equal(with_model.energy, run.energy)
    assert "501 states" in repr(loaded) and "t = 0 to 25" in repr(loaded)


def test_rows_are_read_like_those_of_an_array(tmp_path, small_chunks):
    run = da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=500, save_to=tmp_path / "run.zarr")
    states = np.asarray(run.states)
    assert states.shape == run.states.shape == (501, 4) and len(run.states) == 501
    for index in (3, -1, slice(95, 310), slice(490, None, 3), (slice(None), 2), (-2, 1), slice(None, None, -7), [4, 400]):
        assert np.array_equal(run.states[index], states[index])
    assert np.array_equal(list(run.states), states)
    with pytest.raises(IndexError):
        _ = run.states[501]
    parts = list(run.chunks())
    assert len(parts) == 6 and np.array_equal(np.vstack([part.states for part in parts]), states)
    assert np.array_equal(np.concatenate([part.energy for part in parts]), run.energy)


def test_dense_output_saving_and_xarray_work_on_a_run_on_disk(tmp_path, small_chunks):
    xarray = pytest.importorskip("xarray")
    problem, method = da.problems.pendulum(), da.GaussLobattoSPARK(stages=2)
    run = da.simulate(problem, method, h=0.05, steps=300, save_to=tmp_path / "run.zarr")
    in_memory = da.simulate(problem, method, h=0.05, steps=300)
    np.testing.assert_allclose(run.at([0.42, 10.01]).q, in_memory.at([0.42, 10.01]).q, atol=1e-11)
    assert np.array_equal(da.load(run.save(tmp_path / "copy.npz")).p, run.p)
    assert np.array_equal(run.to_xarray()["q"], run.q)
    assert np.array_equal(xarray.open_zarr(tmp_path / "run.zarr", consolidated=False)["states"], run.states)


def test_files_that_are_no_run_are_refused(tmp_path):
    zarr.create_group(store=str(tmp_path / "other.zarr"))
    (tmp_path / "empty").mkdir()
    da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=5, save_to=tmp_path / "new.zarr")
    text = (tmp_path / "new.zarr" / "zarr.json").read_text()
    (tmp_path / "new.zarr" / "zarr.json").write_text(text.replace('"format": 2', '"format": 99'))
    for name, sentence in (("other.zarr", "is not a run saved by"), ("empty", "cannot be read"), ("new.zarr", "format 99")):
        with pytest.raises(da.InputError, match=sentence):
            da.load(tmp_path / name)
    (tmp_path / "new.zarr" / "zarr.json").write_text(text[:100])
    with pytest.raises(da.InputError, match="is not a run saved by"):
        da.load(tmp_path / "new.zarr")


def test_the_attributes_are_strict_json(tmp_path):
    run = da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=5, stage_multipliers=True, save_to=tmp_path / "run.zarr")

    def refuse(constant):
        raise AssertionError(constant)

    json.loads((run.store.path / "zarr.json").read_text(), parse_constant=refuse)


def test_pivot_orders_of_earlier_starts_do_not_change_a_stored_run(tmp_path, monkeypatch):
    """What ran before in a process must not show in the bits of a run that another process may go on with."""
    system, method = da.problems.double_pendulum().system, da.GaussLobattoSPARK(2)
    given = {"q0": [1.0, 0.0, 2.0, 0.0], "p0": [0.0] * 4, "h": 0.02, "steps": 60}
    monkeypatch.setattr(_orders, "_structural_order", lambda reduced, part: None)  # so that every start needs an order
    monkeypatch.setattr(_orders, "LARGEST_ERROR", {"jacobian": np.inf, "last": np.inf})  # and any will do
    monkeypatch.setattr(_orders, "_needed", {})
    first = da.simulate(system, method, **given, save_to=tmp_path / "first.zarr")
    reduced = _orders.reduced_step(system, method)
    rows, columns = (np.array(a, dtype=int) for a in reduced.jacobian.sparsity().get_triplet())
    values = np.random.default_rng(2).normal(size=(len(rows), 1))
    other = _orders.choose_pivots(rows, columns, values, reduced.x.shape[0])
    (own,) = _orders._needed[reduced, "jacobian"]
    assert other != own
    _orders._needed[reduced, "jacobian"][:] = [other]  # as if another start had needed it
    monkeypatch.setattr(_orders, "_decided", {})
    second = da.simulate(system, method, **given, save_to=tmp_path / "second.zarr")
    assert np.array_equal(np.asarray(first.q[:]), np.asarray(second.q[:]))
    assert own in _orders._needed[reduced, "jacobian"]


def test_a_run_is_not_made_shorter_than_it_is(tmp_path, small_chunks):
    run = da.simulate(PENDULUM, da.Rattle(), save_to=tmp_path / "run.zarr", h=0.05, steps=500)
    with pytest.raises(da.InputError, match="at least the 500 that are done"):
        da.resume(tmp_path / "run.zarr", PENDULUM, da.Rattle(), steps=50)
    assert np.array_equal(da.load(tmp_path / "run.zarr").q, run.q) and len(run) == 501


def test_a_run_on_disk_is_given_its_model_again(tmp_path):
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar", params={"m": 0.3})
    rod = m.rod("rod", (0, 0), (0.4, 0), mass="m")
    hinge = m.revolute(m.ground, rod, at=(0, 0))
    given = {"h": 0.01, "steps": 30}
    run = da.simulate(m, da.LobattoIIIAB(3), save_to=tmp_path / "run.zarr", **given)
    run.save(tmp_path / "run.npz")
    da.simulate_many(m, da.LobattoIIIAB(3), params={"m": [0.3, 0.5]}, save_to=tmp_path / "sweep.zarr", **given)
    with pytest.raises(da.DalembertError, match=r"v is not stored .* da\.load\(path, system\)"):
        _ = da.load(tmp_path / "run.zarr").of(rod).velocity
    for name in ("run.zarr", "run.npz"):
        assert np.array_equal(da.load(tmp_path / name, m).of(hinge).force, run.of(hinge).force)
    heavy = da.load(tmp_path / "sweep.zarr", m)[1]  # thin rods fall alike, and press as they weigh
    assert np.allclose(heavy.of(hinge).angle, run.of(hinge).angle, rtol=0, atol=1e-12)
    assert np.allclose(heavy.of(hinge).force, run.of(hinge).force * 5 / 3, rtol=1e-9, atol=1e-9)
    for other in (da.problems.pendulum(), 3):
        for name in ("run.zarr", "run.npz", "sweep.zarr"):
            with pytest.raises(da.InputError, match=r"another model|give the system"):
                da.load(tmp_path / name, other)
