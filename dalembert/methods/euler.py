"""Symplectic Euler and its relatives for overdetermined DAEs, also where forces are nonlinear in the multipliers.

L. O. Jay and B. Simeon, Consistent extensions of the symplectic Euler method for a class of overdetermined DAEs. Equation
numbers refer to this paper.

Deviations from the print:
    - The multiplier psi is `lam` here, and Psi~_1 of (3.5) and (3.8) is Psi_1 as in (3.2) and (3.7).
    - The sentence before (3.7) says 'true': (3.7) is the natural conjugate method, (3.8) the true one.
    - The paper's functions do not depend on t; here arguments t go with y, and 0 = g_t + g_y v.
    - (3.8) is called conjugate and is not the adjoint of (3.5) where r is nonlinear in the multipliers: `da.adjoint` is.
    - The first step looks for Psi_0 and Psi_1 at the limits (3.3), (3.4), for the conjugate method at those of (3.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from dalembert.errors import InputError, is_one_of
from dalembert.methods._base import OneStepMethod
from dalembert.methods._step import Step
from dalembert.systems import BoundSystem

Variant = Literal["natural", "true"]
Place = Literal["z0", "z1", "Z1"]
PLACES = ("z0", "z1", "Z1")


class EulerEquations(OneStepMethod):
    """The step equations of every combination of explicit and implicit Euler steps for y and z; subclasses choose one."""

    if TYPE_CHECKING:
        variant: Variant
        alpha: float
        r_at: tuple[Place, Place]

        @property
        def y_implicit(self) -> bool:
            """Whether v and f are taken at y_1 instead of y_0."""

        @property
        def z_implicit(self) -> bool:
            """Whether f acts on Z_1, at which v and f are taken."""

    symmetric: ClassVar[bool | None] = False
    serves_odae: ClassVar[bool] = True
    keeps: ClassVar[frozenset[str]] = frozenset({"g", "g_dot"})

    def __post_init__(self) -> None:
        if not is_one_of(self.variant, "natural", "true"):
            raise InputError(f'variant is "natural" (3.2) or "true" (3.5); got {self.variant!r}')
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, (int, float)) or not abs(self.alpha) < 1e300:
            raise InputError(f"alpha is a number; got {self.alpha!r}")
        if self.alpha == 0 or (self.variant == "natural" and self.alpha == 1):
            raise InputError(f"the {self.variant} method has no solution for alpha = {self.alpha:g}: take alpha=0.5")
        if not (isinstance(self.r_at, tuple) and len(self.r_at) == 2 and all(is_one_of(place, *PLACES) for place in self.r_at)):
            raise InputError(f'r_at names the places of z in r at y_0 and at y_1, out of "z0", "z1", "Z1"; got {self.r_at!r}')

    @property
    def order(self) -> dict[str, int]:
        """1 in every component; 0 for the natural variant if r is nonlinear in its multipliers (Theorem 3.1)."""
        return dict.fromkeys(("q", "p", "lam"), 1)

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(3.2), (3.5), (3.7) or (3.8), with V = (y_1 - y_0)/h, W = Z_1 - z_0, U = z_1 - z_0 and L = h Psi."""
        h, t0, y0, z0, alpha = step.h, step.t0, step.y0, step.z0, self.alpha
        V = step.stage_increments("V", of="y", nodes=[1.0], per_h=True, anchored=True)[0]
        W = step.stage_increments("W", of="z", nodes=[1.0], smooth=False)[0]
        U = step.stage_increments("U", of="z", nodes=[1.0], anchored=True)[0]
        # Psi_0 is inconsistent by O(1): each multiplier is carried from step to step on its own.
        L0 = step.stage_impulses("L0", of="lam", nodes=[0.0], smooth=False)[0]
        L1 = step.stage_impulses("L1", of="lam", nodes=[1.0], smooth=False)[0]
        Psi0, Psi1, none = L0 / h, L1 / h, np.zeros(0)

        t1, y1, z1, Z1 = t0 + h, y0 + h * V, z0 + U, z0 + W
        place = {"z0": z0, "z1": z1, "Z1": Z1}
        z_at0, z_at1 = place[self.r_at[0]], place[self.r_at[1]]
        t, y = (t1, y1) if self.y_implicit else (t0, y0)

        # fmt: off
        r0 = alpha * system.r(t0, y0, z_at0, Psi0)
        f = system.f(t, y, Z1, none)
        step.equation(step.momentum_increments(t, y, W), h * (f + r0 if self.z_implicit else r0))           # (3.2a), (3.7a)
        step.equation(V, system.v(t, y, Z1))                                                                # (3.2b), (3.7b)
        if self.variant == "natural":
            r1 = (1 - alpha) * system.r(t1, y1, z_at1, Psi1)                                                # (3.2d), (3.7d)
        else:
            r1 = system.r(t1, y1, z_at1, Psi1) - alpha * system.r(t1, y1, z_at1, Psi0)                      # (3.5d), (3.8d)
        step.equation(step.momentum_increments(t1, y1, U), h * (f + r0 + r1))
        step.at_end("g", t1, y1)                                                                            # (3.2c)
        step.at_end("g_dot", t1, y1, z1)                                                                    # (3.2e)
        # fmt: on

        self._limits(system, step, L0, L1)
        multiplier = Psi1 if self.variant == "true" else alpha * Psi0 + (1 - alpha) * Psi1
        step.result(y=h * V, z=U, stage_lam=multiplier)

    def _limits(self, system: BoundSystem, step: Step, Psi0: np.ndarray, Psi1: np.ndarray) -> None:
        """The limits of Psi_0 and Psi_1 for h -> 0: the leading terms in h of (3.2c) and (3.2e), which are (3.3) and (3.4)."""
        if "momentum" in system.definition.function_names:
            return
        h, t0, y0, z0, alpha, none = step.h, step.t0, step.y0, step.z0, self.alpha, np.zeros(0)
        v, f, r0 = system.v(t0, y0, z0), system.f(t0, y0, z0, none), alpha * system.r(t0, y0, z0, Psi0)
        t1, y1 = t0 + h, y0 + h * v
        t, y = (t1, y1) if self.y_implicit else (t0, y0)
        Z1 = z0 + h * (f + r0 if self.z_implicit else r0)
        step.limit(Psi0, system.g(t1, y0 + h * system.v(t, y, Z1)), order=2)  # (3.3)
        if self.variant == "natural":
            r1 = (1 - alpha) * system.r(t0, y0, z0, Psi1)
            step.limit(Psi1, system.g_dot(t1, y1, z0 + h * (f + r0 + r1)), order=1)  # (3.4)


@dataclass(frozen=True)
class SymplecticEuler(EulerEquations):
    """The symplectic Euler method, for constraint forces that may be nonlinear in the multipliers.

        Z_1 = z_0 + h f(y_0, Z_1) + h alpha r(y_0, z_0, Psi_0),   y_1 = y_0 + h v(y_0, Z_1),   0 = g(y_1)             (3.5a,b,c)
        z_1 = Z_1 - h alpha r(y_1, z_1, Psi_0) + h r(y_1, z_1, Psi_1),   0 = g_y(y_1) v(y_1, z_1)                     (3.5d,e)

    is the `true` variant, consistent of order 1. The `natural` variant (3.2) ends with z_1 = Z_1 + h (1-alpha) r(y_1, z_1,
    Psi_1) instead; it is inconsistent if r is nonlinear in the multipliers, and the same method if r is affine. On Hamiltonian
    systems both are (2.2), symplectic and of order 1. `conjugate=True` takes v and f at (y_1, Z_1) with Z_1 = z_0 + h alpha
    r(y_0, z_0, Psi_0): (3.7) and (3.8), on Hamiltonian systems (3.6). `r_at` chooses z in r at y_0 and at y_1 (section 3.2).
    Arguments t go with y. The conjugate method is not the adjoint (`da.adjoint`) if r is nonlinear.

    Example:
        >>> import numpy as np, dalembert as da
        >>> run = da.simulate(da.problems.double_pendulum(), da.SymplecticEuler(), h=0.01, steps=1000)
        >>> bool(max(np.abs(r).max() for r in run.residuals.values()) < 1e-13)
        True

    """

    variant: Variant = "true"
    conjugate: bool = False
    alpha: float = 0.5
    r_at: tuple[Place, Place] = ("z0", "z1")
    reference: ClassVar[str] = "Jay and Simeon, (2.2), (3.2), (3.5), (3.6), (3.7), (3.8)"
    symplectic: ClassVar[bool | None] = True

    @property
    def y_implicit(self) -> bool:
        """In the conjugate method."""
        return self.conjugate

    @property
    def z_implicit(self) -> bool:
        """Unless conjugate."""
        return not self.conjugate


@dataclass(frozen=True)
class ConstrainedEuler(EulerEquations):
    """Explicit and implicit Euler steps in any combination, with the constraint forces of `SymplecticEuler`.

    `y="explicit"` takes v and f at y_0, `"implicit"` at y_1; `z="explicit"` takes them at Z_1 = z_0 + h alpha r(y_0, z_0,
    Psi_0), `"implicit"` at Z_1 = z_0 + h f + h alpha r(y_0, z_0, Psi_0). The mixed pairs are the symplectic Euler method and
    its conjugate; explicit with explicit and implicit with implicit are the Euler methods, which are not symplectic.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.pendulum(), da.ConstrainedEuler(y="implicit", z="implicit"), h=0.01, steps=100)
        >>> bool(run.energy[-1] < run.energy[0])                           # implicit Euler damps
        True

    """

    y: Literal["explicit", "implicit"] = "implicit"
    z: Literal["explicit", "implicit"] = "implicit"
    variant: Variant = "true"
    alpha: float = 0.5
    r_at: tuple[Place, Place] = ("z0", "z1")
    reference: ClassVar[str] = "Jay and Simeon, sections 1 and 5"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("y", "z"):
            if not is_one_of(getattr(self, name), "explicit", "implicit"):
                raise InputError(f'{name} is "explicit" or "implicit"; got {getattr(self, name)!r}')

    @property
    def symplectic(self) -> bool:
        """If y and z are treated differently."""
        return self.y != self.z

    @property
    def y_implicit(self) -> bool:
        """As chosen."""
        return self.y == "implicit"

    @property
    def z_implicit(self) -> bool:
        """As chosen."""
        return self.z == "implicit"
