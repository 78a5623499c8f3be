"""The problems (4.1) and (4.2), their solutions, and the inconsistent ODEs of section 3.4, written out by hand for both.

Nothing here uses the library's models or methods: solutions and limits are references for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.experiments._experiment import Document
from dalembert.experiments._measures import simulate
from dalembert.methods import OneStepMethod
from dalembert.problems import Problem, mass_on_surface, nonlinear_multiplier

JAY_SIMEON = Document("jay_simeon", "Jay & Simeon, Consistent extensions of the symplectic Euler method")
T1 = 1.0
COMPONENTS = ("y", "z")


def solve(f: Callable[[float, np.ndarray], Any], start: Any) -> np.ndarray:
    """The solution of an ODE at t = 1, to about twelve digits."""
    from scipy.integrate import solve_ivp

    return solve_ivp(f, (0.0, T1), np.asarray(start, dtype=float), "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]


@dataclass(frozen=True)
class Inconsistent:
    """The ODE of section 3.4: y' = v, z' = f + alpha r(Psi_0) + (1 - alpha) r(Psi_1), as arrays of numbers.

    `terms(y, z)` gives v, f, r as a function of psi, g_y v_z f, g_yy(v, v)/2 and `root`, the psi on the right branch for which
    g_y v_z r(psi) has a given value. g_y v_y v vanishes for both problems.
    """

    start: tuple[float, ...]
    terms: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, Callable, float, float, Callable]]

    def multipliers(self, y: np.ndarray, z: np.ndarray, alpha: float, conjugate: bool) -> tuple[float, float]:
        """Psi_0 and Psi_1 in the limit h -> 0.

        natural:             0 = g_y v_z (f + alpha r(Psi_0)) + g_yy(v,v)/2,    0 = g_yy(v,v)/2 + (1-alpha) g_y v_z r(Psi_1)
        natural conjugate:   0 = g_yy(v,v)/2 + alpha g_y v_z r(Psi_0),          0 = g_yy(v,v)/2 + g_y v_z (f + (1-alpha)
        r(Psi_1))

        The second line is not in the paper; it follows from (3.7) in the same way as the first one from (3.2).
        """
        _, _, _, force, curvature, root = self.terms(y, z)
        with_force, without = -(force + curvature), -curvature
        first, second = (without, with_force) if conjugate else (with_force, without)
        return root(first / alpha), root(second / (1 - alpha))

    def solution(self, alpha: float, conjugate: bool) -> dict[str, np.ndarray]:
        """y and z at t = 1."""

        def rate(t: float, x: np.ndarray) -> np.ndarray:
            y, z = x[:2], x[2:]
            v, f, r, *_ = self.terms(y, z)
            psi0, psi1 = self.multipliers(y, z, alpha, conjugate)
            return np.concatenate([v, f + alpha * r(psi0) + (1 - alpha) * r(psi1)])

        end = solve(rate, self.start)
        return {"y": end[:2], "z": end[2:]}


# -- (4.1) ---------------------------------------------------------------------------------------------------------------


def _terms_41(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, Callable, float, float, Callable]:
    (y1, y2), (z1, z2) = y, z
    v = np.array([2 * z1, -z2])
    f = np.array([2 * y1 * y2 * z1 * z2 - y1 * z1 * z2, z1 - y1 * z2**3])
    g_y_v_z = np.array([2 * y2**2, -2 * y1 * y2])
    curvature = 2 * y2 * v[0] * v[1] + y1 * v[1] ** 2

    def r(psi: float) -> np.ndarray:
        return np.array([y2 * z1 * psi**2, -np.sqrt(y1) * z1 * z2**2 * psi])

    def root(value: float) -> float:
        a, b = g_y_v_z * r(1.0)  # a psi^2 + b psi = value; the larger root is the branch of psi = e^t
        return float((-b + np.sqrt(b**2 + 4 * a * value)) / (2 * a))

    return v, f, r, float(g_y_v_z @ f), float(curvature), root


def _solution_41() -> dict[str, np.ndarray]:
    end = np.exp([2.0, -1.0])
    return {"y": end, "z": end}


# -- (4.2) ---------------------------------------------------------------------------------------------------------------

M, B, G, C_F, R_F = 1.0, 0.01, 9.81, 0.1, 0.85


def _terms_42(y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, Callable, float, float, Callable]:
    normal = np.array([-3 * B * y[0] ** 2, 1.0])
    length = np.sqrt(normal @ normal)

    def r(psi: float) -> np.ndarray:
        return (normal * psi - C_F * (length * abs(psi)) ** R_F * z / np.sqrt(z @ z)) / M

    def root(value: float) -> float:
        return float(M * value / length**2)  # friction is tangential: g_y z = 0

    return z, np.array([0.0, -G]), r, -G, float(-3 * B * y[0] * z[0] ** 2), root


def _solution_42() -> dict[str, np.ndarray]:
    """From the equation for y_1, with psi = m (g + 6 b y_1 z_1^2) / (1 + 9 b^2 y_1^4)."""

    def rate(t: float, x: np.ndarray) -> list[float]:
        length = np.sqrt(1 + 9 * B**2 * x[0] ** 4)
        psi = M * (G + 6 * B * x[0] * x[1] ** 2) / length**2
        return [x[1], (-3 * B * x[0] ** 2 * psi + C_F * (length * psi) ** R_F / length) / M]  # z_1 < 0

    y1, z1 = solve(rate, [10.0, -3.6])
    return {"y": np.array([y1, B * y1**3]), "z": np.array([z1, 3 * B * y1**2 * z1])}


# -- both ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TestProblem:
    """A problem of section 4, with what it converges to."""

    problem: Callable[[], Problem]
    solution: Callable[[], dict[str, np.ndarray]]
    inconsistent: Inconsistent


PROBLEMS = {
    "4.1": TestProblem(nonlinear_multiplier, _solution_41, Inconsistent((1.0, 1.0, 1.0, 1.0), _terms_41)),
    "4.2": TestProblem(mass_on_surface, _solution_42, Inconsistent((10.0, 10.0, -3.6, -10.8), _terms_42)),
}


def distance(a: dict[str, np.ndarray], b: dict[str, np.ndarray], component: str) -> float:
    """Between two end states, in y or in z."""
    return float(np.linalg.norm(a[component] - b[component]))


def errors(
    problem: Problem, method: OneStepMethod, steps: Sequence[int], references: dict[str, dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """The errors of y and z at t = 1 for so many steps against references, whose names have {} for y and z."""
    runs = [simulate(problem, method, h=T1 / n, steps=n, save_every=n) for n in steps]
    ends = [{component: getattr(run, component)[-1] for component in COMPONENTS} for run in runs]
    return {
        name.format(component): np.array([distance(end, reference, component) for end in ends])
        for name, reference in references.items()
        for component in COMPONENTS
    }


def fitted_slope(h: np.ndarray, error: np.ndarray) -> float:
    """The least-squares slope through the three finest errors; nan if any error is not a positive number.

    Unlike `da.verify.slope` it leaves no error out.

    Example:
        >>> h = np.array([0.4, 0.2, 0.1])
        >>> round(fitted_slope(h, 3 * h**2), 12), fitted_slope(h, np.array([np.nan, 0.2, 0.1]))
        (2.0, nan)

    """
    if not np.all(np.isfinite(error) & (error > 0)):
        return float("nan")
    return float(np.polyfit(np.log(h[-3:]), np.log(error[-3:]), 1)[0])


def local_slope(h: np.ndarray, error: np.ndarray, k: int) -> float:
    """The slope between two neighbouring step sizes h[k-1] and h[k]; k may be negative."""
    return float(np.log(error[k] / error[k - 1]) / np.log(h[k] / h[k - 1]))
