"""Time stepping with contact and friction: impulses over whole steps, the contact laws being projections.

    P_N = prox_C(P_N - r xi_N), C = [0, inf),   P_F = prox_D(P_F - r gamma_F), D = the disc of radius mu P_N

state 0 <= xi_N, P_N >= 0, xi_N P_N = 0 and Coulomb's law for every r > 0: xi_N = gamma_N+ + e gamma_N- (Newton's law of impact)
and gamma_F the sliding velocity. So one system of equations, of which contact makes a part not smooth, is a step.

V. Acary and B. Brogliato (2008), Numerical Methods for Nonsmooth Dynamical Systems, chapter 10; J. Breuling, G. Capobianco,
S. R. Eugster and R. I. Leine (2024), Nonlinear Anal. Hybrid Syst. 52, 101469.

Deviations from the print, of both methods:
    - Momenta p in place of velocities, H and forces as in all methods here.
    - e gamma_N- only where the contact closes (gamma_N- < 0), so that no contact ends with gamma_N+ < 0.
    - The coefficients e of a step are reduced, at last to zero, while its contacts would add energy, beside the work of moving
      walls and belts, which Newton's law with friction can (Kane's paradox), or while no solution is found; not for da.Spheres.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dalembert.errors import InputError, UnsupportedSystem, is_one_of
from dalembert.methods import OneStepMethod, Step
from dalembert.symbolic import SymbolicArray, as_column, from_column
from dalembert.systems import BoundSystem, MechanicalSystem, Spheres, System

RESTS = 1e-9
"""An approach below this part of what the normal impulse does to its velocity is a rounding error of a contact that lasts."""


class Tuning(NamedTuple):
    """What the driver may change in the equations of a step: r is multiplied by `relaxation`, e by `restitution`."""

    relaxation: Any = 1.0
    restitution: Any = 1.0


class Outcome(NamedTuple):
    """What the contacts of a step did: impulses, sliding velocities at its end, the energy that they and restitution add."""

    P_N: Any
    P_F: Any
    slip: Any
    work: Any
    bounce: Any
    lawful: Any
    """Negative where a contact acts with mu < 0, or with e outside of [0, 1]."""
    bound: Any
    """mu P_N, which |P_F| reaches where a contact slides; None where there is no friction."""


@dataclass(frozen=True)
class Point:
    """The normal and tangential directions of all contacts at a state (t, q, p), and their velocities."""

    system: BoundSystem
    t: Any
    q: Any

    def push(self, P_N: Any, P_F: Any) -> Any:
        """W_N P_N + W_F P_F, what impulses of contacts add to p."""
        pushed = self.system.phi_q(self.t, self.q).T @ P_N
        return pushed + self.system.slip_v(self.t, self.q).T @ P_F if len(P_F) else pushed

    def work(self, P_N: Any, P_F: Any, p0: Any, p1: Any) -> Any:
        """What impulses do at the mean of the velocities that belong to two momenta."""
        return self.push(P_N, P_F) @ (self.system.H_p(self.t, self.q, p0) + self.system.H_p(self.t, self.q, p1)) / 2

    @property
    def own(self) -> tuple[Any, Any]:
        """gamma_N and gamma_F where the system is at rest: how walls move, and what slides on them by itself, as a belt."""
        t, q, at_rest = self.t, self.q, np.zeros(self.system.definition.state_blocks[1][1])
        still = self.system.slip(t, q, at_rest) - self.system.slip_v(t, q) @ self.system.H_p(t, q, at_rest) if self.rubs else 0
        return self.system.phi_t(t, q), still

    def closing(self, p: Any) -> Any:
        """gamma_N, the rate of phi."""
        return self.system.phi_dot(self.t, self.q, p)

    def slip(self, p: Any) -> Any:
        """gamma_F, no numbers where there is no friction."""
        return self.system.slip(self.t, self.q, p) if self.rubs else np.zeros(0, dtype=object).view(SymbolicArray)

    def scales(self, p: Any) -> tuple[Any, Any]:
        """r of the projections: one over the diagonal of W^T H_pp W, isotropic where there are several tangents."""
        H_pp, tiny = self.system.H_pp(self.t, self.q, p), 1e-200
        normal = [1 / (w @ H_pp @ w + tiny) for w in self.system.phi_q(self.t, self.q)]
        if not self.rubs:
            return np.array(normal, dtype=object).view(SymbolicArray), normal
        rows = self.system.slip_v(self.t, self.q)
        d = len(rows) // len(normal)
        sums = [sum(w @ H_pp @ w for w in rows[d * k : d * k + d]) for k in range(len(normal))]
        return np.array(normal, dtype=object).view(SymbolicArray), [d / (s + tiny) for s in sums]

    @property
    def rubs(self) -> bool:
        """Whether there is friction."""
        return "friction" in self.system.definition.function_names

    def coefficients(self) -> Any:
        """mu of each contact."""
        return self.system.friction(self.t, self.q)


def counted_of(system: System) -> tuple[str, ...]:
    """What a run counts: steps that needed projections or less restitution; of spheres, sweeps and steps that these left."""
    return ("sweeps", "unsolved_steps") if isinstance(system, Spheres) else ("projected_steps", "damped_impacts")


class TimeStepping(OneStepMethod):
    """What both methods have in common: they serve all constraints of mechanics at once."""

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
        step.equation(W, h * _force(system, t, q, p) - _reaction(system, t, q, p, L, Psi) + M.push(P_N, P_F))
        if system.n_holonomic:
            step.equation(system.g_dot(t1, q1, p1), 0)
        if system.n_nonholonomic:
            step.equation(system.k(t1, q1, p1), 0)
        bound = M.coefficients() * P_N if M.rubs else None
        bounce = velocity_laws(step, tuning, M, M, system.phi(M.t, M.q) <= 0, P_N, P_F, p1, bound)
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
        first = h / 2 * _force(system, t0, q0, ph) - _reaction(system, t0, q0, ph, L1, Psi1) + old.push(P_N1, P_F1)
        second = h / 2 * _force(system, t1, q1, ph) - _reaction(system, t1, q1, ph, L2, Psi2)
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


def contact_unknowns(step: Step, stage: str) -> tuple[Any, Any]:
    """P_N and P_F of a stage."""
    system = step.definition
    assert isinstance(system, MechanicalSystem)
    m = system.n_unilateral
    P_N = step.corrections("P_N" + stage, m)
    return P_N, step.corrections("P_F" + stage, m * system.n_tangents) if system.n_tangents else np.zeros(0)


def velocity_laws(
    step: Step, tuning: Tuning, before: Point, after: Point, closed: Any, P_N: Any, P_F: Any, p1: Any, bound: Any
) -> Any:
    """Newton's law of impact and Coulomb's law of friction for the contacts that are closed; no impulses at the others.

    `bound` is mu P_N. Returns e gamma_N- of each contact that is hit, zero of those that last.
    """
    approach, e = newton_coefficients(step, before)
    bounce = tuning.restitution * approach * e
    r, r_F = before.scales(step.p0)
    xi = after.closing(p1) - bounce
    step.equation(P_N, np.where(closed, np.maximum(P_N - tuning.relaxation * r * xi, 0), 0))
    if after.rubs:
        on_discs(step, P_F, after.slip(p1), tuning.relaxation, r_F, np.maximum(bound, 0))
    return np.where(approach > RESTS * P_N / r, bounce, 0)


def newton_coefficients(step: Step, before: Point) -> tuple[Any, Any]:
    """-gamma_N- of the contacts that close, and their coefficients of restitution e."""
    approach = np.maximum(-before.closing(step.p0), 0)
    return approach, from_column(step.definition.function("restitution")(as_column(approach), step.theta))


def lawful(step: Step, before: Point, after: Point, P_N: Any) -> Any:
    """The least of mu, e and 1 - e of all contacts that act; the model may compute coefficients that are none."""
    approach, e = newton_coefficients(step, before)
    least = np.where(approach > 0, np.minimum(e, 1 - e), 0)
    if after.rubs:
        least = np.minimum(least, after.coefficients())
    return np.min(np.where(P_N > 0, least, 0))


def on_discs(step: Step, P_F: Any, slip: Any, relaxation: Any, r: Any, radius: Any) -> None:
    """Demand P_F = prox(P_F - r gamma_F) onto discs, one for each contact."""
    d = len(P_F) // len(radius)
    for k, R in enumerate(radius):
        own = slice(d * k, d * k + d)
        y = P_F[own] - relaxation * r[k] * slip[own]
        size = np.sqrt(y @ y + 1e-290)
        step.equation(P_F[own], y * np.where(size <= R, 1.0, R / size))


def energy_added(work: Any, before: Point, after: Point, P_N: Any, P_F: Any) -> Any:
    """The energy that the contacts of a step add, measured as walls and belts see it: their own work is not part of it.

    `work` is that of all impulses at the mean of the velocities before and after; what moves by itself, phi_t and slip at
    v = 0, has its mean, too, so that this is P_N.(gamma_N- + gamma_N+)/2 + P_F.(gamma_F- + gamma_F+)/2.
    """
    (wall, belt), (wall_then, belt_then) = before.own, after.own
    added = work + P_N @ (wall + wall_then) / 2
    return added + P_F @ (belt + belt_then) / 2 if before.rubs else added


def _force(system: BoundSystem, t: Any, q: Any, p: Any) -> Any:
    return system.force(t, q, p) - system.H_q(t, q, p)


def _reaction(system: BoundSystem, t: Any, q: Any, p: Any, L: Any, Psi: Any) -> Any:
    """G^T L + k_v^T Psi."""
    total = system.G(t, q).T @ L if system.n_holonomic else 0
    return total + system.k_v(t, q, p).T @ Psi if system.n_nonholonomic else total
