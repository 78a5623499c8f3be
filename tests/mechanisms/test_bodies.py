"""Bodies in all coordinates against Euler's equations, minimal coordinates and exact solutions."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from compositions import ORDER_6
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.mechanisms import Box, Cylinder, Sphere

MASS, ARM = 0.2, np.array([0.01, -0.02, 0.03])
J = np.array([[3e-4, 4e-5, -2e-5], [4e-5, 4e-4, 3e-5], [-2e-5, 3e-5, 5e-4]])
TURNED = Rotation.from_rotvec([0.3, -0.5, 0.9])
OMEGA = np.array([3.0, -2.0, 5.0])


@functools.cache
def euler(t1: float) -> tuple[np.ndarray, np.ndarray]:
    """Euler's equations with a force fixed in space at a point fixed in the body, by DOP853: x and R at t1."""
    force, weight = np.array([0.02, 0.01, -0.03]), np.array([0, 0, -9.81 * MASS])

    def slope(_, y):
        R, omega = y[6:15].reshape(3, 3), y[15:18]
        torque = R.T @ np.cross(R @ ARM, force)
        W = np.array([[0, -omega[2], omega[1]], [omega[2], 0, -omega[0]], [-omega[1], omega[0], 0]])
        return np.concatenate([
            y[3:6], (force + weight) / MASS, (R @ W).ravel(), np.linalg.solve(J, torque - np.cross(omega, J @ omega))
        ])  # fmt: skip

    R0 = TURNED.as_matrix()
    y0 = np.concatenate([np.zeros(3), [1.0, 0.5, 2.0], R0.ravel(), R0.T @ OMEGA])
    y = solve_ivp(slope, (0, t1), y0, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    return y[:3], y[6:15].reshape(3, 3)


@pytest.mark.parametrize("coordinates", ["quaternion", "matrix"])
def test_free_body_with_a_force_follows_eulers_equations(coordinates):
    m = da.Mechanism(gravity=(0, 0, -9.81), coordinates=coordinates)
    body = m.body("body", mass=MASS, inertia=J, rotation=TURNED)
    m.force(body, (0.02, 0.01, -0.03), at=TURNED.as_matrix() @ ARM)
    start = m.start(velocities={body: (1.0, 0.5, 2.0)}, angular_velocities={body: OMEGA})
    np.testing.assert_allclose(m.assembled.system.evaluate("H", 0.0, start.q, start.p), MASS * 5.25 / 2 + _rotation() / 2)
    run = da.simulate(m, ORDER_6, start=start, h=0.002, t1=1.0, save_every=500)
    x, R = euler(1.0)
    np.testing.assert_allclose(run.of(body).position[-1], x, atol=1e-12)
    np.testing.assert_allclose(run.of(body).rotation[-1], R, atol=2e-9)
    np.testing.assert_allclose(run.of(body).angular_velocity[0], OMEGA, atol=1e-12)


def _rotation() -> float:
    w = TURNED.as_matrix().T @ OMEGA
    return float(w @ J @ w)


def test_thin_plate_leaves_its_massless_column_out():
    """A plate has E_3 = 0: R has six coordinates then, and moves as with a quaternion."""
    ends = {}
    for coordinates, size in (("matrix", 9), ("quaternion", 7)):
        m = da.Mechanism(coordinates=coordinates)
        plate = m.body("plate", mass=0.2, inertia=(2e-4, 3e-4, 5e-4), rotation=TURNED)
        m.torque(
            plate,
            lambda t, angular_velocity: 1e-3 * np.array([np.cos(t), 1.0, 0.0], like=angular_velocity) - 1e-4 * angular_velocity,
        )
        run = da.simulate(
            m, da.LobattoIIIAB(3), start=m.start(angular_velocities={plate: OMEGA}), h=0.002, t1=1.0, save_every=500
        )
        assert m.dim == size
        ends[coordinates] = run.of(plate).rotation[-1]
    np.testing.assert_allclose(ends["matrix"], ends["quaternion"], atol=1e-7)


@pytest.mark.parametrize(
    ("solid", "inside", "box"),
    [
        (Box(0.3, 0.1, 0.05), lambda x, y, z: np.ones_like(x), (0.3, 0.1, 0.05)),
        (Cylinder(0.1, 0.05), lambda x, y, z: x**2 + y**2 < 0.01, (0.2, 0.2, 0.05)),
        (Sphere(0.1), lambda x, y, z: x**2 + y**2 + z**2 < 0.01, (0.2, 0.2, 0.2)),
    ],
)  # fmt: skip
def test_solids_integrate_to_their_volume_and_moments(solid, inside, box):
    n = 160
    x, y, z = np.meshgrid(*(size * ((np.arange(n) + 0.5) / n - 0.5) for size in box), indexing="ij")
    weight = inside(x, y, z) * np.prod(box) / n**3
    assert solid.volume == pytest.approx(weight.sum(), rel=2e-3)
    moments = [(weight * (a**2 + b**2)).sum() / weight.sum() for a, b in ((y, z), (x, z), (x, y))]
    np.testing.assert_allclose(solid.moments, moments, rtol=4e-3)


def test_springs_and_dampers_oscillate_as_they_should():
    """x'' = -(k/m) x - (c/m) x' for 24 masses of different stiffness at once: parameters need no other program."""
    k = np.linspace(20.0, 200.0, 24)
    m = da.Mechanism(params={"k": 80.0, "c": 0.3, "m": 0.2}, coordinates="planar")
    ball = m.point("ball", mass="m", at=(1.1, 0))
    guide = m.spring(m.ground, ball, at=((0, 0), (1.1, 0)), stiffness="k", length=1.0, damping="c")
    states = [m.start(params={"k": value}) for value in k]
    runs = da.simulate_many(m, da.Gauss(3), start=states, h=0.005, steps=200)
    decay, frequency = 0.3 / 0.4, np.sqrt(k / 0.2 - (0.3 / 0.4) ** 2)
    wt = frequency[:, None] * runs.t
    exact = 0.1 * np.exp(-decay * runs.t) * (np.cos(wt) + decay / frequency[:, None] * np.sin(wt))
    np.testing.assert_allclose(runs.q[:, :, 0] - 1.0, exact, atol=1e-9)
    one = da.simulate(m, da.Gauss(3), h=0.005, steps=200)
    np.testing.assert_allclose(one.of(guide).length, one.q[:, 0], atol=1e-14)


@pytest.mark.parametrize("coordinates", ["planar", "quaternion"])
def test_torsion_spring_with_motor(coordinates):
    """J x'' = -k (x - 0.2) - c x' + a sin(3t) about a hinge: an exact linear response, from rest at 0."""
    J, k, c, a, w = 4e-4, 0.02, 1e-4, 3e-3, 3.0
    m = da.Mechanism(coordinates=coordinates, params={"k": k, "c": c, "a": a})
    hinge = m.revolute(m.ground, m.body("wheel", mass=0.2, inertia=J), at=(0, 0, 0))
    m.torsion(hinge, stiffness="k", rest=0.2, damping="c")
    motor = m.motor(hinge, lambda t, a: a * np.sin(3.0 * t))
    run = da.simulate(m, ORDER_6, h=0.01, steps=200)
    forced = a / (k - J * w**2 + 1j * c * w)
    decay = np.roots([J, c, k])
    # homogeneous part: x(0) = 0, x'(0) = 0 beside 0.2 + Im(forced e^{iwt})
    A = np.linalg.solve(np.array([[1, 1], decay]), np.array([-0.2 - forced.imag, -(1j * w * forced).imag]))
    exact = (
        0.2 + (forced * np.exp(1j * w * run.t)).imag + (A[0] * np.exp(decay[0] * run.t) + A[1] * np.exp(decay[1] * run.t)).real
    )
    np.testing.assert_allclose(run.of(hinge).angle, exact, atol=1e-10)
    np.testing.assert_allclose(run.of(motor).effort, a * np.sin(3 * run.t), atol=1e-15)


def test_moments_that_are_parameters_may_leave_the_thin_plate():
    """A plate by its default moments only: with others it moves as a body that was stated with these."""
    plate, solid = {"J1": 2e-4, "J2": 3e-4, "J3": 5e-4}, {"J1": 2e-4, "J2": 3e-4, "J3": 4e-4}
    m = da.Mechanism(coordinates="matrix", params=solid)
    body = m.body("body", mass=0.2, inertia=("J1", "J2", "J3"))
    assert m.dim == 12
    with pytest.raises(da.DalembertError, match=r"'body' is a thin plate .* by the values of parameters"):
        m.start(params=plate)
    thin = da.Mechanism(coordinates="matrix", params=plate)
    with pytest.raises(da.DalembertError, match='coordinates="quaternion"'):
        thin.body("body", mass=0.2, inertia=("J1", "J2", "J3"))
    start = m.start(angular_velocities={body: OMEGA}, params={"J3": 4.5e-4})
    energy = m.system().evaluate("H", 0.0, start.q, start.p, theta=start.theta)
    np.testing.assert_allclose(energy, np.array([2e-4, 3e-4, 4.5e-4]) @ OMEGA**2 / 2, rtol=1e-12)


@pytest.mark.parametrize(
    ("changed", "answer"), [({"m": -0.2}, "the mass of 'b' must be positive"), ({"J": -1e-4}, "the inertia of 'b' must be")]
)
def test_parameters_of_a_start_are_checked_like_those_of_the_model(changed, answer):
    m = da.Mechanism(params={"m": 0.2, "J": 1e-4})
    m.body("b", mass="m", inertia="J")
    with pytest.raises(da.DalembertError, match=answer):
        m.start(params=changed)


def test_gravity_across_the_plane_is_refused():
    with pytest.raises(da.ModelError, match="gravity across the plane moves nothing in it"):
        da.Mechanism(gravity=(0, 0, -9.81), coordinates="planar")
    da.Mechanism(gravity=(0, -9.81, 0), coordinates="planar")
