"""The N four-bar mechanism of the IFToMM library of benchmarks (A02), in two sets of coordinates, and its exact motion.

2N + 1 uniform links of 1 m and 1 kg: cranks from (i, 0) to B_i, i = 0, ..., N, and couplers from B_(i-1) to B_i. It starts
upright with B_0 moving at 1 m/s. When it lies flat its constraints lose rank: one degree of freedom becomes N + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da

GRAVITY = 9.81


def natural(n: int) -> da.Lagrangian:
    """In the coordinates of the points B_0, ..., B_N: a uniform rod with ends a, b has T = m (a'.a' + a'.b' + b'.b')/6."""

    def lagrangian(q: Any, v: Any) -> Any:
        energy = sum(q[2 * i + 1] for i in range(n + 1)) / 2 * GRAVITY
        kinetic = sum(v[2 * i : 2 * i + 2] @ v[2 * i : 2 * i + 2] for i in range(n + 1)) / 6
        for i in range(n):
            a, b = v[2 * i : 2 * i + 2], v[2 * i + 2 : 2 * i + 4]
            kinetic += (a @ a + a @ b + b @ b) / 6
            energy += GRAVITY * (q[2 * i + 1] + q[2 * i + 3]) / 2
        return kinetic - energy

    def lengths(q: Any) -> list:
        cranks = [((q[2 * i] - i) ** 2 + q[2 * i + 1] ** 2 - 1) / 2 for i in range(n + 1)]
        couplers = [((q[2 * i + 2] - q[2 * i]) ** 2 + (q[2 * i + 3] - q[2 * i + 1]) ** 2 - 1) / 2 for i in range(n)]
        return cranks + couplers

    return da.Lagrangian(lagrangian, dim=2 * (n + 1), holonomic=lengths)


def natural_start(n: int) -> dict:
    q0 = np.array([[i, 1.0] for i in range(n + 1)]).ravel()
    return {"q0": q0, "v0": np.tile([1.0, 0.0], n + 1)}


def planar(n: int) -> da.Lagrangian:
    """In (x, y, theta) of every link, theta from the x-axis, cranks first; every joint is two constraints."""
    links = 2 * n + 1

    def lagrangian(q: Any, v: Any) -> Any:
        kinetic = sum((v[3 * k] ** 2 + v[3 * k + 1] ** 2) / 2 + v[3 * k + 2] ** 2 / 24 for k in range(links))
        return kinetic - GRAVITY * sum(q[3 * k + 1] for k in range(links))

    def end(q: Any, k: int, side: float) -> tuple:
        x, y, angle = q[3 * k], q[3 * k + 1], q[3 * k + 2]
        return x + side / 2 * np.cos(angle), y + side / 2 * np.sin(angle)

    def joints(q: Any) -> list:
        rows = []
        for i in range(n + 1):
            x, y = end(q, i, -1.0)
            rows += [x - i, y]
        for i in range(n):
            for crank, side in ((i, -1.0), (i + 1, 1.0)):
                (x, y), (u, w) = end(q, n + 1 + i, side), end(q, crank, 1.0)
                rows += [x - u, y - w]
        return rows

    return da.Lagrangian(lagrangian, dim=3 * links, holonomic=joints)


def planar_start(n: int) -> dict:
    cranks = [[i, 0.5, np.pi / 2] for i in range(n + 1)]
    couplers = [[i + 0.5, 1.0, 0.0] for i in range(n)]
    speeds = [[0.5, 0.0, -1.0]] * (n + 1) + [[1.0, 0.0, 0.0]] * n
    return {"q0": np.array(cranks + couplers).ravel(), "v0": np.array(speeds).ravel()}


def first_point(coordinates: str, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity of B_0 along a run."""
    if coordinates == "natural":
        return q[:, :2], v[:, :2]
    x, y, angle = q[:, 0], q[:, 1], q[:, 2]
    dx, dy, rate = v[:, 0], v[:, 1], v[:, 2]
    cos, sin = np.cos(angle) / 2, np.sin(angle) / 2
    return np.stack([x + cos, y + sin], axis=1), np.stack([dx - sin * rate, dy + cos * rate], axis=1)


def exact(n: int, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity of B_0: ((N + 1)/3 + N) th'' = g ((N + 1)/2 + N) sin th for all cranks, th' = 1 upright."""
    factor = GRAVITY * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    found = solve_ivp(lambda _, x: [x[1], factor * np.sin(x[0])], (0, t[-1]), [0, 1], "DOP853", t, rtol=1e-12, atol=1e-12)
    angle, rate = found.y
    position = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return position, rate[:, None] * np.stack([np.cos(angle), -np.sin(angle)], axis=1)
