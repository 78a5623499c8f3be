"""A point of the motion in numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dalembert.contact._collision_times import BEHIND, ROUND_OFF
from dalembert.systems import MechanicalSystem


@dataclass(frozen=True, eq=False)
class Here:
    """Where the motion stands: `here("phi_q")` is the value there of the system's function phi_q."""

    system: MechanicalSystem
    theta: np.ndarray
    t: float
    q: np.ndarray
    p: np.ndarray

    @classmethod
    def of(cls, system: MechanicalSystem, theta: np.ndarray, t: float, state: np.ndarray) -> Self:
        """The point of a state (q, p)."""
        return cls(system, theta, t, *np.split(state, 2))

    def __call__(self, name: str, **more: np.ndarray) -> np.ndarray:
        return self.system.at(name, {"t": self.t, "y": self.q, "z": self.p, **more}, self.theta)

    def on(self, system: MechanicalSystem) -> Self:
        """The same point for another system with these coordinates, such as the one in contact."""
        return replace(self, system=system)

    def moving(self, p: np.ndarray) -> Self:
        """The same point with another momentum."""
        return replace(self, p=p)

    @property
    def speed(self) -> float:
        """sqrt(p^T H_pp p), in the units of an approach, phi_dot / sqrt(grad phi^T H_pp grad phi)."""
        return float(np.sqrt(max(self.p @ self("H_pp") @ self.p, 0.0)))

    def rests_on(self, wall: int, h: float) -> bool:
        """Whether a wall touches and will after a time h, as a foot that a table did not need to stand."""
        phi, rate, blur = (abs(self(name)[wall]) for name in ("phi", "phi_dot", "phi_rounding"))
        return bool(max(phi, h * rate) <= BEHIND * ROUND_OFF * blur)
