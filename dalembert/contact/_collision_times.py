"""Where a step meets a wall: partial steps, and the times at which they end on phi = 0.

CollisionTime of Pekarek and Murphey (2014), section 4.1. Nothing here knows a model: a plan of integers (`_plan`) says where
kernels and data are.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact import _plan as at
from dalembert.contact._dense_newton import compiled_as, newton
from dalembert.engine._compiled import internal
from dalembert.engine._kernel_call import call_kernel

MERGE = 1.5e-8
"""sqrt(eps): impacts closer than this fraction of a step are one event, and so are an impact and the step's end."""

ROUND_OFF = 16 * 2.220446049250313e-16
"""By this times the sum of all roundings, round-off blurs phi."""

BEHIND = 8.0
"""So many times the blur of phi may a state lie behind a wall, for the round-off of positions."""


@compiled_as("void", "int64", "float64")
def place(plan, memory, row, t):
    """Put a state, and its time, where the kernels look for it."""
    memory[at.T_SLOT] = t
    for k in range(2 * plan[at.N]):
        memory[plan[at.STATE] + k] = memory[plan[row] + k]


@compiled_as("void", "int64", "float64", "int64", "int64", from_python=True)
def observe(plan, memory, state, t, phi, rate):
    """phi and phi_dot at a state."""
    place(plan, memory, state, t)
    call_kernel(plan[at.LOOK], memory)
    for k in range(plan[at.M]):
        memory[plan[phi] + k], memory[plan[rate] + k] = memory[plan[at.PHI] + k], memory[plan[at.RATE] + k]


@compiled_as("void", "int64", "int64")
def choose(plan, memory, vector, which):
    """A unit vector that selects one constraint."""
    for k in range(plan[at.M]):
        memory[plan[vector] + k] = 1.0 if k == which else 0.0


@compiled_as("boolean", "boolean", "float64", "float64", "int64")
def flow(plan, memory, after, t, dt, target):
    """The partial step of length dt from HERE to `target`; False if its equations could not be solved."""
    place(plan, memory, at.HERE, t)
    memory[at.DT_SLOT] = dt
    equations = at.FLOW_AFTER if after else at.FLOW
    call_kernel(plan[plan[equations] + at.GUESS], memory)
    if not newton(plan, memory, equations, dt):
        return False
    call_kernel(plan[at.END_AFTER if after else at.END], memory)
    total = 0.0
    for k in range(2 * plan[at.N]):
        memory[plan[target] + k] = memory[plan[at.HERE] + k] + memory[plan[at.DELTA] + k]
        total += memory[plan[target] + k]
    return np.isfinite(total)


@internal("UniTuple(float64, 2)(float64, float64, float64, float64)")
def hermite(phi0, slope0, phi1, slope1):
    """c2 and c3 of the cubic phi0 + slope0 u + c2 u^2 + c3 u^3 through phi and its slope at u = 0 and u = 1."""
    return 3.0 * (phi1 - phi0) - 2.0 * slope0 - slope1, 2.0 * (phi0 - phi1) + slope0 + slope1


@internal("float64(float64, float64, float64, float64)")
def lowest(phi0, slope0, phi1, slope1):
    """Where in (0, 1) the Hermite cubic of phi has its minimum, if it falls at 0 and rises at 1; else -1."""
    if slope0 >= 0.0 or slope1 <= 0.0:
        return -1.0
    c2, c3 = hermite(phi0, slope0, phi1, slope1)
    a, b = 0.0, 1.0
    for _ in range(60):  # the derivative slope0 + 2 c2 u + 3 c3 u^2 rises through zero once
        u = 0.5 * (a + b)
        if slope0 + u * (2.0 * c2 + 3.0 * c3 * u) < 0.0:
            a = u
        else:
            b = u
    return b


@internal("float64(float64, float64, float64, float64, boolean)")
def first_root(phi0, slope0, phi1, slope1, on_wall):
    """The first zero in (0, 1] of the Hermite cubic of phi, that at 0 left out if the leg starts on the wall; else -1.

    0 means that a leg that starts on the wall does not leave it.
    """
    c2, c3 = hermite(phi0, slope0, phi1, slope1)
    if on_wall:  # phi = u (slope0 + c2 u + c3 u^2)
        start, c1, c2, c3 = slope0, c2, c3, 0.0
        end = start + c1 + c2
        turn = -c1 / (2.0 * c2) if c2 > 0.0 else 1.0
        if start <= 0.0:
            return 0.0 if end < 0.0 else -1.0
    else:
        start, c1, end = phi0, slope0, phi1
        turn = lowest(phi0, slope0, phi1, slope1)
    b = 1.0
    if 0.0 < turn < 1.0 and start + turn * (c1 + turn * (c2 + turn * c3)) <= 0.0:
        b = turn
    elif end > 0.0:
        return -1.0
    a = 0.0
    for _ in range(60):
        u = 0.5 * (a + b)
        if start + u * (c1 + u * (c2 + u * c3)) > 0.0:
            a = u
        else:
            b = u
    return b


@compiled_as("boolean", "float64", "float64")
def observe_between(plan, memory, t, dt):
    """Whether some phi falls below zero between HERE and THERE, by its Hermite cubic or on the chord between them.

    On the chord it is looked at where the tangents of phi at both ends meet, and only if they meet below zero: if phi is convex
    along the way it stays above them. DIP is that place, as a fraction of dt, if phi < 0 there, or else zero.
    """
    found = False
    for k in range(plan[at.M]):
        memory[plan[at.DIP] + k] = 0.0
        phi0, phi1 = memory[plan[at.PHI_HERE] + k], memory[plan[at.PHI_THERE] + k]
        slope0, slope1 = dt * memory[plan[at.RATE_HERE] + k], dt * memory[plan[at.RATE_THERE] + k]
        if not (slope0 < 0.0 < slope1 and phi0 > 0.0 and phi1 > 0.0):
            continue
        meet = (phi0 - phi1 + slope1) / (slope1 - slope0)
        if not (0.0 < meet < 1.0 and phi0 + slope0 * meet < 0.0):
            continue
        u = lowest(phi0, slope0, phi1, slope1)
        c2, c3 = hermite(phi0, slope0, phi1, slope1)
        if phi0 + u * (slope0 + u * (c2 + u * c3)) <= 0.0:
            found = True
            continue
        memory[at.T_SLOT] = t + meet * dt
        for i in range(2 * plan[at.N]):
            here, there = memory[plan[at.HERE] + i], memory[plan[at.THERE] + i]
            memory[plan[at.STATE] + i] = here + meet * (there - here)
        call_kernel(plan[at.LOOK], memory)
        if memory[plan[at.PHI] + k] < 0.0:
            memory[plan[at.DIP] + k], memory[plan[at.PHI_DIP] + k] = meet, memory[plan[at.PHI] + k]
            found = True
    return found


@compiled_as("boolean", "float64", "float64")
def may_collide(plan, memory, t, dt):
    """Whether phi > 0 does not hold at the end of a step (31), or does not seem to hold inside of it."""
    found = observe_between(plan, memory, t, dt)
    for k in range(plan[at.M]):
        found = found or not memory[plan[at.PHI_THERE] + k] > 0.0
    return found


@compiled_as("boolean", "int64")
def starts_on_wall(plan, memory, which):
    """Whether HERE is on a wall, because it was just hit or as far as round-off can tell."""
    return plan[plan[at.JUST_HIT] + which] != 0 or memory[plan[at.PHI_HERE] + which] <= memory[plan[at.BLUR] + which]


@compiled_as("Tuple((int64, float64))", "float64")
def next_candidate(plan, memory, dt):
    """The constraint that the leg from HERE to THERE seems to hit first, and where (a fraction of dt); -1 if none."""
    which, where = -1, np.inf
    for k in range(plan[at.M]):
        phi0, phi1, blur = memory[plan[at.PHI_HERE] + k], memory[plan[at.PHI_THERE] + k], memory[plan[at.BLUR] + k]
        slope0, slope1 = dt * memory[plan[at.RATE_HERE] + k], dt * memory[plan[at.RATE_THERE] + k]
        on_wall, just_hit = starts_on_wall(plan, memory, k), plan[plan[at.JUST_HIT] + k] != 0
        if plan[plan[at.PASSED] + k] or plan[plan[at.IGNORED] + k] or (on_wall and abs(phi1) <= blur):
            continue  # the last one touches all the time
        if on_wall and slope0 < 0.0 and not just_hit and k < plan[at.WALLS]:
            u = 0.0
        else:
            u = first_root(phi0, slope0, phi1, slope1, on_wall)
            dip = memory[plan[at.DIP] + k]
            if u < 0.0 and dip > 0.0:  # of the parabola through phi, its slope and the dip
                c2 = (memory[plan[at.PHI_DIP] + k] - phi0 - slope0 * dip) / (dip * dip)
                u = 2.0 * phi0 / (-slope0 + np.sqrt(slope0 * slope0 - 4.0 * c2 * phi0))
        if 0.0 <= u < where:
            which, where = k, u
    return which, where


@compiled_as("float64", "int64")
def rounding_of(plan, memory, which):
    """How far from zero rounding errors may leave phi at a state that was just measured.

    They are those of phi, here and where the leg began, and those of positions, which are sums of what moves in a step: where a
    wall passes through the origin, phi itself has none.
    """
    depth = BEHIND * max(memory[plan[at.BLUR] + which], ROUND_OFF * memory[plan[at.SLACK] + which])
    if which < plan[at.WALLS]:
        steepness = min(memory[plan[at.STRENGTH] + which], memory[plan[at.STRENGTH_BEFORE] + which])  # no bounds at a pole
        depth += ROUND_OFF * memory[at.REACH_SLOT] * np.sqrt(steepness)
    return depth


@compiled_as("boolean", "int64")
def is_contact(plan, memory, which):
    """Whether phi is zero at CONTACT, as well as round-off and a time that is known to MERGE h let it be."""
    here, there = abs(memory[plan[at.RATE_HERE] + which]), abs(memory[plan[at.RATE_THERE] + which])
    rate = min(max(here, there), abs(memory[plan[at.RATE_CONTACT] + which]))  # at a pole it knows no bounds
    call_kernel(plan[at.MEASURE], memory)
    depth = rounding_of(plan, memory, which) + MERGE * memory[at.H_SLOT] * rate
    return abs(memory[plan[at.PHI_CONTACT] + which]) <= depth


@compiled_as("float64", "boolean", "float64", "float64", "int64")
def bisect(plan, memory, after, t, left, which):
    """CollisionTime by bisection, where Newton's method failed; -1 if no partial step is known to end behind the wall."""
    phi0, phi1 = memory[plan[at.PHI_HERE] + which], memory[plan[at.PHI_THERE] + which]
    slope0, slope1 = left * memory[plan[at.RATE_HERE] + which], left * memory[plan[at.RATE_THERE] + which]
    a, b = 0.0, left
    if phi1 > 0.0:
        dip = memory[plan[at.DIP] + which]
        b = left * (dip if dip > 0.0 else lowest(phi0, slope0, phi1, slope1))
    if b <= 0.0 or not flow(plan, memory, after, t, b, at.CONTACT):
        return -1.0
    observe(plan, memory, at.CONTACT, t + b, at.PHI_CONTACT, at.RATE_CONTACT)
    if memory[plan[at.PHI_CONTACT] + which] > 0.0:
        return -1.0
    on_wall = starts_on_wall(plan, memory, which)
    while b - a > 2.3e-16 * b:
        middle = 0.5 * (a + b)
        if middle in (a, b) or not flow(plan, memory, after, t, middle, at.CONTACT):
            break
        observe(plan, memory, at.CONTACT, t + middle, at.PHI_CONTACT, at.RATE_CONTACT)
        leaving = on_wall and a == 0.0 and memory[plan[at.RATE_CONTACT] + which] > 0.0  # phi is still lost in round-off
        if memory[plan[at.PHI_CONTACT] + which] > 0.0 or leaving:
            a = middle
        else:
            b = middle
    if b < MERGE * MERGE * left or not flow(plan, memory, after, t, b, at.CONTACT):
        return -1.0
    observe(plan, memory, at.CONTACT, t + b, at.PHI_CONTACT, at.RATE_CONTACT)
    return b if is_contact(plan, memory, which) else -1.0


@compiled_as("float64", "boolean", "float64", "float64", "int64", "float64")
def step_to_wall(plan, memory, after, t, left, which, guess):
    """CollisionTime: the partial step from HERE to CONTACT on the wall `which`; its length, or -1 if it isn't reached.

    First by Newton's method with the length as one of the unknowns; if that misses, by bisection, which needs a partial step
    that ends behind the wall.
    """
    on_wall, h = starts_on_wall(plan, memory, which), memory[at.H_SLOT]
    equations = at.WALL_AFTER if after else at.WALL
    place(plan, memory, at.HERE, t)
    choose(plan, memory, at.AHEAD, which)
    memory[at.DT_SLOT], memory[at.S_SLOT] = guess, guess / h
    call_kernel(plan[plan[equations] + at.GUESS], memory)
    if newton(plan, memory, equations, guess):
        tau = memory[plan[at.X] + plan[plan[equations] + at.SIZE] - 1] * h
        if (0.01 * guess if on_wall else 0.0) < tau <= left * (1.0 + 1e-10):
            tau = min(tau, left)
            memory[at.DT_SLOT] = tau
            call_kernel(plan[at.END_AFTER if after else at.END], memory)
            for k in range(2 * plan[at.N]):
                memory[plan[at.CONTACT] + k] = memory[plan[at.HERE] + k] + memory[plan[at.DELTA] + k]
            observe(plan, memory, at.CONTACT, t + tau, at.PHI_CONTACT, at.RATE_CONTACT)
            if memory[plan[at.RATE_CONTACT] + which] <= 0.0 and is_contact(plan, memory, which):
                return tau
    return bisect(plan, memory, after, t, left, which)


@compiled_as("boolean", "int64", "float64")
def lost_in_round_off(plan, memory, which, flight):
    """Whether a bounce, from a wall that was just hit back to it, is not higher than rounding errors of phi.

    The height of a parabola is a quarter of speed times flight. BLUR bounds rounding errors; typical ones are a small part of
    it, and a bounce that is still resolved must be taken: what it takes away is missing in the time at which contact begins.
    """
    bounces = which < plan[at.WALLS] and plan[plan[at.JUST_HIT] + which] != 0
    height = memory[plan[at.RATE_HERE] + which] * flight / 4
    return bounces and height <= memory[plan[at.BLUR] + which] / BEHIND


@compiled_as("float64", "boolean", "float64", "float64")
def collision_time(plan, memory, after, t, left):
    """The first collision on the way from HERE to THERE, made up to CONTACT; its time from HERE, or -1 if there is none.

    AHEAD is left at the constraint that is hit. Where none is found on a constraint that seemed to be hit, it is marked PASSED.
    """
    which, where = next_candidate(plan, memory, left)
    for _ in range(2 * plan[at.M] + 1):
        if which < 0:
            return -1.0
        choose(plan, memory, at.AHEAD, which)
        shortest = MERGE if starts_on_wall(plan, memory, which) else MERGE * MERGE
        flight = where * left
        if flight <= shortest * memory[at.H_SLOT] or lost_in_round_off(plan, memory, which, flight):  # HERE itself
            for k in range(2 * plan[at.N]):
                memory[plan[at.CONTACT] + k] = memory[plan[at.HERE] + k]
            observe(plan, memory, at.CONTACT, t, at.PHI_CONTACT, at.RATE_CONTACT)
            return 0.0
        tau = step_to_wall(plan, memory, after, t, left, which, where * left)
        if tau < 0.0:
            plan[plan[at.PASSED] + which] = 1
            which, where = next_candidate(plan, memory, left)
            continue
        earlier, deepest = -1, 0.0
        for k in range(plan[at.M]):
            depth = memory[plan[at.PHI_CONTACT] + k] + memory[plan[at.BLUR] + k]
            if k != which and not (plan[plan[at.PASSED] + k] or plan[plan[at.IGNORED] + k]) and depth < deepest:
                u = first_root(
                    memory[plan[at.PHI_HERE] + k], tau * memory[plan[at.RATE_HERE] + k], memory[plan[at.PHI_CONTACT] + k],
                    tau * memory[plan[at.RATE_CONTACT] + k], plan[plan[at.JUST_HIT] + k] != 0,
                )  # fmt: skip
                if u > 0.0:
                    earlier, deepest, where = k, depth, u * tau / left
        if earlier < 0:
            return tau
        which = earlier
    plan[plan[at.PASSED] + which] = 1
    return -1.0


@compiled_as("int64")
def chosen(plan, memory):
    """The constraint that AHEAD selects."""
    for k in range(plan[at.M]):
        if memory[plan[at.AHEAD] + k] != 0.0:
            return k
    return 0
