"""Many states of one system at once: what `_consistent.py` does for one state, for arrays with the member as first axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, InputError
from dalembert.systems._consistent import (
    State,
    complete,
    finite_number,
    state_at,
    unpack,
    with_parameters,
)
from dalembert.systems._model import checked_mapping, one_line, real_array
from dalembert.systems._rank import solve_of_rank
from dalembert.systems._start_checks import CONSISTENCY_TOLERANCE, SMALLEST_SCALE
from dalembert.systems._system import System


@dataclass(frozen=True, eq=False)
class States:
    """States of one system, one a row, each with parameters of its own."""

    system: System
    t: np.ndarray
    packed: np.ndarray
    theta: np.ndarray
    multipliers: np.ndarray

    @classmethod
    def of(cls, system: System, state: State) -> States:
        """One state."""
        return cls(system, np.array([state.t]), state.packed[None], state.theta[None], state.multipliers[None])

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, member: int) -> State:
        return unpack(
            self.system, float(self.t[member]), self.packed[member], self.theta[member], guess=self.multipliers[member]
        )

    def known(self, member: int) -> State:
        """One state with the multipliers that it has: solving for them again may change their last bits."""
        y, z = np.split(self.packed[member], [self.system.state_blocks[0][1]])
        return complete(self.system, float(self.t[member]), y, z, self.theta[member], multipliers=self.multipliers[member])

    def take(self, members: np.ndarray) -> States:
        """Some of the states."""
        rows = (self.t[members], self.packed[members], self.theta[members], self.multipliers[members])
        return States(self.system, *rows)

    def evaluate(self, name: str) -> np.ndarray:
        """The numbers of one of the system's functions at every state."""
        y, z = np.split(self.packed, [self.system.state_blocks[0][1]], axis=1)
        lam, psi = np.split(self.multipliers, [self.system.n_holonomic], axis=1)
        values = {"t": self.t[:, None], "y": y, "z": z, "y0": y, "z0": z, "lam": lam, "psi": psi}
        return evaluate_rows(self.system, name, values, self.theta)


def evaluate_rows(system: System, name: str, values: Mapping[str, np.ndarray], theta: np.ndarray) -> np.ndarray:
    """`System.at` for every row of the values; the same numbers, bit for bit."""
    function, members = system.function(name), len(theta)
    if not members:
        return np.zeros((0, *function.size_out(0))) if name in system.matrices else np.zeros((0, function.numel_out(0)))
    arguments = [values[a].T for a in system.arguments(name)]
    rows, columns = function.size_out(0)
    result = np.asarray(function.map(members)(*arguments, theta.T), dtype=float)
    matrices = result.T.reshape(members, columns, rows).swapaxes(1, 2)
    return matrices if name in system.matrices else matrices.reshape(members, -1)


def _checked_starts(system: System, start: Any) -> list[State]:
    """The states that were given as a start: none, one, or several at the same time."""
    starts: list[Any] = [] if start is None else [start]
    if isinstance(start, Iterable) and not isinstance(start, State):
        starts = list(start)
    for state in starts:
        if not isinstance(state, State) or state.fingerprint != system.fingerprint or state.t != starts[0].t:
            raise InputError(
                "start= is a state that da.consistent returned for this system, or a list of them at the same time"
            )
    return starts


def states_at(
    system: System,
    *,
    t0: Any = 0.0,
    params: Mapping[str, Any] | None = None,
    start: State | Sequence[State] | None = None,
    **initial: Any,
) -> States:
    """The states of given initial values, of which any, and any parameter, may have one row a member.

    All members are checked at once; what is wrong with one of them is found out by `state_at`, and said with its number.
    """
    t0 = finite_number("t0", t0)
    starts = _checked_starts(system, start)
    given = {name: _array(name, value) for name, value in initial.items() if value is not None}
    sizes = {name: array.shape[0] for name, array in given.items() if array.ndim == 2}
    sizes |= {"start": len(starts)} if len(starts) > 1 else {}
    members, theta = _parameters(system, params, sizes, starts)

    def one(member: int) -> State:
        if starts:
            chosen = starts[member if len(starts) > 1 else 0]
            second = with_parameters(system, chosen, theta[member])[len(chosen.first) :]
            names = ("q0", "p0") if "p0" in system.starts_from else system.starts_from
            blocks = dict(zip(names, (chosen.first, second), strict=True))
            guesses = dict(zip(system.guesses, (chosen.lam, chosen.psi), strict=True))
            named: dict[str, Any] = {name: value for name, value in (blocks | guesses).items() if name}
            return state_at(system, t0=chosen.t, theta=theta[member], **named)
        rows: dict[str, Any] = {name: array[member] if array.ndim == 2 else array for name, array in given.items()}
        return state_at(system, t0=t0, theta=theta[member], **rows)

    first, times = _numbered(one, 0), np.array([state.t for state in starts] or [t0])
    if starts:
        packed = _packed(system, starts if len(starts) > 1 else starts * members, theta)
    elif "v0" in given:  # each momentum from its own equation
        packed = np.array([_numbered(one, k).packed for k in range(members)])
    else:
        names = ("q0", "p0") if "p0" in given else [name for name in system.starts_from if name]
        packed = np.concatenate([np.broadcast_to(given[name], (members, given[name].shape[-1])) for name in names], axis=1)
    packed, times = np.broadcast_to(packed, (members, system.n_state)).copy(), np.broadcast_to(times, members).copy()
    if not system.linear_in_multipliers or system.large:
        multipliers = np.array([_numbered(one, k).multipliers for k in range(members)])
        return States(system, times, packed, theta, multipliers)
    states = States(system, times, packed, theta, np.tile(first.multipliers, (members, 1)))
    for member in np.flatnonzero(_doubtful(states)):
        _numbered(one, int(member))
    return with_multipliers(states)


def _packed(system: System, starts: Sequence[State], theta: np.ndarray) -> np.ndarray:
    """The packed values of one state a member, each with its own parameters."""
    packed = np.array([state.packed for state in starts])
    if not any(state.keeps_velocity for state in starts):
        return packed
    t, none = np.array([state.t for state in starts]), np.zeros((len(starts), system.n_multipliers))
    rates = States(system, t, packed, theta, none).evaluate("v")
    for member in np.flatnonzero(np.any(rates != [state.v for state in starts], axis=1)):
        packed[member] = with_parameters(system, starts[int(member)], theta[member])
    return packed


def with_multipliers(states: States) -> States:
    """The same states with their own multipliers; those that they have are guesses."""
    system = states.system
    if not system.n_multipliers:
        return states
    if not system.linear_in_multipliers or system.large:
        return replace(states, multipliers=np.array([states[k].multipliers for k in range(len(states))]))
    matrix, rhs, redundant = states.evaluate("multiplier_matrix"), states.evaluate("multiplier_rhs"), redundant_rows(states)
    multipliers = np.empty_like(rhs)
    for count in np.unique(redundant):
        rows = redundant == count
        if count:
            multipliers[rows] = solve_of_rank(matrix[rows], rhs[rows], int(count))
        else:
            multipliers[rows] = np.linalg.solve(matrix[rows], rhs[rows][:, :, None])[:, :, 0]
    return replace(states, multipliers=multipliers)


def redundant_rows(states: States) -> np.ndarray:
    """`System.redundant_rows` in every state; looked at only where multipliers may not be determined."""
    result = np.zeros(len(states), dtype=int)
    if not states.system.n_multipliers or not states.system.linear_in_multipliers:
        return result
    n, every = states.system.state_blocks[0][1], np.arange(len(states))
    large = states.system.large  # one after the other: each looks by itself first whether rows are surely independent
    for k in every if large else np.flatnonzero(_badly_conditioned(states.evaluate("multiplier_matrix"))):
        y, z = np.split(states.packed[k], [n])
        result[k] = states.system.redundant_rows(float(states.t[k]), y, z, states.theta[k])
    return result


def _numbered(one: Callable[[int], Any], member: int) -> Any:
    try:
        return one(member)
    except DalembertError as error:
        raise type(error)(f"member {member}: {error}") from None


def _array(name: str, value: Any) -> np.ndarray:
    try:
        array = real_array(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be an array of real numbers with one row a member; got {one_line(value)}") from None
    if array.ndim not in (1, 2) or not len(array):
        raise InputError(f"{name} must have shape (members, n), or (n,) for all members alike; got shape {array.shape}")
    return array


def _parameter_array(name: str, value: Any) -> np.ndarray:
    try:
        return real_array(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"params[{name!r}] must be numbers, one value for all members or one of the same shape for each; "
            f"got {one_line(value)}"
        ) from None


def _parameters(
    system: System, params: Mapping[str, Any] | None, sizes: dict[str, int], starts: list[State]
) -> tuple[int, np.ndarray]:
    """How many members there are, and the parameters of each."""
    declared = system.parameters.values
    alike: dict[str, Any] = {}
    varied: dict[str, np.ndarray] = {}
    for name, value in checked_mapping(params).items():
        array = _parameter_array(name, value) if name in declared else None
        if array is not None and array.ndim == declared[name].ndim + 1:
            varied[name] = array
            sizes[f"params[{name!r}]"] = len(array)
        else:
            alike[name] = value
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise InputError(f"everything that varies must have one row a member: {listed}")
    members = next(iter(sizes.values()), 1)
    if not members:
        raise InputError("there is no member: give at least one row of initial values or parameters")
    base: list[np.ndarray | None] = [state.theta for state in starts] or [None]

    def vector(member: int) -> np.ndarray:
        chosen = alike | {name: array[member] for name, array in varied.items()}
        return system.parameters.vector(chosen, base=base[member if len(base) > 1 else 0])

    system.parameters.vector(alike, base=base[0])  # what is wrong here is wrong for all members
    rows = [_numbered(vector, k) for k in range(members if varied or len(base) > 1 else 1)]
    return members, np.broadcast_to(np.array(rows), (members, system.parameters.size)).copy()


def _doubtful(states: States) -> np.ndarray:
    """Which states might not pass `check_start`, as the first did; its tests, a little stricter, for all states at once."""
    system, bad = states.system, ~np.all(np.isfinite(states.packed), axis=1)
    with np.errstate(all="ignore"):
        for name in system.described:
            if name != "domain":
                bad |= ~np.all(np.isfinite(states.evaluate(name)), axis=tuple(range(1, states.evaluate(name).ndim)))
        if system.n_unilateral:
            bad |= np.any(states.evaluate("phi") < 0, axis=1)
        if "domain" in system.function_names:
            return np.ones(len(states), dtype=bool)
        if "L_vv" in system.function_names:
            bad |= _badly_conditioned(states.evaluate("L_vv"))
        if not system.n_multipliers:
            return bad
        G, v, hidden_z = (states.evaluate(name) for name in ("G", "v", "hidden_z"))
        for matrix in (G, hidden_z):
            finite = np.nan_to_num(matrix)
            norms = np.linalg.norm(finite, axis=2, keepdims=True)
            values = np.linalg.svd(finite / np.maximum(norms, 1e-300), compute_uv=False)
            dependent = np.sum(values < 1e-9, axis=1) + max(0, matrix.shape[1] - matrix.shape[2])
            bad |= dependent != dependent[0]  # the first state has passed
        if not dependent[0]:
            bad |= _badly_conditioned(states.evaluate("multiplier_matrix"))
        y, z = np.split(states.packed, [system.state_blocks[0][1]], axis=1)
        g, g_dot, k = (states.evaluate(name) for name in ("g", "g_dot", "k"))
        g_t = g_dot - np.einsum("bij,bj->bi", G, v)
        slopes, k_z = np.sum(np.abs(G), axis=2), hidden_z[:, system.n_holonomic :]
        largest = [np.max(np.abs(x), axis=1, initial=0.0, keepdims=True) for x in (y, v, z)]
        scales = (
            slopes * largest[0] + np.abs(g_t * states.t[:, None]),
            slopes * largest[1] + np.abs(g_t),
            np.sum(np.abs(k_z), axis=2) * largest[2],
        )
        for residual, scale in zip((g, g_dot, k), scales, strict=True):
            bound = 0.9 * CONSISTENCY_TOLERANCE * np.maximum(scale, SMALLEST_SCALE)
            bad |= ~np.all(np.abs(residual) <= bound, axis=1)
    return bad


def _badly_conditioned(matrices: np.ndarray) -> np.ndarray:
    bad = ~np.all(np.isfinite(matrices), axis=(1, 2))
    finite = np.where(bad[:, None, None], np.eye(matrices.shape[1]), matrices)
    return bad | ~(np.linalg.cond(finite) < 1e12)
