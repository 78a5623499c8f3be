"""Mechanisms that come to positions where the motion is not determined, or is so only by its momentum."""

import numpy as np
import pytest

import dalembert as da
from dalembert.engine import _rescue
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


def test_steps_are_rescued_alike_by_full_and_by_sparse_matrices(monkeypatch):
    """A parallelogram that turns at 8/s past its flat positions, with the angle -8 t by Newton's law."""
    m = da.Mechanism(coordinates="planar")
    cranks = [m.rod(f"crank {k}", (x, 0), (x, 0.1), mass=0.1) for k, x in enumerate((0.0, 0.2))]
    hinges = [m.revolute(m.ground, crank, at=(0.2 * k, 0)) for k, crank in enumerate(cranks)]
    coupler = m.rod("coupler", (0, 0.1), (0.2, 0.1), mass=0.3)
    for k, crank in enumerate(cranks):
        m.revolute(crank, coupler, at=(0.2 * k, 0.1))
    for full in (0, 10_000):
        monkeypatch.setattr(_rescue, "FULL", full)
        run = da.simulate(m, da.Rattle(), start=m.start(rates={hinges[0]: -8.0}), h=3e-4, steps=2000)
        assert run.stats["rescued_steps"] > 0
        np.testing.assert_allclose(run.of(hinges[1]).angle, run.of(hinges[0]).angle, atol=1e-6)
        np.testing.assert_allclose(run.of(hinges[0]).angle, -8.0 * run.t, atol=1e-5)
        assert np.abs(run.residuals["g"]).max() < 1e-14
