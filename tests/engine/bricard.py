"""Bricard's mechanism with rotation matrices: a spatial loop of five rods and six hinges that has one degree of freedom.

Points, axes and sizes are those of the library of benchmark problems (Gonzalez, Dopico, Lugris and Cuadrado 2006, A04).
Its 30 rows of hinges are redundant by one; 29 that are independent at the start stay so for more than a second.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.linalg import qr

import dalembert as da

POINTS = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
AXES = np.eye(3)[[1, 2, 0, 1, 2, 0]]
WIDTH, G = 0.1, 9.81


def masses(mass, length):
    """The diagonal of the mass matrix: of the centre and of the three directors of each rod."""
    along = np.abs(np.diff(POINTS, axis=0)) > 0.5
    return [
        m for row in along for m in (*[mass] * 3, *(mass * (length if x else WIDTH * length) ** 2 / 12 for x in row.repeat(3)))
    ]


def rows_of(q, length):
    """Orthonormal directors, then pins and axes of all hinges."""
    centres = length * (POINTS[1:] + POINTS[:-1]) / 2
    rods = [(q[12 * k : 12 * k + 3], q[12 * k + 3 : 12 * k + 12]) for k in range(5)]

    def turned(k, vector):
        directors = rods[k][1]
        return vector[0] * directors[:3] + vector[1] * directors[3:6] + vector[2] * directors[6:]

    rows = []
    for _, d in rods:
        rows += [d[3 * i : 3 * i + 3] @ d[3 * j : 3 * j + 3] - (i == j) for i in range(3) for j in range(i, 3)]
    for k, (point, axis) in enumerate(zip(length * POINTS, AXES, strict=True)):
        one, other = (np.eye(3)[i] for i in range(3) if not axis[i])
        rod = min(k, 4)
        place = rods[rod][0] + turned(rod, point - centres[rod])
        if k in (0, 5):
            before, sides = point, (one, other)
        else:
            before = rods[k - 1][0] + turned(k - 1, point - centres[k - 1])
            sides = (turned(k - 1, one), turned(k - 1, other))
        rows += [*((place - before) / length), *(side @ turned(rod, axis) for side in sides)]
    return rows


def start(length: float) -> np.ndarray:
    centres = length * (POINTS[1:] + POINTS[:-1]) / 2
    return np.concatenate([np.concatenate([centre, np.eye(3).ravel()]) for centre in centres])


def energy(q, p, mass, length, g):
    kinetic = sum(momentum**2 / m for momentum, m in zip(p, masses(mass, length), strict=True)) / 2
    return kinetic + mass * g * sum(q[12 * k + 1] for k in range(5))


@cache
def independent() -> list[int]:
    """The rows of the directors, and as many of the hinges as are independent at the start."""
    everything = da.Hamiltonian(lambda q, p: p @ p, dim=60, holonomic=lambda q: rows_of(q, 1.0))
    gradient = everything.evaluate("G", 0.0, start(1.0))
    fixed, hinges = gradient[:30], gradient[30:]
    basis = np.linalg.qr(fixed.T)[0]
    triangle, order = qr((hinges - hinges @ basis @ basis.T).T, mode="r", pivoting=True)
    rank = int(np.sum(np.abs(np.diag(triangle)) > 1e-10))
    return [*range(30), *sorted(30 + order[:rank])]


def bricard(mass: float = 1.0, length: float = 1.0, g: float = G) -> da.Hamiltonian:
    """The mechanism with independent rows, in any units."""
    return da.Hamiltonian(
        energy,
        dim=60,
        holonomic=lambda q, length: [rows_of(q, length)[k] for k in independent()],
        params={"mass": mass, "length": length, "g": g},
    )
