"""Meshes of points, massless links and massless frames, against closed formulas and the same with bodies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.mechanisms import Box, Mesh

TURN = Rotation.from_rotvec([0.3, -0.5, 0.9]).as_matrix()
SIZES = np.array([0.2, 0.3, 0.5])
CORNERS = np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * SIZES @ TURN.T + [3.0, -2.0, 5.0]


def test_mesh_of_a_turned_box_far_away_is_the_box():
    mesh, box = Mesh(CORNERS), Box(*SIZES)
    assert mesh.volume == pytest.approx(box.volume, rel=1e-13)
    np.testing.assert_allclose(mesh.centre, [3.0, -2.0, 5.0], atol=1e-14)
    inertia = mesh.axes @ np.diag(mesh.moments) @ mesh.axes.T
    np.testing.assert_allclose(inertia, TURN @ np.diag(box.moments) @ TURN.T, atol=1e-15)
    inside_out = Mesh(CORNERS, mesh.triangles[:, ::-1])
    np.testing.assert_allclose(inside_out.moments, mesh.moments, rtol=1e-13)


def test_mesh_with_a_notch_is_a_box_less_a_box():
    """A box of 1 x 1 x 1 with a corner of 0.5 x 0.5 x 1 cut out: not convex, by the moments of three bars."""
    flat = np.array([(0, 0), (1, 0), (1, 0.5), (0.5, 0.5), (0.5, 1), (0, 1)])
    points = np.array([(*p, z) for z in (0.0, 1.0) for p in flat])
    fan = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    sides = [t for i in range(6) for j in [(i + 1) % 6] for t in ((i, j, j + 6), (i, j + 6, i + 6))]
    mesh = Mesh(points, [*((c, b, a) for a, b, c in fan), *((a + 6, b + 6, c + 6) for a, b, c in fan), *sides])
    bars = [(np.array([0.25, 0.25, 0.5])), np.array([0.75, 0.25, 0.5]), np.array([0.25, 0.75, 0.5])]
    assert mesh.volume == pytest.approx(0.75, rel=1e-14)
    np.testing.assert_allclose(mesh.centre, np.mean(bars, axis=0), atol=1e-15)
    second = sum(np.outer(b - mesh.centre, b - mesh.centre) for b in bars) / 3 + np.diag([0.25, 0.25, 1.0]) / 12
    inertia = np.trace(second) * np.eye(3) - second
    np.testing.assert_allclose(mesh.axes @ np.diag(mesh.moments) @ mesh.axes.T, inertia, atol=1e-15)


def test_a_body_of_points_moves_as_the_body_of_its_shape():
    """Without at= its corners stay where they are; energy and gravity are those of the box, with a mass that is a parameter."""
    systems = []
    for shape, place in ((Mesh(CORNERS), {}), (Box(*SIZES), {"at": (3.0, -2.0, 5.0), "rotation": TURN})):
        m = da.Mechanism(gravity=(0, 0, -9.81), params={"m": 0.3})
        body = m.body("stone", mass="m", shape=shape, **place)
        m.spherical(m.ground, body, at=CORNERS[0])
        state = m.start(angular_velocities={body: (0.4, 0.5, 0.6)}, params={"m": 0.7})
        systems.append((m.system().evaluate("H", 0.0, state.q, state.p, theta=state.theta), state.v[:3]))
    np.testing.assert_allclose(systems[0][0], systems[1][0], rtol=1e-13)
    np.testing.assert_allclose(systems[0][1], systems[1][1], atol=1e-14)
    flat = da.Mechanism(coordinates="planar").body("plate", density=2700, shape=Mesh(CORNERS))
    inertia = TURN @ np.diag(Box(*SIZES).moments) @ TURN.T
    assert flat.inertia[2] == pytest.approx(2700 * 0.03 * inertia[2, 2], rel=1e-12)


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (lambda: Mesh([(0, 0, 0), (1, 0, 0)]), "at least four points"),
        (lambda: Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]), "in one plane"),
        (lambda: Mesh(CORNERS, [(0, 1, 2)]), "do not close"),
        (lambda: Mesh(CORNERS, [(0, 1, 9)]), "name points 0 to 7"),
        (lambda: Mesh(CORNERS, [(0.5, 1, 2)]), "rows of three numbers"),
        (lambda: Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], [(0, 1, 2), (0, 2, 1)]), "enclose no volume"),
        (
            lambda: da.Mechanism(params={"rho": 1.0}).body("b", density="rho", shape=Box(1, 1, 1)),
            "the density of 'b' is a number",
        ),
    ],
)
def test_bad_meshes_are_refused(make, answer):
    with pytest.raises(da.ModelError, match=answer):
        make()


def test_massless_frame_moves_with_its_body_and_carries_joints():
    runs = []
    for framed in (False, True):
        m = da.Mechanism(gravity=(0, 0, -9.81))
        arm, bob = m.rod("arm", (0, 0, 0), (1, 0, 0), mass=0.4), m.point("bob", mass=0.2, at=(1, 0, -0.5))
        hinge = m.revolute(m.ground, arm, at=(0, 0, 0), axis=(0, 1, 0))
        tool = m.frame("tool", arm, at=(1, 0, 0), rotation=TURN)
        m.distance(tool if framed else arm, bob, at=((1, 0, 0), (1, 0, -0.5)))
        m.force(tool if framed else arm, (0.0, 0.0, 1.5), at=(1, 0, 0))
        runs.append((m, arm, tool, m.start(rates={hinge: 2.0})))
    (m, _, _, start), (other, arm, tool, framed) = runs
    p = np.linspace(-1, 1, m.dim)
    for name in ("H", "force", "g_dot"):
        np.testing.assert_array_equal(
            m.system().evaluate(name, 0.0, start.q, p), other.system().evaluate(name, 0.0, framed.q, p)
        )
    snap = other.at(other.start(angles={other.part("revolute 1"): 0.7}, rates={other.part("revolute 1"): 2.0}))
    turn = Rotation.from_rotvec([0, 0.7, 0]).as_matrix()
    np.testing.assert_allclose(snap.of(tool).position[0], turn @ [1, 0, 0], atol=1e-14)
    np.testing.assert_allclose(snap.of(tool).rotation[0], turn @ TURN, atol=1e-14)
    np.testing.assert_allclose(snap.of(tool).velocity[0], np.cross([0, 2, 0], turn @ [1, 0, 0]), atol=1e-13)
    assert other.part("tool") is tool and other.dim == m.dim


def four_bar(coordinates, light):
    """A four-bar whose coupler is massless, or nearly so."""
    A, B, C, D = (0, 0), (0, 0.1), (0.29, 0.25), (0.3, 0)
    m = da.Mechanism(gravity=(0, -9.81), coordinates=coordinates)
    crank, rocker = m.rod("crank", A, B, mass=0.2, width=0.01), m.rod("rocker", D, C, mass=0.4, width=0.01)
    hinge = m.revolute(m.ground, crank, at=A)
    m.revolute(m.ground, rocker, at=D)
    if light:
        coupler = m.rod("coupler", B, C, mass=light, width=0.01)
        m.revolute(crank, coupler, at=B)
        m.revolute(coupler, rocker, at=C)
    else:
        m.link(crank, rocker, at=(B, C), name="coupler")
    run = da.simulate(m, da.LobattoIIIAB(3), start=m.start(rates={hinge: 8.0}), h=0.002, t1=0.2)
    return run.of(hinge).angle


def test_a_massless_coupler_is_the_limit_of_light_ones():
    """Angles of the crank with couplers of m and m/2 extrapolate to those without mass, up to O(m^2); 3-D gives the same."""
    exact, light, lighter = four_bar("planar", 0), four_bar("planar", 5e-4), four_bar("planar", 2.5e-4)
    assert np.max(np.abs(light - exact)) > 1e-4
    np.testing.assert_allclose(2 * lighter - light, exact, atol=2e-6)


@pytest.mark.slow
def test_a_massless_coupler_in_space_moves_as_in_the_plane():
    np.testing.assert_allclose(four_bar("quaternion", 0), four_bar("planar", 0), atol=1e-9)


@pytest.mark.parametrize(
    ("axes", "rows"),
    [
        ((None, None), 1),
        (((0, 0, 1), None), 2),
        ((None, (0, 1, 1)), 2),
        (((0, 0, 1), (0, 0, 1)), 4),
        (((0, 0, 1), (0, 1, 1)), 4),
    ],
)
def test_a_link_leaves_what_its_two_joints_with_a_body_between_leave(axes, rows):
    """The relative velocities of two bodies under the rows of a link are those under both joints of a body in between."""
    P, Q = np.array([0.1, 0.0, 0.0]), np.array([0.4, 0.2, 0.1])
    free = []
    for linked in (True, False):
        m = da.Mechanism()
        a = m.body("a", mass=0.2, inertia=1e-3, rotation=TURN)
        b = m.body("b", mass=0.3, inertia=2e-3, at=(0.5, 0.3, 0.1))
        if linked:
            link = m.link(a, b, at=(P, Q), axes=axes)
            assert len(m.assembled.rows_of(link)) == rows
        else:
            bar = m.rod("bar", P, Q, mass=0.1)
            for body, place, axis in ((a, P, axes[0]), (b, Q, axes[1])):
                m.spherical(body, bar, at=place) if axis is None else m.revolute(body, bar, at=place, axis=axis)
        G = m.system().evaluate("G", 0.0, m.q0)
        _, values, right = np.linalg.svd(G)
        motions = right[np.sum(values > 1e-10) :, :14]
        free.append(np.linalg.svd(motions, full_matrices=False))
    spans = [right[values > 1e-8] for _, values, right in free]
    assert len(spans[0]) == len(spans[1]) == 12 - rows
    np.testing.assert_allclose(np.linalg.svd(spans[0] @ spans[1].T, compute_uv=False), 1.0, atol=1e-10)


def test_bad_links_are_refused():
    m = da.Mechanism()
    a, b = (m.body(name, mass=0.2, inertia=1e-3, at=(x, 0, 0)) for name, x in (("a", 0.0), ("b", 1.0)))
    for arguments, answer in (
        ({"at": ((0, 0, 0), (0, 0, 1)), "axes": ((0, 0, 1), None)}, "lies on the axis of its first hinge"),
        ({"at": ((0, 0, 0), (0, 0, 0)), "axes": (None, None)}, "coincide"),
        ({"at": ((0, 0, 0), (1, 0, 0)), "axes": (0, 0, 1)}, "two directions, or None"),
    ):
        with pytest.raises(da.ModelError, match=answer):
            m.link(a, b, **arguments)
    with pytest.raises(da.ModelError, match="has no rotation"):
        m.link(a, m.point("p", mass=0.1, at=(1, 1, 0)), at=((0, 0, 0), (1, 1, 0)))
