"""Products with the Hessian against differences of runs in multiprecision, and against theorems."""

from __future__ import annotations

import casadi as ca
import mpmath
import numpy as np
import pytest
from derivative_cases import cases, method_models, mixed

import dalembert as da
from dalembert.derivatives import _gradient, _record
from dalembert.derivatives._start import Start, _start_equations
from dalembert.systems._consistent import unpack
from dalembert.verify._multiprecision import _evaluator, _refined, _Stepper

DIGITS, SMALL = 50, "1e-13"


def start_in_multiprecision(mp, system, start, data):
    """The consistent start of (first, second, theta), by the equations that define it."""
    equations = _start_equations(system, start.velocity)[1]
    unknowns, values, matrix, _, _ = start._equations()
    symbols = [ca.SX.sym("s", size) for size in (1, len(unknowns), len(values))]
    residual = _evaluator(mp, symbols, equations(*symbols)[0])
    x = [mp.mpf(value) for value in unknowns]
    for _ in range(12):
        rest = residual([mp.mpf(start.state.t), *x, *data])
        if not any(rest):
            break
        x, _ = _refined(mp, x, matrix, rest)
    return [x[k] for k in start._places()]


def loss_in_multiprecision(mp, system, method, start, h, steps, data, weights):
    """The loss of a run from (first, second, theta): l + m l^2, l linear in the final state, m the first parameter or 1."""
    n = system.n_state
    theta = data[n:]
    packed = data[:n]
    if system.n_multipliers or start.velocity:
        packed = start_in_multiprecision(mp, system, start, data)
    t, steppers = mp.mpf(start.state.t), {}
    sizes = [(substep, mp.mpf(fraction * h)) for substep, fraction in method.substeps] * steps
    if method.starting is not None:
        sizes = [(method.starting, mp.mpf(h)), *sizes]
    for substep, size in sizes:
        stepper = steppers.setdefault(substep, _Stepper(mp, system, substep, DIGITS))
        here = unpack(system, float(t), np.array([float(x) for x in packed]), np.array([float(x) for x in theta]))
        packed = stepper.step(here, t, size, packed, theta)
        t = t if substep is method.starting else t + size
    linear = mp.fsum(mp.mpf(w) * x for w, x in zip(weights, packed, strict=True))
    return linear + (theta[0] if theta else 1) * linear**2


def check(system, method, given, h, steps):
    """e . H d for random directions d and e, by differences with 50 digits, to 1e-11 of the largest products."""
    random, n = np.random.default_rng(11), system.n_state
    state = da.consistent(system, **given)
    velocity = "v0" in given
    names = (*given, *system.params)
    weights = random.standard_normal(n)
    blocks, first = [name for name, _ in system.state_blocks if name], next(iter(system.params), "")
    code = " + ".join(f"{name}_weights @ {name}" for name in blocks)
    parts = np.split(weights, [system.state_blocks[0][1]])[-len(blocks) :]
    known = {f"{name}_weights": part for name, part in zip(blocks, parts, strict=True)}
    own = [first] if first else []
    loss = eval(f"lambda {', '.join(blocks + own)}: ({code}) + {first or 1} * ({code}) ** 2", known)
    shapes = {name: np.shape(given[name]) if name in given else np.shape(system.params[name]) for name in names}
    d, e = ({name: random.standard_normal(shape) for name, shape in shapes.items()} for _ in range(2))
    _, slope, product = da.hessian_product(loss, system, method, wrt=names, direction=d, h=h, steps=steps, **given)
    _, gradient = da.gradient(loss, system, method, wrt=names, h=h, steps=steps, **given)
    for name in names:
        np.testing.assert_allclose(slope[name], gradient[name], rtol=1e-11, atol=1e-11 * np.abs(gradient[name]).max())
    mp = mpmath.mp.clone()
    mp.dps = DIGITS + 5
    second = np.array(given["v0"]) if velocity else state.second
    start = Start(system, state, state.first, second, velocity)
    base = [mp.mpf(float(x)) for x in np.concatenate([start.first, start.second, state.theta])]
    along = [np.concatenate([np.ravel(each[name]) for name in names]) for each in (d, e)]
    eps, total = mp.mpf(SMALL), mp.mpf(0)
    for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        data = [x + eps * (a * mp.mpf(u) + b * mp.mpf(v)) for x, u, v in zip(base, *along, strict=True)]
        total += a * b * loss_in_multiprecision(mp, system, method, start, h, steps, data, weights)
    exact = float(total / (4 * eps**2))
    found = sum(np.sum(product[name] * e[name]) for name in names)
    size = sum(np.sum(np.abs(product[name] * e[name])) for name in names)
    assert abs(found - exact) < 1e-11 * size, (found, exact, size)


@pytest.mark.parametrize(
    ("method", "name"), list(cases(left_out=("magnetic_surface", "nonlinear_k", "double_pendulum_in_angles")))
)
def test_against_differences_in_multiprecision(method, name):
    """Every method of the table, on nonlinear models with all kinds of constraints and forces."""
    model = getattr(method_models, name)()
    check(model.system, method, model.start, model.t1 / 40, 2)


def test_mixed_constraints_and_velocities():
    """Holonomic and nonholonomic constraints, forces, time, masses in kilograms; a start given by velocities."""
    system = mixed()
    state = da.consistent(system, q0=[0.1, 0.2, 0.0, 0.4], v0=[1.0, 0.4, 0.0, 2.0])
    check(system, da.GaussLobattoSPARK(2), {"q0": state.q, "v0": state.v}, 0.01, 2)


def test_equations_agree_with_kernels_and_segments_with_whole_runs(monkeypatch):
    """Large programs are differentiated from their equations; running costs, times and compositions in many segments."""
    problem = da.problems.double_pendulum()
    given = dict(
        wrt=("q0", "m1", "g"), h=0.02, steps=40, at=[0.0, 0.2, 0.2, 0.8], running=lambda t, q, p, g: t * q[3] * p[0] * g**2,
        direction={"q0": [0.1, 0.2, -0.3, 0.4], "m1": 0.7},
    )  # fmt: skip

    def loss(t, q, m1):
        return np.sum(t * q[:, 0] ** 2) * m1

    for method in (da.LobattoIIIAB(3), da.compose(da.Rattle(), "suzuki-4")):
        results = [da.hessian_product(loss, problem, method, **given)]
        with monkeypatch.context() as patched:
            patched.setattr(_gradient, "SEGMENT", 600)
            results.append(da.hessian_product(loss, problem, method, **given))
            patched.setattr(_record, "differential", lambda program, chosen, kind: None)
            results.append(da.hessian_product(loss, problem, method, **given))
        (value, slope, product), *others = results
        for other in others:
            assert abs(value - other[0]) < 1e-12 * abs(value)
            for name in given["wrt"]:
                for ours, theirs in ((slope, other[1]), (product, other[2])):
                    np.testing.assert_allclose(theirs[name], ours[name], rtol=1e-11, atol=1e-11 * np.abs(ours[name]).max())


def test_the_hessian_is_symmetric():
    """Of all parameters, initial velocities and controls of a pendulum on its circle, column by column."""
    pendulum = da.Lagrangian(
        lambda q, v, m: m * v @ v / 2 - 9.81 * m * q[1], dim=2, holonomic=lambda q, r: [q @ q - r**2],
        force=lambda v, u, c: [u - c * v[0], -c * v[1]], params={"m": 0.2, "r": 0.5, "c": 0.01, "u": 0.0},
    )  # fmt: skip
    names, shapes = ("v0", "m", "r", "c", "u"), {"v0": (2,), "m": (), "r": (), "c": (), "u": (4,)}
    given = dict(wrt=names, q0=[0.3, -0.4], v0=[0.8, 0.6], h=0.02, steps=20, controls={"u": [0.1, -0.2, 0.3, 0.0]})
    columns = []
    for name in names:
        for place in np.ndindex(shapes[name]):
            direction = {name: np.zeros(shapes[name])}
            direction[name][place] = 1.0
            _, _, product = da.hessian_product(
                lambda q, v: q[0] * v[1], pendulum, da.GaussLobattoSPARK(2), running=lambda q, u: u * q[0] + u**2,
                direction=direction, **given,
            )  # fmt: skip
            columns.append(np.concatenate([np.ravel(product[other]) for other in names]))
    H = np.array(columns)
    unit = np.sqrt(np.abs(np.diag(H)) + 1e-3 * np.abs(H).max())
    assert np.abs(H - H.T).max() < 1e-12 * np.abs(H).max() and np.abs((H - H.T) / np.outer(unit, unit)).max() < 1e-11


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"direction": {"m": 1.0}}, "direction maps names"),
        ({"direction": 1.0, "wrt": ("k", "q0")}, "direction maps names"),
        ({"direction": [1.0, 2.0]}, "shape"),
        ({"direction": "x"}, "direction"),
        ({"direction": np.nan}, "finite"),
    ],
    ids=str,
)
def test_refusals(change, words):
    spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 4.0})
    given = {"wrt": "k", "direction": 1.0, "q0": [1.0], "p0": [0.0], "h": 0.1, "steps": 3} | change
    with pytest.raises(da.InputError, match=words):
        da.hessian_product(lambda q: q[0], spring, da.Gauss(1), **given)
    walled = da.Lagrangian(lambda v: v @ v / 2, dim=1, unilateral=lambda q: q[0])
    with pytest.raises(da.InputError, match="impacts"):
        da.hessian_product(lambda q: q[0], walled, da.CVA(), wrt="q0", direction=[1.0], q0=[1.0], v0=[-1.0], h=0.1, steps=3)


def test_a_ragged_direction_is_refused():
    spring = da.Hamiltonian(lambda q, p: p @ p / 2 + q @ q / 2, dim=2)
    given = dict(wrt="q0", q0=[1.0, 0.0], p0=[0.0, 0.0], h=0.1, steps=2)
    with pytest.raises(da.InputError, match="direction of 'q0'"):
        da.hessian_product(lambda q: q[0], spring, da.Gauss(1), direction=[1, [2]], **given)
