"""Figure 2.1: constraints of the upright disk after index reduction, by IDA and by DOP853."""

from __future__ import annotations

import numpy as np

from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import Figure
from dalembert.experiments._measures import largest, ratio, simulate
from dalembert.experiments.hilden2009._shared import HILDEN, draw_histories, index_one_run, index_one_solver
from dalembert.methods import LobattoSPARK
from dalembert.problems import vertical_disk
from dalembert.runs._index_reduction import reduce_index

T1, RTOL, ATOL = 100.0, 1e-6, 1e-9
REDUCED = {"dae": "index-1 DAE", "ode": "ODE"}


def compute_drift(full: bool) -> Data:
    """Both constraints along the solutions of (2.11) and (2.12), and along that of the 2-stage SPARK method with h = 0.1."""
    problem = vertical_disk()
    runs = {
        "dae": index_one_run(problem, T1, RTOL, ATOL),
        "ode": reduce_index(problem).simulate("DOP853", t1=T1, rtol=RTOL, atol=ATOL),
        "spark": simulate(problem, LobattoSPARK(stages=2), h=0.1, t1=T1),
    }
    data: dict[str, np.ndarray] = {"solver": np.array(index_one_solver())}
    for name, run in runs.items():
        data |= {f"{name}_t": run.t, f"{name}_k1": run.residuals["k"][:, 0], f"{name}_k2": run.residuals["k"][:, 1]}
    return data


def draw_drift(data: Data) -> Figure:
    """Both constraints against time."""
    panels = [
        (f"index-1 DAE (2.11), {data['solver']}", [("dae_t", "dae_k1", "first constraint"), ("dae_t", "dae_k2", "second")]),
        ("ODE (2.12), DOP853", [("ode_t", "ode_k1", "first constraint"), ("ode_t", "ode_k2", "second")]),
    ]
    return draw_histories(data, panels, "$t$", "$k$")


@HILDEN.claim(
    "figure2.1",
    "Solutions of the index-1 DAE and of the ODE behind the rolling disk drift off the original constraints.",
    compute=compute_drift,
    draw=draw_drift,
    remark="ode15s and ode45 are replaced by IDA (Radau with eliminated multipliers where scikit-sundae is missing) and "
    "DOP853.",
)
def drift_holds(data: Data) -> Checks:
    """Violations at t = 100 above any tolerance, and twice those in the middle of the first half; none by SPARK."""
    for name, label in REDUCED.items():
        t, size = data[f"{name}_t"], np.hypot(data[f"{name}_k1"], data[f"{name}_k2"])
        early, late = np.mean(size[t <= T1 / 2]), np.mean(size[t >= T1 / 2])
        yield at_most(f"{label}: |k| at the start", size[0], 1e-15)
        yield at_least(f"{label}: mean |k| of the second half over that of the first", ratio(late, early), 1.7)
        yield at_least(f"{label}: |k| at the end over the absolute tolerance", size[-1] / ATOL, 2.0)
        yield at_most(f"{label}: largest |k|", np.max(size), 1e-4)
    spark = largest(np.hypot(data["spark_k1"], data["spark_k2"]))
    yield at_most("2-stage SPARK, h = 0.1: largest |k|", spark, 1e-13)
