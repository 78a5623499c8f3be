"""Memory grows with a mechanism, not with its square."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

import dalembert as da

LINKS = 3000
MOST = 80_000
"""Bytes a link, nearly twice what is needed: two matrices of LINKS x LINKS places as one column take 102,000 more."""


def grown(links: int) -> float:
    """How many bytes more this process has taken at most, after the step of a chain was stated, eliminated and derived."""
    from dalembert.compiler._program import reduced_step

    reduced_step(da.problems.chain(links=10).system, da.LobattoIIIAB(2))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reduced_step(da.problems.chain(links=links).system, da.LobattoIIIAB(2))
    return 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
def test_memory_of_the_equations_of_a_long_chain():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True, timeout=300)
    assert float(done.stdout) < MOST * LINKS


if __name__ == "__main__":
    print(grown(LINKS))
