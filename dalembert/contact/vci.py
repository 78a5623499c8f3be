"""The variational collision integrator: impact equations from a discrete Hamilton's principle.

Numbers in parentheses refer to Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng.

Deviations from the print:
    - tau_max in (33) is the time that remains after the impact: only then is the step symplectic.
    - (33) has no root lambda = 0, so that p+ != p- chooses none: of its roots the one with phi_dot > 0 is taken.
    - The unknown is the velocity of the rest of the step, not q_{i+1}, which loses its digits as that rest becomes short.
    - A second impact in the step (the rest of the step in Algorithm 1 ends there) is solved jointly with the first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from dalembert.compiler import reduced_step
from dalembert.contact._collision import CollisionIntegrator, Maps
from dalembert.contact._flow import Equations, Flow, Point, base_flow
from dalembert.contact.cva import normal, quadratic_reset, reset
from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.methods._discrete_lagrangian import discrete_lagrangian
from dalembert.methods.variational import VariationalEquations
from dalembert.systems import MechanicalSystem, System


@dataclass(frozen=True)
class VCI(CollisionIntegrator):
    """The variational collision integrator: the collision time is varied in the discrete action, too.

        p+ = p- + lambda grad phi(q_i),   -D_3 L_d(q_{i-1}, q_i, tau) = -D_3 L_d(q_i, q_{i+1}, tau'),                       (33)
        (q_i, p-) = F^+ L_d(q_{i-1}, q_i, tau),   (q_i, p+) = F^- L_d(q_i, q_{i+1}, tau')

    where tau is the time spent in the step before the impact and tau' the time that remains after it; with that, one step with
    an impact is symplectic. The reset solves for the rest of the step as well. Of its roots the one with phi_dot > 0 is taken.
    If the rest of the step hits a wall again, tau' ends there and is one of the unknowns. `base` is the discrete Lagrangian.

    With a moving wall or a system that depends on time the discrete energies differ by lambda phi_t and D_{t_0} L_d; forces add
    f^+ . v and f^- . v, the virtual work of a shift in time. If several constraints are hit at once, or if the impact is not
    elastic, the principle does not apply; and in slow impacts there may be no p+ with the right discrete energy, because those
    of a short and of a long partial step differ by O(h^2). Then the impulse is that of `da.CVA`, and
    `run.stats["impacts_without_variational_reset"]` counts the latter cases.

    R. C. Fetecau, J. E. Marsden, M. Ortiz and M. West, SIAM J. Applied Dynamical Systems 2 (2003) 381-416; Pekarek and Murphey
    (2014), section 4.2.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pendulum = da.Lagrangian(lambda q, v: v @ v / 2 + np.cos(q[0]), dim=1, unilateral=lambda q: q[0] + 0.2)
        >>> run = da.simulate(pendulum, da.VCI(), q0=[1.0], v0=[0.0], h=0.1, steps=1000)
        >>> bool(abs(run.energy - run.energy[0]).max() < 1e-2)
        True
        >>> bool(da.verify.symplecticity_defect(pendulum, da.VCI(), h=0.1, q0=[-0.15], v0=[-1.0]) < 1e-14)
        True

    """

    base: str | Callable[..., Any] | OneStepMethod = "SVC"
    collision_tolerance: float | None = None
    symplectic: ClassVar[bool | None] = True

    def __post_init__(self) -> None:
        self._check_arguments()
        if not isinstance(self.full, VariationalEquations):
            raise InputError(f"da.VCI varies a discrete Lagrangian, which {self.full} does not have: use da.CVA(base)")

    def check(self, system: System) -> None:
        """Refuse holonomic constraints that move, for which the reset is not stated."""
        super().check(system)
        assert isinstance(system, MechanicalSystem)
        t, q = ca.SX.sym("t"), ca.SX.sym("q", system.dim)
        if ca.depends_on(system.function("g")(t, q, system.parameters.vector()), t):
            raise UnsupportedSystem("da.VCI needs holonomic constraints that do not depend on t: use da.CVA(base)")

    def maps(self, system: MechanicalSystem, at: Point) -> Maps:
        """Phi^partial = Phi^full, and R^VCI with the rest of the step."""
        partial = base_flow(system, self.full, at)
        before, _ = discrete_energies(system, self.full, at)
        return Maps(partial, reset(system, at), self._after_impact(system, at, partial), before)

    def _after_impact(self, system: MechanicalSystem, at: Point, partial: Flow) -> Flow:
        """R^VCI, (33): the partial step from p+ = p- + lambda grad phi that starts with the right discrete energy."""
        lam = ca.SX.sym("lam")
        n, phi_t = normal(system, at)
        kick = lam * n
        _, after = discrete_energies(system, self.full, at)

        def kicked(expression: ca.SX) -> ca.SX:
            return ca.substitute(expression, at.p, at.p + kick)

        equations = partial.equations
        residual = ca.vertcat(kicked(equations.residual), after + lam * phi_t - at.energy)  # (33)
        elastic = quadratic_reset(system, at)[0]
        guess = ca.substitute(equations.guess, at.p, at.p + elastic * n)  # next to the root with phi_dot > 0
        x, scales = ca.vertcat(equations.x, lam), (*equations.scales, ("momentum", 1))
        increment = kicked(partial.increment) + ca.vertcat(ca.SX.zeros(system.dim, 1), kick)
        return Flow(
            Equations(x, scales, ca.vertcat(guess, elastic), residual, residual),  # type: ignore[arg-type]
            increment,
            increment,
            _onto_hidden_constraint(system, at, kick),
            lam,
        )


def discrete_energies(system: MechanicalSystem, base: Any, at: Point) -> tuple[ca.SX, ca.SX]:
    """The discrete energy of a partial step as its end sees it, and as its start does.

    These are the derivatives of the action by the time of the step's end and of its start, with all times in between moved in
    proportion: -D_3 L_d, and D_{t_0} L_d - D_3 L_d; and of forces the virtual work -f_i . v, by how far their time moves.
    """
    reduced = reduced_step(system.smooth, base)
    step = reduced.equations.step
    V = reduced.express(step.unknown("V").symbols)
    V = ca.substitute(V, ca.vertcat(*reduced.data), ca.vertcat(at.t, at.dt, at.theta, at.q, at.p))
    t0, h, L_d = ca.SX.sym("t0"), ca.SX.sym("h"), discrete_lagrangian(system.smooth, base)
    symbol = ca.SX.sym("V", V.shape[0])
    values = L_d.in_increments(t0=t0, h=h, q0=at.q, V=symbol, theta=at.theta)
    c = np.array([0.0, *(float(x) for x in L_d.formula.internal), 1.0])
    work = values["f"].T @ symbol[-system.dim :]
    before = -values["D_3"] + ca.dot(c, work)
    after = -values["D_3"] + ca.jacobian(values["L_d"], t0) - ca.dot(1 - c, work)
    return tuple(  # type: ignore[return-value]
        ca.substitute(part, ca.vertcat(t0, h, symbol), ca.vertcat(at.t, at.dt, V)) for part in (before, after)
    )


def _onto_hidden_constraint(system: MechanicalSystem, at: Point, kick: ca.SX) -> ca.SX:
    """The kick with the impulse G^T mu of holonomic constraints, which the partial step contains but does not tell apart."""
    if not system.n_holonomic:
        return kick
    t, q, theta = at.t, at.q, at.theta
    G, H_pp = system.function("G")(t, q, theta), system.function("H_pp")(t, q, at.p, theta)
    return kick - G.T @ ca.solve(G @ H_pp @ G.T, G @ H_pp @ kick)
