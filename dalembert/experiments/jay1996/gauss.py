"""Section 5: the Gauss method without projection diverges on both examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw._style import BLACK, CYCLE
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import DASHES, over_time, panels
from dalembert.experiments._measures import largest_residuals, simulate
from dalembert.experiments.jay1996._shared import EXAMPLE_TITLES, EXAMPLES, JAY, H
from dalembert.methods import Gauss


def compute_gauss(full: bool) -> Data:
    """H of the unprojected 2-stage Gauss method on both examples, until t = 6 or failure, with h = 0.12 and its halves."""
    data: dict[str, np.ndarray] = {"h": H / 2.0 ** np.arange(6 if full else 4)}
    for name, problem in EXAMPLES.items():
        for k, h in enumerate(data["h"]):
            steps = round(6.0 / float(h))
            run = simulate(problem(), Gauss(stages=2), h=float(h), steps=steps, on_failure="return")
            data |= {f"{name}_t{k}": run.t, f"{name}_H{k}": run.energy, f"{name}_g{k}": largest_residuals(run)["g"]}
    return data


def at_time(data: Data, name: str, k: int, t: float) -> float:
    """|H - H_0| of the k-th step size at the time t."""
    energy = data[f"{name}_H{k}"]
    return float(np.interp(t, data[f"{name}_t{k}"], np.abs(energy - energy[0])))


def breakdown(t: np.ndarray, energy: np.ndarray, bound: float = 1.0, until: float = 6.0) -> float:
    """When |H - H_0| first exceeds a bound, or when a run that should reach `until` ended before; infinity for neither.

    Example:
        >>> breakdown(np.array([0.0, 3.0, 6.0]), np.array([0.0, 0.5, 2.0])), breakdown(np.array([0.0, 2.0]), np.zeros(2))
        (6.0, 2.0)

    """
    above = ~(np.abs(energy - energy[0]) <= bound)
    if above.any():
        return float(t[np.argmax(above)])
    return float(t[-1]) if t[-1] < until - 1e-9 else float("inf")


@panels(7.2, 2.9, columns=2, sharey=True)
def draw_gauss(data: Data, axes: Any) -> None:
    """|H - H_0| against time for the step sizes, on both examples."""
    for ax, (name, title) in zip(axes, EXAMPLE_TITLES.items(), strict=True):
        for k, (h, color) in enumerate(zip(data["h"], CYCLE, strict=False)):
            t, energy = data[f"{name}_t{k}"], data[f"{name}_H{k}"]
            error = np.abs(energy - energy[0])
            positive = error > 0
            ax.plot(t[positive], error[positive], color=color, label=f"$h = {h:g}$")
        ax.axhline(1.0, color=BLACK, **DASHES)
        ax.set(yscale="log", xlim=(0, 6), ylim=(1e-9, 1e9))
        over_time(ax, title)
    axes[0].set_ylabel("$|H - H_0|$")
    axes[1].legend(loc="lower right")


@JAY.claim(
    "gauss_diverges",
    "The unprojected 2-stage Gauss method diverges on holonomic constraints: on both examples its energy error "
    "exceeds 1 before t = 3, or its step equations have no solution, and smaller steps do not help.",
    compute=compute_gauss,
    draw=draw_gauss,
    item="section 5, the unprojected Gauss method",
    remark="It does converge as h tends to 0, to a motion that is not a solution: the curves for different h fall "
    "together, and |H - H_0| passes 1 at t = 2.05 and 1.98 for every h. Later the step equations may have no solution.",
)
def gauss_diverges(data: Data) -> Checks:
    """The error of H passes 1 before t = 3, or no step can be solved any more; smaller steps do not help."""
    for name in EXAMPLES:
        times = []
        for k, h in enumerate(data["h"]):
            times.append(breakdown(data[f"{name}_t{k}"], data[f"{name}_H{k}"]))
            yield at_most(f"{name}, h = {h:g}: time at which |H - H_0| passes 1, or the run fails", times[-1], 3.0)
        last, finer = (at_time(data, name, k, 1.5) for k in (len(data["h"]) - 2, len(data["h"]) - 1))
        yield at_least(f"{name}: |H - H_0| at t = 1.5 for the smallest h", finer, 0.1)
        yield at_most(f"{name}: its relative change when h was last halved", abs(last - finer) / finer, 0.05)
        yield at_most(f"{name}: largest change of that time when h is halved", np.max(np.abs(np.diff(times))), 0.3)
        yield at_least(f"{name}: largest |g| at h = {data['h'][0]:g}", np.max(data[f"{name}_g0"]), 5e-4)
