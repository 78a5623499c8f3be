"""What derivatives of a run cost beside the run itself: CPU times of calls in turn, as ratios."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from common import Section, load_drivers, table

import dalembert as da

STEPS, H, TURNS = 100_000, 0.01, 7
METHODS = (da.LobattoIIIAB(3), da.Rattle(), da.GaussLobattoSPARK(2))
NUMBERS = ("q0", "p0", "m1", "m2", "l1", "l2", "g")
"""Thirteen numbers."""


def cpu(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def run() -> Section:
    load_drivers()
    problem = da.problems.double_pendulum()
    given = {"h": H, "steps": STEPS, "progress": False, "q0": problem.q0, "p0": np.zeros(4)}
    rows = []
    for method in METHODS:
        calls = [
            lambda m=method: da.simulate(problem, m, **given),
            lambda m=method: da.sensitivities(problem, m, wrt=("m1", "m2", "l1", "g"), save_every=100, **given),
            lambda m=method: da.sensitivities(problem, m, wrt=NUMBERS, save_every=100, **given),
            lambda m=method: da.hessian_product(
                lambda q: q @ q, problem, m, wrt=NUMBERS, direction={"m1": 1.0, "l2": 1.0}, **given
            ),
            lambda m=method: da.gradient(lambda q: q @ q, problem, m, wrt=NUMBERS, **given),
        ]
        for call in calls:  # compiles
            call()
        times = np.array([[cpu(call) for call in calls] for _ in range(TURNS)])
        tracemalloc.start()
        calls[-1]()
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        ratios = np.median(times[:, 1:] / times[:, :1], axis=0)
        rows.append([str(method).removeprefix("da."), *(f"{ratio:.2f}" for ratio in ratios), f"{peak:.0f}"])
    header = ("method", "4 directions", "13 directions", "Hessian product", "gradient, 13 numbers", "MB of the gradient")
    body = f"""
{STEPS:,} steps of the double pendulum, h = {H}: the CPU time of `da.sensitivities`, `da.hessian_product` and `da.gradient` in
units of that of `da.simulate`, medians of {TURNS} calls in turn. All include the run itself.

{table(header, rows)}
"""
    return Section("Derivatives", body)


if __name__ == "__main__":
    print(run().body)
