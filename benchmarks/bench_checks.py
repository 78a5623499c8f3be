"""What it costs healthy runs that every step is checked: with and without, in one run that alternates between them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import casadi as ca
import numpy as np
from common import Section, note, table

import dalembert as da
from dalembert.compiler import _program, _step_kernels
from dalembert.engine._run import Run
from dalembert.runs._arguments import Arguments

STEPS, ROUNDS = 50_000, 25
CASES = (
    ("double_pendulum", da.LobattoIIIAB(stages=3), 0.12),
    ("double_pendulum", da.Rattle(), 0.05),
    ("four_bar", da.LobattoIIIAB(stages=3), 0.01),
    ("four_bar", da.Rattle(), 0.01),
)


@contextmanager
def without_checks() -> Iterator[None]:
    """Programs whose steps end without a look at constraints, orientation, H, finite numbers and the size of a projection."""
    complete = _step_kernels.solved_results

    def bare(*given: Any) -> list[ca.SX]:
        increment, multipliers, *_ = complete(*given)
        return [increment, multipliers, ca.SX(1), ca.SX(0), ca.SX(0)]

    _step_kernels.solved_results = bare
    _program._programs.clear()
    try:
        yield
    finally:
        _step_kernels.solved_results = complete
        _program._programs.clear()


def prepared(problem: str, method: da.OneStepMethod, h: float) -> Run:
    nothing = dict.fromkeys(("start", "params", "t0", "t1"))
    spec = Arguments("simulate", getattr(da.problems, problem)(), method, {}, **nothing, h=h, steps=STEPS).single()
    return Run(spec)


def unchecked(problem: str, method: da.OneStepMethod, h: float) -> Run:
    with without_checks():
        run = prepared(problem, method, h)
    run.counts["sign"], run.numbers["far"] = 1, np.inf  # nor is any solution in doubt
    return run


def microseconds(run: Run) -> float:
    began = time.thread_time()
    assert run.advance() is None
    return 1e6 * (time.thread_time() - began) / STEPS


def run() -> Section:
    rows, costs = [], []
    for problem, method, h in CASES:
        note(f"{problem}, {method}, {ROUNDS} rounds of {STEPS:,} steps")
        times: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(ROUNDS):
            runs = {"with": prepared(problem, method, h), "without": unchecked(problem, method, h)}
            for name, each in runs.items():
                times[name].append(microseconds(each))
        iterations = [f"{each.counts['iterations'].sum() / STEPS:.2f}" for each in runs.values()]
        least = {name: min(values) for name, values in times.items()}
        costs.append(100 * (least["with"] / least["without"] - 1))
        rows.append([problem, method, h, f"{least['with']:.3f}", f"{least['without']:.3f}", *iterations, f"{costs[-1]:.1f} %"])
    header = ("problem", "method", "h", "us/step", "without checks", "iterations", "without", "they cost")
    body = f"""
Every step ends with a last look at its constraints, at whether they lost independence, at whether its results and H are finite,
and at what puts a solution in doubt (`compiler/_orientation.py`, `compiler/_stopping.py`). A few operations decide nearly all
steps: the sum of the squares of all residuals at the end, in rounding errors of the terms that the constraints add up; H is
left out where it is defined everywhere. The same runs without: the least CPU time of {ROUNDS} rounds of {STEPS:,} steps that
alternate between both.

{table(header, rows)}

Healthy runs should pay at most 3 %; here they pay {min(costs):.0f} to {max(costs):.0f} %.
"""
    return Section("What the checks of a step cost", body)


if __name__ == "__main__":
    print(run().body)
