"""Why a step cannot be made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.systems import State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._matrices import Matrix, determinant_sign, is_finite, is_sparse, row_norms, scaled_rows
from dalembert.systems._rank import least_singular_value, smallest_singular_value
from dalembert.systems._start_checks import short

if TYPE_CHECKING:
    from dalembert.engine._stepper import Stepper


FULL = 50
"""Up to this size, exact Newton solves with full matrices. Larger ones LAPACK gives to threads, which where other programs run
wait for each other 200 times as long as they compute."""
PATH = np.linspace(0.0, 2.0, 9)
"""Where along the tangent, in steps, a diagnosis looks."""


def hidden_matrix(system: System, state: State) -> Matrix:
    """hidden_z directions, for mechanics G H_pp G^T and the like."""
    place = (state.t, state.first, state.second)
    hidden_z = system.matrix("hidden_z", *place, theta=state.theta)
    return hidden_z @ system.matrix("directions", *place, state.lam, state.psi, theta=state.theta)


def _branch_ends(run: Stepper) -> bool:
    """Whether there are no multipliers here, or their matrix has left its size at the start: at a singular point it jumps."""
    here = unpack(run.system, run.time, run.state, run.start.theta, run.multipliers)
    if not np.all(np.isfinite(here.multipliers)):
        return True
    least = [least_singular_value(hidden_matrix(run.system, state)) for state in (here, run.start)]
    return not 0.1 * least[1] < least[0] < 10 * least[1]


def outside(run: Stepper, increment: np.ndarray, lam: np.ndarray, psi: np.ndarray) -> str | None:
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


def contradicted(run: Stepper, increment: np.ndarray) -> str | None:
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
    drift = drift_of(run, t, run.state)
    if drift is not None:
        return drift
    for k in PATH:
        ahead = y + k * run.h * v
        values = {"t": t + k * run.h, "y": ahead, "z": z, "lam": lam, "psi": psi, "y0": y, "z0": z}
        for name in system.described:
            if not np.all(np.isfinite(system.numbers(name, values, theta))):
                where, symbol = "here" if k == 0 else "just ahead", system.state_blocks[0][0]
                return f"the model left its domain: {name} is not finite {where}, at {symbol} = {short(ahead)}"
    if system.n_multipliers:
        lost = _lost_independence(run, y, z, v)
        if lost is not None:
            return lost
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


def drift_of(run: Stepper, t: float, state: np.ndarray) -> str | None:
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


def _lost_independence(run: Stepper, y: np.ndarray, z: np.ndarray, v: np.ndarray) -> str | None:
    """The sentence on constraints that lose rank ahead, if they do: those of long chains always have small singular values."""
    system, (least, flips) = run.system, _independence_ahead(run, y, z, v)
    falls = least < 1e-2 and least < 0.1 * _independence_at(run, run.start.t, run.start.first, run.start.second)
    if not falls and not flips:
        return None
    symbol = f"g_{system.state_blocks[0][0]}" if not system.n_nonholonomic else "(g_y v_z, k_z)"
    kind = "holonomic constraints" if not system.n_nonholonomic else "constraints"
    how = f"its smallest singular value falls to {least:.1e}" if falls else "it turns around"
    return (
        f"the {kind}{_dependent_parts(run, y, z, v)} lose independence here ({symbol} loses rank: {how}), so the "
        "motion beyond is not determined: take an h that steps over it, reduce h, change the start or remove the "
        "singular configuration from the model"
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
    """The smallest singular value of the constraints' derivatives along the tangent, and whether orientation changes there."""
    least, flips, previous = np.inf, False, None
    for k in PATH:
        G = _normalised_rows(run, run.time + k * run.h, y + k * run.h * v, z)
        if G is None:
            return 0.0, True
        least = min(least, smallest_singular_value(G))
        flips = flips or (previous is not None and determinant_sign(previous @ G.T) < 0)
        previous = G
    return least, bool(flips)


def _independence_at(run: Stepper, t: float, y: np.ndarray, z: np.ndarray) -> float:
    """The smallest singular value of the constraints' derivatives in one state."""
    G = _normalised_rows(run, t, y, z)
    return np.inf if G is None else smallest_singular_value(G)


def _normalised_rows(run: Stepper, t: float, y: np.ndarray, z: np.ndarray) -> Matrix | None:
    """g_y for holonomic constraints, else (g_y v_z, k_z), with rows of length one; None where they are not finite."""
    if run.system.n_nonholonomic:
        G = run.system.matrix("hidden_z", t, y, z, theta=run.start.theta)
    else:
        G = run.system.matrix("G", t, y, theta=run.start.theta)
    return scaled_rows(G, 1 / np.maximum(row_norms(G), 1e-300)) if is_finite(G) else None
