"""Rank decisions that do not depend on units, and what they are needed for where rows of constraints repeat each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalembert.systems._circuits import RANK, circuits, clusters
from dalembert.systems._matrices import (
    TINY,
    Matrix,
    balanced,
    is_finite,
    is_sparse,
    least_combination,
    row_norms,
    scaled,
    scaled_rows,
    solve,
    without_rounding,
)

Parts = Sequence[Sequence[int]]
"""Sets of rows between which there are dependencies, as those of the loops of a mechanism."""


CLEARLY = 1e-6
"""A smallest singular value above this one is sure; those below which inverse iteration finds may be far too large."""


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
    if found > CLEARLY or not is_finite(rows):
        return found
    scaled_too = least_singular_value(balanced(rows)[0])
    if not is_sparse(rows):
        return max(found, scaled_too)
    return scaled_too if scaled_too > CLEARLY or not circuits(rows) else 0.0


def least_singular_value(matrix: Matrix) -> float:
    """Of a matrix as it is."""
    if is_sparse(matrix):
        return least_combination(matrix)[0] if is_finite(matrix) else np.nan
    return float(np.linalg.svd(matrix, compute_uv=False)[-1])


def dependencies(matrix: Matrix, factors: np.ndarray | None = None, parts: Parts | None = None) -> tuple[Matrix, np.ndarray]:
    """A basis N of the dependencies between rows, N^T D matrix = 0, and the factors of the rows, D.

    One column a dependency; a row that is part of none has zeros there. The factors are those that normalise the rows, unless
    they are given: along a motion a row may become small for a while, and then it should count for little. Columns are
    orthonormal, but those of a sparse matrix, which is looked at part by part (`parts_of` another state, if they are known).
    """
    if is_sparse(matrix):
        return _local_dependencies(matrix, factors, parts)
    if factors is None:
        unitless, factors = balanced(matrix)
        if not np.all(np.isfinite(unitless)) or smallest_singular_value(matrix) > RANK:
            return np.zeros((len(matrix), 0)), factors
    else:
        unitless = without_rounding(matrix * factors[:, None])
        largest = np.max(np.abs(unitless), axis=0, initial=0.0)
        unitless = unitless / np.where(largest > 0, largest, 1.0)
        if not np.all(np.isfinite(unitless)):
            return np.zeros((len(matrix), 0)), factors
    left, values, _ = np.linalg.svd(unitless, full_matrices=matrix.shape[0] > matrix.shape[1])
    return left[:, int(np.sum(values > RANK)) :], factors


def parts_of(matrix: Matrix) -> list[list[int]]:
    """The rows of each loop of dependencies of a sparse matrix."""
    return [sorted(part) for part in clusters([set(circuit) for circuit in circuits(matrix).values()])]


def part_dependencies(matrix: Matrix, rows: Sequence[int], factors: np.ndarray) -> np.ndarray:
    """A basis of the dependencies between some rows of a matrix."""
    part = matrix[list(rows)]
    if is_sparse(part):
        part = part[:, np.unique(part.indices)].toarray()
    return dependencies(part, factors[list(rows)])[0]


def _local_dependencies(matrix: Matrix, factors: np.ndarray | None, parts: Parts | None) -> tuple[Matrix, np.ndarray]:
    from scipy.sparse import csr_array

    factors = balanced(matrix)[1] if factors is None else factors
    entries: list[tuple[np.ndarray, Sequence[int]]] = []
    if is_finite(matrix) and (parts is not None or not smallest_singular_value(matrix) > RANK):
        known, parts = parts is not None, parts_of(matrix) if parts is None else parts
        entries = [(part_dependencies(matrix, rows, factors), rows) for rows in parts]
        if not known and sum(N.shape[1] for N, _ in entries) != len(circuits(matrix)):  # parts share dependencies
            own = balanced(matrix)[1] / factors
            entries = [(np.array([[own[k] * x] for k, x in c.items()]), list(c)) for c in circuits(matrix).values()]
    count = np.cumsum([0, *(N.shape[1] for N, _ in entries)])
    rows = np.concatenate([np.zeros(0, int), *(np.repeat(rows, N.shape[1]) for N, rows in entries)])
    columns = [np.tile(np.arange(a, b), len(rows)) for a, b, (_, rows) in zip(count, count[1:], entries, strict=False)]
    values = np.concatenate([np.zeros(0), *(N.ravel() for N, _ in entries)])
    places = rows, np.concatenate([np.zeros(0, int), *columns])
    return csr_array((values, places), shape=(matrix.shape[0], int(count[-1]))), factors


def along(N: Matrix, x: np.ndarray) -> np.ndarray:
    """The part of x in the space that the columns of N span, which are orthonormal in full matrices."""
    return N @ (N.T @ x) if not is_sparse(N) else N @ solve(N.T @ N, N.T @ x)


def least_solution(matrix: Matrix, rhs: np.ndarray, null: Matrix) -> np.ndarray:
    """The solution of least norm of a symmetric positive semidefinite system that is solvable; `null` spans its null space.

    Of a sparse system by that of K + N N^T, which is orthogonal to the columns of N.
    """
    if not is_sparse(matrix):
        return solve_of_rank(matrix, rhs, null.shape[1])
    sizes = matrix.diagonal()
    scale = 1 / np.sqrt(np.where(sizes > 0, sizes, np.max(sizes, initial=0.0) or 1.0))
    own = scaled_rows(scaled_rows(null, 1 / scale).T, 1 / row_norms(scaled_rows(null, 1 / scale).T)).T
    solution = scale * solve(scaled(matrix, scale, scale) + own @ own.T, scale * rhs)
    return solution - along(scaled_rows(null.T, 1 / row_norms(null.T)).T, solution)


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
