"""What a paper states of its problem, and what single problems claim beyond the table."""

from __future__ import annotations

import numpy as np
import pytest
from problem_table import LOBATTO, sizes

import dalembert as da

# -- what the paper states -----------------------------------------------------------------------------------------------


def test_charged_particle_has_the_constants_and_the_energy_of_the_paper() -> None:
    problem = da.problems.charged_particle_on_sphere()
    assert problem.system.params == {"m": 1.0, "omega": 1.0, "R": 1.0, "eE": 1.0}  # (5.3)
    assert np.array_equal(problem.q0, [0.2, 0.2, np.sqrt(0.92)])  # (5.4)
    assert problem.p0 is not None and np.array_equal(problem.p0, [1.0, -1.0, 0.0])
    assert (problem.h, problem.steps) == (0.12, 5000)
    energy = problem.system.evaluate("H", 0.0, problem.q0, problem.p0).item()
    assert energy == pytest.approx(1.2**2 - np.sqrt(0.92), abs=1e-15)
    assert energy == pytest.approx(0.4808336955, abs=2e-10)  # as printed; 1.2^2 - sqrt(0.92) is 0.48083369534


def test_double_pendulum_has_the_constants_and_the_energy_of_the_paper() -> None:
    problem = da.problems.double_pendulum()
    assert problem.system.params == {"m1": 1.0, "m2": 1.0, "l1": 1.0, "l2": 1.0, "g": 1.0}  # (5.7)
    assert np.array_equal(problem.q0, [0.5, -np.sqrt(0.75), 0.0, -2 * np.sqrt(0.75)])  # (5.8)
    assert problem.p0 is not None and np.array_equal(problem.p0, np.zeros(4))
    assert (problem.h, problem.steps) == (0.12, 5000)
    energy = problem.system.evaluate("H", 0.0, problem.q0, problem.p0).item()
    assert energy == pytest.approx(-3 * np.sqrt(0.75), abs=1e-15)
    assert energy == pytest.approx(-2.5980762113, abs=1e-10)  # as printed, cut off after ten digits


def test_pendulum_has_the_multiplier_of_the_paper() -> None:
    m, l, g = 1.3, 0.8, 1.7  # noqa: E741
    problem = da.problems.pendulum(m=m, l=l, g=g, angle=2.0)
    run = da.simulate(problem, LOBATTO, steps=100, progress=False)
    stated = (np.sum(run.p**2, axis=1) / m - m * g * run.q[:, 1]) / l  # (1.11)
    assert np.max(np.abs(run.lam[:, 0] - stated)) < 1e-13


# -- what single problems claim ------------------------------------------------------------------------------------------


def test_grashof_condition_of_the_default_four_bar() -> None:
    params = da.problems.four_bar().system.params
    sides = sorted(float(params[name]) for name in ("ground", "crank", "coupler", "rocker"))
    assert sides[0] == params["crank"] and len(set(sides)) == 4
    assert sides[0] + sides[3] < sides[1] + sides[2]


def test_axial_momentum_of_an_asymmetric_top_is_neither_claimed_nor_conserved() -> None:
    symmetric, asymmetric = da.problems.heavy_top(), da.problems.heavy_top(I2=0.9)
    run = da.simulate(asymmetric, LOBATTO, steps=300, progress=False)
    assert set(asymmetric.conserved) == {"energy", "vertical_angular_momentum"}
    assert sizes(asymmetric.conserved["vertical_angular_momentum"](run)).max() < 1e-12
    assert sizes(symmetric.conserved["axial_angular_momentum"](run)).max() > 1e-3


def test_angular_momenta_of_tops_are_those_of_mechanics() -> None:
    """With R = I turned about x, L = R I R^T omega: the bilinear forms against the inertia tensor about the fixed point."""
    m, l, moments, tilt, spin, precession = 1.2, 0.9, np.array([0.6, 0.6, 1.0]), 0.7, 3.0, 0.4  # noqa: E741
    sin, cos = np.sin(tilt), np.cos(tilt)
    R = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])
    about_fixed_point = moments + m * l**2 * np.array([1, 1, 0])
    body = about_fixed_point * np.array([0.0, precession * sin, spin])
    for translation in (False, True):
        problem = da.problems.heavy_top(m=m, l=l, inclination=tilt, spin=spin, precession=precession, translation=translation)
        run = da.simulate(problem, LOBATTO, steps=1, progress=False)
        assert problem.conserved["vertical_angular_momentum"](run)[0] == pytest.approx((R @ body)[2], abs=1e-14)
        assert problem.conserved["axial_angular_momentum"](run)[0] == pytest.approx(body[2], abs=1e-14)


def test_stiff_spring_bounds_the_step_of_the_explicit_stage() -> None:
    """RATTLE without constraints is the Verlet method, stable on an oscillator of frequency w for h w < 2 only."""
    problem = da.problems.stiff_spring_pendulum(m=2.0, epsilon=1e-3)
    limit = 2 * 1e-3 * np.sqrt(2.0)
    below, above = (da.simulate(problem, da.Rattle(), h=f * limit, steps=500, progress=False) for f in (0.95, 1.05))
    length = [np.abs(np.hypot(run.q[:, 0], run.q[:, 1]) - 1).max() for run in (below, above)]
    assert length[0] < 1e-4 < 1e-1 < length[1]


def test_stiff_spring_tends_to_the_rigid_pendulum() -> None:
    """Released without stretch, the spring pendulum is O(epsilon^2) away from the pendulum."""
    exact = da.problems.pendulum().exact
    assert exact is not None
    errors = []
    for epsilon in (0.02, 0.01):
        run = da.simulate(da.problems.stiff_spring_pendulum(epsilon=epsilon), LOBATTO, h=0.001, steps=2000, progress=False)
        errors.append(np.max(np.abs(run.q - exact(run.t)["q"])))
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.3)
