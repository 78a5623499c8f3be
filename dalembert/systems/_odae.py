"""Overdetermined differential-algebraic equations, possibly nonlinear in their multipliers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca

from dalembert.errors import ModelError
from dalembert.symbolic import from_column
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._lagrangian import Lagrangian
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._model import call_model, check_dimensions, scalar_expression, vector_expression
from dalembert.systems._system import System


class ODAE(System):
    """y' = v(t,y,z), d/dt p(t,y,z) = f(t,y,z,psi) + r(t,y,z,lam), 0 = g(t,y), 0 = g_t + g_y v, 0 = k(t,y,z).

    L. O. Jay and B. Simeon, Consistent extensions of the symplectic Euler method for a class of overdetermined DAEs, (3.1),
    with the additional constraint k of S. Small and L. O. Jay (2011). f and r may be nonlinear in the multipliers psi and lam,
    which have as many components as k and g; `p` defaults to z. All functions are NumPy functions of the arguments that they
    name, out of those above and the names in `params`.

    `domain` returns numbers that must stay positive, such as a multiplier of a surface that can only push, or a speed under a
    friction law; besides t, y, z, lam and psi it may name y0 and z0, the state at the beginning of the step. A step that leaves
    the domain fails. `energy(t, y, z)` is what `run.energy` shows.

    Example:
        >>> import dalembert as da
        >>> growth = da.ODAE(                                     # (4.1) of Jay and Simeon: y = z = (e^2t, e^-t), lam = e^t
        ...     v=lambda z: [2 * z[0], -z[1]],
        ...     f=lambda y, z: [2 * y[0] * y[1] * z[0] * z[1] - y[0] * z[0] * z[1], z[0] - y[0] * z[1] ** 3],
        ...     r=lambda y, z, lam: [y[1] * z[0] * lam[0] ** 2, -(y[0] ** 0.5) * z[0] * z[1] ** 2 * lam[0]],
        ...     g=lambda y: [y[0] * y[1] ** 2 - 1],
        ...     dim_y=2, dim_z=2)
        >>> growth
        <ODAE of 2 + 2 variables, 1 holonomic constraint>
        >>> state = da.consistent(growth, y0=[1, 1], z0=[1, 1])
        >>> bool(abs(state.lam[0] - 1) < 1e-14)
        True

    """

    kind = "system of overdetermined DAEs"
    served_by = "da.SymplecticEuler(), da.GaussLobattoSPARK(stages) or da.GaussLobattoEMPRK(stages)"

    @one_at_a_time
    def __init__(
        self,
        *,
        v: Callable,
        f: Callable | None = None,
        r: Callable | None = None,
        g: Callable | None = None,
        k: Callable | None = None,
        p: Callable | None = None,
        dim_y: int,
        dim_z: int,
        domain: Callable | None = None,
        energy: Callable | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        check_dimensions(dim_y=dim_y, dim_z=dim_z)
        super().__init__(params, (("y", int(dim_y)), ("z", int(dim_z))))
        visible = {name: from_column(self._symbols[name]) for name in ("t", "y", "z")}
        visible["t"] = visible["t"][0]
        positions = {name: visible[name] for name in ("t", "y")}

        def value(role: str, function: Callable | None, arguments: Mapping[str, Any], size: int) -> ca.SX:
            if function is None:
                return ca.SX.zeros(size, 1)
            return vector_expression(role, call_model(role, function, arguments, self.parameters), size)

        constraints = {
            "g": self._constraints("g", g, positions, min(dim_y, dim_z)),
            "k": self._constraints("k", k, visible, dim_z),
        }
        lam, psi = self._multiplier_symbols(**constraints)
        forces = {
            "v": value("v", v, visible, dim_y),
            "f": value("f", f, {**visible, "psi": from_column(psi)}, dim_z),
            "r": value("r", r, {**visible, "lam": from_column(lam)}, dim_z),
        }
        for force, multiplier, symbol, constraint in (("r", "lam", lam, "g"), ("f", "psi", psi, "k")):
            if symbol.shape[0] and not all(ca.depends_on(forces[force], symbol[i]) for i in range(symbol.shape[0])):
                raise ModelError(
                    f"the constraints {constraint} have {symbol.shape[0]} multipliers {multiplier}, and {force} must depend on "
                    f"each of them: write {force}=lambda ..., {multiplier}: ..."
                )
        momentum = None if p is None else value("p", p, visible, dim_z)
        self._assemble(**forces, **constraints, p=momentum)
        if energy is not None:
            self._set_energy(scalar_expression("energy", call_model("energy", energy, visible, self.parameters)))
        if domain is not None:
            self._set_domain(domain, {**visible, "lam": from_column(lam), "psi": from_column(psi)})

    def _assemble(self, *, v: ca.SX, f: ca.SX, r: ca.SX, g: ca.SX, k: ca.SX, p: ca.SX | None) -> None:
        t, y, z = self._t, self._y, self._z
        self.described = {"v": "v", "f": "f", "r": "r", "g": "g", "G": "the derivative of g"}
        if k.shape[0]:
            self.described["k"] = "k"
        if p is None:
            self._derive(v=v, f=f, r=r, g=g, k=k)
            return
        p_z, drift = ca.jacobian(p, z), ca.jacobian(p, t) + ca.jacobian(p, y) @ v
        if ca.sprank(p_z) < z.shape[0]:
            raise ModelError("p_z is singular: every z[i] must enter the momentum p(t, y, z)")
        self._derive(v=v, f=f, r=r, g=g, k=k, z_dot=lambda force: ca.solve(ca.densify(p_z), force - drift))
        self._define("t y z", momentum=p)
        self.described["momentum"] = "p"

    def _set_domain(self, domain: Callable, visible: dict[str, Any]) -> None:
        taken = {"y0", "z0"} & set(self.parameters.values)
        if taken and taken & set(inspect.signature(domain).parameters):
            raise ModelError(f"domain names {taken.pop()!r}, the state at the beginning of the step: rename the parameter")
        for name in ("y", "z"):
            before = self._symbols[f"{name}0"] = ca.SX.sym(f"{name}0", self._symbols[name].shape[0])
            visible[f"{name}0"] = from_column(before)
        value = vector_expression("domain", call_model("domain", domain, visible, self.parameters))
        self._define("t y z lam psi y0 z0", domain=value)
        self.described["domain"] = "domain"

    @classmethod
    def of(cls, system: MechanicalSystem) -> ODAE:
        """A Hamiltonian or Lagrangian system in this form: z = p, or z = v with p(t, y, z) = L_v for a Lagrangian.

        Example:
            >>> import numpy as np, dalembert as da
            >>> da.ODAE.of(da.problems.double_pendulum().system)
            <ODAE of 4 + 4 variables, 2 holonomic constraints, params m1, m2, l1, l2, g>

        """
        system = getattr(system, "system", system)  # a problem of the catalogue serves as well
        if not isinstance(system, MechanicalSystem):
            raise ModelError(f"ODAE.of takes a da.Hamiltonian or a da.Lagrangian; got {type(system).__name__}")
        self = cls.__new__(cls)
        System.__init__(self, system.params, (("y", system.dim), ("z", system.dim)))
        t, y, z, theta = self._t, self._y, self._z, self.parameters.theta
        p = system.function("L_v")(t, y, z, theta) if isinstance(system, Lagrangian) else z

        def at(name: str, *arguments: ca.SX) -> ca.SX:
            return ca.sparsify(system.function(name)(t, y, *arguments, theta))

        g, k = at("g"), at("k", p)
        lam, psi = self._multiplier_symbols(g, k)
        v = z if isinstance(system, Lagrangian) else at("v", p)
        self._assemble(v=v, f=at("f", p, psi), r=at("r", p, lam), g=g, k=k, p=None if p is z else p)
        self._set_energy(at("H", p))
        return self
