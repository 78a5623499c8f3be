"""Points on a sphere, in Cartesian coordinates of space."""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import Part, mass, rod, trace, track
from dalembert.draw._parts import BLUE, GREY, VERMILION
from dalembert.problems._geometry import axial_momentum, ellipse, in_space
from dalembert.runs._problem import Problem, angular_momentum_of_points, energy_is_conserved
from dalembert.systems import Hamiltonian


def _points_on_sphere(q: np.ndarray, R: float) -> list[Part]:
    """The sphere with its equator and a meridian, and the points with their paths."""
    equator = in_space(ellipse(R, R))
    circles = [track(*equator), track(*equator[:, [0, 2, 1]])]
    points = zip(np.asarray(q).reshape(-1, 3), (BLUE, VERMILION), strict=False)
    moving = [part for point, color in points for part in (mass(point, color=color), trace(point, color=color))]
    return [mass(np.zeros(3), R, color=GREY), *circles, *moving]


def charged_particle_on_sphere(m: float = 1.0, omega: float = 1.0, R: float = 1.0, eE: float = 1.0) -> Problem:
    """Charged particle on a sphere in electric and magnetic fields along z, Example 1 of Jay (1996); H is not separable.

        q = (x, y, z),   0 = sqrt(x^2 + y^2 + z^2) - R                                                         (5.1)
        H = ((p_x + m omega y)^2 + (p_y - m omega x)^2 + p_z^2) / (2m) - eE z,   omega = e B / (2 m c)         (5.2)

    with the constants (5.3); the initial position of (5.4) is scaled to R. The fields are symmetric about the z-axis, so that
    the canonical angular momentum x p_y - y p_x is conserved besides H.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.charged_particle_on_sphere()
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=500)
        >>> bool(abs(problem.conserved["axial_angular_momentum"](run) + 0.4).max() < 1e-12)
        True

    """
    system = Hamiltonian(
        lambda q, p, m, omega, eE: (
            ((p[0] + m * omega * q[1]) ** 2 + (p[1] - m * omega * q[0]) ** 2 + p[2] ** 2) / (2 * m) - eE * q[2]
        ),
        dim=3,
        holonomic=lambda q, R: [np.sqrt(q @ q) - R],
        params={"m": m, "omega": omega, "R": R, "eE": eE},
    )
    return Problem(
        name="charged_particle_on_sphere",
        title="charged particle on a sphere",
        reference="Jay (1996), Example 1, (5.1)-(5.4)",
        system=system,
        q0=R * np.array([0.2, 0.2, np.sqrt(0.92)]),
        p0=np.array([1.0, -1.0, 0.0]),
        h=0.12,
        steps=5000,
        conserved={"energy": energy_is_conserved, "axial_angular_momentum": axial_momentum},
        drawing=_points_on_sphere,
        labels=("x", "y", "z"),
    )


def spherical_pendulum(m: float = 1.0, l: float = 1.0, g: float = 1.0, angle: float = 1.0, rate: float = 0.7) -> Problem:
    """Pendulum in space, started at `angle` from the downward vertical with the horizontal angular velocity `rate`.

        q = (x, y, z),   0 = sqrt(x^2 + y^2 + z^2) - l,   H = p.p / (2m) + m g z

    H and the angular momentum x p_y - y p_x about the vertical are conserved, so the motion is integrable: z is an elliptic
    function of time. L. D. Landau, E. M. Lifshitz, Mechanics, section 14, problem 1.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.spherical_pendulum(rate=0.5)
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=500)
        >>> momentum = problem.conserved["vertical_angular_momentum"](run)
        >>> bool(abs(momentum - momentum[0]).max() < 1e-13)
        True

    """
    system = Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + m * g * q[2],
        dim=3,
        holonomic=lambda q, l: [np.sqrt(q @ q) - l],
        params={"m": m, "l": l, "g": g},
    )
    return Problem(
        name="spherical_pendulum",
        title="spherical pendulum",
        reference="Landau & Lifshitz, Mechanics, section 14",
        system=system,
        q0=l * np.array([np.sin(angle), 0.0, -np.cos(angle)]),
        p0=m * l * np.array([0.0, rate * np.sin(angle), 0.0]),
        h=0.1 * np.sqrt(l / g),
        steps=5000,
        conserved={"energy": energy_is_conserved, "vertical_angular_momentum": axial_momentum},
        drawing=lambda q: [rod(np.zeros(3), q), mass(q)],
        labels=("x", "y", "z"),
    )


def two_bodies_on_sphere(
    m1: float = 1.0, m2: float = 1.0, R: float = 1.0, gamma: float = 1.0, azimuths: tuple[float, float] = (1.3, -2.1),
    polar_angles: tuple[float, float] = (2.1, -1.1), azimuth_rates: tuple[float, float] = (1.2, 0.1),
    polar_rates: tuple[float, float] = (0.1, -0.5),
) -> Problem:  # fmt: skip
    """Two point masses on a sphere that attract each other: the two-body problem in a space of constant curvature.

        q = (q1, q2) in space,   0 = |q1| - R,   0 = |q2| - R,   cot(alpha) = q1.q2 / |q1 x q2|
        H = p1.p1 / (2 m1) + p2.p2 / (2 m2) - gamma m1 m2 cot(alpha) / R

    where alpha is the angle between the bodies: -cot(alpha) takes the place of Kepler's potential. H is invariant under all
    rotations, so the angular momentum q1 x p1 + q2 x p2 is conserved; unlike Kepler's, the problem is not integrable.
    Bodies start at q_i = R (cos phi_i sin theta_i, sin phi_i sin theta_i, cos theta_i), with `azimuths` phi, `polar_angles`
    theta and their rates as in the GniCodes of E. and M. Hairer (2003).
    V. V. Kozlov, A. O. Harin, Celest. Mech. Dyn. Astron. 54 (1992) 393-399.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.two_bodies_on_sphere()
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=500)
        >>> momentum = problem.conserved["angular_momentum"](run)
        >>> momentum.shape, bool(abs(momentum - momentum[0]).max() < 1e-12)
        ((501, 3), True)

    """

    def H(q: Any, p: Any, m1: Any, m2: Any, R: Any, gamma: Any) -> Any:
        q1, q2, p1, p2 = q[:3], q[3:], p[:3], p[3:]
        normal = np.cross(q1, q2)
        return p1 @ p1 / (2 * m1) + p2 @ p2 / (2 * m2) - gamma * m1 * m2 / R * (q1 @ q2) / np.sqrt(normal @ normal)

    system = Hamiltonian(
        H,
        dim=6,
        holonomic=lambda q, R: [np.sqrt(q[:3] @ q[:3]) - R, np.sqrt(q[3:] @ q[3:]) - R],
        params={"m1": m1, "m2": m2, "R": R, "gamma": gamma},
    )
    phi, theta, phi_rate, theta_rate = (np.array(x, dtype=float) for x in (azimuths, polar_angles, azimuth_rates, polar_rates))
    along = np.array([np.cos(phi) * np.sin(theta), np.sin(phi) * np.sin(theta), np.cos(theta)])
    south = np.array([np.cos(phi) * np.cos(theta), np.sin(phi) * np.cos(theta), -np.sin(theta)])
    east = np.array([-np.sin(phi), np.cos(phi), np.zeros(2)])
    velocity = theta_rate * south + phi_rate * np.sin(theta) * east
    return Problem(
        name="two_bodies_on_sphere",
        title="two bodies on a sphere",
        reference="Kozlov & Harin (1992), Celest. Mech. Dyn. Astron. 54; initial values of GniCodes (2003)",
        system=system,
        q0=R * along.T.ravel(),
        p0=R * (np.array([m1, m2]) * velocity).T.ravel(),
        h=0.02,
        steps=5000,
        conserved={"energy": energy_is_conserved, "angular_momentum": angular_momentum_of_points},
        drawing=_points_on_sphere,
        labels=("x1", "y1", "z1", "x2", "y2", "z2"),
    )
