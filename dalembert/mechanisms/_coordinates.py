"""The coordinates of one body: how its pose, angular velocity, energy and generalised forces follow from them.

Formulas take sequences of numbers, symbols, or arrays over time. R maps body axes, which are principal axes, to space;
omega is the angular velocity in space.

| kind | coordinates | rows of its own | kinetic energy of rotation |
|---|---|---|---|
| quaternion | x, e = (a, b, c, d) | e.e - 1 | sum (G p)_i^2 / (8 J_i) + (e.p)^2 / (8 J_mean), omega = 2 R G e' |
| matrix | x, the columns d_k of R | d_j.d_k - delta_jk | sum p_k.p_k / (2 E_k), E_k = (J_1 + J_2 + J_3) / 2 - J_k |
| planar | x, y, theta | none | p_theta^2 / (2 J) |
| point | x, y, z, or x, y | none | none |

The term in e.p belongs to the length of e, which its row keeps at one; without it H_pp would be singular.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.mechanisms._vectors import Columns, Vector, add, cross, dot, quaternion_of, scale

Entries = Any
"""A sequence of numbers, symbols, or arrays over time."""
UNIT: Columns = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
MASSLESS = 1e-9
"""Relative to the largest, the least moment E_k for which a column of R is a coordinate."""


def massless_column(J: Sequence[float]) -> int | None:
    """Which moment E_k vanishes beside the others, as that of the normal of a thin plate."""
    E = sum(J) / 2 - np.asarray(J, dtype=float)
    least = int(np.argmin(E))
    return least if E[least] < MASSLESS * max(E) else None


class Quaternion:
    """x and the unit quaternion e of R."""

    labels = ("x", "y", "z", "e0", "e1", "e2", "e3")
    rows = ("length of e",)

    def start(self, x: np.ndarray, R: np.ndarray) -> np.ndarray:
        """The coordinates of a pose."""
        return np.concatenate([x, quaternion_of(R)])

    def pose(self, q: Entries) -> tuple[Vector, Columns]:
        """The centre and the columns of R."""
        a, b, c, d = q[3], q[4], q[5], q[6]
        columns = (
            (a * a + b * b - c * c - d * d, 2 * (b * c + a * d), 2 * (b * d - a * c)),
            (2 * (b * c - a * d), a * a - b * b + c * c - d * d, 2 * (c * d + a * b)),
            (2 * (b * d + a * c), 2 * (c * d - a * b), a * a - b * b - c * c + d * d),
        )
        return (q[0], q[1], q[2]), columns

    def motion(self, q: Entries, v: Entries) -> tuple[Vector, Vector]:
        """The velocity of the centre, and omega = 2 E e'."""
        return (v[0], v[1], v[2]), scale(2, _left(q[3:7], v[3:7]))

    def constraints(self, q: Entries) -> list[Any]:
        """The rows of the coordinates."""
        return [q[3] * q[3] + q[4] * q[4] + q[5] * q[5] + q[6] * q[6] - 1]

    def kinetic(self, q: Entries, p: Entries, mass: Any, J: Entries) -> Any:
        """The kinetic energy by momenta."""
        a, b, c, d = q[3], q[4], q[5], q[6]
        w, r, s, t = p[3], p[4], p[5], p[6]
        G_p = (-b * w + a * r + d * s - c * t, -c * w - d * r + a * s + b * t, -d * w + c * r - b * s + a * t)
        length = a * w + b * r + c * s + d * t
        rotation = G_p[0] ** 2 / J[0] + G_p[1] ** 2 / J[1] + G_p[2] ** 2 / J[2] + 3 * length**2 / (J[0] + J[1] + J[2])
        return _translation(p, mass) + rotation / 8

    def force(self, q: Entries, F: Vector, torque: Vector) -> list[Any]:
        """The generalised force of F and a torque about the centre: 2 E^T torque."""
        a, b, c, d = q[3], q[4], q[5], q[6]
        x, y, z = scale(2, torque)
        return [*F, -b * x - c * y - d * z, a * x + d * y - c * z, -d * x + a * y + b * z, c * x - b * y + a * z]

    def torque(self, q: Entries, Q: Entries) -> Vector:
        """The torque of a generalised force: E Q / 2."""
        return scale(0.5, _left(q[3:7], Q[3:7]))


class Matrix:
    """x and the columns of R; one column whose moment E_k vanishes, as that of a thin plate, follows from the others."""

    def __init__(self, J: Sequence[float]) -> None:
        massless = massless_column(J)
        self.kept = tuple(k for k in range(3) if k != massless)
        self.labels = ("x", "y", "z", *(f"R{i}{k + 1}" for k in self.kept for i in "123"))
        self.pairs = [(i, j) for n, i in enumerate(self.kept) for j in self.kept[n:]]
        self.rows = tuple(f"d{i + 1}.d{j + 1}" for i, j in self.pairs)

    def _columns(self, q: Entries) -> dict[int, Vector]:
        return {k: (q[3 + 3 * n], q[4 + 3 * n], q[5 + 3 * n]) for n, k in enumerate(self.kept)}

    def _missing(self) -> tuple[int, int, int] | None:
        """(k, i, j) with d_k = d_i x d_j, if d_k is no coordinate."""
        if len(self.kept) == 3:
            return None
        k = ({0, 1, 2} - set(self.kept)).pop()
        return k, (k + 1) % 3, (k + 2) % 3

    def start(self, x: np.ndarray, R: np.ndarray) -> np.ndarray:
        """The coordinates of a pose."""
        return np.concatenate([x, *(R[:, k] for k in self.kept)])

    def pose(self, q: Entries) -> tuple[Vector, Columns]:
        """The centre and the columns of R."""
        d, missing = self._columns(q), self._missing()
        if missing:
            d[missing[0]] = cross(d[missing[1]], d[missing[2]])
        return (q[0], q[1], q[2]), (d[0], d[1], d[2])

    def motion(self, q: Entries, v: Entries) -> tuple[Vector, Vector]:
        """The velocity of the centre, and omega = sum d_k x d_k' / 2."""
        d, rates, missing = self._columns(q), self._columns(v), self._missing()
        if missing:
            k, i, j = missing
            d[k], rates[k] = cross(d[i], d[j]), add(cross(rates[i], d[j]), cross(d[i], rates[j]))
        omega = add(add(cross(d[0], rates[0]), cross(d[1], rates[1])), cross(d[2], rates[2]))
        return (v[0], v[1], v[2]), scale(0.5, omega)

    def constraints(self, q: Entries) -> list[Any]:
        """The rows of the coordinates."""
        d = self._columns(q)
        return [dot(d[i], d[j]) - (1 if i == j else 0) for i, j in self.pairs]

    def kinetic(self, q: Entries, p: Entries, mass: Any, J: Entries) -> Any:
        """The kinetic energy by momenta, with a constant mass matrix."""
        half = (J[0] + J[1] + J[2]) / 2
        return _translation(p, mass) + sum(dot(d, d) / (2 * (half - J[k])) for k, d in self._columns(p).items())

    def force(self, q: Entries, F: Vector, torque: Vector) -> list[Any]:
        """The generalised force of F and a torque about the centre: that of omega . torque."""
        d, missing = self._columns(q), self._missing()
        Q = {k: scale(0.5, cross(torque, d[k])) for k in self.kept}
        if missing:
            _, i, j = missing
            last = scale(0.5, cross(torque, cross(d[i], d[j])))
            Q[i], Q[j] = add(Q[i], cross(d[j], last)), add(Q[j], cross(last, d[i]))
        return [*F, *(entry for k in self.kept for entry in Q[k])]

    def torque(self, q: Entries, Q: Entries) -> Vector:
        """The torque of a generalised force: sum d_k x Q_k, the power of Q under d_k' = omega x d_k."""
        d, own = self._columns(q), self._columns(Q)
        total: Vector = (0.0, 0.0, 0.0)
        for k in self.kept:
            total = add(total, cross(d[k], own[k]))
        return total


class Planar:
    """x, y and the angle theta of a rotation about z, at a constant height."""

    labels = ("x", "y", "theta")
    rows: tuple[str, ...] = ()

    def __init__(self, height: float) -> None:
        self.height = height

    def start(self, x: np.ndarray, R: np.ndarray) -> np.ndarray:
        """The coordinates of a pose."""
        return np.array([x[0], x[1], np.arctan2(R[1, 0], R[0, 0])])

    def pose(self, q: Entries) -> tuple[Vector, Columns]:
        """The centre and the columns of R."""
        c, s = np.cos(q[2]), np.sin(q[2])
        return (q[0], q[1], self.height), ((c, s, 0.0), (-s, c, 0.0), (0.0, 0.0, 1.0))

    def motion(self, q: Entries, v: Entries) -> tuple[Vector, Vector]:
        """The velocity of the centre and omega."""
        return (v[0], v[1], 0.0), (0.0, 0.0, v[2])

    def constraints(self, q: Entries) -> list[Any]:
        """No rows."""
        return []

    def kinetic(self, q: Entries, p: Entries, mass: Any, J: Entries) -> Any:
        """The kinetic energy by momenta."""
        return (p[0] ** 2 + p[1] ** 2) / (2 * mass) + p[2] ** 2 / (2 * J[2])

    def force(self, q: Entries, F: Vector, torque: Vector) -> list[Any]:
        """The generalised force of F and a torque about the centre."""
        return [F[0], F[1], torque[2]]

    def torque(self, q: Entries, Q: Entries) -> Vector:
        """The torque of a generalised force."""
        return (0.0, 0.0, Q[2])


class Point:
    """A point mass: x, y and z, or x and y at a constant height."""

    rows: tuple[str, ...] = ()

    def __init__(self, height: float | None = None) -> None:
        self.height = height
        self.labels = ("x", "y", "z") if height is None else ("x", "y")

    def start(self, x: np.ndarray, R: np.ndarray) -> np.ndarray:
        """The coordinates of a pose."""
        return x[: len(self.labels)].copy()

    def pose(self, q: Entries) -> tuple[Vector, Columns]:
        """The point; it has no rotation."""
        return (q[0], q[1], q[2] if self.height is None else self.height), UNIT

    def motion(self, q: Entries, v: Entries) -> tuple[Vector, Vector]:
        """The velocity."""
        return (v[0], v[1], v[2] if self.height is None else 0.0), (0.0, 0.0, 0.0)

    def constraints(self, q: Entries) -> list[Any]:
        """No rows."""
        return []

    def kinetic(self, q: Entries, p: Entries, mass: Any, J: Entries) -> Any:
        """The kinetic energy by momenta."""
        return sum(p[i] ** 2 for i in range(len(self.labels))) / (2 * mass)

    def force(self, q: Entries, F: Vector, torque: Vector) -> list[Any]:
        """The generalised force; a torque has none."""
        return list(F[: len(self.labels)])

    def torque(self, q: Entries, Q: Entries) -> Vector:
        """None."""
        return (0.0, 0.0, 0.0)


Coordinates = Quaternion | Matrix | Planar | Point


def _translation(p: Entries, mass: Any) -> Any:
    return (p[0] ** 2 + p[1] ** 2 + p[2] ** 2) / (2 * mass)


def _left(e: Entries, u: Entries) -> Vector:
    """E u, with the matrix E of omega = 2 E e'."""
    a, b, c, d = e
    w, r, s, t = u
    return (-b * w + a * r - d * s + c * t, -c * w + d * r + a * s - b * t, -d * w - c * r + b * s + a * t)
