"""Chains of N links: cost of a step and a link, and how long compiling takes."""

from __future__ import annotations

import json
import sys
import time

from common import Section, least_of, load_drivers, measure_apart, note, stepping_time, table

import dalembert as da

LINKS = (1, 2, 4, 8, 16, 32, 64)
STAGES = (2, 3)
H, STEPS = 0.01, 2000


def measure(links: int, stages: int) -> dict[str, float]:
    """Compile once from nothing, then repeat the same run."""
    load_drivers()
    method = da.LobattoIIIAB(stages=stages)
    began = time.process_time()
    problem = da.problems.chain(links=links)
    da.simulate(problem, method, h=H, steps=1)
    compile_seconds = time.process_time() - began

    runs = []

    def once() -> float:
        with stepping_time() as spent:
            runs.append(da.simulate(problem, method, h=H, steps=STEPS, save_every=STEPS, progress=False))
        return 1e6 * sum(spent) / STEPS

    us, stats = least_of(once), runs[-1].stats
    return {
        "compile_seconds": compile_seconds,
        "us": us,
        "iterations": stats["newton_iterations"] / STEPS,
        "factorizations": stats["factorizations"] / STEPS,
    }


def run() -> Section:
    parts = []
    for stages in STAGES:
        results = {}
        for links in LINKS:
            note(f"{links} links, {stages} stages")
            results[links] = measure_apart("bench_chain.py", links, stages)
        rows = [
            [
                links,
                f"{r['us']:.2f}",
                f"{r['us'] / links:.3f}",
                f"{r['iterations']:.2f}",
                f"{r['factorizations']:.2f}",
                f"{r['compile_seconds']:.2f}",
            ]
            for links, r in results.items()
        ]
        ratio = (results[64]["us"] / 64) / (results[8]["us"] / 8)
        header = ("links", "us/step", "us/step and link", "iterations/step", "factorisations/step", "compiling, s")
        verdict = f"A step and link cost {ratio:.2f} times as much with 64 links as with 8."
        parts.append(f"### {stages} stages\n\n{table(header, rows)}\n\n{verdict}")
    intro = f"""
`da.problems.chain(links=N)`: 2N coordinates and N constraints, released from a slight arc, h = {H}, the fastest of
repeated runs of {STEPS} steps. Each row is a process of its own without compiled kernels; compiling is the time from the
model's functions to the first step done. All are CPU times.
"""
    return Section("Chains", "\n\n".join([intro.strip(), *parts]))


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure(*map(int, sys.argv[2:]))))
    else:
        print(run().body)
