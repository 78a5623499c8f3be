"""Steps by their local error, against constant ones: does the error follow the tolerance, and how many steps are needed?

    python benchmarks/controlled_steps.py [problems...]

For each problem and tolerance: steps, rejected steps, the error of the positions, and the number of constant steps of the same
method with no larger an error (to a factor 1.3; "more" if MOST do not suffice).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from common import ROOT, note, table
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.experiments.benchmarks.records import at_end

sys.path.insert(0, str(ROOT / "tests" / "methods"))
import test_controlled_steps as models

MOST = 300_000


@dataclass(frozen=True)
class Case:
    """A model, where it starts, until when it runs and how wrong a run is."""

    model: Any
    start: dict[str, Any]
    t1: float
    error: Callable[[da.Trajectory], float]
    method: da.OneStepMethod = models.RADAU
    atol: float = 0.0
    tolerances: tuple[float, ...] = (1e-4, 1e-6, 1e-8)


def van_der_pol() -> Case:
    mu = 1000.0
    system = da.Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=1, force=lambda q, v: mu * (1 - q[0] ** 2) * v)
    rates = lambda _, x: [x[1], mu * (1 - x[0] ** 2) * x[1] - x[0]]  # noqa: E731
    exact = solve_ivp(rates, (0, 2000.0), [2.0, 0.0], "Radau", rtol=1e-12, atol=1e-14).y[0, -1]
    return Case(system, {"q0": [2.0], "v0": [0.0]}, 2000.0, lambda run: abs(run.q[-1, 0] - exact))


def of_catalogue(problem: Any, t1: float, name: str, method: da.OneStepMethod = models.RADAU, **more: Any) -> Case:
    return Case(problem, {}, t1, at_end(name, **more), method)


CASES: dict[str, Callable[[], Case]] = {
    "pendulum on a rod of 1e5 N/m": lambda: Case(models.elastic(), models.START, 2.0, models.errors),
    "the same, da.GaussLobattoSPARK(3)": lambda: Case(
        models.elastic(), models.START, 2.0, models.errors, da.GaussLobattoSPARK(3)
    ),
    "van der Pol, mu = 1000": van_der_pol,
    "Fekete points": lambda: of_catalogue(da.problems.fekete(), 1000.0, "fekete", da.RadauIIA(3, projected=True)),
    "elastic slider-crank": lambda: of_catalogue(
        da.problems.elastic_slider_crank(), 0.1, "slider_crank", da.RadauIIA(3, projected=True), relative=True
    ),
    "wheelset": lambda: replace(
        of_catalogue(da.problems.wheelset(), 10.0, "wheelset", relative=True, part=slice(0, 5)), tolerances=(1e-4, 1e-6)
    ),
}


def constant_steps(case: Case, error: float, first: int) -> str:
    """How many steps of constant size have no larger an error."""
    steps = first
    while steps <= MOST:
        given = {**case.start, "h": case.t1 / steps, "steps": steps, "save_every": max(1, steps // 2000)}
        run = da.simulate(case.model, case.method, **given, on_failure="return", progress=False)
        if run.status == "done" and case.error(run) <= error:
            return f"{steps:,} ({steps / first:.1f})"
        steps = int(1.3 * steps)
    return "more"


def main() -> None:
    rows = []
    for name, make in CASES.items():
        if sys.argv[1:] and not any(each in name for each in sys.argv[1:]):
            continue
        case = make()
        for rtol in case.tolerances:
            run = da.simulate(
                case.model, da.ControlledSteps(case.method, rtol, case.atol), **case.start, t1=case.t1, progress=False
            )
            steps, error = int(run.stats["steps"]), case.error(run)
            kept = max((float(np.max(np.abs(run.residuals[each]), initial=0.0)) for each in run.residuals), default=0.0)
            row = [
                name,
                f"{rtol:g}",
                f"{steps:,}",
                run.stats["rejected_steps"],
                f"{error:.1e}",
                constant_steps(case, error, steps),
            ]
            note(" ".join(map(str, [*row, f"{kept:.0e}", f"{np.diff(run.t).min():.1e} to {np.diff(run.t).max():.1e}"])))
            rows.append(row)
    print(table(["problem", "rtol", "steps", "rejected", "error", "constant steps (ratio)"], rows))


if __name__ == "__main__":
    main()
