"""Differential-algebraic equations of index 2 in Hessenberg form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, UnsupportedSystem, is_one_of
from dalembert.symbolic import from_column
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._lagrangian import Lagrangian
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._model import call_model, check_dimensions, vector_expression
from dalembert.systems._system import System


class IndexTwoDAE(System):
    """y' = f_1(t,y) + f_2(t,y,z) + ... + f_5(t,y,z), 0 = g(t,y), with g_y f_z invertible.

    S. K. Hilden, Numerical methods for nonholonomic mechanics (2009), (2.16), (2.17). The state is y; the algebraic variables z
    follow from the hidden constraint 0 = g_t + g_y f(t,y,z), and have as many components as g. The decomposition into up to
    five `parts` matters to `da.LobattoSPARK`, which treats each of them with coefficients of its own; other methods take their
    sum. `z0` is a guess where z enters nonlinearly: it chooses the branch.

    Example:
        >>> import dalembert as da
        >>> growth = da.IndexTwoDAE(                                  # (2.28) of Hilden: y = (e^t, e^-2t), z = e^2t
        ...     parts=[lambda y, z: [y[0] * y[1] ** 2 * z[0] ** 2, y[0] ** 2 * y[1] ** 2 - 3 * y[1] ** 2 * z[0]]],
        ...     g=lambda y: [y[0] ** 2 * y[1] - 1], dim_y=2, dim_z=1)
        >>> state = da.consistent(growth, y0=[1, 1], z0=[1])
        >>> bool(abs(state.z[0] - 1) < 1e-14)
        True

    """

    kind = "DAE of index 2"
    served_by = 'da.LobattoSPARK(stages), da.SRK("gauss", stages) or da.RadauIIA(stages)'
    starts_from = ("", "y0")
    guesses = ("lam0", "z0")

    @one_at_a_time
    def __init__(
        self, *, parts: Sequence[Callable], g: Callable, dim_y: int, dim_z: int, params: Mapping[str, Any] | None = None
    ) -> None:
        check_dimensions(dim_y=dim_y, dim_z=dim_z)
        if not isinstance(parts, (list, tuple)) or not 1 <= len(parts) <= 5:
            raise ModelError("parts is a list of one to five functions f_1(t, y), f_2(t, y, z), ..., whose sum is y'")
        super().__init__(params, (("", 0), ("y", int(dim_y))))
        visible = {"t": from_column(self._t)[0], "y": from_column(self._z)}
        constraint = self._constraints("g", g, visible, int(dim_y))
        if constraint.shape[0] != dim_z:
            raise ModelError(
                f"g returned {constraint.shape[0]} constraints for {dim_z} algebraic variables z; they must be as many"
            )
        _, z = self._multiplier_symbols(ca.SX(0, 1), constraint)
        visible["z"] = from_column(z)
        values = []
        for m, part in enumerate(parts, start=1):
            values.append(vector_expression(f"f_{m}", call_model(f"f_{m}", part, visible, self.parameters), int(dim_y)))
        self._assemble(values, constraint)

    def _assemble(self, parts: list[ca.SX], g: ca.SX) -> None:
        self.n_parts = len(parts)
        none = ca.SX(0, 1)
        self._derive(v=none, f=sum(parts[1:], parts[0]), r=ca.SX.zeros(self._z.shape[0], 1), g=none, k=g)
        self.described = {"k": "g"}
        for m, part in enumerate(parts, start=1):
            self._define("t z psi", **{f"f_{m}": part})
            self.described[f"f_{m}"] = f"f_{m}"

    def named_residuals(self, residuals: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The constraint is called g."""
        return {"g": residuals["k"]}

    def part_depends_on_z(self, m: int) -> bool:
        """Whether f_m contains the algebraic variables."""
        return bool(ca.depends_on(self._expressions[f"f_{m}"][1], self._symbols["psi"]))

    @classmethod
    def of(
        cls,
        system: MechanicalSystem,
        form: Literal["hamiltonian", "lagrangian"] = "hamiltonian",
        parts: tuple[int, int] = (1, 2),
    ) -> IndexTwoDAE:
        """A mechanical system with nonholonomic constraints alone as an index-2 DAE.

        In Hamiltonian form y = (q, p), (2.9), (2.10); in Lagrangian form y = (q, v), (2.6), (2.7). The algebraic variables are
        z = -psi. `parts` says which part f_m the equations of q and those of p or v go to; (1, 2) is (2.25).

        Example:
            >>> import numpy as np, dalembert as da
            >>> knife = da.Lagrangian(lambda q, v: v @ v / 2, dim=3,
            ...                       nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]])
            >>> da.IndexTwoDAE.of(knife)
            <IndexTwoDAE of 6 variables and 1 algebraic ones>

        """
        system = getattr(system, "system", system)  # a problem of the catalogue serves as well
        if not isinstance(system, MechanicalSystem):
            raise ModelError(f"IndexTwoDAE.of takes a da.Hamiltonian or a da.Lagrangian; got {type(system).__name__}")
        if system.n_holonomic or not system.n_nonholonomic:
            raise UnsupportedSystem("only systems with nonholonomic constraints alone are DAEs of index 2")
        if is_one_of(form, "lagrangian") and not isinstance(system, Lagrangian):
            raise UnsupportedSystem('form="lagrangian" needs a da.Lagrangian')
        if not is_one_of(form, "hamiltonian", "lagrangian"):
            raise ModelError(f'form is "hamiltonian" or "lagrangian"; got {form!r}')
        if not isinstance(parts, tuple) or len(parts) != 2 or not all(m in (1, 2, 3, 4, 5) for m in parts):
            raise ModelError(f"parts are two numbers from 1 to 5, for the equations of q and of p; got {parts!r}")
        n = system.dim
        self = cls.__new__(cls)
        System.__init__(self, system.params, (("", 0), ("y", 2 * n)))
        t, theta, (q, w) = self._t, self.parameters.theta, ca.vertsplit(self._z, [0, n, 2 * n])
        p = system.function("L_v")(t, q, w, theta) if form == "lagrangian" else w

        def at(name: str, *arguments: ca.SX) -> ca.SX:
            return ca.sparsify(system.function(name)(t, q, p, *arguments, theta))

        k = at("k")
        _, z = self._multiplier_symbols(ca.SX(0, 1), k)
        rate, force = at("v"), at("f", -z)
        if form == "lagrangian":
            drift = ca.jacobian(p, t) + ca.jacobian(p, q) @ rate
            force = ca.solve(ca.jacobian(p, w), force - drift)
        values = [ca.SX.zeros(2 * n, 1) for _ in range(max(parts))]
        for m, half in zip(parts, (ca.vertcat(rate, ca.SX(n, 1)), ca.vertcat(ca.SX(n, 1), force)), strict=True):
            values[m - 1] += half
        self._assemble(values, k)
        self._set_energy(at("H"))
        return self

    @property
    def _size(self) -> str:
        return f"{self.state_blocks[1][1]} variables and {self.n_nonholonomic} algebraic ones"

    def __repr__(self) -> str:
        parameters = f", params {', '.join(self.parameters.values)}" if self.parameters.values else ""
        return f"<{type(self).__name__} of {self._size}{parameters}>"
