"""The names of what a state consists of, and of what follows from it, for one run, many runs and crossings alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dalembert.engine._records import Events, of_all_members
from dalembert.errors import InputError
from dalembert.systems import System


class Variables(ABC):
    """Arrays named as in the literature, cut out of `states`, whose last axis is the variables in the order of `blocks`.

    Those of a mechanical system are q and p, which are y and z for the methods; an ODAE has y and z, an index-2 DAE only y.
    """

    states: Any
    blocks: tuple[tuple[str, int], ...]
    system: System | None

    @abstractmethod
    def _observe(self, name: str) -> np.ndarray:
        """What follows from the states: "v", "energy", "lam", "psi", "g", "g_dot", "k" or "redundant"; axes as in `states`."""

    def _block(self, name: str) -> np.ndarray:
        first = 0
        for block, size in self.blocks:
            if block == name:
                return self.states[(*[slice(None)] * (self.states.ndim - 1), slice(first, first + size))]
            first += size
        variables = " and ".join(block for block, _ in self.blocks if block)
        raise AttributeError(f"there is no {name} here: the variables of this system are {variables}")

    @property
    def _index_two(self) -> bool:
        return self.blocks[1][0] == "y"

    @property
    def q(self) -> np.ndarray:
        """Configurations of a mechanical system, (..., n)."""
        return self._block("q")

    @property
    def p(self) -> np.ndarray:
        """Momenta of a mechanical system, (..., n)."""
        return self._block("p")

    @property
    def y(self) -> np.ndarray:
        """The variables y of an ODAE or of an index-2 DAE, (..., n); the configurations of a mechanical system."""
        return self._block("y" if self._index_two else self.blocks[0][0])

    @property
    def z(self) -> np.ndarray:
        """The variables z of an ODAE, the algebraic ones of an index-2 DAE, the momenta of a mechanical system, (..., n)."""
        return self.psi if self._index_two else self._block(self.blocks[1][0])

    @property
    def v(self) -> np.ndarray:
        """Velocities, (..., n)."""
        return self._observe("v")

    @property
    def energy(self) -> np.ndarray:
        """The Hamiltonian at every state, (...)."""
        if self.system is not None and "H" not in self.system.function_names:
            raise InputError("this system has no energy: state one with da.ODAE(..., energy=lambda y, z: ...)")
        return self._observe("energy")[..., 0]

    @property
    def lam(self) -> np.ndarray:
        """Multipliers of the holonomic constraints, from the hidden constraints of second order ((3.3e) of Jay 1996).

        Where walls are touched they are those beside the forces of contact; in runs by time stepping, whose contacts have
        impulses over whole steps, they are nan at the ends of steps in which a contact acted.
        """
        return self._observe("lam")

    @property
    def psi(self) -> np.ndarray:
        """Multipliers of the nonholonomic constraints, from the derivative of k along the motion."""
        return self._observe("psi")

    @property
    def lam_unique(self) -> bool:
        """Whether the motion determines the multipliers; those of redundant constraints are the ones of least norm."""
        return not np.any(np.nan_to_num(self._observe("redundant")))

    @property
    def residuals(self) -> dict[str, np.ndarray]:
        """How well the constraints hold: {"g": (..., m), "g_dot": (..., m)}, and "k" where there are nonholonomic ones."""
        k = self._observe("k")
        if self._index_two:
            return {"g": k}
        return {"g": self._observe("g"), "g_dot": self._observe("g_dot"), **({"k": k} if k.shape[-1] else {})}


class MemberReadings:
    """What a part of a mechanism does in all members of an ensemble; quantities by their names, as `run.of` has them."""

    def __init__(self, readings: Sequence[Any], padded: Callable[[list[np.ndarray]], np.ndarray]) -> None:
        self._readings, self._padded = readings, padded

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = [getattr(reading, name) for reading in self._readings]
        if found[0] is None:  # impacts, of runs that record none
            return None
        if isinstance(found[0], Events):
            return of_all_members(found)
        if callable(found[0]):
            return lambda *given: self._padded([of_member(*given) for of_member in found])
        return self._padded(found)
