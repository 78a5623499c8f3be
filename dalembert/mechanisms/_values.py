"""Numbers that users give: constants, and functions of parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, ModelError
from dalembert.symbolic import NotForSymbols, Scalar
from dalembert.systems._model import one_line, sentence

Value = float | str | Callable[..., Any]
"""A number, the name of one of the mechanism's parameters, or a function of parameters, such as lambda m, l: m * l**2 / 12."""


def valued(what: str, value: Any, params: Mapping[str, Any]) -> Any:
    """The number or symbol of a `Value`."""
    if isinstance(value, str):
        if value not in params:
            if _is_number(value):
                raise ModelError(f"{what} is the text {value!r}, and a text names a parameter: write the number without quotes")
            known = ", ".join(params) or "none"
            raise ModelError(f"{what} names the parameter {value!r}; declare it in da.Mechanism(params=...) (it has: {known})")
        return params[value]
    if callable(value):
        arguments = inspect.signature(value).parameters
        unknown = [name for name, argument in arguments.items() if name not in params and argument.default is argument.empty]
        if unknown:
            known = ", ".join(params) or "none"
            raise ModelError(f"{what} asks for {', '.join(unknown)}; declare it in da.Mechanism(params=...) (it has: {known})")
        return called(what, value, {name: params[name] for name in arguments if name in params})
    return value


def called(what: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What a function of the user returns; if it fails, the part to which it belongs is named."""
    try:
        return function(**arguments)
    except NotForSymbols as error:
        raise error.said_of(f"the function of {what}") from error
    except DalembertError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        numpy = isinstance(error, (AttributeError, TypeError))
        advice = "use NumPy's elementary functions" if numpy else "check it"
        raise ModelError(f"the function of {what} failed ({sentence(error)}): {advice}") from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def number(what: str, value: Any) -> float:
    """The default value of a `Value`, a finite number."""
    try:
        result = np.nan if isinstance(value, (bool, np.bool_)) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = np.nan
    if not np.isfinite(result):
        raise ModelError(
            f"{what} must be a finite number, the name of a parameter or a function of parameters; got {one_line(value)}"
        )
    return result


def one_number(what: str, value: Any) -> Any:
    """What a user's function returned, if it is one number or one symbol."""
    if isinstance(value, Scalar):
        return value
    try:
        return number(what, None if np.ndim(value) or isinstance(value, str) else value)
    except ValueError:
        raise ModelError(f"{what} must return one number; got {one_line(value)}") from None


def positive(what: str, value: Value, params: Mapping[str, Any], zero: bool = False) -> float:
    """The default value of a `Value` that must be positive, or not negative."""
    result = number(what, valued(what, value, params))
    if result < 0 or (result == 0 and not zero):
        raise ModelError(f"{what} must be {'at least zero' if zero else 'positive'}; got {result:g}")
    return result
