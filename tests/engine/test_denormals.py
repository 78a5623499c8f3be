"""Numbers that die away must not slow a run down: they become zero, and only while steps are computed."""

from __future__ import annotations

import numpy as np

import dalembert as da

SMALLEST = np.finfo(float).tiny


def test_what_dies_away_ends_at_zero():
    """A coordinate that is damped as strongly as this would be denormal for hundreds of steps."""
    system = da.Lagrangian(lambda q, v: v @ v / 2, dim=2, force=lambda q, v: -1e3 * v)
    run = da.simulate(system, da.RadauIIA(2), q0=[0.0, 0.0], v0=[1.0, 1e-3], h=1e-2, steps=2000)
    runs = da.simulate_many(system, da.RadauIIA(2), q0=[0.0, 0.0], v0=np.tile([1.0, 1e-3], (8, 1)), h=1e-2, steps=2000)
    for p in (np.abs(run.p), np.abs(runs.states[..., 2:])):
        assert not np.any((p > 0) & (p < SMALLEST))
    assert np.min(np.abs(run.p)) == 0.0


def test_python_computes_with_them_as_before():
    da.simulate(da.problems.pendulum(), da.Rattle(), steps=10)
    assert np.float64(SMALLEST) / 4 > 0
