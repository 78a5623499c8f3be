"""The Hermite cubic of a guard along a partial step: where it is lowest, and its first zero, the guess of a collision."""

from __future__ import annotations

import numpy as np

from dalembert.engine._apart import apart
from dalembert.engine._compiled import internal

SMALL_CHANGE = 1e-8
"""The last change by Newton's method, as a fraction of the zero, which is then known to round-off."""


@internal("UniTuple(float64, 2)(float64, float64, float64, float64)")
def hermite(phi0, slope0, phi1, slope1):
    """c2 and c3 of the cubic phi0 + slope0 u + c2 u^2 + c3 u^3 through phi and its slope at u = 0 and u = 1."""
    return 3.0 * (phi1 - phi0) - 2.0 * slope0 - slope1, 2.0 * (phi0 - phi1) + slope0 + slope1


@internal("float64(float64, float64, float64, float64)")
def lowest(phi0, slope0, phi1, slope1):
    """Where in (0, 1) the Hermite cubic of phi has its minimum, if it falls at 0 and rises at 1; else -1.

    The derivative slope0 + 2 c2 u + 3 c3 u^2 rises through zero there, once; neither form of the root cancels where it is used.
    """
    if slope0 >= 0.0 or slope1 <= 0.0:
        return -1.0
    c2, c3 = hermite(phi0, slope0, phi1, slope1)
    root = np.sqrt(max(c2 * c2 - 3.0 * c3 * slope0, 0.0))
    return min(-slope0 / (c2 + root) if c2 > 0.0 else (root - c2) / (3.0 * c3), 1.0)


@apart("float64", "float64", "float64", "float64", "float64", "float64")
def falls_through_zero(c0, c1, c2, c3, b):
    """The zero in (0, b) of c0 + c1 u + c2 u^2 + c3 u^3, which is positive at 0 and not at b: Newton's method and bisection.

    They start from the zero of the parabola with the same c0 and c1 that meets the cubic at b.
    """
    a, u = 0.0, 2.0 * c0 / (np.sqrt(max(c1 * c1 - 4.0 * (c2 + c3 * b) * c0, 0.0)) - c1)
    if not u < b:
        u = b
    for _ in range(60):
        value, slope = c0 + u * (c1 + u * (c2 + u * c3)), c1 + u * (2.0 * c2 + u * 3.0 * c3)
        if value > 0.0:
            a = u
        else:
            b = u
        following = u - value / slope if slope < 0.0 else np.inf
        if not a <= following <= b:
            following = 0.5 * (a + b)
        change, u = abs(following - u), following
        if change <= SMALL_CHANGE * u:
            break
    return u


@apart("float64", "float64", "float64", "float64", "float64", "boolean")
def first_root(phi0, slope0, phi1, slope1, on_wall):
    """The first zero in (0, 1] of the Hermite cubic of phi, that at 0 left out if the leg starts on the wall; else -1.

    0 means that a leg that starts on the wall does not leave it.
    """
    c2, c3 = hermite(phi0, slope0, phi1, slope1)
    if on_wall:  # phi = u (slope0 + c2 u + c3 u^2)
        c0, c1, c2, c3 = slope0, c2, c3, 0.0
        end = c0 + c1 + c2
        turn = -c1 / (2.0 * c2) if c2 > 0.0 else 1.0
        if c0 <= 0.0:
            return 0.0 if end < 0.0 else -1.0
    else:
        c0, c1, end = phi0, slope0, phi1
        turn = lowest(phi0, slope0, phi1, slope1)
    if 0.0 < turn < 1.0 and c0 + turn * (c1 + turn * (c2 + turn * c3)) <= 0.0:
        return falls_through_zero(c0, c1, c2, c3, turn)
    return falls_through_zero(c0, c1, c2, c3, 1.0) if end <= 0.0 else -1.0
