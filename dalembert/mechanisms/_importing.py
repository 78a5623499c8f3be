"""Mechanisms from MJCF and URDF files, which the package `mujoco` reads; what cannot be mapped is named in a warning."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert._warnings import warn
from dalembert.errors import DalembertError, InputError, ModelError
from dalembert.mechanisms._assembly import Mechanism
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._rigid import Body


def from_mjcf(source: str | os.PathLike[str], *, coordinates: str = "quaternion", stops: bool = False) -> Mechanism:
    """The mechanism of an MJCF file, or of its text: bodies with their inertias, joints, springs, dampers and closed loops.

    Mapped are hinge, slide, ball and free joints with stiffness, damping, reference and armature (`m.rotor`), welded bodies,
    gravity, and the equality constraints connect and weld. Several joints of one body are a compound joint, where slides come
    before hinges that meet in one point, or after them; two hinges apart are a link, without their loads. With `stops=True`
    also the ranges of joints, which then need a collision integrator. What the options disable is left out. What else the
    file states (contacts, actuators, tendons, friction) is listed in a warning. Needs the package mujoco.

    Example:
        >>> import dalembert as da
        >>> m = da.from_mjcf("pendulum.xml")  # doctest: +SKIP
        >>> start = m.start(rates={m.part("hinge"): 2.0})  # doctest: +SKIP

    """
    try:
        import mujoco
    except ImportError:
        raise DalembertError("from_mjcf and from_urdf need the package mujoco: pip install mujoco") from None
    text = str(source)
    try:
        if text.lstrip().startswith("<"):
            model = mujoco.MjModel.from_xml_string(text)
        else:
            model = mujoco.MjModel.from_xml_path(text)
    except ValueError as error:
        raise InputError(f"mujoco cannot read this model: {' '.join(str(error).split())}") from None
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    return _Import(mujoco, model, data, coordinates, stops).mechanism


def from_urdf(source: str | os.PathLike[str], *, coordinates: str = "quaternion", stops: bool = False) -> Mechanism:
    """The mechanism of a URDF file, or of its text; like `from_mjcf`, by way of the package mujoco."""
    return from_mjcf(source, coordinates=coordinates, stops=stops)


class _Import:
    """A compiled MuJoCo model in its reference pose, part by part."""

    def __init__(self, mujoco: Any, model: Any, data: Any, coordinates: str, stops: bool) -> None:
        self.mujoco, self.model, self.data, self.stops = mujoco, model, data, stops
        gravity = (0.0, 0.0, 0.0) if self._disabled("gravity") else tuple(model.opt.gravity)
        self.mechanism = Mechanism(gravity=gravity, coordinates=coordinates)
        self.left_out: list[str] = []
        self.bodies: dict[int, Body] = {0: self.mechanism.ground}
        for root in range(1, model.nbody):
            if model.body_weldid[root] == root:
                self._body(root)
        for root in list(self.bodies)[1:]:
            self._joint(root)
        for k in range(model.neq):
            self._equality(k)
        self._note_what_is_left()

    def _disabled(self, *flags: str) -> bool:
        """Whether the model switches something off in its options; names differ between versions of mujoco."""
        bits = [getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{flag.upper()}", None) for flag in flags]
        return any(bit is not None and self.model.opt.disableflags & int(bit) for bit in bits)

    def _name(self, kind: str, k: int) -> str:
        name = self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), k) or f"{kind} {k}"
        return f"{name} {kind}" if name in self.mechanism._names else name

    def _body(self, root: int) -> None:
        """A body with everything that is welded to it."""
        model, data = self.model, self.data
        members = [i for i in range(model.nbody) if model.body_weldid[i] == root and model.body_mass[i] > 0]
        if not members:
            raise ModelError(f"the body {self._name('body', root)!r} moves, but has no mass: give it an inertial or a geom")
        mass = float(sum(model.body_mass[members]))
        centre = sum(model.body_mass[i] * data.xipos[i] for i in members) / mass
        inertia = np.zeros((3, 3))
        for i in members:
            R, arm = data.ximat[i].reshape(3, 3), data.xipos[i] - centre
            inertia += R @ np.diag(model.body_inertia[i]) @ R.T + model.body_mass[i] * (
                arm @ arm * np.eye(3) - np.outer(arm, arm)
            )
        rotation = data.xmat[root].reshape(3, 3)
        own = rotation.T @ inertia @ rotation
        self.bodies[root] = self.mechanism.body(
            self._name("body", root), mass=mass, inertia=(own + own.T) / 2, at=centre, rotation=rotation, free=True
        )

    def _joint(self, root: int) -> None:
        """What is between a body and the one that carries it."""
        model, m, kinds = self.model, self.mechanism, self.mujoco.mjtJoint
        parent, body = self.bodies[model.body_weldid[model.body_parentid[root]]], self.bodies[root]
        first, count = model.body_jntadr[root], model.body_jntnum[root]
        own = range(first, first + count)
        if count != 1 or int(model.jnt_type[first]) == int(kinds.mjJNT_FREE):
            self._several(parent, body, own)
            return
        at, axis, kind = self.data.xanchor[first], self.data.xaxis[first], int(model.jnt_type[first])
        name, reference = self._name("joint", first), float(model.qpos0[model.jnt_qposadr[first]])
        if kind == int(kinds.mjJNT_BALL):
            self._loaded(m.spherical(parent, body, at=at, name=name), first)
        elif kind == int(kinds.mjJNT_HINGE):
            self._loaded(m.revolute(parent, body, at=at, axis=axis, angle=reference, name=name), first)
        else:
            self._loaded(m.prismatic(parent, body, at=at, axis=axis, displacement=reference, name=name), first)

    def _several(self, parent: Body, body: Body, own: Sequence[int]) -> None:
        """Joints of one body: a compound joint, where slides come before turns about one point, or after them, seen backwards.

        Two hinges that do not meet are a link, whose angles have no springs: their loads are left out.
        """
        model, m, kinds = self.model, self.mechanism, self.mujoco.mjtJoint
        letters = {int(kinds.mjJNT_HINGE): "h", int(kinds.mjJNT_SLIDE): "s", int(kinds.mjJNT_BALL): "b"}
        word = "".join(letters.get(int(model.jnt_type[k]), "f") for k in own)
        if word == "f":
            self._leave_loads_out(own[0])
            return
        slides, turns = ([k for k in own if letters[int(model.jnt_type[k])] in letter] for letter in ("s", "hb"))
        at = self.data.xanchor[[*turns, *own][0]]
        meeting = np.abs(self.data.xanchor[turns] - at).max(initial=0.0) < 1e-9 * max(1.0, float(np.abs(at).max()))
        independent = all(_rank(self.data.xaxis[k]) == len(k) for k in (slides, turns) if "b" not in word or k is slides)
        name = " and ".join(self._name("joint", k) for k in own)
        if word == "hh" and not meeting:
            m.link(parent, body, at=tuple(self.data.xanchor[turns]), axes=tuple(self.data.xaxis[turns]), name=name)
            for k in own:
                self._leave_loads_out(k)
        elif independent and meeting and re.fullmatch("s*(h{0,3}|b)|(h+|b)s+", word):
            self._compound(parent, body, (slides, turns), at, name, backwards=word[0] != "s" and bool(slides))
        else:
            raise ModelError(
                f"the body {body.name!r} has {len(own)} joints of its own, which are no slides before or after hinges that "
                "meet in one point: put a light body between each two of them"
            )

    def _compound(
        self, parent: Body, body: Body, joints: tuple[list[int], list[int]], at: np.ndarray, name: str, backwards: bool
    ) -> None:
        """Slides and turns with their loads; seen from the body, where its slides are carried by its turns."""
        slides, turns = joints
        ball = bool(turns) and int(self.model.jnt_type[turns[0]]) == int(self.mujoco.mjtJoint.mjJNT_BALL)
        along, about = (self.data.xaxis[k] for k in joints)
        moving, bodies = [*slides, *([] if ball else turns)], (parent, body)
        if backwards:
            moving = [*slides, *([] if ball else turns[::-1])]
            along, about, bodies = -along, -about[::-1], (body, parent)
        compound = self.mechanism.compound(
            *bodies,
            at=at,
            slides=list(along),
            turns=None if ball else list(about),
            names=[self._name("joint", k) for k in moving],
            values=[float(self.model.qpos0[self.model.jnt_qposadr[k]]) for k in moving],
            name=name,
        )
        for motion, k in zip(compound.motions, moving, strict=True):
            self._loaded(motion, k)
        if ball:
            self._loaded(compound, turns[0])

    def _leave_loads_out(self, k: int) -> None:
        """List what a joint has beside its freedom."""
        model, kinds = self.model, self.mujoco.mjtJoint
        kind = int(model.jnt_type[k])
        count = {int(kinds.mjJNT_FREE): 6, int(kinds.mjJNT_BALL): 3}.get(kind, 1)
        own, of = slice(model.jnt_dofadr[k], model.jnt_dofadr[k] + count), "free joint" if count == 6 else "joint"
        values = (model.jnt_stiffness[k], model.dof_damping[own], model.dof_armature[own], model.dof_frictionloss[own])
        for what, value in zip(("stiffness", "damping", "armature", "friction"), values, strict=True):
            self.left_out += [f"{what} of the {of} {self._name('joint', k)!r}"] if np.any(value) else []
        self.left_out += [f"range of the {of} {self._name('joint', k)!r}"] if model.jnt_limited[k] else []

    def _loaded(self, joint: Joint, k: int) -> None:
        """Spring, damper and range of a joint."""
        model, dof = self.model, self.model.jnt_dofadr[k]
        stiffness, damping = (float(np.ravel(x)[0]) for x in (model.jnt_stiffness[k], model.dof_damping[dof]))
        stiffness = 0.0 if self._disabled("spring", "passive") else stiffness
        damping = 0.0 if self._disabled("damper", "passive") else damping
        ball = int(model.jnt_type[k]) == int(self.mujoco.mjtJoint.mjJNT_BALL)
        if ball:
            self.left_out += [f"spring or damper of the ball joint {joint.name!r}"] if stiffness or damping else []
        elif stiffness or damping:
            rest = float(model.qpos_spring[model.jnt_qposadr[k]])
            self.mechanism.torsion(joint, stiffness=stiffness, rest=rest, damping=damping)
        if model.jnt_limited[k]:
            lower, upper = (float(limit) for limit in model.jnt_range[k])
            wide = joint.kind == "revolute" and max(abs(lower - joint.angle), abs(upper - joint.angle)) >= np.pi
            if not self.stops:
                self.left_out.append(f"range of the joint {joint.name!r} (stops=True takes it)")
            elif wide or ball:
                what = "more than half a turn from the reference" if wide else "that of a ball joint"
                self.left_out.append(f"range of the joint {joint.name!r} ({what})")
            else:
                self.mechanism.stop(joint, lower=lower, upper=upper)
        if model.dof_armature[dof]:
            self.mechanism.rotor(joint, inertia=float(model.dof_armature[dof]))
        if model.dof_frictionloss[dof]:
            self.left_out.append(f"friction of the joint {joint.name!r}")

    def _equality(self, k: int) -> None:
        """A closed loop."""
        model, data, kinds, m = self.model, self.data, self.mujoco.mjtEq, self.mechanism
        kind, name = int(model.eq_type[k]), self._name("equality", k)
        of_bodies = int(model.eq_objtype[k]) == int(self.mujoco.mjtObj.mjOBJ_BODY)
        off = not model.eq_active0[k] or self._disabled("equality", "constraint")
        if off or not of_bodies or kind not in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
            self.left_out.append(f"equality constraint {name!r}")
            return
        one, other = model.eq_obj1id[k], model.eq_obj2id[k]
        first, second = (self.bodies[model.body_weldid[i]] for i in (one, other))
        anchors = model.eq_data[k]
        if kind == int(kinds.mjEQ_WELD):
            m.fixed(first, second, name=name)
            R, other_R, turned = data.xmat[one].reshape(3, 3), data.xmat[other].reshape(3, 3), np.zeros(9)
            self.mujoco.mju_quat2Mat(turned, anchors[6:10])
            place = R.T @ (data.xpos[other] + other_R @ anchors[:3] - data.xpos[one])
            off_by = max(np.max(np.abs(place - anchors[3:6])), np.max(np.abs(R.T @ other_R - turned.reshape(3, 3))))
            if off_by > 1e-6:  # what is written in a file is rounded
                self.left_out.append(
                    f"relative pose of the weld {name!r} (it holds the bodies as they are in the reference pose)"
                )
            return
        P, Q = (data.xpos[i] + data.xmat[i].reshape(3, 3) @ x for i, x in ((one, anchors[:3]), (other, anchors[3:6])))
        m.spherical(first, second, at=(P, Q), name=name)

    def _note_what_is_left(self) -> None:
        model = self.model
        counted = {"nu": "actuators", "ntendon": "tendons", "npair": "contact pairs", "ngravcomp": "gravity compensations"}
        for name, what in (counted | {"nflex": "flexible bodies", "nplugin": "plugins", "nmocap": "mocap bodies"}).items():
            count = int(getattr(model, name, 0))
            if count:
                self.left_out.append(f"{count} {what}")
        if model.opt.density or model.opt.viscosity:
            self.left_out.append("the forces of the medium")
        for name, what in (("jnt_stiffnesspoly", "stiffness"), ("dof_dampingpoly", "damping")):
            if np.any(getattr(model, name, 0.0)):
                self.left_out.append(f"nonlinear {what} of joints")
        colliding = int(np.sum((model.geom_contype != 0) | (model.geom_conaffinity != 0)))
        if colliding:
            self.left_out.append(f"contacts of {colliding} geoms")
        if self.left_out:
            warn(f"not taken from the model: {', '.join(self.left_out)}")


def _rank(axes: Any) -> int:
    """How many of some directions are independent."""
    return int(np.linalg.matrix_rank(np.reshape(axes, (-1, 3)), tol=1e-6)) if len(axes) else 0
