"""MJCF and URDF by way of mujoco: the same motion as mujoco's own, and nothing is dropped silently."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from compositions import ORDER_4

import dalembert as da

mujoco = pytest.importorskip("mujoco")

LOOP = """
<mujoco>
  <option gravity="0 0 -9.81" timestep="0.0002" integrator="RK4"/>
  <worldbody>
    <body name="base" pos="0 0 1">
      <joint name="turn" type="hinge" axis="0 0 1" damping="0.02"/>
      <geom type="cylinder" size="0.05 0.1" mass="0.5" contype="0" conaffinity="0"/>
      <body name="arm" pos="0.05 0 0.1" euler="0 30 0">
        <joint name="lift" type="hinge" axis="0 1 0" stiffness="1.5" springref="20" damping="0.01"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0.05" size="0.02" mass="0.3" contype="0" conaffinity="0"/>
        <body name="plate" pos="0.2 0.03 0">
          <geom type="box" size="0.03 0.02 0.01" mass="0.1" contype="0" conaffinity="0"/>
        </body>
        <body name="bob" pos="0.4 0 0.05">
          <joint name="socket" type="ball"/>
          <geom type="box" pos="0 0 -0.1" size="0.02 0.03 0.1" mass="0.2" contype="0" conaffinity="0"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def test_same_motion_as_mujoco():
    m = da.from_mjcf(LOOP)
    assert [body.name for body in m.bodies] == ["base", "arm", "bob"]  # the plate is welded to the arm
    start = m.start(rates={m.part("turn"): 3.0, m.part("lift"): -1.0}, angular_velocities={m.part("bob"): (0.5, 1.0, 2.0)})
    run = da.simulate(m, ORDER_4, start=start, h=0.001, t1=0.5)
    model = mujoco.MjModel.from_xml_string(LOOP)
    data = mujoco.MjData(model)
    arm, bob = run.of(m.part("arm")), run.of(m.part("bob"))
    data.qvel[:2] = [run.of(m.part("turn")).rate[0], run.of(m.part("lift")).rate[0]]
    data.qvel[2:] = bob.rotation[0].T @ (bob.angular_velocity[0] - arm.angular_velocity[0])  # in the axes of the body
    for _ in range(2500):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(bob.position[-1], data.body("bob").xipos, atol=1e-6)
    np.testing.assert_allclose(bob.rotation[-1], data.body("bob").xmat.reshape(3, 3), atol=1e-5)
    np.testing.assert_allclose(run.of(m.part("lift")).angle[-1], data.joint("lift").qpos[0], atol=1e-6)


def test_armature_is_inertia_of_joints():
    """A hinge and a slide with rotors, beside mujoco's own motion."""
    text = """<mujoco><option gravity="0 0 -9.81" timestep="0.0002" integrator="RK4"/><worldbody>
      <body name="arm" pos="0 0 1"><joint name="lift" type="hinge" axis="0 1 0" ref="15" armature="0.02"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02" mass="0.3" contype="0" conaffinity="0"/>
        <body name="sledge" pos="0.2 0 0.05"><joint name="slide" type="slide" axis="1 0 0" armature="0.15" stiffness="40"/>
          <geom type="box" size="0.03 0.02 0.01" mass="0.1" contype="0" conaffinity="0"/></body></body>
      </worldbody></mujoco>"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = da.from_mjcf(text)
    run = da.simulate(m, ORDER_4, start=m.start(rates={"lift": -1.0}, speeds={"slide": 0.0}), h=0.001, t1=0.4)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[0] = -1.0
    for _ in range(2000):
        mujoco.mj_step(model, data)
    joints = [run.of("lift").angle[-1], run.of("slide").displacement[-1]]
    np.testing.assert_allclose(joints, data.qpos, atol=1e-7)
    assert np.abs(run.energy - run.energy[0]).max() < 1e-8


def test_closed_loops_hold_to_round_off():
    """A four-bar by equality/connect: mujoco's loop is soft, here it is a joint."""
    text = """
    <mujoco><option gravity="0 -9.81 0"/><default><geom type="capsule" size="0.01" contype="0" conaffinity="0"/></default>
    <worldbody>
      <body name="crank"><joint name="drive" axis="0 0 1"/><geom fromto="0 0 0 0 0.1 0" mass="0.2"/>
        <body name="coupler" pos="0 0.1 0"><joint axis="0 0 1"/><geom fromto="0 0 0 0.3 0 0" mass="0.6"/></body>
      </body>
      <body name="rocker" pos="0.3 -0.1 0"><joint axis="0 0 1"/><geom fromto="0 0 0 0 0.2 0" mass="0.4"/></body>
    </worldbody><equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.3 0 0"/></equality></mujoco>"""
    m = da.from_mjcf(text)
    run = da.simulate(m, da.Rattle(), start=m.start(rates={m.part("drive"): 5.0}), h=0.001, steps=300)
    assert np.abs(run.residuals["g"]).max() < 1e-14


def test_what_is_not_mapped_is_named():
    text = """<mujoco><worldbody><body name="b"><joint name="j" range="-30 30" armature="0.1" limited="true"/>
    <geom size="0.1"/></body></worldbody><actuator><motor joint="j"/></actuator></mujoco>"""
    with pytest.warns(UserWarning, match="range of the joint 'j'.*1 actuators.*contacts of 1 geoms") as warned:
        da.from_mjcf(text)
    assert warned[0].filename == __file__
    with pytest.raises(da.InputError, match="cannot read this model"):
        da.from_mjcf("<mujoco><nothing/></mujoco>")
    for joints in (
        '<joint axis="1 0 0"/><joint axis="0 1 0" type="slide"/><joint axis="0 0 1"/>',
        '<joint axis="1 0 0"/><joint axis="2 0 0"/>',
        '<joint axis="1 0 0"/><joint axis="0 1 0"/><joint axis="0 0 1" pos="0.1 0 0"/>',
    ):
        several = f'<mujoco><worldbody><body name="b">{joints}<geom size="0.1"/></body></worldbody></mujoco>'
        with pytest.raises(da.ModelError, match="joints of its own, which are no slides before"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            da.from_mjcf(several)


LOADS = 'stiffness="3" springref="10" damping="0.05" armature="0.02"'


@pytest.mark.parametrize(
    ("joints", "kind"),
    [
        (
            f'<joint name="x" type="slide" axis="1 0 0" {LOADS}/><joint name="z" type="slide" axis="0.4 0 1" stiffness="30"/>'
            f'<joint name="h" axis="0 1 0" pos="0.1 0 0" {LOADS}/>',
            "compound",
        ),
        ('<joint name="h" axis="0 0 1" pos="0.1 0 0" ref="30"/><joint name="s" type="slide" axis="0 0 2"/>', "compound"),
        (
            f'<joint name="h" axis="0 1 0.3" pos="0.1 0 0" {LOADS}/><joint name="s" type="slide" axis="1 0.2 0" ref="0.1"/>',
            "compound",
        ),
        (f'<joint name="s" type="slide" axis="1 0.2 0"/><joint name="h" axis="0 1 0.3" {LOADS}/>', "compound"),
        (
            f'<joint name="x" axis="1 0 0" pos="0 0 0.1" {LOADS}/><joint name="y" axis="0 1 0.2" pos="0 0 0.1" ref="15"/>',
            "compound",
        ),
        ('<joint axis="0 1 0" pos="0 0 0.4"/><joint axis="1 1 0" pos="0 0 0.1"/>', "link"),
        ('<joint axis="0 1 0" pos="0 0 0.4"/><joint axis="0 1 0" pos="0 0 0.1"/>', "link"),
        (
            f'<joint name="x" axis="0 1 0" {LOADS}/><joint name="y" axis="1 0 0" ref="20"/>'
            f'<joint name="z" axis="0.2 0.3 1" {LOADS}/>',
            "compound",
        ),
        (
            "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
            + '<joint type="ball" armature="0.03"/>',
            "compound",
        ),
        ('<joint type="ball" armature="0.02"/>', "spherical"),
    ],
)
def test_several_joints_of_one_body(joints, kind):
    """Two bodies, the first with several joints, fall from rest in slanting gravity as in mujoco: places, angles and rates."""
    text = f"""<mujoco><option gravity="2 1 -9.81" timestep="0.0002" integrator="RK4"/><worldbody><body name="one" pos="0 0 1">
      {joints}<geom type="box" pos="0 0.02 -0.1" size="0.05 0.04 0.1" mass="0.8" contype="0" conaffinity="0"/>
      <body name="two" pos="0.1 0 -0.2"><joint name="last" axis="0 1 0"/>
      <geom type="box" pos="0.1 0 0" size="0.1 0.03 0.02" mass="0.3" contype="0" conaffinity="0"/></body></body>
      </worldbody></mujoco>"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = da.from_mjcf(text)
    assert m.joints[0].kind == kind
    run = da.simulate(m, ORDER_4, start=m.start(), h=0.001, t1=0.3)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for _ in range(1500):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    for name in ("one", "two"):
        np.testing.assert_allclose(run.of(name).position[-1], data.body(name).xipos, atol=1e-8)
        np.testing.assert_allclose(run.of(name).rotation[-1], data.body(name).xmat.reshape(3, 3), atol=1e-7)
    for motion in getattr(m.joints[0], "motions", ()):
        own = run.of(motion)
        found = [own.angle, own.rate] if motion.turns else [own.displacement, own.speed]
        joint = model.joint(motion.name) if not motion.name.startswith("joint") else model.joint(int(motion.name[6:]))
        theirs = [data.qpos[joint.qposadr[0]], data.qvel[joint.dofadr[0]]]
        np.testing.assert_allclose([values[-1] for values in found], theirs, atol=1e-7)


def test_loads_of_hinges_apart_are_listed():
    text = """<mujoco><worldbody><body name="leg"><joint name="x" axis="1 0 0" stiffness="2" pos="0 0 0.3"/>
    <joint name="y" axis="0 1 0" damping="1" range="-1 1" limited="true" armature="0.1"/>
    <geom type="box" pos="0 0 -0.1" size="0.05 0.04 0.1" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    with pytest.warns(
        UserWarning, match="stiffness of the joint 'x', damping of the joint 'y', armature.*range of the joint 'y'"
    ):
        assert da.from_mjcf(text).joints[0].name == "x and y"


def test_urdf():
    text = """<robot name="r"><link name="world"/><link name="arm"><inertial><origin xyz="0.2 0 0"/><mass value="0.5"/>
    <inertia ixx="0.001" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous">
    <parent link="world"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""
    m = da.from_urdf(text)
    limited = text.replace("continuous", "revolute").replace(
        "<axis", '<limit lower="-1" upper="1" effort="1" velocity="1"/><axis'
    )
    with pytest.warns(UserWarning, match="range of the joint 'j'") as warned:
        da.from_urdf(limited)
    assert warned[0].filename == __file__
    # released at rest from the horizontal: m g l / (J + m l^2)
    state = m.start()
    assert m.bodies[0].centre == pytest.approx([0.2, 0, 0])
    run = da.simulate(m, da.LobattoIIIAB(3), start=state, h=0.001, steps=10)
    assert run.of(m.part("j")).rate[-1] == pytest.approx(0.5 * 9.81 * 0.2 / (0.01 + 0.5 * 0.04) * 0.01, rel=1e-3)


INERTIAL = '<inertial pos="0 0 0" mass="0.2" diaginertia="1e-4 1e-4 1e-4"/>'


def test_what_the_options_disable_does_not_act():
    """A slide in free fall without gravity, spring and damper keeps its speed."""
    text = f"""<mujoco><option><flag gravity="disable" spring="disable" damper="disable"/></option><worldbody><body name="b">
    <joint name="j" type="slide" axis="0 0 1" stiffness="30" damping="2"/>{INERTIAL}</body></worldbody></mujoco>"""
    m = da.from_mjcf(text)
    run = da.simulate(m, da.LobattoIIIAB(2), start=m.start(speeds={m.part("j"): 1.5}), h=0.01, steps=10)
    np.testing.assert_allclose(run.of(m.part("j")).displacement, 1.5 * run.t, atol=1e-14)


def test_loads_of_free_joints_and_poses_of_welds_are_named():
    text = f"""<mujoco><worldbody><body name="a"><joint name="j" type="free" damping="2" armature="0.3"/>{INERTIAL}</body>
    <body name="b" pos="1 0 0" euler="0 40 5"><joint type="free"/>{INERTIAL}</body></worldbody>
    <equality><weld name="w" body1="a" body2="b" %s/></equality></mujoco>"""
    free = "damping of the free joint 'j', armature of the free joint 'j'"
    with pytest.warns(UserWarning, match=f"{free}, relative pose of the weld 'w'"):
        da.from_mjcf(text % 'relpose="2 0 0 1 0 0 0"')
    with pytest.warns(UserWarning, match=f"{free}$"):
        da.from_mjcf(text % 'anchor="0.1 0.2 0.3"')
