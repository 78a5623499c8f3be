"""Following the solution of a step from h = 0: what decides where Newton's iteration may have found another solution.

The step equations have one solution that belongs to the motion: that which begins at h = 0. Others appear as h grows: a step on
y = sin 3x may end on another hump. So a solution that is in doubt is followed in eta, from steps of size eta h with a small eta
up to eta = 1. Unknowns are extrapolated in eta, those that vanish with h after division by it, and a stride in eta counts only
if Newton's iteration leaves no doubt. Where the constraints lose rank inside the step, as in a parallelogram that lies flat,
the branch that is extrapolated is the one on which the momentum goes on. Where the solution ends, none is found beyond.
"""

from __future__ import annotations

from dalembert.compiler._increments import GUARD
from dalembert.compiler._stopping import CLOSE, FAST, SMALL, STALL
from dalembert.engine._apart import apart
from dalembert.engine._dense_solve import PIVOTING
from dalembert.engine._iteration import (
    CORRECTION_SLOT,
    NOISE_SLOT,
    ORIENTATION_SLOT,
    at,
    factorize,
    finish,
    finish_step,
    meet_constraints,
    newton_increment,
    solve_again,
    weigh,
)
from dalembert.engine._layout import NEVER, NOT_BY_COMBINATIONS

H_SLOT = 1
FIRST = (2.0**-5, 2.0**-2, 2.0**-1, 2.0**-9, 2.0**-13)
"""The fractions of h at which following begins, until it arrives.

Next to a position in which constraints lose rank the smallest steps are the worst conditioned ones: it is better to begin
beyond it, where the guess is good enough.
"""
NEARLY_LINEAR = 2.0**-4
"""The fraction of h up to which the first guess may be far off, because the equations are nearly linear."""
MOST_SOLVES, SHORTEST = 60, 1e-4
"""How many solves one trial may take, and the shortest stride in eta, of eta itself."""
BEYOND = 1.5
"""The fraction of h up to which a solution with another orientation must go on."""
MOST_POLISHING = 10
"""How many iterations bring a followed solution to round-off."""
NOISE = 1e-7**2
"""The squared size of increments that may be rounding errors, where a nearly singular matrix amplifies them."""
SAME = 1e-6**2
"""The squared relative difference below which two solutions are the same."""
STRAYS = 0.5**2
"""The squared part of the most that an unknown has changed since the first eta by which it may stray from its extrapolation."""
ROUNDED = 1e-14**2 / GUARD
"""The squared size, by its weight, of an impulse's rounding error: that of a momentum, which knows positions to eps m q/h."""
BEFORE, NOW, FIRST_ONE, CHANGED, FOUND, KEPT = range(6)
"""Rows of `path`: solutions at the last two eta and at the first one, unknowns that vanish with h divided by eta; the most by
which each has differed from the first one; what was found without following; what to go back to, or to compare with."""
ROWS = 6


@apart("boolean", "substep", "boolean")
def follow(sub, solved):
    """Take the solution that begins at h = 0 for the pending step's; False if it ends before h.

    `solved` says whether the memory holds a solution, which may be another one.
    """
    layout, memory, counts, path = sub.layout, sub.memory, sub.counts, sub.path
    if layout.n_x == 0:
        return False
    h, x = memory[H_SLOT], layout.x
    for k in range(layout.n_x):
        path[FOUND, k] = memory[at(x + k)]
    pivoting = sub.kernels.entries != 0 and layout.straight_line < PIVOTING
    if pivoting:
        layout.straight_line += PIVOTING
    arrived = False
    for first in FIRST:
        arrived = arrived or trace(sub, h, first)
    memory[H_SLOT] = h
    counts.age = -1
    weigh(sub)
    if arrived:  # else Python looks whether the fixed order is the reason, and `judged` says that it is not
        arrived = polish(sub) or sub.kernels.entries != 0 or counts.judged != 0
    other = not solved or differs(sub)
    arrived = arrived and trustworthy(sub, h)
    if pivoting:
        layout.straight_line -= PIVOTING
    counts.age = -1
    if not arrived:
        return False
    counts.followed += 1
    if other:
        counts.rescued += 1
    return True


@apart("boolean", "substep")
def polish(sub):
    """Iterate on to round-off, which strides need not reach; False if a nearly singular matrix or its pivots prevent it.

    Increments that do not shrink are what rounding makes of zero: the last one is taken back.
    """
    layout, memory, path = sub.layout, sub.memory, sub.path
    factorize(sub)
    previous = NOISE
    for _ in range(MOST_POLISHING):
        for k in range(layout.n_x):
            path[KEPT, k] = memory[at(layout.x + k)]
        size = newton_increment(sub)
        if not size <= STALL * previous:
            for k in range(layout.n_x):
                memory[at(layout.x + k)] = path[KEPT, k]
            break
        previous = size
    return previous <= max(SMALL, memory[NOISE_SLOT])


@apart("boolean", "substep", "float64", "float64")
def trace(sub, h, first):
    """Follow the solution from steps of size h `first` up to h."""
    if not (solve_at(sub, h, 0.0, 0.0, first) and solve_at(sub, h, 0.0, first, 2.0 * first)):
        return False
    before, eta, stride = first, 2.0 * first, first
    if eta == 1.0:
        return True
    for _ in range(MOST_SOLVES):
        target = eta + stride
        if target > 1.0 - 0.1 * stride:
            target = 1.0
        if solve_at(sub, h, before, eta, target):
            if target == 1.0:
                return True
            stride = 2.0 * (target - eta)
            before, eta = eta, target
        else:
            stride *= 0.5
            if stride < SHORTEST * eta:
                return False
    return False


@apart("boolean", "substep", "float64", "float64", "float64", "float64")
def solve_at(sub, h, before, now, eta):
    """Solve a step of size eta h, its unknowns extrapolated from those at `before` and `now`; False if that leaves a doubt.

    In the beginning `before`, and at first `now`, are zero: unknowns stay those of `now`, or of the guess for the whole step.
    """
    layout, memory, path, powers = sub.layout, sub.memory, sub.path, sub.tables
    n, x, power = layout.n_x, layout.x, layout.power
    beginning = before == 0.0
    ratio = 0.0 if beginning else (eta - now) / (now - before)
    for k in range(n):
        here = sub.guess[k] if now == 0.0 else path[NOW, k]
        if not beginning:
            here += ratio * (here - path[BEFORE, k])
        memory[at(x + k)] = path[KEPT, k] = here * eta if powers[power + k] else here
    memory[H_SLOT] = eta * h
    sub.numbers.rate = 1.0
    weigh(sub)
    memory[NOISE_SLOT] = max(memory[NOISE_SLOT], NOISE)
    factorize(sub)
    if beginning and eta > NEARLY_LINEAR and not shrinks_fast(sub):
        return False
    iterations, far, slowly = solve_again(sub)
    if iterations < 0 or slowly or not finish(sub):
        return False
    far = far or not memory[CORRECTION_SLOT] < sub.numbers.far
    if (far and not (beginning and eta <= NEARLY_LINEAR)) or (not beginning and strays(sub, eta)):
        return False
    for k in range(n):
        path[BEFORE, k] = path[NOW, k]
        path[NOW, k] = memory[at(x + k)] / eta if powers[power + k] else memory[at(x + k)]
        if now == 0.0:
            path[FIRST_ONE, k], path[CHANGED, k] = path[NOW, k], 0.0
        path[CHANGED, k] = max(path[CHANGED, k], abs(path[NOW, k] - path[FIRST_ONE, k]))
    return True


@apart("boolean", "substep")
def shrinks_fast(sub):
    """Two iterations from a guess that no smaller step vouches for: their increments must shrink beyond all chance."""
    first = newton_increment(sub)
    second = newton_increment(sub)
    return first <= CLOSE or second <= FAST * FAST * first


@apart("boolean", "substep", "float64")
def strays(sub, eta):
    """Whether a solution is further from its extrapolation than the path so far explains: beyond the end of one branch
    Newton's iteration may go to another at once.

    Each unknown is compared with its own changes. Compared with its size, as by how fast increments shrink, it might be close:
    everything may happen on a carriage that moves a hundred times as fast. Impulses, which do not know of that, show a jump
    even where the position at the end is no unknown; they weigh too little elsewhere to be measured by their weights, which
    only tell what rounding makes of them: in short steps of a large mechanism more than small ones are themselves.
    """
    layout, memory, path, powers = sub.layout, sub.memory, sub.path, sub.tables
    projected, largest = memory[CORRECTION_SLOT] > CLOSE, 0.0
    for k in range(layout.n_x):
        if powers[layout.power + k]:
            largest = max(largest, memory[at(layout.x + k)] ** 2)
    for k in range(layout.n_x):
        found, weight = memory[at(layout.x + k)], memory[at(layout.weights + k)]
        off, changed = (found - path[KEPT, k]) ** 2, path[CHANGED, k]
        far = off * weight > CLOSE
        if powers[layout.power + k]:
            changed *= eta
            far = off > max(CLOSE * found * found, NOISE * NOISE * largest) and off * weight > ROUNDED
        if weight == 0.0:
            far = projected and off > CLOSE * found * found
        if far and off > STRAYS * changed * changed:
            return True
    return False


@apart("boolean", "substep", "float64")
def trustworthy(sub, h):
    """`finish_step`; where the solution was followed through a position in which constraints lose rank, their sign may turn.

    It must go on beyond: that of a step to a cusp ends there.
    """
    if finish_step(sub) or meet_constraints(sub):
        return True
    if not (finish(sub) and sub.layout.turns != NEVER and sub.memory[ORIENTATION_SLOT] * sub.counts.sign < 0.0):
        return False
    if sub.layout.turns == NOT_BY_COMBINATIONS and sub.counts.fresh == 0:
        return False
    layout, memory, path = sub.layout, sub.memory, sub.path
    for k in range(layout.n_x):
        path[FOUND, k] = memory[layout.x + k]
    goes_on = solve_at(sub, h, 0.0, 1.0, BEYOND)
    for k in range(layout.n_x):
        memory[layout.x + k] = path[FOUND, k]
    memory[H_SLOT] = h
    weigh(sub)
    finish(sub)
    return goes_on


@apart("boolean", "substep")
def differs(sub):
    """Whether the solution in memory is another one than was found at first."""
    layout, memory, path = sub.layout, sub.memory, sub.path
    total = 0.0
    for k in range(layout.n_x):
        total += memory[layout.weights + k] * (memory[layout.x + k] - path[FOUND, k]) ** 2
    return not total < SAME
