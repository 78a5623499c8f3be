"""Whether constraints that depend on each other at a start repeat each other, so that a run can combine them, or contradict.

Rows that depend on each other in one configuration need not do so in the next: a parallelogram that lies flat is in a singular
position, and two bars in one line between fixed points cannot move at all. So the rows are looked at in neighbouring assembled
configurations, too, where all of them must hold and have the same rank.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import InconsistentStart, UnsupportedSystem
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

VANISHED = 1e-9
"""What is left of a derivative, compared with its size nearby, where it vanishes."""

Place = tuple[float, np.ndarray, np.ndarray]
"""t, q and p."""


def combination_at(
    system: MechanicalSystem,
    t: float,
    q: np.ndarray,
    p: np.ndarray,
    theta: np.ndarray,
    known: np.ndarray | None = None,
) -> tuple[Combination, np.ndarray] | None:
    """Which rows to combine in a run from this state, and the factors of all rows; None if all are independent.

    Factors that are `known` tell which rows are small here only. Rows that contradict others are refused.
    """
    if system.surely_independent(t, q, p, theta):
        return None
    theta = np.where(_known_to_rows(system), theta, 0.0)  # so that another gravity or torque finds what was found before
    return _combination_at(system, t, *(x.tobytes() for x in (q, p, theta, np.zeros(0) if known is None else known)))


@functools.lru_cache(maxsize=16)
def _known_to_rows(system: MechanicalSystem) -> np.ndarray:
    """Which parameters constraints or masses depend on."""
    expressions = [system._expressions[name][1] for name in ("g", "k", "hidden", "H_pp")]
    return np.array(ca.which_depends(ca.veccat(*expressions), system.parameters.theta, 1), dtype=bool)


@functools.lru_cache(maxsize=16)
def _combination_at(
    system: MechanicalSystem, t: float, q: bytes, p: bytes, theta: bytes, known: bytes
) -> tuple[Combination, np.ndarray] | None:
    start = t, np.frombuffer(q), np.frombuffer(p)
    return _Neighbourhood(system, start, np.frombuffer(theta)).combination(np.frombuffer(known))


def check_gradients(system: MechanicalSystem, t: float, q: np.ndarray, p: np.ndarray, theta: np.ndarray) -> None:
    """Refuse rows whose derivative vanishes where they hold, such as (|q| - 1)^2: they constrain nothing to first order."""
    random = np.random.default_rng(1788)
    around, moved = (x * (1 + 1e-3 * random.standard_normal(len(x))) for x in (q, p))

    def sizes(name: str, *place: np.ndarray) -> np.ndarray:
        return row_norms(system.matrix(name, t, *place, theta=theta))

    k_here, k_near = (sizes("hidden_z", q, x)[system.n_holonomic :] for x in (p, moved))
    for role, symbol, here, near in (
        ("holonomic", "q", sizes("G", q), sizes("G", around)),
        ("nonholonomic", "v", k_here, k_near),
    ):
        vanished = np.flatnonzero(here < VANISHED * near)
        if len(vanished):
            raise InconsistentStart(
                f"the derivative of {role}[{vanished[0]}] with respect to {symbol} vanishes at the initial values, as that of "
                "(|q| - 1)**2 does where it is zero, so that the constraint has no reaction: state it by a function that "
                "changes its sign, such as |q| - 1, or start elsewhere"
            )


def refuse_contradiction(system: MechanicalSystem, t: float, q: np.ndarray, theta: np.ndarray, bound: np.ndarray) -> None:
    """Refuse rows of g that depend on each other here, but miss, apart from what moving on could mend, by more than `bound`."""
    g = system.evaluate("g", t, q, theta=theta)
    N, factors = dependencies(system.matrix("G", t, q, theta=theta))
    missed = along(N, factors * g)
    if not np.any(np.abs(missed) > factors * bound):
        return
    worst = int(np.argmax(np.abs(missed) / np.maximum(factors * bound, 1e-300)))
    raise InconsistentStart(
        f"{_names(system, N, worst)} contradict each other near the given configuration: they depend on each other there, and "
        f"cannot all be fulfilled ({system.row_called('g', worst)} misses by {abs(missed[worst]) / factors[worst]:.2g}): "
        "correct or remove one of them"
    )


def refuse_redundant(what: str, system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> None:
    """Refuse redundant constraints where they do not serve."""
    found = combination_at(system, t, y, z, theta) if isinstance(system, MechanicalSystem) else None
    if found is not None:
        combination, _ = found
        raise UnsupportedSystem(
            f"{combination.redundant} of the {system.n_multipliers} constraints are redundant, and {what} needs independent "
            f"ones: {_advice(system, combination)}"
        )


def _advice(system: System, combination: Combination) -> str:
    """What to do about redundant rows: which parts of a mechanism state them, or which could be left out."""
    rows = [("g", k) for own in combination.holonomic for k in own.component]
    rows += [("k", k) for own in combination.nonholonomic for k in own.component]
    parts = dict.fromkeys(system.row_names[kind][k].partition(", row ")[0] for kind, k in rows if kind in system.row_names)
    if parts:
        named = ", ".join(map(repr, parts))
        return f"{named} together say some things twice; leave a joint out, or let it leave more free, as m.spherical does"
    return f"remove {combination.redundant} of them, such as {_called(system, combination.dropped)}"


def _names(system: MechanicalSystem, N: Matrix, row: int) -> str:
    """The rows of (g, k) that take part in the dependencies of one of them."""
    rows = np.flatnonzero(np.abs(along(N, np.eye(1, N.shape[0], row)[0])) > CONNECTED).tolist()
    rows = rows if row in rows else sorted([*rows, row])
    m = system.n_holonomic
    return _called(system, [("g", k) if k < m else ("k", k - m) for k in rows])


def _called(system: System, rows: Sequence[tuple[str, int]]) -> str:
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


class _Neighbourhood:
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
            f"{_names(self.system, N, worst)} hold together only at the initial values and nowhere near: they depend on each "
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
