"""Pendulums in Cartesian coordinates: one link, two links, N links."""

from __future__ import annotations

import numpy as np

from dalembert.problems._problem import Problem, energy_is_conserved
from dalembert.systems import Hamiltonian


def _links(q: np.ndarray) -> list[np.ndarray]:
    """The polyline from the pivot through all masses."""
    return [np.vstack([[0.0, 0.0], np.asarray(q).reshape(-1, 2)])]


def pendulum(m: float = 1.0, l: float = 1.0, g: float = 1.0, angle: float = np.pi / 2) -> Problem:  # noqa: E741
    """Planar pendulum (1.5)-(1.11) of Jay (1996), released at rest at `angle` from the downward vertical.

    q = (x, z), g(q) = sqrt(x^2 + z^2) - l, H = p.p / (2m) + m g z.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.pendulum(m=2.0), da.Rattle(), steps=10)
        >>> run.q.shape
        (11, 2)

    """
    system = Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + m * g * q[1],
        dim=2,
        holonomic=lambda q, l: [np.hypot(q[0], q[1]) - l],  # noqa: E741
        params={"m": m, "l": l, "g": g},
    )
    return Problem(
        name="pendulum",
        title="planar pendulum",
        reference="Jay (1996), (1.5)-(1.11)",
        system=system,
        q0=l * np.array([np.sin(angle), -np.cos(angle)]),
        p0=np.zeros(2),
        h=0.1 * np.sqrt(l / g),
        steps=1000,
        conserved={"energy": energy_is_conserved},
        drawing=_links,
        labels=("x", "z"),
    )


def double_pendulum(m1: float = 1.0, m2: float = 1.0, l1: float = 1.0, l2: float = 1.0, g: float = 1.0) -> Problem:
    """Planar double pendulum, Example 2 of Jay (1996), (5.5)-(5.8).

    q = (x1, z1, x2, z2); released at rest with the first link at 30 degrees to one side and the second to the other.

    Example:
        >>> import dalembert as da
        >>> da.problems.double_pendulum(m2=3.0).system.params["m2"].item()
        3.0

    """
    system = Hamiltonian(
        lambda q, p, m1, m2, g: p[:2] @ p[:2] / (2 * m1) + p[2:] @ p[2:] / (2 * m2) + g * (m1 * q[1] + m2 * q[3]),
        dim=4,
        holonomic=lambda q, l1, l2: [np.hypot(q[0], q[1]) - l1, np.hypot(q[2] - q[0], q[3] - q[1]) - l2],
        params={"m1": m1, "m2": m2, "l1": l1, "l2": l2, "g": g},
    )
    first = l1 * np.array([0.5, -np.sqrt(0.75)])
    return Problem(
        name="double_pendulum",
        title="planar double pendulum",
        reference="Jay (1996), Example 2, (5.5)-(5.8)",
        system=system,
        q0=np.concatenate([first, first + l2 * np.array([-0.5, -np.sqrt(0.75)])]),
        p0=np.zeros(4),
        h=0.12,
        steps=5000,
        conserved={"energy": energy_is_conserved},
        drawing=_links,
        labels=("x1", "z1", "x2", "z2"),
    )


def chain(links: int = 8, g: float = 1.0, m: float = 1.0, length: float = 1.0, sag: float = 0.2) -> Problem:
    """N equal links in a plane, the first end fixed, released at rest from a slight arc.

    q holds the N points (x_i, z_i); g_i = sqrt(|q_i - q_{i-1}|^2) - length. `sag` is the total angle of the arc.

    Example:
        >>> import dalembert as da
        >>> da.problems.chain(links=16).system
        <Hamiltonian of 32 coordinates, 16 holonomic constraints, params m, g, length>

    """

    def constraints(q, length):  # type: ignore[no-untyped-def]
        points = np.concatenate([[0.0, 0.0], q]).reshape(-1, 2)
        d = points[1:] - points[:-1]
        return np.sqrt(d[:, 0] ** 2 + d[:, 1] ** 2) - length

    system = Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + m * g * np.sum(q[1::2]),
        dim=2 * links,
        holonomic=constraints,
        params={"m": m, "g": g, "length": length},
    )
    angles = sag * (np.arange(links) + 0.5) / links
    steps = length * np.column_stack([np.sin(angles), -np.cos(angles)])
    return Problem(
        name="chain",
        title=f"chain of {links} links",
        reference="N-link generalisation of Jay (1996), Example 2",
        system=system,
        q0=np.cumsum(steps, axis=0).ravel(),
        p0=np.zeros(2 * links),
        h=0.01,
        steps=2000,
        conserved={"energy": energy_is_conserved},
        drawing=_links,
        labels=tuple(f"{axis}{i + 1}" for i in range(links) for axis in "xz"),
    )
