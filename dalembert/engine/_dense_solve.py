"""The way out of a step in which the fixed pivot order fails: dense elimination with partial pivoting, in compiled code.

A driver's layout says in `straight_line` how increments are computed: 0 and 1 are the program's own elimination, at run time
and in straight-line code; while `PIVOTING` is added, the full matrix is eliminated, its rows and columns scaled, with pivots
for just this matrix.
"""

from __future__ import annotations

import numpy as np
from numba import types

from dalembert.engine._apart import apart
from dalembert.engine._compiled import internal
from dalembert.engine._kernel_call import call_kernel

NOISE_SLOT = 3
PIVOTING = 2
PIVOTED_STEPS = 64
"""After how many steps with dense elimination, at most, the program's own order is tried again: after as many as there were."""

at = np.uintp  # an unsigned index spares Numba the test for negative ones

DISAGREE = 1e-3
"""How far the increment in the fixed order may be off the one with pivots of its own before the order is taken to fail."""


@internal()
def largest_of(memory, first, count):
    """The largest absolute value of some slots."""
    result = 0.0
    for k in range(count):
        result = max(result, abs(memory[first + k]))
    return result


@apart("void", "numbers", "int64", "int64", "int64")
def equilibrate(memory, matrix, scales, n):
    """Scale rows and columns of a matrix in turn, so that their units do not matter (Ruiz 2001); first come scales of rows."""
    for i in range(2 * n):
        memory[scales + i] = 1.0
    for _ in range(3):
        for first, across, along in ((scales, n, 1), (scales + n, 1, n)):
            for i in range(n):
                largest = 0.0
                for j in range(n):
                    largest = max(largest, abs(memory[matrix + i * across + j * along]))
                factor = 1.0 / np.sqrt(largest) if largest > 0.0 else 1.0
                memory[first + i] *= factor
                for j in range(n):
                    memory[matrix + i * across + j * along] *= factor


@apart("boolean", "numbers", "int64", "int64", "int64")
def eliminate_dense(memory, matrix, pivots, n):
    """LU of a matrix, row by row, with row exchanges, noted from slot `pivots` on; False if it is singular or not finite."""
    for k in range(n):
        pivot, largest = k, abs(memory[matrix + n * k + k])
        for i in range(k + 1, n):
            if abs(memory[matrix + n * i + k]) > largest:
                pivot, largest = i, abs(memory[matrix + n * i + k])
        if not 0.0 < largest < np.inf:
            return False
        memory[pivots + k] = pivot
        if pivot != k:
            for j in range(n):
                swapped = memory[matrix + n * k + j]
                memory[matrix + n * k + j] = memory[matrix + n * pivot + j]
                memory[matrix + n * pivot + j] = swapped
        for i in range(k + 1, n):
            factor = memory[matrix + n * i + k] / memory[matrix + n * k + k]
            memory[matrix + n * i + k] = factor
            if factor != 0.0:
                for j in range(k + 1, n):
                    memory[at(matrix + n * i + j)] -= factor * memory[at(matrix + n * k + j)]
    return True


@internal()  # `work` may be a column of a matrix
def substitute_dense(memory, matrix, pivots, n, work):
    """Solve with the factors of `eliminate_dense`, over the right-hand side in `work`."""
    for k in range(n):
        pivot = int(memory[pivots + k])
        swapped = work[k]
        work[k] = work[pivot]
        work[pivot] = swapped
    for i in range(n):
        for j in range(i):
            work[at(i)] -= memory[at(matrix + n * i + j)] * work[at(j)]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            work[at(i)] -= memory[at(matrix + n * i + j)] * work[at(j)]
        work[i] /= memory[matrix + n * i + i]


@apart("void", "substep")
def factorize_dense(sub):
    """LU of the matrix at the current unknowns; behind it lie the scales of its rows and columns, and its pivots."""
    layout, tables, memory = sub.layout, sub.tables, sub.memory
    call_kernel(sub.kernels.entries, memory)
    n, entries = layout.n_x, layout.dense
    matrix = entries + layout.n_entries
    for k in range(n * n):
        memory[matrix + k] = 0.0
    for k in range(layout.n_entries):
        memory[matrix + n * tables[layout.entry_row + k] + tables[layout.entry_column + k]] = memory[entries + k]
    equilibrate(memory, matrix, matrix + n * n, n)
    if not eliminate_dense(memory, matrix, matrix + n * n + 2 * n, n):
        memory[matrix + n * n - 1] = np.nan  # so is every increment, which ends the iteration


@apart("float64", "substep")
def dense_increment(sub):
    """One Newton iteration with the factors of `factorize_dense`; the squared size of the increment, which stays in `work`."""
    layout, memory, work = sub.layout, sub.memory, sub.work
    call_kernel(sub.kernels.residual, memory)
    n, matrix = layout.n_x, layout.dense + layout.n_entries
    row_scale, column_scale, pivots = matrix + n * n, matrix + n * n + n, matrix + n * n + 2 * n
    for i in range(n):
        work[i] = memory[layout.residual + i] * memory[row_scale + i]
    substitute_dense(memory, matrix, pivots, n, work)
    total = 0.0
    for i in range(n):
        work[i] *= memory[column_scale + i]
        memory[layout.x + i] -= work[i]
        total += memory[layout.weights + i] * work[i] * work[i]
    return total


@apart(types.UniTuple(types.boolean, 2), "substep")
def order_fails(sub):
    """Whether the increment in the fixed order, by which the unknowns in memory differ from their guess, is not the right one.

    Besides, whether that is certain: not from a guess so good that what is compared are rounding errors. The
    unknowns are put back to their guess, at which the factors of `factorize_dense` are left.
    """
    layout, memory, guess, work = sub.layout, sub.memory, sub.guess, sub.work
    n, x = layout.n_x, layout.x
    column_scale = layout.dense + layout.n_entries + n * n + n
    fixed = column_scale + 2 * n
    for k in range(n):
        memory[fixed + k] = guess[k] - memory[x + k]
        memory[x + k] = guess[k]
    factorize_dense(sub)
    certain = dense_increment(sub) * DISAGREE * DISAGREE > memory[NOISE_SLOT]
    size, difference = 0.0, 0.0
    for k in range(n):
        memory[x + k] = guess[k]
        size = max(size, abs(work[k]) / memory[column_scale + k])
        apart = abs(memory[fixed + k] - work[k]) / memory[column_scale + k]
        difference = np.inf if np.isnan(apart) else max(difference, apart)
    return difference > DISAGREE * size, certain
