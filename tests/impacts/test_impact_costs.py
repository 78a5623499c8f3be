"""What steps of collision integrators cost beside smooth ones, with an impact about every 50 steps."""

import time

import numpy as np
import pytest
from impact_models import cart_pendulum

import dalembert as da
from dalembert.contact._impact_run import ImpactRun
from dalembert.systems import _mechanical


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


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_rounding_is_looked_at_where_a_wall_is_touched_and_nowhere_else(mu, monkeypatch):
    """Rows of joints beside the wall, of which a mechanism may have many, need no bound of their own: graphs are large."""
    looked, rounding = [], _mechanical.rounding
    monkeypatch.setattr(_mechanical, "rounding", lambda rows, inputs: looked.append(rows.shape[0]) or rounding(rows, inputs))
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    links = [m.rod(f"link {k}", (k, 0.5), (k + 1, 0.5), mass=0.3) for k in range(3)]
    for k, (one, other) in enumerate(zip([m.ground, *links], links, strict=False)):
        m.revolute(one, other, at=(k, 0.5))
    m.contact(links[-1], at=(3, 0.5), normal=(0, 1), origin=(0, 0.5), friction=mu)
    held = m.system().in_contact((0,), (0,) if mu else ())
    assert held.n_holonomic == 7 and max(looked) == (2 if mu else 1)


def test_compiling_for_a_contact_is_no_time_of_its_steps(monkeypatch):
    """On a clock of its own, on which making the motion in contact takes 1000 s; no real step takes so long."""
    ball = da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[0], 1, unilateral=lambda q: q[0], restitution=0.0)
    clock, late, part_of = time.perf_counter, [0.0], ImpactRun.part_of

    def slowly(*given):
        late[0] += 1000.0
        return part_of(*given)

    monkeypatch.setattr(time, "perf_counter", lambda: clock() + late[0])
    monkeypatch.setattr(ImpactRun, "part_of", slowly)
    run = da.simulate(ball, da.CVA(), q0=[0.1], v0=[0.0], h=0.01, steps=30)
    assert late[0] >= 1000.0 and run.q[-1, 0] == pytest.approx(0.0, abs=1e-12)
    assert run.stats["build_seconds"] >= late[0] and 0.0 <= run.stats["wall_seconds"] < 1000.0
