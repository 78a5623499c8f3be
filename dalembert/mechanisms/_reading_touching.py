"""Reading what touches: wheels, rolling balls and knife edges, stops and contacts."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from dalembert.errors import InputError
from dalembert.mechanisms._reading_base import Reading
from dalembert.mechanisms._touching import Touching
from dalembert.mechanisms._vectors import Vector, cross, dot, subtract
from dalembert.mechanisms._wheels import KnifeEdge, Stop, Wheel


class WheelReading(Reading):
    """A wheel or a rolling ball along a run."""

    part: Wheel

    @property
    def contact_point(self) -> np.ndarray:
        """Where it touches the plane or the surface, (time, 3)."""
        self.part.refuse_if_not_found(self._at)
        return self._rows(self.part.contact_point(self._at))

    @cached_property
    def force(self) -> np.ndarray:
        """What the plane or the surface exerts on it, (time, 3)."""
        return self._reaction(self.part.body, self.part.contact_point(self._at))[0]

    @property
    def normal(self) -> np.ndarray:
        """The part of the force across the plane or the surface, negative where it would lift off, (time,)."""
        return np.einsum("ti,ti->t", self.force, self._upwards)

    @property
    def friction(self) -> np.ndarray:
        """The part of the force along the plane or the surface, which lets it roll, (time, 3)."""
        return self.force - self.normal[:, None] * self._upwards

    @property
    def _upwards(self) -> np.ndarray:
        """The unit normal towards the wheel, (time, 3)."""
        contact, centre = self.part.contact(self._at), self._at.of(self.part.body).point(self.part.body.arm(self.part.centre))
        normal = cross(*contact.tangents)
        rows = self._rows(normal) * self._column(np.sign(dot(normal, subtract(centre, contact.point))))[:, None]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class KnifeEdgeReading(Reading):
    """A knife edge along a run."""

    part: KnifeEdge

    @property
    def _called(self) -> str:
        return "knife edge"

    @property
    def position(self) -> np.ndarray:
        """Its point, (time, 3)."""
        return self._rows(self._at.of(self.part.body).point(self.part.body.arm(self.part.point)))

    @property
    def velocity(self) -> np.ndarray:
        """The velocity of this point, along the edge, (time, 3)."""
        return self._rows(self._at.of(self.part.body).speed(self.part.body.arm(self.part.point)))

    @property
    def force(self) -> np.ndarray:
        """What keeps it from moving sideways, (time, 3)."""
        body = self.part.body
        return self._reaction(body, self._at.of(body).point(body.arm(self.part.point)))[0]


class WallReading(Reading):
    """What stays positive, along a run: a stop or a contact."""

    part: Any

    @property
    def gap(self) -> np.ndarray:
        """How far it is from touching, (time,); of two limits the nearer one counts."""
        return np.min([self._column(gap) for gap in self.part.gaps(self._at)], axis=0)

    @property
    def impacts(self) -> Any:
        """Its rows of `run.impacts`; None in runs that record none."""
        return self._recorded("impacts")

    @property
    def contacts(self) -> Any:
        """Its rows of `run.contacts`."""
        return self._recorded("contacts")

    @property
    def _walls(self) -> list[int]:
        """The numbers of its gaps in the system."""
        return list(self.mechanism.assembled.rows_of(self.part, "unilateral"))

    def _recorded(self, what: str) -> Any:
        events = getattr(self.run, what, None)
        return None if events is None else events.of(self._walls)

    @cached_property
    def _forces(self) -> Any:
        """Those of sustained contact of all walls."""
        if not hasattr(self.run, "contacts"):
            raise InputError(f"a state does not say what forces act where {self.part.name!r} touches: read them from a run")
        return self.run.contact_forces


class StopReading(WallReading):
    """A stop along a run."""

    part: Stop

    @property
    def effort(self) -> np.ndarray:
        """The torque or force of the limit that is touched for a while, positive if it drives the joint forwards, (time,).

        Impacts have impulses instead, `impacts.impulse`.
        """
        signs = [sign for sign, limit in ((1.0, self.part.lower), (-1.0, self.part.upper)) if limit is not None]
        return self._forces.normal[:, self._walls] @ signs


class ContactReading(WallReading):
    """A point or a ball that touches a plane or another ball, along a run."""

    part: Touching

    @property
    def _called(self) -> str:
        return "contact"

    @property
    def contact_point(self) -> np.ndarray:
        """The point of the body next to the plane or the other ball, (time, 3)."""
        return self._rows(self.part.contact(self._at)[2])

    @property
    def normal(self) -> np.ndarray:
        """The normal force of sustained contact, zero where there is none, (time,); impacts have `impacts.impulse`."""
        return self._forces.normal[:, self._walls].sum(axis=1)

    @property
    def friction(self) -> np.ndarray:
        """The friction of sustained contact on the body, (time, 3)."""
        size = self._forces.friction[:, self._walls].sum(axis=1)
        n = self._normal
        return size[:, None] * self._rows((n[1], -n[0], 0.0))

    @property
    def force(self) -> np.ndarray:
        """Both together: what the plane or the other body exerts on the body at the point of contact, (time, 3)."""
        return self.normal[:, None] * self._rows(self._normal) + self.friction

    @property
    def _normal(self) -> Vector:
        return self.part.contact(self._at)[1]
