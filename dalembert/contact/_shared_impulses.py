"""Impacts on other walls while some are in contact: what these take of them."""

from __future__ import annotations

import numpy as np

from dalembert.contact._here import Here
from dalembert.systems import MechanicalSystem

NO_IMPULSE = 1e-12
"""A fraction of the impulse on the wall that is hit, or of the momentum, that is taken for round-off."""


def shares(
    walled: MechanicalSystem, held: MechanicalSystem, theta: np.ndarray, touching: tuple[int, ...], entry: np.void
) -> list[np.void] | None:
    """The entries of the log of walls in contact that press in an impact, whose own is shortened by theirs; None if one pulls.

    p+ = p- + lambda grad phi + G^T mu, with G of the system that is `held` on the walls: mu > 0 are their impulses.
    """
    which, impulse, after = int(entry["which"]), entry["impulse"], entry["p_after"]
    here = Here(walled, theta, float(entry["t"]), entry["q"], entry["p_before"])
    walls, G = here("phi_q"), here.on(held)("G")
    strength = np.sqrt(np.einsum("ij,jk,ik->i", walls, here("H_pp"), walls))
    mu = np.linalg.lstsq(G.T, after - here.p - impulse * walls[which], rcond=None)[0][-len(touching) :]
    size = mu * strength[list(touching)]
    none = NO_IMPULSE * (impulse * strength[which] + here.speed)
    if np.any(size < -none):
        return None
    mu = mu * (size > none)
    entries, p = [entry], after - mu @ walls[list(touching)]
    for wall, share in zip(touching, mu, strict=True):
        if share:
            last = entries[-1].copy()
            entries[-1]["p_after"] = last["p_before"] = p
            entries[-1]["energy_after"] = last["energy_before"] = here.moving(p)("H")[0]
            last["which"], last["impulse"] = wall, share
            p = p + share * walls[wall]
            entries.append(last)
    return entries[1:]
