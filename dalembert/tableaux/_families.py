"""Gauss, Radau and Lobatto methods with any number of stages, from their defining conditions.

The nodes c_i of all of them are the zeros of P_s + alpha P_{s-1} + beta P_{s-2}, with P_k the Legendre polynomials
shifted to [0, 1]; B(s) then gives the weights. What distinguishes methods with the same nodes is one further condition
that gives A (E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, section IV.5; L. O. Jay, Lobatto
methods, Encyclopedia of Applied and Computational Mathematics, Springer 2015).
"""

from collections.abc import Callable
from functools import cache
from operator import index
from typing import Any, NamedTuple

from dalembert.errors import InputError
from dalembert.tableaux._digits import recognised
from dalembert.tableaux._quadrature import Quadrature, quadrature
from dalembert.tableaux._tableau import Fractions, Tableau


def gauss(s: int) -> Tableau:
    """The s-stage Gauss method, of order 2 s: symplectic and symmetric.

    c_1, ..., c_s are the zeros of P_s; b from B(s), A from C(s). Satisfies B(2 s), C(s), D(s).
    Butcher (1964), Kuntzmann (1961); Hairer and Wanner II, section IV.5.

    >>> gauss(2).b
    array([0.5, 0.5])
    """
    return _member("Gauss", s)


def radau_ia(s: int) -> Tableau:
    """The s-stage Radau IA method, of order 2 s - 1.

    c_1 = 0, ..., c_s are the zeros of P_s + P_{s-1}; b from B(s), A from D(s). Satisfies B(2 s - 1), C(s - 1), D(s).
    Ehle (1969); Hairer and Wanner II, section IV.5.

    >>> print(radau_ia(2))
    Radau IA
      0 | 1/4  -1/4
    2/3 | 1/4  5/12
    ----+----------
        | 1/4   3/4
    """
    return _member("Radau IA", s)


def radau_iia(s: int) -> Tableau:
    """The s-stage Radau IIA method, of order 2 s - 1: stiffly accurate.

    c_1, ..., c_s = 1 are the zeros of P_s - P_{s-1}; b from B(s), A from C(s). Satisfies B(2 s - 1), C(s), D(s - 1).
    Ehle (1969); Hairer and Wanner II, section IV.5.

    >>> print(radau_iia(2))
    Radau IIA
    1/3 | 5/12  -1/12
      1 |  3/4    1/4
    ----+------------
        |  3/4    1/4
    """
    return _member("Radau IIA", s)


def lobatto_iiia(s: int) -> Tableau:
    """The s-stage Lobatto IIIA method, of order 2 s - 2: symmetric and stiffly accurate, with a_1j = 0.

    c_1 = 0, ..., c_s = 1 are the zeros of P_s - P_{s-2}; b from B(s), A from C(s).
    Satisfies B(2 s - 2), C(s), D(s - 2). Its symplectic dual is Lobatto IIIB.
    Ehle (1969); L. Jay, SIAM J. Numer. Anal. 33 (1996), Tables 2.1 and 2.2.

    >>> print(lobatto_iiia(2))
    Lobatto IIIA
    0 |   0    0
    1 | 1/2  1/2
    --+---------
      | 1/2  1/2
    """
    return _member("Lobatto IIIA", s)


def lobatto_iiib(s: int) -> Tableau:
    """The s-stage Lobatto IIIB method, of order 2 s - 2: symmetric, with a_i1 = b_1 and a_is = 0.

    c and b as in Lobatto IIIA, A from D(s).
    Satisfies B(2 s - 2), C(s - 2), D(s); for s = 2 the row sums of A are not c. Its symplectic dual is Lobatto IIIA.
    Ehle (1969); L. Jay, SIAM J. Numer. Anal. 33 (1996), Tables 2.1 and 2.2.

    >>> print(lobatto_iiib(2))
    Lobatto IIIB
    0 | 1/2    0
    1 | 1/2    0
    --+---------
      | 1/2  1/2
    """
    return _member("Lobatto IIIB", s)


def lobatto_iiic(s: int) -> Tableau:
    """The s-stage Lobatto IIIC method, of order 2 s - 2: stiffly accurate.

    c and b as in Lobatto IIIA, A from a_i1 = b_1 and C(s - 1). Satisfies B(2 s - 2), C(s - 1), D(s - 1).
    Its symplectic dual, which is also its adjoint, is Lobatto IIIC*.
    Chipman (1971); Hairer and Wanner II, section IV.5.

    >>> print(lobatto_iiic(2))
    Lobatto IIIC
    0 | 1/2  -1/2
    1 | 1/2   1/2
    --+----------
      | 1/2   1/2
    """
    return _member("Lobatto IIIC", s)


def lobatto_iiic_star(s: int) -> Tableau:
    """The s-stage Lobatto IIIC* method, of order 2 s - 2, with a_1j = 0 and a_is = 0.

    c and b as in Lobatto IIIA; A is the symplectic dual of Lobatto IIIC, a*_ij = b_j (1 - a_ji / b_i).
    Satisfies B(2 s - 2), C(s - 1), D(s - 1). It is Butcher's Lobatto III method (1964).
    L. Jay, SIAM J. Sci. Comput. 20 (1998); Encyclopedia of Applied and Computational Mathematics (2015).

    >>> print(lobatto_iiic_star(2))
    Lobatto IIIC*
    0 |   0    0
    1 |   1    0
    --+---------
      | 1/2  1/2
    """
    return _member("Lobatto IIIC*", s)


def lobatto_iiid(s: int) -> Tableau:
    """The s-stage Lobatto IIID method, of order 2 s - 2: symplectic and symmetric.

    c and b as in Lobatto IIIA; A is the mean of Lobatto IIIC and IIIC*. Satisfies B(2 s - 2), C(s - 1), D(s - 1).
    Another 3-stage tableau of this name, with first row 1/6, 0, -1/6, is in circulation; it is not symplectic.
    R. P. K. Chan, Computing 45 (1990); L. Jay, SIAM J. Sci. Comput. 20 (1998).

    >>> print(lobatto_iiid(2))
    Lobatto IIID
    0 | 1/4  -1/4
    1 | 3/4   1/4
    --+----------
      | 1/2   1/2
    """
    return _member("Lobatto IIID", s)


def _iiic(rule: Quadrature) -> Any:
    return rule.from_C_and_first_column


def _iiic_star(rule: Quadrature) -> Any:
    return rule.dual(_iiic(rule))


def _iiid(rule: Quadrature) -> Any:
    return (_iiic(rule) + _iiic_star(rule)) / 2


class _Family(NamedTuple):
    least: int
    """The smallest number of stages."""
    alpha: int
    beta: int
    """The nodes are the zeros of P_s + alpha P_{s-1} + beta P_{s-2}."""
    matrix: Callable[[Quadrature], Any]


_FAMILIES = {
    "Gauss": _Family(1, 0, 0, lambda rule: rule.from_C),
    "Radau IA": _Family(1, 1, 0, lambda rule: rule.from_D),
    "Radau IIA": _Family(1, -1, 0, lambda rule: rule.from_C),
    "Lobatto IIIA": _Family(2, 0, -1, lambda rule: rule.from_C),
    "Lobatto IIIB": _Family(2, 0, -1, lambda rule: rule.from_D),
    "Lobatto IIIC": _Family(2, 0, -1, _iiic),
    "Lobatto IIIC*": _Family(2, 0, -1, _iiic_star),
    "Lobatto IIID": _Family(2, 0, -1, _iiid),
}


MOST_STAGES = 200


def _member(name: str, s: Any) -> Tableau:
    """The tableau with s stages of the family with that name."""
    least = _FAMILIES[name].least
    try:
        stages = index(s)
    except TypeError:
        stages = None
    if stages is None or isinstance(s, bool):
        raise InputError(f"{name} needs an integer number of stages; got {s!r}")
    if stages < least:
        raise InputError(f"{name} needs stages >= {least}; got {stages}")
    if stages > MOST_STAGES:
        raise InputError(f"{name} is computed with at most {MOST_STAGES} stages, far more than double precision has use for")
    return _built(name, stages)


@cache
def _built(name: str, s: int) -> Tableau:
    family = _FAMILIES[name]
    rule = quadrature(s, family.alpha, family.beta)
    A = tuple(tuple(recognised(a) for a in row) for row in family.matrix(rule).tolist())
    return Tableau(name, Fractions(A, tuple(map(recognised, rule.b)), tuple(map(recognised, rule.c))))
