"""Derivatives of runs against differences in multiprecision, other coordinates and theorems."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from derivative_cases import cases, method_models, mixed

import dalembert as da
from dalembert.compiler._elimination import PivotOrder, describe, filled_pattern
from dalembert.derivatives import _gradient, _record
from dalembert.derivatives._sweeps import PLAN
from dalembert.derivatives._table_solves import Rooms, solve_forward
from dalembert.engine._sparse_solve import eliminate
from dalembert.verify._multiprecision import _Stepper

DIGITS, SMALL = 50, "1e-22"


def differences(system, method, state, h, steps, direction, along):
    """The derivative of the state after some steps in one direction of (state, theta), by differences with 50 digits."""
    mp = mpmath.mp.clone()
    mp.dps = DIGITS + 5
    ends = []
    for sign in (1, -1):
        eps = sign * mp.mpf(SMALL)
        packed = [mp.mpf(x) + eps * mp.mpf(d) for x, d in zip(state.packed, direction, strict=True)]
        theta = [mp.mpf(x) + eps * mp.mpf(d) for x, d in zip(state.theta, along, strict=True)]
        t = mp.mpf(state.t)
        sizes = [(substep, mp.mpf(fraction * h)) for substep, fraction in method.substeps] * steps
        if method.starting is not None:
            sizes = [(method.starting, mp.mpf(h)), *sizes]
        steppers = {}
        for substep, size in sizes:
            stepper = steppers.setdefault(substep, _Stepper(mp, system, substep, DIGITS))
            here = _record_state(system, t, packed, theta)
            packed = stepper.step(here, t, size, packed, theta)
            t = t if substep is method.starting else t + size
        ends.append(packed)
    return np.array([float((a - b) / (2 * mp.mpf(SMALL))) for a, b in zip(*ends, strict=True)])


def _record_state(system, t, packed, theta):
    from dalembert.systems._consistent import unpack

    return unpack(system, float(t), np.array([float(x) for x in packed]), np.array([float(x) for x in theta]))


def check(system, method, start, h, steps):
    """Sensitivities in a random direction against differences, and the gradient against them."""
    random = np.random.default_rng(7)
    names = (*(name for name in start if name in ("q0", "p0", "y0", "z0")), *system.params)
    found = da.sensitivities(system, method, wrt=names, h=h, steps=steps, **start)
    weights = {name: random.standard_normal(found[name].shape[2:]) for name in names}
    first, last = (sum(np.tensordot(found[name][row], weights[name], weights[name].ndim) for name in names) for row in (0, -1))
    state = da.consistent(system, **start)
    along = np.concatenate([np.zeros(0), *(np.ravel(weights[name]) for name in system.params)])
    if method.starting is not None:
        given = da.sensitivities(system, da.GaussLobattoSPARK(1), wrt=names, h=h, steps=1, **start)
        first = sum(np.tensordot(given[name][0], weights[name], weights[name].ndim) for name in names)
    exact = differences(system, method, state, h, steps, first, along)
    assert np.abs(last - exact).max() < 1e-11 * np.abs(exact).max()
    covector = random.standard_normal(system.n_state)
    n = system.state_blocks[0][1]
    blocks = [name for name, _ in system.state_blocks]
    code = f"lambda {', '.join(b for b in blocks if b)}: " + " + ".join(f"a{k} @ {b}" for k, b in enumerate(blocks) if b)
    loss = eval(code, {"a0": covector[:n], "a1": covector[n:]})
    _, gradient = da.gradient(loss, system, method, wrt=names, h=h, steps=steps, **start)
    total = sum(np.sum(gradient[name] * weights[name]) for name in names)
    assert abs(total - covector @ last) < 1e-11 * np.abs(last).max() * np.abs(covector).sum()


@pytest.mark.parametrize(("method", "name"), list(cases()))
def test_against_differences_in_multiprecision(method, name):
    """Relative error 1e-11 for every method of the table, on nonlinear models with all kinds of constraints and forces."""
    model = getattr(method_models, name)()
    check(model.system, method, model.start, model.t1 / 40, 4)


@pytest.mark.parametrize("method", [da.GaussLobattoSPARK(2), da.GaussLobattoEMPRK(1)], ids=str)
def test_mixed_constraints_with_masses_in_kilograms(method):
    system = mixed()
    state = da.consistent(system, q0=[0.1, 0.2, 0.0, 0.4], v0=[1.0, 0.4, 0.0, 2.0])
    check(system, method, {"q0": state.q, "p0": state.p}, 0.01, 4)


def test_loops_over_tables_agree_with_kernels(monkeypatch):
    """Large programs are differentiated by loops; a small one by both."""
    problem = da.problems.double_pendulum()
    given = dict(wrt=("q0", "v0" if problem.v0 is not None else "p0", "m1", "l2"), h=0.02, steps=50)
    for method in (da.LobattoIIIAB(3), da.compose(da.Rattle(), "suzuki-4")):
        kernels = da.sensitivities(problem, method, **given)
        value, slope = da.gradient(lambda q, p: q @ q + p[0], problem, method, **given)
        with monkeypatch.context() as patched:
            patched.setattr(_record, "differential", lambda *_: None)
            tables = da.sensitivities(problem, method, **given)
            assert np.abs(kernels.values - tables.values).max() < 1e-12 * np.abs(tables.values).max()
            other, slope_by_tables = da.gradient(lambda q, p: q @ q + p[0], problem, method, **given)
            assert value == other
            for name in given["wrt"]:
                assert np.abs(slope[name] - slope_by_tables[name]).max() < 1e-12 * np.abs(slope[name]).max()


@pytest.mark.parametrize("pivot", [1e-20, 1e-9, 0.0])
def test_every_direction_of_a_solve_is_refined(pivot):
    """A pivot order that is bad, or fails, in some directions: the first one, 0, which nothing can spoil, is no measure."""
    A, rhs = np.array([[pivot, 1.0], [1.0, 1.0]]), np.array([[0.0, 1.0, 0.2, 1e5], [0.0, 2.0, 1e-4, 3.0]])
    rows, columns = np.repeat([0, 1], 2), np.tile([0, 1], 2)
    tables: list[np.ndarray] = []
    pattern = filled_pattern(rows, columns, PivotOrder((0, 1), (0, 1), 0))
    matrix = describe(tables, pattern, filled=4, entries=0, rhs=0)
    where = sum(len(table) for table in tables)
    tables += [rows, columns]
    memory, together = np.concatenate([A.ravel(), np.zeros(4)]), np.concatenate(tables).astype(np.int64)
    eliminate(memory, together, matrix)
    rooms = Rooms(np.zeros((1, 4)), np.zeros((2, 4)), rhs, *np.zeros((3, 2, 4)), np.zeros(2), np.zeros(4), np.zeros(2 * 5))
    plan = np.zeros(1, PLAN)[0]
    plan["n_u"], plan["n_F_u"], plan["at_F_u"], plan["matrix"] = 2, 4, where, matrix
    assert solve_forward(plan, memory, together, rooms)
    np.testing.assert_allclose(rooms.u, np.linalg.solve(A, rhs), rtol=1e-12)


def test_pivots_are_chosen_anew_where_their_order_fails(monkeypatch):
    """The order for a pendulum that is horizontal divides by x, which is 0 where it hangs; kernels tell what is right."""
    length = 0.3125  # a model of its own, with pivots of its own
    pendulum = da.Lagrangian(
        lambda q, v, m: m * v @ v / 2 - 9.81 * m * q[1], dim=2, holonomic=lambda q: [q @ q - length**2], params={"m": 0.2}
    )
    loss = lambda q, p: q[0] + p[0] + p[1] ** 2  # noqa: E731
    given = [dict(wrt=("q0", "v0", "m"), q0=q0, v0=[0.0, 0.0], h=0.01, steps=3) for q0 in ([length, 0.0], [0.0, -length])]
    for method in (da.Rattle(), da.compose(da.Rattle(), "suzuki-4")):
        right = [(da.sensitivities(pendulum, method, **g).values, da.gradient(loss, pendulum, method, **g)[1]) for g in given]
        with monkeypatch.context() as patched:
            patched.setattr(_record, "differential", lambda *_: None)
            patched.setattr(_record, "DENSE", 0)  # as for programs that are too large for dense matrices
            for k in (0, 1, 0, 1):
                found = da.sensitivities(pendulum, method, **given[k]).values
                assert np.abs(found - right[k][0]).max() < 1e-12 * np.abs(found).max()
            for k in (0, 1, 0, 1):
                for name, slope in da.gradient(loss, pendulum, method, **given[k])[1].items():
                    np.testing.assert_allclose(slope, right[k][1][name], rtol=1e-11, atol=1e-12)


def test_a_long_chain_by_loops():
    """60 links of equal masses under gravity alone: the motion does not depend on the mass, and momenta are its multiples."""
    n, h, steps = 60, 0.01, 5
    chain = da.Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + g * m * np.sum(q[1::2]),
        dim=2 * n,
        holonomic=lambda q: [
            (q[2 * k] - (q[2 * k - 2] if k else 0.0)) ** 2 + (q[2 * k + 1] - (q[2 * k - 1] if k else 0.0)) ** 2 - 1
            for k in range(n)
        ],
        params={"m": 0.2, "g": 9.81},
    )
    q0 = np.ravel([[k + 1.0, 0.0] for k in range(n)])
    found = da.sensitivities(chain, da.Rattle(), wrt=("m", "g"), q0=q0, v0=np.zeros(2 * n), h=h, steps=steps)
    assert np.abs(found.of("q", "m")).max() < 1e-11
    assert np.abs(found.of("p", "m")[-1] - found.run.p[-1] / 0.2).max() < 1e-9 * np.abs(found.run.p[-1]).max()


# -- the start --------------------------------------------------------------------------------------------------------------


def test_projection_of_directions_onto_a_circle():
    """q = q0/|q0| and v its tangential part: the derivative of the projection, by hand."""
    pendulum = da.Lagrangian(
        lambda q, v, m: m * v @ v / 2 - m * q[1], dim=2, holonomic=lambda q, r: [q @ q - r**2], params={"m": 0.2, "r": 1.0}
    )
    q, v = np.array([0.6, 0.8]), np.array([1.6, -1.2])
    tangent = np.array([0.8, -0.6])
    s = da.sensitivities(pendulum, da.Rattle(), wrt=("q0", "v0", "m", "r"), q0=q, v0=v, h=0.01, steps=1)
    projector = np.outer(tangent, tangent)
    np.testing.assert_allclose(s.of("q", "q0")[0], projector, atol=1e-15)
    np.testing.assert_allclose(s.of("q", "r")[0], q, atol=1e-15)
    np.testing.assert_allclose(s.of("p", "v0")[0], 0.2 * projector, atol=1e-15)
    np.testing.assert_allclose(s.of("p", "m")[0], v, atol=1e-15)
    # v - q (q.v)/l^2 along dq = P e: -(q dq.v + dq q.v) with q.v = 0
    np.testing.assert_allclose(s.of("p", "q0")[0], -0.2 * np.outer(q, projector @ v), atol=1e-15)


def test_start_of_a_mixed_system_against_consistent():
    """d consistent / d(q0, v0, params) by differences of `da.consistent` itself, from a guess far off the constraints."""
    from dalembert.derivatives._start import Start

    system, q0, v0 = mixed(), np.array([0.1, 0.2, 0.1, 0.4]), np.array([1.0, 0.4, 0.3, 2.0])
    state = da.consistent(system, q0=q0, v0=v0)
    found = Start(system, state, q0, v0, velocity=True).derivative(np.arange(8 + state.theta.size))
    for k in range(8 + state.theta.size):
        ends = []
        for sign in (1, -1):
            data = np.concatenate([q0, v0, state.theta])
            eps = 1e-5 * max(abs(data[k]), 1e-3)
            data[k] += sign * eps
            params = system.parameters.unflatten(data[8:])
            ends.append(da.consistent(system, q0=data[:4], v0=data[4:8], params=params).packed)
        difference = (ends[0] - ends[1]) / (2 * eps)
        assert np.abs(difference - found[:, k]).max() < 1e-8 * max(1.0, np.abs(difference).max()), k


def test_a_start_keeps_its_momentum_or_its_velocity():
    """q = q0 + v T for a free mass: by the mass 0 if the velocity is given, -v T / m if the momentum is."""
    free = da.Lagrangian(lambda v, m: m * v @ v / 2, dim=1, params={"m": 0.2})
    start, given = da.consistent(free, q0=[1.0], v0=[3.0]), dict(h=0.1, steps=20)
    _, held = da.gradient(lambda q: q[0], free, da.Gauss(1), wrt=("m", "v0"), start=start, **given)
    np.testing.assert_allclose([held["m"], held["v0"][0]], [0.0, 2.0], atol=1e-13)
    _, thrown = da.gradient(lambda q: q[0], free, da.Gauss(1), wrt=("m", "p0"), start=start, **given)
    np.testing.assert_allclose([thrown["m"], thrown["p0"][0]], [-30.0, 10.0], rtol=1e-13)
    for made, sign in ((start, 1.0), (da.consistent(free, q0=[1.0], p0=[0.6]), -1.0)):  # of what the state was made
        value, slope = da.gradient(lambda t, v, m: t * v[0] ** 2 * m, free, da.Gauss(1), wrt="m", start=made, **given)
        np.testing.assert_allclose([value, slope], [2.0 * 9.0 * 0.2, sign * 2.0 * 9.0], rtol=1e-13)
    mixed = {"start": [start, da.consistent(free, q0=[1.0], p0=[0.6])], **given}
    with pytest.raises(da.InputError, match="some states of start= were made from velocities, others from momenta"):
        da.gradient_many(lambda q: q[0], free, da.Gauss(1), wrt="m", **mixed)
    _, slopes = da.gradient_many(lambda q: q[0], free, da.Gauss(1), wrt=("m", "v0"), **mixed)
    np.testing.assert_allclose(slopes["m"], [0.0, 0.0], atol=1e-13)
    s = da.sensitivities(free, da.Gauss(1), wrt=("v0", "m"), start=start, **given)
    np.testing.assert_allclose(s.of("p", "m")[-1], [3.0], rtol=1e-14)


# -- redundant constraints ---------------------------------------------------------------------------------------------------


def test_redundant_rows_change_nothing():
    """A double pendulum with a constraint stated twice, in other words, against the same without."""
    plain = da.problems.double_pendulum()
    q0, p0 = plain.q0, np.zeros(4)

    def rows(q, l1, l2):
        first, second = q[0] ** 2 + q[1] ** 2 - l1**2, (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - l2**2
        return [first, second]

    def system(holonomic):
        return da.Hamiltonian(
            lambda q, p, m1, m2: p[:2] @ p[:2] / (2 * m1) + p[2:] @ p[2:] / (2 * m2) + 9.81 * (m1 * q[1] + m2 * q[3]),
            dim=4,
            holonomic=holonomic,
            params={"m1": 0.2, "m2": 0.3, "l1": 1.0, "l2": 1.0},
        )

    independent = system(rows)
    redundant = system(lambda q, l1, l2: [*rows(q, l1, l2), rows(q, l1, l2)[0] + 3 * rows(q, l1, l2)[1]])
    given = dict(wrt=("q0", "p0", "m1", "l1"), q0=q0, p0=p0, h=0.01, steps=300)
    for method in (da.LobattoIIIAB(3), da.GaussLobattoSPARK(2)):
        a, b = (da.sensitivities(one, method, **given) for one in (independent, redundant))
        assert np.abs(a.values - b.values).max() < 1e-11 * np.abs(a.values).max()
        (_, c), (_, d) = (da.gradient(lambda q: q @ q, one, method, **given) for one in (independent, redundant))
        for name in given["wrt"]:
            assert np.abs(c[name] - d[name]).max() < 1e-11 * max(1.0, np.abs(c[name]).max())
    contradictory = system(lambda q, l1, l2, m1: [*rows(q, l1, l2), q[0] ** 2 + q[1] ** 2 - l2**2])
    with pytest.raises(da.InputError, match="contradict"):
        da.sensitivities(contradictory, da.Rattle(), **given)


# -- theorems ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Rattle()], ids=str)
def test_the_tangent_of_a_long_run_is_symplectic(method):
    """S^T J S is that of the start, to round-off relative to the size of S, over 10^4 steps."""
    problem, n = da.problems.double_pendulum(), 4
    s = da.sensitivities(
        problem, method, wrt=("q0", "v0" if problem.v0 is not None else "p0"), h=0.02, steps=10_000, save_every=1000
    )
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    first = s.values[0].T @ J @ s.values[0]
    for S in s.values[1:]:
        assert np.abs(S.T @ J @ S - first).max() < 1e-13 * np.abs(S).max() ** 2


def test_lyapunov_exponents_of_a_linear_map():
    """Of an overdamped oscillator they are log|R(h mu)|/h for the eigenvalues mu and the method's stability function R."""
    k, c, h = 2.0, 3.0, 0.1
    damped = da.Lagrangian(lambda q, v, k: v @ v / 2 - k * q @ q / 2, dim=1, force=lambda v, c: -c * v, params={"k": k, "c": c})
    mu = np.array([-1.0, -2.0])
    found = da.lyapunov(damped, da.Gauss(1), q0=[0.1], v0=[0.0], h=h, steps=4000)
    np.testing.assert_allclose(found, np.log((1 + h * mu / 2) / (1 - h * mu / 2)) / h, atol=5e-3)


def test_lyapunov_exponents_of_a_pendulum_on_its_circle():
    """There are two, which a symplectic map has in a pair, and of a regular orbit they vanish like log(t)/t."""
    found = da.lyapunov(da.problems.pendulum(), da.Rattle(), h=0.05, steps=4000)
    assert len(found) == 2 and abs(found.sum()) < 1e-3 and abs(found[0]) < 0.05


# -- losses ------------------------------------------------------------------------------------------------------------------


def test_checkpoints_change_nothing(monkeypatch):
    """A run that is recorded in many segments has the gradient of one that is kept whole."""
    problem = da.problems.double_pendulum()
    given = dict(
        wrt=("q0", "m1", "g"), h=0.02, steps=200, at=[0.0, 1.0, 1.0, 4.0], running=lambda t, q, p, g: t * q[3] * p[0] * g
    )

    def loss(t, q, m1):
        return np.sum(t * q[:, 0]) * m1

    value, slope = da.gradient(loss, problem, da.LobattoIIIAB(3), **given)
    monkeypatch.setattr(_gradient, "SEGMENT", 600)
    other, pieces = da.gradient(loss, problem, da.LobattoIIIAB(3), **given)
    assert abs(value - other) < 1e-12 * abs(value)
    s = da.sensitivities(problem, da.LobattoIIIAB(3), **{k: given[k] for k in ("wrt", "h", "steps")})
    q, p, t = s.run.q, s.run.p, s.run.t
    for name in given["wrt"]:
        dq, dp = s.of("q", name), s.of("p", name)
        exact = sum(tk * dq[k, 0] for k, tk in ((0, 0.0), (50, 1.0), (50, 1.0), (200, 4.0)))
        exact = exact + np.tensordot(t[1:] * q[1:, 3], dp[1:, 0], 1) + np.tensordot(t[1:] * p[1:, 0], dq[1:, 3], 1)
        exact = exact + {"m1": 2 * q[50, 0] + 4 * q[200, 0], "g": np.sum(t * q[:, 3] * p[:, 0])}.get(name, 0.0)
        size = np.abs(exact).max()
        assert np.abs(slope[name] - exact).max() < 1e-12 * size and np.abs(pieces[name] - exact).max() < 1e-12 * size


def test_controls_on_a_grid():
    """A force that is constant over intervals acts linearly on a free particle, and so are its derivatives, exactly."""
    mass, h, hold, rows = 0.2, 0.01, 5, 8
    particle = da.Lagrangian(lambda v, m: m * v @ v / 2, dim=1, force=lambda u: [u], params={"m": mass, "u": 0.0})
    u, steps = np.linspace(-1, 2, rows), hold * rows
    given = dict(q0=[0.0], v0=[1.0], h=h, steps=steps, controls={"u": u})
    run = da.simulate(particle, da.Gauss(2), **given)
    T, width = h * steps, h * hold
    middle = T - width * (np.arange(rows) + 0.5)
    np.testing.assert_allclose(run.q[-1, 0], T + np.sum(u * middle) * width / mass, rtol=1e-13)
    _, slope = da.gradient(lambda q: q[0], particle, da.Gauss(2), wrt=("u", "m"), **given)
    np.testing.assert_allclose(slope["u"], width / mass * middle, rtol=1e-13)
    np.testing.assert_allclose(slope["m"], -np.sum(u * middle) * width / mass**2, rtol=1e-12)
    _, effort = da.gradient(None, particle, da.Gauss(2), wrt="u", running=lambda u: u**2, **given)
    np.testing.assert_allclose(effort, 2 * hold * u, rtol=1e-13)
    np.testing.assert_allclose(run.v[-1, 0], 1 + np.sum(u) * width / mass, rtol=1e-13)
    for loss, at in ((lambda u: u**2, None), (lambda q, u: u * q[-1, 0], [T])):  # of which interval would u be?
        with pytest.raises(da.InputError, match="depends on a control"):
            da.gradient(loss, particle, da.Gauss(2), wrt="m", at=at, **given)


def test_controls_that_are_linear_in_between():
    """A force with given values at the ends of intervals: derivatives of a free path by these values are moments of hats."""
    mass, h, hold, rows = 0.2, 0.01, 5, 4
    particle = da.Lagrangian(
        lambda v, m: m * v @ v / 2, dim=1, force=lambda u, w: [u + w], params={"m": mass, "u": 0.3, "w": 0.0}
    )
    u, w, width = np.array([0.5, -1.0, 2.0, 0.0, 1.0]), np.array([1.0, 0.0, -2.0, 0.5]), h * hold
    given = dict(q0=[0.0], v0=[1.0], h=h, steps=hold * rows, controls={"u": da.PiecewiseLinear(u), "w": w})
    run = da.simulate(particle, da.Gauss(2), **given)
    T = width * rows

    def moment(a, b, ua, ub, k):
        """The integral of u (T - t)^k from a to b, u being linear."""
        t, weights = np.polynomial.legendre.leggauss(4)
        t, weights = (a + b + (b - a) * t) / 2, weights * (b - a) / 2
        return np.sum(weights * (ua + (ub - ua) * (t - a) / (b - a)) * (T - t) ** k)

    t = width * np.arange(rows + 1)
    both = [sum(moment(t[i], t[i + 1], u[i] + w[i], u[i + 1] + w[i], k) for i in range(rows)) / mass for k in (0, 1)]
    np.testing.assert_allclose([run.v[-1, 0], run.q[-1, 0]], [1 + both[0], T + both[1]], rtol=1e-13)
    hats = np.array([[moment(t[i], t[i + 1], e[i], e[i + 1], 1) for i in range(rows)] for e in np.eye(rows + 1)]).sum(axis=1)
    _, slope = da.gradient(lambda q: q[0], particle, da.Gauss(2), wrt=("u", "w", "m"), **given)
    np.testing.assert_allclose(slope["u"], hats / mass, rtol=1e-12)
    np.testing.assert_allclose(slope["w"], [moment(t[i], t[i + 1], 1, 1, 1) / mass for i in range(rows)], rtol=1e-12)
    np.testing.assert_allclose(slope["m"], -both[1] / mass, rtol=1e-12)
    value, effort = da.gradient(None, particle, da.Gauss(2), wrt="u", running=lambda u: u**2, **given)
    path = np.interp(h * np.arange(1, hold * rows + 1), t, u)
    np.testing.assert_allclose(value, np.sum(path**2), rtol=1e-13)
    hat = np.array([np.interp(h * np.arange(1, hold * rows + 1), t, e) for e in np.eye(rows + 1)])
    np.testing.assert_allclose(effort, 2 * hat @ path, rtol=1e-12)
    direction = {"u": np.array([1.0, 2.0, -1.0, 0.5, 0.0])}
    _, _, product = da.hessian_product(
        None, particle, da.Gauss(2), wrt=("u", "m"), running=lambda q, u: u**2 * q[0], direction=direction, **given
    )
    eps = 1e-5
    ends = [
        da.gradient(
            None, particle, da.Gauss(2), wrt=("u", "m"), running=lambda q, u: u**2 * q[0],
            **given | {"controls": {"u": da.PiecewiseLinear(u + s * eps * direction["u"]), "w": w}},
        )[1]
        for s in (1, -1)
    ]  # fmt: skip
    for name in ("u", "m"):
        np.testing.assert_allclose(product[name], (ends[0][name] - ends[1][name]) / (2 * eps), rtol=1e-8)
    many, slopes = da.gradient_many(lambda q: q[0], particle, da.Gauss(2), wrt="u", **given | {"v0": [[1.0], [2.0]]})
    np.testing.assert_allclose(many, [run.q[-1, 0], run.q[-1, 0] + T], rtol=1e-13)
    np.testing.assert_allclose(slopes, [slope["u"]] * 2, rtol=1e-12)


def test_linear_controls_in_energies_multipliers_and_refusals(tmp_path):
    """What is computed from a state has the control of its time, in loaded runs, too; constraints stay, shapes are checked."""
    held = da.Hamiltonian(
        lambda q, p, u: p @ p / 2 + u * q[0], dim=2, holonomic=lambda q, d: [q[1] - d], force=lambda u: [0.0, u],
        params={"u": 0.0, "d": 0.0},
    )  # fmt: skip
    given = dict(q0=[1.0, 0.0], p0=[0.0, 0.0], h=0.1, steps=4)
    run = da.simulate(held, da.Rattle(), controls={"u": da.PiecewiseLinear([1.0, 3.0, 0.0])}, **given)
    np.testing.assert_allclose(run.lam[:, 0], [1, 2, 3, 1.5, 0], atol=1e-13)
    np.testing.assert_allclose(run.energy, run.p[:, 0] ** 2 / 2 + run.lam[:, 0] * run.q[:, 0], atol=1e-13)
    run.save(tmp_path / "run.npz")
    again = da.load(tmp_path / "run.npz", held)
    np.testing.assert_array_equal(again.energy, run.energy)
    np.testing.assert_array_equal(again.lam, run.lam)
    with pytest.raises(da.UnsupportedSystem, match="cannot move constraints"):
        da.simulate(held, da.Rattle(), controls={"d": da.PiecewiseLinear([0.0, 1.0])}, **given)
    for wrong in ([1.0], [1.0, 2.0, 3.0, 4.0], "x", 3.0, [[1.0], [2.0]], [1.0, np.nan]):
        with pytest.raises(da.InputError, match="the control 'u'"):
            da.simulate(held, da.Rattle(), controls={"u": da.PiecewiseLinear(wrong)}, **given)


def test_controls_of_a_linkage_act_on_its_multipliers():
    """The force in a rod that a control pulls at is that of the interval that begins at the state."""
    held = da.Hamiltonian(lambda p: p @ p / 2, dim=2, holonomic=lambda q: [q[1]], force=lambda u: [0.0, u], params={"u": 0.0})
    run = da.simulate(held, da.Rattle(), q0=[0, 0], p0=[1, 0], h=0.1, steps=4, controls={"u": [1.0, 3.0]})
    np.testing.assert_allclose(run.lam[:, 0], [1, 1, 3, 3, 3], atol=1e-14)
    with pytest.raises(da.InputError, match="dense output"):
        run.at(0.15)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"wrt": ("l3",)}, "no parameter"),
        ({"wrt": ()}, "each once"),
        ({"wrt": 3}, "each once"),
        ({"wrt": (3,)}, "each once"),
        ({"wrt": ("v0",)}, "starts from p0"),
        ({"stepz": 3}, "no argument 'stepz'"),
        ({"wrt": ("u",), "controls": {"u": [1.0, 2.0, 3.0]}}, "divides the number of steps"),
        ({"wrt": ("u",), "controls": {"u": [1.0, 2.0]}}, "one pass"),
    ],
)
def test_refusals(change, words):
    system = da.Hamiltonian(lambda p, u: p @ p / 2 + u, dim=1, params={"u": 0.0})
    given = {"wrt": ("u",), "q0": [0.0], "p0": [1.0], "h": 0.1, "steps": 10} | change
    with pytest.raises(da.InputError, match=words):
        da.sensitivities(system, da.Gauss(1), **given)


def test_a_gradient_needs_something_to_differentiate():
    problem = da.problems.pendulum()
    with pytest.raises(da.InputError, match="give a loss"):
        da.gradient(None, problem, da.Rattle(), wrt="q0", h=0.1, steps=3)
    with pytest.raises(da.InputError, match="ends of steps"):
        da.gradient(lambda q: q[0, 0], problem, da.Rattle(), wrt="q0", at=[0.05], h=0.1, steps=3)
    for at in ("x", [np.nan], [0.1, "x"]):
        with pytest.raises(da.InputError, match="times must be"):
            da.gradient(lambda q: q[0, 0], problem, da.Rattle(), wrt="q0", at=at, h=0.1, steps=3)
    with pytest.raises(da.InputError, match="steps must be an integer >= 1"):
        da.gradient(lambda q: q[0], problem, da.Rattle(), wrt="q0", h=0.1, steps=0)
    with pytest.raises(da.InputError, match="steps must be an integer >= 1"):
        da.lyapunov(problem, da.Rattle(), h=0.1, steps=0)


@pytest.mark.slow
def test_a_closed_loop_of_joints_in_space():
    """23 rows for 21 coordinates, combined anew along the run: all rows stay differentiated, and the tangent is symplectic."""
    m = da.Mechanism(gravity=(0, 0, -9.81))
    A, B, C, D, y = (0, 0, 0), (0, 0, 0.1), (0.4, 0, 0.3), (0.4, 0, 0), (0, 1, 0)
    crank, coupler = m.rod("crank", A, B, mass=0.2), m.rod("coupler", B, C, mass=0.3)
    rocker = m.rod("rocker", C, D, mass=0.25)
    hinge = m.revolute(m.ground, crank, at=A, axis=y)
    for first, second, at in ((crank, coupler, B), (coupler, rocker, C), (rocker, m.ground, D)):
        m.revolute(first, second, at=at, axis=y)
    given = dict(start=m.start(rates={hinge: 3.0}), h=0.005, steps=100)
    s = da.sensitivities(m, da.Rattle(), wrt=("q0", "p0"), save_every=100, **given)
    system, S = m.system(), s.values[-1]
    n = system.dim
    assert s.run.stats["renewals"] > 0
    assert np.abs(system.evaluate("G", s.run.t[-1], s.run.q[-1]) @ S[:n]).max() < 1e-13 * np.abs(S).max()
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    assert np.abs(S.T @ J @ S - s.values[0].T @ J @ s.values[0]).max() < 1e-13 * np.abs(S).max() ** 2
    _, slopes = da.gradient(lambda q: q[0], m, da.Rattle(), wrt=("q0", "p0"), **given)
    np.testing.assert_allclose(slopes["q0"], S[0, :n], atol=1e-12 * np.abs(S).max())


def test_a_parameter_that_is_called_like_an_initial_value_is_refused():
    """A pressure p0 is no momentum: which of the two wrt= means would change what is held besides."""
    spring = da.Lagrangian(lambda q, v, p0: v @ v / 2 - p0 * q[0] ** 2 / 2, dim=1, params={"p0": 3.0})
    for start in ({"q0": [1.0], "v0": [0.0]}, {"start": da.consistent(spring, q0=[1.0], v0=[0.0])}):
        with pytest.raises(da.errors.InputError, match="rename the parameter"):
            da.gradient(lambda q: q[0], spring, da.Rattle(), wrt="p0", h=0.01, steps=5, **start)


def test_bodies_that_turn_about_an_axis_have_derivatives_though_most_unknowns_vanish(monkeypatch):
    """Rows with nothing but rounding errors have large backward errors in any order; the angles follow by hand."""
    inner, outer, c, t = 2e-3, 1e-3, 2e-3, 0.1
    m = da.Mechanism(params={"c": c, "torque": 0.8})
    hub, wheel = m.body(mass=1.0, inertia=inner), m.body(mass=0.3, inertia=outer, at=(0.1, 0, 0))
    shaft, between = (m.revolute(a, b, at=b.centre, axis=(1, 0, 0)) for a, b in ((m.ground, hub), (hub, wheel)))
    m.motor(shaft, lambda torque: torque)
    m.torsion(between, damping="c")
    given = {"start": m.start(rates={shaft: 5.0, between: 20.0}), "wrt": "torque", "h": 1e-3, "steps": 100}
    monkeypatch.setattr(_record, "differential", lambda *_: None)
    monkeypatch.setattr(_record, "DENSE", 0)  # as for programs that are too large for dense matrices
    s = da.sensitivities(m, da.LobattoIIIAB(3), **given)
    k = c * (1 / inner + 1 / outer)
    lag = -(t - (1 - np.exp(-k * t)) / k) / (k * inner)  # the derivative of the angle of the wheel on the hub
    turned, half = (t**2 / 2 - outer * lag) / (inner + outer), s.run.of(shaft).angle[-1] / 2
    np.testing.assert_allclose(s.of("q", "torque")[-1, 3:5], turned / 2 * np.array([-np.sin(half), np.cos(half)]), rtol=1e-8)
    _, slope = da.gradient(lambda q: q[4], m, da.LobattoIIIAB(3), **given)
    assert slope == pytest.approx(turned / 2 * np.cos(half), rel=1e-8)
