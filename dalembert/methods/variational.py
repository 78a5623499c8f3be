"""Variational integrators: the one-step map of a discrete Lagrangian.

D. Pekarek and T. D. Murphey, Discrete Lagrangian mechanics for nonseparable nonsmooth systems, Int. J. Numer. Meth. Engng
(2014), section 3, and J. E. Marsden and M. West, Discrete mechanics and variational integrators, Acta Numerica 10 (2001)
357-514. Equation numbers refer to the former.

Deviations from the print:
    - The velocities of L_d^SVA and L_d^SVB are divided by h/2 (`_action`); printed is h. Their 'min' is a stationary value.
    - Holonomic constraints, which the paper does not have: impulses -G^T h Lambda at all configurations of the step, as
      `Variational` says.
    - L and forces may depend on t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dalembert.errors import InputError
from dalembert.methods._action import ActionFormula, action_formula, galerkin, lobatto_differentiation
from dalembert.methods._base import OneStepMethod, check_stages
from dalembert.methods._discrete_lagrangian import discrete_lagrangian
from dalembert.methods._step import Step
from dalembert.methods.runge_kutta import ALL_CONSTRAINTS
from dalembert.systems import BoundSystem, System


class VariationalEquations(OneStepMethod):
    """The step equations of every discrete Lagrangian; subclasses name it."""

    reference: ClassVar[str] = "Pekarek and Murphey (2014), section 3; Marsden and West (2001), Acta Numerica 10"
    symplectic: ClassVar[bool | None] = True
    keeps: ClassVar[frozenset[str]] = ALL_CONSTRAINTS

    if TYPE_CHECKING:

        @property
        def formula(self) -> ActionFormula:
            """The discrete Lagrangian as a function of (L, t0, q0, Q, q1, h)."""

        @property
        def _order(self) -> int | None: ...

    def _formula(self, step: Step) -> ActionFormula:
        return self.formula

    @property
    def order(self) -> dict[str, int]:
        """That of the discrete Lagrangian as an approximation of the action (Marsden and West, Theorem 2.3.1)."""
        return {} if self._order is None else dict.fromkeys(("q", "p", "lam"), self._order)

    def check(self, system: System) -> None:
        """Refuse systems whose Lagrangian is not at hand, and discrete Lagrangians that fail on them."""
        super().check(system)
        discrete_lagrangian(system, self)

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(15) with (16), with the scaled unknowns V = (q - q_0)/h, L = h Lambda."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        formula = self._formula(step)
        L_d = discrete_lagrangian(system.definition, formula)
        c = np.array([*formula.internal, 1.0])

        # fmt: off
        V = step.stage_increments("V", of="q", nodes=c, per_h=True, anchored=True)
        L = step.stage_impulses("L", of="lam", nodes=[0.0, *c])

        T, Q = t0 + np.array([0.0, *c]) * h, np.stack([q0, *(q0 + h * V)])
        J, dp = L_d.impulses(step, V)                       # D_1 L_d + f^-, internal ones, D_2 L_d + f^+
        R = np.array(formula.weights)[:, None] * system.reaction(T, Q, L)

        step.equation(J[0] + R[0], -p0)                                                                     # (14)
        step.equation(J[1:-1] + R[1:-1], 0)                 # L_d is stationary in the internal configurations
        step.position_constraint(system.g(T[1:-1], Q[1:-1]))

        dq, dp = h * V[-1], dp + np.sum(R, axis=0)          # the sum of all of these with p_1 = J_s + R_s    (13)
        step.at_end("g", t0 + h, q0 + dq)
        step.at_end("g_dot", t0 + h, q0 + dq, p0 + dp)
        step.result(q=dq, p=dp, stage_lam=L[-1] / h)
        # fmt: on


@dataclass(frozen=True)
class Variational(VariationalEquations):
    """The variational integrator of a discrete Lagrangian L_d(q_0, q_1, h), symplectic whatever L_d is.

        p_0 = -D_1 L_d(q_0, q_1, h) - f^-,   p_1 = D_2 L_d(q_0, q_1, h) + f^+                          (13), (14), (15)

    `L_d` is one of the names

        "SE1"                h L(q_0, v), v = (q_1 - q_0)/h: symplectic Euler, of order 1
        "SE2"                h L(q_1, v): its adjoint
        "SVA", "SVB"         Stormer-Verlet as SE2 after SE1 and as SE1 after SE2, half a step each
        "SVC", "trapezoidal" h/2 (L(q_0, v) + L(q_1, v)): Stormer-Verlet as a trapezoidal rule                       (26)
        "midpoint"           h L((q_0 + q_1)/2, v): the implicit midpoint rule

    or a function of the arguments that it names, out of `L`, `q0`, `q1`, `h`, `t0`, `Q` and the parameters of the model;
    `L(q, v)` or `L(t, q, v)` is the Lagrangian of the system. `internal` places internal configurations in the step, between
    0 and 1: the rows of `Q`, at whose stationary value L_d is taken.

    Forces act through the discrete Lagrange-d'Alembert principle (16): wherever L_d samples L with the weight h b_i, it
    samples the virtual work force(t_i, q_i, v_i) . delta q_i with the same weight, which gives f^- and f^+. Holonomic
    constraints are imposed at q_1 and at the internal configurations, with impulses -G^T h Lambda at these and at q_0, and
    p_1 is on the hidden constraint.

    Example:
        >>> import dalembert as da
        >>> oscillator = da.Lagrangian(lambda q, v: (v @ v - q @ q) / 2, dim=1)
        >>> simpson = da.Variational(lambda L, q0, q1, h: h / 6 * (
        ...     L(q0, (q1 - q0) / h) + 4 * L((q0 + q1) / 2, (q1 - q0) / h) + L(q1, (q1 - q0) / h)))
        >>> run = da.simulate(oscillator, simpson, q0=[1.0], p0=[0.0], h=0.1, steps=1000)
        >>> bool(abs(run.energy - 0.5).max() < 1e-3)
        True

    """

    L_d: str | Callable[..., Any]
    internal: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        action_formula(self.L_d)
        if not isinstance(self.internal, (tuple, list)) or not all(isinstance(c, (int, float)) for c in self.internal):
            raise InputError(
                f"internal places internal configurations in the step, as in internal=(0.5,); got {self.internal!r}"
            )
        object.__setattr__(self, "internal", tuple(float(c) for c in self.internal))
        if self.internal and isinstance(self.L_d, str):
            raise InputError(f"the discrete Lagrangian {self.L_d} brings its own internal configurations: leave internal out")
        places = (0.0, *self.internal, 1.0)
        if any(not left < right for left, right in pairwise(places)):
            raise InputError(f"internal places must rise between 0 and 1, as in internal=(1/3, 2/3); got {self.internal}")

    @property
    def formula(self) -> ActionFormula:
        """The discrete Lagrangian as a function of (L, t0, q0, Q, q1, h)."""
        return action_formula(self.L_d, self.internal)

    @property
    def symmetric(self) -> bool | None:
        """L_d(q_0, q_1, h) = -L_d(q_1, q_0, -h), which only the two symplectic Euler methods fail; unknown for functions."""
        return self.L_d not in ("SE1", "SE2") if isinstance(self.L_d, str) else None

    @property
    def _order(self) -> int | None:
        return (1 if self.L_d in ("SE1", "SE2") else 2) if isinstance(self.L_d, str) else None

    def __str__(self) -> str:
        if isinstance(self.L_d, str):
            return f"da.Variational(L_d={self.L_d!r})"
        internal = f", internal={self.internal}" if self.internal else ""
        return f"da.Variational(L_d={getattr(self.L_d, '__name__', type(self.L_d).__name__)}{internal})"


@dataclass(frozen=True)
class LobattoGalerkin(VariationalEquations):
    """The variational integrator of order 2s-2 of polynomials of degree s-1 and Lobatto quadrature with s nodes.

        L_d(q_0, q_1, h) = h sum_i b_i L(t_0 + c_i h, q(c_i h), q'(c_i h)), stationary in q(c_2 h), ..., q(c_{s-1} h)

    where q is the polynomial through its values at the nodes, q(0) = q_0 and q(h) = q_1. Forces and constraints act at the
    nodes. `stages=2` is the trapezoidal rule, "SVC".

    Where L = v^T M v / 2 - U(t, q) with a constant M, the map is that of the Lobatto IIIA-IIIB pair (Marsden and West 2001,
    section 2.6): its stage velocities M^-1 P_i lie on a polynomial of degree s-2, as q'(c_i h) does. For other L the two are
    different methods of the same order.

    Example:
        >>> import dalembert as da
        >>> da.LobattoGalerkin(stages=4).order
        {'q': 6, 'p': 6, 'lam': 6}

    """

    stages: int = 3
    reference: ClassVar[str] = "Marsden and West (2001), Acta Numerica 10, section 2.6"
    symmetric: ClassVar[bool | None] = True

    def __post_init__(self) -> None:
        check_stages("Lobatto-Galerkin", self.stages, least=2)

    @property
    def formula(self) -> ActionFormula:
        """The discrete Lagrangian as a function of (L, t0, q0, Q, q1, h)."""
        nodes = lobatto_differentiation(self.stages)
        return galerkin(nodes.A, nodes.b, nodes.c)

    def _formula(self, step: Step) -> ActionFormula:
        return galerkin(*step.coefficients(lobatto_differentiation(self.stages)))

    @property
    def _order(self) -> int:
        return 2 * self.stages - 2
