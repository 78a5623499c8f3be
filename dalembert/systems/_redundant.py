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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._rank import dependencies
from dalembert.systems._system import System

CONNECTED = 1e-8
"""An entry of the projection N N^T from which on two rows take part in one dependency."""

REGULAR = 0.1
"""The least eigenvalue of N_S^T N_S for which S is large enough."""


LEAST = 0.02
"""The least singular value of N_S for which a run goes on with S."""


@dataclass(frozen=True)
class Group:
    """Rows that are replaced by combinations, of which there are fewer by the number of dependencies between them.

    The combinations are as close as possible to the rows themselves without those that are `dropped`. `component` are all rows
    that take part in the dependencies, and `rates` the rows of g_dot that do where these are rows of k.
    """

    component: tuple[int, ...]
    rows: tuple[int, ...]
    dropped: tuple[int, ...]
    rates: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """That of the matrix of combinations."""
        return len(self.rows) - len(self.dropped), len(self.rows)

    def combinations(self, N: np.ndarray, factors: np.ndarray) -> np.ndarray | None:
        """Independent combinations of the rows, given dependencies between all rows; None if N has others than it should."""
        own = N[list(self.rows)]
        basis, values, _ = np.linalg.svd(own)
        count = len(self.dropped)
        if np.sum(values > CONNECTED) != count or np.min(values[:count], initial=1.0) < LEAST:
            return None
        complement = basis[:, count:]
        kept = [k for k, row in enumerate(self.rows) if row not in self.dropped]
        turn, _, back = np.linalg.svd(complement[kept])
        scale = factors[list(self.rows)]
        return (turn @ back @ complement.T) * (scale / np.exp(np.mean(np.log(scale))))


@dataclass(frozen=True)
class Combination:
    """Which rows of g and k are combined."""

    holonomic: tuple[Group, ...]
    nonholonomic: tuple[Group, ...]

    @property
    def redundant(self) -> int:
        """How many rows follow from others."""
        return sum(len(group.dropped) for group in (*self.holonomic, *self.nonholonomic))

    @property
    def advice(self) -> str:
        """Which rows could be left out at the start."""
        names = [f"{kind}[{row}]" for kind in ("holonomic", "nonholonomic") for g in getattr(self, kind) for row in g.dropped]
        return f"remove {self.redundant} of them, such as {', '.join(names[:6])}"

    @property
    def size(self) -> int:
        """How many entries the matrices of combinations have."""
        return sum(int(np.prod(group.shape)) for group in (*self.holonomic, *self.nonholonomic))

    def watched(self, n_holonomic: int, n_nonholonomic: int) -> list[int]:
        """Which rows of a combined system may come to depend on each other: combinations, and rows that they depend on."""
        result, first = [], 0
        rates = {row for group in self.nonholonomic for row in group.rates}
        for groups, count, others in ((self.holonomic, n_holonomic, rates), (self.nonholonomic, n_nonholonomic, set())):
            kept = [row for row in range(count) if not any(row in group.rows for group in groups)]
            combinations = sum(group.shape[0] for group in groups)
            depend = others.union(*(group.component for group in groups))
            result += [first + k for k, row in enumerate(kept) if row in depend]
            result += range(first + len(kept), first + len(kept) + combinations)
            first += len(kept) + combinations
        return result

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

    def entries(self, found: Dependencies, factors: np.ndarray) -> np.ndarray | None:
        """The entries of the matrices for given dependencies; None if these are others than they should be."""
        parts, m = [], len(found.g)
        for groups, N, own in ((self.holonomic, found.g, factors[:m]), (self.nonholonomic, found.k, factors[2 * m :])):
            if N.shape[1] != sum(len(group.dropped) for group in groups):
                return None
            parts += [group.combinations(N, own) for group in groups]
        if any(part is None for part in parts):
            return None
        return np.concatenate([np.zeros(0), *(part.ravel() for part in parts if part is not None)])


class Dependencies(NamedTuple):
    """Bases of dependencies between rows, one a column.

    `g` are those between the rows of g, `k` those between the rows of k where g_dot = 0 holds, and `rates` what rows of g_dot
    contribute to the latter.
    """

    g: np.ndarray
    k: np.ndarray
    rates: np.ndarray

    @property
    def numbers(self) -> tuple[int, int]:
        """How many there are."""
        return self.g.shape[1], self.k.shape[1]


def row_dependencies(
    system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray, factors: np.ndarray | None = None
) -> tuple[Dependencies, np.ndarray]:
    """The dependencies in a state, and the factors of the rows.

    The factors, which may be given, are those of g and, where there is k, of g_dot and k.
    """
    m = system.n_holonomic
    N_g, of_g = dependencies(system.matrix("G", t, y, theta=theta), None if factors is None else factors[:m])
    if not system.n_nonholonomic:
        return Dependencies(N_g, np.zeros((0, 0)), np.zeros((m, 0))), of_g
    N, of_all = dependencies(system.matrix("hidden_z", t, y, z, theta=theta), None if factors is None else factors[m:])
    left, values, right = np.linalg.svd(N[m:], full_matrices=False)
    own = values > 1e-6
    return Dependencies(N_g, left[:, own], N[:m] @ right[own].T), np.concatenate([of_g, of_all])


def combination_of(samples: Sequence[Dependencies], patterns: tuple[np.ndarray, np.ndarray]) -> Combination:
    """Which rows to combine, from the dependencies in several states; `patterns` say which entries there are."""
    holonomic = _groups([sample.g for sample in samples], patterns[0])
    rates = np.max([np.max(np.abs(sample.rates), axis=1, initial=0.0) for sample in samples], axis=0)
    nonholonomic = _groups([sample.k for sample in samples], patterns[1], least=np.inf)  # all rows: see the head
    others = tuple(np.flatnonzero(rates > CONNECTED).tolist())
    return Combination(holonomic, tuple(replace(group, rates=others) for group in nonholonomic))


def _groups(samples: list[np.ndarray], pattern: np.ndarray, least: float = REGULAR) -> tuple[Group, ...]:
    """A group for each set of rows that are connected by dependencies."""
    if not samples[0].shape[1]:
        return ()
    connected = np.max([np.abs(N @ N.T) for N in samples], axis=0) > CONNECTED
    groups, open_rows = [], set(np.flatnonzero(np.diag(connected)).tolist())
    while open_rows:
        component, new = set[int](), {min(open_rows)}
        while new:
            component |= new
            new = {int(j) for i in new for j in np.flatnonzero(connected[i])} - component
        open_rows -= component
        groups.append(_group(samples, pattern, sorted(component), least))
    return tuple(groups)


def _group(samples: list[np.ndarray], pattern: np.ndarray, component: list[int], least: float) -> Group:
    """Rows of a component that suffice: those that add most to N_S^T N_S, and of them those that share variables."""
    parts = []
    for N in samples:
        left, values, _ = np.linalg.svd(N[component], full_matrices=False)
        parts.append(left[:, values > CONNECTED])
    redundant = parts[0].shape[1]
    weights = [1e-3 * np.eye(redundant) for _ in parts]
    used = np.zeros(pattern.shape[1], dtype=bool)
    chosen: list[int] = []
    while min(np.linalg.eigvalsh(W)[0] for W in weights) < least + 1e-3 and len(chosen) < len(component):
        gains = [np.log1p(np.einsum("ij,jk,ik->i", N, np.linalg.inv(W), N)) for N, W in zip(parts, weights, strict=True)]
        gain = np.min(gains, axis=0) / (1 + np.sum(pattern[component] & ~used, axis=1))
        gain[chosen] = -1.0
        best = int(np.argmax(gain))
        chosen.append(best)
        used |= pattern[component[best]]
        weights = [W + np.outer(N[best], N[best]) for N, W in zip(parts, weights, strict=True)]
    chosen = sorted({*chosen, *(k for k, row in enumerate(component) if not np.any(pattern[row] & ~used))})
    rows = tuple(component[k] for k in chosen)
    return Group(tuple(component), rows, tuple(rows[k] for k in _pivots(parts[0][chosen])))


def _pivots(N: np.ndarray) -> list[int]:
    """As many rows as N has columns, far from dependent (Gauss elimination with row pivots)."""
    N, rows = N.copy(), []
    for _ in range(N.shape[1]):
        k = int(np.argmax(np.linalg.norm(N, axis=1)))
        direction = N[k] / np.linalg.norm(N[k])
        N -= np.outer(N @ direction, direction)
        rows.append(k)
    return rows


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
    watched = len(combination.watched(system.n_holonomic, system.n_nonholonomic))
    rows = system.n_holonomic + (system.n_multipliers if system.n_nonholonomic else 0)
    parameters.theta = ca.vertcat(system.parameters.theta, entries, ca.SX.sym("hidden", watched + rows))
    hidden = np.zeros(combination.size + watched + rows)
    parameters.values, parameters.size = {**parameters.values, "_combinations": hidden}, parameters.theta.shape[0]
    reduced.parameters = parameters
    reduced.described = {name: label for name, label in system.described.items() if not name.startswith("k") or C_k.shape[0]}
    reduced.combines = system, combination
    return reduced


def hidden_parts(system: System, theta: Any) -> tuple[Any, Any, Any, Any]:
    """The parameters of a combined system: the model's own, the entries of C, those of watched rows, factors of all rows."""
    original, combination = system.combines
    watched = len(combination.watched(original.n_holonomic, original.n_nonholonomic))
    a, b, c = np.cumsum([original.parameters.size, combination.size, watched]).tolist()
    return theta[:a], theta[a:b], theta[b:c], theta[c:]


def chosen_combinations(
    system: System, t: float, packed: np.ndarray, theta: np.ndarray, factors: np.ndarray
) -> np.ndarray | None:
    """The entries of C for this state, with the model's parameters theta; None where the rows have other dependencies."""
    original, combination = system.combines
    y, z = np.split(packed, [original.state_blocks[0][1]])
    return combination.entries(*row_dependencies(original, t, y, z, theta, factors))


def combination_matrices(system: System, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """C for g and for k of a combined system; C^T mu are multipliers of the original one that act like mu."""
    original, combination = system.combines
    entries = ca.SX(ca.DM(hidden_parts(system, theta)[1]))
    C_g, C_k = combination.matrices(entries, original.n_holonomic, original.n_nonholonomic)
    return np.asarray(ca.DM(C_g), dtype=float), np.asarray(ca.DM(C_k), dtype=float)
