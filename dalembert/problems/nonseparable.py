"""Systems without constraints whose Hamiltonian is not a sum T(p) + V(q): where versions of a method begin to differ.

A mass matrix that depends on q, or a magnetic field, couples q and p, and the Stormer-Verlet method as a composition (SVA) and
as a variational integrator (SVC) are then two methods. Equation numbers refer to D. Pekarek and T. D. Murphey, Discrete
Lagrangian mechanics for nonseparable nonsmooth systems, Int. J. Numer. Meth. Engng (2014).
"""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import Part, body, line, mass, rod, spring, trace, track
from dalembert.problems._geometry import axial_momentum, hanging, joints
from dalembert.runs._problem import Problem, energy_is_conserved, links_from_origin
from dalembert.systems import Lagrangian


def cart_pendulum(m1: float = 1.0, m2: float = 0.2, l: float = 2.0, g: float = 10.0, beta: float = 3.2) -> Problem:
    """Vertical cart-pendulum (35) of Pekarek & Murphey (2014), without its floor.

        q = (y, theta),   L = v^T M(q) v / 2 - V(q),   V = (m1 + m2) g y - m2 g l cos(theta)                         (35)
        M = [[m1 + m2, m2 l sin(theta)], [m2 l sin(theta), m2 l^2]]

    A cart of mass m1 on a vertical track, with a mass m2 on a rod of length l at the angle theta from the downward vertical. It
    starts from Xi(beta): at y = beta and theta = 0, with y' = 0 and theta' = 3.5 - 0.18 beta (section 5.2). All of it falls
    freely, so that the pendulum turns as if there were no gravity, and `exact` is in closed form: with
    k = m2 / (m1 + m2) and Legendre's elliptic integral E of the second kind,

        E(theta | k) = theta'(0) t,      (m1 + m2) y - m2 l cos(theta) = const - (m1 + m2) g t^2 / 2.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.cart_pendulum()
        >>> run = da.simulate(problem, da.Gauss(stages=4), steps=100)
        >>> bool(np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-10)
        True

    """
    system = Lagrangian(cart_pendulum_lagrangian, dim=2, params={"m1": m1, "m2": m2, "l": l, "g": g})
    rate, total = 3.5 - 0.18 * beta, m1 + m2

    def exact(t: Any) -> dict[str, np.ndarray]:
        from scipy.special import ellipe, ellipeinc

        t, k = np.asarray(t, dtype=float), m2 / total
        arc = rate * t
        theta = np.pi / 2 * arc / ellipe(k)  # right on average over a turn
        for _ in range(50):
            change = (ellipeinc(theta, k) - arc) / np.sqrt(1 - k * np.sin(theta) ** 2)
            theta = theta - change
            if np.max(np.abs(change), initial=0.0) <= 1e-15 * np.max(np.abs(theta), initial=1.0):
                break
        theta_dot = rate / np.sqrt(1 - k * np.sin(theta) ** 2)
        y = beta - g * t**2 / 2 - m2 * l * (1 - np.cos(theta)) / total
        y_dot = -g * t - m2 * l * np.sin(theta) * theta_dot / total
        p_theta = m2 * l * np.sin(theta) * y_dot + m2 * l**2 * theta_dot
        return {"q": np.stack([y, theta], axis=-1), "p": np.stack([-total * g * t, p_theta], axis=-1)}

    def drawing(q: np.ndarray, l: float) -> list[Part]:
        cart = np.array([0.0, q[0]])
        bob = cart + l * hanging(q[1])
        corners = [cart + 0.12 * l * np.array([x, 1.6 * y]) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        guide = track(*(cart + side * np.array([0.0, 2 * l]) for side in (-1, 1)))
        return [guide, body(*corners), rod(cart, bob), mass(bob)]

    return Problem(
        name="cart_pendulum",
        title="vertical cart-pendulum",
        reference="Pekarek & Murphey (2014), (35)",
        system=system,
        q0=np.array([beta, 0.0]),
        v0=np.array([0.0, rate]),
        h=0.01,
        steps=300,
        exact=exact,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=("y", "theta"),
    )


def cart_pendulum_lagrangian(q: Any, v: Any, m1: Any, m2: Any, l: Any, g: Any) -> Any:
    """L of (35)."""
    kinetic = (m1 + m2) * v[0] ** 2 / 2 + m2 * l * np.sin(q[1]) * v[0] * v[1] + m2 * l**2 * v[1] ** 2 / 2
    return kinetic - (m1 + m2) * g * q[0] + m2 * g * l * np.cos(q[1])


def double_pendulum_in_angles(
    m1: float = 1.0, m2: float = 1.0, l1: float = 1.0, l2: float = 1.0, g: float = 1.0,
    angles: tuple[float, float] = (np.pi / 6, -np.pi / 6),
) -> Problem:  # fmt: skip
    """The `double_pendulum` in the angles q = (a, b) of its links from the downward vertical, without constraints.

        L = (m1 + m2) l1^2 a'^2 / 2 + m2 l2^2 b'^2 / 2 + m2 l1 l2 cos(a - b) a' b' + (m1 + m2) g l1 cos(a) + m2 g l2 cos(b)

    released at rest at `angles`; by default these are the start of Jay (1996), Example 2, (5.8).

    Example:
        >>> import numpy as np, dalembert as da
        >>> angles, points = da.problems.double_pendulum_in_angles(), da.problems.double_pendulum()
        >>> runs = [da.simulate(problem, da.LobattoIIIAB(stages=4), h=0.02, steps=100) for problem in (angles, points)]
        >>> bool(np.abs(np.sin(runs[0].q[:, 0]) - runs[1].q[:, 0]).max() < 1e-9)
        True

    """
    constants = {"m1": m1, "m2": m2, "l1": l1, "l2": l2, "g": g}
    system = Lagrangian(double_pendulum_lagrangian, dim=2, params=constants)

    def links(q: np.ndarray, l1: float, l2: float) -> list[Part]:
        return links_from_origin(joints((l1, l2), hanging(q)))

    return Problem(
        name="double_pendulum_in_angles",
        title="planar double pendulum in angles",
        reference="Jay (1996), Example 2, in minimal coordinates",
        system=system,
        q0=np.array(angles, dtype=float),
        v0=np.zeros(2),
        h=0.05,
        steps=5000,
        conserved={"energy": energy_is_conserved},
        drawing=links,
        labels=("a", "b"),
    )


def double_pendulum_lagrangian(q: Any, v: Any, m1: Any, m2: Any, l1: Any, l2: Any, g: Any) -> Any:
    """L of the double pendulum in the angles of its links."""
    kinetic = (m1 + m2) * l1**2 * v[0] ** 2 / 2 + m2 * l2**2 * v[1] ** 2 / 2 + m2 * l1 * l2 * np.cos(q[0] - q[1]) * v[0] * v[1]
    return kinetic + (m1 + m2) * g * l1 * np.cos(q[0]) + m2 * g * l2 * np.cos(q[1])


def particle_in_magnetic_field(m: float = 1.0, e: float = 1.0, b: float = 1.0, c: float = 0.01) -> Problem:
    """Charged particle in space in a magnetic field that grows with the distance from an axis.

        q = (x, y, z),   L = m v.v / 2 + e A(q).v - e U(q),   A = b r (-y, x, 0) / 3,   U = c / r,   r = sqrt(x^2 + y^2)

    so that B = rot A = (0, 0, b r) and m q'' = e (v x B - grad U). Turning about the axis is a symmetry: x p_y - y p_x, which
    is not the mechanical angular momentum, is conserved.
    Y. He, Y. Sun, J. Liu and H. Qin, Volume-preserving algorithms for charged particle dynamics, J. Comput. Phys. 281 (2015).

    Example:
        >>> import numpy as np, dalembert as da
        >>> run = da.simulate(da.problems.particle_in_magnetic_field(), da.Variational("midpoint"), h=0.1, steps=1000)
        >>> bool(np.ptp(run.q[:, 0] * run.p[:, 1] - run.q[:, 1] * run.p[:, 0]) < 1e-13)
        True

    """
    system = Lagrangian(
        lambda q, v, m, e, b, c: (
            m * (v @ v) / 2 + e * b * np.hypot(q[0], q[1]) * (q[0] * v[1] - q[1] * v[0]) / 3 - e * c / np.hypot(q[0], q[1])
        ),
        dim=3,
        params={"m": m, "e": e, "b": b, "c": c},
    )
    return Problem(
        name="particle_in_magnetic_field",
        title="charged particle in a magnetic field",
        reference="He, Sun, Liu & Qin (2015), J. Comput. Phys. 281",
        system=system,
        q0=np.array([0.0, 1.0, 0.1]),
        v0=np.array([0.09, 0.05, 0.2]),
        h=0.1,
        steps=5000,
        conserved={"energy": energy_is_conserved, "axial_momentum": axial_momentum},
        drawing=lambda q: [track([0.0, 0.0, q[2] - 1], [0.0, 0.0, q[2] + 1]), line([0.0, 0.0, q[2]], q), mass(q)],
        labels=("x", "y", "z"),
    )


def rod_on_spring(
    m: float = 1.0, l: float = 1.0, g: float = 1.0, k: float = 20.0, r: float = 1.0, angles: tuple[float, float] = (0.5, -0.3)
) -> Problem:
    """Rigid pendulum on a spring: a uniform rod hangs by one end on a massless spring, in a vertical plane.

        q = (rho, a, b),   L = m |C'|^2 / 2 + m l^2 b'^2 / 24 - m g C_z - k (rho - r)^2 / 2
        C = rho (sin(a), -cos(a)) + l/2 (sin(b), -cos(b))

    rho and a are the length of the spring and its angle from the downward vertical, b is the angle of the rod, C its centre. It
    is released at rest at `angles` with the spring unstretched.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.rod_on_spring(), da.LobattoIIIAB(stages=3), steps=500)
        >>> bool(abs(run.energy - run.energy[0]).max() < 1e-5)
        True

    """

    def L(q: Any, v: Any, m: Any, l: Any, g: Any, k: Any, r: Any) -> Any:
        (rho, a, b), (rho_dot, a_dot, b_dot) = q, v
        x_dot = rho_dot * np.sin(a) + rho * a_dot * np.cos(a) + l / 2 * b_dot * np.cos(b)
        z_dot = -rho_dot * np.cos(a) + rho * a_dot * np.sin(a) + l / 2 * b_dot * np.sin(b)
        height = -rho * np.cos(a) - l / 2 * np.cos(b)
        return m * (x_dot**2 + z_dot**2) / 2 + m * l**2 * b_dot**2 / 24 - m * g * height - k * (rho - r) ** 2 / 2

    def picture(q: np.ndarray, l: float) -> list[Part]:
        end = q[0] * hanging(q[1])
        return [spring([0.0, 0.0], end), rod(end, end + l * hanging(q[2]))]

    return Problem(
        name="rod_on_spring",
        title="rigid pendulum on a spring",
        reference="a uniform rod on an elastic pendulum, in polar coordinates",
        system=Lagrangian(L, dim=3, params={"m": m, "l": l, "g": g, "k": k, "r": r}),
        q0=np.array([r, *angles]),
        v0=np.zeros(3),
        h=0.05,
        steps=2000,
        conserved={"energy": energy_is_conserved},
        drawing=picture,
        labels=("rho", "a", "b"),
    )


def flyball_governor_in_angles(
    g: float = 9.81, stiffness: float = 8e5, damping: float = 4e4, spin: float = 2 * np.pi
) -> Problem:
    """The stiff flyball governor of `flyball_governor` by its three coordinates: spin theta, tilt alpha of the rods, height s.

    Both rods hang from (+-0.05, 1) at the angle alpha below the horizontal, with points of M = 5 kg at their ends. Their
    middles are tied to the slider by springs and dampers of the length l,

        l^2 = (cos(alpha) / 2)^2 + (1 - sin(alpha) / 2 - s)^2,   U = 2 stiffness (l - 1/2)^2 / 2 + g (...)
        force = -2 damping l' (dl/dq)

    Problem A05 of the library of computational benchmarks of IFToMM, in which the error of s(t) counts, to t = 10.

    Example:
        >>> import dalembert as da
        >>> da.problems.flyball_governor_in_angles().system
        <Lagrangian of 3 coordinates, params g, stiffness, damping>

    """
    rod_mass, slider, ball, width = 0.3, 3.0, 5.0, 0.01
    across, along = rod_mass * (1 + width**2) / 12, rod_mass * width**2 / 6
    J = slider * 0.1**2 / 6 + along  # of slider and shaft

    def length(q: Any) -> tuple[Any, Any, Any]:
        """The length of a spring, and its derivatives by alpha and s."""
        c, s = np.cos(q[1]) / 2, np.sin(q[1]) / 2
        x, y = c, 1 - s - q[2]
        l = np.sqrt(x**2 + y**2)
        return l, (-x * s - y * c) / l, -y / l

    def L(q: Any, v: Any, g: Any, stiffness: Any) -> Any:
        c, s = np.cos(q[1]), np.sin(q[1])
        turning = rod_mass * (0.05 + c / 2) ** 2 + ball * (0.05 + c) ** 2 + along * s**2 + across * c**2
        kinetic = (J / 2 + turning) * v[0] ** 2 + (rod_mass / 4 + ball + across) * v[1] ** 2 + slider * v[2] ** 2 / 2
        height = slider * q[2] + 2 * rod_mass * (1 - s / 2) + 2 * ball * (1 - s)
        return kinetic - g * height - stiffness * (length(q)[0] - 0.5) ** 2

    def force(q: Any, v: Any, damping: Any) -> Any:
        _, by_alpha, by_s = length(q)
        rate = by_alpha * v[1] + by_s * v[2]
        return -2 * damping * rate * np.array([0.0, by_alpha, by_s])

    def drawing(q: np.ndarray) -> list[Part]:
        balls = [np.array([side * (0.05 + np.cos(q[1])), 1 - np.sin(q[1])]) for side in (1, -1)]
        hinges = [np.array([side * 0.05, 1.0]) for side in (1, -1)]
        rods = [rod(hinge, end) for hinge, end in zip(hinges, balls, strict=True)]
        return [rod([0.0, 0.0], [0.0, 1.0]), *rods, *(mass(end) for end in balls), mass([0.0, q[2]]), trace([0.0, q[2]])]

    return Problem(
        name="flyball_governor_in_angles",
        title="stiff flyball governor in angles",
        reference="IFToMM A05",
        system=Lagrangian(L, dim=3, force=force, params={"g": g, "stiffness": stiffness, "damping": damping}),
        q0=np.array([0.0, np.pi / 6, 0.5]),
        v0=np.array([spin, 0.0, 0.0]),
        h=2e-4,
        steps=1000,
        drawing=drawing,
        labels=("theta", "alpha", "s"),
    )
