"""Figures 4.1 to 4.4: global errors of the natural and the true symplectic Euler method, alpha = 1/2, against h."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data, Experiment
from dalembert.experiments.jay_simeon._shared import (
    COMPONENTS,
    DOCUMENT,
    PROBLEMS,
    T1,
    distance,
    errors,
    fitted_slope,
    local_slope,
    log_axes,
)
from dalembert.methods import SymplecticEuler

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        (found,) = errors(test.problem(), SymplecticEuler(variant), steps, solution)
        data |= {f"{variant}_{component}": found[component] for component in COMPONENTS}
    return data | {f"limit_{component}": np.array([distance(limit, solution, component)]) for component in COMPONENTS}


def errors_hold(data: Data, *, problem: str, component: str) -> tuple[Check, ...]:
    """The true method has slope 1; the natural method's error tends to that of its limit."""
    h, true, natural = data["h"], data[f"true_{component}"], data[f"natural_{component}"]
    limit = float(data[f"limit_{component}"][0])
    checks = [
        Check("true: |slope - 1|", abs(fitted_slope(h, true) - 1), "<=", 0.05),
        Check("true: largest ratio of an error to the one before", float(np.max(true[1:] / true[:-1])), "<=", 0.6),
        Check("natural: |slope| at the end", abs(local_slope(h, natural, -1)), "<=", 0.1),
        Check(
            "natural: |error / distance of its limit from the solution - 1| at the end", abs(natural[-1] / limit - 1), "<=", 0.1
        ),
        Check("natural over true at the end", float(natural[-1] / true[-1]), ">=", 20),
    ]
    if problem == "4.2":
        here = int(np.argmin(np.abs(h - T1 / LOOKS)))
        checks.append(Check(f"natural: slope at h = 1/{LOOKS}, as if it converged", local_slope(h, natural, here), ">=", 0.85))
    return tuple(checks)


def draw_errors(data: Data, *, problem: str, component: str) -> Figure:
    """Both errors against h, the distance of the natural method's limit, and a line of slope 1."""
    from dalembert.draw._style import BLUE, VERMILION, new_figure, styled

    h, true = data["h"], data[f"true_{component}"]
    with styled():
        figure = new_figure(4.6, 3.6)
        ax = figure.subplots()
        ax.plot(h, data[f"natural_{component}"], color=VERMILION, marker="s", markersize=4, label="natural")
        ax.plot(h, true, color=BLUE, marker="o", markersize=4, label="true")
        ax.plot(h, 0.5 * true[-1] * h / h[-1], color="#505050", linewidth=0.8, linestyle=(0, (4, 3)), label="slope 1")
        ax.axhline(
            data[f"limit_{component}"][0], color=VERMILION, linewidth=0.8, linestyle=(0, (1, 2)), label="limit of natural"
        )
        log_axes(ax, f"{PROBLEMS[problem].number}, ${component}$ at $t = 1$", "error")
        ax.legend(loc="lower right")
    return figure


REMARK = {
    "4.1": "",
    "4.2": "The natural method's limit differs from the solution by only 3.0e-3 in y and 5.7e-3 in z, less than its own error "
    "of order h for all but small h: its slope falls below one half near h = 1/1300 in y and 1/600 in z, and at h = 1/80 it is "
    "still 0.98 and 0.90. Over the step sizes that one would try first it looks like a method of order 1.",
}
EXPERIMENTS = tuple(
    Experiment(
        name=f"jay_simeon.figure{number}",
        document=DOCUMENT,
        item=f"figure {number}",
        claim=f"The error in {component} at t = 1 of the true symplectic Euler method on ({problem}) is of order 1; that of "
        "the natural method does not tend to zero.",
        compute=partial(compute_errors, problem=problem),
        draw=partial(draw_errors, problem=problem, component=component),
        holds=partial(errors_hold, problem=problem, component=component),
        remark=REMARK[problem],
    )
    for number, problem, component in (("4.1", "4.1", "y"), ("4.2", "4.1", "z"), ("4.3", "4.2", "y"), ("4.4", "4.2", "z"))
)
