"""What takes longer than two seconds says what it is doing, on a terminal and nowhere else."""

import os
import select
import sys
import time

import pytest
from command_processes import process

from dalembert import _progress
from dalembert.cli import main

SLOW = """
import time
import numpy as np
import dalembert as da

time.sleep({module})
oscillator = da.Hamiltonian(lambda q, p: p @ p / 2 + q @ q / 2, dim=1)


def slow(q):
    time.sleep({drawing})
    return [da.draw.mass([q[0], 0.0])]


def problem():
    time.sleep({problem})
    quantity = lambda run: time.sleep({quantity}) or run.energy
    return da.problems.Problem("slow", "slow", "", oscillator, q0=np.ones(1), p0=np.zeros(1), h=0.1, steps=3,
                               conserved={{"slow": quantity}}, drawing=slow)
"""
CASES = {
    "building slow.py:problem": ({"module": 0.3}, "run slow.py:problem"),
    "building slow.py:problem, ": ({"problem": 0.3}, "run slow.py:problem"),
    "measuring the run": ({"quantity": 0.3}, "run slow.py:problem"),
    "writing run.png": ({"drawing": 0.1}, "run slow.py:problem --plot run.png"),
    "writing run.html": ({"drawing": 0.02}, "run slow.py:problem --animate run.html"),
    "building the models": ({"problem": 0.3}, "bench slow.py:problem --method Rattle --steps 2"),
    "measuring Rattle on problem": ({}, "bench slow.py:problem --method Rattle --steps 2"),  # half a second of runs
    "building the model, ": ({"problem": 0.3}, "explore slow.py:problem --port 70000"),
}


class Screen:
    """Standard error as a terminal."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


@pytest.mark.parametrize("line", CASES)
def test_every_part_of_a_command_says_what_it_is_doing(line, tmp_path, monkeypatch, capsys):
    waits, command = CASES[line]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_progress, "PATIENCE", 0.05)
    (tmp_path / "slow.py").write_text(SLOW.format(**dict.fromkeys(("module", "drawing", "problem", "quantity"), 0) | waits))
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    main(command.split())
    assert f"\r{line}" in screen.text
    quiet = Screen()
    quiet.isatty = lambda: False
    monkeypatch.setattr(sys, "stderr", quiet)
    main(command.split())
    assert "\r" not in quiet.text


TERMINAL = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@TERMINAL
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run slow.py:problem", "building slow.py:problem, 2 s"),
        ("list methods --for slow.py:problem", "reading the catalogue"),
        pytest.param("reproduce jay1996.figure5.6 --json --again", "running jay1996.figure5.6", marks=pytest.mark.slow),
        pytest.param("bench chain --method Rattle --steps 2000000", "measuring Rattle on chain", marks=pytest.mark.slow),
    ],
)
def test_commands_show_progress_on_a_terminal(line, said, tmp_path):
    import pty

    (tmp_path / "slow.py").write_text(SLOW.format(module=2.3, drawing=0, problem=0, quantity=0))
    ours, theirs = pty.openpty()
    running = process(line, cwd=tmp_path, stderr=theirs)
    os.close(theirs)
    shown, end = "", time.monotonic() + 120
    while said not in shown and time.monotonic() < end and select.select([ours], [], [], 60)[0]:
        try:
            shown += os.read(ours, 1000).decode()
        except OSError:  # the command is over
            break
    running.kill()
    running.communicate()
    os.close(ours)
    assert said in shown
