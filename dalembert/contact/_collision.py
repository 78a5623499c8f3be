"""What collision integrators have in common: Algorithm 1 of Pekarek and Murphey (2014), given by three maps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca

from dalembert.contact._flow import Flow, Point, Reset
from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods import OneStepMethod, Step, Variational
from dalembert.methods._action import NAMED
from dalembert.methods._base import refuse_varying
from dalembert.systems import BoundSystem, MechanicalSystem, System

REFERENCE = "Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng, section 4"


@dataclass(frozen=True, eq=False)
class Maps:
    """Phi^partial and R^reset of Algorithm 1 (Phi^full is the base method), as equations.

    `after_impact` is a partial step that solves for the reset at its start as well, and `energy` the discrete energy that such
    a reset conserves, of the partial step before it. `velocity` is that with which partial steps leave a point, if it is not
    H_p: it decides whether they approach a wall.
    """

    partial: Flow
    reset: Reset | None
    """None where all walls are touched."""
    after_impact: Flow | None = None
    energy: ca.SX | None = None
    velocity: ca.SX | None = None


class CollisionIntegrator(OneStepMethod):
    """Event-driven collision integration (Algorithm 1) with a base method for full steps; subclasses give the other maps."""

    reference: ClassVar[str] = REFERENCE
    serves_unilateral: ClassVar[bool] = True
    driver: ClassVar[str] = "impacts"
    full_is_partial: ClassVar[bool] = True
    """Whether Phi^partial is the base method, too."""
    base: Any
    collision_tolerance: float | None

    @abstractmethod
    def maps(self, system: MechanicalSystem, at: Point) -> Maps:
        """Phi^partial and R^reset on `system`, written for the symbols of a point."""

    @property
    def full(self) -> OneStepMethod:
        """Phi^full, the method between impacts."""
        return base_method(self.base)

    def _check_arguments(self) -> None:
        base, tolerance = self.full, self.collision_tolerance
        refuse_varying(base, "a collision integrator")
        if base.substeps != ((base, 1.0),) or base.starting is not None:
            raise InputError(f"{base} is a composition or prepares its first step: a collision integrator needs a single map")
        if tolerance is not None and not (isinstance(tolerance, float) and 0 < tolerance < 1):
            raise InputError(f"collision_tolerance is a fraction of a step, between 0 and 1; got {tolerance!r}")

    @property
    def order(self) -> dict[str, int]:
        """That of the base method."""
        return self.full.order

    @property
    def order_unconstrained(self) -> dict[str, int]:
        """That of the base method."""
        return self.full.order_unconstrained

    @property
    def serves_nonholonomic(self) -> bool:  # type: ignore[override]
        """If the base method does."""
        return self.full.serves_nonholonomic

    def check(self, system: System) -> None:
        """Refuse systems without unilateral constraints, and those that the base method cannot serve."""
        if system.n_nonholonomic and system.n_unilateral and not self.serves_nonholonomic:
            raise UnsupportedSystem(
                f"{self.full} does not serve nonholonomic constraints, so {self} cannot: with walls take "
                "da.CVA(da.GaussLobattoSPARK(stages=2))"
            )
        if getattr(system, "n_tangents", 0) > 1:
            raise UnsupportedSystem(
                f"{self} finds the events of friction in a plane only, where a contact slides this way or that: use "
                "da.NonsmoothRattle() or da.MoreauJean()"
            )
        if not isinstance(system, MechanicalSystem) or not system.n_unilateral:
            raise UnsupportedSystem(
                f"{self} resolves impacts on unilateral constraints, which this system does not have: state them with "
                f"unilateral=lambda q: ..., or use {self.full}"
            )
        super().check(system)
        self.full.check(system.smooth)
        if system.n_holonomic and "g" not in self.full.keeps:
            raise UnsupportedSystem(
                f"{self.full} does not keep holonomic constraints, so the motion between impacts would leave them: "
                "take a base that does, such as da.LobattoIIIAB(stages=3), or projected=True"
            )

    def equations(self, system: BoundSystem, step: Step) -> None:
        """A step with impacts is an algorithm, not one system of equations."""
        raise UnsupportedSystem(
            f"{self} is an event-driven algorithm: only da.simulate, da.simulate_many and da.verify can run it"
        )

    def __str__(self) -> str:
        shown = repr(self.base) if isinstance(self.base, str) else str(self.full)
        return f"da.{type(self).__name__}(base={shown})"


def base_method(base: str | Callable[..., Any] | OneStepMethod) -> OneStepMethod:
    """The method behind a discrete Lagrangian, given by its name, by a function or by a method."""
    if isinstance(base, OneStepMethod) and not isinstance(base, CollisionIntegrator):
        return base
    if (isinstance(base, str) and base in NAMED) or (callable(base) and not isinstance(base, (type, OneStepMethod))):
        return Variational(base)
    raise InputError(
        f"the base of a collision integrator is a discrete Lagrangian ({', '.join(NAMED)}, a function, or a method such as "
        f"da.LobattoGalerkin(stages=3)); got {base!r}"
    )
