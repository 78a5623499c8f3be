"""Repeated shapes in a graph: the same formula for every link of a chain, found again in a tape that knows no links.

The tape is cut into pieces at values that are used more than once, at outputs, and at the terms of long sums. A piece is a
tree of operations over leaves: slots of memory (inputs and results of other pieces) and constants. Pieces of one shape, which
is what remains of a tree without its leaves, form a run if none of them needs another: one loop computes them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.compiler._tape import CODES, IS_COMMUTATIVE, Tape, members

LONGEST_SUM = 6
"""Terms of a sum, or of a maximum, from which on it becomes a loop over its terms."""

FAMILIES = {ca.OP_ADD: ca.OP_ADD, ca.OP_SUB: ca.OP_ADD, ca.OP_FMAX: ca.OP_FMAX, ca.OP_FMIN: ca.OP_FMIN}
"""What may be accumulated term by term, and by which operation."""

LARGEST = 40
"""Operations of a piece at which it is cut."""

CHEAP = (ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE)
"""Operations that are rather repeated than stored, if both operands are leaves."""

CONSTANT, SLOT = 1, 2
IS_CHEAP = members(CHEAP)
FAMILY = np.array([FAMILIES.get(code, -1) for code in range(CODES)])


@dataclass(frozen=True, eq=False)
class Pieces:
    """How a tape is cut."""

    root: np.ndarray
    """Whether a value is the result of a piece, and so stored."""
    swapped: np.ndarray
    """Whether the operands of a commutative operation stand in the other order than in its shape."""
    shape: np.ndarray
    """A number for the shape of the tree below each value; negative for long sums, by their number of terms."""
    level: np.ndarray
    """How many pieces must be computed, one after the other, until a value is known."""
    terms: dict[int, list[tuple[int, float]]]
    """The terms of each long sum in their order, and their signs."""


def cut(tape: Tape) -> Pieces:
    """Find pieces and their shapes, in one pass over the tape after long sums were found."""
    from dalembert.compiler._passes import tree_shapes

    code, operands, size = tape.code, tape.operands, len(tape.code)
    leaf = np.where(code == ca.OP_CONST, CONSTANT, np.where(code == ca.OP_INPUT, SLOT, 0))
    uses = np.bincount(operands[operands >= 0], minlength=size) + 2 * np.bincount(tape.outputs, minlength=size)
    terms, inner = _long_sums(tape, uses)
    a, b = operands.T
    repeated = IS_CHEAP[code] & (leaf[a] > 0) & ((b < 0) | (leaf[b] > 0))
    root = (uses > 1) & ~repeated
    each = [np.array([value for value, _ in parts]) for parts in terms.values()]
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *each])
    root[np.concatenate([tape.outputs, np.array(list(terms), dtype=np.int64), flat])] = True
    root &= leaf == 0
    sum_of, starts = np.full(size, -1), np.cumsum([0, *(len(part) for part in each)])
    sum_of[list(terms)] = np.arange(len(terms))
    shape, level, swapped = tree_shapes(code, operands, leaf, inner, root, sum_of, starts, flat, IS_COMMUTATIVE, LARGEST)
    return Pieces(root, swapped, shape, level, terms)


def _long_sums(tape: Tape, uses: np.ndarray) -> tuple[dict[int, list[tuple[int, float]]], np.ndarray]:
    """The terms of sums that are long, by their last value, and the partial sums, which need not be stored."""
    from dalembert.compiler._passes import spines

    length, spine = spines(tape.code, tape.operands, uses, FAMILY, int(ca.OP_SUB))
    terms: dict[int, list[tuple[int, float]]] = {}
    inner = np.zeros(len(length), dtype=bool)
    for k in np.flatnonzero(length > LONGEST_SUM)[::-1].tolist():
        if inner[k]:
            continue
        sums = [k]
        while spine[sums[-1]] >= 0:
            sums.append(int(spine[sums[-1]]))
        inner[sums[1:]] = True
        pairs, minus = tape.operands[sums].tolist(), (tape.code[sums] == ca.OP_SUB).tolist()
        parts = [
            (b if following == a else a, -1.0 if negative else 1.0)
            for (a, b), negative, following in zip(pairs, minus, sums[1:], strict=False)
        ]
        a, b = pairs[-1]
        terms[k] = [*parts, (b, -1.0 if minus[-1] else 1.0), (a, 1.0)][::-1]
    return terms, inner


@dataclass(frozen=True, eq=False)
class Run:
    """Pieces of one shape and level: the operations of the shape, over columns of leaves with one row a piece."""

    results: np.ndarray
    operations: list[tuple[int, tuple[int, ...]]]
    """Code and operands of each operation: columns first, then the results of earlier operations."""
    columns: list[np.ndarray]


def run_of(tape: Tape, pieces: Pieces, results: np.ndarray) -> Run:
    """The run of these results, which have one shape."""
    columns: list[np.ndarray] = []
    operations: list[tuple[int, tuple[int, ...]]] = []
    leaf = (tape.code == ca.OP_CONST) | (tape.code == ca.OP_INPUT) | pieces.root

    def visit(values: np.ndarray, top: bool) -> int:
        if not top and leaf[values[0]]:
            columns.append(values)
            return -len(columns)
        code = tape.code[values[0]]
        assert np.all(tape.code[values] == code), "two shapes with one number"
        a, b = tape.operands[values].T
        swap = pieces.swapped[values]
        a, b = np.where(swap, b, a), np.where(swap, a, b)
        arguments = (visit(a, False),) if b[0] < 0 else (visit(a, False), visit(b, False))
        operations.append((int(code), arguments))
        return len(operations)

    visit(results, True)
    count = len(columns)
    numbered = [(code, tuple(-k - 1 if k < 0 else count + k - 1 for k in arguments)) for code, arguments in operations]
    return Run(results, numbered, columns)
