"""The simple pendulum to t = 100 by the (2,2)-Gauss-Lobatto method with h = 0.05 and 0.01."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.experiments._experiment import Checks, Data, at_most
from dalembert.experiments._figures import panels
from dalembert.experiments._measures import energy_error, fitted_rate, largest, largest_residuals, simulate
from dalembert.experiments.small_jay2011._shared import SMALL_JAY, draw_violations
from dalembert.methods import GaussLobattoSPARK
from dalembert.plot._panels import history
from dalembert.problems import simple_pendulum

STEP_SIZES = {"coarse": 0.05, "fine": 0.01}
T1, MUCH_LATER = 100.0, 10_000.0


def compute_pendulum(full: bool) -> Data:
    """Times, energy errors, violations of the constraints and position errors of both runs; `full` goes on to t = 10,000."""
    problem = simple_pendulum()
    data: dict[str, np.ndarray] = {}
    assert problem.exact is not None
    for name, h in STEP_SIZES.items():
        steps = round((MUCH_LATER if full else T1) / h)
        run = simulate(problem, GaussLobattoSPARK(stages=2), h=h, steps=steps, save_every=10 if full else 1)
        data |= {f"{name}_t": run.t, f"{name}_energy": energy_error(run)}
        data |= {f"{name}_{constraint}": values for constraint, values in largest_residuals(run).items()}
        data[f"{name}_error"] = np.max(np.abs(run.q - problem.exact(run.t)["q"]), axis=1)
    return data


@panels(7.4, 4.6, 2, 2, sharex="col")
def draw_pendulum(data: Data, axes: Any) -> None:
    """Energy errors and violations of the constraints against time, a column for each step size."""
    for (top, bottom), (name, h) in zip(axes.T, STEP_SIZES.items(), strict=True):
        history(top, data[f"{name}_t"], data[f"{name}_energy"])
        top.set_title(f"$h = {h}$", loc="left")
        top.grid(True)
        draw_violations(bottom, data[f"{name}_t"], data, name, ("g", "g_dot"), size=1.2)
    axes[0, 0].set_ylabel("energy error")
    axes[1, 0].set_ylabel("constraints")
    axes[1, 1].legend(loc="upper right", markerscale=6)


@SMALL_JAY.claim(
    "pendulum",
    "The (2,2)-Gauss-Lobatto method integrates the pendulum to t = 100 with an energy error that is "
    "bounded and of order 4 in h, on the constraint and on its hidden derivative.",
    item="example 'simple pendulum'",
    compute=compute_pendulum,
    draw=draw_pendulum,
    remark="U = -m gamma q_2, so that the second axis points down. SPARK and EMPRK are the same method here, "
    "because there is no nonholonomic constraint.",
)
def pendulum_holds(data: Data) -> Checks:
    """Energy errors are bounded, without drift, and of fourth order, as positions are; constraints hold to round-off."""
    for name, h in STEP_SIZES.items():
        t, energy = data[f"{name}_t"], data[f"{name}_energy"]
        early, late = energy[t <= 0.1 * t[-1]], energy[t >= 0.9 * t[-1]]
        rise = abs(fitted_rate(energy, t)) * t[-1] / largest(energy)
        yield at_most(f"h = {h}: largest energy error over h^4", largest(energy) / h**4, 6.5e-3)
        yield at_most(f"h = {h}: energy error of the last tenth over that of the first", largest(late) / largest(early), 1.01)
        yield at_most(f"h = {h}: |fitted slope| times length over largest error", rise, 1e-2)
        yield at_most(f"h = {h}: largest |g|", largest(data[f"{name}_g"]), 1e-14)
        yield at_most(f"h = {h}: largest |g_dot|", largest(data[f"{name}_g_dot"]), 1e-14)
    for kind, label in (("energy", "energy errors"), ("error", "position errors to t = 100")):
        errors = {name: data[f"{name}_{kind}"][data[f"{name}_t"] <= T1] for name in STEP_SIZES}
        order = np.log(largest(errors["coarse"]) / largest(errors["fine"])) / np.log(5)
        yield at_most(f"|order of the {label} - 4|", abs(order - 4), 0.05)
