"""Steps that are accepted at a glance: never one that the exact test refuses, nor one that is not finite."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.compiler._elimination import diagonal_order, eliminate, is_definite
from dalembert.compiler._metric import metric_at
from dalembert.compiler._orientation import is_defined_everywhere
from dalembert.compiler._step_symbols import solved_results
from dalembert.engine._run import Run
from dalembert.runs._arguments import Arguments
from dalembert.systems._states import States

H = 0.01
METHODS = [da.LobattoIIIAB(3), da.Rattle()]
PROBLEMS = ["double_pendulum", "four_bar"]


def length(q):
    return [np.hypot(q[0], q[1]) - 1]


def solved_step(system, method, **start):
    """The reduced equations, unknowns, data and metric of the tenth step of a run."""
    nothing = dict.fromkeys(("start", "params", "t0", "t1"))
    run = Run(Arguments("simulate", system, method, start, **nothing, h=H, steps=10).single())
    assert run.advance() is None
    stepper = run.steppers[0]
    data = (9 * H, H, stepper.start.theta, run.rows[9].copy())
    return stepper.program, stepper.unknowns, data, metric_at(States.of(stepper.system, stepper.start))[0]


def judgements(program):
    """The orientation that both glances tell, and the exact one, of unknowns."""
    reduced = program.reduced
    assert reduced.early_glance is not None
    early = solved_results(reduced, program.last_order)[2]
    return reduced.numbers([reduced.signed(reduced.glance), early, reduced.signed(reduced.orientation)])


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_glance_accepts_no_step_that_misses_a_constraint(problem, method):
    """Unknowns moved at random, by 1e-17 to 1e-3: what a glance accepts is accepted, and healthy steps need no more."""
    program, x, data, metric = solved_step(getattr(da.problems, problem)(), method)
    evaluate, random, accepted, refused = judgements(program), np.random.default_rng(0), np.zeros(2), 0
    for size in 10 ** random.uniform(-17, -3, 400):
        *found, exact = (value.item() for value in evaluate(x + size * random.normal(size=len(x)), *data, metric))
        accepted, refused = accepted + (np.array(found) > 0), refused + (not exact > 0)
        assert exact > 0 or not any(value > 0 for value in found)
    assert min(accepted) > 50 and refused > 100
    assert min(evaluate(x, *data, metric)[:2]) > 0


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_glance_accepts_no_step_that_misses_a_constraint_on_another_branch(problem, method):
    """Unknowns moved far at random: in many of these places the determinant has the other sign, and so has the miss."""
    program, x, data, metric = solved_step(getattr(da.problems, problem)(), method)
    evaluate, random = judgements(program), np.random.default_rng(1)
    for size in 10 ** random.uniform(-2, 2, 1000):
        moved = x + size * random.normal(size=len(x))
        assert not any(value > 0 for value in evaluate(moved, *data, metric)[:2])


@pytest.mark.parametrize("place", range(8))
def test_a_glance_accepts_no_increment_that_is_not_finite(place):
    """Of a pendulum, which the constraint sees, and of a particle beside it, which it does not."""
    system = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1] + q[2] ** 2 + q[3] ** 4, dim=4, holonomic=length)
    program, x, (t, h, theta, state), metric = solved_step(system, da.LobattoIIIAB(3), q0=[1, 0, 1, 1], p0=[0, 0, 1, 0])
    evaluate = judgements(program)
    assert min(evaluate(x, t, h, theta, state, metric)[:2]) > 0
    for value in (np.nan, np.inf, -np.inf):
        state[place] = value
        assert not np.any(np.array(evaluate(x, t, h, theta, state, metric)[:2]) > 0)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_which_matrices_are_definite(size):
    """Those whose eigenvalues have one sign; not a number is none."""
    symbols, random, seen = ca.SX.sym("a", ca.Sparsity.lower(size)), np.random.default_rng(size), set()
    matrix = ca.tril2symm(symbols)
    definite = ca.Function("definite", [symbols], [is_definite(eliminate(matrix, diagonal_order(matrix))[0])])
    for shift in random.uniform(-6, 6, 200):
        values = random.normal(size=(size, size)) + shift * np.eye(size)
        values = np.tril(values) + np.tril(values, -1).T
        seen.add(wanted := abs(np.sign(np.linalg.eigvalsh(values)).sum()) == size)
        assert (definite(np.tril(values)) > 0) == wanted
    assert seen == {True, False} or size == 1
    for k in range(1, size):
        assert not definite(np.tril(np.where(np.diag(np.arange(size) == k), np.nan, np.eye(size)))) > 0


@pytest.mark.parametrize(("method", "h"), [(METHODS[0], 0.12), (METHODS[1], 0.05)], ids=str)
def test_doubts_about_old_factors_take_no_iterations_to_the_end(method, h):
    """Every 512th period tries them; a step whose solution is in doubt then is solved again with new ones at once."""
    iterations = []
    for far in (None, np.inf):
        nothing = dict.fromkeys(("start", "params", "t0", "t1"))
        run = Run(Arguments("simulate", da.problems.double_pendulum(), method, {}, **nothing, h=h, steps=200_000).single())
        run.numbers["far"] = run.numbers["far"] if far is None else far
        assert run.advance() is None
        iterations.append(run.counts["iterations"][0])
    assert iterations[0] < 1.005 * iterations[1]


@pytest.mark.parametrize(
    ("function", "everywhere"),
    [
        (lambda x, m: x[0] ** 3 * x[1] ** 2 + ca.sin(x[0]), True),
        (lambda x, m: x[0] ** 2 / (2 * m[0]) + ca.sqrt(m[1]) * x[1] ** 7, True),
        (lambda x, m: ca.fmax(x[0], 0) ** 2, True),
        (lambda x, m: m[0] / x[0], False),
        (lambda x, m: 1 / (x[0] - m[0]), False),
        (lambda x, m: x[0] ** -2, False),
        (lambda x, m: x[0] ** m[0], False),
        (lambda x, m: ca.sqrt(x[0]), False),
        (lambda x, m: ca.log(x[0] ** 2), False),
        (lambda x, m: ca.acos(x[0]), False),
        (lambda x, m: ca.exp(x[0]), False),
    ],
)
def test_where_functions_are_defined(function, everywhere):
    x, m = ca.SX.sym("x", 2), ca.SX.sym("m", 2)
    assert is_defined_everywhere(ca.densify(ca.SX(function(x, m))), x, m) is everywhere


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_pendulum_that_leaves_the_domain_of_its_energy_is_stopped(method):
    """Below z = -1/2 a logarithm in H has no value, though its derivative has."""
    system = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1] - 1e-9 * np.log(q[1] + 0.5), dim=2, holonomic=length)
    with pytest.raises(da.errors.StepFailed) as stopped:
        da.simulate(system, method, q0=[1, 0], p0=[0, 0], h=H, steps=1000)
    assert -0.5 < stopped.value.run.q[-1, 1] < -0.4


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_pendulum_is_stopped_where_its_energy_is_minus_infinity(method):
    """At t = 0, which steps of 1/8 meet without rounding errors; the forces do not depend on time."""
    system = da.Hamiltonian(lambda t, q, p: p @ p / 2 + q[1] + np.log(t**2), dim=2, holonomic=length)
    with pytest.raises(da.errors.StepFailed) as stopped:
        da.simulate(system, method, q0=[1, 0], p0=[0, 0], t0=-1.0, h=0.125, steps=12)
    assert stopped.value.run.t[-1] == -0.125
