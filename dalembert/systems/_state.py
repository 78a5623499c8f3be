"""A state of a system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class State:
    """A state of a system with everything that follows from it: `q`, `p` and `v`, or `y` and `z`; `lam`, `psi`, `residuals`."""

    t: float
    first: np.ndarray
    """q of a mechanical system, y of an ODAE, nothing of an index-2 DAE."""
    second: np.ndarray
    """p of a mechanical system, z of an ODAE, y of an index-2 DAE."""
    v: np.ndarray
    lam: np.ndarray
    psi: np.ndarray
    residuals: dict[str, np.ndarray]
    theta: np.ndarray
    names: tuple[str, str]
    """Of the two blocks."""
    fingerprint: str = ""
    """Of the model to which the state belongs."""
    keeps_velocity: bool = False
    """Whether it was made from a velocity, which a run with other masses then keeps; else that keeps the momentum."""

    def __repr__(self) -> str:
        blocks = zip(self.names, (self.first, self.second), strict=True)
        shown = [
            f"{name} = {np.array2string(values, precision=4, threshold=6, edgeitems=3)}" for name, values in blocks if name
        ]
        return f"<State at t = {self.t:g}: {', '.join(shown)}>".replace("\n", "")

    def copy(self) -> State:
        """The same numbers in arrays of their own."""
        own = {name: getattr(self, name).copy() for name in ("first", "second", "v", "lam", "psi", "theta")}
        return replace(self, residuals={name: value.copy() for name, value in self.residuals.items()}, **own)

    @property
    def q(self) -> np.ndarray:
        """The configuration."""
        return self.first

    @property
    def p(self) -> np.ndarray:
        """The momentum."""
        return self.second

    @property
    def y(self) -> np.ndarray:
        """The differential variables y of an ODAE or of an index-2 DAE; the configuration of a mechanical system."""
        return self.second if self.names[1] == "y" else self.first

    @property
    def z(self) -> np.ndarray:
        """The variables z: of an ODAE; the algebraic ones of an index-2 DAE; the momentum of a mechanical system."""
        return self.psi if self.names[1] == "y" else self.second

    @property
    def packed(self) -> np.ndarray:
        """All variables in one vector."""
        return np.concatenate([self.first, self.second])

    @property
    def multipliers(self) -> np.ndarray:
        """lam and psi in one vector."""
        return np.concatenate([self.lam, self.psi])

    @property
    def values(self) -> dict[str, Any]:
        """The arguments of a system's functions here; y0 and z0, the beginning of a step, are this state too."""
        blocks = {"y": self.first, "z": self.second, "y0": self.first, "z0": self.second}
        return {"t": self.t, "lam": self.lam, "psi": self.psi, **blocks}
