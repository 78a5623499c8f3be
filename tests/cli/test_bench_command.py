"""`dalembert bench`."""

import json

import pytest

import dalembert as da
from dalembert.cli import _bench


@pytest.fixture(autouse=True)
def few_runs(monkeypatch):
    """At least three runs, but not for half a second."""
    monkeypatch.setattr(_bench, "LONG_ENOUGH", 0.0)


def test_bench_measures_what_a_run_does(command):
    code, out, err = command("bench double_pendulum skate --method Rattle --method GaussLobattoSPARK --steps 2000 --json")
    rows = json.loads(out)
    pairs = [(problem, method) for problem in ("double_pendulum", "skate") for method in ("Rattle", "GaussLobattoSPARK")]
    assert code == 0 and not err and [(row["problem"], row["method"]) for row in rows] == pairs
    assert "cannot serve nonholonomic constraints" in rows[2]["error"]
    first = rows[0]
    run = da.simulate(da.problems.double_pendulum(), da.Rattle(), steps=2000)
    assert first["h"] == run.h and first["steps"] == 2000
    assert first["newton_iterations_per_step"] == pytest.approx(run.stats["newton_iterations"] / 2000)
    assert first["us_per_step"] * first["steps_per_second"] == pytest.approx(1e6)
    assert 0 < first["second_call_seconds"] < first["first_call_seconds"]  # the second compiles nothing


def test_bench_prints_a_table_and_refuses_what_cannot_be_measured(command):
    code, out, _ = command("bench pendulum --steps 500")
    assert code == 0 and "us/step" in out and "LobattoIIIAB" in out and len(out.splitlines()) == 2
    head, line = command("bench double_pendulum_at_wall_in_angles mass_on_surface --steps 10")[1].splitlines()[:2]
    assert line.startswith("double_pendulum_at_wall_in_angles  CVA  ") and head.index("method") == line.index("CVA")
    code, out, _ = command("bench skate --method Rattle")
    assert code == 1 and "cannot serve" in out
    code, _, err = command("bench mymodel.py:system")
    assert code == 2 and "without initial values" in err
