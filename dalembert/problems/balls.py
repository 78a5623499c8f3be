"""Balls that hit a floor, a table and each other. They want a collision integrator: `da.CVA`, `da.VCI` or `da.MCVA`."""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert import draw
from dalembert.errors import InputError
from dalembert.problems._geometry import ellipse, hanging, heading
from dalembert.problems.pendulums import pendulum
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian


def bouncing_ball(m: float = 1.0, g: float = 9.81, e: float = 0.8, height: float = 1.0) -> Problem:
    """Ball that falls from `height` on a floor, with the coefficient of restitution e.

        q = (y),   phi = y >= 0,   L = m v^2 / 2 - m g y

    With `T = sqrt(2 height / g)`, impact k = 1, 2, ... happens at `T (1 + 2 (e + ... + e^(k-1)))`, and the ball then rises to
    e^(2k) height. If e < 1 the impacts accumulate at T (1 + e) / (1 - e), where the ball comes to rest; `exact` knows all this.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.bouncing_ball()
        >>> run = da.simulate(problem, da.CVA())
        >>> bool(np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-13)
        True
        >>> np.allclose(run.contacts.begin, 9 * np.sqrt(2 / 9.81), rtol=0, atol=1e-8)
        True

    """
    fall = np.sqrt(2 * height / g)
    rest = fall * (1 + e) / (1 - e) if e < 1 else np.inf

    def exact(t: Any) -> dict[str, np.ndarray]:
        t = np.asarray(t, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            if e < 1:  # flight k begins where rest - t = 2 fall e^k / (1 - e)
                flight = np.floor(np.log((rest - t) * (1 - e) / (2 * fall)) / np.log(e))
                begin = rest - 2 * fall * e**flight / (1 - e)
            else:
                flight = np.floor((t / fall + 1) / 2)
                begin = (2 * flight - 1) * fall
        bounced = t >= fall
        elapsed = np.where(bounced, t - begin, t)
        v = np.where(bounced, g * fall * e**flight, 0.0) - g * elapsed
        y = np.where(bounced, 0.0, height) + (v + g * elapsed / 2) * elapsed
        moving = t < rest
        return {"q": np.where(moving, y, 0.0)[..., None], "p": m * np.where(moving, v, 0.0)[..., None]}

    return Problem(
        name="bouncing_ball",
        title="bouncing ball",
        reference="a textbook example",
        system=Lagrangian(
            lambda q, v, m, g: m * (v @ v) / 2 - m * g * q[0],
            dim=1,
            unilateral=lambda q: q[0],
            restitution=lambda e: e,
            params={"m": m, "g": g, "e": e},
        ),
        q0=np.array([height]),
        v0=np.zeros(1),
        h=0.01,
        steps=500,
        exact=exact,
        conserved={"energy": energy_is_conserved} if e == 1 else {},
        drawing=lambda q: [draw.wall([-0.5, 0.0], [0.5, 0.0]), draw.mass([0.0, q[0]])],
        labels=("y",),
    )


def ball_on_vibrating_table(
    m: float = 1.0, g: float = 9.81, e: float = 0.5, amplitude: float = 0.02, rate: float = 25.0, height: float = 0.3
) -> Problem:
    """Ball that falls from `height` on a table at `amplitude sin(rate t)`, with the coefficient of restitution e.

        q = (y),   phi(t, y) = y - amplitude sin(rate t) >= 0,   L = m v^2 / 2 - m g y

    At an impact y' - table' is multiplied by -e; the table does work. If `amplitude rate^2 < g`, the ball comes to rest on the
    table. Otherwise, as by default, it stays on the table only until the table falls faster than it would, at
    `sin(rate t) = g / (amplitude rate^2)`, and is thrown up again.
    P. J. Holmes, J. Sound Vib. 84 (1982) 173-189.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.ball_on_vibrating_table(), da.CVA())
        >>> len(run.contacts) > 3
        True

    """

    def table(t: float, q: np.ndarray, amplitude: float, rate: float) -> list[draw.Part]:
        level = amplitude * np.sin(rate * t)
        return [draw.wall([-0.1, level], [0.1, level]), draw.mass([0.0, q[0]])]

    return Problem(
        name="ball_on_vibrating_table",
        title="ball on a vibrating table",
        reference="Holmes (1982), J. Sound Vib. 84",
        system=Lagrangian(
            lambda q, v, m, g: m * (v @ v) / 2 - m * g * q[0],
            dim=1,
            unilateral=lambda t, q, amplitude, rate: q[0] - amplitude * np.sin(rate * t),
            restitution=lambda e: e,
            params={"m": m, "g": g, "e": e, "amplitude": amplitude, "rate": rate},
        ),
        q0=np.array([height]),
        v0=np.zeros(1),
        h=0.001,
        steps=3000,
        drawing=table,
        labels=("y",),
    )


def newtons_cradle(
    balls: int = 5, lifted: int = 1, m: float = 1.0, l: float = 1.0, g: float = 1.0, d: float = 0.2, angle: float = 0.5
) -> Problem:
    """Newton's cradle: equal balls of diameter d on rods of length l whose pivots are d apart, so that they touch at rest.

        q = (a_1, ..., a_N),   L = sum m l^2 a_k'^2 / 2 + m g l cos(a_k)
        phi_k = (|C_k+1 - C_k|^2 - d^2) / (2d) >= 0,   C_k = (k d + l sin(a_k), -l cos(a_k))

    The first `lifted` balls are released at rest at -`angle`. Touching balls pass the impulse on, one pair after the other, and
    as many balls rise on the other side: `exact` is a `pendulum` whose negative angles are those of the first balls and whose
    positive ones those of the last.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.newtons_cradle()
        >>> run = da.simulate(problem, da.CVA(da.Gauss(stages=4)), steps=400)
        >>> run.impacts.which[:8].tolist(), bool(np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-13)
        ([0, 1, 2, 3, 3, 2, 1, 0], True)

    """
    if not 0 < lifted < balls:
        raise InputError(f"a cradle of {balls} balls has between 1 and {balls - 1} of them lifted; got {lifted!r}")

    def gaps(q: Any, l: Any, d: Any) -> Any:
        across, down = d + l * np.diff(np.sin(q)), l * np.diff(np.cos(q))
        return (across**2 + down**2 - d**2) / (2 * d)

    def exact(t: Any) -> dict[str, np.ndarray]:
        single = pendulum(m, l, g, -angle).exact
        assert single is not None
        known = single(t)
        (x, z), (p_x, p_z) = np.moveaxis(known["q"], -1, 0), np.moveaxis(known["p"], -1, 0)
        theta, momentum = np.arctan2(x, -z), -z * p_x + x * p_z
        q, p = np.zeros((*theta.shape, balls)), np.zeros((*theta.shape, balls))
        for moves, group in ((theta < 0, slice(None, lifted)), (theta > 0, slice(balls - lifted, None))):
            q[..., group] += np.where(moves, theta, 0.0)[..., None]
            p[..., group] += np.where(moves, momentum, 0.0)[..., None]
        return {"q": q, "p": p}

    def drawing(q: np.ndarray, l: float, d: float) -> list[draw.Part]:
        pivots = np.array([[k * d, 0.0] for k in range(balls)])
        centres = pivots + l * hanging(q)
        rods = [draw.line(*ends) for ends in zip(pivots, centres, strict=True)]
        beam = draw.wall([balls * d, 0.0], [-d, 0.0])
        return [beam, *rods, *(draw.mass(centre, d / 2) for centre in centres), draw.trace(centres[0])]

    return Problem(
        name="newtons_cradle",
        title="Newton's cradle",
        reference="a textbook example",
        system=Lagrangian(
            lambda q, v, m, l, g: m * l**2 * (v @ v) / 2 + m * g * l * np.sum(np.cos(q)),
            dim=balls,
            unilateral=gaps,
            params={"m": m, "l": l, "g": g, "d": d},
        ),
        q0=np.where(np.arange(balls) < lifted, -angle, 0.0),
        v0=np.zeros(balls),
        h=0.02 * np.sqrt(l / g),
        steps=2000,
        exact=exact,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=tuple(f"a{k + 1}" for k in range(balls)),
    )


def balls_on_ring(
    m: float = 1.0, d: float = 0.1, circumference: float = 3.0, speeds: tuple[float, ...] = (1.0, -0.31, 0.53, -0.87, 0.19)
) -> Problem:
    """Equal balls of diameter d that slide on a ring, starting equally spaced with these speeds.

        q = (s_1, ..., s_N),   L = m v.v / 2,   phi_k = s_k+1 - s_k - d >= 0,   phi_N = s_1 + circumference - s_N - d >= 0

    In an impact two equal balls exchange their velocities. But for the diameters, which drop out of y_k = s_k - k d on a ring
    of length circumference - N d, the positions are those of N points that pass through each other, in order: `exact`.
    Positions count turns, so that the balls keep their order.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.balls_on_ring()
        >>> run = da.simulate(problem, da.CVA())
        >>> bool(np.abs(run.q - problem.exact(run.t)["q"]).max() < 1e-12)
        True

    """
    balls = len(speeds)
    length = circumference - balls * d
    if balls < 2 or length <= 0:
        raise InputError(f"{balls} balls of diameter {d} do not fit on the ring: change speeds, d or circumference")
    order = np.arange(balls)
    q0, v0 = order * circumference / balls, np.array(speeds, dtype=float)

    def exact(t: Any) -> dict[str, np.ndarray]:
        free = q0 - order * d + np.asarray(t, dtype=float)[..., None] * v0
        turns = np.floor(free / length)
        rank = np.argsort(free - turns * length, axis=-1)
        # the points of all turns, counted from one of them: the sum of positions says how far to shift the count
        position = order + turns.sum(axis=-1, keepdims=True).astype(int)
        chosen = np.take_along_axis(rank, position % balls, axis=-1)
        inside = np.take_along_axis(free - turns * length, chosen, axis=-1)
        return {"q": inside + position // balls * length + order * d, "p": m * v0[chosen]}

    def drawing(q: np.ndarray, circumference: float, d: float) -> list[draw.Part]:
        radius = circumference / (2 * np.pi)
        points = radius * heading(q / radius)[0]
        return [draw.track(*ellipse(radius, radius)), *(draw.mass(point, d / 2) for point in points)]

    return Problem(
        name="balls_on_ring",
        title="equal balls on a ring",
        reference="Tonks (1936), Phys. Rev. 50",
        system=Lagrangian(
            lambda q, v, m: m * (v @ v) / 2,
            dim=balls,
            unilateral=lambda q, d, circumference: [*(np.diff(q) - d), q[0] + circumference - q[-1] - d],
            params={"m": m, "d": d, "circumference": circumference},
        ),
        q0=q0,
        v0=v0,
        h=0.05,
        steps=1000,
        exact=exact,
        conserved={"energy": energy_is_conserved, "momentum": lambda run: run.p.sum(axis=1)},
        drawing=drawing,
        labels=tuple(f"s{k + 1}" for k in range(balls)),
    )
