"""The collision Verlet algorithm: the exact impact equations between steps of a smooth method.

Numbers in parentheses refer to Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca

from dalembert.impacts._collision import CollisionIntegrator, Maps, Reset
from dalembert.impacts._flow import Equations, Point, base_flow
from dalembert.methods import OneStepMethod
from dalembert.systems import MechanicalSystem


@dataclass(frozen=True)
class CVA(CollisionIntegrator):
    """The collision Verlet algorithm: Phi^full = Phi^partial = the base method, and the reset of continuous time.

        q+ = q-,   p+ = p- + lambda grad phi(q),   H(q+, p+) = H(q-, p-),   p+ != p-                                       (32)

    `base` is the discrete Lagrangian of the method between impacts: "SVC", "SVA", any other name or function that
    `da.Variational` takes, or any other method that makes its step at once, such as `da.Gauss(stages=2)`.

    With a moving wall phi(t, q) the last equation is H+ - H- = -lambda phi_t, the work of the wall. With holonomic constraints
    p+ = p- + lambda grad phi + G^T mu with g_t + G v+ = 0. `collision_tolerance` loosens collision times from round-off to the
    middle of an interval of this fraction of the rest of the step, as bisection would leave them: it exists to show what that
    costs (section 4.1).

    Y. A. Houndonougbo, B. B. Laird and B. J. Leimkuhler, Molecular Physics 98 (2000) 309-316; Pekarek and Murphey (2014),
    section 4.1.

    Example:
        >>> import numpy as np, dalembert as da
        >>> ball = da.Lagrangian(lambda q, v: v @ v / 2 - q[0], dim=1, unilateral=lambda q: q[0])
        >>> run = da.simulate(ball, da.CVA(), q0=[1.0], v0=[0.0], h=0.01, t1=10.0)
        >>> np.allclose(run.impacts.t, np.sqrt(2) * np.array([1, 3, 5, 7])), bool(run.q.min() >= 0)
        (True, True)

    """

    base: str | Callable[..., Any] | OneStepMethod = "SVC"
    collision_tolerance: float | None = None
    symplectic: ClassVar[bool | None] = False

    def __post_init__(self) -> None:
        self._check_arguments()

    def maps(self, system: MechanicalSystem, at: Point) -> Maps:
        """Phi^partial = Phi^full and R^CVA."""
        return Maps(base_flow(system, self.full, at), reset(system, at))


def normal(system: MechanicalSystem, at: Point) -> tuple[ca.SX, ca.SX]:
    """grad phi and phi_t of the constraint that is hit."""
    phi_q, phi_t = (system.function(name)(at.t, at.q, at.theta) for name in ("phi_q", "phi_t"))
    return phi_q.T @ at.hit, ca.dot(phi_t, at.hit)


def reset(system: MechanicalSystem, at: Point) -> Reset:
    """R^CVA, (32): lambda, and mu where there are holonomic constraints; not the trivial root lambda = 0."""
    t, q, p, theta = at.t, at.q, at.p, at.theta
    H, v, g_dot, H_pp = (system.function(name) for name in ("H", "H_p", "g_dot", "H_pp"))
    n, phi_t = normal(system, at)
    G = system.function("G")(t, q, theta)
    lam, mu = ca.SX.sym("lam"), ca.SX.sym("mu", system.n_holonomic)
    kick = lam * n + G.T @ mu
    guess = quadratic_reset(system, at)
    if ca.depends_on(H_pp(t, q, p, theta), p):
        # H is convex in p, so that Newton's method finds the root that is not zero from any lambda at which H rises
        g_t = ca.jacobian(system.function("g")(t, q, theta), t)
        balance = H(t, q, p + kick, theta) - H(t, q, p, theta) + lam * phi_t + ca.dot(mu, g_t)
        rise = ca.Function("rise", [lam, mu, p, q, t, theta, at.hit], [ca.dot(n, v(t, q, p + kick, theta)) + phi_t])
        for _ in range(8):
            guess = ca.if_else(rise(guess[0], guess[1:, 0], p, q, t, theta, at.hit) > 0, guess, 2 * guess)
    else:
        # for quadratic H, H+ - H- = kick . v(p- + kick/2), in which lambda cancels exactly; G v = -g_t drops out
        balance = ca.dot(n, v(t, q, p + kick / 2, theta)) + phi_t
    residual = ca.vertcat(balance, g_dot(t, q, p + kick, theta))
    x, scales = ca.vertcat(lam, mu), (("momentum", 1 + system.n_holonomic),)
    return Reset(Equations(x, scales, guess, residual, residual), kick, lam)  # type: ignore[arg-type]


def quadratic_reset(system: MechanicalSystem, at: Point) -> ca.SX:
    """lambda and mu for a Hamiltonian whose H_pp does not depend on p: the solution, or else a guess."""
    t, q, p, theta = at.t, at.q, at.p, at.theta
    n, phi_t = normal(system, at)
    v, H_pp, G = (system.function(name) for name in ("H_p", "H_pp", "G"))
    normals = ca.vertcat(n.T, G(t, q, theta))
    approach = ca.dot(n, v(t, q, p, theta)) + phi_t
    # phi_dot+ = -phi_dot-, and g_dot stays zero
    rhs = ca.vertcat(-2 * approach, ca.SX.zeros(system.n_holonomic, 1))
    return ca.solve(normals @ H_pp(t, q, p, theta) @ normals.T, rhs)
