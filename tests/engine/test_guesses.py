"""Guesses of steps, and the loop of Newton's iteration that begins with them."""

from __future__ import annotations

import ctypes

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


def test_errors_of_corrected_guesses_are_of_a_higher_order():
    """Two orders more than those of the polynomial through the last stages: errors of errors, continued along a line."""
    errors = []
    for h in (0.04, 0.02):
        run = prepared(da.Rattle(), h, 60)
        layout, guessed, found = run.steppers[0].program.layout, [], []
        predict = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(run.driven.kernels[0]["predict"]))
        for step in range(1, 61):
            assert run.advance(last_step=step) is None
            found.append(run.memory[layout.x :][: run.system.dim].copy())
            copy = run.memory.copy()
            predict(copy.ctypes.data)
            guessed.append([copy[place:][: run.system.dim] for place in (layout.x, layout.extrapolated)])
        off = np.abs(np.array(guessed)[:-1] - np.array(found)[1:, None])[10:]
        errors.append(off.max(axis=(0, 2)))
    corrected, plain = np.log2(errors[0] / errors[1])
    assert corrected > plain + 1.7
    assert errors[1][0] < 0.02 * errors[1][1]


def test_a_step_of_a_smooth_motion_takes_two_iterations():
    """One that leads to round-off, and one that shows it."""
    run = da.simulate(da.problems.double_pendulum(), da.Rattle(), h=0.01, steps=2000, save_every=2000)
    assert run.stats["newton_iterations"] < 2.1 * 2000


def test_guesses_do_not_suffer_where_forces_jump():
    """Errors that a jump has made say nothing about the next step: not more iterations than from guesses without them."""
    forced = da.Hamiltonian(
        lambda q, p, u: p @ p / 2 + q[1] - u * q[0],
        dim=2,
        holonomic=lambda q: [np.hypot(q[0], q[1]) - 1],
        params={"u": 0.0},
    )
    steps, start = 400, {"q0": [1.0, 0.0], "p0": [0.0, 0.0]}
    jumps, counts = np.random.default_rng(5).choice([-0.5, 0.5], steps), []
    nothing = dict.fromkeys(("start", "params", "t0", "t1"))
    arguments = Arguments("simulate", forced, da.LobattoIIIAB(2), start, **nothing, h=0.05, steps=steps, controls={"u": jumps})
    for corrected in (True, False):
        run = Run(arguments.single())
        for step in range(1, steps + 1):
            if not corrected:
                run.memory[run.steppers[0].program.layout.history] = 0.0
            assert run.advance(last_step=step) is None
        counts.append(int(run.counts["iterations"][0]))
    assert counts[0] <= 1.01 * counts[1]
