"""Many trajectories at once: one after the other, in threads, in vectors, on a Dask cluster; heyoka and SciPy beside them."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import bench_ensemble_impacts as impacts
import numpy as np
from common import Section, note, table
from heyoka_groups import propagated
from peers import EXAMPLES, pendulum_rhs

import dalembert as da

H, STEPS, MEMBERS, ROUNDS = 0.12, 60_000, 64, 5
CORES = os.cpu_count() or 1
PEER_MEMBERS = {"SciPy": 2 * CORES}
TOLERANCE = {"heyoka": 1e-6, "SciPy": 1e-10}
"""Chosen so that the energy is about as good as that of the method at h = 0.12."""


def starts(members: int = MEMBERS) -> np.ndarray:
    """Angles around those of Example 2 of Jay (1996)."""
    return np.array([np.pi / 6, -np.pi / 6]) + np.random.default_rng(1).uniform(-0.1, 0.1, (members, 2))


def cartesian(angles: np.ndarray) -> np.ndarray:
    links = np.stack([np.sin(angles), -np.cos(angles)], axis=-1)
    return np.cumsum(links, axis=1).reshape(len(angles), 4)


def dalembert(workers: int, simd: bool | None, executor: Any = None) -> dict[str, float]:
    q0, began = cartesian(starts()), time.perf_counter()
    runs = da.simulate_many(
        da.problems.double_pendulum(), da.LobattoIIIAB(3), q0=q0, p0=np.zeros(4), h=H, steps=STEPS, save_every=STEPS,
        workers=workers, simd=simd, executor=executor, progress=False,
    )  # fmt: skip
    elapsed = time.perf_counter() - began
    error = np.abs(runs.energy[:, -1] - runs.energy[:, 0]).max()
    if executor is not None:
        return {"seconds": elapsed, "members": MEMBERS, "error": error}
    stats = {"lanes": runs.stats["lanes"], "iterations": runs.stats["newton_iterations"] / runs.stats["steps"]}
    return {
        "seconds": runs.stats["wall_seconds"],
        "cpu": runs.stats["cpu_seconds"],
        "members": MEMBERS,
        "error": error,
        **stats,
    }


def energy_in_angles(y: np.ndarray) -> np.ndarray:
    a, b, u, w = y
    return u**2 + w**2 / 2 + u * w * np.cos(a - b) - 2 * np.cos(a) - np.cos(b)


@functools.cache
def heyoka_integrators() -> tuple:
    import heyoka as hy

    system = EXAMPLES["double_pendulum"].angles(hy)[0]
    size = hy.recommended_simd_size()
    single = hy.taylor_adaptive(system, [0.0] * 4, tol=TOLERANCE["heyoka"])
    return hy, single, hy.taylor_adaptive_batch(system, np.zeros((4, size)), tol=TOLERANCE["heyoka"])


def heyoka(threads: bool, batch: bool) -> dict[str, float]:
    hy, single, wide = heyoka_integrators()
    initial = np.vstack([starts().T, np.zeros((2, MEMBERS))])
    ends, seconds, cpu = propagated(hy, wide if batch else single, initial, H * STEPS, threads)
    error = np.abs(energy_in_angles(ends) - energy_in_angles(initial)).max()
    return {"seconds": seconds, "cpu": cpu, "members": MEMBERS, "error": error}


def scipy_one(y0: np.ndarray) -> np.ndarray:
    from scipy.integrate import solve_ivp

    tolerance = TOLERANCE["SciPy"]
    return solve_ivp(pendulum_rhs, (0.0, H * STEPS), y0, method="DOP853", rtol=tolerance, atol=tolerance).y[:, -1]


def scipy_pool(pool: ProcessPoolExecutor) -> dict[str, float]:
    members = PEER_MEMBERS["SciPy"]
    y0 = np.hstack([cartesian(starts(members)), np.zeros((members, 4))])
    began = time.perf_counter()
    ends = np.array(list(pool.map(scipy_one, y0)))
    seconds = time.perf_counter() - began
    energy = [np.sum(y[:, 4:] ** 2, axis=1) / 2 + y[:, 1] + y[:, 3] for y in (y0, ends)]
    return {"seconds": seconds, "members": members, "error": np.abs(energy[1] - energy[0]).max()}


def cluster(own: contextlib.ExitStack) -> Any:
    """A client of a Dask cluster on this machine, one process a core; None without Dask."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        note("distributed is not installed: left out")
        return None
    machine = LocalCluster(n_workers=CORES, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    return own.enter_context(Client(own.enter_context(machine)))


def has_heyoka() -> bool:
    try:
        import heyoka as _  # noqa: F401
    except ImportError:
        note("heyoka is not installed: left out")
        return False
    return True


def pendulums(pool: ProcessPoolExecutor, client: Any, with_heyoka: bool) -> dict[str, Callable[[], dict[str, float]]]:
    """Everything that is measured with double pendulums."""
    found: dict[str, Callable[[], dict[str, float]]] = {
        "dalembert, 1 thread, one by one": lambda: dalembert(1, False),
        "dalembert, 1 thread, vectors": lambda: dalembert(1, True),
        f"dalembert, {CORES} threads, one by one": lambda: dalembert(CORES, False),
        f"dalembert, {CORES} threads, vectors": lambda: dalembert(CORES, True),
    }
    if client is not None:
        found[f"dalembert, Dask with {CORES} processes, vectors"] = lambda: dalembert(1, True, client)
    if with_heyoka:
        found |= {
            "heyoka in angles, 1 thread, one by one": lambda: heyoka(False, False),
            "heyoka in angles, 1 thread, batches": lambda: heyoka(False, True),
            f"heyoka in angles, {CORES} threads, batches": lambda: heyoka(True, True),
        }
    return found | {f"SciPy DOP853, {CORES} processes": lambda: scipy_pool(pool)}


class Measured:
    """The least times of all contenders, in rounds that alternate between them, in microseconds a step."""

    def __init__(self, contenders: dict[str, Callable[[], dict[str, float]]], steps: int) -> None:
        self.best: dict[str, dict[str, float]] = {}
        self.steps = steps
        self.add(contenders)

    def add(self, contenders: dict[str, Callable[[], dict[str, float]]]) -> None:
        """Measure more contenders, after the others."""
        for turn in range(ROUNDS + 1):  # the first one compiles
            for name, contender in contenders.items():
                if turn > 1 and name.startswith("SciPy"):
                    continue
                result = contender()
                if turn:
                    least = self.best.get(name, result)
                    times = {key: min(result[key], least[key]) for key in ("seconds", "cpu") if key in result}
                    self.best[name] = result | times
        self.us, self.cpu = (
            {name: 1e6 * r[key] / r["members"] / self.steps for name, r in self.best.items() if key in r}
            for key in ("seconds", "cpu")
        )

    def table(self) -> str:
        us, cpu, first = self.us, self.cpu, next(iter(self.us))
        rows = [
            [
                name,
                f"{us[name]:.3f}",
                f"{cpu[name]:.3f}" if name in cpu else "",
                f"{us[first] / us[name]:.2f}",
                f"{1 / us[name]:.2f}",
                f"{self.best[name]['error']:.0e}",
            ]
            for name in us
        ]
        return table(("program", "us/step", "CPU us/step", "times as fast", "million steps a second", "energy error"), rows)


def run() -> Section:
    with contextlib.ExitStack() as own:
        pool = own.enter_context(ProcessPoolExecutor(CORES))
        list(pool.map(int, range(CORES)))  # forks before there are threads
        peer = has_heyoka()
        smooth = Measured(pendulums(pool, None, peer), STEPS)
        bounces = Measured(impacts.contenders(CORES, pool, None, peer), impacts.STEPS)
        client = cluster(own)  # its processes take some of the cores' time even if they have nothing to do
        for measured, every in (
            (smooth, pendulums(pool, client, peer)),
            (bounces, impacts.contenders(CORES, pool, client, peer)),
        ):
            measured.add({name: contender for name, contender in every.items() if "Dask" in name})
    us, cpu = smooth.us, smooth.cpu
    single, lanes, threads, both = list(us)[:4]
    width, (alone, together) = int(smooth.best[lanes]["lanes"]), (smooth.best[name]["iterations"] for name in (single, lanes))
    ratio = {"lanes": us[single] / us[lanes], "threads": us[single] / us[threads], "both": us[lanes] / us[both]}
    load = os.getloadavg()[0]
    more = [100 * (cpu[many] / cpu[one] - 1) for one, many in ((single, threads), (lanes, both))]
    one, many = list(bounces.us)[:2]
    walls = bounces.us[one] / bounces.us[many], 100 * (bounces.cpu[many] / bounces.cpu[one] - 1)
    body = f"""
{MEMBERS} double pendulums from angles around those of Example 2 of Jay (1996), {STEPS:,} steps of h = {H} with the 3-stage
Lobatto IIIA-IIIB method, only the ends stored: microseconds of wall time for a step of one trajectory, the least of {ROUNDS}
rounds that alternate between the programs. For heyoka and SciPy a step is the same stretch of time, {H}; their tolerances,
{TOLERANCE["heyoka"]:.0e} and {TOLERANCE["SciPy"]:.0e}, give about the same error of the energy at the end. heyoka's equations
are in the two angles, without constraints. Dask's time is that of the whole call, with all that travels between processes.

{smooth.table()}

In one thread, vectors of {width} trajectories are {ratio["lanes"]:.2f} times as fast as one after the other; all lanes wait for
the slowest, so that a step takes {together:.1f} iterations instead of {alone:.1f}. {CORES} threads are {ratio["threads"]:.2f}
times as fast as one, with vectors {ratio["both"]:.2f} times. They take {more[0]:.0f} % and {more[1]:.0f} % more CPU time than
one thread, which bounds what is lost to them where each has a core to itself; while this was measured, {load:.1f} processes
wanted the {CORES} cores.

{impacts.MEMBERS} vertical cart-pendulums that bounce on their floor, {impacts.STEPS:,} steps of h = {impacts.H} with
`da.CVA()`, or steps ten times as long with `da.CVA(da.Gauss(stages=2))`, about {bounces.best[one]["impacts"]:.0f} impacts each,
which are counted in the loop. heyoka has the tolerance {impacts.TOLERANCE["heyoka"]:.0e} and a terminal event whose callback,
in Python, reflects the velocity; in threads, callbacks wait for Python's lock. SciPy begins anew after every event, with the
tolerance {impacts.TOLERANCE["SciPy"]:.0e}.

{bounces.table()}

{CORES} threads are {walls[0]:.2f} times as fast as one and take {walls[1]:.0f} % more CPU time. Making a run for every member,
which is Python's work, is part of these times.
"""
    return Section("Ensembles", body)


if __name__ == "__main__":
    print(run().body)
