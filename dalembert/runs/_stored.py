"""Runs on disk: `simulate(..., save_to=)` and `resume` write them chunk by chunk, `load` reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca
import numpy as np

from dalembert._progress import ProgressLine
from dalembert._version import __version__
from dalembert.contact._records import KINDS, Contacts, rows_of
from dalembert.draw import Drawing
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, StepFailed
from dalembert.methods import OneStepMethod
from dalembert.runs._drivers import make_run, prepared
from dalembert.runs._problem import Problem
from dalembert.runs._same_model import check_model, check_same_method, equations_hash, plain
from dalembert.runs._stored_trajectory import StoredTrajectory, start_of
from dalembert.runs._sweeps import load_sweep, resume_sweep
from dalembert.runs._trajectory import Trajectory
from dalembert.storage._groups import CHUNK_NUMBERS, check_target, read_attributes, zarr_module
from dalembert.storage._run_store import Checkpoint, Header, Progress, RunStore
from dalembert.storage._sweep_store import SweepStore
from dalembert.systems import State, System

if TYPE_CHECKING:
    from dalembert.engine._run import Run

__all__ = ["StoredTrajectory", "load", "resume"]


def stream(
    path: str | os.PathLike[str], spec: RunSpec, progress: bool | None, on_failure: str, drawing: Drawing | None
) -> StoredTrajectory:
    """A new run that is written to disk while it goes on."""
    system, method, steps, save_every = spec.system, spec.method, spec.steps, spec.save_every
    stage_multipliers = spec.stage_multipliers
    zarr_module()
    target, n = Path(path), system.n_state
    check_target(target, 8 * (steps // save_every + 1) * (1 + n + stage_multipliers * system.n_multipliers))
    start = prepared(spec).start
    assert isinstance(start, State)
    stage = (("stage_lam", system.n_holonomic), ("stage_psi", system.n_nonholonomic)) if stage_multipliers else ()
    header = Header(
        h=spec.h,
        t0=start.t,
        steps=steps,
        save_every=save_every,
        chunk=max(1, CHUNK_NUMBERS // (n * save_every)),
        blocks=system.state_blocks,
        stage=stage,
        method=str(method),
        equations=equations_hash(system, method),
        fingerprint=system.fingerprint,
        parameters=plain(system.parameters.unflatten(start.theta)),
        defaults=plain(system.params),
        theta=start.theta.tolist(),
        start=start.packed.tolist(),
        multipliers=start.multipliers.tolist(),
        newton_tolerance=spec.newton_tolerance,
        dalembert=__version__,
        casadi=ca.CasadiMeta.version(),
        walls=system.n_unilateral,
    )
    run = _new_run(header, system, method)
    begin = Checkpoint(0, run.rows[0].copy(), np.zeros(n), dict.fromkeys(_counted(run), 0))
    return _carry_on(RunStore.create(target, header, begin), system, method, run, progress, on_failure, drawing)


def _new_run(header: Header, system: System, method: OneStepMethod) -> Run:
    start, stage = start_of(header, system), bool(header.stage)
    spec = RunSpec(system, method, start, header.h, header.steps, header.save_every, header.newton_tolerance, stage)
    return make_run(spec, room=header.chunk + 2)


def _carry_on(
    store: RunStore,
    system: System,
    method: OneStepMethod,
    run: Run,
    progress: bool | None,
    on_failure: str,
    drawing: Drawing | None,
) -> StoredTrajectory:
    """Run from the last checkpoint to the end, committing chunk by chunk.

    Every chunk starts afresh from its checkpoint, so that it does not matter whether this process computed the chunk before.
    """
    header, before = store.header, store.checkpoint
    line = ProgressLine(header.steps - before.step, progress)
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
        return StoredTrajectory(store, system, run.start, method, drawing)  # the store has more than was computed again
    ended = Progress(0, max(run.steps_done, store.checkpoint.step), status, message, _stats(run, before))
    store = store.commit(_tail(store, run), {kind: getattr(run, f"{kind}s") for kind in _kinds(header)}, ended)
    trajectory = StoredTrajectory(store, system, run.start, method, drawing)
    if status == "failed" and on_failure == "raise":
        raise StepFailed(message + f" (what was computed before it is in {store.path})", trajectory)
    return trajectory


def _complete_chunk(store: RunStore, run: Run, before: Checkpoint) -> RunStore:
    """Write a whole chunk; the row after it begins the next one."""
    chunk, stats = store.header.chunk, _stats(run, before)
    walls, events = run.walls, {kind: getattr(run, f"{kind}s") for kind in _kinds(store.header)}
    if events:  # a contact that may go on is noted when it is over
        here = [list(contact) for contact in zip(*vars(events["contact"]).values(), strict=True)]
        events["contact"] = rows_of(Contacts, events["contact"], np.array([c not in walls["held"] for c in here], dtype=bool))
    following = Checkpoint(run.steps_done, run.rows[chunk].copy(), run.compensation, stats, walls)
    written = Progress(0, run.steps_done - store.header.save_every, "running", "", stats)
    return store.commit(run.rows[:chunk], events, written, following)


def _kinds(header: Header) -> Iterable[str]:
    """The kinds of events that a run may have."""
    return KINDS if header.walls else ()


def _tail(store: RunStore, run: Run) -> np.ndarray:
    """The rows since the last checkpoint, and the last state even if its turn has not come."""
    since = run.steps_done - store.checkpoint.step
    if since <= 0:  # nothing was computed
        return store.checkpoint.row[None]
    whole, rest = divmod(since, run.save_every)
    return np.vstack([run.rows[: whole + 1], *([run.row] if rest else [])])


def _stats(run: Run, before: Checkpoint) -> dict[str, float]:
    """What the run took, in this process and in those before it, without chunks that were lost."""
    now = run.stats()
    return {name: before.stats[name] + now[name] for name in _counted(run)}


def _counted(run: Run) -> list[str]:
    """The statistics that add up from chunk to chunk."""
    return [name for name in run.stats() if name != "steps"]


def resume(
    path: str | os.PathLike[str],
    system: System | Problem,
    method: OneStepMethod,
    *,
    steps: int | None = None,
    progress: bool | None = None,
    on_failure: Literal["raise", "return"] = "raise",
    executor: Any = None,
    workers: int | None = None,
) -> Any:
    """Go on with a run that `simulate(..., save_to=path)` began, bit for bit as if it had never stopped.

    The model and the method are not in the store: give those that the run was started with, which is checked. Initial values,
    step size and parameters come from the store. The chunk that was under way when the run stopped is computed again. `steps`
    replaces the total number of steps, so that a finished run can be made longer.

    Of a sweep that `simulate_many(..., save_to=path)` began, the missing parts are computed, by `executor` or in `workers`
    threads.

    Example:
        >>> import os, tempfile, numpy as np, dalembert as da
        >>> folder, pendulum, method = tempfile.mkdtemp(), da.problems.pendulum(), da.Rattle()
        >>> paths = [os.path.join(folder, name) for name in ("whole.zarr", "halves.zarr")]
        >>> whole = da.simulate(pendulum, method, h=0.01, steps=2000, save_to=paths[0])
        >>> half = da.simulate(pendulum, method, h=0.01, steps=1000, save_to=paths[1])
        >>> halves = da.resume(paths[1], pendulum, method, steps=2000)
        >>> np.array_equal(whole.q, halves.q)
        True

    """
    drawing = system.drawing if isinstance(system, Problem) else None
    system = system.system if isinstance(system, Problem) else system
    if is_sweep(path):
        if steps is not None:
            raise InputError(f"the runs of the sweep {path} have the length that they began with: leave steps= out")
        return resume_sweep(path, system, method, executor, workers, progress)
    if executor is not None or workers is not None:
        raise InputError(f"{path} is a single run, which one processor computes: leave executor= and workers= out")
    store = RunStore.open(path)
    check_model(store.path, vars(store.header), system)
    if on_failure not in ("raise", "return"):
        raise InputError(f'on_failure is "raise" or "return"; got {on_failure!r}')
    header = store.header
    check_same_method(store.path, vars(header), system, method)
    least, steps = store.checkpoint.step, header.steps if steps is None else steps
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < least:
        raise InputError(f"steps is the total number of steps, at least the {least} that are done; got {steps!r}")
    steps = int(steps)
    if steps == header.steps and store.progress.status == "done":
        return StoredTrajectory(store, system, start_of(header, system), method, drawing)
    run = _new_run(replace(header, steps=steps), system, method)
    return _carry_on(store.going_on(steps), system, method, run, progress, on_failure, drawing)


def is_sweep(path: str | os.PathLike[str]) -> bool:
    """Whether a store holds many runs."""
    return read_attributes(Path(path)).get("kind") == SweepStore.KIND


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `run.save` or `save_to=` wrote: a `Trajectory`, or the `Ensemble` of a sweep.

    Nothing in it is executed; the model is not in it. A store can be read while it is written: what is complete is there.
    """
    if os.path.isdir(path) and is_sweep(path):
        return load_sweep(path)
    return Trajectory.load(path)
