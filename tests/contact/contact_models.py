"""Models with friction that several tests share."""

import numpy as np

import dalembert as da


def wheel(mu=0.3, m=0.2, R=0.05, g=9.81):
    """A wheel, a disc of mass m and radius R, above the ground: q = (x, y, angle)."""
    return da.Lagrangian(
        lambda q, v, m, R, g: m * (v[0] ** 2 + v[1] ** 2) / 2 + m * R**2 / 4 * v[2] ** 2 - m * g * q[1],
        3,
        unilateral=lambda q, R: q[1] - R,
        restitution=0.0,
        friction=lambda mu: mu,
        slip=lambda v, R: v[0] + R * v[2],
        params={"m": m, "R": R, "g": g, "mu": mu},
    )


def rod(mu, s=1.0, m=1.0, g=10.0):
    """Painleve's rod of Glocker (1995): length 2 s, q = (x, y, angle), both tips above the ground."""
    return da.Lagrangian(
        lambda q, v: m * (v[0] ** 2 + v[1] ** 2) / 2 + m * s**2 / 6 * v[2] ** 2 - m * g * q[1],
        3,
        unilateral=lambda q: [q[1] - s * np.sin(q[2]), q[1] + s * np.sin(q[2])],
        friction=mu,
        restitution=0.0,
        slip=lambda q, v: [v[0] + s * np.sin(q[2]) * v[2], v[0] - s * np.sin(q[2]) * v[2]],
    )


def corners(q, a, b):
    """The corners of a rectangle with sides 2 a and 2 b: arms from its centre."""
    c, s = np.cos(q[2]), np.sin(q[2])
    return [(x * c - y * s, x * s + y * c) for x, y in ((a, b), (-a, b), (-a, -b), (a, -b))]


def box(walls=1):
    """A box (x, y, angle) whose corners stay above slopes: the first by `slope`, the second by -`slope`, a wedge."""

    def normals(slope):
        return [(np.sin(side * slope), np.cos(side * slope)) for side in (-1, 1)[:walls]]

    def gaps(q, a, b, slope):
        return [n[0] * (q[0] + x) + n[1] * (q[1] + y) for n in normals(slope) for x, y in corners(q, a, b)]

    def slip(q, v, a, b, slope):
        arms = corners(q, a, b)
        return [n[1] * (v[0] - y * v[2]) - n[0] * (v[1] + x * v[2]) for n in normals(slope) for x, y in arms]

    return da.Lagrangian(
        lambda q, v, m, a, b, g: m * (v[0] ** 2 + v[1] ** 2) / 2 + m * (a**2 + b**2) / 6 * v[2] ** 2 - m * g * q[1],
        3,
        unilateral=gaps,
        restitution=lambda speed, e: e,
        friction=lambda q, mu: mu,
        slip=slip,
        params={"m": 0.2, "a": 0.1, "b": 0.05, "g": 9.81, "slope": 0.3, "mu": 0.5, "e": 0.0},
    )


def biped():
    """A body (x, y, angle) with two feet b below its centre, a before and behind it."""

    def feet(q, a, b):
        c, s = np.cos(q[2]), np.sin(q[2])
        return [(x * c + b * s, x * s - b * c) for x in (a, -a)]

    return da.Lagrangian(
        lambda q, v, m, J, g: m * (v[0] ** 2 + v[1] ** 2) / 2 + J * v[2] ** 2 / 2 - m * g * q[1],
        3,
        unilateral=lambda q, a, b: [q[1] + y for _, y in feet(q, a, b)],
        friction=lambda mu: mu,
        slip=lambda q, v, a, b: [v[0] - y * v[2] for _, y in feet(q, a, b)],
        restitution=0.0,
        params={"m": 10.0, "J": 0.8, "g": 9.81, "a": 0.2, "b": 0.8, "mu": 0.6},
    )
