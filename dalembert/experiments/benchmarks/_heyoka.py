"""CasADi functions as expressions of heyoka."""

from __future__ import annotations

import operator
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler._tape import read_tape
from dalembert.errors import UnsupportedSystem

NAMES = ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh")


def expressions(function: ca.Function, names: list[str], theta: np.ndarray) -> list[Any]:
    """A function of (t, x, theta) as expressions in the variables with these names and heyoka's time."""
    import heyoka as hy

    t, x = ca.SX.sym("t"), ca.SX.sym("x", len(names))
    tape = read_tape(ca.Function("f", [ca.vertcat(t, x)], [ca.densify(function(t, x, theta))]))
    known = {getattr(ca, f"OP_{name.upper()}"): getattr(hy, name) for name in NAMES}
    known |= {ca.OP_ADD: operator.add, ca.OP_SUB: operator.sub, ca.OP_MUL: operator.mul, ca.OP_DIV: operator.truediv}
    known |= {ca.OP_NEG: operator.neg, ca.OP_SQ: lambda x: x * x, ca.OP_TWICE: lambda x: 2.0 * x, ca.OP_INV: lambda x: 1.0 / x}
    known |= {ca.OP_ASSIGN: lambda x: x, ca.OP_POW: operator.pow, ca.OP_CONSTPOW: operator.pow}
    inputs, values = [hy.time, *hy.make_vars(*names)], []
    for operation, operands, constant, position in tape.rows():
        if operation == ca.OP_CONST:
            values.append(hy.expression(float(constant)))
        elif operation == ca.OP_INPUT:
            values.append(inputs[position])
        elif operation in known:
            values.append(known[operation](*(values[i] for i in operands)))
        else:
            raise UnsupportedSystem(f"heyoka has no operation for CasADi's number {operation}")
    return [values[k] for k in tape.outputs]
