"""`dalembert run` on problems of the catalogue: its report and its files."""

import json
import re

import numpy as np
import pytest

import dalembert as da
from dalembert.cli._numbers import value


def test_the_report_agrees_with_the_library(command):
    code, out, err = command("run double_pendulum --method Rattle --h 0.05 --steps 400 --set m2=3 --json")
    report = json.loads(out)
    run = da.simulate(da.problems.double_pendulum(m2=3), da.Rattle(), h=0.05, steps=400)
    assert code == 0 and not err
    assert report["steps"] == 400 and report["t1"] == run.t[-1] and report["status"] == "done"
    assert report["energy"]["max_error"] == np.max(np.abs(run.energy - run.energy[0]))
    assert report["energy"]["slope"] == pytest.approx(np.polyfit(run.t, run.energy, 1)[0], rel=1e-6)
    assert report["residuals"] == {name: np.max(np.abs(values)) for name, values in run.residuals.items()}
    assert report["newton_iterations_per_step"] == run.stats["newton_iterations"] / 400


def test_the_table_has_the_numbers_of_the_report(command):
    report = json.loads(command("run pendulum --steps 50 --json")[1])
    code, out, _ = command("run pendulum --steps 50")
    rows = dict(re.split("   *", line.strip(), maxsplit=1) for line in out.splitlines()[1:])
    assert code == 0 and out.startswith("planar pendulum, LobattoIIIAB(stages=3), h = 0.1\n")
    assert rows["max |H - H0|"] == f"{report['energy']['max_error']:.2e}"
    assert rows["max |g|"] == f"{report['residuals']['g']:.2e}"
    assert {"steps per second", "Newton iterations per step", "slope of H per unit time", "max |g_dot|"} <= set(rows)


def test_the_columns_of_the_table_stay_apart(command):
    report = json.loads(command("run heavy_top --steps 3 --json")[1])
    lines = command("run heavy_top --steps 3")[1].splitlines()[1:]
    longest = max(report["conserved"], key=len)
    (shown,) = (line for line in lines if f"max change of {longest}  " in line)
    assert (
        len(f"max change of {longest}") > 26
        and len({re.search(" {2,}(?=[^ ]+)(?!.*   )", line[2:]).end() for line in lines}) == 1
    )
    assert shown.endswith(f"{report['conserved'][longest]:.2e}")


def test_one_step_has_no_slope(command):
    assert json.loads(command("run pendulum --steps 1 --json")[1])["energy"]["slope"] is None
    assert re.search("slope of H per unit time +-\n", command("run pendulum --steps 1")[1])


def test_files_are_written_into_new_directories(command, here):
    code, out, err = command("run pendulum --steps 30 --save-every 10 --save a/b/run --plot c/run.pdf")
    assert code == 0 and err == "".join(
        f"dalembert: there was no directory {name}: it has been made\n" for name in ("a/b", "c")
    )
    run = da.load("a/b/run.npz")
    np.testing.assert_allclose(run.t, [0.0, 1.0, 2.0, 3.0])
    assert (here / "c/run.pdf").read_bytes().startswith(b"%PDF")
    assert "a/b/run.npz" in out and "c/run.pdf" in out


def test_a_tolerance_chooses_method_and_step_size(command):
    code, out, err = command("run pendulum --t1 5 --rtol 1e-7 --json")
    report = json.loads(out)
    run = da.simulate(da.problems.pendulum(), da.LobattoIIIAB(8), h=0.05, t1=5.0)
    chosen = da.simulate(da.problems.pendulum(), t1=5.0, rtol=1e-7)
    assert code == 0 and not err and report["error"] <= 1e-7 and report["method"] == chosen.method
    assert np.abs(chosen.q[-1] - run.q[-1]).max() <= 1e-7 and report["choice"] == chosen.choice
    rows = command("run pendulum --t1 5 --rtol 1e-7")[1]
    assert "estimated error" in rows and chosen.choice in rows
    code, _, err = command("run pendulum --rtol 1e-7 --h 0.1")
    assert code == 2 and "--rtol chooses h, so that --h cannot be given" in err and "=" not in err
    assert command("run pendulum --t1 5 --rtol 1e-4 --stages 3 --json")[1].count("LobattoIIIAB(stages=3)") == 2


def test_steps_by_their_error_need_no_step_size(command, here):
    (here / "bob.py").write_text(
        "import dalembert as da\nbob = da.Lagrangian(lambda q, v: 0.1 * v @ v - 5e4 * q @ q, dim=1, force=lambda v: -400 * v)\n"
    )
    stepper = "'ControlledSteps(RadauIIA(3), rtol=1e-6, atol=1e-9)'"
    code, out, err = command(f"run bob.py:bob --q0 1e-3 --v0 0 --t1 0.5 --method {stepper} --json")
    assert code == 0 and json.loads(out)["t1"] == 0.5, err


def test_initial_values_replace_those_of_the_problem(command):
    command("run pendulum --q0 -1,0 --v0 0,1/2 --steps 3 --save run.npz")
    run = da.load("run.npz")
    np.testing.assert_array_equal(run.q[0], [-1.0, 0.0])
    np.testing.assert_array_equal(run.p[0], [0.0, 0.5])
    command("run pendulum --q0 0,-1 --steps 3 --save run.npz")  # the problem's own momenta
    np.testing.assert_array_equal(da.load("run.npz").p[0], [0.0, 0.0])


def test_a_final_time_and_arithmetic(command):
    report = json.loads(command("run pendulum --h 1/50 --t1 2 --json")[1])
    assert (report["steps"], report["h"]) == (100, 0.02)
    assert value("2*sin(pi/6)") == pytest.approx(1.0) and value("-sqrt(4)") == -2.0 and value("5e3") == 5000.0
