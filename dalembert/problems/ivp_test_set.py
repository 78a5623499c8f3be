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
from dalembert.problems.machines import SQUEEZER, SQUEEZER_ANGLES
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


def andrews_in_angles(mom: float = 0.033, c0: float = 4530.0, l0: float = 0.07785) -> Problem:
    """Andrews' squeezing mechanism as the test set poses it: seven angles, and six equations that close its loops.

    Absolute or relative angles q = (beta, Theta, gamma, Phi, delta, Omega, epsilon) of the seven bodies; from E, at the
    end of the second body, chains lead to the fixed points B, A and A. `andrews_squeezer` is the same machine by its bodies.
    The end of interest is t = 0.03, or 0.05 in problem A03 of IFToMM's library.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.andrews_in_angles(), da.LobattoIIIAB(stages=5), h=3e-5, t1=0.03)
        >>> bool(abs(run.q[-1, 0] - 15.8107711) < 1e-7)
        True

    """

    def L(q: Any, v: Any, c0: Any, l0: Any) -> Any:
        centres, D, _ = _squeezer(q, v)
        beta, theta, gamma, phi, delta, omega, epsilon = v
        turning = (beta, beta + theta, gamma, phi + delta, delta, omega + epsilon, epsilon)
        parts = zip(SQUEEZER, centres, turning, strict=True)
        kinetic = sum(m * (rate @ rate) / 2 + J * w**2 / 2 for (m, J), (_, rate), w in parts)
        way = D - np.array([0.014, 0.072])
        return kinetic - c0 * (np.hypot(way[0], way[1]) - l0) ** 2 / 2

    def drawing(q: np.ndarray) -> list[Part]:
        D = _squeezer(q, np.zeros(7))[1]
        F = 0.007 * heading(q[0])[0]
        E, (A, B) = F - 0.028 * heading(q[0] + q[1])[0], SQUEEZER_POINTS
        G, H = A + 0.04 * heading(q[4])[0], A - 0.04 * heading(q[6])[1]
        rods = [rod(*chain) for chain in ([np.zeros(2), F, E], [B, E], [A, G, E], [A, H, E])]
        return [spring([0.014, 0.072], D, width=0.002), *rods, trace(E)]

    beta, gamma, phi, delta, epsilon = SQUEEZER_ANGLES
    return Problem(
        name="andrews_in_angles",
        title="Andrews' squeezing mechanism in angles",
        reference=f"Hairer & Wanner II (1996), section VII.7; {TEST_SET}",
        system=Lagrangian(
            L,
            dim=7,
            holonomic=lambda q: _squeezer(q, 0 * q)[2],
            force=lambda mom: [mom, 0, 0, 0, 0, 0, 0],
            params={"mom": mom, "c0": c0, "l0": l0},
        ),
        q0=np.array([beta, 0.0, gamma, phi, delta, -phi, epsilon]),
        v0=np.zeros(7),
        h=3e-5,
        steps=1000,
        drawing=drawing,
        labels=("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon"),
    )


SQUEEZER_POINTS = np.array([-0.06934, -0.00227]), np.array([-0.03635, 0.03273])
"""A and B."""


def _squeezer(q: Any, v: Any) -> tuple[list[tuple[Any, Any]], Any, list[Any]]:
    """Centre and velocity of each body, the end D of the spring, and what closes the three loops."""
    beta, theta, gamma, phi, delta, omega, epsilon = zip(q, v, strict=True)

    def sum_of(*angles: tuple[Any, Any]) -> tuple[Any, Any]:
        return sum(a for a, _ in angles), sum(w for _, w in angles)

    def along(r: float, angle: tuple[Any, Any]) -> np.ndarray:
        """The vector of length r in the direction of an angle, and its rate."""
        c, s, w = np.cos(angle[0]), np.sin(angle[0]), angle[1]
        return r * np.array([[c, s], [-s * w, c * w]])

    def across(r: float, angle: tuple[Any, Any]) -> np.ndarray:
        c, s, w = np.cos(angle[0]), np.sin(angle[0]), angle[1]
        return r * np.array([[s, -c], [c * w, s * w]])

    A, B = (np.array([point, np.zeros(2)]) for point in SQUEEZER_POINTS)
    second, fourth, sixth = sum_of(beta, theta), sum_of(phi, delta), sum_of(omega, epsilon)
    F, G, H = along(0.007, beta), A + along(0.04, delta), A + across(0.04, epsilon)
    E = F - along(0.028, second)
    centres = [
        along(0.00092, beta), F - along(0.0115, second), B + across(0.01874, gamma) + along(0.01043, gamma),
        G + across(0.02 - 0.01421, fourth), A + along(0.02308, delta) - across(0.00916, delta),
        H + along(0.02 - 0.01421, sixth), A + across(0.01228, epsilon) - along(0.00449, epsilon),
    ]  # fmt: skip
    loops = [E - B - across(0.035, gamma), E - G - across(0.02, fourth), E - H - along(0.02, sixth)]
    D = B + across(0.018, gamma) + along(0.02, gamma)
    return [(at, rate) for at, rate in centres], D[0], [x for loop in loops for x in loop[0]]


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
