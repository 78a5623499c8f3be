"""What happens at walls, as columns: impacts and sustained contacts of a run, of many runs, and what is left of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Impacts:
    """The impacts of a run, one row each: when, on which unilateral constraint, and what it did.

    p_after = p_before + impulse grad phi(q) + friction slip_v^T, with impulse >= 0 and |friction| <= mu impulse; holonomic
    constraints add their own impulse. Impacts at the same time follow each other in the order in which they were resolved.
    Energies are values of H.
    """

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
class Contacts:
    """Sustained contacts of a run, one row each: on which unilateral constraint, from when to when, and how.

    With friction `slides` is the sign of the slip velocity, or 0 where the contact sticks, and a contact that changes from one
    to another has a row for each; without friction it is 0. Forces: `run.contact_forces`.
    """

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

    normal: np.ndarray
    friction: np.ndarray
    slip: np.ndarray

    def of(self, which: int) -> SteppedContacts:
        """The rows of one unilateral constraint."""
        mine = self.which == which
        return SteppedContacts(*(column[mine] for column in vars(self).values()))


@dataclass(frozen=True, eq=False, repr=False)
class SphereContacts(Contacts):
    """Contacts of spheres in the steps that end in stored states: body `which` and body `other`, or plane -1 - other.

    `normal` is the impulse of the step, and `friction` that across it, a vector that acts on `which`.
    """

    other: np.ndarray
    normal: np.ndarray
    friction: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class MemberImpacts(Impacts):
    """The impacts of all members of an ensemble, in the order of members; `impacts[i]` are those of member i."""

    member: np.ndarray

    def __getitem__(self, member: int) -> Impacts:
        return rows_of(Impacts, self, slice(*np.searchsorted(self.member, [member, member + 1])))


@dataclass(frozen=True, eq=False, repr=False)
class MemberContacts(Contacts):
    """The sustained contacts of all members of an ensemble, in the order of members; `contacts[i]` are those of member i."""

    member: np.ndarray

    def __getitem__(self, member: int) -> Contacts:
        return rows_of(Contacts, self, slice(*np.searchsorted(self.member, [member, member + 1])))


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
KINDS: dict[str, type] = {"impact": Impacts, "contact": Contacts}
OF_MEMBERS: dict[str, type] = {"impact": MemberImpacts, "contact": MemberContacts}
STORED: dict[str, tuple[type, ...]] = {"impact": (Impacts,), "contact": (SteppedContacts, SphereContacts, Contacts)}
"""The kinds that a file of one run may hold, those with more columns first."""
VECTORS = ("q", "p_before", "p_after")
INTEGERS = ("which", "member", "slides")
LATER = ("friction", "slides")
"""Columns that files of earlier versions do not have: there was no friction."""


def layout(kind: type, prefix: str, dim: int) -> dict[str, tuple[tuple[int, ...], str]]:
    """The columns of a kind of event under the names that they have in files: the shape of an entry, and its type."""
    return {
        f"{prefix}_{f.name}": ((dim,) if f.name in VECTORS else (), "int64" if f.name in INTEGERS else "float64")
        for f in fields(kind)
    }


def layout_of_members(dim: int) -> dict[str, tuple[tuple[int, ...], str]]:
    """`layout` of all events of an ensemble."""
    return {name: shape for prefix, kind in OF_MEMBERS.items() for name, shape in layout(kind, prefix, dim).items()}


def columns_of(events: Any, prefix: str) -> dict[str, np.ndarray]:
    """The columns of events under the names that they have in files."""
    return {f"{prefix}_{f.name}": getattr(events, f.name) for f in fields(events)}


def from_columns(kind: type, prefix: str, column: Callable[[str], np.ndarray]) -> Any:
    """Events whose columns are found by their names in files; those of `LATER` that are not there are zero."""
    found: dict[str, np.ndarray] = {}
    for f in fields(kind):
        try:
            found[f.name] = column(f"{prefix}_{f.name}")
        except KeyError:
            if f.name not in LATER:
                raise
            found[f.name] = np.zeros(len(found["which"]), dtype=int if f.name in INTEGERS else float)
    return kind(**found)


def from_file(prefix: str, file: Mapping[str, np.ndarray]) -> Any:
    """The events of a file, of the kind whose columns it holds; None if it holds none."""
    if f"{prefix}_which" not in file:
        return None
    kinds = (kind for kind in STORED[prefix] if all(f"{prefix}_{f.name}" in file for f in fields(kind)))
    return from_columns(next(kinds, KINDS[prefix]), prefix, file.__getitem__)


def rows_of(kind: type, events: Any, rows: slice | np.ndarray) -> Any:
    """Some of the events."""
    return kind(**{f.name: getattr(events, f.name)[rows] for f in fields(kind)})


def of_members(prefix: str, dim: int, parts: Sequence[Any]) -> Any:
    """The events of all members, one part each, of which some may be None."""
    known = {k: part for k, part in enumerate(parts) if part is not None}
    member = np.repeat(np.array(list(known), dtype=int), [len(part) for part in known.values()])
    columns = [columns_of(part, prefix) for part in known.values()]
    joined = {
        name: np.concatenate([np.zeros((0, *shape), dtype), *(column[name] for column in columns)])
        for name, (shape, dtype) in layout(KINDS[prefix], prefix, dim).items()
    }
    return from_columns(OF_MEMBERS[prefix], prefix, {**joined, f"{prefix}_member": member}.__getitem__)


def in_order_of_members(events: Any) -> Any:
    """The same events of an ensemble, sorted by members."""
    return rows_of(type(events), events, np.argsort(events.member, kind="stable"))
