"""Section 3 and corollary 4.4, measured: which methods are symplectic and reversible."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw._style import BLUE, VERMILION
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import DASHES, GREY, legend_below, panels
from dalembert.experiments.jay1996._shared import EXAMPLE_TITLES, EXAMPLES, JAY, H, paper_run
from dalembert.methods import Gauss, LobattoIIIAB, OneStepMethod, RadauIIA
from dalembert.verify import reversibility_defect, symplecticity_defect

STRUCTURED: dict[str, OneStepMethod] = {
    **{f"Lobatto IIIA-IIIB, s = {s}": LobattoIIIAB(stages=s) for s in (2, 3, 4, 5)},
    "Gauss, s = 2": Gauss(stages=2),
    "Gauss, s = 2, projected": Gauss(stages=2, projected=True),
    "Radau IIA, s = 2": RadauIIA(stages=2),
    "Radau IIA, s = 2, projected": RadauIIA(stages=2, projected=True),
}
DEFECTS = {"symplecticity": symplecticity_defect, "reversibility": reversibility_defect}


def compute_defects(full: bool) -> Data:
    """Defects of one step of h = 0.12, a row for each method and a column for each of some states of the exact motion."""
    data: dict[str, np.ndarray] = {"method": np.array(list(STRUCTURED))}
    for name, make in EXAMPLES.items():
        problem = make()
        run = paper_run(problem, LobattoIIIAB(stages=4), steps=40)
        states = [{"q0": run.q[k], "p0": run.p[k]} for k in range(0, 41, 5 if full else 20)]
        for kind, defect in DEFECTS.items():
            rows = [[defect(problem, method, h=H, **state) for state in states] for method in STRUCTURED.values()]
            data[f"{name}_{kind}"] = np.array(rows)
    return data


@panels(7.6, 3.2, columns=2, sharey=True)
def draw_defects(data: Data, axes: Any) -> None:
    """The largest defects by method, on a logarithmic axis, and as numbers."""
    rows = np.arange(len(data["method"]))[::-1]
    for ax, name in zip(axes, EXAMPLES, strict=True):
        for kind, color, marker, shift in (("symplecticity", BLUE, "o", 0.16), ("reversibility", VERMILION, "s", -0.16)):
            largest = np.maximum(np.max(data[f"{name}_{kind}"], axis=1), 1e-17)
            ax.hlines(rows + shift, 1e-17, largest, color=color, linewidth=0.8)
            ax.plot(largest, rows + shift, marker, color=color, markersize=4.5, label=f"{kind} defect")
            for x, y in zip(largest, rows + shift, strict=True):
                ax.annotate(f"{x:.0e}", (x, y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=6, color=color)
        ax.axvline(1e-13, color=GREY, **DASHES)
        ax.set(xscale="log", xlim=(1e-17, 1e-1), ylim=(-0.6, len(rows) - 0.4))
        ax.set_xticks([1e-16, 1e-13, 1e-10, 1e-7, 1e-4])
        ax.set_yticks(rows, list(data["method"]))
        ax.minorticks_off()
        ax.set_title(EXAMPLE_TITLES[name], loc="left")
        ax.grid(True, axis="x")
    legend_below(axes[0], 2)


@JAY.claim(
    "structure",
    "One step of h = 0.12 of the Lobatto IIIA-IIIB methods with 2 to 5 stages is symplectic and reversible to "
    "round-off on both examples; one of 2-stage Radau IIA or of projected Gauss is neither.",
    item="section 3 and corollary 4.4, measured",
    compute=compute_defects,
    draw=draw_defects,
    remark="Unprojected Gauss is symplectic and reversible as well, and useless: see jay1996.gauss_diverges.",
)
def defects_hold(data: Data) -> Checks:
    """Below 1e-13 for the Lobatto methods and for unprojected Gauss, above 1e-6 for Radau IIA and for projected Gauss."""
    for name in EXAMPLES:
        for kind in DEFECTS:
            largest = dict(zip(data["method"], np.max(data[f"{name}_{kind}"], axis=1), strict=True))
            kept = [value for method, value in largest.items() if method.startswith("Lobatto")]
            lost = [value for method, value in largest.items() if method.startswith("Radau") or method.endswith("projected")]
            yield at_most(f"{name}: largest {kind} defect of the Lobatto methods", np.max(kept), 1e-13)
            yield at_most(f"{name}: {kind} defect of unprojected Gauss", largest["Gauss, s = 2"], 1e-13)
            yield at_least(f"{name}: least {kind} defect of Radau IIA and projected Gauss", np.min(lost), 1e-6)
