"""The mixed-variable generating function of a method on a system, as a stationary value.

Numbers in parentheses refer to Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.methods._discrete_lagrangian import discrete_lagrangian
from dalembert.methods.runge_kutta import PartitionedEquations, RungeKuttaEquations
from dalembert.methods.variational import VariationalEquations
from dalembert.modified._series import expand
from dalembert.modified._stationary import GeneratingFunction
from dalembert.systems import MechanicalSystem


def generating_function(system: MechanicalSystem, method: Any, powers: int | None = None) -> GeneratingFunction:
    """N(q, p, z; h) of a method; with `powers`, up to that power of h and regular at h = 0."""
    if not isinstance(system, MechanicalSystem):
        raise UnsupportedSystem(
            f"modified Hamiltonians belong to da.Hamiltonian and da.Lagrangian systems; got {type(system).__name__}"
        )
    _check_conservative(system)
    if isinstance(method, VariationalEquations):
        return of_discrete_lagrangian(system, method, powers)
    if isinstance(method, (PartitionedEquations, RungeKuttaEquations)) and method.symplectic:
        return of_runge_kutta(system, method.tableau.A, method.tableau.b)
    shown = method if isinstance(method, OneStepMethod) else repr(method)
    raise UnsupportedSystem(
        "a modified Hamiltonian belongs to a symplectic method with a generating function, such as da.Variational('SVC'), "
        f"da.LobattoIIIAB(stages) or da.Gauss(stages); got {shown}"
    )


def of_discrete_lagrangian(
    system: MechanicalSystem, method: VariationalEquations, powers: int | None = None
) -> GeneratingFunction:
    """N = p.w - L_d(q, q + h w, h) / h over w and the internal configurations q + h V_i of L_d: (24) with (22)."""
    L_d = discrete_lagrangian(system, method)
    n, c = system.dim, np.array([*method.formula.internal, 1.0])
    q, p, V, h = ca.SX.sym("q", n), ca.SX.sym("p", n), ca.SX.sym("V", n * len(c)), ca.SX.sym("h")
    theta = ca.SX.sym("theta", system.parameters.size)
    action = L_d.in_increments(t0=0, h=h, q0=q, V=V, theta=theta)["L_d"] / h
    if powers is not None:
        coefficients = expand(action, [(h, [ca.SX(0), ca.SX(1)]), *((x, [x]) for x in (q, V, theta))], powers)
        action = sum((coefficient * h**k for k, coefficient in enumerate(coefficients)), ca.SX(0))
    v = system.function("H_p")(0, q, p, theta)
    return GeneratingFunction.of(q, p, V, h, theta, N=ca.dot(p, V[-n:]) - action, guess=ca.kron(c, v))


def of_runge_kutta(system: MechanicalSystem, A: np.ndarray, b: np.ndarray) -> GeneratingFunction:
    """N = sum b_i (p - P_i).k_i + sum b_i H(q + h sum a_ij k_j, P_i) over the stages k_i = H_p and P_i.

    Setting its derivatives by P_i and k_i to zero gives the equations of the symplectic partitioned Runge-Kutta method with
    the coefficients a_ij for q and b_j (1 - a_ji / b_i) for p, written from p = p_1 backwards. For the 2-stage Lobatto
    IIIA-IIIB pair, which is SVA, the stationary value is (25).
    """
    n, s = system.dim, len(b)
    q, p, h = ca.SX.sym("q", n), ca.SX.sym("p", n), ca.SX.sym("h")
    theta = ca.SX.sym("theta", system.parameters.size)
    k, P = ca.SX.sym("k", n, s), ca.SX.sym("P", n, s)
    H, Q = system.function("H"), q + h * (k @ A.T)
    N = sum(
        (b[i] * (ca.dot(p - P[:, i], k[:, i]) + H(0, Q[:, i], P[:, i], theta)) for i in range(s)),
        ca.SX(0),
    )
    v = system.function("H_p")(0, q, p, theta)
    guess = ca.vertcat(ca.repmat(v, s, 1), ca.repmat(p, s, 1))
    return GeneratingFunction.of(q, p, ca.veccat(k, P), h, theta, N=N, guess=guess)


def symmetric(system: MechanicalSystem, method: Any) -> bool:
    """What the method claims; where it claims nothing, whether L_d(q_0, Q, q_1, h) = -L_d(q_1, Q reversed, q_0, -h)."""
    if method.symmetric is not None or not isinstance(method, VariationalEquations):
        return bool(method.symmetric)
    L_d = discrete_lagrangian(system, method).in_increments
    count, h, theta = len(method.formula.internal) + 1, 0.125, system.parameters.vector()
    for sample in range(3):
        q, *V = np.modf(np.sqrt(2.0 + sample + np.arange(system.dim * (count + 1))))[0].reshape(count + 1, -1)
        end = q + h * V[-1]
        reversed_V = np.array([V[-1] - v for v in reversed(V[:-1])] + [V[-1]])
        forward = float(L_d(t0=0, h=h, q0=q, V=np.concatenate(V), theta=theta)["L_d"])
        backward = float(L_d(t0=0, h=-h, q0=end, V=reversed_V.ravel(), theta=theta)["L_d"])
        if not abs(forward + backward) <= 1e-12 * (abs(forward) + abs(backward)):
            return False
    return True


def _check_conservative(system: MechanicalSystem) -> None:
    if system.n_holonomic:
        raise UnsupportedSystem(
            "modified Hamiltonians are not defined with holonomic constraints: state the system in free coordinates such as "
            "angles"
        )
    t, q, p = ca.SX.sym("t"), ca.SX.sym("q", system.dim), ca.SX.sym("p", system.dim)
    theta = ca.SX.sym("theta", system.parameters.size)
    if not system.function("force")(t, q, p, theta).is_zero():
        raise UnsupportedSystem("modified Hamiltonians are not defined with a force: leave it out, or put it into a potential")
    if ca.depends_on(system.function("H")(t, q, p, theta), t):
        raise UnsupportedSystem("modified Hamiltonians need a system that does not depend on t: make t a coordinate of its own")
