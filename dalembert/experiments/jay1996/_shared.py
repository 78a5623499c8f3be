"""What the experiments of Jay (1996) share: constants, portraits against the exact motion, histories of the Hamiltonian."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data
from dalembert.methods import OneStepMethod
from dalembert.problems import Problem
from dalembert.runs._simulate import simulate
from dalembert.runs._trajectory import Trajectory
from dalembert.verify import drift

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCUMENT = "Jay (1996), SIAM J. Numer. Anal. 33"
H, STEPS, MANY_STEPS, FIRST = 0.12, 5000, 1_000_000, 500
Planes = Sequence[tuple[str, str]]


def paper_run(problem: Problem, method: OneStepMethod, steps: int = STEPS, save_every: int = 1) -> Trajectory:
    """A run with the paper's step size h = 0.12."""
    return simulate(problem, method, h=H, steps=steps, save_every=save_every, progress=False)


def long_energy(problem: Problem, method: OneStepMethod, full: bool) -> tuple[np.ndarray, np.ndarray]:
    """Times and H after each of 5000 steps; `full` goes on to a million and stores every hundredth after the first 5000."""
    run = paper_run(problem, method)
    t, energy = run.t, run.energy
    if full:
        long = paper_run(problem, method, MANY_STEPS, save_every=100)
        later = long.t > t[-1]
        t, energy = np.concatenate([t, long.t[later]]), np.concatenate([energy, long.energy[later]])
    return t, energy


# -- portraits -----------------------------------------------------------------------------------------------------------


def portrait_distances(data: Data, plane: tuple[str, str], ours: str = "") -> tuple[float, float]:
    """The farthest point of ours from the exact portrait, and the other way round, relative to the portrait's size.

    The exact portrait is held in the arrays exact_x and exact_p_x for a plane (x, p_x), ours in those with the prefix `ours`.
    """
    points, exact = (np.column_stack([data[prefix + name] for name in plane]) for prefix in (ours, "exact_"))
    scale = np.ptp(exact, axis=0)
    return farthest(points / scale, exact / scale), farthest(exact / scale, points / scale)


def farthest(points: np.ndarray, cloud: np.ndarray) -> float:
    """The largest distance of a point from a cloud of points; nan if a point is not finite.

    Example:
        >>> farthest(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [1.0, 0.0]])).round(6)
        np.float64(4.472136)

    """
    from scipy.spatial import KDTree

    if not (np.all(np.isfinite(points)) and np.all(np.isfinite(cloud))):
        return float("nan")
    return np.max(KDTree(cloud).query(points)[0])


def largest_residuals(run: Trajectory) -> dict[str, np.ndarray]:
    """The largest |g| and |g_dot| of each state."""
    return {name: np.max(np.abs(value), axis=1) for name, value in run.residuals.items()}


def draw_portraits(data: Data, planes: Planes, rows: Sequence[tuple[str, str]] = (("", ""),)) -> Figure:
    """One row of portraits for each (prefix, title), over the exact portrait in grey where ours may leave it."""
    from dalembert.draw._style import new_figure, styled, symbol
    from dalembert.plot._panels import scatter

    with styled():
        figure = new_figure(6.8, 3.1 * len(rows))
        axes = figure.subplots(len(rows), len(planes), squeeze=False)
        for (prefix, title), row in zip(rows, axes, strict=True):
            for (x, p), ax in zip(planes, row, strict=True):
                if title:
                    scatter(ax, data["exact_" + x], data["exact_" + p], color="#b8b8b8", size=1.0)
                    ax.set_title(title, loc="left")
                scatter(ax, data[prefix + x], data[prefix + p])
                ax.set(xlabel=f"${symbol(x)}$", ylabel=f"$p_{{{symbol(x)}}}$")
                ax.locator_params(nbins=6)
    return figure


# -- the Hamiltonian -----------------------------------------------------------------------------------------------------


def band_checks(data: Data, exact: float, band: float) -> tuple[Check, ...]:
    """H starts at its exact value, stays near it, does not swing wider in the end than at first, and has no slope."""
    t, error = data["t"], data["H"] - exact
    size, length = np.abs(error), t[-1] - t[0]
    early, late = size[t <= t[0] + 0.1 * length], size[t >= t[-1] - 0.1 * length]
    largest = float(np.max(size))
    slope = abs(drift(error, t).slope) if np.isfinite(largest) else float("nan")
    return (
        Check("|H - exact value| at the start", float(size[0]), "<=", 1e-14),
        Check("largest |H - exact value|", largest, "<=", band),
        Check("largest |H - exact value| in the last tenth over that in the first", np.max(late) / np.max(early), "<=", 1.1),
        Check("|fitted slope| times length over largest |H - exact value|", slope * length / largest, "<=", 1e-2),
    )


def draw_band(data: Data, exact: float, label: str) -> Figure:
    """H less its exact value: the first 500 steps, as the paper draws them, and the whole run."""
    from dalembert.draw._style import BLACK, new_figure, styled
    from dalembert.plot._panels import history

    t, error = data["t"], data["H"] - exact
    with styled():
        figure = new_figure(6.8, 4.4)
        for k, (stop, title) in enumerate([(FIRST + 1, "the first 500 steps"), (len(t), "the whole run")], start=1):
            ax = figure.add_subplot(2, 1, k)
            ax.axhline(0.0, color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)))
            history(ax, t[:stop], error[:stop])
            ax.set(xlabel="$t$", ylabel=label)
            ax.set_title(title, loc="left")
            ax.grid(True)
    return figure


def monotone_means(t: np.ndarray, energy: np.ndarray, stretches: int = 10) -> float:
    """The largest rise of the mean of H from one of so many equal stretches to the next; negative if it falls throughout.

    Example:
        >>> t = np.arange(100.0)
        >>> monotone_means(t, -t), monotone_means(t, t)
        (-10.0, 10.0)

    """
    means = [float(np.mean(part)) for part in np.array_split(energy, stretches)]
    return float(np.max(np.diff(means)))
