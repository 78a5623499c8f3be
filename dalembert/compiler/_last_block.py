"""Unknowns that only the constraints at the end of a step determine, such as Lambda_s of Lobatto IIIA-IIIB methods (3.3d)."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.compiler._tape import CHOICES, entries_of, read_tape
from dalembert.methods._step import Step, UnknownBlock

PIECEWISE = (*CHOICES, ca.OP_FABS, ca.OP_FLOOR, ca.OP_CEIL, ca.OP_FMOD, ca.OP_REMAINDER)
"""Operations that are other functions in other places, so that a few places do not show what holds in all of them."""


@dataclass(frozen=True, eq=False)
class LastBlock:
    """Unknowns y with matrix(x) y = rhs(x), in terms of all other unknowns x."""

    y: ca.SX
    matrix: ca.SX
    rhs: ca.SX


def split_off_last(
    step: Step, new: list[ca.SX], blocks: tuple[UnknownBlock, ...], x: ca.SX, residual: ca.SX, n_end: int
) -> tuple[tuple[UnknownBlock, ...], ca.SX, ca.SX, LastBlock | None]:
    """Split off the unknowns that occur in the end constraints alone, such as Lambda_s of (3.3d), if linearly."""
    n_rest = residual.shape[0] - n_end
    if n_end == 0:
        return blocks, x, residual, None
    rest, end = residual[:n_rest], residual[n_rest:]
    free = np.setdiff1d(np.arange(x.shape[0]), ca.jacobian_sparsity(rest, x).get_triplet()[1])
    owner = np.repeat(np.arange(len(blocks)), [b.symbols.shape[0] for b in blocks])
    if len(free) != n_end or not len(blocks) or owner[free[0]] != len(blocks) - 1 or free[0] != x.shape[0] - n_end:
        return blocks, x, residual, None
    kept, y = x[:-n_end], x[-n_end:]
    matrix = ca.jacobian(end, y)
    if ca.depends_on(matrix, y):
        return blocks, x, residual, None
    matrix = _symmetric(_by_new_state(step, new, matrix, y))
    shortened = blocks[-1].without_last_stages(n_end // blocks[-1].size)
    rhs = -ca.substitute(end, y, ca.SX.zeros(n_end, 1))
    return tuple(b for b in (*blocks[:-1], shortened) if b.symbols.shape[0]), kept, rest, LastBlock(y, matrix, rhs)


def _by_new_state(step: Step, new: list[ca.SX], matrix: ca.SX, y: ca.SX) -> ca.SX:
    """The derivative of the end constraints with respect to y as hidden_z dz_1/dy: the orientation needs hidden_z, too."""
    (_, z1), t1 = new, step.time_symbol + step.h_symbol
    hidden_z = ca.sparsify(step.definition.function("hidden_z")(t1, *new, step.theta))
    product = hidden_z @ ca.jacobian(z1, y)
    fits = product.sparsity() == matrix.sparsity() and not ca.depends_on(product, y)
    return product if fits and _equal(matrix, product) else matrix


def _symmetric(matrix: ca.SX) -> ca.SX:
    """The matrix; entries above the diagonal are those below it where both are equal, as in G M^-1 G^T."""
    mirrored = ca.tril2symm(ca.tril(matrix))
    return mirrored if mirrored.sparsity() == matrix.sparsity() and _equal(matrix, mirrored) else matrix


def _equal(a: ca.SX, b: ca.SX) -> bool:
    """Whether the entries of two matrices of one pattern are equal everywhere: analytic functions are, if at random numbers."""
    entries = [entries_of(a), entries_of(b)]
    symbols = ca.vertcat(ca.SX(0, 1), *ca.symvar(ca.vertcat(*entries)))
    if np.any(np.isin(read_tape(ca.Function("both", [symbols], [ca.vertcat(*entries)])).code, PIECEWISE)):
        return False
    function = ca.Function("both", [symbols], entries)
    random = np.random.default_rng(1788)
    for _ in range(3):
        one, other = (np.array(x, dtype=float) for x in function(random.uniform(0.5, 1.5, function.numel_in(0))))
        largest = np.max(np.abs(one), initial=0.0)  # nan where a function is not defined at random numbers
        if not np.isfinite(largest) or not np.allclose(one, other, rtol=1e-10, atol=1e-10 * largest):
            return False
    return True
