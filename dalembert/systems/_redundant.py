"""Redundant constraints: rows that are part of a dependency are replaced by independent combinations of them, C g.

Four bars in a plane with joints that are stated in space have three rows too many, and so has every closed loop. Which rows
could be left out changes along the motion, so the entries of C are parameters, hidden behind those of the model: they can be
chosen anew in any state, and nothing is compiled for that. With N a basis of the dependencies, N^T G = 0, and N_S its rows for
a set S of rows, C keeps all rows that are not in S, and its other rows are a basis of the orthogonal complement of N_S. They
are independent as long as N_S stays regular; S is chosen so that this is so by a wide margin, as the rows of one joint of a
loop are.

Of k, S are all rows of a dependency. Some methods fulfil k only on average inside a step, so that their errors depend on the
combinations, and grow where these are nearly dependent.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._circuits import circuits, merged
from dalembert.systems._matrices import Matrix, balanced, is_sparse
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._rank import dependencies, part_dependencies
from dalembert.systems._system import System

CONNECTED = 1e-8
"""An entry of the projection N N^T from which on two rows take part in one dependency."""

LEAST = 0.2
"""The least singular value of N_S for which a run goes on with S: errors grow by its reciprocal, those of g_dot by its
square."""


def independent_rows(N: np.ndarray) -> list[int]:
    """As many rows as N has columns, far from dependent (Gauss elimination with row pivots)."""
    N, rows = N.copy(), []
    for _ in range(N.shape[1]):
        k = int(np.argmax(np.linalg.norm(N, axis=1)))
        direction = N[k] / np.linalg.norm(N[k])
        N -= np.outer(N @ direction, direction)
        rows.append(k)
    return rows


@dataclass(frozen=True)
class Group:
    """Rows that are replaced by combinations, of which there are fewer by the number of dependencies between them.

    At first the combinations are as close as possible to the rows themselves without those that could be dropped. `component`
    are all rows that take part in the dependencies, and `rates` the rows of g_dot that do where these are rows of k. Which rows
    could be `dropped` where the group was found makes no other group of it: elsewhere it may be others.
    """

    component: tuple[int, ...]
    rows: tuple[int, ...]
    dropped: tuple[int, ...] = field(compare=False)
    rates: tuple[int, ...] = ()
    redundant: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "redundant", len(self.dropped))

    @property
    def shape(self) -> tuple[int, int]:
        """That of the matrix of combinations."""
        return len(self.rows) - self.redundant, len(self.rows)

    def combinations(self, N: np.ndarray, factors: np.ndarray, before: np.ndarray) -> np.ndarray | None:
        """Independent combinations of the rows, given dependencies in the component; None if N has others than it should.

        They are as close as possible to those `before`, for which pivots were chosen, or, where there are none, to rows.
        """
        own = N[[self.component.index(row) for row in self.rows]]
        basis, values, _ = np.linalg.svd(own)
        count = self.redundant
        if np.sum(values > CONNECTED) != count or np.min(values[:count], initial=1.0) < LEAST:
            return None
        complement = basis[:, count:]
        scale = factors[list(self.rows)] / np.exp(np.mean(np.log(factors[list(self.rows)])))
        wanted = before.reshape(self.shape) / scale
        if np.any(np.isnan(wanted)):
            wanted = np.delete(np.eye(len(self.rows)), independent_rows(basis[:, :count] * values[:count]), axis=0)
        turn, _, back = np.linalg.svd(wanted @ complement)
        return (turn @ back @ complement.T) * scale


@dataclass(frozen=True)
class Combination:
    """Which rows of g and k are combined."""

    holonomic: tuple[Group, ...]
    nonholonomic: tuple[Group, ...]

    @property
    def redundant(self) -> int:
        """How many rows follow from others."""
        return sum(group.redundant for group in (*self.holonomic, *self.nonholonomic))

    @property
    def dropped(self) -> list[tuple[str, int]]:
        """Which rows of "g" and "k" could be left out at the start."""
        groups = (("g", self.holonomic), ("k", self.nonholonomic))
        return [(kind, row) for kind, own in groups for group in own for row in group.dropped]

    @property
    def size(self) -> int:
        """How many entries the matrices of combinations have."""
        return sum(int(np.prod(group.shape)) for group in (*self.holonomic, *self.nonholonomic))

    def watched(self, n_holonomic: int, n_nonholonomic: int) -> list[list[int]]:
        """For each group, which rows of a combined system may come to depend on each other.

        They are its combinations and the rows that these depend on, of g_dot also as parts of other combinations.
        """
        places, first = [], 0
        for groups, count in ((self.holonomic, n_holonomic), (self.nonholonomic, n_nonholonomic)):
            combined = {row for group in groups for row in group.rows}
            kept = [row for row in range(count) if row not in combined]
            own = {row: [first + k] for k, row in enumerate(kept)}
            first += len(kept)
            for group in groups:
                own |= {row: list(range(first, first + group.shape[0])) for row in group.rows}
                first += group.shape[0]
            places.append(own)
        of_g, of_k = places
        result = [[of_g[row] for row in group.component] for group in self.holonomic]
        result += [[of_g[row] for row in g.rates] + [of_k[row] for row in g.component] for g in self.nonholonomic]
        return [sorted({place for part in parts for place in part}) for parts in result]

    def matrices(self, symbols: ca.SX, n_holonomic: int, n_nonholonomic: int) -> tuple[ca.SX, ca.SX]:
        """C for g and for k: ones for rows that are kept, then the combinations, with entries out of `symbols`."""
        result, first = [], 0
        for groups, count in ((self.holonomic, n_holonomic), (self.nonholonomic, n_nonholonomic)):
            combined = {row for group in groups for row in group.rows}
            kept = [row for row in range(count) if row not in combined]
            parts = [ca.SX.eye(count)[kept, :]]
            for group in groups:
                part = ca.SX(group.shape[0], count)
                for k, row in enumerate(group.rows):
                    for i in range(group.shape[0]):
                        part[i, row] = symbols[first + i * len(group.rows) + k]
                parts.append(part)
                first += int(np.prod(group.shape))
            result.append(ca.vertcat(*parts))
        return result[0], result[1]


class Dependencies(NamedTuple):
    """How many dependencies there are between the rows of g, a basis of those between the rows of k where g_dot = 0 holds, one
    a column, and what rows of g_dot contribute to the latter."""

    g: int
    k: np.ndarray
    rates: np.ndarray

    @property
    def numbers(self) -> tuple[int, int]:
        """How many there are."""
        return self.g, self.k.shape[1]


def row_dependencies(
    system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray, factors: np.ndarray | None = None
) -> tuple[Dependencies, np.ndarray]:
    """The dependencies in a state, and the factors of the rows.

    The factors, which may be given, are those of g and, where there is k, of g_dot and k.
    """
    m, n_k, G = system.n_holonomic, system.n_nonholonomic, system.matrix("G", t, y, theta=theta)
    if is_sparse(G):
        count, of_g = len(circuits(G)), balanced(G)[1] if factors is None else factors[:m]
    else:
        N_g, of_g = dependencies(G, None if factors is None else factors[:m])
        count = N_g.shape[1]
    if not n_k:
        return Dependencies(count, np.zeros((0, 0)), np.zeros((m, 0))), of_g
    hidden_z = system.matrix("hidden_z", t, y, z, theta=theta)
    if is_sparse(hidden_z):
        of_all = balanced(hidden_z)[1] if factors is None else factors[m:]
        return Dependencies(count, *_rates_by_parts(hidden_z, m, of_all)), np.concatenate([of_g, of_all])
    N, of_all = dependencies(hidden_z, None if factors is None else factors[m:])
    return Dependencies(count, *of_rates(N, m)), np.concatenate([of_g, of_all])


def _rates_by_parts(hidden_z: Matrix, m: int, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`of_rates` of a sparse matrix with m rows of g_dot, from sets of rows that no dependency connects with others."""
    bases, rates = [np.zeros((hidden_z.shape[0] - m, 0))], [np.zeros((m, 0))]
    for part in merged([set(circuit) for circuit in circuits(hidden_z).values()]):
        rows = sorted(part)
        of_g = [row for row in rows if row < m]
        own, contributed = of_rates(part_dependencies(hidden_z, rows, factors), len(of_g))
        bases.append(np.zeros((hidden_z.shape[0] - m, own.shape[1])))
        rates.append(np.zeros((m, own.shape[1])))
        bases[-1][[row - m for row in rows if row >= m]], rates[-1][of_g] = own, contributed
    return np.hstack(bases), np.hstack(rates)


def of_rates(N: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Of dependencies between m rows of g_dot and some of k, a basis for k where g_dot = 0, and what g_dot contributes."""
    left, values, right = np.linalg.svd(N[m:], full_matrices=False)
    own = values > 1e-6
    return left[:, own], N[:m] @ right[own].T


@kept
@one_at_a_time
def combined(system: MechanicalSystem, combination: Combination) -> MechanicalSystem:
    """The same system with the rows C g and C k; behind its parameters lie hidden ones (`hidden_parts`).

    These are the entries of C, a number for each watched row, by which its independence is judged
    (`compiler/_independence.py`), and the factors of the rows of g and k.
    """
    reduced = copy.copy(system)
    for derived in ("fingerprint", "smooth", "linear_in_multipliers"):
        reduced.__dict__.pop(derived, None)
    reduced._symbols, reduced._expressions = dict(system._symbols), dict(system._expressions)
    given = {name: system._expressions[name][1] for name in ("g", "k", "H_p", "f", "r", "k_v")}
    entries = ca.SX.sym("C", combination.size)
    C_g, C_k = combination.matrices(entries, system.n_holonomic, system.n_nonholonomic)
    mu, nu = reduced._multiplier_symbols(C_g @ given["g"], C_k @ given["k"])
    f = ca.substitute(given["f"], system._symbols["psi"], ca.densify(C_k.T @ nu))
    r = ca.substitute(given["r"], system._symbols["lam"], ca.densify(C_g.T @ mu))
    reduced._define("t y z", k_v=C_k @ given["k_v"])
    reduced._derive(v=given["H_p"], f=f, r=r, g=C_g @ given["g"], k=C_k @ given["k"])
    parameters = copy.copy(system.parameters)
    watched = sum(map(len, combination.watched(system.n_holonomic, system.n_nonholonomic)))
    rows = system.n_holonomic + (system.n_multipliers if system.n_nonholonomic else 0)
    parameters.theta = ca.vertcat(system.parameters.theta, entries, ca.SX.sym("hidden", watched + rows))
    hidden = np.zeros(combination.size + watched + rows)
    parameters.values, parameters.size = {**parameters.values, "_combinations": hidden}, parameters.theta.shape[0]
    reduced.parameters = parameters
    reduced.described = {name: label for name, label in system.described.items() if not name.startswith("k") or C_k.shape[0]}
    reduced.combines, reduced.uncombined, reduced.row_names = (system, combination), system, {}
    return reduced


def hidden_parts(system: System, theta: Any) -> tuple[Any, Any, Any, Any]:
    """The parameters of a combined system: the model's own, the entries of C, those of watched rows, factors of all rows."""
    original, combination = system.combines
    watched = sum(map(len, combination.watched(original.n_holonomic, original.n_nonholonomic)))
    a, b, c = np.cumsum([original.parameters.size, combination.size, watched]).tolist()
    return theta[:a], theta[a:b], theta[b:c], theta[c:]


def chosen_combinations(
    system: System, t: float, packed: np.ndarray, theta: np.ndarray, factors: np.ndarray, before: np.ndarray
) -> np.ndarray | None:
    """The entries of C for this state, with the model's parameters theta; None where the rows have other dependencies.

    Those `before` are not numbers where there were none.
    """
    original, combination = system.combines
    (y, z), m, parts = np.split(packed, [original.state_blocks[0][1]]), original.n_holonomic, [np.zeros(0)]
    groups = (*combination.holonomic, *combination.nonholonomic)
    given = iter(np.split(before, np.cumsum([int(np.prod(group.shape)) for group in groups])))
    G = original.matrix("G", t, y, theta=theta)
    for group in combination.holonomic:
        parts.append(group.combinations(part_dependencies(G, group.component, factors[:m]), factors, next(given)))
    if combination.nonholonomic:
        hidden_z = original.matrix("hidden_z", t, y, z, theta=theta)
    for group in combination.nonholonomic:
        N = part_dependencies(hidden_z, [*group.rates, *(m + row for row in group.component)], factors[m:])
        parts.append(group.combinations(of_rates(N, len(group.rates))[0], factors[2 * m :], next(given)))
    return None if any(part is None for part in parts) else np.concatenate([part.ravel() for part in parts])


def combination_matrices(system: System, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """C for g and for k of a combined system; C^T mu are multipliers of the original one that act like mu."""
    original, combination = system.combines
    entries = ca.SX(ca.DM(hidden_parts(system, theta)[1]))
    C_g, C_k = combination.matrices(entries, original.n_holonomic, original.n_nonholonomic)
    return np.asarray(ca.DM(C_g), dtype=float), np.asarray(ca.DM(C_k), dtype=float)
