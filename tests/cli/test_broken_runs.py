"""Runs that fail or are interrupted, and files that cannot be written: what was computed is reported all the same."""

import json
import os
import select
import signal
import sys

import pytest
from command_processes import process

import dalembert as da


def test_a_failed_step_keeps_what_was_computed(command, here):
    line = "run mymodel.py:cusp --q0 1,1 --p0=-2,-3 --h 0.02 --steps 100 --save run.npz --plot run.png --json"
    code, out, err = command(line)
    report = json.loads(out)
    assert code == 1 and report["status"] == "failed" and "lose independence" in err and err.count("\n") == 1
    run = da.load("run.npz")
    assert run.status == "failed" and 5 < len(run) < 100 and report["steps"] == len(run) - 1
    assert (here / "run.png").exists()


def test_a_directory_in_place_of_a_file_is_refused_before_the_run(command, here):
    (here / "taken.png").mkdir()
    assert command("run pendulum --steps 2 --plot taken.png")[0] == 2


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a directory that nobody can write to")
def test_a_plot_that_cannot_be_written_does_not_lose_the_run(command, here):
    code, out, err = command("run pendulum --steps 2 --plot /proc/run.png --save run.npz")
    assert code == 1 and "could not be written" in err and "run.npz" in out and (here / "run.npz").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_is_shown_on_a_terminal_and_ctrl_c_keeps_what_was_computed(here):
    import pty

    ours, theirs = pty.openpty()
    line = "run double_pendulum --steps 1e9 --save-every 10000 --save run.npz --plot run.png --json"
    running = process(line, cwd=here, stderr=theirs)
    os.close(theirs)
    shown = ""
    while "steps" not in shown:  # the progress line, once two seconds have passed
        assert select.select([ours], [], [], 60)[0], "no progress was shown within a minute"
        shown += os.read(ours, 1000).decode()
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    while select.select([ours], [], [], 0)[0]:
        try:
            shown += os.read(ours, 1000).decode()
        except OSError:  # the other end is closed
            break
    os.close(ours)
    assert running.returncode == 130 and "1,000,000,000 steps" in shown and "interrupted after" in shown
    report = json.loads(out)
    run = da.load(here / "run.npz")
    assert report["status"] == run.status == "interrupted" and report["stored_states"] == len(run) > 2
    assert report["steps"] == round(run.t[-1] / run.h) > 10_000 and (here / "run.png").exists()


def test_a_reader_who_leaves_is_no_error(here):
    running = process("list --json")
    running.stdout.close()
    assert running.wait(timeout=60) in (0, 1)
    assert "Traceback" not in running.stderr.read()
    running.stderr.close()


# -- the code of users ---------------------------------------------------------------------------------------------------

TROUBLE = """
import dataclasses, os, signal
import numpy as np
import dalembert as da

def leave(q):
    os.kill(os.getpid(), signal.SIGINT)
    return [da.draw.rod([0, 0], q)]

plain = da.problems.pendulum()
drawn = dataclasses.replace(plain, drawing=lambda q: [da.draw.rod([0, 0], q[9])])
nothing = dataclasses.replace(plain, drawing=lambda q: None)
exits = dataclasses.replace(plain, drawing=lambda q: exit(4))
number = dataclasses.replace(plain, drawing=3)
missing = dataclasses.replace(plain, conserved={"L": lambda run: run.nothing, "r": lambda run: np.hypot(*run.q.T)})
scalar = dataclasses.replace(plain, conserved={"L": lambda run: 3.0})
infinite = dataclasses.replace(plain, conserved={"L": lambda run: run.t * np.inf})
stopped = dataclasses.replace(plain, drawing=leave)
"""


@pytest.fixture
def trouble(here):
    (here / "trouble.py").write_text(TROUBLE)
    return here


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("drawn", "trouble.py, line 11: IndexError: "),
        ("nothing", "a drawing returns a list of parts"),
        ("exits", "trouble.py, line 13: it calls sys.exit(4)"),
        ("number", "trouble.py: TypeError: "),
    ],
)
def test_an_error_in_a_drawing_does_not_lose_the_report(command, trouble, name, message):
    code, out, err = command(f"run trouble.py:{name} --steps 20 --plot run.png --animate run.html --save run.npz --json")
    assert code == 1 and json.loads(out)["files"] == ["run.npz"] and json.loads(out)["steps"] == 20
    lines = err.splitlines()
    assert len(lines) == 2 and all(line.startswith("dalembert: ") and message in line for line in lines)
    assert not (trouble / "run.png").exists() and not (trouble / "run.html").exists()


def test_an_error_in_a_conserved_quantity_does_not_lose_the_report(command, trouble):
    code, out, err = command("run trouble.py:missing --steps 20 --json")
    conserved = json.loads(out)["conserved"]
    assert code == 1 and conserved["L"] is None and conserved["r"] < 1e-14
    assert err.startswith("dalembert: the conserved quantity L could not be evaluated: trouble.py, line 15: AttributeError: ")
    assert err.count("\n") == 1
    code, out, err = command("run trouble.py:scalar --steps 20")
    assert code == 1 and "max change of L" in out and "conserved quantity L" in err and "Traceback" not in err


@pytest.mark.filterwarnings("ignore:invalid value")
def test_quantities_that_are_not_finite_are_null(command, trouble):
    code, out, _ = command("run trouble.py:infinite --steps 20 --json")
    assert code == 0 and json.loads(out, parse_constant=pytest.fail)["conserved"] == {"L": None}


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_while_a_film_is_drawn_does_not_lose_the_report(trouble):
    line = "run trouble.py:stopped --steps 20 --save run.npz --animate run.html --json"
    out, err = (running := process(line, cwd=trouble)).communicate(timeout=120)
    assert running.returncode == 130 and err == "dalembert: interrupted before run.html was written\n"
    report = json.loads(out)
    assert report["status"] == "done" and report["steps"] == 20 and report["files"] == ["run.npz"]
    assert len(da.load(trouble / "run.npz")) == 21 and not list(trouble.glob("*.html")) and not list(trouble.glob(".*"))


def test_ctrl_c_while_a_run_is_saved_does_not_lose_the_report(command, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(da.Trajectory, "save", interrupt)
    code, out, err = command("run pendulum --steps 20 --save run.npz --plot run.png")
    assert code == 130 and "max |H - H0|" in out and "run.npz" in err and not os.path.exists("run.png")


def test_a_run_without_a_step_cannot_be_filmed(command):
    code, out, err = command("run pendulum --steps 0 --animate run.html")
    assert code == 1 and "steps" in out and "a film needs a run of at least one step" in err
