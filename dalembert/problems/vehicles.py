"""A disk that rolls upright, a sleigh on an incline and a skateboard: vehicles whose contact with the ground restricts them.

S. K. Hilden, Numerical methods for nonholonomic mechanics, Master's thesis, NTNU (2009); A. M. Bloch, Nonholonomic Mechanics
and Control, Springer 2003. Reactions are -k_v^T psi: Hilden's lambda is -psi."""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import Part, body, disc, mass, rod, trace
from dalembert.errors import InputError
from dalembert.problems._geometry import heading, segment, spokes, steered_axles
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian

HILDEN = "Hilden (2009), Master's thesis, NTNU"

LIGHT_SLEIGH = {"m": 0.001, "a": 0.04, "I": 0.01, "g": 9.8, "theta": 0.2}
"""The constants of Hilden's section 4.2.3, for `chaplygin_sleigh`; the defaults are those of section 4.5."""


def vertical_disk(
    m: float = 1.0,
    J: float = 1.0,
    I: float = 1.0,
    R: float = 0.25,
    phi: float = 0.0,
    turning: float = 2.0,
    rolling: float = 1.0,
) -> Problem:
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
    m: float = 1.0,
    a: float = 1.0,
    I: float = 1.0,
    g: float = 0.1,
    x: float = 1.0,
    y: float = 0.0,
    theta: float = 0.0,
    speed: float = 0.0,
    turning: float = 0.0,
) -> Problem:
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

    def L(q, v, m, a, I, g):  # type: ignore[no-untyped-def]
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


def skateboard(
    m: float = 1.0,
    l: float = 1.0,
    J: float = 0.1,
    I: float = 0.2,
    a: float = 0.5,
    k: float = 0.4,
    g: float = 1.0,
    pivot: float = 0.7,
    lean: float = 0.2,
    lean_rate: float = 0.0,
    speed: float = 1.5,
) -> Problem:
    """Skateboard with a stiff rider, which steers where it leans: two nonholonomic constraints.

        q = (x, y, theta, gamma),   (x, y) the middle of the board, theta its direction, gamma its lean to the left
        L = m |v_G|^2 / 2 + J v_gamma^2 / 2 + I v_theta^2 / 2 - k gamma^2 / 2 - m g l cos(gamma)
        0 = -sin(theta + d) v_x + cos(theta + d) v_y + a cos(d) v_theta                         (front axle)
        0 = -sin(theta - d) v_x + cos(theta - d) v_y - a cos(d) v_theta                         (back axle)

    with tan(d) = tan(pivot) sin(gamma), because the trucks turn about axes inclined by `pivot`. The rider's mass stands a
    height l above the board, G = (x, y, 0) + l (-sin(gamma) sin(theta), sin(gamma) cos(theta), cos(gamma)); a is half the
    distance of the axles and k the stiffness of the trucks. Riding straight is stable if k + m l u^2 tan(pivot) / a > m g l:
    faster boards need less stiff trucks. M. Hubbard, Lateral dynamics and stability of the skateboard, J. Appl. Mech. 46 (1979)
    931-936; A. V. Kremnev, A. S. Kuleshov, Nonlinear dynamics and stability of the skateboard, Discrete Contin. Dyn. Syst. S 3
    (2010) 85-103.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.skateboard(), da.SRK("gauss", stages=2))
        >>> bool(abs(run.q[:, 3]).max() < 0.25), bool(abs(run.energy - run.energy[0]).max() < 1e-8)
        (True, True)

    """

    def L(q, v, m, l, J, I, k, g):  # type: ignore[no-untyped-def]
        along = np.cos(q[2]) * v[0] + np.sin(q[2]) * v[1] - l * np.sin(q[3]) * v[2]
        across = -np.sin(q[2]) * v[0] + np.cos(q[2]) * v[1] + l * np.cos(q[3]) * v[3]
        kinetic = m * (along**2 + across**2 + (l * np.sin(q[3]) * v[3]) ** 2) + J * v[3] ** 2 + I * v[2] ** 2
        return kinetic / 2 - k * q[3] ** 2 / 2 - m * g * l * np.cos(q[3])

    def axles(q, v, a, pivot):  # type: ignore[no-untyped-def]
        d = np.arctan(np.tan(pivot) * np.sin(q[3]))
        return steered_axles(q[2], d, a, v)

    def drawing(q: np.ndarray, l: float, a: float) -> list[Part]:
        x, y, theta, gamma = q
        along, across = (np.array([*direction, 0.0]) for direction in heading(theta))
        middle, up = np.array([x, y, 0.0]), np.array([0.0, 0.0, 1.0])
        head = middle + l * (np.sin(gamma) * across + np.cos(gamma) * up)
        side = 0.3 * a * (np.cos(gamma) * across - np.sin(gamma) * up)
        ends = [middle - 1.3 * a * along, middle + 1.3 * a * along]
        board = body(ends[0] - side, ends[1] - side, ends[1] + side, ends[0] + side)
        return [board, rod(middle, head), mass(head), trace(middle)]

    if abs(pivot) >= np.pi / 2:
        raise InputError(f"the pivot axes of the trucks must be less inclined than pi/2; got pivot = {pivot:g}")
    return Problem(
        name="skateboard",
        title="skateboard with a stiff rider",
        reference="Hubbard (1979), J. Appl. Mech. 46; Kremnev & Kuleshov (2010), Discrete Contin. Dyn. Syst. S 3",
        system=Lagrangian(
            L, dim=4, nonholonomic=axles, params={"m": m, "l": l, "J": J, "I": I, "a": a, "k": k, "g": g, "pivot": pivot}
        ),
        q0=np.array([0.0, 0.0, 0.0, lean]),
        v0=np.array([speed, 0.0, speed * np.tan(pivot) * np.sin(lean) / a, lean_rate]),
        h=0.05,
        steps=400,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=("x", "y", "theta", "gamma"),
    )
