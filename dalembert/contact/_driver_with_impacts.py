"""The step loop of collision integrators: full steps as in `_driver.advance`, each looked at for collisions."""

from __future__ import annotations

from dalembert.contact._collision_times import look, may_collide, place
from dalembert.contact._plan import (
    BLUR,
    FULL_GUESS,
    HERE,
    JUST_HIT,
    LOGGED,
    NO_TIME,
    PHI_HERE,
    PHI_THERE,
    RATE_HERE,
    RATE_THERE,
    RESOLVED,
    STATUS,
    THERE,
    M,
    X,
)
from dalembert.contact._resolution import behind_a_wall, energy_of, resolve
from dalembert.engine._compiled import compiled
from dalembert.engine._driver import DONE, GUESS_READY, UNSOLVED, add_increment, make_step
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._layout import AGE, DELTA, MODE, N_STATE, N_X, SAVED, STATE, STEPS_DONE
from dalembert.engine._layout import X as FULL_X

STOPPED, LOG_FULL = 2, 3
ROOM = 4096
"""Rows that the log must have free before a step."""


@compiled()
def advance_with_impacts(
    kernels, layout, index, memory, counts, numbers, known, guess, work, store, last_step, save_every, t0, h, plan, contact,
    log, grid,
):  # fmt: skip
    """Run steps until `last_step`; Algorithm 1.

    UNSOLVED stops before a full step that could not be made, STOPPED before one whose impacts could not be resolved, LOG_FULL
    before one whose impacts might not fit into the log. `plan` and its memory `contact` are those of events.
    """
    n_state, state, delta = layout[N_STATE], layout[STATE], layout[DELTA]
    until_saved = save_every - counts[STEPS_DONE] % save_every
    while counts[STEPS_DONE] < last_step:
        step = counts[STEPS_DONE]
        if len(log) - plan[LOGGED] < ROOM:
            return LOG_FULL
        memory[0] = t0 + step * h
        end = t0 + (step + 1) * h
        if not make_step(kernels, layout, index, memory, counts, numbers, known, guess, work):
            return UNSOLVED
        for k in range(n_state):
            contact[plan[HERE] + k] = memory[state + k]
            contact[plan[THERE] + k] = memory[state + k] + (memory[delta + k] + memory[state + n_state + k])
        look(plan, contact, THERE, end, PHI_THERE, RATE_THERE)
        if not may_collide(plan, contact, memory[0], h):
            add_increment(memory, state, delta, state, n_state)
            for k in range(plan[M]):
                contact[plan[PHI_HERE] + k] = contact[plan[PHI_THERE] + k]
                contact[plan[RATE_HERE] + k] = contact[plan[RATE_THERE] + k]
                plan[plan[JUST_HIT] + k] = 0
        else:
            plan[STATUS] = resolve(plan, contact, log, memory[0], h, grid)
            if plan[STATUS] != RESOLVED:
                return STOPPED
            look(plan, contact, HERE, end, PHI_HERE, RATE_HERE)
            if grid == 0.0 and behind_a_wall(plan, contact, PHI_HERE, RATE_HERE):
                plan[STATUS] = NO_TIME
                return STOPPED
            energy_of(plan, contact, HERE, end)
            for k in range(plan[M]):
                if contact[plan[PHI_HERE] + k] > contact[plan[BLUR] + k]:
                    plan[plan[JUST_HIT] + k] = 0
            place(plan, contact, HERE, end)
            call_kernel(plan[FULL_GUESS], contact)
            for k in range(n_state):
                memory[state + k], memory[state + n_state + k] = contact[plan[HERE] + k], 0.0
            for k in range(layout[N_X]):
                memory[layout[FULL_X] + k] = contact[plan[X] + k]
            counts[MODE], counts[AGE] = GUESS_READY, -1
        counts[STEPS_DONE] = step + 1
        until_saved -= 1
        if until_saved == 0:
            until_saved = save_every
            for k in range(n_state):
                store[counts[SAVED], k] = memory[state + k]
            counts[SAVED] += 1
    return DONE
