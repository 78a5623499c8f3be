"""(s, s)-Gauss-Lobatto SPARK and EMPRK methods for systems with holonomic and nonholonomic constraints.

S. Small and L. O. Jay, Discontinuous collocation methods for DAEs in mechanics (2011); L. O. Jay, Specialized partitioned
additive Runge-Kutta methods for systems of overdetermined DAEs with holonomic constraints, SIAM J. Numer. Anal. 45 (2007);
A. Murua, Partitioned half-explicit Runge-Kutta methods for differential-algebraic systems of index 2, Computing 59 (1997).

Deviations from the print (Small and Jay, slides):
    - The Hamiltonian form is printed with the reaction -k_p^T psi, which holds for M = c I only: it is -k_v^T psi here.
    - The conditions on k of both methods are printed in one list. SPARK has the weighted sums and k(t_1, y_1, z_1) = 0, without
      Z~; EMPRK has k(T~_i, Y~_i, Z~_i) = 0, i = 1..s, of which the last is k(t_1, y_1, z_1) = 0.
    - For i = 0 the conditions on g and k are conditions on the start, and left out; g(T~_s, Y~_s) = 0 is g(t_1, y_1) = 0.
    - a~_is = 0, so that the sum over r in Z_i ends at j = s - 1. The moments of abar run over k = 1..s also in the theorem.
    - Collocation polynomials have degrees s-1 (Z^r), s (Z), s+1 (Z~, Z~^r), s-1 (Psi); printed are s+1, s+1, s+2, s.
    - Lambda_s and Psi_s are `stage_lam`, `stage_psi` and of low order: `run.lam` and `run.psi` solve the hidden constraints.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dalembert import tableaux
from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods._base import OneStepMethod, check_stages
from dalembert.methods._step import Step
from dalembert.systems import BoundSystem, IndexTwoDAE, System
from dalembert.tableaux import SparkTableau


class SparkEquations(OneStepMethod):
    """The step equations that both families share; subclasses add the conditions for the nonholonomic constraints.

    Unknown are Y_i, Z_i, Psi_i (i = 1..s) and Lambda_i (i = 0..s); with T_j = t_0 + c_j h and T~_j = t_0 + c~_j h,

        Y_i  = y_0 + h sum_j a_ij v(T_j, Y_j, Z_j)
        Z_i  = z_0 + h sum_j a_ij f(T_j, Y_j, Z_j, Psi_j) + h sum_{j<s} a~_ij r(T~_j, Y~_j, Lambda_j)
        Y~_i = y_0 + h sum_j abar_ij v(T_j, Y_j, Z_j),      0 = g(T~_i, Y~_i), i = 1..s     (Y~_0 = y_0, Y~_s = y_1)
        y_1  = y_0 + h sum_j b_j v_j,   z_1 = z_0 + h sum_j b_j f_j + h sum_j b~_j r_j,   0 = g_t + g_y v at (t_1, y_1, z_1)

    For systems d/dt p(t, y, z) = f + r read p(T_i, Y_i, Z_i) for Z_i, and p(t_1, y_1, z_1) for z_1.
    """

    if TYPE_CHECKING:

        @property
        def tableau(self) -> SparkTableau:
            """All coefficients."""

    serves_odae: ClassVar[bool] = True
    serves_nonholonomic: ClassVar[bool] = True
    keeps: ClassVar[frozenset[str]] = frozenset({"g", "g_dot", "k"})

    @property
    def order(self) -> dict[str, int]:
        """2s in y and z, and in the multipliers that follow from them, for Gauss-Lobatto coefficients."""
        if self.tableau != tableaux.gauss_lobatto(self.tableau.stages):
            return {}
        return dict.fromkeys(("q", "p", "lam", "psi"), 2 * self.tableau.stages)

    @property
    def symmetric(self) -> bool:
        """If the coefficients are."""
        return tableaux.spark_symmetry(self.tableau) < 1e-12

    @property
    def symplectic(self) -> bool:
        """Without nonholonomic constraints, if the coefficients are."""
        defects = tableaux.spark_symplecticity(self.tableau), tableaux.symplecticity(self.tableau.tableau)
        return max(defects) < 1e-12

    def check(self, system: System) -> None:
        """Refuse an r that depends on z: it is evaluated at Y~ only."""
        super().check(system)
        if isinstance(system, IndexTwoDAE):
            raise UnsupportedSystem(f"{self} is stated for y' = v, z' = f + r: for a DAE of index 2 use {system.served_by}")
        if "reaction" not in system.function_names:
            raise UnsupportedSystem(
                f"{self} needs constraint forces r(t, y, lam) that do not depend on z: use da.SymplecticEuler(), and "
                "da.compose for a higher order"
            )

    def equations(self, system: BoundSystem, step: Step) -> None:
        """The equations above with the unknowns V = (Y - y_0)/h, W = Z - z_0, M = h Psi, L = h Lambda."""
        h, t0, y0, z0 = step.h, step.t0, step.y0, step.z0
        A, b, c, A_tilde, b_tilde, c_tilde, A_bar, A_check = step.coefficients(self.tableau)
        V = step.stage_increments("V", of="y", nodes=c, per_h=True, anchored=True)
        W = step.stage_increments("W", of="z", nodes=c)
        M = step.stage_impulses("M", of="psi", nodes=c)
        L = step.stage_impulses("L", of="lam", nodes=c_tilde)

        T, Y, Z = t0 + c * h, y0 + h * V, z0 + W
        v, f = system.v(T, Y, Z), system.f(T, Y, Z, M / h)
        T_tilde, Y_tilde = t0 + c_tilde * h, y0 + h * (A_bar @ v)
        r = system.reaction(T_tilde, Y_tilde, L / h)
        step.equation(V, A @ v)
        step.equation(step.momentum_increments(T, Y, W), h * (A @ f + A_tilde @ r))  # a~_is = 0: Lambda_s acts on z_1
        step.position_constraint(system.g(T_tilde[1:-1], Y_tilde[1:-1]))

        dy = h * (b @ v)
        dz = step.increments_of_momentum("dz", t0 + h, y0 + dy, h * (b @ f + b_tilde @ r))
        t1, y1, z1 = t0 + h, y0 + dy, z0 + dz
        step.at_end("g", t1, y1)
        step.at_end("g_dot", t1, y1, z1)
        if system.n_nonholonomic:
            inner = slice(1, -1)
            dp_tilde = h * (A_bar @ f + A_check @ r)
            self.inner_conditions(system, step, b, c, (T, Y, Z), (T_tilde[inner], Y_tilde[inner], dp_tilde[inner]))
            step.at_end("k", t1, y1, z1)
        step.result(y=dy, z=dz, stage_lam=L[-1] / h, stage_psi=M[-1] / h)

        p0 = step.momentum0
        step.polynomial("Y", c, v, start=y0)
        step.polynomial("Z", c, f, start=p0)  # Z = Z^f + Z^r
        step.polynomial("Z", c, h * (A_tilde @ r))
        step.polynomial("Z~", c, f, start=p0)  # Z~ = Z^f + Z~^r
        step.polynomial("Z~", c_tilde, r, start=0 * p0)
        step.polynomial("lam", c_tilde, L / h)
        step.polynomial("psi", c, M / h)

    @abstractmethod
    def inner_conditions(
        self, system: BoundSystem, step: Step, b: Any, c: Any, stages: tuple[Any, Any, Any], tilde: tuple[Any, Any, Any]
    ) -> None:
        """The s - 1 conditions on k inside the step, from the stages (T, Y, Z) and, at inner nodes, (T~, Y~, Z~ - z_0)."""


class SparkConditions(SparkEquations):
    """SPARK: 0 = sum_j b_j c_j^(i-1) k(T_j, Y_j, Z_j), i = 1..s-1; 0 = k(t_1, y_1, z_1)."""

    def inner_conditions(
        self, system: BoundSystem, step: Step, b: Any, c: Any, stages: tuple[Any, Any, Any], tilde: tuple[Any, Any, Any]
    ) -> None:
        """Weighted sums of k over the stages."""
        k = system.k(*stages)
        for i in range(1, self.tableau.stages):
            step.equation((b * c ** (i - 1)) @ k, 0)


class MuruaConditions(SparkEquations):
    """EMPRK: 0 = k(T~_i, Y~_i, Z~_i), i = 1..s, with Z~_i = z_0 + h sum_j abar_ij f_j + h sum_j acheck_ij r_j; Z~_s = z_1."""

    def inner_conditions(
        self, system: BoundSystem, step: Step, b: Any, c: Any, stages: tuple[Any, Any, Any], tilde: tuple[Any, Any, Any]
    ) -> None:
        """k at the inner nodes c~_i."""
        T_tilde, Y_tilde, dp_tilde = tilde
        dz_tilde = step.increments_of_momentum("dz_tilde", T_tilde, Y_tilde, dp_tilde)
        step.equation(system.k(T_tilde, Y_tilde, step.z0 + dz_tilde), 0)


@dataclass(frozen=True)
class GaussLobattoSPARK(SparkConditions):
    """The (s, s)-Gauss-Lobatto SPARK method, of order 2s, for holonomic and nonholonomic constraints; symmetric.

    `SparkEquations` states its equations, to which it adds, for the nonholonomic constraints k,

        0 = sum_j b_j c_j^(i-1) k(T_j, Y_j, Z_j), i = 1..s-1,    0 = k(t_1, y_1, z_1)

    with Gauss coefficients for v and f and Lobatto coefficients for r. Without k it is symplectic. `stages=1` is the
    midpoint-trapezoidal method. `run.at(t)` evaluates its discontinuous collocation polynomials.

    Example:
        >>> import numpy as np, dalembert as da
        >>> knife = da.Lagrangian(lambda q, v: v @ v / 2 + q[0] / 2, dim=3,
        ...                       nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]])
        >>> run = da.simulate(knife, da.GaussLobattoSPARK(stages=2), q0=[0, 0, 0], v0=[0, 0, 1], h=0.1, steps=100)
        >>> bool(abs(run.residuals["k"]).max() < 1e-14)
        True

    """

    stages: int = 2
    reference: ClassVar[str] = "Small and Jay (2011); Jay (2007), SIAM J. Numer. Anal. 45"

    def __post_init__(self) -> None:
        check_stages("Gauss-Lobatto SPARK", self.stages, least=1)

    @property
    def tableau(self) -> SparkTableau:
        """Gauss-Lobatto."""
        return tableaux.gauss_lobatto(self.stages)


@dataclass(frozen=True)
class GaussLobattoEMPRK(MuruaConditions):
    """The (s, s)-Gauss-Lobatto EMPRK method (extended Murua's partitioned Runge-Kutta), of order 2s; symmetric.

    It differs from `GaussLobattoSPARK` in the conditions for the nonholonomic constraints k,

        0 = k(T~_i, Y~_i, Z~_i), i = 1..s,    Z~_i = z_0 + h sum_j abar_ij f_j + h sum_j acheck_ij r_j

    and coincides with it for s = 1 and where there is no k.

    Example:
        >>> import dalembert as da
        >>> da.GaussLobattoEMPRK(stages=3).order
        {'q': 6, 'p': 6, 'lam': 6, 'psi': 6}

    """

    stages: int = 2
    reference: ClassVar[str] = "Small and Jay (2011); Murua (1997), Computing 59"

    def __post_init__(self) -> None:
        check_stages("Gauss-Lobatto EMPRK", self.stages, least=1)

    @property
    def tableau(self) -> SparkTableau:
        """Gauss-Lobatto."""
        return tableaux.gauss_lobatto(self.stages)


@dataclass(frozen=True)
class SPARK(SparkConditions):
    """The SPARK method of other coefficients: any collocation method for v and f, any nodes for r.

    `tableau` comes from `da.tableaux.discontinuous_collocation`, which refuses pairs that fail the conditions of the theorem.

    Example:
        >>> import dalembert as da
        >>> pair = da.tableaux.discontinuous_collocation(da.tableaux.radau_iia(2), [0, "1/2", 1])
        >>> run = da.simulate(da.problems.pendulum(), da.SPARK(pair), h=0.01, steps=100)
        >>> bool(abs(run.residuals["g"]).max() < 1e-14)
        True

    """

    tableau: SparkTableau
    reference: ClassVar[str] = "Small and Jay (2011); Jay (2007), SIAM J. Numer. Anal. 45"

    def __post_init__(self) -> None:
        check_spark_tableau(self.tableau)


@dataclass(frozen=True)
class EMPRK(MuruaConditions):
    """The EMPRK method of other coefficients; see `SPARK`.

    Example:
        >>> import dalembert as da
        >>> da.EMPRK(da.tableaux.gauss_lobatto(2)).order == da.GaussLobattoEMPRK(2).order
        True

    """

    tableau: SparkTableau
    reference: ClassVar[str] = "Small and Jay (2011); Murua (1997), Computing 59"

    def __post_init__(self) -> None:
        check_spark_tableau(self.tableau)


def check_spark_tableau(tableau: object) -> None:
    """Refuse what is not a pair of coefficients."""
    if not isinstance(tableau, SparkTableau):
        raise InputError(f"a SPARK method takes a pair of coefficients such as da.tableaux.gauss_lobatto(2); got {tableau!r}")
