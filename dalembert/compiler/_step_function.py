"""A step as a `casadi.Function`, for users' own optimisation and optimal-control problems."""

from __future__ import annotations

import casadi as ca

from dalembert.compiler._reduction import ReducedStep, reduce_step
from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.systems import MechanicalSystem


def step_function(system: MechanicalSystem, method: OneStepMethod) -> ca.Function:
    """The step map as a differentiable `casadi.Function` (t, h, q, p, params) -> (q, p).

    The stage equations are solved by CasADi's Newton iteration, so that the function can be called with numbers or with CasADi
    symbols, and derivatives of any order follow by the implicit function theorem. `params` is the flat vector of parameters.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.pendulum()
        >>> step = da.step_function(problem.system, da.LobattoIIIAB(stages=3))
        >>> q1, p1 = step(0.0, 0.1, problem.q0, problem.p0, [1.0, 1.0, 1.0])
        >>> float(abs(q1[0] ** 2 + q1[1] ** 2 - 1)) < 1e-12
        True

    """
    if method.starting is not None:
        raise InputError(f"{method} prepares its first step, so one step of it is not a map of (q, p)")
    reduced = reduce_step(method.step_equations(system))
    time, h, theta, state = reduced.data
    last = reduced.last
    y = ca.SX(0, 1) if last is None else last.y
    unknowns = ca.vertcat(reduced.x, y)
    residual = reduced.residual if last is None else ca.vertcat(reduced.residual, last.matrix @ y - last.rhs)
    data = ca.vertcat(time, h, theta, state)
    increment = ca.Function("increment", [unknowns, data], [reduced.increment])

    n = system.dim
    names = ["t", "h", "q", "p", "params"]
    inputs = [ca.MX.sym("t"), ca.MX.sym("h"), ca.MX.sym("q", n), ca.MX.sym("p", n), ca.MX.sym("params", theta.shape[0])]
    packed = ca.vertcat(inputs[0], inputs[1], inputs[4], inputs[2], inputs[3])
    if unknowns.shape[0]:
        options = {"abstol": 1e-13, "error_on_fail": True}
        solver = ca.rootfinder("stages", "newton", {"x": unknowns, "p": data, "g": residual}, options)
        solution = solver(x0=_first_guess(system, reduced, inputs, unknowns.shape[0]), p=packed)["x"]
    else:
        solution = ca.MX(0, 1)
    change = increment(solution, packed)
    return ca.Function("step", inputs, [inputs[2] + change[:n], inputs[3] + change[n:]], names, ["q_next", "p_next"])


def _first_guess(system: MechanicalSystem, reduced: ReducedStep, inputs: list[ca.MX], size: int) -> ca.MX:
    """Stages along the tangent without constraint forces: enough for Newton's iteration at moderate h."""
    t, h, q, p, theta = inputs
    rates = {"q": system.function("H_p")(t, q, p, theta), "p": -system.function("H_q")(t, q, p, theta)}
    parts = [ca.MX(0, 1)]
    for block in reduced.blocks:
        if block.kind == "increment":
            parts += [float(node) * rates[block.of] * (1 if block.per_h else h) for node in block.nodes]
        else:
            parts.append(ca.MX.zeros(block.symbols.shape[0], 1))
    guess = ca.vertcat(*parts)
    return ca.vertcat(guess, ca.MX.zeros(size - guess.shape[0], 1))
