"""The step loop of collision integrators: full steps as in `_driver.advance`, each looked at for collisions."""

from __future__ import annotations

from dalembert.engine._dense_newton import M, N, X
from dalembert.engine._driver import DONE, GUESS_READY, UNSOLVED, add_increment, compiled, make_step
from dalembert.engine._events import (
    BLUR,
    FULL_GUESS,
    HERE,
    JUST_HIT,
    PHI_HERE,
    PHI_THERE,
    RATE_HERE,
    RATE_THERE,
    RESOLVED,
    THERE,
    energy_of,
    look,
    may_collide,
    place,
    resolve,
)
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._layout import AGE, DELTA, MODE, N_STATE, N_X, SAVED, STATE, STEPS_DONE
from dalembert.engine._layout import X as FULL_X

STOPPED, LOG_FULL = 2, 3
# `tally`: impacts so far, the status of the last resolution, whether resets are coupled, whether Phi^partial = Phi^full
LOGGED, STATUS, COUPLED, FULL_IS_PARTIAL = range(4)
ROOM = 4096
"""Rows that the log must have free before a step."""


@compiled
def advance_with_impacts(
    kernels, layout, index, memory, counts, numbers, known, guess, work, store, last_step, save_every, t0, h,
    events, solves, contact, slots, points, marks, log, tally, pivots, strengths, grid,
):  # fmt: skip
    """Run steps until `last_step`; Algorithm 1.

    UNSOLVED stops before a full step that could not be made, STOPPED before one whose impacts could not be resolved, LOG_FULL
    before one whose impacts might not fit into the log. `contact` is the memory of the kernels `events`.
    """
    n_state, state, delta, m = layout[N_STATE], layout[STATE], layout[DELTA], slots[M]
    until_saved = save_every - counts[STEPS_DONE] % save_every
    while counts[STEPS_DONE] < last_step:
        step = counts[STEPS_DONE]
        if len(log) - tally[LOGGED] < ROOM:
            return LOG_FULL
        memory[0] = t0 + step * h
        end = t0 + (step + 1) * h
        if not make_step(kernels, layout, index, memory, counts, numbers, known, guess, work):
            return UNSOLVED
        for k in range(n_state):
            points[THERE, k] = memory[state + k] + (memory[delta + k] + memory[state + n_state + k])
        look(events, contact, slots, points, THERE, end, PHI_THERE, RATE_THERE)
        if not may_collide(points, m, h):
            add_increment(memory, state, delta, state, n_state)
            for k in range(m):
                points[PHI_HERE, k], points[RATE_HERE, k] = points[PHI_THERE, k], points[RATE_THERE, k]
                marks[JUST_HIT, k] = 0
        else:
            for k in range(n_state):
                points[HERE, k] = memory[state + k]
            tally[LOGGED], tally[STATUS] = resolve(
                events, solves, contact, slots, points, marks, log, tally[LOGGED], pivots, strengths, memory[0], h,
                tally[COUPLED] != 0, tally[FULL_IS_PARTIAL] != 0, grid,
            )  # fmt: skip
            if tally[STATUS] != RESOLVED:
                return STOPPED
            energy_of(events, contact, slots, points, HERE, end)
            look(events, contact, slots, points, HERE, end, PHI_HERE, RATE_HERE)
            for k in range(m):
                marks[JUST_HIT, k] = marks[JUST_HIT, k] and points[PHI_HERE, k] <= points[BLUR, k]
            place(contact, slots, points, HERE, end)
            call_kernel(events[FULL_GUESS], contact)
            for k in range(n_state):
                memory[state + k], memory[state + n_state + k] = points[HERE, k], 0.0
            for k in range(layout[N_X]):
                memory[layout[FULL_X] + k] = contact[slots[X] + k]
            counts[MODE], counts[AGE] = GUESS_READY, -1
        counts[STEPS_DONE] = step + 1
        until_saved -= 1
        if until_saved == 0:
            until_saved = save_every
            for k in range(n_state):
                store[counts[SAVED], k] = memory[state + k]
            counts[SAVED] += 1
    return DONE
