"""How far rounding blurs the values of a function (`systems/_rounding.py`), in numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler._tape import read_tape
from dalembert.symbolic._buffers import Numbers

AT_ONCE = 4_000_000
"""Numbers that are kept of all places that are looked at together."""


class TermSizes:
    """`rounding` of a function's components in numbers, at many places.

    Forwards, so that bounds are added up where errors might cancel. Equal operations that do not wait for each other are
    looked at together.
    """

    def __init__(self, function: ca.Function) -> None:
        self._function = function
        symbols = [ca.SX.sym("s", function.size1_in(k)) for k in range(function.n_in())]
        self._tape = read_tape(ca.Function("terms", [ca.vertcat(*symbols)], [ca.densify(function(*symbols))]))
        self._groups = self._alike()

    def __reduce__(self) -> tuple[Any, ...]:
        return TermSizes, (self._function,)

    def _alike(self) -> list[np.ndarray]:
        """Values computed by one operation from earlier groups."""
        from dalembert.compiler._passes import heights

        height, code, computed = heights(self._tape.operands), self._tape.code, self._tape.computed
        computed = computed[np.lexsort((computed, code[computed], height[computed]))]
        changes = np.flatnonzero(np.diff(height[computed]) | np.diff(code[computed])) + 1
        return np.split(computed, changes) if len(computed) else []

    def __call__(self, *arguments: np.ndarray) -> np.ndarray:
        """One row a place, also of every argument."""
        count, tape = len(arguments[0]), self._tape
        places = np.concatenate([np.broadcast_to(a, (count, np.shape(a)[1])) for a in arguments], axis=1).astype(float)
        each = max(1, AT_ONCE // max(1, len(tape.code)))
        parts = [self._errors(places[first : first + each]) for first in range(0, count, each)]
        return np.concatenate([np.zeros((0, len(tape.outputs))), *parts])

    def _errors(self, places: np.ndarray) -> np.ndarray:
        tape = self._tape
        values = np.repeat(tape.constants[:, None], len(places), axis=1)
        given = tape.inputs >= 0
        values[given] = places.T[tape.inputs[given]]
        errors = np.abs(values)
        for group in self._groups:
            operands = [column for column in tape.operands[group].T if column[0] >= 0]
            values[group], slopes = _operation(int(tape.code[group[0]]), *(values[k] for k in operands))
            inherited = sum(np.abs(slope) * errors[k] for slope, k in zip(slopes, operands, strict=True))
            errors[group] = np.abs(values[group]) + inherited
        return errors[tape.outputs].T


_ARITHMETIC: dict[int, Callable[..., tuple[np.ndarray, Sequence[Any]]]] = {
    ca.OP_ADD: lambda x, y: (x + y, (1.0, 1.0)),
    ca.OP_SUB: lambda x, y: (x - y, (1.0, 1.0)),
    ca.OP_MUL: lambda x, y: (x * y, (y, x)),
    ca.OP_DIV: lambda x, y: (x / y, (1 / y, x / (y * y))),
    ca.OP_NEG: lambda x: (-x, (1.0,)),
    ca.OP_SQ: lambda x: (x * x, (2 * x,)),
    ca.OP_SQRT: lambda x: (np.sqrt(x), (0.5 / np.sqrt(x),)),
    ca.OP_COS: lambda x: (np.cos(x), (np.sin(x),)),
    ca.OP_SIN: lambda x: (np.sin(x), (np.cos(x),)),
}
"""The value and, up to their signs, the derivatives of the most common operations."""


def _operation(code: int, *operands: np.ndarray) -> tuple[np.ndarray, Sequence[Any]]:
    if code in _ARITHMETIC:
        return _ARITHMETIC[code](*operands)
    flat = np.stack([x.ravel() for x in operands], axis=1)
    outcome = _operation_of(code, len(operands)).rows(flat).T.reshape(-1, *operands[0].shape)
    return outcome[0], list(outcome[1:])


@functools.cache
def _operation_of(code: int, operands: int) -> Numbers:
    """One operation of a graph, and its derivatives."""
    x = ca.SX.sym("x", operands)
    value = ca.SX.unary(code, x) if operands == 1 else ca.SX.binary(code, x[0], x[1])
    return Numbers(ca.Function("operation", [x], [ca.vertcat(value, ca.densify(ca.jacobian(value, x)).T)]))
