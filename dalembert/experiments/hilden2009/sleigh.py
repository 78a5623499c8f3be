"""Chaplygin's sleigh: table 4.1 with figures 4.7 and 4.8, figures 4.9 and 4.10 (section 4.2.3), 4.18 and 4.19 (section 4.5)."""

from __future__ import annotations

from functools import partial

import numpy as np

from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import Figure
from dalembert.experiments._measures import energy_error, largest, simulate
from dalembert.experiments.hilden2009._shared import HILDEN, draw_histories, index_one_run, index_one_solver
from dalembert.methods import SRK, LobattoSPARK, McLachlanPerlmutter, NonholonomicEuler, OneStepMethod, compose
from dalembert.problems import chaplygin_sleigh
from dalembert.problems.vehicles import LIGHT_SLEIGH

T1 = 30.0

# -- table 4.1, figures 4.7 and 4.8 --------------------------------------------------------------------------------------

TOLERANCES = ((1e-5, 1e-8), (1e-7, 1e-10), (1e-9, 1e-12), (1e-11, 1e-14))
PRINTED = {
    "energy": (2.516e-5, 8.325e-7, 1.398e-8, 4.267e-10),
    "constraint": (8.256e-4, 1.320e-5, 1.838e-7, 8.647e-9),
    "steps": (0.1304, 0.0638, 0.0303, 0.0163),
}


def compute_table(full: bool) -> Data:
    """By tolerance: the average step size, and the errors of energy and constraint along the run."""
    problem = chaplygin_sleigh(**LIGHT_SLEIGH)
    data: dict[str, np.ndarray] = {"solver": np.array(index_one_solver())}
    rows = []
    for i, (rtol, atol) in enumerate(TOLERANCES):
        run = index_one_run(problem, T1, rtol, atol)
        data |= {f"t{i}": run.t, f"energy{i}": energy_error(run), f"k{i}": run.residuals["k"][:, 0]}
        rows.append((run.h, largest(data[f"energy{i}"]), largest(data[f"k{i}"])))
    data |= dict(zip(("steps", "energy", "constraint"), np.array(rows).T, strict=True))
    spark = simulate(problem, LobattoSPARK(stages=3), h=0.01, t1=T1)
    return data | {"spark_energy": energy_error(spark), "spark_k": spark.residuals["k"][:, 0]}


def draw_table(data: Data) -> Figure:
    """Energy errors and constraints by tolerance, and the table."""
    labels = [f"RelTol {rtol:g}, average $h$ {h:.4f}" for (rtol, _), h in zip(TOLERANCES, data["steps"], strict=True)]
    panels = [
        (f"$|E_0 - E_k|$, {data['solver']}", [(f"t{i}", f"energy{i}", label) for i, label in enumerate(labels)]),
        ("$|A(q_k) v_k|$", [(f"t{i}", f"k{i}", label) for i, label in enumerate(labels)]),
    ]
    return draw_histories(data, panels, "$t$", "", log_floor=1e-16)


@HILDEN.claim(
    "table4.1",
    "A solver for the index-1 DAE of Chaplygin's sleigh errs in energy and constraint at every tolerance, down to "
    "about 1e-10; the SPARK and SRK methods keep the constraint to round-off.",
    item="table 4.1, figures 4.7 and 4.8",
    compute=compute_table,
    draw=draw_table,
    remark="IDA, variable-order BDF like ode15s, takes the place of ode15s and comes close to the printed table. Where "
    "scikit-sundae is missing, SciPy's Radau on the ODE with eliminated multipliers does, which is of order 5 "
    "and more accurate.",
)
def table_holds(data: Data) -> Checks:
    """Both errors fall with the tolerance and never reach round-off; with IDA they are close to those of ode15s."""
    for name, printed in PRINTED.items():
        values, (falls, close) = data[name], (0.8, 0.2) if name == "steps" else (0.3, 1.0)
        yield at_most(f"{name}: largest value over the one of the looser tolerance", np.max(values[1:] / values[:-1]), falls)
        if data["solver"] == "IDA":
            away = largest(np.log10(values / np.array(printed)))
            yield at_most(f"{name}: largest factor to table 4.1, as a power of 10", away, close)
    ends = [abs(data[f"k{i}"][-1]) / data["constraint"][i] for i in range(len(TOLERANCES))]
    worse = data["constraint"][-1] / largest(data["spark_k"])
    yield at_least("constraint at the tightest tolerance over that of 3-stage SPARK, h = 0.01", worse, 5)
    yield at_most("3-stage SPARK, h = 0.01: largest energy error", largest(data["spark_energy"]), 1e-12)
    yield at_most("3-stage SPARK, h = 0.01: largest |k|", largest(data["spark_k"]), 2e-13)
    yield at_least("least |k| at the end over the largest one", np.min(ends), 0.1)


# -- figures 4.9 and 4.10 ------------------------------------------------------------------------------------------------

COMPARED: dict[str, OneStepMethod] = {
    "mp": McLachlanPerlmutter(variable_mass=True),
    "composed": compose(NonholonomicEuler(), 2),
    **{f"spark{s}": LobattoSPARK(stages=s) for s in (2, 3)},
    **{f"radau{s}": SRK("radau-ia", stages=s) for s in (2, 3)},
    **{f"gauss{s}": SRK("gauss", stages=s) for s in (2, 3)},
}
LABELS = {
    "mp": "McLachlan-Perlmutter (4.3)",
    "composed": "composed Euler",
    **{f"spark{s}": f"SPARK, s = {s}" for s in (2, 3)},
    **{f"radau{s}": f"SRK Radau IA, s = {s}" for s in (2, 3)},
    **{f"gauss{s}": f"SRK Gauss, s = {s}" for s in (2, 3)},
}
MOST: dict[float, tuple[float, ...]] = {
    0.1: (1e-3, 1e-3, 1e-3, 1e-8, 1e-5, 1e-9, 1e-8, 1e-12),
    0.01: (1e-5, 1e-5, 1e-5, 1e-12, 1e-8, 1e-12, 1e-11, 1e-12),
}
"""Upper bounds of the energy errors of these methods by h, which fall with the order of each, down to round-off."""


def compute_comparison(full: bool, *, h: float) -> Data:
    """Energy errors and constraints of all methods to t = 30."""
    problem = chaplygin_sleigh(**LIGHT_SLEIGH)
    data: dict[str, np.ndarray] = {}
    for name, method in COMPARED.items():
        run = simulate(problem, method, h=h, t1=T1)
        data |= {"t": run.t, name: energy_error(run), f"{name}_k": run.residuals["k"][:, 0]}
    return data


def comparison_holds(data: Data) -> Checks:
    """Constraints at round-off; (4.3) and 2-stage SPARK alike; everything of higher order better by decades."""
    h = round(float(data["t"][1]), 6)
    size = {name: largest(data[name]) for name in COMPARED}
    for name, most in zip(COMPARED, MOST[h], strict=True):
        yield at_most(f"{LABELS[name]}: largest |E_0 - E_k|", size[name], most)
    yield at_most("largest |A(q_k) v_k| of all methods", largest(np.array([data[f"{name}_k"] for name in COMPARED])), 3e-13)
    yield at_most("(4.3) over 2-stage SPARK", size["mp"] / size["spark2"], 3)
    yield at_least("(4.3) over 2-stage SPARK", size["mp"] / size["spark2"], 1 / 3)
    yield at_least("2-stage SPARK over 2-stage SRK Radau IA", size["spark2"] / size["radau2"], 30)
    better = size["radau2"] / np.max([size[name] for name in ("gauss2", "spark3", "radau3", "gauss3")])
    yield at_least("2-stage SRK Radau IA over the worst of 2-stage SRK Gauss and the 3-stage methods", better, 30)


def draw_comparison(data: Data) -> Figure:
    """Sizes of energy errors on a logarithmic axis."""
    h = round(float(data["t"][1]), 6)
    series = [("t", name, LABELS[name]) for name in COMPARED]
    return draw_histories(data, [(f"$|E_0 - E_k|$, $h = {h:g}$", series)], "$t$", "", log_floor=1e-18)


for figure, h in (("4.9", 0.1), ("4.10", 0.01)):
    HILDEN.claim(
        f"figure{figure}",
        f"With h = {h:g} the energy errors of (4.3) and 2-stage SPARK on the sleigh are alike, that of 2-stage SRK "
        "Radau IA is smaller, those of 2-stage SRK Gauss and of the 3-stage methods are smaller still.",
        compute=partial(compute_comparison, h=h),
        draw=draw_comparison,
        remark="(4.3) is only of order 1 in q (hilden2009.variable_mass); its energy error is of order 2 here, because m a^2 / "
        "I = 1.6e-4 leaves the mass matrix nearly constant. Composed Euler is the symmetric method of order 2 in its place.",
    )(comparison_holds)


# -- figures 4.18 and 4.19 -----------------------------------------------------------------------------------------------

H_JAY = 0.12
STAGES = (2, 3, 4)


def compute_components(full: bool) -> Data:
    """The components by 4-stage SPARK, and by 4-stage Gauss with h/8 as a reference."""
    problem = chaplygin_sleigh()
    run = simulate(problem, LobattoSPARK(stages=4), h=H_JAY, t1=T1)
    fine = simulate(problem, SRK("gauss", stages=4), h=H_JAY / 8, t1=T1, save_every=8)
    names = ("x", "y", "theta")
    return {
        "t": run.t,
        "psi0": run.psi[0],
        "k": run.residuals["k"][:, 0],
        **dict(zip(names, run.q.T, strict=True)),
        **{f"fine_{name}": values for name, values in zip(names, fine.q.T, strict=True)},
    }


def draw_sleigh_components(data: Data) -> Figure:
    """x, y and theta."""
    panels = [(f"${symbol}$", [("t", name, "")]) for name, symbol in (("x", "x"), ("y", "y"), ("theta", r"\theta"))]
    return draw_histories(data, panels, "$t$", "")


@HILDEN.claim(
    "figure4.18",
    "The components of the sleigh with the data of section 4.5 by the 4-stage SPARK method with h = 0.12.",
    compute=compute_components,
    draw=draw_sleigh_components,
    remark="The thesis does not state the end of the run; t = 30 here. Judged by 4-stage SRK Gauss with h = 0.015.",
)
def components_hold(data: Data) -> Checks:
    """The reference is met, lambda_0 is 1/20, and the sleigh has turned downhill, its centre of mass in front."""
    for name in ("x", "y", "theta"):
        yield at_most(f"largest difference of {name} from the reference", largest(data[name] - data[f"fine_{name}"]), 1e-6)
    yield at_most("|lambda_0 - 1/20|", np.abs(-data["psi0"][0] - 0.05), 1e-15)
    yield at_most("largest |A(q_k) v_k|", largest(data["k"]), 1e-13)
    yield at_most("y at the end", data["y"][-1], -38.0)
    yield at_most("|theta + pi/2| at the end", np.abs(data["theta"][-1] + np.pi / 2), 0.2)


def compute_energies(full: bool) -> Data:
    """Energy errors of the 2-, 3- and 4-stage SPARK methods with h = 0.12, and with half of it."""
    problem = chaplygin_sleigh()
    data: dict[str, np.ndarray] = {}
    for s in STAGES:
        run = simulate(problem, LobattoSPARK(stages=s), h=H_JAY, t1=T1)
        half = simulate(problem, LobattoSPARK(stages=s), h=H_JAY / 2, t1=T1)
        data |= {"t": run.t, f"s{s}": energy_error(run), f"s{s}_half": energy_error(half)}
    return data


def draw_energies(data: Data) -> Figure:
    """A panel for each number of stages."""
    return draw_histories(data, [(f"$s = {s}$", [("t", f"s{s}", "")]) for s in STAGES], "$t$", "$E - E_0$")


@HILDEN.claim(
    "figure4.19",
    "The energy errors of the 2-, 3- and 4-stage SPARK methods with h = 0.12 fall by decades with each stage, to round-off.",
    compute=compute_energies,
    draw=draw_energies,
)
def energies_hold(data: Data) -> Checks:
    """Each pair of stages gains decades; orders 2 and 4; the 4-stage method is at round-off."""
    size = {s: largest(data[f"s{s}"]) for s in STAGES}
    half = {s: largest(data[f"s{s}_half"]) for s in STAGES}
    yield at_most("s = 2: largest energy error", size[2], 1e-4)
    yield at_most("s = 3: largest energy error", size[3], 1e-8)
    yield at_most("s = 4: largest energy error", size[4], 1e-12)
    yield at_most("s = 2: |order of the energy error - 2|", abs(np.log2(size[2] / half[2]) - 2), 0.2)
    yield at_most("s = 3: |order of the energy error - 4|", abs(np.log2(size[3] / half[3]) - 4), 0.3)
    yield at_most("s = 2: energy error at the end over the largest one", abs(data["s2"][-1]) / size[2], 0.7)
