"""A step that meets walls: lines 5 to 17 of Algorithm 1 of Pekarek and Murphey (2014), for every integrator and model.

    while t < t_{k+1}:   tau = CollisionTime;   (q, p) = Phi^partial_tau;   (q, p) = R^reset;   and Phi^partial to t_{k+1}

Deviations from the print:
    - Walls that are crossed between the ends of a step, which (31) misses, are looked for (`_walls_ahead.observe_between`).
    - Walls that are hit within MERGE h are one impact (`_resets.collide`), and an impact so near to the end of the step is
      moved there (`merge_with_end`).
    - Where impacts accumulate, on which the loop of the print would not end, the wall becomes a constraint (`_sustained`).
    - A reset that has no solution together with the partial step after it (VCI) is replaced by that of CVA.

Like the driver, it knows no model (`_event_memory`). HERE is where the motion stands, THERE the end of the step without a
further collision, CONTACT the next collision.
"""

from __future__ import annotations

import numpy as np

from dalembert.contact._collision_times import MERGE, behind_a_wall, collision_time, starts_on_wall, try_contact, undefined
from dalembert.contact._dense_newton import apart_as
from dalembert.contact._event_memory import (
    ACCUMULATED,
    GUARDED,
    LOG_WHICH,
    NO_FLOW,
    NO_GRADIENT,
    NO_LEG,
    NO_RESET,
    NO_TIME,
    NOT_MET,
    PULLS,
    RESOLVED,
    TO_END,
    TO_WALL,
    TOO_MANY,
    UNDEFINED,
)
from dalembert.contact._partial_steps import choose, copy, flow, observe, place
from dalembert.contact._resets import APART, TOUCHING, begin_entry, collide, end_entry, energy_of, reset, whole_motion
from dalembert.contact._walls_ahead import note_bend, observe_between, tangents_meet
from dalembert.engine._dense_solve import largest_of
from dalembert.engine._iteration import inlined
from dalembert.engine._kernel_call import call_kernel

MOST_IN_A_STEP = 4000
GONE = 1e-6
"""A gradient of phi that has fallen by this factor since the step began counts as vanished."""


@apart_as("void", "float64", "float64")
def begin_step(events, t, h):
    """How round-off blurs phi HERE, how far the step may lead, and no guard passed yet.

    A step starts behind a wall by round-off only, be it that of longer steps or other places that led to it.
    """
    at, memory = events.at, events.memory
    for k in range(at.m):
        behind = -memory[at.here.phi + k] if k < at.walls else 0.0
        memory[at.blur + k], events.tables[at.passed + k] = max(behind, 0.0), 0
    energy_of(events, at.here, t)
    speed, gained = whole_motion(events, t), 0.0
    for k in range(at.n):
        gained += (h * memory[at.forces + k]) ** 2 / max(memory[at.masses + k], 1e-300)
    memory[at.push], memory[at.reach] = h * largest_of(memory, at.forces, at.n), h * (speed + np.sqrt(gained))
    for k in range(at.walls):
        memory[at.strength_before + k] = memory[at.strength + k]


@apart_as("boolean", "boolean", "float64", "float64")
def rest_of_step(events, after, t, left):
    """The partial step from HERE to the end of the step, THERE, with phi and phi_dot at both ends; no impact may pull."""
    at, memory = events.at, events.memory
    if not flow(events, after, t, left, at.there):
        return False
    if after:  # phi_dot right after the impact
        call_kernel(at.call_outcome_after, memory)
        if memory[at.impulse] < 0.0:
            return False
        copy(events, at.here, at.contact)
        for k in range(at.n):
            memory[at.contact.state + at.n + k] = memory[at.after + k]
        observe(events, at.contact, t)
        for k in range(at.m):
            memory[at.here.phi + k], memory[at.here.rate + k] = memory[at.contact.phi + k], memory[at.contact.rate + k]
    observe(events, at.there, t + left)
    observe_between(events, t, left)
    return True


@apart_as("boolean", "boolean", "float64", "float64", "float64")
def may_be_taken(events, after, t, left, tau):
    """Whether the leg to CONTACT, or without a collision to THERE, crosses no wall and starts with no impact that pulls.

    Where the reset is coupled with the leg, a leg to a wall may have another p+ than one to the end of the step.
    """
    at, memory = events.at, events.memory
    if after and tau > 0.0:
        place(events, at.here, t)
        call_kernel(at.call_outcome_after, memory)
        if not memory[at.impulse] >= 0.0:
            return False
    if tau < 0.0:
        place(events, at.there, t + left)
        return not (after and behind_a_wall(events, at.there, False))
    place(events, at.contact, t + tau)
    return not behind_a_wall(events, at.contact, True)


@apart_as("pair", "boolean", "boolean", "float64", "float64", "float64")
def leg(events, after, first, t, left, grid):
    """Phi^partial from HERE to the next collision, CONTACT, or to the end of the step, THERE; whereto, and its length.

    The full step is the first leg to the end. NO_LEG, or why the run cannot go on, where there is none.
    """
    at, memory = events.at, events.memory
    if not (first or rest_of_step(events, after, t, left)):
        return NO_LEG if after else NO_FLOW, 0.0
    if undefined(events, at.there):
        return UNDEFINED, 0.0
    tau = collision_time(events, after, t, left)
    if tau >= 0.0 and undefined(events, at.contact):
        return UNDEFINED, 0.0
    if grid == 0.0 and not may_be_taken(events, after, t, left, tau):
        return NO_LEG if after else NO_TIME, 0.0
    if tau < 0.0:
        return TO_END, left
    if grid > 0.0 and tau > 0.0:  # a collision time in the middle of one of so many intervals
        tau = left * (np.floor(tau / left * grid) + 0.5) / grid
        if not try_contact(events, after, t, tau):
            return NO_FLOW, 0.0
    if at.coupled and tau > 0.0:  # memory still holds the unknowns of the leg
        place(events, at.here, t)
        memory[at.dt] = tau
        call_kernel(at.call_energy, memory)
    return TO_WALL, tau


@apart_as("void", "float64")
def end_coupled_reset(events, t):
    """The impact HERE, from the unknowns of the partial step after it."""
    at, memory = events.at, events.memory
    energy = memory[at.energy_before]
    place(events, at.here, t)
    call_kernel(at.call_outcome_after, memory)
    end_entry(events, at.logged - 1, t)
    memory[at.energy_before] = energy


@apart_as("int64", "float64")
def uncoupled_reset(events, t):
    """The last impact of the log, HERE, by the reset that does not solve for the partial step after it."""
    at = events.at
    status = reset(events, at.logged - 1, t, int(events.log[at.logged - 1, LOG_WHICH]))
    observe(events, at.here, t)
    for k in range(at.m):
        events.tables[at.passed + k] = 0
    return NO_RESET if status == PULLS else status


@apart_as("int64", "boolean", "boolean", "float64", "float64")
def finish(events, after, first, t, left):
    """End a step without a (further) collision. The first partial step takes the place of the full one, whose end is THERE."""
    at = events.at
    solve_again = not at.full_is_partial if first else after
    if solve_again and not flow(events, after, t, left, at.there):
        return NO_FLOW
    if after:
        end_coupled_reset(events, t)
    note_bend(events, events.memory[at.h] / left)
    copy(events, at.there, at.here)
    return RESOLVED


@apart_as("int64", "boolean", "float64", "float64")
def merge_with_end(events, after, t, left):
    """End a step right after an impact, along the tangent: the error, of second order in `left`, is lost in round-off."""
    at, memory = events.at, events.memory
    status = uncoupled_reset(events, t) if after else RESOLVED
    if status == RESOLVED:
        place(events, at.here, t)
        call_kernel(at.call_tangent, memory)
        for k in range(2 * at.n):
            memory[at.here.state + k] += left * memory[at.tangent + k]
    return status


@inlined
def mark_touching(events, which, span):
    """Mark all walls that are hit together with `which` HERE; how many there are."""
    at, memory, count = events.at, events.memory, 0
    for k in range(at.m):
        events.tables[at.passed + k] = 0
    for k in range(at.walls):
        near = max(memory[at.blur + k], -memory[at.here.rate + k] * span)
        touches = k == which or abs(memory[at.here.phi + k]) <= near
        events.tables[at.just_hit + k] = TOUCHING if touches else APART
        count += touches
    return count


@inlined
def is_elastic(events, t, which):
    """Whether the impact on one wall HERE keeps the energy."""
    at = events.at
    place(events, at.here, t)
    choose(events, at.hit, at.walls, which)
    call_kernel(at.call_outcome, events.memory)
    return events.memory[at.fraction] == 1.0


@apart_as("int64", "float64", "int64", "float64", "float64")
def hit(events, t, which, tau, h):
    """The impact HERE on a wall after a leg of length tau, and on those that touch besides.

    TO_END says that its reset belongs to the partial step that follows.
    """
    at, memory = events.at, events.memory
    energy = energy_of(events, at.here, t)
    if not memory[at.strength + which] > GONE * GONE * memory[at.strength_before + which]:
        return NO_GRADIENT
    touching = mark_touching(events, which, MERGE * h)
    if memory[at.here.rate + which] >= 0.0:  # it only touches
        return RESOLVED
    if not (at.coupled and touching == 1 and is_elastic(events, t, which)):
        return collide(events, t)
    if at.logged >= len(events.log):
        return TOO_MANY
    if tau == 0.0:  # there is no partial step before the impact
        memory[at.energy_before] = energy
    begin_entry(events, at.logged, t, which)
    at.logged += 1
    return TO_END


@inlined
def is_certain(events, tau, h):
    """Whether a collision that was found without a full step is inside of it, after a leg from a free start past no wall."""
    at = events.at
    if tau > (1.0 - MERGE) * h:
        return False
    for k in range(at.walls):
        if starts_on_wall(events, k) or (k != at.which and tangents_meet(events, k, at.contact, tau) >= 0.0):
            return False
    return True


@apart_as("int64", "float64", "float64", "float64", "boolean")
def resolve(events, t0, h, grid, expected):
    """One step of size h from HERE, if THERE, the end of a full step, lies behind a wall or a wall lies between.

    A collision may be `expected` before there is a full step, whose end would lie behind the wall: THERE is a guess then, and
    NOT_MET says that nothing was found for certain.

    Returns RESOLVED with the new state HERE, or what was in the way. Coupled integrators (VCI) solve for the reset together
    with the partial step `after` it. A positive `grid` rounds collision times to the middle of one of so many intervals.

    It ends. A turn of the loop makes a leg. A leg to the end ends the step; so does one of length at most MERGE h back to a
    wall that was just hit, on which impacts accumulate: the wall then becomes a constraint (`_sustained`). All others move time
    or change the walls that were just hit; where no leg is found after an impact, its reset is replaced, once. And turns are
    counted: after MOST_IN_A_STEP of them the run stops.
    """
    at, elapsed, after, first = events.at, 0.0, False, True
    begin_step(events, t0, h)
    for _ in range(MOST_IN_A_STEP):
        t, left = t0 + elapsed, h - elapsed
        if left <= MERGE * h:
            return merge_with_end(events, after, t, left)
        status, tau = leg(events, after, first, t, left, grid)
        if expected and first and not (status == TO_WALL and is_certain(events, tau, h)):
            return NOT_MET
        if status == NO_LEG:  # no p+ has the discrete energy that is asked for, as may happen in slow impacts
            at.uncoupled += 1
            status, after = uncoupled_reset(events, t), False
            if status == RESOLVED:
                continue
        if status == TO_END:
            return finish(events, after, first, t, left)
        if status != TO_WALL:
            return status
        if after:
            end_coupled_reset(events, t)
        which, guarded = at.which, at.which >= at.walls or at.stops_at_hit != 0
        if events.tables[at.just_hit + which] and tau <= MERGE * h and not guarded:
            return ACCUMULATED
        elapsed, first = elapsed + tau, False
        copy(events, at.contact, at.here)
        if guarded:
            place(events, at.here, t0 + elapsed)
            return GUARDED
        status = hit(events, t0 + elapsed, which, tau, h)
        after = status == TO_END
        if not (after or status == RESOLVED):
            return status
    return TOO_MANY
