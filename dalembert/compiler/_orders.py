"""A program for each start: which pivot order serves it, so that as many starts as possible share one program."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import PivotOrder, SingularMatrix, choose_pivots, survives
from dalembert.compiler._guess import first_guess
from dalembert.compiler._program import Program, program_of, reduced_step
from dalembert.compiler._reduction import Part, ReducedStep
from dalembert.methods import OneStepMethod
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import State, System
from dalembert.systems._states import States

OWN_ORDERS = 64
"""How many members of an ensemble may choose a pivot order of their own."""

MATRIX_ROOM = 2_000_000
"""How many entries of matrices to hold at once where many are looked at."""


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
    return program_of(system, method, order, last_order, contiguous)


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
