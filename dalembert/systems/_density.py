"""The step density Q of a motion, and its logarithmic rate along it: how much shorter steps become from state to state.

Q is a user's function of the state, or the local frequency of a mechanical system,

    Q^4 = tr(H_pp H_qq H_pp H_qq) + (sum_i |R_i'|^2 / |R_i|^2)^2

where R are the rows g_q and k_v of the constraints, and lengths are those of the metric H_pp. The first term is the sum of the
fourth powers of the frequencies that the forces have here (Kepler's problem: Q ~ r^(-3/2)), the second one says how fast the
directions of the constraints turn (a pendulum: Q is its angular velocity).
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from dalembert.errors import UnsupportedSystem
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._state_function import state_function
from dalembert.systems._system import System

GIVE = "give density=, a function of the state, as in density=lambda q: 1 / np.linalg.norm(q)"


@kept
@one_at_a_time
def density_and_rate(system: System, density: Callable | None, least: float) -> ca.Function:
    """(t, y, z, theta) -> Q and d/dt log Q along the motion, where Q = (density^4 + least^4)^(1/4)."""
    t, theta = ca.SX.sym("t"), system.parameters.theta
    y, z = (ca.SX.sym("x", size) for _, size in system.state_blocks)
    if density is not None:
        Q = state_function("density", density, system)(t, y, z, theta)
        Q = Q if least == 0 else (Q**4 + least**4) ** 0.25
    else:
        Q = (_frequency_to_the_fourth(system, t, y, z, theta) + least**4) ** 0.25
    variables = ca.vertcat(t, y, z)
    rate = ca.jtimes(Q, variables, ca.vertcat(1, _flow(system, Q, t, y, z, theta))) / Q
    return ca.Function("density", [t, y, z, theta], [Q, ca.densify(rate)])


def _flow(system: System, Q: ca.SX, t: ca.SX, y: ca.SX, z: ca.SX, theta: ca.SX) -> ca.SX:
    """(y', z') along the motion; z' only where Q depends on z, because it needs the multipliers."""
    if not ca.depends_on(Q, z):
        return ca.vertcat(system.function("v")(t, y, z, theta), ca.SX.zeros(z.shape))
    if system.n_multipliers and not system.linear_in_multipliers:
        raise UnsupportedSystem(
            "a density of velocities or momenta needs the multipliers, which enter nonlinearly here: "
            f"let density= depend on {system.state_blocks[0][0]} alone"
        )
    return system.motion(t, y, z, theta)


def _frequency_to_the_fourth(system: System, t: ca.SX, q: ca.SX, p: ca.SX, theta: ca.SX) -> ca.SX:
    if not isinstance(system, MechanicalSystem):
        raise UnsupportedSystem(f"only mechanical systems have a step density of their own: {GIVE}")
    if system.large:
        raise UnsupportedSystem(f"the step density of so large a system takes longer than its steps: {GIVE}")
    H_pp = system.function("H_pp")(t, q, p, theta)
    forces = H_pp @ ca.jacobian(system.function("H_q")(t, q, p, theta), q)
    rows = ca.vertcat(system.function("G")(t, q, theta), system.function("k_v")(t, q, p, theta))
    v, turning = system.function("v")(t, q, p, theta), ca.SX(0)
    for k in range(rows.shape[0]):
        row = ca.densify(rows[k, :]).T
        rate = ca.jtimes(row, ca.vertcat(t, q), ca.vertcat(1, v))
        turning += ca.dot(rate, H_pp @ rate) / ca.dot(row, H_pp @ row)
    return ca.trace(forces @ forces) + turning**2
