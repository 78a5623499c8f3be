"""Newton's iteration for what is solved once: initial multipliers, or a step that needs a second look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.systems._matrices import is_finite, solve


def newton(equations: Callable[[np.ndarray], tuple[Any, ...]], x: np.ndarray) -> np.ndarray | None:
    """Damped Newton iteration to round-off for equations(x) = (residual, jacobian), or None."""
    with np.errstate(all="ignore"):  # what overflows is not finite, and so not accepted
        return _damped_newton(equations, x)


def _damped_newton(equations: Callable[[np.ndarray], tuple[Any, ...]], x: np.ndarray) -> np.ndarray | None:
    if not len(x):
        return x
    residual, jacobian = equations(x)
    norm, previous, largest = np.linalg.norm(residual), np.inf, 1e-300
    for _ in range(60):
        if not (np.isfinite(norm) and is_finite(jacobian)):
            return None
        try:
            increment = solve(jacobian, residual.ravel())
        except np.linalg.LinAlgError:
            return None
        largest = max(largest, float(np.linalg.norm(x)))  # at a solution zero, the guess says what rounding can leave
        size = float(np.linalg.norm(increment)) / largest
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


def solve_rows(matrices: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solve one system a row; nan where the constraints are not independent, as in a run that ended at such a state."""
    try:
        return np.linalg.solve(matrices, rhs[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        if len(rhs) == 1:
            return np.full_like(rhs, np.nan)
        half = len(rhs) // 2
        return np.vstack([solve_rows(matrices[:half], rhs[:half]), solve_rows(matrices[half:], rhs[half:])])
