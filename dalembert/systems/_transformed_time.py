"""Hamiltonian systems in a time of their own, tau, in which steps of constant size are short where the motion is fast.

E. Hairer, Variable time step integration with symplectic methods, Appl. Numer. Math. 25 (1997), 219-227; S. Reich, Backward
error analysis for numerical integrators, SIAM J. Numer. Anal. 36 (1999), 1549-1570; the transformation is Poincare's. With
dt = s dtau, s = 1/Q,

    K(q, t; p, e) = s(t, q, p) (H(t, q, p) + e),    q~ = (q, t), p~ = (p, e),    e_0 = -H(t_0, q_0, p_0)

is a Hamiltonian whose motion on K = 0, where it stays, is that of H with t' = s. Constraints g(t, q) = 0 stay what they are; a
symplectic method for K is one for H with steps of varying size.

Deviation from the print: time and energy are a canonical pair, (t, e), where the papers write H - H_0 with a constant H_0; H
and the constraints may depend on time, then.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedSystem
from dalembert.symbolic import from_column
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._consistent import unpack
from dalembert.systems._density import GIVE, density_and_rate
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._state import State
from dalembert.systems._system import System

MOST_NODES = 3000
"""How large the expression of K may be where the system's own density makes it so: a four-bar linkage has 300 nodes, Bricard's
mechanism 9,000, and its steps, with the second derivatives, were not compiled after minutes."""


def check_transformable(system: System) -> None:
    """Refuse systems that are not Hamiltonian, of which time transformations would not be."""
    if not isinstance(system, MechanicalSystem):
        raise UnsupportedSystem("only Hamiltonian and Lagrangian systems have a symplectic time transformation")
    forced = not system._expressions["force"][1].is_zero()
    kinds = {"nonholonomic constraints": system.n_nonholonomic, "forces without an energy": forced}
    kinds["unilateral constraints"] = system.n_unilateral
    found = [name for name, there in kinds.items() if there]
    if found:
        raise UnsupportedSystem(f"a system with {' and '.join(found)} is not symplectic: take da.ReversibleSteps(...) for it")


@kept
@one_at_a_time
def transformed(system: MechanicalSystem, density: Callable | None, least: float) -> TransformedTime:
    """A system in the time in which its steps are constant; made once."""
    return TransformedTime(system, density, least)


class TransformedTime(MechanicalSystem):
    """K = (H + e) / Q with the coordinates (q, t) and the momenta (p, e)."""

    kind = "Hamiltonian system in transformed time"

    def __init__(self, system: MechanicalSystem, density: Callable | None, least: float) -> None:
        super().__init__(system.dim + 1, system.params)
        n, theta = system.dim, self.parameters.theta
        (q, t), (p, e) = (ca.vertsplit(x, [0, n, n + 1]) for x in (self._q, self._p))
        Q, _ = density_and_rate(system, density, least)(t, q, p, theta)
        K = (system.function("H")(t, q, p, theta) + e) / Q
        if density is None and ca.n_nodes(K) > MOST_NODES:
            raise UnsupportedSystem(
                f"with the density of its own, symplectic steps of this system would compile for minutes: {GIVE}"
            )
        g = system.function("g")(t, q, theta) if system.n_holonomic else None
        holonomic = None if g is None else lambda: list(from_column(g))
        slopes = ca.gradient(K, self._p), -ca.gradient(K, self._q)
        self._derive_mechanics("the Hamiltonian in transformed time", K, *slopes, {"holonomic": holonomic})
        self.coordinate_names = (*system.coordinate_names, "t") if system.coordinate_names else ()
        self.row_names = dict(system.row_names)
        self.original, self._density = system, (density, least)

    def state(self, system: MechanicalSystem, state: State) -> State:
        """A state of the original system as one of this."""
        energy = float(system.at("H", state.values, state.theta)[0])
        packed = np.concatenate([state.q, [state.t], state.p, [-energy]])
        return unpack(self, 0.0, packed, state.theta, state.multipliers)

    def original_state(self, state: State) -> State:
        """A state of this system as one of the original."""
        values = state.packed[self.columns]
        return unpack(self.original, float(values[-2]), values[:-2], state.theta, state.multipliers)

    def density_at(self, state: State) -> float:
        """Q in a state of the original system."""
        Q, _ = density_and_rate(self.original, *self._density)(state.t, state.first, state.second, state.theta)
        return float(Q)

    @property
    def columns(self) -> np.ndarray:
        """Which variables q, p, t and e are, in this order."""
        n = self.dim - 1
        return np.array([*range(n), *range(n + 1, 2 * n + 1), n, 2 * n + 1])
