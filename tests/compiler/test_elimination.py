"""Elimination in a fixed pivot order, symbolic and at run time, against LAPACK."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dalembert as da
from dalembert.compiler import SingularMatrix, _elimination, _orders
from dalembert.compiler._elimination import (
    PivotOrder,
    backward_errors,
    choose_pivots,
    describe,
    diagonal_order,
    eliminate,
    filled_pattern,
    substitute,
)
from dalembert.compiler._program import reduced_step
from dalembert.compiler._reduction import reduce_step
from dalembert.compiler._samples import neighbours
from dalembert.compiler._tape import read_tape
from dalembert.engine import _sparse_solve as sparse_solve


def entries(A):
    """Rows, columns and values of the nonzeros, in CasADi's order (by columns), which the library uses."""
    columns, rows = np.nonzero(A.T)
    return rows, columns, A[rows, columns]


def order_of(A, *more):
    rows, columns, values = entries(A)
    samples = np.column_stack([values, *(B[rows, columns] for B in more)])
    return choose_pivots(rows, columns, samples, len(A))


def solve_symbolically(A, b, order):
    """x of A x = b and the pivots, by the straight-line formulas, with every nonzero of A a symbol."""
    rows, columns, values = entries(A)
    pattern = ca.Sparsity.triplet(len(A), len(A), rows.tolist(), columns.tolist())
    symbols, rhs = ca.SX.sym("a", len(values)), ca.SX.sym("b", len(A))
    factors = eliminate(ca.SX(pattern, symbols), order)
    solve = ca.Function("solve", [symbols, rhs], [substitute(*factors, order, rhs), ca.vertcat(*factors[0])])
    x, reciprocals = solve(values, b)
    return np.asarray(x).ravel(), 1 / np.asarray(reciprocals).ravel()


def solve_at_run_time(A, b, order):
    """The same by the compiled loops of the engine, on a memory block laid out as a run lays it out."""
    rows, columns, values = entries(A)
    pattern, tables = filled_pattern(rows, columns, order), []
    n, n_entries = len(A), len(values)
    first = describe(tables, pattern, entries=n, rhs=0, filled=n + n_entries)
    index = np.concatenate(tables).astype(np.int64)
    memory = np.concatenate([b, values, np.full(len(pattern["column"]), np.nan)])
    work = np.full(n, np.nan)
    sign = sparse_solve.eliminate(memory, index, first)
    pivots = 1 / memory[n + n_entries + pattern["diagonal"]]
    assert sign == np.prod(np.sign(pivots))
    sparse_solve.substitute(memory, index, first, work)
    x = np.empty(n)
    x[np.array(order.columns)] = work
    return x, pivots


def sparse(random, n, density):
    """A regular matrix: a random permutation plus random entries."""
    A = random.normal(size=(n, n)) * (random.random((n, n)) < density)
    A[np.arange(n), random.permutation(n)] += random.choice([-1, 1], n) * random.uniform(1, 2, n)
    return A


def saddle_point(random, n, m):
    """[M G^T; G 0]: what constraints make of a mass matrix."""
    G = random.normal(size=(m, n)) * (random.random((m, n)) < 0.6) + np.eye(m, n)
    return np.block([[np.diag(random.uniform(0.5, 2, n)), G.T], [G, np.zeros((m, m))]])


def zero_diagonal(random, n, m):
    """No usable entry on the diagonal at all."""
    B = random.normal(size=(n, n)) + 2 * np.eye(n)
    return np.block([[np.zeros((n, n)), B], [B.T, np.zeros((n, n))]])


SOLVERS = pytest.mark.parametrize("solve", [solve_symbolically, solve_at_run_time])


def check(A, solve, random):
    condition = np.linalg.cond(A)
    if condition > 1e6:
        return
    b = random.normal(size=len(A))
    order = order_of(A)
    assert sorted(order.rows) == sorted(order.columns) == list(range(len(A)))
    x, pivots = solve(A, b, order)
    wanted = np.linalg.solve(A, b)
    assert np.max(np.abs(x - wanted)) <= 1e-14 * len(A) * condition * np.max(np.abs(wanted))
    assert np.sum(np.log(np.abs(pivots))) == pytest.approx(np.linalg.slogdet(A)[1], abs=1e-8)


@SOLVERS
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 14), st.floats(0, 1))
def test_random_sparse_matrix(solve, seed, n, density):
    random = np.random.default_rng(seed)
    check(sparse(random, n, density), solve, random)


@SOLVERS
@pytest.mark.parametrize("build", [saddle_point, zero_diagonal])
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 8), st.data())
def test_matrix_with_zero_blocks(solve, build, seed, n, data):
    random = np.random.default_rng(seed)
    check(build(random, n, data.draw(st.integers(1, n))), solve, random)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_determinant_is_the_product_of_the_pivots(n):
    random = np.random.default_rng(n)
    for _ in range(20):
        A = sparse(random, n, 0.7)
        order = order_of(A)
        for solve in (solve_symbolically, solve_at_run_time):
            pivots = solve(A, np.ones(n), order)[1]
            assert np.prod(np.abs(pivots)) == pytest.approx(np.abs(np.linalg.det(A)), rel=1e-10)


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_symmetric_matrices_take_fewer_operations(n):
    """Where both sides of the diagonal are the same expressions, only one is eliminated; the solution is LAPACK's."""
    random = np.random.default_rng(n)
    A = np.tril(random.normal(size=(n, n)) * (random.random((n, n)) < 0.4)) + 5 * np.eye(n)
    rows, columns, values = entries(A)
    pattern = ca.Sparsity.triplet(n, n, rows.tolist(), columns.tolist())
    symbols, rhs, b = ca.SX.sym("a", len(values)), ca.SX.sym("b", n), random.normal(size=n)
    matrix = ca.tril2symm(ca.SX(pattern, symbols))
    A = A + np.tril(A, -1).T
    order = diagonal_order(matrix)
    mirrored = ca.Function("mirrored", [symbols, rhs], [substitute(*eliminate(matrix, order), order, rhs)])
    np.testing.assert_allclose(np.asarray(mirrored(values, b)).ravel(), np.linalg.solve(A, b), rtol=1e-11, atol=1e-13)
    general = ca.SX(matrix.sparsity(), ca.SX.sym("c", matrix.nnz()))
    unlike = read_tape(ca.Function("f", [ca.veccat(*ca.symvar(general))], [ca.vertcat(*eliminate(general, order)[0])]))
    alike = read_tape(ca.Function("f", [symbols], [ca.vertcat(*eliminate(matrix, order)[0])]))
    assert len(alike.computed) < len(unlike.computed) or order.products < 3


def test_one_order_serves_all_samples():
    """The pivots must stay usable in every sample: here the obvious ones vanish in one of the two."""
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1e-9, 1.0], [0.0, 1.0, 1.0]])
    B = np.array([[1e-9, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1e-9]])
    order = order_of(A, B)
    for matrix in (A, B):
        x, _ = solve_symbolically(matrix, np.array([1.0, 2.0, 3.0]), order)
        np.testing.assert_allclose(x, np.linalg.solve(matrix, [1.0, 2.0, 3.0]), atol=1e-13)  # a pivot 1e-9 costs nine digits


@SOLVERS
def test_rows_of_different_size(solve):
    """Wilkinson's example: a pivot in the row with the huge entry costs ten digits, although it looks as large as the other."""
    A = np.array([[1.0, 1e10], [1.0, 1.0]])
    x, _ = solve(A, np.array([1e10, 2.0]), order_of(A))
    np.testing.assert_allclose(x, [1 / (1 - 1e-10), (1 - 2e-10) / (1 - 1e-10)], rtol=1e-15)


def test_sparse_matrix_stays_sparse():
    """An arrow matrix, eliminated from the wrong end, fills completely; Markowitz's rule keeps it an arrow."""
    n = 40
    A = np.diag(np.full(n, 4.0))
    A[0, :] = A[:, 0] = 1.0
    A[0, 0] = 50.0
    order = order_of(A)
    rows, columns, _ = entries(A)
    assert len(filled_pattern(rows, columns, order)["column"]) == len(rows)
    assert order.products == 2 * (n - 1)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 8), st.tuples(*[st.integers(-30, 30)] * 4))
def test_units_do_not_matter(seed, n, exponents):
    """Masses and lengths in any units: pivots must be judged after scaling."""
    random = np.random.default_rng(seed)
    m = n // 2
    A = saddle_point(random, n, m)
    if np.linalg.cond(A) > 1e4:
        return
    a, b, c, d = (10.0**e for e in exponents)
    left, right = np.repeat([a, b], [n, m]), np.repeat([c, d], [n, m])
    rhs = random.normal(size=n + m)
    scaled = left[:, None] * A * right
    x, _ = solve_symbolically(scaled, left * rhs, order_of(scaled))
    np.testing.assert_allclose(x * right, np.linalg.solve(A, rhs), rtol=1e-9, atol=1e-11)


_rank_one = np.outer([1.0, 2.0, 3.0], [1.0, 4.0, 5.0])
_dependent = np.random.default_rng(5).normal(size=(5, 5))
_dependent[4] = 0.3 * _dependent[0] - 0.7 * _dependent[1]  # singular up to rounding errors
_no_row, _no_column = np.ones((3, 3)), np.ones((3, 3))
_no_row[1], _no_column[:, 2] = 0, 0
_two_identical_constraints = np.array([[1.0, 0, 1, 1], [0, 1, 2, 2], [1, 2, 0, 0], [1, 2, 0, 0]])
SINGULAR = {
    "zero": np.zeros((2, 2)),
    "empty row": _no_row,
    "empty column": _no_column,
    "structurally": np.array([[1.0, 1, 1], [1, 0, 0], [1, 0, 0]]),
    "numerically": _rank_one,
    "up to rounding": _dependent,
    "two identical constraints": _two_identical_constraints,
}


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_matrix_is_refused(name):
    with pytest.raises(SingularMatrix):
        order_of(SINGULAR[name])


def test_pivots_that_almost_vanish_are_refused_without_warnings():
    """In every place one of the two samples has 1e-310, whose reciprocal is infinite."""
    e = 1e-310
    with pytest.raises(SingularMatrix):
        order_of(np.array([[e, 1.0], [1.0, e]]), np.array([[1.0, e], [e, 1.0]]))


def test_singular_in_one_sample_is_refused():
    regular = np.array([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(SingularMatrix):
        order_of(regular, np.array([[1.0, 2.0], [2.0, 4.0]]))


UNITS = {
    "atoms": (9.1e-31, 1e-10, 1e-16),
    "planets": (6e24, 1.5e11, 3e7),
    "light": (1e-30, 1.0, 1.0),
    "heavy": (1e30, 1.0, 1.0),
}


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("stages", [2, 4])
def test_units_of_a_model_do_not_matter(name, stages):
    """A pendulum of mass m and length l, with l/g = T^2, moves like the pendulum of mass 1 and length 1 with g = 1."""
    pendulum = da.Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + m * g * q[1],
        dim=2,
        holonomic=lambda q, length: [np.hypot(q[0], q[1]) - length],
        params={"m": 1.0, "g": 1.0, "length": 1.0},
    )

    def end(m, length, T):
        run = da.simulate(pendulum, da.LobattoIIIAB(stages=stages), q0=[0.6 * length, -0.8 * length], p0=[0, 0], h=0.1 * T,
                          steps=50, params={"m": m, "g": length / T**2, "length": length})  # fmt: skip
        return np.concatenate([run.q[-1] / length, run.p[-1] * T / (m * length)])

    np.testing.assert_allclose(end(*UNITS[name]), end(1.0, 1.0, 1.0), atol=1e-12)


def error_of(order, *matrices):
    rows, columns, _ = entries(sum(np.abs(A) for A in matrices))
    return backward_errors(order, rows, columns, np.column_stack([A[rows, columns] for A in matrices]), len(matrices[0]))


DIAGONAL = PivotOrder((0, 1), (0, 1), 2)


@pytest.mark.parametrize("dense", [200, 0], ids=["full", "sparse"])
def test_backward_error_shows_growth(dense, monkeypatch):
    monkeypatch.setattr(_elimination, "DENSE", dense)
    small, tiny, gone, broken = (np.array([[pivot, 1.0], [1.0, 1.0]]) for pivot in (1e-4, 1e-12, 0.0, np.nan))
    errors = error_of(DIAGONAL, small, tiny, gone, broken)
    assert errors[0] < 1e-11 and 1e-13 < errors[1] < 1e-1 and errors[2] == np.inf
    assert errors[3] == 0.0  # no order would help
    assert np.all(error_of(PivotOrder((1, 0), (0, 1), 2), small, tiny, gone) < 1e-15)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(3, 20), st.floats(1, 60))
def test_backward_error_does_not_depend_on_units(seed, n, octaves):
    """The errors of orders that fail more or less: the same, up to what one right-hand side and rounding make of them.

    That is seldom more than a hundred for one order, so of several the one in the middle is looked at.
    """
    random = np.random.default_rng(seed)
    A = sparse(random, n, 0.5) * 10.0 ** random.uniform(-3, 3, (n, n))
    left, right = (2.0 ** np.round(random.uniform(-octaves, octaves, n)) for _ in range(2))
    orders = [PivotOrder(tuple(random.permutation(n).tolist()), tuple(random.permutation(n).tolist()), 0) for _ in range(5)]
    errors = [[error_of(order, B)[0] for B in (A, left[:, None] * A * right)] for order in orders]
    before, after = np.clip(errors, 1e-15, 1.0).T
    assert 1e-2 < np.median(before / after) < 1e2


def test_neighbours_are_on_the_constraints_and_turned():
    problem = da.problems.double_pendulum()
    state = da.consistent(problem, q0=problem.q0, p0=problem.p0)
    states, time = neighbours(problem.system, state)
    assert states[0] is state and len(states) > 3 and 0.01 < time < 10
    for near in states[1:]:
        assert np.abs(problem.system.evaluate("g", 0.0, near.q, theta=near.theta)).max() < 1e-14
        assert 0.01 < np.abs(near.q - state.q).max() < 3


def test_a_large_positive_definite_matrix_keeps_its_diagonal():
    """The sign of a determinant is that of the pivots only if rows and columns are exchanged alike."""
    n, random = 700, np.random.default_rng(4)
    pairs = random.integers(0, n, (2, 900))
    B = np.zeros((n, n))
    B[pairs[0], pairs[1]] = random.normal(size=900)
    A = B @ B.T + np.eye(n)
    rows, columns, _ = entries(A)
    order = _elimination.diagonal_order(ca.SX(ca.Sparsity.triplet(n, n, rows.tolist(), columns.tolist()), 1))
    assert order.rows == order.columns and sorted(order.rows) == list(range(n))
    b = random.normal(size=n)
    x, pivots = solve_at_run_time(A, b, order)
    assert np.all(pivots > 0)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-10, atol=1e-12)


def test_a_determinant_that_vanishes_has_no_sign():
    A = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    rows, columns, values = entries(A)
    order = PivotOrder((0, 1, 2), (0, 1, 2), 1)
    tables: list[np.ndarray] = []
    pattern = filled_pattern(rows, columns, order)
    first = describe(tables, pattern, entries=0, rhs=0, filled=len(values))
    memory = np.concatenate([values, np.zeros(len(pattern["column"]))])
    assert sparse_solve.eliminate(memory, np.concatenate(tables).astype(np.int64), first) == 0


@pytest.mark.parametrize("least_fill", [False, True])
def test_products_of_an_order_are_those_of_its_elimination_and_the_cheaper_of_two_rules_is_taken(least_fill):
    """Counted in the pattern alone, without the library's bookkeeping, for the Newton matrix of six stages."""
    problem = da.problems.double_pendulum()
    matrix = reduced_step(problem.system, da.LobattoIIIAB(6)).jacobian
    rows, columns = (np.array(a) for a in matrix.sparsity().get_triplet())
    values = np.random.default_rng(3).uniform(0.5, 1.0, len(rows))
    cheapest = choose_pivots(rows, columns, values[:, None], matrix.shape[0])
    rule, rules = _elimination._greedy_order, (range(0), range(0))
    order = rule(rows, columns, values[:, None], matrix.shape[0], rules, least_fill)
    there = np.zeros(matrix.shape, dtype=bool)
    there[rows, columns] = True
    there, products = there[np.ix_(order.rows, order.columns)], 0
    for k in range(len(there)):
        below, right = k + 1 + np.flatnonzero(there[k + 1 :, k]), k + 1 + np.flatnonzero(there[k, k + 1 :])
        there[np.ix_(below, right)] = True
        products += len(below) * (1 + len(right))
    assert order.products == products >= cheapest.products


def test_orders_that_fill_less_are_tried_beside_markowitz(monkeypatch):
    """With six stages of the double pendulum they take fewer products, with four Markowitz's does."""
    rule, found = _elimination._greedy_order, {}

    def noted(*given):
        found[given[-1]] = rule(*given)
        return found[given[-1]]

    monkeypatch.setattr(_elimination, "_greedy_order", noted)
    for stages, least_fill in ((6, True), (4, False)):
        problem = da.problems.double_pendulum()
        order = _orders._structural_order(reduce_step(da.LobattoIIIAB(stages).step_equations(problem.system)), "jacobian")
        assert order == found[least_fill]
        assert order.products < found[not least_fill].products


@pytest.mark.parametrize("stages", [3, 4, 6])
@pytest.mark.parametrize("name", ["charged_particle_on_sphere", "double_pendulum_in_angles", "rod_on_spring"])
def test_combined_equations_have_the_derivative_of_the_combined_residual(name, stages):
    """Where momenta remain, Newton's matrix is taken from expressions that differ from the residual's in rounding only."""
    system = getattr(da.problems, name)().system
    reduced = reduced_step(system, da.LobattoIIIAB(stages))
    plain = ca.jacobian(reduced.plain, reduced.x)
    both = ca.Function("both", [reduced.x, *reduced.data], [reduced.jacobian, reduced.combination @ plain])
    random = np.random.default_rng(stages)
    x, state = (0.3 * random.standard_normal(size) for size in (reduced.x.shape[0], reduced.data[3].shape[0]))
    one, other = (np.array(value) for value in both(x, 0.1, 0.05, np.ones(reduced.data[2].shape[0]), state + 0.5))
    np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11 * np.abs(other).max())
    assert reduced.jacobian.nnz() < plain.nnz()


@pytest.mark.parametrize("stages", [3, 5])
def test_rows_that_eliminate_momenta_contain_those_of_one_stage(stages):
    reduced = reduced_step(da.problems.charged_particle_on_sphere().system, da.LobattoIIIAB(stages))
    rows, columns = reduced.leading
    assert len(rows) == len(columns) == 3 * (stages - 1)
    coupling = reduced.jacobian[list(rows), list(columns)]
    np.testing.assert_array_equal(np.array(ca.DM(coupling.sparsity(), 1)) != 0, np.eye(len(rows), dtype=bool))
    order = _orders._structural_order(reduced, "jacobian")
    assert set(order.columns[: len(columns)]) == set(columns)
