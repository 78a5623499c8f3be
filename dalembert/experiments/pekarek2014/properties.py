"""Tables I and II: what one impact keeps, measured, and what the methods cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.contact import MCVA, CollisionIntegrator
from dalembert.draw._style import BLUE, CYCLE, MARKERS, VERMILION
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import DASHES, GREY, legend_below, log_log, panels, sizes_as_ticks
from dalembert.experiments._measures import simulate
from dalembert.experiments.pekarek2014._shared import (
    BETAS,
    LABELS,
    PAPER,
    PEKAREK,
    SIZES,
    SYSTEM,
    T1,
    impacts,
    simulate_to_the_end,
    xi,
)
from dalembert.methods._discrete_lagrangian import discrete_lagrangian
from dalembert.modified import modified_hamiltonian
from dalembert.verify import slope, symplecticity_defect

# -- Table I -----------------------------------------------------------------------------------------------------------

EVEN = MCVA("SVC", 4, "even")
METHODS: dict[str, CollisionIntegrator] = {**PAPER, "MCVA_even": EVEN, "MCVA_6": MCVA("SVC", 6, "even")}
NAMES = {**LABELS, "MCVA_6": "MCVA, SVC even $O(h^6)$"}
ORDERS = {"CVA": 2, "MCVAA": 4, "MCVAC": 4, "MCVA_even": 4, "MCVA_6": 6}
"""Of the defect of symplecticity of one step with an impact: the order of the partial steps."""
ROUND_OFF = 2e-14
DEFECT_SIZES, MORE_DEFECT_SIZES = 0.1 / 2.0 ** np.arange(4), 0.1 / 2.0 ** np.arange(0, 5.5, 0.5)
H = 0.032


def compute_table1(full: bool) -> Data:
    """Defects of symplecticity by h, changes of H~ at impacts, and how many configurations L_d is stationary over."""
    sizes = MORE_DEFECT_SIZES if full else DEFECT_SIZES
    betas = BETAS if full else BETAS[::10]
    data: dict[str, np.ndarray] = {}
    for name, method in METHODS.items():
        if name == "MCVA_6" and not full:
            continue  # takes longer than all others
        data[f"{name}_h"] = sizes[sizes > 0.04] if name == "MCVA_6" else sizes  # its defect is at round-off below
        # each of these steps hits the floor when about half of it is over
        data[f"{name}_defect"] = np.array(
            [symplecticity_defect(SYSTEM, method, h=h, q0=[2 * h, 0.4], v0=[-4.0, 1.0]) for h in data[f"{name}_h"]]
        )
        associated = method if isinstance(method, MCVA) else EVEN
        kept = modified_hamiltonian(SYSTEM, method.full, associated.truncation, associated.expansion)
        hits = [impacts(simulate_to_the_end(method, H, beta)) for beta in betas]
        changes = [np.max(np.abs(kept(hit.q, hit.p_after, H) - kept(hit.q, hit.p_before, H))) for hit in hits]
        data[f"{name}_change"] = np.array(changes)
        data[f"{name}_internal"] = np.array([len(discrete_lagrangian(SYSTEM.smooth, method.base).formula.internal)])
    return data


@panels(8.6, 3.6, columns=2)
def draw_table1(data: Data, axes: Any) -> None:
    """Defects of symplecticity against h, and changes of H~ at impacts."""
    left, right = axes
    present = [name for name in METHODS if f"{name}_h" in data]
    rows = np.arange(len(present))[::-1]
    for name, row, color, marker in zip(present, rows, CYCLE, MARKERS, strict=False):
        defects = np.maximum(data[f"{name}_defect"], 1e-17)
        left.plot(data[f"{name}_h"], defects, f"{marker}-", color=color, markersize=4, label=NAMES[name])
        changes = np.maximum(data[f"{name}_change"], 1e-16)
        right.plot(changes, np.full(len(changes), row), "o", color=color, markersize=3, alpha=0.6)
    log_log(left, ylabel="defect of symplecticity of an impact step")
    sizes_as_ticks(left, DEFECT_SIZES)
    right.axvline(1e-12, color=GREY, **DASHES)
    right.set(xscale="log", xlabel=r"largest change of $\tilde H$ at an impact [J]", ylim=(-0.6, len(present) - 0.4))
    right.set_yticks(rows, [NAMES[name] for name in present])
    right.grid(True)
    legend_below(left, 6, fontsize=7)


@PEKAREK.claim(
    "table1",
    "MCVAA and MCVAC conserve their modified Hamiltonian at impacts, CVA and VCI do not; VCI is symplectic exactly, MCVAA and "
    "MCVAC to the accuracy of their partial steps; and the discrete Lagrangian of all but MCVAA is explicit.",
    item="table I",
    compute=compute_table1,
    draw=draw_table1,
    contradicts="Algorithm 1 applies the reset (33) of VCI before it takes the time of the impact off tau_max. So read, VCI is "
    "not symplectic, which the paper says it is; with tau_max as the time that remains after the impact it is, to round-off.",
    remark="Symplectic to a specified accuracy is a matter of degree: the defect of one step with an impact is O(h^2) "
    "for CVA, O(h^4) for MCVAA and for MCVAC (although it leaves out O(h^3), because its partial steps have order 4), "
    "and O(h^6) with a truncation of O(h^6).",
)
def table1_holds(data: Data) -> Checks:
    """VCI is symplectic to round-off and the others to the order of their partial steps; only MCVA keeps H~."""
    yield at_most("VCI: largest defect of symplecticity", np.max(data["VCI_defect"]), ROUND_OFF)
    present = [name for name in METHODS if f"{name}_h" in data]
    for name in present[2:] + present[:1]:
        order = ORDERS[name]
        measured = slope(data[f"{name}_h"], data[f"{name}_defect"])[0]
        yield at_most(f"{name}: |order of the defect - {order}|", abs(measured - order), 0.3 if order == 6 else 0.2)
    for name in present:
        change, smallest = np.max(data[f"{name}_change"]), np.min(data[f"{name}_change"])
        if name in ("CVA", "VCI"):
            yield at_least(f"{name}: least change of H~ over a run's impacts", smallest, 1e-4)
        else:
            yield at_most(f"{name}: largest change of H~ at an impact", change, 1e-12)
        internal = float(data[f"{name}_internal"][0])
        if name == "MCVAA":
            yield at_least(f"{name}: configurations that L_d is stationary over", internal, 1)
        elif name in PAPER:
            yield at_most(f"{name}: configurations that L_d is stationary over", internal, 0)


# -- Table II ----------------------------------------------------------------------------------------------------------

REPEATS, MORE_REPEATS = 12, 24
LONGER = 4
"""The paper's simulations of 5 s take less than a millisecond here; these are 4 times as long."""
TIMED = ("MCVAA", "MCVAC")


def compute_table2(full: bool) -> Data:
    """Seconds by method, h and start, the least of several repeats with the methods in turn; and the impacts and steps.

    Without gravity the pendulum turns as it does in free fall, and the cart never meets the floor: that is the cost of steps.
    """
    betas = BETAS if full else BETAS[::12]
    data: dict[str, np.ndarray] = {"beta": betas}
    for h in SIZES:
        steps = int(LONGER * T1 / h)
        data[f"steps_{h}"] = np.array([steps])
        for name in TIMED:
            data |= {f"{name}_{h}": np.full(len(betas), np.inf), f"{name}_{h}_free": np.full(len(betas), np.inf)}
            data[f"{name}_{h}_impacts"] = np.zeros(len(betas))
        for _ in range(MORE_REPEATS if full else REPEATS):
            for k, beta in enumerate(betas):
                for name in TIMED:
                    options: dict[str, Any] = {"h": h, "steps": steps, "save_every": 10, **xi(beta)}
                    hitting = simulate(SYSTEM, PAPER[name], **options)
                    free = simulate(SYSTEM, PAPER[name], params={"g": 0.0}, **options)
                    for kind, run in (("", hitting), ("_free", free)):
                        least = data[f"{name}_{h}{kind}"]
                        least[k] = min(least[k], run.stats["wall_seconds"])
                    data[f"{name}_{h}_impacts"][k] = len(impacts(hitting))
    return data


def costs(data: Data, h: float) -> dict[str, tuple[float, float, float]]:
    """By method: microseconds of a 5 s simulation, of a step without impacts, and of what an impact adds."""
    steps, table = float(data[f"steps_{h}"][0]), {}
    for name in TIMED:
        total, free = (float(np.mean(data[f"{name}_{h}{kind}"])) for kind in ("", "_free"))
        table[name] = (
            1e6 * total / LONGER,
            1e6 * free / steps,
            1e6 * (total - free) / float(np.mean(data[f"{name}_{h}_impacts"])),
        )
    return table


@panels(8.0, 3.2, columns=3)
def draw_table2(data: Data, axes: Any) -> None:
    """Times of 5 s by start, of a step without impacts and of an impact."""
    for shift, name, color in ((-0.2, TIMED[0], BLUE), (0.2, TIMED[1], VERMILION)):
        for k, h in enumerate(SIZES):
            _, step, impact = costs(data, h)[name]
            seconds = 1e6 * data[f"{name}_{h}"] / LONGER
            axes[0].plot(np.full(len(seconds), k + shift), seconds, "o", color=color, markersize=3, alpha=0.5)
            axes[0].bar(k + shift, np.mean(seconds), 0.36, color=color, alpha=0.35, label=name if k == 0 else None)
            axes[1].bar(k + shift, step, 0.36, color=color, alpha=0.7)
            axes[2].bar(k + shift, impact, 0.36, color=color, alpha=0.7)
    titles = ("simulation of 5 s", "step without impacts", "what an impact adds")
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title, ylabel="microseconds")
        ax.set_xticks(range(len(SIZES)), [f"$h = {h}$" for h in SIZES])
        ax.grid(True, axis="y")
    legend_below(axes[0], 2)


@PEKAREK.claim(
    "table2",
    "MCVAC has cheaper steps without impacts than MCVAA, and an impact costs as much as many steps, so that which "
    "of them is faster depends on how sparse impacts are.",
    item="table II",
    compute=compute_table2,
    draw=draw_table2,
    contradicts="The rows of table II contradict the text, which says that MCVAA takes less time and that MCVAC takes "
    "less with the smaller h: exchanged, they agree with it. Column 3.2E-1 is 3.2E-2. Neither statement of the text "
    "is confirmed here: at h = 0.032 there is little between the two, at h = 0.01 MCVAC is faster, and neither takes "
    "less time with the smaller h.",
    remark="Here an impact costs about 50 steps, those of MCVAC no more than a quarter above those of MCVAA, and MCVAA "
    "breaks even at about 50 steps an impact; there are 45 at h = 0.032 and 137 at h = 0.01. Times are the least of "
    "several repeats in one run.",
    timed=True,
)
def table2_holds(data: Data) -> Checks:
    """SVC's steps are cheaper and impacts cost as much as many steps, so that MCVAC gains where impacts are sparser."""
    totals = []
    for h in SIZES:
        sva, svc = (costs(data, h)[name] for name in TIMED)
        totals.append(svc[0] / sva[0])
        yield at_most(f"h = {h}: a step of MCVAC without impacts over one of MCVAA", svc[1] / sva[1], 1)
        for name, (_, step, impact) in (("MCVAA", sva), ("MCVAC", svc)):
            yield at_least(f"h = {h}: an impact of {name} over one of its steps", impact / step, 5)
    yield at_most("time of MCVAC over that of MCVAA: h = 0.01 over h = 0.032", totals[1] / totals[0], 1)
