"""What NumPy's universal functions, `@` and their reductions do to arrays of symbols."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic._array import SymbolicArray, as_column, from_column, objects, plain, wrap
from dalembert.symbolic._scalar import BINARY, UNARY, Scalar, elementary, sx_of

LONG = 16
"""Elements from which on an operation is applied to whole columns."""

AT_ONCE = frozenset({
    "add", "subtract", "multiply", "divide", "true_divide", "negative", "square", "sqrt", "exp", "log", "sin", "cos", "tan",
    "hypot", "maximum", "minimum", "power", "absolute",
})  # fmt: skip
"""Functions that do the same to a column as to its elements, whatever these are."""

NO_MASK = "np.{0} with where=mask does not work on symbols; use np.where(mask, a, b) inside np.{0} instead"


def elementwise(function: Callable, *inputs: Any) -> Any:
    operands = np.broadcast_arrays(*(objects(x) for x in inputs))
    result = np.empty(operands[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(x[index] for x in operands))
    return wrap(result)


def _elements(name: str, *inputs: Any) -> Any:
    """An elementary function of every element; long arrays all at once, as CasADi columns."""
    given = [objects(x) for x in inputs]
    operands = np.broadcast_arrays(*given)
    table: dict[str, Any] = UNARY if len(operands) == 1 else BINARY
    if operands[0].size < LONG or name not in AT_ONCE:
        return elementwise(functools.partial(elementary, name), *operands)
    symbolic = [kinds_of(x) for x in given]
    if any(len(kinds) > 1 for kinds in symbolic) or {True} not in symbolic:  # what is a plain number stays one
        return elementwise(functools.partial(elementary, name), *operands)
    if name == "power":
        exponents = set() if symbolic[1] == {True} else set(given[1].flat)
        if len(exponents) != 1 or 0 in exponents:  # x**0 is the plain number 1
            return elementwise(functools.partial(elementary, name), *operands)
        powers = table[name](as_column(operands[0]), sx_of(exponents.pop()))
        return from_column(ca.densify(powers), operands[0].shape)
    columns = [as_column(x if x.size == 1 else whole) for x, whole in zip(given, operands, strict=True)]
    return from_column(ca.densify(table[name](*columns)), operands[0].shape)


def kinds_of(x: np.ndarray) -> set[bool]:
    """Whether elements are symbols, as far as there are such elements."""
    return {issubclass(kind, Scalar) for kind in set(map(type, x.ravel().tolist()))}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    """NumPy's hook for element-wise functions, products and their reductions."""
    name = ufunc.__name__
    out = kwargs.pop("out", None)
    if kwargs.pop("where", True) is not True:
        raise ModelError(NO_MASK.format(name))
    if ufunc is np.matmul and method == "__call__" and (rows := _combined_rows(*inputs)) is not None:
        result = rows
    elif ufunc is np.matmul and method == "__call__" and (product := _product(*inputs)) is not None:
        result = product
    elif ufunc is np.matmul and method == "__call__" and (sum_of_products := _long_dot(*inputs)) is not None:
        result = sum_of_products
    elif ufunc is np.matmul or name in {"vecdot", "matvec", "vecmat"} or set("".join(ufunc.types)) == set("O->"):
        result = wrap(ufunc(*(objects(x) for x in inputs), **kwargs))
    elif name == "clip":
        result = clip(*inputs)
    elif name not in UNARY and name not in BINARY:
        raise ModelError(f"np.{name} does not work on symbols; write it with elementary functions such as np.sin or np.where")
    elif method == "__call__":
        result = _elements(name, *inputs)
    elif method == "reduce":
        result = reduce_over(name, objects(inputs[0]), kwargs)
    elif method == "outer":
        left, right = (objects(x) for x in inputs)
        result = elementwise(functools.partial(elementary, name), left.reshape(left.shape + (1,) * right.ndim), right)
    elif method == "at":
        return _accumulate_at(name, *inputs)
    elif method == "accumulate":
        result = _accumulate(name, objects(inputs[0]), kwargs.get("axis", 0))
    else:
        raise ModelError(f"np.{name}.{method} does not work on symbols; write the loop out")
    if out is not None:
        out[0][...] = plain(result)
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
    given = [objects(x) for x in (left, right)]
    if any(x.ndim != 1 or len(x) < LONG for x in given) or len(given[0]) != len(given[1]):
        return None
    symbolic = [kinds_of(x) for x in given]
    if any(len(kinds) > 1 for kinds in symbolic) or {True} not in symbolic:
        return None
    return Scalar(ca.dot(*map(as_column, given)))


def reduce_over(name: str, array: np.ndarray, kwargs: dict[str, Any]) -> Any:
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
    if name == "add" and plain and moved.ndim == 1 and len(moved) >= LONG and kinds_of(moved) == {True}:
        total = Scalar(ca.sum1(as_column(moved)))
        return wrap(np.full((1,) * array.ndim, total)) if kwargs.get("keepdims") else total
    rows = list(moved) if plain else [initial, *moved]
    result = functools.reduce(functools.partial(_elements, name), rows)
    if kwargs.get("keepdims"):
        result = np.expand_dims(objects(result), tuple(axes))
    return wrap(result) if isinstance(result, np.ndarray) else result


def _accumulate(name: str, array: np.ndarray, axis: int) -> Any:
    rows = itertools.accumulate(
        np.moveaxis(array, axis, 0), lambda x, y: elementwise(functools.partial(elementary, name), x, y)
    )
    return wrap(np.moveaxis(np.stack([objects(row) for row in rows]), 0, axis))


def _accumulate_at(name: str, array: Any, index: Any, values: Any) -> None:
    """np.add.at(array, index, values) and the like: repeated indices act one after the other."""
    if not isinstance(array, SymbolicArray):
        raise ModelError(f"np.{name}.at on symbols needs an array that can hold them: make it with np.zeros(n, like=q)")
    places = np.arange(array.size).reshape(array.shape)[index]
    given, flat = np.broadcast_to(objects(values), places.shape), objects(array).reshape(-1)
    for place, value in zip(places.ravel().tolist(), given.flat, strict=True):
        flat[place] = elementary(name, flat[place], value)
    array[...] = flat.reshape(array.shape).view(SymbolicArray)


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    lowest, highest = a_min if min is None else min, a_max if max is None else max
    low = a if lowest is None else np.maximum(a, lowest)
    return low if highest is None else np.minimum(low, highest)
