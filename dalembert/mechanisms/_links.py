"""Massless parts: links between two joints, composed to the rows that they leave between the bodies, and frames on bodies.

A link has P and a hinge axis a on the first body, or a ball joint there, Q and an axis b, or a ball joint, on the second. All
that the link keeps are the products of a, b and d = Q - P, so that its own pose is no unknown and needs no mass:

| joints | rows |
|---|---|
| ball, ball | the length of d |
| hinge, ball | a.d, the length of d |
| hinge, hinge, parallel | a x b = 0 (two rows), a.d, the length of d |
| hinge, hinge, crossing | d = 0, a.b: a universal joint |
| hinge, hinge, skew | a.d = b.d = 0, a.b, the length of d, with P and Q on the common normal |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._rigid import Body, Frame, Part, Placement
from dalembert.mechanisms._vectors import Columns, dot, subtract

PARALLEL = 1e-9


@dataclass(eq=False, repr=False)
class Link(Joint):
    """A massless link between two bodies, with a hinge or a ball joint at each end."""

    hinged: tuple[bool, bool] = (False, False)
    """Whether the first and the second end are hinges."""

    def rows(self, at: Placement) -> list[Any]:
        """What is zero."""
        (n1, n2, a), (_, _, b) = self.frames(at)
        P, Q = self.ends(at)
        d = subtract(Q, P)
        apart = self.points[1] - self.points[0]
        along = [dot(a, d) - float(self.axis @ apart)]
        assert self.other_axis is not None
        across = [dot(b, d) - float(self.other_axis @ apart)]
        if self.length == 0:
            return [*d, dot(a, b) - self._locals["slant"]]
        rows = [np.sqrt(dot(d, d)) - self.length]
        if self.hinged == (True, True):
            if abs(self.axis @ self.other_axis) > 1 - PARALLEL:
                return [dot(n1, b), dot(n2, b), *along, *rows]
            return [dot(a, b) - self._locals["slant"], *along, *across, *rows]
        return [*(along if self.hinged[0] else []), *(across if self.hinged[1] else []), *rows]


def composed(name: str, P: np.ndarray, Q: np.ndarray, axes: tuple[np.ndarray | None, np.ndarray | None]) -> dict[str, Any]:
    """Where a link is taken to hold, on the common normal of skew or crossing hinges, and its length."""
    a, b = axes
    if a is not None and b is not None and abs(a @ b) <= 1 - PARALLEL:
        normal = np.cross(a, b)
        s, t = np.linalg.solve(np.array([[1.0, -(a @ b)], [a @ b, -1.0]]), [a @ (Q - P), b @ (Q - P)])
        P, Q = P + s * a, Q + t * b
        Q = Q if np.linalg.norm(Q - P) > PARALLEL * max(1e-300, np.max(np.abs([P, Q]))) else P
        d = normal * (normal @ (Q - P)) / (normal @ normal)
        return {"points": (P, P + d if np.any(d) else P), "length": float(np.linalg.norm(d))}
    length = float(np.linalg.norm(Q - P))
    for end, axis in (("first", a), ("second", b)):
        if axis is not None and abs(axis @ (Q - P)) > (1 - PARALLEL) * length:
            raise ModelError(
                f"the other end of {name!r} lies on the axis of its {end} hinge, so that the link turns without moving it: "
                "join the bodies with m.spherical(...), m.revolute(...) or m.universal(...)"
            )
    if length == 0:
        raise ModelError(f"the ends of {name!r} coincide: join the bodies with m.spherical(...)")
    return {"points": (P, Q), "length": length}


@dataclass(eq=False, repr=False)
class Marker(Part):
    """A massless frame on a body or on the ground: a point and axes that move with it."""

    body: Body
    point: np.ndarray
    rotation: np.ndarray

    def at(self, at: Placement) -> Frame:
        """Where it is and how it moves."""
        carrier, arm = at.of(self.body), self.body.arm(self.point)
        own = self.body.axes.T @ self.rotation
        columns: Columns = tuple(carrier.direction(tuple(column)) for column in own.T)  # type: ignore[assignment]
        return Frame(carrier.point(arm), columns, carrier.speed(arm), carrier.omega)

    def check(self, params: Mapping[str, Any]) -> None:
        """Nothing depends on parameters."""


def carrier(part: Any) -> Any:
    """The body that a massless frame is fixed to; other parts are their own."""
    return part.body if isinstance(part, Marker) else part
