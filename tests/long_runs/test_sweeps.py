"""Ensembles on executors: the same numbers as here, whoever computes them and whoever is lost on the way."""

import concurrent.futures
import multiprocessing
import os
import signal

import numpy as np
import pytest

import dalembert as da
from dalembert.compiler import _program
from dalembert.parallel import _executors
from dalembert.runs import _members
from dalembert.storage import _member_table, _sweep_store

zarr = pytest.importorskip("zarr")

PENDULUM = da.problems.pendulum()
METHOD = da.LobattoIIIAB(stages=3)
ANGLES = np.linspace(0.1, 1.5, 100)
START = {"q0": np.stack([np.sin(ANGLES), -np.cos(ANGLES)], axis=1), "p0": [0.0, 0.0]}
SWEEP = {**START, "h": 0.1, "steps": 400, "save_every": 10, "reduce": {"energy": "energy", "height": lambda q: q[1]}}


def spawned(workers):
    return concurrent.futures.ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def assert_same(runs, others):
    assert np.array_equal(np.asarray(runs.states), np.asarray(others.states), equal_nan=True)
    assert runs.status == others.status and runs.message == others.message and np.array_equal(runs.t, others.t)
    assert np.array_equal(runs.last, others.last, equal_nan=True) and np.array_equal(runs.steps_done, others.steps_done)
    assert runs.reduced.keys() == others.reduced.keys()
    for name in runs.reduced:
        for kind in _member_table.REDUCTION:
            assert np.array_equal(getattr(runs.reduced[name], kind), getattr(others.reduced[name], kind), equal_nan=True)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The sweep in parts, computed by this process."""
    return da.simulate_many(PENDULUM, METHOD, save_to=tmp_path_factory.mktemp("here") / "sweep.zarr", **SWEEP)


# -- the numbers ------------------------------------------------------------------------------------------------------------


def test_a_sweep_in_parts_has_the_numbers_of_single_runs(tmp_path):
    options = {"h": 0.1, "steps": 205, "save_every": 10}
    sweep = da.simulate_many(PENDULUM, METHOD, simd=False, save_to=tmp_path / "sweep.zarr", **START, **options)
    assert sweep.q.shape == (100, 21, 2) and set(sweep.status) == {"done"}
    for member in (0, 7, 8, 99):
        alone = da.simulate(PENDULUM, METHOD, q0=START["q0"][member], p0=[0.0, 0.0], **options)
        assert np.array_equal(sweep[member].states, alone.states) and np.array_equal(sweep[member].t, alone.t)
        assert np.array_equal(sweep[member].energy, alone.energy)


def test_a_process_pool_computes_what_this_process_computes(here):
    with spawned(2) as pool:
        assert_same(da.simulate_many(PENDULUM, METHOD, executor=pool, **SWEEP), here)


def test_a_thread_pool_serves_as_well(here):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert_same(da.simulate_many(PENDULUM, METHOD, executor=pool, **SWEEP), here)


def test_every_reduction_is_that_of_the_stored_steps(here):
    every = da.simulate_many(PENDULUM, METHOD, **{**SWEEP, "save_every": 1})
    height = every.q[:, :, 1]
    np.testing.assert_allclose(here.reduced["height"].max, height.max(axis=1), atol=1e-12)
    np.testing.assert_allclose(here.reduced["height"].min, height.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(here.reduced["height"].mean, height.mean(axis=1), atol=1e-12)


def test_parameters_vary_and_failed_members_do_not_stop_the_others(tmp_path):
    ending = da.Hamiltonian(lambda t, q, p, end: p @ p / 2 + np.sqrt(end - t) * q[0], dim=1, params={"end": 1.0})
    ends = np.linspace(0.55, 3.05, 26)
    options = {"q0": [0.0], "p0": [0.0], "h": 0.1, "steps": 20, "params": {"end": ends}}
    sweep = da.simulate_many(ending, da.Gauss(stages=1), save_to=tmp_path / "sweep.zarr", **options)
    assert [status == "done" for status in sweep.status] == (ends > 2.0).tolist()  # H must be defined at the end of every step
    assert sweep.message[0].startswith("step 6 from t = 0.5 failed")
    assert np.isnan(sweep.q[0, -1, 0]) and np.array_equal(sweep.parameters["end"], ends)
    loaded = da.load(tmp_path / "sweep.zarr")
    assert loaded.status == sweep.status and loaded.message == sweep.message
    assert loaded[0].t[-1] == sweep[0].t[-1] < 0.8 and loaded[25].parameters["end"] == ends[25]


def test_stage_multipliers_and_methods_with_a_state_of_their_own_travel():
    options = {**START, "h": 0.1, "steps": 20, "stage_multipliers": True, "simd": False}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        sweep = da.simulate_many(PENDULUM, da.Shake(), executor=pool, **options)
    alone = da.simulate(PENDULUM, da.Shake(), q0=START["q0"][9], p0=[0, 0], h=0.1, steps=20, stage_multipliers=True)
    assert np.array_equal(sweep[9].states, alone.states)
    assert np.array_equal(sweep[9].stage_lam[1:], alone.stage_lam[1:])


def test_a_worker_compiles_a_model_once(monkeypatch):
    compiled, compile_program = [], _program._compile
    monkeypatch.setattr(_program, "_compile", lambda *arguments: compiled.append(1) or compile_program(*arguments))
    monkeypatch.setattr(_program, "_programs", {})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        da.simulate_many(PENDULUM, METHOD, executor=pool, **START, h=0.1, steps=10)
    assert len(compiled) == 1


# -- stores -----------------------------------------------------------------------------------------------------------------


def test_a_sweep_that_stopped_goes_on_with_the_missing_parts(tmp_path, monkeypatch, here):
    write, calls = _sweep_store.SweepStore.write, []

    def interrupted(self, *arguments):
        calls.append(arguments[0])
        if len(calls) == 4:
            raise KeyboardInterrupt
        write(self, *arguments)

    monkeypatch.setattr(_sweep_store.SweepStore, "write", interrupted)
    stopped = da.simulate_many(PENDULUM, METHOD, save_to=tmp_path / "sweep.zarr", **SWEEP)
    monkeypatch.setattr(_sweep_store.SweepStore, "write", write)
    assert stopped.status.count("done") == 24 and stopped.status.count("interrupted") == 76
    assert np.isnan(stopped.q[24:]).all() and not np.isnan(stopped.q[:24]).any()
    computed, compute = [], _members.MembersJob.__call__
    monkeypatch.setattr(
        _members.MembersJob, "__call__", lambda *given, **options: computed.append(1) or compute(*given, **options)
    )
    resumed = da.resume(tmp_path / "sweep.zarr", PENDULUM, METHOD)
    assert len(computed) == 10, "thirteen parts of eight members, of which three were there"
    assert_same(resumed, here)
    for name, array in zarr.open_group(str(tmp_path / "sweep.zarr"), mode="r").arrays():
        assert np.array_equal(array[...], here_array(here, name), equal_nan=True), name


def here_array(here, name):
    return zarr.open_group(str(here.states._array.store.root), mode="r")[name][...]


def test_a_sweep_is_read_without_its_model(here, tmp_path):
    loaded = da.load(here.states._array.store.root)
    assert np.array_equal(loaded.q, here.q) and loaded.status == here.status and loaded.blocks == here.blocks
    assert np.array_equal(loaded[50].p, here[50].p) and loaded.reduced["height"].max[5] == here.reduced["height"].max[5]
    with pytest.raises(da.DalembertError, match="which has no model"):
        _ = loaded.energy


def test_another_model_or_method_and_wrong_arguments_are_refused(here, tmp_path):
    path = here.states._array.store.root
    with pytest.raises(da.InputError, match="belongs to another model"):
        da.resume(path, da.problems.double_pendulum(), METHOD)
    with pytest.raises(da.InputError, match="not by"):
        da.resume(path, PENDULUM, da.Rattle())
    with pytest.raises(da.InputError, match="leave steps= out"):
        da.resume(path, PENDULUM, METHOD, steps=7)
    with pytest.raises(da.InputError, match="exists already"):
        da.simulate_many(PENDULUM, METHOD, save_to=path, **SWEEP)
    with pytest.raises(da.InputError, match=r"concurrent.futures executor or a dask.distributed Client; got int"):
        da.simulate_many(PENDULUM, METHOD, executor=3, **SWEEP)
    da.simulate(PENDULUM, METHOD, h=0.1, steps=3, save_to=tmp_path / "run.zarr")
    with pytest.raises(da.InputError, match="a single run"):
        da.resume(tmp_path / "run.zarr", PENDULUM, METHOD, workers=2)


# -- lost workers -----------------------------------------------------------------------------------------------------------


LONG = {**SWEEP, "steps": 40_000, "save_every": 1000}


@pytest.fixture(scope="module")
def long_sweep():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return da.simulate_many(PENDULUM, METHOD, executor=pool, **LONG)


def kill_after_two_parts(patch, store, victim):
    """Let a worker be lost in the middle of a sweep."""
    write, written = store.write, []

    def killing(self, *arguments):
        write(self, *arguments)
        written.append(1)
        if len(written) == 2:
            os.kill(victim, signal.SIGKILL)

    patch.setattr(store, "write", killing)


def test_a_process_pool_that_loses_a_process_is_renewed(monkeypatch, long_sweep):
    with spawned(1) as pool:
        kill_after_two_parts(monkeypatch, _member_table.MemberTable, pool.submit(os.getpid).result())
        runs = da.simulate_many(PENDULUM, METHOD, executor=pool, **LONG)
        assert pool._broken
    assert_same(runs, long_sweep)


def test_what_goes_wrong_on_a_worker_is_said_in_one_sentence_and_what_was_computed_is_kept(tmp_path, monkeypatch, here):
    compute, parts = _members.MembersJob.__call__, []

    def failing(*arguments):
        parts.append(1)
        if len(parts) == 4:
            raise MemoryError("too large")
        return compute(*arguments)

    with monkeypatch.context() as patch, concurrent.futures.ThreadPoolExecutor(1) as pool:
        patch.setattr(_members.MembersJob, "__call__", failing)
        sentence = r"a part failed on its worker \(MemoryError: too large\).*da.resume goes on with what save_to= has"
        with pytest.raises(da.DalembertError, match=sentence):
            da.simulate_many(PENDULUM, METHOD, executor=pool, save_to=tmp_path / "sweep.zarr", **SWEEP)
    assert da.load(tmp_path / "sweep.zarr").status.count("done") == 24
    assert_same(da.resume(tmp_path / "sweep.zarr", PENDULUM, METHOD), here)


def test_a_sweep_on_dask_survives_the_loss_of_a_worker(tmp_path, monkeypatch, long_sweep):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as local, distributed.Client(local) as client:
        client.wait_for_workers(2)
        victim = next(iter(client.run(os.getpid).values()))
        kill_after_two_parts(monkeypatch, _sweep_store.SweepStore, victim)
        runs = da.simulate_many(PENDULUM, METHOD, executor=client, save_to=tmp_path / "sweep.zarr", **LONG)
        assert victim not in client.run(os.getpid).values()
    assert_same(runs, long_sweep)


def die_on_members_of_angle(angle):
    """Runs in every worker: the process ends when it gets the member that starts there."""
    compute = _members.MembersJob.__call__

    def deadly(job, starts):
        if np.any(np.abs(starts.packed[:, 0] - np.sin(angle)) < 1e-12):
            os._exit(9)
        return compute(job, starts)

    _members.MembersJob.__call__ = deadly


@pytest.mark.parametrize("workers", [1, 2])
def test_a_part_that_kills_its_workers_does_not_cost_what_was_computed(workers, tmp_path, monkeypatch, here):
    """Member 50 is in part 6, which is tried again after the parts that were not under way when the first pool was lost."""
    monkeypatch.setattr(_executors, "MOST_LOSSES", 1)
    context = multiprocessing.get_context("spawn")
    setup = {"initializer": die_on_members_of_angle, "initargs": (ANGLES[50],)}
    with (
        concurrent.futures.ProcessPoolExecutor(workers, mp_context=context, **setup) as pool,
        pytest.raises(da.DalembertError, match=r"workers of the executor were lost.*da.resume goes on with what save_to= has"),
    ):
        da.simulate_many(PENDULUM, METHOD, executor=pool, save_to=tmp_path / "sweep.zarr", **SWEEP)
    status = da.load(tmp_path / "sweep.zarr").status
    missing = {k // 8 for k, text in enumerate(status) if text != "done"}
    assert 6 in missing and len(missing) <= workers + 1
    assert_same(da.resume(tmp_path / "sweep.zarr", PENDULUM, METHOD), here)


# -- how members are spread ---------------------------------------------------------------------------------------------------


def test_few_members_are_spread_and_many_fill_vectors():
    assert [_members.part_size(n) for n in (1, 2, 16, 17, 40, 64, 65, 100, 2048, 2049)] == [1, 1, 1, 2, 4, 4, 8, 8, 8, 16]
    for n in range(1, 5000):
        assert -(-n // _members.part_size(n)) <= _members.MOST_PARTS


def test_the_numbers_of_few_members_do_not_depend_on_who_computes_them(tmp_path):
    few = {"q0": START["q0"][:5], "p0": [0.0, 0.0], "h": 0.1, "steps": 6000, "save_every": 100}
    single = da.simulate_many(PENDULUM, METHOD, workers=1, save_to=tmp_path / "one.zarr", **few)
    three = da.simulate_many(PENDULUM, METHOD, workers=3, save_to=tmp_path / "three.zarr", **few)
    assert_same(single, three)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert_same(single, da.simulate_many(PENDULUM, METHOD, executor=pool, **few))


def test_ctrl_c_stops_parts_that_are_computed_side_by_side(tmp_path, monkeypatch):
    few = {"q0": START["q0"][:6], "p0": [0.0, 0.0], "h": 0.1, "steps": 10**9, "reduce": "energy"}
    wait = _executors.wait

    def interrupted(futures, **options):
        wait(futures, timeout=0.5, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(_executors, "wait", interrupted)
    runs = da.simulate_many(PENDULUM, METHOD, workers=3, save_to=tmp_path / "sweep.zarr", **few)
    assert set(runs.status) == {"interrupted"}


def test_a_resumed_sweep_gives_each_worker_of_an_executor_one_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(_sweep_store.SweepStore, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    da.simulate_many(PENDULUM, METHOD, save_to=tmp_path / "sweep.zarr", **SWEEP)
    monkeypatch.undo()
    for workers in (-3, 0, "two"):
        with pytest.raises(da.InputError, match="workers must be an integer >= 1"):
            da.resume(tmp_path / "sweep.zarr", PENDULUM, METHOD, workers=workers)
    with pytest.raises(da.InputError, match="the method of the run"):
        da.resume(tmp_path / "sweep.zarr", PENDULUM, "LobattoIIIAB(stages=3)")
    seen, compute = set(), _members.MembersJob.__call__
    monkeypatch.setattr(_members.MembersJob, "__call__", lambda job, *rest: seen.add(job.policy.workers) or compute(job, *rest))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        da.resume(tmp_path / "sweep.zarr", PENDULUM, METHOD, executor=pool)
    assert seen == {1}


def test_a_part_that_does_not_fit_into_memory_is_refused_before_anything_is_computed(tmp_path, monkeypatch):
    """100 members of 10^6 states of 4 numbers: 3.2 GB, of which a part of 8 has 0.256 GB, on a machine of 0.2 GB."""
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 200_000, "SC_PAGE_SIZE": 1000}.__getitem__)
    long = {**START, "h": 0.1, "steps": 10**6, "workers": 2}
    with pytest.raises(da.InputError, match=r"the 8 members .* 0.256 GB .* save_every=.*fewer members.*da.simulate"):
        da.simulate_many(PENDULUM, METHOD, save_to=tmp_path / "sweep.zarr", **long)
    assert not list(tmp_path.iterdir())
