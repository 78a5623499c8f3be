"""From the equations as published to the equations that are solved: explicit blocks are substituted away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import casadi as ca
import numpy as np

from dalembert.compiler._last_block import LastBlock, split_off_last
from dalembert.compiler._last_stage import dependent_last_stage, explicit_last_stage, same
from dalembert.compiler._metric import Metric
from dalembert.compiler._orientation import Turn, energy_at_end, glances, misses, step_orientation, unseen_increments
from dalembert.compiler._stage_coupling import Uncoupled, uncoupled_momenta, uncoupled_stages
from dalembert.compiler._tape import entries_of
from dalembert.methods import StepEquations
from dalembert.methods._step import Equation, UnknownBlock
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._matrices import Matrix, solve, sparse_matrix

Part = Literal["jacobian", "last"]


@dataclass(frozen=True, eq=False)
class ReducedStep:
    """F(x; t0, h, state, theta) = 0 in the unknowns that remain, and the step's results in terms of them."""

    equations: StepEquations
    blocks: tuple[UnknownBlock, ...]
    x: ca.SX
    residual: ca.SX
    plain: ca.SX
    """The residual before its rows were combined, as `combination` does, so that each contains the forces of one stage."""
    combination: ca.DM
    slopes: ca.SX
    """The residual in another form, from which its derivative is taken."""
    leading: tuple[range, range]
    """Rows and columns of `jacobian` to eliminate first (`_stage_coupling.py`)."""
    increment: ca.SX
    stage_multipliers: dict[str, ca.SX]
    jacobian: ca.SX
    last: LastBlock | None
    """Unknowns that only the end constraints determine: found after the others, without iteration."""
    orientation: ca.SX
    """A number that has the sign of `orientation_at` the start as long as the step stays on the run's branch and in its domain.

    It is the sign of det(hidden_z directions), for mechanics G(q_1) H_pp G(q_0)^T: it changes if the constraints lose
    independence between the ends of the step, or if multipliers that enter nonlinearly solve their equations on another branch.
    It is zero where a function of `domain` is not positive, and nan where the step misses a constraint that it imposes.
    """
    glance: ca.SX
    """The same, or a number that has this sign only where the orientation does and all results are finite.

    It takes few operations. They come last in a step, so that what they wait for counts: neither choices nor comparisons. Where
    the constraints do not hold it is zero, for else it would have the right sign on the other branch.
    """
    early_glance: ca.SX | None
    """The same without the last unknowns, where their matrix is definite; None where it can not be."""
    turn: Turn | None
    """A determinant that the orientation contains as a symbol."""
    energy: ca.SX
    """H, or v where there is no energy, at the end, if it may not be finite there (`energy_at_end`)."""
    eliminated: tuple[ca.SX, ca.SX]
    """The unknowns that were substituted away, and their values."""
    metric: Metric
    """Symbols for the numbers by which sizes are compared."""
    explicit_stage: ca.SX
    """The stage that was eliminated from the first block, in terms of x: its increments count for convergence too."""

    def matrix(self, part: Part) -> ca.SX:
        """The matrix of Newton's iteration, or that of the last block."""
        if part == "jacobian":
            return self.jacobian
        assert self.last is not None
        return self.last.matrix

    @kept
    @one_at_a_time
    def entries(self, part: Part) -> ca.Function:
        """The nonzeros of a matrix as a function of x and the data."""
        return ca.Function("entries", [self.x, *self.data], [entries_of(self.matrix(part))])

    @cached_property
    def outcome(self) -> Callable[..., list[np.ndarray]]:
        """(x, data, metric) -> the increment of the state and H, orientation and multipliers, in numbers."""
        return self.numbers([ca.vertcat(self.increment, self.energy), self.orientation, *self.stage_multipliers.values()])

    @one_at_a_time
    def numbers(self, expressions: list[ca.SX]) -> Callable[..., list[np.ndarray]]:
        """A function of numbers (x, *data, metric) for expressions of the step's unknowns, the last ones solved for."""
        y, turned = ca.SX(0, 1) if self.last is None else self.last.y, ca.SX(0, 1) if self.turn is None else self.turn.symbol
        inputs = [self.x, *self.data, self.metric.column]
        linear = [] if self.last is None else [self.last.matrix, self.last.rhs]
        turn = [] if self.turn is None else [self.turn.matrix]
        solved, turns, results = (
            ca.Function("numbers", arguments, [ca.substitute(part, *self.eliminated) for part in parts])
            for arguments, parts in ((inputs, linear), ([*inputs, y], turn), ([*inputs, y, turned], expressions))
        )

        def evaluate(x: np.ndarray, *data: Any) -> list[np.ndarray]:
            given = (x, *data, *(() if len(data) == len(inputs) - 1 else (np.zeros(self.metric.column.shape[0]),)))
            matrices = solved.call(list(given))
            last = _solved(sparse_matrix(matrices[0]), np.array(matrices[1]).ravel()) if linear else np.zeros(0)
            signs = [self.turn.value(sparse_matrix(matrix)) for matrix in turns.call([*given, last]) if self.turn is not None]
            return [np.array(value, dtype=float) for value in results.call([*given, last, np.array(signs)])]

        return evaluate

    def signed(self, orientation: ca.SX) -> ca.SX:
        """The orientation, or what a glance tells of it, with its determinant in straight-line code."""
        return orientation if self.turn is None else ca.substitute(orientation, self.turn.symbol, self.turn.sign())

    def express(self, expression: ca.SX) -> ca.SX:
        """An expression of the step's unknowns in terms of x and the data alone."""
        expression = ca.substitute(expression, *self.eliminated)
        if self.last is None:
            return expression
        return ca.substitute(expression, self.last.y, ca.solve(self.last.matrix, self.last.rhs))

    @property
    def polish(self) -> int:
        """Extra iterations for what the stopping rule may misjudge.

        These are unknowns that only the end of the step determines, and multipliers that enter nonlinearly: they converge more
        slowly than the increments, which they change little.
        """
        ends_stayed = self.last is None and any(c.shape[0] for c in self.equations.step.end_constraints)
        nonlinear = not self.equations.step.definition.linear_in_multipliers
        return int(ends_stayed or nonlinear or any(block.kind == "carried" for block in self.blocks))

    @property
    def data(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """Everything besides x: t0, h, theta, state."""
        step = self.equations.step
        return step.time_symbol, step.h_symbol, step.theta, self.equations.state


def _solved(matrix: Matrix, rhs: np.ndarray) -> np.ndarray:
    """matrix^-1 rhs, or nan where there is no solution."""
    try:
        return solve(matrix, rhs)
    except np.linalg.LinAlgError:
        return np.full(len(rhs), np.nan)


def reduce_step(equations: StepEquations) -> ReducedStep:
    """Substitute every block whose own equation states it explicitly.

    W = (expression without W) needs no Newton iteration: for a separable Hamiltonian the stage momenta disappear. The first
    block stays: the size of its increments decides when Newton's iteration has converged.
    """
    step = equations.step
    remaining = [block for block in step.unknowns if block.symbols.shape[0]]
    left: list[ca.SX] = []
    right: list[ca.SX] = []
    open_equations = list(step.equations)
    for equation in step.equations:
        block = next((b for b in remaining[1:] if same(b.symbols, equation.left)), None)
        if block is None:
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
    separable = None if stage is not None else uncoupled_stages(step, open_equations, left, right)
    for equation in list(open_equations):
        place = next((k for k, b in enumerate(remaining) if k > 0 and same(b.symbols, equation.left)), None)
        combined = None if place is None else dependent_last_stage(equation, remaining[place])
        if place is None or combined is None:
            continue
        block, kept = remaining[place], equation.left.shape[0] - remaining[place].size
        right = [_substitute(r, [block.symbols[kept:]], [combined]) for r in right]
        left, right = [*left, block.symbols[kept:]], [*right, combined]
        open_equations[open_equations.index(equation)] = Equation(equation.left[:kept], equation.right[:kept])
        remaining[place] = block.without_last_stages(1)
        if equation.left.shape[0] == 2 * block.size and same(combined, block.symbols[:kept]):
            # Both stages are one value, as the momentum of RATTLE: that in the middle of the step.
            remaining[place] = replace(remaining[place], nodes=np.array([np.mean(block.nodes)]), ends=True)
    blocks = tuple(b for b in remaining if b.symbols.shape[0])  # the eliminated stage may have been the only one
    x = ca.vertcat(ca.SX(0, 1), *(b.symbols for b in blocks))
    parts = [*(e.residual for e in open_equations), *step.position_ends, *step.end_constraints]
    residual = _substitute(ca.vertcat(ca.SX(0, 1), *parts), left, right)
    uncoupled = uncoupled_momenta(step, open_equations, remaining) if separable is None else (separable,)
    slopes, combination = _combined(residual, open_equations, uncoupled, left, right)
    leading = _leading(open_equations, uncoupled, x)
    increment = _substitute(equations.increment, left, right)
    n_end = sum(constraint.shape[0] for constraint in step.end_constraints)
    new = ca.vertsplit(
        equations.state + increment, np.cumsum([0, *(size for _, size in step.definition.state_blocks)]).tolist()
    )
    blocks, x, residual, last = split_off_last(step, new, blocks, x, residual, n_end)
    multipliers = {name: _substitute(value, left, right) for name, value in equations.stage_multipliers.items()}
    if last is not None and blocks and blocks[-1].kind == "impulse" and multipliers[blocks[-1].of].shape == last.y.shape:
        blocks = (*blocks[:-1], replace(blocks[-1], ends=True))
    rows = residual.shape[0]
    slopes, combination = slopes[:rows], combination[:rows, :rows]
    jacobian = ca.jacobian(slopes, x)
    unknowns = {block.name: _substitute(block.symbols, left, right) for block in step.unknowns}
    missed = _substitute(ca.vertcat(ca.SX(0, 1), *step.position_ends, *step.end_constraints), left, right)
    metric, (sign, turn) = Metric.of(step.definition), step_orientation(step, new, unknowns, multipliers)
    missing = misses(step, new, missed, unknowns, metric, last is None)
    orientation = ca.if_else(ca.logic_and(missing, sign != 0), np.nan, sign)  # a refusal must not be hidden
    energy = energy_at_end(step, new)
    unseen = ca.sumsqr(unseen_increments(step, increment)) + energy**2
    glance, early_glance = (orientation, None) if last is None else glances(step, new, sign, unseen, metric, last)
    explicit_stage = ca.SX(0, 1) if stage is None else _substitute(stage, left, right)
    return ReducedStep(
        equations=equations,
        blocks=blocks,
        x=x,
        residual=combination @ residual,
        plain=residual,
        combination=combination,
        slopes=slopes,
        increment=increment,
        stage_multipliers=multipliers,
        jacobian=jacobian,
        last=last,
        orientation=orientation,
        glance=glance,
        early_glance=early_glance,
        turn=turn,
        energy=energy,
        leading=leading,
        eliminated=(ca.vertcat(ca.SX(0, 1), *left), ca.vertcat(ca.SX(0, 1), *right)),
        metric=metric,
        explicit_stage=explicit_stage,
    )


def _combined(
    residual: ca.SX, equations: list[Equation], uncoupled: tuple[Uncoupled, ...], left: list[ca.SX], right: list[ca.SX]
) -> tuple[ca.SX, ca.DM]:
    """The residual for derivatives, and the matrix that combines its rows."""
    sizes = [equation.residual.shape[0] for equation in equations]
    parts = ca.vertsplit(residual, np.cumsum([0, *sizes, residual.shape[0] - sum(sizes)]).tolist())
    combination = [ca.DM.eye(part.shape[0]) for part in parts]
    for each in uncoupled:
        place = equations.index(each.equation)
        parts[place], combination[place] = _substitute(each.rows, left, right), each.inverse
    return ca.vertcat(ca.SX(0, 1), *parts), ca.diagcat(*combination)


def _leading(equations: list[Equation], uncoupled: tuple[Uncoupled, ...], x: ca.SX) -> tuple[range, range]:
    """The rows that contain unknowns of one stage alone, and the places of these."""
    for each in uncoupled:
        if each.alone is not None:
            first, count = sum(e.residual.shape[0] for e in equations[: equations.index(each.equation)]), each.alone.shape[0]
            column = next(k for k in range(x.shape[0]) if same(x[k], each.alone[0]))
            return range(first, first + count), range(column, column + count)
    return range(0), range(0)


def _substitute(expression: ca.SX, symbols: list[ca.SX], values: list[ca.SX]) -> ca.SX:
    return ca.substitute(expression, ca.vertcat(*symbols), ca.vertcat(*values)) if symbols else expression
