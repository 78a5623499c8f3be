"""Collision integrators in ensembles: every member is the single run, impacts and contacts included."""

import threading
import time
import tracemalloc
from dataclasses import fields

import numpy as np
import pytest
from ensemble_cases import double_pendulums

import dalembert as da
from dalembert.compiler import _jit, _program
from dalembert.contact import _event_program as _events_program
from dalembert.engine._run import Run
from dalembert.engine._spec import RunSpec

METHODS = {"CVA": da.CVA(), "VCI": da.VCI(), "MCVAA": da.MCVAA()}


def cart_pendulum():
    """(35) of Pekarek and Murphey (2014) with its floor."""
    return da.Lagrangian(
        lambda q, v, g: (
            0.6 * v[0] ** 2 + 0.4 * np.sin(q[1]) * v[0] * v[1] + 0.4 * v[1] ** 2 - 1.2 * g * q[0] + 0.4 * g * np.cos(q[1])
        ),
        dim=2,
        unilateral=lambda q: q[0],
        params={"g": 10.0},
    )


def ball_on_a_table():
    """It bounces, and is carried by the table for a part of every period."""
    return da.Lagrangian(
        lambda q, v: v @ v / 2 - 9.81 * q[0],
        dim=1,
        unilateral=lambda t, q: q[0] - 0.1 * np.sin(12 * t),
        restitution=0.3,
    )


def box():
    """A particle between two walls, one length apart."""
    return da.Lagrangian(lambda q, v: v @ v / 2, dim=1, unilateral=lambda q: [q[0], 1 - q[0]])


def assert_same(first, second):
    for f in fields(first):
        assert np.array_equal(getattr(first, f.name), getattr(second, f.name)), f.name


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_member_is_bit_for_bit_a_single_run_with_its_impacts(method):
    heights = np.linspace(0.3, 3.0, 7)
    start = {"q0": np.stack([heights, 0 * heights], axis=1), "v0": [0.0, 1.0]}
    g = np.linspace(9.0, 11.0, 7)
    runs = da.simulate_many(cart_pendulum(), method, **start, params={"g": g}, h=0.01, steps=601, save_every=3, workers=3)
    assert len(runs.impacts) == runs.stats["impacts"] > 7
    assert np.array_equal(np.bincount(runs.impacts.member), [len(run.impacts) for run in runs])
    for k, run in enumerate(runs):
        single = {"q0": start["q0"][k], "v0": start["v0"], "params": {"g": g[k]}}
        alone = da.simulate(cart_pendulum(), method, **single, h=0.01, steps=601, save_every=3)
        assert np.array_equal(run.states, alone.states) and np.array_equal(run.t, alone.t)
        assert_same(run.impacts, alone.impacts)
        assert {name: alone.stats[name] for name in run.stats} == run.stats
        assert np.array_equal(runs.impacts[k].t, alone.impacts.t)


def test_members_in_sustained_contact_are_single_runs_too():
    heights = np.linspace(0.3, 1.0, 5)[:, None]
    watched = {"reduce": {"height": lambda q: q[0]}, "save_every": 1}
    runs = da.simulate_many(ball_on_a_table(), da.CVA(), q0=heights, v0=[0.0], h=0.01, steps=400, workers=3, **watched)
    assert np.all(np.bincount(runs.contacts.member) >= 3)
    for k, run in enumerate(runs):
        alone = da.simulate(ball_on_a_table(), da.CVA(), q0=heights[k], v0=[0.0], h=0.01, steps=400)
        assert np.array_equal(run.states, alone.states)
        assert_same(run.contacts, alone.contacts)
        assert_same(run.impacts, alone.impacts)
        height = runs.reduced["height"]  # steps in contact, which Python makes, are seen as well
        assert (height.min[k], height.max[k]) == (alone.q.min(), alone.q.max())
        assert np.isclose(height.mean[k], alone.q.mean(), rtol=1e-12)


def test_a_member_that_fails_at_a_wall_does_not_stop_the_others():
    pointed = da.Lagrangian(lambda q, v: v @ v / 2, dim=1, unilateral=lambda q: q[0] ** 2)
    speeds = [[1.0], [-0.93], [2.0], [-0.7], [0.0]]
    runs = da.simulate_many(pointed, da.CVA(), q0=np.full((5, 1), 1.0), v0=speeds, h=0.1, steps=50)
    assert runs.status == ("done", "failed", "done", "failed", "done")
    with pytest.raises(da.StepFailed) as failure:
        da.simulate(pointed, da.CVA(), q0=[1.0], v0=[-0.93], h=0.1, steps=50)
    assert runs.message[1] in str(failure.value) and "gradient" in runs.message[1]
    assert np.array_equal(runs[1].states, failure.value.run.states)
    assert np.all(np.isnan(runs.q[1, runs.steps_done[1] + 1 :]))


def test_counted_impacts_are_those_of_the_stored_ones():
    heights = np.linspace(0.3, 1.0, 4)[:, None]
    case = {"q0": heights, "v0": [0.0], "h": 0.01, "steps": 300}
    kept = da.simulate_many(ball_on_a_table(), da.CVA(), **case)
    runs = da.simulate_many(ball_on_a_table(), da.CVA(), **case, reduce=["energy", "impacts"])
    counted, jumps = runs.reduced["impacts"], [run.impacts.energy_after - run.impacts.energy_before for run in kept]
    assert runs.impacts is None and runs[2].impacts is None and runs.q.shape == (4, 2, 1)
    assert np.array_equal(counted.count, [len(run.impacts) for run in kept])
    assert np.array_equal(counted.contacts, [len(run.contacts) for run in kept])
    assert np.array_equal(counted.last_t, [run.impacts.t[-1] for run in kept])
    assert np.array_equal(counted.largest_jump, [np.abs(jump).max() for jump in jumps])
    assert np.allclose(counted.energy_change, [jump.sum() for jump in jumps], rtol=1e-12)
    assert np.allclose(counted.total_jump, [np.abs(jump).sum() for jump in jumps], rtol=1e-12)
    assert np.allclose(counted.impulse, [run.impacts.impulse.sum() for run in kept], rtol=1e-12)
    assert np.allclose(counted.contact_time, [np.sum(run.contacts.end - run.contacts.begin) for run in kept], rtol=1e-12)
    assert np.array_equal(runs.reduced["energy"].max, kept.energy.max(axis=1))


def test_impacts_are_counted_while_memory_does_not_grow():
    speed, h = np.array([[1.0], [2.0]]), 0.25 + 1 / 64
    da.simulate_many(box(), da.CVA(), q0=[0.5], v0=speed, h=h, steps=10, reduce=["impacts"])
    peaks = []
    for steps in (20_000, 80_000):
        measured = []
        for _ in range(2):  # threads that other tests left behind allocate, too
            tracemalloc.start()
            runs = da.simulate_many(box(), da.CVA(), q0=[0.5], v0=speed, h=h, steps=steps, reduce=["impacts"], workers=1)
            measured.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        peaks.append(min(measured))
        # it meets a wall whenever 1/2 + v t is a whole number
        assert np.array_equal(runs.reduced["impacts"].count, np.floor(0.5 + speed[:, 0] * steps * h))
        assert np.allclose(runs.reduced["impacts"].impulse, 2 * speed[:, 0] * runs.reduced["impacts"].count, rtol=1e-12)
        assert np.all(runs.reduced["impacts"].total_jump < 1e-9)
    assert runs.reduced["impacts"].count[1] > 40_000  # the log, which holds some thousands, was emptied again and again
    assert peaks[1] < peaks[0] + 100_000


def test_what_vectors_and_walls_do_not_allow_is_refused_in_one_sentence(monkeypatch):
    ball, start = ball_on_a_table(), {"q0": [[1.0], [0.5]], "v0": [0.0], "h": 0.01, "steps": 10}
    with pytest.raises(da.InputError, match=r"impacts fall into different steps.*leave simd= out"):
        da.simulate_many(ball, da.CVA(), **start, simd=True)
    with pytest.raises(da.InputError, match="stage_multipliers are not stored"):
        da.simulate_many(ball, da.CVA(), **start, stage_multipliers=True)
    with pytest.raises(da.InputError, match='"impacts", which a system without unilateral= does not have'):
        da.simulate_many(da.problems.pendulum(), da.Rattle(), h=0.1, steps=10, reduce=["impacts"])
    with pytest.raises(da.DalembertError, match="member 1: the initial values lie behind a wall"):
        da.simulate_many(ball, da.CVA(), q0=[[1.0], [-0.5]], p0=[0.0], h=0.01, steps=10)
    with pytest.raises(da.UnsupportedSystem, match="through the walls"):
        Run(RunSpec(ball, da.Rattle(), da.consistent(ball, q0=[1.0], v0=[0.0]), 0.01, 10))
    monkeypatch.setattr(_program, "STRAIGHT_LINE_LIMIT", -1)
    monkeypatch.setattr(_program, "_programs", {})
    with pytest.raises(da.InputError, match=r"too large here for code without loops.*leave simd= out"):
        da.simulate_many(da.problems.pendulum(), da.LobattoIIIAB(3), h=0.1, steps=10, simd=True)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_crossings_in_steps_with_impacts_are_on_the_surface_at_their_exact_times(method):
    floor = da.Lagrangian(lambda q, v: v @ v / 2, dim=2, unilateral=lambda q: q[1], params={"x": 0.0})
    slope, hit = 1 / 1.98, 1.98  # the particle starts at height 1 and meets the floor at t = 1.98

    def exact(x):
        before, after = (x - 0.3) / (1 - 0.3 * slope), (x + 0.3 * slope * hit) / (1 + 0.3 * slope)
        return before if before < hit else after

    places = np.array([1.5, 1.979, 1.98, 1.99, 2.5])
    case = {"q0": [0.0, 1.0], "p0": [1.0, -slope], "params": {"x": places}, "h": 0.1, "steps": 40}
    crossings = da.poincare(floor, method, section=lambda q, x: q[0] + 0.3 * q[1] - x, **case)
    assert np.array_equal(crossings.member, np.arange(5))
    assert np.allclose(crossings.t, [exact(x) for x in places], rtol=0, atol=1e-14)
    assert np.abs(crossings.q @ [1.0, 0.3] - places).max() < 1e-15


def test_an_impact_that_jumps_across_the_surface_is_no_crossing():
    ball = da.Lagrangian(lambda q, v: v @ v / 2 - q[0], dim=1, unilateral=lambda q: q[0])
    case = {"section": lambda p: p[0], "q0": [[1.0], [0.5]], "p0": [0.0], "h": 0.1, "steps": 99}  # no crossing at the end
    assert len(da.poincare(ball, da.CVA(), direction=+1, **case).t) == 0
    tops = da.poincare(ball, da.CVA(), direction=-1, **case)
    for k, height in enumerate((1.0, 0.5)):
        period = 2 * np.sqrt(2 * height)
        assert np.allclose(tops[k].t, period * np.arange(1, 1 + int(9.9 / period)), rtol=0, atol=1e-13)


class Forgetful(dict):
    """A cache that never has what is asked for."""

    def __contains__(self, key):
        return False


@pytest.mark.parametrize("name", ["rescues", "contacts"])
def test_threads_that_rescue_and_compile_do_so_one_at_a_time(name, monkeypatch, tmp_path):
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path))
    compile_now, inside, most, threads = _jit._compile, [], [], set()

    def compile_and_count(*arguments):
        inside.append(1)
        most.append(len(inside))
        threads.add(threading.get_ident())
        time.sleep(0.002)
        try:
            return compile_now(*arguments)
        finally:
            inside.pop()

    if name == "rescues":
        case = double_pendulums(12, da.LobattoIIIAB(2), h=0.9, width=3.0)
        arguments = (case.system, case.method), {**case.all, "h": case.h, "steps": 40, "simd": False}
    else:
        heights = np.linspace(0.05, 0.2, 8)[:, None]
        arguments = (ball_on_a_table(), da.CVA()), {"q0": heights, "v0": [0.0], "h": 0.01, "steps": 60}
    alone = da.simulate_many(*arguments[0], **arguments[1], workers=1)
    monkeypatch.setattr(_jit, "_compile", compile_and_count)
    for module, cache in ((_jit, "_compiled"), (_program, "_programs"), (_events_program, "_programs")):
        monkeypatch.setattr(module, cache, Forgetful())
    together = da.simulate_many(*arguments[0], **arguments[1], workers=8)
    assert len(most) > 8 and len(threads) > 3 and max(most) == 1
    assert np.array_equal(together.states, alone.states, equal_nan=True)
