"""Bounds of rounding errors that are computed level by level, against those of one expression after the other."""

import casadi as ca
import numpy as np

from dalembert.compiler._term_sizes import TermSizes
from dalembert.systems._rounding import rounding


def test_terms_are_as_large_as_their_graph_says():
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 2)
    value = ca.vertcat(ca.sqrt(x[0] ** 2 + x[1] ** 2) - y[0], ca.exp(x[0]) / y[1] + ca.sin(x[2]) * 3, x[0] * x[1] - x[2], y[1])
    of_graph = ca.Function("bound", [x, y], [rounding(value, [x, y])])
    sizes = TermSizes(ca.Function("f", [x, y], [value]))
    random = np.random.default_rng(5)
    places = random.uniform(0.5, 2, (7, 3)), random.uniform(0.5, 2, (7, 2))
    expected = of_graph.map(7)(*(place.T for place in places)).full().T
    np.testing.assert_allclose(sizes(*places), expected, rtol=1e-14)  # no value reaches a result by two ways


def test_errors_that_cancel_in_a_graph_are_added_up():
    x = ca.SX.sym("x")
    sizes = TermSizes(ca.Function("f", [x], [(x * x + 1) - x]))
    square = 4 + 2 * 2 * 2  # its own size, and twice x times the error of x
    np.testing.assert_array_equal(sizes(np.array([[2.0]])), [[3 + (5 + square + 1) + 2]])


def test_nothing_has_no_size():
    assert TermSizes(ca.Function("f", [ca.SX.sym("x")], [ca.SX(0, 1)]))(np.ones((3, 1))).shape == (3, 0)
