"""`simulate_many`: many trajectories of one system at once, which differ in initial values or parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from dalembert._progress import preparing
from dalembert.compiler import reductions
from dalembert.errors import InputError
from dalembert.mechanisms import Mechanism
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.runs._accurate_many import accurate_many
from dalembert.runs._arguments import Arguments, GivenRun, Policy
from dalembert.runs._default_method import default_method
from dalembert.runs._drivers import driver_of
from dalembert.runs._ensemble import Ensemble, Reduction
from dalembert.runs._problem import Problem, stated
from dalembert.runs._sweep import run_members
from dalembert.systems import System

__all__ = ["Ensemble", "Reduction", "simulate_many"]


def simulate_many(
    system: System | Problem | Mechanism,
    method: OneStepMethod | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    save_every: int | None = None,
    reduce: Sequence[str] | Mapping[str, Any] = (),
    save_to: str | os.PathLike[str] | None = None,
    executor: Any = None,
    workers: int | None = None,
    simd: bool | None = None,
    newton_tolerance: float | None = None,
    stage_multipliers: bool = False,
    **given: Unpack[GivenRun],
) -> Ensemble:
    """Integrate many trajectories of `system`, the members, which differ in initial values or parameters.

    Arguments are those of `da.simulate`; any initial value and any parameter may have a leading axis, one row a member (`start`
    may be a list of states), and what has none is the same for all. All members share compiled programs, and `workers` threads
    (by default as many as the machine has cores) carry them through their steps without Python's lock. A member that fails does
    not stop the others: `status` and `message` say what became of each. Ctrl-C returns what was computed.

    With `rtol`, or `atol`, as in `da.simulate`, one h is chosen for all members, and the method, too, if none is given, from
    short runs of some of them. Every member is compared with its run with h/2, and all are made again with smaller steps if
    one fails or is not exact enough: `runs.error` are the estimated errors, `runs.choice` the reason, and how many members
    failed with every h. A member that no h makes exact enough is refused by its number. It costs three runs.

    `simd` chooses whether members are computed side by side in vectors of the machine, by default where it is faster. With
    `simd=False` every member is bit for bit what `da.simulate` gives; with vectors it is the same to round-off. Methods for
    contact carry members one by one, whose impacts are in different steps.

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
    reduces, tolerant = not isinstance(reduce, tuple) or len(reduce) > 0, rtol is not None or atol is not None
    own: dict[str, Any] = {"save_every": save_every if save_every is not None or (reduces and tolerant) else 1}
    own |= {"newton_tolerance": newton_tolerance, "stage_multipliers": stage_multipliers}
    progress, posed = given.pop("progress", None), stated(system)[0]
    chosen = default_method(posed) if method is None and not tolerant and isinstance(posed, System) else method
    arguments = Arguments.of("simulate_many", system, chosen, given, **own)
    if reduces:
        refuse_varying(method, "reduce= of da.simulate_many")
    policy: dict[str, Any] = {"progress": progress, "executor": executor, "workers": workers, "simd": simd}
    policy["drawing"] = arguments.drawing

    def execute(arguments: Arguments, wanted: bool = True) -> Ensemble:
        spec = arguments.many()
        if not wanted:
            return run_members(replace(spec, stage_multipliers=not spec.system.linear_in_multipliers), Policy(**policy))
        quantities, counted = reductions(reduce, spec.system)
        if counted and not driver_of(spec.method).has_impacts:
            raise InputError(f'reduce names "impacts", of which {method} makes none: read runs.contacts, and leave them out')
        if save_every is None and not tolerant and (quantities or counted):
            spec = replace(spec, save_every=max(spec.steps, 1))
        return run_members(spec, Policy(**policy, save_to=save_to, quantities=quantities, counted=counted))

    with preparing(progress):
        return accurate_many(arguments, rtol, atol, execute, save_to) if tolerant else execute(arguments)
