"""Steps that follow a density, against steps of constant size: how many are needed, and whether the energy drifts.

python benchmarks/varying_steps.py                                      about five minutes of one core
python benchmarks/varying_steps.py --periods 1000 --folder runs         a look; a second call goes on where the first stopped

For each problem of tests/methods/encounters.py: the error over five periods (one of Arenstorf's orbit, which is published) and
the number of constant steps of the same method with the same error; the way back from the last state; the largest energy error
in the first and in the last eighth of a long run, which is kept in a store and resumed from it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import ROOT, note, table

import dalembert as da

sys.path.insert(0, str(ROOT / "tests" / "methods"))
import encounters
from encounters import Encounter

PROBLEMS = ("kepler", "pendulum_on_a_spring", "arenstorf", "around_the_earth", "double_pendulum")
SHORT = 5
"""Periods over which errors are compared."""


def errors_of_varying_steps(problem: Encounter) -> tuple[float, float]:
    """Steps a period, and the error of the positions."""
    periods = 1 if problem.name.endswith("Arenstorf's orbit") else SHORT
    steps = 200
    while (run := da.simulate(problem.system, problem.method, **problem.start, h=problem.h, steps=steps)).t[-1] < (
        periods * problem.period
    ):
        steps *= 2
    if periods == 1:  # of a periodic orbit only the end is known
        error = np.abs(run.at(problem.period).q - problem.start["q0"]).max()
        return float(np.searchsorted(run.t, problem.period)), float(error)
    count = int(np.searchsorted(run.t, periods * problem.period))
    return count / periods, float(np.abs(run.q[:count] - problem.reference(run.t[:count])).max())


def constant_steps(problem: Encounter, error: float) -> float:
    """How many constant steps a period the same method needs for this error, by doubling and log-log interpolation."""
    periods = 1 if problem.name.endswith("Arenstorf's orbit") else SHORT
    before: tuple[float, float] | None = None
    for n in 500 * 2 ** np.arange(14):
        method, every = da.LobattoIIIAB(4), max(1, int(n) // 500)
        run = da.simulate(
            problem.system, method, **problem.start, h=problem.period / n, steps=int(n) * periods, save_every=every,
            on_failure="return", progress=False,
        )  # fmt: skip
        if run.status != "done":
            continue
        rows = slice(-1, None) if periods == 1 else slice(None)
        found = float(np.abs(run.q[rows] - problem.reference(run.t[rows])).max())
        note(f"{n} constant steps a period: {found:.1e}")
        if found <= error:
            return float(n) if before is None else float(np.exp(np.interp(np.log(error), *_falling(before, (n, found)))))
        before = (float(n), found)
    return np.inf


def _falling(coarse: tuple[float, float], fine: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    return np.log([fine[1], coarse[1]]), np.log([fine[0], coarse[0]])


def way_back(problem: Encounter, steps: int) -> float:
    """How far a run with reversed momenta ends from the start."""
    there = da.simulate(problem.system, problem.method, **problem.start, h=problem.h, steps=steps)
    method = replace(problem.method, first=there.step_sizes[-1])
    p = there.p[-1] * np.array([-1.0, -1.0] * (there.p.shape[1] // 2))
    if problem.name.startswith("three bodies"):  # reversed by (x, -y, -p_x, p_y)
        q, p = there.q[-1] * [1, -1], there.p[-1] * [-1, 1]
    else:
        q = there.q[-1]
    back = da.simulate(problem.system, method, q0=q, p0=p, h=problem.h, steps=steps)
    return float(np.abs(back.q[-1] - there.q[0]).max())


def long_run(problem: Encounter, periods: int, per_period: float, folder: Path) -> list[str]:
    """Energy errors along a run of so many periods, from a store that is continued if it is there."""
    path, steps = folder / f"{problem.name.replace(' ', '_').replace(',', '')}.zarr", int(periods * per_period * 1.06)
    every = max(1, steps // 400_000)
    if path.exists():
        run = da.resume(path, problem.system, problem.method, steps=steps)
    else:
        run = da.simulate(
            problem.system, problem.method, **problem.start, h=problem.h, steps=steps, save_every=every, save_to=path
        )
    error, scale = np.abs(run.energy - run.energy[0]), abs(run.energy[0])
    parts = np.array_split(error, 8)
    shown = [f"{part.max() / scale:.2e}" for part in (parts[0], parts[-1])]
    slope = np.polyfit(run.t / run.t[-1], run.energy, 1)[0] / scale
    return [f"{run.t[-1] / problem.period:,.0f}", *shown, f"{slope:+.1e}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problem", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--periods", type=int, default=0, help="of the long runs: 10^5 unless said otherwise, 10^6 of Kepler's")
    parser.add_argument("--folder", type=Path, default=None, help="where long runs are kept and resumed from")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in chosen.problem:
        problem = getattr(encounters, name)()
        per_period, error = errors_of_varying_steps(problem)
        constant = constant_steps(problem, error)
        periods = chosen.periods or (1_000_000 if name == "kepler" else 100_000)
        kept = ["", "", "", ""] if name == "arenstorf" else long_run(problem, periods, per_period, folder)  # it is unstable
        back = way_back(problem, 200 if name == "arenstorf" else 2000)
        counts = [f"{per_period:.0f}", f"{constant:,.0f}", f"{constant / per_period:.0f}"]
        rows.append([problem.name, *counts, f"{error:.1e}", f"{back:.0e}", *kept])
        note("  ".join(rows[-1]))
    columns = ("problem", "steps", "constant", "ratio", "error", "way back", "periods", "first eighth", "last", "trend")
    print(table(columns, rows))


if __name__ == "__main__":
    main()
