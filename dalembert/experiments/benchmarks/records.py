"""The table of benchmarks, one record a problem: another problem is another record.

Numbers of steps are such that errors pass through the accuracies of the table. Published times are quoted with their machine
where their source names one; they were not measured here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from dalembert import problems
from dalembert.experiments.benchmarks import _bodies
from dalembert.experiments.benchmarks._benchmark import Benchmark, Runs, Steps
from dalembert.experiments.benchmarks._bodies import Bodies, stated_by_bodies
from dalembert.experiments.benchmarks._references import reference
from dalembert.experiments.benchmarks._sources import rests_on
from dalembert.methods import GaussLobattoSPARK, LobattoIIIAB, RadauIIA
from dalembert.runs._trajectory import Trajectory

ODE = ("SciPy DOP853, underlying ODE", "SciPy Radau, underlying ODE")
ALL = (*ODE, "SUNDIALS IDA, index 1", "scipy_dae Radau, index 1", "heyoka, underlying ODE")
EXUDYN = ("Exudyn, trapezoidal rule, index 2", "Exudyn, generalised alpha, 0.9")
MULTIBODY = (*EXUDYN, "MuJoCo, RK4")
ENERGY = "largest energy drift, J"
EVERYTHING, FRAME = slice(None), slice(7, 14)


def energy_drift(run: Trajectory) -> float:
    """max |E - E_0|."""
    return float(np.max(np.abs(run.energy - run.energy[0])))


def energy_balance(run: Trajectory) -> float:
    """max |E - E_0 - tau (beta - beta_0)| of Andrews' mechanism."""
    return float(np.max(np.abs(run.energy - run.energy[0] - 0.033 * (run.q[:, 0] - run.q[0, 0]))))


def at_end(name: str, relative: bool = False, part: slice = EVERYTHING) -> Callable[[Trajectory], float]:
    """The largest error of the positions at the end, or of a part of them, or each relative to its size."""

    def error(run: Trajectory) -> float:
        right = reference(name)[part]
        return float(np.max(np.abs(run.y[-1, part] - right) / (np.abs(right) if relative else 1.0)))

    return error


def of_bricard(run: Trajectory) -> float:
    """The drift of energy, and P_3 at ten times against the certified track."""
    return max(energy_drift(run), _bodies.off_track(run.of("rod 3").point(_bodies.P3)))


def of_first_joint(run: Trajectory) -> float:
    """Position and velocity of B_0 at 400 times against the exact motion."""
    exact = problems.n_four_bar(loops=run.q.shape[1] // 2 - 1).exact
    assert exact is not None
    right = exact(run.t)
    return float(max(np.max(np.abs(found[:, :2] - right[key][:, :2])) for key, found in (("q", run.q), ("v", run.v))))


def lobatto(*rows: tuple[int, tuple[int, ...]]) -> Runs:
    """Lobatto IIIA-IIIB with these stages and numbers of steps."""
    return tuple((LobattoIIIAB(stages), steps) for stages, steps in rows)


def settling(steps: int) -> tuple[tuple[float, int], ...]:
    """So many steps to t = 10 and to t = 40, while Fekete's points come to rest, then larger ones."""
    return (10.0, steps), (40.0, steps), (200.0, steps), (1000.0, steps // 2)


def spark(*rows: tuple[int, tuple[Steps, ...]]) -> Runs:
    """The Gauss-Lobatto SPARK method with these stages and numbers of steps."""
    return tuple((GaussLobattoSPARK(stages), steps) for stages, steps in rows)


def righting(first: int, later: int) -> Steps:
    """So many steps to t = 5, while the bicycle rights itself, then larger ones."""
    return (5.0, first), (20.0, later)


def bicycle(number: int, speed: float, push: float, runs: Runs, published: tuple[str, ...] = ()) -> Benchmark:
    """A manoeuvre of the bicycle."""
    name, problem = f"bicycle_{number}", functools.partial(problems.whipple_bicycle, speed=speed, push=push)
    return Benchmark(
        name, f"Bicycle, manoeuvre {number}: {speed} m/s, roll rate {push} rad/s",
        problem, 20.0, runs, at_end(name, part=FRAME), "place and rotation of the frame after 20 s",
        published, EXUDYN,
        bodies=Bodies(stated_by_bodies(problem, "frame"), _bodies.of_frame(name)),
    )  # fmt: skip


def radau(*rows: tuple[int, tuple[Steps, ...]]) -> Runs:
    """Projected Radau IIA, for stiff systems."""
    return tuple((RadauIIA(stages, projected=True), steps) for stages, steps in rows)


RECORDS = [
    Benchmark(
        "pendulum", "IFToMM A01: pendulum in Cartesian coordinates", lambda: problems.pendulum(g=9.81, angle=-np.pi / 2), 10.0,
        lobatto((4, (200, 400, 800)), (6, (100, 200, 300)), (8, (60, 100, 150))), energy_drift, ENERGY,
        ("OpenSim, 0.637 s", "Exudyn, 0.037 s for 5e-5 J, h = 0.8e-3"), (*ALL, *MULTIBODY), outputs=10, every_step=True,
        bodies=Bodies(_bodies.pendulum, _bodies.drift),
    ),
    Benchmark(
        "four_bars", "IFToMM A02: forty four-bar linkages", functools.partial(problems.n_four_bar, loops=40), 20.0,
        lobatto((3, (800,)), (5, (800,))), of_first_joint, "B_0's position and velocity, 400 times",
        ("the class of high precision asks for 1e-3",), (*ODE[:1], *MULTIBODY), outputs=400,
        bodies=Bodies(_bodies.four_bars(40), _bodies.of_first_joint(40)),
    ),
    Benchmark(
        "andrews_energy", "IFToMM A03: Andrews' squeezing mechanism", problems.andrews_in_angles, 0.05,
        lobatto((3, (500, 1000)), (4, (600, 1000, 2000)), (6, (500, 1000, 1500))), energy_balance,
        "largest E - E_0 - tau (beta - beta_0), J", ("OpenSim, 0.384 s",), (*ALL[:4], *MULTIBODY), outputs=50, every_step=True,
        bodies=Bodies(stated_by_bodies(problems.andrews_squeezer, "K1"), _bodies.balance),
    ),
    Benchmark(
        "bricard", "IFToMM A04: Bricard's mechanism", problems.bricard, 10.0,
        lobatto((3, (60, 100, 500)), (5, (100, 250, 500))), of_bricard, "largest energy drift, J, or error of P_3, m",
        ("OpenSim, 0.258 s", "Exudyn, 3.6 to 5.7 s for T = 5 s"), (*ODE[:1], *MULTIBODY), outputs=50, every_step=True,
        bodies=Bodies(stated_by_bodies(problems.bricard, "rod 1"), _bodies.of_bricard),
    ),
    Benchmark(
        "governor", "IFToMM A05: stiff flyball governor", problems.flyball_governor_in_angles, 10.0,
        ((RadauIIA(3), (500, 1000, 5000)), (RadauIIA(5), (120, 300, 2000))), at_end("governor", part=slice(2, 3)),
        "height s of the slider at t = 10, m", ("OpenSim, 0.233 s",), (*ALL, *MULTIBODY, "MuJoCo, implicit"),
        bodies=Bodies(_bodies.governor, _bodies.of_slider),
        remark="The shaft turns at 2 pi rad/s; another source gives 0.16 of that.",
    ),
    bicycle(1, 4.0, 0.05, spark((4, (240, 480, 800)), (5, (240, 320)))),
    bicycle(2, 4.6, 0.5,
        spark((4, (righting(80, 160), righting(140, 310), righting(240, 480))), (5, (righting(80, 180), righting(110, 250)))),
        ("Exudyn, 0.596 s for 9.2e-4, 5.59 s for 6.4e-6",)),
    bicycle(3, 8.0, 0.05, spark((4, (480, 960)), (5, (480, 720)))),
    Benchmark(
        "andrews", "Test set: Andrews' squeezing mechanism", problems.andrews_in_angles, 0.03,
        lobatto((3, (300, 600, 1200)), (4, (300, 600, 1200)), (6, (200, 300, 500))), at_end("andrews"), "angles at t = 0.03",
        ("RADAU5 with DIMOFIND, 24 to 79 ms for 3e-5 to 1e-7 (SciML)", "Rodas5P, FBDF, IDA, plain radau5: fail (SciML)"),
        (*ALL[:4], *MULTIBODY), bodies=Bodies(stated_by_bodies(problems.andrews_squeezer, "K1"), _bodies.of_angles),
        remark="The published reference, of PSIDE, is right to nine digits of the angles.",
    ),
    Benchmark(
        "car_axis", "Test set: car axis", problems.car_axis, 3.0,
        lobatto((3, (150, 300, 600)), (4, (150, 300, 600)), (6, (100, 150, 300)), (8, (75, 100, 150))), at_end("car_axis"),
        "positions at t = 3", ("every Julia solver, IDA, DASSL, DASKR: fail as posed (SciML)",), ALL,
        remark="Two sets of digits were published, one with 16 and one with 21; both are right to twelve.",
    ),
    Benchmark(
        "fekete", "Test set: Fekete points", problems.fekete, 1000.0,
        radau((3, tuple(settling(n) for n in (60, 120, 240))), (4, tuple(settling(n) for n in (60, 100, 160)))),
        at_end("fekete"),
        "positions at t = 1000", ("Rodas5P, 3 to 10 s for 1e-11 (SciML)", "radau, 1 to 2 s for 1e-9 (SciML)",
        "IDA and DASKR: fail, or 300 s (SciML)"), ALL[:3],
    ),
    Benchmark(
        "slider_crank", "Test set: slider-crank with an elastic rod", problems.elastic_slider_crank, 0.1,
        lobatto((4, (1500, 3000, 6000)), (6, (800, 1200, 2000)), (8, (500, 800, 1200))), at_end("slider_crank", relative=True),
        "each position at t = 0.1, relative", ("SciML's reference is off by 4e-4",), ALL,
        remark="The published start fulfils the constraints to 2e-10 and their derivatives to 1e-8 only. With the start that "
        "they determine the published elastic coordinates are right to seven digits, SciML's to three.",
    ),
    Benchmark(
        "wheelset", "Test set: wheelset", problems.wheelset, 10.0,
        ((RadauIIA(3), (5000, 20_000)), (RadauIIA(3), (1e-6, 1e-9, 3e-14)), (RadauIIA(5), (1e-8, 1e-11, 1e-14))),
        at_end("wheelset", relative=True, part=slice(0, 5)), "each position at t = 10, relative",
        ("SciML's reference is off by 1e-3 to 3e-2",), ALL[:4],
        remark="The law of creepage has a kink where its force reaches mu N. Most of the times beyond it are shorter than "
        "1e-4 s, and a step with no stage in them passes them by. Constant steps lose their order: 40,000, 80,000 and 160,000 "
        "of 3 stages leave 1e-6, 6e-7 and 5e-7. Steps by their error shrink at the kinks: those of 3 stages reach 1e-9 of "
        "each position, the smallest of which is 13 um, with tolerances of 1e-13 and below (3e-14 here: 2e-5 s in the mean); "
        "those of 5 stages are longer and leave 2e-8 at 1e-14. The published digits are right to 4e-9.",
    ),
    Benchmark(
        "pleiades", "Test set: Pleiades", problems.pleiades, 3.0,
        lobatto((4, (2000, 4000, 8000)), (6, (2000, 3000, 4000)), (8, (1000, 1500, 2500))), at_end("pleiades"),
        "positions at t = 3", (), (ALL[0], ALL[1], ALL[4]),
    ),
]  # fmt: skip
for _number, _record in enumerate(RECORDS):
    _record.register(functools.partial(rests_on, _record, _number))
