"""The discrete Lagrangian of a system, its derivatives and its discrete forces, by symbolic differentiation.

Numbers in parentheses refer to Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, UnsupportedSystem
from dalembert.methods._action import ActionFormula, action_formula
from dalembert.methods._step import Step
from dalembert.symbolic import Scalar, SymbolicArray, as_column, from_column
from dalembert.systems import MechanicalSystem, System
from dalembert.systems._lagrangian import Lagrangian
from dalembert.systems._mechanical import solve_symmetric
from dalembert.systems._model import call_model, scalar_expression


@dataclass(frozen=True, eq=False)
class Sample:
    """One value L(t, q, v) that a discrete Lagrangian uses, and the symbol that stands for it."""

    symbol: ca.SX
    t: ca.SX
    q: ca.SX
    v: ca.SX


@dataclass(frozen=True, eq=False)
class DiscreteLagrangian:
    """L_d(q_0, q_1, h) as an expression: `value`, taken at the value of `internal` at which it is stationary.

    `internal` is the column of all internal configurations, `theta` the parameters of the system. `expression` is L_d with
    the values of L left as the symbols of `samples`.
    """

    system: MechanicalSystem
    formula: ActionFormula
    t0: ca.SX
    h: ca.SX
    q0: ca.SX
    q1: ca.SX
    internal: ca.SX
    theta: ca.SX
    value: ca.SX
    expression: ca.SX
    samples: tuple[Sample, ...]

    @cached_property
    def in_increments(self) -> ca.Function:
        """The derivatives of L_d and the discrete forces, as a function of (t0, h, q0, V, theta).

        V holds the increments of the internal configurations and of q_1, divided by h: q_1 = q_0 + h V_last. Formed from
        these, velocities carry no rounding error of the size of q_0 / h. Outputs:

            L_d     the discrete Lagrangian
            D       the derivatives of L_d by q_0, by each internal configuration and by q_1, one column each
            D_3     the derivative of L_d by h
            f       the discrete forces f^-, internal ones, f^+ of (16), one column each
            dp      the sum of all columns of D and f, which is p_1 - p_0
        """
        t0, h, q0, theta = self.t0, self.h, self.q0, self.theta
        n, count = q0.shape[0], len(self.formula.internal) + 1
        V, X = ca.SX.sym("V", n * count), ca.vertcat(q0, self.internal, self.q1)
        placed = _substitution(X, ca.vertcat(q0, ca.repmat(q0, count, 1) + h * V))
        moved = _substitution(X, ca.vertcat(ca.SX.zeros(n, 1), h * V))
        lagrangian, momentum = lagrangian_functions(self.system)
        value, f = placed(self.expression), ca.SX.zeros(n, count + 1)
        for sample in self.samples:
            # a velocity that shifting all configurations does not change is a function of their differences
            v = (moved if _shift_invariant(sample.v, X) else placed)(sample.v)
            t, q = placed(sample.t), placed(sample.q)
            value = ca.substitute(value, sample.symbol, lagrangian(t, q, v, theta))
            # the virtual work h b_i force_i . delta q_i, with the weight h b_i that L_d itself gives this sample
            weight = placed(ca.gradient(self.expression, sample.symbol))
            work = weight * self.system.function("force")(t, q, momentum(t, q, v, theta), theta)
            f = f + ca.horzcat(*(placed(part).T @ work for part in ca.horzsplit(ca.jacobian(sample.q, X), n)))
        by_V, shift = ca.gradient(value, V), ca.gradient(value, q0)
        D_rest = ca.reshape(by_V / h, n, count)
        D = ca.horzcat(shift - ca.sum2(D_rest), D_rest)
        D_3 = ca.gradient(value, h) - ca.dot(V, by_V) / h
        outputs = [ca.densify(part) for part in (value, D, D_3, f, shift + ca.sum2(f))]
        names = ["t0", "h", "q0", "V", "theta"], ["L_d", "D", "D_3", "f", "dp"]
        # coefficients may stay symbols (`Step.exact`)
        return ca.Function("L_d", [t0, h, q0, V, theta], outputs, *names, {"allow_free": True})

    def impulses(self, step: Step, V: SymbolicArray) -> tuple[SymbolicArray, SymbolicArray]:
        """The sums D + f for q_0, each internal configuration and q_1, one row each, and their total p_1 - p_0."""
        names = {"t0": step.time_symbol, "h": step.h_symbol, "q0": as_column(step.q0), "V": as_column(V), "theta": step.theta}
        values = self.in_increments(**names)
        return from_column(ca.vec(values["D"] + values["f"]), (len(V) + 1, len(step.q0))), from_column(values["dp"])


def discrete_lagrangian(system: System, L_d: Any) -> DiscreteLagrangian:
    """The discrete Lagrangian of `system` that a name, a function or a variational method describes."""
    if not isinstance(system, MechanicalSystem):
        raise UnsupportedSystem(f"a discrete Lagrangian needs a da.Lagrangian or a da.Hamiltonian; got {type(system).__name__}")
    formula = action_formula(L_d)
    lagrangian, _ = lagrangian_functions(system)
    n, count = system.dim, len(formula.internal)
    t0, h, theta = ca.SX.sym("t0"), ca.SX.sym("h"), ca.SX.sym("theta", system.parameters.size)
    q0, q1, internal = ca.SX.sym("q0", n), ca.SX.sym("q1", n), ca.SX.sym("Q", n * count)
    sampler = _Sampler(system)
    available = {
        "L": sampler,
        "t0": Scalar(t0),
        "q0": from_column(q0),
        "Q": from_column(internal, (count, n)),
        "q1": from_column(q1),
        "h": Scalar(h),
    }
    parameters = _Visible(system, available)
    expression = scalar_expression("L_d", call_model("L_d", formula.L_d, available, parameters))  # type: ignore[arg-type]
    own = system.parameters.theta
    expression = ca.substitute(expression, own, theta)
    samples = tuple(Sample(s.symbol, *(ca.substitute(part, own, theta) for part in (s.t, s.q, s.v))) for s in sampler.samples)
    if not samples and has_force(system):
        raise UnsupportedSystem(
            "this discrete Lagrangian never calls L, so it says nothing of how to sample the system's force: write it in terms "
            "of L(t, q, v), as in lambda L, t0, q0, q1, h: h * L(t0, q0, (q1 - q0) / h)"
        )
    ell = ca.vertcat(ca.SX(0, 1), *(s.symbol for s in samples))
    value = ca.substitute(expression, ell, ca.vertcat(ca.SX(0, 1), *(lagrangian(s.t, s.q, s.v, theta) for s in samples)))
    return DiscreteLagrangian(system, formula, t0, h, q0, q1, internal, theta, value, expression, samples)


class _Sampler:
    """What a formula receives as L: it notes where L is asked for and answers with a symbol."""

    def __init__(self, system: MechanicalSystem) -> None:
        self.system = system
        self.samples: list[Sample] = []

    def __call__(self, *arguments: Any) -> Scalar:
        if len(arguments) not in (2, 3):
            raise ModelError(f"in a discrete Lagrangian, L is called as L(q, v) or L(t, q, v); got {len(arguments)} arguments")
        if len(arguments) == 2 and _depends_on_time(self.system):
            raise ModelError(
                "this system depends on time, so its discrete Lagrangian must say when L is taken: L(t0, q, v), "
                "L(t0 + h / 2, q, v), ... with t0 among the arguments of the function"
            )
        t, q, v = arguments if len(arguments) == 3 else (0.0, *arguments)
        columns = [as_column(np.atleast_1d(x)) for x in (q, v)]
        if any(column.shape[0] != self.system.dim for column in columns):
            raise ModelError(f"in a discrete Lagrangian, L takes q and v of {self.system.dim} components each")
        symbol = ca.SX.sym(f"L{len(self.samples)}")
        self.samples.append(Sample(symbol, as_column([t]), *columns))
        return Scalar(symbol)


class _Visible:
    """The parameters whose names a discrete Lagrangian may use: those that do not hide one of its own arguments."""

    def __init__(self, system: MechanicalSystem, taken: dict[str, Any]) -> None:
        self._parameters, self._taken = system.parameters, taken
        self.values = {name: value for name, value in system.parameters.values.items() if name not in taken}

    def symbols(self) -> dict[str, Any]:
        return {name: value for name, value in self._parameters.symbols().items() if name not in self._taken}


def lagrangian_functions(system: MechanicalSystem) -> tuple[ca.Function, ca.Function]:
    """L and p = L_v as functions of (t, q, v, theta), by a Legendre transform if the system is given by H."""
    if isinstance(system, Lagrangian):
        return system.function("L"), system.function("L_v")
    n = system.dim
    t, q, v, p = ca.SX.sym("t"), ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("p", n)
    theta = ca.SX.sym("theta", system.parameters.size)
    H_pp = system.function("H_pp")(t, q, p, theta)
    if ca.depends_on(H_pp, p) or ca.sprank(ca.sparsify(H_pp)) < n:
        raise UnsupportedSystem(
            "a variational integrator needs the system's Lagrangian, which has no closed form unless H is quadratic in every "
            "p[i]: state the system as da.Lagrangian(L, dim, ...), or use da.LobattoIIIAB(stages)"
        )
    at_rest = system.function("H_p")(t, q, ca.SX.zeros(n, 1), theta)
    momentum = solve_symmetric(ca.sparsify(H_pp), v - at_rest)
    L = ca.dot(momentum, v) - system.function("H")(t, q, momentum, theta)
    arguments = [t, q, v, theta]
    return ca.Function("L", arguments, [L]), ca.Function("L_v", arguments, [ca.densify(momentum)])


def _substitution(symbols: ca.SX, values: ca.SX) -> Callable[[ca.SX], ca.SX]:
    return lambda expression: ca.substitute(expression, symbols, values)


def has_force(system: MechanicalSystem) -> bool:
    """Whether the system has a force beside L."""
    return not _symbolic(system, "force")[1].is_zero()


def _depends_on_time(system: MechanicalSystem) -> bool:
    return any(ca.depends_on(value, t) for t, value in (_symbolic(system, name) for name in ("H", "force")))


def _symbolic(system: MechanicalSystem, name: str) -> tuple[ca.SX, ca.SX]:
    """A fresh t, and a function of (t, q, p) as an expression of it."""
    t, q, p = ca.SX.sym("t"), ca.SX.sym("q", system.dim), ca.SX.sym("p", system.dim)
    return t, system.function(name)(t, q, p, ca.SX.sym("theta", system.parameters.size))


def _shift_invariant(v: ca.SX, X: ca.SX) -> bool:
    """Whether v does not change if all configurations are shifted alike, judged from its derivative at one point."""
    derivative = ca.densify(ca.jacobian(v, X))
    parts = ca.horzsplit(derivative, v.shape[0])
    symbols = ca.vertcat(ca.SX(0, 1), *ca.symvar(derivative))
    both = ca.Function("shift", [symbols], [sum(parts[1:], parts[0]), derivative])
    point = np.sqrt(2.0 + np.arange(symbols.shape[0])) % 1 + 0.1
    total, scale = (np.abs(np.asarray(part, dtype=float)).max() for part in both(point))
    return bool(total <= 1e-12 * scale)
