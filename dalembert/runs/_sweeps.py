"""Sweeps: the members of an ensemble in parts, computed here or by an executor, gathered in memory or in a Zarr store."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from dalembert._progress import ProgressLine
from dalembert._version import __version__
from dalembert.contact._records import OF_MEMBERS, ImpactReduction, from_columns, in_order_of_members
from dalembert.engine._spec import RunSpec
from dalembert.methods import OneStepMethod
from dalembert.parallel._executors import abreast, here, on_workers
from dalembert.runs._arguments import check_memory, thread_count
from dalembert.runs._ensemble import Ensemble, Reduction
from dalembert.runs._same_model import check_model, check_same_method, equations_hash, plain
from dalembert.runs._stored_trajectory import StoredArray
from dalembert.runs._sweep import COUNTS, REDUCTION, Members, Sweep, part_size
from dalembert.storage._groups import check_target, zarr_module
from dalembert.storage._sweep_store import SweepStore
from dalembert.systems import System
from dalembert.systems._model import Parameters
from dalembert.systems._states import States

GIVEN = ("t0", "start", "theta", "multipliers")


def run_sweep(sweep: Sweep, executor: Any, save_to: Any, progress: bool | None) -> Ensemble:
    """Run all members, on workers or here, into memory or into a new store."""
    states = sweep.spec.start
    assert isinstance(states, States)
    given = dict(zip(GIVEN, (states.t, states.packed, states.theta, states.multipliers), strict=True))
    header = _header(sweep, len(states))
    if save_to is None:
        return _go_on(sweep, given, InMemory(sweep, header), executor, progress)
    zarr_module()
    _check_part(sweep, header, executor)
    target = Path(save_to)
    check_target(target, sum(8 * len(states) * int(np.prod(shape)) for shape, _ in sweep.columns.values()))
    store = SweepStore.create(target, header, {"t": _times(header, states.t[0]), **given}, sweep.columns)
    return _go_on(sweep, given, store, executor, progress)


def _check_part(sweep: Sweep, header: Mapping[str, Any], executor: Any) -> None:
    """Refuse a sweep of which the parts that are computed at the same time do not fit into memory."""
    members = min(header["members"], header["part"] * (abreast(sweep, header["part"]) if executor is None else 1))
    needed = members * sum(8 * int(np.prod(shape)) for shape, _ in sweep.columns.values())
    what = f"the {members} members of a sweep that are computed at once"
    advice = "store fewer states with save_every=, make a sweep of fewer members, whose parts are smaller, or write every "
    check_memory(needed, what, advice + "member on its own with da.simulate(..., save_to=...)")


def _times(header: Mapping[str, Any], t0: float) -> np.ndarray:
    return t0 + np.arange(header["steps"] // header["save_every"] + 1) * header["save_every"] * header["h"]


def _header(sweep: Sweep, members: int) -> dict[str, Any]:
    spec = sweep.spec
    return {
        "members": members,
        "part": part_size(members),
        "h": spec.h,
        "steps": spec.steps,
        "save_every": spec.save_every,
        "blocks": spec.system.state_blocks,
        "method": str(spec.method),
        "equations": equations_hash(spec.system, spec.method),
        "fingerprint": spec.system.fingerprint,
        "defaults": plain(spec.system.params),
        "quantities": {name: function.serialize() for name, function in sweep.quantities.items()},
        "newton_tolerance": spec.newton_tolerance,
        "stage_multipliers": spec.stage_multipliers,
        "stage": spec.system.n_multipliers if spec.stage_multipliers else 0,
        "simd": sweep.simd,
        "keeps_impacts": sweep.keeps_impacts,
        "impact_counts": sweep.impact_counts,
        "counted": sweep.counted,
        "dalembert": __version__,
        "casadi": ca.CasadiMeta.version(),
    }


def resume_sweep(
    path: Any, system: System, method: OneStepMethod, executor: Any, workers: int | None, progress: bool | None
) -> Ensemble:
    """Compute the parts of a sweep that its store does not have."""
    store = SweepStore.open(path)
    header = store.header
    check_model(store.path, header, system)
    check_same_method(store.path, header, system, method)
    workers = thread_count(workers, executor)
    quantities = {name: ca.Function.deserialize(text) for name, text in header["quantities"].items()}
    given = _given(store)
    states = States(system, *(given[name] for name in GIVEN))
    numbers = [header[name] for name in ("h", "steps", "save_every", "newton_tolerance", "stage_multipliers")]
    sweep = Sweep(RunSpec(system, method, states, *numbers), quantities, header["simd"], workers, tuple(header["counted"]))
    _check_part(sweep, header, executor)
    return _go_on(sweep, given, store, executor, progress)


def load_sweep(path: Any) -> Ensemble:
    """A sweep on disk without its model."""
    store = SweepStore.open(path)
    return _gathered(_given(store), store, None, None)


def _given(store: SweepStore) -> dict[str, np.ndarray]:
    return {name: store.array(name)[...] for name in GIVEN}


class InMemory:
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
        """One of the arrays."""
        return self._arrays[name]

    def event_column(self, kind: str, name: str) -> np.ndarray:
        """A column of the events of all parts, as they arrived."""
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
        """Keep one part."""
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
    sweep: Sweep, given: Mapping[str, np.ndarray], store: SweepStore | InMemory, executor: Any, progress: bool | None
) -> Ensemble:
    """Compute what the store does not have; Ctrl-C keeps what it has."""
    members, size = store.header["members"], store.header["part"]
    wanted = [k for k in range(-(-members // size)) if k not in store.parts]
    rows = {k: slice(k * size, min(members, (k + 1) * size)) for k in wanted}
    parts: dict[int, Members] = {k: tuple(given[name][rows[k]] for name in given) for k in wanted}  # type: ignore[misc]
    line = ProgressLine(members, progress, "members")
    done = 0
    try:
        with contextlib.closing(here(sweep, parts) if executor is None else on_workers(executor, sweep, parts)) as found:
            for k, part in found:
                if not part.complete:
                    break
                messages = {k * size + member: text for member, text in part.messages.items()}
                for kind, columns in part.events.items():
                    columns[f"{kind}_member"] = columns[f"{kind}_member"] + k * size
                store.write(k, part.columns, part.events, messages, part.stats)
                done += len(part.columns["steps_done"])
                line.update(done)
    except KeyboardInterrupt:
        pass
    finally:
        line.close()
    return _gathered(given, store, sweep.spec.system, sweep.spec.method)


def _gathered(
    given: Mapping[str, np.ndarray], store: SweepStore | InMemory, system: System | None, solver: OneStepMethod | None
) -> Ensemble:
    """All members as an ensemble; large arrays stay where they are."""
    header = store.header

    def whole(name: str) -> Any:
        return store.array(name)[...]

    def lazy(name: str) -> Any:
        array = store.array(name)
        return array if isinstance(array, np.ndarray) else StoredArray(array, header["members"], header["part"])

    # what a process that was killed had written of a part does not count
    there = np.isin(np.arange(header["members"]) // header["part"], store.parts)
    steps_done = np.where(there, whole("steps_done"), -1)
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


def _stored_events(store: SweepStore | InMemory, kind: str) -> Any:
    """The impacts or contacts of all members that are there, in their order, however they arrived."""
    return in_order_of_members(from_columns(OF_MEMBERS[kind], kind, lambda name: store.event_column(kind, name)))
