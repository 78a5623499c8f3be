"""The theorem on convergence: order 2s of both methods, measured on the skate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data, Experiment
from dalembert.experiments.small_jay2011._shared import DOCUMENT, FAMILIES, NAMES
from dalembert.problems import skate
from dalembert.verify import order, slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def orders_hold(data: Data) -> tuple[Check, ...]:
    """Slopes within 0.15 of 2s; the methods coincide for one stage, and differ from two on."""
    checks = []
    for s in STAGES:
        for name in FAMILIES:
            for component in COMPONENTS:
                measured, used = slope(data[f"h{s}"], data[f"{name}{s}_{component}"], floor=ROUND_OFF, points=4)
                away = abs(measured - 2 * s) if used.sum() >= 3 else float("nan")
                checks.append(Check(f"{NAMES[name]}, s = {s}: |slope in {component} - {2 * s}|", away, "<=", 0.15))
        apart = float(np.max(np.abs(data[f"spark{s}_q"] / data[f"emprk{s}_q"] - 1)))
        label = f"s = {s}: relative difference of the errors of q of the two methods"
        checks.append(Check(label, apart, "<=", 1e-9) if s == 1 else Check(label, apart, ">=", 0.05))
    return tuple(checks)


def draw_orders(data: Data) -> Figure:
    """Errors of q, p and psi against h, filled marks for SPARK and open ones for EMPRK, with lines of slope 2s."""
    from dalembert.draw._style import CYCLE, MARKERS, new_figure, styled

    with styled():
        figure = new_figure(8.6, 3.6)
        for ax, component in zip(figure.subplots(1, 3, sharey=True), COMPONENTS, strict=True):
            for s, color, marker in zip(STAGES, CYCLE, MARKERS, strict=False):
                h = data[f"h{s}"]
                for name, fill in (("spark", color), ("emprk", "none")):
                    error, label = data[f"{name}{s}_{component}"], f"{NAMES[name]}, $s = {s}$"
                    ax.plot(h, error, marker, color=color, markerfacecolor=fill, markersize=5, label=label)
                line = 0.5 * data[f"spark{s}_{component}"][0] * (h / h[0]) ** (2 * s)
                ax.plot(h, line, color=color, linewidth=0.7, linestyle=(0, (4, 3)))
                ax.annotate(f"{2 * s}", (h[-1], line[-1]), xytext=(-9, -2), textcoords="offset points", fontsize=8, color=color)
            ax.set(xscale="log", yscale="log", xlabel="$h$", title="$" + {"psi": r"\psi"}.get(component, component) + "$")
            ax.margins(x=0.14)  # room for the slopes beside the finest steps
            ax.minorticks_off()
            ax.grid(True)
        figure.axes[0].set_ylabel(f"error at $t = {T1:g}$")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


EXPERIMENTS = (
    Experiment(
        name="small_jay2011.orders",
        document=DOCUMENT,
        item="theorem on convergence",
        claim="The (s,s)-Gauss-Lobatto SPARK and EMPRK methods are convergent of order 2s in y and z.",
        compute=compute_orders,
        draw=draw_orders,
        holds=orders_hold,
        remark="psi is computed from the state by dk/dt = 0 and has the order of y and z; the internal multipliers do not.",
    ),
)
