"""The tangent of a step map, by the implicit function theorem from the step equations."""

from __future__ import annotations

import casadi as ca
import numpy as np

from dalembert.compiler import reduced_step
from dalembert.compiler._independence import independent
from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.runs._drivers import one_step
from dalembert.systems import State, System


def checked_step(system: System, method: OneStepMethod, state: State, h: float) -> tuple[State, list[np.ndarray]]:
    """One step of size h: the new state and the unknowns of each of its substeps."""
    if not (np.isfinite(h) and h != 0):
        raise InputError(f"h must be a finite number other than zero; got {h!r}")
    return one_step(system, method, state, h)


def smooth_tangent(system: System, method: OneStepMethod, state: State, h: float) -> tuple[State, np.ndarray]:
    """The state after one step without impacts, and the derivative of the step map."""
    tangent = np.eye(system.n_state)
    for substep, fraction in method.substeps:
        state, own = _tangent_of_one(system, substep, state, fraction * h)
        tangent = own @ tangent
    return state, tangent


def _tangent_of_one(system: System, method: OneStepMethod, state: State, h: float) -> tuple[State, np.ndarray]:
    new, (x,) = checked_step(system, method, state, h)
    system, state = independent(system, state)
    reduced = reduced_step(system, method)
    last = reduced.last
    y = ca.SX(0, 1) if last is None else last.y
    unknowns = ca.vertcat(reduced.x, y)
    residual = reduced.residual if last is None else ca.vertcat(reduced.residual, last.matrix @ y - last.rhs)
    packed = reduced.equations.state
    arguments = [unknowns, *reduced.data]
    derivatives = ca.Function(
        "derivatives",
        arguments,
        [ca.jacobian(residual, unknowns), ca.jacobian(residual, packed), ca.jacobian(reduced.increment, unknowns),
         ca.jacobian(reduced.increment, packed)],
    )  # fmt: skip
    data = (state.t, h, state.theta, state.packed)
    if last is not None:
        matrix, rhs = ca.Function("last", [reduced.x, *reduced.data], [last.matrix, last.rhs])(x, *data)
        x = np.concatenate([x, np.linalg.solve(np.asarray(matrix, float), np.asarray(rhs, float).ravel())])
    F_x, F_s, D_x, D_s = (np.asarray(value, dtype=float) for value in derivatives(x, *data))
    return new, np.eye(system.n_state) + D_s - D_x @ solve_accurately(F_x, F_s)


def solve_accurately(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Solve A X = B with one refinement in extended precision, so that the defects below measure the method."""
    if A.size == 0:
        return np.zeros((0, B.shape[1]))
    X = np.linalg.solve(A, B)
    rest = B.astype(np.longdouble) - A.astype(np.longdouble) @ X.astype(np.longdouble)
    return X + np.linalg.solve(A, rest.astype(float))
