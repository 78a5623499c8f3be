"""Which pivot order serves a start, so that as many starts, step sizes and parameters as possible share one program.

Orders are looked at in a fixed sequence: one that comes from the structure of the equations alone, then those that earlier
starts of the same model needed, then one of the start's own, from states on the constraints with the start's parameters. The
first is taken with which a solve at the start has a small backward error.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable

import casadi as ca
import numpy as np

from dalembert._progress import phase
from dalembert.compiler._elimination import PivotOrder, SingularMatrix, backward_errors, choose_pivots, diagonal_order
from dalembert.compiler._guess import first_guess
from dalembert.compiler._program import Program, program_of, reduced_step
from dalembert.compiler._reduction import Part, ReducedStep
from dalembert.compiler._samples import sampled_entries
from dalembert.methods import OneStepMethod
from dalembert.symbolic._kept import Recent, kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import State, System
from dalembert.systems._states import States

OWN_ORDERS = 64
"""How many members of an ensemble may choose a pivot order of their own."""

LARGEST_ERROR: dict[Part, float] = {"jacobian": 1e-8, "last": 1e-14}
"""The backward error that an order may have: Newton's iteration corrects it, the last unknowns are solved for only once."""

_needed: dict[tuple[ReducedStep, Part], list[PivotOrder]] = Recent()
"""Orders that starts have needed because the structure's own would not do, oldest first."""

NEARLY = 10.0
"""How much larger the error of an earlier order may be than that of one of its own, if that is too large as well."""

STARTS = 32
"""For how many starts of a model it is remembered which orders they have."""

_decided: dict[tuple[ReducedStep, bool], dict[tuple[Hashable, ...], list[PivotOrder]]] = Recent()
"""By start and step size, oldest first: what was looked for once is not looked for again when the same run is made again."""

SHORT = 2.0**-10
"""How much shorter a step is by which entries are found that vanish with h."""

log = logging.getLogger(__name__)


@one_at_a_time
def build_program(
    system: System,
    method: OneStepMethod,
    state: State,
    h: float,
    *,
    contiguous: bool = True,
    alone: bool = False,
    near: np.ndarray | None = None,
) -> Program:
    """Compile the step equations; with the unknowns `near`, the pivot order is chosen for just these and this state.

    Steps are `contiguous` unless they are substeps of a composition, which do not start where they last ended. `alone`, orders
    that earlier starts needed are not looked at.
    """
    reduced = reduced_step(system, method)
    if near is not None:
        orders = [_order_at(reduced, part, state, h, near) for part in _parts(reduced)]
        return program_of(system, method, *_pair(orders), contiguous)
    return program_of(system, method, *_pair(_orders_at(reduced, system, state, h, alone)), contiguous)


def _orders_at(reduced: ReducedStep, system: System, state: State, h: float, alone: bool) -> list[PivotOrder]:
    """The orders for a start, as they were found when it was last asked for."""
    decided = _decided.setdefault((reduced, alone), {})
    start = (system.fingerprint, state.t, h, *(x.tobytes() for x in (state.packed, state.multipliers, state.theta)))
    orders = decided.pop(start, None)
    if orders is None:
        guesses = first_guess(reduced, system, state, h)[None]
        orders = [_orders_for(reduced, part, States.of(system, state), h, guesses, alone)[0] for part in _parts(reduced)]
    decided[start] = orders
    if len(decided) > STARTS:
        del decided[next(iter(decided))]
    return orders


@one_at_a_time
def build_programs(
    system: System,
    method: OneStepMethod,
    states: States,
    h: float,
    guesses: np.ndarray,
    *,
    contiguous: bool = True,
    alone: bool = False,
) -> list[Program]:
    """A program for each of many states: what `build_program` gives, as long as few states need an order of their own.

    Where many do, most of the time would go into compiling: the first such order serves for the rest.
    """
    reduced = reduced_step(system, method)
    orders = [_orders_for(reduced, part, states, h, guesses, alone) for part in _parts(reduced)]
    return [program_of(system, method, *_pair(own), contiguous) for own in zip(*orders, strict=True)]


def _parts(reduced: ReducedStep) -> tuple[Part, ...]:
    return ("jacobian",) if reduced.last is None else ("jacobian", "last")


def _pair(orders: list[PivotOrder] | tuple[PivotOrder, ...]) -> tuple[PivotOrder, PivotOrder | None]:
    return orders[0], orders[1] if len(orders) > 1 else None


def _orders_for(
    reduced: ReducedStep, part: Part, states: States, h: float, guesses: np.ndarray, alone: bool = False
) -> list[PivotOrder]:
    """An order for each state: the first that serves it."""
    phase("the pivot order")
    chosen: list[PivotOrder | None] = [None] * len(states)
    open_members = np.arange(len(states))
    needed = _needed.setdefault((reduced, part), [])
    structural = _structural_order(reduced, part)

    def offer(order: PivotOrder, members: np.ndarray) -> np.ndarray:
        """Give the order to the members that it serves; the others are returned."""
        serves = order_errors(order, reduced, part, states.take(members), h, guesses[members]) <= LARGEST_ERROR[part]
        for member in members[serves]:
            chosen[member] = order
        return members[~serves]

    for order in ([] if structural is None else [structural]) + ([] if alone else needed):
        open_members = offer(order, open_members)
    made: list[PivotOrder] = []
    while len(open_members) and len(made) < OWN_ORDERS:
        member, rest = open_members[0], open_members[1:]
        order = _own_order(reduced, part, states, int(member), h, guesses[member], [] if alone else needed)
        chosen[member] = order
        made.append(order)
        if order not in needed:
            if needed:
                log.warning("%s needs another pivot order here, and so another program", reduced.equations.step.definition)
            needed.append(order)
        open_members = offer(order, rest)
    return [order or made[0] for order in chosen]


def _own_order(
    reduced: ReducedStep, part: Part, states: States, member: int, h: float, guess: np.ndarray, earlier: list[PivotOrder]
) -> PivotOrder:
    """The order of one state: from its neighbourhood, or, where that does not serve it, the best that is known.

    Then no order has an error as small as it should be, and one of an earlier start is preferred to another program.
    """
    state, alone = states[member], states.take(np.array([member]))

    def error_of(order: PivotOrder) -> float:
        return float(np.nan_to_num(order_errors(order, reduced, part, alone, h, guess[None])[0], nan=np.inf))

    here: list[PivotOrder] = []
    try:
        here.append(_chosen(reduced, part, sampled_entries(reduced, part, states.system, state, h)))
        if error_of(here[0]) <= LARGEST_ERROR[part]:
            return here[0]
    except SingularMatrix:
        pass
    here.append(_order_at(reduced, part, state, h, guess))
    errors = [error_of(order) for order in here]
    best = int(np.argmin(errors))
    return next((order for order in earlier if error_of(order) <= NEARLY * errors[best]), here[best])


def _order_at(reduced: ReducedStep, part: Part, state: State, h: float, x: np.ndarray) -> PivotOrder:
    """The order for a step from a state with the unknowns x, and for what is close to it."""
    random = np.random.default_rng(1788)
    samples = []
    for spread in (0.0, 1e-3, 1e-2):
        point, around = (v + spread * np.abs(v) * random.standard_normal(len(v)) for v in (x, state.packed))
        samples.append(np.asarray(reduced.entries(part)(point, state.t, h, state.theta, around), dtype=float).ravel())
    return _chosen(reduced, part, samples)


@kept
def _structural_order(reduced: ReducedStep, part: Part) -> PivotOrder | None:
    """The order that all starts, parameters and step sizes may share, if there is one.

    The matrix of the last block is, in mechanics, G M^-1 G^T and the like: positive definite, so that pivots on its diagonal
    serve everywhere. Else the order comes from random states of size one with all parameters one.
    """
    random = np.random.default_rng(1788)
    _, _, theta, state = reduced.data
    samples = []
    for h in (1e-1, 1e-2, 1e-3) * 3:
        sizes = [1.0 if block.per_h else h for block in reduced.blocks for _ in range(block.symbols.shape[0])]
        x = np.array(sizes) * random.standard_normal(len(sizes))
        values = reduced.entries(part)(x, 0.0, h, np.ones(theta.shape[0]), random.standard_normal(state.shape[0]))
        samples.append(np.asarray(values, dtype=float).ravel())
    finite = sum(bool(np.all(np.isfinite(values))) for values in samples)
    try:
        if part == "last":
            return diagonal_order(reduced.matrix(part))
        return _chosen(reduced, part, samples) if finite >= 3 else None
    except SingularMatrix:  # it need not be singular for the model's own parameters
        return None


def _chosen(reduced: ReducedStep, part: Part, samples: list[np.ndarray]) -> PivotOrder:
    """The order for one of the matrices of a step, samples of which are given."""
    return chosen_from(reduced.matrix(part), samples, *([reduced.leading] if part == "jacobian" else []))


def chosen_from(matrix: ca.SX, samples: list[np.ndarray], leading: tuple[range, range] = (range(0), range(0))) -> PivotOrder:
    """The order for a matrix of which samples of the entries are given, some of which may not be finite."""
    rows, columns = (np.array(a, dtype=int) for a in matrix.sparsity().get_triplet())
    finite = [values for values in samples if np.all(np.isfinite(values))]
    given = np.array(finite).T if finite else np.ones((len(rows), 1))
    return choose_pivots(rows, columns, given, matrix.shape[0], leading)


def order_errors(
    order: PivotOrder, reduced: ReducedStep, part: Part, states: States, h: float, guesses: np.ndarray
) -> np.ndarray:
    """The backward errors of solves in this order, one for each state and guess.

    Entries that vanish with h, compared to others, say nothing about the sizes of unknowns: they are told apart by the matrix
    of a much shorter step.
    """
    count = len(states)
    if not count:
        return np.zeros(0)
    pattern = reduced.matrix(part).sparsity()
    rows, columns = (np.array(a, dtype=int) for a in pattern.get_triplet())
    kept = np.array([1.0 if block.per_h else SHORT for block in reduced.blocks for _ in range(block.symbols.shape[0])])
    entries = reduced.entries(part).map(count)

    def at(x: np.ndarray, size: float) -> np.ndarray:
        values = entries(x.T, states.t[None], np.full((1, count), size), states.theta.T, states.packed.T)
        return np.asarray(values, dtype=float).reshape(len(rows), count, order="F")

    samples, short = at(guesses, h), at(guesses * kept, SHORT * h)
    lasting = ~(np.abs(short) < 0.5 * np.abs(samples))
    return backward_errors(order, rows, columns, samples, pattern.size1(), lasting)
