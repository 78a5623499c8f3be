"""The kit itself: it must find what is there, and not find what is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalembert as da
from dalembert.methods import Step


@dataclass(frozen=True)
class ExplicitEuler(da.OneStepMethod):
    """Deliberately neither symplectic nor symmetric: the positive control."""

    reference: ClassVar[str] = "Euler (1768)"

    @property
    def order(self):
        return {"q": 1, "p": 1}

    def equations(self, system, step: Step):
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        step.result(q=h * system.H_p(t0, q0, p0), p=-h * system.H_q(t0, q0, p0))


OSCILLATOR = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 4.0})


def test_the_tangent_of_explicit_euler_is_its_matrix():
    D = da.verify.step_tangent(OSCILLATOR, ExplicitEuler(), h=0.1, q0=[0.3], p0=[0.2])
    assert np.abs(D - np.array([[1, 0.1], [-0.4, 1]])).max() < 1e-15


def test_the_defects_of_explicit_euler_are_exact():
    """det(D) - 1 = h^2 k, and step(h), step(-h) leave (1 + h^2 k) times the state."""
    defect = da.verify.symplecticity_defect(OSCILLATOR, ExplicitEuler(), h=0.1, q0=[0.3], p0=[0.2])
    assert abs(defect - 0.04) < 1e-15
    back = da.verify.reversibility_defect(OSCILLATOR, ExplicitEuler(), h=0.1, q0=[0.3], p0=[0.2])
    assert abs(back - 0.04 * 0.3 / 1.3) < 1e-15


def test_explicit_euler_runs_and_has_order_one():
    exact = {"q": np.array([0.3 * np.cos(2.0) + 0.1 * np.sin(2.0)]), "p": np.array([-0.6 * np.sin(2.0) + 0.2 * np.cos(2.0)])}
    study = da.verify.order(OSCILLATOR, ExplicitEuler(), reference=exact, t1=1.0, steps=[4000, 8000, 16000], q0=[0.3], p0=[0.2])
    assert abs(study.slopes["q"] - 1) < 0.01
    assert abs(study.slopes["p"] - 1) < 0.01


def test_the_tangent_agrees_with_differences_of_steps():
    """On the constraint manifold: finite differences along a curve of consistent starts."""
    problem = da.problems.double_pendulum()
    system = problem.system
    method = da.LobattoIIIAB(3)

    def start(angle):
        a = np.array([np.sin(angle), -np.cos(angle)])
        return da.consistent(system, q0=np.concatenate([a, a + np.array([0.6, -0.8])]), v0=[0.1, 0.2, 0.3, -0.4])

    eps = 1e-5
    minus, middle, plus = start(0.4 - eps), start(0.4), start(0.4 + eps)
    ends = [da.verify.step(system, method, h=0.1, start=state) for state in (minus, plus)]
    D = da.verify.step_tangent(system, method, h=0.1, start=middle)
    along = (np.concatenate([plus.q, plus.p]) - np.concatenate([minus.q, minus.p])) / (2 * eps)
    difference = (np.concatenate([ends[1].q, ends[1].p]) - np.concatenate([ends[0].q, ends[0].p])) / (2 * eps)
    assert np.abs(D @ along - difference).max() < 1e-8


@given(
    st.floats(-5, 5),
    st.floats(-100, 100),
    st.lists(st.floats(-1, 1), min_size=3, max_size=30),
)
def test_drift_finds_a_line_and_ignores_what_is_orthogonal_to_it(slope, offset, noise):
    t = np.arange(len(noise), dtype=float)
    centred = t - t.mean()
    rest = np.array(noise) - np.mean(noise)
    rest -= centred * (centred @ rest) / (centred @ centred)
    measured = da.verify.drift(offset + slope * t + rest, t)
    assert abs(measured.slope - slope) < 1e-9 * (1 + abs(offset) + abs(slope))


def test_slope_drops_round_off_and_stagnation():
    h = np.array([0.1, 0.05, 0.025, 0.0125, 0.00625])
    errors = np.array([1e-4, 6.25e-6, 3.90625e-7, 2e-8, 3e-8])
    value, used = da.verify.slope(h, errors, points=3)
    assert used.tolist() == [False, True, True, True, False]
    value, used = da.verify.slope(h, errors, floor=1e-7, points=3)
    assert used.tolist() == [True, True, True, False, False]
    assert abs(value - 4) < 1e-12


def test_order_refuses_nonsense():
    problem = da.problems.double_pendulum()
    with pytest.raises(da.InputError, match="increasing"):
        da.verify.order(problem, da.Rattle(), reference={"q": problem.q0}, t1=1.0, steps=[20, 10])
    with pytest.raises(da.InputError, match="some of q, p, y, z, lam"):
        da.verify.order(problem, da.Rattle(), reference={"x": 1}, t1=1.0, steps=[10, 20])
    with pytest.raises(da.InputError, match="other than zero"):
        da.verify.step(problem, da.Rattle(), h=0.0)
