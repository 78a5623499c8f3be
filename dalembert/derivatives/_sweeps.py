"""Compiled loops over the steps of a recorded run: derivatives pushed forwards, or their transposes pulled backwards.

A row of the record holds, for each substep, the state that it starts from and its unknowns. Like the driver, nothing here
depends on a model: kernels are addresses, matrices are tables (`compiler._linearised`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.compiler._differential import WIDTH
from dalembert.derivatives._table_solves import multiply, multiply_transposed, solve_backward, solve_forward
from dalembert.engine._compiled import compiled
from dalembert.engine._driver import DONE, advance
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._sparse_solve import eliminate, solve_sparse

PLAN = np.dtype([
    (name, np.int64)
    for name in (
        "linearise", "last_kernel", "state", "x", "last", "n_state", "n_x", "n_u", "matrix", "last_matrix", "memory",
        "tables", "record", "F_u", "F_z", "D_u", "D_z", "n_F_u", "n_F_z", "n_D_u", "n_D_z",
        "at_F_u", "at_F_z", "at_D_u", "at_D_z",
    )
])  # fmt: skip
"""What a sweep knows about a substep: kernels, sizes, slots of its memory, and where its parts begin.

`memory`, `tables` and `record` say where its memory, tables and part of a row begin; F_u to D_z are slots of entries, n_F_u to
n_D_z their numbers, and at_F_u to at_D_z say where in its tables their rows begin, followed by their columns.
"""

at = np.uintp  # an unsigned index spares Numba the test for negative ones


class Sweep(NamedTuple):
    """What all steps between two changes of programs or parameters share; arrays of substeps lie end to end."""

    plans: np.ndarray
    memory: np.ndarray
    tables: np.ndarray
    offsets: np.ndarray
    """Where in a step each substep begins, as a fraction."""


@compiled()
def record(steps, store, last_step, save_every, t0, h, rows, first, columns):
    """Make steps until `last_step`, rows beginning with that of step `first`; the driver's status.

    A substep's part of a row begins at its entry of `columns`.
    """
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
            begin, layout, own = columns[k], layouts[k], starts[0, k]
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
def copy(given, result):
    """Copy numbers; assigning slices would need Numba's run-time."""
    for i in range(len(result)):
        result[i] = given[i]


@compiled()
def copy_groups(given, result):
    """Copy groups of directions."""
    for group in range(len(result)):
        for i in range(result.shape[1]):
            copy(given[group, i], result[group, i])


@compiled()
def push(sweep, rows, begin, end, first, t0, h, S, seeds, before, rooms, saved, every, n_saved):
    """Push derivatives S of the state through the steps `begin` to `end`; where that ends, and how many are saved.

    Derivatives come in groups of `WIDTH` directions: S[group, variable, direction], and the same for `seeds`, those of the
    parameters. `first` is the step of the first row. After every `every` steps S goes to `saved`. Where a step cannot be
    solved, S is that before it, for which `before` is room.
    """
    n_groups, n_state, n_chosen = len(S), S.shape[1], seeds.shape[1]
    for step in range(begin, end):
        copy_groups(S, before)
        for k in range(len(sweep.plans)):
            plan = sweep.plans[k]
            memory, tables = sweep.memory[plan.memory :], sweep.tables[plan.tables :]
            linearise(plan, memory, tables, rows[step - first], t0 + (step + sweep.offsets[k]) * h, rooms.line)
            for group in range(n_groups):
                own, z, rhs = S[group], rooms.z, rooms.rhs
                for d in range(WIDTH):
                    for i in range(n_state):
                        z[at(i), at(d)] = own[at(i), at(d)]
                    for i in range(n_chosen):
                        z[at(n_state + i), at(d)] = seeds[group, at(i), at(d)]
                    for i in range(plan.n_u):
                        rhs[at(i), at(d)] = 0.0
                multiply(memory, tables, plan.F_z, plan.n_F_z, plan.at_F_z, z, rhs, -1.0)
                if not solve_forward(plan, memory, tables, rooms):
                    copy_groups(before, S)
                    return step, n_saved
                multiply(memory, tables, plan.D_u, plan.n_D_u, plan.at_D_u, rooms.u, own, 1.0)
                multiply(memory, tables, plan.D_z, plan.n_D_z, plan.at_D_z, z, own, 1.0)
        if every > 0 and (step + 1) % every == 0:
            for group in range(n_groups):
                for i in range(n_state):
                    for d in range(WIDTH):
                        saved[group, n_saved, i, d] = S[group, i, d]
            n_saved += 1
    return end, n_saved


@compiled()
def pull(sweep, rows, begin, end, first, t0, h, covector, forces, of_parameters, before, rooms):
    """Pull a covector of the state back from step `end` to `begin`, by the transposes of the steps; where that ends.

    forces[k - begin] is added to it before step k is pulled; what it gives to the parameters is added to `of_parameters`.
    Where a step cannot be solved, both are those before it, for which `before` is room.
    """
    n_state = len(covector)
    z, rhs, u, rest = rooms.z[:, 0], rooms.rhs[:, 0], rooms.u[:, 0], rooms.rest[:, 0]
    for step in range(end - 1, begin - 1, -1):
        copy(covector, before[:n_state])
        copy(of_parameters, before[n_state:])
        for i in range(n_state):
            covector[i] += forces[step - begin, i]
        for back in range(len(sweep.plans)):
            k = len(sweep.plans) - 1 - back
            plan = sweep.plans[k]
            memory, tables = sweep.memory[plan.memory :], sweep.tables[plan.tables :]
            linearise(plan, memory, tables, rows[step - first], t0 + (step + sweep.offsets[k]) * h, rooms.line)
            for i in range(plan.n_u):
                rhs[i] = 0.0
            for i in range(len(z)):
                z[i] = covector[i] if i < n_state else 0.0
            multiply_transposed(memory, tables, plan.D_u, plan.n_D_u, plan.at_D_u, covector, rhs, 1.0)
            if not solve_backward(plan, memory, tables, rooms, rhs, u, rest):
                copy(before[:n_state], covector)
                copy(before[n_state:], of_parameters)
                return step + 1
            multiply_transposed(memory, tables, plan.D_z, plan.n_D_z, plan.at_D_z, covector, z, 1.0)
            multiply_transposed(memory, tables, plan.F_z, plan.n_F_z, plan.at_F_z, u, z, -1.0)
            for i in range(n_state):
                covector[i] = z[i]
            for i in range(len(of_parameters)):
                of_parameters[i] += z[n_state + i]
    return begin
