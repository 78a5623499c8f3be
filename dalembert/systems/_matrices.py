"""Linear algebra on matrices of any size: full ones with LAPACK, those of large systems sparse, with SuperLU.

Which of both a matrix is follows from its type alone (`System.matrix`), so that nobody else needs to ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import SuperLU

Matrix = Any
"""A two-dimensional `np.ndarray`, or a `scipy.sparse.csr_array`."""

LARGEST_CONDITION = 1e14

SWEEPS = 6
"""How often an inverse iteration is repeated."""

TINY = 4e-15
"""A row that is smaller than this, compared with the largest, or an entry, compared with the largest of its row, is a rounding
error of something that vanishes in this state: it must not be scaled up."""


def sparse_matrix(value: ca.DM) -> csr_array:
    """The numbers of a CasADi matrix, those that are zero by structure left out."""
    from scipy.sparse import csc_array  # SciPy takes a third of the time of importing the library

    pattern = value.sparsity()
    column_starts, rows = (np.array(part, dtype=np.int32) for part in (pattern.colind(), pattern.row()))
    return csc_array((np.array(value.nonzeros(), dtype=float), rows, column_starts), shape=value.shape).tocsr()


@dataclass(frozen=True, eq=False)
class Matrices:
    """Many sparse matrices of one pattern."""

    shape: tuple[int, int]
    row: np.ndarray
    column_start: np.ndarray
    values: np.ndarray
    """One row a matrix, one column an entry."""

    @classmethod
    def of(cls, pattern: ca.Sparsity, values: np.ndarray) -> Matrices:
        """Matrices with these values at the nonzeros of a pattern."""
        row, start = (np.array(part, dtype=np.int32) for part in (pattern.row(), pattern.colind()))
        return cls(pattern.shape, row, start, values)

    def full(self) -> np.ndarray:
        """All entries, one matrix after the other."""
        result = np.zeros((len(self.values), *self.shape))
        result[:, self.row, np.repeat(np.arange(self.shape[1]), np.diff(self.column_start))] = self.values
        return result

    def solve_each(self, rhs: np.ndarray) -> np.ndarray:
        """The solution of each system, one a row; nan where there is none."""
        from scipy.sparse import csc_array

        result = np.full_like(rhs, np.nan)
        for k, (values, right) in enumerate(zip(self.values, rhs, strict=True)):
            try:
                result[k] = solve(csc_array((values, self.row, self.column_start), shape=self.shape), right)
            except np.linalg.LinAlgError:
                continue
        return result


def is_sparse(matrix: Matrix) -> bool:
    """Whether a matrix is stored without its zeros."""
    return not isinstance(matrix, np.ndarray)


def entries(matrix: Matrix) -> np.ndarray:
    """All entries of a matrix that are stored."""
    return matrix.data if is_sparse(matrix) else matrix.ravel()


def identity(n: int, like: Matrix) -> Matrix:
    """The unit matrix, of the same kind as another matrix."""
    if not is_sparse(like):
        return np.eye(n)
    from scipy.sparse import eye_array

    return eye_array(n, format="csr")


def block_matrix(parts: list[list[Matrix]]) -> Matrix:
    """One matrix of several."""
    if not any(is_sparse(part) for row in parts for part in row):
        return np.block(parts)
    from scipy.sparse import block_array

    return block_array(parts, format="csr")


def row_sums(matrix: Matrix) -> np.ndarray:
    """The sum of the absolute values of each row."""
    return np.asarray(abs(matrix).sum(axis=1)).ravel()


def row_norms(matrix: Matrix) -> np.ndarray:
    """The Euclidean norm of each row."""
    if not is_sparse(matrix):
        return np.linalg.norm(matrix, axis=1)
    largest = row_maxima(matrix)
    scaled = scaled_rows(matrix, 1 / np.where(largest > 0, largest, 1.0))
    return largest * np.sqrt(np.asarray((scaled * scaled).sum(axis=1)).ravel())


def row_maxima(matrix: Matrix) -> np.ndarray:
    """The largest absolute value of each row."""
    if not is_sparse(matrix):
        return np.max(np.abs(matrix), axis=1, initial=0.0)
    return abs(matrix).max(axis=1).toarray().ravel() if matrix.nnz else np.zeros(matrix.shape[0])


def scaled_rows(matrix: Matrix, factors: np.ndarray) -> Matrix:
    """Each row times a factor."""
    return matrix * factors[:, None] if not is_sparse(matrix) else matrix.multiply(factors[:, None]).tocsr()


def scaled(matrix: Matrix, rows: np.ndarray, columns: np.ndarray) -> Matrix:
    """Each row and each column times a factor."""
    return scaled_rows(scaled_rows(matrix, rows).T, columns).T


def without_rounding(matrix: Matrix) -> Matrix:
    """The matrix without entries that are rounding errors of something that vanishes."""
    sizes = row_maxima(matrix)
    if is_sparse(matrix):
        small = np.abs(matrix.data) < TINY * np.repeat(sizes, np.diff(matrix.indptr))
        return type(matrix)((np.where(small, 0.0, matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.where(np.abs(matrix) < TINY * sizes[:, None], 0.0, matrix)


def balanced(matrix: Matrix) -> tuple[Matrix, np.ndarray]:
    """The matrix with scaled columns and rows of norm 1 (zero where they are tiny), and the factors of the rows."""
    sizes = row_maxima(matrix)
    matrix = scaled_rows(without_rounding(matrix), np.where(sizes < TINY * np.max(sizes, initial=0.0), 0.0, 1.0))
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


def is_finite(matrix: Matrix) -> bool:
    """Whether all entries are numbers."""
    return bool(np.all(np.isfinite(entries(matrix))))


def solve(matrix: Matrix, rhs: np.ndarray) -> np.ndarray:
    """matrix^-1 rhs; a LinAlgError where there is no solution."""
    return np.linalg.solve(matrix, rhs) if not is_sparse(matrix) else _factors(matrix).solve(rhs)


def least_norm_solution(matrix: Matrix, rhs: np.ndarray) -> np.ndarray:
    """The least x with matrix x = rhs, or where rows contradict each other that of least squares.

    Of a sparse matrix up to 1e-14 / s^2, s being its least singular value with rows normalised: to be repeated.
    """
    if not is_sparse(matrix):
        return np.linalg.lstsq(matrix, rhs, rcond=None)[0]
    rows, columns = matrix.shape
    sizes = _nonzero(row_norms(matrix))
    matrix = scaled_rows(matrix, 1 / sizes)
    whole = block_matrix([[identity(columns, matrix), matrix.T], [matrix, -1e-14 * identity(rows, matrix)]])
    return solve(whole, np.concatenate([np.zeros(columns), rhs / sizes]))[:columns]


def _factors(matrix: Matrix, **options: Any) -> SuperLU:
    from scipy.sparse.linalg import splu

    if not is_finite(matrix):
        raise np.linalg.LinAlgError("the matrix is not finite")
    try:
        return splu(matrix.tocsc(), **options)
    except RuntimeError as error:
        raise np.linalg.LinAlgError(str(error)) from None


def well_conditioned(matrix: Matrix) -> bool:
    """Whether a matrix is finite and regular, whatever the units of its rows and columns."""
    if not is_finite(matrix) or not np.all(row_maxima(matrix)) or not np.all(row_maxima(matrix.T)):
        return False
    for _ in range(8):
        for _ in range(2):  # rows, then columns
            matrix = scaled_rows(matrix, 1 / np.sqrt(row_maxima(matrix))).T
    return condition_number(matrix) < LARGEST_CONDITION


def condition_number(matrix: Matrix) -> float:
    """The condition number in the Euclidean norm, of sparse matrices an estimate of that in the 1-norm."""
    if not is_sparse(matrix):
        return float(np.linalg.cond(matrix))
    from scipy.sparse.linalg import LinearOperator, onenormest

    try:
        factors = _factors(matrix)
    except np.linalg.LinAlgError:
        return np.inf
    inverse = LinearOperator(matrix.shape, factors.solve, rmatvec=lambda x: factors.solve(x, "T"), dtype=float)
    # t = 1: with more columns SciPy draws from NumPy's global generator, which belongs to the user and to all threads
    return float(onenormest(inverse, t=1) * abs(matrix).sum(axis=0).max())


def definite_pivots(matrix: Matrix) -> np.ndarray | None:
    """The squared diagonal of Cholesky's factor of a symmetric matrix, in some order; None if it is not positive definite."""
    if not is_sparse(matrix):
        try:
            return np.diag(np.linalg.cholesky(matrix)) ** 2
        except np.linalg.LinAlgError:
            return None
    pivots = diagonal_pivots(matrix)
    return pivots if pivots is not None and np.all(pivots > 0) else None


def diagonal_pivots(matrix: Matrix) -> np.ndarray | None:
    """The pivots of all rows if those of the diagonal are taken, in an order of little fill; None where one vanishes."""
    from scipy.sparse import csr_array

    try:
        options = {"SymmetricMode": True}
        factors = _factors(csr_array(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except np.linalg.LinAlgError:
        return None
    return factors.U.diagonal()[factors.perm_r] if np.array_equal(factors.perm_r, factors.perm_c) else None


def determinant_sign(matrix: Matrix) -> float:
    """The sign of the determinant; 0 of a singular matrix, nan of one that is not finite."""
    if not is_sparse(matrix):
        return float(np.linalg.slogdet(matrix)[0])
    if not is_finite(matrix):
        return np.nan
    try:
        factors = _factors(matrix)
    except np.linalg.LinAlgError:
        return 0.0
    signs = np.sign(factors.U.diagonal())
    return float(np.prod(signs)) * _parity(factors.perm_r) * _parity(factors.perm_c)


def _parity(permutation: np.ndarray) -> int:
    """The sign of a permutation: each cycle of even length changes it."""
    seen, sign, following = np.zeros(len(permutation), dtype=bool), 1, permutation.tolist()
    for first in range(len(following)):
        length, at = 0, first
        while not seen[at]:
            seen[at], at, length = True, following[at], length + 1
        sign = -sign if length and length % 2 == 0 else sign
    return sign


def least_combination(matrix: Matrix) -> tuple[float, np.ndarray]:
    """The smallest singular value of a sparse matrix, and the combination of rows that attains it.

    By inverse iteration with G G^T, of which rounding errors leave the squares of singular values below 1e-8 undetermined; but
    the combination x that it finds tells them by |G^T x|.
    """
    n = matrix.shape[0]
    x = np.random.default_rng(1788).standard_normal(n)
    square = matrix @ matrix.T
    square = square + 1e-14 * np.max(square.diagonal()) * identity(n, matrix)
    try:
        factors = _factors(square, permc_spec="MMD_AT_PLUS_A")
    except np.linalg.LinAlgError:
        return 0.0, x
    for _ in range(SWEEPS):
        x = factors.solve(x / np.linalg.norm(x))
    x = x / np.linalg.norm(x)
    return float(np.linalg.norm(matrix.T @ x)), x
