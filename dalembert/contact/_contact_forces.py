"""The forces of sustained contacts, from the states of a run and from when it touched which walls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.contact._complementarity import OPEN
from dalembert.contact._frictional import friction_coefficients
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


def contact_forces(
    walled: MechanicalSystem, contacts: Contacts, t: np.ndarray, states: np.ndarray, theta: np.ndarray
) -> ContactForces:
    """From the hidden constraints of the system in contact."""
    modes = np.full((len(t), walled.n_unilateral), OPEN)
    for which, begin, end, slides in zip(contacts.which, contacts.begin, contacts.end, contacts.slides, strict=True):
        modes[(t >= begin) & (t <= end), which] = slides
    forces = ContactForces(np.zeros(modes.shape), np.zeros(modes.shape))
    for mode in np.unique(modes, axis=0):
        touching, rows = np.flatnonzero(mode != OPEN), np.flatnonzero(np.all(modes == mode, axis=1))
        if not len(touching):
            continue
        sliding = tuple(mode[touching].tolist()) if walled.n_tangents else ()
        held, count = walled.in_contact(tuple(touching.tolist()), sliding), len(rows)
        here = States(held, t[rows], states[rows], np.tile(theta, (count, 1)), np.zeros((count, held.n_multipliers)))
        matrix, rhs = (here.evaluate(f"multiplier_{part}") for part in ("matrix", "rhs"))
        first, second = np.split(states[rows[0]], 2)
        found = -_multipliers(matrix, rhs, walled.redundant_rows(float(t[rows[0]]), first, second, theta))
        forces.normal[np.ix_(rows, touching)] = found[:, walled.n_holonomic : held.n_holonomic]
        stuck = found[:, held.n_holonomic + walled.n_nonholonomic :].T
        for column, slides in zip(touching, sliding, strict=False):
            if slides:
                for row in rows:
                    q, N = states[row, : walled.dim], forces.normal[row, [column]]
                    mu = friction_coefficients(walled, theta, float(t[row]), q, (int(column),), N)
                    forces.friction[row, column] = -slides * mu[0] * N[0]
            else:
                forces.friction[rows, column], stuck = stuck[0], stuck[1:]
    return forces


def _multipliers(matrices: np.ndarray, rhs: np.ndarray, redundant: int) -> np.ndarray:
    """Of matrices A of rank n - `redundant`, solutions of A x = b that are as good as any other: walls are not redundant."""
    if not redundant:
        return solve_rows(matrices, rhs)
    scale = 1 / np.sqrt(np.einsum("...ii->...i", matrices))
    left, values, right = np.linalg.svd(matrices * scale[..., :, None] * scale[..., None, :])
    parts = np.einsum("...ji,...j->...i", left, scale * rhs)[..., :-redundant] / values[..., :-redundant]
    return scale * np.einsum("...ij,...i->...j", right[..., :-redundant, :], parts)
