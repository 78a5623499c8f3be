"""Towers of parallelograms with a bar too many each: what redundant constraints cost as their number grows.

`python benchmarks/bench_loops.py [storeys ...]` hangs beams of 0.3 kg under each other, each on three parallel rods of 0.1 m.
Three equal rods keep a beam parallel to the one above, and one of them follows from the other two; so a beam is a point of a
chain of pendulums, which in its angles is the independent solution.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from common import note, table
from scipy.integrate import solve_ivp

import dalembert as da

MASS, INERTIA, ROD, GRAVITY = 0.3, 1e-3, 0.1, 9.81
PLACES = (-0.2, 0.05, 0.2)
"""Where rods are fixed along a beam."""


def tower(storeys: int) -> da.Hamiltonian:
    """Beams (x, y, angle) from the ceiling down; three rows each, of which two are independent."""

    def energy(q, p):
        kinetic = (p[0::3] @ p[0::3] + p[1::3] @ p[1::3]) / (2 * MASS) + p[2::3] @ p[2::3] / (2 * INERTIA)
        return kinetic + MASS * GRAVITY * np.sum(q[1::3])

    def rods(q):
        zero = np.array([0.0 * q[0]], like=q)
        x, y, a = q[0::3], q[1::3], q[2::3]
        above_x, above_y, above_a = (np.concatenate([zero, part[:-1]]) for part in (x, y, a))
        rows = []
        for s in PLACES:
            dx = x + s * np.cos(a) - above_x - s * np.cos(above_a)
            dy = y + s * np.sin(a) - above_y - s * np.sin(above_a)
            rows.append((dx**2 + dy**2 - ROD**2) / ROD)
        return np.concatenate(rows)

    return da.Hamiltonian(energy, dim=3 * storeys, holonomic=rods)


def start_of(angles: np.ndarray) -> dict[str, np.ndarray]:
    """At rest, rods at these angles from the vertical."""
    q = np.zeros(3 * len(angles))
    q[0::3], q[1::3] = np.cumsum(ROD * np.sin(angles)), -np.cumsum(ROD * np.cos(angles))
    return {"q0": q, "p0": np.zeros_like(q)}


def angles_after(angles: np.ndarray, duration: float) -> np.ndarray:
    """Of a chain of equal pendulums, by Dormand and Prince's method of order 8."""
    n = len(angles)
    below = n - np.maximum.outer(np.arange(n), np.arange(n))  # masses that hang on both

    def slope(t, y):
        a, w = y[:n], y[n:]
        difference = a[:, None] - a
        right = -(below * np.sin(difference)) @ w**2 - GRAVITY / ROD * below[range(n), range(n)] * np.sin(a)
        return np.concatenate([w, np.linalg.solve(below * np.cos(difference), right)])

    found = solve_ivp(slope, (0.0, duration), np.concatenate([angles, 0 * angles]), method="DOP853", rtol=1e-12, atol=1e-12)
    return found.y[:n, -1]


def study(storeys: int, method: da.OneStepMethod, h: float = 1e-3, steps: int = 200) -> tuple:
    """Seconds until the first step, microseconds a step, the error of places, and rows that do not hold."""
    angles = 0.4 + 0.3 * np.sin(np.arange(storeys))
    system, start = tower(storeys), start_of(angles)
    began = time.process_time()
    da.simulate(system, method, **start, h=h, steps=1)
    first, times = time.process_time() - began, []
    for count in (steps, 3 * steps):
        began = time.process_time()
        run = da.simulate(system, method, **start, h=h, steps=count, save_every=steps)
        times.append(time.process_time() - began)
    exact = start_of(angles_after(angles, h * steps))["q0"]
    missed = max(float(np.abs(value).max()) for value in run.residuals.values())
    return first, 1e6 * (times[1] - times[0]) / (2 * steps), float(np.abs(run.q[1] - exact).max()), missed, run


def main() -> None:
    rows = []
    for storeys in [int(text) for text in sys.argv[1:]] or [3, 10, 30, 100]:
        note(f"{storeys} storeys")
        first, step, error, missed, run = study(storeys, da.Rattle())
        rows.append([storeys, f"{first:.1f}", f"{step:.1f}", f"{step / storeys:.2f}", f"{error:.1e}", f"{missed:.0e}"])
        note(str({name: run.stats[name] for name in ("renewals", "followed_steps", "rescued_steps", "pivoted_steps")}))
    print(table(("storeys", "first step, s", "us a step", "us a step and storey", "error, m", "rows"), rows))


if __name__ == "__main__":
    main()
