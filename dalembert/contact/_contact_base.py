"""What is touched, and what moves then: a system, and a method that keeps the walls."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace

from dalembert.errors import UnsupportedSystem
from dalembert.methods import GaussLobattoSPARK, LobattoIIIAB, OneStepMethod
from dalembert.systems import MechanicalSystem

AFTER_RELEASE = 4
"""The least order of the method for the rest of a step in which a wall has let go.

phi = phi_dot = phi_ddot = 0 there, so phi is of third order in that time, like the errors of a method of order 2: they may lead
back behind the wall at once.
"""


def order_of(base: OneStepMethod) -> int:
    """The order without constraints."""
    return min((base.order_unconstrained or base.order or {"q": 2}).values())


def base_in_contact(base: OneStepMethod, system: MechanicalSystem, least: int = 0) -> OneStepMethod:
    """The method for steps in contact, of order `least` or higher: one that keeps phi = 0 and phi_dot = 0.

    That is the base itself if it keeps g and g_dot, or else the base with projection if that has the same order; if not (as for
    Gauss methods, whose order projection halves), the method of Lobatto IIIA-IIIB of the same order. Friction needs constraint
    forces that are no gradients, and nonholonomic constraints: Gauss-Lobatto SPARK of the same order, or of the next even one.
    """
    order, serves = max(order_of(base), least), order_of(base) >= least
    if system.n_tangents or system.n_nonholonomic:
        return base if serves and base.keeps >= {"g", "g_dot", "k"} else GaussLobattoSPARK(stages=(order + 1) // 2)
    if serves and base.keeps >= {"g", "g_dot"}:
        return base
    if serves and hasattr(base, "projected"):
        projected: OneStepMethod = replace(base, projected=True)
        if min(projected.order.values(), default=0) >= order:
            with contextlib.suppress(UnsupportedSystem):
                projected.check(system.smooth)
                return projected
    return LobattoIIIAB(stages=max(2, (order + 1) // 2 + 1))


@dataclass(frozen=True)
class Mode:
    """The walls that are touched, and with friction how each slides: 1 or -1 as its slip velocity, or 0 if it sticks."""

    touching: tuple[int, ...] = ()
    slides: tuple[int, ...] = ()

    def system(self, walled: MechanicalSystem) -> MechanicalSystem:
        """The system while these are touched."""
        return walled.in_contact(self.touching, self.slides) if self.touching else walled

    def base(self, full: OneStepMethod, walled: MechanicalSystem, least: int = 0) -> OneStepMethod:
        """The method with which it moves, of order `least` or higher, where free motion has the method `full`."""
        free = not self.touching and order_of(full) >= least
        return full if free else base_in_contact(full, self.system(walled), least)

    def others(self, walled: MechanicalSystem) -> list[int]:
        """The walls that are not touched, whose phi are the first guards."""
        return [k for k in range(walled.n_unilateral) if k not in self.touching]

    @property
    def guards(self) -> list[tuple[int, str, int]]:
        """Of each guard behind those of other walls: its wall, what ends where it is zero, and how the wall slides then.

        N is zero where a wall stops pressing, the slip where it stops sliding; it begins to slide with T = mu N or T = -mu N.
        """
        ends = [(k, "pressing", 0) for k in self.touching]
        for k, way in zip(self.touching, self.slides, strict=False):
            ends += [(k, "sliding", 0)] if way else [(k, "sticking", -1), (k, "sticking", 1)]
        return ends


@dataclass
class InStep:
    """What has changed within the current step of a run; some of it stays as it is until that ends."""

    left: set[int] = field(default_factory=set)
    """Walls that stopped pressing..."""
    kept: set[int] = field(default_factory=set)
    """... and those of them on which impacts accumulated again: they stay in contact."""
    rubbing: set[int] = field(default_factory=set)
    """Walls whose friction changed twice at one instant: they stick or slide on as long as they press."""
    let_go: bool = False
    """Whether a guard let go of a wall."""

    def __bool__(self) -> bool:
        return bool(self.left or self.kept or self.rubbing)

    def ignores(self, wall: int, ends: str) -> bool:
        """Whether a guard of a wall in contact is not looked at."""
        return wall in self.kept or (wall in self.rubbing and ends != "pressing")
