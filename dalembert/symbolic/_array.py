"""NumPy object arrays of symbolic scalars, and how they become CasADi columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.symbolic._columns import column_of, elements_of
from dalembert.symbolic._scalar import NUMPY, NotForSymbols, Scalar


class SymbolicArray(np.ndarray):
    """An object array of `Scalar`s. Made by dalembert; a model meets it as q, v, p, lam and array parameters."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return NUMPY["ufunc"](ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        return NUMPY["function"](func, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        _check_index(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _check_index(index)
        super().__setitem__(index, value)


def _check_index(index: Any) -> None:
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, Scalar):
            part.__index__()
        if isinstance(part, SymbolicArray):
            raise NotForSymbols("a model function indexed an array by symbols, as in q[q > 0]: use np.where(q > 0, a, b)")


def wrap(x: Any) -> Any:
    """Object arrays become symbolic arrays; anything else passes."""
    if isinstance(x, np.ndarray) and x.dtype == object:
        return x[()] if x.shape == () else x.view(SymbolicArray)
    if isinstance(x, (tuple, list)):
        return type(x)(wrap(item) for item in x)
    return x


def plain(x: Any) -> Any:
    """The opposite of `wrap`, deep: NumPy's own code then runs on plain object arrays."""
    if isinstance(x, Scalar):
        box = np.empty((), dtype=object)
        box[()] = x
        return box
    if isinstance(x, SymbolicArray):
        return x.view(np.ndarray)
    if isinstance(x, (tuple, list)):
        return type(x)(plain(item) for item in x)
    if isinstance(x, dict):
        return {key: plain(item) for key, item in x.items()}
    return x


def objects(x: Any) -> np.ndarray:
    """A plain object array of scalars and numbers."""
    return x.view(np.ndarray) if isinstance(x, SymbolicArray) else np.array(x, dtype=object)


def as_column(x: Any) -> ca.SX:
    """A CasADi column of any array of scalars and numbers, in C order."""
    return column_of(objects(x).ravel().tolist())


def from_column(column: ca.SX, shape: tuple[int, ...] | None = None) -> SymbolicArray:
    """The array behind a CasADi column."""
    return elements_of(column).reshape(-1 if shape is None else shape).view(SymbolicArray)


def stack_columns(parts: Iterable[Any]) -> ca.SX:
    """One CasADi column of several arrays."""
    return ca.vertcat(ca.SX(0, 1), *(as_column(part) for part in parts))
