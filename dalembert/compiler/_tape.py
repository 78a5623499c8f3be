"""A CasADi function as arrays: one column a value, in which no value is computed twice.

CasADi's own elimination of common subexpressions (`cse`, 3.8.2) is not used anywhere here: where merged operands let an
expression simplify, as (x / a) * a does, it has replaced later expressions by values of others.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.symbolic._lock import one_at_a_time

COMMUTATIVE = (ca.OP_ADD, ca.OP_MUL)


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


@one_at_a_time
def read_tape(function: ca.Function) -> Tape:
    """The instructions of a function of one column with one result."""
    registers: dict[int, int] = {}
    numbers: dict[tuple, int] = {}
    codes: list[int] = []
    operands: list[tuple[int, int]] = []
    constants: dict[int, float] = {}
    inputs: dict[int, int] = {}
    outputs = np.zeros(function.nnz_out(0), dtype=np.int64)
    identity, read, write = function.instruction_id, function.instruction_input, function.instruction_output
    for k in range(function.n_instructions()):
        code = identity(k)
        if code == ca.OP_OUTPUT:
            outputs[write(k)[1]] = registers[read(k)[0]]
            continue
        pair, key = (-1, -1), (code, 0.0)
        if code == ca.OP_CONST:
            value = function.instruction_constant(k)
            key = (code, value.hex())  # -0.0 is not 0.0, and nan is itself
        elif code == ca.OP_INPUT:
            position = read(k)[1]
            key = (code, position)
        else:
            used = [registers[i] for i in read(k)]
            pair = (used[0], used[1] if len(used) > 1 else -1)
            key = (code, pair[1], pair[0]) if code in COMMUTATIVE and pair[1] < pair[0] else (code, *pair)
        number = numbers.setdefault(key, len(codes))
        if number == len(codes):
            if code == ca.OP_CONST:
                constants[number] = value
            elif code == ca.OP_INPUT:
                inputs[number] = position
            codes.append(code)
            operands.append(pair)
        registers[write(k)[0]] = number
    size = len(codes)
    numbers_of, places = np.zeros(size), np.full(size, -1, dtype=np.int64)
    numbers_of[list(constants)] = list(constants.values())
    places[list(inputs)] = list(inputs.values())
    return Tape(np.array(codes, dtype=np.int64), np.array(operands, dtype=np.int64).reshape(-1, 2), numbers_of, places, outputs)
