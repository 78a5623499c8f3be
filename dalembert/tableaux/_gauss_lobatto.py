"""Coefficients of the (s, s)-SPARK and EMPRK methods: Gauss-Lobatto with any s, and other pairs of nodes.

L. O. Jay, Specialized partitioned additive Runge-Kutta methods for systems of overdetermined DAEs with holonomic
constraints, SIAM J. Numer. Anal. 45 (2007); S. Small and L. O. Jay, Discontinuous collocation methods for DAEs in
mechanics (2011). Stages of the first tableau count from 1 to s, those of the second, marked ~, from 0 to s.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from operator import index
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import InputError
from dalembert.tableaux._conditions import WORKING_DIGITS, B, C, largest_defect
from dalembert.tableaux._digits import DIGITS, context, recognised, to_multiprecision
from dalembert.tableaux._families import MOST_STAGES, gauss
from dalembert.tableaux._parse import vector_of_fractions
from dalembert.tableaux._quadrature import Quadrature, quadrature
from dalembert.tableaux._tableau import Coefficients, Fractions, Matrix, Tableau, checked

Rows = tuple[tuple[Fraction, ...], ...]


class SparkFractions(NamedTuple):
    """Coefficients of a `SparkTableau` as rational numbers, rows of matrices first."""

    A: Rows
    b: tuple[Fraction, ...]
    c: tuple[Fraction, ...]
    A_tilde: Rows
    b_tilde: tuple[Fraction, ...]
    c_tilde: tuple[Fraction, ...]
    A_bar: Rows
    A_check: Rows


@dataclass(frozen=True, eq=False, repr=False)
class SparkTableau(Coefficients):
    """Coefficients of an (s, s)-SPARK or EMPRK method for y' = v(y, z), z' = f(y, z, psi) + r(y, lam), 0 = g(y), 0 = k(y, z).

    One step of size h reads, with v_j, f_j at the stages Y_j, Z_j, Psi_j and r_j at the stages Y~_j, Lambda_j::

        Y_i  = y_0 + h sum_j a_ij v_j,      Z_i  = z_0 + h sum_j a_ij f_j + h sum_j a~_ij r_j,         i = 1, ..., s
        Y~_i = y_0 + h sum_j abar_ij v_j,   Z~_i = z_0 + h sum_j abar_ij f_j + h sum_j acheck_ij r_j,  i = 0, ..., s
        y_1  = y_0 + h sum_j b_j v_j,       z_1  = z_0 + h sum_j b_j f_j + h sum_j b~_j r_j

    Sums with v_j and f_j run over j = 1, ..., s, those with r_j over j = 0, ..., s.
    Take `gauss_lobatto(s)`, or make another pair with `discontinuous_collocation`.

    Attributes:
        name: A label; it plays no part in comparisons.
        fractions: The coefficients as rational numbers, irrational ones rounded to 100 digits.
        digits: How many decimal digits of `fractions` can be trusted.
        A, b, c: s x s, s and s read-only float64 numbers, correctly rounded; `tableau` is the same as a `Tableau`.
        A_tilde, b_tilde, c_tilde: s x (s + 1), s + 1 and s + 1 numbers, for r.
        A_bar: (s + 1) x s numbers, for the stages at c~.
        A_check: (s + 1) x (s + 1) numbers, for r in the stages Z~ of EMPRK.

    Example:
        >>> from dalembert.tableaux import gauss_lobatto
        >>> gauss_lobatto(2).b_tilde
        array([0.16666667, 0.66666667, 0.16666667])

    """

    fractions: SparkFractions
    A: Matrix = field(init=False)
    b: Matrix = field(init=False)
    c: Matrix = field(init=False)
    A_tilde: Matrix = field(init=False)
    b_tilde: Matrix = field(init=False)
    c_tilde: Matrix = field(init=False)
    A_bar: Matrix = field(init=False)
    A_check: Matrix = field(init=False)

    @property
    def tableau(self) -> Tableau:
        """The Runge-Kutta method (A, b, c)."""
        return Tableau(self.name, Fractions(*self.fractions[:3]), self.digits)

    def __repr__(self) -> str:
        return f"SparkTableau({self.name!r}, stages={self.stages})"


def gauss_lobatto(s: int) -> SparkTableau:
    """The coefficients of the (s, s)-Gauss-Lobatto SPARK and EMPRK methods, of order 2 s; s = 1 is midpoint-trapezoidal.

    (A, b, c) is the s-stage Gauss method; b~ and c~ are the (s + 1)-point Lobatto quadrature; (acheck_ij) is the
    (s + 1)-stage Lobatto IIIA method; abar and a~ follow from the conditions of `discontinuous_collocation`.
    Here a~ satisfies its moment condition for k = s too: interior nodes c~_j are the zeros of P_s', and
    with q = P_s', sum_j a~_ij q(c~_j) = b~_0 P_s'(0) = (-1)^(s-1) = P_s(c_i) - P_s(0) because P_s(c_i) = 0.
    So a~_i0 = b~_0 and the conditions for k = 1, ..., s, without a~_is = 0, determine the same matrix.

    Example:
        >>> from dalembert.tableaux import gauss_lobatto
        >>> gauss_lobatto(1).A_tilde, gauss_lobatto(1).A_bar
        (array([[0.5, 0. ]]), array([[0.],
               [1.]]))

    """
    try:
        stages = index(s)
    except TypeError:
        stages = 0
    if stages < 1 or isinstance(s, bool):
        raise InputError(f"Gauss-Lobatto needs an integer s >= 1; got {s!r}")
    if stages >= MOST_STAGES:
        raise InputError(f"Gauss-Lobatto is computed with fewer than {MOST_STAGES} stages")
    return _gauss_lobatto(stages)


@cache
def _gauss_lobatto(s: int) -> SparkTableau:
    lobatto = quadrature(s + 1, 0, -1)
    c = [lobatto.mp.mpf(c_i) for c_i in quadrature(s, 0, 0).c]
    return _joined(f"Gauss-Lobatto ({s}, {s})", gauss(s), Quadrature(lobatto.mp, c), lobatto)


def discontinuous_collocation(tableau: Tableau, nodes: Iterable[Any], *, name: str = "") -> SparkTableau:
    """The coefficients of the SPARK and EMPRK methods that are discontinuous collocation at c and at c~ = `nodes`.

    For a collocation method (A, b, c) of s stages and s + 1 distinct nodes with c~_0 = 0 and c~_s = 1, they are
    determined by the theorem on discontinuous collocation of Small and Jay (2011)::

        sum_j b~_j c~_j^(k-1)        = 1/k,          k = 1, ..., s + 1
        sum_j a~_ij c~_j^(k-1)       = c_i^k / k,    k = 1, ..., s - 1,   a~_i0 = b~_0,   a~_is = 0
        sum_j abar_ij c_j^(k-1)      = c~_i^k / k,   k = 1, ..., s
        sum_j acheck_ij c~_j^(k-1)   = c~_i^k / k,   k = 1, ..., s + 1

    The theorem prints k <= s - 1 for b~ and abar; as many moments as nodes are what makes Y~_s = y_1 and Z~_s = z_1.

    Raises:
        ValueError: A condition fails; the message names it.

    Example:
        >>> from dalembert.tableaux import discontinuous_collocation, gauss, gauss_lobatto
        >>> discontinuous_collocation(gauss(2), [0, "1/2", 1]) == gauss_lobatto(2)
        True

    """
    s = checked(tableau, Tableau).stages
    c_tilde, known = vector_of_fractions("nodes", nodes, s + 1)
    tolerance = 10.0 ** (-0.8 * tableau.digits)
    if len(set(tableau.fractions.c)) < s:
        raise InputError(f"discontinuous collocation needs distinct nodes c_1, ..., c_s; {tableau.name!r} repeats one")
    for condition in (C, B):
        if condition(tableau, s) > tolerance:
            raise InputError(
                f"discontinuous collocation needs a collocation method, with C(s) and B(s); {tableau.name!r}, s = {s}, "
                f"fails {condition.__name__}({s}) by {condition(tableau, s):.1e}"
            )
    if len(set(c_tilde)) <= s or c_tilde[0] != 0 or c_tilde[-1] != 1:
        raise InputError(f"the nodes c~ must be distinct, the first 0 and the last 1; got {[float(x) for x in c_tilde]}")
    mp = context(DIGITS + 40 + 2 * s)
    lobatto = Quadrature(mp, [to_multiprecision(x, mp.dps) for x in c_tilde])
    ends = [recognised(lobatto.b[j]) for j in (0, -1)]
    if min(ends) <= 0:
        raise InputError(
            "the weights b~_0 and b~_s must be positive; these nodes have {:.3g} and {:.3g}".format(*map(float, ends))
        )
    inner = Quadrature(mp, [to_multiprecision(x, mp.dps) for x in tableau.fractions.c])
    return _joined(name or f"{tableau.name} with nodes of its own", tableau, inner, lobatto, known)


def _joined(name: str, tableau: Tableau, inner: Quadrature, lobatto: Quadrature, known: int = DIGITS) -> SparkTableau:
    """The pair of (A, b, c) with nodes `inner.c` and the quadrature `lobatto`; both come in the same precision."""
    mp, c, c_tilde, b_tilde = lobatto.mp, inner.c, lobatto.c, lobatto.b
    A_bar = mp.matrix([[x**k / k for k in inner.orders] for x in c_tilde]) * inner.V_inverse
    A_tilde = [[b_tilde[0], *row, mp.zero] for row in _between(mp, c, c_tilde[1:-1], b_tilde[0])]
    tilde = (_rows(A_tilde), tuple(map(recognised, b_tilde)), tuple(map(recognised, c_tilde)))
    fractions = SparkFractions(*tableau.fractions, *tilde, _rows(A_bar.tolist()), _rows(lobatto.from_C.tolist()))
    return SparkTableau(name, fractions, min(tableau.digits, known))


def _between(mp: Any, c: Sequence[Any], interior: Sequence[Any], b_0: Any) -> list[list[Any]]:
    """a~_i1, ..., a~_i,s-1 from the moments k = 1, ..., s - 1; a~_i0 = b~_0 enters the first of them only, c~_0 being 0."""
    if not interior:
        return [[] for _ in c]
    orders = range(1, len(c))
    moments = mp.matrix([[x**k / k - (b_0 if k == 1 else 0) for k in orders] for x in c])
    return (moments * Quadrature(mp, list(interior)).V_inverse).tolist()


def spark_conditions(spark: SparkTableau) -> dict[str, float]:
    """The largest defect of each condition under which a SPARK or EMPRK method is a discontinuous collocation method.

    About 1e-100 for `gauss_lobatto`, and about 1e-16 if coefficients were given as floats.

    Example:
        >>> from dalembert.tableaux import gauss_lobatto, spark_conditions
        >>> max(spark_conditions(gauss_lobatto(3)).values()) < 1e-90
        True

    """
    A, b, c, A_tilde, b_tilde, c_tilde, A_bar, A_check = checked(spark, SparkTableau).multiprecision(WORKING_DIGITS)
    s = spark.stages

    def moments(matrix: np.ndarray, nodes: np.ndarray, ends: np.ndarray, last: int) -> float:
        return largest_defect(matrix @ nodes ** (k - 1) - ends**k / k for k in range(1, last + 1))

    end = c_tilde[:1] * 0 + 1
    return {
        "C(s)": moments(A, c, c, s),
        "B(s)": moments(b[None], c, end, s),
        "c~_0 = 0, c~_s = 1": largest_defect([c_tilde[0], c_tilde[-1] - 1]),
        "moments of b~": moments(b_tilde[None], c_tilde, end, s + 1),
        "moments of a~": moments(A_tilde, c_tilde, c, s - 1),
        "a~_i0 = b~_0": largest_defect([A_tilde[:, 0] - b_tilde[0]]),
        "a~_is = 0": largest_defect([A_tilde[:, -1]]),
        "moments of abar": moments(A_bar, c, c_tilde, s),
        "moments of acheck": moments(A_check, c_tilde, c_tilde, s + 1),
    }


def spark_symplecticity(spark: SparkTableau) -> float:
    """The largest defect of the conditions under which the method is symplectic where there is no constraint k.

        b_i a_ij + b_j a_ji = b_i b_j,    b_i a~_ij + b~_j abar_ji = b_i b~_j

    Example:
        >>> from dalembert.tableaux import gauss_lobatto, spark_symplecticity
        >>> spark_symplecticity(gauss_lobatto(3)) < 1e-90
        True

    """
    A, b, _, A_tilde, b_tilde, _, A_bar, _ = checked(spark, SparkTableau).multiprecision(WORKING_DIGITS)
    return largest_defect([
        b[:, None] * A + A.T * b - np.outer(b, b),
        b[:, None] * A_tilde + A_bar.T * b_tilde - np.outer(b, b_tilde),
    ])  # fmt: skip


def spark_symmetry(spark: SparkTableau) -> float:
    """The largest difference between the coefficients and those of the adjoint method, stages in reversed order.

        a_ij + a_{s+1-i,s+1-j} = b_j,         a~_ij + a~_{s+1-i,s-j} = b~_j,
        abar_ij + abar_{s-i,s+1-j} = b_j,     acheck_ij + acheck_{s-i,s-j} = b~_j,    and b, b~, c, c~ are symmetric

    Example:
        >>> from dalembert.tableaux import gauss_lobatto, spark_symmetry
        >>> spark_symmetry(gauss_lobatto(3)) < 1e-90
        True

    """
    A, b, c, A_tilde, b_tilde, c_tilde, A_bar, A_check = checked(spark, SparkTableau).multiprecision(WORKING_DIGITS)
    pairs = ((A, b), (A_tilde, b_tilde), (A_bar, b), (A_check, b_tilde))
    return largest_defect([
        *(matrix + matrix[::-1, ::-1] - weights for matrix, weights in pairs),
        *(weights - weights[::-1] for weights in (b, b_tilde)),
        *(nodes + nodes[::-1] - 1 for nodes in (c, c_tilde)),
    ])  # fmt: skip


def _rows(matrix: list[list[Any]]) -> Rows:
    return tuple(tuple(map(recognised, row)) for row in matrix)
