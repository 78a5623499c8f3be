"""Steps on y = sin 3x, where a step may end on another hump, against the solution that begins at h = 0.

`python benchmarks/branches.py [starts]` takes every method of the tests' table that serves holonomic constraints and is one
map; the reference follows the method's own equations in tiny strides (tests/engine/continuation.py).
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
from common import ROOT, note, table

sys.path[:0] = [str(ROOT / "tests" / "methods"), str(ROOT / "tests" / "engine")]
from continuation import continued_step  # noqa: E402
from method_table import ROWS, serves  # noqa: E402

import dalembert as da  # noqa: E402

SIZES = (0.02, 0.05, 0.1, 0.2, 0.3)
WAVE = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2, holonomic=lambda q: [q[1] - np.sin(3 * q[0])])


def study(method: da.OneStepMethod, x: np.ndarray, speed: np.ndarray) -> Counter:
    """How many steps are what: agreeing with the reference, wrong, refused where it ends, or refused without need."""
    q0, p0 = np.stack([x, np.sin(3 * x)], 1), np.stack([speed, 3 * np.cos(3 * x) * speed], 1)
    found: Counter = Counter()
    for h in SIZES:
        runs = da.simulate_many(WAVE, method, q0=q0, p0=p0, h=h, steps=1)
        for k in range(len(x)):
            wanted = continued_step(WAVE, method, da.consistent(WAVE, q0=q0[k], p0=p0[k]), h)
            if runs.status[k] != "done":
                found["refused" if wanted is None else "refused without need"] += 1
            else:
                close = wanted is not None and np.abs(runs.states[k, -1] - wanted).max() < 1e-6 * (1 + np.abs(wanted).max())
                found["right" if close else "wrong"] += 1
    return found


def main() -> None:
    starts, random = int(sys.argv[1]) if len(sys.argv) > 1 else 100, np.random.default_rng(7)
    x, speed = random.uniform(-1.2, 1.2, starts), random.normal(0.0, 1.5, starts)
    header = ("right", "wrong", "refused", "refused without need")
    rows, total = [], Counter()
    for row in ROWS:
        method = row.method
        if serves(method, WAVE) and method.starting is None and len(method.substeps) == 1:
            note(row.id)
            found = study(method, x, speed)
            total += found
            rows.append([row.id, *(found[name] for name in header)])
    print(table(("method", *header), [*rows, ["all", *(total[name] for name in header)]]))


if __name__ == "__main__":
    main()
