"""The geometry of a step map: its tangent, from the compiled equations, and what follows from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.contact import CollisionIntegrator
from dalembert.derivatives._tangent_map import tangent_map, tangent_space
from dalembert.derivatives._through_impacts import impact_tangent
from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.runs._problem import Problem
from dalembert.runs._starts import initial_state
from dalembert.systems import MechanicalSystem, State, System
from dalembert.verify._tangent import checked_step


def _prepare(system: System | Problem, start: dict[str, Any]) -> tuple[System, State]:
    # A state that a step ended in is taken as it is: methods that keep no hidden constraint go on from there too.
    return initial_state(system, check=start.get("start") is None, **start)


def step(system: System | Problem, method: OneStepMethod, *, h: float, **start: Any) -> State:
    """One step of size h, which may be negative, from given initial values or `start=state`; the state that it ends in.

    Example:
        >>> import dalembert as da
        >>> there = da.verify.step(da.problems.double_pendulum(), da.Rattle(), h=0.1)
        >>> back = da.verify.step(da.problems.double_pendulum().system, da.Rattle(), h=-0.1, start=there)
        >>> bool(abs(back.q - da.problems.double_pendulum().q0).max() < 1e-14)
        True

    """
    system, state = _prepare(system, start)
    method.check(system)
    return checked_step(system, method, state, h)[0]


def step_tangent(system: System | Problem, method: OneStepMethod, *, h: float, **start: Any) -> np.ndarray:
    """The derivative of the step map (q0, p0) -> (q1, p1), by the implicit function theorem from the step equations.

    Example:
        >>> import dalembert as da
        >>> da.verify.step_tangent(da.problems.double_pendulum(), da.Rattle(), h=0.1).shape
        (8, 8)

    """
    system, state = _prepare(system, start)
    return _tangent(system, method, state, h)[1]


def _tangent(system: System, method: OneStepMethod, state: State, h: float) -> tuple[State, np.ndarray]:
    if isinstance(method, CollisionIntegrator):
        assert isinstance(system, MechanicalSystem)
        return impact_tangent(system, method, state, h)
    return tangent_map(system, method, state, h)


def symplecticity_defect(system: System | Problem, method: OneStepMethod, *, h: float, **start: Any) -> float:
    """How far one step is from symplectic on the constraint manifold: the largest entry of T^T (D^T J D - J) T.

    D is the tangent of the step map and T an orthonormal basis of the tangent space of {g = 0, g_q v + g_t = 0}; the form
    J = dq ^ dp restricted to it is what the exact flow preserves.

    Example:
        >>> import dalembert as da
        >>> bool(da.verify.symplecticity_defect(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), h=0.12) < 1e-13)
        True

    """
    system, state = _prepare(system, start)
    if not isinstance(system, MechanicalSystem):
        raise InputError("symplecticity is a property of da.Hamiltonian and da.Lagrangian systems")
    n = system.dim
    _, D = _tangent(system, method, state, h)
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    T = tangent_space(system, state)
    moved = D @ T
    return float(np.max(np.abs(moved.T @ J @ moved - T.T @ J @ T)))


def reversibility_defect(system: System | Problem, method: OneStepMethod, *, h: float, **start: Any) -> float:
    """How far a step of size h and a step of size -h are from returning, relative to the size of the state.

    Zero, up to round-off, for symmetric methods.

    Example:
        >>> import dalembert as da
        >>> bool(da.verify.reversibility_defect(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), h=0.12) < 1e-13)
        True

    """
    system, state = _prepare(system, start)
    there, _ = checked_step(system, method, state, h)
    back, _ = checked_step(system, method, there, -h)
    return float(np.max(np.abs(back.packed - state.packed))) / (1.0 + float(np.max(np.abs(state.packed))))
