"""States on the constraints near a start, and matrices of steps there: what a pivot order is chosen from."""

from __future__ import annotations

import numpy as np

from dalembert.compiler._elimination import balance
from dalembert.compiler._guess import first_guess
from dalembert.compiler._reduction import Part, ReducedStep
from dalembert.errors import InconsistentStart
from dalembert.systems import MechanicalSystem, State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._projection import project_momentum, project_position
from dalembert.systems._states import evaluate_rows
from dalembert.systems._transformed_time import TransformedTime

TURNED = 0.05
"""How much a row of G changes, relative to its size, in the neighbourhood of a state."""

MOST_COORDINATES = 60
"""Up to this size, neighbours are projected onto the constraints."""

FRACTIONS = (1e-1, 1e-3)
"""Step sizes to look at, in units of the time in which the constraints turn."""


def sampled_entries(reduced: ReducedStep, part: Part, system: System, state: State, h: float) -> list[np.ndarray]:
    """The entries of a matrix at the start and its neighbours, with the parameters of the start, whatever the run's h is.

    Rows and columns are balanced, so that units do not matter. Only where the motion has no time scale of its own, without
    constraints that turn, is the run's h taken.
    """
    states, time = neighbours(system, state)
    sizes = [float(np.copysign(fraction * time, h)) for fraction in FRACTIONS] if time else [h, 1e-2 * h]
    pattern = reduced.matrix(part).sparsity()
    rows, columns = (np.array(a, dtype=int) for a in pattern.get_triplet())
    samples = []
    for near in states:
        values = np.empty((len(rows), len(sizes)))
        for k, size in enumerate(sizes):
            x = first_guess(reduced, system, near, size)
            values[:, k] = np.asarray(reduced.entries(part)(x, near.t, size, near.theta, near.packed), dtype=float).ravel()
        if np.all(np.isfinite(values)):
            lasting = np.tile(~(np.abs(values[:, 1:]) < 0.5 * np.abs(values[:, :1])), len(sizes))
            row_factors, column_factors = balance(rows, columns, values, lasting, pattern.size1())
            samples += list((values * (row_factors[rows] * column_factors[columns])).T)
    return samples


def neighbours(system: System, state: State, count: int = 6) -> tuple[list[State], float | None]:
    """The state and others around it on the constraints, where those have turned, and the time that the motion takes so far.

    Directions and distances are taken in the metric of the mass matrix: units of coordinates do not matter. In transformed time
    they are those of the original system, because K_pp need not be definite.
    """
    if isinstance(system, TransformedTime):
        original = system.original_state(state)
        states, time = neighbours(system.original, original, count)
        mapped = [state, *(system.state(system.original, near) for near in states[1:])]
        return mapped, time and time * system.density_at(original)
    if not system.n_holonomic or not 0 < len(state.first) <= MOST_COORDINATES:
        return [state], None
    root = _root_of_inverse_mass(system, state)
    random = np.random.default_rng(1788)
    states, distances = [state], []
    for _ in range(count):
        direction = root @ random.standard_normal(len(root))
        distance = _turning_distance(system, state, direction, root)
        if distance is None:
            continue
        distances.append(distance)
        near = _projected(system, state, state.first + random.uniform(1, 4) * distance * direction)
        if near is not None:
            states.append(near)
    return states, _time_scale(system, state, min(distances) * np.sqrt(len(root)), root) if distances else None


def _root_of_inverse_mass(system: System, state: State) -> np.ndarray:
    """R with R R^T = M^-1; the unit matrix where there is no mass matrix."""
    if isinstance(system, MechanicalSystem):
        inverse = system.evaluate("H_pp", state.t, state.first, state.second, theta=state.theta)
        try:
            return np.linalg.cholesky((inverse + inverse.T) / 2)
        except np.linalg.LinAlgError:
            pass
    return np.eye(len(state.first))


def _turning_distance(system: System, state: State, direction: np.ndarray, root: np.ndarray) -> float | None:
    """How far to go in this direction until a row of G has changed; None if they never do, as those of linear constraints."""
    distances = np.concatenate([[0.0], 10.0 ** np.arange(-40, 41)])
    y = state.first + distances[:, None] * direction
    theta = np.tile(state.theta, (len(distances), 1))
    with np.errstate(all="ignore"):
        G = evaluate_rows(system, "G", {"t": np.full((len(distances), 1), state.t), "y": y}, theta) @ root
        sizes = np.linalg.norm(G[0], axis=1)
        changes = np.max(np.linalg.norm(G - G[0], axis=2) / np.where(sizes > 0, sizes, 1.0), axis=1)
    turned = np.flatnonzero(changes >= TURNED)
    return float(distances[turned[0]]) if len(turned) else None


def _projected(system: System, state: State, position: np.ndarray) -> State | None:
    """The state on the constraints next to a position, with about the momentum of the given one."""
    try:
        y = project_position(system, state.t, position, state.second, state.theta)
        z = project_momentum(system, state.t, y, state.second, state.theta)
    except (InconsistentStart, np.linalg.LinAlgError):
        return None
    near = unpack(system, state.t, np.concatenate([y, z]), state.theta, state.multipliers)
    return near if np.all(np.isfinite(near.multipliers)) else None


def _time_scale(system: System, state: State, distance: float, root: np.ndarray) -> float | None:
    """The time in which velocity or acceleration carry the state so far, in the metric of the mass matrix."""
    speed, acceleration = float(np.linalg.norm(np.linalg.solve(root, state.v))), 0.0
    if isinstance(system, MechanicalSystem):
        acceleration = float(np.linalg.norm(root.T @ system.at("z_dot", state.values, state.theta)))
    times = [distance / speed if speed > 0 else np.inf, np.sqrt(distance / acceleration) if acceleration > 0 else np.inf]
    return float(min(times)) if 0 < min(times) < np.inf else None
