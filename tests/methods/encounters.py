"""Motions that are fast now and slow then, with step densities and references that no code of the package computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da


@dataclass(frozen=True)
class Encounter:
    """A system and where it starts, the density of its steps, how long its period is, and the right positions at times."""

    name: str
    system: da.Hamiltonian
    start: dict[str, Any]
    density: Callable
    h: float
    period: float
    reference: Callable[[np.ndarray], np.ndarray]

    @property
    def method(self) -> da.ReversibleSteps:
        return da.ReversibleSteps(da.LobattoIIIAB(4), self.density)


def solved(rhs: Callable, state: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The solution of an ODE at rising times, by SciPy."""

    def at(t: np.ndarray) -> np.ndarray:
        return solve_ivp(rhs, (0, t[-1]), state, method="DOP853", t_eval=t, rtol=1e-13, atol=1e-14).y.T

    return at


def ellipse(t: np.ndarray, e: float) -> np.ndarray:
    """Kepler's motion from the pericentre with semi-major axis one: Kepler's equation, by Newton's method."""
    mean = np.remainder(t + np.pi, 2 * np.pi) - np.pi
    E = mean + np.sign(np.sin(mean)) * 0.85 * e
    for _ in range(60):
        E = E - (E - e * np.sin(E) - mean) / (1 - e * np.cos(E))
    return np.stack([np.cos(E) - e, np.sqrt(1 - e**2) * np.sin(E)], axis=-1)


def kepler(e: float = 0.99) -> Encounter:
    system = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.linalg.norm(q), dim=2)
    start = {"q0": [1 - e, 0.0], "p0": [0.0, np.sqrt((1 + e) / (1 - e))]}
    return Encounter(
        "Kepler, e = 0.99", system, start, lambda q: np.linalg.norm(q) ** -1.5, 0.1, 2 * np.pi, lambda t: ellipse(t, e)
    )


def pendulum_on_a_spring(k: float = 2000.0) -> Encounter:
    """0.2 kg on a spring of 2000 N/m and 0.5 m, stretched to 1.2 m: it passes its pivot at a distance of about 1 mm."""
    m, length, g = 0.2, 0.5, 9.81
    v = np.sqrt(k / m) * 0.0025 / 1.2
    system = da.Hamiltonian(
        lambda q, p: p @ p / (2 * m) + m * g * q[1] + k / 2 * (np.sqrt(q @ q) - length) ** 2,
        dim=2,
    )

    def rhs(t: float, x: np.ndarray) -> list[float]:
        pull = -k / m * (1 - length / np.hypot(x[0], x[1]))
        return [x[2], x[3], pull * x[0], pull * x[1] - g]

    motion = solved(rhs, [1.2, 0.0, 0.0, v])
    density = lambda q, v: np.sqrt(k / m + v @ v / (q @ q))  # noqa: E731
    start = {"q0": [1.2, 0.0], "v0": [0.0, v]}
    return Encounter(
        "pendulum on a spring", system, start, density, 0.15, 2 * np.pi * np.sqrt(m / k), lambda t: motion(t)[:, :2]
    )


MU, ARENSTORF = 0.012277471, 17.0652165601579625588917206249
"""The mass of the moon, and the period of the orbit of Hairer, Norsett and Wanner, Solving ODEs I, (0.1)."""


def three_bodies() -> da.Hamiltonian:
    """The restricted problem of three bodies in the rotating plane, with p = v + (-y, x)."""

    def H(q: Any, p: Any) -> Any:
        potential = (1 - MU) / np.hypot(q[0] + MU, q[1]) + MU / np.hypot(q[0] - 1 + MU, q[1])
        return p @ p / 2 + q[1] * p[0] - q[0] * p[1] - potential

    return da.Hamiltonian(H, dim=2)


def near_both(q: Any) -> Any:
    return np.sqrt((1 - MU) / np.hypot(q[0] + MU, q[1]) ** 3 + MU / np.hypot(q[0] - 1 + MU, q[1]) ** 3 + 1)


def arenstorf() -> Encounter:
    """A periodic, unstable orbit that passes the moon closely: its period is published."""
    start = {"q0": [0.994, 0.0], "p0": [0.0, -2.00158510637908252240537862224 + 0.994]}

    def reference(t: np.ndarray) -> np.ndarray:
        return np.tile(start["q0"], (len(t), 1))

    return Encounter("three bodies, Arenstorf's orbit", three_bodies(), start, near_both, 0.1, ARENSTORF, reference)


def around_the_earth(e: float = 0.95, a: float = 0.35) -> Encounter:
    """A regular orbit around the larger body, of eccentricity 0.95, that the smaller one disturbs."""
    r = a * (1 - e)
    v = np.sqrt((1 - MU) * (1 + e) / r) - r  # in the rotating plane
    start = {"q0": [r - MU, 0.0], "p0": [0.0, v + r - MU]}

    def rhs(t: float, x: np.ndarray) -> list[float]:
        D1, D2 = np.hypot(x[0] + MU, x[1]) ** 3, np.hypot(x[0] - 1 + MU, x[1]) ** 3
        ax = x[0] + 2 * x[3] - (1 - MU) * (x[0] + MU) / D1 - MU * (x[0] - 1 + MU) / D2
        return [x[2], x[3], ax, x[1] - 2 * x[2] - (1 - MU) * x[1] / D1 - MU * x[1] / D2]

    motion, period = solved(rhs, [r - MU, 0.0, 0.0, v]), 2 * np.pi * a**1.5 / np.sqrt(1 - MU)
    return Encounter(
        "three bodies, around the earth", three_bodies(), start, near_both, 0.1, period, lambda t: motion(t)[:, :2]
    )


G0, LENGTH, LIGHT, HEAVY, DROP = 9.81, 0.4, 3e-4, 0.3, 0.15


def double_pendulum() -> Encounter:
    """0.3 kg on two rods with 0.3 g at the elbow: it falls by 15 cm and bounces where the rods are stretched, in 0.1 ms."""
    system = da.Hamiltonian(
        lambda q, p: p[:2] @ p[:2] / (2 * LIGHT) + p[2:] @ p[2:] / (2 * HEAVY) + G0 * (LIGHT * q[1] + HEAVY * q[3]),
        dim=4,
        holonomic=lambda q: [q[:2] @ q[:2] - LENGTH**2, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - LENGTH**2],
    )

    def density(q: Any, v: Any) -> Any:
        rod, turns = q[2:] - q[:2], v[2:] - v[:2]
        bend = (q[0] * rod[1] - q[1] * rod[0]) / LENGTH**2
        return np.sqrt((v[:2] @ v[:2] + turns @ turns) / LENGTH**2 / (bend**2 + LIGHT / HEAVY) + G0 / LENGTH)

    direction, bend = 0.03, np.arccos(1 - DROP / (2 * LENGTH))
    angles = direction + bend, direction - bend

    def rhs(t: float, x: np.ndarray) -> list[float]:
        a, b, u, w = x
        s, c, total = np.sin(a - b), np.cos(a - b), LIGHT + HEAVY
        f = -HEAVY * LENGTH * w**2 * s - total * G0 * np.sin(a), HEAVY * LENGTH * u**2 * s - HEAVY * G0 * np.sin(b)
        det = LENGTH * (total - HEAVY * c**2)
        return [u, w, (f[0] - c * f[1]) / det, (total / HEAVY * f[1] - c * f[0]) / det]

    def positions(x: np.ndarray) -> np.ndarray:
        a, b = x[:, 0], x[:, 1]
        elbow = LENGTH * np.stack([np.sin(a), -np.cos(a)], axis=1)
        return np.hstack([elbow, elbow + LENGTH * np.stack([np.sin(b), -np.cos(b)], axis=1)])

    motion, period = solved(rhs, [*angles, 0.0, 0.0]), 2 * np.sqrt(2 * DROP / G0)
    start = {"q0": positions(np.array([angles]))[0], "p0": np.zeros(4)}
    return Encounter("double pendulum, light elbow", system, start, density, 0.1, period, lambda t: positions(motion(t)))
