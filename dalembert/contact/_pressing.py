"""Which walls press: contact forces N grad phi with N >= 0, and accelerations that do not lead behind a wall."""

from __future__ import annotations

import numpy as np

from dalembert.systems._matrices import well_conditioned


def pressing_walls(A: np.ndarray, b: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Those of some touching constraints that act, from the matrix A and the right-hand side b of their multipliers lam = -N.

    Constraints that are `bound` always act; of the others those act for which

        N >= 0,   phi_ddot = b + A N >= 0,   N . phi_ddot = 0,

    the conditions of Gauss's principle of least constraint with inequalities: N minimises N . A N / 2 + b . N over N >= 0. If
    all of them can act together, they do.
    """
    if well_conditioned(A) and np.all(np.linalg.solve(A, b)[~bound] <= 0):
        return np.full(len(b), True)
    from scipy.optimize import nnls

    S, c = A[np.ix_(~bound, ~bound)], b[~bound]
    if np.any(bound):  # eliminate what acts anyway
        across = A[np.ix_(~bound, bound)]
        eliminated = np.linalg.solve(A[np.ix_(bound, bound)], np.column_stack([across.T, b[bound]]))
        S, c = S - across @ eliminated[:, :-1], c - across @ eliminated[:, -1]
    unit = 1 / np.sqrt(np.diag(S))
    values, vectors = np.linalg.eigh(unit[:, None] * S * unit)
    R = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # S = R^T R, in units of the walls
    target = -np.linalg.lstsq(R.T, unit * c, rcond=None)[0]
    acts = bound.copy()
    acts[~bound] = nnls(R, target)[0] > 0
    return acts
