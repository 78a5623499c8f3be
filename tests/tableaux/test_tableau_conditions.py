"""Conditions on coefficients: each family satisfies what theory says, and not more."""

from collections.abc import Callable
from typing import NamedTuple

import mpmath
import pytest
from mpmath import mp

from dalembert.tableaux import (
    CC,
    DD,
    B,
    C,
    D,
    Tableau,
    adjoint,
    gauss,
    largest,
    lobatto_iiia,
    lobatto_iiib,
    lobatto_iiic,
    lobatto_iiic_star,
    lobatto_iiid,
    radau_ia,
    radau_iia,
    stiffly_accurate,
    symmetry,
    symplectic_dual,
    symplecticity,
)

HOLDS = 1e-90


class Theory(NamedTuple):
    """B(p), C(q) and D(r) hold with these p - 2 s, q - s and r - s, and not with the next integers."""

    family: Callable[[int], Tableau]
    least: int
    B: int
    C: int
    D: int
    symplectic: bool
    symmetric: bool
    stiffly_accurate: bool


THEORY = {  # Hairer and Wanner II, Table IV.5.13; Jay, Lobatto methods (2015)
    "Gauss": Theory(gauss, 1, 0, 0, 0, True, True, False),
    "Radau IA": Theory(radau_ia, 1, -1, -1, 0, False, False, False),
    "Radau IIA": Theory(radau_iia, 1, -1, 0, -1, False, False, True),
    "Lobatto IIIA": Theory(lobatto_iiia, 2, -2, 0, -2, False, True, True),
    "Lobatto IIIB": Theory(lobatto_iiib, 2, -2, -2, 0, False, True, False),
    "Lobatto IIIC": Theory(lobatto_iiic, 2, -2, -1, -1, False, False, True),
    "Lobatto IIIC*": Theory(lobatto_iiic_star, 2, -2, -1, -1, False, False, False),
    "Lobatto IIID": Theory(lobatto_iiid, 2, -2, -1, -1, True, True, False),
}
MEMBERS = [
    pytest.param(theory, s, id=f"{name}, s = {s}")
    for name, theory in THEORY.items()
    for s in range(theory.least, 12)
    if (name, s) != ("Radau IA", 1)
]
STAGES = range(2, 12)


@pytest.mark.parametrize(("theory", "s"), MEMBERS)
def test_simplifying_assumptions_hold_as_far_as_theory_says_and_no_further(theory, s):
    tableau = theory.family(s)
    for condition, k in ((B, 2 * s + theory.B), (C, s + theory.C), (D, s + theory.D)):
        assert condition(tableau, k) < HOLDS
        assert condition(tableau, k + 1) > 1e-20
        assert largest(condition, tableau) == k


@pytest.mark.parametrize(("theory", "s"), MEMBERS)
def test_structure(theory, s):
    tableau = theory.family(s)
    assert (symplecticity(tableau) < HOLDS) == theory.symplectic
    assert (symmetry(tableau) < HOLDS) == theory.symmetric
    assert stiffly_accurate(tableau) == theory.stiffly_accurate
    for defect, claimed in ((symplecticity(tableau), theory.symplectic), (symmetry(tableau), theory.symmetric)):
        assert claimed or defect > 1e-6


@pytest.mark.parametrize("s", [20, 30])
@pytest.mark.parametrize("name", THEORY)
def test_many_stages(name, s):
    theory = THEORY[name]
    tableau = theory.family(s)
    assert B(tableau, 2 * s + theory.B) < HOLDS
    assert C(tableau, s + theory.C) < HOLDS
    assert D(tableau, s + theory.D) < HOLDS


def test_one_stage_radau_ia_is_implicit_euler_with_node_zero():
    assert (largest(B, radau_ia(1)), largest(C, radau_ia(1)), largest(D, radau_ia(1))) == (1, 0, 1)


@pytest.mark.parametrize("name", THEORY)
@pytest.mark.parametrize("s", [0, -3, "least", 2.0, "3", None, True, [2]])
def test_inadmissible_stages_are_refused_in_one_sentence(name, s):
    theory = THEORY[name]
    s = theory.least - 1 if s == "least" else s
    needs = f"needs stages >= {theory.least}; got {s}" if type(s) is int else "needs an integer number of stages; got"
    with pytest.raises(ValueError) as error:
        theory.family(s)
    assert str(error.value).startswith(f"{name} {needs}")


@pytest.mark.parametrize("s", STAGES)
@pytest.mark.parametrize(
    ("first", "second"), [(lobatto_iiia, lobatto_iiib), (lobatto_iiic, lobatto_iiic_star), (lobatto_iiid, lobatto_iiid)]
)
def test_symplectic_pairs(first, second, s):
    assert symplecticity(first(s), second(s)) < HOLDS
    assert symplecticity(second(s), first(s)) < HOLDS
    assert symplectic_dual(first(s)) == second(s)
    assert symplectic_dual(second(s)) == first(s)
    assert symplecticity(first(s), gauss(s)) > 1e-3


@pytest.mark.parametrize("s", STAGES)
def test_adjoints(s):
    for family in (gauss, lobatto_iiia, lobatto_iiib, lobatto_iiid):
        assert adjoint(family(s)) == family(s)
    assert adjoint(lobatto_iiic(s)) == lobatto_iiic_star(s)
    assert adjoint(radau_iia(s)) == symplectic_dual(radau_ia(s))
    assert adjoint(radau_ia(s)) == symplectic_dual(radau_iia(s))


@pytest.mark.parametrize("s", STAGES)
def test_lemma_4_3_and_hypotheses_h(s):
    """Lobatto IIIA-IIIB satisfies CC^(s), DD^(s) and the hypotheses H of Jay (1996), section 4."""
    iiia, iiib = lobatto_iiia(s), lobatto_iiib(s)
    for condition in (CC, DD):
        assert condition(iiia, iiib, s) < HOLDS
        assert condition(iiia, iiib, s + 1) > 1e-20
        assert largest(condition, iiia, iiib) == s
    (A, b, c), (A_hat, b_hat, c_hat) = iiia.fractions, iiib.fractions
    assert (b, c) == (b_hat, c_hat)
    assert all(a == 0 for a in A[0]) and A[-1] == b
    assert all(row[-1] == 0 for row in A_hat) and all(row[0] == b[0] for row in A_hat)
    assert b[-1] == b[0] and abs(float(b[-1]) - 1 / (s * (s - 1))) < 1e-16
    with mpmath.workdps(110):
        A_0, A_hat_0 = iiia.exact.A[1:, :], iiib.exact.A[:, : s - 1]
        image = A_0 * A_hat_0 * mp.matrix([[c_j**k for k in range(s - 1)] for c_j in iiib.exact.c[: s - 1]])
        powers = mp.matrix([[c_i ** (k + 2) / ((k + 1) * (k + 2)) for k in range(s - 1)] for c_i in iiia.exact.c[1:]])
        # CC^(s) maps c^(k-2) to c^k / (k (k - 1)); what is missing is column s of A^_0, which is zero
        assert mp.mnorm(image - powers, 1) < HOLDS
        assert abs(mp.det(A_0 * A_hat_0)) > mp.mpf(10) ** (-3 * s)


@pytest.mark.parametrize("s", [2, 3, 5])
def test_any_pair_satisfies_what_its_methods_imply(s):
    """Q >= min(q, q^ + 1) and R >= min(r^, r + 1): Jay (1996), section 4. Lobatto IIIA-IIIB is better than that."""
    lobatto = [theory for name, theory in THEORY.items() if name.startswith("Lobatto")]
    for first in lobatto:
        for second in lobatto:
            Q, R = (largest(condition, first.family(s), second.family(s)) for condition in (CC, DD))
            assert max(1, s + min(first.C, second.C + 1)) <= Q <= s
            assert max(1, s + min(second.D, first.D + 1)) <= R <= s
    assert largest(CC, lobatto_iiib(s), lobatto_iiia(s)) == max(1, s - 2)
    assert CC(lobatto_iiia(s), lobatto_iiib(s), 1) == DD(lobatto_iiia(s), lobatto_iiib(s), 0) == 0


@pytest.mark.parametrize("s", STAGES)
def test_theorem_2_2(s):
    """The dual satisfies C(r) and D(q), and eta = min(p, 2 q + 2, 2 r + 2, q + r + 1) is the order p of b, c."""
    for theory in THEORY.values():
        dual = symplectic_dual(theory.family(s))
        p, q, r = (largest(condition, dual) for condition in (B, C, D))
        assert (p, q, r) == (2 * s + theory.B, s + theory.D, s + theory.C)
        assert min(p, 2 * q + 2, 2 * r + 2, q + r + 1) == p


@pytest.mark.parametrize("s", STAGES)
def test_theorem_3_2_no_family_is_symplectic_and_stiffly_accurate(s):
    for theory in THEORY.values():
        tableau = theory.family(s)
        assert not (stiffly_accurate(tableau) and symplecticity(tableau) < 1e-10)


@pytest.mark.parametrize("name", THEORY)
def test_adjoint_inverts_the_step_with_minus_h(name):
    """R*(-z) R(z) = 1 for the stability functions R(z) = 1 + z b^T (I - z A)^-1 1."""

    def stability(tableau, z):
        A, b, _ = tableau.exact
        return 1 + z * (b.T * mp.lu_solve(mp.eye(tableau.stages) - z * A, mp.ones(tableau.stages, 1)))[0]

    with mpmath.workdps(110):
        for s in range(THEORY[name].least, 7):
            tableau, z = THEORY[name].family(s), mp.mpf(3) / 7
            assert abs(stability(adjoint(tableau), -z) * stability(tableau, z) - 1) < HOLDS
            order = 2 * s + THEORY[name].B
            assert abs(stability(tableau, z) - mp.exp(z)) < 2 * z ** (order + 1)
