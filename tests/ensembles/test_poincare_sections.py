"""Poincare sections against exact periods, independent integrations and the methods' own maps."""

from __future__ import annotations

import numpy as np
import pytest
from ensemble_cases import double_pendulums, falling_into_a_hole, hanging
from scipy.integrate import solve_ivp
from scipy.special import ellipk

import dalembert as da


@pytest.mark.parametrize("direction", [1, -1])
def test_the_harmonic_oscillator_crosses_at_its_exact_times(direction):
    """q = cos(w t): downwards through zero at (pi/2 + 2 pi k)/w, upwards at (3 pi/2 + 2 pi k)/w, with p = -+w."""
    oscillator = da.Hamiltonian(lambda q, p, w: (p @ p + w**2 * (q @ q)) / 2, dim=1, params={"w": 1.0})
    w = np.array([0.7, 1.0, 1.9])
    found = da.poincare(
        oscillator,
        da.Gauss(6),
        section=lambda q: q[0],
        direction=direction,
        q0=[1.0],
        p0=[0.0],
        params={"w": w},
        h=0.1,
        steps=500,
    )
    for k in range(3):
        first = (np.pi / 2 if direction < 0 else 3 * np.pi / 2) / w[k]
        exact = np.arange(first, 50.0, 2 * np.pi / w[k])
        mine = found[k]
        assert len(mine.t) == len(exact) and np.abs(mine.t - exact).max() < 1e-13 * 50
        assert np.abs(mine.q).max() < 1e-15 and np.abs(mine.p[:, 0] - direction * w[k]).max() < 1e-13
    assert found.member.tolist() == sorted(found.member.tolist()) and len(found) == 3


def test_pendulums_cross_at_quarters_of_their_elliptic_periods():
    """T = 4 K(sin^2(a/2)) for the amplitude a; on the constraint, and on the section, to round-off."""
    amplitude = np.linspace(0.2, 3.0, 8)
    q0 = hanging(amplitude[:, None])
    found = da.poincare(
        da.problems.pendulum(), da.LobattoIIIAB(6), section=lambda q: q[0], direction=-1, q0=q0, p0=[0, 0], h=0.05, steps=1200
    )
    for k, a in enumerate(amplitude):
        period = 4 * ellipk(np.sin(a / 2) ** 2)
        mine = found[k]
        exact = np.arange(period / 4, 60.0, period)
        assert len(mine.t) == len(exact)
        assert np.abs(mine.t - exact).max() < 2e-12
        assert np.abs(mine.q[:, 0]).max() < 1e-15 and np.abs(np.sum(mine.q**2, axis=1) - 1).max() < 1e-15
        assert np.abs(np.sum(mine.q * mine.p, axis=1)).max() < 1e-15
        assert np.abs(mine.p[:, 0] + 2 * np.sin(a / 2)).max() < 1e-12  # |p| = sqrt(2 (1 - cos a)) at the lowest point


def test_henon_heiles_against_an_independent_integration():
    """The section q_1 = 0, p_1 > 0 of Henon and Heiles (1964) at E = 1/12, from SciPy's event location."""
    system = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2 + q[0] ** 2 * q[1] - q[1] ** 3 / 3, dim=2)
    q0, p2 = np.array([0.0, 0.1]), 0.05
    p1 = np.sqrt(2 / 12 - p2**2 - q0[1] ** 2 + 2 * q0[1] ** 3 / 3)

    def rhs(_, y):
        return [y[2], y[3], -y[0] - 2 * y[0] * y[1], -y[1] - y[0] ** 2 + y[1] ** 2]

    def event(_, y):
        return y[0]

    event.direction = 1
    start = [*q0, p1, p2]
    reference = solve_ivp(rhs, (0, 100), start, method="DOP853", rtol=1e-13, atol=1e-14, events=event)
    exact = reference.y_events[0][reference.t_events[0] > 1e-9]
    found = da.poincare(system, da.Gauss(5), section=lambda q: q[0], q0=q0, p0=[p1, p2], h=0.1, steps=1000)
    assert len(found.t) == len(exact) > 10
    assert np.abs(found.states - exact).max() < 1e-9
    assert np.abs(found.q[:, 0]).max() < 1e-15


@pytest.mark.parametrize(
    "method",
    [da.LobattoIIIAB(3), da.Rattle(), da.compose(da.Rattle(), da.schemes.suzuki(4)), da.RadauIIA(2, projected=True)],
    ids=str,
)
def test_a_crossing_is_a_step_of_the_method_from_the_state_before(method):
    case = double_pendulums(5, method, h=0.05)
    found = da.poincare(case.system, method, section=lambda q: q[0] - q[2] / 3, **case.all, h=case.h, steps=400, simd=False)
    assert len(found.t) > 10
    for k in range(5):
        mine, run = found[k], da.simulate(case.system, method, **case.member(k), h=case.h, steps=400)
        value = run.q[:, 0] - run.q[:, 2] / 3
        assert len(mine.t) == np.sum((value[:-1] < 0) & (value[1:] >= 0))
        for t, state in zip(mine.t, mine.states, strict=True):
            before = int((t - 1e-14) / case.h)
            start = {"q0": run.q[before], "p0": run.p[before], "params": case.member(k)["params"]}
            step = da.simulate(case.system, method, **start, t0=run.t[before], h=t - run.t[before], steps=1)
            assert np.abs(step.states[-1] - state).max() < 1e-13
            assert abs(state[0] - state[2] / 3) < 1e-15
            assert abs(np.hypot(state[0], state[1]) - 1) < 1e-15


def test_crossings_do_not_depend_on_lanes():
    case = double_pendulums(12, da.LobattoIIIAB(3))
    single, lanes = (
        da.poincare(case.system, case.method, section=lambda p: p[0], **case.all, h=case.h, steps=300, simd=simd)
        for simd in (False, True)
    )
    assert np.array_equal(single.member, lanes.member) and len(single.t) > 50
    assert np.abs(single.t - lanes.t).max() < 1e-10 and np.abs(single.states - lanes.states).max() < 1e-10


@pytest.mark.parametrize("simd", [False, True])
def test_more_crossings_than_are_kept_at_once(simd):
    """Crossings leave the compiled loop in portions; none is lost between them."""
    oscillator = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2, dim=1)
    q0 = np.linspace(1, 2, 4)[:, None]
    found = da.poincare(
        oscillator, da.Gauss(4), section=lambda q: q[0], direction=-1, q0=q0, p0=[0.0], h=0.3, steps=8000, simd=simd
    )
    exact = np.arange(np.pi / 2, 2400, 2 * np.pi)
    for k in range(4):
        assert len(found[k].t) == len(exact) > 256
        assert np.abs(np.diff(found[k].t) - 2 * np.pi).max() < 1e-7  # the numerical period, of order 8 in h


def test_a_section_may_depend_on_time_and_parameters():
    """The stroboscope sin(w t) = 0 of a driven oscillator sees every period."""
    system = da.Hamiltonian(lambda t, q, p, w: (p @ p + q @ q) / 2 - q[0] * np.cos(w * t), dim=1, params={"w": 0.3})
    found = da.poincare(system, da.Gauss(3), section=lambda t, w: np.sin(w * t), q0=[0.2], p0=[0.0], h=0.1, steps=1000)
    assert np.abs(found.t - 2 * np.pi / 0.3 * np.arange(1, 5)).max() < 1e-13


def test_a_trajectory_that_fails_keeps_its_crossings():
    case = falling_into_a_hole(9)
    found = da.poincare(case.system, case.method, section=lambda q: q[0] - 0.6, **case.all, h=case.h, steps=200)
    assert found.status[2] == found.status[5] == "failed" and found.status[0] == "done"
    assert found.member.tolist() == [2, 5] and np.abs(found.q[:, 0] - 0.6).max() < 1e-15


OSCILLATOR = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2, dim=2)
CIRCLE = {"q0": [1.0, 0.0], "p0": [0.0, 1.0], "h": 0.1, "steps": 200}  # q = (cos t, sin t)


def test_a_crossing_of_an_index_two_system_stays_on_the_branch_of_the_run():
    """y = (e^t, e^-2t), z = e^2t is one branch, which crosses y_1 = 1.2 at ln 1.2; on the other one z is half as large."""
    problem = da.problems.index_two_growth()
    exact = np.log(1.2)
    assert problem.exact(exact)["y"][0] == pytest.approx(1.2)
    errors = []
    for h in (0.05, 0.025):
        found = da.poincare(problem, da.RadauIIA(2), section=lambda y: y[0] - 1.2, h=h, steps=round(2 / h))
        assert len(found.t) == 1 and found.status == ("done",) and found.message == ("",)
        assert abs(found.y[0, 0] - 1.2) < 1e-15 and abs(found.residuals["g"]).max() < 1e-14
        assert abs(found.z[0] - problem.exact(exact)["z"]).max() < 1e-12  # z follows from y = y(t)
        errors.append(abs(found.t[0] - exact))
    assert 6 < errors[0] / errors[1] < 10  # RadauIIA(2) has order 3


def test_a_crossing_of_an_odae_is_a_step_of_the_method():
    problem = da.problems.nonlinear_multiplier()
    method = da.SymplecticEuler()
    run = da.simulate(problem, method, h=problem.h, steps=60)
    level = run.z[30, -1] * 0.4 + run.z[31, -1] * 0.6
    direction = 1 if run.z[31, -1] > run.z[30, -1] else -1
    found = da.poincare(problem, method, section=lambda z: z[-1] - level, direction=direction, h=problem.h, steps=60)
    t = found.t[(found.t > run.t[30]) & (found.t < run.t[31])]
    assert len(t) == 1 and found.message == ("",)
    assert np.abs(found.z[:, -1] - level).max() < 1e-14 * max(1, abs(level)) and np.abs(found.residuals["g"]).max() < 1e-12


def test_jumps_of_the_section_function_are_no_crossings():
    """The polar angle of (cos t, sin t) goes up through zero at 2 pi k, and jumps from pi to -pi; 1/q jumps at its poles."""
    up = da.poincare(OSCILLATOR, da.Gauss(4), section=lambda q: np.arctan2(q[1], q[0]), **CIRCLE)
    assert np.abs(up.t - 2 * np.pi * np.arange(1, 4)).max() < 1e-9 and up.message == ("",)
    for direction in (1, -1):
        for section in (lambda q: 1 / q[0], lambda q: np.sign(q[0])):
            none = da.poincare(OSCILLATOR, da.Gauss(4), section=section, direction=direction, **CIRCLE)
            assert len(none.t) == 0 and none.message == ("",)
    down = da.poincare(OSCILLATOR, da.Gauss(4), section=lambda q: np.arctan2(q[1], q[0]), direction=-1, **CIRCLE)
    assert len(down.t) == 0 and down.message == ("",)


def test_a_flat_section_is_found():
    found = da.poincare(OSCILLATOR, da.Gauss(5), section=lambda q: (q[0] - 0.3) ** 3, direction=-1, **CIRCLE)
    assert np.abs(found.t - np.arccos(0.3) - 2 * np.pi * np.arange(len(found.t))).max() < 1e-6 and len(found.t) == 3


def test_crossings_that_partial_steps_cannot_reach_are_named_and_not_invented():
    """H is defined at multiples of 0.1 and not half-way between them, where q = t would cross."""
    gaps = da.Hamiltonian(lambda t, q, p: p @ p / 2 + 1e-9 * q[0] * np.sqrt(np.cos(2 * np.pi * t / 0.1) + 0.5), dim=1)
    arguments = {"q0": [0.0], "p0": [1.0], "h": 0.1, "steps": 10}
    found = da.poincare(gaps, da.LobattoIIIAB(2), section=lambda q: q[0] - 0.25, **arguments)
    assert len(found.t) == 0 and found.status == ("done",)
    assert "no crossing was found in the step from t = 0.2, because a shorter step failed" in found.message[0]
    near = da.poincare(gaps, da.LobattoIIIAB(2), section=lambda q: q[0] - 0.22, **arguments)
    assert len(near.t) == 1 and abs(near.q[0, 0] - 0.22) < 1e-15 and near.message == ("",)


def test_a_section_that_is_not_a_number_is_not_silent():
    found = da.poincare(OSCILLATOR, da.Gauss(3), section=lambda q: np.sqrt(q[0] - 0.5), **CIRCLE)
    assert len(found.t) == 0 and "the section function was not a finite number" in found.message[0]


def test_crossings_have_the_names_of_a_trajectory():
    problem = da.problems.pendulum()
    found = da.poincare(problem, da.LobattoIIIAB(4), section=lambda q: q[0], direction=-1, h=0.05, steps=600)
    assert len(found.t) > 1
    state = da.simulate(problem, da.LobattoIIIAB(4), q0=found.q[0], p0=found.p[0], h=0.05, steps=0)
    for name in ("v", "lam", "psi", "energy", "y", "z", "q", "p"):
        assert np.allclose(getattr(found, name)[0], getattr(state, name)[0], rtol=0, atol=1e-13), name
    assert found.residuals.keys() == state.residuals.keys() and abs(found.residuals["g"]).max() < 1e-14
    empty = da.poincare(problem, da.Rattle(), section=lambda q: q[0] + 5, steps=10)
    assert empty.v.shape == (0, 2) and empty.lam.shape == (0, 1) and empty.energy.shape == (0,)


def test_what_has_no_section_is_refused():
    problem = da.problems.double_pendulum()
    with pytest.raises(da.InputError, match="direction is"):
        da.poincare(problem, da.Rattle(), section=lambda q: q[0], direction=0)
    with pytest.raises(da.UnsupportedSystem, match="belongs to its step size"):
        da.poincare(problem, da.Shake(), section=lambda q: q[0])
    with pytest.raises(da.ModelError, match="section must return one number"):
        da.poincare(problem, da.Rattle(), section=lambda q: q)
    with pytest.raises(da.ModelError, match="section names the argument 'z'"):
        da.poincare(problem, da.Rattle(), section=lambda z: z)


def test_no_crossing_gives_empty_arrays():
    found = da.poincare(da.problems.pendulum(), da.Rattle(), section=lambda q: q[0] + 5, steps=10)
    assert found.t.shape == (0,) and found.q.shape == (0, 2) and found.p.shape == (0, 2) and found.status == ("done",)
