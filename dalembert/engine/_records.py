"""What happens at walls, as columns: impacts and sustained contacts of a run, of many runs, and what is left of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np


class Events:
    """What happened at walls, one row each."""

    which: np.ndarray

    def of(self, which: int | Sequence[int]) -> Self:
        """The rows of one unilateral constraint, or of some."""
        return rows_of(type(self), self, np.isin(self.which, which))


@dataclass(frozen=True, eq=False)
class Impacts(Events):
    """The impacts of a run, one row each: when, on which unilateral constraint, and what it did.

    p_after = p_before + impulse grad phi(q) + friction slip_v^T, with impulse >= 0 and |friction| <= mu impulse; holonomic
    constraints add their own impulse. Impacts at the same time follow each other in the order in which they were resolved.
    Energies are values of H.
    """

    ACROSS: ClassVar[tuple[str, ...]] = ()
    """Columns with an entry for each direction across the normal."""

    t: np.ndarray
    which: np.ndarray
    impulse: np.ndarray
    friction: np.ndarray
    q: np.ndarray
    p_before: np.ndarray
    p_after: np.ndarray
    energy_before: np.ndarray
    energy_after: np.ndarray

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"<{len(self)} impacts>"


@dataclass(frozen=True, eq=False)
class Contacts(Events):
    """Sustained contacts of a run, one row each: on which unilateral constraint, from when to when, and how.

    With friction `slides` is the sign of the slip velocity, or 0 where the contact sticks, and a contact that changes from one
    to another has a row for each; without friction it is 0. Forces: `run.contact_forces`.
    """

    ACROSS: ClassVar[tuple[str, ...]] = ()

    which: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    slides: np.ndarray

    def __len__(self) -> int:
        return len(self.which)

    def __repr__(self) -> str:
        return f"<{len(self)} contacts>"


@dataclass(frozen=True, eq=False, repr=False)
class SteppedContacts(Contacts):
    """What contacts did in a run by time stepping: one row for each contact that acted between two stored states.

    `normal` is the impulse along grad phi from `begin` to `end`, which includes impacts, and `friction` that along the
    directions of `slip`, which is the sliding velocity at `end`; impulse / (end - begin) is the mean force.
    """

    ACROSS: ClassVar[tuple[str, ...]] = ("friction", "slip")

    normal: np.ndarray
    friction: np.ndarray
    slip: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class SphereContacts(Contacts):
    """Contacts of spheres in the steps that end in stored states: body `which` and body `other`, or plane -1 - other.

    `normal` is the impulse of the step, and `friction` that across it, a vector that acts on `which`.
    """

    ACROSS: ClassVar[tuple[str, ...]] = ("friction",)

    other: np.ndarray
    normal: np.ndarray
    friction: np.ndarray


class OfMembers:
    """Events of all members of an ensemble, in the order of members; `events[i]` are those of member i."""

    KIND: ClassVar[type]
    member: np.ndarray

    def __getitem__(self, member: int) -> Any:
        return rows_of(self.KIND, self, slice(*np.searchsorted(self.member, [member, member + 1])))


@dataclass(frozen=True, eq=False, repr=False)
class MemberImpacts(OfMembers, Impacts):
    """The impacts of all members of an ensemble, in the order of members; `impacts[i]` are those of member i."""

    KIND: ClassVar[type] = Impacts
    member: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class MemberContacts(OfMembers, Contacts):
    """The sustained contacts of all members of an ensemble, in the order of members; `contacts[i]` are those of member i."""

    KIND: ClassVar[type] = Contacts
    member: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class MemberSteppedContacts(OfMembers, SteppedContacts):
    """The same by time stepping."""

    KIND: ClassVar[type] = SteppedContacts
    member: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class MemberSphereContacts(OfMembers, SphereContacts):
    """The same of spheres."""

    KIND: ClassVar[type] = SphereContacts
    member: np.ndarray


@dataclass(frozen=True, eq=False)
class ImpactReduction:
    """What is left of each member's impacts and contacts where they are counted, not stored: arrays, one number a member."""

    count: np.ndarray
    """How many impacts there were; -1 for a member that was not computed."""
    impulse: np.ndarray
    """The sum of their impulses."""
    energy_change: np.ndarray
    """The sum of H after - H before: what restitution and moving walls did, and the energy errors of the impacts."""
    total_jump: np.ndarray
    """The sum of |H after - H before|."""
    largest_jump: np.ndarray
    """The largest |H after - H before|."""
    last_t: np.ndarray
    """When the last impact was; nan if there was none."""
    contacts: np.ndarray
    """How many sustained contacts there were."""
    contact_time: np.ndarray
    """How long they lasted altogether."""

    @staticmethod
    def of(tallies: np.ndarray) -> ImpactReduction:
        """From an array (member, TALLIED)."""
        values = dict(zip(TALLIED, tallies.T, strict=True))
        whole = {name: np.where(np.isnan(values[name]), -1, values[name]).astype(int) for name in ("count", "contacts")}
        return ImpactReduction(**(values | whole))


TALLIED = tuple(f.name for f in fields(ImpactReduction))
KINDS = ("impact", "contact")
RECORDS: dict[str, dict[str, type]] = {
    "": {},
    "impacts": {"impact": Impacts, "contact": Contacts},
    "time stepping": {"contact": SteppedContacts},
    "spheres": {"contact": SphereContacts},
}
"""What runs record, by the names under which stores know it."""
OF_MEMBERS: dict[type, type] = {
    kind.KIND: kind for kind in (MemberImpacts, MemberContacts, MemberSteppedContacts, MemberSphereContacts)
}
STORED: dict[str, tuple[type, ...]] = {"impact": (Impacts,), "contact": (SteppedContacts, SphereContacts, Contacts)}
"""The kinds that a file of one run may hold, those with more columns first."""
VECTORS = ("q", "p_before", "p_after")
INTEGERS = ("which", "member", "slides", "other")
LATER = ("friction", "slides")
"""Columns that files of earlier versions do not have: there was no friction."""

Columns = dict[str, tuple[tuple[int, ...], str]]
"""Names of columns in files, the shape of an entry of each and the type of its numbers."""


@dataclass(frozen=True)
class Recorded:
    """What runs record beside their states: one of RECORDS, and how long the vectors in it are."""

    name: str
    dim: int
    directions: int = 0
    """Across the normal of a contact."""

    @property
    def kinds(self) -> dict[str, type]:
        """The kinds of events by the prefix of their columns."""
        return RECORDS[self.name]

    @property
    def columns(self) -> Columns:
        """Those of a run; vectors of no components have none."""
        return {name: shape for prefix, kind in self.kinds.items() for name, shape in self._layout(kind, prefix).items()}

    @property
    def columns_of_members(self) -> Columns:
        """Those of an ensemble."""
        kinds = {prefix: OF_MEMBERS[kind] for prefix, kind in self.kinds.items()}
        return {name: shape for prefix, kind in kinds.items() for name, shape in self._layout(kind, prefix).items()}

    def _layout(self, kind: Any, prefix: str) -> Columns:
        sizes = dict.fromkeys(VECTORS, self.dim) | dict.fromkeys(kind.ACROSS, self.directions)
        shapes = {f.name: (sizes[f.name],) if f.name in sizes else () for f in fields(kind)}
        types = {name: "int64" if name in INTEGERS else "float64" for name in shapes}
        return {f"{prefix}_{name}": (shape, types[name]) for name, shape in shapes.items() if shape != (0,)}

    def of_members(self, prefix: str, parts: Sequence[Any]) -> Any:
        """The events of all members, one part each, of which some may be None."""
        kind, known = self.kinds[prefix], {k: part for k, part in enumerate(parts) if part is not None}
        member = np.repeat(np.array(list(known), dtype=int), [len(part) for part in known.values()])
        columns = [columns_of(part, prefix) for part in known.values()]
        joined = {
            name: np.concatenate([np.zeros((0, *shape), dtype), *(column[name] for column in columns)])
            for name, (shape, dtype) in self._layout(kind, prefix).items()
        }
        return from_columns(OF_MEMBERS[kind], prefix, {**joined, f"{prefix}_member": member}.__getitem__)


def columns_of(events: Any, prefix: str) -> dict[str, np.ndarray]:
    """The columns of events under the names that they have in files."""
    return {f"{prefix}_{f.name}": getattr(events, f.name) for f in fields(events)}


def from_columns(kind: Any, prefix: str, column: Callable[[str], np.ndarray]) -> Any:
    """Events whose columns are found by their names in files; those of `LATER`, and empty vectors, may be missing."""
    found: dict[str, np.ndarray] = {}
    for f in fields(kind):
        try:
            found[f.name] = column(f"{prefix}_{f.name}")
        except KeyError:
            if f.name not in (*LATER, *kind.ACROSS):
                raise
            count = len(found["which"])
            empty = np.zeros(count, dtype=int if f.name in INTEGERS else float)
            found[f.name] = np.zeros((count, 0)) if f.name in kind.ACROSS else empty
    return kind(**found)


def from_file(prefix: str, file: Mapping[str, np.ndarray]) -> Any:
    """The events of a file, of the kind whose columns it holds; None if it holds none."""
    if f"{prefix}_which" not in file:
        return None
    kinds = (kind for kind in STORED[prefix] if all(f"{prefix}_{f.name}" in file for f in fields(kind)))
    return from_columns(next(kinds, STORED[prefix][-1]), prefix, file.__getitem__)


def rows_of(kind: type, events: Any, rows: slice | np.ndarray) -> Any:
    """Some of the events."""
    return kind(**{f.name: getattr(events, f.name)[rows] for f in fields(kind)})


def of_all_members(parts: Sequence[Any]) -> Any:
    """Events of the same kind, a part for each member, as those of an ensemble."""
    kind = OF_MEMBERS[type(parts[0])]
    columns = {f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(parts[0])}
    return kind(**columns, member=np.repeat(np.arange(len(parts)), [len(part) for part in parts]))


def in_order_of_members(events: Any) -> Any:
    """The same events of an ensemble, sorted by members."""
    return rows_of(type(events), events, np.argsort(events.member, kind="stable"))
