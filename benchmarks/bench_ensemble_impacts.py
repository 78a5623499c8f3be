"""Many cart-pendulums that bounce on their floor: dalembert, heyoka with terminal events and SciPy with events."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numba
import numpy as np
from bench_impacts import cart_pendulum
from heyoka_groups import propagated

import dalembert as da

H, STEPS, MEMBERS = 0.01, 20_000, 64
TOLERANCE = {"heyoka": 1e-6, "SciPy": 1e-8}
"""Chosen so that the energy is about as good as that of the method at h = 0.01."""


def starts(members: int = MEMBERS) -> np.ndarray:
    """Heights and angles from which the cart falls, at rest but for the pendulum."""
    random = np.random.default_rng(1)
    return np.stack([random.uniform(0.2, 0.4, members), random.uniform(-0.2, 0.2, members)], axis=1)


def energy(y: np.ndarray) -> np.ndarray:
    """H in terms of (q, v), which are the rows."""
    height, angle, u, w = y
    return 0.6 * u**2 + 0.4 * np.sin(angle) * u * w + 0.4 * w**2 + 12 * height - 4 * np.cos(angle)


def dalembert(workers: int, executor: Any = None, method: Any = None, longer: int = 1) -> dict[str, float]:
    """`da.CVA()`, or another method with longer steps."""
    began, steps = time.perf_counter(), STEPS // longer
    runs = da.simulate_many(
        cart_pendulum(), method or da.CVA(), q0=starts(), v0=[0.0, 1.0], h=longer * H, steps=steps, save_every=steps,
        reduce=["impacts"], workers=workers, executor=executor, progress=False,
    )  # fmt: skip
    elapsed = time.perf_counter() - began
    assert set(runs.status) == {"done"}
    here = {"seconds": runs.stats["wall_seconds"], "cpu": runs.stats.get("cpu_seconds", np.nan)}
    own = here if executor is None else {"seconds": elapsed}
    error = np.abs(runs.energy[:, -1] - runs.energy[:, 0]).max()
    return {**own, "members": MEMBERS, "error": error, "impacts": float(runs.reduced["impacts"].count.sum()) / MEMBERS}


def equations(y: Any, library: Any) -> tuple[Any, Any]:
    """The accelerations between impacts."""
    s, c, w = library.sin(y[1]), library.cos(y[1]), y[3]
    force = -12.0 - 0.4 * c * w * w
    determinant = 0.96 - 0.16 * s * s
    return (0.8 * force + 1.6 * s * s) / determinant, (-4.8 * s - 0.4 * s * force) / determinant


def reflect(y: np.ndarray) -> None:
    """An elastic impact, v+ = v- - 2 v_y M^-1 e / (e . M^-1 e), in place: a new array would take as long as the flight."""
    u = y[2]
    y[0], y[2], y[3] = 0.0, -u, y[3] + math.sin(y[1]) * u


@functools.cache
def heyoka_integrator() -> tuple:
    import heyoka as hy

    y = hy.make_vars("height", "angle", "u", "w")
    up, turn = equations(y, hy)

    def bounce(integrator, sign):
        reflect(integrator.state)
        return True

    def bounce_in_batch(integrator, sign, lane):
        reflect(integrator.state[:, lane])
        return True

    system = [(y[0], y[2]), (y[1], y[3]), (y[2], up), (y[3], turn)]
    size, down, tolerance = hy.recommended_simd_size(), hy.event_direction.negative, TOLERANCE["heyoka"]
    alone, together = (kind(y[0], callback=callback, direction=down) for kind, callback in (
        (hy.t_event, bounce), (hy.t_event_batch, bounce_in_batch)))  # fmt: skip
    single = hy.taylor_adaptive(system, [1.0, 0.0, 0.0, 0.0], tol=tolerance, t_events=[alone])
    wide = hy.taylor_adaptive_batch(system, np.ones((4, size)), tol=tolerance, t_events=[together])
    return hy, single, wide


def heyoka(threads: bool, batch: bool) -> dict[str, float]:
    hy, single, wide = heyoka_integrator()
    initial = np.vstack([starts().T, np.tile([[0.0], [1.0]], MEMBERS)])
    ends, seconds, cpu = propagated(hy, wide if batch else single, initial, H * STEPS, threads, events=True)
    error = np.abs(energy(ends) - energy(initial)).max()
    return {"seconds": seconds, "cpu": cpu, "members": MEMBERS, "error": error}


@numba.njit(cache=True)
def rhs(t, y):
    s, c, w = np.sin(y[1]), np.cos(y[1]), y[3]
    force, determinant = -12.0 - 0.4 * c * w * w, 0.96 - 0.16 * s * s
    return np.array([y[2], w, (0.8 * force + 1.6 * s * s) / determinant, (-4.8 * s - 0.4 * s * force) / determinant])


def scipy_one(y: np.ndarray) -> np.ndarray:
    """`solve_ivp` from impact to impact."""
    from scipy.integrate import solve_ivp

    def floor(t, y):
        return y[0] if t > begin else 1.0

    floor.terminal, floor.direction = True, -1
    begin, tolerance = 0.0, TOLERANCE["SciPy"]
    while begin < H * STEPS:
        part = solve_ivp(rhs, (begin, H * STEPS), y, method="DOP853", rtol=tolerance, atol=tolerance, events=floor)
        begin, y = part.t[-1], part.y[:, -1].copy()
        if part.status == 1:
            reflect(y)
    return y


def scipy_pool(pool: ProcessPoolExecutor, members: int) -> dict[str, float]:
    y0 = np.hstack([starts(members), np.tile([0.0, 1.0], (members, 1))])
    began = time.perf_counter()
    ends = np.array(list(pool.map(scipy_one, y0)))
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "members": members, "error": np.abs(energy(ends.T) - energy(y0.T)).max()}


def contenders(cores: int, pool: Any, client: Any, with_heyoka: bool) -> dict[str, Callable[[], dict[str, float]]]:
    """Everything that is measured."""
    found: dict[str, Callable[[], dict[str, float]]] = {
        "dalembert, 1 thread": lambda: dalembert(1),
        f"dalembert, {cores} threads": lambda: dalembert(cores),
        "dalembert, 1 thread, order 4, h = 0.1": lambda: dalembert(1, None, da.CVA(da.Gauss(stages=2)), 10),
    }
    if client is not None:
        found[f"dalembert, Dask with {cores} processes"] = lambda: dalembert(1, client)
    if with_heyoka:
        found |= {
            "heyoka, 1 thread, one by one": lambda: heyoka(False, False),
            "heyoka, 1 thread, batches": lambda: heyoka(False, True),
            f"heyoka, {cores} threads, one by one": lambda: heyoka(True, False),
        }
    found[f"SciPy DOP853, {cores} processes"] = lambda: scipy_pool(pool, 2 * cores)
    return found
