"""Discrete Lagrangians as they are written: approximations of the action of one step by a few values of L.

D. Pekarek and T. D. Murphey, Discrete Lagrangian mechanics for nonseparable nonsmooth systems, Int. J. Numer. Meth. Engng
(2014), section 3.3; J. E. Marsden and M. West, Discrete mechanics and variational integrators, Acta Numerica 10 (2001).

A formula is a function of q_0, q_1, h, the Lagrangian L(t, q, v), the internal configurations Q between q_0 and q_1 (one row
each), and t_0. Where there are internal configurations, L_d is the stationary value over them.

Deviations from the print: those of `variational`, h/2 for h in the velocities of SVA and SVB above all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from dalembert.errors import InputError
from dalembert.tableaux import Tableau, lobatto_iiia
from dalembert.tableaux._tableau import Fractions


@dataclass(frozen=True, eq=False)
class ActionFormula:
    """A discrete Lagrangian as a function, and where in the step, from 0 to 1, its internal configurations stand.

    `weights` are those by which the impulses of a constraint force distribute over q_0, Q and q_1, about h weights_j lam.
    """

    L_d: Callable
    internal: Sequence[Any] = ()
    weights: Sequence[Any] = ()

    @classmethod
    def of(cls, L_d: Callable, internal: Sequence[float] = ()) -> ActionFormula:
        """With the weights of the trapezoidal rule between neighbours."""
        lengths = np.diff([0.0, *internal, 1.0])
        return cls(L_d, tuple(internal), tuple((np.append(0.0, lengths) + np.append(lengths, 0.0)) / 2))


def SE1(L: Any, t0: Any, q0: Any, q1: Any, h: Any) -> Any:
    """Symplectic Euler: p is implicit in H(q_0, p_1)."""
    return h * L(t0, q0, (q1 - q0) / h)


def SE2(L: Any, t0: Any, q0: Any, q1: Any, h: Any) -> Any:
    """The adjoint symplectic Euler method: q is implicit in H(q_1, p_0)."""
    return h * L(t0 + h, q1, (q1 - q0) / h)


def SVA(L: Any, t0: Any, q0: Any, Q: Any, q1: Any, h: Any) -> Any:
    """Stormer-Verlet as SE2 after SE1, half a step each; the velocities of the half steps are divided by h/2."""
    return h / 2 * L(t0, q0, (Q[0] - q0) / (h / 2)) + h / 2 * L(t0 + h, q1, (q1 - Q[0]) / (h / 2))


def SVB(L: Any, t0: Any, q0: Any, Q: Any, q1: Any, h: Any) -> Any:
    """Stormer-Verlet as SE1 after SE2, half a step each."""
    return h / 2 * L(t0 + h / 2, Q[0], (Q[0] - q0) / (h / 2)) + h / 2 * L(t0 + h / 2, Q[0], (q1 - Q[0]) / (h / 2))


def SVC(L: Any, t0: Any, q0: Any, q1: Any, h: Any) -> Any:
    """Stormer-Verlet as the trapezoidal rule, (26)."""
    return h / 2 * (L(t0, q0, (q1 - q0) / h) + L(t0 + h, q1, (q1 - q0) / h))


def midpoint(L: Any, t0: Any, q0: Any, q1: Any, h: Any) -> Any:
    """The midpoint rule."""
    return h * L(t0 + h / 2, (q0 + q1) / 2, (q1 - q0) / h)


NAMED = {
    "SE1": ActionFormula.of(SE1),
    "SE2": ActionFormula.of(SE2),
    "SVA": ActionFormula.of(SVA, (0.5,)),
    "SVB": ActionFormula.of(SVB, (0.5,)),
    "SVC": ActionFormula.of(SVC),
    "midpoint": ActionFormula.of(midpoint),
    "trapezoidal": ActionFormula.of(SVC),
}


def galerkin(D: Any, b: Any, c: Any) -> ActionFormula:
    """The polynomial through q_0, Q, q_1 at the nodes c, its action by the quadrature formula (b, c).

    D is the differentiation matrix of the nodes: the polynomial's velocity at node i is sum_j d_ij q_j / h.
    """

    def L_d(L: Any, t0: Any, q0: Any, Q: Any, q1: Any, h: Any) -> Any:
        nodes = np.stack([q0, *Q, q1])
        velocities = D[:, 1:] @ (nodes[1:] - q0) / h  # sum_j d_ij = 0
        return h * sum(b[i] * L(t0 + c[i] * h, nodes[i], velocities[i]) for i in range(len(c)))

    return ActionFormula(L_d, c[1:-1], b)


@cache
def lobatto_differentiation(stages: int) -> Tableau:
    """(D, b, c) of the Lobatto nodes: d_ij is the derivative at c_i of the polynomial that is 1 at c_j, 0 at the others."""
    exact = lobatto_iiia(stages).fractions
    c, nodes = exact.c, range(stages)
    factor = [_product(c[j] - c[m] for m in nodes if m != j) for j in nodes]
    off_diagonal = [[factor[i] / (factor[j] * (c[i] - c[j])) if i != j else Fraction(0) for j in nodes] for i in nodes]
    D = tuple(tuple(-sum(row, Fraction(0)) if i == j else row[j] for j in nodes) for i, row in enumerate(off_diagonal))
    return Tableau("Lobatto differentiation", Fractions(D, exact.b, c))


def _product(factors: Any) -> Fraction:
    result = Fraction(1)
    for factor in factors:
        result *= factor
    return result


def action_formula(L_d: Any, internal: Sequence[float] = ()) -> ActionFormula:
    """The formula behind a name, a function, a variational method or a formula."""
    if isinstance(L_d, ActionFormula):
        return L_d
    if isinstance(getattr(L_d, "formula", None), ActionFormula):
        return L_d.formula
    if isinstance(L_d, str) and L_d in NAMED:
        return NAMED[L_d]
    if callable(L_d):
        return ActionFormula.of(L_d, internal)
    raise InputError(
        f"a discrete Lagrangian is one of {', '.join(NAMED)}, or a function such as "
        f"lambda L, q0, q1, h: h * L(q0, (q1 - q0) / h); got {L_d!r}"
    )
