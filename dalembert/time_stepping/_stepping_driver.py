"""The step loop of time stepping in compiled code: steps, the states and impulses that are stored, and when a run stops."""

from __future__ import annotations

import numpy as np

from dalembert.engine._compiled import compiled, internal
from dalembert.engine._dense_solve import largest_of
from dalembert.engine._kernel_call import call_kernel
from dalembert.time_stepping._stepping_solver import DIAGONAL, STIFFEST, load, solve_without_gain

DONE, UNSOLVED, PAINLEVE, NOT_FINITE, FULL, TOO_MANY, UNLAWFUL, DEPENDENT, MAY_CONTRADICT = range(9)
UNASKED, ONE, OTHERS = range(3)
"""How many motions the rigid model has from a state on which contacts slide: it was not asked, one, or no or several."""
LOGGED, TALLIED = 2, 3
"""The counter of rows of the log, behind those of `_stepping_solver`, and how many counters there are."""
LEAST = 1e-15
"""The part of the largest impulse so far below which impulses are rounding errors."""
NEAR = 0.1
"""What part of its own stiffness a sliding contact may have left for an unsolved step to be put down to the paradox."""
MOST, NEGATIVE = 5, -1e-9
"""Contacts that last up to which all principal minors are looked at, and those that are no rounding errors of zero."""
ON_CIRCLE = 1e-6
"""How near to mu P_N, relative to it, the friction of a contact is that slides."""


@internal()
def contradicts(at, memory, least):
    """Whether a contact that lasts slides where the rigid model contradicts itself, or as near to it as `least` says."""
    found, m = False, at.n_contacts
    along = m + 1 if at.n_columns == m else 1
    for k in range(m):
        found = found or (memory[at.touched + k] > 0.0 and memory[at.stiff + along * k] <= least)
    return found


@internal()
def is_finite(at, memory):
    """Whether the increment of the state, and H, are: the largest of several numbers may hide one that is none."""
    total = memory[at.energy]
    for k in range(at.n_state):
        total += abs(memory[at.delta + k])
    return np.isfinite(total)


@internal()
def is_no_p_matrix(at, memory):
    """Whether contacts that last, a few of them, have a principal minor of more than one row below zero."""
    m, lasting, count = at.n_contacts, 0, 0
    for k in range(m):
        if memory[at.touched + k] > 0.0:
            lasting, count = lasting | 1 << k, count + 1
    if not 2 <= count <= MOST or at.n_columns < m:
        return False
    found = False
    for chosen in range(1, lasting + 1):
        several = chosen & lasting == chosen and chosen & (chosen - 1) != 0
        found = found or (several and minor(at, memory, chosen) < NEGATIVE)
    return found


@internal()
def minor(at, memory, chosen):
    """The principal minor of the contacts whose bits are set, by elimination with row exchanges."""
    m, product = at.n_contacts, 1.0
    a = memory[at.matrix : at.matrix + m * m].reshape((m, m))
    for i in range(m):
        for j in range(m):
            both = chosen >> i & chosen >> j & 1
            a[i, j] = memory[at.stiff + m * i + j] if both else 1.0 * (i == j)
    for k in range(m):
        pivot = k
        for i in range(k + 1, m):
            pivot = i if abs(a[i, k]) > abs(a[pivot, k]) else pivot
        product *= a[pivot, k] if pivot == k else -a[pivot, k]
        if product == 0.0:
            return 0.0
        for j in range(k, m):
            a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
        for i in range(k + 1, m):
            factor = a[i, k] / a[k, k]
            for j in range(k, m):
                a[i, j] -= factor * a[k, j]
    return product


@compiled()
def advance_stepping(
    at, kernels, tables, memory, all_counts, tally, store, log, last_step, save_every, log_every, final, t0, h
):
    """Steps until `last_step`, or until the log is full or a step fails; the log has a row every `log_every` steps."""
    n, laws, counts = at.n_state, at.n_contacts * (1 + at.n_tangents), all_counts[0]
    while counts.steps_done < last_step:
        if tally[LOGGED] + at.n_contacts > len(log):
            return FULL
        memory[at.t] = t0 + counts.steps_done * h
        for k in range(at.n_x):
            memory[at.guess + k] = memory[at.saved + k] = memory[at.x + k]
        diagonal = DIAGONAL
        if at.n_tangents:
            call_kernel(kernels[2], memory)
            if memory[at.judged] == UNASKED and (contradicts(at, memory, 0.0) or is_no_p_matrix(at, memory)):
                return MAY_CONTRADICT
            if memory[at.judged] == OTHERS:
                load(at, tables, memory)
                diagonal = STIFFEST
        if not solve_without_gain(at, kernels, tables, memory, counts, tally, diagonal):
            near = contradicts(at, memory, NEAR)
            for k in range(at.n_x):
                memory[at.x + k] = memory[at.saved + k]
            return PAINLEVE if near else UNSOLVED
        if not is_finite(at, memory):
            return NOT_FINITE
        if memory[at.lawful] < 0.0:
            return UNLAWFUL
        if memory[at.independent] == 0.0 and memory[at.fresh] == 0.0:
            for k in range(at.n_x):
                memory[at.x + k] = memory[at.saved + k]
            return DEPENDENT
        memory[at.fresh] = 0.0
        memory[at.judged] = UNASKED
        memory[at.most] = max(memory[at.most], largest_of(memory, at.impulses, at.n_contacts))
        for k in range(at.n_contacts):
            touches = memory[at.impulses + k] > LEAST * memory[at.most]
            memory[at.touched + k] = memory[at.impulses + k] if touches else 0.0
        for k in range(n):
            memory[at.state + k] += memory[at.delta + k]
        memory[at.push] = largest_of(memory, at.delta + n // 2, n // 2)
        memory[at.peak] = max(memory[at.peak], largest_of(memory, at.state + n // 2, n // 2))
        for k in range(laws):
            memory[at.sums + k] += memory[at.impulses + k]
        counts.steps_done += 1
        step = counts.steps_done
        if step % log_every == 0 or step == final:
            note(at, memory, tally, log, t0 + (step - (step - 1) % log_every - 1) * h, t0 + step * h)
        if step % save_every == 0:
            for k in range(n):
                store[counts.saved, k] = memory[at.state + k]
            counts.saved += 1
    return DONE


@internal()
def note(at, memory, tally, log, begin, end):
    """Log the impulses that contacts had from one time to another: which, begin, end, how it slides, P_N, P_F, slip."""
    m, d = at.n_contacts, at.n_tangents
    for k in range(m):
        if memory[at.sums + k] > LEAST * memory[at.most]:
            row = log[tally[LOGGED]]
            row[0], row[1], row[2], row[3], row[4] = k, begin, end, 0.0, memory[at.sums + k]
            if d == 1 and abs(memory[at.impulses + m + k]) >= (1.0 - ON_CIRCLE) * memory[at.bound + k]:
                row[3] = np.sign(memory[at.slip + k])
            for j in range(d):
                row[5 + j] = memory[at.sums + m + d * k + j]
                row[5 + d + j] = memory[at.slip + d * k + j]
            tally[LOGGED] += 1
        memory[at.sums + k] = 0.0
        for j in range(d):
            memory[at.sums + m + d * k + j] = 0.0
