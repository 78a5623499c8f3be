"""A four-bar linkage in SI units with motor and friction: what an operation costs there and in the double pendulum."""

from __future__ import annotations

import sys
from typing import Any

from common import ROOT, Section, least_of, note, table

import dalembert as da
from dalembert.compiler import build_program

sys.path.insert(0, str(ROOT / "tests" / "engine"))
from four_bar import linkage, start

METHODS = (
    da.Rattle(), da.LobattoIIIAB(3), da.LobattoIIIAB(4), da.GaussLobattoSPARK(2), da.GaussLobattoEMPRK(2),
    da.RadauIIA(2, projected=True), da.Gauss(2, projected=True), da.LobattoIIIC(3, projected=True),
)  # fmt: skip
STEP_SIZES = (2e-2, 2e-3, 2e-4, 2e-5)
PENDULUM_STEP = 0.05
STEPS = 2000


def operations(system: Any, method: da.OneStepMethod, start: Any, h: float, stats: dict[str, float]) -> float:
    """Arithmetic operations of a step in compiled code, from the sizes of the kernels and how often they were called."""
    program = build_program(system, method, start, h, contiguous=True)
    calls = {"iterate": stats["newton_iterations"] / STEPS, "factor": stats["factorizations"] / STEPS}
    return sum(calls.get(kernel.name, 1) * kernel.operations for kernel in program.kernels)


def cost(system: Any, method: da.OneStepMethod, start: Any, h: float) -> tuple[float, float, dict[str, float]]:
    """Microseconds a step, nanoseconds an operation, and what the run counted."""
    stats: dict[str, float] = {}

    def repeat() -> float:
        stats.update(da.simulate(system, method, start=start, h=h, steps=STEPS, save_every=STEPS).stats)
        return stats["wall_seconds"] / STEPS

    us = 1e6 * least_of(repeat)
    return us, 1e3 * us / operations(system, method, start, h, stats), stats


def run() -> Section:
    pendulum = da.problems.double_pendulum()
    upright = da.consistent(pendulum.system, q0=pendulum.q0, p0=pendulum.p0, v0=pendulum.v0)
    bars = da.consistent(linkage(), **start())
    rows, largest = [], 0.0
    for method in METHODS:
        note(str(method))
        _, usual, _ = cost(pendulum.system, method, upright, PENDULUM_STEP)
        for h in STEP_SIZES:
            us, each, stats = cost(linkage(), method, bars, h)
            largest = max(largest, each / usual)
            counts = [str(int(stats[name])) for name in ("rescued_steps", "followed_steps", "pivoted_steps")]
            iterations = f"{stats['newton_iterations'] / STEPS:.1f}"
            rows.append([str(method), f"{h:g}", f"{us:.2f}", iterations, f"{each:.2f}", f"{each / usual:.2f}", *counts])
    header = (
        "method",
        "h",
        "us/step",
        "iterations/step",
        "ns/operation",
        "relative",
        "rescued",
        "followed",
        "pivoted",
    )
    body = f"""
Three bodies in (x, y, theta), links of 0.1, 0.35 and 0.25 m, 0.2, 0.6 and 0.4 kg, a motor and friction in the joints, all
numbers in `params`; {STEPS:,} steps. Nanoseconds an operation are those of a step over the operations of its kernels; beside
them, in units of what the same method takes in the double pendulum: {largest:.1f} at most.

{table(header, rows)}
"""
    return Section("A four-bar linkage in SI units", body)


if __name__ == "__main__":
    print(run().body)
