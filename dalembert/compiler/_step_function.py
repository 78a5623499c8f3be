"""A step as a `casadi.Function`, for users' own optimisation and optimal-control problems."""

from __future__ import annotations

import casadi as ca

from dalembert.compiler._reduction import ReducedStep, reduce_step
from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.systems import System


def step_function(system: System, method: OneStepMethod) -> ca.Function:
    """The step map as a differentiable `casadi.Function` (t, h, q, p, params) -> (q, p), or (t, h, y, z, params) -> (y, z).

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
    refuse_varying(method, "step_function")
    if method.starting is not None:
        raise InputError(f"{method} prepares its first step, so one step of it is not a map of (q, p)")
    if not system.linear_in_multipliers:
        raise InputError(
            "step_function needs a system that is linear in its multipliers: it could not choose the branch of others"
        )
    (y, dim_y), (z, dim_z) = system.state_blocks
    t, h, theta = ca.MX.sym("t"), ca.MX.sym("h"), ca.MX.sym("params", system.parameters.size)
    start = [ca.MX.sym(y, dim_y), ca.MX.sym(z, dim_z)]
    now, state = t, start
    for substep, fraction in method.substeps:
        state = _one_step(system, substep, now, fraction * h, state, theta)
        now += fraction * h
    return ca.Function("step", [t, h, *start, theta], state, ["t", "h", y, z, "params"], [f"{y}_next", f"{z}_next"])


def _one_step(system: System, method: OneStepMethod, t: ca.MX, h: ca.MX, state: list[ca.MX], theta: ca.MX) -> list[ca.MX]:
    reduced = reduce_step(method.step_equations(system))
    last = reduced.last
    unknowns = ca.vertcat(reduced.x, ca.SX(0, 1) if last is None else last.y)
    residual = reduced.residual if last is None else ca.vertcat(reduced.residual, last.matrix @ last.y - last.rhs)
    data = ca.vertcat(*reduced.data)
    increment = ca.Function("increment", [unknowns, data], [reduced.increment])
    packed = ca.vertcat(t, h, theta, *state)
    solution = ca.MX(0, 1)
    if unknowns.shape[0]:
        options = {"abstol": 1e-13, "error_on_fail": True}
        solver = ca.rootfinder("stages", "newton", {"x": unknowns, "p": data, "g": residual}, options)
        solution = solver(x0=_first_guess(system, reduced, t, h, state, theta, unknowns.shape[0]), p=packed)["x"]
    changes = ca.vertsplit(increment(solution, packed), [0, state[0].shape[0], system.n_state])
    return [before + change for before, change in zip(state, changes, strict=True)]


def _first_guess(
    system: System, reduced: ReducedStep, t: ca.MX, h: ca.MX, state: list[ca.MX], theta: ca.MX, size: int
) -> ca.MX:
    """Stages along the tangent without constraint forces: enough for Newton's iteration at moderate h."""
    (y, _), (z, _) = system.state_blocks
    none = ca.MX.zeros(system.n_holonomic, 1), ca.MX.zeros(system.n_nonholonomic, 1)
    rates = {y: system.function("v")(t, *state, theta), z: system.function("z_dot")(t, *state, *none, theta)}
    parts = [ca.MX(0, 1)]
    for block in reduced.blocks:
        if block.kind == "increment":
            parts += [float(node) * rates[block.of] * (1 if block.per_h else h) for node in block.nodes]
        else:
            parts.append(ca.MX.zeros(block.symbols.shape[0], 1))
    guess = ca.vertcat(*parts)
    return ca.vertcat(guess, ca.MX.zeros(size - guess.shape[0], 1))
