"""What is touched while a contact lasts, and impacts with friction: the systems and equations that belong to them."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from dalembert.contact import CVA, CollisionIntegrator
from dalembert.contact._complementarity import OPEN
from dalembert.contact._contact_base import base_in_contact
from dalembert.contact._flow import Point
from dalembert.systems import MechanicalSystem


@dataclass(frozen=True)
class Mode:
    """The walls that are touched, and with friction how each slides: 1 or -1 as its slip velocity, or 0 if it sticks."""

    touching: tuple[int, ...] = ()
    slides: tuple[int, ...] = ()

    def system(self, walled: MechanicalSystem) -> MechanicalSystem:
        """The system while these are touched."""
        return walled.in_contact(self.touching, self.slides) if self.touching else walled

    def method(self, collision: CollisionIntegrator, walled: MechanicalSystem) -> CollisionIntegrator:
        """The method with which it moves from the first contact of a step on."""
        return CVA(base_in_contact(collision.full, self.system(walled)) if self.touching else collision.full)

    def others(self, walled: MechanicalSystem) -> list[int]:
        """The walls that are not touched, whose phi are the first guards."""
        return [k for k in range(walled.n_unilateral) if k not in self.touching]

    def guards(self, walled: MechanicalSystem, after: Mode) -> list[int]:
        """The guards of which one is zero where this mode goes over into another without an impact."""
        first, found = walled.n_unilateral - len(self.touching), []
        if not set(after.touching) <= set(self.touching):
            return []
        place = first + len(self.touching)
        for i, wall in enumerate(self.touching):
            slides = dict(zip(after.touching, after.slides, strict=False))
            if wall not in after.touching:
                found.append(first + i)
            if not self.slides:
                continue
            if wall in slides and slides[wall] != self.slides[i]:  # T = -sliding mu N where a contact begins to slide
                found.append(place if self.slides[i] or slides[wall] < 0 else place + 1)
            place += 1 if self.slides[i] else 2
        return found

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
