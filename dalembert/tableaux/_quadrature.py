"""Gauss, Radau and Lobatto quadrature in multiprecision, and the matrices A that conditions on top of it determine."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.tableaux._digits import DIGITS, context


@dataclass(frozen=True)
class Quadrature:
    """Nodes and weights in multiprecision, and the matrices A that conditions on top of them determine.

    With V = (c_j^(k-1))_jk, the conditions of order s read

        B(s):  V^T b = (1/k)_k,    C(s):  A V = (c_i^k / k)_ik,    D(s):  V^T diag(b) A = (b_j (1 - c_j^k) / k)_kj.
    """

    mp: Any
    c: list[Any]

    @property
    def orders(self) -> range:
        return range(1, len(self.c) + 1)

    @cached_property
    def V_inverse(self) -> Any:
        return self.mp.matrix([[c_j ** (k - 1) for k in self.orders] for c_j in self.c]) ** -1

    @cached_property
    def b(self) -> list[Any]:
        """Weights from B(s)."""
        return list(self.V_inverse.T * self.mp.matrix([self.mp.one / k for k in self.orders]))

    @cached_property
    def from_C(self) -> Any:
        """A from C(s)."""
        return self.mp.matrix([[c_i**k / k for k in self.orders] for c_i in self.c]) * self.V_inverse

    @cached_property
    def from_D(self) -> Any:
        """A from D(s)."""
        moments = [[b_j * (1 - c_j**k) / k for b_j, c_j in zip(self.b, self.c, strict=True)] for k in self.orders]
        return self.mp.diag([1 / b_i for b_i in self.b]) * self.V_inverse.T * self.mp.matrix(moments)

    @cached_property
    def from_C_and_first_column(self) -> Any:
        """A from C(s - 1) and a_i1 = b_1.

        A matrix satisfies C(s - 1) if it differs from the solution of C(s) by multiples, one for each row, of the row
        that annihilates 1, c, ..., c^(s-2): the last row of V^-1.
        """
        A, s = self.from_C.copy(), len(self.c)
        annihilator = self.V_inverse[s - 1, :]
        for i in range(s):
            A[i, :] += (self.b[0] - A[i, 0]) / annihilator[0] * annihilator
        return A

    def dual(self, A: Any) -> Any:
        """The symplectic dual b_j (1 - a_ji / b_i) of A."""
        b, stages = self.b, range(len(self.b))
        return self.mp.matrix([[b[j] * (1 - A[j, i] / b[i]) for j in stages] for i in stages])


@cache
def quadrature(s: int, alpha: int, beta: int) -> Quadrature:
    """The quadrature formula whose nodes are the zeros of P_s + alpha P_{s-1} + beta P_{s-2}.

    Inverting V loses about 0.8 s digits; the working precision leaves room for more than twice as many.
    """
    mp = context(DIGITS + 40 + 2 * s)
    polynomial = ([0] * (s - 2) + [beta, alpha, 1])[-s - 1 :]
    starts = sorted(np.polynomial.legendre.legroots(polynomial).real)
    return Quadrature(mp, [(1 + _zero(mp, polynomial, mp.mpf(float(x)))) / 2 for x in starts])


def _zero(mp: Any, polynomial: list[int], x: Any) -> Any:
    """The zero near x of a combination of Legendre polynomials on [-1, 1], by Newton's iteration to full precision."""
    for _ in range(50):
        P, dP = _legendre(mp, len(polynomial) - 1, x)
        step = mp.fdot(polynomial, P) / mp.fdot(polynomial, dP)
        x -= step
        if abs(step) < mp.mpf(10) ** (-2 * mp.dps // 3):
            return x
    raise DalembertError(f"Newton's iteration for the nodes of {len(polynomial) - 1} stages did not converge")


def _legendre(mp: Any, s: int, x: Any) -> tuple[list[Any], list[Any]]:
    """P_0, ..., P_s and their derivatives at x."""
    P, dP = [mp.one, x], [mp.zero, mp.one]
    for k in range(2, s + 1):
        P.append(((2 * k - 1) * x * P[k - 1] - (k - 1) * P[k - 2]) / k)
        dP.append(dP[k - 2] + (2 * k - 1) * P[k - 1])
    return P, dP
