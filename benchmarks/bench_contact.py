"""Steps of many hard discs in a box, by time stepping: what a step takes for more and more of them."""

from __future__ import annotations

import time

import numpy as np
from common import Section, table

import dalembert as da

H, STEPS, TURNS = 1e-3, 2_000, 10
BOXES = {20: (4, 5), 50: (5, 10), 200: (10, 20), 800: (20, 40)}
"""Rows and columns of discs in the boxes, which are equally dense."""
RADIUS, SPACING = 0.01, 0.03


def gas(count: int) -> tuple[da.Spheres, dict[str, np.ndarray]]:
    """Elastic discs on a square lattice, two thirds of its spacing wide each, with random velocities of 1 m/s."""
    high, wide = BOXES[count]
    rng = np.random.default_rng(1)
    planes = [((1, 0), 0.0), ((-1, 0), -wide * SPACING), ((0, 1), 0.0), ((0, -1), -high * SPACING)]
    rows, columns = np.divmod(np.arange(count), wide)
    q0 = np.column_stack([(columns + 0.5) * SPACING, (rows + 0.5) * SPACING, np.zeros(count)])
    v0 = np.column_stack([rng.normal(size=(count, 2)), np.zeros(count)])
    system = da.Spheres([RADIUS] * count, masses=[0.2] * count, planes=planes, restitution=1.0)
    return system, {"q0": q0.ravel(), "v0": v0.ravel()}


def seconds(count: int, steps: int) -> float:
    """The processor's time of a run."""
    system, start = gas(count)
    began = time.thread_time()
    da.simulate(system, da.MoreauJean(), h=H, steps=steps, save_every=steps, progress=False, **start)
    return time.thread_time() - began


def run() -> Section:
    began = time.perf_counter()
    seconds(20, 1)
    first = time.perf_counter() - began
    # in turn, so that other work on the machine disturbs all alike
    turns = [[[seconds(count, steps) for steps in (1, STEPS + 1)] for count in BOXES] for _ in range(TURNS)]
    each = 1e6 * np.diff(np.min(turns, axis=0))[:, 0] / STEPS
    rows = [[f"{n}", f"{us:.1f}", f"{us / n:.3f}"] for n, us in zip(BOXES, each, strict=True)]
    body = f"""
Elastic discs in boxes without gravity, h = {H}, {STEPS:,} steps; CPU time beyond that of the first step, the least of {TURNS}
runs. The first step of all, in a new process, took {first:.1f} s.

{table(("discs", "us/step", "us/step/disc"), rows)}
"""
    return Section("Contact", body)


if __name__ == "__main__":
    print(run().body)
