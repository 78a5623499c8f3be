"""Calling a user's model functions with the symbols that they name, and checking what they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import DalembertError, ModelError
from dalembert.symbolic import NotForSymbols, Scalar, SymbolicArray, as_column, from_column

Constraints = Callable | Sequence[Callable] | None
"""One function that states constraints, or several."""

RESERVED = ("t", "q", "v", "p", "y", "z", "lam", "psi", "h", "speed")


class Parameters:
    """The named constants of a model, in one flat vector `theta` that the kernels take at run time."""

    def __init__(self, values: Mapping[str, Any] | None) -> None:
        self.values: dict[str, np.ndarray] = {}
        for name, value in checked_mapping(values).items():
            if not isinstance(name, str) or not name.isidentifier():
                raise ModelError(f"parameter names must be Python identifiers, because model functions name them; got {name!r}")
            if name in RESERVED:
                raise ModelError(f"the parameter name {name!r} is taken by the library ({', '.join(RESERVED)}); rename it")
            self.values[name] = self._array(name, value)
        self.size = sum(value.size for value in self.values.values())
        self.theta = ca.SX.sym("theta", self.size)
        self.check: Callable[[Mapping[str, np.ndarray]], None] | None = None
        """Refuses values that make no sense, such as a negative mass; called with all values whenever some are replaced."""

    @staticmethod
    def _array(name: str, value: Any) -> np.ndarray:
        try:
            array = real_array(value)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"parameter {name!r} must be a number or an array of numbers; got {one_line(value)}") from None
        if not np.all(np.isfinite(array)):
            raise ModelError(f"parameter {name!r} must be finite; got {one_line(value)}")
        return array

    def unflatten(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """The named values behind a flat vector."""
        ends = np.cumsum([value.size for value in self.values.values()], dtype=int)
        parts = np.split(vector, ends[:-1]) if self.values else []
        return {name: part.reshape(value.shape) for (name, value), part in zip(self.values.items(), parts, strict=True)}

    def symbols(self) -> dict[str, Any]:
        """The parameters as model functions see them: scalars, or arrays of the declared shape."""
        result, start = {}, 0
        for name, value in self.values.items():
            part = from_column(self.theta[start : start + value.size], value.shape or (1,))
            result[name] = part if value.shape else part[0]
            start += value.size
        return result

    def vector(self, overrides: Mapping[str, Any] | None = None, base: np.ndarray | None = None) -> np.ndarray:
        """The flat vector of all values (by default, or as in the flat vector `base`), some of them replaced."""
        merged = dict(self.values) if base is None else self.unflatten(base)
        for name, value in checked_mapping(overrides).items():
            if name not in merged:
                known = ", ".join(merged) or "none"
                raise ModelError(
                    f"the model has no parameter {name!r} (it has: {known}); declare it in the model's params={{...}}"
                )
            array = self._array(name, value)
            if array.shape != merged[name].shape:
                raise ModelError(f"parameter {name!r} was declared with shape {merged[name].shape}; got shape {array.shape}")
            merged[name] = array
        if overrides and self.check is not None:
            self.check(merged)
        return np.concatenate([np.zeros(0), *(value.ravel() for value in merged.values())])


def check_dimensions(**sizes: Any) -> None:
    """Refuse dimensions that are not positive integers."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 1 <= size < 2**31:
            raise ModelError(f"{name} is the number of variables {name[-1]}, a positive integer; got {one_line(size)}")


def shape_of(given: Any) -> tuple[int, ...]:
    """The shape of numbers that a user gave; where rows have different lengths, one that nothing else has."""
    try:
        return np.shape(given)
    except ValueError:
        return (-1,)


def real_array(value: Any) -> np.ndarray:
    """An array of numbers; a TypeError for complex ones, whose imaginary parts would get lost, and for text."""
    if np.iscomplexobj(value) or np.asarray(value).dtype.kind in "US":
        raise TypeError("not real numbers")
    try:
        return np.array(value, dtype=float)
    except OverflowError as error:
        raise ValueError("integers that are no floating-point numbers") from error


def one_line(value: Any) -> str:
    """How a value reads, without line breaks and not endlessly long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # integers of more digits than Python prints
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 200 else text[:200] + " ..."


def checked_mapping(params: Any) -> Mapping[str, Any]:
    if params is not None and not isinstance(params, Mapping):
        raise ModelError(f'params maps names to numbers, as in params={{"m": 1.0}}; got {type(params).__name__}')
    return params or {}


def naming(names: Iterable[str], function: Any) -> Callable:
    """A function of keywords as a model function, whose signature names the arguments that it wants."""
    function.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names])
    return function


def call_model(role: str, function: Callable, available: Mapping[str, Any], parameters: Parameters) -> Any:
    """Call `function` with the arguments that it names, out of `available` and the parameters."""
    if not callable(function):
        raise ModelError(f"{role} must be a function of {', '.join(available)} and parameters; got {function!r}")
    # A model function may overwrite its arguments (q *= 2); the next one must not see that.
    arguments = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in available.items()} | parameters.symbols()
    chosen, positional = {}, []
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            f"{role} must be a function that names its arguments, such as lambda q: ...; got {function!r}"
        ) from None
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ModelError(f"{role} must name its arguments; *{name} hides which of {', '.join(arguments)} it needs")
        if name in arguments:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(arguments[name])
            else:
                chosen[name] = arguments[name]
        elif parameter.default is parameter.empty:
            known = ", ".join(parameters.values) or "none"
            raise ModelError(
                f"{role} names the argument {name!r}, which is neither one of {', '.join(available)} nor a parameter "
                f"(parameters: {known}): rename it or add it to params={{...}}"
            )
    try:
        return function(*positional, **chosen)
    except NotForSymbols as error:
        raise error.said_of(role) from error
    except DalembertError:
        raise
    except (TypeError, AttributeError) as error:
        raise ModelError(
            f"{role} failed on symbolic arguments ({sentence(error)}): use NumPy's elementary functions, and "
            "np.array([...], like=q) for matrices that go through np.linalg"
        ) from error
    except (ArithmeticError, LookupError, ValueError) as error:
        raise ModelError(f"{role} failed ({sentence(error)}): check it against the dimension given to the system") from error


def sentence(error: Exception) -> str:
    """What an error says, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def scalar_expression(role: str, value: Any) -> ca.SX:
    """The value of a model function that must be one number."""
    if isinstance(value, (Scalar, int, float, np.floating, np.integer)):
        return as_column([value])
    if isinstance(value, np.ndarray) and value.size == 1:
        return as_column(value)
    shape = getattr(value, "shape", None)
    raise ModelError(
        f"{role} must return one number; got {f'an array of shape {shape}' if shape is not None else type(value).__name__}"
    )


def vector_expression(role: str, value: Any, size: int | None = None) -> ca.SX:
    """The value of a model function that must be a list or one-dimensional array of numbers."""
    if isinstance(value, (Scalar, int, float, np.floating, np.integer)):
        value = [value]
    try:
        array = value if isinstance(value, SymbolicArray) else np.array(value, dtype=object)
        if any(isinstance(item, (np.ndarray, list, tuple)) for item in array.ravel()):
            raise ValueError
    except ValueError:
        raise ModelError(f"{role} must return a flat list of numbers; got a ragged list") from None
    if array.ndim != 1 or (size is not None and len(array) != size):
        wanted = "a flat list of numbers" if size is None else f"{size} numbers, one for each coordinate"
        raise ModelError(f"{role} must return {wanted}; got an array of shape {array.shape}")
    try:
        return as_column(array)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{role} must return numbers; got {one_line(value)}") from None
