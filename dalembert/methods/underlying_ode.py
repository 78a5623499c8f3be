"""Runge-Kutta methods on the underlying ODE, with projections: the nonsymplectic alternative of Jay (1996), section 3.

Deviations from the print: the projection, which the paper does not specify, is that of `runge_kutta`, after every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dalembert import tableaux
from dalembert.methods._base import OneStepMethod
from dalembert.methods._step import Step
from dalembert.methods.runge_kutta import ALL_CONSTRAINTS, check_tableau, project
from dalembert.systems import BoundSystem
from dalembert.tableaux import Tableau


@dataclass(frozen=True)
class UnderlyingODE(OneStepMethod):
    """A Runge-Kutta method applied to the standard underlying ODE, with projection after every step.

        q' = H_p(q, p),   p' = -H_q + force - G^T(q) lambda(q, p),   lambda of (3.1f)

    "For short-time computations, a nonsymplectic alternative is to integrate the standard underlying ODE and to frequently
    project the numerical solution onto the manifolds" (Jay 1996, section 3). Without projection the constraints drift, and
    steps are not solved to round-off: measured, errors stop falling near 1e-10. Nothing is claimed for it.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.double_pendulum(), da.UnderlyingODE(da.tableaux.gauss(2)), h=0.05, steps=100)
        >>> bool(max(abs(r).max() for r in run.residuals.values()) < 1e-13)
        True

    """

    tableau: Tableau
    projected: bool = True
    reference: ClassVar[str] = "Jay (1996), section 3, (3.1f)"
    symplectic: ClassVar[bool | None] = False

    def __post_init__(self) -> None:
        check_tableau(self.tableau)

    @property
    def keeps(self) -> frozenset[str]:
        """All constraints, with projection."""
        return ALL_CONSTRAINTS if self.projected else frozenset()

    @property
    def order(self) -> dict[str, int]:
        """With projection, the order on ODEs where Butcher's simplifying assumptions settle it."""
        if not self.projected:
            return {}
        p, q, r = (tableaux.largest(condition, self.tableau) for condition in (tableaux.B, tableaux.C, tableaux.D))
        return dict.fromkeys(("q", "p", "lam"), p) if p <= min(q + r + 1, 2 * q + 2) else {}

    def equations(self, system: BoundSystem, step: Step) -> None:
        """The Runge-Kutta stages with K Lambda_i = rhs of (3.1f), L = h Lambda; then the projections."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        A, b, c = step.coefficients(self.tableau)
        anchored = bool(self.tableau.c[0] != 0)
        V = step.stage_increments("V", of="q", nodes=c, per_h=True, anchored=anchored)
        W = step.stage_increments("W", of="p", nodes=c, anchored=anchored)
        L = step.stage_impulses("L", of="lam", nodes=c)

        # fmt: off
        T, Q, P = t0 + c * h, q0 + h * V, p0 + W
        k = system.H_p(T, Q, P)
        hl = h * (system.force(T, Q, P) - system.H_q(T, Q, P)) + system.reaction(T, Q, L)
        step.combination(V, A, k)
        step.combination(W, A, hl)
        K, rhs = system.multiplier_matrix(T, Q, P), system.multiplier_rhs(T, Q, P)
        step.equation(np.stack([K[i] @ L[i] for i in range(len(c))]), h * rhs)                              # (3.1f)

        dq, dp = h * (b @ k), b @ hl
        if self.projected and system.n_holonomic:
            dq, dp = project(system, step, dq, dp, already_on_g=False)
        step.result(q=dq, p=dp, stage_lam=L[-1] / h)
        # fmt: on
