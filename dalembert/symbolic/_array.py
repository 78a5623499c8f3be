"""NumPy object arrays of symbolic scalars, with the NumPy functions that plain object arrays lack."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic._scalar import BINARY, UNARY, Scalar, elementary, sx_of, where


class SymbolicArray(np.ndarray):
    """An object array of `Scalar`s. Made by dalembert; a model meets it as q, v, p, lam and array parameters."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable, types: Any, args: Any, kwargs: Any) -> Any:  # type: ignore[override]
        return apply_function(func, args, kwargs)


def wrap(x: Any) -> Any:
    """Object arrays become symbolic arrays; anything else passes."""
    if isinstance(x, np.ndarray) and x.dtype == object:
        return x[()] if x.shape == () else x.view(SymbolicArray)
    if isinstance(x, (tuple, list)):
        return type(x)(wrap(item) for item in x)
    return x


def _plain(x: Any) -> Any:
    """The opposite of `wrap`, deep: NumPy's own code then runs on plain object arrays."""
    if isinstance(x, Scalar):
        box = np.empty((), dtype=object)
        box[()] = x
        return box
    if isinstance(x, SymbolicArray):
        return x.view(np.ndarray)
    if isinstance(x, (tuple, list)):
        return type(x)(_plain(item) for item in x)
    if isinstance(x, dict):
        return {key: _plain(item) for key, item in x.items()}
    return x


def _objects(x: Any) -> np.ndarray:
    """A plain object array of scalars and numbers."""
    return x.view(np.ndarray) if isinstance(x, SymbolicArray) else np.array(x, dtype=object)


def _elementwise(function: Callable, *inputs: Any) -> Any:
    operands = np.broadcast_arrays(*(_objects(x) for x in inputs))
    result = np.empty(operands[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(x[index] for x in operands))
    return wrap(result)


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    """NumPy's hook for element-wise functions, products and their reductions."""
    name = ufunc.__name__
    out = kwargs.pop("out", None)
    if ufunc is np.matmul or ufunc.__name__ in {"vecdot", "matvec", "vecmat"}:
        result = wrap(ufunc(*(_objects(x) for x in inputs), **kwargs))
    elif name not in UNARY and name not in BINARY:
        raise ModelError(f"np.{name} does not work on symbols; write it with elementary functions such as np.sin or np.where")
    elif method == "__call__":
        result = _elementwise(functools.partial(elementary, name), *inputs)
    elif method == "reduce":
        result = _reduce(name, _objects(inputs[0]), kwargs)
    elif method == "outer":
        left, right = (_objects(x) for x in inputs)
        result = _elementwise(functools.partial(elementary, name), left.reshape(left.shape + (1,) * right.ndim), right)
    elif method == "accumulate":
        result = wrap(ufunc.accumulate(_objects(inputs[0]), **kwargs))
    else:
        raise ModelError(f"np.{name}.{method} does not work on symbols; write the loop out")
    if out is not None:
        out[0][...] = _plain(result)
        return out[0]
    return result


def _reduce(name: str, array: np.ndarray, kwargs: dict[str, Any]) -> Any:
    axis = kwargs.get("axis", 0)
    axes = range(array.ndim) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    axes = sorted(a % array.ndim for a in axes)
    moved = np.moveaxis(array, axes, range(len(axes))).reshape(
        -1, *(array.shape[a] for a in range(array.ndim) if a not in axes)
    )
    if len(moved) == 0:
        return getattr(np, name).reduce(np.zeros(array.shape), **kwargs)
    result = functools.reduce(lambda x, y: _elementwise(functools.partial(elementary, name), x, y), list(moved))
    if kwargs.get("keepdims"):
        result = np.expand_dims(_objects(result), tuple(axes))
    return wrap(result) if isinstance(result, np.ndarray) else result


def apply_function(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """NumPy's hook for everything that is not a ufunc."""
    special = _SPECIAL.get(func)
    if special is not None:
        return special(*args, **kwargs)
    try:
        return wrap(func(*_plain(args), **_plain(kwargs)))
    except ModelError:
        raise
    except (TypeError, np.exceptions.DTypePromotionError) as error:
        raise ModelError(f"np.{func.__name__} does not work on symbols ({error}); write it with elementary functions") from None


def _matrix(x: Any) -> ca.SX:
    array = _objects(x)
    if array.ndim != 2:
        raise ModelError(f"np.linalg on symbols takes one matrix at a time; got an array of shape {array.shape}")
    return ca.vertcat(*(ca.horzcat(*(sx_of(item) for item in row)) for row in array))


def _from_matrix(m: ca.SX) -> SymbolicArray:
    result = np.empty(m.shape, dtype=object)
    for index in np.ndindex(*m.shape):
        result[index] = Scalar(m[index])
    return wrap(result)


def _solve(a: Any, b: Any) -> Any:
    right = _objects(b)
    solution = _from_matrix(ca.mtimes(ca.inv_minor(_matrix(a)), _matrix(right.reshape(len(right), -1))))
    return solution.reshape(right.shape)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, **_: Any) -> Any:
    low = a if a_min is None else np.maximum(a, a_min)
    return low if a_max is None else np.minimum(low, a_max)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (None, 2) or (axis is None and np.ndim(_plain(x)) > 1 and ord == 2):
        raise ModelError(
            "np.linalg.norm on symbols computes Euclidean norms only; write other norms with np.abs, np.max or np.sum"
        )
    return np.sqrt(np.sum(x * x if isinstance(x, np.ndarray) else np.square(x), axis=axis, keepdims=keepdims))


def _array(x: Any, dtype: Any = None, **_: Any) -> Any:
    return wrap(_objects(x).copy())


_SPECIAL: dict[Callable, Callable] = {
    np.where: lambda condition, x, y: _elementwise(where, condition, x, y),
    np.clip: _clip,
    np.max: lambda a, axis=None, **_: _reduce("maximum", _objects(a), {"axis": axis}),
    np.min: lambda a, axis=None, **_: _reduce("minimum", _objects(a), {"axis": axis}),
    np.linalg.norm: _norm,
    np.linalg.inv: lambda a: _from_matrix(ca.inv_minor(_matrix(a))),
    np.linalg.det: lambda a: Scalar(ca.det(_matrix(a))),
    np.linalg.solve: _solve,
    np.array: _array,
    np.asarray: _array,
}


def as_column(x: Any) -> ca.SX:
    """A CasADi column of any array of scalars and numbers, in C order."""
    items = _objects(x).ravel()
    return ca.vertcat(*(sx_of(item) for item in items)) if len(items) else ca.SX(0, 1)


def from_column(column: ca.SX, shape: tuple[int, ...] | None = None) -> SymbolicArray:
    """The array behind a CasADi column."""
    result = np.empty(column.shape[0], dtype=object)
    for i in range(column.shape[0]):
        result[i] = Scalar(column[i])
    return result.reshape(-1 if shape is None else shape).view(SymbolicArray)


def stack_columns(parts: Iterable[Any]) -> ca.SX:
    """One CasADi column of several arrays."""
    return ca.vertcat(ca.SX(0, 1), *(as_column(part) for part in parts))
