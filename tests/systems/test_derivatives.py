"""Every derivative of a nonseparable, time-dependent, forced and constrained Hamiltonian system, against SymPy."""

import casadi as ca
import numpy as np
import pytest
import sympy as sp

import dalembert as da
from dalembert.symbolic import from_column
from dalembert.systems import BoundSystem

N, A, B = 3, 0.7, np.array([1.5, -0.4])


def energy(np, t, q, p, a, b):
    return (
        (1 + q[0] ** 2) * p[0] ** 2 / 2
        + np.exp(a * q[1]) * p[1] ** 2
        + (p[2] - np.sin(t) * q[0]) ** 2 / (2 + np.cos(q[2]))
        + b[0] * p[0] * p[1] * np.sin(q[2])
        + p[2] ** 4 / 7
        + b[1] * np.cos(q[0] - t * q[1])
    )


def constraints(np, t, q, a):
    return [q[0] ** 2 + q[1] ** 2 + a * q[2] ** 2 - np.cos(t), q[2] - np.sin(q[0]) * np.exp(-t * t) + q[1]]


def applied(np, t, q, p, a):
    return [-a * p[0], np.sin(3 * t), q[1] * p[2]]


def rolling(np, t, q, v):
    return [np.cos(q[0]) * v[1] - q[2] * v[0] + np.sin(v[2]) / 3 + t]


SYSTEM = da.Hamiltonian(
    lambda t, q, p, a, b: energy(np, t, q, p, a, b),
    dim=N,
    holonomic=lambda t, q, a: constraints(np, t, q, a),
    nonholonomic=lambda t, q, v: rolling(np, t, q, v),
    force=lambda t, q, p, a: applied(np, t, q, p, a),
    params={"a": A, "b": B},
)

t, *q = sp.symbols("t q:3", real=True)
p = sp.symbols("p:3", real=True)
v = sp.symbols("v:3", real=True)
lam, psi = sp.symbols("lam:2", real=True), sp.symbols("psi:1", real=True)
multipliers = (*lam, *psi)
H = energy(sp, t, q, p, sp.Float(A, 30), [sp.Float(b, 30) for b in B])
g = sp.Matrix(constraints(sp, t, q, sp.Float(A, 30)))
force = sp.Matrix(applied(sp, t, q, p, sp.Float(A, 30)))
H_q, H_p = sp.Matrix([H]).jacobian(q).T, sp.Matrix([H]).jacobian(p).T
G = g.jacobian(q)
g_dot = g.diff(t) + G * H_p
velocities = dict(zip(v, H_p, strict=True))
k_of_v = sp.Matrix(rolling(sp, t, q, v))
k, k_v = k_of_v.subs(velocities), k_of_v.jacobian(v).subs(velocities)
hidden = g_dot.col_join(k)
f, r = force - H_q - k_v.T * sp.Matrix(psi), -G.T * sp.Matrix(lam)
along = hidden.diff(t) + hidden.jacobian(q) * H_p + hidden.jacobian(p) * (f + r)
SYMBOLIC = {
    "H": sp.Matrix([H]),
    "H_p": H_p,
    "H_q": H_q,
    "H_pp": H_p.jacobian(p),
    "force": force,
    "g": g,
    "G": G,
    "g_dot": g_dot,
    "g_yy": (G.T * sp.Matrix(lam)).jacobian(q),
    "k": k,
    "k_v": k_v,
    "v": H_p,
    "f": f,
    "r": r,
    "reaction": r,
    "z_dot": f + r,
    "hidden": hidden,
    "hidden_y": hidden.jacobian(q),
    "hidden_z": hidden.jacobian(p),
    "hidden_rate": along,
    "directions": -(f + r).jacobian(multipliers),
    "multiplier_rhs": along.subs(dict.fromkeys(multipliers, 0)),
    "multiplier_matrix": -along.jacobian(multipliers),
}
EXACT = {name: sp.lambdify([t, q, p, lam, psi], matrix, "numpy", cse=True) for name, matrix in SYMBOLIC.items()}
POINTS = [(x[0], x[1:4], x[4:7], x[7:9], x[9:10]) for x in np.random.default_rng(3).normal(size=(6, 10))]
ARGUMENTS = {
    **dict.fromkeys(("g", "G"), (0, 1)),
    **dict.fromkeys(("reaction", "g_yy"), (0, 1, 3)),
    **dict.fromkeys(("z_dot", "hidden_rate", "directions"), (0, 1, 2, 3, 4)),
    "f": (0, 1, 2, 4),
    "r": (0, 1, 2, 3),
}


def arguments(name, point):
    return tuple(point[i] for i in ARGUMENTS.get(name, (0, 1, 2)))


def test_every_function_is_checked():
    assert set(SYSTEM.function_names) == set(SYMBOLIC)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_function_is_what_sympy_derives(name):
    for point in POINTS:
        wanted = np.array(EXACT[name](*point), dtype=float)
        got = SYSTEM.evaluate(name, *arguments(name, point))
        assert got.shape == (wanted.shape if name in SYSTEM.matrices else wanted.shape[:1])
        np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=1e-12, atol=1e-13)


def test_multipliers_make_the_hidden_constraint_stationary():
    for time, position, momentum, *_ in POINTS:
        values = SYSTEM.multipliers(time, position, momentum, SYSTEM.parameters.vector())
        change = sp.lambdify([t, q, p, multipliers], along, "numpy")(time, position, momentum, values)
        np.testing.assert_allclose(np.array(change, dtype=float), 0, atol=1e-11)


@pytest.mark.parametrize("name", ["H_p", "force", "g", "G", "g_dot", "H_pp", "reaction"])
def test_methods_see_the_same_functions_on_stages(name):
    """`BoundSystem` on symbolic stages: shape (s, ...), and the numbers of `evaluate` row by row."""
    theta = SYSTEM.parameters.vector()
    rows = [np.concatenate([np.atleast_1d(x) for x in arguments(name, point)]) for point in POINTS[:2]]
    x = ca.SX.sym("x", 2 * len(rows[0]))
    stages = from_column(x, (2, -1))
    size = len(rows[0]) - 1 - N
    split = [stages[:, 0], stages[:, 1 : 1 + N]] + ([stages[:, 1 + N :]] if size else [])
    value = getattr(BoundSystem(SYSTEM, ca.SX(theta)), name)(*split)
    single = [SYSTEM.evaluate(name, *arguments(name, point)) for point in POINTS[:2]]
    assert value.shape == np.shape(single)
    column = ca.vertcat(*(item.sx for item in value.ravel()))
    numbers = np.asarray(ca.Function("f", [x], [column])(np.concatenate(rows))).reshape(value.shape)
    np.testing.assert_allclose(numbers, single, rtol=1e-14)


def test_unknown_function_is_refused_by_name():
    with pytest.raises(AttributeError, match="H_pp"):
        BoundSystem(SYSTEM, ca.SX(3, 1)).H_qqq  # noqa: B018
