"""CasADi's operations on single expressions, called by their codes: operators look for overloads, ten times as long."""

from __future__ import annotations

import functools
from collections.abc import Callable

import casadi as ca

Unary = Callable[[ca.SX], ca.SX]
Binary = Callable[[ca.SX, ca.SX], ca.SX]

add: Binary = functools.partial(ca.SX.binary, ca.OP_ADD)
subtract: Binary = functools.partial(ca.SX.binary, ca.OP_SUB)
multiply: Binary = functools.partial(ca.SX.binary, ca.OP_MUL)
divide: Binary = functools.partial(ca.SX.binary, ca.OP_DIV)


def unary(name: str) -> Unary:
    """The operation of one operand that CasADi has under this name, such as "sin"."""
    return functools.partial(ca.SX.unary, getattr(ca, f"OP_{name.upper()}"))
