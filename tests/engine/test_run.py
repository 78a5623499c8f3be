"""The driver: its two linear solvers agree, it repeats itself exactly, it rescues and it fails honestly."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.compiler import _program
from dalembert.engine import _stepper


@pytest.fixture
def fresh_programs(monkeypatch):
    monkeypatch.setattr(_program, "_programs", {})


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.RadauIIA(3, projected=True)], ids=str)
def test_straight_line_and_run_time_elimination_agree(monkeypatch, fresh_programs, method):
    problem = da.problems.chain(links=4, sag=1.0)
    straight = da.simulate(problem, method, h=0.02, steps=200)
    monkeypatch.setattr(_program, "STRAIGHT_LINE_LIMIT", -1)
    monkeypatch.setattr(_program, "_programs", {})
    looped = da.simulate(problem, method, h=0.02, steps=200)
    assert np.abs(straight.q - looped.q).max() < 1e-12
    assert max(np.abs(r).max() for r in looped.residuals.values()) < 1e-13
    assert not np.array_equal(straight.q, looped.q), "the second run did not take the other path"


def test_runs_repeat_bit_for_bit_whatever_ran_before(fresh_programs, monkeypatch):
    problem = da.problems.double_pendulum()
    first = da.simulate(problem, da.LobattoIIIAB(3), steps=500)
    da.simulate(problem, da.LobattoIIIAB(3), q0=[1, 0, 1, -1], p0=[0, 0, 0, 0], h=0.01, steps=50)
    again = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(3), steps=500)
    monkeypatch.setattr(_program, "_programs", {})
    anew = da.simulate(problem, da.LobattoIIIAB(3), steps=500)
    assert np.array_equal(first.q, again.q)
    assert np.array_equal(first.q, anew.q)


def test_parameters_are_run_time_inputs(monkeypatch):
    problem = da.problems.double_pendulum()
    da.simulate(problem, da.LobattoIIIAB(3), steps=2)
    monkeypatch.setattr(_program, "_compile", lambda *_: pytest.fail("compiled again"))
    heavier = da.simulate(problem, da.LobattoIIIAB(3), steps=200, params={"m2": 3.0})
    built = da.simulate(da.problems.double_pendulum(m2=3.0), da.LobattoIIIAB(3), steps=200)
    assert np.array_equal(heavier.q, built.q)
    assert np.abs(heavier.q - da.simulate(problem, da.LobattoIIIAB(3), steps=200).q).max() > 0.1


def test_the_chain_hangs_together_with_many_links():
    """64 links: the large path; energy and constraints as the theory says, against the same chain at half the step."""
    problem = da.problems.chain(links=64)
    coarse, fine = (da.simulate(problem, da.LobattoIIIAB(3), h=h, steps=n) for h, n in ((0.01, 40), (0.005, 80)))
    assert max(np.abs(r).max() for r in coarse.residuals.values()) < 1e-12
    assert np.abs(coarse.q[-1] - fine.q[-1]).max() < 1e-7
    # the centre of mass falls by Newton's second law: M a = weight + force of the pivot, whose only unknown is lambda_1
    points = coarse.q.reshape(len(coarse), 64, 2)
    centre = points.mean(axis=1)
    acceleration = (centre[2:] - 2 * centre[1:-1] + centre[:-2]) / 0.01**2
    direction = points[1:-1, 0]
    pivot = -coarse.lam[1:-1, :1] * direction / 64 + np.array([0.0, -1.0])
    assert np.abs(acceleration - pivot).max() < 5e-3


def test_large_steps_are_rescued_or_refused_but_never_wrong():
    problem = da.problems.double_pendulum()
    for h in (0.5, 0.8, 1.2, 2.0, 5.0):
        run = da.simulate(problem, da.LobattoIIIAB(3), h=h, steps=100, on_failure="return")
        size = 1 + np.abs(run.v).max()
        assert max(np.abs(r).max() for r in run.residuals.values()) < 1e-13 * size
        assert run.status == "done" or "failed" in run.message
        assert np.all(np.isfinite(run.q))


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Rattle(), da.RadauIIA(2, projected=True)], ids=str)
def test_a_first_guess_that_is_nonsense_does_not_matter(monkeypatch, method):
    """The solution is followed from small steps, where the equations are nearly linear: the same trajectory."""
    problem = da.problems.double_pendulum()
    right = da.simulate(problem, method, h=0.05, steps=20)
    random = np.random.default_rng(5)

    def nonsense(reduced, *_):
        return random.normal(size=reduced.x.shape[0])

    monkeypatch.setattr(_stepper, "first_guess", nonsense)
    for _ in range(10):
        run = da.simulate(problem, method, h=0.05, steps=20)
        assert np.abs(run.states - right.states).max() < 1e-12


def test_a_loose_newton_tolerance_lets_energy_drift():
    problem = da.problems.double_pendulum()
    exact, sloppy = (
        da.simulate(problem, da.LobattoIIIAB(3), steps=20_000, newton_tolerance=tolerance) for tolerance in (None, 1e-4)
    )
    assert sloppy.stats["newton_iterations"] < exact.stats["newton_iterations"]
    slopes = [abs(da.verify.drift(run.energy, run.t).slope) for run in (exact, sloppy)]
    assert slopes[1] > 100 * slopes[0]


def test_stage_multipliers_are_stored_on_request():
    problem = da.problems.double_pendulum()
    run = da.simulate(problem, da.LobattoIIIAB(4), h=0.01, steps=50, stage_multipliers=True, save_every=7)
    assert run.stage_lam.shape == (9, 2)
    assert np.abs(run.stage_lam[1:] - run.lam[1:]).max() < 1e-4
    assert da.simulate(problem, da.LobattoIIIAB(4), h=0.01, steps=5).stage_lam is None


def test_the_cost_of_steps_does_not_depend_on_luck():
    """Old factors that do not serve a step cost what it spent on them: else the engine may go on with them for ever."""
    problem, costs = da.problems.chain(links=100), []
    for h in (0.01, 0.0100001, 0.0099, 0.0095, 0.0105):
        stats = da.simulate(problem, da.Rattle(), h=h, steps=300, save_every=300).stats
        costs.append(stats["newton_iterations"] + stats["factorizations"])
    assert max(costs) < 1.12 * min(costs)


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Rattle()], ids=str)
def test_controls_act_on_every_step_as_parameters_of_a_run_of_one_step_do(method):
    """What a run computes only once must follow them."""
    pendulum, values = da.problems.double_pendulum(), np.random.default_rng(0).uniform(0.5, 3.0, 12)
    run = da.simulate(pendulum, method, controls={"g": values}, h=0.05, steps=len(values))
    q, p = run.q[0], run.p[0]
    for k, g in enumerate(values):
        params = {"m1": 1.0, "m2": 1.0, "l1": 1.0, "l2": 1.0, "g": g}
        one = da.simulate(pendulum.system, method, params=params, q0=q, p0=p, h=0.05, steps=1)
        q, p = one.q[-1], one.p[-1]
        np.testing.assert_allclose([run.q[k + 1], run.p[k + 1]], [q, p], rtol=0, atol=1e-13)
