"""Numba's files on disk: used again while nothing changes, and no longer once any file of the package has changed."""

import ast
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dalembert.compiler import _jit
from dalembert.contact import _driver_with_impacts as _collision_driver
from dalembert.engine import _compiled

FUNCTION = """
from package.constants import FACTOR
{decorator}
def times(x):
    return FACTOR * x
"""
OURS = "from package._compiled import compiled\n@compiled()"
NUMBAS = "from numba import njit\n@njit(cache=True)"
SCRIPT = "".join(
    f"from {module} import times; print(times(7), sum(times.stats.cache_hits.values()))\n"
    for module in ("package.function", "elsewhere")
)


def run(directory: Path) -> list[list[str]]:
    """What our function and Numba's return in a new process, and how often their machine code was found on disk."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=directory, capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def test_machine_code_is_used_again_until_an_imported_file_changes(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "_compiled.py").write_text(Path(_compiled.__file__).read_text())
    (package / "function.py").write_text(FUNCTION.format(decorator=OURS))
    (package / "constants.py").write_text("FACTOR = 2")
    (tmp_path / "elsewhere.py").write_text(FUNCTION.format(decorator=NUMBAS))
    assert run(tmp_path) == [["14", "0"], ["14", "0"]]
    assert run(tmp_path) == [["14", "1"], ["14", "1"]]
    before = len(list(tmp_path.rglob("*.nb?")))
    (package / "constants.py").write_text("FACTOR = 11")
    assert run(tmp_path) == [["77", "0"], ["14", "1"]]  # Numba alone goes on with the old constant
    assert len(list(tmp_path.rglob("*.nb?"))) == before


def test_the_drivers_are_stored_under_the_digest_of_their_sources():
    assert _compiled.SOURCES in _collision_driver.advance_with_impacts.py_func.__qualname__


def test_the_digest_is_that_of_all_files_with_drivers_and_of_those_they_import_from():
    """Else a change there would leave old machine code in use."""
    package = Path(_compiled.__file__).parents[1]
    named, drivers = {path.relative_to(package.parent) for path in _compiled.FILES}, []
    for path in package.rglob("*.py"):
        nodes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
        if not {"compiled", "internal", "inlined"} & {alias.name for node in nodes for alias in node.names}:
            continue
        drivers.append(path.name)
        places = [Path(*(node.module or "").split(".")) for node in nodes]
        places += [place / alias.name for place, node in zip(places, nodes, strict=True) for alias in node.names]
        own = {place.with_suffix(".py") for place in places if place.parts[:1] == (package.name,)}
        used = {place for place in own if (package.parent / place).exists()} | {path.relative_to(package.parent)}
        assert used <= named, f"add {sorted(map(str, used - named))} to engine/_compiled.py"
    assert {"_driver.py", "_sweeps.py", "_stepping_driver.py"} <= set(drivers)


def test_the_cache_of_models_keeps_what_was_used_last(tmp_path, monkeypatch):
    monkeypatch.setenv("DALEMBERT_CACHE_MB", "0.25")
    for k in range(5):
        _jit._write(tmp_path / f"{k}.o", bytes(100_000))
        os.utime(tmp_path / f"{k}.o", (1000.0 + k, 1000.0 + k))
        if k == 2:
            assert len(_jit._read(tmp_path / "1.o") or b"") == 100_000  # now the last one that was used
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.o", "4.o"]
    assert _jit.remove_stored(tmp_path) == (2, 200_064)
    assert not list(tmp_path.iterdir())


def test_the_limit_holds_for_many_small_files_without_looking_at_all_of_them_each_time(tmp_path, monkeypatch):
    looks, look = [], _jit.remove_stored
    monkeypatch.setattr(_jit, "remove_stored", lambda *given, **named: looks.append(look(*given, **named)))
    monkeypatch.setenv("DALEMBERT_CACHE_MB", "0.1")
    for k in range(600):
        _jit._write(tmp_path / f"{k}.o", bytes(200))
        if k % 50 == 0:
            assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1.01e5 + 232
    assert sum(files for files, _ in looks) > 100 and len(looks) <= 1 + 600 * 200 / 1e3


@pytest.mark.parametrize("said", ["", "much"])
def test_a_limit_that_is_no_number_is_the_usual_one(monkeypatch, said):
    monkeypatch.setenv("DALEMBERT_CACHE_MB", said)
    assert _jit.cache_limit() == 1e6 * _jit.CACHE_MB


def test_machine_code_that_others_can_have_written_is_not_run(tmp_path):
    place, code = tmp_path / "mine" / "abc.o", bytes(range(200))
    _jit._write(place, code)
    assert place.parent.stat().st_mode & 0o777 == 0o700 and place.stat().st_mode & 0o077 == 0
    assert _jit._read(place) == code
    for what in (place, place.parent):
        mode = what.stat().st_mode
        what.chmod(mode | 0o020)  # its group may write
        assert _jit._read(place) is None
        what.chmod(mode)
    assert _jit._read(place) == code
    place.rename(place.with_name("xyz.o"))  # right in itself, but of another model
    assert _jit._read(place.with_name("xyz.o")) is None


@pytest.mark.skipif(not hasattr(os, "chown") or os.getuid() != 0, reason="only root can give files away")
def test_machine_code_of_another_user_is_not_run(tmp_path):
    _jit._write(tmp_path / "abc.o", b"code")
    os.chown(tmp_path / "abc.o", 1234, 1234)
    assert _jit._read(tmp_path / "abc.o") is None


@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_machine_code_is_compiled_anew(tmp_path, times):
    rng, code = np.random.default_rng(3), np.random.default_rng(4).bytes(5000)
    _jit._write(tmp_path / "abc.o", code)
    content = (tmp_path / "abc.o").read_bytes()
    for _ in range(times):
        damaged = bytearray(content)
        damaged[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        (tmp_path / "abc.o").write_bytes(damaged[: rng.integers(1, len(content) + 1)] if rng.integers(2) else damaged)
        assert _jit._read(tmp_path / "abc.o") is None


def test_ctrl_c_does_not_wait_for_llvm(monkeypatch):
    """A long call of LLVM goes on in a thread of its own, and the next module is compiled as if nothing had been."""
    going_on, compiled = threading.Event(), _jit._object_code

    def endless(*_):
        going_on.wait(60)
        return b""

    def interrupt():
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(_jit, "_object_code", endless)
    threading.Thread(target=interrupt).start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        _jit.compile_module("; a module that no cache knows", ())
    assert time.perf_counter() - began < 30
    going_on.set()
    monkeypatch.setattr(_jit, "_object_code", compiled)
    assembly = "define double @twice(double %x) {\n  %y = fadd double %x, %x\n  ret double %y\n}\n"
    code = _jit.compile_module(assembly, ("twice",))
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.addresses["twice"])(1.5) == 3.0
