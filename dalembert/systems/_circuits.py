"""Dependencies between the rows of a matrix that involve few rows each, as those of one loop of a mechanism do.

A singular value decomposition gives dependencies that mix all loops. Gauss elimination with pivots that keep the matrix sparse
(Markowitz) leaves a row of zeros for each dependency, and the rows that it was made of are those of a loop, or of a few.

What is left of a row is c^T G, a combination of rows that have norm 1, so |c^T G| / |c| is a bound of the smallest singular
value of the rows that take part: it tells what vanishes, whatever elimination did to the size of the numbers.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Sequence

import numpy as np

from dalembert.systems._matrices import Matrix, balanced, is_sparse

STABLE = 0.1
"""The smallest pivot, compared with the largest entries of its column and of its row: one that is small in its row may be all
that rounding left of a column, and hide that the row depends on others."""

RANK = 1e-9
"""Rows are dependent where a singular value of the matrix, its rows and columns scaled, is smaller than this."""

NEGLIGIBLE = 1e-13
"""An entry so small, compared with the coefficients of the rows that it is made of, is a rounding error."""

OVERLAP = 0.5
"""The part of a dependency's rows from which on it belongs to another one."""


def circuits(matrix: Matrix) -> dict[int, dict[int, float]]:
    """For each row that follows from others: the rows that take part, with their coefficients for normalised rows.

    All other rows are independent.
    """
    if not is_sparse(matrix):
        return _eliminated(balanced(matrix)[0])
    matrix = matrix.tocsr()
    places = (part.astype(np.int32).tobytes() for part in (matrix.indices, matrix.indptr))
    return _kept_circuits(matrix.shape, matrix.data.tobytes(), *places)


@functools.lru_cache(maxsize=32)
def _kept_circuits(shape: tuple[int, int], data: bytes, indices: bytes, indptr: bytes) -> dict[int, dict[int, float]]:
    """The same for a sparse matrix: those of a start are asked for again and again, and cost more than a step."""
    from scipy.sparse import csr_array

    parts = np.frombuffer(data), np.frombuffer(indices, dtype=np.int32), np.frombuffer(indptr, dtype=np.int32)
    return _eliminated(balanced(csr_array(parts, shape=shape))[0])


def _eliminated(scaled: Matrix) -> dict[int, dict[int, float]]:
    """Gauss elimination, shortest rows first; what is said of rows that vanish is of which others they were made."""
    rows, made_of = _rows(scaled), [{k: 1.0} for k in range(scaled.shape[0])]
    holders: list[set[int]] = [set() for _ in range(scaled.shape[1])]
    for k, row in enumerate(rows):
        for column in row:
            holders[column].add(k)
    waiting = [(len(row), k) for k, row in enumerate(rows)]
    heapq.heapify(waiting)
    found, done = dict[int, dict[int, float]](), set[int]()
    while waiting:
        length, k = heapq.heappop(waiting)
        if k in done or length != len(rows[k]):
            continue
        if math.hypot(*rows[k].values()) <= RANK * math.hypot(*made_of[k].values()):
            done.add(k)
            found[k] = _significant(made_of[k])
            for j in rows[k]:
                holders[j].discard(k)
            continue
        pivot, column = _pivot(rows, holders, k)
        done.add(pivot)
        for j in rows[pivot]:
            holders[j].discard(pivot)
        for i in tuple(holders[column]):
            factor = rows[i][column] / rows[pivot][column]
            _subtract(made_of[i], factor, made_of[pivot], None, 0.0)
            least = NEGLIGIBLE * max(map(abs, made_of[i].values()))
            for j in _subtract(rows[i], factor, rows[pivot], column, least):
                (holders[j].add if j in rows[i] else holders[j].discard)(i)
            heapq.heappush(waiting, (len(rows[i]), i))
        if k != pivot and k not in done:
            heapq.heappush(waiting, (len(rows[k]), k))
    return found


def _pivot(rows: list[dict[int, float]], holders: list[set[int]], row: int) -> tuple[int, int]:
    """A place that is large in its row and its column: in a column of this row that few others have, if there is such a one."""
    largest = max(map(abs, rows[row].values()))
    columns = [j for j, x in rows[row].items() if abs(x) >= STABLE * largest]
    column = min(columns, key=lambda j: (len(holders[j]), -abs(rows[row][j])))
    largest = max(abs(rows[i][column]) for i in holders[column])
    for i in sorted((i for i in holders[column] if abs(rows[i][column]) >= STABLE * largest), key=lambda i: len(rows[i])):
        if abs(rows[i][column]) >= STABLE * max(map(abs, rows[i].values())):
            return i, column
    size = 0.0
    while True:  # rook pivoting: every turn finds a larger entry
        row = max(holders[column], key=lambda i: abs(rows[i][column]))
        if not abs(rows[row][column]) > size:
            return row, column
        size = abs(rows[row][column])
        column = max(rows[row], key=lambda j: abs(rows[row][j]))


def _rows(matrix: Matrix) -> list[dict[int, float]]:
    if is_sparse(matrix):
        matrix = matrix.tocsr()
        parts = zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True)
        columns, values = matrix.indices.tolist(), matrix.data.tolist()
        return [{j: x for j, x in zip(columns[a:b], values[a:b], strict=True) if x} for a, b in parts]
    return [{int(j): float(row[j]) for j in np.flatnonzero(row)} for row in matrix]


def _subtract(row: dict[int, float], factor: float, other: dict[int, float], gone: int | None, least: float) -> Sequence[int]:
    """row - factor other, entries below `least` left out, and that of one place for sure; the places that may have changed."""
    for j, value in other.items():
        changed = row.get(j, 0.0) - factor * value
        if j == gone or abs(changed) <= least:
            row.pop(j, None)
        else:
            row[j] = changed
    return tuple(other)


def _significant(combination: dict[int, float]) -> dict[int, float]:
    largest = max(abs(value) for value in combination.values())
    return {k: value for k, value in combination.items() if abs(value) > 1e-10 * largest}


def merged(parts: Sequence[set[int]]) -> list[set[int]]:
    """Unions of parts that have any rows in common."""
    return _unions(parts, 0.0)


def clusters(supports: Sequence[set[int]]) -> list[set[int]]:
    """Unions of supports of dependencies that have at least half of their rows in common, as those of one loop."""
    return _unions(sorted(supports, key=len), OVERLAP)


def _unions(parts: Sequence[set[int]], overlap: float) -> list[set[int]]:
    """Unions of parts, one after the other with those of which they share so much of the smaller one."""
    result, holders = dict[int, set[int]](), dict[int, set[int]]()
    for number, part in enumerate(parts):
        new = set(part)
        met = sorted({other for row in part for other in holders.get(row, ())})
        for other in met:
            if len(new & result[other]) >= overlap * min(len(new), len(result[other])):
                for row in result[other]:
                    holders[row].discard(other)
                new |= result.pop(other)
        result[number] = new
        for row in new:
            holders.setdefault(row, set()).add(number)
    return list(result.values())
