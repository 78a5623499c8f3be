"""An explicit last stage: a combination of stage equations that gives it in terms of the others.

*Dependent rows.* In W = A^ hl with Lobatto IIIB's A^, whose last column is zero, the rows are dependent: W_s = sum_i c_i W_i,
as W_2 = W_1 with s = 2 and W_3 = 2 W_2 - W_1 with s = 3. This serves where H is not separable, so that W cannot be substituted.

*Forces that drop out.* If the velocity is affine in the momentum, k_j = k0_j + B W_j with B independent of the stage, and
W = A^ hl has been substituted, the equations V = A k read V = A k0 + (A A^) B hl. In Lobatto IIIA-IIIB methods the forces hl_l
of the inner stages l = 2..s-1 enter these s-1 equations with s-2 columns of A A^: one combination c of the equations is free of
them, and it gives V_s in terms of the other stages, of k0 and of hl_1, which depends on no V. With s = 3: V_3 = 8 V_2 + ...
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import casadi as ca
import numpy as np

from dalembert.compiler._tape import entries_of
from dalembert.methods._step import Step
from dalembert.methods._step_parts import Equation, UnknownBlock

LARGEST = 10.0
"""Combinations with larger coefficients would cost digits by cancellation."""

ROUNDING = Fraction(1, 10**13)
"""Numbers below this are rounding errors of coefficients."""


@dataclass(frozen=True, eq=False)
class StageForces:
    """V = A k0 + A A^ B hl: what the equation of the first block of unknowns reads when momenta have been substituted."""

    equation: Equation
    weights: np.ndarray
    hat: np.ndarray
    k0: list[ca.SX]
    B: ca.SX
    forces: list[ca.SX]

    @property
    def acting(self) -> list[int]:
        """The stages whose forces enter."""
        return [j for j in range(len(self.forces)) if np.any(self.hat[:, j])]

    def product(self, i: int, j: int) -> Fraction:
        """(A A^)_ij of the coefficients as they are rounded."""
        return sum((Fraction(a) * Fraction(b) for a, b in zip(self.weights[i], self.hat[:, j], strict=True)), Fraction(0))


def stage_forces(step: Step, open_equations: list[Equation], left: list[ca.SX], right: list[ca.SX]) -> StageForces | None:
    """The form, where the equations have it; `left` and `right` are the substitutions made so far."""
    if not step.unknowns:
        return None
    first = step.unknowns[0]
    own = next((e for e in open_equations if e.weights is not None and same(e.left, first.symbols)), None)
    momenta = next((b for b in step.unknowns[1:] if b.of == step.definition.state_blocks[1][0]), None)
    if own is None or own.weights is None or momenta is None or len(first.nodes) < 2:
        return None
    forces = next((e for e in step.equations if e.weights is not None and same(e.left, momenta.symbols)), None)
    if forces is None or forces.weights is None or not any(same(symbols, momenta.symbols) for symbols in left):
        return None
    affine = _affine_velocity(own.terms, momenta.symbols, momenta.size, first.symbols)
    if affine is None:
        return None
    substituted = [ca.substitute(term, ca.vertcat(*left), ca.vertcat(*right)) for term in forces.terms]
    return StageForces(own, own.weights, forces.weights, *affine, substituted)


def explicit_last_stage(step: Step, open_equations: list[Equation], left: list[ca.SX], right: list[ca.SX]) -> ca.SX | None:
    """V_s in terms of the other unknowns, or None; `left` and `right` are the substitutions made so far."""
    found = stage_forces(step, open_equations, left, right)
    if found is None:
        return None
    first, A, acting = step.unknowns[0], found.weights, found.acting
    inner = [j for j in acting if ca.depends_on(found.forces[j], first.symbols)]
    c = _combination(found, inner)
    if c is None:
        return None
    n, stages = first.size, len(first.nodes)
    value = ca.SX.zeros(n, 1)
    for i in range(stages - 1):
        value -= float(c[i]) * first.symbols[i * n : (i + 1) * n]
    for j, term in enumerate(found.k0):
        value += float(sum(c[i] * Fraction(A[i, j]) for i in range(stages))) * term
    for j in sorted(set(acting) - set(inner)):
        value += float(sum(c[i] * found.product(i, j) for i in range(stages))) * (found.B @ found.forces[j])
    return value


def dependent_last_stage(equation: Equation, block: UnknownBlock) -> ca.SX | None:
    """The last stage of a block, as the combination of the other stages that its equation X = A terms demands; or None."""
    A = equation.weights
    if A is None or len(A) != len(block.nodes) or len(A) < 2:
        return None
    c = last_weights(A)
    if c is None:
        return None
    stages = ca.horzsplit(ca.reshape(block.symbols, block.size, len(A)))
    return sum((float(factor) * stage for factor, stage in zip(c, stages[:-1], strict=True)), ca.SX.zeros(block.size, 1))


def last_weights(A: np.ndarray) -> list[Fraction] | None:
    """c with X_s = sum_i c_i X_i for all X = A terms, in exact arithmetic; None if there is none, or a large one."""
    rows = [[Fraction(value) for value in row] for row in A]
    c = _solved([[row[j] for row in rows[:-1]] + [rows[-1][j]] for j in range(A.shape[1])])
    return None if c is None or max(map(abs, c)) > LARGEST else c


def same(a: ca.SX, b: ca.SX) -> bool:
    """Whether two columns are the same symbols."""
    return a.shape == b.shape and bool(ca.is_equal(a, b, 1))


def velocity_slope(terms: tuple[ca.SX, ...], W: ca.SX, n: int, unknowns: ca.SX) -> ca.SX | None:
    """B if k_j = k0_j + B W_j for every stage, with one B that is free of unknowns; k0 may contain positions."""
    B = None
    for j, term in enumerate(terms):
        derivative = ca.jacobian(term, W)
        own = derivative[:, j * n : (j + 1) * n]
        if ca.depends_on(derivative, unknowns) or own.nnz() != derivative.nnz():
            return None
        if B is not None and not (B.sparsity() == own.sparsity() and ca.is_equal(entries_of(B), entries_of(own), 20)):
            return None
        B = own
    return B


def _affine_velocity(terms: tuple[ca.SX, ...], W: ca.SX, n: int, V: ca.SX) -> tuple[list[ca.SX], ca.SX] | None:
    """k0_j and B if k_j = k0_j + B W_j for every stage, with k0 and B free of unknowns."""
    if any(ca.depends_on(term, V) for term in terms):
        return None
    B = velocity_slope(terms, W, n, ca.vertcat(V, W))
    return None if B is None else ([ca.substitute(term, W, ca.SX.zeros(*W.shape)) for term in terms], B)


def _combination(found: StageForces, inner: list[int]) -> list[Fraction] | None:
    """c with c_s = 1 and sum_i c_i (A A^)_ij = 0 for the inner stages j, in exact arithmetic; None if there is none."""
    last = len(found.weights) - 1
    if len(inner) != last:
        return None
    c = _solved([[*(found.product(i, j) for i in range(last)), -found.product(last, j)] for j in inner])
    return None if c is None or max(map(abs, c)) > LARGEST else [*c, Fraction(1)]


def _solved(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """The solution of equations (coefficients, right-hand side), of which some may follow from others; None if there is none.

    Coefficients that are rounded depend on each other up to rounding errors only.
    """
    unknowns = len(rows[0]) - 1
    for k in range(unknowns):
        pivot = max(range(k, len(rows)), key=lambda r: abs(rows[r][k]), default=None)
        if pivot is None or abs(rows[pivot][k]) < ROUNDING:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for r in range(len(rows)):
            if r != k:
                rows[r] = [a - rows[r][k] * b for a, b in zip(rows[r], rows[k], strict=True)]
    if any(abs(row[-1]) > ROUNDING for row in rows[unknowns:]):
        return None
    return [row[-1] for row in rows[:unknowns]]
