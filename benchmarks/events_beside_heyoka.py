"""Single long runs of the bouncing cart-pendulum: da.CVA beside heyoka's terminal events, CPU time and error.

python benchmarks/events_beside_heyoka.py [end time]
"""

from __future__ import annotations

import sys
import time

import bench_ensemble_impacts as ensemble
import numpy as np
from bench_impacts import cart_pendulum
from common import table

import dalembert as da

STARTS, TURNS = 3, 12
SYSTEM = cart_pendulum()
TOLERANCES = (1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
GAUSS = ((2, 0.5), (2, 0.25), (2, 0.125), (3, 0.4), (3, 0.2))
METHODS = ((da.CVA(), 0.02), *((da.CVA(da.Gauss(stages=s)), h) for s, h in GAUSS))


def heyoka(integrator, q: np.ndarray, end: float) -> tuple[float, float]:
    """CPU seconds of a run, and how far its energy is off at the end."""
    start = np.array([*q, 0.0, 1.0])
    integrator.time = 0.0
    integrator.reset_cooldowns()
    integrator.state[:] = start
    began = time.thread_time()
    integrator.propagate_until(end)
    return time.thread_time() - began, abs(float(ensemble.energy(integrator.state) - ensemble.energy(start)))


def dalembert(method: da.CVA, h: float, q: np.ndarray, end: float) -> tuple[float, float]:
    """The same of the whole call of `da.simulate`, the model and its kernels being ready."""
    steps, began = round(end / h), time.thread_time()
    run = da.simulate(SYSTEM, method, q0=q, v0=[0, 1], h=h, steps=steps, save_every=steps, progress=False)
    return time.thread_time() - began, abs(float(run.energy[-1] - run.energy[0]))


def main(end: float) -> None:
    integrators = {}
    for tolerance in TOLERANCES:
        ensemble.TOLERANCE["heyoka"] = tolerance
        ensemble.heyoka_integrator.cache_clear()
        integrators[f"heyoka, tolerance {tolerance:g}"] = ensemble.heyoka_integrator()[1]
    cases = {name: (lambda q, own=own: heyoka(own, q, end)) for name, own in integrators.items()}
    cases |= {f"{method}, h = {h:g}": (lambda q, m=method, h=h: dalembert(m, h, q, end)) for method, h in METHODS}
    seconds, errors = np.full((len(cases), STARTS), np.inf), np.zeros((len(cases), STARTS))
    for _ in range(TURNS):  # in turn, so that other work on the machine disturbs all alike
        for k, case in enumerate(cases.values()):
            for j, q in enumerate(ensemble.starts(STARTS)):
                taken, errors[k, j] = case(q)
                seconds[k, j] = min(seconds[k, j], taken)
    means = [(1e3 * s.mean(), np.sqrt((e**2).mean())) for s, e in zip(seconds, errors, strict=True)]
    rows = [[name, f"{ms:.1f}", f"{error:.0e}"] for name, (ms, error) in zip(cases, means, strict=True)]
    print(table(("program", "CPU ms", "energy error"), rows))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 4000.0)
