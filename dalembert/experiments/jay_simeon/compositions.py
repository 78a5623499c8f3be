"""Section 5: the true method as the basis of methods of higher order, with its exact adjoint and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dalembert.draw._style import BLUE, CYCLE, MARKERS, VERMILION
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import legend_below, log_log, panels, slope_line
from dalembert.experiments._measures import simulate
from dalembert.experiments.jay_simeon._shared import COMPONENTS, JAY_SIMEON, PROBLEMS, T1, errors, fitted_slope, solve
from dalembert.methods import OneStepMethod, Step, SymplecticEuler, compose
from dalembert.problems import pendulum_with_friction
from dalembert.systems import BoundSystem

TRUE = SymplecticEuler()


@dataclass(frozen=True)
class ThenConjugate(OneStepMethod):
    """The true method (3.5) with h/2, then the true conjugate method (3.8) with h/2."""

    reference: ClassVar[str] = "Jay and Simeon, (3.5) and (3.8)"
    serves_odae: ClassVar[bool] = True

    @property
    def order(self) -> dict[str, int]:
        """1, unless r is affine in the multipliers."""
        return TRUE.order

    @property
    def substeps(self) -> tuple[tuple[OneStepMethod, float], ...]:
        """Half a step each."""
        return ((TRUE, 0.5), (SymplecticEuler(conjugate=True), 0.5))

    def equations(self, system: BoundSystem, step: Step) -> None:
        """None of its own."""
        raise AssertionError("substeps are compiled one by one")


# -- the adjoint and the conjugate ---------------------------------------------------------------------------------------

STEPS, MORE_STEPS = tuple(20 * 4**k for k in range(7)), (163840,)
PARTNERS: dict[str, OneStepMethod] = {"adjoint": compose(TRUE, 2), "conjugate": ThenConjugate()}
NAMES = {"adjoint": "true, then its adjoint", "conjugate": "true, then true conjugate (3.8)"}
FIELDS = {"nonlinear": "(4.1)", "friction": "(4.2)", "affine": "pendulum without friction"}
PROMISED = {
    ("adjoint", "nonlinear"): 2, ("adjoint", "friction"): 2, ("adjoint", "affine"): 2,
    ("conjugate", "nonlinear"): 1, ("conjugate", "friction"): 1, ("conjugate", "affine"): 2,
}  # fmt: skip
ANGLE, RATE = 0.4, 1.5


def pendulum_solution() -> dict[str, np.ndarray]:
    """The pendulum of unit mass, length and gravity at t = 1, from its angle."""
    theta, rate = solve(lambda t, x: [x[1], -np.sin(x[0])], [ANGLE, RATE])
    return {"y": np.array([np.sin(theta), -np.cos(theta)]), "z": rate * np.array([np.cos(theta), np.sin(theta)])}


def compute_partners(full: bool) -> Data:
    """Errors of both compositions on (4.1), (4.2) and a system that is affine in its multipliers."""
    steps = STEPS + (MORE_STEPS if full else ())
    affine = pendulum_with_friction(mu=0.0, angle=ANGLE, rate=RATE)
    cases = {
        "nonlinear": (PROBLEMS["4.1"].problem(), PROBLEMS["4.1"].solution()),
        "friction": (PROBLEMS["4.2"].problem(), PROBLEMS["4.2"].solution()),
        "affine": (affine, pendulum_solution()),
    }
    data = {"h": T1 / np.array(steps)}
    for name, method in PARTNERS.items():
        for case, (problem, solution) in cases.items():
            data |= errors(problem, method, steps, {f"{name}_{case}_{{}}": solution})
    return data


@panels(8.6, 3.3, columns=3)
def draw_partners(data: Data, axes: Any) -> None:
    """Errors in z against h."""
    for ax, (case, title) in zip(axes, FIELDS.items(), strict=True):
        for name, color, marker in (("adjoint", BLUE, "o"), ("conjugate", VERMILION, "s")):
            error = data[f"{name}_{case}_z"]
            ax.plot(data["h"], error, color=color, marker=marker, markersize=4, label=NAMES[name])
            slope_line(ax, data["h"], error, PROMISED[name, case], color, at=-1)
        log_log(ax, title, ylabel="error in $z$ at $t = 1$" if case == "nonlinear" else "")
    legend_below(axes[0], 2)


@JAY_SIMEON.claim(
    "adjoint",
    "The true symplectic Euler method followed by its exact adjoint is of order 2; followed by the true conjugate "
    "method (3.8) it is only of order 1, unless r is affine in the multipliers.",
    item="sections 3.3 and 5",
    compute=compute_partners,
    draw=draw_partners,
    remark="The paper suggests higher orders by composition and calls (3.8) the conjugate of (3.5). It is the adjoint, "
    "(3.5) with old and new state and the signs of h exchanged, only where r is affine in the multipliers. On (4.2) its "
    "error of order h is small: its slope is above 1.5 down to h = 1/1280, and it looks like one of order 2.",
)
def partners_hold(data: Data) -> Checks:
    """Slope 2 with the adjoint; with (3.8) slope 1, and 2 where r is affine."""
    for (name, case), promised in PROMISED.items():
        for component in COMPONENTS:
            measured = fitted_slope(data["h"], data[f"{name}_{case}_{component}"])
            title = f"{NAMES[name]}, on {FIELDS[case]}: |slope in {component} - {promised}|"
            yield at_most(title, abs(measured - promised), 0.1)
    for component in COMPONENTS:
        coarse = fitted_slope(data["h"][:3], data[f"conjugate_friction_{component}"][:3])
        yield at_least(f"{NAMES['conjugate']}, on (4.2): slope in {component} for coarse h, as if 2", coarse, 1.8)


# -- higher orders -------------------------------------------------------------------------------------------------------

ORDERS = {2: (40, 80, 160, 320), 4: (16, 32, 64, 128), 6: (8, 12, 16, 24, 32), 8: (8, 10, 12, 16, 20)}
MORE_ORDERS = {2: (640, 1280), 4: (256,), 6: (48,), 8: (24,)}


def compute_orders(full: bool) -> Data:
    """Errors of the compositions of order 2, 4, 6 and 8 on (4.1), and how well the last of them keeps the constraints."""
    test, data = PROBLEMS["4.1"], {}
    for k, steps in ORDERS.items():
        counts = steps + (MORE_ORDERS[k] if full else ())
        data[f"h_{k}"] = T1 / np.array(counts)
        data |= errors(test.problem(), compose(TRUE, k), counts, {f"order{k}_{{}}": test.solution()})
        run = simulate(test.problem(), compose(TRUE, k), h=T1 / counts[-1], steps=counts[-1])
        data[f"residual_{k}"] = np.array([float(np.max(np.abs(r))) for r in run.residuals.values()])
    return data


@panels(7.4, 3.6, columns=2, sharey=True)
def draw_orders(data: Data, axes: Any) -> None:
    """Errors in y and z against h, with dashed lines of the promised slopes."""
    for ax, component in zip(axes, COMPONENTS, strict=True):
        for k, color, marker in zip(ORDERS, CYCLE, MARKERS, strict=False):
            h, error = data[f"h_{k}"], data[f"order{k}_{component}"]
            ax.plot(h, error, color=color, marker=marker, markersize=4, label=f"order {k}")
            slope_line(ax, h, error, k, color, below=0.4)
        log_log(ax, f"(4.1), ${component}$ at $t = 1$", ylabel="error" if component == "y" else "")
    axes[0].legend(loc="lower left")


@JAY_SIMEON.claim(
    "composition",
    "Compositions of the true symplectic Euler method with its adjoint reach the orders 2, 4, 6 and 8 on (4.1).",
    item="section 5",
    compute=compute_orders,
    draw=draw_orders,
)
def orders_hold(data: Data) -> Checks:
    """Slopes within 0.15 of 2, 4, 6 and 8, constraints at round-off."""
    for k in ORDERS:
        for component in COMPONENTS:
            measured = fitted_slope(data[f"h_{k}"], data[f"order{k}_{component}"])
            yield at_most(f"order {k}: |slope in {component} - {k}|", abs(measured - k), 0.15)
        yield at_most(f"order {k}: largest residual of a constraint", np.max(data[f"residual_{k}"]), 1e-13)
