"""A CasADi function as arrays: one column a value, in which no value is computed twice.

CasADi's own elimination of common subexpressions (`cse`, 3.8.2) is not used anywhere here: where merged operands let an
expression simplify, as (x / a) * a does, it has replaced later expressions by values of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.symbolic._lock import one_at_a_time

CODES = 256
"""More than there are operations."""

COMMUTATIVE = frozenset({ca.OP_ADD, ca.OP_MUL})
BINARY = frozenset({
    ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_DIV, ca.OP_POW, ca.OP_CONSTPOW, ca.OP_ATAN2, ca.OP_FMIN, ca.OP_FMAX, ca.OP_FMOD,
    ca.OP_REMAINDER, ca.OP_COPYSIGN, ca.OP_HYPOT, ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_AND, ca.OP_OR,
    ca.OP_IF_ELSE_ZERO,
})  # fmt: skip
"""Operations of two operands; all others have one, or one that counts."""


def members(codes: Iterable[int]) -> np.ndarray:
    """A table that says of every operation whether it is one of these."""
    return np.isin(np.arange(CODES), list(codes))


IS_BINARY, IS_COMMUTATIVE = members(BINARY), members(COMMUTATIVE)


@dataclass(frozen=True, eq=False)
class Tape:
    """Values in the order of computation: inputs and constants are leaves, operands come before what uses them."""

    code: np.ndarray
    """The operation of each value."""
    operands: np.ndarray
    """Two columns of earlier values; -1 where an operation has fewer."""
    constants: np.ndarray
    """The number of a value that is a constant."""
    inputs: np.ndarray
    """The position of a value that is an input, else -1."""
    outputs: np.ndarray
    """Which value each output is."""

    @property
    def computed(self) -> np.ndarray:
        """The values that are neither inputs nor constants."""
        return np.flatnonzero((self.code != ca.OP_CONST) & (self.code != ca.OP_INPUT))

    def rows(self) -> Iterator[tuple[int, list[int], float, int]]:
        """Operation, operands, number and position of one value after the other."""
        operands = [[k for k in pair if k >= 0] for pair in self.operands.tolist()]
        return zip(self.code.tolist(), operands, self.constants.tolist(), self.inputs.tolist(), strict=True)


RECORD = np.dtype([("code", np.int32), ("to", np.int32), ("first", np.int32), ("second", np.int32)])
"""An instruction as CasADi stores it: operation, register of the result, registers or positions of the operands."""

NUMBER = np.dtype([("code", np.int32), ("to", np.int32), ("value", np.float64)])
"""The same of a constant."""


def entries_of(matrix: ca.SX) -> ca.SX:
    """The nonzeros of a matrix as one column."""
    return matrix.nz[:] if matrix.nnz() else ca.SX(0, 1)


@one_at_a_time
def read_tape(function: ca.Function) -> Tape:
    """The instructions of a function of one column with one result."""
    from dalembert.compiler._passes import number_values

    records = _stored_records(function)
    if records is None:
        records = _asked_records(function)
    values, count = records.view(NUMBER)["value"], len(records)
    outputs, kept = np.zeros(function.nnz_out(0), dtype=np.int64), np.zeros(count, dtype=np.int64)
    operands, keys = np.zeros((count, 2), dtype=np.int64), np.zeros((count, 3), dtype=np.int64)
    table = np.full(1 << max(4, (2 * count).bit_length()), -1, dtype=np.int64)
    columns = [np.array(records[name]) for name in RECORD.names or ()]
    bits = np.array(values).view(np.int64)
    special = (int(ca.OP_OUTPUT), int(ca.OP_CONST), int(ca.OP_INPUT))
    found = number_values(*columns, bits, special, IS_BINARY, IS_COMMUTATIVE, table, outputs, kept, operands, keys)
    own = records[kept[:found]]
    code = own["code"].astype(np.int64)
    constants = np.where(code == ca.OP_CONST, values[kept[:found]], 0.0)
    inputs = np.where(code == ca.OP_INPUT, own["second"], -1).astype(np.int64)
    return Tape(code, operands[:found].copy(), constants, inputs, outputs)


def _stored_records(function: ca.Function) -> np.ndarray | None:
    """The instructions out of the function's serialized form: asking for one after the other takes several times as long.

    The form is CasADi's own affair: what was read is compared with some instructions that are asked for.
    """
    count = function.n_instructions()
    asked = sorted({0, 1, 2, count // 2, count - 2, count - 1} & set(range(count)))
    letters = np.frombuffer(function.serialize().encode(), dtype=np.uint8) - ord("a")
    stored = (letters[0:-1:2] | letters[1::2] << 4).tobytes()
    known = {k: _asked_record(function, k).tobytes() for k in asked}
    start = stored.rfind(b"".join(known[k] for k in asked if k < 3))
    if start < 0 or start + count * RECORD.itemsize > len(stored):
        return None
    records = np.frombuffer(stored, dtype=RECORD, count=count, offset=start)
    return records if all(records[k].tobytes() == known[k] for k in asked) else None


def _asked_records(function: ca.Function) -> np.ndarray:
    return np.concatenate([np.zeros(0, RECORD), *(_asked_record(function, k) for k in range(function.n_instructions()))])


def _asked_record(function: ca.Function, k: int) -> np.ndarray:
    """One instruction, as it would be stored."""
    code, to, read = function.instruction_id(k), function.instruction_output(k), function.instruction_input(k)
    if code == ca.OP_CONST:
        return np.array([(code, to[0], function.instruction_constant(k))], dtype=NUMBER).view(RECORD)
    if code == ca.OP_OUTPUT:
        return np.array([(code, to[0], read[0], to[1])], dtype=RECORD)
    return np.array([(code, to[0], read[0], read[-1])], dtype=RECORD)
