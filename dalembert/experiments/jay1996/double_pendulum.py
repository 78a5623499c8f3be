"""Figures 5.5 to 5.7: the double pendulum, Example 2."""

from __future__ import annotations

import itertools

import numpy as np

from dalembert.draw._style import BLACK, CYCLE, MARKERS, new_figure, styled
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import DASHES, DOTTED, GREY, Figure, log_log, over_time, sizes_as_ticks, zero_line
from dalembert.experiments._measures import simulate
from dalembert.experiments.jay1996._shared import FALLS, JAY, MANY_STEPS, STEPS, Example, H, largest_rise, paper_run
from dalembert.methods import Gauss, RadauIIA
from dalembert.plot._panels import history
from dalembert.problems import double_pendulum
from dalembert.verify import drift, slope

ENERGY = -3 * np.sqrt(0.75)
REST = -3.0
"""H of the pendulum hanging at rest: nothing can lie below."""


def exact_angles(t: np.ndarray, rtol: float = 1e-11, atol: float = 1e-12) -> np.ndarray:
    """Angles a, b of Example 2 from the vertical, and their rates, at the times t: an explicit method of order 8.

    2 a'' + b'' cos(a-b) + b'^2 sin(a-b) + 2 sin a = 0,   b'' + a'' cos(a-b) - a'^2 sin(a-b) + sin b = 0
    """
    from scipy.integrate import solve_ivp

    def motion(_: float, y: np.ndarray) -> tuple[float, float, float, float]:
        a, b, a_dot, b_dot = y
        c, s = np.cos(a - b), np.sin(a - b)
        left, right = -(b_dot**2) * s - 2 * np.sin(a), a_dot**2 * s - np.sin(b)
        determinant = 2 - c * c
        return a_dot, b_dot, (left - c * right) / determinant, (2 * right - c * left) / determinant

    start = (np.pi / 6, -np.pi / 6, 0.0, 0.0)
    return solve_ivp(motion, (0.0, t[-1]), start, method="DOP853", t_eval=t, rtol=rtol, atol=atol).y


def exact_double_pendulum(t1: float, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """x1, p_x1, z2, p_z2 of Example 2 to about ten digits.

    Example:
        >>> t, (x1, p_x1, z2, p_z2) = exact_double_pendulum(1.0, samples=3)
        >>> x1[0].round(12), z2[0].round(12), p_x1[0]
        (np.float64(0.5), np.float64(-1.732050807569), np.float64(0.0))

    """
    t = np.linspace(0.0, t1, samples)
    a, b, a_dot, b_dot = exact_angles(t)
    x1, p_x1 = np.sin(a), np.cos(a) * a_dot
    z2, p_z2 = -np.cos(a) - np.cos(b), np.sin(a) * a_dot + np.sin(b) * b_dot
    return t, np.array([x1, p_x1, z2, p_z2])


PENDULUM = Example(
    double_pendulum, ENERGY, r"$H + 3\sqrt{0.75}$", (("x1", "p_x1"), ("z2", "p_z2")), (0, 3), exact_double_pendulum
)


@JAY.claim(
    "figure5.5",
    "Over 5000 steps of h = 0.12 the 3-stage Lobatto IIIA-IIIB method keeps the double pendulum on the phase "
    "portraits (x1, p_x1) and (z2, p_z2) of the exact motion, with all constraints satisfied.",
    compute=PENDULUM.compute_portraits,
    draw=PENDULUM.draw_portraits,
)
def portraits_hold(data: Data) -> Checks:
    """Both portraits are those of the exact motion."""
    return PENDULUM.portrait_checks(data, outside=0.005, gaps=(0.03, 0.03))


@JAY.claim(
    "figure5.6",
    "The numerical Hamiltonian of the 3-stage Lobatto IIIA-IIIB method with h = 0.12 oscillates within a fixed "
    "narrow band about the exact value -3 sqrt(0.75) and does not drift.",
    compute=PENDULUM.compute_hamiltonian,
    draw=PENDULUM.draw_band,
)
def hamiltonian_holds(data: Data) -> Checks:
    """H stays in a band of 2e-5 and has no slope."""
    return PENDULUM.band_checks(data, 2e-5)


# -- figure 5.7 ----------------------------------------------------------------------------------------------------------

DRIFTING = {
    "gauss": Gauss(stages=2, projected=True),
    "radau": RadauIIA(stages=2),
    "radau_projected": RadauIIA(stages=2, projected=True),
}
"""In the order of the paper's ranking, the least drift first."""
DRIFTING_NAMES = {
    "gauss": "2-stage Gauss, projected", "radau": "2-stage Radau IIA", "radau_projected": "2-stage Radau IIA, projected"
}  # fmt: skip
REFINEMENTS = (1, 2, 4, 8)


def compute_drifts(full: bool) -> Data:
    """H of the three methods, their rates of drift on [0, 600] for smaller h, and H for loose Newton iterations.

    `full` adds a million steps.
    """
    problem = double_pendulum()
    runs = {name: paper_run(problem, method) for name, method in DRIFTING.items()}
    data: dict[str, np.ndarray] = {"t": runs["gauss"].t, **{name: run.energy for name, run in runs.items()}}
    data["h"] = H / np.array(REFINEMENTS)
    for name, method in DRIFTING.items():
        fine = [simulate(problem, method, h=H / k, steps=STEPS * k, save_every=k) for k in REFINEMENTS]
        data["rate_" + name] = np.array([-drift(run.energy, run.t).slope for run in fine])
        data["loose_" + name] = simulate(problem, method, h=H, steps=STEPS, newton_tolerance=1e-4).energy
        if full:
            long = paper_run(problem, method, MANY_STEPS, save_every=100)
            data |= {"long_t": long.t, "long_" + name: long.energy}
    return data


def windowed(values: np.ndarray, window: int = 100) -> np.ndarray:
    """Means over windows of so many entries; the first entry and what is left over at the end do not count."""
    count = (len(values) - 1) // window
    return np.asarray(values[1 : 1 + count * window].reshape(count, window).mean(axis=1))


def draw_drifts(data: Data) -> Figure:
    """H of the three methods, the rates of drift against h, and a million steps if there are so many."""
    colors = dict(zip(DRIFTING, CYCLE, strict=False))
    with styled():
        figure = new_figure(8.0, 5.4 if "long_t" in data else 3.0)
        rows = figure.add_gridspec(2 if "long_t" in data else 1, 2, width_ratios=(2.0, 1.0))
        left, right = figure.add_subplot(rows[0, 0]), figure.add_subplot(rows[0, 1])
        axes = [(left, "")] + ([(figure.add_subplot(rows[1, :]), "long_")] if "long_t" in data else [])
        for ax, prefix in axes:
            zero_line(ax)
            for name, color in colors.items():
                history(ax, data[prefix + "t"], data[prefix + name] - ENERGY, color=color, label=DRIFTING_NAMES[name])
            if prefix:
                ax.axhline(REST - ENERGY, color=GREY, linewidth=0.8, linestyle=DOTTED)
            over_time(ax, ylabel=PENDULUM.energy_label)
        left.legend(loc="lower left")
        for (name, color), marker in zip(colors.items(), MARKERS, strict=False):
            right.plot(data["h"], data["rate_" + name], color=color, marker=marker, markersize=4.5)
        cubic = 0.3 * data["rate_gauss"][-1] * (data["h"] / data["h"][-1]) ** 3
        right.plot(data["h"], cubic, color=BLACK, **DASHES)
        right.annotate("slope 3", (data["h"][1], cubic[1]), xytext=(4, -8), textcoords="offset points", fontsize=8)
        log_log(right, ylabel="energy lost per unit time")
        sizes_as_ticks(right, data["h"])
    return figure


@JAY.claim(
    "figure5.7",
    "On the double pendulum with h = 0.12 the numerical Hamiltonian of projected 2-stage Gauss drifts less than that "
    "of unprojected 2-stage Radau IIA, which drifts less than that of projected 2-stage Radau IIA.",
    compute=compute_drifts,
    draw=draw_drifts,
    remark="The ranking holds with Newton iterations carried to round-off, from the first oscillations on, and for smaller "
    "h: all three rates are O(h^3), in the limit in the proportion 1 : 1.94 : 3.59. After 5000 steps 0.085, 0.154 and "
    "0.211 are lost. The drift is not linear for long: all three sink towards the pendulum at rest, H = -3, and slopes "
    "fitted over 100,000 steps come out in the opposite order.",
)
def drifts_are_ranked(data: Data) -> Checks:
    """Each method loses energy throughout; from t = 30 on, and for every h, the losses are ranked as in the paper."""
    names = list(DRIFTING)
    for name in names:
        yield at_most(f"{name}: {FALLS}", largest_rise(data[name]), -1e-3)
    loss = {name: windowed(ENERGY - data[name]) for name in names}
    loose = {name: windowed(ENERGY - data["loose_" + name])[-1] for name in names}
    late = windowed(data["t"]) >= 30
    for less, more in itertools.pairwise(names):
        words = f"loss of {more} over loss of {less}"
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.min(loss[more][late] / loss[less][late])
        yield at_least(f"{words}: least from t = 30 on", least, 1.2)
        rates = data["rate_" + more] / data["rate_" + less]
        yield at_least(f"rate of {more} over rate of {less}: least over h", np.min(rates), 1.2)
        yield at_least(f"{words}: Newton stopped at 1e-4", loose[more] / loose[less], 1.2)
    for name in names:
        order = slope(data["h"], data["rate_" + name])[0]
        yield at_most(f"{name}: |order of the rate in h - 3|", abs(order - 3), 0.15)
        if "long_" + name in data:
            end = float(np.mean(data["long_" + name][-100:])) - REST
            yield at_most(f"{name}: H above rest after a million steps, relative to the start", end / (ENERGY - REST), 0.1)
