"""Nonholonomic constraints of mechanical systems: the reaction -(dk/dv)^T psi, multipliers by hand, projections, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

M_SLEIGH, A, INERTIA = 1.3, 0.4, 0.7
J = INERTIA + M_SLEIGH * A**2


def sleigh_lagrangian():
    """The Chaplygin sleigh: (x, y) is the contact of its blade, the centre of mass lies A ahead."""

    def L(v, q):
        across = -np.sin(q[2]) * v[0] + np.cos(q[2]) * v[1]
        return M_SLEIGH * (v[0] ** 2 + v[1] ** 2) / 2 + M_SLEIGH * A * v[2] * across + J * v[2] ** 2 / 2

    return da.Lagrangian(L, dim=3, nonholonomic=lambda q, v: [-np.sin(q[2]) * v[0] + np.cos(q[2]) * v[1]])


def sleigh_velocities(q, p):
    """u along the blade, w across it, and the angular velocity, from p = M(q) v by hand."""
    along, across = np.cos(q[2]) * p[0] + np.sin(q[2]) * p[1], -np.sin(q[2]) * p[0] + np.cos(q[2]) * p[1]
    return along / M_SLEIGH, (J * across - M_SLEIGH * A * p[2]) / (M_SLEIGH * INERTIA), (p[2] - A * across) / INERTIA


def sleigh_hamiltonian(nonholonomic):
    def H(q, p):
        u, w, omega = sleigh_velocities(q, p)
        return M_SLEIGH * (u**2 + w**2) / 2 + M_SLEIGH * A * omega * w + J * omega**2 / 2

    return da.Hamiltonian(H, dim=3, nonholonomic=nonholonomic)


STATEMENTS = {
    "Lagrangian, k(q, v)": sleigh_lagrangian,
    "Hamiltonian, k(q, v)": lambda: sleigh_hamiltonian(lambda q, v: [-np.sin(q[2]) * v[0] + np.cos(q[2]) * v[1]]),
    "Hamiltonian, k(q, p)": lambda: sleigh_hamiltonian(lambda q, p: [sleigh_velocities(q, p)[1]]),
}


def sleigh_state(system, theta=0.7, u=1.2, omega=-0.9):
    v = [u * np.cos(theta), u * np.sin(theta), omega]
    return da.consistent(system, q0=[0.3, -0.2, theta], v0=v)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize(("theta", "u", "omega"), [(0.7, 1.2, -0.9), (-2.0, 0.3, 2.0), (3.0, -1.0, 0.5)])
def test_the_sleigh_obeys_its_reduced_equations(statement, theta, u, omega):
    """u' = A omega^2, omega' = -m A u omega / (I + m A^2), psi = -m I u omega / (I + m A^2)."""
    system = STATEMENTS[statement]()
    state = sleigh_state(system, theta, u, omega)
    np.testing.assert_allclose(state.v, [u * np.cos(theta), u * np.sin(theta), omega], rtol=1e-14)
    np.testing.assert_allclose(state.psi, [-M_SLEIGH * INERTIA * u * omega / J], rtol=1e-13)
    # momenta p = M v: m u along the blade, m A omega across it, J omega
    u_rate, omega_rate = A * omega**2, -M_SLEIGH * A * u * omega / J
    forward, left = np.array([np.cos(theta), np.sin(theta)]), np.array([-np.sin(theta), np.cos(theta)])
    rate = M_SLEIGH * (u_rate * forward + u * omega * left + A * omega_rate * left - A * omega**2 * forward)
    np.testing.assert_allclose(system.at("z_dot", state.values, state.theta), [*rate, J * omega_rate], atol=1e-13)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_reaction_does_no_work(statement):
    """dH/dt = H_q q' + H_p p' = 0 where k is linear in the velocities; with -(dk/dp)^T psi it would not be."""
    system = STATEMENTS[statement]()
    state = sleigh_state(system)
    H_q, H_p = system.evaluate("H_q", 0.0, state.q, state.p), system.evaluate("H_p", 0.0, state.q, state.p)
    assert abs(H_q @ H_p + H_p @ system.at("z_dot", state.values, state.theta)) < 1e-14


def test_k_in_velocities_and_k_in_momenta_are_the_same_system():
    random = np.random.default_rng(11)
    systems = [build() for build in STATEMENTS.values()]
    for _ in range(5):
        q, p, psi = random.standard_normal(3), random.standard_normal(3), random.standard_normal(1)
        for name, arguments in (("k", (0.0, q, p)), ("f", (0.0, q, p, psi)), ("k_v", (0.0, q, p)), ("hidden_z", (0.0, q, p))):
            values = [system.evaluate(name, *arguments) for system in systems]
            np.testing.assert_allclose(values[1], values[0], atol=1e-13)
            np.testing.assert_allclose(values[2], values[0], atol=1e-13)


def test_the_reaction_is_not_the_derivative_by_the_momentum():
    """-(dk/dv)^T psi = -(-sin, cos, 0) psi, though dk/dp has a part along the angle."""
    q, psi = np.array([0.3, -0.2, 0.7]), np.array([2.0])
    for build in STATEMENTS.values():
        system = build()
        p = np.array([0.5, 0.1, -0.4])
        reaction = system.evaluate("f", 0.0, q, p, psi) - system.evaluate("f", 0.0, q, p, [0.0])
        np.testing.assert_allclose(reaction, [2 * np.sin(0.7), -2 * np.cos(0.7), 0.0], atol=1e-13)


# -- the skate on an inclined plane, which has a closed form ------------------------------------------------------------


def skate(form):
    """Two masses 1/2 at a distance 1 on an inclined plane (Small and Jay 2011), with l = 1."""

    def length(q):
        return [((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1) / 2]

    def blade(q, v):
        return [-(q[3] - q[1]) * (v[0] + v[2]) + (q[2] - q[0]) * (v[1] + v[3])]

    if form == "Lagrangian":
        return da.Lagrangian(lambda q, v: v @ v / 4 + (q[0] + q[2]) / 2, dim=4, holonomic=length, nonholonomic=blade)
    return da.Hamiltonian(
        lambda q, p: p @ p - (q[0] + q[2]) / 2, dim=4, holonomic=length, nonholonomic=lambda q, p: blade(q, 2 * p)
    )


def skate_motion(t):
    """Angle t, centre (sin^2 t / 2, t/2 - sin 2t / 4)."""
    centre = np.array([np.sin(t) ** 2 / 2, t / 2 - np.sin(2 * t) / 4])
    half, half_rate = np.array([np.cos(t), np.sin(t)]) / 2, np.array([-np.sin(t), np.cos(t)]) / 2
    rate = np.array([np.sin(2 * t), 1 - np.cos(2 * t)]) / 2
    return np.concatenate([centre - half, centre + half]), np.concatenate([rate - half_rate, rate + half_rate])


@pytest.mark.parametrize("form", ["Lagrangian", "Hamiltonian"])
@pytest.mark.parametrize("t", [0.0, 0.4, 2.0, 5.0])
def test_multipliers_of_the_skate(form, t):
    """lambda = 1/4 and psi = -sin t."""
    q, v = skate_motion(t)
    state = da.consistent(skate(form), q0=q, v0=v)
    np.testing.assert_allclose(state.q, q, atol=1e-14)
    np.testing.assert_allclose(state.v, v, atol=1e-14)
    np.testing.assert_allclose(state.lam, [0.25], atol=1e-13)
    np.testing.assert_allclose(state.psi, [-np.sin(t)], atol=1e-13)


@pytest.mark.parametrize("form", ["Lagrangian", "Hamiltonian"])
def test_forces_of_the_skate_drive_its_motion(form):
    """p' = v'/2 along the closed form."""
    system, t, eps = skate(form), 1.1, 1e-5
    q, v = skate_motion(t)
    state = da.consistent(system, q0=q, v0=v)
    acceleration = (skate_motion(t + eps)[1] - skate_motion(t - eps)[1]) / (2 * eps)
    np.testing.assert_allclose(system.at("z_dot", state.values, state.theta), acceleration / 2, atol=1e-9)


# -- projection ------------------------------------------------------------------------------------------------------


def nearest_velocity(M, rows, rhs, v0):
    """argmin (v - v0)^T M (v - v0) subject to rows v = rhs: least squares in a basis of the null space."""
    particular = np.linalg.lstsq(rows, rhs, rcond=None)[0]
    null = np.linalg.svd(rows)[2][len(rows) :].T
    root = np.linalg.cholesky(M).T
    return particular + null @ np.linalg.lstsq(root @ null, root @ (v0 - particular), rcond=None)[0]


@pytest.mark.parametrize("seed", range(4))
def test_velocities_are_projected_orthogonally_in_the_metric_of_the_mass_matrix(seed):
    """With one holonomic and one affine nonholonomic constraint, M(q) and explicit time."""
    random = np.random.default_rng(seed)
    q, v0, t = random.uniform(-1, 1, 4), random.standard_normal(4), 0.6

    def mass(q):
        return np.array([[2 + np.sin(q[1]), 0.3, 0, 0], [0.3, 1 + q[0] ** 2, 0, 0.2], [0, 0, 1.5, 0], [0, 0.2, 0, 3]])

    level = q[0] + q[1] ** 2 / 2 + np.sin(q[2])
    system = da.Lagrangian(
        lambda q, v: v @ mass(q) @ v / 2 + q[0] * v[3] - q[1],
        dim=4,
        holonomic=lambda t, q: [q[0] + q[1] ** 2 / 2 + np.sin(q[2]) - level - 2 * (t - 0.6)],
        nonholonomic=lambda t, q, v: [q[3] * v[0] - v[1] + np.cos(q[0]) * v[3] - t**2],
    )
    state = da.consistent(system, q0=q, v0=v0, t0=t)
    rows = np.array([[1, q[1], np.cos(q[2]), 0], [q[3], -1, 0, np.cos(q[0])]])
    wanted = nearest_velocity(mass(q), rows, np.array([2.0, t**2]), v0)
    np.testing.assert_allclose(state.q, q, atol=1e-14)
    np.testing.assert_allclose(state.v, wanted, atol=1e-13)
    assert all(np.max(np.abs(residual)) < 1e-14 for residual in state.residuals.values())
    assert set(state.residuals) == {"g", "g_dot", "k"}
    # ... which is not the Euclidean projection
    assert np.max(np.abs(nearest_velocity(np.eye(4), rows, np.array([2.0, t**2]), v0) - wanted)) > 1e-3


@pytest.mark.parametrize("v0", [[1.0, 0.5, 2.0], [0.2, -0.1, 0.05], [-3.0, 4.0, 4.0]])
def test_a_nonlinear_constraint_is_reached(v0):
    """Appell's kind: vx^2 + vy^2 = vz^2 / 4, with masses 1, 2, 3."""
    masses = np.array([1.0, 2.0, 3.0])
    system = da.Lagrangian(
        lambda v, q: masses * v @ v / 2 - q[2], dim=3, nonholonomic=lambda v: [v[0] ** 2 + v[1] ** 2 - v[2] ** 2 / 4]
    )
    state = da.consistent(system, q0=[0, 0, 0], v0=v0)
    vx, vy, vz = state.v
    assert abs(vx**2 + vy**2 - vz**2 / 4) < 1e-14 * (1 + vz**2)
    assert np.linalg.norm(state.v) > 0.05  # not the apex of the cone, where k_v = 0
    # psi by hand, Chetaev's rule: M v' = (0, 0, -1) - k_v psi and k_v v' = 0
    k_v = np.array([2 * vx, 2 * vy, -vz / 2])
    np.testing.assert_allclose(state.psi, [(k_v / masses) @ [0, 0, -1] / ((k_v / masses) @ k_v)], rtol=1e-12)


def test_consistent_values_stay_as_they_are():
    system = sleigh_lagrangian()
    state = sleigh_state(system)
    again = da.consistent(system, q0=state.q, p0=state.p)
    np.testing.assert_allclose(again.packed, state.packed, rtol=4e-16)


# -- refusals --------------------------------------------------------------------------------------------------------


def refused(error, words, action):
    with pytest.raises(error) as caught:
        action()
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), caught.value


def test_initial_values_off_the_constraint_are_refused():
    words = ["nonholonomic constraint k[0]", "0.5", "start=da.consistent(system, q0=..., v0=...)"]
    for build in STATEMENTS.values():
        refused(
            da.InconsistentStart,
            words,
            lambda build=build: da.simulate(build(), da.GaussLobattoSPARK(1), q0=[0, 0, 0], v0=[1.0, 0.5, 0.2], h=0.1, steps=1),
        )


def test_the_printed_length_of_the_skate_is_refused():
    """With l = 2 the published initial values violate g by -3/2."""
    system = da.Lagrangian(
        lambda q, v: v @ v / 4 + (q[0] + q[2]) / 2,
        dim=4,
        holonomic=lambda q: [((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 4) / 2],
        nonholonomic=lambda q, v: [-(q[3] - q[1]) * (v[0] + v[2]) + (q[2] - q[0]) * (v[1] + v[3])],
    )
    start = {"q0": [-0.5, 0, 0.5, 0], "v0": [0, -0.5, 0, 0.5]}
    refused(
        da.InconsistentStart,
        ["holonomic constraint g[0]", "-1.5"],
        lambda: da.simulate(system, da.GaussLobattoSPARK(2), h=0.1, steps=1, **start),
    )


@pytest.mark.parametrize(
    "method",
    [da.LobattoIIIAB(3), da.Rattle(), da.SymplecticEuler(), da.compose(da.Rattle(), 4), da.adjoint(da.SymplecticEuler())],
    ids=str,
)
def test_methods_without_nonholonomic_constraints_say_so_by_name(method):
    words = [str(getattr(method, "basic", getattr(method, "method", method))), "nonholonomic", "GaussLobattoSPARK"]
    refused(
        da.UnsupportedSystem,
        words,
        lambda: da.simulate(sleigh_lagrangian(), method, q0=[0, 0, 0], v0=[1.0, 0.0, 0.2], h=0.1, steps=1),
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nonholonomic": lambda v: []}, ["nonholonomic", "empty list", "leave the argument out"]),
        ({"nonholonomic": lambda v: [v]}, ["nonholonomic", "flat list"]),
        ({"nonholonomic": lambda w: [w]}, ["nonholonomic", "'w'"]),
        ({"nonholonomic": 3}, ["nonholonomic", "must be a function"]),
    ],
)
def test_bad_constraints_are_refused_in_one_sentence(changes, words):
    refused(da.ModelError, words, lambda: da.Lagrangian(lambda v: v @ v / 2, dim=3, **changes))


def test_constraints_that_contradict_each_other_nearby_are_refused():
    """The second knife edge points elsewhere as soon as the body has moved."""

    def edges(q, v):
        angles = (q[2], q[2] + 0.1 * (q[0] - q[1]))
        return [np.sin(angle) * v[0] - np.cos(angle) * v[1] for angle in angles]

    system = da.Lagrangian(lambda v: v @ v / 2, dim=3, nonholonomic=edges)
    refused(
        da.InconsistentStart,
        ["nonholonomic[0] and nonholonomic[1]", "only at the initial values", "misses by"],
        lambda: da.simulate(system, da.GaussLobattoSPARK(1), q0=[0, 0, 0], v0=[1, 0, 0], h=0.1, steps=1),
    )
