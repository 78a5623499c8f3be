"""Measure what a step costs on this machine.

Measure on this machine what methods cost: microseconds a step, Newton iterations a step, and the seconds that a first and a
second call of da.simulate take before their first step (the first compiles the model, the second does not).

Every PROBLEM is run by every --method, with the problem's own step size and length; without any, a few pairs are. The cost of a
step is that of the fastest of the runs that fit into half a second, at least three, which store their last state only.

examples:
  dalembert bench                                                a few problems and methods
  dalembert bench double_pendulum                                one problem, with the method that run would take
  dalembert bench chain pendulum --method Rattle --method 'LobattoIIIAB(stages=4)'
  dalembert bench mymodel.py:problem --h 0.01 --json
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import dalembert as da
from dalembert._progress import busy
from dalembert.cli._json import as_json
from dalembert.cli._methods import default, method, spelled
from dalembert.cli._models import Model, model
from dalembert.cli._numbers import count, number
from dalembert.cli._user_code import UsageError
from dalembert.errors import DalembertError

if TYPE_CHECKING:
    from dalembert.methods import OneStepMethod
    from dalembert.runs._trajectory import Trajectory

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
LONG_ENOUGH, RUNS = 0.5, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert bench`."""
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help="names of the catalogue, or mymodel.py:name")
    parser.add_argument("--method", metavar="NAME", action="append", default=[], help="may be repeated")
    parser.add_argument("--h", metavar="H", help="step size; the problem's own by default")
    parser.add_argument("--steps", metavar="N", help="number of steps; the problem's own by default")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Measure, print a table."""
    h, steps = number("--h", options.h), count("--steps", options.steps, least=1)
    with busy("building the models"):
        pairs = _pairs(options)
    for chosen, _, _ in pairs:
        if chosen.problem is None:
            raise UsageError(f"{chosen.name} is a system without initial values: give a da.problems.Problem to measure")
    with busy("loading the drivers"):
        _load_drivers()
    rows = []
    widths = tuple(max(len(text) for text in column) + 2 for column in (
        ["problem", *(chosen.name for chosen, _, _ in pairs)], ["method", *(name for _, name, _ in pairs)]))  # fmt: skip
    if not options.json:
        head = f"{'problem':<{widths[0]}}{'method':<{widths[1]}}"
        print(f"{head}{'h':>7}{'us/step':>10}{'iterations':>12}{'first call':>12}{'second':>11}")
    for chosen, name, stepper in pairs:
        with busy(f"measuring {name} on {chosen.name}"):
            row = {"problem": chosen.name, "method": name} | measure(chosen, stepper, h, steps)
        rows.append(row)
        if not options.json:
            print(line(row, *widths), flush=True)
    if options.json:
        print(as_json(rows))
    return 0 if any("error" not in row for row in rows) else 1


def _load_drivers() -> None:
    """Load Numba and the drivers, which belong to no model, with a model that nobody measures."""
    free = da.Hamiltonian(lambda p: p @ p / 2, dim=1)
    da.simulate(free, da.LobattoIIIAB(stages=2), q0=[0.0], p0=[1.0], h=0.1, steps=2, progress=False)


def _pairs(options: argparse.Namespace) -> list[tuple[Model, str, OneStepMethod]]:
    """The problems and methods to measure, the latter also as they are written."""
    if not options.problems and not options.method:
        return [(model(problem, {}), name, method(name)) for problem, name in SELECTION]
    problems = [model(problem, {}) for problem in options.problems or ["double_pendulum"]]
    if options.method:
        return [(problem, name, method(name)) for problem in problems for name in options.method]
    defaults = [(problem, default(problem.system)) for problem in problems]
    return [(problem, spelled(stepper), stepper) for problem, stepper in defaults]


def measure(chosen: Model, stepper: OneStepMethod, h: float | None, steps: int | None) -> dict[str, Any]:
    """The costs of one method on one problem; an `error` if it cannot be run."""
    problem = chosen.problem
    assert problem is not None
    steps = problem.steps if steps is None else steps
    try:
        calls: list[float] = []
        runs: list[Trajectory] = []
        for _ in range(2):
            began = time.perf_counter()
            da.simulate(problem, stepper, h=h, steps=1, progress=False)
            calls.append(time.perf_counter() - began)
        began = time.perf_counter()
        while len(runs) < RUNS or time.perf_counter() - began < LONG_ENOUGH:
            runs.append(da.simulate(problem, stepper, h=h, steps=steps, save_every=steps, progress=False))
    except DalembertError as error:
        return {"error": str(error)}
    best = min(runs, key=lambda run: run.stats["wall_seconds"])
    us = 1e6 * best.stats["wall_seconds"] / steps
    return {
        "h": best.h,
        "steps": steps,
        "us_per_step": us,
        "steps_per_second": 1e6 / us,
        "newton_iterations_per_step": best.stats["newton_iterations"] / steps,
        "first_call_seconds": calls[0],
        "second_call_seconds": calls[1],
    }


def line(row: dict[str, Any], *widths: int) -> str:
    """A row of the table."""
    head = f"{row['problem']:<{widths[0]}}{row['method']:<{widths[1]}}"
    if "error" in row:
        return f"{head}{row['error']}"
    cost = f"{row['us_per_step']:10.2f}{row['newton_iterations_per_step']:12.2f}"
    return f"{head}{row['h']:7.3g}{cost}{row['first_call_seconds']:10.3f} s{row['second_call_seconds']:9.3f} s"
