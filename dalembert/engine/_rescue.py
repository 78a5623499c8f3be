"""What happens to a step that the compiled iteration could not make: exact Newton with LAPACK, or a diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from dalembert.compiler import SingularMatrix, build_program, first_guess
from dalembert.systems import MechanicalSystem, State, state_at
from dalembert.systems._consistent import short

if TYPE_CHECKING:
    from dalembert.engine._run import Run

PATH = np.linspace(0.0, 2.0, 9)
"""Where along the tangent, in steps, a diagnosis looks."""


def rescue(run: Run) -> str | None:
    """Make the pending step by damped exact Newton; None on success, else the reason of the failure."""
    reduced = run.program.reduced
    data = (run.time, run.h, run.start.theta, run.state)
    equations = ca.Function("equations", [reduced.x, *reduced.data], [reduced.residual, reduced.jacobian])
    turned = False
    for guess in (run.unknowns, _tangent_guess(run)):
        if guess is None:
            continue
        x = exact_newton(lambda y: tuple(np.asarray(value, dtype=float) for value in equations(y, *data)), guess)
        if x is None:
            continue
        increment, orientation = (np.asarray(value, dtype=float) for value in reduced.outcome(x, *data))
        if not np.all(np.isfinite(increment)):
            continue
        if run.system.n_holonomic and np.linalg.slogdet(orientation)[0] != orientation_at(run.system, run.start):
            turned = True
            continue
        _repivot(run, x)
        run.accept(x)
        return None
    return diagnose(run, turned)


def orientation_at(system: MechanicalSystem, state: State) -> int:
    """The sign of det(G H_pp G^T) at a state; 1 without constraints."""
    if not system.n_holonomic:
        return 1
    G = system.evaluate("G", state.t, state.q, theta=state.theta)
    H_pp = system.evaluate("H_pp", state.t, state.q, state.p, theta=state.theta)
    return int(np.linalg.slogdet(G @ H_pp @ G.T)[0])


def _tangent_guess(run: Run) -> np.ndarray | None:
    q, p = np.split(run.state, 2)
    try:
        here = state_at(run.system, q, p0=p, t0=run.time, theta=run.start.theta, check=False)
    except np.linalg.LinAlgError:
        return None
    return first_guess(run.program.reduced, run.system, here, run.h)


def _repivot(run: Run, x: np.ndarray) -> None:
    """Choose a new pivot order if the fixed one has become unstable at x."""
    q, p = np.split(run.state, 2)
    here = State(run.time, q, np.zeros(len(q)), p, np.zeros(0), {}, run.start.theta)
    try:
        program = build_program(run.system, run.method, here, run.h, near=x)
    except SingularMatrix:
        return
    if program.order != run.program.order:
        run.use(program)


def diagnose(run: Run, turned: bool) -> str:
    """Why a step cannot be made: `turned` if the constraints changed orientation in the solution that was found."""
    system, t, theta = run.system, run.time, run.start.theta
    q, p = np.split(run.state, 2)
    v = system.evaluate("H_p", t, q, p, theta=theta)
    for k in PATH:
        s, ahead = t + k * run.h, q + k * run.h * v
        places = {"H": (s, ahead, p), "H_p": (s, ahead, p), "H_q": (s, ahead, p), "force": (s, ahead, p), "g": (s, ahead)}
        for name, arguments in places.items():
            if not np.all(np.isfinite(system.evaluate(name, *arguments, theta=theta))):
                where = "here" if k == 0 else "just ahead"
                return f"the model left its domain: {name} is not finite {where}, at q = {short(ahead)}"
    if system.n_holonomic:
        least, flips = _independence_ahead(run, q, v)
        if least < 1e-2 or flips:
            return (
                "the holonomic constraints lose independence here (g_q loses rank: its smallest singular value falls to "
                f"{least:.1e}), so the motion beyond is not determined: change the start or remove the singular configuration "
                "from the model"
            )
        if turned:
            return "the constraints turn by more than a right angle within one step: reduce h"
    return "Newton's iteration for the step equations diverged: reduce h, or check that the model is smooth here"


def _independence_ahead(run: Run, q: np.ndarray, v: np.ndarray) -> tuple[float, bool]:
    """The smallest singular value of g_q (rows normalised) along the tangent, and whether its orientation changes there."""
    least, flips, previous = np.inf, False, None
    for k in PATH:
        G = run.system.evaluate("G", run.time + k * run.h, q + k * run.h * v, theta=run.start.theta)
        G = G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), 1e-300)
        if not np.all(np.isfinite(G)):
            return 0.0, True
        least = min(least, float(np.linalg.svd(G, compute_uv=False)[-1]))
        flips = flips or (previous is not None and np.linalg.slogdet(previous @ G.T)[0] < 0)
        previous = G
    return least, bool(flips)


def exact_newton(equations: Callable[[np.ndarray], tuple[np.ndarray, ...]], x: np.ndarray) -> np.ndarray | None:
    """Damped Newton iteration to round-off, or None."""
    with np.errstate(all="ignore"):  # what overflows is not finite, and so not accepted
        return _damped_newton(equations, x)


def _damped_newton(equations: Callable[[np.ndarray], tuple[np.ndarray, ...]], x: np.ndarray) -> np.ndarray | None:
    if not len(x):
        return x
    residual, jacobian = equations(x)
    norm, previous = np.linalg.norm(residual), np.inf
    for _ in range(60):
        if not (np.isfinite(norm) and np.all(np.isfinite(jacobian))):
            return None
        try:
            increment = np.linalg.solve(jacobian, residual.ravel())
        except np.linalg.LinAlgError:
            return None
        size = float(np.linalg.norm(increment)) / max(float(np.linalg.norm(x)), 1e-300)
        damping = 1.0
        while damping > 1e-4:
            trial = x - damping * increment
            trial_residual, trial_jacobian = equations(trial)
            trial_norm = np.linalg.norm(trial_residual)
            if trial_norm < (1 - damping / 4) * norm or size < 1e-9:
                break
            damping /= 2
        else:
            return None
        x, residual, jacobian, norm = trial, trial_residual, trial_jacobian, trial_norm
        if (size < 1e-9 and size >= previous / 2) or size == 0.0:
            return x
        previous = size
    return None
