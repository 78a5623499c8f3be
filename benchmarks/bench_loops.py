"""Towers of parallelograms with redundant constraints: what these cost as their number grows.

`python benchmarks/bench_loops.py [storeys ...]` hangs beams of 0.3 kg under each other, each on three parallel rods of 0.1 m.
Three equal rods keep a beam parallel to the one above, and one of them follows from the other two; so a beam is a point of a
chain of pendulums, which in its angles is the independent solution. With `--space` beams hang on two cranks of 0.1 kg instead,
all bodies have a quaternion, and four revolute joints a storey, of which three rows follow from the others.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from common import ROOT, note, stepping_time, table
from scipy.integrate import solve_ivp

import dalembert as da

sys.path.append(str(ROOT / "tests" / "engine"))
import spatial

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


CRANK, WIDE = 0.1, 0.25
"""The mass of a crank, and how far two cranks are apart."""


def tower_in_space(angles: np.ndarray) -> tuple[da.Hamiltonian, dict[str, np.ndarray]]:
    """Two cranks and a beam a storey, at rest with cranks at these angles; 23 rows each, of which 20 are independent."""
    bodies, joints, above, corner = [], [], -1, np.zeros(3)
    z, aside = np.array([0.0, 0.0, 1.0]), np.array([WIDE, 0.0, 0.0])
    for angle in angles:
        below, first = corner + ROD * np.array([np.sin(angle), -np.cos(angle), 0.0]), len(bodies)
        bodies += [spatial.rod(CRANK, x, y, 0.01) for x, y in ((corner, below), (corner + aside, below + aside))]
        bodies.append(spatial.rod(MASS, below, below + aside, 0.01))
        for crank, at in ((first, 0.0 * aside), (first + 1, aside)):
            joints += [spatial.Revolute(above, crank, corner + at, z), spatial.Revolute(crank, first + 2, below + at, z)]
        above, corner = first + 2, below
    start = spatial.Quaternions.start(bodies)
    return spatial.mechanism(bodies, joints, (0, -GRAVITY, 0)), {"q0": start, "p0": np.zeros_like(start)}


def beams_in_space(angles: np.ndarray) -> np.ndarray:
    """The centres (x, y) of the beams."""
    return np.stack([np.cumsum(ROD * np.sin(angles)) + WIDE / 2, -np.cumsum(ROD * np.cos(angles))], axis=1)


def angles_after(angles: np.ndarray, duration: float, crank: float = 0.0) -> np.ndarray:
    """Of a chain of pendulums, on two massive cranks each if `crank` is their mass, by Dormand and Prince's method of order 8.

    A beam moves with the cranks above it, the centre of a crank with those above and half of itself.
    """
    n = len(angles)
    beams = np.tril(np.full((n, n), ROD))
    cranks = beams - ROD / 2 * np.eye(n)
    turning = 2 * crank * (ROD**2 + 0.01**2) / 12
    mass = MASS * beams.T @ beams + 2 * crank * cranks.T @ cranks
    weight = GRAVITY * (MASS * beams + 2 * crank * cranks).sum(axis=0)

    def slope(t, y):
        a, w = y[:n], y[n:]
        difference = a[:, None] - a
        right = -(mass * np.sin(difference)) @ w**2 - weight * np.sin(a)
        return np.concatenate([w, np.linalg.solve(mass * np.cos(difference) + turning * np.eye(n), right)])

    found = solve_ivp(slope, (0.0, duration), np.concatenate([angles, 0 * angles]), method="DOP853", rtol=1e-12, atol=1e-12)
    return found.y[:n, -1]


def study(storeys: int, method: da.OneStepMethod, space: bool = False, h: float = 1e-3, steps: int = 300) -> tuple:
    """Seconds until the first step, microseconds a step, the error of beams, rows that do not hold, and the run."""
    angles = 0.2 + 0.1 * np.sin(np.arange(storeys))
    system, start = tower_in_space(angles) if space else (tower(storeys), start_of(angles))
    began = time.process_time()
    da.simulate(system, method, **start, h=h, steps=1)
    first, times = time.process_time() - began, []
    for _ in range(3):
        with stepping_time() as spent:
            run = da.simulate(system, method, **start, h=h, steps=steps, save_every=steps)
        times.append(sum(spent))
    missed = max(float(np.abs(value).max()) for value in run.residuals.values())
    if space:
        exact = beams_in_space(angles_after(angles, h * steps, CRANK))
        error = np.abs(np.stack([run.q[1, 14::21], run.q[1, 15::21]], axis=1) - exact).max()
    else:
        error = np.abs(run.q[1] - start_of(angles_after(angles, h * steps))["q0"]).max()
    return first, 1e6 * min(times) / steps, float(error), missed, run


def main() -> None:
    space, rows = "--space" in sys.argv, []
    for storeys in [int(text) for text in sys.argv[1:] if text != "--space"] or [10, 30, 100, 300]:
        note(f"{storeys} storeys")
        first, step, error, missed, run = study(storeys, da.Rattle(), space)
        energy = f"{np.ptp(run.energy):.0e}"
        rows.append([storeys, f"{first:.1f}", f"{step:.1f}", f"{step / storeys:.2f}", f"{error:.1e}", f"{missed:.0e}", energy])
        note(str({name: run.stats[name] for name in ("renewals", "followed_steps", "rescued_steps", "pivoted_steps")}))
    header = ("storeys", "first step, s", "us a step", "us a step and storey", "error, m", "rows", "energy, J")
    print(table(header, rows))


if __name__ == "__main__":
    main()
