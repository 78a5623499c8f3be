"""Mechanisms in minimal coordinates for DOP853; nothing of dalembert is used here but CasADi's derivatives.

Each body has the mass, the moments about its own axes, and its centre x and rotation R as expressions of the coordinates:
T = sum m |x'|^2 / 2 + w.J w / 2 with the matrix of w = R^T R', and Lagrange's equations d/dt T_v - T_q + V_q = Q.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp


class Minimal:
    """The motion of coordinates q that describe a mechanism completely."""

    def __init__(self, q: ca.SX, bodies, gravity, potential=0, force=None) -> None:
        n = q.shape[0]
        v = ca.SX.sym("v", n)
        T = 0
        for mass, J, x, R in bodies:
            x_dot = ca.jacobian(x, q) @ v
            R_dot = ca.reshape(ca.jacobian(ca.vec(R), q) @ v, 3, 3)
            W = R.T @ R_dot
            w = ca.vertcat(W[2, 1], W[0, 2], W[1, 0])
            T += mass * ca.dot(x_dot, x_dot) / 2 + ca.dot(w, ca.DM(np.array(J)) @ w) / 2
            potential -= mass * ca.dot(ca.DM(np.array(gravity, dtype=float)), x)
        momentum = ca.gradient(T, v)
        applied = 0 if force is None else force(q, v)
        rhs = ca.gradient(T, q) - ca.gradient(potential, q) + applied - ca.jacobian(momentum, q) @ v
        self._slope = ca.Function("slope", [q, v], [ca.jacobian(momentum, v), rhs])
        self._places = ca.Function("places", [q], [ca.horzcat(*(x for _, _, x, _ in bodies))])

    def slope(self, _, y):
        q, v = np.split(y, 2)
        matrix, rhs = (np.asarray(part) for part in self._slope(q, v))
        return np.concatenate([v, np.linalg.solve(matrix, rhs)[:, 0]])

    def motion(self, q0, v0, t, method="DOP853", tolerance=1e-12) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates at times t, and the centres of all bodies, (time, body, 3)."""
        y0 = np.concatenate([q0, v0])
        solution = solve_ivp(self.slope, (t[0], t[-1]), y0, method, t_eval=t, rtol=tolerance, atol=tolerance)
        assert solution.success
        q = solution.y[: len(q0)].T
        return q, np.array([np.asarray(self._places(row)).T for row in q])


def turned_about(axis, angle: ca.SX) -> ca.SX:
    """Rodrigues' formula."""
    u = np.array(axis, dtype=float) / np.linalg.norm(axis)
    K = ca.DM(np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]]))
    return ca.SX.eye(3) + ca.sin(angle) * K + (1 - ca.cos(angle)) * (K @ K)


def uniform_rod(mass: float, length: float, width: float) -> np.ndarray:
    """Moments of a rod of square section about its own axes, the first along it."""
    across = mass * (length**2 + width**2) / 12
    return np.diag([mass * width**2 / 6, across, across])


def frame_along(P, Q) -> np.ndarray:
    """Any rotation whose first axis leads from P to Q."""
    along = (np.asarray(Q, dtype=float) - P) / np.linalg.norm(np.asarray(Q, dtype=float) - P)
    other = np.cross([0.0, 0.0, 1.0] if abs(along[2]) < 0.9 else [1.0, 0.0, 0.0], along)
    other /= np.linalg.norm(other)
    return np.stack([along, other, np.cross(along, other)], axis=1)


def planar(x, y, angle):
    """Place and rotation in the plane."""
    return ca.vertcat(x, y, 0), turned_about((0, 0, 1), angle)


def circles(P, Q, r, s, side):
    """The point at distance r from P and s from Q, as an expression."""
    way = Q - P
    distance = ca.norm_2(way)
    along = (r**2 - s**2 + distance**2) / (2 * distance)
    return P + (along * way + side * ca.sqrt(r**2 - along**2) * ca.vertcat(-way[1], way[0])) / distance


def bar(mass, P, Q, length, width):
    """A uniform bar in the plane between two expressions."""
    x, y = ca.vertsplit((P + Q) / 2)
    way = Q - P
    return mass, uniform_rod(mass, length, width), *planar(x, y, ca.atan2(way[1], way[0]))
