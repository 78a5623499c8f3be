"""What happens to a step that the compiled iteration could not make: other pivots, or a diagnosis."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert._warnings import warn
from dalembert.compiler import SingularMatrix, build_program, first_guess, order_errors
from dalembert.compiler._elimination import DENSE
from dalembert.compiler._metric import TOLERATED
from dalembert.compiler._stopping import SURE
from dalembert.engine import _driver as driver
from dalembert.engine._diagnosis import FULL, contradicted, diagnose, drift_of, hidden_matrix, outside
from dalembert.errors import PivotWarning
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._matrices import Matrix, determinant_sign, sparse_matrix
from dalembert.systems._newton import newton
from dalembert.systems._states import States

if TYPE_CHECKING:
    from dalembert.engine._stepper import Stepper


FAILING = 1e-6
"""The backward error of a solve from which on a step's trouble is put down to the pivot order."""

A_FEW, A_PART = 3, 1 / 500
"""How many steps of a run, and what part of them, may take the way out of a failing pivot order before it warns: the time of
single ones, as beside singular positions, is not noticed."""


def rescue(run: Stepper) -> str | None:
    """Give the driver other combinations of redundant constraints, other pivots or a solution; else the reason why not."""
    if run.renew() or _changes_pivots(run, run.unknowns):
        return None
    problem, solution = _other_solution(run)
    if solution is not None:
        run.give(solution)
        return None
    return diagnose(run, problem)


def _other_solution(run: Stepper) -> tuple[str | None, np.ndarray | None]:
    """What is wrong with a solution of the step equations that exact Newton finds, if it does, or the solution.

    It need not begin at h = 0: where that matters, it is wrong.
    """
    reduced, metric = run.program.reduced, np.concatenate([[TOLERATED], run.metric[1:]])
    data = (run.time, run.h, run.start.theta, run.state)
    equations = ca.Function("equations", [reduced.x, *reduced.data], [reduced.residual, reduced.jacobian])
    problem = None
    for guess in (run.unknowns, tangent_guess(run)):
        if guess is None:
            continue
        x = newton(functools.partial(_residual_and_jacobian, equations, data), guess)
        if x is None:
            continue
        increment, orientation, lam, psi = (value.ravel() for value in reduced.outcome(x, *data, metric))
        if not np.all(np.isfinite(increment)):
            continue
        sign = orientation[0] * orientation_at(run.system, run.start)
        if np.isnan(sign):
            problem = problem or contradicted(run, increment[:-1])
            continue
        left = outside(run, increment[:-1], lam, psi) or drift_of(run, run.time + run.h, run.state + increment[:-1])
        if sign > (0.0 if run.counts["fresh"] else SURE) and not left and np.isinf(run.numbers["far"]):
            return None, x
        problem = problem or left or ("turned" if sign < 0 else "apart")
    return problem, None


def _residual_and_jacobian(equations: ca.Function, data: tuple[Any, ...], x: np.ndarray) -> tuple[np.ndarray, Matrix]:
    residual, jacobian = equations(x, *data)
    return np.asarray(residual, dtype=float), sparse_matrix(jacobian) if len(x) > FULL else np.asarray(jacobian, dtype=float)


def orientation_at(system: System, state: State) -> int:
    """The sign of det(hidden_z directions) at a state; 1 without constraints."""
    if not system.n_multipliers:
        return 1
    return int(determinant_sign(hidden_matrix(system, state)))


def tangent_guess(run: Stepper) -> np.ndarray | None:
    """The unknowns of the pending step along the tangent; None where there are no multipliers."""
    here = unpack(run.system, run.time, run.state, run.start.theta, run.multipliers)
    return first_guess(run.program.reduced, run.system, here, run.h) if np.all(np.isfinite(here.multipliers)) else None


def _changes_pivots(run: Stepper, x: np.ndarray) -> bool:
    """Give the driver other pivots: dense elimination, or in large programs another order if the fixed one fails at x.

    Dense elimination also helps to follow a solution past positions in which the matrix is nearly singular.
    """
    program, n = run.program, run.program.layout.n_x
    if n == 0 or program.way_out is not None:
        return False
    none = np.zeros((1, run.system.n_multipliers))
    here = States(run.system, np.array([run.time]), run.state[None], run.start.theta[None], none)
    error = float(order_errors(program.order, program.reduced, "jacobian", here, run.h, x[None])[0])
    if error < FAILING and n > DENSE:
        again = bool(run.numbers["far"] < np.inf and not run.counts["judged"])  # the order is not why a step is inexact
        run.counts["judged"] = 1
        run.counts["mode"] = driver.GUESS_READY
        return again
    if n <= DENSE:
        other = program.with_way_out()
    else:
        y, z = np.split(run.state, [run.system.state_blocks[0][1]])
        state = State(run.time, y, z, none[0], none[0], none[0], {}, run.start.theta, run.start.names)
        try:
            other = build_program(run.system, run.method, state, run.h, contiguous=run.contiguous, near=x)
        except SingularMatrix:
            return False
        if other.order == program.order:
            return False
    run.use(other)
    run.counts["mode"], run.counts["age"] = driver.GUESS_READY, -1
    if error < FAILING:
        return True
    run.trouble = f"at t = {run.time:.6g} a solve in the pivot order chosen at the start has a backward error of {error:.1e}"
    return True


def warn_of_pivots(steppers: list[Stepper], steps: int) -> None:
    """Say once why a run is slow if more than a few of the steps made so far needed pivots of their own."""
    pivoted = sum(int(stepper.counts["pivoted"]) for stepper in steppers)
    trouble = next((stepper.trouble for stepper in steppers if stepper.trouble), "")
    if pivoted > max(A_FEW, A_PART * steps * len(steppers)) and trouble and not any(stepper.warned for stepper in steppers):
        for stepper in steppers:
            stepper.warned = True
        warn(
            f"{pivoted} steps were solved by dense elimination, several times slower than the others: {trouble}. Start where "
            "the mechanism is far from a singular configuration, or in units in which its numbers are closer to 1",
            PivotWarning,
        )
