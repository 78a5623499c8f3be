"""The Whipple bicycle of Meijaard, Papadopoulos, Ruina and Schwab (2007), Proc. R. Soc. A 463, and its linearised equations.

Theirs has z down and y to the right; here z is up and y to the left. M q'' + v C1 q' + (g K0 + v^2 K2) q = 0 for q = (lean,
steer), with the matrices that they print.
"""

from __future__ import annotations

import numpy as np

import dalembert as da

G = 9.81
M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
C1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])


def published(v: float) -> np.ndarray:
    """The eigenvalues of the printed matrices."""
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, G * K0 + v**2 * K2), -np.linalg.solve(M, v * C1)]])
    return np.linalg.eigvals(A)


def bicycle():
    """The nonlinear model from its bodies, axles and wheels."""

    def J(xx, yy, zz, xz=0.0):
        return [[xx, 0.0, -xz], [0.0, yy, 0.0], [-xz, 0.0, zz]]

    m = da.Mechanism(gravity=(0, 0, -G))
    rear = m.body("rear wheel", mass=2.0, inertia=J(0.0603, 0.12, 0.0603), at=(0, 0, 0.3))
    frame = m.body("frame", mass=85.0, inertia=J(9.2, 11.0, 2.8, 2.4), at=(0.3, 0, 0.9))
    fork = m.body("fork", mass=4.0, inertia=J(0.05892, 0.06, 0.00708, -0.00756), at=(0.9, 0, 0.7))
    front = m.body("front wheel", mass=3.0, inertia=J(0.1405, 0.28, 0.1405), at=(1.02, 0, 0.35))
    head = (np.sin(np.pi / 10), 0, -np.cos(np.pi / 10))
    steer = m.revolute(frame, fork, at=(1.02 + 0.08, 0, 0), axis=head, name="steer")
    axle = m.revolute(frame, rear, at=rear.centre, axis=(0, 1, 0), name="rear axle")
    m.revolute(fork, front, at=front.centre, axis=(0, 1, 0), name="front axle")
    m.wheel(rear, radius=0.3, axis=(0, 1, 0))
    m.wheel(front, radius=0.35, axis=(0, 1, 0))
    return m, frame, steer, axle


def slope_of(system, y):
    """(q', p') with the multipliers of the hidden constraints, also beside the constraints."""
    q, p = np.split(y, 2)
    theta = system.parameters.vector()
    multipliers = system.multipliers(0.0, q, p, theta)
    lam, psi = np.split(multipliers, [system.n_holonomic])
    return np.concatenate([system.evaluate("v", 0.0, q, p), system.evaluate("z_dot", 0.0, q, p, lam, psi)])


def eigenvalues(v: float) -> np.ndarray:
    """Those of the nonlinear model around straight upright motion.

    This is y(t) = exp(At) y_0 + bt, where A turns both wheels about their axles: their quaternions and momenta are multiplied
    from the right. In eta = exp(-At) dy the linearised equations have the constant matrix F_y - A, on the constraints.
    """
    m, _, _, axle = bicycle()
    system, state = m.system(), m.start(rates={axle: v / 0.3})
    y, n = state.packed, m.dim
    F_y = np.empty((2 * n, 2 * n))
    for k in range(2 * n):  # central differences of fourth order
        d = 1e-3 * max(1.0, abs(y[k])) * np.eye(2 * n)[k]
        near, far = (slope_of(system, y + s) - slope_of(system, y - s) for s in (d, 2 * d))
        F_y[:, k] = (8 * near - far) / (12 * d[k])
    A = np.zeros((2 * n, 2 * n))
    for body in (m.bodies[0], m.bodies[3]):
        e, rate = (x[body.slice][3:] for x in (state.q, state.v))
        right = quaternion_from_right(np.array([e[0], *-e[1:]]), rate)
        for block in (0, n):
            s = slice(block + body.first + 3, block + body.first + 7)
            A[s, s] = right
    residual = slope_of(system, y) - A @ y
    residual[[body.first for body in m.bodies]] -= v  # x moves on
    assert np.abs(residual).max() < 1e-7
    rows = np.block([
        [system.evaluate("G", 0.0, state.q), np.zeros((system.n_holonomic, n))],
        [system.evaluate("hidden_y", 0.0, *np.split(y, 2)), system.evaluate("hidden_z", 0.0, *np.split(y, 2))],
    ])  # fmt: skip
    basis = np.linalg.svd(rows / np.linalg.norm(rows, axis=1)[:, None])[2][len(rows) :].T
    values = np.linalg.eigvals(basis.T @ (F_y - A) @ basis)
    return values[np.argsort(-np.abs(values))][:4]


def quaternion_from_right(conjugate: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """The matrix X with X e = e', of a multiplication from the right: e' = e (e* e')."""
    (a, b, c, d), (w, x, y, z) = conjugate, rate
    w, x, y, z = (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )
    return np.array([[w, -x, -y, -z], [x, w, z, -y], [y, -z, w, x], [z, y, -x, w]])
