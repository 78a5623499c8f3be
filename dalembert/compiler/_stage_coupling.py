"""Newton matrices of many stages: combinations of the stage equations in which each stage's forces stand alone.

If the velocity is affine in the momentum and W = A^ hl has been substituted, the equations V = A k read V = A k0 + N B hl with
N = A A^ (`_last_stage.py`). Every row contains the forces of all stages, and so does its derivative. The rows of
N^-1 V = N^-1 A k0 + B hl contain those of one stage each. Newton's iteration takes its matrix from these, and the residuals as
N^-1 times those of the first form: their rounding errors, which N^-1 would amplify by its condition number (134 with 6 stages,
1657 with 11), then stay what they are.

Where H_p contains positions, too, momenta stay among the unknowns, and both equations are combined. Those of W = A^ hl become
A^^-1 W = hl, those of V = A k, with the columns of A that belong to the stages of V, become A^-1 V = k. If k_j = k0_j + B W_j,
they do with A' in place of A, which gives the last column to the stages that W_s is a combination of: then every row contains
the momentum of one stage, W is eliminated first, stage by stage, and what remains has the structure of the equations above.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import casadi as ca
import numpy as np

from dalembert.compiler._last_stage import ROUNDING, last_weights, same, stage_forces, velocity_slope
from dalembert.methods._step import Step
from dalembert.methods._step_parts import Equation, UnknownBlock

FEWEST, FEWEST_WITH_MOMENTA = 3, 2
"""Stages from which on it pays."""

Exact = list[list[Fraction]]
"""A matrix in exact arithmetic."""


@dataclass(frozen=True, eq=False)
class Uncoupled:
    """Combinations of one equation's rows, and what they come to."""

    equation: Equation
    inverse: ca.DM
    """N^-1 for every coordinate: it combines the residuals of the equation."""
    rows: ca.SX
    """N^-1 (V - A k0) - B hl, the same in exact arithmetic."""
    alone: ca.SX | None = None
    """Unknowns of which each row contains those of one stage: rows to eliminate them with."""


def uncoupled_stages(step: Step, open_equations: list[Equation], left: list[ca.SX], right: list[ca.SX]) -> Uncoupled | None:
    """The combinations for the first block of unknowns, or None; `left` and `right` are the substitutions made so far."""
    found = stage_forces(step, open_equations, left, right)
    if found is None or len(step.unknowns[0].nodes) < FEWEST:
        return None
    first, A, acting = step.unknowns[0], found.weights, found.acting
    exact = _inverse([[found.product(i, j) for j in acting] for i in range(len(A))])
    if exact is None:
        return None
    inverse, n, stages = _rounded(exact), first.size, len(A)
    drift = ca.horzcat(*found.k0) @ A.T
    forces = ca.horzcat(*(found.B @ found.forces[j] for j in acting))
    rows = (ca.reshape(first.symbols, n, stages) - drift) @ inverse.T - forces
    return Uncoupled(found.equation, ca.kron(ca.DM(inverse), ca.DM.eye(n)), ca.vec(rows))


def uncoupled_momenta(step: Step, open_equations: list[Equation], remaining: list[UnknownBlock]) -> tuple[Uncoupled, ...]:
    """The combinations for velocities and for forces where momenta remain among the unknowns."""
    (y, _), (z, _) = step.definition.state_blocks
    first = next((b for b in remaining[:1] if b.of == y and len(b.nodes) >= FEWEST_WITH_MOMENTA), None)
    momenta = next((b for b in remaining[1:] if b.of == z), None)
    if first is None or momenta is None:
        return ()
    velocities = next((e for e in open_equations if e.weights is not None and same(e.left, first.symbols)), None)
    own = next((e for e in open_equations if same(e.left, momenta.symbols)), None)
    forces = next((e for e in step.equations if e.weights is not None and _begins_with(e.left, momenta.symbols)), None)
    if velocities is None or own is None or forces is None:
        return ()
    found = _velocities_alone(velocities, forces, first, momenta), _forces_alone(own, forces, momenta)
    return tuple(each for each in found if each is not None)


def _velocities_alone(equation: Equation, forces: Equation, first: UnknownBlock, momenta: UnknownBlock) -> Uncoupled | None:
    """A^-1 V - A^-1 A k, or A'^-1 V - A'^-1 A k0 - B W."""
    assert equation.weights is not None
    n, stages, terms = first.size, len(first.nodes), ca.horzcat(*equation.terms)
    exact = [[Fraction(value) for value in row] for row in equation.weights]
    alone = _momenta_alone(equation, forces, first, momenta)
    inverse = _inverse([row[-stages:] for row in exact] if alone is None else alone[1])
    if inverse is None:
        return None
    rows = ca.reshape(first.symbols, n, stages) @ _rounded(inverse).T
    if alone is not None:
        terms = ca.substitute(terms, forces.left, ca.SX.zeros(*forces.left.shape))
        rows -= alone[0] @ ca.reshape(momenta.symbols, n, stages)
    rows -= terms @ _rounded(_product(inverse, exact)).T
    symbols = None if alone is None else momenta.symbols
    return Uncoupled(equation, ca.kron(ca.DM(_rounded(inverse)), ca.DM.eye(n)), ca.vec(rows), symbols)


def _momenta_alone(
    equation: Equation, forces: Equation, first: UnknownBlock, momenta: UnknownBlock
) -> tuple[ca.SX, Exact] | None:
    """B and A', if the velocity is affine in the momentum with one B for all stages."""
    W, n, stages = forces.left, first.size, len(first.nodes)
    if momenta.size != n or len(momenta.nodes) != stages or W.shape[0] != n * len(equation.terms):
        return None
    B = velocity_slope(equation.terms, W, n, ca.vertcat(first.symbols, W))
    exact = [[Fraction(value) for value in row] for row in np.asarray(equation.weights)]
    if B is None or len(equation.terms) == stages:
        return None if B is None else (B, exact)
    c = last_weights(np.asarray(forces.weights)) if len(equation.terms) == stages + 1 else None
    return None if c is None else (B, [[row[j] + row[-1] * c[j] for j in range(stages)] for row in exact])


def _forces_alone(own: Equation, forces: Equation, momenta: UnknownBlock) -> Uncoupled | None:
    """A^^-1 W - hl for the stages that remain."""
    n, stages = momenta.size, len(momenta.nodes)
    assert forces.weights is not None
    hat = forces.weights[:stages]
    acting = [j for j in range(hat.shape[1]) if np.any(hat[:, j])]
    inverse = _inverse([[Fraction(row[j]) for j in acting] for row in hat])
    if inverse is None:
        return None
    terms = ca.horzcat(*(forces.terms[j] for j in acting))
    rows = ca.reshape(momenta.symbols, n, stages) @ _rounded(inverse).T - terms
    return Uncoupled(own, ca.kron(ca.DM(_rounded(inverse)), ca.DM.eye(n)), ca.vec(rows))


def _begins_with(symbols: ca.SX, part: ca.SX) -> bool:
    """Whether a column begins with the symbols of another one."""
    return symbols.shape[0] >= part.shape[0] and same(symbols[: part.shape[0]], part)


def _product(a: Exact, b: Exact) -> Exact:
    """The product of two matrices, without the zeros that rounded coefficients miss."""
    exact = [
        [sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in zip(*b, strict=True)] for row in a
    ]
    return [[value if abs(value) > ROUNDING else Fraction(0) for value in row] for row in exact]


def _rounded(matrix: Exact) -> np.ndarray:
    return np.array([[float(value) for value in row] for row in matrix])


def _inverse(matrix: Exact) -> Exact | None:
    """The inverse of a square matrix in exact arithmetic; None if there is none."""
    size = len(matrix)
    if any(len(row) != size for row in matrix):
        return None
    rows = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(matrix)]
    for k in range(size):
        pivot = max(range(k, size), key=lambda r: abs(rows[r][k]))
        if abs(rows[pivot][k]) < Fraction(1, 10**12):
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for r in range(size):
            if r != k:
                rows[r] = [a - rows[r][k] * b for a, b in zip(rows[r], rows[k], strict=True)]
    return [row[size:] for row in rows]
