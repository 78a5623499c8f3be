"""Sweeps: the members of an ensemble in parts, computed here or by an executor, gathered in memory or in a Zarr store."""

from __future__ import annotations

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from dalembert._events import OF_MEMBERS, TALLIED, ImpactReduction, columns_of, from_columns, in_order_of_members
from dalembert._run_store import check_target, zarr_module
from dalembert._sweep_store import SweepStore
from dalembert.compiler import Watch, build_watch
from dalembert.ensemble import Ensemble, Reduction, _ensemble, run_ensemble
from dalembert.errors import DalembertError, InputError
from dalembert.impacts import CollisionIntegrator
from dalembert.impacts._program import event_program
from dalembert.methods import OneStepMethod
from dalembert.progress import ProgressLine
from dalembert.stored import StoredArray, check_model_of, equations_hash, plain
from dalembert.systems import MechanicalSystem, System
from dalembert.systems._model import Parameters
from dalembert.systems._states import States

GROUP = 8
"""Parts have a multiple of this many members, so that they fill the machine's vectors."""

MOST_PARTS = 256
RETRIES = 5
"""How often a part whose worker was lost is tried again."""

COUNTS = ("newton_iterations", "factorizations", "rescued_steps")
REDUCTION = ("first", "last", "min", "max", "mean", "slope")
GIVEN = ("t0", "start", "theta", "multipliers")
Members = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Times, states, parameters and multipliers, one row a member."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """What all members of an ensemble have in common; it travels to the workers."""

    system: System
    method: OneStepMethod
    h: float
    steps: int
    save_every: int
    quantities: dict[str, ca.Function] = field(default_factory=dict)
    newton_tolerance: float | None = None
    stage_multipliers: bool = False
    simd: bool | None = None
    workers: int | None = None
    counted: tuple[str, ...] = ()
    """The names under which impacts are counted instead of stored."""

    @property
    def keeps_impacts(self) -> bool:
        """Whether there may be impacts, and they are stored."""
        return isinstance(self.method, CollisionIntegrator) and not self.counted

    @property
    def impact_counts(self) -> tuple[str, ...]:
        """What is counted of every member's impacts."""
        if not isinstance(self.method, CollisionIntegrator) or not isinstance(self.system, MechanicalSystem):
            return ()
        return event_program(self.system, self.method).counted

    @property
    def columns(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """What a part consists of: the shape of a member's row, and the type of its numbers."""
        rows, n = self.steps // self.save_every + 1, self.system.n_state
        m = self.system.n_multipliers if self.stage_multipliers else 0
        found: dict[str, tuple[tuple[int, ...], str]] = {"states": ((rows, n), "float64"), "last": ((n + m,), "float64")}
        found |= {"prepared": ((n,), "float64"), **({"stage": ((rows, m), "float64")} if m else {})}
        found |= {name: ((), "int64") for name in ("steps_done", *COUNTS, *self.impact_counts)}
        found |= {f"counted_{name}": ((len(TALLIED),), "float64") for name in self.counted}
        return found | {f"reduced_{name}": ((len(REDUCTION),), "float64") for name in self.quantities}

    def watch(self) -> Watch | None:
        """The kernel that follows the quantities."""
        return build_watch(self.system, self.quantities) if self.quantities else None


@dataclass(frozen=True, eq=False)
class Part:
    """What became of some members: columns, events, and messages of those that failed."""

    columns: dict[str, np.ndarray]
    events: dict[str, dict[str, np.ndarray]]
    """The columns of impacts and of contacts."""
    messages: dict[int, str]
    stats: dict[str, float]
    complete: bool


def compute(sweep: Sweep, watch: Watch | None, members: Members) -> Part:
    """Run some members to their end."""
    run = run_ensemble(
        sweep.system, sweep.method, States(sweep.system, *members), sweep.h, sweep.steps, sweep.save_every, watch,
        sweep.workers, sweep.simd, False, sweep.newton_tolerance, sweep.stage_multipliers, tally_impacts=bool(sweep.counted),
    )  # fmt: skip
    runs = _ensemble(run, sweep.h)
    columns = {"states": runs.states, "last": runs.last, "prepared": run.states.packed, "steps_done": runs.steps_done}
    columns |= {name: runs._counts[name] for name in (*COUNTS, *sweep.impact_counts)}
    columns |= {f"counted_{name}": run.tallies for name in sweep.counted}
    columns |= {} if runs.stage_multipliers is None or "stage" not in sweep.columns else {"stage": runs.stage_multipliers}
    for name, reduction in runs.reduced.items():
        assert isinstance(reduction, Reduction)
        columns[f"reduced_{name}"] = np.stack([getattr(reduction, kind) for kind in REDUCTION], axis=1)
    failed = {k: text for k, (status, text) in enumerate(zip(runs.status, runs.message, strict=True)) if status == "failed"}
    stats = {name: runs.stats[name] for name in ("build_seconds", "wall_seconds")}
    kept = {"impact": runs.impacts, "contact": runs.contacts} if sweep.keeps_impacts else {}
    events = {kind: columns_of(found, kind) for kind, found in kept.items()}
    return Part(columns, events, failed, stats, "interrupted" not in runs.status)


# -- on workers ------------------------------------------------------------------------------------------------------------


def compute_remotely(sweep: bytes, members: Members) -> Part:
    """`compute` on a worker, which takes the model apart and compiles it once."""
    return compute(*_received(sweep), members)


@functools.lru_cache(maxsize=4)
def _received(sweep: bytes) -> tuple[Sweep, Watch | None]:
    arrived = pickle.loads(sweep)
    return arrived, arrived.watch()


def _packed(sweep: Sweep) -> bytes:
    """The sweep as bytes; cloudpickle also takes methods that are made of a user's own functions."""
    try:
        import cloudpickle
    except ImportError:
        cloudpickle = pickle
    try:
        return cloudpickle.dumps(sweep)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise DalembertError(f"{sweep.method} cannot be sent to workers ({error}): pip install dalembert[cluster]") from None


def _results(executor: Any, sweep: bytes, parts: Mapping[int, Members]) -> Iterator[tuple[int, Part]]:
    """The parts as they become ready; those whose worker was lost are tried again."""
    dask = type(executor).__module__.split(".")[0] == "distributed" and not isinstance(executor, Executor)
    if not dask and not isinstance(executor, Executor):
        raise InputError(
            f"executor is a concurrent.futures executor or a dask.distributed Client; got {type(executor).__name__}"
        )
    with contextlib.ExitStack() as own:
        submit: Callable[[int], Any]
        if dask:
            from distributed import wait as wait_for

            def submit(part: int) -> Any:
                return executor.submit(compute_remotely, sweep, parts[part], pure=False)

            def ready(futures: list[Any]) -> list[Any]:
                return list(wait_for(futures, return_when=FIRST_COMPLETED).done)
        else:

            def submit(part: int) -> Any:
                return executor.submit(compute_remotely, sweep, parts[part])

            def ready(futures: list[Any]) -> list[Any]:
                return list(wait(futures, return_when=FIRST_COMPLETED).done)

        tries = dict.fromkeys(parts, 0)
        running = {submit(part): part for part in parts}
        try:
            while running:
                for future in ready(list(running)):
                    if future not in running:  # it went down with its pool
                        continue
                    part = running.pop(future)
                    try:
                        yield part, future.result()
                    except DalembertError:
                        raise
                    except Exception as error:
                        tries[part] += 1
                        if tries[part] > RETRIES:
                            raise DalembertError(
                                f"part {part} of the sweep failed {tries[part]} times on its workers "
                                f"({type(error).__name__}: {error}): look at the workers' memory and logs"
                            ) from error
                        lost = [part]
                        if isinstance(error, BrokenExecutor):  # a process pool does not outlive a lost process
                            executor = own.enter_context(_renewed(executor, error))
                            lost += running.values()
                            running.clear()
                        running |= {submit(again): again for again in lost}
        finally:
            for future in running:
                future.cancel()


def _renewed(executor: Any, error: BaseException) -> ProcessPoolExecutor:
    """A process pool like the one that was broken."""
    if not isinstance(executor, ProcessPoolExecutor):
        raise DalembertError(f"the executor was broken ({error}): begin again with a new one") from error
    options = {"mp_context": "_mp_context", "initializer": "_initializer", "initargs": "_initargs"}
    return ProcessPoolExecutor(
        executor._max_workers,  # type: ignore[attr-defined]
        **{name: getattr(executor, private) for name, private in options.items()},
    )


# -- where everything comes together -----------------------------------------------------------------------------------------


def run_sweep(sweep: Sweep, states: States, executor: Any, save_to: Any, progress: bool | None) -> Ensemble:
    """Run all members, on workers or here, into memory or into a new store."""
    given = dict(zip(GIVEN, (states.t, states.packed, states.theta, states.multipliers), strict=True))
    header = _header(sweep, len(states))
    if save_to is None:
        return _go_on(sweep, given, _InMemory(sweep, header), executor, progress)
    zarr_module()
    target = Path(save_to)
    check_target(target, sum(8 * len(states) * int(np.prod(shape)) for shape, _ in sweep.columns.values()))
    store = SweepStore.create(target, header, {"t": _times(header, states.t[0]), **given}, sweep.columns)
    return _go_on(sweep, given, store, executor, progress)


def _times(header: Mapping[str, Any], t0: float) -> np.ndarray:
    return t0 + np.arange(header["steps"] // header["save_every"] + 1) * header["save_every"] * header["h"]


def _header(sweep: Sweep, members: int) -> dict[str, Any]:
    import dalembert

    size = -(-members // MOST_PARTS)
    return {
        "members": members,
        "part": -(-size // GROUP) * GROUP,
        "h": sweep.h,
        "steps": sweep.steps,
        "save_every": sweep.save_every,
        "blocks": sweep.system.state_blocks,
        "method": str(sweep.method),
        "equations": equations_hash(sweep.system, sweep.method),
        "fingerprint": sweep.system.fingerprint,
        "defaults": plain(sweep.system.params),
        "quantities": {name: function.serialize() for name, function in sweep.quantities.items()},
        "newton_tolerance": sweep.newton_tolerance,
        "stage_multipliers": sweep.stage_multipliers,
        "stage": sweep.system.n_multipliers if sweep.stage_multipliers else 0,
        "simd": sweep.simd,
        "keeps_impacts": sweep.keeps_impacts,
        "impact_counts": sweep.impact_counts,
        "counted": sweep.counted,
        "dalembert": dalembert.__version__,
        "casadi": ca.CasadiMeta.version(),
    }


def resume_sweep(
    path: Any, system: System, method: OneStepMethod, executor: Any, workers: int | None, progress: bool | None
) -> Ensemble:
    """Compute the parts of a sweep that its store does not have."""
    store = SweepStore.open(path)
    header = store.header
    check_model_of(store.path, header, system)
    if str(method) != header["method"] or equations_hash(system, method) != header["equations"]:
        raise InputError(f"{store.path} was computed by {header['method']}, not by {method}: give that method")
    quantities = {name: ca.Function.deserialize(text) for name, text in header["quantities"].items()}
    options = (header["newton_tolerance"], header["stage_multipliers"], header["simd"], workers, tuple(header["counted"]))
    sweep = Sweep(system, method, header["h"], header["steps"], header["save_every"], quantities, *options)
    return _go_on(sweep, _given(store), store, executor, progress)


def load_sweep(path: Any) -> Ensemble:
    """A sweep on disk without its model."""
    store = SweepStore.open(path)
    return _gathered(_given(store), store, None, None)


def _given(store: SweepStore) -> dict[str, np.ndarray]:
    return {name: store.array(name)[...] for name in GIVEN}


class _InMemory:
    """Stands for a store where none is asked for."""

    def __init__(self, sweep: Sweep, header: dict[str, Any]) -> None:
        self.header = header
        self.parts: list[int] = []
        self.messages: dict[int, str] = {}
        self.stats: dict[str, float] = {}
        self._events: dict[str, list[np.ndarray]] = {}
        self._arrays = {
            name: np.full((header["members"], *shape), np.nan if dtype == "float64" else -1, dtype=dtype)
            for name, (shape, dtype) in sweep.columns.items()
        }

    def array(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def event_column(self, kind: str, name: str) -> np.ndarray:
        del kind
        return np.concatenate(self._events[name])

    def write(
        self,
        part: int,
        columns: Mapping[str, np.ndarray],
        events: Mapping[str, Mapping[str, np.ndarray]],
        messages: Mapping[int, str],
        stats: dict[str, float],
    ) -> None:
        first = part * self.header["part"]
        for name, values in columns.items():
            self._arrays[name][first : first + len(values)] = values
        for found in events.values():
            for name, values in found.items():
                self._events.setdefault(name, []).append(values)
        self.parts.append(part)
        self.messages |= messages
        self.stats = {name: self.stats.get(name, 0) + value for name, value in stats.items()}


def _go_on(
    sweep: Sweep, given: Mapping[str, np.ndarray], store: SweepStore | _InMemory, executor: Any, progress: bool | None
) -> Ensemble:
    """Compute what the store does not have; Ctrl-C keeps what it has."""
    members, size = store.header["members"], store.header["part"]
    wanted = [k for k in range(-(-members // size)) if k not in store.parts]
    rows = {k: slice(k * size, min(members, (k + 1) * size)) for k in wanted}
    parts: dict[int, Members] = {k: tuple(given[name][rows[k]] for name in given) for k in wanted}  # type: ignore[misc]
    line = ProgressLine(members, progress, "members")
    done = 0
    try:
        for k, part in _here(sweep, parts) if executor is None else _results(executor, _packed(sweep), parts):
            if not part.complete:
                break
            messages = {k * size + member: text for member, text in part.messages.items()}
            for kind, found in part.events.items():
                found[f"{kind}_member"] = found[f"{kind}_member"] + k * size
            store.write(k, part.columns, part.events, messages, part.stats)
            done += len(part.columns["steps_done"])
            line.update(done)
    except KeyboardInterrupt:
        pass
    finally:
        line.close()
    return _gathered(given, store, sweep.system, sweep.method)


def _here(sweep: Sweep, parts: Mapping[int, Members]) -> Iterator[tuple[int, Part]]:
    watch = sweep.watch()
    for k, members in parts.items():
        yield k, compute(sweep, watch, members)


def _gathered(
    given: Mapping[str, np.ndarray], store: SweepStore | _InMemory, system: System | None, solver: OneStepMethod | None
) -> Ensemble:
    """All members as an ensemble; large arrays stay where they are."""
    header = store.header

    def whole(name: str) -> Any:
        return store.array(name)[...]

    def lazy(name: str) -> Any:
        array = store.array(name)
        return array if isinstance(array, np.ndarray) else StoredArray(array, header["members"], header["part"])

    steps_done = whole("steps_done")
    status = np.where(steps_done == header["steps"], "done", "interrupted").astype(object)
    status[list(store.messages)] = "failed"
    message = [store.messages.get(k, "" if status[k] == "done" else "not computed yet") for k in range(len(status))]
    steps_done = np.maximum(steps_done, 0)
    counts = {"steps": steps_done, **{name: np.maximum(whole(name), 0) for name in (*COUNTS, *header["impact_counts"])}}
    parameters = Parameters(header["defaults"])
    each = [parameters.unflatten(theta) for theta in given["theta"]]
    prepared = whole("prepared")
    starts = np.where(np.isnan(prepared), given["start"], prepared)
    return Ensemble(
        t=_times(header, given["t0"][0]),
        states=lazy("states"),
        blocks=tuple((str(name), int(size)) for name, size in header["blocks"]),
        h=header["h"],
        method=header["method"],
        parameters={name: np.array([values[name] for values in each]) for name in header["defaults"]},
        status=tuple(status),
        message=tuple(message),
        steps_done=steps_done,
        last=whole("last"),
        reduced={
            **{
                name: Reduction(**dict(zip(REDUCTION, whole(f"reduced_{name}").T, strict=True)))
                for name in header["quantities"]
            },
            **{name: ImpactReduction.of(whole(f"counted_{name}")) for name in header["counted"]},
        },
        stats={**{name: int(values.sum()) for name, values in counts.items()}, **store.stats},
        system=system,
        solver=solver,
        starts=None if system is None else States(system, given["t0"], starts, given["theta"], given["multipliers"]),
        save_every=header["save_every"],
        stage_multipliers=lazy("stage") if header["stage"] else None,
        _counts=counts,
        _events=functools.partial(_stored_events, store) if header["keeps_impacts"] and store.parts else None,
    )


def _stored_events(store: SweepStore | _InMemory, kind: str) -> Any:
    """The impacts or contacts of all members that are there, in their order, however they arrived."""
    return in_order_of_members(from_columns(OF_MEMBERS[kind], kind, lambda name: store.event_column(kind, name)))
