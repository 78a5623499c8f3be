"""Numba's files on disk: used again while nothing changes, and no longer once any file of the package has changed."""

import os
import subprocess
import sys
from pathlib import Path

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
SCRIPT = "from package.function import times; print(times(7), sum(times.stats.cache_hits.values()))"


def run(directory: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout.split()


OURS = "from package._compiled import compiled\n@compiled()"
NUMBAS = "from numba import njit\n@njit(cache=True)"


@pytest.mark.parametrize(("decorator", "noticed"), [(OURS, True), (NUMBAS, False)], ids=["ours", "numba's"])
def test_machine_code_is_used_again_until_an_imported_file_changes(tmp_path, decorator, noticed):
    package = tmp_path / "package"
    package.mkdir()
    (package / "_compiled.py").write_text(Path(_compiled.__file__).read_text())
    (package / "function.py").write_text(FUNCTION.format(decorator=decorator))
    (package / "constants.py").write_text("FACTOR = 2")
    assert run(tmp_path) == ["14", "0"]
    assert run(tmp_path) == ["14", "1"]
    before = len(list(package.glob("__pycache__/*.nb?")))
    (package / "constants.py").write_text("FACTOR = 11")
    assert run(tmp_path) == (["77", "0"] if noticed else ["14", "1"])  # Numba alone goes on with the old constant
    assert len(list(package.glob("__pycache__/*.nb?"))) == before


def test_the_drivers_are_stored_under_the_digest_of_their_sources():
    assert _compiled.SOURCES in _collision_driver.advance_with_impacts.py_func.__qualname__


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


@pytest.mark.parametrize("said", ["", "much"])
def test_a_limit_that_is_no_number_is_the_usual_one(monkeypatch, said):
    monkeypatch.setenv("DALEMBERT_CACHE_MB", said)
    assert _jit.cache_limit() == 1e6 * _jit.CACHE_MB
