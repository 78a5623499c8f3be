"""Repeated shapes in a graph: the same formula for every link of a chain, found again in a tape that knows no links.

The tape is cut into pieces at values that are used more than once, at outputs, and at the terms of long sums. A piece is a
tree of operations over leaves: slots of memory (inputs and results of other pieces) and constants. Pieces of one shape, which
is what remains of a tree without its leaves, form a run if none of them needs another: one loop computes them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.compiler._tape import COMMUTATIVE, Tape

LONGEST_SUM = 6
"""Terms of a sum, or of a maximum, from which on it becomes a loop over its terms."""

FAMILIES = {ca.OP_ADD: ca.OP_ADD, ca.OP_SUB: ca.OP_ADD, ca.OP_FMAX: ca.OP_FMAX, ca.OP_FMIN: ca.OP_FMIN}
"""What may be accumulated term by term, and by which operation."""

LARGEST = 40
"""Operations of a piece at which it is cut."""

CHEAP = (ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE)
"""Operations that are rather repeated than stored, if both operands are leaves."""

CONSTANT, SLOT = 1, 2
_MASK = (1 << 61) - 1


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
    code, operands = tape.code.tolist(), tape.operands.tolist()
    size = len(code)
    leaf = [CONSTANT if c == ca.OP_CONST else SLOT if c == ca.OP_INPUT else 0 for c in code]
    used = tape.operands[tape.operands >= 0]
    uses = (np.bincount(used, minlength=size) + 2 * np.bincount(tape.outputs, minlength=size)).tolist()
    terms, inner = _long_sums(code, operands, uses)
    root = [False] * size
    for k in range(size):
        if uses[k] > 1 and not leaf[k]:
            a, b = operands[k]
            root[k] = not (code[k] in CHEAP and leaf[a] and (b < 0 or leaf[b]))
    for k in (*tape.outputs.tolist(), *terms, *(value for parts in terms.values() for value, _ in parts)):
        root[k] = not leaf[k]
    count, shape, level, swapped = [0] * size, leaf.copy(), [0] * size, [False] * size
    for k in range(size):
        if leaf[k] or k in inner:
            continue
        if k in terms:
            shape[k] = -len(terms[k])
            level[k] = 1 + max(level[value] for value, _ in terms[k])
            continue
        a, b = operands[k]
        first = SLOT if root[a] else shape[a]
        second, number, height = 0, 1 + (0 if root[a] else count[a]), level[a]
        if b >= 0:
            second = SLOT if root[b] else shape[b]
            number, height = number + (0 if root[b] else count[b]), max(height, level[b])
            if code[k] in COMMUTATIVE and second > first:
                first, second, swapped[k] = second, first, True
        count[k] = number
        if number > LARGEST:
            root[k] = True
        shape[k] = 3 + hash((code[k], first, second)) & _MASK
        level[k] = height + root[k]
    return Pieces(np.array(root), np.array(swapped), np.array(shape, dtype=np.int64), np.array(level), terms)


def _long_sums(
    code: list[int], operands: list[list[int]], uses: list[int]
) -> tuple[dict[int, list[tuple[int, float]]], set[int]]:
    """The terms of sums that are long, by their last value, and the partial sums, which need not be stored."""
    length = [0] * len(code)
    spine = [-1] * len(code)
    for k, c in enumerate(code):
        if c in FAMILIES:
            family, allowed = FAMILIES[c], operands[k][:1] if c == ca.OP_SUB else operands[k]
            candidates = [x for x in allowed if length[x] and uses[x] == 1 and FAMILIES[code[x]] == family]
            spine[k] = max(candidates, key=length.__getitem__, default=-1)
            length[k] = 1 + (length[spine[k]] if spine[k] >= 0 else 1)
    terms: dict[int, list[tuple[int, float]]] = {}
    inner: set[int] = set()
    for k in range(len(code) - 1, -1, -1):
        if length[k] <= LONGEST_SUM or k in inner:
            continue
        parts, at = [], k
        while spine[at] >= 0:
            a, b = operands[at]
            parts.append((b if spine[at] == a else a, -1.0 if code[at] == ca.OP_SUB else 1.0))
            at = spine[at]
            inner.add(at)
        a, b = operands[at]
        parts += [(b, -1.0 if code[at] == ca.OP_SUB else 1.0), (a, 1.0)]
        terms[k] = parts[::-1]
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
