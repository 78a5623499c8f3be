"""Every method of the library on its reference problem: cost of a step, Newton iterations, compile time."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from common import Section, least_of, load_drivers, measure_apart, note, table

import dalembert as da

STEPS = 20_000


@dataclass(frozen=True)
class Entry:
    """A method, the problem it is measured on, and the step size."""

    method: da.OneStepMethod
    problem: Callable[[], da.problems.Problem] = da.problems.double_pendulum
    h: float = 0.05


LISTED = (
    Entry(da.Rattle()),
    Entry(da.LobattoIIIAB(stages=2)),
    Entry(da.LobattoIIIAB(stages=3)),
    Entry(da.LobattoIIIAB(stages=4)),
    Entry(da.LobattoIIIAB(stages=6)),
    Entry(da.LobattoIIIAB(stages=8)),
    Entry(da.LobattoIIIAB(stages=11)),
    Entry(da.LobattoIIIAB(stages=11), h=0.2),
    Entry(da.HalfExplicitEuler()),
    Entry(da.Shake()),
    Entry(da.RadauIIA(stages=2)),
    Entry(da.RadauIIA(stages=3, projected=True)),
    Entry(da.Gauss(stages=3, projected=True)),
    Entry(da.LobattoIIIC(stages=3, projected=True)),
    Entry(da.RungeKutta(da.tableaux.radau_iia(2), projected=True)),
    Entry(da.PartitionedRungeKutta(da.tableaux.lobatto_iiia(3), da.tableaux.lobatto_iiib(3))),
    Entry(da.UnderlyingODE(da.tableaux.gauss(2))),
)
"""A new method is a new entry; a public class without one is measured with its defaults."""


def entries() -> tuple[Entry, ...]:
    """The list, and every public method that it forgets."""
    listed = {type(entry.method) for entry in LISTED}
    every = [getattr(da, name) for name in da.__all__]  # some are loaded when they are first asked for
    public = [cls for cls in every if isinstance(cls, type) and issubclass(cls, da.OneStepMethod)]
    forgotten = [cls for cls in public if not (cls is da.OneStepMethod or cls in listed or cls.serves_unilateral)]
    return (*LISTED, *(Entry(cls()) for cls in forgotten))


def label(method: da.OneStepMethod) -> str:
    """How the method is called, with the names of tableaux instead of their numbers."""
    text = str(method)
    for name in ("tableau", "hat"):
        tableau = getattr(method, name, None)
        if tableau is not None:
            text = text.replace(repr(tableau), f"{tableau.name}, s = {tableau.stages}")
    return text.removeprefix("da.")


def measure(number: int) -> dict[str, float]:
    """Compile once from nothing, then repeat the same run."""
    load_drivers()
    entry = entries()[number]
    began = time.perf_counter()
    problem = entry.problem()
    da.simulate(problem, entry.method, h=entry.h, steps=1)
    compile_seconds = time.perf_counter() - began
    runs = []

    def once() -> float:
        runs.append(da.simulate(problem, entry.method, h=entry.h, steps=STEPS, save_every=STEPS, progress=False))
        return 1e6 * runs[-1].stats["wall_seconds"] / STEPS

    us = least_of(once)
    return {"compile_seconds": compile_seconds, "us": us, "iterations": runs[-1].stats["newton_iterations"] / STEPS}


def run() -> Section:
    rows = []
    for number, entry in enumerate(entries()):
        note(f"{label(entry.method)}, h = {entry.h}")
        r = measure_apart("bench_methods.py", number)
        name = entry.problem.__name__.replace("_", " ")
        rows.append(
            [label(entry.method), name, entry.h, f"{r['us']:.2f}", f"{r['iterations']:.2f}", f"{r['compile_seconds']:.2f}"]
        )
    header = ("method", "problem", "h", "us/step", "iterations/step", "compiling, s")
    body = f"""
{STEPS:,} steps of each method on its reference problem, the fastest of repeated runs. Each row is a process of its own without
compiled kernels; compiling is the time from the model's functions to the first step done.

{table(header, rows)}
"""
    return Section("Methods", body)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure(int(sys.argv[2]))))
    else:
        print(run().body)
