"""Systems of many bodies: nothing is a full matrix, and what is computed is what full matrices, or formulas, give."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import dalembert as da
from dalembert.errors import InconsistentStart, ModelError
from dalembert.systems import _matrices as matrices
from dalembert.systems._rank import smallest_singular_value

MASS, GRAVITY, LENGTH = 0.2, 9.81, 0.05
LINKS = 310
"""Just more than full matrices are made for: 600 variables, 300 constraints."""


def hanging_chain(links, **changes):
    return da.problems.chain(links=links, **{"m": MASS, "g": GRAVITY, "length": LENGTH, "sag": 0.0} | changes)


@pytest.fixture(scope="module")
def chain():
    return hanging_chain(LINKS)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 30))
def test_sparse_linear_algebra_is_that_of_numpy(seed, n):
    random = np.random.default_rng(seed)
    full = np.where(random.random((n, n)) < 0.4, random.standard_normal((n, n)), 0.0) + np.diag(random.uniform(1, 3, n))
    full *= 10.0 ** random.uniform(-6, 6, (n, 1))
    sparse, rhs = sp.csr_array(full), random.standard_normal(n)
    np.testing.assert_allclose(matrices.row_norms(sparse), np.linalg.norm(full, axis=1))
    np.testing.assert_allclose(matrices.row_sums(sparse), np.abs(full).sum(axis=1))
    np.testing.assert_allclose(matrices.row_maxima(sparse), np.abs(full).max(axis=1))
    assert matrices.determinant_sign(sparse) == np.linalg.slogdet(full)[0]
    if np.linalg.cond(full / np.linalg.norm(full, axis=1, keepdims=True)) < 1e8:
        assert matrices.well_conditioned(sparse)
        np.testing.assert_allclose(matrices.solve(sparse, rhs), np.linalg.solve(full, rhs), rtol=1e-6)
    definite = full @ full.T / np.outer(*[np.linalg.norm(full, axis=1)] * 2) + np.eye(n)
    pivots = matrices.definite_pivots(sp.csr_array(definite))
    assert np.prod(pivots) == pytest.approx(np.linalg.det(definite))


@pytest.mark.parametrize("gap", [1e-3, 1e-7, 1e-12])
def test_the_smallest_singular_value_of_a_sparse_matrix(gap):
    """Also far below the square root of the rounding error; the combination that attains it names the rows."""
    random = np.random.default_rng(5)
    rows = sp.random_array((60, 150), density=0.05, rng=random, data_sampler=random.standard_normal) + sp.eye_array(60, 150)
    rows = sp.csr_array(rows / sp.linalg.norm(rows, axis=1)[:, None])
    rows = rows.tolil()
    rows[17] = (rows[3] + rows[41]) / 2 + gap * rows[20]
    rows = rows.tocsr()
    wanted = np.linalg.svd(rows.toarray(), compute_uv=False)[-1]
    found, combination = matrices.least_combination(rows)
    assert found == pytest.approx(wanted, rel=0.1, abs=1e-14)
    assert smallest_singular_value(rows) == pytest.approx(smallest_singular_value(rows.toarray()), rel=0.1, abs=1e-14)
    if gap < 1e-6:
        assert set(np.flatnonzero(np.abs(combination) > 1e-3)) == {3, 17, 41}


def test_singular_matrices_are_no_better_when_sparse():
    singular = sp.csr_array(np.diag([1.0, 2.0, 0.0, 1.0]) + np.diag([1.0, 0.0, 0.0], 1))
    assert not matrices.well_conditioned(singular)
    assert matrices.determinant_sign(singular) == 0
    assert matrices.definite_pivots(sp.csr_array(np.array([[1.0, 2.0], [2.0, 1.0]]))) is None
    with pytest.raises(np.linalg.LinAlgError):
        matrices.solve(singular, np.ones(4))


def test_multipliers_of_a_hanging_chain_carry_what_hangs_below(chain):
    """At rest the force in link i is the weight of the masses below it, i = 1..N."""
    weights = MASS * GRAVITY * np.arange(LINKS, 0, -1)
    state = da.consistent(chain.system, q0=chain.q0, p0=chain.p0)
    np.testing.assert_allclose(state.lam, weights, rtol=1e-10)
    run = da.simulate(chain, da.Rattle(), h=1e-3, steps=3)
    np.testing.assert_allclose(run.lam, np.tile(weights, (4, 1)), rtol=1e-9)
    np.testing.assert_allclose(run.q, np.tile(chain.q0, (4, 1)), atol=1e-13)
    assert run.lam_unique


def test_a_large_guess_is_projected_orthogonally(chain):
    """q - q0 is M^-1 G^T mu for some mu, and the velocity is what is left of v0 without its normal part."""
    random = np.random.default_rng(2)
    q0 = chain.q0 + 1e-4 * random.standard_normal(len(chain.q0))
    v0 = random.standard_normal(len(q0))
    state = da.consistent(chain.system, q0=q0, v0=v0)
    assert np.abs(state.residuals["g"]).max() < 1e-13
    assert np.abs(state.residuals["g_dot"]).max() < 1e-12
    G = chain.system.evaluate("G", 0.0, state.q)  # all masses are equal
    for moved, size in ((state.q - q0, 1e-4), (state.v - v0, 1.0)):
        normal = G.T @ np.linalg.solve(G @ G.T, G @ moved)
        np.testing.assert_allclose(moved, normal, atol=1e-9 * size)


def test_what_a_start_allocates_grows_linearly():
    def allocated(links):
        problem = hanging_chain(links, sag=0.2)
        tracemalloc.start()
        da.consistent(problem.system, q0=problem.q0, p0=problem.p0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert allocated(2400) < 5 * allocated(600)


def test_matrices_of_a_large_system_have_as_many_entries_as_links(chain):
    small = hanging_chain(100).system
    for name in ("G", "g_yy", "hidden_y", "hidden_z", "directions", "multiplier_matrix", "H_pp"):
        few, many = (system.function(name).nnz_out(0) for system in (small, chain.system))
        assert many <= 4.1 * few, name
        assert chain.system.evaluate(name, *_arguments(chain.system, name)).shape == chain.system.function(name).size_out(0)


def _arguments(system, name):
    sizes = {"t": 1, "y": system.dim, "z": system.dim, "lam": system.n_holonomic, "psi": 0}
    return [np.ones(sizes[argument]) for argument in system.arguments(name)]


def chain_with(more, links=LINKS):
    """A chain with rows beside those of its links, and where it begins, at rest along x."""
    points = LENGTH * np.stack([np.arange(links + 1), np.zeros(links + 1)], axis=1)

    def distances(q):
        r = np.concatenate([[0.0, 0.0], q]).reshape(-1, 2)
        d = np.sum((r[1:] - r[:-1]) ** 2, axis=1)
        return [*(d - LENGTH**2), *more(d)]

    system = da.Hamiltonian(lambda q, p: p @ p / (2 * MASS) + MASS * GRAVITY * np.sum(q[1::2]), 2 * links, holonomic=distances)
    return system, {"q0": points[1:].ravel(), "p0": np.zeros(2 * links)}


def test_redundant_rows_of_a_large_system():
    """Two rows for one link, and one for the sum of three others: the chain moves as without them, lam shares the forces."""
    system, start = chain_with(lambda d: [2 * d[123] - 2 * LENGTH**2, d[7] + d[8] + d[9] - 3 * LENGTH**2])
    run = da.simulate(system, da.Rattle(), **start, h=1e-3, steps=20, save_every=10)
    assert np.abs(run.residuals["g"]).max() < 1e-15 and not run.lam_unique
    links, alone = slice(LINKS), []  # without the other rows
    for k, t in enumerate(run.t):
        matrix, rhs = (system.evaluate(f"multiplier_{part}", t, run.q[k], run.p[k]) for part in ("matrix", "rhs"))
        alone.append(np.linalg.solve(matrix[links, links], rhs[links]))
    # Of all (a, b) with a + 2 b = lam the shortest is lam (1, 2) / 5; of all (a, c) with a_i + c = lam_i c is mean(lam) 3/4.
    lam = np.array(alone)
    np.testing.assert_allclose(run.lam[:, [123, LINKS]], lam[:, [123]] * [0.2, 0.4], rtol=1e-9, atol=1e-9 * np.abs(lam).max())
    np.testing.assert_allclose(run.lam[:, LINKS + 1], lam[:, 7:10].sum(axis=1) / 4, rtol=1e-9, atol=1e-9 * np.abs(lam).max())


def test_contradictory_rows_of_a_large_system_are_refused_by_name():
    wrong, start = chain_with(lambda d: [2 * d[123] - 2.02 * LENGTH**2])
    with pytest.raises(InconsistentStart, match=rf"holonomic\[123\] and holonomic\[{LINKS}\] contradict each other"):
        da.simulate(wrong, da.Rattle(), **start, h=1e-3, steps=1)


def test_a_massless_coordinate_of_a_large_lagrangian_is_refused():
    n = 700
    masses = np.where(np.arange(n) == 350, 0.0, MASS)
    system = da.Lagrangian(lambda q, v, m: m @ (v * v) / 2 - q @ q / 2, dim=n, params={"m": masses})
    with pytest.raises(ModelError, match="L_vv is singular"):
        da.simulate(system, da.Rattle(), q0=np.ones(n), v0=np.zeros(n), h=1e-3, steps=1)


def test_dense_output_of_a_large_chain():
    """At the ends of steps the polynomials of the method are the stored states."""
    run = da.simulate(hanging_chain(301, sag=0.3), da.LobattoIIIAB(stages=2), h=1e-3, steps=2)
    np.testing.assert_allclose(run.at(run.t[1], side="left").q, run.q[1], atol=1e-12)


def test_estimates_of_condition_numbers_leave_the_random_numbers_of_the_user_alone():
    n = 700
    matrix = sp.csr_array(sp.diags_array([np.full(n - 1, -1.0), np.full(n, 2.1), np.full(n - 1, -1.0)], offsets=[-1, 0, 1]))
    estimates = []
    for seed in (3, 4):
        np.random.seed(seed)
        expected = np.random.RandomState(seed).random(3)
        estimates.append(matrices.condition_number(matrix))
        np.testing.assert_array_equal(np.random.random(3), expected)
    assert estimates[0] == estimates[1] == pytest.approx(np.linalg.cond(matrix.toarray(), 1), rel=0.5)
