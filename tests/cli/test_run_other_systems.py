"""`dalembert run` on ODAEs, DAEs of index 2 and nonholonomic constraints."""

import json
import os

import numpy as np
import pytest

import dalembert as da


@pytest.mark.parametrize(
    ("line", "method"),
    [
        ("", da.compose(da.SymplecticEuler(), 2)),
        ("--method SymplecticEuler", da.SymplecticEuler()),
        (
            "--method 'SymplecticEuler(variant=\"natural\", conjugate=True, alpha=1/4)'",
            da.SymplecticEuler("natural", True, 0.25),
        ),
        ('--method \'SymplecticEuler(r_at=("z1", "Z1"))\'', da.SymplecticEuler(r_at=("z1", "Z1"))),
        ("--method 'adjoint(SymplecticEuler)'", da.adjoint(da.SymplecticEuler())),
        ("--method 'compose(SymplecticEuler, 4)'", da.compose(da.SymplecticEuler(), 4)),
    ],
)
def test_an_odae_is_run_by_the_methods_that_serve_it(command, line, method):
    code, out, err = command(f"run mass_on_surface --steps 20 --save run.npz --plot run.png --json {line}")
    run, report = da.load("run.npz"), json.loads(out)
    expected = da.simulate(da.problems.mass_on_surface(), method, steps=20)
    assert code == 0 and not err and report["method"] == str(method)
    np.testing.assert_array_equal(run.states, expected.states)
    assert report["energy"]["max_error"] == np.max(np.abs(expected.energy - expected.energy[0]))
    assert set(report["residuals"]) == {"g", "g_dot"} and os.path.exists("run.png")


def test_an_odae_without_an_energy_is_reported_without_it(command):
    report = json.loads(command("run nonlinear_multiplier --json")[1])
    code, out, _ = command("run nonlinear_multiplier --plot run.pdf")
    assert report["energy"] is None and code == 0 and "H0" not in out and "max |g_dot|" in out and "run.pdf" in out


def test_initial_values_of_an_odae(command):
    assert command("run mass_on_surface --y0 9,7.29 --z0 -3,-7.29 --steps 3 --save run.npz")[0] == 0
    np.testing.assert_array_equal(da.load("run.npz").states[0], [9.0, 7.29, -3.0, -7.29])
    line = "run mymodel.py:sliding --y0 0,0.1 --z0 -5,0.2 --lam0 1 --h 0.01 --steps 300 --set mu=0.25 --project"
    code, out, err = command(f"{line} --method SymplecticEuler --save run.npz --json")
    run = da.load("run.npz")
    np.testing.assert_allclose(run.states[0], [0, 0, -5, 0], atol=1e-14)
    assert code == 1 and json.loads(out)["status"] == "failed" and "leaves the model's domain" in err
    assert run.t[-1] == pytest.approx(2.03)  # the block stops at 5 / (0.25 * 9.81) = 2.039


@pytest.mark.parametrize(
    ("problem", "method"),
    [
        ("index_two_growth", da.SRK("gauss", 2)),
        ("index_two_growth_in_parts --stages 3", da.SRK("gauss", 3)),
        ("chaplygin_sleigh", da.GaussLobattoSPARK(2)),
    ],
)
def test_a_method_that_serves_the_problem_is_taken_if_none_is_named(command, problem, method):
    code, out, err = command(f"run {problem} --steps 5 --json")
    assert code == 0 and not err and json.loads(out)["method"] == str(method)


@pytest.mark.parametrize(
    "line", ["--stages 3", "--method 'SRK(coefficients=\"radau-ia\")' --stages 4", "--method LobattoSPARK --stages 4"]
)
def test_a_dae_of_index_two_reaches_its_exact_solution(command, line):
    """y = (e^t, e^-2t), z = e^2t."""
    code, out, err = command(f"run index_two_growth --save run.npz --plot run.png --json {line}")
    run, report = da.load("run.npz"), json.loads(out)
    assert code == 0 and not err and os.path.exists("run.png")
    np.testing.assert_allclose(run.y[-1], np.exp([1.0, -2.0]), atol=1e-8)
    np.testing.assert_allclose(run.z[-1], [np.exp(2.0)], atol=1e-7)
    assert report["energy"] is None and set(report["residuals"]) == {"g"} and report["residuals"]["g"] < 1e-14
    _, table, _ = command(f"run index_two_growth --steps 3 {line}")
    assert "max |g| " in table and "H0" not in table and "g_dot" not in table


@pytest.mark.parametrize(
    ("line", "y", "z"),
    [
        ("index_two_growth --y0 2,1/4 --z0 3.9", [2, 0.25], 4),  # the hidden constraint has the roots 1/y_2 and 1/(2 y_2)
        ("index_two_growth --y0 -2,1/4 --z0 1.9", [-2, 0.25], 2),
        ("index_two_growth --z0 0.4", [1, 1], 0.5),
        ("mymodel.py:growth --y0 1,1 --z0 0.9 --h 0.1", [1, 1], 1),
        ("mymodel.py:growth --y0 1,1 --h 0.1", [1, 1], 0.5),
    ],
)
def test_initial_values_of_a_dae_of_index_two(command, line, y, z):
    code, _, err = command(f"run {line} --steps 2 --save run.npz")
    run = da.load("run.npz")
    assert code == 0 and not err
    np.testing.assert_array_equal(run.y[0], y)
    np.testing.assert_allclose(run.z[0], [z], atol=1e-12)


def test_initial_values_of_a_dae_of_index_two_can_be_projected(command):
    assert command("run index_two_growth --y0 1.1,1 --project --steps 2 --save run.npz")[0] == 0
    run = da.load("run.npz")
    assert abs(run.y[0, 0] ** 2 * run.y[0, 1] - 1) < 1e-14 and np.abs(run.y[0] - [1.1, 1]).max() < 0.2
    np.testing.assert_allclose(run.z[0], 1 / run.y[0, 1], atol=1e-12)
