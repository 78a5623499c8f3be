"""Large mechanisms: how compiling, a step and memory grow with the number of bodies."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Section, load_drivers, measure_apart, note, stepping_time, table

import dalembert as da

CHAIN = (64, 256, 1000, 4000, 10_000)
STAGES = (2, 3)
OTHERS = {"net": (10, 30), "tree": (100, 1000), "gravity": (30, 100), "ring": (100, 1000), "bodies": (50, 200)}
GRAVITY = 9.81
WORK = 2_000_000
"""Bodies times steps of a run that is timed; at most STEPS steps."""
STEPS = 2000

ROD = (0.2, 0.1)
"""Mass and length of the rods of a tree."""
BODY = (0.2, 0.1, np.array([1e-4, 2e-4, 5e-4]))
"""Mass, length and the integrals of x^2, y^2, z^2 over the mass of the bodies of a chain."""

Model = tuple[Any, dict[str, Any], float]
"""A system, its initial values, and h."""


@dataclass(frozen=True)
class Points:
    """Equal masses in space, pairs of them at fixed distances; some are held."""

    rest: np.ndarray
    mass: float
    pairs: np.ndarray
    held: tuple[int, ...] = ()

    @property
    def lengths(self) -> np.ndarray:
        return np.linalg.norm(self.rest[self.pairs[:, 0]] - self.rest[self.pairs[:, 1]], axis=1)


def net_points(side: int) -> Points:
    number = np.arange(side * side).reshape(side, side)
    x, y = np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, side), indexing="ij")
    rest = np.stack([x, y, 0.6 * (x**2 + y**2) + 0.1 * x * y], axis=-1).reshape(-1, 3)
    one = np.concatenate([number[1:].ravel(), number[:, 1:].ravel()])
    other = np.concatenate([number[:-1].ravel(), number[:, :-1].ravel()])
    return Points(rest, 0.01, np.stack([one, other], axis=1), (0, side * side - 1))


def ring_points(count: int) -> Points:
    turn, k = 2 * np.pi * np.arange(count) / count, np.arange(count)
    rest = count / (2 * np.pi) * np.stack([np.cos(turn), np.sin(turn), 0.1 * np.sin(3 * turn)], axis=1)
    return Points(rest, 1.0, np.stack([np.roll(k, -1), k], axis=1))


def chain(links: int) -> Model:
    problem = da.problems.chain(links=links)
    return problem.system, {"q0": problem.q0, "p0": problem.p0}, 0.01


def net(side: int) -> Model:
    """side x side masses in space, neighbours at fixed distances, hung up at two corners: a paraboloid that falls."""
    points = net_points(side)
    (one, other), rest, m, lengths = points.pairs.T, points.rest, points.mass, points.lengths

    def constraints(q: Any) -> Any:
        r = q.reshape(-1, 3)
        distances = np.linalg.norm(r[one] - r[other], axis=1) - lengths
        return np.concatenate([distances, r[0] - rest[0], r[-1] - rest[-1]])

    def energy(q: Any, p: Any) -> Any:
        return p @ p / (2 * m) + m * GRAVITY * np.sum(q[2::3])

    system = da.Hamiltonian(energy, dim=rest.size, holonomic=constraints)
    return system, {"q0": rest.ravel(), "p0": np.zeros(rest.size)}, 2e-4


def tree(count: int) -> Model:
    """A binary tree of rods in a plane, (x, y, theta) each, hinged at the end of the one above; the first at the origin."""
    m, length = ROD
    inertia, angles, above = m * length**2 / 12, np.random.default_rng(1).uniform(-0.5, 0.5, count), (np.arange(count) - 1) // 2
    half = length / 2 * np.stack([np.sin(angles), -np.cos(angles)], axis=1)
    q0 = np.zeros((count, 3))
    q0[:, 2] = angles
    for k in range(count):
        q0[k, :2] = half[k] + (q0[above[k], :2] + half[above[k]] if k else 0.0)

    def constraints(q: Any) -> Any:
        r, theta = q.reshape(-1, 3)[:, :2], q.reshape(-1, 3)[:, 2]
        to_end = length / 2 * np.stack([np.sin(theta), -np.cos(theta)], axis=1)
        joints = (r - to_end)[1:] - (r + to_end)[above[1:]]
        return np.concatenate([(r - to_end)[0], joints.ravel()])

    def energy(q: Any, p: Any) -> Any:
        kinetic = np.sum(p.reshape(-1, 3) ** 2 / np.array([2 * m, 2 * m, 2 * inertia]))
        return kinetic + m * GRAVITY * np.sum(q[1::3])

    return da.Hamiltonian(energy, dim=3 * count, holonomic=constraints), {"q0": q0.ravel(), "p0": np.zeros(3 * count)}, 1e-3


def gravity(count: int) -> Model:
    """Bodies in space that attract each other, all pairs, softened."""
    one, other = np.triu_indices(count, 1)
    random = np.random.default_rng(2)

    def energy(q: Any, p: Any) -> Any:
        d = q.reshape(-1, 3)[one] - q.reshape(-1, 3)[other]
        return p @ p / 2 - np.sum(1 / np.sqrt(np.sum(d**2, axis=1) + 0.01)) / count

    initial = {"q0": random.standard_normal(3 * count), "p0": 0.1 * random.standard_normal(3 * count)}
    return da.Hamiltonian(energy, dim=3 * count), initial, 0.01


def ring(count: int) -> Model:
    """A ring of beads in space at fixed distances that resists bending."""
    points = ring_points(count)
    rest, lengths = points.rest, points.lengths

    def energy(q: Any, p: Any) -> Any:
        r = q.reshape(-1, 3)
        bends = np.roll(r, -1, axis=0) - 2 * r + np.roll(r, 1, axis=0)
        return p @ p / 2 + 5.0 * np.sum(bends**2)

    def constraints(q: Any) -> Any:
        r = q.reshape(-1, 3)
        return np.linalg.norm(np.roll(r, -1, axis=0) - r, axis=1) - lengths

    return da.Hamiltonian(energy, dim=3 * count, holonomic=constraints), {"q0": rest.ravel(), "p0": np.zeros(3 * count)}, 0.01


def bodies(count: int) -> Model:
    """A chain of rigid bodies in space with ball joints, each a centre and three directors, released from a slight arc."""
    m, length, euler = BODY
    angles = np.linspace(0.1, 0.4, count)
    zero, one = np.zeros(count), np.ones(count)
    first, third = (
        np.stack(x, axis=1) for x in ((np.cos(angles), zero, np.sin(angles)), (np.sin(angles), zero, -np.cos(angles)))
    )
    second = np.stack([zero, -one, zero], axis=1)
    ends = np.concatenate([np.zeros((1, 3)), np.cumsum(length * third, axis=0)])
    q0 = np.concatenate([(ends[1:] + ends[:-1]) / 2, first, second, third], axis=1)
    masses = np.concatenate([np.full(3, m), np.repeat(euler, 3)])

    def constraints(q: Any) -> Any:
        x, *d = (q.reshape(-1, 4, 3)[:, k] for k in range(4))
        products = [np.sum(d[i] * d[j], axis=1) - float(i == j) for i in range(3) for j in range(i, 3)]
        upper, lower = x - length / 2 * d[2], x + length / 2 * d[2]
        return np.concatenate([*products, upper[0], (upper[1:] - lower[:-1]).ravel()])

    def energy(q: Any, p: Any) -> Any:
        return np.sum(p.reshape(-1, 12) ** 2 / (2 * masses)) + m * GRAVITY * np.sum(q[2::12])

    return da.Hamiltonian(energy, dim=12 * count, holonomic=constraints), {"q0": q0.ravel(), "p0": np.zeros(12 * count)}, 1e-3


MODELS: dict[str, Callable[[int], Model]] = {
    "chain": chain, "net": net, "tree": tree, "gravity": gravity, "ring": ring, "bodies": bodies,
}  # fmt: skip


def most_memory() -> float:
    """The most megabytes that this process has held; `ru_maxrss` begins with those of the process that started it."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def measure(kind: str, size: int, stages: int) -> dict[str, float]:
    """CPU seconds until the first step is done, then the least of three runs; memory at most."""
    load_drivers()
    method = da.LobattoIIIAB(stages=stages)
    began = time.process_time()
    system, initial, h = MODELS[kind](size)

    def run(steps: int) -> tuple[float, Any]:
        with stepping_time() as spent:
            result = da.simulate(system, method, h=h, steps=steps, save_every=steps, progress=False, **initial)
        return sum(spent), result

    run(1)
    compile_seconds = time.process_time() - began
    steps = max(20, min(STEPS, WORK // (size if kind != "gravity" else size * size)))
    runs = [run(steps) for _ in range(3)]
    best, result = min(spent for spent, _ in runs) / steps, runs[-1][1]
    return {
        "compile_seconds": compile_seconds,
        "us": 1e6 * best,
        "iterations": result.stats["newton_iterations"] / steps,
        "coordinates": float(system.dim),
        "constraints": float(system.n_holonomic),
        "megabytes": most_memory(),
        "finished": float(result.status == "done"),
    }


def row(kind: str, size: int, stages: int) -> tuple[list[object], dict[str, float]]:
    note(f"{kind} of {size}, {stages} stages")
    r = measure_apart("bench_scale.py", kind, size, stages)
    if not r["finished"]:
        raise SystemExit(f"{kind} of {size} with {stages} stages did not run to its end")
    cells, bodies_of = (
        [int(r["coordinates"]), int(r["constraints"]), f"{r['compile_seconds']:.1f}", f"{r['us']:.0f}"],
        {"net": size**2},
    )
    return [*cells, f"{r['us'] / bodies_of.get(kind, size):.3f}", f"{r['iterations']:.2f}", f"{r['megabytes']:.0f}"], r


def run() -> Section:
    head = ("coordinates", "constraints", "compiling, s", "us/step", "us/step and body", "iterations/step", "MB")
    parts = ["""
Compiling is the CPU time from the model's functions to the first step done, in a process of its own without compiled kernels;
a step is the least of three runs; MB is the most memory that the process took, of which an empty run takes about 180.
""".strip()]  # fmt: skip
    for stages in STAGES:
        rows, us = [], {}
        for links in CHAIN:
            cells, found = row("chain", links, stages)
            rows.append([links, *cells])
            us[links] = found["us"] / links
        ratio = f"A step and link cost {us[CHAIN[-1]] / us[64]:.2f} times as much with {CHAIN[-1]} links as with 64."
        parts.append(f"### Chain, {stages} stages\n\n{table(('links', *head), rows)}\n\n{ratio}")
    rows = [[f"{kind}, {size}", *row(kind, size, 2)[0]] for kind, sizes in OTHERS.items() for size in sizes]
    parts.append(f"### Other mechanisms, 2 stages\n\n{table(('model', *head), rows)}")
    parts.append("\n".join(f"- {kind}: {MODELS[kind].__doc__}" for kind in OTHERS))
    return Section("Large mechanisms", "\n\n".join(parts))


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure(sys.argv[2], *map(int, sys.argv[3:]))))
    else:
        print(run().body)
