"""Andrews' squeezing mechanism in angles."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import Part, rod, spring, trace
from dalembert.problems._geometry import heading
from dalembert.problems.ivp_test_set import TEST_SET
from dalembert.problems.machines import SQUEEZER, SQUEEZER_ANGLES
from dalembert.runs._problem import Problem
from dalembert.systems import Lagrangian


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
