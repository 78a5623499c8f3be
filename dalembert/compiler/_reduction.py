"""From the equations as published to the equations that are solved: explicit blocks are substituted away."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import casadi as ca
import numpy as np

from dalembert.compiler._last_stage import explicit_last_stage, same
from dalembert.methods import StepEquations
from dalembert.methods._step import Equation, UnknownBlock

Part = Literal["jacobian", "last"]


@dataclass(frozen=True, eq=False)
class LastBlock:
    """Unknowns y with matrix(x) y = rhs(x), in terms of all other unknowns x."""

    y: ca.SX
    matrix: ca.SX
    rhs: ca.SX


@dataclass(frozen=True, eq=False)
class ReducedStep:
    """F(x; t0, h, state, theta) = 0 in the unknowns that remain, and the step's results in terms of them."""

    equations: StepEquations
    blocks: tuple[UnknownBlock, ...]
    x: ca.SX
    residual: ca.SX
    increment: ca.SX
    stage_lam: ca.SX
    jacobian: ca.SX
    last: LastBlock | None
    """Unknowns that only the end constraints determine: found after the others, without iteration."""
    orientation: ca.SX
    """G(q_0) H_pp G(q_1)^T: its determinant changes sign if the constraints lose independence between q_0 and q_1."""
    energy: ca.SX
    """H at the end of the step: a model may leave its domain where its derivatives are finite."""
    explicit_stage: ca.SX
    """The stage that was eliminated from the first block, in terms of x: its increments count for convergence too."""

    def matrix(self, part: Part) -> ca.SX:
        """The matrix of Newton's iteration, or that of the last block."""
        if part == "jacobian":
            return self.jacobian
        assert self.last is not None
        return self.last.matrix

    @functools.cache  # noqa: B019 - lives as long as the step
    def entries(self, part: Part) -> ca.Function:
        """The nonzeros of a matrix as a function of x and the data."""
        return ca.Function("entries", [self.x, *self.data], [ca.vertcat(ca.SX(0, 1), *self.matrix(part).nonzeros())])

    @cached_property
    def outcome(self) -> ca.Function:
        """(x, data) -> the increment of the state and H, and the orientation matrix, with the last unknowns solved for."""
        results = [ca.vertcat(self.increment, self.energy), self.orientation]
        if self.last is not None:
            y = ca.solve(self.last.matrix, self.last.rhs)
            results = [ca.substitute(part, self.last.y, y) for part in results]
        return ca.Function("outcome", [self.x, *self.data], results)

    @property
    def polish(self) -> int:
        """Extra iterations for end constraints that stayed in the iteration, whose unknowns its stopping rule does not see."""
        return int(self.last is None and any(c.shape[0] for c in self.equations.step.end_constraints))

    @property
    def data(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """Everything besides x: t0, h, theta, state."""
        step = self.equations.step
        return step.time_symbol, step.h_symbol, step.theta, self.equations.state


def reduce_step(equations: StepEquations) -> ReducedStep:
    """Substitute every block whose own equation states it explicitly.

    W = (expression without W) needs no Newton iteration: for a separable Hamiltonian the stage momenta disappear. The first
    block stays: the size of its increments decides when Newton's iteration has converged.
    """
    step = equations.step
    remaining = list(step.unknowns)
    left: list[ca.SX] = []
    right: list[ca.SX] = []
    open_equations = list(step.equations)
    for equation in step.equations:
        block = next((b for b in remaining[1:] if same(b.symbols, equation.left)), None)
        if block is None or block.symbols.shape[0] == 0:
            continue
        value = _substitute(equation.right, left, right)
        if ca.depends_on(value, block.symbols):
            continue
        right = [_substitute(r, [block.symbols], [value]) for r in right]
        left, right = [*left, block.symbols], [*right, value]
        remaining.remove(block)
        open_equations.remove(equation)
    stage = explicit_last_stage(step, open_equations, left, right)
    if stage is not None:
        first, value = remaining[0], stage
        own = next(e for e in open_equations if same(e.left, first.symbols))
        kept = first.symbols.shape[0] - first.size
        symbols = first.symbols[kept:]
        right = [_substitute(r, [symbols], [value]) for r in right]
        left, right = [*left, symbols], [*right, value]
        open_equations[open_equations.index(own)] = Equation(own.left[:kept], own.right[:kept])
        remaining[0] = replace(first.without_last_stages(1), ends=bool(first.nodes[-1] == 1.0))
    blocks = tuple(b for b in remaining if b.symbols.shape[0])
    x = ca.vertcat(ca.SX(0, 1), *(b.symbols for b in blocks))
    parts = [*(e.residual for e in open_equations), *step.end_constraints]
    residual = _substitute(ca.vertcat(ca.SX(0, 1), *parts), left, right)
    increment = _substitute(equations.increment, left, right)
    n_end = sum(constraint.shape[0] for constraint in step.end_constraints)
    blocks, x, residual, last = _split_off_last(blocks, x, residual, n_end)
    stage_lam = _substitute(equations.stage_lam, left, right)
    if last is not None and stage_lam.shape == last.y.shape and blocks[-1].kind == "impulse":
        blocks = (*blocks[:-1], replace(blocks[-1], ends=True))
    jacobian, orientation = ca.jacobian(residual, x), _orientation(equations, increment)
    q1, p1 = ca.vertsplit(equations.state + increment, [0, step.definition.dim, 2 * step.definition.dim])
    energy = step.definition.function("H")(step.time_symbol + step.h_symbol, q1, p1, step.theta)
    explicit_stage = ca.SX(0, 1) if stage is None else _substitute(stage, left, right)
    return ReducedStep(
        equations, blocks, x, residual, increment, stage_lam, jacobian, last, orientation, energy, explicit_stage
    )


def _orientation(equations: StepEquations, increment: ca.SX) -> ca.SX:
    step = equations.step
    system, t, h, theta = step.definition, step.time_symbol, step.h_symbol, step.theta
    q0, p0 = step.state["q"], step.state["p"]
    q1 = q0 + increment[: system.dim]
    G0, G1 = ca.sparsify(system.function("G")(t, q0, theta)), ca.sparsify(system.function("G")(t + h, q1, theta))
    return G0 @ ca.sparsify(system.function("H_pp")(t, q0, p0, theta)) @ G1.T


def _split_off_last(
    blocks: tuple[UnknownBlock, ...], x: ca.SX, residual: ca.SX, n_end: int
) -> tuple[tuple[UnknownBlock, ...], ca.SX, ca.SX, LastBlock | None]:
    """Split off the unknowns that occur in the end constraints alone, such as Lambda_s of (3.3d), if linearly."""
    n_rest = residual.shape[0] - n_end
    if n_end == 0:
        return blocks, x, residual, None
    rest, end = residual[:n_rest], residual[n_rest:]
    free = np.setdiff1d(np.arange(x.shape[0]), ca.jacobian_sparsity(rest, x).get_triplet()[1])
    owner = np.repeat(np.arange(len(blocks)), [b.symbols.shape[0] for b in blocks])
    if len(free) != n_end or owner[free[0]] != len(blocks) - 1 or free[0] != x.shape[0] - n_end:
        return blocks, x, residual, None
    kept, y = x[:-n_end], x[-n_end:]
    matrix = ca.jacobian(end, y)
    if ca.depends_on(matrix, y):
        return blocks, x, residual, None
    shortened = blocks[-1].without_last_stages(n_end // blocks[-1].size)
    rhs = -ca.substitute(end, y, ca.SX.zeros(n_end, 1))
    return tuple(b for b in (*blocks[:-1], shortened) if b.symbols.shape[0]), kept, rest, LastBlock(y, matrix, rhs)


def _substitute(expression: ca.SX, symbols: list[ca.SX], values: list[ca.SX]) -> ca.SX:
    return ca.substitute(expression, ca.vertcat(*symbols), ca.vertcat(*values)) if symbols else expression
