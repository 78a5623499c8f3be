"""Mechanisms that come to positions where the motion is not determined, or is so only by its momentum."""

import numpy as np
import pytest

import dalembert as da
from dalembert.engine import _rescue
from dalembert.engine._run import Run
from dalembert.runs._arguments import Arguments
from dalembert.runs._path import without_advice


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
def test_a_rope_of_length_zero_is_refused_without_advice_about_h(coordinates):
    """Its length is 1 - t/2; who asks for a tolerance gives no h that could be reduced."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates=coordinates)
    ball = m.point("ball", mass=0.2, at=(0, -1))
    m.distance(m.ground, ball, at=((0, 0), (0, -1)), length=lambda t: 1 - t / 2)
    with pytest.raises(da.errors.ToleranceError, match=r"do not lead past t = 1\.99") as refused:
        da.simulate(m, rtol=1e-4, start=m.start(velocities={ball: (0, 0.5)}), t1=3.0)
    assert not any(advice in str(refused.value) for advice in ("reduce h", "take an h"))


def test_only_advice_about_h_is_left_out():
    lost = "the constraints lose independence (g_q loses rank: it turns around), so the motion is not determined"
    assert without_advice(f"{lost}: take an h that steps over it, reduce h or change the start") == lost
    for reason in (lost, "the model left its domain: H is not finite here, at q = [1, 2]", "is 1: take projected=True"):
        assert without_advice(reason) == reason


@pytest.mark.parametrize("full", [0, 10_000])
def test_steps_are_rescued_alike_by_full_and_by_sparse_matrices(full, monkeypatch):
    """Exact Newton finds what the compiled iteration finds: the step of a parallelogram with the angle -8 h by Newton's law."""
    m = da.Mechanism(coordinates="planar")
    cranks = [m.rod(f"crank {k}", (x, 0), (x, 0.1), mass=0.1) for k, x in enumerate((0.0, 0.2))]
    hinges = [m.revolute(m.ground, crank, at=(0.2 * k, 0)) for k, crank in enumerate(cranks)]
    coupler = m.rod("coupler", (0, 0.1), (0.2, 0.1), mass=0.3)
    for k, crank in enumerate(cranks):
        m.revolute(crank, coupler, at=(0.2 * k, 0.1))
    nothing = dict.fromkeys(("params", "t0", "t1"))
    given = Arguments("simulate", m, da.Rattle(), {}, start=m.start(rates={hinges[0]: -8.0}), **nothing, h=3e-4, steps=1)
    usual, rescued = Run(given.single()), Run(given.single())
    assert usual.advance() is None
    stepper = rescued.steppers[0]
    stepper.numbers["far"] = np.inf  # whatever is found is taken
    monkeypatch.setattr(_rescue, "FULL", full)
    problem, solution = _rescue._other_solution(stepper)
    assert problem is None
    np.testing.assert_allclose(solution, usual.steppers[0].unknowns, rtol=0, atol=1e-13 * np.abs(solution).max())
    stepper.give(solution)
    assert rescued.advance() is None and stepper.counts["rescued"] == 1
    turned = rescued.rows[1][2] - rescued.rows[0][2]  # theta of the first crank
    assert abs(turned + 8.0 * 3e-4) < (8.0 * 3e-4) ** 3  # RATTLE is of order two
