"""Coulomb friction of planar contacts at one instant: how walls in contact slide or stick, and impacts on them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from dalembert.contact import _plan as at
from dalembert.contact._complementarity import OPEN, PlanarFriction
from dalembert.errors import StepFailed
from dalembert.systems import MechanicalSystem, State

STOPPED = 1e-9
"""A slip below this part of what it consists of, or could become in a step, is none."""
MOST = 5
"""So many contacts with friction are resolved at once: all of their modes are tried."""
AT_REST = 1e-12
"""A normal velocity after an impact below this part of the velocities before it is none."""


@dataclass(frozen=True, eq=False)
class FrictionAt:
    """The walls that touch in a state, and what forces on them do (`PlanarFriction`)."""

    walls: tuple[int, ...]
    slip: np.ndarray
    law: PlanarFriction

    def modes(self, stuck: Collection[int], without_sticking: int, kept: Collection[int]) -> dict[int, int]:
        """How each wall goes on: it opens, sticks or slides. Those that are `kept` do not open.

        `stuck` are those whose slip is known to be zero, `without_sticking` is one on which friction is at its limit.
        """
        signs = np.where(np.isin(self.walls, list(stuck)), 0, np.sign(self.slip)).astype(int)
        choices = []
        for wall, sign, mu in zip(self.walls, signs, self.law.mu, strict=True):
            ways = (sign,) if sign else (1,) if mu == 0 else (1, -1) if wall == without_sticking else (0, 1, -1)
            choices.append(ways if wall in kept else (*ways, OPEN))
        found = self.law.solve(choices, signs)
        if found is None:
            raise StepFailed(
                "rigid bodies with Coulomb friction have no motion from here (Painleve's paradox): reduce friction, or let the "
                "contact yield"
            )
        return dict(zip(self.walls, found[0], strict=True))


def friction_at(
    walled: MechanicalSystem, start: State, t: float, here: np.ndarray, walls: tuple[int, ...], h: float
) -> FrictionAt:
    """What forces of contact do in a state."""
    if len(walls) > MOST:
        raise StepFailed(
            f"more than {MOST} contacts with friction at once are too many for events: use da.NonsmoothRattle() or "
            "da.MoreauJean()"
        )
    q, p = np.split(here, 2)
    theta, chosen = start.theta, list(walls)
    stuck = walled.in_contact(walls, (0,) * len(walls))
    A, b = (stuck.evaluate(f"multiplier_{part}", t, q, p, theta=theta) for part in ("matrix", "rhs"))
    slip = walled.evaluate("slip", t, q, p, theta=theta)[chosen]
    v, slip_v = walled.evaluate("v", t, q, p, theta=theta), walled.evaluate("slip_v", t, q, theta=theta)[chosen]
    normal, tangent = _rows(walled, len(walls))
    began = walled.evaluate("v", start.t, *np.split(start.packed, 2), theta=theta)
    could = np.abs(slip_v) @ (np.abs(v) + np.abs(began)) + h * np.abs(b[tangent])
    mu = walled.evaluate("friction", t, q, theta=theta)[chosen]
    law = PlanarFriction(A, b, normal, tangent, mu, np.zeros(len(walls)))
    return FrictionAt(walls, np.where(np.abs(slip) <= STOPPED * could, 0.0, slip), law)


def _rows(walled: MechanicalSystem, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the contacts are in the constraints (g, phi, k, slip) of the system in which all of them stick."""
    first = walled.n_holonomic
    return first + np.arange(count), first + count + walled.n_nonholonomic + np.arange(count)


def frictional_impact(
    walled: MechanicalSystem, start: State, t: float, here: np.ndarray, walls: set[int], held: Collection[int]
) -> tuple[np.ndarray, np.ndarray, set[int]]:
    """The momentum after an impact on some walls at once, its rows of the log, and the walls that stay in contact.

    Moreau's law: phi_dot+ >= -e phi_dot- on each wall, with equality where it gives an impulse, and Coulomb's law between its
    impulses and the slip after the impact. `held` walls have e = 0. Where that would make energy, as it can if friction
    couples with the approach, all e are lowered as far as necessary: for e = 0 it takes energy away.
    """
    (q, p), theta, chosen = np.split(here, 2), start.theta, tuple(sorted(walls))
    friction = friction_at(walled, start, t, here, chosen, 0.0)
    stuck = walled.in_contact(chosen, (0,) * len(chosen))
    before = stuck.evaluate("hidden", t, q, p, theta=theta)
    law, approach = friction.law, before[friction.law.normal]
    speed = np.zeros(walled.n_unilateral)
    speed[list(chosen)] = np.maximum(-approach, 0.0)
    e = walled.evaluate("restitution", speed, theta=theta)[list(chosen)]
    if not np.all((e >= 0) & (e <= 1)):
        raise StepFailed("the restitution is not between 0 and 1 at this approach speed")
    e = np.where(np.isin(chosen, list(held)), 0.0, e)

    def impulses(e: np.ndarray) -> np.ndarray:
        floor = -e * np.minimum(approach, 0.0)
        own = PlanarFriction(law.A, before, law.normal, law.tangent, law.mu, floor)
        choices: list[tuple[int, ...]] = [(0, 1, -1, OPEN) if mu else (1, OPEN) for mu in law.mu]
        found = own.solve(choices, np.zeros(len(chosen), dtype=int))
        if found is None:
            raise StepFailed("no impulses fulfil the conditions of this impact with friction")
        return found[1]

    def gain(P: np.ndarray) -> float:
        return float(P @ before + P @ law.A @ P / 2)

    P, low = impulses(e), 0.0
    if gain(P) > 0 and np.any(approach < 0) and not np.any(walled.evaluate("phi_t", t, q, theta=theta)):
        high = 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if gain(impulses(middle * e)) <= 0 else (low, middle)
        P = impulses(low * e)
    rows, momentum = [], p
    normals, slip_v = walled.evaluate("phi_q", t, q, theta=theta), walled.evaluate("slip_v", t, q, theta=theta)
    others = np.setdiff1d(np.arange(len(P)), np.concatenate([law.normal, law.tangent]))
    if len(others):
        C = np.vstack([walled.evaluate("G", t, q, theta=theta), walled.evaluate("k_v", t, q, p, theta=theta)])
        momentum = momentum + C.T @ P[others]
    for i, wall in enumerate(chosen):
        N, T = P[law.normal[i]], P[law.tangent[i]]
        if N <= 0:
            continue
        after = momentum + N * normals[wall] + T * slip_v[wall]
        energies = [walled.evaluate("H", t, q, x, theta=theta)[0] for x in (momentum, after)]
        row = np.zeros(at.LOG_STATE + 3 * len(q))
        row[: at.LOG_STATE] = t, wall, N, *energies, T
        row[at.LOG_STATE :] = np.concatenate([q, momentum, after])
        rows.append(row)
        momentum = after
    rates = before + law.A @ P
    none = AT_REST * (np.abs(before) + np.abs(law.A) @ np.abs(P))[law.normal]
    slow = np.abs(rates[law.normal]) <= none
    resting = {k for k, rests in zip(chosen, slow, strict=True) if rests}
    return momentum, np.array(rows).reshape(len(rows), at.LOG_STATE + 3 * len(q)), resting
