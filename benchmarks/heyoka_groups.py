"""Many trajectories by heyoka, one by one or side by side in a batch, in one thread or in all."""

from __future__ import annotations

import time
from typing import Any

import numpy as np


def propagated(hy: Any, original: Any, initial: np.ndarray, until: float, threads: bool, *, events: bool = False) -> tuple:
    """The last states of the columns of `initial`, as columns, and the seconds and the CPU seconds that they took."""
    batch = isinstance(original, hy.taylor_adaptive_batch_dbl)
    width = original.batch_size if batch else 1

    def begin(integrator: Any, k: int) -> Any:
        if batch:
            integrator.set_time(0.0)
        else:
            integrator.time = 0.0
        if events:
            integrator.reset_cooldowns()
        part = initial[:, k * width : (k + 1) * width]
        integrator.state[:] = part if batch else part[:, 0]
        return integrator

    groups, ends = initial.shape[1] // width, np.empty_like(initial)
    began, cpu_began = time.perf_counter(), time.process_time()
    if threads:
        results = hy.ensemble_propagate_until(original, until, groups, begin, algorithm="thread")
        final = [result[0].state for result in results]
    else:
        final = []
        for k in range(groups):
            begin(original, k).propagate_until(until)
            final.append(original.state.copy())
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    for k, state in enumerate(final):
        ends[:, k * width : (k + 1) * width] = np.asarray(state).reshape(len(initial), width)
    return ends, seconds, cpu
