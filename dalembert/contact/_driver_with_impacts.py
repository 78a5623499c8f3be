"""The step loop of collision integrators: full steps as in `_driver.advance`, each looked at for collisions."""

from __future__ import annotations

from dalembert.contact import _plan as at
from dalembert.contact._collision_times import may_collide, observe, place
from dalembert.contact._resolution import behind_a_wall, energy_of, resolve
from dalembert.engine._compiled import compiled
from dalembert.engine._driver import DONE, GUESS_READY, UNSOLVED, add_increment, make_step
from dalembert.engine._iteration import HISTORY_SLOT
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._layout import Substep

STOPPED, LOG_FULL = 2, 3
ROOM = 4096
"""Rows that the log must have free before a step."""


@compiled()
def advance_with_impacts(steps, events, store, last_step, save_every, t0, h):
    """Run steps until `last_step`; Algorithm 1.

    UNSOLVED stops before a full step that could not be made, STOPPED before one whose impacts could not be resolved, LOG_FULL
    before one whose impacts might not fit into the log. Full steps have no substeps.
    """
    kernels, layouts, index, memory, all_counts, numbers, known, guess, work, path, _, _ = steps
    sub = Substep(kernels[0], layouts[0], index, memory, all_counts[0], numbers[0], known[0], guess, work, path)
    plan, contact, log, grid = events
    layout, counts = sub.layout, sub.counts
    n_state, state, delta = layout.n_state, layout.state, layout.delta
    until_saved = save_every - counts.steps_done % save_every
    while counts.steps_done < last_step:
        step = counts.steps_done
        if len(log) - plan[at.LOGGED] < ROOM:
            return LOG_FULL
        memory[0] = t0 + step * h
        end = t0 + (step + 1) * h
        if not make_step(sub):
            return UNSOLVED
        for k in range(n_state):
            contact[plan[at.HERE] + k] = memory[state + k]
            contact[plan[at.THERE] + k] = memory[state + k] + (memory[delta + k] + memory[state + n_state + k])
        observe(plan, contact, at.THERE, end, at.PHI_THERE, at.RATE_THERE)
        if not may_collide(plan, contact, memory[0], h):
            add_increment(memory, state, delta, state, n_state)
            for k in range(plan[at.M]):
                contact[plan[at.PHI_HERE] + k] = contact[plan[at.PHI_THERE] + k]
                contact[plan[at.RATE_HERE] + k] = contact[plan[at.RATE_THERE] + k]
                plan[plan[at.JUST_HIT] + k] = 0
        else:
            plan[at.STATUS] = resolve(plan, contact, log, memory[0], h, grid)
            if plan[at.STATUS] != at.RESOLVED:
                return STOPPED
            observe(plan, contact, at.HERE, end, at.PHI_HERE, at.RATE_HERE)
            if grid == 0.0 and behind_a_wall(plan, contact, at.PHI_HERE, at.RATE_HERE):
                plan[at.STATUS] = at.NO_TIME
                return STOPPED
            energy_of(plan, contact, at.HERE, end)
            for k in range(plan[at.M]):
                if contact[plan[at.PHI_HERE] + k] > contact[plan[at.BLUR] + k]:
                    plan[plan[at.JUST_HIT] + k] = 0
            place(plan, contact, at.HERE, end)
            call_kernel(plan[at.FULL_GUESS], contact)
            for k in range(n_state):
                memory[state + k], memory[state + n_state + k] = contact[plan[at.HERE] + k], 0.0
            for k in range(layout.n_x):
                memory[layout.x + k] = contact[plan[at.X] + k]
            counts.mode, counts.age, memory[HISTORY_SLOT] = GUESS_READY, -1, 0.0
        counts.steps_done = step + 1
        until_saved -= 1
        if until_saved == 0:
            until_saved = save_every
            for k in range(n_state):
                store[counts.saved, k] = memory[state + k]
            counts.saved += 1
    return DONE
