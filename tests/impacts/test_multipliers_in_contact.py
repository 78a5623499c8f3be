"""What holds joints and constraints while walls are touched: statics."""

import numpy as np
import pytest

import dalembert as da

G = 9.81


def test_a_pendulum_that_leans_against_a_wall():
    """Its rod and the wall carry the weight: lam y/l = -m g, N = lam x/l."""
    m, length, x, y = 0.2, 0.5, 0.3, -0.4
    leaning = da.Hamiltonian(
        lambda q, p: p @ p / (2 * m) + m * G * q[1],
        dim=2,
        holonomic=lambda q: [np.hypot(q[0], q[1]) - length],
        unilateral=lambda q: q[0] - x,
        restitution=0.0,
    )
    run = da.simulate(leaning, da.CVA(da.LobattoIIIAB(3)), q0=[x, y], p0=[0, 0], h=1e-3, t1=0.05)
    lam = m * G * length / -y
    np.testing.assert_allclose(run.lam[5:, 0], lam, rtol=1e-12)
    np.testing.assert_allclose(run.contact_forces.normal[5:, 0], lam * x / length, rtol=1e-12)


def rod_on_a_stop(method):
    """A rod, hinged at its end, that falls on a stop in the hinge."""
    m = da.Mechanism(gravity=(0, -G), coordinates="planar")
    rod = m.rod("rod", (0, 0), (0.5, 0), mass=2.0)
    hinge = m.revolute(m.ground, rod, at=(0, 0))
    m.stop(hinge, lower=-0.2, restitution=0.0)
    run = da.simulate(m, method, start=m.start(), h=1e-3, t1=0.3)
    return run, run.of(hinge).force


@pytest.mark.parametrize("base", ["SVC", da.LobattoIIIAB(3)], ids=str)
def test_a_hinge_carries_a_rod_that_lies_on_its_stop(base):
    """The stop is a couple, so that the hinge carries the weight; while the rod falls from level, a quarter of it at first."""
    run, force = rod_on_a_stop(da.CVA(base))
    np.testing.assert_allclose(force[-1], [0, 2.0 * G, 0], atol=1e-9)
    np.testing.assert_allclose(force[0], [0, 2.0 * G / 4, 0], atol=1e-9)
    members = da.simulate_many(run.system, da.CVA(base), q0=run.q[[0, 0]], p0=run.p[[0, 0]], h=1e-3, steps=300)
    np.testing.assert_array_equal(members[1].lam, run.lam)


def test_time_stepping_does_not_say_what_it_does_not_know():
    run, force = rod_on_a_stop(da.NonsmoothRattle())
    assert np.isnan(force[-1][:2]).all() and np.isfinite(force[:100]).all()
    assert len(run.contacts)
