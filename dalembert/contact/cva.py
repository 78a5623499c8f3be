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

import numpy as np

from dalembert.contact._collision import CollisionIntegrator, Maps
from dalembert.contact._flow import Event, Point, Reset, base_flow, solved
from dalembert.methods import OneStepMethod
from dalembert.symbolic import SymbolicArray
from dalembert.systems import MechanicalSystem
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
        return Maps(base_flow(system, self.full, at), reset(Event(system, at)) if system.n_unilateral else None)


def reset(event: Event) -> Reset:
    """R^CVA, (32): lambda, and mu where there are other constraints; not the trivial root lambda = 0.

    H+ - H- = kick . mean of H_p between p- and p+. For quadratic H the mean is H_p in the middle; G v = -g_t drops out of it.
    """
    t, q, p, n, phi_t, C, system = event.t, event.q, event.p, event.normal, event.phi_t, event.constraints, event.system
    guess = elastic_impulses(event)
    if not event.quadratic:
        guess = _where_it_rises(guess, lambda x: n @ system.H_p(t, q, p + (x[0] * n + C.T @ x[1:])) + phi_t)
    x = event.unknowns("lam", guess, "momentum")
    lam, mu = x[0], x[1:]
    # fmt: off
    kick = lam * n + C.T @ mu                                                      # p+ = p- + lambda grad phi (+ C^T mu)
    if event.quadratic:
        event.equation(n @ system.H_p(t, q, p + kick / 2) + phi_t, 0)              # (H+ - H-)/lambda = -phi_t             (32)
    else:
        g_t = system.hidden(t, q, p) - C @ system.H_p(t, q, p)
        rule = gauss(5)
        mean = sum(b * system.H_p(t, q, p + c * kick) for b, c in zip(rule.b, rule.c, strict=True))
        quotient = divided_difference(
            event, lam, system.H(t, q, p)[0], system.H(t, q, p + kick)[0], n @ mean + mu @ (C @ mean) / lam
        )
        event.equation(quotient + phi_t + mu @ g_t / lam, 0)                       # (H+ - H-)/lambda = -phi_t             (32)
    event.equation(system.hidden(t, q, p + kick), 0)                               # g_dot = 0 and k = 0 after the impact
    # fmt: on
    return Reset.of(event, kick, lam)


def divided_difference(event: Event, lam: Any, before: Any, after: Any, mean: Any) -> Any:
    """(H+ - H-)/lambda, in which lambda = 0 is no root; in small impacts it loses its digits: a mean of grad phi . H_p."""
    t, q, p, n, system = event.t, event.q, event.p, event.normal, event.system
    size = np.abs(before) + np.abs(p @ system.H_p(t, q, p))
    return np.where(lam**2 * (n @ system.H_pp(t, q, p) @ n) < 1e-4 * size, mean, (after - before) / lam)


def _where_it_rises(guess: Any, rise: Callable[[Any], Any]) -> Any:
    """2^k guess, -30 <= k <= 33, behind the minimum of a convex function, but not more than twice as far.

    From there Newton's method finds the root that is not zero: between here and there it need not be convex.
    """
    falls = guess * 2.0**-31
    for doublings in (32, 16, 8, 4, 2, 1):
        further = falls * 2.0**doublings
        falls = np.where(rise(further) <= 0, further, falls)
    return 2 * falls


def elastic_impulses(event: Event) -> SymbolicArray:
    """lambda and mu for a Hamiltonian whose H_pp does not depend on p: the solution, or else a guess."""
    t, q, p, n, C, system = event.t, event.q, event.p, event.normal, event.constraints, event.system
    normals = np.concatenate([n[None], C])
    approach = n @ system.H_p(t, q, p) + event.phi_t
    rhs = np.concatenate([[-2 * approach], np.zeros(len(C))])  # phi_dot+ = -phi_dot-, and g_dot and k stay zero
    return solved(normals @ system.H_pp(t, q, p) @ normals.T, rhs)
