"""Runge-Kutta and partitioned Runge-Kutta methods, also for holonomic constraints in the index-3 form.

L. Jay, Symplectic partitioned Runge-Kutta methods for constrained Hamiltonian systems, SIAM J. Numer. Anal. 33 (1996)
368-387. Equation numbers refer to this paper. On systems without constraints the methods are the plain ones, (2.1).

Deviations from the print: those of `lobatto`, and the projections of section 5, which the paper leaves open: q along H_pp G^T
onto g = 0, then p along G^T onto g_t + G H_p = 0, with both matrices at the unprojected positions for q and at q_1 for p.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dalembert import tableaux
from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods._base import OneStepMethod
from dalembert.methods._step import Step
from dalembert.methods.index_two import check_runge_kutta_index_two, runge_kutta_index_two
from dalembert.systems import BoundSystem, MechanicalSystem, System
from dalembert.tableaux import Tableau

ALL_CONSTRAINTS = frozenset({"g", "g_dot"})


@functools.cache
def _failed_condition(tableau: Tableau, hat: Tableau) -> str | None:
    """The condition that a pair fails without which (3.11) has no solution in general."""
    A, A_hat = tableau.A, hat.A
    if np.any(A[0] != 0):
        return "(3.12): a_1j = 0, so that g(Q_1) = 0 is given"
    if np.any(A_hat[:, -1] != 0):
        return "(3.10): a^_is = 0, so that Lambda_s is free to fulfil the hidden constraint"
    if not tableaux.stiffly_accurate(tableau):
        return "(3.9): a_sj = b_j, so that q_1 = Q_s"
    if np.linalg.matrix_rank(A[1:] @ A_hat[:, :-1]) < tableau.stages - 1:
        return "H: A_0 A^_0 invertible"
    return None


class PartitionedEquations(OneStepMethod):
    """The step equations of every partitioned Runge-Kutta method; subclasses name the two tableaux."""

    if TYPE_CHECKING:

        @property
        def tableau(self) -> Tableau:
            """(A, b, c), for q."""

        @property
        def hat(self) -> Tableau:
            """(A^, b^, c^), for p."""

    def check(self, system: System) -> None:
        """With constraints, refuse pairs for which (3.11) has no solution in general."""
        super().check(system)
        if not system.n_holonomic:
            return
        failed = _failed_condition(self.tableau, self.hat)
        if failed:
            raise UnsupportedSystem(
                f"the pair {self.tableau.name} and {self.hat.name} cannot serve holonomic constraints, because it fails "
                f"condition {failed} (Jay 1996): use da.LobattoIIIAB(stages)"
            )

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(3.3), with the scaled unknowns V = (Q - q_0)/h, W = P - p_0, L = h Lambda."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        A, b, c = step.coefficients(self.tableau)
        A_hat, b_hat, c_hat = step.coefficients(self.hat)
        known = int(not np.any(self.tableau.A[0]))  # Q_1 = q_0 if a_1j = 0   (3.12)

        # fmt: off
        V = step.stage_increments("V", of="q", nodes=c[known:], per_h=True, anchored=bool(self.tableau.c[known] != 0))
        W = step.stage_increments("W", of="p", nodes=c_hat)
        L = step.stage_impulses("L", of="lam", nodes=c_hat)

        T, T_hat = t0 + c * h, t0 + c_hat * h
        Q = np.stack([*[q0][:known], *(q0 + h * V)])
        P = p0 + W
        k = system.H_p(T, Q, P)                                                                             # (3.3b)
        hl = h * (system.force(T_hat, Q, P) - system.H_q(T_hat, Q, P)) + system.reaction(T, Q, L)

        step.combination(V, A[known:], k)                   # V_i = sum_j a_ij k_j                            (3.3c)
        step.combination(W, A_hat, hl)                      # a^_is = 0, so Lambda_s acts on p_1 only         (3.10)
        dq, dp = h * (b @ k), b_hat @ hl
        if tableaux.stiffly_accurate(self.tableau):
            dq = h * V[-1]                                  # a_sj = b_j, so q_1 = Q_s                        (3.9)
        step.position_constraint(system.g(T[known:-1], Q[known:-1]))
        step.at_end("g", t0 + h, q0 + dq)
        step.at_end("g_dot", t0 + h, q0 + dq, p0 + dp)                                                      # (3.3d)
        step.result(q=dq, p=dp, stage_lam=L[-1] / h)                                                        # (3.3a)
        # fmt: on
        self.dense_output(step, k, hl / h, P, L / h)

    def dense_output(self, step: Step, k: np.ndarray, ell: np.ndarray, P: np.ndarray, Lam: np.ndarray) -> None:
        """State the polynomials of the step, where the method is a collocation."""


@dataclass(frozen=True)
class PartitionedRungeKutta(PartitionedEquations):
    """A partitioned Runge-Kutta method (2.1), (3.3): `tableau` for q, `hat` for p.

    Symplectic if b = b^ and b_i a^_ij + b_j a_ji = b_i b_j (Theorem 2.1). With holonomic constraints the pair must fulfil the
    hypotheses H of section 4, which Lobatto IIIA-IIIB pairs do; others are refused by name.

    Example:
        >>> import dalembert as da
        >>> pair = da.PartitionedRungeKutta(da.tableaux.lobatto_iiia(3), da.tableaux.lobatto_iiib(3))
        >>> pair.order
        {'q': 4, 'p': 4, 'lam': 4}

    """

    tableau: Tableau
    hat: Tableau
    reference: ClassVar[str] = "Jay (1996), SIAM J. Numer. Anal. 33, (2.1), (3.3)"
    keeps: ClassVar[frozenset[str]] = ALL_CONSTRAINTS

    def __post_init__(self) -> None:
        for name in ("tableau", "hat"):
            check_tableau(getattr(self, name))
        if self.tableau.stages != self.hat.stages:
            raise InputError(f"the two tableaux must have equally many stages; got {self.tableau.stages} and {self.hat.stages}")

    @property
    def symplectic(self) -> bool:
        """Whether (2.3) holds."""
        return tableaux.symplecticity(self.tableau, self.hat) < 1e-12

    @property
    def symmetric(self) -> bool:
        """Whether both tableaux are symmetric."""
        return tableaux.symmetry(self.tableau) < 1e-12 and tableaux.symmetry(self.hat) < 1e-12

    @property
    def order(self) -> dict[str, int]:
        """The order that Theorems 4.1 and 4.2 guarantee, from the simplifying assumptions that the coefficients fulfil."""
        T, T_hat = self.tableau, self.hat
        p, q, r = (tableaux.largest(condition, T) for condition in (tableaux.B, tableaux.C, tableaux.D))
        q_hat, r_hat = (tableaux.largest(condition, T_hat) for condition in (tableaux.C, tableaux.D))
        Q, R = (tableaux.largest(condition, T, T_hat) for condition in (tableaux.CC, tableaux.DD))
        ell = min(
            p, 2 * q + 2, 2 * q_hat + 2, q + r + 1, q + r_hat + 2, q_hat + r + 2, q_hat + r_hat + 1, 2 * Q - 1, Q + r_hat, Q + R
        )  # fmt: skip  (4.2)
        return dict.fromkeys(("q", "p", "lam"), ell)


class RungeKuttaEquations(OneStepMethod):
    """The step equations of every Runge-Kutta method; subclasses name the tableau."""

    if TYPE_CHECKING:
        projected: bool

        @property
        def tableau(self) -> Tableau:
            """(A, b, c)."""

    @property
    def keeps(self) -> frozenset[str]:
        """All holonomic constraints with projection; without, g and nonholonomic constraints if q_1 = Q_s."""
        if self.projected:
            return ALL_CONSTRAINTS
        return frozenset({"g", "k"}) if tableaux.stiffly_accurate(self.tableau) else frozenset()

    @property
    def symplectic(self) -> bool:
        """Whether (2.3) holds; projection destroys it."""
        return not self.projected and tableaux.symplecticity(self.tableau) < 1e-12

    @property
    def symmetric(self) -> bool:
        """Whether the tableau is symmetric, without constraints; projection destroys it, and so does Z_1 of Lobatto IIIA."""
        return not self.projected and tableaux.symmetry(self.tableau) < 1e-12

    serves_odae: ClassVar[bool] = True
    serves_nonholonomic: ClassVar[bool] = True

    def check(self, system: System) -> None:
        """With constraints, refuse singular matrices A, for which the stage equations have no solution."""
        super().check(system)
        if system.n_nonholonomic or not isinstance(system, MechanicalSystem):
            check_runge_kutta_index_two(self.tableau, self, system)
        if self.projected and system.n_nonholonomic:
            raise UnsupportedSystem(f"{self} projects onto holonomic constraints only: use da.SRK, whose results fulfil 0 = k")
        if system.n_holonomic and np.linalg.matrix_rank(self.tableau.A) < self.tableau.stages:
            raise UnsupportedSystem(
                f"{self.tableau.name} cannot serve holonomic constraints, because its matrix A is singular: use "
                "da.RadauIIA(stages), or da.LobattoIIIAB(stages) for a symplectic method"
            )

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(3.3a,b,c) with A^ = A, then the projections onto (3.1c) and (3.1d) if asked for; or (2.15) of Hilden (2009)."""
        if system.n_nonholonomic or not isinstance(system.definition, MechanicalSystem):
            runge_kutta_index_two(self.tableau, system, step)
            return
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        A, b, c = step.coefficients(self.tableau)

        # fmt: off
        V = step.stage_increments("V", of="q", nodes=c, per_h=True, anchored=bool(self.tableau.c[0] != 0))
        W = step.stage_increments("W", of="p", nodes=c, anchored=bool(self.tableau.c[0] != 0))
        L = step.stage_impulses("L", of="lam", nodes=c)

        T, Q, P = t0 + c * h, q0 + h * V, p0 + W
        k = system.H_p(T, Q, P)                                                                             # (3.3b)
        hl = h * (system.force(T, Q, P) - system.H_q(T, Q, P)) + system.reaction(T, Q, L)

        step.combination(V, A, k)                           # V_i = sum_j a_ij k_j                            (3.3c)
        step.combination(W, A, hl)
        dq, dp = h * (b @ k), b @ hl                                                                        # (3.3a)
        on_g = tableaux.stiffly_accurate(self.tableau)
        if on_g:
            dq, dp = h * V[-1], W[-1]                                                                       # (3.9)
        step.position_constraint(system.g(T[:-1], Q[:-1]) if on_g else system.g(T, Q))
        if on_g:
            step.at_end("g", t0 + h, q0 + dq)
        ends = [dq, dp]
        if self.projected and system.n_holonomic:
            dq, dp = project(system, step, dq, dp, already_on_g=on_g)
        step.result(q=dq, p=dp, stage_lam=L[-1] / h)
        # fmt: on
        if tableaux.largest(tableaux.C, self.tableau) >= self.tableau.stages:
            self.dense_output(step, k, hl / h, L / h, [(dq - ends[0]) / h, (dp - ends[1]) / h])

    def dense_output(self, step: Step, k: np.ndarray, ell: np.ndarray, Lam: np.ndarray, projections: list[np.ndarray]) -> None:
        """C(s): Q and P lie on polynomials whose rates are k and l at the nodes; projections grow with time."""
        nodes = self.tableau.c
        step.polynomial("Y", nodes, k, start=step.q0)
        step.polynomial("Z", nodes, ell, start=step.p0)
        step.polynomial("Z~", nodes, ell, start=step.p0)
        if self.projected:
            for name, start, rate in zip(("Y", "Z~"), (step.q0, step.p0), projections, strict=True):
                step.polynomial(name, nodes[:1], [rate], start=0 * start)
        step.polynomial("lam", nodes, Lam)


def project(system: BoundSystem, step: Step, dq: np.ndarray, dp: np.ndarray, *, already_on_g: bool) -> tuple:
    """Project the end of a step onto the constraints: q along H_pp G^T onto g = 0, then p along G^T onto g_t + G H_p = 0."""
    h, t1, q0, p0 = step.h, step.t0 + step.h, step.q0, step.p0
    if not already_on_g:
        mu = step.corrections("mu", system.n_holonomic)
        dq = dq - h * (system.H_pp(t1, q0 + dq, p0 + dp) @ (system.G(t1, q0 + dq).T @ mu))
        step.at_end("g", t1, q0 + dq)
    nu = step.corrections("nu", system.n_holonomic)
    dp = dp - system.G(t1, q0 + dq).T @ nu
    step.at_end("g_dot", t1, q0 + dq, p0 + dp)
    return dq, dp


def check_tableau(tableau: object) -> None:
    """Refuse what is not a tableau."""
    if not isinstance(tableau, Tableau):
        raise InputError(f"a Runge-Kutta method takes a da.Tableau, such as da.tableaux.gauss(2); got {tableau!r}")


@dataclass(frozen=True)
class RungeKutta(RungeKuttaEquations):
    """The Runge-Kutta method of a tableau, plain or with projections after every step.

    On systems with holonomic constraints it is applied to the index-3 form (3.3a,b,c), which needs an invertible A. `projected`
    moves the result of every step onto g = 0 (along H_pp g_q^T) and onto the hidden constraint (along g_q^T).

    Example:
        >>> import dalembert as da
        >>> midpoint = da.RungeKutta(da.Tableau.of([["1/2"]], [1], name="midpoint rule"))
        >>> midpoint.symplectic, midpoint.symmetric
        (True, True)

    """

    tableau: Tableau
    projected: bool = False
    reference: ClassVar[str] = "Jay (1996), SIAM J. Numer. Anal. 33, (3.3a,b,c)"

    def __post_init__(self) -> None:
        check_tableau(self.tableau)

    @property
    def order(self) -> dict[str, int]:
        """Nothing is claimed for a general tableau; see `da.Gauss`, `da.RadauIIA`."""
        return {}
