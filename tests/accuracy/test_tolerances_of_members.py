"""Ensembles to a tolerance: members that fail, that no step size makes exact, and comparisons that are not finished."""

from dataclasses import replace

import numpy as np
import pytest
from test_tolerances import stopped

import dalembert as da
from dalembert.errors import ToleranceError
from dalembert.runs import _accurate_many, _simulate_many

FALL = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.hypot(q[0], q[1]), dim=2)
AROUND = {"q0": [[1, 0], [1.2, 0], [0.9, 0], [1, 0]], "t1": 2.5, "rtol": 1e-6}
TWO = {"q0": [[1, 0], [0.9, 0]], "p0": [0, 1], "t1": 2.5, "rtol": 1e-6}


def test_members_that_fail_in_large_steps_are_made_again_in_smaller_ones():
    """The second one passes close to the centre, and is none of those from which h was chosen; its energy tells its period."""
    runs = da.simulate_many(FALL, **AROUND, p0=[[0, 1], [0, 0.2], [0, 1.1], [0, 1]])
    assert set(runs.status) == {"done"} and runs.error.max() < 1e-6 and "failed" not in runs.choice
    a = -0.5 / (0.2**2 / 2 - 1 / 1.2)
    e, n = 1.2 / a - 1, a**-1.5
    turned = np.pi + n * 2.5  # from the apocentre on
    u = turned
    for _ in range(50):
        u -= (u - e * np.sin(u) - turned) / (1 - e * np.cos(u))
    exact = -a * np.array([np.cos(u) - e, np.sqrt(1 - e**2) * np.sin(u)])
    assert np.abs(runs.q[1, -1] - exact).max() < 1e-6


def test_members_that_no_step_size_leads_to_the_end_are_counted():
    """A fall into the centre, which takes pi / sqrt(8) = 1.11 from a distance of 1."""
    runs = da.simulate_many(FALL, **AROUND | {"q0": [1, 0]}, p0=[[0, 1], [0, 0], [0, 1.1], [0, 1]])
    assert runs.status == ("done", "failed", "done", "done") and "1 of 4 members failed" in runs.choice
    assert np.isnan(runs.error[1]) and np.nanmax(runs.error) < 1e-6


def test_a_chaotic_member_is_refused_by_its_number(tmp_path):
    """No steps without end; and nothing that was not compared stays behind."""

    def double_pendulum(q, v):
        return v[0] ** 2 + v[1] ** 2 / 2 + v[0] * v[1] * np.cos(q[0] - q[1]) + 9.81 * (2 * np.cos(q[0]) + np.cos(q[1]))

    angles = [[0.3, 0.2], [3.0, 3.1], [0.4, 0.3], [0.2, 0.1]]
    given = {"q0": angles, "v0": [0, 0], "t1": 40.0, "rtol": 1e-6, "save_to": tmp_path / "sweep.zarr"}
    with pytest.raises(ToleranceError, match="member 1: the motion is chaotic"):
        da.simulate_many(da.Lagrangian(double_pendulum, dim=2), **given)
    assert not list(tmp_path.iterdir())


def test_an_error_that_does_not_fall_is_refused(monkeypatch):
    """Runs that are compared with others which start elsewhere, whatever h is."""
    made, run_members = [], _simulate_many.run_members

    def other(spec, policy):
        made.append(spec.steps)
        changed = replace(spec.start, packed=1.01 * spec.start.packed) if len(made) % 2 else spec.start
        return run_members(replace(spec, start=changed), policy)

    monkeypatch.setattr(_simulate_many, "run_members", other)
    with pytest.raises(ToleranceError, match=r"in member [01], and falls too slowly with h: .* leave such members out"):
        da.simulate_many(FALL, **TWO)
    assert len(made) <= 4


def test_an_interrupted_comparison_of_an_ensemble_says_so(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_accurate_many, "compared", interrupted)
        runs = da.simulate_many(FALL, **TWO, save_to=tmp_path / "sweep.zarr")
    loaded = da.load(tmp_path / "sweep.zarr")
    for found in (runs, loaded):
        assert set(found.status) == {"done"} and found.error is None and found[0].error is None
        assert "interrupted before they were compared" in found.choice


def test_no_store_stays_behind_a_comparison_that_raises(tmp_path, monkeypatch):
    def broken(*_):
        raise MemoryError

    monkeypatch.setattr(_accurate_many, "compared", broken)
    with pytest.raises(MemoryError):
        da.simulate_many(FALL, **TWO, save_to=tmp_path / "sweep.zarr")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("every", [1, 20])
def test_errors_of_members_across_kinks_are_not_claimed_to_be_small_by_chance(every):
    """Oscillators that meet a stop of stiffness 1e4: one difference of two runs may be small by chance."""
    system = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2 - 5e3 * np.maximum(q[0] - 0.5, 0) ** 2, dim=1)
    speeds = np.array([1.635, 2.574, 3.096])
    runs = da.simulate_many(system, q0=[0.0], v0=speeds[:, None], t1=6.0, rtol=1e-4, save_every=every)
    for speed, run in zip(speeds, runs, strict=True):
        exact = stopped(speed, run.t)
        assert np.abs(run.q[:, 0] - exact).max() / np.abs(exact).max() <= run.error <= 1e-4
