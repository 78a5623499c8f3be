"""Newton's iteration for small systems of equations with dense matrices: the events of a run.

Like the driver, this knows no model: kernels are addresses, memory is one array, and its layout comes as integers.
"""

from __future__ import annotations

import numpy as np

from dalembert.engine._driver import compiled
from dalembert.engine._kernel_call import call_kernel

# columns of a row of `solves`
SIZE, GUESS, RESIDUAL, MATRIX, BLOCKS, FIRST_BLOCK = range(6)
# slots of memory
(N, M, STATE, HIT, AHEAD, PHI, RATE, SLACK, STRENGTH, DELTA, AFTER, TANGENT, X, F, A) = range(15)
N_SLOTS = 15


@compiled
def factor_dense(memory, a, n, pivots):
    """LU of an n x n matrix in memory, row by row, with row exchanges; False if it is singular or not finite."""
    for k in range(n):
        best, largest = k, abs(memory[a + k * n + k])
        for i in range(k + 1, n):
            if abs(memory[a + i * n + k]) > largest:
                best, largest = i, abs(memory[a + i * n + k])
        if not 0.0 < largest < np.inf:
            return False
        pivots[k] = best
        if best != k:
            for j in range(n):
                memory[a + k * n + j], memory[a + best * n + j] = memory[a + best * n + j], memory[a + k * n + j]
        for i in range(k + 1, n):
            factor = memory[a + i * n + k] / memory[a + k * n + k]
            memory[a + i * n + k] = factor
            if factor != 0.0:
                for j in range(k + 1, n):
                    memory[a + i * n + j] -= factor * memory[a + k * n + j]
    return True


@compiled
def solve_dense(memory, a, b, n, pivots):
    """Solve with the factors of `factor_dense`, over the right-hand side in memory."""
    for k in range(n):
        if pivots[k] != k:
            memory[b + k], memory[b + pivots[k]] = memory[b + pivots[k]], memory[b + k]
        for j in range(k):
            memory[b + k] -= memory[a + k * n + j] * memory[b + j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            memory[b + k] -= memory[a + k * n + j] * memory[b + j]
        memory[b + k] /= memory[a + k * n + k]


@compiled
def largest_of(memory, first, count):
    """The largest absolute value of some slots."""
    largest = 0.0
    for k in range(count):
        largest = max(largest, abs(memory[first + k]))
    return largest


@compiled
def newton(row, memory, slots, pivots, dt):
    """Solve one system of equations from the guess in memory to round-off.

    The matrix, which need not be the exact Jacobian, is renewed until the increments are small. Increments are measured by
    blocks, relative to the block or, where that is small, to |q|/dt, |p| or 1.
    """
    n, x, f, a = row[SIZE], slots[X], slots[F], slots[A]
    if n == 0:
        return True
    positions = largest_of(memory, slots[STATE], slots[N]) / dt
    momenta = largest_of(memory, slots[STATE] + slots[N], slots[N])
    previous, fresh = np.inf, True
    for _ in range(60):
        call_kernel(row[RESIDUAL], memory)
        if fresh:
            call_kernel(row[MATRIX], memory)
            if not factor_dense(memory, a, n, pivots):
                return False
        solve_dense(memory, a, f, n, pivots)
        size, first = 0.0, 0
        for block in range(row[BLOCKS]):
            count, kind = row[FIRST_BLOCK + 2 * block], row[FIRST_BLOCK + 2 * block + 1]
            floor = positions if kind == 0 else momenta if kind == 1 else 1.0
            scale = largest_of(memory, x + first, count) + 1e-4 * floor + 1e-300
            size = max(size, largest_of(memory, f + first, count) / scale)
            first += count
        for k in range(n):
            memory[x + k] -= memory[f + k]
        if not np.isfinite(size + largest_of(memory, f, n)):
            return False
        if size <= 4e-16 or (size <= 1e-9 and size >= previous / 4):
            return True
        fresh = size > 1e-6 or size > 1e-2 * previous
        previous = size
    return False
