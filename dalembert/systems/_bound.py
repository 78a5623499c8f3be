"""A system's functions on symbolic arrays, with the parameters of a step already in place: what a method sees."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from dalembert.symbolic import as_column, from_column
from dalembert.systems._system import System


class BoundSystem:
    """`system.v(t, y, z)`, `system.H_p(t, q, p)`, `system.g(t, q)`, ... for methods.

    Arguments may carry a leading stage axis: with T of shape (s,), Q and P of shape (s, n), `system.H_p(T, Q, P)` has shape
    (s, n). Available are the functions of `System` and, for mechanical systems, those of `MechanicalSystem`.
    """

    def __init__(self, system: System, theta: ca.SX) -> None:
        self.definition = system
        self.n_holonomic = system.n_holonomic
        self.n_nonholonomic = system.n_nonholonomic
        self._theta = theta

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.definition.function_names:
            raise AttributeError(
                f"a {self.definition.kind} has no function {name!r}; it has {', '.join(self.definition.function_names)}"
            )
        function = self.definition.function(name)

        def evaluate(t: Any, *arguments: Any) -> np.ndarray:
            if np.ndim(arguments[0]) == 1:
                value = function(*(as_column(a) for a in (np.array([t], dtype=object), *arguments)), self._theta)
                shape = value.shape if name in self.definition.matrices else (value.shape[0],)
                return from_column(ca.vec(ca.densify(value).T), shape)
            if len(arguments[0]) == 0:
                return from_column(ca.SX(0, 1), (0, function.size1_out(0)))
            times = np.broadcast_to(np.asarray(t, dtype=object), len(arguments[0]))
            return np.stack([evaluate(*stage) for stage in zip(times, *arguments, strict=True)])

        return evaluate
