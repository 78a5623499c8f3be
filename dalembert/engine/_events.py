"""Impacts within a step: resets, and the rest of the step, for every collision integrator and model.

This is the second half of Algorithm 1 of Pekarek and Murphey (2014), lines 5 to 17. Like the driver, it knows no model: a plan
of integers (`_plan`) says where kernels and data are.
"""

from __future__ import annotations

import numpy as np

from dalembert.engine._collision_times import MERGE, choose, chosen, collision_time, flow, look, place
from dalembert.engine._dense_newton import compiled_as, largest_of, newton
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._plan import (
    ACCUMULATED,
    AFTER,
    AHEAD,
    BLUR,
    CONTACT,
    COUPLED,
    DT_SLOT,
    ENDLESS,
    ENERGY,
    ENERGY_BEFORE_SLOT,
    ENERGY_SLOT,
    FRACTION_SLOT,
    FULL_IS_PARTIAL,
    GUESS,
    H_SLOT,
    HERE,
    HIT,
    IMPULSE_SLOT,
    JUST_HIT,
    LOG_AFTER,
    LOG_BEFORE,
    LOG_IMPULSE,
    LOG_STATE,
    LOG_T,
    LOG_WHICH,
    LOGGED,
    MEASURE,
    NO_FLOW,
    NO_GRADIENT,
    NO_RESET,
    NO_TIME,
    OUTCOME,
    OUTCOME_AFTER,
    PASSED,
    PHI_CONTACT,
    PHI_HERE,
    PHI_THERE,
    PUSH_SLOT,
    RATE_CONTACT,
    RATE_HERE,
    RATE_THERE,
    RESET,
    RESOLVED,
    SLACK,
    STRENGTH,
    STRENGTH_BEFORE,
    TANGENT,
    TANGENT_OF,
    THERE,
    TOO_MANY,
    UNCOUPLED,
    M,
    N,
)

TOUCHING, SEPARATING = 1, 2
"""Marks of constraints that were just hit: those whose reset would pull are separating."""

MOST_IN_A_STEP = 1000
MOST_AT_ONCE = 1000
ROUND_OFF = 16 * 2.220446049250313e-16
GONE = 1e-6
"""A gradient of phi that has fallen by this factor since the step began counts as vanished."""


@compiled_as("float64", "int64", "float64")
def energy_of(plan, memory, row, t):
    """H at a state, and with it BLUR, how far round-off blurs phi."""
    place(plan, memory, row, t)
    call_kernel(plan[MEASURE], memory)
    for k in range(plan[M]):
        memory[plan[BLUR] + k] = ROUND_OFF * memory[plan[SLACK] + k]
    return memory[ENERGY_SLOT]


@compiled_as("void", "float64[:, ::1]", "int64", "float64", "int64")
def begin_entry(plan, memory, log, entry, t, which):
    """Log an impact at HERE, up to what is known before its reset."""
    n = plan[N]
    log[entry, LOG_T], log[entry, LOG_WHICH] = t, which
    log[entry, LOG_BEFORE] = energy_of(plan, memory, HERE, t)
    for k in range(2 * n):
        log[entry, LOG_STATE + k] = memory[plan[HERE] + k]


@compiled_as("void", "float64[:, ::1]", "int64", "float64")
def end_entry(plan, memory, log, entry, t):
    """Set the momentum HERE to that after the impact, which memory holds, and log it."""
    n = plan[N]
    log[entry, LOG_IMPULSE] = memory[IMPULSE_SLOT]
    for k in range(n):
        memory[plan[HERE] + n + k] = log[entry, LOG_STATE + 2 * n + k] = memory[plan[AFTER] + k]
    log[entry, LOG_AFTER] = energy_of(plan, memory, HERE, t)


RESET_DONE, RESET_FAILED, RESET_PULLS = range(3)


@compiled_as("int64", "float64[:, ::1]", "int64", "float64", "int64")
def reset(plan, memory, log, entry, t, which):
    """R^reset on one constraint, from the momentum HERE, which stays if the impulse would pull."""
    begin_entry(plan, memory, log, entry, t, which)
    choose(plan, memory, HIT, which)
    call_kernel(plan[plan[RESET] + GUESS], memory)
    if not newton(plan, memory, RESET, memory[H_SLOT]):
        return RESET_FAILED
    call_kernel(plan[OUTCOME], memory)
    if not np.isfinite(memory[IMPULSE_SLOT]):
        return RESET_FAILED
    if memory[IMPULSE_SLOT] < 0.0:
        return RESET_PULLS
    end_entry(plan, memory, log, entry, t)
    return RESET_DONE


@compiled_as("int64", "float64[:, ::1]", "float64")
def collide(plan, memory, log, t):
    """Reset all constraints that touch HERE and approach, one after the other, the fastest first, until none does.

    An approach is measured by the part of the motion that it takes, phi_dot / sqrt(grad phi^T H_pp grad phi). In slow impacts
    phi_dot and the reset may disagree about its sign, if the reset conserves another function than that of which phi_dot is
    the derivative: a reset that would pull is not done, until another one has changed the motion.
    """
    first, marks = 0.0, plan[plan[JUST_HIT] : plan[JUST_HIT] + plan[M]]
    for repetition in range(MOST_AT_ONCE):
        look(plan, memory, HERE, t, PHI_HERE, RATE_HERE)
        call_kernel(plan[MEASURE], memory)
        worst, fastest = -1, 0.0
        for k in range(plan[M]):
            if marks[k] == TOUCHING and memory[plan[RATE_HERE] + k] < 0.0:
                speed = -memory[plan[RATE_HERE] + k] / np.sqrt(memory[plan[STRENGTH] + k])
                if speed > fastest:
                    worst, fastest = k, speed
        if repetition == 0:
            first = fastest
        if worst < 0 or fastest <= 1e-13 * first:
            for k in range(plan[M]):
                marks[k] = min(marks[k], TOUCHING)
            return RESOLVED
        if plan[LOGGED] >= len(log):
            return ENDLESS
        result = reset(plan, memory, log, plan[LOGGED], t, worst)
        if result == RESET_FAILED:
            return NO_RESET
        if result == RESET_PULLS:
            marks[worst] = SEPARATING
            continue
        plan[LOGGED] += 1
        for k in range(plan[M]):
            marks[k] = min(marks[k], TOUCHING)
    return ENDLESS


@compiled_as("int64", "int64", "float64")
def mark_touching(plan, memory, which, span):
    """Mark all constraints that are hit together with `which` at HERE; how many there are."""
    count = 0
    for k in range(plan[M]):
        near = max(memory[plan[BLUR] + k], -memory[plan[RATE_CONTACT] + k] * span)
        plan[plan[JUST_HIT] + k] = 1 if k == which or abs(memory[plan[PHI_CONTACT] + k]) <= near else 0
        plan[plan[PASSED] + k] = 0
        count += plan[plan[JUST_HIT] + k]
    return count


@compiled_as("boolean", "float64", "int64")
def is_elastic(plan, memory, t, which):
    """Whether the impact on one constraint HERE keeps the energy."""
    place(plan, memory, HERE, t)
    choose(plan, memory, HIT, which)
    call_kernel(plan[OUTCOME], memory)
    return memory[FRACTION_SLOT] == 1.0


@compiled_as("void", "float64[:, ::1]", "float64")
def end_coupled_reset(plan, memory, log, t):
    """The impact HERE, from the unknowns of the partial step after it."""
    energy = memory[ENERGY_BEFORE_SLOT]
    place(plan, memory, HERE, t)
    call_kernel(plan[OUTCOME_AFTER], memory)
    end_entry(plan, memory, log, plan[LOGGED] - 1, t)
    memory[ENERGY_BEFORE_SLOT] = energy


@compiled_as("int64", "float64[:, ::1]", "boolean", "boolean", "float64", "float64")
def finish(plan, memory, log, after, first, t, left):
    """End a step without a (further) collision. The first partial step takes the place of the full one, whose end is THERE."""
    solve_again = not plan[FULL_IS_PARTIAL] if first else after
    if solve_again and not flow(plan, memory, after, t, left, THERE):
        return NO_FLOW
    look(plan, memory, THERE, t + left, PHI_THERE, RATE_THERE)
    for k in range(plan[M]):
        if memory[plan[PHI_THERE] + k] < -memory[plan[BLUR] + k] and plan[plan[PASSED] + k]:
            choose(plan, memory, AHEAD, k)
            return NO_TIME
    if after:
        end_coupled_reset(plan, memory, log, t)
    for k in range(2 * plan[N]):
        memory[plan[HERE] + k] = memory[plan[THERE] + k]
    return RESOLVED


@compiled_as("int64", "float64[:, ::1]", "boolean", "float64", "float64")
def merge_with_end(plan, memory, log, after, t, left):
    """End a step right after an impact, along the tangent: the error, of second order in `left`, is lost in round-off."""
    if after:
        entry = plan[LOGGED] - 1
        if reset(plan, memory, log, entry, t, int(log[entry, LOG_WHICH])) != RESET_DONE:
            return NO_RESET
    place(plan, memory, HERE, t)
    call_kernel(plan[TANGENT_OF], memory)
    for k in range(2 * plan[N]):
        memory[plan[HERE] + k] += left * memory[plan[TANGENT] + k]
    return RESOLVED


@compiled_as("boolean", "boolean", "float64", "float64")
def rest_of_step(plan, memory, after, t, left):
    """The partial step from HERE to the end of the step, THERE, with phi and phi_dot at both ends; no impact may pull."""
    if not flow(plan, memory, after, t, left, THERE):
        return False
    if after:  # phi_dot right after the impact
        call_kernel(plan[OUTCOME_AFTER], memory)
        if memory[IMPULSE_SLOT] < 0.0:
            return False
        for k in range(plan[N]):
            memory[plan[CONTACT] + k] = memory[plan[HERE] + k]
            memory[plan[CONTACT] + plan[N] + k] = memory[plan[AFTER] + k]
        look(plan, memory, CONTACT, t, PHI_HERE, RATE_HERE)
    look(plan, memory, THERE, t + left, PHI_THERE, RATE_THERE)
    return True


@compiled_as("int64", "float64[:, ::1]", "float64", "float64", "float64")
def resolve(plan, memory, log, t0, h, grid):
    """One step of size h from HERE, if THERE, the end of a full step, lies behind a wall or a wall lies between.

    Returns RESOLVED with the new state in HERE, or what was in the way. COUPLED integrators (VCI) solve for the reset together
    with the partial step after it. A positive `grid` rounds collision times to the middle of one of so many intervals.
    """
    elapsed, after, first = 0.0, False, True
    energy_of(plan, memory, HERE, t0)
    call_kernel(plan[TANGENT_OF], memory)
    memory[PUSH_SLOT] = h * largest_of(plan, memory, plan[TANGENT] + plan[N], plan[N])
    for k in range(plan[M]):
        memory[plan[STRENGTH_BEFORE] + k] = memory[plan[STRENGTH] + k]
        plan[plan[PASSED] + k] = 0
    for _ in range(MOST_IN_A_STEP):
        t, left = t0 + elapsed, h - elapsed
        if left <= MERGE * h:
            return merge_with_end(plan, memory, log, after, t, left)
        if not first and not rest_of_step(plan, memory, after, t, left):
            if not after:
                return NO_FLOW
            # no p+ has the discrete energy that is asked for, as may happen in slow impacts: take the other reset
            plan[UNCOUPLED] += 1
            entry = plan[LOGGED] - 1
            if reset(plan, memory, log, entry, t, int(log[entry, LOG_WHICH])) != RESET_DONE:
                return NO_RESET
            look(plan, memory, HERE, t, PHI_HERE, RATE_HERE)
            after = False
            continue
        tau = collision_time(plan, memory, after, t, left)
        if tau < 0.0:
            return finish(plan, memory, log, after, first, t, left)
        which = chosen(plan, memory)
        if grid > 0.0 and tau > 0.0:
            tau = left * (np.floor(tau / left * grid) + 0.5) / grid
            if not flow(plan, memory, after, t, tau, CONTACT):
                return NO_FLOW
            look(plan, memory, CONTACT, t + tau, PHI_CONTACT, RATE_CONTACT)
        # memory still holds the unknowns of the partial step to CONTACT
        if plan[COUPLED] and tau > 0.0:
            place(plan, memory, HERE, t)
            memory[DT_SLOT] = tau
            call_kernel(plan[ENERGY], memory)
        if after:
            end_coupled_reset(plan, memory, log, t)
        after, first = False, False
        if plan[plan[JUST_HIT] + which] and tau <= MERGE * h:
            return ACCUMULATED
        elapsed += tau
        t = t0 + elapsed
        for k in range(2 * plan[N]):
            memory[plan[HERE] + k] = memory[plan[CONTACT] + k]
        energy = energy_of(plan, memory, HERE, t)
        if not memory[plan[STRENGTH] + which] > GONE * GONE * memory[plan[STRENGTH_BEFORE] + which]:
            return NO_GRADIENT
        touching = mark_touching(plan, memory, which, MERGE * h)
        if memory[plan[RATE_CONTACT] + which] >= 0.0:  # it only touches
            for k in range(plan[M]):
                memory[plan[PHI_HERE] + k] = memory[plan[PHI_CONTACT] + k]
                memory[plan[RATE_HERE] + k] = memory[plan[RATE_CONTACT] + k]
        elif plan[COUPLED] and touching == 1 and is_elastic(plan, memory, t, which):
            if plan[LOGGED] >= len(log):
                return TOO_MANY
            if tau == 0.0:  # there is no partial step before the impact
                memory[ENERGY_BEFORE_SLOT] = energy
            begin_entry(plan, memory, log, plan[LOGGED], t, which)
            plan[LOGGED] += 1
            after = True
        else:
            status = collide(plan, memory, log, t)
            if status != RESOLVED:
                return status
    return TOO_MANY
