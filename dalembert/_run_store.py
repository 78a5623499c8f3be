"""A run on disk: a Zarr group whose arrays grow chunk by chunk, and whose attributes say how far it has come.

The arrays `t`, `states` and, where a run keeps them, `stage_lam` and `stage_psi` have their final length from the beginning;
rows that are not there yet read as nan. Those of impacts and contacts, `impact_t` and so on, grow. A chunk counts once the
group's attributes, replaced in one atomic move, say so: a run that is killed at any moment leaves all its complete chunks. The
attributes also hold the state at the end of the last complete chunk, the compensation of the summation and what is known about
walls there, from which the run goes on.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dalembert._events import KINDS, columns_of, layout
from dalembert.errors import DalembertError, InputError

FORMAT = 1
KIND = "dalembert run"
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


def create_group(path: Path, arrays: dict[str, dict[str, Any]], attributes: dict[str, Any]) -> None:
    """A new Zarr group with arrays that hold nothing yet; it appears whole or not at all."""
    zarr = zarr_module()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with writing(path):
            group = zarr.create_group(store=str(temporary), zarr_format=3, attributes=attributes)
            for name, options in arrays.items():
                group.create_array(name, **options)
            os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def event_arrays(names: Mapping[str, tuple[tuple[int, ...], str]]) -> dict[str, dict[str, Any]]:
    """What `create_group` needs for columns of events, none of which is there yet."""
    return {
        name: {"shape": (0, *shape), "chunks": (EVENT_CHUNK, *shape), "dtype": dtype, "fill_value": fill_value(dtype)}
        for name, (shape, dtype) in names.items()
    }


def fill_value(dtype: str) -> float:
    """What stands for numbers that are not there yet."""
    return np.nan if dtype == "float64" else -1


def append_events(path: Path, array: Any, name: str, first: int, values: np.ndarray) -> None:
    """Write events from the row `first` on, behind all that count, and wait until the disk has them."""
    if not len(values):
        return
    last = first + len(values)
    if array.shape[0] < last:
        array.resize((last, *array.shape[1:]))
        sync(path / name / "zarr.json")
    array[first:last] = values
    for chunk in range(first // EVENT_CHUNK, (last - 1) // EVENT_CHUNK + 1):
        sync(path / name / "c" / str(chunk))


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


def write_attributes(path: Path, attributes: dict[str, Any]) -> None:
    """Replace the attributes of a group in one atomic move."""
    document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    temporary = path / "t" / ".attributes"  # what a killed process leaves in an array's folder does not disturb other readers
    with writing(path):
        with temporary.open("w", encoding="utf-8") as file:
            file.write(json.dumps(document, allow_nan=False))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path / "zarr.json")


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
    walls: int = 0
    """The number of unilateral constraints."""

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
        return (("states", self.n_state), *(part for part in self.stage if part[1]))

    @property
    def events(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """The columns of impacts and contacts, if there may be any."""
        kinds, dim = KINDS if self.walls else {}, self.blocks[0][1]
        return {name: shape for prefix, kind in kinds.items() for name, shape in layout(kind, prefix, dim).items()}

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
class RunStore:
    """The Zarr group of one run."""

    path: Path
    header: Header
    progress: Progress
    checkpoint: Checkpoint
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
            names = ("time", "variable" if name == "states" else "constraint_" + name.removeprefix("stage_"))
            arrays[name] = {"shape": (rows, size), "chunks": (header.chunk, size), "dimension_names": names, **common}
        store = cls(path, header, Progress(0, 0, "running", "", checkpoint.stats), checkpoint)
        create_group(path, arrays | event_arrays(header.events), store._attributes())
        return store

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunStore:
        """A store that is there."""
        place = Path(path)
        attributes = read_attributes(place)
        try:
            if attributes["kind"] != KIND:
                raise KeyError
            if attributes["format"] != FORMAT:
                raise InputError(f"{place} has the format {attributes['format']} of another version of dalembert")
            fields, point = dict(attributes["header"]), dict(attributes["checkpoint"])
            for name in ("blocks", "stage"):
                fields[name] = tuple((str(block), int(size)) for block, size in fields[name])
            for name in ("row", "compensation"):
                point[name] = np.array(point[name], dtype=float)  # None becomes nan
            return cls(place, Header(**fields), Progress(**attributes["progress"]), Checkpoint(**point))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{place} is not a run saved by dalembert") from None

    def _attributes(self) -> dict[str, Any]:
        point = vars(self.checkpoint) | {
            name: [x if np.isfinite(x) else None for x in getattr(self.checkpoint, name).tolist()]
            for name in ("row", "compensation")
        }
        parts = {"header": vars(self.header), "progress": vars(self.progress), "checkpoint": point}
        return {"kind": KIND, "format": FORMAT, **parts}

    def array(self, name: str, mode: str = "r") -> Any:
        """One of the Zarr arrays."""
        if (name, mode) not in self._opened:
            self._opened[name, mode] = zarr_module().open_array(store=str(self.path), path=name, mode=mode)
        return self._opened[name, mode]

    def _write(self, name: str, first: int, values: np.ndarray) -> None:
        """Put values into one chunk of an array, and wait until the disk has them: the attributes must not come before them."""
        self.array(name, "r+")[first : first + len(values)] = values
        sync(self.path / name / "c" / str(first // self.header.chunk))

    def extended(self, steps: int) -> RunStore:
        """The same run, with another number of steps."""
        rows = self.header.rows(steps)
        with writing(self.path):
            for name in ("t", *(name for name, _ in self.header.arrays)):
                array = self.array(name, "r+")
                array.resize((rows, *array.shape[1:]))
        store = replace(self, header=replace(self.header, steps=steps), _opened={})
        write_attributes(self.path, store._attributes())
        return store

    def commit(
        self, rows: np.ndarray, events: Mapping[str, Any], progress: Progress, checkpoint: Checkpoint | None = None
    ) -> RunStore:
        """Write the rows and events since the last checkpoint, then say so; with a new checkpoint they are a complete chunk."""
        first = self.checkpoint.step // self.header.save_every
        last, column = first + len(rows), 0
        with writing(self.path):
            numbers = self.header.step_of(np.arange(first, last), progress.steps)
            self._write("t", first, self.header.t0 + numbers * self.header.h)
            for name, size in self.header.arrays:
                self._write(name, first, rows[:, column : column + size])
                column += size
            stored = dict(self.checkpoint.events)
            for kind, found in events.items():
                for name, values in columns_of(found, kind).items():
                    append_events(self.path, self.array(name, "r+"), name, stored.get(kind, 0), values)
                    self._opened.pop((name, "r"), None)  # it knows the old length
                stored[kind] = stored.get(kind, 0) + len(found)
        point = self.checkpoint if checkpoint is None else replace(checkpoint, events=stored)
        store = replace(self, progress=replace(progress, rows=last, events=stored), checkpoint=point)
        write_attributes(self.path, store._attributes())
        return store
