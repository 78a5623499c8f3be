"""Symplectic partitioned Lobatto methods for holonomic constraints.

L. Jay, Symplectic partitioned Runge-Kutta methods for constrained Hamiltonian systems, SIAM J. Numer. Anal. 33 (1996)
368-387. Equation numbers refer to this paper.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dalembert import tableaux
from dalembert.methods._base import OneStepMethod, check_stages
from dalembert.methods._step import Step
from dalembert.systems import BoundSystem


@dataclass(frozen=True)
class LobattoIIIAB(OneStepMethod):
    """Symplectic, symmetric partitioned Runge-Kutta method of order 2s-2 that keeps all constraints.

    With k_i = H_p(Q_i, P_i) and l_i = -H_q(Q_i, P_i) + force - G^T(Q_i) Lambda_i at T_i = t_0 + c_i h,

        Q_i = q_0 + h sum_j a_ij k_j,   P_i = p_0 + h sum_j a^_ij l_j,   0 = g(T_i, Q_i)              (3.3b,c)
        q_1 = q_0 + h sum_i b_i k_i,    p_1 = p_0 + h sum_i b_i l_i                                   (3.3a)
        0 = g_t + G(q_1) H_p(q_1, p_1)                                                                (3.3d)

    where (a_ij) is Lobatto IIIA and (a^_ij) Lobatto IIIB. `run.lam` solves (3.3e). `stages=2` is RATTLE.

    Example:
        >>> import dalembert as da
        >>> da.LobattoIIIAB(stages=4).order
        {'q': 6, 'p': 6, 'lam': 6}

    """

    stages: int = 3
    reference: ClassVar[str] = "Jay (1996), SIAM J. Numer. Anal. 33, (3.3), (3.3d), (3.3e)"
    symplectic: ClassVar[bool | None] = True
    symmetric: ClassVar[bool | None] = True
    keeps: ClassVar[frozenset[str]] = frozenset({"g", "g_dot"})

    def __post_init__(self) -> None:
        check_stages("Lobatto IIIA-IIIB", self.stages, least=2)

    @property
    def order(self) -> dict[str, int]:
        """2s-2 in every component (Corollary 4.4)."""
        return dict.fromkeys(("q", "p", "lam"), 2 * self.stages - 2)

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(3.3), with the scaled unknowns V = (Q - q_0)/h, W = P - p_0, L = h Lambda."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        IIIA, IIIB = tableaux.lobatto_iiia(self.stages), tableaux.lobatto_iiib(self.stages)
        A, A_hat, b, c = IIIA.A, IIIB.A, IIIA.b, IIIA.c

        V = step.stage_increments("V", of="q", nodes=c[1:], per_h=True, anchored=True)  # Q_1 = q_0, as a_1j = 0   (3.12)
        W = step.stage_increments("W", of="p", nodes=c)
        L = step.stage_impulses("L", of="lam", nodes=c)

        T = t0 + c * h
        Q = np.stack([q0, *(q0 + h * V)])
        P = p0 + W
        k = system.H_p(T, Q, P)  # (3.3b)
        hl = h * (system.force(T, Q, P) - system.H_q(T, Q, P)) + system.reaction(T, Q, L)

        step.equation(V, A[1:] @ k)  # (3.3c)
        step.equation(W, A_hat @ hl)  # a^_is = 0, so Lambda_s acts on p_1 only         (3.10)
        step.equation(system.g(T[1:], Q[1:]) / h, 0)

        dq, dp = h * V[-1], b @ hl  # a_sj = b_j, so q_1 = Q_s                        (3.9)
        step.at_end(system.g_dot(T[-1], q0 + dq, p0 + dp))  # (3.3d)
        step.result(q=dq, p=dp)  # (3.3a)


@dataclass(frozen=True)
class Rattle(LobattoIIIAB):
    """RATTLE (Andersen 1983): the 2-stage Lobatto IIIA-IIIB method, of order 2, also for nonseparable H.

    Example:
        >>> import dalembert as da
        >>> da.Rattle().order["q"]
        2

    """

    stages: int = field(default=2, init=False)
    reference: ClassVar[str] = "Andersen (1983), J. Comput. Phys. 52; Jay (1996), section 4"
