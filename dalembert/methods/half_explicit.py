"""Half-explicit methods for separable Hamiltonians: Ostermann's method of order 1, and SHAKE.

Deviations from the print:
    - Forces that do not depend on p are added to -U_q, and U and g may depend on t.
    - SHAKE is a two-step method and takes q_0, q_1; here it starts from (q_0, p_0) with half a step of RATTLE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca

from dalembert.errors import UnsupportedSystem
from dalembert.methods._base import OneStepMethod
from dalembert.methods._step import Step
from dalembert.systems import BoundSystem, MechanicalSystem, System


@dataclass(frozen=True)
class HalfExplicitEuler(OneStepMethod):
    """Ostermann's first-order half-explicit method, symplectic if H = T(p) + U(q).

        p_1 = p_0 - h (U_q(q_0) - force + G^T(q_0) Lambda),   q_1 = q_0 + h T_p(p_1),   0 = g(q_1)

    It is the case s = 3 of (3.16) of Jay (1996). Only the multiplier is implicit. The hidden constraint is not imposed: p is
    off it by O(h).

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.double_pendulum(), da.HalfExplicitEuler(), h=0.01, steps=100)
        >>> bool(abs(run.residuals["g"]).max() < 1e-14)
        True

    """

    reference: ClassVar[str] = "Ostermann (1990); Hairer, Lubich and Roche (1989), p. 90; Jay (1996), (3.16)"
    symplectic: ClassVar[bool | None] = True
    symmetric: ClassVar[bool | None] = False
    keeps: ClassVar[frozenset[str]] = frozenset({"g"})

    @property
    def order(self) -> dict[str, int]:
        """1."""
        return {"q": 1, "p": 1}

    def check(self, system: System) -> None:
        """Refuse nonseparable Hamiltonians, for which the method is neither half-explicit nor symplectic."""
        super().check(system)
        if not (isinstance(system, MechanicalSystem) and is_separable(system)):
            raise UnsupportedSystem(
                f"{self} needs a separable Hamiltonian H = T(p) + U(t, q) and forces that do not depend on p; "
                "use da.Rattle(), which does not"
            )

    def equations(self, system: BoundSystem, step: Step) -> None:
        """The three equations above, with V = (q_1 - q_0)/h and L = h Lambda."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        V = step.stage_increments("V", of="q", nodes=[1.0], per_h=True, anchored=True)[0]
        L = step.stage_impulses("L", of="lam", nodes=[0.0])[0]

        dp = h * (system.force(t0, q0, p0) - system.H_q(t0, q0, p0)) + system.reaction(t0, q0, L)
        step.equation(V, system.H_p(t0, q0, p0 + dp))
        step.at_end("g", t0 + h, q0 + h * V)
        step.result(q=h * V, p=dp, stage_lam=L / h)


@dataclass(frozen=True)
class Shake(HalfExplicitEuler):
    """SHAKE (Ryckaert, Ciccotti and Berendsen 1977): the two-step method for positions, of order 2.

        q_{n+1} - 2 q_n + q_{n-1} = -h^2 M^-1 (U_q(q_n) - force + G^T(q_n) Lambda_n),   0 = g(q_{n+1})

    Written with p_{n+1/2} = M (q_{n+1} - q_n)/h, and started so that its positions are those of RATTLE. `run.p[n]` is
    p_{n-1/2}: the hidden constraint does not hold for it, and `run.energy` and `run.lam`, which combine q_n with it, are off by
    O(h); take them from RATTLE.

    Example:
        >>> import dalembert as da
        >>> shake = da.simulate(da.problems.double_pendulum(), da.Shake(), h=0.05, steps=200)
        >>> rattle = da.simulate(da.problems.double_pendulum(), da.Rattle(), h=0.05, steps=200)
        >>> bool(abs(shake.q - rattle.q).max() < 1e-12)
        True

    """

    reference: ClassVar[str] = "Ryckaert, Ciccotti and Berendsen (1977), J. Comput. Phys. 23"

    @property
    def order(self) -> dict[str, int]:
        """2 in the positions; p lives half a step earlier."""
        return {"q": 2}

    @property
    def starting(self) -> OneStepMethod:
        """From (q_0, p_0) to (q_0, p_{-1/2})."""
        return _ShakeStart()


@dataclass(frozen=True)
class _ShakeStart(HalfExplicitEuler):
    """p_{-1/2} = p_0 + (h/2) (U_q(q_0) - force + G^T(q_0) Lambda) with g(q_0 - h M^-1 p_{-1/2}) = 0: half of RATTLE, back."""

    def equations(self, system: BoundSystem, step: Step) -> None:
        """The half step, with V = (q_{-1} - q_0)/h."""
        h, t0, q0, p0 = step.h, step.t0, step.q0, step.p0
        V = step.stage_increments("V", of="q", nodes=[-1.0], per_h=True, anchored=True)[0]
        L = step.stage_impulses("L", of="lam", nodes=[0.0])[0]

        dp = -(h * (system.force(t0, q0, p0) - system.H_q(t0, q0, p0)) + system.reaction(t0, q0, L)) / 2
        step.equation(V, -system.H_p(t0, q0, p0 + dp))
        step.position_constraint(system.g(t0 - h, q0 + h * V))
        step.result(q=0 * q0, p=dp)


def is_separable(system: MechanicalSystem) -> bool:
    """Whether H = T(p) + U(t, q) and the forces do not depend on p."""
    t, q, p = ca.SX.sym("t"), ca.SX.sym("q", system.dim), ca.SX.sym("p", system.dim)
    theta = ca.SX.sym("theta", system.parameters.size)
    H_p, H_q, force = (system.function(name)(t, q, p, theta) for name in ("H_p", "H_q", "force"))
    return not (ca.depends_on(H_p, ca.vertcat(t, q)) or ca.depends_on(ca.vertcat(H_q, force), p))
