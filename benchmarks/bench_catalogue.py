"""Every problem of the catalogue with its default method: how long the first result takes."""

from __future__ import annotations

import json
import sys
import time

from common import Section, load_drivers, measure_apart, note, table

import dalembert as da
from dalembert.runs._default_method import default_method

SHOWN = 15
"""So many problems, those that take longest, are listed; the others are summed up."""


def measure() -> dict[str, float]:
    """CPU seconds from the call that makes a problem to the end of its first step, none having been compiled before."""
    load_drivers()
    da.simulate(da.problems.bouncing_ball(), da.CVA(), steps=10)  # the driver of impacts is loaded, too
    found = {}
    for name in da.problems.__all__:
        if name == "Problem":
            continue
        began = time.process_time()
        problem = getattr(da.problems, name)()
        run = da.simulate(problem, default_method(problem.system), steps=1, progress=False)
        if run.status != "done":
            raise SystemExit(f"{name} did not make its first step: {run.message}")
        found[name] = time.process_time() - began
        note(f"{name}: {found[name]:.1f} s")
    return found


def run() -> Section:
    seconds = measure_apart("bench_catalogue.py")
    slowest = sorted(seconds, key=lambda name: -seconds[name])
    rows = [
        [name, str(default_method(getattr(da.problems, name)().system)), f"{seconds[name]:.1f}"] for name in slowest[:SHOWN]
    ]
    rest = [seconds[name] for name in slowest[SHOWN:]]
    body = f"""
CPU seconds from the call that makes a problem to the end of its first step, with the method that the command line takes where
none is named, in a process whose drivers are loaded and that has no compiled kernels. Of {len(seconds)} problems the
{SHOWN} that take longest are listed; the others take {min(rest):.1f} to {max(rest):.1f} s, all together
{sum(seconds.values()):.0f} s.

{table(("problem", "method", "CPU s"), rows)}
"""
    return Section("First results of all problems", body)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure()))
    else:
        print(run().body)
