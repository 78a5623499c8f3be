"""A gradient for each member of an ensemble: against exact solutions, and against the gradient of each run alone."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

SPRING = da.Hamiltonian(lambda q, p, k, m: p @ p / (2 * m) + k * q @ q / 2, dim=1, params={"k": 4.0, "m": 0.2})


def test_members_with_masses_and_starts_of_their_own():
    """q(T) = a cos(w T), w = sqrt(k/m), for three masses and amplitudes; the loss also names a velocity."""
    m, a, T = np.array([0.2, 0.4, 1.0]), np.array([1.0, 0.5, -0.3]), 1.0
    given = dict(q0=a[:, None], p0=[0.0], params={"m": m}, h=0.01, steps=100)
    values, slopes = da.gradient_many(lambda q, v: q[0] + v[0], SPRING, da.Gauss(4), wrt=("m", "q0", "k"), **given)
    w = np.sqrt(4.0 / m)
    exact, dw = a * (np.cos(w * T) - w * np.sin(w * T)), a * (-T * np.sin(w * T) - np.sin(w * T) - w * T * np.cos(w * T))
    np.testing.assert_allclose(values, exact, atol=1e-12)
    np.testing.assert_allclose(slopes["q0"][:, 0], exact / a, atol=1e-11)
    np.testing.assert_allclose(slopes["k"], dw / (2 * w * m), atol=1e-11)
    np.testing.assert_allclose(slopes["m"], -dw * w / (2 * m), atol=1e-11)


def test_a_member_is_what_it_is_alone():
    """Velocities in rows, several threads, a running cost and times, on a constrained system."""
    problem = da.problems.double_pendulum()
    guesses = ([0.0, 1.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.3])
    states = [da.consistent(problem.system, q0=problem.q0, v0=guess) for guess in guesses]
    v0 = np.array([state.v for state in states])
    given = dict(wrt=("v0", "m1"), at=[0.1, 0.2], running=lambda q: q[1], q0=problem.q0, h=0.02, steps=10)

    def loss(t, q, v):
        return np.sum(t * q[:, 3]) + v[1, 2]

    values, slopes = da.gradient_many(loss, problem, da.LobattoIIIAB(3), v0=v0, workers=2, **given)
    started = {name: value for name, value in given.items() if name != "q0"}
    again, others = da.gradient_many(loss, problem, da.LobattoIIIAB(3), start=states, **started)
    for k in range(2):
        value, alone = da.gradient(loss, problem, da.LobattoIIIAB(3), v0=v0[k], **given)
        assert values[k] == value == again[k]
        for name in alone:
            np.testing.assert_array_equal(slopes[name][k], alone[name])
            np.testing.assert_allclose(others[name][k], alone[name], rtol=1e-12, atol=1e-13)


def test_members_that_bounce_and_one_that_fails():
    """A ball dropped on an elastic floor, by the time and the speed of its bounce; a motion that escapes to infinity."""
    ball = da.Lagrangian(lambda q, v, g: 0.1 * v @ v - 0.2 * g * q[0], dim=1, unilateral=lambda q: q[0], params={"g": 9.81})
    z, T = np.array([1.0, 0.5]), 0.5
    given = dict(wrt="q0", v0=[0.0], h=0.01, steps=50)
    values, slopes = da.gradient_many(lambda q: q[0], ball, da.CVA(da.Gauss(2)), q0=z[:, None], **given)
    t, s = np.sqrt(2 * z / 9.81), np.sqrt(2 * 9.81 * z)
    bounced = t < T
    exact = np.where(bounced, s * (T - t) - 9.81 * (T - t) ** 2 / 2, z - 9.81 * T**2 / 2)
    np.testing.assert_allclose(values, exact, rtol=1e-11)
    np.testing.assert_allclose(slopes[:, 0], np.where(bounced, 9.81 * (T - t) / s - (s - 9.81 * (T - t)) / s, 1.0), rtol=1e-10)
    steep = da.Hamiltonian(lambda q, p: p @ p / 2 - q[0] ** 4, dim=1)  # escapes in finite time
    unstable = dict(wrt="q0", q0=[[0.1], [5.0]], p0=[1.0], h=0.1, steps=10)
    with pytest.raises(da.StepFailed, match="member 1"):
        da.gradient_many(lambda q: q[0], steep, da.Gauss(2), **unstable)
    with pytest.warns(UserWarning, match="member 1 of 2: step") as warned:
        values, slopes = da.gradient_many(lambda q: q[0], steep, da.Gauss(2), on_failure="return", **unstable)
    assert warned[0].filename == __file__
    assert np.isfinite(values[0]) and np.isfinite(slopes[0]).all() and np.isnan(values[1]) and np.isnan(slopes[1]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"params": {"m": [0.2, 0.3]}, "q0": [[1.0], [2.0], [3.0]]}, "one row a member"),
        ({"wrt": ("l",)}, "no parameter"),
        ({"workers": 0}, "workers must be"),
        ({"on_failure": "ignore"}, "on_failure is"),
        ({"save_to": "x"}, "no argument 'save_to'"),
    ],
    ids=str,
)
def test_refusals(change, words):
    given = {"wrt": "k", "q0": [1.0], "p0": [0.0], "h": 0.1, "steps": 3} | change
    with pytest.raises(da.DalembertError, match=words):
        da.gradient_many(lambda q: q[0], SPRING, da.Gauss(1), **given)


def test_what_is_wrong_for_all_members_is_an_error():
    """A run that starts on the wall has no derivative from any of these starts, which on_failure="return" must not hide."""
    ball = da.Hamiltonian(lambda q, p: p @ p / 2 + q[0], dim=1, unilateral=lambda q: [q[0]])
    given = dict(wrt="q0", q0=[[0.0], [0.0]], p0=[-1.0], h=0.1, steps=3)
    with pytest.raises(da.InputError, match="starts with an impact"):
        da.gradient_many(lambda q: q[0], ball, da.CVA(), on_failure="return", **given)
