"""Whether a wall lies on the way of a step: before the step is made, behind it, or inside of it.

Nothing here knows a model (`_event_memory`).
"""

from __future__ import annotations

from dalembert.contact._cubic import hermite, lowest
from dalembert.contact._dense_newton import apart_as, compiled_as
from dalembert.engine._kernel_call import call_kernel


@compiled_as("void", "float64")
def note_bend(events, share):
    """How much phi_dot changes in a full step: `share` times as much as between HERE and THERE."""
    at, memory = events.at, events.memory
    for k in range(at.walls):
        memory[at.bend + k] = share * (memory[at.there.rate + k] - memory[at.here.rate + k])


@compiled_as("boolean", "float64")
def expects_collision(events, h):
    """Whether some phi falls below zero within a full step if phi_ddot goes on as it was; THERE gets phi and phi_dot so.

    Such a collision can be looked for without the full step, whose end would be behind the wall.
    """
    at, memory, found = events.at, events.memory, False
    here, there = at.here, at.there
    for k in range(at.walls):
        slope, bend = memory[here.rate + k], memory[at.bend + k]
        memory[there.phi + k], memory[there.rate + k] = memory[here.phi + k] + h * (slope + 0.5 * bend), slope + bend
        memory[at.dip + k] = 0.0
        found = found or memory[there.phi + k] < 0.0
    return found and at.full_is_partial != 0 and at.m == at.walls


@compiled_as("float64", "int64", "point", "float64")
def tangents_meet(events, k, point, dt):
    """Where between HERE and a point (a fraction of dt), both in front of a wall, tangents of phi meet below zero; else -1."""
    here, memory = events.at.here, events.memory
    phi0, slope0 = memory[here.phi + k], dt * memory[here.rate + k]
    phi1, slope1 = memory[point.phi + k], dt * memory[point.rate + k]
    if not (slope0 < 0.0 < slope1 and phi0 > 0.0 and phi1 > 0.0):
        return -1.0
    meet = (phi0 - phi1 + slope1) / (slope1 - slope0)
    return meet if 0.0 < meet < 1.0 and phi0 + slope0 * meet < 0.0 else -1.0


@apart_as("boolean", "float64", "float64")
def observe_between(events, t, dt):
    """Whether some phi falls below zero between HERE and THERE, by its Hermite cubic or on the chord between them.

    On the chord it is looked at where the tangents of phi at both ends meet, and only if they meet below zero: if phi is convex
    along the way it stays above them. `dip` is that place, as a fraction of dt, if phi < 0 there, or else zero.
    """
    at, memory = events.at, events.memory
    here, there, found = at.here, at.there, False
    for k in range(at.m):
        memory[at.dip + k] = 0.0
        meet = tangents_meet(events, k, there, dt)
        if meet < 0.0:
            continue
        phi0, slope0 = memory[here.phi + k], dt * memory[here.rate + k]
        phi1, slope1 = memory[there.phi + k], dt * memory[there.rate + k]
        u = lowest(phi0, slope0, phi1, slope1)
        c2, c3 = hermite(phi0, slope0, phi1, slope1)
        if phi0 + u * (slope0 + u * (c2 + u * c3)) <= 0.0:
            found = True
            continue
        memory[at.t], at.looked, at.measured = t + meet * dt, 0, 0
        for i in range(2 * at.n):
            memory[at.state + i] = memory[here.state + i] + meet * (memory[there.state + i] - memory[here.state + i])
        call_kernel(at.call_look, memory)
        if memory[at.phi + k] < 0.0:
            memory[at.dip + k], memory[at.phi_dip + k] = meet, memory[at.phi + k]
            found = True
    return found


@compiled_as("boolean", "float64", "float64")
def may_collide(events, t, dt):
    """Whether phi > 0 does not hold at the end of a step (31), or does not seem to hold inside of it."""
    found = observe_between(events, t, dt)
    for k in range(events.at.m):
        found = found or not events.memory[events.at.there.phi + k] > 0.0
    return found
