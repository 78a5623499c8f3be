"""Table 2.1, figures 2.2 to 2.4 and 3.4: orders of Runge-Kutta, SPARK, SRK and nonholonomic methods; and that of (4.3)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert import tableaux
from dalembert.draw._style import CYCLE, MARKERS
from dalembert.experiments._experiment import Checks, Data, at_most
from dalembert.experiments._figures import Figure, log_log, panels, slope_line
from dalembert.experiments.hilden2009._shared import HILDEN, draw_orders, order_check
from dalembert.methods import (
    SRK,
    CortesMartinez,
    Gauss,
    LobattoIIIC,
    LobattoSPARK,
    McLachlanPerlmutter,
    NonholonomicEuler,
    OneStepMethod,
    RadauIIA,
    RungeKutta,
    compose,
)
from dalembert.problems import Problem, chaplygin_sleigh, index_two_growth, index_two_growth_in_parts, vertical_disk
from dalembert.verify import order


@dataclass(frozen=True)
class Curve:
    """One method in a figure of errors at t = t1: its label, its order, and the numbers of steps."""

    label: str
    method: OneStepMethod
    order: int
    steps: Sequence[int]
    within: float = 0.1


@dataclass(frozen=True)
class Study:
    """One figure: errors of one component at t1 against the exact solution or a reference of higher order."""

    problem: Callable[[], Problem]
    component: str
    curves: dict[str, Curve]
    t1: float = 1.0

    def claim(
        self, name: str, claim: str, item: str = "", remark: str = "", draw: Callable[[Data], Figure] | None = None
    ) -> None:
        """Declare the experiment whose claim are the orders of the curves."""
        HILDEN.claim(name, claim, compute=self.compute, draw=draw or self.draw, item=item, remark=remark)(self.holds)

    def compute(self, full: bool) -> Data:
        """Errors and step sizes by curve."""
        problem = self.problem()
        reference = problem.exact if problem.exact is not None else (SRK("gauss", stages=4), 600)
        data: dict[str, np.ndarray] = {}
        for name, curve in self.curves.items():
            study = order(problem, curve.method, reference=reference, t1=self.t1, steps=curve.steps)
            data |= {name: study.errors[self.component], f"{name}_h": study.h}
        return data

    def holds(self, data: Data) -> Checks:
        """Every slope near its order, and errors that are small."""
        for name, curve in self.curves.items():
            yield order_check(curve.label, data[f"{name}_h"], data[name], curve.order, curve.within)
            bound = 20.0 * (self.t1 / curve.steps[-1]) ** curve.order
            yield at_most(f"{curve.label}: error at the finest h", data[name][-1], bound)

    def draw(self, data: Data) -> Figure:
        """Errors against h."""
        series = {name: (f"{name}_h", curve.label, curve.order) for name, curve in self.curves.items()}
        return draw_orders(data, series, f"error of ${self.component}$ at $t = {self.t1:g}$")


# -- table 2.1 -----------------------------------------------------------------------------------------------------------

FAMILIES = {"gauss": "Gauss", "radau_ia": "Radau IA", "radau_iia": "Radau IIA", "lobatto_iiia": "Lobatto IIIA",
            "lobatto_iiic": "Lobatto IIIC"}  # fmt: skip
RUNGE_KUTTA = Study(
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


@panels(8.6, 2.9, columns=len(FAMILIES), sharex=True, sharey=True)
def draw_families(data: Data, axes: Any) -> None:
    """Errors against h, a panel a family, with lines of the promised slopes."""
    for ax, (family, title) in zip(axes, FAMILIES.items(), strict=True):
        for stages, color, marker in zip((1, 2, 3), CYCLE, MARKERS, strict=False):
            name = f"{family}{stages}"
            if name in RUNGE_KUTTA.curves:
                h, error, order = data[f"{name}_h"], data[name], RUNGE_KUTTA.curves[name].order
                ax.plot(h, error, marker, color=color, markersize=5, label=f"s = {stages}: order {order}")
                slope_line(ax, h, error, order, color, below=1.0)
        log_log(ax, title)
        ax.margins(x=0.1)
        ax.legend(loc="best", fontsize=7)
    axes[0].set_ylabel("error of $y$ at $t = 1$")


RUNGE_KUTTA.claim(
    "table2.1",
    "On DAEs of index 2 the Runge-Kutta method (2.15) is of order s + 1 for odd and s for even s with Gauss "
    "coefficients, s with Radau IA, 2s-1 with Radau IIA, and 2s-2 with Lobatto IIIA and IIIC.",
    draw=draw_families,
    remark="The thesis quotes these orders from the literature without an experiment; they are measured on (2.23).",
)

# -- figures 2.2 to 2.4 --------------------------------------------------------------------------------------------------

Study(
    index_two_growth_in_parts,
    "y",
    {
        "s2": Curve("SPARK, s = 2", LobattoSPARK(stages=2), 2, (40, 80, 160, 320, 640)),
        "s3": Curve("SPARK, s = 3", LobattoSPARK(stages=3), 4, (40, 80, 160, 320), within=0.2),
    },
).claim(
    "figure2.2",
    "The s-stage Lobatto IIIA-B-C-C*-D SPARK methods are of order 2s-2 on (2.23): 2 for s = 2 and 4 for s = 3.",
    remark="For s = 3 slopes tend to 4 from above: 4.6 between h = 1/10 and 1/20, 4.2 between 1/40 and 1/80; the thesis has "
    "4.12.",
)
Study(
    index_two_growth,
    "y",
    {
        "s2": Curve("Gauss, s = 2", SRK("gauss", stages=2), 4, (10, 20, 40, 80, 160)),
        "s3": Curve("Gauss, s = 3", SRK("gauss", stages=3), 6, (10, 14, 20, 28, 40)),
    },
).claim(
    "figure2.3",
    "The s-stage Gauss SRK methods are of order 2s on (2.28), s = 2, 3.",
    remark="(2.28) has a second branch z = 1/(2 y_2), onto which coarse steps can fall; here such a step is an error.",
)
Study(
    index_two_growth,
    "y",
    {
        "s2": Curve("Radau IA, s = 2", SRK("radau-ia", stages=2), 3, (10, 20, 40, 80, 160)),
        "s3": Curve("Radau IA, s = 3", SRK("radau-ia", stages=3), 5, (20, 28, 40, 56, 80), within=0.2),
    },
).claim("figure2.4", "The s-stage Radau IA SRK methods are of order 2s-1 on (2.28), s = 2, 3.")

# -- figure 3.4, and (4.3) -----------------------------------------------------------------------------------------------

Study(
    vertical_disk,
    "q",
    {
        "cm": Curve("Cortes and Martinez (3.3)", CortesMartinez(), 2, (10, 20, 40, 80, 160), within=0.02),
        "mp": Curve("McLachlan and Perlmutter (3.4)", McLachlanPerlmutter(), 2, (10, 20, 40, 80, 160), within=0.02),
    },
).claim(
    "figure3.4",
    "The integrators of Cortes and Martinez (3.3) and of McLachlan and Perlmutter (3.4) are of order 2 on the rolling disk.",
)
Study(
    functools.partial(chaplygin_sleigh, speed=0.5, turning=0.7),
    "q",
    {
        "mp": Curve("(4.3)", McLachlanPerlmutter(variable_mass=True), 1, (100, 200, 400, 800), within=0.05),
        "composed": Curve("composed Euler", compose(NonholonomicEuler(), 2), 2, (100, 200, 400, 800), within=0.05),
        "spark": Curve("SPARK, s = 2", LobattoSPARK(stages=2), 2, (100, 200, 400, 800), within=0.05),
    },
    t1=3.0,
).claim(
    "variable_mass",
    "Where the mass matrix depends on q, the generalisation (4.3) of McLachlan and Perlmutter's method is of order 1. "
    "Their first-order map composed with its adjoint is of order 2.",
    item="section 4.2.2, (4.3), measured",
    remark="The thesis does not measure the order of (4.3), and the energy error on its light sleigh does not show it. "
    "Measured on the sleigh of section 4.5, started with speed 0.5 and turning rate 0.7.",
)
