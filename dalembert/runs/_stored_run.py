"""A single run on disk, written chunk by chunk: begun by `simulate(..., save_to=)`, continued by `resume`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert._progress import ProgressLine
from dalembert.engine._records import rows_of
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, StepFailed
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import Policy
from dalembert.runs._drivers import driver_of, make_run, prepared
from dalembert.runs._model_identity import check_model, check_same_method, identity, plain
from dalembert.runs._trajectory import StoredTrajectory, start_of
from dalembert.storage._groups import CHUNK_NUMBERS
from dalembert.storage._on_disk import check_target, locked, zarr_module
from dalembert.storage._run_store import Checkpoint, Header, Progress, RunStore
from dalembert.systems import State, System

if TYPE_CHECKING:
    from dalembert.engine._run import Run


def stream(spec: RunSpec, policy: Policy) -> StoredTrajectory:
    """A new run that is written to disk while it goes on."""
    if spec.t_end is not None:
        raise InputError(
            "a stored run of steps that vary has a number of steps: give steps= in place of t1=, or leave save_to out"
        )
    system, steps, save_every, target = spec.system, spec.steps, spec.save_every, Path(policy.save_to)
    n, stored_multipliers = system.n_state, system.n_multipliers if spec.stage_multipliers else 0
    zarr_module()
    check_target(target, 8 * (steps // save_every + 1) * (1 + n + stored_multipliers))
    start = prepared(spec).start
    assert isinstance(start, State)
    clock, recorded = spec.method.clock_names, driver_of(spec.method).recorded(system)
    stage = (("stage_lam", system.n_holonomic), ("stage_psi", system.n_nonholonomic)) if spec.stage_multipliers else ()
    header = Header(
        h=spec.h,
        t0=start.t,
        steps=steps,
        save_every=save_every,
        chunk=max(1, CHUNK_NUMBERS // (n * save_every)),
        blocks=system.state_blocks,
        stage=stage,
        clock=clock,
        parameters=plain(system.parameters.unflatten(start.theta)),
        theta=start.theta.tolist(),
        start=start.packed.tolist(),
        multipliers=start.multipliers.tolist(),
        newton_tolerance=spec.newton_tolerance,
        records=recorded.name,
        directions=recorded.directions,
        names={name: list(labels) for name, labels in system.names.items()},
        **identity(system, spec.method),
    )
    run = _new_run(header, system, spec.method)
    row, stats = run.stored(run.rows[0]).copy(), dict.fromkeys(_counted(run), 0.0)
    begin = Checkpoint(0, row, np.zeros(n + len(clock)), stats, run.walls)
    store = RunStore.create(target, header, begin)
    with locked(target):
        return _run_to_end(store, run, policy)


def resume_run(path: Any, system: System, method: OneStepMethod, steps: Any, policy: Policy) -> StoredTrajectory:
    """Continue a run from its last checkpoint to its end, or to another number of steps."""
    store = RunStore.open(path)
    header = store.header
    check_model(store.path, vars(header), system)
    check_same_method(store.path, vars(header), system, method)
    if steps in (None, header.steps) and store.progress.status == "done":
        return StoredTrajectory(store, system, start_of(header, system), method, policy.drawing)
    with locked(store.path):
        store = RunStore.open(path)  # another process may have gone on with it
        steps, least = store.header.steps if steps is None else steps, max(store.checkpoint.step, store.progress.steps)
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < least:
            said = f"steps is the total number of steps, at least the {least} that are done, none of which is thrown away"
            raise InputError(f"{said}; got {steps!r}")
        run = _new_run(replace(header, steps=int(steps)), system, method)
        return _run_to_end(store.resumed(int(steps)), run, policy)


def _new_run(header: Header, system: System, method: OneStepMethod) -> Run:
    start, stage = start_of(header, system), bool(header.stage)
    numbers = (header.h, header.steps, header.save_every, header.newton_tolerance, stage)
    return make_run(RunSpec(system, method, start, *numbers, alone=True), room=header.chunk + 2)


def _run_to_end(store: RunStore, run: Run, policy: Policy) -> StoredTrajectory:
    """Run from the last checkpoint to the end, committing chunk by chunk.

    Every chunk starts afresh from its checkpoint, so that it does not matter whether this process computed the chunk before.
    """
    header, before = store.header, store.checkpoint
    line = ProgressLine(header.steps - before.step, policy.progress)
    status, message = "running", ""
    try:
        while status == "running":
            point = store.checkpoint
            run.begin(point.row, point.compensation, point.step, point.walls)
            last = min(header.steps, point.step + header.chunk_steps)
            reason = run.advance(lambda done: line.update(done - before.step), last)
            if reason is not None:
                status, message = "failed", f"step {run.steps_done + 1} from t = {run.time:.6g} failed: {reason}"
            elif run.steps_done < point.step + header.chunk_steps:
                status = "done"
            else:
                store = _complete_chunk(store, run, before)
    except KeyboardInterrupt:
        status = "interrupted"
        message = f"interrupted after {run.steps_done} of {header.steps} steps, at t = {run.time:.6g}; da.resume goes on"
        if run.settled and run.steps_done == store.checkpoint.step + header.chunk_steps:  # it came while this chunk was written
            store = _complete_chunk(store, run, before)
    except np.linalg.LinAlgError:
        status, message = "failed", f"the multipliers at t = {run.time:.6g} are not determined by the hidden constraints"
    finally:
        line.close()
    if status == "interrupted" and store.progress.rows and run.steps_done <= store.progress.steps:
        return _trajectory(store, run, policy)  # the store has more than was computed again
    ended = Progress(0, max(run.steps_done, store.checkpoint.step), status, message, _stats(run, before))
    store = store.commit(_tail(store, run), _events(header, run), ended)
    trajectory = _trajectory(store, run, policy)
    if status == "failed" and policy.on_failure == "raise":
        raise StepFailed(message + f" (what was computed before it is in {store.path})", trajectory)
    return trajectory


def _trajectory(store: RunStore, run: Run, policy: Policy) -> StoredTrajectory:
    assert isinstance(run.spec.start, State)
    return StoredTrajectory(store, run.spec.system, run.spec.start, run.spec.method, policy.drawing)


def _complete_chunk(store: RunStore, run: Run, before: Checkpoint) -> RunStore:
    """Write a whole chunk; the row after it begins the next one."""
    chunk, stats = store.header.chunk, _stats(run, before)
    walls, events = run.walls, _events(store.header, run)
    if walls.get("held"):  # a contact that may go on is noted when it is over
        found = events["contact"]
        contacts = [list(contact) for contact in zip(*vars(found).values(), strict=True)]
        over = np.array([contact not in walls["held"] for contact in contacts], dtype=bool)
        events["contact"] = rows_of(type(found), found, over)
    following = Checkpoint(run.steps_done, run.stored(run.rows[chunk]).copy(), run.compensation, stats, walls)
    written = Progress(0, run.steps_done - store.header.save_every, "running", "", stats)
    return store.commit(run.stored(run.rows[:chunk]), events, written, following)


def _events(header: Header, run: Run) -> dict[str, Any]:
    """The impacts and contacts of a run that may have some."""
    return {kind: getattr(run, f"{kind}s") for kind in header.recorded.kinds}


def _tail(store: RunStore, run: Run) -> np.ndarray:
    """The rows since the last checkpoint, and the last state even if its turn has not come."""
    since = run.steps_done - store.checkpoint.step
    if since <= 0:  # nothing was computed
        return store.checkpoint.row[None]
    saved, rest = divmod(since, run.save_every)
    return run.stored(np.vstack([run.rows[: saved + 1], *([run.row] if rest else [])]))


def _stats(run: Run, before: Checkpoint) -> dict[str, float]:
    """What the run took, in this process and in those before it, without chunks that were lost."""
    now = run.stats()
    return {name: before.stats.get(name, 0) + now[name] for name in _counted(run)}


def _counted(run: Run) -> list[str]:
    """The statistics that add up from chunk to chunk."""
    return [name for name in run.stats() if name != "steps"]
