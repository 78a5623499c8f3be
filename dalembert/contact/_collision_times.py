"""Where a step meets a wall: partial steps, and the times at which they end on phi = 0.

CollisionTime of Pekarek and Murphey (2014), section 4.1. Nothing here knows a model (`_event_memory`).
"""

from __future__ import annotations

import numpy as np

from dalembert.contact._cubic import first_root, hermite, lowest
from dalembert.contact._dense_newton import apart_as, compiled_as, newton
from dalembert.contact._partial_steps import choose, copy, end_flow, flow, measure, observe, place
from dalembert.engine._iteration import inlined
from dalembert.engine._kernel_call import call_kernel

MERGE = 1.5e-8
"""sqrt(eps): impacts closer than this fraction of a step are one event, and so are an impact and the step's end."""

ROUND_OFF = 16 * 2.220446049250313e-16
"""By this times the sum of all roundings, round-off blurs phi."""

BEHIND = 8.0
"""So many times the blur of phi may a state lie behind a wall, for the round-off of positions."""


@compiled_as("boolean", "int64")
def starts_on_wall(events, which):
    """Whether HERE is on a wall, because it was just hit or as far as round-off can tell."""
    at, memory = events.at, events.memory
    return events.tables[at.just_hit + which] != 0 or memory[at.here.phi + which] <= memory[at.blur + which]


@inlined
def seems_hit(events, k, dt):
    """Where between HERE and THERE (a fraction of dt) a guard seems to be zero first; -1 if nowhere."""
    at, memory = events.at, events.memory
    phi0, slope0 = memory[at.here.phi + k], dt * memory[at.here.rate + k]
    phi1, slope1 = memory[at.there.phi + k], dt * memory[at.there.rate + k]
    on_wall, just_hit = starts_on_wall(events, k), events.tables[at.just_hit + k] != 0
    if on_wall and abs(phi1) <= memory[at.blur + k]:
        return -1.0  # it touches all the time
    if on_wall and slope0 < 0.0 and not just_hit and k < at.walls:
        return 0.0
    u, dip = first_root(phi0, slope0, phi1, slope1, on_wall), memory[at.dip + k]
    if u < 0.0 and dip > 0.0:  # of the parabola through phi, its slope and the dip
        c2 = (memory[at.phi_dip + k] - phi0 - slope0 * dip) / (dip * dip)
        u = 2.0 * phi0 / (-slope0 + np.sqrt(slope0 * slope0 - 4.0 * c2 * phi0))
    return u


@compiled_as("boolean", "int64")
def left_out(events, k):
    """Whether a guard is not looked at: on this leg, or at all."""
    return events.tables[events.at.passed + k] != 0 or events.tables[events.at.ignored + k] != 0


@apart_as("pair", "float64")
def next_candidate(events, dt):
    """The guard that seems to be zero first on the leg from HERE to THERE, and where (a fraction of dt); -1 if none."""
    which, where = -1, np.inf
    for k in range(events.at.m):
        u = -1.0 if left_out(events, k) else seems_hit(events, k, dt)
        if 0.0 <= u < where:
            which, where = k, u
    return which, where


@compiled_as("float64", "int64")
def rounding_of(events, which):
    """How far from zero rounding errors may leave phi at a state that was just measured.

    They are those of phi, here and where the leg began, and those of positions, which are sums of what moves in a step: where a
    wall passes through the origin, phi itself has none.
    """
    at, memory = events.at, events.memory
    depth = BEHIND * max(memory[at.blur + which], ROUND_OFF * memory[at.slack + which])
    if which < at.walls:
        steepness = min(memory[at.strength + which], memory[at.strength_before + which])  # no bounds at a pole
        depth += ROUND_OFF * memory[at.reach] * np.sqrt(steepness)
    return depth


@apart_as("boolean", "point", "boolean")
def behind_a_wall(events, point, collides):
    """Whether a point that was just looked at lies behind a wall by more than round-off; `which` is left at that wall.

    Round-off is that of phi and positions (`rounding_of`), and of the leg's length. Where a wall is or was just hit, phi may be
    negative as far as the time of that is known.
    """
    at, memory = events.at, events.memory
    measure(events)
    for k in range(at.walls):
        hit = collides or events.tables[at.just_hit + k] != 0
        span = (MERGE if hit else BEHIND * ROUND_OFF) * memory[at.h]
        if not memory[point.phi + k] >= -(rounding_of(events, k) + span * abs(memory[point.rate + k])):
            at.which = k
            return True
    return False


@compiled_as("boolean", "point")
def undefined(events, point):
    """Whether some phi is not finite; `which` is left at it."""
    for k in range(events.at.m):
        if not np.isfinite(events.memory[point.phi + k]):
            events.at.which = k
            return True
    return False


@apart_as("boolean", "int64")
def is_contact(events, which):
    """Whether phi is zero at CONTACT, as well as round-off and a time that is known to MERGE h let it be."""
    at, memory = events.at, events.memory
    here, there = abs(memory[at.here.rate + which]), abs(memory[at.there.rate + which])
    rate = min(max(here, there), abs(memory[at.contact.rate + which]))  # at a pole it knows no bounds
    measure(events)
    depth = rounding_of(events, which) + MERGE * memory[at.h] * rate
    return abs(memory[at.contact.phi + which]) <= depth


@apart_as("boolean", "boolean", "float64", "float64")
def try_contact(events, after, t, dt):
    """The partial step of length dt from HERE to CONTACT, and phi there; False if it could not be made."""
    if not flow(events, after, t, dt, events.at.contact):
        return False
    observe(events, events.at.contact, t + dt)
    return True


@apart_as("float64", "boolean", "float64", "float64", "int64")
def bisect(events, after, t, left, which):
    """CollisionTime by bisection, where Newton's method failed; -1 if no partial step is known to end behind the wall."""
    at, memory = events.at, events.memory
    a, b, phi, rate = 0.0, left, at.contact.phi + which, at.contact.rate + which
    if memory[at.there.phi + which] > 0.0:
        dip, here, there = memory[at.dip + which], at.here, at.there
        b = left * (dip if dip > 0.0 else lowest(
            memory[here.phi + which], left * memory[here.rate + which],
            memory[there.phi + which], left * memory[there.rate + which],
        ))  # fmt: skip
    if b <= 0.0 or not try_contact(events, after, t, b) or memory[phi] > 0.0:
        return -1.0
    on_wall = starts_on_wall(events, which)
    while b - a > 2.3e-16 * b:
        middle = 0.5 * (a + b)
        if middle in (a, b) or not try_contact(events, after, t, middle):
            break
        leaving = on_wall and a == 0.0 and memory[rate] > 0.0  # phi is still lost in round-off
        if memory[phi] > 0.0 or leaving:
            a = middle
        else:
            b = middle
    if b < MERGE * MERGE * left or not try_contact(events, after, t, b):
        return -1.0
    return b if is_contact(events, which) else -1.0


@compiled_as("float64", "int64", "float64", "float64")
def slope_at(events, which, left, u):
    """The rate of a guard that is no wall, between HERE and THERE (a fraction of left), by its Hermite cubic; 0 for walls."""
    at, memory = events.at, events.memory
    if which < at.walls:
        return 0.0
    slope0, slope1 = left * memory[at.here.rate + which], left * memory[at.there.rate + which]
    c2, c3 = hermite(memory[at.here.phi + which], slope0, memory[at.there.phi + which], slope1)
    return (slope0 + u * (2.0 * c2 + u * 3.0 * c3)) / left


@apart_as("float64", "boolean", "float64", "float64", "int64", "float64")
def step_to_wall(events, after, t, left, which, guess):
    """CollisionTime: the partial step from HERE to CONTACT on the wall `which`; its length, or -1 if it isn't reached.

    First by Newton's method with the length s h as one of the unknowns; if that misses, by bisection, which needs a partial
    step that ends behind the wall. A leg that starts on the wall has s = 0 as another solution, to which Newton's method goes
    from the guess of constant velocities: it starts from the partial step of the guessed length instead.
    """
    at, memory = events.at, events.memory
    h, equations, on_wall = memory[at.h], at.wall_after if after else at.wall, starts_on_wall(events, which)
    place(events, at.here, t)
    choose(events, at.ahead, at.m, which)
    memory[at.dt], memory[at.s], memory[at.slope] = guess, guess / h, slope_at(events, which, left, guess / left)
    call_kernel(equations.guess, memory)
    if on_wall:
        newton(events, at.flow_after if after else at.flow, guess)  # whose unknowns are the first ones
    if newton(events, equations, guess):
        tau = memory[at.x + equations.size - 1] * h
        if (0.01 * guess if on_wall else 0.0) < tau <= left * (1.0 + 1e-10):
            tau = min(tau, left)
            memory[at.dt] = tau
            end_flow(events, after, at.contact)
            observe(events, at.contact, t + tau)
            if memory[at.contact.rate + which] <= 0.0 and is_contact(events, which):
                return tau
    return bisect(events, after, t, left, which)


@inlined
def at_once(events, which, flight):
    """Whether a collision is HERE itself: the flight to it is too short, or is a bounce not higher than rounding errors of phi.

    The height of a parabola is a quarter of speed times flight. `blur` bounds rounding errors; typical ones are a small part of
    it, and a bounce that is still resolved must be taken: what it takes away is missing in the time at which contact begins.
    """
    at, memory = events.at, events.memory
    shortest = MERGE if starts_on_wall(events, which) else MERGE * MERGE
    bounces = which < at.walls and events.tables[at.just_hit + which] != 0
    height = memory[at.here.rate + which] * flight / 4
    return flight <= shortest * memory[at.h] or (bounces and height <= memory[at.blur + which] / BEHIND)


@apart_as("pair", "int64", "float64")
def crossed_before(events, which, tau):
    """The guard farthest below zero at CONTACT, if it was passed before `which`, and where (a fraction of tau); -1 if none."""
    at, memory = events.at, events.memory
    earlier, deepest, where = -1, 0.0, 0.0
    for k in range(at.m):
        depth = memory[at.contact.phi + k] + memory[at.blur + k]
        if k != which and not left_out(events, k) and depth < deepest:
            u = first_root(
                memory[at.here.phi + k], tau * memory[at.here.rate + k], memory[at.contact.phi + k],
                tau * memory[at.contact.rate + k], events.tables[at.just_hit + k] != 0,
            )  # fmt: skip
            if u > 0.0:
                earlier, deepest, where = k, depth, u
    return earlier, where


@apart_as("float64", "boolean", "float64", "float64")
def collision_time(events, after, t, left):
    """The first collision on the way from HERE to THERE, made up to CONTACT; its time from HERE, or -1 if there is none.

    `which` is left at the guard that is zero. Where none is found on a guard that seemed to be, it is marked as passed. Every
    turn of the loop ends it, marks a guard, or goes to one that is passed earlier: there are at most 2 m + 1 of them.
    """
    at = events.at
    which, where = next_candidate(events, left)
    for _ in range(2 * at.m + 1):
        if which < 0:
            return -1.0
        at.which = which
        if at_once(events, which, where * left):
            copy(events, at.here, at.contact)
            observe(events, at.contact, t)
            return 0.0
        tau = step_to_wall(events, after, t, left, which, where * left)
        if tau < 0.0:
            events.tables[at.passed + which] = 1
            which, where = next_candidate(events, left)
            continue
        earlier, fraction = crossed_before(events, which, tau)
        if earlier < 0:
            return tau
        which, where = earlier, fraction * tau / left
    events.tables[at.passed + which] = 1
    return -1.0
