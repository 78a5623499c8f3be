"""Many discs or balls that touch each other and planes: contacts are found where they are, not stated one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.systems._lagrangian import Lagrangian
from dalembert.systems._model import one_line, real_array


class Spheres(Lagrangian):
    """Homogeneous discs (`space=2`) or balls (`space=3`) that touch each other and the planes n . x >= c, with friction.

    Coordinates are (x, y, angle) of each disc, (x, y, z) of each ball and three more whose rates are its angular velocity:
    these angles themselves mean nothing. `planes` are pairs (n, c); `friction` and `restitution` are numbers for all contacts.
    Runs take `da.MoreauJean()`; neighbours are found by cells, so that a step takes time in proportion to the contacts.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pile = da.Spheres([0.01] * 3, masses=[0.2] * 3, gravity=(0, -9.81), planes=[((0, 1), 0.0)], friction=0.5)
        >>> q0 = [-0.0101, 0.01, 0, 0.0101, 0.01, 0, 0, 0.03, 0]
        >>> run = da.simulate(pile, da.MoreauJean(), q0=q0, v0=[0] * 9, h=1e-3, steps=400)
        >>> bool(abs(run.v[-1]).max() < 1e-9)
        True

    """

    def __init__(
        self,
        radii: Sequence[float] | np.ndarray,
        *,
        masses: Sequence[float] | np.ndarray,
        space: int = 2,
        gravity: Sequence[float] = (0.0, 0.0),
        planes: Sequence[tuple[Sequence[float], float]] = (),
        friction: float = 0.0,
        restitution: float = 0.0,
    ) -> None:
        if isinstance(space, bool) or not isinstance(space, (int, np.integer)) or space not in (2, 3):
            raise ModelError(f"space is 2 for discs or 3 for balls; got {one_line(space)}")
        self.radii, self.masses = _positive("radii", radii), _positive("masses", masses)
        if self.radii.shape != self.masses.shape:
            raise ModelError(f"there are {len(self.radii)} radii and {len(self.masses)} masses: give one of each for each body")
        self.space, self.mu, self.e = space, _number("friction", friction, np.inf), _number("restitution", restitution, 1.0)
        self.gravity = _gravity(gravity, space)
        if not isinstance(planes, Iterable):
            raise ModelError(f"planes are pairs (n, c), as in planes=[((0, 1), 0.0)]; got {one_line(planes)}")
        self.planes = np.array([_plane(plane, space) for plane in planes]).reshape(-1, 4)
        self.inertias = self.masses * self.radii**2 * (0.5 if space == 2 else 0.4)
        angles = 1 if space == 2 else 3
        each = [[m] * space + [J] * angles for m, J in zip(self.masses, self.inertias, strict=True)]
        weights = np.outer(self.masses, [*self.gravity[:space], *[0.0] * angles]).ravel()
        inertia = np.ravel(each)
        super().__init__(lambda q, v: (inertia * v) @ v / 2 + weights @ q, len(inertia))

    @property
    def fingerprint(self) -> str:
        """A hash of all that the model consists of."""
        data = (self.radii, self.masses, self.gravity, self.planes, np.array([self.space, self.mu, self.e]))
        return hashlib.sha256(b"".join(x.tobytes() for x in data)).hexdigest()


def _positive(name: str, values: Any) -> np.ndarray:
    try:
        array = real_array(values).ravel()
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(1)
    if not len(array) or not np.all((array > 0) & np.isfinite(array)):
        raise ModelError(f"{name} are positive numbers, one for each body")
    return array


def _number(name: str, value: Any, most: float) -> float:
    known = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not known or not (0 <= value <= most and value < 1e300):
        upto = f" up to {most:g}" if np.isfinite(most) else ""
        raise ModelError(f"{name} is a finite number >= 0{upto} for all contacts; got {one_line(value)}")
    return float(value)


def _gravity(given: Any, space: int) -> np.ndarray:
    try:
        vector = real_array(given).ravel()
    except (TypeError, ValueError, OverflowError):
        vector = np.full(1, np.nan)
    if not np.all(np.isfinite(vector)) or (len(vector) != space and np.any(vector)):
        raise ModelError(f"gravity is a vector of {space} finite numbers; got {one_line(given)}")
    return np.pad(vector[:space], (0, 3 - len(vector[:space])))


def _plane(given: Any, space: int) -> np.ndarray:
    try:
        normal, offset = given
        n, c = real_array(normal).ravel(), float(real_array(offset))
    except (TypeError, ValueError, OverflowError):
        n, c = np.zeros(0), np.nan
    if len(n) != space or not np.linalg.norm(n) > 0 or not np.all(np.isfinite([*n, c])):
        raise ModelError(
            f"a plane is a pair (n, c) of a normal of {space} components, not zero, and a number; got {one_line(given)}"
        )
    return np.array([*n, *[0.0] * (3 - space), c]) / np.linalg.norm(n)
