"""Compound joints and rotors: poses by SciPy's rotations, virtual work, and motions beside joints with bodies between."""

from __future__ import annotations

import numpy as np
import pytest
from compositions import ORDER_4
from scipy.spatial.transform import Rotation

import dalembert as da

AT = np.array([0.1, -0.2, 0.3])
AXES = np.array([[0, 0, 1.0], [0.2, 1, 0], [1, 0.3, -0.4]])
AXES /= np.linalg.norm(AXES, axis=1)[:, None]
SLIDES = np.array([[1.0, 0.2, 0], [0.3, 1.0, 0.1]])
SLIDES /= np.linalg.norm(SLIDES, axis=1)[:, None]


def box(m, name, at, **more):
    return m.body(name, mass=0.6, shape=da.mechanisms.Box(0.1, 0.16, 0.05), at=at, **more)


def jointed(count, slides=SLIDES, **options):
    """A carrier that turns about a slanting axis, and a body on it by slides and some turns."""
    m = da.Mechanism(gravity=(1.0, 0.5, -9.81), **options)
    carrier = box(m, "carrier", (0.4, 0, 0), rotation=Rotation.from_rotvec([0.3, 0.4, -0.2]))
    hinge = m.revolute(m.ground, carrier, at=(0, 0, 0), axis=(1, 0, 2))
    body = box(m, "body", (0.1, -0.2, 0.2), rotation=Rotation.from_rotvec([0.1, -0.5, 0.3]))
    values = [0.05, -0.02, 0.3, 0.2, -0.1][: 2 + count]
    joint = m.compound(carrier, body, at=AT, slides=slides, turns=AXES[:count], values=values)
    return m, hinge, joint


@pytest.mark.parametrize("coordinates", ["quaternion", "matrix"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_pose_is_the_product_of_its_motions(count, coordinates):
    m, hinge, joint = jointed(count, coordinates=coordinates)
    slides, turns = joint.motions[:2], joint.motions[2:]
    moved, turned = np.array([0.12, -0.3]), np.array([0.5, 1.0, -0.7])[:count]
    at_rest = np.array([0.3, 0.2, -0.1])[:count]
    rates = {turn: rate for turn, rate in zip(turns, (1.0, -2.0, 0.7), strict=False)}
    start = m.start(
        angles={hinge: 0.4} | dict(zip(turns, turned, strict=True)), displacements=dict(zip(slides, moved, strict=True)),
        rates=rates, speeds={slides[0]: 0.6},
    )  # fmt: skip
    at = m.at(start)
    R1 = at.of("carrier").rotation[0] @ m.part("carrier").rotation.T
    R2 = at.of("body").rotation[0] @ m.part("body").rotation.T
    expected = np.eye(3)
    for axis, angle in zip(AXES, turned - at_rest, strict=False):
        expected = expected @ Rotation.from_rotvec(angle * axis).as_matrix()
    np.testing.assert_allclose(R1.T @ R2, expected, atol=1e-9)
    d = at.of("body").point(AT)[0] - at.of("carrier").point(AT)[0]
    np.testing.assert_allclose(R1.T @ d, (moved - [0.05, -0.02]) @ SLIDES, atol=1e-9)
    step, method = 1e-4, da.Rattle()  # rates are the slopes of values
    ends = [da.simulate(m, method, start=start, h=h, steps=1) for h in (step, -step)]
    for motion in joint.motions:
        own = "angle" if motion.turns else "displacement"
        after, before = (getattr(run.of(motion), own)[-1] for run in ends)
        rate = getattr(at.of(motion), "rate" if motion.turns else "speed")[0]
        assert (after - before) / (2 * step) == pytest.approx(rate, abs=2e-5)
        assert rate == pytest.approx(rates.get(motion, 0.6 if motion is slides[0] else 0.0), abs=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_efforts_do_the_work_of_their_motions(count):
    """The generalised force of every motor, along any velocity that the joints allow, is its effort times its rate."""
    m, hinge, joint = jointed(count)
    parts = [hinge, *joint.motions]
    start = m.start(angles={hinge: 0.2, joint.motions[2]: 0.7}, displacements={joint.motions[0]: 0.1})
    G = m.system().evaluate("G", 0.0, start.q)
    free = np.linalg.svd(G)[2][np.linalg.matrix_rank(G, tol=1e-9) :]
    assert len(free) == len(parts)
    for motion in joint.motions:
        own, _, other = jointed(count)
        own.motor(other.motions[joint.motions.index(motion)], 1.7)
        force = own.system().evaluate("force", 0.0, start.q, start.v)
        for v in free:
            state = da.consistent(m.system(), q0=start.q, v0=v)
            read = m.at(state).of(motion)
            rate = read.rate[0] if motion.turns else read.speed[0]
            assert force @ state.v == pytest.approx(1.7 * rate, abs=1e-9)


def test_a_gimbal_moves_as_one_with_light_rings():
    """Motors, springs and prescribed angles of a gimbal; rings of 1e-7 kg m^2 between hinges change little."""

    def gimbal(rings):
        m = da.Mechanism(gravity=(0, 0, -9.81), params={"k": 0.8})
        camera = m.body("camera", mass=0.6, inertia=(2e-3, 3e-3, 4e-3), at=(0.05, 0, -0.02))
        axes = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
        if rings:
            ring = [m.body(f"ring {k}", mass=1e-6, inertia=1e-7, at=(0, 0, 0)) for k in range(2)]
            bodies = [m.ground, *ring, camera]
            motions = [m.revolute(a, b, at=(0, 0, 0), axis=u) for a, b, u in zip(bodies, bodies[1:], axes, strict=False)]
        else:
            motions = m.compound(m.ground, camera, at=(0, 0, 0), turns=axes).motions
        pan, tilt, roll = motions
        drive = m.prescribe(pan, lambda t: 0.5 * np.sin(3 * t))
        m.torsion(tilt, stiffness="k", damping=0.01)
        m.motor(roll, lambda angle, rate: -0.3 * angle - 0.02 * rate)
        m.rotor(roll, inertia=1e-3)
        run = da.simulate(m, ORDER_4, start=m.start(rates={roll: 2.0}), h=2e-3, steps=200)
        return run, [run.of(motion).angle for motion in motions], run.of(drive).effort

    run, angles, effort = gimbal(rings=False)
    _, expected, needed = gimbal(rings=True)
    np.testing.assert_allclose(angles, expected, atol=2e-4)
    np.testing.assert_allclose(effort, needed, atol=2e-4)
    assert np.ptp(angles[1]) > 0.2 and np.ptp(effort) > 0.01
    assert np.abs(run.residuals["g"]).max() < 1e-14


def test_a_compound_joint_in_the_plane_counts_turns():
    """A pin in a slot that turns: the slot along x with a spring, so that x swings about its rest as if alone."""
    m = da.Mechanism(coordinates="planar")
    disc = m.body("disc", mass=0.5, inertia=1e-3, at=(0.2, 0))
    pin = m.compound(m.ground, disc, at=(0.2, 0), slides=[(1, 0)], turns=[(0, 0, 1)], names=["along", "about"])
    m.torsion(pin.motions[0], stiffness=50.0)
    start = m.start(rates={"about": 20.0}, speeds={"along": 0.3})
    run = da.simulate(m, da.LobattoIIIAB(4), start=start, h=5e-3, steps=400)
    np.testing.assert_allclose(run.of("along").displacement, 0.03 * np.sin(10 * run.t), atol=1e-9)
    np.testing.assert_allclose(run.of("about").angle, 20 * run.t, atol=1e-9)
    assert m.system().n_holonomic == 1


def test_a_rotor_of_a_hinge_adds_to_the_moment_of_inertia():
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar", params={"J": 0.05})
    hinge = m.revolute(m.ground, m.rod("arm", (0, 0), (0.6, 0), mass=0.5), at=(0, 0))
    m.rotor(hinge, inertia="J")
    for J in (0.05, 0.4):
        run = da.simulate(m, da.LobattoIIIAB(3), start=m.start(), params={"J": J}, h=1e-3, steps=1)
        assert run.of(hinge).rate[-1] / 1e-3 == pytest.approx(-0.5 * 9.81 * 0.3 / (0.5 * 0.36 / 3 + J), rel=1e-6)


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (lambda m, a, b: m.compound(a, b, at=AT, turns=[(1, 0, 0), (1, 0, 0)]), "the turns of a compound joint depend"),
        (lambda m, a, b: m.compound(a, b, at=AT, slides=np.eye(3), turns=[(1, 0, 0), (0, 0, 0)]), "has length zero"),
        (lambda m, a, b: m.compound(a, b, at=AT, turns=(1, 0, 0)), "three finite numbers"),
        (lambda m, a, b: m.compound(a, b, at=AT, slides=3.0), "are a list of directions"),
        (lambda m, a, b: m.compound(a, b, at=AT, slides=[(1, 0, 0)], names=["x", "y"]), "leaves 1 motions: give as many"),
        (lambda m, a, b: m.compound(a, b, at=AT, slides=[(1, 0, 0)], names=["a"]), "two parts of the name 'a'"),
        (lambda m, a, b: m.compound(a, b, at=AT, slides=[(1, 0, 0), (0, 1, 0)], names=["x", "x"]), "two parts of the name 'x'"),
        (lambda m, a, b: m.motor(m.compound(a, b, at=AT, turns=[(1, 0, 0)]), 1.0), "motors, stops and gears act on"),
        (lambda m, a, b: m.rotor(m.planar(a, b), inertia=1.0), "act on revolute and prismatic"),
        (lambda m, a, b: m.rotor(m.revolute(a, b, at=AT), inertia=-1.0), "must be positive"),
    ],
)
def test_bad_compounds_are_refused_in_one_sentence(make, answer):
    m = da.Mechanism()
    with pytest.raises(da.ModelError, match=answer) as caught:
        make(m, box(m, "a", (0, 0, 0)), box(m, "b", (1, 0, 0)))
    assert "\n" not in str(caught.value)


def test_compounds_that_would_lock_planar_bodies_are_refused():
    m = da.Mechanism(coordinates="planar")
    disc = m.body("disc", mass=0.5, inertia=1e-3)
    for axes in ({"slides": [(0, 0, 1)]}, {"turns": [(1, 0, 0)]}):
        with pytest.raises(da.ModelError, match="in the plane slides along axes that lie in it"):
            m.compound(m.ground, disc, at=(0, 0), **axes)
