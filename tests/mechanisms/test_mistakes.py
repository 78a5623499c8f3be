"""What a new user of mechanisms gets wrong is refused by name, in one sentence."""

import math

import numpy as np
import pytest

import dalembert as da


def arm():
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    rod = m.rod("arm", (0, 0), (0.2, 0), mass=0.2)
    return m, rod, m.revolute(m.ground, rod, at=(0, 0), name="pin")


OFF_THE_PLANE = {
    "rod": (lambda m, r: m.rod("b", (0, 0, 0), (0.1, 0, 0.2), mass=0.2), "the end of the rod 'b' has z = 0.2"),
    "body": (lambda m, r: m.body("b", mass=0.2, inertia=1e-4, at=(0, 0, 0.2)), "the position of 'b' has z"),
    "point": (lambda m, r: m.point("b", mass=0.2, at=(0, 0, 0.2)), "the position of 'b' has z"),
    "joint": (lambda m, r: m.revolute(m.ground, r, at=(0, 0, 0.2)), "the point of 'revolute 1' has z"),
    "distance": (lambda m, r: m.distance(m.ground, r, at=((0, 0, 1), (0.2, 0))), "the point of 'distance 1' has z = 1"),
    "spring": (lambda m, r: m.spring(m.ground, r, at=((0, 0, 1), (0.2, 0)), stiffness=1.0), "'spring 1' has z"),
    "force": (lambda m, r: m.force(r, (0, 1), at=(0.2, 0, 1)), "'force 1' has z"),
    "frame": (lambda m, r: m.frame("tool", r, at=(0.2, 0, 1)), "'tool' has z"),
    "wheel": (lambda m, r: m.ball(r, radius=0.1, centre=(0.2, 0, 1), normal=(0, 1)), "'rolling ball 1' has z"),
}


@pytest.mark.parametrize("what", OFF_THE_PLANE)
def test_points_off_the_plane_of_a_planar_mechanism(what):
    make, answer = OFF_THE_PLANE[what]
    m, rod, _ = arm()
    with pytest.raises(da.ModelError, match=answer):
        make(m, rod)


def test_bodies_in_space_have_points_off_the_plane():
    m, rod, _ = arm()
    top = m.body("top", mass=0.2, inertia=1e-4, at=(0, 0, 0.3), coordinates="quaternion")
    m.spring(rod, top, at=((0.2, 0), (0, 0, 0.3)), stiffness=1.0)
    m.spherical(m.ground, top, at=(0, 0, 0.1))


JOINTS = "takes joints, such as m.revolute\\(...\\) returns; got <Body 'arm'>"
BODIES = "takes bodies and frames, such as m.body\\(...\\) returns; got <Joint 'pin'>"
EXCHANGED = {
    "motor": (lambda m, r, h: m.motor(r, 1.0), JOINTS),
    "torsion": (lambda m, r, h: m.torsion(r, stiffness=1.0), JOINTS),
    "stop": (lambda m, r, h: m.stop(r, lower=0), JOINTS),
    "prescribe": (lambda m, r, h: m.prescribe(r, lambda t: t), JOINTS),
    "gear": (lambda m, r, h: m.gear(h, r, ratio=2.0), JOINTS),
    "force": (lambda m, r, h: m.force(h, (0, 1)), BODIES),
    "torque": (lambda m, r, h: m.torque(h, 1.0), BODIES),
    "spring": (lambda m, r, h: m.spring(r, h, at=((0, 0), (1, 0)), stiffness=1.0), BODIES),
    "joint": (lambda m, r, h: m.revolute(r, h, at=(0, 0)), BODIES),
    "contact": (lambda m, r, h: m.contact(h, radius=0.1), BODIES),
    "other": (lambda m, r, h: m.contact(r, h, radius=0.1, normal=(0, 1)), BODIES),
    "frame": (lambda m, r, h: m.frame("f", h, at=(0, 0)), BODIES),
    "wheel": (lambda m, r, h: m.wheel(h, radius=0.1, axis=(1, 0)), BODIES),
    "knife edge": (lambda m, r, h: m.knife_edge(h, along=(1, 0)), BODIES),
}


@pytest.mark.parametrize("what", EXCHANGED)
def test_a_body_for_a_joint_and_the_reverse(what):
    make, answer = EXCHANGED[what]
    with pytest.raises(da.ModelError, match=answer):
        make(*arm())


@pytest.mark.parametrize("value", [None, [1.0], (1.0, 2.0), "1", np.ones(2)])
def test_motors_and_motions_that_return_no_number(value):
    m, _, hinge = arm()
    m.motor(hinge, lambda angle: value, name="servo")
    with pytest.raises(da.ModelError, match="the motor 'servo' must return one number; got"):
        m.system()
    m, _, hinge = arm()
    m.prescribe(hinge, lambda t: value)
    with pytest.raises(da.ModelError, match="the motion of 'pin' must return one number; got"):
        m.system()


FAILING = {
    "if": (
        lambda m, r, h: m.motor(h, lambda angle: 1 if angle > 0 else 0, name="servo"),
        "the motor 'servo' branched.*np.where",
    ),
    "math": (lambda m, r, h: m.motor(h, lambda angle: math.sin(angle), name="servo"), "the motor 'servo' asked.*np.sin"),
    "1/0": (lambda m, r, h: m.motor(h, lambda angle: 1 / 0, name="servo"), "the motor 'servo' failed.*division by zero"),
    "force": (lambda m, r, h: m.force(r, lambda t: [math.exp(t), 0], name="push"), "the force 'push' asked.*np.sin"),
    "2 x 3": (lambda m, r, h: m.force(r, lambda velocity: np.eye(2) @ velocity, name="push"), "the force 'push' failed"),
    "entry": (lambda m, r, h: m.force(r, lambda velocity: [velocity, 0], name="push"), "'push' must return three numbers.*got"),
    "text": (lambda m, r, h: m.force(r, lambda velocity: "abc", name="push"), "'push' must return three numbers.*got 'abc'"),
    "torque": (lambda m, r, h: m.torque(r, lambda t: [t, t], name="twist"), "'twist' must return one number about z or three"),
    "spring": (
        lambda m, r, h: m.torsion(h, stiffness=lambda k: math.sqrt(k), name="coil"),
        "stiffness of 'coil' asked.*np.sin",
    ),
    "motion": (lambda m, r, h: m.prescribe(h, lambda t: 0 if t < 1 else t), "the motion of 'pin' branched.*np.where"),
    "law": (
        lambda m, r, h: m.stop(h, lower=-1, restitution=lambda speed: math.exp(-speed), name="end"),
        "restitution of 'end' asked",
    ),
    "surface": (
        lambda m, r, h: m.ball(r, radius=0.1, surface=lambda x, y: 0 if x < 0 else y, name="bowl"),
        "the surface of 'bowl' branched.*np.where",
    ),
    "no surface": (
        lambda m, r, h: m.ball(r, radius=0.1, surface=lambda x, y: {}["height"], name="bowl"),
        "the surface of 'bowl' failed.*KeyError",
    ),
    "out of the plane": (
        lambda m, r, h: m.wheel(r, radius=0.1, axis=(0, 0, 1), surface=lambda x, y: y, name="tyre"),
        r"normal of 'tyre' points out of the plane.*surface=lambda x, y, z: y",
    ),
    "names": (
        lambda m, r, h: m.force(r, lambda t: {"x": t, "y": t}, name="push"),
        "'push' must return three numbers.*got {'x'",
    ),
    "limit": (
        lambda m, r, h: m.stop(h, lower=lambda a: -a, restitution=0, name="end"),
        "^the lower limit of 'end' asks for a; declare it",
    ),
    "friction": (
        lambda m, r, h: m.contact(r, normal=(0, 1), origin=(0, -1), restitution=0, friction=lambda mu: mu, name="foot"),
        "^the friction of 'foot' asks for mu; declare it",
    ),
}


@pytest.mark.parametrize("what", FAILING)
def test_errors_inside_functions_name_the_part_and_the_answer(what):
    """Symbols stand for numbers in these functions, of which their authors need not know."""
    add, answer = FAILING[what]
    m = da.Mechanism(coordinates="planar", params={"k": 2.0})
    rod = m.rod("rod", (0, 0), (0.3, 0), mass=0.1)
    hinge = m.revolute(m.ground, rod, at=(0, 0), name="pin")
    with pytest.raises(da.ModelError, match=answer):
        add(m, rod, hinge)
        m.system()


def test_errors_inside_functions_of_systems_name_the_function():
    with pytest.raises(da.ModelError, match=r"^force branched on a symbol"):
        da.Lagrangian(lambda q, v: v @ v / 2, dim=1, force=lambda q: q if q[0] > 0 else -q)


def test_a_start_with_other_parameters_is_to_be_made_with_those():
    m = da.Mechanism(coordinates="planar", params={"l": 0.2})
    ball = m.point("ball", mass=0.2, at=(0.2, 0))
    m.distance(m.ground, ball, at=((0, 0), (0.2, 0)), length="l")
    with pytest.raises(da.InconsistentStart, match=r"other parameters .* make it with m.start\(..., params=...\)"):
        da.simulate(m, da.Rattle(), start=m.start(), params={"l": 0.3}, h=1e-3, steps=2)
    run = da.simulate(m, da.Rattle(), start=m.start(params={"l": 0.3}), params={"l": 0.3}, h=1e-3, steps=2)
    assert np.hypot(*run.q[-1]) == pytest.approx(0.3)
    with pytest.raises(da.InputError, match=r"make the state with m.start\(..., t0=...\)"):
        da.simulate(m, da.Rattle(), start=m.start(), t0=1.0, h=1e-3, steps=2)
    other, _, _ = arm()
    with pytest.raises(da.InputError, match=r"another model: make the state with m.start\(...\)"):
        da.simulate(m, da.Rattle(), start=other.start(), h=1e-3, steps=2)


def test_rows_of_different_lengths_are_refused():
    ragged, m = [1, [2]], da.Mechanism(params={"load": 0.2})
    rod = m.rod("rod", (0, 0, 0), (0.3, 0, 0), mass="load")
    calls = [
        lambda: m.universal(m.ground, rod, at=(0, 0, 0), axes=ragged),
        lambda: m.revolute(m.ground, rod, at=ragged, axis=(0, 0, 1)),
        lambda: m.spherical(m.ground, rod, at=ragged),
        lambda: da.simulate(m, da.Rattle(), h=0.01, steps=2, params={"load": ragged}),
        lambda: da.simulate_many(m, da.Rattle(), h=0.01, steps=2, params={"load": ragged}),
    ]
    for call in calls:
        with pytest.raises(da.DalembertError):
            call()


def test_a_rod_may_be_free_as_the_refusal_says():
    m, _, _ = arm()
    m.rod("baton", (0, 0.5), (0.4, 0.5), mass=0.2)
    with pytest.raises(da.ModelError, match=r"nothing connects 'baton' .* say free=True where a body is made"):
        m.start()
    m, _, _ = arm()
    baton = m.rod("baton", (0, 0.5), (0.4, 0.5), mass=0.2, free=True)
    run = da.simulate(m, da.Rattle(), start=m.start(angular_velocities={baton: (0, 0, 2.0)}), h=0.01, steps=50)
    assert run.of(baton).rotation[-1, 1, 0] == pytest.approx(np.sin(1.0))


def test_what_is_only_rounding_is_not_told():
    m = da.Mechanism(gravity=(0, 0, -9.81))
    boom = m.rod("boom", (0, 0, 0), (1.2, 0, 0.4), mass=8.0)
    m.revolute(m.ground, boom, at=(0, 0, 0), axis=(0, 1, 0))
    with pytest.raises(da.InconsistentStart, match=r"it went as far as 0\.\d+, 0, 0\.\d+\)"):
        m.start(positions={boom: (0.7, 0.0, 0.3)})
