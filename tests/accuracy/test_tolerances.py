"""Runs to a tolerance: true errors against exact solutions, what cannot be had, and what is remembered."""

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import dalembert as da
from dalembert.errors import ToleranceError
from dalembert.runs import _accurate, _accurate_many, _choice, _path, _pilot, _stored_run
from dalembert.runs._default_method import family
from dalembert.runs._unreachable import amplification
from dalembert.symbolic._kept import Recent

KEPLER = da.Hamiltonian(lambda q, p, m, k: p @ p / (2 * m) - k / np.hypot(q[0], q[1]), dim=2, params={"m": 0.2, "k": 3.0})
E = 0.6
"""Eccentricity."""


def kepler_start(m=0.2, k=3.0, a=1.5):
    """At the pericentre."""
    return {"q0": [a * (1 - E), 0.0], "p0": [0.0, m * np.sqrt(k / m * (1 + E) / (a * (1 - E)))]}


def kepler_exact(t, m=0.2, k=3.0, a=1.5):
    """By Kepler's equation M = u - e sin u."""
    mean = np.sqrt(k / m / a**3) * np.asarray(t)
    u = np.array([brentq(lambda u, M=M: u - E * np.sin(u) - M, M - 1, M + 1, xtol=1e-15, rtol=1e-15) for M in mean])
    return np.column_stack([a * (np.cos(u) - E), a * np.sqrt(1 - E**2) * np.sin(u)])


def relative_error(run, exact):
    """Of the positions, as `rtol` means it."""
    size = np.abs(exact).max(axis=0)
    return np.max(np.abs(run.q - exact) / np.maximum(size, 1e-3 * size.max()))


@pytest.mark.parametrize("rtol", [1e-4, 1e-8, 1e-10])
def test_kepler_orbits_are_as_exact_as_asked(rtol):
    run = da.simulate(KEPLER, **kepler_start(), t1=9.0, rtol=rtol)
    true = relative_error(run, kepler_exact(run.t))
    assert 0.01 * rtol < true <= rtol and run.error <= rtol
    assert true / 3 < run.error < 3 * true
    assert run.t[-1] == pytest.approx(9.0, rel=1e-14) and run.method in run.choice and run.status == "done"


@pytest.mark.parametrize(("e", "periods", "rtol"), [(0.95, 1, 1e-6), (0.95, 3, 1e-8), (0.9, 3, 1e-6)])
def test_close_encounters_behind_the_pilots_are_found(e, periods, rtol):
    """From the pericentre: steps that follow from what pilots see of it miss the tolerance up to 170 times."""
    orbit = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.hypot(q[0], q[1]), dim=2)
    run = da.simulate(orbit, q0=[1 - e, 0.0], p0=[0.0, np.sqrt((1 + e) / (1 - e))], t1=2 * np.pi * periods, rtol=rtol)
    u = np.array([brentq(lambda u, M=M: u - e * np.sin(u) - M, M - 1.1, M + 1.1, xtol=1e-15, rtol=1e-15) for M in run.t])
    true = relative_error(run, np.column_stack([np.cos(u) - e, np.sqrt(1 - e**2) * np.sin(u)]))
    assert true < rtol
    assert run.error < rtol
    assert 0.5 < run.error / true < 3


@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_errors_that_fall_slowly_are_not_taken_for_small_ones(rtol):
    """Dry friction, made smooth over 0.1 mm/s: steps cross it, so that errors fall with h instead of h^8, or not at all."""
    dry = da.Lagrangian(lambda q, v: v @ v / 2 - 50 * q @ q, dim=1, force=lambda v: -0.8 * np.tanh(v / 1e-4))
    try:
        run = da.simulate(dry, q0=[0.1], v0=[0.0], t1=1.0, rtol=rtol)
    except ToleranceError as refused:
        assert "times what was asked for" in str(refused)
        return
    rates = lambda _, y: [y[1], -100 * y[0] - 0.8 * np.tanh(y[1] / 1e-4)]  # noqa: E731
    exact = solve_ivp(rates, (0, 1.001), [0.1, 0.0], "Radau", t_eval=run.t, rtol=1e-11, atol=1e-14).y[0]
    assert relative_error(run, exact[:, None]) < rtol


@pytest.mark.parametrize("stored", [False, True])
def test_a_short_pulse_in_a_long_run_is_compared_too(stored, tmp_path):
    """A heavily damped mass of 0.2 kg is struck for 2 ms in 100 s: no state of some 17,000 may be left out."""
    m, c, k, when = 0.2, 200.0, 1e5, 31.4137
    system = da.Lagrangian(
        lambda q, v, t: m * v @ v / 2 - k * q @ q / 2 + (20 * np.cos(3 * t) + 100 * np.exp(-(((t - when) / 2e-3) ** 2))) * q[0],
        dim=1,
        force=lambda v: -c * v,
    )
    where = {"save_to": tmp_path / "run.zarr"} if stored else {}
    run = da.simulate(system, q0=[3e-4], v0=[0.0], t1=100.0, rtol=1e-6, **where)
    assert len(run.t) > 2 * _path.MOST_ROWS
    # Only what the pulse adds has to be computed: the answer to 20 cos 3t, and to the start, is known.
    driven = 20 / (k - 9 * m + 3j * c)

    def rates(t, y):
        return [y[1], (100 * np.exp(-(((t - when) / 2e-3) ** 2)) - c * y[1] - k * y[0]) / m]

    t = np.asarray(run.t)
    near = (t > when - 0.02) & (t < when + 0.1)
    added = solve_ivp(rates, (when - 0.02, when + 0.11), [0.0, 0.0], "DOP853", t_eval=t[near], rtol=1e-12, atol=1e-18).y[0]
    exact = added + (driven * np.exp(3j * t[near])).real
    true = np.max(np.abs(np.asarray(run.q)[near, 0] - exact)) / np.max(np.abs(exact))
    assert true <= run.error <= 1e-6


@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_errors_are_not_claimed_to_be_less_than_they_are(rtol):
    """A stiff spring whose errors are small at the few times that a run and its pilot have in common."""
    problem = da.problems.stiff_spring_pendulum()
    run = da.simulate(problem, t1=1.0, rtol=rtol)
    steps = 4 * int(run.stats["steps"])
    exact = da.simulate(problem, da.GaussLobattoSPARK(5), h=1.0 / steps, steps=steps, save_every=4)
    assert relative_error(run, exact.q) <= run.error <= rtol


def stopped(v0, t, k=1e4, stop=0.5):
    """An oscillator of frequency 1 from x = 0 with a spring of stiffness k behind a stop: arcs of two oscillators, exactly."""
    w, c = np.sqrt(1 + k), k * stop / (1 + k)
    found, x, v, begin, behind = np.empty_like(t), 0.0, v0, 0.0, False
    while begin <= t[-1]:
        rate, centre = (w, c) if behind else (1.0, 0.0)
        radius, phase = np.hypot(x - centre, v / rate), np.arctan2(v / rate, x - centre)
        arc = np.arccos((stop - centre) / radius)  # x = stop at the angles phase - arc, going in, and phase + arc, going out
        turn = (phase + (arc if behind else -arc)) % (2 * np.pi)
        now = (begin <= t) & (t <= begin + turn / rate)
        found[now] = centre + radius * np.cos(rate * (t[now] - begin) - phase)
        x, v, begin, behind = stop, -radius * rate * np.sin(turn - phase), begin + turn / rate, not behind
    return found


@pytest.mark.parametrize(
    "v0", [0.9043478, 1.635, 2.574, 3.096, *(pytest.param(v, marks=pytest.mark.slow) for v in np.linspace(0.8, 3.2, 24))]
)
def test_errors_that_do_not_fall_with_the_order_are_not_claimed_to(v0):
    """Errors of steps across a kink of the force fall by chance: one difference of two runs does not tell them."""
    system = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2 - 5e3 * np.maximum(q[0] - 0.5, 0) ** 2, dim=1)
    run = da.simulate(system, q0=[0.0], v0=[v0], t1=6.0, rtol=1e-5)
    assert relative_error(run, stopped(v0, run.t)[:, None]) <= run.error <= 1e-5


def test_a_fast_mechanism_is_as_exact_as_claimed():
    """A quick-return: a pin on a crank of 0.1 m at 60 rad/s drives a slotted arm; against another family in shorter steps."""
    r, d = 0.1, 0.13
    system = da.Lagrangian(
        lambda q, v: 1e-3 * v[0] ** 2 + 2.5e-3 * v[1] ** 2 + 0.1 * (v[2] ** 2 + (q[2] * v[1]) ** 2) - 0.59 * np.sin(q[1]),
        dim=3,
        holonomic=lambda q: [r * np.cos(q[0]) - q[2] * np.cos(q[1]), r * np.sin(q[0]) + d - q[2] * np.sin(q[1])],
    )
    start = da.consistent(system, q0=[0.0, np.arctan2(d, r), np.hypot(r, d)], v0=[60.0, 0.0, 0.0])
    run = da.simulate(system, start=start, t1=1.0, rtol=1e-6)
    steps = 4 * int(run.stats["steps"])
    exact = da.simulate(system, da.GaussLobattoSPARK(5), start=start, h=1.0 / steps, steps=steps, save_every=4)
    true = relative_error(run, exact.q)
    assert true <= run.error < 1e-6 and run.error < 5 * true


@pytest.mark.parametrize(("method", "rtol"), [(da.Rattle(), 1e-4), (da.RadauIIA(3), 1e-6)])
def test_a_given_method_is_kept(method, rtol):
    run = da.simulate(KEPLER, method, **kepler_start(), t1=4.0, rtol=rtol)
    assert run.method == str(method) and 0.01 * rtol < relative_error(run, kepler_exact(run.t)) <= rtol


def test_time_runs_backwards_too():
    run = da.simulate(KEPLER, **kepler_start(), t1=-4.0, rtol=1e-7)
    assert run.h < 0 and run.t[-1] == pytest.approx(-4.0) and relative_error(run, kepler_exact(run.t)) <= 1e-7


def test_an_absolute_tolerance_is_added():
    run = da.simulate(KEPLER, **kepler_start(), t1=4.0, atol=1e-6)
    error = np.abs(run.q - kepler_exact(run.t)).max()
    assert 1e-8 < error <= 1e-6
    loose = da.suggest(KEPLER, run.solver, **kepler_start(), t1=4.0, atol=1e-4, rtol=1e-9)
    assert loose.steps < run.stats["steps"]


@pytest.mark.parametrize("rtol", [1e-5, 1e-9])
def test_constraints_and_forces(rtol):
    """A damped pendulum of 0.2 kg in Cartesian coordinates, against its angle by DOP853."""
    system = da.Lagrangian(
        lambda q, v, m, g: m * v @ v / 2 - m * g * q[1],
        dim=2,
        holonomic=lambda q, b: [q @ q - b**2],
        force=lambda v, c: -c * v,
        params={"m": 0.2, "g": 9.81, "b": 0.3, "c": 0.05},
    )
    run = da.simulate(system, q0=[0.3, 0.0], v0=[0, 0], t1=5.0, rtol=rtol)
    rates = lambda _, y: [y[1], -9.81 / 0.3 * np.sin(y[0]) - 0.05 / 0.2 * y[1]]  # noqa: E731
    angle = solve_ivp(rates, (0, 5.0), [np.pi / 2, 0.0], "DOP853", t_eval=np.minimum(run.t, 5.0), rtol=1e-13, atol=1e-14).y[0]
    exact = 0.3 * np.column_stack([np.sin(angle), -np.cos(angle)])
    assert 0.01 * rtol < relative_error(run, exact) <= rtol
    assert np.abs(run.residuals["g"]).max() < 1e-15


@pytest.mark.parametrize(("name", "rtol"), [("skate", 1e-7), ("cart_pendulum", 1e-6), ("index_two_growth", 1e-6)])
def test_other_kinds_of_systems(name, rtol):
    problem = getattr(da.problems, name)()
    assert problem.exact is not None
    run = da.simulate(problem, rtol=rtol)
    exact = problem.exact(run.t)
    exact = exact["q"] if "q" in exact else exact["y"]
    size = np.abs(exact).max(axis=0)
    assert np.max(np.abs((run.q if hasattr(run, "q") else run.y) - exact) / np.maximum(size, 1e-3 * size.max())) <= rtol


def test_impacts():
    """A ball of 0.2 kg in a potential well that bounces without loss: positions from the exact parabolas."""
    ball = da.Lagrangian(lambda q, v: 0.1 * v @ v - 0.2 * 9.81 * q[0] - 3.0 * q[0] ** 3, dim=1, unilateral=lambda q: q[0])
    run = da.simulate(ball, q0=[0.4], v0=[0.0], t1=3.0, rtol=1e-7)

    def rates(_, y):
        return [y[1], -9.81 - 45.0 * y[0] ** 2]

    def floor(_, y):
        return y[0]

    floor.terminal, floor.direction = True, -1
    fall = solve_ivp(rates, (0, 3), [0.4, 0.0], "DOP853", events=floor, dense_output=True, rtol=1e-13, atol=1e-14)
    period = 2 * fall.t[-1]
    phase = np.abs((run.t + period / 2) % period - period / 2)  # symmetric about every summit
    exact = fall.sol(phase)[0]
    assert len(run.impacts.t) > 5 and np.max(np.abs(run.q[:, 0] - exact)) / 0.4 <= 1e-7


def test_a_long_run_is_continued_from_a_part_of_it():
    found = da.suggest(KEPLER, **kepler_start(), t1=3000.0, rtol=1e-5)
    run = da.simulate(KEPLER, **kepler_start(), t1=3000.0, rtol=1e-5, save_every=100)
    assert run.stats["steps"] > 20_000 and "% of the time" in found.reason
    assert 0.001e-5 < relative_error(run, kepler_exact(run.t)) <= 1e-5


SLOW = [
    "pendulum_of_varying_length", "stiff_spring_pendulum", "two_bodies_on_sphere", "rigid_body", "heavy_top", "rolling_disk",
    "perturbed_contact_oscillator", "nonholonomic_particles", "double_pendulum_at_wall", "slider_crank", "jansens_leg",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rtol"),
    [
        ("four_bar", 1e-6),
        ("chaplygin_sleigh", 1e-8),
        *(pytest.param(name, rtol, marks=pytest.mark.slow) for name in SLOW for rtol in (1e-4, 1e-6, 1e-8, 1e-10)),
    ],
)
def test_problems_of_the_catalogue(name, rtol):
    """Against another family of order 10 with a fifth of the steps; `benchmarks/accuracy.py` has all problems."""
    problem = getattr(da.problems, name)()
    run = da.simulate(problem, t1=min(500, problem.steps) * problem.h, rtol=rtol)
    system = problem.system
    other = da.LobattoSPARK(6) if system.n_nonholonomic and not system.n_holonomic else da.GaussLobattoSPARK(5)
    other = da.CVA(other) if system.n_unilateral else other
    steps = 5 * int(run.stats["steps"])
    exact = da.simulate(problem, other, h=run.h / 5, steps=steps, save_every=5).q
    assert relative_error(run, exact) <= rtol


# -- what cannot be had --------------------------------------------------------------------------------------------------


def test_a_tolerance_below_round_off_is_refused():
    with pytest.raises(ToleranceError, match=r"rtol = 1e-15 is less than what double precision can hold.*at least 1e-13"):
        da.simulate(KEPLER, **kepler_start(), t1=1.0, rtol=1e-15)


def test_chaos_is_said_plainly_with_the_time_that_can_be_had():
    wild = da.problems.double_pendulum_in_angles(angles=(2.5, 2.0))
    with pytest.raises(ToleranceError, match="the motion is chaotic: errors, also those of rounding, grow") as caught:
        da.simulate(wild, t1=500.0, rtol=1e-8)
    horizon = float(re.search(r"after about t = ([\d.]+)", str(caught.value))[1])
    # Two runs of different methods, both at round-off in a step, agree to 1e-8 until about then.
    a, b = (da.simulate(wild, da.Gauss(stages), h=0.01, t1=400.0) for stages in (6, 5))
    apart = a.t[np.argmax(np.abs(a.q - b.q).max(axis=1) > 1e-8)]
    assert 0.4 < horizon / apart < 2.5


@pytest.mark.parametrize(("p0", "t1"), [(0.0, 2.0), (-0.3, 5.0), (0.3, -5.0)])
def test_a_collision_ahead_is_named(p0, t1):
    """A fall into the centre from r = 1 = a (1 - cos u), at |t| = a^1.5 (u - sin u) before it, from rest pi / (2 sqrt 2)."""
    fall = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.hypot(q[0], q[1]), dim=2)
    with pytest.raises(
        ToleranceError, match=r"the step sizes that were tried, down to .* do not lead .*ReversibleSteps"
    ) as caught:
        da.simulate(fall, q0=[1.0, 0.0], p0=[p0, 0.0], t1=t1, rtol=1e-6)
    when = float(re.search(r"past t = (-?[\d.]+)", str(caught.value))[1])
    a = 1 / (2 - p0**2)
    u = np.arccos(1 - 1 / a)
    assert when == pytest.approx(np.copysign(a**1.5 * (u - np.sin(u)), t1), rel=0.02)


@pytest.mark.slow
def test_a_step_that_ends_in_a_singular_position_is_not_the_end_of_a_run():
    """Links that lie flat lose the rank of their constraints; what is chosen first for 1e-6 has a step that ends there.

    The angle from the vertical obeys 3 th'' = 3.5 g sin(th).
    """
    run = da.simulate(da.problems.two_four_bars(), t1=5.0, rtol=1e-6)
    rates = lambda _, y: [y[1], 3.5 / 3 * 9.81 * np.sin(y[0])]  # noqa: E731
    exact = solve_ivp(rates, (0, 5), [0, 1], "DOP853", run.t, rtol=1e-13, atol=1e-13)
    crank = np.column_stack([np.sin(exact.y[0]), np.cos(exact.y[0])]) / 2
    assert np.abs(run.q[:, :2] - crank).max() / 0.5 < run.error < 1e-6


def test_pilots_do_not_go_on_where_larger_steps_fail(monkeypatch):
    """x = 1 / (1 - t)^2 ends at t = 1, which is not passed by steps of 0.09, and in shorter ones does not have to be met."""
    blown = da.Lagrangian(lambda q, v: v @ v / 2 + 2 * q[0] ** 3, dim=1)
    task = _path.Task(blown, da.simulate(blown, da.Gauss(2), q0=[1.0], v0=[2.0], h=0.1, steps=0).start, 3.0, 1e-6)
    made, make = [], _path.make_run
    monkeypatch.setattr(_path, "make_run", lambda *given, **options: made.append(make(*given, **options)) or made[-1])
    flown = _pilot.pilot(task, da.Gauss(2), 0.09, 33)
    coarse, fine = made
    assert flown.reason and flown.t[-1] < 1.1
    assert 0 < fine.steps_done <= 2 * coarse.steps_done < 33


def test_close_passages_are_not_taken_for_chaos():
    """Twelve and a half periods of an orbit with e = 0.98 from its apocentre end at the pericentre."""
    orbit, e = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.hypot(q[0], q[1]), dim=2), 0.98
    start = {"q0": [1 + e, 0.0], "p0": [0.0, np.sqrt((1 - e) / (1 + e))]}
    run = da.simulate(orbit, da.LobattoIIIAB(4), **start, t1=25 * np.pi, rtol=1e-3, save_every=50)
    mean = (run.t + np.pi) % (2 * np.pi)
    u = np.array([brentq(lambda u, M=M: u - e * np.sin(u) - M, -0.1, 6.4, xtol=1e-15, rtol=1e-15) for M in mean])
    exact = np.column_stack([e - np.cos(u), -np.sqrt(1 - e**2) * np.sin(u)])
    assert relative_error(run, exact) < 1e-3


@pytest.mark.parametrize("rtol", [1e-2, 1e-3])
def test_passages_at_which_larger_steps_part_are_not_taken_for_singularities(rtol):
    """From the apocentre, with a pericentre at 0.01: steps up to 300 times larger than those that pass it end there."""
    orbit, e = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.hypot(q[0], q[1]), dim=2), 0.99
    start = {"q0": [1 + e, 0.0], "p0": [0.0, np.sqrt((1 - e) / (1 + e))]}
    run = da.simulate(orbit, da.LobattoIIIAB(3), **start, t1=2 * np.pi, rtol=rtol)
    rows = np.unique(np.append(np.arange(0, len(run), 7), len(run) - 1))
    u = np.array([brentq(lambda u, M=M: u - e * np.sin(u) - M, 0.0, 10.0, xtol=1e-15) for M in run.t[rows] + np.pi])
    exact = np.column_stack([e - np.cos(u), -np.sqrt(1 - e**2) * np.sin(u)])
    true = np.max(np.abs(run.q[rows] - exact) / np.abs(exact).max(axis=0))
    assert true < run.error < rtol


def test_friction_at_walls():
    """A block that bounces twice: impacts without loss turn v_y round, and take 2 mu v_y of v_x."""
    block = da.Lagrangian(lambda q, v: 0.1 * v @ v - 0.2 * 9.81 * q[1], dim=2, unilateral=lambda q: q[1], friction=0.5)
    run = da.simulate(block, q0=[0, 0.05], v0=[2.0, 0], t1=0.45, rtol=1e-6)
    landed = np.sqrt(2 * 0.05 / 9.81)
    lost = 2 * 0.5 * 9.81 * landed
    x = 2.0 * run.t - sum(lost * np.maximum(run.t - when, 0) for when in (landed, 3 * landed))
    assert "CVA" in run.method and np.abs(run.q[:, 0] - x).max() / x.max() < 1e-6
    space = da.Lagrangian(lambda q, v: v @ v - 2 * 9.81 * q[2], dim=3, unilateral=lambda q: q[2], friction=0.5)
    with pytest.raises(da.UnsupportedSystem, match=r"give h= in place of rtol="):
        da.simulate(space, q0=[0, 0, 1], v0=[1, 0, 0], t1=0.5, rtol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rtol": 1e-6}, "needs the time until which it is to hold: give t1="),
        ({"rtol": 1e-6, "t1": 1.0, "h": 0.1}, "rtol= chooses h, so that h= cannot be given"),
        ({"rtol": 1e-6, "steps": 10}, "so that steps= cannot be given"),
        ({"atol": 0.0, "t1": 1.0}, "atol must be a positive number"),
        ({"rtol": -1e-6, "t1": 1.0}, "rtol must be a positive number"),
        ({"rtol": 0.5, "t1": 1.0}, "less than 0.1"),
        ({"rtol": 1e-6, "t1": 1.0, "newton_tolerance": 1e-3}, "newton_tolerance spoils"),
        ({"atol": "x", "t1": 1.0}, "atol must be a positive number"),
    ],
)
def test_what_is_asked_must_make_sense(arguments, sentence):
    with pytest.raises(da.DalembertError, match=re.escape(sentence)):
        da.simulate(KEPLER, **kepler_start(), **arguments)


def test_suggest_asks_for_a_tolerance():
    with pytest.raises(da.DalembertError, match=r"give rtol=, such as 1e-6, or atol="):
        da.suggest(KEPLER, **kepler_start(), t1=1.0)


def test_runs_that_never_agree_are_said_to_part(monkeypatch):
    monkeypatch.setattr(_pilot, "LOST", 0.0)  # no error is small enough
    with pytest.raises(ToleranceError, match=r"no step size makes even the first steps: runs with h = .* part from t = 0 on"):
        da.suggest(KEPLER, da.Rattle(), **kepler_start(), t1=1.5, rtol=1e-6)


@pytest.mark.parametrize("m", [1.0, 2.0**-13, 2.0**80])
def test_units_of_mass_do_not_matter(m):
    """From the apocentre of an orbit with e = 0.9 past the pericentre, against Kepler's equation."""
    system = da.Hamiltonian(lambda q, p, m: p @ p / (2 * m) - m / np.hypot(q[0], q[1]), dim=2, params={"m": m})
    given = {"q0": [1.9, 0.0], "p0": [0.0, m * np.sqrt(0.1 / 1.9)], "t1": 4.0, "rtol": 1e-11}
    run = da.simulate(system, **given)
    u = [brentq(lambda u, M=M: u - 0.9 * np.sin(u) - M, 3, 9, xtol=1e-15, rtol=1e-15) for M in np.pi + run.t]
    exact = -np.column_stack([np.cos(u) - 0.9, np.sqrt(1 - 0.9**2) * np.sin(u)])
    assert relative_error(run, exact) <= 1e-11


def test_changes_of_a_start_keep_to_the_constraints_and_do_not_depend_on_units():
    """A pendulum that leaves its upper rest: changes of its angle grow like e^t, whatever its mass is."""
    grown = []
    for m in (1.0, 2.0**-13, 2.0**60):
        system = da.Hamiltonian(lambda q, p, m: p @ p / (2 * m) + m * q[1], dim=2, holonomic=lambda q: [q @ q - 1],
                                params={"m": m})  # fmt: skip
        task = _path.Task(system, da.consistent(system, q0=[1e-4, 1.0], p0=[0, 0]), 6.0, 1e-8)
        flown = _pilot.pilot(task, da.LobattoIIIAB(4), 0.1, 60)
        grown.append(amplification(task, flown))
    # The angle and its rate, which become equally large, are changed by the same: by d = d cosh t + d sinh t later.
    assert grown[0] == pytest.approx(np.exp(6.0), rel=0.02)
    assert grown[1:] == pytest.approx(grown[:1] * 2, rel=1e-3)


def test_pilots_of_long_runs_are_short_and_small():
    """The phase of Kepler orbits errs with t h^2 by RATTLE, which a part of the motion shows."""
    found = da.suggest(KEPLER, da.Rattle(), **kepler_start(), t1=1000.0, rtol=1e-6)
    assert len(found.pilot.t) < 5000 and found.pilot.largest.shape == (4,)
    run = da.simulate(KEPLER, da.Rattle(), **kepler_start(), t1=30.0, h=2e-4, save_every=150)
    true = relative_error(run, kepler_exact(run.t)) * 1000 / 30 * (found.h / run.h) ** 2
    assert true / 1.5 < found.error < 1.5 * true


# -- around it -----------------------------------------------------------------------------------------------------------


def test_choices_are_remembered_for_equal_models(monkeypatch):
    first = da.suggest(KEPLER, **kepler_start(), t1=5.0, rtol=1e-6)
    monkeypatch.setattr(_path, "make_run", None)  # nothing more is run
    again = da.Hamiltonian(lambda q, p, m, k: p @ p / (2 * m) - k / np.hypot(q[0], q[1]), dim=2, params={"m": 0.2, "k": 3.0})
    assert da.suggest(again, **kepler_start(), t1=5.0, rtol=1e-6) is first
    assert str(first) == first.reason and str(first.method) in first.reason


def test_threads_may_forget_what_others_look_up(monkeypatch):
    """Room for one model, and two of them in turn, each looked up while the other is written."""

    class Slow(Recent):
        def __contains__(self, key):
            found = super().__contains__(key)
            time.sleep(2e-3)
            return found

    monkeypatch.setattr(_choice, "_remembered", Slow(1))
    monkeypatch.setattr(_choice, "_key", lambda task, method: (id(task),))
    monkeypatch.setattr(_choice, "_choose", lambda task, methods: task)
    monkeypatch.setattr(_choice, "family", lambda system: ())
    tasks = [SimpleNamespace(system=None) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        chosen = list(pool.map(lambda k: _choice.choose(tasks[k // 3 % 2], None), range(60)))
    assert chosen == [tasks[k // 3 % 2] for k in range(60)]


def test_saved_and_stored_runs(tmp_path):
    run = da.simulate(KEPLER, **kepler_start(), t1=5.0, rtol=1e-6)
    loaded = da.load(run.save(tmp_path / "run.npz"))
    assert (loaded.error, loaded.choice) == (run.error, run.choice)
    stored = da.simulate(KEPLER, **kepler_start(), t1=5.0, rtol=1e-6, save_to=tmp_path / "run.zarr")
    assert stored.error == run.error and np.array_equal(stored.q, run.q)
    loaded = da.load(tmp_path / "run.zarr")
    assert (loaded.error, loaded.choice) == (stored.error, stored.choice) and loaded.error is not None
    longer = da.resume(tmp_path / "run.zarr", KEPLER, run.solver, steps=run.stats["steps"] + 10)
    assert (longer.error, longer.choice) == (None, "") == (da.load(tmp_path / "run.zarr").error, longer.choice)


def test_estimates_need_whole_runs_and_their_method(tmp_path, monkeypatch):
    monkeypatch.setattr(_stored_run, "CHUNK_NUMBERS", 40)  # ten rows a chunk
    given = kepler_start() | {"h": 0.01, "steps": 25, "save_to": tmp_path / "run.zarr"}
    stored = da.simulate(KEPLER, da.Rattle(), **given)
    for part in stored.chunks():
        with pytest.raises(da.DalembertError, match=r"a part of a run.*give the whole run"):
            da.verify.error(part)
    with pytest.raises(da.DalembertError, match=r"loaded without its method.*da\.resume\(path, system, method\)"):
        da.verify.error(da.load(tmp_path / "run.zarr", KEPLER))
    again = da.resume(tmp_path / "run.zarr", KEPLER, da.Rattle())
    assert np.array_equal(da.verify.error(again).q, da.verify.error(stored).q)


def test_pilots_and_estimates_have_a_progress_line():
    run = da.simulate(KEPLER, da.Rattle(), **kepler_start(), h=1e-3, steps=10)
    for call in (lambda: da.verify.error(run, progress="on"), lambda: da.suggest(KEPLER, progress="on")):
        with pytest.raises(da.InputError, match="progress is True, False, or None"):
            call()


def test_estimates_of_runs_that_are_there():
    for method, steps in ((da.LobattoIIIAB(3), 400), (da.CVA(da.Gauss(2)), 400), (da.Rattle(), 2000)):
        walls = {"unilateral": lambda q: q[0] + 10} if isinstance(method, da.CVA) else {}
        system = da.Hamiltonian(lambda q, p, m, k: p @ p / (2 * m) - k / np.hypot(q[0], q[1]), dim=2,
                                params={"m": 0.2, "k": 3.0}, **walls)  # fmt: skip
        run = da.simulate(system, method, **kepler_start(), t1=4.0, h=4.0 / steps, save_every=5)
        estimate, true = da.verify.error(run), np.abs(run.q - kepler_exact(run.t))
        assert estimate.q.shape == run.q.shape and estimate.order == min(method.order_unconstrained.values())
        assert estimate.q.max() == pytest.approx(true.max(), rel=0.1) and str(estimate.order) in str(estimate)
        assert estimate.relative == pytest.approx(relative_error(run, kepler_exact(run.t)), rel=0.1)


def test_estimates_of_runs_with_controls():
    mass = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=1, force=lambda u: [u], params={"u": 0.0})
    controls = {"u": np.sin(np.arange(50))}
    run = da.simulate(mass, da.Rattle(), q0=[1.0], v0=[0.0], h=0.1, steps=100, controls=controls)
    exact = da.simulate(mass, da.Gauss(6), q0=[1.0], v0=[0.0], h=0.1, steps=100, controls=controls)
    assert da.verify.error(run).q.max() == pytest.approx(np.abs(run.q - exact.q).max(), rel=0.05)


def test_estimates_need_a_model(tmp_path):
    run = da.simulate(KEPLER, da.Rattle(), **kepler_start(), h=0.01, steps=10)
    with pytest.raises(da.DalembertError, match="without its model"):
        da.verify.error(da.load(run.save(tmp_path / "run.npz")))


KINDS = {
    "pendulum": "LobattoIIIAB", "bouncing_ball": "CVA", "skate": "GaussLobattoSPARK", "index_two_growth": "SRK",
    "mass_on_surface": "compose",
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_the_usual_method_is_taken_if_none_is_named(name):
    problem = getattr(da.problems, name)()
    run = da.simulate(problem, steps=5)
    assert KINDS[name] in run.method and run.status == "done" and run.h == problem.h and run.error is None


def test_the_usual_method_with_friction():
    block = da.Lagrangian(lambda q, v: v @ v - 2 * 9.81 * q[1], dim=2, unilateral=lambda q: q[1], friction=0.5)
    assert "NonsmoothRattle" in da.simulate(block, q0=[0, 1], v0=[1, 0], h=0.01, steps=5).method
    assert all(isinstance(method, da.CVA) for method in family(block))


def test_ctrl_c_while_a_run_is_compared_keeps_the_run(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    given = kepler_start() | {"t1": 4.5, "rtol": 1e-6}
    whole = da.simulate(KEPLER, **given)
    monkeypatch.setattr(_accurate.Comparison, "verdict", interrupted)
    run = da.simulate(KEPLER, **given)
    assert np.array_equal(run.q, whole.q) and run.error is None and "interrupted before it was compared" in run.choice


# -- ensembles -----------------------------------------------------------------------------------------------------------


def orbits(e, a=1.5):
    """Pericentres of Kepler orbits with these eccentricities."""
    speed = np.sqrt(3.0 / 0.2 * (1 + e) / (a * (1 - e)))
    return {"q0": np.stack([a * (1 - e), 0 * e], axis=1), "p0": 0.2 * np.stack([0 * e, speed], axis=1)}


@pytest.mark.parametrize("method", [None, da.LobattoIIIAB(4)])
def test_every_member_is_as_exact_as_asked(method, monkeypatch):
    eccentricities = np.array([0.2, 0.1, 0.75, 0.3, 0.4])
    runs = da.simulate_many(KEPLER, method, **orbits(eccentricities), t1=9.0, rtol=1e-7)
    assert set(runs.status) == {"done"} and runs.error.shape == (5,) and "for all members" in runs.choice
    for run, e in zip(runs, eccentricities, strict=True):
        monkeypatch.setattr("test_tolerances.E", e)
        true = relative_error(run, kepler_exact(run.t))
        assert true <= 1e-7 and run.error <= 1e-7 and (run.error < 1e-12 or true / 3 < run.error < 3 * true)
    assert np.argmax(runs.error) == 2 and (method is None or runs.method == str(method))


def test_ensembles_to_a_tolerance_know_reductions_stores_and_failures(tmp_path):
    e = np.array([0.2, 0.5])
    given = orbits(e) | {"t1": 4.0, "rtol": 1e-6}
    runs = da.simulate_many(KEPLER, **given, reduce="energy", save_to=tmp_path / "sweep.zarr")
    assert runs.reduced["energy"].range.max() < 1e-4 and runs.q.shape[1] > 30 and runs.error.max() < 1e-6
    loaded = da.load(tmp_path / "sweep.zarr")
    assert np.array_equal(loaded.q, runs.q) and np.array_equal(loaded.error, runs.error) and loaded.choice == runs.choice
    fall = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.hypot(q[0], q[1]), dim=2)
    with pytest.raises(ToleranceError, match=r"member 1: the step sizes that were tried, .*do not lead past t = "):
        da.simulate_many(fall, q0=[[1.0, 0.0], [1.0, 0.0]], p0=[[0.0, 1.0], [0.0, 0.0]], t1=2.0, rtol=1e-6)
    with pytest.raises(da.InputError, match="so that h= cannot be given"):
        da.simulate_many(KEPLER, **given, h=0.1)


def test_an_ensemble_without_a_method_takes_the_usual_one():
    runs = da.simulate_many(da.problems.pendulum(), params={"g": [1.0, 2.0]}, steps=5)
    assert runs.method == str(da.LobattoIIIAB()) and runs.error is None


def test_a_relative_tolerance_may_be_zero():
    one, other = (da.suggest(KEPLER, **kepler_start(), t1=4.0, atol=1e-6, **more) for more in ({}, {"rtol": 0}))
    assert other.h == one.h
    with pytest.raises(da.InputError, match="rtol must be a positive number"):
        da.suggest(KEPLER, **kepler_start(), t1=4.0, rtol=0)


def test_a_store_that_is_not_exact_enough_is_made_again(tmp_path, monkeypatch):
    """The orbit whose pericentre pilots misjudge: its first store does not stay."""
    e = 0.95
    orbit = da.Hamiltonian(lambda q, p: p @ p / 2 - 1 / np.hypot(q[0], q[1]), dim=2)
    start = {"q0": [1 - e, 0.0], "p0": [0.0, np.sqrt((1 + e) / (1 - e))], "t1": 2 * np.pi * 1.01, "rtol": 1e-6}
    found = da.suggest(orbit, **start)
    run = da.simulate(orbit, **start, save_to=tmp_path / "run.zarr")
    u = np.array([brentq(lambda u, M=M: u - e * np.sin(u) - M, M - 1.1, M + 1.1, xtol=1e-15, rtol=1e-15) for M in run.t])
    true = relative_error(run, np.column_stack([np.cos(u) - e, np.sqrt(1 - e**2) * np.sin(u)]))
    assert true < 1e-6 and run.error < 1e-6 and abs(run.h) < abs(found.h)
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".zarr"] == ["run.zarr"]
    monkeypatch.setattr(_accurate, "TRIALS", 1)
    with pytest.raises(ToleranceError, match="times what was asked for"):
        da.simulate(orbit, **(start | {"t1": 2 * np.pi * 1.02}), save_to=tmp_path / "other.zarr")
    assert not (tmp_path / "other.zarr").exists()


def test_the_choice_depends_on_what_is_asked_alone():
    """Neither on the step size that a problem brings, nor on runs made before, nor on what is stored."""
    problem = da.problems.double_pendulum()
    asked = {"rtol": 1e-6, "t1": 10.0}
    found = [da.suggest(replace(problem, h=h), **asked) for h in (1e-4, 1e-2)]
    run = da.simulate(replace(problem, h=1e-3), **asked, save_every=10**6, progress=False)
    again = da.simulate(problem, **asked, progress=False)
    assert found[0].h == found[1].h
    assert run.stats["steps"] == again.stats["steps"] and np.array_equal(run.q[-1], again.q[-1])


def test_a_signal_while_a_run_is_compared_leaves_the_run(monkeypatch):
    """A true Ctrl-C, which is remembered until the end of a preparation for what CasADi may make of it."""
    monkeypatch.setattr(_accurate.Comparison, "verdict", lambda self: signal.raise_signal(signal.SIGINT))
    run = da.simulate(KEPLER, da.LobattoIIIAB(3), **kepler_start(), t1=2.0, rtol=1e-5)
    assert run.error is None and "interrupted before it was compared" in run.choice


def test_a_signal_while_members_are_compared_leaves_the_runs(monkeypatch):
    monkeypatch.setattr(_accurate_many, "compared", lambda *_: signal.raise_signal(signal.SIGINT))
    start = kepler_start()
    runs = da.simulate_many(KEPLER, da.LobattoIIIAB(3), q0=[start["q0"]] * 2, p0=[start["p0"]] * 2, t1=2.0, rtol=1e-5)
    assert runs.error is None and set(runs.status) == {"done"}
