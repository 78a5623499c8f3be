"""How far rounding blurs the value of an expression."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from dalembert.symbolic._buffers import Numbers


def rounding(expression: ca.SX, inputs: list[ca.SX]) -> ca.SX:
    """What an expression changes by, to first order, if its inputs and all intermediate results change by a factor 1 + eps.

    For each component the sum of |d expression / d log(w)| over all w that occur in it, to be multiplied by eps.
    N. J. Higham, Accuracy and Stability of Numerical Algorithms (2002), section 3.3 (running error analysis).
    """
    arguments = ca.vertcat(*inputs)
    function = ca.Function("f", [arguments], [ca.densify(expression)])
    n = function.n_instructions()
    relative = ca.SX.sym("relative", n)
    values: dict[int, ca.SX] = {}
    results = [ca.SX(0)] * expression.shape[0]
    for k in range(n):
        code, operands = function.instruction_id(k), function.instruction_input(k)
        if code == ca.OP_OUTPUT:
            results[function.instruction_output(k)[1]] = values[operands[0]]
            continue
        if code == ca.OP_CONST:
            exact = ca.SX(function.instruction_constant(k))
        elif code == ca.OP_INPUT:
            exact = arguments[operands[1]]
        elif len(operands) == 1:
            exact = ca.SX.unary(code, values[operands[0]])
        else:
            exact = ca.SX.binary(code, values[operands[0]], values[operands[1]])
        values[function.instruction_output(k)[0]] = exact * (1 + relative[k])
    sensitivity = ca.jacobian(ca.vertcat(*results), relative)
    return ca.sum2(ca.fabs(ca.substitute(sensitivity, relative, ca.SX.zeros(n, 1))))


class TermSizes:
    """`rounding` of a function's components in numbers, at many places.

    Forwards, so that bounds are added up where errors might cancel.
    """

    def __init__(self, function: ca.Function) -> None:
        self._function, self._components = function, function.numel_out(0)
        self._instructions = [
            (
                function.instruction_id(k),
                function.instruction_input(k),
                function.instruction_output(k),
                function.instruction_constant(k) if function.instruction_id(k) == ca.OP_CONST else 0.0,
            )
            for k in range(function.n_instructions() if self._components else 0)
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return TermSizes, (self._function,)

    def __call__(self, *arguments: np.ndarray) -> np.ndarray:
        """One row a place, also of every argument."""
        count = len(arguments[0])
        result = np.zeros((count, self._components))
        values: dict[int, np.ndarray] = {}
        errors: dict[int, np.ndarray] = {}
        for code, operands, results, constant in self._instructions:
            if code == ca.OP_OUTPUT:
                result[:, results[1]] = errors[operands[0]]
                continue
            inherited: np.ndarray | float = 0.0
            if code == ca.OP_CONST:
                value = np.full(count, constant)
            elif code == ca.OP_INPUT:
                value = np.asarray(arguments[operands[0]][:, operands[1]], dtype=float)
            else:
                value, slopes = _operation(code, *(values[j] for j in operands))
                inherited = sum(np.abs(slope) * errors[j] for slope, j in zip(slopes, operands, strict=True))
            values[results[0]], errors[results[0]] = value, np.abs(value) + inherited
        return result


_ARITHMETIC: dict[int, Callable[..., tuple[np.ndarray, Sequence[Any]]]] = {
    ca.OP_ADD: lambda x, y: (x + y, (1.0, 1.0)),
    ca.OP_SUB: lambda x, y: (x - y, (1.0, 1.0)),
    ca.OP_MUL: lambda x, y: (x * y, (y, x)),
    ca.OP_SQ: lambda x: (x * x, (2 * x,)),
    ca.OP_COS: lambda x: (np.cos(x), (np.sin(x),)),
    ca.OP_SIN: lambda x: (np.sin(x), (np.cos(x),)),
}
"""The value and, up to their signs, the derivatives of the most common operations."""


def _operation(code: int, *operands: np.ndarray) -> tuple[np.ndarray, Sequence[Any]]:
    if code in _ARITHMETIC:
        return _ARITHMETIC[code](*operands)
    outcome = _operation_of(code, len(operands)).rows(np.transpose(operands)).T
    return outcome[0], list(outcome[1:])


@functools.cache
def _operation_of(code: int, operands: int) -> Numbers:
    """One operation of a graph, and its derivatives."""
    x = ca.SX.sym("x", operands)
    value = ca.SX.unary(code, x) if operands == 1 else ca.SX.binary(code, x[0], x[1])
    return Numbers(ca.Function("operation", [x], [ca.vertcat(value, ca.densify(ca.jacobian(value, x)).T)]))
