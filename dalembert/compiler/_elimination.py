"""Sparse LU with a pivot order that is fixed in advance.

The order is chosen once, for few products, from numeric samples of the matrix (`_orders.py`), so that a pivot is taken only
where it stays away from zero as the configuration turns. Small matrices are then eliminated symbolically, in straight-line
code in which constants fold and identity blocks vanish; large ones are eliminated at run time by a loop over the same filled
pattern (`dalembert.engine`).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from dalembert.symbolic._operations import multiply, subtract

if TYPE_CHECKING:
    from scipy.sparse import csc_array

THRESHOLD = 0.05
"""A pivot must have at least this size relative to the largest entry of its column, in every sample."""

LEADING = 1e-3
"""The same for pivots that come first, which constants of the method make large or small."""

NEGLIGIBLE = 1e-14
"""An entry smaller than this, relative to the terms that it is a difference of, is a rounding error and no pivot."""

SWEEPS = 40
"""How often rows and columns are balanced in turn."""

CANDIDATES = 40
"""How many of the shortest columns are looked at for a pivot."""

LEAST_FILL = 256
"""Up to this size, pivots are also chosen by what they fill."""

LARGE = 600
"""From this size on, pivots are chosen by SuperLU."""

SINGULAR = 1e-8
"""A pivot so small, compared with its diagonal entry, means that a step ends in a singular position, with a wrong momentum."""

SCATTERED = 1.5
"""How many times as many products an order may take that lets the processor do several at once."""

DENSE = 200
"""Up to this size, matrices are eliminated as full ones."""

SPAN = 4
"""How many products in a row must go to neighbouring places, on the average, to be described by the first place alone."""

MATRIX_ROOM = 2_000_000
"""How many entries of full matrices to hold at once where many are looked at."""


class SingularMatrix(Exception):
    """No acceptable pivot is left."""


@dataclass(frozen=True)
class PivotOrder:
    """Rows and columns in the order of elimination, and what eliminating costs."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    products: int


@np.errstate(over="ignore", invalid="ignore")  # of entries that almost vanish in a sample; the order is judged later
def choose_pivots(
    rows: np.ndarray, columns: np.ndarray, samples: np.ndarray, size: int, leading: tuple[range, range] = (range(0), range(0))
) -> PivotOrder:
    """The order for a matrix with entries at (rows, columns) and one column of values for each sample.

    Two are tried, Markowitz's and that of pivots which fill the least, up to a quarter cheaper with many stages: the one that
    takes fewer products is taken. Larger matrices have the first alone, for the second takes twice its time; very large ones
    that of SuperLU, with pivots for the first sample. Pivots in the `leading` rows and columns come first, as long as there are
    some that do not vanish.
    """
    scaled = _equilibrate(rows, columns, samples, size)[0]  # the units of a model must not matter
    if size > LARGE:
        return _order_of_superlu(rows, columns, scaled[:, 0], size)
    rules = (False, True) if size <= LEAST_FILL else (False,)
    orders = [_greedy_order(rows, columns, scaled, size, leading, least_fill) for least_fill in rules]
    return min(orders, key=lambda order: order.products)


def _greedy_order(
    rows: np.ndarray, columns: np.ndarray, scaled: np.ndarray, size: int, leading: tuple[range, range], least_fill: bool
) -> PivotOrder:
    """The order in which every pivot is the cheapest that is left."""
    active: list[dict[int, np.ndarray]] = [{} for _ in range(size)]
    holders: list[set[int]] = [set() for _ in range(size)]
    for i, j, value in zip(rows.tolist(), columns.tolist(), scaled, strict=True):
        active[i][j] = np.stack([value, np.abs(value)])  # the entry, and the size of the largest term that went into it
        holders[j].add(i)
    row_order, column_order, products = [], [], 0
    remaining, known, ahead = set(range(size)), dict[int, Column](), set(leading[1])
    for _ in range(size):
        choice = _leading_pivot(active, holders, leading[0], ahead, known) if ahead else None
        i, j = choice or _next_pivot(active, holders, remaining, known, least_fill)
        products += _eliminate_with(active, holders, i, j, known)
        remaining.discard(j)
        row_order.append(i)
        column_order.append(j)
        if j in ahead:
            ahead.discard(j)
            if not ahead:  # what is left has other sizes
                _balance_again(active, holders, remaining)
                known.clear()
    return PivotOrder(tuple(row_order), tuple(column_order), products)


def _eliminate_with(
    active: list[dict[int, np.ndarray]], holders: list[set[int]], i: int, j: int, known: dict[int, Column]
) -> int:
    """Eliminate column j from the rows that hold it, with row i; how many products that takes."""
    pivot_row = active[i]
    pivot = pivot_row.pop(j)
    for column in pivot_row:
        holders[column].discard(i)
        known.pop(column, None)
    holders[j].discard(i)
    rest, absent = np.array(list(pivot_row.values())), np.zeros_like(pivot)
    for k in holders[j] if pivot_row else ():
        target = active[k]
        change = target[j][0] / pivot[0] * rest
        before = np.array([target.get(column, absent) for column in pivot_row])
        after = before - change
        after[:, 1] = np.maximum(before[:, 1], np.abs(change[:, 1]))
        target.update(zip(pivot_row, after, strict=True))
    for column in pivot_row:
        holders[column] |= holders[j]
    for k in holders[j]:
        del active[k][j]
    return len(holders[j]) * (1 + len(pivot_row))


def _order_of_superlu(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, size: int) -> PivotOrder:
    """By minimum degree, which eliminates here and there, so that solves wait less; by COLAMD where that takes far less."""
    from scipy.sparse import csc_array

    matrix = csc_array((np.where(values == 0, np.finfo(float).tiny, values), (rows, columns)), shape=(size, size))
    scattered, fewest = (_factor_order(matrix, rule) for rule in ("MMD_AT_PLUS_A", "COLAMD"))
    return scattered if scattered.products <= SCATTERED * fewest.products else fewest


def _factor_order(matrix: csc_array, rule: str) -> PivotOrder:
    from scipy.sparse.linalg import splu

    try:
        options = {"Equil": False, "SymmetricMode": rule == "MMD_AT_PLUS_A"}
        factors = splu(matrix, permc_spec=rule, diag_pivot_thresh=0.1, options=options)
    except RuntimeError:
        raise SingularMatrix from None
    below, right = np.diff(factors.L.indptr) - 1, np.diff(factors.U.tocsr().indptr) - 1
    rows_in_order, columns_in_order = (tuple(np.argsort(p).tolist()) for p in (factors.perm_r, factors.perm_c))
    return PivotOrder(rows_in_order, columns_in_order, int(below @ (1 + right)))


def _equilibrate(
    rows: np.ndarray, columns: np.ndarray, samples: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scale rows and columns until their largest entries are about 1 (Ruiz 2001); the samples, factors of rows and columns."""
    factors = np.ones((2, size, samples.shape[1]))
    for _ in range(12):
        worst = 1.0
        for factor, index in zip(factors, (rows, columns), strict=True):
            largest = np.zeros((size, samples.shape[1]))
            np.maximum.at(largest, index, np.abs(samples))
            largest[largest == 0] = 1.0
            worst = max(worst, float(np.max(largest, initial=1.0)), float(np.max(1 / largest, initial=1.0)))
            samples = samples / np.sqrt(largest)[index]
            factor /= np.sqrt(largest)
        if worst < 4:
            break
    return samples, factors[0], factors[1]


def balance(
    rows: np.ndarray, columns: np.ndarray, samples: np.ndarray, lasting: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Factors by which the logarithms of `lasting` entries get mean 0 in each row and column (Curtis and Reid 1972).

    Unlike factors that make the largest entries 1, of which there are many, these follow the units of rows and columns.
    """
    present = lasting & (samples != 0)
    with np.errstate(divide="ignore"):
        logarithms = np.where(present, np.log(np.abs(samples)), 0.0)
    count = samples.shape[1]
    places = [(index[:, None] * count + np.arange(count)).ravel() for index in (rows, columns)]

    def sums(k: int, values: np.ndarray) -> np.ndarray:
        """Sums over the rows, or the columns, of each sample."""
        return np.bincount(places[k], weights=values.ravel(), minlength=size * count).reshape(size, count)

    counts = [np.maximum(sums(k, present), 1) for k in (0, 1)]
    exponents = np.zeros((2, size, count))
    for _ in range(SWEEPS):
        for k, other in ((0, columns), (1, rows)):
            exponents[k] = -sums(k, logarithms + present * exponents[1 - k][other]) / counts[k]
    return np.exp(exponents[0]), np.exp(exponents[1])


Column = tuple[list[tuple[int, float]], int]
"""The rows with entries that are no rounding errors, with their sizes relative to the largest; how many entries there are."""


def _column(active: list[dict[int, np.ndarray]], holders: set[int], j: int) -> Column:
    """What matters about a column in the choice of a pivot."""
    members = sorted(holders)
    values, terms = np.abs(np.array([active[i][j] for i in members])).swapaxes(0, 1)
    largest = np.max(values, axis=0)
    ratios = np.min(values / np.where(largest > 0, largest, 1.0), axis=1).tolist()
    present = np.all(values > NEGLIGIBLE * terms, axis=1).tolist()
    return [(i, ratio) for i, ratio, there in zip(members, ratios, present, strict=True) if there], len(members)


def _balance_again(active: list[dict[int, np.ndarray]], holders: list[set[int]], remaining: set[int]) -> None:
    """Scale the rows and columns that are left of a matrix."""
    places = [(i, j) for j in sorted(remaining) for i in sorted(holders[j])]
    if not places:
        return
    rows, columns = np.array(places).T
    values = np.array([active[i][j] for i, j in places])
    _, row_factors, column_factors = _equilibrate(rows, columns, values[:, 0], len(active))
    for (i, j), value, factor in zip(places, values, row_factors[rows] * column_factors[columns], strict=True):
        active[i][j] = value * np.abs(factor)


def _leading_pivot(
    active: list[dict[int, np.ndarray]], holders: list[set[int]], rows: range, columns: set[int], known: dict[int, Column]
) -> tuple[int, int] | None:
    """The cheapest entry of some rows and columns that does not vanish, or None."""
    best: tuple[int, int, int] | None = None
    for j in columns:
        if holders[j] and j not in known:
            known[j] = _column(active, holders[j], j)
        members, count = known.get(j, ([], 0))
        for i, ratio in members:
            score = ((count - 1) * (len(active[i]) - 1), j, i)
            if i in rows and ratio >= LEADING and (best is None or score < best):
                best = score
    return None if best is None else (best[2], best[1])


def _next_pivot(
    active: list[dict[int, np.ndarray]],
    holders: list[set[int]],
    remaining: set[int],
    known: dict[int, Column],
    least_fill: bool,
) -> tuple[int, int]:
    """The entry to eliminate with; columns that are not `known` are looked at."""
    best: tuple[int, int, bool, int, int] | None = None
    choice = (-1, -1)
    columns = heapq.nsmallest(CANDIDATES, remaining, key=lambda column: (len(holders[column]), column))
    held = _held(active, holders, columns) if least_fill else {}
    for threshold in (THRESHOLD, 1e-6, 0.0):
        for j in columns:
            if best is not None and not least_fill and (len(holders[j]) - 1) ** 2 > best[1]:
                break
            if not holders[j]:
                raise SingularMatrix
            if j not in known:
                known[j] = _column(active, holders[j], j)
            members, count = known[j]
            for i, ratio in members:
                if ratio >= threshold:
                    # Of equally cheap pivots take a large one; coarse classes keep the order the same for similar matrices.
                    filled = _filled(held, i, holders[j], best and best[0]) if least_fill else 0
                    score = (filled, (count - 1) * (len(active[i]) - 1), ratio < 0.3, j, i)
                    if best is None or score < best:
                        best, choice = score, (i, j)
        if best is not None:
            return choice
    raise SingularMatrix


def _filled(held: dict[int, int], i: int, rows: set[int], most: int | None) -> int:
    """How many entries row i fills in others, or, if they are more than `most`, some number above it."""
    row, total = held[i], 0
    for k in rows:
        total += (row & ~held[k]).bit_count()
        if most is not None and total > most:
            break
    return total


def _held(active: list[dict[int, np.ndarray]], holders: list[set[int]], columns: list[int]) -> dict[int, int]:
    """The columns of every row that some columns have, as the bits of a number."""
    return {i: sum(1 << column for column in active[i]) for i in set().union(*(holders[j] for j in columns))}


def backward_errors(
    order: PivotOrder,
    rows: np.ndarray,
    columns: np.ndarray,
    samples: np.ndarray,
    size: int,
    lasting: np.ndarray | None = None,
) -> np.ndarray:
    """The backward error of a solve with each sample of a matrix in this order, which shows how far its elements grow.

    The largest |b - A x| / (|A| |x| + |b|) of all rows (Oettli and Prager 1964) does not depend on the units of rows; nor on
    those of columns, for x is of size one where columns are equilibrated, by the entries that are `lasting` (all, unless told).
    It is infinite where a pivot vanishes, and 0 where the matrix is not finite, so that no order would help.
    """
    finite = np.all(np.isfinite(samples), axis=0)
    errors = np.where(finite, np.inf, 0.0)
    each = 1 if size > DENSE else max(1, MATRIX_ROOM // max(1, size * size))
    members = np.flatnonzero(finite)
    for first in range(0, len(members), each):
        some = members[first : first + each]
        values = samples[:, some]
        present = np.ones(values.shape, dtype=bool) if lasting is None else lasting[:, some]
        row_factors, column_factors = balance(rows, columns, values, present, size)
        balanced = values * present * (row_factors[rows] * column_factors[columns])
        wanted = np.cos(np.arange(size))[:, None] * column_factors * _equilibrate(rows, columns, balanced, size)[2]
        rhs, terms = np.zeros((2, size, len(some)))
        np.add.at(rhs, rows, values * wanted[columns])
        with np.errstate(all="ignore"):  # a vanishing pivot makes x infinite
            x = (_solve_sparse if size > DENSE else _solve_dense)(order, rows, columns, values, rhs)
            left = np.zeros_like(rhs)
            np.add.at(left, rows, values * x[columns])
            np.add.at(terms, rows, np.abs(values * x[columns]))
            ratios = np.abs(rhs - left) / np.maximum(terms + np.abs(rhs), np.finfo(float).tiny)
        errors[some] = np.max(np.where(np.isnan(ratios), np.inf, ratios), axis=0, initial=0.0)
    return errors


def _solve_dense(order: PivotOrder, rows: np.ndarray, columns: np.ndarray, samples: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """x of A x = rhs for each sample of A, all of them eliminated side by side without a choice of pivots."""
    size, count = rhs.shape
    matrices = np.zeros((count, size, size))
    matrices[:, rows, columns] = samples.T
    rest, y = matrices[:, order.rows, :][:, :, order.columns], rhs.T[:, order.rows].copy()
    for k in range(size):
        below = k + 1 + np.flatnonzero(np.any(rest[:, k + 1 :, k], axis=0))
        right = k + 1 + np.flatnonzero(np.any(rest[:, k, k + 1 :], axis=0))
        factors = rest[:, below, k] / rest[:, k, k, None]
        rest[:, below[:, None], right] -= factors[:, :, None] * rest[:, k, right][:, None, :]
        y[:, below] -= factors * y[:, k, None]
    for k in reversed(range(size)):
        y[:, k] = (y[:, k] - np.einsum("mj,mj->m", rest[:, k, k + 1 :], y[:, k + 1 :])) / rest[:, k, k]
    x = np.empty_like(rhs)
    x[list(order.columns)] = y.T
    return x


def _solve_sparse(order: PivotOrder, rows: np.ndarray, columns: np.ndarray, samples: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The same for one large matrix."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu  # SciPy takes a third of the time of importing the library

    size = len(rhs)
    row_position, column_position = np.argsort(order.rows), np.argsort(order.columns)
    permuted = csc_array((samples[:, 0], (row_position[rows], column_position[columns])), shape=(size, size))
    x = np.full_like(rhs, np.nan)
    try:
        factors = splu(permuted, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"Equil": False})
    except RuntimeError:  # singular
        return x
    if np.array_equal(factors.perm_r, np.arange(size)):  # else a pivot was zero
        x[list(order.columns), 0] = factors.solve(rhs[list(order.rows), 0])
    return x


def diagonal_order(matrix: ca.SX) -> PivotOrder:
    """An order for matrices that are close to positive definite: pivots on the diagonal, chosen for little fill."""
    return _diagonal_order(matrix.shape[0], *(tuple(places) for places in matrix.sparsity().get_triplet()))


@lru_cache(maxsize=8)  # a step asks for that of one pattern at several positions
def _diagonal_order(size: int, rows: tuple[int, ...], columns: tuple[int, ...]) -> PivotOrder:
    i, j = np.array(rows, dtype=int), np.array(columns, dtype=int)
    order = choose_pivots(i, j, np.where(i == j, 1.0, 1e-3)[:, None], size)
    return replace(order, rows=order.columns)  # SuperLU need not have taken the diagonal


def reciprocal_pivots(matrix: ca.SX) -> ca.SX:
    """The reciprocal pivot of every row of a matrix that is close to positive definite."""
    order = diagonal_order(matrix)
    found = dict(zip(order.rows, eliminate(matrix, order)[0], strict=True))
    return ca.vertcat(ca.SX(0, 1), *(found[row] for row in range(matrix.shape[0])))


def sign_of_pivots(matrix: ca.SX, reciprocals: ca.SX) -> ca.SX:
    """The sign of det(matrix), given its reciprocal pivots; 0 where one is `SINGULAR`."""
    sign, worst = ca.SX(1), ca.SX(0)
    for k in range(matrix.shape[0]):
        sign *= ca.sign(reciprocals[k])
        worst = ca.fmax(worst, ca.fabs(reciprocals[k] * matrix[k, k]))
    return ca.if_else(worst < 1 / SINGULAR, sign, 0)


Rows = list[dict[int, ca.SX]]


def eliminate(A: ca.SX, order: PivotOrder) -> tuple[list[ca.SX], Rows, Rows]:
    """Symbolic A = L D U: reciprocal pivots 1/D, rows of L (by earlier pivot) and of U (by later pivot), in pivot order.

    L and U have unit diagonals, so that each level of `substitute` waits for one multiplication and addition only.
    """
    position = {column: k for k, column in enumerate(order.columns)}
    entries: Rows = [{} for _ in range(A.shape[0])]
    rows, columns = A.sparsity().get_triplet()
    for nonzero, (i, j) in enumerate(zip(rows, columns, strict=True)):
        entries[i][position[j]] = A.nz[nonzero]
    mirrored = order.rows == order.columns and is_symmetric(A)
    reciprocals: list[ca.SX] = []
    lower: Rows = []
    upper: Rows = []
    for k, i in enumerate(order.rows):
        row, factors = entries[i], {}
        if mirrored:  # what lies left of the diagonal is what lies above it
            row = {j: upper[j][k] for j in range(k) if k in upper[j]} | {j: value for j, value in row.items() if j >= k}
        while any(j < k for j in row):
            j = min(row)
            factor = multiply(row.pop(j), reciprocals[j])
            factors[j] = factor
            for column, value in upper[j].items():
                if not mirrored or column >= k:
                    row[column] = subtract(row[column], multiply(factor, value)) if column in row else multiply(-factor, value)
        reciprocals.append(1 / row.pop(k))
        lower.append(factors)
        upper.append(row)
    unit = [
        {j: multiply(value, reciprocal) for j, value in row.items()} for row, reciprocal in zip(upper, reciprocals, strict=True)
    ]
    return reciprocals, lower, unit


def name_factors(
    reciprocals: list[ca.SX], lower: Rows, upper: Rows
) -> tuple[list[ca.SX], Rows, Rows, list[tuple[ca.SX, ca.SX]]]:
    """Give each factor that is not a constant a symbol, pivots first; `stored` pairs the symbols with their values."""
    stored: list[tuple[ca.SX, ca.SX]] = []

    def name(value: ca.SX) -> ca.SX:
        if value.is_constant():
            return value
        stored.append((ca.SX.sym("factor"), value))
        return stored[-1][0]

    named = [name(value) for value in reciprocals]
    named_lower, named_upper = ([{j: name(value) for j, value in row.items()} for row in part] for part in (lower, upper))
    return named, named_lower, named_upper, stored


def is_symmetric(A: ca.SX) -> bool:
    """Whether entries on both sides of the diagonal are the same expressions."""
    rows, columns = A.sparsity().get_triplet()
    hashes = {place: A.nz[k].element_hash() for k, place in enumerate(zip(rows, columns, strict=True))}
    return all(hashes.get((j, i)) == value for (i, j), value in hashes.items())


def substitute(reciprocals: list[ca.SX], lower: Rows, upper: Rows, order: PivotOrder, rhs: ca.SX) -> ca.SX:
    """Solve A x = rhs with the factors of `eliminate`; in each sum, the term that is ready last comes last."""
    y: list[ca.SX] = []
    for k, i in enumerate(order.rows):
        value = rhs[i]
        for j in sorted(lower[k]):
            value = subtract(value, multiply(lower[k][j], y[j]))
        y.append(value)
    x: list[ca.SX] = [ca.SX(0)] * len(y)
    for k in reversed(range(len(y))):
        value = multiply(y[k], reciprocals[k])
        for j in sorted(upper[k], reverse=True):
            value = subtract(value, multiply(upper[k][j], x[j]))
        x[k] = value
    result: list[ca.SX] = [ca.SX(0)] * len(y)
    for k, column in enumerate(order.columns):
        result[column] = x[k]
    return ca.vertcat(*result)


def filled_pattern(rows: np.ndarray, columns: np.ndarray, order: PivotOrder) -> dict[str, np.ndarray]:
    """Compressed rows of L and U together, in pivot order, for elimination at run time.

    `row_start`, `diagonal` and `column` describe the pattern that elimination fills, `scatter` says where in it each entry of
    the matrix goes, `rows` and `columns` are the pivot order.
    """
    from dalembert.compiler._passes import fill, targets  # Numba is loaded where loops are compiled, not before

    size = len(order.rows)
    row_position, column_position = np.argsort(np.array(order.rows)), np.argsort(np.array(order.columns))
    places = row_position[rows] * size + column_position[columns]
    given = np.unique(places)
    starts, diagonal, column = fill(np.searchsorted(given, size * np.arange(size + 1)), given % size)
    filled = np.repeat(np.arange(size), np.diff(starts)) * size + column
    return {"row_start": starts, "diagonal": diagonal, "column": column, "scatter": np.searchsorted(filled, places),
            "rows": np.array(order.rows), "columns": np.array(order.columns),
            "target": _in_spans(targets(starts, diagonal, column), starts, diagonal, column)}  # fmt: skip


def _in_spans(target: np.ndarray, starts: np.ndarray, diagonal: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Targets as pairs of a first one and a length, row by row that is subtracted, if that shortens the table much.

    It does where much is filled, as in nets; there the time goes into reading it.
    """
    row = np.repeat(np.arange(len(diagonal)), np.diff(starts))
    subtracted = column[column < row]
    ends = np.cumsum(starts[subtracted + 1] - diagonal[subtracted] - 1)
    begins = np.append(True, np.diff(target) != 1)[: len(target)]
    begins[ends[ends < len(target)]] = True
    first = np.flatnonzero(begins)
    return np.stack([target[first], np.diff(first, append=len(target))], axis=1) if SPAN * len(first) < len(target) else target


SPARSE = (
    "size", "n_entries", "entries", "rhs", "filled", "row_start", "diagonal", "column", "scatter", "rows", "columns", "target",
    "spans",
)  # fmt: skip
"""What describes a matrix that is eliminated at run time: sizes, slots of memory, where its tables begin; whether `target` has
pairs."""


def describe(tables: list[np.ndarray], pattern: dict[str, np.ndarray], **slots: int) -> int:
    """Append the tables of a matrix, and before them their description; where that lies."""
    first = sum(len(table) for table in tables)
    spans = pattern["target"].ndim == 2
    places, sizes = {}, {"size": len(pattern["rows"]), "n_entries": len(pattern["scatter"]), "spans": int(spans)}
    following = first + len(SPARSE)
    for name, table in pattern.items():
        places[name] = following
        following += table.size
    known = sizes | slots | places
    tables += [np.array([known[name] for name in SPARSE]), *(table.ravel() for table in pattern.values())]
    return first
