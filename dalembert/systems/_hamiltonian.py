"""Systems given by a Hamiltonian."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import casadi as ca

from dalembert.symbolic import from_column
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._mechanical import GivenModel, MechanicalSystem
from dalembert.systems._model import call_model, scalar_expression


class Hamiltonian(MechanicalSystem):
    """A system q' = H_p, p' = -H_q + force - g_q^T lam - k_v^T psi, 0 = g(t, q), 0 = k(t, q, v), given by H, g and k.

    `H`, `holonomic` (g), `nonholonomic` (k) and `force` are NumPy functions of the arguments that they name, out of `t`, `q`,
    `p` and the names in `params`; `nonholonomic` and `force` may also name the velocity `v`. H need be neither separable nor
    independent of time, k not linear in the velocities. A k(t, q, p) is read as k(t, q, v(q, p)): its reaction is -(dk/dv)^T
    psi.

    `unilateral` (phi) keeps the motion where phi(t, q) >= 0, one number or several; impacts on phi = 0 take a collision
    integrator such as `da.CVA()`. They are elastic, or have the coefficient `restitution`: a number between 0 and 1, one for
    each phi, or a function of the approach speed `speed` and of parameters. Constraints of one kind may also be stated by a
    list of functions.

    `friction` is Coulomb's coefficient: a number, one for each phi, or a function of `t`, `q`, parameters and, with `da.CVA` in
    a plane, of the normal force `N` of the wall that it belongs to, as in friction=lambda N: 0.1 * N**-0.15. It opposes the
    velocity `slip` with which a contact slides, a function of `t`, `q` and `v` that is linear in v: one component for each phi
    in the plane, two in space, as in slip=lambda q, v: v[0] + R * v[2] of a wheel; phi is a distance then, so that its force is
    that of Coulomb's law. A point mass in 2 or 3 Cartesian coordinates needs no slip. In a plane `da.CVA` finds its
    events; in space and for many contacts there is time stepping, `da.NonsmoothRattle()` or `da.MoreauJean()`.

    Rows of `holonomic` and `nonholonomic` may be redundant, as those of joints in a closed loop are: all of them hold along a
    run, their multipliers are those of least norm, and `run.lam_unique` is False. Rows that contradict each other are refused.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pendulum = da.Hamiltonian(
        ...     lambda q, p, m, g: p @ p / (2 * m) + m * g * q[1],
        ...     dim=2, holonomic=lambda q, l: [np.hypot(q[0], q[1]) - l], params={"m": 1.0, "g": 1.0, "l": 1.0})
        >>> pendulum
        <Hamiltonian of 2 coordinates, 1 holonomic constraint, params m, g, l>

    """

    kind = "Hamiltonian system"

    @one_at_a_time
    def __init__(self, H: Callable, dim: int, *, params: Mapping[str, Any] | None = None, **model: Unpack[GivenModel]) -> None:
        super().__init__(dim, params)
        arguments = {"t": from_column(self._t)[0], "q": from_column(self._q), "p": from_column(self._p)}
        energy = scalar_expression("the Hamiltonian", call_model("the Hamiltonian", H, arguments, self.parameters))
        H_p, H_q = ca.gradient(energy, self._p), ca.gradient(energy, self._q)
        self._derive_mechanics("the Hamiltonian", energy, H_p, -H_q, model)
