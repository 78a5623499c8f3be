"""Newton's iteration for small systems of equations with dense matrices: the events of a run.

Like the driver, this knows no model (`_event_memory`). Signatures are explicit, because Numba would compile a function again
for every constant that it is called with.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import from_dtype, typeof, types

from dalembert.contact._event_memory import AT, EQUATIONS, POINT, Events
from dalembert.engine._apart import apart
from dalembert.engine._compiled import compiled, internal
from dalembert.engine._dense_solve import eliminate_dense, largest_of, substitute_dense
from dalembert.engine._iteration import inlined, judge
from dalembert.engine._kernel_call import call_kernel

STALLED, TIGHT, CAREFUL, STALL = 1e-9**2, 4e-16**2, 1.0, 0.25**2
"""What the stopping rule of all Newton iterations is told here: increments that no longer shrink are accepted up to this size,
all are below this one, and no rate of convergence replaces the last iteration: balls that hit at the same time must do so."""

MOST_GROWTH = 1e8
"""So large may elements become in a fixed order of pivots: Newton's iteration corrects what that costs in digits."""

TYPES = {"equations": from_dtype(EQUATIONS), "point": from_dtype(POINT), "pair": types.Tuple((types.int64, types.float64))}
EVENTS = typeof(Events(np.zeros(1, AT)[0], np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0))))


def _types(*names: str) -> list[types.Type]:
    return [TYPES[name] if name in TYPES else getattr(types, name) for name in names]


def compiled_as(result: str, *arguments: str, from_python: bool = False) -> Callable:
    """Compile a short function of (events, ...), which becomes a part of those that call it."""
    result_type, *given = _types(result, *arguments)
    signature = result_type(EVENTS, *given)
    return compiled(signature) if from_python else internal(signature)


def apart_as(result: str, *arguments: str) -> Callable:
    """Let a function of (events, ...) be called apart (`engine._apart`)."""
    result_type, *given = _types(result, *arguments)
    return apart(result_type, EVENTS, *given)


@inlined
def begin_sizes(events, equations, dt):
    """What increments of each block are compared with at least: 1e-4 of |q|/dt, of |p| or its change in a step, or of 1."""
    at, tables, memory = events.at, events.tables, events.memory
    positions = largest_of(memory, at.state, at.n) / dt
    momenta = max(memory[at.push], largest_of(memory, at.state + at.n, at.n))
    for block in range(equations.blocks):
        kind = tables[equations.table + 2 * block + 1]
        memory[at.sizes + block] = 1e-4 * (positions if kind == 0 else momenta if kind == 1 else 1.0) + 1e-300


@inlined
def in_fixed_order(events, equations):
    """LU without a choice of pivots, and the increment, in straight-line code; False if pivots are too small, or without it."""
    at, memory = events.at, events.memory
    if equations.factor == 0:
        return False
    call_kernel(equations.factor, memory)
    return memory[at.growth] < MOST_GROWTH


@inlined
def in_any_order(events, equations):
    """LU with row exchanges; False if the matrix is singular."""
    at, memory, n = events.at, events.memory, equations.size
    memory[at.matrix : at.matrix + n * n] = 0.0
    call_kernel(equations.matrix, memory)
    return eliminate_dense(memory, at.matrix, at.pivots, n)


@apart_as("boolean", "equations", "float64")
def newton(events, equations, dt):
    """Solve one system of equations from the guess in memory to round-off.

    The matrix, which need not be the exact Jacobian, is renewed until the increments are small. Increments are measured by
    blocks, relative to the largest values that the block has had or, where these are small, to what `begin_sizes` says, and to
    M |q|/dt, from which rounding errors of positions come; the rule of `compiler._stopping` judges them. Round-off of
    positions, divided by dt, blurs the multipliers of holonomic constraints, whatever their units are: increments below
    1e-7 h/dt, not compared with M |q|/dt, that no longer shrink are accepted as well.
    """
    at, tables, memory = events.at, events.tables, events.memory
    n, x, f = equations.size, at.x, at.residual
    if n == 0:
        return True
    begin_sizes(events, equations, dt)
    blur = 0.0
    for k in range(at.n):
        blur = max(blur, 1e-4 * memory[at.masses + k] * abs(memory[at.state + k]) / dt)
    blurred = min(0.1, 1e-7 * memory[at.h] / dt)
    previous, least, rate, stalled, fresh, fixed = np.inf, np.inf, 1.0, 0, True, False
    for iteration in range(1, 61):
        if fresh:
            fixed = in_fixed_order(events, equations)
            if not (fixed or in_any_order(events, equations)):
                return False
        elif fixed:
            call_kernel(equations.increment, memory)
        if not fixed:
            call_kernel(equations.residual, memory)
            substitute_dense(memory, at.matrix, at.pivots, n, memory[f : f + n])
        size, apart, total, first = 0.0, 0.0, 0.0, 0
        for block in range(equations.blocks):
            count, kind = tables[equations.table + 2 * block], tables[equations.table + 2 * block + 1]
            scale, change = memory[at.sizes + block], 0.0
            for k in range(first, first + count):
                scale, change, total = max(scale, abs(memory[x + k])), max(change, abs(memory[f + k])), total + memory[f + k]
                memory[x + k] -= memory[f + k]
            memory[at.sizes + block] = scale
            apart = max(apart, change / scale)
            size = max(size, change / (max(scale, blur) if kind == 1 else scale))
            first += count
        if not np.isfinite(size + total):
            return False
        stalled = stalled + 1 if size > 0.7 * least else 0  # at a double root the increments are halved each time
        converged, rate, _, _ = judge(size**2, previous**2, rate, STALLED, TIGHT, CAREFUL, STALL, iteration)
        if converged or (apart <= blurred and stalled == 3):
            return True
        least = min(least, size)
        fresh = size > 1e-6 or size > 1e-2 * previous
        previous = size
    return False
