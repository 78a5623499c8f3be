"""Random contact problems: do they end, do walls hold, does no contact make energy, does nothing pull?

    python benchmarks/random_contacts.py [problems] [seed]

Slopes, wedges, corners, bowls and moving floors; restitution and friction from 0 to 1, steps from coarse to fine. Prints a line
for each broken promise and a summary; the exit status is the number of broken promises.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dalembert as da

G = 9.81


# phi(t, q) and the slip velocity of each wall; c sin(w t) is how far the first one has moved along its normal
WALLS: dict[str, tuple[Callable, Callable]] = {
    "slope": (
        lambda t, q, a, c, w: [q[1] * np.cos(a) + q[0] * np.sin(a) - c * np.sin(w * t)],
        lambda q, v, a: [v[0] * np.cos(a) - v[1] * np.sin(a)],
    ),
    "wedge": (
        lambda t, q, a, b, c, w: [
            q[1] * np.cos(a) + q[0] * np.sin(a) - c * np.sin(w * t),
            q[1] * np.cos(b) - q[0] * np.sin(b),
        ],
        lambda q, v, a, b: [v[0] * np.cos(a) - v[1] * np.sin(a), v[0] * np.cos(b) + v[1] * np.sin(b)],
    ),
    "corner": (lambda t, q, c, w: [q[1] - c * np.sin(w * t), q[0] + 0.5], lambda q, v: [v[0], v[1]]),
    "bowl": (
        lambda t, q, a, c, w: [q[1] - a * q[0] ** 2 - c * np.sin(w * t)],
        lambda q, v, a: [(v[0] + 2 * a * q[0] * v[1]) / np.sqrt(1 + (2 * a * q[0]) ** 2)],
    ),
    "hill": (
        lambda t, q, c, w: [np.hypot(q[0], q[1] + 1) - 1 - c * np.sin(w * t)],
        lambda q, v: [((q[1] + 1) * v[0] - q[0] * v[1]) / np.hypot(q[0], q[1] + 1)],
    ),
}


@functools.cache
def point(name: str, rough: bool) -> da.Lagrangian:
    """A point of 0.2 kg on walls of one kind."""
    walls, slip = WALLS[name]
    friction = {"friction": lambda q, mu: mu, "slip": slip} if rough else {}
    return da.Lagrangian(
        lambda q, v: 0.2 * (v @ v / 2 - G * q[1]),
        dim=2,
        unilateral=walls,
        restitution=lambda speed, e: e + 0 * speed,
        params={"a": 0.3, "b": 0.4, "c": 0.0, "w": 1.0, "e": 0.5, "mu": 0.3},
        **friction,
    )


def problem(rng: np.random.Generator) -> tuple[da.Lagrangian, dict[str, Any]]:
    """A system, and a run of it: parameters, a start in front of all walls, and a step size."""
    system = point(str(rng.choice(list(WALLS))), bool(rng.random() < 0.7))
    a, b = rng.uniform(0.05, 1.2, 2)
    params = {"a": a, "b": b, "w": rng.uniform(2, 15), "c": rng.uniform(0.005, 0.05) if rng.random() < 0.25 else 0.0}
    params |= {"e": rng.choice([0.0, 0.3, 0.7, 0.95, 1.0]), "mu": rng.choice([0.0, 0.1, 0.4, 1.0])}
    theta = system.parameters.vector(params)
    while True:
        q = np.array([rng.uniform(-0.4, 0.4), rng.uniform(0.0, 0.6)])
        if system.evaluate("phi", 0.0, q, theta=theta).min() > 1e-3:
            break
    h = float(10 ** rng.uniform(-2.7, -1.1))
    return system, {"q0": q, "v0": rng.normal(size=2), "h": h, "steps": int(2.0 / h), "params": params}


def broken(seed: int) -> tuple[str, list[str]]:
    """How the run of one problem ended, and the promises that it broke."""
    system, start = problem(np.random.default_rng(seed))
    run = da.simulate(system, da.CVA(), on_failure="return", progress=False, **start)
    found, theta = [], system.parameters.vector(start["params"])
    low = min(system.evaluate("phi", t, q, theta=theta).min() for t, q in zip(run.t, run.q, strict=True))
    if low < -1e-12:
        found.append(f"phi = {low:.1e}")
    impacts = run.impacts
    if len(impacts):
        if impacts.impulse.min() < 0:
            found.append(f"impulse {impacts.impulse.min():.1e}")
        rows = zip(impacts.t, impacts.q, impacts.which, strict=True)
        off = max(abs(system.evaluate("phi", t, q, theta=theta)[which]) for t, q, which in rows)
        if off > 1e-12:
            found.append(f"an impact happens {off:.1e} m off its wall")
        outside = np.max(np.abs(impacts.friction) - start["params"]["mu"] * impacts.impulse * (1 + 1e-9))
        if outside > 1e-12:
            found.append(f"friction beyond its cone by {outside:.1e} N s")
        instant = np.unique(impacts.t, return_inverse=True)[1]  # impacts at one instant share their energy
        gain = np.bincount(instant, impacts.energy_after - impacts.energy_before).max()
        if start["params"]["c"] == 0 and gain > 1e-12 * (1 + np.abs(impacts.energy_before).max()):
            found.append(f"an impact gains {gain:.1e} J")
    if len(run.contacts):
        inside = np.ones(len(run.t), dtype=bool)  # away from events, at which forces jump
        for t in (*run.contacts.begin, *run.contacts.end):
            inside &= np.abs(run.t - t) > 1.01 * start["h"]
        forces = run.contact_forces
        least = forces.normal[inside].min(initial=0.0)
        if least < -1e-12:
            found.append(f"a wall pulls with {least:.1e} N")
    return run.status if run.status == "done" else f"{run.status}: {run.message}", found


def main() -> None:
    """Run all of them."""
    count, first = (int(x) for x in [*sys.argv[1:], *["1000", "0"][len(sys.argv) - 1 :]])
    ends: dict[str, int] = {}
    failures = 0
    for seed in range(first, first + count):
        end, found = broken(seed)
        ends[end[:100]] = ends.get(end[:100], 0) + 1
        if found or end != "done":
            print(seed, end, found, flush=True)
        failures += bool(found)
    print(ends, f"{failures} of {count} broke a promise")
    sys.exit(min(failures, 99))


if __name__ == "__main__":
    main()
