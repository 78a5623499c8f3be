"""Common subexpressions, merged without a change of values."""

from __future__ import annotations

import casadi as ca
import numpy as np

POINTS = 3
SAME = 1e-9
"""How far values may differ by rounding, relative to their size; a wrong value differs by far more at a random point."""


def merged(expression: ca.SX) -> ca.SX:
    """The expression with equal subexpressions merged, where that keeps its values; else as it is.

    CasADi's `cse` (3.8.2) has replaced expressions by the values of others where merged operands let one simplify, as in
    (x / a) * a. So both are evaluated at random points.
    """
    smaller = ca.cse(expression)
    symbols = ca.vertcat(ca.SX(0, 1), *ca.symvar(expression))
    both = ca.Function("both", [symbols], [ca.densify(ca.vec(expression)), ca.densify(ca.vec(smaller))])
    random = np.random.default_rng(1788)
    for _ in range(POINTS):
        before, after = (np.asarray(x, dtype=float) for x in both(random.uniform(0.5, 1.5, symbols.shape[0])))
        if not np.allclose(before, after, rtol=SAME, atol=SAME * np.max(np.abs(before), initial=0.0), equal_nan=True):
            return expression
    return smaller
