"""Walls and stops beside redundant joints: every closed loop in space has some, and so has a door on two hinges."""

from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.runs import _stored_run as stored
from dalembert.runs._arguments import Arguments
from dalembert.runs._drivers import make_run

STEPS = 400


def door(hinges: int, **stop: float) -> tuple[da.Mechanism, da.mechanisms.Joint]:
    """A door of 12 kg and 0.8 m that a closer presses against its frame with 6 N m; its hinges share one axis."""
    m = da.Mechanism(gravity=(0, 0, -9.81))
    leaf = m.body("leaf", mass=12.0, inertia=np.diag([2.0, 2.6, 0.64]), at=(0.4, 0, 1.0))
    joints = [
        m.revolute(m.ground, leaf, at=(0, 0, 0.2 + 0.8 * k), axis=(0, 0, 1), name=f"hinge {k + 1}") for k in range(hinges)
    ]
    m.motor(joints[0], lambda t: -6.0)
    m.stop(joints[0], **stop)
    return m, joints[0]


INERTIA = 0.64 + 12.0 * 0.4**2
CLOSING = 6.0 / INERTIA


@pytest.mark.parametrize("hinges", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_door_on_several_hinges_bounces_as_the_exact_solution_does(hinges: int) -> None:
    e, angle = 0.5, 0.3
    m, hinge = door(hinges, lower=-angle, restitution=e)
    run = da.simulate(m, da.CVA(da.LobattoIIIAB(3)), start=m.start(), h=0.005, steps=STEPS)
    assert run.status == "done"
    first = np.sqrt(2 * angle / CLOSING)
    speed = CLOSING * first
    flights = 2 * speed * e ** np.arange(1, 60) / CLOSING
    expected = first + np.concatenate([[0.0], np.cumsum(flights)])
    n = 12
    assert np.allclose(run.impacts.t[:n], expected[:n], atol=1e-10)
    found = run.of(hinge)
    late = run.t > expected[-1] + 0.01
    assert late.any() and np.allclose(found.angle[late], -angle, atol=1e-12)  # at rest on the stop
    assert np.abs(run.residuals["g"]).max() < 1e-13
    # The stop presses with the whole torque of the closer; grad phi is that of the angle.
    assert np.allclose(run.contact_forces.normal[late, 0], 6.0, rtol=1e-9)


@pytest.mark.parametrize("method", [da.NonsmoothRattle(), da.MoreauJean()])
def test_time_stepping_brings_the_same_door_to_rest_with_the_right_impulse(method: da.methods.OneStepMethod) -> None:
    m, hinge = door(2, lower=-0.31, restitution=0.47)  # not 0.3 and 0.5: the third impact would be at the end of a step
    one, alone = door(1, lower=-0.31, restitution=0.47)
    runs = [da.simulate(x, method, start=x.start(), h=0.002, steps=1000) for x in (m, one)]
    angles = [run.of(joint).angle for run, joint in zip(runs, (hinge, alone), strict=True)]
    assert all(run.status == "done" for run in runs)
    assert np.allclose(*angles, atol=1e-11)
    # All momentum about the hinge that the closer gave was taken by the stop.
    assert np.isclose(runs[0].contacts.normal.sum(), 6.0 * runs[0].t[-1], rtol=1e-6)  # walls are penetrated by O(h)


def rink(copies: int) -> da.Lagrangian:
    """A skate of 3 kg between two walls, whose edge is stated once or more often, in other units."""
    return da.Lagrangian(
        lambda q, v: 1.5 * (v[0] ** 2 + v[1] ** 2) + 0.02 * v[2] ** 2 / 2,
        dim=3,
        nonholonomic=lambda q, v: [s * (np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]) for s in (1.0, 1e3, 1e-3)[:copies]],
        unilateral=lambda q: [0.5 - q[0], q[0] + 0.5],
        restitution=0.8,
    )


@pytest.mark.parametrize("method", [da.CVA(da.GaussLobattoSPARK(2)), da.NonsmoothRattle(), da.MoreauJean()])
def test_repeated_rows_of_a_skate_change_nothing(method: da.methods.OneStepMethod) -> None:
    start = {"q0": [0.0, 0.0, 0.4], "v0": [np.cos(0.4), np.sin(0.4), 0.3]}
    runs = [da.simulate(rink(k), method, **start, h=0.01, steps=300) for k in (1, 3)]
    assert all(run.status == "done" for run in runs)
    assert np.allclose(runs[0].q, runs[1].q, atol=1e-11)


def loop(copies: int) -> da.Lagrangian:
    """Two masses on a rod of 0.4 m that fall on a floor and between walls; the rod is stated once or more often."""
    return da.Lagrangian(
        lambda q, v: 0.1 * (v @ v) - 0.2 * 9.81 * (q[1] + q[3]),
        dim=4,
        holonomic=lambda q: [s * ((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 0.16) for s in (1.0, 50.0, 1e-4)[:copies]],
        unilateral=lambda q: [q[1], q[3]],
        restitution=0.7,
    )


ROD = {"q0": [0.0, 0.5, 0.4 * np.cos(0.5), 0.5 + 0.4 * np.sin(0.5)], "v0": [0.0, 0.0, 0.0, 0.0]}
COLLISIONS = [da.CVA("SVC"), da.CVA(da.LobattoIIIAB(3)), da.VCI("SVC")]


@pytest.mark.parametrize("method", COLLISIONS, ids=str)
def test_a_rod_that_is_stated_three_times_falls_as_one(method: da.methods.OneStepMethod) -> None:
    runs = [da.simulate(loop(k), method, **ROD, h=0.005, steps=300) for k in (1, 3)]
    assert all(run.status == "done" for run in runs) and len(runs[0].impacts) == len(runs[1].impacts) > 3
    assert np.allclose(runs[0].impacts.t, runs[1].impacts.t, atol=1e-9)
    assert np.allclose(runs[0].q, runs[1].q, atol=1e-9)


@pytest.mark.parametrize("method", [da.CVA(da.LobattoIIIAB(2)), da.NonsmoothRattle()], ids=str)
def test_ensembles_stores_and_resumed_runs_have_the_bits_of_a_single_run(
    method: da.methods.OneStepMethod, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, given = loop(3), {**ROD, "h": 0.005, "steps": 200}
    monkeypatch.setattr(stored, "CHUNK_NUMBERS", 60 * system.n_state)
    whole = da.simulate(system, method, **given)
    many = da.simulate_many(system, method, **given | {"v0": [[0.0] * 4, [0.1, 0.0, 0.1, 0.0]]})
    assert many.status == ("done", "done") and np.array_equal(many.q[0], whole.q)
    run = da.simulate(system, method, **given, save_to=tmp_path / "whole.zarr")
    da.simulate(system, method, **given | {"steps": 90}, save_to=tmp_path / "half.zarr")
    resumed = da.resume(tmp_path / "half.zarr", system, method, steps=200)
    assert np.array_equal(run.states[:], resumed.states[:])
    assert np.allclose(run.q[:], whole.q, atol=1e-9)


def test_what_needs_independent_joints_names_those_that_are_not() -> None:
    m, _ = door(2, lower=-0.3)
    with pytest.raises(da.DalembertError, match="'hinge 1', 'hinge 2' together"):
        da.gradient(lambda q: q @ q, m, da.CVA(da.LobattoIIIAB(2)), wrt=("q0",), start=m.start(), h=0.01, steps=100)


def test_what_is_computed_once_a_run_is_computed_anew_when_a_contact_hands_back_other_combinations() -> None:
    m, _ = door(2, lower=-0.3)
    run = make_run(Arguments("simulate", m, da.CVA(da.LobattoIIIAB(3)), {}, start=m.start(), h=0.005, steps=3).single())
    assert run.advance() is None
    stepper = run.steppers[0]
    place = stepper.program.layout.prepared
    assert stepper.memory[place] == 0.005
    run.adopt(stepper.start.theta)
    assert stepper.memory[place] == 0
