"""The table of an ensemble: columns with one row a member, the same in memory, for a part on a worker and in a Zarr store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dalembert.engine._layout import COUNTED
from dalembert.engine._records import OF_MEMBERS, TALLIED, Columns, Recorded, from_columns, in_order_of_members
from dalembert.storage._groups import fill_value

REJECTED = "rejected_steps"
COUNTS = tuple(name for name in COUNTED if name != REJECTED)
REDUCTION = ("first", "last", "min", "max", "mean", "slope")


@dataclass(frozen=True)
class Layout:
    """What all members of an ensemble have in common, which decides the columns of its table."""

    members: int
    part: int
    """How many members make a part."""
    h: float
    steps: int
    save_every: int
    blocks: tuple[tuple[str, int], ...]
    method: str
    defaults: dict[str, Any]
    """The model's parameters with its own values of them."""
    quantities: tuple[str, ...] = ()
    """What is followed along the runs, of which a `Reduction` is left."""
    counted: tuple[str, ...] = ()
    """The names under which impacts are counted instead of stored."""
    impact_counts: tuple[str, ...] = ()
    """What is counted of every member's impacts, or steps with contact."""
    records: str = ""
    """What is recorded beside the states, one of `RECORDS`."""
    directions: int = 0
    """Of friction, in what is recorded."""
    stage_multipliers: bool = False
    stage: int = 0
    """How many stage multipliers are stored with a state, if they are."""
    clock: tuple[str, ...] = ()
    """What is stored behind each state where step sizes vary: t and 1/h."""

    @staticmethod
    def of(header: Mapping[str, Any]) -> Layout:
        """From what a store says of itself."""
        values = {f.name: header[f.name] for f in fields(Layout) if f.name in header}
        values = {"records": "impacts" if header.get("keeps_impacts") else "", **values}  # as earlier versions said it
        lists = {name: tuple(values.get(name, ())) for name in ("quantities", "counted", "impact_counts", "clock")}
        return Layout(**values | lists | {"blocks": tuple((str(name), int(size)) for name, size in header["blocks"])})

    @property
    def n_state(self) -> int:
        """The number of variables."""
        return sum(size for _, size in self.blocks)

    @property
    def counts(self) -> tuple[str, ...]:
        """What is counted along a member's steps; rejected ones where there may be some: earlier versions did not know them."""
        return COUNTS if "memory" not in self.clock else (*COUNTS, REJECTED)

    @property
    def columns(self) -> Columns:
        """The shape of a member's entry in each column, and the type of its numbers."""
        rows, n, m, c = self.steps // self.save_every + 1, self.n_state, self.stage, len(self.clock)
        found: Columns = {"states": ((rows, n), "float64"), "last": ((n + c + m,), "float64")}
        found |= {"clock": ((rows, c), "float64")} if c else {}
        found |= {"prepared": ((n,), "float64"), **({"stage": ((rows, m), "float64")} if m else {})}
        found |= {name: ((), "int64") for name in ("steps_done", *self.counts, *self.impact_counts)}
        found |= {f"counted_{name}": ((len(TALLIED),), "float64") for name in self.counted}
        return found | {f"reduced_{name}": ((len(REDUCTION),), "float64") for name in self.quantities}

    @property
    def recorded(self) -> Recorded:
        """What is recorded beside the states."""
        return Recorded(self.records, self.blocks[0][1], self.directions)

    @property
    def event_columns(self) -> Columns:
        """The columns of impacts and contacts, if they are stored."""
        return self.recorded.columns_of_members

    @property
    def bytes_per_member(self) -> int:
        """How much memory the columns take."""
        return sum(8 * int(np.prod(shape)) for shape, _ in self.columns.values())

    def times(self, t0: float) -> np.ndarray:
        """When states are stored."""
        return t0 + np.arange(self.steps // self.save_every + 1) * self.save_every * self.h


@dataclass(eq=False)
class MemberTable:
    """What members of an ensemble left behind; those that were not computed have -1 in the column `steps_done`."""

    columns: dict[str, Any]
    """Arrays, or in a store what reads them."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """For each part the columns of its impacts and contacts, which have the numbers of their members; none if not stored."""
    failures: dict[int, str] = field(default_factory=dict)
    """Why members failed."""
    stats: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def empty(layout: Layout) -> MemberTable:
        """A table into which parts can be written."""
        columns = {
            name: np.full((layout.members, *shape), fill_value(dtype), dtype=dtype)
            for name, (shape, dtype) in layout.columns.items()
        }
        return MemberTable(columns)

    def __len__(self) -> int:
        return len(self.columns["steps_done"])

    def complete(self, steps: int) -> bool:
        """Whether every member made all its steps or failed."""
        return all(done == steps or k in self.failures for k, done in enumerate(self.columns["steps_done"].tolist()))

    def numbered_from(self, first: int) -> MemberTable:
        """The same table, whose members have numbers from `first` on."""
        events = [
            {name: values + first if name.endswith("_member") else values for name, values in part.items()}
            for part in self.events
        ]
        return MemberTable(self.columns, events, {first + k: why for k, why in self.failures.items()}, self.stats)

    def write(self, first: int, part: MemberTable) -> None:
        """Fill in a part, whose first member has the number `first`."""
        part = part.numbered_from(first)
        for name, values in part.columns.items():
            self.columns[name][first : first + len(part)] = values
        self.events += part.events
        self.failures |= part.failures
        self.stats = added(self.stats, part.stats)

    def event_records(self, recorded: Recorded, prefix: str) -> Any:
        """The impacts or the contacts of all members, in the order of members; None if they are not stored."""
        if not self.events or prefix not in recorded.kinds:
            return None
        kind = OF_MEMBERS[recorded.kinds[prefix]]
        found = from_columns(kind, prefix, lambda name: np.concatenate([part[name] for part in self.events]))
        return in_order_of_members(found)


def added(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    """What two parts took together."""
    return {name: first.get(name, 0) + second[name] for name in ("build_seconds", "wall_seconds")}
