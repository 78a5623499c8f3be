"""Section 4.1: how accurate collision times must be."""

from __future__ import annotations

import numpy as np

from dalembert.contact import CVA
from dalembert.draw._style import BLACK, CYCLE
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import Axes, legend_below, log_log, panels, sizes_as_ticks
from dalembert.experiments.pekarek2014._shared import BETAS, PEKAREK, l2_error, l2_norm, reference, simulate_to_the_end
from dalembert.methods import Gauss
from dalembert.verify import slope

BASE, ORDER = Gauss(stages=2), 4
SIZES = 0.08 / 2.0 ** np.arange(4)
TIMES = (1, 2, 3, 4)
"""Collision times are known to O(h^k), k as here."""


def compute_tolerance(full: bool) -> Data:
    """L^2 errors with exact collision times, and how far inexact ones move the motion: root mean squares over starts, by h."""
    betas = BETAS if full else BETAS[::3]
    runs = [[simulate_to_the_end(CVA(BASE), h, beta) for beta in betas] for h in SIZES]
    references = [reference(beta) for beta in betas]
    errors = [[l2_error(run, q) for run, q in zip(row, references, strict=True)] for row in runs]
    data = {"h": SIZES, "error": np.sqrt(np.mean(np.square(errors), axis=1))}
    for k in TIMES:
        moved = np.zeros((len(SIZES), len(betas)))
        for i, h in enumerate(SIZES):
            # a fraction of the step, so that the time is known to h times it
            inexact = CVA(BASE, collision_tolerance=(h / SIZES[0]) ** (k - 1) / 16)
            pairs = zip(runs[i], betas, strict=True)
            moved[i] = [l2_norm(simulate_to_the_end(inexact, h, beta).q - run.q, h) for run, beta in pairs]
        data[f"times_{k}"] = np.sqrt(np.mean(moved**2, axis=1))
    return data


@panels(5.6, 3.6)
def draw_tolerance(data: Data, ax: Axes) -> None:
    """Errors and changes against h."""
    for k, color in zip(TIMES, CYCLE, strict=False):
        label = "change by collision times to " + (f"$O(h^{k})$" if k > 1 else "$O(h)$")
        ax.plot(data["h"], data[f"times_{k}"], "o-", color=color, markersize=3.5, label=label)
    ax.plot(data["h"], data["error"], "o--", color=BLACK, markersize=3.5, label="error with exact times")
    log_log(ax, ylabel="$L^2$ norm on $[0, 5]$")
    sizes_as_ticks(ax, data["h"])
    legend_below(ax, 1, loc="outside right upper")


@PEKAREK.claim(
    "collision_tolerance",
    "With a method of order 4, here CVA on the Gauss method of two stages, collision times must be known to "
    "O(h^4) at least for its order to be preserved.",
    item="section 4.1",
    compute=compute_tolerance,
    draw=draw_tolerance,
    remark="Times to O(h^k) move the motion by O(h^k) on this nonlinear system, too, as was proven for an oscillator: "
    "the order of a run is the least of those of the method and of its collision times.",
)
def tolerance_holds(data: Data) -> Checks:
    """Times to O(h^k) move the motion by O(h^k), so that the order of the method is kept if k is not below it."""
    h, measured = data["h"], slope(data["h"], data["error"])[0]
    yield at_most(f"times to round-off: |order of the error - {ORDER}|", abs(measured - ORDER), 0.2)
    for k in TIMES:
        measured = slope(h, data[f"times_{k}"])[0]
        yield at_most(f"times to O(h^{k}): |order of the change - {k}|", abs(measured - k), 0.3)
    least = data[f"times_{ORDER - 1}"][-1] / data["error"][-1]
    yield at_least(f"change by times to O(h^{ORDER - 1}) over the error at h = {h[-1]}", least, 10)
