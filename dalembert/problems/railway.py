"""A railway wheelset of conical wheels on rails, with creepage: the wheelset of the test set for initial value problem solvers.

B. Simeon, C. Fuehrer, P. Rentrop, Introduction to differential-algebraic equations in vehicle system dynamics, Surv. Math. Ind.
1 (1991) 1-37; F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, University of Bari (2008).

Deviations from the print:
    - The four coordinates (psi, xi) of the points of contact are algebraic variables of index 1 there. For cones on circular
      rails the equations 0 = g_2 give them in closed form, and they are eliminated here.
    - Left is the side of positive x, as in the published program, whose constant pi = 3.1415926 is kept, too.
    - The track is straight, there is no propulsion and no mass of a wagon, as published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.runs._problem import Problem
from dalembert.systems import IndexTwoDAE

MASS, I1, I2, RADIUS, CONE, GAUGE, RAIL = 16.08, 0.0605, 0.366, 0.1, 0.0262, 0.1506, 0.06
"""Of the wheelset; the nominal radius of its wheels, the angle of their cones, half the distance of the rails, their radius."""
E, G, SIGMA, GLIDE, C11, C22, C23 = 1.3537956, 0.7115218, 0.28, 7.92e10, 4.72772197, 4.27526987, 1.97203505
"""Of the ellipse of contact and of Kalker's linear theory."""


@dataclass(frozen=True)
class Contact:
    """A point of contact for the positions p = (x, y, z, theta, phi): side 1 is left, at positive x, and -1 right."""

    side: int
    psi: Any
    xi: Any
    radius: Any
    slope: Any
    sin: Any
    cos: Any

    @classmethod
    def at(cls, p: Any, side: int) -> Contact:
        """0 = g_2 for the two unknowns psi and xi; sin and cos are of the angle of the contact plane."""
        x, _, _, theta, phi = p
        (ct, st), (cp, sp), tan = (np.cos(theta), np.sin(theta)), (np.cos(phi), np.sin(phi)), np.tan(CONE)
        slope = -side * tan  # of the wheel's profile R(xi)
        psi = np.arcsin(slope * st * cp / np.sqrt(ct**2 + (st * sp) ** 2)) - np.arctan2(st * sp, ct)
        c, s = np.cos(psi), np.sin(psi)
        rail = -((slope * cp - sp * c) * ct + s * st) / (slope * sp + c * cp)  # slope of the rail where the normals agree
        cos = 1 / np.sqrt(1 + rail**2)
        sin = side * rail * cos
        place = side * (GAUGE + RAIL * (np.sin(CONE) - sin))  # where the rail has this slope
        b = ct * sp * c - st * s
        xi = (place - x - (RADIUS + tan * GAUGE) * b) / (ct * cp + slope * b)
        return cls(side, psi, xi, RADIUS + tan * GAUGE + slope * xi, rail, sin, cos)

    def gap(self, p: Any) -> Any:
        """g_1 of this side, the distance of wheel and rail."""
        height = RAIL * (self.cos - np.cos(CONE)) - RADIUS
        return height - p[1] - self.xi * np.sin(p[4]) + self.radius * np.cos(p[4]) * np.cos(self.psi)

    def gradient(self, p: Any) -> np.ndarray:
        """The derivative of g_1 by p; psi and xi do not contribute to it, because 0 = g_2."""
        (ct, st), (cp, sp) = ((np.cos(angle), np.sin(angle)) for angle in p[3:])
        c, s, D, R, xi = np.cos(self.psi), np.sin(self.psi), self.slope, self.radius, self.xi
        by_theta = D * (R * (-ct * s - c * sp * st) - cp * st * xi)
        by_phi = -c * R * sp - cp * xi + D * (cp * c * ct * R - ct * sp * xi)
        return np.array([D, -1.0, 0.0, by_theta, by_phi])

    def creepage_force(self, p: Any, v: Any, spin: Any, normal: Any, mu: Any, speed: Any) -> np.ndarray:
        """Of the rail on the wheel, by Kalker's linear theory with the limit mu times the normal force (Jaschinski 1990)."""
        cp, sp, c, s = np.cos(p[4]), np.sin(p[4]), np.cos(self.psi), np.sin(self.psi)
        ct, st, R, xi = np.cos(p[3] / self.cos), np.sin(p[3] / self.cos), self.radius, self.xi
        arm = np.array([R * (ct * sp * c - st * s) + xi * ct * cp, R * (st * sp * c + ct * s) + xi * st * cp])
        down, up = xi * sp - R * cp * c, xi * cp + R * sp * c
        rolling = spin * R * np.array([-st * c - ct * sp * s, cp * s, -ct * c + st * sp * s])
        turning = np.array([-v[3] * arm[1] - v[4] * ct * down, v[4] * up, -v[3] * arm[0] + v[4] * st * down])
        forward = np.array([v[0], v[1], v[2] + speed])
        slip, mean = rolling + turning + forward, (rolling + turning - forward) / 2
        pace = np.sqrt(mean @ mean)
        lateral = np.array([ct * self.cos, self.side * self.sin, -st * self.cos])
        along = np.array([st, 0.0, ct])
        bore = (self.cos * v[3] - self.side * self.sin * spin) / pace
        curvature = 0.5 / (R * np.sqrt(1 + np.tan(CONE) ** 2)) + 0.5 / RAIL
        a = np.cbrt(3 * np.abs(normal) * (1 - SIGMA) * E / (2 * 3.1415926 * curvature * GLIDE * np.sqrt(G)))
        most = mu * normal
        x = -most * np.tanh(GLIDE * a**2 * C11 * (along @ slip) / pace / most)
        y = -most * np.tanh(GLIDE * a**2 * (C22 * (lateral @ slip) / pace + a * C23 * bore) / most)
        share = np.maximum(1.0, np.sqrt(x**2 + y**2) / np.abs(most))
        return (x * along + y * lateral) / share

    def moments(self, p: Any, T: Any) -> np.ndarray:
        """Of a force at the point of contact, for theta, phi and the spin."""
        (ct, st), (cp, sp) = ((np.cos(angle), np.sin(angle)) for angle in p[3:])
        c, s, R, xi = np.cos(self.psi), np.sin(self.psi), self.radius, self.xi
        return np.array([
            [-xi * st - R * s * ct * cp, -R * s * sp, -xi * ct + R * s * st * cp],
            [-xi * ct * sp + R * c * ct * cp, xi * cp + R * c * sp, xi * st * sp - R * c * st * cp],
            [-R * (c * st + s * ct * sp), R * s * cp, -R * (c * ct - s * st * sp)],
        ]) @ T  # fmt: skip


def _rates(y: Any, z: Any, V: Any, g: Any, mu: Any, c: Any) -> np.ndarray:
    """y' for y = (p, p', beta), from Newton's and Euler's laws."""
    p, dp, beta = y[:5], y[5:10], y[10]
    contacts, normal = (Contact.at(p, 1), Contact.at(p, -1)), 1e4 * z
    rows = [contact.gradient(p) for contact in contacts]
    across, upwards = (rows[0][i] * normal[0] + rows[1][i] * normal[1] for i in (0, 1))
    left, right = contacts
    det = -left.sin * right.cos - right.sin * left.cos
    pressing = (right.cos * across - right.sin * upwards) / det, (-left.cos * across - left.sin * upwards) / det
    spin = V / RADIUS + beta
    forces = [k.creepage_force(p, dp, spin, n, mu, V) for k, n in zip(contacts, pressing, strict=True)]
    T, reaction = forces[0] + forces[1], normal[0] * rows[0] + normal[1] * rows[1]
    of_theta, of_phi, of_spin = left.moments(p, forces[0]) + right.moments(p, forces[1])
    sp, cp, turning, rolling = np.sin(p[4]), np.cos(p[4]), dp[3], dp[4]
    suspension = -2 * 0.19**2 * c * p[3]
    newton = (T + reaction[:3] - np.array([2 * c * p[0], MASS * g, 2 * c * p[2]])) / MASS
    gyroscopic = I2 * turning * rolling * sp - I1 * spin * rolling - (I1 - I2) * turning * sp * rolling
    theta = (gyroscopic + of_theta + cp * suspension + reaction[3]) / (I2 * cp)
    phi = (I1 * spin * turning * cp + (I1 - I2) * turning**2 * sp * cp + of_phi + reaction[4]) / I2
    slower = (-I1 * turning * rolling * cp + of_spin + sp * suspension) / I1 - sp * theta
    return np.array([*dp, *newton, theta, phi, slower])


def wheelset(V: float = 30.0, g: float = 9.81, mu: float = 0.12, c: float = 6400.0) -> Problem:
    """Wheelset of a railway vehicle that hunts on straight rails at the speed V: conical wheels, creepage, springs c; stiff.

        y = (x, y, z, theta, phi; their rates; beta),   z = multipliers of the two contacts, in 10^4 N

    x points to the left, y up, z ahead, theta is the yaw, phi the roll, beta the deviation of the spin from V / r. Contact is
    stated by velocities, 0 = G(p) p', as published (index 2), and mu limits the forces of creepage. The end of interest is t =
    10; the published reference was computed with a tolerance of 1e-9. See the head of this file for what is eliminated.

    Example:
        >>> import dalembert as da
        >>> da.problems.wheelset().system
        <IndexTwoDAE of 11 variables and 2 algebraic ones, params V, g, mu, c>

    """
    system = IndexTwoDAE(
        parts=[lambda y: 0 * y, _rates],
        g=lambda y: [Contact.at(y[:5], side).gradient(y[:5]) @ y[5:10] for side in (1, -1)],
        dim_y=11,
        dim_z=2,
        params={"V": V, "g": g, "mu": mu, "c": c},
    )
    return Problem(
        name="wheelset",
        title="wheelset on straight rails",
        reference="Simeon, Fuehrer & Rentrop (1991), Surv. Math. Ind. 1; Mazzia & Magherini (2008), Test Set for IVP Solvers",
        system=system,
        y0=np.array([0.14941e-2, 0.40089e-6, 0.11241e-5, -0.28573e-3, 0.26459e-3, *np.zeros(6)]),
        z0=np.array([-8.3593e-3, -7.4144e-3]),
        h=1e-3,
        steps=1000,
        labels=("x", "y", "z", "theta", "phi", "x'", "y'", "z'", "theta'", "phi'", "beta"),
    )
