"""What the catalogue's systems share: directions in a plane, axles and discs that roll, and unit quaternions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory


def hanging(angle: Any) -> np.ndarray:
    """The unit vector (x, z) at an angle from the downward vertical."""
    return np.stack([np.sin(angle), -np.cos(angle)], axis=-1)


def joints(lengths: Any, directions: np.ndarray) -> np.ndarray:
    """The ends of links that follow each other from the origin, given the unit vector of each, one after the other."""
    return np.cumsum(np.asarray(lengths)[:, None] * directions, axis=0).ravel()


def heading(angle: Any) -> tuple[np.ndarray, np.ndarray]:
    """The unit vectors along and across a direction in the plane."""
    sin, cos = np.sin(angle), np.cos(angle)
    return np.stack([cos, sin], axis=-1), np.stack([-sin, cos], axis=-1)


def segment(point: np.ndarray, angle: float, half: float) -> np.ndarray:
    """The ends of the line in a direction with its middle at a point of the plane."""
    along = heading(angle)[0]
    return np.array([point - half * along, point + half * along])


def ellipse(a: float, b: float, points: int = 61) -> np.ndarray:
    """Points of an ellipse about the origin of the plane, the first one twice."""
    turn = np.linspace(0.0, 2 * np.pi, points)
    return np.column_stack([a * np.cos(turn), b * np.sin(turn)])


def in_space(points: np.ndarray) -> np.ndarray:
    """Points of the plane z = 0."""
    return np.column_stack([points, np.zeros(len(points))])


def sideways(angle: Any, v: Any) -> Any:
    """The velocity (v[0], v[1]) across a direction in the plane, for symbols as well: zero for a blade or a wheel."""
    return -np.sin(angle) * v[0] + np.cos(angle) * v[1]


def steered_axles(theta: Any, steering: Any, half: Any, v: Any) -> list[Any]:
    """The front and the back axle of a board, turned by +-steering, `half` its length from the middle at (v[0], v[1])."""
    lever = half * np.cos(steering) * v[2]
    return [sideways(theta + steering, v) + lever, sideways(theta - steering, v) - lever]


def spokes(turned: float, ahead: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two axes of a wheel at right angles that has rolled ahead by an angle, the first of them upwards at first."""
    sin, cos = np.sin(turned), np.cos(turned)
    return cos * up + sin * ahead, cos * ahead - sin * up


def axial_momentum(run: Trajectory) -> np.ndarray:
    """x p_y - y p_x, (time,)."""
    return run.q[:, 0] * run.p[:, 1] - run.q[:, 1] * run.p[:, 0]


# -- quaternions ---------------------------------------------------------------------------------------------------------


def product(P: Any, Q: Any) -> np.ndarray:
    """The product of two quaternions."""
    p, q = np.asarray(P[1:], dtype=float), np.asarray(Q[1:], dtype=float)
    return np.array([P[0] * Q[0] - p @ q, *(P[0] * q + Q[0] * p + np.cross(p, q))])


def angular_velocity(Q: Any, V: Any, sign: int = 1) -> list[Any]:
    """2 Im(V conj(Q)): the angular velocity in space of a quaternion Q with the velocity V, for symbols as well.

    With sign = -1 it is 2 Im(conj(Q) V), the angular velocity in the frame of the body.
    """
    a, b, c, d = Q
    v_a, v_b, v_c, v_d = V
    return [
        2 * (a * v_b - b * v_a + sign * (c * v_d - d * v_c)),
        2 * (a * v_c - c * v_a + sign * (d * v_b - b * v_d)),
        2 * (a * v_d - d * v_a + sign * (b * v_c - c * v_b)),
    ]


def rotation(Q: Any) -> list[list[Any]]:
    """The rotation matrix of a quaternion as a homogeneous quadratic form, for symbols as well."""
    a, b, c, d = Q
    return [
        [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
        [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
        [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
    ]
