"""Newton matrices of many stages: combinations of the stage equations in which each stage's forces stand alone.

If the velocity is affine in the momentum and W = A^ hl has been substituted, the equations V = A k read V = A k0 + N B hl with
N = A A^ (`_last_stage.py`). Every row contains the forces of all stages, and so does its derivative. The rows of
N^-1 V = N^-1 A k0 + B hl contain those of one stage each. Newton's iteration takes its matrix from these, and the residuals as
N^-1 times those of the first form: their rounding errors, which N^-1 would amplify by its condition number (134 with 6 stages,
1657 with 11), then stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import casadi as ca
import numpy as np

from dalembert.compiler._last_stage import stage_forces
from dalembert.methods._step import Step
from dalembert.methods._step_parts import Equation

FEWEST = 3
"""Stages from which on it pays."""


@dataclass(frozen=True, eq=False)
class Uncoupled:
    """Combinations of one equation's rows, and what they come to."""

    equation: Equation
    inverse: ca.DM
    """N^-1 for every coordinate: it combines the residuals of the equation."""
    rows: ca.SX
    """N^-1 (V - A k0) - B hl, the same in exact arithmetic."""


def uncoupled_stages(step: Step, open_equations: list[Equation], left: list[ca.SX], right: list[ca.SX]) -> Uncoupled | None:
    """The combinations for the first block of unknowns, or None; `left` and `right` are the substitutions made so far."""
    found = stage_forces(step, open_equations, left, right)
    if found is None or len(step.unknowns[0].nodes) < FEWEST:
        return None
    first, A, acting = step.unknowns[0], found.weights, found.acting
    inverse = _inverse([[found.product(i, j) for j in acting] for i in range(len(A))])
    if inverse is None:
        return None
    n, stages = first.size, len(A)
    drift = ca.horzcat(*found.k0) @ A.T
    forces = ca.horzcat(*(found.B @ found.forces[j] for j in acting))
    rows = (ca.reshape(first.symbols, n, stages) - drift) @ inverse.T - forces
    return Uncoupled(found.equation, ca.kron(ca.DM(inverse), ca.DM.eye(n)), ca.vec(rows))


def _inverse(matrix: list[list[Fraction]]) -> np.ndarray | None:
    """The inverse of a square matrix in exact arithmetic, rounded once; None if there is none."""
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
    return np.array([[float(value) for value in row[size:]] for row in rows])
