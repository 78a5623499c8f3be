"""Beyond the paper: the heavy symmetric top, with nine coordinates and six constraints."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw._style import BLACK, BLUE, GREEN, VERMILION
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import panels
from dalembert.experiments._measures import EPSILON, simulate, steadiness
from dalembert.experiments.jay1996._shared import JAY, LOBATTO, MANY_STEPS, STEPS
from dalembert.methods import RadauIIA
from dalembert.plot._panels import history
from dalembert.problems import heavy_top

MOMENTA = {"vertical": VERMILION, "axial": GREEN}
"""Angular momenta, with the colours of their curves."""
TITLES = {"lobatto": "3-stage Lobatto IIIA-IIIB", "radau": "2-stage Radau IIA, projected"}


def compute_top(full: bool) -> Data:
    """Energy and angular momenta of the heavy top by 3-stage Lobatto IIIA-IIIB and by projected 2-stage Radau IIA."""
    problem = heavy_top()
    data: dict[str, np.ndarray] = {}
    most = MANY_STEPS if full else STEPS
    for name, method, steps in (("lobatto", LOBATTO, most), ("radau", RadauIIA(stages=2, projected=True), STEPS)):
        run = simulate(problem, method, steps=steps, save_every=max(1, steps // (2 * STEPS)))
        data |= {f"{name}_t": run.t, f"{name}_energy": run.energy}
        for which in MOMENTA:
            data[f"{name}_{which}"] = problem.conserved[f"{which}_angular_momentum"](run)
    return data | {"steps": np.array(most)}


@panels(7.6, 4.2, 2, 2, sharex="col")
def draw_top(data: Data, axes: Any) -> None:
    """Errors of H and of both momenta: Lobatto to the left, Radau IIA to the right."""
    for (upper, lower), (name, title) in zip(axes.T, TITLES.items(), strict=True):
        t = data[f"{name}_t"]
        history(upper, t, data[f"{name}_energy"] - data[f"{name}_energy"][0], color=BLUE)
        upper.set_title(title, loc="left", pad=14)
        for which, color in MOMENTA.items():
            moved = data[f"{name}_{which}"] - data[f"{name}_{which}"][0]
            history(lower, t, moved, color=color, label=f"{which} angular momentum")
        lower.set_xlabel("$t$")
        for ax in (upper, lower):
            ax.axhline(0.0, color=BLACK, linewidth=0.6)
            ax.grid(True)
    axes[0, 0].set_ylabel("$H - H_0$")
    axes[1, 0].set_ylabel("change of momentum")
    axes[1, 1].legend(loc="lower left")


@JAY.claim(
    "heavy_top",
    "With nine coordinates and six constraints the 3-stage Lobatto IIIA-IIIB method conserves the vertical and the "
    "axial angular momentum of the heavy top to round-off and its energy within a narrow band.",
    item="beyond the paper: the heavy symmetric top",
    compute=compute_top,
    draw=draw_top,
    remark="Rotations act linearly on the rotation matrix, so that both momenta are bilinear in (q, p), and symplectic "
    "partitioned methods conserve them exactly. What is left grows by 0.02 units of machine precision per step.",
)
def top_holds(data: Data) -> Checks:
    """Both momenta to round-off, the energy in a band without slope; Radau IIA loses all three."""
    t, energy, steps = data["lobatto_t"], data["lobatto_energy"], int(data["steps"])
    size, rise, _ = steadiness(t, energy - energy[0])
    lost = {name: abs(data[f"radau_{name}"][-1] - data[f"radau_{name}"][0]) for name in ("energy", *MOMENTA)}
    yield at_most("Lobatto: largest |H - H_0|", size, 1e-6)
    yield at_most("Lobatto: |fitted slope of H| times length over largest |H - H_0|", rise, 0.05)
    for which in MOMENTA:
        moved = np.abs(data[f"lobatto_{which}"] - data[f"lobatto_{which}"][0])
        early, rate = np.max(moved[t <= t[-1] * STEPS / steps]), np.max(moved) / EPSILON / steps
        yield at_most(f"Lobatto: largest change of the {which} angular momentum in 5000 steps", early, 1e-13)
        yield at_most(f"Lobatto: its largest change per step, in units of the machine precision ({which})", rate, 0.05)
        yield at_least(f"Radau IIA, projected: change of the {which} angular momentum", lost[which], 0.1)
    yield at_least("Radau IIA, projected: change of H", lost["energy"], 0.1)
