"""Steps by their local error: errors follow the tolerance, steps grow behind transients, constraints are kept."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert._fits import slope
from dalembert.engine import _driver as driver
from dalembert.engine import _run
from dalembert.engine._run import Run
from dalembert.engine._stepper import Stepper
from dalembert.experiments.benchmarks.records import at_end
from dalembert.runs import _stored_run

M, R, G, K, C = 0.2, 0.3, 9.81, 1e5, 200.0
"""A bob in kg on a rod in m with the stiffness 1e5 N/m and a damper in N s/m: its length settles within milliseconds."""
START = {"q0": [R + 1e-2, 0.0], "v0": [0.0, 0.0]}
RADAU = da.RadauIIA(3)


@cache
def elastic():
    def potential(q):
        return K / 2 * (np.hypot(q[0], q[1]) - R) ** 2 + M * G * q[1]

    def damper(q, v):
        r = np.hypot(q[0], q[1])
        return -C * (q @ v) / r**2 * q

    return da.Lagrangian(lambda q, v: M * v @ v / 2 - potential(q), dim=2, force=damper)


@cache
def elastic_exact():
    def rates(_, x):
        q, v = x[:2], x[2:]
        r = np.hypot(*q)
        return [*v, *((-K * (r - R) / r * q - C * (q @ v) / r**2 * q) / M + [0.0, -G])]

    return solve_ivp(rates, (0, 2.0), [R + 1e-2, 0, 0, 0], "DOP853", rtol=1e-13, atol=1e-15, dense_output=True).sol


def errors(run):
    return np.abs(run.q - elastic_exact()(run.t)[:2].T).max() / R


@pytest.mark.parametrize("base", [RADAU, da.GaussLobattoSPARK(3)], ids=str)
def test_errors_follow_the_tolerance_over_decades(base):
    tolerances, found, steps = 10.0 ** -np.arange(4, 9), [], []
    for rtol in tolerances:
        run = da.simulate(elastic(), da.ControlledSteps(base, rtol=rtol), **START, t1=2.0)
        assert run.t[-1] == 2.0 and np.all(np.diff(run.t) > 0)
        found.append(errors(run))
        steps.append(len(run))
    assert 0.7 < slope(tolerances, found)[0] < 1.5
    assert np.all(np.array(found) < 30 * tolerances)  # local errors are controlled, not their sum
    assert np.all(np.diff(steps) > 0)


def test_steps_grow_behind_a_transient_and_are_fewer_than_constant_ones():
    run = da.simulate(elastic(), da.ControlledSteps(RADAU, rtol=1e-6), **START, t1=2.0)
    sizes = np.diff(run.t)
    assert np.median(sizes) > 10 * sizes.min() and sizes[run.t[1:] > 0.1].min() > 5 * sizes.min()
    many = 5 * len(run)
    assert errors(da.simulate(elastic(), RADAU, **START, h=2.0 / many, steps=many)) > errors(run)
    assert run.stats["rejected_steps"] < 0.5 * len(run)


def test_van_der_pol():
    """x'' = mu (1 - x^2) x' - x with mu = 1000: from jump to jump steps grow a thousand times."""
    mu = 1000.0
    system = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=1, force=lambda q, v: mu * (1 - q[0] ** 2) * v)
    exact = solve_ivp(lambda _, x: [x[1], mu * (1 - x[0] ** 2) * x[1] - x[0]], (0, 2000.0), [2.0, 0.0], "Radau",
                      rtol=1e-11, atol=1e-13).y[:, -1]  # fmt: skip
    found = []
    for rtol in (1e-4, 1e-6, 1e-8):
        run = da.simulate(system, da.ControlledSteps(RADAU, rtol=rtol), q0=[2.0], v0=[0.0], t1=2000.0)
        found.append(abs(run.q[-1, 0] - exact[0]))
        assert len(run) < 3000 and np.diff(run.t).max() > 1e5 * np.diff(run.t)[5:].min()
    assert found[2] < found[0] / 100 and found[2] < 1e-5


@cache
def two_bobs(stiff=1e5, damper=100.0):
    """A pendulum of 0.2 kg in space coordinates, and 0.05 kg on it by a stiff spring of natural length 0.1 m."""

    def spring(q):
        return np.hypot(q[2] - q[0], q[3] - q[1])

    def force(q, v):
        d, u = q[2:] - q[:2], v[2:] - v[:2]
        pull = -damper * (d @ u) / (d @ d) * d
        return np.concatenate([-pull, pull])

    def L(q, v):
        kinetic = M * v[:2] @ v[:2] / 2 + 0.05 * v[2:] @ v[2:] / 2
        return kinetic - stiff / 2 * (spring(q) - 0.1) ** 2 - G * (M * q[1] + 0.05 * q[3])

    return da.Lagrangian(L, dim=4, force=force, holonomic=lambda q: [q[:2] @ q[:2] - R**2])


@pytest.mark.parametrize("base", [da.RadauIIA(3, projected=True), da.GaussLobattoSPARK(3)], ids=str)
def test_constraints_are_kept_and_errors_fall(base):
    start = {"q0": [R, 0.0, R, -0.1005], "v0": np.zeros(4), "t1": 1.0}
    reference = da.simulate(two_bobs(), da.GaussLobattoSPARK(5), **(start | {"h": 2e-4}))
    exact, found = reference.q[-1], []
    for rtol in (1e-5, 1e-7):
        run = da.simulate(two_bobs(), da.ControlledSteps(base, rtol=rtol), **start)
        assert np.abs(run.residuals["g"]).max() < 1e-14 and np.abs(run.residuals["g_dot"]).max() < 1e-13
        found.append(np.abs(run.q[-1] - exact).max())
    assert found[1] < found[0] / 15 and found[1] < 1e-5 and len(run) < 2000


@pytest.mark.slow
def test_points_that_come_to_rest_need_a_thirtieth_of_the_steps():
    """Fekete's points of the IVP test set, on spheres: against its published digits."""
    problem, base, error = da.problems.fekete(), da.RadauIIA(3, projected=True), at_end("fekete")
    found = []
    for rtol in (1e-4, 1e-6):
        run = da.simulate(problem, da.ControlledSteps(base, rtol=rtol), t1=1000.0)
        assert np.abs(run.residuals["g"]).max() < 1e-14
        found.append(error(run))
        many = 30 * len(run)
        assert error(da.simulate(problem, base, h=1000.0 / many, steps=many, save_every=many)) > found[-1]
    assert found[0] < 1e-6 and found[1] < found[0] / 50


def test_nonholonomic_constraints_and_index_two():
    """A knife edge in thick oil: its speed dies with the exact law exp(-c t / m), and k holds."""
    c = 400.0
    edge = da.Lagrangian(
        lambda q, v: 0.1 * v @ v, dim=3, force=lambda v: -c * np.array([v[0], v[1], 0.0]) * 0.2,
        nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]],
    )  # fmt: skip
    method = da.ControlledSteps(RADAU, rtol=1e-8, atol=1e-9)
    run = da.simulate(edge, method, q0=[0, 0, 0], v0=[2.0, 0.0, 0.5], t1=3.0)
    speed = 2.0 * np.exp(-c * run.t)
    assert np.abs(np.hypot(run.v[:, 0], run.v[:, 1]) - speed).max() < 1e-4
    assert np.abs(run.residuals["k"]).max() < 1e-12 and len(run) < 400
    problem = da.problems.index_two_growth()
    grown = da.simulate(problem, da.ControlledSteps(RADAU, rtol=1e-8), t1=1.0)
    assert np.abs(grown.y - problem.exact(grown.t)["y"]).max() < 1e-6 * np.abs(grown.y).max()


def test_backwards_steps_number_of_steps_and_dense_output():
    soft = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=1)
    back = da.simulate(soft, da.ControlledSteps(RADAU, rtol=1e-9), q0=[1.0], v0=[0.0], h=-0.1, t1=-5.0)
    assert back.t[-1] == -5.0 and abs(back.q[-1, 0] - np.cos(5.0)) < 1e-7
    counted = da.simulate(soft, da.ControlledSteps(RADAU, rtol=1e-9), q0=[1.0], v0=[0.0], h=1.0, steps=20)
    assert len(counted) == 21 and counted.stats["rejected_steps"] > 0
    assert np.abs(counted.q[:, 0] - np.cos(counted.t)).max() < 1e-7
    spark = da.ControlledSteps(da.GaussLobattoSPARK(3), rtol=1e-9)
    run = da.simulate(soft, spark, q0=[1.0], v0=[0.0], h=1.0, t1=9.0)
    t = np.linspace(0, 9.0, 61)
    assert np.abs(run.at(t).q[:, 0] - np.cos(t)).max() < 1e-5
    assert np.abs(run.at(run.t[3:7]).q - run.q[3:7]).max() < 1e-12
    assert np.abs(back.at(-t[:30]).q[:, 0] - np.cos(t[:30])).max() < 1e-5
    with pytest.raises(da.DalembertError, match="not a collocation method with dense output"):
        da.simulate(soft, da.ControlledSteps(da.LobattoIIIC(3)), q0=[1.0], v0=[0.0], h=0.1, steps=5).at(0.1)


def test_ensembles_stores_and_resume(tmp_path):
    method = da.ControlledSteps(RADAU, rtol=1e-6)
    members = {"q0": [[R + 1e-2, 0.0], [R, 0.01], [0.0, -R]], "v0": [[0, 0], [0, 0], [0.5, 0.0]], "h": 1e-3, "steps": 60}
    runs = da.simulate_many(elastic(), method, **members)
    for k, run in enumerate(runs):
        one = {name: members[name][k] for name in ("q0", "v0")}
        alone = da.simulate(elastic(), method, **one, h=1e-3, steps=60)
        assert np.array_equal(run.t, alone.t) and np.array_equal(run.q, alone.q)
        assert run.stats["rejected_steps"] == alone.stats["rejected_steps"]
    given = {**START, "h": 1e-3}
    whole = da.simulate(elastic(), method, **given, steps=60, save_to=tmp_path / "whole.zarr")
    da.simulate(elastic(), method, **given, steps=30, save_to=tmp_path / "half.zarr")
    longer = da.resume(tmp_path / "half.zarr", elastic(), method, steps=60)
    assert np.array_equal(longer.t, whole.t) and np.array_equal(longer.states[:], whole.states[:])
    assert np.array_equal(longer.step_sizes, whole.step_sizes)


@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_chunks_of_a_store_may_change_steps_but_not_their_accuracy(rtol, tmp_path, monkeypatch):
    """Every chunk begins Newton's iteration afresh: rounding may then decide otherwise about a step that nearly misses."""
    monkeypatch.setattr(_stored_run, "CHUNK_NUMBERS", 100)
    steps = 100 if rtol == 1e-4 else 300
    method = da.ControlledSteps(RADAU, rtol=rtol)
    stored = da.simulate(elastic(), method, **START, h=1e-3, steps=steps, save_to=tmp_path / "run.zarr")
    t = stored.t[:]
    near = t <= 2.0
    assert stored.store.header.chunk < 30 < np.count_nonzero(near)
    assert np.abs(stored.q[near] - elastic_exact()(t[near])[:2].T).max() / R < 30 * rtol


def test_a_first_step_that_is_far_too_small_is_no_end():
    system = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=1)
    method, start = da.ControlledSteps(RADAU, rtol=1e-8), {"q0": [1.0], "v0": [0.0], "h": 1e-300}
    run = da.simulate(system, method, **start, t1=1.0)
    assert run.t[-1] == 1.0 and abs(run.q[-1, 0] - np.cos(1.0)) < 1e-7
    assert da.simulate(system, method, **start, steps=5).stats["steps"] == 5


def test_a_singularity_ends_the_run_with_a_reason():
    """x' = p, p' = 6 x^2 from x = 1 on 1 / (1 - t)^2: no step leads past t = 1."""
    blown = da.Lagrangian(lambda q, v: v @ v / 2 + 2 * q[0] ** 3, dim=1)
    with pytest.raises(da.StepFailed, match="singularity") as failed:
        da.simulate(blown, da.ControlledSteps(RADAU, rtol=1e-6), q0=[1.0], v0=[2.0], t1=2.0)
    assert failed.value.run.t[-1] == pytest.approx(1.0, abs=1e-3)


def test_what_has_no_controlled_steps_says_so(tmp_path):
    for bad, why in {
        da.RadauIIA(1): "one stage less", da.Rattle(): "one stage less", da.compose(da.Rattle(), 4): "one stage less",
        da.CVA(): "smooth motions", da.ReversibleSteps(da.Gauss(2)): "constant steps", 3: "takes a method",
    }.items():  # fmt: skip
        with pytest.raises(da.InputError, match=why):
            da.ControlledSteps(bad)
    for bad in ({"rtol": 1e-14}, {"rtol": 1.0}, {"atol": -1.0}, {"rtol": "x"}, {"rtol": 0.0}):
        with pytest.raises(da.InputError, match="tol"):
            da.ControlledSteps(RADAU, **bad)
    method, given = da.ControlledSteps(RADAU), {**START, "h": 1e-3}
    many = {"q0": [START["q0"]], "v0": [START["v0"]], "h": 1e-3}
    refused = {
        "tolerance of its own": lambda: da.simulate(elastic(), method, **START, t1=1.0, rtol=1e-6),
        "give steps= in place of t1=": lambda: da.simulate(elastic(), method, **given, t1=1.0, save_to=tmp_path / "no.zarr"),
        "leave simd= out": lambda: da.simulate_many(elastic(), method, **many, steps=5, simd=True),
        "give steps= and .* da.simulate for each": lambda: da.simulate_many(elastic(), method, **many, t1=1.0),
        "da.lyapunov": lambda: da.lyapunov(elastic(), method, steps=10, **given),
        "claims no order": lambda: da.simulate(two_bobs(), da.ControlledSteps(da.LobattoIIIC(3)), q0=[R, 0, R, -0.1],
                                               v0=np.zeros(4), t1=1.0),
        "not both": lambda: da.simulate(elastic(), method, **given, steps=4, t1=1.0),
        "after t0": lambda: da.simulate(elastic(), method, **given, t1=-1.0),
    }  # fmt: skip
    for why, call in refused.items():
        with pytest.raises(da.DalembertError, match=why):
            call()


@pytest.mark.parametrize("h", [0.1, -0.1])
def test_reversible_steps_end_behind_t1(h):
    orbit = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.linalg.norm(q), dim=2)
    for base in (da.LobattoIIIAB(3), da.compose(da.Rattle(), 4)):
        method = da.ReversibleSteps(base, density=lambda q: np.linalg.norm(q) ** -1.5)
        given = {"q0": [0.4, 0.0], "p0": [0.0, 2.0], "h": h}
        run = da.simulate(orbit, method, **given, t1=50 * h)
        same = da.simulate(orbit, method, **given, steps=len(run) - 1)
        assert np.array_equal(run.q, same.q) and np.array_equal(run.t, same.t)
        assert run.t[-2] / h < 50 <= run.t[-1] / h
    with pytest.raises(da.InputError, match="t1= needs steps of constant size"):
        da.simulate(orbit, da.SymplecticSteps(da.LobattoIIIAB(3), lambda q: np.linalg.norm(q) ** -1.5), **given, t1=50 * h)


def test_the_first_step_size_does_not_set_the_final_time_of_a_problem():
    problem = da.problems.pendulum()
    method = da.ControlledSteps(RADAU, rtol=1e-4)
    assert da.simulate(problem, method, h=1e-4).t[-1] == problem.h * problem.steps
    with pytest.raises(da.InputError, match="give steps="):
        da.simulate_many(problem, method, q0=[problem.q0] * 2, p0=[problem.p0] * 2)
    with pytest.raises(da.InputError, match="t1 must be another time than t0 = 0"):
        da.simulate(problem.system, method, q0=problem.q0, p0=problem.p0, t1=0.0)


def test_a_missing_step_size_is_asked_for_in_words_that_help():
    method = da.ControlledSteps(RADAU, rtol=1e-6)
    with pytest.raises(da.InputError, match="give h=, or t1= without steps=, which finds one"):
        da.simulate(elastic(), method, **START, steps=5)
    assert len(da.simulate(elastic(), method, **START, steps=5, h=1e-4)) == 6
    assert da.simulate(elastic(), method, **START, t1=1e-3).t[-1] == 1e-3
    with pytest.raises(da.InputError, match="give h=, or rtol= and t1=, which finds one"):
        da.simulate(elastic(), RADAU, **START, steps=5)


def test_a_step_that_is_not_rescued_is_made_shorter(monkeypatch):
    """As where redundant constraints were combined anew, and the step fails all the same."""
    given = {**START, "t1": 0.05, "h": 0.02}
    method = da.ControlledSteps(RADAU, rtol=1e-8)
    failed = []

    advance = Run._advance_to
    monkeypatch.setattr(Run, "_advance_to", lambda run, last: advance(run, last) if failed or not last else driver.UNSOLVED)
    monkeypatch.setattr(_run, "rescue", lambda stepper: failed.append(stepper.h) or "no solution was found")
    monkeypatch.setattr(Stepper, "renew", lambda stepper: True)
    run = da.simulate(elastic(), method, **given)
    assert failed == [0.02] and run.stats["rejected_steps"] >= 1
    assert run.t[-1] == pytest.approx(0.05)
    np.testing.assert_allclose(run.q[-1], elastic_exact()(run.t[-1])[:2], atol=1e-6)
