"""`dalembert bench`."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import dalembert as da
from dalembert.cli._read import Model, Unusable, count, method, model, number
from dalembert.errors import DalembertError
from dalembert.methods import OneStepMethod

SUMMARY = "measure what a step costs on this machine"

DESCRIPTION = """\
Measure on this machine what methods cost: microseconds a step, Newton iterations a step, and the seconds that a first and a
second call of da.simulate take before their first step (the first compiles the model, the second does not).

Every PROBLEM is run by every --method, with the problem's own step size; without a problem, a few of each kind are. Each time
is the least of several runs of about half a second that store their last state only.
"""

EPILOG = """\
examples:
  dalembert bench                                                a few problems and methods
  dalembert bench double_pendulum                                one problem, with the method that run would take
  dalembert bench chain pendulum --method Rattle --method 'LobattoIIIAB(stages=4)'
  dalembert bench mymodel.py:problem --h 0.01 --json
"""

SELECTION = (
    ("pendulum", "Rattle"),
    ("double_pendulum", "Rattle"),
    ("double_pendulum", "LobattoIIIAB(stages=3)"),
    ("double_pendulum", "LobattoIIIAB(stages=6)"),
    ("double_pendulum", "RadauIIA(stages=2)"),
    ("chain", "LobattoIIIAB(stages=3)"),
    ("skate", "GaussLobattoSPARK(stages=2)"),
    ("mass_on_surface", "compose(SymplecticEuler, 2)"),
)
LONG_ENOUGH, REPETITIONS = 0.5, 3
HEADER = ("problem", "method", "h", "us/step", "iterations/step", "first call", "second call")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert bench`."""
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help="names of the catalogue, or mymodel.py:name")
    parser.add_argument("--method", metavar="NAME", action="append", default=[], help="may be repeated")
    parser.add_argument("--h", metavar="H", help="step size; the problem's own by default")
    parser.add_argument("--steps", metavar="N", help="number of steps; as many as take half a second by default")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Measure, print a table."""
    h, steps = number("--h", options.h), count("--steps", options.steps)
    pairs = [(model(problem, {}), method(name, None)) for problem, name in _pairs(options)]
    for chosen, _ in pairs:
        if chosen.problem is None:
            raise Unusable(f"{chosen.name} is a system without initial values: give a da.problems.Problem to measure")
    da.simulate(da.problems.pendulum(), da.Rattle(), steps=10)  # loads Numba and the drivers, which belong to no model
    rows = []
    if not options.json:
        print("  ".join((HEADER[0].ljust(20), HEADER[1].ljust(30), *(name.rjust(max(8, len(name))) for name in HEADER[2:]))))
    for chosen, stepper in pairs:
        row = measure(chosen, stepper, h, steps)
        rows.append(row)
        if not options.json:
            print(line(row), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
    return 0 if any("error" not in row for row in rows) else 1


def _pairs(options: argparse.Namespace) -> list[tuple[str, str]]:
    """The problems and methods to measure, as they are written."""
    from dalembert.cli._run import default_method

    if not options.problems and not options.method:
        return list(SELECTION)
    problems = options.problems or ["double_pendulum"]
    return [
        (problem, name)
        for problem in problems
        for name in (options.method or [default_method(model(problem, {}).system)])
    ]  # fmt: skip


def measure(chosen: Model, stepper: OneStepMethod, h: float | None = None, steps: int | None = None) -> dict[str, Any]:
    """The costs of one method on one problem; an `error` if it cannot be run."""
    row: dict[str, Any] = {"problem": chosen.name, "method": str(stepper).replace("da.", "")}
    problem = chosen.problem
    assert problem is not None
    try:
        calls = []
        for _ in range(2):
            began = time.perf_counter()
            run = da.simulate(problem, stepper, h=h, steps=1, progress=False)
            calls.append(time.perf_counter() - began)
        if steps is None:
            run = da.simulate(problem, stepper, h=h, steps=500, save_every=500, progress=False)
            steps = max(500, round(500 * LONG_ENOUGH / max(run.stats["wall_seconds"], 1e-6)))
        runs = [da.simulate(problem, stepper, h=h, steps=steps, save_every=steps, progress=False) for _ in range(REPETITIONS)]
    except DalembertError as error:
        return row | {"error": str(error)}
    best = min(runs, key=lambda run: run.stats["wall_seconds"])
    us = 1e6 * best.stats["wall_seconds"] / steps
    return row | {
        "h": best.h,
        "steps": steps,
        "us_per_step": us,
        "steps_per_second": 1e6 / us,
        "newton_iterations_per_step": best.stats["newton_iterations"] / steps,
        "first_call_seconds": calls[0],
        "second_call_seconds": calls[1],
    }


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    head = f"{row['problem']:<20}  {row['method']:<30}"
    if "error" in row:
        return f"{head}  {row['error']}"
    numbers = (
        f"{row['h']:.3g}".rjust(8),
        f"{row['us_per_step']:.2f}".rjust(8),
        f"{row['newton_iterations_per_step']:.2f}".rjust(15),
        f"{row['first_call_seconds']:.3f} s".rjust(10),
        f"{row['second_call_seconds']:.3f} s".rjust(11),
    )
    return "  ".join((head, *numbers))
