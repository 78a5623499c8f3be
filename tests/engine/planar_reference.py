"""Planar mechanisms with one degree of freedom in their minimal coordinate, the angle of the crank, for DOP853.

T = I(phi) phi'^2 / 2 with I = sum m |dx/dphi|^2 + J (dtheta/dphi)^2, so I phi'' = -I' phi'^2 / 2 - V'. Nothing of dalembert is
used here.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp


class OneAngle:
    """Bodies with mass, inertia, and centre (x, y) and angle as expressions of phi."""

    def __init__(self, phi, bodies, gravity: float = 9.81) -> None:
        inertia, potential = 0, 0
        for mass, J, x, y, angle in bodies:
            rates = [ca.jacobian(part, phi) for part in (x, y, angle)]
            inertia += mass * (rates[0] ** 2 + rates[1] ** 2) + J * rates[2] ** 2
            potential += mass * gravity * y
        speed = ca.SX.sym("speed")
        acceleration = -(ca.jacobian(inertia, phi) * speed**2 / 2 + ca.jacobian(potential, phi)) / inertia
        self._rate = ca.Function("rate", [phi, speed], [acceleration])
        self._energy = ca.Function("energy", [phi, speed], [inertia * speed**2 / 2 + potential])
        places = ca.vertcat(*(ca.horzcat(x, y, angle) for _, _, x, y, angle in bodies))
        self._places = ca.Function("places", [phi], [places, ca.reshape(ca.jacobian(ca.vec(places), phi), places.shape)])

    def places(self, phi: float) -> tuple[np.ndarray, np.ndarray]:
        """(x, y, angle) of all bodies, and their rates per angle."""
        places, rates = self._places(phi)
        return np.asarray(places), np.asarray(rates)

    def energy(self, phi: float, speed: float) -> float:
        return float(self._energy(phi, speed))

    def centres(self, phi: float, speed: float, times: np.ndarray) -> np.ndarray:
        """The centres of all bodies along the motion, (time, body, 2)."""

        def rate(_, state):
            return [state[1], float(self._rate(*state))]

        solution = solve_ivp(rate, (0, times[-1]), [phi, speed], method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times)
        assert solution.success
        return np.array([self.places(angle)[0][:, :2] for angle in solution.y[0]])


def _rod(mass, length, width, x, y, angle):
    return mass, mass * (length**2 + width**2) / 12, x, y, angle


def four_bar() -> OneAngle:
    """That of spatial.py."""
    phi = ca.SX.sym("phi")
    bx, by = 0.1 * ca.cos(phi), 0.1 * ca.sin(phi)
    dx, dy = 0.3 - bx, -by
    distance = ca.sqrt(dx**2 + dy**2)
    along = (distance**2 + 0.35**2 - 0.25**2) / (2 * distance)
    across = ca.sqrt(0.35**2 - along**2)
    cx, cy = bx + (along * dx - across * dy) / distance, by + (along * dy + across * dx) / distance
    bodies = [
        _rod(0.2, 0.1, 0.01, bx / 2, by / 2, phi),
        _rod(0.6, 0.35, 0.01, (bx + cx) / 2, (by + cy) / 2, ca.atan2(cy - by, cx - bx)),
        _rod(0.4, 0.25, 0.01, (0.3 + cx) / 2, cy / 2, ca.atan2(cy, cx - 0.3)),
    ]
    return OneAngle(phi, bodies)


def slider_crank() -> OneAngle:
    """That of spatial.py."""
    phi = ca.SX.sym("phi")
    bx, by = 0.1 * ca.cos(phi), 0.1 * ca.sin(phi)
    cx = bx + ca.sqrt(0.35**2 - by**2)
    bodies = [
        _rod(0.2, 0.1, 0.01, bx / 2, by / 2, phi),
        _rod(0.4, 0.35, 0.01, (bx + cx) / 2, by / 2, ca.atan2(-by, cx - bx)),
        (0.5, 3e-4, cx, ca.SX(0), ca.SX(0)),
    ]
    return OneAngle(phi, bodies)
