"""A step is accepted only if its solution continues that of smaller steps; otherwise it is refused with the reason."""

from __future__ import annotations

import sys
from pathlib import Path

import n_four_bar
import numpy as np
import pytest
from continuation import continued_step
from scipy.integrate import solve_ivp

import dalembert as da

sys.path.insert(0, str(Path(__file__).parents[1] / "methods"))
from method_table import ROWS, serves

WAVE = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2, holonomic=lambda q: [q[1] - np.sin(3 * q[0])])
PENDULUM = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])
METHODS = {row.id: row.method for row in ROWS if serves(row.method, WAVE) and not row.method.serves_unilateral}


def on_the_wave(x, speed):
    """At x, with the given x-component of the momentum, along the curve."""
    x, speed = np.asarray(x), np.asarray(speed)
    return {"q0": np.stack([x, np.sin(3 * x)], -1), "p0": np.stack([speed, 3 * np.cos(3 * x) * speed], -1)}


def continued(method, state, h):
    """`continued_step` for methods that may be compositions."""
    for part, fraction in method.substeps:
        packed = continued_step(WAVE, part, state, fraction * h)
        if packed is None:
            return None
        try:
            state = da.consistent(WAVE, q0=packed[:2], p0=packed[2:])
        except da.errors.DalembertError:  # of a method that does not keep the constraints, and is no composition
            return packed
    return packed


OFTEN = {da.Rattle(), *(da.LobattoIIIAB(s) for s in (2, 3, 5)), da.GaussLobattoSPARK(2), da.RadauIIA(2, projected=True),
         da.Gauss(2, projected=True), da.SymplecticEuler(), da.LobattoGalerkin(3)}  # fmt: skip
"""Of the families; the others are slow only because they are many."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if method in OFTEN else pytest.mark.slow) for name, method in METHODS.items()]
)
def test_steps_on_a_wave_continue_those_of_smaller_h(name):
    """On y = sin 3x a step may end on another hump; the humps are 2 pi/3 apart, and so are the solutions.

    What is refused are large steps, of which many have no solution that begins at h = 0.
    """
    method, random, members = METHODS[name], np.random.default_rng(7), 12
    start = on_the_wave(random.uniform(-1.2, 1.2, members), random.normal(0.0, 1.5, members))
    for h in (0.02, 0.1, 0.2, 0.3):
        try:
            runs = da.simulate_many(WAVE, method, **start, h=h, steps=1)
        except da.errors.StepFailed:  # of a method that begins with a step of another one
            assert method.starting is not None
            continue
        for k in range(members):
            if method.starting is not None:  # its first step differs: it may not be further than the motion goes
                moved = abs(runs.q[k, -1, 0] - start["q0"][k, 0])
                assert runs.status[k] != "done" or moved < h * (np.linalg.norm(start["p0"][k]) + 4)
                continue
            wanted = continued(method, da.consistent(WAVE, q0=start["q0"][k], p0=start["p0"][k]), h)
            if runs.status[k] != "done":
                assert runs.message[k]
                assert wanted is None or h > 0.02
            else:
                assert wanted is not None, f"{start['q0'][k]}, {start['p0'][k]}, h = {h}: no such solution"
                assert np.abs(runs.states[k, -1] - wanted).max() < 1e-6 * (1 + np.abs(wanted).max())


@pytest.mark.parametrize(
    ("method", "x", "speed", "h"),
    [
        (da.LobattoIIIAB(5), 0.0833, -0.6275, 0.1),
        (da.LobattoIIIAB(3), 0.3425, -1.4491, 0.1),
        (da.Rattle(), 0.795, -1.954, 0.05),
    ],
    ids=str,
)
@pytest.mark.parametrize("simd", [None, True, False])
def test_steps_that_once_jumped(method, x, speed, h, simd):
    """The energy of one of these runs went from 2.1 to 253; the motion never has more speed than its energy allows."""
    start = on_the_wave(x, speed)
    if simd is None:
        run = da.simulate(WAVE, method, **start, h=h, steps=8, on_failure="return")
    else:
        run = da.simulate_many(WAVE, method, **{k: np.tile(v, (8, 1)) for k, v in start.items()}, h=h, steps=8, simd=simd)[3]
    fastest = np.sqrt(2 * (run.energy[0] + 1))
    assert np.abs(np.diff(run.q[:, 0])).max() < 1.2 * h * fastest
    assert np.abs(run.energy - run.energy[0]).max() < 0.25 * run.energy[0]
    assert run.status == "done" or "reduce h" in run.message


# A bead of 0.2 kg on a wavy rail of 5 cm: y = 0.05 sin 60x.
BEAD, RAIL = 0.2, lambda x: 0.05 * np.sin(60 * x)


def on_the_rail(members):
    """Positions and velocities of the bead."""
    random = np.random.default_rng(11)
    x, speed = random.uniform(-0.06, 0.06, members), random.normal(0.0, 0.5, members)
    return np.stack([x, RAIL(x)], 1), np.stack([speed, 3 * np.cos(60 * x) * speed], 1)


def same_or_refused(alone, beside, wanted):
    """Whether no member of an ensemble is done elsewhere than where it ends alone."""
    for k, status in enumerate(beside.status):
        if status == "done":
            assert alone.status[k] == "done", f"{k} is refused alone, and done beside another"
            assert np.abs(wanted[k] - alone.q[k, -1]).max() < 1e-7


@pytest.mark.parametrize("method", [da.Rattle(), da.LobattoIIIAB(3), da.Gauss(2, projected=True)], ids=str)
def test_a_fast_rotor_beside_a_bead_hides_no_jump(method):
    """A rotor of 1e-4 kg m^2 at 300 rad/s moves a thousand times as far as the bead, with which it has nothing to do."""
    bead, rotor = BEAD, 1e-4

    def energy(q, p):
        return p[:2] @ p[:2] / (2 * bead) + bead * 9.81 * q[1]

    q, v = on_the_rail(100)
    system = da.Hamiltonian(energy, dim=2, holonomic=lambda q: [q[1] - RAIL(q[0])])
    both = da.Hamiltonian(lambda q, p: energy(q, p) + p[2] ** 2 / (2 * rotor), dim=3, holonomic=lambda q: [q[1] - RAIL(q[0])])
    zero, spin = np.zeros((100, 1)), np.full((100, 1), 300 * rotor)
    for h in (0.01, 0.04):
        alone = da.simulate_many(system, method, q0=q, p0=bead * v, h=h, steps=1)
        beside = da.simulate_many(both, method, q0=np.hstack([q, zero]), p0=np.hstack([bead * v, spin]), h=h, steps=1)
        same_or_refused(alone, beside, beside.q[:, -1, :2])
        assert "done" in beside.status


@pytest.mark.parametrize("method", [da.Rattle(), da.LobattoIIIAB(3), da.GaussLobattoSPARK(2)], ids=str)
def test_a_moving_carriage_hides_no_jump(method):
    """The rail is fixed to a carriage of 50 kg: at 30 m/s the bead moves on it as at rest (Galilei)."""
    masses = np.array([BEAD, BEAD, 50.0])
    system = da.Hamiltonian(
        lambda q, p: p**2 @ (1 / (2 * masses)) + BEAD * 9.81 * q[1], dim=3, holonomic=lambda q: [q[1] - RAIL(q[0] - q[2])]
    )
    q, v = (np.hstack([part, np.zeros((100, 1))]) for part in on_the_rail(100))
    along = np.array([30.0, 0.0, 30.0])
    for h in (0.01, 0.02):
        rest = da.simulate_many(system, method, q0=q, p0=masses * v, h=h, steps=1)
        moving = da.simulate_many(system, method, q0=q, p0=masses * (v + along), h=h, steps=1)
        same_or_refused(rest, moving, moving.q[:, -1] - h * along)


CARRIAGE = np.array([1.0, 1.0, 50.0])
CARRIED = da.Hamiltonian(
    lambda q, p: p**2 @ (1 / (2 * CARRIAGE)) + q[1], dim=3, holonomic=lambda q: [q[1] - np.sin(3 * (q[0] - q[2]))]
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if method in (da.LobattoIIIAB(3), da.Gauss(2, projected=True)) else pytest.mark.slow)
        for name, method in METHODS.items()
        if method.starting is None and len(method.substeps) == 1
    ],
)
def test_a_wave_on_a_fast_carriage_hides_no_jump(name):
    """At 30, 100 and 300 m/s steps are those at rest (Galilei), continued from h = 0, or refused; five starts once jumped."""
    method, h, random = METHODS[name], 0.2, np.random.default_rng(1)
    x = np.array([1.15376928, -0.89118429, -0.09759388, -1.14122237, -0.55776167, *random.uniform(-1.2, 1.2, 3)])
    speed = np.array([-2.50122989, -3.4203879, -2.00278256, 3.18570884, -1.46272848, *random.normal(0.0, 1.5, 3)])
    q, v = np.stack([x, np.sin(3 * x), 0 * x], 1), np.stack([speed, 3 * np.cos(3 * x) * speed, 0 * x], 1)
    states = [da.consistent(CARRIED, q0=a, p0=CARRIAGE * b) for a, b in zip(q, v, strict=True)]
    wanted = [continued_step(CARRIED, method, state, h) for state in states]
    for fast in (30.0, 100.0, 300.0):
        along = np.array([fast, 0.0, fast])
        runs = da.simulate_many(CARRIED, method, q0=q, p0=CARRIAGE * (v + along), h=h, steps=1)
        assert "done" in runs.status
        for k in range(len(x)):
            if runs.status[k] == "done":
                assert wanted[k] is not None, f"{q[k]}, {v[k]}: no such solution"
                found = runs.states[k, -1] - np.concatenate([h * along, CARRIAGE * along])
                np.testing.assert_allclose(found, wanted[k], rtol=0, atol=1e-9 * fast * CARRIAGE[2])


@pytest.mark.parametrize("tolerance", [1e-6, 1e-3])
@pytest.mark.parametrize("simd", [None, True])
def test_a_newton_tolerance_does_not_let_steps_jump(tolerance, simd):
    """Loosely solved steps are near the continued ones, or refused: without following, many end on another hump."""
    random, h, method = np.random.default_rng(5), 0.2, da.Rattle()
    start = on_the_wave(random.uniform(-1.2, 1.2, 24), random.normal(0.0, 1.5, 24))
    if simd:
        runs = da.simulate_many(WAVE, method, **start, h=h, steps=1, newton_tolerance=tolerance, simd=True)
        found = [runs[k] for k in range(24)]
    else:
        each = ({name: value[k] for name, value in start.items()} for k in range(24))
        found = [da.simulate(WAVE, method, **s, h=h, steps=1, newton_tolerance=tolerance, on_failure="return") for s in each]
    for k, run in enumerate(found):
        if run.status == "done":
            wanted = continued(method, da.consistent(WAVE, q0=start["q0"][k], p0=start["p0"][k]), h)
            assert wanted is not None and np.abs(run.states[-1] - wanted).max() < 100 * tolerance * (1 + np.abs(wanted).max())
    assert 0 < sum(run.status == "done" for run in found) < 24


def test_lanes_count_followed_steps_like_single_runs():
    """Steps that miss constraints are iterated further, not followed; rescued ones had another solution before."""
    random = np.random.default_rng(3)
    start = on_the_wave(random.uniform(-1.2, 1.2, 16), random.normal(0.0, 1.5, 16))
    for method in (da.Rattle(), da.LobattoIIIAB(3)):
        lanes, alone = (da.simulate_many(WAVE, method, **start, h=0.1, steps=8, simd=simd) for simd in (True, False))
        # Lanes share factors, which are of other ages than alone: a step at the limit may be in doubt with one of both.
        assert abs(np.sum(lanes.stats["followed_steps"]) - np.sum(alone.stats["followed_steps"])) <= 1
        np.testing.assert_array_equal(lanes.stats["rescued_steps"], alone.stats["rescued_steps"])
        np.testing.assert_array_equal(lanes.status, alone.status)
        np.testing.assert_allclose(lanes.states, alone.states, rtol=0, atol=1e-9)
        assert np.sum(alone.stats["followed_steps"]) >= 3


def test_a_step_of_a_whole_turn_is_the_continued_one_or_refused():
    done = 0
    for angle in np.linspace(0.0, 6.0, 13):
        state = da.consistent(PENDULUM, q0=[np.sin(angle), -np.cos(angle)], p0=[3 * np.cos(angle), 3 * np.sin(angle)])
        for h in (1.0, 2.0, 3.5):
            method = da.RadauIIA(2, projected=True)
            run = da.simulate(PENDULUM, method, start=state, h=h, steps=1, on_failure="return")
            if run.status == "done":
                wanted = continued_step(PENDULUM, method, state, h)
                assert wanted is not None and np.abs(run.states[-1] - wanted).max() < 1e-8
                done += 1
            else:
                assert "h" in run.message
    assert 0 < done < 39


def test_no_healthy_run_is_held_up():
    """Steps in doubt cost several times as much as others: they must be rare."""
    for problem, method, h in (
        (da.problems.double_pendulum(), da.LobattoIIIAB(3), 0.12),
        (da.problems.double_pendulum(), da.Rattle(), 0.02),
        (da.problems.pendulum(), da.LobattoIIIAB(3), 0.1),
        (da.problems.double_pendulum(), da.RadauIIA(2, projected=True), 0.05),
    ):
        run = da.simulate(problem, method, h=h, steps=20_000, save_every=1000)
        assert run.stats["followed_steps"] < 60 and run.stats["rescued_steps"] == 0


# -- methods that do not keep the constraints ------------------------------------------------------------------------


@pytest.mark.parametrize("method", [da.Gauss(1), da.Gauss(2), da.Gauss(3)], ids=str)
@pytest.mark.parametrize("h", [0.1, 0.01])
def test_a_run_that_explodes_ends_with_the_reason(method, h):
    """Gauss methods without projection grow without bound on constraints: the energy once reached 2e8, 'done'."""
    arguments = {"q0": [1.0, 0.0], "p0": [0.0, 0.0], "h": h, "steps": 20_000}
    run = da.simulate(PENDULUM, method, **arguments, on_failure="return")
    assert run.status == "failed" and "does not keep" in run.message and "projected=True" in run.message
    assert np.abs(run.energy).max() < (0.35 / h) ** 2 / 2 + 1  # it would be a third of a metre off after another step
    starts = np.tile([1.0, 0.0], (8, 1))
    for simd in (True, False):
        runs = da.simulate_many(PENDULUM, method, **arguments | {"q0": starts}, simd=simd, save_every=500)
        assert set(runs.status) == {"failed"} and all("does not keep" in message for message in runs.message)
    assert da.simulate(PENDULUM, da.Gauss(2, projected=True), **arguments).status == "done"


def test_a_base_for_contact_keeps_holonomic_constraints():
    walled = da.Hamiltonian(
        lambda q, p: p @ p / 2 + q[1],
        dim=2,
        holonomic=lambda q: [np.hypot(q[0], q[1]) - 1],
        unilateral=lambda q: q[0] + 0.5,
    )
    arguments = {"q0": [1.0, 0.0], "p0": [0.0, 0.0], "h": 0.05, "steps": 200}
    with pytest.raises(da.UnsupportedSystem, match=r"does not keep holonomic constraints.*projected=True"):
        da.simulate(walled, da.CVA(da.Gauss(2)), **arguments)
    run = da.simulate(walled, da.CVA(da.Gauss(2, projected=True)), **arguments)
    assert len(run.impacts) >= 2 and np.abs(run.energy).max() < 1e-3


# -- positions in which constraints lose rank ------------------------------------------------------------------------


def parallelogram():
    """A parallelogram of unit sides over the base (0, 0)-(1, 0); flat, its three constraints are dependent."""
    return da.Hamiltonian(
        lambda q, p, gravity: p @ p / 2 + gravity * (q[1] + q[3]),
        dim=4,
        holonomic=lambda q: [
            np.hypot(q[0], q[1]) - 1,
            np.hypot(q[2] - q[0], q[3] - q[1]) - 1,
            np.hypot(q[2] - 1, q[3]) - 1,
        ],
        params={"gravity": 0.0},
    )


@pytest.mark.parametrize("gravity", [0.0, 1.0])
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("h", [0.1, 0.03, 0.01, 0.003])
def test_a_parallelogram_goes_on_as_one_through_its_flat_position(h, stages, gravity):
    """At angle 0 antiparallelograms branch off, with other velocities: momentum says which way the motion goes on."""
    linkage, angle, time = parallelogram(), 1.0, 3.0
    for speed in np.random.default_rng(20).uniform(0.8, 1.6, 12):
        up = np.array([np.cos(angle), np.sin(angle)])
        q = np.concatenate([up, up + np.array([1.0, 0.0])])
        v = -speed * np.tile([-np.sin(angle), np.cos(angle)], 2)
        run = da.simulate(linkage, da.LobattoIIIAB(stages), q0=q, v0=v, h=h, steps=round(time / h), params={"gravity": gravity})
        assert np.abs(run.q[:, 2:] - run.q[:, :2] - np.array([1.0, 0.0])).max() < 1e-6
        exact = solve_ivp(lambda _, x: [x[1], -gravity * np.cos(x[0])], (0, run.t[-1]), [angle, -speed], "DOP853", run.t,
                          rtol=1e-12, atol=1e-12).y[0]  # fmt: skip
        error = np.abs(np.unwrap(np.arctan2(run.q[:, 1], run.q[:, 0])) - exact).max()
        assert error < {2: 3.0 * h**2, 3: 1.0 * h**4, 4: 1.0 * h**6}[stages] + 1e-9
        assert np.max(np.abs(run.residuals["g"])) < 1e-13


@pytest.mark.parametrize("coordinates", ["natural", "planar"])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("method", [da.Rattle(), da.LobattoIIIAB(3), da.LobattoIIIAB(4)], ids=str)
def test_the_n_four_bar_reaches_its_end(coordinates, n, method):
    """IFToMM A02 for 20 s, through the flat position some twenty times, for any h and parity of N; errors as it demands."""
    system, start = getattr(n_four_bar, coordinates)(n), getattr(n_four_bar, f"{coordinates}_start")(n)
    for h in (0.01, 0.0071, 0.003, 0.0013, 0.0007):
        run = da.simulate(system, method, **start, h=h, steps=round(20.0 / h))
        assert run.status == "done"
        points, wanted = n_four_bar.first_point(coordinates, run.q, run.v), n_four_bar.exact(n, run.t)
        errors = [np.abs(found - right).max() for found, right in zip(points, wanted, strict=True)]
        assert max(errors) < (1e-3 if method != da.Rattle() else max(1e-3, 1500 * h**2))
        assert np.abs(run.residuals["g"]).max() < 1e-13 * np.abs(run.q).max()


@pytest.mark.parametrize("h", [2e-3, 1e-3, 1e-3 * 1.00001])
@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Rattle(), da.GaussLobattoSPARK(2)], ids=str)
def test_a_step_that_ends_on_a_flat_parallelogram_is_right_or_refused(method, h):
    """Cranks of 0.2 kg at 5 pi rad/s without gravity lie flat at t = 0.1, which some steps hit to rounding errors."""

    def rods(q):
        a, b = q[:2], q[2:] - [0.3, 0.0]
        return [a @ a - 0.01, b @ b - 0.01, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - 0.09]

    flat = da.Hamiltonian(lambda q, p: p @ p / 0.4, dim=4, holonomic=rods)
    w, start = 5 * np.pi, {"q0": [0.0, -0.1, 0.3, -0.1]}
    run = da.simulate(flat, method, **start, v0=[0.1 * w, 0.0, 0.1 * w, 0.0], h=h, steps=int(0.25 / h), on_failure="return")
    angle = np.outer(run.t, [w])
    exact = 0.1 * np.hstack([np.sin(angle), -np.cos(angle)])
    tolerance = 1e-3 if method == da.Rattle() else 1e-5
    assert run.status == "done" or "lose independence" in run.message
    np.testing.assert_allclose(run.q[:, :2], exact, atol=tolerance)
    np.testing.assert_allclose(run.q[:, 2:] - [0.3, 0.0], exact, atol=tolerance)
    assert np.abs(run.energy / run.energy[0] - 1).max() < 1e-2


@pytest.mark.parametrize("beside", ["nothing", "a redundant pair", "19 others"])
@pytest.mark.parametrize("off", [1e-12, 1e-9])
def test_a_singular_end_is_refused_whatever_is_beside_it(beside, off):
    """The tenth step of a turning parallelogram ends so far off its flat position, where momenta lose their digits."""
    copies, more = (20 if beside == "19 others" else 1), 2 * (beside == "a redundant pair")

    def rods(q):
        rows = []
        for k in range(copies):
            a, b = q[4 * k : 4 * k + 2], q[4 * k + 2 : 4 * k + 4]
            rows += [a @ a - 1, (b - [2, 0]) @ (b - [2, 0]) - 1, (b - a) @ (b - a) - 4]
        return rows + ([q[4] - q[5], 2 * q[4] - 2 * q[5]] if more else [])

    def start(angle):
        up, turn = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        q, p = np.concatenate([up, up + np.array([2.0, 0.0])]), np.tile(turn, 2)
        return {
            "q0": np.concatenate([np.tile(q, copies), np.zeros(more)]),
            "p0": np.concatenate([np.tile(p, copies), np.full(more, 0.1)]),
        }

    system, method, h = da.Hamiltonian(lambda p: p @ p / 2, dim=4 * copies + more, holonomic=rods), da.LobattoIIIAB(3), 0.05
    q = da.simulate(system, method, **start(1.0), h=h, steps=1).q[1]
    turned = np.arctan2(q[1], q[0]) - 1.0  # without forces every step turns by as much
    run = da.simulate(system, method, **start(np.pi - 10 * turned + off), h=h, steps=10, on_failure="return")
    assert run.status == "failed" and "lose independence" in run.message and len(run.t) == 10
    assert np.abs(run.energy / run.energy[0] - 1).max() < 1e-12


@pytest.mark.parametrize("angle", [1e-9, 1e-7])
def test_a_start_beside_a_singular_position_is_refused_by_its_cause(angle):
    up = np.array([np.cos(angle), np.sin(angle)])
    with pytest.raises(da.InconsistentStart, match=r"constraints are nearly dependent there .*: start elsewhere"):
        da.simulate(parallelogram(), da.Rattle(), q0=[*up, 1 + up[0], up[1]], p0=np.zeros(4), h=0.01, steps=1)


def test_rows_that_always_nearly_depend_on_each_other_are_not_why_a_step_fails():
    """A second row at 0.6 degrees to the first fixes one more coordinate and changes nothing: long chains have such rows."""
    both = da.Hamiltonian(
        lambda q, p: p @ p / 2 + q[1],
        dim=3,
        holonomic=lambda q: [q[1] - np.sin(3 * q[0]), q[1] - np.sin(3 * q[0]) + 1e-2 * q[2]],
    )
    start, messages = on_the_wave(0.795, -1.954), []
    for system, more in ((WAVE, []), (both, [0.0])):
        own = {name: np.concatenate([values, more]) for name, values in start.items()}
        run = da.simulate(system, da.Rattle(), **own, h=0.05, steps=8, on_failure="return")
        assert run.status == "failed"
        messages.append(run.message)
    assert "reduce h" in messages[0] and messages[0] == messages[1]


def test_followed_steps_of_many_bodies_are_not_refused_for_one_impulse():
    """Of hundreds of impulses one is always about to turn back, or so small that it is rounding errors: no reason to refuse.

    A binary tree of 63 rods of 0.2 kg and 0.1 m falls, in steps that are long for it; the 29th is in doubt.
    """
    count, h, m, length = 63, 6e-3, 0.2, 0.1
    angles, above = np.random.default_rng(1).uniform(-0.5, 0.5, count), (np.arange(count) - 1) // 2
    half, centres = length / 2 * np.stack([np.sin(angles), -np.cos(angles)], axis=1), np.zeros((count, 2))
    for k in range(count):
        centres[k] = half[k] + (centres[above[k]] + half[above[k]] if k else 0.0)

    def hinges(q):
        r, theta = q.reshape(-1, 3)[:, :2], q.reshape(-1, 3)[:, 2]
        to_end = length / 2 * np.stack([np.sin(theta), -np.cos(theta)], axis=1)
        return np.concatenate([(r - to_end)[0], ((r - to_end)[1:] - (r + to_end)[above[1:]]).ravel()])

    def energy(q, p):
        masses = np.array([m, m, m * length**2 / 12])
        return np.sum(p.reshape(-1, 3) ** 2 / (2 * masses)) + m * 9.81 * np.sum(q[1::3])

    tree = da.Hamiltonian(energy, dim=3 * count, holonomic=hinges)
    q0 = np.column_stack([centres, angles]).ravel()
    run = da.simulate(tree, da.Rattle(), q0=q0, p0=np.zeros(3 * count), h=h, steps=31)
    assert run.stats["followed_steps"] > 0
    state = da.consistent(tree, q0=run.q[29], p0=run.p[29])
    wanted = continued_step(tree, da.Rattle(), state, h)
    assert wanted is not None and np.abs(run.states[30] - wanted).max() < 1e-9
