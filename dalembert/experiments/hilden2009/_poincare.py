"""Orbits of the contact oscillator on its Poincare section, their Lyapunov exponents, and how they are drawn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.draw._style import CYCLE, new_figure, styled
from dalembert.experiments._experiment import Data
from dalembert.experiments._figures import Figure
from dalembert.experiments._measures import simulate
from dalembert.experiments.hilden2009._shared import BOTH, TITLES
from dalembert.methods import OneStepMethod
from dalembert.plot._panels import scatter
from dalembert.problems import Problem, perturbed_contact_oscillator
from dalembert.problems.oscillators import POINCARE_STEP
from dalembert.runs._trajectory import Trajectory

PERIOD = 40
"""With h = 2 sin(pi/40), y has a period of so many steps: every 40th state lies on the section v_y = 0."""
ITERATES, MANY_ITERATES, STRETCH = 8000, 50_000, 100
TEN = (-0.9 + 0.2 * np.arange(10)) * np.sqrt(2)
EIGHT = np.array([-1.2, -1.0, -0.75, -0.55, -0.4, -0.1, 0.93, 1.07])
CHAOTIC = np.array([-0.55, -0.1])
ENERGY = 1.5
LOOSE = {0.0: 0.02, 0.8: 0.15}
"""Relative Newton tolerances at which the drifts of the thesis appear, by eps."""


def section(
    eps: float, z0: float, method: OneStepMethod, iterates: int = ITERATES, tolerance: float | None = None
) -> Trajectory:
    """An orbit on the Poincare section."""
    return orbit_of(perturbed_contact_oscillator(eps=eps, E0=ENERGY, z0=z0), method, iterates, tolerance)


def orbit_of(problem: Problem, method: OneStepMethod, iterates: int, tolerance: float | None = None) -> Trajectory:
    """The states of an oscillator after each period of y."""
    return simulate(problem, method, h=POINCARE_STEP, steps=PERIOD * iterates, save_every=PERIOD, newton_tolerance=tolerance)


def sections(eps: float, starts: Sequence[float] | np.ndarray) -> dict[str, np.ndarray]:
    """All orbits by both methods: x, z, v_z and energy errors with a row for each orbit, and how far y is from its period."""
    data: dict[str, np.ndarray] = {"z0": np.asarray(starts), "eps": np.array(eps)}
    for name, method in BOTH.items():
        runs = [section(eps, float(z0), method) for z0 in starts]
        data |= {
            "t": runs[0].t,
            f"{name}_x": np.array([run.q[:, 0] for run in runs]),
            f"{name}_z": np.array([run.q[:, 2] for run in runs]),
            f"{name}_vz": np.array([run.v[:, 2] for run in runs]),
            f"{name}_energy": np.array([run.energy - ENERGY for run in runs]),
            f"{name}_y": np.array([np.max(np.abs(run.q[:, 1] - 1)) for run in runs]),
        }
    return data


def growth_exponents(eps: float, starts: Sequence[float] | np.ndarray, method: OneStepMethod, iterates: int) -> np.ndarray:
    """Lyapunov exponents per iterate after every 100 iterates, a row for each orbit, from the distance of two nearby orbits.

    The distance is scaled back to 1e-7 every 100 iterates. The neighbour differs in x, z, v_z and v_x = -y v_z, so that it
    satisfies the constraint.
    """
    distance, rates = 1e-7, []
    for z0 in starts:
        problem = perturbed_contact_oscillator(eps=eps, E0=ENERGY, z0=float(z0))
        options: dict[str, Any] = {"h": POINCARE_STEP, "save_every": PERIOD * STRETCH}
        orbit = simulate(problem, method, steps=PERIOD * iterates, **options).states
        away, total = _within_constraint(np.array([0.0, 0.0, 0.6, 0.0, 0.0, 0.8]), orbit[0]), [0.0]
        for here, there in itertools.pairwise(orbit):
            q, p = np.split(here + distance * away / np.linalg.norm(away), 2)
            end = simulate(problem, method, q0=q, p0=p, steps=PERIOD * STRETCH, **options).states[-1]
            total.append(total[-1] + float(np.log(np.linalg.norm(end - there) / distance)))
            away = _within_constraint(end - there, there)
        rates.append(np.array(total[1:]) / (STRETCH * np.arange(1, len(total))))
    return np.array(rates)


def _within_constraint(difference: np.ndarray, state: np.ndarray) -> np.ndarray:
    x, _, z, _, _, v_z = difference
    return np.array([x, 0.0, z, -state[1] * v_z, 0.0, v_z])


def draw_sections(data: Data) -> Figure:
    """The half x > 0 of the section in the plane (z, v_z), both methods side by side, a colour for each orbit."""
    names = [*BOTH, *(["loose"] if "loose_x" in data else [])]
    with styled():
        figure = new_figure(0.4 + 3.6 * len(names), 3.4)
        for ax, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            for i in range(len(data["z0"])):
                shown = data[f"{name}_x"][i] > 0
                scatter(ax, data[f"{name}_z"][i, shown], data[f"{name}_vz"][i, shown], color=CYCLE[i % len(CYCLE)], size=0.8)
            ax.set(xlabel="$z$", ylabel="$v_z$", aspect="equal")
            ax.set_title(TITLES.get(name, "SPARK, Newton tolerance 0.15"), loc="left")
    return figure
