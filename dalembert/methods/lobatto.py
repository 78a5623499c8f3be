"""Symplectic partitioned Lobatto methods for holonomic constraints.

L. Jay, Symplectic partitioned Runge-Kutta methods for constrained Hamiltonian systems, SIAM J. Numer. Anal. 33 (1996)
368-387. Equation numbers refer to this paper.

Deviations from the print:
    - Forces, and arguments t at t_0 + c_i h (the paper's systems are autonomous): (3.3d) has g_t besides.
    - (2.7) is to be read with arccos(3c/2) and u = -sqrt(v); nodes are computed here from their polynomials, for any s.
    - The simplified iteration (3.15), whose block (2,3) has the wrong sign, is not used: Newton's matrix is exact.
    - Lambda_s (`stage_lam`) has order s-1 only: `run.lam` solves (3.3e).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dalembert import tableaux
from dalembert.methods._base import check_stages
from dalembert.methods._step import Step
from dalembert.methods.runge_kutta import ALL_CONSTRAINTS, PartitionedEquations
from dalembert.tableaux import Tableau


@dataclass(frozen=True)
class LobattoIIIAB(PartitionedEquations):
    """Symplectic, symmetric partitioned Runge-Kutta method of order 2s-2 that keeps all constraints.

    With k_i = H_p(Q_i, P_i) and l_i = -H_q(Q_i, P_i) + force - G^T(Q_i) Lambda_i at T_i = t_0 + c_i h,

        Q_i = q_0 + h sum_j a_ij k_j,   P_i = p_0 + h sum_j a^_ij l_j,   0 = g(T_i, Q_i)              (3.3b,c)
        q_1 = q_0 + h sum_i b_i k_i,    p_1 = p_0 + h sum_i b_i l_i                                   (3.3a)
        0 = g_t + G(q_1) H_p(q_1, p_1)                                                                (3.3d)

    where (a_ij) is Lobatto IIIA and (a^_ij) Lobatto IIIB (`PartitionedEquations` states them in code). `run.lam` solves (3.3e).
    `stages=2` is RATTLE. `run.at(t)` evaluates the (discontinuous) collocation polynomials.

    Example:
        >>> import dalembert as da
        >>> da.LobattoIIIAB(stages=4).order
        {'q': 6, 'p': 6, 'lam': 6}

    """

    stages: int = 3
    reference: ClassVar[str] = "Jay (1996), SIAM J. Numer. Anal. 33, (3.3), (3.3d), (3.3e)"
    symplectic: ClassVar[bool | None] = True
    symmetric: ClassVar[bool | None] = True
    keeps: ClassVar[frozenset[str]] = ALL_CONSTRAINTS

    def __post_init__(self) -> None:
        check_stages("Lobatto IIIA-IIIB", self.stages, least=2)

    @property
    def order(self) -> dict[str, int]:
        """2s-2 in every component (Corollary 4.4), also without constraints (Theorem 2.2)."""
        return dict.fromkeys(("q", "p", "lam"), 2 * self.stages - 2)

    @property
    def tableau(self) -> Tableau:
        """Lobatto IIIA, for q."""
        return tableaux.lobatto_iiia(self.stages)

    @property
    def hat(self) -> Tableau:
        """Lobatto IIIB, for p."""
        return tableaux.lobatto_iiib(self.stages)

    def dense_output(self, step: Step, k: np.ndarray, ell: np.ndarray, P: np.ndarray, Lam: np.ndarray) -> None:
        """Q collocates at all nodes (IIIA), P at the inner ones, with jumps at the ends (IIIB); Z~ integrates all of l."""
        nodes = self.tableau.c
        step.polynomial("Y", nodes, k, start=step.q0)
        step.polynomial("Z", nodes[:-1], P[:-1])
        step.polynomial("Z~", nodes, ell, start=step.p0)
        step.polynomial("lam", nodes, Lam)


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
