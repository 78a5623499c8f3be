"""Runs with impacts on disk: nothing about walls is forgotten from chunk to chunk, whatever happens in between."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.engine._records import rows_of
from dalembert.runs import _members
from dalembert.runs import _stored_run as stored
from dalembert.storage import _groups as _store

zarr = pytest.importorskip("zarr")

ROOT = str(Path(da.__file__).parents[1])
MODELS = """
import numpy as np
import dalembert as da
from dalembert.runs import _stored_run as stored
stored.CHUNK_NUMBERS = 100

def ball_on_a_table():
    return da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[0], dim=1, unilateral=lambda t, q: q[0] - 0.1 * np.sin(12 * t),
                         restitution=0.3)

table, case = ball_on_a_table(), {"q0": [0.3], "v0": [0.0], "h": 0.01, "steps": 400}
"""
exec(MODELS.replace("stored.CHUNK_NUMBERS = 100", ""))  # the processes that are killed have the same models
CART = da.Lagrangian(
    lambda q, v: 0.6 * v[0] ** 2 + 0.4 * np.sin(q[1]) * v[0] * v[1] + 0.4 * v[1] ** 2 - 12 * q[0] + 4 * np.cos(q[1]),
    dim=2,
    unilateral=lambda q: q[0],
)
table, case = globals()["table"], globals()["case"]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(stored, "CHUNK_NUMBERS", 100)


def contents(path):
    return {name: array[...].tobytes() for name, array in zarr.open_group(str(path), mode="r").arrays()}


def assert_close(first, second, tolerance):
    assert len(first) == len(second)
    for f in fields(first):
        assert np.allclose(getattr(first, f.name), getattr(second, f.name), rtol=0, atol=tolerance), f.name


def test_a_stored_run_has_the_impacts_and_contacts_of_one_in_memory(tmp_path):
    alone, run = da.simulate(table, da.CVA(), **case), da.simulate(table, da.CVA(), **case, save_to=tmp_path / "run.zarr")
    assert len(alone.contacts) >= 5 and len(list(run.chunks())) == 9
    # some of the contacts go on across the end of a chunk
    ends = np.arange(1, 9) * 50 * 0.01
    assert np.any((alone.contacts.begin[:, None] < ends) & (ends < alone.contacts.end[:, None]))
    assert np.abs(run.states[:] - alone.states).max() < 1e-13
    # the last bounces before a contact are lost in round-off, and so is their number
    assert_close(*(rows_of(da.Impacts, x.impacts, x.impacts.impulse > 1e-4) for x in (run, alone)), 1e-10)
    # ... which lasts sqrt(eps) s and more, so that a contact begins a little earlier or later
    assert_close(run.contacts, alone.contacts, 1e-6)
    assert run.stats["impacts"] == len(run.impacts)
    parts = list(run.chunks())
    assert np.array_equal(np.concatenate([part.impacts.t for part in parts]), run.impacts.t)
    assert all(np.all(part.impacts.t <= part.t[-1] + 0.01 + 1e-12) for part in parts)
    loaded = da.load(tmp_path / "run.zarr")
    assert np.array_equal(loaded.impacts.q, run.impacts.q) and np.array_equal(loaded.contacts.end, run.contacts.end)


@pytest.mark.parametrize("method", [da.CVA(), da.VCI(), da.MCVAA()], ids=str)
def test_a_resumed_run_with_impacts_is_bit_for_bit_the_uninterrupted_one(method, tmp_path):
    start = {"q0": [0.3, 0.0], "v0": [0.0, 1.0], "h": 0.01}
    whole = da.simulate(CART, method, **start, steps=500, save_to=tmp_path / "whole.zarr")
    assert len(whole.impacts) > 8
    for first in (130, 133):
        path = tmp_path / f"{first}.zarr"
        da.simulate(CART, method, **start, steps=first, save_to=path)
        resumed = da.resume(path, CART, method, steps=500)
        assert contents(path) == contents(tmp_path / "whole.zarr")
        assert resumed.stats["impacts"] == len(whole.impacts)


@pytest.mark.parametrize("call", [3, 4, 5])
def test_ctrl_c_while_a_chunk_is_written_loses_no_impact(call, tmp_path, monkeypatch):
    da.simulate(table, da.CVA(), **case, save_to=tmp_path / "whole.zarr")
    write, calls = _store.Store._write_attributes, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        write(*arguments)

    monkeypatch.setattr(_store.Store, "_write_attributes", interrupted)
    run = da.simulate(table, da.CVA(), **case, save_to=tmp_path / "run.zarr")
    assert run.status == "interrupted"
    da.resume(tmp_path / "run.zarr", table, da.CVA())
    assert contents(tmp_path / "run.zarr") == contents(tmp_path / "whole.zarr")


KILLS = {
    "before impacts are written": """
        sync, calls = _store.sync, []
        def dying(place):
            calls.append(place.parts[-2:])
            if calls.count(("impact_q", "zarr.json")) == 3: die()
            sync(place)
        _store.sync = dying
        """,
    "between impacts and the attributes that announce them": """
        write, calls = _store.Store._write_attributes, []
        def dying(*arguments):
            calls.append(1)
            if len(calls) == 3: die()
            write(*arguments)
        _store.Store._write_attributes = dying
        """,
}


@pytest.mark.parametrize("moment", KILLS)
def test_a_killed_run_with_impacts_resumes_to_the_same_file(moment, tmp_path):
    da.simulate(table, da.CVA(), **case, save_to=tmp_path / "whole.zarr")
    code = MODELS + "import os, signal\nfrom dalembert.storage import _groups as _store\n"
    code += "def die(): os.kill(os.getpid(), signal.SIGKILL)\n"
    code += textwrap.dedent(KILLS[moment]) + 'da.simulate(table, da.CVA(), **case, save_to="run.zarr")'
    environment = {**os.environ, "PYTHONPATH": ROOT}
    killed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, timeout=300)
    assert killed.returncode == -9, killed.stderr
    left = da.load(tmp_path / "run.zarr")
    assert len(left) == 100 and np.all(left.impacts.t <= 1.0 + 1e-12) and len(left.impacts) > 0
    da.resume(tmp_path / "run.zarr", table, da.CVA())
    assert contents(tmp_path / "run.zarr") == contents(tmp_path / "whole.zarr")


def test_a_stored_run_knows_its_model_and_its_method(tmp_path):
    """Not those of the motion between impacts."""
    method = da.CVA("midpoint")
    begun = da.simulate(table, method, **{**case, "steps": 50}, save_to=tmp_path / "run.zarr")
    resumed = da.resume(tmp_path / "run.zarr", table, method, steps=100)
    for run in (begun, resumed, *resumed.chunks()):
        assert run.system is table and run.solver == method
    with pytest.raises(da.InputError, match="does not see impacts"):
        resumed.at(0.1)


def test_another_wall_or_another_tolerance_is_refused(tmp_path):
    path = tmp_path / "run.zarr"
    da.simulate(table, da.CVA(), **case, save_to=path)
    with pytest.raises(da.InputError, match="other step equations"):
        da.resume(path, table, da.CVA(collision_tolerance=1e-3), steps=500)
    with pytest.raises(da.InputError, match="another model"):
        da.resume(path, da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[0], dim=1, unilateral=lambda q: q[0]), da.CVA())


def test_a_sweep_keeps_the_impacts_of_its_members(tmp_path):
    heights = np.linspace(0.1, 1.0, 20)[:, None]
    sweep = {"v0": [0.0], "h": 0.01, "steps": 150}
    here = da.simulate_many(table, da.CVA(), q0=heights, **sweep)
    with ThreadPoolExecutor(2) as executor:
        runs = da.simulate_many(table, da.CVA(), q0=heights, **sweep, executor=executor)
        kept = da.simulate_many(table, da.CVA(), q0=heights, **sweep, executor=executor, save_to=tmp_path / "sweep.zarr")
    loaded = da.load(tmp_path / "sweep.zarr")
    for ensemble in (runs, kept, loaded):
        for name in ("impacts", "contacts"):
            for f in fields(getattr(here, name)):
                assert np.array_equal(getattr(getattr(ensemble, name), f.name), getattr(getattr(here, name), f.name))
        assert np.array_equal(ensemble[13].impacts.t, here[13].impacts.t) and ensemble[13].stats == here[13].stats
        assert ensemble.stats["impacts"] == len(here.impacts) > 100


def test_a_sweep_that_stopped_gets_the_impacts_of_its_missing_parts(tmp_path, monkeypatch):
    heights, path = np.linspace(0.1, 1.0, 20)[:, None], tmp_path / "sweep.zarr"
    sweep = {"v0": [0.0], "h": 0.01, "steps": 150}
    here = da.simulate_many(table, da.CVA(), q0=heights, **sweep)
    compute, parts = _members.MembersJob.__call__, []

    def stopping(*given, **options):
        parts.append(1)
        if len(parts) == 3:
            raise KeyboardInterrupt
        return compute(*given, **options)

    monkeypatch.setattr(_members.MembersJob, "__call__", stopping)
    part = da.simulate_many(table, da.CVA(), q0=heights, **sweep, workers=1, save_to=path)
    assert set(part.impacts.member) == set(range(4)) and np.array_equal(part[3].impacts.t, here[3].impacts.t)
    whole = da.resume(path, table, da.CVA())
    assert np.array_equal(whole.impacts.t, here.impacts.t) and np.array_equal(whole.contacts.begin, here.contacts.begin)


def test_a_sweep_counts_impacts(tmp_path):
    heights = np.linspace(0.1, 1.0, 12)[:, None]
    arguments = {"q0": heights, "v0": [0.0], "h": 0.01, "steps": 150, "reduce": {"energy": "energy", "bounces": "impacts"}}
    here = da.simulate_many(table, da.CVA(), **arguments).reduced["bounces"]
    da.simulate_many(table, da.CVA(), **arguments, save_to=tmp_path / "sweep.zarr")
    loaded = da.load(tmp_path / "sweep.zarr")
    assert loaded.impacts is None and "energy" in loaded.reduced
    for f in fields(here):
        assert np.array_equal(getattr(loaded.reduced["bounces"], f.name), getattr(here, f.name))
