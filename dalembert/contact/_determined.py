"""Whether the motion determines the forces of contacts, as it does not under a table; of several, those of least norm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.contact._frictional import friction_coefficients
from dalembert.contact._here import Here
from dalembert.engine._records import SteppedContacts
from dalembert.systems import MechanicalSystem
from dalembert.systems._start_checks import CONSISTENCY_TOLERANCE

NONE, SLIPS, DEPENDENT, RESTS = 1e-7, 1e-6, 1e-9, 1e-9
"""Below these parts of what they consist of rates are none, velocities are no slip, directions depend on each other, and
contacts rest."""
WEIGHT = 1e6
"""How much more it counts that forces move the system as before than that they are small."""


@dataclass(frozen=True, eq=False)
class Pushes:
    """Columns that say what forces do to the momentum, in units in which its square is an energy."""

    normal: np.ndarray
    tangent: np.ndarray
    """(dim, wall, direction), no directions without friction."""
    others: np.ndarray
    """Of constraints that are no walls."""

    @classmethod
    def at(cls, here: Here) -> Pushes:
        """All walls at a point."""
        values, vectors = np.linalg.eigh(here("H_pp"))
        root, m = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T, here.system.n_unilateral
        tangent = root @ here("slip_v").T if here.system.n_tangents else np.zeros((len(root), 0))
        return cls(root @ here("phi_q").T, tangent.reshape(len(root), m, -1), root @ np.vstack([here("G"), here("k_v")]).T)

    def undetermined(self, columns: Sequence[np.ndarray], owners: Sequence[int]) -> set[int]:
        """The owners of columns that are combinations of other columns and constraints."""
        all_of_them = np.column_stack([*columns, self.others])
        unit = all_of_them / np.maximum(np.linalg.norm(all_of_them, axis=0), 1e-300)
        _, values, rows = np.linalg.svd(unit)
        free = rows[np.sum(values > DEPENDENT * values[0]) :, : len(columns)]
        return {owner for owner, share in zip(owners, free.T, strict=True) if np.any(np.abs(share) > DEPENDENT)}


def touching(phi: np.ndarray, rounding: np.ndarray, strength: np.ndarray, speed: Any, h: float) -> np.ndarray:
    """Which walls touch, as far as rounding errors of phi tell, and of positions, which are sums of what moves in a step h."""
    found: np.ndarray = phi <= CONSISTENCY_TOLERANCE * (rounding + h * speed * strength)
    return found


def least_forces(here: Here, walls: np.ndarray, f: np.ndarray, h: float) -> tuple[np.ndarray, set[int]]:
    """Of all forces of walls that act as f = (.., N, .., T) does, those of least norm, (N, T), and which walls have others.

    f are the forces of the system in contact with these walls, of which all stick, with rates b + A f (`PlanarFriction`).
    Other constraints keep their forces.
    """
    system, m = here.system, len(walls)
    N, T = system.n_holonomic + np.arange(m), len(f) - m + np.arange(m if system.n_tangents else 0)
    pushes, own = Pushes.at(here), np.concatenate([f[N], f[T]])
    forces, owners = _that_may_act(here, walls, f, (N, T), h)
    directions = np.hstack([pushes.normal[:, walls], *pushes.tangent[:, walls].transpose(2, 0, 1)])
    columns, push = directions @ forces, directions @ own
    undetermined = {int(walls[k]) for k in pushes.undetermined(list(columns.T), owners)}
    if not undetermined or "friction_law" in system.function_names:
        return own, undetermined
    if not np.any(push):  # as where all let go at once
        return 0 * own, undetermined
    from scipy.optimize import nnls

    scale = WEIGHT / np.linalg.norm(push)
    x = nnls(np.vstack([scale * columns, forces / np.linalg.norm(own)]), np.concatenate([scale * push, 0 * own]))[0]
    x[x > 0] += np.linalg.lstsq(columns[:, x > 0], push - columns @ x, rcond=DEPENDENT)[0]  # what the weight left
    return forces @ x, undetermined


def _that_may_act(
    here: Here, walls: np.ndarray, f: np.ndarray, places: tuple[np.ndarray, np.ndarray], h: float
) -> tuple[np.ndarray, list[int]]:
    """Columns (N, T) of which, with numbers >= 0, all forces are made up that walls may have, and whose they are.

    A wall whose normal rate is not zero opens; one that slides, or begins to, has T = -sign mu N, what forces do in a millionth
    of a step being no slip. The others have N >= 0 and |T| <= mu N.
    """
    (N, T), m = places, len(walls)
    held = here.on(here.system.in_contact(tuple(walls.tolist()), (0,) * len(T)))
    A, b = held("multiplier_matrix"), held("multiplier_rhs")
    rates, sizes = b + A @ f, np.abs(b) + np.abs(A) @ np.abs(f)
    signs = np.where(np.abs(rates) > NONE * sizes, np.sign(rates), 0)
    mu, slides = np.zeros(m), np.zeros(m)
    if len(T):
        mu, slip = friction_coefficients(here, tuple(walls.tolist()), f[N]), here("slip")[walls]
        slides = np.where(np.abs(slip) > SLIPS * h * sizes[T], np.sign(slip), signs[T])
    columns: list[np.ndarray] = []
    owners: list[int] = []
    for k in np.flatnonzero(signs[N] <= 0):
        for way in (0.0,) if mu[k] == 0 else (-slides[k],) if slides[k] else (1.0, -1.0):
            column = np.zeros(m + len(T))
            column[[k, -m + k]] = way * mu[k]
            column[k] = 1.0
            columns, owners = [*columns, column], [*owners, int(k)]
    return np.array(columns).reshape(-1, m + len(T)).T, owners


def unique_impulses(
    walled: MechanicalSystem, contacts: SteppedContacts, t: np.ndarray, states: np.ndarray, theta: np.ndarray, h: float
) -> np.ndarray:
    """Whether the impulses of each row of contacts by time stepping are the only ones, judged by the states where they end."""
    unique = np.ones(len(contacts), dtype=bool)
    for end in np.unique(contacts.end):
        rows = np.flatnonzero(contacts.end == end)
        impulses = np.zeros(walled.n_unilateral)
        impulses[contacts.which[rows]] = contacts.normal[rows]
        here = Here.of(walled, theta, float(end), states[np.argmin(np.abs(t - end))])
        unique[rows] = ~np.isin(contacts.which[rows], list(_undetermined_impulses(here, impulses, h)))
    return unique


def _undetermined_impulses(here: Here, impulses: np.ndarray, h: float) -> set[int]:
    """The walls whose impulses are not the only ones; what touches and rests could have some, what slides has a direction."""
    columns: list[np.ndarray] = []
    owners: list[int] = []
    pushes, m = Pushes.at(here), len(impulses)
    strength = np.linalg.norm(pushes.normal, axis=0)
    speed = here.speed + np.max(impulses * strength)
    touches = touching(here("phi"), here("phi_rounding"), strength, speed, h)
    touches &= np.abs(here("phi_dot")) <= RESTS * speed * strength
    rubs = bool(here.system.n_tangents)
    slip, mu = (here("slip").reshape(m, -1), here("friction")) if rubs else (np.zeros((m, 0)), np.zeros(m))
    for k in np.flatnonzero(touches | (impulses > 0)):
        across, fast = pushes.tangent[:, k], np.linalg.norm(slip[k])
        slides = fast > RESTS * speed * np.linalg.norm(across)
        found = [pushes.normal[:, k] - (mu[k] * across @ slip[k] / fast if slides else 0)]
        found += [] if slides or mu[k] == 0 else list(across.T)
        columns, owners = [*columns, *found], [*owners, *[int(k)] * len(found)]
    return pushes.undetermined(columns, owners)
