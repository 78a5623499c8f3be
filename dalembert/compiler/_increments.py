"""How large an increment of Newton's iteration is: relative to the unknowns, or to what rounding leaves of them."""

from __future__ import annotations

import casadi as ca
import numpy as np

from dalembert.compiler._reduction import ReducedStep
from dalembert.methods._step import UnknownBlock
from dalembert.systems import MechanicalSystem

LEAST_NOISE = 1e-12
"""The relative size that rounding errors may give to increments of a block that vanishes."""

GUARD = 1e7
"""How much less, squared, linear impulses of holonomic constraints weigh than the rounding error of momenta."""

REST = 1e-8**2
"""Velocities below this part of |q|/h, squared, count as rest."""


def _slice(reduced: ReducedStep, column: ca.SX, wanted: object) -> ca.SX:
    start = 0
    for block in reduced.blocks:
        if block is wanted:
            return column[start : start + block.symbols.shape[0]]
        start += block.symbols.shape[0]
    raise AssertionError("a block that is not part of the step")


def weights_and_noise(reduced: ReducedStep, measured: list, delta: ca.SX) -> tuple[ca.SX, ca.SX]:
    """1 / |X|^2 for each measured block X, and the squared size that rounding errors of the state give to its increments.

    To the first block belongs an eliminated last stage, for which the last step's increment `delta` of the state stands. X has
    a floor far below the rounding error of the state. Rounding errors come amplified by the stage equations: measured, about 10
    times with 3 stages and 400 times with 11. Where the step constrains positions, momenta also carry those of the multipliers:
    positions are known to eps |q|, so V to eps |q|/h and the momentum to M times that, however small its own increments are.
    Impulses must converge too: a motion that does not feel them at all may still be constrained by them. Those of holonomic
    constraints that enter linearly are usually as right as the increments, and weigh so little that their rounding errors,
    which are larger, do not decide.
    """
    step = reduced.equations.step
    h, states = step.h_symbol, step.state
    weights, noise = [], ca.SX(0)
    for block in measured:
        impulse = block.kind == "impulse"
        per, name = h * h if block.per_h else 1, list(states)[1] if impulse else block.of
        rounding = 20 * (len(block.nodes) + 1) ** 2 * np.finfo(float).eps
        scale, size = ca.sumsqr(states[name]) / per, ca.sumsqr(block.symbols)
        if block is measured[0]:
            size += ca.sumsqr(delta[: block.size]) / per if reduced.explicit_stage.shape[0] else 0
            floor = REST
        else:
            # A block that happens to vanish must not drown the others in its rounding errors.
            floor = (rounding / LEAST_NOISE) ** 2
            if step.constrains_positions and name == list(states)[1]:
                momentum = ca.repmat(states[name], len(block.nodes), 1) + (0 if impulse else block.symbols)
                scale += _momentum_of_positions(reduced, measured[0], momentum)
                floor = 16
        if impulse:
            scale /= _momentum_of_impulse(reduced, block)
            floor = GUARD if block.of == "lam" and step.definition.linear_in_multipliers else floor
        weights.append(1 / (size + floor * scale + 1e-300))
        noise += rounding**2 * scale * weights[-1]
    return ca.vertcat(ca.SX(0, 1), *weights), noise


def _momentum_of_positions(reduced: ReducedStep, first: UnknownBlock, momentum: ca.SX) -> ca.SX:
    """The squared size of the momentum that belongs to velocities q/h, by which errors of positions are amplified.

    In mechanics from the masses, which are there at rest too, and each in the units of its coordinate.
    """
    step, system = reduced.equations.step, reduced.equations.step.definition
    y, h = step.state[first.of], step.h_symbol
    if not isinstance(system, MechanicalSystem):
        return _squared_ratio(reduced, first, momentum) * ca.sumsqr(y) / (h * h)
    # A momentum on which no velocity depends has no mass, and its errors have nothing to do with positions.
    inverse = ca.densify(ca.diag(system.function("H_pp")(step.time_symbol, *step.state.values(), step.theta)))
    with_mass = [i for i in range(y.shape[0]) if not inverse[i].is_zero()]
    if not ca.depends_on(inverse, ca.vertcat(*step.state.values())):
        return ca.sumsqr(ca.vertcat(ca.SX(0, 1), *(y[i] / inverse[i] for i in with_mass))) / (h * h)
    tiny = 1e-30 * ca.sumsqr(inverse) + 1e-300  # a mass may vanish on the way
    return sum((y[i] ** 2 / (inverse[i] ** 2 + tiny) for i in with_mass), ca.SX(0)) / (h * h)


def _squared_ratio(reduced: ReducedStep, first: UnknownBlock, momentum: ca.SX) -> ca.SX:
    """|z|^2 / |V|^2; at rest, where both are what rounding makes of zero, that of the derivative of v with respect to z."""
    step = reduced.equations.step
    per = step.h_symbol**2 if first.per_h else 1
    rest = REST * ca.sumsqr(step.state[first.of]) / per
    z = list(step.state.values())[1]
    v = step.definition.function("v")(step.time_symbol, *step.state.values(), step.theta)
    mobility = ca.sumsqr(ca.jacobian(v, z)) / z.shape[0] * (1 if first.per_h else step.h_symbol**2)
    return (ca.sumsqr(momentum) + rest / mobility) / (ca.sumsqr(first.symbols) + rest + 1e-300)


def _momentum_of_impulse(reduced: ReducedStep, block: UnknownBlock) -> ca.SX:
    """The squared size of the momentum that a unit impulse gives: of the columns of `directions` at the first stage."""
    step, system = reduced.equations.step, reduced.equations.step.definition
    sizes = {"lam": system.n_holonomic, "psi": system.n_nonholonomic}
    here = {name: ca.SX.zeros(size, 1) for name, size in sizes.items()}
    here[block.of] = block.symbols[: block.size] / step.h_symbol
    columns = system.function("directions")(step.time_symbol, *step.state.values(), *here.values(), step.theta)
    own = columns[:, : sizes["lam"]] if block.of == "lam" else columns[:, sizes["lam"] :]
    return ca.sumsqr(own) + 1e-300


def weighted_size(reduced: ReducedStep, measured: list, weights: ca.SX, step: ca.SX, explicit: ca.SX) -> ca.SX:
    total = ca.SX(0)
    for k, block in enumerate(measured):
        total += weights[k] * ca.sumsqr(_slice(reduced, step, block))
    if measured and explicit.shape[0]:
        total += weights[0] * ca.sumsqr(ca.jtimes(explicit, reduced.x, step))
    return total
