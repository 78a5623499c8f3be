"""What the equations of a step are made of: blocks of unknowns, equations, polynomials in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import casadi as ca
import numpy as np


@dataclass(frozen=True, eq=False)
class UnknownBlock:
    """A block of unknowns, and how to guess it: what it samples, and at which nodes of the step.

    An *increment* block X samples a state block: its stages stand for state + X, or state + h X if `per_h`.
    An *impulse* block is h times a multiplier. A *carried* block starts from zero in the first step. Increments and impulses
    are guessed by extrapolating what they sample, or, like carried blocks, by their last value if `smooth` is False.
    `anchored` says that the sampled curve passes through the step's initial state.
    """

    name: str
    kind: Literal["increment", "impulse", "carried"]
    of: str
    nodes: np.ndarray
    size: int
    symbols: ca.SX
    per_h: bool = False
    anchored: bool = False
    smooth: bool = True
    ends: bool = False
    """The sampled curve's value at the end of the step is known besides: the final state, or Lambda_s."""

    def without_last_stages(self, count: int) -> UnknownBlock:
        """The block without its last stages."""
        stages = len(self.nodes) - count
        symbols = self.symbols[: stages * self.size] if stages else ca.SX(0, 1)
        return replace(self, nodes=self.nodes[:stages], symbols=symbols)


@dataclass(frozen=True, eq=False)
class Equation:
    """left = right. If left is exactly one block of unknowns, the equation may serve to eliminate it.

    Where right combines stage values, right_i = sum_j weights_ij terms_j, both are kept.
    """

    left: ca.SX
    right: ca.SX
    weights: np.ndarray | None = None
    terms: tuple[ca.SX, ...] = ()

    @property
    def residual(self) -> ca.SX:
        return self.left - self.right


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A polynomial in tau = (t - t0)/h: through values at nodes; or start + h times the integral from 0 of that."""

    nodes: np.ndarray
    values: ca.SX
    """One row a node."""
    start: ca.SX | None = None
