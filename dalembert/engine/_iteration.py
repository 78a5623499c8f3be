"""Newton's iteration for one step, for every method and model.

Nothing here depends on a model: kernels come as addresses, memory as one array, its layout as integers. So Numba compiles
this file once a machine and keeps it on disk.
"""

from __future__ import annotations

import operator

import numpy as np
from numba import types

from dalembert.compiler._metric import ROUND_OFF, TOLERATED
from dalembert.compiler._stopping import FASTEST_GUESS, MAX_ITERATIONS, MAX_REFRESHES, STALL, SURE, doubt_rule, stopping_rule
from dalembert.engine._apart import apart
from dalembert.engine._compiled import compiled
from dalembert.engine._dense_solve import PIVOTED_STEPS, PIVOTING, dense_increment, factorize_dense, order_fails
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._layout import KNOWN_AGES, Substep
from dalembert.engine._sparse_solve import COLUMNS, eliminate_apart, solve_sparse_apart, substitute_apart

H_SLOT, SIZE_SLOT, NOISE_SLOT, ORIENTATION_SLOT, ENERGY_SLOT, CORRECTION_SLOT, PREPARED_SLOT = 1, 2, 3, 4, 5, 6, 8

TRIED = 512
"""After how many periods it is tried again whether factors that did not serve do now: a trial costs several steps."""

inlined = compiled(inline="always")  # a call passes 7 words an array
copied = compiled(forceinline=True, no_cpython_wrapper=True)
"""The same by LLVM, for what is long: Numba copies all variables of a function for each of its blocks."""
at = np.uintp  # an unsigned index spares Numba the test for negative ones, which doubles the time of an inner loop


@inlined
def substep_of(steps, k):
    """Substep k of a step."""
    here, following = at(k), at(k + 1)
    begin, end = steps.starts[:, here], steps.starts[:, following]
    return Substep(
        steps.kernels[here], steps.layouts[here], steps.tables[begin[1] : end[1]], steps.memory[begin[0] : end[0]],
        steps.counts[here], steps.numbers[here], steps.known[here], steps.guess[begin[2] : end[2]],
        steps.work[begin[2] : end[2]], steps.path[:, begin[2] : end[2]],
    )  # fmt: skip


@inlined
def choose(condition, a, b):
    return a if condition else b


# Operators, which Numba compiles in place, where functions would be copied into the driver twenty times.
judge = inlined(stopping_rule(operator.and_, operator.or_, choose, max))
doubts = inlined(doubt_rule(operator.and_, operator.or_))


@inlined
def weigh(sub):
    """What depends on the start of a step alone; before the first step of a size, what does not change until the next size."""
    memory = sub.memory
    if sub.kernels.prepare != 0 and memory[PREPARED_SLOT] != memory[H_SLOT]:
        call_kernel(sub.kernels.prepare, memory)
        memory[PREPARED_SLOT] = memory[H_SLOT]
    call_kernel(sub.kernels.weigh, memory)


@inlined
def factorize(sub):
    """Renew the factors at the current unknowns."""
    if sub.layout.straight_line >= PIVOTING:
        factorize_dense(sub)
    else:
        call_kernel(sub.kernels.factor, sub.memory)
        if not sub.layout.straight_line:
            eliminate_apart(sub.memory, sub.tables, sub.layout.matrix)
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
        return memory[SIZE_SLOT]
    substitute_apart(memory, index, layout.matrix, work)
    total, columns = 0.0, index[layout.matrix + COLUMNS]
    x, weights = layout.x, layout.weights  # not to be read every turn
    for k in range(layout.n_x):
        unknown, change = index[at(columns + k)], work[at(k)]
        memory[at(x + unknown)] -= change
        total += memory[at(weights + unknown)] * (change * change)
    return total


@apart("float64", "substep")
def newton_increment_apart(sub):
    """`newton_increment` where it is more than a kernel: once in machine code is enough."""
    return newton_increment(sub)


@inlined
def next_increment(sub, one_kernel):
    """The same as `newton_increment`, where it is known whether a kernel does it."""
    if one_kernel:
        call_kernel(sub.kernels.iterate, sub.memory)
        return sub.memory[SIZE_SLOT]
    return newton_increment_apart(sub)


@copied
def solve(sub, gives_up):
    """Iterate until the increments are lost in round-off; the number of iterations, or -1, and what makes them doubtful.

    Where it `gives_up`, it does so as soon as there is a doubt, because the step will be solved again anyway.
    """
    counts, numbers, memory = sub.counts, sub.numbers, sub.memory
    previous, refreshed, noise = np.inf, 0, memory[NOISE_SLOT]
    rate, guessed_far, slowly = first_rate(numbers.rate), False, False
    one_kernel = 0 < sub.layout.straight_line < PIVOTING
    for iteration in range(1, MAX_ITERATIONS + 1):
        size = next_increment(sub, one_kernel)
        counts.iterations += 1
        converged, rate, slow, diverges = judge(
            size, previous, rate, noise, numbers.tolerance, numbers.fastest, STALL, iteration
        )
        if slow or iteration == 2:  # else there is no doubt; a tolerance may end an iteration that is in doubt
            far, shrinks_slowly = doubts(size, previous, slow, iteration)
            guessed_far, slowly = guessed_far or far, slowly or shrinks_slowly
            if gives_up and (guessed_far or slowly):
                return -1, True, True
        if converged:
            if iteration > 1:
                numbers.rate = rate
            for _ in range(sub.layout.polish):
                next_increment(sub, one_kernel)
            return iteration, guessed_far, slowly
        if diverges or (slow and refreshed == MAX_REFRESHES):
            return -1, True, True
        if slow:
            factorize(sub)
            refreshed += 1
        previous = size
        if iteration == 1 and size > 1.0:  # the guess was far too small to measure increments by, as in a start from rest
            weigh(sub)
            previous, noise = np.inf, memory[NOISE_SLOT]
    return -1, True, True


@apart(types.Tuple((types.int64, types.boolean, types.boolean)), "substep")
def solve_again(sub):
    """`solve` where it is rarely needed: once in machine code is enough."""
    return solve(sub, False)


@inlined
def first_rate(last_rate):
    """The rate of the last step stands in for that of the first iteration, with a margin."""
    return min(1.0, max(100.0 * last_rate, FASTEST_GUESS))


@inlined
def keep_factors(kept, spent, iterations, counts, numbers, known, cost_ratio):
    """Whether the next step should reuse the factors: only while it is expected to cost less than the average so far.

    A period from one factorisation to the next costs `cost_ratio` + sum of its iterations. Its average is smallest if it ends
    when the next step would cost more than the average; what a step of a given age costs is known from earlier periods. Where
    factors of the age `kept` did not serve and were renewed within the step, all that it `spent` is what that age costs.
    """
    renewed = kept > 0 and counts.age == 0
    if renewed:
        known[min(kept, KNOWN_AGES - 1)] = spent + cost_ratio
    if counts.age == 0:
        numbers.period_cost = cost_ratio
    counts.age += 1
    numbers.period_cost += iterations
    age = min(counts.age, KNOWN_AGES - 1)
    if not (renewed and iterations == spent):  # else iterations with both factors
        known[age - 1] = iterations
    expected = known[age] if known[age] > 0.0 and counts.periods % TRIED != TRIED - 1 else float(iterations)
    if expected <= numbers.period_cost / counts.age:
        return True
    counts.periods += 1
    return False


@apart(types.Tuple((types.int64, types.boolean)), "substep")
def solve_pivoting(sub):
    """Solve a step in which the fixed order fails by dense elimination, like the steps that follow it; else -1.

    Besides, whether to doubt the solution.
    """
    layout, counts = sub.layout, sub.counts
    if sub.kernels.entries == 0 or layout.straight_line >= PIVOTING:
        return -1, True
    fails, _ = own_order_fails(sub)
    if not fails:
        return -1, True
    layout.straight_line += PIVOTING
    counts.pivoted_left = steps_to_pivot(counts)
    iterations, far, slowly = solve_again(sub)
    if iterations < 0:
        layout.straight_line -= PIVOTING
    return iterations, far or slowly


@inlined
def steps_to_pivot(counts):
    """How many steps to make by dense elimination now: one at a single failure, such as next to a singular position."""
    return min(max(1, counts.patience), PIVOTED_STEPS)


@apart(types.UniTuple(types.boolean, 2), "substep")
def own_order_fails(sub):
    """Whether the fixed order's increment from the guess, where the unknowns are left, is wrong (`order_fails`)."""
    for k in range(sub.layout.n_x):
        sub.memory[sub.layout.x + k] = sub.guess[k]
    factorize(sub)
    newton_increment(sub)
    return order_fails(sub)


@apart("void", "substep")
def try_own_order(sub):
    """After some steps by dense elimination, return to the fixed order if it serves now: its increment must be right.

    That its increments shrink tells less: from a good guess they do in spite of wrong pivots, to more than round-off.
    """
    sub.layout.straight_line -= PIVOTING
    fails, certain = own_order_fails(sub)
    if fails and certain:
        sub.layout.straight_line += PIVOTING
        sub.counts.pivoted_left = steps_to_pivot(sub.counts)
    sub.counts.age = -1


@inlined
def finish(sub):
    """The increment of the state; False if it, or a square in it, or H is not finite."""
    memory, layout = sub.memory, sub.layout
    if layout.last >= 0:  # in large programs the last unknowns and the determinant are found by elimination
        call_kernel(sub.kernels.last, memory)
        solve_sparse_apart(memory, sub.tables, layout.last, sub.work, layout.last_unknowns)
    call_kernel(sub.kernels.finish, memory)
    certain = sub.kernels.look != 0 and memory[ORIENTATION_SLOT] * sub.counts.sign > SURE
    if sub.kernels.look != 0 and not certain:
        call_kernel(sub.kernels.look, memory)
    if layout.turn >= 0:
        memory[ORIENTATION_SLOT] *= eliminate_apart(memory, sub.tables, layout.turn)
    return certain or is_finite(memory, layout)


@inlined
def is_finite(memory, layout):
    """Whether the increment of the state, its squares, and H are."""
    total = memory[ENERGY_SLOT]
    for k in range(layout.n_state):
        total += memory[at(layout.delta + k)] ** 2
    return np.isfinite(total)


@inlined
def finish_step(sub):
    """The increment of the state; False if it is not finite, or the step is not to be trusted (`ReducedStep.orientation`).

    With a tolerance the step may miss its constraints: that is what the tolerance is for. Combinations of redundant rows that
    were chosen for this step need not stay as independent as they are: rows that come near a singular position cannot.
    """
    finite, memory = finish(sub), sub.memory
    orientation = memory[ORIENTATION_SLOT]
    tolerated = sub.numbers.tolerance > 0.0 and np.isnan(orientation)
    least = SURE if sub.counts.fresh == 0 else 0.0
    return finite and (orientation * sub.counts.sign > least or tolerated)


@apart("boolean", "substep")
def meet_constraints(sub):
    """Iterate on with new factors where a step misses its end constraints, which the stopping rule did not see.

    They should hold at round-off; where an ill-conditioned matrix prevents that, `TOLERATED` is enough.
    """
    memory, tolerated, met = sub.memory, sub.layout.metric, False
    for attempt in range(MAX_REFRESHES):
        if met or not np.isnan(memory[ORIENTATION_SLOT]):
            break
        memory[tolerated] = ROUND_OFF if attempt < 2 else TOLERATED
        factorize(sub)
        newton_increment(sub)
        met = finish_step(sub)
    memory[tolerated] = ROUND_OFF
    return met
