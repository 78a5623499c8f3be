"""The machines of the catalogue against published values, exact solutions and minimal coordinates by DOP853."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from compositions import ORDER_6
from references import Minimal, bar, circles, frame_along, planar, turned_about, uniform_rod
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.experiments.benchmarks._bodies import P3, off_track
from dalembert.mechanisms import Box, Cylinder
from dalembert.problems.robots import ARM


def test_slider_crank_by_the_angle_of_its_crank():
    q = ca.SX.sym("q", 1)
    B = 0.1 * ca.vertcat(ca.cos(q), ca.sin(q))
    C = ca.vertcat(B[0] + ca.sqrt(0.35**2 - B[1] ** 2), 0)
    slider = (0.5, 0.5 * np.diag(Box(0.06, 0.04, 0.04).moments), *planar(*ca.vertsplit(C), ca.SX(0)))
    reference = Minimal(q, [bar(0.2, ca.SX([0, 0]), B, 0.1, 0.01), bar(0.4, B, C, 0.35, 0.01), slider], (0, -9.81, 0))
    run = da.simulate(da.problems.slider_crank(), ORDER_6, h=0.002, steps=500)
    angle, centres = reference.motion([0.7], [8.0], run.t[::50])
    np.testing.assert_allclose(run.q[::50, 2], angle[:, 0], atol=1e-9)
    np.testing.assert_allclose(run.q[::50, [3, 4, 6, 7]], centres[:, 1:, :2].reshape(len(angle), 4), atol=1e-10)


def test_andrews_squeezer_at_its_published_time():
    """beta(0.03) = 15.8107711 of the test set for IVP solvers, and the energy balance of IFToMM's A03."""
    problem = da.problems.andrews_squeezer()
    run = da.simulate(problem, da.LobattoIIIAB(5), h=3e-5, t1=0.03)
    turned = run.q[:, 2] - run.q[0, 2]
    assert turned[-1] - 0.0617138900142764496 == pytest.approx(15.81077119, abs=1e-8)
    np.testing.assert_allclose(run.energy - run.energy[0], 0.033 * turned, atol=1e-12)


def test_two_four_bars_move_as_a_pendulum():
    """3 th'' = 3.5 g sin(th) through the flat positions, in which constraints lose rank."""
    run = da.simulate(da.problems.two_four_bars(), ORDER_6, h=0.005, t1=5.0)
    slope, exactly = lambda t, y: [y[1], 3.5 / 3 * 9.81 * np.sin(y[0])], {"rtol": 1e-13, "atol": 1e-13}
    exact = solve_ivp(slope, (0, 5), [0, 1], "DOP853", run.t[::100], **exactly)
    np.testing.assert_allclose(run.q[0, 2] - run.q[::100, 2], exact.y[0], atol=1e-8)
    assert exact.y[0].max() > 4 * np.pi


def test_jansens_leg_by_the_angle_of_its_crank():
    q = ca.SX.sym("q", 1)
    A, B, C = ca.SX([0, 0]), ca.SX([-0.38, -0.078]), 0.15 * ca.vertcat(ca.cos(q), ca.sin(q))
    D, E = circles(C, B, 0.5, 0.415, -1), circles(B, C, 0.393, 0.619, -1)
    F = circles(D, B, 0.558, 0.401, -1)
    G = circles(F, E, 0.394, 0.367, -1)
    H = circles(G, E, 0.657, 0.49, -1)
    ends = ((A, C, 0.15), (C, D, 0.5), (C, E, 0.619), (B, E, 0.393), (F, G, 0.394))
    bars = [bar(length, P, Q, length, 0.02) for P, Q, length in ends]
    hip, shin = ((B, D, 0.415), (D, F, 0.558), (F, B, 0.401)), ((E, G, 0.367), (G, H, 0.657), (H, E, 0.49))
    bars += [bar(length, P, Q, length, 0.0) for P, Q, length in (*hip, *shin)]
    reference = Minimal(q, bars, (0, -9.81, 0))
    run = da.simulate(da.problems.jansens_leg(), ORDER_6, h=0.0025, steps=800)
    angle, centres = reference.motion([0.0], [4.0], run.t[::80])
    np.testing.assert_allclose(run.q[::80, 2], angle[:, 0], atol=2e-8)
    np.testing.assert_allclose(run.q[::80, 12:14], centres[:, 4, :2], atol=1e-8)


def test_stewart_platform_follows_its_legs():
    run = da.simulate(da.problems.stewart_platform(), da.Rattle(), h=0.01, steps=300)
    wt = 3.0 * run.t
    centre = np.array([0, 0, 0.7]) + 0.1 * np.stack([np.sin(wt), 1 - np.cos(wt), np.sin(2 * wt)], axis=1)
    np.testing.assert_allclose(run.q[:, :3], centre, atol=1e-14)
    half = 0.15 * np.sin(wt)  # a quaternion has half of the angle
    e = np.stack([np.cos(half), np.sin(half), 0 * wt, 0 * wt], axis=1)
    np.testing.assert_allclose(run.q[:, 3:], e * np.sign(run.q[:1, 3]), atol=1e-14)


def test_ball_on_slope_rolls_along_its_parabola():
    problem = da.problems.ball_on_slope()
    run = da.simulate(problem, da.GaussLobattoSPARK(3), h=0.005, steps=200)
    np.testing.assert_allclose(run.q[:, :3], problem.exact(run.t)["centre"], atol=1e-9)


@pytest.mark.slow
def test_gyroscope_by_its_three_angles():
    q = ca.SX.sym("q", 3)  # of the post, of the arm, of the rotor
    turn = turned_about((0, 0, 1), q[0])
    lift = turn @ turned_about((0, -1, 0), q[1])
    along = lift @ turned_about((1, 0, 0), q[2])
    rotor = 0.5 * np.diag(Cylinder(0.06, 0.02).moments)[::-1, ::-1]  # its axis first
    bodies = [
        (0.1, 0.1 * np.diag(Cylinder(0.02, 0.1).moments), ca.SX.zeros(3), turn),
        (0.05, uniform_rod(0.05, 0.2, 0.01), lift @ ca.DM([0.1, 0, 0]), lift),
        (0.5, rotor, lift @ ca.DM([0.2, 0, 0]), along),
    ]
    reference = Minimal(q, bodies, (0, 0, -9.81))
    run = da.simulate(da.problems.gyroscope(), da.LobattoIIIAB(4), h=0.001, steps=1000)
    _, centres = reference.motion([0.0, 0.3, 0.0], [0.0, 0.0, 150.0], run.t[::100])
    np.testing.assert_allclose(run.q[::100, 14:17], centres[:, 2], atol=1e-8)
    assert np.ptp(centres[:, 2], axis=0).max() > 0.1


@pytest.mark.slow
def test_bricard_keeps_its_energy_and_its_track():
    """A04: one degree of freedom, so that energy alone gives the speed; P3 as by one angle, and it rises as far as it fell."""
    problem = da.problems.bricard()
    run = da.simulate(problem, da.LobattoIIIAB(3), h=0.005, t1=10.0)
    assert np.ptp(run.energy) < 1e-9 and off_track(run.of("rod 3").point(P3)) < 1e-8
    assert max(np.abs(residual).max() for residual in run.residuals.values()) < 1e-12
    height = run.q[:, [1, 8, 15, 22, 29]].sum(axis=1) * 9.81  # potential energy of five rods of 1 kg
    speed = np.sum(run.v[:, 0:3] ** 2, axis=1)
    turning = np.flatnonzero((speed[1:-1] < speed[:-2]) & (speed[1:-1] < speed[2:]) & (speed[1:-1] < 1e-3))
    assert len(turning) > 2 and np.abs(height[turning + 1] - height[0]).max() < 0.02


def governor_by_three_coordinates():
    """Spin, angle of the rods below the horizontal, and height of the slider, by symmetry."""
    q = ca.SX.sym("q", 3)
    spin = turned_about((0, 0, 1), q[0])
    rods, points_, middles = [], [], []
    rod_mass, slider_mass = 3000 * 1e-4, 3000 * 1e-3
    for side in (1, -1):
        tilt = spin @ turned_about((0, side, 0), q[1]) @ ca.DM(np.diag([side, side, 1.0]))
        hinge = spin @ ca.DM([0.05 * side, 0, 1.0])
        rods.append((rod_mass, uniform_rod(rod_mass, 1.0, 0.01), hinge + tilt @ ca.DM([0.5, 0, 0]), tilt))
        points_.append((5.0, np.zeros((3, 3)), hinge + tilt @ ca.DM([1.0, 0, 0]), ca.SX.eye(3)))
        middles.append((hinge + tilt @ ca.DM([0.5, 0, 0]), spin @ ca.vertcat(0.05 * side, 0, q[2])))
    shaft = (rod_mass, uniform_rod(rod_mass, 1.0, 0.01)[::-1, ::-1], ca.SX([0, 0, 0.5]), spin)
    slider = (slider_mass, slider_mass * np.diag(Box(0.1, 0.1, 0.1).moments), ca.vertcat(0, 0, q[2]), spin)
    lengths = [ca.norm_2(a - b) for a, b in middles]
    energy = sum(8e5 * (length - 0.5) ** 2 / 2 for length in lengths)

    def dampers(q, v):
        return sum(-4e4 * ca.jacobian(length, q).T @ (ca.jacobian(length, q) @ v) for length in lengths)

    return Minimal(q, [shaft, slider, *rods, *points_], (0, 0, -9.81), energy, dampers)


def test_flyball_governor_in_angles_is_what_its_bodies_are():
    run = da.simulate(da.problems.flyball_governor_in_angles(), da.RadauIIA(4), h=1e-4, t1=0.1)
    start = [0.0, np.pi / 6, 0.5], [2 * np.pi, 0.0, 0.0]
    angles, _ = governor_by_three_coordinates().motion(*start, run.t[::500], "Radau", 1e-10)
    np.testing.assert_allclose(run.q[::500], angles, atol=1e-8)
    assert np.ptp(angles[:, 2]) > 0.01


@pytest.mark.slow
def test_flyball_governor_by_its_three_coordinates():
    """Stiff, so by Radau."""
    reference = governor_by_three_coordinates()
    run = da.simulate(da.problems.flyball_governor(), da.LobattoIIIAB(3), h=1e-4, t1=0.4)
    angles, _ = reference.motion([0.0, np.pi / 6, 0.5], [2 * np.pi, 0.0, 0.0], run.t[::1000], "Radau", 1e-10)
    np.testing.assert_allclose(run.q[::1000, 9], angles[:, 2], atol=1e-7)
    assert np.ptp(angles[:, 2]) > 0.02


@pytest.mark.slow
def test_six_axis_arm_by_its_angles():
    q = ca.SX.sym("q", 6)
    R, P, bodies = ca.SX.eye(3), ca.SX.zeros(3), []
    for k, (start, end, axis, mass, width) in enumerate(ARM):
        R = R @ turned_about(axis, q[k])
        start, end, mass = np.array(start, dtype=float), np.array(end, dtype=float), 2.0 if k == 5 else mass
        way = end - start
        J = uniform_rod(mass, float(np.linalg.norm(way)), width)
        bodies.append((mass, J, P + R @ ca.DM(way / 2), R @ ca.DM(frame_along(start, end))))
        P = P + R @ ca.DM(way)
    reference = Minimal(q, bodies, (0, 0, -9.81), force=lambda q, v: -0.5 * v)
    run = da.simulate(da.problems.six_axis_arm(), da.LobattoIIIAB(4), h=0.002, steps=400)
    _, centres = reference.motion(np.zeros(6), np.zeros(6), run.t[::100])
    np.testing.assert_allclose(run.q[::100].reshape(5, 6, 7)[:, :, :3], centres, atol=1e-7)


def test_rates_of_starts_stay_when_masses_change():
    """A prescribed rate, and the crank's rate of a problem, are those of the model whatever the masses of the run."""
    m = da.Mechanism(coordinates="planar", params={"m": 1.0, "w": 2.0})
    rod = m.rod("rod", (0, 0), (1, 0), mass="m")
    m.prescribe(m.revolute(m.ground, rod, at=(0, 0)), lambda t, w: w * t)
    run = da.simulate(m, da.LobattoIIIAB(2), h=0.01, steps=1, params={"m": 0.2, "w": 3.0})
    np.testing.assert_allclose(run.v[0], [0.0, 1.5, 3.0], atol=1e-14)
    runs = da.simulate_many(m, da.LobattoIIIAB(2), h=0.01, steps=1, params={"m": [0.2, 3.0]})
    np.testing.assert_allclose(runs.v[:, 0], [[0.0, 1.0, 2.0]] * 2, atol=1e-14)
    run = da.simulate(da.problems.slider_crank(rate=8.0), da.LobattoIIIAB(2), steps=1, params={"m_rod": 0.8})
    np.testing.assert_allclose(run.v[0, 2], 8.0, rtol=1e-12)
