"""Forces while walls are touched, from the states of a run and from when it touched which walls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dalembert.contact._complementarity import OPEN
from dalembert.contact._determined import least_forces, touching
from dalembert.contact._frictional import friction_coefficients
from dalembert.contact._here import Here
from dalembert.engine._records import Contacts
from dalembert.systems import MechanicalSystem
from dalembert.systems._newton import solve_rows
from dalembert.systems._states import States

INDEPENDENT = 1e-8
"""Eigenvalues of what forces do to their rates above which they are the only ones, relative to their diagonal."""


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Forces of contact at every stored state, (time, wall): they act on p by normal grad phi + friction slip_v^T."""

    normal: np.ndarray
    """N >= 0, zero where a wall is not touched."""
    friction: np.ndarray
    """T, against the slip velocity or, where the contact sticks, up to mu N either way."""
    unique: np.ndarray
    """Whether the motion determines them; if not, as of the feet of a table, they are those of least norm."""


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
        held = walled.in_contact(tuple(touching.tolist()), sliding)
        here = _all_at(held, t[rows], states[rows], theta)
        matrix, rhs = (here.evaluate(f"multiplier_{part}") for part in ("matrix", "rhs"))
        first, second = np.split(states[rows[0]], 2)
        found = _multipliers(matrix, rhs, walled.redundant_rows(float(t[rows[0]]), first, second, theta))
        yield _Mode(rows, touching, sliding, held, found)


def contact_forces(
    walled: MechanicalSystem, contacts: Contacts, t: np.ndarray, states: np.ndarray, theta: np.ndarray, h: float
) -> ContactForces:
    """Minus the multipliers of the walls that are touched."""
    none = np.zeros((len(t), walled.n_unilateral))
    forces = ContactForces(none.copy(), none.copy(), none == 0)
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
        _share(walled, mode, forces, t, states, theta, h)
    return forces


def _share(
    walled: MechanicalSystem, mode: _Mode, forces: ContactForces, t: np.ndarray, states: np.ndarray, theta: np.ndarray, h: float
) -> None:
    """Share forces that the motion does not determine between all walls that touch, needed or not."""
    n_g, psi = walled.n_holonomic, mode.held.n_holonomic + np.arange(walled.n_nonholonomic)
    here = _all_at(walled, t[mode.rows], states[mode.rows], theta)
    normals, H_pp, momenta = here.evaluate("phi_q"), here.evaluate("H_pp"), here.packed[:, walled.dim :]
    strength = np.sqrt(np.einsum("tij,tjk,tik->ti", normals, H_pp, normals))
    speed = np.sqrt(np.maximum(np.einsum("ti,tij,tj->t", momenta, H_pp, momenta), 0))
    speed += h * np.max(forces.normal[mode.rows] * strength, axis=1)
    touches = touching(here.evaluate("phi"), here.evaluate("phi_rounding"), strength, speed[:, None], h)
    touches[:, mode.touching] = True
    stuck = walled.in_contact(tuple(mode.touching.tolist()), (0,) * len(mode.sliding))
    A = _all_at(stuck, t[mode.rows], states[mode.rows], theta).evaluate("multiplier_matrix")
    unit = 1 / np.sqrt(np.einsum("...ii->...i", A))
    others = touches.sum(axis=1) > len(mode.touching)
    others |= np.linalg.eigvalsh(unit[:, :, None] * A * unit[:, None, :])[:, 0] < INDEPENDENT
    for k, row in zip(np.flatnonzero(others), mode.rows[others], strict=True):
        walls, own = np.flatnonzero(touches[k]), -mode.multipliers[k]
        friction = forces.friction[row, walls] if walled.n_tangents else []
        f = np.concatenate([own[:n_g], forces.normal[row, walls], own[psi], friction])
        shared, undetermined = least_forces(Here.of(walled, theta, float(t[row]), states[row]), walls, f, h)
        forces.normal[row, walls] = shared[: len(walls)]
        if walled.n_tangents:
            forces.friction[row, walls] = shared[len(walls) :]
        forces.unique[row, list(undetermined)] = False


def _all_at(system: MechanicalSystem, t: np.ndarray, states: np.ndarray, theta: np.ndarray) -> States:
    return States(system, t, states, np.tile(theta, (len(t), 1)), np.zeros((len(t), system.n_multipliers)))


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
