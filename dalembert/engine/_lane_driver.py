"""Newton's iteration and the step loop for trajectories that are computed side by side, one in each lane of a vector.

A unit is what shares memory and counters: as many trajectories as there are lanes, every slot of memory holding one number a
lane. They take their steps together, with factors of the same age, and an iteration ends when the last of them has converged.
A lane whose step fails leaves the unit, and the others make theirs again. Like the driver for one trajectory, this file knows
no model.
"""

from __future__ import annotations

import numpy as np

from dalembert.compiler._lane_kernels import CONTROL, DIVERGES
from dalembert.compiler._stopping import FASTEST_GUESS
from dalembert.engine._compiled import compiled
from dalembert.engine._driver import (
    DONE,
    GUESS_READY,
    MAX_ITERATIONS,
    MAX_REFRESHES,
    PREDICT,
    UNSOLVED,
    add_increment,
    at,
    inlined,
    keep_factors,
)
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._layout import (
    AGE,
    DELTA,
    FACTORIZATIONS,
    ITERATIONS,
    MODE,
    N_STAGE,
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
MASK, ALIVE, PREVIOUS, RATE, LAST_RATE, AGE_IN_STEP, ATTENTION, REFRESHES, LOST, WRONG = (
    CONTROL.index(name)
    for name in ("mask", "alive", "previous", "rate", "last_rate", "age", "attention", "refreshes", "lost", "wrong")
)

# the plan of a watch: slots of its memory
WATCH_STATE, WATCH_N_STATE, WATCH_FLAG, WATCH_EVENT, WATCH_EVENT_SIZE = range(5)


@compiled()
def watch_rows(watch, plan, watched, rows, before, t0, h, events):
    """Show the states after the steps `before` + 1, ... of one trajectory to a watch; how many events it noticed."""
    found, first = 0, plan[WATCH_STATE]
    for row in range(len(rows)):
        watched[0] = t0 + (before + 1 + row) * h
        for k in range(plan[WATCH_N_STATE]):
            watched[first + k] = rows[row, k]
        call_kernel(watch, watched)
        if plan[WATCH_EVENT_SIZE] and watched[plan[WATCH_FLAG]] != 0.0:
            for k in range(plan[WATCH_EVENT_SIZE]):
                events[found, k] = watched[plan[WATCH_EVENT] + k]
            found += 1
    return found


@inlined
def watch_lanes(watch, plan, watched, memory, state, t0, h, step, lanes, events, n_events, alive):
    """Show the states of all lanes to the watch; True if one of them has no more room for events."""
    for lane in range(lanes):
        watched[at(lane)] = t0[at(lane)] + step * h[at(lane)]
    first = plan[WATCH_STATE] * lanes
    for k in range(plan[WATCH_N_STATE] * lanes):
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
    multipliers = starts[0, last] + (layouts[last, STAGE_MULTIPLIERS] + layouts[last, N_STAGE]) * lanes  # the accepted ones
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


@compiled()
def attend(memory, iteration, lanes, control):
    """Mask the lanes for which there is no hope; True if one that goes on asks for new weights or factors."""
    asked = False
    for lane in range(control, control + lanes):
        attention, refreshes = memory[lane + ATTENTION * lanes], memory[lane + REFRESHES * lanes]
        if attention == DIVERGES or (attention != 0.0 and refreshes == MAX_REFRESHES):
            memory[lane + MASK * lanes], memory[lane + ATTENTION * lanes], memory[lane + LOST * lanes] = 0.0, 0.0, 1.0
        elif attention != 0.0:
            memory[lane + REFRESHES * lanes] += iteration > 1
            asked = True
    return asked


@inlined
def solve_lanes(kernels, memory, bits, counts, lanes, control):
    """`solve` of the driver, for all lanes in the mask: the number of iterations; lanes that fail are `lost`."""
    mask, attention = control + MASK * lanes, control + ATTENTION * lanes
    for iteration in range(1, MAX_ITERATIONS + 1):
        call_kernel(kernels[3], memory)
        counts[ITERATIONS] += 1
        if not any_lane(bits, mask, lanes):
            return iteration
        if any_lane(bits, attention, lanes) and attend(memory, iteration, lanes, control):
            if iteration == 1:
                call_kernel(kernels[5], memory)
            else:
                factorize_lanes(kernels, memory, counts)
    for lane in range(lanes):
        memory[at(control + LOST * lanes + lane)] = max(memory[control + LOST * lanes + lane], memory[mask + lane])
    return MAX_ITERATIONS


@compiled()
def begin_again(memory, x, guess, lanes, control):
    """Put the lanes that are lost, and no others, back to their guess."""
    for lane in range(lanes):
        here = control + lane
        lost = memory[here + LOST * lanes] != 0.0
        memory[here + MASK * lanes] = 1.0 if lost else 0.0
        if lost:
            for k in range(lane, len(guess), lanes):
                memory[x + k] = guess[k]
            memory[here + PREVIOUS * lanes] = np.inf
            memory[here + RATE * lanes] = min(1.0, max(100.0 * memory[here + LAST_RATE * lanes], FASTEST_GUESS))
            memory[here + AGE_IN_STEP * lanes] = memory[here + REFRESHES * lanes] = memory[here + LOST * lanes] = 0.0


@inlined
def solve_step_lanes(kernels, memory, bits, counts, numbers, known, guess, x, polish, lanes, control):
    """`solve_step` of the driver, for all lanes; False if one or more are `lost`."""
    lost = control + LOST * lanes
    reused = counts[AGE] >= 0
    if not reused:
        factorize_lanes(kernels, memory, counts)
    iterations = solve_lanes(kernels, memory, bits, counts, lanes, control)
    if reused and any_lane(bits, lost, lanes):
        begin_again(memory, x, guess, lanes, control)
        factorize_lanes(kernels, memory, counts)
        iterations = solve_lanes(kernels, memory, bits, counts, lanes, control)
    if any_lane(bits, lost, lanes):
        return False
    for _ in range(polish):
        for lane in range(lanes):
            memory[at(control + MASK * lanes + lane)] = memory[at(control + ALIVE * lanes + lane)]
            memory[at(control + AGE_IN_STEP * lanes + lane)] = 0.0  # nothing is learnt from this about rates
        call_kernel(kernels[3], memory)
    if not keep_factors(iterations, counts, numbers, known):
        counts[AGE] = -1
    return True


@inlined
def make_step_lanes(kernels, layout, memory, bits, counts, numbers, known, guess, failed, lanes, control):
    """`make_step` of the driver, for all lanes; False if one failed: `failed` says which, and the guesses are in memory."""
    x, n_x = layout[X] * lanes, layout[N_X] * lanes
    call_kernel(kernels[0 if counts[MODE] == PREDICT else 1], memory)
    for k in range(n_x):
        guess[at(k)] = memory[at(x + k)]
    verdict = control + LOST * lanes
    if n_x == 0 or solve_step_lanes(kernels, memory, bits, counts, numbers, known, guess, x, layout[POLISH], lanes, control):
        verdict = control + WRONG * lanes
        call_kernel(kernels[4], memory)
        if not any_lane(bits, verdict, lanes):
            counts[MODE] = PREDICT
            return True
    for lane in range(lanes):
        failed[lane] = memory[at(verdict + lane)]
    for k in range(n_x):
        memory[at(x + k)] = guess[at(k)]
    counts[AGE] = -1
    counts[MODE] = GUESS_READY
    return False


@compiled()
def advance_unit(
    kernels, layouts, memory, bits, counts, numbers, known, guess, starts, offsets, controls, store, targets, last_step,
    save_every, t0, h, alive, failed, lanes, watch, plan, watched, events, n_events,
):  # fmt: skip
    """Steps of one unit, as `advance` of the driver makes them for one trajectory; `bits` is its memory as integers."""
    n_sub = len(offsets)
    state = starts[0, 0] + layouts[0, STATE] * lanes
    until_saved = save_every - counts[0, STEPS_DONE] % save_every
    while counts[0, STEPS_DONE] < last_step:
        step = counts[0, STEPS_DONE]
        for k in range(counts[0, SUBSTEP], n_sub):
            layout, first, end = layouts[k], starts[0, k], starts[0, k + 1]
            for lane in range(lanes):
                memory[at(first + lane)] = t0[at(lane)] + (step + offsets[k]) * h[at(lane)]
            if not make_step_lanes(
                kernels[k], layout, memory[first:end], bits[first:end], counts[k], numbers[k], known[k],
                guess[starts[1, k] : starts[1, k + 1]], failed, lanes, controls[k],
            ):  # fmt: skip
                counts[0, SUBSTEP] = k
                return UNSOLVED
            following = (k + 1) % n_sub
            target = starts[0, following] + layouts[following, STATE] * lanes
            add_increment(memory, first + layout[STATE] * lanes, first + layout[DELTA] * lanes, target, layout[N_STATE] * lanes)
            own, count = first + layout[STAGE_MULTIPLIERS] * lanes, layout[N_STAGE] * lanes
            for i in range(count):  # a rejected step must not overwrite them
                memory[at(own + count + i)] = memory[at(own + i)]
        counts[0, SUBSTEP] = 0
        counts[0, STEPS_DONE] = step + 1
        until_saved -= 1
        if until_saved == 0:
            until_saved = save_every
            save_lanes(memory, layouts, counts, starts, store, targets, alive, lanes)
        if watch and watch_lanes(watch, plan, watched, memory, state, t0, h, step + 1, lanes, events, n_events, alive):
            return FULL
    return DONE


@compiled()
def advance_units(
    kernels, layouts, memory, bits, counts, numbers, known, guess, starts, offsets, controls, store, targets, last_step,
    save_every, t0, h, alive, failed, lanes, watch, plan, watched, events, n_events, status, budget,
):  # fmt: skip
    """Advance the units that are RUNNING by at most `budget` steps altogether; one that stops says so in `status`.

    The first that fails ends the call: `failed` says which of its lanes did.
    """
    for unit in range(len(memory)):
        if status[unit] == RUNNING and budget > 0:
            before = counts[unit, 0, STEPS_DONE]
            result = advance_unit(
                kernels, layouts, memory[unit], bits[unit], counts[unit], numbers[unit], known[unit], guess, starts, offsets,
                controls, store, targets[unit], min(last_step, before + budget), save_every, t0[unit], h[unit], alive[unit],
                failed, lanes, watch, plan, watched[unit], events[unit], n_events[unit],
            )  # fmt: skip
            budget -= counts[unit, 0, STEPS_DONE] - before
            if result != DONE or counts[unit, 0, STEPS_DONE] == last_step:
                status[unit] = result
            if result == UNSOLVED:
                return
