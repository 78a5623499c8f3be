"""Statements about any tableau: duals, adjoints, stiff accuracy, and the order of Theorem 2.2 of Jay (1996)."""

import math

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp

from dalembert.tableaux import (
    CC,
    B,
    C,
    D,
    Tableau,
    adjoint,
    gauss,
    largest,
    lobatto_iiia,
    lobatto_iiic,
    radau_iia,
    stiffly_accurate,
    symplectic_dual,
    symplecticity,
)

HOLDS = 1e-90


def test_theorem_3_2_leaves_methods_with_last_weight_zero():
    midpoint_twice_written = Tableau.of([["1/2", 0], [1, 0]], [1, 0])
    assert stiffly_accurate(midpoint_twice_written) and symplecticity(midpoint_twice_written) == 0
    with pytest.raises(ValueError, match=r"symplectic_dual needs every b_i nonzero; b\[1\] of 'user tableau' is 0"):
        symplectic_dual(midpoint_twice_written)


few = settings(max_examples=50, deadline=None)
fractions = st.fractions(min_value=-3, max_value=3, max_denominator=60)


@st.composite
def tableaux(draw):
    s = draw(st.integers(1, 4))
    row = st.lists(fractions, min_size=s, max_size=s)
    return Tableau.of(draw(st.lists(row, min_size=s, max_size=s)), draw(row), draw(row))


@few
@given(tableaux())
def test_theorem_3_2_for_any_stiffly_accurate_method(tableau):
    A, b, c = tableau.fractions
    closed = Tableau.of([*A[:-1], b], b, c)
    assert stiffly_accurate(closed)
    assert symplecticity(closed) >= float(b[-1] ** 2) * (1 - 1e-15)


@few
@given(tableaux())
def test_symplectic_dual_is_an_involution(tableau):
    assume(all(tableau.fractions.b))
    dual = symplectic_dual(tableau)
    assert symplecticity(tableau, dual) < HOLDS
    assert symplectic_dual(dual).fractions == tableau.fractions


@few
@given(tableaux())
def test_adjoint_is_an_involution_and_commutes_with_the_dual(tableau):
    assert adjoint(adjoint(tableau)).fractions == tableau.fractions
    assume(all(tableau.fractions.b))
    assert adjoint(symplectic_dual(tableau)) == symplectic_dual(adjoint(tableau))


@few
@given(tableaux(), st.integers(0, 6))
def test_defects_grow_with_k(tableau, k):
    for condition in (B, C, D):
        assert condition(tableau, 0) == 0
        assert condition(tableau, k) <= condition(tableau, k + 1)


def test_bad_calls_are_refused():
    with pytest.raises(ValueError, match=r"C\(k\) needs an integer k >= 0; got -1"):
        C(gauss(2), -1)
    with pytest.raises(ValueError, match=r"B\(k\) needs an integer k >= 0; got 1.5"):
        B(gauss(2), 1.5)
    for pair in (lambda: CC(gauss(2), gauss(3), 2), lambda: symplecticity(gauss(2), gauss(3))):
        with pytest.raises(ValueError, match="needs two tableaux with the same number of stages; got 2 and 3"):
            pair()
    with pytest.raises(ValueError, match="largest needs a condition and its tableaux"):
        largest(C)


def test_largest_stops_where_a_condition_holds_for_every_k():
    explicit_euler = Tableau.of([[0]], [1])
    assert largest(C, explicit_euler) == 2


PENDULUM = [
    pytest.param(family, s, id=f"{name}, s = {s}")
    for name, family in (("IIIA-IIIB", lobatto_iiia), ("IIIC-IIIC*", lobatto_iiic), ("Radau IIA", radau_iia))
    for s in (2, 3, 4)
]


@pytest.mark.parametrize(("family", "s"), PENDULUM)
def test_local_error_of_theorem_2_2(family, s):
    """With its dual, a method has local error O(h^(eta + 1)) on the pendulum H = p^2 / 2 - cos q."""
    tableau = family(s)
    eta = 2 * s - 1 if family is radau_iia else 2 * s - 2
    with mpmath.workdps(50):
        m = mp.mpf(7) / 10

        def exact(t):
            return 2 * mp.asin(mp.sqrt(m) * mp.ellipfun("sn", t, m=m)), 2 * mp.sqrt(m) * mp.ellipfun("cn", t, m=m)

        (A, b, _), A_hat = tableau.exact, symplectic_dual(tableau).exact.A
        t, errors = mp.mpf(2) / 5, []
        for h in (mp.mpf(1) / 40, mp.mpf(1) / 80):
            (q0, p0), (q1, p1) = exact(t), exact(t + h)
            k, force = mp.matrix([p0] * s), mp.matrix([-mp.sin(q0)] * s)
            for _ in range(40):
                Q = h * A * k
                k, force = h * A_hat * force, mp.matrix([-mp.sin(q0 + x) for x in Q])
                k = mp.matrix([p0 + x for x in k])
            errors.append(mp.hypot(q0 + h * (b.T * k)[0] - q1, p0 + h * (b.T * force)[0] - p1))
        assert abs(math.log2(errors[0] / errors[1]) - (eta + 1)) < 0.1
