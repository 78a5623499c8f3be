"""Certified references of benchmark problems: two methods of different families and orders that agree, with 32 digits.

One extrapolates the explicit midpoint rule and chooses its steps, the other is a collocation method by Gauss or Radau on the
same intervals, each cut into equal parts. Both solve the underlying ODE in double-double arithmetic (double_double.py; g++ and
libquadmath are needed), so that they share no code with the methods of the library but the equations of the model.

python benchmarks/references.py                     all of them, half an hour
python benchmarks/references.py car_axis pleiades   some, into dalembert/experiments/benchmarks/references
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from common import ROOT, note
from double_double import DoubleDouble

import dalembert as da
from dalembert.experiments.benchmarks.records import RECORDS
from dalembert.tableaux import Tableau, gauss, radau_iia

FOLDER = ROOT / "dalembert" / "experiments" / "benchmarks" / "references"
DIGITS = 20
"""Of the numbers that are kept."""


@dataclass(frozen=True)
class Pair:
    """Columns and tolerance of the extrapolation; tableau, parts of each of its steps, and iteration of the collocation."""

    tableau: Tableau
    columns: int = 10
    tolerance: float = 1e-20
    parts: int = 2
    newton: bool = False
    stop: float = 1e-23


def one_angle(loops: int = 40) -> da.problems.Problem:
    """The parallelogram as which A02 moves: ((N + 1)/3 + N) th'' = g ((N + 1)/2 + N) sin th."""
    n = float(loops)

    def L(q: Any, v: Any, g: Any, n: Any) -> Any:
        return ((n + 1) / 3 + n) * v[0] ** 2 / 2 - g * ((n + 1) / 2 + n) * np.cos(q[0])

    system = da.Lagrangian(L, dim=1, params={"g": 9.81, "n": n})
    return da.problems.Problem("one_angle", "A02", "A02", system, q0=np.zeros(1), v0=np.ones(1), h=0.01, steps=2000)


def joints(x: list[Any]) -> list[Any]:
    """The places of B_0, ..., B_40 at the angle x[0]."""
    return [value for i in range(41) for value in (i + mpmath.sin(x[0]), mpmath.cos(x[0]))]


CORNERS = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)])
HINGES = np.eye(3, dtype=int)[[1, 2, 0, 1, 2]]
"""Points P_0 to P_5 of Bricard's mechanism and its axes at P_0 to P_4, assembled."""


def bricard_rods(a: Any, by: Any) -> list[np.ndarray]:
    """The rotations of its rods if its hinges have turned by -a, -b, -a, ...: then sin a + sin b = sin a sin b."""
    sine = by.sin(a) / (by.sin(a) - 1)  # of b; its motion has sin a <= 0
    turns, R = [(by.sin(a), by.cos(a)), (sine, by.sqrt(1 - sine**2))], np.eye(3, dtype=int)
    rods = []
    for k, (x, y, z) in enumerate(HINGES):
        s, c = turns[k % 2]
        cross, along = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]), np.outer(HINGES[k], HINGES[k])
        R = R @ (along + c * (np.eye(3, dtype=int) - along) - s * cross)
        rods.append(R)
    return rods


def bricard_by_one_angle() -> da.problems.Problem:
    """Bricard's mechanism (A04) by the angle of its first hinge: no redundant row, and no equation of the catalogue's model."""

    def L(q: Any, v: Any, g: Any) -> Any:
        rods, sine, ways = bricard_rods(q[0], np), np.sin(q[0]), np.diff(CORNERS, axis=0)
        rates = -v[0], v[0] * np.cos(q[0]) / (1 - sine) ** 2 / np.sqrt(1 - (sine / (1 - sine)) ** 2)
        place, speed, turning, total = np.zeros(3), np.zeros(3), np.zeros(3), 0.0
        thin, across = 0.1**2 / 6, (1 + 0.1**2) / 12
        for k, R in enumerate(rods):
            rod, turning = R @ ways[k], turning + rates[k % 2] * (R @ HINGES[k])
            moving = np.cross(turning, rod)
            centre = speed + moving / 2
            total += (centre @ centre + across * (turning @ turning) + (thin - across) * (rod @ turning) ** 2) / 2
            total -= g * (place + rod / 2)[1]
            place, speed = place + rod, speed + moving
        return total

    system = da.Lagrangian(L, dim=1, params={"g": 9.81})
    return da.problems.Problem("one_angle", "A04", "A04", system, q0=np.zeros(1), v0=np.zeros(1), h=0.01, steps=1000)


def third_point(x: list[Any]) -> list[Any]:
    """P_3 at the angle x[0]."""
    ways = np.diff(CORNERS, axis=0)
    return list(sum(R @ way for R, way in zip(bricard_rods(x[0], mpmath)[:3], ways[:3], strict=True)))


STIFF = Pair(tableau=radau_iia(7), newton=True)
SHORTER = Pair(radau_iia(6), 8, 1e-17, newton=True, stop=1e-20)
PAIRS: dict[str, Pair] = {record.name: Pair(gauss(8)) for record in RECORDS} | {"governor": STIFF, "wheelset": SHORTER}
OTHERS: dict[str, tuple[Callable[[], da.problems.Problem], Callable[[list[Any]], list[Any]]]] = {
    "four_bars": (one_angle, joints),
    "bricard": (bricard_by_one_angle, third_point),
}
"""Of problems that are solved in other coordinates: those, and the positions from them."""


TIMES = {"bricard": tuple(np.arange(1.0, 11.0).tolist())}
"""Of which positions are kept, where not those at the end alone."""


def certified(name: str) -> dict[str, Any]:
    record, pair = next(record for record in RECORDS if record.name == name), PAIRS[name]
    problem, positions = OTHERS.get(name, (record.problem, lambda x: x))
    solver, began = DoubleDouble(problem()), time.process_time()
    mpmath.mp.dps = solver.mp.dps
    found: tuple[list[Any], list[Any]] = ([], [])
    for end in TIMES.get(name, (record.t1,)):
        first, grid = solver.extrapolated(end, pair.columns, pair.tolerance)
        steps, kinks = len(grid.times), len(grid.events)
        note(f"{name}: {steps} steps, {kinks} switches, {solver.evaluations} evaluations, {time.process_time() - began:.0f} s")
        second, most = solver.collocated(pair.tableau, grid, pair.parts, pair.newton, pair.stop)
        note(f"{name}: at most {most} iterations, {solver.evaluations} evaluations, {time.process_time() - began:.0f} s")
        for values, x in zip(found, (first, second), strict=True):
            values += positions(solver.positions(x))
    size = max(1, max(abs(x) for x in found[0]))
    apart = [abs(a - b) for a, b in zip(*found, strict=True)]
    relative = max((d / abs(a) for d, a in zip(apart, found[0], strict=True) if abs(a) > 1e-3 * size or d), default=0)
    note(f"{name}: apart {mpmath.nstr(max(apart), 3)}, each relative to itself {mpmath.nstr(relative, 3)}")
    of_gauss = pair.tableau.name.lower().startswith("gauss")
    order = 2 * pair.tableau.stages - (0 if of_gauss else 1)
    methods = [
        f"extrapolation of the midpoint rule, {steps} steps",
        f"collocation by {'Gauss' if of_gauss else 'Radau'}, {pair.tableau.stages} stages, {steps * pair.parts} steps",
    ]
    return {
        "t": record.t1, "methods": methods, "orders": [2 * pair.columns, order], "digits": 32,
        "agreement": float(max(apart)), "relative": float(relative), "switches": kinks,
        "values": [mpmath.nstr(x, DIGITS) for x in found[0]],
    }  # fmt: skip


def write(name: str, entry: dict[str, Any], folder: Path) -> None:
    lines = [
        f"t = {entry['t']!r}", "methods = [{}]".format(", ".join(f'"{x}"' for x in entry["methods"])),
        f"orders = {entry['orders']}", f"digits = {entry['digits']}", f"switches = {entry['switches']}",
        f'command = "python benchmarks/references.py {name}"', f"agreement = {entry['agreement']:.1e}",
        f"relative = {entry['relative']:.1e}", "values = [{}]".format(", ".join(f'"{x}"' for x in entry["values"])),
    ]  # fmt: skip
    (folder / f"{name}.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*PAIRS, []], default=[])
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder into which they are written")
    given = parser.parse_args()
    for name in given.names or list(PAIRS):
        write(name, certified(name), given.to)


if __name__ == "__main__":
    main()
