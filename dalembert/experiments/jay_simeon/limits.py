"""Section 3.4: the natural methods converge at order 1, to the solution of another ODE."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dalembert.draw._style import CYCLE, MARKERS
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import DOTTED, legend_below, log_log, panels
from dalembert.experiments._measures import simulate
from dalembert.experiments.jay_simeon._shared import (
    COMPONENTS,
    JAY_SIMEON,
    PROBLEMS,
    T1,
    distance,
    errors,
    fitted_slope,
    local_slope,
)
from dalembert.methods import SymplecticEuler

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
        references = {f"{case}_{{}}": limits[case], f"{case}_{{}}_solution": solution}
        data |= errors(test.problem(), method, steps, references)
        for component in COMPONENTS:
            data[f"{case}_{component}_distance"] = np.array([distance(limits[case], solution, component)])
        step = simulate(test.problem(), method, h=FIRST_STEP, steps=1, stage_multipliers=True)
        assert step.stage_lam is not None
        psi = test.inconsistent.multipliers(step.y[0], step.z[0], alpha, conjugate)
        data[f"{case}_multipliers"] = np.array([step.stage_lam[1, 0], alpha * psi[0] + (1 - alpha) * psi[1], step.lam[0, 0]])
    for component in COMPONENTS:
        data[f"between_{component}"] = np.array([distance(limits["natural_other"], limits["conjugate_other"], component)])
    return data


def limits_hold(data: Data) -> Checks:
    """Order 1 to the limit and order 0 to the solution, for both methods and both alpha."""
    h = data["h"]
    for case, (conjugate, alpha) in CASES.items():
        name = f"natural{' conjugate' if conjugate else ''}, alpha = {alpha:g}"
        for component in COMPONENTS:
            to_limit, to_solution = data[f"{case}_{component}"], data[f"{case}_{component}_solution"]
            away, flat = fitted_slope(h, to_limit) - 1, local_slope(h, to_solution, -1)
            far = to_solution[-1] / data[f"{case}_{component}_distance"][0]
            yield at_most(f"{name}: |slope in {component} against the limit - 1|", abs(away), 0.05)
            yield at_most(f"{name}: |slope in {component} against the solution| at the end", abs(flat), 0.1)
            yield at_least(f"{name}: error in {component} over its distance from the limit", far, 0.9)
        found, right, _ = data[f"{case}_multipliers"]
        yield at_most(f"{name}: |alpha Psi_0 + (1 - alpha) Psi_1 - its limit| of one step", abs(found - right), 1e-4)
    for component in COMPONENTS:
        apart = data[f"between_{component}"][0] / max(data[f"{case}_{component}"][-1] for case in CASES)
        yield at_least(f"distance of the two limits for alpha = 0.3 over the errors, in {component}", apart, 3)


@panels(8.0, 3.9, columns=2, sharey=True)
def draw_limits(data: Data, axes: Any, *, problem: str) -> None:
    """Errors against the limit ODE, filled, and against the solution, open."""
    h = data["h"]
    for ax, component in zip(axes, COMPONENTS, strict=True):
        for (case, (conjugate, alpha)), color, marker in zip(CASES.items(), CYCLE, MARKERS, strict=False):
            name = rf"natural{' conjugate' if conjugate else ''}, $\alpha = {alpha:g}$"
            look = {"color": color, "marker": marker, "markersize": 4.5}
            ax.plot(h, data[f"{case}_{component}"], label=f"{name}: limit", **look)
            look |= {"markerfacecolor": "white", "linestyle": DOTTED}
            ax.plot(h, data[f"{case}_{component}_solution"], label=f"{name}: solution", **look)
        log_log(ax, f"({problem}), ${component}$ at $t = 1$", ylabel="error" if component == "y" else "")
    legend_below(axes[0], 4, fontsize=7)


for problem in PROBLEMS:
    JAY_SIMEON.claim(
        f"limit{problem}",
        f"On ({problem}) the natural symplectic Euler method and its conjugate converge at order 1 to the solutions of "
        "inconsistent ODEs, and so not to the solution.",
        item=f"section 3.4, on ({problem})",
        compute=partial(compute_limits, problem=problem),
        draw=partial(draw_limits, problem=problem),
        remark="The paper states the limit of the natural method only. That of the conjugate method exchanges the force f "
        "between the two conditions: 0 = g_yy(v,v)/2 + g_y v_y v + alpha g_y v_z r(Psi_0) and 0 = g_yy(v,v)/2 + g_y v_z "
        "(f + (1 - alpha) r(Psi_1)). For alpha = 1/2 and v_y = 0 both limits are the same ODE.",
    )(limits_hold)
