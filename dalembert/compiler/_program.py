"""The compiled form of (system, method): kernels over one block of memory, and where everything lies in it."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert._one_thread import one_at_a_time
from dalembert.compiler._elimination import (
    PivotOrder,
    Rows,
    SingularMatrix,
    choose_pivots,
    eliminate,
    filled_pattern,
    substitute,
    survives,
)
from dalembert.compiler._guess import first_guess, predictor
from dalembert.compiler._ir import Kernel, emit_module, operation_count
from dalembert.compiler._jit import Code, compile_module
from dalembert.compiler._lanes import LaneCode, compile_lanes
from dalembert.compiler._linear_form import LinearForms
from dalembert.compiler._memory import Layout
from dalembert.compiler._reduction import Part, ReducedStep, reduce_step
from dalembert.compiler._stopping import fastest
from dalembert.methods import OneStepMethod
from dalembert.methods._step import UnknownBlock
from dalembert.systems import State, System
from dalembert.systems._states import States

STRAIGHT_LINE_LIMIT = 8_000
"""Products in an elimination from which on a loop over the pattern replaces straight-line code."""

OVERHEAD = 60
"""What the driver does in an iteration besides calling the kernel, in operations."""

LEAST_NOISE = 1e-12
"""The relative size that rounding errors may give to increments of a block that vanishes."""

GUARD = 1e7
"""How much less, squared, linear impulses of holonomic constraints weigh than the rounding error of momenta."""

OWN_ORDERS = 64
"""How many members of an ensemble may choose a pivot order of their own."""

MATRIX_ROOM = 2_000_000
"""How many entries of matrices to hold at once where many are looked at."""

KERNELS = ("predict", "weigh", "factor", "iterate", "finish")


@dataclass(frozen=True, eq=False)
class Program:
    """Everything that the engine needs to run steps of one method on one system."""

    reduced: ReducedStep
    order: PivotOrder
    layout: Layout
    kernels: tuple[Kernel, ...]
    increment: tuple[ca.SX, ca.SX] | None
    """What an iteration subtracts from x, and its squared size, in straight-line programs."""
    memory_size: int
    code: Code
    straight_line: bool
    index: np.ndarray
    index_start: dict[str, int]
    cost_ratio: float
    """What a factorisation costs, in iterations."""

    @property
    def addresses(self) -> np.ndarray:
        """The kernels' addresses in the order of `KERNELS`."""
        return np.array([self.code.addresses[name] for name in KERNELS], dtype=np.int64)

    @property
    def operations(self) -> int:
        """How many operations the kernels take, each once."""
        return sum(operation_count(kernel.function()[0]) for kernel in self.kernels)

    @functools.cache  # noqa: B019 - a program lives as long as its process
    @one_at_a_time
    def in_lanes(self, lanes: int) -> LaneCode:
        """The kernels for so many trajectories side by side."""
        assert self.increment is not None
        believed = fastest(self.reduced.equations.step.definition)
        return compile_lanes(self.kernels, self.reduced.x, *self.increment, self.layout, lanes, believed)


_by_graph: dict[tuple[str, OneStepMethod], ReducedStep] = {}
_programs: dict[tuple[str, OneStepMethod, PivotOrder, PivotOrder | None, bool], Program] = {}


@one_at_a_time
def reduced_step(system: System, method: OneStepMethod) -> ReducedStep:
    """The reduced equations; built once for equal models, whatever objects they came from."""
    key = (system.fingerprint, method)
    if key not in _by_graph:
        _by_graph[key] = reduce_step(method.step_equations(system))
    return _by_graph[key]


@one_at_a_time
def build_program(
    system: System,
    method: OneStepMethod,
    state: State,
    h: float,
    *,
    contiguous: bool = True,
    near: np.ndarray | None = None,
) -> Program:
    """Compile the step equations; with the unknowns `near`, the pivot order is chosen for just these and this state.

    Steps are `contiguous` unless they are substeps of a composition, which do not start where they last ended.
    """
    reduced = reduced_step(system, method)
    guess = first_guess(reduced, system, state, h) if near is None else near

    packed = state.packed

    def order_of(part: Part) -> PivotOrder:
        order = None if near is not None else _order_near(reduced, part, packed, guess, h)
        if order is not None and _survives(order, reduced, part, guess[None], state, h)[0]:
            return order
        random = np.random.default_rng(1788)
        samples = []
        for spread in (0.0, 1e-3, 1e-2):
            point, around = (x + spread * np.abs(x) * random.standard_normal(len(x)) for x in (guess, packed))
            samples.append(reduced.entries(part)(point, state.t, h, state.theta, around))
        return _order_from(reduced.matrix(part), samples)

    order = order_of("jacobian")
    last_order = None if reduced.last is None else order_of("last")
    key = (system.fingerprint, method, order, last_order, contiguous)
    if key not in _programs:
        _programs[key] = _compile(reduced, order, last_order, contiguous)
    return _programs[key]


@one_at_a_time
def build_programs(
    system: System, method: OneStepMethod, states: States, h: float, guesses: np.ndarray, *, contiguous: bool = True
) -> list[Program]:
    """A program for each of many states: what `build_program` gives, as long as few states need an order of their own.

    Where many do, most of the time would go into compiling: the first such order serves for the rest.
    """
    reduced = reduced_step(system, method)
    parts: tuple[Part, ...] = ("jacobian",) if reduced.last is None else ("jacobian", "last")
    sizes = [(_rounded_size(packed), _rounded_size(guess)) for packed, guess in zip(states.packed, guesses, strict=True)]
    shared = np.ones(len(states), dtype=bool)
    for size in set(sizes):
        members = np.flatnonzero([other == size for other in sizes])
        for part in parts:
            order = _order_near(reduced, part, states.packed[members[0]], guesses[members[0]], h)
            here = states.take(members)
            shared[members] &= order is not None and _survives(order, reduced, part, guesses[members], here, h)
    own = np.flatnonzero(~shared)
    late = dict.fromkeys(own[OWN_ORDERS:].tolist(), own[0] if len(own) else 0)
    chosen: dict[tuple[float, float] | int, Program] = {}
    programs: list[Program] = []
    for k, size in enumerate(sizes):
        key = size if shared[k] else late.get(k, k)
        if key not in chosen:
            chosen[key] = build_program(system, method, states[k], h, contiguous=contiguous)
        programs.append(chosen[key])
    return programs


def _order_near(reduced: ReducedStep, part: Part, packed: np.ndarray, guess: np.ndarray, h: float) -> PivotOrder | None:
    """The order that all states of about this size share, if there is one."""
    coarse_h = float(np.copysign(10.0 ** np.round(np.log10(abs(h))), h))
    n_theta, sizes = reduced.data[2].shape[0], (_rounded_size(packed), _rounded_size(guess))
    return _shared_order(reduced, part, n_theta, len(packed), len(guess), *sizes, coarse_h)


def _survives(
    order: PivotOrder, reduced: ReducedStep, part: Part, guesses: np.ndarray, states: State | States, h: float
) -> np.ndarray:
    """Whether the order meets no vanishing pivot at each of the states and guesses."""
    pattern, members = reduced.matrix(part).sparsity(), len(guesses)
    rows, columns = pattern.get_triplet()
    verdicts = [np.zeros(0, dtype=bool)]
    most = max(1, MATRIX_ROOM // max(1, pattern.numel()))
    t, theta, packed = np.reshape(states.t, -1), np.atleast_2d(states.theta), np.atleast_2d(states.packed)
    for first in range(0, members, most):
        some = slice(first, first + most)
        count = len(guesses[some])
        arguments = (guesses[some].T, t[None, some], np.full((1, count), h), theta[some].T, packed[some].T)
        values = np.asarray(reduced.entries(part).map(count)(*arguments), dtype=float).reshape(len(rows), count, order="F")
        matrices = np.zeros((count, *pattern.shape))
        matrices[:, rows, columns] = values.T
        verdicts.append(survives(order, matrices))
    return np.concatenate(verdicts)


@functools.lru_cache(maxsize=1024)
def _shared_order(
    reduced: ReducedStep, part: Part, n_theta: int, n_state: int, n_x: int, state_size: float, x_size: float, h: float
) -> PivotOrder | None:
    """The order from random states of about the start's size, at time zero, with all parameters one; None if undefined there.

    Not from the start itself: other parameters, neighbouring starts and step sizes then share one order, and so one program.
    """
    random = np.random.default_rng(1788)
    samples = [
        reduced.entries(part)(
            x_size * random.standard_normal(n_x), 0.0, h, np.ones(n_theta), state_size * random.standard_normal(n_state)
        )
        for _ in range(9)
    ]
    try:
        return _order_from(reduced.matrix(part), samples) if len(_finite(samples)) >= 3 else None
    except SingularMatrix:  # it need not be singular for the model's own parameters
        return None


def _order_from(matrix: ca.SX, samples: list) -> PivotOrder:
    rows, columns = (np.array(a, dtype=int) for a in matrix.sparsity().get_triplet())
    finite = _finite(samples)
    return choose_pivots(rows, columns, np.array(finite).T if finite else np.ones((len(rows), 1)), matrix.shape[0])


def _finite(samples: list) -> list[np.ndarray]:
    arrays = [np.asarray(sample, dtype=float).ravel() for sample in samples]
    return [values for values in arrays if np.all(np.isfinite(values))]


def _rounded_size(x: np.ndarray) -> float:
    size = float(np.max(np.abs(x), initial=0.0))
    return 2.0 ** round(np.log2(size)) if 1e-100 < size < 1e100 else 1.0


def _compile(reduced: ReducedStep, order: PivotOrder, last_order: PivotOrder | None, contiguous: bool) -> Program:
    measured = [block for block in reduced.blocks if block.kind != "carried"]
    straight_line = order.products <= STRAIGHT_LINE_LIMIT
    time, h, theta, state = reduced.data
    n_x = reduced.x.shape[0]
    rows, columns = (np.array(a, dtype=int) for a in reduced.jacobian.sparsity().get_triplet())
    n_filled = 0
    tables: dict[str, np.ndarray] = {}
    residual, results = reduced.residual, _results(reduced, last_order)
    forms, explicit = LinearForms(reduced.x, ca.vertcat(*reduced.data)), reduced.explicit_stage
    if straight_line:
        residual, explicit = forms.rewrite(residual), forms.rewrite(explicit)
        ends = np.cumsum([0, *(part.shape[0] for part in results)]).tolist()
        results = ca.vertsplit(forms.rewrite(ca.vertcat(*results)), ends)
        reciprocals, lower, upper = eliminate(ca.jacobian(residual, reduced.x), order)
        reciprocals, lower, upper, stored = _name_factors(reciprocals, lower, upper)
    else:
        tables = filled_pattern(rows, columns, order)
        stored = [(ca.SX.sym("entry"), entry) for entry in reduced.jacobian.nonzeros()]
        n_filled = len(tables["column"])
    n_factors = len(stored) + n_filled
    n_stage = sum(part.shape[0] for part in reduced.stage_multipliers.values())
    sizes = (theta.shape[0], state.shape[0], n_stage, n_x, len(measured), n_factors, len(forms.once))
    layout = Layout(*sizes)
    once_names = ca.vertcat(ca.SX(0, 1), *(name for name, _ in forms.once))
    once = ca.vertcat(ca.SX(0, 1), *(value for _, value in forms.once))
    symbols = [(time, layout.time), (h, layout.h), (theta, layout.theta), (state, layout.state), (reduced.x, layout.x)]
    symbols.append((once_names, layout.once))
    names = ca.vertcat(ca.SX(0, 1), *(name for name, _ in stored))
    values = ca.vertcat(ca.SX(0, 1), *(value for _, value in stored))
    weights, delta = ca.SX.sym("weight", len(measured)), ca.SX.sym("delta", state.shape[0])
    if straight_line:
        step = substitute(reciprocals, lower, upper, order, residual)
        size = _weighted_size(reduced, measured, weights, step, explicit)
        increment = (step, size)
        iterate = Kernel(
            "iterate",
            [*symbols, (names, layout.factors), (weights, layout.weights)],
            [(reduced.x - step, layout.x), (size, layout.increment_size)],
        )
    else:
        increment = None
        iterate = Kernel("iterate", symbols, [(reduced.residual, layout.residual)])
    kernels = (
        predictor(reduced, layout, delta, _weights(reduced, measured, delta), once, contiguous),
        Kernel(
            "weigh",
            [*symbols, (delta, layout.delta)],
            list(zip((*_weights(reduced, measured, delta), once), (layout.weights, layout.noise, layout.once), strict=True)),
        ),
        Kernel("factor", symbols, [(values, layout.factors)]),
        iterate,
        Kernel("finish", symbols, list(zip(results, layout.results, strict=True))),
    )
    assembly, used = emit_module(kernels, layout.work)
    code = compile_module(assembly, KERNELS)
    measured_index = {block.name: k for k, block in enumerate(measured)}
    tables["weight_of"] = np.concatenate(
        [np.zeros(0, int), *(np.full(b.symbols.shape[0], measured_index.get(b.name, -1)) for b in reduced.blocks)]
    )
    starts = np.cumsum([0, *(len(table) for table in tables.values())])
    # A product of the run-time elimination costs about as much as three straight-line operations.
    loop_factor, loop_solve = (0, 0) if straight_line else (3 * order.products, 3 * n_filled)
    factor_cost = operation_count(kernels[2].function()[0]) + loop_factor
    iteration_cost = operation_count(kernels[3].function()[0]) + loop_solve + OVERHEAD
    return Program(
        reduced=reduced,
        order=order,
        layout=layout,
        kernels=kernels,
        increment=increment,
        memory_size=layout.work + used,
        code=code,
        straight_line=straight_line,
        index=np.concatenate(list(tables.values())).astype(np.int64),
        index_start=dict(zip(tables, starts.tolist(), strict=False)),
        cost_ratio=factor_cost / iteration_cost,
    )


def _results(reduced: ReducedStep, last_order: PivotOrder | None) -> list[ca.SX]:
    """The increment of the state, the stage multipliers, the orientation and H, with the last unknowns solved for."""
    results = [reduced.increment, ca.vertcat(*reduced.stage_multipliers.values()), reduced.orientation, reduced.energy]
    if reduced.last is not None and last_order is not None:
        y = substitute(*eliminate(reduced.last.matrix, last_order), last_order, reduced.last.rhs)
        results = [ca.substitute(result, reduced.last.y, y) for result in results]
    return results


def _name_factors(
    reciprocals: list[ca.SX], lower: Rows, upper: Rows
) -> tuple[list[ca.SX], Rows, Rows, list[tuple[ca.SX, ca.SX]]]:
    """Give each factor that is not a constant a symbol, pivots first; `stored` pairs the symbols with their values."""
    stored: list[tuple[ca.SX, ca.SX]] = []

    def name(value: ca.SX) -> ca.SX:
        if value.is_constant():
            return value
        stored.append((ca.SX.sym("factor"), value))
        return stored[-1][0]

    named = [name(value) for value in reciprocals]
    named_lower, named_upper = ([{j: name(value) for j, value in row.items()} for row in part] for part in (lower, upper))
    return named, named_lower, named_upper, stored


def _slice(reduced: ReducedStep, column: ca.SX, wanted: object) -> ca.SX:
    start = 0
    for block in reduced.blocks:
        if block is wanted:
            return column[start : start + block.symbols.shape[0]]
        start += block.symbols.shape[0]
    raise AssertionError("a block that is not part of the step")


def _weights(reduced: ReducedStep, measured: list, delta: ca.SX) -> tuple[ca.SX, ca.SX]:
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
            floor = 1e-16
        else:
            # A block that happens to vanish must not drown the others in its rounding errors.
            floor = (rounding / LEAST_NOISE) ** 2
            if step.constrains_positions:
                momentum = ca.repmat(states[name], len(block.nodes), 1) + (0 if impulse else block.symbols)
                mass = ca.sumsqr(momentum) / (ca.sumsqr(measured[0].symbols) + 1e-300)
                scale += mass * ca.sumsqr(states[measured[0].of]) / (h * h)
                floor = 16
        if impulse:
            scale /= _momentum_of_impulse(reduced, block)
            floor = GUARD if block.of == "lam" and step.definition.linear_in_multipliers else floor
        weights.append(1 / (size + floor * scale + 1e-300))
        noise += rounding**2 * scale * weights[-1]
    return ca.vertcat(ca.SX(0, 1), *weights), noise


def _momentum_of_impulse(reduced: ReducedStep, block: UnknownBlock) -> ca.SX:
    """The squared size of the momentum that a unit impulse gives: of the columns of `directions` at the first stage."""
    step, system = reduced.equations.step, reduced.equations.step.definition
    sizes = {"lam": system.n_holonomic, "psi": system.n_nonholonomic}
    here = {name: ca.SX.zeros(size, 1) for name, size in sizes.items()}
    here[block.of] = block.symbols[: block.size] / step.h_symbol
    columns = system.function("directions")(step.time_symbol, *step.state.values(), *here.values(), step.theta)
    own = columns[:, : sizes["lam"]] if block.of == "lam" else columns[:, sizes["lam"] :]
    return ca.sumsqr(own) + 1e-300


def _weighted_size(reduced: ReducedStep, measured: list, weights: ca.SX, step: ca.SX, explicit: ca.SX) -> ca.SX:
    total = ca.SX(0)
    for k, block in enumerate(measured):
        total += weights[k] * ca.sumsqr(_slice(reduced, step, block))
    if measured and explicit.shape[0]:
        total += weights[0] * ca.sumsqr(ca.jtimes(explicit, reduced.x, step))
    return total
