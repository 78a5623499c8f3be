"""What users give besides a run, checked once: names, arrays of numbers in the shapes that they must have, and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalembert.errors import InputError
from dalembert.systems._model import one_line, real_array


def names_of(what: str, given: Any, example: str) -> tuple[str, ...]:
    """One name, or several, each once."""
    try:
        names = (given,) if isinstance(given, str) else tuple(given)
    except TypeError:  # an array without axes, too, which says that it is iterable
        names = ()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError(f"{what}, each once, as in {example}; got {one_line(given)}")
    return names


def truth(what: str, given: Any) -> bool:
    """True or False."""
    if not isinstance(given, bool):
        raise InputError(f"{what} is True or False; got {one_line(given)}")
    return given


def finite(what: str, given: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Finite numbers, in this shape if one is asked for; one number serves for all of its places."""
    numbers = _numbers(what, given, shape)
    if not np.all(np.isfinite(numbers)):
        raise InputError(f"{what} must be finite; got {one_line(given)}")
    return numbers


def limits(bounds: Any, shapes: Mapping[str, tuple[int, ...]], kind: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Lower and upper bounds of all these names, infinite where none are given."""
    if bounds is not None and not isinstance(bounds, Mapping):
        raise InputError(f'bounds maps names to (lower, upper), as in bounds={{"m": (0.1, 2.0)}}; got {one_line(bounds)}')
    found = {name: (np.full(shape, -np.inf), np.full(shape, np.inf)) for name, shape in shapes.items()}
    for name, pair in (bounds or {}).items():
        if name not in shapes:
            raise InputError(f"bounds name {name!r}, which is {kind}: they may name {', '.join(shapes)}")
        if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
            raise InputError(f"the bounds of {name!r} are a pair (lower, upper), np.inf for none; got {one_line(pair)}")
        lower, upper = (_numbers(f"a bound of {name!r}", side, shapes[name]) for side in pair)
        if not np.all(lower <= upper):
            raise InputError(f"the lower bound of {name!r} must not exceed the upper one; got {one_line(pair)}")
        found[name] = lower, upper
    return found


def checked_data(data: Any, shape: tuple[int, int]) -> np.ndarray:
    """Data in the shape that the times and what is observed give them."""
    values = finite("data", data)
    values = values[:, None] if values.ndim == 1 else values
    if values.shape != shape:
        raise InputError(
            f"data must have the shape {shape}, a row for each time and a column for each observed quantity; got shape "
            f"{values.shape}"
        )
    return values


def deviations(sigma: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """The standard deviations of all data, if they are given."""
    if sigma is None:
        return None
    columns = finite("sigma, the standard deviation of the data in all columns or in each,", sigma, shape[1:])
    if not np.all(columns > 0):
        raise InputError(f"sigma, the standard deviation of the data, must be positive; got {one_line(sigma)}")
    return columns * np.ones(shape)


def probability(level: Any) -> float:
    """A level of confidence."""
    number = float(finite("the level of confidence", level, ()))
    if not 0 < number < 1:
        raise InputError(f"the level of confidence is a probability between 0 and 1; got {one_line(level)}")
    return number


def _numbers(what: str, given: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    try:
        numbers = real_array(given)
        return numbers if shape is None else np.array(np.broadcast_to(numbers, shape))
    except (TypeError, ValueError, OverflowError):
        kind = "an array of numbers" if shape is None else f"numbers of shape {shape}" if shape else "a number"
        raise InputError(f"{what} must be {kind}; got {one_line(given)}") from None
