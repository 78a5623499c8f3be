"""The mechanical problems of the test set for initial value problem solvers, as posed there, but for the wheelset.

F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, University of Bari (2008). In its car axis and
Fekete problem multipliers have the other sign: forces are +G^T lam there and -G^T lam here.
"""

# ruff: noqa: E741 (l is a letter of the literature)

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import Part, mass, rod, spring, trace
from dalembert.problems._geometry import heading
from dalembert.runs._problem import Problem
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import Hamiltonian, Lagrangian

TEST_SET = "Mazzia & Magherini (2008), Test Set for IVP Solvers"


def car_axis(
    m: float = 5e-4,
    l: float = 1.0,
    l0: float = 0.5,
    r: float = 0.1,
    omega: float = 10.0,
    g: float = 1.0,
) -> Problem:
    """Car axis on a bumpy road: two light masses on springs of length l0, over wheels of which the right one goes up and down.

        q = (x_l, y_l, x_r, y_r),   b(t) = (sqrt(l^2 - y_b^2), y_b),   y_b = r sin(omega t)
        H = p.p / (2m) + (|l| - l0)^2 / 2 + (|r - b| - l0)^2 / 2 + m g (y_l + y_r)
        0 = l . b,   0 = |l - r|^2 - l^2

    where l = (x_l, y_l) and r = (x_r, y_r): the left spring is perpendicular to the axis of the wheels, and the car has the
    length of it. The end of interest is t = 3. S. Schneider (1995); the masses of the test set are m = M eps^2 / 2.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.car_axis(), da.LobattoIIIAB(stages=5), h=0.01, t1=3.0)
        >>> bool(abs(run.q[-1, 0] - 0.04934557842755629) < 1e-9)
        True

    """

    def base(t: Any, l: Any, r: Any, omega: Any) -> np.ndarray:
        y = r * np.sin(omega * t)
        return np.array([np.sqrt(l**2 - y**2), y])

    def H(t: Any, q: Any, p: Any, m: Any, l: Any, l0: Any, r: Any, omega: Any, g: Any) -> Any:
        way = q[2:] - base(t, l, r, omega)
        springs = (np.hypot(q[0], q[1]) - l0) ** 2 / 2 + (np.hypot(way[0], way[1]) - l0) ** 2 / 2
        return p @ p / (2 * m) + springs + m * g * (q[1] + q[3])

    def constraints(t: Any, q: Any, l: Any, r: Any, omega: Any) -> list[Any]:
        way = q[:2] - q[2:]
        return [q[:2] @ base(t, l, r, omega), way @ way - l**2]

    def drawing(t: float, q: np.ndarray, l: float, r: float, omega: float) -> list[Part]:
        wheel, left, right = base(t, l, r, omega), q[:2], q[2:]
        springs = [spring([0.0, 0.0], left, width=0.03), spring(wheel, right, width=0.03)]
        return [*springs, rod(left, right), mass(left), mass(right), trace(right)]

    return Problem(
        name="car_axis",
        title="car axis on a bumpy road",
        reference=f"Schneider (1995); {TEST_SET}",
        system=Hamiltonian(
            H,
            dim=4,
            holonomic=constraints,
            params={"m": m, "l": l, "l0": l0, "r": r, "omega": omega, "g": g},
        ),
        q0=np.array([0.0, l / 2, l, l / 2]),
        v0=np.array([-r * omega / 2, 0.0, -r * omega / 2, 0.0]),
        h=0.01,
        steps=300,
        drawing=drawing,
        labels=("xl", "yl", "xr", "yr"),
    )


def fekete(alpha: float = 0.5) -> Problem:
    """Twenty points on the unit sphere that repel each other and come to rest, damped, as far apart as they can be.

        H = sum |p_i|^2 / 2 - sum_{i<j} log |q_i - q_j|,   force = -alpha p_i,   0 = |q_i|^2 - 1

    They start at rest on four parallels of latitude. At the end of interest, t = 1000, all multipliers are (20 - 1)/4 = 4.75:
    elliptic Fekete points, which make the product of their distances largest. P. M. Pardalos (1995); C. Bendtsen (1999).

    Example:
        >>> import dalembert as da
        >>> da.problems.fekete().system
        <Hamiltonian of 60 coordinates, 20 holonomic constraints, params alpha>

    """
    n = 20
    first, second = np.triu_indices(n, 1)

    def H(q: Any, p: Any) -> Any:
        points = q.reshape(n, 3)
        way = points[first] - points[second]
        return p @ p / 2 - np.sum(np.log(np.sum(way**2, axis=1))) / 2

    parallels = [(3, np.pi / 13, 3 / 8, 1), (7, np.pi / 29, 1 / 8, 1), (6, np.pi / 7, -2 / 15, 1), (4, np.pi / 17, -3 / 10, 0)]
    alphas = np.concatenate([2 * np.pi * (np.arange(k) + one) / k + shift for k, shift, _, one in parallels])
    betas = np.concatenate([np.full(k, height * np.pi) for k, _, height, _ in parallels])
    start = np.stack([np.cos(alphas) * np.cos(betas), np.sin(alphas) * np.cos(betas), np.sin(betas)], axis=1)
    return Problem(
        name="fekete",
        title="Fekete points on a sphere",
        reference=f"Bendtsen (1999); {TEST_SET}",
        system=Hamiltonian(
            H,
            dim=3 * n,
            holonomic=lambda q: np.sum(q.reshape(n, 3) ** 2, axis=1) - 1,
            force=lambda v, alpha: -alpha * v,
            params={"alpha": alpha},
        ),
        q0=start.ravel(),
        v0=np.zeros(3 * n),
        h=0.05,
        steps=400,
        drawing=lambda q: [part for point in q.reshape(n, 3) for part in (mass(point), trace(point))],
        labels=tuple(f"{axis}{i + 1}" for i in range(n) for axis in "xyz"),
    )


def elastic_slider_crank(E: float = 2e11, omega: float = 150.0) -> Problem:
    """Slider-crank with an elastic rod of Young's modulus E, whose crank turns at omega: stiff, without damping.

    Angles phi_1 and phi_2 of crank and rod, the place x_3 of the slider, and four coordinates u of the rod: two sine modes of
    its bending, and the stretch of its middle and its end in quadratic shape functions.

        0 = l_1 sin phi_1 + (l_2 + u_4) sin phi_2,   0 = x_3 - l_1 cos phi_1 - (l_2 + u_4) cos phi_2,   0 = phi_1 - omega t

    The published values at the start, phi_1 = phi_2 = 0, fulfil these to 2e-10 and their derivatives to 1e-8 only. Here u and
    u' are as published, and the rest follows from the constraints: x_3 = l_1 + l_2 + u_4, x_3' = u_4', phi_2' = -l_1 omega /
    (l_2 + u_4). The matrices are those of the published program, with its pi = 3.1415927. The end of interest is t = 0.1.
    B. Simeon, Math. Modelling of Systems 2 (1996) 1-18.

    Example:
        >>> import dalembert as da
        >>> da.problems.elastic_slider_crank().system
        <Lagrangian of 7 coordinates, 3 holonomic constraints, params E, omega>

    """
    l1, l2, m3, rho, J1, J2 = 0.15, 0.30, 0.075552, 7870.0, 0.002727, 0.0045339259
    volume, section = 0.008**2 * l2, 0.008**2
    m2, pi = rho * volume, 3.1415927
    M = m2 * np.array([[0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 8, 1], [0, 0, 1, 2]])
    bending = pi**4 / 24 * (0.008 / l2) ** 2
    K = section / l2 * np.array([[bending, 0, 0, 0], [0, 16 * bending, 0, 0], [0, 0, 16 / 3, -8 / 3], [0, 0, -8 / 3, 7 / 3]])
    B = np.zeros((4, 4))
    B[0, 2:], B[1, 3] = volume * np.array([-16 / pi**3, 8 / pi**3 - 1 / pi]), volume * 0.5 / pi
    B -= B.T
    c1, c2 = volume * np.array([0, 0, 2 / 3, 1 / 6]), volume * np.array([2 / pi, 0, 0, 0])
    c12, c21 = l2 * volume * np.array([0, 0, 1 / 3, 1 / 6]), l2 * volume * np.array([1 / pi, -0.5 / pi, 0, 0])

    def L(q: Any, v: Any, E: Any) -> Any:
        u, du = q[3:], v[3:]
        c, s = np.cos(q[0] - q[1]), np.sin(q[0] - q[1])
        crank_and_rod = l1 * l2 * m2 * c / 2 + rho * l1 * (s * (c2 @ u) + c * (c1 @ u))
        kinetic = (J1 + m2 * l1**2) * v[0] ** 2 / 2 + (J2 + u @ M @ u + 2 * rho * (c12 @ u)) * v[1] ** 2 / 2
        kinetic += m3 * v[2] ** 2 / 2 + du @ M @ du / 2 + v[0] * v[1] * crank_and_rod
        kinetic += v[0] * rho * l1 * (c * (c2 @ du) - s * (c1 @ du)) + v[1] * rho * (c21 @ du + u @ B @ du)
        return kinetic - E * (u @ K @ u) / 2

    def closed(t: Any, q: Any, omega: Any) -> list[Any]:
        length = l2 + q[6]
        across = l1 * np.sin(q[0]) + length * np.sin(q[1])
        return [across, q[2] - l1 * np.cos(q[0]) - length * np.cos(q[1]), q[0] - omega * t]

    def drawing(q: np.ndarray) -> list[Part]:
        joint, slider = l1 * heading(q[0])[0], np.array([q[2], 0.0])
        return [rod([0.0, 0.0], joint, slider), mass(slider), trace(joint)]

    u, du = np.array([0, 0, 0.103339863e-4, 0.169327969e-4]), (0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5)
    return Problem(
        name="elastic_slider_crank",
        title="slider-crank with an elastic rod",
        reference=f"Simeon (1996), Math. Modelling of Systems 2; {TEST_SET}",
        system=Lagrangian(L, dim=7, holonomic=closed, params={"E": E, "omega": omega}),
        q0=np.array([0.0, 0.0, l1 + l2 + u[3], *u]),
        v0=np.array([omega, -l1 * omega / (l2 + u[3]), du[3], *du]),
        h=2e-5,
        steps=1000,
        drawing=drawing,
        labels=("phi1", "phi2", "x3", "u1", "u2", "u3", "u4"),
    )


def pleiades(G: float = 1.0) -> Problem:
    """Seven stars in a plane, of masses 1 to 7, with close encounters.

        H = sum |p_i|^2 / (2 m_i) - G sum_{i<j} m_i m_j / |q_i - q_j|,   m_i = i

    The end of interest is t = 3. E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, section II.10.

    Example:
        >>> import dalembert as da
        >>> da.problems.pleiades().system
        <Hamiltonian of 14 coordinates, params G>

    """
    masses = np.arange(1.0, 8.0)
    first, second = np.triu_indices(7, 1)

    def H(q: Any, p: Any, G: Any) -> Any:
        points, kinetic = q.reshape(7, 2), np.sum(p.reshape(7, 2) ** 2, axis=1) / (2 * masses)
        way = points[first] - points[second]
        return np.sum(kinetic) - G * np.sum(masses[first] * masses[second] / np.sqrt(np.sum(way**2, axis=1)))

    x, y = [3.0, 3, -1, -3, 2, -2, 2], [3.0, -3, 2, 0, 0, -4, 4]
    u, v = [0.0, 0, 0, 0, 0, 1.75, -1.5], [0.0, 0, 0, -1.25, 1, 0, 0]
    return Problem(
        name="pleiades",
        title="Pleiades: seven stars in a plane",
        reference=f"Hairer, Norsett & Wanner I (1993), section II.10; {TEST_SET}",
        system=Hamiltonian(H, dim=14, params={"G": G}),
        q0=np.stack([x, y], axis=1).ravel(),
        v0=np.stack([u, v], axis=1).ravel(),
        h=0.00025,
        steps=12_000,
        conserved={"angular_momentum": _angular_momentum},
        drawing=lambda q: [part for point in q.reshape(7, 2) for part in (mass(point), trace(point))],
        labels=tuple(f"{axis}{i + 1}" for i in range(7) for axis in "xy"),
    )


def _angular_momentum(run: Trajectory) -> np.ndarray:
    x, y, u, v = run.q[:, ::2], run.q[:, 1::2], run.p[:, ::2], run.p[:, 1::2]
    return np.sum(x * v - y * u, axis=1)
