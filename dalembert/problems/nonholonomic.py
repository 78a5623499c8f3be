"""Blades and wheels, which restrict velocities: skate, knife edge, machine of Appell and Hamel.

S. Small and L. O. Jay, Discontinuous collocation methods for DAEs in mechanics (2011); A. M. Bloch, Nonholonomic Mechanics
and Control, Springer 2003. Reactions are -k_v^T psi."""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw import Part, line, mass, rod, trace
from dalembert.draw._parts import GREY
from dalembert.errors import InputError
from dalembert.problems._geometry import heading, segment
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory

SMALL_JAY = "Small & Jay (2011), Discontinuous collocation methods for DAEs in mechanics"
BLOCH = "Bloch (2003), Nonholonomic Mechanics and Control"


def skate(m: float = 1.0, l: float = 1.0, g: float = 1.0, omega: float = 1.0, speed: float = 0.0) -> Problem:
    """Skate on an inclined plane, by its two ends: one holonomic and one nonholonomic constraint.

        q = (x1, y1, x2, y2),   L = m v.v / 4 + m g (x1 + x2) / 2
        0 = ((x2 - x1)^2 + (y2 - y1)^2 - l^2) / 2,   0 = -(y2 - y1) (v_x1 + v_x2) + (x2 - x1) (v_y1 + v_y2)

    x points down the slope and g is gravity along it, gamma sin(beta) in Small and Jay. It starts with its centre at the
    origin, along x, turning at `omega` and sliding forward at `speed`. The slides print l = 2, which contradicts their
    initial values; with l = 1 these are the defaults here. `exact`, for omega != 0: the skate turns uniformly, theta = omega
    t, and its centre slides at u = speed + (g / omega) sin(theta) along it, on a cycloid if `speed` is zero, with lam = m
    omega^2 / 4 and psi = -m (g sin(theta) + u omega) / (2 l).

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.skate()
        >>> run = da.simulate(problem, da.GaussLobattoSPARK(stages=3), h=0.1, steps=100)
        >>> bool(abs(run.q[-1] - problem.exact(10.0)["q"]).max() < 1e-8)
        True

    """
    system = Lagrangian(
        lambda q, v, m, g: m * (v @ v) / 4 + m * g * (q[0] + q[2]) / 2,
        dim=4,
        holonomic=lambda q, l: [((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - l**2) / 2],
        nonholonomic=lambda q, v: [-(q[3] - q[1]) * (v[0] + v[2]) + (q[2] - q[0]) * (v[1] + v[3])],
        params={"m": m, "l": l, "g": g},
    )

    def exact(t: Any) -> dict[str, np.ndarray]:
        theta, u, centre = _sliding(t, g, omega, speed)
        along, across = heading(theta)
        velocity = u[..., None] * along
        ends = [(centre + side * along, velocity + side * omega * across) for side in (-l / 2, l / 2)]
        q, v = (np.concatenate(parts, axis=-1) for parts in zip(*ends, strict=True))
        psi = -m * (g * np.sin(theta) + u * omega) / (2 * l)
        return {"q": q, "v": v, "p": m / 2 * v, "lam": np.full((*np.shape(theta), 1), m * omega**2 / 4), "psi": psi[..., None]}

    def drawing(q: np.ndarray) -> list[Part]:
        a, b = _downhill(q[:2]), _downhill(q[2:])
        return [rod(a, b), mass(a), mass(b), trace((a + b) / 2)]

    return Problem(
        name="skate",
        title="skate on an inclined plane",
        reference=f"{SMALL_JAY}, corrected",
        system=system,
        q0=np.array([-l / 2, 0.0, l / 2, 0.0]),
        v0=np.array([speed, -omega * l / 2, speed, omega * l / 2]),
        h=0.1,
        steps=100,
        exact=exact if omega else None,
        conserved={"energy": energy_is_conserved, "spin": _spin_of_points},
        drawing=drawing,
        labels=("x1", "y1", "x2", "y2"),
    )


def _downhill(point: np.ndarray) -> np.ndarray:
    """A point of a slope as it is drawn: x, down the slope, points down in the picture."""
    return np.array([point[1], -point[0]])


def knife_edge(m: float = 1.0, J: float = 0.25, g: float = 1.0, omega: float = 1.0, speed: float = 0.0) -> Problem:
    """Knife edge on an inclined plane: the `skate` in three coordinates, with one nonholonomic constraint.

        q = (x, y, phi),   L = m (v_x^2 + v_y^2) / 2 + J v_phi^2 / 2 + m g x,   0 = sin(phi) v_x - cos(phi) v_y

    x points down the slope and g is gravity along it. It starts at the origin, along x, turning at `omega` and sliding
    forward at `speed`. Although gravity pulls it down, it stays within a strip if `speed` is zero, and drifts across the
    slope at the mean velocity g / (2 omega). `exact`, for omega != 0: phi = omega t, u = speed + (g / omega) sin(phi) along
    the edge, and psi = m (g sin(phi) + u omega).

    Example:
        >>> import numpy as np, dalembert as da
        >>> run = da.simulate(da.problems.knife_edge(), da.GaussLobattoSPARK(stages=3), h=np.pi / 20, steps=20)
        >>> np.allclose(run.q[-1], [0, np.pi / 2, np.pi], atol=1e-6)
        True

    """
    system = Lagrangian(
        lambda q, v, m, J, g: m * (v[0] ** 2 + v[1] ** 2) / 2 + J * v[2] ** 2 / 2 + m * g * q[0],
        dim=3,
        nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]],
        params={"m": m, "J": J, "g": g},
    )

    def exact(t: Any) -> dict[str, np.ndarray]:
        phi, u, centre = _sliding(t, g, omega, speed)
        v = np.concatenate([u[..., None] * heading(phi)[0], np.full((*np.shape(phi), 1), omega)], axis=-1)
        psi = m * (g * np.sin(phi) + u * omega)
        return {
            "q": np.concatenate([centre, phi[..., None]], axis=-1),
            "v": v,
            "p": v * np.array([m, m, J]),
            "psi": psi[..., None],
        }

    return Problem(
        name="knife_edge",
        title="knife edge on an inclined plane",
        reference=f"{BLOCH}, chapter 1",
        system=system,
        q0=np.zeros(3),
        v0=np.array([speed, 0.0, omega]),
        h=0.1,
        steps=1000,
        exact=exact if omega else None,
        conserved={"energy": energy_is_conserved, "spin": lambda run: run.p[:, 2]},
        drawing=lambda q: [rod(*map(_downhill, segment(q[:2], q[2], 0.25))), trace(_downhill(q[:2]))],
        labels=("x", "y", "phi"),
    )


def appell_hamel(m: float = 1.0, g: float = 1.0, a: float = 0.5, speed: float = 1.0, heading: float = 0.4) -> Problem:
    """Appell and Hamel's machine: a weight on a thread that a wheel winds up, with a constraint quadratic in the velocities.

        q = (x, y, z),   L = m v.v / 2 - m g z,   0 = (a^2 (v_x^2 + v_y^2) - v_z^2) / 2

    a is the radius of the drum over that of the wheel, whose mass and frame are neglected. Chetaev's reaction -k_v^T psi does
    no work, because k is homogeneous in v. The weight starts at the origin and falls, v_z = -a u, while the wheel rolls in
    the direction `heading` at u = `speed` > 0; at u = 0 the constraint is singular. `exact`: the direction stays, u' = a g /
    (1 + a^2), and psi = -m u' / (a^2 u), so that the weight falls as if gravity were a^2 g / (1 + a^2). P. Appell, Rend.
    Circ. Mat. Palermo 32 (1911) 48-50; Ju. I. Neimark, N. A. Fufaev, Dynamics of Nonholonomic Systems, AMS 1972.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.appell_hamel()
        >>> run = da.simulate(problem, da.GaussLobattoSPARK(stages=2), h=0.1, steps=20)
        >>> bool(abs(run.q[-1] - problem.exact(2.0)["q"]).max() < 1e-13)
        True

    """
    if not speed > 0:
        raise InputError(f"the constraint of Appell and Hamel is singular at rest: give speed > 0, not {speed:g}")
    system = Lagrangian(
        lambda q, v, m, g: m * (v @ v) / 2 - m * g * q[2],
        dim=3,
        nonholonomic=lambda v, a: [(a**2 * (v[0] ** 2 + v[1] ** 2) - v[2] ** 2) / 2],
        params={"m": m, "g": g, "a": a},
    )
    direction = np.array([np.cos(heading), np.sin(heading), -a])

    def exact(t: Any) -> dict[str, np.ndarray]:
        t = np.asarray(t, dtype=float)[..., None]
        acceleration = a * g / (1 + a**2)
        u = speed + acceleration * t
        q, v = (speed * t + acceleration * t**2 / 2) * direction, u * direction
        return {"q": q, "v": v, "p": m * v, "psi": -m * acceleration / (a**2 * u)}

    return Problem(
        name="appell_hamel",
        title="machine of Appell and Hamel",
        reference="Appell (1911), Rend. Circ. Mat. Palermo 32; Neimark & Fufaev (1972)",
        system=system,
        q0=np.zeros(3),
        v0=speed * direction,
        h=0.05,
        steps=100,
        exact=exact,
        conserved={"energy": energy_is_conserved, "heading": lambda run: np.arctan2(run.v[:, 1], run.v[:, 0])},
        drawing=lambda q: [line([q[0], q[1], 0.0], q), mass(q), trace(q), trace([q[0], q[1], 0.0], color=GREY)],
        labels=("x", "y", "z"),
    )


def _sliding(t: Any, g: float, omega: float, speed: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Direction, speed along it, and centre of a blade that turns uniformly while gravity g pulls along x."""
    theta = omega * np.asarray(t, dtype=float)
    sin, cos = np.sin(theta), np.cos(theta)
    x = speed / omega * sin + g / (2 * omega**2) * sin**2
    y = speed / omega * (1 - cos) + g / omega**2 * (theta / 2 - np.sin(2 * theta) / 4)
    return theta, speed + g / omega * sin, np.stack([x, y], axis=-1)


def _spin_of_points(run: Trajectory) -> np.ndarray:
    """The angular momentum of two equal masses about their centre, (time,)."""
    (x, y), (p_x, p_y) = ((part[:, 2:] - part[:, :2]).T for part in (run.q, run.p))
    return (x * p_y - y * p_x) / 2
