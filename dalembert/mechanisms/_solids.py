"""Shapes of bodies, which give volume, moments of inertia about their own axes, and a picture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import numpy as np

from dalembert.errors import ModelError
from dalembert.systems._model import one_line


@dataclass(frozen=True)
class Solid(ABC):
    """A homogeneous solid about its centre; its axes are principal axes."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (isinstance(value, (int, float, np.floating)) and np.isfinite(value) and value > 0):
                raise ModelError(f"the {field.name} of a {type(self).__name__.lower()} must be positive; got {one_line(value)}")

    @property
    @abstractmethod
    def volume(self) -> float:
        """The volume."""

    @property
    @abstractmethod
    def moments(self) -> np.ndarray:
        """The principal moments of inertia of one unit of mass."""

    @abstractmethod
    def outlines(self) -> list[np.ndarray]:
        """Closed polygons in body axes that show the solid, (points, 3) each."""


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

    def outlines(self) -> list[np.ndarray]:
        """The six faces."""
        half = np.array([self.x, self.y, self.z]) / 2
        square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=float)
        faces = []
        for axis in range(3):
            for side in (-1.0, 1.0):
                face = np.insert(square, axis, side, axis=1)
                faces.append(face * half)
        return faces


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

    def outlines(self) -> list[np.ndarray]:
        """Both ends, each with a radius that shows how it turns."""
        turn = np.linspace(0, 2 * np.pi, 25)
        circle = self.radius * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
        end = np.concatenate([np.zeros((1, 3)), circle])
        return [end + np.array([0.0, 0.0, side * self.length / 2]) for side in (-1, 1)]


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

    def outlines(self) -> list[np.ndarray]:
        """Three great circles."""
        turn = np.linspace(0, 2 * np.pi, 25)[:-1]
        flat = self.radius * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
        return [np.roll(flat, k, axis=1) for k in range(3)]
