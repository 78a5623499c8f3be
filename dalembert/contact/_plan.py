"""Names for the places in the `plan` of events: all integers that the driver of impacts shares with Python.

A plan is one array. Its first entries, named here, are addresses of kernels, places in `memory` and places in the plan itself,
where longer tables follow: the systems of equations, marks of constraints, pivots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Events(NamedTuple):
    """What the driver of impacts works on beside the full steps; a positive `grid` rounds collision times to its intervals."""

    plan: np.ndarray
    memory: np.ndarray
    log: np.ndarray
    grid: float


# how many coordinates, guards, and walls, the first of the guards, there are
N, M, WALLS = 0, 1, 51

# addresses of kernels
LOOK, MEASURE, TANGENT_OF, FULL_GUESS, END, END_AFTER, OUTCOME, OUTCOME_AFTER, ENERGY = range(2, 11)

# places in memory: what kernels read and write
STATE, HIT, AHEAD, PHI, RATE, SLACK, STRENGTH, DELTA, AFTER, TANGENT, X, F, A = range(11, 24)

# places in memory: states at the start of a partial step, at its end and at contact; phi and phi_dot there; how far round-off
# blurs phi; grad phi^T H_pp grad phi at the step's start; a place between the ends where phi was seen below zero, and
# phi there; the sizes of blocks of unknowns; pivots
(HERE, THERE, CONTACT, PHI_HERE, RATE_HERE, PHI_THERE, RATE_THERE, PHI_CONTACT, RATE_CONTACT, BLUR, STRENGTH_BEFORE,
 DIP, PHI_DIP, SIZES, PIVOTS) = range(24, 39)  # fmt: skip

# places in the plan: systems of equations, marks of constraints that were just hit or on which no collision was found
FLOW, WALL, RESET, FLOW_AFTER, WALL_AFTER, JUST_HIT, PASSED = range(39, 46)

# facts about the integrator: resets are coupled with what follows; Phi^partial is Phi^full
COUPLED, FULL_IS_PARTIAL = range(46, 48)

# results: impacts in the log, the status of the last step with impacts, resets that could not be coupled
LOGGED, STATUS, UNCOUPLED = range(48, 51)

# a table in the plan: guards that are not looked at; and whether a hit is left to Python, because of friction
IGNORED, STOPS_AT_HIT = range(52, 54)

# a place in memory: the diagonal of the mass matrix
MASSES = 54
N_NAMED = 55

# a system of equations, from its place in the plan on
SIZE, GUESS, RESIDUAL, MATRIX, BLOCKS, FIRST_BLOCK = range(6)

# slots of memory with a fixed place; PUSH is how much forces change p in a full step, REACH how far it may lead, in units of
# phi / sqrt(grad phi^T H_pp grad phi)
(T_SLOT, DT_SLOT, H_SLOT, ENERGY_BEFORE_SLOT, S_SLOT, IMPULSE_SLOT, FRACTION_SLOT, SPEED_SLOT, ENERGY_SLOT,
 PUSH_SLOT, REACH_SLOT) = range(11)  # fmt: skip
N_SLOTS = 11

# columns of the log, followed by q, p_before and p_after
LOG_T, LOG_WHICH, LOG_IMPULSE, LOG_BEFORE, LOG_AFTER, LOG_FRICTION, LOG_STATE = range(7)

# how the resolution of impacts ends
(RESOLVED, NO_FLOW, NO_TIME, NO_RESET, ACCUMULATED, NO_GRADIENT, TOO_MANY, ENDLESS, UNDEFINED, BAD_RESTITUTION,
 GUARDED) = range(11)  # fmt: skip
