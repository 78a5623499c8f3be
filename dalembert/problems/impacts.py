"""Pendulums that hit floors and walls; balls are in `balls`, billiards in `billiards`.

Equation numbers refer to D. Pekarek and T. D. Murphey, Discrete Lagrangian mechanics for nonseparable nonsmooth systems,
Int. J. Numer. Meth. Engng (2014). All of these want a collision integrator: `da.CVA`, `da.VCI` or `da.MCVA`.
"""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dalembert import draw
from dalembert.problems._geometry import hanging, joints
from dalembert.problems.nonseparable import (
    cart_pendulum,
    cart_pendulum_lagrangian,
    double_pendulum_in_angles,
    double_pendulum_lagrangian,
)
from dalembert.problems.pendulums import double_pendulum, double_pendulum_hamiltonian, double_pendulum_lengths
from dalembert.runs._problem import Problem, links_from_origin
from dalembert.systems import Hamiltonian, Lagrangian


def cart_pendulum_above_floor(m1: float = 1.0, m2: float = 0.2, l: float = 2.0, g: float = 10.0, beta: float = 3.2) -> Problem:
    """Vertical cart-pendulum (35) of Pekarek & Murphey (2014): the `cart_pendulum` with its floor, phi = y >= 0.

    Impacts are elastic. It starts from Xi(beta), as there; the paper takes beta from 3.2 to 5.2, energies from 37.8 to 61.0 J.
    By default it makes three impacts in 5 s, those of figure 3.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.cart_pendulum_above_floor(), da.MCVAA())
        >>> len(run.impacts), bool(run.q[:, 0].min() >= 0)
        (3, True)

    """
    free = cart_pendulum(m1, m2, l, g, beta)

    def drawing(q: np.ndarray, l: float) -> list[draw.Part]:
        assert free.drawing is not None
        floor = -0.192 * l  # the cart is drawn as a box, whose centre is at y
        guide = draw.track([0.0, floor], [0.0, 3 * l])
        return [draw.wall([-l, floor], [l, floor]), guide, *free.drawing(q, l)[1:]]

    return replace(
        free,
        name="cart_pendulum_above_floor",
        title="vertical cart-pendulum above a floor",
        reference="Pekarek & Murphey (2014), (35) and section 5.2",
        system=Lagrangian(cart_pendulum_lagrangian, dim=2, unilateral=lambda q: q[0], params=dict(free.system.params)),
        steps=500,
        exact=None,
        drawing=drawing,
    )


def double_pendulum_at_wall(
    m1: float = 1.0, m2: float = 1.0, l1: float = 1.0, l2: float = 1.0, g: float = 1.0, wall: float = 0.3,
    angles: tuple[float, float] = (-1.5, -1.5),
) -> Problem:  # fmt: skip
    """Double pendulum whose lower mass hits a vertical wall, in Cartesian coordinates with the links as constraints.

        q = (x1, z1, x2, z2),   phi = wall - x2 >= 0,   H and g of `double_pendulum`

    The system of figure 1 of Pekarek & Murphey (2014), whose constants are not stated there: these are other ones. Released at
    rest at `angles` from the downward vertical; impacts are elastic. `double_pendulum_at_wall_in_angles` is the same without
    holonomic constraints.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.double_pendulum_at_wall(), da.VCI(), steps=1000)
        >>> len(run.impacts), bool(abs(run.residuals["g"]).max() < 1e-14)
        (4, True)

    """
    free = double_pendulum(m1, m2, l1, l2, g)
    system = Hamiltonian(
        double_pendulum_hamiltonian,
        dim=4,
        holonomic=double_pendulum_lengths,
        unilateral=lambda q, wall: wall - q[2],
        params={**free.system.params, "wall": wall},
    )
    return replace(
        free,
        name="double_pendulum_at_wall",
        title="planar double pendulum at a wall",
        reference="Pekarek & Murphey (2014), figure 1, with other constants",
        system=system,
        q0=joints((l1, l2), hanging(np.array(angles))),
        h=0.02,
        drawing=lambda q, wall, l1, l2: [_upright(wall, l1 + l2), *links_from_origin(q)],
    )


def double_pendulum_at_wall_in_angles(
    m1: float = 1.0, m2: float = 1.0, l1: float = 1.0, l2: float = 1.0, g: float = 1.0, wall: float = 0.3,
    angles: tuple[float, float] = (-1.5, -1.5),
) -> Problem:  # fmt: skip
    """The `double_pendulum_at_wall` in the angles q = (a, b) of its links, L as in `double_pendulum_in_angles`.

        phi = wall - l1 sin(a) - l2 sin(b) >= 0

    Without holonomic constraints it has a modified Hamiltonian, so that `da.MCVA` integrates it as well.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.double_pendulum_at_wall_in_angles(), da.MCVA(), steps=1000)
        >>> len(run.impacts)
        4

    """
    free = double_pendulum_in_angles(m1, m2, l1, l2, g, angles)

    def drawing(q: np.ndarray, wall: float, l1: float, l2: float) -> list[draw.Part]:
        assert free.drawing is not None
        return [_upright(wall, l1 + l2), *free.drawing(q, l1, l2)]

    return replace(
        free,
        name="double_pendulum_at_wall_in_angles",
        title="planar double pendulum at a wall, in angles",
        reference="Pekarek & Murphey (2014), figure 1, with other constants",
        system=Lagrangian(
            double_pendulum_lagrangian,
            dim=2,
            unilateral=lambda q, l1, l2, wall: wall - l1 * np.sin(q[0]) - l2 * np.sin(q[1]),
            params={**free.system.params, "wall": wall},
        ),
        h=0.02,
        drawing=drawing,
    )


def _upright(x: float, height: float) -> draw.Part:
    """A wall on the right."""
    return draw.wall([x, -height], [x, height / 2])
