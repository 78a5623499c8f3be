"""Stages that follow from others are no unknowns."""

import numpy as np
import pytest

import dalembert as da
from dalembert import tableaux
from dalembert.compiler._last_stage import dependent_last_stage
from dalembert.compiler._program import reduced_step
from dalembert.methods._step_parts import Equation, UnknownBlock


def coefficients(A):
    import casadi as ca

    block = UnknownBlock("W", "increment", "p", np.linspace(0, 1, len(A)), 1, ca.SX.sym("W", len(A)))
    found = dependent_last_stage(Equation(block.symbols, block.symbols, A), block)
    return None if found is None else np.array(ca.DM(ca.jacobian(found, block.symbols)))[0]


@pytest.mark.parametrize("s", range(2, 12))
def test_the_last_stage_of_lobatto_iiib_is_a_combination_of_the_others(s):
    A, c = tableaux.lobatto_iiib(s).A, coefficients(tableaux.lobatto_iiib(s).A)
    assert c[-1] == 0.0 and np.max(np.abs(c)) < 5
    np.testing.assert_allclose(c[:-1] @ A[:-1], A[-1], atol=1e-14)
    nodes = tableaux.lobatto_iiib(s).c  # W is a polynomial of degree s-2 there: the combination extrapolates it
    np.testing.assert_allclose(c[:-1] @ nodes[:-1, None] ** np.arange(s - 1), np.ones(s - 1), atol=1e-12)


@pytest.mark.parametrize("s", [2, 3, 5])
def test_other_tableaux_have_independent_rows(s):
    assert coefficients(tableaux.gauss(s).A) is None
    assert coefficients(tableaux.radau_iia(s).A) is None


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_results_without_the_last_stage_are_those_of_another_form_of_the_model(stages):
    """A bead on a circle whose mass depends on its place: in Cartesian coordinates, and by its angle without constraints."""

    def mass(x):
        return 2 + x

    cartesian = da.Hamiltonian(lambda q, p: p @ p / (2 * mass(q[0])) + q[1], dim=2, holonomic=lambda q: [q @ q - 1])
    angle = da.Hamiltonian(lambda q, p: p[0] ** 2 / (2 * mass(np.cos(q[0]))) + np.sin(q[0]), dim=1)
    method = da.LobattoIIIAB(stages)
    reduced = reduced_step(cartesian, method)
    assert [len(block.nodes) for block in reduced.blocks if block.name == "W"] == [stages - 1]
    exact = da.simulate(angle, da.Gauss(6), q0=[0.3], p0=[0.4], h=0.01, steps=100)
    p0 = 0.4 * np.array([-np.sin(0.3), np.cos(0.3)])
    errors = []
    for n in (20, 40):
        run = da.simulate(cartesian, method, q0=[np.cos(0.3), np.sin(0.3)], p0=p0, h=1 / n, steps=n)
        assert np.abs(run.residuals["g"]).max() < 1e-14 and np.abs(run.residuals["g_dot"]).max() < 1e-13
        errors.append(abs(np.arctan2(*run.q[-1][::-1]) - exact.q[-1, 0]))
    assert errors[1] < 1e-13 or abs(np.log2(errors[0] / errors[1]) - (2 * stages - 2)) < 0.2


@pytest.mark.parametrize("method", [da.LobattoIIIAB(5), da.LobattoIIIAB(8), da.Gauss(4)], ids=str)
def test_combined_stage_equations_have_the_derivative_that_newton_takes(method):
    """The matrix comes from another form of the equations: it must be the derivative of the residual that is iterated."""
    import casadi as ca

    problem = da.problems.double_pendulum()
    reduced = reduced_step(problem.system, method)
    symbols = [reduced.x, *reduced.data]
    given = [np.random.default_rng(5).uniform(0.4, 0.9, part.shape[0]) for part in symbols]
    taken, true, plain = ca.Function(
        "both", symbols, [reduced.jacobian, ca.jacobian(reduced.residual, reduced.x), ca.jacobian(reduced.plain, reduced.x)]
    )(*given)
    true, taken = np.array(true), np.array(taken)
    np.testing.assert_allclose(taken, true, rtol=1e-11, atol=1e-11 * np.abs(true).max())
    assert np.count_nonzero(taken) < 0.6 * np.count_nonzero(np.array(plain))
    np.testing.assert_allclose(
        np.array(reduced.combination) @ np.array(plain), true, rtol=1e-9, atol=1e-11 * np.abs(true).max()
    )
