"""The loop of Newton's iteration in machine code."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.engine._run import Run
from dalembert.runs._arguments import Arguments


def prepared(method: da.OneStepMethod, h: float, steps: int) -> Run:
    nothing = dict.fromkeys(("start", "params", "t0", "t1"))
    spec = Arguments("simulate", da.problems.double_pendulum(), method, {}, **nothing, h=h, steps=steps).single()
    return Run(spec)


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Rattle(), da.GaussLobattoSPARK(2)], ids=str)
def test_the_loop_in_machine_code_does_what_single_iterations_do(method):
    """The emitted rule and the driver's are one: the same numbers bit for bit, in as many iterations."""
    together, single = prepared(method, 0.1, 200), prepared(method, 0.1, 200)
    assert together.driven.layouts[0]["loops"] == 1
    single.driven.layouts["loops"] = 0
    assert together.advance() is None and single.advance() is None
    assert np.array_equal(together.rows[:201], single.rows[:201])
    assert together.counts["iterations"] == single.counts["iterations"]
