"""A disk that rolls upright and a sleigh on an incline: vehicles whose contact with the ground restricts them.

S. K. Hilden, Numerical methods for nonholonomic mechanics, Master's thesis, NTNU (2009); A. M. Bloch, Nonholonomic Mechanics
and Control, Springer 2003. Reactions are -k_v^T psi: Hilden's lambda is -psi."""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import Part, body, disc, mass, rod, trace
from dalembert.problems._geometry import heading, segment, spokes
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian

HILDEN = "Hilden (2009), Master's thesis, NTNU"

LIGHT_SLEIGH = {"m": 0.001, "a": 0.04, "I": 0.01, "g": 9.8, "theta": 0.2}
"""The constants of Hilden's section 4.2.3, for `chaplygin_sleigh`; the defaults are those of section 4.5."""


def vertical_disk(
    m: float = 1.0, J: float = 1.0, I: float = 1.0, R: float = 0.25, phi: float = 0.0, turning: float = 2.0,
    rolling: float = 1.0,
) -> Problem:  # fmt: skip
    """Disk that rolls on a plane and stays upright, with its exact solution: two nonholonomic constraints.

        q = (x, y, phi, theta),   (x, y) the point of contact, phi the heading, theta the angle of rolling
        L = m (v_x^2 + v_y^2) / 2 + J v_phi^2 / 2 + I v_theta^2 / 2
        0 = v_x - R cos(phi) v_theta,   0 = v_y - R sin(phi) v_theta

    It starts at the origin, heading for `phi`, with v_phi = omega = `turning` and v_theta = Omega = `rolling`. `exact`, for
    omega != 0: both rates stay, the contact runs round a circle of radius R Omega / omega, and psi = -m omega (-v_y, v_x).
    Sections 1.3.5, 2.3.1, 3.3.4 and 4.1 of Hilden.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.vertical_disk()
        >>> run = da.simulate(problem, da.SRK("gauss", stages=3))
        >>> bool(abs(run.q - problem.exact(run.t)["q"]).max() < 1e-6)
        True

    """
    system = Lagrangian(
        lambda v, m, J, I: (m * (v[0] ** 2 + v[1] ** 2) + J * v[2] ** 2 + I * v[3] ** 2) / 2,
        dim=4,
        nonholonomic=lambda q, v, R: [v[0] - R * np.cos(q[2]) * v[3], v[1] - R * np.sin(q[2]) * v[3]],
        params={"m": m, "J": J, "I": I, "R": R},
    )

    def exact(t: Any) -> dict[str, np.ndarray]:
        t = np.asarray(t, dtype=float)
        angle, radius = turning * t + phi, rolling * R / turning
        v_x, v_y = R * rolling * np.cos(angle), R * rolling * np.sin(angle)
        x, y = radius * (np.sin(angle) - np.sin(phi)), -radius * (np.cos(angle) - np.cos(phi))
        v = np.stack([v_x, v_y, np.full_like(t, turning), np.full_like(t, rolling)], axis=-1)
        return {
            "q": np.stack([x, y, angle, rolling * t], axis=-1),
            "v": v,
            "p": v * np.array([m, m, J, I]),
            "psi": -m * turning * np.stack([-v_y, v_x], axis=-1),
        }

    def drawing(q: np.ndarray, R: float) -> list[Part]:
        axes = spokes(q[3], np.array([*heading(q[2])[0], 0.0]), np.array([0.0, 0.0, 1.0]))
        return [*disc([q[0], q[1], R], R, *axes), trace([q[0], q[1], 0.0])]

    return Problem(
        name="vertical_disk",
        title="disk that rolls upright",
        reference=f"{HILDEN}, sections 1.3.5 and 4.1; Bloch (2003)",
        system=system,
        q0=np.array([0.0, 0.0, phi, 0.0]),
        v0=np.array([R * rolling * np.cos(phi), R * rolling * np.sin(phi), turning, rolling]),
        h=0.1,
        steps=500,
        exact=exact if turning else None,
        conserved={"energy": energy_is_conserved, "turning": lambda run: run.p[:, 2], "rolling": lambda run: run.v[:, 3]},
        drawing=drawing,
        labels=("x", "y", "phi", "theta"),
    )


def chaplygin_sleigh(
    m: float = 1.0, a: float = 1.0, I: float = 1.0, g: float = 0.1, x: float = 1.0, y: float = 0.0, theta: float = 0.0,
    speed: float = 0.0, turning: float = 0.0,
) -> Problem:  # fmt: skip
    """Chaplygin's sleigh on an inclined plane: a body on a blade, its centre of mass a distance `a` in front of the blade.

        q = (x, y, theta),   (x, y) the blade's point of contact, theta its direction
        L = (m (v_x^2 + v_y^2) + (I + m a^2) v_theta^2) / 2 + m a v_theta (v_y cos(theta) - v_x sin(theta))
            - m g (y + a sin(theta))
        0 = v_y cos(theta) - v_x sin(theta)                                                                      (4.1)

    g is gravity along the slope, which y points up. The mass matrix (4.2) depends on theta. It starts at `speed` along the
    blade, turning at v_theta = `turning`. In the speed u along the blade and w = v_theta,

        u' = a w^2 - g sin(theta),   (I + m a^2) w' = -m a (u w + g cos(theta))

    The defaults are those of Hilden's section 4.5; `da.problems.vehicles.LIGHT_SLEIGH` holds those of section 4.2.3, where h =
    0.1 and t = 30.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.chaplygin_sleigh(), da.LobattoSPARK(stages=4))
        >>> bool(abs(run.energy - run.energy[0]).max() < 1e-6), bool(abs(run.residuals["k"]).max() < 1e-13)
        (True, True)

    """

    def L(q: Any, v: Any, m: Any, a: Any, I: Any, g: Any) -> Any:
        across = v[1] * np.cos(q[2]) - v[0] * np.sin(q[2])
        kinetic = (m * (v[0] ** 2 + v[1] ** 2) + (I + m * a**2) * v[2] ** 2) / 2 + m * a * v[2] * across
        return kinetic - m * g * (q[1] + a * np.sin(q[2]))

    def drawing(q: np.ndarray, a: float) -> list[Part]:
        along, across = heading(q[2])
        corners = [q[:2] + 1.5 * a * along, q[:2] - 0.5 * a * (along + across), q[:2] - 0.5 * a * (along - across)]
        return [body(*corners), rod(*segment(q[:2], q[2], 0.3 * a)), mass(q[:2] + a * along), trace(q[:2])]

    return Problem(
        name="chaplygin_sleigh",
        title="Chaplygin's sleigh on an inclined plane",
        reference=f"{HILDEN}, sections 4.2 and 4.5; Bloch (2003)",
        system=Lagrangian(
            L,
            dim=3,
            nonholonomic=lambda q, v: [v[1] * np.cos(q[2]) - v[0] * np.sin(q[2])],
            params={"m": m, "a": a, "I": I, "g": g},
        ),
        q0=np.array([x, y, theta]),
        v0=np.array([speed * np.cos(theta), speed * np.sin(theta), turning]),
        h=0.12,
        steps=250,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=("x", "y", "theta"),
    )
