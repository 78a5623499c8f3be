"""The theorem on convergence: order 2s of both methods, measured on the skate."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw._style import CYCLE, MARKERS
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import legend_below, log_log, panels, slope_line
from dalembert.experiments._measures import largest
from dalembert.experiments.small_jay2011._shared import FAMILIES, NAMES, SMALL_JAY
from dalembert.problems import skate
from dalembert.verify import order, slope

T1 = 3.0
STAGES = (1, 2, 3, 4)
STEPS = {1: (30, 40, 60, 80, 94), 2: (15, 22, 32, 46, 66, 94), 3: (10, 14, 20, 28, 40), 4: (10, 11, 12, 13, 14, 16)}
"""Numbers of steps within one decade of h, with errors above round-off."""
ROUND_OFF = 1e-13
COMPONENTS = ("q", "p", "psi")


def compute_orders(full: bool) -> Data:
    """Errors at t = 3 by method, number of stages and component; lam is constant here and exact in all of them."""
    problem = skate(speed=0.3)
    assert problem.exact is not None
    known = {name: value for name, value in problem.exact(T1).items() if name in COMPONENTS}
    data: dict[str, np.ndarray] = {}
    for s in STAGES:
        data[f"h{s}"] = T1 / np.array(STEPS[s])
        for name, family in FAMILIES.items():
            study = order(problem, family(stages=s), reference=known, t1=T1, steps=STEPS[s])
            data |= {f"{name}{s}_{component}": study.errors[component] for component in COMPONENTS}
    return data


@panels(8.6, 3.6, columns=3, sharey=True)
def draw_orders(data: Data, axes: Any) -> None:
    """Errors of q, p and psi against h, filled marks for SPARK and open ones for EMPRK, with lines of slope 2s."""
    for ax, component in zip(axes, COMPONENTS, strict=True):
        for s, color, marker in zip(STAGES, CYCLE, MARKERS, strict=False):
            h = data[f"h{s}"]
            for name, fill in (("spark", color), ("emprk", "none")):
                error, label = data[f"{name}{s}_{component}"], f"{NAMES[name]}, $s = {s}$"
                ax.plot(h, error, marker, color=color, markerfacecolor=fill, markersize=5, label=label)
            line = slope_line(ax, h, data[f"spark{s}_{component}"], 2 * s, color)
            ax.annotate(f"{2 * s}", (h[-1], line[-1]), xytext=(-9, -2), textcoords="offset points", fontsize=8, color=color)
        log_log(ax)
        ax.set_title("$" + {"psi": r"\psi"}.get(component, component) + "$")
        ax.margins(x=0.14)  # room for the slopes beside the finest steps
    axes[0].set_ylabel(f"error at $t = {T1:g}$")
    legend_below(axes[0], 4)


@SMALL_JAY.claim(
    "orders",
    "The (s,s)-Gauss-Lobatto SPARK and EMPRK methods are convergent of order 2s in y and z.",
    item="theorem on convergence",
    compute=compute_orders,
    draw=draw_orders,
    remark="psi is computed from the state by dk/dt = 0 and has the order of y and z; the internal multipliers do not.",
)
def orders_hold(data: Data) -> Checks:
    """Slopes within 0.15 of 2s; the methods coincide for one stage, and differ from two on."""
    for s in STAGES:
        for name in FAMILIES:
            for component in COMPONENTS:
                measured, used = slope(data[f"h{s}"], data[f"{name}{s}_{component}"], floor=ROUND_OFF, points=4)
                away = abs(measured - 2 * s) if used.sum() >= 3 else float("nan")
                yield at_most(f"{NAMES[name]}, s = {s}: |slope in {component} - {2 * s}|", away, 0.15)
        apart = largest(data[f"spark{s}_q"] / data[f"emprk{s}_q"] - 1)
        label = f"s = {s}: relative difference of the errors of q of the two methods"
        yield at_most(label, apart, 1e-9) if s == 1 else at_least(label, apart, 0.05)
