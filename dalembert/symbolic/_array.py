"""NumPy object arrays of symbolic scalars, with the NumPy functions that plain object arrays lack."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic._columns import column_of, elements_of
from dalembert.symbolic._scalar import BINARY, NUMPY, UNARY, NotForSymbols, Scalar, elementary, sx_of, where

LONG = 16
"""Elements from which on an operation is applied to whole columns."""

AT_ONCE = frozenset({
    "add", "subtract", "multiply", "divide", "true_divide", "negative", "square", "sqrt", "exp", "log", "sin", "cos", "tan",
    "hypot", "maximum", "minimum", "power", "absolute",
})  # fmt: skip
"""Functions that do the same to a column as to its elements, whatever these are."""


class SymbolicArray(np.ndarray):
    """An object array of `Scalar`s. Made by dalembert; a model meets it as q, v, p, lam and array parameters."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        return apply_function(func, args, kwargs)

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


def _elements(name: str, *inputs: Any) -> Any:
    """An elementary function of every element; long arrays all at once, as CasADi columns."""
    given = [_objects(x) for x in inputs]
    operands = np.broadcast_arrays(*given)
    table: dict[str, Any] = UNARY if len(operands) == 1 else BINARY
    if operands[0].size < LONG or name not in AT_ONCE:
        return _elementwise(functools.partial(elementary, name), *operands)
    symbolic = [_kinds(x) for x in given]
    if any(len(kinds) > 1 for kinds in symbolic) or {True} not in symbolic:  # what is a plain number stays one
        return _elementwise(functools.partial(elementary, name), *operands)
    if name == "power":
        exponents = set() if symbolic[1] == {True} else set(given[1].flat)
        if len(exponents) != 1 or 0 in exponents:  # x**0 is the plain number 1
            return _elementwise(functools.partial(elementary, name), *operands)
        powers = table[name](as_column(operands[0]), sx_of(exponents.pop()))
        return from_column(ca.densify(powers), operands[0].shape)
    columns = [as_column(x if x.size == 1 else whole) for x, whole in zip(given, operands, strict=True)]
    return from_column(ca.densify(table[name](*columns)), operands[0].shape)


def _kinds(x: np.ndarray) -> set[bool]:
    """Whether elements are symbols, as far as there are such elements."""
    return {issubclass(kind, Scalar) for kind in set(map(type, x.ravel().tolist()))}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    """NumPy's hook for element-wise functions, products and their reductions."""
    name = ufunc.__name__
    out = kwargs.pop("out", None)
    if kwargs.pop("where", True) is not True:
        raise ModelError(_NO_MASK.format(name))
    if ufunc is np.matmul and method == "__call__" and (rows := _combined_rows(*inputs)) is not None:
        result = rows
    elif ufunc is np.matmul and method == "__call__" and (product := _product(*inputs)) is not None:
        result = product
    elif ufunc is np.matmul and method == "__call__" and (sum_of_products := _long_dot(*inputs)) is not None:
        result = sum_of_products
    elif ufunc is np.matmul or name in {"vecdot", "matvec", "vecmat"} or set("".join(ufunc.types)) == set("O->"):
        result = wrap(ufunc(*(_objects(x) for x in inputs), **kwargs))
    elif name == "clip":
        result = _clip(*inputs)
    elif name not in UNARY and name not in BINARY:
        raise ModelError(f"np.{name} does not work on symbols; write it with elementary functions such as np.sin or np.where")
    elif method == "__call__":
        result = _elements(name, *inputs)
    elif method == "reduce":
        result = _reduce(name, _objects(inputs[0]), kwargs)
    elif method == "outer":
        left, right = (_objects(x) for x in inputs)
        result = _elementwise(functools.partial(elementary, name), left.reshape(left.shape + (1,) * right.ndim), right)
    elif method == "at":
        return _accumulate_at(name, *inputs)
    elif method == "accumulate":
        result = _accumulate(name, _objects(inputs[0]), kwargs.get("axis", 0))
    else:
        raise ModelError(f"np.{name}.{method} does not work on symbols; write the loop out")
    if out is not None:
        out[0][...] = _plain(result)
        return out[0]
    return result


def _combined_rows(weights: Any, rows: Any) -> Any:
    """weights @ rows for numbers times a few long rows of symbols, such as stages: row by row, as columns; else None."""
    if not isinstance(rows, SymbolicArray) or isinstance(weights, SymbolicArray) or rows.ndim != 2 or rows.shape[1] < LONG:
        return None
    numbers = np.asarray(weights)
    if numbers.dtype == object or numbers.ndim not in (1, 2) or not 0 < numbers.shape[-1] == len(rows) < LONG:
        return None
    columns, combined = [as_column(row) for row in rows], []
    for factors in np.atleast_2d(numbers).tolist():
        terms = [BINARY["multiply"](ca.SX(factor), column) for factor, column in zip(factors, columns, strict=True)]
        combined.append(ca.densify(functools.reduce(BINARY["add"], terms)))
    return from_column(ca.vertcat(*combined), (*numbers.shape[:-1], rows.shape[1]))


def _product(left: Any, right: Any) -> Any:
    """The product of two large matrices of symbols, without the terms that are zero, as most are in mechanisms; else None."""
    if not all(isinstance(x, SymbolicArray) and x.ndim == 2 and min(x.shape) >= LONG for x in (left, right)):
        return None
    if left.shape[1] != right.shape[0] or not all(isinstance(item, Scalar) for x in (left, right) for item in x.flat):
        return None
    columns = [ca.sparsify(ca.reshape(as_column(x.T), *x.shape)) for x in (left, right)]
    return from_column(ca.densify(ca.vec((columns[0] @ columns[1]).T)), (left.shape[0], right.shape[1]))


def _long_dot(left: Any, right: Any) -> Scalar | None:
    """left @ right for two long vectors, as columns; else None."""
    given = [_objects(x) for x in (left, right)]
    if any(x.ndim != 1 or len(x) < LONG for x in given) or len(given[0]) != len(given[1]):
        return None
    symbolic = [_kinds(x) for x in given]
    if any(len(kinds) > 1 for kinds in symbolic) or {True} not in symbolic:
        return None
    return Scalar(ca.dot(*map(as_column, given)))


def _reduce(name: str, array: np.ndarray, kwargs: dict[str, Any]) -> Any:
    axis = kwargs.get("axis", 0)
    given = range(array.ndim) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    axes = sorted(a % array.ndim for a in given)
    moved = np.moveaxis(array, axes, range(len(axes))).reshape(
        -1, *(array.shape[a] for a in range(array.ndim) if a not in axes)
    )
    if len(moved) == 0:
        return getattr(np, name).reduce(np.zeros(array.shape), **kwargs)
    initial = kwargs.get("initial", np._NoValue)
    plain = initial is np._NoValue or initial is None
    if name == "add" and plain and moved.ndim == 1 and len(moved) >= LONG and _kinds(moved) == {True}:
        total = Scalar(ca.sum1(as_column(moved)))
        return wrap(np.full((1,) * array.ndim, total)) if kwargs.get("keepdims") else total
    rows = list(moved) if plain else [initial, *moved]
    result = functools.reduce(functools.partial(_elements, name), rows)
    if kwargs.get("keepdims"):
        result = np.expand_dims(_objects(result), tuple(axes))
    return wrap(result) if isinstance(result, np.ndarray) else result


def _accumulate(name: str, array: np.ndarray, axis: int) -> Any:
    rows = itertools.accumulate(
        np.moveaxis(array, axis, 0), lambda x, y: _elementwise(functools.partial(elementary, name), x, y)
    )
    return wrap(np.moveaxis(np.stack([_objects(row) for row in rows]), 0, axis))


def _accumulate_at(name: str, array: Any, index: Any, values: Any) -> None:
    """np.add.at(array, index, values) and the like: repeated indices act one after the other."""
    if not isinstance(array, SymbolicArray):
        raise ModelError(f"np.{name}.at on symbols needs an array that can hold them: make it with np.zeros(n, like=q)")
    places = np.arange(array.size).reshape(array.shape)[index]
    given, flat = np.broadcast_to(_objects(values), places.shape), _objects(array).reshape(-1)
    for place, value in zip(places.ravel().tolist(), given.flat, strict=True):
        flat[place] = elementary(name, flat[place], value)
    array[...] = flat.reshape(array.shape).view(SymbolicArray)


def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    for _ in range(n):
        rows = np.moveaxis(wrap(_objects(a)), axis, 0)
        a = np.moveaxis(rows[1:] - rows[:-1], 0, axis)
    return a


def apply_function(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """NumPy's hook for everything that is not a ufunc."""
    if kwargs.get("where", np._NoValue) is not np._NoValue:
        raise ModelError(_NO_MASK.format(func.__name__))
    special = _SPECIAL.get(func)
    try:
        if special is not None:
            return special(*args, **kwargs)
        if func in _CREATION:
            return wrap(_objects(func(*args, **kwargs)))
        return wrap(func(*_plain(args), **_plain(kwargs)))
    except ModelError:
        raise
    except (TypeError, np.exceptions.DTypePromotionError) as error:
        raise ModelError(f"np.{func.__name__} does not work on symbols ({error}); write it with elementary functions") from None


_NO_MASK = "np.{0} with where=mask does not work on symbols; use np.where(mask, a, b) inside np.{0} instead"


def _matrix(x: Any) -> ca.SX:
    array = _objects(x)
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
    matrix, right = _square(a), _objects(b)
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
    return _elementwise(where, condition, x, y)


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = _elementwise(where, condition, choice, result)
    return result


def _reduction(name: str) -> Callable:
    def reduce(a: Any, axis: Any = None, *, keepdims: Any = False, initial: Any = np._NoValue) -> Any:
        return _reduce(name, _objects(a), {"axis": axis, "keepdims": keepdims is True, "initial": initial})

    return reduce


def _sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
    """np.sum: of symbols in long arrays as columns, where few of them remain to be added up."""
    array = _objects(a)
    long = array.size >= LONG and (axis is None or (isinstance(axis, int) and array.size >= LONG * array.shape[axis]))
    if long and dtype is None and out is None and _kinds(array) == {True}:
        return _reduce("add", array, {"axis": axis, **options})
    return wrap(np.sum(_plain(a), axis=axis, dtype=dtype, out=out, **options))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    lowest, highest = a_min if min is None else min, a_max if max is None else max
    low = a if lowest is None else np.maximum(a, lowest)
    return low if highest is None else np.minimum(low, highest)


def _sinc(x: Any) -> Any:
    y = np.pi * np.where(x == 0, 1e-20, x)
    return np.sin(y) / y


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    matrix = axis is None and np.ndim(_plain(x)) > 1
    if ord not in (None, "fro" if matrix else 2):
        raise ModelError(
            "np.linalg.norm on symbols computes Euclidean norms only; write other norms with np.abs, np.max or np.sum"
        )
    return np.sqrt(np.sum(x * x if isinstance(x, np.ndarray) else np.square(x), axis=axis, keepdims=keepdims))


def _array(x: Any, dtype: Any = None, copy: Any = None) -> Any:
    return wrap(_objects(x).copy())


_SPECIAL: dict[Callable, Callable] = {
    np.where: _where,
    np.select: _select,
    np.clip: _clip,
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


def as_column(x: Any) -> ca.SX:
    """A CasADi column of any array of scalars and numbers, in C order."""
    return column_of(_objects(x).ravel().tolist())


def from_column(column: ca.SX, shape: tuple[int, ...] | None = None) -> SymbolicArray:
    """The array behind a CasADi column."""
    return elements_of(column).reshape(-1 if shape is None else shape).view(SymbolicArray)


def stack_columns(parts: Iterable[Any]) -> ca.SX:
    """One CasADi column of several arrays."""
    return ca.vertcat(ca.SX(0, 1), *(as_column(part) for part in parts))


NUMPY.update(ufunc=apply_ufunc, function=apply_function)
