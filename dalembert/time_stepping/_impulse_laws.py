"""Time stepping with contact and friction: impulses over whole steps, the contact laws being projections.

    P_N = prox_C(P_N - r xi_N), C = [0, inf),   P_F = prox_D(P_F - r gamma_F), D = the disc of radius mu P_N

state 0 <= xi_N, P_N >= 0, xi_N P_N = 0 and Coulomb's law for every r > 0: xi_N = gamma_N+ + e gamma_N- (Newton's law of impact)
and gamma_F the sliding velocity. So one system of equations, of which contact makes a part not smooth, is a step.

V. Acary and B. Brogliato (2008), Numerical Methods for Nonsmooth Dynamical Systems, chapter 10; J. Breuling, G. Capobianco,
S. R. Eugster and R. I. Leine (2024), Nonlinear Anal. Hybrid Syst. 52, 101469.

Deviations from the print, of both methods:
    - Momenta p in place of velocities, H and forces as in all methods here.
    - e gamma_N- only where the contact closes (gamma_N- < 0), so that no contact ends with gamma_N+ < 0.
    - The coefficients e of a step are reduced as far as necessary for its contacts to add no energy, beside the work of moving
      walls and belts, as Newton's law with friction can (Kane's paradox), or for a solution; not for da.Spheres.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dalembert.methods import Step
from dalembert.symbolic import SymbolicArray, as_column, from_column
from dalembert.systems import BoundSystem, MechanicalSystem

RESTS = 1e-9
"""An approach below this part of what the normal impulse does to its velocity is a rounding error of a contact that lasts."""

ROUNDED = 1e-12
"""Gaps below this part of what they consist of, or become in a step, are rounding errors."""

FAINT = 1e-12
"""Friction that changes energies by less than this part of what normal impulses do needs no larger r than that."""


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

    def blur(self, old: Point, p0: Any, h: Any) -> Any:
        """How far above zero phi may be where a contact lasts, because positions are sums of steps that are rounded."""
        v, a = self.system.H_p(old.t, old.q, p0), self.system.H_pp(old.t, old.q, p0) @ force(self.system, old.t, old.q, p0)
        steps = np.abs(self.system.phi_q(self.t, self.q)) @ (np.abs(old.q) + h * np.abs(v) + h**2 * np.abs(a))
        return ROUNDED * (steps + np.abs(self.system.phi_t(self.t, self.q)) * np.abs(self.t))

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
        """r of the projections: one over the diagonal of W^T H_pp W, isotropic where there are several tangents.

        That of friction is bounded by what friction does beside P_N: its direction may vanish, as that of a pendulum at a wall.
        """
        H_pp, tiny = self.system.H_pp(self.t, self.q, p), 1e-200
        normal = [1 / (w @ H_pp @ w + tiny) for w in self.system.phi_q(self.t, self.q)]
        if not self.rubs:
            return np.array(normal, dtype=object).view(SymbolicArray), normal
        rows = self.system.slip_v(self.t, self.q)
        d = len(rows) // len(normal)
        sums = [sum(w @ H_pp @ w for w in rows[d * k : d * k + d]) for k in range(len(normal))]
        least = [FAINT / (r * mu**2 + tiny) for r, mu in zip(normal, self.coefficients(), strict=True)]
        tangential = [d / (s + at_least) for s, at_least in zip(sums, least, strict=True)]
        return np.array(normal, dtype=object).view(SymbolicArray), tangential

    @property
    def rubs(self) -> bool:
        """Whether there is friction."""
        return "friction" in self.system.definition.function_names

    def coefficients(self) -> Any:
        """mu of each contact."""
        return self.system.friction(self.t, self.q)


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


def force(system: BoundSystem, t: Any, q: Any, p: Any) -> Any:
    """f, what changes p beside constraints and contacts."""
    return system.force(t, q, p) - system.H_q(t, q, p)


def reaction(system: BoundSystem, t: Any, q: Any, p: Any, L: Any, Psi: Any) -> Any:
    """G^T L + k_v^T Psi."""
    total = system.G(t, q).T @ L if system.n_holonomic else 0
    return total + system.k_v(t, q, p).T @ Psi if system.n_nonholonomic else total
