"""A sweep on disk: a Zarr group with one row a member, filled part by part in any order, and all that is needed to go on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dalembert._run_store import CHUNK_NUMBERS, create_group, read_attributes, sync, write_attributes, writing, zarr_module
from dalembert.errors import InputError

FORMAT = 1
KIND = "dalembert sweep"


@dataclass
class SweepStore:
    """The arrays of a sweep; a part counts once the group's attributes, replaced in one atomic move, name it."""

    path: Path
    header: dict[str, Any]
    parts: list[int] = field(default_factory=list)
    messages: dict[int, str] = field(default_factory=dict)
    stats: dict[str, float] = field(default_factory=dict)
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
            fill = np.nan if dtype == "float64" else -1
            arrays[name] = {"shape": (header["members"], *shape), "chunks": chunks, "dtype": dtype, "fill_value": fill}
        store = cls(path, header)
        create_group(path, arrays, store._attributes())
        return store

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> SweepStore:
        """A store that is there."""
        place = Path(path)
        attributes = read_attributes(place)
        try:
            if attributes["kind"] != KIND:
                raise KeyError
            if attributes["format"] != FORMAT:
                raise InputError(f"{place} has the format {attributes['format']} of another version of dalembert")
            messages = {int(member): text for member, text in attributes["messages"].items()}
            return cls(place, attributes["header"], attributes["parts"], messages, attributes["stats"])
        except KeyError:
            raise InputError(f"{place} is not a sweep saved by dalembert") from None

    def _attributes(self) -> dict[str, Any]:
        messages = {str(member): text for member, text in self.messages.items()}
        progress = {"parts": self.parts, "messages": messages, "stats": self.stats}
        return {"kind": KIND, "format": FORMAT, "header": self.header, **progress}

    def array(self, name: str, mode: str = "r") -> Any:
        """One of the Zarr arrays."""
        if (name, mode) not in self._opened:
            self._opened[name, mode] = zarr_module().open_array(store=str(self.path), path=name, mode=mode)
        return self._opened[name, mode]

    def write(self, part: int, columns: Mapping[str, np.ndarray], messages: Mapping[int, str], stats: dict[str, float]) -> None:
        """Write one part, then say that it is there."""
        first = part * self.header["part"]
        with writing(self.path):
            for name, values in columns.items():
                self.array(name, "r+")[first : first + len(values)] = values
                sync(self.path / name / "c" / str(part))
        self.parts = [*self.parts, part]
        self.messages = self.messages | dict(messages)
        self.stats = {name: self.stats.get(name, 0) + value for name, value in stats.items()}
        write_attributes(self.path, self._attributes())
