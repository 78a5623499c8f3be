"""Processes that are really killed, disks that are really full, and how much memory a long run takes."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import dalembert as da

zarr = pytest.importorskip("zarr")

ROOT = str(Path(da.__file__).parents[1])
PRELUDE = """
import os, signal, sys, threading, time
import dalembert as da
from dalembert.storage import _run_store
from dalembert.runs import _stored_run as stored
pendulum, method = da.problems.pendulum(), da.Rattle()
def die(): os.kill(os.getpid(), signal.SIGKILL)
"""
MOMENTS = {
    "computing": """
        def watch():
            while not (os.path.exists("run.zarr") and len(da.load("run.zarr"))): time.sleep(0.001)
            die()
        threading.Thread(target=watch, daemon=True).start()
        """,
    "between two arrays of a chunk": """
        write, calls = _run_store.RunStore._write, []
        def dying(self, name, *arguments):
            calls.append(name)
            if calls.count("states") == 2: die()
            write(self, name, *arguments)
        _run_store.RunStore._write = dying
        """,
    "before the chunk counts": """
        replace, calls = os.replace, []
        def dying(*arguments):
            calls.append(str(arguments[1]).endswith("run.zarr/zarr.json"))
            if sum(calls) == 2: die()
            replace(*arguments)
        os.replace = dying
        """,
    "making the store": """
        rename = os.rename
        def dying(*arguments):
            if "run.zarr" in str(arguments[1]): die()
            rename(*arguments)
        os.rename = dying
        """,
    "extending": """
        from dalembert.engine import _run
        da.simulate(pendulum, method, h=0.01, steps=300_500, save_every=1000, save_to="run.zarr")
        _run.Run.begin = lambda *_: die()
        """,
}


def python(code, folder):
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        timeout=600,
    )


def contents(path):
    return {name: array[...].tobytes() for name, array in zarr.open_group(str(path), mode="r").arrays()}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run.zarr"
    da.simulate(da.problems.pendulum(), da.Rattle(), h=0.01, steps=10**6, save_every=1000, save_to=path)
    return path


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_is_readable_and_resumes_to_the_same_file(moment, tmp_path, uninterrupted):
    simulate = 'da.simulate(pendulum, method, h=0.01, steps=10**6, save_every=1000, save_to="run.zarr")'
    if moment == "extending":
        simulate = 'da.resume("run.zarr", pendulum, method, steps=10**6)'
    killed = python(textwrap.dedent(MOMENTS[moment]) + simulate, tmp_path)
    assert killed.returncode == -9, killed.stderr
    path = tmp_path / "run.zarr"
    if moment == "making the store":
        assert not path.exists()
        return
    whole, left = da.load(uninterrupted), da.load(path)
    rows = 301 if moment == "extending" else whole.store.header.chunk
    assert left.status == "interrupted" and len(left) == rows < len(whole) / 1.5
    assert np.array_equal(left.q, whole.q[: len(left)]) and "of 1000000 steps are stored" in left.message
    assert da.resume(path, da.problems.pendulum(), da.Rattle()).status == "done"
    assert contents(path) == contents(uninterrupted)


def peak_memory(steps, save_every, folder):
    """The largest resident size, in MB, of a process that runs so many steps to disk, less what it had after a short run."""
    code = f"""
    def resident(key):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024
    da.simulate(pendulum, method, h=0.01, steps=10**6, save_every={save_every}, save_to="short.zarr")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the largest size is that from now on
    before = resident("VmRSS")
    run = da.simulate(pendulum, method, h=0.01, steps={steps}, save_every={save_every}, save_to="long.zarr")
    print(resident("VmHWM") - before, len(run))
    """
    process = python(code, folder)
    assert process.returncode == 0, process.stderr
    growth, rows = process.stdout.split()
    assert int(rows) == steps // save_every + 1
    return float(growth)


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


@needs_proc
def test_memory_does_not_grow_with_the_number_of_stored_states(tmp_path):
    growth = peak_memory(6 * 10**6, 1, tmp_path)  # 240 MB on disk
    assert growth < 60


@needs_proc
@pytest.mark.slow
def test_memory_is_flat_over_a_hundred_million_steps(tmp_path):
    growth = peak_memory(10**8, 1000, tmp_path)
    print(f"memory grew by {growth:.1f} MB")
    assert growth < 10
    run = da.StoredTrajectory.open(tmp_path / "long.zarr", da.problems.pendulum().system)
    largest = max(np.abs(part.residuals["g"]).max() for part in run.chunks())
    print(f"largest residual {largest:.3g}")
    assert largest <= 1e-15
    assert np.abs(run.energy - run.energy[0]).max() < 1e-4


@pytest.mark.slow
def test_a_hundred_million_steps_killed_half_way_and_again_are_the_uninterrupted_ones(tmp_path):
    options = {"h": 0.01, "steps": 10**8, "save_every": 1000}
    da.simulate(da.problems.pendulum(), da.Rattle(), save_to=tmp_path / "whole.zarr", **options)
    watch = """
        def watch(rows):
            while not (os.path.exists("run.zarr") and len(da.load("run.zarr")) > rows): time.sleep(0.003)
            die()
        threading.Thread(target=watch, args=({},), daemon=True).start()
        {}
        """
    simulate = f'da.simulate(pendulum, method, save_to="run.zarr", **{options})'
    resume = 'da.resume("run.zarr", pendulum, method)'
    for rows, action in ((50_000, simulate), (75_000, resume)):
        assert python(watch.format(rows, action), tmp_path).returncode == -9
        assert rows < len(da.load(tmp_path / "run.zarr")) < rows + 10_000
    assert python(resume, tmp_path).returncode == 0
    assert contents(tmp_path / "run.zarr") == contents(tmp_path / "whole.zarr")


def on_a_disk_of(size, code, folder):
    """The lines that a process prints in a directory that has so much room."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    (folder / "disk").mkdir()
    mount = f"mount -t tmpfs -o size={size} none disk && cd disk && "
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount + "true"], cwd=folder, capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    (folder / "code.py").write_text(PRELUDE + FILL + code)
    command = mount + f"PYTHONPATH={ROOT} {sys.executable} ../code.py"
    process = subprocess.run(["unshare", "-rm", "sh", "-c", command], cwd=folder, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


FILL = """
def fill_the_disk():
    with open("filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(512)): pass
        except OSError:
            pass
"""


def test_a_small_disk_that_fills_up(tmp_path, uninterrupted):
    code = textwrap.dedent("""
    try:
        da.simulate(pendulum, method, h=0.01, steps=10**7, save_to="large.zarr")
    except da.DalembertError as error:
        print(error)
    commit, filled = _run_store.RunStore.commit, []
    def fill(self, *arguments):
        if filled == []:
            filled.append(commit(self, *arguments))
            fill_the_disk()
            return filled[0]
        return commit(self, *arguments)
    _run_store.RunStore.commit = fill
    try:
        da.simulate(pendulum, method, h=0.01, steps=10**6, save_every=1000, save_to="run.zarr")
    except da.DalembertError as error:
        print(error)
    run = da.load("run.zarr")
    print(len(run), run.store.header.chunk)
    os.unlink("filler")
    da.resume("run.zarr", pendulum, method)
    import shutil
    shutil.copytree("run.zarr", "../copy.zarr")
    """)
    refused, failed, rows = on_a_disk_of("400k", code, tmp_path)
    assert "the disk has" in refused and "save_every=" in refused
    assert "No space left on device" in failed and "da.resume" in failed
    assert rows.split()[0] == rows.split()[1]
    assert contents(tmp_path / "copy.zarr") == contents(uninterrupted)


SWEEP = """
import numpy as np
from dalembert.storage import _groups as _store
from dalembert.storage import _sweep_store
angles = np.linspace(0.1, 1.5, 40)
sweep = dict(q0=np.stack([np.sin(angles), -np.cos(angles)], axis=1), p0=[0.0, 0.0], h=0.01, steps=500, save_every=5)
"""
SWEEP_MOMENTS = {
    "between two arrays of a part": """
        sync, calls = _sweep_store.sync, []
        def dying(place):
            calls.append(place.parts[-3])
            if calls.count("last") == 4: die()
            sync(place)
        _sweep_store.sync = dying
        """,
    "before the part counts": """
        write, calls = _store.Store._write_attributes, []
        def dying(*arguments):
            calls.append(1)
            if len(calls) == 4: die()
            write(*arguments)
        _store.Store._write_attributes = dying
        """,
}


@pytest.fixture(scope="module")
def whole_sweep(tmp_path_factory):
    path, names = tmp_path_factory.mktemp("sweep") / "sweep.zarr", {}
    exec(SWEEP, names)  # what the processes that are killed compute
    da.simulate_many(da.problems.pendulum(), da.Rattle(), save_to=path, **names["sweep"])
    return path


@pytest.mark.parametrize("moment", SWEEP_MOMENTS)
def test_a_sweep_killed_while_its_store_is_written_keeps_its_parts(moment, tmp_path, whole_sweep):
    simulate = 'da.simulate_many(pendulum, method, save_to="sweep.zarr", **sweep)'
    killed = python(SWEEP + textwrap.dedent(SWEEP_MOMENTS[moment]) + simulate, tmp_path)
    assert killed.returncode == -9, killed.stderr
    left, whole = da.load(tmp_path / "sweep.zarr"), da.load(whole_sweep)
    assert left.status.count("done") == 12, "three parts of four members"
    for member in np.flatnonzero(np.array(left.status) == "done"):
        assert np.array_equal(left[member].states, whole[member].states)
    assert set(da.resume(tmp_path / "sweep.zarr", da.problems.pendulum(), da.Rattle()).status) == {"done"}
    assert contents(tmp_path / "sweep.zarr") == contents(whole_sweep)


def test_a_sweep_on_a_disk_that_fills_up(tmp_path, whole_sweep):
    code = SWEEP + textwrap.dedent("""
    write, calls = _sweep_store.SweepStore.write, []
    def fill(self, *arguments):
        calls.append(1)
        if len(calls) == 4: fill_the_disk()
        return write(self, *arguments)
    _sweep_store.SweepStore.write = fill
    try:
        da.simulate_many(pendulum, method, save_to="sweep.zarr", **sweep)
    except da.DalembertError as error:
        print(error)
    print(da.load("sweep.zarr").status.count("done"))
    os.unlink("filler")
    da.resume("sweep.zarr", pendulum, method)
    import shutil
    shutil.copytree("sweep.zarr", "../copy.zarr")
    """)
    failed, done = on_a_disk_of("2m", code, tmp_path)
    assert "No space left on device" in failed and "da.resume" in failed and done == "12"
    assert contents(tmp_path / "copy.zarr") == contents(whole_sweep)


def test_kills_at_random_file_operations():
    """A small version of benchmarks/kills.py, in a process of its own: it forks children, and counts numbers in a chunk."""
    code = """import kills
done, wrong = kills.study(10, seed=3, progress=False, only=("longer", "impacts"))
assert not wrong, wrong
print(done.total())"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, str(Path(ROOT) / "benchmarks")])}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=500)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= 10
