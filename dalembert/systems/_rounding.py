"""How far rounding blurs the value of an expression."""

from __future__ import annotations

import casadi as ca


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
