"""What a user might pick instead of dalembert, for the two examples of Jay (1996), each in its best formulation.

Right-hand sides, residuals and their Jacobians (by complex steps, exact to round-off) are compiled by Numba; heyoka compiles
its own expressions. A peer is a function of a tolerance that returns an object with `run()`, whose call is what is timed, and
`states(result)`, which gives (q, p) at the steps of the solver, time first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

jit = numba.njit(cache=True)
States = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Prepared:
    run: Callable[[], Any]
    states: Callable[[Any], States]


@dataclass(frozen=True)
class Example:
    """An example in every formulation: index-2 residual, underlying ODE in (q, p), and minimal coordinates for heyoka."""

    q0: np.ndarray
    p0: np.ndarray
    multipliers: np.ndarray
    rhs: Callable
    residual: Callable
    angles: Callable[[Any], tuple[list, list[float], Callable[[np.ndarray], States]]]
    cartesian: Callable[[Any], list]


# -- double pendulum: g = (|u|^2 - 1)/2, (|w|^2 - 1)/2 with u = q1, w = q2 - q1 -----------------------------------------------


@jit
def pendulum_rhs(t, y):
    ux, uz, wx, wz = y[0], y[1], y[2] - y[0], y[3] - y[1]
    dx, dz = y[6] - y[4], y[7] - y[5]
    uu, uw, ww = ux * ux + uz * uz, ux * wx + uz * wz, wx * wx + wz * wz
    # uu m1 - uw m2 = |v1|^2 - u_z,   -uw m1 + 2 ww m2 = |v2 - v1|^2
    first, second = y[4] * y[4] + y[5] * y[5] - uz, dx * dx + dz * dz
    determinant = 2 * uu * ww - uw * uw
    m1, m2 = (2 * ww * first + uw * second) / determinant, (uw * first + uu * second) / determinant
    f = np.empty_like(y)
    f[0], f[1], f[2], f[3] = y[4], y[5], y[6], y[7]
    f[4], f[5] = -m1 * ux + m2 * wx, -1 - m1 * uz + m2 * wz
    f[6], f[7] = -m2 * wx, -1 - m2 * wz
    return f


@jit
def pendulum_residual(t, y, yp, r):
    """q' = p - G^T mu,   p' = -H_q - G^T lam,   0 = g,   0 = G p (Gear, Gupta and Leimkuhler); y = (q, p, mu, lam)."""
    ux, uz, wx, wz = y[0], y[1], y[2] - y[0], y[3] - y[1]
    m1, m2, l1, l2 = y[8], y[9], y[10], y[11]
    r[0], r[1] = yp[0] - y[4] + m1 * ux - m2 * wx, yp[1] - y[5] + m1 * uz - m2 * wz
    r[2], r[3] = yp[2] - y[6] + m2 * wx, yp[3] - y[7] + m2 * wz
    r[4], r[5] = yp[4] + l1 * ux - l2 * wx, yp[5] + 1 + l1 * uz - l2 * wz
    r[6], r[7] = yp[6] + l2 * wx, yp[7] + 1 + l2 * wz
    r[8], r[9] = (ux * ux + uz * uz - 1) / 2, (wx * wx + wz * wz - 1) / 2
    r[10] = ux * y[4] + uz * y[5]
    r[11] = wx * (y[6] - y[4]) + wz * (y[7] - y[5])


def pendulum_cartesian(hy):
    x1, z1, x2, z2, px1, pz1, px2, pz2 = hy.make_vars("x1", "z1", "x2", "z2", "px1", "pz1", "px2", "pz2")
    wx, wz, dx, dz = x2 - x1, z2 - z1, px2 - px1, pz2 - pz1
    uu, uw, ww = x1 * x1 + z1 * z1, x1 * wx + z1 * wz, wx * wx + wz * wz
    first, second = px1 * px1 + pz1 * pz1 - z1, dx * dx + dz * dz
    determinant = 2 * uu * ww - uw * uw
    m1, m2 = (2 * ww * first + uw * second) / determinant, (uw * first + uu * second) / determinant
    return [(x1, px1), (z1, pz1), (x2, px2), (z2, pz2), (px1, -m1 * x1 + m2 * wx), (pz1, -1.0 - m1 * z1 + m2 * wz),
            (px2, -m2 * wx), (pz2, -1.0 - m2 * wz)]  # fmt: skip


def pendulum_angles(hy):
    a, b, a_dot, b_dot = hy.make_vars("a", "b", "a_dot", "b_dot")
    c, s = hy.cos(a - b), hy.sin(a - b)
    left, right = -(b_dot * b_dot) * s - 2.0 * hy.sin(a), a_dot * a_dot * s - hy.sin(b)
    determinant = 2.0 - c * c
    system = [
        (a, a_dot),
        (b, b_dot),
        (a_dot, (left - c * right) / determinant),
        (b_dot, (2.0 * right - c * left) / determinant),
    ]
    return system, [np.pi / 6, -np.pi / 6, 0.0, 0.0], pendulum_from_angles


def pendulum_from_angles(y):
    a, b, a_dot, b_dot = np.asarray(y).T
    q1, q2 = np.array([np.sin(a), -np.cos(a)]), np.array([np.sin(b), -np.cos(b)])
    v1, v2 = a_dot * np.array([np.cos(a), np.sin(a)]), b_dot * np.array([np.cos(b), np.sin(b)])
    return np.vstack([q1, q1 + q2]).T, np.vstack([v1, v1 + v2]).T


# -- charged particle on a sphere: g = (|q|^2 - 1)/2, v = (p_x + y, p_y - x, p_z) ---------------------------------------------


@jit
def particle_rhs(t, y):
    x, z_y, z = y[0], y[1], y[2]
    vx, vy, vz = y[3] + z_y, y[4] - x, y[5]
    mu = (2 * (x * vy - z_y * vx) + z + vx * vx + vy * vy + vz * vz) / (x * x + z_y * z_y + z * z)
    f = np.empty_like(y)
    f[0], f[1], f[2] = vx, vy, vz
    f[3], f[4], f[5] = vy - mu * x, -vx - mu * z_y, 1 - mu * z
    return f


@jit
def particle_residual(t, y, yp, r):
    """q' = H_p - G^T mu,   p' = -H_q - G^T lam,   0 = g,   0 = G H_p; y = (q, p, mu, lam)."""
    vx, vy, vz, m, l = y[3] + y[1], y[4] - y[0], y[5], y[6], y[7]  # noqa: E741
    r[0], r[1], r[2] = yp[0] - vx + m * y[0], yp[1] - vy + m * y[1], yp[2] - vz + m * y[2]
    r[3], r[4], r[5] = yp[3] - vy + l * y[0], yp[4] + vx + l * y[1], yp[5] - 1 + l * y[2]
    r[6] = (y[0] * y[0] + y[1] * y[1] + y[2] * y[2] - 1) / 2
    r[7] = y[0] * vx + y[1] * vy + y[2] * vz


def particle_cartesian(hy):
    x, y, z, px, py, pz = hy.make_vars("x", "y", "z", "px", "py", "pz")
    vx, vy = px + y, py - x
    mu = (2.0 * (x * vy - y * vx) + z + vx * vx + vy * vy + pz * pz) / (x * x + y * y + z * z)
    return [(x, vx), (y, vy), (z, pz), (px, vy - mu * x), (py, -vx - mu * y), (pz, 1.0 - mu * z)]


def particle_angles(hy):
    """theta from the z-axis, the longitude phi, and theta'; the axial momentum L is a constant of the motion."""
    theta, phi, rate = hy.make_vars("theta", "phi", "rate")
    s, c, momentum = hy.sin(theta), hy.cos(theta), -0.4
    system = [(theta, rate), (phi, momentum / (s * s) - 1.0), (rate, momentum**2 * c / (s * s * s) - s * c - s)]
    return system, [float(np.arccos(np.sqrt(0.92))), np.pi / 4, 0.0], particle_from_angles


def particle_from_angles(y):
    theta, phi, rate = np.asarray(y).T
    s, c = np.sin(theta), np.cos(theta)
    q = np.array([s * np.cos(phi), s * np.sin(phi), c])
    across = -0.4 / s  # canonical momentum along the parallel
    p = np.array([rate * c * np.cos(phi) - across * np.sin(phi), rate * c * np.sin(phi) + across * np.cos(phi), -rate * s])
    return q.T, p.T


ROOT = np.sqrt(0.75)
EXAMPLES = {
    "double_pendulum": Example(
        q0=np.array([0.5, -ROOT, 0.0, -2 * ROOT]),
        p0=np.zeros(4),
        multipliers=np.zeros(4),
        rhs=pendulum_rhs,
        residual=pendulum_residual,
        angles=pendulum_angles,
        cartesian=pendulum_cartesian,
    ),
    "charged_particle_on_sphere": Example(
        q0=np.array([0.2, 0.2, np.sqrt(0.92)]),
        p0=np.array([1.0, -1.0, 0.0]),
        multipliers=np.zeros(2),
        rhs=particle_rhs,
        residual=particle_residual,
        angles=particle_angles,
        cartesian=particle_cartesian,
    ),
}


# -- the peers -----------------------------------------------------------------------------------------------------------


@jit
def complex_step_jacobian(rhs, t, y):
    n = len(y)
    J, z = np.empty((n, n)), y.astype(np.complex128)
    for j in range(n):
        z[j] += 1e-30j
        J[:, j] = rhs(t, z).imag / 1e-30
        z[j] = y[j]
    return J


@jit
def residual_jacobian(residual, t, y, yp, cj, J):
    n = len(y)
    z, zp, r = y.astype(np.complex128), yp.astype(np.complex128), np.empty(n, np.complex128)
    for j in range(n):
        z[j] += 1e-30j
        zp[j] += cj * 1e-30j
        residual(t, z, zp, r)
        J[:, j] = r.imag / 1e-30
        z[j], zp[j] = y[j], yp[j]


def scipy_solver(method: str) -> Callable[[Example, float, float], Prepared]:
    def prepare(example: Example, t1: float, tolerance: float) -> Prepared:
        from scipy.integrate import solve_ivp

        y0, n = np.concatenate([example.q0, example.p0]), len(example.q0)
        options: dict[str, Any] = {"method": method, "rtol": max(tolerance, 1e-13), "atol": tolerance}
        if method == "Radau":
            options["jac"] = lambda t, y: complex_step_jacobian(example.rhs, t, y)

        def run() -> Any:
            solution = solve_ivp(example.rhs, (0.0, t1), y0, **options)
            if not solution.success:
                raise RuntimeError(solution.message)
            return solution

        return Prepared(run, lambda solution: (solution.y[:n].T, solution.y[n:].T))

    return prepare


def ida(example: Example, t1: float, tolerance: float) -> Prepared:
    from sksundae.ida import IDA

    n, m = len(example.q0), len(example.multipliers)
    q0p0 = np.concatenate([example.q0, example.p0])
    f = example.rhs(0.0, q0p0)
    y0, yp0 = np.concatenate([q0p0, example.multipliers]), np.concatenate([f, np.zeros(m)])
    y0[2 * n + m // 2 :] = consistent_multipliers(example, q0p0, f)
    residual = example.residual
    # The multipliers are left out of the error test, as IDA's manual advises for index 2.
    atol = np.concatenate([np.full(2 * n, tolerance), np.full(m, 1e6)])
    solver = IDA(
        lambda t, y, yp, r: residual(t, y, yp, r),
        jacfn=lambda t, y, yp, r, cj, J: residual_jacobian(residual, t, y, yp, cj, J),
        rtol=tolerance,
        atol=atol,
        algebraic_idx=list(range(2 * n, 2 * n + m)),
        max_num_steps=10_000_000,
    )

    def run() -> Any:
        solution = solver.solve(np.array([0.0, t1]), y0, yp0)
        if not solution.success:
            raise RuntimeError(solution.message)
        return solution

    return Prepared(run, lambda solution: (solution.y[:, :n], solution.y[:, n : 2 * n]))


def consistent_multipliers(example: Example, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """lam from the residual, which is linear in it, with q', p' of the underlying ODE."""
    n, m = len(example.q0), len(example.multipliers)
    yp = np.concatenate([f, np.zeros(m)])

    def reaction(multipliers: np.ndarray) -> np.ndarray:
        r = np.empty(2 * n + m)
        example.residual(0.0, np.concatenate([y, np.zeros(m // 2), multipliers]), yp, r)
        return r[n : 2 * n]

    rest = reaction(np.zeros(m // 2))
    columns = np.column_stack([reaction(unit) - rest for unit in np.eye(m // 2)])
    return np.linalg.lstsq(columns, -rest, rcond=None)[0]


def heyoka_solver(coordinates: str) -> Callable[[Example, float, float], Prepared]:
    def prepare(example: Example, t1: float, tolerance: float) -> Prepared:
        import heyoka as hy

        if coordinates == "angles":
            system, start, convert = example.angles(hy)
        else:
            system, start = example.cartesian(hy), [*example.q0, *example.p0]
            n = len(example.q0)
            convert = lambda y: (y[:, :n], y[:, n:])  # noqa: E731
        solver = hy.taylor_adaptive(system, start, tol=tolerance)
        grid = np.linspace(0.0, t1, 1 + round(t1 / 0.12))

        def run() -> Any:
            solver.time = 0.0
            solver.state[:] = start
            return solver.propagate_grid(grid)[-1]

        return Prepared(run, convert)

    return prepare


PEERS: dict[str, tuple[str, Callable[[Example, float, float], Prepared], tuple[float, ...]]] = {
    "SciPy DOP853, underlying ODE": ("scipy", scipy_solver("DOP853"), tuple(10.0**-k for k in range(3, 14))),
    "SciPy Radau, underlying ODE": ("scipy", scipy_solver("Radau"), tuple(10.0**-k for k in range(3, 11))),
    "SUNDIALS IDA, index-2 GGL form": ("sksundae", ida, tuple(10.0**-k for k in range(3, 13))),
    "heyoka, underlying ODE": ("heyoka", heyoka_solver("cartesian"), tuple(10.0**-k for k in range(3, 17))),
    "heyoka, angles": ("heyoka", heyoka_solver("angles"), tuple(10.0**-k for k in range(3, 17))),
}
"""Each with the module that it needs and its tolerances."""
