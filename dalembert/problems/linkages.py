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


def n_four_bar(loops: int = 2, m: float = 1.0, length: float = 1.0, g: float = 9.81, speed: float = 1.0) -> Problem:
    """N four-bar linkages in a row, upright at the start: 2N + 1 equal uniform bars, by the places of their upper joints.

        q = (x_0, y_0, ..., x_N, y_N),   0 = |q_i - (i l, 0)| - l,   0 = |q_i - q_{i-1}| - l,   l = length
        T = m sum_{cranks} |v_i|^2 / 6 + m sum_{couplers} (|v_{i-1}|^2 + v_{i-1}.v_i + |v_i|^2) / 6

    All move as a parallelogram, so that the angle th from the vertical obeys ((N + 1)/3 + N) l th'' = g ((N + 1)/2 + N) sin th,
    and `exact` is the solution in Jacobi's elliptic functions. Where the bars lie flat the constraints lose rank, and the
    momentum decides how the motion goes on. Upper joints start with `speed`. Problem A02 of the library of computational
    benchmarks of IFToMM has N = `loops` = 40. M. Gonzalez, D. Dopico, U. Lugris, J. Cuadrado, Multibody Syst. Dyn. 16 (2006).

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.n_four_bar(loops=3)
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=4), h=0.01, steps=200)
        >>> bool(np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-9)
        True

    """
    n = loops
    if n < 1:
        raise InputError("there must be at least one four-bar linkage: give loops=2 or the like")

    def L(q: Any, v: Any, m: Any, g: Any) -> Any:
        v, heights = v.reshape(-1, 2), q[1::2]
        a, b = v[:-1], v[1:]
        kinetic = np.sum(v**2) + np.sum(a**2) + np.sum(a * b) + np.sum(b**2)
        return m * kinetic / 6 - m * g * (np.sum(heights) + np.sum(heights[:-1]) + np.sum(heights[1:])) / 2

    def constraints(q: Any, length: Any) -> Any:
        points = q.reshape(-1, 2)
        cranks = [np.hypot(x - i * length, y) for i, (x, y) in enumerate(points)]
        return np.array([*cranks, *(np.hypot(x, y) for x, y in points[1:] - points[:-1])]) - length

    def exact(t: Any) -> dict[str, np.ndarray]:
        from scipy.special import ellipj, ellipk

        # With w^2 = g (...)/(...) and th = pi + 2 chi: chi'^2 = (v/2l)^2 + w^2 cos^2 chi, so that chi = am(W t - K, k).
        w2, least = g / length * ((n + 1) / 2 + n) / ((n + 1) / 3 + n), (speed / (2 * length)) ** 2
        W, k2 = np.sqrt(least + w2), w2 / (least + w2)
        _, _, dn, chi = ellipj(W * np.asarray(t, dtype=float) - ellipk(k2), k2)
        c, s = -np.cos(2 * chi), -np.sin(2 * chi)
        top, rate = length * np.stack([s, c], axis=-1), 2 * W * dn
        v = length * rate[..., None] * np.stack([c, -s], axis=-1)
        feet = length * np.stack([np.arange(n + 1), np.zeros(n + 1)], axis=1)
        return {"q": (top[..., None, :] + feet).reshape(*np.shape(t), -1), "v": np.tile(v, n + 1)}

    def drawing(q: np.ndarray, length: float) -> list[Any]:
        points = q.reshape(-1, 2)
        cranks = [rod([i * length, 0.0], point) for i, point in enumerate(points)]
        return [wall([-0.4 * length, 0.0], [(n + 0.4) * length, 0.0]), *cranks, rod(*points), trace(points[0])]

    return Problem(
        name="n_four_bar",
        title=f"{n} four-bar linkages in a row",
        reference="Gonzalez, Dopico, Lugris, Cuadrado (2006); IFToMM A02",
        system=Lagrangian(
            L, dim=2 * (n + 1), holonomic=constraints, params={"m": m, "length": length, "g": g},
        ),
        q0=length * np.stack([np.arange(n + 1.0), np.ones(n + 1)], axis=1).ravel(),
        v0=np.tile([speed, 0.0], n + 1),
        h=0.01,
        steps=2000,
        exact=exact,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=tuple(f"{axis}{i}" for i in range(n + 1) for axis in "xy"),
    )  # fmt: skip
