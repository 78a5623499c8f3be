"""Section 3.4: the natural methods converge at order 1, to the solution of another ODE."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data, Experiment
from dalembert.experiments.jay_simeon._shared import (
    COMPONENTS,
    DOCUMENT,
    PROBLEMS,
    T1,
    distance,
    errors,
    fitted_slope,
    local_slope,
    log_axes,
)
from dalembert.methods import SymplecticEuler
from dalembert.runs._simulate import simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = tuple(80 * 4**k for k in range(7))
MORE_STEPS = (80 * 4**7,)
CASES = {
    f"{kind}{'' if alpha == 0.5 else '_other'}": (kind == "conjugate", alpha)
    for kind in ("natural", "conjugate")
    for alpha in (0.5, 0.3)
}
"""Both methods, with alpha = 1/2, for which their limits are the same, and with alpha = 0.3, for which they are not."""
FIRST_STEP = 1e-5


def compute_limits(full: bool, *, problem: str) -> Data:
    """Errors against the limit ODE and against the solution, distances of the limits, and multipliers of a short first step."""
    test = PROBLEMS[problem]
    steps, solution = STEPS + (MORE_STEPS if full else ()), test.solution()
    limits = {case: test.inconsistent.solution(alpha, conjugate) for case, (conjugate, alpha) in CASES.items()}
    data = {"h": T1 / np.array(steps)}
    for case, (conjugate, alpha) in CASES.items():
        method = SymplecticEuler("natural", conjugate=conjugate, alpha=alpha)
        to_limit, to_solution = errors(test.problem(), method, steps, limits[case], solution)
        for component in COMPONENTS:
            data[f"{case}_{component}"] = to_limit[component]
            data[f"{case}_{component}_solution"] = to_solution[component]
            data[f"{case}_{component}_distance"] = np.array([distance(limits[case], solution, component)])
        step = simulate(test.problem(), method, h=FIRST_STEP, steps=1, stage_multipliers=True, progress=False)
        assert step.stage_lam is not None
        psi = test.inconsistent.multipliers(step.y[0], step.z[0], alpha, conjugate)
        data[f"{case}_multipliers"] = np.array([step.stage_lam[1, 0], alpha * psi[0] + (1 - alpha) * psi[1], step.lam[0, 0]])
    for component in COMPONENTS:
        data[f"between_{component}"] = np.array([distance(limits["natural_other"], limits["conjugate_other"], component)])
    return data


def limits_hold(data: Data) -> tuple[Check, ...]:
    """Order 1 to the limit and order 0 to the solution, for both methods and both alpha."""
    checks, h = [], data["h"]
    for case, (conjugate, alpha) in CASES.items():
        name = f"natural{' conjugate' if conjugate else ''}, alpha = {alpha:g}"
        for component in COMPONENTS:
            to_limit, to_solution = data[f"{case}_{component}"], data[f"{case}_{component}_solution"]
            far = float(data[f"{case}_{component}_distance"][0])
            checks += [
                Check(f"{name}: |slope in {component} against the limit - 1|", abs(fitted_slope(h, to_limit) - 1), "<=", 0.05),
                Check(
                    f"{name}: |slope in {component} against the solution| at the end",
                    abs(local_slope(h, to_solution, -1)),
                    "<=",
                    0.1,
                ),
                Check(f"{name}: error in {component} over its distance from the limit", to_solution[-1] / far, ">=", 0.9),
            ]
        found, right, _ = data[f"{case}_multipliers"]
        checks.append(
            Check(f"{name}: |alpha Psi_0 + (1 - alpha) Psi_1 - its limit| of one step", abs(found - right), "<=", 1e-4)
        )
    for component in COMPONENTS:
        apart = data[f"between_{component}"][0] / max(data[f"{case}_{component}"][-1] for case in CASES)
        checks.append(
            Check(f"distance of the two limits for alpha = 0.3 over the errors, in {component}", float(apart), ">=", 3)
        )
    return tuple(checks)


def draw_limits(data: Data, *, problem: str) -> Figure:
    """Errors against the limit ODE, filled, and against the solution, open."""
    from dalembert.draw._style import CYCLE, MARKERS, new_figure, styled

    h = data["h"]
    with styled():
        figure = new_figure(8.0, 3.9)
        for ax, component in zip(figure.subplots(1, 2, sharey=True), COMPONENTS, strict=True):
            for (case, (conjugate, alpha)), color, marker in zip(CASES.items(), CYCLE, MARKERS, strict=False):
                name = rf"natural{' conjugate' if conjugate else ''}, $\alpha = {alpha:g}$"
                look = {"color": color, "marker": marker, "markersize": 4.5}
                ax.plot(h, data[f"{case}_{component}"], label=f"{name}: limit", **look)
                ax.plot(h, data[f"{case}_{component}_solution"], label=f"{name}: solution", **look,
                        markerfacecolor="white", linestyle=(0, (1, 2)))  # fmt: skip
            log_axes(ax, f"{PROBLEMS[problem].number}, ${component}$ at $t = 1$", "error" if component == "y" else "")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    return figure


EXPERIMENTS = tuple(
    Experiment(
        name=f"jay_simeon.limit{problem}",
        document=DOCUMENT,
        item=f"section 3.4, on ({problem})",
        claim=f"On ({problem}) the natural symplectic Euler method and its conjugate converge at order 1 to the solutions of "
        "inconsistent ODEs, and so not to the solution.",
        compute=partial(compute_limits, problem=problem),
        draw=partial(draw_limits, problem=problem),
        holds=limits_hold,
        remark="The paper states the limit of the natural method only. That of the conjugate method exchanges the force f "
        "between the two conditions: 0 = g_yy(v,v)/2 + g_y v_y v + alpha g_y v_z r(Psi_0) and 0 = g_yy(v,v)/2 + g_y v_z "
        "(f + (1 - alpha) r(Psi_1)). For alpha = 1/2 and v_y = 0 both limits are the same ODE.",
    )
    for problem in PROBLEMS
)
