"""Constrained mechanics in phase space (q, p).

    q' = H_p,   p' = -H_q + force - g_q^T lam - k_v^T psi,   0 = g(t, q),   0 = k(t, q, v),   phi(t, q) >= 0

`Hamiltonian` and `Lagrangian` differ only in how they state v(t,q,p) = H_p, -H_q and the energy. Without k these are (3.1a,b,c)
of Jay (1996). The nonholonomic reaction is -(dk/dv)^T psi (Chetaev's rule where k is nonlinear in v), also where k is stated in
p.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic import from_column
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._coulomb import coefficients, coulomb_forces, point_tangents, sliding
from dalembert.systems._matrices import Matrix, definite_pivots, is_finite, row_maxima, scaled, scaled_rows
from dalembert.systems._model import Constraints, call_model, one_line, scalar_expression, vector_expression
from dalembert.systems._rank import Parts, dependencies
from dalembert.systems._rounding import rounding
from dalembert.systems._system import System

GUARDS = ("guards", "guard_rate", "guard_rounding")


class GivenModel(TypedDict, total=False):
    """Keywords of all mechanical systems: what a user states besides the energy."""

    holonomic: Constraints
    nonholonomic: Constraints
    unilateral: Constraints
    restitution: Any
    friction: Any
    slip: Callable | None
    force: Callable | None


class MechanicalSystem(System):
    """Base class of `Hamiltonian` and `Lagrangian`; not made directly.

    Beside the functions of every `System` (with y = q, z = p): H, H_p, H_q, force (t,q,p), H_pp (t,q,p) and k_v (t,q,p). With
    unilateral constraints: phi, its derivatives phi_q and phi_t (t,q), phi_dot = phi_t + phi_q v (t,q,p), and the coefficients
    of restitution (speed), a function of the approach speeds -phi_dot. With friction: its coefficients friction (t,q), the
    velocities slip (t,q,p) with which contacts slide, `n_tangents` components each, and their derivative slip_v (t,q). Where
    friction depends on normal forces, friction_law (t,q,normal) are its coefficients, and friction those of impacts, N -> oo.
    """

    kind = "mechanical system"
    starts_from = ("q0", "v0", "p0")
    matrices = System.matrices | {"H_pp", "L_vv", "k_v", "phi_q", "slip_v"}
    n_tangents = 0
    symmetric = True
    """Whether the matrix of the multipliers is symmetric: not where contacts slide with friction."""

    def __init__(self, dim: int, params: Mapping[str, Any] | None) -> None:
        if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or not 1 <= dim < 2**31:
            raise ModelError(f"dim is the number of coordinates q, a positive integer; got {one_line(dim)}")
        self.dim = int(dim)
        super().__init__(params, (("q", self.dim), ("p", self.dim)))
        self._q, self._p = self._y, self._z
        self._v = self._symbols["v"] = ca.SX.sym("v", self.dim)

    def _derive_mechanics(self, role: str, H: ca.SX, H_p: ca.SX, minus_H_q: ca.SX, model: GivenModel) -> None:
        """Derive all functions of (t, q, p) from the energy, called `role`, the velocity and the conservative force."""
        q, p, v = self._q, self._p, self._v
        visible = {"t": from_column(self._t)[0], "q": from_column(q)}
        g = self._constraints("holonomic", model.get("holonomic"), visible)
        moving = {**visible, "v": from_column(v), "p": from_column(p)}
        k_of_v = self._constraints("nonholonomic", model.get("nonholonomic"), moving)
        k = ca.substitute(k_of_v, v, H_p)
        H_pp = ca.jacobian(H_p, p)
        k_v = ca.substitute(ca.jacobian(k_of_v, v), v, H_p)
        if ca.depends_on(k_of_v, p):
            k_v += solve_symmetric(H_pp, ca.substitute(ca.jacobian(k_of_v, p), v, H_p).T).T
        if (force := model.get("force")) is None:
            applied = ca.SX.zeros(self.dim, 1)
        else:
            arguments = {**moving, "v": from_column(H_p)}
            applied = vector_expression("force", call_model("force", force, arguments, self.parameters), self.dim)
        lam, psi = self._multiplier_symbols(g, k)
        reaction = -ca.jacobian(g, q).T @ lam
        self._define("t y z", H=H, H_p=H_p, H_q=-minus_H_q, H_pp=H_pp, force=applied, k_v=k_v)
        self._derive(v=H_p, f=minus_H_q + applied - k_v.T @ psi, r=reaction, g=g, k=k)
        self.described = {
            "H": role, "H_p": "the velocity H_p", "H_q": "the derivative H_q", "force": "force", "g": "holonomic",
            "G": "the derivative of holonomic",
        }  # fmt: skip
        if self.n_nonholonomic:
            self.described |= {"k": "nonholonomic", "k_v": "the derivative of nonholonomic"}
        self._derive_unilateral(model.get("unilateral"), model.get("restitution"), visible, H_p)
        self._derive_friction(model, moving, H_pp)

    def _derive_unilateral(self, unilateral: Constraints, restitution: Any, visible: Mapping[str, Any], v: ca.SX) -> None:
        if unilateral is None:
            if restitution is not None:
                raise ModelError("restitution says how a body bounces off unilateral=..., which this system does not have")
            return
        phi = self._constraints("unilateral", unilateral, visible)
        self.n_unilateral = phi.shape[0]
        phi_q, phi_t = ca.jacobian(phi, self._q), ca.jacobian(phi, self._t)
        self._symbols["speed"] = ca.SX.sym("speed", self.n_unilateral)
        phi_rounding = rounding(phi, [self._t, self._q, self.parameters.theta])
        self._define("t y", phi=phi, phi_q=phi_q, phi_t=phi_t, phi_rounding=phi_rounding)
        phi_dot = phi_t + phi_q @ v
        self._define("t y z", phi_dot=phi_dot, guards=phi, guard_rate=phi_dot, guard_rounding=phi_rounding)
        self._define("speed", restitution=self._restitution(restitution, self._symbols["speed"]))
        self.described |= {"phi": "unilateral", "phi_q": "the derivative of unilateral"}

    def _restitution(self, restitution: Any, speed: ca.SX) -> ca.SX:
        """The coefficient of each unilateral constraint at its approach speed."""
        role, count = "restitution", self.n_unilateral
        laws = np.ravel(np.array(1.0 if restitution is None else restitution, dtype=object))
        try:
            numbers = np.broadcast_to(np.array([0.0 if callable(law) else float(law) for law in laws]), count)
        except (TypeError, ValueError, OverflowError):
            numbers = np.full(count, np.nan)
        if not np.all((numbers >= 0) & (numbers <= 1)):
            raise ModelError(
                f"restitution is a number between 0 and 1, or a function of the approach speed `speed` and parameters, or a "
                f"list of {count} of them, one for each unilateral constraint; got {restitution!r}"
            )
        if not any(callable(law) for law in laws):
            return ca.SX(ca.DM(numbers))
        every = zip(np.broadcast_to(laws, count), numbers, from_column(speed), strict=True)
        values = [call_model(role, law, {"speed": s}, self.parameters) if callable(law) else e for law, e, s in every]
        return ca.vertcat(*(scalar_expression(role, value) for value in values))

    def _derive_friction(self, model: GivenModel, moving: Mapping[str, Any], H_pp: ca.SX) -> None:
        friction, slip = model.get("friction"), model.get("slip")
        if friction is None:
            if slip is not None:
                raise ModelError("slip is the velocity that friction opposes: give friction=, too, or leave slip= out")
            return
        if model.get("unilateral") is None:
            raise ModelError("friction acts on the walls unilateral=..., which this system does not have")
        count, v = self.n_unilateral, self._v
        normal = self._symbols["normal"] = ca.SX.sym("normal", count)
        mu = coefficients(friction, normal, {name: moving[name] for name in ("t", "q")}, self.parameters)
        self.constant_friction = not ca.depends_on(mu, ca.vertcat(self._t, self._q, normal))
        if slip is None:
            phi_q, phi_t = (self._expressions[name][1] for name in ("phi_q", "phi_t"))
            slip = point_tangents(phi_q, phi_t, H_pp, v)
            lengths = ca.vertcat(*(ca.norm_2(ca.densify(phi_q[k, :])) for k in range(count)))
            mu = ca.substitute(mu, normal, lengths * normal) * lengths  # of forces N grad phi
        else:
            slip = sliding(slip, mu, {name: moving[name] for name in ("t", "q", "v")}, v, self.parameters)
        self.n_tangents = slip.shape[0] // count
        if ca.depends_on(mu, normal):
            self._define("t y normal", friction_law=mu)
            mu = ca.substitute(mu, normal, ca.SX(count * [np.inf]))
        self._define("t y", friction=mu, slip_v=ca.jacobian(slip, v))
        self._define("t y z", slip=ca.substitute(slip, v, self._expressions["H_p"][1]))
        in_impacts = "friction under an infinite force N, as of impacts,"
        self.described |= {"friction": in_impacts if "friction_law" in self.function_names else "friction", "slip": "slip"}

    def null_space(self, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray, parts: Parts | None = None) -> Matrix:
        """Multipliers without an effect in this state; the `parts` of the rows may be known from another state."""
        if self.combines is not None or (parts is None and self.surely_independent(t, y, z, theta)):
            return np.zeros((self.n_multipliers, 0))
        N, factors = dependencies(self.matrix("hidden_z", t, y, z, theta=theta), parts=parts)
        return scaled_rows(N, factors)

    def surely_independent(self, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> bool:
        """Whether all constraints are independent in this state by a wide margin: a cheap test, before singular values."""
        if not self.n_multipliers:
            return True
        K = self.matrix("multiplier_matrix", t, y, z, theta=theta)
        scale = np.sqrt(np.abs(K.diagonal()))
        if not is_finite(K) or not np.min(scale) > 0 or self._has_vanishing_row(t, y, theta, scale):
            return False
        pivots = definite_pivots(scaled(K, 1 / scale, 1 / scale))
        return pivots is not None and bool(np.min(pivots) > 1e-3**2)

    def _has_vanishing_row(self, t: float, y: np.ndarray, theta: np.ndarray, scale: np.ndarray) -> bool:
        """Whether a row of G vanishes just here: one that is smaller than others may as well be in small units."""
        small = np.flatnonzero(scale[: self.n_holonomic] <= 1e-9 * np.max(scale))
        slopes = row_maxima(self.matrix("G", t, y, theta=theta)) if len(small) else np.zeros(0)
        for row in small:
            unit = np.zeros(self.n_holonomic)
            unit[row] = 1.0
            curvature = self.matrix("g_yy", t, y, unit, theta=theta)
            if not slopes[row] > 1e-9 * np.max(abs(curvature) @ np.abs(y)):
                return True
        return False

    @functools.cached_property
    def smooth(self) -> MechanicalSystem:
        """The same system without its unilateral constraints: what moves between impacts."""
        if "phi" not in self._expressions:
            return self
        free = copy.copy(self)
        free.__dict__.pop("fingerprint", None)
        free.n_unilateral = free.n_tangents = 0
        own = (
            "phi",
            "phi_q",
            "phi_t",
            "phi_dot",
            "phi_rounding",
            "restitution",
            "friction",
            "friction_law",
            "slip",
            "slip_v",
            *GUARDS,
        )
        free.described = {name: label for name, label in self.described.items() if name not in own}
        free._expressions = {name: value for name, value in self._expressions.items() if name not in own}
        if self.combines is not None:
            free.combines, free.uncombined = (self.combines[0].smooth, self.combines[1]), self.uncombined.smooth
        return free

    @kept
    @one_at_a_time
    def in_contact(self, touching: tuple[int, ...], sliding: tuple[int, ...] = ()) -> MechanicalSystem:
        """The same system while it touches some of its walls, which are holonomic constraints then, the last ones of g:

            p' = -H_q + force - g_q^T lam - k_v^T psi + phi_q^T N + slip_v^T T,   0 = phi(t, q),   N = -lam of phi

        With friction `sliding` says for each of them whether it slides, 1 or -1 as its slip velocity, or sticks, 0:

            T = -sliding mu N,   or   0 = slip(t, q, p), one of the last constraints k, and T = -psi.

        Where mu depends on N, T is a function of (t, q, p) instead (`coulomb_forces`), so that all stays linear in multipliers.

        This goes on as long as its `guards` are positive: phi of the other walls, N, and then for each wall with friction
        sliding slip, or mu N - T and mu N + T.
        """
        held = copy.copy(self)
        for derived in ("fingerprint", "smooth", "linear_in_multipliers"):
            held.__dict__.pop(derived, None)
        held._symbols, held._expressions, held.described = dict(self._symbols), dict(self._expressions), dict(self.described)
        rest, touched = [k for k in range(self.n_unilateral) if k not in touching], list(touching)
        given = {name: expression for name, (_, expression) in self._expressions.items()}
        g, n_g = ca.vertcat(given["g"], given["phi"][touched, :]), self.n_holonomic
        stuck = [k for k, slides in zip(touching, sliding, strict=False) if not slides]
        k, k_v = given["k"], given["k_v"]
        if stuck:
            k, k_v = ca.vertcat(k, given["slip"][stuck, :]), ca.vertcat(k_v, given["slip_v"][stuck, :])
        lam, psi = held._multiplier_symbols(g, k)
        reaction = -ca.jacobian(g, self._q).T @ lam
        f, moving = given["force"] - given["H_q"] - k_v.T @ psi, {i: slides for i, slides in enumerate(sliding) if slides}
        held._define("t y z", k_v=k_v)
        if "friction_law" in given and moving:
            walls, T = [touching[i] for i in moving], ca.SX.sym("T", len(moving))
            held._derive(v=given["H_p"], f=f + given["slip_v"][walls, :].T @ T, r=reaction, g=g, k=k)
            matrix, rhs = (held._expressions[f"multiplier_{part}"][1] for part in ("matrix", "rhs"))
            N = -solve_symmetric(matrix, rhs)[[n_g + i for i in moving]]
            own = self._symbols["normal"][walls]
            law = -ca.SX(list(moving.values())) * given["friction_law"][walls] * own
            f += given["slip_v"][walls, :].T @ coulomb_forces(law, own, N, T)
        else:
            for i, slides in moving.items():
                reaction += slides * given["friction"][touching[i]] * lam[n_g + i] * given["slip_v"][touching[i], :].T
        held._derive(v=given["H_p"], f=f, r=reaction, g=g, k=k)
        held.described |= {"r": "the contact force"} | ({"k": "nonholonomic or slip"} if stuck else {})
        if "friction_law" in given:
            held.described["f"] = "the force of friction"
        held.n_unilateral, held.symmetric = len(rest), not moving or "friction_law" in given
        for name in ("phi", "phi_q", "phi_t", "phi_dot", "phi_rounding", "friction", "slip", "slip_v"):
            if name in self._expressions:
                arguments, expression = self._expressions[name]
                held._expressions[name] = (arguments, expression[rest, :])
        for name, argument in (("restitution", "speed"), ("friction_law", "normal")):  # of their own walls
            if name in given:
                symbol = held._symbols[argument] = ca.SX.sym(argument, len(rest))
                values = ca.SX.zeros(self.n_unilateral, 1)
                values[rest] = symbol
                own_value = ca.substitute(given[name], self._symbols[argument], values)
                held._expressions[name] = (self._expressions[name][0], own_value[rest, :])
        held._guard(given, self._symbols.get("normal"), touching, sliding, n_g)
        names = dict(self.row_names)
        if "phi" in names:
            names["g"] = (*names.get("g", ()), *(names["phi"][k] for k in touching))
            names["phi"] = tuple(names["phi"][k] for k in rest)
        held.row_names = names
        held.uncombined = None if self.combines is None else self.uncombined.in_contact(touching, sliding)
        return held

    def _guard(
        self, given: Mapping[str, ca.SX], normal: ca.SX | None, touching: tuple[int, ...], sliding: tuple[int, ...], n_g: int
    ) -> None:
        """Define the functions that stay positive while a contact goes on, their time derivatives and their rounding."""
        own = {name: self._expressions[name][1] for name in ("multiplier_matrix", "multiplier_rhs", "v", "z_dot")}
        matrix, rhs = own["multiplier_matrix"], own["multiplier_rhs"]
        symbols = [self._t, self._q, self._p]
        multipliers = self.solved(matrix, rhs)
        forces, n_psi = -multipliers, self.n_holonomic + given["k"].shape[0]
        pressing, sticking = range(n_g, self.n_holonomic), range(n_psi, rhs.shape[0])
        blur = rounding(rhs[[*pressing, *sticking]], [*symbols, self.parameters.theta])
        blur /= ca.fabs(ca.diag(matrix)[[*pressing, *sticking]])
        N, blur_N = forces[n_g : self.n_holonomic], blur[: len(pressing)]
        guards, blurs, stuck = [N], [blur_N], 0
        for i, (wall, slides) in enumerate(zip(touching, sliding, strict=False)):
            mu, slip = given["friction"][wall], given["slip"][wall]
            if slides:
                guards.append(slides * slip)
                blurs.append(rounding(slip, [*symbols, self.parameters.theta]))
            else:
                T, blur_T = forces[n_psi + stuck], blur[len(pressing) + stuck]
                if normal is not None and "friction_law" in given:
                    mu = ca.substitute(given["friction_law"][wall], normal[wall], N[i])
                guards += [mu * N[i] - T, mu * N[i] + T]
                blurs += [mu * blur_N[i] + blur_T] * 2
                stuck += 1
        flow = ca.substitute(ca.vertcat(1, own["v"], own["z_dot"]), self._multipliers(), multipliers)
        values = ca.vertcat(*guards)
        phi, phi_dot, phi_rounding = (self._expressions[name][1] for name in ("phi", "phi_dot", "phi_rounding"))
        self._define(
            "t y z",
            guards=ca.vertcat(phi, values),
            guard_rate=ca.vertcat(phi_dot, ca.jtimes(values, ca.vertcat(*symbols), flow)),
            guard_rounding=ca.vertcat(phi_rounding, *blurs),
        )

    def solved(self, matrix: ca.SX, rhs: ca.SX) -> ca.SX:
        """The multipliers, whose matrix is symmetric but where contacts slide with friction."""
        return solve_symmetric(matrix, rhs) if self.symmetric else ca.solve(matrix, rhs)

    def _multipliers(self) -> ca.SX:
        return ca.vertcat(self._symbols["lam"], self._symbols["psi"])

    @property
    def n_guards(self) -> int:
        """How many functions stay positive until an event: those of walls that are not touched come first."""
        return self._expressions["guards"][1].shape[0]

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
