"""Figure 2: from the discrete Lagrangian of SVC to its one-step map, by Legendre transforms and by generating functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw._style import CYCLE
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import DASHES, GREY, legend_below, log_log, panels
from dalembert.experiments._measures import largest, simulate
from dalembert.experiments.pekarek2014._shared import PEKAREK
from dalembert.methods import Rattle, Variational
from dalembert.modified import ModifiedHamiltonian, modified_hamiltonian
from dalembert.problems import Problem, cart_pendulum, double_pendulum_in_angles, particle_in_magnetic_field
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import Lagrangian
from dalembert.verify import slope
from dalembert.verify._discrete_mechanics import DiscreteMechanics

SVA, SVC = Variational("SVA"), Variational("SVC")
STEPS, MORE_STEPS = 50, 500
PATHS = {
    "legendre": "SVC by (13), (14)",
    "svc": "SVC by its generating function (21)",
    "sva": "SVA by (25)",
    "crossed": "SVC by (25), which is SVA's",
}
NAMES = {
    "separable": "Henon-Heiles (separable)",
    "cart_pendulum": "cart-pendulum",
    "double_pendulum": "double pendulum, angles",
    "magnetic": "magnetic field",
}


def systems() -> dict[str, tuple[Problem, np.ndarray]]:
    """A separable system and three nonseparable ones, with the step sizes at which SVA and SVC are compared."""
    henon_heiles = Lagrangian(lambda q, v: (v @ v - q @ q) / 2 - q[0] ** 2 * q[1] + q[1] ** 3 / 3, dim=2)
    separable = Problem(
        name="henon_heiles",
        title="Henon-Heiles system",
        reference="Henon & Heiles (1964), Astron. J. 69",
        system=henon_heiles,
        q0=np.array([0.1, 0.3]),
        v0=np.array([0.4, -0.1]),
        h=0.1,
        steps=1000,
    )
    halves = 2.0 ** -np.arange(4)
    return {
        "separable": (separable, 0.1 * halves),
        "cart_pendulum": (cart_pendulum(), 0.01 * halves),
        "double_pendulum": (double_pendulum_in_angles(angles=(1.2, -0.4)), 0.05 * halves),
        "magnetic": (particle_in_magnetic_field(), 0.1 * halves),
    }


def generating_defect(run: Trajectory, eta: ModifiedHamiltonian, h: float) -> float:
    """How far each step is from p_0 = p_1 + h eta_q(q_0, p_1), q_1 = q_0 + h eta_p(q_0, p_1), which is (19), (20) with (23)."""
    by_q, by_p = eta.gradient(run.q[:-1], run.p[1:], h)
    return max(largest(np.diff(run.q, axis=0) - h * by_p), largest(np.diff(run.p, axis=0) + h * by_q))


def compute_diagram(full: bool) -> Data:
    """Largest defects over a run of each path of the diagram, and the distance of SVA and SVC after the same time by h."""
    data: dict[str, np.ndarray] = {}
    for name, (problem, sizes) in systems().items():
        h, steps = sizes[0], MORE_STEPS if full and name != "cart_pendulum" else STEPS
        svc, sva = (simulate(problem, method, h=h, steps=steps) for method in (SVC, Rattle()))
        eta_svc, eta_sva = (modified_hamiltonian(problem, method, order=1) for method in (SVC, SVA))
        discrete = DiscreteMechanics(problem, SVC)
        p0, p1 = (transform(svc.q[:-1], svc.q[1:], h) for transform in (discrete.legendre_minus, discrete.legendre_plus))
        defects = {
            "legendre": max(largest(p0 - svc.p[:-1]), largest(p1 - svc.p[1:])),
            "svc": generating_defect(svc, eta_svc, h),
            "sva": generating_defect(sva, eta_sva, h),
            "crossed": generating_defect(svc, eta_sva, h),
        }
        scale = max(largest(svc.q), largest(svc.p))
        data |= {f"{name}_{path}": np.array([defect / scale]) for path, defect in defects.items()}
        distances = []
        for size in sizes:
            steps = round(20 * sizes[0] / size)
            c, a = (simulate(problem, method, h=size, steps=steps).q[-1] for method in (SVC, Rattle()))
            distances.append(largest(c - a))
        data |= {f"{name}_h": sizes, f"{name}_distance": np.array(distances)}
    return data


@panels(7.6, 4.2, columns=2)
def draw_diagram(data: Data, axes: Any) -> None:
    """Defects of the four paths on each system, and the distance of SVA and SVC against h."""
    left, right = axes
    rows = np.arange(len(NAMES))[::-1]
    for k, (path, color) in enumerate(zip(PATHS, CYCLE, strict=False)):
        defects = np.maximum([data[f"{name}_{path}"][0] for name in NAMES], 1e-17)
        left.plot(defects, rows + 0.2 * (1.5 - k), "o", color=color, markersize=4.5, label=PATHS[path])
    left.axvline(1e-13, color=GREY, **DASHES)
    left.set(xscale="log", xlim=(1e-17, 1.0), xlabel="largest defect of a step")
    left.set_yticks(rows, list(NAMES.values()))
    for name, color in zip(NAMES, CYCLE, strict=False):
        distance = np.maximum(data[f"{name}_distance"], 1e-17)
        right.plot(data[f"{name}_h"], distance, "o-", color=color, markersize=4, label=NAMES[name])
    left.minorticks_off()
    left.grid(True)
    log_log(right, ylabel="distance of SVA and SVC")
    legend_below(left, 1, loc="outside lower left")
    legend_below(right, 1, loc="outside lower right")


@PEKAREK.claim(
    "figure2",
    "On separable systems the discrete Lagrangian (26) of SVC leads to the map of SVA, by discrete Legendre "
    "transforms as well as by the generating function (25); on nonseparable systems SVC and SVA are different methods, "
    "each with a generating function of its own.",
    compute=compute_diagram,
    draw=draw_diagram,
    remark="SVA is run as the 2-stage Lobatto IIIA-IIIB pair, which is SE2 after SE1 with half steps, and its generating "
    "function is taken from its discrete Lagrangian. The two methods differ by O(h^2) after a fixed time.",
)
def diagram_holds(data: Data) -> Checks:
    """Every path agrees to round-off; the one across from SVC to SVA does so on the separable system only."""
    for name, title in NAMES.items():
        for path in ("legendre", "svc", "sva"):
            yield at_most(f"{title}: defect of {PATHS[path]}", data[f"{name}_{path}"][0], 1e-13)
        crossed, distance = data[f"{name}_crossed"][0], data[f"{name}_distance"]
        if name == "separable":
            yield at_most(f"{title}: defect of {PATHS['crossed']}", crossed, 1e-13)
            yield at_most(f"{title}: distance of SVA and SVC", np.max(distance), 1e-13)
        else:
            yield at_least(f"{title}: defect of {PATHS['crossed']}", crossed, 1e-7)
            measured = slope(data[f"{name}_h"], distance, floor=1e-12)[0]
            yield at_most(f"{title}: |slope of the distance of SVA and SVC - 2|", abs(measured - 2), 0.15)
