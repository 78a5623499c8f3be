"""Steps of many hard discs in a box, by time stepping: what a step takes for more and more of them."""

from __future__ import annotations

import numpy as np
from common import Section, table

import dalembert as da

H, STEPS, TURNS, COUNTS = 1e-3, 1_000, 10, (20, 50, 200)
RADIUS, SPACING = 0.01, 0.03


def gas(count: int) -> tuple[da.Spheres, dict[str, np.ndarray]]:
    """Elastic discs on a square lattice, a third of its spacing wide each, with random velocities of 1 m/s."""
    side = int(np.ceil(np.sqrt(count)))
    width, rng = side * SPACING, np.random.default_rng(1)
    planes = [((1, 0), 0.0), ((-1, 0), -width), ((0, 1), 0.0), ((0, -1), -width)]
    rows, columns = np.divmod(np.arange(count), side)
    q0 = np.column_stack([(columns + 0.5) * SPACING, (rows + 0.5) * SPACING, np.zeros(count)])
    v0 = np.column_stack([rng.normal(size=(count, 2)), np.zeros(count)])
    system = da.Spheres([RADIUS] * count, masses=[0.2] * count, planes=planes, restitution=1.0)
    return system, {"q0": q0.ravel(), "v0": v0.ravel()}


def run() -> Section:
    cases = [gas(count) for count in COUNTS]
    least = np.full(len(cases), np.inf)
    for turn in range(1 + TURNS):  # in turn, so that other work on the machine disturbs all alike; the first one compiles
        for k, (system, start) in enumerate(cases):
            last = da.simulate(system, da.MoreauJean(), h=H, steps=STEPS, save_every=STEPS, progress=False, **start)
            if turn:
                least[k] = min(least[k], 1e6 * last.stats["wall_seconds"] / STEPS)
    rows = [[f"{n}", f"{us:.1f}", f"{us / n:.2f}"] for n, us in zip(COUNTS, least, strict=True)]
    body = f"""
Elastic discs in a box without gravity, h = {H}, {STEPS:,} steps; the fastest of {TURNS} runs.

{table(("discs", "us/step", "us/step/disc"), rows)}
"""
    return Section("Contact", body)


if __name__ == "__main__":
    print(run().body)
