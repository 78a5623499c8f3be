"""Resets at a point on a wall: R^reset of Algorithm 1 of Pekarek and Murphey (2014), for one wall and for several at once.

Like the driver, this knows no model (`_event_memory`).
"""

from __future__ import annotations

import numpy as np

from dalembert.contact._collision_times import ROUND_OFF
from dalembert.contact._dense_newton import apart_as, compiled_as, newton
from dalembert.contact._event_memory import (
    BAD_RESTITUTION,
    ENDLESS,
    LOG_AFTER,
    LOG_BEFORE,
    LOG_IMPULSE,
    LOG_STATE,
    LOG_T,
    LOG_WHICH,
    NO_RESET,
    PULLS,
    RESOLVED,
    TOO_MANY,
)
from dalembert.contact._partial_steps import choose, copy, measure, observe, place
from dalembert.engine._iteration import inlined
from dalembert.engine._kernel_call import call_kernel

APART, TOUCHING, SEPARATING = range(3)
"""Marks of walls, whether they were just hit: those whose reset would pull are separating."""
LOGGED_SINGLY, MOST_AT_ONCE = 1000, 1_000_000
"""Resets at one instant: how many have a row of the log each, and how many there may be."""
AT_REST = 1e-12
"""Of the first approach; what is left of it after many resets with restitution is no approach."""
SLOW = 0.1
"""An approach below this part of the whole motion is slow enough for phi_dot and a reset to disagree about its sign."""


@compiled_as("float64", "point", "float64", from_python=True)
def energy_of(events, point, t):
    """H at a point, and with it how far round-off blurs phi: here, or where positions come from in this step."""
    at, memory = events.at, events.memory
    place(events, point, t)
    measure(events)
    for k in range(at.m):
        memory[at.blur + k] = max(memory[at.blur + k], ROUND_OFF * memory[at.slack + k])
    return memory[at.energy]


@compiled_as("float64", "float64")
def whole_motion(events, t):
    """sqrt(p . v) HERE, in the units of an approach, phi_dot / sqrt(grad phi^T H_pp grad phi)."""
    at, memory = events.at, events.memory
    place(events, at.here, t)
    call_kernel(at.call_tangent, memory)
    whole = 0.0
    for k in range(at.n):
        whole += memory[at.state + at.n + k] * memory[at.tangent + k]
    return np.sqrt(abs(whole))


@apart_as("void", "int64", "float64", "int64")
def begin_entry(events, entry, t, which):
    """Log an impact HERE, up to what is known before its reset."""
    at, row = events.at, events.log[entry]
    row[LOG_T], row[LOG_WHICH], row[LOG_BEFORE] = t, which, energy_of(events, at.here, t)
    for k in range(2 * at.n):
        row[LOG_STATE + k] = events.memory[at.here.state + k]


@apart_as("void", "int64", "float64")
def end_entry(events, entry, t):
    """Set the momentum HERE to that after the impact, which memory holds, and log it."""
    at, memory, row = events.at, events.memory, events.log[entry]
    row[LOG_IMPULSE] = memory[at.impulse]
    for k in range(at.n):
        memory[at.here.state + at.n + k] = row[LOG_STATE + 2 * at.n + k] = memory[at.after + k]
    row[LOG_AFTER] = energy_of(events, at.here, t)


@apart_as("int64", "int64", "float64", "int64")
def reset(events, entry, t, which):
    """R^reset on one wall, from the momentum HERE, which stays if the impulse would pull; RESOLVED or why not."""
    at, memory = events.at, events.memory
    begin_entry(events, entry, t, which)
    choose(events, at.hit, at.walls, which)
    at.which = which
    call_kernel(at.reset.guess, memory)
    if not newton(events, at.reset, memory[at.h]):
        return NO_RESET
    call_kernel(at.call_outcome, memory)
    if not 0.5 - 1e-12 <= memory[at.fraction] <= 1.0 + 1e-12:
        return BAD_RESTITUTION
    if not np.isfinite(memory[at.impulse]):
        return NO_RESET
    if memory[at.impulse] < 0.0:
        return PULLS
    end_entry(events, entry, t)
    return RESOLVED


@inlined
def add_to_sum(events, entry, total):
    """Add the impulse of one entry, and its change of the momentum, to those that a row sums up."""
    n, row, sums = events.at.n, events.log[entry], events.log[total]
    sums[LOG_IMPULSE] += row[LOG_IMPULSE]
    for k in range(LOG_STATE + n, LOG_STATE + 2 * n):
        sums[n + k] += row[n + k] - row[k]


@apart_as("void", "float64", "int64")
def log_sums(events, t, first):
    """Turn the sums of impulses, one row a wall from `first` on, into impacts that follow upon each other.

    HERE is after all of them: its momentum is put back, kicked again, and then what it was, which round-off would change.
    """
    at, log, kick = events.at, events.log, LOG_STATE + 2 * events.at.n
    copy(events, at.here, at.contact)
    p = events.memory[at.here.state + at.n : at.here.state + 2 * at.n]
    for wall in range(at.walls):
        for k in range(at.n):
            p[k] -= log[first + wall, kick + k]
    for wall in range(at.walls):
        if log[first + wall, LOG_IMPULSE] != 0.0:
            begin_entry(events, at.logged, t, wall)
            log[at.logged, LOG_IMPULSE] = log[first + wall, LOG_IMPULSE]
            for k in range(at.n):
                p[k] += log[first + wall, kick + k]
                log[at.logged, kick + k] = p[k]
            log[at.logged, LOG_AFTER] = energy_of(events, at.here, t)
            at.logged += 1
    copy(events, at.contact, at.here)


@apart_as("pair", "float64")
def fastest_approach(events, t):
    """The touching wall that approaches fastest HERE, and how fast; -1 if none does.

    An approach is measured by the part of the motion that it takes, phi_dot / sqrt(grad phi^T H_pp grad phi).
    """
    at, memory = events.at, events.memory
    observe(events, at.here, t)
    measure(events)
    worst, fastest = -1, 0.0
    for k in range(at.walls):
        if events.tables[at.just_hit + k] == TOUCHING and memory[at.here.rate + k] < 0.0:
            speed = -memory[at.here.rate + k] / np.sqrt(memory[at.strength + k])
            if speed > fastest:
                worst, fastest = k, speed
    return worst, fastest


@compiled_as("void")
def let_separating_touch(events):
    """What was found separating may approach again, once another reset has changed the motion."""
    marks = events.tables[events.at.just_hit : events.at.just_hit + events.at.m]
    for k in range(len(marks)):
        marks[k] = min(marks[k], TOUCHING)


@apart_as("int64", "float64")
def collide(events, t):
    """Reset all walls that touch HERE and approach, one after the other, the fastest first, until none does.

    In slow impacts phi_dot and the reset may disagree about the sign of an approach, if the reset conserves another function
    than that of which phi_dot is the derivative: a reset that would pull is not done, until another one has changed the motion.

    It ends: resets are counted. In a corner with restitution < 1 approaches shrink like a geometric sequence, and are over
    AT_REST. Impulses after the first LOGGED_SINGLY ones are summed up, one impact a wall.
    """
    at, log, first, sums = events.at, events.log, 0.0, -1
    for repetition in range(MOST_AT_ONCE):
        worst, fastest = fastest_approach(events, t)
        if repetition == 0:
            first = max(fastest, whole_motion(events, t) * ROUND_OFF / AT_REST)
        if worst < 0 or fastest <= AT_REST * first:
            let_separating_touch(events)
            if sums >= 0:
                log_sums(events, t, sums)
            return RESOLVED
        if at.logged + 2 * at.m >= len(log):
            return TOO_MANY
        result = reset(events, at.logged, t, worst)
        if result == PULLS:
            if not fastest <= SLOW * whole_motion(events, t):
                return NO_RESET
            events.tables[at.just_hit + worst] = SEPARATING
            continue
        if result != RESOLVED:
            return result
        if repetition < LOGGED_SINGLY:
            at.logged += 1
        else:
            if sums < 0:  # behind the rows that they will fill
                sums = at.logged + at.m
                log[sums : sums + at.m] = 0.0
            add_to_sum(events, at.logged, sums + worst)
        let_separating_touch(events)
    return ENDLESS


@compiled_as("int64", "float64", from_python=True)
def collide_now(events, t):
    """`collide`, for Python."""
    return collide(events, t)
