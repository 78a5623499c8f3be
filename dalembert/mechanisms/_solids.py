"""Shapes of bodies, which give volume, moments of inertia about their own axes, and a picture."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from dalembert.errors import ModelError
from dalembert.systems._model import one_line

Polygon = tuple[int, ...]
SECTORS = 24
"""Of circles, in drawings."""


def _circle(radius: float, height: float) -> np.ndarray:
    turn = 2 * np.pi * np.arange(SECTORS) / SECTORS
    return np.stack([radius * np.cos(turn), radius * np.sin(turn), np.full(SECTORS, height)], axis=1)


def _ring(first: int) -> list[int]:
    return list(range(first, first + SECTORS))


def _quarters(count: int) -> frozenset[int]:
    """The sectors of every other quarter, in some rings of them."""
    return frozenset(k for k in range(count) if k % SECTORS // (SECTORS // 4) % 2)


@dataclass(frozen=True)
class Solid(ABC):
    """A homogeneous solid, given about its centre and in principal axes unless it says otherwise."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (isinstance(value, (int, float, np.floating)) and 0 < value < 1e300):
                raise ModelError(f"the {field.name} of a {type(self).__name__.lower()} must be positive; got {one_line(value)}")

    @property
    @abstractmethod
    def volume(self) -> float:
        """The volume."""

    @property
    @abstractmethod
    def moments(self) -> np.ndarray:
        """The principal moments of inertia of one unit of mass."""

    @property
    def centre(self) -> np.ndarray:
        """The centre of mass, in the coordinates in which the solid was given."""
        return np.zeros(3)

    @property
    def axes(self) -> np.ndarray:
        """The principal axes, as columns."""
        return np.eye(3)

    @property
    @abstractmethod
    def vertices(self) -> np.ndarray:
        """Points about the centre, of which faces and outlines are made, (points, 3)."""

    @property
    @abstractmethod
    def faces(self) -> list[Polygon]:
        """The surface, counter-clockwise seen from outside, by the numbers of vertices."""

    @property
    def outlines(self) -> list[Polygon]:
        """Closed polygons that show the solid in a drawing of lines, by the numbers of vertices."""
        return self.faces

    @property
    def dark(self) -> frozenset[int]:
        """Which faces are painted darker, to show how the solid turns."""
        return frozenset()


@dataclass(frozen=True)
class Box(Solid):
    """A box with edges along its axes.

    Example:
        >>> from dalembert.mechanisms import Box
        >>> box = Box(1.0, 0.1, 0.1)
        >>> round(box.volume, 6), box.moments.round(6).tolist()
        (0.01, [0.001667, 0.084167, 0.084167])

    """

    x: float
    y: float
    z: float

    @property
    def volume(self) -> float:
        """The volume."""
        return self.x * self.y * self.z

    @property
    def moments(self) -> np.ndarray:
        """The principal moments of inertia of one unit of mass."""
        x, y, z = self.x**2, self.y**2, self.z**2
        return np.array([y + z, x + z, x + y]) / 12

    @cached_property
    def vertices(self) -> np.ndarray:
        """The eight corners."""
        return np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * [self.x, self.y, self.z]

    @cached_property
    def faces(self) -> list[Polygon]:
        """The six faces."""
        return [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


@dataclass(frozen=True)
class Cylinder(Solid):
    """A cylinder, such as a disk or a wheel, about its third axis.

    Example:
        >>> from dalembert.mechanisms import Cylinder
        >>> Cylinder(0.1, 0.02).moments.round(6).tolist()
        [0.002533, 0.002533, 0.005]

    """

    radius: float
    length: float

    @property
    def volume(self) -> float:
        """The volume."""
        return float(np.pi * self.radius**2 * self.length)

    @property
    def moments(self) -> np.ndarray:
        """The principal moments of inertia of one unit of mass."""
        across = self.radius**2 / 4 + self.length**2 / 12
        return np.array([across, across, self.radius**2 / 2])

    @cached_property
    def vertices(self) -> np.ndarray:
        """Both centres of the ends, and their circles."""
        ends = [side * self.length / 2 for side in (-1, 1)]
        return np.concatenate([[(0.0, 0.0, end) for end in ends], *(_circle(self.radius, end) for end in ends)])

    @cached_property
    def faces(self) -> list[Polygon]:
        """The sectors of both ends and of the side."""
        low, high = _ring(2), _ring(2 + SECTORS)
        around = [(k, (k + 1) % SECTORS) for k in range(SECTORS)]
        sides = [(low[i], low[j], high[j], high[i]) for i, j in around]
        return [*((1, high[i], high[j]) for i, j in around), *((0, low[j], low[i]) for i, j in around), *sides]

    @cached_property
    def outlines(self) -> list[Polygon]:
        """Both ends, each with a radius that shows how it turns."""
        return [(end, *ring, ring[0]) for end, ring in ((0, _ring(2)), (1, _ring(2 + SECTORS)))]

    @cached_property
    def dark(self) -> frozenset[int]:
        """Every other quarter."""
        return _quarters(3 * SECTORS)


@dataclass(frozen=True)
class Sphere(Solid):
    """A ball.

    Example:
        >>> from dalembert.mechanisms import Sphere
        >>> Sphere(0.1).moments.round(6).tolist()
        [0.004, 0.004, 0.004]

    """

    radius: float

    @property
    def volume(self) -> float:
        """The volume."""
        return float(4 / 3 * np.pi * self.radius**3)

    @property
    def moments(self) -> np.ndarray:
        """The principal moments of inertia of one unit of mass."""
        return np.full(3, 0.4 * self.radius**2)

    @cached_property
    def vertices(self) -> np.ndarray:
        """Both poles, and circles of latitude between them."""
        latitudes = np.pi * np.arange(1, SECTORS // 2) / (SECTORS // 2) - np.pi / 2
        poles = [(0.0, 0.0, side * self.radius) for side in (-1, 1)]
        return np.concatenate([poles, *(_circle(self.radius * np.cos(x), self.radius * np.sin(x)) for x in latitudes)])

    @property
    def _circles(self) -> list[list[int]]:
        """From south to north."""
        return [[0] * SECTORS, *(_ring(2 + SECTORS * k) for k in range(SECTORS // 2 - 1)), [1] * SECTORS]

    @cached_property
    def faces(self) -> list[Polygon]:
        """Between circles of latitude and longitude; triangles at the poles."""
        found = []
        for low, high in itertools.pairwise(self._circles):
            for i in range(SECTORS):
                j = (i + 1) % SECTORS
                found.append(tuple(dict.fromkeys((low[i], low[j], high[j], high[i]))))
        return found

    @cached_property
    def outlines(self) -> list[Polygon]:
        """Three great circles."""
        circles = self._circles
        meridians = [
            tuple([ring[k] for ring in circles] + [ring[k + SECTORS // 2] for ring in reversed(circles[1:-1])])
            for k in (0, SECTORS // 4)
        ]
        return [tuple(circles[SECTORS // 4]), *meridians]

    @cached_property
    def dark(self) -> frozenset[int]:
        """Every other octant."""
        half = SECTORS * SECTORS // 4
        return frozenset(k for k in range(2 * half) if (k in _quarters(2 * half)) != (k < half))
