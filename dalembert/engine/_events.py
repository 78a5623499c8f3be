"""Impacts within a step: collision times, resets and the rest of the step, for every collision integrator and model.

This is the second half of Algorithm 1 of Pekarek and Murphey (2014), lines 5 to 17. Like the driver, it knows no model: kernels
are addresses, memory is one array, and its layout comes as integers.
"""

from __future__ import annotations

import numpy as np

from dalembert.engine._dense_newton import (
    AFTER,
    AHEAD,
    DELTA,
    GUESS,
    HIT,
    M,
    N,
    PHI,
    RATE,
    SIZE,
    SLACK,
    STATE,
    STRENGTH,
    TANGENT,
    X,
    newton,
)
from dalembert.engine._driver import compiled
from dalembert.engine._kernel_call import call_kernel

# kernels
(LOOK, MEASURE, RATES, FULL_GUESS, END, END_AFTER, OUTCOME, OUTCOME_AFTER, ENERGY) = range(9)
# systems of equations; those after an impact follow those without one
FLOW, WALL, RESET, FLOW_AFTER, WALL_AFTER = range(5)
# slots of memory that do not depend on sizes
T_SLOT, DT_SLOT, H_SLOT, ENERGY_BEFORE_SLOT, S_SLOT, IMPULSE_SLOT, FRACTION_SLOT, ENERGY_SLOT = range(8)
# rows of `points`: states, and phi and phi_dot of all constraints at the leg's start, its end and at contact
HERE, THERE, CONTACT, PHI_HERE, RATE_HERE, PHI_THERE, RATE_THERE, PHI_CONTACT, RATE_CONTACT, BLUR = range(10)
N_POINTS = 10
# rows of `marks`: constraints that were just hit, and those on which no collision was found
JUST_HIT, PASSED = range(2)
# columns of the log, followed by q, p_before and p_after
LOG_T, LOG_WHICH, LOG_IMPULSE, LOG_BEFORE, LOG_AFTER, LOG_STATE = range(6)
# what `resolve` returns
RESOLVED, NO_FLOW, NO_RESET, ACCUMULATED, NO_GRADIENT, TOO_MANY, ENDLESS = range(7)

MOST_IN_A_STEP = 1000
MOST_AT_ONCE = 1000
MERGE = 1.5e-8
"""sqrt(eps): impacts closer than this fraction of a step are one event, and so are an impact and the step's end."""
ROUND_OFF = 16 * 2.220446049250313e-16
GONE = 1e-10
"""A gradient of phi that has fallen by this factor since the step began counts as vanished."""


@compiled
def place(memory, slots, points, row, t):
    """Put a state, and its time, where the kernels look for it."""
    memory[T_SLOT] = t
    for k in range(2 * slots[N]):
        memory[slots[STATE] + k] = points[row, k]


@compiled
def look(kernels, memory, slots, points, state, t, phi, rate):
    """phi and phi_dot at a state."""
    place(memory, slots, points, state, t)
    call_kernel(kernels[LOOK], memory)
    for k in range(slots[M]):
        points[phi, k], points[rate, k] = memory[slots[PHI] + k], memory[slots[RATE] + k]


@compiled
def choose(memory, first, count, which):
    """A unit vector that selects one constraint."""
    for k in range(count):
        memory[first + k] = 1.0 if k == which else 0.0


@compiled
def flow(kernels, solves, memory, slots, points, pivots, after, t, dt, target):
    """The partial step of length dt from HERE to `target`; False if its equations could not be solved."""
    place(memory, slots, points, HERE, t)
    memory[DT_SLOT] = dt
    row = solves[FLOW_AFTER if after else FLOW]
    call_kernel(row[GUESS], memory)
    if not newton(row, memory, slots, pivots, dt):
        return False
    call_kernel(kernels[END_AFTER if after else END], memory)
    total = 0.0
    for k in range(2 * slots[N]):
        points[target, k] = points[HERE, k] + memory[slots[DELTA] + k]
        total += points[target, k]
    return np.isfinite(total)


@compiled
def lowest(phi0, slope0, phi1, slope1):
    """Where in (0, 1) the Hermite cubic of phi has its minimum, if it falls at 0 and rises at 1; else -1."""
    if slope0 >= 0.0 or slope1 <= 0.0:
        return -1.0
    c3 = 2.0 * (phi0 - phi1) + slope0 + slope1
    c2 = 3.0 * (phi1 - phi0) - 2.0 * slope0 - slope1
    a, b = 0.0, 1.0
    for _ in range(60):  # the derivative slope0 + 2 c2 u + 3 c3 u^2 rises through zero once
        u = 0.5 * (a + b)
        if slope0 + u * (2.0 * c2 + 3.0 * c3 * u) < 0.0:
            a = u
        else:
            b = u
    return b


@compiled
def first_root(phi0, slope0, phi1, slope1, on_wall):
    """The first zero in (0, 1] of the Hermite cubic of phi, that at 0 left out if the leg starts on the wall; else -1.

    0 means that a leg that starts on the wall does not leave it.
    """
    c3 = 2.0 * (phi0 - phi1) + slope0 + slope1
    c2 = 3.0 * (phi1 - phi0) - 2.0 * slope0 - slope1
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


@compiled
def may_collide(points, m, dt):
    """Whether phi <= 0 at the end of a step (31), or its Hermite cubic falls below zero inside of it."""
    for k in range(m):
        phi0, phi1 = points[PHI_HERE, k], points[PHI_THERE, k]
        if phi1 <= 0.0:
            return True
        slope0, slope1 = dt * points[RATE_HERE, k], dt * points[RATE_THERE, k]
        if slope0 < 0.0 < slope1 and phi0 + slope0 < 0.0:  # the minimum lies above the tangents
            u = lowest(phi0, slope0, phi1, slope1)
            c3 = 2.0 * (phi0 - phi1) + slope0 + slope1
            if phi0 + u * (slope0 + u * (3.0 * (phi1 - phi0) - 2.0 * slope0 - slope1 + u * c3)) <= 0.0:
                return True
    return False


@compiled
def next_candidate(points, marks, m, dt):
    """The constraint that the leg from HERE to THERE seems to hit first, and where (a fraction of dt); -1 if none."""
    which, where = -1, np.inf
    for k in range(m):
        if marks[PASSED, k] or points[PHI_THERE, k] > 0.0 and points[RATE_HERE, k] >= 0.0 and not marks[JUST_HIT, k]:
            continue
        on_wall = marks[JUST_HIT, k] or points[PHI_HERE, k] <= points[BLUR, k]
        if points[PHI_THERE, k] > -points[BLUR, k] and on_wall and points[PHI_THERE, k] <= points[BLUR, k]:
            continue  # touching all the time
        slope0, slope1 = dt * points[RATE_HERE, k], dt * points[RATE_THERE, k]
        if on_wall and slope0 < 0.0 and not marks[JUST_HIT, k]:
            u = 0.0
        else:
            u = first_root(points[PHI_HERE, k], slope0, points[PHI_THERE, k], slope1, on_wall)
        if u >= 0.0 and u < where:
            which, where = k, u
    return which, where


@compiled
def fly(kernels, solves, memory, slots, points, marks, pivots, after, t, left, which, guess):
    """CollisionTime: the partial step from HERE to CONTACT on the wall `which`; its length, or -1 if it isn't reached.

    First by Newton's method with the length as one of the unknowns; if that misses, by bisection, which needs a partial step
    that ends behind the wall.
    """
    on_wall = marks[JUST_HIT, which] or points[PHI_HERE, which] <= points[BLUR, which]
    h = memory[H_SLOT]
    row = solves[WALL_AFTER if after else WALL]
    place(memory, slots, points, HERE, t)
    choose(memory, slots[AHEAD], slots[M], which)
    memory[DT_SLOT], memory[S_SLOT] = guess, guess / h
    call_kernel(row[GUESS], memory)
    if newton(row, memory, slots, pivots, guess):
        tau = memory[slots[X] + row[SIZE] - 1] * h
        if (0.01 * guess if on_wall else 0.0) < tau <= left * (1.0 + 1e-10):
            tau = min(tau, left)
            memory[DT_SLOT] = tau
            call_kernel(kernels[END_AFTER if after else END], memory)
            for k in range(2 * slots[N]):
                points[CONTACT, k] = points[HERE, k] + memory[slots[DELTA] + k]
            look(kernels, memory, slots, points, CONTACT, t + tau, PHI_CONTACT, RATE_CONTACT)
            if points[RATE_CONTACT, which] <= 0.0:
                return tau
    a, b = 0.0, left
    if points[PHI_THERE, which] > 0.0:
        b = left * lowest(
            points[PHI_HERE, which], left * points[RATE_HERE, which], points[PHI_THERE, which], left * points[RATE_THERE, which]
        )
    if b <= 0.0 or not flow(kernels, solves, memory, slots, points, pivots, after, t, b, CONTACT):
        return -1.0
    look(kernels, memory, slots, points, CONTACT, t + b, PHI_CONTACT, RATE_CONTACT)
    if points[PHI_CONTACT, which] > 0.0:
        return -1.0
    for _ in range(100):
        if b - a <= 2.2e-16 * b:
            break
        middle = 0.5 * (a + b)
        if not flow(kernels, solves, memory, slots, points, pivots, after, t, middle, CONTACT):
            return -1.0
        look(kernels, memory, slots, points, CONTACT, t + middle, PHI_CONTACT, RATE_CONTACT)
        if points[PHI_CONTACT, which] > 0.0 or (on_wall and a == 0.0 and points[RATE_CONTACT, which] > 0.0):
            a = middle
        else:
            b = middle
    if b < MERGE * MERGE * left or not flow(kernels, solves, memory, slots, points, pivots, after, t, b, CONTACT):
        return -1.0
    look(kernels, memory, slots, points, CONTACT, t + b, PHI_CONTACT, RATE_CONTACT)
    return b


@compiled
def energy_of(kernels, memory, slots, points, row, t):
    """H at a state, and with it BLUR, how far round-off blurs phi."""
    place(memory, slots, points, row, t)
    call_kernel(kernels[MEASURE], memory)
    for k in range(slots[M]):
        points[BLUR, k] = ROUND_OFF * memory[slots[SLACK] + k]
    return memory[ENERGY_SLOT]


@compiled
def begin_entry(kernels, memory, slots, points, log, entry, t, which):
    """Log an impact at HERE, up to what is known before its reset."""
    n = slots[N]
    log[entry, LOG_T], log[entry, LOG_WHICH] = t, which
    log[entry, LOG_BEFORE] = energy_of(kernels, memory, slots, points, HERE, t)
    for k in range(2 * n):
        log[entry, LOG_STATE + k] = points[HERE, k]


@compiled
def end_entry(kernels, memory, slots, points, log, entry, t):
    """Set the momentum HERE to that after the impact, which memory holds, and log it."""
    n = slots[N]
    log[entry, LOG_IMPULSE] = memory[IMPULSE_SLOT]
    for k in range(n):
        points[HERE, n + k] = log[entry, LOG_STATE + 2 * n + k] = memory[slots[AFTER] + k]
    log[entry, LOG_AFTER] = energy_of(kernels, memory, slots, points, HERE, t)


@compiled
def reset(kernels, solves, memory, slots, points, log, entry, pivots, t, which):
    """R^reset on one constraint, from the momentum HERE."""
    begin_entry(kernels, memory, slots, points, log, entry, t, which)
    choose(memory, slots[HIT], slots[M], which)
    call_kernel(solves[RESET, GUESS], memory)
    if not newton(solves[RESET], memory, slots, pivots, memory[H_SLOT]):
        return False
    call_kernel(kernels[OUTCOME], memory)
    if not np.isfinite(memory[IMPULSE_SLOT]):
        return False
    end_entry(kernels, memory, slots, points, log, entry, t)
    return True


@compiled
def collide(kernels, solves, memory, slots, points, marks, log, logged, pivots, t):
    """Reset all constraints that touch HERE and approach, one after the other, the fastest first, until none does.

    An approach is measured by the part of the motion that it takes, phi_dot / sqrt(grad phi^T H_pp grad phi).
    """
    n, m = slots[N], slots[M]
    first = 0.0
    for repetition in range(MOST_AT_ONCE):
        look(kernels, memory, slots, points, HERE, t, PHI_HERE, RATE_HERE)
        call_kernel(kernels[MEASURE], memory)
        worst, fastest = -1, 0.0
        for k in range(m):
            if marks[JUST_HIT, k] and points[RATE_HERE, k] < 0.0:
                speed = -points[RATE_HERE, k] / np.sqrt(memory[slots[STRENGTH] + k])
                if speed > fastest:
                    worst, fastest = k, speed
        if repetition == 0:
            first = fastest
        if worst < 0 or fastest <= 1e-13 * first:
            return logged, RESOLVED
        if logged >= len(log):
            return logged, ENDLESS
        if not reset(kernels, solves, memory, slots, points, log, logged, pivots, t, worst):
            return logged, NO_RESET
        logged += 1
    return logged, ENDLESS


@compiled
def mark_touching(memory, slots, points, marks, which, span):
    """Mark all constraints that are hit together with `which` at HERE; how many there are."""
    count = 0
    for k in range(slots[M]):
        near = max(points[BLUR, k], -points[RATE_CONTACT, k] * span)
        marks[JUST_HIT, k] = 1 if k == which or abs(points[PHI_CONTACT, k]) <= near else 0
        marks[PASSED, k] = 0
        count += marks[JUST_HIT, k]
    return count


@compiled
def resolve(kernels, solves, memory, slots, points, marks, log, logged, pivots, strengths, t0, h, coupled, full_is_partial, grid):
    """One step of size h from HERE, in which THERE, the end of a full step, lies behind a wall or a wall lies between.

    Returns the number of impacts in the log and the status; the new state is left in HERE. `coupled` integrators (VCI) solve for
    the reset together with the partial step that follows it. `strengths` are |grad phi| of the step's start. A positive `grid`
    rounds collision times to the middle of one of so many intervals.
    """
    n, m = slots[N], slots[M]
    elapsed, pending, fresh = 0.0, False, True
    energy_of(kernels, memory, slots, points, HERE, t0)
    for k in range(m):
        strengths[k] = memory[slots[STRENGTH] + k]
        marks[PASSED, k] = 0
    entry = logged
    for _ in range(MOST_IN_A_STEP):
        t, left = t0 + elapsed, h - elapsed
        if left <= MERGE * h:
            if pending:
                hit = int(log[entry, LOG_WHICH])
                if not reset(kernels, solves, memory, slots, points, log, entry, pivots, t, hit):
                    return logged, NO_RESET
            place(memory, slots, points, HERE, t)
            call_kernel(kernels[RATES], memory)
            for k in range(2 * n):
                points[HERE, k] += left * memory[slots[TANGENT] + k]
            return logged, RESOLVED
        if not fresh:
            if not flow(kernels, solves, memory, slots, points, pivots, pending, t, left, THERE):
                return logged, NO_FLOW
            if pending:
                call_kernel(kernels[OUTCOME_AFTER], memory)
                if memory[FRACTION_SLOT] != 1.0:  # not elastic: what follows starts from the reduced impulse
                    end_entry(kernels, memory, slots, points, log, entry, t)
                    look(kernels, memory, slots, points, HERE, t, PHI_HERE, RATE_HERE)
                    pending = False
                    continue
                for k in range(n):  # phi_dot right after the impact
                    points[CONTACT, k], points[CONTACT, n + k] = points[HERE, k], memory[slots[AFTER] + k]
                look(kernels, memory, slots, points, CONTACT, t, PHI_HERE, RATE_HERE)
            look(kernels, memory, slots, points, THERE, t0 + h, PHI_THERE, RATE_THERE)
        which, where = next_candidate(points, marks, m, left)
        tau, tried = -1.0, False
        for _ in range(m + 1):
            if which < 0:
                break
            if where * left <= MERGE * MERGE * h:
                tau = 0.0
                for k in range(2 * n):
                    points[CONTACT, k] = points[HERE, k]
                look(kernels, memory, slots, points, CONTACT, t, PHI_CONTACT, RATE_CONTACT)
            else:
                tried = True
                tau = fly(kernels, solves, memory, slots, points, marks, pivots, pending, t, left, which, where * left)
            if tau < 0.0:
                marks[PASSED, which] = 1
                which, where = next_candidate(points, marks, m, left)
                continue
            earlier, deepest = -1, 0.0
            for k in range(m):
                depth = points[PHI_CONTACT, k] + points[BLUR, k]
                if k != which and not marks[PASSED, k] and depth < deepest and tau > 0.0:
                    u = first_root(
                        points[PHI_HERE, k], tau * points[RATE_HERE, k], points[PHI_CONTACT, k], tau * points[RATE_CONTACT, k],
                        marks[JUST_HIT, k] != 0,
                    )  # fmt: skip
                    if u > 0.0:
                        earlier, deepest, where = k, depth, u * tau / left
            if earlier < 0:
                break
            which = earlier
        if which < 0 or tau < 0.0:  # no collision: the partial step takes the place of the full one
            partial = full_is_partial or not fresh
            if not (partial or flow(kernels, solves, memory, slots, points, pivots, False, t, left, THERE)):
                return logged, NO_FLOW
            if pending:
                if tried and not flow(kernels, solves, memory, slots, points, pivots, True, t, left, THERE):
                    return logged, NO_FLOW
                place(memory, slots, points, HERE, t)
                call_kernel(kernels[OUTCOME_AFTER], memory)
                end_entry(kernels, memory, slots, points, log, entry, t)
            for k in range(2 * n):
                points[HERE, k] = points[THERE, k]
            return logged, RESOLVED
        if tau > 0.0:
            if grid > 0.0:
                tau = left * (np.floor(tau / left * grid) + 0.5) / grid
                if not flow(kernels, solves, memory, slots, points, pivots, pending, t, tau, CONTACT):
                    return logged, NO_FLOW
                look(kernels, memory, slots, points, CONTACT, t + tau, PHI_CONTACT, RATE_CONTACT)
            if coupled:  # memory still holds the unknowns of this partial step
                place(memory, slots, points, HERE, t)
                memory[DT_SLOT] = tau
                call_kernel(kernels[ENERGY], memory)
        if pending:
            place(memory, slots, points, HERE, t)
            call_kernel(kernels[OUTCOME_AFTER], memory)
            energy = memory[ENERGY_BEFORE_SLOT]
            end_entry(kernels, memory, slots, points, log, entry, t)
            memory[ENERGY_BEFORE_SLOT] = energy
            pending = False
        if marks[JUST_HIT, which] and tau <= MERGE * h:
            return logged, ACCUMULATED
        elapsed += tau
        t = t0 + elapsed
        for k in range(2 * n):
            points[HERE, k] = points[CONTACT, k]
        energy = energy_of(kernels, memory, slots, points, HERE, t)
        if not memory[slots[STRENGTH] + which] > GONE * GONE * strengths[which]:
            return logged, NO_GRADIENT
        touching = mark_touching(memory, slots, points, marks, which, MERGE * h)
        fresh = False
        if points[RATE_CONTACT, which] >= 0.0:  # it only touches
            for k in range(m):
                points[PHI_HERE, k], points[RATE_HERE, k] = points[PHI_CONTACT, k], points[RATE_CONTACT, k]
            continue
        if coupled and touching == 1:
            if tau == 0.0:
                memory[ENERGY_BEFORE_SLOT] = energy  # there is no partial step before the impact
            if logged >= len(log):
                return logged, TOO_MANY
            entry, pending = logged, True
            before = memory[ENERGY_BEFORE_SLOT]
            begin_entry(kernels, memory, slots, points, log, entry, t, which)
            memory[ENERGY_BEFORE_SLOT] = before
            choose(memory, slots[HIT], m, which)
            logged += 1
        else:
            logged, status = collide(kernels, solves, memory, slots, points, marks, log, logged, pivots, t)
            if status != RESOLVED:
                return logged, status
            look(kernels, memory, slots, points, HERE, t, PHI_HERE, RATE_HERE)
    return logged, TOO_MANY
