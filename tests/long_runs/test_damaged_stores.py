"""Stores and run files that were damaged, edited, made by an older version or opened by two writers at once."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.runs import _stored_run as stored

pytest.importorskip("zarr")

OLD = Path(__file__).parent / "stores"
PENDULUM = da.problems.pendulum()
OSCILLATOR = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=1)
BLOCK = da.Lagrangian(lambda q, v: 0.1 * v @ v - 1.962 * q[1], dim=2, unilateral=lambda q: q[1], friction=0.3, restitution=0.4)
STARTS = {"q0": [[0.1], [0.2], [0.3]], "v0": [[0.0], [0.1], [0.0]], "h": 0.05, "steps": 20}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A run with several chunks, one with impacts, one by time stepping, and two sweeps."""
    folder = tmp_path_factory.mktemp("stores")
    patch = pytest.MonkeyPatch()
    patch.setattr(stored, "CHUNK_NUMBERS", 400)
    da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=350, save_to=folder / "run.zarr")
    da.simulate(da.problems.bouncing_ball(), da.CVA(), h=0.01, steps=300, save_to=folder / "impacts.zarr")
    da.simulate(BLOCK, da.MoreauJean(), q0=[0, 0.02], v0=[1, 0], h=2e-3, steps=300, save_to=folder / "stepping.zarr")
    da.simulate_many(OSCILLATOR, da.Variational("SVC"), **STARTS, save_to=folder / "sweep.zarr")
    slides = {"q0": [0, 0], "v0": [[1.0, 0], [0.5, 0]], "h": 2e-3, "steps": 60}
    da.simulate_many(BLOCK, da.MoreauJean(), **slides, save_to=folder / "many.zarr")
    da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=50).save(folder / "run.npz")
    patch.undo()
    return folder


def numbers(place):
    """All that is stored, as one array of bytes."""
    run = da.load(place)
    parts = [run.t, np.asarray(run.states)]
    for events in (run.impacts, getattr(run, "contacts", None)):
        parts += [np.asarray(column) for column in vars(events).values()] if events is not None else []
    if hasattr(run, "steps_done"):
        parts += [np.asarray(run.steps_done)]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def test_a_damaged_chunk_is_named(stores, tmp_path):
    for number in range(4):
        place = tmp_path / f"run{number}.zarr"
        shutil.copytree(stores / "run.zarr", place)
        chunk = place / "states" / "c" / str(number) / "0"
        data = bytearray(chunk.read_bytes())
        data[len(data) // 2] ^= 4
        chunk.write_bytes(data)
        run = da.load(place)
        with pytest.raises(da.InputError, match=rf"chunk c/{number}/0 of states .* is damaged"):
            run.q  # noqa: B018
    chunk.write_bytes(data[:-7])
    with pytest.raises(da.InputError, match="chunk c/3/0 of states"):
        np.asarray(da.load(place).states)
    chunk.unlink()
    with pytest.raises(da.InputError, match=r"chunk c/3/0 of states .* is missing"):
        da.load(place)


def test_edited_attributes_are_refused(stores, tmp_path):
    for name, value in (("h", "a"), ("t0", None), ("save_every", 0), ("h", 0.07), ("steps", 1e99)):
        for store in ("run.zarr", "sweep.zarr"):
            place = tmp_path / store
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(stores / store, place)
            document = json.loads((place / "zarr.json").read_text())
            document["attributes"]["header"][name] = value
            (place / "zarr.json").write_text(json.dumps(document))
            for opened in (da.load, lambda at: da.resume(at, PENDULUM, da.Rattle())):
                with pytest.raises(da.InputError, match="damaged or edited"):
                    opened(place)


def random_damage(rng, file):
    """Change, cut or delete a file."""
    data = bytearray(file.read_bytes())
    kind = rng.choice(["bit", "byte", "cut", "delete", "zeros"])
    where = int(rng.integers(max(1, len(data))))
    if kind == "bit" and data:
        data[where] ^= 1 << int(rng.integers(8))
    elif kind == "byte" and data:
        data[where] = int(rng.integers(256))
    elif kind == "zeros":
        data[where : where + 16] = bytes(len(data[where : where + 16]))
    else:
        data = data[:where]
    file.write_bytes(data)
    if kind == "delete":
        file.unlink()
    return f"{kind} at {where} of {file.name}"


def check_damage(stores, cases, seed):
    """Every damage is found, with a sentence, or changes nothing that is read."""
    rng = np.random.default_rng(seed)
    places = [stores / f"{name}.zarr" for name in ("run", "impacts", "stepping", "sweep", "many")] + [stores / "run.npz"]
    right, found = {place: numbers(place) for place in places}, 0
    for case in range(cases):
        place = places[case % len(places)]
        inside = sorted(file for file in place.rglob("*") if file.is_file() and not file.name.startswith("."))
        file = inside[rng.integers(len(inside))] if inside else place
        whole = file.read_bytes()
        what = random_damage(rng, file)
        try:
            assert numbers(place) == right[place], f"{what} of {file} changed what is read (seed {seed}, case {case})"
        except da.DalembertError:
            found += 1
        file.write_bytes(whole)
    return found


def test_random_damage_is_found_or_harmless(stores):
    assert check_damage(stores, cases=80, seed=1) > 20


@pytest.mark.slow
def test_much_random_damage_is_found_or_harmless(stores):
    assert check_damage(stores, cases=10_000, seed=2) > 2500


def test_stores_of_the_version_before_are_read_and_continued(tmp_path):
    shutil.copytree(OLD, tmp_path / "old")
    run = da.load(tmp_path / "old" / "run_format_1.zarr")
    again = da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=150)
    assert run.status == "done" and np.abs(run.q - again.q).max() < 1e-12
    longer = da.resume(tmp_path / "old" / "run_format_1.zarr", PENDULUM, da.Rattle(), steps=300)
    assert np.abs(longer.q - da.simulate(PENDULUM, da.Rattle(), h=0.05, steps=300).q).max() < 1e-12
    for name in ("run_format_1.zarr", "sweep_format_1.zarr"):  # what has no checksums does not say that it has
        said = json.loads((tmp_path / "old" / name / "zarr.json").read_text())["attributes"]
        assert said["format"] == 1
    sweep = da.load(tmp_path / "old" / "sweep_format_1.zarr")
    assert np.abs(sweep.q - da.simulate_many(OSCILLATOR, da.Variational("SVC"), **STARTS).q).max() < 1e-13


def test_impacts_of_the_version_before_are_read_and_continued(tmp_path):
    shutil.copytree(OLD, tmp_path / "old")
    ball = da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[0], dim=1, unilateral=lambda q: q[0])
    half_period = np.sqrt(2 / 9.81)  # a ball dropped from one metre
    for name in ("impacts_format_1.zarr", "impacts_format_1.npz"):
        run = da.load(tmp_path / "old" / name)
        assert np.abs(run.impacts.t - half_period * np.array([1, 3])).max() < 1e-12
        assert run.impacts.friction.tolist() == [0, 0] and len(run.contacts) == 0
    longer = da.resume(tmp_path / "old" / "impacts_format_1.zarr", ball, da.CVA(), steps=400)
    assert np.abs(longer.impacts.t - half_period * np.array([1, 3, 5, 7])).max() < 1e-9


HOLD = """
import sys, time
from pathlib import Path
from dalembert.storage._on_disk import locked
with locked(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(600)
"""


def test_a_store_that_another_process_writes_is_not_touched(stores, tmp_path):
    place = tmp_path / "run.zarr"
    shutil.copytree(stores / "run.zarr", place)
    before = numbers(place)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(place)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(da.InputError, match=rf"is being written by process {holder.pid} on "):
            da.resume(place, PENDULUM, da.Rattle(), steps=500)
        assert numbers(place) == before
        holder.kill()
    assert da.resume(place, PENDULUM, da.Rattle(), steps=500).status == "done"  # a lock does not outlive its holder
    assert len(da.load(place)) == 501
