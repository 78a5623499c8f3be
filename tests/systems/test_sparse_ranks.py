"""Dependencies between the rows of sparse matrices: how many there are is known from how the matrices are made."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from dalembert.systems._circuits import circuits
from dalembert.systems._matrices import balanced
from dalembert.systems._rank import dependencies, smallest_singular_value

MATRICES = 30


def matrix(seed: int, kind: str) -> tuple[np.ndarray, int]:
    """Sparse rows and combinations of them, and how many of these there are.

    With "units" rows and columns have such of their own, over 8 and 4 decades; "wild" entries have 6 more by themselves.
    """
    random, wild = np.random.default_rng([seed, 7]), kind == "wild"
    rank = int(random.integers(5, 60))
    n, dependent = int(rank * random.uniform(1.05, 1.8)) + 2, int(random.integers(1, max(2, rank // 3)))
    rows, mixed = np.zeros((rank, n)), np.zeros((dependent, rank))
    for row in rows:
        places = random.choice(n, size=int(random.integers(2, 7)), replace=False)
        row[places] = random.standard_normal(len(places)) * 10.0 ** (wild * random.uniform(-3, 3, len(places)))
    for row in mixed:
        places = random.choice(rank, size=int(random.integers(1, 6)), replace=False)
        row[places] = random.standard_normal(len(places)) * 10.0 ** random.uniform(-1, 1, len(places))
    made = np.vstack([rows, mixed @ rows])
    if kind != "plain":
        made *= 10.0 ** random.uniform(-4, 4, (len(made), 1)) * 10.0 ** random.uniform(-2, 2, (1, n))
    return made[random.permutation(len(made))], dependent


@pytest.mark.parametrize("kind", ["plain", "units", "wild"])
def test_the_dependencies_of_random_sparse_matrices_are_counted_right(kind: str) -> None:
    judged = 0
    for seed in range(MATRICES):
        made, count = matrix(seed, kind)
        values = np.sort(np.linalg.svd(balanced(made)[0], compute_uv=False))[::-1]
        if kind == "wild" and values[len(made) - count - 1] < 1e-6:
            continue  # entries over so many decades may make rows that are independent almost parallel
        judged += 1
        sparse = csr_array(made)
        N, factors = dependencies(sparse)
        assert len(circuits(sparse)) == N.shape[1] == dependencies(made)[0].shape[1] == count, seed
        assert smallest_singular_value(sparse) < 1e-9, seed
        unitless = made * factors[:, None]
        unitless /= np.maximum(np.abs(unitless).max(axis=0), 1e-300)
        assert np.all(np.abs(N.T @ unitless) <= 1e-8 * abs(N).max(axis=0).toarray().reshape(-1, 1)), seed
    assert judged > MATRICES / 2


@pytest.mark.parametrize("size", [1e-4, 1e-7, 1e-10, 1e-13])
def test_a_row_that_almost_depends_on_others_is_judged_as_singular_values_judge_it(size: float) -> None:
    """A tenth row, the sum of the others but for a small entry."""
    random = np.random.default_rng(3)
    rows = np.zeros((10, 30))
    for k in range(9):
        rows[k, [3 * k, 3 * k + 1, (3 * k + 3) % 27]] = random.standard_normal(3)
    rows[0, 29] = 1.0  # so that the column has a unit
    rows[9] = rows[:9].sum(axis=0)
    rows[9, 29] += size
    least = np.linalg.svd(balanced(rows)[0], compute_uv=False)[-1]
    assert len(circuits(csr_array(rows))) == len(circuits(rows)) == int(least < 1e-9)
