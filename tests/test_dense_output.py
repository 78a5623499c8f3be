"""`run.at`: the polynomials of a step fulfil the conditions that define them, and are as accurate inside as theory says."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.systems._consistent import unpack

METHODS = [da.GaussLobattoSPARK(s) for s in (1, 2, 3)] + [da.GaussLobattoEMPRK(s) for s in (2, 3)]


@cache
def mixed():
    """One curved holonomic and one nonholonomic constraint in R^4, with a mass matrix that depends on q."""
    return da.Lagrangian(
        lambda q, v: (
            (2 + np.sin(q[1])) * v[0] ** 2 / 2
            + (1 + q[0] ** 2) * v[1] ** 2 / 2
            + v[2] ** 2
            + v[3] ** 2 / 2
            + np.cos(q[2]) * v[0] * v[1] / 3
            - np.sin(q[0]) * q[2]
            - q[1] ** 2
            + q[3] * q[0]
        ),
        dim=4,
        holonomic=lambda q: [q[0] + q[1] ** 2 / 2 + np.sin(q[2]) - 1],
        nonholonomic=lambda q, v: [v[3] - np.sin(q[0]) * v[1] + q[3] * v[2]],
    )


def start():
    return da.consistent(mixed(), q0=[0.4, 0.5, 0.5, 0.2], v0=[0.5, -0.6, 0.2, 0.3])


@cache
def solution(t1=0.5):
    """q, p along the underlying ODE, with multipliers, as a function of time, by SciPy."""
    system, theta = mixed(), mixed().parameters.vector()

    def rhs(t, x):
        state = unpack(system, t, x, theta)
        return np.concatenate([state.v, system.at("z_dot", state.values, theta)])

    found = solve_ivp(rhs, (0.0, t1), start().packed, method="DOP853", rtol=1e-13, atol=1e-13, dense_output=True)
    return lambda t: unpack(system, t, found.sol(t), theta)


def one_step(method, h):
    return da.simulate(mixed(), method, start=start(), h=h, steps=1)


def polynomial(run, name, degree, *, more=0):
    """The polynomial of a component inside the first step, in t, from samples; with `more`, the residual of the fit."""
    t = run.t[0] + run.h * (1 - np.cos(np.pi * (np.arange(degree + 1 + more) + 0.5) / (degree + 1 + more))) / 2
    values = getattr(run.at(t), name)
    columns = [Polynomial.fit(t, column, degree, domain=run.t[:2]) for column in values.T]
    off = max(np.max(np.abs(p(t) - column)) for p, column in zip(columns, values.T, strict=True))
    return lambda s: np.array([p(s) for p in columns]), lambda s: np.array([p.deriv()(s) for p in columns]), off


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_y_and_z_meet_the_stored_states_and_the_rest_jumps(method):
    run = da.simulate(mixed(), method, start=start(), h=0.05, steps=8)
    after, before = run.at(run.t), run.at(run.t, side="left")
    for inside in (after, before):
        np.testing.assert_allclose(inside.q, run.q, atol=1e-14)
        np.testing.assert_allclose(inside.p, run.p, atol=1e-14)
    assert np.abs(after.Z[1:-1] - before.Z[1:-1]).max() > 1e-9
    assert np.abs(after.Z[1:-1] - run.p[1:-1]).max() > 1e-9


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_degrees_of_the_polynomials(method):
    """Y and Z have degree s, Z~ s+1, Lambda s, Psi s-1: fits of these degrees are exact, those of one less are not."""
    run, s = one_step(method, 0.2), method.stages
    for name, degree in {"y": s, "Z": s, "z": s + 1, "lam": s, "psi": s - 1}.items():
        assert polynomial(run, name, degree, more=3)[2] < 1e-13, name
        assert degree == 0 or polynomial(run, name, degree - 1, more=3)[2] > 1e-7, name


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_polynomials_collocate(method):
    run, s, h = one_step(method, 0.2), method.stages, 0.2
    system, tableau = mixed(), method.tableau
    T, T_tilde = tableau.c * h, tableau.c_tilde * h
    Y, Y_dot, _ = polynomial(run, "y", s)
    Z, Z_dot, _ = polynomial(run, "Z", s)
    Zt, Zt_dot, _ = polynomial(run, "z", s + 1)
    lam, psi = polynomial(run, "lam", s)[0], polynomial(run, "psi", s - 1)[0]
    for t in T:
        np.testing.assert_allclose(Y_dot(t), system.evaluate("v", t, Y(t), Z(t)), atol=1e-11)
    for t in T_tilde:
        assert np.abs(system.evaluate("g", t, Y(t))).max() < 1e-14
    for t in T_tilde[1:-1]:  # both Z^r and Z~^r have the derivative r there
        np.testing.assert_allclose(Z_dot(t), Zt_dot(t), atol=1e-10)
    k = np.array([system.evaluate("k", t, Y(t), Z(t)) for t in T])
    if isinstance(method, da.GaussLobattoSPARK):
        for i in range(1, s):
            assert np.abs((tableau.b * tableau.c ** (i - 1)) @ k).max() < 1e-13
    else:
        assert np.abs([system.evaluate("k", t, Y(t), Zt(t)) for t in T_tilde]).max() < 1e-13
    # The jumps at the ends: Z(t0) = z0 - h b~_0 mu~(t0), z1 = Z(t1) - h b~_s mu~(t1), mu~ = (Z^r)' - r
    f = np.array([system.evaluate("f", t, Y(t), Z(t), psi(t)) for t in T])
    interpolated = [Polynomial.fit(T, column, s - 1) for column in f.T]
    for t, weight, jump in (
        (run.t[0], tableau.b_tilde[0], run.p[0] - Z(run.t[0])),
        (run.t[1], tableau.b_tilde[-1], Z(run.t[1]) - run.p[1]),
    ):
        mu = Z_dot(t) - np.array([p(t) for p in interpolated]) - system.evaluate("reaction", t, Y(t), lam(t))
        np.testing.assert_allclose(jump, h * weight * mu, atol=1e-12)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_accuracy_inside_a_step(method):
    """Errors in one step from exact values: Y between its nodes O(h^(s+1)), Psi at its nodes O(h^(s+1)), Lambda O(h^s)."""
    s, exact = method.stages, solution()
    steps = np.array([0.02, 0.015, 0.01, 0.0075])
    errors = {"Y": [], "lam": [], "psi": []}
    for h in steps:
        run = one_step(method, h)
        c, c_tilde = method.tableau.c * h, method.tableau.c_tilde * h
        errors["Y"].append(np.abs(run.at(0.37 * h).y - exact(0.37 * h).q).max())
        errors["lam"].append(max(np.abs(run.at(t).lam - exact(t).lam).max() for t in c_tilde))
        errors["psi"].append(max(np.abs(run.at(t).psi - exact(t).psi).max() for t in c))
    slopes = {name: da.verify.slope(steps, values, points=3)[0] for name, values in errors.items()}
    for name, order in {"Y": s + 1, "lam": s, "psi": s + 1}.items():
        assert abs(slopes[name] - order) < 0.15, (name, slopes, errors)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_lobatto_polynomials(stages):
    """Q collocates at all nodes; P lies on a polynomial of degree s-2 through the stages; both meet g and the states."""
    method, problem, h = da.LobattoIIIAB(stages), da.problems.double_pendulum(), 0.1
    moving = da.simulate(problem, method, h=h, steps=7)
    run = da.simulate(problem, method, start=da.consistent(problem.system, q0=moving.q[-1], p0=moving.p[-1]), h=h, steps=1)
    for side in ("left", "right"):
        ends = run.at(run.t, side=side)
        np.testing.assert_allclose(ends.q, run.q, atol=1e-14)
        np.testing.assert_allclose(ends.p, run.p, atol=1e-14)
    c = method.tableau.c * h
    Q, Q_dot, off = polynomial(run, "y", stages, more=2)
    P, P_dot, off_P = polynomial(run, "Z", stages - 2, more=2)
    assert off < 1e-13 and off_P < 1e-13
    inside = run.at(c)
    system = problem.system
    for t, lam in zip(c, inside.lam, strict=True):
        np.testing.assert_allclose(Q_dot(t), system.evaluate("H_p", t, Q(t), P(t)), atol=1e-11)
        assert np.abs(system.evaluate("g", t, Q(t))).max() < 1e-14
        if 0 < t < c[-1]:
            force = -system.evaluate("H_q", t, Q(t), P(t)) + system.evaluate("reaction", t, Q(t), lam)
            np.testing.assert_allclose(P_dot(t), force, atol=1e-10)


@pytest.mark.parametrize(
    "method", [da.RadauIIA(1), da.RadauIIA(3), da.RadauIIA(3, projected=True), da.Gauss(2, projected=True)], ids=str
)
def test_radau_and_gauss_polynomials(method):
    """Q and P lie on polynomials of degree s with the right rates at the nodes; projections change the ends only."""
    problem, h = da.problems.spherical_pendulum(), 0.1
    run = da.simulate(problem, method, h=h, steps=4)
    for side in ("left", "right"):
        inside = run.at(run.t, side=side)
        np.testing.assert_allclose(inside.q, run.q, atol=1e-14)
        np.testing.assert_allclose(inside.p, run.p, atol=1e-14)
    system, s = problem.system, method.stages
    Q, Q_dot, off = polynomial(run, "y", s, more=2)
    P, P_dot, p_off = polynomial(run, "Z", s, more=2)
    lam = polynomial(run, "lam", s - 1)[0] if s > 1 else lambda t: run.at(t, side="left").lam
    assert max(off, p_off) < 1e-13
    nodes = method.tableau.c * h
    ends = run.at([0.0, h], side="left").q - run.at([0.0, h], side="left").q[0]
    moved = (ends[1] - h * (method.tableau.b @ [system.evaluate("v", t, run.at(t, side="left").q, P(t)) for t in nodes])) / h
    for t in nodes:
        if not method.projected:
            assert np.abs(system.evaluate("g", t, Q(t))).max() < 1e-14
            np.testing.assert_allclose(Q_dot(t), system.evaluate("v", t, Q(t), P(t)), atol=1e-12)
        force = system.evaluate("f", t, Q(t) - t * moved, P(t), []) + system.evaluate("reaction", t, Q(t) - t * moved, lam(t))
        np.testing.assert_allclose(P_dot(t), force, atol=1e-10)


def test_inside_of_controlled_steps():
    """Of a stiff oscillator, x'' = -k x - c x', whose motion is known."""
    k, c = 1e4, 1e3
    stiff = da.Lagrangian(lambda q, v: v @ v / 2 - k * q @ q / 2, dim=1, force=lambda q, v: -c * v)
    run = da.simulate(stiff, da.ControlledSteps(da.RadauIIA(3), rtol=1e-7), q0=[1.0], v0=[0.0], t1=0.5)
    fast, slow = np.roots([1.0, c, k])
    t = np.linspace(0.0, 0.5, 301)
    exact = (fast * np.exp(slow * t) - slow * np.exp(fast * t)) / (fast - slow)
    assert len(run) < 150 and np.abs(run.at(t).q[:, 0] - exact).max() < 1e-5


def test_single_times_give_vectors_and_arrays_rows():
    run = da.simulate(mixed(), da.GaussLobattoSPARK(2), start=start(), h=0.1, steps=5)
    one, many = run.at(0.33), run.at([0.33, 0.41])
    assert one.q.shape == (4,) and many.q.shape == (2, 4) and many.psi.shape == (2, 1)
    np.testing.assert_array_equal(one.p, many.p[0])


def test_dense_output_of_a_system_with_its_own_momentum():
    """With d/dt p(t, y, z), z follows from the polynomial of p: the same motion as the Lagrangian that it came from."""
    lagrangian = mixed()
    run = da.simulate(lagrangian, da.GaussLobattoSPARK(2), start=start(), h=0.1, steps=4)
    state = start()
    twin = da.simulate(da.ODAE.of(lagrangian), da.GaussLobattoSPARK(2), y0=state.q, z0=state.v, h=0.1, steps=4)
    t = np.linspace(0.0, 0.4, 9)
    np.testing.assert_allclose(twin.at(t).y, run.at(t).y, atol=1e-13)
    velocities = [lagrangian.evaluate("v", s, q, p) for s, q, p in zip(t, run.at(t).q, run.at(t).p, strict=True)]
    np.testing.assert_allclose(twin.at(t).z, velocities, atol=1e-12)


def test_what_has_no_dense_output_says_so(tmp_path):
    problem = da.problems.pendulum()
    with pytest.raises(da.UnsupportedSystem, match="LobattoIIIAB"):
        da.simulate(problem, da.LobattoIIIC(2), h=0.1, steps=3).at(0.1)
    with pytest.raises(da.UnsupportedSystem, match="without nonholonomic"):
        da.simulate(da.problems.nonholonomic_particles(), da.RadauIIA(2), steps=3).at(0.1)
    with pytest.raises(da.UnsupportedSystem, match="dense output"):
        da.simulate(problem, da.compose(da.Rattle(), 4), h=0.1, steps=3).at(0.1)
    run = da.simulate(problem, da.Rattle(), h=0.1, steps=4)
    with pytest.raises(da.InputError, match="outside of the run"):
        run.at([0.1, 0.5])
    with pytest.raises(da.InputError, match="outside"):
        run.at(np.nan)
    with pytest.raises(da.InputError, match="side"):
        run.at(0.1, side="up")
    with pytest.raises(da.InputError, match="save_every=1"):
        da.simulate(problem, da.Rattle(), h=0.1, steps=4, save_every=2).at(0.1)
    with pytest.raises(da.DalembertError, match="model"):
        da.load(run.save(tmp_path / "run")).at(0.1)
