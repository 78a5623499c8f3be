"""The kernels of a step: predict, weigh, factor, iterate, finish, and what decides where a glance at a step does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import PivotOrder, eliminate, name_factors, substitute
from dalembert.compiler._guess import clock_kernels, predictor
from dalembert.compiler._increments import weights_and_noise
from dalembert.compiler._ir import Kernel, compile_kernels, in_two_parts
from dalembert.compiler._jit import Code
from dalembert.compiler._linear_form import LinearForms
from dalembert.compiler._memory import Layout
from dalembert.compiler._reduction import ReducedStep
from dalembert.compiler._step_symbols import (
    last_solved,
    layout_of,
    measure_of,
    results_of,
    solved_results,
    symbols_of,
    used_forms,
)
from dalembert.compiler._tape import Tape, entries_of, read_tape
from dalembert.symbolic._kept import kept

FORMS_LIMIT = 5_000
"""Operations of the equations and their Jacobian up to which they become linear forms: the coefficients of longer ones, which
are stored once a step, take longer to store and to read than they save."""

SELDOM = 1_500
"""Operations from which on kernels that most steps do not call are compiled quickly, and those that are called once a step
where steps eliminate at run time, which takes most of their time."""

LONG = 10_000
"""Operations from which on kernels that are called once a step are compiled quickly in all programs: they take a tenth longer,
and LLVM takes 0.07 s less for every thousand (Bricard's mechanism: a first step after 2.4 s instead of 3.7 s)."""

MANY_STAGES = 5
"""Positions in so many stages are weighed in vectors: most of that is the same for all coordinates. LLVM takes 20 ms for it."""


@dataclass(frozen=True, eq=False)
class CompiledStep:
    """Kernels and what belongs to them, of a program that eliminates in straight-line code or, in any order, at run time."""

    kernels: tuple[Kernel, ...]
    layout: Layout
    increment: tuple[ca.SX, ca.SX] | None
    code: Code
    memory_size: int


@kept
def newton_tape(reduced: ReducedStep) -> Tape:
    """The residual and the entries of its Jacobian."""
    values = ca.vertcat(reduced.residual, entries_of(reduced.jacobian))
    return read_tape(ca.Function("newton", [ca.vertcat(reduced.x, *reduced.data)], [ca.densify(values)]))


def straight_line_kernels(
    reduced: ReducedStep, order: PivotOrder, last_order: PivotOrder | None, contiguous: bool
) -> CompiledStep:
    """Kernels that eliminate in a fixed order, in code without loops."""
    forms = LinearForms(reduced.x, ca.vertcat(*reduced.data, reduced.metric.column))
    rewrite = forms.rewrite if len(newton_tape(reduced).computed) <= FORMS_LIMIT else lambda expression: expression
    explicit, slopes = rewrite(reduced.explicit_stage), rewrite(reduced.slopes)
    residual = reduced.combination @ rewrite(reduced.plain)
    results = solved_results(reduced, last_order)
    ends = np.cumsum([0, *(part.shape[0] for part in results)]).tolist()
    results = ca.vertsplit(rewrite(ca.vertcat(*results)), ends)
    reciprocals, lower, upper, stored = name_factors(*eliminate(ca.jacobian(slopes, reduced.x), order))
    coefficients = used_forms(forms, ca.vertcat(residual, explicit, *results, *(value for _, value in stored)))
    layout = layout_of(reduced, len(stored), len(coefficients))
    names = ca.vertcat(ca.SX(0, 1), *(name for name, _ in stored))
    values = ca.vertcat(ca.SX(0, 1), *(value for _, value in stored))
    weights = ca.SX.sym("weight", layout.n_x)
    step = substitute(reciprocals, lower, upper, order, residual)
    size = measure_of(reduced).size(reduced, weights, step, explicit)
    symbols = [*symbols_of(reduced, layout), (ca.vertcat(ca.SX(0, 1), *(name for name, _ in coefficients)), layout.once)]
    metric = (reduced.metric.column, layout.metric)
    factor = Kernel("factor", symbols, [(values, layout.factors)], often=True)
    iterate = Kernel(
        "iterate",
        [*symbols, (names, layout.factors), (weights, layout.weights)],
        [(reduced.x - step, layout.x), (size, layout.increment_size)],
        often=True,
    )
    finish = Kernel("finish", [*symbols, metric], list(zip(results, layout.results, strict=True)))
    exact = last_solved(reduced, [reduced.signed(reduced.orientation)], last_order)[0]
    look = _look(reduced, layout, [*symbols_of(reduced, layout), metric], exact)
    once = ca.vertcat(ca.SX(0, 1), *(value for _, value in coefficients))
    return _assemble(reduced, layout, (factor, iterate, finish, *look), once, (step, size), contiguous)


@kept
def looped_kernels(reduced: ReducedStep, contiguous: bool) -> CompiledStep:
    """Kernels that leave elimination to loops over tables, the same for every pivot order."""
    entries = entries_of(reduced.jacobian)
    layout = layout_of(reduced, entries.shape[0], 0, at_run_time=True)
    symbols = symbols_of(reduced, layout)
    factor = Kernel("factor", symbols, [(entries, layout.factors)])
    iterate = Kernel("iterate", symbols, [(reduced.residual, layout.residual)])
    results = list(zip(results_of(reduced), layout.results, strict=True))
    known = []
    if reduced.turn is not None:
        known = [(reduced.turn.symbol, 1.0)]
        results.append((entries_of(reduced.turn.matrix), layout.turn_entries))
    symbols = [*symbols, (reduced.metric.column, layout.metric)]
    if reduced.last is None:
        finish = Kernel("finish", symbols, results, known=known)
        solving = (factor, iterate, finish, *_look(reduced, layout, symbols, reduced.orientation, known))
        return _assemble(reduced, layout, solving, ca.SX(0, 1), None, contiguous)
    results += [(entries_of(reduced.last.matrix), layout.last_entries), (reduced.last.rhs, layout.last_rhs)]
    symbols = [*symbols, (reduced.last.y, layout.last_unknowns)]
    last, finish, handed = in_two_parts(Kernel("finish", symbols, results, known=known), layout.work, ("last", "finish"))
    solving = (factor, iterate, last, finish, *_look(reduced, layout, symbols, reduced.orientation, known))
    return _assemble(reduced, layout, solving, ca.SX(0, 1), None, contiguous, handed)


def _look(
    reduced: ReducedStep,
    layout: Layout,
    symbols: list[tuple[ca.SX, int]],
    orientation: ca.SX,
    known: Sequence[tuple[ca.SX, float]] = (),
) -> tuple[Kernel, ...]:
    """What decides about a step where a glance at its constraints does not, in programs that need it."""
    look = Kernel("look", symbols, [(orientation, layout.orientation)], known=known)
    return () if reduced.glance is reduced.orientation else (look,)


def _assemble(
    reduced: ReducedStep,
    layout: Layout,
    solving: tuple[Kernel, ...],
    once: ca.SX,
    increment: tuple[ca.SX, ca.SX] | None,
    contiguous: bool,
    handed: int = 0,
) -> CompiledStep:
    """Put the kernels that predict and weigh before those that factor, iterate and finish, and compile all."""
    delta = ca.SX.sym("delta", layout.n_state)
    weights = weights_and_noise(reduced, measure_of(reduced), delta)
    outputs = list(zip((once, *weights), (layout.once, layout.weights, layout.noise), strict=True))  # in the order of need
    time, *fixed, state, x = symbols_of(reduced, layout)
    varying = [time, state, x, (delta, layout.delta)]
    weigh = Kernel("weigh", [*fixed, (reduced.metric.column, layout.metric), *varying], outputs, often=True)
    many = bool(reduced.blocks) and len(reduced.blocks[0].nodes) >= MANY_STAGES
    rows = ("predict", "weigh") if many else ("predict",)
    kernels = (predictor(reduced, layout, delta, contiguous), weigh, *solving, *clock_kernels(reduced, layout))
    parts, once_a_step = [weigh], SELDOM
    if increment is not None:
        *parts, handed = in_two_parts(weigh, layout.work, ("prepare", "weigh"), late=len(varying))
        once_a_step = LONG
    work, parts = layout.work + handed, [kernels[0], *parts, *kernels[2:]]
    limits = {"prepare": SELDOM, "look": SELDOM, **dict.fromkeys(("factor", "last", "finish"), once_a_step)}
    quick = [kernel.name for kernel in parts if kernel.operations >= limits.get(kernel.name, np.inf)]
    code, used = compile_kernels(parts, work, quick=quick, rows=rows)
    return CompiledStep(kernels, layout, increment, code, work + used)
