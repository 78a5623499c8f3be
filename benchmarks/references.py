"""Certified references of benchmark problems: two methods that agree, in multiprecision where that can be afforded.

They are of different families and orders, except for the bicycle: SPARK and EMPRK methods of order 6, which differ in how they
impose the nonholonomic constraints.

python benchmarks/references.py                     all of them, an hour
python benchmarks/references.py car_axis pleiades   some, into dalembert/experiments/benchmarks/references.toml
"""

from __future__ import annotations

import argparse
import time
import tomllib
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
from common import ROOT, note

import dalembert as da
from dalembert.experiments.benchmarks._benchmark import _number, references, stepped
from dalembert.experiments.benchmarks.records import RECORDS, settling
from dalembert.systems import state_at
from dalembert.verify import _multiprecision as mp_runs

FILE = ROOT / "dalembert" / "experiments" / "benchmarks" / "references.toml"
DIGITS = 24
Pair = tuple[tuple[da.OneStepMethod, Any], tuple[da.OneStepMethod, Any]]


def lobatto_and_radau(stages: int, steps: int, more: int) -> Pair:
    """Lobatto IIIA-IIIB of order 2s - 2 and projected Radau IIA of order 2s - 3."""
    return (da.LobattoIIIAB(stages), steps), (da.RadauIIA(stages - 1, projected=True), more)


BICYCLE: Pair = ((da.GaussLobattoSPARK(3), 6000), (da.GaussLobattoEMPRK(3), 6000))
CERTIFIED: dict[str, tuple[Pair, int]] = {
    "car_axis": (lobatto_and_radau(7, 400, 800), DIGITS),
    "andrews": (lobatto_and_radau(7, 1500, 2500), 0),
    "pleiades": (((da.LobattoIIIAB(8), 6000), (da.Gauss(6), 6000)), 0),
    "slider_crank": (lobatto_and_radau(7, 6000, 8000), 0),
    "wheelset": (((da.RadauIIA(2), 1_000_000), (da.SRK("gauss", 2), 1_000_000)), 0),
    "fekete": (((da.RadauIIA(4, projected=True), settling(1500)), (da.LobattoIIIC(4, projected=True), settling(1500))), 0),
    "governor": (((da.RadauIIA(5), 40_000), (da.LobattoIIIC(4), 40_000)), 0),
    "bicycle_2": (BICYCLE, 0),
    "bicycle_1": (BICYCLE, 0),
    "bicycle_3": (BICYCLE, 0),
}
"""By the name of the record: both methods with their numbers of steps, and the digits; 0 are doubles."""


def start_in(mp: Any, problem: da.problems.Problem) -> tuple[list[Any], list[Any]]:
    """The start on the constraints in multiprecision: corrections of least norm, their matrices in double precision."""
    system = problem.system
    given = {name: getattr(problem, name) for name in ("q0", "v0", "p0", "y0", "z0") if getattr(problem, name) is not None}
    state = state_at(system, t0=problem.t0, **given)
    theta = [mp.mpf(float(x)) for x in system.parameters.vector(None)]
    y, z, t = [mp.mpf(x) for x in state.first], [mp.mpf(x) for x in state.second], mp.mpf(state.t)
    if not system.n_multipliers:
        return y, z
    import casadi as ca

    sizes = (1, len(y), len(z), len(theta))
    symbols = [ca.SX.sym("s", size) for size in sizes]
    g = mp_runs._evaluator(mp, symbols, system.function("g")(symbols[0], symbols[1], symbols[3]))
    hidden = mp_runs._evaluator(mp, symbols, system.function("hidden")(*symbols))
    G = np.linalg.pinv(system.evaluate("G", float(t), state.first, theta=state.theta))
    K = np.linalg.pinv(system.evaluate("hidden_z", float(t), state.first, state.second, theta=state.theta))
    for _ in range(6):
        y = _corrected(mp, y, G, g([t, *y, *z, *theta]))
        z = _corrected(mp, z, K, hidden([t, *y, *z, *theta]))
    return y, z


def _corrected(mp: Any, x: list[Any], inverse: np.ndarray, residual: list[Any]) -> list[Any]:
    return [
        a - mp.fsum(mp.mpf(float(m)) * r for m, r in zip(row, residual, strict=True)) for a, row in zip(x, inverse, strict=True)
    ]


def end_of(problem: da.problems.Problem, t1: float, method: da.OneStepMethod, steps: Any, digits: int) -> list[Any]:
    """The positions at t1."""
    if not digits:
        run = stepped(problem, method, t1, steps, 1)
        return [mpmath.mpf(float(x)) for x in run.y[-1]]
    mp = mpmath.mp.clone()
    mp.dps = digits + 10
    y, z = start_in(mp, problem)
    names = problem.system.starts_from
    start = {name: value for name, value in zip((names[0], names[-1]), (y, z), strict=True) if name}
    end = da.verify.multiprecision_run(problem.system, method, **start, h=mp.mpf(str(t1)) / steps, steps=steps, digits=digits)
    return list(end.y)


def certified(name: str) -> dict[str, Any]:
    record = next(record for record in RECORDS if record.name == name)
    pair, digits = CERTIFIED[name]
    ends = []
    for method, steps in pair:
        began = time.process_time()
        ends.append(end_of(record.problem(), record.t1, method, steps, digits))
        note(f"{name}: {method}, {steps} steps, {time.process_time() - began:.0f} s: {mpmath.nstr(ends[-1][0], 20)}")
    known = {"t": record.t1, "values": [mpmath.nstr(x, 20 if digits else 17) for x in ends[0]]}
    references()[name] = known
    if digits:
        agreement = max(abs(a - b) for a, b in zip(*ends, strict=True))
    else:  # as errors of this problem are measured
        agreement = record.error(SimpleNamespace(y=np.array([ends[1]], dtype=float)))
    by = " and ".join(f"{method} with {_number(steps)} steps" for method, steps in pair)
    precision = f"{digits} digits" if digits else "double precision"
    return known | {"agreement": float(agreement), "by": f"{by}, {precision}"}


def write(known: dict[str, Any]) -> None:
    lines = ["# Made by benchmarks/references.py; agreement is how far both methods are apart, measured as errors are."]
    for name, entry in known.items():
        lines += [
            "", f"[{name}]", f"t = {entry['t']!r}", f'by = "{entry["by"]}"',
            f'command = "python benchmarks/references.py {name}"',
            f"agreement = {entry['agreement']:.1e}", "values = [{}]".format(", ".join(f'"{x}"' for x in entry["values"])),
        ]  # fmt: skip
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*CERTIFIED, []], default=[])
    chosen = parser.parse_args().names or list(CERTIFIED)
    for name in chosen:
        entry = certified(name)
        known = tomllib.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
        write(known | {name: entry})


if __name__ == "__main__":
    main()
