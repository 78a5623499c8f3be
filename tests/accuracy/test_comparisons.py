"""What runs to a tolerance are compared with: larger steps where the motion is smooth, sizes of coordinates by their unit."""

import threading
import warnings
from fractions import Fraction

import numpy as np
import pytest
from test_tolerances import KEPLER, kepler_exact, kepler_start, relative_error, stopped

import dalembert as da
from dalembert.engine._run import Run
from dalembert.runs import _accurate, _beside, _choice, _path, _pilot, _smoothness
from dalembert.runs._pilot import time_scale
from dalembert.runs._smoothness import along, fast, rates, roughness
from dalembert.runs._starts import initial_state
from dalembert.runs._windows import fall, places
from dalembert.systems._states import States
from dalembert.systems._units import units

OSCILLATOR = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2 - 5e3 * np.maximum(q[0] - 0.5, 0) ** 2, dim=1)


def of_oscillator(t, x, v):
    """States of its motion."""
    return States(OSCILLATOR, t, np.column_stack([x, v]), np.zeros((len(t), 0)), np.zeros((len(t), 0)))


@pytest.mark.parametrize(("h", "bound"), [(0.2, 1e-14), (0.8, 2e-11)])
def test_exact_states_of_a_smooth_motion_are_not_rough(h, bound):
    t = np.arange(0, 12, h)
    assert roughness(of_oscillator(t, 0.4 * np.cos(t), -0.4 * np.sin(t)), h, np.ones(1)) < bound


@pytest.mark.parametrize("h", [1e-3, 3e-4])
def test_exact_states_across_a_kink_are_rough(h):
    """The force has a jump of its rate, of 1e4 times the speed: what polynomials across it err by is some h^3 of it."""
    t = np.arange(0, 2, h)
    x = stopped(1.635, t)
    speed = 1e-6
    v = (stopped(1.635, t + speed) - stopped(1.635, np.maximum(t - speed, 0))) / np.minimum(2 * speed, t + speed)
    jump = 1e4 * np.sqrt(1.635**2 - 0.25) * h**3
    assert 0.003 < roughness(of_oscillator(t, x, v), h, np.ones(1)) / jump < 0.3


def test_a_long_smooth_run_is_compared_with_larger_steps(monkeypatch):
    """They cost less than the run with h/2 does, and its error is known as well."""
    steps, path = [], _path.Path.__iter__
    monkeypatch.setattr(_path.Path, "__iter__", lambda self: steps.append(self.steps) or path(self))
    run = da.simulate(KEPLER, da.LobattoIIIAB(3), **kepler_start(), t1=30.0, rtol=1e-7)
    true = relative_error(run, kepler_exact(run.t))
    assert "times larger steps, whose errors fall with h^4" in run.choice and true <= run.error <= 1e-7 < 1e3 * true
    assert run.stats["steps"] > 5000 and sum(steps) < 0.5 * run.stats["steps"]


def test_a_long_run_of_higher_order_is_compared_with_one_run_in_larger_steps():
    """Two runs in larger steps would be lost; windows tell how much smaller the errors of the run are."""
    run = da.simulate(KEPLER, da.LobattoIIIAB(4), **kepler_start(), t1=300.0, rtol=1e-6)
    rows = np.unique(np.append(np.arange(0, len(run), 7), len(run) - 1))
    exact = kepler_exact(run.t[rows])
    true = np.max(np.abs(run.q[rows] - exact) / np.abs(exact).max(axis=0))
    assert "a run in 1.5 times larger steps, and errors that are 0.088 of its own" in run.choice  # 1.5^-6
    assert true <= run.error <= 1e-6 and run.error < 3 * true


def test_a_long_run_of_the_highest_order_is_compared_at_once_with_half_of_h(monkeypatch):
    """Larger steps of order 14 cost as much as steps h/2, which tell more."""
    sizes, path = [], _path.Path.__iter__
    monkeypatch.setattr(_path.Path, "__iter__", lambda self: sizes.append(self.h) or path(self))
    problem = da.problems.pendulum()
    run = da.simulate(problem, da.LobattoIIIAB(8), t1=30_000 * problem.h, rtol=1e-10)
    assert "half of h" in run.choice and run.error <= 1e-10
    assert sizes[-1] == pytest.approx(run.h / 2) and not np.any(np.isclose(sizes, 1.5 * run.h))


def test_errors_of_steps_are_no_kinks():
    """Those of the method of Gauss with two stages on x'' = -x are nearly the same from step to step."""
    h, method = 0.1, da.Gauss(2)
    run = da.simulate(OSCILLATOR, method, q0=[0.3], v0=[0.0], h=h, steps=200)
    error = np.abs(run.q[:, 0] - 0.3 * np.cos(run.t)).max() / 200
    states = of_oscillator(np.asarray(run.t), run.q[:, 0], run.v[:, 0])
    assert roughness(states, h, np.full(1, error)) < 1e-3


@pytest.mark.parametrize(("r", "method"), [(Fraction(3, 2), da.LobattoIIIAB(4)), (Fraction(3), da.LobattoIIIAB(3))])
def test_windows_tell_how_errors_fall(r, method):
    """With h^p where the motion is smooth; much less with a stop of stiffness 1e4 within them."""
    order, ratios = method.order_unconstrained["q"], []
    for speed in (0.4, 1.635):  # of which the second one reaches the stop
        run = da.simulate(OSCILLATOR, method, q0=[0.0], v0=[speed], h=0.1, steps=240)
        task = _path.Task(OSCILLATOR, run.start, float(run.t[-1]), 1e-6)
        begins = np.arange(0, len(run) // r.numerator - 4, 4)
        ratios.append(fall(task, method, run, r, begins, np.ones(1)) * float(r) ** order)
    assert ratios[0] == pytest.approx(1 - 2.0**-order, rel=0.1) and ratios[1] > 3


def test_windows_are_where_errors_grow():
    distance = np.concatenate([np.full(50, 1e-9), np.full(50, 1e-6)])
    begins = places(distance)
    assert begins[0] == 0 and begins[-1] + 4 < 100 and np.any((begins < 50) & (begins + 4 >= 50))


def rotor_and_slider():
    """A rotor of 1e-4 kg m^2 at 500 rad/s beside a block of 0.2 kg that swings 5 mm on a spring of 200 N/m."""
    m = da.Mechanism(gravity=(0, 0), coordinates="planar")
    rotor = m.body("rotor", mass=0.3, inertia=1e-4, at=(0, 0))
    block = m.body("block", mass=0.2, inertia=1e-4, at=(0.005, 0.1))
    hinge = m.revolute(m.ground, rotor, at=(0, 0))
    slide = m.prismatic(m.ground, block, at=(0.005, 0.1), axis=(1, 0))
    m.spring(m.ground, block, at=((-0.3, 0.1), (0.005, 0.1)), stiffness=200.0, length=0.3)
    return m, m.start(rates={hinge: 500.0, slide: 0.0})


def test_large_angles_do_not_loosen_lengths():
    m, start = rotor_and_slider()
    system = m.system()
    assert units(system) == ((0, 1, 3, 4), (2, 5))
    run = da.simulate(m, start=start, t1=4.0, rtol=1e-6)
    x = run.q[:, system.coordinate_names.index("block.x")]
    assert run.q[-1, 2] == pytest.approx(2000.0) and 1e-10 < np.abs(x - 0.005 * np.cos(np.sqrt(1000) * run.t)).max() < 5e-9


def test_large_angles_do_not_loosen_controlled_steps():
    m, start = rotor_and_slider()
    ends = []
    for tolerance in (1e-5, 1e-7):
        run = da.simulate(m, da.ControlledSteps(da.GaussLobattoSPARK(3), rtol=tolerance), start=start, t1=4.0)
        ends.append(np.abs(run.q[:, 3] - 0.005 * np.cos(np.sqrt(1000) * run.t)).max())
    assert ends[0] < 1e-3 * 0.005 and ends[1] < 1e-5 * 0.005


def test_a_long_run_is_announced(monkeypatch):
    """By the pace of its pilot; what is long is taken to be nothing here."""
    monkeypatch.setattr(_accurate, "LONG_SECONDS", 0.0)
    given = {**kepler_start(), "t1": 10.0, "rtol": 1e-5}
    with pytest.warns(
        da.errors.LongRunWarning, match=r"da\.Rattle\(\) takes [0-9,]+ steps of h = .* leave the method out"
    ) as warned:
        da.simulate(KEPLER, da.Rattle(), **given)
    assert warned[0].filename == __file__
    monkeypatch.setattr(_accurate, "LONG_SECONDS", np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        da.simulate(KEPLER, da.Rattle(), **given)


@pytest.mark.parametrize("save_every", [1, 7])
def test_a_second_thread_changes_no_number(save_every, monkeypatch):
    """With larger steps, and with h/2 where not all states are stored."""
    runs = []
    for processors in (1, 2):
        _choice._remembered.clear()
        monkeypatch.setattr(_beside, "processors", lambda count=processors: count)
        runs.append(da.simulate(KEPLER, da.LobattoIIIAB(4), **kepler_start(), t1=300.0, rtol=1e-6, save_every=save_every))
    assert runs[0].choice == runs[1].choice and runs[0].error == runs[1].error
    assert np.array_equal(runs[0].states, runs[1].states)


def test_the_second_thread_ends_with_the_run(monkeypatch):
    """A run that fails, or is interrupted, leaves no thread behind that goes on for long."""
    monkeypatch.setattr(_beside, "processors", lambda: 2)
    given = {**kepler_start(), "t1": 300.0, "rtol": 1e-8}
    advance, steps = Run.advance, da.suggest(KEPLER, da.LobattoIIIAB(4), **given).steps

    def interrupted(self, report=None, last_step=None):
        if threading.current_thread() is threading.main_thread() and self.steps == steps:
            raise KeyboardInterrupt
        return advance(self, report, last_step)

    monkeypatch.setattr(Run, "advance", interrupted)
    run = da.simulate(KEPLER, da.LobattoIIIAB(4), **given)
    assert run.status == "interrupted" and run.error is None
    for thread in threading.enumerate():
        if thread.name == "dalembert-comparison":
            thread.join(10.0)
            assert not thread.is_alive()


def test_accelerations_of_many_states_are_those_of_one():
    """By a kernel, and by CasADi's own functions, constraints and wheels included."""
    for name in ("double_pendulum", "skate", "slider_crank", "heavy_top"):
        problem = getattr(da.problems, name)()
        run = da.simulate(problem, steps=200, progress=False)
        rows = np.tile(np.asarray(run.states), (_smoothness.WORTH // 200 + 1, 1))
        times = np.tile(np.asarray(run.t), _smoothness.WORTH // 200 + 1)
        states = along(States.of(problem.system, run.start), rows, times)
        assert fast(states) is not None
        few = states.take(np.arange(201))
        for many, one in zip(rates(states, fast(states)), rates(few), strict=True):
            np.testing.assert_allclose(many[:201], one, rtol=1e-11, atol=1e-11 * np.abs(one).max())


@pytest.mark.parametrize(("name", "rtol"), [("double_pendulum", 1.3e-8), ("charged_particle_on_sphere", 1.3e-6)])
def test_pilots_take_no_steps_that_are_hard_to_solve(name, rtol, monkeypatch):
    """Of some hundred Newton iterations each: they cost more than all of the run."""
    flown, made = [], _choice.pilot
    monkeypatch.setattr(_choice, "pilot", lambda *given, **options: flown.append(made(*given, **options)) or flown[-1])
    problem = getattr(da.problems, name)()
    da.suggest(problem, t1=500 * problem.h, rtol=rtol)
    hard = [each for each in flown if not each.complete]
    assert hard and flown[-1].complete and flown[-1].t[-1] == pytest.approx(500 * problem.h)
    assert all(each.effort < 10 for each in flown if each.t[-1] > 250 * problem.h)  # not the first, of a few steps


def test_the_first_pilots_of_a_motion_do_not_depend_on_how_long_it_lasts(monkeypatch):
    """Their steps are a part of the time in which it changes, which for a fall from rest is (r^3 m/k)^1/2."""
    assert time_scale(_path.Task(KEPLER, da.consistent(KEPLER, q0=[1.5, 0.0], p0=[0.0, 0.0]), 1.0, 1e-6)) == pytest.approx(
        np.sqrt(1.5**3 * 0.2 / 3.0)
    )
    rest = da.consistent(OSCILLATOR, q0=[0.0], v0=[0.0])
    assert time_scale(_path.Task(OSCILLATOR, rest, 1.0, 1e-6)) == np.inf  # no step is too large for it
    flown, made = [], _choice.pilot
    monkeypatch.setattr(_choice, "pilot", lambda *given, **options: flown.append(made(*given, **options)) or flown[-1])
    for t1 in (3e2, 3e4):
        _choice._remembered.clear()
        da.suggest(KEPLER, **kepler_start(), t1=t1, rtol=1e-5)
    assert all(each.complete for each in flown) and flown[0].h == flown[len(flown) // 2].h


@pytest.mark.parametrize("name", ["pendulum", "rigid_body"])
def test_pilots_cost_a_part_of_a_long_run_of_high_order(name, monkeypatch):
    """Steps that are exact to rounding, and four times larger ones that cannot be made, tell nothing; those between do."""
    spent, made = [], _choice.pilot
    monkeypatch.setattr(_choice, "pilot", lambda *given, **options: spent.append(3 * given[3]) or made(*given, **options))
    problem = getattr(da.problems, name)()
    found = da.suggest(problem, t1=30_000 * problem.h, rtol=1e-10)
    assert sum(spent) < 0.4 * found.steps


def test_pilots_that_part_are_not_followed_further(monkeypatch):
    """Nor those whose steps are hard to solve, where shorter ones may do."""
    rows, path = [], _path.Path.__iter__
    monkeypatch.setattr(_path.Path, "__iter__", lambda self: (rows.append(len(q)) or q for q in path(self)))
    start = da.consistent(KEPLER, **kepler_start())
    parted = _pilot.pilot(_path.Task(KEPLER, start, 60.0, 1e-6), da.LobattoIIIAB(3), 60 / 864, 864)
    assert not parted.complete and parted.reason is None and parted.t[-1] < 20 and sum(rows) < 864
    sphere = da.problems.charged_particle_on_sphere()
    start = initial_state(sphere)[1]
    rows.clear()
    hard = _pilot.pilot(_path.Task(sphere.system, start, 60.0, 1e-6), da.LobattoIIIAB(5), 0.75, 80, may_be_hard=False)
    assert hard.hard and "hard to solve" in hard.reason and sum(rows) < 40


@pytest.mark.parametrize("name", ["nonlinear_multiplier", "pendulum"])
def test_steps_of_compositions_are_not_hard_because_they_are_many(name):
    """Those of order 8 take 15 substeps and more, of some ten iterations each where multipliers enter nonlinearly."""
    problem, method = getattr(da.problems, name)(), da.compose(da.Rattle(), 8) if name == "pendulum" else None
    run = da.simulate(problem, method, t1=50 * problem.h, rtol=1e-8)
    if name == "pendulum":
        q, exact = run.q, da.simulate(problem, da.GaussLobattoSPARK(5), h=run.h, t1=50 * problem.h).q
    else:
        q, exact = run.y, problem.exact(run.t)["y"]
    assert np.max(np.abs(q - exact) / np.abs(exact).max(axis=0)) <= 1e-8


@pytest.mark.parametrize(("t0", "length"), [(1.0, 2.3e-16), (1e9, 1e-3), (1e9, 10.0)])
def test_motions_that_begin_late_are_compared_at_their_own_times(t0, length):
    """Times are rounded there: steps are told apart by their number."""
    late, early = (da.simulate(KEPLER, **kepler_start(), t0=t, t1=t + length, rtol=1e-6) for t in (t0, 0.0))
    if length > 1:
        assert late.choice == early.choice
    assert late.error <= 1e-6 and len(late) == late.stats["steps"] + 1
