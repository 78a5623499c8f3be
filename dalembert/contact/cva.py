"""The collision Verlet algorithm: the exact impact equations between steps of a smooth method.

Numbers in parentheses refer to Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng.

Deviations from the print:
    - lambda = 0 solves (32), too: it is divided out of the energy balance instead of being excluded by p+ != p-.
    - phi(q~) <= 0 at the end of a step (31) misses walls that are crossed twice within it: crossings are looked for inside.
    - Moving walls, holonomic and nonholonomic constraints, restitution and friction, which the paper does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca

from dalembert.contact._collision import CollisionIntegrator, Maps, Reset
from dalembert.contact._flow import Equations, Point, base_flow
from dalembert.methods import OneStepMethod
from dalembert.systems import MechanicalSystem
from dalembert.systems._mechanical import solve_symmetric
from dalembert.tableaux import gauss


@dataclass(frozen=True)
class CVA(CollisionIntegrator):
    """The collision Verlet algorithm: Phi^full = Phi^partial = the base method, and the reset of continuous time.

        q+ = q-,   p+ = p- + lambda grad phi(q),   H(q+, p+) = H(q-, p-),   p+ != p-                                       (32)

    `base` is the discrete Lagrangian of the method between impacts: "SVC", "SVA", any other name or function that
    `da.Variational` takes, or any other method that makes its step at once, such as `da.Gauss(stages=2)`.

    With a moving wall phi(t, q) the last equation is H+ - H- = -lambda phi_t, the work of the wall. With holonomic constraints
    p+ = p- + lambda grad phi + G^T mu with g_t + G v+ = 0, and so with nonholonomic ones, for which the base has to be
    `da.GaussLobattoSPARK` or another that serves them. `collision_tolerance` loosens collision times from round-off to the
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
    serves_friction: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_arguments()

    def maps(self, system: MechanicalSystem, at: Point) -> Maps:
        """Phi^partial = Phi^full and R^CVA."""
        return Maps(base_flow(system, self.full, at), reset(system, at) if system.n_unilateral else None)


def normal(system: MechanicalSystem, at: Point) -> tuple[ca.SX, ca.SX]:
    """grad phi and phi_t of the constraint that is hit."""
    phi_q, phi_t = (system.function(name)(at.t, at.q, at.theta) for name in ("phi_q", "phi_t"))
    return phi_q.T @ at.hit, ca.dot(phi_t, at.hit)


def constrained(system: MechanicalSystem, at: Point) -> ca.SX:
    """The rows along which holonomic and nonholonomic constraints act: G and k_v."""
    return ca.vertcat(system.function("G")(at.t, at.q, at.theta), system.function("k_v")(at.t, at.q, at.p, at.theta))


def reset(system: MechanicalSystem, at: Point) -> Reset:
    """R^CVA, (32): lambda, and mu where there are other constraints; not the trivial root lambda = 0.

    H+ - H- = kick . mean of H_p between p- and p+. For quadratic H the mean is H_p in the middle; G v = -g_t drops out of it.
    """
    t, q, p, theta = at.t, at.q, at.p, at.theta
    H, v, hidden, H_pp = (system.function(name) for name in ("H", "H_p", "hidden", "H_pp"))
    n, phi_t = normal(system, at)
    C, mu = constrained(system, at), ca.SX.sym("mu", system.n_multipliers)
    lam = ca.SX.sym("lam")
    kick = lam * n + C.T @ mu
    guess = quadratic_reset(system, at)
    if ca.depends_on(H_pp(t, q, p, theta), p):
        g_t = system.function("hidden")(t, q, p, theta) - C @ v(t, q, p, theta)
        rule = gauss(5)
        mean = sum((b * v(t, q, p + c * kick, theta) for b, c in zip(rule.b, rule.c, strict=True)), ca.SX(0))
        mean_work = ca.dot(n, mean) + ca.dot(mu, C @ mean) / lam
        quotient = divided_difference(system, at, lam, H(t, q, p, theta), H(t, q, p + kick, theta), mean_work)
        balance = quotient + phi_t + ca.dot(mu, g_t) / lam
        rise = ca.Function("rise", [lam, mu, p, q, t, theta, at.hit], [ca.dot(n, v(t, q, p + kick, theta)) + phi_t])
        guess = _where_it_rises(guess, lambda x: rise(x[0], x[1:, 0], p, q, t, theta, at.hit))
    else:
        balance = ca.dot(n, v(t, q, p + kick / 2, theta)) + phi_t  # (H+ - H-)/lambda + phi_t = 0, (32)
    residual = ca.vertcat(balance, hidden(t, q, p + kick, theta))  # and g_dot = 0, k = 0 after the impact
    x, scales = ca.vertcat(lam, mu), (("momentum", 1 + system.n_multipliers),)
    return Reset(Equations(x, scales, guess, residual, residual), kick, lam)  # type: ignore[arg-type]


def divided_difference(system: MechanicalSystem, at: Point, lam: ca.SX, before: ca.SX, after: ca.SX, mean: ca.SX) -> ca.SX:
    """(H+ - H-)/lambda, in which lambda = 0 is no root; in small impacts it loses its digits: a mean of grad phi . H_p."""
    n, _ = normal(system, at)
    H_pp, v = (system.function(name)(at.t, at.q, at.p, at.theta) for name in ("H_pp", "H_p"))
    small = lam**2 * (n.T @ H_pp @ n) < 1e-4 * (ca.fabs(before) + ca.fabs(ca.dot(at.p, v)))
    return ca.if_else(small, mean, (after - before) / lam)


def _where_it_rises(guess: ca.SX, rise: Callable[[ca.SX], ca.SX]) -> ca.SX:
    """2^k guess, -30 <= k <= 33, behind the minimum of a convex function, but not more than twice as far.

    From there Newton's method finds the root that is not zero: between here and there it need not be convex.
    """
    falls = guess * 2.0**-31
    for doublings in (32, 16, 8, 4, 2, 1):
        further = falls * 2.0**doublings
        falls = ca.if_else(rise(further) <= 0, further, falls)
    return 2 * falls


def quadratic_reset(system: MechanicalSystem, at: Point) -> ca.SX:
    """lambda and mu for a Hamiltonian whose H_pp does not depend on p: the solution, or else a guess."""
    t, q, p, theta = at.t, at.q, at.p, at.theta
    n, phi_t = normal(system, at)
    v, H_pp = (system.function(name) for name in ("H_p", "H_pp"))
    normals = ca.vertcat(n.T, constrained(system, at))
    approach = ca.dot(n, v(t, q, p, theta)) + phi_t
    # phi_dot+ = -phi_dot-, and g_dot and k stay zero
    rhs = ca.vertcat(-2 * approach, ca.SX.zeros(system.n_multipliers, 1))
    return solve_symmetric(normals @ H_pp(t, q, p, theta) @ normals.T, rhs)
