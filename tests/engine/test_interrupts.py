"""Ctrl-C at random moments (benchmarks/interrupts.py in small): a run, KeyboardInterrupt or a DalembertError."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dalembert as da

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FEW = ("a fit", "building a mechanism", "time stepping")
MANY = ("import", "impacts and friction", "many spheres", "an ensemble with friction", "an ensemble by time stepping",
        "sensitivities through impacts", "an optimal control", "a gradient", "the start of a linkage", "a store",
        "crossings", "compiling a pendulum")  # fmt: skip


def told(call):
    """What a call of benchmarks/interrupts.py returns in a process of its own, because it forks children."""
    code = f"import json, interrupts; print(json.dumps(interrupts.{call}))"
    places = os.pathsep.join([str(BENCHMARKS), str(Path(da.__file__).parents[1])])
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=os.environ | {"PYTHONPATH": places}, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def test_ctrl_c_ends_whatever_is_under_way():
    """At random calls of Python functions, which a child marks: neither the machine nor its load matters."""
    found = told(f"kinds(6, {FEW}, seed=2)")
    assert sorted(found) == sorted(FEW)
    for name, ends in found.items():
        assert len(ends) == 6 and set(ends) <= {"returned", "KeyboardInterrupt", "DalembertError"}, (name, ends)


@pytest.mark.slow
def test_ctrl_c_ends_it_soon():
    """Seconds are those of the processor, others may be busy."""
    found = told(f"study(20, {FEW + MANY}, seed=2)")
    assert sorted(found) == sorted(FEW + MANY)
    for name, task in found.items():
        assert task["foreign"] == {} and sum(task["ends"].values()) >= 10, (name, task)
        assert not task["busy"] > 1.0, (name, task)
