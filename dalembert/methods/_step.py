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

from dalembert.methods._clock import Clock
from dalembert.methods._step_parts import Equation, Polynomial, UnknownBlock
from dalembert.symbolic import Scalar, SymbolicArray, as_column, from_column
from dalembert.systems import BoundSystem, System
from dalembert.tableaux import SparkTableau, Tableau


@dataclass
class Step:
    """The step that a method describes: `t0`, `h`, the initial state, unknowns, equations.

    The state is `q0`, `p0` or `y0`, `z0`: in mechanics both mean the same, so that a method stated for y and z serves there
    too.
    """

    definition: System
    exact: bool = False
    """Coefficients enter as symbols, to be given their multiprecision values (`constants`) later."""
    constants: list[tuple[ca.SX, Fraction]] = field(default_factory=list)
    unknowns: list[UnknownBlock] = field(default_factory=list)
    equations: list[Equation] = field(default_factory=list)
    position_ends: list[ca.SX] = field(default_factory=list)
    end_constraints: list[ca.SX] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    """The constraints that the step's new state fulfils, by name."""
    limits: list[tuple[UnknownBlock, ca.SX]] = field(default_factory=list)
    polynomials: dict[str, tuple[Polynomial, ...]] = field(default_factory=dict)
    constrains_positions: bool = False
    increments: dict[str, ca.SX] = field(default_factory=dict)
    clock: Clock | None = None
    """How the step sets its own size, if that varies."""

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
        if name.endswith("0") and (name[:-1] in state or name in ("y0", "z0")):
            return from_column(state[self._block(name[:-1])])
        raise AttributeError(name)

    def initial(self, block: str) -> SymbolicArray:
        """The initial value of a block of the state."""
        return from_column(self.state[block])

    def _block(self, name: str) -> str:
        """The state block meant by its own name, or by y or z."""
        return name if name in self.state else self.definition.state_blocks["yz".index(name)][0]

    def coefficients(self, tableau: Tableau | SparkTableau) -> tuple[Any, ...]:
        """The coefficients A, b, c, ... of a tableau: numbers, or symbols for a multiprecision run."""
        if not self.exact:
            return tuple(getattr(tableau, name) for name in tableau.fractions._fields)
        return tuple(self._exact(part) for part in tableau.fractions)

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
        self,
        name: str,
        of: str,
        nodes: Sequence[float] | np.ndarray,
        *,
        per_h: bool = False,
        anchored: bool = False,
        smooth: bool = True,
    ) -> SymbolicArray:
        """Unknowns X with stages `of`_0 + X_i (or `of`_0 + h X_i if `per_h`), one row a node."""
        block = self._block(of)
        return self._add(name, "increment", block, nodes, dict(self.definition.state_blocks)[block], per_h, anchored, smooth)

    def stage_impulses(
        self, name: str, of: Literal["lam", "psi"], nodes: Sequence[float] | np.ndarray, *, smooth: bool = True
    ) -> SymbolicArray:
        """Unknowns X_i = h Lambda_i for the multipliers `of`, one row a node."""
        size = self.definition.n_holonomic if of == "lam" else self.definition.n_nonholonomic
        return self._add(name, "impulse", of, nodes, size, smooth=smooth)

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
        smooth: bool = True,
    ) -> SymbolicArray:
        places = np.array([self._node(node) for node in nodes])
        block = UnknownBlock(name, kind, of, places, size, ca.SX.sym(name, len(nodes) * size), per_h, anchored, smooth)
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

    def position_constraint(self, constraint: Any) -> None:
        """Demand that a constraint on stage positions vanishes; divided by h, so that conditioning does not depend on h."""
        self.constrains_positions = True
        self.equation(constraint / self.h, 0)

    def at_end(self, constraint: str, *arguments: Any) -> None:
        """Demand that the system's constraint "g", "g_dot" or "k" vanishes in the step's new state, `arguments`.

        Declared by name because the adjoint of a method imposes the same constraints on a new state of its own.
        """
        self.ends.append(constraint)
        value = as_column(getattr(self.system, constraint)(*arguments))
        if constraint == "g":
            self.constrains_positions = True
            self.position_ends.append(value / self.h_symbol)
        else:
            self.end_constraints.append(value)

    def limit(self, unknowns: Any, expression: Any, order: int) -> None:
        """The limit of an impulse block X = h Lambda as h -> 0: where the first step looks for it.

        `expression`, in which X stands for Lambda itself, is o(h^order) for the right Lambda. Without a limit the multipliers
        of the initial state are taken.
        """
        column, coefficient = as_column(unknowns), as_column(expression)
        block = next(b for b in self.unknowns if b.symbols.shape == column.shape and ca.is_equal(b.symbols, column, 1))
        for _ in range(order):
            coefficient = ca.jacobian(coefficient, self.h_symbol)
        self.limits.append((block, ca.substitute(coefficient, self.h_symbol, 0)))

    def repeat(self, block: UnknownBlock, nodes: np.ndarray) -> ca.SX:
        """Unknowns like those of another step, at other nodes and guessed from step to step."""
        self._add(block.name, block.kind, block.of, nodes, block.size, block.per_h, smooth=False)
        return self.unknowns[-1].symbols

    def unknown(self, name: str) -> UnknownBlock:
        """The block of unknowns with this name."""
        return next(block for block in self.unknowns if block.name == name)

    def momentum_increments(self, T: Any, Y: Any, W: Any) -> Any:
        """p(T, Y, z0 + W) - p(t0, y0, z0) for systems d/dt p(t, y, z) = ..., which is W where p = z."""
        if "momentum" not in self.definition.function_names:
            return W
        return self.system.momentum(T, Y, self.z0 + W) - self.momentum0

    def increments_of_momentum(self, name: str, T: Any, Y: Any, dp: Any) -> Any:
        """dz with p(T, Y, z0 + dz) = p(t0, y0, z0) + dp, which is dp where p = z; else unknowns of their own, by this name."""
        if "momentum" not in self.definition.function_names:
            return dp
        single = np.ndim(dp) == 1
        stages = self.stage_increments(name, of="z", nodes=np.ones(1 if single else len(dp)), smooth=False)
        dz = stages[0] if single else stages
        self.equation(self.momentum_increments(T, Y, dz), dp)
        return dz

    @property
    def momentum0(self) -> SymbolicArray:
        """p(t0, y0, z0), which is z0 where p = z."""
        if "momentum" not in self.definition.function_names:
            return self.z0
        return self.system.momentum(self.t0, self.y0, self.z0)

    def polynomial(self, name: str, nodes: Any, values: Any, start: Any = None) -> None:
        """Dense output: the polynomial through values at nodes, or with `start`, start + h times the integral of that one.

        Polynomials with the same name add up. Known names are "Y", "Z", "Z~", "lam" and "psi".
        """
        places = np.array([self._node(node) for node in nodes])
        rows = ca.horzcat(*(as_column(value) for value in values)).T
        part = Polynomial(places, rows, None if start is None else as_column(start))
        self.polynomials[name] = (*self.polynomials.get(name, ()), part)

    def result(self, *, stage_lam: Any = None, stage_psi: Any = None, **increments: Any) -> None:
        """The new state, as increments of its blocks: q1 = q0 + dq is `step.result(q=dq, ...)`.

        `stage_lam` and `stage_psi` are the method's own multipliers next to the end of the step, such as Lambda_s, which users
        may ask for beside those of the hidden constraints at the new state.
        """
        self.increments = {self._block(name): as_column(value) for name, value in increments.items()}
        given = {"lam": stage_lam, "psi": stage_psi}
        self.stage_multipliers = {name: ca.SX(0, 1) if x is None else as_column(x) for name, x in given.items()}


@dataclass(frozen=True, eq=False)
class StepEquations:
    """The finished description of a step: F(x; t0, h, state, theta) = 0 and the increments of the state."""

    step: Step
    x: ca.SX
    residual: ca.SX
    increment: ca.SX
    stage_multipliers: dict[str, ca.SX]

    @classmethod
    def of(cls, step: Step) -> StepEquations:
        x = ca.vertcat(ca.SX(0, 1), *(block.symbols for block in step.unknowns))
        parts = [*(equation.residual for equation in step.equations), *step.position_ends, *step.end_constraints]
        residual = ca.vertcat(ca.SX(0, 1), *parts)
        if x.shape != residual.shape:
            raise AssertionError(f"a step needs as many equations as unknowns; got {residual.shape[0]} for {x.shape[0]}")
        increment = ca.vertcat(*(step.increments[name] for name in step.state))
        return cls(step, x, residual, increment, step.stage_multipliers)

    @property
    def state(self) -> ca.SX:
        """The initial state as one column."""
        return ca.vertcat(*self.step.state.values())
