"""Where a run starts: what start= brings along, what it refuses, and stopping rules that must see every unknown."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


def pendulum(**params):
    return da.Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + m * g * q[1],
        dim=2,
        holonomic=lambda q: [np.hypot(q[0], q[1]) - 1],
        params={"m": 1.0, "g": 1.0, **params},
    )


def test_overrides_apply_on_top_of_the_parameters_of_the_start():
    system = pendulum()
    start = da.consistent(system, q0=[1.0, 0.0], v0=[0.0, 0.5], params={"m": 5.0})
    run = da.simulate(system, da.Rattle(), start=start, params={"g": 2.0}, h=0.1, steps=3)
    assert {name: float(value) for name, value in run.parameters.items()} == {"m": 5.0, "g": 2.0}


def test_start_refuses_what_contradicts_it():
    system = pendulum()
    start = da.consistent(system, q0=[1.0, 0.0], v0=[0.0, 0.5], t0=1.0)
    with pytest.raises(da.InputError, match="its own time, t = 1"):
        da.simulate(system, da.Rattle(), start=start, t0=5.0, h=0.1, steps=3)
    with pytest.raises(da.InputError, match="another model"):
        da.simulate(da.problems.double_pendulum(), da.Rattle(), start=start)
    with pytest.raises(da.ModelError, match="no parameter"):
        da.verify.step(system, da.Rattle(), h=0.1, start=start, params={"length": 3.0})


def test_order_takes_the_time_from_the_start():
    system = da.Hamiltonian(lambda q, p, t: p @ p / 2 + (1 + t / 4) * q @ q / 2, dim=1)
    start = da.consistent(system, q0=[1.0], p0=[0.5], t0=1.0)
    study = da.verify.order(system, da.Gauss(1), start=start, t1=3.0, steps=[40, 80, 160], reference=(da.Gauss(4), 200))
    assert abs(study.slopes["q"] - 2) < 0.1


def test_consistent_takes_a_problem():
    problem = da.problems.double_pendulum()
    state = da.consistent(problem, q0=problem.q0 * 1.1, v0=np.zeros(4))
    assert np.abs(state.residuals["g"]).max() < 1e-15


@pytest.mark.parametrize("method", [da.Gauss(2), da.LobattoIIIAB(3)], ids=str)
@pytest.mark.parametrize("h", [1.0, 0.125])
def test_momenta_that_no_velocity_sees_are_solved_for_too(method, h):
    """H = p: the velocity is 1 whatever p does, so convergence in q says nothing about p."""
    system = da.Hamiltonian(lambda p: p[0], dim=1, force=lambda p: [-(p[0] ** 3)])
    run = da.simulate(system, method, q0=[0.0], p0=[1.0], h=h, steps=5)
    exact = da.verify.multiprecision_run(system, method, q0=[0], p0=[1], h=h, steps=5)
    assert abs(run.p[-1, 0] - float(exact.p[0])) < 1e-15


def test_a_pole_of_H_alone_ends_the_run_at_its_step():
    """log(q) is nan left of zero while its derivative 1/q is finite."""
    system = da.Hamiltonian(lambda q, p: p @ p / 2 - 1e-6 * np.log(q[0]) + q @ q / 2, dim=1)
    for steps in (12, 21, 40, 100):
        run = da.simulate(system, da.LobattoIIIAB(3), q0=[1.0], p0=[0.0], h=0.3, steps=steps, on_failure="return")
        assert run.status == "failed"
        assert "left its domain" in run.message
        assert np.all(np.isfinite(run.energy))


def test_models_that_are_singular_for_unit_parameters_run():
    system = da.Hamiltonian(
        lambda q, p, e: (1 - e**2) * (p @ p) / 2 + q[1],
        dim=2,
        holonomic=lambda q, a, b: [(a - b) * (np.hypot(q[0], q[1]) - 1)],
        params={"e": 0.5, "a": 2.0, "b": 1.0},
    )
    run = da.simulate(system, da.LobattoIIIAB(3), q0=[1.0, 0.0], p0=[0.0, 0.0], h=0.05, steps=200)
    assert np.abs(run.residuals["g"]).max() < 1e-14
    assert np.ptp(run.energy) < 1e-5


def test_shake_refuses_a_mass_that_depends_on_time():
    system = da.Hamiltonian(lambda t, q, p: p @ p / (2 * (1 + t)) + q @ q / 2, dim=1)
    with pytest.raises(da.UnsupportedSystem, match="separable"):
        da.simulate(system, da.Shake(), q0=[1.0], p0=[0.0], h=0.1, steps=1)
