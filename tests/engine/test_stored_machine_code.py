"""Numba's files on disk: used again while nothing changes, and no longer once any file of the package has changed."""

import subprocess
import sys
from pathlib import Path

import pytest

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
