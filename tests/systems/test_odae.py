"""Overdetermined DAEs in general: mechanics as a special case, nonlinear momenta, explicit time, parameters, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sentences import refused

import dalembert as da


def dop853(rhs, x0, t1):
    solution = solve_ivp(rhs, (0.0, t1), x0, method="DOP853", rtol=1e-13, atol=1e-13)
    assert solution.success
    return solution.y[:, -1]


# -- mechanics is a special case -------------------------------------------------------------------------------------


def hamiltonian():
    """Nonseparable, with explicit time in H and in g, damped."""
    return da.Hamiltonian(
        lambda t, q, p, B: ((p[0] + B * q[1]) ** 2 + p[1] ** 2 * (1 + q[0] ** 2) + p[2] ** 2) / 2 + np.cos(t) * q[2],
        dim=3,
        holonomic=lambda t, q: [q @ q - 1 - np.sin(t) / 4],
        force=lambda v: -v / 5,
        params={"B": 0.7},
    )


def lagrangian():
    """A mass matrix M(t, q), a gyroscopic term, explicit time in g."""
    return da.Lagrangian(
        lambda t, q, v: (2 + np.sin(q[1] + t)) * v[0] ** 2 / 2 + (1 + q[0] ** 2) * v[1] ** 2 / 2 + v[2] ** 2
        + v[0] * v[1] / 3 + q[1] * v[2] / 2 - q[0] * q[2],
        dim=3,
        holonomic=lambda t, q: [q[0] + q[1] ** 2 / 2 + np.sin(q[2]) - np.cos(t)],
    )  # fmt: skip


@pytest.mark.parametrize("conjugate", [False, True])
@pytest.mark.parametrize("variant", ["true", "natural"])
def test_a_hamiltonian_system_in_this_form_runs_alike(variant, conjugate):
    system, method = hamiltonian(), da.SymplecticEuler(variant, conjugate)
    start = da.consistent(system, q0=[0.6, 0.5, 0.6], v0=[0.4, -0.7, 0.3])
    mechanical = da.simulate(system, method, start=start, h=0.02, steps=100)
    general = da.simulate(da.ODAE.of(system), method, y0=start.q, z0=start.p, h=0.02, steps=100)
    np.testing.assert_allclose(general.y, mechanical.q, atol=1e-13)
    np.testing.assert_allclose(general.z, mechanical.p, atol=1e-13)
    np.testing.assert_allclose(general.lam, mechanical.lam, atol=1e-12)
    np.testing.assert_allclose(general.energy, mechanical.energy, atol=1e-13)


@pytest.mark.parametrize("method", [da.SymplecticEuler(), da.SymplecticEuler(conjugate=True), da.ConstrainedEuler(),
                                    da.compose(da.SymplecticEuler(), "suzuki-4")], ids=str)  # fmt: skip
def test_a_lagrangian_system_in_velocities_runs_alike(method):
    """z = v and p(t, y, z) = L_v: the same steps in other variables."""
    system = lagrangian()
    start = da.consistent(system, q0=[0.4, 0.5, 0.5], v0=[0.5, -0.6, 0.2])
    mechanical = da.simulate(system, method, start=start, h=0.02, steps=100)
    general = da.simulate(da.ODAE.of(system), method, y0=start.q, z0=start.v, h=0.02, steps=100)
    np.testing.assert_allclose(general.y, mechanical.q, atol=1e-13)
    np.testing.assert_allclose(general.z, mechanical.v, atol=1e-13)
    np.testing.assert_allclose(general.lam, mechanical.lam, atol=1e-12)
    np.testing.assert_allclose(general.energy, mechanical.energy, atol=1e-13)


def test_parameters_come_along():
    system = hamiltonian()
    start = da.consistent(system, q0=[0.6, 0.5, 0.6], v0=[0.4, -0.7, 0.3], params={"B": 0.2})
    run = da.simulate(da.ODAE.of(system), da.SymplecticEuler(), y0=start.q, z0=start.p, h=0.02, steps=10, params={"B": 0.2})
    mechanical = da.simulate(system, da.SymplecticEuler(), start=start, h=0.02, steps=10)
    np.testing.assert_allclose(run.y, mechanical.q, atol=1e-14)


# -- d/dt p(t, y, z) with a p that is not affine in z ------------------------------------------------------------------


def heavy():
    """p = z (1 + z^T z / 3) + t y / 4 on an ellipsoid; r is cubic in lam."""
    return da.ODAE(
        v=lambda z: z,
        p=lambda t, y, z: z * (1 + z @ z / 3) + t * y / 4,
        f=lambda y, z: [-y[1], y[0] * z[2], -1.0],
        r=lambda y, lam: -np.array([y[0], y[1], 2 * y[2]]) * (lam[0] + lam[0] ** 3 / 10),
        g=lambda y: [(y[0] ** 2 + y[1] ** 2 + 2 * y[2] ** 2 - 1) / 2],
        dim_y=3,
        dim_z=3,
    )


def heavy_rates(t, y, z):
    """z' and the multiplier by hand: p_z z' = f + r - p_t - p_y v, and 0 = d/dt (g_y z), with mu = lam + lam^3/10."""
    D = np.array([1.0, 1.0, 2.0])
    p_z = (1 + z @ z / 3) * np.eye(3) + 2 / 3 * np.outer(z, z)
    force = np.array([-y[1], y[0] * z[2], -1.0]) - y / 4 - t * z / 4
    free, along = np.linalg.solve(p_z, force), np.linalg.solve(p_z, D * y)
    mu = (z @ (D * z) + (D * y) @ free) / ((D * y) @ along)
    roots = np.roots([0.1, 0, 1, -mu])
    return free - along * mu, roots[np.abs(roots.imag) < 1e-9].real


HEAVY = {"y0": [0.6, 0.0, np.sqrt(0.32)], "z0": [0.0, 0.8, 0.0]}


@pytest.mark.parametrize(
    ("method", "order", "steps"),
    [
        (da.SymplecticEuler(), 1, (320, 640, 1280)),
        (da.SymplecticEuler(conjugate=True), 1, (320, 640, 1280)),
        (da.adjoint(da.SymplecticEuler()), 1, (320, 640, 1280)),
        (da.compose(da.SymplecticEuler(), "strang"), 2, (80, 160, 320)),
        (da.compose(da.SymplecticEuler(), "suzuki-4"), 4, (20, 40, 80)),
    ],
    ids=str,
)
def test_orders_with_a_nonlinear_momentum(method, order, steps):
    def rhs(t, x):
        return np.concatenate([x[3:], heavy_rates(t, x[:3], x[3:])[0]])

    x = dop853(rhs, [*HEAVY["y0"], *HEAVY["z0"]], 1.0)
    reference = {"y": x[:3], "z": x[3:], "lam": heavy_rates(1.0, x[:3], x[3:])[1]}
    study = da.verify.order(heavy(), method, reference=reference, t1=1.0, steps=steps, **HEAVY)
    assert set(study.slopes) == {"y", "z", "lam"}
    assert all(abs(slope - order) < 0.05 for slope in study.slopes.values()), study


def test_one_step_with_a_nonlinear_momentum_by_hand():
    """(3.5) with p(t, y, z) for z: every residual of the step, from the stored state alone."""
    h, y0, z0 = 0.05, np.array(HEAVY["y0"]), np.array(HEAVY["z0"])
    new = da.verify.step(heavy(), da.SymplecticEuler(), h=h, **HEAVY)

    def momentum(t, y, z):
        return z * (1 + z @ z / 3) + t * y / 4

    def f(y, z):
        return np.array([-y[1], y[0] * z[2], -1.0])

    D = np.array([1.0, 1.0, 2.0])
    Z1 = (new.y - y0) / h
    at0 = momentum(0, y0, Z1) - momentum(0, y0, z0) - h * f(y0, Z1)  # parallel to r(y_0)
    at1 = momentum(h, new.y, new.z) - momentum(0, y0, z0) - h * f(y0, Z1) - at0  # parallel to r(y_1)
    assert np.max(np.abs(np.cross(at0, D * y0))) < 1e-14
    assert np.max(np.abs(np.cross(at1, D * new.y))) < 1e-14
    assert abs(new.y @ (D * new.y) - 1) < 1e-15
    assert abs(new.y @ (D * new.z)) < 1e-15


# -- explicit time, against a manufactured solution ---------------------------------------------------------------------


def manufactured():
    """y = (sin t, e^-t - sin^2 t), z = (e^t cos t, -e^-t - sin 2t - t sin t), lam = 1 + t^2."""

    def reaction(t, z, lam):
        return [np.sin(t) * lam**2, (2 + np.cos(t)) * lam + z[0] ** 2 * lam**3 / 10]

    def f(t, y, z):
        exact_z0 = np.exp(t) * np.cos(t)
        rate = [np.exp(t) * (np.cos(t) - np.sin(t)), np.exp(-t) - 2 * np.cos(2 * t) - np.sin(t) - t * np.cos(t)]
        balance = reaction(t, [exact_z0], 1 + t**2)
        off_y, off_z = y[1] - np.exp(-t) + np.sin(t) ** 2, z[0] - exact_z0
        return [rate[0] - balance[0] + off_y * z[1], rate[1] - balance[1] + off_z * y[0] - off_y]

    return da.ODAE(
        v=lambda t, y, z: [np.exp(-t) * z[0], z[1] + t * y[0]],
        f=f,
        r=lambda t, z, lam: reaction(t, z, lam[0]),
        g=lambda t, y: [y[0] ** 2 + y[1] - np.exp(-t)],
        dim_y=2,
        dim_z=2,
    )


def manufactured_solution(t):
    return {
        "y": [np.sin(t), np.exp(-t) - np.sin(t) ** 2],
        "z": [np.exp(t) * np.cos(t), -np.exp(-t) - np.sin(2 * t) - t * np.sin(t)],
        "lam": [1 + t**2],
    }


@pytest.mark.parametrize(
    ("method", "order", "steps"),
    [
        (da.SymplecticEuler(), 1, (640, 1280, 2560)),
        (da.SymplecticEuler(conjugate=True), 1, (640, 1280, 2560)),
        (da.ConstrainedEuler("explicit", "explicit"), 1, (640, 1280, 2560)),
        (da.ConstrainedEuler("implicit", "implicit"), 1, (640, 1280, 2560)),
        (da.adjoint(da.SymplecticEuler()), 1, (640, 1280, 2560)),
        (da.compose(da.SymplecticEuler(), "strang"), 2, (80, 160, 320)),
        (da.compose(da.SymplecticEuler(), "blanes-moan-4"), 4, (20, 40, 80)),
    ],
    ids=str,
)
def test_orders_with_explicit_time(method, order, steps):
    start = {"y0": [0.0, 1.0], "z0": [1.0, -1.0], "lam0": [1.0]}
    study = da.verify.order(manufactured(), method, reference=manufactured_solution, t1=1.0, steps=steps, **start)
    assert set(study.slopes) == {"y", "z", "lam"}
    assert all(abs(slope - order) < 0.05 for slope in study.slopes.values()), study


def test_a_run_may_start_at_any_time():
    exact = manufactured_solution(0.4)
    state = da.consistent(manufactured(), y0=exact["y"], z0=exact["z"], lam0=[1.0], t0=0.4)
    np.testing.assert_allclose(state.lam, exact["lam"], rtol=1e-13)
    run = da.simulate(manufactured(), da.compose(da.SymplecticEuler(), 4), start=state, h=0.01, t1=0.9)
    np.testing.assert_allclose(run.y[-1], manufactured_solution(0.9)["y"], atol=1e-7)
    np.testing.assert_allclose(run.lam[-1], manufactured_solution(0.9)["lam"], atol=1e-6)


# -- parameters ------------------------------------------------------------------------------------------------------


def sliding(**changes):
    """A mass that friction c |lam|^e slows down on the line y_2 = 0: z_1' = -c (m g)^e / m."""
    arguments = {
        "v": lambda z: z,
        "f": lambda gravity: [0.0, -gravity],
        "r": lambda z, lam, c, e, m: np.array([0.0, 1.0]) * lam[0] / m - c * np.abs(lam[0]) ** e * z / np.sqrt(z @ z) / m,
        "g": lambda y: [y[1]],
        "dim_y": 2,
        "dim_z": 2,
        "domain": lambda z, lam, z0: [lam[0], z @ z0],
        "params": {"gravity": 9.81, "c": 0.1, "e": 0.85, "m": 1.0},
        **changes,
    }
    return da.ODAE(**arguments)


START = {"y0": [0, 0], "z0": [2, 0], "lam0": [9.0], "h": 0.01, "steps": 50}


def test_parameters_are_inputs_of_the_compiled_step(monkeypatch):
    """The exact speed follows every parameter, and nothing is compiled for it."""
    from dalembert.compiler import _program

    system = sliding()
    da.simulate(system, da.SymplecticEuler(), **START)

    def compiled_again(*_):
        raise AssertionError("a change of parameters compiled a program")

    monkeypatch.setattr(_program, "_compile", compiled_again)
    for changes in ({}, {"c": 0.3}, {"e": 0.5, "m": 2.0}, {"gravity": 1.62}):
        run = da.simulate(system, da.SymplecticEuler(), **START, params=changes)
        p = {**system.params, **changes}
        slowing = p["c"] * (p["m"] * p["gravity"]) ** p["e"] / p["m"]
        np.testing.assert_allclose(run.z[:, 0], 2 - slowing * run.t, atol=1e-13)
        np.testing.assert_allclose(run.lam[:, 0], p["m"] * p["gravity"], rtol=1e-12)


def test_equal_models_have_equal_fingerprints():
    assert sliding().fingerprint == sliding().fingerprint
    assert sliding().fingerprint != sliding(g=lambda y: [2 * y[1]]).fingerprint
    assert sliding().fingerprint != sliding(domain=lambda lam: [lam[0]]).fingerprint


def test_runs_are_kept_and_read_back(tmp_path):
    system = sliding(energy=lambda z, m: m * z @ z / 2)
    run = da.simulate(system, da.SymplecticEuler(), **START, stage_multipliers=True)
    again = da.load(run.save(tmp_path / "run"))
    for name in ("t", "y", "z", "lam", "energy", "stage_lam"):
        np.testing.assert_array_equal(getattr(again, name), getattr(run, name))
    np.testing.assert_allclose(run.energy, np.sum(run.z**2, axis=1) / 2)


def test_a_system_without_constraints_is_an_ordinary_differential_equation():
    system = da.ODAE(v=lambda z: z, f=lambda y: [-y[0]], dim_y=1, dim_z=1)
    study = da.verify.order(system, da.compose(da.SymplecticEuler(), 4), reference={"y": [np.sin(2.0)], "z": [np.cos(2.0)]},
                            t1=2.0, steps=(20, 40, 80), y0=[0], z0=[1])  # fmt: skip
    assert all(abs(slope - 4) < 0.1 for slope in study.slopes.values()), study


# -- projection ------------------------------------------------------------------------------------------------------


def test_consistent_moves_y_to_the_nearest_point():
    """The nearest point of the unit circle; then z loses its part along g_y v_z."""
    circle = da.ODAE(v=lambda z: [2 * z[0], z[1]], f=lambda y: [0, -1], r=lambda y, lam: y * lam[0], g=lambda y: [y @ y - 1],
                     dim_y=2, dim_z=2)  # fmt: skip
    state = da.consistent(circle, y0=[3.0, 4.0], z0=[1.0, 1.0])
    np.testing.assert_allclose(state.y, [0.6, 0.8], rtol=1e-14)
    normal = np.array([2 * 0.6, 0.8])
    np.testing.assert_allclose(state.z, np.ones(2) - normal * (normal @ np.ones(2)) / (normal @ normal), rtol=1e-14)


# -- refusals --------------------------------------------------------------------------------------------------------


MODELS = {
    "no dependence on lam": ({"r": lambda z: -z}, ["multipliers lam", "r must depend on"]),
    "dependence on one of two": (
        {"g": lambda y: [y[1], y[0] - y[1]], "r": lambda lam: [lam[0], 0 * lam[1]]},
        ["2 multipliers lam", "each of them"],
    ),
    "no r": ({"r": None}, ["multipliers lam", "r must depend on"]),
    "no psi": ({"k": lambda z: [z[0] - 1]}, ["multipliers psi", "f must depend on"]),
    "dim_y zero": ({"dim_y": 0}, ["dim_y", "positive integer", "0"]),
    "dim_y a float": ({"dim_y": 2.0}, ["dim_y", "positive integer", "2.0"]),
    "dim_z true": ({"dim_z": True}, ["dim_z", "positive integer", "True"]),
    "dim_z text": ({"dim_z": "2"}, ["dim_z", "positive integer", "'2'"]),
    "v of wrong shape": ({"v": lambda z: [z[0]]}, ["v", "2 numbers", "(1,)"]),
    "f of wrong shape": ({"f": lambda: [0.0, 0.0, 0.0]}, ["f", "2 numbers", "(3,)"]),
    "r of wrong shape": ({"r": lambda lam: lam}, ["r", "2 numbers", "(1,)"]),
    "v no function": ({"v": 3.0}, ["v", "must be a function", "3.0"]),
    "g of z": ({"g": lambda z: [z[0]]}, ["g", "'z'", "t, y"]),
    "unknown parameter": ({"f": lambda weight: [0.0, weight]}, ["'weight'", "params={...}"]),
    "too many constraints": ({"g": lambda y: [y[0], y[1], y[0] + y[1]]}, ["3 constraints", "2"]),
    "g empty": ({"g": lambda y: []}, ["g", "empty list", "leave the argument out"]),
    "p singular": ({"p": lambda z: [z[0], z[0]]}, ["p_z is singular", "z[i]"]),
    "p of wrong shape": ({"p": lambda z: [z[0]]}, ["p", "2 numbers"]),
    "domain a matrix": ({"domain": lambda z: np.outer(z, z)}, ["domain", "(2, 2)"]),
    "energy a vector": ({"energy": lambda z: z}, ["energy", "one number"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_bad_models_are_refused_in_one_sentence(name):
    changes, words = MODELS[name]
    refused(da.ModelError, words, lambda: sliding(**changes))


STARTS = {
    "y0 of wrong shape": ({"y0": [0]}, ["y0", "(2,)", "(1,)"]),
    "z0 of wrong shape": ({"z0": [1, 0, 0]}, ["z0", "(2,)", "(3,)"]),
    "lam0 of wrong shape": ({"lam0": [1, 2]}, ["lam0", "(1,)", "(2,)"]),
    "z0 text": ({"z0": "fast"}, ["z0", "2 real numbers"]),
    "z0 not finite": ({"z0": [np.inf, 0]}, ["z0", "finite"]),
    "no z0": ({"z0": None}, ["y0 and z0"]),
    "no y0": ({"y0": None}, ["y0 and z0"]),
    "q0": ({"q0": [0, 0], "y0": None}, ["q0", "y0", "z0"]),
    "p0 too": ({"p0": [0, 0]}, ["p0", "y0", "z0"]),
    "off g": ({"y0": [0, 0.1]}, ["g[0]", "0.1", "da.consistent(system, y0=..., z0=...)"]),
    "off the hidden constraint": ({"z0": [1, 0.2]}, ["g_t + g_y v", "0.2", "da.consistent(system, y0=..., z0=...)"]),
    "outside of the domain": ({"params": {"gravity": -1.0}, "lam0": [-1.0]}, ["domain", "positive"]),
    "no speed": ({"z0": [0, 0]}, ["not finite", "initial values"]),
}


@pytest.mark.parametrize("name", STARTS)
def test_bad_starts_are_refused_in_one_sentence(name):
    changes, words = STARTS[name]
    arguments = {**START, **changes}
    refused(da.InputError, words, lambda: da.simulate(sliding(), da.SymplecticEuler(), **arguments))


def test_y0_is_not_for_mechanical_systems():
    refused(da.InputError, ["y0", "q0"], lambda: da.simulate(hamiltonian(), da.SymplecticEuler(), y0=[1, 0, 0], z0=[0, 0, 0],
                                                             h=0.1, steps=1))  # fmt: skip


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Rattle(), da.UnderlyingODE(da.tableaux.gauss(2))], ids=str)
def test_methods_for_mechanics_name_one_for_these_systems(method):
    words = [str(method), "ODAE", "da.SymplecticEuler()"]
    refused(da.UnsupportedSystem, words, lambda: da.simulate(sliding(), method, **START))
    refused(da.UnsupportedSystem, words, lambda: da.verify.step(sliding(), method, y0=[0, 0], z0=[2, 0], lam0=[9], h=0.1))


def test_a_half_explicit_method_refuses_these_systems():
    refused(
        da.UnsupportedSystem, ["HalfExplicitEuler", "ODAE"], lambda: da.simulate(sliding(), da.HalfExplicitEuler(), **START)
    )


def test_what_the_system_does_not_have_is_not_shown():
    run = da.simulate(sliding(), da.SymplecticEuler(), **START)
    with pytest.raises(AttributeError, match="y and z"):
        _ = run.q
    refused(da.InputError, ["energy="], lambda: run.energy)
    start = {"y0": [0, 0], "z0": [2, 0], "lam0": [9]}
    refused(
        da.InputError,
        ["symplecticity"],
        lambda: da.verify.symplecticity_defect(sliding(), da.SymplecticEuler(), h=0.1, **start),
    )
