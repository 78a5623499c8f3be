"""Compiled loops over the steps of a recorded run: derivatives pushed forwards, or their transposes pulled backwards.

A row of the record holds, for each substep, the state that it starts from and its unknowns. Like the driver, nothing here
depends on a model: kernels are addresses, matrices are tables (`compiler._linearised`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.engine._compiled import compiled
from dalembert.engine._dense_solve import eliminate_dense, equilibrate, substitute_dense
from dalembert.engine._driver import DONE, advance
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._sparse_solve import (
    COLUMN,
    COLUMNS,
    DIAGONAL,
    FILLED,
    ROW_START,
    ROWS,
    eliminate,
    solve_sparse,
)

PLAN = np.dtype([
    (name, np.int64)
    for name in (
        "linearise", "last_kernel", "state", "x", "last", "n_state", "n_x", "n_u", "n_theta", "matrix", "last_matrix", "memory",
        "tables", "record", "F_u", "F_z", "D_u", "D_z", "n_F_u", "n_F_z", "n_D_u", "n_D_z",
        "at_F_u", "at_F_z", "at_D_u", "at_D_z",
    )
])  # fmt: skip
"""What a sweep knows about a substep: kernels, sizes, slots of its memory, and where its parts begin.

`memory`, `tables` and `record` say where its memory, tables and part of a row begin; F_u to D_z are slots of entries, n_F_u to
n_D_z their numbers, and at_F_u to at_D_z say where in its tables their rows begin, followed by their columns.
"""

INACCURATE = 1e-9
"""The backward error of a solve, after refinement, from which on the pivot order is taken to fail."""
REFINED = 1e-14
"""The backward error from which on a solution is refined."""

at = np.uintp  # an unsigned index spares Numba the test for negative ones


class Rooms(NamedTuple):
    """Memory that solves need: columns for unknowns, right-hand sides and residuals, a line, and a dense matrix."""

    z: np.ndarray
    """The state and the parameters."""
    u: np.ndarray
    rhs: np.ndarray
    rest: np.ndarray
    work: np.ndarray
    line: np.ndarray
    dense: np.ndarray


class Sweep(NamedTuple):
    """What all steps between two changes of programs or parameters share; arrays of substeps lie end to end."""

    plans: np.ndarray
    memory: np.ndarray
    tables: np.ndarray
    offsets: np.ndarray
    """Where in a step each substep begins, as a fraction."""


@compiled()
def record(steps, store, last_step, save_every, t0, h, rows, first, plans):
    """Make steps until `last_step`, each with a row that begins with that of step `first`; the driver's status."""
    memory, layouts, starts, counts = steps.memory, steps.layouts, steps.starts, steps.counts
    status = DONE
    while counts[0].steps_done < last_step:
        row = rows[counts[0].steps_done - first]
        for i in range(layouts[0].n_state):  # the last substep overwrites it
            row[i] = memory[starts[0, 0] + layouts[0].state + i]
        status = advance(steps, store, counts[0].steps_done + 1, save_every, t0, h)
        if status != DONE:
            break
        for k in range(len(layouts)):
            begin, layout, own = plans[k].record, layouts[k], starts[0, k]
            if k > 0:
                for i in range(layout.n_state):
                    row[begin + i] = memory[own + layout.state + i]
            for i in range(layout.n_x):
                row[begin + layout.n_state + i] = memory[own + layout.x + i]
    return status


@compiled()
def linearise(plan, memory, tables, row, t, work):
    """Evaluate and factor the Jacobians of a recorded substep."""
    memory[0] = t
    for i in range(plan.n_state):
        memory[plan.state + i] = row[plan.record + i]
    for i in range(plan.n_x):
        memory[plan.x + i] = row[plan.record + plan.n_state + i]
    if plan.last_matrix >= 0:
        call_kernel(plan.last_kernel, memory)
        solve_sparse(memory, tables, plan.last_matrix, work, plan.last)
    call_kernel(plan.linearise, memory)
    if plan.n_u > 0:
        eliminate(memory, tables, plan.matrix)


@compiled()
def multiply(memory, tables, entries, count, rows, given, result, sign):
    """Add a matrix times the columns of `given` to `result`; `rows` is where its entries' rows begin in the tables."""
    directions = given.shape[1]
    for k in range(count):
        value, i, j = sign * memory[at(entries + k)], tables[at(rows + k)], tables[at(rows + count + k)]
        for d in range(directions):
            result[at(i), at(d)] += value * given[at(j), at(d)]


@compiled()
def multiply_transposed(memory, tables, entries, count, rows, given, result, sign):
    """Add the transpose of a matrix times the columns of `given` to `result`."""
    directions = given.shape[1]
    for k in range(count):
        value, i, j = sign * memory[at(entries + k)], tables[at(rows + k)], tables[at(rows + count + k)]
        for d in range(directions):
            result[at(j), at(d)] += value * given[at(i), at(d)]


@compiled()
def solve_columns(memory, tables, first, rhs, x, work):
    """Add A^-1 rhs, of several columns, to x, with the factors of `eliminate`."""
    filled, row_start, diagonal = tables[first + FILLED], tables[first + ROW_START], tables[first + DIAGONAL]
    column, rows, columns = tables[first + COLUMN], tables[first + ROWS], tables[first + COLUMNS]
    size, directions = rhs.shape
    for i in range(size):
        source = tables[at(rows + i)]
        for d in range(directions):
            work[at(i), at(d)] = rhs[at(source), at(d)]
        for k in range(tables[at(row_start + i)], tables[at(diagonal + i)]):
            factor, j = memory[at(filled + k)], tables[at(column + k)]
            for d in range(directions):
                work[at(i), at(d)] -= factor * work[at(j), at(d)]
    for i in range(size - 1, -1, -1):
        middle, target = tables[at(diagonal + i)], tables[at(columns + i)]
        for k in range(middle + 1, tables[at(row_start + i + 1)]):
            factor, j = memory[at(filled + k)], tables[at(column + k)]
            for d in range(directions):
                work[at(i), at(d)] -= factor * work[at(j), at(d)]
        reciprocal = memory[at(filled + middle)]
        for d in range(directions):
            work[at(i), at(d)] *= reciprocal
            x[at(target), at(d)] += work[at(i), at(d)]


@compiled()
def solve_transposed(memory, tables, first, rhs, x, work):
    """Add A^-T rhs, of several columns, to x, with the factors of `eliminate`."""
    filled, row_start, diagonal = tables[first + FILLED], tables[first + ROW_START], tables[first + DIAGONAL]
    column, rows, columns = tables[first + COLUMN], tables[first + ROWS], tables[first + COLUMNS]
    size, directions = rhs.shape
    for i in range(size):
        source = tables[at(columns + i)]
        for d in range(directions):
            work[at(i), at(d)] = rhs[at(source), at(d)]
    for i in range(size):
        middle = tables[at(diagonal + i)]
        reciprocal = memory[at(filled + middle)]
        for d in range(directions):
            work[at(i), at(d)] *= reciprocal
        for k in range(middle + 1, tables[at(row_start + i + 1)]):
            factor, j = memory[at(filled + k)], tables[at(column + k)]
            for d in range(directions):
                work[at(j), at(d)] -= factor * work[at(i), at(d)]
    for i in range(size - 1, -1, -1):
        target = tables[at(rows + i)]
        for k in range(tables[at(row_start + i)], tables[at(diagonal + i)]):
            factor, j = memory[at(filled + k)], tables[at(column + k)]
            for d in range(directions):
                work[at(j), at(d)] -= factor * work[at(i), at(d)]
        for d in range(directions):
            x[at(target), at(d)] += work[at(i), at(d)]


@compiled()
def remaining(plan, memory, tables, rhs, x, rest, size, transposed):
    """The residual rhs - A x in `rest`, and the backward error of x (Oettli and Prager 1964), of all columns together."""
    n, directions = rhs.shape
    for i in range(n):
        size[i] = 0.0
        for d in range(directions):
            rest[at(i), at(d)] = rhs[at(i), at(d)]
            size[i] += abs(rhs[at(i), at(d)])
    for k in range(plan.n_F_u):
        value = memory[at(plan.F_u + k)]
        i, j = tables[at(plan.at_F_u + k)], tables[at(plan.at_F_u + plan.n_F_u + k)]
        if transposed:
            i, j = j, i
        for d in range(directions):
            product = value * x[at(j), at(d)]
            rest[at(i), at(d)] -= product
            size[at(i)] += abs(product)
    worst = 0.0
    for i in range(n):
        total = 0.0
        for d in range(directions):
            total += abs(rest[at(i), at(d)])
        if not total <= worst * size[i]:  # nan counts
            worst = total / size[i] if size[i] > 0.0 else np.inf
    return worst


@compiled()
def solve_pivoting(plan, memory, tables, rhs, x, rooms, transposed):
    """The same with pivots for just this matrix: dense elimination, for the columns one by one."""
    n, dense, line = plan.n_u, rooms.dense, rooms.line
    if len(dense) < n * (n + 3):
        return False
    for k in range(n * n):
        dense[k] = 0.0
    for k in range(plan.n_F_u):
        i, j = tables[plan.at_F_u + k], tables[plan.at_F_u + plan.n_F_u + k]
        dense[n * j + i if transposed else n * i + j] = memory[plan.F_u + k]
    scales, pivots = n * n, n * n + 2 * n
    equilibrate(dense, 0, scales, n)
    if not eliminate_dense(dense, 0, pivots, n):
        return False
    for d in range(rhs.shape[1]):
        for i in range(n):
            line[i] = rhs[i, d] * dense[scales + i]
        substitute_dense(dense, 0, pivots, n, line)
        for i in range(n):
            x[i, d] = line[i] * dense[scales + n + i]
    return True


@compiled()
def solve_refined(plan, memory, tables, rhs, x, rooms, transposed):
    """A^-1 rhs, or A^-T rhs, in x, refined where that is worth it; False if there is no solution."""
    n = plan.n_u
    rest, work = rooms.rest[:n], rooms.work[:n]
    for i in range(n):
        for d in range(rhs.shape[1]):
            x[i, d] = 0.0
            rest[i, d] = rhs[i, d]
    if n == 0:
        return True
    error = np.inf
    for _ in range(4):
        if transposed:
            solve_transposed(memory, tables, plan.matrix, rest, x, work)
        else:
            solve_columns(memory, tables, plan.matrix, rest, x, work)
        error = remaining(plan, memory, tables, rhs, x, rest, rooms.line, transposed)
        if error <= REFINED:
            return True
    return error <= INACCURATE or solve_pivoting(plan, memory, tables, rhs, x, rooms, transposed)


@compiled()
def push(sweep, rows, begin, end, first, t0, h, S, seeds, rooms, saved, every, n_saved):
    """Push derivatives S of the state, a column a direction, through the steps `begin` to `end`; where that ends.

    `first` is the step of the first row, `seeds` are the derivatives of the parameters. After every `every` steps S goes to
    `saved`, of which `n_saved` are there already.
    """
    n_state, directions = S.shape
    for step in range(begin, end):
        for k in range(len(sweep.plans)):
            plan = sweep.plans[k]
            memory, tables = sweep.memory[plan.memory :], sweep.tables[plan.tables :]
            linearise(plan, memory, tables, rows[step - first], t0 + (step + sweep.offsets[k]) * h, rooms.line)
            z, rhs, u = rooms.z, rooms.rhs[: plan.n_u], rooms.u[: plan.n_u]
            for d in range(directions):
                for i in range(n_state):
                    z[i, d] = S[i, d]
                for i in range(len(seeds)):
                    z[n_state + i, d] = seeds[i, d]
                for i in range(plan.n_u):
                    rhs[i, d] = 0.0
            multiply(memory, tables, plan.F_z, plan.n_F_z, plan.at_F_z, z, rhs, -1.0)
            if not solve_refined(plan, memory, tables, rhs, u, rooms, False):
                return step, n_saved
            multiply(memory, tables, plan.D_u, plan.n_D_u, plan.at_D_u, u, S, 1.0)
            multiply(memory, tables, plan.D_z, plan.n_D_z, plan.at_D_z, z, S, 1.0)
        if every > 0 and (step + 1) % every == 0:
            for i in range(n_state):
                for d in range(directions):
                    saved[n_saved, i, d] = S[i, d]
            n_saved += 1
    return end, n_saved


@compiled()
def pull(sweep, rows, begin, end, first, t0, h, covector, forces, of_parameters, rooms):
    """Pull a covector of the state back from step `end` to `begin`, by the transposes of the steps; where that ends.

    forces[k - begin] is added to it before step k is pulled; what it gives to the parameters is added to `of_parameters`.
    """
    n_state = len(covector)
    for step in range(end - 1, begin - 1, -1):
        for i in range(n_state):
            covector[i, 0] += forces[step - begin, i]
        for back in range(len(sweep.plans)):
            k = len(sweep.plans) - 1 - back
            plan = sweep.plans[k]
            memory, tables = sweep.memory[plan.memory :], sweep.tables[plan.tables :]
            linearise(plan, memory, tables, rows[step - first], t0 + (step + sweep.offsets[k]) * h, rooms.line)
            z, rhs, u = rooms.z, rooms.rhs[: plan.n_u], rooms.u[: plan.n_u]
            for i in range(plan.n_u):
                rhs[i, 0] = 0.0
            for i in range(len(z)):
                z[i, 0] = covector[i, 0] if i < n_state else 0.0
            multiply_transposed(memory, tables, plan.D_u, plan.n_D_u, plan.at_D_u, covector, rhs, 1.0)
            if not solve_refined(plan, memory, tables, rhs, u, rooms, True):
                return step
            multiply_transposed(memory, tables, plan.D_z, plan.n_D_z, plan.at_D_z, covector, z, 1.0)
            multiply_transposed(memory, tables, plan.F_z, plan.n_F_z, plan.at_F_z, u, z, -1.0)
            for i in range(n_state):
                covector[i, 0] = z[i, 0]
            for i in range(len(of_parameters)):
                of_parameters[i] += z[n_state + i, 0]
    return begin
