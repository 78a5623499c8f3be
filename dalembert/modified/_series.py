"""Power series in h of a symbolic expression, through difference quotients such as (q1 - q0) / h with q1 = q0 + h v.

At h = 0 such an expression reads 0/0, so that it can't be differentiated there. Its series is found by doing its arithmetic
with truncated Laurent series instead of numbers: dividing by h is then a shift.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from dalembert.errors import UnsupportedSystem
from dalembert.symbolic import merged

SPARE = 4
"""Terms computed beyond those asked for: one is lost for every division by h of something that vanishes with h."""


@dataclass(frozen=True)
class Series:
    """c_0 h^low + c_1 h^(low+1) + ..., known as far as `c` goes."""

    low: int
    c: tuple[ca.SX, ...]

    def from_power(self, power: int) -> tuple[ca.SX, ...]:
        """The coefficients of h^power, h^(power+1), ..."""
        return (ca.SX(0),) * (self.low - power) + self.c[max(power - self.low, 0) :]

    def __add__(self, other: Series) -> Series:
        low = min(self.low, other.low)
        return Series(low, tuple(x + y for x, y in zip(self.from_power(low), other.from_power(low), strict=False)))

    def __neg__(self) -> Series:
        return Series(self.low, tuple(-x for x in self.c))

    def __mul__(self, other: Series) -> Series:
        terms = range(min(len(self.c), len(other.c)))
        products = (sum((self.c[i] * other.c[k - i] for i in range(k + 1)), ca.SX(0)) for k in terms)
        return Series(self.low + other.low, tuple(products))

    def reciprocal(self) -> Series:
        """1 / (c_0 + c_1 h + ...), after taking out the powers of h that vanish."""
        zeros = next((k for k, x in enumerate(self.c) if not x.is_zero()), len(self.c))
        if zeros == len(self.c):
            raise UnsupportedSystem("the discrete Lagrangian divides by an expression that is zero for all h")
        leading, *rest = self.c[zeros:]
        inverse = [1 / leading]
        for k in range(1, len(rest) + 1):
            inverse.append(-sum((rest[i] * inverse[k - 1 - i] for i in range(k)), ca.SX(0)) / leading)
        return Series(-self.low - zeros, tuple(inverse))


def expand(expression: ca.SX, values: Sequence[tuple[ca.SX, Sequence[ca.SX]]], order: int) -> list[ca.SX]:
    """The coefficients of h^0, ..., h^order of a scalar expression; a column that depends on h is given by its coefficients."""
    terms = order + 1 + SPARE
    function = ca.Function("expression", [symbol for symbol, _ in values], [expression])
    inputs = [[_series([c[i] for c in coefficients], terms) for i in range(x.shape[0])] for x, coefficients in values]
    slots: dict[int, Series] = {}
    result = _series([ca.SX(0)], terms)
    for k in range(function.n_instructions()):
        operation, operands, outputs = (
            function.instruction_id(k), function.instruction_input(k), function.instruction_output(k)
        )  # fmt: skip
        if operation == ca.OP_INPUT:
            slots[outputs[0]] = inputs[operands[0]][operands[1]]
        elif operation == ca.OP_CONST:
            slots[outputs[0]] = _series([ca.SX(function.instruction_constant(k))], terms)
        elif operation == ca.OP_OUTPUT:
            result = slots[operands[0]]
        else:
            slots[outputs[0]] = _apply(operation, [slots[i] for i in operands])
    if any(not x.is_zero() for x in result.c[: max(-result.low, 0)]):
        raise UnsupportedSystem(
            "L_d(q, q + h v, h) / h could not be expanded at h = 0: write difference quotients as (q1 - q0) / h, or use "
            'expansion="eta"'
        )
    return [merged(x) for x in result.from_power(0)[: order + 1]]


def _series(coefficients: Sequence[ca.SX], terms: int) -> Series:
    return Series(0, (*coefficients, *[ca.SX(0)] * (terms - len(coefficients))))


def _apply(operation: int, operands: list[Series]) -> Series:
    x, y = operands[0], operands[-1]
    arithmetic = {
        ca.OP_ADD: lambda: x + y,
        ca.OP_SUB: lambda: x + -y,
        ca.OP_NEG: lambda: -x,
        ca.OP_TWICE: lambda: x + x,
        ca.OP_MUL: lambda: x * y,
        ca.OP_SQ: lambda: x * x,
        ca.OP_DIV: lambda: x * y.reciprocal(),
        ca.OP_INV: lambda: x.reciprocal(),
    }
    if operation in arithmetic:
        return arithmetic[operation]()
    if any(not c.is_zero() for s in operands for c in s.c[: max(-s.low, 0)]):
        raise UnsupportedSystem(
            "L_d(q, q + h v, h) / h could not be expanded at h = 0, because it applies a function to something that grows "
            'like 1/h: use expansion="eta"'
        )
    regular = [s.from_power(0) for s in operands]
    terms = min(len(c) for c in regular)
    columns = [ca.vertcat(*c[:terms]) for c in regular]
    value = _taylor(operation, len(operands), terms)(*columns)
    return Series(0, tuple(ca.vertsplit(value)))


@functools.cache
def _taylor(operation: int, arity: int, terms: int) -> ca.Function:
    """The Taylor coefficients of an elementary function of series, as a function of theirs."""
    s = ca.SX.sym("s")
    columns = [ca.SX.sym("c", terms) for _ in range(arity)]
    arguments = [sum(c[i] * s**i for i in range(terms)) for c in columns]
    value = ca.SX.unary(operation, *arguments) if arity == 1 else ca.SX.binary(operation, *arguments)
    coefficients = []
    for k in range(terms):
        coefficients.append(ca.substitute(value, s, 0) / math.factorial(k))
        value = ca.jacobian(value, s)
    return ca.Function("taylor", columns, [merged(ca.vertcat(*coefficients))])
