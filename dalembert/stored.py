"""Runs on disk: `simulate(..., save_to=)` and `resume` write them chunk by chunk, `StoredTrajectory` reads them as needed."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca
import numpy as np

from dalembert._events import KINDS, Contacts, Impacts, from_columns, rows_of
from dalembert._run_store import (
    CHUNK_NUMBERS,
    Checkpoint,
    Header,
    Progress,
    RunStore,
    check_target,
    read_attributes,
    zarr_module,
)
from dalembert._sweep_store import KIND as SWEEP
from dalembert.compiler._program import reduced_step
from dalembert.draw import Drawing
from dalembert.errors import InputError, StepFailed
from dalembert.impacts import CollisionIntegrator
from dalembert.impacts._program import event_program
from dalembert.methods import OneStepMethod
from dalembert.problems._problem import Problem
from dalembert.progress import ProgressLine
from dalembert.simulation import prepared, regular_start
from dalembert.systems import MechanicalSystem, State, System
from dalembert.systems._consistent import unpack
from dalembert.trajectory import Trajectory

if TYPE_CHECKING:
    from dalembert.engine._run import Run


class StoredArray:
    """An array on disk whose rows are read when they are asked for, as NumPy arrays: `run.states[1000:2000]`."""

    def __init__(self, array: Any, rows: int, chunk: int) -> None:
        self._array, self._rows, self._chunk = array, rows, chunk
        self.shape, self.dtype, self.ndim = (rows, *array.shape[1:]), array.dtype, array.ndim

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, index: Any) -> np.ndarray:
        rows, *columns = index if isinstance(index, tuple) else (index,)
        if isinstance(rows, slice):
            first, last, stride = rows.indices(self._rows)
            if stride > 0:
                return np.asarray(self._array[(slice(first, max(first, last), stride), *columns)])
        elif isinstance(rows, (int, np.integer)):
            if not -self._rows <= rows < self._rows:
                raise IndexError(f"row {rows} of {self._rows}")
            return np.asarray(self._array[(int(rows) % self._rows, *columns)])
        return np.asarray(self)[index]

    def __iter__(self) -> Iterator[np.ndarray]:
        for first in range(0, self._rows, self._chunk):
            yield from self[first : first + self._chunk]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        del copy  # what comes from the disk is always new
        return np.asarray(self[:], dtype=dtype)


class StoredTrajectory(Trajectory):
    """A trajectory whose states stay on disk.

    It has all that a `Trajectory` has. `states` is read in the parts that are asked for, `q`, `p`, `v`, `lam`, `energy` and
    `residuals` chunk by chunk; each is as long as the run once it is there, so for a run that is too long for that go through
    `chunks()`.

    Example:
        >>> import os, tempfile, dalembert as da
        >>> path = os.path.join(tempfile.mkdtemp(), "run.zarr")
        >>> run = da.simulate(da.problems.pendulum(), da.Rattle(), h=0.01, steps=10_000, save_every=10, save_to=path)
        >>> run.states[500:600].shape, bool(max(abs(part.residuals["g"]).max() for part in run.chunks()) < 1e-14)
        ((100, 4), True)

    """

    def __init__(
        self,
        store: RunStore,
        system: System | None = None,
        start: State | None = None,
        solver: OneStepMethod | None = None,
        drawing: Drawing | None = None,
    ) -> None:
        header, progress = store.header, store.progress
        status, message = progress.status, progress.message
        if status == "running":
            status = "interrupted"
            message = f"{progress.steps} of {header.steps} steps are stored; da.resume goes on from there"
        values = {
            "store": store,
            "states": self._stored(store, "states"),
            "blocks": header.blocks,
            "h": header.h,
            "method": header.method,
            "parameters": {name: np.array(value, dtype=float) for name, value in header.parameters.items()},
            "status": status,
            "message": message,
            "stats": {"steps": progress.steps, **progress.stats},
            "fingerprint": header.fingerprint,
            "system": system,
            "start": start,
            "solver": solver,
            "stage_lam": None,
            "stage_psi": None,
            "drawing": drawing,
            "_observed": {},
        }
        for name, size in header.stage:
            values[name] = self._stored(store, name) if size else np.zeros((progress.rows, 0))
        for name, value in values.items():
            object.__setattr__(self, name, value)

    store: RunStore

    @staticmethod
    def _stored(store: RunStore, name: str) -> StoredArray:
        return StoredArray(store.array(name), store.progress.rows, store.header.chunk)

    @functools.cached_property
    def t(self) -> np.ndarray:  # type: ignore[override]
        """The times, (time,)."""
        return self._times(0, len(self))

    def _times(self, first: int, last: int) -> np.ndarray:
        header = self.store.header
        return header.t0 + header.step_of(np.arange(first, last), self.store.progress.steps) * header.h

    @functools.cached_property
    def impacts(self) -> Impacts | None:  # type: ignore[override]
        """The impacts of a run by a collision integrator."""
        return self._events("impact")

    @functools.cached_property
    def contacts(self) -> Contacts | None:  # type: ignore[override]
        """Where impacts accumulated and a wall was touched for a while."""
        return self._events("contact")

    def _events(self, kind: str, first: int = 0, last: int | None = None) -> Any:
        if not self.store.header.walls:
            return None
        last = self.store.progress.events.get(kind, 0) if last is None else last
        return from_columns(KINDS[kind], kind, lambda name: np.asarray(self.store.array(name)[first:last]))

    def _events_in_chunks(self) -> Iterator[dict[str, Any]]:
        """For each chunk the impacts until the next one begins, and the contacts that begin before that."""
        header, rows = self.store.header, range(0, len(self), self.store.header.chunk)
        if not header.walls:
            yield from ({} for _ in rows)
            return
        when = {kind: self.store.array(f"{kind}_{name}")[...] for kind, name in (("impact", "t"), ("contact", "begin"))}
        when = {kind: times[: self.store.progress.events.get(kind, 0)] for kind, times in when.items()}
        first = dict.fromkeys(when, 0)
        for row in rows:
            whole = row + header.chunk >= len(self)
            end = np.inf if whole else self._times(row + header.chunk, row + header.chunk + 1)[0]
            last = {kind: int(np.searchsorted(times, end, side="right")) for kind, times in when.items()}
            yield {f"{kind}s": self._events(kind, first[kind], last[kind]) for kind in when}
            first = last

    def __len__(self) -> int:
        return self.store.progress.rows

    def __repr__(self) -> str:
        if not len(self):
            return f"<StoredTrajectory of 0 states in {self.store.path}, {self.method}, {self.status}>"
        first, last = self._times(0, 1)[0], self._times(len(self) - 1, len(self))[0]
        return (
            f"<StoredTrajectory of {len(self)} states in {self.store.path}, t = {first:g} to {last:g}, {self.method}, "
            f"{self.status}>"
        )

    def chunks(self) -> Iterator[Trajectory]:
        """The run in parts that fit into memory, one after the other, each a `Trajectory`."""
        for first, events in zip(range(0, len(self), self.store.header.chunk), self._events_in_chunks(), strict=True):
            rows = slice(first, min(len(self), first + self.store.header.chunk))
            yield Trajectory(
                t=self._times(rows.start, rows.stop),
                states=self.states[rows],
                stage_lam=None if self.stage_lam is None else self.stage_lam[rows],
                stage_psi=None if self.stage_psi is None else self.stage_psi[rows],
                **{name: getattr(self, name) for name in ("blocks", "h", "method", "parameters", "status", "message")},
                **{name: getattr(self, name) for name in ("stats", "fingerprint", "system", "start", "solver", "drawing")},
                **events,
            )

    def _map(self, name: str, rows: slice) -> np.ndarray:
        first, last, _ = rows.indices(len(self))
        chunk = self.store.header.chunk
        parts = [super(StoredTrajectory, self)._map(name, slice(k, min(last, k + chunk))) for k in range(first, last, chunk)]
        return np.concatenate(parts) if parts else super()._map(name, rows)

    @staticmethod
    def open(path: str | os.PathLike[str], system: System | None = None) -> StoredTrajectory:
        """Read a run that `save_to=` wrote, finished or not; with its model, also what follows from the states."""
        store = RunStore.open(path)
        if system is None:
            return StoredTrajectory(store)
        check_model(store, system)
        return StoredTrajectory(store, system, _start(store.header, system))


# -- writing ---------------------------------------------------------------------------------------------------------------


def stream(
    path: str | os.PathLike[str],
    system: System,
    method: OneStepMethod,
    start: State,
    h: float,
    steps: int,
    save_every: int,
    progress: bool | None,
    newton_tolerance: float | None,
    stage_multipliers: bool,
    on_failure: str,
    drawing: Drawing | None,
) -> StoredTrajectory:
    """A new run that is written to disk while it goes on."""
    import dalembert

    zarr_module()
    target, n = Path(path), system.n_state
    check_target(target, 8 * (steps // save_every + 1) * (1 + n + stage_multipliers * system.n_multipliers))
    with regular_start(method):
        start = prepared(system, method, start, h)
    stage = (("stage_lam", system.n_holonomic), ("stage_psi", system.n_nonholonomic)) if stage_multipliers else ()
    header = Header(
        h=h,
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
        newton_tolerance=newton_tolerance,
        dalembert=dalembert.__version__,
        casadi=ca.CasadiMeta.version(),
        walls=system.n_unilateral,
    )
    run = _new_run(header, system, method)
    begin = Checkpoint(0, run.rows[0].copy(), np.zeros(n), dict.fromkeys(_counted(run), 0))
    return _carry_on(RunStore.create(target, header, begin), system, method, run, progress, on_failure, drawing)


def _new_run(header: Header, system: System, method: OneStepMethod) -> Run:
    from dalembert.engine._run import make_run  # loads Numba

    numbers = (header.h, header.steps, header.save_every, header.newton_tolerance)
    with regular_start(method):
        return make_run(system, method, _start(header, system), *numbers, bool(header.stage), room=header.chunk + 2)


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
    ended = Progress(0, run.steps_done, status, message, _stats(run, before))
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
    if since == 0:
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
        from dalembert.cluster import resume_sweep

        if steps is not None:
            raise InputError(f"the runs of the sweep {path} have the length that they began with: leave steps= out")
        return resume_sweep(path, system, method, executor, workers, progress)
    if executor is not None or workers is not None:
        raise InputError(f"{path} is a single run, which one processor computes: leave executor= and workers= out")
    store = RunStore.open(path)
    check_model(store, system)
    if on_failure not in ("raise", "return"):
        raise InputError(f'on_failure is "raise" or "return"; got {on_failure!r}')
    header = store.header
    if not isinstance(method, OneStepMethod):
        raise InputError(f"the third argument of resume is the method of the run, {header.method}; got {method!r}")
    if str(method) != header.method:
        raise InputError(f"{store.path} was computed by {header.method}, not by {method}: give that method")
    method.check(system)
    if equations_hash(system, method) != header.equations:
        raise InputError(
            f"{method} writes other step equations here than in {store.path}, which was made by dalembert {header.dalembert}: "
            "give the same coefficients and functions, and the same version of dalembert"
        )
    if steps is not None and steps != header.steps:
        least = store.checkpoint.step
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < least:
            raise InputError(f"steps is the total number of steps, at least the {least} that are done; got {steps!r}")
        store = store.extended(int(steps))
    elif store.progress.status == "done":
        return StoredTrajectory(store, system, _start(header, system), method, drawing)
    return _carry_on(store, system, method, _new_run(store.header, system, method), progress, on_failure, drawing)


def is_sweep(path: str | os.PathLike[str]) -> bool:
    """Whether a store holds many runs."""
    return read_attributes(Path(path)).get("kind") == SWEEP


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `run.save` or `save_to=` wrote: a `Trajectory`, or the `Ensemble` of a sweep.

    Nothing in it is executed; the model is not in it. A store can be read while it is written: what is complete is there.
    """
    if os.path.isdir(path) and is_sweep(path):
        from dalembert.cluster import load_sweep

        return load_sweep(path)
    return Trajectory.load(path)


def check_model(store: RunStore, system: System) -> None:
    """Refuse another model than that of the run, or other values of its parameters."""
    check_model_of(store.path, vars(store.header), system)


def check_model_of(path: Path, header: Mapping[str, Any], system: System) -> None:
    """The same for a store of any kind."""
    if not isinstance(system, System):
        raise InputError(f"give the system of the run in {path}; got {type(system).__name__}")
    defaults = header["defaults"]
    if system.fingerprint != header["fingerprint"]:
        versions = f" (or was made with CasADi {header['casadi']}, and this is {ca.CasadiMeta.version()})"
        other = "" if header["casadi"] == ca.CasadiMeta.version() else versions
        raise InputError(
            f"the run in {path} belongs to another model{other}: give the system that it was started with, "
            f"whose parameters are {', '.join(defaults) or 'none'}"
        )
    for name, value in plain(system.params).items():
        if value != defaults[name]:
            raise InputError(
                f"the model's parameter {name} is {value}, and was {defaults[name]} when the run in {path} began: "
                "set it back, or begin a new run"
            )


def equations_hash(system: System, method: OneStepMethod) -> str:
    """A hash of the step equations: the same for equal coefficients and functions, whatever their names."""
    digest = hashlib.sha256()
    if isinstance(method, CollisionIntegrator):
        assert isinstance(system, MechanicalSystem)
        digest.update(event_program(system, method).equations.encode())
        system, method = system.smooth, method.full
    for substep, fraction in method.substeps:
        equations = reduced_step(system, substep).equations
        step = equations.step
        data = [equations.x, step.time_symbol, step.h_symbol, equations.state, step.theta]
        digest.update(f"{fraction.hex()} ".encode())
        digest.update(ca.Function("step", data, [equations.residual, equations.increment]).serialize().encode())
    return digest.hexdigest()


def _start(header: Header, system: System) -> State:
    arrays = (np.array(values, dtype=float) for values in (header.start, header.theta, header.multipliers))
    packed, theta, multipliers = arrays
    return unpack(system, header.t0, packed, theta, multipliers)


def plain(values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays as numbers and lists, for JSON."""
    return {name: value.tolist() for name, value in values.items()}
