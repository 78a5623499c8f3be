"""Variational integrators against their Hamiltonian forms, each other, and closed forms with forces."""

from __future__ import annotations

from fractions import Fraction

import method_models as models
import numpy as np
import pytest

import dalembert as da

NAMES = ("SE1", "SE2", "SVA", "SVB", "SVC", "midpoint", "trapezoidal")
METHODS = [*map(da.Variational, NAMES), da.LobattoGalerkin(3), da.LobattoGalerkin(4)]
Q0, P0 = np.array([0.9, -0.4]), np.array([0.8, 0.6])


def driven_double_pendulum():
    """The double pendulum in angles, M(q) q'' = F, in a field that swings, with drag and a torque that depends on time."""
    system = da.Lagrangian(
        lambda t, q, v: (
            v[0] ** 2 + v[1] ** 2 / 2 + v[0] * v[1] * np.cos(q[0] - q[1])
            + (2 * np.cos(q[0]) + np.cos(q[1])) * (1 + np.sin(t) / 2)
        ),
        dim=2,
        force=lambda t, q, v: [-0.3 * v[0] * v[1], 0.2 * np.cos(2 * t) * q[0] - 0.1 * v[1]],
    )  # fmt: skip

    def rhs(t, y):
        a, b, u, w = y
        d, g = a - b, 1 + np.sin(t) / 2
        M = np.array([[2.0, np.cos(d)], [np.cos(d), 1.0]])
        F = -np.array([np.sin(d) * w**2 + 2 * g * np.sin(a), -np.sin(d) * u**2 + g * np.sin(b)])
        F = F + np.array([-0.3 * u * w, 0.2 * np.cos(2 * t) * a - 0.1 * w])
        return np.concatenate([[u, w], np.linalg.solve(M, F)])

    return system, rhs


def state(system, q=Q0, p=P0, t=0.0):
    return da.consistent(system, q0=q, p0=p, t0=t)


def steps(system, start, *maps):
    """Step after step, in the order in which they are made."""
    for method, h in maps:
        start = da.verify.step(system, method, h=h, start=start)
    return start


def distance(one, other):
    return max(np.abs(one.q - other.q).max(), np.abs(one.p - other.p).max())


# -- one-step maps -------------------------------------------------------------------------------------------------------


def hamiltonian_derivatives(q, p):
    """H_q and H_p of the double pendulum in angles, from H itself by complex steps."""

    def H(q, p):
        c = np.cos(q[0] - q[1])
        kinetic = (p[0] ** 2 - 2 * p[0] * p[1] * c + 2 * p[1] ** 2) / (2 * (2 - c**2))
        return kinetic - 2 * np.cos(q[0]) - np.cos(q[1])

    step = 1e-30j * np.eye(2)
    return [np.array([H(q + a * e, p + b * e).imag for e in step]) / 1e-30 for a, b in ((1, 0), (0, 1))]


def test_se1_and_se2_are_the_symplectic_euler_methods():
    system, h = models.double_pendulum_in_angles().system, 0.2
    one, two = (da.verify.step(system, da.Variational(name), h=h, q0=Q0, p0=P0) for name in ("SE1", "SE2"))

    H_q, H_p = hamiltonian_derivatives(Q0, one.p)
    assert np.abs(one.p - (P0 - h * H_q)).max() < 1e-14
    assert np.abs(one.q - (Q0 + h * H_p)).max() < 1e-14
    H_q, H_p = hamiltonian_derivatives(two.q, P0)
    assert np.abs(two.q - (Q0 + h * H_p)).max() < 1e-14
    assert np.abs(two.p - (P0 - h * H_q)).max() < 1e-14
    assert distance(one, two) > 1e-2


def composition_cases():
    model = models.curved_mass()
    return {
        "nonseparable": (models.double_pendulum_in_angles().system, Q0, P0),
        "forced, depending on time": (driven_double_pendulum()[0], Q0, P0),
        "constrained": (model.system, model.q0, model.p0),
    }


@pytest.mark.parametrize("case", composition_cases())
def test_stormer_verlet_is_composed_of_symplectic_euler_steps(case):
    system, q0, p0 = composition_cases()[case]
    start, h = state(system, q0, p0), 0.1
    SE1, SE2, SVA, SVB = map(da.Variational, NAMES[:4])
    assert distance(steps(system, start, (SVA, h)), steps(system, start, (SE1, h / 2), (SE2, h / 2))) < 1e-14
    assert distance(steps(system, start, (SVB, h)), steps(system, start, (SE2, h / 2), (SE1, h / 2))) < 1e-14
    assert distance(steps(system, start, (SVA, h)), steps(system, start, (SVB, h))) > 1e-5


@pytest.mark.parametrize("case", composition_cases())
def test_many_steps_of_sva_are_svb_between_two_half_steps(case):
    system, q0, p0 = composition_cases()[case]
    start, h, N = state(system, q0, p0), 0.1, 12
    SE1, SE2, SVA, SVB = map(da.Variational, NAMES[:4])
    left = steps(system, start, *[(SVA, h)] * N)
    right = steps(system, start, (SE1, h / 2), *[(SVB, h)] * (N - 1), (SE2, h / 2))
    assert distance(left, right) < 1e-13


@pytest.mark.parametrize("case", composition_cases())
def test_se1_and_se2_are_adjoint(case):
    system, q0, p0 = composition_cases()[case]
    start, h = state(system, q0, p0), 0.1
    SE1, SE2 = map(da.Variational, NAMES[:2])
    assert distance(steps(system, start, (SE2, -h), (SE1, h)), start) < 1e-14
    assert distance(steps(system, start, (SE1, -h), (SE1, h)), start) > 1e-4


@pytest.mark.parametrize("forced", [False, True])
def test_relatives_among_runge_kutta_methods(forced):
    """SVA is the 2-stage Lobatto IIIA-IIIB pair, the midpoint rule is Gauss with one stage, for nonseparable H too."""
    system = driven_double_pendulum()[0] if forced else models.double_pendulum_in_angles().system
    for name, relative in (("SVA", da.LobattoIIIAB(2)), ("midpoint", da.Gauss(1))):
        one, other = (da.simulate(system, method, q0=Q0, p0=P0, h=0.1, steps=50) for method in (da.Variational(name), relative))
        assert distance(one, other) < 1e-13, name
    assert distance(one, da.simulate(system, da.Variational("SVC"), q0=Q0, p0=P0, h=0.1, steps=50)) > 1e-4


# -- Galerkin methods ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("name", ["double_pendulum", "varying_length"])
def test_galerkin_methods_are_lobatto_iiia_iiib_pairs_if_the_mass_is_constant(s, name):
    """With holonomic constraints, drag and constraints that depend on time; Marsden and West (2001), section 2.6."""
    model = models.CONSTRAINED[name]()
    galerkin, pair = (
        da.simulate(model.system, method, h=0.1, steps=60, **model.start)
        for method in (da.LobattoGalerkin(s), da.LobattoIIIAB(s))
    )
    assert distance(galerkin, pair) < 1e-13


def test_galerkin_methods_are_not_those_pairs_otherwise():
    model = models.curved_mass()
    galerkin, pair = (
        da.simulate(model.system, method, h=0.1, steps=20, **model.start)
        for method in (da.LobattoGalerkin(3), da.LobattoIIIAB(3))
    )
    assert distance(galerkin, pair) > 1e-7


def test_two_stages_are_the_trapezoidal_rule():
    system = driven_double_pendulum()[0]
    one, other = (
        da.simulate(system, method, q0=Q0, p0=P0, h=0.1, steps=50) for method in (da.LobattoGalerkin(2), da.Variational("SVC"))
    )
    assert distance(one, other) < 1e-14


def test_galerkin_coefficients_in_multiprecision():
    system = da.problems.double_pendulum().system
    q0, p0 = ["0.6", "-0.8", "0", "-1.6"], ["0.4", "0.3", "0.8", "0"]
    galerkin, pair = (
        da.verify.multiprecision_run(system, method, q0=q0, p0=p0, h=Fraction(1, 8), steps=4, digits=50)
        for method in (da.LobattoGalerkin(6), da.LobattoIIIAB(6))
    )
    assert max(abs(a - b) for name in "qp" for a, b in zip(getattr(galerkin, name), getattr(pair, name), strict=True)) < 1e-45


# -- functions as discrete Lagrangians -----------------------------------------------------------------------------------


def test_a_function_means_what_the_name_means():
    def SVA(L, t0, q0, Q, q1, h):
        return h / 2 * (L(t0, q0, 2 * (Q[0] - q0) / h) + L(t0 + h, q1, 2 * (q1 - Q[0]) / h))

    def SVC(t0, h, q1, q0, L):
        v = (q1 - q0) / h
        return h / 2 * L(t0, q0, v) + h / 2 * L(t0 + h, q1, v)

    model = models.curved_mass()
    for system, q0, p0 in ((driven_double_pendulum()[0], Q0, P0), (model.system, model.q0, model.p0)):
        for method, name in ((da.Variational(SVA, internal=(0.5,)), "SVA"), (da.Variational(SVC), "SVC")):
            one, other = (da.simulate(system, m, q0=q0, p0=p0, h=0.05, steps=40) for m in (method, da.Variational(name)))
            assert distance(one, other) < 1e-13


def test_a_discrete_lagrangian_of_its_own_is_symplectic_and_may_use_parameters():
    """Simpson's rule with the chord's velocity, and a weight taken from the model."""
    system = da.Lagrangian(
        lambda q, v, L: (1 + q[0] ** 2) * v[0] ** 2 / 2 + v[1] ** 2 / 2 - np.cos(q[0]) * q[1] ** 2 / L,
        dim=2,
        params={"L": 2.0, "alpha": 0.25},
    )
    function = da.Variational(
        lambda L, q0, q1, h, alpha: h * alpha * (L(q0, (q1 - q0) / h) + L(q1, (q1 - q0) / h))
        + h * (1 - 2 * alpha) * L((q0 + q1) / 2, (q1 - q0) / h)
    )  # fmt: skip
    start = {"q0": Q0, "p0": P0}
    assert function.symplectic is True
    assert function.symmetric is None
    assert function.order == {}
    assert da.verify.symplecticity_defect(system, function, h=0.2, **start) < 1e-13
    mixed = [
        da.verify.step(system, function, h=0.2, start=da.consistent(system, params={"alpha": a}, **start)) for a in (0, 0.5)
    ]
    for one, name in zip(mixed, ("midpoint", "SVC"), strict=True):
        assert distance(one, da.verify.step(system, da.Variational(name), h=0.2, **start)) < 1e-14


# -- systems given by a Hamiltonian --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_hamiltonian_quadratic_in_p_is_transformed(method):
    """The Lagrangian of H = (p - a(q))^T M^-1(q) (p - a(q)) / 2 + U is v^T M v / 2 + a . v - U."""
    hamiltonian = da.Hamiltonian(
        lambda q, p: (p[0] - np.sin(q[1])) ** 2 / (2 + q[1] ** 2) + (p[1] - p[0] + np.sin(q[1])) ** 2 / 2 + np.cos(q[0]),
        dim=2,
        force=lambda p: [0.0, -0.2 * p[1]],
    )
    # with w = p - a: v_1 = 2 w_1 / (2 + q_2^2) - (w_2 - w_1), v_2 = w_2 - w_1, and w = M v
    lagrangian = da.Lagrangian(
        lambda q, v: (2 + q[1] ** 2) * (v[0] + v[1]) ** 2 / 4 + v[1] ** 2 / 2 + np.sin(q[1]) * v[0] - np.cos(q[0]),
        dim=2,
        force=lambda p: [0.0, -0.2 * p[1]],
    )
    one, other = (da.simulate(s, method, q0=Q0, p0=P0, h=0.05, steps=40) for s in (hamiltonian, lagrangian))
    assert distance(one, other) < 1e-13


# -- forces: the discrete Lagrange-d'Alembert principle (16) -------------------------------------------------------------


@pytest.mark.parametrize(("method", "order"), [(m, m.order["q"]) for m in METHODS], ids=lambda x: str(x))
def test_order_with_forces_and_time(method, order):
    system, rhs = driven_double_pendulum()
    v0 = np.array([0.3, 0.5])
    a, b, u, w = models.dop853(rhs, [*Q0, *v0], 2.0)
    d = a - b
    reference = {"q": np.array([a, b]), "p": np.array([2 * u + w * np.cos(d), w + u * np.cos(d)])}
    counts = {1: [640, 1280, 2560], 2: [160, 320, 640], 4: [40, 80, 160], 6: [20, 28, 40]}[order]
    study = da.verify.order(system, method, reference=reference, t1=2.0, steps=counts, q0=Q0, v0=v0)
    for component, slope in study.slopes.items():
        assert study.used[component].sum() == 3, study
        assert abs(slope - order) < 0.15, f"{component}\n{study}"


DAMPING, DRIVE = 1e-5, 0.3


def damped_oscillator(drive):
    """q'' + DAMPING q' + q = drive cos 2t; the start and the energy of its solution."""
    system = da.Lagrangian(
        lambda q, v: (v @ v - q @ q) / 2, dim=1, force=lambda t, v: -DAMPING * v + np.array([drive * np.cos(2 * t)], like=v)
    )
    if drive:  # the steady oscillation, Re(A exp(2it))
        A = drive / (1 - 4 + 2j * DAMPING)

        def solution(t):
            return (A * np.exp(2j * t)).real, (2j * A * np.exp(2j * t)).real
    else:
        root = complex(-DAMPING / 2, np.sqrt(1 - DAMPING**2 / 4))

        def solution(t):
            return np.exp(root * t).real, (root * np.exp(root * t)).real

    def energy(t):
        q, v = solution(t)
        return (q**2 + v**2) / 2

    q0, v0 = solution(0.0)
    return system, {"q0": [q0], "v0": [v0]}, energy


@pytest.mark.parametrize("drive", [0.0, DRIVE])
@pytest.mark.parametrize(("method", "order"), [(m, m.order["q"]) for m in METHODS[:-1]], ids=lambda x: str(x))
def test_energy_of_a_weakly_damped_oscillator_is_right_to_the_order_of_the_method(method, order, drive):
    """Up to the same time in all runs, 100 000 of the smallest steps."""
    system, start, energy = damped_oscillator(drive)
    sizes, errors = [0.04, 0.02, 0.01] if order == 1 else [0.32, 0.16, 0.08], []
    for h in sizes:
        run = da.simulate(system, method, h=h, steps=round(100_000 * sizes[-1] / h), **start)
        errors.append(np.abs(run.energy / energy(run.t) - 1).max())
    slope, used = da.verify.slope(sizes, errors)
    assert used.sum() == 3
    assert abs(slope - order) < 0.15, errors


@pytest.mark.parametrize("name", ["SVA", "SVB", "SVC", "midpoint"])
def test_energy_decays_better_than_with_rk4_for_as_many_force_evaluations(name):
    system, start, energy = damped_oscillator(0.0)
    rk4 = da.RungeKutta(
        da.Tableau.of(
            [[0, 0, 0, 0], ["1/2", 0, 0, 0], [0, "1/2", 0, 0], [0, 0, 1, 0]], ["1/6", "1/3", "1/3", "1/6"], name="RK4"
        )
    )
    h, N = 0.1, 100_000
    variational = da.simulate(system, da.Variational(name), h=h, steps=N, **start)
    explicit = da.simulate(system, rk4, h=4 * h, steps=N // 4, **start)

    def decay(run):
        return -np.polyfit(run.t, np.log(run.energy), 1)[0]

    assert abs(decay(variational) / DAMPING - 1) < h**2 / 3
    # |R(iz)|^2 = 1 - z^6/72 + z^8/576: the loss of RK4 itself, over the damping
    z = 4 * h
    assert decay(explicit) / DAMPING - 1 == pytest.approx((z**6 / 72 - z**8 / 576) / z / DAMPING, rel=0.02)
    assert np.abs(variational.energy / energy(variational.t) - 1).max() < 0.01
    assert np.abs(explicit.energy / energy(explicit.t) - 1).max() > 0.5


# -- momentum maps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_momentum_maps_are_conserved_to_round_off(method):
    """Angular momentum of Kepler's problem; that about the vertical of a spherical pendulum in Cartesian coordinates."""
    kepler = da.Lagrangian(lambda q, v: v @ v / 2 + 1 / np.sqrt(q @ q), dim=3)
    run = da.simulate(kepler, method, q0=[1, 0, 0.2], v0=[0.1, 1.1, 0.2], h=0.02, steps=10_000)
    L = np.cross(run.q, run.p)
    assert np.abs(L - L[0]).max() < 1e-13
    assert np.ptp(da.momentum_map(run, lambda q: [-q[1], q[0], 0.0])) < 1e-13
    assert np.ptp(np.linalg.norm(run.q, axis=1)) > 0.3  # an eccentric orbit

    pendulum = da.Lagrangian(lambda q, v, g: v @ v / 2 - g * q[2], dim=3, holonomic=lambda q: [q @ q - 1], params={"g": 2.0})
    start = da.consistent(pendulum, q0=[0.6, 0, -0.8], v0=[0.2, 0.9, 0.15])
    run = da.simulate(pendulum, method, start=start, h=0.02, steps=10_000)
    assert np.ptp(da.momentum_map(run, lambda q: [-q[1], q[0], 0.0])) < 1e-13


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_total_momentum_of_free_bodies_is_conserved_to_round_off(method):
    springs = da.Lagrangian(
        lambda q, v, m: m @ v**2 / 2 - (q[1] - q[0] - 1) ** 4 - np.cos(q[2] - q[1]), dim=3, params={"m": [1.0, 2.0, 0.5]}
    )
    run = da.simulate(springs, method, q0=[0, 1.3, 2.0], v0=[0.2, -0.4, 1.0], h=0.02, steps=10_000)
    assert np.ptp(da.momentum_map(run, lambda q: np.ones(3))) < 1e-13


# -- refusals ------------------------------------------------------------------------------------------------------------


def relativistic():
    return da.Hamiltonian(lambda q, p: np.sqrt(1 + p @ p) + q @ q / 2, dim=2)


def test_systems_without_a_lagrangian_at_hand_are_refused():
    with pytest.raises(da.UnsupportedSystem, match=r"state the system as da\.Lagrangian"):
        da.simulate(relativistic(), da.Variational("SVC"), q0=Q0, p0=P0, h=0.1, steps=1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: da.Variational("SVD"), da.InputError, "one of SE1, SE2"),
        (lambda: da.Variational(3), da.InputError, "one of SE1, SE2"),
        (lambda: da.Variational("SVA", internal=(0.5,)), da.InputError, "leave internal out"),
        (lambda: da.Variational(lambda L: 0, internal=(1.5,)), da.InputError, "between 0 and 1"),
        (lambda: da.Variational(lambda L: 0, internal=(0.6, 0.4)), da.InputError, "must rise"),
        (lambda: da.Variational(lambda L: 0, internal=0.5), da.InputError, r"internal=\(0\.5,\)"),
        (lambda: da.LobattoGalerkin(1), da.InputError, "stages >= 2"),
    ],
)
def test_unusable_discrete_lagrangians_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("L_d", "error", "message"),
    [
        (lambda L, q0, q1, h: h * L(q0, (q1 - q0) / h), da.ModelError, "must say when L is taken"),
        (lambda q0, q1, h: (q1 - q0) @ (q1 - q0) / (2 * h), da.UnsupportedSystem, "never calls L"),
        (lambda L, q0, q1: L(q0), da.ModelError, r"L\(q, v\) or L\(t, q, v\)"),
        (lambda L, t0, q0, q1, h: h * L(t0, q0[0], (q1 - q0) / h), da.ModelError, "2 components"),
        (lambda L, q0, q1, k: L(0, q0, q1), da.ModelError, "names the argument 'k'"),
        (lambda q0, q1, h: q1 - q0, da.ModelError, "one number"),
    ],
)
def test_discrete_lagrangians_that_fail_on_a_system_are_refused(L_d, error, message):
    with pytest.raises(error, match=message):
        da.simulate(driven_double_pendulum()[0], da.Variational(L_d), q0=Q0, p0=P0, h=0.1, steps=1)
