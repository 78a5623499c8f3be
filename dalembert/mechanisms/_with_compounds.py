"""How compound joints, whose displacements and angles have names of their own, and rotors are added to a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._building import Z
from dalembert.mechanisms._compound import Compound, Copied, Motion
from dalembert.mechanisms._coordinates import Planar
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._links import carrier
from dalembert.mechanisms._rigid import Body
from dalembert.mechanisms._values import Value, number
from dalembert.mechanisms._vectors import direction
from dalembert.mechanisms._with_joints import WithJoints
from dalembert.systems._model import one_line


class WithCompounds(WithJoints):
    """A mechanism to which compound joints and rotors can be added."""

    def compound(
        self,
        first: Body,
        second: Body,
        *,
        at: Any,
        slides: Sequence[Any] = (),
        turns: Sequence[Any] | None = (),
        names: Sequence[str | None] | None = None,
        values: Sequence[float] | None = None,
        name: str | None = None,
    ) -> Compound:
        """Displacements along `slides` of the first body, then `turns` about axes through one point; None is any rotation.

        Each turn carries the axes of those after it, as the rings of a gimbal do, without bodies between. `joint.motions` are
        its displacements, then its angles, for motors, springs, stops, starts and readings; `names` names them and `values`
        says what they are called in the assembled pose. Angles of three turns are known where the outer axes are not parallel.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism()
            >>> camera = m.body("camera", mass=0.3, inertia=1e-4)
            >>> gimbal = m.compound(m.ground, camera, at=(0, 0, 0), turns=[(0, 0, 1), (0, 1, 0)], names=["pan", "tilt"])
            >>> gimbal.motions, m.system().n_holonomic
            ((<Motion 'pan'>, <Motion 'tilt'>), 5)

        """
        self._own_bodies("a compound joint", first, second)
        along, about = _axes("slides", slides), None if turns is None else _axes("turns", turns)
        self._check_flat_axes(along, about, carrier(first), carrier(second))
        axes = about or (np.array(Z),)
        count = len(along) + len(about or ())
        called = [None] * count if names is None else list(names)
        own = [0.0] * count if values is None else [number("a value of a compound joint", value) for value in values]
        if len(called) != count or len(own) != count:
            raise ModelError(f"this compound joint leaves {count} motions: give as many names and values")
        self._check_names([name, *called])
        more = {"slides_along": along, "turns_about": about, "other_axis": axes[-1]}
        joint = self._joint("compound", first, second, at, axes[0], name, **more)
        assert isinstance(joint, Compound)
        sliding = self._motions(joint, "slide", along, called, own)
        joint.motions = (*sliding, *self._motions(joint, "turn", about or (), called[len(along) :], own[len(along) :]))
        return joint

    def _check_names(self, names: Sequence[str | None]) -> None:
        """Refuse names that are taken before anything is added."""
        given = [name for name in names if name is not None]
        for k, name in enumerate(given):
            self._name(name, "compound joint")
            if name in given[:k]:
                raise ModelError(f"there are two parts of the name {name!r}: give each its own")

    def _motions(
        self, joint: Compound, what: str, axes: Sequence[np.ndarray], names: Sequence[str | None], values: Sequence[float]
    ) -> list[Motion]:
        """The displacements, or the angles, of a joint."""
        found = []
        for k, axis in enumerate(axes):
            called = self._name(names[k], f"{joint.name} {what}")
            kind = "prismatic" if what == "slide" else "revolute"
            motion = Motion(called, self, kind, joint.first, joint.second, joint.points, axis, whole=joint, number=k)
            setattr(motion, motion.coordinate, values[k])
            found.append(self._add(motion))
        return found

    @staticmethod
    def _check_flat_axes(along: tuple[Any, ...], about: tuple[Any, ...] | None, first: Body, second: Body) -> None:
        """Refuse axes by which planar bodies would be locked."""
        moving = [body for body in (first, second) if body.coordinates is not None]
        if not moving or not all(isinstance(body.coordinates, Planar) for body in moving):
            return
        if any(abs(axis[2]) > 1e-9 for axis in along) or any(abs(axis[2]) < 1 - 1e-9 for axis in about or ()):
            raise ModelError("a compound joint in the plane slides along axes that lie in it, and turns about its normal")

    def rotor(self, joint: Joint, *, inertia: Value, name: str | None = None) -> Body:
        """Inertia that the motion of a joint alone has, as that of a motor's rotor times the square of its gear ratio.

        It resists the joint's angle, its displacement (a mass then), or any rotation of a ball joint, and nothing else: a body
        with a centre at rest that turns as far as the joint moves. MuJoCo calls this armature.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism(gravity=(0, 0, -9.81))
            >>> hinge = m.revolute(m.ground, m.rod("arm", (0, 0, 0), (1, 0, 0), mass=1.0), at=(0, 0, 0), axis=(0, 1, 0))
            >>> m.rotor(hinge, inertia=2e-5 * 50**2)
            <Body 'rotor of revolute 1'>

        """
        any_rotation = getattr(joint, "kind", None) == "spherical" or getattr(joint, "turns_about", ()) is None
        if any_rotation:
            self._own("a rotor", (joint,), (Joint,), "joints", "m.revolute(...)")
        else:
            self._own_joints("a rotor", joint)
        called, at = name or f"rotor of {joint.name}", joint.points[0]
        rotor = self.body(called, mass=inertia, inertia=inertia, at=at)
        if any_rotation:
            self.spherical(self.ground, rotor, at=at, name=f"bearing of {called}")
            self._add(Copied(self._name(f"coupling of {called}", "coupling"), self, joint, rotor))
            return rotor
        turned = joint.angle if joint.coordinate == "angle" else 0.0
        shaft = self.revolute(self.ground, rotor, at=at, axis=Z, angle=turned, name=f"shaft of {called}")
        self.gear(joint, shaft, ratio=1.0, name=f"gear of {called}")
        return rotor


def _axes(what: str, given: Any) -> tuple[np.ndarray, ...]:
    """Up to three independent unit vectors."""
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise ModelError(f"the {what} of a compound joint are a list of directions, such as [(1, 0, 0)]; got {one_line(given)}")
    units = tuple(direction(f"one of the {what} of a compound joint", axis) for axis in given)
    if units and np.linalg.matrix_rank(np.array(units), tol=1e-6) < len(units):
        raise ModelError(f"the {what} of a compound joint depend on each other: give independent directions")
    return units
