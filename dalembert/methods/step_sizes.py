"""Step sizes that vary along the motion without spoiling what a symmetric or a symplectic method is for.

E. Hairer and G. Soederlind, Explicit, time reversible, adaptive step size control, SIAM J. Sci. Comput. 26 (2005), 1838-1851;
E. Hairer, C. Lubich and G. Wanner, Geometric Numerical Integration, 2nd edition, Springer 2006, section VIII.3.2.

A step density rho is integrated along with the motion by a method that is itself symmetric,

    rho_(n+1/2) = rho_n + eps/2 G(y_n),    y_(n+1) = Phi_h(y_n) with h = eps / rho_(n+1/2),
    rho_(n+1) = rho_(n+1/2) + eps/2 G(y_(n+1)),    G = d/dt log Q,    rho_0 = Q(y_0),

so that the whole map of (y, rho) is symmetric, and reversible if Phi_h is and Q(q, -p) = Q(q, p). Then rho_n stays next to
Q(y_n): step sizes follow eps / Q without being functions of the state, which alone would destroy the long-time behaviour.

Deviations from the print: the papers write sigma for 1/Q, so that G = -sigma'/sigma; the step carries rho/eps = 1/h, in which
eps occurs in the first value only; both halves of the update belong to one step, as in the book, where the paper has
rho_(n+1/2) - rho_(n-1/2) = eps G(y_n); and constraints, which neither has, are those of Phi_h.

`SymplecticSteps` has constant steps in another time (`dalembert.systems._transformed_time`, with its own references).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import casadi as ca
import numpy as np

from dalembert.errors import InputError
from dalembert.methods._base import DerivedMethod, OneStepMethod
from dalembert.methods._clock import Clock
from dalembert.methods._step import Step
from dalembert.systems import BoundSystem, MechanicalSystem, State, System
from dalembert.systems._density import GIVE, density_and_rate
from dalembert.systems._initial_values import finite_number
from dalembert.systems._model import one_line
from dalembert.systems._transformed_time import TransformedTime, check_transformable, transformed


@dataclass(frozen=True)
class VaryingSteps(DerivedMethod):
    """What `ReversibleSteps` and `SymplecticSteps` have in common: a method, and the density that its steps follow."""

    density: Callable | None = None
    least: float = 0.0

    varies_steps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.method, OneStepMethod):
            raise InputError(f"{name} takes a method, such as da.LobattoIIIAB(3); got {self.method!r}")
        if self.method.varies_steps or self.method.driver != "smooth":
            raise InputError(f"{name} takes a method for smooth motions with constant steps; got {self.method}")
        if self.density is not None and not callable(self.density):
            raise InputError(
                f"density is a function of the state, such as lambda q: 1 / np.linalg.norm(q); got {one_line(self.density)}"
            )
        object.__setattr__(self, "least", finite_number("least", self.least))
        if self.least < 0:
            raise InputError(f"least is a step density >= 0, in the units of density=; got {self.least!r}")

    def __str__(self) -> str:
        density = "" if self.density is None else f", density={getattr(self.density, '__name__', '...')}"
        return f"da.{type(self).__name__}({self.method}{density}{f', least={self.least:g}' if self.least else ''})"

    def check_start(self, system: System, start: State, h: float) -> None:
        """Refuse states in which the density is not positive."""
        self.method.check_start(system, start, h)
        Q = self.density_at(system, start)
        if not (np.isfinite(Q) and Q > 0):
            advice = "correct density=" if self.density is not None else GIVE
            raise InputError(f"the step density is {Q:.3g} at the start and must be positive: give least=, or {advice}")

    def density_at(self, system: System, state: State) -> float:
        """Q in a state."""
        Q, _ = density_and_rate(system, self.density, self.least)(state.t, state.first, state.second, state.theta)
        return float(Q)


@dataclass(frozen=True)
class ReversibleSteps(VaryingSteps):
    """A symmetric method whose step sizes h / Q follow a step density Q reversibly, so that energies do not drift.

    `density` is a function of the state (q, v, p, t, parameters; y and z of an ODAE): steps have the size `h` where it is one,
    and are short where it is large. Without it, Q is the local frequency of the forces and constraints of a mechanical system,
    so that `h` is the angle, in radians, by which the fastest of its oscillations goes on in a step. `least` keeps the
    density from vanishing: Q = (density^4 + least^4)^(1/4). `first` is the first step size where that is not h / Q, as in a run
    that goes back from the end of another: `first=run.step_sizes[-1]`.

    Steps are reversible and not symplectic. Hairer and Soederlind (2005).

    Example:
        >>> import numpy as np, dalembert as da
        >>> kepler = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.linalg.norm(q), dim=2)
        >>> method = da.ReversibleSteps(da.Gauss(3), density=lambda q: np.linalg.norm(q) ** -1.5)
        >>> run = da.simulate(kepler, method, q0=[0.1, 0], p0=[0, 19**0.5], h=0.1, steps=2000)
        >>> bool(abs(run.energy - run.energy[0]).max() < 1e-5), bool(np.diff(run.t).max() > 50 * np.diff(run.t).min())
        (True, True)

    """

    first: float | None = field(default=None, compare=False)

    clock_names: ClassVar[tuple[str, ...]] = ("t", "rate")
    reference: ClassVar[str] = "Hairer and Soederlind (2005), SIAM J. Sci. Comput. 26"
    symplectic: ClassVar[bool] = False
    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method.symmetric is not True:
            raise InputError(
                f"steps of varying size are reversible for symmetric methods alone, such as da.LobattoIIIAB(3), da.Gauss(2) or "
                f"da.compose(...); got {self.method}"
            )
        if self.first is not None:
            object.__setattr__(self, "first", finite_number("first", self.first))
            if self.first == 0:
                raise InputError("first is a step size other than 0; got 0")

    @property
    def serves_odae(self) -> bool:
        """If the method does."""
        return self.method.serves_odae

    @property
    def substeps(self) -> tuple[tuple[OneStepMethod, float], ...]:
        """Those of the method, of which the first and the last one also change the rate of steps."""
        parts = self.method.substeps
        if len(parts) == 1:
            return ((self, 1.0),)
        last = len(parts) - 1
        return tuple((Part(part, self, size, k == 0, k == last), size) for k, (part, size) in enumerate(parts))

    def check(self, system: System) -> None:
        """Refuse what the method refuses, and densities that are no functions of the state."""
        self.method.check(system)
        density_and_rate(system, self.density, self.least)

    def check_start(self, system: System, start: State, h: float) -> None:
        """Refuse states in which the density is not positive, and first steps against the direction of the others."""
        super().check_start(system, start, h)
        if self.first is not None and self.first * h < 0:
            raise InputError(
                f"first = {self.first:g} and h = {h:g} have different signs: give both that of the direction in which time goes"
            )

    def clock_at(self, system: System, start: State, h: float) -> np.ndarray:
        """The time, and the rate 1/h of the first step."""
        rate = self.density_at(system, start) / h if self.first is None else 1 / self.first
        return np.array([start.t, rate])

    def step_sizes(self, system: System, rows: np.ndarray, theta: np.ndarray, h: float) -> np.ndarray:
        """They are stored as rates."""
        del system, theta, h
        return 1 / rows[:, -1]

    def halved(self, system: System) -> ReversibleSteps:
        """The first step is half as long, too."""
        del system
        return self if self.first is None else replace(self, first=self.first / 2)

    def equations(self, system: BoundSystem, step: Step) -> None:
        """Those of the method; the clock sets its step size."""
        self.method.equations(system, step)
        step.clock = self.clock(step, 1.0, True, True)

    def clock(self, step: Step, fraction: float, begins: bool, ends: bool) -> Clock:
        """The clock of a step, or of a substep that takes a fraction of it and may be its first or its last one."""
        density = density_and_rate(step.definition, self.density, self.least)
        values, state = ca.SX.sym("clock", len(self.clock_names)), ca.vertcat(*step.state.values())
        delta = ca.SX.sym("delta", state.shape[0])
        (t, rate), sizes = ca.vertsplit(values), np.cumsum([0, *(size for _, size in step.definition.state_blocks)]).tolist()

        def half(time: ca.SX, now: ca.SX) -> ca.SX:
            return density(time, *ca.vertsplit(now, sizes), step.theta)[1] / 2

        middle = rate + half(t, state) if begins else rate  # rho_(n+1/2) / eps
        h, end = fraction / middle, ca.SX.sym("end")
        h = ca.if_else(ca.logic_and(rate * middle > 0, h != 0), h, np.nan)  # 0: the density has overflown
        # The last step goes past the end: shortened, it would not be reversible.
        h = ca.if_else((end - t) * ca.sign(rate) <= 0, 0, h) if begins else h
        at_end = half(step.time_symbol + step.h_symbol, state + delta) if ends else ca.SX(0)
        # Either half may change the sign of the rate, after which time would run back: there is no step from there.
        following = fraction / step.h_symbol + at_end  # rho_(n+1) / eps
        following = ca.if_else(following * (fraction / step.h_symbol) > 0, following, np.nan) if ends else following
        return Clock(values, ca.vertcat(t, h), delta, ca.vertcat(step.h_symbol, following - rate), end)


@dataclass(frozen=True)
class Part(DerivedMethod):
    """A substep of a composition whose step sizes vary; made by `ReversibleSteps`."""

    whole: ReversibleSteps
    fraction: float
    begins: bool
    ends: bool

    varies_steps: ClassVar[bool] = True

    def check(self, system: System) -> None:
        """Refuse what its method refuses."""
        self.method.check(system)

    def equations(self, system: BoundSystem, step: Step) -> None:
        """Those of its method; the clock sets its step size."""
        self.method.equations(system, step)
        step.clock = self.whole.clock(step, self.fraction, self.begins, self.ends)


@dataclass(frozen=True)
class SymplecticSteps(VaryingSteps):
    """A symplectic method whose step sizes h / Q follow a step density Q: its constant steps for K = (H - H_0) / Q.

    `density` and `least` are those of `ReversibleSteps`. The map is symplectic in the variables (q, t; p, -H), so that energies
    of chaotic motions do not wander either; a step costs more, because K is not separable. Holonomic constraints hold at
    round-off, their hidden ones, too, if the density depends on t and q alone; nonholonomic ones and forces without an energy
    are refused. Hairer (1997), Reich (1999).

    Example:
        >>> import numpy as np, dalembert as da
        >>> kepler = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.linalg.norm(q), dim=2)
        >>> method = da.SymplecticSteps(da.LobattoIIIAB(4), density=lambda q: np.linalg.norm(q) ** -1.5)
        >>> run = da.simulate(kepler, method, q0=[0.1, 0], p0=[0, 19**0.5], h=0.1, steps=2000)
        >>> bool(abs(run.energy - run.energy[0]).max() < 1e-8), bool(np.diff(run.t).max() > 50 * np.diff(run.t).min())
        (True, True)

    """

    clock_names: ClassVar[tuple[str, ...]] = ("t", "energy")
    reference: ClassVar[str] = "Hairer (1997), Appl. Numer. Math. 25; Reich (1999), SIAM J. Numer. Anal. 36"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method.symplectic is not True:
            raise InputError(f"SymplecticSteps takes a symplectic method, such as da.LobattoIIIAB(3); got {self.method}")

    @property
    def keeps(self) -> frozenset[str]:
        """What the method keeps, but for hidden constraints: they are off by the energy error where Q depends on velocities."""
        return self.method.keeps - {"g_dot"}

    @property
    def symplectic(self) -> bool | None:
        """As the method, in the variables (q, t; p, -H)."""
        return self.method.symplectic

    @property
    def symmetric(self) -> bool | None:
        """If the method is."""
        return self.method.symmetric

    def transformed(self, system: MechanicalSystem) -> TransformedTime:
        """The system in the time in which steps are constant."""
        return transformed(system, self.density, self.least)

    def check(self, system: System) -> None:
        """Refuse what is not symplectic, what the method refuses, and densities that are no functions of the state."""
        check_transformable(system)
        assert isinstance(system, MechanicalSystem)
        self.method.check(self.transformed(system))

    def step_sizes(self, system: System, rows: np.ndarray, theta: np.ndarray, h: float) -> np.ndarray:
        """h / Q at the stored states."""
        count, (n, *_) = len(rows), (size for _, size in system.state_blocks)
        density = density_and_rate(system, self.density, self.least).map(count)
        Q, _ = density(rows[:, -2:-1].T, rows[:, :n].T, rows[:, n:-2].T, np.repeat(theta[:, None], count, axis=1))
        return h / np.asarray(Q, dtype=float).ravel()

    def equations(self, system: BoundSystem, step: Step) -> None:
        """The method writes its equations for the transformed system."""
        raise AssertionError("runs in transformed time are those of the method itself")
