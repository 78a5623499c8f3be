"""Pendulums in a plane, in Cartesian coordinates: rigid, double, of prescribed length, and on a stiff spring.

Equation numbers of Jay (1996) refer to L. Jay, Symplectic partitioned Runge-Kutta methods for constrained Hamiltonian
systems, SIAM J. Numer. Anal. 33 (1996) 368-387.
"""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import mass, spring
from dalembert.problems._geometry import hanging, joints
from dalembert.runs._problem import Problem, energy_is_conserved, links_from_origin
from dalembert.systems import Hamiltonian, Lagrangian


def pendulum(m: float = 1.0, l: float = 1.0, g: float = 1.0, angle: float = np.pi / 2) -> Problem:
    """Planar pendulum (1.5)-(1.11) of Jay (1996), released at rest at `angle` from the downward vertical.

        q = (x, z),   0 = sqrt(x^2 + z^2) - l,   H = p.p / (2m) + m g z                                 (1.5), (1.8)
        lam = (p.p / m - m g z) / l                                                                     (1.11)

    `exact` is the solution in Jacobi's elliptic functions: with k = sin(angle/2) and u = sqrt(g/l) t, the deflection is given
    by sin(theta/2) = k cd(u, k). Rounding k^2 costs accuracy near the upright position, about 1e-16 / (pi - angle)^2.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.pendulum(m=2.0)
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=5), steps=100)
        >>> bool(np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-8)
        True

    """
    system = Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + m * g * q[1],
        dim=2,
        holonomic=lambda q, l: [np.hypot(q[0], q[1]) - l],
        params={"m": m, "l": l, "g": g},
    )

    def exact(t: Any) -> dict[str, np.ndarray]:
        from scipy.special import ellipj

        omega, k, k_prime = np.sqrt(g / l), np.sin(angle / 2), np.cos(angle / 2)
        sn, cn, dn, _ = ellipj(omega * np.asarray(t, dtype=float), k**2)
        sin_half, cos_half = k * cn / dn, k_prime / dn
        sin, cos = 2 * sin_half * cos_half, 1 - 2 * sin_half**2
        rate = -2 * omega * k * k_prime * sn / dn
        return {
            "q": l * np.stack([sin, -cos], axis=-1),
            "p": m * l * np.stack([rate * cos, rate * sin], axis=-1),
            "lam": (m * l * rate**2 + m * g * cos)[..., None],
        }

    return Problem(
        name="pendulum",
        title="planar pendulum",
        reference="Jay (1996), (1.5)-(1.11)",
        system=system,
        q0=l * hanging(angle),
        p0=np.zeros(2),
        h=0.1 * np.sqrt(l / g),
        steps=1000,
        exact=exact,
        conserved={"energy": energy_is_conserved},
        drawing=links_from_origin,
        labels=("x", "z"),
    )


def simple_pendulum(m: float = 1.0, l: float = 1.0, gamma: float = 1.0, angle: float = np.pi / 2) -> Problem:
    """Planar pendulum as Small and Jay (2011) state it, by a Lagrangian and with the second axis pointing down.

        q = (q_1, q_2),   0 = (q_1^2 + q_2^2 - l^2) / 2,   L = m v.v / 2 + m gamma q_2

    Released at rest at `angle` from the downward vertical; lam is the tension over l. Otherwise this is `pendulum`.
    S. Small, L. O. Jay, Discontinuous collocation methods for DAEs in mechanics (2011).

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.simple_pendulum()
        >>> run = da.simulate(problem, da.GaussLobattoSPARK(stages=3), steps=100)
        >>> bool(np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-9)
        True

    """
    system = Lagrangian(
        lambda q, v, m, gamma: m * (v @ v) / 2 + m * gamma * q[1],
        dim=2,
        holonomic=lambda q, l: [(q @ q - l**2) / 2],
        params={"m": m, "l": l, "gamma": gamma},
    )
    upwards = pendulum(m=m, l=l, g=gamma, angle=angle).exact

    def exact(t: Any) -> dict[str, np.ndarray]:
        assert upwards is not None
        known, downwards = upwards(t), np.array([1.0, -1.0])
        return {"q": downwards * known["q"], "p": downwards * known["p"], "lam": known["lam"] / l}

    return Problem(
        name="simple_pendulum",
        title="planar pendulum, second axis down",
        reference="Small & Jay (2011), Discontinuous collocation methods for DAEs in mechanics",
        system=system,
        q0=l * np.array([np.sin(angle), np.cos(angle)]),
        p0=np.zeros(2),
        h=0.05 * np.sqrt(l / gamma),
        steps=2000,
        exact=exact,
        conserved={"energy": energy_is_conserved},
        drawing=lambda q: links_from_origin(np.array([q[0], -q[1]])),
        labels=("q1", "q2"),
    )


def double_pendulum(m1: float = 1.0, m2: float = 1.0, l1: float = 1.0, l2: float = 1.0, g: float = 1.0) -> Problem:
    """Planar double pendulum, Example 2 of Jay (1996).

        q = (x1, z1, x2, z2),   0 = sqrt(x1^2 + z1^2) - l1,   0 = sqrt((x2 - x1)^2 + (z2 - z1)^2) - l2           (5.5)
        H = (p_x1^2 + p_z1^2) / (2 m1) + (p_x2^2 + p_z2^2) / (2 m2) + m1 g z1 + m2 g z2                          (5.6)

    with the constants (5.7) and the initial values (5.8) scaled to l1 and l2: released at rest with the first link at 30
    degrees from the downward vertical to one side, and the second to the other.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=500)
        >>> bool(abs(run.energy + 3 * 0.75**0.5).max() < 1e-4)
        True

    """
    constants = {"m1": m1, "m2": m2, "l1": l1, "l2": l2, "g": g}
    system = Hamiltonian(double_pendulum_hamiltonian, dim=4, holonomic=double_pendulum_lengths, params=constants)
    return Problem(
        name="double_pendulum",
        title="planar double pendulum",
        reference="Jay (1996), Example 2, (5.5)-(5.8)",
        system=system,
        q0=joints((l1, l2), np.array([[0.5, -np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])),
        p0=np.zeros(4),
        h=0.12,
        steps=5000,
        conserved={"energy": energy_is_conserved},
        drawing=links_from_origin,
        labels=("x1", "z1", "x2", "z2"),
    )


def double_pendulum_hamiltonian(q: Any, p: Any, m1: Any, m2: Any, g: Any) -> Any:
    """H of (5.6)."""
    return p[:2] @ p[:2] / (2 * m1) + p[2:] @ p[2:] / (2 * m2) + g * (m1 * q[1] + m2 * q[3])


def double_pendulum_lengths(q: Any, l1: Any, l2: Any) -> list[Any]:
    """The constraints (5.5)."""
    return [np.hypot(q[0], q[1]) - l1, np.hypot(q[2] - q[0], q[3] - q[1]) - l2]


def pendulum_of_varying_length(
    m: float = 1.0, l: float = 1.0, g: float = 1.0, c: float = 0.05, amplitude: float = 0.1, frequency: float = 2.0,
    angle: float = 0.5,
) -> Problem:  # fmt: skip
    """Damped pendulum on a string that is hauled in and let out, driven by parametric resonance.

        q = (x, z),   0 = sqrt(x^2 + z^2) - l(t),   l(t) = l (1 + amplitude sin(frequency t))
        H = p.p / (2m) + m g z,   force = -c v

    The constraint depends on time, so that v is not tangent to the circle: 0 = g_t + g_q v. In the deflection theta,

        m l(t) theta'' = -m g sin(theta) - (2 m l'(t) + c l(t)) theta'

    and the tension is lam = m g cos(theta) + m l theta'^2 - m l'' - c l'. It starts at `angle` with theta' = 0. With the
    default frequency, twice that of small oscillations, damping does not stop the motion. Nothing is conserved.
    A. O. Belyakov, A. P. Seyranian, A. Luongo, Physica D 238 (2009) 1589-1597.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.pendulum_of_varying_length(), da.LobattoIIIAB(stages=3), steps=200)
        >>> bool(abs(run.residuals["g_dot"]).max() < 1e-14)
        True

    """
    system = Hamiltonian(
        lambda q, p, m, g: p @ p / (2 * m) + m * g * q[1],
        dim=2,
        holonomic=lambda t, q, l, amplitude, frequency: [np.hypot(q[0], q[1]) - l * (1 + amplitude * np.sin(frequency * t))],
        force=lambda v, c: -c * v,
        params={"m": m, "l": l, "g": g, "c": c, "amplitude": amplitude, "frequency": frequency},
    )
    along = hanging(angle)
    return Problem(
        name="pendulum_of_varying_length",
        title="damped pendulum of varying length",
        reference="Belyakov, Seyranian & Luongo (2009), Physica D 238",
        system=system,
        q0=l * along,
        v0=l * amplitude * frequency * along,
        h=0.1 * np.sqrt(l / g),
        steps=2000,
        drawing=links_from_origin,
        labels=("x", "z"),
    )


def stiff_spring_pendulum(
    m: float = 1.0, l: float = 1.0, g: float = 1.0, epsilon: float = 0.01, angle: float = np.pi / 2, stretch: float = 0.0
) -> Problem:
    """Pendulum on a stiff spring, the strong potential (4.25) of Jay (1996): where a Lobatto method should not be used.

        q = (x, z),   H = p.p / (2m) + m g z + (sqrt(x^2 + z^2) - l)^2 / (2 epsilon^2),   no constraint

    As epsilon -> 0 the motion tends to that of `pendulum`, with oscillations of the length at the frequency
    1 / (epsilon sqrt(m)). The Lobatto IIIA-IIIB methods contain an explicit stage, so their step size is bound to that
    period: RATTLE is unstable for h > 2 epsilon sqrt(m). The default h is a fifth of epsilon sqrt(m). Released at rest at
    `angle` from the downward vertical, with the spring longer than l by `stretch`.
    Ch. Lubich, ZAMP 44 (1993) 1022-1053; E. Hairer, Ch. Lubich, M. Roche, Lecture Notes in Math. 1409 (1989), pp. 10-12.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.stiff_spring_pendulum(epsilon=1e-3)
        >>> [bool(abs(da.simulate(problem, da.Rattle(), h=h, steps=300).energy[-1]) < 1.0) for h in (1.8e-3, 2.2e-3)]
        [True, False]

    """
    system = Hamiltonian(
        lambda q, p, m, l, g, epsilon: p @ p / (2 * m) + m * g * q[1] + (np.hypot(q[0], q[1]) - l) ** 2 / (2 * epsilon**2),
        dim=2,
        params={"m": m, "l": l, "g": g, "epsilon": epsilon},
    )
    return Problem(
        name="stiff_spring_pendulum",
        title="stiff spring pendulum",
        reference="Jay (1996), (4.25); Lubich (1993), ZAMP 44",
        system=system,
        q0=(l + stretch) * hanging(angle),
        p0=np.zeros(2),
        h=0.2 * epsilon * np.sqrt(m),
        steps=5000,
        conserved={"energy": energy_is_conserved},
        drawing=lambda q: [spring([0.0, 0.0], q), mass(q)],
        labels=("x", "z"),
    )
