"""Solids that roll on curved surfaces or are curved themselves: a ball in a bowl, a rattleback."""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw import Part, ball, body, trace, track
from dalembert.errors import InputError
from dalembert.problems._geometry import angular_velocity, ellipse, in_space, product, rotation
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory


def ball_in_bowl(
    m: float = 1.0, r: float = 0.3, I: float = 0.036, R: float = 1.3, g: float = 1.0, angle: float = 0.8, speed: float = 0.5,
    spin: float = 2.0,
) -> Problem:  # fmt: skip
    """Ball that rolls in a spherical bowl: two holonomic and two nonholonomic constraints, and three first integrals.

        q = (x, y, z, a, b, c, d),   (x, y, z) the centre of the ball, relative to that of the bowl; (a, b, c, d) its quaternion
        L = m (v_x^2 + v_y^2 + v_z^2) / 2 + 2 I (v_a^2 + v_b^2 + v_c^2 + v_d^2) - m g z
        0 = (x^2 + y^2 + z^2 - (R - r)^2) / 2,   0 = (a^2 + b^2 + c^2 + d^2 - 1) / 2
        0 = (v + r w x n)_x,   0 = (v + r w x n)_y

    n = (x, y, z) / (R - r) points to the contact, and w is the angular velocity; the third component of v + r w x n, which is
    zero by the first constraint, serves where the ball is at the height of the centre, n_z = 0, but not these two. It starts
    `angle` away from the lowest point, moving horizontally at `speed`, with w.n = `spin`. Conserved are the energy, w.n, and
    I w_z - m r (n x v)_z. The centre moves like a spherical pendulum in a magnetic field,

        v' = -|v|^2 n / (R - r) - m r^2 g (e_z - n_z n) / (I + m r^2) - I r (w.n) n x v / ((R - r) (I + m r^2))

    so that a spinning ball does not fall to the bottom. E. J. Routh, Advanced Rigid Dynamics, Macmillan 1884; Ju. I. Neimark,
    N. A. Fufaev, Dynamics of Nonholonomic Systems, AMS 1972.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.ball_in_bowl()
        >>> run = da.simulate(problem, da.GaussLobattoSPARK(stages=1))
        >>> bool(np.ptp(problem.conserved["spin"](run)) < 1e-13), bool(np.ptp(run.energy) < 1e-3)
        (True, True)

    """
    if not 0 < r < R:
        raise InputError(f"the ball's radius r must be less than the bowl's, R = {R:g}; got r = {r:g}")
    if not abs(angle) < np.pi / 2:
        raise InputError(f"the ball must start in the lower half of the bowl, |angle| < pi/2; got angle = {angle:g}")

    def contact(q: Any, v: Any, r: Any, R: Any) -> Any:
        w, n = angular_velocity(q[3:], v[3:]), q[:3] / (R - r)
        return [v[0] + r * (w[1] * n[2] - w[2] * n[1]), v[1] + r * (w[2] * n[0] - w[0] * n[2])]

    system = Lagrangian(
        lambda q, v, m, I, g: m * (v[:3] @ v[:3]) / 2 + 2 * I * (v[3:] @ v[3:]) - m * g * q[2],
        dim=7,
        holonomic=lambda q, r, R: [(q[:3] @ q[:3] - (R - r) ** 2) / 2, (q[3:] @ q[3:] - 1) / 2],
        nonholonomic=contact,
        params={"m": m, "r": r, "I": I, "R": R, "g": g},
    )

    def turning(run: Trajectory) -> np.ndarray:
        return np.stack(angular_velocity(run.q[:, 3:].T, run.v[:, 3:].T), axis=1)

    def spin_of(run: Trajectory) -> np.ndarray:
        return np.sum(turning(run) * run.q[:, :3], axis=1) / (R - r)

    def vertical_integral(run: Trajectory) -> np.ndarray:
        moment = run.q[:, 0] * run.v[:, 1] - run.q[:, 1] * run.v[:, 0]
        return I * turning(run)[:, 2] - m * r / (R - r) * moment

    def drawing(q: np.ndarray, r: float, R: float) -> list[Part]:
        rim = in_space(ellipse(R, R, 41))
        half = np.linspace(0.0, np.pi, 31)
        ribs = [R * np.column_stack([c * np.cos(half), s * np.cos(half), -np.sin(half)]) for c, s in ((1, 0), (0, 1))]
        return [*(track(*curve) for curve in (rim, *ribs)), *ball(q[:3], r, rotation(q[3:])), trace(q[:3] * R / (R - r))]

    n, v = np.array([np.sin(angle), 0.0, -np.cos(angle)]), np.array([0.0, speed, 0.0])
    w = spin * n - np.cross(n, v) / r
    return Problem(
        name="ball_in_bowl",
        title="ball that rolls in a bowl",
        reference="Routh (1884), Advanced Rigid Dynamics; Neimark & Fufaev (1972)",
        system=system,
        q0=np.array([*((R - r) * n), 1.0, 0.0, 0.0, 0.0]),
        v0=np.array([*v, 0.0, *(w / 2)]),
        h=0.05,
        steps=400,
        conserved={"energy": energy_is_conserved, "spin": spin_of, "vertical_integral": vertical_integral},
        drawing=drawing,
        labels=("x", "y", "z", "a", "b", "c", "d"),
    )


def rattleback(
    m: float = 1.0, A: float = 2e-4, B: float = 1.6e-3, C: float = 1.7e-3, D: float = -2e-5, a: float = 0.2, b: float = 0.03,
    c: float = 0.02, d: float = 0.01, g: float = 9.81, roll: float = 0.0087, pitch: float = 0.0087, spin: float = -5.0,
) -> Problem:  # fmt: skip
    """Rattleback: a boat-shaped stone that, spun the wrong way, starts to rattle, stops and turns back.

        q = (x, y, z, e0, e1, e2, e3),   (x, y, z) the centre of mass, (e0, ..., e3) the unit quaternion of the orientation
        L = m (v_x^2 + v_y^2 + v_z^2) / 2 + W.(J W) / 2 + (A + B + C) (e.v_e)^2 - m g z
        0 = z - N + d u_3,   N = sqrt(a^2 u_1^2 + b^2 u_2^2 + c^2 u_3^2),   0 = (e.e - 1) / 2
        0 = (v + w x s)_x,   0 = (v + w x s)_y

    The surface is an ellipsoid with half axes a, b, c; the centre of mass lies d below its centre. u is the vertical and W the
    angular velocity in the body's frame, J = [[A, D, 0], [D, B, 0], [0, 0, C]], and s = -(a^2 u_1, b^2 u_2, c^2 u_3) / N + (0,
    0, d), turned into space, points from the centre of mass to the contact. The third term of L vanishes on e.e = 1; it makes
    the mass matrix regular. D, which turns the axes of inertia against those of the ellipsoid, makes the stone prefer one
    direction. Only the energy is conserved. The constants are those of T. R. Kane, D. A. Levinson, Realistic mathematical
    modeling of the rattleback, Int. J. Non-Linear Mech. 17 (1982) 175-186, in SI units. It starts rotated by `roll` and `pitch`
    about its first and second axis, spinning at `spin` about the third.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.rattleback()
        >>> run = da.simulate(problem, da.GaussLobattoSPARK(stages=1))
        >>> bool(np.ptp(run.energy) < 0.01 * run.energy[0]), bool(abs(run.residuals["k"]).max() < 1e-12)
        (True, True)

    """

    def L(q: Any, v: Any, m: Any, A: Any, B: Any, C: Any, D: Any, g: Any) -> Any:
        W = angular_velocity(q[3:], v[3:], sign=-1)
        turning = (A * W[0] ** 2 + B * W[1] ** 2 + C * W[2] ** 2) / 2 + D * W[0] * W[1]
        return m * (v[:3] @ v[:3]) / 2 + turning + (A + B + C) * (q[3:] @ v[3:]) ** 2 - m * g * q[2]

    def standing(q: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        u = rotation(q[3:])[2]
        return [q[2] - np.sqrt(a**2 * u[0] ** 2 + b**2 * u[1] ** 2 + c**2 * u[2] ** 2) + d * u[2], (q[3:] @ q[3:] - 1) / 2]

    def contact(q: Any, v: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        R, w = rotation(q[3:]), angular_velocity(q[3:], v[3:])
        u = R[2]
        N = np.sqrt(a**2 * u[0] ** 2 + b**2 * u[1] ** 2 + c**2 * u[2] ** 2)
        body = [-(a**2) * u[0] / N, -(b**2) * u[1] / N, -(c**2) * u[2] / N + d]
        s = [sum(R[i][j] * body[j] for j in range(3)) for i in range(3)]
        return [v[0] + w[1] * s[2] - w[2] * s[1], v[1] + w[2] * s[0] - w[0] * s[2]]

    def drawing(q: np.ndarray, a: float, b: float, c: float, d: float) -> list[Part]:
        R, axes = np.array(rotation(q[3:])), np.array([a, b, c])
        middle = q[:3] + d * R[:, 2]
        ring, down = in_space(ellipse(1.0, 1.0, 41)), np.linspace(0.0, np.pi, 21)
        keels = [
            np.column_stack([np.cos(down), 0 * down, -np.sin(down)]),
            np.column_stack([0 * down, np.cos(down), -np.sin(down)]),
        ]
        top, *below = (middle + (curve * axes) @ R.T for curve in (ring, *keels))
        return [body(*top[:-1]), *(body(*keel) for keel in below), trace(top[0])]

    Q = product([np.cos(roll / 2), np.sin(roll / 2), 0.0, 0.0], [np.cos(pitch / 2), 0.0, np.sin(pitch / 2), 0.0])
    R = np.array(rotation(Q))
    u = R[2]
    N = np.sqrt(np.sum((np.array([a, b, c]) * u) ** 2))
    s = R @ (-(np.array([a, b, c]) ** 2) * u / N + np.array([0.0, 0.0, d]))
    w = R @ np.array([0.0, 0.0, spin])
    return Problem(
        name="rattleback",
        title="rattleback",
        reference="Kane & Levinson (1982), Int. J. Non-Linear Mech. 17",
        system=Lagrangian(
            L,
            dim=7,
            holonomic=standing,
            nonholonomic=contact,
            params={"m": m, "A": A, "B": B, "C": C, "D": D, "a": a, "b": b, "c": c, "d": d, "g": g},
        ),
        q0=np.array([0.0, 0.0, N - d * u[2], *Q]),
        v0=np.array([*-np.cross(w, s), *(product([0.0, *w], Q) / 2)]),
        h=0.001,
        steps=5000,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=("x", "y", "z", "e0", "e1", "e2", "e3"),
    )
