"""One step of time stepping: Newton's iteration on equations that contact makes semismooth, in compiled code.

Newton's method with the generalised Jacobian of the projections needs a few iterations as a rule. It may cycle. Then it starts
again from contacts that stick under a large load, as in an impact without collision, and then come damped projections, P <-
prox(P - r gamma(P)) with the smooth equations solved at once, in numbers that double from try to try, each followed by
Newton's method from where they got, with another r. All of this ends after fixed numbers of iterations, so every step ends,
with a solution or with that reason. Without friction, and with r below 2/|W^T H_pp W|, which the relaxation by the number of
contacts ensures, the projections are those of a convex quadratic program and converge (Acary and Brogliato 2008, section 12.6).

Contacts may be more than the motion determines, as under a table: their matrix is singular then. A small number on its
diagonal, which vanishes with the increments, leaves the solution as it is and the impulses near those of the step before.
"""

from __future__ import annotations

import numpy as np

from dalembert.engine._compiled import internal
from dalembert.engine._dense_solve import eliminate_dense, largest_of, substitute_dense
from dalembert.engine._iteration import judge
from dalembert.engine._kernel_call import call_kernel

unsigned = np.uintp  # spares Numba the test for negative indices

PROJECTED, DAMPED = range(2)
"""Counters of a run: steps that Newton's method alone did not solve, and impacts that would add energy."""
NEWTON, TRIES, PROJECTIONS = 40, 7, 25
"""Iterations of Newton's method, tries, and the projections of the first try, which double with every further one."""
REFINED, NO_GAIN = 30, 1e-9
"""Steps towards the largest restitution that adds no energy, and the part of the energy of a bounce that is none."""
DIAGONAL, STIFFEST = 1e-2, 1e-7
"""What is added to the diagonal for contacts, at first and, shrinking with the increments, at least: more in each try."""
STALLED, TIGHT, CAREFUL, STALL = 1e-7**2, 4e-16**2, 1e-2**2, 0.25**2
LOOSE, BLURRED = 1e-5, 1e-2
"""How much less the impulses of single contacts count than their sums, which move the bodies, and those of constraints, which
rounding errors of positions, divided by h, blur."""
BLUR = 1e-5
"""Momenta are known as well as rounding errors of positions let them be, M q/h: what part of it stands for a momentum."""


@internal()
def factorize(at, kernels, tables, memory, diagonal):
    """LU of the matrix at the current unknowns; with 1 on the diagonal the rows of the contacts are projections."""
    n, first_contact, entries = at.n_x, at.n_x - at.n_laws, memory[at.entries : at.entries + at.n_entries]
    call_kernel(kernels[1], memory)
    if diagonal == 1.0:
        for k in range(at.n_entries):
            entries[k] *= tables.rows[k] < first_contact
    equilibrate_entries(at, tables, memory, entries)
    matrix = memory[at.matrix : at.matrix + n * n]
    matrix[:] = 0.0
    others = memory[at.residual : at.residual + n]
    others[:] = 0.0
    for k in range(at.n_entries):
        row, column = tables.rows[k], tables.columns[k]
        matrix[unsigned(n * row + column)] = entries[k]
        others[unsigned(row)] += abs(entries[k]) * (row != column)
    for k in range(first_contact, n):
        if others[k] != 0.0 or diagonal == 1.0:  # else no contact, and no impulse
            matrix[n * k + k] += diagonal * memory[at.scales + k] * memory[at.scales + n + k]
    return eliminate_dense(memory, at.matrix, at.pivots, n)


@internal()
def equilibrate_entries(at, tables, memory, entries):
    """Scale the entries of the matrix so that units of rows and columns do not matter (Ruiz 2001), and note the scales."""
    n = at.n_x
    scales, largest = memory[at.scales : at.scales + 2 * n], memory[at.matrix : at.matrix + 2 * n]
    scales[:] = 1.0
    for _ in range(3):
        largest[:] = 0.0
        for k in range(at.n_entries):
            size, row, column = abs(entries[k]), unsigned(tables.rows[k]), unsigned(n + tables.columns[k])
            largest[row], largest[column] = max(largest[row], size), max(largest[column], size)
        for i in range(2 * n):
            largest[i] = 1.0 / np.sqrt(largest[i]) if largest[i] > 0.0 else 1.0
            scales[i] *= largest[i]
        for k in range(at.n_entries):
            entries[k] *= largest[unsigned(tables.rows[k])] * largest[unsigned(n + tables.columns[k])]


@internal()
def increment(at, kernels, tables, memory):
    """Subtract one increment from the unknowns; its size relative to theirs, block by block."""
    n = at.n_x
    call_kernel(kernels[0], memory)
    work = memory[at.residual : at.residual + n]
    for i in range(n):
        work[i] *= memory[at.scales + i]
    substitute_dense(memory, at.matrix, at.pivots, n, work)
    for i in range(n):
        work[i] *= memory[at.scales + n + i]
        memory[at.x + i] -= work[i]
    dim = at.n_state // 2
    positions = largest_of(memory, at.state, dim) / memory[at.h]
    blur = 0.0
    for k in range(dim):
        blur = max(blur, BLUR * memory[at.masses + k] * abs(memory[at.state + k]) / memory[at.h])
    momenta = max(memory[at.push], largest_of(memory, at.state + dim, dim), 1e-5 * memory[at.peak])
    size, first = 0.0, 0
    for block in range(len(tables.blocks)):
        count, kind = tables.blocks[block, 0], tables.blocks[block, 1]
        scale = max(largest_of(memory, at.x + first, count), 1e-4 * (positions if kind == 0 else momenta) + 1e-300)
        if abs(kind) == 1:
            scale = max(scale, blur)
        weight = LOOSE if kind >= 2 else BLURRED if kind < 0 else 1.0
        size = max(size, weight * largest_of(memory, at.residual + first, count) / scale)
        if not np.isfinite(largest_of(memory, at.x + first, count)):
            return np.inf
        first += count
    return size


@internal()
def newton(at, kernels, tables, memory, counts, diagonal, least):
    """Newton's method from the unknowns in memory, with `least` or more on the diagonal; whether it found a solution."""
    previous, rate = np.inf, 1.0
    for iteration in range(1, NEWTON + 1):
        counts.iterations += 1
        if not factorize(at, kernels, tables, memory, max(least, diagonal * min(1.0, previous))):
            return False
        size = increment(at, kernels, tables, memory)
        if not np.isfinite(size):
            return False
        converged, rate, _, _ = judge(size**2, previous**2, rate, STALLED, TIGHT, CAREFUL, STALL, iteration)
        if converged:
            return True
        previous = size
    return False


@internal()
def load(at, tables, memory):
    """A guess under which all contacts stick: normal impulses beyond what momenta there are."""
    dim, first = at.n_state // 2, 0
    impulse = 1e3 * (largest_of(memory, at.state + dim, dim) + memory[at.push]) + 1e-300
    for block in range(len(tables.blocks)):
        count, kind = tables.blocks[block, 0], tables.blocks[block, 1]
        for k in range(first, first + count):
            memory[at.x + k] = memory[at.guess + k] if kind < 2 else impulse if kind == 2 else 0.0
        first += count


@internal()
def solve(at, kernels, tables, memory, counts, tally, diagonal):
    """Solve the step equations from the unknowns in memory, and then from the last ones, which are the guess."""
    for attempt in range(TRIES):
        memory[at.relaxation] = 1.0 if attempt == 0 else 0.1 ** (attempt % 4 - 2)
        least = STIFFEST * 10.0 ** min(attempt, 5)  # what blocked friction does is rounding errors over this
        if newton(at, kernels, tables, memory, counts, diagonal, least):
            return True
        diagonal = DIAGONAL
        if attempt == 0:
            tally[PROJECTED] += 1
            load(at, tables, memory)
            if newton(at, kernels, tables, memory, counts, STIFFEST, STIFFEST):
                return True
        for k in range(at.n_x):
            memory[at.x + k] = memory[at.guess + k]
        memory[at.relaxation] = 1.0 / at.n_laws
        for _ in range(PROJECTIONS * 2**attempt):
            if not factorize(at, kernels, tables, memory, 1.0):
                return False
            if not np.isfinite(increment(at, kernels, tables, memory)):
                for k in range(at.n_x):
                    memory[at.x + k] = memory[at.guess + k]
                break
        for k in range(at.n_x):
            memory[at.guess + k] = memory[at.x + k]
    return False


@internal()
def gain(at, kernels, tables, memory, counts, tally, diagonal, share):
    """The energy that contacts with this part of their e add, 0 if it is a rounding error; inf where no solution is found."""
    memory[at.restitution] = share
    solved = solve(at, kernels, tables, memory, counts, tally, diagonal)
    call_kernel(kernels[2], memory)
    if not solved:
        for k in range(at.n_x):
            memory[at.guess + k] = memory[at.x + k] = memory[at.saved + k]
        return np.inf
    if memory[at.bounce] <= 0.0:
        return min(memory[at.work], 0.0)
    return memory[at.work] if abs(memory[at.work]) > NO_GAIN * memory[at.bounce] else 0.0


@internal()
def solve_without_gain(at, kernels, tables, memory, counts, tally, diagonal):
    """Solve a step whose contacts add no energy: with the largest part of their e that adds none, at last without.

    It is a zero of the gain, found by the rule of Illinois, but where a larger part has no solution.
    """
    high, most, low, least, gained = 1.0, np.inf, 1.0, np.inf, 0
    for share in (1.0, 0.99, 0.95, 0.8, 0.5, 0.0):
        high, most, low = low, least, share
        least = gain(at, kernels, tables, memory, counts, tally, diagonal, share)
        if least <= 0.0:
            break
        gained += least < np.inf
    tally[DAMPED] += gained > 0
    last = 0
    for _ in range(REFINED):
        if low == 1.0 or least >= 0.0 or most == np.inf:
            break
        share = low + (high - low) * least / (least - most)
        found = gain(at, kernels, tables, memory, counts, tally, diagonal, share)
        if found <= 0.0:
            most, low, least, last = most / 2 if last < 0 else most, share, found, -1
        else:
            least, high, most, last = least / 2 if last > 0 else least, share, found, 1
    if last > 0:
        least = gain(at, kernels, tables, memory, counts, tally, diagonal, low)
    return least < np.inf
