"""Compiled loops over the steps of a recorded run, for programs whose derivatives are kernels (`compiler._differential`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.compiler._differential import WIDTH
from dalembert.engine._compiled import compiled
from dalembert.engine._kernel_call import call_kernel

KERNEL_PLAN = np.dtype([
    (name, np.int64) for name in ("address", "memory", "error", "state", "n_state", "x", "n_x", "z", "n_z", "record")
])  # fmt: skip
"""What a sweep knows about a substep: its kernel, where its memory and its part of a row begin, slots and sizes."""

ACCEPTED = 1e-6
"""The backward error of a solve, before its refinement, from which on the pivot order is taken to fail."""

at = np.uintp  # an unsigned index spares Numba the test for negative ones


class KernelSweep(NamedTuple):
    """Substeps with their memories end to end, and where in a step each begins, as a fraction."""

    plans: np.ndarray
    memory: np.ndarray
    offsets: np.ndarray


@compiled()
def push_by_kernels(sweep, rows, begin, end, first, t0, h, S, seeds, before, saved, every, n_saved):
    """`_sweeps.push` for such programs and one group of directions; a step that is given up is left as it was before."""
    n_state = len(S)
    for step in range(begin, end):
        row = rows[step - first]
        for i in range(n_state):
            for d in range(WIDTH):
                before[at(i), at(d)] = S[at(i), at(d)]
        for k in range(len(sweep.plans)):
            plan = sweep.plans[k]
            memory, t = sweep.memory[plan.memory :], t0 + (step + sweep.offsets[k]) * h
            for d in range(WIDTH):
                memory[at(d)] = t
            for i in range(plan.n_state):
                for d in range(WIDTH):
                    memory[at((plan.state + i) * WIDTH + d)] = row[at(plan.record + i)]
                    memory[at((plan.z + i) * WIDTH + d)] = S[at(i), at(d)]
            for i in range(plan.n_x):
                for d in range(WIDTH):
                    memory[at((plan.x + i) * WIDTH + d)] = row[at(plan.record + plan.n_state + i)]
            for i in range(plan.n_z - n_state):
                for d in range(WIDTH):
                    memory[at((plan.z + n_state + i) * WIDTH + d)] = seeds[at(i), at(d)]
            call_kernel(plan.address, memory)
            worst = 0.0
            for d in range(WIDTH):
                if not memory[at(plan.error * WIDTH + d)] <= ACCEPTED:
                    worst = np.inf
            if worst > 0.0:
                for i in range(n_state):
                    for d in range(WIDTH):
                        S[i, d] = before[i, d]
                return step, n_saved
            for i in range(n_state):
                for d in range(WIDTH):
                    S[at(i), at(d)] = memory[at((plan.z + i) * WIDTH + d)]
        if every > 0 and (step + 1) % every == 0:
            for i in range(n_state):
                for d in range(WIDTH):
                    saved[n_saved, i, d] = S[i, d]
            n_saved += 1
    return end, n_saved


@compiled()
def pull_by_kernels(sweep, rows, begin, end, first, t0, h, covector, forces, of_parameters, before):
    """`_sweeps.pull` for such programs; a step that is given up is left as it was before."""
    n_state, n_chosen = len(covector), len(of_parameters)
    for step in range(end - 1, begin - 1, -1):
        for i in range(n_state):
            before[i] = covector[i]
            covector[i] += forces[step - begin, i]
        for i in range(n_chosen):
            before[n_state + i] = of_parameters[i]
        for back in range(len(sweep.plans)):
            k = len(sweep.plans) - 1 - back
            plan = sweep.plans[k]
            memory, row = sweep.memory[plan.memory :], rows[step - first]
            memory[0] = t0 + (step + sweep.offsets[k]) * h
            for i in range(plan.n_state):
                memory[at(plan.state + i)] = row[at(plan.record + i)]
            for i in range(plan.n_x):
                memory[at(plan.x + i)] = row[at(plan.record + plan.n_state + i)]
            for i in range(n_state):
                memory[at(plan.z + i)] = covector[at(i)]
            call_kernel(plan.address, memory)
            if not memory[at(plan.error)] <= ACCEPTED:
                for i in range(n_state):
                    covector[i] = before[i]
                for i in range(n_chosen):
                    of_parameters[i] = before[n_state + i]
                return step + 1
            for i in range(n_state):
                covector[at(i)] = memory[at(plan.z + i)]
            for i in range(n_chosen):
                of_parameters[at(i)] += memory[at(plan.z + n_state + i)]
    return begin


@compiled()
def call_twice(plan, sweep, row, t, dz, pair):
    """Call the kernel "pull twice" of a substep: from the change dz and both covectors, `pair`; whether its solves are good."""
    memory, n_state, n_z = sweep.memory[plan.memory :], pair.shape[1], len(dz)
    memory[0] = t
    for i in range(plan.n_state):
        memory[plan.state + i] = row[plan.record + i]
    for i in range(plan.n_x):
        memory[plan.x + i] = row[plan.record + plan.n_state + i]
    for i in range(n_z):
        memory[plan.z + i] = dz[i]
    for i in range(n_state):
        memory[plan.z + n_z + i], memory[plan.z + n_z + n_state + i] = pair[0, i], pair[1, i]
    call_kernel(plan.address, memory)
    return memory[plan.error] <= ACCEPTED


@compiled()
def pull_twice_by_kernels(sweep, rows, begin, end, first, t0, h, tangents, seeds, pair, forces, shares, changes, before):
    """Pull a covector and its change, `pair`, back from step `end` to `begin`; where that ends.

    tangents[step - first] is the change of the state before a step, `seeds` that of the parameters. forces[:, step - first]
    are added to the pair before a step is pulled, and what it gives to the parameters to `shares`. There is room for the
    changes before all substeps in `changes`; a step that is given up is left as it was `before`.
    """
    n_state, n_z, count = pair.shape[1], changes.shape[1], len(sweep.plans)
    for step in range(end - 1, begin - 1, -1):
        row, good = rows[step - first], True
        for i in range(n_z):
            for k in range(count):
                changes[k, i] = seeds[i - n_state] if i >= n_state else tangents[step - first, i]
            for which in range(2):
                before[which, i] = pair[which, i] if i < n_state else shares[which, i - n_state]
        for k in range(count - 1):  # what the substep after it begins with
            good &= call_twice(sweep.plans[k], sweep, row, t0 + (step + sweep.offsets[k]) * h, changes[k], pair)
            for i in range(n_state):
                changes[k + 1, i] = sweep.memory[sweep.plans[k].memory + sweep.plans[k].z + 2 * n_z + i]
        for which in range(2):
            for i in range(n_state):
                pair[which, i] += forces[which, step - first, i]
        for back in range(count):
            k = count - 1 - back
            good &= call_twice(sweep.plans[k], sweep, row, t0 + (step + sweep.offsets[k]) * h, changes[k], pair)
            results = sweep.memory[sweep.plans[k].memory + sweep.plans[k].z :]
            for which in range(2):
                for i in range(n_state):
                    pair[which, i] = results[which * n_z + i]
                for i in range(n_z - n_state):
                    shares[which, i] += results[which * n_z + n_state + i]
        if not good:
            for which in range(2):
                for i in range(n_z):
                    if i < n_state:
                        pair[which, i] = before[which, i]
                    else:
                        shares[which, i - n_state] = before[which, i]
            return step + 1
    return begin
