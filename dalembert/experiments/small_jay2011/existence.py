"""The theorem on existence and uniqueness: which inconsistent initial values the step equations forgive."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler import reduced_step
from dalembert.draw._style import CYCLE, MARKERS
from dalembert.experiments._experiment import Checks, Data, at_most
from dalembert.experiments._figures import DASHED, legend_below, log_log, panels
from dalembert.experiments._measures import largest
from dalembert.experiments.small_jay2011._shared import CONSTRAINTS, FAMILIES, NAMES, SMALL_JAY
from dalembert.methods import OneStepMethod
from dalembert.problems import skate
from dalembert.runs._drivers import one_step
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack

LARGEST, SMALLEST = 0.1, 0.1 / 64
"""Step sizes; Lambda carries rounding errors eps / h^2, so that there is nothing to see for smaller ones."""
START, SIZE = 0.7, 0.1
"""The time on the exact motion at which the step starts, where nothing is zero; the perturbations are SIZE h^m."""
EXPONENTS = (3, 2, 1, 0)
LIMITS = {"g": 2, "g_dot": 1, "k": 1}
"""The theorem asks for o(h^2) in g and o(h) in g_dot and k."""
STAGES = 2


def internal_multipliers(system: System, method: OneStepMethod, state: State, h: float) -> tuple[State, np.ndarray, np.ndarray]:
    """One step without a check of its start: the new state, Lambda_0, ..., Lambda_s and Psi_1, ..., Psi_s."""
    new, (x,) = one_step(system, method, state, h)
    reduced = reduced_step(system, method)
    impulses = [reduced.express(reduced.equations.step.unknown(name).symbols) for name in ("L", "M")]
    values = ca.Function("impulses", [reduced.x, *reduced.data], impulses)(x, state.t, h, state.theta, state.packed)
    L, M = (np.asarray(value, dtype=float).ravel() for value in values)
    return new, L / h, M / h


def perturbed(system: System, q: np.ndarray, p: np.ndarray, constraint: str, size: float) -> State:
    """The state at q, p moved off one constraint by `size`, on the others."""
    theta = system.parameters.vector()
    if constraint == "g":
        centre, half = (q[:2] + q[2:]) / 2, (q[2:] - q[:2]) / 2
        half = half * np.sqrt(1 + 2 * size / (4 * half @ half))  # g = (|2 half|^2 - l^2) / 2
        q = np.concatenate([centre - half, centre + half])
    wanted = np.array([size if constraint == name else 0.0 for name in ("g_dot", "k")])
    hidden_z = system.evaluate("hidden_z", 0.0, q, p)
    p = p - hidden_z.T @ np.linalg.solve(hidden_z @ hidden_z.T, system.evaluate("hidden", 0.0, q, p) - wanted)
    return unpack(system, 0.0, np.concatenate([q, p]), theta)


def compute_existence(full: bool) -> Data:
    """How far the internal multipliers are from those of the exact motion at their nodes, by method, constraint, m and h.

    The multiplier of g and g_dot is Lambda, that of k is Psi. Also the first step from the data as printed, with l = 2.
    """
    problem = skate(speed=0.3)
    assert problem.exact is not None
    system, start = problem.system, problem.exact(START)
    h = np.geomspace(LARGEST, SMALLEST, 25 if full else 7)
    data: dict[str, np.ndarray] = {"h": h}
    for name, family in FAMILIES.items():
        method = family(stages=STAGES)
        for constraint in CONSTRAINTS:
            rows = np.empty((len(EXPONENTS), len(h)))
            for i, m in enumerate(EXPONENTS):
                for j, step in enumerate(h):
                    state = perturbed(system, start["q"], start["p"], constraint, SIZE * step**m)
                    _, Lam, Psi = internal_multipliers(system, method, state, step)
                    exact_psi = problem.exact(START + method.tableau.c * step)["psi"][:, 0]
                    rows[i, j] = largest(Psi - exact_psi if constraint == "k" else Lam - start["lam"])
            data[f"{name}_{constraint}"] = rows
    return data | _printed(h)


def _printed(h: np.ndarray) -> dict[str, np.ndarray]:
    """The first step from the initial values of the slides with l = 2: Lambda_0, and the length after it."""
    problem = skate()
    theta = problem.system.parameters.vector({"l": 2.0})
    assert problem.q0 is not None and problem.v0 is not None
    state = unpack(problem.system, 0.0, np.concatenate([problem.q0, problem.v0 / 2]), theta)
    multipliers, lengths = [], []
    for step in h:
        new, Lam, _ = internal_multipliers(problem.system, FAMILIES["spark"](stages=STAGES), state, step)
        multipliers.append(abs(Lam[0]))
        lengths.append(np.hypot(*(new.q[2:] - new.q[:2])))
    return {"printed_lam": np.array(multipliers), "printed_length": np.array(lengths)}


def expected_slope(constraint: str, exponent: int) -> int:
    """A perturbation h^m of g is met by impulses h^2 Lambda = O(h^m), one of g_dot or k by h Lambda or h Psi = O(h^m)."""
    return exponent - LIMITS[constraint]


def fitted_slope(h: np.ndarray, values: np.ndarray) -> float:
    """The slope of log(values) over log(h) in the lower half of the step sizes."""
    half = len(h) // 2
    return float(np.polyfit(np.log(h[half:]), np.log(values[half:]), 1)[0])


@panels(8.6, 3.6, columns=3)
def draw_existence(data: Data, axes: Any) -> None:
    """Deviations of the internal multipliers against h, by constraint and size of the perturbation, for SPARK and EMPRK."""
    titles = {"g": r"$\Lambda$, $g$ perturbed", "g_dot": r"$\Lambda$, $\dot g$ perturbed", "k": r"$\Psi$, $k$ perturbed"}
    for ax, constraint in zip(axes, CONSTRAINTS, strict=True):
        for i, (m, color, marker) in enumerate(zip(EXPONENTS, CYCLE, MARKERS, strict=False)):
            solid = m > LIMITS[constraint]
            style = {"color": color, "marker": marker, "markersize": 4, "linestyle": "-" if solid else DASHED}
            label = {3: "off by $O(h^3)$", 2: "$O(h^2)$", 1: "$O(h)$", 0: "$O(1)$"}[m]
            ax.plot(data["h"], data[f"spark_{constraint}"][i], label=label, **style)
            ax.plot(data["h"], data[f"emprk_{constraint}"][i], markerfacecolor="none", **style | {"linestyle": "none"})
        log_log(ax, titles[constraint])
    axes[0].set_ylabel("largest deviation from the exact multiplier")
    legend_below(axes[0], 4)


@SMALL_JAY.claim(
    "existence",
    "The internal multipliers tend to those of the initial values if these violate g by o(h^2), and its "
    "derivative and k by o(h).",
    compute=compute_existence,
    draw=draw_existence,
    item="theorem on existence and uniqueness",
    remark="The limits are sharp: with g = O(h^2), or with g_dot, k = O(h), the step equations still have a solution, but its "
    "multipliers tend to something else (dashed), and beyond that they grow like h^(m-2) and h^(m-1). Nothing fails: started "
    "from the data as printed, l = 2 with a skate of length 1, the first step stretches the skate silently, with Lambda_0 = "
    "O(1/h^2). So `da.simulate` refuses inconsistent initial values.",
)
def existence_holds(data: Data) -> Checks:
    """Deviations like h^(m-2) for g and h^(m-1) for g_dot and k: they vanish if and only if the theorem's hypothesis holds."""
    h = data["h"]
    for name in FAMILIES:
        for constraint in CONSTRAINTS:
            for values, m in zip(data[f"{name}_{constraint}"], EXPONENTS, strict=True):
                expected = expected_slope(constraint, m)
                label = f"{NAMES[name]}, {constraint} off by h^{m}: |slope of the deviation - ({expected})|"
                yield at_most(label, abs(fitted_slope(h, values) - expected), 0.1)
    growth = fitted_slope(h, data["printed_lam"])
    yield at_most("l = 2 as printed: |slope of Lambda_0 - (-2)|", abs(growth + 2), 0.1)
    yield at_most("l = 2 as printed: |length after the first step - 2|", largest(data["printed_length"] - 2), 1e-9)
