"""Runs of systems with redundant constraints: combinations of their rows, and how long these stay independent.

The pivots that Gauss elimination of C G M^-1 G^T C^T leaves on the diagonal, for the rows of each loop by themselves, say how
far a row is from depending on those before it, and from vanishing. Their reciprocals in the state where C was chosen are
parameters of the step, which is refused where one of them has grown too far; then C is chosen anew. They also grow because
masses lie differently. Where they do, and C hardly changes, they may grow so far again before C is looked at the next time.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import reciprocal_pivots
from dalembert.errors import InconsistentStart
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import MechanicalSystem, State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._dependency import combination_at
from dalembert.systems._redundant import chosen_combinations, combined, hidden_parts
from dalembert.systems._states import States, redundant_rows

GROWN, GROWN_OF_RATES = 10.0, 2.0
"""By how much the reciprocal of a pivot may grow until the combinations are chosen anew; by less where they are such of k, on
which errors of methods depend; ..."""

REMEMBERED = 1e3
"""... or, where it was larger before with about the same combinations, at most by this factor more."""

SAME = 0.3
"""How much an entry of C may change for them to be about the same."""


def independent_still(matrices: Sequence[ca.SX], system: System, theta: ca.SX) -> ca.SX:
    """Whether pivots of one of the matrices are still about those of the state where C was chosen.

    Between the ends of a step rows of thin rods on hinges seem dependent that are not at its end; those of wheels may turn on.
    """
    most = GROWN_OF_RATES if system.combines[1].nonholonomic else GROWN
    before = hidden_parts(system, theta)[2]
    grown = [ca.mmax(ca.fabs(watched_pivots(matrix, system) / before)) for matrix in matrices]
    return functools.reduce(ca.fmin, grown) < most


def watched_pivots(matrix: ca.SX, system: System) -> ca.SX:
    """The reciprocal pivots of watched rows, each group for itself; walls that are touched have rows between g and k."""
    original, combination = system.combines
    own = original.n_holonomic - sum(group.redundant for group in combination.holonomic)
    walls, groups = system.n_holonomic - own, combination.watched(original.n_holonomic, original.n_nonholonomic)
    groups = [[row if row < own else row + walls for row in rows] for rows in groups]
    return ca.vertcat(ca.SX(0, 1), *(reciprocal_pivots(matrix[rows, rows]) for rows in groups if rows))


@kept
@one_at_a_time
def _pivots_at(system: System) -> ca.Function:
    """The reciprocal pivots of watched rows as a function of (t, y, z, theta)."""
    sizes = (1, system.state_blocks[0][1], system.state_blocks[1][1], system.parameters.size)
    t, y, z, theta = (ca.SX.sym("s", size) for size in sizes)
    none = ca.SX.zeros(system.n_holonomic, 1), ca.SX.zeros(system.n_nonholonomic, 1)
    hidden_z = ca.sparsify(system.function("hidden_z")(t, y, z, theta))
    directions = ca.sparsify(system.function("directions")(t, y, z, *none, theta))
    return ca.Function("pivots", [t, y, z, theta], [ca.densify(watched_pivots(hidden_z @ directions, system))])


def combined_at(system: System, t: float, packed: np.ndarray, theta: np.ndarray) -> State | None:
    """A state of a combined system with C, and what to compare with, chosen for it; None if there is no such C."""
    own, C, before, factors = hidden_parts(system, theta)
    chosen = chosen_combinations(system, t, packed, own, factors, C)
    if chosen is None:
        return None
    y, z = np.split(packed, [system.state_blocks[0][1]])
    found = np.asarray(_pivots_at(system)(t, y, z, np.concatenate([own, chosen, before, factors])), dtype=float).ravel()
    if not np.all(np.isfinite(found)):
        return None
    if np.max(np.abs(chosen - C), initial=0.0) < SAME and not np.any(np.isnan(before)):
        found = np.clip(before, found, REMEMBERED * found)
    state = unpack(system, t, packed, np.concatenate([own, chosen, found, factors]))
    return state if np.all(np.isfinite(state.multipliers)) else None


def independent(system: System, state: State, known: np.ndarray | None = None) -> tuple[System, State]:
    """The system whose steps are made, and the state as one of it: where constraints are redundant, they are combined.

    The factors of rows may be `known`, from another state of a run.
    """
    if not isinstance(system, MechanicalSystem) or system.combines is not None:
        return system, state
    found = combination_at(system, state.t, state.first, state.second, state.theta, known)
    if found is None:
        return system, state
    reduced = combined(system, found[0])
    own = combined_at(reduced, state.t, state.packed, _unchosen(reduced, state.theta, found[1]))
    if own is None:
        raise InconsistentStart("no independent combinations of the redundant constraints were found: start elsewhere")
    return reduced, own


def _unchosen(system: System, theta: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The parameters of a combined system before C is chosen."""
    return np.concatenate([theta, np.full(system.parameters.size - len(theta) - len(factors), np.nan), factors])


def independent_states(states: States) -> States:
    """The same for many states, which share the choice of rows of the first."""
    system = states.system
    if not len(states) or not isinstance(system, MechanicalSystem) or system.combines is not None:
        return states
    q, p = np.split(states.packed[0], [system.dim])
    found = combination_at(system, float(states.t[0]), q, p, states.theta[0])
    if found is None:
        _refuse_others(states)
        return states
    reduced, chosen = combined(system, found[0]), []
    for member, (t, packed, theta) in enumerate(zip(states.t, states.packed, states.theta, strict=True)):
        own = combined_at(reduced, float(t), packed, _unchosen(reduced, theta, found[1]))
        if own is None:
            raise InconsistentStart(
                f"member {member}: other constraints are redundant than in member 0: run it in an ensemble of its own"
            )
        chosen.append(own)
    theta, multipliers = (np.array([getattr(state, name) for state in chosen]) for name in ("theta", "multipliers"))
    return States(reduced, states.t, states.packed, theta, multipliers)


def _refuse_others(states: States) -> None:
    """Refuse members with redundant constraints where member 0 has none."""
    redundant = np.flatnonzero(redundant_rows(states))
    if len(redundant):
        raise InconsistentStart(
            f"member {redundant[0]}: constraints are redundant that are independent in member 0: run such members in an "
            "ensemble of their own"
        )
