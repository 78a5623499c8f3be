"""Work against precision on the examples of Jay (1996): Lobatto IIIA-IIIB with 2 to 8 stages, and what one might use instead.

    python benchmarks/peers_work_precision.py --figure docs/images/work_precision.png --json out/work_precision.json

Every method integrates to t = 120, and some of them to t = 12,000. Measured: the wall time of the integration (the least of
several; setting up, compilation included, is listed apart), the largest energy error and the largest constraint violation over
all steps, and the position error at the end. Peers that are not installed are left out, with a note: pip install -e ".[bench]".
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from peers import EXAMPLES, PEERS, States

import dalembert as da

T1 = 120.0
STAGES = range(2, 9)
STEPS = (500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
TITLES = {"double_pendulum": "double pendulum", "charged_particle_on_sphere": "charged particle on a sphere"}
MEANINGLESS = 3e-12
"""Smaller position errors hold too much of the reference's own; a method is not refined any further."""
TARGETS = (1e-3, 1e-6, 1e-9)
CALLS = 40
LONG_T1 = 12_000.0
HEYOKA = ("heyoka, underlying ODE", "heyoka, angles")


@dataclass(frozen=True)
class Row:
    problem: str
    method: str
    setting: float
    seconds: float
    position_error: float
    energy_error: float
    constraint: float
    setup: float


def energy(problem: str, q: np.ndarray, p: np.ndarray) -> np.ndarray:
    if problem == "double_pendulum":
        return (p * p).sum(axis=1) / 2 + q[:, 1] + q[:, 3]
    x, y, z = q.T
    return ((p[:, 0] + y) ** 2 + (p[:, 1] - x) ** 2 + p[:, 2] ** 2) / 2 - z


def violation(problem: str, q: np.ndarray, p: np.ndarray) -> float:
    """The largest of |g| and |g_dot|, with g as distances."""
    if problem == "double_pendulum":
        pairs = [(q[:, :2], p[:, :2]), (q[:, 2:] - q[:, :2], p[:, 2:] - p[:, :2])]
    else:
        pairs = [(q, p + np.column_stack([q[:, 1], -q[:, 0], 0 * q[:, 0]]))]
    values = [np.abs(np.linalg.norm(a, axis=1) - 1).max() for a, _ in pairs]
    values += [np.abs((a * b).sum(axis=1) / np.linalg.norm(a, axis=1)).max() for a, b in pairs]
    return float(np.max(values))


def timed(run: Callable[[], Any], calls: int, seconds: Callable[[Any], float] | None = None) -> tuple[Any, float]:
    """The result, and the least time of so many warm calls, or as many as fit, by the clock or by what the result says."""
    result, best, spent = run() if calls > 1 else None, np.inf, 0.0
    for _ in range(calls):
        began = time.perf_counter()
        result = run()
        took = time.perf_counter() - began
        best, spent = min(best, took if seconds is None else seconds(result)), spent + took
        if spent > 1.5:
            break
    return result, best


def judged(problem: str, method: str, setting: float, seconds: float, setup: float, states: States, right: np.ndarray) -> Row:
    q, p = states
    position, values = float(np.max(np.abs(q[-1] - right))), energy(problem, q, p)
    off = float(np.max(np.abs(values - values[0])))
    return Row(problem, method, setting, seconds, position, off, violation(problem, q, p), setup)


def lobatto(problem: str, stages: int, steps: int, right: np.ndarray, t1: float = T1, calls: int = CALLS) -> Row:
    """Setup is what a warm call takes besides its steps; compiling comes before, once for a model and a method."""
    example, method = getattr(da.problems, problem)(), da.LobattoIIIAB(stages=stages)

    def run() -> da.Trajectory:
        return da.simulate(example, method, h=t1 / steps, steps=steps, progress=False)

    result, seconds = timed(run, calls, lambda result: result.stats["wall_seconds"])
    began = time.perf_counter()
    setup = -run().stats["wall_seconds"] + time.perf_counter() - began
    name = f"dalembert Lobatto IIIA-IIIB, s = {stages}"
    return judged(problem, name, t1 / steps, seconds, setup, (result.q, result.p), right)


def peer(problem: str, name: str, tolerance: float, right: np.ndarray, t1: float = T1, calls: int = CALLS) -> Row:
    began = time.perf_counter()
    prepared = PEERS[name][1](EXAMPLES[problem], t1, tolerance)
    setup = time.perf_counter() - began
    result, seconds = timed(prepared.run, calls)
    return judged(problem, name, tolerance, seconds, setup, prepared.states(result), right)


def reference(problem: str, t1: float) -> tuple[np.ndarray, str]:
    """q at the end: in angles and extended precision by heyoka, or 8-stage Lobatto; and how far both are from each other."""
    steps = round(t1 / 0.03)
    fine = da.simulate(
        getattr(da.problems, problem)(), da.LobattoIIIAB(stages=8), h=t1 / steps, steps=steps, save_every=steps, progress=False
    ).q[-1]
    if importlib.util.find_spec("heyoka") is None:
        return fine, f"{problem}: the reference is 8-stage Lobatto with h = 0.03, because heyoka is not installed"
    import heyoka as hy

    system, start, convert = EXAMPLES[problem].angles(hy)
    solver = hy.taylor_adaptive(system, np.array(start, dtype=np.longdouble), fp_type=np.longdouble)
    solver.propagate_until(np.longdouble(t1))
    exact = np.asarray(convert(solver.state[None, :])[0][0], dtype=float)
    gap = float(np.max(np.abs(exact - fine)))
    words = "the reference (angles, extended precision) and 8-stage Lobatto with h = 0.03 differ by"
    return exact, f"{problem}, t = {t1:g}: {words} {gap:.0e}"


def study(quick: bool) -> tuple[list[Row], list[str]]:
    rows: list[Row] = []
    notes: list[str] = []

    def attempt(name: str, make: Callable[[], Row]) -> bool:
        """Measure one more row; whether to refine further."""
        try:
            rows.append(make())
        except (RuntimeError, da.StepFailed) as error:
            notes.append(f"{name}: failed ({error})")
            return True
        show(rows[-1])
        return rows[-1].position_error > MEANINGLESS and rows[-1].seconds < 20

    for problem in EXAMPLES:
        right, note = reference(problem, T1)
        notes.append(note)
        for stages in STAGES:
            for steps in STEPS[:3] if quick else STEPS:
                if not attempt(f"{problem}, s = {stages}, h = {T1 / steps:g}", partial(lobatto, problem, stages, steps, right)):
                    break
        for name, (module, _, tolerances) in PEERS.items():
            if importlib.util.find_spec(module) is None:
                notes.append(f"{name}: left out, because {module} is not installed")
                continue
            for tolerance in tolerances[:3] if quick else tolerances:
                if not attempt(f"{problem}, {name}, tolerance {tolerance:g}", partial(peer, problem, name, tolerance, right)):
                    break
    return rows, notes


def long_study() -> tuple[list[Row], list[str]]:
    """A hundred times as long: where the errors of structure-preserving methods grow linearly, and others quadratically."""
    rows: list[Row] = []
    notes: list[str] = []
    for problem in EXAMPLES:
        right, note = reference(problem, LONG_T1)
        notes.append(note)
        for stages in (3, 4, 5, 6):
            rows.append(lobatto(problem, stages, round(LONG_T1 / 0.12), right, LONG_T1, 2))
            show(rows[-1])
        for name, tolerance in (("SciPy DOP853, underlying ODE", 1e-12), *((h, tol) for h in HEYOKA for tol in (1e-10, 1e-16))):
            if importlib.util.find_spec(PEERS[name][0]) is not None:
                rows.append(peer(problem, name, tolerance, right, LONG_T1, 1 if "SciPy" in name else 2))
                show(rows[-1])
    return rows, notes


def long_table(rows: list[Row]) -> str:
    lines = []
    for problem, group in itertools.groupby(rows, key=lambda row: row.problem):
        head = ["method", "h or tolerance", "ms", "position error", "energy error", "constraint violation"]
        lines += [f"\n{TITLES[problem]}, t = {LONG_T1:g}:\n", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for r in group:
            cells = [r.method, f"{r.setting:g}", f"{1e3 * r.seconds:.3g}"]
            cells += [f"{value:.0e}" for value in (r.position_error, r.energy_error, r.constraint)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def show(row: Row) -> None:
    errors = f"position {row.position_error:8.1e}  energy {row.energy_error:8.1e}  constraint {row.constraint:8.1e}"
    print(f"{row.problem:28s}{row.method:36s}{row.setting:10.3g}{1e3 * row.seconds:12.2f} ms  {errors}", flush=True)


def table(rows: list[Row]) -> str:
    """For each method and target the cheapest measured run that reaches it; its other errors for the second target."""
    lines = []
    for problem, group in itertools.groupby(rows, key=lambda row: row.problem):
        head = ["method", *(f"ms for {target:.0e}" for target in TARGETS), "energy error", "constraint violation", "setup ms"]
        lines += [f"\n{TITLES[problem]}:\n", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for method, found in itertools.groupby(group, key=lambda row: row.method):
            runs = list(found)
            best = [min((r for r in runs if r.position_error <= x), key=lambda r: r.seconds, default=None) for x in TARGETS]
            cells = ["-" if row is None else f"{1e3 * row.seconds:.3g}" for row in best]
            at = best[1]
            cells += ["-", "-"] if at is None else [f"{at.energy_error:.0e}", f"{at.constraint:.0e}"]
            cells.append(
                f"{1e3 * np.median([row.setup for row in runs]):.2g}" if max(row.setup for row in runs) > 1e-4 else "-"
            )
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(rows: list[Row], path: Path) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    from dalembert.draw._style import CYCLE, MARKERS, styled

    shades = matplotlib.colormaps["cividis"](np.linspace(0.0, 0.85, len(STAGES)))
    looks: dict[str, dict[str, Any]] = {
        f"dalembert Lobatto IIIA-IIIB, s = {s}": {"color": shade, "marker": "o", "markersize": 2.5, "linewidth": 1.2}
        for s, shade in zip(STAGES, shades, strict=True)
    }
    for name, color, marker in zip(PEERS, CYCLE[1:], MARKERS[1:], strict=False):
        looks[name] = {"color": color, "marker": marker, "markersize": 3.5, "linewidth": 0.9, "linestyle": (0, (3, 1.5))}
    columns = {
        "position_error": ("position error at $t = 120$", (3.0, 3e-14)),
        "energy_error": ("largest energy error", (3e-1, 1e-16)),
        "constraint": ("largest constraint violation", (3e-1, 1e-17)),
    }
    with styled():
        figure = Figure(figsize=(10.2, 6.4), layout="constrained")
        axes = figure.subplots(2, 3, sharey=True)
        for line, problem in zip(axes, EXAMPLES, strict=True):
            for ax, (column, (label, limits)) in zip(line, columns.items(), strict=True):
                for name, look in looks.items():
                    found = [row for row in rows if row.problem == problem and row.method == name]
                    x = [max(getattr(row, column), 2e-17) for row in found]
                    ax.plot(x, [row.seconds for row in found], **look, label=name.removeprefix("dalembert "))
                ax.set(xscale="log", yscale="log", xlabel=label, xlim=limits)
                ax.minorticks_off()
                ax.grid(True)
            line[0].set_ylabel("seconds")
            line[0].set_title(TITLES[problem], loc="left")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--figure", type=Path, default=Path("out/work_precision.png"), help="where the figure goes (%(default)s)"
    )
    parser.add_argument("--json", type=Path, default=Path("out/work_precision.json"), help="where the numbers go (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="a few settings of each method only")
    options = parser.parse_args()
    rows, notes = study(options.quick)
    draw(rows, options.figure)
    long_rows, long_notes = ([], []) if options.quick else long_study()
    notes += long_notes
    modules = {"numpy": "numpy", "scipy": "scipy", "numba": "numba", "scikit-sundae": "sksundae", "heyoka": "heyoka"}
    versions = {name: version(name) for name, module in modules.items() if importlib.util.find_spec(module)}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    about = {"machine": platform.machine(), "python": platform.python_version(), "versions": versions, "notes": notes}
    options.json.write_text(
        json.dumps({**about, "rows": [asdict(row) for row in rows], "long": [asdict(row) for row in long_rows]}, indent=1)
    )
    print(table(rows))
    print(long_table(long_rows))
    print("\n" + "\n".join(notes) + f"\n{versions}")


if __name__ == "__main__":
    main()
