"""Work and precision: the double pendulum to t = 600 by 2 to 8 stages, time against energy error and position error."""

from __future__ import annotations

import numpy as np
from common import Section, least_of, note, table
from scipy.integrate import solve_ivp

import dalembert as da

T1, GRID = 600.0, 0.24  # errors are taken at multiples of GRID, which every h divides
STAGES = range(2, 9)
STEP_SIZES = (0.24, 0.12, 0.06, 0.03, 0.015)
REFERENCE = (da.LobattoIIIAB(stages=9), 0.04)
CHECK = (da.LobattoIIIAB(stages=7), 0.03)
TARGETS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)


def simulate(method: da.OneStepMethod, h: float) -> da.Trajectory:
    steps = round(T1 / h)
    return da.simulate(da.problems.double_pendulum(), method, h=h, steps=steps, save_every=round(GRID / h), progress=False)


def by_angles(t: np.ndarray) -> np.ndarray:
    """The same motion from Lagrange's equations in the two angles, by an explicit method of order 8: an independent check."""

    def rates(_: float, y: np.ndarray) -> list[float]:
        a, b, u, w = y
        c, s = np.cos(a - b), np.sin(a - b)
        f, g = -s * w * w - 2 * np.sin(a), s * u * u - np.sin(b)
        return [u, w, (f - c * g) / (2 - c * c), (2 * g - c * f) / (2 - c * c)]

    start = [np.pi / 6, -np.pi / 6, 0.0, 0.0]
    a, b = solve_ivp(rates, (0.0, t[-1]), start, method="DOP853", t_eval=t, rtol=3e-14, atol=1e-15).y[:2]
    first = np.column_stack([np.sin(a), -np.cos(a)])
    return np.hstack([first, first + np.column_stack([np.sin(b), -np.cos(b)])])


def run() -> Section:
    note("references")
    reference = simulate(*REFERENCE)
    check = np.abs(simulate(*CHECK).q - reference.q).max()
    angles = np.abs(by_angles(reference.t) - reference.q).max()
    rows, found = [], []
    for stages in STAGES:
        method = da.LobattoIIIAB(stages=stages)
        for h in STEP_SIZES:
            note(f"{stages} stages, h = {h}")
            result = simulate(method, h)
            ms = 1e3 * least_of(lambda method=method, h=h: simulate(method, h).stats["wall_seconds"], for_seconds=0.2)
            energy = np.abs(result.energy - result.energy[0]).max()
            position = np.abs(result.q - reference.q).max()
            iterations = result.stats["newton_iterations"] / result.stats["steps"]
            found.append((ms, position, f"{stages} stages, h = {h}"))
            us = 1e3 * ms * h / T1
            rows.append([stages, h, f"{ms:.2f}", f"{us:.2f}", f"{iterations:.1f}", f"{energy:.1e}", f"{position:.1e}"])
    header = ("stages", "h", "ms", "us/step", "iterations/step", "energy error", "position error")
    cheapest = []
    for target in TARGETS:
        reached = [entry for entry in found if entry[1] <= target]
        ms, _, name = min(reached, default=(np.nan, np.nan, "none of these runs"))
        cheapest.append([f"{target:.0e}", name, f"{ms:.2f}"])
    body = f"""
The double pendulum from its default start, a regular orbit, to t = {T1:g} in a warm process; times are the fastest of repeated
runs. Errors are the largest over the run: of the energy, and of any coordinate against {REFERENCE[0]} with
h = {REFERENCE[1]}. That reference differs by {check:.0e} from {CHECK[0]} with h = {CHECK[1]}, and by {angles:.0e} from the
equations in angles, solved by SciPy's DOP853 with rtol = 3e-14; position errors below these are not errors of the row's method.

{table(header, rows)}

The cheapest of these runs for a given position error:

{table(("position error at most", "by", "ms"), cheapest)}
"""
    return Section("Work and precision", body)


if __name__ == "__main__":
    print(run().body)
