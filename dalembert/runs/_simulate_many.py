"""`simulate_many`: many trajectories of one system at once, which differ in initial values or parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dalembert.compiler import build_watch, reductions
from dalembert.engine._spec import RunSpec
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import (
    check_memory,
    check_method,
    check_simd,
    check_stage_multipliers,
    count,
    given_values,
    number_of_steps,
    positive,
    problem_length,
    thread_count,
)
from dalembert.runs._ensemble import Ensemble, Reduction, ensemble_of
from dalembert.runs._ensemble_execution import run_ensemble
from dalembert.runs._problem import Problem
from dalembert.runs._sweep import Sweep
from dalembert.runs._sweeps import run_sweep
from dalembert.systems import State, System
from dalembert.systems._states import States, states_at

__all__ = ["Ensemble", "Reduction", "simulate_many"]


def simulate_many(
    system: System | Problem,
    method: OneStepMethod,
    *,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    y0: Any = None,
    z0: Any = None,
    lam0: Any = None,
    psi0: Any = None,
    start: State | Sequence[State] | None = None,
    h: float | None = None,
    steps: int | None = None,
    t1: float | None = None,
    t0: float | None = None,
    save_every: int | None = None,
    params: Mapping[str, Any] | None = None,
    reduce: Sequence[str] | Mapping[str, Any] = (),
    save_to: str | os.PathLike[str] | None = None,
    executor: Any = None,
    workers: int | None = None,
    simd: bool | None = None,
    progress: bool | None = None,
    newton_tolerance: float | None = None,
    stage_multipliers: bool = False,
) -> Ensemble:
    """Integrate many trajectories of `system`, the members, which differ in initial values or parameters.

    Arguments are those of `da.simulate`; any initial value and any parameter may have a leading axis, one row a member (`start`
    may be a list of states), and what has none is the same for all. All members share compiled programs, and `workers` threads
    (by default as many as the machine has cores) carry them through their steps without Python's lock. A member that fails does
    not stop the others: `status` and `message` say what became of each. Ctrl-C returns what was computed.

    `simd` chooses whether members are computed side by side in vectors of the machine, by default where it is faster. With
    `simd=False` every member is bit for bit what `da.simulate` gives; with vectors it is the same to round-off. Collision
    integrators carry members one by one, their impacts being in different steps.

    `reduce` names what is followed at every step without being stored: "energy", "residuals", or {name: function of the state}.
    `runs.reduced[name]` then has the `first`, `last`, `min`, `max`, `range`, `mean` and `slope` of every member, and, unless
    `save_every` is given, only the first and the last state are stored, so that memory does not grow with the length. "impacts"
    are counted instead of stored: how many, their impulses, energies and the time of the last (`ImpactReduction`).

    `executor` is a `concurrent.futures` executor or a Dask `Client`, whose workers then compute parts of the ensemble, each in
    `workers` threads (by default one); parts of lost workers are computed again. `save_to="sweep.zarr"` writes the parts into
    one Zarr store as they become ready, and `da.resume` computes those that are missing. A part, of eight
    members or fewer unless there are more than 2048, is in memory with all its stored states until it is written: whether it
    fits is checked before anything is computed.

    Example:
        >>> import numpy as np, dalembert as da
        >>> angle = np.linspace(0.1, 1.5, 100)
        >>> q0 = np.stack([np.sin(angle), -np.cos(angle)], axis=1)
        >>> runs = da.simulate_many(da.problems.pendulum(), da.LobattoIIIAB(3), q0=q0, p0=[0, 0], h=0.1, steps=1000,
        ...                         reduce={"energy": "energy", "height": lambda q: q[1]})
        >>> runs.q.shape, bool(runs.reduced["energy"].range.max() < 1e-5)
        ((100, 2, 2), True)

    """
    h, steps = problem_length(system, h, steps, t1)
    drawing = system.drawing if isinstance(system, Problem) else None
    initial = {"q0": q0, "v0": v0, "p0": p0, "y0": y0, "z0": z0, "lam0": lam0, "psi0": psi0}
    model, states = initial_states(system, start=start, t0=t0, params=params, **initial)
    check_method(method, model, "simulate_many")
    h = positive("h", h)
    steps = number_of_steps(steps, t1, float(states.t[0]), h)
    quantities, counted = reductions(reduce, model)
    if save_every is None:
        save_every = max(steps, 1) if quantities or counted else 1
    save_every = count("save_every", save_every, least=1)
    workers, simd = thread_count(workers, executor), check_simd(simd)
    if save_to is None:
        check_memory(len(states) * (steps // save_every + 1) * 8 * model.n_state)
    if newton_tolerance is not None:
        newton_tolerance = positive("newton_tolerance", newton_tolerance)
    check_stage_multipliers(method, stage_multipliers)
    stage_multipliers = bool(stage_multipliers) or not model.linear_in_multipliers
    spec = RunSpec(model, method, states, h, steps, save_every, newton_tolerance, stage_multipliers)
    if executor is not None or save_to is not None:
        sweep = Sweep(spec, quantities, simd, workers, counted)
        return replace(run_sweep(sweep, executor, save_to, progress), drawing=drawing)
    watch = build_watch(model, quantities) if quantities else None
    run = run_ensemble(spec, watch=watch, workers=workers, simd=simd, progress=progress, tally_impacts=bool(counted))
    return replace(ensemble_of(run, counted), drawing=drawing)


def initial_states(
    system: System | Problem, *, start: State | Sequence[State] | None, t0: float | None, params: Any, **initial: Any
) -> tuple[System, States]:
    """The system and the members' initial states; a problem brings what is not given."""
    model, t0, given = given_values(system, start is not None, t0, initial)
    return model, states_at(model, t0=0.0 if t0 is None else t0, params=params, start=start, **given)
