"""A sweep on disk: a Zarr group with one row a member, filled part by part in any order, and all that is needed to go on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dalembert.errors import InputError
from dalembert.storage._groups import (
    CHUNK_NUMBERS,
    EVENT_CHUNK,
    FORMAT,
    Store,
    StoredArray,
    chunk_names,
    event_arrays,
    fill_value,
    read_attributes,
    read_rows,
)
from dalembert.storage._member_table import Layout, MemberTable, added
from dalembert.storage._on_disk import sync, writing


@dataclass
class SweepStore(Store):
    """The table of a sweep; a part counts once the group's attributes, replaced in one atomic move, name it.

    Impacts and contacts, which are not as many for every member, are appended to growing arrays as the parts arrive.
    """

    KIND: ClassVar[str] = "dalembert sweep"

    path: Path
    header: dict[str, Any]
    layout: Layout
    parts: list[int] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    stats: dict[str, float] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    """How many impacts and contacts the parts have."""
    descriptions: dict[str, str] = field(default_factory=dict, repr=False)
    format: int = FORMAT
    _opened: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def create(cls, path: Path, header: dict[str, Any], given: Mapping[str, np.ndarray]) -> SweepStore:
        """A store with what is `given`, and room for the columns of a table."""
        store = cls(path, header, Layout.of(header))
        layout, arrays = store.layout, {}
        for name, values in given.items():
            arrays[name] = {"data": values, "chunks": tuple(max(1, size) for size in values.shape)}
        for name, (shape, dtype) in layout.columns.items():
            chunks = (layout.part, *((store._times_in_chunk(shape), shape[1]) if len(shape) == 2 else shape))
            options = {"chunks": chunks, "dtype": dtype, "fill_value": fill_value(dtype)}
            arrays[name] = {"shape": (layout.members, *shape), **options}
        store._create(arrays | event_arrays(layout.event_columns))
        return store

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> SweepStore:
        """A store that is there."""
        place = Path(path)
        attributes = {"events": {}, **cls._read(place)}  # an older store has none
        try:
            failures = {int(member): text for member, text in attributes["messages"].items()}
            header = {"counted": [], "impact_counts": [], **attributes["header"]}
            progress = (attributes["parts"], failures, attributes["stats"], attributes["events"])
            store = cls(place, header, Layout.of(header), *progress, attributes["descriptions"], attributes["format"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{place} is not a sweep saved by dalembert") from None
        if store.descriptions:  # stores of format 1 may lack columns and chunks
            store._check_arrays(*store._expected())
        return store

    def _expected(self) -> tuple[dict[str, tuple[int, ...]], dict[str, list[str]]]:
        """The shape of a row of every array, and the chunks that parts which are there consist of."""
        columns, events = self.layout.columns, self.layout.event_columns
        rows = {name: shape for name, (shape, _) in (columns | events).items()}
        chunks: dict[str, list[str]] = {}
        for name, (shape, _) in columns.items():
            pieces = -(-shape[0] // self._times_in_chunk(shape)) if len(shape) == 2 else 1
            ends = [f"/{k}/0" for k in range(pieces)] if len(shape) == 2 else ["/0" * len(shape)]
            chunks[name] = [f"c/{part}{end}" for part in self.parts for end in ends]
        for name, (shape, _) in events.items():
            chunks[name] = chunk_names(self.events.get(name.partition("_")[0], 0), EVENT_CHUNK, 1 + len(shape))
        return rows, chunks

    def _times_in_chunk(self, shape: tuple[int, ...]) -> int:
        """Of states (time, n) of all members of a part, which may be large."""
        return max(1, min(shape[0], CHUNK_NUMBERS // (self.layout.part * shape[1])))

    def _attributes(self) -> dict[str, Any]:
        messages = {str(member): text for member, text in self.failures.items()}
        progress = {"parts": self.parts, "messages": messages, "stats": self.stats, "events": self.events}
        return {"header": self.header, **progress}

    def write(self, first: int, part: MemberTable) -> None:
        """Write a part, whose first member has the number `first`, then say that it is there."""
        part, number = part.numbered_from(first), first // self.layout.part
        with writing(self.path):
            there = {name: values for name, values in part.columns.items() if (self.path / name).is_dir()}
            for name, values in there.items():  # stores of earlier versions count less
                self.array(name, "r+")[first : first + len(values)] = values
                sync(self.path / name / "c" / str(number))
            events = self._append_events(part.events[0], self.events) if part.events else self.events
        self.events, self.parts = events, [*self.parts, number]
        self.failures = self.failures | part.failures
        self.stats = added(self.stats, part.stats)
        self._write_attributes()

    def judged(self, errors: np.ndarray | None, choice: str) -> None:
        """Say what is known about the errors of members."""
        known = None if errors is None else [None if np.isnan(error) else float(error) for error in errors]
        self.header = self.header | {"error": known, "choice": choice}
        self._write_attributes()

    @property
    def judgement(self) -> dict[str, Any]:
        """What is known about the errors of members, `error` and `choice`."""
        known = self.header.get("error")
        return {"error": None if known is None else np.array(known, dtype=float), "choice": self.header.get("choice", "")}

    def table(self) -> MemberTable:
        """What is there, of which large columns and events are read when they are asked for."""
        columns = {name: self._column(name, len(shape)) for name, (shape, _) in self.layout.columns.items()}
        events = {
            name: StoredArray(self.array(name), self.events.get(name.partition("_")[0], 0), EVENT_CHUNK)
            for name in self.layout.event_columns
            if (self.path / name).is_dir()
        }
        return MemberTable(columns, [events] if events and self.parts else [], self.failures, self.stats)

    def _column(self, name: str, axes: int) -> Any:
        if axes == 2:  # (time, n) of every member
            return StoredArray(self.array(name), self.layout.members, self.layout.part)
        if not (self.path / name).is_dir():
            return np.zeros(self.layout.members, dtype=np.int64)
        values = read_rows(self.array(name))
        there = np.isin(np.arange(len(values)) // self.layout.part, self.parts)
        values[~there] = fill_value(str(values.dtype))  # what a process that was killed had written of a part does not count
        return values


def is_sweep(path: str | os.PathLike[str]) -> bool:
    """Whether a store holds many runs."""
    return read_attributes(Path(path)).get("kind") == SweepStore.KIND
