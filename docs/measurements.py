"""What is measured of a method for docs/choosing.md: orders, structure, constraints, energy and cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import dalembert as da
from dalembert.compiler import build_program

if TYPE_CHECKING:
    from method_table import Row

H, STEPS = 0.05, 5000  # of the long runs: energy and cost


def orders(row: Row, model: Any, claimed: dict[str, int], steps: tuple[int, ...], shown: tuple[str, ...]) -> list[str]:
    """Slopes of the errors against an independent reference, of what the method claims, or of all where it claims nothing."""
    known = {name for name in shown if name in model.reference and (not claimed or name in claimed)}
    reference = {name: model.reference[name] for name in known}
    study = da.verify.order(
        model.system, row.method, reference=reference, t1=model.t1, steps=steps, points=4, round_off=6e-13, **model.start
    )
    return [f"{study.slopes[name]:.2f}" if name in known else "-" for name in shown]


def verdict(defect: Callable[[float], float], claim: bool | None) -> str:
    """Whether a defect vanishes for a small step, and for a large one where the method claims that it does not."""
    largest = max(defect(h) for h in ((0.12, 0.5) if claim is False else (0.12, 0.25)))
    if 1e-12 < largest < 1e-10:
        raise SystemExit(f"a defect of {largest} is neither round-off nor clear: choose another step size")
    return "yes" if largest < 1e-12 else "no"


def structure(method: da.OneStepMethod, system: Any, start: dict[str, Any]) -> dict[str, str]:
    """Symplectic? Symmetric?"""
    plain = {"symplectic": da.verify.symplecticity_defect, "symmetric": da.verify.reversibility_defect}
    return {
        name: verdict(lambda h, defect=defect: defect(system, method, h=h, **start), getattr(method, name))
        for name, defect in plain.items()
    }


def kept(method: da.OneStepMethod, model: Any, constraints: tuple[str, ...]) -> list[str]:
    """Whether each constraint holds at round-off over 500 steps of 0.02; its largest residual where it does not."""
    run = da.simulate(model.system, method, h=0.02, steps=500, **model.start)
    size = 1 + max(np.abs(run.q).max(), np.abs(run.v).max())
    worst = [np.abs(run.residuals[name]).max() for name in constraints]
    return ["yes" if value < 1e-13 * size else f"{value:.0e}" for value in worst]


def long_run(method: da.OneStepMethod, model: Any) -> list[str]:
    """Energy error, drift, Newton iterations and operations a step of 5000 steps of 0.05."""
    run = da.simulate(model.system, method, h=H, steps=STEPS, on_failure="return", **model.start)
    if run.status != "done":
        return [f"stops at $t = {run.t[-1]:.0f}$", "-", "-", "-"]
    energy = run.energy - run.energy[0]
    error, drift = np.abs(energy).max(), da.verify.drift(energy, run.t).slope * run.t[-1]
    shown = "none" if abs(drift) < 0.1 * error or error < 1e-12 else f"{drift:+.1e}"
    cost = [f"{run.stats['newton_iterations'] / STEPS:.1f}", f"{operations(method, model, run.stats):,.0f}"]
    return [f"{error:.1e}" if error > 1e-12 else "< 1e-12", shown, *cost]


def operations(method: da.OneStepMethod, model: Any, stats: dict[str, float]) -> float:
    """Arithmetic operations of a step in compiled code, from the sizes of the kernels and how often they were called."""
    start = da.consistent(model.system, **model.start)
    share = 1 / (STEPS * len(method.substeps))
    calls = {"iterate": stats["newton_iterations"] * share, "factor": stats["factorizations"] * share}
    total = 0.0
    for part, fraction in method.substeps:
        program = build_program(model.system, part, start, fraction * H, contiguous=len(method.substeps) == 1)
        total += sum(calls.get(kernel.name, 1) * kernel.operations for kernel in program.kernels)
    return float(f"{total:.2g}")


def middle(model: Any, method: da.OneStepMethod, steps: int) -> dict[str, Any]:
    """A state in the middle of the motion: starts from rest have symmetries that hide defects."""
    run = da.simulate(model.system, method, h=0.05, steps=steps, **model.start)
    return {"start": da.consistent(model.system, q0=run.q[-1], p0=run.p[-1])}
