"""Four mechanisms beside Exudyn and MuJoCo: CPU time of one run to a given accuracy, models being ready.

    pip install exudyn mujoco
    python benchmarks/bench_mechanisms.py [four_bar chain bricard bicycle]

Each tool halves its step until the centre of one body at the end is within 1e-3, 1e-5 and 1e-7 m of a reference by
LobattoIIIAB(5), or GaussLobattoSPARK(3) for the bicycle, with a small step. The time is that of the whole call, as CPU time of
the process, the better of two; compiling, which dalembert does once for a model and a method, is not in it and stands apart.
MuJoCo's loops are soft; they are made as stiff as the step allows (solref of two steps). It has no wheels that roll without
slipping. Bodies, joints and rates of all tools are read from one da.Mechanism.

`--measure revolute` and `--measure spherical` say what ten links in space cost with RATTLE, compiled and a step.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from common import Section, least_of, load_drivers, measure_apart, note, table

import dalembert as da
from dalembert.experiments.benchmarks._exudyn import exudyn
from dalembert.experiments.benchmarks._motion import Motion
from dalembert.experiments.benchmarks._mujoco import mujoco

TARGETS = (1e-3, 1e-5, 1e-7)
LONGEST = 1.5
"""Seconds of a run after which a tool gives up."""


@dataclass
class Case:
    m: da.Mechanism
    start: Any
    body: Any
    t1: float
    reference: da.OneStepMethod
    methods: tuple[da.OneStepMethod, ...]


def four_bar() -> Case:
    A, B, C, D = (0, 0), (0, 0.1), (0.29, 0.25), (0.3, 0)
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    rods = [
        m.rod(n, *ends, mass=w, width=0.01) for n, ends, w in (("AB", (A, B), 0.2), ("BC", (B, C), 0.6), ("DC", (D, C), 0.4))
    ]
    hinge = m.revolute(m.ground, rods[0], at=A)
    for first, second, at in ((rods[0], rods[1], B), (rods[1], rods[2], C), (m.ground, rods[2], D)):
        m.revolute(first, second, at=at)
    return Case(m, m.start(rates={hinge: 8.0}), rods[1], 2.0, da.LobattoIIIAB(5), SYMPLECTIC)


def chain(links: int = 10, joint: str = "revolute") -> Case:
    m = da.Mechanism(gravity=(0, 0, -9.81))
    last = m.ground
    for k in range(links):
        rod = m.rod(f"rod {k + 1}", (0.2 * k, 0, 0), (0.2 * k + 0.2, 0, 0), mass=0.1, width=0.02)
        if joint == "revolute":
            m.revolute(last, rod, at=(0.2 * k, 0, 0), axis=(0, 1, 0) if k % 2 == 0 else (0, 0, 1))
        else:
            m.spherical(last, rod, at=(0.2 * k, 0, 0))
        last = rod
    if joint == "revolute":
        start = m.start(rates={m.part("revolute 2"): 2.0})
    else:
        start = m.start(angular_velocities={m.part("rod 1"): (0, 1.0, 2.0)})
    return Case(m, start, last, 1.0, da.LobattoIIIAB(5), SYMPLECTIC)


def bricard() -> Case:
    m = da.Mechanism(gravity=(0, -9.81, 0))
    P = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
    rods = [m.rod(f"rod {k + 1}", P[k], P[k + 1], mass=1.0, width=0.1) for k in range(5)]
    for k, axis in enumerate(np.eye(3)[[1, 2, 0, 1, 2, 0]]):
        m.revolute(m.ground if k == 0 else rods[k - 1], m.ground if k == 5 else rods[k], at=P[k], axis=axis)
    return Case(m, m.start(), rods[2], 2.0, da.LobattoIIIAB(5), SYMPLECTIC)


def bicycle() -> Case:
    m = da.Mechanism(gravity=(0, 0, -9.81))
    J = lambda xx, yy, zz, xz=0.0: [[xx, 0.0, -xz], [0.0, yy, 0.0], [-xz, 0.0, zz]]  # noqa: E731
    rear = m.body("rear wheel", mass=2.0, inertia=J(0.0603, 0.12, 0.0603), at=(0, 0, 0.3))
    frame = m.body("frame", mass=85.0, inertia=J(9.2, 11.0, 2.8, 2.4), at=(0.3, 0, 0.9))
    fork = m.body("fork", mass=4.0, inertia=J(0.05892, 0.06, 0.00708, -0.00756), at=(0.9, 0, 0.7))
    front = m.body("front wheel", mass=3.0, inertia=J(0.1405, 0.28, 0.1405), at=(1.02, 0, 0.35))
    m.revolute(frame, fork, at=(1.1, 0, 0), axis=(np.sin(np.pi / 10), 0, -np.cos(np.pi / 10)))
    axle = m.revolute(frame, rear, at=rear.centre, axis=(0, 1, 0))
    m.revolute(fork, front, at=front.centre, axis=(0, 1, 0))
    m.wheel(rear, radius=0.3, axis=(0, 1, 0))
    m.wheel(front, radius=0.35, axis=(0, 1, 0))
    start = m.start(rates={axle: 5.0 / 0.3}, angular_velocities={frame: (0.2, 0, 0)})
    methods = (da.GaussLobattoSPARK(1), da.GaussLobattoSPARK(2))
    return Case(m, start, frame, 2.0, da.GaussLobattoSPARK(3), methods)


SYMPLECTIC = (da.Rattle(), da.LobattoIIIAB(3))
CASES: dict[str, Callable[[], Case]] = {"four_bar": four_bar, "chain": chain, "bricard": bricard, "bicycle": bicycle}

Runner = Callable[[int], tuple[float, np.ndarray]]
"""From a number of steps to CPU seconds and where the body is in the end."""


def by_dalembert(case: Case, method: da.OneStepMethod) -> Runner:
    def run(steps: int) -> tuple[float, np.ndarray]:
        spec = {"start": case.start, "h": case.t1 / steps, "steps": steps, "save_every": steps}
        begin = time.process_time()
        result = da.simulate(case.m, method, **spec, progress=False)
        return time.process_time() - begin, result.of(case.body).position[-1]

    return run


def by_peer(case: Case, prepare: Callable[..., Callable[[float], Motion]]) -> Runner:
    solve = prepare(case.m, case.start, np.array([0.0, case.t1]), np.inf)

    def run(steps: int) -> tuple[float, np.ndarray]:
        motion = solve(steps)
        return motion.stats["cpu_seconds"], motion.position[-1, motion.number(case.body)]

    return run


# -- to accuracy ----------------------------------------------------------------------------------------------------------


def to_accuracy(run: Runner, exact: np.ndarray, first: int) -> tuple[list[str], float]:
    """For each target the CPU time and the steps of the coarsest run that reaches it; the least error found."""
    found, least, steps = ["-"] * len(TARGETS), np.inf, first
    while True:
        try:
            spent, place = min((run(steps) for _ in range(2)), key=lambda pair: pair[0])
        except Exception:
            spent, place = 0.0, np.full(3, np.nan)  # the step is too large for it
        error = float(np.max(np.abs(place - exact)))
        least = np.nanmin([least, error])
        for k, target in enumerate(TARGETS):
            if error < target and found[k] == "-":
                found[k] = f"{1e3 * spent:.3g} ms ({steps})"
        if found[-1] != "-" or spent > LONGEST or steps > 300_000:
            return found, float(least)
        steps *= 2


def compared(name: str) -> str:
    """The table of one mechanism."""
    case = CASES[name]()
    first = {"four_bar": 100, "chain": 50, "bricard": 50, "bicycle": 25}[name]
    exact = by_dalembert(case, case.reference)(32 * first)[1]
    tools: dict[str, Runner] = {str(method): by_dalembert(case, method) for method in case.methods}
    ready = []
    for method in case.methods:
        begin = time.process_time()
        da.simulate(case.m, method, start=case.start, h=1e-4, steps=1)
        ready.append(f"{method} {time.process_time() - begin:.1f} s")
    if find_spec("exudyn"):
        tools["Exudyn, trapezoidal rule, index 2"] = by_peer(case, exudyn(1.0))
        tools["Exudyn, generalised alpha, 0.9"] = by_peer(case, exudyn(0.9))
    if find_spec("mujoco") and name != "bicycle":
        tools["MuJoCo, RK4"] = by_peer(case, mujoco)
    rows = []
    for tool, run in tools.items():
        columns, least = to_accuracy(run, exact, first)
        rows.append([tool, *columns, f"{least:.1e}"])
        note(f"{name}: {rows[-1]}")
    shown = table(["", *(f"{target:g} m" for target in TARGETS), "least error, m"], rows)
    return f"### {TITLES[name]}\n\n{shown}\n\nReady, with compiling: {', '.join(ready)} of CPU time.\n"


# -- ten bodies -----------------------------------------------------------------------------------------------------------

STEPS = 2000


def measure(joint: str) -> dict[str, float]:
    """CPU seconds until ten links have made their first step with RATTLE, and microseconds of a further step and link."""
    load_drivers()
    began = time.process_time()
    case = chain(joint=joint)

    def run(steps: int) -> float:
        began = time.process_time()
        da.simulate(case.m, da.Rattle(), start=case.start, h=1e-3, steps=steps, save_every=steps, progress=False)
        return time.process_time() - began

    run(1)
    first = time.process_time() - began
    least = [least_of(lambda steps=steps: run(steps), for_seconds=5.0) for steps in (1, 1 + STEPS)]
    return {"first": first, "step": 1e6 * (least[1] - least[0]) / STEPS / len(case.m.bodies)}


def ten_bodies() -> str:
    """What ten links in space cost."""
    found = {joint: measure_apart("bench_mechanisms.py", joint) for joint in ("revolute", "spherical")}
    rows = [[joint, f"{each['first']:.1f}", f"{each['step']:.2f}"] for joint, each in found.items()]
    shown = table(["joints", "first step, CPU s", "us a body and step"], rows)
    return f"""### Ten links in space with RATTLE

Rods of 0.1 kg and 20 cm with quaternions, h = 1 ms. The first step is that of a process without compiled kernels, from the call
that makes the first body on; the time of a step is CPU time, the least of several runs of {STEPS:,} steps.

{shown}
"""


TITLES = {
    "four_bar": "Four-bar linkage in the plane, 2 s",
    "chain": "Ten hinged links in space, 1 s",
    "bricard": "Bricard's mechanism, 2 s",
    "bicycle": "Whipple's bicycle, 2 s",
}
INTRODUCTION = """CPU time of one run until the centre of one body is, in the end, within the given distance of a reference
with small steps; in brackets the number of steps, which is doubled until it suffices. It is the time of the whole call, models
being ready. MuJoCo's closed loops are soft, made as stiff as the step allows; it has no wheels that roll without slipping."""


def run(names: Iterable[str] = tuple(CASES)) -> Section:
    parts = [INTRODUCTION + "\n", *(compared(name) for name in names), ten_bodies()]
    return Section("Mechanisms beside Exudyn and MuJoCo", "\n".join(parts))


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure(sys.argv[-1])))
    else:
        print(run(sys.argv[1:] or CASES).body)
