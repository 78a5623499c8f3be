"""Nonlinear models without special structure, each with a reference from an independent integrator or other coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
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


def underlying_reference(system, q0, p0, t1):
    """q, p and lambda at t1 from the underlying ODE, integrated by SciPy."""
    n, theta = len(q0), system.parameters.vector()

    def rhs(t, y):
        q, p = y[:n], y[n:]
        lam = system.multipliers(t, q, p, theta)
        f = system.evaluate("force", t, q, p) - system.evaluate("H_q", t, q, p) - system.evaluate("G", t, q).T @ lam
        return np.concatenate([system.evaluate("H_p", t, q, p), f])

    y = dop853(rhs, np.concatenate([q0, p0]), t1)
    return {"q": y[:n], "p": y[n:], "lam": system.multipliers(t1, y[:n], y[n:], theta)}


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
    state = da.consistent(system, q0=[0.5, 0.6, 1.1], v0=[0.4, -0.7, 0.3])
    return Model(system, state.q, state.p, 2.0, underlying_reference(system, state.q, state.p, 2.0))


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
    state = da.consistent(system, q0=[0.4, 0.5, 0.5], v0=[0.5, -0.6, 0.2])
    return Model(system, state.q, state.p, 2.0, underlying_reference(system, state.q, state.p, 2.0))


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


@cache
def double_pendulum() -> Model:
    """The paper's Example 2; the reference is integrated in the two angles."""

    def rhs(_, y):
        a, b, u, w = y
        d = a - b
        M = np.array([[2.0, np.cos(d)], [np.cos(d), 1.0]])
        F = -np.array([np.sin(d) * w**2 + 2 * np.sin(a), -np.sin(d) * u**2 + np.sin(b)])
        return np.concatenate([[u, w], np.linalg.solve(M, F)])

    problem = da.problems.double_pendulum()
    a, b, u, w = dop853(rhs, [np.pi / 6, -np.pi / 6, 0.0, 0.0], 5.0)
    first, second = np.array([np.sin(a), -np.cos(a)]), np.array([np.sin(b), -np.cos(b)])
    v1 = u * np.array([np.cos(a), np.sin(a)])
    v2 = v1 + w * np.array([np.cos(b), np.sin(b)])
    q, p = np.concatenate([first, first + second]), np.concatenate([v1, v2])
    # Newton's law for the second mass along the second rod, then for the first mass along the first, gives the rod forces.
    accelerations = rhs(0, [a, b, u, w])[2:]
    a1 = accelerations[0] * np.array([np.cos(a), np.sin(a)]) - u**2 * first
    a2 = a1 + accelerations[1] * np.array([np.cos(b), np.sin(b)]) - w**2 * second
    gravity = np.array([0.0, -1.0])
    lam2 = -(a2 - gravity) @ second
    lam1 = -(a1 - gravity - lam2 * second) @ first
    return Model(problem.system, problem.q0, problem.p0, 5.0, {"q": q, "p": p, "lam": np.array([lam1, lam2])})


@cache
def double_pendulum_in_angles() -> Model:
    """Unconstrained and nonseparable; the reference is integrated by SciPy from hand-written equations of motion."""
    system = da.Lagrangian(
        lambda q, v: v[0] ** 2 + v[1] ** 2 / 2 + v[0] * v[1] * np.cos(q[0] - q[1]) + 2 * np.cos(q[0]) + np.cos(q[1]), dim=2
    )

    def rhs(_, y):
        a, b, u, w = y
        d = a - b
        M = np.array([[2.0, np.cos(d)], [np.cos(d), 1.0]])
        F = -np.array([np.sin(d) * w**2 + 2 * np.sin(a), -np.sin(d) * u**2 + np.sin(b)])
        return np.concatenate([[u, w], np.linalg.solve(M, F)])

    a, b, u, w = dop853(rhs, [0.9, -0.4, 0.3, 0.5], 2.0)
    d0, d = 0.9 + 0.4, a - b
    p0 = np.array([2 * 0.3 + 0.5 * np.cos(d0), 0.5 + 0.3 * np.cos(d0)])
    p = np.array([2 * u + w * np.cos(d), w + u * np.cos(d)])
    return Model(system, np.array([0.9, -0.4]), p0, 2.0, {"q": np.array([a, b]), "p": p})


CONSTRAINED = {m.__name__: m for m in (double_pendulum, magnetic_surface, curved_mass, varying_length)}
