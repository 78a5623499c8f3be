"""Impacts within a step: resets, and the rest of the step, for every collision integrator and model.

This is the second half of Algorithm 1 of Pekarek and Murphey (2014), lines 5 to 17. Like the driver, it knows no model: a plan
of integers (`_plan`) says where kernels and data are.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact import _plan as at
from dalembert.contact._collision_times import (
    BEHIND,
    MERGE,
    ROUND_OFF,
    choose,
    chosen,
    collision_time,
    flow,
    observe,
    observe_between,
    place,
    rounding_of,
)
from dalembert.contact._dense_newton import compiled_as, largest_of, newton
from dalembert.engine._kernel_call import call_kernel

APART, TOUCHING, SEPARATING = range(3)
"""Marks of constraints, whether they were just hit: those whose reset would pull are separating."""

MOST_IN_A_STEP = 4000
LOGGED_SINGLY, MOST_AT_ONCE = 1000, 1_000_000
"""Resets at one instant: how many have a row of the log each, and how many there may be."""
AT_REST = 1e-12
"""Of the first approach; what is left of it after many resets with restitution is no approach."""
SLOW = 0.1
"""An approach below this part of the whole motion is slow enough for phi_dot and a reset to disagree about its sign."""
GONE = 1e-6
"""A gradient of phi that has fallen by this factor since the step began counts as vanished."""


@compiled_as("float64", "int64", "float64", from_python=True)
def energy_of(plan, memory, row, t):
    """H at a state, and with it BLUR, how far round-off blurs phi: here, or where positions come from in this step."""
    place(plan, memory, row, t)
    call_kernel(plan[at.MEASURE], memory)
    for k in range(plan[at.M]):
        memory[plan[at.BLUR] + k] = max(memory[plan[at.BLUR] + k], ROUND_OFF * memory[plan[at.SLACK] + k])
    return memory[at.ENERGY_SLOT]


@compiled_as("void", "float64[:, ::1]", "int64", "float64", "int64")
def begin_entry(plan, memory, log, entry, t, which):
    """Log an impact at HERE, up to what is known before its reset."""
    n = plan[at.N]
    log[entry, at.LOG_T], log[entry, at.LOG_WHICH] = t, which
    log[entry, at.LOG_BEFORE] = energy_of(plan, memory, at.HERE, t)
    for k in range(2 * n):
        log[entry, at.LOG_STATE + k] = memory[plan[at.HERE] + k]


@compiled_as("void", "float64[:, ::1]", "int64", "float64")
def end_entry(plan, memory, log, entry, t):
    """Set the momentum HERE to that after the impact, which memory holds, and log it."""
    n = plan[at.N]
    log[entry, at.LOG_IMPULSE] = memory[at.IMPULSE_SLOT]
    for k in range(n):
        memory[plan[at.HERE] + n + k] = log[entry, at.LOG_STATE + 2 * n + k] = memory[plan[at.AFTER] + k]
    log[entry, at.LOG_AFTER] = energy_of(plan, memory, at.HERE, t)


PULLS = -1


@compiled_as("int64", "float64[:, ::1]", "int64", "float64", "int64")
def reset(plan, memory, log, entry, t, which):
    """R^reset on one constraint, from the momentum HERE, which stays if the impulse would pull; RESOLVED or why not."""
    begin_entry(plan, memory, log, entry, t, which)
    choose(plan, memory, at.HIT, which)
    call_kernel(plan[plan[at.RESET] + at.GUESS], memory)
    if not newton(plan, memory, at.RESET, memory[at.H_SLOT]):
        return at.NO_RESET
    call_kernel(plan[at.OUTCOME], memory)
    if not 0.5 - 1e-12 <= memory[at.FRACTION_SLOT] <= 1.0 + 1e-12:
        choose(plan, memory, at.AHEAD, which)
        return at.BAD_RESTITUTION
    if not np.isfinite(memory[at.IMPULSE_SLOT]):
        return at.NO_RESET
    if memory[at.IMPULSE_SLOT] < 0.0:
        return PULLS
    end_entry(plan, memory, log, entry, t)
    return at.RESOLVED


@compiled_as("float64", "float64")
def whole_motion(plan, memory, t):
    """sqrt(p . v) HERE, in the units of an approach, phi_dot / sqrt(grad phi^T H_pp grad phi)."""
    place(plan, memory, at.HERE, t)
    call_kernel(plan[at.TANGENT_OF], memory)
    whole = 0.0
    for k in range(plan[at.N]):
        whole += memory[plan[at.STATE] + plan[at.N] + k] * memory[plan[at.TANGENT] + k]
    return np.sqrt(abs(whole))


@compiled_as("void", "float64", "float64")
def measure_motion(plan, memory, t, h):
    """How much forces change p in a step of size h from HERE (PUSH), and how far it may lead (REACH)."""
    speed, gained = whole_motion(plan, memory, t), 0.0
    forces = plan[at.TANGENT] + plan[at.N]
    for k in range(plan[at.N]):
        gained += (h * memory[forces + k]) ** 2 / max(memory[plan[at.MASSES] + k], 1e-300)
    memory[at.PUSH_SLOT] = h * largest_of(plan, memory, forces, plan[at.N])
    memory[at.REACH_SLOT] = h * (speed + np.sqrt(gained))


@compiled_as("void", "float64[:, ::1]", "int64", "int64")
def add_to_sum(plan, memory, log, entry, total):
    """Add the impulse of one entry, and its change of the momentum, to those that a row sums up."""
    before, after = at.LOG_STATE + plan[at.N], at.LOG_STATE + 2 * plan[at.N]
    log[total, at.LOG_IMPULSE] += log[entry, at.LOG_IMPULSE]
    for k in range(plan[at.N]):
        log[total, after + k] += log[entry, after + k] - log[entry, before + k]


@compiled_as("void", "float64[:, ::1]", "float64", "int64")
def log_sums(plan, memory, log, t, first):
    """Turn the sums of impulses, one row a constraint from `first` on, into impacts that follow upon each other."""
    n, entry = plan[at.N], plan[at.LOGGED]
    for k in range(n):  # the momentum before all of them
        memory[plan[at.CONTACT] + k] = memory[plan[at.HERE] + k]
        memory[plan[at.CONTACT] + n + k] = memory[plan[at.HERE] + n + k]
        for which in range(plan[at.M]):
            memory[plan[at.CONTACT] + n + k] -= log[first + which, at.LOG_STATE + 2 * n + k]
    for which in range(plan[at.M]):
        row = first + which
        if log[row, at.LOG_IMPULSE] == 0.0:
            continue
        log[entry, at.LOG_T], log[entry, at.LOG_WHICH], log[entry, at.LOG_IMPULSE] = t, which, log[row, at.LOG_IMPULSE]
        log[entry, at.LOG_BEFORE] = energy_of(plan, memory, at.CONTACT, t)
        for k in range(n):
            kick = log[row, at.LOG_STATE + 2 * n + k]
            log[entry, at.LOG_STATE + k] = memory[plan[at.CONTACT] + k]
            log[entry, at.LOG_STATE + n + k] = memory[plan[at.CONTACT] + n + k]
            memory[plan[at.CONTACT] + n + k] += kick
            log[entry, at.LOG_STATE + 2 * n + k] = memory[plan[at.CONTACT] + n + k]
        log[entry, at.LOG_AFTER] = energy_of(plan, memory, at.CONTACT, t)
        entry += 1
    plan[at.LOGGED] = entry


@compiled_as("int64", "float64[:, ::1]", "float64", from_python=True)
def collide(plan, memory, log, t):
    """Reset all constraints that touch HERE and approach, one after the other, the fastest first, until none does.

    An approach is measured by the part of the motion that it takes, phi_dot / sqrt(grad phi^T H_pp grad phi). In slow impacts
    phi_dot and the reset may disagree about its sign, if the reset conserves another function than that of which phi_dot is
    the derivative: a reset that would pull is not done, until another one has changed the motion.

    In a corner with restitution < 1 approaches shrink like a geometric sequence: they end AT_REST. Impulses after the first
    LOGGED_SINGLY ones are summed up, one impact a constraint.
    """
    first, sums, marks = 0.0, -1, plan[plan[at.JUST_HIT] : plan[at.JUST_HIT] + plan[at.M]]
    for repetition in range(MOST_AT_ONCE):
        observe(plan, memory, at.HERE, t, at.PHI_HERE, at.RATE_HERE)
        call_kernel(plan[at.MEASURE], memory)
        worst, fastest = -1, 0.0
        for k in range(plan[at.WALLS]):
            if marks[k] == TOUCHING and memory[plan[at.RATE_HERE] + k] < 0.0:
                speed = -memory[plan[at.RATE_HERE] + k] / np.sqrt(memory[plan[at.STRENGTH] + k])
                if speed > fastest:
                    worst, fastest = k, speed
        if repetition == 0:
            first = max(fastest, whole_motion(plan, memory, t) * ROUND_OFF / AT_REST)
        if worst < 0 or fastest <= AT_REST * first:
            for k in range(plan[at.M]):
                marks[k] = min(marks[k], TOUCHING)
            if sums >= 0:
                log_sums(plan, memory, log, t, sums)
            return at.RESOLVED
        if plan[at.LOGGED] + 2 * plan[at.M] >= len(log):
            return at.TOO_MANY
        result = reset(plan, memory, log, plan[at.LOGGED], t, worst)
        if result == PULLS:
            if not fastest <= SLOW * whole_motion(plan, memory, t):
                return at.NO_RESET
            marks[worst] = SEPARATING
            continue
        if result != at.RESOLVED:
            return result
        if repetition < LOGGED_SINGLY:
            plan[at.LOGGED] += 1
        else:
            if sums < 0:  # behind the rows that they will fill
                sums = plan[at.LOGGED] + plan[at.M]
                log[sums : sums + plan[at.M]] = 0.0
            add_to_sum(plan, memory, log, plan[at.LOGGED], sums + worst)
        for k in range(plan[at.M]):
            marks[k] = min(marks[k], TOUCHING)
    return at.ENDLESS


@compiled_as("int64", "int64", "float64")
def mark_touching(plan, memory, which, span):
    """Mark all constraints that are hit together with `which` at HERE; how many there are."""
    count = 0
    for k in range(plan[at.M]):
        plan[plan[at.PASSED] + k] = 0
    for k in range(plan[at.WALLS]):
        near = max(memory[plan[at.BLUR] + k], -memory[plan[at.RATE_CONTACT] + k] * span)
        touches = k == which or abs(memory[plan[at.PHI_CONTACT] + k]) <= near
        plan[plan[at.JUST_HIT] + k] = TOUCHING if touches else APART
        count += touches
    return count


@compiled_as("boolean", "float64", "int64")
def is_elastic(plan, memory, t, which):
    """Whether the impact on one constraint HERE keeps the energy."""
    place(plan, memory, at.HERE, t)
    choose(plan, memory, at.HIT, which)
    call_kernel(plan[at.OUTCOME], memory)
    return memory[at.FRACTION_SLOT] == 1.0


@compiled_as("void", "float64[:, ::1]", "float64")
def end_coupled_reset(plan, memory, log, t):
    """The impact HERE, from the unknowns of the partial step after it."""
    energy = memory[at.ENERGY_BEFORE_SLOT]
    place(plan, memory, at.HERE, t)
    call_kernel(plan[at.OUTCOME_AFTER], memory)
    end_entry(plan, memory, log, plan[at.LOGGED] - 1, t)
    memory[at.ENERGY_BEFORE_SLOT] = energy


@compiled_as("int64", "float64[:, ::1]", "boolean", "boolean", "float64", "float64")
def finish(plan, memory, log, after, first, t, left):
    """End a step without a (further) collision. The first partial step takes the place of the full one, whose end is THERE."""
    solve_again = not plan[at.FULL_IS_PARTIAL] if first else after
    if solve_again and not flow(plan, memory, after, t, left, at.THERE):
        return at.NO_FLOW
    if after:
        end_coupled_reset(plan, memory, log, t)
    for k in range(2 * plan[at.N]):
        memory[plan[at.HERE] + k] = memory[plan[at.THERE] + k]
    return at.RESOLVED


@compiled_as("int64", "float64[:, ::1]", "float64")
def uncoupled_reset(plan, memory, log, t):
    """The last impact of the log, HERE, by the reset that does not solve for the partial step after it."""
    entry = plan[at.LOGGED] - 1
    status = reset(plan, memory, log, entry, t, int(log[entry, at.LOG_WHICH]))
    observe(plan, memory, at.HERE, t, at.PHI_HERE, at.RATE_HERE)
    for k in range(plan[at.M]):
        plan[plan[at.PASSED] + k] = 0
    return at.NO_RESET if status == PULLS else status


@compiled_as("int64", "float64[:, ::1]", "boolean", "float64", "float64")
def merge_with_end(plan, memory, log, after, t, left):
    """End a step right after an impact, along the tangent: the error, of second order in `left`, is lost in round-off."""
    if after:
        status = uncoupled_reset(plan, memory, log, t)
        if status != at.RESOLVED:
            return status
    place(plan, memory, at.HERE, t)
    call_kernel(plan[at.TANGENT_OF], memory)
    for k in range(2 * plan[at.N]):
        memory[plan[at.HERE] + k] += left * memory[plan[at.TANGENT] + k]
    return at.RESOLVED


@compiled_as("boolean", "boolean", "float64", "float64")
def rest_of_step(plan, memory, after, t, left):
    """The partial step from HERE to the end of the step, THERE, with phi and phi_dot at both ends; no impact may pull."""
    if not flow(plan, memory, after, t, left, at.THERE):
        return False
    if after:  # phi_dot right after the impact
        call_kernel(plan[at.OUTCOME_AFTER], memory)
        if memory[at.IMPULSE_SLOT] < 0.0:
            return False
        for k in range(plan[at.N]):
            memory[plan[at.CONTACT] + k] = memory[plan[at.HERE] + k]
            memory[plan[at.CONTACT] + plan[at.N] + k] = memory[plan[at.AFTER] + k]
        observe(plan, memory, at.CONTACT, t, at.PHI_HERE, at.RATE_HERE)
    observe(plan, memory, at.THERE, t + left, at.PHI_THERE, at.RATE_THERE)
    observe_between(plan, memory, t, left)
    return True


@compiled_as("boolean", "int64", "int64")
def behind_a_wall(plan, memory, phi, rate):
    """Whether a state that was just looked at lies behind a wall by more than round-off; AHEAD is left at that wall.

    Round-off is that of phi and positions (`rounding_of`), and of the leg's length. At a contact, and where a wall was just
    hit, phi may be negative as far as the time of that is known.
    """
    call_kernel(plan[at.MEASURE], memory)
    for k in range(plan[at.WALLS]):
        hit = phi == at.PHI_CONTACT or plan[plan[at.JUST_HIT] + k] != APART
        span = (MERGE if hit else BEHIND * ROUND_OFF) * memory[at.H_SLOT]
        depth = rounding_of(plan, memory, k) + span * abs(memory[plan[rate] + k])
        if not memory[plan[phi] + k] >= -depth:
            choose(plan, memory, at.AHEAD, k)
            return True
    return False


@compiled_as("boolean", "int64")
def undefined(plan, memory, phi):
    """Whether some phi is not finite; AHEAD is left at it."""
    for k in range(plan[at.M]):
        if not np.isfinite(memory[plan[phi] + k]):
            choose(plan, memory, at.AHEAD, k)
            return True
    return False


@compiled_as("boolean", "boolean", "float64", "float64", "float64")
def may_be_taken(plan, memory, after, t, left, tau):
    """Whether the leg to CONTACT, or without a collision to THERE, crosses no wall and starts with no impact that pulls.

    Where the reset is coupled with the leg, a leg to a wall may have another p+ than one to the end of the step.
    """
    if after and tau > 0.0:
        place(plan, memory, at.HERE, t)
        call_kernel(plan[at.OUTCOME_AFTER], memory)
        if not memory[at.IMPULSE_SLOT] >= 0.0:
            return False
    if tau < 0.0:
        place(plan, memory, at.THERE, t + left)
        return not (after and behind_a_wall(plan, memory, at.PHI_THERE, at.RATE_THERE))
    place(plan, memory, at.CONTACT, t + tau)
    return not behind_a_wall(plan, memory, at.PHI_CONTACT, at.RATE_CONTACT)


@compiled_as("int64", "float64[:, ::1]", "float64", "float64", "float64")
def resolve(plan, memory, log, t0, h, grid):
    """One step of size h from HERE, if THERE, the end of a full step, lies behind a wall or a wall lies between.

    Returns RESOLVED with the new state in HERE, or what was in the way. COUPLED integrators (VCI) solve for the reset together
    with the partial step after it. A positive `grid` rounds collision times to the middle of one of so many intervals.
    """
    elapsed, after, first = 0.0, False, True
    for k in range(plan[at.M]):
        memory[plan[at.BLUR] + k] = 0.0
    energy_of(plan, memory, at.HERE, t0)
    measure_motion(plan, memory, t0, h)
    for k in range(plan[at.M]):
        plan[plan[at.PASSED] + k] = 0
    for k in range(plan[at.WALLS]):
        memory[plan[at.STRENGTH_BEFORE] + k] = memory[plan[at.STRENGTH] + k]
    for _ in range(MOST_IN_A_STEP):
        t, left = t0 + elapsed, h - elapsed
        if left <= MERGE * h:
            return merge_with_end(plan, memory, log, after, t, left)
        solved = first or rest_of_step(plan, memory, after, t, left)
        if not (solved or after):
            return at.NO_FLOW
        if solved and undefined(plan, memory, at.PHI_THERE):
            return at.UNDEFINED
        tau = collision_time(plan, memory, after, t, left) if solved else 0.0
        if solved and tau >= 0.0 and undefined(plan, memory, at.PHI_CONTACT):
            return at.UNDEFINED
        if not solved or (grid == 0.0 and not may_be_taken(plan, memory, after, t, left, tau)):
            if not after:
                return at.NO_TIME
            # no p+ has the discrete energy that is asked for, as may happen in slow impacts: take the other reset
            plan[at.UNCOUPLED] += 1
            status = uncoupled_reset(plan, memory, log, t)
            if status != at.RESOLVED:
                return status
            after = False
            continue
        if tau < 0.0:
            return finish(plan, memory, log, after, first, t, left)
        which = chosen(plan, memory)
        if grid > 0.0 and tau > 0.0:
            tau = left * (np.floor(tau / left * grid) + 0.5) / grid
            if not flow(plan, memory, after, t, tau, at.CONTACT):
                return at.NO_FLOW
            observe(plan, memory, at.CONTACT, t + tau, at.PHI_CONTACT, at.RATE_CONTACT)
        # memory still holds the unknowns of the partial step to CONTACT
        if plan[at.COUPLED] and tau > 0.0:
            place(plan, memory, at.HERE, t)
            memory[at.DT_SLOT] = tau
            call_kernel(plan[at.ENERGY], memory)
        if after:
            end_coupled_reset(plan, memory, log, t)
        after, first = False, False
        guards = which >= plan[at.WALLS] or plan[at.STOPS_AT_HIT] != 0
        if plan[plan[at.JUST_HIT] + which] and tau <= MERGE * h and not guards:
            return at.ACCUMULATED
        elapsed += tau
        t = t0 + elapsed
        for k in range(2 * plan[at.N]):
            memory[plan[at.HERE] + k] = memory[plan[at.CONTACT] + k]
        if guards:
            memory[at.T_SLOT] = t
            return at.GUARDED
        energy = energy_of(plan, memory, at.HERE, t)
        if not memory[plan[at.STRENGTH] + which] > GONE * GONE * memory[plan[at.STRENGTH_BEFORE] + which]:
            return at.NO_GRADIENT
        touching = mark_touching(plan, memory, which, MERGE * h)
        if memory[plan[at.RATE_CONTACT] + which] >= 0.0:  # it only touches
            for k in range(plan[at.M]):
                memory[plan[at.PHI_HERE] + k] = memory[plan[at.PHI_CONTACT] + k]
                memory[plan[at.RATE_HERE] + k] = memory[plan[at.RATE_CONTACT] + k]
        elif plan[at.COUPLED] and touching == 1 and is_elastic(plan, memory, t, which):
            if plan[at.LOGGED] >= len(log):
                return at.TOO_MANY
            if tau == 0.0:  # there is no partial step before the impact
                memory[at.ENERGY_BEFORE_SLOT] = energy
            begin_entry(plan, memory, log, plan[at.LOGGED], t, which)
            plan[at.LOGGED] += 1
            after = True
        else:
            status = collide(plan, memory, log, t)
            if status != at.RESOLVED:
                return status
    return at.TOO_MANY
