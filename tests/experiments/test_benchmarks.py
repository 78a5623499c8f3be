"""The field's benchmarks: what must fail fails, the harness, and the certified digits against those that were published."""

import functools
import shutil
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from experiment_data import scaled

import dalembert as da
from dalembert import experiments
from dalembert.experiments.benchmarks import _benchmark, _motion, _peers, _references, _shown
from dalembert.experiments.benchmarks.records import RECORDS, energy_drift
from dalembert.reproduction import _results
from dalembert.tableaux import gauss

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "problems"))
import published_digits as published

PEERS = tuple(_peers.PEERS)


def wrong(record):
    """Data that must fail; that errors fall is claimed of methods with several numbers of steps."""
    cases = {
        "an error above the target": lambda data: {"error": np.maximum(data["error"], 2 * record.target)},
        "no run that reaches the end": scaled("error", np.inf),
    }
    if any(len(numbers) > 1 for _, numbers in record.runs):
        cases["errors that do not fall"] = lambda data: {"error": np.full_like(data["error"], record.target)}
    return cases


WRONG = {f"benchmarks.{record.name}": wrong(record) for record in RECORDS}

PUBLISHED = {  # digits that were published, and how far they are right
    "car_axis": (published.CAR_AXIS[:4], slice(0, 4), 3e-13),
    "andrews": (published.ANDREWS[:7], slice(0, 7), 3e-9),
    "slider_crank": (published.CRANK_U, slice(3, 7), 1e-11),
    "fekete": (published.FEKETE_Z, slice(2, None, 3), 1e-11),
    "wheelset": (published.WHEELSET, slice(0, 5), 5e-9),
    "pleiades": (published.PLEIADES_Q.T.ravel(), slice(0, 14), 2e-12),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_certified_digits_begin_with_the_published_ones(name):
    right, part, tolerance = PUBLISHED[name]
    np.testing.assert_allclose(_references.reference(name)[part], right, rtol=0, atol=tolerance)


def test_every_reference_says_how_it_was_made_and_is_used():
    known = _references.references()
    assert set(known) <= {record.name for record in RECORDS}
    for name, entry in known.items():
        record = next(record for record in RECORDS if record.name == name)
        assert entry["t"] == record.t1 and name in entry["command"] and len(entry["methods"]) == 2
        assert entry["agreement"] <= 0.1 * record.target
        start = record.problem().q0 if name != "wheelset" else record.problem().y0
        assert len(entry["values"]) == (len(start) if name != "bricard" else 3 * 10)  # a point at ten times


@pytest.mark.parametrize("name", _references.references())
def test_two_methods_agree_to_thirteen_digits(name):
    entry = _references.references()[name]
    assert entry["digits"] > 16 and entry["relative"] < 1e-13


@pytest.mark.parametrize(
    ("name", "method", "steps", "tolerance"),
    [
        ("pendulum", da.LobattoIIIAB(8), 600, 1e-12),
        ("andrews", da.LobattoIIIAB(6), 1000, 2e-12),
        ("car_axis", da.LobattoIIIAB(8), 300, 1e-14),
        ("governor", da.RadauIIA(5), 4000, 1e-11),
    ],
)
def test_certified_digits_are_those_of_this_library_as_far_as_doubles_have_them(name, method, steps, tolerance):
    """Its methods and those of the references share the equations of the model, and nothing else."""
    record = next(record for record in RECORDS if record.name == name)
    run = _benchmark.stepped(record.problem(), method, record.t1, steps, 2)
    np.testing.assert_allclose(run.y[-1], _references.reference(name), rtol=0, atol=tolerance)


def test_the_certified_place_of_the_forty_linkages_is_that_of_elliptic_functions():
    """Of SciPy in the problem's own `exact`, and of mpmath here with 30 digits."""
    import mpmath

    with mpmath.workdps(30):
        w2, least = mpmath.mpf(9.81) * (mpmath.mpf(41) / 2 + 40) / (mpmath.mpf(41) / 3 + 40), mpmath.mpf(1) / 4
        W, m = mpmath.sqrt(least + w2), w2 / (least + w2)
        u = 20 * W - mpmath.ellipk(m)
        s, c = mpmath.ellipfun("sn", u, m=m), mpmath.ellipfun("cn", u, m=m)
        found = [-2 * s * c, s**2 - c**2]  # sin and cos of th = pi + 2 am
        entry = _references.references()["four_bars"]["values"]
        assert all(abs(x - mpmath.mpf(right)) < 1e-16 for x, right in zip(found, entry[:2], strict=True))
    exact = da.problems.n_four_bar(loops=40).exact(np.array([20.0]))["q"][0]
    np.testing.assert_allclose(exact, _references.reference("four_bars"), rtol=0, atol=1e-11)


@pytest.fixture
def in_double_double():
    if not shutil.which("g++"):
        pytest.skip("references are compiled by g++")
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
    from double_double import DoubleDouble

    return DoubleDouble


def test_a_switch_that_is_passed_twice_within_a_step_is_found(in_double_double):
    """x'' = max(sin t, c) with c next to 1: x(T) = c T^2 / 2 + (T - t_k) (2 sin d - 2 c d) for each peak t_k, cos d = c."""
    import mpmath

    c, end = 1 - 2.0**-20, 20.0
    forced = da.Lagrangian(
        lambda q, v: v @ v / 2 - q[0] ** 2 / 2, dim=2, force=lambda q, v: np.array([0.0, np.maximum(q[0], c)])
    )
    start = {"q0": np.zeros(2), "v0": np.array([1.0, 0.0])}
    solver = in_double_double(da.problems.Problem("x", "x", "x", forced, **start, h=0.1, steps=10))
    one, grid = solver.extrapolated(end, 8, 1e-18)
    other, _ = solver.collocated(gauss(6), grid, 3, stop=1e-20)
    with mpmath.workdps(30):
        d = mpmath.acos(c)
        peaks = sum(end - mpmath.pi * (4 * k + 1) / 2 for k in range(3))
        exact = mpmath.mpf(c) * end**2 / 2 + peaks * 2 * (mpmath.sin(d) - c * d)
        assert len(grid.events) == 6 and 2 * d < 0.003 < 0.1 < np.diff(grid.times).max()
        assert max(abs(found[1] - exact) for found in (one, other)) < 1e-16


def test_certified_digits_can_be_made_again(in_double_double):
    """In double-double arithmetic, of the smallest problem."""
    record = next(record for record in RECORDS if record.name == "pendulum")
    solver = in_double_double(record.problem())
    one, grid = solver.extrapolated(record.t1, 8, 1e-18)
    other, _ = solver.collocated(gauss(6), grid, 3, stop=1e-20)
    for found in (one, other):
        pairs = zip(solver.positions(found), _references.references()["pendulum"]["values"], strict=True)
        assert all(abs(x - solver.mp.mpf(right)) < 1e-16 for x, right in pairs)


@pytest.mark.parametrize(("tool", "package", "order"), [(PEERS[5], "exudyn", 2), (PEERS[7], "mujoco", 4)])
def test_programs_for_bodies_solve_the_same_problem_with_their_orders(tool, package, order):
    """Energy of a pendulum, by 400 and 1600 steps."""
    pytest.importorskip(package)
    record, peer = next(record for record in RECORDS if record.name == "pendulum"), _peers.PEERS[tool]
    solve = peer.prepare(*record.bodies.build(), np.linspace(0.0, record.t1, 11), 10.0)
    errors = [record.bodies.error(solve(steps)) for steps in (400, 1600)]
    assert 4 ** (order - 0.2) < errors[0] / errors[1] and errors[1] < 2e-3


def test_programs_for_bodies_find_the_certified_angles_of_andrews_mechanism():
    pytest.importorskip("mujoco")
    record = next(record for record in RECORDS if record.name == "andrews")
    solve = _peers.PEERS[PEERS[7]].prepare(*record.bodies.build(), np.linspace(0.0, record.t1, 3), 10.0)
    assert record.bodies.error(solve(1600)) < 1e-5


@functools.cache
def small():
    """A pendulum, by a coarse and a fine run of two methods, beside SciPy."""
    runs = ((da.Rattle(), (100,)), (da.LobattoIIIAB(4), (200, 400)))
    problem = functools.partial(da.problems.pendulum, g=9.81)
    peers = ("SciPy DOP853, underlying ODE",)
    benchmark = _benchmark.Benchmark(
        "small", "a pendulum", problem, 10.0, runs, energy_drift, "J", ("X, 1 s",), peers, outputs=10
    )
    return benchmark, _benchmark.compute(benchmark, False)


def test_errors_and_times_are_measured():
    benchmark, data = small()
    ours = data["error"][:3]
    assert ours[0] > 1e-3 > ours[1] > 32 * ours[2] > 0  # of order 6, at least 5
    assert np.all((data["seconds"] > 0) & np.isfinite(data["seconds"]))
    assert all(check.passes for check in _benchmark.holds(benchmark, data))


def test_the_table_shows_the_fastest_of_each_accuracy_and_what_was_published():
    benchmark, data = small()
    head, *rows = _benchmark.table(benchmark, data)
    assert {len(row) for row in rows} == {len(head)}
    assert rows[0][0] == "dalembert Rattle()" and rows[0][3] == "-"  # order 2 does not reach 1e-9
    assert rows[3][0] == _shown.STEPS_ONLY and float(rows[3][1]) < float(rows[2][1].strip("*"))
    for k, target in enumerate(_shown.TARGETS, start=1):
        reached = [seconds for error, seconds in zip(data["error"], data["seconds"], strict=True) if error <= target]
        bold = [row[k] for row in rows if row[k].startswith("**")]
        assert bold == ([f"**{1e3 * min(reached):.3g}**"] if reached else [])
    assert rows[-1][0] == "X, 1 s" and rows[-1][-1] == "as published"


@pytest.mark.parametrize(
    ("errors", "failing"),
    [
        ([np.inf] * 3, "runs that reach the end"),
        ([1e-2, 1e-8, 2e-9], "least error"),
        ([1e-2, 1e-10, 1e-10], "error with the most steps over that with the fewest"),
        ([1e-2, 1e-10, np.inf], "error with the most steps over that with the fewest"),
    ],
)
def test_each_check_of_a_benchmark_can_fail_alone(errors, failing):
    benchmark, data = small()
    checks = list(_benchmark.holds(benchmark, dict(data) | {"error": np.array([*errors, *data["error"][3:]])}))
    assert [check.name.split(": ")[-1] for check in checks if not check.passes] == [failing]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_wrong_data_fail_whatever_the_target_of_a_benchmark_is(record):
    """On data that pass: errors that fall to a tenth of the target. The measured ones are tried in test_every_experiment."""
    rows = [(str(method), 0.1 ** (1 + k)) for method, numbers in record.runs for k in range(len(numbers))]
    good = {
        "tool": np.array([f"dalembert {method}" for method, _ in rows]),
        "error": record.target * np.array([error for _, error in rows]),
    }
    assert all(check.passes for check in _benchmark.holds(record, good))
    for change in wrong(record).values():
        assert not all(check.passes for check in _benchmark.holds(record, good | change(good)))


def test_peers_of_benchmarks_are_known_and_steps_become_more():
    default = _benchmark.Benchmark("x", "x", da.problems.pendulum, 1.0, (), energy_drift, "J")
    for record in (default, *RECORDS):
        assert record.peers == () or set(record.peers) <= set(_peers.PEERS)
        for _, numbers in record.runs:
            kinds = {type(steps) for steps in numbers}
            counted = [sum(n for _, n in steps) if isinstance(steps, tuple) else steps for steps in numbers]
            assert len(kinds) == 1 and counted == sorted(set(counted), reverse=kinds == {float})  # tolerances become less


def burn(seconds):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


def test_the_time_of_a_call_contains_what_is_before_and_after_its_steps(monkeypatch):
    """As the time of SciPy's solve_ivp does."""
    benchmark, data = small()
    assert np.all(data["steps"][:3] < data["seconds"][:3]) and np.all(data["steps"][3:] == np.inf)
    for name in ("prepared", "trajectory_of"):
        before = getattr(_benchmark, name)
        monkeypatch.setattr(_benchmark, name, lambda *given, before=before: burn(0.05) or before(*given))
    stats = _benchmark.stepped(benchmark.problem(), da.Rattle(), 1.0, 10, 2).stats
    assert stats["cpu_seconds"] - stats["step_seconds"] >= 0.1 and stats["step_seconds"] < 0.05


@pytest.mark.parametrize(("first", "made"), [(0.3, 4), (1.0, 3), (3.0, 1)])
def test_the_first_run_is_not_timed_and_long_ones_are_timed_less_often(monkeypatch, first, made):
    """Three times, twice, or not at all, where the first one of a peer took more than two seconds."""
    calls = []

    def solve(tolerance):
        calls.append(tolerance)
        return types.SimpleNamespace(stats={"cpu_seconds": first / len(calls)})

    peer = _peers.Peer("numpy", "numpy", lambda *_: solve, (1e-4,))
    monkeypatch.setitem(_peers.PEERS, "long", peer)
    benchmark = _benchmark.Benchmark("x", "x", da.problems.pendulum, 1.0, (), lambda _: 1e-3, "J", peers=("long",))
    data = _benchmark.compute(benchmark, True)
    assert len(calls) == made and data["seconds"] == [first / made] and data["steps"] == [np.inf]


def test_peers_seldom_look_at_the_clock(monkeypatch):
    """A look takes as long as a small right-hand side; one that is slow is still stopped soon."""
    forms = _peers.Formulations(da.problems.pendulum(), np.linspace(0, 1, 3), 1.0)
    now, looks = [0.0], []
    monkeypatch.setattr(_peers.time, "thread_time", lambda: looks.append(0) or now[0])
    call = forms._timed(lambda theta: theta)
    forms.start()
    for _ in range(100_000):
        call()
    assert len(looks) < 150
    forms.start()
    for made in range(100):  # a call takes 0.1 s
        now[0] += 0.1
        if made > 11:
            with pytest.raises(_motion.Timeout):
                [call() for _ in range(10)]
            break
        call()


def test_the_construction_of_a_solver_is_not_in_its_time(monkeypatch):
    ida = pytest.importorskip("sksundae.ida")

    class Slow(ida.IDA):
        def __init__(self, *given, **options):
            burn(0.2)
            super().__init__(*given, **options)

    monkeypatch.setattr(ida, "IDA", Slow)
    found = _peers.ida(da.problems.pendulum(), np.linspace(0.0, 0.01, 3), 10.0)(1e-4)
    assert found.stats["cpu_seconds"] < 0.2


def test_the_largest_drift_is_that_of_all_steps():
    """Against all states of `da.simulate`: at fifty of the instants of A03 the drift is smaller by more than a half."""
    record = next(record for record in RECORDS if record.name == "andrews_energy")
    method = da.LobattoIIIAB(4)
    rows = _benchmark.own(record, record.problem())
    row = next(row for row in rows if "stages=4" in row.tool and row.setting == "1000 steps")
    run = da.simulate(record.problem(), method, h=5e-5, steps=1000)
    balance = run.energy - run.energy[0] - 0.033 * (run.q[:, 0] - run.q[0, 0])
    assert row.error == pytest.approx(np.max(np.abs(balance)), rel=1e-3)
    assert row.error > 2 * np.max(np.abs(balance[::20]))
    assert all(record.every_step for record in RECORDS if record.measured.startswith("largest"))


def test_a_peer_that_takes_too_long_or_is_missing_says_so(monkeypatch):
    benchmark, _ = small()
    problem = benchmark.problem()
    (row,) = list(_benchmark.beside(benchmark, problem, 1e-4))[:1]
    assert row.message.startswith("stopped after") and row.error == np.inf
    missing = _peers.Peer("no_such_module", "no-such-package", _peers.ida, ())
    monkeypatch.setitem(_peers.PEERS, benchmark.peers[0], missing)
    (row,) = _benchmark.beside(benchmark, problem, 1.0)
    assert row.message == "not installed: pip install no-such-package"


def test_a_peer_that_fails_with_one_tolerance_is_tried_with_the_next(monkeypatch):
    def solve(tolerance):
        if tolerance > 1e-5:
            raise RuntimeError("too large")
        return types.SimpleNamespace(stats={"cpu_seconds": 0.1})

    monkeypatch.setitem(_peers.PEERS, "coarse", _peers.Peer("numpy", "numpy", lambda *_: solve, (1e-4, 1e-6)))
    benchmark = _benchmark.Benchmark("x", "x", da.problems.pendulum, 1.0, (), lambda _: 1e-3, "J", peers=("coarse",))
    rows = list(_benchmark.beside(benchmark, benchmark.problem(), 1.0))
    assert [row.message for row in rows] == ["RuntimeError: too large", ""] and rows[1].error == 1e-3


def changed_by(monkeypatch, name, old, new):
    """The benchmarks whose results would have to be measured again if files of this name had `new` in place of `old`."""
    chosen = [experiments.find(f"benchmarks.{each}") for each in ("car_axis", "fekete", "bricard", "andrews")]
    before, found = [_results.fingerprint(experiment) for experiment in chosen], []
    read_bytes, read_text = Path.read_bytes, Path.read_text

    def edited(path):
        found.append(path.name == name and old in read_bytes(path))
        return read_bytes(path).replace(old, new) if path.name == name else read_bytes(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", edited)
        patch.setattr(Path, "read_text", lambda path, **given: edited(path).decode() if path.name == name else read_text(path))
        after = [_results.fingerprint(experiment) for experiment in chosen]
    return any(found), {e.name.split(".")[1] for e, one, other in zip(chosen, before, after, strict=True) if one != other}


EVERY = {"car_axis", "fekete", "bricard", "andrews"}


@pytest.mark.parametrize(
    ("name", "old", "new", "measured_again"),
    [
        ("_run.py", b"self.system.combines", b"self.system.others", EVERY),  # what makes runs
        ("_run.py", b"class Run:", b"# a remark\nclass Run:", set()),
        ("_run.py", b"would run through the walls of this system", b"needs walls", set()),  # the words of an error
        ("_peers.py", b"SYMBOLIC, LONG = 3", b"SYMBOLIC, LONG = 4", EVERY),
        ("records.py", b"outputs=50", b"outputs=60", {"bricard"}),  # a record
        ("records.py", b"def at_end(", b"changed = 1\n\n\ndef at_end(", EVERY),  # what records share
        ("records.py", b"for n in (60, 120, 240)", b"for n in (60, 130, 240)", {"fekete"}),
        ("records.py", b"both are right to twelve", b"both are right to 12", set()),  # a remark
        ("fekete.toml", b"-0.407", b"-0.408", {"fekete"}),
        ("_rigid.py", b"class Body", b"class Changed", {"bricard", "andrews"}),  # bodies
        ("machines.py", b'm.start(), "bricard"', b'm.start(g=1), "bricard"', {"bricard"}),  # one problem of a file
        ("machines.py", b"v0=start.v", b"v0=None", {"bricard", "andrews"}),  # what problems of a file share
        ("machines.py", b"SQUEEZER_ANGLES", b"CHANGED", {"andrews"}),  # constants that a problem of another file takes
        ("machines.py", b"def gyroscope(", b"def another(", set()),
        ("ivp_test_set.py", b"m: float = 5e-4", b"m: float = 6e-4", {"car_axis"}),
    ],
)
def test_a_result_depends_on_its_problem_its_record_and_what_makes_runs_alone(monkeypatch, name, old, new, measured_again):
    assert changed_by(monkeypatch, name, old, new) == (True, measured_again)


def test_no_module_that_is_said_to_take_no_part_does():
    """Runs with each kind of steps, bodies and what peers are told, followed call by call in a process of their own."""
    code = """
import sys
from dalembert import problems
from dalembert.experiments.benchmarks import _benchmark, _bodies, _peers, _sources
from dalembert.methods import GaussLobattoSPARK, LobattoIIIAB, RadauIIA
import numpy as np

called = set()
follow = lambda frame, event, argument: called.add(frame.f_code.co_filename) if frame.f_code.co_name != "<module>" else None
sys.setprofile(follow)
for problem, method, steps in (
    (problems.pendulum(g=9.81), LobattoIIIAB(3), ((0.1, 4), (0.5, 8))),
    (problems.flyball_governor_in_angles(), RadauIIA(3), 10),
    (problems.flyball_governor_in_angles(), RadauIIA(3), 1e-3),
    (problems.slider_crank(), LobattoIIIAB(3), 10),
    (problems.ball_on_slope(), GaussLobattoSPARK(2), 10),
    (problems.index_two_growth(), RadauIIA(3), 1e-3),
):
    run = _benchmark.stepped(problem, method, problem.t0 + 0.5, steps, 2)
    assert run.status == "done", run.message
    problem.q0 is None or run.energy
_bodies.governor()
_peers.Formulations(problems.pendulum(), np.linspace(0, 1, 3), 1.0)
sys.setprofile(None)
out = {f"{room}/{stem}.py" for room, stems in _sources.ELSEWHERE.items() for stem in stems.split()}
assert all((_sources.LIBRARY / name).is_file() for name in out)
called = {name.removeprefix(f"{_sources.LIBRARY}/") for name in called}
assert {"runs/_arguments.py", "engine/_stepper.py", "compiler/_program.py", "systems/_consistent.py"} <= called
print(sorted(out & called))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_steps_of_several_sizes_end_where_equal_ones_do():
    problem = da.problems.pendulum(g=9.81)
    one = _benchmark.stepped(problem, da.LobattoIIIAB(5), 2.0, 200, 2)
    parts = _benchmark.stepped(problem, da.LobattoIIIAB(5), 2.0, ((0.5, 80), (2.0, 150)), 2)
    np.testing.assert_allclose(parts.q[-1], one.q[-1], atol=1e-11)
    assert parts.t[-1] == pytest.approx(2.0) and parts.stats["cpu_seconds"] > 0


def test_a_tolerance_in_place_of_a_number_of_steps_controls_them():
    """As `da.ControlledSteps` does, with one state at the end, and the rows of all tolerances under one name."""
    problem, method = da.problems.pendulum(g=9.81), da.GaussLobattoSPARK(3)
    run = _benchmark.stepped(problem, method, 2.0, 1e-6, 2)
    right = da.simulate(problem, da.ControlledSteps(method, rtol=1e-6, atol=1e-6), t1=2.0)
    assert len(run) == 2 and run.t[-1] == 2.0 and np.array_equal(run.q[-1], right.q[-1])
    benchmark = _benchmark.Benchmark("x", "x", lambda: problem, 2.0, ((method, (1e-4, 1e-6)),), energy_drift, "J", peers=())
    rows = list(_benchmark.own(benchmark, problem))
    assert [row.setting for row in rows] == ["tolerance 0.0001", "tolerance 1e-06"] and rows[1].error < 0.1 * rows[0].error
    assert {row.tool for row in rows} == {f"dalembert ControlledSteps({method})".replace("da.", "")}


def test_heyoka_solves_the_same_equations():
    pytest.importorskip("heyoka")
    problem, times = da.problems.car_axis(), np.linspace(0.0, 0.5, 3)
    found = _peers.heyoka(problem, times, 10.0)(1e-14)
    run = da.simulate(problem, da.LobattoIIIAB(6), h=0.005, t1=0.5)
    np.testing.assert_allclose(found.q[-1], run.q[-1], atol=1e-10)
