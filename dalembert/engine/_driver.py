"""Newton's iteration and the step loop, for every method and model.

Nothing here depends on a model: kernels come as addresses, memory as one array, its layout as integers. So Numba compiles
this file once a machine and keeps it on disk.
"""

from __future__ import annotations

import operator

import numpy as np

from dalembert.compiler._stopping import FASTEST_GUESS, MAX_ITERATIONS, MAX_REFRESHES, STALL, stopping_rule
from dalembert.engine._compiled import compiled, internal
from dalembert.engine._dense_solve import (
    PIVOTED_STEPS,
    PIVOTING,
    count_pivoted,
    dense_increment,
    factorize_dense,
    order_fails,
)
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._layout import KNOWN_AGES, Substep
from dalembert.engine._sparse_solve import COLUMNS, eliminate, solve_sparse, substitute

DONE, UNSOLVED = 0, 1
GUESS_READY, PREDICT, SOLVED = 0, 1, 2
NOISE_SLOT, ORIENTATION_SLOT, ENERGY_SLOT = 3, 4, 5

inlined = compiled(inline="always")  # a call passes 7 words an array
at = np.uintp  # an unsigned index spares Numba the test for negative ones, which doubles the time of an inner loop


@inlined
def choose(condition, a, b):
    return a if condition else b


# Operators, which Numba compiles in place, where functions would be copied into the driver twenty times.
judge = inlined(stopping_rule(operator.and_, operator.or_, choose, max))


@inlined
def factorize(sub):
    """Renew the factors at the current unknowns."""
    if sub.layout.straight_line >= PIVOTING:
        factorize_dense(sub)
    else:
        call_kernel(sub.kernels.factor, sub.memory)
        if not sub.layout.straight_line:
            eliminate(sub.memory, sub.tables, sub.layout.matrix)
    sub.counts.factorizations += 1
    sub.counts.age = 0


@inlined
def newton_increment(sub):
    """One simplified Newton iteration; returns the squared size of the increment relative to the unknowns."""
    layout, index, memory, work = sub.layout, sub.tables, sub.memory, sub.work
    if layout.straight_line >= PIVOTING:
        return dense_increment(sub)
    call_kernel(sub.kernels.iterate, memory)
    if layout.straight_line:
        return memory[2]
    substitute(memory, index, layout.matrix, work)
    total, columns = 0.0, index[layout.matrix + COLUMNS]
    for k in range(layout.n_x):
        unknown = index[at(columns + k)]
        memory[layout.x + unknown] -= work[k]
        weight = index[layout.weight_of + unknown]
        if weight >= 0:
            weight += layout.weights
            unit = index[layout.unit_of + unknown]
            total += (memory[weight] * memory[unit] + memory[weight + 1]) * work[k] * work[k]
    return total


@inlined
def solve(sub):
    """Iterate until the increments are lost in round-off; the number of iterations, or -1."""
    counts, numbers, memory = sub.counts, sub.numbers, sub.memory
    previous, refreshed, noise = np.inf, 0, memory[NOISE_SLOT]
    rate = first_rate(numbers.rate)
    for iteration in range(1, MAX_ITERATIONS + 1):
        size = newton_increment(sub)
        counts.iterations += 1
        converged, rate, slow, diverges = judge(
            size, previous, rate, noise, numbers.tolerance, numbers.fastest, STALL, iteration
        )
        if converged:
            if iteration > 1:
                numbers.rate = rate
            for _ in range(sub.layout.polish):
                newton_increment(sub)
            return iteration
        if diverges or (slow and refreshed == MAX_REFRESHES):
            return -1
        if slow:
            factorize(sub)
            refreshed += 1
        previous = size
        if iteration == 1 and size > 1.0:  # the guess was far too small to measure increments by, as in a start from rest
            call_kernel(sub.kernels.weigh, memory)
            previous, noise = np.inf, memory[NOISE_SLOT]
    return -1


@inlined
def first_rate(last_rate):
    """The rate of the last step stands in for that of the first iteration, with a margin."""
    return min(1.0, max(100.0 * last_rate, FASTEST_GUESS))


@inlined
def keep_factors(iterations, counts, numbers, known, cost_ratio):
    """Whether the next step should reuse the factors: only while it is expected to cost less than the average so far.

    A period from one factorisation to the next costs `cost_ratio` + sum of its iterations. Its average is smallest if it ends
    when the next step would cost more than the average; what a step of a given age costs is known from earlier periods.
    """
    if counts.age == 0:
        numbers.period_cost = cost_ratio
    counts.age += 1
    numbers.period_cost += iterations
    age = min(counts.age, KNOWN_AGES - 1)
    known[age - 1] = iterations
    expected = known[age] if known[age] > 0.0 and counts.periods % 512 != 511 else float(iterations)
    if expected <= numbers.period_cost / counts.age:
        return True
    counts.periods += 1
    return False


@internal()
def solve_pivoting(sub):
    """Solve a step in which the fixed order fails by dense elimination, like the steps that follow it; else -1."""
    layout, counts = sub.layout, sub.counts
    if sub.kernels.entries == 0 or layout.straight_line >= PIVOTING:
        return -1
    for k in range(layout.n_x):
        sub.memory[layout.x + k] = sub.guess[k]
    factorize(sub)
    newton_increment(sub)
    if not order_fails(sub):
        return -1
    layout.straight_line += PIVOTING
    counts.pivoted_left = PIVOTED_STEPS
    iterations = solve(sub)
    if iterations < 0:
        layout.straight_line -= PIVOTING
    return iterations


@inlined
def solve_step(sub):
    """Solve the step equations from the guess in memory; a failure with old factors is tried again with new ones."""
    x, size, memory, guess = sub.layout.x, sub.layout.n_x, sub.memory, sub.guess
    for k in range(size):
        guess[k] = memory[at(x + k)]
    iterations, renewed = -1, sub.counts.age < 0
    while True:  # the only place for `solve`, which is long: every other copy of it takes seconds to compile
        if renewed:
            factorize(sub)
        iterations = solve(sub)
        if renewed or iterations >= 0:
            break
        for k in range(size):
            memory[at(x + k)] = guess[k]
        renewed = True
    if iterations < 0:
        iterations = solve_pivoting(sub)
    if iterations < 0:
        return False
    dense = sub.layout.straight_line >= PIVOTING
    cost_ratio = sub.numbers.dense_ratio if dense else sub.numbers.cost_ratio
    if not keep_factors(iterations, sub.counts, sub.numbers, sub.known, cost_ratio):
        sub.counts.age = -1
    if sub.layout.straight_line >= PIVOTING:
        count_pivoted(sub)
    return True


@inlined
def finish(sub):
    """Compute the results of a step from its unknowns; in large programs the last ones and a determinant by elimination."""
    memory, layout = sub.memory, sub.layout
    if layout.last >= 0:
        call_kernel(sub.kernels.last, memory)
        solve_sparse(memory, sub.tables, layout.last, sub.work, layout.last_unknowns)
    call_kernel(sub.kernels.finish, memory)
    if layout.turn >= 0:
        memory[ORIENTATION_SLOT] *= eliminate(memory, sub.tables, layout.turn)


@inlined
def finish_step(sub):
    """The increment of the state; False if it or H is not finite, or the step is not to be trusted (`ReducedStep.orientation`).

    With a tolerance the step may miss its constraints: that is what the tolerance is for.
    """
    memory, layout = sub.memory, sub.layout
    finish(sub)
    total = memory[ENERGY_SLOT]
    for k in range(layout.n_state):
        total += memory[at(layout.delta + k)]
    orientation = memory[ORIENTATION_SLOT]
    tolerated = sub.numbers.tolerance > 0.0 and np.isnan(orientation)
    return np.isfinite(total) and (orientation * sub.counts.sign > 0.0 or tolerated)


@internal()
def meet_constraints(sub):
    """Iterate on with new factors where a step misses its end constraints, which the stopping rule did not see."""
    for _ in range(MAX_REFRESHES):
        if not np.isnan(sub.memory[ORIENTATION_SLOT]):
            return False
        factorize(sub)
        newton_increment(sub)
        if finish_step(sub):
            return True
    return False


@inlined
def make_step(sub):
    """One step from the state in memory to its increment in memory; False, its guess in memory, if it could not be made."""
    kernels, memory, counts = sub.kernels, sub.memory, sub.counts
    if counts.mode == SOLVED:  # by the rescue, which has looked at the result
        call_kernel(kernels.weigh, memory)
        finish(sub)
    else:
        if counts.mode == PREDICT:
            call_kernel(kernels.predict, memory)
        call_kernel(kernels.weigh, memory)
        solved = sub.layout.n_x == 0 or solve_step(sub)
        if not (solved and (finish_step(sub) or meet_constraints(sub))):
            for k in range(sub.layout.n_x):
                memory[at(sub.layout.x + k)] = sub.guess[k]
            counts.age = -1
            return False
    counts.mode = PREDICT
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
    last = len(layouts) - 1
    state, n_state, row = starts[0, 0] + layouts[0].state, layouts[0].n_state, counts[0].saved
    multipliers = starts[0, last] + layouts[last].stage_multipliers + layouts[last].n_stage  # the accepted ones
    for k in range(n_state):
        store[row, k] = memory[state + k]
    for k in range(store.shape[1] - n_state):
        store[row, n_state + k] = memory[multipliers + k]
    counts[0].saved += 1


@compiled()
def advance(steps, store, last_step, save_every, t0, h):
    """Run `Steps` until `last_step`; UNSOLVED stops before the (sub)step that could not be made, its guess in memory."""
    kernels, layouts, index, memory, all_counts, numbers, known, guess, work, starts, offsets = steps
    n_sub, counts = len(offsets), all_counts[0]
    until_saved = save_every - counts.steps_done % save_every
    while counts.steps_done < last_step:
        step = counts.steps_done
        for k in range(counts.substep, n_sub):
            layout, first = layouts[k], starts[0, k]
            sub = Substep(
                kernels[k], layout, index[starts[1, k] : starts[1, k + 1]], memory[first : starts[0, k + 1]], all_counts[k],
                numbers[k], known[k], guess[starts[2, k] : starts[2, k + 1]], work[starts[2, k] : starts[2, k + 1]],
            )  # fmt: skip
            sub.memory[0] = t0 + (step + offsets[k]) * h
            if not make_step(sub):
                counts.substep = k
                return UNSOLVED
            following = (k + 1) % n_sub
            target = starts[0, following] + layouts[following].state
            add_increment(memory, first + layout.state, first + layout.delta, target, layout.n_state)
            own, count = layout.stage_multipliers, layout.n_stage
            for i in range(count):  # a rejected step must not overwrite them
                sub.memory[own + count + i] = sub.memory[own + i]
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
