"""Time to accuracy on the two examples of Jay (1996), beside heyoka's Taylor integrator in angles, in one run."""

from __future__ import annotations

import importlib.util
import time
from importlib.metadata import version

import numpy as np
from common import Section, note, stepping_time, table
from peers import EXAMPLES, PEERS
from peers_work_precision import TITLES, reference

import dalembert as da

TIMES = (120.0,)
"""Add 12_000.0 for long runs: they take a quarter of an hour."""
TARGETS = (1e-6, 1e-9, 1e-11)
STAGES = (4, 5, 6, 7, 8, 9, 10)
SIZES = tuple(round(float(size), 3) for size in np.geomspace(0.8, 0.05, 25))
TOLERANCES = tuple(float(f"{tolerance:.1e}") for tolerance in np.geomspace(1e-6, 1e-16, 31))
ROUNDS = 15
PEER = "heyoka, angles"


def errors(problem: str, t1: float, right: np.ndarray) -> dict[tuple, tuple[float, object]]:
    """The position error at the end of every setting, and what to call to run it again and learn its CPU seconds."""
    found: dict[tuple, tuple[float, object]] = {}
    example = getattr(da.problems, problem)()
    for stages in STAGES:
        for size in SIZES:
            steps = round(t1 / size)

            def run(stages: int = stages, steps: int = steps) -> tuple[np.ndarray, float]:
                with stepping_time() as stepping:
                    result = da.simulate(
                        example, da.LobattoIIIAB(stages), h=t1 / steps, steps=steps, save_every=steps, progress=False,
                        on_failure="return",
                    )  # fmt: skip
                return (result.q[-1] if result.status == "done" else np.full(len(right), np.inf)), sum(stepping)

            error = float(np.max(np.abs(run()[0] - right)))
            found["dalembert", f"s = {stages}, h = {t1 / steps:.3g}"] = error, run
            if error < TARGETS[-1] / 3:
                break
    for tolerance in TOLERANCES:
        prepared = PEERS[PEER][1](EXAMPLES[problem], t1, tolerance)

        def call(prepared: object = prepared) -> tuple[np.ndarray, float]:
            began = time.thread_time()
            result = prepared.run()
            took = time.thread_time() - began
            return prepared.states(result)[0][-1], took

        found["heyoka", f"tolerance {tolerance:.1e}"] = float(np.max(np.abs(call()[0] - right))), call
    return found


def fastest(found: dict, who: str, target: float, times: dict) -> tuple[str, float] | None:
    """The setting of a program that reaches the target in the least time."""
    reached = [(times[key], key[1]) for key, (error, _) in found.items() if key[0] == who and error <= target]
    return (min(reached)[1], min(reached)[0]) if reached else None


def run() -> Section:
    if importlib.util.find_spec("heyoka") is None:
        return Section("Time to accuracy", "**heyoka is not installed, so nothing is compared with it here.**")
    rows = []
    for problem in TITLES:
        for t1 in TIMES:
            note(f"{problem}, t = {t1:g}")
            right, _ = reference(problem, t1)
            found = errors(problem, t1, right)
            useful = [key for key, (error, _) in found.items() if error <= TARGETS[0]]
            times = dict.fromkeys(useful, np.inf)
            for _ in range(ROUNDS if t1 < 1000 else 2):  # in turn, so that other work on the machine disturbs all alike
                for key in useful:
                    times[key] = min(times[key], found[key][1]()[1])
            for target in TARGETS:
                ours, theirs = (fastest(found, who, target, times) for who in ("dalembert", "heyoka"))
                ratio = f"{ours[1] / theirs[1]:.2f}" if ours and theirs else "-"
                cells = [
                    c for pair in (ours, theirs) for c in ((pair[0], f"{1e3 * pair[1]:.2f}") if pair else ("not reached", "-"))
                ]
                rows.append([TITLES[problem], f"{t1:g}", f"{target:.0e}", *cells, ratio])
    body = f"""
The least CPU time of a run, without setting up and compiling, whose position error at t is below the target:
`da.LobattoIIIAB` with {min(STAGES)} to {max(STAGES)} stages and {len(SIZES)} values of h from {max(SIZES)} down, and heyoka
{version("heyoka")} in minimal coordinates with {len(TOLERANCES)} tolerances from {max(TOLERANCES):.0e} down. Both ran in
turn, {ROUNDS} times each. The reference is heyoka's in extended precision. `dalembert` keeps the constraints of Cartesian
coordinates at round-off, and its energy error does not grow.

{table(("example", "t", "error below", "dalembert", "ms", "heyoka", "ms", "ratio"), rows)}
"""
    return Section("Time to accuracy", body)


if __name__ == "__main__":
    print(run().body)
