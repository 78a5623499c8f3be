"""Every float64 coefficient is the correctly rounded one.

Nodes: the exact integer polynomials of the formulas of Rodrigues change sign between the two numbers that lie halfway
to the neighbouring floats. Weights and matrices: the W-transformation A = W X W^-1 (Hairer and Wanner II, section IV.5)
in a precision far beyond that of the library.
"""

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mp
from numpy.polynomial.legendre import leggauss

from dalembert.tableaux import (
    gauss,
    lobatto_iiia,
    lobatto_iiib,
    lobatto_iiic,
    lobatto_iiic_star,
    lobatto_iiid,
    radau_ia,
    radau_iia,
)

STAGES = [*range(2, 10), 11, 20, 30]
NODES = {  # d^m / dx^m of x^k (x - 1)^l, as (m, k, l)
    gauss: lambda s: (s, s, s),
    radau_ia: lambda s: (s - 1, s, s - 1),
    radau_iia: lambda s: (s - 1, s - 1, s),
    lobatto_iiia: lambda s: (s - 2, s - 1, s - 1),
}
LOBATTO = [lobatto_iiia, lobatto_iiib, lobatto_iiic, lobatto_iiic_star, lobatto_iiid]


def rodrigues(family, s):
    """Integer coefficients, lowest power first, of the polynomial whose zeros are the nodes."""
    m, k, power = NODES[family](s)
    coefficients = [0] * k + [math.comb(power, j) * (-1) ** (power - j) for j in range(power + 1)]
    for _ in range(m):
        coefficients = [j * a for j, a in enumerate(coefficients)][1:]
    return coefficients


def value(coefficients, x):
    """The polynomial at x."""
    result = x * 0
    for a in reversed(coefficients):
        result = result * x + a
    return result


@pytest.mark.parametrize("s", STAGES)
@pytest.mark.parametrize("family", NODES)
def test_nodes_are_correctly_rounded(family, s):
    coefficients = rodrigues(family, s)
    c = family(s).c
    assert len(c) == len(coefficients) - 1 and np.all(np.diff(c) > 0) and c[0] >= 0 and c[-1] <= 1
    for x in c:
        below, above = ((Fraction(x) + Fraction(np.nextafter(x, side))) / 2 for side in (-1, 2))
        assert value(coefficients, Fraction(x)) == 0 or value(coefficients, below) * value(coefficients, above) < 0


@cache
def nodes_and_transformation(quadrature, s):
    """c, W and W^-1 with w_ij = sqrt(2 j - 1) P_{j-1}(c_i), from explicit coefficients of the polynomials."""
    coefficients = rodrigues(quadrature, s)
    derivative = [j * a for j, a in enumerate(coefficients)][1:]
    c = [mp.mpf(x) for x in quadrature(s).c]
    for _ in range(6):
        c = [x - value(coefficients, x) / value(derivative, x) for x in c]
    legendre = [[(-1) ** (k + j) * math.comb(k, j) * math.comb(k + j, j) for j in range(k + 1)] for k in range(s)]
    W = mp.matrix([[mp.sqrt(2 * k + 1) * value(legendre[k], x) for k in range(s)] for x in c])
    return mp.matrix(c), W, W**-1


def w_transformation(family, s):
    """A, b and c from A = W X W^-1 and b^T W = (1, 0, ..., 0)."""
    c, W, inverse = nodes_and_transformation(lobatto_iiia if family in LOBATTO else family, s)
    X = mp.zeros(s)
    X[0, 0] = mp.mpf(1) / 2
    for k in range(1, s):
        xi = 1 / (2 * mp.sqrt(4 * k**2 - 1))
        X[k, k - 1], X[k - 1, k] = xi, -xi
    if family in (radau_ia, radau_iia):
        X[s - 1, s - 1] += mp.mpf(1) / (4 * s - 2)
    elif family in LOBATTO:
        # W^T diag(b) W = diag(1, ..., 1, d): A satisfies C(s - 1) by column s - 1, and D(s - 1) by row s - 1 of X
        d = mp.mpf(2 * s - 1) / (s - 1)
        X[s - 1, s - 2] *= family is not lobatto_iiib
        X[s - 2, s - 1] *= 0 if family is lobatto_iiia else d
        X[s - 1, s - 1] = {lobatto_iiic: 1, lobatto_iiic_star: -1}.get(family, 0) * mp.mpf(1) / (2 * s - 2)
    return W * X * inverse, inverse[0, :].T, c


@pytest.mark.parametrize("s", STAGES)
@pytest.mark.parametrize("family", [gauss, radau_ia, radau_iia, *LOBATTO])
def test_coefficients_are_correctly_rounded(family, s):
    tableau = family(s)
    with mpmath.workdps(260):
        for computed, rounded, independent in zip(
            tableau.exact, (tableau.A, tableau.b, tableau.c), w_transformation(family, s), strict=True
        ):
            assert max(abs(x - y) for x, y in zip(computed, independent, strict=True)) < mp.mpf(10) ** -99
            assert rounded.ravel().tolist() == [float(mp.chop(x, tol=mp.mpf(10) ** -200)) for x in independent]


@pytest.mark.parametrize("s", [5, 20])
def test_gauss_quadrature_of_numpy(s):
    x, w = leggauss(s)
    assert np.allclose(gauss(s).c, (1 + x) / 2, rtol=0, atol=1e-15)
    assert np.allclose(gauss(s).b, w / 2, rtol=0, atol=1e-15)
