"""Constrained mechanics in phase space (q, p).

    q' = H_p,   p' = -H_q + force - g_q^T lam - k_v^T psi,   0 = g(t, q),   0 = k(t, q, v)

`Hamiltonian` and `Lagrangian` differ only in how they state v(t,q,p) = H_p, -H_q and the energy. Without k these are (3.1a,b,c)
of Jay (1996). The nonholonomic reaction is -(dk/dv)^T psi (Chetaev's rule where k is nonlinear in v), also where k is stated in
p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic import from_column
from dalembert.systems._model import call_model, vector_expression
from dalembert.systems._system import System


class MechanicalSystem(System):
    """Base class of `Hamiltonian` and `Lagrangian`; not made directly.

    Beside the functions of every `System` (with y = q, z = p): H, H_p, H_q, force (t,q,p), H_pp (t,q,p) and k_v (t,q,p).
    """

    kind = "mechanical system"
    starts_from = ("q0", "v0", "p0")
    matrices = System.matrices | {"H_pp", "L_vv", "k_v"}

    def __init__(self, dim: int, params: Mapping[str, Any] | None) -> None:
        if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1:
            raise ModelError(f"dim is the number of coordinates q, a positive integer; got {dim!r}")
        self.dim = int(dim)
        super().__init__(params, (("q", self.dim), ("p", self.dim)))
        self._q, self._p = self._y, self._z
        self._v = self._symbols["v"] = ca.SX.sym("v", self.dim)

    def _derive_mechanics(
        self,
        *,
        energy: str,
        H: ca.SX,
        H_p: ca.SX,
        minus_H_q: ca.SX,
        holonomic: Callable | None,
        nonholonomic: Callable | None,
        force: Callable | None,
    ) -> None:
        """Derive all functions of (t, q, p) from the energy, the velocity and the conservative force."""
        q, p, v = self._q, self._p, self._v
        visible = {"t": from_column(self._t)[0], "q": from_column(q)}
        g = self._constraints("holonomic", holonomic, visible, self.dim)
        moving = {**visible, "v": from_column(v), "p": from_column(p)}
        k_of_v = self._constraints("nonholonomic", nonholonomic, moving, self.dim - g.shape[0])
        k = ca.substitute(k_of_v, v, H_p)
        H_pp = ca.jacobian(H_p, p)
        k_v = ca.substitute(ca.jacobian(k_of_v, v), v, H_p)
        if ca.depends_on(k_of_v, p):
            k_v += solve_symmetric(H_pp, ca.substitute(ca.jacobian(k_of_v, p), v, H_p).T).T
        if force is None:
            applied = ca.SX.zeros(self.dim, 1)
        else:
            arguments = {**moving, "v": from_column(H_p)}
            applied = vector_expression("force", call_model("force", force, arguments, self.parameters), self.dim)
        lam, psi = self._multiplier_symbols(g, k)
        reaction = -ca.jacobian(g, q).T @ lam
        self._define("H", "t y z", H)
        self._define("H_p", "t y z", H_p)
        self._define("H_q", "t y z", -minus_H_q)
        self._define("H_pp", "t y z", H_pp)
        self._define("force", "t y z", applied)
        self._define("k_v", "t y z", k_v)
        self._derive(v=H_p, f=minus_H_q + applied - k_v.T @ psi, r=reaction, g=g, k=k)
        self.described = {
            "H": energy,
            "H_p": "the velocity H_p",
            "H_q": "the derivative H_q",
            "force": "force",
            "g": "holonomic",
            "G": "the derivative of holonomic",
        }
        if self.n_nonholonomic:
            self.described |= {"k": "nonholonomic", "k_v": "the derivative of nonholonomic"}

    @property
    def _size(self) -> str:
        return f"{self.dim} coordinates"


def solve_symmetric(M: ca.SX, rhs: ca.SX) -> ca.SX:
    """M^-1 rhs for a symmetric M, as straight-line sparse LDL^T; by QR if M has zeros on its diagonal."""
    if M.sparsity().is_diag():
        return rhs / ca.repmat(ca.diag(M), 1, rhs.shape[1])
    if any(not M.sparsity().has_nz(i, i) for i in range(M.shape[0])):
        return ca.solve(M, rhs)
    D, LT, permutation = ca.ldl(M)
    return ca.ldl_solve(rhs, D, LT, permutation)
