"""The discrete Lagrange-d'Alembert principle for a user's own discrete Lagrangian and discrete constraints.

J. Cortes and S. Martinez, Non-holonomic integrators, Nonlinearity 14 (2001); S. K. Hilden, Numerical methods for nonholonomic
mechanics, Master's thesis, NTNU (2009), section 3.2: equation numbers refer to it.

Deviations from the print:
    - (3.2a) is printed for constraints A(q) v = 0. Where k is nonlinear in v, the matrix A(q_k) is k_v, taken at q_k and the
      mean of the momenta before and after the impulse, (D_2 L_d(q_k-1, q_k) - D_1 L_d(q_k, q_k+1))/2: so the two-step map
      stays symmetric and of order 2. For linear k the equation is the printed one.
    - The multiplier lambda of (3.2a) is the impulse h psi_k.
    - The discrete Lagrangians of section 3.3 lack a factor h: L_d is h L(...) here.
    - (3.2) is a two-step method and takes q_0, q_1; here q_-1 follows from (q_0, p_0) by the step back stated below.
    - The matrix of Theorem 3.4 is taken at q_1 = q_0 + h v_0: D_2 g_d vanishes at q_1 = q_0 where k is quadratic in v.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from dalembert.errors import InputError, ModelError, UnsupportedSystem
from dalembert.methods._action import ActionFormula, action_formula
from dalembert.methods._base import OneStepMethod
from dalembert.methods._discrete_lagrangian import DiscreteLagrangian, discrete_lagrangian, lagrangian_functions
from dalembert.methods._step import Step
from dalembert.methods.nonholonomic_integrators import NonholonomicIntegrator
from dalembert.symbolic import Scalar, as_column, from_column
from dalembert.systems import BoundSystem, State, System
from dalembert.systems._matrices import well_conditioned
from dalembert.systems._model import call_model, vector_expression

CONSTRAINTS: dict[str, Callable] = {
    "initial": lambda k, t0, q0, q1, h: k(t0, q0, (q1 - q0) / h),
    "final": lambda k, t0, q0, q1, h: k(t0 + h, q1, (q1 - q0) / h),
    "midpoint": lambda k, t0, q0, q1, h: k(t0 + h / 2, (q0 + q1) / 2, (q1 - q0) / h),
}


@dataclass(frozen=True)
class DiscreteLagrangeDAlembert(NonholonomicIntegrator):
    """The nonholonomic integrator of a discrete Lagrangian L_d(q_0, q_1, h) and discrete constraints g_d(q_0, q_1, h).

        D_1 L_d(q_k, q_k+1) + D_2 L_d(q_k-1, q_k) = k_v^T(q_k, p_k^mean) h psi_k,   g_d(q_k, q_k+1) = 0                 (3.2)

    where p_k^mean = (D_2 L_d(q_k-1, q_k) - D_1 L_d(q_k, q_k+1))/2 matters only if k is nonlinear in v.

    `L_d` is what `da.Variational` takes. `g_d` is "initial", "final" or "midpoint", which is where the system's constraint k(q,
    v) is taken with v = (q_1 - q_0)/h, or a function of the arguments that it names out of `k`, `q0`, `q1`, `h`, `t0` and the
    parameters. `da.CortesMartinez` has the positions of ("midpoint", "midpoint"); `da.McLachlanPerlmutter` those of ("SE1",
    "midpoint") after the change of variables (q_k-1 + q_k)/2.

    The state is (q_k, p_k) with p_k = D_2 L_d(q_k-1, q_k), before the impulse of the constraint at q_k: k does not hold for it.
    The first step is prepared by a step back from (q_0, p_0), with p_0 - k_v^T(q_0) mu in the place of p_0. The matrix of
    Theorem 3.4 must be regular at the start.

    Example:
        >>> import dalembert as da
        >>> oscillator = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=3,
        ...                            nonholonomic=lambda q, v: [v[0] + q[1] * v[2]])
        >>> start = dict(q0=[1, 1, 0], v0=[-0.5, 0, 0.5], h=0.1, steps=100)
        >>> mine = da.simulate(oscillator, da.DiscreteLagrangeDAlembert("midpoint", "midpoint"), **start)
        >>> theirs = da.simulate(oscillator, da.CortesMartinez(), **start)
        >>> bool(abs(mine.q - theirs.q).max() < 1e-13)
        True

    """

    L_d: str | Callable[..., Any]
    g_d: str | Callable[..., Any] = "midpoint"
    reference: ClassVar[str] = "Cortes and Martinez (2001), Nonlinearity 14; Hilden (2009), (3.2)"

    def __post_init__(self) -> None:
        action_formula(self.L_d)
        if not callable(self.g_d) and self.g_d not in CONSTRAINTS:
            raise InputError(
                f"g_d is one of {', '.join(CONSTRAINTS)}, or a function such as "
                f"lambda k, q0, q1, h: k((q0 + q1) / 2, (q1 - q0) / h); got {self.g_d!r}"
            )

    @property
    def formula(self) -> ActionFormula:
        """The discrete Lagrangian as a function of (L, t0, q0, q1, h)."""
        return action_formula(self.L_d)

    @property
    def order(self) -> dict[str, int]:
        """2 in the positions if both names are symmetric; nothing is claimed for functions."""
        if not (isinstance(self.L_d, str) and isinstance(self.g_d, str)):
            return {}
        symmetric = self.L_d not in ("SE1", "SE2") and self.g_d == "midpoint"
        return {"q": 2 if symmetric else 1}

    @property
    def starting(self) -> OneStepMethod:
        """From (q_0, p_0) to (q_0, D_2 L_d(q_-1, q_0))."""
        return _LagrangeDAlembertStart(self.L_d, self.g_d)

    def check(self, system: System) -> None:
        """Refuse systems without nonholonomic constraints, and discrete constraints of another number."""
        super().check(system)
        if not system.n_nonholonomic:
            raise UnsupportedSystem(f"{self} needs nonholonomic constraints: use da.Variational where there are none")
        L_d = discrete_lagrangian(system, self.formula)
        if L_d.formula.internal:
            raise UnsupportedSystem(f"{self} takes a discrete Lagrangian of (q0, q1, h) without internal configurations")
        self.constraint(L_d)

    def check_start(self, system: System, start: State, h: float) -> None:
        """Refuse a start where the matrix of Theorem 3.4 is singular."""
        L_d = discrete_lagrangian(system, self.formula)
        symbols = [L_d.t0, L_d.h, L_d.q0, L_d.q1, L_d.theta]
        mixed = ca.jacobian(ca.gradient(L_d.value, L_d.q0), L_d.q1)
        slope = ca.jacobian(self.constraint(L_d), L_d.q1)
        function = ca.Function("theorem", symbols, [L_d.h * ca.densify(mixed), L_d.h * ca.densify(slope)])
        after = start.first + h * system.at("v", start.values, start.theta)
        D1D2, D2g = (np.asarray(value, dtype=float) for value in function(start.t, h, start.first, after, start.theta))
        A = system.at("k_v", start.values, start.theta)
        if not well_conditioned(np.block([[D1D2, A.T], [D2g, np.zeros((len(D2g), len(A)))]])):
            raise ModelError(
                "the matrix (D_1 D_2 L_d, A^T; D_2 g_d, 0) of Theorem 3.4 is singular at the start, so that the discrete flow "
                "is not defined: L_d must contain every velocity quadratically, and g_d must restrict q1"
            )

    def constraint(self, L_d: DiscreteLagrangian) -> ca.SX:
        """g_d in the symbols of L_d."""
        system = L_d.system
        _, momentum = lagrangian_functions(system)

        def k(*arguments: Any) -> Any:
            t, q, v = arguments if len(arguments) == 3 else (Scalar(L_d.t0), *arguments)
            time, q, v = as_column([t]), as_column(q), as_column(v)
            return from_column(system.function("k")(time, q, momentum(time, q, v, L_d.theta), L_d.theta))

        available = {"k": k, "t0": Scalar(L_d.t0), "q0": from_column(L_d.q0), "q1": from_column(L_d.q1), "h": Scalar(L_d.h)}
        function = CONSTRAINTS[self.g_d] if isinstance(self.g_d, str) else self.g_d
        value = vector_expression("g_d", call_model("g_d", function, available, system.parameters))
        if value.shape[0] != system.n_nonholonomic:
            raise ModelError(f"g_d returned {value.shape[0]} constraints where the system has {system.n_nonholonomic}")
        return ca.substitute(value, system.parameters.theta, L_d.theta)

    def equations(self, system: BoundSystem, step: Step) -> None:
        """(3.2) with V = (q_k+1 - q_k)/h and M = h psi_k."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        V = step.stage_increments("V", of="q", nodes=[1.0], per_h=True, anchored=True)
        M = step.stage_impulses("M", of="psi", nodes=[0.0])[0]
        L_d = discrete_lagrangian(system.definition, self.formula)
        J, dp = L_d.impulses(step, V)  # D_1 L_d and D_2 L_d, with forces; their sum
        R = -system.k_v(t0, q0, (p0 - J[0]) / 2).T @ M  # at the mean of the momenta before and after the impulse R
        # fmt: off
        step.equation(J[0] + R, -p0)                                                                        # (3.2a)
        step.equation(self._constraint_of_step(L_d, step, t0, q0, q0 + h * V[0]), 0)                        # (3.2b)
        # fmt: on
        step.result(q=h * V[0], p=dp + R, stage_psi=M / h)

    def _constraint_of_step(self, L_d: DiscreteLagrangian, step: Step, t: Any, q_before: Any, q_after: Any) -> Any:
        symbols = [L_d.t0, L_d.h, L_d.q0, L_d.q1, L_d.theta]
        values = [as_column([t]), step.h_symbol, as_column(q_before), as_column(q_after), step.theta]
        return from_column(ca.densify(ca.substitute(self.constraint(L_d), ca.vertcat(*symbols), ca.vertcat(*values))))


@dataclass(frozen=True)
class _LagrangeDAlembertStart(DiscreteLagrangeDAlembert):
    """D_2 L_d(q_-1, q_0) = p_0 + k_v^T(q_0) mu with g_d(q_-1, q_0) = 0."""

    def equations(self, system: BoundSystem, step: Step) -> None:
        """The step back, with V = (q_-1 - q_0)/h and M = mu."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        V = step.stage_increments("V", of="q", nodes=[-1.0], per_h=True, anchored=True)[0]
        M = step.stage_impulses("M", of="psi", nodes=[0.0])[0]
        L_d = discrete_lagrangian(system.definition, self.formula)
        before = q0 + h * V
        names = {
            "t0": as_column([t0 - h]),
            "h": step.h_symbol,
            "q0": as_column(before),
            "V": as_column(-V),
            "theta": step.theta,
        }
        values = L_d.in_increments(**names)
        arriving = from_column((values["D"] + values["f"])[:, 1])
        dp = system.k_v(t0, q0, p0).T @ M
        step.equation(arriving, p0 + dp)
        step.equation(self._constraint_of_step(L_d, step, t0 - h, before, q0), 0)
        step.result(q=0 * q0, p=dp)
