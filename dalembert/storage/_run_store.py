"""A run on disk: a Zarr group whose arrays grow chunk by chunk, and whose attributes say how far it has come.

The arrays `t`, `states` and, where a run keeps them, `stage_lam` and `stage_psi` have their final length from the beginning;
rows that are not there yet read as nan. Those of impacts and contacts, `impact_t` and so on, grow. A chunk counts once the
group's attributes, replaced in one atomic move, say so: a run that is killed at any moment leaves all its complete chunks. The
attributes also hold the state at the end of the last complete chunk, the compensation of the summation and what is known about
walls there, from which the run goes on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dalembert.engine._records import LATER, Columns, Recorded, columns_of
from dalembert.errors import InputError
from dalembert.storage._groups import DAMAGED, EVENT_CHUNK, FORMAT, Store, chunk_names, describe, event_arrays
from dalembert.storage._on_disk import sync, writing


@dataclass(frozen=True)
class Header:
    """What a run is, and does not change while it runs, but for `steps`."""

    h: float
    t0: float
    steps: int
    save_every: int
    chunk: int
    """The number of rows in a chunk."""
    blocks: tuple[tuple[str, int], ...]
    stage: tuple[tuple[str, int], ...]
    """The names and sizes of the arrays of stage multipliers; none if they are not kept."""
    method: str
    equations: str
    """A hash of the method's step equations for this model."""
    fingerprint: str
    parameters: dict[str, Any]
    defaults: dict[str, Any]
    """The model's own values of the parameters, some of which `parameters` may override."""
    theta: list[float]
    start: list[float]
    multipliers: list[float]
    newton_tolerance: float | None
    dalembert: str
    casadi: str
    records: str = ""
    """What is recorded beside the states, one of `RECORDS`."""
    directions: int = 0
    """Of friction, in what is recorded."""
    clock: tuple[str, ...] = ()
    """What is stored behind each state where step sizes vary: t, and 1/h or the energy."""
    names: dict[str, Any] = field(default_factory=dict)
    """What coordinates and rows of constraints are called, where they have names."""
    error: float | None = None
    """The estimated error of a whole run that was asked for with `rtol=`."""
    choice: str = ""
    """Why its method and its step size were chosen."""

    @property
    def chunk_steps(self) -> int:
        """The number of steps from one chunk to the next."""
        return self.chunk * self.save_every

    @property
    def n_state(self) -> int:
        """The number of variables."""
        return sum(size for _, size in self.blocks)

    @property
    def arrays(self) -> tuple[tuple[str, int], ...]:
        """The names of the arrays that a row is split into, and how many columns each takes; none of them is empty."""
        return (("states", self.n_state), *(part for part in (("clock", len(self.clock)), *self.stage) if part[1]))

    @property
    def recorded(self) -> Recorded:
        """What is recorded beside the states."""
        return Recorded(self.records, self.blocks[0][1], self.directions)

    @property
    def events(self) -> Columns:
        """The columns of impacts and contacts, if there may be any."""
        return self.recorded.columns

    def rows(self, steps: int) -> int:
        """How many rows a run of so many steps has: the start, every `save_every`-th state, and the last one."""
        return 1 + -(-steps // self.save_every)

    def step_of(self, rows: np.ndarray, steps: int) -> np.ndarray:
        """The number of steps behind each of these rows, in a run of so many steps."""
        return np.minimum(rows * self.save_every, steps)


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    rows: int
    """That are stored."""
    steps: int
    """Behind the last stored row."""
    status: str
    message: str
    stats: dict[str, float]
    events: dict[str, int] = field(default_factory=dict)
    """How many impacts and contacts are stored."""


@dataclass(frozen=True)
class Checkpoint:
    """The beginning of a chunk: its first row, what the compensated summation owes to it, and what it took to get there."""

    step: int
    row: np.ndarray
    compensation: np.ndarray
    stats: dict[str, float]
    walls: dict[str, Any] = field(default_factory=dict)
    """What `Run.begin` has to know about walls."""
    events: dict[str, int] = field(default_factory=dict)
    """How many impacts and contacts lie before it."""


@dataclass(frozen=True)
class RunStore(Store):
    """The Zarr group of one run."""

    KIND: ClassVar[str] = "dalembert run"

    path: Path
    header: Header
    progress: Progress
    checkpoint: Checkpoint
    descriptions: dict[str, str] = field(default_factory=dict, repr=False)
    format: int = FORMAT
    _opened: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def create(cls, path: Path, header: Header, checkpoint: Checkpoint) -> RunStore:
        """A store for a run that begins."""
        rows = header.rows(header.steps)
        common = {"dtype": "float64", "fill_value": float("nan")}
        arrays: dict[str, dict[str, Any]] = {
            "t": {"shape": (rows,), "chunks": (header.chunk,), "dimension_names": ("time",), **common}
        }
        for name, size in header.arrays:
            named = {"states": "variable", "clock": "clock"}
            names = ("time", named.get(name, "constraint_" + name.removeprefix("stage_")))
            arrays[name] = {"shape": (rows, size), "chunks": (header.chunk, size), "dimension_names": names, **common}
        store = cls(path, header, Progress(0, 0, "running", "", checkpoint.stats), checkpoint)
        store._create(arrays | event_arrays(header.events))
        return store

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunStore:
        """A store that is there."""
        place = Path(path)
        attributes = cls._read(place)
        try:
            fields, point = dict(attributes["header"]), dict(attributes["checkpoint"])
            walls = fields.pop("walls", 0)  # of earlier versions, which recorded impacts alone
            fields = {"records": "impacts" if walls else "", **fields}
            for name in ("blocks", "stage"):
                fields[name] = tuple((str(block), int(size)) for block, size in fields[name])
            for name in ("row", "compensation"):
                point[name] = np.array(point[name], dtype=float)  # None becomes nan
            store = cls(
                place, Header(**fields), Progress(**attributes["progress"]), Checkpoint(**point),
                attributes["descriptions"], attributes["format"],
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{place} is not a run saved by dalembert") from None
        return store._without_lost_rows()

    def _without_lost_rows(self) -> RunStore:
        """The same run as far as its arrays hold it."""
        events = {name: shape for name, (shape, _) in self.header.events.items() if self.has(name)}
        rows: dict[str, tuple[int, ...]] = {"t": (), **{name: (size,) for name, size in self.header.arrays}, **events}
        self._check_arrays(rows, {})
        there = min(describe(self.path / name)[0][0] for name in self._growing)
        store = self
        if self.progress.rows > there:
            if self._complete.rows > there:
                said = f"its attributes say that {self.progress.rows} are stored"
                raise InputError(f"the arrays in {self.path} have {there} rows, and {said}: {DAMAGED}")
            store = replace(self, progress=self._complete)
        count, chunks = store.progress.events, {}
        for name, row in rows.items():
            stored = count.get(name.partition("_")[0], 0) if name in events else store.progress.rows
            chunks[name] = chunk_names(stored, EVENT_CHUNK if name in events else self.header.chunk, 1 + len(row))
        self._check_arrays(rows, chunks)
        return store

    def has(self, name: str) -> bool:
        """Whether there is a column of events: stores of earlier versions lack those of friction, as others do without it."""
        optional = name not in self.header.events or name.partition("_")[2] in LATER
        return name in self.descriptions or not optional or (self.path / name).is_dir()

    @property
    def _growing(self) -> tuple[str, ...]:
        """The arrays with one row a stored state."""
        return ("t", *(name for name, _ in self.header.arrays))

    @property
    def _complete(self) -> Progress:
        """The progress of a run that stands at the checkpoint: complete chunks only."""
        rows, point = self.checkpoint.step // self.header.save_every, self.checkpoint
        return Progress(rows, max(0, rows - 1) * self.header.save_every, "running", "", point.stats, dict(point.events))

    def _attributes(self) -> dict[str, Any]:
        point = vars(self.checkpoint) | {
            name: [x if np.isfinite(x) else None for x in getattr(self.checkpoint, name).tolist()]
            for name in ("row", "compensation")
        }
        return {"header": vars(self.header), "progress": vars(self.progress), "checkpoint": point}

    def _write(self, name: str, first: int, values: np.ndarray) -> None:
        """Put values into one chunk of an array, and wait until the disk has them: the attributes must not come before them."""
        self.array(name, "r+")[first : first + len(values)] = values
        sync(self.path / name / "c" / str(first // self.header.chunk))

    def resumed(self, steps: int) -> RunStore:
        """The same run under way again, with another number of steps or the same.

        What the attributes say is true at every moment: room for rows is cut off after they have said that it is not needed,
        and appended before they say that there is more. A last state between two stored steps is not a row of the longer run.
        """
        every, progress = self.header.save_every, self.progress
        if progress.steps % every:
            progress = replace(progress, rows=progress.rows - 1, steps=progress.steps // every * every)
        running = replace(progress, status="running", message="")
        header = replace(self.header, steps=steps, error=None, choice="")  # which were those of the run as it was planned
        store = replace(self, header=header, progress=running, _opened={})
        if steps < self.header.steps:
            store._write_attributes()
        store._resize()
        if steps >= self.header.steps:
            store._write_attributes()
        return store

    def judged(self, error: float | None, choice: str) -> RunStore:
        """The same run with what is known about its error."""
        store = replace(self, header=replace(self.header, error=error, choice=choice))
        store._write_attributes()
        return store

    def _resize(self) -> None:
        rows = self.header.rows(self.header.steps)
        with writing(self.path):
            for name in self._growing:
                array = self.array(name, "r+")
                if array.shape[0] != rows:
                    array.resize((rows, *array.shape[1:]))
                    sync(self.path / name / "zarr.json")
        self._opened.clear()

    def commit(
        self, rows: np.ndarray, events: Mapping[str, Any], progress: Progress, checkpoint: Checkpoint | None = None
    ) -> RunStore:
        """Write the rows and events since the last checkpoint, then say so; with a new checkpoint they are a complete chunk."""
        first = self.checkpoint.step // self.header.save_every
        last, column = first + len(rows), 0
        with writing(self.path):
            numbers = self.header.step_of(np.arange(first, last), progress.steps)
            n, even = self.header.n_state, self.header.t0 + numbers * self.header.h
            self._write("t", first, rows[:, n] if self.header.clock else even)
            for name, size in self.header.arrays:
                self._write(name, first, rows[:, column : column + size])
                column += size
            columns = {name: values for kind, found in events.items() for name, values in columns_of(found, kind).items()}
            stored = self._append_events(columns, self.checkpoint.events)
        point = self.checkpoint if checkpoint is None else replace(checkpoint, events=stored)
        store = replace(self, progress=replace(progress, rows=last, events=stored), checkpoint=point)
        store._write_attributes()
        return store
