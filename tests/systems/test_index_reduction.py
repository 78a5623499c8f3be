"""Index reduction against equations derived by hand, integrated against exact solutions, and the drift off the constraints."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from numpy import cos, sin

import dalembert as da

SOLVERS = ("IDA", "Radau", "DOP853")


def numbers(function: Any, t: float, xi: Any, theta: Any) -> np.ndarray:
    value = np.asarray(function(t, xi, theta), dtype=float)
    return value[:, 0] if value.shape[1] == 1 else value


# -- the equations -------------------------------------------------------------------------------------------------------

M, J, I, R = 1.3, 0.7, 0.6, 0.4  # noqa: E741
DISK = {"m": M, "J": J, "I": I, "R": R}


def disk_by_hand(xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(2.11), with the row of theta that is missing in print, and (2.12), without assuming consistency; lambda = -psi."""
    phi, v_x, v_y, v_phi, v_theta, l1, l2 = xi[[2, 4, 5, 6, 7, 8, 9]]
    push = -R * (cos(phi) * l1 + sin(phi) * l2)  # I v_theta', which is zero on consistent states only
    a_theta = push / I
    rows = [
        l1 / M - R * cos(phi) * a_theta + R * v_phi * v_theta * sin(phi),
        l2 / M - R * sin(phi) * a_theta - R * v_phi * v_theta * cos(phi),
    ]
    f_1 = np.array([v_x, v_y, v_phi, v_theta, l1, l2, 0, push, *rows])
    # d/dt of the two rows: K (l1', l2') = -(the rest)
    e, n, k = np.array([cos(phi), sin(phi)]), np.array([-sin(phi), cos(phi)]), R**2 / I
    lam = np.array([l1, l2])
    K = np.eye(2) / M + k * np.outer(e, e)
    rest = k * v_phi * (n * (e @ lam) + e * (n @ lam)) - R * v_phi * (a_theta * n - v_theta * v_phi * e)
    return f_1, np.array([v_x, v_y, v_phi, v_theta, l1 / M, l2 / M, 0, a_theta, *np.linalg.solve(K, -rest)])


def test_rolling_disk_gives_the_equations_derived_by_hand() -> None:
    reduced = da.reduce_index(da.problems.vertical_disk(**DISK))
    theta = reduced.form.parameters.vector()
    sign = np.array([1.0] * 8 + [-1.0] * 2)  # lambda = -psi
    for seed in range(3):
        xi = np.random.default_rng(seed).standard_normal(10)
        f_1, f_2 = disk_by_hand(sign * xi)
        assert np.max(np.abs(numbers(reduced.mass_matrix, 0.0, xi, theta) - np.diag([1, 1, 1, 1, M, M, J, I, 0, 0]))) == 0
        assert np.max(np.abs(numbers(reduced.index_one, 0.0, xi, theta) - f_1)) < 1e-13
        assert np.max(np.abs(numbers(reduced.ode, 0.0, xi, theta) - sign * f_2)) < 1e-12


def test_rolling_disk_gives_the_printed_ode_on_consistent_states() -> None:
    """(2.12) as printed, whose row of theta is zero, holds where v_x = R cos(phi) v_theta, lambda = m v_phi (-v_y, v_x)."""
    reduced = da.reduce_index(da.problems.vertical_disk(**DISK))
    phi, v_phi, v_theta = 0.7, 1.3, -0.8
    v_x, v_y = R * cos(phi) * v_theta, R * sin(phi) * v_theta
    l1, l2 = -M * v_phi * v_y, M * v_phi * v_x
    xi = np.array([0.3, -0.2, phi, 0.5, v_x, v_y, v_phi, v_theta, -l1, -l2])
    turn = -M * R * v_phi**2 * v_theta
    printed = [v_x, v_y, v_phi, v_theta, l1 / M, l2 / M, 0, 0, -turn * cos(phi), -turn * sin(phi)]
    theta = reduced.form.parameters.vector()
    assert np.max(np.abs(numbers(reduced.ode, 0.0, xi, theta) - printed)) < 1e-15
    assert np.max(np.abs(numbers(reduced.index_one, 0.0, xi, theta)[8:])) < 1e-15
    assert np.max(np.abs(numbers(reduced.state_ode, 0.0, xi[:8], theta) - printed[:8])) < 1e-15


def test_sleigh_gives_the_mass_matrix_and_the_forces_of_the_thesis() -> None:
    """Section 4.2.1, M(q) of (4.2) with its rates on the right; the last row is -(A v)' with v' eliminated."""
    m, a, inertia, g = 1.3, 0.7, 0.6, 0.4
    reduced = da.reduce_index(da.problems.chaplygin_sleigh(m, a, inertia, g))
    angle, v_x, v_y, w, psi = 0.7, 0.5, 0.4, -0.9, 0.8
    xi = np.array([0.3, -0.2, angle, v_x, v_y, w, psi])
    mass = np.array(
        [
            [m, 0, -m * a * sin(angle)],
            [0, m, m * a * cos(angle)],
            [-m * a * sin(angle), m * a * cos(angle), inertia + m * a**2],
        ]
    )
    lam, A = -psi, np.array([-sin(angle), cos(angle), 0])
    force = np.array(
        [
            m * a * w**2 * cos(angle) - lam * sin(angle),
            -m * g + m * a * w**2 * sin(angle) + lam * cos(angle),
            -m * g * a * cos(angle),
        ]
    )
    row = A @ np.linalg.solve(mass, force) - (v_x * w * cos(angle) + v_y * w * sin(angle))
    theta = reduced.form.parameters.vector()
    M_1 = numbers(reduced.mass_matrix, 0.0, xi, theta)
    assert np.max(np.abs(M_1[3:6, 3:6] - mass)) < 1e-15 and not np.any(M_1[6])
    assert np.max(np.abs(numbers(reduced.index_one, 0.0, xi, theta) - [v_x, v_y, w, *force, row])) < 1e-13


def test_pendulum_of_index_three_gives_its_textbook_equations() -> None:
    """H = p.p / (2 m) + m g q_2, g = (q.q - l^2) / 2: g'' = p.p / m^2 - g q_2 - lam l^2 / m off the constraint too."""
    m, g = 1.3, 0.9
    pendulum = da.Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + m * g * q[1],
        dim=2,
        holonomic=lambda q: [(q @ q - 1) / 2],
        params={"m": m, "g": g},
    )
    reduced = da.reduce_index(pendulum)
    q, p, lam = np.array([0.7, -0.6]), np.array([0.4, 0.9]), 1.1
    force = np.array([0, -m * g]) - lam * q
    row = p @ p / m**2 + q @ force / m
    # d/dt row = 0 with q' = p/m, p' = force: 3 p.force / m^2 + q.(-lam p / m - lam' q) / m
    lam_rate = (3 * p @ force / m - lam * q @ p / m) / (q @ q)
    xi, theta = np.array([*q, *p, lam]), reduced.form.parameters.vector()
    assert np.max(np.abs(numbers(reduced.index_one, 0.0, xi, theta) - [*(p / m), *force, row])) < 1e-14
    assert np.max(np.abs(numbers(reduced.ode, 0.0, xi, theta) - [*(p / m), *force, lam_rate])) < 1e-14


# -- their integration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_solutions_are_right_within_the_tolerance(solver: Any) -> None:
    """Nonholonomic, mixed and holonomic constraints, an ODAE with a nonlinear multiplier, a DAE of index 2."""
    skate, disk = da.problems.skate(), da.problems.vertical_disk()
    growth, odae = da.problems.index_two_growth_in_parts(), da.problems.nonlinear_multiplier()
    pendulum = da.problems.pendulum()
    for problem in (skate, disk, pendulum, growth, odae):
        run = da.reduce_index(problem).simulate(solver, t1=1.0, rtol=1e-9, atol=1e-11)
        assert run.t[-1] == 1.0 and run.status == "done" and solver in run.method
        for name, value in problem.exact(1.0).items():
            assert np.max(np.abs(getattr(run, name)[-1] - value)) < 1e-5, (problem.name, name)
        integrated = np.column_stack([run.stage_lam, run.stage_psi])
        assert np.max(np.abs(integrated - np.column_stack([run.lam, run.psi]))) < 1e-5


def test_the_mass_matrix_may_depend_on_the_state() -> None:
    """The sleigh by all solvers, with and without its multiplier, against a method of order six."""
    problem = da.problems.chaplygin_sleigh(speed=0.4, turning=0.6)
    reference = da.simulate(problem, da.SRK("gauss", 3), h=0.01, steps=300)
    reduced = da.reduce_index(problem)
    runs = [reduced.simulate(s, t1=3.0, rtol=1e-9, atol=1e-11) for s in SOLVERS]
    runs += [reduced.simulate(s, t1=3.0, rtol=1e-9, atol=1e-11, multipliers="eliminated") for s in SOLVERS[1:]]
    for run in runs:
        assert np.max(np.abs(run.q[-1] - reference.q[-1])) < 1e-6 and np.max(np.abs(run.p[-1] - reference.p[-1])) < 1e-6
    assert runs[-1].stage_psi is None and runs[0].stage_psi is not None


@pytest.mark.parametrize(
    ("solver", "tolerance"), [("IDA", 1e-6), ("IDA", 1e-9), ("Radau", 1e-6), ("DOP853", 1e-6), ("DOP853", 1e-9)]
)
def test_figure_2_1_the_constraints_of_the_disk_drift(solver: Any, tolerance: float) -> None:
    """To t = 100, with RelTol 1e-6, AbsTol 1e-9 and tighter: the error of the constraints is present, and grows."""
    reduced = da.reduce_index(da.problems.vertical_disk())
    run = reduced.simulate(solver, t1=100.0, rtol=tolerance, atol=tolerance / 1e3)
    error = np.abs(run.residuals["k"]).max(axis=1)
    early, late = error[run.t < 10].max(), error[run.t > 90].max()
    assert tolerance < late < 100 * tolerance
    assert late > 4 * early, (early, late)


def test_holonomic_constraints_drift_faster_than_their_derivatives() -> None:
    """Errors of g'' = 0 are integrated twice: g of the double pendulum drifts more than g_dot."""
    run = da.reduce_index(da.problems.double_pendulum()).simulate("DOP853", t1=50.0, rtol=1e-7, atol=1e-9)
    late = run.t > 40
    assert 1e-9 < np.abs(run.residuals["g_dot"][late]).max() < np.abs(run.residuals["g"][late]).max()


def test_states_are_stored_at_the_times_asked_for() -> None:
    times = np.linspace(0.0, 2.0, 11)
    for solver in SOLVERS:
        run = da.reduce_index(da.problems.vertical_disk()).simulate(solver, t1=2.0, times=times)
        assert np.array_equal(run.t, times) and len(run.q) == 11


def test_initial_values_and_parameters_are_those_of_simulate() -> None:
    system = da.problems.vertical_disk().system
    start = {"q0": [0, 0, 0.3, 0], "v0": [0.5 * cos(0.3), 0.5 * sin(0.3), 1.0, 1.0], "t0": 1.0, "params": {"R": 0.5}}
    run = da.reduce_index(system).simulate("DOP853", t1=2.0, rtol=1e-10, atol=1e-12, **start)
    exact = da.problems.vertical_disk(R=0.5, phi=0.3, turning=1.0).exact(1.0)
    assert run.t[0] == 1.0 and np.max(np.abs(run.q[-1] - exact["q"])) < 1e-8
    assert run.parameters["R"] == 0.5
    with pytest.raises(da.InconsistentStart, match="nonholonomic constraint k"):
        da.reduce_index(system).simulate("DOP853", t1=1.0, q0=[0] * 4, v0=[1, 0, 0, 0])


def test_a_failed_integration_keeps_what_was_computed() -> None:
    """y' = y^2 along g: it blows up at t = 1."""
    blow_up = da.IndexTwoDAE(parts=[lambda y, z: [y[0] ** 2, z[0]]], g=lambda y: [y[1]], dim_y=2, dim_z=1)
    with pytest.raises(da.StepFailed, match="Radau stopped at t = ") as caught:
        da.reduce_index(blow_up).simulate("Radau", t1=2.0, y0=[1.0, 0.0])
    run = caught.value.run
    assert run.status == "failed" and 0.5 < run.t[-1] < 1.01 and len(run.y) == len(run.t) > 5


def test_refusals_name_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    reduced = da.reduce_index(da.problems.vertical_disk())
    with pytest.raises(da.UnsupportedSystem, match=r"takes a da\.Hamiltonian.*got int"):
        da.reduce_index(3)
    with pytest.raises(da.InputError, match='"IDA", "Radau" or "DOP853"; got \'ode45\''):
        reduced.simulate("ode45", t1=1.0)
    with pytest.raises(da.InputError, match=r'"eliminated"; got \'eliminated\' for IDA'):
        reduced.simulate("IDA", t1=1.0, multipliers="eliminated")
    with pytest.raises(da.InputError, match="t1 must be a time after t0 = 0"):
        reduced.simulate("DOP853", t1=-1.0)
    with pytest.raises(da.InputError, match="times are at least three increasing times"):
        reduced.simulate("DOP853", t1=1.0, times=[0.0, 1.0, 0.5])
    with pytest.raises(da.UnsupportedSystem, match="enter nonlinearly"):
        da.reduce_index(da.problems.index_two_growth()).simulate("DOP853", t1=1.0, multipliers="eliminated")
    monkeypatch.setitem(sys.modules, "sksundae.ida", None)
    with pytest.raises(da.DalembertError, match=r"needs the package scikit-sundae: pip install dalembert\[sundials\], or"):
        reduced.simulate("IDA", t1=1.0)
