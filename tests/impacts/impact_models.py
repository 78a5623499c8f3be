"""Systems with walls that the tests of collision integrators share."""

import numpy as np

import dalembert as da


def cart_pendulum(**options):
    """The vertical cart-pendulum (35) of Pekarek and Murphey (2014) above its floor y = 0."""
    return da.Lagrangian(
        lambda q, v, m1, m2, l, g: (  # noqa: E741
            (m1 + m2) * v[0] ** 2 / 2 + m2 * l * np.sin(q[1]) * v[0] * v[1] + m2 * l**2 * v[1] ** 2 / 2
            - (m1 + m2) * g * q[0] + m2 * g * l * np.cos(q[1])
        ),
        dim=2,
        unilateral=lambda q: q[0],
        params={"m1": 1.0, "m2": 0.2, "l": 2.0, "g": 10.0},
        **options,
    )  # fmt: skip


def xi(beta):
    """The paper's initial values, section 5.2."""
    return {"q0": [beta, 0.0], "v0": [0.0, 3.5 - 0.18 * beta]}


def just_above_the_floor(h):
    """A state that hits the floor after about half a step."""
    return {"q0": [2 * h, 0.4], "v0": [-4.0, 1.0]}


def free_particle(unilateral, **options):
    """A particle in the plane that moves in straight lines between walls."""
    return da.Lagrangian(lambda q, v: v @ v / 2, dim=2, unilateral=unilateral, **options)


def ball(g=1.0, **options):
    """A ball above the floor."""
    return da.Lagrangian(
        lambda q, v, g: v @ v / 2 - g * q[0],
        dim=1,
        unilateral=lambda q: q[0],
        params={"g": g, **options.pop("params", {})},
        **options,
    )


PAPER = {"CVA": da.CVA(), "VCI": da.VCI(), "MCVAA": da.MCVAA(), "MCVAC": da.MCVAC()}
EVERY = {**PAPER, "CVA on SVA": da.CVA("SVA"), "VCI on SVA": da.VCI("SVA"), "MCVA even": da.MCVA()}
