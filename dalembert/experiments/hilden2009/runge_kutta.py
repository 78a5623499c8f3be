"""Table 2.1: orders of the Runge-Kutta method (2.15) by family and number of stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalembert import tableaux
from dalembert.experiments._experiment import Data, Experiment
from dalembert.experiments.hilden2009._shared import DOCUMENT
from dalembert.experiments.hilden2009.orders import Curve, Study
from dalembert.methods import Gauss, LobattoIIIC, RadauIIA, RungeKutta
from dalembert.problems import index_two_growth_in_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAMILIES = {"gauss": "Gauss", "radau_ia": "Radau IA", "radau_iia": "Radau IIA", "lobatto_iiia": "Lobatto IIIA",
            "lobatto_iiic": "Lobatto IIIC"}  # fmt: skip
STUDY = Study(
    index_two_growth_in_parts,
    "y",
    {
        "gauss1": Curve("Gauss, s = 1", Gauss(1), 2, (80, 160, 320)),
        "gauss2": Curve("Gauss, s = 2", Gauss(2), 2, (80, 160, 320)),
        "gauss3": Curve("Gauss, s = 3", Gauss(3), 4, (40, 80, 160)),
        "radau_ia2": Curve("Radau IA, s = 2", RungeKutta(tableaux.radau_ia(2)), 2, (400, 800, 1600)),
        "radau_ia3": Curve("Radau IA, s = 3", RungeKutta(tableaux.radau_ia(3)), 3, (80, 160, 320)),
        "radau_iia2": Curve("Radau IIA, s = 2", RadauIIA(2), 3, (40, 80, 160)),
        "radau_iia3": Curve("Radau IIA, s = 3", RadauIIA(3), 5, (20, 40, 80)),
        "lobatto_iiia2": Curve("Lobatto IIIA, s = 2", RungeKutta(tableaux.lobatto_iiia(2)), 2, (80, 160, 320)),
        "lobatto_iiia3": Curve("Lobatto IIIA, s = 3", RungeKutta(tableaux.lobatto_iiia(3)), 4, (40, 80, 160)),
        "lobatto_iiic2": Curve("Lobatto IIIC, s = 2", LobattoIIIC(2), 2, (200, 400, 800)),
        "lobatto_iiic3": Curve("Lobatto IIIC, s = 3", LobattoIIIC(3), 4, (50, 100, 200)),
    },
)


def draw_families(data: Data) -> Figure:
    """Errors against h, a panel a family, with lines of the promised slopes."""
    from dalembert.draw._style import CYCLE, MARKERS, new_figure, styled

    with styled():
        figure = new_figure(8.6, 2.9)
        for ax, (family, title) in zip(
            figure.subplots(1, len(FAMILIES), sharex=True, sharey=True), FAMILIES.items(), strict=True
        ):
            for stages, color, marker in zip((1, 2, 3), CYCLE, MARKERS, strict=False):
                name = f"{family}{stages}"
                if name in STUDY.curves:
                    h, error, order = data[f"{name}_h"], data[name], STUDY.curves[name].order
                    ax.plot(h, error, marker, color=color, markersize=5, label=f"s = {stages}: order {order}")
                    ax.plot(h, error[0] * (h / h[0]) ** order, color=color, linewidth=0.7, linestyle=(0, (4, 3)))
            ax.set(xscale="log", yscale="log", xlabel="$h$")
            ax.set_title(title, loc="left")
            ax.margins(x=0.1)
            ax.minorticks_off()
            ax.grid(True)
            ax.legend(loc="best", fontsize=7)
        figure.axes[0].set_ylabel("error of $y$ at $t = 1$")
    return figure


EXPERIMENTS = (
    Experiment(
        name="hilden2009.table2.1",
        document=DOCUMENT,
        item="table 2.1",
        claim="On DAEs of index 2 the Runge-Kutta method (2.15) is of order s + 1 for odd and s for even s with Gauss "
        "coefficients, s with Radau IA, 2s-1 with Radau IIA, and 2s-2 with Lobatto IIIA and IIIC.",
        compute=STUDY.compute,
        draw=draw_families,
        holds=STUDY.holds,
        remark="The thesis quotes these orders from the literature without an experiment; they are measured on (2.23).",
    ),
)
