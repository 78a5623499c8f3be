"""The blur of an expression: an upper bound of its rounding error that is not far too large, against high precision."""

import casadi as ca
import mpmath
import numpy as np
import pytest

from dalembert.systems._rounding import rounding

CASES = {
    "difference": (lambda x, f: [(0.9 + f.sin(x[0])) - (0.8 + f.sin(x[1]))], [0.0, 0.0]),
    "distance": (lambda x, f: [f.sqrt(x[0] * x[0] + x[1] * x[1]) - x[2]], [3.0, 4.1, 5.0]),
    "two": (lambda x, f: [x[0] * x[1] - x[2], f.exp(x[0]) / x[1] - f.cos(30 * x[2])], [1.1, 0.7, 0.77]),
}


@pytest.mark.parametrize("name", CASES)
def test_rounding_errors_stay_below_the_bound_and_come_near_it(name):
    f, point = CASES[name]
    x = ca.SX.sym("x", len(point))
    bound = ca.Function("bound", [x], [rounding(ca.vertcat(*f(ca.vertsplit(x), ca)), [x])])
    random, ratios = np.random.default_rng(1), []
    for _ in range(200):
        at = [value + 0.1 * random.standard_normal() for value in point]
        with mpmath.workdps(40):
            exact = [mpmath.mpf(y) for y in f([mpmath.mpf(value) for value in at], mpmath)]
            error = [abs(float(mpmath.mpf(float(y)) - z)) for y, z in zip(f(at, np), exact, strict=True)]
        ratios.append(np.array(error) / (np.finfo(float).eps * np.array(bound(at)).ravel()))
    assert np.max(ratios) < 1.0
    assert np.all(np.max(ratios, axis=0) > 0.05)


def test_inputs_and_results_count_once_each():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    value = ca.Function("f", [x, y], [rounding(x * y + 3, [x, y])])
    assert float(value(2.0, -5.0)) == 10 + 10 + 10 + 3 + 7  # x, y, x y, the constant, the sum
