"""The step loop of collision integrators: full steps as in `_driver.advance`, each looked at for collisions."""

from __future__ import annotations

from dalembert.contact._collision_times import behind_a_wall
from dalembert.contact._dense_newton import apart_as
from dalembert.contact._event_memory import NO_TIME, NOT_MET, RESOLVED
from dalembert.contact._partial_steps import observe, place
from dalembert.contact._resets import APART, energy_of
from dalembert.contact._resolution import resolve
from dalembert.contact._walls_ahead import expects_collision, may_collide, note_bend
from dalembert.engine._compiled import compiled
from dalembert.engine._driver import DONE, GUESS_READY, UNSOLVED, add_increment, make_step
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._layout import Substep

STOPPED, LOG_FULL = 2, 3
ROOM = 4096
"""Rows that the log must have free before a step."""


@apart_as("void", "float64", "float64", "float64", "float64", "boolean")
def with_impacts(events, t, h, end, grid, expected):
    """A step from HERE that may collide, and the guess of the full step that follows, if its status is RESOLVED."""
    at, memory = events.at, events.memory
    at.status = resolve(events, t, h, grid, expected)
    if at.status != RESOLVED:
        return
    observe(events, at.here, end)
    if grid == 0.0 and behind_a_wall(events, at.here, False):
        at.status = NO_TIME
        return
    energy_of(events, at.here, end)
    for k in range(at.m):
        if memory[at.here.phi + k] > memory[at.blur + k]:
            events.tables[at.just_hit + k] = APART
    place(events, at.here, end)
    call_kernel(at.call_full_guess, memory)


@compiled()
def advance_with_impacts(steps, events, grid, store, last_step, save_every, t0, h):
    """Run steps until `last_step`; Algorithm 1.

    A collision that is expected is looked for before the full step is made. UNSOLVED stops before a full step that could not be
    made, STOPPED before one whose impacts could not be resolved, LOG_FULL before one whose impacts might not fit into the log.
    Full steps have no substeps.
    """
    kernels, layouts, index, memory, all_counts, numbers, known, guess, work, path, _, _ = steps
    followed = path[:, : path.shape[1]]  # of the type that `_driver.advance` has: nothing of a step is compiled a second time
    sub = Substep(kernels[0], layouts[0], index, memory, all_counts[0], numbers[0], known[0], guess, work, followed)
    layout, counts, at, contact = sub.layout, sub.counts, events.at, events.memory
    n_state, state, delta, here, there = layout.n_state, layout.state, layout.delta, at.here, at.there
    until_saved = save_every - counts.steps_done % save_every
    while counts.steps_done < last_step:
        step = counts.steps_done
        if len(events.log) - at.logged < ROOM:
            return LOG_FULL
        memory[0] = t0 + step * h
        end = t0 + (step + 1) * h
        for k in range(n_state):
            contact[here.state + k] = memory[state + k]
        at.status = NOT_MET
        if expects_collision(events, h):
            with_impacts(events, memory[0], h, end, grid, True)
        if at.status == NOT_MET:
            if not make_step(sub):
                return UNSOLVED
            for k in range(n_state):
                contact[there.state + k] = memory[state + k] + (memory[delta + k] + memory[state + n_state + k])
            observe(events, there, end)
            if may_collide(events, memory[0], h):
                with_impacts(events, memory[0], h, end, grid, False)
        if at.status == NOT_MET:
            note_bend(events, 1.0)
            add_increment(memory, state, delta, state, n_state)
            for k in range(at.m):
                contact[here.phi + k], contact[here.rate + k] = contact[there.phi + k], contact[there.rate + k]
                events.tables[at.just_hit + k] = APART
        elif at.status == RESOLVED:
            for k in range(n_state):
                memory[state + k], memory[state + n_state + k] = contact[here.state + k], 0.0
            for k in range(layout.n_x):
                memory[layout.x + k] = contact[at.x + k]
            counts.mode, counts.age = GUESS_READY, -1
        else:
            return STOPPED
        counts.steps_done = step + 1
        until_saved -= 1
        if until_saved == 0:
            until_saved = save_every
            for k in range(n_state):
                store[counts.saved, k] = memory[state + k]
            counts.saved += 1
    return DONE
