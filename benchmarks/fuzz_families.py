"""More families of random models: curved metrics, nonlinear multipliers, index 2, trees of bodies, bouncing balls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from fuzz_models import Batch, Family, Quartic, dot, inverse_mass, solved

import dalembert as da


@dataclass(frozen=True)
class CurvedMetric(Quartic):
    """A Hamiltonian that is not separable: (1 + k q.q) p.W.p/2 + V(q), on quadrics that do not move."""

    @property
    def methods(self) -> tuple[da.OneStepMethod, ...]:
        served = [da.LobattoIIIAB(2), da.LobattoIIIAB(3), da.RadauIIA(2, projected=True), da.SymplecticEuler()]
        return (*served, *(() if self.holonomic else (da.Gauss(2), da.Gauss(3), da.LobattoIIIC(3))))

    @cached_property
    def system(self) -> da.systems.System:
        holonomic = {
            "holonomic": lambda q, a, B, level: [a[k] @ q + q @ B[k] @ q / 2 - level[k] for k in range(self.holonomic)]
        }
        return da.Hamiltonian(
            lambda q, p, W, k, K, w, c: (1 + k * q @ q) * p @ W @ p / 2 + q @ K @ q / 2 + w * (q**2) @ (q**2) / 4 + c @ q,
            dim=self.n, params=self.example, **(holonomic if self.holonomic else {}),
        )  # fmt: skip

    def draw(self, rng: np.random.Generator, members: int) -> Batch:
        n, m = self.n, self.holonomic
        stiffness, q = rng.normal(size=(members, n, n)), rng.normal(size=(members, n)) * rng.choice([0.3, 1.0])
        W = inverse_mass(rng, members, n)[1]
        slow = (1 / np.linalg.eigvalsh(W)[:, -1] / (6 + 3 * n))[:, None]
        o = {"W": W, "K": (stiffness + np.swapaxes(stiffness, 1, 2)) * slow[:, None], "c": rng.normal(size=(members, n)) * slow}
        o |= {"w": slow[:, 0], "k": rng.uniform(0, 0.3, members)}
        p = np.linalg.solve(W, rng.normal(size=(members, n, 1)) * rng.choice([0.0, 0.3, 1.0]))[..., 0]
        if m:
            curved = rng.normal(size=(members, m, n, n)) * rng.choice([0.0, 0.3, 1.0])
            o |= {"a": rng.normal(size=(members, m, n)), "B": curved + np.swapaxes(curved, 2, 3)}
            o["level"] = dot(o["a"], q) + np.einsum("bkij,bi,bj->bk", o["B"], q, q) / 2
            G = self.rows(o, q)
            for _ in range(2):
                wanted = np.linalg.solve(G @ W @ np.swapaxes(G, 1, 2), (G @ W @ p[..., None]))
                p = p - (np.swapaxes(G, 1, 2) @ wanted)[..., 0]
        return Batch(o, np.concatenate([q, p], axis=1), 0.0)

    def velocity(self, o: dict[str, np.ndarray], p: np.ndarray) -> np.ndarray:
        return dot(o["W"], p)  # but for the factor 1 + k q.q, which constraints do not see

    def speeds(self, o: dict[str, np.ndarray]) -> np.ndarray:
        return np.zeros((len(o["W"]), self.holonomic))

    def rate(self, batch: Batch, t: float, y: np.ndarray) -> np.ndarray:
        """q' = H_p, p' = -H_q - G^T lam, and (G H_p)' = 0."""
        o, (q, p) = batch.numbers, np.split(y, 2, axis=1)
        k, G, u = o["k"][:, None], self.rows(o, q), dot(o["W"], p)
        s = 1 + k * np.sum(q * q, axis=1, keepdims=True)
        v, H_q = s * u, k * q * np.sum(p * u, axis=1, keepdims=True) + dot(o["K"], q) + o["w"][:, None] * q**3 + o["c"]
        if not self.holonomic:
            return np.concatenate([v, -H_q], axis=1)
        change = 2 * k * np.sum(q * v, axis=1, keepdims=True)
        bent = np.einsum("bkij,bi,bj->bk", o["B"], v, v) + change * dot(G, u) - s * dot(G, dot(o["W"], H_q))
        lam = np.linalg.solve(s[..., None] * G @ o["W"] @ np.swapaxes(G, 1, 2), bent[..., None])[..., 0]
        return np.concatenate([v, -H_q - dot(np.swapaxes(G, 1, 2), lam)], axis=1)

    def residuals(self, batch: Batch, t: np.ndarray, states: np.ndarray) -> np.ndarray:
        still = {"s": np.zeros((len(batch), self.holonomic))} if self.holonomic else {}
        return super().residuals(Batch(batch.numbers | still, batch.start, batch.t0), t, states)


@dataclass(frozen=True)
class Nonlinear(Quartic):
    """An ODAE with unit masses, whose multipliers act by lam + e lam^3: the motion is that of lam."""

    names, share = ("y0", "z0"), 0.01
    methods = (da.SymplecticEuler(), da.GaussLobattoSPARK(2), da.GaussLobattoSPARK(3))

    def masses(self, rng: np.random.Generator, members: int) -> dict[str, np.ndarray]:
        return {"e": rng.choice([0.0, 0.2], members)}

    def momentum(self, o: dict[str, np.ndarray], v: np.ndarray) -> np.ndarray:
        return v

    def velocity(self, o: dict[str, np.ndarray], p: np.ndarray) -> np.ndarray:
        return p

    def over_mass(self, o: dict[str, np.ndarray], columns: np.ndarray) -> np.ndarray:
        return columns

    @cached_property
    def system(self) -> da.systems.System:
        m, rows = self.holonomic, range(self.nonholonomic)
        constraints: dict[str, Any] = {}
        if m:
            constraints["g"] = lambda t, y, a, B, s, level: [
                a[k] @ y + y @ B[k] @ y / 2 - level[k] - s[k] * t for k in range(m)
            ]
            constraints["r"] = lambda y, lam, a, B, e: -sum((lam[k] + e * lam[k] ** 3) * (a[k] + B[k] @ y) for k in range(m))

        def f(t: Any, y: Any, z: Any, K: Any, w: Any, c: Any, d: Any) -> Any:
            return -K @ y - w * y**3 - c * np.cos(t) - d * z

        def pushed(t: Any, y: Any, z: Any, psi: Any, K: Any, w: Any, c: Any, d: Any, b: Any, C: Any, e: Any) -> Any:
            return f(t, y, z, K, w, c, d) - sum((psi[k] + e * psi[k] ** 3) * (b[k] + C[k] @ y) for k in rows)

        if self.nonholonomic:
            constraints["k"] = lambda y, z, b, C: [(b[k] + C[k] @ y) @ z for k in rows]
        force = pushed if self.nonholonomic else f
        return da.ODAE(v=lambda z: z, f=force, dim_y=self.n, dim_z=self.n, params=self.example, **constraints)


@dataclass(frozen=True)
class IndexTwo(Quartic):
    """A gradient flow on moving quadrics, with multipliers z that act by z + e z^3."""

    names, share = ("y0",), 0.01
    methods = (da.RadauIIA(2), da.RadauIIA(3), da.LobattoSPARK(3), da.SRK("gauss", 2))

    @cached_property
    def system(self) -> da.systems.System:
        m = self.holonomic
        return da.IndexTwoDAE(
            parts=[
                lambda t, y, K, w, c: -K @ y - w * y**3 - c * np.cos(t),
                lambda y, z, a, B, e: -sum((z[k] + e * z[k] ** 3) * (a[k] + B[k] @ y) for k in range(m)),
            ],
            g=lambda t, y, a, B, s, level: [a[k] @ y + y @ B[k] @ y / 2 - level[k] - s[k] * t for k in range(m)],
            dim_y=self.n, dim_z=m, params=self.example,
        )  # fmt: skip

    def masses(self, rng: np.random.Generator, members: int) -> dict[str, np.ndarray]:
        return {"e": rng.choice([0.0, 0.2], members)}

    def momentum(self, o: dict[str, np.ndarray], v: np.ndarray) -> np.ndarray:
        return v

    def draw(self, rng: np.random.Generator, members: int) -> Batch:
        batch = super().draw(rng, members)
        numbers = {name: values for name, values in batch.numbers.items() if name != "d"}
        return Batch(numbers, batch.start[:, : self.n], batch.t0)

    def rate(self, batch: Batch, t: float, y: np.ndarray) -> np.ndarray:
        """y' = f - G^T lam with G y' = s."""
        o, G = batch.numbers, self.rows(batch.numbers, y)
        f = -dot(o["K"], y) - o["w"][:, None] * y**3 - o["c"] * np.cos(t)
        lam = np.linalg.solve(G @ np.swapaxes(G, 1, 2), (dot(G, f) - o["s"])[..., None])[..., 0]
        return f - dot(np.swapaxes(G, 1, 2), lam)

    def residuals(self, batch: Batch, t: np.ndarray, states: np.ndarray) -> np.ndarray:
        o, worst = batch.numbers, np.zeros(len(batch))
        for k, time in enumerate(t):
            y = states[:, k]
            g = dot(o["a"], y) + np.einsum("bkij,bi,bj->bk", o["B"], y, y) / 2 - o["level"] - o["s"] * time
            worst = np.maximum(worst, np.abs(g).max(axis=1) / (1 + np.abs(y).max(axis=1)) ** 2)
        return worst


@dataclass(frozen=True)
class Tree(Family):
    """Rods in the plane, each hinged to the ground or to a point of an earlier one, as a `da.Mechanism`.

    The reference has their angles for coordinates: the centre of rod i is the sum of arms u_ij that turn with its ancestors j.
    """

    parents: tuple[int, ...]
    """Of every rod; -1 is the ground."""
    places: tuple[float, ...]
    """Where on its parent a rod is hinged, as a fraction of its length."""
    methods = (da.LobattoIIIAB(2), da.LobattoIIIAB(3), da.GaussLobattoSPARK(2), da.Gauss(2, projected=True))

    LENGTH, unit = 0.3, 0.1

    @cached_property
    def arms(self) -> np.ndarray:
        """u_ij, along rod j."""
        n, arms = len(self.parents), np.zeros((len(self.parents),) * 2)
        for i in range(n):
            j, here = i, self.LENGTH / 2
            while j >= 0:
                arms[i, j], here, j = here, self.places[j] * self.LENGTH, self.parents[j]
        return arms

    @cached_property
    def system(self) -> da.systems.System:
        n = len(self.parents)
        m = da.Mechanism(gravity=(0, -9.81), coordinates="planar", params={f"m{i}": 0.2 for i in range(n)})
        rods, L = [], self.LENGTH
        for i, parent in enumerate(self.parents):
            start = self.places[i] * L + (rods[parent][1] if parent >= 0 else -L)
            rod = m.rod(f"rod {i}", (start, 0), (start + L, 0), mass=f"m{i}")
            m.revolute(m.ground if parent < 0 else rods[parent][0], rod, at=(start, 0))
            rods.append((rod, start))
        return m.system()

    def draw(self, rng: np.random.Generator, members: int) -> Batch:
        n = len(self.parents)
        o = {f"m{i}": 10 ** rng.uniform(-2, 1, members) for i in range(n)}
        angles, rates = rng.uniform(-np.pi, np.pi, (members, n)), rng.normal(size=(members, n)) * 5
        reduced = np.concatenate([angles, rates], axis=1)
        return Batch(o, self.lifted(o, reduced), 0.0)

    def masses(self, o: dict[str, np.ndarray]) -> np.ndarray:
        return np.stack([o[f"m{i}"] for i in range(len(self.parents))], axis=1)

    def lifted(self, o: dict[str, np.ndarray], reduced: np.ndarray) -> np.ndarray:
        """Coordinates and momenta of all rods from their angles and rates."""
        (phi, w), u, m = np.split(reduced, 2, axis=1), self.arms, self.masses(o)
        x, y = np.cos(phi) @ u.T, np.sin(phi) @ u.T
        vx, vy = (-np.sin(phi) * w) @ u.T, (np.cos(phi) * w) @ u.T
        q = np.stack([x - self.LENGTH * self.hung, y, phi], axis=2)
        p = np.stack([m * vx, m * vy, m * self.LENGTH**2 / 12 * w], axis=2)
        return np.concatenate([q.reshape(len(q), -1), p.reshape(len(q), -1)], axis=1)

    @cached_property
    def hung(self) -> np.ndarray:
        """How far to the left of the origin the ground's hinge is for each rod's tree, in lengths."""
        roots = []
        for i in range(len(self.parents)):
            while self.parents[i] >= 0:
                i = self.parents[i]
            roots.append(1 - self.places[i])
        return np.array(roots)

    def rate(self, batch: Batch, t: float, y: np.ndarray) -> np.ndarray:
        """M phi'' = -9.81 sum m_i u_ij cos phi_j - sum m_i u_ij u_ik sin(phi_j - phi_k) phi_k'^2."""
        (phi, w), u, m = np.split(y, 2, axis=1), self.arms, self.masses(batch.numbers)
        coupled = np.einsum("bi,ij,ik->bjk", m, u, u)
        apart = phi[:, :, None] - phi[:, None, :]
        M = coupled * np.cos(apart) + np.eye(phi.shape[1]) * (m * self.LENGTH**2 / 12)[:, None, :]
        force = -9.81 * (m @ u) * np.cos(phi) - dot(coupled * np.sin(apart), w**2)
        return np.concatenate([w, np.linalg.solve(M, force[..., None])[..., 0]], axis=1)

    def truth(self, batch: Batch, length: float) -> np.ndarray:
        n = len(self.parents)
        phi = batch.start[:, : 3 * n].reshape(-1, n, 3)[:, :, 2]
        w = batch.start[:, 3 * n :].reshape(-1, n, 3)[:, :, 2] / (self.masses(batch.numbers) * self.LENGTH**2 / 12)
        return self.lifted(batch.numbers, solved(self.rate, batch, np.concatenate([phi, w], axis=1), length))

    def residuals(self, batch: Batch, t: np.ndarray, states: np.ndarray) -> np.ndarray:
        n, worst = len(self.parents), np.zeros(len(batch))
        for k in range(len(t)):
            q, p = (x.reshape(-1, n, 3) for x in np.split(states[:, k], 2, axis=1))
            w = p[:, :, 2] / (self.masses(batch.numbers) * self.LENGTH**2 / 12)
            there = self.lifted(batch.numbers, np.concatenate([q[:, :, 2], w], axis=1))
            worst = np.maximum(worst, np.abs(there - states[:, k])[:, : 3 * n].max(axis=1))
        return worst


@dataclass(frozen=True)
class Bouncing(Family):
    """A ball that bounces before impacts accumulate, with restitution; between impacts every method here is exact."""

    methods = (da.CVA(), da.CVA(da.Gauss(2)), da.VCI())

    @cached_property
    def system(self) -> da.systems.System:
        return da.Lagrangian(
            lambda q, v, m, g: m * v @ v / 2 - m * g * q[1], dim=2, unilateral=lambda q: q[1],
            restitution=lambda e: e, params={"m": 1.0, "g": 9.81, "e": 0.5},
        )  # fmt: skip

    def draw(self, rng: np.random.Generator, members: int) -> Batch:
        o = {"m": 10 ** rng.uniform(-2, 2, members), "g": rng.uniform(0.5, 1.5, members), "e": rng.uniform(0.6, 1, members)}
        q, v = rng.uniform(0.3, 2, (members, 2)), rng.normal(size=(members, 2))
        return Batch(o, np.concatenate([q, o["m"][:, None] * v], axis=1), 0.0)

    def rate(self, batch: Batch, t: float, y: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def truth(self, batch: Batch, length: float) -> np.ndarray:
        """Parabola by parabola; nan where there are more than 40 of them, or an impact within 1e-7 of the end."""
        o, (q, p) = batch.numbers, np.split(batch.start.copy(), 2, axis=1)
        v, left = p / o["m"][:, None], np.full(len(batch), length)
        for _ in range(40):
            flight = (v[:, 1] + np.sqrt(v[:, 1] ** 2 + 2 * o["g"] * q[:, 1])) / o["g"]
            step = np.minimum(flight, left)
            q = np.stack([q[:, 0] + v[:, 0] * step, q[:, 1] + v[:, 1] * step - o["g"] * step**2 / 2], axis=1)
            v = np.stack([v[:, 0], v[:, 1] - o["g"] * step], axis=1)
            hit = flight < left
            q[hit, 1], v[hit, 1], left = 0.0, -o["e"][hit] * v[hit, 1], left - step
        ended = (left <= 0) & (np.abs(flight - step) > 1e-7)
        return np.where(ended[:, None], np.concatenate([q, o["m"][:, None] * v], axis=1), np.nan)

    def residuals(self, batch: Batch, t: np.ndarray, states: np.ndarray) -> np.ndarray:
        del t
        return np.maximum(0.0, -states[:, :, 1]).max(axis=1)


def random_family(rng: np.random.Generator) -> Family:
    """Any shape of any family: a model that is compiled once, for hundreds of cases."""
    kind, n = int(rng.integers(7)), int(rng.integers(1, 6))
    holonomic = int(rng.integers(0, min(n, 3)))
    if kind == 0:
        parents = tuple(int(rng.integers(-1, i)) for i in range(min(n, 4)))
        return Tree(parents, tuple(float(rng.choice([0.5, 1.0])) for _ in parents))
    if kind == 1:
        return Bouncing()
    if kind == 2:
        return CurvedMetric(n, holonomic)
    if kind == 3:
        return IndexTwo(n + 1, max(1, holonomic))
    nonholonomic = int(rng.integers(0, 2)) if n - holonomic > 1 else 0
    return Nonlinear(n, holonomic, nonholonomic) if kind == 4 else Quartic(n, holonomic, nonholonomic)
