"""A user's functions of the state, as symbolic functions (t, y, z, theta)."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from dalembert.symbolic import from_column
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._model import call_model, scalar_expression, vector_expression
from dalembert.systems._ramped import parameters_at
from dalembert.systems._system import System


@one_at_a_time
def state_function(role: str, function: Callable, system: System, scalar: bool = True) -> ca.Function:
    """A user's function of the state, of t and of parameters, one number or a list, as a function (t, y, z, theta)."""
    t, theta = ca.SX.sym("t"), system.parameters.theta
    (first, dim_y), (second, dim_z) = system.state_blocks
    y, z = ca.SX.sym("y", dim_y), ca.SX.sym("z", dim_z)
    visible = {"t": from_column(t)[0]}
    visible |= {name: from_column(x) for name, x in ((first, y), (second, z)) if name}
    v = ca.SX.sym("v", dim_y)
    if isinstance(system, MechanicalSystem):
        visible["v"] = from_column(v)
    value = call_model(role, function, visible, system.parameters)
    expression = scalar_expression(role, value) if scalar else vector_expression(role, value)
    if system.ramps:
        expression = ca.substitute(expression, theta, parameters_at(system, theta, t))
    if isinstance(system, MechanicalSystem):
        expression = ca.substitute(expression, v, ca.densify(system.function("v")(t, y, z, theta)))
    return ca.Function("quantity", [t, y, z, theta], [ca.densify(expression)])
