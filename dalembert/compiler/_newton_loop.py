"""Newton's iteration as one loop in machine code, which goes on until an increment asks for a decision.

The increments of a small system take no longer than what a driver does between two of them: to call a kernel, to load what it
has stored, and to judge. In the loop the unknowns stay in registers, and only what happens in every iteration is looked at,
by the rule that the driver applies to the last of them (`_stopping`).
"""

from __future__ import annotations

import casadi as ca

from dalembert.compiler._ir import PIECE, Kernel, Repetition
from dalembert.compiler._memory import Layout
from dalembert.compiler._stopping import STALL, doubt_rule, stopping_rule

judge = stopping_rule(ca.logic_and, ca.logic_or, ca.if_else, ca.fmax)
doubts = doubt_rule(ca.logic_and, ca.logic_or)


def newton_loop(iterate: Kernel, layout: Layout, fastest: float) -> Kernel | None:
    """Iterate, from the increment before and its rate, until one ends the iteration or its usual course, or the last is done.

    `iterate` gives the new x and the size of the increment. What is left in memory is known of the last increment before it is
    judged: its size, that of the one before, the rate until then and its number. None if the code would be too long.
    """
    if iterate.operations > PIECE:
        return None
    (new_x, _), (size, _) = iterate.outputs
    previous, rate, count, last, tolerance, noise = (ca.SX.sym("control") for _ in range(6))
    places = (layout.previous, layout.rate, layout.count, layout.last_count, layout.tolerance, layout.noise)
    control = list(zip((previous, rate, count, last, tolerance, noise), places, strict=True))
    closed, next_rate, slow, diverges = judge(size, previous, rate, noise, tolerance, fastest, STALL, count + 1)
    guessed_far, _ = doubts(size, previous, slow, count + 1)  # what shrinks slowly is slow
    from_rest = ca.logic_and(count == 0, size > 1)
    over = ca.logic_or(count + 1 >= last, from_rest)
    for reason in (closed, slow, diverges, guessed_far):
        over = ca.logic_or(over, reason)
    return Kernel(
        iterate.name,
        [*iterate.inputs, *control],
        [*iterate.outputs, (previous, layout.previous), (rate, layout.rate), (count + 1, layout.count)],
        repetition=Repetition(
            ca.logic_not(over),
            [(new_x, layout.x), (size, layout.previous), (next_rate, layout.rate), (count + 1, layout.count)],
        ),
    )
