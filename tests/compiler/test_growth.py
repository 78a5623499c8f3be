"""Memory grows with a mechanism, not with its square."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from memory import most_held

import dalembert as da

TESTS = Path(__file__).parents[1]
LINKS = 3000
MOST = 80_000
"""Bytes a link, nearly twice what is needed: two matrices of LINKS x LINKS places as one column take 102,000 more."""


def grown(links: int) -> int:
    """How many bytes more this process has taken at most, after the step of a chain was stated, eliminated and derived."""
    from dalembert.compiler._program import reduced_step

    reduced_step(da.problems.chain(links=10).system, da.LobattoIIIAB(2))
    before = most_held()
    reduced_step(da.problems.chain(links=links).system, da.LobattoIIIAB(2))
    return most_held() - before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_of_the_equations_of_a_long_chain():
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, filter(None, (TESTS, os.environ.get("PYTHONPATH")))))}
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True, timeout=300, env=here)
    assert 0 < int(done.stdout) < MOST * LINKS


if __name__ == "__main__":
    print(grown(LINKS))
