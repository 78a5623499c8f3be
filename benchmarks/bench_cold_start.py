"""Cold start: from a fresh Python process to the first result of the double pendulum."""

from __future__ import annotations

import statistics
import subprocess
import sys

from common import Section, caches, note, seconds, table

REPEATS = 5
FIRST_RESULT = (
    "import dalembert as da; da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=1, progress=False)"
)
IMPORT = "import time; began = time.perf_counter(); import dalembert; print(time.perf_counter() - began)"


def process(code: str, environment: dict[str, str]) -> str:
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout


def run() -> Section:
    rows = []
    note("importing")
    with caches(code=True, drivers=True) as environment:
        process(IMPORT, environment)
        imports = [float(process(IMPORT, environment)) for _ in range(REPEATS)]
        bare = [seconds(lambda: process("pass", environment)) for _ in range(REPEATS)]
        note("warm caches")
        process(FIRST_RESULT, environment)
        warm = [seconds(lambda: process(FIRST_RESULT, environment)) for _ in range(REPEATS)]
    note("a new model")
    with caches(code=False, drivers=True) as drivers:
        process(FIRST_RESULT, drivers)
        new_model = []
        for _ in range(REPEATS):
            with caches(code=True, drivers=False) as environment:
                environment["NUMBA_CACHE_DIR"] = drivers["NUMBA_CACHE_DIR"]
                new_model.append(seconds(lambda environment=environment: process(FIRST_RESULT, environment)))
    note("cold caches")
    cold = []
    for _ in range(REPEATS):
        with caches(code=True, drivers=True) as environment:
            cold.append(seconds(lambda environment=environment: process(FIRST_RESULT, environment)))

    for name, values in {
        "a Python process that does nothing": bare,
        "`import dalembert` alone, inside a process": imports,
        "first result, warm caches": warm,
        "first result, a model never compiled before": new_model,
        "first result on a machine that has never run the library": cold,
    }.items():
        rows.append([name, f"{statistics.median(values):.2f}", f"{min(values):.2f}", f"{max(values):.2f}"])
    body = f"""
Wall seconds from the start of a fresh Python process to its end, after one step of the double pendulum; {REPEATS} processes
each.

{table(("what", "median, s", "least", "most"), rows)}
"""
    return Section("Cold start", body)


if __name__ == "__main__":
    print(run().body)
