"""Beyond the figures: symplecticity and reversibility measured, the strong potential (4.25), and the heavy top."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dalembert import tableaux
from dalembert.experiments._experiment import Check, Data, Experiment
from dalembert.experiments.jay1996._shared import DOCUMENT, MANY_STEPS, STEPS, H, paper_run
from dalembert.methods import Gauss, LobattoIIIAB, OneStepMethod, RadauIIA
from dalembert.problems import Problem, charged_particle_on_sphere, double_pendulum, heavy_top, stiff_spring_pendulum
from dalembert.runs._simulate import simulate
from dalembert.systems import State, state_at
from dalembert.verify import drift, reversibility_defect, symplecticity_defect

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dalembert.runs._trajectory import Trajectory

EPSILON = float(np.finfo(float).eps)


# -- symplecticity and reversibility -------------------------------------------------------------------------------------

EXAMPLES: dict[str, Callable[[], Problem]] = {"sphere": charged_particle_on_sphere, "pendulum": double_pendulum}
EXAMPLE_TITLES = {"sphere": "charged particle on a sphere", "pendulum": "double pendulum"}
STRUCTURED: dict[str, OneStepMethod] = {
    **{f"Lobatto IIIA-IIIB, s = {s}": LobattoIIIAB(stages=s) for s in (2, 3, 4, 5)},
    "Gauss, s = 2": Gauss(stages=2),
    "Gauss, s = 2, projected": Gauss(stages=2, projected=True),
    "Radau IIA, s = 2": RadauIIA(stages=2),
    "Radau IIA, s = 2, projected": RadauIIA(stages=2, projected=True),
}
DEFECTS = {"symplecticity": symplecticity_defect, "reversibility": reversibility_defect}


def compute_defects(full: bool) -> Data:
    """Defects of one step of h = 0.12, a row for each method and a column for each of some states of the exact motion."""
    data: dict[str, np.ndarray] = {"method": np.array(list(STRUCTURED))}
    for name, make in EXAMPLES.items():
        problem = make()
        run = paper_run(problem, LobattoIIIAB(stages=4), steps=40)
        states = [{"q0": run.q[k], "p0": run.p[k]} for k in range(0, 41, 5 if full else 20)]
        for kind, defect in DEFECTS.items():
            rows = [[defect(problem, method, h=H, **state) for state in states] for method in STRUCTURED.values()]
            data[f"{name}_{kind}"] = np.array(rows)
    return data


def defects_hold(data: Data) -> tuple[Check, ...]:
    """Below 1e-13 for the Lobatto methods and for unprojected Gauss, above 1e-6 for Radau IIA and for projected Gauss."""
    checks = []
    for name in EXAMPLES:
        for kind in DEFECTS:
            largest = dict(zip(data["method"], np.max(data[f"{name}_{kind}"], axis=1), strict=True))
            kept = [value for method, value in largest.items() if method.startswith("Lobatto")]
            lost = [value for method, value in largest.items() if method.startswith("Radau") or method.endswith("projected")]
            checks.append(Check(f"{name}: largest {kind} defect of the Lobatto methods", float(np.max(kept)), "<=", 1e-13))
            checks.append(Check(f"{name}: {kind} defect of unprojected Gauss", float(largest["Gauss, s = 2"]), "<=", 1e-13))
            checks.append(
                Check(f"{name}: least {kind} defect of Radau IIA and projected Gauss", float(np.min(lost)), ">=", 1e-6)
            )
    return tuple(checks)


def draw_defects(data: Data) -> Figure:
    """The largest defects by method, on a logarithmic axis, and as numbers."""
    from dalembert.draw._style import BLUE, VERMILION, new_figure, styled

    with styled():
        figure = new_figure(7.6, 3.2)
        rows = np.arange(len(data["method"]))[::-1]
        for ax, name in zip(figure.subplots(1, 2, sharey=True), EXAMPLES, strict=True):
            for kind, color, marker, shift in (("symplecticity", BLUE, "o", 0.16), ("reversibility", VERMILION, "s", -0.16)):
                largest = np.maximum(np.max(data[f"{name}_{kind}"], axis=1), 1e-17)
                ax.hlines(rows + shift, 1e-17, largest, color=color, linewidth=0.8)
                ax.plot(largest, rows + shift, marker, color=color, markersize=4.5, label=f"{kind} defect")
                for x, y in zip(largest, rows + shift, strict=True):
                    ax.annotate(
                        f"{x:.0e}", (x, y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=6, color=color
                    )
            ax.axvline(1e-13, color="#707070", linewidth=0.8, linestyle=(0, (4, 3)))
            ax.set(xscale="log", xlim=(1e-17, 1e-1), ylim=(-0.6, len(rows) - 0.4))
            ax.set_xticks([1e-16, 1e-13, 1e-10, 1e-7, 1e-4])
            ax.set_yticks(rows, list(data["method"]))
            ax.minorticks_off()
            ax.set_title(EXAMPLE_TITLES[name], loc="left")
            ax.grid(True, axis="x")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


# -- the strong potential (4.25) -----------------------------------------------------------------------------------------

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
        data[name] = np.array(
            [guarded_energy_error(problem, method, float(r) * SPRING, 20_000 if full else 1000) for r in RATIOS]
        )
    data["limit2"], data["limit3"] = (np.array(stability_limit(stages)) for stages in (2, 3))
    return data


def guarded_energy_error(problem: Problem, method: OneStepMethod, h: float, steps: int) -> float:
    """The largest |H - H_0| over so many steps, in stretches of growing length that end when it blows up: then infinity."""
    start: State = state_at(problem.system, q0=problem.q0, p0=problem.p0)
    first, worst, done = None, 0.0, 0
    while done < steps:
        run: Trajectory = simulate(
            problem.system,
            method,
            start=start,
            h=h,
            steps=min(max(20, done), steps - done),
            progress=False,
            on_failure="return",
        )
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


def springs_hold(data: Data) -> tuple[Check, ...]:
    """Lobatto methods blow up beyond their limits and not before; the midpoint rule and Radau IIA go on to h = 20 epsilon."""
    ratio, checks = data["ratio"], []
    for name, limit in (("lobatto2", float(data["limit2"])), ("lobatto3", float(data["limit3"]))):
        below = float(np.max(data[name][ratio < limit]))
        first = ratio[ratio > limit][0]
        checks.append(Check(f"{SPRING_NAMES[name]}: largest energy error for h < {limit:.3g} epsilon", below, "<=", 1e-4))
        checks.append(
            Check(f"{SPRING_NAMES[name]}: energy error at h = {first:g} epsilon", data[name][ratio == first][0], ">=", UNSTABLE)
        )
        checks.append(
            Check(
                f"{SPRING_NAMES[name]}: least energy error for h >= 5 epsilon",
                float(np.min(data[name][ratio >= 5])),
                ">=",
                UNSTABLE,
            )
        )
    for name in ("midpoint", "radau2"):
        checks.append(
            Check(f"{SPRING_NAMES[name]}: largest energy error up to h = 20 epsilon", float(np.max(data[name])), "<=", 2e-2)
        )
    return tuple(checks)


def draw_springs(data: Data) -> Figure:
    """The energy error against h / epsilon; blow-ups are marked at the top."""
    from dalembert.draw._style import CYCLE, MARKERS, new_figure, styled

    ratio, top = data["ratio"], 10.0
    with styled():
        figure = new_figure(6.8, 3.4)
        ax = figure.add_subplot()
        for k, (name, color, marker) in enumerate(zip(ON_SPRINGS, CYCLE, MARKERS, strict=False)):
            error = data[name]
            good = np.isfinite(error)
            ax.plot(ratio, np.where(good, np.maximum(error, 1e-16), np.nan), color=color, marker=marker, markersize=4.5,
                    label=SPRING_NAMES[name])  # fmt: skip
            ax.plot(ratio[~good], np.full(np.sum(~good), top * 8.0 ** (1 - k)), "x", color=color, markersize=6)
        for limit, color in ((data["limit2"], CYCLE[0]), (data["limit3"], CYCLE[1])):
            ax.axvline(float(limit), color=color, linewidth=0.8, linestyle=(0, (4, 3)))
        ax.text(20, top * 30, "x: blows up", ha="right", fontsize=8)
        ax.set(xscale="log", yscale="log", ylim=(1e-17, 1e4), xlabel=r"$h / \varepsilon$", ylabel="largest $|H - H_0|$")
        ax.set_xticks([0.5, 1, 2, 2.83, 5, 10, 20], ["0.5", "1", "2", r"$2\sqrt{2}$", "5", "10", "20"])
        ax.minorticks_off()
        ax.grid(True)
        ax.legend(loc="lower right")
    return figure


# -- the heavy top -------------------------------------------------------------------------------------------------------


def compute_top(full: bool) -> Data:
    """Energy and angular momenta of the heavy top by 3-stage Lobatto IIIA-IIIB and by projected 2-stage Radau IIA."""
    problem = heavy_top()
    data: dict[str, np.ndarray] = {}
    for name, method, steps in (
        ("lobatto", LobattoIIIAB(stages=3), MANY_STEPS if full else STEPS),
        ("radau", RadauIIA(stages=2, projected=True), STEPS),
    ):
        run = simulate(problem, method, steps=steps, save_every=max(1, steps // (2 * STEPS)), progress=False)
        data[f"{name}_t"] = run.t
        data[f"{name}_energy"] = run.energy
        data[f"{name}_vertical"] = problem.conserved["vertical_angular_momentum"](run)
        data[f"{name}_axial"] = problem.conserved["axial_angular_momentum"](run)
    data["steps"] = np.array(MANY_STEPS if full else STEPS)
    return data


def top_holds(data: Data) -> tuple[Check, ...]:
    """Both momenta to round-off, the energy in a band without slope; Radau IIA loses all three."""
    t, energy, steps = data["lobatto_t"], data["lobatto_energy"], int(data["steps"])
    error = energy - energy[0]
    largest = float(np.max(np.abs(error)))
    slope = abs(drift(error, t).slope) if np.isfinite(largest) else float("nan")
    checks = [
        Check("Lobatto: largest |H - H_0|", largest, "<=", 1e-6),
        Check("Lobatto: |fitted slope of H| times length over largest |H - H_0|", slope * t[-1] / largest, "<=", 0.05),
    ]
    for which in ("vertical", "axial"):
        moved = np.abs(data[f"lobatto_{which}"] - data[f"lobatto_{which}"][0])
        early = float(np.max(moved[t <= t[-1] * STEPS / steps]))
        rate = float(np.max(moved)) / EPSILON / steps
        lost = float(np.abs(data[f"radau_{which}"][-1] - data[f"radau_{which}"][0]))
        checks += [
            Check(f"Lobatto: largest change of the {which} angular momentum in 5000 steps", early, "<=", 1e-13),
            Check(f"Lobatto: its largest change per step, in units of the machine precision ({which})", rate, "<=", 0.05),
            Check(f"Radau IIA, projected: change of the {which} angular momentum", lost, ">=", 0.1),
        ]
    lost = float(abs(data["radau_energy"][-1] - data["radau_energy"][0]))
    checks.append(Check("Radau IIA, projected: change of H", lost, ">=", 0.1))
    return tuple(checks)


def draw_top(data: Data) -> Figure:
    """Errors of H and of both momenta: Lobatto to the left, Radau IIA to the right."""
    from dalembert.draw._style import BLACK, BLUE, GREEN, VERMILION, new_figure, styled
    from dalembert.plot._panels import history

    with styled():
        figure = new_figure(7.6, 4.2)
        axes = figure.subplots(2, 2, sharex="col")
        for column, (name, title) in enumerate(
            (("lobatto", "3-stage Lobatto IIIA-IIIB"), ("radau", "2-stage Radau IIA, projected"))
        ):
            t = data[f"{name}_t"]
            upper, lower = axes[:, column]
            history(upper, t, data[f"{name}_energy"] - data[f"{name}_energy"][0], color=BLUE)
            upper.set_title(title, loc="left", pad=14)
            for which, color in (("vertical", VERMILION), ("axial", GREEN)):
                moved = data[f"{name}_{which}"] - data[f"{name}_{which}"][0]
                history(lower, t, moved, color=color, label=f"{which} angular momentum")
            lower.set_xlabel("$t$")
            for ax in (upper, lower):
                ax.axhline(0.0, color=BLACK, linewidth=0.6)
                ax.grid(True)
        axes[0, 0].set_ylabel("$H - H_0$")
        axes[1, 0].set_ylabel("change of momentum")
        axes[1, 1].legend(loc="lower left")
    return figure


EXPERIMENTS = (
    Experiment(
        name="jay1996.structure",
        document=DOCUMENT,
        item="section 3 and corollary 4.4, measured",
        claim="One step of h = 0.12 of the Lobatto IIIA-IIIB methods with 2 to 5 stages is symplectic and reversible to "
        "round-off on both examples; one of 2-stage Radau IIA or of projected Gauss is neither.",
        compute=compute_defects,
        draw=draw_defects,
        holds=defects_hold,
        remark="Unprojected Gauss is symplectic and reversible as well, and useless: see jay1996.gauss_diverges.",
    ),
    Experiment(
        name="jay1996.stiff_spring",
        document=DOCUMENT,
        item="(4.25), the stiff spring pendulum",
        claim="With a strong potential V / epsilon^2 the step size of Lobatto IIIA-IIIB methods is bound to the fast period: "
        "on the stiff spring pendulum they blow up beyond h = 2 epsilon (s = 2) and 2 sqrt(2) epsilon (s = 3), where the "
        "implicit midpoint rule and Radau IIA go on.",
        compute=compute_springs,
        draw=draw_springs,
        holds=springs_hold,
        remark="The limits are those of linear stability theory. The 3-stage method has an island of stability between 3.46 "
        "and 4.90 epsilon. Lobatto methods have no such limit where the spring is replaced by a constraint.",
    ),
    Experiment(
        name="jay1996.heavy_top",
        document=DOCUMENT,
        item="beyond the paper: the heavy symmetric top",
        claim="With nine coordinates and six constraints the 3-stage Lobatto IIIA-IIIB method conserves the vertical and the "
        "axial angular momentum of the heavy top to round-off and its energy within a narrow band.",
        compute=compute_top,
        draw=draw_top,
        holds=top_holds,
        remark="Rotations act linearly on the rotation matrix, so that both momenta are bilinear in (q, p), and symplectic "
        "partitioned methods conserve them exactly. What is left grows by 0.02 units of machine precision per step.",
    ),
)  # fmt: skip
