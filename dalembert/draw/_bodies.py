"""How a mechanism is drawn: its solids, rods from joint to joint where bodies have no shape, springs and wheels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dalembert.draw._parts import GREY, INK, Drawing, Part, body, disc, line, mass, rod, solid, spring, trace, track
from dalembert.mechanisms import Body, Mechanism, Mesh
from dalembert.mechanisms._coordinates import Planar, Point, Quaternion
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._loads import Spring
from dalembert.mechanisms._rigid import Placement
from dalembert.mechanisms._values import valued
from dalembert.mechanisms._vectors import normals
from dalembert.mechanisms._wheels import Wheel


def mechanism(m: Mechanism) -> Drawing:
    """The drawing of a mechanism, in the plane if all of its bodies are planar; the path of the last body is shown.

    Example:
        >>> import dalembert as da
        >>> m = da.Mechanism(coordinates="planar")
        >>> hinge = m.revolute(m.ground, m.rod("rod", (0, 0), (1, 0), mass=1.0), at=(0, 0))
        >>> [part.kind for part in mechanism(m)(m.q0)]
        ['body', 'mass', 'trace']

    """
    flat = all(isinstance(b.coordinates, Planar) or (isinstance(b.coordinates, Point) and b.size == 2) for b in m.bodies)
    bodies = {id(b): replace(b, mechanism=None, mass=0.0, inertia=(0.0, 0.0, 0.0)) for b in (m.ground, *m.bodies)}
    return _Picture(
        [bodies[id(b)] for b in m.bodies],
        [replace(j, mechanism=None, first=bodies[id(j.first)], second=bodies[id(j.second)], length=0.0) for j in m.joints],
        [
            replace(
                s,
                mechanism=None,
                bodies=(bodies[id(s.bodies[0])], bodies[id(s.bodies[1])]),
                stiffness=0.0,
                length=0.0,
                damping=0.0,
            )
            for s in m.loads
            if isinstance(s, Spring)
        ],
        [
            replace(w, mechanism=None, body=bodies[id(w.body)], radius=float(valued("a radius", w.radius, m.params)))
            for w in m.parts
            if isinstance(w, Wheel)
        ],
        flat,
        None if flat else _upwards(m),
    )


def _upwards(m: Mechanism) -> np.ndarray | None:
    """The direction against gravity; None if there is none."""
    entries = valued("gravity", m.gravity, m.params)
    down = np.array([valued("gravity", entry, m.params) for entry in entries], dtype=float)
    size = np.linalg.norm(down)
    return None if size == 0 or len(down) == 2 else -down / size


@dataclass(frozen=True)
class _Picture:
    """The shapes of a mechanism's parts, without the functions of its user, so that runs which hold it can be pickled."""

    bodies: Sequence[Body]
    joints: Sequence[Joint]
    springs: Sequence[Spring]
    wheels: Sequence[Wheel]
    flat: bool
    up: np.ndarray | None = None

    def __call__(self, q: np.ndarray) -> list[Part]:
        at, flat = Placement(self._normalised(q), None, 0.0, {}), self.flat
        parts = [part for b in self.bodies for part in _body(self.joints, b, at, flat)]
        for joint in self.joints:
            ends = [_cut(end, flat) for end in joint.ends(at)]
            parts += [line(*ends)] if joint.kind == "distance" else [mass(ends[1], color=INK)]
        for load in self.springs:
            P, Q = (_cut(end, flat) for end in load.ends(at))
            parts.append(spring(P, Q, width=0.05 * max(float(np.linalg.norm(Q - P)), 1e-9)))
        for wheel in self.wheels:
            parts += _wheel(wheel, at, flat)
        return [*parts, trace(_cut(at.of(self.bodies[-1]).centre, flat))]

    def _normalised(self, q: np.ndarray) -> np.ndarray:
        """Quaternions of unit length, which they do not have between stored states."""
        q = np.array(q, dtype=float)
        for b in self.bodies:
            if isinstance(b.coordinates, Quaternion):
                e = q[b.slice][3:]
                e /= np.linalg.norm(e)
        return q


def _cut(point: Any, flat: bool) -> np.ndarray:
    return np.array(point, dtype=float)[: 2 if flat else 3]


def _body(joints: Sequence[Joint], b: Body, at: Placement, flat: bool) -> list[Part]:
    frame = at.of(b)
    if b.solid is None:
        joined = [p for j in joints for side, p in zip((j.first, j.second), j.points, strict=True) if side is b]
        if isinstance(b.coordinates, Point) or not joined:
            return [mass(_cut(frame.centre, flat))]
        centre = _cut(frame.centre, flat)
        return [*(rod(centre, _cut(frame.point(b.arm(point)), flat)) for point in joined), mass(centre)]
    own = b.axes.T @ b.rotation  # from the axes in which the solid was given to principal ones
    columns = np.array(frame.columns, dtype=float)
    corners = np.array(frame.centre, dtype=float) + b.solid.vertices @ own.T @ columns
    if not flat:
        return [solid(corners, b.solid.faces, outlines=b.solid.outlines, dark=b.solid.dark)]
    outlines = [corners[list(outline), :2] for outline in b.solid.outlines]
    areas = [_area(outline) for outline in outlines]
    if isinstance(b.solid, Mesh):
        return [body(*outline) for outline, area in zip(outlines, areas, strict=True) if area > 0]
    sizes = np.abs(areas)  # of faces as large as each other always the same one, whatever rounding says
    return [body(*outlines[int(np.argmax(sizes > (1 - 1e-9) * sizes.max()))])]


def _area(outline: np.ndarray) -> float:
    x, y = outline[:, 0], outline[:, 1]
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2)


def _wheel(wheel: Wheel, at: Placement, flat: bool) -> list[Part]:
    frame, b = at.of(wheel.body), wheel.body
    centre = _cut(frame.point(b.arm(wheel.centre)), flat)
    radius = float(valued("a radius", wheel.radius, at.params))
    touching = _cut(wheel.contact_point(at), flat)
    if wheel.axis is None:
        return [mass(centre, radius)] if b.solid is None else [track(touching, centre, color=GREY)]
    across, up = (_cut(frame.direction(b.local(u)), flat) for u in normals(wheel.axis))
    return disc(centre, radius, across, up)
