"""The description of one step: named unknowns, equations in the paper's notation, the new state.

A method fills a `Step` with symbolic equations and nothing else. Residuals, Jacobian, elimination, predictor, first guess,
tangent map and machine code all follow from the description (`dalembert.compiler`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import casadi as ca
import numpy as np

from dalembert.symbolic import Scalar, SymbolicArray, as_column, from_column
from dalembert.systems import BoundSystem, MechanicalSystem
from dalembert.tableaux import Tableau


@dataclass(frozen=True, eq=False)
class UnknownBlock:
    """A block of unknowns, and how to guess it: what it samples, and at which nodes of the step.

    An *increment* block X samples a state block: its stages stand for state + X, or state + h X if `per_h`.
    An *impulse* block is h times a multiplier. A *carried* block starts from zero in the first step, then from its last
    value. `anchored` says that the sampled curve passes through the step's initial state.
    """

    name: str
    kind: Literal["increment", "impulse", "carried"]
    of: str
    nodes: np.ndarray
    size: int
    symbols: ca.SX
    per_h: bool = False
    anchored: bool = False
    ends: bool = False
    """The sampled curve's value at the end of the step is known besides: the final state, or Lambda_s."""

    def without_last_stages(self, count: int) -> UnknownBlock:
        """The block without its last stages."""
        stages = len(self.nodes) - count
        symbols = self.symbols[: stages * self.size] if stages else ca.SX(0, 1)
        return replace(self, nodes=self.nodes[:stages], symbols=symbols)


@dataclass(frozen=True, eq=False)
class Equation:
    """left = right. If left is a whole block of unknowns, the equation may serve to eliminate it.

    Where right combines stage values, right_i = sum_j weights_ij terms_j, both are kept.
    """

    left: ca.SX
    right: ca.SX
    weights: np.ndarray | None = None
    terms: tuple[ca.SX, ...] = ()

    @property
    def residual(self) -> ca.SX:
        return self.left - self.right


@dataclass
class Step:
    """The canvas on which a method writes its equations: `t0`, `h`, the initial state (`q0`, `p0`), unknowns, equations."""

    definition: MechanicalSystem
    exact: bool = False
    """Coefficients enter as symbols, to be given their multiprecision values (`constants`) later."""
    constants: list[tuple[ca.SX, Fraction]] = field(default_factory=list)
    unknowns: list[UnknownBlock] = field(default_factory=list)
    equations: list[Equation] = field(default_factory=list)
    end_constraints: list[ca.SX] = field(default_factory=list)
    increments: dict[str, ca.SX] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.time_symbol, self.h_symbol = ca.SX.sym("t0"), ca.SX.sym("h")
        self.theta = ca.SX.sym("theta", self.definition.parameters.size)
        self.state = {name: ca.SX.sym(f"{name}0", size) for name, size in self.definition.state_blocks}
        self.system = BoundSystem(self.definition, self.theta)

    @property
    def t0(self) -> Scalar:
        """The time at which the step starts."""
        return Scalar(self.time_symbol)

    @property
    def h(self) -> Scalar:
        """The step size, a run-time input that may be negative."""
        return Scalar(self.h_symbol)

    def __getattr__(self, name: str) -> SymbolicArray:
        state = self.__dict__.get("state", {})
        if name.endswith("0") and name[:-1] in state:
            return from_column(state[name[:-1]])
        raise AttributeError(name)

    def coefficients(self, tableau: Tableau) -> tuple[Any, Any, Any]:
        """A, b and c of a tableau: numbers, or symbols for a multiprecision run."""
        if not self.exact:
            return tableau.A, tableau.b, tableau.c
        return tuple(self._exact(part) for part in (tableau.fractions.A, tableau.fractions.b, tableau.fractions.c))  # type: ignore[return-value]

    def _exact(self, values: Any) -> np.ndarray:
        result = np.empty(np.shape(values), dtype=object)
        for position in np.ndindex(result.shape):
            value = values[position[0]] if len(position) == 1 else values[position[0]][position[1]]
            if Fraction(float(value)) == value:
                result[position] = float(value)
            else:
                symbol = ca.SX.sym("a")
                self.constants.append((symbol, value))
                result[position] = Scalar(symbol)
        return result.view(SymbolicArray)

    def _node(self, node: Any) -> float:
        if isinstance(node, Scalar) and not node.sx.is_constant():
            return next(float(value) for symbol, value in self.constants if ca.is_equal(symbol, node.sx))
        return float(node)

    def stage_increments(
        self, name: str, of: str, nodes: Sequence[float] | np.ndarray, *, per_h: bool = False, anchored: bool = False
    ) -> SymbolicArray:
        """Unknowns X with stages `of`_0 + X_i (or `of`_0 + h X_i if `per_h`), one row a node."""
        size = dict(self.definition.state_blocks)[of]
        return self._add(name, "increment", of, nodes, size, per_h, anchored)

    def stage_impulses(self, name: str, of: str, nodes: Sequence[float] | np.ndarray) -> SymbolicArray:
        """Unknowns X_i = h Lambda_i for the multipliers `of`, one row a node."""
        return self._add(name, "impulse", of, nodes, self.definition.n_multipliers)

    def corrections(self, name: str, size: int) -> SymbolicArray:
        """Unknowns that vanish with h, such as the multipliers of a projection."""
        return self._add(name, "carried", "", np.zeros(1), size)[0]

    def _add(
        self,
        name: str,
        kind: Literal["increment", "impulse", "carried"],
        of: str,
        nodes: Sequence[float] | np.ndarray,
        size: int,
        per_h: bool = False,
        anchored: bool = False,
    ) -> SymbolicArray:
        places = np.array([self._node(node) for node in nodes])
        block = UnknownBlock(name, kind, of, places, size, ca.SX.sym(name, len(nodes) * size), per_h, anchored)
        self.unknowns.append(block)
        return from_column(block.symbols, (len(block.nodes), block.size))

    def equation(self, left: Any, right: Any) -> None:
        """Demand left = right, component by component."""
        left_column = as_column(left)
        self.equations.append(Equation(left_column, as_column(np.broadcast_to(right, np.shape(left)))))

    def combination(self, left: Any, weights: Any, terms: Any) -> None:
        """Demand left_i = sum_j weights_ij terms_j, the form of every Runge-Kutta stage."""
        self.equation(left, weights @ terms)
        if np.asarray(weights).dtype != object:
            columns = tuple(as_column(term) for term in terms)
            self.equations[-1] = replace(self.equations[-1], weights=np.asarray(weights, dtype=float), terms=columns)

    def at_end(self, constraint: Any) -> None:
        """Demand that an expression of the step's new state vanishes."""
        self.end_constraints.append(as_column(constraint))

    def result(self, *, stage_lam: Any = None, **increments: Any) -> None:
        """The new state, as increments of its blocks: q1 = q0 + dq is `step.result(q=dq, ...)`.

        `stage_lam` is the multiplier of the last stage, Lambda_s, which users may ask for beside lambda(q_1, p_1).
        """
        self.increments = {name: as_column(value) for name, value in increments.items()}
        self.stage_lam = ca.SX(0, 1) if stage_lam is None else as_column(stage_lam)


@dataclass(frozen=True, eq=False)
class StepEquations:
    """The finished description of a step: F(x; t0, h, state, theta) = 0 and the increments of the state."""

    step: Step
    x: ca.SX
    residual: ca.SX
    increment: ca.SX
    stage_lam: ca.SX

    @classmethod
    def of(cls, step: Step) -> StepEquations:
        x = ca.vertcat(ca.SX(0, 1), *(block.symbols for block in step.unknowns))
        residual = ca.vertcat(ca.SX(0, 1), *(equation.residual for equation in step.equations), *step.end_constraints)
        if x.shape != residual.shape:
            raise AssertionError(f"a step needs as many equations as unknowns; got {residual.shape[0]} for {x.shape[0]}")
        increment = ca.vertcat(*(step.increments[name] for name in step.state))
        return cls(step, x, residual, increment, step.stage_lam)

    @property
    def state(self) -> ca.SX:
        """The initial state as one column."""
        return ca.vertcat(*self.step.state.values())
