"""Cold start: from a fresh Python process to the first result of the double pendulum."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

from common import Section, caches, note, table

REPEATS = 3
FIRST_RESULT = (
    "import dalembert as da; da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=1, progress=False)"
)
FIRST_IMPACT = "import dalembert as da; da.simulate(da.problems.bouncing_ball(), da.CVA(), steps=1000, progress=False)"
IMPORT = "import time; began = time.process_time(); import dalembert; print(time.process_time() - began)"


def process(code: str, environment: dict[str, str]) -> str:
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout


def spent(code: str, environment: dict[str, str]) -> float:
    """CPU seconds of a process: other work on the machine hardly matters."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process(code, environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run() -> Section:
    rows = []
    note("importing")
    with caches(code=True, drivers=True) as environment:
        process(IMPORT, environment)
        imports = [float(process(IMPORT, environment)) for _ in range(REPEATS)]
        bare = [spent("pass", environment) for _ in range(REPEATS)]
        note("warm caches")
        process(FIRST_RESULT, environment)
        warm = [spent(FIRST_RESULT, environment) for _ in range(REPEATS)]
    note("a new model")
    with caches(code=False, drivers=True) as drivers:
        process(FIRST_RESULT, drivers)
        new_model = []
        for _ in range(REPEATS):
            with caches(code=True, drivers=False) as environment:
                environment["NUMBA_CACHE_DIR"] = drivers["NUMBA_CACHE_DIR"]
                new_model.append(spent(FIRST_RESULT, environment))
    note("cold caches")
    cold, impacts = [], []
    for code, found in ((FIRST_RESULT, cold), (FIRST_IMPACT, impacts)):
        for _ in range(REPEATS):
            with caches(code=True, drivers=True) as environment:
                found.append(spent(code, environment))

    for name, values in {
        "a Python process that does nothing": bare,
        "`import dalembert` alone, inside a process": imports,
        "first result, warm caches": warm,
        "first result, a model never compiled before": new_model,
        "first result on a machine that has never run the library": cold,
        "first impacts on such a machine": impacts,
    }.items():
        rows.append([name, f"{statistics.median(values):.2f}", f"{min(values):.2f}", f"{max(values):.2f}"])
    body = f"""
CPU seconds from the start of a fresh Python process to its end, after one step of the double pendulum, at last after a ball has
bounced by `da.CVA`; {REPEATS} processes each.

{table(("what", "median, s", "least", "most"), rows)}
"""
    return Section("Cold start", body)


if __name__ == "__main__":
    print(run().body)
