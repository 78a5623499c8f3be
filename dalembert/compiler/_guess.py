"""Guesses for the unknowns of a step: along the tangent for the first step, by extrapolation for the others."""

from __future__ import annotations

import casadi as ca
import numpy as np

from dalembert.compiler._ir import Kernel
from dalembert.compiler._last_stage import same
from dalembert.compiler._memory import Layout
from dalembert.compiler._reduction import ReducedStep
from dalembert.methods._step import UnknownBlock
from dalembert.symbolic._kept import kept
from dalembert.systems import MechanicalSystem, State, System
from dalembert.systems._newton import newton
from dalembert.systems._states import States

MOST_NODES = 12
"""Through so many values polynomials are continued at most: by each further one rounding errors grow nearly six times."""


def first_guess(reduced: ReducedStep, system: System, state: State, h: float) -> np.ndarray:
    """Stages along the tangent: X_i = c_i times the rate of what they sample; impulses h lambda.

    Impulses with a limit of their own start from it, and the stages from an explicit step with them: from the multipliers of
    the state Newton's iteration may find another branch.
    """
    step = reduced.equations.step
    (y, _), (z, _) = system.state_blocks
    rates = {y: state.v, z: system.at("z_dot", state.values, state.theta), "lam": state.lam, "psi": state.psi}
    limits = _limits(reduced, state)
    guess = {}
    for block in step.unknowns if limits else reduced.blocks:
        if block.kind == "carried":
            guess[block.name] = np.zeros(block.symbols.shape[0])
        elif block.kind == "impulse":
            guess[block.name] = h * limits.get(block.name, np.tile(rates[block.of], len(block.nodes)))
        else:
            guess[block.name] = np.outer(block.nodes, rates[block.of]).ravel() * (1.0 if block.per_h else h)
    if limits:
        _explicit_sweep(reduced, guess, state, h)
    return np.concatenate([np.zeros(0), *(guess[block.name][: block.symbols.shape[0]] for block in reduced.blocks)])


def first_guesses(reduced: ReducedStep, states: States, h: np.ndarray) -> np.ndarray:
    """`first_guess` for many states, each with a step size of its own; the same numbers, bit for bit."""
    if reduced.equations.step.limits:
        rows = [first_guess(reduced, states.system, states.known(k), float(h[k])) for k in range(len(states))]
        return np.array(rows).reshape(len(states), reduced.x.shape[0])
    (y, _), (z, _) = states.system.state_blocks
    lam, psi = np.split(states.multipliers, [states.system.n_holonomic], axis=1)
    rates = {y: states.evaluate("v"), z: states.evaluate("z_dot"), "lam": lam, "psi": psi}
    parts = [np.zeros((len(states), 0))]
    for block in reduced.blocks:
        if block.kind == "carried":
            part = np.zeros((len(states), block.symbols.shape[0]))
        elif block.kind == "impulse":
            part = h[:, None] * np.tile(rates[block.of], len(block.nodes))
        else:
            part = (np.asarray(block.nodes)[None, :, None] * rates[block.of][:, None, :]).reshape(len(states), -1)
            part = part if block.per_h else part * h[:, None]
        parts.append(part[:, : block.symbols.shape[0]])
    return np.concatenate(parts, axis=1)


def _limits(reduced: ReducedStep, state: State) -> dict[str, np.ndarray]:
    """The limits of impulse blocks for h -> 0, on the branch of the state's own multipliers."""
    step = reduced.equations.step
    if not step.limits:
        return {}
    equations = _limit_equations(reduced)
    values = (state.t, state.theta, state.first, state.second)
    start = np.concatenate([np.tile(getattr(state, block.of), len(block.nodes)) for block, _ in step.limits])
    found = newton(lambda y: tuple(np.asarray(value, dtype=float) for value in equations(y, *values)), start)
    if found is None:
        return {}
    ends = np.cumsum([block.symbols.shape[0] for block, _ in step.limits])[:-1]
    return {block.name: part for (block, _), part in zip(step.limits, np.split(found, ends), strict=True)}


@kept
def _limit_equations(reduced: ReducedStep) -> ca.Function:
    """The equations of the limits, and their Jacobian."""
    step = reduced.equations.step
    x = ca.vertcat(*(block.symbols for block, _ in step.limits))
    residual = ca.vertcat(*(equation for _, equation in step.limits))
    data = [step.time_symbol, step.theta, *step.state.values()]
    return ca.Function("limits", [x, *data], [residual, ca.jacobian(residual, x)])


def _explicit_sweep(reduced: ReducedStep, guess: dict[str, np.ndarray], state: State, h: float) -> None:
    """Put the guess into the right-hand side of every equation that states a block of unknowns, one after the other."""
    for block, value in _explicit_stages(reduced):
        known = [guess[b.name] for b in reduced.equations.step.unknowns]
        right = value(*known, state.t, h, state.theta, state.first, state.second)
        guess[block.name] = np.asarray(right, dtype=float).ravel()


@kept
def _explicit_stages(reduced: ReducedStep) -> list[tuple[UnknownBlock, ca.Function]]:
    """The blocks of unknowns that equations state, and the right-hand sides of these."""
    step = reduced.equations.step
    symbols = [block.symbols for block in step.unknowns]
    data = [step.time_symbol, step.h_symbol, step.theta, *step.state.values()]
    return [
        (block, ca.Function("stage", [*symbols, *data], [equation.right]))
        for equation in step.equations
        for block in [b for b in step.unknowns if same(b.symbols, equation.left)][:1]
    ]


def extrapolation(block: UnknownBlock, ratio: ca.SX, origin: ca.SX) -> ca.SX:
    """The matrix that extrapolates a block's stage values from one step to the next (values on this step's curve).

    Of many stages some are taken, the last one among them. The next step is `ratio` times as long, and begins where the other
    one ends if `origin` is 1, or where it began if 0.
    """
    nodes = _nodes(block)
    targets = origin + ratio * ca.DM(block.nodes)
    distinct = np.array([j for j in range(len(nodes)) if not np.any(np.isclose(nodes[j + 1 :], nodes[j]))])
    if len(distinct) > MOST_NODES:
        distinct = distinct[np.linspace(0, len(distinct) - 1, MOST_NODES).round().astype(int)]
    matrix = ca.SX.zeros(len(block.nodes), len(nodes))
    for j in distinct:
        column = ca.SX.ones(len(block.nodes), 1)
        for m in distinct:
            column = column if m == j else column * ((targets - nodes[m]) / (nodes[j] - nodes[m]))
        matrix[:, j] = column
    return matrix[:, 1:] if block.anchored else matrix


def predictor(reduced: ReducedStep, layout: Layout, delta: ca.SX, contiguous: bool) -> Kernel:
    """Extrapolate each block's stage polynomial, relative to the state that the last step ended in.

    Steps that are not contiguous start from their last unknowns. Where step sizes vary, they are known: that of the last step
    and that of the next one. What this misses is seen after each step, and added to later guesses (`_corrected`), unless steps
    are solved to a tolerance: some of it is what these leave.
    """
    h = last = reduced.equations.step.h_symbol
    clock, symbols, ratio, origin = reduced.equations.step.clock, [(h, layout.h)], ca.SX(1), ca.SX(1)
    if clock is not None:
        last = ca.SX.sym("last_h")
        symbols, ratio = [*symbols, (last, layout.last_h)], h / last
        if clock.following is not None:  # a step that was rejected is made again from where it began
            origin = ca.SX.sym("taken")
            symbols = [*symbols, (origin, layout.taken)]
    exact = ca.SX.sym("exact")
    symbols.append((exact, layout.exact))
    sizes = [symbols.shape[0] for symbols in reduced.equations.step.state.values()]
    deltas = dict(zip(reduced.equations.step.state, ca.vertsplit(delta, [0, *np.cumsum(sizes).tolist()]), strict=True))
    stage = {name: ca.SX.sym(f"stage_{name}", value.shape[0]) for name, value in reduced.stage_multipliers.items()}
    predicted = []
    for block in reduced.blocks:
        if block.kind == "carried" or not (block.smooth and contiguous):
            predicted.append(block.symbols)
            continue
        stages = len(block.nodes)
        known = ca.reshape(block.symbols, block.size, stages).T
        if block.kind == "increment":
            at_end = moved = deltas[block.of] / last if block.per_h else deltas[block.of]
            unit = 1 / ratio if block.per_h else ca.SX(1)
        else:
            at_end, moved, unit = last * stage[block.of], ca.SX.zeros(block.size, 1), ratio
        moved = origin * moved
        known = ca.vertcat(known, at_end.T) if block.ends else known
        values = ca.mtimes(extrapolation(block, ratio, origin), known)
        if clock is None and _knows_velocity(block, reduced):
            bent = _with_velocity(block, known, _velocity(reduced))
            values += bent if len(_nodes(block)) == 2 else ca.if_else(exact, bent, 0)  # high degrees amplify loose solves
        predicted.append(unit * ca.vec((values - ca.repmat(moved.T, stages, 1)).T))
    guess, left = ca.vertcat(ca.SX(0, 1), *predicted), list[tuple[ca.SX, int]]()
    if not _combines(reduced):
        guess, given_before, left = _corrected(guess, reduced.x, exact, layout)
        symbols += given_before
    given = ca.vertcat(*stage.values())
    symbols += [(reduced.x, layout.x), (delta, layout.delta), (given, layout.stage_multipliers)]
    t, _, theta, state = reduced.data
    symbols += [(t, layout.time), (theta, layout.theta), (state, layout.state)]
    return Kernel("predict", symbols, [(guess, layout.x), *left], often=True)


def _corrected(
    extrapolated: ca.SX, x: ca.SX, exact: ca.SX, layout: Layout
) -> tuple[ca.SX, list[tuple[ca.SX, int]], list[tuple[ca.SX, int]]]:
    """The guess, to which what the last two steps missed is added, continued as a line.

    Each unknown is corrected by itself, and only if that would have come much nearer in the last step: not after an impact or a
    kink, not where memory was left by other steps, and not by rounding errors. Besides, what is read and what is left for the
    next guess, with slots.
    """
    slots = (layout.extrapolated, layout.missed, layout.missed_more)
    before, missed_before, more_before = given = [ca.SX.sym("before", x.shape[0]) for _ in slots]
    missed = x - before
    more = missed - missed_before
    nearer = 2 * ca.fabs(more - more_before) < ca.fabs(missed)
    guess = extrapolated + ca.if_else(ca.logic_and(nearer, exact), missed + more, 0)
    left = (extrapolated, missed, more)
    return guess, list(zip(given, slots, strict=True)), list(zip(left, slots, strict=True))


def _knows_velocity(block: UnknownBlock, reduced: ReducedStep) -> bool:
    """Whether a block samples positions up to the end of the step, where the state tells the velocity, too.

    Variational integrators, which have no stages of momenta, keep the line, from which collision integrators find impacts.
    """
    step = reduced.equations.step
    first, second = step.state
    positions, nodes = block.of == first and block.per_h and block.anchored, _nodes(block)
    to_the_end = nodes[-1] == 1.0 and bool(np.all(np.diff(nodes) > 0)) and len(nodes) <= MOST_NODES
    return positions and to_the_end and not _combines(reduced) and any(b.of == second for b in step.unknowns)


def _combines(reduced: ReducedStep) -> bool:
    """Whether redundant constraints are combined: how, changes between steps, and with it what guesses miss."""
    system = reduced.equations.step.definition
    return isinstance(system, MechanicalSystem) and system.combines is not None


def _nodes(block: UnknownBlock) -> np.ndarray:
    """Where the sampled curve is known, the beginning and the end of the step included."""
    return np.concatenate([[0.0] * block.anchored, block.nodes, [1.0] * block.ends])


def _with_velocity(block: UnknownBlock, known: ca.SX, velocity: ca.SX) -> ca.SX:
    """What the polynomial that has this velocity at the end, too, adds to `extrapolation` at the stages of the next step.

    It is a multiple of the polynomial that vanishes at all nodes.
    """
    nodes = _nodes(block)
    vanishing = np.polynomial.Polynomial.fromroots(nodes)
    rate = vanishing.deriv()(1.0)
    slopes = [
        (np.polynomial.Polynomial.fromroots(others := np.delete(nodes, j)) / np.prod(nodes[j] - others)).deriv()(1.0)
        for j in range(1, len(nodes))
    ]
    return ca.DM(vanishing(1.0 + block.nodes) / rate) @ (velocity.T - ca.DM(slopes).T @ known)


def _velocity(reduced: ReducedStep) -> ca.SX:
    """The rate of the first block of the state that a step begins with."""
    step = reduced.equations.step
    return step.definition.function("v")(step.time_symbol, *step.state.values(), step.theta)


def clock_kernels(reduced: ReducedStep, layout: Layout) -> tuple[Kernel, ...]:
    """Where step sizes vary: what sets t and h before a step, and what leaves the next ones behind it."""
    clock, (t, h, theta, state) = reduced.equations.step.clock, reduced.data
    if clock is None:
        return ()
    given = [(theta, layout.theta), (state, layout.state), (clock.values, layout.clock), (clock.end, layout.t_end)]
    made = [(t, layout.time), (h, layout.h), (clock.delta, layout.delta), (reduced.x, layout.x)]
    left = [(reduced.express(clock.change), layout.delta + layout.n_state), (h, layout.last_h)]
    left.append((reduced.express(clock.taken), layout.taken))
    if clock.following is not None:
        left.append((reduced.express(clock.following), layout.clock + 1))
    return Kernel("clock", given, [(clock.begin, layout.time)]), Kernel("tick", [*given, *made], left)
