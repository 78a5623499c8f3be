"""States around a start, at which the ranks of constraints are compared."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.errors import InconsistentStart
from dalembert.systems._circuits import circuits
from dalembert.systems._grouped_rows import Pattern, combination_of
from dalembert.systems._matrices import (
    Matrix,
    identity,
    is_finite,
    is_sparse,
    least_norm_solution,
    row_norms,
    row_sums,
    scaled_rows,
)
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._rank import along, dependencies
from dalembert.systems._redundant import CONNECTED, Combination, row_dependencies
from dalembert.systems._system import System

TURNED = 0.05
"""How much a row changes, relative to its size, in the neighbourhood of a state."""
FURTHER = -16.0, -4.0, 4.0, 16.0
"""How many times as far as a neighbour, and on the other side, rows are looked at, too."""
HOLDS = 1e-9
"""How far, relative to the size of its terms, a row may be off at a neighbour."""
Place = tuple[float, np.ndarray, np.ndarray]
"""t, q and p."""


def names_of(system: MechanicalSystem, N: Matrix, row: int) -> str:
    """The rows of (g, k) that take part in the dependencies of one of them."""
    rows = np.flatnonzero(np.abs(along(N, np.eye(1, N.shape[0], row)[0])) > CONNECTED).tolist()
    rows = rows if row in rows else sorted([*rows, row])
    m = system.n_holonomic
    return rows_called(system, [("g", k) if k < m else ("k", k - m) for k in rows])


def rows_called(system: System, rows: Sequence[tuple[str, int]]) -> str:
    """Names of some rows."""
    names = [system.row_called(*row) for row in rows]
    return " and ".join(names) if len(names) <= 3 else ", ".join([*names[:6], *(["..."] if len(names) > 6 else [])])


def _independent(matrix: Matrix) -> Matrix:
    """Combinations C of rows that are independent: what is orthogonal to their dependencies; of a sparse matrix some rows."""
    N, factors = dependencies(matrix)
    if not is_sparse(matrix):
        return np.linalg.svd(N)[0][:, N.shape[1] :].T * factors
    vanish = circuits(matrix) if N.shape[1] else {}
    return scaled_rows(identity(len(factors), matrix), factors)[[k for k in range(len(factors)) if k not in vanish]]


class Neighbourhood:
    """The constraints around one state; positions and momenta are measured in the metric of the mass matrix."""

    def __init__(self, system: MechanicalSystem, start: Place, theta: np.ndarray) -> None:
        self.system, self.start, self.theta = system, start, theta

    @functools.cached_property
    def root(self) -> Matrix:
        """R with R R^T = M^-1, of a large system only on the diagonal; the unit matrix where there is no mass matrix."""
        inverse_mass = self._matrix("H_pp", *self.start)
        if is_sparse(inverse_mass):
            sizes = inverse_mass.diagonal()
            return scaled_rows(identity(len(sizes), inverse_mass), np.sqrt(np.where(sizes > 0, sizes, 1.0)))
        try:
            return np.linalg.cholesky((inverse_mass + inverse_mass.T) / 2)
        except np.linalg.LinAlgError:
            return np.eye(len(self.start[1]))

    def _matrix(self, name: str, *place: Any) -> Matrix:
        return self.system.matrix(name, *place, theta=self.theta)

    @functools.cached_property
    def _inverse_root(self) -> Matrix:
        if is_sparse(self.root):
            return scaled_rows(identity(self.root.shape[0], self.root), 1 / self.root.diagonal())
        return np.linalg.inv(self.root)

    def _size(self, x: np.ndarray) -> float:
        return float(np.linalg.norm(self._inverse_root @ x))

    def combination(self, known: np.ndarray) -> tuple[Combination, np.ndarray] | None:
        """See `combination_at`."""
        here, factors = row_dependencies(self.system, *self.start, self.theta)
        if not any(here.numbers):
            return None
        factors = np.minimum(factors, known) if len(known) else factors
        places = self._neighbours()
        for place in places:
            there, others = row_dependencies(self.system, *place, self.theta)
            self._check_rows(place, there.numbers[0] < here.numbers[0])
            if there.numbers != here.numbers:
                raise self._singular()
            factors = np.minimum(factors, others)  # those of rows that are not small
        around = (self.start, *places, *self._beyond(places))
        samples = [(row_dependencies(self.system, *at, self.theta, factors)[0], at) for at in around]
        alike = [sample for sample in samples if sample[0].numbers == here.numbers] or [(here, self.start)]
        matrices = [self._matrix("G", *at[:2]) for _, at in alike]
        return combination_of([found for found, _ in alike], matrices, factors, self._patterns()), factors

    def _patterns(self) -> tuple[Pattern, Pattern]:
        """On which variables the rows of g and k depend."""
        patterns = []
        for name, first in (("G", 0), ("hidden_z", self.system.n_holonomic)):
            rows, columns = self.system._expressions[name][1].sparsity().get_triplet()
            variables: list[set[int]] = [set() for _ in range(self.system._expressions[name][1].shape[0])]
            for row, column in zip(rows, columns, strict=True):
                variables[row].add(column)
            patterns.append([frozenset(row) for row in variables[first:]])
        return patterns[0], patterns[1]

    def _neighbours(self) -> list[Place]:
        """States around the start, where rows have turned, that fulfil combinations which are independent at the start."""
        t, q, _ = self.start
        G = self._matrix("G", t, q)
        C = _independent(G)
        across, random, places = C @ G @ self.root, np.random.default_rng(1788), list[Place]()
        if C.shape[0] >= len(q):
            return places
        for k in range(6):
            drawn = random.standard_normal(len(q)) * (-1) ** k
            direction = self.root @ (drawn - least_norm_solution(across, across @ drawn))
            distance = self._turning_distance(direction) * random.uniform(0.5, 2.0)
            for shorter in (1.0, 0.1, 0.01):
                near = self._onto(C, q + shorter * distance * direction)
                if near is not None:
                    places.append((t, near, self._moving(near)))
                    break
        return places

    def _beyond(self, places: list[Place]) -> list[Place]:
        """States further on in the direction of the first neighbour, and behind the start: rows should serve there, too."""
        t, q, _ = self.start
        C = _independent(self._matrix("G", t, q))
        found = [self._onto(C, q + factor * (near - q)) for _, near, _ in places[:1] for factor in FURTHER]
        return [(t, far, self._moving(far)) for far in found if far is not None]

    def _turning_distance(self, direction: np.ndarray) -> float:
        """How far to go in this direction until a row has changed, but not further than a tenth of the way to the origin."""
        t, q, p = self.start
        most = (0.1 * self._size(q) or 1e-3) / self._size(direction)
        before = self._matrix("hidden_z", *self.start)
        sizes = np.maximum(row_norms(before), 1e-300)
        for distance in most * 10.0 ** np.arange(-12, 1):
            after = self._matrix("hidden_z", t, q + distance * direction, p)
            if not np.max(row_norms(after - before) / sizes) < TURNED:
                return float(distance)
        return most

    def _onto(self, C: Matrix, q: np.ndarray) -> np.ndarray | None:
        """The configuration next to q with C g = 0, about as far from the start; None if there is none."""
        t, start, _ = self.start
        size, largest = self._size(q - start), self._size(q)
        for _ in range(60):
            G, g = C @ self._matrix("G", t, q), C @ self.system.evaluate("g", t, q, theta=self.theta)
            if not (is_finite(G) and np.all(np.isfinite(g))):
                return None
            step = least_norm_solution(G @ self.root, g)
            q = q - self.root @ step
            if not 0.1 * size < self._size(q - start) < 10 * size:
                return None
            if np.linalg.norm(step) <= 1e-14 * largest:
                return q
        return q

    def _moving(self, q: np.ndarray) -> np.ndarray:
        """A momentum at a neighbour that fulfils combinations of the hidden constraints which are independent at the start."""
        t, _, p = self.start
        if not self.system.n_nonholonomic:
            return p
        C = _independent(self._matrix("hidden_z", *self.start))
        for _ in range(10):
            slope, hidden = C @ self._matrix("hidden_z", t, q, p), self.system.evaluate("hidden", t, q, p, theta=self.theta)
            step = least_norm_solution(slope @ self._inverse_root.T, C @ hidden)
            p = p - self._inverse_root.T @ step
        return p

    def _check_rows(self, place: Place, independent: bool) -> None:
        """Refuse rows that do not hold at a neighbour; where more of them are `independent` there, the start is singular."""
        t, q, p = place
        values = {name: self.system.evaluate(name, *place[:n], theta=self.theta) for name, n in (("g", 2), ("k", 3))}
        slopes = {
            "g": row_sums(self._matrix("G", t, q)) * np.max(np.abs(q)),
            "k": row_sums(self._matrix("hidden_z", *place))[self.system.n_holonomic :] * np.max(np.abs(p)),
        }
        missed = np.concatenate([np.abs(values[n]) / np.maximum(slopes[n], 1e-300) for n in ("g", "k")])
        worst = int(np.argmax(missed))
        if missed[worst] <= HOLDS or np.max(np.abs(np.concatenate([values["g"], values["k"]]))) == 0:
            return
        if independent and self._onto(identity(len(values["g"]), self._matrix("G", t, q)), q) is not None:
            raise self._singular()
        m = self.system.n_holonomic
        N = dependencies(self._matrix("hidden_z", *self.start))[0]
        value = np.concatenate([values["g"], values["k"]])[worst]
        row = self.system.row_called("g", worst) if worst < m else self.system.row_called("k", worst - m)
        raise InconsistentStart(
            f"{names_of(self.system, N, worst)} hold together only at the initial values and nowhere near: they depend on each "
            f"other there, but beside them, where the other constraints hold, {row} misses by {abs(value):.2g}: remove or "
            "correct one of them"
        )

    def _singular(self) -> InconsistentStart:
        total = self.system.n_multipliers
        count = dependencies(self._matrix("hidden_z", *self.start))[0].shape[1]
        return InconsistentStart(
            f"the initial values are a singular position: only {total - count} of the {total} constraints are independent "
            "there, but more of them in neighbouring configurations, so that the motion is not determined: start elsewhere"
        )
