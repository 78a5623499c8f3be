"""Products and solves with the Jacobians of a step, whose entries lie in memory and whose patterns are tables.

Solves use the factors of `engine._sparse_solve`, forwards for `WIDTH` directions at once and backwards for one. They are
refined; where the pivot order fails, a dense matrix is eliminated with pivots of its own.

Unknowns that vanish, as those across the plane or axis of a motion do, are left with rounding errors of the others. Rows in
which there is nothing else have a backward error of size one in any order. So an order fails only if the error of the whole
system is large, too, with rows and columns of one size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.compiler._differential import WIDTH
from dalembert.engine._compiled import compiled
from dalembert.engine._dense_solve import eliminate_dense, equilibrate, substitute_dense
from dalembert.engine._iteration import inlined
from dalembert.engine._sparse_solve import COLUMN, COLUMNS, DIAGONAL, FILLED, ROW_START, ROWS

INACCURATE = 1e-9
"""The backward error of a solve, after refinement, from which on the pivot order is taken to fail, ..."""
AS_A_WHOLE = 1e-12
"""... if that of the whole system, which pivots of its own make as small as round-off, is larger than this."""
REFINED = 1e-14
"""The backward error from which on a solution is refined, ..."""
REFINEMENTS = 4
"""... at most so often."""
SWEEPS = 3
"""How often rows and columns are scaled in turn."""

at = np.uintp  # an unsigned index spares Numba the test for negative ones


class Rooms(NamedTuple):
    """Memory that solves need: columns for unknowns, right-hand sides, residuals and their sizes, a line, a dense matrix."""

    z: np.ndarray
    """The state and the parameters."""
    u: np.ndarray
    rhs: np.ndarray
    rest: np.ndarray
    work: np.ndarray
    size: np.ndarray
    line: np.ndarray
    scales: np.ndarray
    """Of rows, then of columns."""
    dense: np.ndarray


@inlined
def add_multiple(result, i, factor, given, j):
    """Add a multiple of a row of `given` to one of `result`, all loads before all stores, so that it is done in one vector."""
    a, b, c, d = given[at(j), 0], given[at(j), 1], given[at(j), 2], given[at(j), 3]
    A, B, C, D = result[at(i), 0], result[at(i), 1], result[at(i), 2], result[at(i), 3]
    A, B, C, D = A + factor * a, B + factor * b, C + factor * c, D + factor * d
    result[at(i), 0], result[at(i), 1], result[at(i), 2], result[at(i), 3] = A, B, C, D


@compiled()
def multiply(memory, tables, entries, count, rows, given, result, sign):
    """Add a matrix times the columns of `given` to `result`; `rows` is where its entries' rows begin in the tables."""
    for k in range(count):
        add_multiple(result, tables[at(rows + k)], sign * memory[at(entries + k)], given, tables[at(rows + count + k)])


@compiled()
def multiply_transposed(memory, tables, entries, count, rows, given, result, sign):
    """Add the transpose of a matrix times `given` to `result`."""
    for k in range(count):
        value, i, j = sign * memory[at(entries + k)], tables[at(rows + k)], tables[at(rows + count + k)]
        result[at(j)] += value * given[at(i)]


@compiled()
def solve_columns(memory, tables, first, rhs, x, work):
    """Add A^-1 rhs to x, with the factors of `eliminate`."""
    filled, row_start, diagonal = tables[first + FILLED], tables[first + ROW_START], tables[first + DIAGONAL]
    column, rows, columns = tables[first + COLUMN], tables[first + ROWS], tables[first + COLUMNS]
    size = len(rhs)
    for i in range(size):
        source = tables[at(rows + i)]
        for d in range(WIDTH):
            work[at(i), at(d)] = rhs[at(source), at(d)]
        for k in range(tables[at(row_start + i)], tables[at(diagonal + i)]):
            add_multiple(work, i, -memory[at(filled + k)], work, tables[at(column + k)])
    for i in range(size - 1, -1, -1):
        middle, target = tables[at(diagonal + i)], tables[at(columns + i)]
        for k in range(middle + 1, tables[at(row_start + i + 1)]):
            add_multiple(work, i, -memory[at(filled + k)], work, tables[at(column + k)])
        reciprocal = memory[at(filled + middle)]
        for d in range(WIDTH):
            work[at(i), at(d)] *= reciprocal
            x[at(target), at(d)] += work[at(i), at(d)]


@compiled()
def solve_transposed(memory, tables, first, rhs, x, work):
    """Add A^-T rhs to x, with the factors of `eliminate`."""
    filled, row_start, diagonal = tables[first + FILLED], tables[first + ROW_START], tables[first + DIAGONAL]
    column, rows, columns = tables[first + COLUMN], tables[first + ROWS], tables[first + COLUMNS]
    size = len(rhs)
    for i in range(size):
        work[at(i)] = rhs[at(tables[at(columns + i)])]
    for i in range(size):
        middle = tables[at(diagonal + i)]
        value = work[at(i)] * memory[at(filled + middle)]
        work[at(i)] = value
        for k in range(middle + 1, tables[at(row_start + i + 1)]):
            work[at(tables[at(column + k)])] -= memory[at(filled + k)] * value
    for i in range(size - 1, -1, -1):
        value = work[at(i)]
        for k in range(tables[at(row_start + i)], tables[at(diagonal + i)]):
            work[at(tables[at(column + k)])] -= memory[at(filled + k)] * value
        x[at(tables[at(rows + i)])] += value


@compiled()
def largest_ratio(rest, size, n):
    """The largest of |rest_i| / size_i, the backward error of Oettli and Prager (1964); infinite where it is not a number."""
    worst = 0.0
    for i in range(n):
        if not abs(rest[at(i)]) <= worst * size[at(i)]:
            worst = abs(rest[at(i)]) / size[at(i)] if size[at(i)] > 0.0 else np.inf
    return worst if worst == worst else np.inf


@compiled()
def remaining(plan, memory, tables, rhs, x, rest, size):
    """The residual rhs - A x in `rest`, and the largest of the backward errors of the columns of x."""
    for i in range(plan.n_u):
        for d in range(WIDTH):
            rest[at(i), at(d)] = rhs[at(i), at(d)]
            size[at(i), at(d)] = abs(rhs[at(i), at(d)])
    for k in range(plan.n_F_u):
        value, i = memory[at(plan.F_u + k)], tables[at(plan.at_F_u + k)]
        j = tables[at(plan.at_F_u + plan.n_F_u + k)]
        for d in range(WIDTH):
            size[at(i), at(d)] += abs(value * x[at(j), at(d)])
        add_multiple(rest, i, -value, x, j)
    worst = 0.0
    for d in range(WIDTH):
        worst = max(worst, largest_ratio(rest[:, d], size[:, d], plan.n_u))
    return worst


@compiled()
def remaining_transposed(plan, memory, tables, rhs, x, rest, size):
    """The residual rhs - A^T x in `rest`, and the backward error of x."""
    for i in range(plan.n_u):
        size[at(i)], rest[at(i)] = abs(rhs[at(i)]), rhs[at(i)]
    for k in range(plan.n_F_u):
        j, i = tables[at(plan.at_F_u + k)], tables[at(plan.at_F_u + plan.n_F_u + k)]
        product = memory[at(plan.F_u + k)] * x[at(j)]
        size[at(i)] += abs(product)
        rest[at(i)] -= product
    return largest_ratio(rest, size, plan.n_u)


@compiled()
def equilibrate_entries(plan, memory, tables, scales, line):
    """Factors by which rows, then columns, of F_u get largest entries of about 1 (Ruiz 2001)."""
    n = plan.n_u
    for i in range(2 * n):
        scales[i] = 1.0
    for _ in range(SWEEPS):
        for own in range(2):
            for i in range(n):
                line[i] = 0.0
            for k in range(plan.n_F_u):
                i, j = tables[plan.at_F_u + k], tables[plan.at_F_u + plan.n_F_u + k]
                mine = j if own else i
                line[mine] = max(line[mine], abs(memory[plan.F_u + k]) * scales[i] * scales[n + j])
            for i in range(n):
                if line[i] > 0.0:
                    scales[own * n + i] /= np.sqrt(line[i])


@compiled()
def as_a_whole(rhs, x, rest, of_rows, of_columns):
    """The largest residual relative to the largest unknown and right-hand side, all scaled; infinite if it is not a number."""
    left, size = 0.0, 0.0
    for i in range(len(of_rows)):
        size = max(size, abs(x[i]) / of_columns[i], abs(rhs[i]) * of_rows[i])
        if not abs(rest[i]) < np.inf:
            return np.inf
        left = max(left, abs(rest[i]) * of_rows[i])
    return left / size if left > 0.0 else 0.0


@compiled()
def factor_pivoting(plan, memory, tables, dense, transposed):
    """Dense factors of F_u, or of its transpose, with pivots for just this matrix; False if it is singular or too large."""
    n = plan.n_u
    if len(dense) < n * (n + 3):
        return False
    for k in range(n * n):
        dense[k] = 0.0
    for k in range(plan.n_F_u):
        i, j = tables[plan.at_F_u + k], tables[plan.at_F_u + plan.n_F_u + k]
        dense[n * j + i if transposed else n * i + j] = memory[plan.F_u + k]
    equilibrate(dense, 0, n * n, n)
    return eliminate_dense(dense, 0, n * n + 2 * n, n)


@compiled()
def solve_pivoting(dense, n, line):
    """Solve with the factors of `factor_pivoting`, over the right-hand side in `line`."""
    for i in range(n):
        line[i] *= dense[n * n + i]
    substitute_dense(dense, 0, n * n + 2 * n, n, line)
    for i in range(n):
        line[i] *= dense[n * n + n + i]


@compiled()
def solve_forward(plan, memory, tables, rooms):
    """F_u^-1 rhs in u, refined where that is worth it; False if there is no solution."""
    n, rhs, u, rest = plan.n_u, rooms.rhs, rooms.u, rooms.rest
    for i in range(n):
        for d in range(WIDTH):
            u[at(i), at(d)] = 0.0
            rest[at(i), at(d)] = rhs[at(i), at(d)]
    error = np.inf
    for _ in range(REFINEMENTS):
        solve_columns(memory, tables, plan.matrix, rest[:n], u, rooms.work)
        error = remaining(plan, memory, tables, rhs, u, rest, rooms.size)
        if error <= REFINED:
            return True
    if error <= INACCURATE:
        return True
    equilibrate_entries(plan, memory, tables, rooms.scales, rooms.line)
    error = 0.0
    for d in range(WIDTH):
        error = max(error, as_a_whole(rhs[:, d], u[:, d], rest[:, d], rooms.scales[:n], rooms.scales[n : 2 * n]))
    if error <= AS_A_WHOLE:
        return True
    if not factor_pivoting(plan, memory, tables, rooms.dense, False):
        return False
    for d in range(WIDTH):
        for i in range(n):
            rooms.line[i] = rhs[i, d]
        solve_pivoting(rooms.dense, n, rooms.line)
        for i in range(n):
            u[i, d] = rooms.line[i]
    return True


@compiled()
def solve_backward(plan, memory, tables, rooms, rhs, u, rest):
    """F_u^-T rhs in u, refined where that is worth it; False if there is no solution."""
    n = plan.n_u
    for i in range(n):
        u[at(i)], rest[at(i)] = 0.0, rhs[at(i)]
    error = np.inf
    for _ in range(REFINEMENTS):
        solve_transposed(memory, tables, plan.matrix, rest[:n], u, rooms.line)
        error = remaining_transposed(plan, memory, tables, rhs, u, rest, rooms.size[:, 0])
        if error <= REFINED:
            return True
    if error <= INACCURATE:
        return True
    equilibrate_entries(plan, memory, tables, rooms.scales, rooms.line)
    if as_a_whole(rhs, u, rest, rooms.scales[n : 2 * n], rooms.scales[:n]) <= AS_A_WHOLE:
        return True
    if not factor_pivoting(plan, memory, tables, rooms.dense, True):
        return False
    for i in range(n):
        u[i] = rhs[i]
    solve_pivoting(rooms.dense, n, u)
    return True
