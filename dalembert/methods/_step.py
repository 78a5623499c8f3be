"""The description of one step: named unknowns, equations in the paper's notation, the new state.

A method fills a `Step` with symbolic equations and nothing else. Residuals, Jacobian, elimination, predictor, first guess,
tangent map and machine code all follow from the description (`dalembert.compiler`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import casadi as ca
import numpy as np

from dalembert.symbolic import Scalar, SymbolicArray, as_column, from_column
from dalembert.systems import BoundSystem, MechanicalSystem


@dataclass(frozen=True, eq=False)
class UnknownBlock:
    """A block of unknowns, and how to guess it: what it samples, and at which nodes of the step.

    An *increment* block X samples a state block: its stages stand for state + X, or state + h X if `per_h`.
    An *impulse* block is h times a multiplier. `anchored` says that the sampled curve passes through the step's initial state.
    """

    name: str
    kind: Literal["increment", "impulse"]
    of: str
    nodes: np.ndarray
    size: int
    symbols: ca.SX
    per_h: bool = False
    anchored: bool = False

    def without_last_stages(self, count: int) -> UnknownBlock:
        """The block without its last stages."""
        stages = len(self.nodes) - count
        return replace(self, nodes=self.nodes[:stages], symbols=self.symbols[: stages * self.size])


@dataclass(frozen=True, eq=False)
class Equation:
    """left = right. If left is a whole block of unknowns, the equation may serve to eliminate it."""

    left: ca.SX
    right: ca.SX

    @property
    def residual(self) -> ca.SX:
        return self.left - self.right


@dataclass
class Step:
    """The canvas on which a method writes its equations: `t0`, `h`, the initial state (`q0`, `p0`), unknowns, equations."""

    definition: MechanicalSystem
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

    def stage_increments(
        self, name: str, of: str, nodes: np.ndarray, *, per_h: bool = False, anchored: bool = False
    ) -> SymbolicArray:
        """Unknowns X with stages `of`_0 + X_i (or `of`_0 + h X_i if `per_h`), one row a node."""
        size = dict(self.definition.state_blocks)[of]
        return self._add(name, "increment", of, nodes, size, per_h, anchored)

    def stage_impulses(self, name: str, of: str, nodes: np.ndarray) -> SymbolicArray:
        """Unknowns X_i = h Lambda_i for the multipliers `of`, one row a node."""
        return self._add(name, "impulse", of, nodes, self.definition.n_multipliers)

    def _add(
        self,
        name: str,
        kind: Literal["increment", "impulse"],
        of: str,
        nodes: np.ndarray,
        size: int,
        per_h: bool = False,
        anchored: bool = False,
    ) -> SymbolicArray:
        block = UnknownBlock(name, kind, of, np.asarray(nodes), size, ca.SX.sym(name, len(nodes) * size), per_h, anchored)
        self.unknowns.append(block)
        return from_column(block.symbols, (len(block.nodes), block.size))

    def equation(self, left: Any, right: Any) -> None:
        """Demand left = right, component by component."""
        left_column = as_column(left)
        self.equations.append(Equation(left_column, as_column(np.broadcast_to(right, np.shape(left)))))

    def at_end(self, constraint: Any) -> None:
        """Demand that an expression of the step's new state vanishes."""
        self.end_constraints.append(as_column(constraint))

    def result(self, **increments: Any) -> None:
        """The new state, as increments of its blocks: q1 = q0 + dq is `step.result(q=dq, ...)`."""
        self.increments = {name: as_column(value) for name, value in increments.items()}


@dataclass(frozen=True, eq=False)
class StepEquations:
    """The finished description of a step: F(x; t0, h, state, theta) = 0 and the increments of the state."""

    step: Step
    x: ca.SX
    residual: ca.SX
    increment: ca.SX

    @classmethod
    def of(cls, step: Step) -> StepEquations:
        x = ca.vertcat(ca.SX(0, 1), *(block.symbols for block in step.unknowns))
        residual = ca.vertcat(ca.SX(0, 1), *(equation.residual for equation in step.equations), *step.end_constraints)
        if x.shape != residual.shape:
            raise AssertionError(f"a step needs as many equations as unknowns; got {residual.shape[0]} for {x.shape[0]}")
        increment = ca.vertcat(*(step.increments[name] for name in step.state))
        return cls(step, x, residual, increment)

    @property
    def state(self) -> ca.SX:
        """The initial state as one column."""
        return ca.vertcat(*self.step.state.values())
