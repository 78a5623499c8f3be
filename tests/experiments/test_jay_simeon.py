"""Data that the experiments on Jay and Simeon must fail on, and the references that they rest on."""

import math

import numpy as np
import pytest
from experiment_data import broken, computed, copied, exchanged, of_order, scaled

import dalembert as da
from dalembert.experiments.jay_simeon import _shared, compositions

# -- what must fail fails ------------------------------------------------------------------------------------------------


def figure(component, problem):
    cases = {
        "methods exchanged": exchanged(f"true_{component}", f"natural_{component}"),
        "true of order 1.1": of_order(f"true_{component}", 1.1),
        "true of order 0.9": of_order(f"true_{component}", 0.9),
        "natural converges slowly": of_order(f"natural_{component}", 0.2),
        "natural converges to something else": scaled(f"natural_{component}", 1.2),
        "an error that rises": lambda data: {
            f"true_{component}": np.where(data["h"] == data["h"][4], 1.0, data[f"true_{component}"])
        },
        "not a number at the end": broken(f"natural_{component}", -1),
        "not a number in between": broken(f"true_{component}", 3),
    }
    if problem == "4.2":
        cases["natural flat from the start"] = lambda data: {
            f"natural_{component}": 0 * data["h"] + data[f"natural_{component}"][-1]
        }
    return cases


LIMIT = {
    "natural of order 0.9 to its limit": of_order("natural_y", 0.9),
    "conjugate of order 0 to its limit": copied("conjugate_z", "conjugate_z_solution"),
    "converges to the solution": copied("natural_other_z_solution", "natural_other_z"),
    "close to the solution": scaled("natural_y_solution", 0.5),
    "another multiplier": lambda data: {"natural_multipliers": data["natural_multipliers"] + [1e-3, 0, 0]},
    "another limit of the multipliers": lambda data: {
        "conjugate_other_multipliers": data["conjugate_other_multipliers"] * [1, 1.001, 1]
    },
    "the same limits for both methods": scaled("between_y", 1e-5),
    "not a number": broken("conjugate_other_y", -1),
}
WRONG = {
    "jay_simeon.figure4.1": figure("y", "4.1"),
    "jay_simeon.figure4.2": figure("z", "4.1"),
    "jay_simeon.figure4.3": figure("y", "4.2"),
    "jay_simeon.figure4.4": figure("z", "4.2"),
    "jay_simeon.limit4.1": LIMIT,
    "jay_simeon.limit4.2": LIMIT,
    "jay_simeon.adjoint": {
        "the conjugate taken for the adjoint": copied("adjoint_nonlinear_y", "conjugate_nonlinear_y"),
        "the conjugate of order 2": copied("conjugate_friction_z", "adjoint_friction_z"),
        "the conjugate of order 1 where r is affine": of_order("conjugate_affine_y", 1),
        "the conjugate visibly of order 1": of_order("conjugate_friction_y", 1),
        "order 1.8": of_order("adjoint_affine_z", 1.8),
        "not a number": broken("adjoint_friction_y", -1),
    },
    "jay_simeon.composition": {
        **{f"order {k - 1} for {k}": of_order(f"order{k}_y", k - 1, f"h_{k}") for k in (2, 4, 6, 8)},
        "order 7.8 for 8": of_order("order8_z", 7.8, "h_8"),
        "off the constraints": scaled("residual_4", 1e3),
        "not a number": broken("order6_z", 3),
    },
}


# -- the references ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["4.1", "4.2"])
def test_the_solutions_agree_with_a_method_of_order_eight(problem):
    test = _shared.PROBLEMS[problem]
    run = da.simulate(test.problem(), da.compose(da.SymplecticEuler(), 8), h=1 / 60, steps=60)
    for name, value in test.solution().items():
        np.testing.assert_allclose(value, getattr(run, name)[-1], atol=3e-11)


def test_the_limits_of_the_multipliers_of_4_1_in_closed_form():
    one = np.ones(2)
    limit = _shared.PROBLEMS["4.1"].inconsistent
    psi = limit.multipliers(one, one, 0.5, conjugate=False)
    assert psi == pytest.approx(((math.sqrt(5) - 1) / 2, (math.sqrt(13) - 1) / 2), abs=1e-14)
    assert limit.multipliers(one, one, 0.5, conjugate=True) == pytest.approx(psi[::-1], abs=1e-14)


@pytest.mark.parametrize("problem", ["4.1", "4.2"])
@pytest.mark.parametrize("conjugate", [False, True])
def test_the_inconsistent_odes_stay_on_the_constraints(problem, conjugate):
    # (3.4) makes both conditions together the derivative of g_y v along the limit, whatever alpha is.
    test = _shared.PROBLEMS[problem]
    end = test.inconsistent.solution(0.3, conjugate)
    system = test.problem().system
    arguments = {"t": 1.0, **end, "lam": np.zeros(1), "psi": np.zeros(0)}
    for name in ("g", "g_dot"):
        assert np.max(np.abs(system.at(name, arguments, system.parameters.vector()))) < 1e-11


def test_the_terms_written_by_hand_are_those_of_the_model():
    """v, f, r, g_y v_z f and g_yy(v, v)/2 at a generic point of the constraints, against the model's own derivatives."""
    rng = np.random.default_rng(3)
    for test, y, direction in (
        (_shared.PROBLEMS["4.1"], np.array([1.7, 1.7**-0.5]), np.array([1.7, 1.7**-0.5])),
        (_shared.PROBLEMS["4.2"], np.array([6.0, 0.01 * 6.0**3]), np.array([1.0, 3 * 0.01 * 6.0**2])),
    ):
        z, psi, system = rng.uniform(0.5, 2.0) * direction, 0.7, test.problem().system
        v, f, r, force, curvature, root = test.inconsistent.terms(y, z)
        arguments = {"t": 0.0, "y": y, "z": z, "lam": np.array([psi]), "psi": np.zeros(0)}
        theta = system.parameters.vector()
        for name, mine in (("v", v), ("f", f), ("r", r(psi))):
            np.testing.assert_allclose(system.at(name, arguments, theta), mine, rtol=1e-13)
        (g_y_v_z,) = system.at("hidden_z", arguments, theta)
        assert force == pytest.approx(g_y_v_z @ f, rel=1e-13)
        e = 1e-4  # g_yy(v, v) from differences of g
        g = [system.at("g", arguments | {"y": y + k * e * v}, theta)[0] for k in (-1, 0, 1)]
        assert curvature == pytest.approx((g[0] - 2 * g[1] + g[2]) / (2 * e**2), rel=1e-5)
        assert root(g_y_v_z @ r(psi)) == pytest.approx(psi, rel=1e-13)


def test_the_first_step_of_the_natural_method_has_inconsistent_multipliers():
    found, right, consistent = computed("jay_simeon.limit4.1")["natural_multipliers"]
    assert right == pytest.approx((math.sqrt(5) + math.sqrt(13) - 2) / 4, abs=1e-14) and consistent == pytest.approx(1.0)
    assert abs(found - consistent) > 0.03


def test_then_conjugate_is_the_method_twice_by_hand():
    problem, h = da.problems.nonlinear_multiplier(), 0.05
    middle = da.verify.step(problem, da.SymplecticEuler(), h=h / 2)
    end = da.verify.step(problem.system, da.SymplecticEuler(conjugate=True), h=h / 2, start=middle)
    run = da.simulate(problem, compositions.ThenConjugate(), h=h, steps=1)
    np.testing.assert_allclose(run.states[-1], end.packed, rtol=1e-14)
