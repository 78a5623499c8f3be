"""Bodies that roll without slipping: a disk that may fall, and a ball on a turntable."""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw import Part, ball, disc, trace, track
from dalembert.problems._geometry import angular_velocity, ellipse, heading, in_space, rotation, spokes
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory


def rolling_disk(
    m: float = 1.0, R: float = 1.0, A: float = 0.25, C: float = 0.5, g: float = 1.0, lean: float = 0.3,
    lean_rate: float = 0.0, yaw_rate: float = 0.4, roll_rate: float = 2.0,
) -> Problem:  # fmt: skip
    """Disk that rolls on a horizontal plane and may fall: two nonholonomic constraints.

        q = (x, y, theta, phi, psi),   (x, y) the point of contact, theta the lean, phi the yaw, psi the roll
        0 = v_x - R cos(phi) v_psi,   0 = v_y - R sin(phi) v_psi
        L = m |v_c|^2 / 2 + A (v_theta^2 + cos(theta)^2 v_phi^2) / 2 + C (v_psi - sin(theta) v_phi)^2 / 2 - m g R cos(theta)

    With the heading e = (cos phi, sin phi, 0) and n = (-sin phi, cos phi, 0), the disk leans towards n for theta > 0, and its
    centre c = (x, y, 0) + R (sin(theta) n + cos(theta) e_z) has the velocity

        v_c = (v_x, v_y, 0) + R (cos(theta) v_theta n - sin(theta) v_phi e - sin(theta) v_theta e_z)

    A and C are the moments about a diameter and about the axis, for a thin homogeneous disk m R^2 / 4 and m R^2 / 2. It
    starts at the origin, heading along x. Rolling upright is stable if `roll_rate^2 > A m g R / (C (C + m R^2))`. Flat on the
    ground, at theta = 90 degrees, the coordinates are singular. O. M. O'Reilly, The dynamics of rolling disks and sliding
    disks, Nonlinear Dynamics 10 (1996) 287-305.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.rolling_disk(), da.GaussLobattoSPARK(stages=3))
        >>> bool(abs(run.energy - run.energy[0]).max() < 1e-6), bool(abs(run.residuals["k"]).max() < 1e-13)
        (True, True)

    """

    def L(q: Any, v: Any, m: Any, R: Any, A: Any, C: Any, g: Any) -> Any:
        theta, phi, v_theta, v_phi, v_psi = q[2], q[3], v[2], v[3], v[4]
        along = np.cos(phi) * v[0] + np.sin(phi) * v[1] - R * np.sin(theta) * v_phi
        across = -np.sin(phi) * v[0] + np.cos(phi) * v[1] + R * np.cos(theta) * v_theta
        sliding = m * (along**2 + across**2 + (R * np.sin(theta) * v_theta) ** 2)
        turning = A * (v_theta**2 + (np.cos(theta) * v_phi) ** 2) + C * (v_psi - np.sin(theta) * v_phi) ** 2
        return (sliding + turning) / 2 - m * g * R * np.cos(theta)

    def drawing(q: np.ndarray, R: float) -> list[Part]:
        x, y, theta, phi, psi = q
        ahead, aside = heading(phi)
        up, contact = np.array([*(np.sin(theta) * aside), np.cos(theta)]), np.array([x, y, 0.0])
        return [*disc(contact + R * up, R, *spokes(psi, np.array([*ahead, 0.0]), up)), trace(contact)]

    return Problem(
        name="rolling_disk",
        title="rolling disk that may fall",
        reference="O'Reilly (1996), Nonlinear Dynamics 10",
        system=Lagrangian(
            L,
            dim=5,
            nonholonomic=lambda q, v, R: [v[0] - R * np.cos(q[3]) * v[4], v[1] - R * np.sin(q[3]) * v[4]],
            params={"m": m, "R": R, "A": A, "C": C, "g": g},
        ),
        q0=np.array([0.0, 0.0, lean, 0.0, 0.0]),
        v0=np.array([R * roll_rate, 0.0, lean_rate, yaw_rate, roll_rate]),
        h=0.05,
        steps=600,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=("x", "y", "theta", "phi", "psi"),
    )


def ball_on_turntable(
    m: float = 1.0, r: float = 0.5, I: float = 0.1, Omega: float = 2.0, x: float = 1.0, y: float = 0.0, v_x: float = 0.0,
    v_y: float = 1.0, spin: float = 0.5,
) -> Problem:  # fmt: skip
    """Ball that rolls on a table which turns at `Omega`: its centre moves on a circle, two sevenths as fast as the table.

        q = (x, y, a, b, c, d),   0 = (a^2 + b^2 + c^2 + d^2 - 1) / 2   (unit quaternion of the ball's orientation)
        L = m (v_x^2 + v_y^2) / 2 + 2 I (v_a^2 + v_b^2 + v_c^2 + v_d^2)
        0 = v_x - r w_y + Omega y,   0 = v_y + r w_x - Omega x

    with the angular velocity w = 2 Im(v_Q conj(Q)) in space, so that I w.w / 2 is the last term of L. The constraints are
    inhomogeneous, and energy is not conserved. Conserved are the speed, the spin w_z, the centre of the circle and the moving
    energy E - Omega J_z, J_z = m (x v_y - y v_x) + I w_z. The circle is run through at Omega I / (I + m r^2), which is 2
    Omega / 7 for a homogeneous ball, I = 2 m r^2 / 5. It starts at (x, y) with the velocity (v_x, v_y) and w_z = `spin`. J.
    Gersten, H. Soodak, M. S. Tiersten, Ball moving on stationary or rotating horizontal surface, Am. J. Phys. 60 (1992)
    43-47; F. Fasso, N. Sansonetto, Conservation of 'moving' energy in nonholonomic systems with affine constraints, J.
    Nonlinear Sci. 26 (2016) 519-544.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.ball_on_turntable()
        >>> run = da.simulate(problem, da.GaussLobattoSPARK(stages=3), h=np.pi / 40, steps=140)
        >>> np.allclose(run.q[-1, :2], problem.q0[:2], atol=1e-6)                 # back after 7 pi / Omega
        True

    """

    def contact(q: Any, v: Any, r: Any, Omega: Any) -> Any:
        w = angular_velocity(q[2:], v[2:])
        return [v[0] - r * w[1] + Omega * q[1], v[1] + r * w[0] - Omega * q[0]]

    system = Lagrangian(
        lambda v, m, I: m * (v[:2] @ v[:2]) / 2 + 2 * I * (v[2:] @ v[2:]),
        dim=6,
        holonomic=lambda q: [(q[2:] @ q[2:] - 1) / 2],
        nonholonomic=contact,
        params={"m": m, "r": r, "I": I, "Omega": Omega},
    )

    def spin_of(run: Trajectory) -> np.ndarray:
        return np.asarray(angular_velocity(run.q[:, 2:].T, run.v[:, 2:].T)[2])

    def centre_of_circle(run: Trajectory) -> np.ndarray:
        return run.q[:, :2] + np.column_stack([-run.v[:, 1], run.v[:, 0]]) / rate

    def moving_energy(run: Trajectory) -> np.ndarray:
        (x, y), (v_x, v_y) = run.q[:, :2].T, run.v[:, :2].T
        return run.energy - Omega * (m * (x * v_y - y * v_x) + I * spin_of(run))

    rate = Omega * I / (I + m * r**2)
    reach = np.hypot(x - v_y / rate, y + v_x / rate) + np.hypot(v_x, v_y) / rate + 2 * r if rate else np.hypot(x, y) + 4 * r

    def drawing(t: float, q: np.ndarray, r: float, Omega: float) -> list[Part]:
        edge, end = track(*in_space(ellipse(reach, reach))), reach * np.array([*heading(Omega * t)[0], 0.0])
        return [edge, track(-end, end), *ball([q[0], q[1], r], r, rotation(q[2:])), trace([q[0], q[1], 0.0])]

    w = np.array([-(v_y - Omega * x) / r, (v_x + Omega * y) / r, spin])
    return Problem(
        name="ball_on_turntable",
        title="ball on a turntable",
        reference="Gersten, Soodak & Tiersten (1992), Am. J. Phys. 60; Fasso & Sansonetto (2016), J. Nonlinear Sci. 26",
        system=system,
        q0=np.array([x, y, 1.0, 0.0, 0.0, 0.0]),
        v0=np.array([v_x, v_y, 0.0, *(w / 2)]),
        h=0.05,
        steps=400,
        conserved={
            "speed": lambda run: np.hypot(run.v[:, 0], run.v[:, 1]),
            "spin": spin_of,
            "centre_of_circle": centre_of_circle,
            "moving_energy": moving_energy,
        },
        drawing=drawing,
        labels=("x", "y", "a", "b", "c", "d"),
    )
