"""The field's benchmarks: what must fail fails, the harness, and the certified digits against those that were published."""

import functools
import sys
from pathlib import Path

import numpy as np
import pytest
from experiment_data import scaled

import dalembert as da
from dalembert.experiments.benchmarks import _benchmark, _peers
from dalembert.experiments.benchmarks.records import RECORDS, energy_drift

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "problems"))
import published_digits as published

WRONG = {
    f"benchmarks.{record.name}": {
        "an error above the target": lambda data: {"error": np.maximum(data["error"], 1e-8)},
        "no run that reaches the end": scaled("error", np.inf),
    }
    for record in RECORDS
}

PUBLISHED = {  # digits that were published, and how far they are right
    "car_axis": (published.CAR_AXIS[:4], slice(0, 4), 3e-13),
    "andrews": (published.ANDREWS[:7], slice(0, 7), 3e-9),
    "slider_crank": (published.CRANK_U, slice(3, 7), 1e-11),
    "fekete": (published.FEKETE_Z, slice(2, None, 3), 1e-11),
    "wheelset": (published.WHEELSET, slice(0, 5), 1e-7),
    "pleiades": (published.PLEIADES_Q.T.ravel(), slice(0, 14), 2e-12),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_certified_digits_begin_with_the_published_ones(name):
    right, part, tolerance = PUBLISHED[name]
    np.testing.assert_allclose(_benchmark.reference(name)[part], right, rtol=0, atol=tolerance)


def test_every_reference_says_how_it_was_made_and_is_used():
    known = _benchmark.references()
    assert set(known) <= {record.name for record in RECORDS}
    for name, entry in known.items():
        record = next(record for record in RECORDS if record.name == name)
        assert entry["t"] == record.t1 and name in entry["command"] and " and " in entry["by"]
        assert entry["agreement"] <= 0.1 * record.target
        start = record.problem().q0 if name != "wheelset" else record.problem().y0
        assert len(entry["values"]) == len(start)


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
    for k, target in enumerate(_benchmark.TARGETS, start=1):
        reached = [seconds for error, seconds in zip(data["error"], data["seconds"], strict=True) if error <= target]
        bold = [row[k] for row in rows if row[k].startswith("**")]
        assert bold == ([f"**{1e3 * min(reached):.3g}**"] if reached else [])
    assert rows[-1][0] == "X, 1 s" and rows[-1][-1] == "as published"


def test_wrong_data_of_a_benchmark_fail():
    benchmark, data = small()
    for change in next(iter(WRONG.values())).values():
        assert not all(check.passes for check in _benchmark.holds(benchmark, dict(data) | change(data)))


def test_a_peer_that_takes_too_long_or_is_missing_says_so(monkeypatch):
    benchmark, _ = small()
    problem = benchmark.problem()
    (row,) = list(_benchmark.beside(benchmark, problem, 1e-4))[:1]
    assert row.message.startswith("stopped after") and row.error == np.inf
    missing = _peers.Peer("no_such_module", "no-such-package", _peers.ida, ())
    monkeypatch.setitem(_peers.PEERS, benchmark.peers[0], missing)
    (row,) = _benchmark.beside(benchmark, problem, 1.0)
    assert row.message == "not installed: pip install no-such-package"


def test_steps_of_several_sizes_end_where_equal_ones_do():
    problem = da.problems.pendulum(g=9.81)
    one = _benchmark.stepped(problem, da.LobattoIIIAB(5), 2.0, 200, 2)
    parts = _benchmark.stepped(problem, da.LobattoIIIAB(5), 2.0, ((0.5, 80), (2.0, 150)), 2)
    np.testing.assert_allclose(parts.q[-1], one.q[-1], atol=1e-11)
    assert parts.t[-1] == pytest.approx(2.0) and parts.stats["cpu_seconds"] > 0


def test_heyoka_solves_the_same_equations():
    pytest.importorskip("heyoka")
    problem, times = da.problems.car_axis(), np.linspace(0.0, 0.5, 3)
    found = _peers.heyoka(problem, times, 10.0)(1e-14)
    run = da.simulate(problem, da.LobattoIIIAB(6), h=0.005, t1=0.5)
    np.testing.assert_allclose(found.q[-1], run.q[-1], atol=1e-10)
