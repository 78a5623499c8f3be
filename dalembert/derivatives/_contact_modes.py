"""What is touched while a contact lasts, and impacts with friction: the systems and equations that belong to them."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from dalembert.contact import CVA, CollisionIntegrator
from dalembert.contact import _contact_base as contact
from dalembert.contact._complementarity import OPEN
from dalembert.contact._flow import Point
from dalembert.systems import MechanicalSystem


@dataclass(frozen=True)
class Mode(contact.Mode):
    """What is touched, and how it goes over into something else."""

    def method(self, collision: CollisionIntegrator, walled: MechanicalSystem, let_go: bool = False) -> CollisionIntegrator:
        """The method with which it moves from the first contact of a step on, and after a wall was `let_go`."""
        return CVA(self.base(collision.full, walled, contact.AFTER_RELEASE if let_go else 0))

    def guards_before(self, after: Mode, walled: MechanicalSystem) -> list[int]:
        """The guards of which one is zero where this mode goes over into another without an impact."""
        if not set(after.touching) <= set(self.touching):
            return []
        slides, first = dict(zip(after.touching, after.slides, strict=False)), len(self.others(walled))
        before = dict(zip(self.touching, self.slides, strict=False))
        ended = {
            "pressing": lambda wall, _: wall not in after.touching,
            "sliding": lambda wall, _: wall in slides and slides[wall] != before[wall],
            "sticking": lambda wall, way: slides.get(wall) == way,
        }
        return [first + k for k, (wall, ends, way) in enumerate(self.guards) if ended[ends](wall, way)]

    def stops(self, after: Mode) -> bool:
        """Whether a wall that slides stops or turns, where its friction jumps."""
        slides = dict(zip(after.touching, after.slides, strict=False))
        return any(now and slides.get(wall, now) != now for wall, now in zip(self.touching, self.slides, strict=False))


@dataclass(frozen=True)
class Leg:
    """The steps from `begin` to `end`, smooth ones in one mode of contact, or one step with events at these times."""

    begin: int
    end: int
    mode: Mode
    times: tuple[float, ...] = ()


@dataclass(frozen=True)
class FrictionalImpact:
    """An impact by Moreau's law in which each of some walls opens, sticks or slides (`contact._frictional.Impact`)."""

    walls: tuple[int, ...]
    modes: tuple[int, ...]
    held: tuple[int, ...]
    """Walls that were in contact before, for which e = 0."""

    def size(self, walled: MechanicalSystem) -> int:
        """The number of its impulses."""
        return walled.n_multipliers + 2 * len(self.walls)

    def equations(self, walled: MechanicalSystem, at: Point, P: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The conditions of its impulses P, those of (g, phi, k, slip), and the momentum after it."""
        here, walls, count = (at.t, at.q, at.p, at.theta), list(self.walls), len(self.walls)
        stuck, first = walled.in_contact(self.walls, (0,) * count), walled.n_holonomic
        before, A = stuck.function("hidden")(*here), stuck.function("multiplier_matrix")(*here)
        mu = walled.function("friction")(at.t, at.q, at.theta)
        speed = ca.SX.zeros(walled.n_unilateral, 1)
        speed[walls] = ca.fmax(-before[first : first + count], 0)
        e, conditions = walled.function("restitution")(speed, at.theta), before + A @ P
        tangent = first + count + walled.n_nonholonomic
        for i, (wall, mode) in enumerate(zip(self.walls, self.modes, strict=True)):
            N, T = P[first + i], P[tangent + i]
            conditions[first + i] -= 0 if wall in self.held else e[wall] * speed[wall]
            if mode == OPEN:
                conditions[first + i], conditions[tangent + i] = N, T
            elif mode:
                conditions[tangent + i] = T + mode * mu[wall] * N
        along = ca.vertcat(stuck.function("G")(at.t, at.q, at.theta), stuck.function("k_v")(*here))
        return conditions, at.p + along.T @ P
