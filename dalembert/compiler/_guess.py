"""Guesses for the unknowns of a step: along the tangent for the first step, by extrapolation for the others."""

from __future__ import annotations

import casadi as ca
import numpy as np

from dalembert.compiler._ir import Kernel
from dalembert.compiler._memory import Layout
from dalembert.compiler._reduction import ReducedStep
from dalembert.methods._step import UnknownBlock
from dalembert.systems import MechanicalSystem, State


def first_guess(reduced: ReducedStep, system: MechanicalSystem, state: State, h: float) -> np.ndarray:
    """Stages along the tangent: X_i = c_i times the rate of what they sample; impulses h lambda."""
    t, q, p, theta = state.t, state.q, state.p, state.theta
    f = system.evaluate("force", t, q, p, theta=theta) - system.evaluate("H_q", t, q, p, theta=theta)
    rates = {"q": state.v, "p": f + system.evaluate("reaction", t, q, state.lam, theta=theta), "lam": state.lam}
    parts = [np.zeros(0)]
    for block in reduced.blocks:
        if block.kind == "carried":
            parts.append(np.zeros(block.symbols.shape[0]))
        elif block.kind == "impulse":
            parts.append(np.tile(h * rates[block.of], len(block.nodes)))
        else:
            parts.append(np.outer(block.nodes, rates[block.of]).ravel() * (1.0 if block.per_h else h))
    return np.concatenate(parts)


def extrapolation(block: UnknownBlock) -> np.ndarray:
    """The matrix that extrapolates a block's stage values from one step to the next (values on this step's curve)."""
    nodes = np.concatenate([[0.0] * block.anchored, block.nodes, [1.0] * block.ends])
    targets = 1.0 + np.asarray(block.nodes, dtype=float)
    distinct = [j for j in range(len(nodes)) if not np.any(np.isclose(nodes[j + 1 :], nodes[j]))]
    matrix = np.zeros((len(targets), len(nodes)))
    for j in distinct:
        matrix[:, j] = np.prod([(targets - nodes[m]) / (nodes[j] - nodes[m]) for m in distinct if m != j], axis=0)
    return matrix[:, 1:] if block.anchored else matrix


def predictor(reduced: ReducedStep, layout: Layout, delta: ca.SX, weights: tuple[ca.SX, ca.SX], once: ca.SX) -> Kernel:
    """Extrapolate each block's stage polynomial, relative to the state that the last step ended in; then weigh it."""
    h = reduced.equations.step.h_symbol
    sizes = [symbols.shape[0] for symbols in reduced.equations.step.state.values()]
    deltas = dict(zip(reduced.equations.step.state, ca.vertsplit(delta, [0, *np.cumsum(sizes).tolist()]), strict=True))
    stage_lam = ca.SX.sym("stage_lam", reduced.stage_lam.shape[0])
    predicted = []
    for block in reduced.blocks:
        if block.kind == "carried":
            predicted.append(block.symbols)
            continue
        stages = len(block.nodes)
        known = ca.reshape(block.symbols, block.size, stages).T
        if block.kind == "increment":
            at_end = moved = deltas[block.of] / h if block.per_h else deltas[block.of]
        else:
            at_end, moved = h * stage_lam, ca.SX.zeros(block.size, 1)
        known = ca.vertcat(known, at_end.T) if block.ends else known
        values = ca.mtimes(ca.SX(extrapolation(block)), known)
        predicted.append(ca.vec((values - ca.repmat(moved.T, stages, 1)).T))
    guess = ca.vertcat(ca.SX(0, 1), *predicted)
    weight, noise = (ca.substitute(part, reduced.x, guess) for part in weights)
    state = reduced.equations.state
    time, _, theta, _ = reduced.data
    symbols = [(time, layout.time), (h, layout.h), (theta, layout.theta), (state, layout.state), (reduced.x, layout.x),
               (delta, layout.delta), (stage_lam, layout.stage_lam)]  # fmt: skip
    outputs = [(guess, layout.x), (weight, layout.weights), (noise, layout.noise), (once, layout.once)]
    return Kernel("predict", symbols, outputs)
