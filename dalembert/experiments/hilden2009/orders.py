"""Figures 2.2 to 2.4 and 3.4: orders of SPARK, SRK and the nonholonomic integrators; and the order of (4.3)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data, Experiment
from dalembert.experiments.hilden2009._shared import DOCUMENT, draw_orders, order_check
from dalembert.methods import (
    SRK,
    CortesMartinez,
    LobattoSPARK,
    McLachlanPerlmutter,
    NonholonomicEuler,
    OneStepMethod,
    compose,
)
from dalembert.problems import (
    Problem,
    chaplygin_sleigh,
    index_two_growth,
    index_two_growth_in_parts,
    vertical_disk,
)
from dalembert.verify import order

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    def compute(self, full: bool) -> Data:
        """Errors and step sizes by curve."""
        problem = self.problem()
        reference = problem.exact if problem.exact is not None else (SRK("gauss", stages=4), 600)
        data: dict[str, np.ndarray] = {}
        for name, curve in self.curves.items():
            study = order(problem, curve.method, reference=reference, t1=self.t1, steps=curve.steps)
            data |= {name: study.errors[self.component], f"{name}_h": study.h}
        return data

    def holds(self, data: Data) -> tuple[Check, ...]:
        """Every slope near its order, and methods that differ."""
        checks = [order_check(c.label, data[f"{n}_h"], data[n], c.order, c.within) for n, c in self.curves.items()]
        for name, curve in self.curves.items():
            checks.append(Check(f"{curve.label}: error at the finest h", float(data[name][-1]), "<=", self._bound(curve)))
        return tuple(checks)

    def _bound(self, curve: Curve) -> float:
        return 20.0 * (self.t1 / curve.steps[-1]) ** curve.order

    def draw(self, data: Data) -> Figure:
        """Errors against h."""
        series = {name: (f"{name}_h", curve.label, curve.order) for name, curve in self.curves.items()}
        return draw_orders(data, series, f"error of ${self.component}$ at $t = {self.t1:g}$")


SPARK = Study(
    index_two_growth_in_parts,
    "y",
    {
        "s2": Curve("SPARK, s = 2", LobattoSPARK(stages=2), 2, (40, 80, 160, 320, 640)),
        "s3": Curve("SPARK, s = 3", LobattoSPARK(stages=3), 4, (40, 80, 160, 320), within=0.2),
    },
)
GAUSS = Study(
    index_two_growth,
    "y",
    {
        "s2": Curve("Gauss, s = 2", SRK("gauss", stages=2), 4, (10, 20, 40, 80, 160)),
        "s3": Curve("Gauss, s = 3", SRK("gauss", stages=3), 6, (10, 14, 20, 28, 40)),
    },
)
RADAU = Study(
    index_two_growth,
    "y",
    {
        "s2": Curve("Radau IA, s = 2", SRK("radau-ia", stages=2), 3, (10, 20, 40, 80, 160)),
        "s3": Curve("Radau IA, s = 3", SRK("radau-ia", stages=3), 5, (20, 28, 40, 56, 80), within=0.2),
    },
)
INTEGRATORS = Study(
    vertical_disk,
    "q",
    {
        "cm": Curve("Cortes and Martinez (3.3)", CortesMartinez(), 2, (10, 20, 40, 80, 160), within=0.02),
        "mp": Curve("McLachlan and Perlmutter (3.4)", McLachlanPerlmutter(), 2, (10, 20, 40, 80, 160), within=0.02),
    },
)
VARIABLE_MASS = Study(
    functools.partial(chaplygin_sleigh, speed=0.5, turning=0.7),
    "q",
    {
        "mp": Curve("(4.3)", McLachlanPerlmutter(variable_mass=True), 1, (100, 200, 400, 800), within=0.05),
        "composed": Curve("composed Euler", compose(NonholonomicEuler(), 2), 2, (100, 200, 400, 800), within=0.05),
        "spark": Curve("SPARK, s = 2", LobattoSPARK(stages=2), 2, (100, 200, 400, 800), within=0.05),
    },
    t1=3.0,
)  # fmt: skip


def _experiment(name: str, item: str, claim: str, study: Study, remark: str = "") -> Experiment:
    return Experiment(
        name=f"hilden2009.{name}",
        document=DOCUMENT,
        item=item,
        claim=claim,
        compute=study.compute,
        draw=study.draw,
        holds=study.holds,
        remark=remark,
    )


EXPERIMENTS = (
    _experiment(
        "figure2.2",
        "figure 2.2",
        "The s-stage Lobatto IIIA-B-C-C*-D SPARK methods are of order 2s-2 on (2.23): 2 for s = 2 and 4 for s = 3.",
        SPARK,
        "For s = 3 slopes tend to 4 from above: 4.6 between h = 1/10 and 1/20, 4.2 between 1/40 and 1/80; the thesis has 4.12.",
    ),
    _experiment("figure2.3", "figure 2.3", "The s-stage Gauss SRK methods are of order 2s on (2.28), s = 2, 3.", GAUSS,
                "(2.28) has a second branch z = 1/(2 y_2), onto which coarse steps can fall; here such a step is an error."),
    _experiment("figure2.4", "figure 2.4", "The s-stage Radau IA SRK methods are of order 2s-1 on (2.28), s = 2, 3.", RADAU),
    _experiment("figure3.4", "figure 3.4", "The integrators of Cortes and Martinez (3.3) and of McLachlan and Perlmutter (3.4) "
                "are of order 2 on the rolling disk.", INTEGRATORS),
    _experiment(
        "variable_mass",
        "section 4.2.2, (4.3), measured",
        "Where the mass matrix depends on q, the generalisation (4.3) of McLachlan and Perlmutter's method is of order 1. "
        "Their first-order map composed with its adjoint is of order 2.",
        VARIABLE_MASS,
        "The thesis does not measure the order of (4.3), and the energy error on its light sleigh does not show it. "
        "Measured on the sleigh of section 4.5, started with speed 0.5 and turning rate 0.7.",
    ),
)  # fmt: skip
