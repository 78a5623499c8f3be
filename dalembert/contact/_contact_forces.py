"""Forces while walls are touched, from the states of a run and from when it touched which walls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dalembert.contact._complementarity import OPEN
from dalembert.contact._frictional import friction_coefficients
from dalembert.contact._here import Here
from dalembert.engine._records import Contacts
from dalembert.systems import MechanicalSystem
from dalembert.systems._newton import solve_rows
from dalembert.systems._states import States


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Forces of contact at every stored state, (time, wall): they act on p by normal grad phi + friction slip_v^T."""

    normal: np.ndarray
    """N >= 0, zero where a wall is not touched."""
    friction: np.ndarray
    """T, against the slip velocity or, where the contact sticks, up to mu N either way."""


@dataclass(frozen=True, eq=False)
class _Mode:
    """Stored states in which the same walls are touched in the same way, and all multipliers of the system in contact there."""

    rows: np.ndarray
    touching: np.ndarray
    sliding: tuple[int, ...]
    held: MechanicalSystem
    multipliers: np.ndarray


def _modes(
    walled: MechanicalSystem, contacts: Contacts, t: np.ndarray, states: np.ndarray, theta: np.ndarray
) -> Iterator[_Mode]:
    """From the hidden constraints of the system in contact."""
    modes = np.full((len(t), walled.n_unilateral), OPEN)
    for which, begin, end, slides in zip(contacts.which, contacts.begin, contacts.end, contacts.slides, strict=True):
        modes[(t >= begin) & (t <= end), which] = slides
    for mode in np.unique(modes, axis=0):
        touching, rows = np.flatnonzero(mode != OPEN), np.flatnonzero(np.all(modes == mode, axis=1))
        if not len(touching):
            continue
        sliding = tuple(mode[touching].tolist()) if walled.n_tangents else ()
        held, count = walled.in_contact(tuple(touching.tolist()), sliding), len(rows)
        here = States(held, t[rows], states[rows], np.tile(theta, (count, 1)), np.zeros((count, held.n_multipliers)))
        matrix, rhs = (here.evaluate(f"multiplier_{part}") for part in ("matrix", "rhs"))
        first, second = np.split(states[rows[0]], 2)
        found = _multipliers(matrix, rhs, walled.redundant_rows(float(t[rows[0]]), first, second, theta))
        yield _Mode(rows, touching, sliding, held, found)


def contact_forces(
    walled: MechanicalSystem, contacts: Contacts, t: np.ndarray, states: np.ndarray, theta: np.ndarray
) -> ContactForces:
    """Minus the multipliers of the walls that are touched."""
    forces = ContactForces(np.zeros((len(t), walled.n_unilateral)), np.zeros((len(t), walled.n_unilateral)))
    for mode in _modes(walled, contacts, t, states, theta):
        rows, touching, held = mode.rows, mode.touching, mode.held
        forces.normal[np.ix_(rows, touching)] = -mode.multipliers[:, walled.n_holonomic : held.n_holonomic]
        stuck = -mode.multipliers[:, held.n_holonomic + walled.n_nonholonomic :].T
        for column, slides in zip(touching, mode.sliding, strict=False):
            if slides:
                for row in rows:
                    N = forces.normal[row, [column]]
                    mu = friction_coefficients(Here.of(walled, theta, float(t[row]), states[row]), (int(column),), N)
                    forces.friction[row, column] = -slides * mu[0] * N[0]
            else:
                forces.friction[rows, column], stuck = stuck[0], stuck[1:]
    return forces


def multipliers_in_contact(
    walled: MechanicalSystem, contacts: Contacts, t: np.ndarray, states: np.ndarray, theta: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """The multipliers of a system's own constraints, (time, lam and psi): those of `free` motion where no wall is touched."""
    found = free.copy()
    for mode in _modes(walled, contacts, t, states, theta):
        psi = mode.held.n_holonomic + np.arange(walled.n_nonholonomic)
        found[mode.rows] = mode.multipliers[:, [*range(walled.n_holonomic), *psi.tolist()]]
    return found


def _multipliers(matrices: np.ndarray, rhs: np.ndarray, redundant: int) -> np.ndarray:
    """Of matrices A of rank n - `redundant`, solutions of A x = b that are as good as any other: walls are not redundant."""
    if not redundant:
        return solve_rows(matrices, rhs)
    scale = 1 / np.sqrt(np.einsum("...ii->...i", matrices))
    left, values, right = np.linalg.svd(matrices * scale[..., :, None] * scale[..., None, :])
    parts = np.einsum("...ji,...j->...i", left, scale * rhs)[..., :-redundant] / values[..., :-redundant]
    return scale * np.einsum("...ij,...i->...j", right[..., :-redundant, :], parts)
