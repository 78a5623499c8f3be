"""Runs back in time, h < 0: symmetric methods return to their start, others follow the motion backwards at their order."""

from __future__ import annotations

import numpy as np
import pytest
from four_bar import SI, exact_configurations, linkage, start

import dalembert as da
from dalembert.cli import main
from dalembert.errors import InputError

SYMMETRIC = (
    da.Rattle(),
    da.LobattoIIIAB(3),
    da.GaussLobattoSPARK(2),
    da.Variational("midpoint"),
    da.LobattoGalerkin(3),
    da.compose(da.Rattle(), "suzuki-4"),
)
FREE = SI | {"torque": 0.0, "c": 0.0}


def back_from(run: da.Trajectory, system, method, **options):
    """The run from the last state of another, back to where it began."""
    return da.simulate(
        system, method, q0=run.q[-1], p0=run.p[-1], t0=float(run.t[-1]), h=-run.h, steps=len(run.t) - 1, **options
    )


@pytest.mark.parametrize("method", SYMMETRIC, ids=str)
def test_a_symmetric_method_returns_to_its_start(method):
    """A four-bar with a motor and friction in SI units, over half a turn of its crank."""
    system = linkage(FREE if "Galerkin" in str(method) or "Variational" in str(method) else SI)
    there = da.simulate(system, method, **start(rate=8.0), h=2e-3, steps=150)
    back = back_from(there, system, method)
    assert there.q[-1, 2] - there.q[0, 2] > 1.5
    np.testing.assert_allclose(back.t, there.t[::-1], atol=1e-15)
    np.testing.assert_allclose(back.q, there.q[::-1], atol=1e-11)
    np.testing.assert_allclose(back.p, there.p[::-1], atol=1e-11 * np.abs(there.p).max())
    assert np.abs(back.residuals["g"]).max() < 1e-14


@pytest.mark.parametrize(
    ("method", "order", "steps"),
    [(da.SymplecticEuler(), 1, [400, 800, 1600]), 
     (da.RadauIIA(2, projected=True), 3, [40, 80, 160]), (da.UnderlyingODE(da.tableaux.radau_iia(2)), 3, [40, 80, 160])],
    ids=str,
)  # fmt: skip
def test_other_methods_follow_the_motion_backwards(method, order, steps):
    system, t1 = linkage(FREE), -0.1
    right = {"q": exact_configurations(np.linspace(0.0, t1, 3), FREE, rate=8.0)[-1]}
    study = da.verify.order(system, method, reference=right, t1=t1, steps=steps, **start(FREE, rate=8.0))
    assert abs(study.slopes["q"] - order) < 0.2


def driven() -> da.Hamiltonian:
    """x'' = -x + cos 2t, whose solution is x = cos t + 2 sin t - cos(2t)/3 from these starts."""
    return da.Hamiltonian(lambda t, q, p: (p @ p + q @ q) / 2 - q[0] * np.cos(2 * t), dim=1)


def exact_x(t):
    return np.cos(t) + 2 * np.sin(t) - np.cos(2 * t) / 3


@pytest.mark.parametrize("method", [da.Gauss(4), da.LobattoIIIAB(5), da.RadauIIA(4)], ids=str)
def test_time_dependent_systems_and_dense_output(method):
    system = driven()
    run = da.simulate(system, method, q0=[2 / 3], p0=[2.0], h=-0.05, t1=-5.0)
    assert run.t[-1] == -5.0 and len(run.t) == 101
    np.testing.assert_allclose(run.q[:, 0], exact_x(run.t), atol=1e-10)
    if isinstance(method, da.LobattoIIIAB):
        times = np.linspace(-4.99, -0.01, 40)
        np.testing.assert_allclose(run.at(times).q[:, 0], exact_x(times), atol=1e-7)
        with pytest.raises(InputError, match="outside of the run"):
            run.at(0.1)


def test_a_moving_constraint_is_followed_backwards():
    """A bead on a line that turns at the rate w: r'' = w^2 r, so r = cosh wt + sinh(wt)/w at unit start and rate."""
    w = 1.3
    bead = da.Hamiltonian(lambda q, p: p @ p / 2, dim=2, holonomic=lambda t, q: [q[1] * np.cos(w * t) - q[0] * np.sin(w * t)])
    run = da.simulate(bead, da.GaussLobattoSPARK(3), q0=[1.0, 0.0], p0=[1.0, w], h=-0.05, steps=20)
    r = np.cosh(w * run.t) + np.sinh(w * run.t) / w
    np.testing.assert_allclose(run.q, r[:, None] * np.stack([np.cos(w * run.t), np.sin(w * run.t)], axis=1), atol=1e-9)


@pytest.mark.parametrize("simd", [True, False])
def test_members_of_an_ensemble_go_back_in_time(simd):
    cranks = np.linspace(0.5, 2.5, 9)
    starts = [start(crank=crank, rate=5.0) for crank in cranks]
    given = {name: np.array([one[name] for one in starts]) for name in ("q0", "p0")}
    runs = da.simulate_many(linkage(), da.LobattoIIIAB(3), **given, h=-2e-3, steps=40, simd=simd)
    for member, crank in enumerate(cranks):
        wanted = exact_configurations(runs.t, crank=crank, rate=5.0)
        np.testing.assert_allclose(runs.q[member], wanted, atol=1e-7)


def test_a_stored_run_goes_on_backwards(tmp_path):
    system, given = linkage(), {**start(rate=8.0), "h": -2e-3}
    whole = da.simulate(system, da.LobattoIIIAB(3), **given, steps=100, save_to=tmp_path / "whole.zarr")
    da.simulate(system, da.LobattoIIIAB(3), **given, steps=40, save_to=tmp_path / "half.zarr")
    further = da.resume(tmp_path / "half.zarr", system, da.LobattoIIIAB(3), steps=100)
    assert np.array_equal(np.asarray(whole.q[:]), np.asarray(further.q[:]))
    assert further.t[-1] == pytest.approx(-0.2)


def test_films_and_figures_of_a_run_back_in_time(tmp_path):
    problem = da.problems.double_pendulum()
    run = da.simulate(problem, da.LobattoIIIAB(3), h=-0.05, steps=200)
    film = run.animate(fps=10)
    assert film.scene.t[0] == 0.0 and np.all(np.diff(film.scene.t) < 0) and film.scene.t[-1] >= run.t[-1]
    for name in ("configurations", "portrait", "multipliers"):
        getattr(da.plot, name)(run, path=tmp_path / f"{name}.png")


def test_the_command_takes_a_negative_h(capsys):
    assert main(["run", "double_pendulum", "--method", "Rattle", "--h", "-0.01", "--steps", "20", "--json"]) == 0
    assert '"t1": -0.2' in capsys.readouterr().out


def test_what_has_no_past_is_refused_by_name():
    ball = da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[0], dim=1, unilateral=lambda q: q, restitution=0.8)
    for run in (da.simulate, da.simulate_many):
        with pytest.raises(InputError, match=r"run forwards.*take h > 0"):
            run(ball, da.CVA(), q0=[1.0], v0=[0.0], h=-0.01, steps=10)
    with pytest.raises(InputError, match="crossed forwards in time: take h > 0"):
        da.poincare(driven(), da.Gauss(2), section=lambda q: q[0], direction=1, q0=[1.0], p0=[0.0], h=-0.1, steps=10)
    for h, t1, where in ((0.1, -1.0, "after t0 = 0, or h < 0"), (-0.1, 1.0, "before t0 = 0, or h > 0")):
        with pytest.raises(InputError, match=where):
            da.simulate(driven(), da.Gauss(2), q0=[1.0], p0=[0.0], h=h, t1=t1)
    for h in (0.0, np.nan, np.inf, "a"):
        with pytest.raises(InputError, match="h must be a positive number, or a negative one to go back in time"):
            da.simulate(driven(), da.Gauss(2), q0=[1.0], p0=[0.0], h=h, steps=1)
