"""Billiards: particles and hard disks between walls. They want a collision integrator: `da.CVA`, `da.VCI` or `da.MCVA`.

Straight flight is exact for every method. In a uniform field B the particle moves on arcs of circles. The implicit midpoint
rule, which "SVC" is here, turns v about the same centre by a slightly wrong angle: it stays on the exact circle with the exact
direction at every point, and only its clock is wrong, by O(h^2). So `da.CVA()` finds the right impact points whatever h is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert import draw
from dalembert.errors import InputError
from dalembert.problems._geometry import axial_momentum, ellipse
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory

Pair = tuple[float, float]


def circular_billiard(
    m: float = 1.0, B: float = 0.0, radius: float = 1.0, start: Pair = (0.3, 0.1), velocity: Pair = (0.7, 0.9)
) -> Problem:
    """Charged particle in a circle, in a uniform magnetic field B.

        q = (x, y),   L = m v.v / 2 + B (x v_y - y v_x) / 2,   phi = (radius^2 - q.q) / (2 radius) >= 0

    Turning about the centre is a symmetry, x p_y - y p_x is conserved, and each impact is the one before turned by the same
    angle: without field, with p_y x - p_x y = m |v| radius sin(b), by pi - 2 b.
    S. Tabachnikov, Geometry and Billiards (2005), chapter 2.

    Example:
        >>> import numpy as np, dalembert as da
        >>> impacts = da.simulate(da.problems.circular_billiard(), da.CVA()).impacts
        >>> z = impacts.q[:, 0] + 1j * impacts.q[:, 1]
        >>> bool(np.ptp(z[1:] / z[:-1]) < 1e-12)
        True

    """
    return _billiard(
        name="circular_billiard",
        title="circular billiard",
        reference="Tabachnikov (2005), Geometry and Billiards, chapter 2",
        wall=lambda q, radius: (radius**2 - q @ q) / (2 * radius),
        constants={"m": m, "B": B, "radius": radius},
        outline=ellipse(radius, radius),
        start=start,
        velocity=velocity,
        conserved={"angular_momentum": axial_momentum},
    )


def elliptic_billiard(
    m: float = 1.0, B: float = 0.0, a: float = 2.0, b: float = 1.0, start: Pair = (0.5, 0.2), velocity: Pair = (0.6, 0.8)
) -> Problem:
    """Charged particle in an ellipse, in a uniform magnetic field B.

        q = (x, y),   L = m v.v / 2 + B (x v_y - y v_x) / 2,   phi = (1 - (x/a)^2 - (y/b)^2) / 2 >= 0

    Without field the product of the angular momenta about the foci (-c, 0) and (c, 0), c^2 = a^2 - b^2, is conserved (a >= b):
    all segments of a path touch one confocal conic.
    S. Tabachnikov, Geometry and Billiards (2005), chapter 4.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.elliptic_billiard()
        >>> run = da.simulate(problem, da.CVA())
        >>> bool(np.ptp(problem.conserved["product_of_angular_momenta"](run)) < 1e-12)
        True

    """
    if a < b:
        raise InputError(f"the foci lie on the x-axis: take a >= b; got a = {a}, b = {b}")
    c = np.sqrt(a**2 - b**2)

    def product(run: Trajectory) -> np.ndarray:
        (x, y), (p_x, p_y) = run.q.T, run.p.T
        return ((x - c) * p_y - y * p_x) * ((x + c) * p_y - y * p_x)

    return _billiard(
        name="elliptic_billiard",
        title="elliptic billiard",
        reference="Tabachnikov (2005), Geometry and Billiards, chapter 4",
        wall=lambda q, a, b: (1 - (q[0] / a) ** 2 - (q[1] / b) ** 2) / 2,
        constants={"m": m, "B": B, "a": a, "b": b},
        outline=ellipse(a, b),
        start=start,
        velocity=velocity,
        conserved={} if B else {"product_of_angular_momenta": product},
    )


def stadium_billiard(
    m: float = 1.0, B: float = 0.0, a: float = 1.0, r: float = 1.0, start: Pair = (0.3, 0.2), velocity: Pair = (0.6, 0.8)
) -> Problem:
    """Charged particle in a stadium, two half circles of radius r at a distance 2a, in a uniform magnetic field B.

        q = (x, y),   L = m v.v / 2 + B (x v_y - y v_x) / 2,   phi = (r^2 - s^2 - y^2) / (2r) >= 0
        s = x - a if x > a,   x + a if x < -a,   0 between

    s^2 + y^2 is the square of the distance from the segment between the centres; phi is continuously differentiable, and its
    gradient on the wall is the inward normal. Without field the motion is chaotic, and only energy is conserved.
    L. A. Bunimovich, Commun. Math. Phys. 65 (1979) 295-312.

    Example:
        >>> import numpy as np, dalembert as da
        >>> run = da.simulate(da.problems.stadium_billiard(), da.CVA())
        >>> len(run.impacts) > 40, bool(np.ptp(run.energy) < 1e-13)
        (True, True)

    """

    def wall(q: Any, a: Any, r: Any) -> Any:
        s = np.where(q[0] > a, q[0] - a, np.where(q[0] < -a, q[0] + a, 0.0))
        return (r**2 - s**2 - q[1] ** 2) / (2 * r)

    circle = ellipse(r, r)
    right, left = circle[15:46] * [-1, 1] + [a, 0], circle[15:46] - [a, 0]
    return _billiard(
        name="stadium_billiard",
        title="stadium billiard",
        reference="Bunimovich (1979), Commun. Math. Phys. 65",
        wall=wall,
        constants={"m": m, "B": B, "a": a, "r": r},
        outline=np.vstack([left, right[::-1], left[:1]]),
        start=start,
        velocity=velocity,
        conserved={},
    )


def hard_disks(
    disks: int = 10, m: float = 1.0, r: float = 0.3, box: float = 6.0, speed: float = 1.0, direction: float = 0.5
) -> Problem:
    """Equal hard disks of radius r in a square box: N (N - 1)/2 unilateral constraints between them and 4N with the walls.

        q = (x_1, y_1, ..., x_N, y_N),   L = m v.v / 2
        phi_ij = (|q_i - q_j|^2 - 4 r^2) / (4r) >= 0,   x_i - r, box - r - x_i, y_i - r, box - r - y_i >= 0

    The pairs (2, 1), (3, 1), (3, 2), ... come first, then the walls of disk 1, of disk 2, ... They start on a square lattice
    with the same speed, the first in `direction` and each next one turned by the golden angle. The motion is chaotic:
    rounding errors grow tenfold every few impacts a disk.

    Every step looks at all constraints. With 2, 5, 10 and 20 disks (9, 30, 85 and 270 constraints) compiling takes about 0.1,
    0.3, 1 and 5 s once, a step of `da.CVA` 0.2, 0.4, 1 and 5 us, and an impact 3, 12, 17 and 60 us.
    B. J. Alder and T. E. Wainwright, J. Chem. Phys. 31 (1959) 459-466.

    Example:
        >>> import numpy as np, dalembert as da
        >>> run = da.simulate(da.problems.hard_disks(disks=4), da.CVA())
        >>> len(run.impacts) > 20, bool(np.ptp(run.energy) < 1e-13)
        (True, True)

    """
    side = int(np.ceil(np.sqrt(disks)))
    if disks < 1 or 2 * r * side >= box:
        raise InputError(f"{disks} disks of radius {r} do not fit on a square lattice in a box of side {box}")
    place = (np.arange(side) + 0.5) * box / side
    centres = np.array([[x, y] for y in place for x in place])[:disks]
    turned = direction + np.pi * (3 - np.sqrt(5)) * np.arange(disks)

    def walls(q: Any, r: Any, box: Any) -> list[Any]:
        points = [q[2 * k : 2 * k + 2] for k in range(disks)]
        apart = [points[i] - points[j] for i in range(disks) for j in range(i)]
        sides = [inside for p in points for x in p for inside in (x - r, box - r - x)]
        return [(x @ x - 4 * r**2) / (4 * r) for x in apart] + sides

    def drawing(q: np.ndarray, box: float, r: float) -> list[draw.Part]:
        corners = box * np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
        return [draw.track(*corners), *(draw.mass(centre, r) for centre in q.reshape(-1, 2))]

    return Problem(
        name="hard_disks",
        title="hard disks in a box",
        reference="Alder & Wainwright (1959), J. Chem. Phys. 31",
        system=Lagrangian(
            lambda q, v, m: m * (v @ v) / 2, dim=2 * disks, unilateral=walls, params={"m": m, "r": r, "box": box}
        ),
        q0=centres.ravel(),
        v0=speed * np.column_stack([np.cos(turned), np.sin(turned)]).ravel(),
        h=0.05,
        steps=1000,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=tuple(f"{axis}{k + 1}" for k in range(disks) for axis in "xy"),
    )


def _billiard(
    name: str,
    title: str,
    reference: str,
    wall: Callable[..., Any],
    constants: dict[str, float],
    outline: np.ndarray,
    start: Pair,
    velocity: Pair,
    conserved: dict[str, Callable[[Trajectory], np.ndarray]],
) -> Problem:
    return Problem(
        name=name,
        title=title,
        reference=reference,
        system=Lagrangian(
            lambda q, v, m, B: m * (v @ v) / 2 + B * (q[0] * v[1] - q[1] * v[0]) / 2, dim=2, unilateral=wall, params=constants
        ),
        q0=np.array(start, dtype=float),
        v0=np.array(velocity, dtype=float),
        h=0.1,
        steps=1000,
        conserved={"energy": energy_is_conserved, **conserved},
        drawing=lambda q: [draw.track(*outline), draw.mass(q)],
        labels=("x", "y"),
    )
