"""The NumPy functions that arrays of symbols lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic._array import SymbolicArray, objects, plain, wrap
from dalembert.symbolic._scalar import Scalar, sx_of, where
from dalembert.symbolic._universal import LONG, NO_MASK, clip, elementwise, kinds_of, reduce_over


def apply_function(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """NumPy's hook for everything that is not a ufunc."""
    if kwargs.get("where", np._NoValue) is not np._NoValue:
        raise ModelError(NO_MASK.format(func.__name__))
    special = _SPECIAL.get(func)
    try:
        if special is not None:
            return special(*args, **kwargs)
        if func in _CREATION:
            return wrap(objects(func(*args, **kwargs)))
        return wrap(func(*plain(args), **plain(kwargs)))
    except ModelError:
        raise
    except (TypeError, np.exceptions.DTypePromotionError) as error:
        raise ModelError(f"np.{func.__name__} does not work on symbols ({error}); write it with elementary functions") from None


def _matrix(x: Any) -> ca.SX:
    array = objects(x)
    if array.ndim != 2:
        raise ModelError(f"np.linalg on symbols takes one matrix at a time; got an array of shape {array.shape}")
    return ca.vertcat(*(ca.horzcat(*(sx_of(item) for item in row)) for row in array))


def _square(x: Any) -> ca.SX:
    matrix = _matrix(x)
    if matrix.shape[0] != matrix.shape[1]:
        raise ModelError(f"np.linalg.inv, det and solve take a square matrix; got one of shape {matrix.shape}")
    return matrix


def _from_matrix(m: ca.SX) -> SymbolicArray:
    m = ca.densify(m)
    result = np.empty(m.shape, dtype=object)
    for index in np.ndindex(*m.shape):
        result[index] = Scalar(m[index])
    return wrap(result)


def _solve_columns(matrix: ca.SX, columns: ca.SX) -> SymbolicArray:
    # Cofactors need no pivoting but grow like n!; from n = 4 on a symbolic QR decomposition takes fewer operations.
    if matrix.shape[0] <= 3:
        return _from_matrix(ca.mtimes(ca.inv_minor(matrix), columns))
    return _from_matrix(ca.solve(ca.sparsify(matrix), columns))


def _solve(a: Any, b: Any) -> Any:
    matrix, right = _square(a), objects(b)
    if right.ndim not in (1, 2) or len(right) != matrix.shape[0]:
        raise ModelError(f"np.linalg.solve got a matrix of shape {matrix.shape} and a right-hand side of shape {right.shape}")
    return _solve_columns(matrix, _matrix(right.reshape(len(right), -1))).reshape(right.shape)


def _inv(a: Any) -> Any:
    matrix = _square(a)
    return _solve_columns(matrix, ca.SX.eye(matrix.shape[0]))


def _det(a: Any) -> Any:
    matrix = _square(a)
    if matrix.shape[0] > 7:
        raise ModelError(
            f"np.linalg.det on symbols expands by minors, for matrices up to 7 by 7; got shape {matrix.shape}: "
            "write the determinant in closed form"
        )
    return Scalar(ca.densify(ca.det(matrix)))


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise ModelError("np.where on symbols takes three arguments: np.where(condition, a, b)")
    return elementwise(where, condition, x, y)


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = elementwise(where, condition, choice, result)
    return result


def _reduction(name: str) -> Callable:
    def reduce(a: Any, axis: Any = None, *, keepdims: Any = False, initial: Any = np._NoValue) -> Any:
        return reduce_over(name, objects(a), {"axis": axis, "keepdims": keepdims is True, "initial": initial})

    return reduce


def _sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
    """np.sum: of symbols in long arrays as columns, where few of them remain to be added up."""
    array = objects(a)
    long = array.size >= LONG and (axis is None or (isinstance(axis, int) and array.size >= LONG * array.shape[axis]))
    if long and dtype is None and out is None and kinds_of(array) == {True}:
        return reduce_over("add", array, {"axis": axis, **options})
    return wrap(np.sum(plain(a), axis=axis, dtype=dtype, out=out, **options))


def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    for _ in range(n):
        rows = np.moveaxis(wrap(objects(a)), axis, 0)
        a = np.moveaxis(rows[1:] - rows[:-1], 0, axis)
    return a


def _sinc(x: Any) -> Any:
    y = np.pi * np.where(x == 0, 1e-20, x)
    return np.sin(y) / y


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    matrix = axis is None and np.ndim(plain(x)) > 1
    if ord not in (None, "fro" if matrix else 2):
        raise ModelError(
            "np.linalg.norm on symbols computes Euclidean norms only; write other norms with np.abs, np.max or np.sum"
        )
    return np.sqrt(np.sum(x * x if isinstance(x, np.ndarray) else np.square(x), axis=axis, keepdims=keepdims))


def _array(x: Any, dtype: Any = None, copy: Any = None) -> Any:
    return wrap(objects(x).copy())


_SPECIAL: dict[Callable, Callable] = {
    np.where: _where,
    np.select: _select,
    np.clip: clip,
    np.diff: _diff,
    np.sum: _sum,
    np.max: _reduction("maximum"),
    np.min: _reduction("minimum"),
    np.ptp: lambda a, axis=None: np.max(a, axis=axis) - np.min(a, axis=axis),
    np.any: _reduction("logical_or"),
    np.all: _reduction("logical_and"),
    np.sinc: _sinc,
    np.linalg.norm: _norm,
    np.linalg.inv: _inv,
    np.linalg.det: _det,
    np.linalg.solve: _solve,
    np.array: _array,
    np.asarray: _array,
}

_CREATION = {np.zeros, np.ones, np.empty, np.full, np.eye, np.identity}
"""Called with like=q, these make arrays whose elements may be replaced by symbols."""
