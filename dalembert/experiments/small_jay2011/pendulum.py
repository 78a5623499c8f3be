"""The simple pendulum to t = 100 by the (2,2)-Gauss-Lobatto method with h = 0.05 and 0.01."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data, Experiment
from dalembert.experiments.small_jay2011._shared import CONSTRAINTS, DOCUMENT, largest, largest_residuals
from dalembert.methods import GaussLobattoSPARK
from dalembert.problems import simple_pendulum
from dalembert.runs._simulate import simulate
from dalembert.verify import drift

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP_SIZES = {"coarse": 0.05, "fine": 0.01}
T1, MUCH_LATER = 100.0, 10_000.0


def compute_pendulum(full: bool) -> Data:
    """Times, energy errors, violations of the constraints and position errors of both runs; `full` goes on to t = 10,000."""
    problem = simple_pendulum()
    data: dict[str, np.ndarray] = {}
    assert problem.exact is not None
    for name, h in STEP_SIZES.items():
        steps = round((MUCH_LATER if full else T1) / h)
        run = simulate(problem, GaussLobattoSPARK(stages=2), h=h, steps=steps, save_every=10 if full else 1, progress=False)
        data |= {f"{name}_t": run.t, f"{name}_energy": run.energy - run.energy[0]}
        data |= {f"{name}_{constraint}": values for constraint, values in largest_residuals(run).items()}
        data[f"{name}_error"] = np.max(np.abs(run.q - problem.exact(run.t)["q"]), axis=1)
    return data


def pendulum_holds(data: Data) -> tuple[Check, ...]:
    """Energy errors are bounded, without drift, and of fourth order, as positions are; constraints hold to round-off."""
    checks = []
    for name, h in STEP_SIZES.items():
        t, energy = data[f"{name}_t"], data[f"{name}_energy"]
        early, late = energy[t <= 0.1 * t[-1]], energy[t >= 0.9 * t[-1]]
        slope = abs(drift(energy, t).slope) if np.all(np.isfinite(energy)) else float("nan")
        checks += [
            Check(f"h = {h}: largest energy error over h^4", largest(energy) / h**4, "<=", 6.5e-3),
            Check(
                f"h = {h}: energy error of the last tenth over that of the first", largest(late) / largest(early), "<=", 1.01
            ),
            Check(f"h = {h}: |fitted slope| times length over largest error", slope * t[-1] / largest(energy), "<=", 1e-2),
            Check(f"h = {h}: largest |g|", largest(data[f"{name}_g"]), "<=", 1e-14),
            Check(f"h = {h}: largest |g_dot|", largest(data[f"{name}_g_dot"]), "<=", 1e-14),
        ]
    for kind, label in (("energy", "energy errors"), ("error", "position errors to t = 100")):
        seen = {name: data[f"{name}_{kind}"][data[f"{name}_t"] <= T1] for name in STEP_SIZES}
        order = np.log(largest(seen["coarse"]) / largest(seen["fine"])) / np.log(5)
        checks.append(Check(f"|order of the {label} - 4|", float(abs(order - 4)), "<=", 0.05))
    return tuple(checks)


def draw_pendulum(data: Data) -> Figure:
    """Energy errors and violations of the constraints against time, a column for each step size."""
    from dalembert.draw._style import CYCLE, new_figure, styled
    from dalembert.plot._panels import history

    with styled():
        figure = new_figure(7.4, 4.6)
        axes = figure.subplots(2, 2, sharex="col")
        for column, (name, h) in enumerate(STEP_SIZES.items()):
            top, bottom = axes[:, column]
            history(top, data[f"{name}_t"], data[f"{name}_energy"])
            top.set_title(f"$h = {h}$", loc="left")
            for constraint, color in zip(("g", "g_dot"), CYCLE, strict=False):
                values = np.maximum(data[f"{name}_{constraint}"], 1e-18)
                bottom.plot(data[f"{name}_t"], values, ".", markersize=1.2, color=color, label=CONSTRAINTS[constraint])
            bottom.set(yscale="log", ylim=(1e-18, 1e-13), xlabel="$t$")
            for ax in (top, bottom):
                ax.grid(True)
        axes[0, 0].set_ylabel("energy error")
        axes[1, 0].set_ylabel("constraints")
        axes[1, 1].legend(loc="upper right", markerscale=6)
    return figure


EXPERIMENTS = (
    Experiment(
        name="small_jay2011.pendulum",
        document=DOCUMENT,
        item="example 'simple pendulum'",
        claim="The (2,2)-Gauss-Lobatto method integrates the pendulum to t = 100 with an energy error that is "
        "bounded and of order 4 in h, on the constraint and on its hidden derivative.",
        compute=compute_pendulum,
        draw=draw_pendulum,
        holds=pendulum_holds,
        remark="U = -m gamma q_2, so that the second axis points down. SPARK and EMPRK are the same method here, "
        "because there is no nonholonomic constraint.",
    ),
)
