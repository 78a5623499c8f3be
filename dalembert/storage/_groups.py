"""What runs and sweeps on disk have in common: Zarr groups that are made whole, grow, and are never half-written.

What is in the arrays counts once the group's attributes, replaced in one atomic move, say so.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dalembert.errors import DalembertError, InputError

FORMAT = 1
CHUNK_NUMBERS = 2**21
"""How many numbers a run computes from one chunk to the next: a part of a second for small systems."""

EVENT_CHUNK = 4096
"""Impacts, or contacts, in a chunk of their arrays."""


def zarr_module() -> Any:
    """The package zarr, if it is there."""
    try:
        import zarr
    except ImportError:
        raise DalembertError("runs on disk need the package zarr: pip install dalembert[zarr]") from None
    return zarr


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system says about a place that cannot be written, as a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "make room on the disk, then go on with da.resume"
        else:
            advice = "check the path and its permissions"
        reason = error.strerror or str(error)
        raise DalembertError(
            f"{path} cannot be written ({reason}): {advice}; what was written before stays readable"
        ) from error


def check_target(path: Path, size: int) -> None:
    """Refuse a place for a new store that is taken, unwritable or too small, before anything is computed."""
    if path.exists():
        raise InputError(f"{path} exists already: go on with it by da.resume, choose another name, or delete it")
    if not path.parent.is_dir():
        raise InputError(f"the directory {path.parent} of {path.name} does not exist: make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise DalembertError(f"{path} cannot be written (permission denied for {path.parent}): choose another place")
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise DalembertError(
            f"{path} would take {size / 1e9:.3g} GB, and the disk has {free / 1e9:.3g} GB left: store fewer states with "
            "save_every=, or choose another disk"
        )


def event_arrays(names: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, dict[str, Any]]:
    """What Zarr needs to make columns of events, none of which is there yet."""
    return {
        name: {"shape": (0, *shape), "chunks": (EVENT_CHUNK, *shape), "dtype": dtype, "fill_value": fill_value(dtype)}
        for name, (shape, dtype) in names.items()
    }


def fill_value(dtype: str) -> float:
    """What stands for numbers that are not there yet."""
    return np.nan if dtype == "float64" else -1


def sync(place: Path) -> None:
    """Wait until the disk has a file, or all files below a directory."""
    for file in [place] if place.is_file() else place.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def read_attributes(path: Path) -> dict[str, Any]:
    """The attributes of a group, from its own file."""
    try:
        return json.loads((path / "zarr.json").read_text(encoding="utf-8"))["attributes"]
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give the path that save_to= was given") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path} is not a run saved by dalembert") from None


class Store(ABC):
    """A Zarr group of some kind, whose arrays are opened when they are asked for."""

    KIND: ClassVar[str]
    path: Path
    _opened: dict[tuple[str, str], Any]

    @abstractmethod
    def _attributes(self) -> dict[str, Any]:
        """What the group says of itself and of its arrays."""

    @property
    def _marked(self) -> dict[str, Any]:
        return {"kind": self.KIND, "format": FORMAT, **self._attributes()}

    def _create(self, arrays: Mapping[str, dict[str, Any]]) -> None:
        """Make the group with arrays that hold nothing yet; it appears whole or not at all."""
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with writing(self.path):
                group = zarr_module().create_group(store=str(temporary), zarr_format=3, attributes=self._marked)
                for name, options in arrays.items():
                    group.create_array(name, **options)
                os.rename(temporary, self.path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def array(self, name: str, mode: str = "r") -> Any:
        """One of the Zarr arrays."""
        if (name, mode) not in self._opened:
            self._opened[name, mode] = zarr_module().open_array(store=str(self.path), path=name, mode=mode)
        return self._opened[name, mode]

    def _append_events(self, events: Mapping[str, np.ndarray], stored: Mapping[str, int]) -> dict[str, int]:
        """Write columns of events behind all that count, wait until the disk has them, and say how many there are then."""
        total = dict(stored)
        for name, values in events.items():
            kind = name.partition("_")[0]
            first = stored.get(kind, 0)
            last = total[kind] = first + len(values)
            if not len(values):
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
        if attributes.get("format") != FORMAT:
            raise InputError(f"{path} has the format {attributes.get('format')} of another version of dalembert")
        return attributes


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
