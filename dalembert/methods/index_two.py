"""Runge-Kutta methods for DAEs of index 2, among them mechanical systems with nonholonomic constraints.

S. K. Hilden, Numerical methods for nonholonomic mechanics, Master's thesis, NTNU (2009), chapter 2: equation numbers refer to
it. L. O. Jay, Solution of index 2 implicit differential-algebraic equations by Lobatto Runge-Kutta methods, BIT 43 (2003);
Specialized Runge-Kutta methods for index 2 differential-algebraic equations, Math. Comp. 75 (2006).

Deviations from the print:
    - (2.15b) has indices i in T_i, Y_i, Z_i on the right, where j is meant.
    - (2.4) is 0 = g_y f (and g_t), by which z is defined at the start and in `run.psi`; (2.5) is its derivative by t.
    - The reaction is -k_v^T psi, where (2.24b) and (2.25) have +A^T lambda: psi is -lambda.
    - (2.26) is printed without t: g and f are taken at T_j here. The rows of (2.27) are in another order, which leaves the
      solution as it is.
    - z is not propagated. Newton's first guess is not (2.22): with Z_s carried over it finds the other branch of (2.28) for
      large h. In Lobatto IIIA, where 0 = g(T_1, Y_1) is given, Z_1 solves the hidden constraint at y_0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dalembert import tableaux
from dalembert.errors import InputError, UnsupportedSystem, is_one_of
from dalembert.methods._base import OneStepMethod, check_stages
from dalembert.methods._index_two_equations import IndexTwoForm, check_index_two
from dalembert.methods._step import Step
from dalembert.systems import BoundSystem, IndexTwoDAE, System
from dalembert.tableaux import Tableau


def runge_kutta_index_two(tableau: Tableau, system: BoundSystem, step: Step) -> None:
    """(2.15): Y_i = y_0 + h sum_j a_ij f(T_j, Y_j, Z_j), 0 = g(T_i, Y_i), y_1 = y_0 + h sum_i b_i f(T_i, Y_i, Z_i)."""
    h, t0 = step.h, step.t0
    A, b, c = step.coefficients(tableau)
    form = IndexTwoForm(system, step, c, anchored=bool(tableau.c[0] != 0))
    # fmt: off
    T, Y, Z = t0 + c * h, form.Y, form.Z
    f = form.f(T, Y, Z)
    form.stages(A @ f)                                                                                      # (2.15b)
    last = len(c) - int(tableaux.stiffly_accurate(tableau))
    if not np.any(tableau.A[0]):
        # Y_1 = y_0: 0 = g(T_1, Y_1) is given, and Z_1 = z_0 solves the hidden constraint there (Lobatto IIIA)
        step.equation(form.hidden(t0, form.y0, Z[0]), 0)
        step.equation(form.g(T[1:last], Y[1:last]), 0)                                                      # (2.15c)
    else:
        step.equation(form.g(T[:last], Y[:last]), 0)                                                        # (2.15c)
    rate = b @ f
    if last < len(c):
        form.constraint_at_end(rate)  # a_sj = b_j, so Y_s = y_1
    form.end(rate)                                                                                          # (2.15a)
    # fmt: on


def check_runge_kutta_index_two(tableau: Tableau, method: object, system: System) -> None:
    """Refuse coefficients for which (2.15) has no solution."""
    check_index_two(method, system)
    if not system.n_multipliers:
        return
    known = int(not np.any(tableau.A[0]))
    if np.linalg.matrix_rank(tableau.A[known:, known:]) < tableau.stages - known:
        raise UnsupportedSystem(
            f"{tableau.name} cannot serve constraints on velocities or DAEs of index 2, because its matrix A is singular: use "
            "da.RadauIIA(stages), da.SRK('gauss', stages) or da.LobattoSPARK(stages)"
        )


class IndexTwoMethod(OneStepMethod):
    """What all methods of this file are."""

    serves_odae: ClassVar[bool] = True
    serves_nonholonomic: ClassVar[bool] = True
    keeps: ClassVar[frozenset[str]] = frozenset({"k"})

    def check(self, system: System) -> None:
        """Refuse holonomic constraints."""
        super().check(system)
        check_index_two(self, system)


@dataclass(frozen=True)
class LobattoSPARK(IndexTwoMethod):
    """The s-stage Lobatto IIIA-B-C-C*-D SPARK method for DAEs of index 2, of order 2s-2.

        Y_i = y_0 + h sum_m sum_j a_ij,m f_m(T_j, Y_j, Z_j)                                                       (2.20a)
        0 = sum_j q_ij g(T_j, Y_j) + q_i,s+1 g(t_1, y_1),   y_1 = y_0 + h sum_j b_j f(T_j, Y_j, Z_j)               (2.20b,c)

    The part f_m is treated with the m-th of the coefficients Lobatto IIIA, IIIB, IIIC, IIIC*, IIID; f_1 must not depend on z.
    The rows q_i are L times the rows of IIIA but the first, and g(t_1, y_1) (2.19): any invertible `L` gives the same solution,
    and without one the rows are taken as they are. Mechanical systems take IIIA for q and IIIB for p (2.25); then the method is
    symmetric, as it is wherever f_3 = f_4 = 0; because it need not be, `da.compose` takes its adjoint.

    Example:
        >>> import numpy as np, dalembert as da
        >>> oscillator = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=3,
        ...                            nonholonomic=lambda q, v: [v[0] + q[1] * v[2]])
        >>> run = da.simulate(oscillator, da.LobattoSPARK(stages=2), q0=[1, 1, 0], v0=[-0.5, 0, 0.5], h=0.1, steps=1000)
        >>> bool(abs(run.residuals["k"]).max() < 1e-14), bool(np.ptp(run.energy) < 1e-2)
        (True, True)

    """

    stages: int = 2
    L: tuple[tuple[float, ...], ...] | None = None
    reference: ClassVar[str] = "Jay (2003), BIT 43; Hilden (2009), (2.20), (2.25)"

    def __post_init__(self) -> None:
        check_stages("Lobatto SPARK", self.stages, least=2)
        if self.L is not None:
            try:
                matrix = np.array(self.L, dtype=float)
            except (TypeError, ValueError, OverflowError):
                matrix = np.zeros((0, 0))
            if matrix.shape != (self.stages, self.stages) or np.linalg.matrix_rank(matrix) < self.stages:
                raise InputError(f"L is an invertible {self.stages} x {self.stages} matrix, as rows of numbers; got {self.L!r}")
            object.__setattr__(self, "L", tuple(map(tuple, matrix.tolist())))

    @property
    def order(self) -> dict[str, int]:
        """2s-2 (Theorem 2.5)."""
        return dict.fromkeys(("q", "p", "psi"), 2 * self.stages - 2)

    @property
    def tableaux(self) -> tuple[Tableau, ...]:
        """Lobatto IIIA, IIIB, IIIC, IIIC* and IIID."""
        families = (tableaux.lobatto_iiia, tableaux.lobatto_iiib, tableaux.lobatto_iiic, tableaux.lobatto_iiic_star,
                    tableaux.lobatto_iiid)  # fmt: skip
        return tuple(family(self.stages) for family in families)

    def check(self, system: System) -> None:
        """Refuse a part f_1 that depends on z."""
        super().check(system)
        if isinstance(system, IndexTwoDAE) and system.part_depends_on_z(1):
            raise UnsupportedSystem(
                f"{self} treats f_1 with Lobatto IIIA, and f_1 must not depend on z: put it second, parts=[lambda y: 0 * y, f]"
            )

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(2.20)."""
        h, t0 = step.h, step.t0
        A_1, b, c = step.coefficients(self.tableaux[0])
        form = IndexTwoForm(system, step, c, anchored=False)
        # fmt: off
        T, Y, Z = t0 + c * h, form.Y, form.Z
        parts = form.parts(T, Y, Z)
        matrices = [A_1, *(step.coefficients(tableau)[0] for tableau in self.tableaux[1 : len(parts)])]
        form.stages(sum(A_m @ f_m for A_m, f_m in zip(matrices, parts, strict=True)))                       # (2.20a)
        rate = b @ sum(parts[1:], parts[0])
        rows = A_1[1:] @ form.g(T, Y)                                                                       # (2.19)
        if self.L is None:
            step.equation(rows, 0)                                                                          # (2.20b)
            form.constraint_at_end(rate)
        else:
            end = form.g(t0 + h, form.y0 + h * rate)
            step.equation(np.array(self.L) @ np.concatenate([rows, end[None]]), 0)
        form.end(rate)                                                                                      # (2.20c)
        # fmt: on


@dataclass(frozen=True)
class SRK(IndexTwoMethod):
    """Specialised Runge-Kutta methods for DAEs of index 2 (SRK-DAE2): Gauss of order 2s, Radau IA of order 2s-1.

        Y_i = y_0 + h sum_j a_ij f(T_j, Y_j, Z_j),   y_1 = y_0 + h sum_j b_j f(T_j, Y_j, Z_j)                      (2.26a,c)
        0 = sum_j omega_ij g(T_j, Y_j) + omega_i,s+1 g(t_1, y_1)                                                   (2.26b)

    with the rows of Omega that demand g(t_1, y_1) = 0 and b^T C^(i-1) g(T, Y) = 0, i = 1..s-1 (2.27). `coefficients` is
    "gauss", "radau-ia" or any tableau with an invertible matrix A (then `stages` is its own).

    Example:
        >>> import dalembert as da
        >>> da.SRK("radau-ia", stages=3).order
        {'q': 5, 'p': 5, 'psi': 5}

    """

    coefficients: Literal["gauss", "radau-ia"] | Tableau = "gauss"
    stages: int = 2
    reference: ClassVar[str] = "Jay (2006), Math. Comp. 75; Hilden (2009), (2.26), (2.27)"

    def __post_init__(self) -> None:
        if isinstance(self.coefficients, Tableau):
            object.__setattr__(self, "stages", self.coefficients.stages)
            if np.linalg.matrix_rank(self.coefficients.A) < self.stages:
                raise InputError(f"SRK methods need an invertible matrix A, and that of {self.coefficients.name} is singular")
        elif not is_one_of(self.coefficients, "gauss", "radau-ia"):
            raise InputError(f'SRK takes "gauss", "radau-ia" or a da.Tableau with an invertible A; got {self.coefficients!r}')
        check_stages("SRK", self.stages, least=1 if self.coefficients == "gauss" else 2)

    @property
    def tableau(self) -> Tableau:
        """(A, b, c)."""
        if isinstance(self.coefficients, Tableau):
            return self.coefficients
        return tableaux.gauss(self.stages) if self.coefficients == "gauss" else tableaux.radau_ia(self.stages)

    @property
    def symmetric(self) -> bool:
        """If the tableau is."""
        return tableaux.symmetry(self.tableau) < 1e-12

    @property
    def order(self) -> dict[str, int]:
        """2s for Gauss, 2s-1 for Radau IA (Theorem 2.7)."""
        claimed = {"gauss": 2 * self.stages, "radau-ia": 2 * self.stages - 1}
        order = None if isinstance(self.coefficients, Tableau) else claimed[self.coefficients]
        return {} if order is None else dict.fromkeys(("q", "p", "psi"), order)

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(2.26) with (2.27)."""
        h, t0 = step.h, step.t0
        A, b, c = step.coefficients(self.tableau)
        form = IndexTwoForm(system, step, c, anchored=bool(self.tableau.c[0] != 0))
        # fmt: off
        T, Y, Z = t0 + c * h, form.Y, form.Z
        f, g = form.f(T, Y, Z), form.g(T, Y)
        form.stages(A @ f)                                                                                  # (2.26a)
        for i in range(self.stages - 1):
            step.equation((b * c**i) @ g, 0)                                                                # (2.26b)
        form.constraint_at_end(b @ f)
        form.end(b @ f)                                                                                     # (2.26c)
        # fmt: on
