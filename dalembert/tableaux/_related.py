"""Tableaux derived from a tableau: its symplectic dual and its adjoint."""

from dalembert.errors import InputError
from dalembert.tableaux._tableau import Fractions, Tableau, checked


def symplectic_dual(tableau: Tableau) -> Tableau:
    """The tableau with which a given one forms a symplectic partitioned Runge-Kutta method.

    Its coefficients are b^_i = b_i, c^_i = c_i and ::

        a^_ij = b_j (1 - a_ji / b_i),

    so that b_i a^_ij + b^_j a_ji = b_i b^_j, which is (2.3) of L. Jay, SIAM J. Numer. Anal. 33 (1996), Theorem 2.2.
    If (A, b, c) satisfies C(q) and D(r), the dual satisfies C(r) and D(q). The dual of the dual is the tableau itself.

    Raises:
        ValueError: Some b_i is zero.

    >>> from dalembert.tableaux import lobatto_iiia, lobatto_iiib
    >>> symplectic_dual(lobatto_iiia(4)) == lobatto_iiib(4)
    True
    """
    A, b, c = checked(tableau, Tableau).fractions
    stages = range(tableau.stages)
    for i in stages:
        if b[i] == 0:
            raise InputError(f"symplectic_dual needs every b_i nonzero; b[{i}] of {tableau.name!r} is 0")
    A_hat = tuple(tuple(b[j] * (1 - A[j][i] / b[i]) for j in stages) for i in stages)
    return Tableau(f"symplectic dual of {tableau.name}", Fractions(A_hat, b, c), tableau.digits)


def adjoint(tableau: Tableau) -> Tableau:
    """The tableau of the inverse step with -h, in which old and new state are exchanged.

    Its coefficients, with the stages in reversed order, are ::

        a*_ij = b_{s+1-j} - a_{s+1-i,s+1-j},    b*_i = b_{s+1-i},    c*_i = 1 - c_{s+1-i}

    (E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, section II.8). They belong to the
    adjoint method if b_1 + ... + b_s = 1. The adjoint of the adjoint is the tableau itself.

    >>> from dalembert.tableaux import Tableau
    >>> print(adjoint(Tableau.of([[1]], [1], name="implicit Euler")))
    adjoint of implicit Euler
    0 | 0
    --+--
      | 1
    """
    A, b, c = checked(tableau, Tableau).fractions
    reversed_stages = range(tableau.stages - 1, -1, -1)
    A_star = tuple(tuple(b[j] - A[i][j] for j in reversed_stages) for i in reversed_stages)
    b_star, c_star = tuple(b[j] for j in reversed_stages), tuple(1 - c[i] for i in reversed_stages)
    return Tableau(f"adjoint of {tableau.name}", Fractions(A_star, b_star, c_star), tableau.digits)
