"""Runs of systems with redundant constraints: combinations of their rows, and how long these stay independent.

What Gauss elimination leaves of a row, compared with its diagonal entry, says how far the row is from depending on those
before it: D_ii / A_ii = 1 - R^2 for the matrix A = C G M^-1 G^T C^T and its multiple correlation R (statistics calls the
reciprocal an inflation factor). The factors in the state where C was chosen are parameters of the step, which is refused where
one of them has grown too far; then C is chosen anew. Factors also grow because masses lie differently. Where they do, and C
hardly changes, they may grow so far again before C is looked at the next time.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import diagonal_order, eliminate
from dalembert.errors import InconsistentStart
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import MechanicalSystem, State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._dependency import combination_at
from dalembert.systems._redundant import chosen_combinations, combined
from dalembert.systems._states import States, with_multipliers

GROWN = 10.0
"""By how much an inflation factor may grow until the combinations are chosen anew, ..."""

REMEMBERED = 1e3
"""... or, where it was larger before with about the same combinations, at most by this factor more."""

SAME = 0.3
"""How much an entry of C may change for them to be about the same."""


def inflation(matrix: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The inflation factor of every row of a matrix that is close to positive definite, and the sign of its determinant."""
    order = diagonal_order(matrix)
    reciprocals, _, _ = eliminate(matrix, order)
    factors, sign = ca.SX.zeros(matrix.shape[0], 1), ca.SX(1)
    for row, reciprocal in zip(order.rows, reciprocals, strict=True):
        factors[row] = reciprocal * matrix[row, row]
        sign *= ca.sign(reciprocal)
    return factors, sign


def independence(matrix: ca.SX, system: System, theta: ca.SX) -> ca.SX:
    """The sign of det(matrix); zero where inflation factors are no longer about those of the state where C was chosen."""
    factors, sign = inflation(matrix)
    watched = _watched(system)
    if not watched:
        return sign
    factors, chosen = factors[watched], theta[theta.shape[0] - len(watched) :]
    return ca.if_else(ca.mmax(factors / chosen) < GROWN, sign, 0)


def _watched(system: System) -> list[int]:
    original, combination = system.combines
    return combination.watched(original.n_holonomic, original.n_nonholonomic)


@functools.lru_cache(maxsize=64)
@one_at_a_time
def _factors_at(system: System) -> ca.Function:
    """The inflation factors of watched rows as a function of (t, y, z, theta)."""
    sizes = (1, system.state_blocks[0][1], system.state_blocks[1][1], system.parameters.size)
    t, y, z, theta = (ca.SX.sym("s", size) for size in sizes)
    none = ca.SX.zeros(system.n_holonomic, 1), ca.SX.zeros(system.n_nonholonomic, 1)
    hidden_z = ca.sparsify(system.function("hidden_z")(t, y, z, theta))
    directions = ca.sparsify(system.function("directions")(t, y, z, *none, theta))
    return ca.Function("factors", [t, y, z, theta], [inflation(hidden_z @ directions)[0][_watched(system)]])


def combined_at(system: System, t: float, packed: np.ndarray, theta: np.ndarray) -> State | None:
    """A state of a combined system with C, and what to compare with, chosen for it; None if there is no such C."""
    chosen = _combinations_at(system, t, packed, theta)
    if chosen is None:
        return None
    state = unpack(system, t, packed, chosen)
    return state if np.all(np.isfinite(state.multipliers)) else None


def _combinations_at(system: System, t: float, packed: np.ndarray, theta: np.ndarray) -> np.ndarray | None:
    chosen = chosen_combinations(system, t, packed, theta)
    if chosen is None:
        return None
    y, z = np.split(packed, [system.state_blocks[0][1]])
    given = np.concatenate([chosen, np.ones(len(_watched(system)))])
    factors = np.asarray(_factors_at(system)(t, y, z, given), dtype=float).ravel()
    if len(theta) == len(given) and np.max(np.abs(chosen - theta[: len(chosen)]), initial=0.0) < SAME:
        factors = np.clip(theta[len(chosen) :], factors, REMEMBERED * factors)
    return np.concatenate([chosen, factors]) if np.all(np.isfinite(factors)) else None


def independent(system: System, state: State) -> tuple[System, State]:
    """The system whose steps are made, and the state as one of it: where constraints are redundant, they are combined."""
    if not isinstance(system, MechanicalSystem) or system.combines is not None:
        return system, state
    combination = combination_at(system, state.t, state.first, state.second, state.theta)
    if combination is None:
        return system, state
    reduced = combined(system, combination)
    own = combined_at(reduced, state.t, state.packed, state.theta)
    assert own is not None, "the combination was made for this state"
    return reduced, own


def independent_states(states: States) -> States:
    """The same for many states, which share the choice of rows of the first."""
    system = states.system
    if not len(states) or not isinstance(system, MechanicalSystem) or system.combines is not None:
        return states
    combination = combination_at(system, float(states.t[0]), *_blocks(states, 0), states.theta[0])
    if combination is None:
        return states
    reduced = combined(system, combination)
    theta = []
    for member in range(len(states)):
        own = _combinations_at(reduced, float(states.t[member]), states.packed[member], states.theta[member])
        if own is None:
            raise InconsistentStart(
                f"member {member}: other constraints are redundant than in member 0: run it in an ensemble of its own"
            )
        theta.append(own)
    none = np.zeros((len(states), reduced.n_multipliers))
    return with_multipliers(replace(states, system=reduced, theta=np.array(theta), multipliers=none))


def _blocks(states: States, member: int) -> list[np.ndarray]:
    return np.split(states.packed[member], [states.system.state_blocks[0][1]])
