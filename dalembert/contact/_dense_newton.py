"""Newton's iteration for small systems of equations with dense matrices: the events of a run.

Like the driver, this knows no model: a plan of integers (`_plan`) says where kernels and data are. Signatures are explicit,
because Numba would compile a function again for every constant that it is called with.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalembert.contact import _plan as at
from dalembert.engine._compiled import compiled, internal
from dalembert.engine._dense_solve import eliminate_dense, substitute_dense
from dalembert.engine._iteration import judge
from dalembert.engine._kernel_call import call_kernel

STALLED, TIGHT, CAREFUL, STALL = 1e-9**2, 4e-16**2, 1.0, 0.25**2
"""What the stopping rule of all Newton iterations is told here: increments that no longer shrink are accepted up to this size,
all are below this one, and no rate of convergence replaces the last iteration: balls that hit at the same time must do so."""


def compiled_as(result: str, *arguments: str, from_python: bool = False) -> Callable:
    """Compile a function of (plan, memory, ...)."""
    signature = f"{result}(int64[::1], float64[::1]{''.join(', ' + a for a in arguments)})"
    return compiled(signature) if from_python else internal(signature)


@compiled_as("float64", "int64", "int64")
def largest_of(plan, memory, first, count):
    """The largest absolute value of some slots."""
    largest = 0.0
    for k in range(count):
        largest = max(largest, abs(memory[first + k]))
    return largest


@compiled_as("boolean", "int64", "float64")
def newton(plan, memory, equations, dt):
    """Solve one system of equations from the guess in memory to round-off.

    The matrix, which need not be the exact Jacobian, is renewed until the increments are small. Increments are measured by
    blocks, relative to the largest values that the block has had or, where these are small, to |q|/dt, to |p| and its change in
    a step, and to M |q|/dt, from which rounding errors of positions come, or to 1; the rule of `compiler._stopping` judges
    them. Round-off of positions, divided by dt, blurs the multipliers of holonomic constraints, whatever their units are:
    increments below 1e-7 h/dt, not compared with M |q|/dt, that no longer shrink are accepted as well.
    """
    row, x, f = plan[equations], plan[at.X], plan[at.F]
    matrix, pivots = plan[at.A], plan[at.PIVOTS]
    n = plan[row + at.SIZE]
    if n == 0:
        return True
    positions = largest_of(plan, memory, plan[at.STATE], plan[at.N]) / dt
    blur = 0.0
    for k in range(plan[at.N]):
        blur = max(blur, 1e-4 * memory[plan[at.MASSES] + k] * abs(memory[plan[at.STATE] + k]) / dt)
    momenta = max(memory[at.PUSH_SLOT], largest_of(plan, memory, plan[at.STATE] + plan[at.N], plan[at.N]))
    for block in range(plan[row + at.BLOCKS]):
        kind = plan[row + at.FIRST_BLOCK + 2 * block + 1]
        memory[plan[at.SIZES] + block] = 1e-4 * (positions if kind == 0 else momenta if kind == 1 else 1.0) + 1e-300
    blurred = min(0.1, 1e-7 * memory[at.H_SLOT] / dt)
    previous, least, rate, stalled, fresh = np.inf, np.inf, 1.0, 0, True
    for iteration in range(1, 61):
        call_kernel(plan[row + at.RESIDUAL], memory)
        if fresh:
            memory[matrix : matrix + n * n] = 0.0
            call_kernel(plan[row + at.MATRIX], memory)
            if not eliminate_dense(memory, matrix, pivots, n):
                return False
        substitute_dense(memory, matrix, pivots, n, memory[f : f + n])
        size, apart, first = 0.0, 0.0, 0
        for block in range(plan[row + at.BLOCKS]):
            count = plan[row + at.FIRST_BLOCK + 2 * block]
            scale = max(memory[plan[at.SIZES] + block], largest_of(plan, memory, x + first, count))
            memory[plan[at.SIZES] + block] = scale
            change = largest_of(plan, memory, f + first, count)
            apart = max(apart, change / scale)
            size = max(size, change / (max(scale, blur) if plan[row + at.FIRST_BLOCK + 2 * block + 1] == 1 else scale))
            first += count
        for k in range(n):
            memory[x + k] -= memory[f + k]
        if not np.isfinite(size + largest_of(plan, memory, f, n)):
            return False
        stalled = stalled + 1 if size > 0.7 * least else 0  # at a double root the increments are halved each time
        converged, rate, _, _ = judge(size**2, previous**2, rate, STALLED, TIGHT, CAREFUL, STALL, iteration)
        if converged or (apart <= blurred and stalled == 3):
            return True
        least = min(least, size)
        fresh = size > 1e-6 or size > 1e-2 * previous
        previous = size
    return False
