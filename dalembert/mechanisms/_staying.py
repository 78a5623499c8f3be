"""What a start leaves as it is: joints keep their angles and displacements, and bodies that no joint carries their place.

A pose is described by what an observer on each joint's first body sees of its second, R_1^T R_2 and R_1^T d, and by R and x of
the *carriers*: of each group of bodies without a joint to the ground one. A start changes this description as little as it can,
angles in radians and lengths in sizes of the mechanism. So a given angle turns what lies behind its joint, as in coordinates of
joints, and what closes a loop follows. Of a compound joint the observer sees its displacements and angles, and what its rows
say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.mechanisms._compound import Compound
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._links import carrier
from dalembert.mechanisms._rigid import Body, Placement
from dalembert.mechanisms._values import number
from dalembert.mechanisms._vectors import constant, dot, subtract

if TYPE_CHECKING:
    from dalembert.mechanisms._assembly import Mechanism

RADIAN = float(np.sqrt(0.5))
"""By how much the entries of a rotation matrix must be multiplied to change by one while it turns by a radian."""


def carriers(m: Mechanism, given: Sequence[Any], at: Placement) -> list[Body]:
    """Of each group of bodies that joints connect, but not with the ground, the one that stays where it is.

    It is the first one that was given a place or a velocity; else the one that is the second body of no joint, if there is
    one such body; else the heaviest.
    """
    groups = {id(body): [body] for body in (m.ground, *m.bodies)}
    for joint in m.joints:
        one, other = groups[id(joint.first)], groups[id(joint.second)]
        if one is not other:
            one.extend(other)
            groups |= {id(body): one for body in other}
    named = [carrier(part) for part in given if not isinstance(part, Joint)]
    carried = {id(joint.second) for joint in m.joints}
    found = []
    for group in {id(group): group for group in groups.values()}.values():
        if m.ground in group:
            continue
        chosen = [body for body in named if body in group][:1] or [body for body in group if id(body) not in carried]
        found.append(chosen[0] if len(chosen) == 1 else max(group, key=lambda body: _mass(body, at)))
    return found


def _mass(body: Body, at: Placement) -> float:
    return number(f"the mass of {body.name!r}", at.value(f"the mass of {body.name!r}", body.mass))


def description(m: Mechanism, staying: Sequence[Body], at: Placement, extent: float) -> list[Any]:
    """The description of a pose; it determines the coordinates of all bodies."""
    entries: list[Any] = []
    for joint in m.joints:
        P, Q = joint.ends(at)
        first, second = at.of(joint.first).columns, at.of(joint.second).columns
        if isinstance(joint, Compound):
            entries += [motion.coordinate_at(at) / (extent if motion.slides else 1.0) for motion in joint.motions]
            entries += joint.rows(at)
            for own in (joint.first, joint.second):  # angles do not tell the length of a quaternion
                entries += [] if own.coordinates is None else own.coordinates.constraints(at.q[own.slice])
        else:
            entries += [dot(one, subtract(Q, P)) / extent for one in first]
        if not isinstance(joint, Compound) or joint.turns_about is None:
            entries += [dot(one, other) * RADIAN for one in first for other in second]
    for body in staying:
        frame = at.of(body)
        entries += [RADIAN * x for column in frame.columns for x in column]
        entries += [x / extent for x in frame.centre]
    return [entry for entry in entries if constant(entry) is None]
