"""Figure 5.8: global errors of four methods at t = 5 on the double pendulum."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw._style import CYCLE
from dalembert.experiments._experiment import Checks, Data, at_most
from dalembert.experiments._figures import DASHED, legend_below, log_log, panels
from dalembert.experiments.jay1996._shared import JAY
from dalembert.experiments.jay1996.double_pendulum import exact_angles
from dalembert.methods import Gauss, LobattoIIIAB, OneStepMethod, RadauIIA
from dalembert.problems import double_pendulum
from dalembert.systems import state_at
from dalembert.verify import order, slope

T1 = 5.0
STEPS, MORE_STEPS = (40, 80, 160, 320, 640, 1280, 2560), (5120, 10240)
SETTLED = 160
"""Slopes are fitted to the finest errors from this number of steps on."""
ROUND_OFF = 3e-12
"""Errors below this hold too much of the reference's own error."""
METHODS: dict[str, tuple[OneStepMethod, tuple[int, int, int]]] = {
    "gauss": (Gauss(stages=2, projected=True), (2, 2, 2)),
    "radau_projected": (RadauIIA(stages=2, projected=True), (3, 3, 3)),
    "radau": (RadauIIA(stages=2), (3, 2, 1)),
    "lobatto": (LobattoIIIAB(stages=3), (4, 4, 4)),
}
"""Each with the orders of q, p and lambda."""
NAMES = {
    "gauss": "2-stage Gauss, projected", "radau_projected": "2-stage Radau IIA, projected", "radau": "2-stage Radau IIA",
    "lobatto": "3-stage Lobatto IIIA-IIIB",
}  # fmt: skip
COMPONENTS = ("q", "p", "lam")


def reference() -> dict[str, np.ndarray]:
    """q, p and lambda at t = 5 to about twelve digits, from the equations in angles."""
    a, b, a_dot, b_dot = exact_angles(np.array([0.0, T1]), rtol=3e-14, atol=1e-15)[:, -1]
    first, second = (np.array([np.sin(angle), -np.cos(angle)]) for angle in (a, b))
    v_first, v_second = (rate * np.array([np.cos(angle), np.sin(angle)]) for angle, rate in ((a, a_dot), (b, b_dot)))
    q, p = np.concatenate([first, first + second]), np.concatenate([v_first, v_first + v_second])
    return {"q": q, "p": p, "lam": state_at(double_pendulum().system, q0=q, p0=p, t0=T1).lam}


def compute_orders(full: bool) -> Data:
    """Errors of q, p and lambda by method; lambda of unprojected Radau IIA is Lambda_s, that of the others solves (3.3e)."""
    exact = reference()
    steps = STEPS + (MORE_STEPS if full else ())
    data: dict[str, np.ndarray] = {"h": T1 / np.array(steps)}
    for name, (method, _) in METHODS.items():
        multiplier = "stage_lam" if name == "radau" else "lam"
        right = {"q": exact["q"], "p": exact["p"], multiplier: exact["lam"]}
        errors = order(double_pendulum(), method, t1=T1, steps=steps, reference=right).errors
        data |= {f"{name}_{component.removeprefix('stage_')}": error for component, error in errors.items()}
    return data


@panels(8.6, 3.6, columns=3, sharey=True)
def draw_orders(data: Data, axes: Any) -> None:
    """Errors of q, p and lambda against h, with the paper's marks and dashed lines of the promised slopes."""
    marks = {"gauss": "s", "radau_projected": "x", "radau": "+", "lobatto": "D"}
    h = data["h"]
    for i, (ax, component) in enumerate(zip(axes, COMPONENTS, strict=True)):
        ends: list[tuple[float, str, str]] = []
        for (name, (_, orders)), color in zip(METHODS.items(), CYCLE, strict=False):
            error = data[f"{name}_{component}"]
            look = {"color": color, "marker": marks[name], "markersize": 5, "markerfacecolor": "none", "zorder": 3}
            shown = error > 1e-13
            ax.plot(h[shown], error[shown], label=NAMES[name], **look)
            k = len(h) // 2
            line = 0.45 * error[k] * (h / h[k]) ** orders[i]
            ax.plot(h[line > 1e-13], line[line > 1e-13], color=color, linewidth=0.7, linestyle=DASHED, alpha=0.7)
            ends.append((float(line[0]), f"{orders[i]}", color))
        for y, (_, label, color) in zip(apart([end[0] for end in ends], 2.5), ends, strict=True):
            ax.annotate(label, (h[0], y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8, color=color)
        log_log(ax)
        ax.set_title("$" + {"lam": r"\lambda"}.get(component, component) + "$")
    axes[0].set_ylabel("error at $t = 5$")
    legend_below(axes[0], 4)


@JAY.claim(
    "figure5.8",
    "At t = 5 the errors of q, p and lambda on the double pendulum are of order 2 for projected 2-stage Gauss, 3 for "
    "projected 2-stage Radau IIA, (3, 2, 1) for 2-stage Radau IIA and 4 for 3-stage Lobatto IIIA-IIIB, which is the most "
    "accurate of them.",
    compute=compute_orders,
    draw=draw_orders,
    remark="The slopes of projected Gauss, and of p of unprojected Radau IIA, settle slowly: between 40 and 160 steps they "
    "are off by 0.2 and more, and one error even rises as h falls; from 640 steps on they are within 0.1. lambda of "
    "unprojected Radau IIA is the stage multiplier Lambda_s; computed from (q, p) by (3.3e) it is of order 2, like p. The "
    "reference is computed in angles.",
)
def orders_hold(data: Data) -> Checks:
    """Slopes within 0.15 of the orders; the Lobatto method is the most accurate in every component for every h."""
    settled = data["h"] <= T1 / SETTLED
    for name, (_, orders) in METHODS.items():
        for component, promised in zip(COMPONENTS, orders, strict=True):
            measured = slope(data["h"][settled], data[f"{name}_{component}"][settled], floor=ROUND_OFF)[0]
            yield at_most(f"{NAMES[name]}: |slope in {component} - {promised}|", abs(measured - promised), 0.15)
    for component in COMPONENTS:
        others = np.min([data[f"{name}_{component}"] for name in METHODS if name != "lobatto"], axis=0)
        ratio = np.max(data[f"lobatto_{component}"] / others)
        yield at_most(f"error of Lobatto in {component} over the least of the others, largest over h", ratio, 1.0)


def apart(values: list[float], factor: float) -> list[float]:
    """Positive numbers moved upwards as needed to differ by at least a factor, for labels on a logarithmic axis.

    Example:
        >>> apart([1.0, 8.0, 1.0], 2.0)
        [1.0, 8.0, 2.0]

    """
    moved, least = list(values), 0.0
    for i in sorted(range(len(values)), key=values.__getitem__):
        moved[i] = max(values[i], least)
        least = factor * moved[i]
    return moved
