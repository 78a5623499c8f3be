"""Families of random models that are valid by construction, many at once, and their reduced equations written by hand.

A family compiles one system, whose coefficients are parameters, and draws hundreds of models of it: coefficients, a start on
the constraints, and a time scale. `rate` are the reduced equations, multipliers eliminated with NumPy alone; `truth` solves
them by the formula of DOP853 with constant steps, halved until two solutions agree to 1e-11, for all models side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.integrate import DOP853

import dalembert as da

A, B, C = DOP853.A[: DOP853.n_stages, : DOP853.n_stages], DOP853.B, DOP853.C[: DOP853.n_stages]


@dataclass(frozen=True)
class Batch:
    """Coefficients and starts of models of one family, one row each; all start at t0."""

    numbers: dict[str, np.ndarray]
    start: np.ndarray
    t0: float

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Any) -> Batch:
        return replace(self, numbers={name: values[rows] for name, values in self.numbers.items()}, start=self.start[rows])


class Family(ABC):
    """Models of one shape. `names` are those of the initial values that `start` is made of."""

    names: tuple[str, ...] = ("q0", "p0")
    methods: tuple[da.OneStepMethod, ...] = ()
    share: float = 1.0
    """How many models are drawn, by what a model takes."""
    unit: float = 1.0
    """A time in which little happens."""

    @cached_property
    @abstractmethod
    def system(self) -> da.systems.System:
        """What is compiled."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, members: int) -> Batch:
        """Random models, whose fastest motions take about a unit of time."""

    @abstractmethod
    def rate(self, batch: Batch, t: float, y: np.ndarray) -> np.ndarray:
        """The derivative of all states."""

    @abstractmethod
    def residuals(self, batch: Batch, t: np.ndarray, states: np.ndarray) -> np.ndarray:
        """The largest violation of the constraints of each model, in states (member, time, variable)."""

    def initial(self, batch: Batch) -> dict[str, np.ndarray]:
        """The starts, as arguments."""
        parts = np.split(batch.start, len(self.names), axis=1)
        return dict(zip(self.names, parts, strict=True))

    def truth(self, batch: Batch, length: float) -> np.ndarray:
        """The states after so long; nan where they were not found to 1e-11."""
        return solved(self.rate, batch, batch.start, length)


def solved(rate: Callable[[Batch, float, np.ndarray], np.ndarray], batch: Batch, y: np.ndarray, length: float) -> np.ndarray:
    """The solutions of y' = rate, each with as many steps as it needs; nan where 512 are too few."""
    found, before, left = np.full_like(y, np.nan), np.full_like(y, np.nan), np.arange(len(y))
    steps = 2 + int(2 * length)
    while len(left) and steps <= 512:
        some = batch.take(left)
        now = _steps(lambda t, y, some=some: rate(some, t, y), some.t0, y[left], length, steps)
        close = np.abs(now - before[left]).max(axis=1) < 1e-11 * (1e-3 + np.abs(now).max(axis=1))
        found[left[close]], before[left] = now[close], now
        left, steps = left[~close & np.isfinite(now).all(axis=1)], 2 * steps
    return found


def _steps(rate: Callable, t0: float, y: np.ndarray, length: float, steps: int) -> np.ndarray:
    h = length / steps
    for k in range(steps):
        stages: list[np.ndarray] = []
        for i in range(len(C)):
            shift = sum((A[i, j] * stages[j] for j in range(i) if A[i, j]), np.zeros_like(y))
            stages.append(rate(t0 + (k + C[i]) * h, y + h * shift))
        y = y + h * sum(b * stage for b, stage in zip(B, stages, strict=True) if b)
    return y


def dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of matrices with vectors, or of vectors, of all members."""
    return np.einsum("b...i,bi->b...", first, second)


def inverse_mass(rng: np.random.Generator, members: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrices with eigenvalues over four decades, and their inverses."""
    axes, _ = np.linalg.qr(rng.normal(size=(members, n, n)))
    sizes = 10 ** rng.uniform(-2, 2, (members, 1, n))
    M, inverse = ((axes * x) @ np.swapaxes(axes, 1, 2) for x in (sizes, 1 / sizes))
    return (M + np.swapaxes(M, 1, 2)) / 2, (inverse + np.swapaxes(inverse, 1, 2)) / 2


@dataclass(frozen=True)
class Quartic(Family):
    """A quartic potential that changes with time, damping, moving quadrics as walls, velocities across linear fields."""

    n: int
    holonomic: int = 0
    nonholonomic: int = 0

    @property
    def methods(self) -> tuple[da.OneStepMethod, ...]:
        served = [da.GaussLobattoSPARK(2), da.GaussLobattoSPARK(3), da.LobattoSPARK(3)]
        if not self.nonholonomic:
            served += [da.LobattoIIIAB(2), da.LobattoIIIAB(3), da.RadauIIA(2, projected=True), da.Rattle()]
        if not self.nonholonomic and not self.holonomic:
            served += [da.Gauss(2), da.Variational("midpoint"), da.Variational("SVC"), da.RadauIIA(3)]
        return tuple(served)

    def constraints(self) -> dict[str, Any]:
        """The functions of the constraints."""
        o: dict[str, Any] = {}
        if self.holonomic:
            o["holonomic"] = lambda t, q, a, B, s, level: [
                a[k] @ q + q @ B[k] @ q / 2 - level[k] - s[k] * t for k in range(self.holonomic)
            ]
        if self.nonholonomic:
            o["nonholonomic"] = lambda q, v, b, C: [(b[k] + C[k] @ q) @ v for k in range(self.nonholonomic)]
        return o

    @cached_property
    def system(self) -> da.systems.System:
        return da.Lagrangian(
            lambda t, q, v, M, K, w, c: v @ M @ v / 2 - q @ K @ q / 2 - w * (q**2) @ (q**2) / 4 - c @ q * np.cos(t),
            dim=self.n, params=self.example, force=lambda v, d: -d * v, **self.constraints(),
        )  # fmt: skip

    @property
    def example(self) -> dict[str, np.ndarray]:
        """The parameters that the system is stated with."""
        batch = self.draw(np.random.default_rng(0), 1)
        return {name: values[0] for name, values in batch.numbers.items()}

    def masses(self, rng: np.random.Generator, members: int) -> dict[str, np.ndarray]:
        return {"M": inverse_mass(rng, members, self.n)[0]}

    def draw(self, rng: np.random.Generator, members: int) -> Batch:
        n, m, count = self.n, self.holonomic, members
        stiffness, t0 = rng.normal(size=(count, n, n)), float(rng.choice([0.0, 0.0, -3.5, 17.0]))
        o = self.masses(rng, count)
        least = np.linalg.eigvalsh(o["M"])[:, 0] if "M" in o else np.ones(count)
        slow = (least / (6 + 3 * n))[:, None]  # so that the lightest mass moves about once in a unit of time
        o |= {"K": (stiffness + np.swapaxes(stiffness, 1, 2)) * slow[:, None], "c": rng.normal(size=(count, n)) * slow}
        o |= {"d": rng.uniform(0, 0.5, count) * least, "w": slow[:, 0]}
        q = rng.normal(size=(count, n)) * rng.choice([0.3, 1.0])
        if m:
            curved = rng.normal(size=(count, m, n, n)) * rng.choice([0.0, 0.3, 1.0])
            o |= {"a": rng.normal(size=(count, m, n)), "B": curved + np.swapaxes(curved, 2, 3)}
            o["s"] = rng.normal(size=(count, m)) * rng.choice([0.0, 0.3])
            o["level"] = dot(o["a"], q) + np.einsum("bkij,bi,bj->bk", o["B"], q, q) / 2 - o["s"] * t0
        if self.nonholonomic:
            shape = (count, self.nonholonomic, n)
            o |= {"b": rng.normal(size=shape), "C": 0.5 * rng.normal(size=(*shape, n))}
        v = self._across(o, q, rng.normal(size=(count, n)) * rng.choice([0.0, 0.3, 1.0]))
        return Batch(o, np.concatenate([q, self.momentum(o, v)], axis=1), t0)

    def _across(self, o: dict[str, np.ndarray], q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Velocities that fulfil the constraints."""
        rows = self.rows(o, q)
        for _ in range(2):
            v = v - dot(np.linalg.pinv(rows), dot(rows, v) - self.speeds(o)) if rows.shape[1] else v
        return v

    def momentum(self, o: dict[str, np.ndarray], v: np.ndarray) -> np.ndarray:
        return dot(o["M"], v)

    def velocity(self, o: dict[str, np.ndarray], p: np.ndarray) -> np.ndarray:
        return np.linalg.solve(o["M"], p[..., None])[..., 0]

    def rows(self, o: dict[str, np.ndarray], q: np.ndarray) -> np.ndarray:
        """The matrices that velocities are orthogonal to, but for `speeds`."""
        found = [np.zeros((len(q), 0, self.n))]
        found += [o[a] + np.einsum("bkij,bj->bki", o[b], q) for a, b in (("a", "B"), ("b", "C")) if a in o]
        return np.concatenate(found, axis=1)

    def speeds(self, o: dict[str, np.ndarray]) -> np.ndarray:
        members = len(next(iter(o.values())))
        return np.concatenate([o.get("s", np.zeros((members, 0))), np.zeros((members, self.nonholonomic))], axis=1)

    def force(self, o: dict[str, np.ndarray], t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -dot(o["K"], q) - o["w"][:, None] * q**3 - o["c"] * np.cos(t) - o["d"][:, None] * v

    def rate(self, batch: Batch, t: float, y: np.ndarray) -> np.ndarray:
        """M v' + rows^T lam = f with (rows v)' = 0."""
        o, (q, p) = batch.numbers, np.split(y, 2, axis=1)
        v, rows = self.velocity(o, p), self.rows(o, q)
        f = self.force(o, t, q, v)
        if rows.shape[1]:
            turning = [np.einsum("bkij,bi,bj->bk", o[name], v, v) for name in ("B", "C") if name in o]
            over = self.over_mass(o, np.concatenate([f[..., None], np.swapaxes(rows, 1, 2)], axis=2))
            wanted = dot(rows, over[..., 0]) + np.concatenate(turning, axis=1)
            lam = np.linalg.solve(rows @ over[..., 1:], wanted[..., None])[..., 0]
            f = f - dot(np.swapaxes(rows, 1, 2), lam)
        return np.concatenate([v, f], axis=1)

    def over_mass(self, o: dict[str, np.ndarray], columns: np.ndarray) -> np.ndarray:
        return np.linalg.solve(o["M"], columns)

    def residuals(self, batch: Batch, t: np.ndarray, states: np.ndarray) -> np.ndarray:
        worst = np.zeros(len(batch))
        for k, time in enumerate(t):
            o, (q, p) = batch.numbers, np.split(states[:, k], 2, axis=1)
            v = self.velocity(o, p)
            if not (self.holonomic or self.nonholonomic):
                continue
            rows, size = self.rows(o, q), 1 + np.abs(q).max(axis=1)
            hidden = np.abs(dot(rows, v) - self.speeds(o)).max(axis=1)
            hidden /= (1 + np.abs(v).max(axis=1)) * (1 + np.abs(rows).max(axis=(1, 2)))
            if self.holonomic:
                g = dot(o["a"], q) + np.einsum("bkij,bi,bj->bk", o["B"], q, q) / 2 - o["level"] - o["s"] * time
                hidden = np.maximum(hidden, np.abs(g).max(axis=1) / size**2)
            worst = np.maximum(worst, hidden)
        return worst
