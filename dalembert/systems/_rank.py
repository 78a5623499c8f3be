"""Rank decisions that do not depend on units, and what they are needed for where rows of constraints repeat each other."""

from __future__ import annotations

import numpy as np

RANK = 1e-9
"""Rows are dependent where a singular value of the matrix, its rows and columns scaled, is smaller than this."""


def balanced(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrix with scaled columns and rows of norm 1 (rows of zeros stay), and the factors of the rows."""
    factors = np.ones(len(matrix))
    for axis in (1, 0) * 8:
        largest = np.sqrt(np.max(np.abs(matrix), axis=axis, initial=0.0))
        largest[largest == 0] = 1.0
        matrix = matrix / np.expand_dims(largest, axis)
        if axis == 1:
            factors = factors / largest
    norms = np.linalg.norm(matrix, axis=1)
    norms[norms == 0] = 1.0
    return matrix / norms[:, None], factors / norms


def smallest_singular_value(rows: np.ndarray) -> float:
    """Of a matrix with its rows normalised; infinite if it has none, and 0 if they are more than its columns.

    Where it is small, columns are scaled, too: lengths of 1e-9 beside angles make nothing dependent.
    """
    if not len(rows):
        return np.inf
    if rows.shape[0] > rows.shape[1]:
        return 0.0

    def least(matrix: np.ndarray) -> float:
        normalised = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-300)
        return float(np.linalg.svd(normalised, compute_uv=False)[-1])

    found = least(rows)
    if found > 1e-6 or not np.all(np.isfinite(rows)):
        return found
    for axis in (1, 0) * 8:
        rows = rows / np.sqrt(np.maximum(np.max(np.abs(rows), axis=axis, keepdims=True), 1e-300))
    return max(found, least(rows))


def dependencies(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis N of the dependencies between rows, N^T D matrix = 0, and the factors of the rows, D.

    One column a dependency; a row that is part of none has zeros there.
    """
    scaled, factors = balanced(matrix)
    if not np.all(np.isfinite(scaled)) or smallest_singular_value(matrix) > RANK:
        return np.zeros((len(matrix), 0)), factors
    left, values, _ = np.linalg.svd(scaled)
    return left[:, int(np.sum(values > RANK)) :], factors


def solve_of_rank(matrices: np.ndarray, rhs: np.ndarray, redundant: int) -> np.ndarray:
    """The solution of least norm of symmetric positive semidefinite systems that are solvable; one a row.

    `redundant` is the dimension of their null spaces. Rows and columns are scaled, so that units do not decide what vanishes;
    the norm is that of the unknowns as they are.
    """
    scale = 1 / np.sqrt(np.maximum(np.einsum("...ii->...i", matrices), 1e-300))
    scale = np.where(scale < 1e149, scale, 1.0)  # rows of zeros
    values, vectors = np.linalg.eigh(matrices * scale[..., :, None] * scale[..., None, :])
    kept = vectors[..., redundant:]
    parts = np.einsum("...ij,...i->...j", kept, scale * rhs) / values[..., redundant:]
    solution = scale * np.einsum("...ij,...j->...i", kept, parts)
    null = np.linalg.qr(scale[..., :, None] * vectors[..., :redundant])[0]
    return solution - np.einsum("...ij,...kj,...k->...i", null, null, solution)
