"""Time stepping with contact and friction: the methods of Moreau and Jean, and nonsmooth RATTLE.

`_impulse_laws` states the laws of contact that both impose on whole steps, and where they leave the print.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dalembert.errors import InputError, UnsupportedSystem, is_one_of
from dalembert.methods import OneStepMethod, Step
from dalembert.systems import BoundSystem, MechanicalSystem, Spheres, System
from dalembert.time_stepping._impulse_laws import (
    Outcome,
    Point,
    Tuning,
    contact_unknowns,
    energy_added,
    force,
    lawful,
    on_discs,
    reaction,
    velocity_laws,
)


def counted_of(system: System) -> tuple[str, ...]:
    """What a run counts: steps that needed projections or less restitution; of spheres, sweeps and steps that these left."""
    return ("sweeps", "unsolved_steps") if isinstance(system, Spheres) else ("projected_steps", "damped_impacts")


class TimeStepping(OneStepMethod):
    """What both methods have in common: they serve all constraints of mechanics at once.

    Where contacts slide and the rigid model has no or several accelerations (`PlanarFriction.has_one_motion`, docs/contact.md),
    `painleve` stops a run, or takes the impact without collision that solves the step: the sliding stops at once.
    """

    serves_unilateral: ClassVar[bool] = True
    serves_friction: ClassVar[bool] = True
    serves_nonholonomic: ClassVar[bool] = True
    driver: ClassVar[str] = "time stepping"
    painleve: str

    @abstractmethod
    def contact_step(self, system: BoundSystem, step: Step, tuning: Tuning) -> Outcome:
        """Write the equations of a step; those of the contacts, and their unknowns, come last."""

    def equations(self, system: BoundSystem, step: Step) -> None:
        """Write the equations of one step."""
        self.contact_step(system, step, Tuning())

    def check(self, system: System) -> None:
        """Refuse systems without walls."""
        super().check(system)
        if not isinstance(system, MechanicalSystem) or not (system.n_unilateral or isinstance(system, Spheres)):
            raise UnsupportedSystem(
                f"{self} is for contact, and this system has no unilateral constraints: state them with unilateral=lambda q: "
                "..., or use da.Rattle()"
            )
        if "friction_law" in system.function_names:
            raise UnsupportedSystem(
                f"{self} has impulses, not forces, so that friction cannot depend on N: use da.CVA(base), or give a "
                "coefficient without N"
            )

    def _check_arguments(self) -> None:
        if not is_one_of(self.painleve, "stop", "impact"):
            raise InputError(
                'painleve says what happens where the rigid model has no or several solutions: "stop" ends the run with that '
                f'reason, "impact" takes the impact without collision; got {self.painleve!r}'
            )


@dataclass(frozen=True)
class MoreauJean(TimeStepping):
    """The theta-method of Moreau and Jean: contact laws for velocities, imposed on contacts that are predicted to be closed.

        q_1 = q_0 + h H_p(q_th, p_th),   p_1 = p_0 + h f(q_th, p_th) - G^T L - k_v^T Psi + W_N P_N + W_F P_F
        contact where phi(q_M) <= 0,   q_M = q_0 + h/2 H_p(q_0, p_0),   W = W(q_M),   x_th = (1 - theta) x_0 + theta x_1

    A gap phi(q_M) that is a rounding error is none, else what rests would let go now and then and fall for a step.

    Of order 1 with contact, and robust: few unknowns, and no positions to satisfy. Walls are penetrated by O(h) v, because
    only velocities are stopped at them; holonomic constraints hold for velocities, g_dot = 0, and g drifts. theta = 1/2 does
    not damp, theta = 1 is implicit Euler.

    M. Jean (1999), Comput. Methods Appl. Mech. Engrg. 177, 235-257; Acary and Brogliato (2008), section 10.1.

    Example:
        >>> import numpy as np, dalembert as da
        >>> block = da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[1], dim=2, unilateral=lambda q: q[1], friction=0.5)
        >>> run = da.simulate(block, da.MoreauJean(), q0=[0, 0], v0=[1.0, 0.0], h=0.001, steps=400)
        >>> bool(abs(run.q[-1, 0] - 1 / 9.81) < 1e-3), bool(abs(run.v[-1, 0]) < 1e-14)  # v^2 / (2 mu g), and rest
        (True, True)

    """

    theta: float = 0.5
    painleve: str = "stop"
    reference: ClassVar[str] = "Jean (1999); Acary and Brogliato (2008), section 10.1"
    order: ClassVar[dict[str, int]] = {"q": 1, "p": 1}

    def __post_init__(self) -> None:
        if isinstance(self.theta, bool) or not isinstance(self.theta, (int, float)) or not 0.5 <= self.theta <= 1:
            raise InputError(f"theta is a number from 1/2 to 1, for stability; got {self.theta!r}")
        self._check_arguments()

    @property
    def order_unconstrained(self) -> dict[str, int]:
        """That of the theta-method, where nothing touches."""
        return dict.fromkeys(("q", "p"), 2 if self.theta == 0.5 else 1)

    @property
    def keeps(self) -> frozenset[str]:
        """Constraints on velocities."""
        return frozenset({"g_dot", "k"})

    def contact_step(self, system: BoundSystem, step: Step, tuning: Tuning) -> Outcome:
        """The equations above."""
        t0, h, q0, p0, theta = step.t0, step.h, step.q0, step.p0, self.theta
        V, W = step.stage_increments("V", "q", [1], per_h=True, smooth=False)[0], step.stage_increments("W", "p", [1])[0]
        L, Psi = step.stage_impulses("L", "lam", [1])[0], step.stage_impulses("Psi", "psi", [1])[0]
        P_N, P_F = contact_unknowns(step, "")
        t, q, p = t0 + theta * h, q0 + theta * h * V, p0 + theta * W
        t1, q1, p1 = t0 + h, q0 + h * V, p0 + W
        new, M = Point(system, t1, q1), Point(system, t0 + h / 2, q0 + h / 2 * system.H_p(t0, q0, p0))
        step.equation(V, system.H_p(t, q, p))
        step.equation(W, h * force(system, t, q, p) - reaction(system, t, q, p, L, Psi) + M.push(P_N, P_F))
        if system.n_holonomic:
            step.equation(system.g_dot(t1, q1, p1), 0)
        if system.n_nonholonomic:
            step.equation(system.k(t1, q1, p1), 0)
        bound = M.coefficients() * P_N if M.rubs else None
        closed = system.phi(M.t, M.q) <= M.blur(Point(system, t0, q0), p0, h)
        bounce = velocity_laws(step, tuning, M, M, closed, P_N, P_F, p1, bound)
        step.result(q=h * V, p=W)
        added = energy_added(M.work(P_N, P_F, p0, p1), M, M, P_N, P_F)
        return Outcome(P_N, P_F, new.slip(p1), added, P_N @ bounce, lawful(step, M, M, P_N), bound)


@dataclass(frozen=True)
class NonsmoothRattle(TimeStepping):
    """RATTLE with contact and friction: walls are kept in positions and in velocities. It is RATTLE where nothing touches.

        p_h = p_0 + h/2 f(q_0, p_h) - G_0^T L_1 - k_v^T Psi_1 + W_0 P_1,   q_1 = q_0 + h/2 (H_p(q_0, p_h) + H_p(q_1, p_h))
        g(q_1) = 0,   k(q_1, p_h) = 0,   0 <= phi(q_1), P_N1 >= 0, phi P_N1 = 0,   P_F1 by Coulomb's law with gamma_F(q_1, p_h)
        p_1 = p_h + h/2 f(q_1, p_h) - G_1^T L_2 - k_v^T Psi_2 + W_1 P_2
        g_dot(q_1, p_1) = 0,   k(q_1, p_1) = 0,   and for contacts that the first stage closed the laws of impact and friction
        for the whole impulses P_1 + P_2 and the velocities of p_1

    Of order 2 where nothing touches, or slides on smoothly in one direction; 1 where the direction of slip turns, for it is
    that of the end of a step, and over impacts, which happen at the ends of steps. phi >= 0 holds to round-off in every stored
    state.

    Breuling et al. (2024).

    Example:
        >>> import numpy as np, dalembert as da
        >>> ball = da.Lagrangian(lambda q, v: v @ v / 2 - 9.81 * q[1], dim=2, unilateral=lambda q: q[1], friction=0.3,
        ...                      restitution=0.5)
        >>> run = da.simulate(ball, da.NonsmoothRattle(), q0=[0, 1], v0=[2, 0], h=0.001, t1=3.0)
        >>> bool(run.q[:, 1].min() > -1e-15), bool(abs(run.v[-1]).max() < 1e-12)  # it bounces, slides and rests
        (True, True)

    """

    painleve: str = "stop"
    reference: ClassVar[str] = "Breuling, Capobianco, Eugster and Leine (2024)"
    order: ClassVar[dict[str, int]] = {"q": 2, "p": 2}

    def __post_init__(self) -> None:
        self._check_arguments()

    @property
    def keeps(self) -> frozenset[str]:
        """All constraints."""
        return frozenset({"g", "g_dot", "k"})

    def contact_step(self, system: BoundSystem, step: Step, tuning: Tuning) -> Outcome:
        """The equations above; P_N and P_F are the whole impulses."""
        t0, h, q0, p0 = step.t0, step.h, step.q0, step.p0
        V = step.stage_increments("V", "q", [1], per_h=True, smooth=False)[0]
        W1, W = step.stage_increments("W1", "p", [1])[0], step.stage_increments("W", "p", [1])[0]
        L1, L2 = step.stage_impulses("L", "lam", [0, 1])
        Psi1, Psi2 = step.stage_impulses("Psi", "psi", [0, 1])
        (P_N1, P_F1), (P_N, P_F) = contact_unknowns(step, "1"), contact_unknowns(step, "")
        t1, q1, ph, p1 = t0 + h, q0 + h * V, p0 + W1, p0 + W
        old, new = Point(system, t0, q0), Point(system, t1, q1)
        first = h / 2 * force(system, t0, q0, ph) - reaction(system, t0, q0, ph, L1, Psi1) + old.push(P_N1, P_F1)
        second = h / 2 * force(system, t1, q1, ph) - reaction(system, t1, q1, ph, L2, Psi2)
        step.equation(V, (system.H_p(t0, q0, ph) + system.H_p(t1, q1, ph)) / 2)
        step.equation(W1, first)
        step.equation(W, W1 + second + new.push(P_N - P_N1, P_F - P_F1))
        if system.n_holonomic:
            step.equation(system.g(t1, q1) / h, 0)
            step.equation(system.g_dot(t1, q1, p1), 0)
        if system.n_nonholonomic:
            step.equation(system.k(t1, q1, ph), 0)
            step.equation(system.k(t1, q1, p1), 0)
        r, r_F = old.scales(p0)
        pushed = P_N1 - tuning.relaxation * r * system.phi(t1, q1) / h
        step.equation(P_N1, np.maximum(pushed, 0))
        if old.rubs:
            on_discs(step, P_F1, new.slip(ph), tuning.relaxation, r_F, old.coefficients() * np.maximum(P_N1, 0))
        bound = new.coefficients() * (P_N - P_N1) + old.coefficients() * P_N1 if old.rubs else None
        bounce = velocity_laws(step, tuning, old, new, pushed >= 0, P_N, P_F, p1, bound)
        step.result(q=h * V, p=W)
        work = old.work(P_N1, P_F1, p0, p1) + new.work(P_N - P_N1, P_F - P_F1, p0, p1)
        added = energy_added(work, old, new, P_N, P_F)
        return Outcome(P_N, P_F, new.slip(p1), added, P_N @ bounce, lawful(step, old, new, P_N), bound)
