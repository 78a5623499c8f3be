"""A sweep on disk: a Zarr group with one row a member, filled part by part in any order, and all that is needed to go on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dalembert.contact._records import layout_of_members
from dalembert.errors import InputError
from dalembert.storage._groups import CHUNK_NUMBERS, Store, create_group, event_arrays, fill_value, sync, writing


@dataclass
class SweepStore(Store):
    """The arrays of a sweep; a part counts once the group's attributes, replaced in one atomic move, name it.

    Impacts and contacts, which are not as many for every member, are appended to growing arrays as the parts arrive.
    """

    KIND: ClassVar[str] = "dalembert sweep"

    path: Path
    header: dict[str, Any]
    parts: list[int] = field(default_factory=list)
    messages: dict[int, str] = field(default_factory=dict)
    stats: dict[str, float] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    """How many impacts and contacts the parts have."""
    _opened: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def create(
        cls,
        path: Path,
        header: dict[str, Any],
        given: Mapping[str, np.ndarray],
        columns: Mapping[str, tuple[tuple[int, ...], str]],
    ) -> SweepStore:
        """A store with what is `given`, and room for columns of these shapes and types, one row a member."""
        part, arrays = header["part"], {}
        for name, values in given.items():
            arrays[name] = {"data": values, "chunks": tuple(max(1, size) for size in values.shape)}
        for name, (shape, dtype) in columns.items():
            chunks = (part, *shape)
            if len(shape) == 2:  # (time, n): a whole part may be large
                chunks = (part, max(1, min(shape[0], CHUNK_NUMBERS // (part * shape[1]))), shape[1])
            options = {"chunks": chunks, "dtype": dtype, "fill_value": fill_value(dtype)}
            arrays[name] = {"shape": (header["members"], *shape), **options}
        if header["keeps_impacts"]:
            arrays |= event_arrays(layout_of_members(header["blocks"][0][1]))
        store = cls(path, header)
        create_group(path, arrays, cls._marked(store._parts()))
        return store

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> SweepStore:
        """A store that is there."""
        place = Path(path)
        attributes = {"events": {}, **cls._read(place)}  # an older store has none
        try:
            messages = {int(member): text for member, text in attributes["messages"].items()}
            header = {"keeps_impacts": False, "counted": [], "impact_counts": [], **attributes["header"]}
            return cls(place, header, attributes["parts"], messages, attributes["stats"], attributes["events"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{place} is not a sweep saved by dalembert") from None

    def _parts(self) -> dict[str, Any]:
        messages = {str(member): text for member, text in self.messages.items()}
        progress = {"parts": self.parts, "messages": messages, "stats": self.stats, "events": self.events}
        return {"header": self.header, **progress}

    def event_column(self, kind: str, name: str) -> np.ndarray:
        """A column of the impacts or contacts of all parts, as they arrived."""
        return np.asarray(self.array(name)[: self.events.get(kind, 0)])

    def write(
        self,
        part: int,
        columns: Mapping[str, np.ndarray],
        events: Mapping[str, Mapping[str, np.ndarray]],
        messages: Mapping[int, str],
        stats: dict[str, float],
    ) -> None:
        """Write one part, then say that it is there."""
        first = part * self.header["part"]
        with writing(self.path):
            for name, values in columns.items():
                self.array(name, "r+")[first : first + len(values)] = values
                sync(self.path / name / "c" / str(part))
            count = dict(self.events)
            for kind, found in events.items():
                self._append_events(found, self.events.get(kind, 0))
                count[kind] = self.events.get(kind, 0) + len(found[f"{kind}_member"])
        self.events, self.parts = count, [*self.parts, part]
        self.messages = self.messages | dict(messages)
        self.stats = {name: self.stats.get(name, 0) + value for name, value in stats.items()}
        self._write_attributes(self._parts())
