"""Constants of the catalogue's problems: numbers where numbers belong, and masses, lengths and inertias that are positive."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, InputError, suggestion
from dalembert.runs._problem import Problem
from dalembert.systems._model import one_line, real_array

POSITIVE = re.compile(r"(m|M|l|I|J|r|R)\d*|mass|length|radius")
"""Names under which the catalogue has masses, lengths, moments of inertia and radii."""


def checked(build: Callable[..., Problem]) -> Callable[..., Problem]:
    """The same function of a problem's constants, which refuses those that are no numbers or have the wrong sign.

    Example:
        >>> import dalembert as da
        >>> da.problems.double_pendulum(m2=-1)
        Traceback (most recent call last):
        ...
        dalembert.errors.InputError: m2 of double_pendulum must be positive; got -1

    """
    signature, name = inspect.signature(build), build.__name__

    @functools.wraps(build)
    def problem(*positional: Any, **named: Any) -> Problem:
        for unknown in named.keys() - signature.parameters.keys():
            advice = suggestion(unknown, signature.parameters) or f"; it has {', '.join(signature.parameters) or 'none'}"
            raise InputError(f"{name} has no constant {unknown!r}{advice}")
        try:
            given = signature.bind(*positional, **named)
        except TypeError as error:
            raise InputError(f"{name}: {error}") from None
        for constant, value in given.arguments.items():
            given.arguments[constant] = _constant(f"{constant} of {name}", value, signature.parameters[constant])
            _check_sign(constant, f"{constant} of {name}", value)
        made = _built(build, given)
        made.system.parameters.check = made.system.parameters.check or functools.partial(_check_values, name)
        usual = {constant: about.default for constant, about in signature.parameters.items()}
        changed = {constant: x for constant, x in given.arguments.items() if not np.array_equal(x, usual[constant])}
        return replace(made, settings=changed) if changed else made

    return problem


def _built(build: Callable[..., Problem], given: inspect.BoundArguments) -> Problem:
    """The problem, unless its start or its step size are no numbers."""
    listed = ", ".join(f"{constant} = {one_line(value)}" for constant, value in given.arguments.items())
    try:
        with np.errstate(all="ignore"):
            made = build(*given.args, **given.kwargs)
            values = (made.q0, made.v0, made.p0, made.y0, made.z0, made.h)
            finite = all(np.all(np.isfinite(value)) for value in values if value is not None)
    except DalembertError:
        raise
    except (ArithmeticError, ValueError, TypeError, IndexError):
        finite = False
    if not finite:
        raise InputError(f"{build.__name__} has no start with {listed}: choose other constants")
    return made


def _constant(what: str, value: Any, declared: inspect.Parameter) -> Any:
    """A constant as its annotation wants it."""
    kind = str(declared.annotation)
    if (value is None and "None" in kind) or not re.search("float|int", kind):
        return value
    one = kind.partition(" ")[0] in ("float", "int")
    try:
        number = real_array(value)
        right = np.all(np.isfinite(number)) and number.ndim == (0 if one else 1)
        right = right and (not kind.startswith("tuple") or len(number) == len(declared.default))
    except (TypeError, ValueError, OverflowError):
        right = np.False_
    if not right:
        raise InputError(f"{what} must be {'a finite number' if one else 'a list of finite numbers'}; got {one_line(value)}")
    if kind == "int" and number != np.round(number):
        raise InputError(f"{what} must be a whole number; got {one_line(value)}")
    return int(number) if kind == "int" else float(number) if one else value


def _check_sign(constant: str, what: str, value: Any) -> None:
    if POSITIVE.fullmatch(constant) and value is not None and not np.all(np.asarray(value) > 0):
        raise InputError(f"{what} must be positive; got {one_line(value)}")


def _check_values(name: str, values: Mapping[str, np.ndarray]) -> None:
    """The parameters of a run."""
    for constant, value in values.items():
        _check_sign(constant, f"{constant} of {name}", value.tolist())
