"""What steps of collision integrators cost beside smooth ones, with an impact about every 50 steps."""

import numpy as np
import pytest
from impact_models import cart_pendulum

import dalembert as da


@pytest.mark.slow
def test_steps_with_impacts_cost_little_more_than_smooth_ones():
    system, start = cart_pendulum(), {"q0": [0.3, 0.0], "v0": [0.0, 1.0]}
    # without its floor the cart falls faster and faster: a shorter run is what compares
    cases = [(system.smooth, da.Variational("SVC"), 2000), (system, da.CVA(), 5000), (system, da.MCVAA(), 5000)]
    least = np.full(len(cases), np.inf)
    for _ in range(100):  # in turn, so that other work on the machine disturbs all alike
        for k, (model, method, steps) in enumerate(cases):
            run = da.simulate(model, method, h=0.01, steps=steps, save_every=1000, progress=False, **start)
            least[k] = min(least[k], run.stats["wall_seconds"] / steps)
            assert run.impacts is None or 80 <= len(run.impacts) <= 120
    assert least[1] <= 1.4 * least[0]
    assert least[2] <= 4.0 * least[0]
