"""Step sizes from an estimate of the local error, for stiff and dissipative systems.

E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, 2nd edition, Springer 1996, section IV.8; K. Gustafsson,
Control-theoretic techniques for stepsize selection in implicit Runge-Kutta methods, ACM Trans. Math. Softw. 20 (1994), 496-518.

Each step also contains the equations of the method with one stage less, from the same state; err is the difference of both
results, in units of what is tolerated. A step with err > 1 is rejected. After a step that is taken,

    h_new = 0.9 h min(err^(-1/k), (h / h_old) (err_old / err)^(1/k) err^(-1/k)),    0.2 h <= h_new <= 8 h,       (8.25), (8.26)

where err = O(h^k).

Deviations from the print: the book filters an embedded formula of order s by (I - h gamma_0 J)^-1, (8.19), which would need
multipliers at the start of the step where there are constraints; the method of one stage less is L-stable if the method is,
and serves the same constraints. Errors are measured by their largest component instead of their mean; those of velocities
count h times, as the book advises for variables of index 2. h keeps its size if h_new is between h and 1.2 h.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods._base import DerivedMethod, OneStepMethod
from dalembert.methods._clock import Clock
from dalembert.methods._step import Step
from dalembert.methods._step_parts import Equation
from dalembert.systems import BoundSystem, State, System
from dalembert.systems._initial_values import finite_number
from dalembert.systems._units import LEAST_OF_ALL, LEAST_SIZE, units

SAFETY, SHRINK, GROW, KEEP = 0.9, 0.2, 8.0, 1.2
LEAST_ERROR = 1e-10
"""Errors below this, in units of what is tolerated, count as this."""


@dataclass(frozen=True)
class ControlledSteps(DerivedMethod):
    """A method whose step sizes follow its local error, for stiff and dissipative systems: `da.RadauIIA`, SPARK and others.

    Every step is compared with that of the same family with one stage less, and made again with a shorter h where positions
    differ by more than `atol` + `rtol` times their size, which is the larger of both ends of the step and of the way between
    them. A motion that comes to rest at zero needs `atol`. `h` of `da.simulate` is the first step size only, and may be left
    out; `t1` is met exactly. Energies of conservative motions drift: for those take `da.ReversibleSteps` or constant steps.

    Hairer and Wanner (1996), IV.8; Gustafsson (1994).

    Example:
        >>> import dalembert as da
        >>> damped = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=1, force=lambda q, v: -1e4 * v)
        >>> run = da.simulate(damped, da.ControlledSteps(da.RadauIIA(3), rtol=1e-6), q0=[1.0], v0=[1.0], t1=1e4)
        >>> bool(run.t[-1] == 1e4), len(run) < 100
        (True, True)

    """

    rtol: float = 1e-6
    atol: float = 0.0
    companion: OneStepMethod = field(init=False, repr=False, compare=False)

    varies_steps: ClassVar[bool] = True
    rejects: ClassVar[bool] = True
    clock_names: ClassVar[tuple[str, ...]] = ("t", "rate", "memory")
    symplectic: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False
    reference: ClassVar[str] = "Hairer and Wanner (1996), IV.8; Gustafsson (1994), ACM Trans. Math. Softw. 20"

    def __post_init__(self) -> None:
        if not isinstance(self.method, OneStepMethod):
            raise InputError(f"ControlledSteps takes a method, such as da.RadauIIA(3); got {self.method!r}")
        if self.method.varies_steps or self.method.driver != "smooth":
            raise InputError(f"ControlledSteps takes a method for smooth motions with constant steps; got {self.method}")
        object.__setattr__(self, "companion", _one_stage_less(self.method))
        for name in ("rtol", "atol"):
            object.__setattr__(self, name, finite_number(name, getattr(self, name)))
        if not (0 <= self.rtol < 0.1 and self.atol >= 0 and (self.rtol >= 1e-12 or self.atol > 0)):
            raise InputError(
                "rtol is the tolerated error of a step relative to positions, between 1e-12 and 0.1, and atol >= 0 is added "
                f"to it; got rtol = {self.rtol:g} and atol = {self.atol:g}"
            )

    @property
    def serves_odae(self) -> bool:
        """If the method does."""
        return self.method.serves_odae

    @property
    def serves_nonholonomic(self) -> bool:  # type: ignore[override]
        """If the method does."""
        return self.method.serves_nonholonomic

    def __str__(self) -> str:
        absolute = f", atol={self.atol:g}" if self.atol else ""
        return f"da.ControlledSteps({self.method}, rtol={self.rtol:g}{absolute})"

    def check(self, system: System) -> None:
        """Refuse what the method refuses, and methods without an order, from which a step size would follow."""
        self.method.check(system)
        self.companion.check(system)
        if not self._orders(system):
            raise UnsupportedSystem(
                f"{self.companion} claims no order here, from which step sizes would follow: take da.RadauIIA(stages, "
                "projected=True) or da.GaussLobattoSPARK(stages)"
            )

    def check_start(self, system: System, start: State, h: float) -> None:
        """Refuse what the method refuses."""
        self.method.check_start(system, start, h)

    def clock_at(self, system: System, start: State, h: float) -> np.ndarray:
        """The time, the rate 1/h of the first step, and no memory of another."""
        del system
        return np.array([start.t, 1 / h, 0.0])

    def step_sizes(self, system: System, rows: np.ndarray, theta: np.ndarray, h: float) -> np.ndarray:
        """They are stored as rates."""
        del system, theta, h
        return 1 / rows[:, -2]

    def halved(self, system: System) -> ControlledSteps:
        """Of a tolerance that asks for it."""
        part = 2.0 ** -self._exponent(system)
        try:
            return replace(self, rtol=part * self.rtol, atol=part * self.atol)
        except InputError:
            raise InputError(f"steps half as long would need rtol = {part * self.rtol:.1g}, which rounding forbids") from None

    def equations(self, system: BoundSystem, step: Step) -> None:
        """Those of the method and of its companion; the clock compares them."""
        self.method.equations(system, step)
        step.clock = self._clock(step, _beside(step, self.companion))

    def _orders(self, system: System) -> dict[str, int]:
        constrained = system.n_holonomic + system.n_nonholonomic > 0
        return self.companion.order if constrained else self.companion.order_unconstrained or self.companion.order

    def _exponent(self, system: System) -> int:
        """k in err = O(h^k): errors of velocities count h times."""
        orders = self._orders(system)
        return min([orders[name] + extra for name, extra in (("q", 1), ("p", 2)) if name in orders])

    def _error(self, step: Step, delta: ca.SX, other: ca.SX) -> ca.SX:
        """The largest difference of both results in units of what is tolerated."""
        definition, h, t = step.definition, step.h_symbol, step.time_symbol
        blocks = np.cumsum([0, *(size for _, size in definition.state_blocks)]).tolist()
        begin, end, compared = (ca.vertcat(*step.state.values()) + change for change in (0, delta, other))
        if blocks[1] == 0:  # a DAE of index 2
            return self._largest(definition, other - delta, ca.fmax(ca.fabs(begin), ca.fabs(end)))
        velocities = [
            h * definition.function("v")(time, *ca.vertsplit(state, blocks), step.theta)
            for time, state in ((t, begin), (t + h, end), (t + h, compared))
        ]
        y = slice(0, blocks[1])
        error = ca.fmax(ca.fabs((other - delta)[y]), ca.fabs(velocities[2] - velocities[1]))
        size = ca.fmax(ca.fmax(ca.fabs(begin[y]), ca.fabs(end[y])), ca.fabs(velocities[0]))
        return self._largest(definition, error, size)

    def _largest(self, system: System, error: ca.SX, size: ca.SX) -> ca.SX:
        """max_i |error_i| / (atol + rtol size_i); coordinates count as at least a thousandth of the largest of their unit."""
        least, overall = ca.SX(size.shape[0], 1), ca.mmax(size)
        for same in map(list, units(system)):
            least[same] = LEAST_SIZE * ca.mmax(size[same]) if len(same) < size.shape[0] else LEAST_SIZE * overall
        size = ca.fmax(ca.fmax(size, least), LEAST_OF_ALL * overall)
        return ca.mmax(ca.fabs(error) / (self.atol + self.rtol * size + 1e-300))

    def _clock(self, step: Step, other: ca.SX) -> Clock:
        values, delta = ca.SX.sym("clock", len(self.clock_names)), ca.SX.sym("delta", other.shape[0])
        (t, rate, memory), h, k = ca.vertsplit(values), step.h_symbol, self._exponent(step.definition)
        error = self._error(step, delta, other)
        taken, root = error <= 1, ca.fmax(error, LEAST_ERROR) ** (1 / k)
        plain = SAFETY / root
        predicted = ca.if_else(memory > 0, plain * ca.fabs(h) * memory / root, plain)  # memory = err_old^(1/k) / h_old
        factor = ca.fmin(ca.fmax(ca.fmin(plain, predicted), SHRINK), GROW)
        factor = ca.if_else(ca.logic_and(factor >= 1, factor <= KEEP), 1, factor)
        shorter = ca.if_else(error < 1e10, ca.fmin(ca.fmax(plain, SHRINK / 2), SAFETY), SHRINK / 2)
        clock_end = ca.SX.sym("end")
        following = ca.if_else(taken, _landing(clock_end - (t + h), h, factor * h, clock_end), 1 / (shorter * h))
        return Clock(
            values=values,
            begin=ca.vertcat(t, 1 / rate),
            delta=delta,
            change=ca.vertcat(ca.if_else(taken, h, 0), 0, 0),
            end=clock_end,
            taken=taken,
            following=ca.vertcat(following, ca.if_else(taken, root / ca.fabs(h), memory)),
        )


def _landing(left: ca.SX, h: ca.SX, following: ca.SX, end: ca.SX) -> ca.SX:
    """The rate of the next step: its size as proposed, or so that one or two steps end where the run does; inf at the end."""
    far, size = ca.fabs(left), ca.fabs(following)
    size = ca.if_else(far < 2 * size, ca.if_else(far <= size * (1 + 1e-9), far, far / 2), size)
    over = far <= 1e-9 * ca.fabs(h) + 1e-15 * ca.fabs(end)
    return ca.sign(h) * ca.if_else(over, np.inf, 1 / size)


def _one_stage_less(method: OneStepMethod) -> OneStepMethod:
    """The method of the same family that a step is compared with."""
    changed: dict[str, Any] = {"stages": getattr(method, "stages", 0) - 1}
    try:
        if "stages" in {each.name for each in fields(method) if each.init}:
            return replace(method, **changed)
    except InputError:
        pass
    raise InputError(
        "ControlledSteps compares a method with that of one stage less, such as da.RadauIIA(3) with da.RadauIIA(2): take a "
        f"family with stages, and enough of them, as in da.RadauIIA(3) or da.GaussLobattoSPARK(2); got {method}"
    )


def _beside(step: Step, method: OneStepMethod) -> ca.SX:
    """Add the equations of another method for the same step to a step; the increment of the state that they give.

    Its unknowns come before the multipliers of the step's own method, of which the last ones may be found without iteration.
    """
    other = method.step_equations(step.definition).step
    blocks = [
        replace(block, name=f"{block.name}^", symbols=ca.SX.sym(block.name, *block.symbols.shape)) for block in other.unknowns
    ]
    symbols = [other.time_symbol, other.h_symbol, other.theta, *other.state.values(), *(b.symbols for b in other.unknowns)]
    here = [step.time_symbol, step.h_symbol, step.theta, *step.state.values(), *(block.symbols for block in blocks)]

    def in_this_step(expression: ca.SX) -> ca.SX:
        return ca.substitute(expression, ca.vertcat(*symbols), ca.vertcat(*here))

    step.unknowns[2:2] = blocks
    step.equations += [Equation(in_this_step(each.left), in_this_step(each.right)) for each in other.equations]
    ends = [in_this_step(each) for each in (*other.position_ends, *other.end_constraints)]
    step.equations += [Equation(each, ca.SX.zeros(*each.shape)) for each in ends]
    renamed = dict(zip((block.name for block in other.unknowns), blocks, strict=True))
    step.limits += [(renamed[block.name], in_this_step(limit)) for block, limit in other.limits]
    return in_this_step(ca.vertcat(*(other.increments[name] for name in step.state)))
