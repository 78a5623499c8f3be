"""Elimination at run time in a fixed order, by loops over the filled pattern of a matrix.

A description in the tables (`compiler._elimination.SPARSE`) says how large the matrix is and where its parts lie.
"""

from __future__ import annotations

import numpy as np

from dalembert.compiler._elimination import SINGULAR, SPARSE
from dalembert.engine._apart import apart
from dalembert.engine._compiled import compiled

SIZE, N_ENTRIES, ENTRIES, RHS, FILLED, ROW_START, DIAGONAL, COLUMN, SCATTER, ROWS, COLUMNS, TARGET, SPANS = range(len(SPARSE))

at = np.uintp  # an unsigned index spares Numba the test for negative ones, which doubles the time of an inner loop


@compiled()
def eliminate(memory, tables, first):
    """LU of the entries in memory, row by row; reciprocal pivots on the diagonal.

    The sign of their product is returned, 0 if one vanishes, or is `SINGULAR` where rows are exchanged like columns.
    """
    size, entries, filled = tables[first + SIZE], tables[first + ENTRIES], tables[first + FILLED]
    row_start, diagonal, column = tables[first + ROW_START], tables[first + DIAGONAL], tables[first + COLUMN]
    scatter, target, spans = tables[first + SCATTER], tables[first + TARGET], tables[first + SPANS]
    for k in range(tables[row_start + size]):
        memory[at(filled + k)] = 0.0
    for k in range(tables[first + N_ENTRIES]):
        memory[at(filled + tables[at(scatter + k)])] = memory[at(entries + k)]
    sign = 1.0
    for i in range(size):
        middle = tables[at(diagonal + i)]
        given = memory[at(filled + middle)]
        for k in range(tables[at(row_start + i)], middle):
            j = tables[at(column + k)]
            pivot = tables[at(diagonal + j)]
            factor = memory[at(filled + k)] * memory[at(filled + pivot)]
            memory[at(filled + k)] = factor
            begin, end = pivot + 1, tables[at(row_start + j + 1)]
            while spans and begin < end:
                to, length = filled + tables[at(target)], tables[at(target + 1)]
                for m in range(length):
                    memory[at(to + m)] -= factor * memory[at(filled + begin + m)]
                begin += length
                target += 2
            for m in range(begin, end):
                memory[at(filled + tables[at(target)])] -= factor * memory[at(filled + m)]
                target += 1
        value = memory[at(filled + middle)]
        if not abs(value) > SINGULAR * abs(given):
            sign = 0.0
        elif value < 0.0:
            sign = -sign
        memory[at(filled + middle)] = 1.0 / value
    return sign


@compiled()
def substitute(memory, tables, first, work):
    """Solve with the factors of `eliminate`; the result, in pivot order of the columns, is left in `work`."""
    size, rhs, filled = tables[first + SIZE], tables[first + RHS], tables[first + FILLED]
    row_start, diagonal, column = tables[first + ROW_START], tables[first + DIAGONAL], tables[first + COLUMN]
    rows = tables[first + ROWS]
    for i in range(size):
        value = memory[at(rhs + tables[at(rows + i)])]
        for k in range(tables[at(row_start + i)], tables[at(diagonal + i)]):
            value -= memory[at(filled + k)] * work[at(tables[at(column + k)])]
        work[at(i)] = value
    for i in range(size - 1, -1, -1):
        value, middle = work[at(i)], tables[at(diagonal + i)]
        for k in range(middle + 1, tables[at(row_start + i + 1)]):
            value -= memory[at(filled + k)] * work[at(tables[at(column + k)])]
        work[at(i)] = value * memory[at(filled + middle)]


@compiled()
def solve_sparse(memory, tables, first, work, unknowns):
    """Eliminate and solve; the unknowns lie in memory from slot `unknowns` on."""
    eliminate(memory, tables, first)
    substitute(memory, tables, first, work)
    for k in range(tables[first + SIZE]):
        memory[at(unknowns + tables[at(tables[first + COLUMNS] + k)])] = work[at(k)]


eliminate_apart = apart("float64", "numbers", "integers", "int64")(eliminate)
substitute_apart = apart("void", "numbers", "integers", "int64", "numbers")(substitute)
solve_sparse_apart = apart("void", "numbers", "integers", "int64", "numbers", "int64")(solve_sparse)
