"""Sweeps: the members of an ensemble in parts, computed here or by an executor, gathered in memory or in a Zarr store."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca

from dalembert._progress import ProgressLine
from dalembert.draw import Drawing
from dalembert.engine._spec import RunSpec
from dalembert.methods import OneStepMethod
from dalembert.parallel._executors import Results, on_executor, on_threads
from dalembert.runs._arguments import Policy
from dalembert.runs._ensemble import Ensemble
from dalembert.runs._from_tables import ensemble_of
from dalembert.runs._lengths import check_memory
from dalembert.runs._members import MembersJob, Starts, layout_of
from dalembert.runs._model_identity import check_model, check_same_method, identity
from dalembert.runs._path import positions
from dalembert.storage._groups import read_rows
from dalembert.storage._member_table import Layout, MemberTable
from dalembert.storage._on_disk import check_target, locked, zarr_module
from dalembert.storage._sweep_store import SweepStore
from dalembert.systems import Spheres, System
from dalembert.time_stepping._sphere_run import refuse_overlap

STORED_STARTS = ("t0", "start", "theta", "multipliers")
"""The names that `Starts` have in a store."""


def run_members(spec: RunSpec, policy: Policy) -> Ensemble:
    """Compute all members: at once, or in parts for an executor or for a store."""
    layout, starts = layout_of(spec, policy), Starts.of(spec)
    if isinstance(spec.system, Spheres):
        for member, q in enumerate(positions(spec.system, starts.packed)):
            refuse_overlap(spec.system, q, f"member {member}: ")
    if policy.save_to is None:
        check_memory(layout.members * (spec.steps // spec.save_every + 1) * 8 * layout.n_state)
        if policy.executor is not None:
            return _computed(spec, policy, layout, None)
        table = MembersJob.of(spec, policy)(starts, policy.progress)
        return ensemble_of(layout, starts, table, spec.system, spec.method, policy.drawing)
    zarr_module()
    _check_memory(layout, policy)
    target = Path(policy.save_to)
    check_target(target, layout.members * layout.bytes_per_member)
    given = dict(zip(STORED_STARTS, starts, strict=True))
    store = SweepStore.create(target, _header(spec, policy, layout), {"t": layout.times(starts.t[0]), **given})
    with locked(target):
        return _computed(spec, policy, layout, store)


def resume_sweep(path: Any, system: System, method: OneStepMethod, policy: Policy) -> Ensemble:
    """Compute the parts of a sweep that its store does not have."""
    store = SweepStore.open(path)
    header, layout = store.header, store.layout
    check_model(store.path, header, system)
    check_same_method(store.path, header, system, method)
    numbers = [header[name] for name in ("h", "steps", "save_every", "newton_tolerance", "stage_multipliers")]
    spec = RunSpec(system, method, _stored_starts(store).states(system), *numbers)
    quantities = {name: ca.Function.deserialize(text) for name, text in header["quantities"].items()}
    policy = replace(policy, quantities=quantities, counted=layout.counted, simd=header["simd"])
    _check_memory(layout, policy)
    with locked(store.path):
        store = SweepStore.open(path)  # other processes may have gone on with it
        if store.judgement["choice"] and len(store.parts) < -(-layout.members // layout.part):
            store.judged(None, "")  # what was said of its errors was said of the sweep as it was
        return replace(_computed(spec, policy, layout, store), **store.judgement)


def load_sweep(path: Any, system: System | None = None, drawing: Drawing | None = None) -> Ensemble:
    """A sweep on disk, with its model if that is given."""
    store = SweepStore.open(path)
    if system is not None:
        check_model(store.path, store.header, system)
    found = ensemble_of(store.layout, _stored_starts(store), store.table(), system, None, drawing)
    return replace(found, **store.judgement)


def _stored_starts(store: SweepStore) -> Starts:
    return Starts(*(read_rows(store.array(name)) for name in STORED_STARTS))


def _header(spec: RunSpec, policy: Policy, layout: Layout) -> dict[str, Any]:
    return {
        **vars(layout),
        **identity(spec.system, spec.method),
        "quantities": {name: function.serialize() for name, function in policy.quantities.items()},
        "newton_tolerance": spec.newton_tolerance,
        "simd": policy.simd,
    }


def _check_memory(layout: Layout, policy: Policy) -> None:
    """Refuse a sweep of which the parts that are computed at the same time do not fit into memory."""
    at_once = _parts_at_once(policy, layout.part) if policy.executor is None else 1
    members = min(layout.members, layout.part * at_once)
    what = f"the {members} members of a sweep that are computed at once"
    advice = "store fewer states with save_every=, make a sweep of fewer members, whose parts are smaller, or write every "
    check_memory(members * layout.bytes_per_member, what, advice + "member on its own with da.simulate(..., save_to=...)")


def _computed(spec: RunSpec, policy: Policy, layout: Layout, store: SweepStore | None) -> Ensemble:
    """Compute parts into memory, or those that a store does not have; Ctrl-C keeps what is there."""
    spec = replace(spec, alone=True)  # parts may be computed by other processes, and later
    starts, size, done = Starts.of(spec), layout.part, 0
    table: MemberTable | SweepStore = MemberTable.empty(layout) if store is None else store
    missing = [part for part in range(-(-layout.members // size)) if store is None or part not in store.parts]
    parts = {part: starts.rows(slice(part * size, (part + 1) * size)) for part in missing}
    job = MembersJob.of(spec, policy)
    results = _on_threads(job, parts, size) if policy.executor is None else on_executor(policy.executor, job, parts)
    with (
        contextlib.suppress(KeyboardInterrupt),
        ProgressLine(layout.members, policy.progress, "members") as line,
        contextlib.closing(results),
    ):
        for part, found in results:
            if not found.complete(layout.steps):
                break
            table.write(part * size, found)
            done += len(found)
            line.update(done)
    gathered = table if isinstance(table, MemberTable) else table.table()
    return ensemble_of(layout, starts, gathered, spec.system, spec.method, policy.drawing)


def _threads(policy: Policy) -> int:
    return policy.workers or os.cpu_count() or 1


def _parts_at_once(policy: Policy, size: int) -> int:
    """How many parts of so many members this process computes at a time: several where they have fewer members than threads."""
    return max(1, _threads(policy) // size)


def _on_threads(job: MembersJob, parts: dict[int, Starts], size: int) -> Results:
    """The parts in this process, which are stopped when no more of them are wanted."""
    at_once = min(_parts_at_once(job.policy, size), max(1, len(parts)))
    job = replace(job, policy=replace(job.policy, workers=max(1, _threads(job.policy) // at_once)))
    running: dict[int, Any] = {}
    over = threading.Event()

    def began(run: Any) -> None:
        running[threading.get_ident()] = run
        if over.is_set():
            run.stop.set()

    def stop() -> None:
        over.set()
        for run in list(running.values()):
            run.stop.set()

    return on_threads(functools.partial(job, began=began), parts, at_once, stop)
