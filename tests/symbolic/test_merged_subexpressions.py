"""Equal subexpressions are merged without a change of values, which CasADi's own cse does not promise."""

import casadi as ca
import numpy as np
import pytest

from dalembert.symbolic import _merge, merged


def values(expression, symbols, point):
    return np.asarray(ca.Function("f", [symbols], [ca.densify(expression)])(point), dtype=float)


def test_equal_parts_become_one():
    x = ca.SX.sym("x", 2)
    twice = ca.vertcat(ca.sin(x[0]) * x[1], ca.sin(x[0]) + x[1])
    assert ca.Function("f", [x], [merged(twice)]).n_nodes() < ca.Function("f", [x], [twice]).n_nodes()
    assert np.array_equal(values(merged(twice), x, [0.3, 2.0]), values(twice, x, [0.3, 2.0]))


def test_a_merge_that_changes_a_value_is_not_used(monkeypatch):
    x = ca.SX.sym("x", 2)
    monkeypatch.setattr(_merge.ca, "cse", lambda expression: expression + 1e-3 * x[1])
    assert np.array_equal(values(merged(x[0] * x[1]), x, [2.0, 3.0]), [[6.0]])


@pytest.mark.parametrize("expression", [ca.SX(2.5), ca.SX(0, 1), ca.SX.zeros(2, 2)], ids=["number", "nothing", "zeros"])
def test_expressions_without_symbols_stay(expression):
    assert merged(expression).shape == expression.shape
