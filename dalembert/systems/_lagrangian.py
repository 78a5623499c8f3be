"""Systems given by a Lagrangian, and their Legendre transform."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import casadi as ca

from dalembert.errors import ModelError
from dalembert.symbolic import from_column
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._mechanical import GivenModel, MechanicalSystem, solve_symmetric
from dalembert.systems._model import call_model, scalar_expression


class Lagrangian(MechanicalSystem):
    """A system d/dt L_v = L_q + force - g_q^T lam - k_v^T psi, 0 = g(t, q), 0 = k(t, q, v), given by L, g and k.

    `L`, `holonomic` (g), `nonholonomic` (k) and `force` are NumPy functions of the arguments that they name, out of `t`, `q`,
    `v` and the names in `params`. k need not be linear in v. L must be quadratic in v, L = v^T M(t,q) v / 2 + a(t,q)^T v -
    U(t,q); the mass matrix M may depend on q. The Legendre transform p = L_v, v = M^-1 (p - a), H = p^T v - L is derived
    symbolically.

    `unilateral` (phi) with `restitution`, `friction` with `slip`, lists of functions and redundant rows are those of
    `da.Hamiltonian`.

    Example:
        >>> import numpy as np, dalembert as da
        >>> cart_pendulum = da.Lagrangian(
        ...     lambda q, v, g: v[0] ** 2 + v[0] * v[1] * np.cos(q[1]) + v[1] ** 2 / 2 + g * np.cos(q[1]),
        ...     dim=2, params={"g": 9.81})
        >>> cart_pendulum
        <Lagrangian of 2 coordinates, params g>

    """

    kind = "Lagrangian system"

    @one_at_a_time
    def __init__(self, L: Callable, dim: int, *, params: Mapping[str, Any] | None = None, **model: Unpack[GivenModel]) -> None:
        super().__init__(dim, params)
        t, q, p, v = self._t, self._q, self._p, self._v
        arguments = {"t": from_column(t)[0], "q": from_column(q), "v": from_column(v)}
        lagrangian = scalar_expression("the Lagrangian", call_model("the Lagrangian", L, arguments, self.parameters))
        L_v, L_q = ca.gradient(lagrangian, v), ca.gradient(lagrangian, q)
        M = ca.jacobian(L_v, v)
        if ca.depends_on(M, v):
            raise ModelError(
                "the Lagrangian is not quadratic in v, so v(q, p) has no closed form: state the system by its Hamiltonian, "
                "da.Hamiltonian(H, dim, ...)"
            )
        if ca.sprank(M) < self.dim:
            raise ModelError("the mass matrix L_vv is singular: every velocity v[i] must enter the Lagrangian quadratically")
        at_rest = ca.substitute(L_v, v, ca.SX.zeros(self.dim, 1))
        velocity = solve_symmetric(M, p - at_rest)
        H = ca.dot(p, velocity) - ca.substitute(lagrangian, v, velocity)
        self._derive_mechanics("the Lagrangian's energy", H, velocity, ca.substitute(L_q, v, velocity), model)
        self._define("t y v", L=lagrangian, L_q=L_q, L_v=L_v)
        self._define("t y", L_vv=M)
