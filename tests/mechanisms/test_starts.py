"""Starts from angles and rates, what a run says of its parts by name, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import dalembert as da
from dalembert.mechanisms._starting import _Starter

A, D = np.zeros(2), np.array([0.3, 0.0])
CRANK, COUPLER, ROCKER = 0.1, 0.35, 0.25


def joint_positions(angle: float) -> tuple[np.ndarray, np.ndarray]:
    """The moving joints of the four-bar on its upper branch, by intersecting circles."""
    B = CRANK * np.array([np.cos(angle), np.sin(angle)])
    distance = np.linalg.norm(D - B)
    along = (D - B) / distance
    x = (distance**2 + COUPLER**2 - ROCKER**2) / (2 * distance)
    return B, B + x * along + np.sqrt(COUPLER**2 - x**2) * np.array([-along[1], along[0]])


def four_bar(coordinates: str = "planar", angle: float = 1.2):
    B, C = joint_positions(angle)
    m = da.Mechanism(gravity=(0, -9.81), coordinates=coordinates)
    crank, coupler = m.rod("crank", A, B, mass=0.2, width=0.01), m.rod("coupler", B, C, mass=0.6, width=0.01)
    rocker = m.rod("rocker", D, C, mass=0.4, width=0.01)
    hinges = [
        m.revolute(m.ground, crank, at=A, angle=angle, name="hinge 1"),
        m.revolute(crank, coupler, at=B, name="hinge 2"),
        m.revolute(coupler, rocker, at=C, name="hinge 3"),
        m.revolute(m.ground, rocker, at=D, name="hinge 4"),
    ]
    return m, (crank, coupler, rocker), hinges


@pytest.mark.parametrize("coordinates", ["planar", "quaternion", "matrix"])
def test_four_bar_is_moved_to_any_angle_on_its_branch(coordinates):
    m, (_, coupler, rocker), hinges = four_bar(coordinates)
    for angle in (-2.5, 0.3, 3.9):
        run = m.at(m.start(angles={hinges[0]: angle}, rates={hinges[0]: 8.0}))
        B, C = joint_positions(angle)
        np.testing.assert_allclose(run.of(coupler).position[0, :2], (B + C) / 2, atol=1e-12)
        dC = (joint_positions(angle + 1e-5)[1] - joint_positions(angle - 1e-5)[1]) / 2e-5
        np.testing.assert_allclose(run.of(rocker).velocity[0, :2], 4.0 * dC, atol=1e-8)
        np.testing.assert_allclose(run.of(hinges[0]).rate, 8.0, rtol=1e-12)


def test_assembled_pose_at_rest_is_the_default():
    m, _, _ = four_bar()
    state = m.start()
    np.testing.assert_allclose(state.q, m.q0, atol=1e-15)
    assert np.abs(state.v).max() == 0


def test_joints_that_are_not_given_keep_their_values_and_rest():
    """Of a cart with a double pendulum, whichever joints are given: the others keep their angles, at rate zero."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    cart = m.body("cart", mass=0.5, inertia=1e-3)
    upper, lower = m.rod("upper", (0, 0), (0, -1), mass=0.6), m.rod("lower", (0, -1), (0, -1.4), mass=9.0)
    slide = m.prismatic(m.ground, cart, axis=(1, 0))
    hinges = [m.revolute(cart, upper, at=(0, 0)), m.revolute(upper, lower, at=(0, -1))]
    state = m.at(m.start(angles={hinges[1]: 0.8}, speeds={slide: 2.0}))
    np.testing.assert_allclose([state.of(h).angle[0] for h in hinges], [0, 0.8], atol=1e-14)
    np.testing.assert_allclose(state.of(slide).displacement, 0, atol=1e-14)
    np.testing.assert_allclose([state.of(h).rate[0] for h in hinges], 0, atol=1e-14)
    np.testing.assert_allclose([state.of(body).velocity[0] for body in m.bodies], [[2, 0, 0]] * 3, atol=1e-14)


@pytest.mark.parametrize("coordinates", ["planar", "quaternion", "matrix"])
@pytest.mark.parametrize("mass", [0.01, 100.0])
def test_a_body_that_only_springs_hold_stays_where_it_is(coordinates, mass):
    """A given angle turns the second body of a hinge, however light the first one is; another body does not move at all."""
    m = da.Mechanism(coordinates=coordinates)
    base = m.body("base", mass=mass, inertia=1e-3 * mass, at=(0.1, 0.2, 0))
    arm, hand = m.rod("arm", (0.2, 0.2), (0.5, 0.2), mass=1.0), m.rod("hand", (0.5, 0.2), (0.5, 0.3), mass=0.3)
    other = m.body("other", mass=0.1, inertia=1e-4, at=(1, 1, 0))
    hinge, wrist = m.revolute(base, arm, at=(0.2, 0.2)), m.revolute(arm, hand, at=(0.5, 0.2))
    for body in (base, other):
        m.spring(m.ground, body, at=((0, -1, 0), body.centre), stiffness=50.0)
    state = m.at(m.start(angles={hinge: 5.0}, rates={hinge: 3.0}))
    for body in (base, other):
        np.testing.assert_allclose(state.of(body).position[0], body.centre, atol=1e-9)
        np.testing.assert_allclose(state.of(body).rotation[0], np.eye(3), atol=1e-9)
        np.testing.assert_allclose(state.of(body).velocity, 0, atol=1e-9)
    np.testing.assert_allclose(state.of(arm).position[0, :2], [0.2 + 0.15 * np.cos(5), 0.2 + 0.15 * np.sin(5)], atol=1e-9)
    assert state.of(wrist).rate[0] == pytest.approx(0, abs=1e-9) and state.of(hand).angular_velocity[0, 2] == pytest.approx(3)


def test_a_free_group_follows_the_body_that_is_given():
    """Place, orientation and motion of one body move the whole group as one, whichever of its bodies it is."""
    from scipy.spatial.transform import Rotation

    aim = Rotation.from_rotvec([0.4, -2.2, 1.7])
    for chosen in range(3):
        m = da.Mechanism()
        bodies = [m.rod(name, (x, 0, 0), (x + 1, 0, 0), mass=0.2 + x) for x, name in enumerate(("one", "two", "three"))]
        m.revolute(bodies[1], bodies[0], at=(1, 0, 0), axis=(0, 0, 1))
        m.universal(bodies[1], bodies[2], at=(2, 0, 0), axes=((0, 1, 0), (0, 0, 1)))
        body = bodies[chosen]
        state = m.at(m.start(
            positions={body: (3, -2, 5)}, rotations={body: (aim * Rotation.from_matrix(body.rotation)).as_matrix()},
            velocities={body: (1, 2, 3)}, angular_velocities={body: (0, 4, 0)},
        ))  # fmt: skip
        for other in bodies:
            arm = aim.apply(other.centre - body.centre)
            np.testing.assert_allclose(state.of(other).position[0], np.array([3, -2, 5]) + arm, atol=1e-12)
            np.testing.assert_allclose(state.of(other).rotation[0], aim.as_matrix() @ other.rotation, atol=1e-12)
            np.testing.assert_allclose(state.of(other).velocity[0], np.add([1, 2, 3], np.cross([0, 4, 0], arm)), atol=1e-11)


def test_orientations_of_bodies_and_places_of_frames_are_given():
    """Of a planar arm: the orientation of the hand and the place of its tip, against the inverse kinematics of two links."""
    m = da.Mechanism(coordinates="planar")
    upper, lower = m.rod("upper", (0, 0), (0.5, 0), mass=1.0), m.rod("lower", (0.5, 0), (0.5, 0.4), mass=1.0)
    hand = m.rod("hand", (0.5, 0.4), (0.6, 0.4), mass=0.2)
    hinges = [m.revolute(m.ground, upper, at=(0, 0)), m.revolute(upper, lower, at=(0.5, 0))]
    hinges.append(m.revolute(lower, hand, at=(0.5, 0.4)))
    tip = m.frame("tip", hand, at=(0.6, 0.4))
    state = m.at(m.start(positions={tip: (0.4, 0.3)}, rotations={"hand": -0.7}, velocities={tip: (0.2, 0)}))
    wrist = np.array([0.4 - 0.1 * np.cos(0.7), 0.3 + 0.1 * np.sin(0.7)])
    elbow = np.arccos((wrist @ wrist - 0.5**2 - 0.4**2) / (2 * 0.5 * 0.4))
    first = np.arctan2(wrist[1], wrist[0]) - np.arctan2(0.4 * np.sin(elbow), 0.5 + 0.4 * np.cos(elbow))
    angles = [state.of(hinge).angle[0] for hinge in hinges]
    np.testing.assert_allclose(angles, [first, elbow - np.pi / 2, -0.7 - first - elbow + np.pi / 2], atol=1e-9)
    np.testing.assert_allclose(state.of(tip).velocity[0], [0.2, 0, 0], atol=1e-12)
    with pytest.raises(da.InconsistentStart, match=r"the rotation of 'upper' .*cannot be chosen independently"):
        m.start(angles={hinges[0]: 1.0}, rotations={upper: 0.5})
    with pytest.raises(da.ModelError, match="the rotation of 'hand' must be a rotation matrix"):
        m.start(rotations={hand: "up"})
    with pytest.raises(da.InputError, match="the ground does not move"):
        m.start(rotations={m.ground: 0.5})


def test_singular_poses_are_left_the_shorter_way():
    """An arm that is stretched out bends so that its tip gets where it is to be, and a crane swings to its load."""
    m = da.Mechanism(coordinates="planar")
    upper, lower = m.rod("upper", (0, 0), (0.5, 0), mass=1.0), m.rod("lower", (0.5, 0), (1, 0), mass=1.0)
    hinges = [m.revolute(m.ground, upper, at=(0, 0)), m.revolute(upper, lower, at=(0.5, 0))]
    tip = m.frame("tip", lower, at=(1, 0))
    state = m.at(m.start(positions={tip: (0.6, 0.3)}))
    np.testing.assert_allclose(state.of(tip).position, [[0.6, 0.3, 0]], atol=1e-12)
    assert abs(state.of(hinges[1]).angle[0]) == pytest.approx(np.arccos((0.6**2 + 0.3**2) / 0.5 - 1), abs=1e-9)
    with pytest.raises(da.InconsistentStart, match="no pose of the mechanism has the position of 'tip'"):
        m.start(positions={tip: (1.1, 0)})
    crane = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    trolley, load = crane.body("trolley", mass=2.0, inertia=1e-3), crane.point("load", mass=0.5, at=(0, -1))
    slide = crane.prismatic(crane.ground, trolley, axis=(1, 0))
    crane.distance(trolley, load, at=((0, 0), (0, -1)))
    state = crane.at(crane.start(positions={load: (np.sin(1), -np.cos(1))}))
    assert state.of(slide).displacement[0] == pytest.approx(0, abs=1e-9)


def test_an_angle_beyond_half_a_turn_is_reached_whichever_way_the_mechanism_can_go():
    """A rocker in space from -1.1 to its other end: forwards only. Backwards its linkage cannot be assembled."""
    m = da.Mechanism()
    B, C = joint_positions(0.3)
    crank, coupler = m.rod("crank", A, B, mass=0.2, width=0.01), m.rod("coupler", B, C, mass=0.6, width=0.01)
    rocker = m.rod("rocker", D, C, mass=0.4, width=0.01)
    m.revolute(m.ground, crank, at=A)
    m.revolute(crank, coupler, at=B)
    m.revolute(coupler, rocker, at=C)
    last = m.revolute(m.ground, rocker, at=D)
    reached = m.at(m.start(angles={last: 0.2})).of(last).angle[0]
    for turns in (-2, -1, 1, 3):
        again = m.at(m.start(angles={last: 0.2 + 2 * np.pi * turns})).of(last).angle[0]
        assert again == pytest.approx(reached, abs=1e-9)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (lambda h: {"angles": {h[3]: -3.0}}, "no pose of the mechanism has the angle of 'hinge 4'"),
        (lambda h: {"angles": {h[0]: 1.3, h[3]: 0.5}}, "cannot be chosen independently"),
        (lambda h: {"rates": {h[0]: 1.0, h[1]: 5.0}}, "2 values are too many for 1 degree of freedom"),
        (lambda h: {"complete": False}, "leaves 1 degree of freedom of the positions open"),
        (lambda h: {"angles": {h[0]: 1.3}, "complete": False}, "leaves 1 degree of freedom of the rates open"),
        (lambda h: {"angles": {h[0]: 1e4}}, "the angle of 'hinge 1' is 1e\\+04 radians away from the assembled pose"),
        (lambda h: {"angles": {"crank": 1.0}}, "the angle of a joint of this mechanism"),
        (lambda h: {"angles": {h[0]: "up"}}, "must be a finite number"),
        (lambda h: {"displacements": {h[0]: 1.0}}, "has no displacement"),
    ],
)
def test_starts_that_are_refused(given, answer):
    m, _, hinges = four_bar()
    with pytest.raises(da.DalembertError, match=answer) as caught:
        m.start(**given(hinges))
    assert "\n" not in str(caught.value)


def test_a_position_out_of_reach_is_refused_without_walking_on():
    """Poses that stand still while what is asked for moves on are given up: few are solved for, wherever the aim lies."""
    m, rods, _ = four_bar()
    solved = []
    onto = _Starter._onto
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Starter, "_onto", lambda *given, **options: solved.append(1) or onto(*given, **options))
        with pytest.raises(da.InconsistentStart, match="no pose of the mechanism has the position of"):
            m.start(positions={rods[0]: (5.0, 5.0)})
    assert len(solved) < 120


@pytest.mark.parametrize("values", [{"m": -0.2}, {"k": -1.0}, {"J": [3e-4, 1e-4, 1e-4]}, {"r": 0.0}, {"l": -0.1}])
def test_parameters_of_runs_are_checked_like_those_of_the_model(values):
    params = {"m": 0.2, "k": 1.0, "J": [1e-4, 1e-4, 1e-4], "r": 0.1, "l": 1.0}
    m = da.Mechanism(params=params)
    a = m.body("a", mass="m", inertia=tuple(lambda J, i=i: J[i] for i in range(3)), at=(0, 0, 0.1))
    m.ball(a, radius="r")
    b = m.point("b", mass=0.1, at=(1, 0, 0.1))
    m.spring(a, b, at=((0, 0, 0.1), (1, 0, 0.1)), stiffness="k")
    m.distance(a, b, at=((0, 0, 0.1), (1, 0, 0.1)), length="l")
    start, method = m.start(), da.GaussLobattoSPARK(1)
    rows = {name: np.array([params[name], value]) for name, value in values.items()}
    for attempt in (
        lambda: da.simulate(m, method, start=start, h=0.01, steps=1, params=values),
        lambda: da.simulate_many(m, method, start=start, h=0.01, steps=1, params=rows),
        lambda: da.simulate_many(m, method, q0=start.q, p0=start.p, h=0.01, steps=1, params=rows),
        lambda: da.consistent(m.system(), q0=start.q, p0=start.p, params=values),
        lambda: m.start(params=values),
    ):
        with pytest.raises(da.ModelError, match=r"must be|triangle inequality"):
            attempt()


def test_positions_and_velocities_of_planar_bodies_have_two_components():
    m = da.Mechanism(coordinates="planar")
    ball = m.point("ball", mass=0.2, at=(1, 0))
    m.distance(m.ground, ball, at=((0, 0), (1, 0)))
    start = m.start(positions={ball: (np.cos(2), np.sin(2))}, velocities={ball: (-3 * np.sin(2), 3 * np.cos(2))})
    np.testing.assert_allclose([start.q, start.v], [[np.cos(2), np.sin(2)], [-3 * np.sin(2), 3 * np.cos(2)]], atol=1e-14)
    with pytest.raises(da.InconsistentStart, match="no motion of the mechanism has the velocity of 'ball' as given"):
        m.start(velocities={ball: (1.0, 0.0)})
    with pytest.raises(da.InconsistentStart, match="the position of 'ball'"):
        m.start(positions={ball: (2.0, 0.0)})


def test_consistent_pairs_of_angles_are_taken():
    m, _, hinges = four_bar()
    run = m.at(m.start(angles={hinges[0]: 2.0}))
    both = {hinge: run.of(hinge).angle[0] for hinge in (hinges[0], hinges[3])}
    np.testing.assert_allclose(m.start(angles=both).q, run.q[0], atol=1e-9)


def body(**changes):
    return lambda m: m.body("b", **({"mass": 0.2, "inertia": 1e-4} | changes))


def two(m):
    return m.body("one", mass=0.2, inertia=1e-4), m.body("two", mass=0.2, inertia=1e-4, at=(1, 0, 0))


def pearl(m):
    return m.point("p", mass=0.2, at=(1, 0, 0))


def alone(m):
    one, _ = two(m)
    m.revolute(m.ground, one, at=(0, 0, 0))
    return m.system()


def island(m):
    one, two_ = two(m)
    m.revolute(m.ground, one, at=(0, 0, 0))
    m.revolute(two_, m.body("three", mass=0.2, inertia=1e-4, at=(2, 0, 0)), at=(1, 0, 0))
    return m.system()


def flat(m):
    return [m.body(name, mass=0.2, inertia=1e-4, coordinates="planar") for name in ("one", "two")]


def both_meanings(m):
    m.force(two(m)[0], lambda one_velocity: -one_velocity)
    m.bodies[1].free = True
    return m.system()


def misspelt(m):
    m.motor(m.revolute(m.ground, two(m)[0], at=(0, 0, 0)), lambda angel: angel)
    m.parts, m.bodies = m.parts, m.bodies[:1]
    return m.system()


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (body(mass=-0.2), "the mass of 'b' must be positive; got -0.2"),
        (body(mass="m"), "declare it in da.Mechanism"),
        (body(mass=None), "has no mass"),
        (body(inertia=None), "has no inertia"),
        (body(inertia=(1e-4, 1e-4, 3e-4)), "triangle inequality"),
        (body(inertia=np.diag([1e-4, 1e-4, 3e-4])), "triangle inequality"),
        (body(inertia=(1e-4, 0.0, 1e-4)), "must be positive; got 0"),
        (body(inertia=[[1, 2, 0], [0, 1, 0], [0, 0, 1]]), "symmetric"),
        (body(at=(0, 0, np.nan)), "three finite numbers"),
        (body(rotation=np.ones((3, 3))), "rotation matrix"),
        (body(coordinates="euler"), 'coordinates are "planar"'),
        (body(density=1000.0), "needs a shape"),
        (body(shape="box"), "the shape of 'b'"),
        (lambda m: da.mechanisms.Box(1.0, -0.1, 0.1), "the y of a box must be positive"),
        (lambda m: m.rod("r", (0, 0, 0), (0, 0, 0), mass=1.0), "length zero"),
        (lambda m: m.revolute(*two(m), at=((0, 0, 0), (0, 0, 0.03))), "do not meet in the assembled pose, they are 0.03 apart"),
        (lambda m: m.revolute(*two(m), at=(0, 0, 0), axis=(0, 0, 0)), "has length zero"),
        (lambda m: m.revolute(m.ground, m.ground, at=(0, 0, 0)), "needs two bodies"),
        (lambda m: m.revolute(m.ground, da.Mechanism().ground, at=(0, 0, 0)), "parts of this mechanism"),
        (lambda m: m.distance(*two(m), at=((0, 0, 0), (0, 0, 0))), "coincide"),
        (lambda m: m.universal(*two(m), at=(0, 0, 0), axes=((1, 0, 0), (1, 0, 0))), "parallel"),
        (lambda m: m.revolute(m.ground, m.point("p", mass=1.0, at=(0, 0, 0)), at=(0, 0, 0)), "has no rotation"),
        (lambda m: m.spherical(m.ground, m.point("p", mass=1.0, at=(0, 0, 1)), at=(0, 0, 0)), "not at the point mass"),
        (lambda m: m.distance(m.ground, pearl(m), at=((0, 0, 0), (0.5, 0, 0))), "'distance 1' is not at the point mass 'p'"),
        (lambda m: m.spring(m.ground, pearl(m), at=((0, 0, 0), (0.5, 0, 0)), stiffness=1.0), "a point mass has no arm"),
        (lambda m: m.damper(pearl(m), m.ground, at=((0.5, 0, 0), (0, 0, 0)), damping=1.0), "a point mass has no arm"),
        (lambda m: m.force(pearl(m), (1.0, 0, 0), at=(0.5, 0, 0)), "'force 1' is not at the point mass 'p'"),
        (lambda m: m.contact(pearl(m), at=(0.5, 0, 0)), "'contact 1' is not at the point mass 'p'"),
        (lambda m: m.torsion(m.spherical(*two(m), at=(0, 0, 0)), stiffness=1.0), "act on revolute and prismatic"),
        (lambda m: m.gear(*(m.revolute(m.ground, b, at=b.centre) for b in two(m)), ratio=0.3), "numbers of teeth"),
        (lambda m: m.spring(*two(m), at=((0, 0, 0), (1, 0, 0)), stiffness=-1.0), "must be at least zero"),
        (lambda m: m.spring(*two(m), at=(0, 0, 0), stiffness=1.0), "two points"),
        (lambda m: m.stop(m.revolute(m.ground, two(m)[0], at=(0, 0, 0))), "a lower or an upper limit"),
        (lambda m: m.wheel(two(m)[0], radius=0.3, axis=(0, 0, 1)), "lies flat"),
        (lambda m: [m.body("b", mass=1.0, inertia=1.0) for _ in range(2)], "two parts of the name 'b'"),
        (lambda m: m.system(), "without bodies"),
        (alone, "nothing connects 'two' with the rest"),
        (island, "nothing connects 'two' and 'three' with the rest"),
        (body(mass="0.3"), "the mass of 'b' is the text '0.3'.*without quotes"),
        (lambda m: body(mass=lambda: 1 / 0)(m), "the mass of 'b' failed \\(ZeroDivisionError: division by zero\\)"),
        (body(mass=True), "must be a finite number"),
        (lambda m: m.rod("r", (0, 0), (1, 0), mass="0.3", coordinates="planar"), "the mass of 'r' is the text '0.3'"),
        (lambda m: m.spring(*two(m), at=((0, 0, 0), (1, 0, 0)), stiffness="80"), "the stiffness of 'spring 1' is the text"),
        (lambda m: m.spring(*two(m), at=((0, 0, 0), (1, 0, 0)), stiffness=[1]), "the stiffness of 'spring 1' must be a finite"),
        (lambda m: m.torsion(m.revolute(*two(m), at=(0, 0, 0)), rest="up"), "the rest of 'torsion spring 1' names"),
        (lambda m: m.wheel(two(m)[0], radius="0.3", axis=(0, 1, 0)), "the radius of 'wheel 1' is the text"),
        (lambda m: m.cylindrical(*flat(m), axis=(1, 0)), "'cylindrical 1' is a hinge in the plane"),
        (lambda m: m.planar(*flat(m), normal=(0, 1)), "'planar 1' would lock bodies of the plane"),
        (lambda m: m.universal(*flat(m), at=(0, 0), axes=((1, 0), (0, 1))), "'universal 1' would lock bodies of the plane"),
        (lambda m: m.ball(flat(m)[0], radius=0.1), "the normal of 'rolling ball 1' points out of the plane"),
        (lambda m: m.contact(flat(m)[0]), "the normal of 'contact 1' points out of the plane"),
        (lambda m: m.stop(m.revolute(m.ground, two(m)[0], at=(0, 0, 0)), lower=0, restitution=2), "of 'stop 1' is between 0"),
        (lambda m: m.stop(m.revolute(m.ground, two(m)[0], at=(0, 0, 0)), lower=0, restitution="e"), "names the parameter 'e'"),
        (lambda m: m.contact(two(m)[0], restitution=-0.1), "the restitution of 'contact 1' is between 0.*; got -0.1"),
        (lambda m: m.contact(two(m)[0], restitution=lambda e: e), "the restitution of 'contact 1' asks for e"),
        (lambda m: [m.motor(m.revolute(m.ground, two(m)[0], at=(0, 0, 0)), lambda t: {}["x"]), m.bodies.pop(), m.system()],
         "failed \\(KeyError: 'x'\\): check it"),
        (misspelt, r"names the argument 'angel': did you mean angle\?"),
        (lambda m: da.Mechanism(gravity=9.81), "gravity is an acceleration"),
        (lambda m: da.Mechanism(params={"rate": 5.0}), "the parameter name 'rate' is that of a quantity"),
        (lambda m: both_meanings(da.Mechanism(params={"one_velocity": 5.0})), "'one_velocity', which is a parameter"),
    ],
)  # fmt: skip
def test_bad_parts_are_refused_in_one_sentence(make, answer):
    with pytest.raises(da.DalembertError, match=answer) as caught:
        make(da.Mechanism())
    assert "\n" not in str(caught.value)


def test_planar_bodies_stay_in_their_plane():
    m = da.Mechanism()
    rod = m.rod("rod", (0, 0), (1, 0), mass=1.0, coordinates="planar")
    m.distance(m.ground, rod, at=((0, 0, 1), (0, 0, 0.5)))
    m.revolute(m.ground, rod, at=((0, 0, 0), (0, 0, 0)))
    m.system()
    with pytest.raises(da.ModelError, match="rotated about another axis than z"):
        m.body("tilted", mass=1.0, inertia=1.0, rotation=[[1, 0, 0], [0, 0, -1], [0, 1, 0]], coordinates="planar")
    with pytest.raises(da.ModelError, match="the planar rod 'slanted' leaves its plane"):
        m.rod("slanted", (0, 0, 0), (1, 0, 1), mass=1.0, coordinates="planar")


# -- reading by name -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", ["quaternion", "matrix"])
def test_joint_forces_balance_newtons_law(coordinates):
    """m a = m g + the forces of both joints on a body, and J w' = their torques: a spherical and a revolute joint."""
    m = da.Mechanism(gravity=(0, 0, -9.81), coordinates=coordinates)
    upper, lower = (
        m.rod("upper", (0, 0, 0), (0.3, 0, 0), mass=0.2, width=0.05),
        m.rod("lower", (0.3, 0, 0), (0.3, 0.2, 0), mass=0.3, width=0.05),
    )
    ball = m.spherical(m.ground, upper, at=(0, 0, 0))
    hinge = m.revolute(upper, lower, at=(0.3, 0, 0), axis=(1, 1, 0))
    run = da.simulate(m, da.LobattoIIIAB(4), start=m.start(rates={hinge: 3.0}), h=1e-3, steps=200)
    h = run.h
    acceleration = (run.of(upper).velocity[2:] - run.of(upper).velocity[:-2]) / (2 * h)
    net = run.of(ball).force - run.of(hinge).force + np.array([0, 0, -0.2 * 9.81])
    np.testing.assert_allclose(net[1:-1] / 0.2, acceleration, atol=2e-3)
    # angular momentum of the lower body about its centre
    body = run.of(lower)
    R, w = body.rotation, body.angular_velocity
    J = 0.3 * np.diag(da.mechanisms.Box(0.2, 0.05, 0.05).moments)
    L = np.einsum("tij,jk,tlk,tl->ti", R, J, R, w)
    torque = run.of(hinge).torque + np.cross(body.point((0.3, 0, 0)) - body.position, run.of(hinge).force)
    np.testing.assert_allclose(torque[1:-1], (L[2:] - L[:-2]) / (2 * h), atol=1e-5)
    axis = np.array([1, 1, 0]) / np.sqrt(2)
    turned = run.of(upper).rotation @ (run.of(upper).rotation[0].T @ axis)
    assert np.abs(np.einsum("ti,ti->t", turned, run.of(hinge).torque)).max() < 1e-12  # a hinge has none about its axis


def test_names_in_labels_rows_figures_and_errors():
    m, (crank, _, _), hinges = four_bar()
    assert m.labels[:3] == ("crank.x", "crank.y", "crank.theta")
    run = da.simulate(m, da.Rattle(), start=m.start(rates={hinges[0]: 8.0}), h=1e-3, steps=100)
    assert da.plot.phase_portrait(run, "crank.theta").axes[0].get_xlabel() == "crank.theta"
    assert run.system.row_names["g"][2] == "hinge 2, row 1"
    with pytest.raises(da.InconsistentStart, match="that of 'hinge 2, row 1'"):
        da.simulate(m, da.Rattle(), q0=run.q[0] + 1e-6 * np.eye(9)[3], v0=np.zeros(9), h=1e-3, steps=1)
    np.testing.assert_array_equal(run.of("crank").position, run.of(crank).position)
    np.testing.assert_array_equal(run.of("hinge 2").angle, run.of(hinges[1]).angle)
    np.testing.assert_array_equal(m.at(run.start).of("crank").velocity, run.of("crank").velocity[:1])
    with pytest.raises(da.ModelError, match=r"has no part 'crnak': did you mean crank"):
        run.of("crnak")
    with pytest.raises(da.ModelError, match=r"has no part 'zz'; its parts are ground, crank"):
        run.of("zz")
    np.testing.assert_array_equal(m.start(rates={"hinge 1": 2.0}).v, m.start(rates={hinges[0]: 2.0}).v)
    with pytest.raises(da.InputError, match="rate of a joint of this mechanism; got <Body 'crank'>"):
        m.start(rates={"crank": 2.0})
    with pytest.raises(da.InputError, match=r"run\.of takes a body"):
        run.of(3)
    with pytest.raises(da.InputError, match="the joint 'hinge 1' has no effort: it has angle, displacement, force"):
        run.of("hinge 1").effort  # noqa: B018
    assert not hasattr(run.of(crank), "angle")
    with pytest.raises(da.InputError, match="knows no part 'bob'"):
        da.simulate(da.problems.pendulum(), da.Rattle(), steps=2).of("bob")
    m.torque(crank, 0.1)
    with pytest.raises(da.InputError, match="not one of the mechanism"):
        run.of(crank)


def test_an_ensemble_is_read_by_the_names_of_parts():
    m, (crank, _, _), hinges = four_bar()
    starts = [m.start(rates={hinges[0]: rate}) for rate in (6.0, 8.0)]
    runs = da.simulate_many(m, da.Rattle(), start=starts, h=1e-3, steps=30)
    for member, run in enumerate(runs):
        np.testing.assert_array_equal(runs.of("crank").position[member], run.of(crank).position)
        np.testing.assert_array_equal(runs.of(hinges[0]).force[member], run.of("hinge 1").force)
        np.testing.assert_array_equal(runs.of(crank).point((0, 0.1))[member], run.of(crank).point((0, 0.1)))


def test_whole_turns_of_a_hinge_in_space_turn_nothing():
    """Angles in space are known up to whole turns: a free arm is not wound up by them."""
    ends = []
    for angle in (1.0, 1.0 + 6 * np.pi, 1.0 - 2 * np.pi, 1.0 - 8 * np.pi):
        m = da.Mechanism()
        base = m.body("base", mass=0.2, inertia=(1e-4, 2e-4, 3e-4), at=(0, 0, 0), free=True)
        arm = m.body("arm", mass=0.1, inertia=(2e-4, 1e-4, 1e-4), at=(0.2, 0, 0.03))
        hinge = m.revolute(base, arm, at=(0.1, 0, 0), axis=(0, 1, 1))
        start = m.start(angles={hinge: angle})
        assert np.cos(m.at(start).of(hinge).angle[0] - angle) == pytest.approx(1, abs=1e-12)
        ends.append(start.q)
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)
    np.testing.assert_allclose(ends[3], ends[2], atol=1e-9)  # the other way round


def test_names_are_kept_with_runs_and_shown_by_all_figures(tmp_path):
    pytest.importorskip("xarray")
    m, _, hinges = four_bar()
    start = m.start(rates={hinges[0]: 8.0})
    run = da.simulate(m, da.Rattle(), start=start, h=1e-3, steps=20)
    stored = da.simulate(m, da.Rattle(), start=start, h=1e-3, steps=20, save_to=tmp_path / "run.zarr")
    run.save(tmp_path / "run.npz")
    for kept in (run, da.load(tmp_path / "run.npz"), da.load(stored.store.path)):
        assert kept.names["y"][5] == "coupler.theta" and kept.names["g"][2:4] == ("hinge 2, row 1", "hinge 2, row 2")
        figure = da.plot.solution(kept, ["crank.x", "coupler.theta"])
        assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["crank.x", "coupler.theta"]
    table = run.to_xarray()
    assert table.q.sel(coordinate="rocker.theta").values[0] == run.q[0, 8]
    assert table.lam.sel(constraint="hinge 4, row 2").values[3] == run.lam[3, 7]
    labels = [text.get_text() for text in da.plot.multipliers(run, which=[2, 7]).axes[0].get_legend().get_texts()]
    assert labels == [r"$\lambda_{3}$ of hinge 2, row 1", r"$\lambda_{8}$ of hinge 4, row 2"]
    worst = run.names["g"][int(np.argmax(np.abs(run.residuals["g"]).max(axis=0)))]
    assert da.plot.residuals(run).axes[0].get_legend().get_texts()[0].get_text() == f"$|g|$, most in {worst}"


def test_failures_name_the_joints():
    m, _, hinges = four_bar()
    with pytest.raises(da.StepFailed, match=r"the holonomic constraints of 'hinge 1' and 'hinge 2'.* lose independence"):
        da.simulate(m, da.LobattoIIIAB(3), start=m.start(rates={hinges[0]: 8.0}), h=0.5, steps=50)


def test_saved_runs_are_read_by_name(tmp_path):
    m, (crank, _, _), hinges = four_bar()
    run = da.simulate(m, da.Rattle(), start=m.start(rates={hinges[0]: 8.0}), h=1e-3, steps=50)
    again = da.load(run.save(tmp_path / "run"))
    np.testing.assert_array_equal(again.of(crank).velocity, run.of(crank).velocity)
    np.testing.assert_array_equal(again.of(hinges[1]).force, run.of(hinges[1]).force)


def test_drawings_follow_from_the_parts():
    from dalembert.draw._scene import sample

    m, _, hinges = four_bar()
    run = da.simulate(m, da.Rattle(), start=m.start(rates={hinges[0]: 8.0}), h=1e-3, steps=100)
    scene = sample(run, run.drawing, run.t[::10])
    assert scene.dim == 2 and [part.kind for part in scene.parts].count("body") == 3
    m, _, hinges = four_bar("quaternion")
    parts = da.draw.mechanism(m)(m.q0)
    assert len(parts) == 3 + 4 + 1 and [len(part.skin.outlines) for part in parts[:3]] == [6, 6, 6]


def test_a_part_that_was_refused_leaves_its_name_free():
    m = da.Mechanism()
    with pytest.raises(da.ModelError, match="must be positive"):
        m.body("crank", mass=-1.0, inertia=1e-4)
    crank = m.body("crank", mass=1.0, inertia=1e-4)
    with pytest.raises(da.ModelError, match="length zero"):
        m.revolute(m.ground, crank, at=(0, 0, 0), axis=(0, 0, 0), name="hinge")
    assert m.revolute(m.ground, crank, at=(0, 0, 0), name="hinge").name == "hinge"
    assert m.damper(m.ground, crank, at=((0, 1, 0), (0, 0, 0)), damping=0.1).name == "damper 1"


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4])
def test_starts_do_not_depend_on_the_unit_of_length(size):
    """Points that are a thousandth of the mechanism apart do not meet, and rates are refused however slow, in any unit."""
    A, B, C, D = (size * np.array(x) for x in ((0, 0), (0, 0.1), (0.290, 0.24980), (0.3, 0)))
    m = da.Mechanism(coordinates="planar")
    crank, coupler, rocker = (m.rod(None, *ends, mass=0.2) for ends in ((A, B), (B, C), (D, C)))
    first = m.revolute(m.ground, crank, at=A)
    m.revolute(crank, coupler, at=B)
    with pytest.raises(da.ModelError, match="do not meet in the assembled pose"):
        m.revolute(coupler, rocker, at=(C, C + 3e-4 * size))
    m.revolute(coupler, rocker, at=C)
    last = m.revolute(m.ground, rocker, at=D)
    angles = [m.at(m.start(angles={first: 0.5}, rates={first: rate})).of(last) for rate in (1.0, 1e-8)]
    ratio = angles[0].rate[0]
    assert angles[1].rate[0] == pytest.approx(1e-8 * ratio, rel=1e-9)
    assert np.abs(angles[0].run.residuals["g"]).max() < 1e-13 * max(size, size**2)
    with pytest.raises(da.InconsistentStart, match="too many for 1 degree of freedom"):
        m.start(angles={first: 0.5}, rates={first: 1e-8, last: 1.001e-8 * ratio})


def test_runs_and_snapshots_are_pickled():
    """Whatever functions the mechanism is made of: a mass and a torque that are functions of parameters."""
    m = da.Mechanism(coordinates="planar", params={"m": 0.2})
    rod = m.rod("rod", (0, 0), (1, 0), mass="m")
    hinge = m.revolute(m.ground, rod, at=(0, 0))
    m.motor(hinge, lambda t, m: m * t)
    m.spring(m.ground, rod, at=((0, 1), (1, 0)), stiffness=lambda m: 5 * m)
    run = da.simulate(m, da.Rattle(), start=m.start(rates={hinge: 2.0}), h=0.01, steps=5)
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again.of(rod).position, run.of(rod).position)
    assert [part.kind for part in again.drawing(again.q[-1])] == ["body", "mass", "line", "trace"]
    state = pickle.loads(pickle.dumps(m.at(m.start(rates={hinge: 2.0}))))
    assert state.of(hinge).rate == pytest.approx([2.0])


def test_rates_are_kept_when_a_run_has_other_masses():
    """Runs and ensembles with params=, and derivatives by a mass: of a rod that is turned at a rate, not by a momentum."""
    m = da.Mechanism(coordinates="planar", params={"m": 0.3, "c": 0.1})
    hinge = m.revolute(m.ground, m.rod("arm", (0, 0), (0.4, 0), mass="m"), at=(0, 0))
    m.torsion(hinge, damping="c")
    start, method = m.start(rates={hinge: 5.0}), da.LobattoIIIAB(3)

    def angle(mass):
        J = mass * 0.4**2 / 3
        return 5.0 * J / 0.1 * (1 - np.exp(-0.1 / J * 0.02))

    given = {"start": start, "h": 5e-4, "steps": 40}
    run = da.simulate(m, method, params={"m": 0.6}, **given)
    assert run.of(hinge).rate[0] == pytest.approx(5.0, rel=1e-13) and run.of(hinge).angle[-1] == pytest.approx(angle(0.6))
    runs = da.simulate_many(m, method, params={"m": [0.3, 0.6]}, **given)
    np.testing.assert_allclose(runs.of(hinge).rate[:, 0], 5.0, rtol=1e-13)
    np.testing.assert_array_equal(runs.q[1], run.q)
    slope = (angle(0.3001) - angle(0.2999)) / 2e-4
    assert da.sensitivities(m, method, wrt="m", **given)["m"][-1, 2] == pytest.approx(slope, rel=1e-6)
    _, by = da.gradient(lambda q, p: q[2], m, method, wrt="m", **given)
    assert by == pytest.approx(slope, rel=1e-6)
    assert abs(da.sensitivities(m, method, wrt=("m", "p0"), **given)["m"][0, 5]) < 1e-15  # the momentum is what is given then
