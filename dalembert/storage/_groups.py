"""What runs and sweeps on disk have in common: Zarr groups that are made whole, grow, and are never half-written.

What is in the arrays counts once the group's attributes, replaced in one atomic move, say so. Chunks carry checksums (crc32c,
a codec of Zarr); the attributes carry a digest of themselves and one of each array's description, so that what was damaged or
edited is found when it is read. One process at a time writes to a store, which it locks.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dalembert.errors import InputError
from dalembert.storage._on_disk import sync, writing, zarr_module

FORMAT = 2
READABLE = (1, FORMAT)
"""Format 1 has neither checksums nor digests, and leaves out chunks that hold nothing."""

DAMAGED = "copy it again from where it is whole, or begin it again"
CHUNK_NUMBERS = 2**21
"""How many numbers a run computes from one chunk to the next: a part of a second for small systems."""

EVENT_CHUNK = 4096
"""Impacts, or contacts, in a chunk of their arrays."""


def event_arrays(names: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, dict[str, Any]]:
    """What Zarr needs to make columns of events, none of which is there yet."""
    return {
        name: {"shape": (0, *shape), "chunks": (EVENT_CHUNK, *shape), "dtype": dtype, "fill_value": fill_value(dtype)}
        for name, (shape, dtype) in names.items()
    }


def fill_value(dtype: str) -> float:
    """What stands for numbers that are not there yet."""
    return np.nan if dtype == "float64" else -1


def digest(document: Any) -> str:
    """A digest of what a JSON document says."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:32]


def describe(array: Path) -> tuple[list[int], str]:
    """The shape of an array on disk, and a digest of all else that its description says, but for its length, which grows."""
    description = json.loads((array / "zarr.json").read_text(encoding="utf-8"))
    shape = description["shape"]
    return shape, digest(description | {"shape": shape[1:]})


def read_rows(array: Any, index: Any = ...) -> np.ndarray:
    """Numbers of a Zarr array; a damaged chunk is named."""
    try:
        return np.asarray(array[index])
    except (IndexError, TypeError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"{_damaged_chunk(array)} of {array.path} in {array.store.root} is damaged ({error}): {DAMAGED}"
        ) from None


def _damaged_chunk(array: Any) -> str:
    for block in np.ndindex(array.cdata_shape):
        try:
            array.blocks[block]
        except Exception:
            return "chunk c/" + "/".join(map(str, block))
    return "a chunk"


def chunk_names(count: int, size: int, axes: int) -> list[str]:
    """The names of the chunks that the first `count` rows of an array lie in, which is cut along its first axis only."""
    return ["/".join(["c", str(k), *["0"] * (axes - 1)]) for k in range(-(-count // size))]


def read_attributes(path: Path) -> dict[str, Any]:
    """The attributes of a group, from its own file."""
    try:
        attributes = dict(json.loads((path / "zarr.json").read_text(encoding="utf-8"))["attributes"])
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give the path that save_to= was given") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not a run saved by dalembert") from None
    said, number = attributes.pop("digest", None), attributes.get("format")
    if not str(attributes.get("kind")).startswith("dalembert"):
        raise InputError(f"{path} is not a run saved by dalembert")
    if number not in READABLE:
        raise InputError(f"{path} has the format {number} of another version of dalembert")
    if (said is not None or number != 1) and said != digest(attributes):
        raise InputError(f"the attributes of {path} were damaged or edited after they were written: {DAMAGED}")
    return attributes


class Store(ABC):
    """A Zarr group of some kind, whose arrays are opened when they are asked for."""

    KIND: ClassVar[str]
    path: Path
    descriptions: dict[str, str]
    """A digest of each array's description."""
    format: int
    """That of the version which made it: chunks of format 1 have no checksums, whoever goes on with them."""
    _opened: dict[tuple[str, str], Any]

    @abstractmethod
    def _attributes(self) -> dict[str, Any]:
        """What the group says of itself and of its arrays."""

    @property
    def _marked(self) -> dict[str, Any]:
        said = {"kind": self.KIND, "format": self.format, "descriptions": self.descriptions, **self._attributes()}
        said = json.loads(json.dumps(said, allow_nan=False))  # as it will be read
        return said | {"digest": digest(said)}

    def _create(self, arrays: Mapping[str, dict[str, Any]]) -> None:
        """Make the group with arrays that hold nothing yet; it appears whole or not at all."""
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with writing(self.path):
                zarr = zarr_module()
                group = zarr.create_group(store=str(temporary), zarr_format=3)
                checked = (zarr.codecs.ZstdCodec(level=0), zarr.codecs.Crc32cCodec())
                for name, options in arrays.items():
                    group.create_array(name, compressors=checked, config={"write_empty_chunks": True}, **options)
                    self.descriptions[name] = describe(temporary / name)[1]
                group.attrs.put(self._marked)
                os.rename(temporary, self.path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def array(self, name: str, mode: str = "r") -> Any:
        """One of the Zarr arrays."""
        if (name, mode) not in self._opened:
            array = zarr_module().open_array(store=str(self.path), path=name, mode=mode)
            self._opened[name, mode] = array.with_config({"write_empty_chunks": True})  # a chunk that is missing was lost
        return self._opened[name, mode]

    def _check_arrays(self, expected: Mapping[str, tuple[int, ...]], chunks: Mapping[str, Iterable[str]]) -> None:
        """Refuse a store whose arrays are not those that it was made with, or that has lost chunks.

        `expected` are the arrays with the shape of a row of each, `chunks` the names of the chunks that hold what counts.
        Arrays that are not expected are there from the beginning, in one chunk each.
        """
        try:
            found = {name: describe(self.path / name) for name in {**self.descriptions, **expected}}
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{self.path} has lost arrays that it had when it was written: {DAMAGED}") from None
        for name, (shape, description) in found.items():
            if shape[1:] != list(expected.get(name, shape[1:])) or description != self.descriptions.get(name, description):
                raise InputError(f"the description of {name} in {self.path} was damaged or edited: {DAMAGED}")
            needed = chunks.get(name, ()) if name in expected else ["c" + "/0" * len(shape)] if np.prod(shape) else []
            lost = [chunk for chunk in needed if not (self.path / name / chunk).exists()]
            if lost:
                raise InputError(f"chunk {lost[0]} of {name} in {self.path} is missing: {DAMAGED}")

    def _append_events(self, events: Mapping[str, np.ndarray], stored: Mapping[str, int]) -> dict[str, int]:
        """Write columns of events behind all that count, wait until the disk has them, and say how many there are then."""
        total = dict(stored)
        for name, values in events.items():
            kind = name.partition("_")[0]
            first = stored.get(kind, 0)
            last = total[kind] = first + len(values)
            if not len(values) or not (self.path / name).is_dir():  # stores of earlier versions have fewer columns
                continue
            array = self.array(name, "r+")
            if array.shape[0] < last:
                array.resize((last, *array.shape[1:]))
                sync(self.path / name / "zarr.json")
            array[first:last] = values
            for chunk in range(first // EVENT_CHUNK, (last - 1) // EVENT_CHUNK + 1):
                sync(self.path / name / "c" / str(chunk))
            self._opened.pop((name, "r"), None)  # it knows the old length
        return total

    def _write_attributes(self) -> None:
        """Replace the attributes of the group in one atomic move."""
        document = {"zarr_format": 3, "node_type": "group", "attributes": self._marked}
        temporary = self.path / "t" / ".attributes"  # in an array's folder, what a killed process leaves disturbs no reader
        with writing(self.path):
            with temporary.open("w", encoding="utf-8") as file:
                file.write(json.dumps(document, allow_nan=False))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path / "zarr.json")

    @classmethod
    def _read(cls, path: Path) -> dict[str, Any]:
        """The attributes of a store of this kind and format."""
        attributes = read_attributes(path)
        if attributes.get("kind") != cls.KIND:
            raise InputError(f"{path} is not a {cls.KIND.split()[-1]} saved by dalembert")
        return {"descriptions": {}, **attributes}


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
                return read_rows(self._array, (slice(first, max(first, last), stride), *columns))
        elif isinstance(rows, (int, np.integer)):
            if not -self._rows <= rows < self._rows:
                raise IndexError(f"row {rows} of {self._rows}")
            return read_rows(self._array, (int(rows) % self._rows, *columns))
        return np.asarray(self)[index]

    def __iter__(self) -> Iterator[np.ndarray]:
        for first in range(0, self._rows, self._chunk):
            yield from self[first : first + self._chunk]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        del copy  # what comes from the disk is always new
        return np.asarray(self[:], dtype=dtype)
