"""Functions of (q, p) through the stationary point of a generating function, and their exact derivatives.

The mixed-variable generating function of a symplectic integrator is a stationary value, p.q + h eta(q, p) with

    eta(q, p) = stat_z N(q, p, z),      where 0 = N_z(q, p, z) defines z(q, p),         (22), (24) of Pekarek & Murphey (2014)

A function of (q, p) that involves z(q, p) is kept as an expression in (q, p, z, W), with symbols for z and for W = N_zz^-1.
Its derivatives are expressions of the same kind, because the defining equation gives

    dz = -W (N_zq dq + N_zp dp),      dW = -W dN_zz W.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca

from dalembert.symbolic import merged


@dataclass(frozen=True, eq=False)
class GeneratingFunction:
    """N(q, p, z; h, theta), whose stationary value over z is eta; `theta` are the system's parameters.

    `W` are symbols for N_zz^-1, and `guess` is z at h = 0, exactly or nearly, as an expression in (q, p, theta).
    """

    q: ca.SX
    p: ca.SX
    z: ca.SX
    h: ca.SX
    theta: ca.SX
    N: ca.SX
    guess: ca.SX
    W: ca.SX

    @classmethod
    def of(cls, q: ca.SX, p: ca.SX, z: ca.SX, h: ca.SX, theta: ca.SX, N: ca.SX, guess: ca.SX) -> GeneratingFunction:
        """With new symbols for the symmetric matrix W."""
        return cls(q, p, z, h, theta, N, guess, ca.tril2symm(ca.SX.sym("W", ca.Sparsity.lower(z.shape[0]))))

    @cached_property
    def N_z(self) -> ca.SX:
        """What vanishes at z(q, p): p - D_2 L_d of (22), and the equations of the internal variables."""
        return ca.gradient(self.N, self.z)

    @cached_property
    def N_zz(self) -> ca.SX:
        """The matrix whose inverse is W."""
        return ca.jacobian(self.N_z, self.z)

    @cached_property
    def arguments(self) -> ca.SX:
        """(q, p, z, W, h) as one column."""
        return ca.vertcat(self.q, self.p, self.z, lower_part(self.W), self.h)

    def motion(self, x: ca.SX) -> ca.SX:
        """d(q, p, z, W, h)/dx for x = q, p or h, by differentiating 0 = N_z and N_zz W = I."""
        z_x = -self.W @ ca.jacobian(self.N_z, x)
        N_zz = ca.vec(self.N_zz)
        dN_zz = ca.jacobian(N_zz, x) + ca.jacobian(N_zz, self.z) @ z_x
        W_x = [lower_part(-self.W @ ca.reshape(column, self.N_zz.shape) @ self.W) for column in ca.horzsplit(dN_zz)]
        q_x, p_x, h_x = (ca.jacobian(y, x) for y in (self.q, self.p, self.h))
        return merged(ca.vertcat(q_x, p_x, z_x, ca.horzcat(*W_x), h_x))

    @cached_property
    def by_q(self) -> ca.SX:
        """The motion of (q, p, z, W, h) with q."""
        return self.motion(self.q)

    @cached_property
    def by_p(self) -> ca.SX:
        """The motion of (q, p, z, W, h) with p."""
        return self.motion(self.p)

    @cached_property
    def eta(self) -> Field:
        """The stationary value itself, (24). Because N_z = 0, its gradient is that of N at fixed z."""
        return Field(self, self.N, (ca.gradient(self.N, self.q), ca.gradient(self.N, self.p)))

    def with_N(self, N: ca.SX) -> GeneratingFunction:
        """Another generating function of the same variables."""
        return replace(self, N=N)


@dataclass(frozen=True, eq=False)
class Field:
    """A function of (q, p), as an expression in (q, p, z, W); its derivatives are total ones."""

    of: GeneratingFunction
    value: ca.SX
    known_gradient: tuple[ca.SX, ca.SX] | None = None

    @cached_property
    def D_1(self) -> ca.SX:
        """The gradient by q."""
        if self.known_gradient is not None:
            return self.known_gradient[0]
        return self.of.by_q.T @ ca.gradient(self.value, self.of.arguments)

    @cached_property
    def D_2(self) -> ca.SX:
        """The gradient by p."""
        if self.known_gradient is not None:
            return self.known_gradient[1]
        return self.of.by_p.T @ ca.gradient(self.value, self.of.arguments)

    @cached_property
    def _forms(self) -> list[tuple[ca.SX, ca.SX]]:
        """D_1 ... D_1 of the value as multilinear forms: directions so far, expression; extended as far as asked for."""
        return [(ca.SX(0, 1), self.value)]

    def D_1s(self, directions: list[ca.SX]) -> ca.SX:
        """The r-th derivative by q, contracted with r directions."""
        while len(self._forms) <= len(directions):
            given, form = self._forms[-1]
            d = ca.SX.sym("d", self.of.q.shape[0])
            first = len(self._forms) == 1
            slope = ca.dot(self.D_1, d) if first else ca.jtimes(form, self.of.arguments, self.of.by_q @ d)
            self._forms.append((ca.vertcat(given, d), merged(slope)))
        symbols, form = self._forms[len(directions)]
        return ca.substitute(form, symbols, ca.vertcat(*directions))


def lower_part(W: ca.SX) -> ca.SX:
    """The lower triangle of a matrix as one column."""
    n = W.shape[0]
    return ca.vertcat(ca.SX(0, 1), *(W[i, j] for j in range(n) for i in range(j, n)))
