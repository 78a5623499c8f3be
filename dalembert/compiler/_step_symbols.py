"""Where the variables of a step lie in memory, and what a step computes from them."""

from __future__ import annotations

import casadi as ca

from dalembert.compiler._elimination import PivotOrder, eliminate, substitute
from dalembert.compiler._increments import Measure
from dalembert.compiler._linear_form import LinearForms
from dalembert.compiler._memory import Layout
from dalembert.compiler._orientation import is_definite
from dalembert.compiler._reduction import ReducedStep
from dalembert.symbolic._kept import kept


@kept
def measure_of(reduced: ReducedStep) -> Measure:
    """How increments of a step's unknowns are measured."""
    return Measure.of_step(reduced)


def layout_of(reduced: ReducedStep, n_factors: int, n_once: int, at_run_time: bool = False) -> Layout:
    _, _, theta, state = reduced.data
    n_stage = sum(part.shape[0] for part in reduced.stage_multipliers.values())
    last, turn = (reduced.last, reduced.turn) if at_run_time else (None, None)
    return Layout(
        theta.shape[0], state.shape[0], n_stage, reduced.x.shape[0], n_factors, n_once,
        n_last=0 if last is None else last.y.shape[0],
        n_last_entries=0 if last is None else last.matrix.nnz(),
        n_turn_entries=0 if turn is None else turn.matrix.nnz(),
        n_metric=reduced.metric.column.shape[0],
        n_clock=0 if reduced.equations.step.clock is None else reduced.equations.step.clock.values.shape[0],
    )  # fmt: skip


def symbols_of(reduced: ReducedStep, layout: Layout) -> list[tuple[ca.SX, int]]:
    """The data of a step and its unknowns, with their slots."""
    places = (layout.time, layout.h, layout.theta, layout.state, layout.x)
    return list(zip((*reduced.data, reduced.x), places, strict=True))


def results_of(reduced: ReducedStep) -> list[ca.SX]:
    """The results in the order of `Layout.results`."""
    multipliers = ca.vertcat(*reduced.stage_multipliers.values())
    return [reduced.increment, multipliers, reduced.glance, reduced.energy, measure_of(reduced).correction(reduced)]


def solved_results(reduced: ReducedStep, last_order: PivotOrder | None) -> list[ca.SX]:
    """The same with the last unknowns solved for."""
    results = results_of(reduced)
    results[2] = _glance(reduced, last_order)
    return last_solved(reduced, results, last_order)


def _glance(reduced: ReducedStep, last_order: PivotOrder | None) -> ca.SX:
    """What decides nearly all steps: before the last unknowns are known, where their pivots can show that they are right."""
    if reduced.early_glance is None or reduced.last is None or last_order is None or last_order.rows != last_order.columns:
        return reduced.signed(reduced.glance)
    return reduced.signed(reduced.early_glance) * is_definite(eliminate(reduced.last.matrix, last_order)[0])


def last_solved(reduced: ReducedStep, results: list[ca.SX], last_order: PivotOrder | None) -> list[ca.SX]:
    """Expressions with the last unknowns solved for, in straight-line code."""
    if reduced.last is None or last_order is None:
        return results
    y = substitute(*eliminate(reduced.last.matrix, last_order), last_order, reduced.last.rhs)
    return [ca.substitute(result, reduced.last.y, y) for result in results]


def used_forms(forms: LinearForms, expressions: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
    """The coefficients that occur in expressions: in derivatives of linear forms not all do."""
    names = {name.element_hash() for name in ca.symvar(expressions)}
    return [(name, value) for name, value in forms.once if name.element_hash() in names]
