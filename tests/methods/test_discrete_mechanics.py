"""Discrete Legendre transforms, discrete Hamiltonian, energy, Noether quantities and the discrete symplectic form."""

from __future__ import annotations

import method_models as models
import numpy as np
import pytest

import dalembert as da

METHODS = [
    *map(da.Variational, ("SE1", "SE2", "SVA", "SVB", "SVC", "midpoint")),
    da.LobattoGalerkin(3),
    da.LobattoGalerkin(4),
    da.Variational(
        lambda L, q0, Q, q1, h: h / 2 * (L((q0 + Q[0]) / 2, 2 * (Q[0] - q0) / h) + L(q1, 2 * (q1 - Q[0]) / h)), (0.5,)
    ),
]
Q0, P0, h = np.array([0.9, -0.4]), np.array([0.8, 0.6]), 0.1


def pendulum():
    return models.double_pendulum_in_angles().system


def damped():
    return da.Lagrangian(
        lambda q, v, g: v[0] ** 2 + v[1] ** 2 / 2 + v[0] * v[1] * np.cos(q[0] - q[1]) + g * (2 * np.cos(q[0]) + np.cos(q[1])),
        dim=2,
        force=lambda q, v: [-0.3 * v[0] * v[1], 0.2 * q[0] - 0.1 * v[1]],
        params={"g": 1.5},
    )


def energy(q, v):
    """H of the double pendulum in angles in terms of velocities, from the masses' own motion."""
    x = np.array([np.cos(q[0]), np.sin(q[0])]) * v[0]
    y = x + np.array([np.cos(q[1]), np.sin(q[1])]) * v[1]
    return (x @ x + y @ y) / 2 - 2 * np.cos(q[0]) - np.cos(q[1])


def hamiltonian(q, p):
    c = np.cos(q[0] - q[1])
    return (p[0] ** 2 - 2 * p[0] * p[1] * c + 2 * p[1] ** 2) / (2 * (2 - c**2)) - 2 * np.cos(q[0]) - np.cos(q[1])


def gradient(f, x, size=1e-3):
    """Central differences of the sixth order."""
    weights = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
    return np.array(
        [sum(w * (f(x + k * size * e) - f(x - k * size * e)) for k, w in weights.items()) / size for e in np.eye(len(x))]
    )


# -- Legendre transforms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("system", [pendulum(), damped()], ids=["free", "damped"])
def test_the_discrete_legendre_transforms_of_a_run_are_its_momenta(method, system):
    """(13), (14) and with them (12): both transforms give the same momentum between two steps."""
    run = da.simulate(system, method, q0=Q0, p0=P0, h=h, steps=100)
    mechanics = da.DiscreteMechanics(system, method)
    assert np.abs(mechanics.legendre_minus(run.q[:-1], run.q[1:], h) - run.p[:-1]).max() < 1e-13
    assert np.abs(mechanics.legendre_plus(run.q[:-1], run.q[1:], h) - run.p[1:]).max() < 1e-13
    assert mechanics.legendre_plus(run.q[3], run.q[4], h).shape == (2,)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_legendre_transforms_are_derivatives_of_the_lagrangian(method):
    system = pendulum()
    mechanics, q0, q1 = da.DiscreteMechanics(system, method), Q0, Q0 + h * np.array([0.3, 0.5])
    assert np.abs(gradient(lambda q: -mechanics.lagrangian(q, q1, h), q0) - mechanics.legendre_minus(q0, q1, h)).max() < 1e-9
    assert np.abs(gradient(lambda q: mechanics.lagrangian(q0, q, h), q1) - mechanics.legendre_plus(q0, q1, h)).max() < 1e-9
    by_h = gradient(lambda x: mechanics.lagrangian(q0, q1, float(x[0])), np.array([h]))
    assert abs(by_h[0] + mechanics.energy(q0, q1, h)) < 1e-9


def test_the_transforms_depend_on_parameters_and_on_time():
    system, q1 = damped(), Q0 + 0.03
    heavy = da.DiscreteMechanics(system, "SVC", params={"g": 9.0})
    light = da.DiscreteMechanics(system, "SVC")
    # p_0 = L_v-terms - h/2 L_q(q_0): the weight enters as h/2 g (2 sin q_1, sin q_2)
    expected = h / 2 * (9.0 - 1.5) * np.array([2, 1]) * np.sin(Q0)
    assert np.abs(heavy.legendre_minus(Q0, q1, h) - light.legendre_minus(Q0, q1, h) - expected).max() < 1e-14

    driven = da.Lagrangian(lambda t, q, v: v @ v / 2 + t**3 * q[0], dim=1)
    mechanics = da.DiscreteMechanics(driven, "midpoint")
    p1 = mechanics.legendre_plus([[0.0], [0.0]], [[0.1], [0.1]], h, t0=[1.0, 2.0])
    assert np.abs(p1[:, 0] - (1.0 + h / 2 * np.array([1.05, 2.05]) ** 3)).max() < 1e-14


# -- discrete energy -----------------------------------------------------------------------------------------------------


def test_discrete_energies_have_their_closed_forms():
    q0, v = Q0, np.array([0.3, 0.5])
    q1 = q0 + h * v

    def of(L_d):
        return da.DiscreteMechanics(pendulum(), L_d).energy(q0, q1, h)

    assert abs(of("SE1") - energy(q0, v)) < 1e-13
    assert abs(of("SE2") - energy(q1, v)) < 1e-13
    assert abs(of("SVC") - (energy(q0, v) + energy(q1, v)) / 2) < 1e-13
    assert abs(of("midpoint") - energy((q0 + q1) / 2, v)) < 1e-13


@pytest.mark.parametrize(("method", "order"), [("SE1", 1), ("SVA", 2), ("SVC", 2), (da.LobattoGalerkin(3), 4)], ids=str)
def test_the_discrete_energy_along_a_run_stays_near_the_energy(method, order):
    system, errors, sizes = pendulum(), [], [0.04, 0.02, 0.01]
    stepper = da.Variational(method) if isinstance(method, str) else method
    for size in sizes:
        run = da.simulate(system, stepper, q0=Q0, p0=P0, h=size, steps=2000)
        values = da.DiscreteMechanics(system, method).energy_along(run)
        assert values.shape == (2000,)
        errors.append(np.abs(values - hamiltonian(Q0, P0)).max())
    assert abs(da.verify.slope(sizes, errors)[0] - order) < 0.15, errors


# -- the right discrete Hamiltonian --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_right_discrete_hamiltonian_generates_the_map(method):
    """(19), (20): p_0 = D_1 H_d^+(q_0, p_1), q_1 = D_2 H_d^+(q_0, p_1)."""
    system = pendulum()
    mechanics, end = da.DiscreteMechanics(system, method), da.verify.step(system, method, h=h, q0=Q0, p0=P0)
    assert np.abs(gradient(lambda q: mechanics.right_hamiltonian(q, end.p, h), Q0) - P0).max() < 1e-9
    assert np.abs(gradient(lambda p: mechanics.right_hamiltonian(Q0, p, h), end.p) - end.q).max() < 1e-9


def test_the_right_discrete_hamiltonian_of_se1_and_sva_in_closed_form():
    system, p = pendulum(), np.array([[0.8, 0.6], [-0.2, 1.1], [1.0, 0.0]])
    values = da.DiscreteMechanics(system, "SE1").right_hamiltonian(Q0, p, h)
    assert np.abs(values - [x @ Q0 + h * hamiltonian(Q0, x) for x in p]).max() < 1e-13

    # (25): S = h/2 (H(q_0, p_1/2) + H(q_1, p_1/2)) - h^2/4 H_q(q_1, p_1/2) . (H_p(q_0, p_1/2) + H_p(q_1, p_1/2))
    half = da.verify.step(system, da.Variational("SE1"), h=h / 2, q0=Q0, p0=P0)
    end = da.verify.step(system, da.Variational("SVA"), h=h, q0=Q0, p0=P0)
    H_q = gradient(lambda q: hamiltonian(q, half.p), end.q)
    H_p = [gradient(lambda p, q=q: hamiltonian(q, p), half.p) for q in (Q0, end.q)]
    S = h / 2 * (hamiltonian(Q0, half.p) + hamiltonian(end.q, half.p)) - h**2 / 4 * H_q @ (H_p[0] + H_p[1])
    assert abs(da.DiscreteMechanics(system, "SVA").right_hamiltonian(Q0, end.p, h) - end.p @ Q0 - S) < 1e-11


# -- the discrete symplectic form ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_the_discrete_symplectic_form_is_conserved(method):
    """Section 3.5: on variations of a run the form of (q_k, q_{k+1}) is the canonical one, and the same for every k."""
    system = pendulum()
    mechanics = da.DiscreteMechanics(system, method)
    variations = np.array([[0.3, -0.5, 0.7, 0.2], [-0.4, 0.1, 0.6, 0.9]]).T
    canonical = variations[:2, 0] @ variations[2:, 1] - variations[2:, 0] @ variations[:2, 1]
    state, values = da.consistent(system, q0=Q0, p0=P0), []
    for _ in range(20):
        end = da.verify.step(system, method, h=h, start=state)
        moved = da.verify.step_tangent(system, method, h=h, start=state) @ variations
        form = mechanics.symplectic_form(state.q, end.q, h)
        (a0, b0), (a1, b1) = variations[:2].T, moved[:2].T
        values.append(a0 @ form @ b1 - b0 @ form @ a1)
        state, variations = end, moved
    assert np.abs(np.array(values) + canonical).max() < 1e-11


def test_the_form_is_the_mixed_derivative_on_constraints_too():
    """With an internal configuration that is held on the constraint."""
    model = models.curved_mass()
    run = da.simulate(model.system, da.Variational("SVB"), h=0.1, steps=1, **model.start)
    mechanics = da.DiscreteMechanics(model.system, "SVB")
    form = mechanics.symplectic_form(run.q[0], run.q[1], 0.1)
    columns = gradient(lambda q: mechanics.legendre_minus(run.q[0], q, 0.1), run.q[1], 1e-4)
    assert np.abs(form + columns.T).max() < 1e-8


# -- Noether quantities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_discrete_noether_quantities_follow_from_positions_alone(method):
    kepler = da.Lagrangian(lambda q, v, mu: v @ v / 2 + mu / np.sqrt(q @ q), dim=2, params={"mu": 1.1})
    run = da.simulate(kepler, method, q0=[1.0, 0.0], v0=[0.1, 1.2], h=0.05, steps=500)
    values = da.DiscreteMechanics(kepler, method).momentum_along(run, lambda q: [-q[1], q[0]])
    assert values.shape == (500,)
    assert np.abs(values - 1.2).max() < 1e-12


def test_constrained_noether_quantities_are_conserved():
    pendulum = da.Lagrangian(lambda q, v: v @ v / 2 - q[2], dim=3, holonomic=lambda q: [q @ q - 1])
    start = da.consistent(pendulum, q0=[0.6, 0, -0.8], v0=[0.2, 0.9, 0.15])
    for method in METHODS[:-1]:
        run = da.simulate(pendulum, method, start=start, h=0.05, steps=300)
        values = da.DiscreteMechanics(pendulum, method).momentum_along(run, lambda q: [-q[1], q[0], 0.0])
        assert np.abs(values - 0.54).max() < 1e-12, method


def test_a_quantity_without_a_symmetry_changes():
    system = pendulum()
    run = da.simulate(system, da.Variational("SVC"), q0=Q0, p0=P0, h=h, steps=100)
    assert np.ptp(da.DiscreteMechanics(system, "SVC").momentum_along(run, lambda q: [1.0, 1.0])) > 0.1


# -- refusals ------------------------------------------------------------------------------------------------------------


def test_what_has_no_meaning_is_refused():
    model, forced = models.curved_mass(), da.DiscreteMechanics(damped(), "SVC")
    with pytest.raises(da.UnsupportedSystem, match="without force"):
        forced.right_hamiltonian(Q0, P0, h)
    with pytest.raises(da.UnsupportedSystem, match="without force"):
        forced.symplectic_form(Q0, Q0 + 0.1, h)
    with pytest.raises(da.UnsupportedSystem, match="without constraints"):
        da.DiscreteMechanics(model.system, "SVC").right_hamiltonian(model.q0, model.p0, h)
    with pytest.raises(da.InputError, match="2 coordinates"):
        forced.energy([1.0], [2.0], h)
    run = da.simulate(pendulum(), da.Variational("SVC"), q0=Q0, p0=P0, h=h, steps=10, save_every=2)
    with pytest.raises(da.InputError, match="save_every=1"):
        da.DiscreteMechanics(pendulum(), "SVC").energy_along(run)
    with pytest.raises(da.UnsupportedSystem, match=r"da\.Lagrangian"):
        da.DiscreteMechanics("pendulum", "SVC")


def test_a_pair_that_no_internal_configuration_joins_is_refused():
    """For SVB on the oscillator q_1/2 is stationary where (4/h - h) q_1/2 = 2 (q_0 + q_1)/h: nowhere if h = 2."""
    oscillator = da.Lagrangian(lambda q, v: (v @ v - q @ q) / 2, dim=1)
    mechanics = da.DiscreteMechanics(oscillator, "SVB")
    assert np.isfinite(mechanics.energy([1.0], [1.5], 1.9))
    with pytest.raises(da.DalembertError, match="take a smaller h"):
        mechanics.energy([1.0], [1.5], 2.0)
