"""The step loop, for every method and model; a step whose solution is in doubt is followed from small steps.

Nothing here depends on a model: kernels come as addresses, memory as one array, its layout as integers. So Numba compiles
this file once a machine and keeps it on disk.
"""

from __future__ import annotations

import numpy as np

from dalembert.engine._compiled import compiled
from dalembert.engine._dense_solve import PIVOTING
from dalembert.engine._follow import follow
from dalembert.engine._iteration import (
    CORRECTION_SLOT,
    H_SLOT,
    at,
    copied,
    factorize,
    finish,
    finish_step,
    inlined,
    keep_factors,
    meet_constraints,
    solve,
    solve_pivoting,
    substep_of,
    try_own_order,
    weigh,
)
from dalembert.engine._kernel_call import call_kernel

DONE, UNSOLVED, REACHED = 0, 1, 9
GUESS_READY, PREDICT, SOLVED = 0, 1, 2
MOST_REJECTED = 40
"""How often one step may be rejected for its error: then its size is next to nothing."""


@inlined
def solve_step(sub):
    """Solve the step equations from the guess in memory: whether that succeeded, and whether to doubt the solution.

    A failure or a doubt with old factors is tried again with new ones.
    """
    x, size, memory, guess = sub.layout.x, sub.layout.n_x, sub.memory, sub.guess
    for k in range(size):
        guess[at(k)] = memory[at(x + k)]
    if sub.layout.straight_line >= PIVOTING and sub.counts.pivoted_left <= 0:
        try_own_order(sub)
    iterations, doubtful, renewed = -1, True, sub.counts.age < 0
    kept, before = sub.counts.age, sub.counts.iterations
    watched = sub.numbers.far < np.inf
    while True:  # the only place for `solve`, which is long: every other copy of it takes seconds to compile
        if renewed:
            factorize(sub)
        iterations, far, slowly = solve(sub, watched and not renewed)
        doubtful = watched and (far or slowly)
        if renewed or (iterations >= 0 and not doubtful):
            break
        for k in range(size):
            memory[at(x + k)] = guess[at(k)]
        renewed = True
    if iterations < 0:
        iterations, doubtful = solve_pivoting(sub)
        doubtful = watched and doubtful
    if iterations < 0:
        return False, True
    dense = sub.layout.straight_line >= PIVOTING
    cost_ratio = sub.numbers.dense_ratio if dense else sub.numbers.cost_ratio
    spent = sub.counts.iterations - before
    if not keep_factors(kept, spent, iterations, sub.counts, sub.numbers, sub.known, cost_ratio):
        sub.counts.age = -1
    if dense:
        sub.counts.pivoted += 1
        sub.counts.patience += 1
        sub.counts.pivoted_left -= 1
    elif sub.counts.patience > 0:  # the order serves again: next time it fails anew
        sub.counts.patience -= 1
    return True, doubtful


@copied
def make_step(sub):
    """One step from the state in memory to its increment in memory; False, its guess in memory, if it could not be made."""
    kernels, memory, counts = sub.kernels, sub.memory, sub.counts
    if counts.mode == PREDICT:
        call_kernel(kernels.predict, memory)
    weigh(sub)
    if counts.mode == SOLVED:  # by Python, which has looked at the result
        finish(sub)
        counts.mode = PREDICT
        return True
    solved, doubtful = True, False
    if sub.layout.n_x > 0:
        solved, doubtful = solve_step(sub)
    far = sub.numbers.far
    certain = solved and not doubtful and (finish_step(sub) or meet_constraints(sub))
    certain = certain and not memory[CORRECTION_SLOT] >= far
    if not certain and (far == np.inf or not follow(sub, solved)):
        for k in range(sub.layout.n_x):
            memory[at(sub.layout.x + k)] = sub.guess[at(k)]
        counts.age = -1
        return False
    counts.mode, counts.judged, counts.fresh = PREDICT, 0, 0
    return True


@inlined
def add_increment(memory, state, delta, target, n_state):
    """Write state + delta to `target`, by compensated summation: what rounding takes away is given back in the next step."""
    for k in range(n_state):
        old = memory[at(state + k)]
        change = memory[at(delta + k)] + memory[at(state + n_state + k)]
        new = old + change
        change_seen = new - old
        memory[at(target + n_state + k)] = (old - (new - change_seen)) + (change - change_seen)
        memory[at(target + k)] = new


@inlined
def save(steps, store):
    """Store the state, which the first substep starts from next, and the stage multipliers of the last substep."""
    memory, starts, layouts, counts = steps.memory, steps.starts, steps.layouts, steps.counts
    last = at(len(layouts) - 1)
    state, n_state, row = layouts[0].state, layouts[0].n_state, counts[0].saved
    multipliers = starts[at(0), last] + layouts[last].stage_multipliers + layouts[last].n_stage  # the accepted ones
    for k in range(n_state):
        store[at(row), at(k)] = memory[at(state + k)]
    for k in range(store.shape[1] - n_state):
        store[at(row), at(n_state + k)] = memory[at(multipliers + k)]
    counts[0].saved += 1


@compiled()
def advance(steps, store, last_step, save_every, t0, h):
    """Run `Steps` until `last_step`; UNSOLVED stops before the (sub)step that could not be made, its guess in memory.

    Where step sizes vary, REACHED stops at the time where the run ends. Methods that reject steps have one substep.
    """
    memory, layouts, starts, offsets, counts = steps.memory, steps.layouts, steps.starts, steps.offsets, steps.counts[0]
    n_sub, sub = len(offsets), substep_of(steps, 0)
    until_saved = save_every - counts.steps_done % save_every
    rejected = 0
    while counts.steps_done < last_step:
        step, taken = counts.steps_done, True
        for k in range(counts.substep, n_sub):
            if n_sub > 1:
                sub = substep_of(steps, k)
            layout, first = sub.layout, starts[at(0), at(k)]
            if sub.kernels.clock != 0:
                call_kernel(sub.kernels.clock, sub.memory)
                if sub.memory[H_SLOT] == 0.0:
                    return REACHED
            else:
                sub.memory[0] = t0 + (step + offsets[at(k)]) * h
            if not make_step(sub):
                counts.substep = k
                return UNSOLVED
            if sub.kernels.clock != 0:
                call_kernel(sub.kernels.tick, sub.memory)
                if sub.memory[at(layout.taken)] == 0.0:
                    taken = False
                    break
            following = at(k + 1 if k + 1 < n_sub else 0)
            target = starts[at(0), following] + layouts[following].state
            add_increment(memory, first + layout.state, first + layout.delta, target, layout.n_state)
            own, count = layout.stage_multipliers, layout.n_stage
            for i in range(count):  # a rejected step must not overwrite them
                sub.memory[at(own + count + i)] = sub.memory[at(own + i)]
        if not taken:
            counts.rejected += 1
            rejected += 1
            if rejected > MOST_REJECTED:
                return UNSOLVED
            continue
        rejected = 0
        counts.substep = 0
        counts.steps_done = step + 1
        until_saved -= 1
        if until_saved == 0:
            until_saved = save_every
            save(steps, store)
    return DONE


@compiled()
def map_kernel(address, memory, inputs, first_input, outputs, first_output):
    """Evaluate a kernel at every row of `inputs`."""
    for row in range(len(inputs)):
        for k in range(inputs.shape[1]):
            memory[first_input + k] = inputs[row, k]
        call_kernel(address, memory)
        for k in range(outputs.shape[1]):
            outputs[row, k] = memory[first_output + k]
