"""friction= and slip=: what a model may state, and what is refused."""

import pickle

import numpy as np
import pytest

import dalembert as da


def point(dim, wall, **options):
    return da.Lagrangian(lambda q, v, m: m * v @ v / 2, dim, unilateral=wall, params={"m": 0.2}, **options)


def test_a_point_mass_slides_along_the_tangents_of_its_wall():
    rng = np.random.default_rng(1)
    for dim in (2, 3):
        normal = rng.normal(size=dim)
        normal /= np.linalg.norm(normal)
        system = point(dim, lambda q, n=normal: 3 * (q @ n), friction=0.3)
        v = rng.normal(size=dim)
        slip = system.evaluate("slip", 0.0, rng.normal(size=dim), 0.2 * v)
        assert len(slip) == system.n_tangents == dim - 1
        assert np.hypot(*np.pad(slip, (0, 3 - dim))) == pytest.approx(np.linalg.norm(v - (v @ normal) * normal), rel=1e-13)
        directions = system.evaluate("slip_v", 0.0, np.zeros(dim))
        np.testing.assert_allclose(directions @ directions.T, np.eye(dim - 1), atol=1e-15)
        np.testing.assert_allclose(directions @ normal, 0, atol=1e-15)


def test_a_wheel_states_its_slip_and_each_wall_its_coefficient():
    wheel = da.Lagrangian(
        lambda q, v: 0.1 * (v[0] ** 2 + v[1] ** 2) + 1e-4 * v[2] ** 2 / 2,
        dim=3,
        unilateral=lambda q, R: [q[1] - R, 1 - q[0]],
        friction=lambda q, mu: [mu, 2 * mu + q[0] ** 2],
        slip=lambda q, v, R: [v[0] + R * v[2], v[1] + R * v[2]],
        params={"R": 0.05, "mu": 0.3},
    )
    again = pickle.loads(pickle.dumps(wheel))
    for system in (wheel, again):
        np.testing.assert_allclose(system.evaluate("friction", 0.0, [0.5, 1, 0]), [0.3, 0.85])
        np.testing.assert_allclose(system.evaluate("slip_v", 0.0, [0.5, 1, 0]), [[1, 0, 0.05], [0, 1, 0.05]])
    assert "friction" not in wheel.smooth.function_names
    assert wheel.fingerprint == again.fingerprint


@pytest.mark.parametrize(
    "options, message",
    [
        ({"friction": -0.1}, "friction is a coefficient >= 0"),
        ({"friction": [0.1, 0.2]}, "one for each wall"),
        ({"friction": "much"}, "friction is a coefficient"),
        ({"slip": lambda q, v: v[0]}, "give friction="),
        ({"friction": 0.1, "slip": lambda q, v: v[0] ** 2}, "linear in v"),
        ({"friction": 0.1, "slip": lambda q, v: q[0]}, "does not depend on v"),
        ({"friction": 0.1, "slip": lambda q, v: [v[0]] * 4}, "one component each"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(da.ModelError, match=message):
        point(2, lambda q: q[1], **options)


def test_bodies_moving_walls_and_missing_walls_are_refused_by_name():
    with pytest.raises(da.ModelError, match="needs slip="):
        da.Lagrangian(lambda q, v: v @ v / 2 + v[2] ** 2, 3, unilateral=lambda q: q[1], friction=0.3)
    with pytest.raises(da.ModelError, match="needs slip="):
        point(2, lambda t, q: q[1] - t, friction=0.3)
    with pytest.raises(da.ModelError, match="needs slip="):
        point(1, lambda q: q[0], friction=0.3)
    with pytest.raises(da.ModelError, match="does not have"):
        point(2, None, friction=0.3)


@pytest.mark.parametrize("method", [da.VCI(), da.MCVA(), da.Rattle()])
def test_methods_without_friction_refuse_it(method):
    system = point(2, lambda q: q[1], friction=0.3)
    with pytest.raises(da.UnsupportedSystem, match=r"friction|unilateral"):
        da.simulate(system, method, q0=[0.0, 1.0], v0=[0.0, 0.0], h=0.01, steps=2)
