"""Dependencies between the rows of a matrix that involve few rows each, as those of one loop of a mechanism do.

A singular value decomposition gives dependencies that mix all loops. Gauss elimination with pivots that keep the matrix sparse
(Markowitz) leaves a row of zeros for each dependency, and the rows that it was made of are those of a loop, or of a few.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from dalembert.systems._matrices import Matrix, is_sparse
from dalembert.systems._rank import balanced

STABLE = 0.1
"""The smallest pivot, compared with the largest entry of its column."""

VANISHED = 1e-11
"""What counts as zero, rows having norm 1."""

OVERLAP = 0.5
"""The part of a dependency's rows from which on it belongs to another one."""


def circuits(matrix: Matrix) -> list[dict[int, float]]:
    """For each dependency the rows that take part in it, with their coefficients for normalised rows."""
    scaled = balanced(matrix)[0]
    rows, made_of = _rows(scaled), [{k: 1.0} for k in range(scaled.shape[0])]
    holders: list[set[int]] = [set() for _ in range(scaled.shape[1])]
    for k, row in enumerate(rows):
        for column in row:
            holders[column].add(k)
    waiting = [(len(row), k) for k, row in enumerate(rows)]
    heapq.heapify(waiting)
    found, done = [], set[int]()
    while waiting:
        length, k = heapq.heappop(waiting)
        if k in done or length != len(rows[k]):
            continue
        if not rows[k]:
            done.add(k)
            found.append(_significant(made_of[k]))
            continue
        column = min(rows[k], key=lambda j: (len(holders[j]), -abs(rows[k][j])))
        largest = max(abs(rows[i][column]) for i in holders[column])
        pivot = min((i for i in holders[column] if abs(rows[i][column]) >= STABLE * largest), key=lambda i: len(rows[i]))
        done.add(pivot)
        for j in rows[pivot]:
            holders[j].discard(pivot)
        for i in tuple(holders[column]):
            factor = rows[i][column] / rows[pivot][column]
            for j in _subtract(rows[i], factor, rows[pivot], column):
                (holders[j].add if j in rows[i] else holders[j].discard)(i)
            _subtract(made_of[i], factor, made_of[pivot], None)
            heapq.heappush(waiting, (len(rows[i]), i))
        if k != pivot and k not in done:
            heapq.heappush(waiting, (len(rows[k]), k))
    return found


def _rows(matrix: Matrix) -> list[dict[int, float]]:
    if is_sparse(matrix):
        matrix = matrix.tocsr()
        parts = zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True)
        columns, values = matrix.indices.tolist(), matrix.data.tolist()
        return [{j: x for j, x in zip(columns[a:b], values[a:b], strict=True) if abs(x) > VANISHED} for a, b in parts]
    return [{int(j): float(row[j]) for j in np.flatnonzero(np.abs(row) > VANISHED)} for row in matrix]


def _subtract(row: dict[int, float], factor: float, other: dict[int, float], gone: int | None) -> Sequence[int]:
    """row - factor other, entries that vanish left out, and that of one place for sure; the places that it may have changed."""
    for j, value in other.items():
        changed = row.get(j, 0.0) - factor * value
        if j == gone or abs(changed) < VANISHED:
            row.pop(j, None)
        else:
            row[j] = changed
    return tuple(other)


def _significant(combination: dict[int, float]) -> dict[int, float]:
    largest = max(abs(value) for value in combination.values())
    return {k: value for k, value in combination.items() if abs(value) > 1e-8 * largest}


def merged(parts: Sequence[set[int]]) -> list[set[int]]:
    """Unions of parts that have any rows in common."""
    result: list[set[int]] = []
    for part in parts:
        others = [other for other in result if not other & part]
        result = [*others, part.union(*(other for other in result if other & part))]
    return result


def clusters(supports: Sequence[set[int]]) -> list[set[int]]:
    """Unions of supports of dependencies that have at least half of their rows in common, as those of one loop."""
    result: list[set[int]] = []
    for support in sorted(supports, key=len):
        new, others = set(support), []
        for other in result:
            if len(new & other) >= OVERLAP * min(len(new), len(other)):
                new |= other
            else:
                others.append(other)
        result = [*others, new]
    return result
