"""Coulomb friction of planar contacts at one instant: how walls in contact slide or stick, and impacts on them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np

from dalembert.contact._complementarity import NEARLY, OPEN, PlanarFriction
from dalembert.contact._event_memory import entry_of_log
from dalembert.contact._here import Here
from dalembert.errors import StepFailed

STOPPED = 1e-9
"""A slip below this part of what it consists of, or could become in a step, is none."""
MOST = 5
"""So many contacts with friction are resolved at once: all of their modes are tried."""
MOST_FORCES = 100
"""So often coefficients are taken anew at the normal forces that they lead to."""
AT_REST = 1e-12
"""A normal velocity after an impact below this part of the velocities before it is none."""


@dataclass(frozen=True, eq=False)
class FrictionAt:
    """The walls that touch in a state, and what forces on them do (`PlanarFriction`)."""

    walls: tuple[int, ...]
    slip: np.ndarray
    law: PlanarFriction
    coefficients: Callable[[np.ndarray], np.ndarray]
    """mu of normal forces."""

    def modes(self, stuck: Collection[int], without_sticking: Collection[int], kept: Collection[int]) -> dict[int, int]:
        """How each wall goes on: it opens, sticks or slides. Those that are `kept` do not open.

        `stuck` are those whose slip is known to be zero, `without_sticking` are those on which friction is at its limit.
        """
        signs = np.where(np.isin(self.walls, list(stuck)), 0, np.sign(self.slip)).astype(int)
        mu = self.coefficients(np.full(len(self.walls), np.inf))
        for _ in range(MOST_FORCES):
            choices = []
            for wall, sign, coefficient in zip(self.walls, signs, mu, strict=True):
                ways = (sign,) if sign else (1,) if coefficient == 0 else (1, -1) if wall in without_sticking else (0, 1, -1)
                choices.append(ways if wall in kept else (*ways, OPEN))
            law = replace(self.law, mu=mu)
            found = law.solve(choices, signs)
            if found is None or not law.has_one_motion(signs):
                break
            N, before = found[1][self.law.normal], mu
            mu = np.where(N > 0, self.coefficients(N), before)
            if np.all(np.abs(mu - before) <= NEARLY * mu):
                return dict(zip(self.walls, found[0], strict=True))
        raise StepFailed(
            "rigid bodies with Coulomb friction have no or several motions from here (Painleve's paradox): reduce friction, or "
            'take da.MoreauJean(painleve="impact"), which goes on with an impact without collision'
        )


def friction_at(here: Here, began: Here, walls: tuple[int, ...], h: float) -> FrictionAt:
    """What forces of contact do at a point; the motion `began` at another one."""
    if len(walls) > MOST:
        raise StepFailed(
            f"more than {MOST} contacts with friction at once are too many for events: use da.NonsmoothRattle() or "
            "da.MoreauJean()"
        )
    stuck = here.on(here.system.in_contact(walls, (0,) * len(walls)))
    chosen, (normal, tangent) = list(walls), _rows(here, walls)
    A, b = stuck("multiplier_matrix"), stuck("multiplier_rhs")
    slip, slip_v = here("slip")[chosen], here("slip_v")[chosen]
    could = np.abs(slip_v) @ (np.abs(here("v")) + np.abs(began("v"))) + h * np.abs(b[tangent])

    def coefficients(N: np.ndarray) -> np.ndarray:
        return friction_coefficients(here, walls, N)

    law = PlanarFriction(A, b, normal, tangent, coefficients(np.full(len(walls), np.inf)), np.zeros(len(walls)))
    return FrictionAt(walls, np.where(np.abs(slip) <= STOPPED * could, 0.0, slip), law, coefficients)


def has_one_motion(here: Here, walls: tuple[int, ...], h: float) -> bool:
    """Whether the rigid model has accelerations, and only these, while some walls touch (`PlanarFriction.has_one_motion`).

    A slip that forces change by as much in a step h is not told from none: a state is known up to such an error.
    """
    friction = friction_at(here, here, walls, 0.0)
    law = friction.law
    sizes, (normal, tangent) = np.diag(law.A), (law.normal, law.tangent)
    stops = h * (np.abs(law.b[tangent]) + law.mu * sizes[tangent] * np.abs(law.b[normal]) / sizes[normal])
    return law.has_one_motion(np.where(np.abs(friction.slip) <= stops, 0, np.sign(friction.slip)).astype(int))


def friction_coefficients(here: Here, walls: tuple[int, ...], N: np.ndarray) -> np.ndarray:
    """mu of some walls under normal forces; impacts have infinite ones."""
    forces = np.full(here.system.n_unilateral, np.inf)
    forces[list(walls)] = N
    law = "friction_law" if "friction_law" in here.system.function_names else "friction"
    mu = here(law, normal=forces)[list(walls)]
    for wall, coefficient in zip(walls, mu, strict=True):
        if not 0 <= coefficient < np.inf:
            raise StepFailed(
                f"the coefficient of friction of {here.system.row_called('phi', wall)} is {coefficient:.6g}: it must be >= 0 "
                "and finite"
            )
    return mu


def _rows(here: Here, walls: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Where the contacts are in the constraints (g, phi, k, slip) of the system in which all of them stick."""
    first, count = here.system.n_holonomic, len(walls)
    return first + np.arange(count), first + count + here.system.n_nonholonomic + np.arange(count)


@dataclass(frozen=True, eq=False)
class Impact:
    """An impact on some walls at once: Moreau's law.

    phi_dot+ >= -e phi_dot- on each wall, with equality where it gives an impulse, and Coulomb's law between its impulses and
    the slip after the impact. J. J. Moreau, in Nonsmooth Mechanics and Applications, CISM 302 (1988), section 7.
    """

    law: PlanarFriction
    before: np.ndarray
    """The velocities (g_dot, phi_dot, k, slip) before it."""
    speed: float
    """sqrt(p^T H_pp p) before it."""

    def impulses(self, e: np.ndarray) -> np.ndarray | None:
        """The impulses for coefficients of restitution e, if there are any."""
        law, approach = self.law, self.before[self.law.normal]
        own = PlanarFriction(law.A, self.before, law.normal, law.tangent, law.mu, -e * np.minimum(approach, 0.0))
        choices: list[tuple[int, ...]] = [(0, 1, -1, OPEN) if mu else (1, OPEN) for mu in law.mu]
        found = own.solve(choices, np.zeros(len(e), dtype=int))
        return None if found is None else found[1]

    def gain(self, P: np.ndarray) -> float:
        """The kinetic energy that impulses give where walls are at rest."""
        return float(P @ self.before + P @ self.law.A @ P / 2)

    def with_most_of(self, e: np.ndarray, may_gain: bool) -> np.ndarray:
        """The impulses for the largest multiple of e, at most e itself, that has some and gives no energy, unless it may.

        e = 0 takes energy away. Between rough walls that face each other, as those of a narrow wedge, it may be the only
        one with a solution: what is hit jams.
        """
        if not np.any((self.before < -AT_REST * self._sizes(0 * self.before))[self.law.normal]):
            return 0 * self.before  # nothing is hit: other solutions are impacts without collision
        least, low, high = self.impulses(0 * e), 0.0, 2.0
        if least is None:
            raise StepFailed("no impulses fulfil the conditions of this impact with friction: moving walls jam what is between")
        best = least
        for _ in range(52):
            middle = (low + high) / 2
            P = self.impulses(middle * e)
            if P is None or (self.gain(P) > 0 and not may_gain):
                high = middle
            elif middle == 1.0:
                return P
            else:
                best, low = P, middle
        return best if low > 1e3 * NEARLY else least  # conditions are loosened by as much

    def resting(self, P: np.ndarray) -> np.ndarray:
        """Which walls have no normal velocity after the impact, compared with all motion before it."""
        return (np.abs(self.before + self.law.A @ P) <= AT_REST * self._sizes(P))[self.law.normal]

    def _sizes(self, P: np.ndarray) -> np.ndarray:
        """What velocities after impulses P consist of, and the whole motion."""
        return np.abs(self.before) + np.abs(self.law.A) @ np.abs(P) + np.sqrt(np.diag(self.law.A)) * self.speed


def frictional_impact(
    here: Here, began: Here, walls: set[int], held: Collection[int]
) -> tuple[np.ndarray, list[np.void], set[int]]:
    """The momentum after an impact on some walls, its entries of the log, and the walls that stay in contact.

    `held` walls have e = 0. Where Moreau's law would make energy, as it can if friction couples with the approach (Kane's
    paradox), or has no solution, all e are lowered as far as necessary; where a wall moves, it may do work.
    """
    chosen, system = tuple(sorted(walls)), here.system
    law = friction_at(here, began, chosen, 0.0).law
    impact = Impact(law, here.on(system.in_contact(chosen, (0,) * len(chosen)))("hidden"), here.speed)
    speed = np.zeros(system.n_unilateral)
    speed[list(chosen)] = np.maximum(-impact.before[law.normal], 0.0)
    e = here("restitution", speed=speed)[list(chosen)]
    for wall, coefficient in zip(chosen, e, strict=True):
        if not 0 <= coefficient <= 1:
            raise StepFailed(
                f"the restitution of {system.row_called('phi', wall)} is {coefficient:.6g} at the approach speed "
                f"{speed[wall]:.6g}: it must be between 0 and 1"
            )
    e = np.where(np.isin(chosen, list(held)), 0.0, e)
    P = impact.with_most_of(e, may_gain=bool(np.any(here("phi_t"))))
    momentum, entries = _entries(here, chosen, law, P)
    return momentum, entries, {k for k, rests in zip(chosen, impact.resting(P), strict=True) if rests}


def _entries(here: Here, walls: tuple[int, ...], law: PlanarFriction, P: np.ndarray) -> tuple[np.ndarray, list[np.void]]:
    """The momentum after impulses P, and the entry of each wall that gives one in the log; other constraints act first."""
    normals, slip_v = here("phi_q"), here("slip_v")
    others = np.setdiff1d(np.arange(len(P)), np.concatenate([law.normal, law.tangent]))
    entries: list[np.void] = []
    p = here.p + np.vstack([here("G"), here("k_v")]).T @ P[others]
    for wall, N, T in zip(walls, P[law.normal], P[law.tangent], strict=True):
        if N <= 0:
            continue
        after = p + N * normals[wall] + T * slip_v[wall]
        energies = [here.moving(x)("H")[0] for x in (p, after)]
        entries.append(np.array([(here.t, wall, N, *energies, T, here.q, p, after)], dtype=entry_of_log(len(p)))[0])
        p = after
    return p, entries
