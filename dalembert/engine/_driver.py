"""Newton's iteration and the step loop, for every method and model.

Nothing here depends on a model: kernels come as addresses, memory as one array, its layout as integers. So Numba compiles
this file once a machine and keeps it on disk.
"""

from __future__ import annotations

import numpy as np

from dalembert.compiler._stopping import FAST, FASTEST_GUESS, ROUND_OFF, SLOW, SMALL, STAGNATION
from dalembert.engine._compiled import compiled
from dalembert.engine._dense_solve import (
    ENTRIES_KERNEL,
    PIVOTED_STEPS,
    PIVOTING,
    count_pivoted,
    dense_increment,
    factorize_dense,
    order_fails,
)
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._layout import (
    AGE,
    COLUMN,
    COLUMNS,
    COST_RATIO,
    DELTA,
    DIAGONAL,
    FACTORIZATIONS,
    FACTORS,
    FASTEST,
    FILLED,
    ITERATIONS,
    KNOWN_AGES,
    MODE,
    N_ENTRIES,
    N_STAGE,
    N_STATE,
    N_X,
    PERIOD_COST,
    PERIODS,
    PIVOTED_LEFT,
    POLISH,
    RATE,
    RESIDUAL,
    ROW_START,
    ROWS,
    SAVED,
    SCATTER,
    SIGN,
    STAGE_MULTIPLIERS,
    STATE,
    STEPS_DONE,
    STRAIGHT_LINE,
    SUBSTEP,
    TOLERANCE,
    WEIGHT_OF,
    WEIGHTS,
    X,
)

DONE, UNSOLVED = 0, 1
GUESS_READY, PREDICT, SOLVED = 0, 1, 2
MAX_ITERATIONS = 40
MAX_REFRESHES = 8
NOISE_SLOT, ORIENTATION_SLOT, ENERGY_SLOT = 3, 4, 5

inlined = compiled(inline="always")  # a call passes 7 words an array
at = np.uintp  # an unsigned index spares Numba the test for negative ones, which doubles the time of an inner loop


@compiled()
def eliminate(memory, layout, index, work):
    """LU of the matrix entries in memory, in the fixed order, row by row; reciprocal pivots on the diagonal."""
    size, entries, filled = layout[N_X], layout[FACTORS], layout[FILLED]
    row_start, diagonal, column, scatter = layout[ROW_START], layout[DIAGONAL], layout[COLUMN], layout[SCATTER]
    for k in range(index[row_start + size]):
        memory[at(filled + k)] = 0.0
    for k in range(layout[N_ENTRIES]):
        memory[at(filled + index[at(scatter + k)])] = memory[at(entries + k)]
    for i in range(size):
        start, middle, end = index[row_start + i], index[diagonal + i], index[row_start + i + 1]
        for k in range(start, end):
            work[at(index[at(column + k)])] = memory[at(filled + k)]
        for k in range(start, middle):
            j = index[at(column + k)]
            first = index[at(diagonal + j)]
            factor = work[at(j)] * memory[at(filled + first)]
            memory[at(filled + k)] = factor
            for m in range(first + 1, index[at(row_start + j + 1)]):
                work[at(index[at(column + m)])] -= factor * memory[at(filled + m)]
        memory[at(filled + middle)] = 1.0 / work[at(i)]
        for k in range(middle + 1, end):
            memory[at(filled + k)] = work[at(index[at(column + k)])]


@compiled()
def substitute(memory, layout, index, work):
    """Solve with the factors of `eliminate`; the result, in pivot order of the columns, is left in `work`."""
    size, residual, filled = layout[N_X], layout[RESIDUAL], layout[FILLED]
    row_start, diagonal, column, rows = layout[ROW_START], layout[DIAGONAL], layout[COLUMN], layout[ROWS]
    for i in range(size):
        value = memory[residual + index[rows + i]]
        for k in range(index[row_start + i], index[diagonal + i]):
            value -= memory[at(filled + k)] * work[at(index[at(column + k)])]
        work[i] = value
    for i in range(size - 1, -1, -1):
        value = work[i]
        for k in range(index[diagonal + i] + 1, index[row_start + i + 1]):
            value -= memory[at(filled + k)] * work[at(index[at(column + k)])]
        work[i] = value * memory[filled + index[diagonal + i]]


@inlined
def factorize(kernels, layout, index, memory, counts, work):
    """Renew the factors at the current unknowns."""
    if layout[STRAIGHT_LINE] >= PIVOTING:
        factorize_dense(kernels, layout, index, memory)
    else:
        call_kernel(kernels[2], memory)
        if not layout[STRAIGHT_LINE]:
            eliminate(memory, layout, index, work)
    counts[FACTORIZATIONS] += 1
    counts[AGE] = 0


@inlined
def newton_increment(kernels, layout, index, memory, work):
    """One simplified Newton iteration; returns the squared size of the increment relative to the unknowns."""
    if layout[STRAIGHT_LINE] >= PIVOTING:
        return dense_increment(kernels, layout, index, memory, work)
    call_kernel(kernels[3], memory)
    if layout[STRAIGHT_LINE]:
        return memory[2]
    substitute(memory, layout, index, work)
    total = 0.0
    for k in range(layout[N_X]):
        unknown = index[layout[COLUMNS] + k]
        memory[layout[X] + unknown] -= work[k]
        weight = index[layout[WEIGHT_OF] + unknown]
        if weight >= 0:
            total += memory[layout[WEIGHTS] + weight] * work[k] * work[k]
    return total


@inlined
def solve(kernels, layout, index, memory, counts, numbers, work):
    """Iterate until the increments are lost in round-off; the number of iterations, or -1.

    Sizes, ratios and rates are squared throughout, which saves a square root in every iteration.
    """
    previous, rate, refreshed, noise = np.inf, 1.0, 0, memory[NOISE_SLOT]
    for iteration in range(1, MAX_ITERATIONS + 1):
        size = newton_increment(kernels, layout, index, memory, work)
        counts[ITERATIONS] += 1
        if not np.isfinite(size):
            return -1
        ratio = size / previous
        if iteration == 1:
            rate = min(1.0, max(100.0 * numbers[RATE], FASTEST_GUESS))  # the last step's rate stands in, with a margin
        elif ratio > 0.0 and (iteration == 2 or size > max(SMALL, noise)):
            rate = max(ratio, numbers[FASTEST], 1e-4 * rate)  # one increment may be small by chance
        # Increments stop shrinking at round-off; slow convergence also looks like that, so it must have been fast before.
        # Early on, an increment that is small by chance makes the next one look like stagnation.
        stalled = ratio >= 0.25 and (size <= noise or (size <= STAGNATION and rate <= FAST and iteration > 3))
        if size * rate <= ROUND_OFF or stalled or size <= numbers[TOLERANCE]:
            if iteration > 1:
                numbers[RATE] = rate
            for _ in range(layout[POLISH]):
                newton_increment(kernels, layout, index, memory, work)
            return iteration
        if ratio > SLOW and iteration > 1:
            # Increments that are larger than the unknowns, and grow, lead anywhere, maybe to another solution.
            if refreshed == MAX_REFRESHES or size > previous > 1.0:
                return -1
            factorize(kernels, layout, index, memory, counts, work)
            refreshed += 1
        previous = size
        if iteration == 1 and size > 1.0:  # the guess was far too small to measure increments by, as in a start from rest
            call_kernel(kernels[1], memory)
            previous, noise = np.inf, memory[NOISE_SLOT]
    return -1


@inlined
def keep_factors(iterations, counts, numbers, known):
    """Whether the next step should reuse the factors: only while it is expected to cost less than the average so far.

    A period from one factorisation to the next costs COST_RATIO + sum of its iterations. Its average is smallest if it ends
    when the next step would cost more than the average; what a step of a given age costs is known from earlier periods.
    """
    if counts[AGE] == 0:
        numbers[PERIOD_COST] = numbers[COST_RATIO]
    counts[AGE] += 1
    numbers[PERIOD_COST] += iterations
    age = min(counts[AGE], KNOWN_AGES - 1)
    known[age - 1] = iterations
    expected = known[age] if known[age] > 0.0 and counts[PERIODS] % 512 != 511 else float(iterations)
    if expected <= numbers[PERIOD_COST] / counts[AGE]:
        return True
    counts[PERIODS] += 1
    return False


@compiled()
def solve_pivoting(kernels, layout, index, memory, counts, numbers, guess, work):
    """Solve a step in which the fixed order fails by dense elimination, like the steps that follow it; else -1."""
    if kernels[ENTRIES_KERNEL] == 0 or layout[STRAIGHT_LINE] >= PIVOTING:
        return -1
    for k in range(layout[N_X]):
        memory[layout[X] + k] = guess[k]
    factorize(kernels, layout, index, memory, counts, work)
    newton_increment(kernels, layout, index, memory, work)
    if not order_fails(kernels, layout, index, memory, guess, work):
        return -1
    layout[STRAIGHT_LINE] += PIVOTING
    counts[PIVOTED_LEFT] = PIVOTED_STEPS
    iterations = solve(kernels, layout, index, memory, counts, numbers, work)
    if iterations < 0:
        layout[STRAIGHT_LINE] -= PIVOTING
    return iterations


@inlined
def solve_step(kernels, layout, index, memory, counts, numbers, known, guess, work):
    """Solve the step equations from the guess in memory; a failure with old factors is tried again with new ones."""
    x, size = layout[X], layout[N_X]
    for k in range(size):
        guess[k] = memory[at(x + k)]
    reused = counts[AGE] >= 0
    if not reused:
        factorize(kernels, layout, index, memory, counts, work)
    iterations = solve(kernels, layout, index, memory, counts, numbers, work)
    if iterations < 0 and reused:
        for k in range(size):
            memory[at(x + k)] = guess[k]
        factorize(kernels, layout, index, memory, counts, work)
        iterations = solve(kernels, layout, index, memory, counts, numbers, work)
    if iterations < 0:
        iterations = solve_pivoting(kernels, layout, index, memory, counts, numbers, guess, work)
    if iterations < 0:
        return False
    if not keep_factors(iterations, counts, numbers, known):
        counts[AGE] = -1
    if layout[STRAIGHT_LINE] >= PIVOTING:
        count_pivoted(layout, counts)
    return True


@inlined
def finish_step(kernels, layout, memory, counts, numbers):
    """The increment of the state; False if it or H is not finite, or the step is not to be trusted (`ReducedStep.orientation`).

    With a tolerance the step may miss its constraints: that is what the tolerance is for.
    """
    call_kernel(kernels[4], memory)
    total = memory[ENERGY_SLOT]
    for k in range(layout[N_STATE]):
        total += memory[at(layout[DELTA] + k)]
    orientation = memory[ORIENTATION_SLOT]
    tolerated = numbers[TOLERANCE] > 0.0 and np.isnan(orientation)
    return np.isfinite(total) and (orientation * counts[SIGN] > 0.0 or tolerated)


@compiled()
def meet_constraints(kernels, layout, index, memory, counts, numbers, work):
    """Iterate on with new factors where a step misses its end constraints, which the stopping rule did not see."""
    for _ in range(MAX_REFRESHES):
        if not np.isnan(memory[ORIENTATION_SLOT]):
            return False
        factorize(kernels, layout, index, memory, counts, work)
        newton_increment(kernels, layout, index, memory, work)
        if finish_step(kernels, layout, memory, counts, numbers):
            return True
    return False


@inlined
def make_step(kernels, layout, index, memory, counts, numbers, known, guess, work):
    """One step from the state in memory to its increment in memory; False, its guess in memory, if it could not be made."""
    x, n_x = layout[X], layout[N_X]
    if counts[MODE] == SOLVED:  # by the rescue, which has looked at the result
        call_kernel(kernels[1], memory)
        call_kernel(kernels[4], memory)
    else:
        call_kernel(kernels[0 if counts[MODE] == PREDICT else 1], memory)
        solved = n_x == 0 or solve_step(kernels, layout, index, memory, counts, numbers, known, guess, work)
        solved = solved and (
            finish_step(kernels, layout, memory, counts, numbers)
            or meet_constraints(kernels, layout, index, memory, counts, numbers, work)
        )
        if not solved:
            for k in range(n_x):
                memory[at(x + k)] = guess[k]
            counts[AGE] = -1
            return False
    counts[MODE] = PREDICT
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
def save(memory, layouts, counts, starts, store):
    """Store the state, which the first substep starts from next, and the stage multipliers of the last substep."""
    last = len(layouts) - 1
    state, n_state = starts[0, 0] + layouts[0, STATE], layouts[0, N_STATE]
    multipliers = starts[0, last] + layouts[last, STAGE_MULTIPLIERS] + layouts[last, N_STAGE]  # the accepted ones
    for k in range(n_state):
        store[counts[0, SAVED], k] = memory[state + k]
    for k in range(store.shape[1] - n_state):
        store[counts[0, SAVED], n_state + k] = memory[multipliers + k]
    counts[0, SAVED] += 1


@compiled()
def advance(
    kernels, layouts, index, memory, counts, numbers, known, guess, work, starts, offsets, store, last_step, save_every, t0, h
):
    """Run steps until `last_step`; UNSOLVED stops before the (sub)step that could not be made, its guess in memory.

    A step may be a composition: there is one row of kernels, layouts, counts, numbers and known for each substep, which has
    memory and tables of its own, from starts[0], starts[1], starts[2] on in `memory`, `index` and in `guess` and `work`;
    `offsets` says where in the step it begins. The first row of counts belongs to the whole run.
    """
    n_sub = len(offsets)
    until_saved = save_every - counts[0, STEPS_DONE] % save_every
    while counts[0, STEPS_DONE] < last_step:
        step = counts[0, STEPS_DONE]
        for k in range(counts[0, SUBSTEP], n_sub):
            layout, part = layouts[k], memory[starts[0, k] : starts[0, k + 1]]
            part[0] = t0 + (step + offsets[k]) * h
            tables = index[starts[1, k] : starts[1, k + 1]]
            own_guess, own_work = guess[starts[2, k] : starts[2, k + 1]], work[starts[2, k] : starts[2, k + 1]]
            if not make_step(kernels[k], layout, tables, part, counts[k], numbers[k], known[k], own_guess, own_work):
                counts[0, SUBSTEP] = k
                return UNSOLVED
            following = (k + 1) % n_sub
            first, target = starts[0, k], starts[0, following] + layouts[following, STATE]
            add_increment(memory, first + layout[STATE], first + layout[DELTA], target, layout[N_STATE])
            own, count = layout[STAGE_MULTIPLIERS], layout[N_STAGE]
            for i in range(count):  # a rejected step must not overwrite them
                part[own + count + i] = part[own + i]
        counts[0, SUBSTEP] = 0
        counts[0, STEPS_DONE] = step + 1
        until_saved -= 1
        if until_saved == 0:
            until_saved = save_every
            save(memory, layouts, counts, starts, store)
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
