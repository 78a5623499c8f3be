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
from dalembert.contact._flow import Event, Flow, Point, Reset, base_flow, solved
from dalembert.contact.cva import elastic_impulses, reset
from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.methods._discrete_lagrangian import discrete_lagrangian
from dalembert.methods.variational import VariationalEquations
from dalembert.symbolic import Scalar, SymbolicArray, as_column
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
        after = reset_and_step(Event(system, at), self.full)
        return Maps(partial, reset(Event(system, at)), after, as_column(before))


def reset_and_step(event: Event, base: OneStepMethod) -> Flow:
    """R^VCI, (33): the partial step from p+ = p- + lambda grad phi that starts with the right discrete energy."""
    definition, at, n, elastic = event.definition, event.at, event.normal, elastic_impulses(event)[0]
    lam = event.unknowns("lam", elastic, "momentum")  # next to the root with phi_dot > 0
    # fmt: off
    kick = lam * n                                                                 # p+ = p- + lambda grad phi(q_i)
    step = base_flow(definition, base, at.kicked(kick))                            # (q_i, p+) = F^- L_d(q_i, q_i+1, tau')
    _, after = discrete_energies(definition, base, at.kicked(kick))
    event.step(step, guess=base_flow(definition, base, at.kicked(elastic * n)).equations.guess)
    event.equation(after + lam * event.phi_t, event.energy)                        # (33)
    # fmt: on
    increment = step.increment + ca.vertcat(ca.SX.zeros(definition.dim, 1), as_column(kick))
    return Flow(event.equations, increment, increment, Reset.of(event, _onto_hidden_constraint(event, kick), lam))


def discrete_energies(system: MechanicalSystem, base: Any, at: Point) -> tuple[Scalar, Scalar]:
    """The discrete energy of a partial step as its end sees it, and as its start does.

    These are the derivatives of the action by the time of the step's end and of its start, with all times in between moved in
    proportion: -D_3 L_d, and D_{t_0} L_d - D_3 L_d; and of forces the virtual work -f_i . v, by how far their time moves.
    """
    reduced = reduced_step(system.smooth, base)
    V = reduced.express(reduced.equations.step.unknown("V").symbols)
    V = ca.substitute(V, ca.vertcat(*reduced.data), ca.vertcat(at.t, at.dt, at.theta, at.q, at.p))
    t0, h, L_d = ca.SX.sym("t0"), ca.SX.sym("h"), discrete_lagrangian(system.smooth, base)
    symbol = ca.SX.sym("V", V.shape[0])
    values = L_d.in_increments(t0=t0, h=h, q0=at.q, V=symbol, theta=at.theta)
    c = np.array([0.0, *(float(x) for x in L_d.formula.internal), 1.0])
    work = values["f"].T @ symbol[-system.dim :]
    before = -values["D_3"] + ca.dot(c, work)
    after = -values["D_3"] + ca.jacobian(values["L_d"], t0) - ca.dot(1 - c, work)
    here = ca.vertcat(t0, h, symbol), ca.vertcat(at.t, at.dt, V)
    return Scalar(ca.substitute(before, *here)), Scalar(ca.substitute(after, *here))


def _onto_hidden_constraint(event: Event, kick: SymbolicArray) -> SymbolicArray:
    """The kick with the impulse G^T mu of holonomic constraints, which the partial step contains but does not tell apart."""
    if not event.definition.n_holonomic:
        return kick
    G, H_pp = event.system.G(event.t, event.q), event.system.H_pp(event.t, event.q, event.p)
    return kick - G.T @ solved(G @ H_pp @ G.T, G @ H_pp @ kick)
