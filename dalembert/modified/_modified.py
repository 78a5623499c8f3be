"""Modified Hamiltonians: what a symplectic method conserves in place of the energy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import casadi as ca
import numpy as np

from dalembert.errors import InputError, UnsupportedSystem, is_one_of
from dalembert.modified._generating import generating_function, symmetric
from dalembert.modified._hamilton_jacobi import modified_terms, powers_of_h
from dalembert.modified._stationary import Field, lower_part
from dalembert.symbolic import as_column, from_column, merged, stack_columns
from dalembert.systems import Hamiltonian, MechanicalSystem
from dalembert.systems._model import naming

NEWTON_STEPS = 4
"""Newton steps written out for z(q, p): started with an error O(h), they leave one of O(h^16)."""
ITERATIONS = 50


def modified_hamiltonian(
    system: Any, method: Any, order: int, expansion: Literal["eta", "even"] = "eta"
) -> ModifiedHamiltonian:
    """The truncation H~^{O(h^order)} of the modified Hamiltonian of `method` on `system`, Theorem 2 of Pekarek & Murphey.

    One step of a symplectic method is, up to terms smaller than any power of h, the time-h flow of a Hamiltonian system with

        H~(q, p) = eta(q, p) + h H_2(q, p) + h^2 H_3(q, p) + ...                                                  (27)
        eta(q, p) = p.(qbar - q)/h - L_d(q, qbar, h)/h,   where qbar(q, p) solves  p = D_2 L_d(q, qbar, h)        (24), (22)

    The truncation leaves out h^order H_{order+1} and all that follows, so that its range along a run is O(h^order). The H_i
    follow from the Hamilton-Jacobi equation (28) by automatic differentiation, at any order. `expansion="eta"` is (27);
    `expansion="even"` expands eta as well and has pure powers of h around H, only even ones for a symmetric method,

        H~(q, p) = H(q, p) + h^2 H_3(q, p) + h^4 H_5(q, p) + ...

    which takes an even order (`order=4` is H + h^2 H_3) and is conserved far better for as many derivatives.

    `method` is a variational integrator, `da.Variational` or `da.LobattoGalerkin`, or a symplectic (partitioned) Runge-Kutta
    method, whose internal stages enter its generating function as SVA's do in (25). `system` (or a problem) must be
    free of forces and constraints and must not depend on t.

    D. Pekarek and T. D. Murphey, Int. J. Numer. Meth. Engng (2014), sections 3.2 to 3.4 and appendix A; E. Hairer,
    Ch. Lubich and G. Wanner, Geometric Numerical Integration, section IX.3.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pendulum = da.Lagrangian(lambda q, v: v @ v / 2 + np.cos(q[0]), dim=1)
        >>> method = da.Variational("SVC")
        >>> run = da.simulate(pendulum, method, q0=[1.0], p0=[0.0], h=0.1, steps=1000)
        >>> Ht = da.modified_hamiltonian(pendulum, method, order=4, expansion="even")
        >>> bool(np.ptp(Ht(run.q, run.p, 0.1)) < 1e-2 * np.ptp(run.energy))
        True

    """
    return ModifiedHamiltonian(system, method, order, expansion)


class ModifiedHamiltonian:
    """A truncated modified Hamiltonian H~(q, p, h), made by `modified_hamiltonian`.

    `original` is the system that it belongs to, `method` the method, `order` the power of h that is left out. States may be
    arrays with leading axes, such as those of a trajectory. `params` replaces parameters of the system.
    """

    def __init__(self, system: Any, method: Any, order: int, expansion: str) -> None:
        if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 1:
            raise InputError(f"order is the power of h that the truncation leaves out, a positive integer; got {order!r}")
        if not is_one_of(expansion, "eta", "even"):
            raise InputError(f'expansion is "eta" or "even"; got {expansion!r}')
        self.original: MechanicalSystem = getattr(system, "system", system)
        self.method, self.order, self.expansion = method, int(order), expansion
        if expansion == "eta":
            self._generating = generating_function(self.original, method)
            self.terms = modified_terms([self._generating.eta], self.order)
        else:
            generating = generating_function(self.original, method, powers=self.order - 1)
            if self.order % 2:
                raise InputError(f'expansion="even" has remainders of even order; got order={order}')
            if not symmetric(self.original, method):
                raise UnsupportedSystem(
                    f"{method} is not known to be symmetric, and only for symmetric methods odd powers of h vanish: "
                    'use expansion="eta"'
                )
            coefficients = powers_of_h(generating, self.order - 1)
            self._generating = coefficients[0].of
            self.terms = modified_terms(coefficients, self.order - 1, even=True)

    def __repr__(self) -> str:
        return f"<ModifiedHamiltonian of {self.method}, O(h^{self.order}), expansion {self.expansion!r}>"

    # -- numbers -------------------------------------------------------------------------------------------------------

    def __call__(self, q: Any, p: Any, h: float, params: Mapping[str, Any] | None = None) -> np.ndarray:
        """H~ at one state (a number) or at many (an array of their leading shape)."""
        return self._evaluate(self._value, q, p, h, params)[..., 0]

    def gradient(self, q: Any, p: Any, h: float, params: Mapping[str, Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives of H~ by q and by p, which are -p' and q' of the modified system."""
        both = self._evaluate(self._gradient, q, p, h, params)
        return both[..., : self.original.dim], both[..., self.original.dim :]

    def coefficients(self, q: Any, p: Any, h: float, params: Mapping[str, Any] | None = None) -> np.ndarray:
        """H_1, H_2, ... along the last axis, H~ = H_1 + h H_2 + h^2 H_3 + ..., where H_1 is eta or H."""
        return self._evaluate(self._coefficients, q, p, h, params)

    # -- the modified system -------------------------------------------------------------------------------------------

    def system(self, h: float, params: Mapping[str, Any] | None = None) -> Hamiltonian:
        """The Hamiltonian system q' = H~_p, p' = -H~_q of the truncation, with h as its parameter `step_size`.

        Here z(q, p), which is (qbar - q)/h with the internal variables, is written out as an expression: exactly where its
        equations are linear in z, as in the even expansion of a system with a quadratic kinetic energy, and by four Newton
        steps otherwise, which leaves an error O(h^16).
        """
        parameters, closed_form = self.original.parameters, self._closed_form
        step_size = "step_size" + "_" * ("step_size" in parameters.values)
        names = (*parameters.values, step_size)

        def H(q: Any, p: Any, **values: Any) -> Any:
            theta = stack_columns(np.ravel(np.array(values[name], dtype=object)) for name in parameters.values)
            return from_column(closed_form(as_column(q), as_column(p), as_column([values[step_size]]), theta))[0]

        values = parameters.unflatten(parameters.vector(params))
        return Hamiltonian(naming(("q", "p", *names), H), dim=self.original.dim, params={**values, step_size: _step_size(h)})

    # -- expressions ---------------------------------------------------------------------------------------------------

    @cached_property
    def explicit(self) -> bool:
        """Whether z(q, p) is given by `guess`, so that nothing is left to solve: as in the even expansion of quadratic H."""
        of = self._generating
        at_guess = ca.substitute(of.N_z, of.z, of.guess)
        residual = ca.Function("residual", [of.q, of.p, of.h, of.theta], [at_guess])
        n, size = self.original.dim, self.original.parameters.size
        samples = np.random.default_rng(1788).uniform(0.5, 1.5, (3, 2 * n + size))
        values = [np.asarray(residual(x[:n], x[n : 2 * n], 0.5, x[2 * n :])) for x in samples]
        return bool(np.max(np.abs(values)) < 1e-12) and not ca.depends_on(of.N_z, of.h)

    @cached_property
    def guess(self) -> ca.Function:
        """z at h = 0, exactly or nearly, as a function of (q, p, theta)."""
        of = self._generating
        return ca.Function("guess", [of.q, of.p, of.theta], [ca.densify(of.guess)])

    def at(self, q: ca.SX, p: ca.SX, z: ca.SX, h: ca.SX, theta: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """H~, its gradient (H~_q, H~_p), and the equations 0 = N_z for z, which are none if z is `explicit`."""
        of = self._generating
        z = self.guess(q, p, theta) if self.explicit else z
        N_z, N_zz = ca.substitute([of.N_z, of.N_zz], [of.q, of.p, of.z, of.h, of.theta], [q, p, z, h, theta])
        state = (q, p, z, lower_part(inverse(N_zz)), h, theta)
        return self._value(*state), self._gradient(*state), ca.SX(0, 1) if self.explicit else N_z

    @cached_property
    def _closed_form(self) -> ca.Function:
        """H~ as a function of (q, p, h, theta)."""
        of = self._generating
        state = [of.q, of.p, of.z, of.h, of.theta]
        newton = ca.Function("newton", state, [merged(of.z - inverse(of.N_zz) @ of.N_z)])
        W = ca.Function("W", state, [merged(lower_part(inverse(of.N_zz)))])
        z = of.guess
        for _ in range(NEWTON_STEPS if ca.depends_on(of.N_zz, of.z) else 1):
            z = newton(of.q, of.p, z, of.h, of.theta)
        value = self._value(of.q, of.p, z, W(of.q, of.p, z, of.h, of.theta), of.h, of.theta)
        return ca.Function("modified_hamiltonian", [of.q, of.p, of.h, of.theta], [merged(value)])

    # -- functions of (q, p, z, W, h, theta) ---------------------------------------------------------------------------

    def _function(self, value: ca.SX) -> ca.Function:
        of = self._generating
        return ca.Function("f", [of.q, of.p, of.z, lower_part(of.W), of.h, of.theta], [merged(ca.densify(value))])

    @cached_property
    def _truncation(self) -> Field:
        of = self._generating
        return Field(of, sum((H.value * of.h**k for k, H in enumerate(self.terms)), ca.SX(0)))

    @cached_property
    def _value(self) -> ca.Function:
        return self._function(self._truncation.value)

    @cached_property
    def _gradient(self) -> ca.Function:
        return self._function(ca.vertcat(self._truncation.D_1, self._truncation.D_2))

    @cached_property
    def _coefficients(self) -> ca.Function:
        return self._function(ca.vertcat(*(H.value for H in self.terms)))

    @cached_property
    def _equations(self) -> ca.Function:
        of = self._generating
        results = [ca.densify(part) for part in (of.N_z, of.N_zz)]
        return ca.Function("equations", [of.q, of.p, of.z, of.h, of.theta], [merged(result) for result in results])

    def _evaluate(self, function: ca.Function, q: Any, p: Any, h: float, params: Mapping[str, Any] | None) -> np.ndarray:
        q, p, n = np.asarray(q, dtype=float), np.asarray(p, dtype=float), self.original.dim
        if q.shape != p.shape or q.shape[-1:] != (n,):
            raise InputError(f"q and p must both end in an axis of {n} coordinates; got shapes {q.shape} and {p.shape}")
        if not (np.all(np.isfinite(q)) and np.all(np.isfinite(p))):
            raise InputError("q and p must be finite: leave out the states after a run has failed")
        h, theta = _step_size(h), self.original.parameters.vector(params)
        if q.size == 0:
            return np.zeros((*q.shape[:-1], function.size1_out(0)))
        Q, P = q.reshape(-1, n).T, p.reshape(-1, n).T
        z, W = self._stationary_point(Q, P, h, theta)
        return np.asarray(function(Q, P, z, W, h, theta)).T.reshape(*q.shape[:-1], -1)

    def _stationary_point(self, Q: np.ndarray, P: np.ndarray, h: float, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z with N_z = 0 by Newton's method, as far as rounding lets it, and the lower part of W, one column a state."""
        z, last = np.asarray(self.guess(Q, P, theta)), np.inf
        size, states = z.shape
        for _ in range(ITERATIONS):
            residual, matrices = (np.asarray(part) for part in self._equations(Q, P, z, h, theta))
            try:
                inverses = np.linalg.inv(matrices.reshape(size, states, size).transpose(1, 0, 2))
            except np.linalg.LinAlgError:
                break
            change = np.einsum("nij,jn->in", inverses, residual)
            z = z - change
            largest = float(np.max(np.abs(change) / (1 + np.abs(z))))
            if largest <= 1e-15 or (largest <= 1e-8 and largest >= last / 2):
                rows, columns = np.triu_indices(size)
                return z, inverses[:, columns, rows].T
            last = largest
        raise InputError(f"0 = p - D_2 L_d(q, qbar, h) was not solved for qbar with h = {h:g}: take a smaller h")


def inverse(matrix: ca.SX) -> ca.SX:
    """The inverse as an expression: by minors, which are short, or from four rows on by a QR decomposition."""
    return ca.inv_minor(matrix) if matrix.shape[0] <= 3 else ca.solve(matrix, ca.SX.eye(matrix.shape[0]))


def _step_size(h: Any) -> float:
    if isinstance(h, bool) or not isinstance(h, (int, float, np.floating, np.integer)) or not np.isfinite(h) or h == 0:
        raise InputError(f"h is the step size of the run, a number other than zero; got {h!r}")
    return float(h)
