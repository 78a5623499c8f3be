"""What every one-step method is: a small immutable object that writes its equations and states its claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods._step import Step, StepEquations
from dalembert.systems import BoundSystem, MechanicalSystem, Spheres, State, System
from dalembert.tableaux import Tableau
from dalembert.tableaux._families import MOST_STAGES


class OneStepMethod(ABC):
    """A method that maps the state at t0 to the state at t0 + h.

    Subclasses are frozen dataclasses. Their claims (`order`, `symplectic`, `symmetric`, `keeps`) are True or False where
    proved or disproved, and None where nothing is known; each claim is a row of the table that drives the tests.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    serves_nonholonomic: ClassVar[bool] = False
    serves_unilateral: ClassVar[bool] = False
    serves_friction: ClassVar[bool] = False
    driver: ClassVar[str] = "smooth"
    """The step loop that runs the method (`dalembert.runs._drivers`)."""
    varies_steps: ClassVar[bool] = False
    """Whether step sizes follow the motion: then a clock goes along with the state."""
    clock_names: ClassVar[tuple[str, ...]] = ()
    """What is stored beside the state then: the time, and what decides the next step size."""
    rejects: ClassVar[bool] = False
    """Whether a step may be rejected and made again with another size."""

    # Subclasses state these as constants of the class, or derive them from their fields.

    @property
    def reference(self) -> str:
        """Where the method was published."""
        return ""

    @property
    def symplectic(self) -> bool | None:
        """Whether the step map is symplectic on the constraint manifold."""
        return None

    @property
    def symmetric(self) -> bool | None:
        """Whether a step with -h leads back."""
        return None

    @property
    def serves_odae(self) -> bool:
        """Whether the method is stated for y' = v, z' = f + r, of which mechanics is a case."""
        return False

    @property
    def keeps(self) -> frozenset[str]:
        """The constraints that hold at round-off in every stored state."""
        return frozenset()

    @property
    @abstractmethod
    def order(self) -> dict[str, int]:
        """The order of convergence by component: {"q": ..., "p": ..., "lam": ...}."""

    @property
    def order_unconstrained(self) -> dict[str, int]:
        """The order on systems without constraints: as a rule that with constraints, in q and p."""
        return {name: order for name, order in self.order.items() if name in ("q", "p")}

    @property
    def starting(self) -> OneStepMethod | None:
        """A map that prepares the state before the first step, for methods whose state is not (q_0, p_0) itself."""
        return None

    @property
    def substeps(self) -> tuple[tuple[OneStepMethod, float], ...]:
        """The methods that make up a step, in the order in which they act, and the fractions of h that they take."""
        return ((self, 1.0),)

    @abstractmethod
    def equations(self, system: BoundSystem, step: Step) -> None:
        """Write the equations of one step."""

    def check(self, system: System) -> None:
        """Refuse systems that the method cannot serve, before anything is compiled."""
        if not isinstance(system, System):
            raise UnsupportedSystem(
                f"{self} integrates da.Hamiltonian, da.Lagrangian and da.ODAE systems; got {type(system).__name__}"
            )
        if not (self.serves_odae or isinstance(system, MechanicalSystem)):
            raise UnsupportedSystem(
                f"{self} integrates da.Hamiltonian and da.Lagrangian systems: for a system of type {type(system).__name__} use "
                f"{system.served_by}"
            )
        if system.n_nonholonomic and not self.serves_nonholonomic:
            raise UnsupportedSystem(f"{self} cannot serve nonholonomic constraints: use {system.served_by}")
        if isinstance(system, Spheres) and self.driver != "time stepping":
            raise UnsupportedSystem(f"{self} does not see the contacts of da.Spheres: use da.MoreauJean()")
        if system.n_unilateral and not self.serves_unilateral:
            raise UnsupportedSystem(
                f"{self} does not see the unilateral constraints of this system: use a collision integrator, da.CVA(base), "
                "da.VCI(base) or da.MCVA(base), or leave unilateral= out"
            )
        if "friction" in system.function_names and not self.serves_friction:
            raise UnsupportedSystem(
                f"{self} knows no friction: use da.NonsmoothRattle() or da.MoreauJean(), or in a plane da.CVA(base), or leave "
                "friction= out"
            )

    def check_start(self, system: System, start: State, h: float) -> None:
        """Refuse states from which the method cannot start; most can start from every consistent one."""
        del system, start, h

    def clock_at(self, system: System, start: State, h: float) -> np.ndarray:
        """What the clock (`dalembert.methods._clock`) of a run shows at its start, for methods whose steps have one."""
        del system, start, h
        return np.zeros(0)

    def step_sizes(self, system: System, rows: np.ndarray, theta: np.ndarray, h: float) -> np.ndarray:
        """The step sizes that belong to stored rows, which are states and the clock, for methods that vary them."""
        raise NotImplementedError

    def step_equations(self, system: System, *, exact: bool = False) -> StepEquations:
        """The symbolic equations of one step of this method on `system`; with `exact`, coefficients stay symbols."""
        self.check(system)
        step = Step(system, exact)
        self.equations(step.system, step)
        return StepEquations.of(step)

    def __str__(self) -> str:
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return f"da.{type(self).__name__}({', '.join(f'{name}={_shown(value)}' for name, value in values.items())})"


@dataclass(frozen=True)
class DerivedMethod(OneStepMethod):
    """A method made of another one, whose constraints and orders it has."""

    method: OneStepMethod

    @property
    def keeps(self) -> frozenset[str]:
        """What the method keeps."""
        return self.method.keeps

    @property
    def order(self) -> dict[str, int]:
        """That of the method."""
        return self.method.order

    @property
    def order_unconstrained(self) -> dict[str, int]:
        """That of the method."""
        return self.method.order_unconstrained

    def halved(self, system: System) -> DerivedMethod:
        """The method of a run with h/2 from the same start, whose steps are half as long, where they vary."""
        del system
        return self


def _shown(value: object) -> str:
    """A field as it reads in a method's name: tableaux and functions by theirs."""
    if isinstance(value, Tableau):
        return repr(value.name)
    return getattr(value, "__name__", type(value).__name__) if callable(value) else repr(value)


def check_stages(name: str, stages: object, least: int) -> None:
    """Refuse a number of stages that the family does not have."""
    if isinstance(stages, bool) or not isinstance(stages, int) or stages < least:
        raise InputError(f"{name} needs an integer number of stages >= {least}; got stages={stages!r}")
    if stages > MOST_STAGES:
        raise InputError(f"{name} has at most {MOST_STAGES} stages, far more than double precision has use for")


def refuse_varying(method: object, what: str) -> None:
    """Say that `what` needs steps of constant size, where a method varies them."""
    if isinstance(method, OneStepMethod) and method.varies_steps:
        constant = getattr(method, "method", "a method that does not")
        raise InputError(f"{what} needs steps of constant size, and {method} varies them: take {constant}")
