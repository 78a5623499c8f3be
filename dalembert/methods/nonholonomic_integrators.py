"""Second-order integrators for nonholonomic constraints from the discrete Lagrange-d'Alembert principle.

S. K. Hilden, Numerical methods for nonholonomic mechanics, Master's thesis, NTNU (2009), chapter 3 and section 4.2.2: equation
numbers refer to it. J. Cortes and S. Martinez, Non-holonomic integrators, Nonlinearity 14 (2001); R. McLachlan and M.
Perlmutter, Integrators for nonholonomic mechanical systems, J. Nonlinear Sci. 16 (2006).

Deviations from the print:
    - The third equation of (3.3) is A(q_k+1/2) v_k+1 = 0; printed is v_k+1/2.
    - The reaction is -k_v^T psi, where the thesis has +A^T lambda: psi is -lambda.
    - The discrete Lagrangians of section 3.3 lack a factor h. (3.3) and (3.4) are printed for M = I; any constant M is served.
    - The composition in 3.3.2 is F*(h/2) after F(h/2); printed is F*(-h/2).
    - (3.4) is not the SPARK method of 3.3.3: that has the equation (3.8e) besides, and is overdetermined.
    - (4.3), printed for the sleigh only, is stated for any L; it is of order 1 where M depends on q.
    - (3.3) is a two-step method and takes q_0, q_1; here it starts from (q_0, p_0) with half a step back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca

from dalembert.errors import UnsupportedSystem
from dalembert.methods._base import OneStepMethod
from dalembert.methods._step import Step
from dalembert.systems import BoundSystem, MechanicalSystem, System


class NonholonomicIntegrator(OneStepMethod):
    """What the methods of this file share."""

    serves_nonholonomic: ClassVar[bool] = True

    def check(self, system: System) -> None:
        """Refuse holonomic constraints."""
        super().check(system)
        if system.n_holonomic:
            raise UnsupportedSystem(
                f"{self} serves nonholonomic constraints only: use da.GaussLobattoSPARK(stages) where there are holonomic ones"
            )


@dataclass(frozen=True)
class NonholonomicEuler(NonholonomicIntegrator):
    """McLachlan and Perlmutter's first-order map, of the discrete Lagrangian h L(q_k, v) and constraints k(q_k, v), any M(q).

        q_1 = q_0 + h v(q_0, p_0),   p_1 = p_0 + h (-H_q(q_1, p_1) + force - k_v^T(q_1) psi),   0 = k(q_1, v_1)

    `da.compose(da.NonholonomicEuler(), 2)`, this map followed by its exact adjoint, is symmetric and of order 2 also where the
    mass matrix depends on q, which the published generalisation of `McLachlanPerlmutter` is not.

    Example:
        >>> import numpy as np, dalembert as da
        >>> method = da.compose(da.NonholonomicEuler(), 2)
        >>> method.order["q"], method.symmetric
        (2, True)

    """

    reference: ClassVar[str] = "McLachlan and Perlmutter (2006); Hilden (2009), section 3.3.2"
    symmetric: ClassVar[bool | None] = False
    keeps: ClassVar[frozenset[str]] = frozenset({"k"})

    @property
    def order(self) -> dict[str, int]:
        """1."""
        return dict.fromkeys(("q", "p", "psi"), 1)

    def equations(self, system: BoundSystem, step: Step) -> None:
        """The three equations above, with W = p_1 - p_0 and M = h psi."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        W = step.stage_increments("W", of="p", nodes=[1.0], anchored=True)[0]
        M = step.stage_impulses("M", of="psi", nodes=[1.0])[0]

        t1, dq = t0 + h, h * system.v(t0, q0, p0)
        q1, p1 = q0 + dq, p0 + W
        step.equation(W, h * system.f(t1, q1, p1, M / h))
        step.at_end("k", t1, q1, p1)
        step.result(q=dq, p=W, stage_psi=M / h)


@dataclass(frozen=True)
class McLachlanPerlmutter(NonholonomicIntegrator):
    """McLachlan and Perlmutter's reversible method of order 2 for a constant mass matrix.

        q_1/2 = q_0 + h/2 v_0,   p_1 = p_0 + h (-V_q(q_1/2) + force - k_v^T(q_1/2) psi),   q_1 = q_1/2 + h/2 v_1,   0 = k(q_1,
        v_1)

    is (3.4). A mass matrix that depends on q is refused, unless `variable_mass=True` asks for Hilden's generalisation (4.3),

        L_v(q_1/2, v_1) - h L_q(q_1/2, v_1) = L_v(q_-1/2, v_0) - h k_v^T(q_1/2) psi,   q_-1/2 = q_0 - h/2 v_0

    which is of order 1 only; `da.compose(da.NonholonomicEuler(), 2)` is of order 2 there.

    Example:
        >>> import dalembert as da
        >>> oscillator = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=3,
        ...                            nonholonomic=lambda q, v: [v[0] + q[1] * v[2]])
        >>> run = da.simulate(oscillator, da.McLachlanPerlmutter(), q0=[1, 1, 0], v0=[-0.5, 0, 0.5], h=0.1, steps=1000)
        >>> bool(abs(run.residuals["k"]).max() < 1e-14)
        True

    """

    variable_mass: bool = False
    reference: ClassVar[str] = "McLachlan and Perlmutter (2006), J. Nonlinear Sci. 16; Hilden (2009), (3.4), (4.3)"
    keeps: ClassVar[frozenset[str]] = frozenset({"k"})

    @property
    def symmetric(self) -> bool:
        """(3.4) is; (4.3) is not."""
        return not self.variable_mass

    @property
    def order(self) -> dict[str, int]:
        """2; with `variable_mass` 1."""
        return dict.fromkeys(("q", "p", "psi"), 1 if self.variable_mass else 2)

    def check(self, system: System) -> None:
        """Refuse a mass matrix that depends on q, unless asked for, and then systems without a Lagrangian."""
        super().check(system)
        if not self.variable_mass and not velocity_is_momentum(system):
            raise UnsupportedSystem(
                f"{self} needs H = p^T M^-1 p / 2 + V(t, q), M constant, forces without p and k linear in v: use "
                "da.compose(da.NonholonomicEuler(), 2), or variable_mass=True for the published generalisation of order 1"
            )
        if self.variable_mass and "L_v" not in system.function_names:
            raise UnsupportedSystem(f"{self} needs a da.Lagrangian")

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(3.4) or (4.3), with V = (q_1 - q_0)/h = (v_0 + v_1)/2, W = p_1 - p_0 and M = h psi."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        V = step.stage_increments("V", of="q", nodes=[1.0], per_h=True, anchored=True)[0]
        W = step.stage_increments("W", of="p", nodes=[1.0], anchored=True)[0]
        M = step.stage_impulses("M", of="psi", nodes=[0.5])[0]

        t1, t_half, v0 = t0 + h, t0 + h / 2, system.v(t0, q0, p0)
        q_half, q1, p1 = q0 + h / 2 * v0, q0 + h * V, p0 + W
        v1 = system.v(t1, q1, p1)
        step.equation(V, (v0 + v1) / 2)
        # fmt: off
        if not self.variable_mass:
            step.equation(W, h * system.f(t_half, q_half, p0, M / h))                                       # (3.4)
        else:
            before = system.L_v(t_half - h, q0 - h / 2 * v0, v0)
            p_half = system.L_v(t_half, q_half, v1)
            step.equation(p_half - h * system.f(t_half, q_half, p_half, M / h), before)                     # (4.3b)
        # fmt: on
        step.at_end("k", t1, q1, p1)
        step.result(q=h * V, p=W, stage_psi=M / h)


@dataclass(frozen=True)
class CortesMartinez(NonholonomicIntegrator):
    """Cortes and Martinez' integrator of order 2 for a constant mass matrix; its constraint holds at midpoints.

        q_k+1/2 = q_k + h/2 v_k+1,   p_k+1 = p_k + h (-(V_q(q_k-1/2) + V_q(q_k+1/2))/2 + force - k_v^T(q_k) psi_k),
        0 = k(q_k+1/2, v_k+1),   q_k+1 = q_k + h v_k+1,   q_k-1/2 = q_k - h/2 v_k                                       (3.3)

    The state is (q_k, p_k) with p_k = M (q_k - q_k-1)/h: `run.p` lives half a step earlier, and k does not hold for it. The
    first step is prepared by half a step back, p_0 - p = (h/2)(-V_q(q_-1/2) + force - k_v^T(q_0) psi) with k(q_-1/2, v) = 0.

    Example:
        >>> import numpy as np, dalembert as da
        >>> oscillator = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=3,
        ...                            nonholonomic=lambda q, v: [v[0] + q[1] * v[2]])
        >>> run = da.simulate(oscillator, da.CortesMartinez(), q0=[1, 1, 0], v0=[-0.5, 0, 0.5], h=0.1, steps=1000)
        >>> middle, v = (run.q[1:] + run.q[:-1]) / 2, np.diff(run.q, axis=0) / run.h
        >>> bool(abs(v[:, 0] + middle[:, 1] * v[:, 2]).max() < 1e-13)
        True

    """

    reference: ClassVar[str] = "Cortes and Martinez (2001), Nonlinearity 14; Hilden (2009), (3.3)"

    @property
    def order(self) -> dict[str, int]:
        """2 in the positions; p lives half a step earlier."""
        return {"q": 2}

    @property
    def starting(self) -> OneStepMethod:
        """From (q_0, p_0) to (q_0, M (q_0 - q_-1)/h)."""
        return _CortesMartinezStart()

    def check(self, system: System) -> None:
        """Refuse a mass matrix that depends on q."""
        super().check(system)
        if not velocity_is_momentum(system):
            raise UnsupportedSystem(
                f"{self} needs H = p^T M^-1 p / 2 + V(t, q), M constant, forces without p and k linear in v: use "
                "da.compose(da.NonholonomicEuler(), 2)"
            )

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(3.3), with V = v_k+1 and M = h psi_k."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        V = step.stage_increments("V", of="q", nodes=[1.0], per_h=True, anchored=True)[0]
        M = step.stage_impulses("M", of="psi", nodes=[0.0])[0]

        t_before, t_after = t0 - h / 2, t0 + h / 2
        q_before, q_after = q0 - h / 2 * system.v(t0, q0, p0), q0 + h / 2 * V
        free = (system.f(t_before, q_before, p0, 0 * M) + system.f(t_after, q_after, p0, 0 * M)) / 2
        dp = h * free - system.k_v(t0, q0, p0).T @ M
        step.equation(V, system.v(t0, q0, p0 + dp))
        step.equation(system.k(t_after, q_after, p0 + dp), 0)
        step.result(q=h * V, p=dp, stage_psi=M / h)


@dataclass(frozen=True)
class _CortesMartinezStart(CortesMartinez):
    """The preparation that `CortesMartinez` describes."""

    def equations(self, system: BoundSystem, step: Step) -> None:
        """Half a step back, with V = -v and M = (h/2) psi."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        V = step.stage_increments("V", of="q", nodes=[-1.0], per_h=True, anchored=True)[0]
        M = step.stage_impulses("M", of="psi", nodes=[0.0])[0]

        t_before, q_before = t0 - h / 2, q0 + h / 2 * V
        dp = -(h / 2 * system.f(t_before, q_before, p0, 0 * M) - system.k_v(t0, q0, p0).T @ M)
        step.equation(V, -system.v(t0, q0, p0 + dp))
        step.equation(system.k(t_before, q_before, p0 + dp), 0)
        step.result(q=0 * q0, p=dp)


def velocity_is_momentum(system: System) -> bool:
    """Whether v = M^-1 p with a constant M, and neither the free forces nor k_v depend on p."""
    if not isinstance(system, MechanicalSystem):
        return False
    t, q, p = ca.SX.sym("t"), ca.SX.sym("q", system.dim), ca.SX.sym("p", system.dim)
    psi, theta = ca.SX.zeros(system.n_nonholonomic, 1), ca.SX.sym("theta", system.parameters.size)
    v, f, H_pp = system.function("v")(t, q, p, theta), system.function("f")(t, q, p, psi, theta), system.function("H_pp")
    constant = not ca.depends_on(ca.vec(H_pp(t, q, p, theta)), ca.vertcat(t, q, p)) and not ca.depends_on(v, ca.vertcat(t, q))
    k_v = ca.vec(system.function("k_v")(t, q, p, theta))
    return constant and not ca.depends_on(ca.vertcat(f, k_v), p)
