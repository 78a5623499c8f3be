"""What happens to a step that the compiled iteration could not make: other pivots, or a diagnosis."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.compiler import SingularMatrix, build_program, first_guess, order_errors
from dalembert.compiler._elimination import DENSE
from dalembert.compiler._metric import TOLERATED
from dalembert.compiler._stopping import SURE
from dalembert.engine import _driver as driver
from dalembert.errors import PivotWarning
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._matrices import Matrix, determinant_sign, is_finite, is_sparse, row_norms, scaled_rows, sparse_matrix
from dalembert.systems._newton import newton
from dalembert.systems._rank import least_singular_value, smallest_singular_value
from dalembert.systems._start_checks import short
from dalembert.systems._states import States

if TYPE_CHECKING:
    from dalembert.engine._stepper import Stepper

FULL = 50
"""Up to this size, exact Newton solves with full matrices. Larger ones LAPACK gives to threads, which where other programs run
wait for each other 200 times as long as they compute."""

FAILING = 1e-6
"""The backward error of a solve from which on a step's trouble is put down to the pivot order."""

A_FEW, A_PART = 3, 1 / 500
"""How many steps of a run, and what part of them, may take the way out of a failing pivot order before it warns: the time of
single ones, as beside singular positions, is not noticed."""

PATH = np.linspace(0.0, 2.0, 9)
"""Where along the tangent, in steps, a diagnosis looks."""


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
            problem = problem or _contradicted(run, increment[:-1])
            continue
        left = _outside(run, increment[:-1], lam, psi) or _drift(run, run.time + run.h, run.state + increment[:-1])
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
    return int(determinant_sign(_hidden_matrix(system, state)))


def _hidden_matrix(system: System, state: State) -> Matrix:
    """hidden_z directions, for mechanics G H_pp G^T and the like."""
    place = (state.t, state.first, state.second)
    hidden_z = system.matrix("hidden_z", *place, theta=state.theta)
    return hidden_z @ system.matrix("directions", *place, state.lam, state.psi, theta=state.theta)


def _branch_ends(run: Stepper) -> bool:
    """Whether there are no multipliers here, or their matrix has left its size at the start: at a singular point it jumps."""
    here = unpack(run.system, run.time, run.state, run.start.theta, run.multipliers)
    if not np.all(np.isfinite(here.multipliers)):
        return True
    least = [least_singular_value(_hidden_matrix(run.system, state)) for state in (here, run.start)]
    return not 0.1 * least[1] < least[0] < 10 * least[1]


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
        warnings.warn(
            f"{pivoted} steps were solved by dense elimination, several times slower than the others: {trouble}. Start where "
            "the mechanism is far from a singular configuration, or in units in which its numbers are closer to 1",
            PivotWarning,
            stacklevel=2,
        )


def _outside(run: Stepper, increment: np.ndarray, lam: np.ndarray, psi: np.ndarray) -> str | None:
    """Which function of the domain is not positive at the end of the step, if any."""
    system = run.system
    if "domain" not in system.function_names:
        return None
    ends = system.state_blocks[0][1]
    (y0, z0), (y, z) = np.split(run.state, [ends]), np.split(run.state + increment, [ends])
    arguments = {"t": run.time + run.h, "y": y, "z": z, "lam": lam, "psi": psi, "y0": y0, "z0": z0}
    values = system.at("domain", arguments, run.start.theta)
    worst = int(np.argmin(values))
    if values[worst] > 0:
        return None
    return (
        f"the motion leaves the model's domain before t = {run.time + run.h:.6g}: domain[{worst}] falls to "
        f"{values[worst]:.3g}, and must stay positive"
    )


def _contradicted(run: Stepper, increment: np.ndarray) -> str | None:
    """Which redundant constraint does not hold at the end of the step although those that it should follow from do, if any."""
    if run.system.combines is None:
        return None
    original, n = run.system.uncombined, run.system.state_blocks[0][1]
    t, theta, (y, z) = run.time + run.h, run.start.theta, np.split(run.state + increment, [n])
    g, k = (original.at(name, {"t": t, "y": y, "z": z}, theta[: original.parameters.size]) for name in ("g", "k"))
    combined = np.concatenate([run.system.at(name, {"t": t, "y": y, "z": z}, theta) for name in ("g", "k")])
    rows = np.concatenate([g, k])
    worst = int(np.argmax(np.abs(rows)))
    if not abs(rows[worst]) > 100 * np.max(np.abs(combined), initial=0.0):
        return None
    row = original.row_called("g", worst) if worst < len(g) else original.row_called("k", worst - len(g))
    return (
        f"redundant constraints contradict each other here: {row} is off by {rows[worst]:.1e} at the end of a step that "
        "fulfils those which it followed from at the start: correct the constraints or their parameters, or start elsewhere"
    )


def diagnose(run: Stepper, problem: str | None) -> str:
    """Why a step cannot be made: `problem` says what was wrong with the solution that was found, if one was."""
    system, t, theta = run.system, run.time, run.start.theta
    y, z = np.split(run.state, [system.state_blocks[0][1]])
    v = system.evaluate("v", t, y, z, theta=theta)
    lam, psi = np.split(run.multipliers, [system.n_holonomic])
    if problem not in (None, "turned", "apart"):
        return str(problem)
    drift = _drift(run, t, run.state)
    if drift is not None:
        return drift
    for k in PATH:
        s, ahead = t + k * run.h, y + k * run.h * v
        values = {"t": s, "y": ahead, "z": z, "lam": lam, "psi": psi, "y0": y, "z0": z}
        for name in system.described:
            if not np.all(np.isfinite(system.numbers(name, values, theta))):
                where = "here" if k == 0 else "just ahead"
                symbol = system.state_blocks[0][0]
                return f"the model left its domain: {name} is not finite {where}, at {symbol} = {short(ahead)}"
    if system.n_multipliers:
        least, flips = _independence_ahead(run, y, z, v)
        if least < 1e-2 or flips:
            symbol = f"g_{system.state_blocks[0][0]}" if not system.n_nonholonomic else "(g_y v_z, k_z)"
            kind = "holonomic constraints" if not system.n_nonholonomic else "constraints"
            how = f"its smallest singular value falls to {least:.1e}" if least < 1e-2 else "it turns around"
            return (
                f"the {kind}{_dependent_parts(run, y, z, v)} lose independence here ({symbol} loses rank: {how}), so the "
                "motion beyond is not determined: take an h that steps over it, reduce h, change the start or remove the "
                "singular configuration from the model"
            )
        if problem == "turned" and not system.linear_in_multipliers:
            return (
                "the multipliers of this step lie on another branch than those of the start (det(g_y v_z r_lam) changes its "
                f"sign): reduce h, or choose the branch with {' or '.join(system.used_guesses)}="
            )
        if not system.linear_in_multipliers and _branch_ends(run):
            return (
                "the branch of the multipliers ends here, where none near those of the start fulfil the hidden constraints: "
                f"change the start, or choose another branch with {' or '.join(system.used_guesses)}="
            )
        if problem == "turned":
            return "the constraints turn by more than a right angle within one step: reduce h"
    if problem == "apart":
        return (
            "the step equations have a solution, but not one that continues that of smaller steps: the motion would jump to "
            "another branch of the constraints or of the model: reduce h"
        )
    edge = ", and that the motion stays in its domain" if "domain" in system.function_names else ""
    return f"Newton's iteration for the step equations diverged: reduce h, or check that the model is smooth here{edge}"


def _drift(run: Stepper, t: float, state: np.ndarray) -> str | None:
    """How far a state is off holonomic constraints that the method does not keep, if that explains a failure."""
    system, theta = run.system, run.start.theta
    y, z = np.split(state, [system.state_blocks[0][1]])
    if not system.n_holonomic or run.method.keeps >= {"g", "g_dot"}:
        return None
    G, g = system.matrix("G", t, y, theta=theta), system.evaluate("g", t, y, theta=theta)
    v, g_dot = (system.evaluate(name, t, y, z, theta=theta) for name in ("v", "g_dot"))
    rows = row_norms(G)
    if np.all(np.abs(g) <= 0.1 * rows * np.linalg.norm(y)) and np.all(np.abs(g_dot) <= 0.1 * rows * np.linalg.norm(v)):
        return None
    names = system.row_names.get("g", ())
    worst = f" in {names[int(np.argmax(np.abs(g)))]!r}" if len(names) == len(g) else ""
    return (
        f"{run.method} does not keep the holonomic constraints and their derivative, and has left them: |g| is "
        f"{np.abs(g).max():.1e}{worst}, |g_dot| {np.abs(g_dot).max():.1e}; take projected=True, or a method that keeps "
        f"them, such as {system.served_by}"
    )


def _dependent_parts(run: Stepper, y: np.ndarray, z: np.ndarray, v: np.ndarray) -> str:
    """Which parts of a mechanism state the rows that nearly depend on each other along the tangent, where rows have names."""
    system, found = run.system, []
    names = [*system.row_names.get("g", ()), *system.row_names.get("k", ())]
    for k in PATH if len(names) == system.n_multipliers else ():
        rows = system.matrix("hidden_z", run.time + k * run.h, y + k * run.h * v, z, theta=run.start.theta)
        if not is_sparse(rows) and is_finite(rows):
            left, values, _ = np.linalg.svd(np.asarray(scaled_rows(rows, 1 / np.maximum(row_norms(rows), 1e-300))))
            found.append((values[-1], np.abs(left[:, -1])))
    if not found:
        return ""
    weights = min(found, key=lambda pair: pair[0])[1]
    parts = dict.fromkeys(names[k].partition(", row ")[0] for k in np.flatnonzero(weights > 0.2 * weights.max()))
    return f" of {' and '.join(map(repr, list(parts)[:6]))}"


def _independence_ahead(run: Stepper, y: np.ndarray, z: np.ndarray, v: np.ndarray) -> tuple[float, bool]:
    """The smallest singular value of the constraints' derivatives along the tangent, and whether orientation changes there.

    For holonomic constraints these are g_y, else (g_y v_z, k_z), with rows normalised.
    """
    least, flips, previous = np.inf, False, None
    for k in PATH:
        t, ahead = run.time + k * run.h, y + k * run.h * v
        if run.system.n_nonholonomic:
            G = run.system.matrix("hidden_z", t, ahead, z, theta=run.start.theta)
        else:
            G = run.system.matrix("G", t, ahead, theta=run.start.theta)
        if not is_finite(G):
            return 0.0, True
        G = scaled_rows(G, 1 / np.maximum(row_norms(G), 1e-300))
        least = min(least, smallest_singular_value(G))
        flips = flips or (previous is not None and determinant_sign(previous @ G.T) < 0)
        previous = G
    return least, bool(flips)
