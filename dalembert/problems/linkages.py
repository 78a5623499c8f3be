"""Planar linkages: an open chain and a closed loop, in the Cartesian coordinates of their joints."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from dalembert.draw import rod, trace, wall
from dalembert.errors import InputError
from dalembert.problems._geometry import hanging, heading, joints
from dalembert.runs._problem import Problem, energy_is_conserved, links_from_origin
from dalembert.systems import Hamiltonian, Lagrangian


def chain(links: int = 8, g: float = 1.0, m: float = 1.0, length: float = 1.0, sag: float = 0.2) -> Problem:
    """N equal links in a plane with masses at their ends, the first end fixed, released at rest from a slight arc.

        q = (x_1, z_1, ..., x_N, z_N),   0 = |q_i - q_{i-1}| - length,   H = p.p / (2m) + m g sum z_i

    The double pendulum (5.5)-(5.8) of Jay (1996) with N links in place of two. `sag` is the total angle of the arc.

    Example:
        >>> import dalembert as da
        >>> da.problems.chain(links=16).system
        <Hamiltonian of 32 coordinates, 16 holonomic constraints, params m, g, length>

    """
    try:
        links = operator.index(links)
    except TypeError:
        links = 0
    if links < 1:
        raise InputError("a chain has a whole number of links, at least one: give links=8 or the like")

    def constraints(q: Any, length: Any) -> Any:
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
    return Problem(
        name="chain",
        title=f"chain of {links} links",
        reference="N-link generalisation of Jay (1996), Example 2",
        system=system,
        q0=joints([length] * links, hanging(angles)),
        p0=np.zeros(2 * links),
        h=0.01,
        steps=2000,
        conserved={"energy": energy_is_conserved},
        drawing=links_from_origin,
        labels=tuple(f"{axis}{i + 1}" for i in range(links) for axis in "xz"),
    )


def four_bar(
    ground: float = 4.0, crank: float = 1.5, coupler: float = 4.5, rocker: float = 3.0, m_crank: float = 1.0,
    m_coupler: float = 3.0, m_rocker: float = 2.0, g: float = 1.0, angle: float = np.pi / 2, rate: float = 2.0,
) -> Problem:  # fmt: skip
    """Four-bar linkage of uniform bars under gravity, in natural coordinates: the two moving joints.

    The crank turns about (0, 0), the rocker about (ground, 0), and the coupler joins their ends q1 and q2:

        q = (x1, z1, x2, z2),   0 = |q1| - crank,   0 = |q2 - q1| - coupler,   0 = |q2 - (ground, 0)| - rocker
        T = (m_crank |v1|^2 + m_coupler (|v1|^2 + v1.v2 + |v2|^2) + m_rocker |v2|^2) / 6
        U = g ((m_crank + m_coupler) z1 + (m_coupler + m_rocker) z2) / 2

    One degree of freedom is left, and the mass matrix is constant but not diagonal. The default lengths are unequal and obey
    Grashof's condition shortest + longest < sum of the others, so that the crank can turn all the way round and the constraints
    never lose rank; with equal opposite sides they would where the bars are in line. Starts with the crank at `angle` from the
    horizontal, turning at `rate`, fast enough to carry the bars over their highest position.
    J. Garcia de Jalon, E. Bayo, Kinematic and Dynamic Simulation of Multibody Systems, Springer 1994.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.four_bar(), da.LobattoIIIAB(stages=3), steps=500)
        >>> bool(run.q[:, 0].min() < -1.4), bool(run.q[:, 2].min() > 1.0)  # the crank turns round, the rocker rocks
        (True, True)

    """

    def L(q: Any, v: Any, m_crank: Any, m_coupler: Any, m_rocker: Any, g: Any) -> Any:
        v1, v2 = v[:2], v[2:]
        T = (m_crank * (v1 @ v1) + m_coupler * (v1 @ v1 + v1 @ v2 + v2 @ v2) + m_rocker * (v2 @ v2)) / 6
        return T - g * ((m_crank + m_coupler) * q[1] + (m_coupler + m_rocker) * q[3]) / 2

    system = Lagrangian(
        L,
        dim=4,
        holonomic=lambda q, ground, crank, coupler, rocker: [
            np.hypot(q[0], q[1]) - crank,
            np.hypot(q[2] - q[0], q[3] - q[1]) - coupler,
            np.hypot(q[2] - ground, q[3]) - rocker,
        ],
        params={
            "ground": ground, "crank": crank, "coupler": coupler, "rocker": rocker,
            "m_crank": m_crank, "m_coupler": m_coupler, "m_rocker": m_rocker, "g": g,
        }
    )  # fmt: skip
    pivot = np.array([ground, 0.0])
    first = crank * heading(angle)[0]
    second = _upper_joint(first, pivot, coupler, rocker)
    v_first = rate * np.array([-first[1], first[0]])
    v_second = np.linalg.solve(np.array([second - first, second - pivot]), np.array([(second - first) @ v_first, 0.0]))
    return Problem(
        name="four_bar",
        title="four-bar linkage",
        reference="Garcia de Jalon & Bayo (1994), natural coordinates",
        system=system,
        q0=np.concatenate([first, second]),
        v0=np.concatenate([v_first, v_second]),
        h=0.02,
        steps=5000,
        conserved={"energy": energy_is_conserved},
        drawing=lambda q, ground: [
            wall([-0.4, 0.0], [ground + 0.4, 0.0]),
            rod([0.0, 0.0], q[:2], q[2:], [ground, 0.0]),
            trace((q[:2] + q[2:]) / 2),
        ],
        labels=("x1", "z1", "x2", "z2"),
    )


def _upper_joint(first: np.ndarray, pivot: np.ndarray, coupler: float, rocker: float) -> np.ndarray:
    """The point at distance `coupler` from `first` and `rocker` from `pivot`, to the left of the way from one to the other."""
    way = pivot - first
    distance = np.linalg.norm(way)
    if not abs(coupler - rocker) < distance < coupler + rocker:
        raise InputError(
            f"the four bars cannot be joined at this angle: coupler and rocker must span {distance:.3g}, and they reach from "
            f"{abs(coupler - rocker):.3g} to {coupler + rocker:.3g}; change angle or the lengths"
        )
    along = (coupler**2 - rocker**2 + distance**2) / (2 * distance)
    across = np.sqrt(coupler**2 - along**2)
    return first + (along * way + across * np.array([-way[1], way[0]])) / distance
