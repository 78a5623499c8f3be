"""`StoredTrajectory`: a run on disk, read as needed."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from dalembert.contact._records import KINDS, Contacts, Impacts, from_columns
from dalembert.draw import Drawing
from dalembert.methods import OneStepMethod
from dalembert.runs._same_model import check_model
from dalembert.runs._trajectory import Trajectory
from dalembert.storage._run_store import Header, RunStore
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack


def start_of(header: Header, system: System) -> State:
    """The state in which a run on disk began."""
    arrays = (np.array(values, dtype=float) for values in (header.start, header.theta, header.multipliers))
    packed, theta, multipliers = arrays
    return unpack(system, header.t0, packed, theta, multipliers)


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
        check_model(store.path, vars(store.header), system)
        return StoredTrajectory(store, system, start_of(store.header, system))
