"""Are runs as exact as `rtol=` asks, and at what cost? One line a case in a log that is resumed.

    python benchmarks/accuracy.py LOG [problems...] [--search] [--clock] [--summary] [--times=60]

A case is a problem of the catalogue, to its own end or 500 of its own steps, or so many times as long, and a tolerance. Its
line has the true error over the tolerance, against a reference of another family with a third of the steps of the run to 1e-10,
or in other coordinates for the mechanisms of `mechanisms_in_angles.py` (and how far that is from itself with other steps); the
steps; the arithmetic operations of all pilots over those of the run, or
of 10^4 steps, and of all that is made besides the run; those of the comparison, and of runs that missed the tolerance, over
those of the run; and, with --search, the operations and the CPU time over those of the best (stages, h) of the family, each
with the largest h that meets the tolerance by the error of a pair of runs; and so those of all that was made, pilots and
comparison included. With --clock, the wall and CPU time of the call over those of the same run with its method and h, in a
process in which both are compiled: operations count neither what Python does nor that comparisons are made beside the run.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mechanisms_in_angles import IN_ANGLES, InAngles

import dalembert as da
from dalembert.runs import _beside, _path, _pilot, _simulate, _windows
from dalembert.runs._default_method import family
from dalembert.runs._path import positions, sizes
from dalembert.systems._units import units

TOLERANCES = (1e-10, 1e-8, 1e-6, 1e-4)
MOST = 500
MACHINES = (
    "andrews_squeezer", "ball_on_slope", "bricard", "flyball_governor", "gyroscope", "jansens_leg", "six_axis_arm",
    "slider_crank", "stewart_platform", "two_four_bars", "whipple_bicycle",
)  # fmt: skip
PROBLEMS = (
    "pendulum", "simple_pendulum", "double_pendulum", "pendulum_of_varying_length", "stiff_spring_pendulum", "chain",
    "four_bar", "charged_particle_on_sphere", "spherical_pendulum", "two_bodies_on_sphere", "rigid_body", "heavy_top",
    "cart_pendulum", "double_pendulum_in_angles", "particle_in_magnetic_field", "rod_on_spring", "nonlinear_multiplier",
    "mass_on_surface", "pendulum_with_friction", "bead_on_rotating_wire", "skate", "knife_edge", "snakeboard",
    "car_with_trailer", "appell_hamel", "rolling_disk", "ball_on_turntable", "vertical_disk", "chaplygin_sleigh",
    "skateboard", "contact_oscillator", "perturbed_contact_oscillator", "nonholonomic_particles",
    "continuously_variable_transmission", "ball_in_bowl", "rattleback", "index_two_growth", "index_two_growth_in_parts",
    "cart_pendulum_above_floor", "double_pendulum_at_wall", "double_pendulum_at_wall_in_angles", "bouncing_ball",
    "ball_on_vibrating_table", "newtons_cradle", "balls_on_ring", "circular_billiard", "elliptic_billiard",
    "stadium_billiard", "hard_disks",
)  # fmt: skip


def other_method(system: Any) -> da.OneStepMethod:
    """A method of high order that is not of the family from which the choice is made."""
    base: da.OneStepMethod
    if isinstance(system, da.IndexTwoDAE) or (system.n_nonholonomic and not system.n_holonomic):
        base = da.LobattoSPARK(6)
    elif system.n_nonholonomic:
        base = da.GaussLobattoEMPRK(5)
    elif isinstance(system, da.systems.MechanicalSystem):
        base = da.GaussLobattoSPARK(5)
    else:
        base = da.compose(da.SymplecticEuler(), 10)
    chosen = da.CVA(base) if system.n_unilateral else base
    chosen.check(system)
    return chosen


def operations(run: Any) -> float:
    """Arithmetic operations of a run in compiled code, from the sizes of the kernels and how often they were called."""
    stats, share = run.stats(), 1 / len(run.steppers)
    calls = {"iterate": stats["newton_iterations"] * share, "factor": stats["factorizations"] * share}
    kernels = [kernel for stepper in run.steppers for kernel in stepper.program.kernels]
    return sum(calls.get(kernel.name, run.steps_made) * kernel.operations for kernel in kernels)


def counted(run: Any) -> Any:
    """A run that counts its steps, also where it begins again and again, as those of windows do."""
    advance, run.steps_made = run.advance, 0

    def counting(*arguments: Any, **options: Any) -> Any:
        before = run.steps_done
        try:
            return advance(*arguments, **options)
        finally:
            run.steps_made += run.steps_done - before

    run.advance = counting
    return run


class Runs:
    """Keeps all runs that are made for a case: pilots and comparisons ("pair"), and those that might be returned ("run")."""

    def __init__(self) -> None:
        self.made: list[tuple[str, Any]] = []
        for kind, module in (("pair", _path), ("pair", _windows), ("run", _simulate)):
            module.make_run = self._recording(kind, module.make_run)

    def _recording(self, kind: str, make: Any) -> Any:
        def made(*arguments: Any, **options: Any) -> Any:
            self.made.append((kind, counted(make(*arguments, **options))))
            return self.made[-1][1]

        return made

    def operations(self) -> tuple[float, float, float, float]:
        """Of all since the last call: pilots, runs that missed and their comparisons, the last run, its comparison."""
        kinds, counts = [kind for kind, _ in self.made], [operations(run) for _, run in self.made]
        self.made = []
        first, last = kinds.index("run"), len(kinds) - 1 - kinds[::-1].index("run")
        return sum(counts[:first]), sum(counts[first:last]), counts[last], sum(counts[last + 1 :])


RUNS = Runs()
PROCESSORS, _beside.processors = _beside.processors, lambda: 1
"""Comparisons are made after their runs, so that what was made is counted in order."""


def run_with(problem: Any, method: Any, t1: float, steps: int, every: int = 1) -> da.Trajectory:
    return da.simulate(problem, method, h=(t1 - problem.t0) / steps, steps=steps, save_every=every, progress=False)


def error_of(run: da.Trajectory, reference: np.ndarray) -> float:
    q = positions(run.system, run.states)
    return float(np.max(np.abs(q - reference) / sizes(units(run.system), reference)))


class Reference:
    """The right positions at any equidistant times."""

    def __init__(self, known: Any, t1: float, h: float) -> None:
        self.known, self.problem, self.t1, self.h = known, posed(known), t1, abs(h)
        self.method = None if isinstance(known, InAngles) else other_method(self.problem.system)

    def __call__(self, steps: int, finer: float = 1.0) -> np.ndarray:
        if isinstance(self.known, InAngles):
            t = np.linspace(self.problem.t0, self.t1, steps + 1)
            return self.known.positions(t, 3e-14 if finer == 1.0 else 1e-12)
        every = max(1, math.ceil(finer * (self.t1 - self.problem.t0) / steps / self.h))
        run = run_with(self.problem, self.method, self.t1, steps * every, every)
        return positions(run.system, run.states)


def largest_step(problem: Any, method: Any, t1: float, rtol: float, guess: int) -> tuple[int, float] | None:
    """The least number of steps that meets the tolerance, to 5 %, and the operations of the run; errors are those of pairs."""
    task = _path.Task(problem.system, start_of(problem), t1, rtol)
    order, steps, best, tried = _pilot.order_of(method, problem.system), max(4, guess), None, set()
    for _ in range(8):
        if steps in tried or steps > 50_000:
            break
        tried.add(steps)
        RUNS.made.clear()
        flown = _pilot.pilot(task, method, task.length / steps, steps)
        error = float(flown.worst(task)[-1]) if flown.complete else math.inf
        if error <= 1 and (best is None or steps < best[0]):
            best = steps, operations(RUNS.made[0][1])
        factor = 1.5 if not error < 1e6 else min(3.0, max(0.3, (error / 0.9) ** (1 / order)))
        steps = max(4, math.ceil(steps * factor))
    RUNS.made.clear()
    return best


def posed(known: Any) -> Any:
    """The problem of a case."""
    return known.problem if isinstance(known, InAngles) else known


def start_of(problem: Any) -> da.State:
    from dalembert.runs._starts import initial_state

    return initial_state(problem)[1]


def seconds(problem: Any, pairs: list[tuple[Any, int]], t1: float) -> list[float]:
    """The least CPU time of each of some runs, made in turn."""
    least = [math.inf] * len(pairs)
    for _ in range(4):
        for k, (method, steps) in enumerate(pairs):
            repeats = max(1, 2000 // steps)
            taken = 0.0
            for _ in range(repeats):
                began = time.thread_time()
                run = run_with(problem, method, t1, steps, steps)
                taken += min(run.stats["wall_seconds"], time.thread_time() - began)
            least[k] = min(least[k], taken / repeats)
    return least


def clocked(problem: Any, run: da.Trajectory, t1: float, rtol: float) -> dict[str, Any]:
    """Wall and CPU time of a call with rtol over those of the same run without, each the least of three."""
    least = np.full((2, 2), math.inf)
    counted, _beside.processors = _beside.processors, PROCESSORS
    for k in range(3):
        for row, options in enumerate(({"rtol": rtol * (1 + 1e-9 * (k + 1))}, {"method": run.solver, "h": run.h})):
            began = time.perf_counter(), time.process_time()
            da.simulate(problem, t1=t1, progress=False, **options)
            least[row] = np.minimum(least[row], np.subtract((time.perf_counter(), time.process_time()), began))
    _beside.processors = counted
    RUNS.made.clear()
    wall, cpu = least[0] / least[1]
    return {"seconds": least[1, 0], "wall_ratio": wall, "cpu_ratio": cpu}


def case(known: Any, rtol: float, search: bool, clock: bool, times: float, kept: dict[str, Any]) -> dict[str, Any]:
    problem = posed(known)
    t1 = problem.t0 + times * min(MOST, problem.steps) * problem.h
    RUNS.made.clear()
    began = time.process_time()
    try:
        run = da.simulate(problem, t1=t1, rtol=rtol, progress=False)
    except da.DalembertError as error:
        return {"refused": str(error), "cpu": round(time.process_time() - began, 2)}
    cpu, steps = time.process_time() - began, len(run) - 1
    pilots, again, own, compared = RUNS.operations()
    kept.setdefault("h", abs(run.h) / 3)
    reference = Reference(known, t1, kept["h"])
    right = reference(steps)
    true = error_of(run, right) / rtol
    doubt = float(np.max(np.abs(reference(steps, 1.4) - right) / sizes(units(problem.system), right))) / rtol
    unit = own / steps * max(steps, 10_000)
    line: dict[str, Any] = {
        "method": run.method, "h": run.h, "steps": steps, "estimate": run.error / rtol, "true": true, "reference": doubt,
        "pilots": pilots / unit, "besides": (pilots + again + compared) / unit, "again": again / own,
        "compared": compared / own, "cpu": round(cpu, 2), "choice": run.choice,
    }  # fmt: skip
    if clock:
        line |= clocked(problem, run, t1, rtol)
    if search:
        line |= searched(problem, run, t1, rtol, own, pilots + again + own + compared)
    return line


def searched(problem: Any, run: da.Trajectory, t1: float, rtol: float, own: float, total: float) -> dict[str, Any]:
    """The run against the best of every number of stages, each with the largest h that meets the tolerance."""
    found, guess = [], len(run) - 1
    for method in family(problem.system):
        best = largest_step(problem, method, t1, rtol, guess)
        if best is not None:
            found.append((best[1], method, best[0]))
            guess = best[0]
    if not found:
        return {}
    found.sort(key=lambda each: each[0])
    pairs = [(run.solver, len(run) - 1), *((method, count) for _, method, count in found[:2])]
    taken = seconds(problem, pairs, t1)
    best = int(np.argmin(taken[1:])) + 1
    return {
        "ratio": taken[0] / min(taken),
        "best": f"{pairs[best][0]}, {pairs[best][1]} steps",
        "operations": own / found[0][0],
        "total": total / found[0][0],
    }


def main() -> None:
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    log, names = Path(arguments[0]), arguments[1:] or [*PROBLEMS, *MACHINES, *IN_ANGLES]
    times = next((float(each[8:]) for each in sys.argv if each.startswith("--times=")), 1.0)
    done = {}
    if log.exists():
        done = {(line["problem"], line["rtol"]): line for line in map(json.loads, log.read_text().splitlines())}
    for name in names if "--summary" not in sys.argv else ():
        kept: dict[str, Any] = {}
        for rtol in TOLERANCES:
            if (name, rtol) in done:
                kept = {"h": abs(done[name, rtol]["h"]) / 3} if not kept and "h" in done[name, rtol] else kept
                continue
            try:
                known = IN_ANGLES[name]() if name in IN_ANGLES else getattr(da.problems, name)()
                line = case(known, rtol, "--search" in sys.argv, "--clock" in sys.argv, times, kept)
            except Exception as error:  # a case that breaks is a result, too
                line = {"broken": f"{type(error).__name__}: {error}"}
            line = {"problem": name, "rtol": rtol, **line}
            done[name, rtol] = line
            with log.open("a") as file:
                file.write(json.dumps(line) + "\n")
            shown = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in line.items() if k != "choice"}
            print(*(f"{k}={v}" for k, v in shown.items()), flush=True)
    summary(list(done.values()))


def summary(lines: list[dict[str, Any]]) -> None:
    made = [line for line in lines if "true" in line]
    judged = [line for line in made if line["reference"] < 0.3 * max(1.0, line["true"])]
    true = np.array([line["true"] for line in judged])
    ratios = np.array([line["ratio"] for line in made if "ratio" in line])
    print(f"{len(lines)} cases, {len(made)} made, {sum('refused' in line for line in lines)} refused, "
          f"{sum('broken' in line for line in lines)} broken, {len(judged)} with a reference that can judge")  # fmt: skip
    if len(true):
        print(f"true error within the tolerance: {100 * np.mean(true <= 1):.1f} %, largest {true.max():.2f} times")
        for name, what in (("pilots", "pilots"), ("besides", "pilots, comparisons and runs that missed")):
            values = np.array([line[name] for line in made])
            print(f"{what}, of 10^4 steps or the run: median {np.median(values):.3f}, largest {values.max():.3f}, "
                  f"above 0.2 in {np.sum(values > 0.2)}")  # fmt: skip
        compared = [line["compared"] for line in made]
        print(f"compared at no further cost: {sum(each == 0 for each in compared)} of {len(compared)}; else "
              f"{np.median([each for each in compared if each] or [0.0]):.2f} times the run in the median; "
              f"{sum(line['again'] > 0 for line in made)} made again")  # fmt: skip
    counts = np.array([line["operations"] for line in made if "operations" in line])
    if len(ratios):
        print(f"operations over the best of the search: median {np.median(counts):.2f}, 95 % below "
              f"{np.quantile(counts, 0.95):.2f}, largest {counts.max():.2f}; at most 1.5 in {np.sum(counts <= 1.5)} "
              f"of {len(counts)}")  # fmt: skip
        totals = np.array([line["total"] for line in made if "total" in line])
        print(f"all operations over the best of the search: median {np.median(totals):.2f}, largest {totals.max():.2f}")
        print(f"CPU over the best of the search: median {np.median(ratios):.2f}, 95 % below {np.quantile(ratios, 0.95):.2f}, "
              f"largest {ratios.max():.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
