"""States on the constraint manifold: making them from initial values, and projecting a guess onto it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from dalembert.errors import InconsistentStart, UnsupportedSystem
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._initial_values import GivenValues, InitialValues, finite_number, momentum_of
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._projection import project_momentum, project_position
from dalembert.systems._start_checks import check_defined, check_domain, check_forces, check_start, short
from dalembert.systems._state import State
from dalembert.systems._system import System

STARTS = 8
"""How many starts of a system are remembered: a run that is made again need not be checked again."""


def state_at(
    system: System,
    *,
    t0: float = 0.0,
    params: Mapping[str, Any] | None = None,
    theta: np.ndarray | None = None,
    check: bool = True,
    **initial: Any,
) -> State:
    """The state of given initial values, refused in one sentence when they are malformed or inconsistent.

    Mechanical systems take q0 with v0 or p0, ODAEs y0 and z0, index-2 DAEs y0. `lam0` and `psi0` (z0 of an index-2 DAE) are
    guesses for multipliers that enter nonlinearly: they choose the branch.
    """
    theta = system.parameters.vector(params) if theta is None else theta
    t0 = finite_number("t0", t0)
    found, start = system.checked_starts(), _values_of(initial)
    key = (t0, theta.tobytes(), *start) if check and start else None
    if (known := found.get(key)) is not None:
        return known.copy()
    given = InitialValues(system, t0, theta, initial)
    y, z = given.position, given.momentum(given.position)
    if check:
        check_start(system, t0, y, z, theta)
    state = _at_start(system, t0, y, z, theta, given.multipliers)
    if check:
        check_domain(system, state)
    if key is not None:
        found[key] = state.copy()
        for old in list(found)[:-STARTS]:  # a copy of the keys, because other threads may be here, too
            found.pop(old, None)
    return state


def _values_of(initial: Mapping[str, Any]) -> tuple[tuple[str, bytes], ...]:
    """Initial values to be compared by, if all of them are vectors of numbers; else none."""
    values = {name: value for name, value in initial.items() if value is not None}
    if not all(isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1 for value in values.values()):
        return ()
    return tuple((name, value.tobytes()) for name, value in sorted(values.items()))


def unpack(system: System, t: float, packed: np.ndarray, theta: np.ndarray, guess: np.ndarray | None = None) -> State:
    """The state of a stored vector, taken as it is; its multipliers are nan where none were found."""
    y, z = np.split(packed, [system.state_blocks[0][1]])
    try:
        return complete(system, t, y, z, theta, guess)
    except np.linalg.LinAlgError:
        return complete(system, t, y, z, theta, multipliers=np.full(system.n_multipliers, np.nan))


@one_at_a_time
def consistent(
    system: System, *, t0: float = 0.0, params: Mapping[str, Any] | None = None, **given: Unpack[GivenValues]
) -> State:
    """Project a guess, q0 with v0 or p0 (y0 and z0 for an ODAE), onto the constraints.

    In mechanics the projection is orthogonal in the metric of the mass matrix: q minimises (q - q0)^T M (q - q0) subject to
    g(t0, q) = 0, with M = H_pp^-1 at the guess; then p = p0 - g_q^T mu - k_v^T nu with g_t + g_q v = 0 and k = 0, which is the
    M-orthogonal projection of the velocity if k is linear in it. For an ODAE, y and z move as little as possible in the
    Euclidean norm. `lam0` and `psi0` are guesses for multipliers that enter nonlinearly: they choose the branch.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pendulum = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2,
        ...                           holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])
        >>> state = da.consistent(pendulum, q0=[3.0, 4.0], v0=[1.0, 0.0])
        >>> np.allclose(state.q, [0.6, 0.8]), np.allclose(state.v, [0.64, -0.48])
        (True, True)

    """
    own = getattr(system, "system", system)  # a problem of the catalogue or a mechanism serves as well
    system = own() if own is not system and callable(own) else own
    if not isinstance(system, System):
        kinds = "a da.Hamiltonian, a da.Lagrangian, a da.ODAE, a da.Mechanism or a problem of da.problems"
        raise UnsupportedSystem(f"the first argument of consistent is {kinds}; got {type(system).__name__}")
    theta = system.parameters.vector(params)
    t0 = finite_number("t0", t0)
    initial = InitialValues(system, t0, theta, given)
    y = initial.position
    z = initial.momentum(y)
    check_defined(system, t0, y, z, theta)
    if system.n_holonomic:
        y = project_position(system, t0, y, z, theta)
        z = initial.momentum(y)
    if system.n_multipliers:
        z = project_momentum(system, t0, y, z, theta)
    return replace(_at_start(system, t0, y, z, theta, initial.multipliers), keeps_velocity=given.get("v0") is not None)


def with_parameters(system: System, state: State, theta: np.ndarray) -> np.ndarray:
    """The packed values of a state for other parameters: a state that was made from a velocity keeps it."""
    if not state.keeps_velocity or np.array_equal(theta, state.theta):
        return state.packed
    assert isinstance(system, MechanicalSystem)
    if np.array_equal(system.evaluate("v", state.t, state.q, state.p, theta=theta), state.v):
        return state.packed  # what has changed is no mass
    return np.concatenate([state.q, momentum_of(system, state.t, state.q, state.v, None, theta)])


def complete(
    system: System,
    t: float,
    y: np.ndarray,
    z: np.ndarray,
    theta: np.ndarray,
    guess: np.ndarray | None = None,
    multipliers: np.ndarray | None = None,
) -> State:
    """The state with velocity, residuals and multipliers, which are solved for unless they are given."""
    residuals = {"g": system.evaluate("g", t, y, theta=theta), "g_dot": system.evaluate("g_dot", t, y, z, theta=theta)}
    if system.n_nonholonomic:
        residuals["k"] = system.evaluate("k", t, y, z, theta=theta)
    v = system.evaluate("v", t, y, z, theta=theta)
    if multipliers is None:
        multipliers = system.multipliers(t, y, z, theta, guess)
    lam, psi = multipliers[: system.n_holonomic], multipliers[system.n_holonomic :]
    (first, _), (second, _) = system.state_blocks
    return State(t, y, z, v, lam, psi, system.named_residuals(residuals), theta, (first, second), system.fingerprint)


def _at_start(system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray, guess: np.ndarray) -> State:
    """The state with everything that follows from it, or a sentence on the multipliers that were not found."""
    try:
        return complete(system, t, y, z, theta, guess)
    except np.linalg.LinAlgError:
        check_forces(system, complete(system, t, y, z, theta, multipliers=guess))
        raise InconsistentStart(
            f"no multipliers near the guess {short(guess)} fulfil the hidden constraints: give a better one with "
            f"{' or '.join(system.used_guesses)}="
        ) from None
