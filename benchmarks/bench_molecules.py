"""Rigid molecules, beside OpenMM's constraints: water-like triangles with pair forces, and the diamond of openmm#3603.

Units are nm, ps and atomic mass units, so that energies are in kJ/mol.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from common import Section, load_drivers, measure_apart, note, stepping_time, table

import dalembert as da

H = 0.001
RANGE, DEPTH, SPACING = 0.45, 2.0, 0.31
OH, HH = 0.09572, 0.15139
CASES = (("water", 125), ("all pairs", 125), ("water", 1000), ("diamond", 1), ("diamond", 100))
TOLERANCES = (1e-5, 1e-12)


@dataclass(frozen=True)
class Molecules:
    """Atoms, their distances that are fixed, and the pairs of atoms that may come within range of each other."""

    masses: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    fixed: np.ndarray
    pairs: np.ndarray
    acting: np.ndarray
    """The atoms that have pair forces."""

    @property
    def lengths(self) -> np.ndarray:
        return np.linalg.norm(self.positions[self.fixed[:, 0]] - self.positions[self.fixed[:, 1]], axis=1)


def _turned(shape: np.ndarray, centres: np.ndarray, speed: float) -> tuple[np.ndarray, np.ndarray]:
    """Copies of a molecule, each turned at random, with a velocity and an angular velocity: positions and velocities."""
    random = np.random.default_rng(4)
    positions, velocities = [], []
    for centre in centres:
        R = np.linalg.qr(random.standard_normal((3, 3)))[0]
        arms = shape @ R.T
        positions.append(centre + arms)
        velocities.append(speed * random.standard_normal(3) + np.cross(5 * speed * random.standard_normal(3), arms))
    return np.concatenate(positions), np.concatenate(velocities)


def water(count: int) -> Molecules:
    """Rigid triangles (16, 1, 1) on a cubic lattice; first atoms repel each other within 0.45 nm."""
    side = round(count ** (1 / 3))
    grid = SPACING * np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    height = np.sqrt(OH**2 - HH**2 / 4)
    positions, velocities = _turned(np.array([[0, 0, 0], [HH / 2, height, 0], [-HH / 2, height, 0]]), grid, 0.3)
    first = 3 * np.arange(len(grid))
    fixed = np.concatenate([np.stack([first + i, first + j], axis=1) for i, j in ((0, 1), (0, 2), (1, 2))])
    one, other = np.triu_indices(len(grid), 1)
    near = np.linalg.norm(grid[one] - grid[other], axis=1) < RANGE + SPACING / 2
    masses = np.tile([16.0, 1.0, 1.0], len(grid))
    return Molecules(masses, positions, velocities, fixed, 3 * np.stack([one[near], other[near]], axis=1), first)


def all_pairs(count: int) -> Molecules:
    """The same, with a term in the energy for every pair of first atoms, most of which are zero."""
    model = water(count)
    return replace(model, pairs=3 * np.stack(np.triu_indices(count, 1), axis=1))


def diamond(count: int) -> Molecules:
    """Four atoms with five fixed distances, the sides of a rhombus that is folded in space and one diagonal: two triangles."""
    shape = 0.15 * np.array([[-1, 0, 0], [0, 1, 0.3], [1, 0, 0], [0, -1, 0.3]])
    centres = np.stack([np.arange(count), np.zeros(count), np.zeros(count)], axis=1)
    positions, velocities = _turned(shape, centres, 0.3)
    first = 4 * np.arange(count)
    edges = ((0, 1), (1, 2), (2, 3), (3, 0), (1, 3))
    fixed = np.concatenate([np.stack([first + i, first + j], axis=1) for i, j in edges])
    masses = np.tile([12.0, 1.0, 12.0, 1.0], count)
    return Molecules(masses, positions, velocities, fixed, np.zeros((0, 2), int), np.zeros(0, int))


MODELS: dict[str, Callable[[int], Molecules]] = {"water": water, "all pairs": all_pairs, "diamond": diamond}


def system_of(model: Molecules) -> da.Hamiltonian:
    mass = np.repeat(model.masses, 3)
    (one, other), (i, j) = model.fixed.T, model.pairs.T
    lengths = model.lengths

    def energy(q: Any, p: Any) -> Any:
        kinetic = np.sum(p**2 / (2 * mass))
        if not len(model.pairs):
            return kinetic
        d = q.reshape(-1, 3)[i] - q.reshape(-1, 3)[j]
        return kinetic + DEPTH * np.sum(np.maximum(1 - np.sum(d**2, axis=1) / RANGE**2, 0.0) ** 3)

    def distances(q: Any) -> Any:
        r = q.reshape(-1, 3)
        return np.linalg.norm(r[one] - r[other], axis=1) - lengths

    return da.Hamiltonian(energy, dim=3 * len(model.masses), holonomic=distances)


def unlisted(model: Molecules, states: np.ndarray) -> bool:
    """Whether, in any of these states, atoms are within range of each other that are not among the pairs."""
    from scipy.spatial import cKDTree

    listed = set(map(tuple, np.sort(model.pairs, axis=1).tolist()))
    for q in states if len(model.pairs) else ():
        near = cKDTree(q.reshape(-1, 3)[model.acting]).query_pairs(RANGE, output_type="ndarray")
        if not set(map(tuple, np.sort(model.acting[near], axis=1).tolist())) <= listed:
            return True
    return False


def measure(kind: str, count: int) -> dict[str, float]:
    """CPU seconds until the first step is done; then the least time of three runs, and what they keep."""
    load_drivers()
    model, began = MODELS[kind](count), time.process_time()
    system = system_of(model)
    momenta = np.repeat(model.masses, 3) * model.velocities.ravel()
    start = da.consistent(system, q0=model.positions.ravel(), p0=momenta)

    def run(steps: int) -> tuple[float, da.Trajectory]:
        with stepping_time() as spent:
            every = max(1, steps // 10)
            result = da.simulate(system, da.Rattle(), start=start, h=H, steps=steps, save_every=every, progress=False)
        return sum(spent), result

    run(1)
    compiled = time.process_time() - began
    steps = 5000 if kind == "diamond" else 100
    runs = [run(steps) for _ in range(4)]
    best, result = min(spent for spent, _ in runs) / steps, runs[-1][1]
    if unlisted(model, result.q):
        raise SystemExit("pairs that are not listed have come within range: the list is too short for such a run")
    found = {"compile": compiled, "us": 1e6 * best, "g": float(np.abs(result.residuals["g"]).max())}
    found["energy"] = float(np.abs(result.energy / result.energy[0] - 1).max())
    found["steps"] = float(steps)
    if importlib.util.find_spec("openmm") is not None:
        q0, v0 = start.q.reshape(-1, 3), (start.p / np.repeat(model.masses, 3)).reshape(-1, 3)
        for tolerance in TOLERANCES:
            try:
                us, off, drift = _openmm(model, q0, v0, tolerance, steps)
            except Exception as reason:  # coordinates that are not numbers, as openmm#3603 says
                note(str(reason))
                us = off = drift = np.nan
            found |= {f"us {tolerance}": us, f"g {tolerance}": off, f"energy {tolerance}": drift}
    return found


def _openmm(model: Molecules, q0: np.ndarray, v0: np.ndarray, tolerance: float, steps: int) -> tuple[float, float, float]:
    """CPU us a step on one thread of the CPU platform, the largest violation of a distance, and the relative energy error."""
    import openmm as mm

    system = mm.System()
    for mass in model.masses:
        system.addParticle(mass)
    for (i, j), length in zip(model.fixed.tolist(), model.lengths, strict=True):
        system.addConstraint(i, j, length)
    if len(model.pairs):
        force = mm.CustomNonbondedForce(
            f"{DEPTH}*acting1*acting2*(1-r^2/{RANGE**2})^3"
        )  # no interaction groups: they have no cells
        force.addPerParticleParameter("acting")
        force.setNonbondedMethod(mm.CustomNonbondedForce.CutoffNonPeriodic)
        force.setCutoffDistance(RANGE)
        for k in range(len(model.masses)):
            force.addParticle([float(k in model.acting)])
        for i, j in model.fixed.tolist():
            force.addExclusion(i, j)
        system.addForce(force)
    integrator = mm.VerletIntegrator(H)
    integrator.setConstraintTolerance(tolerance)
    context = mm.Context(system, integrator, mm.Platform.getPlatformByName("CPU"), {"Threads": "1"})
    context.setPositions(q0)
    context.setVelocities(v0)
    integrator.step(1)

    def total() -> float:
        state = context.getState(getEnergy=True)
        return state.getKineticEnergy()._value + state.getPotentialEnergy()._value

    first, best, worst, drift = total(), np.inf, 0.0, 0.0
    for _ in range(4):
        began = time.process_time()
        integrator.step(steps)
        context.getState(getPositions=False, getEnergy=False)
        best = min(best, time.process_time() - began)
        r = np.array(context.getState(getPositions=True).getPositions(asNumpy=True)._value)
        distances = np.linalg.norm(r[model.fixed[:, 0]] - r[model.fixed[:, 1]], axis=1)
        worst, drift = max(worst, float(np.abs(distances - model.lengths).max())), max(drift, abs(total() / first - 1))
    return 1e6 * best / steps, worst, drift


def run() -> Section:
    rows = []
    for kind, count in CASES:
        note(f"{kind}, {count}")
        r = measure_apart("bench_molecules.py", kind, count)
        own = [f"{r['compile']:.1f}", f"{r['us']:.1f}", f"{r['us'] / count:.2f}", f"{r['g']:.0e}", f"{r['energy']:.0e}"]
        rows.append([f"{kind}, {count}", "**dalembert**, Rattle", *own])
        note("  ".join(rows[-1]))
        for tolerance in TOLERANCES:
            if f"us {tolerance}" in r:
                us, off, drift = (r[f"{name} {tolerance}"] for name in ("us", "g", "energy"))
                cells = ["", f"{us:.1f}", f"{us / count:.2f}", f"{off:.0e}", f"{drift:.0e}"]
                rows.append([f"{kind}, {count}", f"OpenMM, Verlet, tolerance {tolerance:.0e}", *cells])
                note("  ".join(rows[-1]))
    head = ("molecules", "program", "compiling, s", "us/step", "us/step and molecule", "distances, nm", "energy, relative")
    body = f"""
CPU times; steps of 1 fs. OpenMM runs on one thread of its CPU platform, which computes forces in single precision. "distances"
is the largest violation of a fixed distance, "energy" the largest relative error of the energy in runs of the same length
(OpenMM's momenta are half a step off its positions, so that its energy oscillates). Where it says nan, OpenMM ended with
coordinates that are not numbers.

{table(head, rows)}

- water: {water.__doc__} Pairs that may come within range are listed once, as two arrays of indices: the number of
  terms, and with it compiling, a step and memory, grows with the molecules. The run is checked for pairs that are not listed.
- all pairs: {all_pairs.__doc__} A symbolic model has no cells that sort atoms anew while it runs: with all pairs everything
  grows with the square of the molecules, 7,750 terms for 125 and 499,500 for 1000. List neighbours.
- diamond: {diamond.__doc__}
"""
    return Section("Rigid molecules", body)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        print(run().body)
