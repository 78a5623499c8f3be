"""Rank decisions that do not depend on units, and what they are needed for where rows of constraints repeat each other."""

from __future__ import annotations

import numpy as np

RANK = 1e-9
"""Rows are dependent where a singular value of the matrix, its rows and columns scaled, is smaller than this."""


TINY = 4e-15
"""A row that is smaller than this, compared with the largest, or an entry, compared with the largest of its row, is a rounding
error of something that vanishes in this state: it must not be scaled up."""


def _without_rounding(matrix: np.ndarray) -> np.ndarray:
    sizes = np.max(np.abs(matrix), axis=1, initial=0.0, keepdims=True)
    return np.where(np.abs(matrix) < TINY * sizes, 0.0, matrix)


def balanced(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrix with scaled columns and rows of norm 1 (zero where they are tiny), and the factors of the rows."""
    sizes = np.max(np.abs(matrix), axis=1, initial=0.0)
    matrix = np.where(sizes[:, None] < TINY * np.max(sizes, initial=0.0), 0.0, _without_rounding(matrix))
    factors = np.ones(len(matrix))
    for axis in (1, 0) * 8:
        largest = np.sqrt(np.max(np.abs(matrix), axis=axis, initial=0.0))
        largest[largest == 0] = 1.0
        matrix = matrix / np.expand_dims(largest, axis)
        if axis == 1:
            factors = factors / largest
    norms = np.linalg.norm(matrix, axis=1)
    vanish = norms == 0
    factors = factors / np.where(vanish, 1.0, norms)
    factors[vanish] = np.max(factors[~vanish], initial=1.0)
    return matrix / np.where(vanish, 1.0, norms)[:, None], factors


def smallest_singular_value(rows: np.ndarray) -> float:
    """Of a matrix with its rows normalised; infinite if it has none, and 0 if they are more than its columns.

    Where it is small, columns are scaled, too: lengths of 1e-9 beside angles make nothing dependent.
    """
    if not len(rows):
        return np.inf
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if len(rows) > rows.shape[1] or np.min(norms) <= TINY * np.max(norms):
        return 0.0
    found = float(np.linalg.svd(rows / norms, compute_uv=False)[-1])
    if found > 1e-6 or not np.all(np.isfinite(rows)):
        return found
    return max(found, float(np.linalg.svd(balanced(rows)[0], compute_uv=False)[-1]))


def dependencies(matrix: np.ndarray, factors: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis N of the dependencies between rows, N^T D matrix = 0, and the factors of the rows, D.

    One column a dependency; a row that is part of none has zeros there. The factors are those that normalise the rows, unless
    they are given: along a motion a row may become small for a while, and then it should count for little.
    """
    if factors is None:
        scaled, factors = balanced(matrix)
        if not np.all(np.isfinite(scaled)) or smallest_singular_value(matrix) > RANK:
            return np.zeros((len(matrix), 0)), factors
    else:
        scaled = _without_rounding(matrix * factors[:, None])
        largest = np.max(np.abs(scaled), axis=0, initial=0.0)
        scaled = scaled / np.where(largest > 0, largest, 1.0)
        if not np.all(np.isfinite(scaled)):
            return np.zeros((len(matrix), 0)), factors
    left, values, _ = np.linalg.svd(scaled)
    return left[:, int(np.sum(values > RANK)) :], factors


def solve_of_rank(matrices: np.ndarray, rhs: np.ndarray, redundant: int) -> np.ndarray:
    """The solution of least norm of symmetric positive semidefinite systems that are solvable; one a row, or a single one.

    `redundant` is the dimension of their null spaces. Rows and columns are scaled, alike for all systems, so that units do not
    decide what vanishes; the norm is that of the unknowns as they are.
    """
    sizes = np.max(np.einsum("...ii->...i", matrices).reshape(-1, matrices.shape[-1]), axis=0, initial=0.0)
    scale = 1 / np.sqrt(np.where(sizes > TINY**2 * np.max(sizes, initial=0.0), sizes, np.max(sizes, initial=0.0) or 1.0))
    values, vectors = np.linalg.eigh(matrices * scale[..., :, None] * scale[..., None, :])
    kept = vectors[..., redundant:]
    parts = np.einsum("...ij,...i->...j", kept, scale * rhs) / values[..., redundant:]
    solution = scale * np.einsum("...ij,...j->...i", kept, parts)
    null = np.linalg.qr(scale[..., :, None] * vectors[..., :redundant])[0]
    return solution - np.einsum("...ij,...kj,...k->...i", null, null, solution)
