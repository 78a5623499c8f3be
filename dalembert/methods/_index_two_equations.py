"""Any system without holonomic constraints as y' = sum_m f_m(t, y, z), 0 = g(t, y), which methods for index-2 DAEs take.

For a mechanical system y = (q, p), the parts are f_1 = (H_p, 0) and f_2 = (0, -H_q + force - k_v^T psi), (2.25) of Hilden
(2009), and g is k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import UnsupportedSystem
from dalembert.methods._step import Step
from dalembert.systems import BoundSystem, IndexTwoDAE, System


def check_index_two(method: object, system: System) -> None:
    """Refuse systems that are not of index 2."""
    if system.n_holonomic or "momentum" in system.function_names:
        raise UnsupportedSystem(
            f"{method} serves nonholonomic constraints and DAEs of index 2, without holonomic constraints: use "
            "da.GaussLobattoSPARK(stages) or da.GaussLobattoEMPRK(stages)"
        )


class IndexTwoForm:
    """The unknown stages of y, the parts of its rate and the constraint, for one step."""

    def __init__(self, system: BoundSystem, step: Step, nodes: Any, *, anchored: bool) -> None:
        self.system, self.step = system, step
        self.dim = system.definition.state_blocks[0][1]
        self.V = step.stage_increments("V", of=self._name(0), nodes=nodes, per_h=True, anchored=anchored)
        self.W = step.stage_increments("W", of=self._name(1), nodes=nodes, anchored=anchored)
        self.M = step.stage_impulses("M", of="psi", nodes=nodes)

    def _name(self, block: int) -> str:
        return self.system.definition.state_blocks[block][0]

    @property
    def Y(self) -> np.ndarray:
        """The stages Y_i = y_0 + h (V_i, W_i / h), one row each."""
        first, second = (self.step.initial(self._name(block)) for block in (0, 1))
        return np.concatenate([first + self.step.h * self.V, second + self.W], axis=1)

    @property
    def Z(self) -> np.ndarray:
        """The stages of the algebraic variables, M_i / h."""
        return self.M / self.step.h

    @property
    def y0(self) -> np.ndarray:
        """The state."""
        return np.concatenate([self.step.initial(self._name(block)) for block in (0, 1)])

    def parts(self, T: Any, Y: Any, Z: Any) -> list[np.ndarray]:
        """f_1, f_2, ... at the stages."""
        definition = self.system.definition
        if isinstance(definition, IndexTwoDAE):
            return [getattr(self.system, f"f_{m}")(T, Y, Z) for m in range(1, definition.n_parts + 1)]
        first, second = self._split(Y)
        v, f = self.system.v(T, first, second), self.system.f(T, first, second, Z)
        return [np.concatenate([v, 0 * f], axis=-1), np.concatenate([0 * v, f], axis=-1)]

    def f(self, T: Any, Y: Any, Z: Any) -> np.ndarray:
        """The sum of the parts."""
        parts = self.parts(T, Y, Z)
        return sum(parts[1:], parts[0])

    def g(self, T: Any, Y: Any) -> np.ndarray:
        """The constraint at the stages."""
        return self.system.k(T, *self._split(Y))

    def hidden(self, t: Any, y: Any, z: Any) -> np.ndarray:
        """g_t + g_y f at one point."""
        return self.system.hidden_rate(t, *self._split(y), np.zeros(0), z)

    def stages(self, rates: Any) -> None:
        """Demand Y_i = y_0 + h rates_i."""
        first, second = self._split(rates)
        self.step.equation(self.V, first)
        self.step.equation(self.W, self.step.h * second)

    def end(self, rate: Any) -> None:
        """y_1 = y_0 + h rate, with g(t_1, y_1) = 0 if the method says so (`step.at_end`)."""
        first, second = self._split(self.step.h * rate)
        self.step.result(**{self._name(0): first, self._name(1): second}, stage_lam=np.zeros(0), stage_psi=self.Z[-1])

    def constraint_at_end(self, rate: Any) -> None:
        """0 = g(t_1, y_1)."""
        self.step.at_end("k", self.step.t0 + self.step.h, *self._split(self.y0 + self.step.h * rate))

    def _split(self, Y: Any) -> tuple[Any, Any]:
        return Y[..., : self.dim], Y[..., self.dim :]
