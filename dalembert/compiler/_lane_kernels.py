"""The kernels of a program for several trajectories at once, one a lane, with the decisions of Newton's iteration inside.

What the driver decides for one trajectory by branches (`solve` and `finish_step` of engine/_driver.py) is arithmetic here, for
lanes cannot branch apart: one that has converged, or is lost, is masked and stays as it is while others go on. The driver looks
at single lanes only where one asks for attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._jit import Code
from dalembert.compiler._memory import Layout
from dalembert.compiler._stopping import FAR, FASTEST_GUESS, STALL, SURE, doubt_rule, stopping_rule

CONTROL = (
    "mask", "alive", "sign", "tolerance", "previous", "rate", "last_rate", "age", "attention", "refreshes", "lost", "wrong",
    "doubt",
)  # fmt: skip
"""Numbers of each lane that lie behind the program's own memory, in this order; `age` counts the iterations of a step."""

ASKS, DIVERGES = 1.0, 2.0
"""The attention that a lane may need: other weights or factors, or none, for it is lost."""


@dataclass(frozen=True)
class LaneCode:
    """Machine code for so many lanes, and the slots of memory that it needs."""

    code: Code
    memory_size: int


judge = stopping_rule(ca.logic_and, ca.logic_or, ca.if_else, ca.fmax)
doubts = doubt_rule(ca.logic_and, ca.logic_or)


def compile_lanes(
    kernels: Sequence[Kernel], x: ca.SX, step: ca.SX, size: ca.SX, layout: Layout, lanes: int, fastest: float, watchful: bool
) -> LaneCode:
    """The kernels of a program whose iteration subtracts `step` from x, an increment of squared size `size`.

    `fastest` is the best rate of convergence to believe in; `watchful` says whether a solution may be in doubt.
    """
    predict, weigh, factor, iterate, finish, *others = kernels
    slot = {name: layout.work + k for k, name in enumerate(CONTROL)}
    lane = {name: ca.SX.sym(name) for name in CONTROL}
    control = [(lane[name], slot[name]) for name in CONTROL]
    # A new guess: all lanes go on, and the last step's rate stands in for the first iteration's, with a margin.
    stand_in = ca.fmin(1.0, ca.fmax(100.0 * lane["last_rate"], FASTEST_GUESS))
    begin = {"mask": lane["alive"], "previous": ca.SX(np.inf), "rate": stand_in, "age": ca.SX(0)}
    begin |= {"refreshes": ca.SX(0), "lost": ca.SX(0), "doubt": ca.SX(0)}
    anew = [(value, slot[name]) for name, value in begin.items()]
    noise = ca.SX.sym("noise")
    # a product with the mask would let what is not finite through
    new_x, decided = x - ca.if_else(lane["mask"], step, 0), _decide(lane, size, noise, fastest)
    wrong = _wrong(dict((place, value) for value, place in finish.outputs), lane, layout, watchful)
    altered = (
        predict,
        replace(weigh, inputs=[*weigh.inputs, *control], outputs=[*weigh.outputs, *anew]),
        factor,
        replace(
            iterate,
            inputs=[*iterate.inputs, *control, (noise, layout.noise)],
            outputs=[(new_x, layout.x), (size, layout.increment_size), *((decided[name], slot[name]) for name in decided)],
        ),
        replace(finish, inputs=[*finish.inputs, *control], outputs=[*finish.outputs, (wrong, slot["wrong"])]),
        _weigh_again(weigh, layout, lane["attention"], slot),
        *(_look(kernel, finish, control, lane, layout, watchful) if kernel.name == "look" else kernel for kernel in others),
    )
    work = layout.work + len(CONTROL)
    code, used = compile_kernels(altered, work, lanes)
    return LaneCode(code, work + used)


def _wrong(results: dict[int, ca.SX], lane: dict[str, ca.SX], layout: Layout, watchful: bool) -> ca.SX:
    """Whether a step is not to be taken for what it was found to be; `results` are the values of slots when it is finished."""
    orientation, energy, delta, correction = (
        results[place] for place in (layout.orientation, layout.energy, layout.delta, layout.correction)
    )
    total = ca.fabs(ca.sumsqr(ca.densify(delta)) + energy)
    # With a tolerance the step may miss its constraints, which makes the orientation nan.
    sure = orientation * lane["sign"]
    agrees = ca.if_else(lane["tolerance"] > 0, ca.logic_not(sure <= SURE), sure > SURE)
    certain = ca.logic_and(ca.logic_not(lane["doubt"]), correction < FAR) if watchful else 1
    right = ca.logic_and(ca.logic_and(total < np.inf, agrees), certain)
    return ca.if_else(right, 0.0, lane["alive"])


def _look(
    look: Kernel, finish: Kernel, control: list[tuple[ca.SX, int]], lane: dict[str, ca.SX], layout: Layout, watchful: bool
) -> Kernel:
    """What decides where a glance at the constraints of a step does not: it looks at all lanes."""
    results = {place: ca.SX.sym("result", value.shape[0]) for value, place in finish.outputs}
    wrong = _wrong(results | {place: value for value, place in look.outputs}, lane, layout, watchful)
    slot = dict(zip(lane, (place for _, place in control), strict=True))
    left = [(symbols, place) for place, symbols in results.items() if place != layout.orientation]
    return replace(look, inputs=[*look.inputs, *left, *control], outputs=[*look.outputs, (wrong, slot["wrong"])])


def _weigh_again(weigh: Kernel, layout: Layout, asks: ca.SX, slot: dict[str, int]) -> Kernel:
    """New weights for the lanes that ask for them, whose increments begin anew; the others keep what they have."""
    previous = ca.SX.sym("previous")
    inputs, outputs = [*weigh.inputs, (asks, slot["attention"]), (previous, slot["previous"])], []
    for value, place in weigh.outputs:
        if place in (layout.weights, layout.noise) and value.shape[0]:
            old = ca.SX.sym("old", value.shape[0])
            inputs.append((old, place))
            outputs.append((ca.if_else(asks, value, old), place))
    outputs.append((ca.if_else(asks, np.inf, previous), slot["previous"]))
    return Kernel("weigh_again", inputs, outputs)


def _decide(lane: dict[str, ca.SX], size: ca.SX, noise: ca.SX, fastest: float) -> dict[str, ca.SX]:
    """What an increment of this size means for each lane; `age` is 0 in the first iteration."""
    mask, previous, age, both, either = lane["mask"], lane["previous"], lane["age"], ca.logic_and, ca.logic_or
    closed, rate, slow, diverges = judge(size, previous, lane["rate"], noise, lane["tolerance"], fastest, STALL, age + 1)
    open_ = both(mask, ca.logic_not(closed))
    guessed_far, slowly = doubts(size, previous, slow, age + 1)
    far = both(age == 0, size > 1.0)  # the guess was far too small to measure increments by, as in a start from rest
    return {
        "mask": open_,
        "previous": size,
        "rate": rate,
        "last_rate": ca.if_else(both(both(mask, closed), age > 0), rate, lane["last_rate"]),
        "age": age + 1,
        "doubt": either(lane["doubt"], both(mask, either(guessed_far, slowly))),
        "attention": open_ * ca.if_else(diverges, DIVERGES, either(slow, far) * ASKS),
    }
