"""The N four-bar of the IFToMM library (A02) for 20 s, through its flat, singular position: errors against its exact motion.

python benchmarks/n_four_bar.py                            N = 2, 10 and 40 in two sets of coordinates, about half an hour
python benchmarks/n_four_bar.py --n 2 --h 0.01 0.003       a look

The benchmark asks for errors of the position and velocity of B_0 of at most 1e-3.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from common import ROOT, note, table

import dalembert as da

sys.path.insert(0, str(ROOT / "tests" / "engine"))
import n_four_bar

METHODS = {2: da.Rattle(), 3: da.LobattoIIIAB(3), 4: da.LobattoIIIAB(4), 5: da.LobattoIIIAB(5)}
"""By the number of stages."""
TIME = 20.0


def measure(n: int, coordinates: str, method: da.OneStepMethod, h: float) -> list[str]:
    system, start = getattr(n_four_bar, coordinates)(n), getattr(n_four_bar, f"{coordinates}_start")(n)
    began = time.process_time()
    run = da.simulate(system, method, **start, h=h, steps=round(TIME / h), on_failure="return", progress=False)
    seconds = time.process_time() - began
    pairs = zip(n_four_bar.first_point(coordinates, run.q, run.v), n_four_bar.exact(n, run.t), strict=True)
    errors = [f"{np.abs(found - right).max():.1e}" for found, right in pairs]
    rows = f"{np.abs(run.residuals['g']).max():.0e}"
    counts = [str(int(run.stats[name])) for name in ("followed_steps", "rescued_steps", "pivoted_steps")]
    return [str(n), coordinates, str(method), f"{h:g}", run.status, *errors, rows, *counts, f"{seconds:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[2, 10, 40])
    parser.add_argument("--h", type=float, nargs="+", default=[0.01, 0.003, 0.001])
    parser.add_argument("--coordinates", nargs="+", default=["natural", "planar"], choices=["natural", "planar"])
    parser.add_argument("--stages", type=int, nargs="+", default=list(METHODS), choices=list(METHODS))
    chosen = parser.parse_args()
    rows = []
    for n in chosen.n:
        for coordinates in chosen.coordinates:
            for method in (METHODS[stages] for stages in chosen.stages):
                for h in chosen.h:
                    rows.append(measure(n, coordinates, method, h))
                    note("  ".join(rows[-1]))
    header = (
        "N",
        "coordinates",
        "method",
        "h",
        "status",
        "position",
        "velocity",
        "g",
        "followed",
        "rescued",
        "pivoted",
        "CPU s",
    )
    print(table(header, rows))


if __name__ == "__main__":
    main()
