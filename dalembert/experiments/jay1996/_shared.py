"""What the experiments of Jay (1996) share: portraits against the exact motion, and histories of the Hamiltonian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.draw._style import new_figure, styled, symbol
from dalembert.experiments._experiment import Checks, Data, Document, at_most
from dalembert.experiments._figures import Figure, over_time, panels, zero_line
from dalembert.experiments._measures import fitted_rate, largest, largest_residuals, simulate
from dalembert.methods import LobattoIIIAB, OneStepMethod
from dalembert.plot._panels import history, scatter
from dalembert.problems import Problem, charged_particle_on_sphere, double_pendulum
from dalembert.runs._trajectory import Trajectory

JAY = Document("jay1996", "Jay (1996), SIAM J. Numer. Anal. 33")
H, STEPS, MANY_STEPS, FIRST = 0.12, 5000, 1_000_000, 500
LOBATTO = LobattoIIIAB(stages=3)
EXAMPLES: dict[str, Callable[[], Problem]] = {"sphere": charged_particle_on_sphere, "pendulum": double_pendulum}
EXAMPLE_TITLES = {"sphere": "charged particle on a sphere", "pendulum": "double pendulum"}
FALLS = "largest rise of the mean of H between tenths of the run"
"""The name of a check of `largest_rise`."""


def paper_run(problem: Problem, method: OneStepMethod, steps: int = STEPS, save_every: int = 1) -> Trajectory:
    """A run with the paper's step size h = 0.12."""
    return simulate(problem, method, h=H, steps=steps, save_every=save_every)


@dataclass(frozen=True)
class Example:
    """One of the paper's two examples, solved by 3-stage Lobatto IIIA-IIIB: phase portraits, and H over a long time.

    `energy` is the exact value of H, and `energy_label` stands at the axis of H less that. `planes` names the coordinate and
    the momentum of each portrait, `coordinates` says which of q and p these are, and `exact(t1, samples)` gives the times and
    rows of the exact motion for them.
    """

    problem: Callable[[], Problem]
    energy: float
    energy_label: str
    planes: tuple[tuple[str, str], ...]
    coordinates: tuple[int, ...]
    exact: Callable[[float, int], tuple[np.ndarray, np.ndarray]]

    def portrait(self, run: Trajectory, prefix: str = "") -> dict[str, np.ndarray]:
        """The coordinates of the portraits of a run, and the largest violation of each constraint by state."""
        columns = largest_residuals(run)
        for (x, p), i in zip(self.planes, self.coordinates, strict=True):
            columns |= {x: run.q[:, i], p: run.p[:, i]}
        return {prefix + name: values for name, values in columns.items()}

    def exact_portrait(self, samples: int) -> dict[str, np.ndarray]:
        """The same of the exact motion, with the prefix exact_."""
        t, rows = self.exact(H * STEPS, samples)
        names = [name for plane in self.planes for name in plane]
        return {"exact_t": t, **{f"exact_{name}": row for name, row in zip(names, rows, strict=True)}}

    def compute_portraits(self, full: bool) -> Data:
        """A run and the exact motion from an independent formulation; the paper's length in any case."""
        run = paper_run(self.problem(), LOBATTO)
        return {"t": run.t, **self.portrait(run), **self.exact_portrait(20 * STEPS)}

    def portrait_checks(self, data: Data, outside: float, gaps: Sequence[float]) -> Checks:
        """Every point lies on the portrait of the exact motion, and the portrait is covered; no constraint is violated."""
        for plane, gap in zip(self.planes, gaps, strict=True):
            away, missed = portrait_distances(data, plane)
            name = f"({plane[0]}, {plane[1]})"
            yield at_most(f"{name}: farthest point from the exact portrait, relative to its size", away, outside)
            yield at_most(f"{name}: farthest part of the exact portrait from a point", missed, gap)
        yield at_most("largest |g|", np.max(data["g"]), 1e-13)
        yield at_most("largest |g_dot|", np.max(data["g_dot"]), 1e-13)

    def draw_portraits(self, data: Data, rows: Sequence[tuple[str, str]] = (("", ""),)) -> Figure:
        """One row of portraits for each (prefix, title), over the exact portrait in grey where ours may leave it."""
        with styled():
            figure = new_figure(6.8, 3.1 * len(rows))
            axes = figure.subplots(len(rows), len(self.planes), squeeze=False)
            for (prefix, title), row in zip(rows, axes, strict=True):
                for (x, p), ax in zip(self.planes, row, strict=True):
                    if title:
                        scatter(ax, data["exact_" + x], data["exact_" + p], color="#b8b8b8", size=1.0)
                        ax.set_title(title, loc="left")
                    scatter(ax, data[prefix + x], data[prefix + p])
                    ax.set(xlabel=f"${symbol(x)}$", ylabel=f"$p_{{{symbol(x)}}}$")
                    ax.locator_params(nbins=6)
        return figure

    def compute_hamiltonian(self, full: bool) -> Data:
        """H after each of 5000 steps; `full` goes on to a million and stores every hundredth after the first 5000."""
        run = paper_run(self.problem(), LOBATTO)
        t, energy = run.t, run.energy
        if full:
            long = paper_run(self.problem(), LOBATTO, MANY_STEPS, save_every=100)
            later = long.t > t[-1]
            t, energy = np.concatenate([t, long.t[later]]), np.concatenate([energy, long.energy[later]])
        return {"t": t, "H": energy}

    def band_checks(self, data: Data, band: float) -> Checks:
        """H starts at its exact value, stays near it, does not swing wider in the end than at first, and has no slope."""
        t, error = data["t"], data["H"] - self.energy
        size, length = largest(error), t[-1] - t[0]
        early, late = error[t <= t[0] + 0.1 * length], error[t >= t[-1] - 0.1 * length]
        growth, rise = largest(late) / largest(early), abs(fitted_rate(error, t)) * length / size
        yield at_most("|H - exact value| at the start", abs(error[0]), 1e-14)
        yield at_most("largest |H - exact value|", size, band)
        yield at_most("largest |H - exact value| in the last tenth over that in the first", growth, 1.1)
        yield at_most("|fitted slope| times length over largest |H - exact value|", rise, 1e-2)

    def draw_band(self, data: Data) -> Figure:
        """H less its exact value: the first 500 steps, as the paper draws them, and all steps."""
        return _draw_band({"t": data["t"], "error": data["H"] - self.energy}, self.energy_label)


@panels(6.8, 4.4, rows=2)
def _draw_band(data: Data, axes: Any, ylabel: str) -> None:
    stops = (FIRST + 1, len(data["t"]))
    for ax, stop, title in zip(axes, stops, ("the first 500 steps", "the whole run"), strict=True):
        zero_line(ax)
        history(ax, data["t"][:stop], data["error"][:stop])
        over_time(ax, title, ylabel=ylabel)


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


def largest_rise(energy: np.ndarray, parts: int = 10) -> float:
    """The largest rise of the mean of H from one of so many equal parts to the next; negative if it falls throughout.

    Example:
        >>> largest_rise(-np.arange(100.0)), largest_rise(np.arange(100.0))
        (-10.0, 10.0)

    """
    means = [float(np.mean(part)) for part in np.array_split(energy, parts)]
    return float(np.max(np.diff(means)))
