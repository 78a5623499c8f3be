"""Vectors in space as triples whose entries are numbers, symbols, or arrays over time: one formula serves all three."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic import Scalar
from dalembert.systems._model import one_line

Vector = tuple[Any, Any, Any]
Columns = tuple[Vector, Vector, Vector]
"""A rotation matrix by its columns."""

ZERO: Vector = (0.0, 0.0, 0.0)


def add(a: Vector, b: Vector) -> Vector:
    """a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def subtract(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def scale(s: Any, a: Vector) -> Vector:
    """s a."""
    return (s * a[0], s * a[1], s * a[2])


def dot(a: Vector, b: Vector) -> Any:
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def turn(R: Columns, u: Vector) -> Vector:
    """R u."""
    return (
        R[0][0] * u[0] + R[1][0] * u[1] + R[2][0] * u[2],
        R[0][1] * u[0] + R[1][1] * u[1] + R[2][1] * u[2],
        R[0][2] * u[0] + R[1][2] * u[1] + R[2][2] * u[2],
    )


def constant(x: Any) -> float | None:
    """The number that an expression is whatever the state; None if it depends on the state."""
    if isinstance(x, Scalar):
        return float(x) if x.sx.is_constant() else None
    return float(x)


# -- what users give -----------------------------------------------------------------------------------------------------


def triple(what: str, value: Any) -> np.ndarray:
    """A vector in space; of two numbers, one in the plane z = 0."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.shape == (2,):
        array = np.append(array, 0.0)
    if array.shape != (3,) or not np.all(np.isfinite(array)):
        raise ModelError(f"{what} must be three finite numbers, or two in the plane; got {one_line(value)}")
    return array


def direction(what: str, value: Any) -> np.ndarray:
    """A unit vector along a given one, which must not vanish."""
    array = triple(what, value)
    length = float(np.linalg.norm(array))
    if length == 0:
        raise ModelError(f"{what} has length zero: give a direction, such as (0, 0, 1)")
    return array / length


def normals(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors that form a right-handed frame (first, second, axis) with a unit vector."""
    first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    first = first / np.linalg.norm(first)
    return first, np.cross(axis, first)


def about_z(angle: float) -> np.ndarray:
    """The matrix of a rotation about the z axis."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def rotation_matrix(what: str, value: Any) -> np.ndarray:
    """A rotation: None, the angle about z, a matrix, or a rotation of SciPy."""
    if value is None:
        return np.eye(3)
    if hasattr(value, "as_matrix"):
        value = value.as_matrix()
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.shape == () and np.isfinite(array):
        return about_z(float(array))
    if array.shape != (3, 3) or not np.allclose(array.T @ array, np.eye(3), atol=1e-9) or np.linalg.det(array) < 0:
        raise ModelError(
            f"{what} must be a rotation matrix (orthonormal, determinant 1), or an angle about z; got {one_line(value)}"
        )
    left, _, right = np.linalg.svd(array)  # orthonormal to round-off
    return left @ right


def quaternion_of(R: np.ndarray) -> np.ndarray:
    """The unit quaternion of a rotation matrix, with a positive first component where that is not zero."""
    K = np.array([
        [R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
        [R[2, 1] - R[1, 2], R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
        [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], R[1, 1] - R[0, 0] - R[2, 2], R[1, 2] + R[2, 1]],
        [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], R[2, 2] - R[0, 0] - R[1, 1]],
    ])  # fmt: skip
    e = np.linalg.eigh(K)[1][:, -1]
    return -e if e[0] < 0 else e
