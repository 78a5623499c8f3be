"""Steps of many trajectories in compiled code, without Python's lock: one after the other, or side by side in vector lanes.

A unit is what shares memory and counters: one trajectory, or as many as there are lanes. In a unit's memory every slot holds one
number a lane. The lanes of a unit take their steps together: they share factors, and an iteration ends when the last of them has
converged; those that were ready before are masked, so that they stay as they are. A lane whose step fails leaves the unit.
"""

from __future__ import annotations

import numpy as np

from dalembert.compiler._lanes import CONTROL
from dalembert.engine._driver import (
    DONE,
    GUESS_READY,
    MAX_ITERATIONS,
    MAX_REFRESHES,
    PREDICT,
    UNSOLVED,
    add_increment,
    at,
    compiled,
    inlined,
    keep_factors,
    make_step,
)
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._layout import (
    AGE,
    DELTA,
    FACTORIZATIONS,
    ITERATIONS,
    MODE,
    N_STATE,
    N_X,
    POLISH,
    SAVED,
    STAGE_MULTIPLIERS,
    STATE,
    STEPS_DONE,
    SUBSTEP,
    X,
)

FULL, RUNNING = 2, 3
SIZE_SLOT = 2
MASK, ALIVE, ATTENTION, WRONG = (CONTROL.index(name) for name in ("mask", "alive", "attention", "wrong"))

# the plan of a watch: slots of its memory
WATCH_STATE, WATCH_FLAG, WATCH_EVENT, WATCH_EVENT_SIZE = range(4)


@inlined
def watch_state(watch, plan, watched, memory, state, n_state, t, lanes, events, n_events, alive):
    """Show the state to the watch; True if a lane's room for events is used up."""
    for lane in range(lanes):
        watched[at(lane)] = t[at(lane)]
    first = plan[WATCH_STATE] * lanes
    for k in range(n_state * lanes):
        watched[at(first + k)] = memory[at(state + k)]
    call_kernel(watch, watched)
    full = False
    if plan[WATCH_EVENT_SIZE]:
        for lane in range(lanes):
            if watched[at(plan[WATCH_FLAG] * lanes + lane)] != 0.0 and alive[at(lane)] != 0.0:
                row = n_events[lane]
                for k in range(plan[WATCH_EVENT_SIZE]):
                    events[lane, row, k] = watched[(plan[WATCH_EVENT] + k) * lanes + lane]
                n_events[lane] = row + 1
                full = full or row + 1 == events.shape[1]
    return full


@inlined
def save_lanes(memory, layouts, counts, starts, store, targets, alive, lanes):
    """Store the state of every lane, and the stage multipliers of the last substep."""
    last = len(layouts) - 1
    state, n_state = starts[0, 0] + layouts[0, STATE] * lanes, layouts[0, N_STATE]
    multipliers = starts[0, last] + layouts[last, STAGE_MULTIPLIERS] * lanes
    row = counts[0, SAVED]
    for lane in range(lanes):
        if alive[lane] != 0.0:
            target = targets[lane]
            for k in range(n_state):
                store[target, row, k] = memory[at(state + k * lanes + lane)]
            for k in range(store.shape[2] - n_state):
                store[target, row, n_state + k] = memory[at(multipliers + k * lanes + lane)]
    counts[0, SAVED] = row + 1


@inlined
def factorize_lanes(kernels, memory, counts):
    """Renew the factors of all lanes."""
    call_kernel(kernels[2], memory)
    counts[FACTORIZATIONS] += 1
    counts[AGE] = 0


@inlined
def any_lane(bits, first, lanes):
    """Whether a number is not zero in one of four or eight lanes."""
    some = bits[at(first)] | bits[at(first + 1)] | bits[at(first + 2)] | bits[at(first + 3)]
    if lanes == 8:
        some |= bits[at(first + 4)] | bits[at(first + 5)] | bits[at(first + 6)] | bits[at(first + 7)]
    return some != 0


@inlined
def solve_lanes(kernels, memory, bits, counts, polish, lanes, control):
    """`solve` of the driver, for all lanes; the number of iterations, or -1: then the lanes that are not masked failed."""
    refreshed, mask, attention = 0, control + MASK * lanes, control + ATTENTION * lanes
    for iteration in range(1, MAX_ITERATIONS + 1):
        call_kernel(kernels[3], memory)
        counts[ITERATIONS] += 1
        if not any_lane(bits, mask, lanes):
            for _ in range(polish):
                for lane in range(lanes):
                    memory[at(mask + lane)] = memory[at(control + ALIVE * lanes + lane)]
                call_kernel(kernels[3], memory)
            return iteration
        if any_lane(bits, attention, lanes):
            for lane in range(lanes):
                if memory[at(attention + lane)] != 0.0 and not np.isfinite(memory[at(SIZE_SLOT * lanes + lane)]):
                    return -1
            if iteration == 1:
                call_kernel(kernels[1], memory)
            elif refreshed == MAX_REFRESHES:
                return -1
            else:
                factorize_lanes(kernels, memory, counts)
                refreshed += 1
    return -1


@inlined
def make_step_lanes(kernels, layout, memory, bits, counts, numbers, known, guess, failed, lanes, control):
    """`make_step` of the driver, for all lanes; False if one failed: `failed` says which, and the guesses are in memory."""
    x, n_x = layout[X] * lanes, layout[N_X] * lanes
    call_kernel(kernels[0 if counts[MODE] == PREDICT else 1], memory)
    for k in range(n_x):
        guess[at(k)] = memory[at(x + k)]
    solved = True
    if n_x:
        reused, polish = counts[AGE] >= 0, layout[POLISH]
        if not reused:
            factorize_lanes(kernels, memory, counts)
        iterations = solve_lanes(kernels, memory, bits, counts, polish, lanes, control)
        if iterations < 0 and reused:
            for k in range(n_x):
                memory[at(x + k)] = guess[at(k)]
            call_kernel(kernels[1], memory)
            factorize_lanes(kernels, memory, counts)
            iterations = solve_lanes(kernels, memory, bits, counts, polish, lanes, control)
        solved = iterations >= 0
        if solved and not keep_factors(iterations, counts, numbers, known):
            counts[AGE] = -1
    call_kernel(kernels[4], memory)
    wrong = control + WRONG * lanes
    if solved and not any_lane(bits, wrong, lanes):
        counts[MODE] = PREDICT
        return True
    for lane in range(lanes):
        unsolved = 0.0 if solved else memory[at(control + MASK * lanes + lane)]
        failed[lane] = max(unsolved, memory[at(wrong + lane)])
    for k in range(n_x):
        memory[at(x + k)] = guess[at(k)]
    counts[AGE] = -1
    counts[MODE] = GUESS_READY
    return False


@compiled
def advance_unit(
    kernels, layouts, index, memory, counts, numbers, known, guess, work, starts, offsets, store, targets, last_step, save_every,
    t0, h, alive, lanes, controls, bits, failed, now, watch, plan, watched, events, n_events,
):  # fmt: skip
    """`advance` of the driver for one unit, and the watch."""
    n_sub = len(offsets)
    until_saved = save_every - counts[0, STEPS_DONE] % save_every
    while counts[0, STEPS_DONE] < last_step:
        step = counts[0, STEPS_DONE]
        for k in range(counts[0, SUBSTEP], n_sub):
            layout, part = layouts[k], memory[starts[0, k] : starts[0, k + 1]]
            for lane in range(lanes):
                part[at(lane)] = t0[at(lane)] + (step + offsets[k]) * h[at(lane)]
            tables = index[starts[1, k] : starts[1, k + 1]]
            own_guess, own_work = guess[starts[2, k] : starts[2, k + 1]], work[starts[2, k] : starts[2, k + 1]]
            if lanes == 1:
                made = make_step(kernels[k], layout, tables, part, counts[k], numbers[k], known[k], own_guess, own_work)
            else:
                part_bits = bits[starts[0, k] : starts[0, k + 1]]
                made = make_step_lanes(
                    kernels[k], layout, part, part_bits, counts[k], numbers[k], known[k], own_guess, failed, lanes, controls[k]
                )
            if not made:
                counts[0, SUBSTEP] = k
                return UNSOLVED
            following = (k + 1) % n_sub
            first, target = starts[0, k], starts[0, following] + layouts[following, STATE] * lanes
            n_state = layout[N_STATE] * lanes
            add_increment(memory, first + layout[STATE] * lanes, first + layout[DELTA] * lanes, target, n_state)
        counts[0, SUBSTEP] = 0
        counts[0, STEPS_DONE] = step + 1
        until_saved -= 1
        if until_saved == 0:
            until_saved = save_every
            save_lanes(memory, layouts, counts, starts, store, targets, alive, lanes)
        if watch:
            for lane in range(lanes):
                now[at(lane)] = t0[at(lane)] + (step + 1) * h[at(lane)]
            first = starts[0, 0] + layouts[0, STATE] * lanes
            if watch_state(watch, plan, watched, memory, first, layouts[0, N_STATE], now, lanes, events, n_events, alive):
                return FULL
    return DONE


@compiled
def advance_units(
    kernels, layouts, index, memory, counts, numbers, known, guess, work, starts, offsets, store, targets, last_step, save_every,
    t0, h, alive, lanes, controls, bits, failed, now, watch, plan, watched, events, n_events, status, budget,
):  # fmt: skip
    """Advance the units that are RUNNING by at most `budget` steps altogether; one that stops says so in `status`."""
    for unit in range(len(memory)):
        if status[unit] == RUNNING and budget > 0:
            before = counts[unit, 0, STEPS_DONE]
            goal = min(last_step, before + budget)
            result = advance_unit(
                kernels, layouts, index, memory[unit], counts[unit], numbers[unit], known[unit], guess, work, starts, offsets,
                store, targets[unit], goal, save_every, t0[unit], h[unit], alive[unit], lanes, controls, bits[unit], failed, now, watch, plan, watched[unit], events[unit], n_events[unit],
            )  # fmt: skip
            budget -= counts[unit, 0, STEPS_DONE] - before
            if result != DONE or counts[unit, 0, STEPS_DONE] == last_step:
                status[unit] = result


@compiled
def watch_starts(watch, plan, watched, memory, first, n_state, t0, lanes, events, n_events, alive):
    """Show every unit's start to the watch."""
    for unit in range(len(memory)):
        watch_state(
            watch, plan, watched[unit], memory[unit], first, n_state, t0[unit], lanes, events[unit], n_events[unit], alive[unit]
        )
