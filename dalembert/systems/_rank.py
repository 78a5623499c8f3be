"""Rank decisions that do not depend on units, and what they are needed for where rows of constraints repeat each other."""

from __future__ import annotations

import numpy as np

from dalembert.errors import InconsistentStart
from dalembert.systems._matrices import (
    Matrix,
    is_finite,
    is_sparse,
    least_combination,
    row_maxima,
    row_norms,
    scaled_rows,
)

RANK = 1e-9
"""Rows are dependent where a singular value of the matrix, its rows and columns scaled, is smaller than this."""


TINY = 4e-15
"""A row that is smaller than this, compared with the largest, or an entry, compared with the largest of its row, is a rounding
error of something that vanishes in this state: it must not be scaled up."""


def _without_rounding(matrix: Matrix) -> Matrix:
    sizes = row_maxima(matrix)
    if is_sparse(matrix):
        small = np.abs(matrix.data) < TINY * np.repeat(sizes, np.diff(matrix.indptr))
        return type(matrix)((np.where(small, 0.0, matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.where(np.abs(matrix) < TINY * sizes[:, None], 0.0, matrix)


def balanced(matrix: Matrix) -> tuple[Matrix, np.ndarray]:
    """The matrix with scaled columns and rows of norm 1 (zero where they are tiny), and the factors of the rows."""
    sizes = row_maxima(matrix)
    matrix = scaled_rows(_without_rounding(matrix), np.where(sizes < TINY * np.max(sizes, initial=0.0), 0.0, 1.0))
    factors = np.ones(matrix.shape[0])
    for _ in range(8):
        largest = _nonzero(np.sqrt(row_maxima(matrix)))
        factors = factors / largest
        matrix = scaled_rows(matrix, 1 / largest)
        matrix = scaled_rows(matrix.T, 1 / _nonzero(np.sqrt(row_maxima(matrix.T)))).T
    norms = row_norms(matrix)
    factors = factors / _nonzero(norms)
    factors[norms == 0] = np.max(factors[norms > 0], initial=1.0)
    return scaled_rows(matrix, 1 / _nonzero(norms)), factors


def _nonzero(sizes: np.ndarray) -> np.ndarray:
    return np.where(sizes == 0, 1.0, sizes)


def smallest_singular_value(rows: Matrix) -> float:
    """Of a matrix with its rows normalised; infinite if it has none, and 0 if they are more than its columns.

    Where it is small, columns are scaled, too: lengths of 1e-9 beside angles make nothing dependent.
    """
    if not rows.shape[0]:
        return np.inf
    norms = row_norms(rows)
    if rows.shape[0] > rows.shape[1] or np.min(norms) <= TINY * np.max(norms):
        return 0.0
    found = least_singular_value(scaled_rows(rows, 1 / norms))
    if found > 1e-6 or not is_finite(rows):
        return found
    return max(found, least_singular_value(balanced(rows)[0]))


def least_singular_value(matrix: Matrix) -> float:
    """Of a matrix as it is."""
    if is_sparse(matrix):
        return least_combination(matrix)[0] if is_finite(matrix) else np.nan
    return float(np.linalg.svd(matrix, compute_uv=False)[-1])


def dependencies(matrix: Matrix, factors: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis N of the dependencies between rows, N^T D matrix = 0, and the factors of the rows, D.

    One column a dependency; a row that is part of none has zeros there. The factors are those that normalise the rows, unless
    they are given: along a motion a row may become small for a while, and then it should count for little. Of a sparse matrix
    only whether there are dependencies is found out: those of large systems are refused.
    """
    if is_sparse(matrix):
        return _no_dependencies(matrix)
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


def _no_dependencies(matrix: Matrix) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = matrix.shape
    scaled, factors = balanced(matrix)
    if not is_finite(scaled) or smallest_singular_value(matrix) > RANK:
        return np.zeros((rows, 0)), factors
    found = "" if rows > columns else f" ({_largest(least_combination(scaled)[1])})"
    raise InconsistentStart(
        f"the {rows} constraints are not independent at the initial values{found}, and redundant ones are combined in systems "
        f"of up to a few hundred constraints only: remove the redundant constraints or start elsewhere"
    )


def _largest(combination: np.ndarray) -> str:
    """The rows that take part in a dependency, by their numbers."""
    rows = np.flatnonzero(np.abs(combination) > 1e-6 * np.max(np.abs(combination))).tolist()
    listed = ", ".join(map(str, rows[:6])) + (", ..." if len(rows) > 6 else "")
    return f"one dependency is between those with the numbers {listed}, holonomic ones counted first"


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
