"""Many discs or balls that touch each other and planes: contacts are found where they are, not stated one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.systems._lagrangian import Lagrangian
from dalembert.systems._model import real_array


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
        if space not in (2, 3):
            raise ModelError(f"space is 2 for discs or 3 for balls; got {space!r}")
        self.radii, self.masses = _positive("radii", radii), _positive("masses", masses)
        if self.radii.shape != self.masses.shape:
            raise ModelError(f"there are {len(self.radii)} radii and {len(self.masses)} masses: give one of each for each body")
        self.space, self.mu, self.e = space, _number("friction", friction, np.inf), _number("restitution", restitution, 1.0)
        self.gravity = np.pad(real_array(gravity).ravel()[:space], (0, 3 - len(real_array(gravity).ravel()[:space])))
        self.planes = np.array([_plane(n, c, space) for n, c in planes]).reshape(-1, 4)
        self.inertias = self.masses * self.radii**2 * (0.5 if space == 2 else 0.4)
        angles = 1 if space == 2 else 3
        each = [[m] * space + [J] * angles for m, J in zip(self.masses, self.inertias, strict=True)]
        weights = np.outer(self.masses, [*self.gravity[:space], *[0.0] * angles]).ravel()
        inertia = np.ravel(each)
        super().__init__(lambda q, v: (inertia * v) @ v / 2 + weights @ q, len(inertia))

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of all that the model consists of."""
        data = (self.radii, self.masses, self.gravity, self.planes, np.array([self.space, self.mu, self.e]))
        return hashlib.sha256(b"".join(x.tobytes() for x in data)).hexdigest()


def _positive(name: str, values: Any) -> np.ndarray:
    try:
        array = real_array(values).ravel()
    except (TypeError, ValueError):
        array = np.zeros(1)
    if not len(array) or not np.all((array > 0) & np.isfinite(array)):
        raise ModelError(f"{name} are positive numbers, one for each body")
    return array


def _number(name: str, value: Any, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0 <= value <= most:
        raise ModelError(f"{name} is a number from 0 to {most:g} for all contacts; got {value!r}")
    return float(value)


def _plane(normal: Any, offset: Any, space: int) -> np.ndarray:
    n = real_array(normal).ravel()
    if len(n) != space or not np.linalg.norm(n) > 0:
        raise ModelError(f"a plane is a pair (n, c) of a normal of {space} components, not zero, and a number; got {normal!r}")
    return np.array([*n, *[0.0] * (3 - space), float(offset)]) / np.linalg.norm(n)
