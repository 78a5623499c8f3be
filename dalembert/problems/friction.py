"""Constraint forces that are nonlinear in their multipliers: dry friction, and an artificial problem with a known solution.

Equation numbers refer to L. O. Jay and B. Simeon, Consistent extensions of the symplectic Euler method for a class of
overdetermined DAEs, whose multiplier psi is `lam` here. Friction is not defined at rest, so that these models end where a
motion would turn round (`domain`).
"""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import Part, line, mass, track
from dalembert.problems._geometry import hanging, heading
from dalembert.runs._problem import Problem, links_from_origin
from dalembert.systems import ODAE
from dalembert.systems.forces import friction, no_reversal

JAY_SIMEON = "Jay & Simeon, Consistent extensions of the symplectic Euler method"


def nonlinear_multiplier() -> Problem:
    """Artificial problem (4.1) of Jay and Simeon: growth and decay, with a multiplier that enters squared.

        y' = (2 z_1, -z_2),   0 = y_1 y_2^2 - 1,   0 = 2 y_2 (z_1 y_2 - y_1 z_2)                                (4.1a,c,d)
        z' = (2 y_1 y_2 z_1 z_2 - y_1 z_1 z_2, z_1 - y_1 z_2^3) + (y_2 z_1 lam^2, -sqrt(y_1) z_1 z_2^2 lam)         (4.1b)

    with y = z = (e^2t, e^-t), and lam = e^t: `exact`. The multiplier solves a quadratic equation whose other root, -2 at t = 0,
    lies beyond lam = -1/2.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.nonlinear_multiplier()
        >>> run = da.simulate(problem, da.compose(da.SymplecticEuler(), 4))
        >>> bool(abs(run.y[-1] - problem.exact(1.0)["y"]).max() < 1e-6)
        True

    """

    def exact(t: Any) -> dict[str, np.ndarray]:
        t = np.asarray(t, dtype=float)
        y = np.stack([np.exp(2 * t), np.exp(-t)], axis=-1)
        return {"y": y, "z": y.copy(), "lam": np.exp(t)[..., None]}

    return Problem(
        name="nonlinear_multiplier",
        title="problem with a squared multiplier",
        reference=f"{JAY_SIMEON}, (4.1)",
        system=ODAE(
            v=lambda z: [2 * z[0], -z[1]],
            f=lambda y, z: [2 * y[0] * y[1] * z[0] * z[1] - y[0] * z[0] * z[1], z[0] - y[0] * z[1] ** 3],
            r=lambda y, z, lam: [y[1] * z[0] * lam[0] ** 2, -np.sqrt(y[0]) * z[0] * z[1] ** 2 * lam[0]],
            g=lambda y: [y[0] * y[1] ** 2 - 1],
            dim_y=2,
            dim_z=2,
        ),
        y0=np.ones(2),
        z0=np.ones(2),
        lam0=np.ones(1),
        h=0.02,
        steps=50,
        exact=exact,
        labels=("y1", "y2"),
    )


def mass_on_surface(
    m: float = 1.0, b: float = 0.01, g: float = 9.81, c_f: float = 0.1, r_f: float = 0.85, x: float = 10.0, speed: float = 3.6
) -> Problem:
    """Mass that slides down a cubic surface, (4.2) of Jay and Simeon: the friction is a power of the normal force.

        y' = z,   0 = y_2 - b y_1^3,   F_N = (-3 b y_1^2, 1) lam                                                (4.2a,c)
        m z' = (0, -m g) + F_N - c_f |F_N|^r_f z / |z|                                                          (4.2b)
        lam = m (g + 6 b y_1 z_1^2) / (1 + 9 b^2 y_1^4)

    It starts at y_1 = `x` with z_1 = -`speed`. The surface only pushes: the model ends where lam falls to zero, at t = 1.06
    with the defaults of the paper (steel on teflon), beyond the origin, where the mass takes off. It also ends where the mass
    would turn round.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.mass_on_surface(), da.SymplecticEuler(), steps=200, on_failure="return")
        >>> run.status, bool(run.lam.min() > 0), bool(1.05 <= run.t[-1] <= 1.07)
        ('failed', True, True)

    """

    def normal(y: Any, b: Any) -> Any:
        return np.array([-3 * b * y[0] ** 2, 1.0], like=y)

    def r(y: Any, z: Any, lam: Any, m: Any, b: Any, c_f: Any, r_f: Any) -> Any:
        F_N = normal(y, b) * lam[0]
        return (F_N + friction(F_N, z, c_f, r_f)) / m

    slope = 3 * b * x**2
    span = np.linspace(-abs(x), abs(x), 41)
    return Problem(
        name="mass_on_surface",
        title="mass on a surface with friction",
        reference=f"{JAY_SIMEON}, (4.2)",
        system=ODAE(
            v=lambda z: z,
            f=lambda g: [0.0, -g],
            r=r,
            g=lambda y, b: [y[1] - b * y[0] ** 3],
            dim_y=2,
            dim_z=2,
            domain=lambda z, lam, z0: [lam[0], no_reversal(z, z0)],
            energy=lambda y, z, m, g: m * (z @ z) / 2 + m * g * y[1],
            params={"m": m, "b": b, "g": g, "c_f": c_f, "r_f": r_f},
        ),
        y0=np.array([x, b * x**3]),
        z0=np.array([-speed, -slope * speed]),
        lam0=np.array([m * (g + 6 * b * x * speed**2) / (1 + slope**2)]),
        h=0.01,
        steps=100,
        drawing=lambda y, b: [track(*np.column_stack([span, b * span**3])), mass(y)],
        labels=("y1", "y2"),
    )


def pendulum_with_friction(
    m: float = 1.0, l: float = 1.0, g: float = 1.0, mu: float = 0.3, radius: float = 0.1, angle: float = 0.0, rate: float = 4.0
) -> Problem:
    """Planar pendulum that turns over and over on a pin with Coulomb friction, which grows with the force in the rod.

        0 = sqrt(y_1^2 + y_2^2) - l,   m z' = (0, -m g) - y lam / l - (mu radius / l) |lam| z / |z|

    lam is the tension of the rod, hence the load of a pin of that `radius`; its friction torque `mu radius |lam|` acts on the
    mass by the lever l. It starts at `angle` from the downward vertical and turns at `rate`. The model ends where it would
    swing back. With `k = mu radius / l` and omega^2 = g / l, as long as lam > 0 and theta' > 0,

        (theta'^2 - A cos theta - B sin theta) e^(2 k theta),   (A, B) = omega^2 (2 - 4 k^2, -6 k) / (1 + 4 k^2)

    is constant.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.pendulum_with_friction(), da.compose(da.SymplecticEuler(), 2))
        >>> bool(run.lam.min() > 0), bool(run.energy[-1] < run.energy[0] - 1)
        (True, True)

    """

    def r(y: Any, z: Any, lam: Any, m: Any, l: Any, mu: Any, radius: Any) -> Any:
        return (-y / np.sqrt(y @ y) * lam[0] + friction(lam[0], z, mu * radius / l)) / m

    return Problem(
        name="pendulum_with_friction",
        title="turning pendulum with friction in its joint",
        reference="Coulomb friction on a journal; the class of systems (3.1) of Jay & Simeon",
        system=ODAE(
            v=lambda z: z,
            f=lambda g: [0.0, -g],
            r=r,
            g=lambda y, l: [np.hypot(y[0], y[1]) - l],
            dim_y=2,
            dim_z=2,
            domain=lambda z, z0: [no_reversal(z, z0)],
            energy=lambda y, z, m, g: m * (z @ z) / 2 + m * g * y[1],
            params={"m": m, "l": l, "g": g, "mu": mu, "radius": radius},
        ),
        y0=l * hanging(angle),
        z0=l * rate * heading(angle)[0],
        lam0=np.array([m * l * rate**2 + m * g * np.cos(angle)]),
        h=0.01 * np.sqrt(l / g),
        steps=300,
        drawing=links_from_origin,
        labels=("x", "z"),
    )


def bead_on_rotating_wire(
    m: float = 1.0, g: float = 9.81, b: float = 0.5, omega: float = 4.0, mu: float = 0.1, rho: float = 0.5, speed: float = 0.5
) -> Problem:
    """Bead on a parabolic wire that rotates about the vertical at a prescribed rate, with Coulomb friction.

        n(t) = (-sin omega t, cos omega t, 0),   0 = n(t) . y,   0 = y_3 - b (y_1^2 + y_2^2) / 2
        F_N = n(t) lam_1 + (-b y_1, -b y_2, 1) lam_2,   m z' = (0, 0, -m g) + F_N - mu |F_N| w / |w|

    where w = z - omega (-y_2, y_1, 0) is the velocity along the wire. The normal force is the length of a vector of two
    multipliers: the wire drags the bead round by lam_1 and carries it by lam_2. It starts at the distance `rho` from the axis
    and slides outwards at rho' = `speed`. In W^2 = 1 + b^2 rho^2,

        m (W^2 rho'' + b^2 rho rho'^2) = m (omega^2 - g b) rho - mu |F_N| W,
        lam_1 = 2 m omega rho',   lam_2 = m (g + b omega^2 rho^2 + b rho'^2) / W^2,   |F_N|^2 = lam_1^2 + W^2 lam_2^2

    For b = g = 0, a straight wire in a horizontal plane, `exact` gives rho = c_1 e^(s_1 t) + c_2 e^(s_2 t) with
    s = omega (-mu -+ sqrt(1 + mu^2)). The model ends where the bead would slide back.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.bead_on_rotating_wire(b=0, g=0)
        >>> run = da.simulate(problem, da.compose(da.SymplecticEuler(), 4))
        >>> bool(np.abs(run.y - problem.exact(run.t)["y"]).max() < 1e-6)
        True

    """

    def across(t: Any, omega: Any) -> Any:
        return np.array([-np.sin(omega * t), np.cos(omega * t), 0.0], like=t)

    def r(t: Any, y: Any, z: Any, lam: Any, m: Any, b: Any, omega: Any, mu: Any) -> Any:
        F_N = across(t, omega) * lam[0] + np.array([-b * y[0], -b * y[1], 1.0], like=y) * lam[1]
        return (F_N + friction(F_N, along_wire(y, z, omega), mu)) / m

    def along_wire(y: Any, z: Any, omega: Any) -> Any:
        return z - omega * np.array([-y[1], y[0], 0.0], like=y)

    def exact(t: Any) -> dict[str, np.ndarray]:
        t = np.asarray(t, dtype=float)
        s = omega * (-mu + np.sqrt(1 + mu**2) * np.array([-1.0, 1.0]))
        c = np.array([s[1] * rho - speed, speed - s[0] * rho]) / (s[1] - s[0])
        growth = np.exp(t[..., None] * s)
        distance, rate = growth @ c, growth @ (c * s)
        e = np.stack([np.cos(omega * t), np.sin(omega * t), 0 * t], axis=-1)
        n = np.stack([-e[..., 1], e[..., 0], 0 * t], axis=-1)
        y, z = distance[..., None] * e, rate[..., None] * e + omega * distance[..., None] * n
        return {"y": y, "z": z, "lam": np.stack([2 * m * omega * rate, 0 * t], axis=-1)}

    span = np.linspace(-4 * rho, 4 * rho, 41)

    def drawing(t: float, y: np.ndarray, b: float, omega: float) -> list[Part]:
        wire = np.outer(span, [np.cos(omega * t), np.sin(omega * t)])
        height = b * span**2 / 2
        axis = track([0.0, 0.0, 0.0], [0.0, 0.0, max(height[-1], 2 * rho)])
        return [axis, line(*np.column_stack([wire, height])), mass(y)]

    W2 = 1 + b**2 * rho**2
    return Problem(
        name="bead_on_rotating_wire",
        title="bead on a rotating wire with friction",
        reference="Coulomb friction; the class of systems (3.1) of Jay & Simeon",
        system=ODAE(
            v=lambda z: z,
            f=lambda g: [0.0, 0.0, -g],
            r=r,
            g=lambda t, y, b, omega: [across(t, omega) @ y, y[2] - b * (y[0] ** 2 + y[1] ** 2) / 2],
            dim_y=3,
            dim_z=3,
            domain=lambda y, z, y0, z0, omega: [no_reversal(along_wire(y, z, omega), along_wire(y0, z0, omega))],
            energy=lambda y, z, m, g: m * (z @ z) / 2 + m * g * y[2],
            params={"m": m, "g": g, "b": b, "omega": omega, "mu": mu},
        ),
        y0=np.array([rho, 0.0, b * rho**2 / 2]),
        z0=np.array([speed, omega * rho, b * rho * speed]),
        lam0=np.array([2 * m * omega * speed, m * (g + b * omega**2 * rho**2 + b * speed**2) / W2]),
        h=0.005,
        steps=100,
        exact=exact if b == 0 and g == 0 else None,
        drawing=drawing,
        labels=("x", "y", "z"),
    )
