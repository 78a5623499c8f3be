"""Steps that follow a density: reversible to round-off, of the method's own order, and without drift."""

from __future__ import annotations

from functools import cache

import encounters
import numpy as np
import pytest
from encounters import ellipse
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert._fits import slope


@cache
def kepler():
    return encounters.kepler().system


def pericentre(e):
    return {"q0": [1 - e, 0.0], "p0": [0.0, np.sqrt((1 + e) / (1 - e))]}


def by_distance(q):
    return np.linalg.norm(q) ** -1.5


G0, LENGTH, M1, M2 = 9.81, 0.4, 0.02, 0.3


@cache
def rods():
    """A double pendulum in space coordinates with a light elbow, in kg, m and s."""
    return da.Hamiltonian(
        lambda q, p: p[:2] @ p[:2] / (2 * M1) + p[2:] @ p[2:] / (2 * M2) + G0 * (M1 * q[1] + M2 * q[3]),
        dim=4,
        holonomic=lambda q: [q[:2] @ q[:2] - LENGTH**2, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - LENGTH**2],
    )


def hanging(a, b):
    elbow = LENGTH * np.array([np.sin(a), -np.cos(a)])
    return np.concatenate([elbow, elbow + LENGTH * np.array([np.sin(b), -np.cos(b)])])


def in_angles(t1, a, b):
    """The same motion from rest in angles, by SciPy, from the textbook's equations of motion."""

    def rhs(t, x):
        a, b, u, w = x
        M = np.array([[(M1 + M2), M2 * np.cos(a - b)], [M2 * np.cos(a - b), M2]]) * LENGTH
        f = [
            -M2 * LENGTH * w**2 * np.sin(a - b) - (M1 + M2) * G0 * np.sin(a),
            M2 * LENGTH * u**2 * np.sin(a - b) - M2 * G0 * np.sin(b),
        ]
        return [u, w, *np.linalg.solve(M, f)]

    a, b, u, w = solve_ivp(rhs, (0, t1), [a, b, 0, 0], method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    v1 = LENGTH * u * np.array([np.cos(a), np.sin(a)])
    return hanging(a, b), np.concatenate([M1 * v1, M2 * (v1 + LENGTH * w * np.array([np.cos(b), np.sin(b)]))])


def turning(q, v):
    """How fast both rods turn, and no less than a hanging one would swing."""
    return np.sqrt((v[:2] @ v[:2] + (v[2:] - v[:2]) @ (v[2:] - v[:2])) / LENGTH**2 + G0 / LENGTH)


BASES = [da.LobattoIIIAB(2), da.LobattoIIIAB(3), da.Gauss(2), da.compose(da.Rattle(), 4)]


@pytest.mark.parametrize("base", BASES, ids=str)
def test_the_order_is_that_of_the_method(base):
    e, sizes, errors = 0.6, np.array([0.16, 0.113, 0.08, 0.0566]) * (1 if base.order_unconstrained["q"] > 2 else 0.25), []
    for h in sizes:
        method = da.ReversibleSteps(base, density=by_distance)
        run = da.simulate(kepler(), method, **pericentre(e), h=h, steps=round(8 / h))
        errors.append(np.abs(run.q - ellipse(run.t, e)).max())
    assert slope(sizes, errors)[0] == pytest.approx(base.order_unconstrained["q"], abs=0.2)


def test_times_are_those_of_the_motion_and_steps_follow_the_density():
    e, ratios = 0.9, []
    for h in (0.1, 0.05):
        run = da.simulate(kepler(), da.ReversibleSteps(da.Gauss(3), by_distance), **pericentre(e), h=h, steps=round(30 / h))
        assert np.abs(run.q - ellipse(run.t, e)).max() < 100 * h**6
        ratios.append(np.abs(run.step_sizes * np.linalg.norm(run.q, axis=1) ** -1.5 / h - 1).max())
        middle = (run.step_sizes[1:] + run.step_sizes[:-1]) / 2
        assert np.abs(np.diff(run.t) / middle - 1).max() < 3 * h
    assert ratios[0] < 0.1 and ratios[1] == pytest.approx(ratios[0] / 4, rel=0.2)  # rho - Q is of order h^2
    assert np.diff(run.t).max() > 50 * np.diff(run.t).min()


@pytest.mark.parametrize("base", [da.LobattoIIIAB(3), da.GaussLobattoSPARK(2), da.compose(da.Rattle(), 4)], ids=str)
def test_a_constrained_motion_leads_back_to_its_start(base):
    start = {"q0": hanging(2.0, 2.8), "p0": np.zeros(4)}
    there = da.simulate(rods(), da.ReversibleSteps(base, turning), **start, h=0.05, steps=400)
    assert max(np.abs(there.residuals["g"]).max() / LENGTH**2, np.abs(there.residuals["g_dot"]).max()) < 1e-13
    for sign in (1, -1):  # by reversed velocities, and by reversed time
        method = da.ReversibleSteps(base, turning, first=sign * there.step_sizes[-1])
        began = {"q0": there.q[-1], "p0": -sign * there.p[-1]} if sign > 0 else {"q0": there.q[-1], "p0": there.p[-1]}
        back = da.simulate(rods(), method, **began, t0=there.t[-1], h=sign * 0.05, steps=400)
        if len(base.substeps) == 1:  # compositions have no dense output
            assert np.abs(back.at(back.t[5]).q - back.q[5]).max() < 1e-12
        assert np.abs(back.q[-1] - there.q[0]).max() < 1e-9
        assert abs(sign * (back.t[-1] - back.t[0]) - there.t[-1]) < 1e-9
        assert abs(back.step_sizes[-1] / there.step_sizes[0] * sign - 1) < 1e-9


@pytest.mark.parametrize("density", [turning, None], ids=["of velocities", "its own"])
def test_a_constrained_motion_has_the_right_order_in_q_and_p(density):
    sizes, errors = np.array([0.04, 0.028, 0.02, 0.014]), []
    for h in sizes:
        method = da.ReversibleSteps(da.LobattoIIIAB(3), density, least=0.0 if density else 5.0)
        run = da.simulate(rods(), method, q0=hanging(1.0, 1.4), p0=np.zeros(4), h=h, steps=round(8 / h))
        q, p = in_angles(run.t[-1], 1.0, 1.4)
        errors.append([np.linalg.norm(run.q[-1] - q), np.linalg.norm(run.p[-1] - p)])
    for component in np.array(errors).T:
        assert slope(sizes, component)[0] == pytest.approx(4, abs=0.25)


def test_energy_does_not_drift_on_an_ellipse_of_eccentricity_99():
    method = da.ReversibleSteps(da.LobattoIIIAB(4), by_distance)
    run = da.simulate(kepler(), method, **pericentre(0.99), h=0.12, steps=75_000, save_every=75)
    periods = run.t[-1] / (2 * np.pi)
    error = np.abs(run.energy + 0.5)
    assert periods > 500
    early, late = error[run.t < run.t[-1] / 4].max(), error[run.t > 3 / 4 * run.t[-1]].max()
    assert early < 1e-5 and late < 1.2 * early


def test_stores_and_dense_output_know_the_times(tmp_path):
    method, start, e = da.ReversibleSteps(da.LobattoIIIAB(4), by_distance), pericentre(0.9), 0.9
    run = da.simulate(kepler(), method, **start, h=0.1, steps=600)
    t = np.linspace(0, run.t[-1], 97)
    assert np.abs(run.at(t).q - ellipse(t, e)).max() < 1e-3
    assert np.abs(run.at(run.t[200:210]).q - run.q[200:210]).max() < 1e-12
    loaded = da.load(run.save(tmp_path / "run.npz"))
    assert np.array_equal(loaded.t, run.t) and np.array_equal(loaded.step_sizes, run.step_sizes)
    whole = da.simulate(kepler(), method, **start, h=0.1, steps=600, save_every=3, save_to=tmp_path / "whole.zarr")
    half = da.simulate(kepler(), method, **start, h=0.1, steps=300, save_every=3, save_to=tmp_path / "half.zarr")
    assert np.array_equal(half.t, whole.t[:101])
    longer = da.resume(tmp_path / "half.zarr", kepler(), method, steps=600)
    assert np.array_equal(longer.t, whole.t) and np.array_equal(longer.states[:], whole.states[:])
    assert np.allclose(whole.t, run.t[::3], rtol=1e-12) and np.array_equal(whole.step_sizes, longer.step_sizes)
    parts = list(whole.chunks())
    assert np.array_equal(np.concatenate([part.t for part in parts]), whole.t)
    other = da.ReversibleSteps(da.LobattoIIIAB(4), density=lambda q: np.linalg.norm(q) ** -1.4)
    with pytest.raises(da.InputError):
        da.resume(tmp_path / "half.zarr", kepler(), other, steps=900)


@pytest.mark.parametrize("simd", [False, True])
def test_members_of_an_ensemble_have_times_of_their_own(simd):
    method, e = da.ReversibleSteps(da.LobattoIIIAB(4), by_distance), np.array([0.3, 0.6, 0.9, 0.95, 0.5])
    starts = [pericentre(x) for x in e]
    q0, p0 = (np.array([start[name] for start in starts]) for name in ("q0", "p0"))
    runs = da.simulate_many(kepler(), method, q0=q0, p0=p0, h=0.1, steps=501, save_every=5, simd=simd)
    assert runs.t.shape == (5, 101) and runs.q.shape == (5, 101, 2) and set(runs.status) == {"done"}
    for member, run in enumerate(runs):
        alone = da.simulate(kepler(), method, **starts[member], h=0.1, steps=501, save_every=5)
        assert np.abs(run.q - ellipse(run.t, e[member])).max() < 1e-3
        assert len(run.t) == 102 and np.abs(run.t - alone.t).max() < (1e-9 if simd else 1e-300)
        assert np.abs(run.q - alone.q).max() < (1e-9 if simd else 1e-300)
        assert run.step_sizes == pytest.approx(alone.step_sizes, rel=1e-9)
        assert np.array_equal(runs.t[member], run.t[:-1]) and np.array_equal(runs.energy[member], run.energy[:-1])
    with pytest.raises(da.InputError, match="times of their own"):
        runs.to_dataframe()
    steep = da.ReversibleSteps(da.Gauss(2), lambda q: np.exp(-5 * q[0]))
    broken = da.simulate_many(kepler(), steep, q0=[[1.0, 0.0]] * 2, p0=[[1.3, 0.5], [0.0, 1.0]], h=1.0, steps=100, simd=simd)
    assert broken.status[0] == "failed" and "density would fall below zero" in broken.message[0]


def test_what_needs_constant_steps_says_so():
    method = da.ReversibleSteps(da.LobattoIIIAB(3), by_distance)
    given = {**pericentre(0.5), "h": 0.1}
    many = {"q0": [given["q0"]], "p0": [given["p0"]], "h": 0.1, "steps": 5}
    refused = [
        lambda: da.simulate_many(kepler(), method, reduce="energy", **many),
        lambda: da.lyapunov(kepler(), method, steps=10, **given),
        lambda: da.gradient(lambda q: q[-1, 0], kepler(), method, wrt="q0", steps=10, **given),
        lambda: da.verify.order(kepler(), method, t1=1.0, steps=[10, 20], reference={"q": [0, 0]}, **pericentre(0.5)),
        lambda: da.verify.step(kepler(), method, **given),
        lambda: da.step_function(kepler(), method),
        lambda: da.compose(method, 4),
        lambda: da.CVA(method),
    ]
    for call in refused:
        with pytest.raises(da.DalembertError, match="steps"):
            call()


def test_what_cannot_vary_its_steps_says_so():
    with pytest.raises(da.InputError, match="symmetric methods alone"):
        da.ReversibleSteps(da.RadauIIA(2))
    with pytest.raises(da.InputError, match="with constant steps"):
        da.ReversibleSteps(da.ReversibleSteps(da.Gauss(2)))
    with pytest.raises(da.InputError, match="takes a method"):
        da.ReversibleSteps(da.Gauss)
    with pytest.raises(da.InputError, match="least is a step density"):
        da.ReversibleSteps(da.Gauss(2), least=-1.0)
    for name, bad in {
        "least": ("a", None, np.ones(2), np.inf),
        "first": ("a", np.ones(2), np.nan, 0),
        "density": (np.ones(3), 2),
    }.items():
        for value in bad:
            with pytest.raises(da.InputError, match=name):
                da.ReversibleSteps(da.Gauss(2), **{name: value})
    for h in (0.1, -0.1):
        back = da.ReversibleSteps(da.Gauss(2), by_distance, first=-h)
        start = pericentre(0.5)
        with pytest.raises(da.InputError, match="different signs"):
            da.simulate(kepler(), back, **start, h=h, steps=1)
        with pytest.raises(da.InputError, match="different signs"):
            da.simulate_many(kepler(), back, q0=[start["q0"]], p0=[start["p0"]], h=h, steps=1)
    with pytest.raises(da.ModelError, match="density"):
        da.simulate(kepler(), da.ReversibleSteps(da.Gauss(2), lambda x: x), **pericentre(0.5), h=0.1, steps=1)
    pendulum = da.problems.pendulum()
    with pytest.raises(da.InputError, match="must be positive: give least="):
        da.simulate(pendulum, da.ReversibleSteps(da.Rattle()), h=0.1, steps=10)
    with pytest.raises(da.StepFailed, match="density would fall below zero"):
        steep = da.ReversibleSteps(da.Gauss(2), lambda q: np.exp(-5 * q[0]))
        da.simulate(kepler(), steep, q0=[1.0, 0.0], p0=[1.3, 0.5], h=1.0, steps=100)


@cache
def bead():
    """On a circle, let go from the lowest point: it stops below the top, where the density of its own is zero."""
    return da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2, holonomic=lambda q: [q @ q - 1])


@pytest.mark.parametrize("h", [0.03, -0.03])
@pytest.mark.parametrize("base", [da.LobattoIIIAB(3), da.compose(da.Rattle(), 4)], ids=str)
def test_time_never_turns_round(base, h):
    given = {"q0": [0, -1], "p0": [1, 0], "h": h, "steps": 180}
    run = da.simulate(bead(), da.ReversibleSteps(base), **given, on_failure="return", progress=False)
    assert run.status == "failed" and "density would fall below zero" in run.message
    assert 10 < len(run.t) < 180 and np.all(np.diff(run.t) * h > 0) and np.all(np.isfinite(run.states))
    until = len(run.t) - 1
    short = da.simulate(bead(), da.ReversibleSteps(base), **{**given, "steps": until})
    assert np.array_equal(short.t, run.t) and np.all(short.step_sizes[:-1] * h > 0)
    assert not short.step_sizes[-1] * h <= 0  # no size of the other sign after the last step either


@pytest.mark.parametrize("simd", [False, True])
def test_time_never_turns_round_in_an_ensemble(simd):
    members = {"q0": [[0, -1]] * 3, "p0": [[1, 0], [3, 0], [1.1, 0]], "h": 0.03, "steps": 180, "simd": simd}
    runs = da.simulate_many(bead(), da.ReversibleSteps(da.LobattoIIIAB(3)), **members)
    assert runs.status == ("failed", "done", "failed")  # the second one goes over the top
    for run, message in zip(runs, runs.message, strict=True):
        assert np.all(np.diff(run.t) > 0) and (run.status == "done" or "density would fall below zero" in message)


@cache
def falling():
    """Onto the attracting point, at t = pi / 2^1.5: the density grows without bound."""
    return da.Lagrangian(lambda q, v: v @ v / 2 + 1 / np.sqrt(q @ q), dim=2), da.ReversibleSteps(da.LobattoIIIAB(2))


@pytest.mark.parametrize("until", [{"t1": 2.0}, {"steps": 20_000}], ids=str)
def test_a_collision_is_no_end(until):
    run = da.simulate(*falling(), q0=[1.0, 0.0], v0=[0.0, 0.0], h=0.01, **until, on_failure="return", progress=False)
    assert run.status == "failed" and "without bound, as at a collision" in run.message
    assert run.t[-1] == pytest.approx(np.pi / 8**0.5, abs=1e-4)


def test_a_collision_is_no_end_in_an_ensemble():
    starts = {"q0": [[1.0, 0.0]], "v0": [[0.0, 0.0]]}
    runs = da.simulate_many(*falling(), **starts, h=0.01, steps=20_000, simd=False)
    assert runs.status == ("failed",) and "without bound, as at a collision" in runs.message[0]


@pytest.mark.parametrize("name", ["kepler", "pendulum_on_a_spring", "around_the_earth", "double_pendulum"])
def test_close_encounters_need_few_steps_and_lead_back(name):
    problem = getattr(encounters, name)()
    run = da.simulate(problem.system, problem.method, **problem.start, h=problem.h, steps=600)
    error, periods = np.abs(run.q - problem.reference(run.t)).max(), run.t[-1] / problem.period
    even = da.simulate(
        problem.system, da.LobattoIIIAB(4), **problem.start, h=run.t[-1] / 6000, steps=6000, on_failure="return", progress=False
    )
    worst = np.inf if even.status == "failed" else np.abs(even.q - problem.reference(even.t)).max()
    assert periods > 3 and error < 2e-3 and worst > error  # ten times as many constant steps are not enough
    p = run.p[-1] * [-1, 1] if name == "around_the_earth" else -run.p[-1]
    q = run.q[-1] * [1, -1] if name == "around_the_earth" else run.q[-1]
    method = da.ReversibleSteps(da.LobattoIIIAB(4), problem.density, first=run.step_sizes[-1])
    back = da.simulate(problem.system, method, q0=q, p0=p, h=problem.h, steps=600)
    # step sizes take up the rounding errors of the density's rate, which is large in encounters
    assert np.abs(back.q[-1] - run.q[0]).max() < 1e-12 and abs(back.t[-1] - run.t[-1]) < 1e-11 * run.t[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kepler", "pendulum_on_a_spring", "around_the_earth", "double_pendulum"])
def test_energies_do_not_drift_over_many_periods(name):
    problem, periods = getattr(encounters, name)(), 1_000_000 if name == "kepler" else 100_000
    short = da.simulate(problem.system, problem.method, **problem.start, h=problem.h, steps=2000)
    steps = int(1.06 * periods * 2000 / (short.t[-1] / problem.period))
    run = da.simulate(
        problem.system, problem.method, **problem.start, h=problem.h, steps=steps, save_every=steps // 200_000, progress=False
    )
    assert run.t[-1] > periods * problem.period
    error = np.abs(run.energy - run.energy[0])
    parts = np.array_split(error, 8)
    assert parts[-1].max() < 1.05 * parts[0].max()
