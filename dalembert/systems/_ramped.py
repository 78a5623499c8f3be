"""Parameters that change linearly in time: controls between the values that a user gives at some times.

In place of a parameter u the model has u + slope (t - begin). Slopes and the beginning of an interval are hidden parameters
behind those of the model, so that they change from interval to interval and nothing is compiled for that.
"""

from __future__ import annotations

import copy
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedSystem
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._system import System


@kept
@one_at_a_time
def ramped(system: System, slots: tuple[int, ...]) -> System:
    """The same system with the parameters at these positions changing linearly."""
    moving, chosen = copy.copy(system), ca.vertcat(*(system.parameters.theta[k] for k in slots))
    constraints = ca.vertcat(*(system._expressions[name][1] for name in ("g", "k")))
    if ca.depends_on(constraints, chosen):
        raise UnsupportedSystem("a control that changes linearly cannot move constraints: state those as functions of t")
    for derived in ("fingerprint", "smooth", "linear_in_multipliers"):
        moving.__dict__.pop(derived, None)
    moving.ramps, parameters = slots, copy.copy(system.parameters)
    parameters.theta = ca.vertcat(system.parameters.theta, ca.SX.sym("slopes", len(slots)), ca.SX.sym("begin"))
    parameters.values = {**parameters.values, "_ramps": np.zeros(len(slots) + 1)}
    parameters.size = parameters.theta.shape[0]
    moving.parameters = parameters
    at_time = parameters_at(moving, parameters.theta, system._t)[: system.parameters.size]
    moving._expressions = {
        name: (arguments, ca.substitute(expression, system.parameters.theta, at_time))
        for name, (arguments, expression) in system._expressions.items()
    }
    return moving


def parameters_at(system: System, theta: Any, t: Any) -> Any:
    """The parameters of a system at a time, symbols or numbers: those that are ramps with the values that they have then."""
    if not system.ramps:
        return theta
    first, found = system.parameters.size - 1 - len(system.ramps), theta + 0
    for k, slot in enumerate(system.ramps):
        found[slot] = theta[slot] + theta[first + k] * (t - theta[system.parameters.size - 1])
    return found
