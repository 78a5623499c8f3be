"""The strong potential (4.25): step sizes of the stiff spring pendulum are bound to its fast period."""

from __future__ import annotations

import numpy as np

from dalembert import tableaux
from dalembert.draw._style import CYCLE, MARKERS
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import DASHES, Axes, log_log, panels
from dalembert.experiments._measures import simulate
from dalembert.experiments.jay1996._shared import JAY
from dalembert.methods import Gauss, LobattoIIIAB, OneStepMethod, RadauIIA
from dalembert.problems import Problem, stiff_spring_pendulum
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import State, state_at

SPRING = 1e-3
RATIOS = np.array([0.5, 1.0, 1.5, 1.95, 2.05, 2.5, 2.75, 2.9, 3.2, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0])
"""Step sizes as multiples of epsilon."""
ON_SPRINGS: dict[str, OneStepMethod] = {
    "lobatto2": LobattoIIIAB(stages=2),
    "lobatto3": LobattoIIIAB(stages=3),
    "midpoint": Gauss(stages=1),
    "radau2": RadauIIA(stages=2),
}
SPRING_NAMES = {
    "lobatto2": "RATTLE (Lobatto, s = 2)", "lobatto3": "Lobatto IIIA-IIIB, s = 3",
    "midpoint": "implicit midpoint (Gauss, s = 1)", "radau2": "Radau IIA, s = 2",
}  # fmt: skip
UNSTABLE = 1.0
"""An energy error of this size, with energies of order one, is called a blow-up."""


def compute_springs(full: bool) -> Data:
    """The largest energy error over 1000 steps (`full`: 20,000) by h / epsilon, infinite after a blow-up; limits by theory."""
    data: dict[str, np.ndarray] = {"ratio": RATIOS}
    problem = stiff_spring_pendulum(epsilon=SPRING)
    for name, method in ON_SPRINGS.items():
        errors = [guarded_energy_error(problem, method, float(r) * SPRING, 20_000 if full else 1000) for r in RATIOS]
        data[name] = np.array(errors)
    data["limit2"], data["limit3"] = (np.array(stability_limit(stages)) for stages in (2, 3))
    return data


def guarded_energy_error(problem: Problem, method: OneStepMethod, h: float, steps: int) -> float:
    """The largest |H - H_0| over so many steps, in runs of growing length until it blows up: then infinity."""
    start: State = state_at(problem.system, q0=problem.q0, p0=problem.p0)
    first, worst, done = None, 0.0, 0
    while done < steps:
        next_steps = min(max(20, done), steps - done)
        run: Trajectory = simulate(problem.system, method, start=start, h=h, steps=next_steps, on_failure="return")
        first = run.energy[0] if first is None else first
        worst = max(worst, float(np.max(np.abs(run.energy - first))))
        if run.status != "done" or not worst <= UNSTABLE:
            return float("inf")
        start, done = state_at(problem.system, q0=run.q[-1], p0=run.p[-1], t0=run.t[-1]), done + len(run.t) - 1
    return worst


def stability_limit(stages: int) -> float:
    """The largest omega h up to which the Lobatto IIIA-IIIB method is stable on the oscillator q' = omega p, p' = -omega q.

    Example:
        >>> stability_limit(2), round(stability_limit(3), 6)
        (2.0, 2.828427)

    """
    A, A_hat, b = tableaux.lobatto_iiia(stages).A, tableaux.lobatto_iiib(stages).A, tableaux.lobatto_iiia(stages).b
    one, zero, eye = np.ones((stages, 1)), np.zeros((stages, 1)), np.eye(stages)

    def half_trace(z: float) -> float:
        stages_of = np.linalg.solve(np.block([[eye, -z * A], [z * A_hat, eye]]), np.block([[one, zero], [zero, one]]))
        step = np.eye(2) + z * np.array([b @ stages_of[stages:], -b @ stages_of[:stages]])
        return float(np.trace(step)) / 2

    low = next(z for z in np.arange(0.0, 10.0, 1e-3) if abs(half_trace(z + 1e-3)) > 1 + 1e-9)
    high = low + 1e-3
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (low, middle) if abs(half_trace(middle)) > 1 + 1e-12 else (middle, high)
    return round(float(low), 6)


@panels(6.8, 3.4)
def draw_springs(data: Data, ax: Axes) -> None:
    """The energy error against h / epsilon; blow-ups are marked at the top."""
    ratio, top = data["ratio"], 10.0
    for k, (name, color, marker) in enumerate(zip(ON_SPRINGS, CYCLE, MARKERS, strict=False)):
        error = data[name]
        good = np.isfinite(error)
        shown = np.where(good, np.maximum(error, 1e-16), np.nan)
        ax.plot(ratio, shown, color=color, marker=marker, markersize=4.5, label=SPRING_NAMES[name])
        ax.plot(ratio[~good], np.full(np.sum(~good), top * 8.0 ** (1 - k)), "x", color=color, markersize=6)
    for limit, color in ((data["limit2"], CYCLE[0]), (data["limit3"], CYCLE[1])):
        ax.axvline(float(limit), color=color, **DASHES)
    ax.text(20, top * 30, "x: blows up", ha="right", fontsize=8)
    log_log(ax, xlabel=r"$h / \varepsilon$", ylabel="largest $|H - H_0|$")
    ax.set_ylim(1e-17, 1e4)
    ax.set_xticks([0.5, 1, 2, 2.83, 5, 10, 20], ["0.5", "1", "2", r"$2\sqrt{2}$", "5", "10", "20"])
    ax.legend(loc="lower right")


@JAY.claim(
    "stiff_spring",
    "With a strong potential V / epsilon^2 the step size of Lobatto IIIA-IIIB methods is bound to the fast period: "
    "on the stiff spring pendulum they blow up beyond h = 2 epsilon (s = 2) and 2 sqrt(2) epsilon (s = 3), where the "
    "implicit midpoint rule and Radau IIA go on.",
    item="(4.25), the stiff spring pendulum",
    compute=compute_springs,
    draw=draw_springs,
    remark="The limits are those of linear stability theory. The 3-stage method has an island of stability between 3.46 "
    "and 4.90 epsilon. Lobatto methods have no such limit where the spring is replaced by a constraint.",
)
def springs_hold(data: Data) -> Checks:
    """Lobatto methods blow up beyond their limits and not before; the midpoint rule and Radau IIA go on to h = 20 epsilon."""
    ratio = data["ratio"]
    for name, limit in (("lobatto2", float(data["limit2"])), ("lobatto3", float(data["limit3"]))):
        title, error, first = SPRING_NAMES[name], data[name], ratio[ratio > limit][0]
        yield at_most(f"{title}: largest energy error for h < {limit:.3g} epsilon", np.max(error[ratio < limit]), 1e-4)
        yield at_least(f"{title}: energy error at h = {first:g} epsilon", error[ratio == first][0], UNSTABLE)
        yield at_least(f"{title}: least energy error for h >= 5 epsilon", np.min(error[ratio >= 5]), UNSTABLE)
    for name in ("midpoint", "radau2"):
        yield at_most(f"{SPRING_NAMES[name]}: largest energy error up to h = 20 epsilon", np.max(data[name]), 2e-2)
