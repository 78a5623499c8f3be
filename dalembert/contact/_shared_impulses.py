"""Impacts on other walls while some are in contact: what these take of them."""

from __future__ import annotations

import numpy as np

from dalembert.contact._event_memory import LOG_AFTER, LOG_BEFORE, LOG_IMPULSE, LOG_STATE, LOG_T, LOG_WHICH
from dalembert.contact._here import Here
from dalembert.systems import MechanicalSystem

NO_IMPULSE = 1e-12
"""A fraction of the impulse on the wall that is hit, or of the momentum, that is taken for round-off."""


def as_log(rows: list[np.ndarray], n_state: int) -> np.ndarray:
    """Rows of the log of impacts as an array, which may be none."""
    return np.array(rows).reshape(len(rows), LOG_STATE + n_state + n_state // 2)


def shares(
    walled: MechanicalSystem, held: MechanicalSystem, theta: np.ndarray, touching: tuple[int, ...], row: np.ndarray
) -> list[np.ndarray] | None:
    """The rows of walls in contact that press in an impact, whose own row is shortened by theirs; None if one pulls.

    p+ = p- + lambda grad phi + G^T mu, with G of the system that is `held` on the walls: mu > 0 are their impulses.
    """
    n, which, impulse = walled.dim, int(row[LOG_WHICH]), row[LOG_IMPULSE]
    here, after = Here.of(walled, theta, row[LOG_T], row[LOG_STATE : LOG_STATE + 2 * n]), row[LOG_STATE + 2 * n :]
    walls, G = here("phi_q"), here.on(held)("G")
    strength = np.sqrt(np.einsum("ij,jk,ik->i", walls, here("H_pp"), walls))
    mu = np.linalg.lstsq(G.T, after - here.p - impulse * walls[which], rcond=None)[0][-len(touching) :]
    size = mu * strength[list(touching)]
    none = NO_IMPULSE * (impulse * strength[which] + here.speed)
    if np.any(size < -none):
        return None
    mu = mu * (size > none)
    rows, p = [row], after - mu @ walls[list(touching)]
    for wall, share in zip(touching, mu, strict=True):
        if share:
            last = rows[-1].copy()
            rows[-1][LOG_STATE + 2 * n :] = last[LOG_STATE + n : LOG_STATE + 2 * n] = p
            rows[-1][LOG_AFTER] = last[LOG_BEFORE] = here.moving(p)("H")[0]
            last[LOG_WHICH], last[LOG_IMPULSE] = wall, share
            p = p + share * walls[wall]
            rows.append(last)
    return rows[1:]
