"""Which bodies of a mechanism have a path to the rest of it."""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.errors import ModelError
from dalembert.mechanisms._joints import Gear, Joint
from dalembert.mechanisms._loads import Spring
from dalembert.mechanisms._rigid import Body, Part


def check_connected(ground: Body, bodies: Sequence[Body], parts: Sequence[Part]) -> None:
    """Refuse bodies without a path to the rest, over joints, springs, wheels and forces, unless they are said to be free."""
    islands = [{id(body): body} for body in (ground, *bodies)]
    for part in parts:
        linked = {id(body) for body in _linked_by(part, ground)}
        merged = {key: body for island in islands if island.keys() & linked for key, body in island.items()}
        islands = [island for island in islands if not island.keys() & linked] + ([merged] if merged else [])
    apart = [island for island in islands if id(ground) not in island]
    if len(apart) == 1 and len(apart[0]) == len(bodies):
        return  # all of the mechanism is free
    for island in apart:
        if not any(body.free for body in island.values()):
            names = " and ".join(repr(body.name) for body in island.values())
            raise ModelError(
                f"nothing connects {names} with the rest of the mechanism: add a joint, a spring or a force, or say free=True "
                "where a body is made"
            )


def _linked_by(part: Part, ground: Body) -> list[Body]:
    """The bodies between which a part acts; the ground carries planes and what exerts forces."""
    match part:
        case Joint():
            return [part.first, part.second]
        case Spring():
            return list(part.bodies)
        case Gear():
            return [body for joint in part.joints for body in (joint.first, joint.second)]
    body, other = getattr(part, "body", None), getattr(part, "other", None)
    return [] if body is None else [body, ground if other is None else other]
