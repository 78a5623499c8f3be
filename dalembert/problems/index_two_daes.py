"""Test problems of index 2 with exponentials for solutions.

S. K. Hilden, Numerical methods for nonholonomic mechanics, Master's thesis, NTNU (2009), (2.23), (2.28); L. O. Jay, BIT 43
(2003) and Math. Comp. 75 (2006)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.runs._problem import Problem
from dalembert.systems import IndexTwoDAE


def index_two_growth() -> Problem:
    """A DAE of index 2 that is quadratic in its algebraic variable, y = (e^t, e^-2t), z = e^2t.

        y_1' = y_1 y_2^2 z^2,   y_2' = y_1^2 y_2^2 - 3 y_2^2 z,   0 = y_1^2 y_2 - 1

    (2.28) of Hilden, of Jay (2006). The hidden constraint 0 = 2 y_2^2 z^2 - 3 y_2 z + 1, on 0 = g, has the roots z = 1/y_2 and
    1/(2 y_2): z0 = 1 chooses the first. All of f depends on z, so it is the second part for `da.LobattoSPARK`.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.index_two_growth()
        >>> run = da.simulate(problem, da.SRK("gauss", stages=3))
        >>> bool(abs(run.y[-1] - problem.exact(1.0)["y"]).max() < 1e-7), bool(abs(run.z[-1] - problem.exact(1.0)["z"]) < 1e-6)
        (True, True)

    """
    system = IndexTwoDAE(
        parts=[
            lambda y: 0 * y,
            lambda y, z: [y[0] * y[1] ** 2 * z[0] ** 2, y[0] ** 2 * y[1] ** 2 - 3 * y[1] ** 2 * z[0]],
        ],
        g=_constraint,
        dim_y=2,
        dim_z=1,
    )
    return _problem("index_two_growth", "DAE of index 2 with a quadratic algebraic variable", "(2.28); Jay (2006)", system)


def index_two_growth_in_parts() -> Problem:
    """A DAE of index 2 in five parts, y = (e^t, e^-2t), z = e^2t.

        f_1 = (y_2 - 2 y_1^2 y_2, -y_1^2),   f_2 = (y_1 y_2^2 z^2, e^-t z - y_1),   f_3 = (-y_2^2 z, -3 y_2^2 z)
        f_4 = (2 y_1 y_2^2 - 2 e^-2t y_1 y_2, z),   f_5 = (2 y_2^2 z^2, y_1^2 y_2^2),   0 = y_1^2 y_2 - 1

    (2.23) of Hilden, of Jay (2003), for methods that treat each part with coefficients of its own. The hidden constraint is
    quadratic in z: z0 = 1 chooses the branch of the solution.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.index_two_growth_in_parts()
        >>> study = da.verify.order(problem, da.LobattoSPARK(stages=3), reference=problem.exact, t1=1.0, steps=[10, 20, 40])
        >>> round(study.slopes["y"])
        4

    """
    system = IndexTwoDAE(
        parts=[
            lambda y: [y[1] - 2 * y[0] ** 2 * y[1], -(y[0] ** 2)],
            lambda t, y, z: [y[0] * y[1] ** 2 * z[0] ** 2, np.exp(-t) * z[0] - y[0]],
            lambda y, z: [-(y[1] ** 2) * z[0], -3 * y[1] ** 2 * z[0]],
            lambda t, y, z: [2 * y[0] * y[1] ** 2 - 2 * np.exp(-2 * t) * y[0] * y[1], z[0]],
            lambda y, z: [2 * y[1] ** 2 * z[0] ** 2, y[0] ** 2 * y[1] ** 2],
        ],
        g=_constraint,
        dim_y=2,
        dim_z=1,
    )
    return _problem("index_two_growth_in_parts", "DAE of index 2 in five parts", "(2.23); Jay (2003)", system)


def _constraint(y: Any) -> list[Any]:
    return [y[0] ** 2 * y[1] - 1]


def _exact(t: Any) -> dict[str, np.ndarray]:
    t = np.asarray(t, dtype=float)[..., None]
    return {"y": np.exp(t * np.array([1.0, -2.0])), "z": np.exp(2 * t)}


def _problem(name: str, title: str, equation: str, system: IndexTwoDAE) -> Problem:
    return Problem(
        name=name,
        title=title,
        reference=f"Hilden (2009), Master's thesis, NTNU, {equation}",
        system=system,
        y0=np.ones(2),
        z0=np.ones(1),
        h=0.025,
        steps=40,
        exact=_exact,
        labels=("y1", "y2"),
    )
