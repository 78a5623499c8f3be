"""Figures 4.1 to 4.4: global errors of the natural and the true symplectic Euler method, alpha = 1/2, against h."""

from __future__ import annotations

from functools import partial

import numpy as np

from dalembert.draw._style import BLUE, VERMILION
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import DASHES, DOTTED, Axes, log_log, panels
from dalembert.experiments.jay_simeon._shared import (
    COMPONENTS,
    JAY_SIMEON,
    PROBLEMS,
    T1,
    distance,
    errors,
    fitted_slope,
    local_slope,
)
from dalembert.methods import SymplecticEuler

STEPS = tuple(20 * 2**k for k in range(12))
MORE_STEPS = tuple(20 * 2**k for k in range(12, 15))
LOOKS = 80
"""The number of steps at which the natural method on (4.2) still looks like one of order 1."""


def compute_errors(full: bool, *, problem: str) -> Data:
    """Errors of both methods in y and z, and how far the natural method's limit is from the solution."""
    test = PROBLEMS[problem]
    steps = STEPS + (MORE_STEPS if full else ())
    solution, limit = test.solution(), test.inconsistent.solution(0.5, conjugate=False)
    data = {"h": T1 / np.array(steps)}
    for variant in ("natural", "true"):
        data |= errors(test.problem(), SymplecticEuler(variant), steps, {f"{variant}_{{}}": solution})
    return data | {f"limit_{component}": np.array([distance(limit, solution, component)]) for component in COMPONENTS}


def errors_hold(data: Data, *, problem: str, component: str) -> Checks:
    """The true method has slope 1; the natural method's error tends to that of its limit."""
    h, true, natural = data["h"], data[f"true_{component}"], data[f"natural_{component}"]
    away = natural[-1] / data[f"limit_{component}"][0] - 1
    yield at_most("true: |slope - 1|", abs(fitted_slope(h, true) - 1), 0.05)
    yield at_most("true: largest ratio of an error to the one before", np.max(true[1:] / true[:-1]), 0.6)
    yield at_most("natural: |slope| at the end", abs(local_slope(h, natural, -1)), 0.1)
    yield at_most("natural: |error / distance of its limit from the solution - 1| at the end", abs(away), 0.1)
    yield at_least("natural over true at the end", natural[-1] / true[-1], 20)
    if problem == "4.2":
        here = int(np.argmin(np.abs(h - T1 / LOOKS)))
        yield at_least(f"natural: slope at h = 1/{LOOKS}, as if it converged", local_slope(h, natural, here), 0.85)


@panels(4.6, 3.6)
def draw_errors(data: Data, ax: Axes, *, problem: str, component: str) -> None:
    """Both errors against h, the distance of the natural method's limit, and a line of slope 1."""
    h, true = data["h"], data[f"true_{component}"]
    ax.plot(h, data[f"natural_{component}"], color=VERMILION, marker="s", markersize=4, label="natural")
    ax.plot(h, true, color=BLUE, marker="o", markersize=4, label="true")
    ax.plot(h, 0.5 * true[-1] * h / h[-1], color="#505050", **DASHES, label="slope 1")
    ax.axhline(data[f"limit_{component}"][0], color=VERMILION, linewidth=0.8, linestyle=DOTTED, label="limit of natural")
    log_log(ax, f"({problem}), ${component}$ at $t = 1$", ylabel="error")
    ax.legend(loc="lower right")


COMPUTE = {problem: partial(compute_errors, problem=problem) for problem in PROBLEMS}
"""Figures on the same problem share their runs."""
REMARK = {
    "4.1": "",
    "4.2": "The natural method's limit differs from the solution by only 3.0e-3 in y and 5.7e-3 in z, less than its own error "
    "of order h for all but small h: its slope falls below one half near h = 1/1300 in y and 1/600 in z, and at h = 1/80 it is "
    "still 0.98 and 0.90. Over the step sizes that one would try first it looks like a method of order 1.",
}
for number, problem, component in (("4.1", "4.1", "y"), ("4.2", "4.1", "z"), ("4.3", "4.2", "y"), ("4.4", "4.2", "z")):
    JAY_SIMEON.claim(
        f"figure{number}",
        f"The error in {component} at t = 1 of the true symplectic Euler method on ({problem}) is of order 1; that of "
        "the natural method does not tend to zero.",
        compute=COMPUTE[problem],
        draw=partial(draw_errors, problem=problem, component=component),
        remark=REMARK[problem],
    )(partial(errors_hold, problem=problem, component=component))
