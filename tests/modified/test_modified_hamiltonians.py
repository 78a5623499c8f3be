"""Modified Hamiltonians against closed forms, against the steps that they explain, and against one another.

Equation numbers and appendix A refer to Pekarek and Murphey (2014).
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

import dalembert as da
from dalembert.modified._generating import generating_function
from dalembert.modified._hamilton_jacobi import modified_terms, powers_of_h
from dalembert.modified._stationary import lower_part

PROBLEMS = {
    "cart_pendulum": da.problems.cart_pendulum(),
    "double_pendulum_in_angles": da.problems.double_pendulum_in_angles(angles=(1.2, -0.4)),
    "particle_in_magnetic_field": da.problems.particle_in_magnetic_field(),
    "rod_on_spring": da.problems.rod_on_spring(),
}
LENGTHS = {"cart_pendulum": 0.96, "double_pendulum_in_angles": 4.8, "particle_in_magnetic_field": 9.6, "rod_on_spring": 2.4}
STATES = {
    name: (rng.normal(size=(3, p.system.dim)) * 0.3 + p.q0, rng.normal(size=(3, p.system.dim)))
    for name, p, rng in ((name, p, np.random.default_rng(7)) for name, p in PROBLEMS.items())
}
SYMMETRIC = ("SVA", "SVB", "SVC", "midpoint")


def tensors(system: Any, q: np.ndarray, p: np.ndarray) -> dict[str, np.ndarray]:
    """All derivatives of H up to the third at one state: "qqp" has the axes q, q, p."""
    Q, P, n = ca.SX.sym("q", system.dim), ca.SX.sym("p", system.dim), system.dim
    H = system.function("H")(0, Q, P, system.parameters.vector())
    result, symbols = {}, {"q": Q, "p": P}
    for order in (1, 2, 3):
        for slots in itertools.product("qp", repeat=order):
            value = H
            for slot in slots:
                value = ca.jacobian(ca.vec(value), symbols[slot])
            # vec stacks columns, so that earlier slots run fastest
            array = np.asarray(ca.Function("d", [Q, P], [ca.densify(value)])(q, p), float)
            result["".join(slots)] = array.ravel("F").reshape((n,) * order, order="F")
    return result


# -- the recursion against closed forms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_terms_of_symplectic_euler_are_those_of_appendix_A(name: str) -> None:
    """For SE1 eta is H itself; a = H_q, b = H_p; H_4 is -S~_23 - S~_32 - S~_41, worked out by hand."""
    system, (Q, P) = PROBLEMS[name].system, STATES[name]
    terms = da.modified_hamiltonian(system, da.Variational("SE1"), order=4).coefficients(Q, P, 0.1)
    for q, p, found in zip(Q, P, terms, strict=True):
        D = tensors(system, q, p)
        a, b = D["q"], D["p"]
        eta = system.evaluate("H", 0.0, q, p).item()
        H_2 = -a @ b / 2
        H_3 = (b @ D["qq"] @ b + 4 * b @ D["qp"] @ a + a @ D["pp"] @ a) / 12
        qqp, qpp = np.einsum("ijk,i,j,k", D["qqp"], b, b, a), np.einsum("ijk,i,j,k", D["qpp"], b, a, a)
        qq, qp, pp = D["qq"], D["qp"], D["pp"]
        chains = b @ qq @ qp.T @ b + a @ pp @ qp @ a + b @ qq @ pp @ a + 3 * b @ qp @ qp @ a
        assert found == pytest.approx([eta, H_2, H_3, -(qqp + qpp + chains) / 12], rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_even_expansion_of_SVA_has_the_known_second_term(name: str) -> None:
    """H + h^2 (-H_pp(H_q, H_q)/24 + H_qq(H_p, H_p)/12 + H_qp(H_p, H_q)/12), Hairer, Lubich and Wanner, section IX.3."""
    system, (Q, P) = PROBLEMS[name].system, STATES[name]
    terms = da.modified_hamiltonian(system, da.Variational("SVA"), 4, "even").coefficients(Q, P, 0.1)
    assert terms.shape == (3, 3)
    for q, p, found in zip(Q, P, terms, strict=True):
        D = tensors(system, q, p)
        a, b = D["q"], D["p"]
        H_3 = -a @ D["pp"] @ a / 24 + b @ D["qq"] @ b / 12 + b @ D["qp"] @ a / 12
        assert found == pytest.approx([system.evaluate("H", 0.0, q, p).item(), 0.0, H_3], rel=1e-11, abs=1e-12)


def test_any_order_on_the_oscillator_where_the_series_has_a_sum() -> None:
    """SE1 on (p^2 + q^2)/2 rotates by phi, cos(phi) = 1 - h^2/2: H~ = phi/sin(phi) (p^2 + q^2 - h p q)/2."""
    oscillator = da.Lagrangian(lambda q, v: (v @ v - q @ q) / 2, dim=1)
    q, p, h = np.array([0.7]), np.array([-1.1]), np.array([0.2, 0.1, 0.05])
    phi = np.arccos(1 - h**2 / 2)
    exact = phi / np.sin(phi) * (p @ p + q @ q - h * (p @ q)) / 2
    for order in range(1, 8):
        Ht = da.modified_hamiltonian(oscillator, da.Variational("SE1"), order)
        errors = np.abs([Ht(q, p, float(x)) for x in h] - exact)
        assert np.log2(errors[:-1] / errors[1:]) == pytest.approx(order, abs=0.15)
    # Coefficients of the series phi/sin(phi) = 1 + h^2/6 + h^4/30 + h^6/140 + ...
    series = [1, -1 * (p @ q) / (p @ p + q @ q)]
    terms = da.modified_hamiltonian(oscillator, da.Variational("SE1"), 8).coefficients(q, p, 0.1)
    scale = (p @ p + q @ q) / 2
    expected = [c * f for c in (1, 1 / 6, 1 / 30, 1 / 140) for f in series]
    assert terms == pytest.approx(scale * np.array(expected), rel=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_eta_is_H_for_SE1_and_first_order_accurate_otherwise(name: str) -> None:
    """Lemma 1."""
    system, (Q, P) = PROBLEMS[name].system, STATES[name]
    H = np.array([system.evaluate("H", 0.0, q, p).item() for q, p in zip(Q, P, strict=True)])
    assert da.modified_hamiltonian(system, da.Variational("SE1"), 1)(Q, P, 0.1) == pytest.approx(H, rel=1e-13)
    for method in ("SE2", *SYMMETRIC):
        eta = da.modified_hamiltonian(system, da.Variational(method), 1)
        errors = np.array([np.max(np.abs(eta(Q, P, h) - H)) for h in (4e-4, 2e-4, 1e-4)])
        assert np.log2(errors[:-1] / errors[1:]) == pytest.approx(1, abs=0.05), method


def test_generating_function_of_SVA_is_25() -> None:
    """By L_d^SVA, by the 2-stage Lobatto pair, and by (25) at p_1/2 and q_1 that solve the equations of SVA."""
    system, (Q, P) = PROBLEMS["cart_pendulum"].system, STATES["cart_pendulum"]
    h = 0.05

    def H(name: str, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        return system.evaluate(name, 0.0, q, p)

    for q0, p1 in zip(Q, P, strict=True):

        def equations(x: np.ndarray, q0: np.ndarray = q0, p1: np.ndarray = p1) -> np.ndarray:
            q1, p = x[:2], x[2:]
            return np.concatenate([q1 - q0 - h / 2 * (H("H_p", q0, p) + H("H_p", q1, p)), p1 - p + h / 2 * H("H_q", q1, p)])

        x = fsolve(equations, [*q0, *p1], xtol=1e-12)
        q1, p = x[:2], x[2:]
        S = h / 2 * (H("H", q0, p) + H("H", q1, p)).item()
        S -= h**2 / 4 * H("H_q", q1, p) @ (H("H_p", q0, p) + H("H_p", q1, p))  # (25)
        for method in (da.Variational("SVA"), da.Rattle(), da.LobattoIIIAB(stages=2)):
            assert da.modified_hamiltonian(system, method, 1)(q0, p1, h) == pytest.approx(S / h, rel=1e-12)
    for order, expansion in ((4, "eta"), (6, "even")):
        values = [da.modified_hamiltonian(system, m, order, expansion)(Q, P, h) for m in (da.Variational("SVA"), da.Rattle())]
        assert values[0] == pytest.approx(values[1], rel=1e-11)


def test_methods_that_are_the_same_map_have_the_same_modified_hamiltonian() -> None:
    system, (Q, P) = PROBLEMS["double_pendulum_in_angles"].system, STATES["double_pendulum_in_angles"]
    pairs = [
        (da.Variational("midpoint"), da.Gauss(stages=1)),
        (da.Variational("SVC"), da.LobattoGalerkin(stages=2)),
    ]
    for first, second in pairs:
        for order, expansion in ((4, "eta"), (4, "even")):
            values = [da.modified_hamiltonian(system, m, order, expansion)(Q, P, 0.05) for m in (first, second)]
            assert values[0] == pytest.approx(values[1], rel=1e-11)


@pytest.mark.parametrize("method", ["SE1", *SYMMETRIC])
@pytest.mark.parametrize("name", ["cart_pendulum", "particle_in_magnetic_field"])
def test_odd_powers_of_h_vanish_for_symmetric_methods_and_only_for_these(name: str, method: str) -> None:
    problem, (Q, P) = PROBLEMS[name], STATES[name]
    coefficients = powers_of_h(generating_function(problem.system, da.Variational(method), powers=4), 4)
    terms, of = modified_terms(coefficients, 4), coefficients[0].of
    theta = problem.system.parameters.vector()
    at = ca.Function("terms", [of.q, of.p, of.z, lower_part(of.W), of.theta], [ca.vertcat(*(H.value for H in terms))])
    matrix = ca.Function("N_zz", [of.q, of.p, of.z, of.theta], [of.N_zz])
    guess = ca.Function("z", [of.q, of.p, of.theta], [of.guess])
    for q, p in zip(Q, P, strict=True):
        z = guess(q, p, theta)
        W = np.linalg.inv(np.asarray(matrix(q, p, z, theta)))
        _, H_2, H_3, H_4 = np.asarray(at(q, p, z, W.T[np.triu_indices(len(W))], theta)).ravel()
        scale = abs(H_3)
        if method == "SE1":
            assert abs(H_2) > 1e-3 * scale and abs(H_4) > 1e-6 * scale
        else:
            assert max(abs(H_2), abs(H_4)) < 1e-11 * (1 + scale)


# -- what the truncations are for ----------------------------------------------------------------------------------------


def slopes(name: str, method: str, sizes: tuple[float, ...], order: int, expansion: str = "eta") -> np.ndarray:
    """How fast the range of a truncation along a run falls with h; points at round-off of the energy's terms are dropped."""
    problem, ranges = PROBLEMS[name], []
    Ht = da.modified_hamiltonian(problem, da.Variational(method), order, expansion)
    for h in sizes:
        run = da.simulate(problem, da.Variational(method), h=h, steps=round(LENGTHS[name] / h), progress=False)
        ranges.append(np.ptp(Ht(run.q, run.p, h)))
    settled = np.array(ranges) > 1e-12 * np.max(np.abs(run.energy))
    assert np.sum(settled) >= 3
    return np.diff(np.log(np.array(ranges)[settled])) / np.diff(np.log(np.array(sizes)[settled]))


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("method", ["SE1", "SVC", "SVA"])
def test_range_of_the_truncation_along_a_run_has_its_order(method: str, order: int) -> None:
    """Theorem 2, on the cart-pendulum."""
    sizes = (0.004, 0.003, 0.002, 0.0015)
    assert slopes("cart_pendulum", method, sizes, order) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("name", ["double_pendulum_in_angles", "particle_in_magnetic_field", "rod_on_spring"])
def test_range_has_its_order_on_other_nonseparable_systems(name: str) -> None:
    sizes = {"rod_on_spring": (0.008, 0.006, 0.004, 0.003)}.get(name, (0.02, 0.015, 0.01, 0.008))
    assert slopes(name, "SVC", sizes, 3) == pytest.approx(3, abs=0.15)
    assert slopes(name, "SVC", sizes, 4) == pytest.approx(4, abs=0.15)
    assert slopes(name, "SVA", sizes, 4, "even") == pytest.approx(4, abs=0.15)


@pytest.mark.parametrize("method", SYMMETRIC)
def test_even_expansion_has_twice_the_slope_of_its_last_term(method: str) -> None:
    assert slopes("cart_pendulum", method, (0.016, 0.012, 0.008, 0.006), 4, "even") == pytest.approx(4, abs=0.15)
    assert slopes("cart_pendulum", method, (0.032, 0.024, 0.016, 0.012), 6, "even") == pytest.approx(6, abs=0.15)


@pytest.mark.parametrize(
    ("method", "order", "expansion"), [("SE1", 3, "eta"), ("SVC", 3, "eta"), ("SVC", 4, "even"), ("SVA", 4, "even")]
)
def test_the_flow_of_the_modified_system_for_the_time_h_is_one_step(method: str, order: int, expansion: Any) -> None:
    """The flow of H~^{O(h^k)} leaves an error O(h^(k+1)), so that it follows the run k orders of h better than H would."""
    problem, errors, sizes = PROBLEMS["double_pendulum_in_angles"], [], np.array([0.04, 0.02, 0.01])
    Ht = da.modified_hamiltonian(problem, da.Variational(method), order, expansion)
    start = {"q0": [1.0, -0.7], "p0": [0.8, 0.5]}
    for h in sizes:
        step = da.simulate(problem.system, da.Variational(method), **start, h=h, steps=1, progress=False)

        def rhs(_: float, x: np.ndarray, h: float = h) -> np.ndarray:
            by_q, by_p = Ht.gradient(x[:2], x[2:], h)
            return np.concatenate([by_p, -by_q])

        flow = solve_ivp(rhs, (0.0, h), [*start["q0"], *start["p0"]], method="DOP853", rtol=3e-14, atol=1e-15).y[:, -1]
        errors.append(np.max(np.abs(step.states[-1] - flow)))
        if (method, expansion) == ("SVC", "even"):  # the smallest of them to compile
            run = da.simulate(Ht.system(h), da.Gauss(stages=3), **start, h=h / 8, steps=8, progress=False)
            assert run.states[-1] == pytest.approx(flow, abs=1e-13)
    assert np.log2(np.divide(errors[:-1], errors[1:])) == pytest.approx(order + 1, abs=0.15)


def test_eta_and_even_expansions_agree_up_to_their_remainders() -> None:
    system, (Q, P) = PROBLEMS["cart_pendulum"].system, STATES["cart_pendulum"]
    even = da.modified_hamiltonian(system, da.Variational("SVC"), 6, "even")
    for order in (2, 3, 4):
        eta = da.modified_hamiltonian(system, da.Variational("SVC"), order)
        errors = np.array([np.max(np.abs(eta(Q, P, h) - even(Q, P, h))) for h in (0.01, 0.005, 0.0025)])
        assert np.log2(errors[:-1] / errors[1:]) == pytest.approx(order, abs=0.15)


# -- the object ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "order", "expansion"), [("SVC", 4, "eta"), ("SVA", 3, "eta"), ("SVC", 4, "even")])
def test_gradient_is_that_of_the_system_and_of_differences(method: str, order: int, expansion: Any) -> None:
    problem, (Q, P), h, d = PROBLEMS["cart_pendulum"], STATES["cart_pendulum"], 0.02, 1e-4
    Ht = da.modified_hamiltonian(problem, da.Variational(method), order, expansion)
    modified, (by_q, by_p) = Ht.system(h), Ht.gradient(Q, P, h)
    for q, p, a, b in zip(Q, P, by_q, by_p, strict=True):
        assert modified.evaluate("H", 0.0, q, p).item() == pytest.approx(Ht(q, p, h).item(), rel=1e-13)
        assert a == pytest.approx(modified.evaluate("H_q", 0.0, q, p), rel=1e-11, abs=1e-11)
        assert b == pytest.approx(modified.evaluate("H_p", 0.0, q, p), rel=1e-11, abs=1e-11)
        for i, e in enumerate(np.eye(2) * d):
            assert (Ht(q + e, p, h) - Ht(q - e, p, h)) / (2 * d) == pytest.approx(a[i], rel=1e-6, abs=1e-6)
            assert (Ht(q, p + e, h) - Ht(q, p - e, h)) / (2 * d) == pytest.approx(b[i], rel=1e-6, abs=1e-6)


def test_states_may_have_any_leading_axes() -> None:
    Ht = da.modified_hamiltonian(PROBLEMS["cart_pendulum"], da.Variational("SVC"), 3)
    Q, P = STATES["cart_pendulum"]
    values = Ht(Q, P, 0.01)
    assert values.shape == (3,)
    assert Ht(Q[0], P[0], 0.01).shape == () and Ht(Q[0], P[0], 0.01) == pytest.approx(values[0], rel=1e-14)
    assert Ht(Q[None, :, None], P[None, :, None], 0.01).shape == (1, 3, 1)
    assert Ht(Q[:0], P[:0], 0.01).shape == (0,)
    assert Ht.coefficients(Q, P, 0.01).shape == (3, 3)
    assert Ht.coefficients(Q, P, 0.01) @ 0.01 ** np.arange(3) == pytest.approx(values, rel=1e-14)
    assert [part.shape for part in Ht.gradient(Q, P, 0.01)] == [(3, 2), (3, 2)]


def test_parameters_can_be_changed_without_building_anew() -> None:
    Q, P = STATES["cart_pendulum"]
    heavy = da.problems.cart_pendulum(m2=0.7)
    for expansion in ("eta", "even"):
        ours, other = (
            da.modified_hamiltonian(p, da.Variational("SVC"), 4, expansion) for p in (PROBLEMS["cart_pendulum"], heavy)
        )
        assert ours(Q, P, 0.01, params={"m2": 0.7}) == pytest.approx(other(Q, P, 0.01), rel=1e-14)
        assert ours.system(0.01, params={"m2": 0.7}).params == {**heavy.system.params, "step_size": 0.01}
        assert ours.system(0.01).fingerprint == ours.system(0.02).fingerprint


def test_a_discrete_lagrangian_of_ones_own_is_tested_for_symmetry() -> None:
    system = PROBLEMS["cart_pendulum"].system

    def two_halves(L: Any, q0: Any, Q: Any, q1: Any, h: Any) -> Any:
        return h / 2 * (L((q0 + Q[0]) / 2, 2 * (Q[0] - q0) / h) + L((Q[0] + q1) / 2, 2 * (q1 - Q[0]) / h))

    def leaning(L: Any, q0: Any, q1: Any, h: Any) -> Any:
        return h * L(q0 / 3 + 2 * q1 / 3, (q1 - q0) / h)

    (Q, P), h = STATES["cart_pendulum"], 0.02
    two = da.modified_hamiltonian(system, da.Variational(two_halves, internal=(0.5,)), 6, "even")
    one = da.modified_hamiltonian(system, da.Variational("midpoint"), 6, "even")
    assert two(Q, P, h) == pytest.approx(one(Q, P, h / 2), rel=1e-12)  # two steps of h/2 have the H~ of one
    assert da.modified_hamiltonian(system, da.Variational(leaning), 3)(Q, P, h).shape == (3,)
    with pytest.raises(da.UnsupportedSystem, match="not known to be symmetric"):
        da.modified_hamiltonian(system, da.Variational(leaning), 4, "even")


def test_building_and_compiling_the_fourth_order_truncation_takes_seconds() -> None:
    problem, (Q, P) = da.problems.cart_pendulum(), STATES["cart_pendulum"]
    start = time.perf_counter()
    Ht = da.modified_hamiltonian(problem, da.Variational("SVC"), 4)
    Ht(Q, P, 0.01), Ht.gradient(Q, P, 0.01)
    assert time.perf_counter() - start < 5.0


FREE = da.Lagrangian(lambda q, v: (v @ v - q @ q) / 2, dim=1)


@pytest.mark.parametrize(
    ("system", "method", "arguments", "fix"),
    [
        (da.problems.pendulum(), da.Variational("SVC"), {"order": 3}, "free coordinates"),
        (da.Lagrangian(lambda v: v @ v / 2, dim=1, force=lambda v: -v), da.Variational("SVC"), {"order": 3}, "potential"),
        (da.Hamiltonian(lambda t, q, p: p @ p / 2 + t * q[0], dim=1), da.Rattle(), {"order": 3}, "coordinate of its own"),
        (FREE, da.RadauIIA(stages=2), {"order": 3}, "symplectic method"),
        (FREE, "SVC", {"order": 3}, "da.Variational"),
        (3, da.Variational("SVC"), {"order": 3}, "da.Lagrangian systems"),
        (FREE, da.Variational("SE1"), {"order": 4, "expansion": "even"}, 'use expansion="eta"'),
        (FREE, da.Variational("SVC"), {"order": 3, "expansion": "even"}, "even order"),
        (FREE, da.Variational("SVC"), {"order": 0}, "positive integer"),
        (FREE, da.Variational("SVC"), {"order": 2, "expansion": "odd"}, '"eta" or "even"'),
    ],
)
def test_refusals_name_the_fix(system: Any, method: Any, arguments: dict[str, Any], fix: str) -> None:
    with pytest.raises(da.DalembertError, match=fix):
        da.modified_hamiltonian(system, method, **arguments)


def test_wrong_shapes_and_step_sizes_are_refused() -> None:
    Ht = da.modified_hamiltonian(FREE, da.Variational("SVC"), 3)
    with pytest.raises(da.InputError, match="1 coordinates"):
        Ht([1.0, 2.0], [1.0, 2.0], 0.1)
    with pytest.raises(da.InputError, match="step size"):
        Ht([1.0], [1.0], 0.0)
    with pytest.raises(da.InputError, match="finite"):
        Ht([np.nan], [1.0], 0.1)


def test_a_step_size_without_a_stationary_point_is_refused() -> None:
    """On L = (1 - q) v^2/2, p = D_2 L_d at q = 0 is p = w - 3 h w^2/4, which has a solution only for 3 h p <= 1."""
    system = da.Lagrangian(lambda q, v: (1 - q[0]) * v[0] ** 2 / 2, dim=1)
    Ht = da.modified_hamiltonian(system, da.Variational("SVC"), 1)
    assert np.isfinite(Ht([0.0], [1.0], 0.1))
    with pytest.raises(da.InputError, match="smaller h"):
        Ht([0.0], [1.0], 1.0)


def test_array_parameters_reach_the_modified_system() -> None:
    weights = np.array([[1.0, 0.2], [0.2, 2.0]])
    system = da.Lagrangian(
        lambda q, v, K, g: v @ v / 2 - q @ K @ q / 2 + g * np.cos(q[0]), dim=2, params={"K": weights, "g": 0.3}
    )
    Ht = da.modified_hamiltonian(system, da.Variational("SVC"), 4, "even")
    q, p = np.array([0.3, -0.5]), np.array([0.7, 0.1])
    force = -weights @ q - 0.3 * np.array([np.sin(q[0]), 0.0])
    stiffness = weights + np.diag([0.3 * np.cos(q[0]), 0.0])
    H = p @ p / 2 + q @ weights @ q / 2 - 0.3 * np.cos(q[0])
    known = H + 0.1**2 * (p @ stiffness @ p / 12 - force @ force / 24)  # the formula of SVA, which SVC is here
    assert Ht(q, p, 0.1) == pytest.approx(known, rel=1e-14)
    assert Ht.system(0.1).evaluate("H", 0.0, q, p).item() == pytest.approx(known, rel=1e-14)


@pytest.mark.parametrize("power", [0, -1])
def test_a_discrete_lagrangian_that_is_no_action_has_no_expansion_in_h(power: int) -> None:
    inconsistent = da.Variational(lambda L, q0, q1, h: h**power * L((q0 + q1) / 2, (q1 - q0) / h))
    with pytest.raises(da.UnsupportedSystem, match="could not be expanded at h = 0"):
        da.modified_hamiltonian(FREE, inconsistent, 4, "even")
