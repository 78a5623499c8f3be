"""Holonomically constrained mechanics in phase space (q, p), and everything that follows from it symbolically.

    q' = H_p,   p' = -H_q + force - g_q^T lam,   0 = g(t, q)                          (3.1a,b,c) of Jay (1996)

`Hamiltonian` and `Lagrangian` differ only in how they state v(t,q,p) = H_p, -H_q and the energy; this base class adds the
constraints, the hidden constraint 0 = g_t + g_q v (3.1d) and the linear system of the multiplier (3.1f).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic import from_column
from dalembert.systems._model import Parameters, call_model, vector_expression


class MechanicalSystem:
    """Base class of `Hamiltonian` and `Lagrangian`; not made directly."""

    kind = "mechanical system"
    matrices = frozenset({"G", "H_pp", "L_vv", "g_dot_q", "g_dot_p", "multiplier_matrix", "reaction_q"})

    def __init__(self, dim: int, params: Mapping[str, Any] | None) -> None:
        if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1:
            raise ModelError(f"dim is the number of coordinates q, a positive integer; got {dim!r}")
        self.dim = int(dim)
        self.parameters = Parameters(params)
        self._t, self._q, self._p = ca.SX.sym("t"), ca.SX.sym("q", self.dim), ca.SX.sym("p", self.dim)
        self._expressions: dict[str, tuple[str, ca.SX]] = {}

    # -- what the subclasses fill in -------------------------------------------------------------------------------

    def _derive(self, *, H: ca.SX, H_p: ca.SX, minus_H_q: ca.SX, holonomic: Callable | None, force: Callable | None) -> None:
        """Derive all functions of (t, q, p) from the energy, the velocity and the conservative force."""
        t, q, p = self._t, self._q, self._p
        visible = {"t": from_column(t)[0], "q": from_column(q)}
        if force is None:
            applied = ca.SX.zeros(self.dim, 1)
        else:
            arguments = {**visible, "v": from_column(H_p), "p": from_column(p)}
            applied = vector_expression("force", call_model("force", force, arguments, self.parameters), self.dim)
        if holonomic is None:
            g = ca.SX(0, 1)
        else:
            g = vector_expression("holonomic", call_model("holonomic", holonomic, visible, self.parameters))
            if g.shape[0] == 0:
                raise ModelError("holonomic returned an empty list; leave the argument out for a system without constraints")
            if g.shape[0] > self.dim:
                raise ModelError(
                    f"holonomic returned {g.shape[0]} constraints for {self.dim} coordinates; "
                    f"at most {self.dim} can be independent"
                )
        self.n_holonomic = g.shape[0]
        G, lam = ca.jacobian(g, q), ca.SX.sym("lam", self.n_holonomic)
        g_dot = ca.jacobian(g, t) + G @ H_p  # (3.1d)
        # d/dt of the hidden constraint along the motion: K lam = rhs, which is (3.1f) with the time-dependent terms.
        f = minus_H_q + applied
        g_dot_p = ca.jacobian(g_dot, p)
        self._lam = lam
        self._define("H", "tqp", H)
        self._define("H_p", "tqp", H_p)
        self._define("H_q", "tqp", -minus_H_q)
        self._define("H_pp", "tqp", ca.jacobian(H_p, p))
        self._define("force", "tqp", applied)
        self._define("g", "tq", g)
        self._define("G", "tq", G)
        self._define("g_dot", "tqp", g_dot)
        self._define("g_dot_q", "tqp", ca.jacobian(g_dot, q))
        self._define("g_dot_p", "tqp", g_dot_p)
        self._define("reaction", "tql", -G.T @ lam)
        self._define("reaction_q", "tql", ca.jacobian(-G.T @ lam, q))
        self._define("multiplier_matrix", "tqp", g_dot_p @ G.T)
        self._define("multiplier_rhs", "tqp", ca.jacobian(g_dot, t) + ca.jacobian(g_dot, q) @ H_p + g_dot_p @ f)

    def _define(self, name: str, arguments: str, expression: ca.SX) -> None:
        self._expressions[name] = (arguments, expression)

    # -- what everything else reads --------------------------------------------------------------------------------

    @property
    def state_blocks(self) -> tuple[tuple[str, int], ...]:
        """The blocks of a state, in the order in which they are stored."""
        return (("q", self.dim), ("p", self.dim))

    @property
    def n_multipliers(self) -> int:
        """How many multipliers the constraints need."""
        return self.n_holonomic

    @property
    def params(self) -> dict[str, np.ndarray]:
        """The default values of the parameters."""
        return dict(self.parameters.values)

    @functools.cache  # noqa: B019 - a system lives as long as its functions
    def function(self, name: str) -> ca.Function:
        """The CasADi function `name` of (t, q, p, theta), (t, q, theta) or (t, q, lam, theta)."""
        arguments, expression = self._expressions[name]
        symbols = {"t": self._t, "q": self._q, "p": self._p, "l": self._lam, "v": getattr(self, "_v", None)}
        return ca.Function(name, [*(symbols[a] for a in arguments), self.parameters.theta], [ca.densify(expression)])

    @property
    def function_names(self) -> tuple[str, ...]:
        """The names that `function` knows."""
        return tuple(self._expressions)

    def evaluate(self, name: str, *arguments: Any, theta: np.ndarray | None = None) -> np.ndarray:
        """The numbers of one function at one state, matrices as matrices and columns as vectors."""
        value = self.function(name)(*arguments, self.parameters.vector() if theta is None else theta)
        array = np.asarray(value, dtype=float)
        _, expression = self._expressions[name]
        return array if name in self.matrices else array.reshape(expression.shape[0])

    def multipliers(self, t: float, q: np.ndarray, p: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """The multiplier lambda(t, q, p) of (3.1f)."""
        if not self.n_holonomic:
            return np.zeros(0)
        matrix = self.evaluate("multiplier_matrix", t, q, p, theta=theta)
        return np.linalg.solve(matrix, self.evaluate("multiplier_rhs", t, q, p, theta=theta))

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of the symbolic graph: equal for equal models, whatever Python objects they came from."""
        digest = hashlib.sha256(type(self).__name__.encode())
        for name in ("H", "H_p", "H_q", "force", "g"):
            digest.update(self.function(name).serialize().encode())
        digest.update(repr(list(self.parameters.values)).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        plural = "" if self.n_holonomic == 1 else "s"
        constraints = f", {self.n_holonomic} holonomic constraint{plural}" if self.n_holonomic else ""
        parameters = f", params {', '.join(self.parameters.values)}" if self.parameters.values else ""
        return f"<{type(self).__name__} of {self.dim} coordinates{constraints}{parameters}>"
