"""Conditions on coefficients: simplifying assumptions, symplecticity, symmetry, stiff accuracy.

Each numerical condition returns its largest defect, computed in multiprecision. It is about 1e-100 if a family of
this package satisfies the condition, and about 1e-16 if the coefficients were given as floats.
"""

from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from dalembert.errors import InputError
from dalembert.tableaux._digits import DIGITS, context
from dalembert.tableaux._related import adjoint
from dalembert.tableaux._tableau import Tableau, checked

WORKING_DIGITS = DIGITS + 20
MOST = 1000
"""Conditions of higher order are not computed."""


def B(tableau: Tableau, p: int) -> float:
    """The largest defect of the quadrature conditions B.

        B(p):  sum_i b_i c_i^(k-1) = 1/k,    k = 1, ..., p

    (J. C. Butcher 1964; L. Jay 1996, Theorem 2.2.)

    >>> from dalembert.tableaux import gauss
    >>> B(gauss(3), 6) < 1e-90, B(gauss(3), 7) < 1e-90
    (True, False)
    """
    _, b, c = _numbers(tableau)
    return largest_defect(b @ c ** (k - 1) - _inverse(k) for k in _orders("B", p, first=1))


def C(tableau: Tableau, q: int) -> float:
    """The largest defect of the stage conditions C.

        C(q):  sum_j a_ij c_j^(k-1) = c_i^k / k,    i = 1, ..., s,   k = 1, ..., q

    >>> from dalembert.tableaux import lobatto_iiia
    >>> C(lobatto_iiia(3), 3) < 1e-90, C(lobatto_iiia(3), 4) < 1e-90
    (True, False)
    """
    A, _, c = _numbers(tableau)
    return largest_defect(A @ c ** (k - 1) - c**k / k for k in _orders("C", q, first=1))


def D(tableau: Tableau, r: int) -> float:
    """The largest defect of the conditions D, the counterpart of C for the columns of A.

        D(r):  sum_i b_i c_i^(k-1) a_ij = b_j (1 - c_j^k) / k,    j = 1, ..., s,   k = 1, ..., r

    >>> from dalembert.tableaux import lobatto_iiib
    >>> D(lobatto_iiib(3), 3) < 1e-90, D(lobatto_iiib(3), 4) < 1e-90
    (True, False)
    """
    A, b, c = _numbers(tableau)
    return largest_defect((b * c ** (k - 1)) @ A - b * (1 - c**k) / k for k in _orders("D", r, first=1))


def CC(tableau: Tableau, hat: Tableau, Q: int) -> float:
    """The largest defect of the conditions CC^(Q) of a pair (A, b, c) - (A^, b^, c^) with c = c^.

        CC^(Q):  sum_j sum_l a_ij a^_jl c_l^(k-2) = c_i^k / (k (k - 1)),    i = 1, ..., s,   k = 2, ..., Q

    (L. Jay 1996, section 4.)

    >>> from dalembert.tableaux import lobatto_iiia, lobatto_iiib
    >>> CC(lobatto_iiia(3), lobatto_iiib(3), 3) < 1e-90, CC(lobatto_iiia(3), lobatto_iiib(3), 4) < 1e-90
    (True, False)
    """
    _same_stages("CC", tableau, hat)
    (A, _, c), (A_hat, _, _) = _numbers(tableau), _numbers(hat)
    return largest_defect(A @ (A_hat @ c ** (k - 2)) - c**k / (k * (k - 1)) for k in _orders("CC", Q, first=2))


def DD(tableau: Tableau, hat: Tableau, R: int) -> float:
    """The largest defect of the conditions DD^(R) of a pair (A, b, c) - (A^, b^, c^) with b = b^ and c = c^.

        DD^(R):  sum_i sum_j b_i c_i^(k-2) a_ij a^_jl = b_l / k - b_l c_l / (k - 1) + b_l c_l^k / (k (k - 1)),
                 l = 1, ..., s,   k = 2, ..., R

    (L. Jay 1996, section 4.)

    >>> from dalembert.tableaux import lobatto_iiia, lobatto_iiib
    >>> DD(lobatto_iiia(3), lobatto_iiib(3), 3) < 1e-90, DD(lobatto_iiia(3), lobatto_iiib(3), 4) < 1e-90
    (True, False)
    """
    _same_stages("DD", tableau, hat)
    (A, b, c), (A_hat, _, _) = _numbers(tableau), _numbers(hat)
    return largest_defect(
        (b * c ** (k - 2)) @ A @ A_hat - b * (_inverse(k) - c / (k - 1) + c**k / (k * (k - 1)))
        for k in _orders("DD", R, first=2)
    )


def symplecticity(tableau: Tableau, hat: Tableau | None = None) -> float:
    """The largest defect of the symplecticity conditions of a pair, or of one Runge-Kutta method if `hat` is left out.

        b_i = b^_i,    b_i a^_ij + b^_j a_ji - b_i b^_j = 0,    i, j = 1, ..., s

    (L. Jay 1996, (2.3).)

    >>> from dalembert.tableaux import gauss, lobatto_iiia, lobatto_iiib
    >>> symplecticity(gauss(3)) < 1e-90, symplecticity(lobatto_iiia(3)) < 1e-90
    (True, False)
    >>> symplecticity(lobatto_iiia(3), lobatto_iiib(3)) < 1e-90
    True
    """
    hat = tableau if hat is None else hat
    _same_stages("symplecticity", tableau, hat)
    (A, b, _), (A_hat, b_hat, _) = _numbers(tableau), _numbers(hat)
    return largest_defect([b - b_hat, b[:, None] * A_hat + A.T * b_hat - np.outer(b, b_hat)])


def symmetry(tableau: Tableau) -> float:
    """The largest difference between a tableau and its adjoint, stages taken in reversed order.

        a_ij + a_{s+1-i,s+1-j} = b_j,    b_i = b_{s+1-i},    c_i + c_{s+1-i} = 1

    >>> from dalembert.tableaux import gauss, radau_iia
    >>> symmetry(gauss(3)) < 1e-90, symmetry(radau_iia(3)) < 1e-90
    (True, False)
    """
    return largest_defect(x - y for x, y in zip(_numbers(tableau), _numbers(adjoint(tableau)), strict=True))


def stiffly_accurate(tableau: Tableau, *, tolerance: float | None = None) -> bool:
    """Whether the last stage is the new state: a_sj = b_j for j = 1, ..., s (L. Jay 1996, (3.9)).

    >>> from dalembert.tableaux import gauss, radau_iia
    >>> stiffly_accurate(radau_iia(3)), stiffly_accurate(gauss(3))
    (True, False)
    """
    A, b, _ = _numbers(tableau)
    return largest_defect([A[-1] - b]) <= _accepted(tolerance, tableau)


def largest(condition: Callable[..., float], *tableaux: Tableau, tolerance: float | None = None) -> int:
    """The largest k up to 2 s for which a condition B(k), C(k), D(k), CC^(k) or DD^(k) holds, by bisection.

    A condition holds if its defect is at most `tolerance`: by default 1e-80, and 1e-12 if coefficients were given as
    floats. CC^ and DD^ start at k = 2, so that they hold for k = 1.

    >>> from dalembert.tableaux import lobatto_iiia, lobatto_iiib
    >>> [largest(condition, lobatto_iiia(5)) for condition in (B, C, D)]
    [8, 5, 3]
    >>> largest(CC, lobatto_iiia(5), lobatto_iiib(5))
    5
    """
    if not tableaux:
        raise InputError("largest needs a condition and its tableaux, as in largest(C, gauss(3))")
    accepted = _accepted(tolerance, *tableaux)
    holds, fails = 0, 2 * checked(tableaux[0], Tableau).stages + 1
    while fails - holds > 1:
        k = (holds + fails) // 2
        if condition(*tableaux, k) <= accepted:
            holds = k
        else:
            fails = k
    return holds


def _accepted(tolerance: float | None, *tableaux: Tableau) -> float:
    if tolerance is None:
        return float(10.0 ** (-0.8 * min(checked(tableau, Tableau).digits for tableau in tableaux)))
    if isinstance(tolerance, bool) or not isinstance(tolerance, Real) or not 0 <= tolerance < np.inf:
        raise InputError(f"tolerance is a number >= 0; got {tolerance!r}")
    return float(tolerance)


def _orders(condition: str, last: int, *, first: int) -> range:
    if not isinstance(last, Integral) or last < 0:
        raise InputError(f"{condition}(k) needs an integer k >= 0; got {last!r}")
    if last > MOST:
        raise InputError(f"{condition}(k) is computed up to k = {MOST}, far more than any family here satisfies")
    return range(first, int(last) + 1)


def _same_stages(condition: str, tableau: Tableau, hat: Tableau) -> None:
    if checked(tableau, Tableau).stages != checked(hat, Tableau).stages:
        raise InputError(
            f"{condition} needs two tableaux with the same number of stages; got {tableau.stages} and {hat.stages}"
        )


def _numbers(tableau: Tableau) -> tuple[np.ndarray, ...]:
    return checked(tableau, Tableau).multiprecision(WORKING_DIGITS)


def _inverse(k: int) -> Any:
    return context(WORKING_DIGITS).one / k


def largest_defect(defects: Iterable[Any]) -> float:
    """The largest absolute value in some numbers or arrays; 0 if there is none."""
    return float(max((np.max(np.abs(defect), initial=0) for defect in defects), default=0))
