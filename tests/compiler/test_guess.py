"""The guess for the next step: the kernel `predict`, called on memory as steps leave it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import dalembert as da
from dalembert.compiler._program import Program
from dalembert.engine._run import Run
from dalembert.engine._stepper import Stepper
from dalembert.runs._arguments import Arguments

H = 0.1


def stepper_of(method: da.OneStepMethod) -> Stepper:
    """One that has made no step yet, its memory free to be filled by hand."""
    nothing = dict.fromkeys(("start", "params", "t0", "t1"))
    spec = Arguments("simulate", da.problems.double_pendulum(), method, {}, **nothing, h=H, steps=1).single()
    return Run(spec).steppers[0]


def predict(program: Program, memory: np.ndarray) -> np.ndarray:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(program.code.addresses["predict"])(memory.ctypes.data)
    layout = program.layout
    return memory[layout.x : layout.x + layout.n_x].copy()


@pytest.mark.parametrize(
    ("method", "nodes", "degree"),
    [
        (da.Rattle(), [1.0], 2),
        (da.LobattoIIIAB(stages=3), [0.5], 3),
        (da.LobattoIIIAB(stages=4), [0.5 - 0.1 * 5**0.5, 0.5 + 0.1 * 5**0.5, 1.0], 4),
        (da.RadauIIA(stages=2, projected=True), [1 / 3, 1.0], 3),
    ],
    ids=str,
)
def test_positions_are_guessed_by_the_polynomial_that_has_the_velocity_at_the_end_too(method, nodes, degree):
    """A motion that is such a polynomial is guessed exactly; one of the next degree is not."""
    stepper = stepper_of(method)
    layout, n, random = stepper.program.layout, 4, np.random.default_rng(1)
    nodes = np.array(nodes)

    def error(degree: int) -> float:
        motion = [np.polynomial.Polynomial(c) for c in random.normal(size=(n, degree + 1))]
        at = lambda t: np.array([q(t) for q in motion])  # noqa: E731
        velocity = np.array([q.deriv()(H) for q in motion])
        memory = stepper.memory.copy()
        memory[layout.state : layout.state + 2 * n] = np.concatenate([at(H), velocity])  # all masses are one
        memory[layout.delta : layout.delta + n] = at(H) - at(0.0)
        memory[layout.x : layout.x + n * len(nodes)] = np.concatenate([(at(c * H) - at(0.0)) / H for c in nodes])
        expected = np.concatenate([(at(H + c * H) - at(H)) / H for c in nodes])
        return float(np.abs(predict(stepper.program, memory)[: len(expected)] - expected).max())

    assert error(degree) < 1e-12
    assert error(degree + 1) > 1e-6


def guesses(missed: np.ndarray) -> np.ndarray:
    """What is added to the extrapolation after steps that it missed by these numbers, one a step, in all unknowns."""
    stepper = stepper_of(da.LobattoIIIAB(stages=3))
    layout, memory = stepper.program.layout, stepper.memory.copy()
    x, extrapolated = (slice(slot, slot + layout.n_x) for slot in (layout.x, layout.extrapolated))
    added = []
    for miss in missed:
        memory[x] = memory[extrapolated] + miss
        added.append(predict(stepper.program, memory) - memory[extrapolated])
    return np.array(added)


def test_what_the_last_steps_missed_is_continued_as_a_line():
    added = guesses(np.array([3.0, 4.0, 5.0, 6.0]))
    np.testing.assert_allclose(added[-1], 7.0, rtol=1e-14)


@pytest.mark.parametrize("kink", [1.0, -1.0, 100.0])
def test_nothing_is_added_until_a_kink_is_three_steps_old(kink):
    """The step with the kink, and two whose differences contain it; before and after, a line of misses is continued."""
    added = guesses(0.001 * np.arange(8.0) + kink * (np.arange(8) == 4))
    np.testing.assert_allclose(added[3], 0.004, rtol=1e-12)
    assert np.all(added[4:7] == 0.0)
    np.testing.assert_allclose(added[7], 0.008, rtol=1e-9)


def test_misses_that_alternate_like_rounding_errors_are_not_continued():
    assert np.all(guesses(1e-16 * np.array([1.0, -1.0, 1.0, -1.0, 1.0])) == 0.0)


@pytest.mark.parametrize(
    ("method", "most"), [(da.LobattoIIIAB(stages=3), 3.7), (da.Rattle(), 3.9), (da.GaussLobattoSPARK(stages=2), 4.6)], ids=str
)
def test_steps_of_a_smooth_motion_take_few_iterations(method, most):
    """Extrapolated stages alone need 5.5, 4.6 and 5.1."""
    run = da.simulate(da.problems.double_pendulum(), method, h=0.12, steps=5000)
    assert run.stats["newton_iterations"] < most * 5000
