"""Arrays of scalars as CasADi columns and back.

The elements of a column remember it: what is done to whole arrays then costs no call of CasADi for each of their elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from typing import Any

import casadi as ca
import numpy as np

from dalembert.symbolic._scalar import Scalar, sx_of

FEW = 4
"""Elements of one column up to which they are taken one by one."""


class Column:
    """A CasADi column, and its elements as expressions of their own once one of them is asked for."""

    def __init__(self, whole: ca.SX) -> None:
        self.whole = whole

    @cached_property
    def elements(self) -> list[ca.SX]:
        """All elements: to split a column costs little more than to take one element out of it."""
        return ca.vertsplit(self.whole)

    def at(self, places: list[int]) -> ca.SX:
        """The elements at some places, as a column."""
        first, count = places[0], len(places)
        if self.whole.shape[0] == 1:
            return ca.repmat(self.whole, count, 1)
        if places != list(range(first, first + count)):
            return self.whole[places]
        return self.whole if count == self.whole.shape[0] else self.whole[first : first + count]


class Element(Scalar):
    """An element of a column, which has an expression of its own once one of its kind is asked for."""

    __slots__ = ("column", "place")

    def __init__(self, column: Column, place: int) -> None:
        self.column, self.place = column, place

    @property
    def sx(self) -> ca.SX:
        """The CasADi expression."""
        return self.column.elements[self.place]


COLUMN, PLACE = attrgetter("column"), attrgetter("place")


def elements_of(column: ca.SX) -> np.ndarray:
    """An array of the elements of a CasADi column."""
    count = column.shape[0]
    return np.fromiter(map(Element, repeat(Column(column)), range(count)), dtype=object, count=count)


def column_of(items: Sequence[Any]) -> ca.SX:
    """A CasADi column of scalars and numbers."""
    if all(issubclass(kind, Element) for kind in set(map(type, items))) and len(columns := set(map(COLUMN, items))) == 1:
        return columns.pop().at(list(map(PLACE, items)))
    places: dict[Column | None, list[int]] = {}
    for k, item in enumerate(items):
        places.setdefault(getattr(item, "column", None), []).append(k)
    few = [column for column, own in places.items() if column is not None and len(own) <= FEW]
    for column in few:
        places.setdefault(None, []).extend(places.pop(column))
    parts = [
        _loose([items[k] for k in own]) if column is None else column.at([items[k].place for k in own])
        for column, own in places.items()
    ]
    order = [k for own in places.values() for k in own]
    column = ca.vertcat(ca.SX(0, 1), *parts)
    return column if order == sorted(order) else column[np.argsort(order).tolist()]


def _loose(items: list[Any]) -> ca.SX:
    """A column of numbers, or of scalars that have no column in common."""
    if any(isinstance(item, Scalar) for item in items):
        return ca.vertcat(*map(sx_of, items))
    return ca.SX(ca.DM([float(item) for item in items]))
