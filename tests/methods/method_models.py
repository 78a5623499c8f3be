"""Nonlinear models without special structure, each with a reference from an independent integrator or other coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da


@dataclass(frozen=True, eq=False)
class Model:
    """A system, its start, a final time and the solution there."""

    system: da.systems.MechanicalSystem
    q0: np.ndarray
    p0: np.ndarray
    t1: float
    reference: dict[str, np.ndarray] = field(repr=False)

    @property
    def start(self) -> dict[str, np.ndarray]:
        return {"q0": self.q0, "p0": self.p0}


def dop853(rhs, y0, t1):
    solution = solve_ivp(rhs, (0.0, t1), y0, method="DOP853", rtol=3e-14, atol=1e-14)
    assert solution.success
    return solution.y[:, -1]


def underlying_reference(system, state, t1):
    """The solution at t1 from the underlying ODE z' = z_dot(lam, psi), with 0 = d/dt (g_dot, k), integrated by SciPy."""
    (y_name, n), (z_name, _) = system.state_blocks
    theta, m = system.parameters.vector(), system.n_holonomic

    def rhs(t, x):
        multipliers = system.multipliers(t, x[:n], x[n:], theta)
        z_dot = system.evaluate("z_dot", t, x[:n], x[n:], multipliers[:m], multipliers[m:])
        return np.concatenate([system.evaluate("v", t, x[:n], x[n:]), z_dot])

    x = dop853(rhs, state.packed, t1)
    multipliers = system.multipliers(t1, x[:n], x[n:], theta)
    known = {y_name: x[:n], z_name: x[n:], "lam": multipliers[:m], "psi": multipliers[m:]}
    return {name: value for name, value in known.items() if len(value)}


def mechanical(system, q0, v0, t1) -> Model:
    """A model whose reference comes from the underlying ODE; q0 and v0 are moved onto the constraints."""
    state = da.consistent(system, q0=q0, v0=v0)
    return Model(system, state.q, state.p, t1, underlying_reference(system, state, t1))


@cache
def magnetic_surface() -> Model:
    """A charged particle on a bumpy ellipsoid in a magnetic field: H is nonseparable, g is not quadratic."""
    system = da.Hamiltonian(
        lambda q, p, B: (
            ((p[0] + B * q[1] * (1 + q[2])) ** 2 + (p[1] - B * q[0]) ** 2 + p[2] ** 2 * (1 + q[0] ** 2 / 2)) / 2
            + np.cos(q[0]) * q[2]
            + q[1] ** 4 / 4
        ),
        dim=3,
        holonomic=lambda q: [q[0] ** 2 + q[1] ** 2 / 2 + q[2] ** 2 / 3 + q[0] * q[1] * q[2] / 5 - 1],
        params={"B": 0.7},
    )
    return mechanical(system, [0.5, 0.6, 1.1], [0.4, -0.7, 0.3], 2.0)


@cache
def curved_mass() -> Model:
    """A Lagrangian with a mass matrix M(q), a velocity-linear term and one curved constraint."""
    system = da.Lagrangian(
        lambda q, v: (
            (2 + np.sin(q[1])) * v[0] ** 2 / 2
            + (1 + q[0] ** 2) * v[1] ** 2 / 2
            + v[2] ** 2
            + np.cos(q[2]) * v[0] * v[1] / 3
            + q[1] * v[2] / 2
            - np.sin(q[0]) * q[2]
            - q[1] ** 2
        ),
        dim=3,
        holonomic=lambda q: [q[0] + q[1] ** 2 / 2 + np.sin(q[2]) - 1],
    )
    return mechanical(system, [0.4, 0.5, 0.5], [0.5, -0.6, 0.2], 2.0)


@cache
def varying_length() -> Model:
    """A damped pendulum of prescribed length l(t) = 1 + sin(t)/4; the reference is its angle's own equation of motion.

    With q = l (sin a, -cos a): l a'' + 2 l' a' = -g sin a - c l a' / m, because the drag -c v has the tangential part -c l a'.
    """
    c, g = 0.1, 1.0

    def length(t):
        return 1 + np.sin(t) / 4, np.cos(t) / 4, -np.sin(t) / 4

    system = da.Hamiltonian(
        lambda q, p: p @ p / 2 + g * q[1],
        dim=2,
        holonomic=lambda t, q: [np.hypot(q[0], q[1]) - 1 - np.sin(t) / 4],
        force=lambda v: -c * v,
    )

    def rhs(t, y):
        ell, ell1, _ = length(t)
        return [y[1], -(g * np.sin(y[0]) + (2 * ell1 + c * ell) * y[1]) / ell]

    def state(t, a, a1):
        ell, ell1, ell2 = length(t)
        radial, tangent = np.array([np.sin(a), -np.cos(a)]), np.array([np.cos(a), np.sin(a)])
        # radial balance: l'' - l a'^2 = g cos a - c l' - lam
        lam = g * np.cos(a) - c * ell1 - ell2 + ell * a1**2
        return ell * radial, ell1 * radial + ell * a1 * tangent, np.array([lam])

    q0, p0, _ = state(0.0, 1.2, 0.3)
    a, a1 = dop853(rhs, [1.2, 0.3], 3.0)
    q, p, lam = state(3.0, a, a1)
    return Model(system, q0, p0, 3.0, {"q": q, "p": p, "lam": lam})


def rhs_in_angles(_, y):
    """The equations of motion of the double pendulum in its two angles, by hand."""
    a, b, u, w = y
    d = a - b
    M = np.array([[2.0, np.cos(d)], [np.cos(d), 1.0]])
    F = -np.array([np.sin(d) * w**2 + 2 * np.sin(a), -np.sin(d) * u**2 + np.sin(b)])
    return np.concatenate([[u, w], np.linalg.solve(M, F)])


@cache
def double_pendulum() -> Model:
    """The paper's Example 2; the reference is integrated in the two angles."""

    problem = da.problems.double_pendulum()
    a, b, u, w = dop853(rhs_in_angles, [np.pi / 6, -np.pi / 6, 0.0, 0.0], 5.0)
    first, second = np.array([np.sin(a), -np.cos(a)]), np.array([np.sin(b), -np.cos(b)])
    v1 = u * np.array([np.cos(a), np.sin(a)])
    v2 = v1 + w * np.array([np.cos(b), np.sin(b)])
    q, p = np.concatenate([first, first + second]), np.concatenate([v1, v2])
    # Newton's law for the second mass along the second rod, then for the first mass along the first, gives the rod forces.
    accelerations = rhs_in_angles(0, [a, b, u, w])[2:]
    a1 = accelerations[0] * np.array([np.cos(a), np.sin(a)]) - u**2 * first
    a2 = a1 + accelerations[1] * np.array([np.cos(b), np.sin(b)]) - w**2 * second
    gravity = np.array([0.0, -1.0])
    lam2 = -(a2 - gravity) @ second
    lam1 = -(a1 - gravity - lam2 * second) @ first
    return Model(problem.system, problem.q0, problem.p0, 5.0, {"q": q, "p": p, "lam": np.array([lam1, lam2])})


@cache
def double_pendulum_in_angles(unilateral=None) -> Model:
    """Unconstrained and nonseparable; the reference is integrated by SciPy from hand-written equations of motion."""
    system = da.Lagrangian(
        lambda q, v: v[0] ** 2 + v[1] ** 2 / 2 + v[0] * v[1] * np.cos(q[0] - q[1]) + 2 * np.cos(q[0]) + np.cos(q[1]),
        dim=2,
        unilateral=unilateral,
    )

    a, b, u, w = dop853(rhs_in_angles, [0.9, -0.4, 0.3, 0.5], 2.0)
    d0, d = 0.9 + 0.4, a - b
    p0 = np.array([2 * 0.3 + 0.5 * np.cos(d0), 0.5 + 0.3 * np.cos(d0)])
    p = np.array([2 * u + w * np.cos(d), w + u * np.cos(d)])
    return Model(system, np.array([0.9, -0.4]), p0, 2.0, {"q": np.array([a, b]), "p": p})


@cache
def double_pendulum_far_from_a_wall() -> Model:
    """The same with a wall that it does not reach."""
    return double_pendulum_in_angles(lambda q: q[0] + 3)


@cache
def double_pendulum_at_a_wall() -> Model:
    """The same between two walls, one of which it hits at about t = 0.07; the reference, without impacts, is not its own."""
    return replace(double_pendulum_in_angles(lambda q: [0.92 - q[0], q[0] + 0.2]), reference={})


@cache
def sleigh() -> Model:
    """Chaplygin's sleigh on a slope, whose M depends on q; the reference is integrated in q, the speed and the rate of turning.

    With u along the blade and w = theta', m = a = I = 1, g = 0.1: u' = w^2 - g sin(theta), 2 w' = -(u w + g cos(theta)), and
    the force across the blade is u w + w' + g cos(theta) = -psi.
    """
    problem = da.problems.chaplygin_sleigh(speed=0.4, turning=0.6)

    def rhs(_, x):
        angle, u, w = x[2:]
        return [u * np.cos(angle), u * np.sin(angle), w, w**2 - 0.1 * np.sin(angle), -(u * w + 0.1 * np.cos(angle)) / 2]

    def momentum(angle, u, w):  # of the blade's point: the centre of mass moves by w across the blade in addition
        return np.array([u * np.cos(angle) - w * np.sin(angle), u * np.sin(angle) + w * np.cos(angle), 2 * w])

    q0 = np.array([1.0, 0.0, 0.0])
    x = dop853(rhs, [*q0, 0.4, 0.6], 3.0)
    angle, u, w = x[2:]
    psi = -(u * w + rhs(3.0, x)[4] + 0.1 * np.cos(angle))
    reference = {"q": x[:3], "p": momentum(angle, u, w), "psi": np.array([psi])}
    return Model(problem.system, q0, momentum(0.0, 0.4, 0.6), 3.0, reference)


@cache
def oscillator() -> Model:
    """The perturbed contact oscillator with x' + y z' = 0 and y = cos t; the reference is integrated in x, z and z'.

    Newton's law with the reaction mu (1, 0, y): x'' = -V_x + mu, z'' = -V_z + y mu, and x'' = -y z'' - y' z' gives mu = -psi.
    """
    eps, t1 = 0.8, 3.0
    problem = da.problems.perturbed_contact_oscillator(eps=eps, vz0=0.3)

    def reaction(t, x, z, vz):
        y, vy = np.cos(t), -np.sin(t)
        return (x + y * z - vy * vz + eps * (x * z**2 + x**2 * y * z)) / (1 + y**2)

    def rhs(t, s):
        x, z, vz = s
        return [-np.cos(t) * vz, vz, np.cos(t) * reaction(t, x, z, vz) - z - eps * x**2 * z]

    x, z, vz = s = dop853(rhs, [*problem.q0[[0, 2]], 0.3], t1)
    reference = {
        "q": np.array([x, np.cos(t1), z]),
        "p": np.array([-np.cos(t1) * vz, -np.sin(t1), vz]),
        "psi": np.array([-reaction(t1, *s)]),
    }
    return Model(problem.system, problem.q0, np.array([-0.3, 0.0, 0.3]), t1, reference)


@cache
def nonlinear_k() -> Model:
    """A constraint quadratic in the velocities, in the manner of Appell and Hamel: k_v depends on v and vanishes with it."""
    system = da.Lagrangian(
        lambda q, v: v @ v / 2 - q[2] / 2 - np.cos(q[0]) * q[1] / 2,
        dim=3,
        nonholonomic=lambda q, v: [(v[2] ** 2 - (1 + q[0] ** 2 / 4) * (v[0] ** 2 + v[1] ** 2) / 2) / 2],
    )
    return mechanical(system, [0.3, 0.2, 0.0], [0.9, 0.7, -0.8], 5.0)


NONHOLONOMIC = {m.__name__: m for m in (sleigh, oscillator, nonlinear_k)}
CONSTRAINED = {m.__name__: m for m in (double_pendulum, magnetic_surface, curved_mass, varying_length)}


@cache
def bead() -> Model:
    """One degree of freedom in the plane, with a nonseparable H and a curved constraint: small, but without symmetry."""
    system = da.Hamiltonian(
        lambda q, p: ((p[0] + q[0] * q[1]) ** 2 + p[1] ** 2 * (1 + q[0] ** 2 / 2)) / 2 + q[1] + q[0] ** 4 / 4,
        dim=2,
        holonomic=lambda q: [q[0] ** 2 + q[1] ** 2 / 2 + q[0] * q[1] ** 3 / 5 - 1],
    )
    return mechanical(system, [0.8, -0.7], [0.6, 0.5], 2.0)


@cache
def pendulum() -> Model:
    """Separable, with q = (sin a, -cos a); the reference is integrated in the angle a, a'' = -sin a, lam = a'^2 + cos a."""
    system = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])

    def state(a, w):
        return np.array([np.sin(a), -np.cos(a)]), w * np.array([np.cos(a), np.sin(a)])

    q0, p0 = state(1.0, 0.4)
    a, w = dop853(lambda _, x: [x[1], -np.sin(x[0])], [1.0, 0.4], 2.0)
    q, p = state(a, w)
    return Model(system, q0, p0, 2.0, {"q": q, "p": p, "lam": np.array([w**2 + np.cos(a)])})


@cache
def pendulum_with_varying_mass() -> Model:
    """Unconstrained and nonseparable, H = p^2 / (2 (1 + q^2/2)) - cos q."""
    system = da.Hamiltonian(lambda q, p: p[0] ** 2 / (2 + q[0] ** 2) - np.cos(q[0]), dim=1)

    def rhs(_, x):
        q, p = x
        return [2 * p / (2 + q**2), 2 * q * p**2 / (2 + q**2) ** 2 - np.sin(q)]

    q, p = dop853(rhs, [0.8, 0.5], 2.0)
    return Model(system, np.array([0.8]), np.array([0.5]), 2.0, {"q": np.array([q]), "p": np.array([p])})


@cache
def angle_of_a_pendulum() -> Model:
    """Unconstrained and separable, H = p^2/2 - cos q."""
    system = da.Hamiltonian(lambda q, p: p[0] ** 2 / 2 - np.cos(q[0]), dim=1)
    q, p = dop853(lambda _, x: [x[1], -np.sin(x[0])], [0.8, 0.5], 2.0)
    return Model(system, np.array([0.8]), np.array([0.5]), 2.0, {"q": np.array([q]), "p": np.array([p])})


UNCONSTRAINED = {
    m.__name__: m
    for m in (
        double_pendulum_in_angles,
        angle_of_a_pendulum,
        double_pendulum_far_from_a_wall,
        double_pendulum_at_a_wall,
    )
}


@dataclass(frozen=True, eq=False)
class OverdeterminedModel:
    """A test problem of Jay and Simeon: its solution at t1, and what their natural methods converge to instead."""

    system: da.ODAE
    start: dict[str, list[float]]
    t1: float
    reference: dict[str, np.ndarray] = field(repr=False)
    limit: dict[str, np.ndarray] = field(repr=False)
    """Of the natural method (3.2) with alpha = 1/2, by section 3.4."""
    conjugate_limit: dict[str, np.ndarray] = field(repr=False)
    """Of the natural conjugate method (3.7) with alpha = 1/2."""


def overdetermined(system, start, t1, reference, rhs):
    """`rhs(conjugate)` is the limit ODE for (y_1, y_2, z_1, z_2)."""
    ends = (dop853(rhs(conjugate), [*start["y0"], *start["z0"]], t1) for conjugate in (False, True))
    limit, conjugate_limit = ({"y": x[:2], "z": x[2:]} for x in ends)
    return OverdeterminedModel(system, start, t1, reference, limit, conjugate_limit)


@cache
def growth() -> OverdeterminedModel:
    """(4.1) of Jay and Simeon: y = z = (e^2t, e^-t), lam = e^t.

    g_y v_z = (2 y_2^2, -2 y_1 y_2) and v_y = 0. The equations of the multipliers are quadratic; the branch is that of the
    larger root.
    """
    system = da.ODAE(
        v=lambda z: [2 * z[0], -z[1]],
        f=lambda y, z: [2 * y[0] * y[1] * z[0] * z[1] - y[0] * z[0] * z[1], z[0] - y[0] * z[1] ** 3],
        r=lambda y, z, lam: [y[1] * z[0] * lam[0] ** 2, -np.sqrt(y[0]) * z[0] * z[1] ** 2 * lam[0]],
        g=lambda y: [y[0] * y[1] ** 2 - 1],
        dim_y=2,
        dim_z=2,
    )

    def rhs(conjugate):
        def limit(_, x):
            y1, y2, z1, z2 = x
            v1, v2 = 2 * z1, -z2
            f = np.array([2 * y1 * y2 * z1 * z2 - y1 * z1 * z2, z1 - y1 * z2**3])
            row = np.array([2 * y2**2, -2 * y1 * y2])
            curvature = 2 * y2 * v1 * v2 + y1 * v2**2  # g_yy(v,v)/2 with g_y1y2 = 2 y_2, g_y2y2 = 2 y_1

            def force(constant):
                """r/2 with 0 = constant + g_y v_z r(psi)/2."""
                a, b = row[0] * y2 * z1 / 2, -row[1] * np.sqrt(y1) * z1 * z2**2 / 2
                psi = (-b + np.sqrt(b**2 - 4 * a * constant)) / (2 * a)
                return np.array([y2 * z1 * psi**2, -np.sqrt(y1) * z1 * z2**2 * psi]) / 2

            at0, at1 = (0, row @ f) if conjugate else (row @ f, 0)
            return [v1, v2, *(f + force(curvature + at0) + force(curvature + at1))]

        return limit

    reference = {"y": np.exp([2.0, -1.0]), "z": np.exp([2.0, -1.0]), "lam": np.exp([1.0])}
    return overdetermined(system, {"y0": [1.0, 1.0], "z0": [1.0, 1.0]}, 1.0, reference, rhs)


MASS, CUBIC, GRAVITY, FRICTION, EXPONENT = 1.0, 0.01, 9.81, 0.1, 0.85


def normal_force(y1, z1, share=1.0):
    """The multiplier of (4.2), m (g + 6 b y_1 z_1^2) / (1 + 9 b^2 y_1^4), or with only a share of its centrifugal term."""
    return MASS * (GRAVITY + 6 * share * CUBIC * y1 * z1**2) / (1 + 9 * CUBIC**2 * y1**4)


def sliding(psi, y1, z1, z2):
    """(F_N(psi) + F_f(psi)) / m of (4.2)."""
    square = 1 + 9 * CUBIC**2 * y1**4
    drag = FRICTION * (square * psi**2) ** (EXPONENT / 2) / np.hypot(z1, z2)
    return np.array([-3 * CUBIC * y1**2 * psi - drag * z1, psi - drag * z2]) / MASS


def sliding_rhs(_, x):
    """(4.2) with its multiplier eliminated."""
    y1, _, z1, z2 = x
    return [z1, z2, *(np.array([0.0, -GRAVITY]) + sliding(normal_force(y1, z1), y1, z1, z2))]


@cache
def mass_on_surface() -> OverdeterminedModel:
    """(4.2) of Jay and Simeon: a mass on a cubic surface under nonlinear Coulomb friction. The surface can only push."""
    system = da.ODAE(
        v=lambda z: z,
        f=lambda gravity: [0.0, -gravity],
        r=lambda y, z, lam, m, b, c, e: (
            (
                np.array([-3 * b * y[0] ** 2, 1.0]) * lam[0]
                - c * ((1 + 9 * b**2 * y[0] ** 4) * lam[0] ** 2) ** (e / 2) * z / np.sqrt(z @ z)
            )
            / m
        ),
        g=lambda y, b: [y[1] - b * y[0] ** 3],
        dim_y=2,
        dim_z=2,
        domain=lambda z, lam, z0: [lam[0], z @ z0],
        params={"m": MASS, "b": CUBIC, "gravity": GRAVITY, "c": FRICTION, "e": EXPONENT},
    )

    def rhs(conjugate):
        def limit(_, x):
            y1, _, z1, z2 = x
            # friction acts along z, which is tangential: it drops out of the equations of the multipliers
            curved = 3 * MASS * CUBIC * y1 * z1**2 / (1 + 9 * CUBIC**2 * y1**4)  # from g_yy(v,v)/2
            pushed = normal_force(y1, z1, share=0.5)  # from g_yy(v,v)/2 and g_y f
            psi0, psi1 = (2 * curved, 2 * pushed) if conjugate else (2 * pushed, 2 * curved)
            force = (sliding(psi0, y1, z1, z2) + sliding(psi1, y1, z1, z2)) / 2
            return [z1, z2, *(np.array([0.0, -GRAVITY]) + force)]

        return limit

    start = {"y0": [10.0, 10.0], "z0": [-3.6, -10.8], "lam0": [1.7586]}
    y1, y2, z1, z2 = dop853(sliding_rhs, [*start["y0"], *start["z0"]], 1.0)
    reference = {"y": np.array([y1, y2]), "z": np.array([z1, z2]), "lam": np.array([normal_force(y1, z1)])}
    return overdetermined(system, start, 1.0, reference, rhs)
