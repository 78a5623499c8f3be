"""What the driver of events shares with Python: named places in memory, addresses of kernels, tables, and the log of impacts.

Nothing of it is compiled for a model: sizes, places and addresses are numbers of one record, `AT`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def integers(*names: str) -> np.dtype:
    """A record of integers."""
    return np.dtype([(name, np.int64) for name in names])


EQUATIONS = integers("size", "guess", "residual", "matrix", "factor", "increment", "blocks", "table")
"""A system of equations: its size, the addresses of its kernels, and its blocks, whose sizes and kinds are in the tables. Those
of `factor`, LU in a fixed order of pivots, and `increment` are 0 where there is no such order."""
POINT = integers("state", "phi", "rate")
"""Where a point of the motion is in memory: (q, p), and the guards and their rates there."""

SCALARS = ("t", "dt", "h", "energy_before", "s", "impulse", "fraction", "speed", "energy", "push", "reach", "growth",
           "slope")  # fmt: skip
"""Numbers at the beginning of memory; `push` is how much forces may change p in a full step, `reach` how far it may lead, in
units of phi / sqrt(grad phi^T H_pp grad phi), `growth` the sum of |l_ij| of the last factors in a fixed order, `slope` the rate
of the guard ahead where it is expected to be zero, if it is no wall."""
KERNEL_PLACES = (
    "theta", "state", "hit", "ahead", "phi", "rate", "slack", "strength", "delta", "after", "tangent", "forces", "x",
    "residual", "matrix",
)  # fmt: skip
"""Vectors that kernels read and write."""
OWN_PLACES = ("masses", "blur", "strength_before", "bend", "dip", "phi_dip", "sizes", "pivots")
"""Vectors of the driver alone: the diagonal of the mass matrix; how far round-off blurs guards; grad phi^T H_pp grad phi at the
start of the step; how much phi_dot changes in a full step, from the last leg; where between the ends a guard was seen below
zero, and how far; sizes of blocks of unknowns; pivots."""
MARKS = ("just_hit", "passed", "ignored")
"""Marks in the tables, one for each guard: walls just hit, guards on which no zero was found, guards that are not looked at."""
POINTS = ("here", "there", "contact")
"""The start of a partial step, its end without collision, and the collision."""
SYSTEMS = ("flow", "wall", "reset", "flow_after", "wall_after")
KERNELS = ("look", "measure", "tangent", "full_guess", "end", "end_after", "outcome", "outcome_after", "energy")

AT = np.dtype([
    *((name, np.int64) for name in ("n", "m", "walls", "n_theta", "coupled", "full_is_partial", "stops_at_hit")),
    *((name, np.int64) for name in (*SCALARS, *KERNEL_PLACES, *OWN_PLACES, *MARKS)),
    *((f"call_{name}", np.int64) for name in KERNELS),
    *((name, POINT) for name in POINTS),
    *((name, EQUATIONS) for name in SYSTEMS),
    *((name, np.int64) for name in ("looked", "measured", "logged", "status", "uncoupled", "which")),
])  # fmt: skip
"""What the driver knows: coordinates `n`, guards `m`, of which the first are `walls`; whether resets are `coupled` with the
partial step that follows, whether Phi^partial is Phi^full, whether a hit is left to Python because of friction; places;
kernels; points; systems of equations; whether `look` and `measure` have seen the state in memory. At last what the driver
says: rows in the log, how the last step with impacts ended, resets that could not be coupled, and which guard it is about."""

LOG_T, LOG_WHICH, LOG_IMPULSE, LOG_BEFORE, LOG_AFTER, LOG_FRICTION, LOG_STATE = range(7)
"""Columns of the log, followed by q, p_before and p_after."""


def entry_of_log(n: int) -> np.dtype:
    """The same by the names that impacts have, for n coordinates."""
    numbers = ("t", "which", "impulse", "energy_before", "energy_after", "friction")
    return np.dtype([*((name, float) for name in numbers), *((name, float, (n,)) for name in ("q", "p_before", "p_after"))])


(RESOLVED, NO_FLOW, NO_TIME, NO_RESET, ACCUMULATED, NO_GRADIENT, TOO_MANY, ENDLESS, UNDEFINED, BAD_RESTITUTION, GUARDED, PULLS,
 TO_WALL, TO_END, NO_LEG, NOT_MET) = range(16)  # fmt: skip
"""How a step with impacts ends; the last five are answers of its parts."""


class Events(NamedTuple):
    """What the driver works on beside the full steps."""

    at: np.void
    tables: np.ndarray
    memory: np.ndarray
    log: np.ndarray


def lay_out(n: int, m: int, walls: int, n_theta: int, n_x: int, n_full: int, n_blocks: int) -> tuple[np.void, int]:
    """The record in which all places are, and how much memory they take.

    There are `n` coordinates, `m` guards, of which so many are `walls`, `n_x` unknowns in the largest system of equations and
    `n_full` in a full step, `n_blocks` blocks of unknowns.
    """
    sizes = dict.fromkeys(SCALARS, 1) | {"theta": n_theta, "state": 2 * n, "hit": m, "ahead": m, "phi": m, "rate": m}
    sizes |= {"slack": m, "strength": m, "delta": 2 * n, "after": n, "tangent": 2 * n, "forces": n}
    sizes |= {"x": max(n_x, n_full), "residual": n_x, "matrix": n_x**2, "masses": n, "blur": m, "strength_before": m}
    sizes |= {"bend": m, "dip": m, "phi_dip": m, "sizes": n_blocks, "pivots": n_x}
    at, place = np.zeros(1, AT)[0], 0
    at["n"], at["m"], at["walls"], at["n_theta"] = n, m, walls, n_theta
    for name in (*SCALARS, *KERNEL_PLACES, *OWN_PLACES):
        at[name], place = place, place + sizes[name]
    for name in POINTS:
        at[name] = (place, place + 2 * n, place + 2 * n + m)
        place += 2 * (n + m)
    return at, place
