"""Time stepping where increments and velocities are as small as rounding errors, and what is counted as a damped impact."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

L, ANGLE = 0.12, 0.2


def toggle() -> da.Mechanism:
    """A toggle clamp: crank, coupler and slider against a stiff spring, pulled to and fro past its turning points."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    A, B, C = (0.0, 0.0), (L * np.cos(ANGLE), L * np.sin(ANGLE)), (2 * L * np.cos(ANGLE), 0.0)
    crank, coupler = m.rod("crank", A, B, mass=0.3), m.rod("coupler", B, C, mass=0.3)
    slider = m.body("slider", mass=0.5, shape=da.mechanisms.Box(0.04, 0.03, 0.03), at=C)
    hinge = m.revolute(m.ground, crank, at=A, name="hinge")
    m.revolute(crank, coupler, at=B)
    m.revolute(coupler, slider, at=C)
    m.prismatic(m.ground, slider, axis=(1, 0))
    m.spring(slider, m.ground, at=(C, (2 * L + 0.05, 0.0)), stiffness=5e4, damping=150.0)
    m.torsion(hinge, damping=0.05)
    m.motor(hinge, lambda t: -4.0 * np.cos(12 * t))
    return m


def test_without_contact_it_is_rattle_where_momenta_hardly_change():
    """In small steps near turning points increments of momenta are as small as rounding errors of positions, times mass/h."""
    expected = da.simulate(toggle(), da.Rattle(), h=1e-4, t1=0.2)
    stopped = toggle()
    stopped.stop(stopped.part("hinge"), lower=-1.0)  # which is never reached
    run = da.simulate(stopped, da.NonsmoothRattle(), h=1e-4, t1=0.2)
    assert np.abs(run.q - expected.q).max() < 1e-10 and np.abs(run.p - expected.p).max() < 1e-9
    assert run.stats["projected_steps"] == run.stats["damped_impacts"] == len(run.contacts.begin) == 0


@pytest.mark.parametrize("method", [da.NonsmoothRattle(), da.MoreauJean()], ids=["NonsmoothRattle", "MoreauJean"])
def test_without_friction_no_impact_is_damped(method):
    """Newton's law without friction never adds energy: a lever that bounces, comes to rest and stays there counts none."""
    m, tip = da.Mechanism(gravity=(0, -9.81), coordinates="planar"), (0.3 * np.cos(0.5), 0.3 * np.sin(0.5))
    arm = m.rod("arm", (0, 0), tip, mass=0.4)
    m.revolute(m.ground, arm, at=(0, 0))
    m.contact(arm, at=tip, origin=(0, -0.02), normal=(0, 1), restitution=0.4)
    run = da.simulate(m, method, h=1e-3, t1=0.8)
    assert np.sum(run.contacts.begin > 0.6) > 190 and np.abs(run.v[-1]).max() < 1e-9  # it rests
    assert run.stats["damped_impacts"] == 0


@pytest.mark.parametrize("method", [da.NonsmoothRattle(), da.MoreauJean()], ids=["NonsmoothRattle", "MoreauJean"])
def test_an_impact_of_kanes_paradox_is_counted_once(method):
    """A rod hits the floor with its tip and sticks: by Newton's law its energy would grow."""
    angle, e, mu, v = 0.89, 0.9, 0.5, np.array([-0.47, -1.5, 1.92])
    M = np.diag([1.0, 1.0, 1 / 3])
    W = np.array([[0, 1, -np.cos(angle)], [1, 0, np.sin(angle)]])  # of the tip, upwards and along
    before = W @ v
    P = np.linalg.solve(W @ np.linalg.inv(M) @ W.T, [-(1 + e) * before[0], -before[1]])
    after = v + np.linalg.inv(M) @ W.T @ P
    assert before[0] < 0 and abs(P[1]) < mu * P[0] and after @ M @ after > 1.1 * (v @ M @ v)
    rod = da.Lagrangian(
        lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2 + v[2] ** 2 / 6, dim=3, unilateral=lambda q: q[1] - np.sin(q[2]),
        slip=lambda q, v: v[0] + np.sin(q[2]) * v[2], friction=mu, restitution=e,
    )  # fmt: skip
    start = [0, np.sin(angle) - 1e-4 * before[0] / 2, angle]
    run = da.simulate(rod, method, q0=start, v0=v, h=1e-4, steps=6)
    assert run.stats["damped_impacts"] == 1 and run.energy[-1] <= run.energy[0] * (1 + 1e-9)


def test_a_hinge_that_forbids_one_direction_of_sliding_leaves_the_motion_determined():
    """In space friction along the axis of the hinge is undetermined; the motion is that in the plane."""

    def lever(space: bool) -> da.Mechanism:
        def point(x: float, z: float) -> tuple[float, ...]:
            return (x, 0.0, z) if space else (x, z)

        m = da.Mechanism(gravity=point(0, -9.81), **({} if space else {"coordinates": "planar"}))
        tip = point(0.3 * np.cos(0.5), 0.3 * np.sin(0.5))
        arm = m.rod("arm", point(0, 0), tip, mass=0.4, width=0.01)
        m.revolute(m.ground, arm, at=point(0, 0), name="hinge", **({"axis": (0, 1, 0)} if space else {}))
        m.contact(arm, at=tip, radius=0.01, origin=point(0, -0.02), normal=point(0, 1), restitution=0.4, friction=0.3)
        return m

    runs = [da.simulate(lever(space), da.NonsmoothRattle(), h=1e-4, t1=0.45) for space in (True, False)]
    turned = [np.abs(run.of("hinge").angle - run.of("hinge").angle[0]) for run in runs]
    np.testing.assert_allclose(turned[0], turned[1], atol=1e-5)
    assert turned[0][-1] > 0.4 and np.abs(runs[0].v[-1]).max() < 1e-9


def test_friction_that_joints_block_does_not_stop_a_run():
    """A pendulum whose wall passes through its pivot does not slide along it: its slip is a rounding error."""
    wall, rng = np.array([np.cos(0.2), np.sin(0.2)]), np.random.default_rng(1)
    pendulum = da.Lagrangian(
        lambda q, v: v[0] ** 2 / 2 + 9.81 * np.cos(q[0]),
        1,
        unilateral=lambda q: wall[0] * np.sin(q[0]) - wall[1] * np.cos(q[0]),
        slip=lambda q, v: (wall[1] * np.cos(q[0]) - wall[0] * np.sin(q[0])) * v[0],
        restitution=0.6,
        friction=0.3,
    )
    for method in (da.NonsmoothRattle(), da.MoreauJean()):
        for start, h in zip(rng.uniform(0.5, 1.5, 20), 10 ** rng.uniform(-4, -2.5, 20), strict=True):
            run = da.simulate(pendulum, method, q0=[start], v0=[0.0], h=h, steps=round(2.5 / h))
            before = 9.81 * (np.cos(0.2) - np.cos(start))
            assert np.diff(run.energy).max() < 20 * h * before  # under gravity, by what it falls in a step of an impact
            hit = np.flatnonzero(run.v[:, 0] > 0)[0]  # its first impact
            assert run.v[hit, 0] == pytest.approx(0.6 * np.sqrt(2 * before), abs=40 * h)
