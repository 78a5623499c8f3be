"""Coefficients of the Gauss-Lobatto SPARK and EMPRK methods, against closed forms and integrals of Lagrange polynomials."""

import pickle
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mp

from dalembert.tableaux import (
    SparkTableau,
    Tableau,
    discontinuous_collocation,
    gauss,
    gauss_lobatto,
    lobatto_iiia,
    lobatto_iiib,
    radau_iia,
    spark_conditions,
    spark_symmetry,
    spark_symplecticity,
)

STAGES = range(1, 9)
HOLDS = 1e-95


def test_1_1_is_the_midpoint_trapezoidal_method():
    half = Fraction(1, 2)
    assert gauss_lobatto(1).fractions == (
        ((half,),),
        (1,),
        (half,),
        ((half, 0),),
        (half, half),
        (0, 1),
        ((0,), (1,)),
        ((0, 0), (half, half)),
    )


def test_2_2_in_closed_form():
    with mpmath.workdps(110):
        r = mp.sqrt(3)
        closed = {
            "A": [["1/4", 1 / mp.mpf(4) - r / 6], [1 / mp.mpf(4) + r / 6, "1/4"]],
            "b": ["1/2", "1/2"],
            "c": [mp.mpf(1) / 2 - r / 6, mp.mpf(1) / 2 + r / 6],
            "A_tilde": [["1/6", mp.mpf(1) / 3 - r / 6, 0], ["1/6", mp.mpf(1) / 3 + r / 6, 0]],
            "b_tilde": ["1/6", "2/3", "1/6"],
            "c_tilde": [0, "1/2", 1],
            "A_bar": [[0, 0], [mp.mpf(1) / 4 + r / 8, mp.mpf(1) / 4 - r / 8], ["1/2", "1/2"]],
            "A_check": [[0, 0, 0], ["5/24", "1/3", "-1/24"], ["1/6", "2/3", "1/6"]],
        }
        for name, expected in closed.items():
            for x, y in zip(flat(getattr(gauss_lobatto(2).fractions, name)), flat(expected), strict=True):
                if isinstance(y, mp.mpf):
                    assert abs(mp.mpf(x.numerator) / x.denominator - y) < mp.mpf(10) ** -99
                else:
                    assert x == Fraction(y)


@pytest.mark.parametrize("s", STAGES)
def test_conditions_of_discontinuous_collocation(s):
    defects = spark_conditions(gauss_lobatto(s))
    assert len(defects) == 9 and all(defect < HOLDS for defect in defects.values())


@pytest.mark.parametrize("s", STAGES)
def test_the_slide_with_k_up_to_s_and_the_theorem_with_a_zero_last_column_determine_the_same_matrix(s):
    spark = gauss_lobatto(s)
    with mpmath.workdps(140):
        c, c_tilde, b_0 = numbers(spark.fractions.c), numbers(spark.fractions.c_tilde), numbers(spark.fractions.b_tilde)[0]
        V = mp.matrix([[x ** (k - 1) for x in c_tilde[1:]] for k in range(1, s + 1)])
        for c_i, row in zip(c, spark.fractions.A_tilde, strict=True):
            moments = mp.matrix([c_i**k / k - (b_0 if k == 1 else 0) for k in range(1, s + 1)])
            solution = mp.lu_solve(V, moments)
            assert max(abs(x - y) for x, y in zip(solution, numbers(row[1:]), strict=True)) < mp.mpf(10) ** -94


@pytest.mark.parametrize("s", STAGES)
def test_gauss_lobatto_is_symplectic_without_k_and_symmetric(s):
    assert spark_symplecticity(gauss_lobatto(s)) < HOLDS
    assert spark_symmetry(gauss_lobatto(s)) < HOLDS


@pytest.mark.parametrize("s", STAGES)
def test_parts_are_the_published_families(s):
    spark, lobatto = gauss_lobatto(s), lobatto_iiia(s + 1)
    assert spark.tableau == gauss(s)
    assert (spark.fractions.b_tilde, spark.fractions.c_tilde, spark.fractions.A_check) == (
        lobatto.fractions.b,
        lobatto.fractions.c,
        lobatto.fractions.A,
    )
    assert spark.A_bar[-1].tolist() == spark.b.tolist() and spark.A_check[-1].tolist() == spark.b_tilde.tolist()


@cache
def legendre_nodes(s):
    """Zeros of P_s, and 0, the zeros of P_s' and 1, on [0, 1]."""
    P = [mp.mpf(x) for x in mp.taylor(lambda x: mp.legendre(s, x), 0, s)][::-1]
    derivative = [a * k for a, k in zip(P[:-1], range(s, 0, -1), strict=True)]
    zeros = sorted(mp.polyroots(P, maxsteps=500, extraprec=400), key=mp.re)
    inner = sorted(mp.polyroots(derivative, maxsteps=500, extraprec=400), key=mp.re) if s > 1 else []
    return [(1 + mp.re(x)) / 2 for x in zeros], [mp.zero, *((1 + mp.re(x)) / 2 for x in inner), mp.one]


def lagrange_integrals(nodes, ends):
    """The integrals of the Lagrange polynomials of the nodes from 0 to each of the ends, by Gauss quadrature."""

    def lagrange(j, x):
        return mp.fprod((x - y) / (nodes[j] - y) for i, y in enumerate(nodes) if i != j)

    return [
        [mp.quad(lambda x, j=j: lagrange(j, x), [0, end], method="gauss-legendre") for j in range(len(nodes))] for end in ends
    ]


@pytest.mark.parametrize("s", [1, 2, 3, 4, 5])
def test_every_float_is_rounded_once(s):
    spark = gauss_lobatto(s)
    with mpmath.workdps(50):
        c, c_tilde = legendre_nodes(s)
        b_tilde = lagrange_integrals(c_tilde, [mp.one])[0]
        A_tilde = [  # r is interpolated at the inner nodes, after the jump that b~_0 gives to the constant
            [b_tilde[0], *(x - b_tilde[0] * mp.fprod(-y / (c_tilde[j] - y) for y in c_tilde[1:-1] if y != c_tilde[j])
                           for j, x in enumerate(row, start=1)), mp.zero]
            for row in lagrange_integrals(c_tilde[1:-1], c)
        ]  # fmt: skip
        expected = {
            "c": c,
            "c_tilde": c_tilde,
            "b": lagrange_integrals(c, [mp.one])[0],
            "b_tilde": b_tilde,
            "A": lagrange_integrals(c, c),
            "A_bar": lagrange_integrals(c, c_tilde),
            "A_check": lagrange_integrals(c_tilde, c_tilde),
            "A_tilde": A_tilde,
        }
        for name, values in expected.items():
            assert getattr(spark, name).ravel().tolist() == [float(mp.chop(x, tol=1e-40)) for x in flat(values)], name


def test_any_collocation_method_and_any_nodes_make_a_pair():
    spark = discontinuous_collocation(radau_iia(3), [0, "2/7", "3/5", 1])
    assert max(spark_conditions(spark).values()) < HOLDS
    assert spark_symplecticity(spark) > 1e-3 and spark_symmetry(spark) > 1e-3
    assert discontinuous_collocation(gauss(1), [0, 1]) == gauss_lobatto(1)
    assert discontinuous_collocation(gauss(3), lobatto_iiia(4).fractions.c) == gauss_lobatto(3)


def test_nodes_given_as_floats_are_known_to_15_digits():
    spark = discontinuous_collocation(gauss(2), [0.0, 0.4, 1.0])
    assert spark.digits == 15 and spark.fractions.c_tilde[1] == Fraction(0.4)


def test_defects_reveal_a_wrong_coefficient():
    right = gauss_lobatto(2)
    wrong = right.fractions._replace(A_tilde=((Fraction(1, 6), Fraction(1, 3), Fraction(0)),) * 2)
    defects = spark_conditions(SparkTableau("wrong", wrong))
    assert [name for name, defect in defects.items() if defect > 1e-3] == ["moments of a~"]


def test_arrays_are_read_only_and_tableaux_are_values():
    spark = gauss_lobatto(3)
    with pytest.raises(ValueError, match="read-only"):
        spark.A_tilde[0, 0] = 1
    copy = pickle.loads(pickle.dumps(spark))
    assert copy == spark and hash(copy) == hash(spark) and not copy.A_bar.flags.writeable
    assert gauss_lobatto(2) != spark and spark != "Gauss-Lobatto"
    assert [part.shape for part in (spark.A, spark.A_tilde, spark.A_bar, spark.A_check)] == [(3, 3), (3, 4), (4, 3), (4, 4)]
    assert np.all(spark.A_tilde[:, -1] == 0) and np.all(spark.A_bar[0] == 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gauss_lobatto(0), r"needs an integer s >= 1; got 0"),
        (lambda: gauss_lobatto(2.0), r"needs an integer s >= 1; got 2\.0"),
        (lambda: gauss_lobatto(True), r"needs an integer s >= 1; got True"),
        (lambda: discontinuous_collocation(gauss(2), [0, 1]), r"nodes must have 3 entries"),
        (lambda: discontinuous_collocation(gauss(2), [0, "1/2", "1/2"]), r"must be distinct, the first 0 and the last 1"),
        (lambda: discontinuous_collocation(gauss(2), ["1/4", "1/2", 1]), r"must be distinct, the first 0 and the last 1"),
        (lambda: discontinuous_collocation(gauss(2), [0, 1, 1]), r"must be distinct, the first 0 and the last 1"),
        (
            lambda: discontinuous_collocation(gauss(2), [0, "1/3", 1]),
            r"b~_0 and b~_s must be positive; these nodes have 0 and 0\.25",
        ),
        (lambda: discontinuous_collocation(gauss(2), [0, "3/4", 1]), r"b~_0 and b~_s must be positive; .* and -0\.167"),
        (lambda: discontinuous_collocation(lobatto_iiib(3), [0, "1/3", "2/3", 1]), r"'Lobatto IIIB', s = 3, fails C\(3\) by"),
        (
            lambda: discontinuous_collocation(Tableau.of([["1/2", 0], ["1/2", 0]], ["1/2", "1/2"]), [0, "1/2", 1]),
            r"needs distinct nodes c_1, \.\.\., c_s; 'user tableau' repeats one",
        ),
        (
            lambda: discontinuous_collocation(Tableau.of(gauss(2).fractions.A, [1, 0], gauss(2).fractions.c), [0, "1/2", 1]),
            r"fails B\(2\) by",
        ),
    ],
)
def test_refusals_name_the_failed_condition(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def flat(values):
    return [entry for row in values for entry in (row if isinstance(row, list | tuple) else [row])]


def numbers(fractions):
    return [mp.mpf(x.numerator) / x.denominator for x in fractions]
